"""Reductions over some axes that are part of reductions over more: one pass over the elements."""

import numpy as np
import pytest

from symcomp.codegen.kernel import print_kernel, scheduled
from symcomp.codegen.loopir.kernel import MOST_STACK, Nests
from symcomp.codegen.loops.formula_parts import MOST_REDUCTIONS, reduced_in_steps
from symcomp.ops.elementwise.elemwise import ROWS
from symcomp.ops.formulas.formula import Formula, Result, Step
from symcomp.ops.reductions.reduce import REDUCTIONS, Reduce
from symcomp.tests.codegen.running import addresses, attempt, call

AXES = {3: [(2,), (0, 1, 2), (1, 2)], 2: [(0,), (0, 1)]}


def formula_of(name, axes, dtype, *more):
    """Make a formula that reduces the product of its inputs over each of the axes."""
    product = ROWS["mul"]()
    functions = [Reduce(REDUCTIONS[name], some, *more) for some in axes]
    out = functions[0].dtypes_for(dtype)[0]
    steps = [Step(product, (0, 1), dtype), *(Step(f, (2,), out) for f in functions)]
    results = tuple(Result(3 + i, some) for i, some in enumerate(axes))
    return Formula((dtype, dtype), (), tuple(steps), results)


def expected(formula, x, y):
    """Return the results by NumPy."""
    z = (x * y).astype(x.dtype)
    return [step.function.perform(z) for step in formula.steps[1:]]


@pytest.mark.parametrize("name", ["sum", "prod", "max", "min", "any", "all"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int8", "int64", "bool"])
def test_results(name, dtype):
    rng = np.random.default_rng(0)
    shapes = {2: [(3, 4), (50, 50), (1, 7), (300, 3)], 3: [(2, 3, 4), (5, 1, 9), (7, 30, 2)]}
    formulas = {rank: formula_of(name, axes, dtype) for rank, axes in AXES.items()}
    made = {rank: scheduled(f, [(False,) * rank] * 2) for rank, f in formulas.items()}
    functions = addresses([print_kernel(one) for one in made.values()])
    for (rank, formula), function in zip(formulas.items(), functions, strict=True):
        for shape in shapes[rank]:
            x, y = (rng.integers(0, 3, shape).astype(dtype) for _ in range(2))
            if dtype.startswith("float"):
                x += rng.uniform(0, 1, shape).astype(dtype)
            results = call(function, formula, [x, y])
            for z, want in zip(results, expected(formula, x, y), strict=True):
                # A total of n products: the error is below n units of their sizes' sum.
                tolerance = x.size * np.finfo(dtype).eps if dtype.startswith("float") else 0
                np.testing.assert_allclose(z, want, rtol=tolerance)


def test_one_pass():
    """The second kernel reads the totals alone; without steps it would read the inputs again."""
    made = scheduled(formula_of("sum", AXES[2], "float64"), [(False, False)] * 2)
    assert isinstance(made.kernel, Nests)
    first, second = made.kernel.parts
    assert {0, 1} <= {*first.arrays} and not {0, 1} & {*second.arrays}


def test_the_same_total_is_computed_once():
    formula = reduced_in_steps(formula_of("sum", AXES[2], "float64"))
    assert len(formula.steps) == 3
    assert [step.function.axes for step in formula.steps[1:]] == [(0,), (1,)]
    assert [result.value for result in formula.results] == [3, 4]


def test_totals_that_would_be_rounded_are_left():
    """A float16 total of some axes would have fewer digits than the accumulator."""
    for given in (("float16",), ("float32", "float32", "float64"), ("float32", "float64")):
        formula = formula_of("sum", AXES[2], *given)
        kept = reduced_in_steps(formula) == formula
        assert kept == (formula.steps[1].dtype != "float64")


@pytest.mark.parametrize(("name", "status"), [("sum", 0), ("max", 1)])
def test_empty_axes(name, status):
    formula = formula_of(name, AXES[2], "float64")
    made = scheduled(formula, [(False, False)] * 2)
    (function,) = addresses([print_kernel(made)])
    for shape in ((0, 3), (3, 0), (0, 0)):
        x = np.ones(shape)
        outputs = [np.full((1, shape[1]), 7.0), np.full((1, 1), 7.0)]
        found, results = attempt(function, formula, [x, x], outputs)
        assert found == status
        for z, want in zip(results, expected(formula, x, x) if not status else (), strict=False):
            np.testing.assert_array_equal(z, want)


def test_results_that_would_be_one_value_are_left():
    formula = formula_of("sum", [(0,), (0,), (0, 1)], "float64")
    assert reduced_in_steps(formula) is formula


def test_reductions_that_share_inputs_alone_are_left():
    """A pass over elements in their order is faster than one along the others' axes."""
    total = Reduce(REDUCTIONS["sum"], (0, 1))
    columns = Reduce(REDUCTIONS["sum"], (0,))
    steps = (Step(columns, (0,), "float64"), Step(total, (0,), "float64"))
    formula = Formula(("float64",), (), steps, (Result(1, (0,)), Result(2, (0, 1))))
    assert reduced_in_steps(formula) is formula


def test_totals_of_many_reductions_fit_on_the_stack():
    add, times = ROWS["add"](), ROWS["mul"]()
    total = Reduce(REDUCTIONS["sum"], (0,))
    steps = [Step(times, (0, 0), "float64"), Step(total, (1,), "float64")]
    for _ in range(95):
        steps.append(Step(times, (len(steps) - 1, 0), "float64"))
        steps.append(Step(total, (len(steps),), "float64"))
    value, *others = [1 + i for i, step in enumerate(steps) if step.function == total]
    for other in others:
        steps.append(Step(add, (value, other), "float64"))
        value = len(steps)
    formula = Formula(("float64",), (), tuple(steps), (Result(value, (0,)),))
    made = scheduled(formula, [(False, False)])
    assert len(made.kernel.parts) == 96 // MOST_REDUCTIONS
    assert all(part.loops.sweep.buffer < 2 * MOST_STACK for part in made.kernel.parts)
    (function,) = addresses([print_kernel(made)])
    x = np.random.default_rng(0).uniform(0.5, 1.0, (5, 5000))
    powers = [x]
    for _ in range(96):
        powers.append(powers[-1] * x)
    (z,) = call(function, formula, [x])
    np.testing.assert_allclose(z, sum(p.sum(axis=0) for p in powers[1:]), rtol=1e-12)
