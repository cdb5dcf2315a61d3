"""Where ``theano.tensor`` differs from ``symcomp.tensor``: the same names, other arguments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from symcomp.compat.missing import StandIn
from symcomp.compile.shared import SharedVariable
from symcomp.compile.verify_grad import verify_grad as verify_gradient
from symcomp.core import dtype as dtypes
from symcomp.core.node import Constant
from symcomp.core.tensor import TensorType as RealTensorType
from symcomp.core.tensor import TensorVariable
from symcomp.errors import GradientError
from symcomp.ops import nnet, scalar_math, variables
from symcomp.ops.axes import shape_padleft
from symcomp.ops.convert import as_tensor_variable, resolve_dtype
from symcomp.ops.index import getitem
from symcomp.ops.linalg import norm as norm_of
from symcomp.ops.scalar_math import cast
from symcomp.ops.shape import patternbroadcast
from symcomp.ops.windows import convolve
from symcomp.rewrite.rule import elementwise

__all__ = [
    "CASTS", "CONSTRUCTORS_OF_SEVERAL", "conv2d", "DTYPES", "logsoftmax", "logsoftmax_op", "norm",
    "PlainTensorVariable", "power", "Rebroadcast", "softmax", "softmax_op", "tensor", "TensorType",
    "verify_grad",
]  # fmt: skip


class _TensorTypes(StandIn):
    """The class TensorType, whose second argument is the broadcastable pattern, also of 0 and 1."""

    def __call__(self, dtype: Any, broadcastable: Sequence[Any], name: str | None = None) -> Any:
        return RealTensorType(resolve_dtype(dtype), broadcastable=tuple(map(bool, broadcastable)))

    def __getattr__(self, name: str) -> Any:
        return getattr(RealTensorType, name)

    def __instancecheck__(self, instance: Any) -> bool:
        return isinstance(instance, RealTensorType)

    def __subclasscheck__(self, subclass: Any) -> bool:
        return issubclass(subclass, RealTensorType)

    def __mro_entries__(self, bases: tuple[Any, ...]) -> tuple[type, ...]:
        return (RealTensorType,)


TensorType = _TensorTypes("theano.tensor.TensorType")


class _PlainTensors(StandIn):
    """The class TensorVariable, of which Theano's shared variables and constants are none."""

    def __call__(self, type: RealTensorType, *parameters: Any, **named: Any) -> Any:
        return TensorVariable(type, *parameters, **named)

    def __instancecheck__(self, instance: Any) -> bool:
        return isinstance(instance, TensorVariable) and not isinstance(
            instance, SharedVariable | Constant
        )

    def __mro_entries__(self, bases: tuple[Any, ...]) -> tuple[type, ...]:
        return (TensorVariable,)


PlainTensorVariable = _PlainTensors("theano.tensor.TensorVariable")


def tensor(dtype: Any, broadcastable: Sequence[Any], name: str | None = None) -> TensorVariable:
    """A symbolic tensor, its first argument the dtype."""
    return TensorType(dtype, broadcastable)(name)


def _several(make: Callable[..., TensorVariable]) -> Callable[..., Any]:
    """The plural of a constructor: a number, names, or one string with a name of each letter."""

    def make_several(*names: Any) -> Any:
        wanted = names[0] if len(names) == 1 else names
        if isinstance(wanted, int):
            wanted = [None] * wanted
        made = [make(name) for name in wanted]
        return made[0] if len(made) == 1 else made

    return make_several


def _plurals() -> dict[str, Callable[..., Any]]:
    return {
        prefix + plural: _several(variables.NAMES[prefix + word])
        for word, plural in variables.PLURALS.items()
        for prefix in ("", "i", "l", "f", "d")
    }


CONSTRUCTORS_OF_SEVERAL = _plurals()


