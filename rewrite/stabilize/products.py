"""Products and ratios that overflow, or are 0 / 0: logistic functions, softmax, sin(x) / x ..."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from symcomp.core import dtype as dtypes
from symcomp.core.dtype import limits
from symcomp.core.node import Apply
from symcomp.ops.elementwise.scalar_error import bell_over_erfc, normal_hazard
from symcomp.ops.elementwise.scalar_logic import switch
from symcomp.ops.nnet.softmax import Softmax, WeightedSoftmax
from symcomp.ops.reductions.reduce import Reduce
from symcomp.rewrite.pattern import Match, f, variables, view_rule
from symcomp.rewrite.rule import RuleSet, computed_by, elementwise, rule
from symcomp.rewrite.stabilize.gamma import difference, is_step, size
from symcomp.rewrite.stabilize.logarithms import split_exponentials, stretched
from symcomp.rewrite.views import (
    PRODUCTS,
    Product,
    Sum,
    argument,
    as_product,
    as_sum,
    call,
    exponent,
    is_power_of_two,
    number,
    powered,
    product_of,
    puts_back,
    rearranged,
    same,
    scaled,
    square_root,
    sum_of,
    through_views,
)

x, y = variables("x y")


tanh = view_rule(
    "tanh",
    [
        (f.sinh(x) / f.cosh(x), f.tanh(x)),
        (f.cosh(x) / f.sinh(x), 1 / f.tanh(x)),
        (f.expm1(x) / (1 + f.exp(x)), f.tanh(0.5 * x)),
    ],
    why="the ratio is the hyperbolic tangent, which overflows nowhere",
    of_powers=True,
)


exp_over_expm1 = view_rule(
    "exp_over_expm1",
    [(f.exp(x) / f.expm1(x), -1 / f.expm1(-x)),
     (1 / (f.expm1(x) * f.expm1(-x)), -(0.25 / f.sqr(f.sinh(0.5 * x))))],
    of_powers=True,
    why="both overflow where their ratio is 1, and the derivative of their inverse is 0",
)  # fmt: skip


@rule(*PRODUCTS, why="exp overflows where the logistic function is 1")
def sigmoid(node: Apply, graph: Any) -> Any:
    """1 / (c + c exp(x)) -> sigmoid(-x) / c;   exp(x) / (c + c exp(x)) -> sigmoid(x) / c"""
    p = as_product(node.outputs[0])
    for below, e in p.factors.items():
        c, x = _one_plus_exp(below) if e < 0 else (0.0, None)
        if x is None:
            continue
        rest = p.without(below)
        power = Product(rest.coefficient / c, {**rest.factors, below: e + 1})
        if e == -1:
            del power.factors[below]
        for above, k in p.factors.items():
            y = exponent(above) if k > 0 else None
            if y is not None and same(x, y):
                power.factors[above] = k - 1
                power.factors = {f: n for f, n in power.factors.items() if n}
                return power.times(call("sigmoid", x))
        return power.times(call("sigmoid", scaled(-1, x)))
    return None


def _one_plus_exp(x: Any) -> tuple[float, Any]:
    """Return (c, y) if ``x`` is c + c exp(y)."""
    s = as_sum(x)
    if s.single is not None and s.constant and s.constant == s.single[1]:
        return s.constant, exponent(s.single[0])
    return 0.0, None


@rule(*PRODUCTS, why="exp overflows; only differences to the largest matter")
def softmax(node: Apply, graph: Any) -> Any:
    """exp(x) / sum(exp(x)) -> softmax(x);   w exp(x) / sum(w exp(x)) -> weighted softmax"""
    p = as_product(node.outputs[0])
    for below in [factor for factor, e in p.factors.items() if e == -1]:
        total = _kept_sum(below)
        if total is None or total.inputs[0].type.ndim != node.outputs[0].ndim:
            continue
        inner = as_product(total.inputs[0])
        x, w = split_exponentials(inner)
        if x is None or inner.coefficient <= 0:
            continue
        left = dict(p.without(below).factors)
        for factor, e in inner.factors.items():
            left[factor] = left.get(factor, 0.0) - e
        if any(e < 0 and p.factors.get(factor, 0) >= 0 for factor, e in left.items()):
            continue
        others = {factor: e for factor, e in left.items() if e}
        rest = Product(p.coefficient / inner.coefficient, others)
        return rest.times(exponential_weights(x, w, total.op.axes))
    return None


def exponential_weights(x: Any, w: Product, axes: tuple[int, ...]) -> Any:
    """Return w exp(x) over its sum along axes."""
    if not w.factors and len(axes) == 1:
        return Softmax(axes[0])(x)
    ones = np.ones((1,) * x.ndim, x.dtype)
    weights = product_of(Product(1.0, w.factors)) if w.factors else call("second", x, ones)
    return WeightedSoftmax(axes)(*stretched(x, weights))


def _kept_sum(x: Any) -> Apply | None:
    """Return the sum that ``x`` is, with its axes put back at length 1."""
    inner, views = through_views(x)
    total = computed_by(inner, Reduce)
    if total is None or total.op.reduction.name != "sum" or total.op.acc_dtype:
        return None
    axes = total.op.axes
    return total if axes and puts_back(views, axes, total.inputs[0].type.ndim) else None


def _is_double(m: Match) -> bool:
    """Tell whether the function, which is computed in double, costs no conversions."""
    return bool(m.x.dtype == "float64")


sigmoid_slope = view_rule(
    "sigmoid_slope",
    [
        (f.sigmoid(x) * f.sigmoid(-x), f.sigmoid_slope(x)),
        (f.share(x, y) * f.share(y, x), f.share_slope(x, y)),
        (f.sigmoid_slope(x) / f.sigmoid(x), f.sigmoid(-x)),
        (f.sigmoid_slope(x) / f.sigmoid(-x), f.sigmoid(x)),
    ],
    where=_is_double,
    why="the derivative of the product has a factor tanh, which is exact near 0",
)


sech = view_rule(
    "sech",
    [(1 / f.cosh(x), f.sech(x)), (f.sinh(x) * f.sech(x), f.tanh(x))],
    where=_is_double,
    why="cosh overflows, and so does its derivative; their quotient is -tanh(x)",
)


exp_times_sigmoid = view_rule(
    "exp_times_sigmoid",
    [(f.exp(x) * f.sigmoid(-x), f.sigmoid(x)),
     (f.exp(x) * f.sigmoid(y), f.exp_times_sigmoid(x, y))],
    where=_is_double,
    why="the exponential may overflow where the logistic function underflows",
)  # fmt: skip


square_difference_over = view_rule(
    "square_difference_over",
    [(f.square_difference(x, y) / (x - y), x + y), (f.square_difference(x, y) / (x + y), x - y)],
    why="the factor cancels; the squares may leave the range",
)


@rule(*PRODUCTS, why="parts of the derivative cancel, which is 1 - 2 (y / (x + y))^2")
def squares_over_sum(node: Apply, graph: Any) -> Any:
    """(x^2 + y^2) / (x + y) -> squares_over_sum(x, y), also with 1 for y"""
    p = as_product(node.outputs[0])
    for squares, _ in p.found(1, "add"):
        s = as_sum(squares)
        bases = [square_root(t) for t in s.terms]
        if None in bases or len(bases) != 2 - s.constant or set(s.terms.values()) != {1.0}:
            continue
        for below, e in p.factors.items():
            t = as_sum(below)
            if e == -1 and t.terms == dict.fromkeys(bases, 1.0) and t.constant == s.constant:
                if all(v.dtype == "float64" for v in (*bases, below)):
                    found = call("squares_over_sum", *[*bases, 1.0][:2])
                    return p.without(squares, below).times(found)
    return None


half_tangent = view_rule(
    "half_tangent", x / (1 + f.hypot(x, 1)), f.half_tangent(x), where=_is_double,
    why="the derivative is a difference of nearly equal quotients where x is large",
)  # fmt: skip


xlogx = view_rule(
    "xlogx", [(x * f.log(x), f.xlogx(x)), ((1 + x) * f.log1p(x), f.xlogx1p(x))],
    why="x log(x) tends to 0 at 0",
)  # fmt: skip


@rule(
    *PRODUCTS, needs_in_view=["xlogx"],
    why="parts of the derivative, which are logarithms, cancel where x is most of the sum",
)  # fmt: skip
def xlogx_over_sum(node: Apply, graph: Any) -> Any:
    """x log(x) / (x + y) -> xlogx_over_sum(x, y)"""
    p = as_product(node.outputs[0])
    # Other factors may compensate for a quotient that leaves the range.
    for product, x in p.found(1, "xlogx") if len(p.factors) == 2 else ():
        for below, e in p.factors.items():
            s = as_sum(below) if e == -1 and elementwise(below, "add") is not None else None
            if s is not None and s.terms.get(x) == 1 and below.dtype == x.dtype == "float64":
                rest = s.plus(Sum(0.0, {x: -1.0}))
                y = sum_of(rest.constant, rest.pairs(), x)
                return p.without(product, below).times(call("xlogx_over_sum", x, y))
    return None


@rule(*PRODUCTS, why="gamma overflows at 171; ratios of it do not", needs_in_view=["gamma"])
def gamma_ratio(node: Apply, graph: Any) -> Any:
    """gamma(x) gamma(y) / gamma(x + y) -> beta(x, y);   gamma(x) / gamma(y) -> gamma_ratio(x, y);
    gamma(x + h) / gamma(x) -> poch(x, h)
    """
    p = as_product(node.outputs[0])
    above, below = p.found(1, "gamma"), p.found(-1, "gamma")
    squares = p.found(2, "gamma")
    for factor, x in below:
        pairs = [(a, b) for i, a in enumerate(above) for b in above[i + 1 :]]
        for (g, a), (h, b) in [*pairs, *((s, s) for s in squares)]:
            total = as_sum(a).plus(as_sum(b)).plus(as_sum(x).times(-1))
            if not total.terms and total.constant == 0:
                return p.without(factor, g, h).times(call("beta", a, b))
    if above and below:
        (factor, a), (g, b) = above[0], below[0]
        return p.without(factor, g).times(_gamma_ratio(a, b))
    return None


def _gamma_ratio(x: Any, y: Any) -> Any:
    """Return gamma(x) / gamma(y), where x = y + h or y = x + h without rounding the sum."""
    a, b = as_sum(x), as_sum(y)
    if not is_step(a, b):
        return call("gamma_ratio", x, y)
    if size(a) > size(b):
        return call("poch", y, difference(a, b, x))
    return call("inverse_poch", x, difference(b, a, x))


erfcx = view_rule(
    "erfcx",
    [
        (f.exp(f.sqr(x)) * f.erfc(x), f.erfcx(x)),
        (f.exp(f.sqr(x)) * f.erfc(-x), f.erfcx(-x)),
    ],
    why="exp(x^2) overflows where erfc underflows; their product is about 1 / x",
)


xerfcx = view_rule(
    "xerfcx", x * f.erfcx(x), f.xerfcx(x),
    why="the derivative is a difference of nearly equal numbers where x is large",
)  # fmt: skip


def _hazard(match: Match) -> Any:
    """sqrt(2 pi) normal_hazard(x)"""
    return math.sqrt(2 * math.pi) * normal_hazard(match.x)


def _bell_over_erfc(match: Match) -> Any:
    """bell_over_erfc(x)"""
    return bell_over_erfc(match.x)


def _bell_over_mirrored_erfc(match: Match) -> Any:
    """bell_over_erfc(-x)"""
    return bell_over_erfc(-match.x)


hazard = view_rule(
    "hazard",
    [
        (f.exp(-0.5 * f.sqr(x)) / f.ndtr(x), _hazard),
        (f.exp(-f.sqr(x)) / f.erfc(x), _bell_over_erfc),
        (f.exp(-f.sqr(x)) / f.erfc(-x), _bell_over_mirrored_erfc),
    ],
    why="both underflow where their quotient is about x",
)  # fmt: skip


@rule(
    *PRODUCTS, needs_in_view=["erfc"],
    why="the normal distribution has a function of its own, exact in x / sqrt(2)",
)  # fmt: skip
def normal_distribution(node: Apply, graph: Any) -> Any:
    """c erfc(-x / sqrt(2)) -> 2 c ndtr(x);   c / erfc(-x / sqrt(2)) -> c / (2 ndtr(x))"""
    p = as_product(node.outputs[0])
    for factor, y in (*p.found(1, "erfc"), *p.found(-1, "erfc")):
        q = as_product(y)
        eps = float(limits(y.dtype).eps)
        if math.isclose(abs(q.coefficient), math.sqrt(0.5), rel_tol=2 * eps) and q.factors:
            x = product_of(Product(-math.copysign(1, q.coefficient), q.factors))
            rest, e = p.without(factor), p.factors[factor]
            normal = {**rest.factors, call("ndtr", x): e}
            return product_of(Product(2**e * rest.coefficient, normal))
    return None


@rule(*PRODUCTS, why="each factor may over- or underflow where the product does not")
def product_of_exponentials(node: Apply, graph: Any) -> Any:
    """exp(x) exp(y) -> exp(x + y);   exp(x) / exp(y) -> exp(x - y), the sum not rounded"""
    p = as_product(node.outputs[0])
    found = [(f, _exponent_in_views(f), e) for f, e in p.factors.items()]
    exponents = [(f, y, e) for f, y, e in found if y is not None]
    if len(exponents) != 2 or any(abs(e) != 1 for _, _, e in exponents):
        return None
    (f, x, a), (g, y, b) = exponents
    return p.without(f, g).times(call("exp_of_sum", scaled(a, x), scaled(b, y)))


@rule(
    *PRODUCTS, needs_in_view=["pow"],
    why="each power may leave the range where the product does not, which rounds no exponent",
)  # fmt: skip
def product_of_powers(node: Apply, graph: Any) -> Any:
    """x^y x^z, x^y / x^z -> product_of_powers(x, y, z, 0, 0), with -z;
    x^y / x^(y + 1) -> product_of_powers(x, 0, -1, y, 0)
    """
    p, dtype = as_product(node.outputs[0]), node.outputs[0].dtype
    powers = [(z, *z.owner.inputs, e) for z, e in p.factors.items() if elementwise(z, "pow")]
    for i, (one, x, y, a) in enumerate(powers):
        for other, base, z, b in powers[i + 1 :]:
            if base is not x or abs(a) != 1 or abs(b) != 1:
                continue
            if x.dtype == y.dtype == z.dtype == dtype == "float64":
                exponents = _apart(as_sum(y).times(a), as_sum(z).times(b))
                parts = [sum_of(s.constant, s.pairs(), y) for s in exponents]
                found = call("product_of_powers", x, *parts, 0.0)
                return p.without(one, other).times(found)
    return None


def _apart(one: Sum, other: Sum) -> tuple[Sum, Sum, Sum]:
    """Return sums (y, z, w) with one = y + w and other = z - w, where y and z have no terms that
    cancel.
    """
    common = {}
    for t, c in one.terms.items():
        k = -other.terms.get(t, 0.0)
        if c * k > 0:
            common[t] = min(c, k, key=abs)
    w = Sum(0.0, common)
    return one.plus(w.times(-1)), other.plus(w), w


def _exponent_in_views(f: Any) -> Any:
    """Return y if ``f`` is exp(y), also where axes of it are rearranged; else None."""
    inner, views = through_views(f)
    y = argument(inner, "exp")
    return None if y is None else rearranged(y, views)


@rule(
    *PRODUCTS, "pow",
    why="an exponential overflows where its inverse does not, nor the derivative of the inverse",
)  # fmt: skip
def inverse_exponential(node: Apply, graph: Any) -> Any:
    """y / exp(x)^k -> y exp(-x)^k, exp(-k x) for powers of two k;   y / (b^x)^k -> y (b^-x)^k for a
    number b > 0
    """
    p = as_product(node.outputs[0])
    below = [f for f, e in p.factors.items() if e < 0]
    if len(below) != 1:
        return None
    (factor,) = below
    inner, views = through_views(factor)
    k = -p.factors[factor]
    whole = k if is_power_of_two(k) and elementwise(inner, "exp") else 1.0
    inverse = _inverse_of_exponential(inner, whole)
    if inverse is None:
        return None
    return p.without(factor).times(powered(rearranged(inverse, views), k / whole))


def _inverse_of_exponential(x: Any, k: float) -> Any:
    """Return exp(-k y) if ``x`` is exp(y), and c^(-k y) if it is c^y; else None."""
    node = elementwise(x, "exp", "pow")
    if node is None or any(v.dtype != x.dtype for v in node.inputs) or not dtypes.is_float(x.dtype):
        return None
    *base, y = node.inputs
    if base and (number(y) is not None or (number(base[0]) or 0.0) <= 0):
        return None
    return call(node.op.scalar.name, *base, scaled(-k, y))


@rule(
    *PRODUCTS, needs_in_view=["exp"],
    why="the exponential underflows where the other one overflows",
)  # fmt: skip
def exp_times_expm1(node: Apply, graph: Any) -> Any:
    """exp(x + y) expm1(x) -> -exp(2 x + y) expm1(-x) for positive x, by the sign of x;
    exp(x + y) (z expm1(x) + w) -> exp(x + y) z expm1(x) + exp(x + y) w
    """
    p = as_product(node.outputs[0])
    for exponential, y in p.found(1, "exp"):
        s = as_sum(y)
        if len(s.terms) < 2 or y.dtype != "float64":
            continue
        for factor, x in p.found(1, "expm1"):
            if s.terms.get(x) == 1:
                ahead = call("gt", x, 0)
                less, more = switch(ahead, -x, x), switch(ahead, x, 0.0)
                total = sum_of(s.constant, [*s.pairs(), (more, 1.0)], y)
                found = call("exp", total) * call("expm1", less)
                return p.without(factor, exponential).times(switch(ahead, -1.0, 1.0), found)
        for factor, _ in p.found(1, "add", "sub"):
            terms = as_sum(factor).pairs()
            arguments = [x for t, _ in terms for _, x in as_product(t).found(1, "expm1")]
            if any(s.terms.get(x) == 1 for x in arguments) and not as_sum(factor).constant:
                rest = p.without(factor)
                return sum_of(0.0, [(rest.times(t), c) for t, c in terms], factor)
    return None


times_sign = view_rule(
    "times_sign", x * f.sgn(x), f.abs(x),
    why="in sums over one denominator terms with the absolute value cancel",
)  # fmt: skip


@rule(
    "mul", "true_div", "neg", "cast", "add", "sub", needs_in_view=["guarded"],
    why="a value that is not chosen gives 0, not 0 * inf",
)  # fmt: skip
def guarded(node: Apply, graph: Any) -> Any:
    """guarded(c, x) y -> guarded(c, x y);  likewise for quotients, signs and casts;
    guarded(c, x) + guarded(c, y) -> guarded(c, x + y)
    """
    if node.op.scalar.name in ("add", "sub"):
        parts = [p.inputs for x in node.inputs if (p := elementwise(x, "guarded")) is not None]
        if len(parts) < len(node.inputs) or any(p[0] is not parts[0][0] for p in parts):
            return None
        return call("guarded", parts[0][0], node.op(*(p[1] for p in parts)))
    for i, x in enumerate(node.inputs[:1] if node.op.scalar.name == "true_div" else node.inputs):
        inner = elementwise(x, "guarded")
        if inner is not None:
            condition, chosen = inner.inputs
            operands = [chosen if j == i else y for j, y in enumerate(node.inputs)]
            return call("guarded", condition, node.op(*operands))
    return None


PRODUCT_RULES = RuleSet(
    [
        tanh, exp_over_expm1, sigmoid, sigmoid_slope, sech, softmax, square_difference_over,
        squares_over_sum, half_tangent, xlogx, xlogx_over_sum,
        gamma_ratio, erfcx, xerfcx, normal_distribution, hazard, times_sign, guarded,
        product_of_exponentials, product_of_powers, inverse_exponential, exp_times_sigmoid,
        exp_times_expm1,
    ]
)  # fmt: skip
