"""A rewrite rule as a value: the nodes it visits, the replacement, and the reason why that is
valid.

Adding one is a few lines::

    @rule("neg", why="two signs cancel, for every number, NaN and infinity")
    def neg_neg(node, graph):
        '''-(-x) -> x'''
        inner = elementwise(node.inputs[0], "neg")
        return inner and inner.inputs[0]

or, where a pattern says it all (see ``pattern.py``)::

    pattern_rule("log1p", f.log(1 + x), f.log1p(x), why="1 + x rounds x away")

The engine calls the function with the node and the graph that it is in, on nodes of the tracked
kinds alone. The function returns None (the rule does not apply), the variable that takes the place
of the node's only output, or a list with one variable (or None: keep) for each output. What it
returns must have the dtype and rank of what it replaces and contradict no length known there: the
engine refuses anything else.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from dataclasses import field, replace
from typing import Any

from symcomp.core.node import Apply, Variable
from symcomp.core.record import record
from symcomp.ops.elementwise.elemwise import Elemwise

# The kind of nodes that a rule visits: the name of a scalar function, or a class of ops.
Kind = str | type
Result = Variable | Sequence[Variable | None] | None
Function = Callable[[Apply, Any], Any]


@record(eq=False)
class Rule:
    """A rewrite rule.

    Attributes
    ----------
    name : str
    kinds : tuple of (str or type)
        The nodes to look at: names of scalar functions for Elemwise nodes, else classes of ops.
    function : callable (node, graph) -> Variable or list or None
        What to put in the place of the node's outputs.
    why : str
        Why it is true, and where.
    tags : frozenset of str
        What ``Mode.including`` and ``excluding`` select by; the name is one of them.
    before_after : str
        The docstring of the function, or the pattern.
    subclasses : bool
        Whether to look at subclasses of the classes in ``kinds`` too: a subclass may compute
        something else.
    from_above : bool
        Whether it is applied from the outputs to the inputs, before others: for what moves towards
        the inputs and meets its like on the way.
    """

    name: str
    kinds: tuple[Kind, ...]
    function: Function
    why: str
    tags: frozenset[str] = field(default=frozenset())
    before_after: str = ""
    subclasses: bool = False
    from_above: bool = False

    def tagged(self, tags: Iterable[str]) -> Rule:
        """Return the same rule with more tags."""
        return replace(self, tags=self.tags | frozenset(tags))

    def __repr__(self) -> str:
        return f"Rule({self.name}: {self.before_after})"


def rule(
    *kinds: Kind,
    why: str,
    tags: Iterable[str] = (),
    subclasses: bool = False,
    from_above: bool = False,
) -> Callable[[Function], Rule]:
    """Make a rule of the function below; a decorator.

    Parameters
    ----------
    *kinds : str or type
        See Rule.
    why : str
    tags : iterable of str
    subclasses, from_above : bool
        See Rule.
    """

    def decorate(function: Function) -> Rule:
        name = getattr(function, "__name__", "rule")
        first_line = inspect.cleandoc(function.__doc__ or "").split("\n\n")[0]
        every_tag = frozenset([name, *tags])
        return Rule(name, kinds, function, why, every_tag, first_line, subclasses, from_above)

    return decorate


class RuleSet:
    """Rules with common tags, found by the kind of a node. ``a + b`` is the rules of both."""

    def __init__(self, rules: Iterable[Rule], tags: Iterable[str] = ()) -> None:
        self.rules = tuple(r.tagged(tags) for r in rules)
        self.names = frozenset(r.name for r in self.rules)
        early = [r for r in self.rules if r.from_above]
        self.from_above = self if len(early) == len(self.rules) else RuleSet(early)
        self._by_kind: dict[Kind, list[Rule]] = {}
        for r in self.rules:
            for kind in r.kinds:
                self._by_kind.setdefault(kind, []).append(r)
        self._of_class: dict[type, Sequence[Rule]] = {}

    def __add__(self, other: RuleSet) -> RuleSet:
        return RuleSet(self.rules + other.rules)

    def __iter__(self) -> Any:
        return iter(self.rules)

    def __len__(self) -> int:
        return len(self.rules)

    def selected(self, selects: Callable[[frozenset[str]], bool]) -> RuleSet:
        """Return the rules whose tags are selected."""
        return RuleSet(r for r in self.rules if selects(r.tags))

    def for_node(self, node: Apply) -> Sequence[Rule]:
        """Return the rules that visit a node of this kind.

        Rules of scalar functions do not visit in-place applications: these were written to
        overwrite their argument.
        """
        op = node.op
        if type(op) is Elemwise:
            found = () if op.inplace else self._by_kind.get(op.scalar.name, ())
            general = self._by_kind.get(Elemwise, ())
            return [*found, *general] if general else found
        known = self._of_class.get(type(op))
        return self._rules_of(type(op)) if known is None else known

    def _rules_of(self, kind: type) -> Sequence[Rule]:
        """Return the rules that visit ops of this class; cached."""
        rules = list(self._by_kind.get(kind, ()))
        for base in kind.__mro__[1:]:
            rules += [r for r in self._by_kind.get(base, ()) if r.subclasses]
        self._of_class[kind] = rules
        return rules


def elementwise(variable: Any, *names: str) -> Apply | None:
    """Return the node that computes ``variable`` if it applies one of these scalar functions, not
    in place.
    """
    node = variable.owner
    if node is not None and type(node.op) is Elemwise and node.op.scalar.name in names:
        return None if node.op.inplace else node
    return None


def computed_by(variable: Any, kind: type) -> Apply | None:
    """Return the node that computes ``variable`` if its op is of this class."""
    node = variable.owner
    return node if node is not None and isinstance(node.op, kind) else None
