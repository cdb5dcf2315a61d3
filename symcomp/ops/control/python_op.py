"""as_op: a Python function as an op."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from symcomp.core.node import Apply, Type, Variable
from symcomp.core.op import Op
from symcomp.core.record import record
from symcomp.errors import DTypeError, ShapeError
from symcomp.ops.convert import as_tensor_variable


@record
class PythonOp(Op):
    """``function(*values)``, with inputs and outputs of the given types. It has no derivative.

    Attributes
    ----------
    function : callable
        Maps the values of the inputs to that of the only output, or to a sequence of several.
    itypes, otypes : tuple of Type
    shape_function : callable (node, shapes) -> shapes, optional
    """

    function: Callable[..., Any]
    itypes: tuple[Type, ...]
    otypes: tuple[Type, ...]
    shape_function: Callable[..., Any] | None = None

    multiple_outputs: ClassVar[bool] = True
    no_derivative: ClassVar[str] = "a Python function is not differentiated"

    moves = True

    def as_inputs(self, *args: Any) -> list[Variable]:
        """Convert the arguments to variables of the declared types."""
        if len(args) != len(self.itypes):
            raise TypeError(f"{self} takes {len(self.itypes)} arguments, got {len(args)}")
        made = [x if isinstance(x, Variable) else as_tensor_variable(x) for x in args]
        for i, (x, kind) in enumerate(zip(made, self.itypes, strict=True)):
            if not kind.is_super(x.type):
                raise DTypeError(f"{self}: argument {i} is {x} of type {x.type}, not {kind}")
        return made

    def output_types(self, *inputs: Variable) -> list[Type]:
        """Return the declared types."""
        return list(self.otypes)

    def __call__(self, *args: Any, name: str | None = None) -> Any:
        """Return the only output, or a list of several."""
        outputs = super().__call__(*args)
        if len(outputs) > 1:
            return outputs
        outputs[0].name = name
        return outputs[0]

    def perform(self, *values: Any) -> tuple[Any, ...]:
        """Call the function."""
        result = self.function(*values)
        several = tuple(result) if isinstance(result, list | tuple) else (result,)
        return tuple(kind.filter(value) for kind, value in zip(self.otypes, several, strict=True))

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        """Return the shapes given by ``shape_function``."""
        if self.shape_function is None:
            raise NotImplementedError(f"{self} was given no infer_shape")
        return list(self.shape_function(node, shapes))

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Pickle by name, if the decorator has replaced the function by the op."""
        module, name = self.function.__module__, self.function.__qualname__
        if getattr(sys.modules.get(module), name, None) == self:
            return _named, (module, name)
        return super().__reduce_ex__(protocol)

    def __str__(self) -> str:
        return f"PythonOp({getattr(self.function, '__name__', self.function)})"


def _named(module: str, name: str) -> PythonOp:
    """Return the op with this name in a module."""
    return getattr(importlib.import_module(module), name)


def as_op(
    itypes: Any, otypes: Any, infer_shape: Callable[..., Any] | None = None
) -> Callable[[Callable[..., Any]], PythonOp]:
    """Make an op of a function of arrays; a decorator.

    Parameters
    ----------
    itypes, otypes : Type or sequence of Type
        The types of the arguments, and of the results.
    infer_shape : callable (node, shapes) -> list of shape, optional
        The shapes of the outputs, from those of the inputs.

    Returns
    -------
    callable
        From the function to an op that applies it to variables. What the function returns must be
        of the types promised, or convertible to them without loss.

    Examples
    --------
    >>> import numpy as np
    >>> import symcomp
    >>> import symcomp.tensor as T
    >>> @symcomp.as_op(itypes=[T.dmatrix], otypes=[T.dvector])
    ... def eigenvalues(x):
    ...     return np.sort(np.linalg.eigvals(x).real)
    >>> x = T.dmatrix("x")
    >>> eigenvalues(x).eval({x: [[2.0, 0.0], [0.0, 1.0]]})
    array([1., 2.])
    """
    inputs, outputs = _types("itypes", itypes), _types("otypes", otypes)
    if not outputs:
        raise ShapeError("as_op: otypes is empty: an op has at least one output")

    def decorate(function: Callable[..., Any]) -> PythonOp:
        return PythonOp(function, inputs, outputs, infer_shape)

    return decorate


def _types(argument: str, given: Any) -> tuple[Type, ...]:
    types = tuple(given) if isinstance(given, list | tuple) else (given,)
    for kind in types:
        if not isinstance(kind, Type):
            raise TypeError(f"as_op: {argument} has {kind!r}, not a type such as T.dmatrix")
    return types
