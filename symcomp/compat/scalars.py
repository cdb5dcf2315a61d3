"""``theano.scalar``: types without axes, rows as functions, and scalar ops of programs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any

import numpy as np

import symcomp.tensor as T
from symcomp.compat.missing import StandIn
from symcomp.compat.op import MethodNotDefined
from symcomp.compat.op_functions import OpFunction
from symcomp.core import dtype as dtypes
from symcomp.core.node import Constant, Variable
from symcomp.core.record import record
from symcomp.core.special_types import DisconnectedType, NullType
from symcomp.core.tensor import TensorType, TensorVariable
from symcomp.ops.convert import as_tensor_variable, constant, resolve_dtype
from symcomp.ops.elementwise import inplace
from symcomp.ops.elementwise.elemwise import Elemwise, ScalarOp
from symcomp.ops.elementwise.scalar_math import cast

__all__ = ["SCALAR_CLASSES", "SCALARS", "SIGMOIDS"]


class _Without(StandIn):
    """A class of ``theano.scalar``: the objects of the tensor class that have no axes."""

    def __init__(self, name: str, make: Callable[..., Any], is_one: Callable[[Any], bool]) -> None:
        super().__init__(f"theano.scalar.{name}")
        self._make, self._is_one = make, is_one

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._make(*args, **kwargs)

    def __instancecheck__(self, instance: Any) -> bool:
        return self._is_one(instance)


def scalar_type(dtype: Any) -> TensorType:
    """Return the type of 0-d tensors of this dtype: Theano's Scalar."""
    return TensorType(resolve_dtype(dtype), ())


def as_scalar(x: Any, name: str | None = None) -> Any:
    """Return a variable without axes."""
    found = as_tensor_variable(x, name=name)
    if found.ndim:
        raise TypeError(f"as_scalar: {found} has type {found.type}, which is no scalar")
    return found


TYPES = {dtype: scalar_type(dtype) for dtype in dtypes.NATIVE}
OF_KIND = {
    name: tuple(TYPES[d] for d in found)
    for name, found in {
        "float_types": dtypes.FLOATS,
        "complex_types": dtypes.COMPLEXES,
        "continuous_types": dtypes.CONTINUOUS,
        "int_types": dtypes.INTEGERS,
        "uint_types": dtypes.UNSIGNED,
        "integer_types": (*dtypes.INTEGERS, *dtypes.UNSIGNED),
        "discrete_types": dtypes.DISCRETE,
        "all_types": dtypes.NATIVE,
    }.items()
}


def _several(dtype: str) -> Callable[..., Any]:
    """Return a constructor of several variables, given their names, or one string of letters."""

    def make(*names: str) -> Any:
        wanted = names[0] if len(names) == 1 else names
        made = [scalar_type(dtype)(name) for name in wanted]
        return made[0] if len(made) == 1 else made

    return make


# -- result types of scalar ops of programs


def _preference(rule: Callable[..., str]) -> Callable[..., list[TensorType]]:
    return lambda *types: [TYPES[rule(*(kind.dtype for kind in types))]]


def _at_least_float64(*found: str) -> str:
    return dtypes.upcast("float64", *found)


def _first(*found: str) -> str:
    return found[0]


PREFERENCES: dict[str, Any] = {
    **dict.fromkeys(("float_out", "float_out_nocomplex"), lambda *types: [scalar_type("floatX")]),
    **dict.fromkeys(("int_out", "int_out_nocomplex"), lambda *types: [TYPES["int64"]]),
    **dict.fromkeys(
        ("same_out", "same_out_float_only", "same_out_nobool", "same_out_nocomplex"),
        _preference(_first),
    ),
    **dict.fromkeys(
        ("upcast_out", "upcast_out_no_complex", "upcast_out_nobool"), _preference(dtypes.upcast)
    ),
    **dict.fromkeys(
        ("upgrade_to_float", "upgrade_to_float_no_complex"),
        _preference(lambda *found: dtypes.to_float(dtypes.upcast(*found))),
    ),
    "upgrade_to_float64": _preference(_at_least_float64),
    "specific_out": lambda *wanted: lambda *types: list(wanted),
}

# -- scalar ops of programs


@record(eq=False)
class UserRow(ScalarOp):
    """A row described by a class of a program."""

    def __reduce__(self) -> Any:
        return (row_of, self.parameters)


