"""Plans run: addresses filled in, calls enqueued. Nothing here waits for the device."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

from symcomp.gpu.array import DeviceArray
from symcomp.gpu.driver.interface import Driver, Memory
from symcomp.gpu.planner import Operand, Plan

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
    memories = _memories(driver, plan, inputs, arena, what)
    addresses = [0 if m is None else m.address + start for m, start in memories]
    for call in plan.calls:
        held = [memory for memory in [memories[s][0] for s in call.uses] if memory is not None]
        if call.launch is not None:
            parameters = bytearray(call.launch.parameters)
            for place, number, offset in call.patches:
                _WORD.pack_into(parameters, place, addresses[number] + offset)
            driver.launch(call.launch, held, parameters)
            continue
        places = [(*memories[s], offset) for s, offset in call.operands]
        target, start, further = places[0]
        assert target is not None
        if call.kind == "clear":
            driver.clear(target, start + further, call.nbytes)
        else:
            source, begin, beyond = places[1]
            assert source is not None
            driver.within(target, start + further, source, begin + beyond, call.nbytes)
    return [_output(driver, o, memories) for o in plan.outputs]


def _memories(
    driver: Driver, plan: Plan, inputs: Sequence[DeviceArray], arena: Memory | None, what: str
) -> list[tuple[Memory | None, int]]:
    """Return the memory of each storage, and where in it the storage begins."""
    outputs = {o.storage for o in plan.outputs if isinstance(o, Operand)}
    found: list[tuple[Memory | None, int]] = []
    for number, storage in enumerate(plan.storages):
        if storage.source >= 0:
            given = inputs[storage.source]
            found.append((given.memory, given.offset))
        elif storage.constant is not None:
            found.append((storage.constant, 0))
        elif storage.offset >= 0:
            found.append((arena, storage.offset))
        elif number in outputs:
            found.append((driver.allocate(storage.nbytes, what), 0))
        else:
            found.append((None, 0))  # of values without elements, that no call reads
    return found


def _output(driver: Driver, output: Any, memories: Sequence[Any]) -> Any:
    if not isinstance(output, Operand):
        return output
    memory, start = memories[output.storage]
    return DeviceArray(
        driver, memory, start + output.offset, output.dtype, output.shape, output.strides
    )
