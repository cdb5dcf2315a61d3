"""Products, on devices."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from symcomp.core.node import Apply
from symcomp.errors import ShapeError
from symcomp.gpu.kernels.products import WORK, WORK_OF_COMPLEX, ProductOperands, plan_product
from symcomp.gpu.kernels.small_products import is_small, plan_small_product
from symcomp.gpu.libraries.cublas import plan_by_cublas
from symcomp.gpu.lowerings.contract import DeviceLowering
from symcomp.gpu.lowerings.views import shadow_of
from symcomp.gpu.planner import Operand, Planner
from symcomp.gpu.stored_products import StoredProduct
from symcomp.ops.linalg.blas import BatchedGemm, Gemm, Gemv, Ger, ScaledDot
from symcomp.ops.linalg.contraction import MatrixChain, best_brackets, bracketed
from symcomp.ops.linalg.products import BatchedDot, Dot


def _multiplies(node: Apply) -> bool:
    dtypes = {v.dtype for v in (*node.inputs, *node.outputs)}
    has_kernel = len(dtypes) == 1 and dtypes <= WORK.keys() | WORK_OF_COMPLEX.keys()
    return has_kernel and not getattr(node.op, "inplace", False)


def _product_op(node: Apply) -> Any:
    return node.op.product if isinstance(node.op, StoredProduct) else node.op


def _plan_stored(planner: Planner, node: Apply, given: Sequence[Any]) -> Sequence[Any]:
    return PRODUCTS[type(_product_op(node))].plan(planner, node, given)


def _transposed(x: Operand, flag: bool = True) -> Operand:
    if not flag:
        return x
    turn = lambda t: (*t[:-2], t[-1], t[-2])  # noqa: E731
    return x.view(turn(x.shape), turn(x.strides))


def _new_axis(x: Operand, axis: int) -> Operand:
    insert = lambda t, n: (*t[:axis], n, *t[axis:])  # noqa: E731
    return x.view(insert(x.shape, 1), insert(x.strides, 0))


def _product(
    planner: Planner, node: Apply, a: Operand, b: Operand, scaled: ProductOperands | None = None
) -> Operand:
    """Emit a product of matrices or stacks of them, whose lengths are checked."""
    shape = (*a.shape[:-1], b.shape[-1])
    added = shape if scaled is None or scaled.c is None else scaled.c.shape
    if a.shape[-1] != b.shape[-2] or a.shape[:-2] != b.shape[:-2] or added != shape:
        more = f", added to {added}" if added != shape else ""
        raise ShapeError(
            f"{node.op}: shapes {a.shape} and {b.shape} do not fit{more}: the inner lengths must "
            "be equal"
        )
    z = planner.new(node.outputs[0].dtype, shape)
    if is_small(z, a.shape[-1]):
        plan_small_product(planner, z, a, b, scaled)
    elif not plan_by_cublas(planner, z, a, b, scaled):
        plan_product(planner, z, a, b, scaled)
    return z


def _plan_dot(planner: Planner, node: Apply, given: Sequence[Any]) -> Sequence[Any]:
    a, b = given
    left = _new_axis(a, 0) if a.ndim == 1 else a
    right = _new_axis(b, 1) if b.ndim == 1 else b
    z = _product(planner, node, left, right)
    kept = [axis for axis, one in ((0, a.ndim == 1), (1, b.ndim == 1)) if not one]
    return [z.view([z.shape[x] for x in kept], [z.strides[x] for x in kept])]


def _plan_chain(planner: Planner, node: Apply, given: Sequence[Any]) -> Sequence[Any]:
    op: Any = node.op
    lengths = op.lengths([shadow_of(x) for x in given])
    brackets = op.brackets if 0 in lengths else best_brackets(tuple(lengths))
    product = lambda a, b: _plan_dot(planner, node, (a, b))[0]  # noqa: E731
    return [bracketed(product, brackets, given)]


def _plan_batched(planner: Planner, node: Apply, given: Sequence[Any]) -> Sequence[Any]:
    return [_product(planner, node, given[0], given[1])]


def _plan_scaled(planner: Planner, node: Apply, given: Sequence[Any]) -> Sequence[Any]:
    op = _product_op(node)
    alpha, a, b = given
    a, b = _transposed(a, op.trans_a), _transposed(b, op.trans_b)
    return [_product(planner, node, a, b, ProductOperands(alpha))]


def _plan_gemm(planner: Planner, node: Apply, given: Sequence[Any]) -> Sequence[Any]:
    op = _product_op(node)
    c, alpha, a, b, beta = given
    a, b = _transposed(a, op.trans_a), _transposed(b, op.trans_b)
    return [_product(planner, node, a, b, ProductOperands(alpha, beta, c))]


def _plan_gemv(planner: Planner, node: Apply, given: Sequence[Any]) -> Sequence[Any]:
    op = _product_op(node)
    y, alpha, a, x, beta = given
    column = partial(_new_axis, axis=1)
    scaled = ProductOperands(alpha, beta, column(y))
    z = _product(planner, node, _transposed(a, op.trans_a), column(x), scaled)
    return [z.view(z.shape[:1], z.strides[:1])]


def _plan_ger(planner: Planner, node: Apply, given: Sequence[Any]) -> Sequence[Any]:
    c, alpha, x, y = given
    beta = planner.constant(np.ones((), c.dtype))
    scaled = ProductOperands(alpha, beta, c)
    return [_product(planner, node, _new_axis(x, 1), _new_axis(y, 0), scaled)]


#: Lowerings by the class of the op.
PRODUCTS: dict[type, DeviceLowering] = {
    Dot: DeviceLowering(_plan_dot, accepts=_multiplies),
    MatrixChain: DeviceLowering(_plan_chain, accepts=_multiplies),
    BatchedDot: DeviceLowering(_plan_batched, accepts=_multiplies),
    ScaledDot: DeviceLowering(_plan_scaled, accepts=_multiplies),
    Gemm: DeviceLowering(_plan_gemm, accepts=_multiplies),
    BatchedGemm: DeviceLowering(_plan_gemm, accepts=_multiplies),
    Gemv: DeviceLowering(_plan_gemv, accepts=_multiplies),
    Ger: DeviceLowering(_plan_ger, accepts=_multiplies),
    StoredProduct: DeviceLowering(_plan_stored),
}
