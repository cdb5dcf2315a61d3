"""The shape and dtype of a draw: from the arguments, and from the parameters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from symcomp.config import config
from symcomp.core import dtype as dtypes
from symcomp.core.node import Variable
from symcomp.core.tensor import TensorConstant, TensorVariable
from symcomp.errors import DTypeError, ShapeError
from symcomp.ops.control.conditions import Assert
from symcomp.ops.control.markers import WithoutDerivative
from symcomp.ops.convert import (
    as_tensor_variable,
    cast_to,
    constant,
    is_python_number,
    resolve_dtype,
    with_rank,
)
from symcomp.ops.elementwise.elemwise import broadcast_static
from symcomp.ops.random.counter import draw_by_counter
from symcomp.ops.random.draw import Draw, reason
from symcomp.ops.random.state import is_counter_state
from symcomp.ops.random.table import TABLE
from symcomp.ops.reductions.functions import all as all_
from symcomp.ops.shapes.reshaping import addbroadcast, specify_shape
from symcomp.ops.shapes.shape import ShapeI, as_lengths, known_length

Lengths = list[TensorVariable]


def read_size(name: str, size: Any, ndim: int | None, *parameters: TensorVariable) -> Lengths:
    """Return the lengths of a draw.

    Parameters
    ----------
    name : str
        The name of the distribution, for messages.
    size : None, int, integer scalar, sequence of them, or integer vector
        None: that to which the parameters broadcast.
    ndim : int, optional
        The number of lengths, needed only for a vector whose length is not known.
    *parameters : TensorVariable
        With no more axes than the draw.

    Raises
    ------
    ShapeError
        If the parameters have more axes, or ``ndim`` says something else.
    """
    rank = max((x.ndim for x in parameters), default=0)
    if size is None:
        lengths = _broadcast(name, [with_rank(x, rank) for x in parameters], rank)
    elif isinstance(size, TensorVariable) and size.type.shape == (None,):
        if ndim is None:
            raise ShapeError(
                f"{name}: size is the vector {size} ({size.type}), whose length is not known: pass "
                "ndim, the number of axes wanted"
            )
        lengths = as_lengths(specify_shape(size, (ndim,)), name)
    else:
        lengths = as_lengths(size, name)
    if ndim is not None and ndim != len(lengths):
        raise ShapeError(f"{name}: ndim is {ndim}, but size has {len(lengths)} lengths")
    if rank > len(lengths):
        raise ShapeError(
            f"{name}: size has {len(lengths)} lengths, and a parameter {rank} axes: size is that "
            "of the whole result"
        )
    shown = tuple(known_length(n) for n in lengths)
    if any(n is not None and n < 0 for n in shown):
        raise ShapeError(f"{name}: size is {shown}; lengths must not be negative")
    return lengths


def _broadcast(name: str, parameters: Sequence[TensorVariable], rank: int) -> Lengths:
    """Return the lengths that parameters of one rank broadcast to."""
    if not parameters:
        return []
    static = broadcast_static(name, [x.type.shape for x in parameters])
    lengths = []
    for axis, n in enumerate(static):
        if n is None:
            free = next(x for x in parameters if x.type.shape[axis] is None)
            lengths.append(ShapeI(axis)(free))
        else:
            lengths.append(constant(n, dtype="int64"))
    return lengths


def fitted(name: str, lengths: Lengths, x: TensorVariable) -> TensorVariable:
    """Return a parameter checked not to stretch the draw: one number must not serve for several
    elements.
    """
    offset = len(lengths) - x.ndim
    for axis, have in enumerate(x.type.shape):
        want = known_length(lengths[offset + axis])
        if have not in (None, 1) and want is not None and have != want:
            shape = tuple(known_length(n) for n in lengths)
            raise ShapeError(f"{name}: a parameter is {x.type}, which does not fit size {shape}")
        if have is None and want == 1:
            x = addbroadcast(x, axis)
    return x


def read_reals(name: str, dtype: Any, *parameters: Any) -> tuple[str, list[TensorVariable]]:
    """Return the dtype of a real draw, and its parameters in that dtype.

    By default ``config.floatX``, or the dtype of a wider parameter.
    """
    tensors = [as_tensor_variable(x) for x in parameters]
    if dtype is None:
        given = [
            v.dtype
            for v, x in zip(tensors, parameters, strict=True)
            if not is_python_number(x) and dtypes.is_float(v.dtype)
        ]
        kind = dtypes.upcast(config.floatX, *given)
    else:
        kind = resolve_dtype(dtype)
    if not dtypes.is_float(kind):
        raise DTypeError(
            f"{name}: dtype is {kind}; it must be float16, bfloat16, float32 or float64"
        )
    for v in tensors:
        if dtypes.is_complex(v.dtype):
            raise DTypeError(f"{name}: the parameter {v} is {v.type}; it must be real")
    return kind, [_as(v, kind) for v in tensors]


def _as(x: TensorVariable, dtype: str) -> TensorVariable:
    """Cast ``x`` to a dtype; constants stay constants."""
    return constant(x.data, dtype=dtype) if isinstance(x, TensorConstant) else cast_to(x, dtype)


def standard(
    state: Variable, distribution: str, lengths: Lengths, dtype: str, *parameters: TensorVariable
) -> tuple[Any, Any]:
    """Draw from a real distribution of the table, in any float dtype; also return the next state.
    """
    kind = dtypes.working(dtype)
    if kind not in TABLE[distribution].draws:
        kind = TABLE[distribution].draws[0]
    after, z = draw(state, distribution, lengths, kind, *parameters)
    return after, cast_to(z, dtype)


def draw(
    state: Variable, distribution: str, lengths: Lengths, dtype: str, *parameters: Any
) -> tuple[Any, Any]:
    """Draw from a distribution of the table, casting parameters to the dtypes and ranks it needs;
    also return the next state.
    """
    row = TABLE[distribution]
    ready = []
    for title, kind, is_vector, given in zip(
        row.parameters, row.dtypes, row.vectors, parameters, strict=True
    ):
        x = as_tensor_variable(given)
        if dtypes.is_complex(x.dtype) or (kind == "int64" and not dtypes.is_discrete(x.dtype)):
            raise DTypeError(
                f"{distribution}: {title} is {x} ({x.type}); it must be "
                f"{'whole numbers: cast it to int64' if kind == 'int64' else 'real'}"
            )
        ready.append(with_rank(_as(x, kind), len(lengths) + is_vector))
    words = as_tensor_variable(state)
    if is_counter_state(words.type):
        return draw_by_counter(words, distribution, lengths, dtype, ready)
    after, z = Draw(distribution, dtype)(state, *lengths, *ready)
    return after, z


def without_derivative(name: str, z: TensorVariable, *parameters: Any) -> TensorVariable:
    """Mark a draw ``z`` of the distribution ``name`` to have no derivative in its parameters."""
    variables = [x for x in parameters if not isinstance(x, TensorConstant)]
    return WithoutDerivative(reason(name))(z, *variables) if variables else z


def required(name: str, title: str, x: TensorVariable, holds: Any, what: str) -> TensorVariable:
    """Return ``x``, checked: at once if it is constant, else when it is used.

    Raises
    ------
    ValueError
        If it is constant and wrong. Else an AssertionError, when the function runs.
    """
    message = f"{name}: {title} must be {what}"
    if isinstance(x, TensorConstant):
        if not holds(x.data).all():
            raise ValueError(f"{message}, got {x} ({x.type})")
        return x
    return Assert(message)(x, all_(holds(x)))


def positive(name: str, title: str, x: TensorVariable) -> TensorVariable:
    """Return ``x``, checked to be above 0."""
    return required(name, title, x, lambda v: v > 0, "positive")
