"""Logarithms of numbers near 1, of products that leave the range, of sums of exponentials."""

from __future__ import annotations

import math
from typing import Any

from symcomp.core import dtype as dtypes
from symcomp.core.node import Apply
from symcomp.ops.elementwise.elemwise import ROWS, Elemwise
from symcomp.ops.elementwise.scalar_logic import switch
from symcomp.ops.elementwise.scalar_math import cast
from symcomp.ops.indexing.index import Subtensor
from symcomp.ops.nnet.softmax import LogMeanExp, LogSoftmax, LogSumExp, Softmax, WeightedLogSumExp
from symcomp.ops.reductions.reduce import Reduce
from symcomp.ops.reductions.stable_reduce import LogProd
from symcomp.ops.shapes.shape import Reshape
from symcomp.rewrite.pattern import f, pattern_rule, variables, view_rule
from symcomp.rewrite.rule import RuleSet, computed_by, elementwise, rule
from symcomp.rewrite.shapes import Shapes, shapes_of
from symcomp.rewrite.stabilize.sums import is_inverse_count
from symcomp.rewrite.views import (
    LONGEST,
    Product,
    Sum,
    argument,
    as_product,
    as_sum,
    call,
    exponent,
    number,
    product_of,
    puts_back,
    rearranged,
    scaled,
    sum_of,
    through_views,
)

# log f(x) by a function of its own, where f is positive.
LOGARITHM_OF = {
    "sigmoid": "log_sigmoid",
    "erfc": "log_erfc",
    "ndtr": "log_ndtr",
    "cosh": "logcosh",
    "expm1": "logexpm1",
}
# log|f(x)|, whatever the sign of f.
LOGARITHM_OF_SIZE = {
    "gamma": "gammaln",
    "gamma_ratio": "log_gamma_ratio",
    "poch": "log_poch",
    "beta": "betaln",
}
# log(1 - f(x))
LOG_OF_COMPLEMENT = {"exp": "log1mexp", "erf": "log_erfc"}

x, y = variables("x y", dtype="float")


def _adds_exponentials(x: Any) -> bool:
    """Tell whether ``x`` is a sum of exponentials, of which log_of_sum does not overflow."""
    s = as_sum(x)
    return len(s.terms) > 1 and all(c > 0 and exponent(t) is not None for t, c in s.pairs())


log1p = view_rule(
    "log1p", f.log(1 + x), f.log1p(x), where=lambda m: not _adds_exponentials(m.x),
    why="1 + x rounds the digits of x away",
)  # fmt: skip


@rule("log1p", why="each has a function of its own, which does not overflow")
def log1p_of(node: Apply, graph: Any) -> Any:
    """log1p(exp x) -> softplus(x);  log1p(-exp x) -> log1mexp(x);  log1p(-erf x) -> log_erfc(x);
    log1p(-sigmoid x) -> log_sigmoid(-x);  log1p(expm1 x) -> x;
    log1p(sum(exp x)) -> softplus(logsumexp x)
    """
    s = as_sum(node.inputs[0])
    if s.single is None or s.constant or abs(s.single[1]) != 1:
        return None
    term, c = s.single
    x = exponent(term)
    if x is not None:
        return call("softplus" if c > 0 else "log1mexp", x)
    total, views = through_views(term)
    reduced = computed_by(total, Reduce)
    if c > 0 and reduced is not None and reduced.op.reduction.name == "sum":
        found = log_sum_exp(reduced)
        return None if found is None else call("softplus", rearranged(found, views))
    if (x := argument(term, "erf")) is not None:
        return call("log_erfc", scaled(-c, x))
    if (x := argument(term, "sigmoid")) is not None and c < 0:
        return call("log_sigmoid", scaled(-1, x))
    x = argument(term, "expm1")
    return x if c > 0 else None


