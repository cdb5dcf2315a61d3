"""Plans run: memory is found, and the machine enqueues the calls. Nothing here waits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from symcomp.gpu.array import DeviceArray
from symcomp.gpu.driver.interface import Driver, Memory
from symcomp.gpu.native import NativePlan
from symcomp.gpu.plan import Plan
from symcomp.gpu.planner import Operand


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
    native: NativePlan = plan.native
    given = [inputs[i] for i in native.inputs]
    made = [driver.allocate(nbytes, what) for nbytes in native.made]
    places = [(x.memory, x.offset) for x in given] + [(memory, 0) for memory in made]
    bases = [memory.address + offset for memory, offset in places]
    if native.labels:
        held = [memory for memory, _ in places] + native.constants
        first = 0 if arena is None else arena.address
        driver.enqueue(native, [first, *bases], held if arena is None else [*held, arena])
    return [_output(driver, plan, o, places) for o in plan.outputs]


def _output(
    driver: Driver, plan: Plan, found: Any, places: Sequence[tuple[Memory, int]]
) -> DeviceArray | Any:
    """Return an output: a device array, or the host array that it is."""
    if not isinstance(found, Operand):
        return found
    constant = plan.storages[found.storage].constant
    if constant is not None:
        memory, start = constant, 0
    else:
        memory, start = places[plan.native.base_of[found.storage] - 1]
    start += found.offset
    return DeviceArray(driver, memory, start, found.dtype, found.shape, found.strides)
