"""LoopIR: what its interpreter computes is what the printed C computes, bit by bit."""

from types import SimpleNamespace

import numpy as np
import pytest

from symcomp.codegen.kernel import print_kernel, scheduled
from symcomp.codegen.loopir.kernel import Loops
from symcomp.codegen.loopir.run import run
from symcomp.codegen.loopir.verify_kernel import verify
from symcomp.ops.elementwise.elemwise import ROWS
from symcomp.ops.formulas.formula import Formula, Result, Step, folded_axes
from symcomp.ops.indexing.gather_labels import GatherLabels, ScatterLabels
from symcomp.ops.nnet.softmax import LogSumExp, Softmax
from symcomp.ops.reductions.reduce import REDUCTIONS, Reduce
from symcomp.ops.reductions.stable_reduce import LogProd, Variance
from symcomp.tests.codegen.running import addresses, assert_same_bits, attempt, literal

# Functions that C and NumPy round alike.
UNARY = ("neg", "abs", "sqr", "isnan", "second")
BINARY = ("add", "sub", "mul", "maximum", "minimum", "gt", "eq", "second")
DTYPES = ("bool", "int8", "uint16", "int64", "float16", "float32", "float64")
SHAPES = ((3, 5, 2), (1, 70, 33), (2, 3, 600), (40, 3, 7), (9, 20, 16), (0, 3, 2), (1, 300, 500))


def random_formula(rng):
    """Steps of random functions, most of them with reductions over the same axes."""
    rank = int(rng.integers(1, 4))
    inputs = [str(rng.choice(DTYPES)) for _ in range(rng.integers(1, 4))]
    patterns = [tuple(bool(one) for one in rng.random(rank) < 0.25) for _ in inputs]
    patterns[0] = (False,) * rank
    axes = tuple(axis for axis in range(rank) if rng.random() < 0.6)
    values, steps = [*inputs, "float64"], []
    while len(steps) < 6:
        step = random_step(rng, values, len(inputs), axes)
        if step is not None:
            steps.append(step)
            values.append(step.dtype)
    shown = {int(v) for v in rng.integers(len(inputs) + 1, len(values), size=2)}
    results = tuple(Result(v) for v in sorted({len(values) - 1, *shown}))
    number = literal(rng.integers(1, 5), "float64")
    return Formula(tuple(inputs), (number,), tuple(steps), results), patterns


def random_step(rng, dtypes, number, axes):
    """Draw a function of some of the values of these dtypes; None if it does not take them."""
    if axes and rng.random() < 0.35:
        a, name = int(rng.integers(len(dtypes))), str(rng.choice(["sum", "max", "min", "any"]))
        if a == number or (name != "sum" and dtypes[a] == "float16"):
            return None
        work = {"any": "bool", "sum": "float64"}.get(name, dtypes[a])
        given = (work, work) if name == "sum" else ()
        return Step(Reduce(REDUCTIONS[name], axes, *given), (a,), work)
    row = ROWS[str(rng.choice(BINARY if rng.random() < 0.7 else UNARY))]()
    taken = tuple(int(a) for a in rng.integers(len(dtypes), size=row.arity or 2))
    if {*taken} == {number}:
        return None
    try:
        return Step(row, taken, row.dtype(*(dtypes[a] for a in taken)))
    except TypeError:
        return None


def nests(seed, count):
    """Random formulas that are one nest with C."""
    rng, found = np.random.default_rng(seed), []
    while len(found) < count:
        formula, patterns = random_formula(rng)
        made = scheduled(formula, patterns)
        if made is not None and isinstance(made.kernel, Loops):
            found.append((formula, patterns, made))
    return found


def values_of(rng, dtype, shape):
    """Numbers, with some that are no numbers."""
    x = rng.standard_normal(shape) * 9
    if dtype.startswith("float"):
        x = np.where(rng.random(shape) < 0.01, np.nan, x)
    elif dtype.startswith("u") or dtype == "bool":
        x = np.abs(x)
    x = np.asarray(x.astype(dtype))
    kind = rng.integers(4)
    if kind == 1:
        return np.asfortranarray(x)
    if kind == 2:
        wide = np.zeros([2 * n for n in x.shape], dtype)[tuple(slice(None, None, 2) for _ in shape)]
        wide[...] = x
        return wide
    return x[tuple(slice(None, None, -1) for _ in shape)] if kind == 3 else x


