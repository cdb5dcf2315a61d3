"""Fourier transforms."""

from __future__ import annotations

from typing import Any

from pytensor.tensor.fft import IRFFTOp, RFFTOp
from pytensor.tensor.fourier import Fourier

import symcomp.tensor as T
from symcomp.ops.constant_values import get_scalar_constant_value
from symcomp.ops.convert import cast_to
from symcomp.ops.shapes.dimshuffle import DimShuffle
from symcomp.ops.shapes.stack import Stack
from symcomp.pytensor_backend.dispatch import translate


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
