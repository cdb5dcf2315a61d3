"""Formulas of complex numbers as formulas of their parts, which kernels for devices compute.

The parts of an array of complex numbers are two views of its memory. Arithmetic is that of NumPy,
which treats infinities like other numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from symcomp.codegen.functions.c_scalars import COMPLEX
from symcomp.codegen.loops.axis_functions import Pattern
from symcomp.core.record import record
from symcomp.gpu.complex_functions import OF_COMPLEX, Rule, powers
from symcomp.gpu.formulas import (
    NestSequence,
    dropped,
    lengths_of,
    nests_for,
    parts_of_complex,
    plan_formula,
)
from symcomp.gpu.planner import Operand, Planner
from symcomp.ops.elementwise.elemwise import ROWS, ScalarOp
from symcomp.ops.formulas.formula import Formula, Literal, Result, Step
from symcomp.ops.reductions.reduce import REDUCTIONS, Reduce

# A value of a formula that is being made: an input, a literal or a step, and its number.
Value = tuple[str, int]
Pair = tuple[Value, Value]


@record
class ComplexNests:
    """A formula of complex numbers, and the nests of one that computes the parts of its results.

    Attributes
    ----------
    formula : Formula
    patterns : tuple of tuple of bool
        Of its inputs.
    nests : NestSequence
    known : tuple of Literal or None
        Of each input, its number if it is known: the nests do not take it.
    """

    formula: Formula
    patterns: tuple[Pattern, ...]
    nests: NestSequence
    known: tuple[Literal | None, ...]


@cache
def complex_nests_for(
    formula: Formula, patterns: tuple[Pattern, ...], known: tuple[Literal | None, ...] = ()
) -> ComplexNests | None:
    """Return how a formula of complex numbers is computed; None if something in it has no kernel on
    devices.

    Parameters
    ----------
    formula : Formula
    patterns : tuple of tuple of bool
        Of its inputs.
    known : tuple of Literal or None, optional
        Of each input, its number if it is a constant.
    """
    if formula.tables or not patterns:
        return None
    known = known or (None,) * len(patterns)
    split = _Parts(formula, known).split()
    if split is None:
        return None
    given = zip(formula.inputs, patterns, known, strict=True)
    of_parts = tuple(
        p for dtype, p, number in given if number is None for _ in range(1 + (dtype in COMPLEX))
    )
    nests = nests_for(split, of_parts)
    return None if nests is None else ComplexNests(formula, patterns, nests, known)


def plan_complex(
    planner: Planner, made: ComplexNests, operands: Sequence[Operand]
) -> list[Operand]:
    """Emit the launches of a formula; return its results, without the axes that they drop."""
    formula = made.formula
    lengths = lengths_of(made.patterns, operands, planner.label)
    patterns = formula.patterns(made.patterns)
    found, targets = [], []
    for result in formula.results:
        shape = [1 if o else n for n, o in zip(lengths, patterns[result.value], strict=True)]
        z = planner.new(formula.dtypes[result.value], shape)
        found.append(dropped(z, result.dropped))
        targets += parts_of_complex(z)
    taken = [x for x, number in zip(operands, made.known, strict=True) if number is None]
    given = [part for x in taken for part in parts_of_complex(x)]
    plan_formula(planner, made.nests, given, targets)
    return found


class _Parts:
    """Makes the formula of the parts.

    Each part lies along the axes of the complex number: where it depends on fewer numbers, the
    function ``second`` stretches it.
    """

    def __init__(self, formula: Formula, known: Sequence[Literal | None]) -> None:
        self.formula, self.known = formula, known
        self.inputs: list[str] = []
        self.literals: list[Literal] = []
        self._number_of: dict[Literal, int] = {}
        self.steps: list[tuple[Any, tuple[Value, ...], str]] = []
        self.found: list[Value | Pair] = []

    def split(self) -> Formula | None:
        """Return the formula; None if a function of complex numbers is not among those here."""
        for dtype, number in zip(self.formula.inputs, self.known, strict=True):
            found = self._inputs(dtype) if number is None else self._number(number)
            self.found.append(found)
        self.found += map(self._number, self.formula.literals)
        for step in self.formula.steps:
            made = self._step(step)
            if made is None:
                return None
            self.found.append(made)
        return self._finish()

    def _inputs(self, dtype: str) -> Any:
        parts = [COMPLEX[dtype]] * 2 if dtype in COMPLEX else [dtype]
        first = len(self.inputs)
        self.inputs += parts
        found = [("input", first + i) for i in range(len(parts))]
        return tuple(found) if len(found) == 2 else found[0]

    def _number(self, literal: Literal) -> Any:
        value = literal.array
        if literal.dtype not in COMPLEX:
            return self._literal(value)
        return self._literal(value.real), self._literal(value.imag)

    def _literal(self, value: Any) -> Value:
        """Return a literal, equal ones once: kernels take a limited number."""
        literal = Literal.of(value)
        if literal not in self._number_of:
            self._number_of[literal] = len(self.literals)
            self.literals.append(literal)
        return "literal", self._number_of[literal]

    def dtype(self, value: Value) -> str:
        """Return the dtype of a value."""
        kind, i = value
        if kind == "step":
            return self.steps[i][2]
        return self.inputs[i] if kind == "input" else self.literals[i].dtype

    def apply(self, name: str, *given: Value, dtype: str = "") -> Value:
        """Add a step: a function of real numbers, by default to the dtype of the first argument."""
        dtype = dtype or self.dtype(given[0])
        row: Any = ROWS[name](dtype) if name == "cast" else ROWS[name]()
        if all(kind == "literal" for kind, _ in given):
            values = [self.literals[i].array for _, i in given]
            return self._literal(np.asarray(row.numpy(*values), dtype))
        self.steps.append((row, given, dtype))
        return "step", len(self.steps) - 1

    def number(self, value: float, dtype: str) -> Value:
        """Return a literal."""
        return self._literal(np.asarray(value, dtype))

    def complex(self, value: Value | Pair, dtype: str) -> Pair:
        """Return the parts of a value as numbers of a complex dtype."""
        part = COMPLEX[dtype]
        if _is_pair(value):
            x, y = (self._cast(v, part) for v in value)
            return x, y
        real = self._cast(value, part)
        return real, self.apply("second", real, self.number(0, part))

    def _cast(self, value: Any, dtype: str) -> Value:
        if self.dtype(value) == dtype:
            found: Value = value
            return found
        if value[0] == "literal":
            return self._literal(self.literals[value[1]].array.astype(dtype))
        return self.apply("cast", value, dtype=dtype)

    # -- steps

    def _step(self, step: Step) -> Any:
        given: list[Any] = [self.found[a] for a in step.arguments]
        is_complex = step.dtype in COMPLEX
        if not is_complex and not any(map(_is_pair, given)):
            self.steps.append((step.function, tuple(given), step.dtype))
            return "step", len(self.steps) - 1
        if isinstance(step.function, Reduce):
            return self._sum(step.function, given[0], step.dtype)
        if not isinstance(step.function, ScalarOp):
            return None
        rule = _OF_COMPLEX.get(step.function.name)
        return None if rule is None else rule(self, given, step.dtype)

    def _sum(self, function: Reduce, x: Any, dtype: str) -> Any:
        if function.reduction != REDUCTIONS["sum"] or not _is_pair(x) or dtype not in COMPLEX:
            return None
        narrow = [d and COMPLEX.get(d) for d in (function.dtype, function.acc_dtype)]
        made = Reduce(function.reduction, function.axes, *narrow)
        first = len(self.steps)
        self.steps += [(made, (part,), COMPLEX[dtype]) for part in x]
        return ("step", first), ("step", first + 1)

    # -- the end

    def _finish(self) -> Formula:
        results: list[Result] = []
        taken: set[Value] = set()
        for result in self.formula.results:
            value: Any = self.found[result.value]
            for part in value if _is_pair(value) else (value,):
                if part[0] != "step" or part in taken:
                    part = self.apply("identity", part)
                taken.add(part)
                results.append(Result(self._place(part), result.dropped))
        steps = tuple(
            Step(function, tuple(map(self._place, given)), dtype)
            for function, given, dtype in self.steps
        )
        # The numbers of steps come after those of all literals.
        return Formula(tuple(self.inputs), tuple(self.literals), steps, tuple(results))

    def _place(self, value: Value) -> int:
        kind, i = value
        inputs = len(self.inputs)
        return {"input": i, "literal": inputs + i, "step": inputs + len(self.literals) + i}[kind]


def _is_pair(value: Any) -> bool:
    return isinstance(value[0], tuple)


# -- functions of complex numbers: each is given values or pairs, and the dtype of the result

def _each(name: str) -> Rule:
    """Return the rule of a function that is one of each part."""

    def rule(f: _Parts, given: Sequence[Any], dtype: str) -> Any:
        pairs = [f.complex(v, dtype) for v in given]
        return tuple(f.apply(name, *parts) for parts in zip(*pairs, strict=True))

    return rule


def _add(f: _Parts, given: Sequence[Any], dtype: str) -> Any:
    """Add from the left, each sum in the dtype that NumPy gives it."""
    kinds = [_dtype_of(f, v) for v in given]
    total, kind = given[0], kinds[0]
    for value, other in zip(given[1:], kinds[1:], strict=True):
        kind = np.result_type(kind, other).name
        if kind in COMPLEX:
            total = _each("add")(f, [total, value], kind)
        else:
            total = f.apply("add", total, value, dtype=kind)
    return f.complex(total, dtype)


def _dtype_of(f: _Parts, value: Any) -> str:
    if not _is_pair(value):
        return f.dtype(value)
    return "complex64" if f.dtype(value[0]) == "float32" else "complex128"


def _mul(f: _Parts, given: Sequence[Any], dtype: str) -> Any:
    (a, b), (c, d) = (f.complex(v, dtype) for v in given)
    real = f.apply("sub", f.apply("mul", a, c), f.apply("mul", b, d))
    return real, f.apply("add", f.apply("mul", a, d), f.apply("mul", b, c))


def _sqr(f: _Parts, given: Sequence[Any], dtype: str) -> Any:
    return _mul(f, [given[0], given[0]], dtype)


def _div(f: _Parts, given: Sequence[Any], dtype: str) -> Any:
    """Divide by the larger part first, which keeps everything in range (R. L. Smith, 1962)."""
    (a, b), (c, d) = (f.complex(v, dtype) for v in given)
    size, part = f.apply("abs", c), COMPLEX[dtype]
    test = lambda name, x, y: f.apply(name, x, y, dtype="bool")  # noqa: E731
    choose = lambda which, x, y: f.apply("switch", which, x, y, dtype=part)  # noqa: E731
    by_real = test("ge", size, f.apply("abs", d))
    larger, smaller = choose(by_real, c, d), choose(by_real, d, c)
    ratio = f.apply("true_div", smaller, larger)
    below = f.apply("add", larger, f.apply("mul", smaller, ratio))
    scale = f.apply("true_div", f.number(1, part), below)
    x, y = f.apply("mul", a, ratio), f.apply("mul", b, ratio)
    reals = choose(by_real, f.apply("add", a, y), f.apply("add", x, b))
    others = choose(by_real, f.apply("sub", b, x), f.apply("sub", y, a))
    zero = f.number(0, part)
    by_zero = f.apply("and_", test("eq", c, zero), test("eq", d, zero))
    return tuple(
        choose(by_zero, f.apply("true_div", v, size), f.apply("mul", w, scale))
        for v, w in ((a, reals), (b, others))
    )


def _reciprocal(f: _Parts, given: Sequence[Any], dtype: str) -> Any:
    part = COMPLEX[dtype]
    return _div(f, [(f.number(1, part), f.number(0, part)), given[0]], dtype)


def _conj(f: _Parts, given: Sequence[Any], dtype: str) -> Any:
    x, y = f.complex(given[0], dtype)
    return x, f.apply("neg", y)


def _real(f: _Parts, given: Sequence[Any], dtype: str) -> Any:
    return given[0][0]


def _imag(f: _Parts, given: Sequence[Any], dtype: str) -> Any:
    return given[0][1]


def _complex(f: _Parts, given: Sequence[Any], dtype: str) -> Any:
    x, y = (f._cast(v, COMPLEX[dtype]) for v in given)
    return f.apply("second", y, x), f.apply("second", x, y)


def _cast(f: _Parts, given: Sequence[Any], dtype: str) -> Any:
    if dtype in COMPLEX:
        return f.complex(given[0], dtype)
    return None if dtype == "bool" else f._cast(given[0][0], dtype)


def _second(f: _Parts, given: Sequence[Any], dtype: str) -> Any:
    x = given[0][0] if _is_pair(given[0]) else given[0]
    if not _is_pair(given[1]):
        return f.apply("second", x, given[1], dtype=dtype)
    return tuple(f.apply("second", x, y, dtype=COMPLEX[dtype]) for y in f.complex(given[1], dtype))


def _switch(f: _Parts, given: Sequence[Any], dtype: str) -> Any:
    which, *others = given
    if _is_pair(which) or dtype not in COMPLEX:
        return None
    pairs = [f.complex(v, dtype) for v in others]
    return tuple(
        f.apply("switch", which, x, y, dtype=COMPLEX[dtype]) for x, y in zip(*pairs, strict=True)
    )


def _abs(f: _Parts, given: Sequence[Any], dtype: str) -> Any:
    return f.apply("hypot", *given[0])


def _angle(f: _Parts, given: Sequence[Any], dtype: str) -> Any:
    x, y = given[0]
    return f.apply("arctan2", y, x)


_OF_COMPLEX: dict[str, Rule] = {
    "identity": _each("identity"), "neg": _each("neg"), "sub": _each("sub"), "add": _add,
    "mul": _mul, "sqr": _sqr, "true_div": _div, "reciprocal": _reciprocal, "conj": _conj,
    "real": _real, "imag": _imag, "complex": _complex, "cast": _cast, "second": _second,
    "switch": _switch, "abs": _abs, "angle": _angle, "pow": powers(_mul, _reciprocal), **OF_COMPLEX,
}  # fmt: skip
