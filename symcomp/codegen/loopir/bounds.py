"""Prove inequalities of indices: linear forms, and forms that follow from others."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import TypeAlias

from symcomp.codegen.loopir.expressions import Index, IndexOp, Var
from symcomp.core.record import record

# The most facts that are combined.
DEPTH = 8
Term: TypeAlias = "str | IndexOp"


@record
class Form:
    """A sum of terms with coefficients, and a constant.

    Attributes
    ----------
    terms : dict of str or IndexOp to Fraction
        The coefficients of variables, and of nonlinear terms.
    constant : Fraction
    """

    terms: Mapping[Term, Fraction]
    constant: Fraction

    def plus(self, other: Form, factor: Fraction = Fraction(1)) -> Form:
        """Return the sum with a multiple of another form."""
        terms = dict(self.terms)
        for term, coefficient in other.terms.items():
            terms[term] = terms.get(term, Fraction(0)) + factor * coefficient
        kept = {term: c for term, c in terms.items() if c}
        return Form(kept, self.constant + factor * other.constant)

    def of(self, term: Term) -> Fraction:
        """Return the coefficient of a term."""
        return self.terms.get(term, Fraction(0))


def number(constant: int) -> Form:
    return Form({}, Fraction(constant))


def form_of(index: Index) -> Form:
    """Return an index as a linear form; products of two variables and the like are terms."""
    if isinstance(index, int):
        return number(index)
    if isinstance(index, Var):
        return Form({index.name: Fraction(1)}, Fraction(0))
    assert isinstance(index, IndexOp), (
        "strides stand in offsets of pointers, positions in loads alone"
    )
    x = form_of(index.arguments[0])
    if index.name in ("+", "-"):
        factor = 1 if index.name == "+" else -1
        return x.plus(form_of(index.arguments[1]), Fraction(factor))
    if index.name == "*":
        y = form_of(index.arguments[1])
        if not x.terms:
            x, y = y, x
        if not y.terms:
            return number(0).plus(x, y.constant)
    return Form({index: Fraction(1)}, Fraction(0))


def difference(x: Index, y: Index) -> Form:
    """Return x - y."""
    return form_of(x).plus(form_of(y), Fraction(-1))


def at_least_zero(index: Index) -> list[Form]:
    """Return facts about the nonlinear terms that hold for nonnegative lengths."""
    if not isinstance(index, IndexOp):
        return []
    found = [fact for argument in index.arguments for fact in at_least_zero(argument)]
    own = form_of(index)
    if index.name == "min":
        found += [form_of(argument).plus(own, Fraction(-1)) for argument in index.arguments]
    elif index.name == "%":
        x, divisor = index.arguments
        below = form_of(divisor).plus(own, Fraction(-1)).plus(number(-1))
        found += [own, below, form_of(x).plus(own, Fraction(-1))]
    elif index.name == "//":
        found += [own, form_of(index.arguments[0]).plus(own, Fraction(-1))]
    elif index.name == "choose":
        numbers = [x for x in index.arguments[1:] if isinstance(x, int)]
        found += [own.plus(number(-min(numbers)))] if len(numbers) == 2 else []
    return found


def facts_of(condition: Index, holds: bool = True) -> list[Form]:
    """Return the forms that are no less than 0 where a condition holds, or does not."""
    if not isinstance(condition, IndexOp):
        return [form_of(condition).plus(number(-1))] if holds else []
    x, y = condition.arguments[0], condition.arguments[1]
    more = [*at_least_zero(x), *at_least_zero(y)]
    if condition.name == "and":
        return [*facts_of(x), *facts_of(y)] if holds else []
    if condition.name == "!=":
        return more
    if condition.name == "==":
        return [*more, difference(x, y), difference(y, x)] if holds else []
    less = condition.name == "<"
    assert less or condition.name == "<="
    if holds:
        return [*more, difference(y, x).plus(number(-1 if less else 0))]
    return [*more, difference(x, y).plus(number(0 if less else -1))]


def follows(goal: Form, facts: Sequence[Form]) -> bool:
    """Tell whether a form is nonnegative because the facts are: whether it is a sum of some of
    them.
    """
    return _follows(goal, facts, DEPTH, set())


def _follows(goal: Form, facts: Sequence[Form], depth: int, seen: set[object]) -> bool:
    if not goal.terms:
        return goal.constant >= 0
    key = frozenset(goal.terms.items()), goal.constant
    if depth == 0 or key in seen:
        return False
    seen.add(key)
    term, coefficient = next(iter(sorted(goal.terms.items(), key=lambda item: str(item[0]))))
    for fact in facts:
        other = fact.of(term)
        if other and (other > 0) == (coefficient > 0):
            rest = goal.plus(fact, -coefficient / other)
            if _follows(rest, facts, depth - 1, seen):
                return True
    return False


def chosen(index: Index, known: Mapping[str, int]) -> Index:
    """Return an index with known variables substituted, and choices that these decide."""
    if isinstance(index, Var):
        return known.get(index.name, index)
    if not isinstance(index, IndexOp):
        return index
    arguments = tuple(chosen(a, known) for a in index.arguments)
    if index.name == "choose" and isinstance(arguments[0], int):
        return arguments[1] if arguments[0] else arguments[2]
    return IndexOp(index.name, arguments)


def names_in(indices: Iterable[Index]) -> set[str]:
    """Return the variables of indices."""
    found: set[str] = set()
    for index in indices:
        if isinstance(index, Var):
            found.add(index.name)
        elif isinstance(index, IndexOp):
            found |= names_in(index.arguments)
    return found
