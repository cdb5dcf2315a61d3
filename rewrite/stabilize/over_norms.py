"""Quotients by norms and by sums of squares, which leave the range where the quotient does not."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from symcomp.core.node import Apply
from symcomp.ops.elementwise.elemwise import Elemwise
from symcomp.ops.linalg.products import Dot
from symcomp.ops.nnet.unit_vector import (
    POWERS,
    Cosine,
    ProjectionLength,
    UnitPowerSum,
    UnitVector,
)
from symcomp.ops.reductions.reduce import Reduce
from symcomp.ops.reductions.stable_reduce import Centered, Norm
from symcomp.rewrite.rule import RuleSet, computed_by, elementwise, rule
from symcomp.rewrite.shapes import shapes_of
from symcomp.rewrite.stabilize.norms import DTYPES, exchanged, norm_of_squares
from symcomp.rewrite.stabilize.sums import deviation
from symcomp.rewrite.views import (
    LONGEST,
    Product,
    as_product,
    call,
    product_of,
    puts_back,
    rearranged,
    same,
    scaled,
    through_views,
)


@rule(
    "mul", "true_div", why="the sums of powers leave the range where their quotient does not",
)  # fmt: skip
def power_sum_over_norm(node: Apply, graph: Any) -> Any:
    """sum(x^k) / (norm of x)^k -> sum of powers of the unit vector, for k > 2;   also over other
    powers of the norm, and over sum(x^2)
    """
    p = as_product(node.outputs[0])
    if node.outputs[0].dtype not in DTYPES:
        return None
    for below, e, norm, x, axes, views in _norms_below(p):
        for above, n in p.factors.items():
            if n <= 0 or not float(n).is_integer():
                continue
            if (found := _power_sum(above, x, axes, views)) is None:
                continue
            c, k, powers = found
            changes = {above: -n, powers: n, norm: k * n}
            if norm is not below:
                changes |= {below: -e, norm: k * n + 2 * e}
            return exchanged(Product(p.coefficient * c**n, p.factors), changes)
    return None


def _power_sum(
    total: Any, x: Any, axes: tuple[int, ...], views: Sequence[Apply]
) -> tuple[float, int, Any] | None:
    """Return (c, k, z) where c z times the k-th power of the norm of x is a sum of k-th powers of
    multiples of x, or of its absolute values; None if it is no such sum over axes, rearranged by
    views.
    """
    source, more = through_views(total)
    terms = _terms(source, axes, x) if [n.op for n in more] == [n.op for n in views] else None
    if terms is None:
        return None
    parts = as_product(x)
    k = max(terms.factors.values(), default=0.0) / max(parts.factors.values(), default=1.0)
    if not float(k).is_integer() or not POWERS.least <= k <= POWERS.most:
        return None
    left = _without(terms, Product(1.0, {g: k * e for g, e in parts.factors.items()}))
    if left == {}:
        y = x
    else:
        ((y, e),) = terms.factors.items() if len(terms.factors) == 1 else ((None, 0.0),)
        size = elementwise(y, "abs") if e == k else None
        if size is None or not _alike(size.inputs[0], x):
            return None
    c = terms.coefficient if y is not x else terms.coefficient / parts.coefficient**k
    return c, int(k), rearranged(UnitPowerSum(axes, int(k))(y), views)


def _terms(total: Any, axes: tuple[int, ...], x: Any) -> Product | None:
    """Return the terms, like x, that a variable is the sum of, over axes; else None."""
    reduced = computed_by(total, Reduce)
    if reduced is None or reduced.op.reduction.name != "sum" or reduced.op.acc_dtype:
        return None
    terms = reduced.inputs[0]
    alike = terms.type.broadcastable == x.type.broadcastable and terms.dtype == x.dtype
    return as_product(terms) if alike and reduced.op.axes == axes else None


def _without(terms: Product, parts: Product) -> dict[Any, float] | None:
    """Return the factors of the terms without those of the parts; None if some are missing."""
    factors = dict(terms.factors)
    for factor, e in parts.factors.items():
        here = next((g for g in factors if _alike(g, factor)), factor)
        left = factors.pop(here, 0.0) - e
        if left < 0:
            return None
        factors.update({here: left} if left else {})
    return factors


@rule(
    "mul", "true_div", why="the sums of squares leave the range where their quotient does not",
)  # fmt: skip
def quotient_of_squares(node: Apply, graph: Any) -> Any:
    """sum(x^2) / sum(y^2) -> (norm of x / norm of y)^2;   sum(x)^2 / sum(y^2) and its inverse
    likewise
    """
    p = as_product(node.outputs[0])
    norms = {g: norm for g in p.factors if (norm := norm_of_squares(g)) is not None}
    if not norms or not all(float(p.factors[g]).is_integer() for g in norms):
        return None
    sides = {math.copysign(1, e) for g, e in p.factors.items() if g in norms or _is_square(g, e)}
    if len(sides) < 2:
        return None
    factors = {g: e for g, e in p.factors.items() if g not in norms}
    root = {norm: p.factors[g] for g, norm in norms.items()}
    for g, e in p.factors.items():
        if g in factors and e % 2 == 0 and _is_square(g, e):
            root[g] = factors.pop(g) / 2
    # The square of the quotient: derivatives multiply by the quotient, in range, not by squares.
    return Product(p.coefficient, factors).times(call("sqr", product_of(Product(1.0, root))))


def _is_square(x: Any, e: float) -> bool:
    """Tell whether a factor is a norm, a projection on a vector or a sum over axes, to a power of 2
    or more.
    """
    source = through_views(x)[0]
    reduced = computed_by(source, Reduce)
    sums = reduced is not None and reduced.op.reduction.name == "sum"
    lengths = any(computed_by(source, op) for op in (Norm, ProjectionLength, Cosine))
    return abs(e) >= 2 and (sums or lengths)


@rule(
    "mul", "true_div",
    why="the sums of products and of squares leave the range where their quotient does not",
)  # fmt: skip
def product_over_norm(node: Apply, graph: Any) -> Any:
    """sum(x y) / norm of x -> length of the projection of y on x;   that over the norm of y
    -> cosine;   sum(x y) / sum(x^2) -> the first over the norm of x;   likewise of powers
    """
    p = as_product(node.outputs[0])
    if node.outputs[0].dtype not in DTYPES:
        return None
    for below, e, norm, x, axes, views in _norms_below(p):
        for above, power in p.factors.items():
            k = min(power, -e if norm is below else -2 * e)
            if k <= 0 or not float(k).is_integer():
                continue
            if (found := _over_norm(above, x, axes, views)) is None:
                continue
            c, quotient = found
            changes = {above: -k, quotient: k}
            whole = math.ceil(k / 2)  # of the squares
            more = {norm: k} if norm is below else {below: whole, norm: k - 2 * whole}
            return exchanged(Product(p.coefficient * c**k, p.factors), {**changes, **more})
    return None


@rule(
    "mul", "true_div", "reciprocal",
    why="the derivative is a difference of large parts where one element has most of the norm",
)  # fmt: skip
def unit_vector(node: Apply, graph: Any) -> Any:
    """x / norm of x -> unit vector, also powers of it, and over multiples of the norm"""
    p = as_product(node.outputs[0])
    for factor, e in p.factors.items():
        norm, views, rest = _multiple_of_norm(factor) if e < 0 else (None, [], None)
        if norm is None or not float(e).is_integer() or norm.inputs[0].dtype not in DTYPES:
            continue
        (x,), axes = norm.inputs, norm.op.axes
        k = min(p.factors.get(x, 0.0), -e)
        if k >= 1 and float(k).is_integer() and puts_back(views, axes, x.ndim):
            changes = {x: -k, factor: k, UnitVector(axes)(x): k}
            if isinstance(rest, float):
                return exchanged(Product(p.coefficient / rest**k, p.factors), changes)
            return exchanged(p, {**changes, rest: -k})
    return None


@rule(
    UnitVector, UnitPowerSum,
    why="the rounding error of a mean counts where deviations are much smaller",
)  # fmt: skip
def unit_vector_of_deviations(node: Apply, graph: Any) -> Any:
    """unit vector of x - mean(x) -> unit vector of centered(x), also sums of its powers, for narrow
    dtypes
    """
    found = _narrow_deviation(node.inputs[0], node.op.axes, graph)
    return None if found is None else node.op(found)


@rule(
    "true_div", needs=["switch"],
    why="the rounding error of a mean counts where deviations are much smaller",
)  # fmt: skip
def deviation_over_norm(node: Apply, graph: Any) -> Any:
    """(x - mean(x)) / norm -> centered(x) / norm, in derivatives of the norm of x - mean(x), for
    narrow dtypes
    """
    x, below = node.inputs
    chosen = elementwise(below, "switch")
    norm = None if chosen is None else computed_by(through_views(chosen.inputs[2])[0], Norm)
    if norm is None or norm.inputs[0] is not x:
        return None
    found = _narrow_deviation(x, norm.op.axes, graph)
    return None if found is None else found / below


def _narrow_deviation(x: Any, axes: tuple[int, ...], graph: Any) -> Any:
    """Return ``x``, a deviation from a mean, with the mean in double precision. Another mean of
    float64 would take several passes more.
    """
    found = None if x.dtype == "float64" else deviation(x, axes, shapes_of(graph))
    return None if found is None else scaled(found[2], Centered(axes)(found[0]))


def _norms_below(
    p: Product,
) -> Iterator[tuple[Any, float, Any, Any, tuple[int, ...], Sequence[Apply]]]:
    """Yield the factors with whole negative powers that are a norm or a sum of squares over axes:
    the factor, its power, the norm, and its vector, axes and views.
    """
    for below, e in p.factors.items():
        if e >= 0 or not float(e).is_integer():
            continue
        is_norm = computed_by(through_views(below)[0], Norm) is not None
        norm = below if is_norm else norm_of_squares(below)
        if norm is not None:
            source, views = through_views(norm)
            yield below, e, norm, source.owner.inputs[0], source.owner.op.axes, views


def _over_norm(
    total: Any, x: Any, axes: tuple[int, ...], views: Sequence[Apply]
) -> tuple[float, Any] | None:
    """Return (c, z) where c z is a sum of products with x, or a projection on another vector, over
    the norm of x; None if it is no such sum over axes, rearranged by views.
    """
    source, more = through_views(total)
    if [n.op for n in more] != [n.op for n in views]:
        return None
    length = computed_by(source, ProjectionLength)
    if length is not None and length.op.axes == axes and _alike(length.inputs[1], x):
        return 1.0, rearranged(Cosine(axes)(*length.inputs), views)
    if (found := multiplied(source, x, axes)) is None:
        return None
    c, y = found
    return c, rearranged(ProjectionLength(axes)(x, y), views)


def multiplied(total: Any, x: Any, axes: tuple[int, ...]) -> tuple[float, Any] | None:
    """Return (c, y) if a variable is the sum of c x y over axes, else None."""
    dot = computed_by(total, Dot)
    if dot is not None and x.ndim == 1:
        others = [v for v, w in (dot.inputs, dot.inputs[::-1]) if _alike(w, x)]
        return (1.0, others[0]) if others and others[0].type == x.type else None
    terms, parts = _terms(total, axes, x), as_product(x)
    factors = None if terms is None else _without(terms, parts)
    if terms is None or factors is None:
        return None
    y = product_of(Product(1.0, factors))
    if isinstance(y, float) or y.dtype != x.dtype:
        return None
    y = y if y.type.broadcastable == x.type.broadcastable else call("second", x, y)
    return terms.coefficient / parts.coefficient, y


def _alike(x: Any, y: Any) -> bool:
    """Tell whether both are equal, also where axes of length 1 are inserted elsewhere in their
    expressions, as in deviations from a mean.
    """
    if x.type.broadcastable != y.type.broadcastable:
        return False
    pending = [(x, y)]
    for _ in range(LONGEST):
        if not pending:
            return True
        (x, views), (y, more) = map(through_views, pending.pop())
        kept = ([a for a in n.op.order if a != "x"] for n in (*views, *more))
        if any(axes != sorted(axes) for axes in kept):
            return False
        pair = [v.owner for v in (x, y) if isinstance(v.owner and v.owner.op, Elemwise)]
        if len(pair) == 2 and pair[0].op == pair[1].op and x is not y:
            pending += zip(*(node.inputs for node in pair), strict=True)
        elif not same(x, y):
            return False
    return False


def _multiple_of_norm(f: Any) -> tuple[Apply | None, list[Apply], Any]:
    """Return (node of the norm, views, c) if ``f`` is c times a norm, rearranged by views."""
    inner, views = through_views(f)
    q = as_product(inner) if elementwise(inner, "mul", "true_div") else Product(1.0, {inner: 1.0})
    for g, e in q.factors.items():
        source, more = through_views(g)
        if e == 1 and (norm := computed_by(source, Norm)) is not None:
            rest = product_of(q.without(g))
            rest = rest if isinstance(rest, float) else rearranged(rest, views)
            return norm, [*views, *more], rest
    return None, [], None


QUOTIENT_RULES = RuleSet(
    [
        power_sum_over_norm, quotient_of_squares, product_over_norm, unit_vector,
        unit_vector_of_deviations, deviation_over_norm,
    ]
)  # fmt: skip
