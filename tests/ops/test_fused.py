"""Fused: formulas as values, their evaluation in blocks, and errors as unfused ops raise them."""

import pickle

import numpy as np
import pytest

import symcomp
import symcomp.tensor as T
from symcomp.core.evaluate import evaluate
from symcomp.core.source import Source
from symcomp.errors import DTypeError, ShapeError
from symcomp.ops.elementwise.elemwise import ROWS, ScalarOp
from symcomp.ops.formulas.blocks import block_indices
from symcomp.ops.formulas.evaluation import LARGEST, Evaluator
from symcomp.ops.formulas.formula import Formula, Literal, Result, Step
from symcomp.ops.formulas.fused import Fused
from symcomp.ops.nnet.softmax import LogSoftmax, LogSumExp, Softmax
from symcomp.ops.reductions.reduce import REDUCTIONS, Reduce
from symcomp.tests.harness import check


@pytest.fixture
def rng():
    return np.random.default_rng(3)


def row(name, *parameters):
    return ROWS[name](*parameters)


def gated(dtype="float64"):
    """t = exp(2 x + y + x); (t where t > x, else y), t."""
    steps = (
        Step(row("mul"), (0, 2), dtype),
        Step(row("add"), (3, 1, 0), dtype),
        Step(row("exp"), (4,), dtype),
        Step(row("gt"), (5, 0), "bool"),
        Step(row("switch"), (6, 5, 1), dtype),
    )
    results = (Result(7), Result(5))
    return Fused(Formula((dtype, dtype), (Literal.of(np.asarray(2, dtype)),), steps, results))


def gated_by_hand(x, y):
    t = np.exp(x * x.dtype.type(2) + y + x)
    return [np.where(t > x, t, y), t]


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize(
    "shapes", [((3, 4), (3, 4)), ((3, 4), (1, 4)), ((1, 1), (2, 3)), ((0, 2), (1, 2))]
)
def test_value_shape_and_derivatives(dtype, shapes, rng):
    x, y = (rng.uniform(-1, 1, shape).astype(dtype) for shape in shapes)
    check(gated(dtype), x, y, expected=gated_by_hand, rtol=2e-3 if dtype == "float16" else None)


