"""Checks of the values that ops return: results of users' ops are always checked."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from symcomp.core.dtype import kind
from symcomp.core.node import Apply
from symcomp.core.sparse_values import numbers_of
from symcomp.core.storage import bound, is_widened
from symcomp.core.tensor import TensorType, describe_value
from symcomp.errors import SymcompError
from symcomp.ops.control.python_op import PythonOp
from symcomp.vm.inspection import Inspector, Work
from symcomp.vm.op_planning import OP_PLANNING
from symcomp.vm.planning import UNPLANNED, Planning, Plannings, entry_of
from symcomp.vm.program import Instruction
from symcomp.vm.replay import Replayed, as_before, first_bad, step_text

#: (node, the function that computes it) -> the function to call in its place
Around = Callable[[Apply, Callable[..., Any]], Callable[..., Any]]


class InvalidValueError(SymcompError, ValueError):
    """An op gave a value that is not of the type it promised."""


class NaNError(SymcompError, FloatingPointError):
    """An op gave NaN although none of its inputs was NaN."""


def is_users(op: Any) -> bool:
    """Tell whether the op's class is not part of symcomp, or runs a user's function."""
    module = type(op).__module__
    return (
        isinstance(op, PythonOp)
        or not module.startswith("symcomp.")
        or module.startswith("symcomp.tests.")
    )


class Binder:
    """Gives what computes a node, that of users' ops with its values checked; and its planning.

    Their types are checked, and they are copied where they are not the op's own memory.

    Parameters
    ----------
    nan_guard : {"off", "user_ops", "all"}
        Unless it is off, a NaN that a user's op makes out of numbers is an error. (Those of all
        ops are found by an inspector.)
    nested : mapping of Apply to callable, optional
        The functions that compute nodes whose ops contain graphs that are compiled.
    planning : mapping of type to Planning
        Facts about the nodes of ops, by their classes; users' ops are not planned.
    around : callable (node, compute) -> callable, optional
        Gives the function to call in the place of one that computes a node.
    """

    def __init__(
        self,
        nan_guard: str = "off",
        nested: Mapping[Apply, Callable[..., Any]] | None = None,
        planning: Plannings = OP_PLANNING,
        around: Around | None = None,
    ) -> None:
        self._watch, self._around = nan_guard != "off", around
        self._nested, self._planning = nested or {}, planning

    def __call__(self, node: Apply) -> Callable[..., Any]:
        """From the values of the inputs to the value or values of the outputs."""
        compute = self._nested.get(node) or bound(node)
        if self._around is not None:
            compute = self._around(node, compute)
        if not is_users(node.op):
            return compute

        def checked(*values: Any) -> Any:
            result = compute(*values)
            several = result if node.op.multiple_outputs else (result,)
            several = _own_memory(node, values, _check_types(node, several))
            if self._watch and not any(has_nan(v) for v in values):
                _check_nan(node, several)
            return several if node.op.multiple_outputs else several[0]

        return checked

    def into(self, node: Apply) -> Callable[..., Any] | None:
        """Return the same, called with an array for each output, too; None if values are checked,
        or the op cannot.
        """
        return self.planning_of(node).into(node)

    def planning_of(self, node: Apply) -> Planning:
        """Return the facts about nodes of this op; none about users' ops, and widened nodes."""
        own = not is_users(node.op) and not is_widened(node)
        found = entry_of(node.op, self._planning) if own else None
        return UNPLANNED if found is None else found


class NaNInspector(Inspector):
    """Makes it an error that any op makes a NaN out of numbers (``config.nan_guard="all"``)."""

    def call(
        self, position: int, step: Instruction, values: Sequence[Any], work: Work
    ) -> Sequence[Any]:
        node: Any = step.node
        watch = not any(map(has_nan, values[: len(node.inputs)]))
        before = as_before(node, values) if watch else []
        results = work(values)
        if watch and any(map(has_nan, results)):
            _check_nan(node, results, first_bad(node, before, has_nan))
        return results


UNCHECKED = Binder()


def has_nan(value: Any) -> bool:
    """True if ``value`` is a floating array, or sparse matrix, with a NaN in it."""
    numbers = numbers_of(value)
    return numbers is not None and kind(numbers.dtype) in "fc" and bool(np.isnan(numbers).any())


def _check_types(node: Apply, values: Any) -> tuple[Any, ...]:
    if not isinstance(values, tuple | list) or len(values) != len(node.outputs):
        raise InvalidValueError(
            f"perform of {node.op} returned {describe_value(values)}; it must return a tuple of "
            f"{len(node.outputs)} values"
        )
    checked = []
    for position, (out, value) in enumerate(zip(node.outputs, values, strict=True)):
        if isinstance(out.type, TensorType) and isinstance(value, np.generic):
            value = np.asarray(value)
        try:
            checked.append(out.type.filter(value, strict=True))
        except (TypeError, ValueError) as problem:
            raise InvalidValueError(
                f"perform of {node.op} returned, as output {position}, {describe_value(value)}, "
                "but its type "
                f"is {out.type}: {problem}"
            ) from None
    return tuple(checked)


def _own_memory(node: Apply, inputs: Sequence[Any], outputs: Sequence[Any]) -> tuple[Any, ...]:
    """Return the outputs, copied where they share memory with an input or another output without
    the op declaring it: they are overwritten once only they need it.
    """
    op, own = node.op, list(outputs)
    for j, value in enumerate(own):
        if not isinstance(value, np.ndarray):
            continue
        declared = {*op.view_map.get(j, ()), *op.destroy_map.get(j, ())}
        others = [x for i, x in enumerate(inputs) if i not in declared] + own[:j]
        if any(isinstance(x, np.ndarray) and np.may_share_memory(value, x) for x in others):
            own[j] = value.copy()
    return tuple(own)


def _check_nan(node: Apply, values: Any, first: Replayed | None = None) -> None:
    for position, value in enumerate(values):
        if has_nan(value):
            raise NaNError(
                f"{node.op} made {int(np.isnan(numbers_of(value)).sum())} NaN in output {position} "
                f"({describe_value(value)}) out of inputs without NaN"
                + (f"; the expression was made at {node.source}" if node.source else "")
                + (f"; {step_text(first)}" if first is not None else "")
                + ". If that is meant, set config.nan_guard='off'"
            )
