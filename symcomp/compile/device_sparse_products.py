"""Products, sums and other functions of two sparse matrices on devices: patterns, then entries.

The number of entries depends on the patterns. So a product is three ops: ``PatternPointers`` counts
the entries of each row, the host reads how many there are in all, ``PatternIndices`` writes their
columns, and ``MaskedMatMul`` adds up the entries at these places. A sum reads the entries of both
matrices there.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Annotated, Any

import numpy as np

from symcomp.codegen.functions.c_scalars import C_TYPES
from symcomp.compile.device_matrices import (
    DeviceMatrixOp,
    SparsePattern,
    check_shapes,
    made_pattern,
)
from symcomp.core.closed import ClosedGraph
from symcomp.core.fields import one_of
from symcomp.core.node import Apply, Constant, Type, Variable
from symcomp.core.op import Op
from symcomp.core.record import record
from symcomp.core.tensor import TensorType
from symcomp.errors import ShapeError
from symcomp.gpu.kernels.sparse_patterns import (
    COMPARED,
    KINDS,
    plan_pattern_indices,
    plan_pattern_pointers,
)
from symcomp.gpu.kernels.sparse_rows import (
    CsrRows,
    plan_at_pattern,
    plan_dense_product,
    plan_in_range,
    plan_lookup,
    plan_product_entries,
    plan_transposed_rows,
)
from symcomp.gpu.lowerings.contract import TARGET, DeviceLowering, Plans
from symcomp.gpu.planner import Planner
from symcomp.gpu.region import DeviceGraph
from symcomp.gpu.transfers import DeviceLength
from symcomp.gpu.type import DeviceType
from symcomp.ops.shapes.shape import known_length
from symcomp.sparse import values
from symcomp.sparse.components import n_minor, parts_of
from symcomp.sparse.convert import GatherDense, ScatterDense, TransposeCompressed
from symcomp.sparse.pairwise import CombinePatterns
from symcomp.sparse.patterns import Lookup, check_index_vectors
from symcomp.sparse.products import MaskedMatMul, compressed_value
from symcomp.sparse.values import major_axis
from symcomp.vm.features import Lowering


class PatternOp(Op):
    """Base of the ops on two CSR patterns. Their first inputs: indices, indptr and n_minor of each,
    and data before them for comparisons.

    Attributes
    ----------
    kind : {"product", "union", "intersection", "neq", "lt", "gt"}
        The pattern that the two make.
    """

    kind: str
    no_derivative = "it is made when functions are compiled, when derivatives have been taken"

    @property
    def n_given(self) -> int:
        """The number of the inputs that are of both matrices."""
        return 8 if self.kind in COMPARED else 6

    def pattern_of(self, *given: Any) -> tuple[Any, Any]:
        """Return the indices and pointers that two patterns, or matrices, make."""
        if self.kind not in COMPARED:
            return made_pattern(self.kind, *given)
        d, i, p, n, e, j, q, m = given
        check_shapes(self.kind, (len(p) - 1, n), (len(q) - 1, m))
        _, indices, indptr = CombinePatterns(self.kind).perform(d, i, p, e, j, q, n)
        return indices, indptr

    def check_vectors(self, inputs: Sequence[Any], *more: Any) -> list[Any]:
        """Raise DTypeError unless all indices have one dtype; return them of the first matrix."""
        width = self.n_given // 2
        first, second = ([*inputs[k * width - 3 : k * width - 1]] for k in (1, 2))
        check_index_vectors(self.kind, *first, *second, *more)
        return first


@record
class PatternPointers(PatternOp):
    """indptr, count = where the rows of a pattern that two patterns make begin, and how many
    entries it has.
    """

    kind: Annotated[str, one_of(*KINDS, *COMPARED)]

    multiple_outputs = True

    def output_types(self, *inputs: Any) -> list[Type]:
        _, indptr = self.check_vectors(inputs)
        return [TensorType(indptr.dtype, indptr.type.shape), TensorType("int64", ())]

    def perform(self, *given: Any) -> tuple[Any, ...]:
        indices, indptr = self.pattern_of(*given)
        return indptr, np.array(len(indices), np.int64)

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        return [shapes[self.n_given // 2 - 2], ()]


@record
class PatternIndices(PatternOp):
    """indices = those of a pattern that two patterns make.

    Its last inputs are the outputs of ``PatternPointers``.
    """

    kind: Annotated[str, one_of(*KINDS, *COMPARED)]

    def output_types(self, *inputs: Any) -> list[Type]:
        indices, _ = self.check_vectors(inputs, inputs[-2])
        return [TensorType(indices.dtype, (None,))]

    def perform(self, *given: Any) -> Any:
        return self.pattern_of(*given[:-2])[0]

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        return [(node.inputs[-1],)]


@record
class KeptProduct(DeviceMatrixOp):
    """indices, indptr = those of the product of two matrices on a device, whose arrays are seen as
    those of CSR matrices; computed once for each pair of patterns.
    """

    multiple_outputs = True

    def output_types(self, x: Any, y: Any) -> list[Type]:
        device, kind = x.type.device, x.type.on_host
        n = kind.shape[major_axis(kind.format)]
        pointers = None if n is None else n + 1
        return [DeviceType(device, kind.index_dtype, (m,)) for m in (None, pointers)]

    def perform(self, x: Any, y: Any) -> tuple[Any, ...]:
        return tuple(x.pattern.product(y.pattern, _product_there))

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        return [(DeviceLength(0)(z),) for z in node.outputs]

    def _outputs_on_host(self, *inputs: Any) -> list[Variable]:
        pattern = [v for x in inputs for v in (*parts_of(x)[1:3], n_minor(x, parts_of(x)))]
        indptr, count = PatternPointers("product")(*pattern)
        return [PatternIndices("product")(*pattern, indptr, count), indptr]


def _product_there(x: SparsePattern, y: SparsePattern) -> tuple[Any, Any]:
    """Return the indices and pointers of the product of two patterns on a device; the host waits
    for the number of its entries.
    """
    first, second = _programs(x.indices.device, x.indices.dtype.name)
    given = [v for z in (x, y) for v in (z.indices, z.indptr, np.array(z.n_minor, np.int64))]
    starts, count = first.program(*given)
    (indices,) = second.program(*given, starts, count.get())
    return indices, starts


@cache
def _programs(device: str, dtype: str) -> tuple[DeviceGraph, DeviceGraph]:
    """Return what counts the entries of a product of patterns, and what writes their indices."""
    vector, number = TensorType(dtype, (None,)), TensorType("int64", ())
    given = [kind.make_variable() for kind in [vector, vector, number] * 2]
    counted = [vector.make_variable(), number.make_variable()]
    first = ClosedGraph(given, PatternPointers("product")(*given))
    second = ClosedGraph([*given, *counted], [PatternIndices("product")(*given, *counted)])
    return DeviceGraph(first, device, (2, 5)), DeviceGraph(second, device, (2, 5, 7))


@record
class DenseMatMul(Op):
    """z = the product of two CSR matrices as a dense one.

    Inputs: data, indices, indptr and n_minor of each.
    """

    no_derivative = "it is made when functions are compiled, when derivatives have been taken"

    def output_types(self, *inputs: Any) -> list[Type]:
        data, indices, indptr, _, _, others, pointers, m = inputs
        check_index_vectors("dot", indices, indptr, others, pointers)
        n = indptr.type.shape[0]
        return [TensorType(data.dtype, (None if n is None else n - 1, known_length(m)))]

    def perform(self, *given: Any) -> Any:
        check_shapes("product", (len(given[2]) - 1, given[3]), (len(given[6]) - 1, given[7]))
        x, y = compressed_value(*given[:4]), compressed_value(*given[4:])
        return np.asarray((x @ y).toarray(), given[0].dtype)

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        return [(shapes[2][0] - 1, node.inputs[7])]


# -- plans


def _rows(
    planner: Planner, node: Apply, given: Sequence[Any], first: int, length: int, with_data: bool
) -> CsrRows:
    """Return the matrix, or the pattern, whose arrays are the inputs from ``first`` on."""
    data = given[first] if with_data else None
    at = first + with_data
    indices, indptr = given[at : at + 2]
    if data is not None and data.size != indices.size:
        raise ShapeError(f"sparse: {data.size} entries of data for {indices.size} indices")
    if not are_in_range(node.inputs[at], length):
        indices = plan_in_range(planner, indices, length)
    return CsrRows(indices, indptr, data)


def are_in_range(indices: Any, length: int) -> bool:
    """Return whether indices are constants between 0 and a length."""
    if not isinstance(indices, Constant):
        return False
    return indices.data.size == 0 or 0 <= indices.data.min() <= indices.data.max() < length


def _factors(
    planner: Planner, node: Apply, given: Sequence[Any], with_data: bool, kind: str = "product"
) -> list[CsrRows]:
    """Return both factors of a product, or both matrices whose entries are paired."""
    width = 3 + with_data
    n, m = int(given[width - 1]), int(given[2 * width - 1])
    rows, met = (given[k * width - 2].shape[0] - 1 for k in (1, 2))
    check_shapes(kind, (rows, n), (met, m))
    return [
        _rows(planner, node, given, 0, n, with_data),
        _rows(planner, node, given, width, m, with_data),
    ]


def _plan_pointers(planner: Planner, node: Apply, given: Sequence[Any]) -> Sequence[Any]:
    op: Any = node.op
    factors = _factors(planner, node, given, op.kind in COMPARED, op.kind)
    return plan_pattern_pointers(planner, op.kind, *factors)


def _plan_indices(planner: Planner, node: Apply, given: Sequence[Any]) -> Sequence[Any]:
    op: Any = node.op
    x, y = _factors(planner, node, given, op.kind in COMPARED, op.kind)
    columns, starts, count = int(given[-3]), given[-2], int(given[-1])
    values.check_fits(x.indices.dtype, (x.count, columns), count, f"the {op.kind}")
    return [plan_pattern_indices(planner, op.kind, x, y, starts, count)]


def _plan_entries(planner: Planner, node: Apply, given: Sequence[Any]) -> Sequence[Any]:
    x, y = _factors(planner, node, given, True)
    pattern = CsrRows(*given[8:])
    if pattern.count != x.count:
        raise ShapeError(f"true_dot: {x.count} rows at a pattern of {pattern.count} rows")
    return [plan_product_entries(planner, x, y, pattern)]


def _plan_dense(planner: Planner, node: Apply, given: Sequence[Any]) -> Sequence[Any]:
    x, y = _factors(planner, node, given, True)
    return [plan_dense_product(planner, x, y, int(given[7]))]


def _plan_transpose(planner: Planner, node: Apply, given: Sequence[Any]) -> Sequence[Any]:
    n = int(given[3])
    z = plan_transposed_rows(planner, _rows(planner, node, given, 0, n, True), n)
    return [z.data, z.indices, z.indptr]


def _plan_scatter(planner: Planner, node: Apply, given: Sequence[Any]) -> Sequence[Any]:
    x = _rows(planner, node, given, 0, int(given[3]), True)
    z = planner.new(given[0].dtype, [x.count, int(given[3])])
    planner.clear(z)
    plan_at_pattern(planner, z, x, x.arrays(planner)[0], writes=True)
    return [z]


def _plan_gather(planner: Planner, node: Apply, given: Sequence[Any]) -> Sequence[Any]:
    dense = given[0]
    pattern = _rows(planner, node, given, 1, dense.shape[1], False)
    if dense.shape[0] != pattern.count:
        raise ShapeError(
            f"sparse: a dense matrix with {dense.shape[0]} rows (of csc: columns) meets a pattern "
            f"with {pattern.count} rows"
        )
    z = planner.new(dense.dtype, pattern.indices.shape)
    plan_at_pattern(planner, dense, pattern, z, writes=False)
    return [z]


def _plan_lookup(planner: Planner, node: Apply, given: Sequence[Any]) -> Sequence[Any]:
    data, indices, indptr, *places = given
    pattern = CsrRows(*places)
    if pattern.count != indptr.shape[0] - 1:
        raise ShapeError(
            f"sparse: a matrix with {indptr.shape[0] - 1} rows (csr) or columns (csc) is read at a "
            f"pattern with {pattern.count}"
        )
    if data.size != indices.size:
        raise ShapeError(f"sparse: {data.size} entries of data for {indices.size} indices")
    return [plan_lookup(planner, CsrRows(indices, indptr, data), pattern)]


def _numbers(node: Apply) -> frozenset[int]:
    """Return the inputs that are numbers: lengths, and counts of entries."""
    return frozenset(i for i, x in enumerate(node.inputs) if x.ndim == 0)


def _lowered(plan: Plans, only_moves: bool = False) -> Lowering:
    how = DeviceLowering(plan, _numbers, only_moves=only_moves)

    def lowering(node: Apply) -> DeviceLowering | None:
        arrays = [x for x in node.inputs if x.ndim]
        return how if all(x.dtype in C_TYPES and x.dtype != "float16" for x in arrays) else None

    return lowering


LOWERINGS: dict[tuple[type, str], Lowering] = {
    (PatternPointers, TARGET): _lowered(_plan_pointers),
    (PatternIndices, TARGET): _lowered(_plan_indices),
    (MaskedMatMul, TARGET): _lowered(_plan_entries),
    (DenseMatMul, TARGET): _lowered(_plan_dense),
    (TransposeCompressed, TARGET): _lowered(_plan_transpose, only_moves=True),
    (ScatterDense, TARGET): _lowered(_plan_scatter, only_moves=True),
    (GatherDense, TARGET): _lowered(_plan_gather, only_moves=True),
    (Lookup, TARGET): _lowered(_plan_lookup, only_moves=True),
}
