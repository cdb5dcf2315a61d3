"""Patterns of sparse matrices: where entries are, and the entries at other places.

``major`` is the axis whose slices lie together: rows of CSR, columns of CSC; ``minor`` the other.
A pattern is ``indices``, the minor indices of the entries, and ``indptr``, where the entries of
each major slice begin. It is canonical if the indices of each slice ascend strictly.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from symcomp.core import dtype as dtypes
from symcomp.core.node import Apply, Type
from symcomp.core.op import Op
from symcomp.core.record import record
from symcomp.core.tensor import TensorType, TensorVariable
from symcomp.errors import DTypeError, ShapeError
from symcomp.ops.convert import as_tensor_variable, cast_to
from symcomp.ops.shapes.shape import ShapeI, known_length
from symcomp.sparse import values

VECTOR = (None,)


def no_gradient(n: int) -> list[None]:
    """Return what a pullback gives for ``n`` inputs that are positions."""
    return [None] * n


def total(terms: Sequence[Any]) -> Any:
    """Return the sum of the terms that are not None; None if all are."""
    found = [term for term in terms if term is not None]
    if not found:
        return None
    result = found[0]
    for term in found[1:]:
        result = result + term
    return result


def conj(x: TensorVariable) -> TensorVariable:
    """Return the complex conjugate of a tensor; itself if it is real."""
    return x.conj() if dtypes.is_complex(x.dtype) else x


@record
class MajorIndices(Op):
    """z_k = the row (of CSR; of CSC the column) of entry k, 0 <= k < n.   Inputs: indptr, n"""

    no_derivative = "its output is integers"

    def output_types(self, indptr: TensorVariable, n: TensorVariable) -> list[TensorType]:
        return [TensorType(indptr.dtype, (known_length(n),))]

    def perform(self, indptr: Any, n: Any) -> Any:
        if indptr[-1] != n or indptr[0] != 0:
            raise ShapeError(f"sparse: pointers end with {indptr[-1]}, for {int(n)} entries")
        return major_indices(indptr).astype(indptr.dtype)

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        return [(node.inputs[1],)]

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        return [[False], [False]]


@record
class InRange(Op):
    """z = x, a view; an error unless all elements are at least 0 and below n.   (..), () -> (..)"""

    name: str

    no_derivative = "its output is integers"

    def output_types(self, x: Any, n: Any) -> list[Type]:
        return [x.type]

    def perform(self, x: Any, n: Any) -> Any:
        values.check_range(x, int(n), self.name)
        return x

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        return [shapes[0]]

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        return [[False], [False]]

    view_map = {0: (0,)}


def check_index_vectors(name: str, *vectors: Any) -> None:
    """Raise DTypeError unless all are vectors of one of the dtypes of indices."""
    for x in vectors:
        if x.ndim != 1 or x.dtype not in values.INDEX_DTYPES or x.dtype != vectors[0].dtype:
            raise DTypeError(
                f"{name}: {x} ({x.type}) must be a vector of {vectors[0].dtype}, int32 or int64"
            )


@record
class Canonical(Op):
    """data', indices', indptr' = the same matrix with ascending indices and no duplicates.

    Inputs: data, indices, indptr, and the int64 scalars n_major, n_minor, to which the pattern must
    fit. Entries at one place are added up. A canonical pattern is passed on without copying.
    """

    multiple_outputs = True

    def output_types(
        self, data: Any, indices: Any, indptr: Any, n_major: Any, n_minor: Any
    ) -> list[Type]:
        check_index_vectors("Canonical", indices, indptr)
        if data.ndim not in (1, 3):
            raise ShapeError(
                f"Canonical: data is {data} ({data.type}); a vector of entries is needed, or an "
                "array of blocks"
            )
        n = known_length(n_major)
        return [
            TensorType(data.dtype, (None, *data.type.shape[1:])),
            TensorType(indices.dtype, VECTOR),
            TensorType(indices.dtype, indptr.type.shape if n is None else (n + 1,)),
        ]

    def perform(
        self, data: Any, indices: Any, indptr: Any, n_major: Any, n_minor: Any
    ) -> tuple[Any, ...]:
        n, m = int(n_major), int(n_minor)
        if n < 0 or m < 0:
            raise ShapeError(f"sparse matrix: the shape ({n}, {m}) is negative")
        check_lengths(data, indices)
        values.check_compressed(indices, indptr, n, m, "sparse matrix")
        values.check_fits(indices.dtype.name, (n, m), len(data), "sparse matrix")
        stored = int(indptr[-1])
        return sorted_arrays(data[:stored], indices[:stored], indptr)

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        stored = ShapeI(0)(node.outputs[1])
        return [(stored, *shapes[0][1:]), (stored,), shapes[2]]

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        return [[True, False, False]] + [[False] * 3] * 4

    def pullback(self, inputs: Any, outputs: Any, output_grads: Any) -> list[Any]:
        _, indices, indptr = outputs
        found = Lookup()(output_grads[0], indices, indptr, inputs[1], inputs[2])
        return [found, *no_gradient(4)]

    def pushforward(self, inputs: Any, outputs: Any, tangents: Any) -> list[Any]:
        return [self(tangents[0], *inputs[1:])[0], None, None]

    view_map = {0: (0,), 1: (1,), 2: (2,)}


@record
class SortIndices(Op):
    """As Canonical, for a pattern that is known to be in range.   Inputs: data, indices, indptr"""

    multiple_outputs = True

    def output_types(self, data: Any, indices: Any, indptr: Any) -> list[Type]:
        check_index_vectors("SortIndices", indices, indptr)
        return [
            TensorType(data.dtype, (None, *data.type.shape[1:])),
            TensorType(indices.dtype, VECTOR),
            indptr.type,
        ]

    def perform(self, data: Any, indices: Any, indptr: Any) -> tuple[Any, ...]:
        check_lengths(data, indices)
        return sorted_arrays(data, indices, indptr)

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        stored = ShapeI(0)(node.outputs[1])
        return [(stored, *shapes[0][1:]), (stored,), shapes[2]]

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        return [[True, False, False]] + [[False] * 3] * 2

    def pullback(self, inputs: Any, outputs: Any, output_grads: Any) -> list[Any]:
        _, indices, indptr = outputs
        return [Lookup()(output_grads[0], indices, indptr, *inputs[1:]), *no_gradient(2)]

    def pushforward(self, inputs: Any, outputs: Any, tangents: Any) -> list[Any]:
        return [self(tangents[0], *inputs[1:])[0], None, None]

    view_map = {0: (0,), 1: (1,), 2: (2,)}


def check_lengths(data: Any, indices: Any) -> None:
    """Raise ShapeError unless there is one entry for each index."""
    if len(data) != len(indices):
        raise ShapeError(f"sparse matrix: {len(data)} entries of data for {len(indices)} indices")


def sorted_arrays(data: Any, indices: Any, indptr: Any) -> tuple[Any, ...]:
    """Return data, indices and indptr in canonical form; the arrays themselves if they are."""
    major = major_indices(indptr)
    same = major[1:] == major[:-1]
    if not (same & (indices[1:] <= indices[:-1])).any():
        return data, indices, indptr
    order = np.lexsort((indices, major))
    major, indices, data = major[order], indices[order], data[order]
    first = np.ones(len(indices), bool)
    first[1:] = (major[1:] != major[:-1]) | (indices[1:] != indices[:-1])
    starts = np.flatnonzero(first)
    add = np.logical_or if data.dtype.kind == "b" else np.add
    summed = add.reduceat(data, starts, axis=0)
    counts = np.bincount(major[first], minlength=len(indptr) - 1)
    pointers = np.concatenate([[0], np.cumsum(counts)]).astype(indptr.dtype)
    return summed.astype(data.dtype, copy=False), indices[first], pointers


@record
class Lookup(Op):
    """z_k = the entry of a matrix at place k of another pattern, 0 where it stores none.

    Inputs: data, indices, indptr of the matrix, in canonical form; indices, indptr of the pattern,
    in any order. Both have as many major slices.
    """

    def output_types(
        self, data: Any, indices: Any, indptr: Any, at_indices: Any, at_indptr: Any
    ) -> list[Type]:
        return [TensorType(data.dtype, (*at_indices.type.shape, *data.type.shape[1:]))]

    def perform(self, data: Any, indices: Any, indptr: Any, at_indices: Any, at_indptr: Any) -> Any:
        if len(indptr) != len(at_indptr):
            raise ShapeError(
                f"sparse: a matrix with {len(indptr) - 1} rows (csr) or columns (csc) is read at a "
                f"pattern with {len(at_indptr) - 1}"
            )
        if indices is at_indices and indptr is at_indptr:
            return data.copy()
        return lookup(data, indices, indptr, at_indices, major_indices(at_indptr))

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        return [(*shapes[3], *shapes[0][1:])]

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        return [[True]] + [[False]] * 4

    def pullback(self, inputs: Any, outputs: Any, output_grads: Any) -> list[Any]:
        _, indices, indptr, at_indices, at_indptr = inputs
        # Places that are asked for twice give their gradients to one entry.
        g = SortIndices()(output_grads[0], at_indices, at_indptr)
        return [Lookup()(*g, indices, indptr), *no_gradient(4)]

    def pushforward(self, inputs: Any, outputs: Any, tangents: Any) -> list[Any]:
        return [self(tangents[0], *inputs[1:])]


def last_index(indices: TensorVariable) -> TensorVariable:
    """Return the largest index, -1 if there is none, as an int64 scalar."""
    return LargestIndex()(indices)


@record
class LargestIndex(Op):
    """z = the largest of the indices; -1 if there are none.   (n,) -> (), int64"""

    no_derivative = "its output is an integer"

    def output_types(self, indices: TensorVariable) -> list[TensorType]:
        return [TensorType("int64", ())]

    def perform(self, indices: Any) -> Any:
        return np.asarray(indices.max(initial=-1), np.int64)

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        return [()]

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        return [[False]]


def major_indices(indptr: Any) -> Any:
    """Return for each entry the number of its major slice (an array of NumPy)."""
    return np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))


def place_keys(*places: tuple[Any, Any]) -> list[Any]:
    """Return for (major, minor) pairs of arrays numbers that compare as the pairs do."""
    width = max(int(minor.max(initial=-1)) for _, minor in places) + 1
    height = max(int(major.max(initial=-1)) for major, _ in places) + 1
    if width * height < 2**63:
        return [np.asarray(major, np.int64) * width + minor for major, minor in places]
    pairs = np.concatenate([np.stack(np.broadcast_arrays(*p), axis=1) for p in places])
    _, rank = np.unique(pairs, axis=0, return_inverse=True)
    return np.split(rank, np.cumsum([len(minor) for _, minor in places])[:-1])


def lookup(data: Any, indices: Any, indptr: Any, minor: Any, major: Any) -> Any:
    """Return the entries at (major, minor) of a canonical pattern, 0 where there is none."""
    if not len(indices) or not len(minor):
        return np.zeros((len(minor), *data.shape[1:]), data.dtype)
    keys, wanted = place_keys((major_indices(indptr), indices), (major, minor))
    place = np.searchsorted(keys, wanted)
    place[place == len(keys)] = 0
    result = data[place]
    result[keys[place] != wanted] = 0
    return result


@record
class LookupPairs(Op):
    """z_k = the entry at (major_k, minor_k) of a matrix, 0 where it stores none.

    Inputs: data, indices, indptr in canonical form; the vectors major, minor, which are in range.
    """

    def output_types(
        self, data: Any, indices: Any, indptr: Any, major: Any, minor: Any
    ) -> list[Type]:
        return [TensorType(data.dtype, major.type.shape)]

    def perform(self, data: Any, indices: Any, indptr: Any, major: Any, minor: Any) -> Any:
        values.check_range(major, len(indptr) - 1, "getitem: positions")
        return lookup(data, indices, indptr, minor, major)

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        return [shapes[3]]

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        return [[True]] + [[False]] * 4

    def pullback(self, inputs: Any, outputs: Any, output_grads: Any) -> list[Any]:
        _, indices, indptr, major, minor = inputs
        n = ShapeI(0)(indptr) - 1
        g = FromTriplets()(output_grads[0], major, minor, n, last_index(minor) + 1)
        return [Lookup()(*g, indices, indptr), *no_gradient(4)]

    def pushforward(self, inputs: Any, outputs: Any, tangents: Any) -> list[Any]:
        return [self(tangents[0], *inputs[1:])]


@record
class FromTriplets(Op):
    """data', indices', indptr' = the matrix with data_k at (major_k, minor_k), in canonical form.

    Inputs: data, the vectors major and minor, and the int64 scalars n_major, n_minor. Entries at
    one place are added up; what lies outside is an error.
    """

    multiple_outputs = True

    def output_types(
        self, data: Any, major: Any, minor: Any, n_major: Any, n_minor: Any
    ) -> list[Type]:
        check_index_vectors("FromTriplets", major, minor)
        n = known_length(n_major)
        return [
            TensorType(data.dtype, VECTOR),
            TensorType(major.dtype, VECTOR),
            TensorType(major.dtype, (None if n is None else n + 1,)),
        ]

    def perform(
        self, data: Any, major: Any, minor: Any, n_major: Any, n_minor: Any
    ) -> tuple[Any, ...]:
        n, m = int(n_major), int(n_minor)
        if not len(data) == len(major) == len(minor):
            raise ShapeError(
                f"sparse: {len(data)} values for {len(major)} rows and {len(minor)} columns"
            )
        values.check_range(major, n, "sparse: the rows (csr) or columns (csc) of entries")
        values.check_range(minor, m, "sparse: the columns (csr) or rows (csc) of entries")
        values.check_fits(major.dtype.name, (n, m), len(data))
        order = np.argsort(major, kind="stable")
        counts = np.bincount(major, minlength=n)
        indptr = np.concatenate([[0], np.cumsum(counts)]).astype(major.dtype)
        return sorted_arrays(data[order], minor[order], indptr)

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        stored = ShapeI(0)(node.outputs[1])
        return [(stored,), (stored,), (node.inputs[3] + 1,)]

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        return [[True, False, False]] + [[False] * 3] * 4

    def pullback(self, inputs: Any, outputs: Any, output_grads: Any) -> list[Any]:
        _, indices, indptr = outputs
        _, major, minor, *_ = inputs
        return [LookupPairs()(output_grads[0], indices, indptr, major, minor), *no_gradient(4)]

    def pushforward(self, inputs: Any, outputs: Any, tangents: Any) -> list[Any]:
        return [self(tangents[0], *inputs[1:])[0], None, None]


@record
class Pointers(Op):
    """z_i = how many of the sorted major indices are below i, i = 0 .. n.   Inputs: major, n"""

    no_derivative = "its output is integers"

    def output_types(self, major: TensorVariable, n: TensorVariable) -> list[TensorType]:
        known = known_length(n)
        return [TensorType(major.dtype, (None if known is None else known + 1,))]

    def perform(self, major: Any, n: Any) -> Any:
        return np.searchsorted(major, np.arange(int(n) + 1)).astype(major.dtype)

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        return [(node.inputs[1] + 1,)]

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        return [[False], [False]]


def pointers_of(major: Any, n: Any) -> TensorVariable:
    """Return ``indptr`` for sorted major indices."""
    return Pointers()(major, as_tensor_variable(n, dtype="int64"))


def common_indices(*vectors: TensorVariable) -> list[TensorVariable]:
    """Return index vectors at their common dtype."""
    dtype = dtypes.upcast(*(v.dtype for v in vectors))
    return [cast_to(v, dtype) for v in vectors]
