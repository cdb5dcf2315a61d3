"""Differences of nearly equal rational functions over one denominator: 1/x - 1/(x + 1) ..."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from symcomp.core import dtype as dtypes
from symcomp.core.node import Apply, Variable
from symcomp.rewrite.rule import RuleSet, elementwise, rule
from symcomp.rewrite.views import (
    DEEPEST,
    Product,
    Sum,
    as_product,
    as_sum,
    call,
    is_power_of_two,
    number,
    powered,
    product_of,
    scaled,
    sum_of,
)

# A polynomial: coefficients of monomials, which are sets of (variable, exponent).
Monomial = frozenset[tuple[Any, float]]
Polynomial = dict[Monomial, float]
ONE: Monomial = frozenset()
# Longer polynomials are not changed.
MOST_MONOMIALS = 16
HIGHEST_POWER = 4
# Products and sums of whole coefficients below this are exact.
LARGEST_COEFFICIENT = 2.0**24


class Fraction:
    """One term of a sum: a polynomial over factors with whole exponents."""

    def __init__(self, coefficient: float, product: Product) -> None:
        self.coefficient = coefficient * product.coefficient
        self.above, self.below = Counter[Any](), Counter[Any]()
        # Numbers broadcast to a shape: they stay factors of the result, to keep the length checks.
        self.fills: list[Any] = []
        for f, e in product.factors.items():
            filled = elementwise(f, "second")
            if filled is not None and number(filled.inputs[1]):
                self.coefficient *= (number(filled.inputs[1]) or 1.0) ** e
                self.fills.append(filled.inputs[0])
            elif elementwise(f, "parallel") is not None:
                x, y = f.owner.inputs
                n = int(e)
                self._multiply({x: n, y: n, x + y: -n})
            elif e < 0 and (parts := factored(f)) is not None:
                common, rest = parts
                self._multiply({g: int(k * e) for g, k in common.items()} | {rest: int(e)})
            elif elementwise(f, "own_ratio") is None:  # views drop cancelled factors
                self._multiply({f: int(e)})

    def _multiply(self, factors: dict[Any, int]) -> None:
        for f, e in factors.items():
            (self.above if e > 0 else self.below)[f] += abs(e)


def factored(x: Any) -> tuple[dict[Any, float], Any] | None:
    """Return the factors that all terms of a sum have, with whole powers, and the sum without
    them; None if there are none.
    """
    s = as_sum(x) if elementwise(x, "add", "sub") is not None else None
    if s is None or s.constant or len(s.terms) < 2:
        return None
    terms = [(as_product(t), c) for t, c in s.pairs()]
    least = {g: min(p.factors.get(g, 0.0) for p, _ in terms) for g in terms[0][0].factors}
    common = {g: k for g, k in least.items() if k > 0 and float(k).is_integer()}
    if not common:
        return None
    constant, left = 0.0, []
    for p, c in terms:
        powers = {g: k - common.get(g, 0.0) for g, k in p.factors.items()}
        part = product_of(Product(p.coefficient, {g: k for g, k in powers.items() if k}))
        if isinstance(part, Variable):
            left.append((part, c))
        else:
            constant += c * part
    return common, sum_of(constant, left, x)


@rule("add", "sub", why="over one denominator equal terms cancel exactly, without rounding")
def rational_difference(node: Apply, graph: Any) -> Any:
    """1/x - 1/(x + 1) -> 1 / (x (x + 1));   1 - x/(1 + x) -> 1 / (1 + x);
    x/(x + y) - y/(x + y) -> (x - y) / (x + y);   1/x - 1/y -> (y - x) / (x y);
    x/y - 1 -> (x - y) / y;   x/y - y/x -> known_difference(x/y, y/x, (x - y) (x + y) / (x y));
    the sum as written where the quotient is NaN, as for infinite x
    """
    out = node.outputs[0]
    if not any(map(_divides, node.inputs)) or not dtypes.is_float(out.dtype):
        return None
    fractions = _fractions(as_sum(out))
    if fractions is None:
        return None
    below = Counter[Any]()
    for fraction in fractions:
        below |= fraction.below
    total: Polynomial = {}
    apart = 0.0
    for fraction in fractions:
        expanded = _expanded(fraction, below)
        if expanded is None:
            return None
        apart += sum(map(abs, expanded.values()))
        for monomial, c in expanded.items():
            total[monomial] = total.get(monomial, 0.0) + c
    total = {monomial: c for monomial, c in total.items() if c}
    left = sum(map(abs, total.values()))
    common, total = without_common(total)
    sides = _squared_sides(total)
    for factor in below if left < apart else ():
        if (ratio := _ratio(total, polynomial(factor))) is not None:
            below[factor] -= 1
            total = {ONE: ratio}
            break
    if sides is not None and len(fractions) == 2:
        c, x, y = sides
        gap = as_sum(x).plus(as_sum(y).times(-1))
        above = scaled(c, (x - y if gap.terms else gap.constant) * (x + y))
    elif not total or not _is_better(total, left < apart, fractions):
        return None
    else:
        above = sum_of(total.pop(ONE, 0.0), [term(m, c) for m, c in total.items()], out)
    found = _over(above, common, below)
    fills = {f for fraction in fractions for f in fraction.fills}
    for model in fills if isinstance(found, Variable) else ():
        found = found * call("second", model, np.ones((1,) * model.ndim, out.dtype))
    return _with_sides(out, found, fractions, sides is not None or max(below.values()) > 1)


def _with_sides(out: Any, found: Any, fractions: list[Fraction], by_terms: bool) -> Any:
    """Return a sum that is known as a quotient: as written where that is NaN or infinite, if its
    terms are simple or have stretched powers; of two terms, perhaps differentiated term by term.
    """
    if not isinstance(found, Variable):
        return found
    s = as_sum(out)
    (one, c), *others = s.pairs()
    sides = scaled(c, one), sum_of(-s.constant, [(t, -k) for t, k in others], out)
    aside = _are_simple(fractions) or _are_stretched(fractions)
    if aside and any(e > 0 for e in as_product(found).factors.values()):
        found = call("defined_difference", *sides, found)
    by_terms = len(fractions) == 2 and (by_terms or _are_apart(*fractions))
    return call("known_difference", *sides, found) if by_terms else found


def _are_simple(fractions: list[Fraction]) -> bool:
    """Tell whether each fraction has at most one factor and one divisor, and whether these are no
    different powers of one, as in the derivative of a quotient.
    """
    if any(max(len(f.above), len(f.below), 2 * len(f.fills)) > 1 for f in fractions):
        return False
    powers = {power for f in fractions for power in f.below.items()}
    return len(powers) == len(dict(powers))


def _are_stretched(fractions: list[Fraction]) -> bool:
    """Tell whether there are higher powers below, and some factors are stretched, so that products
    of all are not kept in range.
    """
    factors = [g for f in fractions for g in (*f.above, *f.below)]
    powers = max(k for f in fractions for k in (*f.below.values(), 0))
    return powers > 1 and len({g.type.broadcastable for g in factors}) > 1


def _are_apart(one: Fraction, other: Fraction) -> bool:
    """Tell whether two fractions share no variable, so that their derivatives do not cancel."""
    parts: list[set[Any]] = []
    for fraction in (one, other):
        polynomials = [polynomial(f) or {} for f in (*fraction.above, *fraction.below)]
        parts.append({x for p in polynomials for monomial in p for x, _ in monomial})
    return all(parts) and not parts[0] & parts[1]


def _divides(x: Any) -> bool:
    """Tell whether ``x`` is a quotient, or a multiple of one, as deep as products are read."""
    for _ in range(DEEPEST):
        node = elementwise(x, "neg", "mul", "add", "sub")
        if node is None:
            break
        if node.op.scalar.name in ("add", "sub"):
            return any(map(_is_quotient, node.inputs))
        if any(map(_is_quotient, node.inputs)):
            return True
        x = node.inputs[0]
    return _is_quotient(x)


def _is_quotient(x: Any) -> bool:
    """Tell whether ``x`` is computed by a division, by something else than a number."""
    node = elementwise(x, "true_div", "reciprocal", "parallel", "defined_difference")
    if node is None:
        return False
    is_division = node.op.scalar.name in ("true_div", "reciprocal")
    return not is_division or number(node.inputs[-1]) is None


def _fractions(s: Sum) -> list[Fraction] | None:
    """Return the terms of a sum, if all are products of integer powers and some are quotients."""
    found = [Fraction(s.constant, Product(1.0, {}))] if s.constant else []
    for term, c in s.terms.items():
        p = as_product(term)
        if any(not float(e).is_integer() or abs(e) > HIGHEST_POWER for e in p.factors.values()):
            return None
        found.append(Fraction(c, p))
    if len(found) < 2 or len(found) > HIGHEST_POWER or not any(f.below for f in found):
        return None
    whole = (float(f.coefficient).is_integer() and f.coefficient for f in found)
    return found if all(whole) else None


def polynomial(x: Any) -> Polynomial | None:
    """Return ``x`` as a sum of monomials; None if a coefficient is not whole."""
    s = as_sum(x)
    result: Polynomial = {ONE: s.constant} if s.constant else {}
    for part, c in s.terms.items():
        for monomial, k in _monomials(part):
            result[monomial] = result.get(monomial, 0.0) + c * k
    whole = all(float(c).is_integer() and abs(c) < LARGEST_COEFFICIENT for c in result.values())
    return result if whole else None


def _monomials(x: Any) -> Iterator[tuple[Monomial, float]]:
    """Yield monomials and coefficients, whose sum is ``x``."""
    squares = elementwise(x, "square_difference")
    if squares is None:
        p = as_product(x)
        if any(not float(e).is_integer() or e < 0 for e in p.factors.values()):
            p = Product(1.0, {x: 1.0})
        yield frozenset(p.factors.items()), p.coefficient
        return
    for side, sign in zip(squares.inputs, (1.0, -1.0), strict=True):
        value = number(side)
        yield (frozenset([(side, 2.0)]), sign) if value is None else (ONE, sign * value**2)


def _expanded(fraction: Fraction, below: Counter[Any]) -> Polynomial | None:
    """Return the numerator of a fraction over a common denominator, multiplied out."""
    factors = (fraction.above + (below - fraction.below)).elements()
    return multiplied_out(fraction.coefficient, map(polynomial, factors))


def multiplied_out(c: float, factors: Iterable[Polynomial | None]) -> Polynomial | None:
    """Return c times the factors; None if that is too long, or a factor is no polynomial."""
    result: Polynomial = {ONE: c}
    for other in factors:
        if other is None or len(result) * len(other) > MOST_MONOMIALS:
            return None
        product: Polynomial = {}
        for m, c in result.items():
            for n, d in other.items():
                both = _multiplied(m, n)
                product[both] = product.get(both, 0.0) + c * d
        result = {m: c for m, c in product.items() if c}
    return result


def _multiplied(m: Monomial, n: Monomial) -> Monomial:
    exponents = dict(m)
    for x, e in n:
        exponents[x] = exponents.get(x, 0.0) + e
    return frozenset((x, e) for x, e in exponents.items() if e)


def _is_better(total: Polynomial, cancelled: bool, fractions: list[Fraction]) -> bool:
    """Tell whether terms cancelled and the remaining ones cannot, or two uncancelled numbers
    remain.
    """
    signs = {c > 0 for c in total.values()}
    if cancelled and len(signs) == 1 and len(total) <= 3:
        return True
    plain = all(sum(e for _, e in m) == 1 for m in total)
    sizes = {abs(c) for c in total.values()}
    return len(total) == len(fractions) == 2 and len(signs) == 2 and plain and len(sizes) == 1


def _squared_sides(total: Polynomial) -> tuple[float, Any, Any] | None:
    """Return (c, x, y) if the polynomial is c x^2 - c y^2."""
    if len(total) != 2:
        return None
    ((m, c), (n, d)) = total.items()
    squares = [next(iter(k)) for k in (m, n) if len(k) == 1]
    if c != -d or len(squares) != 2 or any(e != 2 for _, e in squares):
        return None
    (x, _), (y, _) = squares
    return (c, x, y) if c > 0 else (d, y, x)


def term(monomial: Monomial, c: float) -> tuple[Any, float]:
    return product_of(Product(1.0, dict(monomial))), c


def _ratio(total: Polynomial, factor: Polynomial | None) -> float | None:
    """Return c if the first polynomial is c times the second, which has two terms or more."""
    if factor is None or len(factor) < 2 or total.keys() != factor.keys():
        return None
    ratios = {c / factor[monomial] for monomial, c in total.items()}
    return ratios.pop() if len(ratios) == 1 else None


def without_common(total: Polynomial) -> tuple[Counter[Any], Polynomial]:
    """Return the factors that all terms have, and the polynomial without them."""
    common = Counter({x: int(e) for x, e in next(iter(total), ONE)})
    for monomial in total:
        common &= Counter({x: int(e) for x, e in monomial})
    inverse = frozenset((x, -float(e)) for x, e in common.items())
    return common, {_multiplied(m, inverse): c for m, c in total.items()}


def _over(above: Any, common: Counter[Any], below: Counter[Any]) -> Any:
    """Return ``above`` times the factors ``common``, over the product of the factors ``below``."""
    exponents = {f: float(common[f] - below[f]) for f in (*common, *below)}
    exponents = {f: e for f, e in exponents.items() if e}
    if not isinstance(above, Variable):
        return product_of(Product(float(above), exponents))
    p = as_product(above)
    for f, e in p.factors.items():
        exponents[f] = exponents.get(f, 0.0) + e if float(e).is_integer() else e
    return product_of(Product(p.coefficient, {f: e for f, e in exponents.items() if e}))


@rule(
    "mul", "true_div", "reciprocal", needs_in_view=["add", "sub"],
    why="the quotients in a sum may leave the range where the product does not",
)  # fmt: skip
def sum_of_quotients(node: Apply, graph: Any) -> Any:
    """1 / (x^2 (1 + 1/x^2)) -> 1 / (x^2 + 1);   1 / (y^2 (1/x + 1/y)^2) -> x^2 / (y + x)^2"""
    out = node.outputs[0]
    p = as_product(out)
    if len(p.factors) < 2 or not all(float(e).is_integer() for e in p.factors.values()):
        return None
    for f, e in p.factors.items():
        if elementwise(f, "add", "sub") is None or f.dtype != out.dtype:
            continue
        s = as_sum(f)
        divisors = {g for t in s.terms for g, k in as_product(t).factors.items() if k < 0}
        if not any(p.factors.get(g, 0.0) * e > 0 for g in divisors):
            continue
        fractions = _fractions(s)
        if fractions is None or any(fraction.fills for fraction in fractions):
            continue
        below = Counter[Any]()
        for fraction in fractions:
            below |= fraction.below
        total = _multiplied_by(fractions, below, f)
        factors = {**p.factors, total: e}
        del factors[f]
        for g, n in below.items():
            factors[g] = factors.get(g, 0.0) - n * e
        return product_of(Product(p.coefficient, {g: k for g, k in factors.items() if k}))
    return None


def _multiplied_by(fractions: list[Fraction], below: Counter[Any], like: Any) -> Any:
    """Return the sum of the fractions times their common denominator."""
    constant, terms = 0.0, []
    for fraction in fractions:
        factors = fraction.above + (below - fraction.below)
        if factors:
            product = Product(1.0, {g: float(n) for g, n in factors.items()})
            terms.append((product_of(product), fraction.coefficient))
        else:
            constant += fraction.coefficient
    return sum_of(constant, terms, like)


@rule(
    "true_div", needs_in_view=["add", "sub"],
    why="terms of a sum over their factors cancel, as in forward derivatives",
)  # fmt: skip
def cancelling_numerator(node: Apply, graph: Any) -> Any:
    """(y (x + 1) + y (x - 1)) / ((x + 1) (x - 1)) -> 2 y x / ((x + 1) (x - 1))"""
    out = node.outputs[0]
    p = as_product(out)
    if not dtypes.is_float(out.dtype):
        return None
    for f, e in p.factors.items():
        s = as_sum(f) if e == 1 and elementwise(f, "add", "sub") is not None else None
        if s is None or s.constant or len(s.terms) != 2:
            continue
        products = [(as_product(t), c) for t, c in s.pairs()]
        if not all(any(p.factors.get(g, 0.0) < 0 for g in q.factors) for q, _ in products):
            continue
        parts = [_numerator(q, c) for q, c in products]
        if parts[0] is None or parts[1] is None:
            continue
        both = [(m, parts[0].get(m, 0.0) + parts[1].get(m, 0.0)) for m in {**parts[0], **parts[1]}]
        left = [(m, c) for m, c in both if c]
        if len(left) == 1 and len(both) > 1 and left[0][0]:
            return p.without(f).times(scaled(left[0][1], term(*left[0])[0]))
    return None


def _numerator(p: Product, c: float) -> Polynomial | None:
    """Return c times a product of whole powers above 0, multiplied out; None for others."""
    if any(e < 0 or not float(e).is_integer() or e > HIGHEST_POWER for e in p.factors.values()):
        return None
    factors = [polynomial(g) for g, e in p.factors.items() for _ in range(int(e))]
    return multiplied_out(c * p.coefficient, factors)


@rule(
    "mul", "true_div", "reciprocal", needs_in_view=["add"],
    why="the sum of inverses cancels in part, and is 1 / 0 where the whole is 0",
)  # fmt: skip
def parallel(node: Apply, graph: Any) -> Any:
    """1 / (1/x + 1/y) -> parallel(x, y);   1 / (a + b/x) -> parallel(1/a, x / b) for powers of two
    """
    p = as_product(node.outputs[0])
    if node.outputs[0].dtype != "float64":
        return None
    for f, e in p.factors.items():
        if e > 0 or not float(e).is_integer() or elementwise(f, "add") is None:
            continue
        s = as_sum(f)
        sides = [_inverse(t, c) for t, c in s.pairs()]
        if s.constant:
            sides.append(1 / s.constant if is_power_of_two(s.constant) else None)
        if len(sides) == 2 and sides[0] is not None and sides[1] is not None:
            return p.without(f).times(powered(call("parallel", *sides), -e))
    return None


def _inverse(x: Any, c: float) -> Any:
    """Return y if c x = 1 / y, where c times the coefficient of x is a power of two; else None."""
    p = as_product(x)
    c *= p.coefficient
    if list(p.factors.values()) != [-1.0] or not is_power_of_two(c):
        return None
    (y,) = p.factors
    return scaled(1 / c, y)


RATIONAL_RULES = RuleSet([rational_difference, sum_of_quotients, cancelling_numerator, parallel])
