"""Rewrites of graphs with sparse matrices: lowering to arrays, and less work on arrays.

Laws that these rules keep: a pattern that comes from one of ``PATTERNS`` is canonical and in range;
what an op would have refused at run time is refused by what takes its place.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from symcomp.config import config
from symcomp.core.graph import FunctionGraph
from symcomp.core.node import Apply
from symcomp.core.tensor import TensorConstant
from symcomp.ops.control.graph_op import GraphOp
from symcomp.ops.convert import as_tensor_variable, cast_to, with_rank
from symcomp.ops.elementwise.elemwise import Elemwise
from symcomp.ops.elementwise.scalar_math import add, maximum, minimum, mul
from symcomp.ops.indexing.subtensors import getitem
from symcomp.ops.linalg.products import Dot
from symcomp.ops.reductions.reduce import Reduce
from symcomp.ops.shapes.alloc import Alloc
from symcomp.ops.shapes.dimshuffle import DimShuffle
from symcomp.ops.shapes.shape import ShapeI
from symcomp.rewrite.blas import as_scaled, used_once
from symcomp.rewrite.checks import with_lengths
from symcomp.rewrite.engine import Engine
from symcomp.rewrite.inline import unused_outputs
from symcomp.rewrite.rule import RuleSet, computed_by, rule
from symcomp.rewrite.shapes import shapes_of
from symcomp.sparse.components import Assemble, Components
from symcomp.sparse.convert import GatherDense, NonzeroPattern, ScatterDense, TransposeCompressed
from symcomp.sparse.fused import GatherFill, ScatterAdd, Usmm
from symcomp.sparse.graphs import graph_on_arrays
from symcomp.sparse.lowering import LOWERINGS
from symcomp.sparse.pairwise import CombinePatterns
from symcomp.sparse.patterns import Canonical, FromTriplets, Lookup, MajorIndices, SortIndices
from symcomp.sparse.products import CompressedDot, CompressedMatMul, MaskedMatMul, SampledDot
from symcomp.sparse.reductions import SegmentReduce
from symcomp.sparse.slicing import CropMinor, JoinMinor, PutMajor, TakeMajor
from symcomp.sparse.solve import Factorize, SolveFactorized, SparseSolve
from symcomp.sparse.structure import DropZeros

# Ops whose outputs 1 and 2 are a canonical pattern.
PATTERNS = (
    Canonical, CombinePatterns, Components, CompressedMatMul, CropMinor, DropZeros, FromTriplets,
    JoinMinor, NonzeroPattern, PutMajor, SortIndices, TakeMajor, TransposeCompressed,
)  # fmt: skip
# Functions of pairs of entries, where both matrices have one pattern.
ON_ENTRIES = {"add": add, "mul": mul, "maximum": maximum, "minimum": minimum}
# Dtypes whose dense results can be accumulated in place.
FLOATING = ("float32", "float64", "complex64", "complex128")


def pattern_source(indices: Any, indptr: Any) -> Apply | None:
    """Return the node that makes a pattern, if it is known to be canonical."""
    node = indices.owner
    if node is None or indptr.owner is not node:
        return None
    if isinstance(node.op, GraphOp):
        made = node.op.graph.outputs
        return node if pattern_source(made[indices.index], made[indptr.index]) else None
    if not isinstance(node.op, PATTERNS):
        return None
    return node if (indices.index, indptr.index) == (1, 2) else None


# -- from sparse matrices to arrays


@rule(*LOWERINGS, why="programs work on arrays, not on Python objects")
def lower(node: Apply, graph: Any) -> Any:
    """op(sparse x) -> the matrix assembled from ops on the arrays of x"""
    return LOWERINGS[type(node.op)](node)


@rule(Components, why="the components of an assembled matrix are the arrays it was assembled from")
def components_of_assembled(node: Apply, graph: Any) -> Any:
    """components(assemble(data, indices, indptr, shape)) -> data, indices, indptr, shape"""
    made = computed_by(node.inputs[0], Assemble)
    return None if made is None else made.inputs


@rule(Assemble, why="a matrix assembled from its own components is itself")
def assembled_of_components(node: Apply, graph: Any) -> Any:
    """assemble(components(x)) -> x"""
    source = node.inputs[0].owner
    if source is None or not isinstance(source.op, Components):
        return None
    whole = all(v.owner is source and v.index == k for k, v in enumerate(node.inputs))
    x = source.inputs[0]
    return x if whole and node.op.kind.is_super(x.type) else None


@rule(SortIndices, why="the pattern is sorted and without duplicates already")
def sorted_pattern(node: Apply, graph: Any) -> Any:
    """sort_indices(data, indices, indptr) -> data, indices, indptr, of a canonical pattern"""
    return None if pattern_source(*node.inputs[1:]) is None else node.inputs


@rule(Canonical, why="the pattern is that of a matrix of the same shape")
def pattern_of_matrix(node: Apply, graph: Any) -> Any:
    """canonical(data, indices, indptr, shape) -> data, indices, indptr, all of one matrix"""
    data, indices, indptr, n_major, n_minor = node.inputs
    source = pattern_source(indices, indptr)
    if source is None or not isinstance(source.op, Components):
        return None
    kind = source.inputs[0].type
    if not kind.is_compressed:
        return None
    axes = (1, 0) if kind.format == "csc" else (0, 1)
    fits = all(
        _is_entry(n, source.outputs[3], axis, kind.shape[axis])
        for n, axis in zip((n_major, n_minor), axes, strict=True)
    )
    return [data, indices, indptr] if fits else None


def _is_entry(n: Any, shape: Any, axis: int, known: int | None) -> bool:
    """Return whether ``n`` is the entry of a shape at ``axis``."""
    if isinstance(n, TensorConstant):
        return known is not None and int(n.data) == known
    read: Any = getitem(shape, axis).owner
    return n.owner is not None and n.owner.inputs == [shape] and n.owner.op == read.op


@rule(Lookup, why="each place of the pattern is its own")
def lookup_of_own_pattern(node: Apply, graph: Any) -> Any:
    """lookup(data, pattern, the same pattern) -> data"""
    data, indices, indptr, at_indices, at_indptr = node.inputs
    same = indices is at_indices and indptr is at_indptr
    return data if same and pattern_source(indices, indptr) is not None else None


@rule(TransposeCompressed, why="transposed twice, a matrix in canonical form is itself")
def transposed_twice(node: Apply, graph: Any) -> Any:
    """transpose(transpose(x)) -> x, and of x with other entries those in their first order"""
    data, indices, indptr, _ = node.inputs
    source = pattern_source(indices, indptr)
    if source is None or not isinstance(source.op, TransposeCompressed):
        return None
    _, first_indices, first_indptr, _ = source.inputs
    if data.owner is source and data.index == 0:
        return [source.inputs[0], first_indices, first_indptr]
    found = [None, first_indices, first_indptr]
    used = [graph.clients.get(node.outputs[k]) for k in (1, 2)]
    return found if any(used) else None


@rule(CombinePatterns, why="the entries of one pattern are vectors of one length")
def combined_on_one_pattern(node: Apply, graph: Any) -> Any:
    """add(data_1, pattern, data_2, pattern) -> data_1 + data_2, pattern; likewise for products and
    extremes
    """
    d, i, p, e, j, q, _ = node.inputs
    if i is not j or p is not q or node.op.kind not in ON_ENTRIES:
        return None
    if pattern_source(i, p) is None:
        return None
    return [ON_ENTRIES[node.op.kind](d, e), i, p]


@rule(SparseSolve, why="one factorization serves all systems with a matrix and its transpose")
def solve_by_factorization(node: Apply, graph: Any) -> Any:
    """solve(a, b) -> solve_factorized(factorize(a), b)"""
    data, indices, indptr, b = node.inputs
    factor = Factorize(node.op.method)(data, indices, indptr)
    return SolveFactorized(node.op.transposed)(factor, b)


# -- products


@rule(CompressedDot, why="the rows of the transpose are read as columns")
def dot_of_transposed(node: Apply, graph: Any) -> Any:
    """dot(transpose(s), d) -> dot(s, d) with s read the other way"""
    data, indices, indptr, n, dense = node.inputs
    source = pattern_source(indices, indptr)
    if source is None or not isinstance(source.op, TransposeCompressed):
        return None
    if data.owner is not source or data.index != 0:
        return None
    d, i, p, minor = source.inputs
    return CompressedDot(not node.op.transposed)(d, i, p, minor, dense)


@rule("add", "sub", why="products are accumulated in place")
def product_into_sum(node: Apply, graph: Any) -> Any:
    """z + alpha dot(s, d) -> usmm(z, alpha, s, d), where nothing is stretched"""
    out, minus = node.outputs[0], node.op.scalar.name == "sub"
    if out.dtype not in FLOATING or len(node.inputs) < 2:
        return None
    for place in reversed(range(len(node.inputs))):
        if minus and place == 0:
            continue
        found = as_scaled(node.inputs[place], graph)
        product = computed_by(found.base, CompressedDot)
        if product is None or not used_once(found.base, graph):
            continue
        others = [x for i, x in enumerate(node.inputs) if i != place]
        z = others[0] if len(others) == 1 else add(*others)
        shapes = (z.type.broadcastable, found.base.type.broadcastable)
        if z.dtype != out.dtype or found.base.dtype != out.dtype or shapes[0] != shapes[1]:
            continue
        found.number *= -1 if minus else 1
        alpha = found.factor(out.dtype)
        if alpha is None:
            continue
        alpha = as_tensor_variable(alpha)
        return Usmm(product.op.transposed)(z, alpha, *product.inputs)
    return None


@rule(Dot, why="the product with fewer columns goes through the sparse matrix")
def sparse_product_last(node: Apply, graph: Any) -> Any:
    """dot(dot(s, x), y) -> dot(s, dot(x, y)), where y has fewer columns than rows"""
    product, y = node.inputs
    inner = computed_by(product, CompressedDot)
    if inner is None or not used_once(product, graph) or product.ndim != 2:
        return None
    facts = shapes_of(graph)
    x = inner.inputs[4]
    n, k = facts.of(product)
    m, columns = facts.of(x)[0], facts.of(y)[1] if y.ndim == 2 else 1
    if not _saves((columns, k), (m, n)):
        return None
    return inner.op(*inner.inputs[:4], Dot()(x, y))


@rule(CompressedDot, why="the product with fewer columns goes through the sparse matrix")
def sparse_product_first(node: Apply, graph: Any) -> Any:
    """dot(s, dot(x, y)) -> dot(dot(s, x), y), where y has more columns than rows"""
    product = node.inputs[4]
    inner = computed_by(product, Dot)
    if inner is None or not used_once(product, graph) or product.ndim != 2:
        return None
    x, y = inner.inputs
    if x.ndim != 2 or y.ndim != 2:
        return None
    facts = shapes_of(graph)
    m, columns = facts.of(product)
    n, k = facts.of(node.outputs[0])[0], facts.of(x)[1]
    if not _saves((k, columns), (n, m)):
        return None
    return Dot()(node.op(*node.inputs[:4], x), y)


def _saves(*pairs: tuple[Any, Any]) -> bool:
    """Return whether in each pair the first length is known not to be more, in one less."""
    known = [(isinstance(a, int) and isinstance(b, int), a, b) for a, b in pairs]
    if not all(a is b or (both and a <= b) for both, a, b in known):
        return False
    return any(both and a < b for both, a, b in known)


@rule(Lookup, why="only the entries of the product that are read are computed")
def lookup_of_product(node: Apply, graph: Any) -> Any:
    """lookup(dot(x, y), pattern) -> masked_dot(x, y, pattern), where the product is read here"""
    source = pattern_source(*node.inputs[1:3])
    if source is None or not isinstance(source.op, CompressedMatMul):
        return None
    if node.inputs[0].owner is not source or not _read_by(source, node, graph):
        return None
    return MaskedMatMul()(*source.inputs, *_as_index(source.inputs[1], *node.inputs[3:]))


def _as_index(like: Any, *vectors: Any) -> list[Any]:
    return [cast_to(v, like.dtype) for v in vectors]


def _read_by(source: Apply, node: Apply, graph: Any) -> bool:
    """Return whether nothing but ``node`` reads the outputs of ``source``."""
    return all(client is node for out in source.outputs for client, _ in graph.clients.get(out, {}))


@rule(Lookup, why="the entries of a sum are the sums of entries")
def lookup_of_sum(node: Apply, graph: Any) -> Any:
    """lookup(add(x, y), pattern) -> lookup(x, pattern) + lookup(y, pattern)"""
    source = pattern_source(*node.inputs[1:3])
    if source is None or not isinstance(source.op, CombinePatterns) or source.op.kind != "add":
        return None
    if node.inputs[0].owner is not source or not _read_by(source, node, graph):
        return None
    d, i, p, e, j, q, _ = source.inputs
    at = _as_index(i, *node.inputs[3:])
    return add(Lookup()(d, i, p, *at), Lookup()(e, j, q, *at))


@rule(Lookup, why="the entries of a dense matrix made sparse are its elements")
def lookup_of_dense(node: Apply, graph: Any) -> Any:
    """lookup(csr_from_dense(x), pattern) -> the elements of x at the pattern"""
    source = pattern_source(*node.inputs[1:3])
    if source is None or not isinstance(source.op, NonzeroPattern):
        return None
    if node.inputs[0].owner is not source:
        return None
    return GatherDense()(source.inputs[0], *node.inputs[3:])


# -- dense matrices that are read at a pattern


@rule(GatherDense, why="the entries that are read were just written")
def gather_of_scattered(node: Apply, graph: Any) -> Any:
    """gather(scatter(data, pattern), pattern) -> data"""
    dense, indices, indptr = node.inputs
    made = computed_by(dense, ScatterDense)
    if made is None or made.inputs[1] is not indices or made.inputs[2] is not indptr:
        return None
    return made.inputs[0]


@rule(GatherDense, why="only the elements of the product that are read are computed")
def gather_of_product(node: Apply, graph: Any) -> Any:
    """gather(dot(x, y), pattern) -> sampled_dot(x, y.T, pattern), where the product is read here"""
    dense, indices, indptr = node.inputs
    swapped = computed_by(dense, DimShuffle)
    turned = swapped is not None and swapped.op.order == (1, 0)
    product = swapped.inputs[0] if turned and swapped is not None else dense
    inner = computed_by(product, Dot)
    if inner is None or not used_once(product, graph) or not used_once(dense, graph):
        return None
    x, y = inner.inputs
    if x.ndim != 2 or y.ndim != 2 or x.dtype != y.dtype:
        return None
    across, along = x, DimShuffle(2, (1, 0))(y)
    if turned:
        across, along = along, across
    return SampledDot()(indices, indptr, across, along)


@rule(GatherDense, why="an element of a filled matrix is the filling value")
def gather_of_fill(node: Apply, graph: Any) -> Any:
    """gather(alloc(value, n, m), pattern) -> the value for each entry"""
    dense, indices, indptr = node.inputs
    swapped = computed_by(dense, DimShuffle)
    turned = swapped is not None and swapped.op.order == (1, 0)
    filled = computed_by(swapped.inputs[0] if turned and swapped is not None else dense, Alloc)
    if filled is None:
        return None
    value, *lengths = filled.inputs
    value = with_rank(value, 2)
    if not any(n == 1 for n in value.type.shape):
        return None
    if turned:
        value, lengths = DimShuffle(2, (1, 0))(value), lengths[::-1]
    return GatherFill()(value, *lengths, indices, indptr)


@rule(GatherDense, why="only the elements that are read are computed")
def gather_of_elemwise(node: Apply, graph: Any) -> Any:
    """gather(f(x, y), pattern) -> f(gather(x, pattern), gather(y, pattern)), read here alone"""
    dense, indices, indptr = node.inputs
    inner = computed_by(dense, Elemwise)
    if inner is None or type(inner.op) is not Elemwise or inner.op.inplace:
        return None
    if not used_once(dense, graph):
        return None
    lengths = shapes_of(graph).of(dense)
    found = []
    for x in inner.inputs:
        entries = _gathered(x, lengths, indices, indptr, graph)
        if entries is None:
            return None
        found.append(entries)
    return inner.op(*found)


def _gathered(x: Any, lengths: Any, indices: Any, indptr: Any, graph: Any) -> Any:
    """Return the elements of an operand that is stretched to a matrix, at a pattern."""
    stretched = x.type.broadcastable
    if all(stretched):
        return DimShuffle(2, (0,))(x)
    wide = {a: n for a, n in enumerate(lengths) if not stretched[a]}
    checked = with_lengths("sparse", x, wide, graph)
    if checked is None:
        return None
    if not any(stretched):
        return GatherDense()(checked, indices, indptr)
    axis = stretched.index(False)
    vector = DimShuffle(2, (axis,))(checked)
    if axis == 1:
        return getitem(vector, indices)
    return getitem(vector, MajorIndices()(indptr, ShapeI(0)(indices)))


# -- sparse matrices made dense


@rule(Elemwise, why="zeros stay zeros, so only entries are computed")
def elemwise_of_scattered(node: Apply, graph: Any) -> Any:
    """f(scatter(data)) -> scatter(f(data)), for f(0) = 0"""
    if len(node.inputs) != 1 or node.op.inplace:
        return None
    made = computed_by(node.inputs[0], ScatterDense)
    if made is None or not used_once(node.inputs[0], graph) or not _keeps_zero(node):
        return None
    return ScatterDense()(node.op(made.inputs[0]), *made.inputs[1:])


def _keeps_zero(node: Apply) -> bool:
    zero = np.zeros(1, node.inputs[0].dtype)
    with np.errstate(all="ignore"):
        return bool(np.all(np.asarray(node.op.perform(zero)) == 0))


@rule(Reduce, why="zeros add nothing")
def sum_of_scattered(node: Apply, graph: Any) -> Any:
    """sum(scatter(data)) -> sum(data); sum(scatter(data), axis=1) -> sums of rows"""
    made = computed_by(node.inputs[0], ScatterDense)
    if made is None or node.op.reduction.name != "sum":
        return None
    data, indices, indptr, _ = made.inputs
    if node.op.axes == (0, 1):
        return Reduce(node.op.reduction, (0,), node.op.acc_dtype)(data)
    if node.op.axes == (1,):
        sums = SegmentReduce("sum")(data, indptr)
        return sums if sums.dtype == node.outputs[0].dtype else None
    return None


@rule("add", why="entries are added at their places, to a copy of the dense matrix")
def add_of_scattered(node: Apply, graph: Any) -> Any:
    """x + scatter(data) -> scatter_add(x, data), where nothing is stretched"""
    out = node.outputs[0]
    for place in reversed(range(len(node.inputs))):
        term = node.inputs[place]
        made = computed_by(term, ScatterDense)
        if made is None or not used_once(term, graph) or term.dtype != out.dtype:
            continue
        others = [x for i, x in enumerate(node.inputs) if i != place]
        x = others[0] if len(others) == 1 else add(*others)
        if x.dtype != out.dtype or x.type.broadcastable != term.type.broadcastable:
            continue
        data, indices, indptr, n = made.inputs
        return ScatterAdd()(x, data, indices, indptr, n)
    return None


@rule(Dot, why="zeros add nothing, unless they meet infinity or NaN", tags=("nan_unsafe", "unsafe"))
def dot_of_scattered(node: Apply, graph: Any) -> Any:
    """dot(scatter(s), d) -> dot(s, d)"""
    x, y = node.inputs
    made = computed_by(x, ScatterDense)
    if made is not None and x.ndim == 2:
        return CompressedDot(False)(*made.inputs, y)
    made = computed_by(y, ScatterDense)
    if made is None or y.ndim != 2:
        return None
    if x.ndim == 1:
        return CompressedDot(True)(*made.inputs, x)
    turned = CompressedDot(True)(*made.inputs, DimShuffle(2, (1, 0))(x))
    return DimShuffle(2, (1, 0))(turned)


# -- patterns of arguments

# Ops that look at the range of the indices that they read, and give the same for any order of the
# entries of a row, and for several at one place; with the position of their first array.
ANY_ORDER = {CompressedDot: 0, Usmm: 2}


@rule(Components, why="products look at the indices themselves, and take them in any order")
def read_in_any_order(node: Apply, graph: Any) -> Any:
    """components(x) -> components(x, canonical=False), where products with dense matrices are all
    that reads it
    """
    if not node.op.canonical or not node.inputs[0].type.is_compressed:
        return None
    if not _take_any_order(node.outputs[:3], graph):
        return None
    return Components(canonical=False)(node.inputs[0])


def _take_any_order(arrays: Any, graph: FunctionGraph) -> bool:
    """Tell whether all that reads the arrays of a matrix takes the entries in any order."""
    for k, array in enumerate(arrays):
        for reader, place in graph.clients.get(array, {}):
            first = place - k
            if not isinstance(reader, Apply) or first < 0:
                return False
            given = reader.inputs[first : first + 3]
            if len(given) < 3 or any(x is not y for x, y in zip(given, arrays, strict=True)):
                return False
            if isinstance(reader.op, GraphOp):
                inside = reader.op.graph
                body = FunctionGraph(inside.inputs, inside.outputs)
                if not _take_any_order(body.inputs[first : first + 3], body):
                    return False
            elif ANY_ORDER.get(type(reader.op)) != first:
                return False
    return True


_LOWER = (
    lower, unused_outputs, components_of_assembled, assembled_of_components,
    sorted_pattern, pattern_of_matrix, lookup_of_own_pattern, transposed_twice,
    combined_on_one_pattern, solve_by_factorization,
)  # fmt: skip


@rule(GraphOp, why="plans of graphs on arrays need no Python objects", subclasses=True)
def lower_graph(node: Apply, graph: Any) -> Any:
    """op(sparse x) -> the matrices assembled from an op on the arrays of x"""

    def lower_inside(inside: FunctionGraph) -> None:
        Engine(inside, _LOWER_GRAPHS, "sparse lowering", on_error=config.on_opt_error).run()

    return graph_on_arrays(node, lower_inside)


LOWER = (*_LOWER, lower_graph)
_LOWER_GRAPHS = RuleSet(LOWER)
ARRAYS = (
    dot_of_transposed, product_into_sum, sparse_product_last, sparse_product_first,
    lookup_of_product, lookup_of_sum, lookup_of_dense, gather_of_scattered, gather_of_product,
    gather_of_fill, gather_of_elemwise, elemwise_of_scattered, sum_of_scattered, add_of_scattered,
)  # fmt: skip
UNSAFE = RuleSet([dot_of_scattered])
READS = (read_in_any_order,)
