"""Elemwise: a scalar function applied to every element, with broadcasting; and the declaration of
rows.
"""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Callable, Sequence
from dataclasses import field
from functools import cache, cached_property
from typing import Any

import numpy as np

from symcomp.core import dtype as dtypes
from symcomp.core.node import Apply
from symcomp.core.op import Op
from symcomp.core.record import record
from symcomp.core.special_types import NullType
from symcomp.core.tensor import StaticShape, TensorType, TensorVariable
from symcomp.errors import DTypeError, ParameterError, ShapeError
from symcomp.lazy import lazy_module
from symcomp.ops.casting import cast_policy
from symcomp.ops.convert import as_common
from symcomp.ops.shapes.dimshuffle import DimShuffle

special = lazy_module("scipy.special")

#: The end of messages about axes of length 1.
HOW_TO_STRETCH = (
    "An axis is stretched only if its type says that its length is 1: declare it with "
    "shape=(..., 1), or use T.addbroadcast"
)

# -- words for derivatives in a row of the table

Rule = Callable[..., Any]


def SAME(*letters: Any) -> Any:
    """Derivative 1."""
    return letters[-1]


def NEGATED(*letters: Any) -> Any:
    """Derivative -1."""
    return -letters[-1]


def ZERO(*letters: Any) -> None:
    """Derivative 0 wherever it exists."""
    return None


def unknown(reason: str) -> Rule:
    """Return the rule of a derivative that is not implemented: an error only if the derivative is
    used.
    """
    return lambda *letters: NullType(reason)()


@record(eq=False)
class ScalarOp:
    """A scalar function: one row of the table.

    Attributes
    ----------
    name : str
    arity : int
        0 for a function of any number of arguments (at least one).
    numpy : callable or str
        Computes it on arrays; ``"module:function"`` is imported at first use.
    dtype : callable
        Input dtypes -> output dtype; raises DTypeError.
    derivatives : tuple of callable
        For each argument, ``rule(*arguments, z, g)``: g times the partial derivative. As the
        Jacobian is diagonal,
        the same rule gives the pullback (g = gradient of z) and the pushforward (g = tangent of
        the argument).
    pullbacks : tuple of callable
        Rules for the pullback where it differs: functions of complex numbers that are not
        holomorphic.
    no_derivative : str
        The reason, where there are no rules.
    adapt : callable
        Arguments of a call -> tensor variables; says how Python numbers adapt to the dtypes of the
        others.
    into : callable, optional
        As ``numpy``, called with one more array for the result, which may be any of the arguments;
        where the number of arguments is free, the first or second. Ufuncs have it themselves.
    parameters : tuple
        Makes a row one of a family (``cast``): equal name and parameters, equal op.
    """

    name: str
    arity: int
    numpy: Any
    dtype: Callable[..., str]
    derivatives: tuple[Rule, ...] = ()
    pullbacks: tuple[Rule, ...] = ()
    no_derivative: str = ""
    parameters: tuple[Any, ...] = ()
    adapt: Callable[..., Sequence[Any]] = as_common
    into: Callable[..., Any] | None = None

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ScalarOp):
            return NotImplemented
        return self.name == other.name and self.parameters == other.parameters

    def __hash__(self) -> int:
        return hash((self.name, self.parameters))

    def __reduce__(self) -> Any:
        return (_row, (self.name, self.parameters))

    def __repr__(self) -> str:
        return self.name

    @cached_property
    def function(self) -> Callable[..., Any]:
        """The NumPy function."""
        if isinstance(self.numpy, str):
            module, _, name = self.numpy.partition(":")
            return getattr(importlib.import_module(module), name)
        return self.numpy

    def writer(self, dtypes_: Sequence[np.dtype], dtype: np.dtype) -> Callable[..., Any] | None:
        """Return the function that computes from ``dtypes_`` into an array of ``dtype``; None if
        there is none.
        """
        if self.into is not None:
            return self.into
        ufunc = self.function
        if not isinstance(ufunc, np.ufunc) or ufunc.nout != 1 or ufunc.nin != len(dtypes_):
            return None
        resolved = ufunc.resolve_dtypes((*dtypes_, None))
        return ufunc if resolved[-1] == dtype else None

    def never_fails(self, dtype: str) -> bool:
        """Tell whether no elements can make it raise, for results of ``dtype``."""
        if self.name == "pow" and dtypes.is_discrete(dtype):
            return False  # NumPy raises for negative integer exponents
        function = self.function
        if isinstance(function, np.ufunc):
            name = function.__name__
            return any(function is getattr(module, name, None) for module in (np, special))
        return str(getattr(function, "__module__", "")).startswith("symcomp.ops.")


