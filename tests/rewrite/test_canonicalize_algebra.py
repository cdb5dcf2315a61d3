"""Every rule of canonicalize/algebra.py: what it leaves, that values stay; what it leaves alone."""

import numpy as np
import pytest

import symcomp.tensor as T
from symcomp.core.graph import FunctionGraph
from symcomp.rewrite.canonicalize.algebra import ALGEBRA
from symcomp.rewrite.engine import Engine
from symcomp.rewrite.rule import RuleSet
from symcomp.tests.harness import variables_for
from symcomp.tests.rewrite.rules import RULES, Case, check_rule

V = np.array([0.5, -1.5, 3.0])
W = np.array([2.0, 0.25, -4.0])
M = np.array([[1.0, -2.0, 0.5], [4.0, -0.125, 7.0]])
F = V.astype("float32")
H = V.astype("float16")
C = np.array([1 + 2j, -0.5j, 3.0])
I = np.array([1, -2, 7])
U = np.array([0, 3, 250], "uint8")
B = np.array([True, False, True])
S = np.array(2.5)

CASES = [
    Case("neg_neg", lambda x: T.neg(-x), (V,), ""),
    Case("neg_neg", lambda x: T.neg(-x), (I,), "", note="ints"),
    Case("neg_neg", lambda x: T.neg(-x), (U,), "", note="unsigned"),
    Case("neg_neg", lambda x: T.neg(-x), (C,), "", note="complex"),
    Case("add_zero", lambda x: x + 0, (V,), ""),
    Case("add_zero", lambda x: 0.0 + x, (M,), "", note="left"),
    Case("add_zero", lambda x: x - 0, (F,), "", note="sub"),
    Case("add_zero", lambda x: x + np.zeros(1, "float32"), (H.astype("float32"),), "", note="(1,)"),
    Case("add_zero", lambda x: T.add(x, 0, x), (V,), "add", note="of three"),
    Case("add_zero", lambda x: x + 0, (I,), "", note="ints"),
    Case("mul_one", lambda x: x * 1, (V,), ""),
    Case("mul_one", lambda x: 1.0 * x, (M,), "", note="left"),
    Case("mul_one", lambda x: x / 1, (F,), "", note="div"),
    Case("mul_one", lambda x: x * -1, (V,), "neg", note="minus"),
    Case("mul_one", lambda x: x / -1.0, (V,), "neg", note="div minus"),
    Case("mul_one", lambda x: x * 1, (U,), "", note="unsigned"),
    Case("mul_one", lambda x: T.true_div(x, T.constant(1.0)), (V,), "", note="0-d"),
    Case("signs", lambda x, y: x + -y, (V, W), "sub"),
    Case("signs", lambda x, y: -x + y, (V, W), "sub", note="first"),
    Case("signs", lambda x, y: x - -y, (V, W), "add", note="minus minus"),
    Case("signs", lambda x, y: (-x) * (-y), (V, W), "mul", note="mul"),
    Case("signs", lambda x, y: (-x) / (-y), (V, W), "true_div", note="div"),
    Case("signs", lambda x, y: x + -y, (I, I[::-1].copy()), "sub", note="ints"),
    Case("fold_constants", lambda x: (x * 3.0) * 5.0, (V,), "mul", rtol=1e-15),
    Case("fold_constants", lambda x: 5.0 * (x / 4.0), (V,), "mul", atol=1e-323, note="div"),
    Case("fold_constants", lambda x: (x * 0.7) * 3, (F,), "mul", rtol=2e-7, note="float32"),
    Case("simple_powers", lambda x: x**1, (V,), ""),
    Case("simple_powers", lambda x: x**2, (V,), "sqr", note="square"),
    Case("simple_powers", lambda x: x**2, (I,), "sqr", note="square of ints"),
    Case("simple_powers", lambda x: x**2.0, (F,), "sqr", note="square float32"),
    Case("simple_powers", lambda x: x**-1, (V,), "reciprocal", note="inverse"),
    Case("simple_powers", lambda x: x**0, (V,), "second", note="zero"),
    Case("mul_to_sqr", lambda x: x * x, (V,), "sqr"),
    Case("mul_to_sqr", lambda x: x * x, (U,), "sqr", note="unsigned"),
    Case("mul_to_sqr", lambda x: x * x, (C,), "sqr", rtol=1e-15, note="complex"),
    Case("div_to_reciprocal", lambda x: 1 / x, (V,), "reciprocal"),
    Case("div_to_reciprocal", lambda x: 1.0 / x, (F,), "reciprocal", note="float32"),
    Case("drop_copies", lambda x: T.tensor_copy(x) + 1.0, (V,), "add"),
    Case("cast_of_cast", lambda x: T.cast(T.cast(x, "float64"), "float16"), (F,), "cast"),
    Case("cast_of_cast", lambda x: T.cast(T.cast(x, "float64"), "float32"), (F,), "", note="back"),
    Case("cast_of_cast", lambda x: T.cast(T.cast(x, "int64"), "int16"), (U,), "cast", note="ints"),
    Case("cast_of_cast", lambda x: T.cast(T.cast(x, "int16"), "int8"), (U,), "cast", note="wrap"),
    Case("cast_of_cast", lambda x: T.cast(T.cast(x, "float64"), "int8"),
         (np.array([3, -7], "int8"),), "", note="through floats"),
    Case("switch_known", lambda x, y: T.switch(True, x, y), (V, W), "", static="full"),
    Case("switch_known", lambda x, y: T.switch(0, x, y), (V, W), "", static="full", note="else"),
    Case("switch_known", lambda x: T.switch(T.constant(False), x, x * 2.0), (V,), "mul",
         note="one shape"),
    Case("switch_known", lambda c, x: T.switch(c, x, x), (B, V), "", static="full", note="equal"),
    Case("switch_known", lambda x: T.switch(x > 0, x, x), (V,), "", note="equal, one shape"),
    Case("second_of_same_shape", lambda x, y: T.second(x, y), (V, W), "", static="full"),
    Case("second_of_same_shape", lambda x: T.second(x, x * 2.0), (M,), "mul", note="found"),
    Case("unfilled_operands", lambda x: x * T.second(x, 2.0), (M,), "mul"),
    Case("unfilled_operands", lambda x, s: T.second(x, s) - x, (V, S), "DimShuffle sub",
         note="scalar"),
    Case("unfilled_operands", lambda x: x + T.alloc(3.0, x.shape[0]), (V,), "add", note="alloc",
         static="full"),
    Case("neg_of_fill", lambda x: -T.second(x, 2.0), (V,), "second"),
    Case("second_model", lambda x: T.second(T.exp(x), 1.0), (V,), "second"),
    Case("second_model", lambda x: T.second(-T.sin(x), 1.0), (M,), "second", note="twice"),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=str)