LAYOUTS = {
    "contiguous": lambda x: x,
    "columns": np.asfortranarray,
    "reversed": lambda x: x[::-1],
    "every other": lambda x: x[::2, ::3],
    "transposed": lambda x: x.T,
    "negative steps": lambda x: x[::-2, ::-1],
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("other", ["full", "row", "column", "one"])
def test_blocks_give_the_same_bits(layout, other, rng):
    x = LAYOUTS[layout](rng.standard_normal((600, 333)))
    y = rng.standard_normal(
        {"full": x.shape, "row": (1, x.shape[1]), "column": (x.shape[0], 1), "one": (1, 1)}[other]
    )
    before = x.copy(), y.copy()
    for got, want in zip(gated().perform(x, y), gated_by_hand(x, y), strict=True):
        np.testing.assert_array_equal(got, want)
        assert got.flags.writeable and not np.may_share_memory(got, x)
    np.testing.assert_array_equal(before[0], x)
    np.testing.assert_array_equal(before[1], y)


def sizes_seen(dtypes, steps, results, *values):
    """Return the sizes of the arrays that a probe, as the function of step 0, is called with."""
    seen = []

    def probe(x):
        seen.append(x.size)
        return x * 2

    probing = Step(ScalarOp("probe", 1, probe, lambda x: x), (0,), "float64")
    op = Fused(Formula(dtypes, (), (probing, *steps), results))
    op.perform(*values)
    return seen


def test_large_arrays_are_cut(rng):
    n = 10**6
    x = rng.standard_normal(n)
    seen = sizes_seen(("float64",), (), (Result(1),), x)
    assert max(seen) <= LARGEST and sum(seen) == n
    total = Step(Reduce(REDUCTIONS["sum"], (0, 1)), (1,), "float64")
    for matrix in (x.reshape(1000, 1000), x.reshape(1000, 1000)[:, ::2], x.reshape(10, -1)):
        seen = sizes_seen(("float64",), (total,), (Result(2, (0, 1)),), matrix)
        assert max(seen) <= LARGEST and sum(seen) == matrix.size
        lines = Step(Softmax(1), (1,), "float64")
        seen = sizes_seen(("float64",), (lines,), (Result(2),), matrix)
        assert max(seen) <= max(LARGEST, matrix.shape[1]) and sum(seen) == matrix.size
    assert sizes_seen(("float64",), (), (Result(1),), x[:1000]) == [1000]


def test_three_axes_in_blocks(rng):
    x, y = rng.standard_normal((7, 90, 110)), rng.standard_normal((7, 1, 110))
    for got, want in zip(gated().perform(x, y), gated_by_hand(x, y), strict=True):
        np.testing.assert_array_equal(got, want)


def test_long_rows_are_cut(rng):
    x, y = rng.standard_normal((2, 70001)), rng.standard_normal((2, 1))
    for got, want in zip(gated().perform(x, y), gated_by_hand(x, y), strict=True):
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("shape", [(), (5,), (5, 4), (3, 4, 5), (1, 100), (100, 1)])
@pytest.mark.parametrize("size", [1, 3, 7, 1000])
def test_block_indices_cover_everything_once(shape, size):
    seen = np.zeros(shape, int)
    for index in block_indices(shape, size):
        seen[index] += 1
        assert seen[index].size <= size
    assert (seen == 1).all()


def test_mixed_dtypes(rng):
    steps = (
        Step(row("add"), (0, 1), "int64"),
        Step(row("add"), (0, 1, 2), "float64"),
        Step(row("cast", "int16"), (4,), "int16"),
        Step(row("exp"), (0,), "float16"),
        Step(row("true_div"), (3, 5), "float64"),
        Step(row("invert"), (5,), "int16"),
        Step(row("neg"), (3,), "int64"),
    )
    formula = Formula(
        ("int8", "int64", "float32"), (), steps, tuple(Result(v) for v in range(3, 10))
    )
    n = 40000
    i, j, x = (
        rng.integers(-9, 9, n).astype(np.int8),
        rng.integers(0, 9, n),
        rng.random(n, np.float32),
    )
    add = i + j
    short = (add + x).astype(np.int16)
    with np.errstate(all="ignore"):
        wants = [add, add + x, short, np.exp(i), add / short, ~short, -add]
        results = Fused(formula).perform(i, j, x)
    for got, want, step in zip(results, wants, steps, strict=True):
        assert got.dtype == want.dtype == step.dtype
        np.testing.assert_array_equal(got, want)


def test_sums_of_small_integers_do_not_wrap_early():
    # Added one after the other in NumPy's dtypes: int8 + int8 wraps before it meets the float.
    steps = (Step(row("add"), (0, 0, 1), "float64"), Step(row("neg"), (2,), "float64"))
    op = Fused(Formula(("int8", "float64"), (), steps, (Result(3),)))
    for n in (3, 50000):
        i, x = np.full(n, 100, np.int8), np.ones(n)
        np.testing.assert_array_equal(op.perform(i, x)[0], -np.add(np.add(i, i), x))


@pytest.mark.parametrize("n", [3, 30000])
def test_sums_whose_first_terms_are_stretched_later(n, rng):
    steps = (
        Step(row("neg"), (0,), "float64"),
        Step(row("add"), (3, 1, 2), "float64"),
        Step(row("neg"), (4,), "float64"),
    )
    op = Fused(Formula(("float64",) * 3, (), steps, (Result(5),)))
    a, b, x = rng.standard_normal((1, 4)), rng.standard_normal((1, 4)), rng.standard_normal((n, 4))
    check(op, a, b, x[:3], expected=lambda a, b, x: [-(-a + b + x)])
    np.testing.assert_array_equal(op.perform(a, b, x)[0], -(-a + b + x))


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("n", [3, 50000])
@pytest.mark.parametrize("name", ["maximum", "minimum", "add", "mul", "arctan2"])
def test_values_between_are_overwritten_without_warnings(name, n, rng):
    function = row(name).function
    steps = (
        Step(row("neg"), (0,), "float64"),
        Step(row(name), (2, 1), "float64"),
        Step(row(name), (0, 3), "float64"),
    )
    op = Fused(Formula(("float64",) * 2, (), steps, (Result(4),)))
    x, y = rng.standard_normal((2, n))
    np.testing.assert_array_equal(op.perform(x, y)[0], function(x, function(-x, y)))


def test_formulas_are_values():
    assert gated() == gated() and hash(gated()) == hash(gated())
    assert gated() != gated("float32")
    assert pickle.loads(pickle.dumps(gated())) == gated()
    nan, zero = Literal.of(np.nan), Literal.of(0.0)
    assert nan == Literal.of(np.nan) and zero != Literal.of(-0.0) and zero != Literal.of(0)
    lines = [None, Source("file.py", 1, "f")]
    first, second = (Fused(gated().formula, (line,) * 5) for line in lines)
    assert first == second and hash(first) == hash(second)


def test_text():
    op = gated()
    assert str(op) == "Fused{t2 = exp((x0 * 2.0) + x1 + x0); switch(gt(t2, x0), t2, x1), t2}"
    assert op.formula.lines()[-2:] == ["t4: float64 = switch(t3, t2, x1)", "-> t4, t2"]
    steps = [Step(row("neg"), (i,), "float64") for i in range(300)]
    long = Fused(Formula(("float64",), (), tuple(steps), (Result(300),)))
    assert str(long) == "Fused{300 steps: 300 neg}"


@pytest.mark.parametrize(
    ("steps", "results", "match"),
    [
        ((Step(row("neg"), (1,), "float64"),), (Result(1),), "must come before"),
        ((Step(row("neg"), (), "float64"),), (Result(1),), "must come before"),
        ((Step(row("neg"), (0,), "float64"),), (Result(0),), "not all values of steps"),
        ((Step(row("neg"), (0,), "float64"),), (Result(1), Result(1)), "different"),
        ((Step(row("neg"), (0,), "float64"),), (), "different"),
    ],
)
def test_formulas_are_checked(steps, results, match):
    with pytest.raises(ValueError, match=match):
        Formula(("float64",), (), steps, results)


def test_literals_alone_make_no_step():
    with pytest.raises(ValueError, match="literals alone"):
        Formula(
            ("float64",), (Literal.of(1.0),), (Step(row("neg"), (1,), "float64"),), (Result(2),)
        )


def test_inputs_are_checked():
    with pytest.raises(DTypeError, match="expected"):
        gated()(T.dmatrix(), T.fmatrix())
    with pytest.raises(ShapeError, match="one rank"):
        gated()(T.dmatrix(), T.dvector())


def errors(op, types, values):
    """Return the error of the op, and that of the nodes it stands for."""
    inputs = [kind() for kind in types]
    found = []
    for outputs in (op(*inputs), op.unfold(inputs)):
        with pytest.raises(ValueError) as caught:
            evaluate(outputs, dict(zip(inputs, values, strict=True)))
        found.append((type(caught.value), str(caught.value)))
    return found


@pytest.mark.parametrize("shapes", [((3, 4), (3, 5)), ((3, 4), (1, 4)), ((1, 4), (3, 4))])
def test_errors_are_those_of_the_steps(shapes):
    fused, unfused = errors(gated(), [T.dmatrix, T.dmatrix], [np.ones(s) for s in shapes])
    assert fused == unfused


def test_errors_name_the_line():
    x, y = T.dvectors("x", "y")
    line = (x + y).owner.source
    step = Step(row("add"), (0, 1), "float64")
    op = Fused(Formula(("float64", "float64"), (), (step,), (Result(2),)), (line,))
    with pytest.raises(ShapeError) as caught:
        evaluate(op(x, y), {x: np.ones(1), y: np.ones(2)})
    assert "test_fused.py" in caught.value.__notes__[0]


def test_stretched_axes_by_type(rng):
    x, y = T.dmatrix("x"), T.drow("y")
    z = gated()(x, y)
    values = {x: rng.standard_normal((3, 4)), y: rng.standard_normal((1, 4))}
    for got, want in zip(evaluate(z, values), gated_by_hand(*values.values()), strict=True):
        np.testing.assert_array_equal(got, want)
    assert z[0].type.shape == (None, None)


def test_only_connected_inputs_are_connected():
    steps = (Step(row("neg"), (0,), "float64"), Step(row("exp"), (1,), "float64"))
    op = Fused(Formula(("float64", "float64"), (), steps, (Result(2), Result(3))))
    x, y = T.dvectors("x", "y")
    a, b = op(x, y)
    assert op.connection_pattern(a.owner) == [[True, False], [False, True]]
    with pytest.raises(symcomp.gradient.DisconnectedInputError):
        symcomp.grad(b.sum(), x)
    check(op, np.ones(3), np.full(3, 0.5), expected=lambda x, y: [-x, np.exp(y)])


def test_undefined_and_discrete_derivatives():
    steps = (Step(row("floor"), (0,), "float64"), Step(row("jv"), (0, 1), "float64"))
    op = Fused(Formula(("float64", "float64"), (), steps, (Result(2), Result(3))))
    x, y = T.dvectors("x", "y")
    with pytest.raises(symcomp.gradient.NullTypeGradError):
        symcomp.grad(op(x, y)[1].sum(), x)
    assert symcomp.grad(op(x, y)[0].sum(), x).eval({x: [1.5]}).item() == 0


# -- reductions


def reducing(name, axes, dtype, out=None, work=None):
    """t = -x; t reduced over the axes; t."""
    fold = Reduce(REDUCTIONS[name], axes, out, work)
    negative = "neg" if dtype != "bool" else "invert"
    out = fold.dtypes_for(dtype)[0]
    steps = (Step(row(negative), (0,), dtype), Step(fold, (1,), out))
    return Fused(Formula((dtype,), (), steps, (Result(2, axes), Result(1))))


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("axes", [(0,), (1,), (0, 1)])
@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "float16", "float32", "complex64"])
@pytest.mark.parametrize("name", ["sum", "max", "any", "prod"])
def test_reductions_in_blocks(name, dtype, axes, layout, rng):
    if name == "max" and dtype == "complex64":
        return
    x = LAYOUTS[layout](rng.integers(-3, 3, (400, 300)).astype(dtype))
    if name == "prod":
        x = np.where(rng.random(x.shape) < 1e-3, 2, 1).astype(dtype)
    op = reducing(name, axes, dtype)
    with np.errstate(all="ignore"):
        got, negative = op.perform(x)
        t = ~x if dtype == "bool" else -x
        want = op.formula.steps[1].function.perform(t)
    np.testing.assert_array_equal(negative, t)
    assert got.dtype == want.dtype and got.shape == want.shape
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("axes", [(0,), (1,), (0, 1)])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_sums_of_blocks_round_as_little(axes, dtype, rng):
    x = rng.standard_normal((3000, 100)).astype(dtype)
    got, _ = reducing("sum", axes, dtype).perform(x)
    exact = -x.astype(np.longdouble).sum(axis=axes)
    error, plain = (np.abs(z - exact).max() for z in (got, (-x).sum(axis=axes)))
    size = np.abs(exact).max() + np.sqrt(np.square(x, dtype=np.float64).sum(axis=axes).max())
    assert error <= 2 * plain + np.finfo(dtype).eps * size


