"""Make kernels of formulas: Formula -> Nest -> LoopIR -> C.

``c_printer.py`` defines the signature of the function. It returns a number other than 0, before it
has written anything, if memory is short, an axis that must not be empty is, or an index is out of
range. The contents of the outputs are undefined then.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from symcomp.codegen.cpu.schedule import schedule
from symcomp.codegen.loopir.kernel import Kept, Loops, NestPart, Nests
from symcomp.codegen.loops.axis_functions import Pattern, Plain, plain
from symcomp.codegen.loops.formula_parts import FormulaPart, parts_of, reduced_in_steps
from symcomp.codegen.loops.nests import Nest, is_nest, nest_of, overwrites
from symcomp.codegen.printers.c_printer import Kernel, print_loops, print_nests
from symcomp.core.record import record, replace
from symcomp.ops.formulas.formula import Formula, Literal, joint_pattern


@record
class WholeKernel:
    """A kernel, and the pairs of its arrays that must not overlap.

    Attributes
    ----------
    kernel : Kernel
    apart : frozenset of (int, int)
        Results and inputs that must not share memory, as the input is read after the result is
        written. Others may be the same array.
    """

    kernel: Kernel
    apart: frozenset[tuple[int, int]]


def kernel_of(formula: Formula, patterns: Sequence[Pattern]) -> Kernel | None:
    """Make the kernel of a formula that is one nest; None if part of it has no C.

    Parameters
    ----------
    formula : Formula
    patterns : sequence of tuple of bool
        For each input, the axes along which it is stretched: its strides there are not read.
    """
    nest = nest_of(formula, patterns) if patterns and is_nest(formula) else None
    loops = None if nest is None else schedule(nest)
    return None if loops is None else print_loops(loops, formula.literals)


def whole_kernel(formula: Formula, patterns: Sequence[Pattern]) -> WholeKernel | None:
    """Make the kernel of a formula; None if part of it has no C.

    Parameters
    ----------
    formula : Formula
    patterns : sequence of tuple of bool
        For each input, the axes along which it is stretched: its strides there are not read.
    """
    made = scheduled(formula, patterns)
    return None if made is None else WholeKernel(print_kernel(made), made.apart)


@record
class Scheduled:
    """A kernel in LoopIR.

    Attributes
    ----------
    kernel : Loops or Nests
    literals : tuple of Literal
        The numbers that it takes after the outputs.
    apart : frozenset of (int, int)
        As of ``WholeKernel``.
    """

    kernel: Loops | Nests
    literals: tuple[Literal, ...] = ()
    apart: frozenset[tuple[int, int]] = frozenset()


def scheduled(formula: Formula, patterns: Sequence[Pattern]) -> Scheduled | None:
    """Schedule the kernel of a formula in LoopIR; None if part of it has no C."""
    if not patterns:
        return None
    patterns = formula.patterns(patterns)[: len(patterns)]
    formula = _with_wide_positions(formula)
    form = plain(formula, patterns)
    if form is None:
        return None
    form = replace(form, formula=reduced_in_steps(form.formula))
    if formula.scatters and form.formula is not formula:
        return None
    parts = parts_of(form.formula, form.patterns)
    nests, loops = [], []
    for part in parts:
        nest = nest_of(part.formula, part.patterns) if is_nest(part.formula) else None
        one = None if nest is None else schedule(nest)
        if nest is None or one is None:
            return None
        nests.append(nest)
        loops.append(one)
    inputs = len(formula.inputs)
    apart = _apart(form, parts, nests, inputs) | _apart_from_tables(formula)
    if len(parts) == 1 and parts[0].inputs == tuple(range(inputs)):
        order = [result.value for result in form.formula.results]
        if list(parts[0].results) == order:
            return Scheduled(loops[0], parts[0].formula.literals, apart)
    if formula.scatters:
        return None
    return Scheduled(nests_of(form, parts, loops, inputs), form.formula.literals, apart)


def _with_wide_positions(formula: Formula) -> Formula:
    """Return the formula with positions of int64, as kernels get them."""
    if not formula.tables:
        return formula
    positions = {*formula.tables.values()}
    dtypes = ("int64" if i in positions else d for i, d in enumerate(formula.inputs))
    return replace(formula, inputs=tuple(dtypes))


def _apart_from_tables(formula: Formula) -> frozenset[tuple[int, int]]:
    """Return the results with the tables that they must not overlap; a result that is scattered is
    written over its own.
    """
    own = {(i, formula.scatters.get(r.value)) for i, r in enumerate(formula.results)}
    return frozenset({*itertools.product(range(len(formula.results)), formula.tables)} - own)


def print_kernel(made: Scheduled) -> Kernel:
    """Print a kernel in C."""
    kernel = made.kernel
    if isinstance(kernel, Loops):
        return print_loops(kernel, made.literals)
    return print_nests(kernel, made.literals)


def _apart(
    form: Plain, parts: Sequence[FormulaPart], nests: Sequence[Nest], inputs: int
) -> frozenset[tuple[int, int]]:
    result_of = {result.value: i for i, result in enumerate(form.formula.results)}
    found = set()
    for position, (part, nest) in enumerate(zip(parts, nests, strict=True)):
        later = {v for other in parts[position + 1 :] for v in other.inputs if v < inputs}
        for v in part.results:
            if v in result_of:
                found |= {(result_of[v], i) for i in later}
        for result, i in overwrites(nest):
            v, source = part.results[result], part.inputs[i]
            if v in result_of and source < inputs:
                found.add((result_of[v], source))
    return frozenset(found)


def nests_of(
    form: Plain, parts: Sequence[FormulaPart], loops: Sequence[Loops], inputs: int
) -> Nests:
    """Make the kernel of several parts; ``inputs`` is the number of given inputs."""
    formula = form.formula
    patterns = formula.patterns(form.patterns)
    result_of = {result.value: inputs + i for i, result in enumerate(formula.results)}
    given = inputs + len(result_of)
    between = {v for part in parts for v in part.results if v not in result_of}
    filled: list[tuple[int | None, int]] = [*form.places]
    filled += [(None, axis) for axis in form.counters]
    kept = [
        Kept(formula.dtypes[v], patterns[v], source, axis)
        for v, (source, axis) in enumerate(filled, inputs)
    ]
    kept += [Kept(formula.dtypes[v], patterns[v]) for v in sorted(between)]
    number = {v: v for v in range(inputs)} | result_of
    later = (*range(inputs, len(formula.inputs)), *sorted(between))
    number |= {v: given + i for i, v in enumerate(later)}
    first = len(formula.inputs)
    return Nests(
        len(form.patterns[0]),
        given,
        tuple(kept),
        tuple(
            NestPart(
                one,
                tuple(number[v] for v in (*part.inputs, *part.results)),
                tuple(v - first for v in part.literals),
                joint_pattern(part.patterns),
            )
            for part, one in zip(parts, loops, strict=True)
        ),
        (*formula.inputs[:inputs], *(formula.dtypes[r.value] for r in formula.results)),
    )
