"""The whole pipeline of rules, on hard values, deviations from means, and mixed dtypes."""

import numpy as np
import pytest

import symcomp.tensor as T
from symcomp.compile.mode import Mode
from symcomp.core.graph import FunctionGraph
from symcomp.rewrite.engine import Engine
from symcomp.rewrite.phases import CANONICALIZE, STABILIZE, rewrite
from symcomp.rewrite.rule import RuleSet
from symcomp.tests.exact import evaluate_exactly, units_off
from symcomp.tests.harness import variables_for
from symcomp.tests.rewrite.rules import rewritten, run, values_of

# Expression, arrays: where the plain form loses digits, overflows or is 0 / 0.
NEAR_0 = np.array([5e-324, -1e-300, 1e-17, -3e-9, 2e-5])
LARGE = np.array([-800.0, -40.5, -3.1, 0.7, 37.5, 720.0])
HARD = {
    "exp(x) - 1": (lambda x: T.exp(x) - 1, NEAR_0),
    "sqrt(exp(x))": (lambda x: T.sqrt(T.exp(x)), 1.8 * LARGE),
    "1 - 1 / exp(-x)": (lambda x: 1 - 1 / T.exp(-x), NEAR_0),
    "log(1 + x)": (lambda x: T.log(1 + x), NEAR_0),
    "log(1 - x) of a quotient": (lambda x: T.log(1 - x / 4), NEAR_0),
    "1 - cos(x)": (lambda x: 1 - T.cos(x), NEAR_0[2:]),
    "(1 - cos(x)) / x^2": (lambda x: (1 - T.cos(x)) / x**2, NEAR_0[2:]),
    "1 - erf(x)": (lambda x: 1 - T.erf(x), np.array([-6.0, 1e-9, 4.1, 9.3, 26.0])),
    "log(1 - erf(x))": (lambda x: T.log(1 - T.erf(x)), np.array([-6.0, 1e-9, 4.1, 9.3, 30.0])),
    "log(1 - ndtr(x))": (lambda x: T.log(1 - T.ndtr(x)), np.array([-6.0, 1e-9, 4.1, 9.3, 30.0])),
    "1 - sigmoid(x)": (lambda x: 1 - T.sigmoid(x), LARGE),
    "log sigmoid(x)": (lambda x: T.log(1 / (1 + T.exp(-x))), LARGE),
    "1 + tanh(x)": (lambda x: 1 + T.tanh(x), LARGE[:5]),
    "1 - tanh(x)^2": (lambda x: 1 - T.tanh(x) ** 2, LARGE[1:5]),
    "log(1 + exp(x))": (lambda x: T.log(1 + T.exp(x)), LARGE),
    "log cosh(x)": (lambda x: T.log(T.cosh(x)), LARGE),
    "sinh / cosh": (lambda x: T.sinh(x) / T.cosh(x), LARGE),
    "sqrt(x + 1) - sqrt(x)": (
        lambda x: T.sqrt(x + 1) - T.sqrt(x), np.array([1e-9, 3.0, 1e8, 1e200])
    ),
    "log1p(x) - x": (lambda x: T.log1p(x) - x, np.array([1e-100, 1e-9, -2e-3, 0.3, 9.0])),
    "(1 + x)^3 - 1": (lambda x: (1 + x) ** 3.0 - 1, np.array([1e-30, -1e-9, -2.5, 4.0])),
    "(1 + x)^2 - 1": (lambda x: T.sqr(1 + x) - 1, np.array([1e-30, -2 + 1e-9, -2.5, -1.0])),
    "x^2 - 9": (lambda x: x**2 - 9, np.array([3 + 1e-12, -3 + 1e-9, 1e150])),
    "x / expm1(x)": (lambda x: x / (T.exp(x) - 1), np.array([1e-300, -1e-9, 37.0, 720.0, -800.0])),
    "erfcx": (lambda x: T.exp(x**2) * T.erfc(x), np.array([-5.0, 0.3, 9.1, 40.0, 1e8])),
    "log erfc": (lambda x: T.log(T.erfc(x)), np.array([-5.0, 1e-9, 9.1, 40.0])),
    "norm": (lambda x: T.sqrt(T.sum(x**2)), np.array([3e-200, -4e-200])),
    "log of a product": (lambda x: T.log(T.prod(x)), np.array([1e-200, 1e-300, 3e-5])),
    "log of a power": (lambda x: T.log(x**9), np.array([1e-200, 1e200, 1.0 + 1e-9])),
    "area tangent": (lambda x: T.log((1 + x) / (1 - x)), np.array([1e-300, -1e-9, 0.3, -0.999])),
    "log sum exp": (lambda x: T.log(T.sum(T.exp(x))), LARGE),
    "log mean exp": (lambda x: T.log(T.mean(T.exp(x))), LARGE),
    "softmax": (lambda x: T.exp(x) / T.sum(T.exp(x)), LARGE),
    "shifted softmax": (
        lambda x: T.exp(x - T.max(x)) / T.sum(T.exp(x - T.max(x))), np.array([36.5, 1.1, -0.4])
    ),
    "log softmax": (lambda x: T.log(T.exp(x) / T.sum(T.exp(x))), LARGE),
    "variance": (lambda x: T.mean(x**2) - T.mean(x) ** 2, 1e8 + np.array([1.0, 2.0, 4.0])),
}  # fmt: skip


