"""``theano.tensor.Elemwise``: its constructor, and the base class for programs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from symcomp.compat.composite import Composite
from symcomp.compat.op import Op
from symcomp.compat.scalars import as_row
from symcomp.core.node import Apply
from symcomp.core.special_types import DisconnectedType
from symcomp.ops.elementwise.elemwise import Elemwise
from symcomp.rewrite.registry import register_rule
from symcomp.rewrite.rule import rule

__all__ = ["elementwise", "OwnElemwise"]


def _pattern(inplace_pattern: Mapping[int, int] | None) -> tuple[tuple[int, int], ...]:
    """Return the pairs of an output and the input that it overwrites."""
    return tuple(sorted((inplace_pattern or {}).items()))


def elementwise(
    scalar_op: Any,
    inplace_pattern: Mapping[int, int] | None = None,
    name: str | None = None,
    nfunc_spec: Any = None,
    openmp: Any = None,
) -> Any:
    """Return the op that applies ``scalar_op`` to each element.

    Parameters
    ----------
    scalar_op
        A function of ``theano.scalar``, an op of the program's, or a Composite.
    inplace_pattern : mapping of int to int, optional
        From an output to the input that it overwrites.
    name, nfunc_spec, openmp
        Accepted as Theano has them.
    """
    pattern = _pattern(inplace_pattern)
    if not isinstance(scalar_op, Composite):
        return Elemwise(as_row(scalar_op), pattern)
    if pattern:
        raise NotImplementedError(f"theano.tensor.Elemwise of {scalar_op} in place")
    return scalar_op


class OwnElemwise(Op):
    """Base of elementwise ops in Theano's form, of which a program overrides some methods.

    Other methods are those of the op of the scalar function. Compiled functions replace an op whose
    ``perform`` is not overridden by that op.

    Examples
    --------
    >>> import symcomp
    >>> import symcomp.tensor as T
    >>> from symcomp.compat.own_elemwise import OwnElemwise
    >>> class Straight(OwnElemwise):
    ...     def grad(self, inputs, output_gradients):
    ...         return list(output_gradients)
    >>> x = T.dvector("x")
    >>> y = Straight(T.floor.op.scalar)(x)
    >>> symcomp.function([x], [y, T.grad(y.sum(), x)])([0.4, 1.6])
    [array([0., 1.]), array([1., 1.])]
    """

    def __init__(
        self,
        scalar_op: Any,
        inplace_pattern: Mapping[int, int] | None = None,
        name: str | None = None,
        nfunc_spec: Any = None,
        openmp: Any = None,
    ) -> None:
        self.scalar_op, self.name = scalar_op, name
        self.nfunc_spec, self.openmp = nfunc_spec, openmp
        self.inplace_pattern = dict(inplace_pattern or {})
        self.scalar = as_row(scalar_op)
        self.built_in = Elemwise(self.scalar, _pattern(inplace_pattern))
        self.destroy_map = {out: (i,) for out, i in self.inplace_pattern.items()}
        _register_lowering()

    def make_node(self, *inputs: Any) -> Apply:
        """Return the node: the inputs brought to one rank, and one output."""
        node = self.built_in.make_node(*inputs)
        return Apply(self, node.inputs, [out.type for out in node.outputs])

    def perform(self, node: Apply, inputs: Any, output_storage: Any) -> None:
        """Apply the scalar function to each element."""
        output_storage[0][0] = self.built_in.bind(node)(*inputs)

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        """Return the shape that the inputs broadcast to."""
        return self.built_in.infer_shape(node, shapes)

    def grad(self, inputs: Sequence[Any], output_gradients: Sequence[Any]) -> list[Any]:
        """Return the gradients of the scalar function."""
        outputs = self.built_in.make_node(*inputs).outputs
        found = self.built_in.pullback(inputs, outputs, output_gradients)
        return [DisconnectedType()() if g is None else g for g in found]

    def L_op(
        self, inputs: Sequence[Any], outputs: Sequence[Any], output_gradients: Sequence[Any]
    ) -> list[Any]:
        """Return the result of ``grad``."""
        return self.grad(inputs, output_gradients)

    def R_op(self, inputs: Sequence[Any], eval_points: Sequence[Any]) -> list[Any]:
        """Return the tangent of the scalar function."""
        outputs = self.built_in.make_node(*inputs).outputs
        return self.built_in.pushforward(inputs, outputs, eval_points)

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash((type(self), self.built_in))

    def _key(self) -> Any:
        return self.built_in, self._parameters()

    def __str__(self) -> str:
        return self.name or f"{type(self).__name__}{{{self.built_in}}}"


#: Methods that define the result of an op.
_COMPUTING = ("bind", "make_node", "perform")


@cache
def _register_lowering() -> None:
    """Replace such an op by the built-in one in compiled functions where ``perform`` is not
    overridden.

    Derivatives are taken before that phase, so that overridden ones are called.
    """
    register_rule(_lowered, "specialize")


@rule(OwnElemwise, why="the op has the values of the scalar function", subclasses=True)
def _lowered(node: Apply, graph: Any) -> Any:
    """own(x) -> f(x), where own has the perform of its base class"""
    kind = type(node.op)
    own = any(getattr(kind, name) is not getattr(OwnElemwise, name) for name in _COMPUTING)
    if own or node.op.inplace_pattern:
        return None
    return node.op.built_in.make_node(*node.inputs).outputs[0]
