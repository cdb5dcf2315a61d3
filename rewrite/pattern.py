"""Rules as patterns: the expression that a rule replaces, and its replacement, written as
expressions.

``f.log(1 + x)`` is a pattern: the function log of a sum of 1 and anything. A variable of a pattern
matches any variable of the graph; if it occurs twice, it must match the same one twice.

>>> from symcomp.rewrite.pattern import constants, f, pattern_rule, variables, view_rule
>>> x, y = variables("x y")
>>> (c,) = constants("c", where=lambda value: value > 0)
>>> pattern_rule(
...     "log_of_power", f.log(f.exp(x) ** c), c * x, why="log inverts exp; neither overflows"
... )
Rule(log_of_power: log(exp(x) ** c) -> c * x)

``pattern_rule`` matches expressions as they are written. ``view_rule`` matches sums and products of
floats however they are written, and their multiples:

>>> view_rule("expm1", f.exp(x) - 1, f.expm1(x), why="near 0 exp(x) has the digits of 1 + x")
Rule(expm1: exp(x) - 1 -> expm1(x))
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Any

from symcomp.core.node import Apply, Variable
from symcomp.core.op import Op
from symcomp.core.tensor import TensorType
from symcomp.ops.elementwise.elemwise import ROWS, Elemwise
from symcomp.ops.elementwise.scalar_math import add
from symcomp.rewrite.matching import (
    Anything,
    Application,
    Bound,
    Named,
    NumberPattern,
    Pattern,
    applied,
    as_pattern,
)
from symcomp.rewrite.rule import Kind, Rule
from symcomp.rewrite.view_matching import (
    ProductMatcher,
    built,
    kinds_of,
    matcher,
    needs,
    replaced,
)
from symcomp.rewrite.views import call, number

# A pattern, a number, or a function from a Match to a variable or None.
Replacement = Pattern | float | Callable[["Match"], Any]
Pairs = Sequence[tuple[Pattern, Replacement]]


# -- writing patterns


class _Functions:
    """The scalar functions, applied to patterns: ``f.exp(x)``."""

    def __getattr__(self, name: str) -> Callable[..., Application]:
        return _function_of(name)


@cache
def _function_of(name: str) -> Callable[..., Application]:
    row = ROWS.get(name)
    if row is None:
        raise AttributeError(f"there is no scalar function {name!r}")
    if inspect.signature(row).parameters:
        raise AttributeError(
            f"{name} has parameters: write operation(op, ...) with the op that has them"
        )
    arity = row().arity

    def apply(*args: Any) -> Application:
        if len(args) != arity if arity else not args:
            raise TypeError(f"{name} takes {arity or 'some'} arguments, got {len(args)}")
        return applied(name, *args)

    return apply


f = _Functions()


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


def operation(kind: Op | type, *args: Any) -> Application:
    """Return the pattern of an op, or of any op of a class (only for patterns to find).

    Parameters
    ----------
    kind : Op or class of ops
    *args : Pattern or number
    """
    is_class = isinstance(kind, type) and issubclass(kind, Op)
    if not is_class and not isinstance(kind, Op):
        raise TypeError(f"operation: {kind!r} is neither an op nor a class of ops")
    return Application(kind, tuple(as_pattern(a) for a in args))


def named(name: str, pattern: Pattern) -> Named:
    """Return ``pattern`` with a name for its match."""
    return Named(name, pattern)


class Match:
    """The variables matched by a pattern: ``m.x`` for the variable named x.

    Attributes
    ----------
    node : Apply
        The node to replace.
    graph : FunctionGraph
    bound : mapping
        The matched variables by name.
    """

    def __init__(self, bound: Bound, node: Apply, graph: Any) -> None:
        self.node = node
        self.graph = graph
        self.bound = bound

    def __getattr__(self, name: str) -> Any:
        if name == "bound" or name.startswith("_") or name not in self.bound:
            raise AttributeError(
                f"the pattern has no variable {name!r}; it has {', '.join(self.bound)}"
            )
        return self.bound[name]

    def number(self, name: str) -> float:
        """Return the value of a constant."""
        value = number(self.bound[name])
        if value is None:
            raise ValueError(f"{name} stands for {self.bound[name]}, which is no number")
        return value


# -- rules


def pattern_rule(
    name: str,
    pattern: Pattern | Pairs,
    replacement: Replacement | None = None,
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
        The application of a function or an op with one output. In place of a pattern and a
        replacement, a list of pairs of them, of which the first that matches is used.
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

    Examples
    --------
    >>> x, y = variables("x y")
    >>> pattern_rule("signs", [(-x * -y, x * y), (-x / -y, x / y)], why="two signs cancel")
    Rule(signs: -x * -y -> x * y;  -x / -y -> x / y)
    """
    pairs = _pairs("pattern_rule", name, pattern, replacement)
    kinds = dict.fromkeys(p.tracked for p, _ in pairs)
    return _rule(name, tuple(kinds), Written(pairs, where), why, tags)