def row_of(op: OwnScalarOp) -> UserRow:
    """Return a scalar op in Theano's form as a row of the table."""

    def dtype(*found: str) -> str:
        preferred = op.output_types([TYPES[d] for d in found])
        return str(preferred[0].dtype)

    def derivative(i: int) -> Callable[..., Any]:
        def rule(*letters: Any) -> Any:
            *inputs, z, g = letters
            gradient = op.gradients(inputs, z, g)[i]
            return None if isinstance(gradient.type, DisconnectedType) else gradient

        return rule

    derivatives = tuple(map(derivative, range(op.nin)))
    return UserRow(f"own {op}", max(op.nin, 0), op.numpy(), dtype, derivatives, parameters=(op,))


class OwnScalarOp:
    """Base of scalar ops in Theano's form: ``impl(*numbers)``, ``grad`` or ``L_op``.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> from symcomp.compat.scalars import UnaryScalarOp
    >>> class Cube(UnaryScalarOp):
    ...     def impl(self, x):
    ...         return x ** 3
    ...     def grad(self, inputs, gradients):
    ...         return [3 * inputs[0] ** 2 * gradients[0]]
    >>> x = T.dvector("x")
    >>> y = Cube()(x)
    >>> T.grad(y.sum(), x).eval({x: [1.0, 2.0]})
    array([ 3., 12.])
    """

    nin = -1
    nout = 1
    nfunc_spec: Any = None

    def __init__(self, output_types_preference: Any = None, name: str | None = None) -> None:
        self.name = name
        if output_types_preference is not None:
            self.output_types_preference = output_types_preference

    def output_types(self, types: Sequence[Any]) -> Sequence[Any]:
        """Return the type of the result, given those of the arguments."""
        preference = getattr(self, "output_types_preference", PREFERENCES["upcast_out"])
        return preference(*types)

    def impl(self, *inputs: Any) -> Any:
        """Compute the function of numbers."""
        raise MethodNotDefined(f"{self} has no impl: symcomp cannot run Theano's C code")

    def numpy(self) -> Any:
        """Return the function of arrays."""
        if self.nfunc_spec is not None:
            module, _, name = self.nfunc_spec[0].rpartition(".")
            return f"{module or 'numpy'}:{name}"
        return np.frompyfunc(self.impl, self.nin, 1)

    def gradients(self, inputs: Sequence[Any], z: Any, g: Any) -> Sequence[Any]:
        """Return the result of ``L_op`` or ``grad``."""
        if hasattr(self, "L_op"):
            found = self.L_op(list(inputs), [z], [g])
        elif hasattr(self, "grad"):
            found = self.grad(list(inputs), [g])
        else:
            raise MethodNotDefined(f"{self} has neither L_op nor grad")
        return [self._term(i, v) for i, v in enumerate(found)]

    def _term(self, i: int, gradient: Any) -> Variable:
        """Return the result of ``grad`` for argument ``i``; None says that it is not implemented.
        """
        if gradient is None:
            return NullType(f"the derivative of {self} in argument {i}: its grad returned None")()
        return gradient if isinstance(gradient, Variable) else as_tensor_variable(gradient)

    def make_node(self, *inputs: Any) -> Any:
        """Return the node that applies it to each element."""
        return Elemwise(row_of(self)).make_node(*inputs)

    def __call__(self, *inputs: Any) -> Any:
        return Elemwise(row_of(self))(*inputs)

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash((type(self), self._key()))

    def _key(self) -> Any:
        preference = getattr(self, "output_types_preference", None)
        return preference, *(getattr(self, name) for name in getattr(self, "__props__", ()))

    def __str__(self) -> str:
        return getattr(self, "name", None) or type(self).__name__


class UnaryScalarOp(OwnScalarOp):
    """A scalar op of one argument."""

    nin = 1


class BinaryScalarOp(OwnScalarOp):
    """A scalar op of two arguments."""

    nin = 2


# -- the rows of symcomp


def as_row(scalar_op: Any) -> ScalarOp:
    """Return the argument of ``T.Elemwise`` as a row."""
    if isinstance(scalar_op, OwnScalarOp):
        return row_of(scalar_op)
    return scalar_op.op.scalar if isinstance(scalar_op, ScalarFunction) else scalar_op


class ScalarFunction(OpFunction):
    """A function of ``theano.scalar`` that equals the row that it applies."""

    def __eq__(self, other: object) -> bool:
        return bool(self.op.scalar == as_row(other))

    def __hash__(self) -> int:
        return hash(self.op.scalar)


