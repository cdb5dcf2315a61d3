"""From a program to what the native machine does for each instruction."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from symcomp.config import config
from symcomp.cvm.kernels import MOST_AXES, kernel_actions
from symcomp.cvm.machine import (
    DRAWS_OF_NUMPY,
    Action,
    Convolution,
    Fill,
    GateCall,
    Gather,
    Inspected,
    Join,
    Largest,
    Length,
    NativeMachine,
    Part,
    PartWrite,
    Placing,
    Product,
    PythonCall,
    RandomDraw,
    Reserve,
    Scatter,
    Transpose,
    View,
)
from symcomp.ops import join as ops_join
from symcomp.ops.alloc import Alloc
from symcomp.ops.blas import Gemm, Gemv, Ger, ScaledDot
from symcomp.ops.dimshuffle import DimShuffle
from symcomp.ops.index import IncSubtensor, Subtensor
from symcomp.ops.pattern import ARRAY, NEW, NOTHING, SYMBOL, Pattern, Slice
from symcomp.ops.products import Dot
from symcomp.ops.random.draw import Draw
from symcomp.ops.shape import ShapeI
from symcomp.ops.windows.convolution import Convolve, ConvolveInputs, ConvolveKernels
from symcomp.ops.windows.pooling import MaxPool, ToPositions
from symcomp.vm import destinations
from symcomp.vm.inspection import Inspector, is_inspected
from symcomp.vm.opcodes import Opcode
from symcomp.vm.program import Instruction, Program

Lowering = Callable[[Instruction], Action | None]


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
    code = program.instructions
    kernels = kernel_actions(code) if config.kernels else {}
    actions = [kernels.get(i) or _action(step) for i, step in enumerate(code)]
    python = any(type(action) is PythonCall for action in actions)
    if inspector is not None:
        python = True
        actions = [
            Inspected(action, inspector, code[i], i) if action and is_inspected(code[i]) else action
            for i, action in enumerate(actions)
        ]
    return NativeMachine(program, actions, keep, python)


def _action(step: Instruction) -> Action | None:
    """What does a CALL or COPY; None for the opcodes that the machine knows itself."""
    if step.opcode not in (Opcode.CALL, Opcode.COPY):
        return None
    if step.claims:
        return GateCall(step.compute, step.inputs, step.outputs)
    native = NATIVE.get(type(step.node.op)) if step.node is not None else None
    found = native(step) if native is not None else None
    if found is not None:
        return found
    return PythonCall(step.compute, step.arguments, step.outputs, step.several)


def _transpose(step: Instruction) -> Action | None:
    op: Any = step.node.op  # type: ignore[union-attr]
    order = [-1 if a == "x" else a for a in op.order]
    return Transpose(step.compute, step.inputs[0], step.outputs[0], op.ndim, order)


def _subtensor(step: Instruction) -> Action | None:
    """A part that the pattern alone says."""
    node: Any = step.node
    x, z = node.inputs[0], node.outputs[0]
    if len(step.inputs) > 1 or max(x.ndim, z.ndim) > MOST_AXES:
        return None
    entries: list[Any] = []
    for entry in node.op.pattern:
        if entry == NEW:
            entries.append(None)
        elif isinstance(entry, Slice):
            if entry.step == 0:
                return None
            entries.append(tuple(entry))
        elif entry != NOTHING:
            entries.append(entry)
    return Part(step.compute, step.inputs[0], step.outputs[0], x.ndim, entries)


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
    if out.dtype not in ("float32", "float64") or any(x.dtype != out.dtype for x in node.inputs):
        return None
    transposed = (getattr(node.op, "trans_a", False), getattr(node.op, "trans_b", False))
    into = c if node.op.destroy_map else step.into[0] if step.into else -1
    return Product(
        step.compute, step.arguments, step.outputs[0], out.ndim, c, alpha, a, b, beta, transposed,
        outer, into, out.dtype,
    )  # fmt: skip


def _length(step: Instruction) -> Action | None:
    node: Any = step.node
    return Length(step.compute, step.inputs[0], step.outputs[0], node.op.axis)


def _fill(step: Instruction) -> Action | None:
    node: Any = step.node
    out, value = node.outputs[0], node.inputs[0]
    if any(n != 1 for n in value.type.shape):
        return None
    into = step.into[0] if step.into else -1
    return Fill(step.compute, step.arguments, step.outputs[0], out.ndim, into, out.dtype)


def _convolution(step: Instruction) -> Action | None:
    """A convolution, or an adjoint of one, over lines or planes."""
    node: Any = step.node
    op, out = node.op, node.outputs[0]
    if op.ndim > 2 or out.dtype not in REALS:
        return None
    part = (Convolve, ConvolveInputs, ConvolveKernels).index(type(op))
    geometry = op.geometry
    named = {"valid": (0, 0), "full": (-1, -1), "half": (-2, -2)}
    padding = [named[p] if isinstance(p, str) else p for p in geometry.padding]
    return Convolution(
        part, step.compute, step.arguments, step.outputs[0], padding, geometry.strides,
        geometry.dilation, op.groups, out.dtype,
    )  # fmt: skip


def _largest(step: Instruction) -> Action | None:
    node: Any = step.node
    op, x = node.op, node.inputs[0]
    if op.ndim != 2 or x.dtype not in REALS or x.ndim > MOST_AXES:
        return None
    return Largest(
        step.compute, step.inputs[0], step.outputs, x.ndim, op.window, op.strides, op.padding,
        op.partial, x.dtype,
    )  # fmt: skip


def _placing(step: Instruction) -> Action | None:
    node: Any = step.node
    g = node.inputs[0]
    if g.dtype not in REALS:
        return None
    return Placing(
        step.compute, step.arguments, step.outputs[0], g.ndim, node.op.ndim, g.dtype
    )  # fmt: skip


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


def _read(step: Instruction) -> Action | None:
    pattern = step.node.op.pattern  # type: ignore[union-attr]
    if pattern and all(entry == ARRAY for entry in pattern):
        return Gather(step.compute, step.arguments, step.outputs[0], len(pattern))
    if (part := _subtensor(step)) is not None:
        return part
    entries = _basic(pattern, step.inputs[1:])
    return None if entries is None else View(step.compute, step.inputs, step.outputs[0], entries)


def _write(step: Instruction) -> Action | None:
    node: Any = step.node
    op = node.op
    into = step.inputs[0] if op.inplace else step.into[0] if step.into else -1
    entries = _basic(op.pattern, step.inputs[2:])
    if entries is not None:
        stretched = node.inputs[1].type.broadcastable
        return PartWrite(
            step.compute, step.arguments, step.outputs[0], entries, stretched, op.set, into
        )  # fmt: skip
    if not op.pattern or any(entry != ARRAY for entry in op.pattern):
        return None
    return Scatter(
        step.compute, step.arguments, step.outputs[0], len(op.pattern), op.set, into
    )  # fmt: skip


def _reserve(step: Instruction) -> Action | None:
    op: Any = step.node.op  # type: ignore[union-attr]
    into = step.into[0] if step.into else -1
    return Reserve(
        step.compute, step.arguments, step.outputs, op.axis, op.parts, op.kind.dtype, into
    )


def _join(step: Instruction) -> Action | None:
    node: Any = step.node
    z = node.outputs[0]
    into = step.into[0] if step.into else -1
    return Join(
        step.compute, step.arguments, len(step.inputs), step.outputs[0], node.op.axis, z.ndim,
        z.dtype, into,
    )  # fmt: skip


def _basic(pattern: Pattern, slots: Sequence[int]) -> list[Any] | None:
    """The entries of an index expression without arrays, as ``View`` takes them."""
    rest = iter(slots)

    def bound(part: Any) -> tuple[str, int] | None:
        return None if part is None else ("slot", next(rest)) if part == SYMBOL else ("value", part)

    entries: list[Any] = []
    for entry in pattern:
        if isinstance(entry, Slice):
            entries.append(("part", *(bound(part) for part in entry)))
        elif entry == NEW:
            entries.append("new")
        elif entry == SYMBOL or isinstance(entry, int):
            entries.append(("at", bound(entry)))
        else:
            return None
    return entries


REALS = ("float32", "float64")
DRAWN = ("standard_exponential", "standard_gamma", "standard_normal", "standard_uniform")

# What is done natively; the rest calls Python.
NATIVE: dict[type, Lowering] = {
    Alloc: _fill,
    DimShuffle: _transpose,
    Convolve: _convolution,
    ConvolveInputs: _convolution,
    ConvolveKernels: _convolution,
    Dot: _dot,
    Draw: _draw,
    Gemm: _gemm,
    Gemv: _gemm,
    Ger: _ger,
    IncSubtensor: _write,
    ops_join.Join: _join,
    MaxPool: _largest,
    ScaledDot: _scaled_dot,
    destinations.Reserve: _reserve,
    ShapeI: _length,
    Subtensor: _read,
    ToPositions: _placing,
}
