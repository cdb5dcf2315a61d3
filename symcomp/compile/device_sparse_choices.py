"""The choice of what devices compute of sparse matrices where the host reads a count of entries:
functions of two matrices, and slices.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from symcomp.compile.device_matrices import is_minor_length, matrix_of
from symcomp.compile.device_slices import RunEntries, RunPointers
from symcomp.compile.device_sparse_products import (
    DenseMatMul,
    KeptProduct,
    PatternIndices,
    PatternPointers,
)
from symcomp.config import config
from symcomp.core.graph import FunctionGraph
from symcomp.core.node import Apply, Constant, Variable
from symcomp.core.op import Op
from symcomp.gpu.driver.devices import canonical
from symcomp.gpu.kernels.sparse_patterns import COMPARED
from symcomp.gpu.lowerings.contract import lowering_of
from symcomp.gpu.transfers import ToDevice, ToHost
from symcomp.ops.convert import constant
from symcomp.ops.shapes.filled import alloc
from symcomp.ops.shapes.shape import ShapeI
from symcomp.rewrite.trace import Firing
from symcomp.sparse.convert import ScatterDense
from symcomp.sparse.pairwise import CombinePatterns
from symcomp.sparse.patterns import Lookup
from symcomp.sparse.products import CompressedMatMul, MaskedMatMul
from symcomp.sparse.rules import ON_ENTRIES
from symcomp.sparse.slicing import CropMinor, TakeMajor

# The inputs that the pattern of the result follows from.
PATTERNS = {
    CompressedMatMul: (1, 2, 5, 6), CombinePatterns: (1, 2, 4, 5), TakeMajor: (2, 3),
    CropMinor: (1, 2),
}  # fmt: skip
# For functions of pairs of entries, the pattern of the result.
PAIRED = {"add": "union", "maximum": "union", "minimum": "union", "mul": "intersection"}


def place_counted(graph: FunctionGraph, firings: list[Firing]) -> None:
    """Put ops with lowerings in the place of each product, of each function of pairs of entries of
    two sparse matrices, and of slices, that a device computes.
    """
    placer = _Placer(graph)
    for node in graph.toposort():
        for old, new in placer.replacements(node).items():
            graph.replace(old, new)
            what = "place_counted", node.source, str(node.op), str(new.owner or new)
            firings.append(Firing("device sparse", *what))


class _Placer:
    """Decides which nodes devices compute, in the order of a graph, and makes what replaces them.

    Attributes
    ----------
    graph : FunctionGraph
    there : dict of Variable to str
        The devices of values.
    """

    def __init__(self, graph: FunctionGraph) -> None:
        self.graph = graph
        self.there: dict[Variable, str] = {}
        # Patterns by the op and its inputs, so that the host waits once for equal ones.
        self._made: dict[Any, Sequence[Any]] = {}

    def replacements(self, node: Apply) -> dict[Any, Any]:
        """Note the device of a node's outputs; return the variables that replace them, or the
        dense matrix made of them.
        """
        device = self._device_of(node)
        if device is None:
            return {}
        found = self._placed(node, device) if _is_counted(node) else {}
        self.there.update(dict.fromkeys([*node.outputs, *found.values()], device))
        return found

    def _device_of(self, node: Apply) -> str | None:
        """Return the device that a node is computed on, or copies from, as far as it is known."""
        if isinstance(node.op, ToHost):
            return str(node.inputs[0].type.device)
        lowering = lowering_of(node)
        if lowering is None and not _is_counted(node):
            return None
        on_host = frozenset() if lowering is None else lowering.on_host(node)
        arrays = [x for i, x in enumerate(node.inputs) if i not in on_host and x in self.there]
        if arrays:
            return self.there[arrays[0]]
        is_product = isinstance(node.op, CompressedMatMul)
        floats = is_product and np.dtype(node.outputs[0].dtype).kind in "fc"
        return canonical(config.device) if floats and config.device != "cpu" else None

    def _placed(self, node: Apply, device: str) -> dict[Any, Any]:
        given, patterns = [*node.inputs], PATTERNS[type(node.op)]
        if not any(given[i] in self.there for i in patterns):
            _copy_one(given, patterns, device)
        if isinstance(node.op, TakeMajor | CropMinor):
            return dict(zip(node.outputs, _sliced(given, node), strict=True))
        if isinstance(node.op, CombinePatterns):
            return dict(zip(node.outputs, self._paired(given, node), strict=True))
        dense = _only_scattered(self.graph, node)
        if dense is not None:
            (z,) = _applied(DenseMatMul(), [*given[:7], dense.inputs[3]], node.source)
            return {dense.outputs[0]: z}
        indices, indptr = self._product(given[1:4], given[5:], node.source)
        (data,) = _applied(MaskedMatMul(), [*node.inputs, indices, indptr], node.source)
        return dict(zip(node.outputs, (data, indices, indptr), strict=True))

    def _paired(self, given: Sequence[Any], node: Apply) -> Sequence[Any]:
        """Return data, indices and indptr of a function of pairs of entries."""
        op: Any = node.op
        d, i, p, e, j, q, n = given
        if op.kind in COMPARED:
            indices, indptr = self._pattern(op.kind, [d, i, p, n, e, j, q, n], node.source)
            return [alloc(constant(np.bool_(True)), ShapeI(0)(indices)), indices, indptr]
        indices, indptr = self._pattern(PAIRED[op.kind], [i, p, n, j, q, n], node.source)
        both = [Lookup()(*arrays, indices, indptr) for arrays in ((d, i, p), (e, j, q))]
        return [ON_ENTRIES[op.kind](*both), indices, indptr]

    def _product(self, first: Sequence[Any], second: Sequence[Any], source: Any) -> Sequence[Any]:
        """Return the indices and pointers of the product of two patterns."""
        (indices, indptr, n), (others, pointers, m) = first, second
        x, y = matrix_of(indices, indptr), matrix_of(others, pointers)
        if x is not None and y is not None and x.type.device == y.type.device:
            same = x.type.on_host.index_dtype == y.type.on_host.index_dtype
            if same and is_minor_length(n, indices, x) and is_minor_length(m, others, y):
                return [ToHost()(z) for z in KeptProduct()(x, y)]
        return self._pattern("product", [*first, *second], source)

    def _pattern(self, kind: str, given: Sequence[Any], source: Any) -> Sequence[Any]:
        """Return the indices and pointers of a pattern that two patterns, or matrices, make."""
        key = kind, *given
        if key not in self._made:
            if all(isinstance(x, Constant) for x in given):
                values_given = (x.data for x in given)
                made = [constant(z) for z in PatternPointers(kind).pattern_of(*values_given)]
            else:
                starts, count = _applied(PatternPointers(kind), given, source)
                arrays = [*given, starts, count]
                made = [*_applied(PatternIndices(kind), arrays, source), starts]
            self._made[key] = made
        return self._made[key]


def _sliced(given: Sequence[Any], node: Apply) -> Sequence[Any]:
    """Return data, indices and indptr of a slice."""
    data, indices, indptr, *where = given
    takes = isinstance(node.op, TakeMajor)
    op = RunPointers("take" if takes else "crop")
    runs = _applied(op, [*where, indptr] if takes else [indices, indptr, *where], node.source)
    shift = constant(np.int64(0)) if takes else where[0]
    moved = _applied(RunEntries(), [data, indices, *runs, shift], node.source)
    return [*moved, runs[1]]


def _is_counted(node: Apply) -> bool:
    """Return whether a node has as many entries as values tell, which the host would read."""
    op: Any = node.op
    if isinstance(op, CombinePatterns):  # complex numbers have no order on devices
        has_order = op.kind == "neq" or not node.inputs[0].dtype.startswith("complex")
        return op.kind in PAIRED or (op.kind in COMPARED and has_order)
    if isinstance(op, TakeMajor | CropMinor):  # slices of constant patterns are made by the host
        return not all(isinstance(node.inputs[i], Constant) for i in PATTERNS[type(op)])
    return isinstance(op, CompressedMatMul)


def _only_scattered(graph: FunctionGraph, node: Apply) -> Apply | None:
    """Return the node that makes a product dense, if nothing else reads the product."""
    readers = {client for z in node.outputs for client, _ in graph.clients[z]}
    if len(readers) != 1:
        return None
    (reader,) = readers
    is_dense = reader != "output" and isinstance(reader.op, ScatterDense)
    return reader if is_dense and reader.inputs[:3] == node.outputs else None


def _applied(op: Op, inputs: Sequence[Any], source: Any) -> Sequence[Any]:
    return Apply(op, [*inputs], op.output_types(*inputs), source).outputs


def _copy_one(given: list[Any], patterns: Sequence[int], device: str) -> None:
    """Let one array of a pattern be copied to the device, so that the result is computed there."""
    arrays = [i for i in patterns if not isinstance(given[i], Constant)]
    if arrays:
        # An array that the device may compute is better not copied.
        fixed = [i for i in arrays if given[i].owner is None or lowering_of(given[i].owner) is None]
        (i, *_) = fixed or arrays
        given[i] = ToHost()(ToDevice(device)(given[i]))