def test_dtypes_of_sums(rng):
    x = rng.integers(0, 100, (300, 300)).astype(np.int8)
    (got, _) = reducing("sum", (0,), "int8", "float32", "float64").perform(x)
    assert got.dtype == np.float32
    np.testing.assert_array_equal(got, -x.sum(axis=0, dtype=np.float64))


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (0, 0)])
def test_reductions_of_nothing(shape):
    x = np.zeros(shape)
    got, _ = reducing("sum", (0,), "float64").perform(x)
    np.testing.assert_array_equal(got, np.zeros(shape[1]))
    if shape[0] == 0:
        with pytest.raises(ShapeError, match="empty along axes"):
            reducing("max", (0,), "float64").perform(x)


def centred(axes):
    """x - sum of x over axes, the sum; and the sum of the squares of both."""
    fold = Reduce(REDUCTIONS["sum"], axes)
    steps = (
        Step(fold, (0,), "float64"),
        Step(row("sub"), (0, 2), "float64"),
        Step(row("mul"), (3, 1), "float64"),
        Step(row("sqr"), (4,), "float64"),
        Step(fold, (5,), "float64"),
        Step(row("sqrt"), (6,), "float64"),
    )
    results = (Result(4), Result(2, axes), Result(7, axes))
    return Fused(Formula(("float64", "float64"), (), steps, results))


