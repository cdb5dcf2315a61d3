"""Patterns of functions of floats, matched however their sums and products are written.

A pattern is read as the graph is (``views.py``): as a number and terms with coefficients, or as
factors with exponents. ``exp(x) - 1`` is found in ``-1 + exp(x)`` and, with the multiple 3, in
``3 * exp(x) - 3``. Numbers are compared exactly, as a replacement must not round anew.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from symcomp.core import dtype as dtypes
from symcomp.rewrite.matching import (
    COMMUTATIVE,
    Anything,
    Application,
    Bound,
    NumberPattern,
    Pattern,
)
from symcomp.rewrite.rule import elementwise
from symcomp.rewrite.views import (
    PRODUCTS,
    SUMS,
    Product,
    Sum,
    as_product,
    as_sum,
    call,
    exponent,
    is_power_of_two,
    scaled,
    square_root,
    sum_of,
)

# Functions that are found in other expressions, too, and the functions that end these.
SEEN_THROUGH = {
    "exp": ("exp", "power_of_log", "pow", "reciprocal", "true_div", "mul", "neg", "identity"),
    "sqr": ("sqr", "pow", "mul", "identity"),
}


class Matcher:
    """A pattern that is ready to match values."""

    def matches(self, x: Any, bound: Bound) -> Iterator[Bound]:
        """Yield each match of ``x``: the values of the variables, those in ``bound`` included."""
        raise NotImplementedError


def matcher(pattern: Pattern) -> Matcher:
    """Return the matcher of a pattern."""
    if isinstance(pattern, NumberPattern | Anything):
        return ValueMatcher(pattern)
    if not isinstance(pattern, Application) or not isinstance(pattern.kind, str):
        raise TypeError(f"{pattern} is not a function of floats: use pattern_rule")
    if pattern.kind in SUMS or pattern.kind == "mul" and _coefficient(pattern) is not None:
        return SumMatcher(pattern)
    if pattern.kind in ("mul", "true_div", "reciprocal"):
        return ProductMatcher(pattern)
    return FunctionMatcher(pattern)


class ValueMatcher(Matcher):
    """A number, or a variable: anything, and the same value where it is bound."""

    def __init__(self, pattern: NumberPattern | Anything) -> None:
        self.pattern = pattern

    def matches(self, x: Any, bound: Bound) -> Iterator[Bound]:
        name = getattr(self.pattern, "name", None)
        if name is None or name not in bound:
            yield from self.pattern.matches(x, bound)
        elif is_zero(as_sum(x).plus(as_sum(bound[name]).times(-1))):
            yield bound


class FunctionMatcher(Matcher):
    """A scalar function of patterns; exponentials and squares may be written in other ways."""

    def __init__(self, pattern: Application) -> None:
        self.name = str(pattern.kind)
        # Single values are matched before sums, whose variables are built.
        found = [(i, matcher(p)) for i, p in enumerate(pattern.args)]
        self.arguments = sorted(found, key=lambda pair: not isinstance(pair[1], ValueMatcher))

    def matches(self, x: Any, bound: Bound) -> Iterator[Bound]:
        for inputs in self._inputs(x):
            yield from _in_turn(self.arguments, inputs, bound)

    def _inputs(self, x: Any) -> Iterator[Sequence[Any]]:
        if self.name in SEEN_THROUGH:
            y = exponent(x) if self.name == "exp" else square_root(x)
            yield from () if y is None else ((y,),)
            return
        node = elementwise(x, self.name)
        if node is not None:
            yield node.inputs
            if self.name in COMMUTATIVE:
                yield node.inputs[::-1]


def _in_turn(
    matchers: Sequence[tuple[int, Matcher]], xs: Sequence[Any], bound: Bound
) -> Iterator[Bound]:
    """Yield each match of inputs with the matchers of their positions."""
    if not matchers:
        yield bound
        return
    (i, first), *rest = matchers
    for found in first.matches(xs[i], bound):
        yield from _in_turn(rest, xs, found)


def needs(found: Matcher) -> list[frozenset[str]]:
    """Return sets of functions, one of which is in the view (``present_in_view``) wherever there is
    a match.
    """
    parts: list[Matcher] = []
    if isinstance(found, SumMatcher):
        parts = [term for term, _ in found.terms]
    elif isinstance(found, ProductMatcher):
        parts = [factor for factor, _ in found.factors]
    names = {part.name for part in parts if isinstance(part, FunctionMatcher)}
    plain, others = names - SEEN_THROUGH.keys(), sorted(names & SEEN_THROUGH.keys())
    ways = SEEN_THROUGH[others[0]] if others else ()
    return [frozenset(plain | {way}) for way in ways] or [frozenset(plain)]


# -- sums


def _coefficient(product: Application) -> tuple[float, Pattern] | None:
    """Return (c, p) for the pattern ``c * p`` with a number c, else None."""
    for a, b in (product.args, product.args[::-1]):
        if isinstance(a, NumberPattern):
            return a.value, b
    return None


def _addends(pattern: Pattern) -> Iterator[tuple[float, Pattern]]:
    """Yield the coefficients and terms of a sum."""
    if isinstance(pattern, Application) and pattern.kind in SUMS:
        last = 1.0 if pattern.kind == "add" else -1.0
        signs = [1.0] * (len(pattern.args) - 1) + [last]
        for sign, p in zip(signs, pattern.args, strict=True):
            yield from ((sign * c, term) for c, term in _addends(p))
    elif (
        isinstance(pattern, Application)
        and pattern.kind == "mul"
        and (found := _coefficient(pattern))
    ):
        yield from ((found[0] * c, term) for c, term in _addends(found[1]))
    else:
        yield 1.0, pattern


class SumMatcher(Matcher):
    """A sum. A variable that is not bound stands for the terms left over; in a pattern with a
    number it stands for no number.
    """

    def __init__(self, pattern: Pattern) -> None:
        self.constant = 0.0
        self.terms: list[tuple[Matcher, float]] = []
        self.variables: list[tuple[Anything, float]] = []
        for c, p in _addends(pattern):
            if isinstance(p, NumberPattern):
                self.constant += c * p.value
            elif isinstance(p, Anything):
                self.variables.append((p, c))
            else:
                self.terms.append((matcher(p), c))

    def matches(self, x: Any, bound: Bound) -> Iterator[Bound]:
        yield from (found for found, _ in self.multiples(x, bound, 1.0))

    def multiples(
        self, x: Any, bound: Bound, multiple: float | None = None
    ) -> Iterator[tuple[Bound, float]]:
        """Yield each match of a multiple of the sum, and the multiple, which may be given."""
        total = as_sum(x)
        more = len(total.terms) - len(self.terms)
        if self.variables:
            fits = more >= 0
        else:
            fits = more == 0 and bool(total.constant) == bool(self.constant)
        if fits:
            yield from self._with_term(0, total, x, bound, multiple)

    def _with_term(
        self, i: int, left: Sum, x: Any, bound: Bound, multiple: float | None
    ) -> Iterator[tuple[Bound, float]]:
        """Match the terms from the i-th on with terms that are left of x."""
        if i == len(self.terms):
            yield from self._with_variables(left, x, bound, 1.0 if multiple is None else multiple)
            return
        term, c = self.terms[i]
        for t, k in left.pairs():
            if multiple is not None and k != c * multiple:
                continue
            rest = Sum(left.constant, {u: n for u, n in left.terms.items() if u is not t})
            for found in term.matches(t, bound):
                yield from self._with_term(i + 1, rest, x, found, k / c)

    def _with_variables(
        self, left: Sum, x: Any, bound: Bound, multiple: float
    ) -> Iterator[tuple[Bound, float]]:
        left = Sum(left.constant - multiple * self.constant, left.terms)
        free = [(v, c) for v, c in self.variables if v.name not in bound]
        for v, c in self.variables:
            if v.name in bound:
                left = left.plus(as_sum(bound[v.name]).times(-multiple * c))
        if not free:
            if is_zero(left):
                yield bound, multiple
            return
        (variable, c), *more = free
        factor = multiple * c
        if more or not left.terms or (self.constant and left.constant):
            return
        if is_power_of_two(factor):
            pairs = [(t, k / factor) for t, k in left.pairs()]
            value = sum_of(left.constant / factor, pairs, x)
            yield from ((found, multiple) for found in variable.matches(value, bound))


def builds(found: Matcher) -> bool:
    """Tell whether a match may build the value of a variable, a sum or a multiple."""
    if isinstance(found, FunctionMatcher):
        return any(builds(p) for _, p in found.arguments)
    return not isinstance(found, ValueMatcher)


def is_zero(total: Sum) -> bool:
    """Tell whether a sum has no terms left."""
    return not total.terms and total.constant == 0


# -- products


def _multiplicands(pattern: Pattern) -> Iterator[tuple[float, Pattern]]:
    """Yield the exponents and factors of a product."""
    kind = pattern.kind if isinstance(pattern, Application) else None
    if kind in ("mul", "true_div", "reciprocal"):
        assert isinstance(pattern, Application)
        last = 1.0 if kind == "mul" else -1.0
        signs = [1.0] * (len(pattern.args) - 1) + [last]
        for sign, p in zip(signs, pattern.args, strict=True):
            yield from ((sign * e, factor) for e, factor in _multiplicands(p))
    elif isinstance(pattern, Application) and kind == "sqr":
        yield from ((2 * e, factor) for e, factor in _multiplicands(pattern.args[0]))
    else:
        yield 1.0, pattern


class ProductMatcher(Matcher):
    """A product, whose variables other factors of it bind. Sums in it may be multiples.

    With ``of_powers``, factors may have higher powers, of which a part remains: ``sinh(x) /
    cosh(x)`` is found in ``sinh(x) / cosh(x)**3``.
    """

    of_powers = False

    def __init__(self, pattern: Pattern) -> None:
        self.factors: list[tuple[Matcher, float]] = []
        self.variables: list[tuple[str, float]] = []
        for e, p in _multiplicands(pattern):
            if isinstance(p, Anything):
                self.variables.append((p.name, e))
            elif p != NumberPattern(1):
                self.factors.append((matcher(p), e))
        # A pattern that builds the value of a variable comes after the others, which find it.
        self.factors.sort(key=lambda pair: builds(pair[0]))
        exponents = [e for _, e in (*self.factors, *self.variables)]
        self.exponents = {e: exponents.count(e) for e in exponents}

    def matches(self, x: Any, bound: Bound) -> Iterator[Bound]:
        for found, rest in self.parts(as_product(x), bound):
            if rest.coefficient == 1 and not rest.factors:
                yield found

    def parts(self, product: Product, bound: Bound) -> Iterator[tuple[Bound, Product]]:
        """Yield each match of factors of a product, and the other factors."""
        present = list(product.factors.values())
        if self.of_powers or all(present.count(e) >= n for e, n in self.exponents.items()):
            yield from self._with_factor(0, product, bound)

    def _with_factor(
        self, i: int, left: Product, bound: Bound
    ) -> Iterator[tuple[Bound, Product]]:
        if i == len(self.factors):
            values = [(bound[name], e) for name, e in self.variables]
            if all(left.factors.get(v) == e for v, e in values):
                yield bound, left.without(*(v for v, _ in values))
            return
        factor, e = self.factors[i]
        for v, k in left.factors.items():
            more = k - e
            if more and not (self.of_powers and more * e > 0 and float(more).is_integer()):
                continue
            rest = left.without(v)
            if more:
                rest.factors[v] = more
            if isinstance(factor, SumMatcher):
                for found, c in factor.multiples(v, bound):
                    scale = Product(rest.coefficient * c**e, rest.factors)
                    yield from self._with_factor(i + 1, scale, found)
            else:
                for found in factor.matches(v, bound):
                    yield from self._with_factor(i + 1, rest, found)


# -- replacements


def built(pattern: Pattern, bound: Mapping[str, Any]) -> Any:
    """Build an expression, with signs and numbers that meet in a product combined."""
    if isinstance(pattern, Application) and isinstance(pattern.kind, str):
        if pattern.kind == "neg":
            return scaled(-1, built(pattern.args[0], bound))
        found = _coefficient(pattern) if pattern.kind == "mul" else None
        if found is not None:
            return scaled(found[0], built(found[1], bound))
        return call(pattern.kind, *(built(p, bound) for p in pattern.args))
    return pattern.build(bound)


def replaced(pattern: Matcher, x: Any) -> Iterator[tuple[Bound, Any]]:
    """Yield each match of x, and the function that takes its replacement to that of x."""
    if not dtypes.is_float(x.dtype):
        return
    if isinstance(pattern, SumMatcher):
        for bound, multiple in pattern.multiples(x, {}):
            yield bound, lambda new, c=multiple: scaled(c, new)
    elif isinstance(pattern, ProductMatcher):
        for bound, rest in pattern.parts(as_product(x), {}):
            yield bound, rest.times
    else:
        for bound in pattern.matches(x, {}):
            yield bound, lambda new: new


def kinds_of(pattern: Application) -> tuple[str, ...]:
    """Return the functions at which an expression that matches may end."""
    found = matcher(pattern)
    if isinstance(found, SumMatcher):
        return SUMS
    return PRODUCTS if isinstance(found, ProductMatcher) else (str(pattern.kind),)
