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
from dataclasses import field
from itertools import compress
from typing import Any

from symcomp.core.node import Apply, Variable
from symcomp.core.record import record, replace
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
    needs : tuple of frozenset of (str or float)
        Scalar functions that compute inputs of the node, and numbers that are inputs. The rule
        applies only where all of one of the sets are present; no set: it may apply everywhere.
    needs_in_view : tuple of frozenset of str
        Likewise scalar functions that compute terms of the sum, or factors of the product, that the
        node ends.
    """

    name: str
    kinds: tuple[Kind, ...]
    function: Function
    why: str
    tags: frozenset[str] = field(default=frozenset())
    before_after: str = ""
    subclasses: bool = False
    from_above: bool = False
    needs: tuple[frozenset[str | float], ...] = ()
    needs_in_view: tuple[frozenset[str], ...] = ()

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
    needs: Iterable[str] = (),
    needs_in_view: Iterable[str] = (),
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
    needs, needs_in_view : iterable of str
        Scalar functions, without one of which the rule does not apply: see Rule.
    """

    def decorate(function: Function) -> Rule:
        name = getattr(function, "__name__", "rule")
        first = (function.__doc__ or "").strip().split("\n\n")[0]
        form = inspect.cleandoc(first) if "\n" in first else first
        every_tag = frozenset([name, *tags])
        one_of, in_view = (tuple(frozenset([x]) for x in xs) for xs in (needs, needs_in_view))
        return Rule(
            name, kinds, function, why, every_tag, form, subclasses, from_above, one_of,
            in_view,
        )  # fmt: skip

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
        self._candidates: dict[Kind, Candidates] = {}
        self._selections: dict[tuple[bool, ...], RuleSet] = {}

    def __add__(self, other: RuleSet) -> RuleSet:
        return RuleSet(self.rules + other.rules)

    def __iter__(self) -> Any:
        return iter(self.rules)

    def __len__(self) -> int:
        return len(self.rules)

    def selected(self, selects: Callable[[frozenset[str]], bool]) -> RuleSet:
        """Return the rules whose tags are selected; equal selections are one set."""
        chosen = tuple(bool(selects(r.tags)) for r in self.rules)
        if all(chosen):
            return self
        if chosen not in self._selections:
            self._selections[chosen] = RuleSet(compress(self.rules, chosen))
        return self._selections[chosen]

    def for_node(self, node: Apply) -> Sequence[Rule]:
        """Return the rules that visit a node of this kind.

        Rules of scalar functions do not visit in-place applications: these were written to
        overwrite their argument.
        """
        return self.candidates(node).rules

    def candidates(self, node: Apply) -> Candidates:
        """Return the rules of ``for_node``, to be sorted out by the functions near the node."""
        op = node.op
        kind: Kind = type(op)
        if type(op) is Elemwise and not op.inplace:
            kind = op.scalar.name
        known = self._candidates.get(kind)
        if known is None:
            known = self._candidates[kind] = Candidates(self._rules_of(kind))
        return known

    def _rules_of(self, kind: Kind) -> list[Rule]:
        """Return the rules that visit ops of this class, or applications of this function."""
        if isinstance(kind, str):
            return [*self._by_kind.get(kind, ()), *self._by_kind.get(Elemwise, ())]
        rules = list(self._by_kind.get(kind, ()))
        for base in kind.__mro__[1:]:
            rules += [r for r in self._by_kind.get(base, ()) if r.subclasses]
        return rules


class Candidates:
    """The rules that visit nodes of one kind.

    Attributes
    ----------
    rules : list of Rule
    needed, needed_in_view : frozenset
        All that one of them needs: see Rule.
    """

    def __init__(self, rules: list[Rule]) -> None:
        self.rules = rules
        self.needed = frozenset(x for r in rules for one_of in r.needs for x in one_of)
        self.needed_in_view = frozenset(
            x for r in rules for one_of in r.needs_in_view for x in one_of
        )
        self._suited: dict[tuple[frozenset[Any], frozenset[Any]], list[Rule]] = {}

    def suited(self, near: frozenset[Any], in_view: frozenset[Any]) -> list[Rule]:
        """Return the rules that may apply where these functions and numbers are present."""
        key = (near & self.needed, in_view & self.needed_in_view)
        found = self._suited.get(key)
        if found is None:
            found = self._suited[key] = [
                r
                for r in self.rules
                if _has_one(r.needs, near) and _has_one(r.needs_in_view, in_view)
            ]
        return found


def _has_one(sets: Sequence[frozenset[Any]], present: frozenset[Any]) -> bool:
    return not sets or any(needed <= present for needed in sets)


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
