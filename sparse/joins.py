"""Matrices made of several: side by side, on a diagonal, products of Kronecker; and triangles."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from symcomp.core import dtype as dtypes
from symcomp.core.node import Type, Variable
from symcomp.core.record import record
from symcomp.errors import DTypeError, ShapeError
from symcomp.sparse import values
from symcomp.sparse.constructors import from_triplets
from symcomp.sparse.convert import asformat, cast, compressed
from symcomp.sparse.op import SparseOp, as_scalar, as_sparse_variable, common_dtype, length
from symcomp.sparse.patterns import total
from symcomp.sparse.structure import Embed, cropped

# -- joins


@record
class JoinSparse(SparseOp):
    """z = the matrices below one another (axis 0) or side by side (axis 1), in one format."""

    axis: int
    format: str

    def as_inputs(self, *blocks: Any) -> list[Variable]:
        return [as_sparse_variable(x) for x in blocks]

    def output_types(self, *blocks: Any) -> list[Type]:
        name, first, axis = ("vstack", "hstack")[self.axis], blocks[0].type, self.axis
        shape: list[Any] = [0, 0]
        shape[1 - axis] = None
        for x in blocks:
            if x.type.format != self.format or x.dtype != blocks[0].dtype:
                raise DTypeError(
                    f"{name}: {x} is {x.type}; a {first.dtype} {self.format} is needed"
                )
            across, along = x.type.shape[1 - axis], x.type.shape[axis]
            if across is not None and shape[1 - axis] not in (None, across):
                raise ShapeError(
                    f"{name}: {x} ({x.type}) has length {across} on axis {1 - axis}, where others "
                    f"have {shape[1 - axis]}"
                )
            shape[1 - axis] = across if across is not None else shape[1 - axis]
            shape[axis] = None if None in (along, shape[axis]) else shape[axis] + along
        wide = dtypes.upcast(*(x.type.index_dtype for x in blocks))
        array = any(x.type.container == "array" for x in blocks)
        return [
            first.clone(shape=shape, index_dtype=wide, container="array" if array else "matrix")
        ]

    def perform(self, *blocks: Any) -> Any:
        self._check(*(x.shape for x in blocks))
        stack = values.scipy_sparse.hstack if self.axis else values.scipy_sparse.vstack
        return stack(blocks, format=self.format)

    def _check(self, *shapes: Any) -> None:
        other = 1 - self.axis
        if len({s[other] for s in shapes}) > 1:
            raise ShapeError(
                f"{('vstack', 'hstack')[self.axis]}: shapes {', '.join(map(str, shapes))} differ "
                f"on axis {other}"
            )

    def pullback(self, inputs: Any, outputs: Any, output_grads: Any) -> list[Any]:
        grads, start = [], as_scalar(0)
        for x in inputs:
            end = start + as_scalar(length(x, self.axis))
            grads.append(cropped(output_grads[0], self.axis, start, end, x.type.shape[self.axis]))
            start = end
        return grads

    def pushforward(self, inputs: Any, outputs: Any, tangents: Any) -> list[Any]:
        return [
            self(*(x.zeros_like() if dx is None else dx for x, dx in zip(inputs, tangents)))  # noqa: B905 - as many
        ]


def _stack(name: str, axis: int, blocks: Any, format: str | None, dtype: Any) -> Any:
    blocks = [compressed(x) for x in blocks]
    if not blocks:
        raise ShapeError(f"{name}: there is nothing to join: blocks is empty")
    format = format or ("csr", "csc")[axis]
    if format not in ("csr", "csc"):
        raise ValueError(f"{name}: format={format!r}: must be 'csr' or 'csc'")
    common = dtype or common_dtype(*(x.dtype for x in blocks))
    return JoinSparse(axis, format)(*(asformat(cast(x, common), format) for x in blocks))


def hstack(blocks: Sequence[Any], format: str | None = None, dtype: Any = None) -> Any:
    """Put sparse matrices side by side.

    Parameters
    ----------
    blocks : sequence of sparse matrices
        With equal numbers of rows.
    format : {"csr", "csc"}, optional
        By default CSC, in which it costs least.
    dtype : optional
        By default the common one.

    Examples
    --------
    >>> from symcomp import sparse
    >>> x = sparse.csc_matrix("x", shape=(2, 3))
    >>> sparse.hstack([x, x]).type
    SparseType(csc, float64, (2, 6))
    """
    return _stack("hstack", 1, blocks, format, dtype)


def vstack(blocks: Sequence[Any], format: str | None = None, dtype: Any = None) -> Any:
    """Put sparse matrices below one another; by default as CSR. See ``hstack``.

    Examples
    --------
    >>> from symcomp import sparse
    >>> sparse.toarray(sparse.vstack([sparse.eye(1), sparse.eye(1)])).eval()
    array([[1.],
           [1.]])
    """
    return _stack("vstack", 0, blocks, format, dtype)


# -- block diagonal matrices and Kronecker products


def block_diag(*matrices: Any, format: str = "csr") -> Any:
    """Put sparse matrices on the diagonal of a larger one, zeros around them.

    Parameters
    ----------
    *matrices : sparse matrices, or one sequence of them
    format : {"csr", "csc"}

    Examples
    --------
    >>> from symcomp import sparse
    >>> x = sparse.csr_matrix("x", shape=(2, 3))
    >>> sparse.block_diag(x, x).type
    SparseType(csr, float64, (4, 6))
    """
    blocks = (
        list(matrices[0])
        if len(matrices) == 1 and isinstance(matrices[0], list | tuple)
        else list(matrices)
    )
    if not blocks:
        raise ShapeError("block_diag: there is nothing to join: no matrices are given")
    blocks = [compressed(x) for x in blocks]
    common = common_dtype(*(x.dtype for x in blocks))
    columns = [length(x, 1) for x in blocks]
    whole = total([as_scalar(n) for n in columns])
    known = None if any(not isinstance(n, int) for n in columns) else sum(columns)
    start, rows = as_scalar(0), []
    for x, n in zip(blocks, columns, strict=True):
        wide = Embed(1, known)(asformat(cast(x, common), "csr"), start, whole)
        rows.append(wide)
        start = start + as_scalar(n)
    return asformat(vstack(rows, "csr"), format)


def kron(a: Any, b: Any, format: str = "csr") -> Any:
    """Return the Kronecker product of two sparse matrices.

    Parameters
    ----------
    a, b : sparse matrix
        Of shapes (n, m) and (p, q); the product is (n p, m q).
    format : {"csr", "csc"}

    Examples
    --------
    >>> import scipy.sparse
    >>> from symcomp import sparse
    >>> x = sparse.csr_matrix("x")
    >>> sparse.kron(x, x).eval({x: scipy.sparse.diags_array([1.0, 2.0])}).diagonal()
    array([1., 2., 2., 4.])
    """
    a, b = asformat(compressed(a), "coo"), asformat(compressed(b), "coo")
    common = common_dtype(a.dtype, b.dtype)
    (u, i, k, _), (v, j, l, _) = _triplets(cast(a, common)), _triplets(cast(b, common))
    (n, m), (p, q) = ([length(x, 0), length(x, 1)] for x in (a, b))
    wide = dtypes.upcast(a.type.index_dtype, b.type.index_dtype)

    def outer(x: Any, y: Any, step: Any) -> Any:
        scaled = x * as_scalar(step).astype(wide) if step is not None else x
        column, row = scaled.dimshuffle(0, "x"), y.dimshuffle("x", 0)
        return (column * row if step is None else column + row).flatten()

    rows, columns = outer(i, j, p), outer(k, l, q)
    shape = [x * y if isinstance(x, int) and isinstance(y, int) else as_scalar(x) * as_scalar(y)
             for x, y in ((n, p), (m, q))]  # fmt: skip
    return from_triplets(outer(u, v, None), rows, columns, shape, format)


def _triplets(x: Any) -> Any:
    """Return the data, rows, columns and shape of a COO matrix."""
    return x.csm_properties()


def tril(x: Any, k: int = 0) -> Any:
    """Return the entries of a sparse matrix on and below diagonal ``k``.

    Examples
    --------
    >>> import scipy.sparse
    >>> from symcomp import sparse
    >>> x = sparse.csr_matrix("x")
    >>> sparse.tril(x).eval({x: scipy.sparse.csr_array([[1.0, 2.0], [3.0, 4.0]])}).toarray()
    array([[1., 0.],
           [3., 4.]])
    """
    return _triangle(x, lambda i, j: j - i <= k)


def triu(x: Any, k: int = 0) -> Any:
    """Return the entries of a sparse matrix on and above diagonal ``k``.

    Examples
    --------
    >>> from symcomp import sparse
    >>> sparse.toarray(sparse.triu(sparse.csr_from_dense([[1.0, 2.0], [3.0, 4.0]]))).eval()
    array([[1., 2.],
           [0., 4.]])
    """
    return _triangle(x, lambda i, j: j - i >= k)


def _triangle(x: Any, keeps: Any) -> Any:
    x = compressed(x)
    data, rows, columns, shape = asformat(x, "coo").csm_properties()
    kept = keeps(rows.astype("int64"), columns.astype("int64")).nonzero()[0]
    return from_triplets(
        data[kept], rows[kept], columns[kept], shape, x.type.format, x.type.container
    )


__all__ = ["block_diag", "hstack", "JoinSparse", "kron", "tril", "triu", "vstack"]
