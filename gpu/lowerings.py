"""How ops are computed on devices: for each class of op, what plans it and which of its inputs stay
on the host.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from symcomp.codegen.functions.c_scalars import C_TYPES
from symcomp.core.node import Apply
from symcomp.core.record import record
from symcomp.core.tensor import TensorType
from symcomp.cvm.kernels import FORMULAS, formula_of
from symcomp.errors import ShapeError
from symcomp.gpu.formulas import COMPLEX, contiguous, nests_for, plan_copy, plan_formula
from symcomp.gpu.kernels.along_axis import plan_extreme, plan_running
from symcomp.gpu.kernels.indexing import Indexed, plan_gather, plan_scatter
from symcomp.gpu.kernels.products import WORK, Scaled, plan_product
from symcomp.gpu.kernels.sorting import plan_search, plan_sort
from symcomp.gpu.planner import Operand, Planner
from symcomp.gpu.step_positions import positions_of_step, read_at, split_positions, write_at
from symcomp.ops.convert import Stack
from symcomp.ops.elementwise.elemwise import ROWS
from symcomp.ops.formulas.formula import Formula, Result, Step
from symcomp.ops.indexing.diagonal import Diagonal
from symcomp.ops.indexing.gather_labels import AsRows
from symcomp.ops.indexing.index import IncSubtensor, Subtensor
from symcomp.ops.indexing.index_pattern import (
    ARRAY,
    FLAG,
    NEW,
    NOTHING,
    SYMBOL,
    MaskFits,
    Slice,
    fill_pattern,
)
from symcomp.ops.linalg.blas import BatchedGemm, Gemm, Gemv, Ger, ScaledDot
from symcomp.ops.linalg.contraction import MatrixChain, best_brackets, bracketed
from symcomp.ops.linalg.products import BatchedDot, Dot, SameLengths
from symcomp.ops.reductions.cumulative import CumOp
from symcomp.ops.reductions.reduce import ArgReduce
from symcomp.ops.shapes.alloc import Alloc
from symcomp.ops.shapes.contiguous import Contiguous
from symcomp.ops.shapes.dimshuffle import DimShuffle
from symcomp.ops.shapes.join import Join, Split
from symcomp.ops.shapes.shape import ForgetLengths, Reshape, Shape, ShapeI, SpecifyShape
from symcomp.ops.sorting.sort import Argsort, SearchSorted, Sort
from symcomp.ops.sorting.topk import ArgTopK
from symcomp.vm.features import Lowering, lowerings_for, offered_features

TARGET = "cuda"
Plans = Callable[[Planner, Apply, Sequence[Any]], Sequence[Any]]


def _nothing(node: Apply) -> frozenset[int]:
    return frozenset()


def _all_but(*kept: int) -> Callable[[Apply], frozenset[int]]:
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
    is_view : bool
        Whether the result is a view, which costs nothing.
    in_steps : callable (node) -> frozenset of int
        Of ``on_host``, the inputs that may be operands, too, where a step of a loop computes them.
    """

    plan: Plans
    on_host: Callable[[Apply], frozenset[int]] = _nothing
    accepts: Callable[[Apply], bool] = _always
    is_view: bool = False
    in_steps: Callable[[Apply], frozenset[int]] = _nothing


def lowering_of(node: Apply) -> DeviceLowering | None:
    """Return how a node is computed on devices; None if it is not."""
    kind = type(node.op)
    lowering = LOWERINGS.get(kind) or lowerings_for(offered_features(), TARGET).get(kind)
    tensors = all(isinstance(v.type, TensorType) for v in (*node.inputs, *node.outputs))
    found: DeviceLowering | None = lowering(node) if lowering is not None and tensors else None
    return found


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
    return x.dtype in C_TYPES and x.dtype not in COMPLEX


