"""The operators and methods of TensorVariable, as one table; the facade installs it once.

Operators on variables need ops and ops need variables: ``core`` defines TensorVariable without
operators, and ``install`` adds those of NumPy arrays.
"""

from __future__ import annotations

from collections.abc import Callable
from numbers import Number
from typing import Any

import numpy as np

from symcomp.core.members import add_members
from symcomp.core.node import Constant, Variable
from symcomp.core.tensor import TensorVariable
from symcomp.ops import constant_values, convert
from symcomp.ops.elementwise import (
    scalar_logic,
    scalar_logistic,
    scalar_math,
    scalar_trigonometry,
)
from symcomp.ops.indexing import diagonals, gather, subtensors
from symcomp.ops.linalg import functions as linalg
from symcomp.ops.reductions import accumulated
from symcomp.ops.reductions import functions as reductions
from symcomp.ops.shapes import axes, filled, joining, repeat, reshaping, shape
from symcomp.ops.shapes.axes import dimshuffle
from symcomp.ops.sorting import functions as sorting

BINARY: dict[str, Callable[..., Any]] = {
    "add": scalar_math.add,
    "sub": scalar_math.sub,
    "mul": scalar_math.mul,
    "truediv": scalar_math.true_div,
    "floordiv": scalar_math.int_div,
    "mod": scalar_math.mod,
    "divmod": scalar_math.divmod,
    "pow": scalar_math.pow,
    "and": scalar_logic.and_,
    "or": scalar_logic.or_,
    "xor": scalar_logic.xor,
    "lshift": scalar_logic.left_shift,
    "rshift": scalar_logic.right_shift,
    "matmul": linalg.matmul,
}
SPECIAL: dict[str, Callable[..., Any]] = {
    "lt": scalar_logic.lt,
    "gt": scalar_logic.gt,
    "le": scalar_logic.le,
    "ge": scalar_logic.ge,
    "neg": scalar_math.neg,
    "abs": scalar_math.abs_,
    "invert": scalar_logic.invert,
    "getitem": subtensors.getitem,
    "iter": subtensors.iterate,
    "ceil": scalar_math.ceil,
    "floor": scalar_math.floor,
    "trunc": scalar_math.trunc,
}
# Methods that are the function of the same name with the variable as first argument.
METHODS: tuple[tuple[Any, str], ...] = (
    (
        scalar_math,
        "ceil floor exp exp2 expm1 log log2 log10 log1p sqrt conj sgn sqr inv trunc round",
    ),
    (
        scalar_trigonometry,
        "sin cos tan arcsin arccos arctan sinh cosh tanh arcsinh arccosh arctanh deg2rad rad2deg",
    ),
    (scalar_logic, "clip isnan isinf eq neq"),
    (reductions, "sum prod mean var std max min argmax argmin any all ptp"),
    (shape, "reshape"),
    (reshaping, "flatten"),
    (axes, "swapaxes squeeze"),
    (filled, "zeros_like ones_like fill"),
    (subtensors, "nonzero nonzero_values"),
    (gather, "take choose"),
    (diagonals, "diagonal trace"),
    (linalg, "dot norm"),
    (sorting, "sort argsort searchsorted"),
    (accumulated, "cumsum cumprod"),
    (repeat, "repeat"),
)


_numpy_form: Callable[[Any, str], str] = lambda function, method: ""  # noqa: E731


def install(numpy_form: Callable[[Any, str], str]) -> None:
    """Give TensorVariable its operators, methods, properties and NumPy protocols.

    Parameters
    ----------
    numpy_form : callable
        (a function or ufunc of NumPy that builds no graph, the ufunc's method) -> what to use.
    """
    global _numpy_form
    _numpy_form = numpy_form
    members: dict[str, Any] = {}
    for name, function in BINARY.items():
        members[f"__{name}__"] = _forward(function)
        members[f"__r{name}__"] = _reflected(function)
    members |= {f"__{name}__": _method(function) for name, function in SPECIAL.items()}
    for module, names in METHODS:
        members |= {name: _method(getattr(module, name)) for name in names.split()}
    members |= {
        name: value
        for name, value in vars(_Members).items()
        if name in PROTOCOLS or not name.startswith("__")
    }
    add_members(TensorVariable, members)


