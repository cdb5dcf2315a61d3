"""Products of sparse matrices with dense tensors, element by element."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from symcomp.core.node import Apply, Type, Variable
from symcomp.core.op import Op
from symcomp.core.record import record
from symcomp.core.tensor import TensorVariable
from symcomp.errors import DTypeError, ShapeError
from symcomp.ops.convert import as_tensor_variable
from symcomp.ops.indexing.subtensors import getitem
from symcomp.ops.shapes.axes import dimshuffle
from symcomp.ops.shapes.reshaping import specify_shape
from symcomp.sparse.components import SparseParts, major_of
from symcomp.sparse.convert import dense_from_sparse, entries_of_dense
from symcomp.sparse.op import SparseOp, as_sparse_variable
from symcomp.sparse.pairwise import product
from symcomp.sparse.patterns import conj, major_indices, total
from symcomp.sparse.products import conjugate
from symcomp.sparse.type import SparseVariable

# -- with dense tensors


@record
class MulSD(SparseOp):
    """z = x D, element by element, with the pattern of x; D is a dense matrix of the shape of x, or
    of length 1 on an axis.
    """

    def as_inputs(self, x: Any, dense: Any) -> list[Variable]:
        return [as_sparse_variable(x), as_tensor_variable(dense)]

    def output_types(self, x: Any, dense: Any) -> list[Type]:
        if not x.type.is_compressed or dense.ndim != 2 or x.dtype != dense.dtype:
            raise DTypeError(f"mul: {x.type} and {dense.type}; a {x.dtype} matrix is needed")
        for axis, (m, n) in enumerate(zip(x.type.shape, dense.type.shape, strict=True)):
            if m is not None and n not in (None, 1, m):
                raise ShapeError(
                    f"mul: {x} ({x.type}) and {dense} ({dense.type}) differ on axis {axis}"
                )
        return [x.type]

    def perform(self, x: Any, dense: Any) -> Any:
        if any(n not in (m, 1) for m, n in zip(x.shape, dense.shape, strict=True)):
            raise ShapeError(f"mul: shapes {x.shape} and {dense.shape} do not fit")
        z = x.copy()
        places = (major_indices(x.indptr), x.indices)
        rows, columns = places[::-1] if x.format == "csc" else places
        z.data = x.data * np.broadcast_to(dense, x.shape)[rows, columns]
        return z

    def bind(self, node: Apply) -> Callable[..., Any]:
        """Refuse to stretch an axis that is not known to have length 1."""
        inner = super().bind(node)
        fixed = [a for a, n in enumerate(node.inputs[1].type.shape) if n is None]

        def compute(x: Any, dense: Any) -> Any:
            for axis in fixed:
                if dense.shape[axis] != x.shape[axis]:
                    raise ShapeError(f"mul: shapes {x.shape} and {dense.shape} do not fit")
            return inner(x, dense)

        return compute

    def pullback(self, inputs: Any, outputs: Any, output_grads: Any) -> list[Any]:
        x, dense = inputs
        (gz,) = output_grads
        products = product(gz, conjugate(x))
        wide = [a for a, n in enumerate(dense.type.shape) if n != 1]
        if len(wide) == 2:
            g = dense_from_sparse(products)
        else:
            g = sums(products, 1 - wide[0] if wide else None)
            g = dimshuffle(g, *(("x", 0) if wide == [1] else (0, "x") if wide else ("x", "x")))
        return [self(gz, conj(dense)), g]

    def pushforward(self, inputs: Any, outputs: Any, tangents: Any) -> list[Any]:
        (x, dense), (dx, ddense) = inputs, tangents
        terms = [
            None if dx is None else self(dx, dense),
            None if ddense is None else self(x, ddense),
        ]
        return [total(terms)]


def sums(x: Any, axis: int | None) -> TensorVariable:
    """Return the sums of a sparse matrix, with the structured gradient."""
    return x.sum(axis, sparse_grad=True)


def dense_entries(x: SparseVariable, dense: TensorVariable, parts: SparseParts) -> Any:
    """Return the elements of a dense matrix, which may have axes of length 1, at the pattern of
    ``x``: a vector, or a scalar if both axes have length 1.
    """
    stretched = [n == 1 and m != 1 for m, n in zip(x.type.shape, dense.type.shape, strict=True)]
    if not any(stretched):
        return entries_of_dense(x, dense, parts)
    if all(stretched):
        return dense.dimshuffle()
    axis = stretched.index(False)
    vector = dense.dimshuffle(axis)
    is_major = axis == (1 if x.type.format == "csc" else 0)
    n = parts.shape[axis]
    checked = same_length(vector, n)
    return getitem(checked, major_of(parts) if is_major else parts.indices)


def check_length(length: int, n: int) -> None:
    """Raise ShapeError unless the length of a vector is that of an axis."""
    if length != n:
        raise ShapeError(f"sparse: a vector of length {length} meets an axis of length {n}")


@record
class SameLength(Op):
    """z = x, a view; an error unless x has n elements.   (n,), () -> (n,)"""

    def output_types(self, x: Any, n: Any) -> list[Type]:
        return [x.type]

    def perform(self, x: Any, n: Any) -> Any:
        check_length(len(x), int(n))
        return x

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        return [shapes[0]]

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        return [[True], [False]]

    def pullback(self, inputs: Any, outputs: Any, output_grads: Any) -> list[Any]:
        return [output_grads[0], None]

    def pushforward(self, inputs: Any, outputs: Any, tangents: Any) -> list[Any]:
        return [self(tangents[0], inputs[1])]

    view_map = {0: (0,)}


def same_length(x: TensorVariable, n: Any) -> Any:
    """Return a vector; when the function runs, raise ShapeError unless its length is ``n``."""
    known = getattr(n, "data", None)
    if known is not None and x.type.shape[0] == int(known):
        return x
    if known is not None and x.type.shape[0] is None:
        return specify_shape(x, (int(known),))
    return SameLength()(x, n)
