"""Facts about shapes: the length of every axis, a number or an expression in lengths of inputs.

Lengths are interned: two axes with the same interned length are equally long in every call. Facts
are computed on demand, once for each variable, and kept with the graph.
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
from symcomp.ops.elementwise.elemwise import Elemwise
from symcomp.ops.indexing.index import Subtensor
from symcomp.ops.shapes.dimshuffle import DimShuffle
from symcomp.ops.shapes.shape import Shape, ShapeI
from symcomp.ops.shapes.stack import Stack
from symcomp.rewrite.constant_folding import folded

Length = Any  # int, or an int64 scalar variable
Lengths = tuple[Length, ...]

# Placeholder for the lengths of an output while they are inferred.
_PENDING: Any = object()
# The numbers with which integer functions change nothing.
_NEUTRAL = {"add": 0, "sub": 0, "mul": 1, "int_div": 1}


class Shapes:
    """The lengths of the variables of a graph.

    Parameters
    ----------
    anywhere : bool
        Whether arrays on devices have lengths, too; expressions of these lengths are computed on
        the host.
    """

    def __init__(self, anywhere: bool = False) -> None:
        self._anywhere = anywhere
        self._known: dict[Variable, Any] = {}
        self._interned: dict[Any, Length] = {}

    def of(self, variable: Variable) -> Any:
        """Return the lengths of ``variable``: a tuple of int or variable; None if it is no tensor.
        """
        found = self._known.get(variable, self)
        if found is _PENDING:
            found = self._known[variable] = self._from_itself(variable)
        if found is not self:
            return found
        for node in toposort([variable], self._known):
            self._infer(node)
        if variable not in self._known:
            self._known[variable] = self._from_itself(variable)
        return self._known[variable]

    def same(self, x: Variable, a: int, y: Variable, b: int) -> bool:
        """Tell whether axis a of x is known to be as long as axis b of y."""
        m, n = self.of(x)[a], self.of(y)[b]
        return m is n or (isinstance(m, int) and m == n)

    def key(self, x: Variable, axis: int) -> int:
        """Return a number that stands for a length; those of variables are addresses."""
        n = self.of(x)[axis]
        return n if isinstance(n, int) else id(n)

    def covers(self, x: Any, y: Any) -> bool:
        """Tell whether x is known to have the shape that x and y broadcast to (ranks are equal)."""
        return all(n == 1 or self.same(x, a, y, a) for a, n in enumerate(y.type.shape))

    def count(self, x: Variable, axes: Sequence[int]) -> tuple[int, list[int]]:
        """Return the number of elements along ``axes``: its known part, and the other lengths,
        sorted.
        """
        lengths = [self.of(x)[a] for a in axes]
        known = prod(n for n in lengths if isinstance(n, int))
        return known, sorted(id(n) for n in lengths if not isinstance(n, int))

    def count_of(self, product: Variable) -> tuple[int, list[int]]:
        """Return a product of lengths in the form of ``count``."""
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

    def size(self, x: Variable) -> tuple[int, list[int]]:
        """Return the number of elements of x in the form of ``count``; equal ones are equal in
        every call.
        """
        known = 1
        lengths: list[int] = []
        for n in self.of(x):
            part, more = (n, []) if isinstance(n, int) else self.count_of(n)
            known, lengths = known * part, lengths + more
        return known, sorted(lengths)

    def _infer(self, node: Apply) -> None:
        shapes = [self.of(x) for x in node.inputs]
        try:
            inferred: Sequence[Any] = node.op.infer_shape(node, shapes)
        except NotImplementedError:
            inferred = [None] * len(node.outputs)
        for out in node.outputs:
            # An op may give the length of the output itself: then it is only known at run time.
            self._known[out] = _PENDING
        for out, shape in zip(node.outputs, inferred, strict=True):
            self._known[out] = (
                self._from_itself(out)
                if shape is None or not self._has_lengths(out)
                else tuple(
                    self.intern(n) if known is None else known
                    for n, known in zip(shape, out.type.shape, strict=True)
                )
            )

    def _has_lengths(self, x: Any) -> bool:
        kind = getattr(x.type, "on_host", x.type) if self._anywhere else x.type
        return isinstance(kind, TensorType)

    def _from_itself(self, variable: Any) -> Any:
        if not self._has_lengths(variable):
            return None
        return tuple(
            self._shared(ShapeI(a)(variable)) if n is None else n
            for a, n in enumerate(variable.type.shape)
        )

    def _shared(self, length: Variable) -> Length:
        """Return the representative of all nodes with the op and inputs of the one that computes
        ``length``.
        """
        assert length.owner is not None
        return self._interned.setdefault((length.owner.op, *length.owner.inputs), length)

    def intern(self, length: Any) -> Length:
        """Return the representative, int or scalar variable, of all equal expressions of one
        integer, which may have axes of length 1.
        """
        pending = [length]
        while pending:
            n = pending.pop()
            if self._found(n) is not None:
                continue
            parts = self._parts(n)
            missing = [x for x in parts if self._found(x) is None]
            if missing:
                pending += [n, *missing]
                continue
            found = self._interned[n] = self._made_of(n, [self._found(x) for x in parts])
            if isinstance(found, Variable):
                self._interned[found] = found
        return self._found(length)

    def _found(self, length: Any) -> Length | None:
        """Return the interned form of a length; None if it has none yet."""
        if not isinstance(length, Variable):
            return int(length)
        if isinstance(length, Constant):
            return int(length.data.item())
        return self._interned.get(length)

    def _parts(self, length: Variable) -> Sequence[Length]:
        """Return the lengths that a length is computed from."""
        node = length.owner
        if node is None or _is_scalar(node):
            return () if node is None else node.inputs
        if isinstance(node.op, DimShuffle) and node.inputs[0].ndim == 0:
            return node.inputs
        entry = self._entry(node)
        return () if entry is None else [entry]

    def _made_of(self, length: Any, parts: Sequence[Length]) -> Length:
        """Return the interned form of ``length``, given those of its parts."""
        node = length.owner
        if node is not None and isinstance(node.op, ShapeI):
            return self.of(node.inputs[0])[node.op.axis]
        if node is None or not parts:
            return length
        if not _is_scalar(node):
            return parts[0]
        if _is_scalar(node, "switch") and _never(parts[0], parts[2]):
            return parts[2]
        n = _unchanged(node.op.scalar.name, parts)
        if isinstance(n, int) or (n is not None and n.dtype == length.dtype):
            return n
        if _is_scalar(node, "maximum") and 0 in parts:
            n = parts[1 - parts.index(0)]
            if isinstance(n, Variable) and is_natural(n):
                return n
        twin = node.op(*(_as_type(n, x) for n, x in zip(parts, node.inputs, strict=True)))
        values = folded(twin.owner) if all(isinstance(n, int) for n in parts) else []
        return int(values[0].data) if values else self._interned.setdefault((node.op, *parts), twin)

    def _entry(self, node: Apply) -> Length | None:
        """Return the entry that a node reads of a vector of lengths, if it is known."""
        if not isinstance(node.op, Subtensor) or len(node.inputs) != 1:
            return None
        vector: Any = node.inputs[0]
        if vector.ndim != 1 or vector.type.shape[0] is None:
            return None
        position, source, n = node.op.pattern[0], vector.owner, vector.type.shape[0]
        if not isinstance(position, int) or not -n <= position < n:
            return None
        if isinstance(vector, Constant):
            return int(vector.data[position])
        if source is None:
            return None
        if isinstance(source.op, Stack):
            return source.inputs[position]
        if isinstance(source.op, Shape):
            return self.of(source.inputs[0])[position]
        if isinstance(source.op, DimShuffle) and source.inputs[0].ndim == 0:
            return source.inputs[0]
        if type(source.op) is Elemwise and not source.op.inplace:
            places = (0 if x.type.shape == (1,) else position for x in source.inputs)
            entries = (Subtensor((p,))(x) for p, x in zip(places, source.inputs, strict=True))
            return self._shared(source.op(*map(self._shared, entries)))
        return None


def _unchanged(name: str, parts: Sequence[Length]) -> Length | None:
    """Return the length to which the function of this name does nothing: n * 1, n + 0 ..."""
    neutral = _NEUTRAL.get(name)
    for i, n in enumerate(parts[:-1] if name in ("sub", "int_div") else parts):
        others = [m for j, m in enumerate(parts) if j != i]
        if neutral is not None and all(isinstance(m, int) and m == neutral for m in others):
            return n
    return None


def _never(condition: Any, x: Any) -> bool:
    """Tell whether the condition means that ``x`` is negative, which a length cannot be."""
    owner = condition.owner if isinstance(condition, Variable) else None
    if owner is None or not _is_scalar(owner, "lt"):
        return False
    a, b = owner.inputs
    return a is x and isinstance(b, Constant) and int(b.data) == 0 and is_natural(x)


def is_natural(x: Any) -> bool:
    """Tell whether ``x`` is a product of lengths and nonnegative integers."""
    pending = [x]
    while pending:
        v = pending.pop()
        if isinstance(v, Constant):
            natural = int(v.data) >= 0
        elif _is_scalar(v.owner, "mul"):
            natural = True
            pending += v.owner.inputs
        else:
            natural = v.owner is not None and isinstance(v.owner.op, ShapeI)
        if not natural:
            return False
    return True


def _as_type(n: Length, like: Any) -> Any:
    """Cast a length to the dtype of ``like``, to stand as its entry."""
    return n if isinstance(n, Variable) else TensorType(like.dtype, ()).make_constant(n)


def _is_scalar(node: Apply | None, name: str | None = None) -> bool:
    """Tell whether the node computes one integer from single integers, by the function of this
    name.
    """
    return (
        node is not None
        and type(node.op) is Elemwise
        and not node.op.inplace
        and (name is None or node.op.scalar.name == name)
        and all(_is_length(x) for x in (*node.inputs, *node.outputs))
    )


def _is_length(x: Any) -> bool:
    single = isinstance(x, TensorVariable) and all(n == 1 for n in x.type.shape)
    return single and dtypes.is_discrete(x.dtype)


def shapes_of(graph: FunctionGraph) -> Shapes:
    """Return the facts about the shapes of ``graph``, kept with it."""
    found = graph.facts.get("shapes")
    if found is None:
        found = graph.facts["shapes"] = Shapes()
    return found
