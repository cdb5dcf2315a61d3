"""Ops for looking into a running function: Print, PdbBreakpoint; and Raise."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from symcomp.core import dtype as dtypes
from symcomp.core.node import Apply, Type, Variable
from symcomp.core.op import Op
from symcomp.core.record import record, replace
from symcomp.core.tensor import TensorVariable
from symcomp.errors import DTypeError, ParameterError
from symcomp.ops.convert import as_tensor_variable

# Attributes of arrays, lists and states that Print may show: none of them changes the value.
ATTRIBUTES = frozenset(
    "T base data dtype flags flat imag itemsize nbytes ndim real shape size strides __class__ "
    "__abs__ __bool__ __complex__ __float__ __int__ __len__ __repr__ __str__ all any argmax argmin "
    "argsort conj conjugate copy cumprod cumsum diagonal flatten item max mean min nonzero prod "
    "ravel round squeeze std sum tobytes tolist trace transpose var".split()
)


def print_attributes(op: Print, value: Any) -> None:
    """Print a line for each attribute, calling methods: the default of ``Print``."""
    for name in op.attrs:
        attribute = getattr(value, name)
        print(op.message, name, "=", attribute() if callable(attribute) else attribute, flush=True)


@record
class Print(Op):
    """z = x, a view; prints x whenever z is computed, which happens only if an output depends on z.

    Parameters
    ----------
    message : str
        Before each line.
    attrs : sequence of str
        Attributes of the value (``"shape"``), and methods without arguments (``"min"``) that do
        not change it.
    global_fn : callable (op, value)
        Called instead of printing the attributes.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> from symcomp.printing import Print
    >>> x = T.dvector("x")
    >>> z = Print("x is", attrs=("__str__", "shape"))(x).sum().eval({x: [1.0, 2.0]})
    x is __str__ = [1. 2.]
    x is shape = (2,)
    """

    message: str = ""
    attrs: tuple[str, ...] = ("__str__",)
    global_fn: Callable[[Any, Any], None] = print_attributes

    has_effects: ClassVar[bool] = True

    moves = True

    def __post_init__(self) -> None:
        attrs = (self.attrs,) if isinstance(self.attrs, str) else tuple(self.attrs)
        object.__setattr__(self, "attrs", attrs)
        super().__post_init__()
        unknown = [name for name in attrs if name not in ATTRIBUTES]
        if self.global_fn is print_attributes and unknown:
            raise ParameterError(
                f"Print: attrs has {', '.join(map(repr, unknown))}; attributes and methods that "
                f"leave a value as it is can be printed: {', '.join(sorted(ATTRIBUTES))}"
            )

    def as_inputs(self, *args: Any) -> list[Variable]:
        (x,) = args
        return [x if isinstance(x, Variable) else as_tensor_variable(x)]

    def output_types(self, x: Variable) -> list[Type]:
        return [x.type]

    def perform(self, x: Any) -> Any:
        self.global_fn(self, x)
        return x

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        return [shapes[0]]

    def pullback(self, inputs: Any, outputs: Any, output_grads: Any) -> list[Any]:
        return [output_grads[0]]

    def pushforward(self, inputs: Any, outputs: Any, tangents: Any) -> list[Any]:
        return [tangents[0]]

    view_map = {0: (0,)}

    def __str__(self) -> str:
        return f"Print{{{self.message!r}}}"


@record
class PdbBreakpoint(Op):
    """z_k = x_k, views; stops in the debugger when the condition is true.   Inputs: condition, x_k.

    The debugger sees the values as ``values``, and the variables as ``variables``.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> from symcomp.printing import PdbBreakpoint
    >>> x = T.dvector("x")
    >>> watched = PdbBreakpoint("too large")(x.max() > 1e6, x)
    >>> watched.sum().eval({x: [1.0, 2.0]})
    array(3.)

    ``count`` is the number of variables, known once the op is applied.
    """

    name: str = ""
    count: int = 0

    moves = True
    multiple_outputs = True
    has_effects: ClassVar[bool] = True

    def __call__(self, *args: Any, name: str | None = None) -> Any:
        """Return the monitored variables: one, or a list of several."""
        outputs = replace(self, count=len(args) - 1).make_node(*args).outputs
        return outputs[0] if len(outputs) == 1 else list(outputs)

    def as_inputs(self, *args: Any) -> list[Variable]:
        if len(args) < 2:
            raise TypeError("PdbBreakpoint takes a condition and at least one variable")
        return [x if isinstance(x, Variable) else as_tensor_variable(x) for x in args]

    def output_types(self, condition: TensorVariable, *monitored: Variable) -> list[Type]:
        if condition.ndim != 0 or dtypes.is_complex(condition.dtype):
            raise DTypeError(
                f"PdbBreakpoint: the condition must be a real scalar, got {condition} "
                f"({condition.type}): make one of it with any() or all()"
            )
        return [x.type for x in monitored]

    def bind(self, node: Apply) -> Callable[..., Any]:
        """Return ``perform`` with the variables bound."""
        return lambda condition, *values: self._stop(condition, values, node.inputs[1:])

    def perform(self, condition: Any, *values: Any) -> tuple[Any, ...]:
        return self._stop(condition, values, ())

    def _stop(
        self, condition: Any, values: tuple[Any, ...], variables: Sequence[Variable]
    ) -> tuple[Any, ...]:
        if condition:
            print(f"PdbBreakpoint {self.name!r}: look at `values` and `variables`")
            sys.breakpointhook()
        return values

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        return list(shapes[1:])

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        n = len(node.outputs)
        return [[False] * n, *([i == j for j in range(n)] for i in range(n))]

    def pullback(self, inputs: Any, outputs: Any, output_grads: Any) -> list[Any]:
        return [None, *output_grads]

    def pushforward(self, inputs: Any, outputs: Any, tangents: Any) -> list[Any]:
        return list(tangents[1:])

    @property
    def view_map(self) -> dict[int, tuple[int, ...]]:  # type: ignore[override]
        """Each output is one of the monitored inputs."""
        return {k: (k + 1,) for k in range(self.count)}

    def __str__(self) -> str:
        return f"PdbBreakpoint{{{self.name!r}}}"


@record
class Raise(Op):
    """Raises ``exc(message)`` when its value is needed. The value has the type of its input.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> from symcomp.ifelse import ifelse
    >>> x = T.dscalar("x")
    >>> root = ifelse(x >= 0, T.sqrt(x), T.Raise("x is negative", ValueError)(x))
    >>> root.eval({x: 4.0})
    array(2.)
    >>> root.eval({x: -4.0})
    Traceback (most recent call last):
        ...
    ValueError: x is negative...
    """

    message: str = ""
    exc: type[Exception] = NotImplementedError

    has_effects: ClassVar[bool] = True

    moves = True

    def as_inputs(self, *args: Any) -> list[Variable]:
        (x,) = args
        return [x if isinstance(x, Variable) else as_tensor_variable(x)]

    def output_types(self, x: Variable) -> list[Type]:
        return [x.type]

    def perform(self, x: Any) -> Any:
        raise self.exc(self.message)

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        return [shapes[0]]

    def pullback(self, inputs: Any, outputs: Any, output_grads: Any) -> list[Any]:
        return [Raise(self.message, self.exc)(inputs[0])]

    def pushforward(self, inputs: Any, outputs: Any, tangents: Any) -> list[Any]:
        return [Raise(self.message, self.exc)(inputs[0])]

    def __str__(self) -> str:
        return f"Raise{{{self.exc.__name__}: {self.message!r}}}"


__all__ = ["PdbBreakpoint", "Print", "Raise"]