def _method(function: Callable[..., Any]) -> Callable[..., Any]:
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        return function(self, *args, **kwargs)

    method.__name__ = function.__name__
    method.__doc__ = f"The function ``{function.__name__}`` of this tensor."
    return method


_NUMERIC = (Variable, Number, np.ndarray, np.generic, list, tuple)


def _understood(other: Any) -> bool:
    """Tell whether an operator should try: an operand that is no tensor gets its own turn."""
    if isinstance(other, _NUMERIC):
        return not getattr(other, "has_operators_for_tensors", False)
    if other is None or isinstance(other, str | bytes | dict | set):
        return False
    try:
        convert.as_tensor_variable(other)
    except TypeError:
        return False
    return True


def _forward(function: Callable[..., Any]) -> Callable[..., Any]:
    def operator(self: Any, other: Any) -> Any:
        return function(self, other) if _understood(other) else NotImplemented

    return operator


def _reflected(function: Callable[..., Any]) -> Callable[..., Any]:
    def operator(self: Any, other: Any) -> Any:
        return function(other, self) if _understood(other) else NotImplemented

    return operator


class _Members:
    """Members that need code of their own; they are copied to TensorVariable."""

    __array_priority__ = 1000

    T = property(lambda self: axes.transpose(self), doc="The axes reversed; a view.")
    mT = property(lambda self: axes.matrix_transpose(self), doc="The last two axes exchanged.")
    shape = property(lambda self: shape.shape(self), doc="The lengths, an int64 vector.")
    size = property(
        lambda self: convert.as_tensor_variable(shape.product_of(shape.shape_tuple(self))),
        doc="The number of elements, an int64 scalar.",
    )
    real = property(lambda self: scalar_math.real(self), doc="The real part.")
    imag = property(lambda self: scalar_math.imag(self), doc="The imaginary part.")

    def __pos__(self: Any) -> Any:
        return self

    def __bool__(self: Any) -> bool:
        raise TypeError(
            f"the truth of the symbolic variable {self} is not known when the graph is built: use "
            "switch or ifelse, & and | "
            "for logic, and T.eq for equality"
        )

    def __len__(self: Any) -> int:
        raise TypeError(f"the length of the symbolic variable {self} is x.shape[0], not len(x)")

    def __setitem__(self: Any, key: Any, value: Any) -> None:
        raise TypeError(
            f"the symbolic variable {self} cannot be changed: write x = T.set_subtensor(x[...], "
            "value), or x = x[...].set(value)"
        )

    def __round__(self: Any, decimals: int | None = None) -> Any:
        return scalar_math.round(self, decimals or 0)

    def __contains__(self: Any, item: Any) -> bool:
        raise TypeError(f"`in` needs the elements of {self}: use T.eq(x, item).any()")

    def __array__(self: Any, *args: Any, **kwargs: Any) -> Any:
        raise TypeError(
            f"NumPy asks for the value of the symbolic variable {self}, which is not known when "
            "the graph is built: "
            "use the function of symcomp.tensor, or x.eval({inputs: values})"
        )

    def transpose(self: Any, *order: Any) -> Any:
        """Permute the axes: ``x.transpose(1, 0)`` or ``((1, 0))``; reversed by default."""
        if len(order) == 1 and (order[0] is None or isinstance(order[0], list | tuple)):
            return axes.transpose(self, order[0] or None)
        return axes.transpose(self, order or None)

    def reshape(self: Any, *newshape: Any, ndim: int | None = None) -> Any:
        """Change the shape: ``x.reshape((2, -1))`` or ``x.reshape(2, -1)``; see the function."""
        if len(newshape) == 2 and ndim is None and _is_shape(newshape[0]):
            return shape.reshape(self, newshape[0], newshape[1])
        return shape.reshape(self, newshape[0] if len(newshape) == 1 else newshape, ndim)

    def dimshuffle(self: Any, *order: Any) -> Any:
        """Permute, drop and insert axes; see the function."""
        return dimshuffle(self, *order)

    def ravel(self: Any) -> Any:
        """Return all elements as a vector."""
        return reshaping.flatten(self)

    def astype(self: Any, dtype: Any) -> Any:
        """Convert to another dtype."""
        return scalar_math.cast(self, dtype)

    def copy(self: Any, name: str | None = None) -> Any:
        """Return a copy, possibly with a name."""
        twin = scalar_math.identity(self)
        twin.name = name
        return twin

    def conjugate(self: Any) -> Any:
        """Return the complex conjugate."""
        return scalar_math.conj(self)

    def compress(self: Any, condition: Any, axis: int | None = None) -> Any:
        """Return the slices where ``condition`` is true; see the function."""
        return gather.compress(condition, self, axis)

    def item(self: Any) -> Any:
        """Return the only element, as a scalar."""
        return shape.reshape(self, ())

    def set(self: Any, value: Any) -> Any:
        """Return x with the part ``x[...]`` replaced by ``value``."""
        return subtensors.set_subtensor(self, value)

    def inc(self: Any, value: Any) -> Any:
        """Return x with ``value`` added to the part ``x[...]``."""
        return subtensors.inc_subtensor(self, value)

    def get_scalar_constant_value(self: Any) -> Any:
        """Return the value of a scalar that is known; see the function."""
        return constant_values.get_scalar_constant_value(self)

    def __array_ufunc__(self: Any, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        """Build graphs for ``np.exp(x)`` and other ufuncs."""
        function = UFUNCS.get(ufunc)
        if function is None or method != "__call__" or kwargs:
            if not all(map(_is_known, inputs)):
                return NotImplemented  # another operand's class may implement it
            named = f"np.{ufunc.__name__}" + (f".{method}" if method != "__call__" else "")
            given = f" with {', '.join(kwargs)}" if kwargs else ""
            raise TypeError(
                f"{named}{given} has no symbolic form for {_shown(inputs)}: "
                f"{_numpy_form(ufunc, method)}"
            )
        return function(*inputs)

    def __array_function__(self: Any, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        """Build graphs for ``np.concatenate([x, y])`` and other NumPy functions."""
        function = FUNCTIONS.get(func)
        if function is not None:
            return function(*args, **kwargs)
        if not all(issubclass(kind, TensorVariable | np.ndarray) for kind in types):
            return NotImplemented
        named = f"{func.__module__}.{func.__name__}".replace("numpy", "np", 1)
        raise TypeError(
            f"{named} has no symbolic form for {_shown(args)}: {_numpy_form(func, '__call__')}"
        )

    def __int__(self: Any) -> int:
        """Raise: a symbolic variable has no number."""
        raise _no_number("int()", self, "T.cast({}, 'int64')")

    def __float__(self: Any) -> float:
        """Raise: a symbolic variable has no number."""
        raise _no_number("float()", self, "T.cast({}, 'float64')")

    def __complex__(self: Any) -> complex:
        """Raise: a symbolic variable has no number."""
        raise _no_number("complex()", self, "T.cast({}, 'complex128')")

    def __index__(self: Any) -> int:
        """Raise: a symbolic variable has no number."""
        raise _no_number("an index of a Python list, or a range,", self, "T.arange({})")

    def __format__(self: Any, spec: str) -> str:
        """Return the name; only values can be formatted as numbers."""
        if spec:
            raise _no_number(f"the format {spec!r}", self, "symcomp.printing.Print()({})")
        return str(self)


def _no_number(what: str, x: TensorVariable, instead: str) -> TypeError:
    """Return the error for a conversion of a variable to a number."""
    name = x.name or "x"
    value = "get_value()" if hasattr(x, "get_value") else "eval({inputs: values})"
    value = "data" if isinstance(x, Constant) else value
    return TypeError(
        f"{what} needs a number, but {x} ({x.type}) is symbolic: it has no value when the graph is "
        f"built. Use {instead.format(name)}, or its value, {name}.{value}"
    )


def _is_known(x: Any) -> bool:
    """Tell whether an object's class has no NumPy protocols of its own."""
    return isinstance(x, TensorVariable | np.ndarray) or not hasattr(x, "__array_ufunc__")


def _shown(arguments: Any) -> str:
    """Return the variables among arguments, and their types, as text."""
    pending, found = [arguments], []
    while pending:
        x = pending.pop(0)
        if isinstance(x, TensorVariable):
            found.append(f"{x} ({x.type})")
        elif isinstance(x, list | tuple):
            pending += x
    return ", ".join(found) or "symbolic variables"


def _is_shape(x: Any) -> bool:
    return isinstance(x, list | tuple) or (isinstance(x, TensorVariable) and x.ndim == 1)


PROTOCOLS = (
    "__pos__", "__setitem__", "__round__", "__bool__", "__len__", "__contains__", "__array__",
    "__array_priority__", "__array_ufunc__", "__array_function__", "__int__", "__float__",
    "__complex__", "__index__", "__format__",
)  # fmt: skip

_UFUNC_NAMES = {
    scalar_math: (
        "add sub:subtract mul:multiply true_div:divide int_div:floor_divide mod:remainder "
        "pow:power neg:negative exp exp2 "
        "expm1 log log2 log10 log1p sqrt sqr:square inv:reciprocal abs_:absolute sgn:sign ceil "
        "floor trunc round:rint maximum minimum conj:conjugate divmod"
    ),
    scalar_trigonometry: (
        "sin cos tan arcsin arccos arctan arctan2 hypot sinh cosh tanh arcsinh arccosh arctanh "
        "deg2rad rad2deg"
    ),
    scalar_logic: (
        "lt:less gt:greater le:less_equal ge:greater_equal eq:equal neq:not_equal isnan isinf "
        "isfinite logical_and "
        "logical_or logical_xor logical_not and_:bitwise_and or_:bitwise_or xor:bitwise_xor "
        "invert left_shift right_shift"
    ),
    scalar_logistic: "logaddexp",
    linalg: "matmul",
}
_FUNCTION_NAMES = {
    reductions: "sum prod mean var std max min any all argmax argmin ptp",
    sorting: "sort argsort searchsorted unique median",
    accumulated: "cumsum cumprod diff",
    joining: "concatenate stack hstack vstack",
    linalg: "dot tensordot outer inner vdot kron",
    axes: "transpose swapaxes moveaxis expand_dims squeeze atleast_1d atleast_2d atleast_3d",
    shape: "reshape shape",
    filled: "zeros_like ones_like full_like broadcast_to",
    repeat: "tile repeat roll flip pad",
    gather: "take take_along_axis compress choose",
    diagonals: "diagonal diag trace",
    scalar_logic: "where clip isclose allclose nan_to_num",
    scalar_math: "real imag angle round",
    subtensors: "nonzero flatnonzero",
}


def _numpy_table(names: dict[Any, str], ufuncs: bool) -> dict[Any, Callable[..., Any]]:
    table = {}
    for module, words in names.items():
        for word in words.split():
            ours, _, theirs = word.partition(":")
            function = getattr(np, theirs or ours)
            if isinstance(function, np.ufunc) is ufuncs:
                table[function] = getattr(module, ours)
    return table


UFUNCS = _numpy_table(_UFUNC_NAMES, ufuncs=True)
FUNCTIONS = _numpy_table(_FUNCTION_NAMES, ufuncs=False)
FUNCTIONS[np.ravel] = reshaping.flatten