def makes_arrays(node: Apply) -> bool:
    """Return whether a node is planned though all its inputs are known: they may be few numbers."""
    fills = isinstance(node.op, Alloc) and node.outputs[0].ndim > 0
    return fills or bool(node.op.inner_graphs())


# -- formulas


def _formula_nests(node: Apply) -> Any:
    if getattr(node.op, "inplace", False):
        return None
    formula = formula_of(node, FORMULAS)
    patterns = tuple(x.type.broadcastable for x in node.inputs)
    return None if formula is None else nests_for(formula, patterns)


def _has_nests(node: Apply) -> bool:
    return _formula_nests(node) is not None


def _plan_formula(planner: Planner, node: Apply, given: Sequence[Any]) -> Sequence[Any]:
    return plan_formula(planner, _formula_nests(node), given)


# -- views: the op itself makes them, of an array that is never read


def _plan_view(planner: Planner, node: Apply, given: Sequence[Any]) -> Sequence[Any]:
    at = next(i for i, x in enumerate(given) if isinstance(x, Operand) and i == _viewed(node))
    shapes = [_shadow(x) if isinstance(x, Operand) else x for x in given]
    made = node.op.bind(node)(*shapes)
    made = made if node.op.multiple_outputs else [made]
    return [_seen(given[at], shapes[at], view) for view in made]


def _viewed(node: Apply) -> int:
    return int(node.op.view_map[0][0]) if node.op.view_map else 0


def _shadow(x: Operand) -> np.ndarray:
    """Return an array of the layout of an operand, whose elements are not there."""
    base = np.empty(1, x.dtype)
    return np.lib.stride_tricks.as_strided(base, x.shape, x.strides)


def _seen(x: Operand, shadow: np.ndarray, view: np.ndarray) -> Operand:
    offset = view.__array_interface__["data"][0] - shadow.__array_interface__["data"][0]
    return x.view(view.shape, view.strides, offset if view.size else 0)


def _part_of(x: Operand, pattern: Any, values: Sequence[Any]) -> Operand:
    """Return the view that an index expression without arrays makes."""
    shadow, key = _shadow(x), fill_pattern(pattern, values)
    # Of one element NumPy makes a number, not a view, unless there is an ellipsis.
    return _seen(x, shadow, shadow[key if Ellipsis in key else (*key, Ellipsis)])


def _plan_reshape(planner: Planner, node: Apply, given: Sequence[Any]) -> Sequence[Any]:
    x, lengths = given
    whole = contiguous(planner, x)
    shadow = _shadow(whole)
    return [_seen(whole, shadow, node.op.perform(shadow, lengths))]


def _plan_length(planner: Planner, node: Apply, given: Sequence[Any]) -> Sequence[Any]:
    return [node.op.perform(_shadow(given[0]))]


def _plan_contiguous(planner: Planner, node: Apply, given: Sequence[Any]) -> Sequence[Any]:
    return [contiguous(planner, given[0])]


def _plan_as_rows(planner: Planner, node: Apply, given: Sequence[Any]) -> Sequence[Any]:
    x, y = (_shadow(v) if isinstance(v, Operand) else v for v in given)
    node_op: Any = node.op
    n, m = x.shape[0], y.shape[0] if node_op.count is None else node_op.count
    if m == n == y.shape[0]:
        return [given[1]]
    # The lengths are checked, and refused, as on the host.
    node_op.perform(np.empty((n, 0)), np.empty(y.shape[0], y.dtype))
    z = planner.new(given[1].dtype, [n])
    rest = planner.constant(np.full(n - m, node_op.fill, y.dtype))
    size = z.itemsize
    first = given[1].view([m], [0 if y.shape[0] == 1 else given[1].strides[0]])
    plan_copy(planner, z.view([m], [size]), first)
    plan_copy(planner, z.view([n - m], [size], m * size), rest)
    return [z]


# -- elements moved