def _is_row(row: str) -> Callable[[Any], bool]:
    return lambda instance: isinstance(instance, ScalarOp) and instance.name == row


#: Classes of ``theano.scalar``, and the rows that are their instances.
_ROWS = {
    "AND": "and_", "Inv": "reciprocal", "IntDiv": "int_div", "OR": "or_", "TrueDiv": "true_div",
    "RoundHalfAwayFromZero": "round_half_away_from_zero", "TriGamma": "tri_gamma",
    "RoundHalfToEven": "round_half_to_even",
}  # fmt: skip
_SAME = (
    "Abs Add Angle ArcCos ArcCosh ArcSin ArcSinh ArcTan ArcTan2 ArcTanh Cast Ceil Clip Conj Cos "
    "Cosh Deg2Rad EQ Erf Erfc Erfcinv Erfcx Erfinv Exp Exp2 Expm1 Floor GE GT Gamma GammaInc "
    "GammaIncC GammaLn I0 I1 Identity Imag Invert IsInf IsNan Iv J0 J1 Jv LE LT Log Log10 Log1p "
    "Log2 Maximum Minimum Mod Mul NEQ Neg Pow Psi Rad2Deg Real Second Sgn Sin Sinh Sqr Sqrt Sub "
    "Switch Tan Tanh Trunc XOR"
).split()


@cache
def _functions() -> dict[str, ScalarFunction]:
    """Return the functions of symcomp.tensor that apply a row, by its name."""
    every = {**vars(T), **vars(T.nnet)}
    found = (f for f in every.values() if isinstance(getattr(f, "op", None), Elemwise))
    return {function.op.scalar.name: ScalarFunction(function) for function in found}


def _instance_of(row: str) -> Callable[..., Any]:
    """Return the constructor of a class: it gives the only instance, whatever result type is
    preferred.
    """

    def make(output_types_preference: Any = None, name: str | None = None) -> ScalarFunction:
        preferred = output_types_preference in (None, *PREFERENCES.values())
        if row not in _functions() or not preferred:
            raise NotImplementedError(
                "theano.scalar: use the function instead of an instance of its class"
            )
        return _functions()[row]

    return make


SCALAR_CLASSES: dict[str, Any] = {
    **{
        name: _Without(name, _instance_of(row), _is_row(row))
        for name, row in (_ROWS | {name: name.lower() for name in _SAME}).items()
    },
    "Scalar": _Without(
        "Scalar", scalar_type, lambda kind: isinstance(kind, TensorType) and kind.ndim == 0
    ),
    "ScalarConstant": _Without(
        "ScalarConstant",
        lambda kind, data: kind.make_constant(data),
        lambda v: isinstance(v, TensorVariable) and isinstance(v, Constant) and v.ndim == 0,
    ),
    "ScalarVariable": _Without(
        "ScalarVariable",
        TensorVariable,
        lambda v: isinstance(v, TensorVariable) and v.ndim == 0,
    ),
}
SCALARS: dict[str, Any] = {
    **TYPES,
    **OF_KIND,
    **PREFERENCES,
    "as_common_dtype": lambda *xs: [cast(x, dtypes.upcast(*(v.dtype for v in xs))) for x in xs],
    "as_scalar": as_scalar,
    "BinaryScalarOp": BinaryScalarOp,
    "cast": cast,
    "chi2sf": T.chi2sf,
    "complex_from_polar": T.complex_from_polar,
    "complexs": _several("complex128"),
    "constant": constant,
    "floats": _several("float64"),
    "ints": _several("int64"),
    "gammal": T.gammal,
    "gammau": T.gammau,
    "pow": T.pow,
    "get_scalar_type": scalar_type,
    "ScalarOp": OwnScalarOp,
    "UnaryScalarOp": UnaryScalarOp,
    "upcast": dtypes.upcast,
    **{f"convert_to_{dtype}": partial(cast, dtype=dtype) for dtype in dtypes.NATIVE},
}
#: ``theano.tensor.nnet.sigm``: its elementwise functions.
SIGMOIDS: dict[str, Any] = {
    **{
        name: _Without(name, _instance_of(row), _is_row(row))
        for name, row in (("ScalarSigmoid", "sigmoid"), ("ScalarSoftplus", "softplus"))
    },
    "scalar_sigmoid": _instance_of("sigmoid")(),
    "scalar_softplus": _instance_of("softplus")(),
    "sigmoid_inplace": inplace.NAMES["sigmoid_inplace"],
}
