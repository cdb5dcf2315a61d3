"""Replay: a fused op computed again, step by step, to find which step did what."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from symcomp.core.node import Apply, Constant, Variable
from symcomp.core.record import record
from symcomp.core.storage import bound
from symcomp.core.values import describe_contents
from symcomp.core.walk import toposort
from symcomp.ops.formulas.fused import Fused


@record
class Replayed:
    """One step: the node of the user's op, the values that it took, and what it gave."""

    node: Apply
    inputs: tuple[Any, ...]
    outputs: tuple[Any, ...]


def replay(node: Apply, values: Sequence[Any]) -> Iterator[Replayed]:
    """Yield the steps of ``node``, if it is a fused op, each computed with NumPy; else nothing.

    A step that raises ends the replay.
    """
    if isinstance(node.op, Fused):
        ((inputs, outputs),) = node.op.inner_graphs_of(node)
        yield from _steps(outputs, dict(zip(inputs, values, strict=False)), None)


def recompute(node: Apply, values: Sequence[Any], through: Callable[[Any], Any]) -> list[Any]:
    """Compute the outputs with NumPy, passing every intermediate value to ``through``."""
    values = [through(x) for x in values]
    if not isinstance(node.op, Fused):
        with np.errstate(all="ignore"):
            result = bound(node)(*values)
        return [through(z) for z in (result if node.op.multiple_outputs else [result])]
    ((inputs, outputs),) = node.op.inner_graphs_of(node)
    store: dict[Variable, Any] = dict(zip(inputs, values, strict=True))
    for _ in _steps(outputs, store, through):
        pass
    return [store[z] for z in outputs]


def _steps(
    outputs: Sequence[Variable],
    store: dict[Variable, Any],
    through: Callable[[Any], Any] | None,
) -> Iterator[Replayed]:
    """Compute node by node, adding to ``store``."""
    for inner in toposort(outputs):
        given = tuple(x.data if isinstance(x, Constant) else store[x] for x in inner.inputs)
        try:
            with np.errstate(all="ignore"):
                result = bound(inner)(*given)
        except Exception as problem:
            problem.add_note(f"{inner} raised")
            raise
        several = tuple(result) if inner.op.multiple_outputs else (result,)
        if through is not None:
            several = tuple(map(through, several))
        store.update(zip(inner.outputs, several, strict=True))
        yield Replayed(inner, given, several)


def first_bad(node: Apply, values: Sequence[Any], bad: Callable[[Any], bool]) -> Replayed | None:
    """Return the first step of a fused op that makes a bad value out of good ones."""
    for step in replay(node, values):
        if any(map(bad, step.outputs)) and not any(map(bad, step.inputs)):
            return step
    return None


def as_before(node: Apply, arguments: Sequence[Any]) -> list[Any]:
    """Return the values of the inputs before ``node`` is computed: values that it may overwrite
    are copied. ``arguments`` are all arguments of the call.
    """
    values = arguments[: len(node.inputs)]
    spoiled = {i for places in node.op.destroy_map.values() for i in places}
    targets = [values[i] for i in spoiled] + [*arguments[len(values) :]]
    targets = [t for t in targets if isinstance(t, np.ndarray)]

    def overlaps(x: Any) -> bool:
        return isinstance(x, np.ndarray) and any(np.may_share_memory(x, t) for t in targets)

    return [x.copy() if overlaps(x) else x for x in values]


def step_text(step: Replayed) -> str:
    """Describe a step and its operands in one sentence."""
    given = "; ".join(describe_contents(x) for x in step.inputs)
    made = f", made at {step.node.source}," if step.node.source is not None else ""
    results = "; ".join(describe_contents(z) for z in step.outputs)
    return f"in it, the step {step.node.op}{made} gave {results}, out of {given}"
