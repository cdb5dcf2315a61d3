"""The kernels of a program: what of it is a loop over elements, generated and compiled together."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import numpy as np

from symcomp.codegen.compiler.early import Code
from symcomp.codegen.compiler.units import load_kernels
from symcomp.codegen.kernel import WholeKernel, whole_kernel
from symcomp.config import config
from symcomp.core.node import Apply
from symcomp.core.record import record
from symcomp.core.spans import span
from symcomp.core.storage import is_widened
from symcomp.core.tensor import TensorType
from symcomp.cvm import machine
from symcomp.cvm.machine import Lowered, ufunc_kernel
from symcomp.lazy import lazy_module
from symcomp.ops.elementwise.elemwise import Elemwise
from symcomp.ops.formulas.formula import (
    AXIS_FUNCTIONS,
    AXIS_REDUCTIONS,
    Formula,
    Result,
    Step,
    folded_axes,
    sum_of_products,
)
from symcomp.ops.formulas.fused import Fused
from symcomp.ops.linalg.contraction import SumOfProducts
from symcomp.ops.reductions.reduce import Reduce
from symcomp.vm.features import Formulas
from symcomp.vm.opcodes import Opcode
from symcomp.vm.program import Instruction

# Limits of the machine's kernels (see plan/plan.h).
MOST_AXES, MOST_ARRAYS = 16, 64
# More threads than this are of no use where there are fewer processors, and cannot always be had.
MOST_THREADS = 64
# About how much work a special function is.
STEPS_OF_SPECIAL = 50

special = lazy_module("scipy.special")


@record(eq=False)
class KernelOf:
    """The formula of a kernel.

    Attributes
    ----------
    formula : Formula
    patterns : tuple of tuple of bool
        For each input, the axes along which it is stretched.
    whole : WholeKernel
    """

    formula: Formula
    patterns: tuple[tuple[bool, ...], ...]
    whole: WholeKernel


#: By the positions of instructions.
PrintedKernels = Mapping[int, tuple[Formula, WholeKernel]]


def lowered_kernels(
    code: Sequence[Instruction], printed: PrintedKernels, codes: Mapping[str, Code]
) -> dict[int, Lowered]:
    """Lower each instruction of which there is a kernel among ``codes``, by position."""
    return _ufunc_calls(code, printed) | {
        position: _call(code[position], formula, whole, codes[whole.kernel.name])
        for position, (formula, whole) in printed.items()
        if whole.kernel.name in codes
    }


def load_printed(programs: Sequence[PrintedKernels]) -> dict[str, Code]:
    """Compile the kernels of several programs together; return their codes by name.

    Where there is no compiler, there are those of common ops alone.
    """
    kernels = {
        whole.kernel.name: whole.kernel for printed in programs for _, whole in printed.values()
    }
    return load_kernels(kernels.values()) if kernels else {}


def _fused(node: Apply) -> Formula | None:
    formula: Formula = node.op.formula
    return formula


def _elementwise(node: Apply) -> Formula | None:
    return None if node.op.inplace else _single(node.op.scalar, node)


def _along_axes(node: Apply) -> Formula | None:
    return _single(node.op, node)


def _products_added(node: Apply) -> Formula | None:
    return sum_of_products(node.op.axes, node.inputs[0].dtype)


#: The formula of a node, by the class of its op.
FORMULAS: dict[type, Callable[[Apply], Formula | None]] = {
    Fused: _fused,
    Elemwise: _elementwise,
    **dict.fromkeys((Reduce, *AXIS_REDUCTIONS, *AXIS_FUNCTIONS), _along_axes),
    SumOfProducts: _products_added,
}


def formula_of(node: Apply | None, formulas: Formulas = FORMULAS) -> Formula | None:
    """Return what a node computes of elements, as a formula; None if it is nothing of that kind."""
    if node is None or type(node.op) not in formulas:
        return None
    if not all(isinstance(v.type, TensorType) for v in (*node.inputs, *node.outputs)):
        return None
    if node.inputs[0].ndim > MOST_AXES or is_widened(node):
        return None
    found: Formula | None = formulas[type(node.op)](node)
    return found


def printed_kernels(code: Sequence[Instruction], formulas: Formulas = FORMULAS) -> PrintedKernels:
    """Print the kernel of each instruction that has one, by position, with its formula."""
    with span("kernels") as stage:
        found = _printed(code, formulas)
        names = {whole.kernel.name for _, whole in found.values()}
        stage.note = f"{len(names)} for {len(found)} of {len(code)} instructions"
    return found


def _printed(
    code: Sequence[Instruction], formulas: Formulas
) -> dict[int, tuple[Formula, WholeKernel]]:
    found: dict[int, tuple[Formula, WholeKernel]] = {}
    # Equal formulas are written once.
    written: dict[Any, WholeKernel | None] = {}
    for position, step in enumerate(code):
        formula = formula_of(step.node, formulas) if step.opcode is Opcode.CALL else None
        if formula is None or step.node is None:
            continue
        patterns = tuple(x.type.broadcastable for x in step.node.inputs)
        key = formula, patterns
        if key not in written:
            written[key] = whole_kernel(formula, patterns)
        whole = written[key]
        if whole is not None and _arrays(formula, whole) <= MOST_ARRAYS:
            found[position] = formula, whole
    return found


def _ufunc_calls(code: Sequence[Instruction], known: Collection[int]) -> dict[int, Lowered]:
    """Return the calls of SciPy's loops, for functions without C of our own."""
    found: dict[int, Lowered] = {}
    for position, step in enumerate(code):
        op: Any = step.node.op if step.node is not None else None
        if position in known or step.opcode is not Opcode.CALL or not isinstance(op, Elemwise):
            continue
        ufunc = op.scalar.function
        node: Any = step.node
        dtypes = [v.dtype for v in (*node.inputs, *node.outputs)]
        if op.inplace or node.inputs[0].ndim > MOST_AXES or is_widened(node):
            continue
        if isinstance(ufunc, np.ufunc):
            kernel = ufunc_kernel(ufunc, dtypes, node.inputs[0].ndim)
            if kernel is not None and ufunc is getattr(special, ufunc.__name__, None):
                found[position] = _ufunc_call(step, *kernel)
    return found


