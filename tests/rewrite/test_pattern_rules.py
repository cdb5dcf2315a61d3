"""Every rule that is a pattern, checked from the pattern itself: the expression is built, the rule
fires on it, and random numbers give the same values.
"""

import itertools

import numpy as np
import pytest

import symcomp.tensor as T
from symcomp.core.evaluate import evaluate
from symcomp.core.graph import FunctionGraph
from symcomp.core.tensor import TensorType
from symcomp.rewrite.engine import Engine
from symcomp.rewrite.matching import Anything, Application
from symcomp.rewrite.pattern import Viewed, Written
from symcomp.rewrite.phases import CANONICALIZE, STABILIZE
from symcomp.rewrite.rule import RuleSet
from symcomp.rewrite.specialize import SPECIALIZE
from symcomp.rewrite.unsafe import UNSAFE
from symcomp.rewrite.view_matching import SumMatcher, built, matcher
from symcomp.rewrite.views import as_sum, sum_of

RULES = {r.name: r for r in (*CANONICALIZE, *STABILIZE, *SPECIALIZE, *UNSAFE)}
RANGES = ((0.1, 0.9), (-0.9, -0.1), (1.1, 3.0))
NUMBERS = (2.0, 0.5, 3.0, -1.0)
# Rules with conditions on lengths of axes, or that a number is not negative.
OTHER_CONDITIONS = {"second_of_same_shape", "bounded_length"}


def variables_of(pattern):
    """Return the variables of a pattern, each once; None if it has ops of any class."""
    found, pending = {}, [pattern]
    while pending:
        p = pending.pop()
        if isinstance(p, Application):
            if isinstance(p.kind, type):
                return None
            pending += p.args
        elif isinstance(p, Anything):
            found[p.name] = p
    return found


def pairs():
    """Yield the rules, and the places of the patterns that can be built, of scalar functions."""
    for name, rule in RULES.items():
        if isinstance(rule.function, Written) and name not in OTHER_CONDITIONS:
            for place, (pattern, _) in enumerate(rule.function.pairs):
                if variables_of(pattern) is not None:
                    yield name, place


def input_of(variable):
    """Return an input, or a number, that the variable of a pattern matches."""
    if variable.constant:
        return next(c for c in NUMBERS if variable.where is None or variable.where(c))
    shape = (None,) if variable.shape is None else variable.shape
    return TensorType("int64" if variable.dtype == "integer" else "float64", shape)(variable.name)


def expressions(function, place):
    """Yield inputs and expressions that match: as written, and for views multiples and products."""
    pattern, _ = function.pairs[place]
    bound = {name: input_of(v) for name, v in variables_of(pattern).items()}
    inputs = [x for x in bound.values() if not isinstance(x, float)]
    plain = built(pattern, bound) if isinstance(function, Viewed) else pattern.build(bound)
    yield inputs, plain
    if not isinstance(function, Viewed):
        return
    if isinstance(matcher(pattern), SumMatcher):
        for multiple in (-1.0, 3.0, -0.5):
            scaled = as_sum(plain).times(multiple)
            yield inputs, sum_of(scaled.constant, scaled.pairs(), plain)
        yield inputs, -plain
    elif function.needs()[0]:
        other = T.dvector("other")
        yield [*inputs, other], plain * other * 2.0


@pytest.mark.parametrize("name, place", list(pairs()))
def test_the_pattern_is_replaced_by_the_same_values(name, place):
    rng = np.random.default_rng(place)
    function, compared = RULES[name].function, 0
    for inputs, expression in expressions(function, place):
        graph = FunctionGraph(inputs, [expression])
        firings = Engine(graph, RuleSet([RULES[name]]), folding=False, on_error="raise").run()
        assert name in {firing.rule for firing in firings}, str(expression)
        for ranges in itertools.product(RANGES, repeat=len(inputs)):
            pairs_of = zip(ranges, inputs, strict=True)
            values = [rng.uniform(*r, 12).astype(x.dtype) for r, x in pairs_of]
            with np.errstate(all="ignore"):
                (before,) = evaluate([expression], dict(zip(inputs, values, strict=True)))
                (after,) = evaluate(graph.outputs, dict(zip(graph.inputs, values, strict=True)))
            assert after.dtype == before.dtype and after.shape == before.shape
            finite = np.isfinite(before)
            compared += finite.sum()
            np.testing.assert_allclose(after[finite], before[finite], rtol=1e-11)
    assert compared > 10


def test_many_rules_are_patterns():
    written = [r for r in RULES.values() if isinstance(r.function, Written)]
    assert len(written) > 40
    assert len({name for name, _ in pairs()}) > 30