def test_rule(case):
    check_rule(case)


def test_every_rule_has_a_case():
    assert {rule.name for rule in ALGEBRA} == {case.rule for case in CASES}


# Name of the rule, expression, arrays: what looks like a case and is none.
STAYS = {
    "zero may stretch": ("add_zero", lambda x: x + np.zeros(3), (np.ones(1),)),
    "zero changes the dtype": ("add_zero", lambda x: x + np.float64(0), (I,)),
    "zeros first": ("add_zero", lambda x: 0 - x, (V,)),
    "one changes the dtype": ("mul_one", lambda x: x / 1, (I,)),
    "one of complex": ("mul_one", lambda x: x * T.constant(1.0), (C,)),
    "minus one of complex": ("mul_one", lambda x: x * T.constant(-1.0), (C,)),
    "undoes an overflow": ("fold_constants", lambda x: (x * 1e200) * 1e-200, (V,)),
    "thirds": ("fold_constants", lambda x: (x / 3.0) * 3.0, (V,)),
    "overflowing constants": ("fold_constants", lambda x: (x * 1e200) * 1e200, (V,)),
    "inverse of ints": ("simple_powers", lambda x: x ** T.constant(-1, dtype="int8"), (I,)),
    "square of bool": ("mul_to_sqr", lambda x: x * x, (B,)),
    "one over ints": ("div_to_reciprocal", lambda x: 1 / x, (I,)),
    "loses digits": ("cast_of_cast", lambda x: T.cast(T.cast(x, "float32"), "float64"), (V,)),
    "rounds first": ("cast_of_cast", lambda x: T.cast(T.cast(x, "int64"), "float64"), (V,)),
    "wraps first": ("cast_of_cast", lambda x: T.cast(T.cast(x, "uint8"), "int64"), (I,)),
    "rounds twice": ("cast_of_cast", lambda x: T.cast(T.cast(x, "float32"), "float16"), (V,)),
    "checks a shape": ("switch_known", lambda x, y: T.switch(True, x, y), (V, W)),
    "stretches": ("switch_known", lambda x, y: T.switch(True, x, y), (S, V)),
    "unknown shapes": ("second_of_same_shape", lambda x, y: T.second(x, y), (V, W)),
    "nothing else has the shape": ("unfilled_operands", lambda x, y: T.second(x, 2.0) * y, (V, S)),
    "models with a check": ("second_model", lambda x, y: T.second(x + y, 1.0), (V, W)),
}  # fmt: skip


@pytest.mark.parametrize("name", STAYS)
def test_rule_does_not_fire(name):
    rule, build, values = STAYS[name]
    inputs = variables_for(values, "none")
    graph = FunctionGraph(inputs, [build(*inputs)])
    firings = Engine(graph, RuleSet([RULES[rule]]), folding=False, on_error="raise").run()
    assert [f.rule for f in firings if f.rule == rule] == []