def _plan_fill(planner: Planner, node: Apply, given: Sequence[Any]) -> Sequence[Any]:
    value, *lengths = given
    shape = [int(n) for n in lengths]
    if any(n < 0 for n in shape):
        raise ShapeError(f"alloc: there is no array of shape {tuple(shape)}")
    z = planner.new(value.dtype, shape)
    known = node.inputs[0].type.shape
    offset = len(shape) - value.ndim
    steps = [0] * offset
    for axis, n in enumerate(value.shape):
        if n != shape[offset + axis] and not (n == 1 and known[axis] == 1):
            raise ShapeError(
                f"alloc: an array of shape {value.shape} cannot be stretched to {tuple(shape)}"
            )
        steps.append(0 if known[axis] == 1 else value.strides[axis])
    plan_copy(planner, z, value.view(shape, steps))
    return [z]


def _plan_join(planner: Planner, node: Apply, given: Sequence[Any]) -> Sequence[Any]:
    op: Any = node.op
    shapes = [x.shape for x in given]
    axis = op.axis
    for shape in shapes:
        if shape[:axis] != shapes[0][:axis] or shape[axis + 1 :] != shapes[0][axis + 1 :]:
            raise ShapeError(f"join along axis {axis}: the shapes {shapes} differ elsewhere")
    total = sum(shape[axis] for shape in shapes)
    z = planner.new(given[0].dtype, [*shapes[0][:axis], total, *shapes[0][axis + 1 :]])
    start = 0
    for x in given:
        plan_copy(planner, z.view(x.shape, z.strides, start * z.strides[axis]), x)
        start += x.shape[axis]
    return [z]


def _plan_stack(planner: Planner, node: Apply, given: Sequence[Any]) -> Sequence[Any]:
    if any(x.shape != given[0].shape for x in given):
        raise ShapeError(f"stack: the shapes {[x.shape for x in given]} differ")
    z = planner.new(given[0].dtype, [len(given), *given[0].shape])
    for i, x in enumerate(given):
        plan_copy(planner, z.view(x.shape, z.strides[1:], i * z.strides[0]), x)
    return [z]


# -- parts


def _takes_part(node: Apply) -> bool:
    op: Any = node.op
    if getattr(op, "inplace", False):
        return False
    if ARRAY not in op.pattern:
        return _can_be_added(node)
    first = 1 if isinstance(op, Subtensor) else 2
    arrays = [x for x in node.inputs[first:] if x.ndim]
    whole = all(np.dtype(x.dtype).kind in "iu" and x.dtype != "uint64" for x in arrays)
    return FLAG not in op.pattern and whole and _can_be_added(node)


def _can_be_added(node: Apply) -> bool:
    """Return whether a sum of elements has a kernel."""
    return np.dtype(node.inputs[0].dtype).kind != "c"


def _part_on_host(node: Apply) -> frozenset[int]:
    """Return which inputs of an index expression are numbers; arrays go to the device."""
    first = 1 if isinstance(node.op, Subtensor) else 2
    numbers = [i for i in range(first, len(node.inputs)) if not _is_array(node, i - first)]
    return frozenset(numbers)


def _is_array(node: Apply, number: int) -> bool:
    """Return whether an input of an index expression is an array, or an index beside arrays."""
    op: Any = node.op
    indices = (ARRAY, SYMBOL) if ARRAY in op.pattern else (ARRAY,)
    kinds: list[bool] = []
    for entry in op.pattern:
        parts = entry if isinstance(entry, Slice) else (entry,)
        kinds += [entry in indices for part in parts if part in (ARRAY, SYMBOL, FLAG)]
    return kinds[number]


