"""Kernels of any formula: one loop nest, or several called one after another.

The function is called as `c_printer.py` says. It returns another number than 0 before it has
written anything: if memory is short, if an axis is empty that must not be, if a position is outside
its line. What the outputs hold does not count then.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from symcomp.codegen import c_printer
from symcomp.codegen.c_printer import Kernel, named, nest_overwrites
from symcomp.codegen.lines import Pattern, Plain, plain
from symcomp.codegen.log_lines import log_lines
from symcomp.codegen.parts import Part, parts_of
from symcomp.core.record import record
from symcomp.ops.formula import Formula, joint_pattern


@record
class WholeKernel:
    """A kernel, and which of its arrays must be different ones.

    Attributes
    ----------
    kernel : Kernel
    apart : frozenset of (int, int)
        Results and inputs that must not share memory, as the input is read after the result is
        written. Others may be the same array.
    """

    kernel: Kernel
    apart: frozenset[tuple[int, int]]


def whole_kernel(formula: Formula, patterns: Sequence[Pattern]) -> WholeKernel | None:
    """The kernel of a formula; None where something in it has no C.

    Parameters
    ----------
    formula : Formula
    patterns : sequence of tuple of bool
        For each input, the axes along which it is stretched: its strides there are not read.
    """
    own = log_lines(formula, patterns) if patterns else None
    if own is not None:
        return WholeKernel(own, frozenset())
    form = plain(formula, patterns) if patterns else None
    if form is None:
        return None
    parts = parts_of(form.formula, form.patterns)
    kernels = []
    for part in parts:
        kernel = c_printer.kernel_of(part.formula, part.patterns) if part.patterns else None
        if kernel is None:
            return None
        kernels.append(kernel)
    apart = _apart(form, parts, len(formula.inputs))
    if len(parts) == 1 and parts[0].inputs == tuple(range(len(formula.inputs))):
        order = [result.value for result in form.formula.results]
        if list(parts[0].results) == order:
            return WholeKernel(kernels[0], apart)
    return WholeKernel(_Joined(form, parts, kernels, len(formula.inputs)).kernel(), apart)


def _apart(form: Plain, parts: Sequence[Part], inputs: int) -> frozenset[tuple[int, int]]:
    result_of = {result.value: i for i, result in enumerate(form.formula.results)}
    found = set()
    for position, part in enumerate(parts):
        later = {v for other in parts[position + 1 :] for v in other.inputs if v < inputs}
        for v in part.results:
            if v in result_of:
                found |= {(result_of[v], i) for i in later}
        for result, i in nest_overwrites(part.formula, part.patterns):
            v, source = part.results[result], part.inputs[i]
            if v in result_of and source < inputs:
                found.add((result_of[v], source))
    return frozenset(found)


class _Joined:
    """The text of a kernel that calls those of parts."""

    def __init__(
        self, form: Plain, parts: Sequence[Part], kernels: Sequence[Kernel], inputs: int
    ) -> None:
        self.form, self.parts, self.kernels, self.inputs = form, parts, kernels, inputs
        formula = form.formula
        self.rank = len(form.patterns[0])
        self.result_of = {result.value: i for i, result in enumerate(formula.results)}
        extra = range(inputs, len(formula.inputs))
        between = {v for part in parts for v in part.results if v not in self.result_of}
        self.kept = {v: i for i, v in enumerate((*extra, *sorted(between)))}
        self.patterns = formula.patterns(form.patterns)

    def kernel(self) -> Kernel:
        lines = [
            "int NAME(KERNEL_ARGUMENTS);",
            "int NAME(KERNEL_ARGUMENTS)",
            "{",
            *(f"    {line}" for line in self._body()),
            "}",
            "",
        ]
        name, source = named("kernel", lines)
        needs = tuple(text for kernel in self.kernels for text in (*kernel.needs, kernel.source))
        return Kernel(name, source, self.form.formula.literals, needs=needs)

    def _body(self) -> list[str]:
        lines = []
        if self.kept:
            lines += self._tables()
        for kernel, part in zip(self.kernels, self.parts, strict=True):
            lines += ["if (!failed) {", *(f"    {x}" for x in self._call(kernel.name, part)), "}"]
        return [
            "int failed = 0;",
            *lines,
            *(["free(kept);"] if self.kept else []),
            "return failed;",
        ]

    def _tables(self) -> list[str]:
        """The arrays that are kept meanwhile, and what there is at the beginning."""
        rank, dtypes = self.rank, self.form.formula.dtypes
        sizes = ", ".join(str(np.dtype(dtypes[v]).itemsize) for v in self.kept)
        flags = ", ".join(str(int(one)) for v in self.kept for one in self.patterns[v])
        lines = [
            f"static const uint8_t size[] = {{{sizes}}};",
            f"static const uint8_t stretched[] = {{{flags}}};",
            f"int64_t at[{len(self.kept)}], by[{len(self.kept) * rank}];",
            f"char *kept = kept_arrays({len(self.kept)}, {rank}, size, stretched, shape, at, by);",
            "if (!kept)",
            "    return 1;",
        ]
        number = self.inputs
        for source, axis in self.form.places:
            dtype = np.dtype(dtypes[source])
            kind = dtype.itemsize if dtype.kind == "i" else -dtype.itemsize
            i = self.kept[number]
            lines.append(
                f"failed |= read_positions({kind}, {rank}, {axis}, stretched + {i * rank}, shape, "
                f"data[{source}], strides + {source * rank}, (int32_t *)(kept + at[{i}]));"
            )
            number += 1
        for axis in self.form.counters:
            i = self.kept[number]
            lines.append(f"failed |= count_up(shape[{axis}], (int32_t *)(kept + at[{i}]));")
            number += 1
        return lines

    def _call(self, name: str, part: Part) -> list[str]:
        """Call the kernel of a part, with its arrays."""
        rank, first = self.rank, len(self.form.formula.inputs)
        arrays = [*part.inputs, *part.results]
        literal = self.inputs + len(self.result_of) - first
        pointers = [self._place(v)[0] for v in arrays]
        pointers += [f"data[{v + literal}]" for v in part.literals]
        joint = joint_pattern(part.patterns)
        lengths = ["1" if one else f"shape[{a}]" for a, one in enumerate(joint)]
        lines = [
            f"char *const part[] = {{{', '.join(pointers)}}};",
            f"const int64_t lengths[] = {{{', '.join(lengths)}}};",
            f"int64_t steps[{len(arrays) * rank}];",
        ]
        for i, v in enumerate(arrays):
            lines.append(f"memcpy(steps + {i * rank}, {self._place(v)[1]}, {8 * rank});")
        return [*lines, f"failed = {name}(part, lengths, steps, threads);"]

    def _place(self, value: int) -> tuple[str, str]:
        """Where a value is, and its strides."""
        if value in self.kept:
            i = self.kept[value]
            return f"kept + at[{i}]", f"by + {i * self.rank}"
        i = value if value < self.inputs else self.inputs + self.result_of[value]
        return f"data[{i}]", f"strides + {i * self.rank}"
