"""Convert Python values to variables: constants, and the dtype of bare Python numbers."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from symcomp.config import config
from symcomp.core import dtype as dtypes
from symcomp.core.fields import MOST_AXES
from symcomp.core.node import Apply, Variable
from symcomp.core.special_types import none_type
from symcomp.core.tensor import (
    TensorConstant,
    TensorType,
    TensorVariable,
    describe_value,
    refuse_masked,
)
from symcomp.errors import DTypeError, NotScalarConstantError, ShapeError
from symcomp.ops.casting import cast_policy
from symcomp.ops.shapes.dimshuffle import DimShuffle
from symcomp.ops.shapes.stack import Stack


def resolve_dtype(dtype: Any) -> str:
    """Return the name of ``dtype``; None and ``"floatX"`` stand for ``config.floatX``."""
    name = dtypes.canonical("floatX" if dtype is None else dtype, config.floatX)
    if dtype is not None:
        note_float64(name, stacklevel=4)
    return name


def note_float64(dtype: str, stacklevel: int = 3) -> None:
    """Warn or raise, as ``config.warn_float64`` says, if ``dtype`` is float64 and floatX is
    smaller.
    """
    if dtype != "float64" or config.warn_float64 == "ignore" or config.floatX == "float64":
        return
    message = f"a float64 tensor is made while config.floatX is {config.floatX}"
    if config.warn_float64 == "raise":
        raise DTypeError(message)
    warnings.warn(message, stacklevel=stacklevel)


def is_python_number(x: Any) -> bool:
    """Tell whether ``x`` is a bool, int, float or complex itself: a number that adapts to the dtype
    of the tensors around it. Cast policies may add other types.
    """
    return cast_policy().is_number(x)


def constant(
    x: Any, name: str | None = None, ndim: int | None = None, dtype: Any = None
) -> TensorConstant:
    """Make a constant.

    Parameters
    ----------
    x : array_like
        A Python float becomes ``config.floatX``, an int int64, a bool bool; arrays keep their
        dtype.
    name : str, optional
    ndim : int, optional
        Prepend axes of length 1 up to this rank.
    dtype : optional
        Convert to this dtype.

    Raises
    ------
    DTypeError
        If ``x`` is not numeric.
    ShapeError
        If ``x`` has more than ``ndim`` axes.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> T.constant([[1, 2, 3]]).type
    TensorType(int64, (1, 3))
    """
    if isinstance(x, Variable):
        raise DTypeError(f"constant: {x} is symbolic; a constant is made of a value")
    refuse_masked(x)
    try:
        array = np.array(x, copy=True)
    except ValueError as problem:
        raise ShapeError(f"constant: {describe_value(x)} is no array: {problem}") from None
    if not dtypes.is_numeric(array.dtype) or array.dtype.name not in dtypes.ALL:
        raise DTypeError(f"constant: {describe_value(x)} is not numeric (dtype {array.dtype})")
    if dtype is not None:
        array = array.astype(resolve_dtype(dtype))
    elif array.dtype == np.float64:
        if isinstance(x, np.ndarray | np.generic) and not is_python_number(x):
            note_float64("float64")
        else:
            array = array.astype(config.floatX)
    if ndim is not None:
        ndim = as_rank(ndim, "constant")
        if array.ndim > ndim:
            raise ShapeError(f"constant: value of shape {array.shape} has more than {ndim} axes")
        array = array.reshape((1,) * (ndim - array.ndim) + array.shape)
    array.setflags(write=False)
    return TensorConstant(TensorType(array.dtype, array.shape), array, name)


NoneConst = none_type.make_constant(None, name="NoneConst")


def as_tensor_variable(
    x: Any, name: str | None = None, ndim: int | None = None, dtype: Any = None
) -> TensorVariable:
    """Turn ``x`` into a tensor variable.

    Parameters
    ----------
    x : Variable, array_like, or nested lists that contain variables
        Variables pass through; lists with variables are stacked; the rest becomes a constant.
    name : str, optional
        Name of the result where a new variable is made.
    ndim : int, optional
        Rank wanted: axes of length 1 are prepended, or leading axes of length 1 dropped.
    dtype : optional
        Dtype for the values that are made constants.

    Raises
    ------
    DTypeError
        If ``x`` cannot be a tensor.
    ShapeError
        If the rank cannot be made ``ndim``.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> a, b = T.dscalars("a", "b")
    >>> T.as_tensor_variable([a, b, 1.0]).eval({a: 5.0, b: 6.0})
    array([5., 6., 1.])
    """
    if isinstance(x, Apply):
        if len(x.outputs) != 1:
            raise DTypeError(f"as_tensor_variable: {x} has {len(x.outputs)} outputs; pick one")
        x = x.outputs[0]
    ndim = None if ndim is None else as_rank(ndim, "as_tensor_variable")
    if isinstance(x, TensorVariable):
        return x if ndim is None else with_rank(x, ndim)
    if isinstance(x, Variable):
        convert = getattr(x, "as_tensor_variable", None)
        if convert is not None:
            return as_tensor_variable(convert(), name, ndim)
        raise DTypeError(f"as_tensor_variable: {x} has type {x.type}, which is no tensor")
    if isinstance(x, list | tuple) and _has_variables(x):
        stacked = stack_nested(x)
        stacked.name = name if name is not None else stacked.name
        return stacked if ndim is None else with_rank(stacked, ndim)
    return constant(x, name, ndim, dtype)


def _has_variables(items: Sequence[Any]) -> bool:
    pending: list[Any] = list(items)
    while pending:
        item = pending.pop()
        if isinstance(item, Variable):
            return True
        if isinstance(item, list | tuple):
            pending.extend(item)
    return False


def with_rank(x: TensorVariable, ndim: int) -> TensorVariable:
    """Return ``x`` with axes of length 1 prepended, or dropped in front, up to rank ``ndim``."""
    if x.ndim == ndim:
        return x
    if x.ndim < ndim:
        return DimShuffle(x.ndim, ("x",) * (ndim - x.ndim) + tuple(range(x.ndim)))(x)
    extra = x.ndim - ndim
    if any(length != 1 for length in x.type.shape[:extra]):
        raise ShapeError(f"{x} of type {x.type} cannot be seen with {ndim} axes")
    return DimShuffle(x.ndim, tuple(range(extra, x.ndim)))(x)


def as_common(*args: Any, like: Sequence[Any] = ()) -> list[TensorVariable]:
    """Turn all ``args`` into tensor variables; bare Python numbers adapt to the dtype of the
    others.

    A number keeps the dtype of the tensors if its kind is not higher (bool < int < float <
    complex); an integer tensor and a Python float give ``config.floatX`` (``cast_policy="numpy"``:
    float64).

    Parameters
    ----------
    *args
        Variables, arrays, Python numbers.
    like : sequence of str
        More dtypes that the numbers adapt to.

    Raises
    ------
    DTypeError
        If a Python integer does not fit the integer dtype that it meets.
    """
    strong = [None if is_python_number(a) else as_tensor_variable(a) for a in args]
    known = [v.dtype for v in strong if v is not None] + list(like)
    if not known:
        return [as_tensor_variable(a) for a in args]
    met = dtypes.upcast(*known)
    fractional = any(is_python_number(a) and isinstance(a, float | complex) for a in args)
    if dtypes.is_discrete(met) and fractional:
        # NumPy promotes int32 with float32 to float64; here floatX has priority.
        met = cast_policy().met_by_float(met)
        if dtypes.is_float(met) and met != "float64":
            strong = [v if v is None else cast_to(v, met) for v in strong]
    return [_number_as(a, met) if v is None else v for a, v in zip(args, strong, strict=True)]


def _number_as(number: Any, met: str) -> TensorConstant:
    """Return the constant that a Python number becomes among tensors of dtype ``met``."""
    if isinstance(number, bool):
        return constant(number)
    if isinstance(number, int):
        name = cast_policy().integer_among(number, met)
        if dtypes.is_discrete(name):
            limits = np.iinfo(name)
            if not limits.min <= number <= limits.max:
                raise DTypeError(
                    f"the Python integer {number} does not fit {name}, the dtype of the tensor it "
                    "is used "
                    "with: cast the tensor to a wider dtype first"
                )
    elif isinstance(number, float):
        name = "float64" if dtypes.is_discrete(met) else met
    else:
        name = dtypes.to_complex("float64" if dtypes.is_discrete(met) else met)
    with np.errstate(over="ignore"):
        return constant(np.asarray(number).astype(name))


def stack_nested(items: Sequence[Any]) -> TensorVariable:
    """Stack nested lists of variables and numbers into one tensor."""
    elements = [
        stack_nested(item) if isinstance(item, list | tuple) and _has_variables(item) else item
        for item in items
    ]
    return stack_first_axis(elements)


def stack_first_axis(elements: Sequence[Any]) -> TensorVariable:
    """Stack tensors of equal rank along a new first axis, at their common dtype."""
    tensors = as_common(*elements)
    common = dtypes.upcast(*(x.dtype for x in tensors))
    return Stack()(*(cast_to(x, common) for x in tensors))


def cast_to(x: TensorVariable, dtype: str) -> TensorVariable:
    """Return ``x`` cast to ``dtype``; ``x`` itself if it has this dtype."""
    return x if x.dtype == dtype else x.astype(dtype)


def as_int(value: Any, name: str, argument: str, least: int | None = None) -> int:
    """Return an argument as an int; raise if it is a bool, a float or a variable.

    Raises
    ------
    TypeError, ValueError
        They name the function and the argument.
    """
    try:
        found = constant_scalar(value)
    except (NotScalarConstantError, TypeError, ValueError):
        found = None
    whole = found is not None and (found.dtype.kind in "iu" or type(value) is int)
    if not whole or (least is not None and found < least):
        bound = "" if least is None else f" of at least {least}"
        raise (ValueError if whole else TypeError)(
            f"{name}: {argument} must be a constant integer{bound}, got {value!r:.80}"
        )
    return int(found)


def as_rank(value: Any, name: str, argument: str = "ndim") -> int:
    """Return an argument that is a number of axes."""
    ndim = as_int(value, name, argument, 0)
    if ndim > MOST_AXES:
        raise ValueError(f"{name}: {argument} is {ndim}; arrays have at most {MOST_AXES} axes")
    return ndim


def constant_scalar(v: Any) -> Any:
    """Return the value of a scalar that is known when the graph is built.

    Parameters
    ----------
    v : Variable or number

    Returns
    -------
    numpy.ndarray
        0-dimensional.

    Raises
    ------
    NotScalarConstantError
        If ``v`` is not a scalar, or not constant.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> from symcomp.ops.convert import constant_scalar
    >>> int(constant_scalar(T.constant(3)))
    3
    """
    if not isinstance(v, Variable):
        array = np.asarray(v)
        if array.ndim == 0:
            return array
        raise NotScalarConstantError(f"a value of shape {array.shape} is no scalar")
    while v.owner is not None and isinstance(v.owner.op, DimShuffle):
        v = v.owner.inputs[0]
    if isinstance(v, TensorConstant) and np.size(v.data) == 1:
        return np.asarray(v.data).reshape(())
    raise NotScalarConstantError(f"{v} of type {v.type} is no constant scalar")
