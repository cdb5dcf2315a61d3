"""Patterns of shared matrices on devices, in plans: indices are known to be in range, and the
transposes that are kept for patterns are used, in loops, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from symcomp.compile.device_matrices import DeviceComponents, TransposedPattern
from symcomp.compile.device_sparse_products import KeptProduct
from symcomp.core.graph import FunctionGraph
from symcomp.core.node import Apply, Type
from symcomp.core.op import Op
from symcomp.core.record import record
from symcomp.core.walk import toposort
from symcomp.errors import DTypeError
from symcomp.gpu.kernels.sparse_rows import note_in_range, note_transposed_rows
from symcomp.gpu.loops import DeviceLoop
from symcomp.gpu.lowerings.contract import TARGET, DeviceLowering, lowering_of
from symcomp.gpu.planner import Planner
from symcomp.gpu.transfers import ToHost
from symcomp.ops.convert import as_tensor_variable
from symcomp.ops.indexing.subtensors import getitem
from symcomp.scan.op import Scan
from symcomp.sparse.convert import TransposeCompressed
from symcomp.sparse.values import major_axis
from symcomp.vm.features import Lowering


@record
class KnownPattern(Op):
    """z = the indices of a shared matrix, a view, of which plans know that they are in range.

    Inputs: indices, indptr, n_minor; and, where a transpose is needed, the outputs of
    ``TransposedPattern``.
    """

    no_derivative = "its output is integers"

    def output_types(self, *inputs: Any) -> list[Type]:
        if len(inputs) not in (3, 6):
            raise DTypeError(f"{self} takes 3 or 6 inputs, not {len(inputs)}")
        return [inputs[0].type]

    def perform(self, *given: Any) -> Any:
        return given[0]

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        return [shapes[0]]

    view_map = {0: (0,)}


def _plan(planner: Planner, node: Apply, given: Sequence[Any]) -> Sequence[Any]:
    indices, indptr, n, *turned = given
    note_in_range(planner, indices, int(n))
    if turned:
        note_transposed_rows(planner, indices, indptr, int(n), *turned)
    return [indices]


_KNOWN = DeviceLowering(_plan, lambda node: frozenset([2]), only_moves=True)
LOWERINGS: dict[tuple[type, str], Lowering] = {(KnownPattern, TARGET): lambda node: _KNOWN}


def know_patterns(graph: FunctionGraph) -> None:
    """Let everything on devices that reads patterns of shared matrices, their transposes and their
    products know about them.
    """
    for node in graph.toposort():
        op = node.op
        if isinstance(op, DeviceComponents):
            _know(graph, node.outputs[1:3], node.inputs[0], across=False, of=node.inputs[0])
        elif isinstance(op, TransposedPattern):
            _know(graph, node.outputs[1:3], node.inputs[0], across=True)
        elif isinstance(op, KeptProduct):
            _know(graph, node.outputs, node.inputs[1], across=False)


def _know(
    graph: FunctionGraph, pattern: Sequence[Any], x: Any, across: bool, of: Any = None
) -> None:
    """Let readers know about the indices of a pattern.

    Parameters
    ----------
    pattern : sequence of Variable
        Indices and pointers.
    x : DeviceSparseVariable
        Indices count along its minor axis, or, ``across``, along the other one.
    of : DeviceSparseVariable, optional
        The matrix that the pattern is of.
    """
    copies, pointers = (_copies(graph, z) for z in pattern)
    n = _length(graph, x, across)
    if not pointers or n is None:
        return
    for indices in copies:
        clients = [(client, i) for client, i in graph.clients[indices] if client != "output"]
        readers = [(client, i) for client, i in clients if _reads_there(client, i)]
        given = [indices, pointers[0], n]
        if of is not None and any(_transposes(client) for client, _ in readers):
            given += map(ToHost(), TransposedPattern()(of))
        if readers:
            known = KnownPattern()(*given)
            for client, i in readers:
                graph.change_input(client, i, known)


def _copies(graph: FunctionGraph, array: Any) -> list[Any]:
    """Return the copies of an array to the host."""
    clients = [client for client, _ in graph.clients[array] if client != "output"]
    return [client.outputs[0] for client in clients if isinstance(client.op, ToHost)]


def _length(graph: FunctionGraph, x: Any, across: bool) -> Any:
    """Return the length of the minor axis, or of the other one, of a matrix; None if it is not at
    hand.
    """
    kind = x.type.on_host
    axis = major_axis(kind.format) if across else 1 - major_axis(kind.format)
    if kind.shape[axis] is not None:
        return as_tensor_variable(np.int64(kind.shape[axis]))
    clients = [client for client, _ in graph.clients[x] if client != "output"]
    apart = [client for client in clients if isinstance(client.op, DeviceComponents)]
    return getitem(apart[0].outputs[3], axis) if apart else None


def _reads_there(client: Apply, i: int) -> bool:
    """Return whether a node, or a loop, may read its input ``i`` on a device."""
    if isinstance(client.op, Scan | DeviceLoop):
        return True
    lowering = lowering_of(client)
    moves = lowering is not None and lowering.only_moves
    is_read = not moves or isinstance(client.op, TransposeCompressed)
    return lowering is not None and is_read and i not in lowering.on_host(client)


def _transposes(client: Apply) -> bool:
    """Return whether a node, or a step of a loop, transposes a matrix, or multiplies with a
    transpose.
    """
    op: Any = client.op
    if isinstance(op, TransposeCompressed) or getattr(op, "transposed", False):
        return True
    steps = [inner for _, outputs in op.inner_graphs() for inner in toposort(outputs)]
    return any(map(_transposes, steps))
