"""Linear algebra, on stacks of matrices, and any other op that is applied along a stack."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytensor.tensor.linalg.constructors as pl_constructors
import pytensor.tensor.linalg.decomposition.cholesky as pl_cholesky
import pytensor.tensor.linalg.decomposition.eigen as pl_eigen
import pytensor.tensor.linalg.decomposition.lu as pl_lu
import pytensor.tensor.linalg.decomposition.qr as pl_qr
import pytensor.tensor.linalg.decomposition.schur as pl_schur
import pytensor.tensor.linalg.decomposition.svd as pl_svd
import pytensor.tensor.linalg.inverse as pl_inverse
import pytensor.tensor.linalg.products as pl_products
import pytensor.tensor.linalg.solvers.general as pl_general
import pytensor.tensor.linalg.solvers.linear_control as pl_control
import pytensor.tensor.linalg.solvers.psd as pl_psd
import pytensor.tensor.linalg.solvers.triangular as pl_triangular
import pytensor.tensor.linalg.solvers.tridiagonal as pl_tridiagonal
import pytensor.tensor.linalg.summary as pl_summary
import pytensor.tensor.math as ptm
from pytensor.graph.fg import FunctionGraph
from pytensor.tensor.blas.batched import BatchedDot
from pytensor.tensor.blas.gemm import Dot22
from pytensor.tensor.blockwise import Blockwise

import symcomp.tensor as T
from symcomp.ops.linalg.tridiagonal import FactorTridiagonal, SolveFactoredTridiagonal
from symcomp.ops.shapes.shape import shape_tuple
from symcomp.pytensor_backend.dispatch import graph_of, translate
from symcomp.pytensor_backend.loops import mapped
from symcomp.pytensor_backend.types import is_tensor

Row = Callable[..., Any]


@translate.register(Dot22)
@translate.register(ptm.Dot)
def _dot(op: Any, node: Any, x: Any, y: Any) -> Any:
    return T.dot(x, y)


@translate.register(BatchedDot)
def _batched_dot(op: Any, node: Any, x: Any, y: Any) -> Any:
    return T.batched_dot(x, y)


def _cholesky(op: Any, x: Any) -> Any:
    return T.linalg.cholesky(x, lower=op.lower, on_error="nan")


def _solve_triangular(op: Any, a: Any, b: Any) -> Any:
    return T.linalg.solve_triangular(
        a, b, lower=op.lower, unit_diagonal=op.unit_diagonal, b_ndim=op.b_ndim, on_error="nan"
    )


def _solve(op: Any, a: Any, b: Any) -> Any:
    if op.assume_a == "tridiagonal":
        below, main, above = (T.diagonal(a, k, -2, -1) for k in (-1, 0, 1))
        return T.linalg.solve_tridiagonal(below, main, above, b, b_ndim=op.b_ndim)
    return T.linalg.solve(
        a, b, assume_a=op.assume_a, lower=op.lower, b_ndim=op.b_ndim, on_error="nan"
    )


def _cholesky_solve(op: Any, c: Any, b: Any) -> Any:
    return T.linalg.cho_solve((c, op.lower), b, b_ndim=op.b_ndim, on_error="nan")


def _eigh(op: Any, a: Any, b: Any = None) -> Any:
    return T.linalg.eigh(a, "L" if op.lower else "U", b)


def _eigvalsh(op: Any, a: Any, b: Any = None) -> Any:
    return T.linalg.eigvalsh(a, b, lower=op.lower)


def _qr(op: Any, x: Any) -> Any:
    if op.mode in ("full", "economic"):
        mode = "complete" if op.mode == "full" else "reduced"
        return T.linalg.qr(x, mode, pivoting=op.pivoting)
    h, tau, *order = T.linalg.qr(x, "raw", pivoting=op.pivoting)
    packed = T.swapaxes(h, -1, -2)
    if op.mode == "r":
        # The rows of r that are no zeros, and those below them.
        return [T.triu(packed), *order]
    return [packed, tau, T.triu(packed[..., : T.shape(tau)[-1], :]), *order]


def _svd(op: Any, x: Any) -> Any:
    return T.linalg.svd(x, full_matrices=op.full_matrices, compute_uv=op.compute_uv)


def _pinv(op: Any, x: Any) -> Any:
    return T.linalg.pinv(x, hermitian=op.hermitian)


def _lu(op: Any, x: Any) -> Any:
    return T.linalg.lu(x, permute_l=op.permute_l, p_indices=op.p_indices)


def _lu_factor(op: Any, x: Any) -> Any:
    packed, pivots = T.linalg.lu_factor(x)
    singular = T.any(T.eq(T.diagonal(packed, 0, -2, -1), 0), axis=-1)
    wrong = T.dimshuffle(singular, *range(singular.ndim), "x", "x")
    return T.switch(wrong, np.asarray(np.nan, packed.dtype), packed), pivots


def _pivots_to_permutation(op: Any, pivots: Any) -> Any:
    order = T.linalg.pivots_to_permutation(pivots)
    return order if op.inverse else T.argsort(order, axis=-1)


def _schur(op: Any, x: Any) -> Any:
    return T.linalg.schur(x, op.output, op.sort)


def _qz(op: Any, x: Any, y: Any) -> Any:
    s, t, alpha, beta, q, z = T.linalg.qz(x, y, "complex" if op.complex_output else "real", op.sort)
    return [s, t, alpha, beta, q, z] if op.return_eigenvalues else [s, t, q, z]


def _factor_tridiagonal(op: Any, l: Any, d: Any, u: Any) -> Any:
    return FactorTridiagonal()(l, d, u)


def _solve_factored(op: Any, *args: Any) -> Any:
    *factors, b = args
    columns = T.expand_dims(b, -1) if op.b_ndim == 1 else b
    z = SolveFactoredTridiagonal(op.transposed)(*factors, columns)
    return z[..., 0] if op.b_ndim == 1 else z


#: Ops on matrices, or vectors: their functions take stacks of them.
ROWS: dict[type, Row] = {
    pl_cholesky.Cholesky: _cholesky,
    pl_triangular.SolveTriangular: _solve_triangular,
    pl_general.Solve: _solve,
    pl_psd.CholeskySolve: _cholesky_solve,
    pl_inverse.MatrixInverse: lambda op, x: T.linalg.matrix_inverse(x),
    pl_inverse.MatrixPinv: _pinv,
    pl_summary.Det: lambda op, x: T.linalg.det(x),
    pl_summary.SLogDet: lambda op, x: T.linalg.slogdet(x),
    pl_eigen.Eig: lambda op, x: T.linalg.eig(x),
    pl_eigen.Eigh: _eigh,
    pl_eigen.Eigvalsh: _eigvalsh,
    pl_qr.QR: _qr,
    pl_svd.SVD: _svd,
    pl_products.Expm: lambda op, x: T.linalg.expm(x),
    pl_constructors.BlockDiagonal: lambda op, *xs: T.linalg.block_diag(*xs),
    pl_lu.LU: _lu,
    pl_lu.LUFactor: _lu_factor,
    pl_lu.PivotToPermutations: _pivots_to_permutation,
    pl_schur.Schur: _schur,
    pl_schur.QZ: _qz,
    pl_control.TRSYL: lambda op, a, b, c: T.linalg.solve_triangular_sylvester(a, b, c),
    pl_tridiagonal.LUFactorTridiagonal: _factor_tridiagonal,
    pl_tridiagonal.SolveLUFactorTridiagonal: _solve_factored,
    ptm.Dot: lambda op, x, y: T.matmul(x, y),
}


def apply_row(op: Any, node: Any, *args: Any) -> Any:
    """Translate one matrix op, in a dtype of LAPACK."""
    return ROWS[type(op)](op, *args)


for _kind in ROWS:
    if _kind is not ptm.Dot:
        translate.register(_kind, apply_row)


@translate.register(Blockwise)
def _blockwise(op: Any, node: Any, *args: Any) -> Any:
    """Translate an op along a stack: by a function for stacks, or a loop over its elements."""
    core = op.core_op
    if type(core) in ROWS:
        made = ROWS[type(core)](core, *args)
        if made is not NotImplemented:
            return made
    if not all(is_tensor(v.type) for v in (*node.inputs, *node.outputs)):
        return NotImplemented
    if translate.dispatch(type(core)) is translate.dispatch(object):
        return NotImplemented
    core_node, dummies = op._create_dummy_core_node(node.inputs, return_dummy_inputs=True)
    graph = FunctionGraph(dummies, core_node.outputs, clone=True)
    batch = op.batch_ndim(node)
    if batch == 0:
        return graph_of(graph, args)
    lengths = _stack_lengths(args, batch)
    return mapped(lambda *rows: graph_of(graph, rows), args, batch, lengths)


def _stack_lengths(args: Any, batch: int) -> list[Any]:
    """Return the lengths of a stack, each of an input whose axis is not stretched."""
    lengths: list[Any] = []
    for axis in range(batch):
        found = [x for x in args if x.type.shape[axis] != 1]
        lengths.append(shape_tuple((found or list(args))[0])[axis])
    return lengths
