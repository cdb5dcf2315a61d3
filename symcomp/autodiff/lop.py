"""Reverse mode: one walk from the cost to its inputs, calling each node's pullback (L-op)."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from symcomp.autodiff.stable import StableForm
from symcomp.config import config
from symcomp.core import dtype as dtypes
from symcomp.core.mentions import mention
from symcomp.core.node import Apply, Variable
from symcomp.core.pause import without_garbage_collection
from symcomp.core.special_types import DisconnectedType, NullType
from symcomp.core.tensor import TensorType, TensorVariable
from symcomp.core.walk import toposort
from symcomp.errors import (
    DisconnectedInputError,
    DTypeError,
    GradientError,
    NullTypeGradError,
    ScalarCostError,
    ShapeError,
)
from symcomp.ops.control.conditions import ifelse
from symcomp.ops.control.regions import ALWAYS, Region, is_active, place
from symcomp.ops.convert import as_tensor_variable, cast_to


@without_garbage_collection
def grad(
    cost: Variable | None,
    wrt: Any,
    consider_constant: Sequence[Variable] | None = None,
    disconnected_inputs: str = "raise",
    add_names: bool = True,
    known_grads: Mapping[Variable, Any] | None = None,
    return_disconnected: str = "zero",
    null_gradients: str = "raise",
) -> Any:
    """Differentiate a scalar.

    Parameters
    ----------
    cost : scalar TensorVariable or None
        None is allowed where ``known_grads`` is given.
    wrt : Variable or list or tuple of Variable
        With respect to what; a list gives a list, a tuple a tuple.
    consider_constant : sequence of Variable, optional
        Not to be differentiated through.
    disconnected_inputs : {"raise", "warn", "ignore"}
        The action if ``cost`` does not depend on an element of ``wrt``.
    add_names : bool
        Name the results ``(dcost/dx)`` where both have names.
    known_grads : mapping of Variable to its gradient, optional
        Gradients to start from. They are taken as complete: what ``cost`` or another of them would
        send to the same variable is not added, nor is the 1 of ``cost`` itself.
    return_disconnected : {"zero", "None", "Disconnected"}
        The gradient of a disconnected variable.
    null_gradients : {"raise", "return"}
        The action where the derivative is undefined or not implemented.

    Returns
    -------
    Variable or list or tuple of Variable
        Gradients of the shapes of ``wrt``, and of their floating dtypes (for an integer
        variable, the gradient of the function continued to the reals, in a float dtype). A complex
        x has the gradient dcost/dRe(x) + i dcost/dIm(x).

    Raises
    ------
    ScalarCostError
        If ``cost`` is no scalar.
    DisconnectedInputError, NullTypeGradError
        See above.

    Examples
    --------
    >>> import symcomp
    >>> import symcomp.tensor as T
    >>> x = T.dvector("x")
    >>> symcomp.grad((x ** 3).sum(), x).eval({x: [1.0, 2.0]})
    array([ 3., 12.])
    """
    _check_choice("disconnected_inputs", disconnected_inputs, ("raise", "warn", "ignore"))
    _check_choice("return_disconnected", return_disconnected, ("zero", "None", "Disconnected"))
    _check_choice("null_gradients", null_gradients, ("raise", "return"))
    targets = _targets(wrt, "grad")
    starts = _starting_gradients(cost, known_grads)
    constants = _constants(consider_constant)
    stable = StableForm(starts, [*targets, *constants])
    walk = _ReverseWalk(starts, targets, constants, known_grads or (), stable)
    grads = walk.results(disconnected_inputs, return_disconnected, null_gradients)
    if add_names and cost is not None and cost.name is not None:
        for x, gx in zip(targets, grads, strict=True):
            if gx is not None and x.name is not None and gx.name is None:
                gx.name = f"(d{cost.name}/d{x.name})"
    return _like_wrt(wrt, grads)


@without_garbage_collection
def Lop(
    f: Any,
    wrt: Any,
    eval_points: Any,
    consider_constant: Sequence[Variable] | None = None,
    disconnected_inputs: str = "raise",
    null_gradients: str = "raise",
) -> Any:
    """Return the vector-Jacobian product: ``eval_points`` times the Jacobian of ``f`` with respect
    to ``wrt``.

    Parameters
    ----------
    f : Variable or sequence of Variable
    wrt : Variable or list or tuple of Variable
    eval_points : tensor_like or sequence of tensor_like
        One for each element of ``f``, of its shape.
    consider_constant, disconnected_inputs, null_gradients
        As for ``grad``.

    Returns
    -------
    Variable or list or tuple of Variable
        Tensors of the shapes of ``wrt``.

    Examples
    --------
    >>> import symcomp
    >>> import symcomp.tensor as T
    >>> x = T.dvector("x")
    >>> symcomp.Lop(x ** 2, x, T.constant([1.0, 10.0])).eval({x: [1.0, 2.0]})
    array([ 2., 40.])
    """
    _check_choice("disconnected_inputs", disconnected_inputs, ("raise", "warn", "ignore"))
    _check_choice("null_gradients", null_gradients, ("raise", "return"))
    targets = _targets(wrt, "Lop")
    outputs = list(f) if isinstance(f, list | tuple) else [f]
    points = list(eval_points) if isinstance(eval_points, list | tuple) else [eval_points]
    if len(outputs) != len(points):
        raise ShapeError(f"Lop: {len(outputs)} outputs but {len(points)} eval_points")
    starts: dict[Variable, Any] = {}
    for position, (out, point) in enumerate(zip(outputs, points, strict=True)):
        if not isinstance(out, Variable):
            raise TypeError(f"Lop: f[{position}] is {out!r}, not a variable")
        point = point if isinstance(point, Variable) else as_tensor_variable(point)
        point = _fit(out, point, "eval_points")
        starts[out] = starts[out] + point if out in starts else point
    constants = _constants(consider_constant)
    stable = StableForm(starts, [*targets, *constants])
    walk = _ReverseWalk(starts, targets, constants, (), stable)
    grads = walk.results(disconnected_inputs, "zero", null_gradients)
    return _like_wrt(wrt, grads)


def subgraph_grad(
    wrt: Sequence[Variable],
    end: Sequence[Variable],
    start: Mapping[Variable, Any] | None = None,
    cost: Variable | None = None,
    details: bool = False,
) -> Any:
    """Back-propagate through a part of the graph: from ``cost`` and ``start`` down to ``end``.

    Parameters
    ----------
    wrt : list of Variable
        Parameters of this part.
    end : list of Variable
        The variables to stop at, which are taken as constants.
    start : mapping of Variable to its gradient, optional
        The gradients found for the ``end`` of the part after this one.
    cost : scalar Variable, optional
        A cost added in this part.
    details : bool
        Also return what came from ``start`` and from ``cost`` alone.

    Returns
    -------
    tuple (wrt_grads, end_grads), each a list
        With ``details``: (wrt_grads, end_grads, start_grads, cost_grads), the last two lists over
        wrt + end.

    Examples
    --------
    >>> import symcomp
    >>> import symcomp.tensor as T
    >>> x, w = T.dscalars("x", "w")
    >>> h = x * w
    >>> dh, = symcomp.subgraph_grad([], [h], cost=h ** 2)[1]
    >>> (dw,), _ = symcomp.subgraph_grad([w], [x], start={h: dh})
    >>> float(dw.eval({x: 3.0, w: 2.0}))
    36.0
    """
    if cost is None and not start:
        raise GradientError("subgraph_grad: give start gradients, a cost, or both")
    params = list(dict.fromkeys([*wrt, *end]))
    # The walk stops at ``end``: it is differentiated against, but not through. For the same reason,
    # gradients of ``start`` lack contributions from one of them to another.
    parts: list[list[Any] | None] = [
        None if not start else Lop(list(start), params, list(start.values()), end, "ignore"),
        None if cost is None else grad(cost, params, end, disconnected_inputs="ignore"),
    ]
    given = [part for part in parts if part is not None]
    total = [sum(terms[1:], terms[0]) for terms in zip(*given, strict=True)]
    found = dict(zip(params, total, strict=True))
    result = ([found[v] for v in wrt], [found[v] for v in end])
    return (*result, *parts) if details else result


def grad_undefined(op: Any, position: int, x: Variable, comment: str = "") -> Variable:
    """Return the mark of a pullback for an input in which the derivative does not exist.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> from symcomp.gradient import grad_undefined
    >>> grad_undefined("op", 0, T.dvector("x")).type.reason
    'the derivative of op in input 0 (x) is undefined. '
    """
    return NullType(f"the derivative of {op} in input {position} ({x}) is undefined. {comment}")()


def grad_not_implemented(op: Any, position: int, x: Variable, comment: str = "") -> Variable:
    """Return the mark of a pullback for an input whose derivative exists but is not implemented.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> from symcomp.gradient import grad_not_implemented
    >>> grad_not_implemented("op", 0, T.dvector("x")).type.reason
    'the derivative of op in input 0 (x) is not implemented. '
    """
    return NullType(
        f"the derivative of {op} in input {position} ({x}) is not implemented. {comment}"
    )()


# -- the walk


class _ReverseWalk:
    """Gradients of everything between ``starts`` and ``targets``, in their stable form."""

    def __init__(
        self,
        starts: Mapping[Variable, Variable],
        targets: Sequence[Variable],
        constants: Sequence[Variable],
        complete: Collection[Variable],
        stable: StableForm,
    ) -> None:
        self._stable = stable
        self._targets = [stable.image(x) for x in targets]
        starts = {stable.image(x): gradient for x, gradient in starts.items()}
        targets = self._targets
        complete = [stable.image(x) for x in complete]
        blocked = {stable.image(x) for x in constants}
        order = toposort(starts, blocked)
        patterns = {node: node.op.connection_pattern(node) for node in order}
        self._connected = _connected_to(starts, order, patterns)
        self._relevant = _reached_from(targets, order, patterns, complete)
        self._complete = frozenset(complete)
        self._regions = place(order, starts)
        self._rank = {node: i for i, node in enumerate(order)}
        self._active: dict[frozenset[Region], Any] = {}
        self._terms: dict[Variable, list[Variable]] = {}
        for variable, gradient in starts.items():
            if not isinstance(gradient.type, DisconnectedType):
                self._terms[variable] = [_fit(variable, gradient, "known_grads")]
        for node in reversed(order):
            if any(out in self._relevant and out in self._connected for out in node.outputs):
                self._pull(node, patterns[node])

    def _pull(self, node: Apply, pattern: list[list[bool]]) -> None:
        gradients = [self._gradient(node, out) for out in node.outputs]
        nulls = [g if g is not None and isinstance(g.type, NullType) else None for g in gradients]
        usable = [g if null is None else None for g, null in zip(gradients, nulls, strict=True)]
        wanted = [
            i
            for i, x in enumerate(node.inputs)
            if x in self._relevant and x not in self._complete and any(pattern[i])
        ]
        poisoned = {i: n for i in wanted if (n := first_connected(pattern[i], nulls)) is not None}
        terms: list[Any] = [None] * len(node.inputs)
        asked = any(g is not None for g in usable) and len(poisoned) < len(wanted)
        if asked:
            terms = node.op.pullback(node.inputs, node.outputs, usable)
            if len(terms) != len(node.inputs):
                raise GradientError(
                    f"pullback of {node.op} gave {len(terms)} gradients for {len(node.inputs)} "
                    "inputs"
                )
        # An op that contains a graph does not pass outputs without a gradient to its pullback.
        if wanted and (not asked or node.op.inner_graphs()):
            poisoned |= self._undefined(node, wanted)
        for i in wanted:
            x, term = node.inputs[i], poisoned.get(i, terms[i])
            if term is not None and not isinstance(term.type, DisconnectedType):
                term = _fit(x, term, f"the pullback of {node.op}")
                self._terms.setdefault(x, []).append(self._leave_branches(node, x, term))

    def _gradient(self, node: Apply, out: Variable) -> Variable | None:
        """Return the gradient of a node's output; None for integers, whose gradient is always zero.
        """
        if out not in self._terms:
            return None
        total = self._sum(out)
        return None if stops_at(node, out) and not isinstance(total.type, NullType) else total

    def _undefined(self, node: Apply, wanted: Sequence[int]) -> dict[int, Variable]:
        """Return null gradients for the inputs in which an output that the cost reads has no
        derivative, whatever the gradient of that output is.
        """
        reasons = node.op.undefined_derivatives(node)
        if not reasons:
            return {}
        read = [y in self._connected and (y in self._terms or y not in self._complete)
                for y in node.outputs]  # fmt: skip
        found = {i: first_connected(read, [why or None for why in reasons[i]]) for i in wanted}
        return {i: NullType(why)() for i, why in found.items() if why is not None}

    def _leave_branches(self, node: Apply, x: Variable, term: Any) -> Any:
        """Make ``term`` lazy where it flows out of a branch of ifelse to a variable outside.

        Otherwise the gradient would compute the branch that was not taken, and multiply its
        derivatives by zero: NaN where they are infinite.
        """
        regions = self._regions[node]
        outside = self._regions.get(x.owner, ALWAYS) if x.owner is not None else ALWAYS
        if regions in (ALWAYS, outside) or not isinstance(term.type, TensorType):
            return term
        # Zeros like x, not like the term: the shape of the term is only known by computing it.
        zeros = x.zeros_like(term.dtype) if isinstance(x, TensorVariable) else term.zeros_like()
        (region, *others) = regions
        if not others and region is not None and self._regions[region[0]] == ALWAYS:
            # The same condition variable, so that the choices for both branches merge into one.
            choices = (term, zeros) if region[1] == 0 else (zeros, term)
            return ifelse(region[0].inputs[0], *choices)
        active = is_active(regions, self._regions, self._rank, self._active)
        return ifelse(active, term, zeros)

    def _sum(self, x: Variable) -> Variable:
        terms = self._terms[x]
        null = next((t for t in terms if isinstance(t.type, NullType)), None)
        if null is None:
            total: Any = terms[0]
            for term in terms[1:]:
                total = total + term
        else:
            total = null
        self._terms[x] = [total]
        return total

    def results(self, disconnected: str, instead: str, null: str) -> list[Any]:
        """Return the gradients with respect to the targets, in terms of the original graph."""
        found = [self._result(x, disconnected, instead, null) for x in self._targets]
        return self._stable.original(found)

    def _result(self, x: Variable, disconnected: str, instead: str, null: str) -> Variable | None:
        """Return the gradient with respect to ``x``."""
        if x in self._terms:
            gradient = self._sum(x)
            if null == "raise" and isinstance(gradient.type, NullType):
                raise NullTypeGradError(f"the gradient with respect to {x}: {gradient.type.reason}")
            return gradient
        if x in self._connected:
            return zeros_for(x)
        message = (
            f"the gradient was asked with respect to {x} of type {x.type}"
            f"{f', made at {x.source}' if x.source else ''}, which the cost does not depend on "
            "(or only through shapes or disconnected_grad); pass disconnected_inputs='ignore' to "
            "get zeros"
        )
        if disconnected == "raise":
            raise DisconnectedInputError(message)
        if disconnected == "warn":
            warnings.warn(message, stacklevel=5)
        if instead == "None":
            return None
        return zeros_for(x) if instead == "zero" else DisconnectedType()()


def _connected_to(
    starts: Iterable[Variable], order: list[Apply], patterns: Mapping[Apply, Any]
) -> set[Variable]:
    """Return the variables whose values ``starts`` depend on."""
    connected = set(starts)
    for node in reversed(order):
        live = [out in connected for out in node.outputs]
        if any(live):
            for x, row in zip(node.inputs, patterns[node], strict=True):
                if any(on and alive for on, alive in zip(row, live, strict=True)):
                    connected.add(x)
    return connected


def _reached_from(
    targets: Iterable[Variable],
    order: list[Apply],
    patterns: Mapping[Apply, Any],
    walls: Collection[Variable] = (),
) -> set[Variable]:
    """Return the variables that depend on ``targets``, other than through ``walls``."""
    reached = set(targets)
    for node in order:
        for x, row in zip(node.inputs, patterns[node], strict=True):
            if x in reached and x not in walls:
                reached.update(out for out, on in zip(node.outputs, row, strict=True) if on)
    return reached


def first_connected(row: Sequence[bool], marks: Sequence[Any]) -> Any:
    """Return the first of ``marks`` that is not None and that ``row`` connects to; else None."""
    return next((m for on, m in zip(row, marks, strict=True) if on and m is not None), None)


def stops_at(node: Apply, out: Variable) -> bool:
    """Tell whether derivatives end at an output because its values are integers.

    They do not end at integers that are stored in another value, as in a sparse matrix: the node
    reads them, and computes none from tensors.
    """
    return _is_discrete(out) and any(isinstance(x, TensorVariable) for x in node.inputs)


def _is_discrete(x: Variable) -> bool:
    return isinstance(x, TensorVariable) and dtypes.is_discrete(x.dtype)


def _fit(x: Variable, term: Any, who: str) -> Any:
    """Return ``term``, given by ``who``, checked against, and cast to, the type of ``x``."""
    if isinstance(term.type, NullType):
        return term
    if not isinstance(x.type, TensorType):
        return x.type.filter_gradient(x, term, who)
    if not isinstance(term.type, TensorType):
        raise GradientError(f"{who} gave a {term.type} as the gradient of {x} ({x.type})")
    if term.ndim != x.type.ndim or any(
        a is not None and b is not None and a != b
        for a, b in zip(term.type.shape, x.type.shape, strict=True)
    ):
        raise ShapeError(
            f"{who} gave a gradient of type {term.type} for {x} of type {x.type}; shapes must agree"
        )
    if dtypes.is_discrete(x.type.dtype):
        return term
    if dtypes.is_complex(term.dtype) and not dtypes.is_complex(x.type.dtype):
        term = term.real
    return cast_to(term, x.type.dtype)


def zeros_for(x: Any) -> TensorVariable:
    """Return zeros of the shape of ``x``, in its dtype if it is floating, else ``config.floatX``.
    """
    if not isinstance(x, TensorVariable):
        if not hasattr(x, "zeros_like"):
            raise NullTypeGradError(f"{x} of type {x.type} has no zero gradient")
        if not hasattr(x, "dtype"):
            return x.zeros_like()
    dtype = config.floatX if dtypes.is_discrete(x.dtype) else x.dtype
    return x.zeros_like(dtype)


# -- arguments


def _check_choice(name: str, value: Any, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise ValueError(f"{name}={value!r}: must be one of {', '.join(map(repr, allowed))}")


def _targets(wrt: Any, who: str) -> list[Variable]:
    if isinstance(wrt, set | frozenset | dict):
        raise TypeError(f"{who}: wrt is a {type(wrt).__name__}, which has no order; pass a list")
    targets = list(wrt) if isinstance(wrt, list | tuple) else [wrt]
    for position, x in enumerate(targets):
        if not isinstance(x, Variable):
            raise TypeError(f"{who}: wrt[{position}] is {x!r}, not a variable")
    return targets


def _constants(given: Any) -> Sequence[Variable]:
    if given is None:
        return ()
    if isinstance(given, Variable) or not isinstance(given, Collection):
        raise TypeError(f"consider_constant is {given!r}; pass a list of variables")
    for position, x in enumerate(given):
        if not isinstance(x, Variable):
            raise TypeError(f"consider_constant[{position}] is {x!r}, not a variable")
    return list(given)


def _like_wrt(wrt: Any, results: list[Any]) -> Any:
    if isinstance(wrt, tuple):
        return tuple(results)
    return results if isinstance(wrt, list) else results[0]


def _starting_gradients(
    cost: Variable | None, known_grads: Mapping[Variable, Any] | None
) -> dict[Variable, Variable]:
    starts: dict[Variable, Any] = {}
    if cost is None and not known_grads:
        raise GradientError("grad: cost is None and no known_grads are given")
    for variable, gradient in dict(known_grads or {}).items():
        if not isinstance(variable, Variable):
            raise TypeError(f"grad: known_grads has the key {variable!r}, which is no variable")
        is_variable = isinstance(gradient, Variable)
        starts[variable] = gradient if is_variable else as_tensor_variable(gradient)
    if cost is not None:
        starts.setdefault(cost, _one_for(cost))
    return starts


def _one_for(cost: Any) -> Variable:
    if isinstance(cost, Variable) and isinstance(cost.type, NullType):
        raise NullTypeGradError(f"grad: the cost is a null gradient: {cost.type.reason}")
    if not isinstance(cost, TensorVariable):
        raise TypeError(f"grad: cost is {cost!r}, not a tensor variable")
    if cost.ndim != 0:
        raise ScalarCostError(
            f"grad: cost must be a scalar, but {cost} has {cost.ndim} axes ({cost.type}): reduce "
            "it with .sum() or .mean(), or use jacobian"
        )
    if dtypes.is_complex(cost.dtype):
        raise DTypeError(f"grad: cost must be real, but {cost} is {cost.dtype}: take .real or abs")
    dtype = config.floatX if dtypes.is_discrete(cost.dtype) else cost.dtype
    one = as_tensor_variable(np.ones((), dtype))
    mention(one, cost)
    return one
