"""Ops written for Theano: ``make_node``, ``perform(node, inputs, output_storage)``, ``grad``...

``Op`` translates them: for the rest of symcomp, a subclass of it is an op like any other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from threading import Lock
from typing import Any, ClassVar

import numpy as np

from symcomp.autodiff.lop import grad_undefined, zeros_for
from symcomp.config import config
from symcomp.core import dtype as dtypes
from symcomp.core.applications import note_application
from symcomp.core.node import Apply, Type, Variable
from symcomp.core.op import Op as ModernOp
from symcomp.core.special_types import DisconnectedType, NullType
from symcomp.core.tensor import TensorType
from symcomp.ops.convert import as_tensor_variable
from symcomp.ops.random.state import RandomType, generator_at

__all__ = ["MethodNotDefined", "Op", "PureOp", "ShapeError", "ViewOp", "view_op"]


class MethodNotDefined(AttributeError, NotImplementedError):
    """An op lacks a method that is needed."""


class ShapeError(NotImplementedError):
    """Raised by ``infer_shape`` where an op cannot tell the shape of its outputs."""


class Op(ModernOp):
    """Base class of ops in Theano's form.

    A subclass has ``make_node(*inputs)``, which returns an Apply (or ``itypes`` and ``otypes``),
    and ``perform(node, inputs, output_storage)``, which puts the value of output i into
    ``output_storage[i][0]``. It may have ``grad(inputs, output_gradients)`` or
    ``L_op(inputs, outputs, output_gradients)``, ``R_op(inputs, eval_points)``,
    ``infer_shape(node, shapes)``, ``connection_pattern(node)``, ``view_map``, ``destroy_map``,
    ``default_output`` and ``__props__``: names of the attributes that make two ops equal. Inputs
    that are random states are passed to ``perform`` as NumPy's ``RandomState``. An op may have
    ``make_thunk(node, storage_map, compute_map, no_recycling)`` instead of ``perform``.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> from symcomp.compat.op import Op
    >>> class Double(Op):
    ...     __props__ = ()
    ...     itypes, otypes = [T.dvector], [T.dvector]
    ...     def perform(self, node, inputs, output_storage):
    ...         output_storage[0][0] = 2 * inputs[0]
    ...     def grad(self, inputs, output_gradients):
    ...         return [2 * output_gradients[0]]
    >>> x = T.dvector("x")
    >>> Double()(x).eval({x: [1.0, 2.0]})
    array([2., 4.])
    """

    multiple_outputs = True  # of perform; default_output decides about calls
    default_output: ClassVar[int | None] = None

    # -- building
    # ------------------------------------------------------------------------------------

    def make_node(self, *inputs: Any) -> Apply:
        """Return the node that ``itypes`` and ``otypes`` describe."""
        types = getattr(self, "itypes", None)
        if types is None or not hasattr(self, "otypes"):
            raise MethodNotDefined(f"{self} has neither make_node nor itypes and otypes")
        if len(types) != len(inputs):
            raise TypeError(f"{self} takes {len(types)} inputs, got {len(inputs)}")
        variables = [x if isinstance(x, Variable) else as_tensor_variable(x) for x in inputs]
        for i, (x, kind) in enumerate(zip(variables, types, strict=True)):
            if not kind.is_super(x.type):
                raise TypeError(f"{self}: input {i} is {x} of type {x.type}, not {kind}")
        return Apply(self, variables, list(self.otypes))

    def __call__(self, *inputs: Any, **options: Any) -> Any:
        """Apply the op: return its only output, that of ``default_output``, or a list of all."""
        several = options.pop("return_list", False)
        node = self.make_node(*inputs, **options)
        note_application(node)
        outputs = list(node.outputs)
        if several:
            return outputs
        if self.default_output is not None:
            return outputs[self.default_output]
        return outputs[0] if len(outputs) == 1 else outputs

    # -- running
    # -------------------------------------------------------------------------------------

    def bind(self, node: Apply) -> Callable[..., tuple[Any, ...]]:
        """Return ``perform`` with new storage at each call, its results converted to the node's
        types; or the function made by the op's own ``make_thunk``.
        """
        if type(self).make_thunk is not Op.make_thunk:
            return self._bind_thunk(node)
        if getattr(self.perform, "__func__", None) is ModernOp.perform:
            raise NotImplementedError(f"{self} has no perform: symcomp cannot run Theano's C code")
        takes, gives = [x.type for x in node.inputs], [out.type for out in node.outputs]
        plain = not any(isinstance(kind, RandomType) for kind in takes)

        def compute(*values: Any) -> tuple[Any, ...]:
            given = list(values) if plain else list(map(_as_given, takes, values))
            storage: list[list[Any]] = [[None] for _ in gives]
            self.perform(node, given, storage)
            return tuple(_as_value(k, cell[0]) for k, cell in zip(gives, storage, strict=True))

        return compute

    def make_thunk(
        self,
        node: Apply,
        storage_map: Mapping[Variable, list[Any]],
        compute_map: Mapping[Variable, list[bool]] | None = None,
        no_recycling: Sequence[Variable] = (),
        impl: Any = None,
    ) -> Callable[[], None]:
        """Return a function that computes the node from, and into, the cells of ``storage_map``.

        Parameters
        ----------
        node : Apply
        storage_map : mapping of Variable to list
            For each input and output of the node a list of one element, its value.
        compute_map : mapping of Variable to list, optional
            For each output a list of one element, which is set to True.
        no_recycling, impl
            Accepted as Theano has them.
        """
        compute = self.bind(node)
        inputs = [storage_map[x] for x in node.inputs]
        outputs = [storage_map[y] for y in node.outputs]

        def thunk() -> None:
            found = compute(*(cell[0] for cell in inputs))
            for y, cell, value in zip(node.outputs, outputs, found, strict=True):
                cell[0] = value
                if compute_map is not None:
                    compute_map[y][0] = True

        thunk.inputs, thunk.outputs, thunk.lazy = inputs, outputs, False  # type: ignore[attr-defined]
        return thunk

    def _bind_thunk(self, node: Apply) -> Callable[..., tuple[Any, ...]]:
        """Return a function of values that calls the thunk of the op, one call at a time."""
        cells: dict[Variable, list[Any]] = {v: [None] for v in (*node.inputs, *node.outputs)}
        done = {v: [v in node.inputs] for v in cells}
        thunk = self.make_thunk(node, cells, done, [])
        lock = Lock()

        def compute(*values: Any) -> tuple[Any, ...]:
            with lock:
                for x, value in zip(node.inputs, values, strict=True):
                    cells[x][0] = _as_given(x.type, value)
                for y in node.outputs:
                    cells[y][0], done[y][0] = None, False
                thunk()
                return tuple(_as_value(y.type, cells[y][0]) for y in node.outputs)

        return compute

    # -- differentiating
    # -----------------------------------------------------------------------------

    def pullback(
        self, inputs: Sequence[Any], outputs: Sequence[Any], output_grads: Sequence[Any]
    ) -> list[Any]:
        """Return the result of ``L_op`` or ``grad``, in symcomp's form."""
        given = [_gradient_of(y, g) for y, g in zip(outputs, output_grads, strict=True)]
        if hasattr(self, "L_op"):
            found = self.L_op(list(inputs), list(outputs), given)
        elif hasattr(self, "grad"):
            found = self.grad(list(inputs), given)
        else:
            raise MethodNotDefined(f"{self} has neither L_op nor grad")
        if not isinstance(found, list | tuple) or len(found) != len(inputs):
            raise TypeError(
                f"the gradient of {self} is {found!r}, not a list with one of {len(inputs)} inputs"
            )
        return [_term(self, i, x, g) for i, (x, g) in enumerate(zip(inputs, found, strict=True))]

    def pushforward(
        self, inputs: Sequence[Any], outputs: Sequence[Any], tangents: Sequence[Any]
    ) -> list[Any]:
        """Return the result of ``R_op``, where None means that it is not implemented."""
        if not hasattr(self, "R_op"):
            raise MethodNotDefined(f"{self} has no R_op")
        found = list(self.R_op(list(inputs), list(tangents)))
        if len(found) != len(outputs):
            raise TypeError(f"R_op of {self} gave {len(found)} tangents for {len(outputs)} outputs")
        rows = zip(tangents, self.connection_pattern(outputs[0].owner), strict=True)
        moving = [row for dx, row in rows if dx is not None]
        return [
            _not_pushed(self, j, y) if dy is None and any(row[j] for row in moving) else dy
            for j, (y, dy) in enumerate(zip(outputs, found, strict=True))
        ]

    def undefined_derivatives(self, node: Apply, forward: bool = False) -> Sequence[Sequence[str]]:
        """Return the derivatives that ``R_op`` or ``grad`` leaves undefined even for zero
        arguments.
        """
        m = len(node.outputs)
        if forward:
            if not hasattr(self, "R_op"):
                return ()
            pushed = self.pushforward(node.inputs, node.outputs, _zeros(node.inputs))
            reasons = [_why(dy) for dy in pushed]
            return [reasons] * len(node.inputs) if any(reasons) else ()
        if not (hasattr(self, "L_op") or hasattr(self, "grad")):
            return ()
        pulled = self.pullback(node.inputs, node.outputs, _zeros(node.outputs))
        reasons = [_why(gx) for gx in pulled]
        return [[why] * m for why in reasons] if any(reasons) else ()

    # -- identity
    # ------------------------------------------------------------------------------------

    def _parameters(self) -> tuple[Any, ...] | None:
        names = getattr(self, "__props__", None)
        return None if names is None else tuple(getattr(self, name) for name in names)

    def __eq__(self, other: object) -> bool:
        own = self._parameters()
        if own is None or type(self) is not type(other):
            return self is other
        return own == other._parameters()

    def __hash__(self) -> int:
        own = self._parameters()
        return object.__hash__(self) if own is None else hash((type(self), own))

    def __str__(self) -> str:
        names = getattr(self, "__props__", ())
        shown = ", ".join(f"{name}={getattr(self, name)!r}" for name in names)
        return f"{type(self).__name__}{{{shown}}}" if shown else type(self).__name__


