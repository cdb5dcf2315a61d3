"""Random programs: the native machine with kernels gives what the Python machine gives, bit for bit
where every number is rounded in a fixed order, and else is as near to the truth."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import symcomp
import symcomp.tensor as T
from symcomp.config import config
from symcomp.tests.cvm.side_by_side import threads_side_by_side
from symcomp.tests.cvm.test_layouts import LAYOUTS

# The first call with each layout makes a plan, and later ones repeat it.
CALLS = 5
SHAPES = ((4, 6), (1, 6), (4, 1), (0, 6), (37, 64))
# Ops that round every number once, or not at all.
EXACT = {
    "add": lambda a, b, i: a + b,
    "mul": lambda a, b, i: a * b,
    "less": lambda a, b, i: T.cast(a < b, a.dtype),
    "choose": lambda a, b, i: T.switch(a > b, a, b),
    "negate": lambda a, b, i: -a,
    "flip": lambda a, b, i: a[::-1, ::-1],
    "shift": lambda a, b, i: T.set_subtensor(a[1:], b[:-1]),
    "raise": lambda a, b, i: T.inc_subtensor(a[:, ::2], b[:, ::2]),
    "raise rows": lambda a, b, i: T.inc_subtensor(a[i], b[i]),
    "set columns": lambda a, b, i: T.set_subtensor(a[:, i], b[:, i + 1]),
    "rows": lambda a, b, i: T.concatenate([a[i], b], 0)[: a.shape[0]],
    "halves": lambda a, b, i: T.join(1, a[:, 3:], b[:, :3]),
    "row": lambda a, b, i: a + b[i[0] : i[0] + 1],
    "running": lambda a, b, i: T.cumsum(a, axis=1),
    "sort": lambda a, b, i: T.sort(a + 0.0 * b, axis=0),
    "largest": lambda a, b, i: a * T.cast(T.eq(T.argmax(b, axis=1), 0), a.dtype).dimshuffle(0, "x"),
    "turn": lambda a, b, i: T.reshape(a.T, a.shape) if a.dtype == "int64" else a,
    "extremes": lambda a, b, i: T.maximum(a, b.max(axis=1, keepdims=True)),
    "sum of whole": lambda a, b, i: a + T.cast(T.isnan(b).sum(axis=1, keepdims=True), a.dtype),
}
ROUNDED = {
    "exp": lambda a, b, i: T.exp(-T.sqr(a)),
    "tanh": lambda a, b, i: T.tanh(a * b),
    "mean": lambda a, b, i: a - b.mean(axis=1, keepdims=True),
    "sum": lambda a, b, i: a + b.sum(),
    "softmax": lambda a, b, i: T.nnet.softmax(a),
    "product": lambda a, b, i: T.dot(a, T.dot(b.T, b)) / 64,
    "norm": lambda a, b, i: a / T.sqrt(T.sqr(b).sum(axis=1, keepdims=True) + 1),
    "var": lambda a, b, i: a * T.var(b, axis=1, keepdims=True),
}


@st.composite
def programs(draw, ops):
    """Draw a program: an op and two earlier values for each step, and the results."""
    steps = []
    for k in range(draw(st.integers(1, 9))):
        earlier = st.integers(max(0, k - 3), k + 1)
        steps.append((draw(st.sampled_from(sorted(ops))), draw(earlier), draw(earlier)))
    shown = draw(st.sets(st.integers(0, len(steps) - 1), max_size=2))
    return steps, [(k, draw(st.booleans())) for k in sorted({*shown, len(steps) - 1})]


def compiled(program, ops, linker, dtype, threads=1):
    """Return the program for a machine and a number of threads."""
    steps, shown = program
    x, y, i = T.tensor(dtype, shape=(None, None)), T.tensor(dtype, shape=(None, None)), T.lvector()
    values = [x, y]
    for name, a, b in steps:
        values.append(T.cast(ops[name](values[a], values[b], i), dtype))
    outputs = [values[2 + k].T if turned else values[2 + k] for k, turned in shown]
    with threads_side_by_side(threads):
        return symcomp.function(
            [x, y, i], outputs, mode=symcomp.Mode(linker), on_unused_input="ignore"
        )


def run(functions, values):
    """Return the outputs of each, or the error."""
    found = []
    for function in functions:
        try:
            found.append(function(*values))
        except (ValueError, IndexError) as problem:
            found.append(type(problem))
    return found


def check(program, ops, kinds, compare):
    """Compare what machines give for arrays of each shape, in two layouts."""
    rng = np.random.default_rng(0)
    with config.change_flags(kernels=True):
        functions = [compiled(program, ops, *kind) for kind in kinds]
        for shape in SHAPES:
            x, y = (3 * rng.normal(size=(2, *shape))).astype(kinds[0][1])
            i = rng.integers(-1, 2, 3) if 0 not in shape else np.array([], "int64")
            for values in ([x, y, i], [np.asfortranarray(x), y[::-1, ::-1], i]):
                _, python, *exact = run(functions, values)
                for _ in range(CALLS):
                    (native,) = run(functions[:1], values)
                    if isinstance(python, type):
                        assert native is python
                        break
                    for got, want, *true in zip(native, python, *exact, strict=True):
                        assert got.dtype == want.dtype and got.shape == want.shape
                        compare(got, want, *true)


# Ops that need ordered numbers: not complex or bool.
ORDERED = {"less", "choose", "sort", "largest", "extremes"}
SIGNED = {"negate", "running", "sum of whole", "raise", "raise rows"}


def same_bits(got, want):
    """Compare also the signs of zeros, but not of NaN."""
    np.testing.assert_array_equal(got, want)
    for part in (np.real, np.imag) if got.dtype.kind in "fc" else ():
        there = ~np.isnan(part(want))
        np.testing.assert_array_equal(*(np.signbit(part(v))[there] for v in (got, want)))


@pytest.mark.parametrize(
    "dtype", ["float64", "float32", "float16", "int64", "int16", "uint8", "complex64", "bool"]
)
def test_bit_for_bit(dtype):
    without = ORDERED if dtype == "complex64" else SIGNED | ORDERED if dtype == "bool" else set()
    ops = {name: op for name, op in EXACT.items() if name not in without}

    @settings(max_examples=8, deadline=None)
    @given(programs(ops))
    def run_one(program):
        # Either of two zeros with different signs is the largest.
        either = any(name == "extremes" for name, _, _ in program[0])
        compare = np.testing.assert_array_equal if either else same_bits
        check(program, ops, [("cvm", dtype), ("vm", dtype)], compare)

    run_one()


def test_as_near_to_the_truth():
    """Where rounding is not the same, the native machine loses two units in the last place of the
    largest number more than twice what NumPy loses, which tells how much the program takes."""
    # Ops that amplify rounding differences, which the steps leave out.
    choices = {"sort", "largest", "less", "choose", "turn"}
    ops = {name: op for name, op in {**EXACT, **ROUNDED}.items() if name not in choices}

    def compare(got, want, true):
        finite = np.isfinite(want)
        np.testing.assert_array_equal(np.isfinite(got), finite)
        unit = np.finfo("float32").eps * np.abs(true).max(initial=1, where=finite)
        lost, by_numpy = (np.abs(v - true).max(initial=0, where=finite) for v in (got, want))
        assert lost <= 2 * by_numpy + 2 * unit

    @settings(max_examples=16, deadline=None)
    @given(programs(ops))
    def run_one(program):
        kinds = [("cvm", "float32"), ("vm", "float32"), ("vm", "float64")]
        check(program, ops, kinds, compare)

    run_one()


CALL = st.tuples(
    st.sampled_from([shape for shape in SHAPES if 0 not in shape]),
    st.sampled_from(sorted(LAYOUTS)),
    st.sampled_from(sorted(LAYOUTS)),
)


@pytest.mark.parametrize("threads", [1, 3])
def test_layouts_in_any_order(threads):
    """Random programs, called with arrays of random layouts in random order; the caller holds all
    results until the end. Several threads run independent calls side by side.
    """
    ops = {name: op for name, op in EXACT.items() if name != "extremes"}

    @settings(max_examples=12, deadline=None)
    @given(programs(ops), st.lists(CALL, min_size=4, max_size=10))
    def run_one(program, calls):
        rng = np.random.default_rng(0)
        held = []
        with config.change_flags(kernels=True), threads_side_by_side(threads):
            native = compiled(program, ops, "cvm", "float64", threads)
            python = compiled(program, ops, "vm", "float64")
            for shape, *names in calls * 2:
                x, y = (LAYOUTS[name](3 * rng.normal(size=shape)) for name in names)
                if x.shape != y.shape:
                    y = rng.normal(size=x.shape)
                i = rng.integers(-1, 2, 3) if x.size else np.array([], "int64")
                got, want = run([native, python], [x, y, i])
                if isinstance(want, type):
                    assert got is want
                    continue
                held.append((got, [z.copy() for z in want]))
        for got, want in held:
            for z, true in zip(got, want, strict=True):
                assert z.dtype == true.dtype
                same_bits(z, true)

    run_one()
