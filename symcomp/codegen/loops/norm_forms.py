"""Norms, vectors over norms, and deviations as scalar functions and reductions: forms that neither
cancel nor leave the range.
"""

from __future__ import annotations

from symcomp.codegen.loops.formula_writer import FormulaWriter, Value
from symcomp.ops.nnet.unit_vector import (
    MOST,
    Cosine,
    ProjectionLength,
    SubtractProjection,
    UnitPowerSum,
    UnitVector,
)
from symcomp.ops.reductions.stable_reduce import (
    LARGEST_BOUND,
    Centered,
    Norm,
    Variance,
)

# The largest powers of narrow numbers that stay in range.
MOST_OF_NARROW = 6
# The k-th powers of numbers whose squares are 2^-(FAR / k) to 2^(FAR / k) stay in range.
FAR = 1000


def norm(write: FormulaWriter, function: Norm | UnitVector, x: Value) -> Value:
    axes = function.axes
    squares = write.sum(write("sqr", x), axes)
    if _stays_in_range(x):
        return write("sqrt", squares)
    outside, scale, back = _coarse_scale(write, squares)
    total = _total_of_squares(write, x, squares, outside, scale, axes)
    return write("mul", write("sqrt", total), back)


def _stays_in_range(x: Value) -> bool:
    """Tell whether squares stay in range, as those of numbers cast from a narrower dtype."""
    return x.dtype != "float64" or getattr(x.source, "name", None) == "cast"


def _total_of_squares(
    write: FormulaWriter,
    x: Value,
    squares: Value,
    outside: Value,
    scale: Value,
    axes: tuple[int, ...],
) -> Value:
    """Return the sum of squares, of x times the scale where it may have left the range."""
    again = write("guarded", outside, write("sqr", write("mul", x, scale)))
    return write("switch", outside, write.sum(again, axes), squares)


def _coarse_scale(write: FormulaWriter, squares: Value) -> tuple[Value, Value, Value]:
    """Return whether squares may have left the range when they were added up; a factor of the
    numbers with which they stay in range; and its inverse, or 1 where they did not leave it.
    """
    one, small, large = (write.number(2.0**n, squares) for n in (0, -600, 600))
    outside, below = _outside(write, squares, 640), write("lt", squares, one)
    back = write("switch", outside, write("switch", below, small, large), one)
    return outside, write("switch", below, large, small), back


def _outside(write: FormulaWriter, x: Value, n: int) -> Value:
    """Return whether x is not from 2^-n to 2^n."""
    low, high = write.number(2.0**-n, x), write.number(2.0**n, x)
    inside = write("logical_and", write("gt", x, low), write("lt", x, high))
    return write("logical_not", inside)


def unit_vector(write: FormulaWriter, function: UnitVector, x: Value) -> Value:
    """Return x over its norm, whose squares are added up in double precision."""
    size = norm(write, function, write.cast(x, "float64"))
    return write("true_div", x, write.cast(size, x.dtype))


def projection_length(
    write: FormulaWriter, function: ProjectionLength | Cosine, x: Value, y: Value
) -> Value:
    """Return the sum of products over the norm of x, and for a cosine over that of y."""
    axes, both = function.axes, isinstance(function, Cosine)
    total, squares = write.sum(write("mul", x, y), axes), write.sum(write("sqr", x), axes)
    others = write.sum(write("sqr", y), axes)
    if _stays_in_range(x) and _stays_in_range(y):
        z = write("true_div", total, write("sqrt", squares))
        return write("true_div", z, write("sqrt", others)) if both else z
    outside, scale, _ = _coarse_scale(write, squares)
    other, other_scale, back = _coarse_scale(write, others)
    one, either = write.number(1, x), write("logical_or", outside, other)
    factors = write("switch", outside, scale, one), write("switch", other, other_scale, one)
    scaled = [write("mul", v, c) for v, c in zip((x, y), factors, strict=True)]
    again = write.sum(write("guarded", either, write("mul", *scaled)), axes)
    total = write("switch", either, again, total)
    squares = _total_of_squares(write, x, squares, outside, scale, axes)
    z = write("true_div", total, write("sqrt", squares))
    if not both:
        return write("mul", z, back)
    others = _total_of_squares(write, y, others, other, other_scale, axes)
    return write("true_div", z, write("sqrt", others))