def view_rule(
    name: str,
    pattern: Pattern | Pairs,
    replacement: Replacement | None = None,
    *,
    where: Callable[[Match], bool] | None = None,
    tags: Iterable[str] = (),
    why: str,
    of_powers: bool = False,
) -> Rule:
    """Make the rule that replaces a function of floats however its sums and products are written.

    Parameters
    ----------
    name, pattern, replacement, where, tags, why
        As for ``pattern_rule``. A pattern that is a sum stands for all its multiples: ``exp(x) -
        1`` for ``3 - 3 * exp(x)``, too. A pattern that is a product is found among other factors.
    of_powers : bool
        Whether a pattern that is a product is found among higher powers of its factors.

    Returns
    -------
    Rule

    Raises
    ------
    ValueError
        As for ``pattern_rule``.
    TypeError
        If ``pattern`` has ops that are no scalar functions.

    Examples
    --------
    >>> (x,) = variables("x")
    >>> view_rule("xlogx", x * f.log(x), f.xlogx(x), why="x log(x) tends to 0 at 0")
    Rule(xlogx: x * log(x) -> xlogx(x))
    """
    pairs = _pairs("view_rule", name, pattern, replacement)
    kinds = dict.fromkeys(kind for p, _ in pairs for kind in kinds_of(p))
    return _rule(name, tuple(kinds), Viewed(pairs, where, of_powers), why, tags)


def _pairs(
    maker: str, name: str, pattern: Pattern | Pairs, replacement: Replacement | None
) -> list[tuple[Application, Any]]:
    """Return the checked pairs of patterns and replacements."""
    if isinstance(pattern, Pattern):
        if replacement is None:
            raise ValueError(f"{maker} {name}: {pattern} has no replacement")
        pattern = [(pattern, replacement)]
    pairs: list[tuple[Application, Any]] = []
    for before, after in pattern:
        if not isinstance(before, Application):
            raise ValueError(f"{maker} {name}: {before} is not the application of an op")
        if not callable(after) or isinstance(after, Pattern):
            after = as_pattern(after)
            _check_buildable(f"{maker} {name}", before, after)
        pairs.append((before, after))
    return pairs


def _rule(
    name: str, kinds: tuple[Kind, ...], function: Written, why: str, tags: Iterable[str]
) -> Rule:
    shown = ";  ".join(
        f"{p} -> {r if isinstance(r, Pattern) else _described(r)}" for p, r in function.pairs
    )
    found = tuple(dict.fromkeys(function.needs()))
    found = found if all(found) else ()
    in_view = isinstance(function, Viewed)
    return Rule(
        name, kinds, function, why, frozenset([name, *tags]), shown,
        needs=() if in_view else found, needs_in_view=found if in_view else (),
    )  # fmt: skip


def _described(function: Any) -> str:
    lines = (function.__doc__ or "").strip().splitlines()
    return lines[0] if lines else f"{function.__name__}(..)"


