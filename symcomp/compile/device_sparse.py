"""Products with sparse matrices on devices, by cuSPARSE.

Pointers fit their matrices: those of arguments are checked on the host, where matrices are taken
apart, and ops keep the property. Indices are checked on the device, as an op may be given a pattern
and factors that do not fit.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from symcomp.compile import device_patterns, device_segments, device_slices
from symcomp.compile.device_matrices import (
    AssembleOnDevice,
    DeviceComponents,
    SparseToDevice,
    SparseToHost,
    TransposedEntries,
    TransposedPattern,
    WithEntries,
    is_minor_length,
    matrix_of,
    transposed_pattern,
)
from symcomp.compile.device_patterns import know_patterns
from symcomp.compile.device_sparse_choices import place_counted
from symcomp.compile.device_sparse_products import (
    LOWERINGS,
    are_in_range,
)
from symcomp.config import config
from symcomp.core.graph import FunctionGraph
from symcomp.core.node import Apply, Constant
from symcomp.gpu.driver.devices import canonical
from symcomp.gpu.formulas import NestSequence, nests_for, plan_formula
from symcomp.gpu.libraries.cusparse import (
    INDEX_TYPES,
    TYPES,
    CompressedArrays,
    Cusparse,
    plan_sampled_product,
    plan_sparse_product,
)
from symcomp.gpu.lowerings.contract import (
    TARGET,
    DeviceLowering,
    Plans,
    lacks_library,
    lowering_of,
)
from symcomp.gpu.planner import Operand, Planner
from symcomp.gpu.rules import is_needed
from symcomp.gpu.transfers import ToDevice, ToHost
from symcomp.gpu.type import DeviceType
from symcomp.ops.convert import constant
from symcomp.ops.elementwise.elemwise import ROWS
from symcomp.ops.formulas.formula import Formula, Result, Step
from symcomp.ops.indexing.subtensors import getitem
from symcomp.ops.linalg.products import SameLengths
from symcomp.ops.shapes.shape import ShapeI
from symcomp.rewrite.phases import FULL, Phase
from symcomp.rewrite.rule import RuleSet, computed_by, rule
from symcomp.rewrite.trace import Firing
from symcomp.sparse.components import Assemble, Components
from symcomp.sparse.convert import TransposeCompressed
from symcomp.sparse.fused import Usmm
from symcomp.sparse.products import CompressedDot, SampledDot
from symcomp.vm.features import Feature, Lowering, offer_feature


def _product(planner: Planner, node: Apply, given: Sequence[Any]) -> Operand:
    """Emit the product that the last five inputs of a node are factors of."""
    op: Any = node.op
    data, indices, indptr, columns, dense = given
    in_range = are_in_range(node.inputs[-4], int(columns))
    matrix = CompressedArrays(data, indices, indptr, int(columns), in_range)
    return plan_sparse_product(planner, matrix, dense, op.transposed)


def _plan_dot(planner: Planner, node: Apply, given: Sequence[Any]) -> Sequence[Any]:
    return [_product(planner, node, given)]


@cache
def _scaled_sum(dtype: str, rank: int) -> NestSequence:
    """Return the nests of z + alpha x."""
    steps = Step(ROWS["mul"](), (1, 2), dtype), Step(ROWS["add"](), (0, 3), dtype)
    formula, whole = Formula((dtype,) * 3, (), steps, (Result(4),)), (False,) * rank
    found = nests_for(formula, (whole, (True,) * rank, whole))
    assert found is not None
    return found


def _plan_usmm(planner: Planner, node: Apply, given: Sequence[Any]) -> Sequence[Any]:
    z, alpha, *factors = given
    product = _product(planner, node, factors)
    factor = alpha.view((1,) * z.ndim, (0,) * z.ndim)
    return plan_formula(planner, _scaled_sum(z.dtype, z.ndim), [z, factor, product])


def _plan_sampled(planner: Planner, node: Apply, given: Sequence[Any]) -> Sequence[Any]:
    indices, indptr, x, y = given
    in_range = are_in_range(node.inputs[0], y.shape[0])
    return [plan_sampled_product(planner, indices, indptr, x, y, in_range)]


def _lowered(plan: Plans, first: int, dtypes: Sequence[str]) -> Lowering:
    """Return the lowering of an op whose pattern begins with this input.

    Parameters
    ----------
    dtypes : sequence of str
        Of the entries that it takes.
    """

    def on_host(node: Apply) -> frozenset[int]:
        return frozenset() if plan is _plan_sampled else frozenset([first + 2])

    how = DeviceLowering(plan, on_host, libraries=(Cusparse,))

    def lowering(node: Apply) -> DeviceLowering | None:
        is_known = node.outputs[0].dtype in dtypes and node.inputs[first].dtype in INDEX_TYPES
        return how if is_known else None

    return lowering


# -- arrays that stay on the device


@rule(Components, why="the arrays of a matrix on a device are there")
def components_on_device(node: Apply, graph: Any) -> Any:
    """components(x, copied to the host) -> copies of the arrays of x"""
    copy = computed_by(node.inputs[0], SparseToHost)
    if copy is None:
        return None
    *arrays, shape = DeviceComponents()(*copy.inputs)
    return [*map(ToHost(), arrays), shape]


@rule(SparseToDevice, why="arrays that a device computes stay there, and so do patterns")
def arrays_to_device(node: Apply, graph: Any) -> Any:
    """x, copied to the host and back -> x; the pattern of x with other entries -> these there;
    assemble(arrays) -> the matrix of the arrays, which are copied there one by one
    """
    (x,), device = node.inputs, node.outputs[0].type.device
    copy, made = computed_by(x, SparseToHost), computed_by(x, Assemble)
    if copy is not None:
        (there,) = copy.inputs
        return there if node.outputs[0].type.is_super(there.type) else None
    if made is None:
        return None
    data, indices, indptr, shape = made.inputs
    there = matrix_of(indices, indptr)
    if there is not None and shape is indices.owner.inputs[0].owner.outputs[3]:
        if node.outputs[0].type.is_super(there.type):
            return WithEntries()(there, ToDevice(device)(data))
    kind = node.outputs[0].type.on_host
    if not kind.is_super(made.op.kind):
        return None
    arrays = map(ToDevice(device), (data, indices, indptr))
    return AssembleOnDevice(made.op.kind)(*arrays, shape)


@rule(Components, why="the arrays of a constant stay on the device that uses them")
def components_of_constant(node: Apply, graph: Any) -> Any:
    """components(constant x) -> constants"""
    (x,) = node.inputs
    if not isinstance(x, Constant):
        return None
    op: Any = node.op
    return [constant(part) for part in op.perform(x.type.filter(x.data))]


# -- patterns that are transposed once


@rule(CompressedDot, Usmm, why="a pattern that does not change is transposed once")
def product_with_transpose(node: Apply, graph: Any) -> Any:
    """dot(transpose(s), d) -> dot(t, d), where t is kept for the pattern of s"""
    *first, data, indices, indptr, n, dense = node.inputs
    op: Any = node.op
    if not op.transposed or lowering_of(node) is None:
        return None
    found = _kept_transpose(data, indices, indptr, n)
    x = matrix_of(indices, indptr)
    devices = _devices_of(graph) if x is None else {x.type.device}
    if found is None or all(lacks_library(node, device) for device in devices):
        return None
    return type(op)(False)(*first, *found, ShapeI(0)(indptr) - 1, dense)


@rule(TransposeCompressed, why="a pattern that does not change is transposed once")
def transposed_once(node: Apply, graph: Any) -> Any:
    """transpose(s) -> the arrays that are kept for the pattern of s, and the entries in their order
    """
    return _kept_transpose(*node.inputs)


def _kept_transpose(data: Any, indices: Any, indptr: Any, n: Any) -> Any:
    """Return the arrays of the transpose of a matrix whose pattern does not change; None if it is
    none, or if devices cannot bring its entries into another order.
    """
    if isinstance(indices, Constant) and isinstance(indptr, Constant) and isinstance(n, Constant):
        return _transposed_constant(data, indices, indptr, int(n.data))
    x = matrix_of(indices, indptr)
    return None if x is None or not is_minor_length(n, indices, x) else _transposed(x, data)


def _devices_of(graph: Any) -> set[str]:
    """Return the devices that a graph may be computed on."""
    found = {v.type.device for v in graph.clients if isinstance(v.type, DeviceType)}
    return found | ({canonical(config.device)} if config.device != "cpu" else set())


def _transposed_constant(data: Any, indices: Any, indptr: Any, n: int) -> Any:
    """Return the arrays of the transpose of a matrix whose pattern is constant; None if they do not
    fit, which the product tells.
    """
    count = len(indices.data)
    is_whole = indptr.data[-1] == count and data.type.shape[0] in (None, count)
    if not is_whole or not are_in_range(indices, n):
        return None
    order, *pattern = map(constant, transposed_pattern(indices.data, indptr.data, n))
    if isinstance(data, Constant):
        return [constant(data.data[order.data]), *pattern]
    return _with_pattern(data, order, pattern)


def _transposed(x: Any, data: Any) -> Any:
    """Return the arrays of the transpose of the matrix with the pattern of ``x`` and these entries.
    """
    order, *pattern = map(ToHost(), TransposedPattern()(x))
    own = computed_by(data, ToHost)
    components = None if own is None else computed_by(own.inputs[0], DeviceComponents)
    if components is not None and components.inputs == [x]:
        return [ToHost()(TransposedEntries()(x)), *pattern]
    return _with_pattern(data, order, pattern)


def _with_pattern(data: Any, order: Any, pattern: Sequence[Any]) -> Any:
    """Return a matrix of ``pattern`` with entries in another order, if there are as many; None if
    devices cannot bring them into it.
    """
    found: Any = getitem(SameLengths("dot", ((0, 0),))(order, data), order)
    return None if lowering_of(found.owner) is None else [found, *pattern]


def _place(graph: FunctionGraph, firings: list[Firing]) -> None:
    """Let devices compute functions of two sparse matrices, and slices, and know patterns of shared
    ones.
    """
    place_counted(graph, firings)
    know_patterns(graph)


REALS = [dtype for dtype in TYPES if not dtype.startswith("complex")]
PHASE = Phase(
    "device sparse", "arrays of sparse matrices, and patterns, stay on devices",
    RuleSet(
        [
            components_of_constant, components_on_device, arrays_to_device, product_with_transpose,
            transposed_once,
        ],
        FULL,
    ),
    FULL, _place, is_needed,
)  # fmt: skip
FEATURE = Feature(
    "device sparse",
    (("fusion", PHASE),),
    lowerings={
        (CompressedDot, TARGET): _lowered(_plan_dot, 1, [*TYPES]),
        (Usmm, TARGET): _lowered(_plan_usmm, 3, REALS),
        (SampledDot, TARGET): _lowered(_plan_sampled, 0, [*TYPES]),
    }
    | LOWERINGS
    | device_patterns.LOWERINGS
    | device_segments.LOWERINGS
    | device_slices.LOWERINGS,
)


def offer() -> None:
    """Compute products on devices from now on."""
    offer_feature(FEATURE)