@pytest.mark.parametrize("name", HARD)
def test_hard_values(name):
    """Against the plain form computed with hundreds of digits."""
    build, values = HARD[name]
    inputs = variables_for((values,), "full")
    outputs = [build(*inputs)]
    graph = rewritten(inputs, outputs, RuleSet([*STABILIZE, *CANONICALIZE]))
    truth = evaluate_exactly(inputs, outputs, [values])
    assert units_off(run(graph, [values])[0], truth[0]) <= 4
    plain = values_of(inputs, outputs, [values])[0]
    assert not units_off(plain, truth[0]) <= 4, "not a hard case"


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_deviations_from_a_mean_that_is_not_finite(bad):
    x, c = T.dmatrix("x"), T.drow("c")
    z = (c * (x - T.mean(x, axis=0, keepdims=True))).sum(axis=0)
    graph = rewritten([x, c], [z], RuleSet([*STABILIZE, *CANONICALIZE]))
    values = [np.array([[1.0, 0.1, 3.0], [bad, 0.2, 4.0]]), np.array([[2.0, 3.0, bad]])]
    with np.errstate(invalid="ignore"):
        (found,) = run(graph, values)
    np.testing.assert_array_equal(found, [np.nan, 0, np.nan])


def test_deviations_are_those_of_the_sum():
    """No other mean is taken for that along the axes of the sum, and no comparison is lost."""
    x, y = T.dmatrix("x"), T.dmatrix("y")

    def names(z):
        graph = FunctionGraph([x, y], [z])
        return Engine(graph, RuleSet([*STABILIZE, *CANONICALIZE])).run()

    for other in (x.mean(axis=1, keepdims=True), x.mean(), y.mean(axis=0, keepdims=True)):
        assert "sum_of_deviations" not in {f.rule for f in names((x - other).sum(axis=0))}
    deviations = x - x.mean(axis=0, keepdims=True)
    for factor in (y, T.exp(x)):
        assert "sum_of_deviations" not in {f.rule for f in names((factor * deviations).sum(axis=0))}
    assert "sum_of_deviations" not in {f.rule for f in names((T.exp(y) + deviations).sum(axis=0))}
    # The factor compares the lengths.
    factor = (T.exp(y) * x).sum(axis=0, keepdims=True)
    z = (T.exp(y) + factor * deviations).sum(axis=0)
    assert "sum_of_deviations" in {f.rule for f in names(z)}


# Sums and products of a narrow x and float64: the result has that dtype, and its digits where it is
# rewritten.
D = np.float64
MIXED = {
    "log(1 + x)": lambda x: T.log(D(1) + x),
    "log(1 + 2 x)": lambda x: T.log(1 + D(2) * x),
    "exp(x) - 1": lambda x: T.exp(x) - D(1),
    "1 - cos(x)": lambda x: D(1) - T.cos(x),
    "1 - erf(x)": lambda x: D(1) - T.erf(x),
    "sigmoid": lambda x: D(1) / (D(1) + T.exp(-x)),
    "ndtr": lambda x: 0.5 * T.erfc(-x / np.sqrt(2.0)),
    "1 - tanh(x)^2": lambda x: D(1) - T.tanh(x) ** 2,
    "sinh": lambda x: (T.exp(x) - T.exp(-x)) / D(2),
    "softmax": lambda x: D(2) * T.exp(x) / T.sum(T.exp(x)),
    "variance": lambda x: T.mean(x**2) - D(1) * T.mean(x) ** 2,
    "log of a product": lambda x: T.log(T.prod(x) * D(2)),
    "weighted sum": lambda x: T.log(T.sum(T.constant(np.array([1.0, 2.0, 4.0])) * T.exp(x))),
}


@pytest.mark.parametrize("dtype", ["float32", "float16", "int8", "int64"])
@pytest.mark.parametrize("name", MIXED)
def test_mixed_dtypes(name, dtype):
    values = np.array([1, 2, 3], dtype)
    inputs = variables_for((values,), "none")
    outputs = [MIXED[name](*inputs)]
    graph = FunctionGraph(inputs, outputs)
    rewrite(graph, Mode(optimizer="fast_run").selects, on_error="raise")
    (got,) = run(graph, [values])
    assert got.dtype == outputs[0].dtype == "float64"
    wide = variables_for((values.astype(float),), "none")
    (truth,) = values_of(wide, [MIXED[name](*wide)], [values.astype(float)])
    worst = {"float32": 1e-5, "float16": 2e-2, "int8": 2e-2, "int64": 1e-11}[dtype]
    np.testing.assert_allclose(got, truth, rtol=worst)
