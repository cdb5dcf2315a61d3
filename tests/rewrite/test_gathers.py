"""Gathers in loops: the results, errors and memory are those of an instruction of their own."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import symcomp
import symcomp.tensor as T
from symcomp.compile import Mode
from symcomp.config import config
from symcomp.ifelse import ifelse
from symcomp.ops.formulas.formula import GATHER
from symcomp.ops.formulas.fused import Fused
from symcomp.ops.linalg.contraction import SumOfProducts

APART = Mode(optimizer="fast_run").excluding("gathers")
DTYPES = ("bool", "int8", "uint16", "int64", "float16", "float32", "float64", "complex128")
POSITIONS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")


@pytest.fixture(autouse=True, scope="module", params=["kernels", "python"])
def _computed_by(request, tmp_path_factory):
    """Compute by kernels, and by NumPy."""
    kernels, folder = request.param == "kernels", tmp_path_factory.mktemp("kernels")
    with config.change_flags(kernels=kernels, compiledir=str(folder)):
        yield


def gathers_of(f):
    """Return how many tables each loop of a function reads."""
    ops = [step.node.op for step in f.program.instructions if step.node is not None]
    fused = [op.formula.steps for op in ops if isinstance(op, Fused)]
    return [n for steps in fused if (n := sum(s.function == GATHER for s in steps))]


def compiled(inputs, outputs, **options):
    """Return the function with gathers in its loops, and the one with gathers before them."""
    f = symcomp.function(inputs, outputs, **options)
    g = symcomp.function(inputs, outputs, mode=APART, **options)
    assert gathers_of(f)
    assert not gathers_of(g)
    return f, g


def same(f, g, *values):
    """Compare the results of both functions, bit by bit."""
    found, wanted = f(*values), g(*values)
    for z, w in zip(*(v if isinstance(v, list) else [v] for v in (found, wanted)), strict=True):
        assert z.dtype == w.dtype
        np.testing.assert_array_equal(z, w)
        assert z.tobytes() == w.tobytes()


def layout(x, kind):
    """Return the same numbers in memory with other strides."""
    if kind == 1:
        wide = np.zeros((2 * x.shape[0], *x.shape[1:]), x.dtype)
        wide[::2] = x
        return wide[::2]
    return x[::-1].copy()[::-1] if kind == 2 else x


def drawn(rng, dtype, n):
    x = rng.standard_normal(n) * 9
    return (np.abs(x) if dtype.startswith("u") else x).astype(dtype)


def positions_of(rng, dtype, n, count):
    low = 0 if dtype.startswith("u") else -n
    return rng.integers(low, n, count).astype(dtype)


# Compiled once for each pair of dtypes, with kernels and without.
_functions = {}


def product_of(dtype, positions):
    key = dtype, positions, config.kernels
    if key not in _functions:
        a, x = T.vector("a", dtype=dtype), T.vector("x", dtype=dtype)
        at = T.vector("at", dtype=positions)
        _functions[key] = compiled([a, at, x], a[at] * x + x)
    return _functions[key]


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(("int8", "float16", "float32", "float64", "complex128")),
    st.sampled_from(POSITIONS),
    st.integers(1, 60),
    st.sampled_from((0, 1, 2, 3, 17, 600, 1300)),
    st.tuples(*[st.integers(0, 2)] * 3),
    st.integers(0, 99),
)
def test_equal_to_gathers_before_the_loop(dtype, positions, n, count, kinds, seed):
    rng = np.random.default_rng(seed)
    given_ = drawn(rng, dtype, n), positions_of(rng, positions, n, count), drawn(rng, dtype, count)
    values = [layout(v, kind) for v, kind in zip(given_, kinds, strict=True)]
    same(*product_of(dtype, positions), *values)


@pytest.mark.parametrize("dtype", DTYPES)
def test_tables_of_every_dtype(dtype):
    a, at = T.vector("a", dtype=dtype), T.lvector("at")
    f, g = compiled([a, at], T.eq(a[at], a[0]))
    rng = np.random.default_rng(1)
    same(f, g, drawn(rng, dtype, 9), positions_of(rng, "int64", 9, 700))


@pytest.mark.parametrize("count", [1, 5, 900])
@pytest.mark.parametrize("trusted", [False, True])
def test_positions_out_of_range_are_the_same_error(count, trusted):
    a, at, x = T.dvector("a"), T.lvector("at"), T.dvector("x")
    f, g = compiled([a, at, x], a[at] * x, trust_input=trusted)
    values, places = np.arange(7.0), np.zeros(count, "int64")
    assert f(values, places, np.ones(count)).tolist() == [0.0] * count
    for wrong in (7, -8, 2**62, -(2**63)):
        places[count // 2] = wrong
        with pytest.raises(IndexError) as found:
            f(values, places, np.ones(count))
        with pytest.raises(IndexError) as wanted:
            g(values, places, np.ones(count))
        assert str(found.value) == str(wanted.value)
        places[count // 2] = -7
        assert f(values, places, np.ones(count)).tolist() == [0.0] * count


def test_an_error_names_the_line_of_the_gather():
    a, at, x = T.dvector("a"), T.lvector("at"), T.dvector("x")
    f = symcomp.function([a, at, x], a[at] * x)
    with pytest.raises(IndexError, match="index 3 is out of bounds") as problem:
        f(np.ones(2), np.array([1, 3]), np.ones(2))
    assert any("a[at] * x" in note for note in problem.value.__notes__)


def test_an_empty_table_has_no_positions():
    a, at, x = T.dvector("a"), T.lvector("at"), T.dvector("x")
    f, g = compiled([a, at, x], a[at] * x)
    same(f, g, np.zeros(0), np.zeros(0, "int64"), np.zeros(0))
    with pytest.raises(IndexError, match="out of bounds"):
        f(np.zeros(0), np.zeros(1, "int64"), np.zeros(1))


def test_lengths_that_differ_are_an_error():
    a, at, x = T.dvector("a"), T.lvector("at"), T.dvector("x")
    f, g = compiled([a, at, x], a[at] * x)
    for count in (3, 5):
        for function in (f, g):
            with pytest.raises(ValueError, match="shape"):
                function(np.ones(9), np.zeros(4, "int64"), np.ones(count))


def test_several_tables_of_other_lengths_and_strides():
    a, b, c, at, x = T.dvector("a"), T.dvector("b"), T.fvector("c"), T.ivector("at"), T.dvector("x")
    f, g = compiled([a, b, c, at, x], [a[at] + b[at] * x, (c[at] * x).sum(), at * x])
    assert sum(gathers_of(f)) == 3
    rng = np.random.default_rng(2)
    wide, at = rng.standard_normal((8, 3)), positions_of(rng, "int32", 5, 1000)
    for table in (rng.standard_normal(5), wide[:, 1], wide[::-1, 2], wide[::3, 0][:0:-1]):
        at = positions_of(rng, "int32", len(table), 1000)
        others = rng.standard_normal(len(table)), rng.standard_normal(9).astype("float32")
        same_or_close(f, g, table, *others, at, rng.standard_normal(1000))


def same_or_close(f, g, *values):
    """Compare results; sums of the same elements may be rounded otherwise."""
    for z, w in zip(f(*values), g(*values), strict=True):
        np.testing.assert_allclose(z, w, rtol=1e-13)


def test_a_table_whose_elements_are_not_aligned_to_their_size():
    a, at, x = T.dvector("a"), T.lvector("at"), T.dvector("x")
    f, g = compiled([a, at, x], a[at] * x)
    packed = np.zeros(6, [("value", "float64"), ("flag", "int8")])
    packed["value"] = np.arange(6.0)
    rng = np.random.default_rng(3)
    same(f, g, packed["value"], positions_of(rng, "int64", 6, 40), rng.standard_normal(40))
    wide = np.zeros(6, [("value", "float64"), ("flag", "int32")])
    wide["value"] = np.arange(6.0)
    same(f, g, wide["value"], positions_of(rng, "int64", 6, 40), rng.standard_normal(40))


def test_positions_in_matrices():
    a, at, x = T.dvector("a"), T.lmatrix("at"), T.dmatrix("x")
    f, g = compiled([a, at, x], [a[at] * x, T.maximum(a[at], x)])
    rng = np.random.default_rng(4)
    for shape in ((3, 5), (70, 40), (1, 9), (0, 4)):
        at, x = positions_of(rng, "int64", 6, shape), rng.standard_normal(shape)
        same(f, g, rng.standard_normal(6), at, x)
        same(f, g, rng.standard_normal(6), np.asfortranarray(at), x)
        same(f, g, rng.standard_normal(6), at, x[:, ::-1])


def test_elements_that_are_stretched_are_gathered_before():
    a, at, x = T.dvector("a"), T.lvector("at"), T.dmatrix("x")
    f = symcomp.function([a, at, x], a[at][:, None] * x)
    assert not gathers_of(f)
    rng = np.random.default_rng(5)
    a, at, x = rng.standard_normal(4), np.array([1, -1, 0]), rng.standard_normal((3, 7))
    np.testing.assert_array_equal(f(a, at, x), a[at][:, None] * x)


def test_elements_that_others_need_are_gathered_before():
    a, at, x = T.dvector("a"), T.lvector("at"), T.dvector("x")
    z = a[at]
    two_passes = z - (z * x).max()
    for outputs in ([z, z * x], [T.cumsum(z), z * x], [T.cumsum(z * x) * z], two_passes):
        f = symcomp.function([a, at, x], outputs, on_unused_input="ignore")
        assert not gathers_of(f)


def test_known_positions_are_checked():
    a, x = T.dvector("a"), T.dvector("x")
    at = T.constant(np.array([3, -1, 0, 3]))
    f, g = compiled([a, x], a[at] * x)
    same(f, g, np.arange(4.0), np.arange(4.0))
    same(f, g, np.arange(9.0)[::-2], np.arange(4.0))
    with pytest.raises(IndexError, match="index 3 is out of bounds for axis 0 with size 3"):
        f(np.arange(3.0), np.arange(4.0))


def test_a_result_is_not_written_over_a_table_or_positions():
    a, at = T.dvector("a"), T.lvector("at")
    table = T.exp(a)
    place = at * 1
    f = symcomp.function([a, at], [table[place] + table, table[place] * 2 + place])
    rng = np.random.default_rng(6)
    values, places = rng.standard_normal(800), positions_of(rng, "int64", 800, 800)
    for z, w in zip(f(values, places), (np.exp(values)[places] + np.exp(values),
                                        np.exp(values)[places] * 2 + places), strict=True):
        np.testing.assert_allclose(z, w, rtol=1e-14)


def test_arguments_that_may_be_overwritten():
    a, at = T.dvector("a"), T.lvector("at")
    f = symcomp.function(
        [symcomp.In(a, mutable=True), symcomp.In(at, mutable=True)], a[at] * 2 + a
    )
    assert gathers_of(f)
    rng = np.random.default_rng(7)
    values, places = rng.standard_normal(900), positions_of(rng, "int64", 900, 900)
    wanted = values[places] * 2 + values
    np.testing.assert_array_equal(f(values.copy(), places.copy()), wanted)


def test_updates_of_shared_variables_read_the_old_elements():
    rng = np.random.default_rng(8)
    start, places = rng.standard_normal(300), positions_of(rng, "int64", 300, 300)
    shared, at = symcomp.shared(start.copy()), T.lvector("at")
    f = symcomp.function([at], [], updates=[(shared, shared * 0.5 + shared[at])])
    assert gathers_of(f)
    f(places)
    np.testing.assert_array_equal(shared.get_value(), start * 0.5 + start[places])
    before = shared.get_value()
    with pytest.raises(IndexError):
        f(np.full(300, 300))
    np.testing.assert_array_equal(shared.get_value(), before)


def test_in_loops():
    a, at, x = T.dvector("a"), T.lvector("at"), T.dvector("x")
    z = symcomp.scan(lambda s: s * 0.5 + a[at], outputs_info=[x], n_steps=5, return_updates=False)
    f = symcomp.function([a, at, x], z)
    g = symcomp.function([a, at, x], z, mode=APART)
    rng = np.random.default_rng(9)
    same(f, g, rng.standard_normal(6), positions_of(rng, "int64", 6, 50), rng.standard_normal(50))
    with pytest.raises(IndexError):
        f(np.ones(6), np.full(50, 6), np.ones(50))


def test_branches_check_the_positions_that_they_read():
    a, at, x = T.dvector("a"), T.lvector("at"), T.dvector("x")
    f = symcomp.function([a, at, x], ifelse(T.gt(x[0], 0), a[at] * x, x))
    assert gathers_of(f)
    wrong = np.array([9, 0])
    assert f(np.ones(2), wrong, np.array([-1.0, 1.0])).tolist() == [-1.0, 1.0]
    with pytest.raises(IndexError):
        f(np.ones(2), wrong, np.ones(2))


def test_reductions_and_gradients():
    a, at, x = T.dvector("a"), T.lvector("at"), T.dvector("x")
    loss = ((a[at] - x) ** 2).sum()
    f, g = compiled([a, at, x], [loss, *symcomp.grad(loss, [a, x])])
    rng = np.random.default_rng(10)
    for count in (0, 1, 31, 500, 3000):
        at = positions_of(rng, "int64", 7, count)
        same_or_close(f, g, rng.standard_normal(7), at, rng.standard_normal(count))


@pytest.mark.parametrize("dtype", ["int32", "float16", "float32", "float64"])
def test_sums_of_products(dtype):
    a, at, x = T.vector("a", dtype=dtype), T.lvector("at"), T.vector("x", dtype=dtype)
    f, g = compiled([a, at, x], (a[at] * x).sum())
    rounding = {"float16": 1e-3, "float32": 1e-6}.get(dtype, 1e-13)
    rng = np.random.default_rng(13)
    for count in (0, 1, 40, 900):
        values = drawn(rng, dtype, 7), positions_of(rng, "int64", 7, count)
        z, w = (h(*values, drawn(np.random.default_rng(1), dtype, count)) for h in (f, g))
        scale = 1 + np.abs(values[0]).max() * count
        np.testing.assert_allclose(z, w, rtol=rounding, atol=rounding * float(scale))


def test_a_sum_of_products_with_itself():
    a, at = T.dvector("a"), T.lvector("at")
    z = a[at]
    f = symcomp.function([a, at], SumOfProducts((0,))(z, z))
    values, places = np.arange(5.0), np.array([1, -1, 2, 1])
    assert f(values, places) == (values[places] ** 2).sum()


def test_threads_change_no_bits():
    a, at, x = T.dvector("a"), T.lvector("at"), T.dvector("x")
    outputs = [T.tanh(a[at]) * x, T.exp(a[at] * x).sum()]
    f = symcomp.function([a, at, x], outputs)
    with config.change_flags(openmp=True, openmp_threads=2, openmp_elemwise_minsize=1000):
        g = symcomp.function([a, at, x], outputs)
    assert gathers_of(f)
    rng = np.random.default_rng(11)
    n = 300_000
    same(f, g, rng.standard_normal(40), positions_of(rng, "int64", 40, n), rng.standard_normal(n))


def test_without_kernels():
    a, at, x = T.dvector("a"), T.lvector("at"), T.dvector("x")
    f, g = compiled([a, at, x], [a[at] * x, (a[at] + x).sum()])
    with config.change_flags(linker="py"):
        h = symcomp.function([a, at, x], [a[at] * x, (a[at] + x).sum()])
    rng = np.random.default_rng(12)
    at = positions_of(rng, "int64", 5, 64)
    same_or_close(h, g, rng.standard_normal(5), at, rng.standard_normal(64))
    with pytest.raises(IndexError, match="out of bounds"):
        h(np.ones(2), np.full(64, 2), np.ones(64))


def test_plans_check_positions_once_for_tables_of_one_length():
    a, b, c, at, x = (*(T.dvector() for _ in "abc"), T.lvector(), T.dvector())
    f = symcomp.function([a, b, c, at, x], (a[at] + b[at] * x) * c[at])
    values = np.ones(3), np.ones(3), np.ones(5), np.zeros(20, "int64"), np.ones(20)
    f(*values)
    assert f(*values).tolist() == [2.0] * 20
    calls = [line.split()[1].partition("(")[0] for line in f.plan().splitlines()[1:]]
    native, python = ["positions", "positions", "kernel"], ["python", "guard"]
    assert calls == (native if config.kernels else python)