def centred_by_hand(axes):
    def compute(x, y):
        total = x.sum(axis=axes, keepdims=True)
        z = (x - total) * y
        return [z, total.squeeze(axes), np.sqrt((z * z).sum(axis=axes))]

    return compute


@pytest.mark.parametrize("axes", [(0,), (1,), (0, 1)])
def test_rows(axes, rng):
    x, y = rng.standard_normal((4, 3)), rng.standard_normal((1, 3))
    check(centred(axes), x, y, expected=centred_by_hand(axes))


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("axes", [(0,), (1,), (0, 1)])
def test_rows_in_blocks(axes, layout, rng):
    x = LAYOUTS[layout](rng.standard_normal((600, 333)))
    for y in (rng.standard_normal((1, x.shape[1])), rng.standard_normal((x.shape[0], 1)), x):
        for got, want in zip(centred(axes).perform(x, y), centred_by_hand(axes)(x, y), strict=True):
            assert got.shape == want.shape
            np.testing.assert_allclose(got, want, rtol=1e-12)


def test_rows_along_the_last_axis_have_the_same_bits(rng):
    x, y = rng.standard_normal((50, 40, 70)), rng.standard_normal((1, 40, 70))
    for got, want in zip(centred((2,)).perform(x, y), centred_by_hand((2,))(x, y), strict=True):
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize(
    ("op", "way"),
    [
        (gated(), "loop"),
        (reducing("sum", (0,), "float64"), "loop"),
        (centred((1,)), "rows"),
        (centred((0, 1)), "whole"),
    ],
)
def test_ways(op, way):
    patterns = [(False, False)] * len(op.formula.inputs)
    assert Evaluator(op.formula, patterns).way == way


