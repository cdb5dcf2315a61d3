"""Reductions, as users call them."""

from __future__ import annotations

from typing import Any

from symcomp.core import dtype as dtypes
from symcomp.core.tensor import TensorVariable
from symcomp.errors import DTypeError
from symcomp.ops.convert import as_tensor_variable
from symcomp.ops.elementwise.scalar_math import cast, conj, maximum, real, sqr, sqrt
from symcomp.ops.reductions.reduce import REDUCTIONS, ArgReduce, Reduce
from symcomp.ops.shapes.axes import expand_dims
from symcomp.ops.shapes.shape import normalize_axes, product_of, shape_tuple


def _reduce(
    name: str, x: Any, axis: Any, dtype: Any, keepdims: bool, acc_dtype: Any
) -> TensorVariable:
    x = as_tensor_variable(x)
    axes = normalize_axes(name, axis, x.ndim)
    chosen = None if dtype is None else dtypes.canonical(dtype)
    accumulate = None if acc_dtype is None else dtypes.canonical(acc_dtype)
    z = Reduce(REDUCTIONS[name], axes, chosen, accumulate)(x)
    return expand_dims(z, z.owner.op.axes) if keepdims else z


def sum(
    input: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False, acc_dtype: Any = None
) -> TensorVariable:
    """Return the sum over axes.

    Parameters
    ----------
    input : tensor_like
    axis : int or sequence of int, optional
        By default all.
    dtype : optional
        The dtype of the result; by default that of the input, but at least 64 bits for integers.
    keepdims : bool
        Keep the axes, at length 1.
    acc_dtype : optional
        Dtype to add in; by default that of the result, float32 for float16 and bfloat16.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> x = T.dmatrix("x")
    >>> T.sum(x, axis=0).eval({x: [[1, 2], [3, 4]]})
    array([4., 6.])
    """
    return _reduce("sum", input, axis, dtype, keepdims, acc_dtype)


def prod(
    input: Any,
    axis: Any = None,
    dtype: Any = None,
    keepdims: bool = False,
    acc_dtype: Any = None,
    no_zeros_in_input: bool = False,
) -> TensorVariable:
    """Return the product over axes; see ``sum``.

    ``no_zeros_in_input`` is accepted for compatibility with Theano: the gradient is exact with and
    without zeros.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> x = T.dvector("x")
    >>> T.prod(x).eval({x: [2, 3]})
    array(6.)
    """
    return _reduce("prod", input, axis, dtype, keepdims, acc_dtype)


def max(x: Any, axis: Any = None, keepdims: bool = False) -> TensorVariable:
    """Return the largest element over axes; NaN if one is. Its gradient is shared evenly among
    ties.

    Parameters
    ----------
    x : tensor_like
    axis : int or sequence of int, optional
    keepdims : bool

    Raises
    ------
    ShapeError
        If there are no elements.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> x = T.dmatrix("x")
    >>> T.max(x, axis=1).eval({x: [[1, 2], [3, 4]]})
    array([2., 4.])
    """
    return _reduce("max", x, axis, None, keepdims, None)


def min(x: Any, axis: Any = None, keepdims: bool = False) -> TensorVariable:
    """Return the smallest element over axes; see ``max``.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> T.min([[3.0, 1.0], [2.0, 5.0]], axis=0).eval()
    array([2., 1.])
    """
    return _reduce("min", x, axis, None, keepdims, None)


def any(x: Any, axis: Any = None, keepdims: bool = False) -> TensorVariable:
    """Tell whether any element over axes is true (not 0).

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> T.any([[True, False], [False, False]], axis=1).eval()
    array([ True, False])
    """
    return _reduce("any", x, axis, None, keepdims, None)


def all(x: Any, axis: Any = None, keepdims: bool = False) -> TensorVariable:
    """Tell whether all elements over axes are true (not 0).

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> T.all([[True, False], [True, True]], axis=1).eval()
    array([False,  True])
    """
    return _reduce("all", x, axis, None, keepdims, None)


def _count(x: TensorVariable, axes: tuple[int, ...], dtype: str) -> TensorVariable:
    lengths = shape_tuple(x)
    return cast(as_tensor_variable(product_of([lengths[a] for a in axes])), dtype)


def mean(
    input: Any,
    axis: Any = None,
    dtype: Any = None,
    op: bool = False,
    keepdims: bool = False,
    acc_dtype: Any = None,
) -> TensorVariable:
    """Return the arithmetic mean over axes.

    Parameters
    ----------
    input : tensor_like
    axis : int or sequence of int, optional
    dtype : optional
        The dtype of the sum, and, unless discrete, of the result; by default that of the input,
        float64 for integers. The mean of sums of integers is float64.
    op : bool
        Accepted for Theano's sake.
    keepdims : bool
    acc_dtype : optional
        Dtype to add in.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> x = T.ivector("x")
    >>> T.mean(x).eval({x: [1, 2]})
    array(1.5)
    """
    x = as_tensor_variable(input)
    axes = normalize_axes("mean", axis, x.ndim)
    chosen = None if dtype is None else dtypes.canonical(dtype)
    if chosen is not None and dtypes.is_discrete(chosen):
        total = cast(_reduce("sum", x, axes, chosen, keepdims, acc_dtype), "float64")
        return total / _count(x, axes, "float64")
    kind = chosen or ("float64" if dtypes.is_discrete(x.dtype) else x.dtype)
    work = dtypes.working(kind)
    total = _reduce(
        "sum", cast(x, kind) if dtypes.is_discrete(x.dtype) else x, axes, work, keepdims, acc_dtype
    )
    count = _count(x, axes, dtypes.real_part(work))
    return cast(total / count, kind)