def _check_buildable(rule: str, pattern: Application, replacement: Pattern) -> None:
    known = set(pattern.names())
    unknown = [x for x in replacement.names() if x not in known]
    if unknown:
        raise ValueError(
            f"{rule}: {', '.join(unknown)} of the replacement {replacement} is not in "
            f"the pattern {pattern}"
        )
    pending = [replacement]
    while pending:
        p = pending.pop()
        if isinstance(p, Application):
            if isinstance(p.kind, type):
                raise ValueError(f"{rule}: {p} says a class, not which op to apply")
            pending += p.args
    if isinstance(replacement, NumberPattern) and not isinstance(pattern.tracked, str):
        raise ValueError(f"{rule}: {replacement} has no shape; give a function")


class Written:
    """The function of a rule of patterns, matched as expressions are written.

    Attributes
    ----------
    pairs : list of (Application, Pattern or callable)
        Patterns and their replacements.
    """

    def __init__(
        self, pairs: list[tuple[Application, Any]], where: Callable[[Match], bool] | None
    ) -> None:
        self.pairs = pairs
        self.where = where

    def needs(self) -> list[frozenset[Any]]:
        """Return sets of functions and numbers, one of which a match needs nearby."""
        return [_heads(p) for p, _ in self.pairs]

    def __call__(self, node: Apply, graph: Any) -> Any:
        for pattern, replacement in self.pairs:
            if len(node.outputs) == 1 and pattern.fits(node):
                new = self._replaced(pattern, replacement, node, graph)
                if new is not None:
                    return new
        return None

    def _replaced(self, pattern: Application, replacement: Any, node: Apply, graph: Any) -> Any:
        """Return the replacement of the first match whose type is that of the node, or None."""
        for bound, rest in pattern.met(node, {}, not pattern.has_one_term):
            new = self._made(pattern, replacement, Match(bound, node, graph))
            if new is None:
                continue
            new = add(new, *rest) if rest else new
            if _fits(new, node.outputs[0]):
                return new
        return None

    def _made(self, pattern: Application, replacement: Any, match: Match) -> Any:
        """Return what replaces a match, or None if a condition fails."""
        if self.where is not None and not self.where(match):
            return None
        if isinstance(replacement, Pattern):
            new = self._built(replacement, match.bound)
        else:
            new = replacement(match)
        if new is None or isinstance(new, Variable):
            return new
        return _filled(new, pattern, match)

    def _built(self, replacement: Pattern, bound: Bound) -> Any:
        return replacement.build(bound)


def _heads(pattern: Application) -> frozenset[Any]:
    """Return the numbers and scalar functions that inputs of each match are."""
    if pattern.kind == "add" and not pattern.has_one_term:
        return frozenset()  # all may be in inner sums
    heads: set[Any] = {p.value for p in pattern.args if isinstance(p, NumberPattern)}
    return frozenset(heads.union(_function_names(pattern.args)))


def _function_names(patterns: Iterable[Pattern]) -> set[str]:
    return {p.kind for p in patterns if isinstance(p, Application) and isinstance(p.kind, str)}


class Viewed(Written):
    """The function of a rule of patterns, matched however sums and products are written."""

    def __init__(
        self,
        pairs: list[tuple[Application, Any]],
        where: Callable[[Match], bool] | None,
        of_powers: bool,
    ) -> None:
        super().__init__(pairs, where)
        self._matchers = [(matcher(p), kinds_of(p), p, r) for p, r in pairs]
        for found, *_ in self._matchers:
            if isinstance(found, ProductMatcher):
                found.of_powers = of_powers

    def needs(self) -> list[frozenset[Any]]:
        return [needed for found, _, _, _ in self._matchers for needed in needs(found)]

    def __call__(self, node: Apply, graph: Any) -> Any:
        out = node.outputs[0]
        name = node.op.scalar.name if isinstance(node.op, Elemwise) else ""
        for found, kinds, pattern, replacement in self._matchers:
            if name not in kinds:
                continue
            for bound, placed in replaced(found, out):
                new = self._made(pattern, replacement, Match(bound, node, graph))
                if new is not None and _fits(new := placed(new), out):
                    return new
        return None

    def _built(self, replacement: Pattern, bound: Bound) -> Any:
        return built(replacement, bound)


def _filled(value: float, pattern: Application, match: Match) -> Any:
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
        if isinstance(p, Application):
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
