"""Facts about shapes: the length of every axis, a number or an expression in lengths of inputs.

Lengths are interned: two axes with the same interned length are equally long in every call. Facts
are found when asked for, once for each variable, and kept with the graph.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from symcomp.core import dtype as dtypes
from symcomp.core.graph import FunctionGraph
from symcomp.core.node import Apply, Constant, Variable
from symcomp.core.tensor import TensorType, TensorVariable
from symcomp.core.walk import toposort
from symcomp.ops.elemwise import Elemwise
from symcomp.ops.shape import ShapeI

Length = Any  # int, or an int64 scalar variable
Lengths = tuple[Length, ...]


class Shapes:
    """The lengths of the variables of a graph."""

    def __init__(self) -> None:
        self._known: dict[Variable, Any] = {}
        self._interned: dict[Any, Length] = {}

    def of(self, variable: Variable) -> Any:
        """The lengths of ``variable``: a tuple of int or variable; None if it is no tensor."""
        found = self._known.get(variable, self)
        if found is not self:
            return found
        for node in toposort([variable], self._known):
            self._infer(node)
        if variable not in self._known:
            self._known[variable] = self._from_itself(variable)
        return self._known[variable]

    def same(self, x: Variable, a: int, y: Variable, b: int) -> bool:
        """True if axis a of x is known to be as long as axis b of y."""
        m, n = self.of(x)[a], self.of(y)[b]
        return m is n or (isinstance(m, int) and m == n)

    def covers(self, x: Any, y: Any) -> bool:
        """True if x is known to have the shape that x and y broadcast to (ranks are equal)."""
        return all(n == 1 or self.same(x, a, y, a) for a, n in enumerate(y.type.shape))

    def count(self, x: Variable, axes: Sequence[int]) -> tuple[int, list[int]]:
        """The number of elements along ``axes``: its known part, and the other lengths, sorted."""
        lengths = [self.of(x)[a] for a in axes]
        known = prod(n for n in lengths if isinstance(n, int))
        return known, sorted(id(n) for n in lengths if not isinstance(n, int))

    def count_of(self, product: Variable) -> tuple[int, list[int]]:
        """A product of lengths, read as ``count`` says it."""
        known, lengths = 1, []
        pending = [product]
        while pending:
            v = self.intern(pending.pop())
            if isinstance(v, int):
                known *= v
            elif _is_scalar(v.owner, "mul") or _is_scalar(v.owner, "cast"):
                pending += v.owner.inputs
            else:
                lengths.append(id(v))
        return known, sorted(lengths)

    def _infer(self, node: Apply) -> None:
        shapes = []
        for x in node.inputs:
            if x not in self._known:
                self._known[x] = self._from_itself(x)
            shapes.append(self._known[x])
        try:
            inferred: Sequence[Any] = node.op.infer_shape(node, shapes)
        except NotImplementedError:
            inferred = [None] * len(node.outputs)
        for out, shape in zip(node.outputs, inferred, strict=True):
            self._known[out] = (
                self._from_itself(out)
                if shape is None or not isinstance(out.type, TensorType)
                else tuple(
                    self.intern(n) if known is None else known
                    for n, known in zip(shape, out.type.shape, strict=True)
                )
            )

    def _from_itself(self, variable: Any) -> Any:
        if not isinstance(variable.type, TensorType):
            return None
        return tuple(
            self._shared(ShapeI(a)(variable)) if n is None else n
            for a, n in enumerate(variable.type.shape)
        )

    def _shared(self, length: Variable) -> Length:
        """The one variable for the node of ``length``, whose inputs are interned."""
        assert length.owner is not None
        return self._interned.setdefault((length.owner.op, *length.owner.inputs), length)

    def intern(self, length: Any) -> Length:
        """The one int or variable for all expressions of an integer that are equal to this."""
        if not isinstance(length, Variable):
            return int(length)
        if isinstance(length, Constant):
            return int(length.data)
        node = length.owner
        if node is None or length in self._interned:
            return self._interned.get(length, length)
        found: Length = length
        if isinstance(node.op, ShapeI):
            found = self.of(node.inputs[0])[node.op.axis]
        elif _is_scalar(node):
            inputs = [self.intern(x) for x in node.inputs]
            key = (node.op, *inputs)
            twin = node.op(*(_as_type(n, x) for n, x in zip(inputs, node.inputs, strict=True)))
            found = self._interned.setdefault(key, twin)
        self._interned[length] = found
        if isinstance(found, Variable):
            self._interned[found] = found
        return found


def _as_type(n: Length, like: Variable) -> Any:
    return n if isinstance(n, Variable) else like.type.make_constant(n)


def _is_scalar(node: Apply | None, name: str | None = None) -> bool:
    """True if the node computes an integer scalar from such, by the function of this name."""
    return (
        node is not None
        and type(node.op) is Elemwise
        and not node.op.inplace
        and (name is None or node.op.scalar.name == name)
        and all(_is_length(x) for x in (*node.inputs, *node.outputs))
    )


def _is_length(x: Any) -> bool:
    return isinstance(x, TensorVariable) and x.ndim == 0 and dtypes.is_discrete(x.dtype)


def shapes_of(graph: FunctionGraph) -> Shapes:
    """The facts about the shapes of ``graph``, kept with it."""
    found = graph.facts.get("shapes")
    if found is None:
        found = graph.facts["shapes"] = Shapes()
    return found
