"""Patterns of expressions, matched as the expressions are written.

``pattern.py`` has the functions that write patterns and make rules of them; ``view_matching.py``
matches the same patterns however sums and products are written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

from symcomp.core import dtype as dtypes
from symcomp.core.node import Apply, Constant, Variable
from symcomp.core.op import Op
from symcomp.core.record import record
from symcomp.core.tensor import TensorType
from symcomp.ops.elementwise.elemwise import Elemwise
from symcomp.ops.elementwise.scalar_math import add
from symcomp.rewrite.rule import Kind, elementwise
from symcomp.rewrite.views import LONGEST, call, number

COMMUTATIVE = frozenset(
    "add mul maximum minimum eq neq logical_and logical_or logical_xor and_ or_ xor hypot "
    "logaddexp log_mul".split()
)
DTYPES: dict[str, Callable[[str], bool]] = {
    "float": dtypes.is_float,
    "complex": dtypes.is_complex,
    "integer": dtypes.is_integer,
    "discrete": dtypes.is_discrete,
}
INFIX = {"add": "+", "sub": "-", "mul": "*", "true_div": "/", "pow": "**"}
BINDS = {"add": 1, "sub": 1, "mul": 2, "true_div": 2, "neg": 3, "pow": 4}

Bound = Mapping[str, Any]


class Pattern:
    """A pattern of one place of an expression. Operators combine patterns."""

    def matches(self, x: Any, bound: Bound) -> Iterator[Bound]:
        """Yield each match of ``x``: the values of the variables, those in ``bound`` included."""
        raise NotImplementedError

    def build(self, bound: Bound) -> Any:
        """Build the expression, with its variables replaced."""
        raise NotImplementedError

    def names(self) -> Iterator[str]:
        """Yield the names of its variables, one for each occurrence."""
        raise NotImplementedError

    def __add__(self, other: Any) -> Pattern:
        return applied("add", self, other)

    def __radd__(self, other: Any) -> Pattern:
        return applied("add", other, self)

    def __sub__(self, other: Any) -> Pattern:
        return applied("sub", self, other)

    def __rsub__(self, other: Any) -> Pattern:
        return applied("sub", other, self)

    def __mul__(self, other: Any) -> Pattern:
        return applied("mul", self, other)

    def __rmul__(self, other: Any) -> Pattern:
        return applied("mul", other, self)

    def __truediv__(self, other: Any) -> Pattern:
        return applied("true_div", self, other)

    def __rtruediv__(self, other: Any) -> Pattern:
        return applied("true_div", other, self)

    def __pow__(self, other: Any) -> Pattern:
        return applied("pow", self, other)

    def __rpow__(self, other: Any) -> Pattern:
        return applied("pow", other, self)

    def __neg__(self) -> Pattern:
        return applied("neg", self)

    def __repr__(self) -> str:
        return str(self)


@record(repr=False)
class NumberPattern(Pattern):
    """A number, in any dtype, with axes of length 1 only."""

    value: float

    def matches(self, x: Any, bound: Bound) -> Iterator[Bound]:
        if number(x) == self.value:
            yield bound

    def build(self, bound: Bound) -> Any:
        return self.value

    def names(self) -> Iterator[str]:
        yield from ()

    def __str__(self) -> str:
        return repr(self.value)


@record(repr=False)
class Anything(Pattern):
    """A variable of a pattern; see ``variables`` and ``constants``, the functions that make them.
    """

    name: str
    constant: bool = False
    dtype: str | None = None
    shape: tuple[int | None, ...] | None = None
    where: Callable[[Any], bool] | None = None

    def __post_init__(self) -> None:
        if self.dtype is not None and self.dtype not in DTYPES:
            dtypes.canonical(self.dtype)

    def matches(self, x: Any, bound: Bound) -> Iterator[Bound]:
        if self.name in bound:
            if _same(bound[self.name], x):
                yield bound
        elif self._admits(x):
            yield {**bound, self.name: x}

    def _admits(self, x: Any) -> bool:
        value = number(x) if self.constant else None
        if self.constant and value is None:
            return False
        if (self.dtype or self.shape is not None) and not isinstance(x.type, TensorType):
            return False
        if self.dtype and not DTYPES.get(self.dtype, self.dtype.__eq__)(x.dtype):
            return False
        if self.shape is not None and not TensorType(x.dtype, self.shape).is_super(x.type):
            return False
        return self.where is None or bool(self.where(value if self.constant else x))

    def build(self, bound: Bound) -> Any:
        return bound[self.name]

    def names(self) -> Iterator[str]:
        yield self.name

    def __str__(self) -> str:
        return self.name


@record(repr=False)
class Named(Pattern):
    """A pattern whose match has a name."""

    name: str
    pattern: Pattern

    def matches(self, x: Any, bound: Bound) -> Iterator[Bound]:
        for found in Anything(self.name).matches(x, bound):
            yield from self.pattern.matches(x, found)

    def build(self, bound: Bound) -> Any:
        return bound[self.name] if self.name in bound else self.pattern.build(bound)

    def names(self) -> Iterator[str]:
        yield self.name
        yield from self.pattern.names()

    def __str__(self) -> str:
        return f"{self.name}: {self.pattern}"


@record(repr=False)
class Application(Pattern):
    """A scalar function (by its name), this op, or an op of this class, applied to patterns.

    The arguments of a commutative function may stand in any order. A sum is met with any number of
    terms, also if it is written with several additions: the last variable in it that occurs once
    stands for the sum of the terms left over.
    """

    kind: str | Op | type
    args: tuple[Pattern, ...]

    @property
    def tracked(self) -> Kind:
        """The kind of nodes that a rule with this pattern visits."""
        if isinstance(self.kind, Elemwise):
            return self.kind.scalar.name
        return type(self.kind) if isinstance(self.kind, Op) else self.kind

    def fits(self, node: Apply) -> bool:
        """Tell whether the node applies the function or op."""
        if isinstance(self.kind, str):
            return elementwise(node.outputs[0], self.kind) is node
        return node.op == self.kind if isinstance(self.kind, Op) else type(node.op) is self.kind

    def matches(self, x: Any, bound: Bound) -> Iterator[Bound]:
        node = x.owner
        if node is not None and len(node.outputs) == 1 and self.fits(node):
            yield from (found for found, rest in self.met(node, bound) if not rest)

    def met(
        self, node: Apply, bound: Bound, inner_sums: bool = True
    ) -> Iterator[tuple[Bound, Sequence[Any]]]:
        """Yield each match of the inputs of ``node``, and the terms of a sum that are left over.

        With ``inner_sums``, terms of sums in a sum are terms, too.
        """
        inputs, n = node.inputs, len(self.args)
        if self.kind == "add":
            yield from self._met_sum(inputs, bound, node.outputs[0].dtype)
            terms = _terms(node) if inner_sums else inputs
            if len(terms) > len(inputs):
                yield from self._met_sum(terms, bound, node.outputs[0].dtype)
        elif n == len(inputs):
            orders = [inputs]
            if self.kind in COMMUTATIVE and self.args[0] != self.args[1]:
                orders.append(inputs[::-1])
            for order in orders:
                yield from ((found, ()) for found in _in_turn(self.args, order, bound))

    @cached_property
    def absorbing(self) -> Anything | None:
        """The variable that stands for the terms of a sum that are left over."""
        occurs, found = list(self.names()), None
        for p in self.args:
            if isinstance(p, Anything) and not p.constant and occurs.count(p.name) == 1:
                found = p
        return found

    @cached_property
    def has_one_term(self) -> bool:
        """Whether it has one term beside a variable for others, so that inner sums match it, too.
        """
        return len(self.args) - (self.absorbing is not None) <= 1

    def _met_sum(
        self, terms: Sequence[Any], bound: Bound, dtype: str
    ) -> Iterator[tuple[Bound, Sequence[Any]]]:
        alike = all(x.dtype == dtype for x in terms)
        absorbing = self.absorbing
        others = sorted((p for p in self.args if p is not absorbing), key=_generality)
        for found, rest in _choose(others, list(terms), bound):
            if len(rest) > 1 and not alike or absorbing and not rest:
                continue
            if absorbing is None:
                if not rest or alike:
                    yield found, rest
            elif len(rest) == 1 or absorbing.name not in found:
                whole = rest[0] if len(rest) == 1 else add(*rest)
                yield from ((more, ()) for more in absorbing.matches(whole, found))

    def build(self, bound: Bound) -> Any:
        args = [p.build(bound) for p in self.args]
        if isinstance(self.kind, str):
            return call(self.kind, *args)
        assert isinstance(self.kind, Op)
        return self.kind(*args)

    def names(self) -> Iterator[str]:
        for p in self.args:
            yield from p.names()

    def __str__(self) -> str:
        kind = self.kind
        if isinstance(kind, str):
            mine = BINDS.get(kind, 0)
            shown = [_parenthesized(p, mine) for p in self.args]
            if kind == "neg":
                return f"-{shown[0]}"
            if kind in INFIX and len(shown) > 1:
                return f" {INFIX[kind]} ".join(shown)
        name = kind.__name__ if isinstance(kind, type) else str(kind)
        return f"{name}({', '.join(map(str, self.args))})"


def applied(name: str, *args: Any) -> Application:
    """Return the pattern of a scalar function of patterns and numbers."""
    return Application(name, tuple(as_pattern(x) for x in args))


def as_pattern(x: Any) -> Pattern:
    """Return a pattern or number as a pattern."""
    if isinstance(x, Pattern):
        return x
    if isinstance(x, bool | int | float):
        return NumberPattern(x)
    raise TypeError(f"{x!r} is neither a pattern nor a real number")


def _parenthesized(pattern: Pattern, outside: int) -> str:
    inside = BINDS.get(str(pattern.kind), 9) if isinstance(pattern, Application) else 9
    return f"({pattern})" if inside <= outside else str(pattern)


def _generality(pattern: Pattern) -> int:
    """Rank the patterns of a sum: the ones that fit few terms choose their term first."""
    if isinstance(pattern, Anything):
        return 1 if pattern.constant else 3
    return 0 if isinstance(pattern, NumberPattern) else 2


def _terms(node: Apply) -> list[Any]:
    """Return the terms of a sum, with those of nested sums, in order."""
    terms: list[Any] = []
    pending = [node.outputs[0]]
    while pending:
        x = pending.pop()
        inner = elementwise(x, "add") if x.dtype == node.outputs[0].dtype else None
        if inner is None or len(terms) + len(pending) + len(inner.inputs) > LONGEST:
            terms.append(x)
        else:
            pending += reversed(inner.inputs)
    return terms


def _in_turn(patterns: Sequence[Pattern], xs: Sequence[Any], bound: Bound) -> Iterator[Bound]:
    """Yield each match of the patterns, one by one."""
    if not patterns:
        yield bound
        return
    for found in patterns[0].matches(xs[0], bound):
        yield from _in_turn(patterns[1:], xs[1:], found)


def _choose(
    patterns: Sequence[Pattern], xs: list[Any], bound: Bound
) -> Iterator[tuple[Bound, list[Any]]]:
    """Yield each match of the patterns with some of ``xs``, and the others of these."""
    if not patterns:
        yield bound, xs
        return
    for i, x in enumerate(xs):
        for found in patterns[0].matches(x, bound):
            yield from _choose(patterns[1:], xs[:i] + xs[i + 1 :], found)


def _same(a: Variable, b: Variable) -> bool:
    if a is b:
        return True
    if not isinstance(a, Constant) or not isinstance(b, Constant):
        return False
    return bool(a.signature() == b.signature())
