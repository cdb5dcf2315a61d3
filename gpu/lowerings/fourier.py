"""Fourier transforms, on devices that have cuFFT."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from symcomp.core.node import Apply
from symcomp.gpu.libraries.cufft import Cufft, plan_of_reals, plan_to_reals, plan_transform
from symcomp.gpu.lowerings.contract import DeviceLowering, all_but
from symcomp.gpu.planner import Planner
from symcomp.ops.fourier.transforms import (
    Fourier,
    InverseRealFourier,
    RealFourier,
    check_lengths,
)


def _plan_fourier(planner: Planner, node: Apply, given: Sequence[Any]) -> Sequence[Any]:
    op: Any = node.op
    check_lengths(op, given[0], given[0].shape, op.axes)
    return [plan_transform(planner, given[0], op.axes, op.inverse)]


def _plan_real(planner: Planner, node: Apply, given: Sequence[Any]) -> Sequence[Any]:
    op: Any = node.op
    check_lengths(op, given[0], given[0].shape, (op.axis,))
    return [plan_of_reals(planner, given[0], op.axis)]


def _plan_inverse_real(planner: Planner, node: Apply, given: Sequence[Any]) -> Sequence[Any]:
    op: Any = node.op
    x, n = given[0], int(given[1])
    op.check(x, x.shape, n)
    return [plan_to_reals(planner, x, op.axis, n)]


#: Lowerings by the class of the op.
FOURIER: dict[type, DeviceLowering] = {
    Fourier: DeviceLowering(_plan_fourier, libraries=(Cufft,)),
    RealFourier: DeviceLowering(_plan_real, libraries=(Cufft,)),
    InverseRealFourier: DeviceLowering(_plan_inverse_real, all_but(0), libraries=(Cufft,)),
}