ROWS: dict[str, Callable[..., ScalarOp]] = {}
# Rows that convert, choose or copy elements.
MOVING = ("cast", "identity", "second", "switch")


def _row(name: str, parameters: tuple[Any, ...]) -> ScalarOp:
    """Return the row with this name; rows are pickled by name."""
    return ROWS[name](*parameters)


@record
class Elemwise(Op):
    """z[i] = f(x[i], y[i], ...) with axes of static length 1 stretched. All inputs have one rank.

    ``inplace`` lists (output, input) pairs: the output overwrites that input.
    """

    scalar: ScalarOp
    inplace: tuple[tuple[int, int], ...] = field(default=())

    def as_inputs(self, *args: Any) -> list[Any]:
        self._check_arity(len(args))
        try:
            tensors = self.scalar.adapt(*args)
        except (DTypeError, ShapeError) as problem:
            raise type(problem)(f"{self.scalar.name}: {problem}") from None
        tensors = cast_policy().function_inputs(self.scalar, args, tensors)
        rank = max(x.ndim for x in tensors)
        return [
            x
            if x.ndim == rank
            else DimShuffle(x.ndim, ("x",) * (rank - x.ndim) + tuple(range(x.ndim)))(x)
            for x in tensors
        ]

    def _check_arity(self, count: int) -> None:
        if self.scalar.arity and count != self.scalar.arity or not count:
            raise TypeError(
                f"{self.scalar.name} takes {self.scalar.arity or 'at least 1'} arguments, got "
                f"{count}"
            )

    def output_types(self, *inputs: TensorVariable) -> list[TensorType]:
        self._check_arity(len(inputs))
        try:
            dtype = self.scalar.dtype(*(x.dtype for x in inputs))
        except DTypeError as problem:
            if self.scalar.name in str(problem):
                raise
            raise DTypeError(f"{self.scalar.name}: {problem}") from None
        shape = broadcast_static(self.scalar.name, [x.type.shape for x in inputs])
        for out, i in self.inplace:
            if out != 0 or not 0 <= i < len(inputs):
                raise ParameterError(
                    f"{self}: inplace is {self.inplace}; pairs (0, position of an input) are needed"
                )
            if inputs[i].dtype != dtype or inputs[i].type.broadcastable != tuple(
                n == 1 for n in shape
            ):
                raise DTypeError(
                    f"{self}: {dtype} output of shape {shape} cannot overwrite input {i} "
                    f"({inputs[i].type})"
                )
        return [TensorType(dtype, shape)]

    def perform(self, *values: Any) -> Any:
        z = self.scalar.function(*values)
        dtype = self._dtype_of(values)
        if self.inplace:
            target = values[self.inplace[0][1]]
            np.copyto(target, z, casting="unsafe")
            return target
        return z if type(z) is np.ndarray and z.dtype == dtype else np.asarray(z, dtype)

    def bind(self, node: Apply) -> Callable[..., Any]:
        """Return ``perform``, checking that no axis is stretched whose static length is not 1."""
        if self.inplace:
            return self.perform
        function, dtype = self.scalar.function, node.outputs[0].type.numpy_dtype
        fixed = self.fixed_axes(node)

        def compute(*values: Any) -> Any:
            z = function(*values)
            for position, axes in fixed:
                if values[position].shape != z.shape:
                    self.refuse_stretching(position, axes, values, z.shape)
            return z if type(z) is np.ndarray and z.dtype == dtype else np.asarray(z, dtype)

        return compute

    @staticmethod
    def fixed_axes(node: Apply) -> list[tuple[int, tuple[int, ...]]]:
        """Return the inputs that could be stretched against their types, and the axes."""
        unknown = [tuple(a for a, n in enumerate(x.type.shape) if n is None) for x in node.inputs]
        return [(i, axes) for i, axes in enumerate(unknown) if axes and len(unknown) > 1]

    def refuse_stretching(
        self, position: int, axes: tuple[int, ...], values: Any, shape: tuple[int, ...]
    ) -> None:
        """Raise if an input is stretched to ``shape`` along one of these axes."""
        lengths = values[position].shape
        for axis in axes:
            if lengths[axis] != shape[axis]:
                raise ShapeError(
                    f"{self}: input {position} has length {lengths[axis]} on axis {axis}, where "
                    "others have "
                    f"{shape[axis]} (shapes {', '.join(str(v.shape) for v in values)}). "
                    f"{HOW_TO_STRETCH}"
                )

    def _dtype_of(self, values: Any) -> np.dtype:
        key = (self.scalar, *[v.dtype for v in values])
        found = _dtype_cache.get(key)
        if found is None:
            found = np.dtype(self.scalar.dtype(*(v.dtype.name for v in values)))
            _dtype_cache[key] = found
        return found

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        result = []
        for axis, static in enumerate(node.outputs[0].type.shape):
            stretched = [
                shape[axis]
                for x, shape in zip(node.inputs, shapes, strict=True)
                if x.type.shape[axis] != 1
            ]
            # Rewriting may have replaced inputs by ones of known length 1 where the output's length
            # is unknown.
            result.append(static if static is not None else stretched[0] if stretched else 1)
        return [tuple(result)]

    def pullback(self, inputs: Any, outputs: Any, output_grads: Any) -> list[Any]:
        (z,), (gz,) = outputs, output_grads
        rules = self.scalar.pullbacks or self.scalar.derivatives
        if not rules:
            raise NotImplementedError(self._why_not("pullback (L-op)"))
        holomorphic = dtypes.is_complex(z.dtype) and not self.scalar.pullbacks
        grads: list[Any] = []
        for i, x in enumerate(inputs):
            rule = rules[0] if self.scalar.arity == 0 else rules[i]
            gx = rule(*inputs, z, gz.conj() if holomorphic else gz)
            if gx is None:
                grads.append(None)
                continue
            if isinstance(gx.type, NullType):
                grads.append(gx)
                continue
            gx = gx.conj() if holomorphic else gx
            if dtypes.is_complex(gx.dtype) and not dtypes.is_complex(x.dtype):
                gx = gx.real
            grads.append(unbroadcast(gx, x))
        return grads

    def pushforward(self, inputs: Any, outputs: Any, tangents: Any) -> list[Any]:
        (z,) = outputs
        rules = self.scalar.derivatives
        if not rules:
            raise NotImplementedError(self._why_not("pushforward (R-op)"))
        dz = None
        for i, dx in enumerate(tangents):
            if dx is None:
                continue
            rule = rules[0] if self.scalar.arity == 0 else rules[i]
            term = rule(*inputs, z, dx)
            if term is not None and isinstance(term.type, NullType):
                return [term]
            if term is not None:
                dz = term if dz is None else dz + term
        if dz is not None and dz.type.shape != z.type.shape:
            # A tangent of a stretched input has the input's shape: stretch it to the shape of z.
            dz = Elemwise(_row("second", ()))(z, dz)
        return [dz]

    @property
    def no_derivative(self) -> str:  # type: ignore[override]
        """The reason given by the row."""
        return self.scalar.no_derivative

    @property
    def moves(self) -> bool:  # type: ignore[override]
        """Whether elements are converted, chosen or copied."""
        return self.scalar.name in MOVING

    @cached_property
    def destroy_map(self) -> Any:  # type: ignore[override]
        """The inputs named by ``inplace``."""
        return {output: (i,) for output, i in self.inplace}

    def __str__(self) -> str:
        name = self.scalar.name
        if self.scalar.parameters:
            name += "{" + ", ".join(map(str, self.scalar.parameters)) + "}"
        return name + ("_inplace" if self.inplace else "")


