"""Plans run: addresses filled in, calls enqueued. Nothing here waits for the device."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

from symcomp.gpu.array import DeviceArray
from symcomp.gpu.driver.interface import Driver, Memory
from symcomp.gpu.plan import Call, Plan, Step
from symcomp.gpu.planner import Operand

_WORD = struct.Struct("Q")


def run_plan(
    driver: Driver, plan: Plan, inputs: Sequence[DeviceArray], arena: Memory | None, what: str
) -> list[Any]:
    """Enqueue the calls of a plan; return its outputs: device arrays, or host arrays.

    Parameters
    ----------
    driver : Driver
    plan : Plan
    inputs : sequence of DeviceArray
        Of the layouts that the plan was made for.
    arena : Memory or None
        At least ``plan.arena`` bytes.
    what : str
        For whom memory is needed, in messages.
    """
    run = _Run(driver, plan, inputs, arena, what)
    run.enqueue(plan.calls)
    return [run.output(o) for o in plan.outputs]


class _Run:
    """One run of a plan: where its storages lie.

    Attributes
    ----------
    memories : list of Memory or None
        Of each storage; None for values without elements, that no call reads.
    addresses : list of int
    """

    def __init__(
        self,
        driver: Driver,
        plan: Plan,
        inputs: Sequence[DeviceArray],
        arena: Memory | None,
        what: str,
    ) -> None:
        self.driver, self.plan = driver, plan
        self.memories: list[Memory | None] = []
        self.addresses: list[int] = []
        outputs = {o.storage for o in plan.outputs if isinstance(o, Operand)}
        for number, storage in enumerate(plan.storages):
            memory, start = None, 0
            if storage.source >= 0:
                given = inputs[storage.source]
                memory, start = given.memory, given.offset
            elif storage.constant is not None:
                memory = storage.constant
            elif storage.offset >= 0:
                memory, start = arena, storage.offset
            elif number in outputs:
                memory = driver.allocate(storage.nbytes, what)
            self.memories.append(memory)
            self.addresses.append(0 if memory is None else memory.address + start)

    def enqueue(self, calls: Sequence[Call]) -> None:
        """Enqueue calls, loops step by step."""
        for call in calls:
            if call.step is not None:
                for t in range(call.repeats):
                    self._move(call.step, t)
                    self.enqueue(call.step.calls)
            elif call.launch is not None:
                parameters = bytearray(call.launch.parameters)
                for place, number, offset in call.patches:
                    _WORD.pack_into(parameters, place, self.addresses[number] + offset)
                held = [self.memories[s] for s in call.uses]
                self.driver.launch(call.launch, [m for m in held if m is not None], parameters)
            else:
                self._move_bytes(call)

    def _move(self, step: Step, t: int) -> None:
        """Set where the storages lie that move with the steps of a loop."""
        for number in step.moving:
            motion = self.plan.storages[number].motion
            assert motion is not None
            base, offset = motion.bases[t & 1]
            self.memories[number] = self.memories[base]
            self.addresses[number] = self.addresses[base] + offset + t * motion.stride

    def _move_bytes(self, call: Call) -> None:
        target, start = self._place(*call.operands[0])
        if call.kind == "clear":
            self.driver.clear(target, start, call.nbytes)
        else:
            self.driver.within(target, start, *self._place(*call.operands[1]), call.nbytes)

    def _place(self, number: int, offset: int) -> tuple[Memory, int]:
        """Return the memory of a storage, and a place in it."""
        memory = self.memories[number]
        assert memory is not None
        return memory, self.addresses[number] + offset - memory.address

    def output(self, found: Any) -> Any:
        """Return an output: a device array, or the host array that it is."""
        if not isinstance(found, Operand):
            return found
        memory = self.memories[found.storage]
        assert memory is not None
        start = self.addresses[found.storage] + found.offset - memory.address
        return DeviceArray(self.driver, memory, start, found.dtype, found.shape, found.strides)
