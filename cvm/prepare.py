"""From a program to what the native machine does for each instruction."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from symcomp.config import config
from symcomp.core.node import Apply
from symcomp.cvm.blas_threads import BlasLimit
from symcomp.cvm.decompositions import ROUTINES, decomposition
from symcomp.cvm.kernels import (
    MOST_ARRAYS,
    MOST_AXES,
    formula_of,
    kernel_actions,
    threads_to_use,
)
from symcomp.cvm.machine import (
    DRAWS_OF_NUMPY,
    Action,
    Chain,
    Convolution,
    Copied,
    DiagonalView,
    Distinct,
    Extreme,
    Fill,
    First,
    GateCall,
    Gather,
    Inspected,
    Joined,
    KernelCall,
    Largest,
    Lengths,
    Multiplied,
    NativeMachine,
    Nonzeros,
    Passed,
    Pieces,
    Placing,
    Product,
    PythonCall,
    RandomDraw,
    Range,
    Reserve,
    Reshaped,
    Running,
    Scatter,
    Searched,
    Sorted,
    Sums,
    Transpose,
    View,
    Written,
)
from symcomp.ops.alloc import Alloc
from symcomp.ops.blas import BatchedGemm, Gemm, Gemv, Ger, ScaledDot
from symcomp.ops.contraction import MatrixChain, in_order
from symcomp.ops.control import Assert
from symcomp.ops.convert import Stack
from symcomp.ops.creation import Arange
from symcomp.ops.cumulative import CumOp, LinearRecurrence
from symcomp.ops.diagonal import Diagonal
from symcomp.ops.dimshuffle import DimShuffle
from symcomp.ops.elemwise import ScalarOp
from symcomp.ops.extra import Contiguous
from symcomp.ops.index import IncSubtensor, Nonzero, Subtensor
from symcomp.ops.join import Join, Split
from symcomp.ops.labels import Labels
from symcomp.ops.pattern import ARRAY, NEW, NOTHING, SYMBOL, MaskFits, Pattern, Slice
from symcomp.ops.pick import AsRows
from symcomp.ops.plus_scalar import PlusScalar
from symcomp.ops.products import BatchedDot, Dot, SameLengths
from symcomp.ops.random.draw import Draw
from symcomp.ops.reduce import ArgReduce
from symcomp.ops.shape import ForgetLengths, Reshape, Shape, ShapeI, SpecifyShape
from symcomp.ops.sort import Argsort, ArgTopK, SearchSorted, Sort, Unique
from symcomp.ops.windows.convolution import Convolve, ConvolveInputs, ConvolveKernels
from symcomp.ops.windows.pooling import MODES as POOL_MODES
from symcomp.ops.windows.pooling import MaxPool, SumPool, SumPoolInputs, ToPositions
from symcomp.vm import destinations
from symcomp.vm.inspection import Inspector, is_inspected
from symcomp.vm.opcodes import Opcode
from symcomp.vm.program import Instruction, Program

Lowering = Callable[[Instruction], Action | None]

# Of what the machine compares lengths with.
LARGEST_INT = 2**31 - 1
# Of images: see windows.h.
MOST_SPATIAL_AXES = 3
# Of what chains of products have (see products.h).
MOST_FACTORS = 64


def native_machine(
    program: Program, keep: bool = False, inspector: Inspector | None = None
) -> NativeMachine:
    """The machine that runs ``program`` natively.

    Parameters
    ----------
    program : Program
    keep : bool
        Hold on to the values of the last call until ``free`` is called.
    inspector : Inspector, optional
        Sees the values of every node that is computed, by the same actions as without it.
    """
    return NativeMachine(program, actions_of(program.instructions, inspector), keep)


def actions_of(
    code: Sequence[Instruction], inspector: Inspector | None = None
) -> list[Action | None]:
    """For each instruction what does it; None for what the machine does itself."""
    kernels = kernel_actions(code) if config.kernels else {}
    actions = [
        None if step.claims else kernels.get(i) or _action(step) for i, step in enumerate(code)
    ]
    for i, step in enumerate(code):
        if step.claims:
            actions[i] = _gate(step, dict(zip((s.node for s in code), actions, strict=True)))
    if inspector is None:
        return actions
    return [
        Inspected(action, inspector, code[i], i) if action and is_inspected(code[i]) else action
        for i, action in enumerate(actions)
    ]


def _action(step: Instruction) -> Action | None:
    """What does a CALL or COPY; None for the opcodes that the machine knows itself."""
    if step.opcode not in (Opcode.CALL, Opcode.COPY):
        return None
    if step.opcode is Opcode.COPY:
        return Copied(*_call(step), False)
    native = NATIVE.get(type(step.node.op)) if step.node is not None else None
    found = native(step) if native is not None and _is_small(step) else None
    return found if found is not None else PythonCall(*_call(step))


def _gate(step: Instruction, action_of: Mapping[Apply | None, Action | None]) -> Action:
    """What lets pass if nothing behind it can fail."""
    gate: Any = step.compute
    checked: list[tuple[Action, list[int]]] = []
    for node, _, places in gate.checks:
        action, slots = action_of[node], [step.inputs[k] for k in places]
        if isinstance(action, Product) and isinstance(node.op, Gemm | Gemv | Ger):
            checked.append((action, (slots + [-1])[:5]))
        elif isinstance(action, KernelCall) and _fails_by_lengths_alone(node):
            checked.append((action, slots))
        else:
            return GateCall(gate, step.inputs, step.outputs)
    return GateCall(gate, step.inputs, step.outputs, checked)


def _fails_by_lengths_alone(node: Apply) -> bool:
    formula = formula_of(node)
    return formula is not None and all(
        isinstance(step.function, ScalarOp) and step.function.never_fails(step.dtype)
        for step in formula.steps
    )


def _call(step: Instruction) -> tuple[Any, Sequence[int], Sequence[int], bool]:
    """What all native actions take."""
    return step.compute, step.arguments, step.outputs, step.several


def _is_small(step: Instruction) -> bool:
    """Whether no array has more axes than the machine takes."""
    node: Any = step.node
    return all(getattr(v, "ndim", 0) <= MOST_AXES for v in (*node.inputs, *node.outputs))


def _into(step: Instruction) -> int:
    """The slot whose array takes the result; -1: none."""
    return step.into[0] if step.into else -1


# -- views, and what is passed on


def _transpose(step: Instruction) -> Action | None:
    op: Any = step.node.op  # type: ignore[union-attr]
    return Transpose(*_call(step), op.ndim, [-1 if a == "x" else a for a in op.order])


def _diagonal(step: Instruction) -> Action | None:
    op: Any = step.node.op  # type: ignore[union-attr]
    return DiagonalView(*_call(step), max(-op.offset, 0), max(op.offset, 0))


def _pieces(step: Instruction) -> Action | None:
    op: Any = step.node.op  # type: ignore[union-attr]
    return Pieces(*_call(step), op.axis) if 0 < op.n <= MOST_ARRAYS else None


def _reshape(step: Instruction) -> Action | None:
    op: Any = step.node.op  # type: ignore[union-attr]
    return Reshaped(*_call(step), op.ndim)


def _length(step: Instruction) -> Action | None:
    op: Any = step.node.op  # type: ignore[union-attr]
    return Lengths(*_call(step), op.axis)


def _lengths(step: Instruction) -> Action | None:
    return Lengths(*_call(step), -1)


def _forget(step: Instruction) -> Action | None:
    return Passed(*_call(step), 0, [])


def _specify(step: Instruction) -> Action | None:
    op: Any = step.node.op  # type: ignore[union-attr]
    known = [(a, n) for a, n in enumerate(op.lengths) if n is not None]
    if any(n > LARGEST_INT for _, n in known):
        return None
    return Passed(*_call(step), 0, [("length", 0, a, 0, n) for a, n in known])


def _same_lengths(step: Instruction) -> Action | None:
    op: Any = step.node.op  # type: ignore[union-attr]
    return Passed(*_call(step), 1, [("lengths", 0, i, 1, j) for i, j in op.pairs])


def _labels(step: Instruction) -> Action | None:
    return Passed(*_call(step), 0, [("below", 0, 0, 1, 0)])


def _as_rows(step: Instruction) -> Action | None:
    count = step.node.op.count  # type: ignore[union-attr]
    long = [] if count is None else [("length", 1, 0, 1, count)]
    return Passed(*_call(step), 1, [("lengths", 0, 0, 1, 0), *long])


def _mask_fits(step: Instruction) -> Action | None:
    n = len(step.node.op.axes)  # type: ignore[union-attr]
    return Passed(*_call(step), 0, [("numbers", 1 + i, 0, 1 + n + i, 0) for i in range(n)])


def _assert(step: Instruction) -> Action | None:
    count = len(step.inputs)
    return Passed(*_call(step), 0, [("true", i, 0, i, 0) for i in range(1, count)])


def _plus_scalar(step: Instruction) -> Action | None:
    return Passed(*_call(step), 0, [("false", 1, 0, 1, 0)])


# -- products


def _dot(step: Instruction) -> Action | None:
    a, b = step.inputs
    return _product(step, a=a, b=b)


def _scaled_dot(step: Instruction) -> Action | None:
    alpha, a, b = step.inputs
    return _product(step, alpha=alpha, a=a, b=b)


def _gemm(step: Instruction) -> Action | None:
    c, alpha, a, b, beta = step.inputs
    return _product(step, c, alpha, a, b, beta)


def _ger(step: Instruction) -> Action | None:
    c, alpha, a, b = step.inputs
    return _product(step, c, alpha, a, b, outer=True)


def _product(
    step: Instruction,
    c: int = -1,
    alpha: int = -1,
    a: int = -1,
    b: int = -1,
    beta: int = -1,
    outer: bool = False,
) -> Action | None:
    node: Any = step.node
    out = node.outputs[0]
    same = all(x.dtype == out.dtype for x in node.inputs)
    kind = Product if same and out.ndim < 3 and out.dtype in REALS else Multiplied
    transposed = (getattr(node.op, "trans_a", False), getattr(node.op, "trans_b", False))
    into = c if node.op.destroy_map else _into(step)
    return kind(*_call(step), out.ndim, c, alpha, a, b, beta, transposed, outer, into, out.dtype)


def _chain(step: Instruction) -> Action | None:
    op: Any = step.node.op  # type: ignore[union-attr]
    if len(step.inputs) > MOST_FACTORS:
        return None
    return Chain(*_call(step), in_order(op.brackets), step.node.outputs[0].dtype)  # type: ignore[union-attr]


# -- elements moved


def _fill(step: Instruction) -> Action | None:
    node: Any = step.node
    stretching = [n == 1 for n in node.inputs[0].type.shape]
    return Fill(*_call(step), node.outputs[0].ndim, stretching, _into(step))


def _contiguous(step: Instruction) -> Action | None:
    return Copied(*_call(step), True)


def _join(step: Instruction) -> Action | None:
    op: Any = step.node.op  # type: ignore[union-attr]
    return Joined(*_call(step), len(step.inputs), op.axis, False, _into(step))


def _reserve(step: Instruction) -> Action | None:
    op: Any = step.node.op  # type: ignore[union-attr]
    return Reserve(*_call(step), op.axis, op.parts, op.kind.dtype, _into(step))


def _stack(step: Instruction) -> Action | None:
    return Joined(*_call(step), len(step.inputs), 0, True, _into(step))


def _read(step: Instruction) -> Action | None:
    pattern = step.node.op.pattern  # type: ignore[union-attr]
    entries = _entries(pattern, step.inputs[1:])
    if entries is None:
        return None
    return (Gather if ARRAY in pattern else View)(*_call(step), entries)


def _write(step: Instruction) -> Action | None:
    op: Any = step.node.op  # type: ignore[union-attr]
    entries = _entries(op.pattern, step.inputs[2:])
    if entries is None:
        return None
    stretching = [n == 1 for n in step.node.inputs[1].type.shape]  # type: ignore[union-attr]
    kind = Scatter if ARRAY in op.pattern else Written
    return kind(*_call(step), entries, op.set, stretching, op.inplace, _into(step))


def _entries(pattern: Pattern, slots: Sequence[int]) -> list[Any] | None:
    """An index expression as the machine takes it; None for one with flags."""
    rest = iter(slots)

    def bound(part: Any) -> tuple[str, int] | None:
        return None if part is None else ("slot", next(rest)) if part == SYMBOL else ("value", part)

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


def _convolution(step: Instruction) -> Action | None:
    """A convolution, or an adjoint of one, over lines or planes."""
    node: Any = step.node
    op, out = node.op, node.outputs[0]
    if op.ndim > MOST_SPATIAL_AXES or out.dtype not in REALS:
        return None
    part = (Convolve, ConvolveInputs, ConvolveKernels).index(type(op))
    geometry = op.geometry
    named = {"valid": (0, 0), "full": (-1, -1), "half": (-2, -2)}
    padding = [named[p] if isinstance(p, str) else p for p in geometry.padding]
    return Convolution(
        part, step.compute, step.arguments, step.outputs[0], padding, geometry.strides,
        geometry.dilation, op.groups, out.dtype, threads_to_use(), BlasLimit(1),
    )  # fmt: skip


def _pool(kind: type[Any], step: Instruction, *rest: Any) -> Action | None:
    """A pool, or an adjoint of one, over lines, planes or volumes."""
    node: Any = step.node
    op, x = node.op, node.inputs[0]
    if not 0 < op.ndim <= MOST_SPATIAL_AXES or x.dtype not in REALS or x.ndim > MOST_AXES:
        return None
    ones, zeros = (1,) * op.ndim, (0,) * op.ndim
    has_windows = not isinstance(op, ToPositions)
    geometry = (
        (op.window, op.strides, op.padding, op.partial)
        if has_windows
        else (ones, ones, zeros, False)
    )
    found: Action = kind(
        step.compute, step.arguments, step.outputs, x.ndim, *geometry, x.dtype, threads_to_use(),
        *rest,
    )  # fmt: skip
    return found


def _largest(step: Instruction) -> Action | None:
    return _pool(Largest, step)


def _sums(step: Instruction) -> Action | None:
    op: Any = step.node.op  # type: ignore[union-attr]
    return _pool(Sums, step, POOL_MODES.index(op.mode), isinstance(op, SumPoolInputs))


def _placing(step: Instruction) -> Action | None:
    return _pool(Placing, step)


def _draw(step: Instruction) -> Action | None:
    """A real draw, by the distributions of the NumPy that is here."""
    node: Any = step.node
    op, out = node.op, node.outputs[1]
    if op.distribution not in DRAWN or DRAWS_OF_NUMPY != np.__version__:
        return None
    parameters = node.inputs[1 + out.ndim :]
    single = all(n == 1 for x in parameters for n in x.type.shape)
    into = step.into[1] if step.into else -1
    return RandomDraw(
        op.distribution, step.compute, step.arguments, step.outputs, out.ndim, into, out.dtype,
        single,
    )  # fmt: skip


# -- lines


def _running(step: Instruction) -> Action | None:
    node: Any = step.node
    return Running(*_call(step), node.op.mode, node.op.axis, node.outputs[0].dtype)


def _recurrence(step: Instruction) -> Action | None:
    node: Any = step.node
    return Running(*_call(step), "recurrence", node.op.axis, node.outputs[0].dtype)


def _extreme(step: Instruction) -> Action | None:
    op: Any = step.node.op  # type: ignore[union-attr]
    return Extreme(*_call(step), op.which == "argmax", op.axes)


def _sort(step: Instruction) -> Action | None:
    op: Any = step.node.op  # type: ignore[union-attr]
    return Sorted(*_call(step), op.axis, isinstance(op, Argsort))


def _search(step: Instruction) -> Action | None:
    op: Any = step.node.op  # type: ignore[union-attr]
    return Searched(*_call(step), op.side == "right")


def _first(step: Instruction) -> Action | None:
    return First(*_call(step), step.node.op.axis)  # type: ignore[union-attr]


def _distinct(step: Instruction) -> Action | None:
    op: Any = step.node.op  # type: ignore[union-attr]
    if op.axis is not None:
        return None
    return Distinct(*_call(step), op.return_index, op.return_inverse, op.return_counts)


def _nonzero(step: Instruction) -> Action | None:
    return Nonzeros(*_call(step))


def _range(step: Instruction) -> Action | None:
    return Range(*_call(step), step.node.op.dtype)  # type: ignore[union-attr]


REALS = ("float32", "float64")
DRAWN = ("standard_exponential", "standard_gamma", "standard_normal", "standard_uniform")

# What is done natively; the rest calls Python.
NATIVE: dict[type, Lowering] = {
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
    MaxPool: _largest,
    MaskFits: _mask_fits,
    Nonzero: _nonzero,
    PlusScalar: _plus_scalar,
    destinations.Reserve: _reserve,
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
    SumPool: _sums,
    SumPoolInputs: _sums,
    ToPositions: _placing,
    Unique: _distinct,
}
