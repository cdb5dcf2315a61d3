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
from collections.abc import Callable, Sequence
from functools import cache, partial
from importlib.resources import files

from symcomp.codegen.c_folds import Fold, functions_of_totals, parts_of_one
from symcomp.codegen.c_lanes import PART, Pass, folded, function_of_lanes
from symcomp.codegen.c_loops import (
    ARGUMENTS,
    indented,
    inline_head,
    is_light,
    loop,
    loop_of_blocks,
    needed,
    of_row,
    portions,
    versions,
)
from symcomp.codegen.c_scalars import C_TYPES, STORED, expression
from symcomp.codegen.c_tables import angle_tables, error_tables, gamma_tables
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
)
from symcomp.core.record import record
from symcomp.ops.elemwise import ScalarOp
from symcomp.ops.formula import Formula, Literal

_HEADERS = ("scalars.h", "elementary.h")
# The loops around bodies.
_LOOPS = ("turned.h", "nest_loops.h", "reduction.h")
_OF_GAMMA_FUNCTIONS = ("pairs.h", "wide_gamma.h", "gamma.h", "incomplete_gamma.h")
_OF_FUNCTIONS = (
    "elementary.h",
    "complex.h",
    "stable.h",
    "stable_double.h",
    "scaled_products.h",
    *_OF_GAMMA_FUNCTIONS,
    "special.h",
    "lines.h",
    "log_lines.h",
)
_REAL = {
    "double": ("name", "((double)(x))", "0x1p-52", "134217729.0", "1e-300"),
    "float": ("name##f", "((float)(x))", "0x1p-23f", "4097.0f", "0"),
}
# The loops around bodies, and how files have them.
_EXPORTED = ("nest_elementwise", "nest_reduction", "merge_sums", "merge_sumsf")
_LINKAGE = {"own": "static inline", "shared": "extern", "exported": ""}
_HEAD = re.compile(r"[^;{(]*?\b(?:F\((\w+)\)|(\w+))\(")
_OF_PRODUCTS = re.compile(r"\b(r_over_both|r_times_|scaled_of)")
_OF_SPECIAL = re.compile(r"\be_\w+\(")
_OF_GAMMA = re.compile(r"\bg_\w+\(")
# So many rows are added up, or compared, at once where elements take little time: the part is read
# less often. More where there are many rows, but not many arrays: these are not a part first.
ROWS, ROWS_COMPARED, MORE_ROWS, MANY_ROWS = 4, 8, 16, 64
# Where a function of lanes adds up elements, each lane has so many of a row, if they are computed
# in few lines: compilers take long for many.
WAYS, FEW_LINES = 4, 6


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
    elementwise : bool
        Whether it may be called with 0 threads: all arrays lie in C order then, none is stretched,
        and the first length is the number of elements.
    needs : tuple of str
        Sources of functions that it calls, as others may: loops over any lengths, kernels.
    """

    name: str
    source: str
    literals: tuple[Literal, ...]
    elementwise: bool = False
    needs: tuple[str, ...] = ()


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
    printer = _Printer(nest)
    functions = printer.functions()
    if functions is None:
        return None
    loops, needed = named("loops", functions)
    name, source = named("kernel", [line.replace("LOOPS", loops) for line in printer.tables()])
    return Kernel(name, source, formula.literals, reduced_axes(formula) is None, (needed,))


def named(kind: str, lines: Sequence[str]) -> tuple[str, str]:
    """A name for what C declares as NAME, different for different lines, and the text with it."""
    text = "\n".join(lines) + "\n"
    name = f"{kind}_{hashlib.sha256(text.encode()).hexdigest()[:16]}"
    return name, text.replace("NAME", name)


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


def translation_unit(kernels: Sequence[Kernel], nest: str = "own") -> str:
    """The text of a C file with these kernels, each once.

    Parameters
    ----------
    kernels : sequence of Kernel
    nest : {"own", "shared", "exported"}
        Whether the loops around bodies are in the file, are functions of another, or are in this
        file for others.
    """
    sources = dict.fromkeys(text for k in kernels for text in (*k.needs, k.source))
    called = {word for text in sources for word in re.findall(r"\w+", text)}
    parts = [_header("vector_math.h")] if _calls_vectors(called) else []
    parts += [_header(name) for name in _HEADERS]
    for kind, (name, constant, epsilon, splitter, small) in _REAL.items():
        macros = {
            "REAL": kind, "F(name)": name, "C(x)": constant, "EPSILON": epsilon,
            "SPLITTER": splitter, "SMALL": small,
        }  # fmt: skip
        parts += [f"#define {macro} {text}\n" for macro, text in macros.items()]
        parts += [_header("stable.h")]
        parts += [_header("complex.h")] if any("_Complex" in text for text in sources) else []
        parts += [f"#undef {macro.partition('(')[0]}\n" for macro in macros]
    parts += [angle_tables(), _header("angles.h"), _header("stable_double.h")]
    parts += [_header("scaled_products.h")] if any(map(_OF_PRODUCTS.search, sources)) else []
    if nest != "own":
        parts += [f"#define {name} {name}_{nest_version()}" for name in _EXPORTED]
    parts += [f"#define NEST {_LINKAGE[nest]}\n", _header("nest.h")]
    if nest != "shared":
        parts += map(_header, _LOOPS)
    if any(_OF_GAMMA.search(text) for text in sources):
        parts += [gamma_tables(), *map(_header, _OF_GAMMA_FUNCTIONS)]
    if any(_OF_SPECIAL.search(text) for text in sources):
        parts += [error_tables(), _header("special.h")]
    parts += [_header("lines.h")]
    parts += [_header("log_lines.h")] if any("log_lines(" in text for text in sources) else []
    return "\n".join((*parts, *sources))


@cache
def nest_version() -> str:
    """What the names of exported loops end with: another for other loops."""
    text = "".join(map(_header, (*_HEADERS, "stable.h", "nest.h", *_LOOPS)))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _calls_vectors(called: set[str]) -> bool:
    """Whether one of these functions is declared in ``vector_math.h``, or calls one that is."""
    declared = set(re.findall(r"extern \w+ (\w+)\(", _header("vector_math.h")))
    texts, more = _functions_of_headers(), called
    seen: set[str] = set()
    while more and not more & declared:
        seen |= more
        found = [re.findall(r"\w+", texts[name]()) for name in more & texts.keys()]
        more = {word for words in found for word in words} - seen
    return bool(more)


@cache
def _functions_of_headers() -> dict[str, Callable[[], str]]:
    """What gives the text of each function, by its name for each kind of real numbers."""
    found: dict[str, Callable[[], str]] = {}
    for header in _OF_FUNCTIONS:
        for text in re.split(r"^(?=INLINE |static )", _header(header), flags=re.M):
            if head := _HEAD.match(text):
                for end in ("", "f") if head[1] else ("",):
                    of_kind = partial(re.sub, r"\bF\((\w+)\)", rf"\1{end}", text)
                    found[(head[1] or head[2]) + end] = of_kind
    return found


@cache
def _header(name: str) -> str:
    return (files("symcomp.codegen") / name).read_text(encoding="utf-8")


class _Printer:
    """The text of one nest."""

    def __init__(self, nest: Nest) -> None:
        self.nest, self.formula = nest, nest.formula
        self.dtypes = nest.dtypes
        self.reduces = reduced_axes(nest.formula) is not None
        self.folds = {v: Fold(nest, v) for v in nest.totals}
        # Functions of lanes, by their bodies, and how many elements of a row each lane has.
        self.lanes: dict[int, list[str]] = {}
        self.ways: dict[int, int] = {}

    def _folds_of(self, body: Body) -> list[Fold]:
        return [self.folds[v] for v in body.folds]

    def functions(self) -> list[str] | None:
        """What does not depend on lengths; None if a step has no C."""
        lines: list[str] = []
        for number, body in enumerate(self.nest.bodies):
            text = self._body(number, body)
            if text is None:
                return None
            lines += text
        if self.reduces:
            for number, (body, _) in enumerate(stages(self.nest)):
                if body.folds:
                    folds = self._folds_of(body)
                    lines += functions_of_totals(number, folds, self.ways.get(2 * number, 0))
        return [*lines, *(line for function in self.lanes.values() for line in function)]

    def tables(self) -> list[str]:
        """What calls the functions, named LOOPS, once these are printed."""
        return [*self._tables(), *self._entry()]

    # -- bodies

    def _body(self, number: int, body: Body) -> list[str] | None:
        steps = self._steps(body)
        if steps is None:
            return None
        numbers = [pair for pair in body.loads if pair[1] in body.numbers]
        vectors = [pair for pair in body.loads if pair[1] not in body.numbers]
        stores = [f"a{a}[i] = {self._stored(v)};" for v, a in body.stores]
        ends = [*(line for f in self._folds_of(body) for line in f.fold([f.element()])), *stores]
        values = self._reads_values(number, body)
        inside = needed([*((v, self._load(v, a, "i", values)) for v, a in vectors), *steps], ends)
        outside = needed([(v, self._load(v, a, "0")) for v, a in numbers], [*inside, *ends])
        if not body.loads and not body.stores:
            return [f"static void NAME_{number}{ARGUMENTS}", "{", "}", ""]
        written = {a for _, a in body.stores}
        pointers = [self._pointer(a, const=False) for _, a in body.stores]
        pointers += needed(
            [(a, self._pointer(a, const=True)) for _, a in body.loads if a not in written],
            [*inside, *outside],
            "a",
        )
        if body.folds:
            return self._folding(number, body, [*pointers, *outside], inside, stores)
        blocks = not values and not is_light(inside)
        over = loop_of_blocks([*inside, *ends]) if blocks else loop([*inside, *ends])
        lines = ["    for (int64_t r = 0; r < rows; r++) {"]
        lines += [indented(line, 2) for line in (*pointers, *outside, *over)]
        lines += ["    }", "}", ""]
        if not values:
            linkage = "INLINE" if self.ways.get(number - 1, 0) > 1 else "static"
            return [f"{linkage} void NAME_{number}{ARGUMENTS}", "{", *lines]
        return [inline_head(number), "{", *lines, *versions(number, True)]

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
        folds = self._folds_of(body)
        light = is_light(inside)
        settled, counts = 0, [1]
        if light and not stores and (len(folds) == 1 or all(fold.adds for fold in folds)):
            settled, counts = self._at_once(body, before, len(inside))
        rows = [self._rows(body, before, inside, stores, count) for count in counts]
        first = self._rows(body, before, inside, stores, settled, True) if settled else []
        values = self._reads_values(number, body)
        lines = [
            inline_head(number),
            "{",
            *self._parts(folds, first, [line for loops in rows for line in loops]),
            "}",
            "",
        ]
        lines += versions(number, values, len(counts) > 1 and folds[0].is_extreme)
        if light:
            self.ways[number] = 1 if stores or len(inside) > FEW_LINES else WAYS
            self.lanes[number] = self._lanes(number, body, before, inside, stores)
        return lines

    def _at_once(self, body: Body, before: Sequence[str], lines: int) -> tuple[int, list[int]]:
        """How many rows are read at once and added to the totals, if any; how many to a part."""
        compared = any(fold.is_extreme for fold in self._folds_of(body))
        arrays = max(1, len(self._read_in_order(body, before)))
        more = (ROWS_COMPARED if compared else MORE_ROWS) // arrays
        if lines > FEW_LINES or more <= ROWS:
            return 0, [ROWS, 1]
        return (0, [more, 1]) if compared else (more, [ROWS, 1])

    def _parts(
        self, folds: Sequence[Fold], settled: Sequence[str], rows: Sequence[str]
    ) -> list[str]:
        """All rows: in loops that add to the totals, and in parts that are added to them."""
        size = PART if any(fold.has_error for fold in folds) else 0
        lines = [f"    {line}" for fold in folds for line in fold.totals()]
        inner = [*settled, "        if (r == end)", "            continue;"] if settled else []
        inner += [f"        {line}" for fold in folds for line in fold.start()]
        inner += [*rows, *(f"        {line}" for fold in folds for line in fold.settle())]
        return [*lines, *portions(size, inner)]

    def _lanes(
        self,
        number: int,
        body: Body,
        before: Sequence[str],
        inside: Sequence[str],
        stores: Sequence[str],
    ) -> list[str]:
        """The same for parts of results, as many as stay in registers, and what is left over; with
        what comes before and after.
        """
        across = (line.replace("across ? 0 : i", "0") for line in inside)
        arrays = {a for _, a in (*body.loads, *body.stores)} - body.numbers
        moving = frozenset(a for a in arrays if a < self.nest.temporaries)
        read = frozenset(self._read_in_order(body, before))
        given = Pass(
            tuple(self._folds_of(body)),
            tuple(before),
            tuple(across),
            tuple(stores),
            moving,
            read,
            self.ways[number],
        )
        return function_of_lanes(number, len(self.dtypes), given)

    def _rows(
        self,
        body: Body,
        before: Sequence[str],
        inside: Sequence[str],
        stores: Sequence[str],
        count: int,
        settled: bool = False,
    ) -> list[str]:
        """The loop over rows, so many at once, which are a part or, where there are many rows, are
        ``settled``; suffixes tell their variables apart.
        """
        suffixes = [f"_{row}" for row in range(count)] if count > 1 else [""]
        ahead = [of_row(line, s, row) for row, s in enumerate(suffixes) for line in before]
        work = folded(self._folds_of(body), inside, stores, suffixes, settled)
        many = f"rows >= {MANY_ROWS} && " if settled else ""
        return [
            f"        for (; {many}r + {count - 1} < end; r += {count}) {{",
            *(indented(line, 3) for line in (*ahead, *loop(work))),
            "        }",
        ]

    def _read_in_order(self, body: Body, before: Sequence[str]) -> list[int]:
        """The arrays whose elements are read, and that there are pointers to."""
        text = "\n".join(before)
        arrays = [a for _, a in body.loads if a not in body.numbers and a < self.nest.temporaries]
        return [a for a in arrays if f" *a{a} = " in text]

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

    # -- tables

    def _tables(self) -> list[str]:
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
        if self.reduces:
            entries = []
            for number, (body, _) in enumerate(stages(nest)):
                a, b = 2 * number, 2 * number + 1
                names = [f"LOOPS_{name}{number}" for name in ("begin", "merge", "finish")]
                totals = ", ".join(names if body.folds else "000")
                across = "across" if self._reads_values(a, body) else ""
                parts = parts_of_one(self._folds_of(body), self.ways.get(a, 0)) if body.folds else 0
                lanes = f"LOOPS_lanes{a}" if a in self.lanes else "0"
                entries.append(
                    f"{{{{LOOPS_{a}, NAME_role{a}}}, {{LOOPS_{across}{a}, NAME_role{a}}}, "
                    f"{{LOOPS_{b}, NAME_role{b}}}, {parts}, {lanes}, {totals}}}"
                )
            count = len(entries)
            lines += [f"static const struct stage NAME_stages[] = {{{', '.join(entries)}}};"]
        else:
            entries = [f"{{LOOPS_{i}, NAME_role{i}}}" for i in range(count)]
            lines += [f"static const struct body NAME_bodies[] = {{{', '.join(entries)}}};"]
        nests = "0, NAME_stages" if self.reduces else "NAME_bodies, 0"
        lines += [
            "static const struct kernel NAME_kernel = {"
            f"{nest.rank}, {len(nest.stretched)}, {nest.temporaries}, {total}, {count}, "
            f"{int(nonempty(nest))}, {self._width()}, {self._buffer()}, "
            f"NAME_size, NAME_stretched, NAME_reduced, {nests}}};"
        ]
        return lines

    def _width(self) -> int:
        """The bytes of the largest elements, 8 at least."""
        return max(8, *itemsizes(self.nest))

    def _buffer(self) -> str:
        """The bytes that a thread needs for blocks and totals."""
        size = f"{self.nest.temporaries} * BLOCK"
        size += f" + {len(self.dtypes) - self.nest.temporaries} * LANES" if self.reduces else ""
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

    def _entry(self) -> list[str]:
        in_order = [
            "    if (!threads) {",
            f"        static const int64_t none[{len(self.dtypes)}];",
            f"        LOOPS_{len(self.nest.bodies) - 1}(1, shape[0], data, none);",
            "        return 0;",
            "    }",
        ]
        return [
            "int NAME(KERNEL_ARGUMENTS);",
            "int NAME(KERNEL_ARGUMENTS)",
            "{",
            *([] if self.reduces else in_order),
            f"    return nest_{'reduction' if self.reduces else 'elementwise'}"
            "(&NAME_kernel, data, shape, strides, threads);",
            "}",
        ]


def _table(name: str, entries: Sequence[int]) -> str:
    return f"static const uint8_t NAME_{name}[] = {{{', '.join(map(str, entries or [0]))}}};"