def as_array(self: TensorVariable, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
    """A scalar as an object of NumPy's, so that ``np.prod([n, 2])`` is an expression."""
    if self.ndim > 0 or dtype not in (None, object):
        raise TypeError(
            f"NumPy asks for the value of the symbolic variable {self}, which is not known when "
            "the graph is built: use the function of theano.tensor"
        )
    array = np.empty((), object)
    array[()] = self
    return array


def is_there(self: TensorVariable) -> bool:
    """True, so that ``if bias:`` asks whether there is one, as in Theano; not of a comparison."""
    if elementwise(self, "lt", "le", "gt", "ge"):
        raise TypeError(
            f"the truth of the comparison {self} is not known when the graph is built: use switch "
            "or ifelse"
        )
    return True


def by_index(self: TensorVariable, key: Any) -> TensorVariable:
    """``x[key]``, where a list with slices in it is taken as a tuple, as NumPy once did."""
    listed = isinstance(key, list) and any(isinstance(entry, slice) for entry in key)
    return getitem(self, tuple(key) if listed else key)


_numpy_function = vars(TensorVariable)["__array_function__"]


def as_numpy_function(self: TensorVariable, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
    """NumPy's functions; ``np.atleast_1d(x)`` is a vector of one object, to go through."""
    if func is not np.atleast_1d or len(args) > 1:
        return _numpy_function(self, func, types, args, kwargs)
    objects = np.empty(1, object)
    objects[0] = self
    return objects


def power(x: Any, y: Any) -> TensorVariable:
    """``x ** y``; of integers to a negative constant power, which symcomp refuses, as floats."""
    base, exponent = as_tensor_variable(x), as_tensor_variable(y)
    whole = dtypes.is_discrete(base.dtype) and dtypes.is_discrete(exponent.dtype)
    if whole and isinstance(exponent, Constant) and np.any(exponent.data < 0):
        return scalar_math.pow(cast(base, "floatX"), y)
    return scalar_math.pow(x, y)


# Methods of variables that differ; those of symcomp refuse.
MEMBERS = {
    "__array__": as_array,
    "__array_function__": as_numpy_function,
    "__bool__": is_there,
    "__getitem__": by_index,
    "__pow__": power,
}


class Rebroadcast:
    """The op that declares lengths: pairs of an axis and whether its length is 1."""

    def __init__(self, *axis: tuple[int, bool]) -> None:
        self.axis = {int(i): bool(one) for i, one in axis}

    def __call__(self, x: Any) -> TensorVariable:
        x = as_tensor_variable(x)
        return patternbroadcast(
            x, [self.axis.get(i, known) for i, known in enumerate(x.broadcastable)]
        )


def verify_grad(
    fun: Callable[..., Any],
    pt: Sequence[Any],
    n_tests: int = 2,
    rng: Any = None,
    eps: float | None = None,
    out_type: Any = None,
    abs_tol: float | None = None,
    rel_tol: float | None = None,
    mode: Any = None,
    cast_to_output_type: bool = False,
    no_debug_ref: bool = True,
) -> None:
    """Compare the gradient (not the R-op) with finite differences.

    ``rng`` may be a RandomState, or the module ``numpy.random``.
    """
    if hasattr(rng, "randint"):
        rng = np.random.default_rng(rng.randint(2**31))
    verify_gradient(
        fun, pt, n_tests, rng, eps, out_type, abs_tol, rel_tol, mode, cast_to_output_type,
        forward=False,
    )  # fmt: skip


verify_grad.E_grad = GradientError  # type: ignore[attr-defined]


def norm(x: Any, ord: Any) -> TensorVariable:
    """``nlinalg.norm``, where infinity may be written "inf"."""
    return norm_of(x, {"inf": np.inf, "-inf": -np.inf}.get(ord, ord))


# -- theano.tensor.nnet


def softmax(c: Any) -> TensorVariable:
    """Of the rows of a matrix; a vector is taken as a matrix of one row, and so is its result."""
    return nnet.softmax(_as_rows("softmax", c))


def logsoftmax(c: Any) -> TensorVariable:
    """The logarithm of ``softmax``."""
    return nnet.log_softmax(_as_rows("logsoftmax", c))


softmax_op, logsoftmax_op = softmax, logsoftmax

# What says how the C code of ``theano.tensor.nnet.conv.conv2d`` is written.
_OF_C_CODE = frozenset(
    ["openmp", "unroll_batch", "unroll_kern", "unroll_patch", "verbose", "version"]
)


def conv2d(
    input: Any,
    filters: Any,
    image_shape: Any = None,
    filter_shape: Any = None,
    border_mode: str = "valid",
    subsample: Any = (1, 1),
    **options: Any,
) -> TensorVariable:
    """``theano.tensor.nnet.conv.conv2d``, the first one, whose options are about its C code."""
    for name, value in options.items():
        if name not in _OF_C_CODE and value is not None:
            raise NotImplementedError(f"theano.tensor.nnet.conv.conv2d: {name}={value!r}")
    return convolve.conv2d(input, filters, image_shape, filter_shape, border_mode, subsample)


def _as_rows(name: str, c: Any) -> TensorVariable:
    c = as_tensor_variable(c)
    if c.ndim not in (1, 2):
        raise ValueError(f"{name}: its argument must have 1 or 2 axes, but {c} has {c.ndim}")
    return shape_padleft(c) if c.ndim == 1 else c


# -- what Theano's modules hold beside functions

CASTS = {f"_convert_to_{dtype}": partial(cast, dtype=dtype) for dtype in dtypes.ALL}

DTYPES = {
    "all_dtypes": list(dtypes.ALL),
    "complex_dtypes": list(dtypes.COMPLEXES),
    "continuous_dtypes": list(dtypes.CONTINUOUS),
    "discrete_dtypes": list(dtypes.DISCRETE),
    "float_dtypes": list(dtypes.FLOATS),
    "int_dtypes": list(dtypes.INTEGERS),
    "integer_dtypes": [*dtypes.INTEGERS, *dtypes.UNSIGNED],
    "uint_dtypes": list(dtypes.UNSIGNED),
}