# -- functions of lines


def lines(axis):
    """From x and the row b: softmax(x + b), log_softmax(x + b) * x, logsumexp(x + b), sum of all
    over the other axis."""
    steps = (
        Step(row("add"), (0, 1), "float64"),
        Step(Softmax(axis), (2,), "float64"),
        Step(LogSoftmax(axis), (2,), "float64"),
        Step(row("mul"), (4, 0), "float64"),
        Step(LogSumExp((axis,)), (2,), "float64"),
        Step(row("sub"), (5, 6), "float64"),
        Step(Reduce(REDUCTIONS["sum"], (1 - axis,)), (7,), "float64"),
    )
    results = (Result(3), Result(5), Result(6, (axis,)), Result(8, (1 - axis,)))
    return Fused(Formula(("float64", "float64"), (), steps, results))


def lines_by_hand(axis):
    def compute(x, b):
        t = x + b
        log = LogSoftmax(axis).perform(t) * x
        total = LogSumExp((axis,)).perform(t)
        last = (log - np.expand_dims(total, axis)).sum(axis=1 - axis)
        return [Softmax(axis).perform(t), log, total, last]

    return compute


@pytest.mark.parametrize("axis", [0, 1])
def test_lines(axis, rng):
    x, b = rng.standard_normal((4, 3)), rng.standard_normal((1, 3))
    check(lines(axis), x, b, expected=lines_by_hand(axis))


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("axis", [0, 1])
def test_lines_in_blocks(axis, layout, rng):
    x = LAYOUTS[layout](rng.standard_normal((800, 433)) * 9)
    b = rng.standard_normal((1, x.shape[1]))
    op = lines(axis)
    assert Evaluator(op.formula, [(False, False), (True, False)]).way == "rows"
    for got, want in zip(op.perform(x, b), lines_by_hand(axis)(x, b), strict=True):
        assert got.shape == want.shape
        np.testing.assert_allclose(got, want, rtol=1e-11)


def test_lines_with_infinities(rng):
    x, b = rng.standard_normal((5000, 9)), np.zeros((1, 9))
    x[3], x[4, 2], x[4999, 0], x[7, 1] = -np.inf, np.inf, np.nan, -np.inf
    with np.errstate(all="ignore"):
        for got, want in zip(lines(1).perform(x, b), lines_by_hand(1)(x, b), strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-11, equal_nan=True)
