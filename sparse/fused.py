"""Ops that rewriting puts in the place of several."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from symcomp.core.node import Apply, Type
from symcomp.core.op import Op
from symcomp.core.record import record
from symcomp.core.tensor import TensorType
from symcomp.errors import DTypeError, ShapeError
from symcomp.sparse.convert import check_pattern_fits
from symcomp.sparse.patterns import check_index_vectors, check_lengths, major_indices
from symcomp.sparse.products import CompressedDot


@record
class Usmm(Op):
    """z = Z + alpha S D or, ``transposed``, Z + alpha S^T D, for a CSR matrix S.

    Inputs: Z, alpha, the data, indices, indptr and n_minor of S, D.
    """

    transposed: bool

    no_derivative = "it takes the place of a sum in compiled functions"

    def output_types(self, z: Any, alpha: Any, *rest: Any) -> list[Type]:
        product: Any = CompressedDot(self.transposed).output_types(*rest)[0]
        if alpha.ndim or not z.dtype == alpha.dtype == product.dtype or z.ndim != product.ndim:
            raise DTypeError(f"usmm: {z.type}, {alpha.type} and {product} do not fit")
        return [z.type]

    def perform(self, z: Any, alpha: Any, *rest: Any) -> Any:
        product = CompressedDot(self.transposed).perform(*rest)
        if product.shape != z.shape:
            raise ShapeError(f"usmm: z has shape {z.shape}, the product {product.shape}")
        return z + alpha * product

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        return [shapes[0]]


@record
class ScatterAdd(Op):
    """z = x + the dense matrix with data_k at the places of a pattern.   Inputs: x, data, indices,
    indptr, n_minor
    """

    no_derivative = "it takes the place of a sum in compiled functions"

    def output_types(self, x: Any, data: Any, indices: Any, indptr: Any, n: Any) -> list[Type]:
        check_index_vectors("add", indices, indptr)
        if x.ndim != 2 or x.dtype != data.dtype:
            raise DTypeError(f"add: {x.type} and entries of {data.dtype} do not fit")
        return [x.type]

    def perform(self, x: Any, data: Any, indices: Any, indptr: Any, n: Any) -> Any:
        check_lengths(data, indices)
        if x.shape[1] != n:
            raise ShapeError(
                f"add: a dense matrix of shape {x.shape} meets a sparse one with {int(n)} columns "
                "(csc: rows)"
            )
        check_pattern_fits(x.shape, indices, indptr)
        z = np.array(x)
        z[major_indices(indptr), indices] += data
        return z

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        return [shapes[0]]


@record
class GatherFill(Op):
    """z_k = the element at place k of a pattern of a value stretched to a matrix.

    Inputs: value, a matrix with an axis of length 1; the lengths n_major, n_minor it is stretched
    to; indices, indptr.
    """

    no_derivative = "it takes the place of entries of a filled matrix in compiled functions"

    def output_types(self, value: Any, n: Any, m: Any, indices: Any, indptr: Any) -> list[Type]:
        check_index_vectors("fill", indices, indptr)
        return [TensorType(value.dtype, indices.type.shape)]

    def perform(self, value: Any, n: Any, m: Any, indices: Any, indptr: Any) -> Any:
        shape = (int(n), int(m))
        check_pattern_fits(shape, indices, indptr)
        wide = np.broadcast_to(value, shape)
        if value.shape == (1, 1):
            return np.full(len(indices), value[0, 0])
        return wide[major_indices(indptr), indices]

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        return [shapes[3]]
