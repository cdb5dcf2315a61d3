"""Cheaper functions with the same values: one case or more for each rule."""

import numpy as np
import pytest

import symcomp.tensor as T
from symcomp.rewrite.specialize import SPECIALIZE
from symcomp.tests.rewrite.rules import Case, check_rule

X = np.array([0.3, -1.2, 2.5])
I = np.array([3, -2, 0])
ENDS = np.array([-np.inf, np.inf, np.nan, -0.0, 0.0, -2.0])

CASES = [
    Case("small_power", lambda x: x**3, (X,), "mul sqr", rtol=1e-15, note="cube"),
    Case("small_power", lambda x: x**4, (X,), "sqr sqr", rtol=1e-15, note="fourth"),
    Case("small_power", lambda x: x**-2.0, (X,), "reciprocal sqr", rtol=1e-15, note="inverse"),
    Case("small_power", lambda x: x**1.5, (ENDS,), "eq mul sqrt switch", rtol=1e-15,
         note="half"),
    Case("small_power", lambda x: x**1.5, (ENDS.astype("float32"),), "eq mul sqrt switch",
         rtol=1e-6, atol=1e-44, note="half of float32"),
    Case("small_power", lambda x: x**3, (I,), "mul sqr", note="ints"),
    Case("small_power", lambda x: x**3, (X.astype("float32"),), "mul sqr", rtol=1e-6, atol=1e-44,
         note="float32"),
    Case("division_by_power_of_two", lambda x: x / 4, (X,), "mul"),
    Case("division_by_power_of_two", lambda x: x / -0.5, (X.astype("float32"),), "mul",
         note="float32"),
    Case("diagonal_matrix_as_write", T.diag, (X,), "Reshape SetSubtensor",
         static="full"),
    Case("sum_of_neg", lambda x: (-x).sum(), (X,), "neg sum"),
    Case("function_of_scipy", T.i0, (I,), "cast i0", rtol=1e-15, note="ints"),
    Case("function_of_scipy", T.i0, (X.astype("float16"),), "cast cast i0", rtol=1e-3,
         note="float16"),
    Case("sum_of_neg", lambda x: (-x).sum(axis=0), (X[:, None],), "neg sum", note="axis"),
    Case("sum_of_fill", lambda x: T.second(x, -1.0).sum(), (X,), "ShapeI cast mul", static="none",
         note="whole"),
    Case("sum_of_fill", lambda x: T.second(x, 0.3).sum(), (X,), "ShapeI cast mul", rtol=1e-15,
         static="none", note="rounded"),
    Case("sum_of_fill", lambda x: [T.second(x, -2.0).sum(), T.exp(x).sum()],
         (X.astype("float32"),), "ShapeI cast exp mul sum", static="none",
         rtol=1e-6, note="float32"),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=str)
def test_rule(case):
    check_rule(case)


def test_every_rule_has_a_case():
    assert {rule.name for rule in SPECIALIZE} == {case.rule for case in CASES}
