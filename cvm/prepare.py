"""Lower a program's instructions for the native machine."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import count
from typing import Any

import numpy as np

from symcomp.codegen.compiler.early import Code
from symcomp.config import config
from symcomp.core.node import Apply
from symcomp.core.record import replace
from symcomp.core.storage import is_widened
from symcomp.cvm import machine as native
from symcomp.cvm.blas_threads import threads_of_products
from symcomp.cvm.decompositions import ROUTINES, decomposition
from symcomp.cvm.kernels import (
    FORMULAS,
    MOST_AXES,
    PrintedKernels,
    formula_of,
    lowered_kernels,
    threads_to_use,
)
from symcomp.cvm.machine import DRAWS_OF_NUMPY, Lowered, NativeMachine
from symcomp.ops.control.conditions import Assert
from symcomp.ops.convert import Stack
from symcomp.ops.elementwise.elemwise import ScalarOp
from symcomp.ops.elementwise.plus_scalar import PlusScalar
from symcomp.ops.indexing.diagonal import Diagonal
from symcomp.ops.indexing.gather_labels import AsRows
from symcomp.ops.indexing.index import IncSubtensor, Nonzero, Subtensor
from symcomp.ops.indexing.index_pattern import (
    ARRAY,
    NEW,
    NOTHING,
    SYMBOL,
    IndexPattern,
    MaskFits,
    Slice,
)
from symcomp.ops.linalg.blas import BatchedGemm, Gemm, Gemv, Ger, ScaledDot
from symcomp.ops.linalg.contraction import MatrixChain, in_order
from symcomp.ops.linalg.products import BatchedDot, Dot, SameLengths
from symcomp.ops.nnet.labels import Labels
from symcomp.ops.random.draw import Draw
from symcomp.ops.reductions.cumulative import CumOp, LinearRecurrence
from symcomp.ops.reductions.reduce import ArgReduce
from symcomp.ops.shapes.alloc import Alloc
from symcomp.ops.shapes.contiguous import Contiguous
from symcomp.ops.shapes.creation import Arange
from symcomp.ops.shapes.dimshuffle import DimShuffle
from symcomp.ops.shapes.join import Join, Split
from symcomp.ops.shapes.shape import ForgetLengths, Reshape, Shape, ShapeI, SpecifyShape
from symcomp.ops.sorting.sort import Argsort, SearchSorted, Sort, Unique
from symcomp.ops.sorting.topk import ArgTopK
from symcomp.ops.windows.convolution import Convolve, ConvolveInputs, ConvolveKernels
from symcomp.ops.windows.pooling import MODES as POOL_MODES
from symcomp.ops.windows.pooling import MaxPool, SumPool, SumPoolInputs, ToPositions
from symcomp.vm.features import Feature, Lowering, Lowerings
from symcomp.vm.op_planning import OP_PLANNING
from symcomp.vm.opcodes import Opcode
from symcomp.vm.program import Instruction, Program
from symcomp.vm.reserve import Reserve

# The largest number that the machine compares lengths with.
LARGEST_INT = 2**31 - 1
# The most lengths that are looked at together.
MOST_PIECES = 36
# The most axes of images: see windows.h.
MOST_SPATIAL_AXES = 3
# The most factors of chains of products (see products.h).
MOST_FACTORS = 64


def computed_natively(program: Program, lowered: Sequence[Lowered | None]) -> Program:
    """Return a program for the Python machine, each of whose instructions is computed by the same
    native calls as in the native machine.
    """
    code = [
        replace(step, compute=_single(step, how))
        if how is not None and how.name != "python" and not step.bodies and not step.claims
        else step
        for step, how in zip(program.instructions, lowered, strict=True)
    ]
    return replace(program, instructions=code)


def _single(step: Instruction, how: Lowered) -> Callable[..., Any]:
    """Return what computes one instruction by its native calls, from values of its arguments."""
    n, arguments, several = len(step.inputs), len(step.arguments), step.several
    outputs = tuple(range(arguments, arguments + len(step.outputs)))
    alone = replace(
        step, inputs=tuple(range(n)), into=tuple(range(n, arguments)), outputs=outputs, frees=()
    )
    made: list[Any] = [None] * len(outputs) if step.node is None else step.node.outputs
    given: list[Any] = made if step.node is None else step.node.inputs
    variables = [*given, *made[: arguments - n], *made]
    program = Program([alone], variables, tuple(range(arguments)), outputs)
    machine = NativeMachine(program, [how])

    def compute(*values: Any) -> Any:
        found = machine.run(values)
        return tuple(found) if several else found[0]

    return compute


def lowered_instructions(
    code: Sequence[Instruction],
    lowerings: Lowerings,
    printed: PrintedKernels,
    codes: Mapping[str, Code],
) -> list[Lowered | None]:
    """Return, for each instruction, how it is planned; None for instructions that the machine does
    itself.

    Parameters
    ----------
    code : sequence of Instruction
    lowerings : mapping of type to callable
        By the class of the op.
    printed : mapping of int to (Formula, WholeKernel)
        The kernels of instructions.
    codes : mapping of str to Code
        The compiled kernels, by name.
    """
    kernels = lowered_kernels(code, printed, codes) if config.kernels else {}
    return [
        _gate(step, code, kernels) if step.claims else kernels.get(i) or _lowered(step, lowerings)
        for i, step in enumerate(code)
    ]


def _lowered(step: Instruction, lowerings: Lowerings) -> Lowered | None:
    """Lower a CALL or COPY; None for the opcodes that the machine knows itself."""
    if step.opcode not in (Opcode.CALL, Opcode.COPY):
        return None
    if step.opcode is Opcode.COPY:
        return native.copied(step, False)
    lowering = lowerings.get(type(step.node.op)) if step.node is not None else None
    found = lowering(step) if lowering is not None and _is_native(step) else None
    return found if found is not None else native.python_call(step)


def _gate(
    step: Instruction, code: Sequence[Instruction], kernels: Mapping[int, Lowered]
) -> Lowered:
    """Lower the gate, which checks layouts, or values too."""
    gate: Any = step.compute
    checks_values = not all(_fails_by_lengths_alone(node) for node, _, _ in gate.checks)
    lowered = {id(other.node): kernels.get(i) for i, other in enumerate(code)}
    return native.gate(
        step, checks_values, [(lowered.get(id(node)), places) for node, _, places in gate.checks]
    )


def _fails_by_lengths_alone(node: Apply) -> bool:
    if isinstance(node.op, Gemm | Gemv | Ger):
        return True
    formula = formula_of(node)
    return formula is not None and all(
        isinstance(step.function, ScalarOp) and step.function.never_fails(step.dtype)
        for step in formula.steps
    )


def _is_native(step: Instruction) -> bool:
    """Tell whether no array has more axes than the machine takes, or is computed in another dtype.
    """
    node: Any = step.node
    few = all(getattr(v, "ndim", 0) <= MOST_AXES for v in (*node.inputs, *node.outputs))
    return few and not is_widened(node)


# -- views and identities


def _transpose(step: Instruction) -> Lowered | None:
    op: Any = step.node.op  # type: ignore[union-attr]
    return native.transpose(step, op.ndim, [-1 if a == "x" else a for a in op.order])


def _diagonal(step: Instruction) -> Lowered | None:
    op: Any = step.node.op  # type: ignore[union-attr]
    return native.diagonal(step, max(-op.offset, 0), max(op.offset, 0))


def _pieces(step: Instruction) -> Lowered | None:
    op: Any = step.node.op  # type: ignore[union-attr]
    return native.pieces(step, op.axis) if 0 < op.n <= MOST_PIECES else None


def _reshape(step: Instruction) -> Lowered | None:
    op: Any = step.node.op  # type: ignore[union-attr]
    return native.reshape(step, op.ndim)


def _length(step: Instruction) -> Lowered | None:
    op: Any = step.node.op  # type: ignore[union-attr]
    return native.lengths(step, op.axis)


def _lengths(step: Instruction) -> Lowered | None:
    return native.lengths(step, -1)


def _forget(step: Instruction) -> Lowered | None:
    return native.passed(step, 0, [])


def _specify(step: Instruction) -> Lowered | None:
    op: Any = step.node.op  # type: ignore[union-attr]
    known = [(a, n) for a, n in enumerate(op.lengths) if n is not None]
    if any(n > LARGEST_INT for _, n in known):
        return None
    return native.passed(step, 0, [("length", 0, a, 0, n) for a, n in known])


def _same_lengths(step: Instruction) -> Lowered | None:
    op: Any = step.node.op  # type: ignore[union-attr]
    return native.passed(step, 1, [("lengths", 0, i, 1, j) for i, j in op.pairs])


def _labels(step: Instruction) -> Lowered | None:
    return native.passed(step, 0, [("below", 0, 0, 1, 0)])


def _as_rows(step: Instruction) -> Lowered | None:
    count = step.node.op.count  # type: ignore[union-attr]
    long = [] if count is None else [("length", 1, 0, 1, count)]
    return native.passed(step, 1, [("lengths", 0, 0, 1, 0), *long])


def _mask_fits(step: Instruction) -> Lowered | None:
    n = len(step.node.op.axes)  # type: ignore[union-attr]
    return native.passed(step, 0, [("numbers", 1 + i, 0, 1 + n + i, 0) for i in range(n)])


def _assert(step: Instruction) -> Lowered | None:
    count = len(step.inputs)
    return native.passed(step, 0, [("true", i, 0, i, 0) for i in range(1, count)])


def _plus_scalar(step: Instruction) -> Lowered | None:
    return native.passed(step, 0, [("false", 1, 0, 1, 0)])


# -- products


def _dot(step: Instruction) -> Lowered | None:
    return _product(step, a=0, b=1)


def _scaled_dot(step: Instruction) -> Lowered | None:
    return _product(step, alpha=0, a=1, b=2)


def _gemm(step: Instruction) -> Lowered | None:
    return _product(step, 0, 1, 2, 3, 4)


def _ger(step: Instruction) -> Lowered | None:
    return _product(step, 0, 1, 2, 3, outer=True)


def _product(
    step: Instruction,
    c: int = -1,
    alpha: int = -1,
    a: int = -1,
    b: int = -1,
    beta: int = -1,
    outer: bool = False,
) -> Lowered | None:
    node: Any = step.node
    out = node.outputs[0]
    if any(v.dtype != out.dtype for v in node.inputs):
        return None
    transposed = (getattr(node.op, "trans_a", False), getattr(node.op, "trans_b", False))
    destroys = bool(node.op.destroy_map)
    return native.product(
        step, out.ndim, c, alpha, a, b, beta, transposed, outer, destroys, out.dtype,
        threads_of_products(),
    )  # fmt: skip


def _chain(step: Instruction) -> Lowered | None:
    op: Any = step.node.op  # type: ignore[union-attr]
    if len(step.inputs) > MOST_FACTORS:
        return None
    node: Any = step.node
    order = in_order(op.brackets)
    return native.chain(step, order, node.outputs[0].dtype, threads_of_products())


# -- elements moved


def _fill(step: Instruction) -> Lowered | None:
    node: Any = step.node
    stretching = [n == 1 for n in node.inputs[0].type.shape]
    return native.fill(step, node.outputs[0].ndim, stretching)


def _contiguous(step: Instruction) -> Lowered | None:
    return native.copied(step, True)


def _join(step: Instruction) -> Lowered | None:
    op: Any = step.node.op  # type: ignore[union-attr]
    return native.joined(step, op.axis, False)


def _reserve(step: Instruction) -> Lowered | None:
    op: Any = step.node.op  # type: ignore[union-attr]
    return native.reserve(step, op.axis, op.parts, op.kind.dtype)


def _stack(step: Instruction) -> Lowered | None:
    return native.joined(step, 0, True)


def _read(step: Instruction) -> Lowered | None:
    pattern = step.node.op.pattern  # type: ignore[union-attr]
    entries = _entries(pattern, 1)
    if entries is None:
        return None
    return (native.gather if ARRAY in pattern else native.view)(step, entries)


def _write(step: Instruction) -> Lowered | None:
    op: Any = step.node.op  # type: ignore[union-attr]
    entries = _entries(op.pattern, 2)
    if entries is None:
        return None
    stretching = [n == 1 for n in step.node.inputs[1].type.shape]  # type: ignore[union-attr]
    write = native.scatter if ARRAY in op.pattern else native.written
    return write(step, entries, op.set, stretching, op.inplace)


def _entries(pattern: IndexPattern, first: int) -> list[Any] | None:
    """Return an index expression as the machine takes it, whose numbers and arrays are inputs from
    ``first`` on; None for one with flags.
    """
    rest = count(first)

    def bound(part: Any) -> tuple[str, int] | None:
        if part is None:
            return None
        return ("input", next(rest)) if part == SYMBOL else ("value", part)

    entries: list[Any] = []
    for entry in pattern:
        if isinstance(entry, Slice):
            entries.append(("part", *(bound(part) for part in entry)))
        elif entry in (NEW, NOTHING):
            entries.append("new" if entry == NEW else "gap")
        elif entry == ARRAY:
            entries.append(("array", next(rest)))
        elif entry == SYMBOL or isinstance(entry, int):
            entries.append(("at", bound(entry)))
        else:
            return None
    return entries


# -- windows, random numbers


def _convolution(step: Instruction) -> Lowered | None:
    """Lower a convolution, or an adjoint of one, over lines or planes."""
    node: Any = step.node
    op, out = node.op, node.outputs[0]
    if op.ndim > MOST_SPATIAL_AXES or out.dtype not in REALS:
        return None
    part = (Convolve, ConvolveInputs, ConvolveKernels).index(type(op))
    geometry = op.geometry
    named = {"valid": (0, 0), "full": (-1, -1), "half": (-2, -2)}
    padding = [named[p] if isinstance(p, str) else p for p in geometry.padding]
    return native.convolution(
        step, part, padding, geometry.strides, geometry.dilation, op.groups, out.dtype,
        threads_to_use(),
    )  # fmt: skip


def _pool(step: Instruction) -> Lowered | None:
    """Lower a pool, or an adjoint of one, over lines, planes or volumes."""
    node: Any = step.node
    op, x = node.op, node.inputs[0]
    if not 0 < op.ndim <= MOST_SPATIAL_AXES or x.dtype not in REALS or x.ndim > MOST_AXES:
        return None
    ones, zeros = (1,) * op.ndim, (0,) * op.ndim
    has_windows = not isinstance(op, ToPositions)
    window, strides, padding, partial = (
        (op.window, op.strides, op.padding, op.partial)
        if has_windows
        else (ones, ones, zeros, False)
    )
    what = (MaxPool, SumPool, SumPoolInputs, ToPositions).index(type(op))
    divided = POOL_MODES.index(op.mode) if what in (1, 2) else 0
    return native.pool(
        step, what, x.ndim, window, strides, padding, partial, x.dtype, threads_to_use(), divided
    )


def _draw(step: Instruction) -> Lowered | None:
    """Lower draws, by the distributions of the installed NumPy."""
    node: Any = step.node
    op = node.op
    row = op.row
    if DRAWS_OF_NUMPY != np.__version__:
        return None
    ndim = len(node.inputs) - 1 - len(row.parameters)
    parameters = [
        (x.dtype, is_vector, x.type.broadcastable)
        for x, is_vector in zip(node.inputs[1 + ndim :], row.vectors, strict=True)
    ]
    return native.draw(step, op.distribution, ndim, op.dtype, parameters, row.is_vector)


# -- along an axis


def _running(step: Instruction) -> Lowered | None:
    node: Any = step.node
    return native.running(step, node.op.mode, node.op.axis, node.outputs[0].dtype)


def _recurrence(step: Instruction) -> Lowered | None:
    node: Any = step.node
    return native.running(step, "recurrence", node.op.axis, node.outputs[0].dtype)


def _extreme(step: Instruction) -> Lowered | None:
    op: Any = step.node.op  # type: ignore[union-attr]
    return native.extreme(step, op.which == "argmax", op.axes)


def _sort(step: Instruction) -> Lowered | None:
    op: Any = step.node.op  # type: ignore[union-attr]
    return native.sorted_along(step, op.axis, isinstance(op, Argsort))


def _search(step: Instruction) -> Lowered | None:
    op: Any = step.node.op  # type: ignore[union-attr]
    return native.searched(step, op.side == "right")


def _first(step: Instruction) -> Lowered | None:
    return native.first(step, step.node.op.axis)  # type: ignore[union-attr]


def _distinct(step: Instruction) -> Lowered | None:
    op: Any = step.node.op  # type: ignore[union-attr]
    if op.axis is not None:
        return None
    return native.distinct(step, op.return_index, op.return_inverse, op.return_counts)


def _nonzero(step: Instruction) -> Lowered | None:
    return native.nonzero(step)


def _range(step: Instruction) -> Lowered | None:
    return native.range_of(step, step.node.op.dtype)  # type: ignore[union-attr]


REALS = ("float32", "float64")

_LOWERINGS: dict[type, Lowering] = {
    **dict.fromkeys(ROUTINES, decomposition),
    Alloc: _fill,
    Arange: _range,
    ArgReduce: _extreme,
    ArgTopK: _first,
    Argsort: _sort,
    AsRows: _as_rows,
    Assert: _assert,
    BatchedDot: _dot,
    BatchedGemm: _gemm,
    Contiguous: _contiguous,
    Convolve: _convolution,
    ConvolveInputs: _convolution,
    ConvolveKernels: _convolution,
    CumOp: _running,
    Diagonal: _diagonal,
    DimShuffle: _transpose,
    Dot: _dot,
    Draw: _draw,
    ForgetLengths: _forget,
    Gemm: _gemm,
    Gemv: _gemm,
    Ger: _ger,
    IncSubtensor: _write,
    Join: _join,
    Labels: _labels,
    LinearRecurrence: _recurrence,
    MatrixChain: _chain,
    MaxPool: _pool,
    MaskFits: _mask_fits,
    Nonzero: _nonzero,
    PlusScalar: _plus_scalar,
    Reserve: _reserve,
    Reshape: _reshape,
    SameLengths: _same_lengths,
    ScaledDot: _scaled_dot,
    SearchSorted: _search,
    Shape: _lengths,
    ShapeI: _length,
    Sort: _sort,
    SpecifyShape: _specify,
    Split: _pieces,
    Stack: _stack,
    Subtensor: _read,
    SumPool: _pool,
    SumPoolInputs: _pool,
    ToPositions: _pool,
    Unique: _distinct,
}

#: Ops that the native machine implements; the others call Python.
CPU = Feature(
    "cpu",
    lowerings={(op, "cpu"): how for op, how in _LOWERINGS.items()},
    kernels=FORMULAS,
    planning=OP_PLANNING,
)