def _ufunc_call(step: Instruction, address: int, constant: np.ndarray) -> Lowered:
    node: Any = step.node
    patterns = [v.type.broadcastable for v in (*node.inputs, *node.outputs)]
    dtypes = [v.dtype for v in (*node.inputs, *node.outputs)]
    whole = [[False] * node.inputs[0].ndim]
    return machine.kernel(
        step, Code(address, 0), False, patterns, whole, dtypes, [constant], STEPS_OF_SPECIAL
    )


def _arrays(formula: Formula, whole: WholeKernel) -> int:
    """Return how many arrays and constants a kernel takes."""
    return len(formula.inputs) + len(formula.results) + len(whole.kernel.literals)


def _single(function: Any, node: Apply) -> Formula:
    """Return the formula of one step."""
    dtypes = tuple(x.dtype for x in node.inputs)
    step = Step(function, tuple(range(len(dtypes))), node.outputs[0].dtype)
    return Formula(dtypes, (), (step,), (Result(len(dtypes), folded_axes(function)),))


def _call(step: Instruction, formula: Formula, whole: WholeKernel, code: Code) -> Lowered:
    node: Any = step.node
    patterns = formula.patterns([x.type.broadcastable for x in node.inputs])
    results = formula.results
    rank = node.inputs[0].ndim
    outputs = {formula.scatters.get(r.value): i for i, r in enumerate(results)}
    kept = {(result, step.inputs[i]) for result, i in whole.apart}
    lowered = machine.kernel(
        step,
        code,
        whole.kernel.elementwise,
        [*patterns[: len(formula.inputs)], *(patterns[r.value] for r in results)],
        [[a in r.dropped for a in range(rank)] for r in results],
        [v.dtype for v in (*node.inputs, *node.outputs)],
        [literal.array for literal in whole.kernel.literals],
        len(formula.steps),
        threads_to_use(),
        config.openmp_elemwise_minsize,
        [(table, at, outputs.get(table, -1)) for table, at in formula.tables.items()],
        # A result that is written before an input is read for the last time is not written over it.
        [k for k, slot in enumerate(step.into) if (k, slot) in kept],
    )
    given = tuple(tuple(x.type.broadcastable) for x in node.inputs)
    lowered.kernel = KernelOf(formula, given, whole)
    return lowered


def threads_to_use() -> int:
    """Return how many threads share large loops."""
    if not config.openmp:
        return 1
    there = (
        len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    )
    given = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0]
    wanted = config.openmp_threads or (int(given) if given.isdecimal() else 0) or there
    return min(wanted, max(there, MOST_THREADS))
