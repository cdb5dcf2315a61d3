"""Differences between ``theano.tensor`` and ``symcomp.tensor``: the same names, other arguments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from symcomp.autodiff.check import NumericGradient
from symcomp.compat.missing import Adapted, StandIn
from symcomp.compile.shared import SharedVariable
from symcomp.compile.verify_grad import verify_grad as verify_gradient
from symcomp.core import dtype as dtypes
from symcomp.core.node import Constant, Variable
from symcomp.core.tensor import TensorType as RealTensorType
from symcomp.core.tensor import TensorVariable
from symcomp.errors import GradientError, NotScalarConstantError
from symcomp.ops import convert, variables
from symcomp.ops.constant_values import get_scalar_constant_value
from symcomp.ops.control.conditions import Assert
from symcomp.ops.convert import (
    as_tensor_variable,
    is_python_number,
    resolve_dtype,
    stack_first_axis,
)
from symcomp.ops.elementwise import scalar_logic, scalar_math
from symcomp.ops.elementwise.scalar_logic import eq
from symcomp.ops.elementwise.scalar_math import abs_, cast
from symcomp.ops.indexing.subtensors import getitem, inc_subtensor, set_subtensor
from symcomp.ops.linalg.decompositions import svd
from symcomp.ops.linalg.functions import norm as norm_of
from symcomp.ops.shapes.axes import dimshuffle
from symcomp.ops.shapes.reshaping import patternbroadcast
from symcomp.ops.shapes.reshaping import specify_shape as specify_lengths
from symcomp.rewrite.rule import elementwise

__all__ = [
    "CASTS", "CONSTRUCTORS_OF_SEVERAL", "DTYPES", "make_vector", "norm", "ONLY_THEANOS",
    "PlainTensorVariable", "power", "Rebroadcast", "tensor", "TensorType",
    "TYPES_OF_SCALARS", "verify_grad",
]  # fmt: skip


def _tensor_type(dtype: Any, broadcastable: Sequence[Any], name: str | None = None) -> Any:
    """Make a TensorType, whose second argument is the broadcastable pattern, also of 0 and 1."""
    return RealTensorType(resolve_dtype(dtype), broadcastable=tuple(map(bool, broadcastable)))


TensorType = Adapted("theano.tensor.TensorType", RealTensorType, _tensor_type)


class _PlainTensors(StandIn):
    """The class TensorVariable without Theano's shared variables and constants as instances."""

    def __call__(self, type: RealTensorType, *parameters: Any, **named: Any) -> Any:
        return TensorVariable(type, *parameters, **named)

    def __instancecheck__(self, instance: Any) -> bool:
        return isinstance(instance, TensorVariable) and not isinstance(
            instance, SharedVariable | Constant
        )

    def __mro_entries__(self, bases: tuple[Any, ...]) -> tuple[type, ...]:
        return (TensorVariable,)


PlainTensorVariable = _PlainTensors("theano.tensor.TensorVariable")


def constant(x: Any, name: str | None = None, ndim: int | None = None, dtype: Any = None) -> Any:
    """Make a constant; a Python integer gets the narrowest dtype, so that it keeps float32."""
    return convert.constant(x, name, ndim, _small(x) if dtype is None else dtype)


def as_tensor(x: Any, name: str | None = None, ndim: int | None = None, dtype: Any = None) -> Any:
    """Return ``as_tensor_variable``, with Python integers converted as by ``constant``."""
    return convert.as_tensor_variable(x, name, ndim, _small(x) if dtype is None else dtype)


def _small(x: Any) -> str | None:
    """Return the first of int8 to int64 that holds a Python integer; None for other objects."""
    if type(x) is not int:
        return None
    fitting = (n for n in dtypes.INTEGERS if np.iinfo(n).min <= x <= np.iinfo(n).max)
    return next(fitting, None)


def tensor(dtype: Any, broadcastable: Sequence[Any], name: str | None = None) -> TensorVariable:
    """Make a symbolic tensor; the first argument is the dtype."""
    return TensorType(dtype, broadcastable)(name)


def _several(make: Callable[..., TensorVariable]) -> Callable[..., Any]:
    """Return the plural of a constructor: it takes a number, names, or one string of letters."""

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
    """Return a scalar as an object array of NumPy, so that ``np.prod([n, 2])`` is an expression."""
    if self.ndim > 0 or dtype not in (None, object):
        raise TypeError(
            f"NumPy asks for the value of the symbolic variable {self}, which is not known when "
            "the graph is built: use the function of theano.tensor"
        )
    array = np.empty((), object)
    array[()] = self
    return array


