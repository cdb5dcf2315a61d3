"""Results of a step beside its outputs: updates of shared variables, and the condition to stop."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from symcomp.core.tensor import TensorVariable
from symcomp.errors import ShapeError, StepError
from symcomp.ops.convert import as_tensor_variable
from symcomp.scan.calling import read_tensor
from symcomp.scan.invariants import is_shared

WANTED = "return an output (a variable or number), a list of outputs, or updates"


class OrderedUpdates(dict[Any, Any]):
    """Shared variables and their new values: an argument ``updates`` of ``function``.

    A dict whose ``update`` and ``+`` refuse two different new values for one variable.

    Examples
    --------
    >>> import symcomp
    >>> from symcomp.scan.updates import OrderedUpdates
    >>> a, b = symcomp.shared(0.0), symcomp.shared(0.0)
    >>> len(OrderedUpdates({a: a + 1}) + OrderedUpdates({b: b + 1}))
    2
    """

    def __setitem__(self, target: Any, expression: Any) -> None:
        if not is_shared(target):
            raise TypeError(f"updates: {target!r} is not a shared variable")
        super().__setitem__(target, expression)

    def update(self, *args: Any, **more: Any) -> None:
        """Add updates; an existing one must be the same."""
        for target, expression in dict(*args, **more).items():
            if self.get(target, expression) is not expression:
                raise KeyError(f"updates: {target} has two different new values")
            self[target] = expression

    def __add__(self, other: Mapping[Any, Any]) -> OrderedUpdates:
        total = OrderedUpdates(self)
        total.update(other)
        return total


class until:
    """Returned by a step: stop after the first step in which ``condition`` is true (not 0).

    Parameters
    ----------
    condition : scalar

    Examples
    --------
    >>> import symcomp
    >>> import symcomp.tensor as T
    >>> powers, _ = symcomp.scan(
    ...     lambda x: (2 * x, symcomp.scan_module.until(x > 8)), outputs_info=1, n_steps=100
    ... )
    >>> powers.eval()
    array([ 2,  4,  8, 16, 32])
    """

    def __init__(self, condition: Any) -> None:
        self.condition = read_tensor(condition, "until: the condition", "pass a scalar, as x > 0")
        if self.condition.ndim != 0:
            raise ShapeError(
                f"until: the condition is {self.condition} ({self.condition.type}); it must be a "
                "scalar: use .any() or .all()"
            )


def read_step(result: Any, who: str) -> tuple[list[Any], dict[Any, Any], Any]:
    """Read the result of a step: outputs, updates and condition (None without), in Theano's many
    forms.

    Raises
    ------
    StepError
        If it is none of them, or has neither outputs nor updates.
    """
    if result is None:
        raise StepError(f"{who}: the step returned None: {WANTED}; is a `return` missing?")
    if not isinstance(result, list | tuple) or _are_updates(result):
        parts = [result]
    elif any(_is_extra(part) for part in result):
        parts = list(result)
    else:
        parts = [list(result)]
    outputs: list[Any] | None = None
    updates: dict[Any, Any] = {}
    condition = None
    for part in parts:
        if isinstance(part, until):
            if condition is not None:
                raise StepError(
                    f"{who}: the step returned two conditions: combine them, as until(a | b)"
                )
            condition = part.condition
        elif isinstance(part, Mapping) or _are_updates(part):
            updates.update(part)
        elif outputs is not None and part in ([], ()):
            continue  # an empty list counts as empty updates
        elif outputs is not None:
            raise StepError(
                f"{who}: the step returned {len(parts)} parts: {parts!r}; return [outputs], "
                "updates and until(condition), in this order"
            )
        elif part is not None:
            outputs = list(part) if isinstance(part, list | tuple) else [part]
    if not outputs and not updates:
        raise StepError(
            f"{who}: the step returned {'until alone' if condition is not None else repr(result)}, "
            f"no output and no update: {WANTED}"
        )
    return [_output(x, i, who) for i, x in enumerate(outputs or [])], updates, condition


def _is_extra(part: Any) -> bool:
    return isinstance(part, until | Mapping) or _are_updates(part)


def _are_updates(part: Any) -> bool:
    """Tell whether a value is a list of pairs (shared variable, expression)."""
    return (
        isinstance(part, list | tuple)
        and len(part) > 0
        and all(isinstance(p, list | tuple) and len(p) == 2 and is_shared(p[0]) for p in part)
    )


def _output(x: Any, position: int, who: str) -> TensorVariable:
    try:
        return as_tensor_variable(x)
    except (TypeError, ValueError):
        raise StepError(
            f"{who}: output {position} of the step is {x!r}, which is no variable or "
            f"number: {WANTED}"
        ) from None
