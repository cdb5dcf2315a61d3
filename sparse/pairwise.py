"""Ops on pairs of sparse matrices, element by element."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Any

import numpy as np

from symcomp.core.fields import one_of
from symcomp.core.node import Apply, Type, Variable
from symcomp.core.op import Op
from symcomp.core.record import record
from symcomp.core.tensor import TensorType
from symcomp.errors import ShapeError
from symcomp.ops.elementwise.scalar_logic import eq as dense_eq
from symcomp.ops.elementwise.scalar_logic import ge as dense_ge
from symcomp.ops.elementwise.scalar_logic import gt as dense_gt
from symcomp.ops.elementwise.scalar_logic import le as dense_le
from symcomp.ops.elementwise.scalar_logic import lt as dense_lt
from symcomp.ops.elementwise.scalar_logic import neq as dense_neq
from symcomp.ops.shapes.shape import ShapeI
from symcomp.sparse import values
from symcomp.sparse.convert import cast
from symcomp.sparse.op import SparseOp, as_sparse_variable
from symcomp.sparse.patterns import check_index_vectors, major_indices, place_keys, total
from symcomp.sparse.products import (
    check_same_kind,
    compressed_value,
    conjugate,
    joined_kind,
    matched,
)
from symcomp.sparse.structure import neg

COMPARISONS: dict[str, tuple[np.ufunc, Callable[..., Any]]] = {
    "eq": (np.equal, dense_eq),
    "neq": (np.not_equal, dense_neq),
    "lt": (np.less, dense_lt),
    "gt": (np.greater, dense_gt),
    "le": (np.less_equal, dense_le),
    "ge": (np.greater_equal, dense_ge),
}
# How a pair of entries, of which one may be an implicit zero, becomes one of the result.
PAIRS: dict[str, np.ufunc] = {
    "add": np.add, "mul": np.multiply, "maximum": np.maximum, "minimum": np.minimum,
    **{name: ufunc for name, (ufunc, _) in COMPARISONS.items()},
}  # fmt: skip
# Comparisons that are True for two zeros: results have an entry nearly everywhere.
TRUE_AT_ZERO = ("eq", "le", "ge")


class _Pairwise(SparseOp):
    """An op on two sparse matrices of one format, dtype and shape."""

    kind = ""

    def as_inputs(self, x: Any, y: Any) -> list[Variable]:
        return [as_sparse_variable(x), as_sparse_variable(y)]

    def output_types(self, x: Any, y: Any) -> list[Type]:
        check_same_kind(self.kind, x, y)
        shape = []
        for axis, (m, n) in enumerate(zip(x.type.shape, y.type.shape, strict=True)):
            if m is not None and n is not None and m != n:
                raise ShapeError(
                    f"{self.kind}: {x} ({x.type}) and {y} ({y.type}) differ on axis {axis}; sparse "
                    "matrices do not broadcast"
                )
            shape.append(n if m is None else m)
        return [joined_kind(x, y, shape, "bool" if self.kind in COMPARISONS else None)]

    def perform(self, x: Any, y: Any) -> Any:
        check_same_shape(self.kind, x.shape, y.shape)
        return _pairwise(self.kind, x, y)


def check_same_shape(name: str, x: Sequence[int], y: Sequence[int]) -> None:
    """Raise ShapeError unless two shapes are equal."""
    if tuple(x) != tuple(y):
        raise ShapeError(
            f"{name}: shapes {tuple(x)} and {tuple(y)} differ; sparse matrices do not broadcast"
        )


def _pairwise(kind: str, x: Any, y: Any) -> Any:
    """Return two sparse values of one format, combined pair by pair.

    SciPy would leave out the results that happen to be 0: then the pattern of a sum would depend on
    values, and gradients would lose entries.
    """
    ufunc = PAIRS[kind]
    if kind in TRUE_AT_ZERO:
        return values.scipy_sparse.coo_array(ufunc(x.toarray(), y.toarray())).asformat(x.format)
    (d, i, p, _), (e, j, q, _) = values.components(x), values.components(y)
    first, second = (major_indices(p), i), (major_indices(q), j)
    left, right = place_keys(first, second)
    if kind == "mul":
        _, k, m = np.intersect1d(left, right, assume_unique=True, return_indices=True)
        data, places = ufunc(d[k], e[m]), [v[k] for v in first]
    else:
        keys, at = np.unique(np.concatenate([left, right]), return_index=True)
        places = [np.concatenate([v, w])[at] for v, w in zip(first, second, strict=True)]
        a, b = np.zeros(len(keys), d.dtype), np.zeros(len(keys), e.dtype)
        a[np.searchsorted(keys, left)], b[np.searchsorted(keys, right)] = d, e
        data = ufunc(a, b)
        if kind in COMPARISONS:
            data, places = data[data], [v[data] for v in places]
    rows, columns = places[::-1] if x.format == "csc" else places
    coo = values.scipy_sparse.coo_array((data, (rows, columns)), shape=x.shape)
    return coo.asformat(x.format)


@record
class AddSS(_Pairwise):
    """z = x + y, with the entries of both."""

    kind = "add"

    def pullback(self, inputs: Any, outputs: Any, output_grads: Any) -> list[Any]:
        return [output_grads[0], output_grads[0]]

    def pushforward(self, inputs: Any, outputs: Any, tangents: Any) -> list[Any]:
        dx, dy = tangents
        return [total([dx, dy])]


@record
class MulSS(_Pairwise):
    """z = x y, element by element, with the entries that both store."""

    kind = "mul"

    def pullback(self, inputs: Any, outputs: Any, output_grads: Any) -> list[Any]:
        x, y = inputs
        (gz,) = output_grads
        return [product(gz, conjugate(y)), product(conjugate(x), gz)]

    def pushforward(self, inputs: Any, outputs: Any, tangents: Any) -> list[Any]:
        (x, y), (dx, dy) = inputs, tangents
        terms = [None if dx is None else product(dx, y), None if dy is None else product(x, dy)]
        return [total(terms)]


def product(x: Any, y: Any) -> Any:
    """Return the product of two sparse matrices, element by element."""
    return MulSS()(*matched(x, y))


def difference(x: Any, y: Any) -> Any:
    """Return the difference of two sparse matrices."""
    return AddSS()(*matched(x, neg(y)))


@record
class ExtremeSS(_Pairwise):
    """z = the greater (``maximum``) or lesser (``minimum``) of x and y, element by element.

    Where x and y are equal the gradient goes to y.
    """

    name: str

    @property
    def kind(self) -> str:  # type: ignore[override]
        """The function."""
        return self.name

    def _share(self, inputs: Sequence[Any], dtype: str) -> Any:
        """Return 1 where the entry of x is taken, at the entries where it is."""
        first = CompareSS("gt" if self.name == "maximum" else "lt")(*inputs)
        return cast(first, dtype)

    def pullback(self, inputs: Any, outputs: Any, output_grads: Any) -> list[Any]:
        (gz,) = output_grads
        gx = product(gz, self._share(inputs, gz.dtype))
        return [gx, difference(gz, gx)]

    def pushforward(self, inputs: Any, outputs: Any, tangents: Any) -> list[Any]:
        dx, dy = (x.zeros_like() if d is None else d for x, d in zip(inputs, tangents, strict=True))
        share = self._share(inputs, outputs[0].dtype)
        return [AddSS()(*matched(dy, product(difference(dx, dy), share)))]


@record
class CompareSS(_Pairwise):
    """z = whether x and y compare as ``name`` says, element by element; True is stored."""

    name: str

    no_derivative = "its output is a truth value"

    @property
    def kind(self) -> str:  # type: ignore[override]
        """The comparison."""
        return self.name

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        return [[False], [False]]


@record
class CombinePatterns(Op):
    """data, indices, indptr = two CSR matrices of one shape, combined pair by pair.

    Inputs: data, indices, indptr of each, and n_minor. ``add``, ``maximum`` and ``minimum`` store
    all places that one of them stores, ``mul`` the places that both store, comparisons the places
    where they are true.
    """

    kind: Annotated[str, one_of("add", "mul", "maximum", "minimum", "neq", "lt", "gt")]

    multiple_outputs = True
    no_derivative = "it takes the place of ops on sparse matrices in compiled functions"

    def output_types(self, *inputs: Any) -> list[Type]:
        check_index_vectors(self.kind, *inputs[1:3], *inputs[4:6])
        data, indices, indptr = inputs[:3]
        dtype = "bool" if self.kind in COMPARISONS else data.dtype
        return [
            TensorType(dtype, (None,)), TensorType(indices.dtype, (None,)), indptr.type
        ]  # fmt: skip

    def perform(self, *given: Any) -> tuple[Any, ...]:
        d, i, p, e, j, q, n = given
        x, y = compressed_value(d, i, p, n), compressed_value(e, j, q, n)
        check_same_shape(self.kind, x.shape, y.shape)
        z = values.canonical(_pairwise(self.kind, x, y).tocsr())
        dtype = given[1].dtype
        values.check_fits(dtype.name, z.shape, z.nnz, self.kind)
        if self.kind not in COMPARISONS:
            z = z.astype(given[0].dtype)
        return z.data, z.indices.astype(dtype), z.indptr.astype(dtype)

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        stored = ShapeI(0)(node.outputs[1])
        return [(stored,), (stored,), shapes[2]]