@rule("log", why="each part of the product may over- or underflow, or be near 1")
def log_of_product(node: Apply, graph: Any) -> Any:
    """log of a product -> sum of the logarithms of its parts, where these have stable forms;
    log(x y) -> log_mul(x, y);  log(x / y) -> log_div(x, y);
    log((x + y) / x) -> log1p_ratio(y, x), for one term or number y, also inverse;
    log(x^n) -> n log(x) or n log|x|;
    log(x^n / y^n) -> n log_div(x, y), likewise of products, of |x| and |y| for even n
    """
    if not dtypes.is_float(node.outputs[0].dtype):
        return None
    p = as_product(node.inputs[0])
    if (both := _area_tangent(p)) is not None:
        return both
    if p.coefficient == 0 or not math.isfinite(p.coefficient):
        return None
    if p.coefficient == 0.5 and p.single is not None and elementwise(p.single, "erfc"):
        return call("log_half_erfc", argument(p.single, "erfc"))
    if (mean := _log_mean_exp(p, shapes_of(graph))) is not None:
        return mean
    known: list[tuple[Any, float]] = []
    others: dict[Any, float] = {}
    coefficient = p.coefficient
    for factor, e in p.factors.items():
        sign, found = log_of(factor, shapes_of(graph))
        if found is None or not float(e).is_integer() and sign < 0:
            others[factor] = e
        else:
            known.append((found, e))
            coefficient *= sign if e % 2 else 1
    rest = Product(coefficient, others)
    if not known:
        return _log_of_few(rest, node)
    if not others and coefficient > 0:
        constant = math.log(coefficient)
        return sum_of(constant, known, node.outputs[0])
    tail = _log_of_few(rest, node)
    if tail is None:
        inner = product_of(rest)
        tail = call("log", inner)
    return sum_of(0, [*known, (tail, 1.0)], node.outputs[0])


def log_of(x: Any, shapes: Shapes) -> tuple[int, Any]:
    """Return the sign of x and log|x| for an ``x`` of known sign whose logarithm has a stable form.
    """
    inner, views = through_views(x)
    node = inner.owner
    if node is None:
        return 1, None
    found: Any = None
    sign = 1
    arg = exponent(inner)
    if arg is not None:
        found = arg
    elif (f := elementwise(inner, *LOGARITHM_OF)) is not None and (f.op.scalar.name != "expm1"):
        found = call(LOGARITHM_OF[f.op.scalar.name], f.inputs[0])
    elif isinstance(node.op, Softmax):
        found = LogSoftmax(node.op.axis)(node.inputs[0])
    elif isinstance(node.op, Reduce) and node.op.reduction.name == "sum":
        found = log_sum_exp(node)
    elif isinstance(node.op, Subtensor | Reshape):
        sign, part = log_of(node.inputs[0], shapes)
        found = None if part is None else node.op(part, *node.inputs[1:])
    if found is None or found.dtype != x.dtype:
        return sign, None
    return sign, rearranged(found, views)


def log_sum_exp(node: Apply) -> Any:
    """Return the log of ``sum(exp x)`` or ``sum(w exp x)`` over axes, or None if the node is no
    such sum.
    """
    axes, p = node.op.axes, as_product(node.inputs[0])
    if node.op.acc_dtype or not axes or p.coefficient <= 0:
        return None
    x, w = split_exponentials(p)
    if x is None:
        return None
    if not w.factors:
        total = LogSumExp(axes)(x)
        return total if w.coefficient == 1 else total + math.log(w.coefficient)
    return WeightedLogSumExp(axes)(*stretched(x, product_of(w)))


def stretched(x: Any, weights: Any) -> tuple[Any, Any]:
    """Broadcast both to one shape."""
    if broadcast_axes(x) != broadcast_axes(weights):
        return call("second", weights, x), call("second", x, weights)
    return x, weights


def broadcast_axes(x: Any) -> list[bool]:
    """Return which axes of ``x`` are known to have length 1."""
    return [n == 1 for n in x.type.shape]


def _log_mean_exp(p: Product, shapes: Shapes) -> Any:
    """Return the log of mean(exp x), or None if the product is no such mean."""
    for factor, e in p.factors.items():
        inner, views = through_views(factor)
        total = computed_by(inner, Reduce)
        if e != 1 or total is None or total.op.reduction.name != "sum" or total.op.acc_dtype:
            continue
        x = exponent(total.inputs[0])
        if x is None or not total.op.axes or x.dtype != factor.dtype:
            continue
        if is_inverse_count(p.without(factor), x, total.op.axes, shapes):
            return rearranged(LogMeanExp(total.op.axes)(x), views)
    return None


