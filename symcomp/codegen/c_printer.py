"""Loop nests in C: a function for each body, tables for `nest.h`, and the function that is called.

The function NAME of a kernel is

    int NAME(char *const *data, const int64_t *shape, const int64_t *strides, int threads)

with the pointers of inputs, outputs and literals, the lengths of all axes, and for each input and
output a row of strides in bytes. It returns 0, or 1 if an axis is empty that must not be.
What is large is shared by as many threads, where it is compiled with OpenMP.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from importlib.resources import files

import numpy as np

from symcomp.codegen.c_scalars import C_TYPES, COMPLEX, STORED, converted, expression
from symcomp.codegen.gamma_tables import gamma_tables
from symcomp.codegen.loops import (
    Body,
    Nest,
    Pattern,
    is_nest,
    itemsizes,
    nest_of,
    nonempty,
    reduced_axes,
    stages,
    work_dtype,
)
from symcomp.core.record import record
from symcomp.ops.elemwise import ScalarOp
from symcomp.ops.formula import Formula, Literal
from symcomp.ops.reduce import Reduce

_HEADERS = ("scalars.h", "vector_math.h", "elementary.h")
_REAL = {
    "double": ("name", "((double)(x))", "0x1p-52", "134217729.0", "1e-300"),
    "float": ("name##f", "((float)(x))", "0x1p-23f", "4097.0f", "0"),
}
# The elements of such a block: a vector of floats.
TAIL = 16
_FUNCTION = re.compile(r"\b(?!sizeof|half)[a-z]\w+\(")
_OF_GAMMA = re.compile(r"\bg_\w+\(")
_NAME = re.compile(r"\b[av]\d+\b")
# Sums are in parts of so many elements, whose rounding errors grow, before they are added up with
# errors kept.
PART = 16
# So many rows are added up at once where elements take little time: the part is read less often.
ROWS = 4
# So many parts of one result are added up side by side, as they stay in registers; so many bytes
# of what is not a sum or product.
PARTS, PARTS_BYTES = 32, 256


@record
class Kernel:
    """A function in C.

    Attributes
    ----------
    name : str
        Of the function; different for different sources.
    source : str
        It and what it alone needs.
    literals : tuple of Literal
        Arguments of the function after the outputs: pointers to these numbers.
    """

    name: str
    source: str
    literals: tuple[Literal, ...]


def kernel_of(formula: Formula, patterns: Sequence[Pattern]) -> Kernel | None:
    """The kernel of a formula; None where something in it has no C.

    Parameters
    ----------
    formula : Formula
    patterns : sequence of tuple of bool
        For each input, the axes along which it is stretched: its strides there are not read.
    """
    nest = nest_of(formula, patterns) if patterns and is_nest(formula) else None
    if nest is None or any(dtype not in C_TYPES for dtype in nest.dtypes):
        return None
    lines = _Printer(nest).lines()
    if lines is None:
        return None
    text = "\n".join(lines) + "\n"
    name = "kernel_" + hashlib.sha256(text.encode()).hexdigest()[:16]
    return Kernel(name, text.replace("NAME", name), formula.literals)


def nest_overwrites(formula: Formula, patterns: Sequence[Pattern]) -> set[tuple[int, int]]:
    """Results of one nest, and inputs that are read after the result is written."""
    nest = nest_of(formula, patterns)
    if nest is None or reduced_axes(formula) is None:
        return set()
    found = set()
    for position, body in enumerate(nest.bodies):
        later = {array for other in nest.bodies[position + 1 :] for _, array in other.loads}
        written = {array - len(formula.inputs) for _, array in body.stores}
        found |= {
            (result, i)
            for result in range(len(formula.results))
            if result in written
            for i in range(len(formula.inputs))
            if i in later
        }
    return found


def translation_unit(kernels: Sequence[Kernel]) -> str:
    """The text of a C file with these kernels, each once."""
    sources = dict.fromkeys(kernel.source for kernel in kernels)
    parts = [_header(name) for name in _HEADERS]
    for kind, (name, constant, epsilon, splitter, small) in _REAL.items():
        macros = {
            "REAL": kind, "F(name)": name, "C(x)": constant, "EPSILON": epsilon,
            "SPLITTER": splitter, "SMALL": small,
        }  # fmt: skip
        parts += [f"#define {macro} {text}\n" for macro, text in macros.items()]
        parts += [_header("stable.h")]
        parts += [_header("complex.h")] if any("_Complex" in text for text in sources) else []
        parts += [f"#undef {macro.partition('(')[0]}\n" for macro in macros]
    parts += [_header("stable_double.h"), _header("nest.h"), _header("reduction.h")]
    if any(_OF_GAMMA.search(text) for text in sources):
        parts += [gamma_tables(), _header("gamma.h")]
    parts += [_header("lines.h")]
    return "\n".join((*parts, *sources))


def _header(name: str) -> str:
    return (files("symcomp.codegen") / name).read_text(encoding="utf-8")


class _Printer:
    """The text of one nest."""

    def __init__(self, nest: Nest) -> None:
        self.nest, self.formula = nest, nest.formula
        self.dtypes = nest.dtypes

    def lines(self) -> list[str] | None:
        """All functions and tables; None if a step has no C."""
        lines: list[str] = []
        for number, body in enumerate(self.nest.bodies):
            text = self._body(number, body)
            if text is None:
                return None
            lines += text
        reduces = reduced_axes(self.formula) is not None
        if reduces:
            for number, (body, _) in enumerate(stages(self.nest)):
                if body.folds:
                    lines += self._begin(number, body)
                    lines += [*self._merge(number, body), *self._finish(number, body)]
        return [*lines, *self._tables(reduces), *self._entry(reduces)]

    # -- bodies

    def _body(self, number: int, body: Body) -> list[str] | None:
        steps = self._steps(body)
        if steps is None:
            return None
        numbers = [pair for pair in body.loads if pair[1] in body.numbers]
        vectors = [pair for pair in body.loads if pair[1] not in body.numbers]
        stores = [f"a{a}[i] = {self._stored(v)};" for v, a in body.stores]
        ends = [*(line for v in body.folds for line in self._fold(v, ("",))), *stores]
        values = self._reads_values(number, body)
        inside = _needed([*((v, self._load(v, a, "i", values)) for v, a in vectors), *steps], ends)
        outside = _needed([(v, self._load(v, a, "0")) for v, a in numbers], [*inside, *ends])
        if not body.loads and not body.stores:
            return [f"static void NAME_{number}{_ARGUMENTS}", "{", "}", ""]
        written = {a for _, a in body.stores}
        pointers = [self._pointer(a, const=False) for _, a in body.stores]
        pointers += _needed(
            [(a, self._pointer(a, const=True)) for _, a in body.loads if a not in written],
            [*inside, *outside],
            "a",
        )
        if body.folds:
            return self._folding(number, body, [*pointers, *outside], inside, stores)
        blocks = not values and not _is_light(inside)
        loop = _loop_of_blocks([*inside, *ends]) if blocks else _loop([*inside, *ends])
        lines = ["    for (int64_t r = 0; r < rows; r++) {"]
        lines += [_indented(line, 2) for line in (*pointers, *outside, *loop)]
        lines += ["    }", "}", ""]
        if not values:
            return [f"static void NAME_{number}{_ARGUMENTS}", "{", *lines]
        return [_inline(number), "{", *lines, *_versions(number, 0, True)]

    def _reads_values(self, number: int, body: Body) -> bool:
        """Whether it is of a pass and reads what there is one of for each result."""
        values = any(array >= self.nest.temporaries for _, array in body.loads)
        return values and number % 2 == 0

    def _folding(
        self,
        number: int,
        body: Body,
        before: Sequence[str],
        inside: Sequence[str],
        stores: Sequence[str],
    ) -> list[str]:
        """A body that reduces: parts of rows, then what they are added up to."""
        sums = any(self._has_error(v) for v in body.folds)
        values = self._reads_values(number, body)
        light = _is_light(inside)
        lines = [_inline(number), "{"]
        lines += [f"    {line}" for v in body.folds for line in self._totals(v)]
        lines += [f"    for (int64_t part = 0; part < rows; part += {PART if sums else 'rows'}) {{"]
        end = f"rows - part < {PART} ? rows : part + {PART}" if sums else "rows"
        lines += [f"        int64_t r = part, end = {end};"]
        for v in body.folds:
            name, _, work = self._reduction(v)
            lines += ["        for (int64_t i = 0; i < n; i++)"]
            lines += [f"            p{v}[i] = {_identity(name, work)};"]
        if light and not stores and all(self._adds(v) for v in body.folds):
            # Across, parts are in registers anyhow.
            lines += ["        if (!across)"]
            lines += self._rows(body, before, inside, stores, [f"_{row}" for row in range(ROWS)])
        lines += self._rows(
            body, [*before, *self._ahead(body, before)] if light else before, inside, stores, [""]
        )
        lines += [f"        {line}" for v in body.folds for line in self._settle(v)]
        return [*lines, "    }", "}", "", *_versions(number, light and self._parts(body), values)]

    def _rows(
        self,
        body: Body,
        before: Sequence[str],
        inside: Sequence[str],
        stores: Sequence[str],
        suffixes: Sequence[str],
    ) -> list[str]:
        """The loop over rows, several at once; suffixes tell their variables apart."""
        ahead = [_of_row(line, row, s) for row, s in enumerate(suffixes) for line in before]
        work = [_of_row(line, row, s) for row, s in enumerate(suffixes) for line in inside]
        work += [line for v in body.folds for line in self._fold(v, suffixes)]
        count = len(suffixes)
        return [
            f"        for (; r + {count - 1} < end; r += {count}) {{",
            *(_indented(line, 3) for line in (*ahead, *_loop([*work, *stores]))),
            "        }",
        ]

    def _parts(self, body: Body) -> int:
        """How many parts of one result are added up side by side: what stays in registers."""
        if all(self._adds(v) for v in body.folds):
            return PARTS
        # These wait for one another longer: more of them.
        sizes = [np.dtype(self._reduction(v)[2]).itemsize for v in body.folds]
        return max(PARTS, min(2 * PARTS, PARTS_BYTES // max(sizes)))

    def _ahead(self, body: Body, before: Sequence[str]) -> list[str]:
        """Ask early for what lies next to each other, where there are pointers to it."""
        text = "\n".join(before)
        arrays = [a for _, a in body.loads if a not in body.numbers and a < self.nest.temporaries]
        return [
            f"if (across)\n    ask_for(a{a}, n * (int64_t)sizeof *a{a});"
            for a in arrays
            if f" *a{a} = " in text
        ]

    def _pointer(self, array: int, const: bool) -> str:
        kind = f"{'const ' if const else ''}{STORED[self.dtypes[array]]}"
        return f"{kind} *a{array} = ({kind} *)(data[{array}] + r * step[{array}]);"

    def _load(self, value: int, array: int, index: str, across: bool = False) -> str:
        dtype = self.dtypes[array]
        element = f"a{array}[{index}]"
        text = f"(uint8_t)({element} != 0)" if dtype == "bool" else element
        if array >= self.nest.temporaries and index == "i" and across:
            text = f"a{array}[across ? 0 : i]"
        return f"const {C_TYPES[dtype]} v{value} = ({C_TYPES[dtype]}){text};"

    def _stored(self, value: int) -> str:
        return f"({STORED[self.formula.dtypes[value]]})v{value}"

    def _steps(self, body: Body) -> list[tuple[int, str]] | None:
        """The values that are computed, each with the line that does so."""
        lines = []
        dtypes = self.formula.dtypes
        for value in body.steps:
            step = self.formula.steps[value - self.formula.first_step]
            assert isinstance(step.function, ScalarOp)
            names = [f"v{a}" for a in step.arguments]
            text = expression(step.function, names, [dtypes[a] for a in step.arguments], step.dtype)
            if text is None:
                return None
            lines.append((value, f"const {C_TYPES[step.dtype]} v{value} = {text};"))
        return lines

    # -- reductions

    def _reduction(self, value: int) -> tuple[str, int, str]:
        """Its name, what it reduces, the dtype that it works in."""
        step = self.formula.steps[value - self.formula.first_step]
        assert isinstance(step.function, Reduce)
        return step.function.reduction.name, step.arguments[0], work_dtype(self.formula, value)

    def _has_error(self, value: int) -> bool:
        """Whether rounding errors of totals are kept: they are sums of floats."""
        name, _, work = self._reduction(value)
        return name == "sum" and np.dtype(work).kind in "fc"

    def _adds(self, value: int) -> bool:
        """Whether it is a sum or product: joining the elements of rows first makes vectors."""
        return self._reduction(value)[0] in ("sum", "prod")

    def _totals(self, value: int) -> list[str]:
        """The names of the arrays of totals in a function."""
        kind = C_TYPES[self._reduction(value)[2]]
        total, error = self.nest.totals[value]
        lines = [f"{kind} *t{value} = ({kind} *)data[{total}];"]
        lines += [f"_Alignas(64) {kind} p{value}[LANES];"]
        if self._has_error(value):
            lines += [f"{kind} *e{value} = ({kind} *)data[{error}];"]
        return lines

    def _fold(self, value: int, suffixes: Sequence[str]) -> list[str]:
        """Join the elements of rows, two by two, and these to the part."""
        name, argument, work = self._reduction(value)
        kind, given = C_TYPES[work], self.formula.dtypes[argument]
        if len(suffixes) == 1:
            text = converted(f"v{argument}{suffixes[0]}", given, work)
            return [f"p{value}[i] = {_joined(name, work, f'p{value}[i]', text)};"]
        lines, names = [], []
        for suffix in suffixes:
            names.append(f"w{value}{suffix}")
            lines.append(
                f"const {kind} {names[-1]} = {converted(f'v{argument}{suffix}', given, work)};"
            )
        while len(names) > 1:
            x, y, *names = names
            names.append(x + y.removeprefix(f"w{value}"))
            lines.append(f"const {kind} {names[-1]} = {_joined(name, work, x, y)};")
        return [*lines, f"p{value}[i] = {_joined(name, work, f'p{value}[i]', names[0])};"]

    def _settle(self, value: int) -> list[str]:
        """Add parts to totals; for sums of floats, keeping the rounding errors."""
        name, _, work = self._reduction(value)
        kind = C_TYPES[work]
        if not self._has_error(value):
            joined = _joined(name, work, f"t{value}[i]", f"p{value}[i]")
            return ["for (int64_t i = 0; i < n; i++)", f"    t{value}[i] = {joined};"]
        suffix = ("_c" if work in COMPLEX else "") + ("f" if kind.startswith("float") else "")
        return [
            "for (int64_t i = 0; i < n; i++) {",
            f"    {kind} s = t{value}[i] + p{value}[i];",
            f"    e{value}[i] += sum_error{suffix}(t{value}[i], p{value}[i], s);",
            f"    t{value}[i] = s;",
            "}",
        ]

    def _begin(self, number: int, body: Body) -> list[str]:
        lines = [f"static void NAME_begin{number}(int64_t n, char *const *data)", "{"]
        for v in body.folds:
            name, _, work = self._reduction(v)
            kind = C_TYPES[work]
            for array in self.nest.totals[v] if self._has_error(v) else self.nest.totals[v][:1]:
                lines += ["    for (int64_t i = 0; i < n; i++)"]
                lines += [f"        (({kind} *)data[{array}])[i] = {_identity(name, work)};"]
        return [*lines, "}", ""]

    def _merge(self, number: int, body: Body) -> list[str]:
        """Totals of other elements to these."""
        lines = [
            f"static void NAME_merge{number}(int64_t n, char *const *data, char *const *other)",
            "{",
        ]
        for v in body.folds:
            kind = C_TYPES[self._reduction(v)[2]]
            for letter, array in zip("te", self.nest.totals[v], strict=True):
                if letter == "t" or self._has_error(v):
                    lines.append(f"    {kind} *{letter}{v} = ({kind} *)data[{array}];")
            lines.append(
                f"    const {kind} *p{v} = (const {kind} *)other[{self.nest.totals[v][0]}];"
            )
            lines += [f"    {line}" for line in self._settle(v)]
            if self._has_error(v):
                lines.append(f"    p{v} = (const {kind} *)other[{self.nest.totals[v][1]}];")
                lines += ["    for (int64_t i = 0; i < n; i++)", f"        e{v}[i] += p{v}[i];"]
        return [*lines, "}", ""]

    def _finish(self, number: int, body: Body) -> list[str]:
        """Totals to results: added up, where they are parts of one."""
        lines = [f"static void NAME_finish{number}(int64_t n, int across, char *const *data)", "{"]
        for v in body.folds:
            name, _, work = self._reduction(v)
            total, error = self.nest.totals[v]
            kind, result = C_TYPES[work], self.formula.dtypes[v]
            lines += ["    {", f"        {kind} *t = ({kind} *)data[{total}];"]
            if self._has_error(v):
                lines += [f"        const {kind} *e = (const {kind} *)data[{error}];"]
                lines += ["        for (int64_t i = 0; i < n; i++)", "            t[i] += e[i];"]
            out = converted("t[i]", work, result)
            lines += [
                f"        {STORED[result]} *z = ({STORED[result]} *)data[{self.nest.values[v]}];",
                *(_indented(line, 2) for line in _together(name, work)),
                "        for (int64_t i = 0; i < (across ? 1 : n); i++)",
                f"            z[i] = ({STORED[result]}){out};",
                "    }",
            ]
        return [*lines, "}", ""]

    # -- tables

    def _tables(self, reduces: bool) -> list[str]:
        nest = self.nest
        total = len(self.dtypes)
        padding = [False] * (total - len(nest.stretched))
        stretched = [[p[axis] for p in nest.stretched] + padding for axis in range(nest.rank)]
        axes = reduced_axes(self.formula) or ()
        lines = [
            _table("size", itemsizes(nest)),
            _table("stretched", [int(s) for row in stretched for s in row]),
            _table("reduced", [int(a in axes) for a in range(nest.rank)]),
        ]
        lines += [_table(f"role{i}", self._roles(body)) for i, body in enumerate(nest.bodies)]
        count = len(nest.bodies)
        if reduces:
            entries = []
            for number, (body, _) in enumerate(stages(nest)):
                names = "NAME_begin{0}, NAME_merge{0}, NAME_finish{0}" if body.folds else "0, 0, 0"
                a, b = 2 * number, 2 * number + 1
                across = "across" if self._reads_values(a, body) else ""
                parts = self._parts(body) if body.folds else 0
                entries.append(
                    f"{{{{NAME_{a}, NAME_role{a}}}, {{NAME_{across}{a}, NAME_role{a}}}, "
                    f"{{NAME_{b}, NAME_role{b}}}, {parts}, {names.format(number)}}}"
                )
            count = len(entries)
            lines += [f"static const struct stage NAME_stages[] = {{{', '.join(entries)}}};"]
        else:
            entries = [f"{{NAME_{i}, NAME_role{i}}}" for i in range(count)]
            lines += [f"static const struct body NAME_bodies[] = {{{', '.join(entries)}}};"]
        nests = "0, NAME_stages" if reduces else "NAME_bodies, 0"
        lines += [
            "static const struct kernel NAME_kernel = {"
            f"{nest.rank}, {len(nest.stretched)}, {nest.temporaries}, {total}, {count}, "
            f"{int(nonempty(nest))}, {self._width()}, {self._buffer(reduces)}, "
            f"NAME_size, NAME_stretched, NAME_reduced, {nests}}};"
        ]
        return lines

    def _width(self) -> int:
        """The bytes of the largest elements, 8 at least."""
        return max(8, *itemsizes(self.nest))

    def _buffer(self, reduces: bool) -> str:
        """The bytes that a thread needs for blocks and totals."""
        size = f"{self.nest.temporaries} * BLOCK"
        size += f" + {len(self.dtypes) - self.nest.temporaries} * LANES" if reduces else ""
        return f"{self._width()} * ({size})"

    def _roles(self, body: Body) -> list[int]:
        roles = [0] * len(self.dtypes)
        for _, array in body.loads:
            roles[array] = (
                4 if array >= self.nest.temporaries else 3 if array in body.numbers else 1
            )
        for _, array in body.stores:
            roles[array] = 4 if array >= self.nest.temporaries else 5 if roles[array] else 2
        for value in body.folds:
            for array in self.nest.totals[value]:
                roles[array] = 4
        return roles

    def _entry(self, reduces: bool) -> list[str]:
        return [
            "int NAME(KERNEL_ARGUMENTS);",
            "int NAME(KERNEL_ARGUMENTS)",
            "{",
            f"    return nest_{'reduction' if reduces else 'elementwise'}"
            "(&NAME_kernel, data, shape, strides, threads);",
            "}",
        ]


def _needed(lines: Sequence[tuple[int, str]], after: Sequence[str], prefix: str = "v") -> list[str]:
    """The lines whose variable, ``prefix`` and its number, is read in a later one."""
    read = set(_NAME.findall(" ".join(after)))
    kept = []
    for number, line in reversed(lines):
        if f"{prefix}{number}" in read:
            kept.append(line)
            read.update(_NAME.findall(line.partition("=")[2]))
    return kept[::-1]


_ARGUMENTS = "(int64_t rows, int64_t n, char *const *data, const int64_t *step)"


def _inline(number: int) -> str:
    arguments = _ARGUMENTS.replace("int64_t n,", "int64_t n, int across,")
    return f"INLINE void NAME_rows{number}{arguments}"


def _versions(number: int, parts: int, values: bool) -> list[str]:
    """A body compiled for results side by side and, where that is another or faster code, for parts
    of one: as many as stay in registers, and any number."""
    run = f"    NAME_rows{number}(rows, %s, %d, data, step);"
    usual = [f"    if (n == {parts})", f"    {run % (parts, 1)}", "    else"] if parts else []
    if not values:
        either = [*usual, ("    " if parts else "") + run % ("n", 0)]
        return [f"static void NAME_{number}{_ARGUMENTS}", "{", *either, "}", ""]
    across = [*usual, ("    " if parts else "") + run % ("n", 1)]
    lines = [f"static void NAME_{number}{_ARGUMENTS}", "{", run % ("n", 0), "}", ""]
    return [*lines, f"static void NAME_across{number}{_ARGUMENTS}", "{", *across, "}", ""]


def _loop(lines: Sequence[str]) -> list[str]:
    """The loop over elements."""
    head = ["#pragma omp simd", "for (int64_t i = 0; i < n; i++) {"]
    return [*head, *(f"    {line}" for line in lines), "}"]


def _loop_of_blocks(lines: Sequence[str]) -> list[str]:
    """The loop over elements; those left over are one more block, as one by one they take longer:
    compilers make vectors of it that read and write some of their elements.
    """
    return [
        f"const int64_t whole = n - n % {TAIL};",
        *(line.replace("i < n", "i < whole") for line in _loop(lines)),
        "if (whole < n) {",
        "#pragma omp simd",
        f"    for (int64_t k = 0; k < {TAIL}; k++) {{",
        "        if (k < n - whole) {",
        "            const int64_t i = whole + k;",
        *(f"            {line}" for line in lines),
        "        }",
        "    }",
        "}",
    ]


def _of_row(line: str, row: int, suffix: str) -> str:
    """A line for one of several rows."""
    if not suffix:
        return line
    return _NAME.sub(rf"\g<0>{suffix}", line).replace("+ r * step", f"+ (r + {row}) * step")


def _is_light(lines: Sequence[str]) -> bool:
    """Whether a body takes so little time that where its totals are matters."""
    return not any(_FUNCTION.search(line) for line in lines)


def _indented(line: str, depth: int) -> str:
    return line if line.startswith("#") else "    " * depth + line


def _table(name: str, entries: Sequence[int]) -> str:
    return f"static const uint8_t NAME_{name}[] = {{{', '.join(map(str, entries or [0]))}}};"


def _joined(name: str, work: str, total: str, x: str) -> str:
    """A total with one more element."""
    kind, c_type = np.dtype(work).kind, C_TYPES[work]
    if name in ("any", "all"):
        return f"(uint8_t)({total} {'|' if name == 'any' else '&'} {x})"
    if name in ("max", "min"):
        if kind == "b":
            return f"(uint8_t)({total} {'|' if name == 'max' else '&'} {x})"
        sign = ">" if name == "max" else "<"
        test = f"({x} {sign} {total}) | ({x} != {x})" if kind == "f" else f"{x} {sign} {total}"
        return f"{test} ? {x} : {total}"
    if kind == "b":
        return f"(uint8_t)({total} {'|' if name == 'sum' else '&'} {x})"
    if kind == "c" and name == "prod":
        return f"c_mul{'f' if work == 'complex64' else ''}({total}, {x})"
    return f"({c_type})({total} {'+' if name == 'sum' else '*'} {x})"


def _together(name: str, work: str) -> list[str]:
    """Join n parts, across, in the first."""
    sign = {"sum": "+", "prod": "*", "any": "|", "all": "&"}.get(name)
    if sign is None or work == "bool" or work in COMPLEX:
        return [
            "for (int64_t m = n, half; across && m > 1; m = half) {",
            "    half = (m + 1) / 2;",
            "    for (int64_t i = 0; i < m / 2; i++)",
            f"        t[i] = {_joined(name, work, 't[i]', 't[half + i]')};",
            "}",
        ]
    return [
        "if (across) {",
        f"    {C_TYPES[work]} z0 = {_identity(name, work)};",
        f"#pragma omp simd reduction({sign}:z0)",
        "    for (int64_t i = 0; i < n; i++)",
        f"        z0 {sign}= t[i];",
        "    t[0] = z0;",
        "}",
    ]


def _identity(name: str, work: str) -> str:
    """What a total begins with."""
    kind = np.dtype(work).kind
    if name in ("max", "min"):
        if kind == "f":
            return "-INFINITY" if name == "max" else "INFINITY"
        if kind == "b":
            return "0" if name == "max" else "1"
        bits = 8 * np.dtype(work).itemsize
        if kind == "u":
            return "0" if name == "max" else f"UINT{bits}_MAX"
        return f"INT{bits}_{'MIN' if name == 'max' else 'MAX'}"
    return "1" if name in ("prod", "all") else "0"
