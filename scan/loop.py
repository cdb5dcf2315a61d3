"""``loop``: a scan whose state is any nested tuple, list or dict of tensors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from symcomp.core import dtype as dtypes
from symcomp.core.tensor import TensorType
from symcomp.errors import ShapeError
from symcomp.ops.convert import cast_to
from symcomp.ops.shapes.axes import shape_padleft
from symcomp.scan.arguments import State, check_flag, read_name, read_sequence, read_steps
from symcomp.scan.build import Draft
from symcomp.scan.calling import call_step, check_step, described, read_tensor
from symcomp.scan.checkpoint import read_every
from symcomp.scan.error_notes import with_location
from symcomp.scan.invariants import invariants_of
from symcomp.scan.updates import until


@with_location
def loop(
    step: Callable[[Any, Any], Any],
    init: Any,
    xs: Any = None,
    length: Any = None,
    name: str | None = None,
    reverse: bool = False,
    return_updates: bool = False,
    checkpoint: Any = None,
) -> Any:
    """Repeat ``carry, y = step(carry, x)`` for each row x of ``xs``.

    Parameters
    ----------
    step : callable
        (carry, x) -> (carry, y), or (carry, y, until(condition)). It is called once with variables,
        and again if the dtype of a state must be promoted.
    init : tensor_like, or nested tuples, lists and dicts of them
        The carry before the first step. A state gets the dtype that both ``init`` and ``step`` fit
        in.
    xs : like ``init``, optional
        Each has a row for each step; x has the structure of ``xs``. None: x is None.
    length : int or integer scalar, optional
        The number of steps; by default the length of ``xs``.
    name : str, optional
    reverse : bool
        Go from the last row to the first; row t of the outputs still belongs to row t of ``xs``.
    return_updates : bool
        Return the updates of shared variables as third result. Without it a step that has any, as
        one that draws random numbers, is an error.
    checkpoint : int or str, optional
        As for ``scan``.

    Returns
    -------
    carry
        After the last step, in the structure of ``init``.
    ys
        The results of the steps, stacked, in the structure of y; None where y is None.

    Raises
    ------
    TypeError, ShapeError
        If a step changes the structure, rank or known shape of the carry.

    Examples
    --------
    >>> import symcomp
    >>> import symcomp.tensor as T
    >>> x = T.dvector("x")
    >>> def step(carry, x):
    ...     total = {"sum": carry["sum"] + x, "count": carry["count"] + 1}
    ...     return total, total["sum"] / total["count"]
    >>> end, means = symcomp.loop(step, {"sum": 0, "count": 0}, x)
    >>> means.eval({x: [1.0, 2.0, 6.0]})
    array([1. , 1.5, 3. ])
    >>> end["sum"].dtype
    'float64'
    """
    who = read_name(name, "loop")
    check_step(step, who, "step")
    check_flag("reverse", reverse, who)
    starts = [
        read_tensor(x, f"{who}: state {i} of init", "pass tensors or numbers, in tuples or dicts")
        for i, x in enumerate(leaves(init))
    ]
    sequences = [read_sequence(x, i, reverse, who) for i, x in enumerate(leaves(xs))]
    n = read_steps(length, sequences, who, "length or xs")
    rows = filled(xs, [s.rows[0] for s in sequences])
    invariants = invariants_of([*starts, *(s.source for s in sequences)])
    with invariants.around_step():
        states, news, ys, condition = _settled(step, starts, rows, init, who)
    flat = [_leaf(y, f"leaf {i} of y", who) for i, y in enumerate(leaves(ys))]
    states += [State(f"output {i}") for i in range(len(flat))]
    draft = Draft(who, sequences, states, [*news, *flat], {}, condition, invariants)
    found, updates, ends = draft.build(n, None, -1, None, False, read_every(checkpoint, who))
    if updates and not return_updates:
        raise ValueError(
            f"{who}: the step updates {', '.join(map(str, updates))}: pass "
            "return_updates=True and give the third result to function(..., updates=...). A draw "
            "that all steps share must be part of the carry"
        )
    k = len(starts)
    outputs = filled(ys, [y[::-1] if reverse else y for y in found[k:]])
    carry = filled(init, ends)
    return (carry, outputs, updates) if return_updates else (carry, outputs)


def _settled(
    step: Callable[[Any, Any], Any], starts: list[Any], rows: Any, init: Any, who: str
) -> tuple[list[State], list[Any], Any, Any]:
    """Return the states and the results of one step, in dtypes that do not change from step to
    step.
    """
    kinds = [x.dtype for x in starts]
    while True:
        states = [_state(x, kind, i) for i, (x, kind) in enumerate(zip(starts, kinds, strict=True))]
        given = filled(init, [s.rows[0] for s in states])
        parts = [("carry", [given]), ("row of xs", [rows])]
        result = call_step(step, who, parts, "put more values into the carry or into xs")
        carry, ys, condition = _parts(result, who)
        if not same_structure(init, carry):
            raise TypeError(
                f"{who}: the step makes {structure(carry)} of the carry {structure(init)}; both "
                "must have the same structure: return (carry, y) with a carry like init"
            )
        news = [_leaf(x, f"state {i}", who) for i, x in enumerate(leaves(carry))]
        wider = [dtypes.upcast(s, new.dtype) for s, new in zip(kinds, news, strict=True)]
        if wider == kinds:
            checked = [_checked(new, s, who) for new, s in zip(news, states, strict=True)]
            return states, checked, ys, condition
        kinds = wider


def _state(start: Any, dtype: str, position: int) -> State:
    start = cast_to(start, dtype)
    label = f"state {position}"
    row = TensorType(dtype, start.type.shape)(start.name or label)
    return State(label, (-1,), shape_padleft(start), (row,), start)


def _parts(result: Any, who: str) -> tuple[Any, Any, Any]:
    if not isinstance(result, tuple) or len(result) not in (2, 3):
        raise TypeError(
            f"{who}: the step must return (carry, y), it returned {described(result)}: y is None "
            "where there is nothing to stack"
        )
    condition = None
    if len(result) == 3:
        if not isinstance(result[2], until):
            raise TypeError(
                f"{who}: the third result of the step must be until(condition), it is "
                f"{described(result[2])}"
            )
        condition = result[2].condition
    return result[0], result[1], condition


def _leaf(x: Any, what: str, who: str) -> Any:
    return read_tensor(x, f"{who}: {what}, as the step returns it,", "return tensors or numbers")


def _checked(new: Any, state: State, who: str) -> Any:
    kind = state.rows[0].type
    same = new.ndim == kind.ndim and all(
        m is None or n is None or m == n for m, n in zip(new.type.shape, kind.shape, strict=True)
    )
    if not same:
        raise ShapeError(
            f"{who}: {state.label} starts as {kind}, and the step makes it {new.type}"
            f"{f', made at {new.source}' if new.source else ''}: the shape must stay. Give init "
            "the shape that the step returns"
        )
    return cast_to(new, kind.dtype)


def leaves(tree: Any) -> list[Any]:
    """Return the tensors of a nested structure, dicts in the order of their keys."""
    if tree is None:
        return []
    if isinstance(tree, Mapping):
        return [x for key in tree for x in leaves(tree[key])]
    if isinstance(tree, list | tuple):
        return [x for part in tree for x in leaves(part)]
    return [tree]


def filled(tree: Any, values: list[Any]) -> Any:
    """Return a structure like ``tree`` with other leaves."""
    rest = iter(values)

    def fill(part: Any) -> Any:
        if part is None:
            return None
        if isinstance(part, Mapping):
            return {key: fill(part[key]) for key in part}
        if isinstance(part, list | tuple):
            items = [fill(item) for item in part]
            named = isinstance(part, tuple) and hasattr(part, "_fields")
            return type(part)(*items) if named else type(part)(items)
        return next(rest)

    return fill(tree)


def structure(tree: Any) -> str:
    """Return a text of the structure, with a star for each tensor."""
    if isinstance(tree, Mapping):
        return "{" + ", ".join(f"{key!r}: {structure(tree[key])}" for key in tree) + "}"
    if isinstance(tree, list | tuple):
        inner = ", ".join(structure(part) for part in tree)
        return f"[{inner}]" if isinstance(tree, list) else f"({inner})"
    return "None" if tree is None else "*"


def same_structure(a: Any, b: Any) -> bool:
    """Tell whether both have the same structure; the keys of dicts are in the same order."""
    return structure(a) == structure(b)
