"""How much memory of a device a call takes: arrays by their shapes, the arenas of regions by their
plans.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any

from symcomp.core.node import Variable
from symcomp.core.record import record
from symcomp.core.tensor import TensorType
from symcomp.cvm.executable import Executable
from symcomp.gpu.region import DeviceGraph, DeviceProgram
from symcomp.gpu.transfers import DevicePart
from symcomp.gpu.type import DeviceType
from symcomp.gpu.until import UntilProgram
from symcomp.vm.memory import DeviceUsage, Walk
from symcomp.vm.opcodes import Opcode
from symcomp.vm.program import Instruction, Program

ShapesOf = Mapping[Variable, tuple[int, ...]]


def device_usages(
    executable: Executable, shapes: ShapesOf, inputs: Mapping[str, int]
) -> tuple[DeviceUsage, ...]:
    """Return the memory that a function needs on each device.

    Parameters
    ----------
    executable : Executable
    shapes : mapping of Variable to tuple of int
        The shapes of all arrays of the program, those on devices included.
    inputs : mapping of str to int
        By device the bytes of arguments, shared variables and constants.
    """
    devices = {d for one in executable.together() for d in _devices_of(one.program)}
    return tuple(_usage(executable, shapes, d, inputs.get(d, 0)) for d in sorted(devices))


def regions_of(executable: Executable) -> Iterator[DeviceProgram | UntilProgram]:
    """Yield the regions of a function, those in loops and other graphs included."""
    for one in executable.together():
        for step in one.program.instructions:
            if step.node is not None and isinstance(step.node.op, DeviceGraph):
                yield step.node.op.program


def _devices_of(program: Program) -> set[str]:
    return {d for d in map(_device_of, program.variables) if d is not None}


def _device_of(x: Variable) -> str | None:
    return x.type.device if isinstance(x.type, DeviceType) else None


def _usage(executable: Executable, shapes: ShapesOf, device: str, inputs: int) -> DeviceUsage:
    program = executable.program
    by_shapes = _DeviceWalk(program, shapes, sharing=False, device=device).usage()
    plans = _plans(program, shapes, device)
    allocated = None
    if plans is not None:
        allocated = _DeviceWalk(program, shapes, False, device=device, plans=plans).usage().peak
    results = sum(by_shapes.buffers[i] for i in by_shapes.results)
    regions = [region for region in regions_of(executable) if region.op.device == device]
    kept = sum(region.kept_bytes for region in regions)
    workspaces = _workspaces(regions)
    values = tuple(v for v in by_shapes.values if _device_of(program.variables[v.slot]) == device)
    return DeviceUsage(
        device, inputs, results, by_shapes.peak, allocated, kept, workspaces, values
    )


def _workspaces(regions: Sequence[DeviceProgram | UntilProgram]) -> int:
    """Return the bytes that libraries of kept plans hold for their work; plans share handles."""
    plans = [kept.plan.native for region in regions for kept in region.plans]
    handles = [library.handle for plan in plans for library in plan.library_of.values()]
    return sum({handle.address: handle.workspace_bytes for handle in handles}.values())


def _plans(program: Program, shapes: ShapesOf, device: str) -> dict[int, Any] | None:
    """Return the kept plan of each region on a device by its position; None if one has none, or if
    there are values there of unknown size.
    """
    found = {}
    for position, step in enumerate(program.instructions):
        if _is_unknown(program, step, device):
            return None
        op = None if step.node is None else step.node.op
        if isinstance(op, DeviceGraph) and op.device == device:
            plan = _plan_of(program, shapes, step)
            if plan is None:
                return None
            found[position] = plan
    return found


def _plan_of(program: Program, shapes: ShapesOf, step: Instruction) -> Any:
    """Return the plan of a region for these shapes that was used last, or, of a loop that ends
    early, the memory of its latest run with these; None if it has none.
    """
    given, made = (
        [shapes.get(program.variables[slot]) for slot in slots]
        for slots in (step.inputs, step.outputs)
    )
    region: Any = step.node.op.program  # type: ignore[union-attr]
    if isinstance(region, UntilProgram):
        return region.memory.get((tuple(given), tuple(made)))
    for kept in region.plans:
        layouts = [x[1] if isinstance(x, tuple) else x.shape for x in kept.inputs]
        if layouts == given and [z.shape for z in kept.plan.outputs] == made:
            return kept.plan
    return None


@record(frozen=False)
class _DeviceWalk(Walk):
    """A walk along the arrays on one device; with the plans of its regions, along their blocks."""

    device: str = ""
    plans: Mapping[int, Any] = field(default_factory=dict)  # by the positions of the regions

    def tensor_type(self, variable: Variable) -> TensorType | None:
        kind = variable.type
        return kind.on_host if isinstance(kind, DeviceType) and kind.device == self.device else None

    def places(self, position: int, step: Instruction) -> list[tuple[int, ...]]:
        plan = self.plans.get(position)
        if isinstance(plan, tuple):  # the memory of a loop that ends early
            peak, arena = plan
            self.peak = max(self.peak, self.now + peak)
            self.now += arena
        if plan is None or isinstance(plan, tuple):
            return [self._place_of(step, j, slot) for j, slot in enumerate(step.outputs)]
        self.now += plan.arena
        made = [(self.new_array(nbytes),) for nbytes in plan.native.made]
        given = [self.lies_in.get(step.inputs[i], ()) for i in plan.native.inputs]
        return [_block_of(plan, z, [*given, *made]) for z in plan.outputs]

    def _place_of(self, step: Instruction, j: int, slot: int) -> tuple[int, ...]:
        """Return where an output lies that is not made by a planned region."""
        viewed = _viewed(step, j)
        if viewed:
            return tuple(sorted({b for slot in viewed for b in self.lies_in.get(slot, ())}))
        if self.tensor_type(self.program.variables[slot]) is None:
            return ()
        return (self.new_array(self.bytes_of(slot)),)


def _viewed(step: Instruction, j: int) -> Sequence[int]:
    """Return the slots of the values that output j of an instruction may be a view of."""
    # No array on a device is written again, so copies and parts are views.
    if step.opcode in (Opcode.COPY, Opcode.MOVE):
        return [step.inputs[j]]
    if step.node is None:
        return []
    if isinstance(step.node.op, DevicePart):
        return step.inputs[:1]
    return [step.inputs[i] for i in step.node.op.view_map.get(j, ())]


def _is_unknown(program: Program, step: Instruction, device: str) -> bool:
    """Return whether an instruction makes values on a device whose bytes do not follow from shapes:
    graphs in ops that have arrays there, and values that are no arrays, if they are no views.
    """
    bodies = [inner.program for body in step.bodies for inner in body.together()]
    others = [
        j
        for j, slot in enumerate(step.outputs)
        if _device_of(program.variables[slot]) is None
        and getattr(program.variables[slot].type, "device", None) == device
    ]
    return any(device in _devices_of(inner) for inner in bodies) or any(
        not _viewed(step, j) for j in others
    )


def _block_of(plan: Any, z: Any, bases: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """Return the buffers of an output of a plan; none of a constant, or of a number on the host."""
    number = getattr(z, "storage", None)
    if number is None or plan.storages[number].constant is not None:
        return ()
    return bases[plan.native.base_of[number] - 1]
