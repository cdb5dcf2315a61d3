"""Print LoopIR as C, one function at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from typing import Any

import numpy as np

from symcomp.codegen.functions.c_scalars import (
    C_TYPES,
    COMPLEX,
    ENCODED,
    STORED,
    converted,
    read_element,
    scalar_text,
)
from symcomp.codegen.loopir.expressions import (
    Accumulate,
    ApplyScalar,
    Convert,
    FromLane,
    Get,
    Index,
    Load,
    Number,
    Position,
    Primitive,
    Ref,
    Start,
    Stride,
    Value,
    Var,
    ZeroOrOne,
)
from symcomp.codegen.loopir.ir import (
    Accumulators,
    AddTo,
    CopyTable,
    Counter,
    Define,
    FunctionCall,
    Guard,
    If,
    KernelFunction,
    Kind,
    Let,
    Loop,
    MergeSums,
    MoveTable,
    Pack,
    Pointer,
    Prefetch,
    Quarters,
    Scatter,
    Set,
    Statement,
    Store,
    WritePack,
)
from symcomp.core.dtype import kind

# Adds a line to the text.
Add = Callable[[str], None]
# Parameters that are 0 or 1.
_FLAGS = {"across", "added"}
_MERGED = {"float32": "merge_sumsf", "float64": "merge_sums"}
# Precedence of operators, and their spelling in C.
_BINDING = {"choose": 0, "min": 0, "and": 1, "==": 2, "!=": 2, "<": 3, "<=": 3, "+": 4, "-": 4}
_BINDING |= dict.fromkeys(("*", "//", "%"), 5)
_PRAGMAS = {Kind.VECTOR: "#pragma omp simd", Kind.UNROLLED: "#pragma unroll"}
_SPELLED = {"and": "&&", "//": "/"}


def function_text(function: KernelFunction, prefix: str) -> list[str]:
    """Return the lines of a function; all names of a kernel begin with ``prefix``."""
    signature = function.signature
    parameters = [f"{'int' if p in _FLAGS else 'int64_t'} {p}" for p in signature.numbers]
    parameters += [f"char *const *{table}" for table in signature.tables]
    parameters += [f"const int64_t *{row}" for row in signature.strides]
    linkage = "INLINE" if function.inline else "READ_ONCE static" if function.once else "static"
    head = f"{linkage} void {prefix}_{function.name}({', '.join(parameters)})"
    return [head, "{", *Lines(prefix).block(function.body, "    "), "}", ""]


class Lines:
    """The lines of statements, with indentation; printers for other targets extend it.

    Attributes
    ----------
    integer : str
        The type of lengths and positions.
    types : dict of str to str
        How elements of a dtype lie in memory.
    """

    integer = "int64_t"
    types = STORED

    def __init__(self, prefix: str) -> None:
        self.prefix = prefix
        # The dtypes of pointers, which hold elements as they lie in memory.
        self.stored: dict[str, str] = {}

    def block(self, body: Iterable[Statement], indent: str) -> list[str]:
        lines: list[str] = []
        for s in body:
            self.statement(s, indent, lines.append)
        return lines

    def statement(self, s: Statement, indent: str, add: Add) -> None:
        """Add the lines of a statement."""
        getattr(self, _STATEMENTS[type(s)])(s, indent, add)

    def pointer(self, s: Pointer, indent: str, add: Add) -> None:
        stored = self.stored[s.name] = self.types[s.dtype]
        kind = stored if s.writes else f"const {stored}"
        place = f"{s.table}[{s.array}]"
        if s.offset != 0:
            place = f"({place} + {index_text(s.offset, 4)})"
        further = f" + {index_text(s.elements, 4)}" if s.elements != 0 else ""
        add(f"{indent}{kind} *{s.name} = ({kind} *){place}{further};")

    def accumulators(self, s: Accumulators, indent: str, add: Add) -> None:
        kind = C_TYPES[s.dtype]
        if s.array is None:
            add(f"{indent}_Alignas(64) {kind} {s.name}[{s.lanes or 'LANES'}];")
            return
        kind = kind if s.writes else f"const {kind}"
        add(f"{indent}{kind} *{s.name} = ({kind} *){s.table}[{s.array}];")

    def quarters(self, s: Quarters, indent: str, add: Add) -> None:
        start = ", ".join([start_text(s.reduction, s.dtype)] * 4)
        add(f"{indent}{C_TYPES[s.dtype]} {s.name}[4] = {{{start}}};")

    def let(self, s: Let, indent: str, add: Add) -> None:
        add(f"{indent}const {C_TYPES[s.value.dtype]} {s.name} = {value_text(s.value)};")

    def define(self, s: Define, indent: str, add: Add) -> None:
        value = index_text(s.value)
        if s.constant:
            add(f"{indent}enum {{ {s.name} = {value} }};")
        else:
            add(f"{indent}const {self.integer} {s.name} = {value};")

    def counter(self, s: Counter, indent: str, add: Add) -> None:
        add(f"{indent}{self.integer} {s.name} = {index_text(s.start)};")

    def store(self, s: Store, indent: str, add: Add) -> None:
        element = f"{s.pointer}[{index_text(s.index)}]"
        value = value_text(s.value)
        if s.value.dtype in ENCODED:
            add(f"{indent}{element} = {ENCODED[s.value.dtype].write}({value});")
        else:
            add(f"{indent}{element} = ({self.stored[s.pointer]}){value};")

    def set(self, s: Set, indent: str, add: Add) -> None:
        add(f"{indent}{s.accumulators}[{index_text(s.index)}] = {value_text(s.value)};")

    def scatter(self, s: Scatter, indent: str, add: Add) -> None:
        places = s.positions if s.first == 0 else f"{s.positions} + {index_text(s.first, 5)}"
        add(f"{indent}scatter_{s.dtype}({index_text(s.count)}, {s.table}, {s.values}, {places});")

    def loop(self, s: Loop, indent: str, add: Add) -> None:
        i, stop = s.index, index_text(s.stop, 4)
        start = "" if s.start is None else f"{self.integer} {i} = {index_text(s.start)}"
        move = f"{i}++" if s.step == 1 else f"{i} += {index_text(s.step)}"
        condition = f"{i} < {stop}"
        if s.whole and isinstance(s.step, int):
            condition = f"{i} + {s.step - 1} < {stop}" if s.step > 1 else condition
        elif s.whole:
            condition = f"{i} + {index_text(s.step, 5)} <= {stop}"
        if s.condition is not None:
            condition = f"{index_text(s.condition, 2)} && {condition}"
        if s.spare:
            add("#ifndef EARLY_CODE")
        if s.kind in _PRAGMAS:
            add(_PRAGMAS[s.kind])
        add(f"{indent}for ({start}; {condition}; {move}) {{")
        self._inside(s.body, indent, add)
        add(f"{indent}}}")
        if s.spare:
            add("#endif")

    def if_(self, s: If, indent: str, add: Add) -> None:
        add(f"{indent}if ({index_text(s.condition)}) {{")
        self._inside(s.body, indent, add)
        if s.otherwise:
            add(f"{indent}}} else {{")
            self._inside(s.otherwise, indent, add)
        add(f"{indent}}}")

    def guard(self, s: Guard, indent: str, add: Add) -> None:
        for name, value, otherwise in s.results:
            add(f"{indent}{C_TYPES[value.dtype]} {name} = {value_text(otherwise)};")
        add(f"{indent}if ({index_text(s.condition)}) {{")
        self._inside(s.body, indent, add)
        for name, value, _ in s.results:
            add(f"{indent}    {name} = {value_text(value)};")
        add(f"{indent}}}")

    def _inside(self, body: Iterable[Statement], indent: str, add: Add) -> None:
        indent += "    "
        for s in body:
            self.statement(s, indent, add)

    def call(self, s: FunctionCall, indent: str, add: Add) -> None:
        arguments = ", ".join([*map(index_text, s.numbers), *s.tables])
        add(f"{indent}{self.prefix}_{s.function}({arguments});")

    def merge_sums(self, s: MergeSums, indent: str, add: Add) -> None:
        arrays = ", ".join(f"(void *){table}[{array}]" for table, array in s.totals)
        add(f"{indent}{_MERGED[s.dtype]}(n, {arrays});")

    def prefetch(self, s: Prefetch, indent: str, add: Add) -> None:
        size = f"{index_text(s.elements, 5)} * (int64_t)sizeof *{s.pointer}"
        add(f"{indent}ask_for((const char *){s.pointer} + AHEAD, {size});")

    def copy_table(self, s: CopyTable, indent: str, add: Add) -> None:
        add(f"{indent}char *{s.name}[{s.arrays}];")
        add(f"{indent}memcpy({s.name}, {s.source}, sizeof {s.name});")

    def move_table(self, s: MoveTable, indent: str, add: Add) -> None:
        add(f"{indent}for (int a = 0; a < {s.arrays}; a++)")
        add(f"{indent}    {s.name}[a] += {s.by}[a];")


_STATEMENTS: dict[type, str] = {
    Pointer: "pointer",
    Accumulators: "accumulators",
    Quarters: "quarters",
    Let: "let",
    Define: "define",
    Counter: "counter",
    Store: "store",
    Set: "set",
    Scatter: "scatter",
    Loop: "loop",
    If: "if_",
    Guard: "guard",
    FunctionCall: "call",
    MergeSums: "merge_sums",
    Prefetch: "prefetch",
    CopyTable: "copy_table",
    MoveTable: "move_table",
    Pack: "pack",
    WritePack: "write_pack",
    AddTo: "add_to",
}


# -- indices


def index_text(index: Index, binding: int = 0) -> str:
    """Return an index in C, in parentheses where its operator binds less than the surrounding one.
    """
    if isinstance(index, Var):
        return index.name
    if isinstance(index, int):
        return str(index)
    if isinstance(index, Stride):
        return f"{index.table}[{index.array}]"
    if isinstance(index, Position):
        return index.value.name
    name, arguments = index.name, index.arguments
    own = _BINDING[name]
    if name == "choose":
        condition, x, y = (index_text(a, 1) for a in arguments)
        text = f"{condition} ? {x} : {y}"
    elif name == "min":
        x, y = (index_text(a, 4) for a in arguments)
        text = f"{x} < {y} ? {x} : {y}"
    else:
        x, y = index_text(arguments[0], own), index_text(arguments[1], own + 1)
        text = f"{x} {_SPELLED.get(name, name)} {y}"
    return f"({text})" if own < binding else text


# -- values


def value_text(value: Value) -> str:
    """Return a value in C."""
    return _VALUES[type(value)](value)


def _load(value: Load) -> str:
    element = f"{value.pointer}[{index_text(value.index)}]"
    element = f"(uint8_t)({element} != 0)" if value.dtype == "bool" else element
    return read_element(element, value.dtype)


def _apply(value: ApplyScalar) -> str:
    dtypes = tuple(a.dtype for a in value.arguments)
    text = scalar_text(value.function, dtypes, value.dtype)
    assert text is not None
    return text.of([value_text(a) for a in value.arguments])


def _convert(value: Convert) -> str:
    text = value_text(value.value)
    text = text if isinstance(value.value, Ref) else f"({text})"
    return converted(text, value.value.dtype, value.dtype)


def _join(value: Accumulate) -> str:
    """Return an accumulator joined with one more element."""
    form = _join_form(value.reduction, value.total.dtype)
    return form.format(value_text(value.total), value_text(value.value))


_BITS = {"bitwise_and": "&", "bitwise_or": "|", "bitwise_xor": "^"}


@cache
def _join_form(name: str, work: str) -> str:
    """Return the C of an accumulator, ``{0}``, joined with one more element, ``{1}``."""
    kind, c_type = np.dtype(work).kind, C_TYPES[work]
    if name in _BITS:
        return f"({c_type})({{0}} {_BITS[name]} {{1}})"
    if kind == "b" or name in ("any", "all"):
        return f"(uint8_t)({{0}} {'|' if name in ('any', 'max', 'sum') else '&'} {{1}})"
    if name in ("max", "min"):
        # NaN fails the comparison; it is recorded separately.
        return f"{{1}} {'>' if name == 'max' else '<'} {{0}} ? {{1}} : {{0}}"
    if kind == "c" and name == "prod":
        return f"c_times{'f' if work == 'complex64' else ''}({{0}}, {{1}})"
    return f"({c_type})({{0}} {'+' if name == 'sum' else '*'} {{1}})"


@cache
def start_text(reduction: str, work: str) -> str:
    """Return the initial value of an accumulator."""
    kind = np.dtype(work).kind
    if reduction in ("max", "min"):
        if kind == "f":
            return "-INFINITY" if reduction == "max" else "INFINITY"
        if kind == "b":
            return "0" if reduction == "max" else "1"
        bits = 8 * np.dtype(work).itemsize
        if kind == "u":
            return "0" if reduction == "max" else f"UINT{bits}_MAX"
        return f"INT{bits}_{'MIN' if reduction == 'max' else 'MAX'}"
    if reduction == "bitwise_and":
        return "1" if kind == "b" else f"({C_TYPES[work]})-1"
    return "1" if reduction in ("prod", "all") else "0"


def _number(value: Number) -> str:
    x, letter = value.literal.array.item(), kind(value.dtype)
    if letter == "f":
        text = f"{'-' * (x < 0)}INFINITY" if np.isinf(x) else float(x).hex()
    else:
        text = f"INT64_C({x})" if letter == "i" and x > -(2**63) else f"UINT64_C({int(x) % 2**64})"
    return f"({C_TYPES[value.dtype]}){text}"


# Primitives that are functions of C.
_NUMERIC = {"rounding": "sum_error", "rest": "sum_rest", "finite": "finite_or_0"}


def _primitive(value: Primitive) -> str:
    names = [value_text(a) for a in value.arguments]
    if value.name in _NUMERIC:
        work = value.dtype
        suffix = "_c" if work in COMPLEX else ""
        suffix += "f" if work in ("float32", "complex64") else ""
        return f"{_NUMERIC[value.name]}{suffix}({', '.join(names)})"
    if value.name == "mark":
        x, y, mark = names
        return f"__builtin_isunordered({x}, {y}) ? NAN : {mark}"
    x, y = names
    if value.name == "scaled":
        return f"d_times_power({x}, -{y})"
    return f"({x} != {x} ? {x} : {y})"


_VALUES: dict[type, Callable[[Any], str]] = {
    Ref: lambda value: value.name,
    Load: _load,
    Get: lambda value: f"{value.accumulators}[{index_text(value.index)}]",
    ApplyScalar: _apply,
    Convert: _convert,
    Accumulate: _join,
    Start: lambda value: start_text(value.reduction, value.dtype),
    ZeroOrOne: lambda value: str(value.number),
    Number: _number,
    Primitive: _primitive,
    FromLane: lambda value: (
        f"from_lane<{value.lanes}>"
        f"({value_text(value.value)}, {value.lanes // 2} >> {value.halvings.name})"
    ),
}