def _split_index(node: Apply, x: Operand, values: Sequence[Any]) -> Indexed:
    """Return the view that slices, constants and new axes of an index expression make, and where
    arrays index it.
    """
    op: Any = node.op
    rest = iter(values)
    key: list[Any] = []
    axes, arrays, indices = [], [], []
    axis = 0
    for place, entry in enumerate(op.pattern):
        if entry in (ARRAY, SYMBOL) or isinstance(entry, int):
            indices.append(place)
        if entry in (ARRAY, SYMBOL):
            axes.append(axis)
            arrays.append(next(rest))
            key.append(slice(None))
        elif isinstance(entry, Slice):
            key.append(slice(*(int(next(rest)) if p == SYMBOL else p for p in entry)))
        elif entry != NOTHING:
            key.append(None if entry == NEW else entry)
        axis += entry != NOTHING and not isinstance(entry, int)
    shadow = _shadow(x)
    view = _seen(x, shadow, shadow[tuple(key)])
    # Constants are indices, too: arrays apart from them are apart from one another.
    adjacent = indices == [*range(indices[0], indices[-1] + 1)]
    return Indexed(view, tuple(axes), tuple(arrays), adjacent)


def _plan_read(planner: Planner, node: Apply, given: Sequence[Any]) -> Sequence[Any]:
    op: Any = node.op
    if any(isinstance(given[i], Operand) for i in positions_of_step(node)):
        where = split_positions(op.pattern, given[1:])
        return [read_at(planner, _part_of(given[0], where.pattern, where.values), where)]
    if ARRAY not in op.pattern:
        return [_part_of(given[0], op.pattern, given[1:])]
    return [plan_gather(planner, _split_index(node, given[0], given[1:]))]


def _plan_write(planner: Planner, node: Apply, given: Sequence[Any]) -> Sequence[Any]:
    op: Any = node.op
    x, y, *rest = given
    z = planner.new(x.dtype, x.shape)
    plan_copy(planner, z, x)
    if ARRAY in op.pattern:
        indexed = _split_index(node, z, rest)
        plan_scatter(planner, indexed, _stretched(node, y, indexed.selection().shape), op.set)
        return [z]
    if any(isinstance(given[i], Operand) for i in positions_of_step(node)):
        where = split_positions(op.pattern, rest)
        view = _part_of(z, where.pattern, where.values)
        lengths = [n for axis, n in enumerate(view.shape) if axis not in where.axes]
        write_at(planner, view, _stretched(node, y, lengths), where, op.set)
        return [z]
    part = _part_of(z, op.pattern, rest)
    _write_part(planner, part, _stretched(node, y, part.shape), op.set)
    return [z]


def _stretched(node: Apply, y: Operand, shape: Sequence[int]) -> Operand:
    """Return y stretched to the shape of the part of x that it goes to."""
    known = node.inputs[1].type.shape
    for axis, n in enumerate(shape):
        if y.shape[axis] != n and known[axis] != 1:
            raise ShapeError(
                f"{node.op}: y has shape {y.shape}, the part of x that it goes to {tuple(shape)}"
            )
    return y.view(shape, [0 if k == 1 else s for k, s in zip(known, y.strides, strict=True)])


def _write_part(planner: Planner, part: Operand, y: Operand, replaces: bool) -> None:
    if part.size == 0:
        return
    if replaces:
        plan_copy(planner, part, y)
        return
    step = Step(ROWS["add"](), (0, 1), part.dtype)
    formula = Formula((part.dtype, y.dtype), (), (step,), (Result(2),))
    made = nests_for(formula, ((False,) * part.ndim,) * 2)
    assert made is not None
    # Each thread reads an element before it writes it.
    plan_formula(planner, made, [part, y], [part])


# -- products


def _multiplies(node: Apply) -> bool:
    dtypes = {v.dtype for v in (*node.inputs, *node.outputs)}
    return len(dtypes) == 1 and dtypes <= WORK.keys() and not getattr(node.op, "inplace", False)


def _transposed(x: Operand, flag: bool = True) -> Operand:
    if not flag:
        return x
    turn = lambda t: (*t[:-2], t[-1], t[-2])  # noqa: E731
    return x.view(turn(x.shape), turn(x.strides))


