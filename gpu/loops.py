"""DeviceLoop: a loop that a device computes, as one op; and which loops these can be."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from symcomp.core.closed import ClosedGraph
from symcomp.core.graph import FunctionGraph
from symcomp.core.node import Apply, Constant, Variable
from symcomp.core.op import Op
from symcomp.core.record import record
from symcomp.core.tensor import TensorType
from symcomp.core.walk import toposort
from symcomp.errors import DTypeError
from symcomp.gpu.lowerings.contract import can_be_copied, is_number, lowering_of, makes_arrays
from symcomp.ops.shapes.shape import Shape, ShapeI


@record
class DeviceLoop(Op):
    """A loop whose step a device can compute. In a region it is computed there.

    Attributes
    ----------
    loop : Op
        The loop as the host computes it, a ``Scan``; its ``layout`` tells what its inputs are.
    body : ClosedGraph
        Its step, rewritten for devices.
    on_host : tuple of int
        The inputs on whose values plans depend: the number of steps, and lengths and positions that
        are the same in all steps.
    """

    loop: Any
    body: ClosedGraph
    on_host: tuple[int, ...]

    multiple_outputs = True
    no_derivative = "it is made by rewriting, when derivatives have been taken"

    def __post_init__(self) -> None:
        super().__post_init__()
        own = getattr(self.loop, "body", None)
        if not isinstance(own, ClosedGraph) or not hasattr(self.loop, "layout"):
            raise TypeError(f"DeviceLoop: loop is {self.loop!r:.80}, a Scan is needed")
        pairs = (own.inputs, self.body.inputs), (own.outputs, self.body.outputs)
        if any([x.type for x in xs] != [y.type for y in ys] for xs, ys in pairs):
            raise DTypeError(f"{self}: the types of the body are not those of the loop")

    def output_types(self, *inputs: Any) -> list[Any]:
        found: list[Any] = self.loop.output_types(*inputs)
        return found

    def perform(self, *values: Any) -> Any:
        return self.loop.perform(*values)

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        found: list[Any] = self.loop.infer_shape(node, shapes)
        return found

    def inner_graphs(self) -> Sequence[tuple[Sequence[Variable], Sequence[Variable]]]:
        return [(self.body.inputs, self.body.outputs)]

    def __str__(self) -> str:
        return str(self.loop)


@record
class DeviceUntil(DeviceLoop):
    """A loop with a condition to stop, whose step a device can compute. It is a region of its own,
    as the host decides how many steps there are; ``until.py`` has its program.
    """


def is_count(x: Variable) -> bool:
    """Return whether a value is the number of steps that a ``DeviceUntil`` has done: the host has
    it.
    """
    return x.owner is not None and isinstance(x.owner.op, DeviceUntil) and x is x.owner.outputs[-1]


def device_loop(loop: Any, body: ClosedGraph) -> DeviceLoop | None:
    """Return a loop as one for devices; None if a device cannot compute its step.

    Parameters
    ----------
    loop : Op
        A ``Scan``.
    body : ClosedGraph
        Its step, rewritten; loops in it are ``DeviceLoop``.
    """
    layout = loop.layout
    rows = (*body.inputs, *body.outputs)
    if not all(isinstance(x.type, TensorType) and can_be_copied(x) for x in rows):
        return None
    captured = layout.step(body.inputs).captured
    numbers = _numbers(body, captured)
    if numbers is None:
        return None
    # The captured values are the last inputs, of the loop as of its body.
    count = 1 + len(layout.lags) + layout.n_carried + layout.n_sequences
    wanted = [count + i for i, x in enumerate(captured) if x in numbers]
    return (DeviceUntil if layout.until else DeviceLoop)(loop, body, (0, *wanted))


def leave_loops(graph: FunctionGraph) -> None:
    """Put loops that did not move back as they were."""
    for node in graph.toposort():
        if isinstance(node.op, DeviceLoop):
            left = Apply(node.op.loop, node.inputs, [z.type for z in node.outputs], node.source)
            graph.replace_all(zip(node.outputs, left.outputs, strict=True))


def _numbers(body: ClosedGraph, captured: Sequence[Variable]) -> set[Variable] | None:
    """Return the captured values whose elements plans of a step depend on; None if there can be no
    plan.
    """
    order = toposort(body.outputs)
    found: set[Variable] = set()
    while True:
        before, known = len(found), set(found)
        if not all(_can_be_planned(node, known, found, captured) for node in order):
            return None
        if len(found) == before:
            return found


def _can_be_planned(
    node: Apply, known: set[Variable], found: set[Variable], captured: Sequence[Variable]
) -> bool:
    """Return whether a node of a step can be planned.

    Parameters
    ----------
    node : Apply
    known : set of Variable
        The values that the host knows when it plans; those of this node are added.
    found : set of Variable
        The captured values that it must know; those for this node are added.
    captured : sequence of Variable
    """
    if not all(isinstance(v.type, TensorType) for v in (*node.inputs, *node.outputs)):
        return False
    if isinstance(node.op, DeviceUntil):
        return False
    is_known = all(isinstance(x, Constant) or x in known for x in node.inputs)
    if is_known and not makes_arrays(node):
        known.update(node.outputs)
        return not node.op.has_effects
    lowering = lowering_of(node)
    if lowering is None:
        return False
    if isinstance(node.op, Shape | ShapeI):
        known.update(node.outputs)
    moving = lowering.in_steps(node)
    return all(
        _can_be_known(node.inputs[i], known, found, captured) or i in moving
        for i in lowering.on_host(node)
    )


def _can_be_known(
    x: Variable, known: set[Variable], found: set[Variable], captured: Sequence[Variable]
) -> bool:
    """Return whether a value follows from lengths and captured numbers; if so, these are added to
    ``found``.
    """
    pending, wanted = [x], set()
    while pending:
        number = pending.pop()
        if isinstance(number, Constant) or number in known:
            continue
        if number in captured:
            wanted.add(number)
        elif number.owner is None or not is_number(number.owner):
            return False
        else:
            pending += number.owner.inputs
    found |= wanted
    return True
