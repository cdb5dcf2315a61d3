"""The exponential of a sparse matrix times a dense one, with derivatives of any order.

With E a change of A, the change of exp(A) B is the upper half of exp([[A, E], [0, A]]) [0; B]
(Van Loan, "Computing integrals involving the matrix exponential", 1978). So tangents are
exponentials of matrices twice as large. The gradient with respect to A is an integral over outer
products, of which the entries at the pattern of A are computed (``ExpmGradient``); its own
derivatives are those of larger matrices, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from symcomp.core import dtype as dtypes
from symcomp.core.node import Apply, Type, Variable
from symcomp.core.record import record
from symcomp.core.tensor import TensorVariable
from symcomp.errors import DTypeError, ShapeError
from symcomp.lazy import lazy_module
from symcomp.ops.convert import as_tensor_variable, cast_to
from symcomp.ops.shapes.joining import join
from symcomp.ops.shapes.shape import ShapeI
from symcomp.sparse.components import entries_at, parts_of, with_data
from symcomp.sparse.convert import asformat, cast, compressed
from symcomp.sparse.joins import hstack, vstack
from symcomp.sparse.op import SparseOp, as_sparse_variable, common_dtype
from symcomp.sparse.patterns import major_indices, total
from symcomp.sparse.products import conjugate
from symcomp.sparse.type import SparseVariable

scipy_linalg = lazy_module("scipy.sparse.linalg")

# The integral is computed in steps h with |A| h at most STEP_NORM by Gauss-Legendre quadrature with
# NODES nodes, whose error is below the rounding of doubles for it: the integrand grows as
# exp(2 |A| h), and (4 ** 18) (9!)**4 / (19 (18!)**3) is 2e-16.
STEP_NORM = 2.0
NODES = 9


class _OfExponential(SparseOp):
    """An op on a square CSR matrix and dense matrices or vectors with as many rows."""

    def as_inputs(self, A: Any, *dense: Any) -> list[Variable]:
        return [as_sparse_variable(A), *map(as_tensor_variable, dense)]

    def _check(self, A: Any, *dense: Any) -> None:
        n, m = A.type.shape
        if A.type.format != "csr" or (n is not None and m is not None and n != m):
            raise ShapeError(f"expm_multiply: {A} is {A.type}; a square csr matrix is needed")
        for x in dense:
            if x.ndim not in (1, 2) or x.dtype != A.dtype or dtypes.is_discrete(x.dtype):
                raise DTypeError(f"expm_multiply: {A.type} and {x.type}; floats of one dtype")
            if n is not None and x.type.shape[0] not in (None, n):
                raise ShapeError(f"expm_multiply: A is {A.type}, which does not fit {x.type}")

    @staticmethod
    def _check_values(A: Any, *dense: Any) -> None:
        for x in dense:
            if A.shape[0] != A.shape[1] or A.shape[0] != len(x):
                raise ShapeError(f"expm_multiply: shapes {A.shape} and {x.shape} do not fit")


@record
class ExpmMultiply(_OfExponential):
    """z = exp(A) B, for a square CSR matrix A and a dense vector or matrix B."""

    def output_types(self, A: Any, B: Any) -> list[Type]:
        self._check(A, B)
        return [B.type]

    def perform(self, A: Any, B: Any) -> Any:
        self._check_values(A, B)
        return np.asarray(scipy_linalg.expm_multiply(A, B), B.dtype) if B.size else B.copy()

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        return [shapes[1]]

    def pullback(self, inputs: Any, outputs: Any, output_grads: Any) -> list[Any]:
        A, B = inputs
        (g,) = output_grads
        return [ExpmGradient()(A, B, g), self(adjoint(A), g)]

    def pushforward(self, inputs: Any, outputs: Any, tangents: Any) -> list[Any]:
        A, B = inputs
        dA, dB = tangents
        if dA is None:
            return [self(A, dB)]
        dB = B.zeros_like() if dB is None else dB
        return [upper_half(self(doubled(A, dA), join(0, dB, B)), B)]


@record
class ExpmGradient(_OfExponential):
    """z = the gradient of sum(conj(G) exp(A) B) in the stored entries of A, with its pattern.

    It is the integral over s from 0 to 1 of (exp(s A^H) G) (exp((1 - s) A) B)^H.
    """

    def output_types(self, A: Any, B: Any, G: Any) -> list[Type]:
        self._check(A, B, G)
        return [A.type]

    def perform(self, A: Any, B: Any, G: Any) -> Any:
        self._check_values(A, B, G)
        B, G = (x.reshape(len(x), -1) for x in (B, G))
        z = A.copy()
        z.data = gradient_entries(A, B, G)
        return z

    def pullback(self, inputs: Any, outputs: Any, output_grads: Any) -> list[Any]:
        A, B, G = inputs
        # <C, z> is the change of <G, exp(A) B> along C: its gradients are those of the larger one.
        C = asformat(output_grads[0], "csr")
        zeros_B, zeros_G = B.zeros_like(), G.zeros_like()
        large = doubled(A, C)
        gA = diagonal_blocks(ExpmGradient()(large, join(0, zeros_B, B), join(0, G, zeros_G)), A)
        turned = doubled(adjoint(A), adjoint(C))
        gB = upper_half(ExpmMultiply()(turned, join(0, zeros_G, G)), G)
        gG = upper_half(ExpmMultiply()(large, join(0, zeros_B, B)), B)
        return [gA, gB, gG]

    def pushforward(self, inputs: Any, outputs: Any, tangents: Any) -> list[Any]:
        A, B, G = inputs
        dA, dB, dG = (
            x.zeros_like() if d is None else d for x, d in zip(inputs, tangents, strict=True)
        )
        large = ExpmGradient()(doubled(A, dA), join(0, dB, B), join(0, G, dG))
        return [diagonal_blocks(large, A)]


def adjoint(A: SparseVariable) -> Any:
    """Return the conjugate transpose, as CSR."""
    return asformat(conjugate(A).T, "csr")


def doubled(A: SparseVariable, E: SparseVariable) -> Any:
    """Return [[A, E], [0, A]]."""
    zeros = A.zeros_like()
    upper = hstack([A, asformat(E, "csr")], "csr")
    return vstack([upper, hstack([zeros, A], "csr")], "csr")


def upper_half(x: TensorVariable, like: TensorVariable) -> Any:
    """Return as many rows as ``like`` has."""
    return x[: ShapeI(0)(like)]


def diagonal_blocks(x: SparseVariable, A: SparseVariable) -> Any:
    """Return the sum of the two diagonal blocks of a doubled matrix, at the pattern of A."""
    n = ShapeI(0)(parts_of(A).indptr) - 1
    parts = parts_of(A)
    data = total([entries_at(part, parts.indices, parts.indptr) for part in (x[:n, :n], x[n:, n:])])
    return with_data(A, data, parts)


# -- values


def gradient_entries(A: Any, B: Any, G: Any) -> Any:
    """Return the entries of the integral at the pattern of A (SciPy's and NumPy's)."""
    rows, columns = major_indices(A.indptr), A.indices
    z = np.zeros(A.nnz, np.result_type(A.dtype, B.dtype, G.dtype))
    if not A.nnz or not B.size:
        return z.astype(A.dtype)
    norm = float(scipy_linalg.norm(A, 1))
    steps = max(1, int(np.ceil(norm / STEP_NORM)))
    h = 1.0 / steps
    nodes, weights = np.polynomial.legendre.leggauss(NODES)
    nodes, weights = (nodes + 1) / 2, weights * h / 2
    # y(t) = exp(t A) B at the beginning of each step; then backwards, with exp((1 - t) A^H) G.
    starts = [B]
    for _ in range(steps - 1):
        starts.append(sum(taylor_terms(A, starts[-1], h)))
    turned = A.conj().T.tocsr()
    end = G
    for y in reversed(starts):
        forward, backward = list(taylor_terms(A, y, h)), list(taylor_terms(turned, end, h))
        for c, w in zip(nodes, weights, strict=True):
            at = sum(term * c**k for k, term in enumerate(forward))
            back = sum(term * (1 - c) ** k for k, term in enumerate(backward))
            z += w * np.einsum("kl,kl->k", back[rows], at[columns].conj())
        end = sum(backward)
    return z.astype(A.dtype)


def taylor_terms(A: Any, y: Any, h: float) -> Iterator[Any]:
    """Yield the terms (h A)^k y / k! of the exponential, until they vanish beside their sum."""
    largest, k, term = 0.0, 0, y
    eps = np.finfo(y.dtype).eps / 4
    while True:
        size = float(np.abs(term).max(initial=0))
        largest = max(largest, size)
        yield term
        k += 1
        term = (A @ term) * (h / k)
        # Terms shrink from |A| h <= STEP_NORM on; a zero may be followed by larger ones before.
        if k > 2 * STEP_NORM and size <= eps * largest:
            return


def expm_multiply(A: Any, B: Any) -> TensorVariable:
    """Multiply the exponential of a square sparse matrix and a dense matrix or vector.

    The exponential itself, which is dense, is never computed. The gradient with respect to ``A``
    has its pattern.

    Parameters
    ----------
    A : sparse matrix, (n, n)
    B : vector or matrix, (n,) or (n, k)

    Examples
    --------
    >>> import numpy as np
    >>> import scipy.sparse
    >>> import symcomp.tensor as T
    >>> from symcomp import sparse
    >>> A, b = sparse.csr_matrix("A"), T.dvector("b")
    >>> x = sparse.expm_multiply(A, b)
    >>> x.eval({A: scipy.sparse.diags_array([0.0, np.log(2.0)]), b: [1.0, 1.0]}).round(12)
    array([1., 2.])
    """
    A, B = asformat(compressed(A), "csr"), as_tensor_variable(B)
    dtype = dtypes.to_float(common_dtype(A.dtype, B.dtype))
    return ExpmMultiply()(cast(A, dtype), cast_to(B, dtype))


__all__ = ["expm_multiply"]