def check(function, made, formula, patterns, rng):
    """Compare the C with what the interpreter computes, for arrays of many lengths and layouts."""
    every, rank = formula.patterns(patterns), len(patterns[0])
    for shape in (s[3 - rank :] for s in SHAPES):
        inputs = [
            values_of(rng, dtype, [1 if one else n for one, n in zip(p, shape, strict=True)])
            for dtype, p in zip(formula.inputs, patterns, strict=True)
        ]
        lengths = np.broadcast_shapes(*(x.shape for x in inputs))
        if any(
            x.shape[a] == 1 != p[a]
            for x, p in zip(inputs, patterns, strict=True)
            for a in range(rank)
        ):
            continue  # an axis of length 1 is stretched where kernels are called
        outputs = [
            np.empty(
                [1 if o else n for o, n in zip(every[r.value], lengths, strict=True)],
                formula.dtypes[r.value],
            )
            for r in formula.results
        ]
        others = [np.empty_like(z) for z in outputs]
        numbers = [np.array(one.array) for one in made.literals]
        status, _ = attempt(function, formula_with(formula, made.literals), inputs, outputs)
        assert status == run(made.kernel, [*inputs, *others, *numbers])
        for z, other in zip(outputs, others, strict=True) if status == 0 else ():
            assert_same_bits(z, other)


def test_printed_c_equals_interpreted_ir_on_random_nests():
    found = nests(7, 10)
    functions = addresses([print_kernel(made) for _, _, made in found])
    rng = np.random.default_rng(8)
    for (formula, patterns, made), function in zip(found, functions, strict=True):
        check(function.optimized, made, formula, patterns, rng)


def test_arrays_in_order_need_no_team():
    found = [
        (formula, made)
        for formula, _, made in nests(7, 10)
        if made.kernel.sweep.in_order and not any(p[0] for p in made.kernel.sweep.stretched)
    ]
    assert len(found) > 2
    functions = addresses([print_kernel(made) for _, made in found])
    rng = np.random.default_rng(10)
    for (formula, made), function in zip(found, functions, strict=True):
        for n in (1, 2, 700, 3001):
            flat = (n,) + (1,) * (made.kernel.sweep.rank - 1)
            inputs = [np.ascontiguousarray(values_of(rng, d, flat)) for d in formula.inputs]
            outputs = [np.empty(flat, formula.dtypes[r.value]) for r in formula.results]
            others = [np.empty_like(z) for z in outputs]
            numbers = [np.array(one.array) for one in made.literals]
            given = formula_with(formula, made.literals), inputs, outputs
            status, _ = attempt(function.optimized, *given, threads=0)
            assert status == 0 == run(made.kernel, [*inputs, *others, *numbers])
            for z, other in zip(outputs, others, strict=True):
                assert_same_bits(z, other)


def test_random_nests_are_verified():
    for _, _, made in nests(11, 60):
        verify(made.kernel)


WHOLE = {
    "sums over one axis, then over the other": (
        ("float32",), (
            Step(Reduce(REDUCTIONS["sum"], (1,)), (0,), "float32"),
            Step(ROWS["sub"](), (0, 1), "float32"),
            Step(Reduce(REDUCTIONS["sum"], (0,)), (2,), "float32"),
            Step(ROWS["mul"](), (2, 3), "float32"),
        ),
    ),
    "an element of each line": (
        ("float64", "int16"), (Step(GatherLabels((1,)), (0, 1), "float64"),),
    ),
    "elements written to lines": (
        ("float64", "int64", "float64"), (Step(ScatterLabels((1,)), (0, 1, 2), "float64"),),
    ),
    "softmax": (("float32",), (Step(Softmax(1), (0,), "float32"),)),
    "variance": (("float64",), (Step(Variance((0,)), (0,), "float64"),)),
    "log of sums": (("float64",), (Step(LogSumExp((1,)), (0,), "float64"),)),
    "log of products": (("float32",), (Step(LogProd((0,)), (0,), "float32"),)),
}  # fmt: skip


