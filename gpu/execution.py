"""Plans made ready: what the machine must know to run one, without a line of Python."""

from __future__ import annotations

from typing import Any

import numpy as np

from symcomp.cvm.machine import RegionPlan
from symcomp.gpu.array import DeviceArray
from symcomp.gpu.driver.interface import Driver
from symcomp.gpu.plan import Plan
from symcomp.gpu.planner import Operand


def ready(driver: Driver, plan: Plan, inputs: list[Any], what: str) -> RegionPlan:
    """Return a plan as the machine runs it.

    Parameters
    ----------
    driver : Driver
    plan : Plan
    inputs : list
        For each argument (dtype, shape, strides, whether it is aligned), or the host array whose
        value it must have.
    what : str
        For whom memory is needed, in messages.
    """
    outputs = [_output(plan, z) for z in plan.outputs]
    return RegionPlan(plan, driver.queue, driver.pool, DeviceArray, inputs, outputs, what)


def _output(plan: Plan, z: Any) -> Any:
    """Return where an output lies, and how; or the host array that it is."""
    if not isinstance(z, Operand):
        return z
    constant = plan.storages[z.storage].constant
    base = 0 if constant is not None else plan.native.base_of[z.storage]
    return base, constant, z.offset, np.dtype(z.dtype), z.shape, z.strides