_dtype_cache: dict[Any, np.dtype] = {}


def broadcast_static(name: str, shapes: Sequence[StaticShape]) -> StaticShape:
    """Return the static shape that ``shapes``, of equal rank, broadcast to; raise if they cannot.
    """
    result: list[int | None] = []
    for axis, lengths in enumerate(zip(*shapes, strict=True)):
        stretched = [n for n in lengths if n != 1]
        known = {n for n in stretched if n is not None}
        if len(known) > 1:
            shown = ", ".join(
                "(" + ", ".join("?" if n is None else str(n) for n in s) + ")" for s in shapes
            )
            raise ShapeError(
                f"{name}: shapes {shown} do not broadcast: axis {axis} has lengths {lengths}"
            )
        result.append(1 if not stretched else next(iter(known)) if known else None)
    return tuple(result)


def unbroadcast(g: TensorVariable, x: TensorVariable) -> TensorVariable:
    """Sum ``g`` over the axes along which ``x`` was stretched: the shape of ``x``."""
    axes = tuple(a for a in range(x.ndim) if x.type.shape[a] == 1 and g.type.shape[a] != 1)
    return g.sum(axis=axes, keepdims=True) if axes else g


# -- dtype rules


def upcast_rule(*dtypes_: str) -> str:
    """Return NumPy's common dtype."""
    return dtypes.upcast(*dtypes_)


def float_rule(*inputs: str) -> str:
    """Return floats and complexes unchanged, and for integers the float dtype of ``np.exp``."""
    return dtypes.to_float(dtypes.upcast(*inputs))


