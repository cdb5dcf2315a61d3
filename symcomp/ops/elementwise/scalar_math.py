"""The table of scalar functions: arithmetic, powers, exponentials, complex parts.

Each function is one row. In rules, x and y are the arguments, z the result, and g the factor of the
derivative.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from symcomp.core import dtype as dtypes
from symcomp.core.tensor import TensorConstant, TensorVariable
from symcomp.errors import DTypeError
from symcomp.ops.compiled_ufuncs import CompiledFunction
from symcomp.ops.convert import as_tensor_variable, resolve_dtype
from symcomp.ops.elementwise.elemwise import (
    NEGATED,
    ROWS,
    SAME,
    ZERO,
    Elemwise,
    ScalarOp,
    float_rule,
    real_float_rule,
    scalar,
    ufunc_rule,
    upcast_rule,
)
from symcomp.ops.shapes.dimshuffle import DimShuffle

LN2 = float(np.log(2))
LN10 = float(np.log(10))


def _where(condition: Any, a: Any, b: Any) -> Any:
    """Apply ``switch`` of the next file, looked up in the table."""
    return Elemwise(ROWS["switch"]())(condition, a, b)


def _equal(a: Any, b: Any) -> Any:
    return Elemwise(ROWS["eq"]())(a, b)


# ----- conversion


def _cast_row(dtype: str) -> ScalarOp:
    target = dtypes.numpy_dtype(dtype)

    def convert(x: Any) -> Any:
        if x.dtype.kind == "c" and target.kind != "c":
            x = x.real
        return x.astype(target)

    return ScalarOp("cast", 1, convert, lambda x: dtype, (SAME,), parameters=(dtype,))


ROWS["cast"] = _cast_row


def cast(x: Any, dtype: Any) -> TensorVariable:
    """Convert to another dtype; return ``x`` itself if it has this dtype.

    Parameters
    ----------
    x : tensor_like
    dtype : str or numpy.dtype
        ``"floatX"`` stands for ``config.floatX``. A complex tensor cannot become real: take
        ``x.real``.

    Raises
    ------
    DTypeError

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> x = T.dvector("x")
    >>> T.cast(x, "int32").eval({x: [1.9, -1.9]})
    array([ 1, -1], dtype=int32)
    """
    x = as_tensor_variable(x)
    name = resolve_dtype(dtype)
    if dtypes.is_complex(x.dtype) and not dtypes.is_complex(name):
        raise DTypeError(
            f"cast: {x} is {x.dtype}, which {name} cannot hold: take .real, .imag or abs first"
        )
    return x if x.dtype == name else Elemwise(_cast_row(name))(x)


identity = scalar("identity", "x", "A copy of x.", np.copy, dtype=lambda x: x, d=(SAME,))
tensor_copy = identity


def _second_into(x: Any, y: Any, z: Any) -> Any:
    np.copyto(z, y)
    return z


second = scalar(
    "second",
    "x y",
    "y, of the broadcast shape.",
    lambda x, y: np.broadcast_to(y, np.broadcast_shapes(np.shape(x), np.shape(y))).copy(),
    dtype=lambda x, y: y,
    d=(ZERO, SAME),
    into=_second_into,
)

# ----- arithmetic


def _sum_of(*xs: Any) -> Any:
    total = np.add(xs[0], xs[1]) if len(xs) > 1 else np.copy(xs[0])
    for x in xs[2:]:
        total = np.add(total, x)
    return total


def _sum_into(x: Any, *others_and_z: Any) -> Any:
    *others, z = others_and_z
    if not others:
        np.copyto(z, x)
    for y in others:
        x = np.add(x, y, z)
    return z


add = scalar("add", "*x", "x + y + ...", _sum_of, dtype=upcast_rule, d=(SAME,), into=_sum_into)
_mul = scalar(
    "mul", "x y", "x * y", np.multiply, dtype=upcast_rule,
    d=(lambda x, y, z, g: g * y, lambda x, y, z, g: g * x),
)  # fmt: skip


def mul(*factors: Any) -> TensorVariable:
    """Return the product of two or more tensors.

    Parameters
    ----------
    *factors : tensor_like
        Any shapes that broadcast.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> x = T.dvector("x")
    >>> T.mul(x, x, 2).eval({x: [1.0, 3.0]})
    array([ 2., 18.])
    """
    if not factors:
        raise TypeError("mul takes at least 1 argument")
    product = as_tensor_variable(factors[0]) if len(factors) == 1 else _mul(*factors[:2])
    for factor in factors[2:]:
        product = _mul(product, factor)
    return product


mul.op = _mul.op  # type: ignore[attr-defined]
sub = scalar("sub", "x y", "x - y", np.subtract, dtype=ufunc_rule(np.subtract), d=(SAME, NEGATED))
neg = scalar("neg", "x", "-x", np.negative, dtype=ufunc_rule(np.negative), d=(NEGATED,))
true_div = scalar(
    "true_div", "x y", "x / y; integers give float64.", np.true_divide,
    dtype=ufunc_rule(np.true_divide),
    d=(lambda x, y, z, g: g / y, lambda x, y, z, g: -g * z / y),
)  # fmt: skip
int_div = scalar(
    "int_div", "x y", "The floor of x / y.", np.floor_divide, dtype=ufunc_rule(np.floor_divide),
    d=(ZERO, ZERO),
)  # fmt: skip
floor_div = int_div
mod = scalar(
    "mod", "x y", "x - y * floor(x / y); has the sign of y.", np.mod, dtype=ufunc_rule(np.mod),
    d=(SAME, lambda x, y, z, g: -g * int_div(x, y)),
)  # fmt: skip
inv = scalar(
    "reciprocal", "x", "1 / x; integers give a float.", lambda x: 1 / x,
    dtype=lambda x: dtypes.to_float(dtypes.upcast(x, "int32") if dtypes.is_discrete(x) else x),
    d=(lambda x, z, g: -g * z * z,),
)  # fmt: skip
reciprocal = inv


def _ceil_intdiv(x: Any, y: Any) -> Any:
    kind = np.result_type(x, y)
    if kind.kind == "f":
        return -(-x.astype(kind) // y)
    # Unsigned integers have no -x.
    return np.floor_divide(x, y) + (np.mod(x, y) != 0)


ceil_intdiv = scalar(
    "ceil_intdiv", "x y", "The ceiling of x / y, for integers.", _ceil_intdiv,
    dtype=ufunc_rule(np.floor_divide), d=(ZERO, ZERO),
)  # fmt: skip


def divmod(x: Any, y: Any) -> tuple[TensorVariable, TensorVariable]:
    """Return ``(x // y, x % y)``.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> x = T.lscalar("x")
    >>> [int(v.eval({x: 7})) for v in T.divmod(x, 4)]
    [1, 3]
    """
    return int_div(x, y), mod(x, y)


def _power_of_y(x: Any, y: Any, z: Any, g: Any) -> Any:
    # y x^(y-1), with 0 for y = 0 even at x = 0.
    slope = lowered_power(x, y) if _rounds_below(z, y) else _pow(x, y - 1)
    known = _data(y)
    if known is not None and np.all(known != 0):
        return g * y * slope
    slope = power_slope(x, y) if known is None and _rounds_below(z, y) else y * slope
    return _where(_equal(y, 0), 0 * z, g * slope)


def _data(y: Any) -> Any:
    """Return the array of a constant, also with its axes rearranged; else None."""
    while y.owner is not None and isinstance(y.owner.op, DimShuffle):
        y = y.owner.inputs[0]
    return y.data if isinstance(y, TensorConstant) else None


def _rounds_below(z: Any, y: Any) -> bool:
    """Tell where y - 1 may be rounded, where z is x^y: x^(y-1) would multiply that error."""
    if z.dtype != "float64" or y.dtype != "float64":
        return False
    known = _data(y)
    return known is None or bool(np.any((known < 0.5) & (known != np.floor(known))))


power_slope = scalar(
    "power_slope", "x y", "y x ** (y - 1), where the power leaves the range, too.",
    CompiledFunction("power_slope"), dtype=real_float_rule,
    d=(
        lambda x, y, z, g: g * (y - 1) * (y * lowered_power(x, y - 1)),
        lambda x, y, z, g: g * lowered_power(x, y) + _power_log(x, y, z, g),
    ),
    public=False,
)  # fmt: skip
lowered_power = scalar(
    "lowered_power", "x y", "x ** (y - 1), as if y - 1 were not rounded.",
    CompiledFunction("lowered_power"), dtype=real_float_rule,
    d=(
        lambda x, y, z, g: g * (y - 1) * lowered_power(x, y - 1),
        lambda x, y, z, g: _power_log(x, y, z, g),
    ),
    public=False,
)  # fmt: skip


def _power_log(x: Any, y: Any, z: Any, g: Any) -> Any:
    # x^y log x, which tends to 0 at x = 0 for y > 0, where the logarithm alone is -inf.
    at_zero = _equal(x, 0)
    return g * _where(at_zero, 0 * z, z * log(_where(at_zero, 1, x)))


_pow = scalar(
    "pow", "x y", "x ** y", np.power, dtype=ufunc_rule(np.power), d=(_power_of_y, _power_log)
)


def pow(x: Any, y: Any) -> TensorVariable:
    """Compute ``x ** y``.

    Parameters
    ----------
    x, y : tensor_like
        Integers to a negative constant power are refused, as by NumPy.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> x = T.fvector("x")
    >>> T.pow(x, 2).eval({x: [2.0, 3.0]})
    array([4., 9.], dtype=float32)
    """
    base, exponent = Elemwise(ROWS["pow"]()).as_inputs(x, y)
    whole = dtypes.is_discrete(base.dtype) and dtypes.is_discrete(exponent.dtype)
    if whole and isinstance(exponent, TensorConstant) and np.any(exponent.data < 0):
        raise DTypeError(
            f"pow: the integer tensor {base} ({base.dtype}) to the negative power {exponent}: "
            "cast it to a float first"
        )
    return _pow(base, exponent)


sqr = scalar(
    "sqr", "x", "x * x", np.square, dtype=ufunc_rule(np.square), d=(lambda x, z, g: g * 2 * x,)
)
square = sqr
sqrt = scalar(
    "sqrt", "x", "The square root.", np.sqrt, dtype=float_rule, d=(lambda x, z, g: g / z * 0.5,)
)
maximum = scalar(
    "maximum", "x y", "The larger; NaN if either is. Its derivative is shared at ties.",
    np.maximum, dtype=upcast_rule, into=lambda x, y, z: np.maximum(x, y, out=z),
    d=(lambda x, y, z, g: g * _share(x, y), lambda x, y, z, g: g * _share(y, x)),
)  # fmt: skip
minimum = scalar(
    "minimum", "x y", "The smaller; NaN if either is. Its derivative is shared at ties.",
    np.minimum, dtype=upcast_rule, into=lambda x, y, z: np.minimum(x, y, out=z),
    d=(lambda x, y, z, g: g * _share(y, x), lambda x, y, z, g: g * _share(x, y)),
)  # fmt: skip


def _share(x: Any, y: Any) -> Any:
    """Return 1 where x > y, 1/2 where x = y, else 0, in the narrowest float dtype."""
    ahead = Elemwise(ROWS["ge"]())(x, y)
    tied = _equal(x, y)
    return cast(ahead, "float16") * _where(tied, np.float16(0.5), np.float16(1))


# ----- signs and rounding

abs_ = scalar(
    "abs", "x", "The absolute value; real for complex x.", np.abs,
    dtype=ufunc_rule(np.abs),
    d=(lambda x, z, g: _size_tangent(x, g),), L=(lambda x, z, g: g * sgn(x),),
)  # fmt: skip
sgn = scalar(
    "sgn", "x", "-1, 0 or 1; x / abs(x) for complex x.", np.sign, dtype=ufunc_rule(np.sign),
    d=(lambda x, z, g: _sign_tangent(x, z, g),), L=(lambda x, z, g: _sign_tangent(x, z, g),),
)  # fmt: skip
sign = sgn


def _size_tangent(x: Any, g: Any) -> Any:
    return real(g * conj(sgn(x))) if dtypes.is_complex(x.dtype) else g * sgn(x)


def _sign_tangent(x: Any, z: Any, g: Any) -> Any:
    """Return 0 for real x; for complex x (g - z Re(conj(z) g)) / |x|, a symmetric projection."""
    if not dtypes.is_complex(x.dtype):
        return None
    size = abs_(x)
    safe = _where(_equal(size, 0), 1, size)
    return (g - z * real(conj(z) * g)) / safe


ceil = scalar(
    "ceil", "x", "The least integer not below x.", np.ceil, dtype=ufunc_rule(np.ceil), d=(ZERO,)
)
floor = scalar(
    "floor",
    "x",
    "The greatest integer not above x.",
    np.floor,
    dtype=ufunc_rule(np.floor),
    d=(ZERO,),
)
trunc = scalar(
    "trunc", "x", "x without its fraction.", np.trunc, dtype=ufunc_rule(np.trunc), d=(ZERO,)
)
round_half_to_even = scalar(
    "round_half_to_even", "x", "The nearest integer; of two, the even one.",
    lambda x: x.copy() if x.dtype.kind in "iu" else np.rint(x),
    dtype=lambda x: x if dtypes.is_discrete(x) and x != "bool" else dtypes.to_float(x), d=(ZERO,),
)  # fmt: skip


def _round_away(x: Any) -> Any:
    # The number below 1/2: adding 1/2 itself would round 0.49999999999999994 up.
    almost_half = np.nextafter(x.dtype.type(0.5), x.dtype.type(0))
    return np.trunc(x + np.copysign(almost_half, x))


round_half_away_from_zero = scalar(
    "round_half_away_from_zero", "x", "The nearest integer; of two, the larger in magnitude.",
    lambda x: x.copy() if x.dtype.kind in "iu" else _round_away(x),
    dtype=lambda x: x if dtypes.is_discrete(x) and x != "bool" else real_float_rule(x), d=(ZERO,),
)  # fmt: skip


# 10 to a higher power is no float64.
MOST_DECIMALS = 308


def round(x: Any, mode: Any = "half_to_even") -> TensorVariable:
    """Round to integers, or to a number of decimals.

    Parameters
    ----------
    x : tensor_like
    mode : {"half_to_even", "half_away_from_zero"} or int, optional
        The treatment of halves; or, as in NumPy, the number of decimals to keep. None: half to
        even.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> x = T.dvector("x")
    >>> T.round(x).eval({x: [0.5, 1.5]}), T.round(x, "half_away_from_zero").eval({x: [0.5, 1.5]})
    (array([0., 2.]), array([1., 2.]))
    >>> T.round(x, 1).eval({x: [0.25, 1.37]})
    array([0.2, 1.4])
    """
    if isinstance(mode, int) and mode != 0:
        if isinstance(mode, bool) or abs(mode) > MOST_DECIMALS:
            raise ValueError(
                f"round: mode={mode!r}: a number of decimals, at most {MOST_DECIMALS}, is needed"
            )
        scale = 10.0 ** abs(mode)
        x = as_tensor_variable(x)
        if dtypes.is_discrete(x.dtype) and mode > 0:
            return x
        shifted = x * scale if mode > 0 else x / scale
        rounded = round_half_to_even(shifted)
        return cast(rounded / scale if mode > 0 else rounded * scale, x.dtype)
    if mode in ("half_to_even", 0, None):
        return round_half_to_even(x)
    if mode == "half_away_from_zero":
        return round_half_away_from_zero(x)
    raise ValueError(f"round: mode={mode!r}: must be 'half_to_even' or 'half_away_from_zero'")


def iround(x: Any, mode: str = "half_to_even") -> TensorVariable:
    """Round and convert to int64.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> T.iround([0.4, 1.6]).eval()
    array([0, 2])
    """
    return cast(round(x, mode), "int64")


# ----- exponentials and logarithms

exp = scalar("exp", "x", "e ** x", np.exp, dtype=float_rule, d=(lambda x, z, g: g * z,))
exp2 = scalar("exp2", "x", "2 ** x", np.exp2, dtype=float_rule, d=(lambda x, z, g: g * z * LN2,))
expm1 = scalar(
    "expm1", "x", "e ** x - 1, exact near 0.", np.expm1,
    dtype=float_rule, d=(lambda x, z, g: g * exp(x),),
)  # fmt: skip
log = scalar(
    "log", "x", "The natural logarithm.", np.log, dtype=float_rule, d=(lambda x, z, g: g / x,)
)
log2 = scalar(
    "log2",
    "x",
    "The logarithm to base 2.",
    np.log2,
    dtype=float_rule,
    d=(lambda x, z, g: g / (x * LN2),),
)
log10 = scalar(
    "log10",
    "x",
    "The logarithm to base 10.",
    np.log10,
    dtype=float_rule,
    d=(lambda x, z, g: g / (x * LN10),),
)
log1p = scalar(
    "log1p",
    "x",
    "log(1 + x), exact near 0.",
    np.log1p,
    dtype=float_rule,
    d=(lambda x, z, g: g / (1 + x),),
)

# ----- complex numbers

_part = lambda x: dtypes.real_part(x)  # noqa: E731
real = scalar(
    "real", "x", "The real part.", lambda x: np.real(x).copy(), dtype=_part,
    d=(lambda x, z, g: real(g),), L=(SAME,),
)  # fmt: skip
imag = scalar(
    "imag", "x", "The imaginary part.", lambda x: np.imag(x).copy(), dtype=_part,
    d=(lambda x, z, g: imag(g),), L=(lambda x, z, g: g * 1j,),
)  # fmt: skip
conj = scalar(
    "conj", "x", "The complex conjugate.", np.conjugate,
    dtype=lambda x: dtypes.upcast(x, "int8") if x == "bool" else x,
    d=(lambda x, z, g: conj(g),), L=(lambda x, z, g: conj(g),),
)  # fmt: skip


def _angle(x: Any) -> Any:
    # NumPy's angle is float16 for small integers.
    return np.angle(x.astype(np.float64) if x.dtype.kind in "biu" else x)


angle = scalar(
    "angle", "x", "The argument of a complex number.", _angle,
    dtype=lambda x: "float64" if dtypes.is_discrete(x) else dtypes.real_part(x),
    d=(lambda x, z, g: imag(g * conj(x)) / real(x * conj(x)),),
    L=(lambda x, z, g: 1j * g * x / real(x * conj(x)),),
)  # fmt: skip


def _of_parts(x: Any, y: Any) -> Any:
    # x + 1j * y would make NaN of infinite parts.
    kind = dtypes.to_complex(np.result_type(x, y, np.float16).name)
    z = np.empty(np.broadcast_shapes(np.shape(x), np.shape(y)), kind)
    z.real, z.imag = x, y
    return z


complex = scalar(
    "complex", "x y", "x + i y", _of_parts,
    dtype=lambda x, y: dtypes.to_complex(real_float_rule(x, y)),
    d=(lambda x, y, z, g: complex(g, g * 0), lambda x, y, z, g: complex(g * 0, g)),
    L=(lambda x, y, z, g: real(g), lambda x, y, z, g: imag(g)),
)  # fmt: skip


__all__ = [
    "abs_", "add", "angle", "cast", "ceil", "ceil_intdiv", "complex", "conj", "divmod", "exp",
    "exp2", "expm1", "floor", "floor_div", "identity", "imag", "int_div", "inv", "iround", "log",
    "log10", "log1p", "log2", "maximum", "minimum", "mod", "mul", "neg", "pow", "real",
    "reciprocal", "round", "round_half_away_from_zero", "round_half_to_even", "second", "sgn",
    "sign", "sqr", "sqrt", "square", "sub", "tensor_copy", "true_div", "trunc",
]  # fmt: skip
