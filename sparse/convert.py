"""Between sparse and dense matrices, formats and dtypes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from symcomp.core import dtype as dtypes
from symcomp.core.node import Apply, Type, Variable
from symcomp.core.op import Op
from symcomp.core.record import record
from symcomp.core.tensor import TensorType, TensorVariable
from symcomp.errors import DTypeError, ShapeError
from symcomp.ops.convert import as_tensor_variable, resolve_dtype
from symcomp.ops.indexing.subtensors import getitem, inc_subtensor
from symcomp.ops.shapes.axes import dimshuffle
from symcomp.ops.shapes.filled import alloc
from symcomp.ops.shapes.shape import ShapeI, known_length, shape_tuple
from symcomp.sparse import values
from symcomp.sparse.blocks import CheckedBlocks, RowsAsBlocks, rows_of_blocks
from symcomp.sparse.components import VECTOR, Assemble, SparseParts, entry, parts_of, with_data
from symcomp.sparse.op import SparseOp, as_sparse_variable, length
from symcomp.sparse.patterns import check_index_vectors, major_indices, no_gradient
from symcomp.sparse.type import SparseType, SparseVariable

# -- between a dense matrix and a pattern


@record
class GatherDense(Op):
    """z_k = D[i_k, j_k] at the places (i, j) of a pattern.   Inputs: D (major, minor), indices,
    indptr
    """

    def output_types(self, dense: Any, indices: Any, indptr: Any) -> list[Type]:
        check_index_vectors("GatherDense", indices, indptr)
        return [TensorType(dense.dtype, indices.type.shape)]

    def perform(self, dense: Any, indices: Any, indptr: Any) -> Any:
        check_pattern_fits(dense.shape, indices, indptr)
        return dense[major_indices(indptr), indices]

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        return [shapes[1]]

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        return [[True], [False], [False]]

    def pullback(self, inputs: Any, outputs: Any, output_grads: Any) -> list[Any]:
        dense, indices, indptr = inputs
        n = shape_tuple(dense)[1]
        g = ScatterDense()(output_grads[0], indices, indptr, as_tensor_variable(n, dtype="int64"))
        return [g, *no_gradient(2)]

    def pushforward(self, inputs: Any, outputs: Any, tangents: Any) -> list[Any]:
        return [self(tangents[0], *inputs[1:])]


def check_pattern_fits(shape: Sequence[int], indices: Any, indptr: Any) -> None:
    """Raise ShapeError unless a dense matrix has the major slices and minor indices of a
    pattern.
    """
    most = int(indices.max(initial=-1))
    if shape[0] != len(indptr) - 1 or most >= shape[1]:
        raise ShapeError(
            f"sparse: a dense matrix with {shape[0]} rows (of csc: columns) and {shape[1]} columns "
            f"(rows) meets a pattern with {len(indptr) - 1} rows and indices up to {most}"
        )
    values.check_range(indices, shape[1], "the indices of a sparse matrix")


@record
class ScatterDense(Op):
    """z = the dense matrix with data_k at the places of a pattern.   Inputs: data, indices, indptr,
    n_minor
    """

    def output_types(self, data: Any, indices: Any, indptr: Any, n: Any) -> list[Type]:
        check_index_vectors("ScatterDense", indices, indptr)
        pointers = indptr.type.shape[0]
        rows = None if pointers is None else pointers - 1
        return [TensorType(data.dtype, (rows, known_length(n)))]

    def perform(self, data: Any, indices: Any, indptr: Any, n: Any) -> Any:
        z = np.zeros((len(indptr) - 1, int(n)), data.dtype)
        check_pattern_fits(z.shape, indices, indptr)
        z[major_indices(indptr), indices] = data
        return z

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        return [(shapes[2][0] - 1, node.inputs[3])]

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        return [[True], [False], [False], [False]]

    def pullback(self, inputs: Any, outputs: Any, output_grads: Any) -> list[Any]:
        return [GatherDense()(output_grads[0], *inputs[1:3]), *no_gradient(3)]

    def pushforward(self, inputs: Any, outputs: Any, tangents: Any) -> list[Any]:
        return [self(tangents[0], *inputs[1:])]


def turned(x: SparseVariable, dense: Any) -> Any:
    """Return a dense matrix of the shape of ``x`` with its axes in the order major, minor."""
    return dimshuffle(dense, 1, 0) if x.type.format == "csc" else dense


def entries_of_dense(x: SparseVariable, dense: Any, parts: SparseParts | None = None) -> Any:
    """Return the elements of a dense matrix at the pattern of a CSR or CSC matrix ``x``."""
    _, indices, indptr, _ = parts_of(x) if parts is None else parts
    return GatherDense()(turned(x, dense), indices, indptr)


# -- dense from sparse


@record
class DenseFromSparse(SparseOp):
    """z = x as a dense matrix.

    The gradient of x has the pattern of x if ``structured``; else it is that of z, made sparse.
    """

    structured: bool = True

    def as_inputs(self, x: Any) -> list[Variable]:
        return [as_sparse_variable(x)]

    def output_types(self, x: Any) -> list[Type]:
        return [TensorType(x.dtype, x.type.shape)]

    def perform(self, x: Any) -> Any:
        return x.toarray()

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        (x,) = node.inputs
        return [(length(x, 0), length(x, 1))]

    def pullback(self, inputs: Any, outputs: Any, output_grads: Any) -> list[Any]:
        (x,), (gz,) = inputs, output_grads
        if not self.structured:
            return [asformat(csr_from_dense(gz), x.type.format)]
        rows = x if x.type.is_compressed else asformat(x, "csr")
        parts = parts_of(rows)
        found = with_data(rows, entries_of_dense(rows, gz, parts), parts)
        return [asformat(found, x.type.format)]

    def pushforward(self, inputs: Any, outputs: Any, tangents: Any) -> list[Any]:
        return [self(tangents[0])]


def dense_from_sparse(x: Any, structured: bool = True) -> TensorVariable:
    """Return a sparse matrix as a dense one.

    Parameters
    ----------
    x : sparse matrix
    structured : bool
        True: the gradient has the pattern of ``x``. False: it has an entry wherever that of the
        result is not 0, as if ``x`` were dense.

    Examples
    --------
    >>> import scipy.sparse
    >>> from symcomp import sparse
    >>> x = sparse.csr_matrix("x")
    >>> sparse.dense_from_sparse(x).eval({x: scipy.sparse.diags_array([1.0, 2.0])})
    array([[1., 0.],
           [0., 2.]])
    """
    x = as_sparse_variable(x)
    return DenseFromSparse(structured)(asformat(x, "csr") if x.type.format == "bsr" else x)


def toarray(x: Any) -> TensorVariable:
    """Return a sparse matrix as a dense one; see ``dense_from_sparse``.

    Examples
    --------
    >>> from symcomp import sparse
    >>> sparse.toarray(sparse.eye(2)).eval()
    array([[1., 0.],
           [0., 1.]])
    """
    return dense_from_sparse(x)


# -- sparse from dense


@record
class SparseFromDense(SparseOp):
    """z = the elements of a dense matrix that are not 0, in the format csr or csc."""

    format: str
    container: str = "matrix"

    def as_inputs(self, x: Any) -> list[Variable]:
        return [as_tensor_variable(x)]

    def output_types(self, x: Any) -> list[Type]:
        if x.ndim != 2:
            raise ShapeError(f"{self.format}_from_dense: {x} ({x.type}) is no matrix")
        return [SparseType(self.format, x.dtype, x.type.shape, "int32", self.container)]

    def perform(self, x: Any) -> Any:
        values.check_fits("int32", x.shape, int(np.count_nonzero(x)), "csr_from_dense")
        return values.scipy_sparse.coo_array(x).asformat(self.format)

    def pullback(self, inputs: Any, outputs: Any, output_grads: Any) -> list[Any]:
        return [dense_from_sparse(output_grads[0])]

    def pushforward(self, inputs: Any, outputs: Any, tangents: Any) -> list[Any]:
        (z,) = outputs
        return [with_data(z, entries_of_dense(z, tangents[0]))]


@record
class NonzeroPattern(Op):
    """data, indices, indptr = the elements that are not 0 of a dense matrix, row by row."""

    multiple_outputs = True
    no_derivative = "it takes the place of SparseFromDense in compiled functions"

    def output_types(self, dense: Any) -> list[Type]:
        n = dense.type.shape[0]
        return [
            TensorType(dense.dtype, VECTOR),
            TensorType("int32", VECTOR),
            TensorType("int32", (None if n is None else n + 1,)),
        ]

    def perform(self, dense: Any) -> tuple[Any, ...]:
        rows, columns = np.nonzero(dense)
        values.check_fits("int32", dense.shape, len(rows), "csr_from_dense")
        counts = np.bincount(rows, minlength=len(dense))
        indptr = np.concatenate([[0], np.cumsum(counts)])
        return dense[rows, columns], columns.astype(np.int32), indptr.astype(np.int32)

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        stored = ShapeI(0)(node.outputs[1])
        return [(stored,), (stored,), (shapes[0][0] + 1,)]


def csr_from_dense(x: Any) -> Any:
    """Return the elements of a dense matrix that are not 0, as a CSR matrix.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> from symcomp import sparse
    >>> x = T.dmatrix("x")
    >>> sparse.csr_from_dense(x).eval({x: [[0.0, 3.0], [0.0, 0.0]]}).nnz
    1
    """
    return _from_dense(x, "csr")


def csc_from_dense(x: Any) -> Any:
    """Return the elements of a dense matrix that are not 0, as a CSC matrix.

    Examples
    --------
    >>> from symcomp import sparse
    >>> sparse.csc_from_dense([[0.0, 2.0], [0.0, 0.0]]).eval().nnz
    1
    """
    return _from_dense(x, "csc")


def _from_dense(x: Any, format: str) -> Any:
    x = as_tensor_variable(x)
    values.check_dtype(x.dtype)
    return SparseFromDense(format)(x)


# -- formats


@record
class TransposeCompressed(Op):
    """data', indices', indptr' = the transpose of a matrix in canonical form, slice by slice of the
    other axis.

    Inputs: data, indices, indptr, n_minor. So CSR becomes CSC, and CSC CSR.
    """

    multiple_outputs = True

    def output_types(self, data: Any, indices: Any, indptr: Any, n: Any) -> list[Type]:
        check_index_vectors("TransposeCompressed", indices, indptr)
        known = known_length(n)
        return [
            TensorType(data.dtype, indices.type.shape),
            TensorType(indices.dtype, indices.type.shape),
            TensorType(indices.dtype, (None if known is None else known + 1,)),
        ]

    def perform(self, data: Any, indices: Any, indptr: Any, n: Any) -> tuple[Any, ...]:
        values.check_range(indices, int(n), "the indices of a sparse matrix")
        order = np.argsort(indices, kind="stable")
        counts = np.bincount(indices, minlength=int(n))
        pointers = np.concatenate([[0], np.cumsum(counts)]).astype(indices.dtype)
        return data[order], major_indices(indptr)[order].astype(indices.dtype), pointers

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        return [shapes[1], shapes[1], (node.inputs[3] + 1,)]

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        return [[True, False, False]] + [[False] * 3] * 3

    def pullback(self, inputs: Any, outputs: Any, output_grads: Any) -> list[Any]:
        _, indices, indptr = outputs
        n = ShapeI(0)(inputs[2]) - 1
        return [self(output_grads[0], indices, indptr, n)[0], *no_gradient(3)]

    def pushforward(self, inputs: Any, outputs: Any, tangents: Any) -> list[Any]:
        return [self(tangents[0], *inputs[1:])[0], None, None]


@record
class AsFormat(SparseOp):
    """z = x in the format csr, csc or coo, of any of these."""

    format: str

    def as_inputs(self, x: Any) -> list[Variable]:
        return [as_sparse_variable(x)]

    def output_types(self, x: Any) -> list[Type]:
        if "bsr" in (x.type.format, self.format):
            raise DTypeError(f"{self}: {x} ({x.type}): use sparse.tobsr, or x.tocsr()")
        return [x.type.clone(format=self.format)]

    def perform(self, x: Any) -> Any:
        return x.asformat(self.format)

    def pullback(self, inputs: Any, outputs: Any, output_grads: Any) -> list[Any]:
        return [asformat(output_grads[0], inputs[0].type.format)]

    def pushforward(self, inputs: Any, outputs: Any, tangents: Any) -> list[Any]:
        return [asformat(tangents[0], self.format)]


def asformat(x: Any, format: str) -> Any:
    """Return a sparse matrix in another format.

    Parameters
    ----------
    x : sparse matrix
    format : {"csr", "csc", "coo"}
        For BSR see ``tobsr``.

    Examples
    --------
    >>> from symcomp import sparse
    >>> sparse.asformat(sparse.csr_matrix("x"), "csc").type
    SparseType(csc, float64)
    """
    x = as_sparse_variable(x)
    if x.type.format == format:
        return x
    if x.type.format == "bsr":
        return asformat(rows_of_blocks(x), format)
    if format == "bsr":
        raise ValueError("asformat: the size of blocks is needed: use tobsr(x, (rows, columns))")
    return AsFormat(format)(x)


def tocsr(x: Any) -> Any:
    """Return a sparse matrix in the format CSR.

    Examples
    --------
    >>> from symcomp import sparse
    >>> sparse.tocsr(sparse.csc_dmatrix("A")).type.format
    'csr'
    """
    return asformat(x, "csr")


def tocsc(x: Any) -> Any:
    """Return a sparse matrix in the format CSC.

    Examples
    --------
    >>> from symcomp import sparse
    >>> sparse.tocsc(sparse.csr_dmatrix("A")).type.format
    'csc'
    """
    return asformat(x, "csc")


def tocoo(x: Any) -> Any:
    """Return a sparse matrix in the format COO, sorted by rows and columns.

    Examples
    --------
    >>> from symcomp import sparse
    >>> sparse.tocoo(sparse.csr_dmatrix("A")).type.format
    'coo'
    """
    return asformat(x, "coo")


def compressed(x: Any) -> Any:
    """Return ``x`` itself if it is CSR or CSC, else as CSR."""
    x = as_sparse_variable(x)
    return x if x.type.is_compressed else asformat(x, "csr")


# -- blocks


def tobsr(x: Any, blocksize: tuple[int, int]) -> Any:
    """Return a sparse matrix in the format BSR.

    Parameters
    ----------
    x : sparse matrix
    blocksize : (int, int)
        The rows and columns of a block, which must divide the shape.

    Examples
    --------
    >>> import scipy.sparse
    >>> from symcomp import sparse
    >>> x = sparse.csr_matrix("x")
    >>> sparse.tobsr(x, (2, 2)).eval({x: scipy.sparse.eye_array(4)}).data.shape
    (2, 2, 2)
    """
    x = asformat(x, "csr")
    r, c = (int(n) for n in blocksize)
    if r < 1 or c < 1:
        raise ShapeError(f"tobsr: blocksize is {blocksize}; lengths must be at least 1")
    data, indices, indptr, shape = parts_of(x)
    check_columns = CheckedBlocks(c)(entry(shape, 1), shape)
    minor, pointers, place = RowsAsBlocks(r, c)(indices, indptr)
    count = shape_tuple(minor)[0]
    flat = alloc(as_tensor_variable(0, dtype=x.dtype), count * (r * c))
    blocks = inc_subtensor(getitem(flat, place), data).reshape((count, r, c))
    kind = x.type.clone(format="bsr", dtype=x.dtype)
    return Assemble(kind)(blocks, minor, pointers, check_columns)


# -- dtypes


@record
class Cast(SparseOp):
    """z = x with entries of another dtype; the pattern stays."""

    out_type: str

    def as_inputs(self, x: Any) -> list[Variable]:
        return [as_sparse_variable(x)]

    def output_types(self, x: Any) -> list[Type]:
        return [x.type.clone(dtype=self.out_type)]

    def perform(self, x: Any) -> Any:
        return x.astype(self.out_type)

    def pullback(self, inputs: Any, outputs: Any, output_grads: Any) -> list[Any]:
        if dtypes.is_discrete(self.out_type):
            return [None]
        return [cast_gradient(output_grads[0], inputs[0].dtype)]

    def pushforward(self, inputs: Any, outputs: Any, tangents: Any) -> list[Any]:
        return [None if dtypes.is_discrete(self.out_type) else self(tangents[0])]


def cast(variable: Any, dtype: Any) -> Any:
    """Return a sparse matrix with entries of another dtype.

    Examples
    --------
    >>> from symcomp import sparse
    >>> sparse.cast(sparse.csr_matrix("x"), "float32").type
    SparseType(csr, float32)
    """
    x, name = as_sparse_variable(variable), resolve_dtype(dtype)
    values.check_dtype(name)
    return x if x.dtype == name else Cast(name)(x)


def cast_gradient(g: Any, dtype: str) -> Any:
    """Return a gradient at the dtype of what it is the gradient of, if that is floating."""
    if dtypes.is_discrete(dtype) or g.dtype == dtype:
        return g
    if dtypes.is_complex(g.dtype) and not dtypes.is_complex(dtype):
        g = with_data(g, parts_of(g).data.real)
    return cast(g, dtype)


def _caster(name: str, dtype: str) -> Callable[[Any], Any]:
    def convert(x: Any) -> Any:
        return cast(x, dtype)

    convert.__name__ = convert.__qualname__ = name
    convert.__doc__ = (
        f"Return a sparse matrix with entries of {dtype}.\n\nExamples\n--------\n"
        f">>> from symcomp import sparse\n>>> sparse.{name}(sparse.csr_dmatrix('A')).type\n"
        f"SparseType(csr, {dtype})\n"
    )
    return convert


bcast, wcast = _caster("bcast", "int8"), _caster("wcast", "int16")
icast, lcast = _caster("icast", "int32"), _caster("lcast", "int64")
fcast, dcast = _caster("fcast", "float32"), _caster("dcast", "float64")
ccast, zcast = _caster("ccast", "complex64"), _caster("zcast", "complex128")


def with_index_dtype(x: Any, index_dtype: str) -> Any:
    """Return a sparse matrix whose indices are of another dtype, as large matrices need it.

    Parameters
    ----------
    x : sparse matrix
    index_dtype : {"int32", "int64"}

    Raises
    ------
    SparsePatternError
        When the function runs, if int32 is too small.

    Examples
    --------
    >>> from symcomp import sparse
    >>> sparse.with_index_dtype(sparse.csr_matrix("x"), "int64").type
    SparseType(csr, float64, int64)
    """
    x = as_sparse_variable(x)
    if x.type.index_dtype == index_dtype:
        return x
    data, indices, indptr, shape = parts_of(x)
    kind = x.type.clone(index_dtype=index_dtype)
    if index_dtype == "int32":
        shape = FittingShape()(shape, indices)
    return Assemble(kind)(data, indices.astype(index_dtype), indptr.astype(index_dtype), shape)


@record
class FittingShape(Op):
    """z = the shape, a view; an error if int32 cannot count its lengths or the indices."""

    no_derivative = "lengths do not depend on values"

    def output_types(self, shape: Any, indices: Any) -> list[Type]:
        return [shape.type]

    def perform(self, shape: Any, indices: Any) -> Any:
        values.check_fits("int32", shape.tolist(), len(indices))
        return shape

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        return [shapes[0]]

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        return [[False], [False]]

    view_map = {0: (0,)}


__all__ = [
    "asformat", "bcast", "Cast", "cast", "ccast", "csc_from_dense", "csr_from_dense", "dcast",
    "dense_from_sparse", "DenseFromSparse", "fcast", "icast", "lcast", "SparseFromDense",
    "toarray", "tobsr", "tocoo", "tocsc", "tocsr", "wcast", "with_index_dtype", "zcast",
]  # fmt: skip