def _new_axis(x: Operand, axis: int) -> Operand:
    insert = lambda t, n: (*t[:axis], n, *t[axis:])  # noqa: E731
    return x.view(insert(x.shape, 1), insert(x.strides, 0))


def _product(
    planner: Planner, node: Apply, a: Operand, b: Operand, scaled: Scaled | None = None
) -> Operand:
    """Emit a product of matrices or stacks of them, whose lengths are checked."""
    shape = (*a.shape[:-1], b.shape[-1])
    added = shape if scaled is None or scaled.c is None else scaled.c.shape
    if a.shape[-1] != b.shape[-2] or a.shape[:-2] != b.shape[:-2] or added != shape:
        more = f", added to {added}" if added != shape else ""
        raise ShapeError(
            f"{node.op}: shapes {a.shape} and {b.shape} do not fit{more}: the inner lengths must "
            "be equal"
        )
    z = planner.new(a.dtype, shape)
    plan_product(planner, z, a, b, scaled)
    return z


def _plan_dot(planner: Planner, node: Apply, given: Sequence[Any]) -> Sequence[Any]:
    a, b = given
    left = _new_axis(a, 0) if a.ndim == 1 else a
    right = _new_axis(b, 1) if b.ndim == 1 else b
    z = _product(planner, node, left, right)
    kept = [axis for axis, one in ((0, a.ndim == 1), (1, b.ndim == 1)) if not one]
    return [z.view([z.shape[x] for x in kept], [z.strides[x] for x in kept])]


def _plan_chain(planner: Planner, node: Apply, given: Sequence[Any]) -> Sequence[Any]:
    op: Any = node.op
    lengths = op.lengths([_shadow(x) for x in given])
    brackets = op.brackets if 0 in lengths else best_brackets(tuple(lengths))
    product = lambda a, b: _plan_dot(planner, node, (a, b))[0]  # noqa: E731
    return [bracketed(product, brackets, given)]


def _plan_batched(planner: Planner, node: Apply, given: Sequence[Any]) -> Sequence[Any]:
    return [_product(planner, node, given[0], given[1])]


def _plan_scaled(planner: Planner, node: Apply, given: Sequence[Any]) -> Sequence[Any]:
    op: Any = node.op
    alpha, a, b = given
    a, b = _transposed(a, op.trans_a), _transposed(b, op.trans_b)
    return [_product(planner, node, a, b, Scaled(alpha))]


def _plan_gemm(planner: Planner, node: Apply, given: Sequence[Any]) -> Sequence[Any]:
    op: Any = node.op
    c, alpha, a, b, beta = given
    a, b = _transposed(a, op.trans_a), _transposed(b, op.trans_b)
    return [_product(planner, node, a, b, Scaled(alpha, beta, c))]


def _plan_gemv(planner: Planner, node: Apply, given: Sequence[Any]) -> Sequence[Any]:
    op: Any = node.op
    y, alpha, a, x, beta = given
    column = partial(_new_axis, axis=1)
    scaled = Scaled(alpha, beta, column(y))
    z = _product(planner, node, _transposed(a, op.trans_a), column(x), scaled)
    return [z.view(z.shape[:1], z.strides[:1])]


def _plan_ger(planner: Planner, node: Apply, given: Sequence[Any]) -> Sequence[Any]:
    c, alpha, x, y = given
    beta = planner.constant(np.ones((), c.dtype))
    scaled = Scaled(alpha, beta, c)
    return [_product(planner, node, _new_axis(x, 1), _new_axis(y, 0), scaled)]


# -- along axes


def _is_real(node: Apply) -> bool:
    return all(np.dtype(v.dtype).kind in "biuf" for v in (*node.inputs, *node.outputs))


def _plan_arg(planner: Planner, node: Apply, given: Sequence[Any]) -> Sequence[Any]:
    op: Any = node.op
    return [plan_extreme(planner, given[0], op.axes, op.which == "argmax")]