def real_float_rule(*inputs: str) -> str:
    """Return the dtype of ``float_rule``, for functions of real numbers only."""
    common = dtypes.upcast(*inputs)
    if dtypes.is_complex(common):
        raise DTypeError(f"defined for real numbers only, not for {', '.join(inputs)}")
    return dtypes.to_float(common)


def bool_rule(*inputs: str) -> str:
    """Return the dtype of truth values."""
    return "bool"


def ufunc_rule(ufunc: Any) -> Callable[..., str]:
    """Return the dtype that the NumPy ufunc gives; its TypeError where it is not defined."""

    def rule(*inputs: str) -> str:
        try:
            return dtypes.promoted(lambda *found: dtypes.loop_of(ufunc, *found)[-1], *inputs)
        except TypeError:
            raise DTypeError(f"{ufunc.__name__} is not defined for {', '.join(inputs)}") from None

    return rule


# -- declaring rows


def scalar(
    name: str,
    parameters: str,
    doc: str,
    numpy: Any,
    *,
    dtype: Callable[..., str],
    d: Sequence[Rule] = (),
    L: Sequence[Rule] = (),
    no_derivative: str = "",
    adapt: Callable[..., Sequence[Any]] = as_common,
    into: Callable[..., Any] | None = None,
    public: bool = True,
) -> Callable[..., TensorVariable]:
    """Declare a scalar function: add its row and return the function that applies it to tensors.

    Parameters
    ----------
    name : str
    parameters : str
        Argument names, separated by blanks; ``"*x"`` for any number.
    doc : str
        The formula and its special cases.
    numpy : callable or str
        See ScalarOp.
    dtype : callable
        Rule from input dtypes to output dtype.
    d, L : sequence of callable
        Derivative rules, see ``derivatives`` and ``pullbacks`` of ScalarOp.
    no_derivative : str
        Why there is none.
    adapt, into : callable
        See ScalarOp.
    public : bool
        If true, ``symcomp.tensor`` offers it under its name.
    """
    names = parameters.split()
    arity = 0 if names[0].startswith("*") else len(names)
    row = ScalarOp(
        name, arity, numpy, dtype, tuple(d), tuple(L), no_derivative, adapt=adapt, into=into
    )
    ROWS[name] = lambda: row
    function = elemwise_function(
        Elemwise(row), name, names, doc, _example(row, names) if public else ""
    )
    function.__module__ = sys._getframe(1).f_globals["__name__"]
    return function


def elemwise_function(
    op: Elemwise, name: str, names: Sequence[str], doc: str, example: str = ""
) -> Callable[..., TensorVariable]:
    """Make a plain function with signature and docstring that applies ``op``, its attribute."""

    def function(*args: Any, **kwargs: Any) -> Any:
        if kwargs:
            args = signature.bind(*args, **kwargs).args
        return op(*args)

    signature = _signature(tuple(names))
    function.__name__ = function.__qualname__ = name
    function.__doc__ = (
        f"{doc}\n\nParameters\n----------\n{', '.join(names)} : tensor_like\n    Any shapes that "
        "broadcast.\n\nReturns\n-------\nTensorVariable\n    Of the broadcast shape.\n" + example
    )
    function.__signature__ = signature  # type: ignore[attr-defined]
    function.op = op  # type: ignore[attr-defined]
    return function


@cache
def _signature(names: tuple[str, ...]) -> inspect.Signature:
    several = names[0].startswith("*")
    kind = inspect.Parameter.VAR_POSITIONAL if several else inspect.Parameter.POSITIONAL_OR_KEYWORD
    return inspect.Signature([inspect.Parameter(n.lstrip("*"), kind) for n in names])


def _example(row: ScalarOp, names: Sequence[str]) -> str:
    """Return a doctest that applies the function to vectors."""
    found = _dtypes_of_example(row.dtype, len(names))
    if found is None:
        return ""
    prefix, result = found
    arguments = ", ".join(f'T.{prefix}vector("{n.lstrip("*")}")' for n in names)
    return (
        "\nExamples\n--------\n>>> import symcomp.tensor as T\n"
        f">>> T.{row.name}({arguments}).type\nTensorType({result}, (None,))\n"
    )


@cache
def _dtypes_of_example(rule: Callable[..., str], arguments: int) -> tuple[str, str] | None:
    """Return the prefix of arguments that the rule takes, and the dtype of their result."""
    for prefix, dtype in (("d", "float64"), ("l", "int64")):
        try:
            return prefix, rule(*[dtype] * arguments)
        except DTypeError:
            continue
    return None
