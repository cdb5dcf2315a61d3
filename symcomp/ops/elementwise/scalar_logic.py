"""The table of scalar functions, continued: comparisons, logic, bits and choices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from symcomp.core import dtype as dtypes
from symcomp.core.tensor import TensorVariable
from symcomp.errors import DTypeError
from symcomp.ops.casting import cast_policy
from symcomp.ops.convert import as_common, as_tensor_variable, is_python_number
from symcomp.ops.elementwise.elemwise import (
    ZERO,
    bool_rule,
    real_float_rule,
    scalar,
    ufunc_rule,
)
from symcomp.ops.elementwise.scalar_math import abs_, cast, maximum, minimum

# ----- comparisons


def _widen(x: Any, y: Any) -> list[TensorVariable]:
    """Widen Python numbers so that they compare exactly with integer tensors of any dtype, as in
    NumPy.
    """
    if type(x) in (int, float) and not is_python_number(y):
        x = _comparable(x, as_tensor_variable(y).dtype)
    elif type(y) in (int, float) and not is_python_number(x):
        y = _comparable(y, as_tensor_variable(x).dtype)
    return as_common(x, y)


def _comparable(number: float, dtype: str) -> Any:
    """Return ``number``, or an array of a dtype that holds it, where ``dtype`` does not."""
    if not dtypes.is_discrete(dtype) or (dtype == "bool" and isinstance(number, int)):
        return number
    if isinstance(number, float):
        return np.asarray(number)
    limits = np.iinfo(dtype)
    if limits.min <= number <= limits.max:
        return number
    if -(2**63) <= number < 2**63:
        return np.asarray(number, np.int64)
    return np.asarray(number, np.uint64) if 0 <= number < 2**64 else np.asarray(float(number))


def _comparison(name: str, doc: str, ufunc: Any) -> Any:
    reason = "its output is boolean"
    return scalar(name, "x y", doc, ufunc, dtype=bool_rule, no_derivative=reason, adapt=_widen)


lt = _comparison("lt", "x < y", np.less)
gt = _comparison("gt", "x > y", np.greater)
le = _comparison("le", "x <= y", np.less_equal)
ge = _comparison("ge", "x >= y", np.greater_equal)
eq = _comparison("eq", "x == y, elementwise (the operator == compares identity).", np.equal)
neq = _comparison("neq", "x != y, elementwise.", np.not_equal)


def _test(
    name: str, parameters: str, doc: str, function: Any, dtype: Callable[..., str] = bool_rule
) -> Any:
    reason = "its output is boolean"
    return scalar(name, parameters, doc, function, dtype=dtype, no_derivative=reason)


def _real_test_rule(*inputs: str) -> str:
    real_float_rule(*inputs)
    return "bool"


isnan = _test("isnan", "x", "Whether x is NaN.", np.isnan)
isinf = _test("isinf", "x", "Whether x is infinite.", np.isinf)
isfinite = _test("isfinite", "x", "Whether x is neither infinite nor NaN.", np.isfinite)
isposinf = _test(
    "isposinf", "x", "Whether x is +infinity.", lambda x: x == np.inf, dtype=_real_test_rule
)
isneginf = _test(
    "isneginf", "x", "Whether x is -infinity.", lambda x: x == -np.inf, dtype=_real_test_rule
)
logical_and = _test("logical_and", "x y", "Whether both are true (not 0).", np.logical_and)
logical_or = _test("logical_or", "x y", "Whether either is true (not 0).", np.logical_or)
logical_xor = _test("logical_xor", "x y", "Whether just one is true (not 0).", np.logical_xor)
logical_not = _test("logical_not", "x", "Whether x is 0.", np.logical_not)

# ----- bits

_whole = "its output is an integer"
and_ = scalar(
    "and_",
    "x y",
    "Bitwise (for booleans, logical) and.",
    np.bitwise_and,
    dtype=ufunc_rule(np.bitwise_and),
    no_derivative=_whole,
)
or_ = scalar(
    "or_",
    "x y",
    "Bitwise (for booleans, logical) or.",
    np.bitwise_or,
    dtype=ufunc_rule(np.bitwise_or),
    no_derivative=_whole,
)
xor = scalar(
    "xor",
    "x y",
    "Bitwise (for booleans, logical) exclusive or.",
    np.bitwise_xor,
    dtype=ufunc_rule(np.bitwise_xor),
    no_derivative=_whole,
)
invert = scalar(
    "invert",
    "x",
    "All bits (for booleans, the truth) inverted.",
    np.invert,
    dtype=ufunc_rule(np.invert),
    no_derivative=_whole,
)
left_shift = scalar(
    "left_shift",
    "x y",
    "x * 2**y.",
    np.left_shift,
    dtype=ufunc_rule(np.left_shift),
    no_derivative=_whole,
)
right_shift = scalar(
    "right_shift",
    "x y",
    "floor(x / 2**y).",
    np.right_shift,
    dtype=ufunc_rule(np.right_shift),
    no_derivative=_whole,
)
bitwise_and, bitwise_or, bitwise_xor, bitwise_not = and_, or_, xor, invert

# ----- choices


def _chosen(c: Any, x: Any, y: Any) -> Any:
    if x.dtype != y.dtype:
        common = dtypes.upcast(x.dtype.name, y.dtype.name)  # NumPy lacks most of bfloat16's
        x, y = x.astype(common, copy=False), y.astype(common, copy=False)
    return np.where(c, x, y)


def _switch_into(c: Any, x: Any, y: Any, z: Any) -> Any:
    chosen = c != 0
    if z is x:
        np.copyto(z, y, where=~chosen)
        return z
    if z is not y:
        np.copyto(z, y)
    np.copyto(z, x, where=chosen)
    return z


def _as_switched(c: Any, x: Any, y: Any) -> list[Any]:
    numbers = is_python_number(x) and is_python_number(y)
    like = cast_policy().numbers_of_switch() if numbers else ()
    return [as_tensor_variable(c), *as_common(x, y, like=like)]


_switch = scalar(
    "switch", "condition x y", "x where the condition is true (not 0), else y.",
    _chosen,
    dtype=lambda c, x, y: dtypes.upcast(x, y),
    d=(ZERO, lambda c, x, y, z, g: guarded(c, g), lambda c, x, y, z, g: guarded(eq(c, 0), g)),
    adapt=_as_switched,
    into=_switch_into,
)  # fmt: skip
guarded = scalar(
    "guarded", "condition x",
    """x where the condition is true, else 0: what is not chosen has no influence.

    So it is in derivatives. Rewriting takes factors inside, so that an infinite derivative of what
    is not chosen does not become 0 times infinity, which is NaN.""",
    lambda c, x: np.where(c, x, np.zeros((), x.dtype)),
    dtype=lambda c, x: x, d=(ZERO, lambda c, x, z, g: guarded(c, g)), public=False,
)  # fmt: skip


def switch(condition: Any, ift: Any, iff: Any) -> TensorVariable:
    """Return ``ift`` where ``condition`` is true (not 0), else ``iff``, elementwise.

    Both are computed; ``ifelse`` computes only one, for a scalar condition. NaN or infinity in the
    value not chosen affects neither the value nor the gradient.

    Parameters
    ----------
    condition, ift, iff : tensor_like
        Any shapes that broadcast.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> x = T.dvector("x")
    >>> T.switch(x > 0, x, 0).eval({x: [-1.0, 2.0]})
    array([0., 2.])
    """
    return _switch(condition, ift, iff)


switch.op = _switch.op  # type: ignore[attr-defined]


def where(condition: Any, ift: Any = None, iff: Any = None) -> Any:
    """Apply ``switch`` to three arguments; with one, return ``condition.nonzero()`` as NumPy does.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> x = T.dvector("x")
    >>> T.where(x > 0, x, 0.0).eval({x: [-1.0, 2.0]})
    array([0., 2.])
    """
    if ift is None and iff is None:
        return as_tensor_variable(condition).nonzero()
    return switch(condition, ift, iff)


def _clipped(x: Any, a: Any, b: Any) -> Any:
    z = np.minimum(np.maximum(x, a), b)
    if z.dtype.kind == "c":
        return z
    crossed = np.greater(a, b)
    return np.where(crossed & (x < a), a, z) if crossed.any() else z


_clip = scalar(
    "clip", "x lower upper", "lower if x is less, else upper if x is more, else x.", _clipped,
    dtype=lambda x, a, b: dtypes.upcast(x, a, b),
    d=(
        lambda x, a, b, z, g: switch(and_(ge(x, a), le(x, b)), g, 0),
        lambda x, a, b, z, g: switch(lt(x, a), g, 0),
        lambda x, a, b, z, g: switch(and_(gt(x, b), ge(x, a)), g, 0),
    ),
)  # fmt: skip


def clip(x: Any, min: Any = None, max: Any = None) -> TensorVariable:
    """Limit ``x`` to at least ``min`` and at most ``max``. The derivative is 1 between, bounds
    included.

    If ``min`` is above ``max``, values below ``min`` become ``min``, and all others ``max``, as in
    Theano; in NumPy all become ``max``.

    Parameters
    ----------
    x : tensor_like
    min, max : tensor_like, optional
        None: no bound.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> x = T.dvector("x")
    >>> T.clip(x, 0, 1).eval({x: [-1.0, 0.5, 2.0]})
    array([0. , 0.5, 1. ])
    """
    if min is None and max is None:
        return as_tensor_variable(x)
    if max is None:
        return maximum(x, min)
    if min is None:
        return minimum(x, max)
    return _clip(x, min, max)


clip.op = _clip.op  # type: ignore[attr-defined]


def largest(*args: Any) -> TensorVariable:
    """Return the elementwise maximum of two or more tensors.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> T.largest([1.0, 5.0], [2.0, 3.0], [0.0, 4.0]).eval()
    array([2., 5.])
    """
    return _fold(maximum, args, "largest")


def smallest(*args: Any) -> TensorVariable:
    """Return the elementwise minimum of two or more tensors.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> T.smallest([1.0, 5.0], [2.0, 3.0]).eval()
    array([1., 3.])
    """
    return _fold(minimum, args, "smallest")


def _fold(binary: Any, args: tuple[Any, ...], name: str) -> TensorVariable:
    if not args:
        raise TypeError(f"{name} takes at least 1 argument")
    result = as_tensor_variable(args[0])
    for arg in args[1:]:
        result = binary(result, arg)
    return result


def isclose(
    a: Any, b: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False
) -> TensorVariable:
    """Tell whether ``abs(a - b) <= atol + rtol * abs(b)``, elementwise; equal infinities are close.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> x = T.dvector("x")
    >>> T.isclose(x, 1.0).eval({x: [1.0, 1.1]})
    array([ True, False])
    """
    a, b = as_common(a, b)
    finite = logical_and(isfinite(a), isfinite(b))
    near = le(abs_(_difference(a, b)), atol + rtol * abs_(cast(b, dtypes.to_float(b.dtype))))
    close = or_(and_(finite, near), eq(a, b))
    return or_(close, and_(isnan(a), isnan(b))) if equal_nan else close


def _difference(a: Any, b: Any) -> Any:
    common = dtypes.to_float(dtypes.upcast(a.dtype, b.dtype))
    return cast(a, common) - cast(b, common)


def allclose(
    a: Any, b: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False
) -> TensorVariable:
    """Tell whether all elements are close; see ``isclose``.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> T.allclose([1.0, 2.0], [1.0, 2.0 + 1e-9]).eval()
    array(True)
    """
    return isclose(a, b, rtol, atol, equal_nan).all()


def nan_to_num(
    x: Any, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None
) -> TensorVariable:
    """Replace NaN and infinities by numbers (by default 0 and the extremes of the dtype).

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> x = T.dvector("x")
    >>> T.nan_to_num(x, posinf=9.0).eval({x: [float("nan"), float("inf")]})
    array([0., 9.])
    """
    x = as_tensor_variable(x)
    if dtypes.is_discrete(x.dtype):
        return x
    if dtypes.is_complex(x.dtype):
        raise DTypeError(f"nan_to_num: {x} is {x.dtype}; take .real and .imag apart")
    limits = dtypes.limits(x.dtype)
    x = switch(isnan(x), nan, x)
    x = switch(isposinf(x), float(limits.max) if posinf is None else posinf, x)
    return switch(isneginf(x), float(limits.min) if neginf is None else neginf, x)


__all__ = [
    "allclose", "and_", "bitwise_and", "bitwise_not", "bitwise_or", "bitwise_xor", "clip", "eq",
    "ge", "gt", "invert", "isclose", "isfinite", "isinf", "isnan", "isneginf", "isposinf",
    "largest", "le", "left_shift", "logical_and", "logical_not", "logical_or", "logical_xor",
    "lt", "nan_to_num", "neq", "or_", "right_shift", "smallest", "switch", "where", "xor",
]  # fmt: skip
