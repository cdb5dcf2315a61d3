"""Reductions in C: the totals that they keep, how elements are joined to these, how totals become a
result.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from symcomp.codegen.c_loops import indented
from symcomp.codegen.c_scalars import C_TYPES, COMPLEX, STORED, converted
from symcomp.codegen.loops import Nest, work_dtype
from symcomp.ops.reduce import Reduce

# Parts of one result are added up side by side: so many bytes, which stay in registers, but not
# fewer or more elements than these.
PARTS_BYTES, FEWEST, MOST = 128, 32, 256
_BITS = {"bitwise_and": "&", "bitwise_or": "|", "bitwise_xor": "^"}
_MERGED = {"float32": "merge_sumsf", "float64": "merge_sums"}


class Fold:
    """A reduction of a nest: value ``number`` of its formula.

    Attributes
    ----------
    number : int
    name : str
        Of the reduction.
    argument : int
        The value that it reduces.
    work : str
        The dtype that it computes in.
    """

    def __init__(self, nest: Nest, number: int) -> None:
        formula = nest.formula
        step = formula.steps[number - formula.first_step]
        assert isinstance(step.function, Reduce)
        self.number, self.argument = number, step.arguments[0]
        self.name, self.work = step.function.reduction.name, work_dtype(formula, number)
        self._given, self._dtype = formula.dtypes[self.argument], step.dtype
        self._total, self._error = nest.totals[number]
        self._result = nest.values[number]
        self._kind = C_TYPES[self.work]

    @property
    def has_error(self) -> bool:
        """Whether rounding errors of totals are kept: they are sums of floats."""
        return self.name == "sum" and np.dtype(self.work).kind in "fc"

    @property
    def compares(self) -> bool:
        """Whether it chooses elements, and so may read them twice."""
        return self.name in ("max", "min")

    @property
    def is_extreme(self) -> bool:
        """Whether it is an extreme of floats: NaN, which passes by comparisons, is kept apart."""
        return self.compares and np.dtype(self.work).kind == "f"

    @property
    def is_pair(self) -> bool:
        """Whether beside totals there is another array: of errors, or of NaN where one was met."""
        return self.has_error or self.is_extreme

    @property
    def adds(self) -> bool:
        """Whether it is a sum or product."""
        return self.name in ("sum", "prod")

    def totals(self) -> list[str]:
        """The names of the arrays of totals in a function."""
        v, kind = self.number, self._kind
        lines = [f"{kind} *t{v} = ({kind} *)data[{self._total}];"]
        lines += [f"_Alignas(64) {kind} p{v}[LANES];"]
        if self.is_extreme:
            lines += [f"_Alignas(64) {kind} u{v}[LANES];"]
        if self.is_pair:
            lines += [f"{kind} *e{v} = ({kind} *)data[{self._error}];"]
        return lines

    def start(self, part: str = "p") -> list[str]:
        """What a part begins with."""
        array = f"{part}{self.number}"
        lines = [f"_Alignas(64) {self._kind} {array}[LANES];"] if part == "q" else []
        identity = _identity(self.name, self.work)
        lines += ["for (int64_t i = 0; i < n; i++)", f"    {array}[i] = {identity};"]
        if self.is_extreme:
            lines += ["for (int64_t i = 0; i < n; i++)", f"    u{self.number}[i] = 0;"]
        return lines

    def join(self) -> list[str]:
        """Add a part to those that are settled with it."""
        v = self.number
        joined = _joined(self.name, self.work, f"q{v}[i]", f"p{v}[i]")
        return ["for (int64_t i = 0; i < n; i++)", f"    q{v}[i] = {joined};"]

    def element(self, suffix: str = "") -> str:
        """An element that is reduced, in the dtype of totals."""
        return converted(f"v{self.argument}{suffix}", self._given, self.work)

    def maybe(self) -> str:
        """The name of an element that may be missing: then it changes nothing."""
        return f"x{self.number}"

    def missing(self) -> str:
        """Its declaration."""
        return f"{self._kind} {self.maybe()} = {_identity(self.name, self.work)};"

    def there(self) -> str:
        """What it becomes where there is an element."""
        return f"{self.maybe()} = {self.element()};"

    def fold(self, elements: Sequence[str], settled: bool = False) -> list[str]:
        """Join elements two by two, and these to the part or, where they are ``settled``, to the
        total.
        """
        v, name, work, kind = self.number, self.name, self.work, self._kind
        if len(elements) == 1 and not self.is_extreme:
            return [f"p{v}[i] = {_joined(name, work, f'p{v}[i]', elements[0])};"]
        names = [f"w{v}_{row}" for row in range(len(elements))]
        lines = [f"const {kind} {x} = {e};" for x, e in zip(names, elements, strict=True)]
        if self.is_extreme:
            lines += self._unordered(names)
        while len(names) > 1:
            x, y, *names = names
            names.append(x + y.removeprefix(f"w{v}"))
            lines.append(f"const {kind} {names[-1]} = {_joined(name, work, x, y)};")
        if settled:
            return [*lines, *self._added(names[0])]
        return [*lines, f"p{v}[i] = {_joined(name, work, f'p{v}[i]', names[0])};"]

    def _unordered(self, names: Sequence[str]) -> list[str]:
        """NaN noted: of two elements at once."""
        u = f"u{self.number}[i]"
        pairs = zip(names[::2], [*names[1::2], names[-1]], strict=False)
        return [f"{u} = __builtin_isunordered({x}, {y}) ? NAN : {u};" for x, y in pairs]

    def settle(self, part: str = "p") -> list[str]:
        """Add parts to totals."""
        v = self.number
        lines = ["for (int64_t i = 0; i < n; i++) {"]
        lines += [f"    {line}" for line in self._added(f"{part}{v}[i]")]
        if self.is_extreme:
            lines += [f"    e{v}[i] += u{v}[i];"]
        return [*lines, "}"]

    def _added(self, x: str) -> list[str]:
        """Add to a total; for sums of floats, keeping the rounding error."""
        v, kind = self.number, self._kind
        if not self.has_error:
            return [f"t{v}[i] = {_joined(self.name, self.work, f't{v}[i]', x)};"]
        suffix = ("_c" if self.work in COMPLEX else "") + ("f" if kind.startswith("float") else "")
        return [
            f"const {kind} s{v} = t{v}[i] + {x};",
            f"e{v}[i] += sum_error{suffix}(t{v}[i], {x}, s{v});",
            f"t{v}[i] = s{v};",
        ]

    def keep(self, part: str = "p") -> list[str]:
        """Parts that are the totals."""
        v = self.number
        lines = ["for (int64_t i = 0; i < n; i++)", f"    t{v}[i] = {part}{v}[i];"]
        if self.is_pair:
            second = f"u{v}[i]" if self.is_extreme else "0"
            lines += ["for (int64_t i = 0; i < n; i++)", f"    e{v}[i] = {second};"]
        return lines

    def begin(self) -> list[str]:
        """What totals begin with."""
        arrays = {self._total: _identity(self.name, self.work)}
        if self.is_pair:
            arrays[self._error] = "0"
        lines = []
        for array, first in arrays.items():
            lines += [f"    {self._kind} *b{array} = ({self._kind} *)data[{array}];"]
            lines += ["    for (int64_t i = 0; i < n; i++)", f"        b{array}[i] = {first};"]
        return lines

    def merge(self) -> list[str]:
        """Totals of other elements to these."""
        v, kind = self.number, self._kind
        if self.has_error and self.work in _MERGED:
            arrays = (f"data[{self._total}]", f"data[{self._error}]")
            more = (f"other[{self._total}]", f"other[{self._error}]")
            arguments = ", ".join(f"(void *){array}" for array in (*arrays, *more))
            return [f"    {_MERGED[self.work]}(n, {arguments});"]
        lines = [f"    {kind} *t{v} = ({kind} *)data[{self._total}];"]
        if self.is_pair:
            lines += [f"    {kind} *e{v} = ({kind} *)data[{self._error}];"]
        lines += [f"    const {kind} *p{v} = (const {kind} *)other[{self._total}];"]
        if self.is_extreme:
            lines += [f"    const {kind} *u{v} = (const {kind} *)other[{self._error}];"]
        lines += [f"    {line}" for line in self.settle()]
        if self.has_error:
            lines += [f"    p{v} = (const {kind} *)other[{self._error}];"]
            lines += ["    for (int64_t i = 0; i < n; i++)", f"        e{v}[i] += p{v}[i];"]
        return lines

    def finish(self, parts: int) -> list[str]:
        """Totals to results: added up, where they are parts of one, mostly as many as ``parts``."""
        kind, stored = self._kind, STORED[self._dtype]
        lines = ["    {", f"        {kind} *t = ({kind} *)data[{self._total}];"]
        if self.is_pair:
            lines += [f"        {kind} *e = ({kind} *)data[{self._error}];"]
        if self.has_error:
            lines += ["        for (int64_t i = 0; i < n; i++)", "            t[i] += e[i];"]
        joined = [("t", self.name)]
        if self.is_extreme:
            joined += [("e", "sum")]
        result = "e[i] != e[i] ? e[i] : t[i]" if self.is_extreme else "t[i]"
        return [
            *lines,
            f"        {stored} *z = ({stored} *)data[{self._result}];",
            *(indented(line, 2) for line in self._together(joined, parts)),
            "        for (int64_t i = 0; i < (across ? 1 : n); i++)",
            f"            z[i] = ({stored}){converted(f'({result})', self.work, self._dtype)};",
            "    }",
        ]

    def _together(self, arrays: Sequence[tuple[str, str]], parts: int) -> list[str]:
        """Join n parts, across, in the first of their array; if not 0, mostly so many."""
        lines = [f"if (across && n == {parts}) {{"] if parts else []
        half = parts // 2
        while half:
            for t, name in arrays:
                joined = _joined(name, self.work, f"{t}[i]", f"{t}[{half} + i]")
                lines += [f"    for (int i = 0; i < {half}; i++)", f"        {t}[i] = {joined};"]
            half //= 2
        lines += ["} else if (across) {"] if parts else ["if (across) {"]
        for t, name in arrays:
            first = ", ".join([_identity(name, self.work)] * 4)
            joined = _joined(name, self.work, "s[i % 4]", f"{t}[i]")
            lines += [
                "    {",
                f"        {self._kind} s[4] = {{{first}}};",
                "        for (int64_t i = 0; i < n; i++)",
                f"            s[i % 4] = {joined};",
                *(
                    f"        s[{i}] = {_joined(name, self.work, f's[{i}]', f's[{i + 2}]')};"
                    for i in range(2)
                ),
                f"        {t}[0] = {_joined(name, self.work, 's[0]', 's[1]')};",
                "    }",
            ]
        return [*lines, "}"]


def parts_of_one(folds: Sequence[Fold], ways: int) -> int:
    """How many parts of one result are added up side by side, ``ways`` of them before the lanes."""
    sizes = [np.dtype(fold.work).itemsize for fold in folds]
    return max(FEWEST, min(MOST, max(1, ways) * PARTS_BYTES // max(sizes)))


def functions_of_totals(number: int, folds: Sequence[Fold], ways: int) -> list[str]:
    """The functions that begin totals, add others to them, and make results of them; ``ways``: how
    many elements each lane has, if there is a function of lanes: it calls the last.
    """
    # Several folds would take the compiler long.
    parts = parts_of_one(folds, ways) // max(1, ways) if len(folds) == 1 else 0
    linkage = "INLINE" if ways > 1 else "static"
    data = "char *const *data"
    functions = {
        f"static void NAME_begin{number}(int64_t n, {data})": [f.begin() for f in folds],
        f"static void NAME_merge{number}(int64_t n, {data}, char *const *other)": [
            f.merge() for f in folds
        ],
        f"{linkage} void NAME_finish{number}(int64_t n, int across, {data})": [
            f.finish(parts) for f in folds
        ],
    }
    lines = []
    for head, bodies in functions.items():
        lines += [head, "{", *(line for body in bodies for line in body), "}", ""]
    return lines


def _joined(name: str, work: str, total: str, x: str) -> str:
    """A total with one more element."""
    kind, c_type = np.dtype(work).kind, C_TYPES[work]
    if name in ("any", "all"):
        return f"(uint8_t)({total} {'|' if name == 'any' else '&'} {x})"
    if name in _BITS:
        return f"({c_type})({total} {_BITS[name]} {x})"
    if name in ("max", "min"):
        if kind == "b":
            return f"(uint8_t)({total} {'|' if name == 'max' else '&'} {x})"
        # NaN, which fails the test, is kept apart.
        return f"{x} {'>' if name == 'max' else '<'} {total} ? {x} : {total}"
    if kind == "b":
        return f"(uint8_t)({total} {'|' if name == 'sum' else '&'} {x})"
    if kind == "c" and name == "prod":
        return f"c_times{'f' if work == 'complex64' else ''}({total}, {x})"
    return f"({c_type})({total} {'+' if name == 'sum' else '*'} {x})"


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
    if name == "bitwise_and":
        return "1" if kind == "b" else f"({C_TYPES[work]})-1"
    return "1" if name in ("prod", "all") else "0"
