"""From a program to what the native machine does for each instruction."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from symcomp.config import config
from symcomp.cvm.kernels import kernel_actions
from symcomp.cvm.machine import (
    Action,
    GateCall,
    NativeMachine,
    Product,
    PythonCall,
    Transpose,
)
from symcomp.ops.blas import Gemm, Gemv, Ger, ScaledDot
from symcomp.ops.dimshuffle import DimShuffle
from symcomp.ops.products import Dot
from symcomp.vm.opcodes import Opcode
from symcomp.vm.program import Instruction, Program

Lowering = Callable[[Instruction], Action | None]


def native_machine(program: Program, keep: bool = False, checked: bool = False) -> NativeMachine:
    """The machine that runs ``program`` natively.

    Parameters
    ----------
    program : Program
    keep : bool
        Hold on to the values of the last call until ``free`` is called.
    checked : bool
        Whether every value is looked at (for NaN): then Python computes them all.
    """
    code = program.instructions
    kernels = {} if checked or not config.kernels else kernel_actions(code)
    table = {} if checked else NATIVE
    actions = [kernels.get(i) or _action(step, table) for i, step in enumerate(code)]
    python = any(type(action) is PythonCall for action in actions)
    return NativeMachine(program, actions, keep, python)


def _action(step: Instruction, table: Mapping[type, Lowering]) -> Action | None:
    """What does a CALL or COPY; None for the opcodes that the machine knows itself."""
    if step.opcode not in (Opcode.CALL, Opcode.COPY):
        return None
    if step.claims:
        return GateCall(step.compute, step.inputs, step.outputs)
    native = table.get(type(step.node.op)) if step.node is not None else None
    found = native(step) if native is not None else None
    if found is not None:
        return found
    return PythonCall(step.compute, step.arguments, step.outputs, step.several)


def _transpose(step: Instruction) -> Action | None:
    op: Any = step.node.op  # type: ignore[union-attr]
    order = [-1 if a == "x" else a for a in op.order]
    return Transpose(step.compute, step.inputs[0], step.outputs[0], op.ndim, order)


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


# What is done natively; the rest calls Python.
NATIVE: dict[type, Lowering] = {
    DimShuffle: _transpose,
    Dot: _dot,
    Gemm: _gemm,
    Gemv: _gemm,
    Ger: _ger,
    ScaledDot: _scaled_dot,
}
