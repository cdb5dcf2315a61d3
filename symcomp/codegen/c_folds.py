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

# So many parts of one result are added up side by side, as they stay in registers; so many bytes
# of what is not a sum or product.
PARTS, PARTS_BYTES = 32, 256
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
    def is_extreme(self) -> bool:
        """Whether it is an extreme of floats: NaN, which passes by comparisons, is kept apart."""
        return self.name in ("max", "min") and np.dtype(self.work).kind == "f"

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
        if self.has_error:
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

    def fold(self, suffixes: Sequence[str]) -> list[str]:
        """Join the elements of rows, two by two, and these to the part."""
        v, name, work, kind = self.number, self.name, self.work, self._kind
        if len(suffixes) == 1:
            if self.is_extreme:
                return self._extreme([f"v{self.argument}{suffixes[0]}"])
            text = converted(f"v{self.argument}{suffixes[0]}", self._given, work)
            return [f"p{v}[i] = {_joined(name, work, f'p{v}[i]', text)};"]
        lines, names = [], []
        for suffix in suffixes:
            names.append(f"w{v}{suffix}")
            element = converted(f"v{self.argument}{suffix}", self._given, work)
            lines.append(f"const {kind} {names[-1]} = {element};")
        if self.is_extreme:
            return [*lines, *self._extreme(names)]
        while len(names) > 1:
            x, y, *names = names
            names.append(x + y.removeprefix(f"w{v}"))
            lines.append(f"const {kind} {names[-1]} = {_joined(name, work, x, y)};")
        return [*lines, f"p{v}[i] = {_joined(name, work, f'p{v}[i]', names[0])};"]

    def _extreme(self, names: Sequence[str]) -> list[str]:
        """Elements compared with the part, and NaN noted: of two at once."""
        v, sign = self.number, ">" if self.name == "max" else "<"
        lines = []
        for x, y in zip(names[::2], [*names[1::2], names[-1]], strict=False):
            lines.append(f"u{v}[i] = __builtin_isunordered({x}, {y}) ? NAN : u{v}[i];")
        for x in names:
            lines.append(f"p{v}[i] = {x} {sign} p{v}[i] ? {x} : p{v}[i];")
        return lines

    def settle(self, part: str = "p") -> list[str]:
        """Add parts to totals; for sums of floats, keeping the rounding errors."""
        v, kind = self.number, self._kind
        if self.is_extreme:
            best = f"(u{v}[i] != u{v}[i] ? u{v}[i] : p{v}[i])"
            joined = _joined(self.name, self.work, f"t{v}[i]", best)
            return ["for (int64_t i = 0; i < n; i++)", f"    t{v}[i] = {joined};"]
        if not self.has_error:
            joined = _joined(self.name, self.work, f"t{v}[i]", f"p{v}[i]")
            return ["for (int64_t i = 0; i < n; i++)", f"    t{v}[i] = {joined};"]
        suffix = ("_c" if self.work in COMPLEX else "") + ("f" if kind.startswith("float") else "")
        return [
            "for (int64_t i = 0; i < n; i++) {",
            f"    {kind} s = t{v}[i] + {part}{v}[i];",
            f"    e{v}[i] += sum_error{suffix}(t{v}[i], {part}{v}[i], s);",
            f"    t{v}[i] = s;",
            "}",
        ]

    def begin(self) -> list[str]:
        """What totals begin with."""
        lines = []
        for array in (self._total, self._error) if self.has_error else (self._total,):
            lines += [f"    {self._kind} *b{array} = ({self._kind} *)data[{array}];"]
            lines += ["    for (int64_t i = 0; i < n; i++)"]
            lines += [f"        b{array}[i] = {_identity(self.name, self.work)};"]
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
        if self.has_error:
            lines += [f"    {kind} *e{v} = ({kind} *)data[{self._error}];"]
        lines += [f"    const {kind} *p{v} = (const {kind} *)other[{self._total}];"]
        if self.is_extreme:
            joined = _joined(self.name, self.work, f"t{v}[i]", f"p{v}[i]")
            return [*lines, "    for (int64_t i = 0; i < n; i++)", f"        t{v}[i] = {joined};"]
        lines += [f"    {line}" for line in self.settle()]
        if self.has_error:
            lines += [f"    p{v} = (const {kind} *)other[{self._error}];"]
            lines += ["    for (int64_t i = 0; i < n; i++)", f"        e{v}[i] += p{v}[i];"]
        return lines

    def finish(self, parts: int) -> list[str]:
        """Totals to results: added up, where they are parts of one, mostly as many as ``parts``."""
        kind, stored = self._kind, STORED[self._dtype]
        lines = ["    {", f"        {kind} *t = ({kind} *)data[{self._total}];"]
        if self.has_error:
            lines += [f"        const {kind} *e = (const {kind} *)data[{self._error}];"]
            lines += ["        for (int64_t i = 0; i < n; i++)", "            t[i] += e[i];"]
        return [
            *lines,
            f"        {stored} *z = ({stored} *)data[{self._result}];",
            *(indented(line, 2) for line in _together(self.name, self.work, parts)),
            "        for (int64_t i = 0; i < (across ? 1 : n); i++)",
            f"            z[i] = ({stored}){converted('t[i]', self.work, self._dtype)};",
            "    }",
        ]


def parts_of_one(folds: Sequence[Fold]) -> int:
    """How many parts of one result are added up side by side: what stays in registers."""
    if all(fold.adds for fold in folds):
        return PARTS
    # These wait for one another longer: more of them.
    sizes = [np.dtype(fold.work).itemsize for fold in folds]
    return max(PARTS, min(2 * PARTS, PARTS_BYTES // max(sizes)))


def functions_of_totals(number: int, folds: Sequence[Fold]) -> list[str]:
    """The functions that begin totals, add others to them, and make results of them."""
    parts = parts_of_one(folds)
    functions = {
        f"NAME_begin{number}(int64_t n, char *const *data)": [f.begin() for f in folds],
        f"NAME_merge{number}(int64_t n, char *const *data, char *const *other)": [
            f.merge() for f in folds
        ],
        f"NAME_finish{number}(int64_t n, int across, char *const *data)": [
            f.finish(parts) for f in folds
        ],
    }
    lines = []
    for head, bodies in functions.items():
        lines += [f"static void {head}", "{", *(line for body in bodies for line in body), "}", ""]
    return lines


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


def _together(name: str, work: str, parts: int) -> list[str]:
    """Join n parts, across, in the first; they are mostly ``parts``."""
    lines = [f"if (across && n == {parts}) {{"]
    half = parts // 2
    while half:
        lines += [f"    for (int i = 0; i < {half}; i++)"]
        lines += [f"        t[i] = {_joined(name, work, 't[i]', f't[{half} + i]')};"]
        half //= 2
    if name in ("sum", "prod"):
        c_type = C_TYPES[work]
        return [
            *lines,
            "} else if (across) {",
            f"    {c_type} z0 = t[0];",
            "    for (int64_t i = 1; i < n; i++)",
            f"        z0 = {_joined(name, work, 'z0', 't[i]')};",
            "    t[0] = z0;",
            "}",
        ]
    return [
        *lines,
        "} else {",
        "    for (int64_t m = n, half; across && m > 1; m = half) {",
        "        half = (m + 1) / 2;",
        "        for (int64_t i = 0; i < m / 2; i++)",
        f"            t[i] = {_joined(name, work, 't[i]', 't[half + i]')};",
        "    }",
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