def split_exponentials(p: Product) -> tuple[Any, Product]:
    """Return (x, rest) if the product is exp(x) times a rest; x is None without exponentials."""
    terms: list[tuple[Any, float]] = []
    rest: dict[Any, float] = {}
    for factor, e in p.factors.items():
        x = argument(factor, "exp")
        if x is None:
            rest[factor] = e
        else:
            terms.append((cast(x, factor.dtype), e))
    if not terms:
        return None, p
    return sum_of(0, terms, terms[0][0]), Product(p.coefficient, rest)


def _log_of_few(p: Product, node: Apply) -> Any:
    """Return the logarithm of a product of one or two factors with no stable forms of their own."""
    items = list(p.factors.items())
    if len(items) == 1 and p.coefficient == 1:
        (x, e), *_ = items
        return None if e == 1 else _log_of_power(x, e)
    if len(items) == 1 and p.coefficient > 0 and items[0][1] == 1:
        return call("log_mul", items[0][0], p.coefficient)
    if len(items) == 1 and p.coefficient > 0 and items[0][1] == -1:
        return call("log_div", p.coefficient, items[0][0])
    if (found := _log_of_many(p)) is not None:
        return found
    if len(items) != 2 or abs(p.coefficient) != 1:
        return None
    (x, a), (y, b) = items
    n = max(a, b)
    if n > 1 and float(n).is_integer() and abs(a) == abs(b) and p.coefficient == 1:
        sides = [call("abs", v) if n % 2 == 0 else v for v in (x, y)]
        once = _log_of_few(Product(1.0, dict(zip(sides, (a / n, b / n), strict=True))), node)
        return scaled(n, once)
    if {a, b} <= {1.0, -1.0} and (a > 0 or b > 0):
        if a < 0:
            x, y, a, b = y, x, b, a
        x = scaled(p.coefficient, x)
        if b > 0:
            return call("log_mul", x, y)
        near = _log_near_one(x, y)
        return call("log_div", x, y) if near is None else near
    return None


def _log_near_one(x: Any, y: Any) -> Any:
    """Return log(x / y) where x is y and one term or number more, or y is x and one more."""
    one, other = as_sum(x), as_sum(y)
    gap = one.plus(other.times(-1))
    if len(gap.terms) + bool(gap.constant) != 1 or not x.dtype == y.dtype == "float64":
        return None
    more = len(one.terms) + bool(one.constant) - len(other.terms) - bool(other.constant)
    if not (more or gap.constant):
        return None
    if more > 0 or not more and gap.constant > 0:
        return call("log1p_ratio", sum_of(gap.constant, gap.pairs(), x), y)
    return -call("log1p_ratio", sum_of(-gap.constant, gap.times(-1).pairs(), x), x)


def _log_of_many(p: Product) -> Any:
    """Return the logarithm of a product of three to LONGEST factors, counted with their exponents;
    None where the exponents have a common divisor, or are not whole.
    """
    powers = p.factors.values()
    if not all(float(e).is_integer() for e in powers) or not 3 <= sum(map(abs, powers)) <= LONGEST:
        return None
    kinds = {(x.dtype, x.type.broadcastable) for x in p.factors}
    if len(p.factors) < 2 or len(kinds) > 1 or math.gcd(*map(int, powers)) > 1:
        return None
    if kinds != {("float64", next(iter(kinds))[1])} or abs(p.coefficient) != 1:
        return None
    above, below = ([x for x, e in p.factors.items() for _ in range(max(0, int(s * e)))]
                    for s in (1, -1))  # fmt: skip
    if not above:
        return None
    above[0] = scaled(p.coefficient, above[0])
    return Elemwise(ROWS["log_scaled_product"](len(above), len(below)))(*above, *below)


def _log_of_power(x: Any, e: float) -> Any:
    """Return e log(x), of |x| where the power is of |x|."""
    return scaled(e, call("log", call("abs", x) if e % 2 == 0 else x))