@pytest.fixture(scope="module")
def whole():
    """Return the formulas of ``WHOLE`` with the literals of their kernels, in LoopIR, and their C.
    """
    found = {}
    for name, (dtypes, steps) in WHOLE.items():
        last = steps[-1].function
        result = Result(len(dtypes) + len(steps) - 1, folded_axes(last))
        formula = Formula(dtypes, (), steps, (result,))
        made = scheduled(formula, [(False, False), (False, True), (False, True)][: len(dtypes)])
        found[name] = formula, made
    functions = addresses([print_kernel(made) for _, made in found.values()])
    return {
        name: (formula_with(formula, made.literals), made.kernel, function)
        for (name, (formula, made)), function in zip(found.items(), functions, strict=True)
    }


def formula_with(formula, literals):
    """Return a formula in the form ``attempt`` reads, with other literals."""
    return SimpleNamespace(
        patterns=formula.patterns, results=formula.results, dtypes=formula.dtypes,
        inputs=formula.inputs, literals=literals,
    )  # fmt: skip


@pytest.mark.parametrize("name", WHOLE)
def test_kernels_of_several_nests(whole, name):
    formula, kernel, function = whole[name]
    dtypes, rng = formula.inputs, np.random.default_rng(3)
    numbers = [np.array(one.array) for one in formula.literals]
    for rows, columns in ((3, 5), (70, 33), (2, 3000)):
        inputs = [rng.standard_normal((rows, columns)).astype(dtypes[0])]
        if len(dtypes) > 1:
            inputs += [rng.integers(-columns, columns, (rows, 1)).astype(dtypes[1])]
            inputs += [rng.standard_normal((rows, 1))] * (len(dtypes) - 2)
        status, found = attempt(function, formula, inputs)
        ones = formula.patterns([(False, False), (False, True), (False, True)][: len(dtypes)])
        lengths = zip(ones[formula.results[0].value], (rows, columns), strict=True)
        other = np.empty([1 if one else n for one, n in lengths], found[0].dtype)
        assert status == run(kernel, [*inputs, other, *numbers]) == 0
        other = other.reshape(found[0].shape)
        if name in ("softmax", "log of sums", "log of products"):  # of exponentials and logarithms
            np.testing.assert_allclose(found[0], other, 1e-5 if dtypes[0] == "float32" else 1e-13)
        else:
            assert_same_bits(found[0], other)
    if len(dtypes) > 1:
        inputs[1][1] = columns
        assert attempt(function, formula, inputs)[0] == 1
        assert run(kernel, [*inputs, np.empty_like(inputs[0]), *numbers]) == 1


@pytest.mark.parametrize("shape", [(1, 3), (60, 3), (3, 300)])
def test_chosen_results_alone_get_another_pass(shape):
    """Sums of exponentials are added up again where the logarithm cancels."""
    step = Step(LogSumExp((1,)), (0,), "float64")
    formula = Formula(("float64",), (), (step,), (Result(1, (1,)),))
    made = scheduled(formula, [(False, False)])
    assert [stage.ready for stage in made.kernel.sweep.stages] == [False, False, True]
    verify(made.kernel)
    (function,) = addresses([print_kernel(made)])
    numbers = [np.array(one.array) for one in made.literals]
    x = np.random.default_rng(4).normal(size=shape)
    x -= (np.arange(shape[0]) % 7 < 2)[:, None] * np.log(np.exp(x).sum(axis=1, keepdims=True))
    for given in (x, np.asfortranarray(x)):
        _, (found,) = attempt(function, formula_with(formula, made.literals), [given])
        other = np.empty((shape[0], 1))
        assert run(made.kernel, [given, other, *numbers]) == 0
        np.testing.assert_allclose(found, other[:, 0], 1e-13, 1e-18)
        np.testing.assert_allclose(found, LogSumExp((1,)).perform(x), 1e-15, 1e-18)
