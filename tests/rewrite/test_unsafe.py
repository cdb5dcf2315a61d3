"""Rules that may turn NaN into numbers apply on request only."""

import numpy as np
import pytest

import symcomp
import symcomp.tensor as T
from symcomp.rewrite.unsafe import UNSAFE
from symcomp.rewrite.views import call

VALUES = [np.array([1.0, np.nan, np.inf, 0.0]), np.array([2.0, 3.0, -1.0, 0.5])]
# Name of the rule, expression, what it is taken for.
CASES = {
    "x * 0": ("zero_product", lambda x, y: x * 0, lambda x, y: 0 * y),
    "0 / x": ("zero_quotient", lambda x, y: 0 / x, lambda x, y: 0 * y),
    "x - x": ("equal_terms", lambda x, y: x - x, lambda x, y: 0 * y),
    "x + y - x": ("equal_terms", lambda x, y: x + y - x, lambda x, y: y),
    "x / x": ("equal_factors", lambda x, y: x / x, lambda x, y: 1 + 0 * y),
    "x y / x": ("equal_factors", lambda x, y: x * y / x, lambda x, y: y),
}


@pytest.mark.parametrize("name", CASES)
def test_asked_for(name):
    rule, build, wanted = CASES[name]
    x, y = T.dvectors("x", "y")
    mode = symcomp.Mode(optimizer="unsafe")
    f = symcomp.function([x, y], build(x, y), mode=mode, on_unused_input="ignore")
    assert rule in f.maker.trace.counts()
    np.testing.assert_array_equal(f(*VALUES), wanted(*VALUES))


@pytest.mark.parametrize("name", CASES)
def test_not_asked_for(name):
    _, build, _ = CASES[name]
    x, y = T.dvectors("x", "y")
    f = symcomp.function([x, y], build(x, y), on_unused_input="ignore")
    assert not {rule.name for rule in UNSAFE} & set(f.maker.trace.counts())
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(f(*VALUES), build(*VALUES))


def test_ratios_of_cancelled_factors():
    """Other rules leave these in derivatives, whose graphs no unsafe rule has seen."""
    x = T.dvector("x")
    f = symcomp.function([x], call("own_ratio", x), mode=symcomp.Mode(optimizer="unsafe"))
    assert f([0.0, np.inf]).tolist() == [1.0, 1.0]


def test_by_tag_and_by_name():
    x = T.dvector("x")
    for tag in ("nan_unsafe", "unsafe", "zero_product"):
        f = symcomp.function([x], x * 0, mode=symcomp.Mode().including(tag))
        assert f([np.nan]).tolist() == [0.0]


def test_shapes_stay():
    x, r = T.dmatrix("x"), T.drow("r")
    mode = symcomp.Mode(optimizer="unsafe")
    f = symcomp.function([x, r], [r * 0 + x * 0, (x - x).sum(axis=0), r / r + x], mode=mode)
    outs = f(np.ones((3, 2)), np.ones((1, 2)))
    assert [o.shape for o in outs] == [(3, 2), (2,), (3, 2)]


def test_every_rule_has_a_case():
    assert {rule.name for rule in UNSAFE} == {rule for rule, _, _ in CASES.values()}
