"""Scatters in loops: the results, errors and memory are those of an instruction of their own."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import symcomp
import symcomp.tensor as T
from symcomp.compile import Mode
from symcomp.config import config
from symcomp.ifelse import ifelse
from symcomp.ops.formulas.fused import Fused
from symcomp.tests.rewrite.test_gathers import POSITIONS, drawn, layout, positions_of, same

APART = Mode(optimizer="fast_run").excluding("scatters")


@pytest.fixture(autouse=True, scope="module", params=["kernels", "python"])
def _computed_by(request, tmp_path_factory):
    """Compute by kernels, and by NumPy."""
    kernels, folder = request.param == "kernels", tmp_path_factory.mktemp("kernels")
    with config.change_flags(kernels=kernels, compiledir=str(folder)):
        yield


def scatters_of(f):
    """Return how many tables each loop of a function adds to."""
    ops = [step.node.op for step in f.program.instructions if step.node is not None]
    return [len(op.formula.scatters) for op in ops if isinstance(op, Fused) and op.formula.scatters]


def compiled(inputs, outputs, **options):
    """Return the function whose loops add to tables, and the one that adds after them."""
    f = symcomp.function(inputs, outputs, **options)
    g = symcomp.function(inputs, outputs, mode=APART, **options)
    assert scatters_of(f)
    assert not scatters_of(g)
    return f, g


def add_at(table, at, values):
    return T.inc_subtensor(table[at], values)


# Compiled once for each pair of dtypes, with kernels and without.
_functions = {}


def squares_of(dtype, positions):
    key = dtype, positions, config.kernels
    if key not in _functions:
        a, x = T.vector("a", dtype=dtype), T.vector("x", dtype=dtype)
        at = T.vector("at", dtype=positions)
        _functions[key] = compiled([a, at, x], add_at(a + a, at, x * x + a[at]))
    return _functions[key]


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(("int8", "float16", "float32", "float64", "complex128")),
    st.sampled_from(POSITIONS),
    st.integers(1, 60),
    st.sampled_from((0, 1, 2, 3, 17, 600, 1300)),
    st.tuples(*[st.integers(0, 2)] * 3),
    st.booleans(),
    st.integers(0, 99),
)
def test_equal_to_scatters_after_the_loop(dtype, positions, n, count, kinds, ordered, seed):
    rng = np.random.default_rng(seed)
    places = positions_of(rng, positions, n, count)
    places = np.sort(places) if ordered else places
    given_ = drawn(rng, dtype, n), places, drawn(rng, dtype, count)
    values = [layout(v, kind) for v, kind in zip(given_, kinds, strict=True)]
    f, g = squares_of(dtype, positions)
    for _ in range(2):  # by a plan that is made, and again
        same(f, g, *values)


@pytest.mark.parametrize(
    "dtype", ["bool", "int16", "uint8", "uint64", "int64", "float32", "complex64"]
)
def test_tables_of_every_dtype(dtype):
    a, x, at = T.vector("a", dtype=dtype), T.vector("x", dtype=dtype), T.lvector("at")
    table = T.eq(a, 1) if dtype == "bool" else a * a
    f, g = compiled([a, at, x], add_at(table, at, T.eq(x, 1) if dtype == "bool" else x * x + x))
    rng = np.random.default_rng(1)
    for count in (1, 5, 900):
        same(f, g, drawn(rng, dtype, 9), positions_of(rng, "int64", 9, count),
             drawn(rng, dtype, count))


def test_positions_are_added_in_order():
    at, x = T.lvector("at"), T.dvector("x")
    f, _ = compiled([at, x], add_at(T.zeros(2), at, x * 1e16))
    # In another order, or from the other end, the ones would not be lost.
    z = f(np.array([1, 1, 1, 0]), np.array([1e-16, 1, -1, 2]))
    assert z.tolist() == [2e16, (1 + 1e16) - 1e16]


@pytest.mark.parametrize("count", [1, 5, 900])
def test_errors_are_those_of_the_scatter(count):
    a, at, x = T.dvector("a"), T.lvector("at"), T.dvector("x")
    counter = symcomp.shared(0.0)
    updates = [(counter, counter + x.sum())]
    f, g = compiled([a, at, x], add_at(a * 2, at, x * x), updates=updates)
    places, values = np.arange(count) % 3, np.ones(count)
    f(np.ones(3), places, values)
    before = counter.get_value()
    for wrong in (3, -4):
        places[-1] = wrong
        messages = []
        for h in (f, g):
            given_ = np.ones(3), places.copy(), values.copy()
            with pytest.raises(IndexError, match="out of bounds for axis 0 with size 3") as problem:
                h(*given_)
            messages.append(problem.value.args[0].split("\n")[0])
            assert given_[0].tolist() == [1.0] * 3
        assert messages[0] == messages[1]
    assert counter.get_value() == before
    places[-1] = -3
    same(f, g, np.ones(3), places, values)
    for lengths in ((count, count + 1), (count + 1, count), (1, 2), (2, 1)):
        messages = []
        for h in (f, g):
            with pytest.raises(ValueError) as problem:
                h(np.ones(3), np.zeros(lengths[0], int), np.ones(lengths[1]))
            messages.append(problem.value.args[0].split("\n")[0])
        assert messages[0] == messages[1]


def test_models_with_groups():
    a, b, s, group, x = T.dvector("a"), T.dvector("b"), T.dscalar("s"), T.lvector(), T.dvector()
    loss = ((x - (a[group] + b[group] * x)) ** 2 / s).sum()
    f, g = compiled([a, b, s, group, x], [loss, *symcomp.grad(loss, [a, b, s])])
    assert scatters_of(f) == [2]
    rng = np.random.default_rng(2)
    for count in (0, 1, 7, 64, 919, 5000):
        values = rng.standard_normal(8), rng.standard_normal(8), np.array(1.3)
        places, given_ = np.sort(rng.integers(0, 8, count)), rng.standard_normal(count)
        same(f, g, *values, places, given_)
        # Arrays with gaps are copied in blocks, whose sums are rounded elsewhere.
        for z, w in zip(f(*values, places[::-1], layout(given_, 1)),
                        g(*values, places[::-1], layout(given_, 1)), strict=True):
            np.testing.assert_allclose(z, w, rtol=1e-13)
    second = symcomp.grad(symcomp.grad(loss, a)[0] + symcomp.grad(loss, b).sum(), [a, b])
    same(*compiled([a, b, s, group, x], second, on_unused_input="ignore"), *values, places, given_)


def test_a_value_for_several_tables():
    b, i, j, x = T.fvector("b"), T.lvector("i"), T.ivector("j"), T.fvector("x")
    y = T.exp(x)
    z, w = add_at(T.zeros_like(b), i, y), add_at(T.sqr(b), j, y)
    f, g = compiled([b, i, j, x], [z, w, x + 1])
    assert scatters_of(f) == [2]
    rng = np.random.default_rng(3)
    same(f, g, drawn(rng, "float32", 5), positions_of(rng, "int64", 5, 700),
         positions_of(rng, "int32", 5, 700), drawn(rng, "float32", 700) / 9)


def test_one_table_after_the_other():
    x, i, j = T.dvector("x"), T.lvector("i"), T.lvector("j")
    z = add_at(add_at(T.zeros(4), i, x * 2), j, x * x)
    f, g = compiled([x, i, j], z)
    assert scatters_of(f) == [1]  # the second table is a result of the same loop
    rng = np.random.default_rng(4)
    same(f, g, rng.standard_normal(90), positions_of(rng, "int64", 4, 90),
         positions_of(rng, "int64", 4, 90))


def test_a_loop_adds_to_the_table_of_an_earlier_loop():
    x, i, j = T.dvector("x"), T.lvector("i"), T.lvector("j")
    y = x * x
    first = add_at(T.zeros(4), i, y * T.sin(x))
    second = add_at(first, j, T.exp(x) * T.sum(y))
    f, g = compiled([x, i, j], second)
    assert scatters_of(f) == [1, 1]
    rng = np.random.default_rng(5)
    same(f, g, rng.standard_normal(90), positions_of(rng, "int64", 4, 90),
         positions_of(rng, "int64", 4, 90))


def test_positions_that_the_loop_computes():
    x, i = T.dvector("x"), T.lvector("i")
    places = i + i
    f = symcomp.function([x, i], add_at(T.zeros(9), places, x * places))
    assert f(np.array([1.0, 2, 3]), np.array([4, 1, 1])).tolist() == [0, 0, 10, 0, 0, 0, 0, 0, 8]


def test_tables_that_are_needed_later_are_kept():
    a, at, x = T.dvector("a"), T.lvector("at"), T.dvector("x")
    table = T.cumsum(a)
    f, g = compiled([a, at, x], [table, add_at(table, at, x * x), table * 3])
    rng = np.random.default_rng(5)
    same(f, g, rng.standard_normal(6), positions_of(rng, "int64", 6, 40), rng.standard_normal(40))


def test_tables_that_the_loop_reads_as_elements():
    a, at = T.dvector("a"), T.lvector("at")
    table = T.cumsum(a)
    shared = [table[::-1] * 2, table * a, table[at] * a, (table * 2 + T.cast(at, "float64"))]
    rng = np.random.default_rng(6)
    for values in shared:
        f, g = compiled([a, at], add_at(table, at, values))
        for n in (5, 700):
            same(f, g, rng.standard_normal(n), positions_of(rng, "int64", n, n))
    # Positions that lie in the memory of the table.
    places = T.sort(at)
    f, g = compiled([at], add_at(places, places[::-1], places * 2))
    same(f, g, positions_of(rng, "int64", 5, 600))


def test_values_that_others_need_are_stored():
    a, at, x = T.dvector("a"), T.lvector("at"), T.dvector("x")
    y = x * x
    z = add_at(T.zeros_like(a), at, y)
    for outputs in ([z, y], [z, T.cumsum(y)]):
        assert not scatters_of(symcomp.function([a, at, x], outputs))


def test_what_else_stays_apart():
    a, at, x, m = T.dvector("a"), T.lvector("at"), T.dvector("x"), T.dmatrix("m")
    zeros, s = T.zeros_like(a), T.dscalar("s")
    others = [
        add_at(zeros, at, s * s), add_at(T.zeros_like(m), at, T.exp(m)), add_at(zeros, at, x),
        T.set_subtensor(zeros[at], x * x), add_at(zeros, at[:, None], (x * x)[:, None]),
    ]  # fmt: skip
    for z in others:
        f = symcomp.function([a, at, x, m, s], z, on_unused_input="ignore")
        assert not scatters_of(f)


def test_updates_in_place_stay_so():
    rng = np.random.default_rng(7)
    start, places = rng.standard_normal(50), rng.integers(0, 50, 90)
    values = rng.standard_normal(90)
    state, at, x = symcomp.shared(start.copy()), T.lvector("at"), T.dvector("x")
    f = symcomp.function([at, x], [], updates=[(state, add_at(state, at, x * x))])
    assert not scatters_of(f)
    f(places, values)
    wanted = start.copy()
    np.add.at(wanted, places, values * values)
    np.testing.assert_array_equal(state.get_value(), wanted)
    with pytest.raises(IndexError):
        f(np.full(90, 50), values)
    np.testing.assert_array_equal(state.get_value(), wanted)


def test_known_positions_are_checked():
    a, x = T.dvector("a"), T.dvector("x")
    at = T.constant(np.array([3, -1, 0, 3]))
    f, g = compiled([a, x], add_at(a * 2, at, x * x))
    same(f, g, np.arange(4.0), np.arange(4.0))
    same(f, g, np.arange(9.0)[::-2], np.arange(4.0))
    with pytest.raises(IndexError, match="index 3 is out of bounds for axis 0 with size 3"):
        f(np.arange(3.0), np.arange(4.0))


def test_in_loops():
    at, x = T.lvector("at"), T.dvector("x")

    def step(s):
        return add_at(T.zeros_like(s), at, T.sqr(s[at]) + x) * 0.1

    z = symcomp.scan(step, outputs_info=[T.zeros(7)], n_steps=5, return_updates=False)
    f, g = symcomp.function([at, x], z), symcomp.function([at, x], z, mode=APART)
    rng = np.random.default_rng(9)
    same(f, g, positions_of(rng, "int64", 7, 50), rng.standard_normal(50))
    with pytest.raises(IndexError):
        f(np.full(50, 7), np.ones(50))


def test_branches_check_the_positions_that_they_need():
    a, at, x = T.dvector("a"), T.lvector("at"), T.dvector("x")
    y = T.exp(x)
    z = add_at(T.zeros_like(a), at, y * y)
    f = symcomp.function([a, at, x], [ifelse(T.gt(x[0], 0), z, a), y.sum()])
    wrong = np.array([9, 0])
    assert f(np.ones(2), wrong, np.array([-1.0, 1.0]))[0].tolist() == [1.0, 1.0]
    with pytest.raises(IndexError):
        f(np.ones(2), wrong, np.ones(2))


def test_threads_change_no_bits():
    a, at, x = T.dvector("a"), T.lvector("at"), T.dvector("x")
    outputs = [add_at(T.zeros_like(a), at, T.tanh(x)), T.exp(x).sum()]
    f = symcomp.function([a, at, x], outputs)
    with config.change_flags(openmp=True, openmp_threads=2, openmp_elemwise_minsize=1000):
        g = symcomp.function([a, at, x], outputs)
    assert scatters_of(g)
    rng, n = np.random.default_rng(11), 300_000
    same(f, g, rng.standard_normal(40), positions_of(rng, "int64", 40, n), rng.standard_normal(n))


def test_plans_write_into_new_tables_in_place():
    a, at, x = T.dvector("a"), T.lvector("at"), T.dvector("x")
    zeros = T.zeros_like(a)
    f = symcomp.function([a, at, x], [add_at(zeros, at, x * x), add_at(a * a, at, x + a[at])])
    values = np.ones(3), np.zeros(20, "int64"), np.ones(20)
    for _ in range(2):
        z, w = f(*values)
        assert (z.tolist(), w.tolist()) == ([20.0, 0, 0], [41.0, 1, 1])
    calls = [line.split()[1].partition("(")[0] for line in f.plan().splitlines()[1:]]
    if config.kernels:
        # Zeros are a copy. The second loop also reads a table, whose length is the same.
        assert calls == ["copy", "positions", "kernel", "kernel", "positions", "kernel"]
    with config.change_flags(linker="py"):
        h = symcomp.function([a, at, x], [add_at(zeros, at, x * x), add_at(a * a, at, x + a[at])])
    same(f, h, *values)