def is_there(self: TensorVariable) -> bool:
    """Return True, so that ``if bias:`` tests for existence, as in Theano; comparisons raise."""
    if elementwise(self, "lt", "le", "gt", "ge"):
        raise TypeError(
            f"the truth of the comparison {self} is not known when the graph is built: use switch "
            "or ifelse"
        )
    return True


def by_index(self: TensorVariable, key: Any) -> TensorVariable:
    """Return ``self[key]``, where a list that contains slices is a tuple, as NumPy once had it.

    As in Theano, a key with a new axis, ``mask[:, None]``, drops the axes after its own if they are
    known to have length 1.
    """
    if isinstance(key, list) and any(isinstance(entry, slice) for entry in key):
        key = tuple(key)
    parts = key if isinstance(key, tuple) else (key,)
    known = sum(part is not None for part in parts)
    rest = self.broadcastable[known:]
    if known < len(parts) and rest and all(rest) and all(map(_is_basic, parts)):
        return getitem(dimshuffle(self, *range(known)), key)
    return getitem(self, key)


def _is_basic(part: Any) -> bool:
    """Tell whether an index is None, a slice or an integer: neither an array nor ``...``."""
    if isinstance(part, TensorVariable):
        return part.ndim == 0 and part.dtype != "bool"
    return part is None or isinstance(part, slice | int | np.integer)


_numpy_function = vars(TensorVariable)["__array_function__"]


