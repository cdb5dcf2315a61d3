"""Random formulas: kernels against the same formulas computed with NumPy, to the last bit."""

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from symcomp.codegen.kernel import kernel_of
from symcomp.errors import DTypeError
from symcomp.ops.elementwise.elemwise import ROWS
from symcomp.ops.formulas.formula import Formula, Result, Step
from symcomp.ops.formulas.fused import Fused
from symcomp.ops.reductions.reduce import REDUCTIONS, Reduce
from symcomp.tests.codegen.running import compute, literal, patterns_of

DTYPES = ("bool", "int8", "int32", "uint8", "uint64", "float16", "float32", "float64")
EXACT = (
    "add", "mul", "sub", "neg", "maximum", "minimum", "switch", "lt", "ge", "eq", "sqr", "abs",
    "and_", "xor", "int_div", "mod", "second", "logical_or", "isnan",
)  # fmt: skip


@st.composite
def formulas(draw):
    """Draw a formula of a few steps that NumPy computes in the same order, and its inputs."""
    rank = draw(st.integers(1, 3))
    full = draw(st.tuples(*[st.integers(0, 40)] * rank))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    values = []
    for number in range(draw(st.integers(1, 3))):
        ones = [number and draw(st.booleans()) for _ in full]
        shape = [1 if one else n for one, n in zip(ones, full, strict=True)]
        array = (rng.standard_normal([2 * n for n in shape]) * 9).astype(
            draw(st.sampled_from(DTYPES))
        )
        index = tuple(draw(st.sampled_from([slice(n), slice(0, 2 * n, 2), slice(n - 1, None, -1)]))
                      if n else slice(0) for n in shape)  # fmt: skip
        values.append(
            array[index].transpose() if draw(st.booleans()) and rank < 2 else array[index]
        )
    literals = (literal(draw(st.integers(0, 5)), draw(st.sampled_from(DTYPES))),)
    dtypes = [*(v.dtype.name for v in values), literals[0].dtype]
    steps = []
    for _ in range(draw(st.integers(1, 6))):
        row = ROWS[draw(st.sampled_from(EXACT))]()
        arguments = draw(st.tuples(*[st.integers(0, len(dtypes) - 1)] * (row.arity or 2)))
        if all(a == len(values) for a in arguments):
            continue  # of the literal alone
        try:
            dtype = row.dtype(*(dtypes[a] for a in arguments))
        except (DTypeError, TypeError):
            continue
        steps.append(Step(row, arguments, dtype))
        dtypes.append(dtype)
    first = len(values) + 1
    if not steps:
        steps = [Step(ROWS["eq"](), (0, 0), "bool")]
    count = len(steps)
    shown = draw(st.sets(st.integers(first, first + count - 1), min_size=1))
    results = tuple(Result(v) for v in sorted(shown))
    return Formula(tuple(dtypes[: len(values)]), literals, tuple(steps), results), values


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(formulas())
def test_elementwise_formulas(case):
    formula, values = case
    if kernel_of(formula, patterns_of(values)) is None:
        return
    with np.errstate(all="ignore"):
        want = Fused(formula).perform(*values)
    for result, got, expected in zip(formula.results, compute(formula, *values), want, strict=True):
        np.testing.assert_array_equal(got, np.broadcast_to(expected, got.shape), str(result))


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    st.lists(st.integers(1, 70), min_size=1, max_size=3).flatmap(
        lambda shape: st.tuples(
            st.just(tuple(shape)),
            st.sets(st.integers(0, len(shape) - 1), min_size=1),
            st.permutations(range(len(shape))),
        )
    ),
    st.sampled_from(["sum", "max", "prod"]),
    st.integers(0, 2**32),
)
def test_reductions_of_integers(shaped, name, seed):
    shape, axes, order = shaped
    axes = tuple(sorted(axes))
    x = np.random.default_rng(seed).integers(-9, 9, [shape[a] for a in order])
    x = x.transpose(np.argsort(order))
    steps = (
        Step(Reduce(REDUCTIONS[name], axes), (0,), "int64"),
        Step(ROWS["sub"](), (0, 1), "int64"),
        Step(Reduce(REDUCTIONS["min"], axes), (2,), "int64"),
        Step(ROWS["mul"](), (3, 1), "int64"),
    )
    formula = Formula(("int64",), (), steps, (Result(2), Result(4, axes)))
    for got, want in zip(compute(formula, x), Fused(formula).perform(x), strict=True):
        np.testing.assert_array_equal(got, want)
