"""Shapes, copies, and arrays made of others."""

from __future__ import annotations

from typing import Any

import pytensor.tensor.basic as ptb
import pytensor.tensor.extra_ops as px
from pytensor.compile.ops import DeepCopyOp, TypeCastingOp, ViewOp
from pytensor.tensor.reshape import JoinDims, SplitDims
from pytensor.tensor.shape import Reshape, Shape, Shape_i, SpecifyShape
from pytensor.tensor.variable import TensorConstant

import symcomp.tensor as T
from symcomp.ops.convert import cast_to
from symcomp.ops.shapes.shape import shape_tuple
from symcomp.pytensor_backend.dispatch import translate
from symcomp.pytensor_backend.types import is_tensor


def _same(op: Any, node: Any, x: Any) -> Any:
    return x


for _identity in (
    DeepCopyOp, TypeCastingOp, ViewOp, ptb.TensorFromScalar, ptb.ScalarFromTensor, px.CpuContiguous,
):  # fmt: skip
    # Results never share memory with what outlives the call: symcomp copies where it must.
    translate.register(_identity, _same)


def _lengths(given: Any, known: Any) -> list[Any]:
    """Lengths, as numbers where PyTensor's type knows them."""
    return [n if k is None else k for n, k in zip(given, known, strict=True)]


@translate.register(Shape)
def _shape(op: Any, node: Any, x: Any) -> Any:
    return T.shape(x) if is_tensor(node.inputs[0].type) else NotImplemented


@translate.register(Shape_i)
def _shape_i(op: Any, node: Any, x: Any) -> Any:
    return T.shape_i(x, op.i) if is_tensor(node.inputs[0].type) else NotImplemented


@translate.register(SpecifyShape)
def _specify_shape(op: Any, node: Any, x: Any, *lengths: Any) -> Any:
    if not is_tensor(node.inputs[0].type):
        return NotImplemented
    pairs = list(zip(node.inputs[1:], lengths, strict=True))
    checks = [
        T.eq(T.shape_i(x, axis), n)
        for axis, (v, n) in enumerate(pairs)
        if is_tensor(v.type) and not isinstance(v, TensorConstant)
    ]
    if checks:
        x = T.Assert("SpecifyShape: a length is not the one that was specified")(x, *checks)
    return T.specify_shape(x, [n if isinstance(v, TensorConstant) else None for v, n in pairs])


@translate.register(Reshape)
def _reshape(op: Any, node: Any, x: Any, shape: Any) -> Any:
    # An empty shape, of a scalar, has PyTensor's default dtype: float64.
    return T.reshape(x, cast_to(shape, "int64"), ndim=op.ndim)


@translate.register(JoinDims)
def _join_dims(op: Any, node: Any, x: Any) -> Any:
    first, last = op.start_axis, op.start_axis + op.n_axes
    n = shape_tuple(x)
    between = T.constant(1)
    for length in n[first:last]:
        between = between * length
    return T.reshape(x, [*n[:first], between, *n[last:]], ndim=x.ndim - op.n_axes + 1)


@translate.register(SplitDims)
def _split_dims(op: Any, node: Any, x: Any, shape: Any) -> Any:
    count = node.outputs[0].type.ndim - x.ndim + 1
    n = shape_tuple(x)
    new = [*n[: op.axis], *(shape[i] for i in range(count)), *n[op.axis + 1 :]]
    return T.reshape(x, new, ndim=len(new))


# -- new arrays


@translate.register(ptb.Alloc)
def _alloc(op: Any, node: Any, x: Any, *lengths: Any) -> Any:
    return T.alloc(x, *_lengths(lengths, node.outputs[0].type.shape))


@translate.register(ptb.AllocEmpty)
def _alloc_empty(op: Any, node: Any, *lengths: Any) -> Any:
    return T.zeros(_lengths(lengths, node.outputs[0].type.shape), dtype=op.dtype)


@translate.register(ptb.MakeVector)
def _make_vector(op: Any, node: Any, *xs: Any) -> Any:
    return T.stack([cast_to(x, op.dtype) for x in xs]) if xs else T.zeros([0], dtype=op.dtype)


@translate.register(ptb.Join)
def _join(op: Any, node: Any, *xs: Any) -> Any:
    return T.join(op.axis, *(cast_to(x, node.outputs[0].type.dtype) for x in xs))


@translate.register(ptb.Split)
def _split(op: Any, node: Any, x: Any, sizes: Any) -> Any:
    return T.split(x, sizes, op.len_splits, axis=op.axis)


@translate.register(ptb.ARange)
def _arange(op: Any, node: Any, start: Any, stop: Any, step: Any) -> Any:
    return T.arange(start, stop, step, dtype=op.dtype)


@translate.register(ptb.Eye)
def _eye(op: Any, node: Any, n: Any, m: Any, k: Any) -> Any:
    return T.eye(n, m, k, dtype=op.dtype)


@translate.register(ptb.ExtractDiag)
def _extract_diagonal(op: Any, node: Any, x: Any) -> Any:
    return T.diagonal(x, op.offset, op.axis1, op.axis2)


@translate.register(px.FillDiagonal)
def _fill_diagonal(op: Any, node: Any, x: Any, value: Any) -> Any:
    return T.fill_diagonal(x, cast_to(value, x.dtype))


@translate.register(px.FillDiagonalOffset)
def _fill_diagonal_offset(op: Any, node: Any, x: Any, value: Any, offset: Any) -> Any:
    return T.fill_diagonal_offset(x, cast_to(value, x.dtype), offset)


@translate.register(px.Bartlett)
def _bartlett(op: Any, node: Any, n: Any) -> Any:
    return T.bartlett(n)