PureOp = Op


def _as_given(kind: Type, value: Any) -> Any:
    """Return a value in the form that ``perform`` takes: a random state as NumPy's ``RandomState``.
    """
    if isinstance(kind, RandomType):
        return np.random.RandomState(generator_at(value, _new_generator()).bit_generator)
    return value


def _new_generator() -> np.random.Generator:
    return np.random.Generator(np.random.PCG64(0))


def _as_value(kind: Type, value: Any) -> Any:
    """Return a number, or a random state, as an array of the type; arrays stay, and are checked
    by the machine that runs the op.
    """
    if isinstance(kind, TensorType) and not isinstance(value, np.ndarray) and value is not None:
        return kind.filter(value)
    return value


def _gradient_of(y: Any, gradient: Any) -> Any:
    """Return the gradient of an output as Theano passes it: for an unused one, a mark."""
    if gradient is not None:
        return gradient
    if isinstance(y.type, TensorType) and dtypes.is_discrete(y.type.dtype):
        return y.zeros_like(config.floatX)
    return DisconnectedType()()


def _term(op: Any, i: int, x: Variable, gradient: Any) -> Any:
    if gradient is None:
        return grad_undefined(op, i, x, "Its grad returned None.")
    gradient = gradient if isinstance(gradient, Variable) else as_tensor_variable(gradient)
    return None if isinstance(gradient.type, DisconnectedType) else gradient