def as_numpy_function(self: TensorVariable, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
    """Apply NumPy's functions; ``np.atleast_1d(x)`` is a vector of one object, to iterate over."""
    if func is not np.atleast_1d or len(args) > 1:
        return _numpy_function(self, func, types, args, kwargs)
    objects = np.empty(1, object)
    objects[0] = self
    return objects


def power(x: Any, y: Any) -> TensorVariable:
    """Compute ``x ** y``; integers to a negative constant power, which symcomp refuses, as floats.
    """
    base, exponent = as_tensor_variable(x), as_tensor_variable(y)
    whole = dtypes.is_discrete(base.dtype) and dtypes.is_discrete(exponent.dtype)
    if whole and isinstance(exponent, Constant) and np.any(exponent.data < 0):
        return scalar_math.pow(cast(base, "floatX"), y)
    return scalar_math.pow(x, y)


# Methods of variables that differ from symcomp's, which raise here.
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
    """Compute ``nlinalg.norm``: of a vector or of a matrix, as ``numpy.linalg.norm`` does."""
    x = as_tensor_variable(x)
    if x.ndim == 0:
        raise ValueError(f"norm: x is the scalar {x}; it must have an axis")
    if x.ndim > 2:
        raise NotImplementedError(f"norm: x is {x.type}, of more than 2 axes")
    ord = {"inf": np.inf, "-inf": -np.inf, None: 2 if x.ndim == 1 else "fro"}.get(ord, ord)
    if x.ndim == 1:
        if isinstance(ord, str):
            raise ValueError(f"norm: ord={ord!r} is for matrices; x is {x.type}")
        return norm_of(x, ord)
    if ord == "fro":
        return norm_of(x, 2)
    if ord in (np.inf, -np.inf, 1, -1):
        sums = abs_(x).sum(axis=1 if ord in (np.inf, -np.inf) else 0)
        return sums.max() if ord > 0 else sums.min()
    if ord in (2, -2):
        values = svd(x, compute_uv=False)
        return values.max() if ord > 0 else values.min()
    raise ValueError(
        f"norm: ord={ord!r} is none of a matrix's: 'fro', inf, 1, 2 or their negatives"
    )


# -- names that only Theano has


def extract_constant(x: Any, elemwise: bool = True, only_process_constants: bool = False) -> Any:
    """Return the value of a scalar if it is known, else the variable itself."""
    try:
        return get_scalar_constant_value(x, elemwise, only_process_constants)
    except NotScalarConstantError:
        return x


def specify_shape(x: Any, shape: Any) -> TensorVariable:
    """Return ``x`` with these lengths; symbolic ones are checked when the function runs."""
    x = as_tensor_variable(x)
    lengths = list(shape) if isinstance(shape, list | tuple) else [shape[i] for i in range(x.ndim)]
    known: list[Any] = [None] * len(lengths)
    for axis, n in enumerate(lengths):
        value = extract_constant(n)
        if n is None or not isinstance(value, Variable):
            known[axis] = n if n is None else int(value)
        elif axis < x.ndim:
            x = Assert(f"specify_shape: axis {axis} has another length")(x, eq(x.shape[axis], n))
    return specify_lengths(x, known)


def is_flat(var: TensorVariable, ndim: int = 1, outdim: int | None = None) -> bool:
    """Tell whether a variable has this number of axes."""
    return bool(var.ndim == (ndim if outdim is None else outdim))


def _as_kind_of(x: Any, y: Any) -> Any:
    """Cast ``y`` to the dtype of ``x`` where NumPy would assign it: int64 to int32, but no float.
    """
    if is_python_number(y) or not isinstance(x, TensorVariable):
        return y
    y = as_tensor_variable(y)
    return cast(y, x.dtype) if np.can_cast(y.dtype, x.dtype, "same_kind") else y


def replaced(
    x: Any, y: Any, inplace: bool = False, tolerate_inplace_aliasing: bool = False
) -> TensorVariable:
    """Return a copy of the tensor of which ``x`` is a part, with ``y`` for that part."""
    return set_subtensor(x, _as_kind_of(x, y), inplace, tolerate_inplace_aliasing)


def increased(
    x: Any,
    y: Any,
    inplace: bool = False,
    tolerate_inplace_aliasing: bool = False,
    ignore_duplicates: bool = False,
) -> TensorVariable:
    """Return a copy of the tensor of which ``x`` is a part, with ``y`` added to that part."""
    y = _as_kind_of(x, y)
    return inc_subtensor(x, y, inplace, tolerate_inplace_aliasing, ignore_duplicates)


def advanced_subtensor(x: Any, *index: Any) -> TensorVariable:
    """Return ``x[index]``."""
    return as_tensor_variable(x)[index]


def advanced_inc_subtensor(x: Any, y: Any, *index: Any) -> TensorVariable:
    """Return ``x`` with ``y`` added to ``x[index]``."""
    return increased(as_tensor_variable(x)[index], y)


def advanced_set_subtensor(x: Any, y: Any, *index: Any) -> TensorVariable:
    """Return ``x`` with ``y`` for ``x[index]``."""
    return replaced(as_tensor_variable(x)[index], y)


def make_vector(*scalars: Any) -> TensorVariable:
    """Return a vector made of scalars."""
    return stack_first_axis(scalars)


ONLY_THEANOS = {
    **{
        f"advanced_{which}{what}subtensor{suffix}": function
        for which, suffix in (("", ""), ("", "1"), ("boolean_", ""))
        for what, function in (
            ("", advanced_subtensor),
            ("inc_", advanced_inc_subtensor),
            ("set_", advanced_set_subtensor),
        )
    },
    "extract_constant": extract_constant,
    "is_flat": is_flat,
    "isinf_": scalar_logic.isinf,
    "isnan_": scalar_logic.isnan,
    "numeric_grad": NumericGradient,
    "inc_subtensor": increased,
    "power": power,
    "set_subtensor": replaced,
    "scalar_from_tensor": as_tensor_variable,
    "specify_shape": specify_shape,
    "tensor_from_scalar": as_tensor_variable,
}


# -- other objects in Theano's modules

CASTS = {f"_convert_to_{dtype}": partial(cast, dtype=dtype) for dtype in dtypes.NATIVE}

#: Types of 0-d tensors, by the kind of their dtypes.
TYPES_OF_SCALARS = {
    f"{kind}_types": tuple(variables.NAMES[f"{prefix}scalar"] for prefix in prefixes)
    for kind, prefixes in (("complex", "cz"), ("float", "fd"), ("int", "bwil"))
}
DTYPES = {
    "all_dtypes": list(dtypes.NATIVE),
    "complex_dtypes": list(dtypes.COMPLEXES),
    "continuous_dtypes": list(dtypes.CONTINUOUS),
    "discrete_dtypes": list(dtypes.DISCRETE),
    "float_dtypes": list(dtypes.FLOATS),
    "int_dtypes": list(dtypes.INTEGERS),
    "integer_dtypes": [*dtypes.INTEGERS, *dtypes.UNSIGNED],
    "uint_dtypes": list(dtypes.UNSIGNED),
}