def var(
    input: Any, axis: Any = None, ddof: int = 0, keepdims: bool = False, corrected: bool = False
) -> TensorVariable:
    """Return the variance over axes, computed from the deviations from the mean.

    Parameters
    ----------
    input : tensor_like
    axis : int or sequence of int, optional
    ddof : int
        The divisor is the number of elements less ``ddof``.
    keepdims : bool
    corrected : bool
        Subtract the square of the mean deviation, which is 0 but for rounding (Chan, Golub and
        LeVeque, 1983,
        "Algorithms for computing the sample variance").

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> x = T.dvector("x")
    >>> T.var(x).eval({x: [1, 3]})
    array(1.)
    """
    x = as_tensor_variable(input)
    return cast(_variance("var", x, axis, ddof, keepdims, corrected), _spread_dtype(x))


def _spread_dtype(x: TensorVariable) -> str:
    """Return the dtype of the variance of x."""
    return "float64" if dtypes.is_discrete(x.dtype) else dtypes.real_part(x.dtype)


def _variance(
    name: str, x: TensorVariable, axis: Any, ddof: Any, keepdims: bool, corrected: bool
) -> TensorVariable:
    """Compute the variance, in float32 for float16, whose squares end at 65504, and bfloat16."""
    axes = normalize_axes(name, axis, x.ndim)
    ddof = _as_ddof(name, ddof)
    x = cast(x, "float64" if dtypes.is_discrete(x.dtype) else dtypes.working(x.dtype))
    deviation = x - mean(x, axes, keepdims=True)
    squares = real(deviation * conj(deviation)) if dtypes.is_complex(x.dtype) else sqr(deviation)
    count = _count(x, axes, squares.dtype)
    total = sum(squares, axes, keepdims=keepdims)
    if corrected:
        drift = sum(deviation, axes, keepdims=keepdims)
        total = total - real(drift * conj(drift)) / count
    return total / maximum(count - ddof, 0)


def _as_ddof(name: str, ddof: Any) -> Any:
    """Return the number subtracted from the number of elements: a real number, or a scalar
    variable.
    """
    try:
        v = as_tensor_variable(ddof)
    except (TypeError, ValueError):
        v = None
    if v is None or v.ndim or v.dtype == "bool" or dtypes.is_complex(v.dtype):
        raise TypeError(f"{name}: ddof is {ddof!r:.80}; a real number is needed")
    return ddof


def std(
    input: Any, axis: Any = None, ddof: int = 0, keepdims: bool = False, corrected: bool = False
) -> TensorVariable:
    """Return the standard deviation, the square root of ``var``; where it is 0, so is the gradient.

    Parameters are those of ``var``.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> x = T.dvector("x")
    >>> T.std(x).eval({x: [1, 3]})
    array(1.)
    """
    x = as_tensor_variable(input)
    return cast(sqrt(_variance("std", x, axis, ddof, keepdims, corrected)), _spread_dtype(x))


def ptp(a: Any, axis: Any = None, keepdims: bool = False) -> TensorVariable:
    """Return the largest element minus the smallest.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> x = T.dvector("x")
    >>> T.ptp(x).eval({x: [1, 5, 2]})
    array(4.)
    """
    a = as_tensor_variable(a)
    if a.dtype == "bool":
        raise DTypeError(f"ptp: {a} is bool, which has no difference: cast it to an integer dtype")
    return max(a, axis, keepdims) - min(a, axis, keepdims)


def _arg(which: str, x: Any, axis: Any, keepdims: bool) -> TensorVariable:
    x = as_tensor_variable(x)
    axes = normalize_axes(which, axis, x.ndim)
    z = ArgReduce(which, axes)(x)
    return expand_dims(z, axes) if keepdims else z


def argmax(x: Any, axis: Any = None, keepdims: bool = False) -> TensorVariable:
    """Return the position of the first largest element (the first NaN, if there is one).

    Parameters
    ----------
    x : tensor_like
    axis : int or sequence of int, optional
        For several, the position counts through them in row-major order; by default all.
    keepdims : bool

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> x = T.dmatrix("x")
    >>> T.argmax(x, axis=1).eval({x: [[1, 2], [4, 3]]})
    array([1, 0])
    """
    return _arg("argmax", x, axis, keepdims)


def argmin(x: Any, axis: Any = None, keepdims: bool = False) -> TensorVariable:
    """Return the position of the first smallest element; see ``argmax``.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> T.argmin([3.0, 1.0, 2.0]).eval()
    array(1)
    """
    return _arg("argmin", x, axis, keepdims)


def max_and_argmax(a: Any, axis: Any = None, keepdims: bool = False) -> list[TensorVariable]:
    """Return ``[max(a), argmax(a)]``.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> x = T.dvector("x")
    >>> [z.eval({x: [1, 5, 2]}).item() for z in T.max_and_argmax(x)]
    [5.0, 1]
    """
    return [max(a, axis, keepdims), argmax(a, axis, keepdims)]


__all__ = [
    "all", "any", "argmax", "argmin", "max", "max_and_argmax", "mean", "min", "prod", "ptp", "std",
    "sum", "var",
]  # fmt: skip