def _zeros(variables: Sequence[Any]) -> list[Any]:
    """Return zero derivatives; None for variables that are not tensors."""
    return [zeros_for(x) if isinstance(x.type, TensorType) else None for x in variables]


def _why(term: Any) -> str:
    """Return why a derivative is undefined; empty text if it is not."""
    return term.type.reason if term is not None and isinstance(term.type, NullType) else ""


def _not_pushed(op: Any, j: int, y: Variable) -> Variable:
    return NullType(
        f"{op} has no derivative in forward mode: its R_op gave None for output {j} ({y})"
    )()


class ViewOp(Op):
    """The input itself; a base class for ops that only change the gradient."""

    __props__: ClassVar[tuple[str, ...]] = ()
    view_map = {0: (0,)}

    def make_node(self, x: Any) -> Apply:
        """Make a node with one output, of the type of the input."""
        x = x if isinstance(x, Variable) else as_tensor_variable(x)
        return Apply(self, [x], [x.type])

    def perform(self, node: Apply, inputs: Any, output_storage: Any) -> None:
        """Pass the value on."""
        output_storage[0][0] = inputs[0]

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        """Return the shape of the input."""
        return list(shapes)

    def grad(self, inputs: Any, output_gradients: Any) -> list[Any]:
        """Return the gradient unchanged."""
        return list(output_gradients)

    def R_op(self, inputs: Any, eval_points: Any) -> list[Any]:
        """Return the tangent unchanged."""
        return list(eval_points)


view_op = ViewOp()
