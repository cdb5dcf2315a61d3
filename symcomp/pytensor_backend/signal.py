"""Convolution and Fourier transforms."""

from __future__ import annotations

from typing import Any

from pytensor.tensor.fft import IRFFTOp, RFFTOp
from pytensor.tensor.fourier import Fourier
from pytensor.tensor.signal.conv import Convolve1d, Convolve2d

import symcomp.tensor as T
from symcomp.errors import ShapeError
from symcomp.ops.constant_values import get_scalar_constant_value
from symcomp.ops.control.conditions import ifelse
from symcomp.ops.convert import cast_to
from symcomp.ops.shapes.dimshuffle import DimShuffle
from symcomp.ops.shapes.stack import Stack
from symcomp.pytensor_backend.dispatch import translate
from symcomp.pytensor_backend.linalg import ROWS, apply_row


def _lengths(s: Any, ndim: int) -> list[Any]:
    """Return the elements of a vector of lengths, as they are written if it is made of scalars."""
    made = s.owner is not None and isinstance(s.owner.op, Stack | DimShuffle)
    if made and all(n.ndim == 0 for n in s.owner.inputs):
        return list(s.owner.inputs)
    return [s[axis] for axis in range(ndim)]


@translate.register(RFFTOp)
def _real_transform(op: Any, node: Any, x: Any, s: Any) -> Any:
    """Transform all axes but the first, to pairs of real numbers."""
    axes = range(1, x.ndim)
    z = T.fft.rfftn(x, _lengths(s, len(axes)), axes)
    return T.stack([T.real(z), T.imag(z)], axis=-1)


@translate.register(IRFFTOp)
def _inverse_real_transform(op: Any, node: Any, x: Any, s: Any) -> Any:
    """Invert a transform without dividing by the number of elements."""
    axes = range(1, x.ndim - 1)
    z = T.complex(x[..., 0], x[..., 1])
    return T.fft.irfftn(z, _lengths(s, len(axes)), axes, norm="forward")


@translate.register(Fourier)
def _transform(op: Any, node: Any, x: Any, n: Any, axis: Any) -> Any:
    try:
        along = int(get_scalar_constant_value(axis))
    except ValueError:  # found when the function runs
        return NotImplemented
    return T.fft.fft(cast_to(x, "complex128"), n, along)


# -- convolution


def _convolve(op: Any, x: Any, w: Any, full: Any) -> Any:
    """Convolve pairs of a stack; whether in full may be found when the function runs."""
    if any(n != 1 for n in full.type.shape):
        return NotImplemented
    try:
        modes = ["full" if get_scalar_constant_value(full) else "valid"]
    except ValueError:
        modes = ["full", "valid"]
    try:
        found = [T.signal.convolve(x, w, mode, op.ndim) for mode in modes]
    except ShapeError:  # stacks whose lengths are not known
        return NotImplemented
    return found[0] if len(found) == 1 else ifelse(full[(0,) * full.ndim], found[0], found[1])


for _kind in (Convolve1d, Convolve2d):
    ROWS[_kind] = _convolve
    translate.register(_kind, apply_row)