def unit_power_sum(write: FormulaWriter, function: UnitPowerSum, x: Value) -> Value:
    """Return the sum of powers over that of the norm; where these may leave the range, the sum of
    powers of quotients.
    """
    axes, k = function.axes, function.power
    total, squares = write.sum(_power(write, x, k), axes), write.sum(write("sqr", x), axes)
    below = _power(write, squares, k // 2)
    below = write("mul", below, write("sqrt", squares)) if k % 2 else below
    z = write("true_div", total, below)
    if _stays_in_range(x) and k <= MOST_OF_NARROW:
        return z
    extreme = _outside(write, squares, FAR // k)
    outside, scale, _ = _coarse_scale(write, squares)
    size = write("sqrt", _total_of_squares(write, x, squares, outside, scale, axes))
    numbers = write("mul", x, write("switch", outside, scale, write.number(1, x)))
    powers = write("guarded", extreme, _power(write, write("true_div", numbers, size), k))
    # NaN for a norm of 0, also that of no elements.
    again = write("mul", write.sum(powers, axes), write("true_div", size, size))
    return write("switch", extreme, again, z)


def _power(write: FormulaWriter, x: Value, k: int) -> Value:
    """Return x^k."""
    if k == 1:
        return x
    even = write("sqr", _power(write, x, k // 2))
    return write("mul", even, x) if k % 2 else even


def subtract_projection(
    write: FormulaWriter, function: SubtractProjection, x: Value, u: Value
) -> Value:
    axes, zero = function.axes, write.number(0, x)
    square, product = write("sqr", u), write("mul", u, x)
    most = write("gt", square, write.number(MOST, x))
    others = [write.sum(write("switch", most, zero, v), axes) for v in (square, product)]
    at = write("sub", write("mul", x, others[0]), write("mul", u, others[1]))
    z = write("sub", x, write("mul", u, write.sum(product, axes)))
    return write("switch", most, at, z)


def _about_mean(
    write: FormulaWriter, x: Value, axes: tuple[int, ...]
) -> tuple[Value, Value, Value]:
    """Return (x - the rounded mean, the sum of these, their number)."""
    n = write.length(x, axes)
    d = write("sub", x, _rough_mean(write, x, axes, n))
    return d, write.sum(d, axes), n


def _rough_mean(write: FormulaWriter, x: Value, axes: tuple[int, ...], n: Value) -> Value:
    # Halves of extreme values have a mean that does not overflow.
    half = write("true_div", write.sum(write("mul", x, write.number(0.5, x)), axes), n)
    return write("mul", half, write.number(2, x))


def centered(write: FormulaWriter, function: Centered, x: Value) -> Value:
    axes, n = function.axes, write.length(x, function.axes)
    rough = _rough_mean(write, x, axes, n)
    d = write("sub", x, rough)
    if _stays_in_range(x):
        return d
    taken = write("sub", x, d)  # d + taken is x, but for the rounding error of d
    rest = write("sub", write("sub", x, write("add", d, taken)), write("sub", rough, taken))
    sizes = write("mul", write.sum(write("abs", x), axes), write.number(4, x))
    bound = write("minimum", sizes, write.number(LARGEST_BOUND, x))
    high = write("sub", write("add", d, bound), bound)
    low = write.sum(write("add", write("sub", d, high), rest), axes)
    mean = write("true_div", write("add", write.sum(high, axes), low), n)
    return write("add", d, write("sub", rest, mean))


def variance(write: FormulaWriter, function: Variance, x: Value) -> Value:
    # Correct the sum of squares for the rounding error of the mean (Chan, Golub and LeVeque,
    # The American Statistician 37, 1983).
    d, total, n = _about_mean(write, x, function.axes)
    squares = write.sum(write("sqr", d), function.axes)
    error = write("true_div", write("sqr", total), n)
    return write("true_div", write("sub", squares, error), n)
