"""Rules as patterns: the expression that a rule replaces, and its replacement, written as
expressions.

``f.log(1 + x)`` is a pattern: the function log of a sum of 1 and anything. A variable of a pattern
matches any variable of the graph; if it occurs twice, it must match the same one twice.

>>> from symcomp.rewrite.pattern import constants, f, pattern_rule, variables
>>> x, y = variables("x y")
>>> (c,) = constants("c", where=lambda value: value > 0)
>>> pattern_rule(
...     "log_of_power", f.log(f.exp(x) ** c), c * x, why="log inverts exp; neither overflows"
... )
Rule(log_of_power: log(exp(x) ** c) -> c * x)
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from symcomp.core import dtype as dtypes
from symcomp.core.node import Apply, Constant, Variable
from symcomp.core.op import Op
from symcomp.core.record import record
from symcomp.core.tensor import TensorType
from symcomp.ops.elementwise.elemwise import ROWS, Elemwise
from symcomp.ops.elementwise.scalar_math import add
from symcomp.rewrite.rule import Function, Kind, Rule, elementwise
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
        return f.add(self, other)

    def __radd__(self, other: Any) -> Pattern:
        return f.add(other, self)

    def __sub__(self, other: Any) -> Pattern:
        return f.sub(self, other)

    def __rsub__(self, other: Any) -> Pattern:
        return f.sub(other, self)

    def __mul__(self, other: Any) -> Pattern:
        return f.mul(self, other)

    def __rmul__(self, other: Any) -> Pattern:
        return f.mul(other, self)

    def __truediv__(self, other: Any) -> Pattern:
        return f.true_div(self, other)

    def __rtruediv__(self, other: Any) -> Pattern:
        return f.true_div(other, self)

    def __pow__(self, other: Any) -> Pattern:
        return f.pow(self, other)

    def __rpow__(self, other: Any) -> Pattern:
        return f.pow(other, self)

    def __neg__(self) -> Pattern:
        return f.neg(self)

    def __repr__(self) -> str:
        return str(self)


@record(repr=False)
class Number(Pattern):
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
class Call(Pattern):
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

    def met(self, node: Apply, bound: Bound) -> Iterator[tuple[Bound, Sequence[Any]]]:
        """Yield each match of the inputs of ``node``, and the terms of a sum that are left over."""
        inputs, n = node.inputs, len(self.args)
        if self.kind == "add":
            yield from self._met_sum(inputs, bound, node.outputs[0].dtype)
            terms = _terms(node)
            if len(terms) > len(inputs):
                yield from self._met_sum(terms, bound, node.outputs[0].dtype)
        elif n == len(inputs):
            orders = [inputs]
            if self.kind in COMMUTATIVE and self.args[0] != self.args[1]:
                orders.append(inputs[::-1])
            for order in orders:
                yield from ((found, ()) for found in _in_turn(self.args, order, bound))

    def _met_sum(
        self, terms: Sequence[Any], bound: Bound, dtype: str
    ) -> Iterator[tuple[Bound, Sequence[Any]]]:
        alike = all(x.dtype == dtype for x in terms)
        occurs = list(self.names())
        absorbing = None
        for p in self.args:
            if isinstance(p, Anything) and not p.constant and occurs.count(p.name) == 1:
                absorbing = p
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


def _parenthesized(pattern: Pattern, outside: int) -> str:
    inside = BINDS.get(str(pattern.kind), 9) if isinstance(pattern, Call) else 9
    return f"({pattern})" if inside <= outside else str(pattern)


def _generality(pattern: Pattern) -> int:
    """Rank the patterns of a sum: the ones that fit few terms choose their term first."""
    if isinstance(pattern, Anything):
        return 1 if pattern.constant else 3
    return 0 if isinstance(pattern, Number) else 2


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


class Match:
    """The variables matched by a pattern: ``m.x`` for the variable named x.

    Attributes
    ----------
    node : Apply
        The node to replace.
    graph : FunctionGraph
    """

    def __init__(self, bound: Bound, node: Apply, graph: Any) -> None:
        self.node = node
        self.graph = graph
        self._bound = bound

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name not in self._bound:
            raise AttributeError(
                f"the pattern has no variable {name!r}; it has {', '.join(self._bound)}"
            )
        return self._bound[name]

    def number(self, name: str) -> float:
        """Return the value of a constant."""
        value = number(self._bound[name])
        if value is None:
            raise ValueError(f"{name} stands for {self._bound[name]}, which is no number")
        return value


# -- writing patterns


class _Functions:
    """The scalar functions, applied to patterns: ``f.exp(x)``."""

    def __getattr__(self, name: str) -> Callable[..., Call]:
        row = ROWS.get(name)
        if row is None:
            raise AttributeError(f"there is no scalar function {name!r}")
        if inspect.signature(row).parameters:
            raise AttributeError(
                f"{name} has parameters: write operation(op, ...) with the op that has them"
            )
        arity = row().arity

        def applied(*args: Any) -> Call:
            if len(args) != arity if arity else not args:
                raise TypeError(f"{name} takes {arity or 'some'} arguments, got {len(args)}")
            return Call(name, tuple(_as_pattern(a) for a in args))

        return applied


f = _Functions()


def _as_pattern(x: Any) -> Pattern:
    if isinstance(x, Pattern):
        return x
    if isinstance(x, bool | int | float):
        return Number(x)
    raise TypeError(f"{x!r} is neither a pattern nor a real number")


def variables(
    names: str,
    dtype: str | None = None,
    shape: tuple[int | None, ...] | None = None,
    where: Callable[[Any], bool] | None = None,
) -> tuple[Anything, ...]:
    """Return variables of patterns, each of which matches anything that meets the conditions.

    Parameters
    ----------
    names : str
        Separated by blanks.
    dtype : str, optional
        A dtype, or "float", "complex", "integer" or "discrete" (integer or bool).
    shape : tuple of (int or None), optional
        What its type must say of the shape, of as many axes; None: any length.
    where : callable, optional
        What it stands for -> whether that will do.
    """
    return tuple(Anything(name, False, dtype, shape, where) for name in names.split())


def constants(
    names: str, dtype: str | None = None, where: Callable[[float], bool] | None = None
) -> tuple[Anything, ...]:
    """Return variables of patterns that match real constants all of whose axes have length 1.

    Parameters
    ----------
    names, dtype
        As for ``variables``.
    where : callable, optional
        The value, a float -> whether that will do.
    """
    return tuple(Anything(name, True, dtype, None, where) for name in names.split())


def operation(kind: Op | type, *args: Any) -> Call:
    """Return the pattern of an op, or of any op of a class (only for patterns to find).

    Parameters
    ----------
    kind : Op or class of ops
    *args : Pattern or number
    """
    is_class = isinstance(kind, type) and issubclass(kind, Op)
    if not is_class and not isinstance(kind, Op):
        raise TypeError(f"operation: {kind!r} is neither an op nor a class of ops")
    return Call(kind, tuple(_as_pattern(a) for a in args))


def named(name: str, pattern: Pattern) -> Named:
    """Return ``pattern`` with a name for its match."""
    return Named(name, pattern)


# -- rules


def pattern_rule(
    name: str,
    pattern: Pattern,
    replacement: Pattern | float | Callable[[Match], Any],
    *,
    where: Callable[[Match], bool] | None = None,
    tags: Iterable[str] = (),
    why: str,
) -> Rule:
    """Make the rule that replaces matches of ``pattern``.

    Parameters
    ----------
    name : str
    pattern : Pattern
        The application of a function or an op with one output.
    replacement : Pattern or number or callable
        A pattern whose variables are in ``pattern``, or a function from a Match to a variable, or
        None where the rule does not apply.
    where : callable, optional
        From a Match to whether to go on. All ways to meet the pattern are tried.
    tags : iterable of str
    why : str
        Why it is true, and where.

    Returns
    -------
    Rule
        It does nothing where the result would have another dtype or other axes of length 1: so
        ``x * 1 -> x`` does not apply where the 1 stretches or converts x.

    Raises
    ------
    ValueError
        If ``pattern`` is no application, or ``replacement`` cannot be built from its variables.
    """
    if not isinstance(pattern, Call):
        raise ValueError(f"pattern_rule {name}: {pattern} is not the application of an op")
    if not callable(replacement) or isinstance(replacement, Pattern):
        replacement = _as_pattern(replacement)
        _check_buildable(name, pattern, replacement)
    function = _function(pattern, replacement, where)
    shown = replacement if isinstance(replacement, Pattern) else _described(replacement)
    every_tag = frozenset([name, *tags])
    return Rule(name, (pattern.tracked,), function, why, every_tag, f"{pattern} -> {shown}")


def _described(function: Any) -> str:
    lines = inspect.cleandoc(function.__doc__ or "").splitlines()
    return lines[0] if lines else f"{function.__name__}(..)"


def _check_buildable(name: str, pattern: Call, replacement: Pattern) -> None:
    known = set(pattern.names())
    unknown = [x for x in replacement.names() if x not in known]
    if unknown:
        raise ValueError(
            f"pattern_rule {name}: {', '.join(unknown)} of the replacement {replacement} is not in "
            f"the pattern {pattern}"
        )
    pending = [replacement]
    while pending:
        p = pending.pop()
        if isinstance(p, Call):
            if isinstance(p.kind, type):
                raise ValueError(f"pattern_rule {name}: {p} says a class, not which op to apply")
            pending += p.args
    if isinstance(replacement, Number) and not isinstance(pattern.tracked, str):
        raise ValueError(f"pattern_rule {name}: {replacement} has no shape; give a function")


def _function(
    pattern: Call,
    replacement: Pattern | Callable[[Match], Any],
    where: Callable[[Match], bool] | None,
) -> Function:
    def apply(node: Apply, graph: Any) -> Any:
        if len(node.outputs) != 1 or not pattern.fits(node):
            return None
        for bound, rest in pattern.met(node, {}):
            match = Match(bound, node, graph)
            if where is not None and not where(match):
                continue
            new = (
                replacement.build(bound) if isinstance(replacement, Pattern) else replacement(match)
            )
            if new is None:
                continue
            if not isinstance(new, Variable):
                new = _filled(new, pattern, match)
            new = add(new, *rest) if rest else new
            if _fits(new, node.outputs[0]):
                return new
        return None

    return apply


def _filled(value: float, pattern: Call, match: Match) -> Any:
    """Return the number, in the dtype of the node's output and of the shape of the match."""
    node = match.node
    if not isinstance(node.op, Elemwise):
        raise TypeError(f"{value!r} cannot take the place of {node.op}, give a variable")
    names = _elementwise_names(pattern)
    shaping = node.inputs if names is None else [getattr(match, name) for name in names]
    filled: Any = TensorType(node.outputs[0].dtype, ()).make_constant(value)
    for x in shaping:
        filled = call("second", x, filled)
    return filled


def _elementwise_names(pattern: Pattern) -> list[str] | None:
    """Return the variables of a pattern of scalar functions, which broadcast to its shape; else
    None.
    """
    found: dict[str, None] = {}
    pending = [pattern]
    while pending:
        p = pending.pop()
        if isinstance(p, Call):
            if not isinstance(p.tracked, str):
                return None
            pending += p.args
        elif isinstance(p, Named):
            pending.append(p.pattern)
        elif isinstance(p, Anything):
            found.setdefault(p.name)
    return list(found)


def _fits(new: Any, out: Any) -> bool:
    if not isinstance(out.type, TensorType) or not isinstance(new.type, TensorType):
        return bool(out.type.is_super(new.type))
    return new.dtype == out.dtype and new.type.broadcastable == out.type.broadcastable
