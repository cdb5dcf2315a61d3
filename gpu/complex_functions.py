"""Functions of complex numbers as formulas of their parts, for devices.

Errors are a few units in the last place of the larger part of a result, as in the library of C.
Each rule is given what makes the formula (``complex_formulas``), the arguments, of which those of
complex numbers are pairs, and the dtype of the result.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from symcomp.codegen.functions.c_scalars import COMPLEX

Rule = Callable[[Any, Sequence[Any], str], Any]
# Integer powers up to this one are products, which lose less than logarithms.
MOST_PRODUCTS = 99


class _Real:
    """Steps of real numbers of one dtype.

    Parameters
    ----------
    f : object
        What makes the formula.
    dtype : str
    """

    def __init__(self, f: Any, dtype: str) -> None:
        self.f, self.dtype = f, dtype
        self.limits = np.finfo(dtype)

    def number(self, value: float) -> Any:
        """Return a literal."""
        return self.f.number(value, self.dtype)

    def __call__(self, name: str, *given: Any) -> Any:
        """Add a step; numbers of Python among its arguments are literals."""
        values = [self.number(v) if isinstance(v, int | float) else v for v in given]
        return self.f.apply(name, *values, dtype=self.dtype)

    def test(self, name: str, *given: Any) -> Any:
        """Add a step whose result is a bool."""
        values = [self.number(v) if isinstance(v, int | float) else v for v in given]
        return self.f.apply(name, *values, dtype="bool")

    def choose(self, which: Any, x: Any, y: Any) -> Any:
        """Add a choice between two values."""
        return self("switch", which, x, y)

    def is_negative(self, x: Any) -> Any:
        """Tell whether a number is below 0, or the zero that is negative."""
        below = self.test("lt", x, 0)
        return self.test("or_", below, self.test("lt", self("true_div", 1, x), 0))

    def with_sign(self, size: Any, of: Any) -> Any:
        """Return a number of this size with the sign of another."""
        return self.choose(self.is_negative(of), self("neg", size), size)

    def exact_times(self, x: Any, y: Any) -> Any:
        """Return x y; 0 if x is 0, also where y is infinite."""
        return self.choose(self.test("eq", x, 0), x, self("mul", x, y))


def _parts(f: Any, given: Sequence[Any], dtype: str) -> tuple[_Real, Any, Any]:
    a, b = f.complex(given[0], dtype)
    return _Real(f, COMPLEX[dtype]), a, b


def _growing(r: _Real, x: Any) -> tuple[Any, Any, Any]:
    """Return the exponential of x as a product of two numbers, and where both are 1 for all x.

    The first factor does not overflow where a product with a number below 1 does not.
    """
    limit = float(np.floor(np.log(float(r.limits.max)))) - 1
    is_far = r.test("gt", x, limit)
    first = r("exp", r.choose(is_far, r("sub", x, limit), x))
    return first, r.choose(is_far, float(np.exp(limit)), 1), is_far


def _exp(f: Any, given: Sequence[Any], dtype: str) -> Any:
    r, a, b = _parts(f, given, dtype)
    size, factor, _ = _growing(r, a)
    is_real, is_zero = r.test("eq", b, 0), r.test("eq", size, 0)
    cosine = _cosine_beside(r, b, r.test("eq", a, float("inf")))
    real, imaginary = (
        r("mul", r.choose(is_zero, size, r("mul", size, turn)), factor)
        for turn in (cosine, r("sin", b))
    )
    return r.choose(is_real, r("mul", size, factor), real), r.choose(is_real, b, imaginary)


def _cosine_beside(r: _Real, b: Any, is_infinite: Any) -> Any:
    """Return cos(b); 1 beside an infinite size if b is infinite or NaN: there is no direction, but
    the real part stays infinite.
    """
    lacks = r.test("and_", is_infinite, r.test("invert", r.test("isfinite", b)))
    return r.choose(lacks, 1, r("cos", b))


def _exp2(f: Any, given: Sequence[Any], dtype: str) -> Any:
    return _exp(f, [_scaled(f, f.complex(given[0], dtype), float(np.log(2)), dtype)], dtype)


def _scaled(f: Any, pair: Any, factor: float, dtype: str) -> Any:
    r = _Real(f, COMPLEX[dtype])
    return tuple(r("mul", x, factor) for x in pair)


def _expm1(f: Any, given: Sequence[Any], dtype: str) -> Any:
    r, a, b = _parts(f, given, dtype)
    half = r("sin", r("mul", b, 0.5))
    size, factor, is_far = _growing(r, a)
    cosine = r("cos", b)
    near = r("sub", r("mul", r("expm1", a), cosine), r("mul", 2, r("mul", half, half)))
    far = r("mul", r("mul", size, cosine), factor)
    imaginary = r("mul", r("mul", size, r("sin", b)), factor)
    is_real = r.test("eq", b, 0)
    return (
        r.choose(is_real, r("expm1", a), r.choose(is_far, far, near)),
        r.choose(is_real, b, imaginary),
    )


def _log(f: Any, given: Sequence[Any], dtype: str) -> Any:
    r, a, b = _parts(f, given, dtype)
    x, y = r("abs", a), r("abs", b)
    large, small = r("maximum", x, y), r("minimum", x, y)
    # Far numbers are halved, as the length of the largest ones is too large.
    is_far = r.test("gt", large, float(r.limits.max) / 4)
    scale = r.choose(is_far, 0.5, 1)
    size = r("hypot", r("mul", a, scale), r("mul", b, scale))
    usual = r("add", r("log", size), r.choose(is_far, float(np.log(2)), 0))
    # Near the circle of length 1 the logarithm of a rounded length would have no digits.
    square = r(
        "add",
        r("mul", r("sub", large, 1), r("add", large, 1)),
        r("mul", small, small),
    )
    is_near = r.test("and_", r.test("gt", size, 0.5), r.test("lt", size, 2))
    near = r("mul", 0.5, r("log1p", r.choose(is_near, square, 0)))
    return r.choose(is_near, near, usual), r("arctan2", b, a)


def _log_of_base(base: float) -> Rule:
    def rule(f: Any, given: Sequence[Any], dtype: str) -> Any:
        return _scaled(f, _log(f, given, dtype), 1 / float(np.log(base)), dtype)

    return rule


def _log1p(f: Any, given: Sequence[Any], dtype: str) -> Any:
    r, a, b = _parts(f, given, dtype)
    further = r("add", a, 1)
    far, angle = _log(f, [(further, b)], dtype)
    is_near = r.test(
        "and_", r.test("lt", r("abs", a), 0.5), r.test("lt", r("abs", b), 0.5)
    )
    square = r("add", r("mul", a, r("add", a, 2)), r("mul", b, b))
    near = r("mul", 0.5, r("log1p", r.choose(is_near, square, 0)))
    return r.choose(is_near, near, far), angle


def _sqrt(f: Any, given: Sequence[Any], dtype: str) -> Any:
    r, a, b = _parts(f, given, dtype)
    return _root(r, a, b)


def _root(r: _Real, a: Any, b: Any) -> tuple[Any, Any]:
    """Take the root of half the length and the real part, which are added, and divide by it."""
    x, y = r("abs", a), r("abs", b)
    large = r("maximum", x, y)
    # Powers of 4, so that roots of the factors are exact: no length overflows or loses digits.
    steps = int(r.limits.nmant) + 5
    is_far = r.test("gt", large, float(r.limits.max) / 4)
    is_small = r.test("lt", large, float(r.limits.tiny) * 4.0**steps)
    scale = r.choose(is_far, 0.25, r.choose(is_small, 4.0**steps, 1))
    back = r.choose(is_far, 2, r.choose(is_small, 2.0**-steps, 1))
    x, y, b_scaled = (r("mul", v, scale) for v in (x, y, b))
    root = r("sqrt", r("mul", 0.5, r("add", x, r("hypot", x, y))))
    is_zero = r.test("eq", root, 0)
    other = r("true_div", y, r("mul", 2, r.choose(is_zero, 1, root)))
    other = r.choose(is_zero, 0, other)
    root, other = r("mul", root, back), r("mul", other, back)
    is_left = r.is_negative(a)
    real = r.choose(is_left, other, root)
    imaginary = r.with_sign(r.choose(is_left, root, other), b_scaled)
    # Infinite parts: the imaginary one decides, then the real one.
    infinite = float("inf")
    is_tall, is_wide = r.test("eq", y, infinite), r.test("eq", x, infinite)
    zero = r("mul", b, 0)  # NaN if b is
    size = r.with_sign(infinite, b)
    real = r.choose(is_wide, r.choose(is_left, r("abs", zero), infinite), real)
    imaginary = r.choose(is_wide, r.choose(is_left, size, zero), imaginary)
    return r.choose(is_tall, infinite, real), r.choose(is_tall, b, imaginary)


def _hyperbolic(r: _Real, x: Any) -> tuple[Any, Any, Any]:
    """Return the hyperbolic cosine and sine of x, both without a factor, and this factor."""
    size, factor, is_far = _growing(r, r("abs", x))
    half = r("mul", 0.5, size)
    near = r.choose(is_far, 0, x)
    cosine = r.choose(is_far, half, r("cosh", near))
    sine = r.choose(is_far, r.with_sign(half, x), r("sinh", near))
    return cosine, sine, factor


def _sinh_cosh(r: _Real, a: Any, b: Any, is_sine: bool) -> tuple[Any, Any]:
    """Return sinh(a + i b), or cosh."""
    cosine, sine, factor = _hyperbolic(r, a)
    first, second = (sine, cosine) if is_sine else (cosine, sine)
    is_infinite = r.test("eq", r("abs", a), float("inf"))
    real, imaginary = _cosine_beside(r, b, is_infinite), r("sin", b)
    if is_sine:
        real = r.exact_times(first, real)
        imaginary = r.exact_times(imaginary, second)
    else:
        real = r("mul", first, real)
        both = r.test("or_", r.test("eq", second, 0), r.test("eq", imaginary, 0))
        imaginary = r.choose(both, 0, r("mul", second, imaginary))
    return r("mul", real, factor), r("mul", imaginary, factor)


def _sinh(f: Any, given: Sequence[Any], dtype: str) -> Any:
    r, a, b = _parts(f, given, dtype)
    return _sinh_cosh(r, a, b, True)


def _cosh(f: Any, given: Sequence[Any], dtype: str) -> Any:
    r, a, b = _parts(f, given, dtype)
    return _sinh_cosh(r, a, b, False)


def _sin(f: Any, given: Sequence[Any], dtype: str) -> Any:
    """Return -i sinh(i z)."""
    r, a, b = _parts(f, given, dtype)
    real, imaginary = _sinh_cosh(r, r("neg", b), a, True)
    return imaginary, r("neg", real)


def _cos(f: Any, given: Sequence[Any], dtype: str) -> Any:
    """Return cosh(i z)."""
    r, a, b = _parts(f, given, dtype)
    return _sinh_cosh(r, r("neg", b), a, False)


def _tanh_of(r: _Real, a: Any, b: Any) -> tuple[Any, Any]:
    """Return tanh(a + i b)."""
    # From here on the real part is 1, and the imaginary one is 4 sin(b) cos(b) exp(-2 |a|).
    size, limit = r("abs", a), float(r.limits.nmant) * 0.5
    is_far = r.test("gt", size, limit)
    near = r.choose(is_far, 0, a)
    sine, cosine = r("sin", b), r("cos", b)
    turn = r("mul", sine, cosine)
    s = r("sinh", near)
    below = r("add", r("mul", s, s), r("mul", cosine, cosine))
    decay = r("exp", r("mul", -2, size))
    real = r("true_div", r("mul", s, r("cosh", near)), below)
    real = r.choose(r.test("eq", s, 0), s, real)
    imaginary = r("true_div", turn, below)
    far = r("mul", 4, r.choose(r.test("eq", decay, 0), 0, r("mul", turn, decay)))
    return r.choose(is_far, r.with_sign(1, a), real), r.choose(is_far, far, imaginary)


def _tanh(f: Any, given: Sequence[Any], dtype: str) -> Any:
    r, a, b = _parts(f, given, dtype)
    return _tanh_of(r, a, b)


def _tan(f: Any, given: Sequence[Any], dtype: str) -> Any:
    """Return -i tanh(i z)."""
    r, a, b = _parts(f, given, dtype)
    real, imaginary = _tanh_of(r, r("neg", b), a)
    return imaginary, r("neg", real)


# -- inverse functions, by W. Kahan: Branch cuts for complex elementary functions (1987)


def _roots_beside_one(r: _Real, a: Any, b: Any) -> tuple[Any, Any]:
    """Return the roots of 1 - z and of 1 + z."""
    return _root(r, r("sub", 1, a), r("neg", b)), _root(r, r("add", 1, a), b)


def _direction(r: _Real, a: Any, b: Any) -> tuple[Any, Any, Any]:
    """Return whether a number is infinite, and its direction then: parts of 1, -1, 0 or NaN."""
    are_endless = [r.test("eq", r("abs", x), float("inf")) for x in (a, b)]
    u, v = (
        r.choose(is_endless, r.with_sign(1, x), r("mul", x, 0))
        for x, is_endless in zip((a, b), are_endless, strict=True)
    )
    return r.test("or_", *are_endless), u, v


def _arcsin_of(r: _Real, a: Any, b: Any) -> tuple[Any, Any]:
    """Return arcsin(a + i b)."""
    (c, d), (x, y) = _roots_beside_one(r, a, b)
    below = r("sub", r("mul", c, x), r("mul", d, y))
    imaginary = r("arcsinh", r("sub", r("mul", c, y), r("mul", d, x)))
    is_endless, u, v = _direction(r, a, b)
    return (
        r("arctan2", r.choose(is_endless, u, a), r.choose(is_endless, r("abs", v), below)),
        r.choose(is_endless, r.with_sign(float("inf"), b), imaginary),
    )


def _arcsin(f: Any, given: Sequence[Any], dtype: str) -> Any:
    r, a, b = _parts(f, given, dtype)
    return _arcsin_of(r, a, b)


def _arcsinh(f: Any, given: Sequence[Any], dtype: str) -> Any:
    """Return -i arcsin(i z)."""
    r, a, b = _parts(f, given, dtype)
    real, imaginary = _arcsin_of(r, r("neg", b), a)
    return imaginary, r("neg", real)


def _arccos(f: Any, given: Sequence[Any], dtype: str) -> Any:
    r, a, b = _parts(f, given, dtype)
    (c, d), (x, y) = _roots_beside_one(r, a, b)
    is_endless, u, v = _direction(r, a, b)
    real = r("mul", 2, r("arctan2", c, x))
    real = r.choose(is_endless, r("arctan2", r("abs", v), u), real)
    imaginary = r("arcsinh", r("sub", r("mul", x, d), r("mul", y, c)))
    return real, r.choose(is_endless, r("neg", r.with_sign(float("inf"), b)), imaginary)


def _arccosh(f: Any, given: Sequence[Any], dtype: str) -> Any:
    r, a, b = _parts(f, given, dtype)
    c, d = _root(r, r("sub", a, 1), b)
    x, y = _root(r, r("add", a, 1), b)
    is_endless, u, v = _direction(r, a, b)
    real = r("arcsinh", r("add", r("mul", c, x), r("mul", d, y)))
    imaginary = r("mul", 2, r("arctan2", d, x))
    return (
        r.choose(is_endless, float("inf"), real),
        r.choose(is_endless, r("arctan2", v, u), imaginary),
    )


def _arctanh_of(r: _Real, a: Any, b: Any) -> tuple[Any, Any]:
    """Return arctanh(a + i b)."""
    x, size = r("abs", a), r("hypot", a, b)
    # Far numbers z give 1 / z, and a quarter of a turn.
    is_far = r.test("gt", size, float(r.limits.eps) ** -0.5)
    x = r.choose(is_far, 2, x)
    y = r.choose(is_far, 2, r("abs", b))
    rest = r("hypot", r("sub", 1, x), y)
    is_pole = r.test("lt", rest, 0.1)  # the square of the distance may be subnormal
    below = r.choose(is_pole, 1, rest)
    usual = r("true_div", r("true_div", r("mul", 4, x), below), below)
    usual = r("mul", 0.25, r("log1p", usual))
    beside = r("sub", r("log", r("hypot", r("add", 1, x), y)), r("log", rest))
    real = r.choose(is_pole, r("mul", 0.5, beside), usual)
    turn = r("sub", r("mul", r("sub", 1, x), r("add", 1, x)), r("mul", y, y))
    imaginary = r("mul", 0.5, r("arctan2", r("mul", 2, y), turn))
    scale = r.choose(is_far, size, 1)
    u, v = (r("true_div", r("true_div", r("abs", p), scale), scale) for p in (a, b))
    is_endless = r.test("eq", size, float("inf"))
    u, v = (r.choose(is_endless, 0, p) for p in (u, v))
    real = r.choose(is_far, u, real)
    imaginary = r.choose(is_far, r("sub", float(np.pi / 2), v), imaginary)
    return r.with_sign(real, a), r.with_sign(imaginary, b)


def _arctanh(f: Any, given: Sequence[Any], dtype: str) -> Any:
    r, a, b = _parts(f, given, dtype)
    return _arctanh_of(r, a, b)


def _arctan(f: Any, given: Sequence[Any], dtype: str) -> Any:
    """Return -i arctanh(i z)."""
    r, a, b = _parts(f, given, dtype)
    real, imaginary = _arctanh_of(r, r("neg", b), a)
    return imaginary, r("neg", real)


# -- signs, powers and tests


def _sgn(f: Any, given: Sequence[Any], dtype: str) -> Any:
    """Return z / |z|, 0 for 0; the direction of the infinite part if z has one."""
    r, a, b = _parts(f, given, dtype)
    infinite = float("inf")
    size, is_tall = r("hypot", a, b), r.test("eq", r("abs", b), infinite)
    is_wide = r.test("eq", r("abs", a), infinite)
    is_zero, is_both = r.test("eq", size, 0), r.test("and_", is_wide, is_tall)
    is_nan = r.test("or_", r.test("isnan", a), r.test("isnan", b))
    is_undefined = r.test("or_", is_both, is_nan)
    found = []
    for x, far, other in ((a, is_wide, is_tall), (b, is_tall, is_wide)):
        usual = r.choose(is_zero, 0, r("true_div", x, size))
        some = r.choose(far, r.with_sign(1, x), r.choose(other, 0, usual))
        found.append(r.choose(is_undefined, float("nan"), some))
    return tuple(found)


def _literal_power(f: Any, exponent: Any) -> complex | None:
    """Return the value of an exponent that is a literal; None if it is none."""
    parts = exponent if isinstance(exponent[0], tuple) else (exponent,)
    if any(kind != "literal" for kind, _ in parts):
        return None
    numbers = [f.literals[i].array for _, i in parts]
    if any(number.size != 1 for number in numbers):
        return None
    return complex(*(float(number.reshape(())) for number in numbers))


def powers(multiply: Rule, invert: Rule) -> Rule:
    """Return the rule of powers.

    Parameters
    ----------
    multiply, invert : callable
        The rules of products and of reciprocals.
    """

    def rule(f: Any, given: Sequence[Any], dtype: str) -> Any:
        base, exponent = f.complex(given[0], dtype), _literal_power(f, given[1])
        if exponent is None:
            return _power(f, base, f.complex(given[1], dtype), dtype, multiply)
        r = _Real(f, COMPLEX[dtype])
        one = tuple(r("second", x, y) for x, y in zip(base, (1, 0), strict=True))
        if exponent == 0:
            return one
        far = abs(exponent.real)
        if exponent.imag != 0 or not far <= MOST_PRODUCTS or far != int(far):
            y = r.number(exponent.real), r.number(exponent.imag)
            return _power(f, base, y, dtype, multiply)
        power = _product_of(f, base, int(far), dtype, multiply)
        found = invert(f, [power], dtype) if exponent.real < 0 else power
        is_zero = r.test("and_", *(r.test("eq", x, 0) for x in base))
        at_zero = 0.0 if exponent.real > 0 else float("nan")
        return tuple(r.choose(is_zero, at_zero, z) for z in found)

    return rule


def _power(f: Any, base: Any, exponent: Any, dtype: str, multiply: Rule) -> Any:
    """Return a power by its logarithm; 0 has powers only for positive real parts, and 0-th ones."""
    r = _Real(f, COMPLEX[dtype])
    found = _exp(f, [multiply(f, [_log(f, [base], dtype), exponent], dtype)], dtype)
    is_zero, is_one = (
        r.test("and_", *(r.test("eq", x, 0) for x in pair)) for pair in (base, exponent)
    )
    at_zero = r.choose(r.test("gt", exponent[0], 0), 0, float("nan"))
    return tuple(
        r.choose(is_one, one, r.choose(is_zero, at_zero, z))
        for z, one in zip(found, (1, 0), strict=True)
    )


def _product_of(f: Any, base: Any, n: int, dtype: str, multiply: Rule) -> Any:
    """Return a power by products of squares, as the processor does."""
    power = None
    while n:
        if n & 1:
            power = base if power is None else multiply(f, [power, base], dtype)
        n >>= 1
        if n:
            base = multiply(f, [base, base], dtype)
    return power


def _of_both(name: str, joined: str) -> Rule:
    """Return the rule of a test of the parts of numbers, joined by ``and_`` or ``or_``."""

    def rule(f: Any, given: Sequence[Any], dtype: str) -> Any:
        wide = "complex64"
        if any(f.dtype(p) != "float32" for v in given for p in _flat(v)):
            wide = "complex128"
        r = _Real(f, COMPLEX[wide])
        pairs = [f.complex(v, wide) for v in given]
        found = [r.test(name, *parts) for parts in zip(*pairs, strict=True)]
        return r.test(joined, *found)

    return rule


def _flat(value: Any) -> Sequence[Any]:
    return value if isinstance(value[0], tuple) else (value,)


#: Rules by the name of the function; those of arithmetic are in ``complex_formulas``.
OF_COMPLEX: dict[str, Rule] = {
    "exp": _exp, "exp2": _exp2, "expm1": _expm1, "log": _log, "log2": _log_of_base(2),
    "log10": _log_of_base(10), "log1p": _log1p, "sqrt": _sqrt, "sin": _sin, "cos": _cos,
    "tan": _tan, "sinh": _sinh, "cosh": _cosh, "tanh": _tanh, "sgn": _sgn,
    "arcsin": _arcsin, "arccos": _arccos, "arctan": _arctan, "arcsinh": _arcsinh,
    "arccosh": _arccosh, "arctanh": _arctanh, "eq": _of_both("eq", "and_"),
    "neq": _of_both("neq", "or_"),
    "isnan": _of_both("isnan", "or_"), "isinf": _of_both("isinf", "or_"),
    "isfinite": _of_both("isfinite", "and_"),
}  # fmt: skip