def _plan_running(planner: Planner, node: Apply, given: Sequence[Any]) -> Sequence[Any]:
    op: Any = node.op
    dtype = node.outputs[0].dtype
    return [plan_running(planner, given[0], op.axis, op.mode == "add", dtype)]


# -- sorting


def _plan_sort(planner: Planner, node: Apply, given: Sequence[Any]) -> Sequence[Any]:
    op: Any = node.op
    return [plan_sort(planner, given[0], op.axis, positions=isinstance(op, Argsort))]


def _plan_topk(planner: Planner, node: Apply, given: Sequence[Any]) -> Sequence[Any]:
    op: Any = node.op
    x, k = given[0], int(given[1])
    op.check(k, x.shape)
    return [plan_sort(planner, x, op.axis, positions=True, descending=k > 0, kept=abs(k))]


def _plan_search(planner: Planner, node: Apply, given: Sequence[Any]) -> Sequence[Any]:
    op: Any = node.op
    x, v = given
    return [plan_search(planner, x, v, op.side == "right")]


def _searches(node: Apply) -> bool:
    return _is_real(node) and node.inputs[0].dtype == node.inputs[1].dtype


_view = DeviceLowering(_plan_view, is_view=True)
TABLE: dict[type, DeviceLowering] = {
    **dict.fromkeys(FORMULAS, DeviceLowering(_plan_formula, accepts=_has_nests)),
    DimShuffle: _view,
    Diagonal: _view,
    ForgetLengths: _view,
    SpecifyShape: _view,
    SameLengths: _view,
    MaskFits: DeviceLowering(_plan_view, _all_but(0), is_view=True),
    Split: DeviceLowering(_plan_view, _all_but(0), is_view=True),
    Shape: DeviceLowering(_plan_length, is_view=True),
    ShapeI: DeviceLowering(_plan_length, is_view=True),
    Reshape: DeviceLowering(_plan_reshape, _all_but(0)),
    Contiguous: DeviceLowering(_plan_contiguous),
    AsRows: DeviceLowering(_plan_as_rows),
    Alloc: DeviceLowering(_plan_fill, _all_but(0)),
    Join: DeviceLowering(_plan_join),
    Stack: DeviceLowering(_plan_stack),
    Subtensor: DeviceLowering(
        _plan_read, _part_on_host, _takes_part, in_steps=positions_of_step
    ),
    IncSubtensor: DeviceLowering(
        _plan_write, _part_on_host, _takes_part, in_steps=positions_of_step
    ),
    ArgReduce: DeviceLowering(_plan_arg, accepts=_is_real),
    CumOp: DeviceLowering(_plan_running, accepts=_is_real),
    Sort: DeviceLowering(_plan_sort, accepts=_is_real),
    Argsort: DeviceLowering(_plan_sort, accepts=_is_real),
    ArgTopK: DeviceLowering(_plan_topk, _all_but(0), _is_real),
    SearchSorted: DeviceLowering(_plan_search, accepts=_searches),
    Dot: DeviceLowering(_plan_dot, accepts=_multiplies),
    MatrixChain: DeviceLowering(_plan_chain, accepts=_multiplies),
    BatchedDot: DeviceLowering(_plan_batched, accepts=_multiplies),
    ScaledDot: DeviceLowering(_plan_scaled, accepts=_multiplies),
    Gemm: DeviceLowering(_plan_gemm, accepts=_multiplies),
    BatchedGemm: DeviceLowering(_plan_gemm, accepts=_multiplies),
    Gemv: DeviceLowering(_plan_gemv, accepts=_multiplies),
    Ger: DeviceLowering(_plan_ger, accepts=_multiplies),
}


def lowerings(table: Mapping[type, DeviceLowering]) -> dict[type, Lowering]:
    """Return, by the class of the op, what gives the lowering of a node, or None."""
    return {op: partial(_accepted, how) for op, how in table.items()}


LOWERINGS = lowerings(TABLE)