def _area_tangent(p: Product) -> Any:
    """Rewrite log((1 + x) / (1 - x)) = 2 artanh(x)."""
    if len(p.factors) != 2 or abs(p.coefficient) != 1:
        return None
    (a, ea), (b, eb) = p.factors.items()
    if {ea, eb} != {1.0, -1.0}:
        return None
    above, below = as_sum(a if ea > 0 else b), as_sum(b if ea > 0 else a)
    if p.coefficient < 0:
        below = below.times(-1)
    total = above.plus(below)
    if total.terms or total.constant != 2 * above.constant or above.constant <= 0:
        return None
    c = above.constant
    x = sum_of(0, [(t, k / c) for t, k in above.pairs()], a)
    return scaled(2, call("arctanh", x))


@rule("log", why="exp overflows long before the logarithm of a sum does")
def log_of_sum(node: Apply, graph: Any) -> Any:
    """log(exp x + exp y) -> logaddexp(x, y), also of more, and with positive coefficients;
    log(exp x - exp y) -> logdiffexp(x, y)
    """
    s = as_sum(node.inputs[0])
    exponents: list[tuple[Any, float]] = []
    for term, c in s.pairs():
        inner, rest = split_exponentials(as_product(term))
        if inner is None or rest.factors:
            return None
        exponents.append((inner, c * rest.coefficient))
    if s.constant:
        exponents.append((0.0, s.constant))
    if len(exponents) < 2:
        return None
    shifted = [(x + math.log(abs(c)) if abs(c) != 1 else x, c) for x, c in exponents]
    above = [x for x, c in shifted if c > 0]
    below = [x for x, c in shifted if c < 0]
    if len(below) > 1 or not above:
        return None
    total = above[0]
    for x in above[1:]:
        total = call("logaddexp", total, x)
    return call("logdiffexp", total, below[0]) if below else total


@rule("log", why="each has a function of its own")
def log_of_function(node: Apply, graph: Any) -> Any:
    """log(-expm1 x) -> log1mexp(x);  log(expm1 x) -> logexpm1(x);  log|gamma x| -> gammaln(x),
    also of beta and ratios;  log(gamma x) -> log_of_gamma(x);  log(prod x) -> log_prod(x)
    """
    x, views = through_views(node.inputs[0])
    p = as_product(x)
    if abs(p.coefficient) == 1 and len(p.factors) == 1:
        for _, y in p.found(1, "expm1"):
            return call("logexpm1" if p.coefficient > 0 else "log1mexp", y)
    if (y := argument(x, "gamma")) is not None:
        return rearranged(call("log_of_gamma", y), views)
    if (found := _log_of_size(x)) is not None:
        return rearranged(found, views)
    product = computed_by(x, Reduce)
    if product is not None and product.op.reduction.name == "prod":
        if dtypes.is_float(product.inputs[0].dtype) and product.op.acc_dtype is None:
            found = LogProd(product.op.axes)(product.inputs[0])
            return rearranged(found, views)
    return None


def _log_of_size(x: Any) -> Any:
    """Return log(f(x)) by the function for log|f(x)|, NaN where f(x) is negative; or None."""
    inside = argument(x, "abs")
    f = elementwise(x if inside is None else inside, *LOGARITHM_OF_SIZE)
    inverse = elementwise(x if inside is None else inside, "inverse_poch")
    if f is not None:
        size = call(LOGARITHM_OF_SIZE[f.op.scalar.name], *f.inputs)
    elif inverse is not None:
        size = -call("log_poch", *inverse.inputs)
    else:
        return None
    return size if inside is not None else switch(call("lt", x, 0), math.nan, size)


log_of_power = pattern_rule(
    "log_of_power", f.log(x**y), f.log_of_pow(x, y),
    where=lambda m: number(m.y) is None and m.x.dtype == m.y.dtype,
    why="log(x^y) = y log(x) for every y where x > 0, without over- or underflow",
)  # fmt: skip


log1p_of_ndtr = pattern_rule(
    "log1p_of_ndtr", f.log1p(f.neg(f.ndtr(x))), f.log_ndtr(f.neg(x)),
    why="1 - ndtr(x) = ndtr(-x), whose logarithm has a function of its own",
)  # fmt: skip


log_of_hyperbolic = pattern_rule(
    "log_of_hyperbolic",
    [(f.log(f.sech(x)), -f.logcosh(x)), (f.log(f.sech_squared(x)), -2 * f.logcosh(x))],
    why="1 / cosh(x) underflows where its logarithm is about -|x|",
)


