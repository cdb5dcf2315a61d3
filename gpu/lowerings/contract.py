"""Lowerings for devices: for an op of some class, what plans it and which of its inputs stay on the
host.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from symcomp.codegen.functions.c_scalars import C_TYPES
from symcomp.core.node import Apply
from symcomp.core.record import record
from symcomp.core.storage import is_widened
from symcomp.core.tensor import TensorType
from symcomp.core.walk import toposort
from symcomp.gpu.driver.devices import driver_of
from symcomp.gpu.libraries.binding import NvidiaLibrary, library_of
from symcomp.gpu.planner import Planner
from symcomp.ops.shapes.alloc import Alloc
from symcomp.ops.shapes.shape import Shape, ShapeI
from symcomp.vm.features import Lowering, lowering_for, offered_features

TARGET = "cuda"
Plans = Callable[[Planner, Apply, Sequence[Any]], Sequence[Any]]


def nothing(node: Apply) -> frozenset[int]:
    return frozenset()


def all_but(*kept: int) -> Callable[[Apply], frozenset[int]]:
    """Return what keeps all inputs on the host but these."""
    return lambda node: frozenset(range(len(node.inputs))) - {*kept}


def _always(node: Apply) -> bool:
    return True


@record
class DeviceLowering:
    """How ops of a class are computed on devices.

    Attributes
    ----------
    plan : callable (planner, node, inputs) -> outputs
        Emits the calls; inputs are operands, or host arrays for those in ``on_host``.
    on_host : callable (node) -> frozenset of int
        The inputs whose values plans depend on: shapes and positions.
    accepts : callable (node) -> bool
        Whether it is for this node, by its dtypes.
    only_moves : bool
        Whether elements are shown or moved, not computed: no region begins with that.
    in_steps : callable (node) -> frozenset of int
        Of ``on_host``, the inputs that may be operands, too, where a step of a loop computes them.
    libraries : tuple of type
        Those without which a device cannot compute it.
    """

    plan: Plans
    on_host: Callable[[Apply], frozenset[int]] = nothing
    accepts: Callable[[Apply], bool] = _always
    only_moves: bool = False
    in_steps: Callable[[Apply], frozenset[int]] = nothing
    libraries: tuple[type[NvidiaLibrary], ...] = ()


def lowering_of(node: Apply) -> DeviceLowering | None:
    """Return how a node is computed on devices; None if it is not."""
    lowering = lowering_for(offered_features(), type(node.op), TARGET)
    tensors = all(isinstance(v.type, TensorType) for v in (*node.inputs, *node.outputs))
    if lowering is None or not tensors or is_widened(node):
        return None
    found: DeviceLowering | None = lowering(node)
    return found


def lacks_library(node: Apply, device: str) -> bool:
    """Return whether a node, or one of its steps, needs a library that is missing for a device."""
    lowering = lowering_of(node)
    libraries = () if lowering is None else lowering.libraries
    if any(library_of(driver_of(device), kind) is None for kind in libraries):
        return True
    inner = [n for _, outputs in node.op.inner_graphs() for n in toposort(outputs)]
    return any(lacks_library(n, device) for n in inner)


def _accepted(how: DeviceLowering, node: Apply) -> DeviceLowering | None:
    return how if how.accepts(node) else None


def is_number(node: Apply) -> bool:
    """Return whether a node only computes numbers, or vectors of some, from tensors."""
    return (
        all(isinstance(v.type, TensorType) for v in (*node.inputs, *node.outputs))
        and all(z.ndim <= 1 for z in node.outputs)
        and all(x.ndim <= 1 or isinstance(node.op, Shape | ShapeI) for x in node.inputs)
        and not node.op.has_effects
        and not node.op.inner_graphs()
    )


def can_be_copied(x: Any) -> bool:
    """Return whether there are kernels that copy arrays of this dtype in all layouts."""
    return x.dtype in C_TYPES


def makes_arrays(node: Apply) -> bool:
    """Return whether a node is planned though all its inputs are known: they may be few numbers."""
    fills = isinstance(node.op, Alloc) and node.outputs[0].ndim > 0
    return fills or bool(node.op.inner_graphs())


def lowerings(table: Mapping[type, DeviceLowering]) -> dict[type, Lowering]:
    """Return, by the class of the op, what gives the lowering of a node, or None."""
    return {op: partial(_accepted, how) for op, how in table.items()}