log_of_ratio = pattern_rule(
    "log_of_ratio", f.log(f.one_plus_exp_ratio(x, y)), f.softplus_difference(x, y),
    why="the ratio is near 1 where its logarithm has digits",
)  # fmt: skip


@rule("log", needs=["hypot_minus", "by_squares"], why="1 + x rounds the digits of x away")
def area_sine(node: Apply, graph: Any) -> Any:
    """log(hypot(x, 1) - x) -> -arcsinh(x);  log(hypot(x, 1) + x) -> arcsinh(x)"""
    (difference,) = node.inputs
    if (gap := elementwise(difference, "hypot_minus")) is not None:
        return -call("arcsinh", gap.inputs[0]) if number(gap.inputs[1]) == 1 else None
    gap = elementwise(difference, "by_squares")
    root = None if gap is None else elementwise(gap.inputs[0], "hypot")
    if gap is None or root is None or number(gap.inputs[2]) != 1:
        return None
    return call("arcsinh", scaled(-1, gap.inputs[1]))


log_of_cosine = pattern_rule(
    "log_of_cosine", f.log(f.cos(x)), f.log_cos(x), why="the cosine is near 1 for small x"
)


log1m_square = pattern_rule(
    "log1m_square",
    [(f.log1p(f.neg(f.sqr(x))), f.log1m_square(x)),
     (f.log(f.square_difference(1, x)), f.log1m_square(x))],
    why="near x = 0 the logarithm is -x^2, near 1 that of 1 - x",
)  # fmt: skip


@rule("add", "sub", "neg", why="a large x nearly cancels with the logarithm of the sum")
def log_softmax(node: Apply, graph: Any) -> Any:
    """x - logsumexp(x) -> log_softmax(x), also for elements x[i] of a vector"""
    s = as_sum(node.outputs[0])
    for total, c in s.pairs():
        inner, views = through_views(total)
        reduced = computed_by(inner, LogSumExp)
        if reduced is None or len(reduced.op.axes) != 1:
            continue
        (x,), (axis,) = reduced.inputs, reduced.op.axes
        if x.ndim > 1 and not puts_back(views, (axis,), x.ndim):
            continue
        for term, k in s.pairs():
            source, reads = (term, []) if x.ndim > 1 else through_views(term, reading=True)
            if k == -c and source is x:
                found = rearranged(LogSoftmax(axis)(x), reads)
                rest = s.plus(Sum(0, {total: -c, term: -k, found: k}))
                return sum_of(rest.constant, rest.pairs(), node.outputs[0])
    return None


logit = view_rule(
    "logit",
    [
        (f.log_div(x, 1 - x), f.logit(x)),
        (f.log_div(1 - x, x), -f.logit(x)),
        (f.log(x) - f.log1p(-x), f.logit(x)),
    ],
    where=lambda m: not as_sum(m.x).constant,
    why="near x = 0.5 the odds x / (1 - x) are near 1, and rounded",
)


entropy_of_two = view_rule(
    "entropy_of_two", f.xlogx(x) + f.xlogx1p(-x), f.entropy_of_two(x),
    why="the derivative is a difference of logarithms, equal at x = 0.5",
)  # fmt: skip


@rule("log", needs=["sub", "add"], why="near x = 0.5 the odds against x are near 1, and rounded")
def log_of_odds(node: Apply, graph: Any) -> Any:
    """log(1/x - 1) -> -logit(x)"""
    s = as_sum(node.inputs[0])
    if s.single is None or s.constant != -1:
        return None
    term, c = s.single
    p = as_product(term)
    ((y, e),) = p.factors.items() if len(p.factors) == 1 else ((None, 0),)
    return -call("logit", y) if e == -1 and c * p.coefficient == 1 else None


LOGARITHM_RULES = RuleSet(
    [
        log1p, log1p_of, log_of_sum, log_of_function, log_of_product, log_of_power, log1p_of_ndtr,
        log_of_hyperbolic, log_of_ratio, area_sine, log_of_cosine, log1m_square, log_softmax,
        logit, log_of_odds, entropy_of_two,
    ]
)  # fmt: skip
