"""Kernels of formulas on the emulator: dtypes, layouts, shapes; reductions and lines."""

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import symcomp
import symcomp.tensor as T
from symcomp.core.tensor import TensorType
from symcomp.errors import ShapeError
from symcomp.gpu.array import DeviceArray, to_device
from symcomp.gpu.driver.emulator import ORDERS, Emulator
from symcomp.tests.gpu.running import DEVICE, assert_close, check, ops_on_host

REALS = (
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16",
    "float32", "float64",
)  # fmt: skip
FLOATS = ("float16", "float32", "float64")


def numbers(dtype: str, shape: tuple[int, ...], seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    if dtype == "bool":
        return rng.random(shape) < 0.5
    if np.dtype(dtype).kind in "iu":
        return rng.integers(0, 100, shape).astype(dtype)
    return rng.standard_normal(shape).astype(dtype)


def tensor(dtype: str, shape: tuple[int | None, ...], name: str = "x") -> T.TensorVariable:
    return TensorType(dtype, shape)(name)


@pytest.mark.parametrize("dtype", FLOATS)
def test_functions_of_elements(emu: Emulator, dtype: str) -> None:
    x, y = tensor(dtype, (None, None)), tensor(dtype, (None, None), "y")
    z = [T.tanh(x) * y + T.exp(-(x**2)), T.switch(x > y, x, y / 3), T.log1p(T.sqr(y))]
    z += [T.sin(x), T.nnet.sigmoid(y), T.nnet.softplus(x), T.erf(x), T.floor(x), T.clip(y, -1, 1)]
    check([x, y], z, [numbers(dtype, (5, 7)), numbers(dtype, (5, 7), 1)], 4)


@pytest.mark.parametrize("dtype", REALS)
def test_each_dtype(emu: Emulator, dtype: str) -> None:
    x, w = tensor(dtype, (None,)), T.fvector("w")
    z = [T.cast(x, "float32") * w, T.cast(w, dtype), T.cast(T.cast(x, dtype), "float64") + w]
    if dtype != "bool":
        z.append(T.maximum(x, x // 2 + 1) * w)
    values = [numbers(dtype, (300,)), np.abs(numbers("float32", (300,), 1)) * 50]
    check([x, w], z, values, 0 if dtype != "float16" else 2)


def test_broadcasting_and_many_outputs(emu: Emulator) -> None:
    x, row = T.ftensor3("x"), tensor("float32", (1, None, 1), "row")
    column, one = tensor("float32", (None, 1, 1), "column"), T.fscalar("one")
    t = T.exp(x * row)
    z = [t + column, t * one, row * one, (t - column) * 2]
    values = [numbers("float32", s, i) for i, s in enumerate([(4, 3, 5), (1, 3, 1), (4, 1, 1), ()])]
    check([x, row, column, one], z, values, 4)


@pytest.mark.parametrize("shape", [(0,), (1,), (255,), (256,), (257,), (100_000,)])
def test_lengths(emu: Emulator, shape: tuple[int, ...]) -> None:
    x = T.fvector("x")
    check([x], [x * 2 + 1, T.exp(x)], [numbers("float32", shape)], 4, orders=[0])


layouts = st.tuples(
    st.lists(st.integers(0, 5), min_size=3, max_size=3), st.permutations(range(3)),
    st.lists(st.sampled_from([1, -1, 2]), min_size=3, max_size=3), st.booleans(),
)  # fmt: skip


def laid_out(shape, order, steps, stretched, seed=0):
    """Return an array of this shape whose axes lie in another order, apart, and backwards."""
    base = numbers("float32", tuple(shape[a] * abs(steps[a]) for a in order), seed)
    x = base.transpose(np.argsort(order))[tuple(slice(None, None, s) for s in steps)]
    return np.broadcast_to(x[:1], x.shape) if stretched and shape[0] else x


@settings(deadline=None, max_examples=25)
@given(layouts, layouts)
def test_strides(one, other) -> None:
    shape = one[0]
    x, y = laid_out(*one), laid_out(shape, *other[1:], 1)
    u, v = T.ftensor3("u"), T.ftensor3("v")
    t = u - v * 2
    check([u, v], [t, t.sum(axis=1), t.sum(axis=(0, 2))], [x, y], 8, orders=[0])


def test_views_are_passed_as_they_are(emu: Emulator) -> None:
    x = T.fmatrix("x")
    part = T.tanh(x)[1:, ::-2].T
    outputs = [part * 2, part.sum(axis=0), part, T.tanh(x)]
    check([x], outputs, [numbers("float32", (6, 9))], 4)


@pytest.mark.parametrize(("dtype", "count"), [("float32", 33), ("float32", 150), ("complex64", 40)])
def test_formulas_of_many_arrays(emu: Emulator, dtype: str, count: int) -> None:
    xs = [T.matrix(f"x{i}", dtype=dtype) for i in range(count)]
    values = [numbers("float32", (3, 5 + i))[:, i:].astype(dtype) for i in range(count)]
    check(xs, [T.add(*xs), sum(T.sqr(x) for x in xs).sum(axis=0)], values, 64, orders=[0])


AXES = [None, 0, 1, 2, (0, 1), (0, 2), (1, 2)]


@pytest.mark.parametrize("axis", AXES)
def test_reductions(emu: Emulator, axis: object) -> None:
    x = T.ftensor3("x")
    t = x * 2
    z = [t.sum(axis), t.max(axis), t.min(axis), t.prod(axis), t.mean(axis), T.sqr(t).sum(axis)]
    check([x], z, [numbers("float32", (3, 40, 4))], 16)


@pytest.mark.parametrize("dtype", REALS)
def test_sums_of_each_dtype(emu: Emulator, dtype: str) -> None:
    x, w = tensor(dtype, (None, None)), T.fscalar("w")
    z = [x.sum(0) * w, x.sum(1) * w, x.max(1) * w, T.any(x, axis=0) * w, T.all(x, axis=1) * w]
    value = numbers(dtype, (7, 70))
    check([x, w], z, [value, np.float32(1)], 4, on_host=True)


@pytest.mark.parametrize(
    ("shape", "axis"),
    [((2, 9000), 1), ((9000, 2), 0), ((9000,), 0), ((3000, 64), 0), ((3, 70, 90), (1, 2))],
)
def test_long_reductions_in_chunks(emu: Emulator, shape, axis) -> None:
    x = tensor("float32", (None,) * len(shape))
    f = check([x], [(x * 2).sum(axis), (x * 2).max(axis)], [numbers("float32", shape)], 16)
    (region,) = [n.op for n in f.maker.fgraph.toposort() if hasattr(n.op, "program")]
    plan = region.program.plans[0].plan
    assert len(plan.calls) >= 2


def test_sums_lose_no_digits(emu: Emulator) -> None:
    x = T.fvector("x")
    value = np.full(100_000, 0.1, "float32")
    value[0] = 1e8
    f = check([x], (x * 1).sum(), [value], 2, orders=[0])
    exact = value.sum(dtype="float64")
    assert abs(float(f(value)) - exact) <= np.spacing(np.float32(exact))


@pytest.mark.parametrize("shape", [(3, 5), (3, 1000), (40, 3), (2, 9000), (0, 4), (1, 1)])
def test_lines(emu: Emulator, shape: tuple[int, ...]) -> None:
    x = T.fmatrix("x")
    z = [T.nnet.softmax(x * 3), T.nnet.logsoftmax(x), T.log(T.nnet.softmax(x)).sum(axis=1)]
    check([x], z, [numbers("float32", shape) * 10], 16)


@pytest.mark.parametrize("shape", [(6, 40), (40, 3), (3, 1000), (2, 9000), (0, 4)])
def test_numbers_of_rows_in_later_passes(emu: Emulator, shape: tuple[int, ...]) -> None:
    x, w = T.fmatrix("x"), tensor("float32", (None, 1), "w")
    z = T.nnet.softmax(x) * w + (x - x.mean(axis=1, keepdims=True)) / (1 + w**2)
    check([x, w], z, [numbers("float32", shape), numbers("float32", (shape[0], 1), 1)])


@pytest.mark.parametrize("axis", [0, 1])
def test_normalization(emu: Emulator, axis: int) -> None:
    x = T.fmatrix("x")
    centred = x - x.mean(axis, keepdims=True)
    z = centred / T.sqrt(T.sqr(centred).mean(axis, keepdims=True) + 1e-5)
    check([x], z, [numbers("float32", (33, 70))], 32)


def test_reductions_over_other_axes_one_after_another(emu: Emulator) -> None:
    x = T.fmatrix("x")
    t = T.exp(x)
    share = t / t.sum(axis=0, keepdims=True)
    check([x], (share - share.sum(axis=1, keepdims=True)).max(), [numbers("float32", (9, 12))])


def test_nan_and_infinity(emu: Emulator) -> None:
    x = T.fmatrix("x")
    value = numbers("float32", (4, 300))
    value[0, 7], value[1, 3], value[2, 290] = np.nan, np.inf, -np.inf
    t = x * 1
    check([x], [t.max(1), t.min(1), t.sum(1), T.nnet.softmax(t), T.isnan(t) * t], [value], 8)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "complex64"])
def test_gradients_of_cumulative_products(emu: Emulator, dtype: str) -> None:
    x = TensorType(dtype, (None,) * 3)("x")
    costs = [abs(T.cumprod(x, axis=axis)).sum() for axis in (0, 1, 2)]
    costs.append(abs(T.cumprod(x[:, ::-1].T, axis=1)).sum())
    for shape in ((3, 4, 5), (1, 1, 1), (2, 0, 3)):
        value = (numbers("float32", shape) * 0.3 + 1).astype(dtype)
        value = value * np.asarray(1 - 0.5j, dtype) if dtype == "complex64" else value
        f = check([x], [symcomp.grad(c, x) for c in costs], [value], 256, orders=[0], on_host=True)
        assert not [name for name in ops_on_host(f) if "Recurrence" in name]


def test_empty_axes(emu: Emulator) -> None:
    x = T.fmatrix("x")
    t = x * 2
    check([x], [t.sum(0), t.sum(1), t.prod(0), t], [numbers("float32", (0, 3))], orders=[0])
    f = check([x], t.max(1), [numbers("float32", (2, 3))], orders=[0])
    with pytest.raises(ShapeError, match=r"is empty along axes"):
        f(numbers("float32", (2, 0)))


def test_shapes_that_do_not_fit(emu: Emulator) -> None:
    x, y = T.fvectors("x", "y")
    f = check([x, y], x * y, [numbers("float32", (3,)), numbers("float32", (3,))], orders=[0])
    with pytest.raises(ValueError, match="length 3 along axis 0, input 1 has length 4"):
        f(numbers("float32", (3,)), numbers("float32", (4,)))
    with pytest.raises(ShapeError, match=r"length 1: shapes \(3,\), \(1,\)\. .* T.addbroadcast"):
        f(numbers("float32", (3,)), numbers("float32", (1,)))


def test_one_kernel_for_all_numbers(emu: Emulator) -> None:
    x = T.fvector("x")
    seen = []
    for factor in (2.0, 3.0):
        check([x], x * np.float32(factor) + 1, [numbers("float32", (9,))], 1, orders=[0])
        seen.append(set(emu._kernels))
    assert seen[0] and seen[0] == seen[1]


def test_wide_indices_compute_the_same(emu: Emulator, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("formulas", "reductions"):
        monkeypatch.setattr(f"symcomp.gpu.{module}.needs_wide", lambda numbers, operands: True)
    x = T.fmatrix("x")
    t = T.tanh(x.T) + x[0, 0]
    check([x], [T.tanh(x), (x * 2).sum(0), T.nnet.softmax(x), t.sum(1)],
          [numbers("float32", (20, 50))], 8, orders=[0])  # fmt: skip


def test_what_has_no_kernel_stays_on_the_host(emu: Emulator) -> None:
    x = T.dmatrix("x")
    f = check([x], T.gammainc(2.0, T.dot(x, x)), [np.eye(3) + 1], 8, on_host=True)
    assert ops_on_host(f)[-1] == "gammainc"


def test_arrays_on_the_device(emu: Emulator) -> None:
    value = numbers("float64", (3, 4))[:, ::-1]
    x = to_device(value, DEVICE)
    assert isinstance(x, DeviceArray) and (x.ndim, x.size, x.nbytes) == (2, 12, 96)
    np.testing.assert_array_equal(np.asarray(x), value)
    np.testing.assert_array_equal(to_device(x, DEVICE).get(), value)
    with pytest.raises(ValueError, match="is copied"):
        np.array(x, copy=False)


@pytest.mark.parametrize(
    ("dtype", "length"),
    [*itertools.product(FLOATS, [33, 770]), *itertools.product(["float32"], [1, 129, 513, 1025])]
    + [("float64", 8200)],
)
def test_passes_over_elements_that_blocks_hold(
    emu: Emulator, monkeypatch: pytest.MonkeyPatch, dtype: str, length: int
) -> None:
    """Where all threads hold as many elements, and where some hold fewer: the same results as
    passes that read memory, also of rows with NaN and infinity, and of columns.
    """
    x = tensor(dtype, (None, None))
    mean = x.mean(1, keepdims=True)
    z = [T.nnet.softmax(x * 2), (x - mean) / T.sqrt(x.var(1, keepdims=True) + 1)]
    value = numbers(dtype, (4, length))
    value[1, length // 2], value[2, 0] = np.nan, np.inf
    f = check([x], z, [value], 16, orders=[0])
    held = [[np.asarray(r) for r in f(v)] for v in (value, np.asfortranarray(value))]
    monkeypatch.setattr("symcomp.gpu.reductions.MOST_HELD", 0)
    read = check([x], z, [value], 16, orders=[0])(value)
    for results in held:
        for one, other in zip(results, read, strict=True):
            assert_close(one, other, 0 if isinstance(emu, Emulator) else 4)


@pytest.mark.parametrize(
    ("dtype", "length", "held"),
    [*itertools.product(["float32"], [9, 16, 17, 33, 128, 200, 1024, 1025], [32])]
    + [("float32", 128, 0), ("float32", 1025, 0), ("float16", 60, 32), ("float64", 128, 0)],
)
def test_a_block_makes_several_short_rows(
    emu: Emulator, monkeypatch: pytest.MonkeyPatch, dtype: str, length: int, held: int
) -> None:
    monkeypatch.setattr("symcomp.gpu.reductions.MOST_HELD", held)
    x = tensor(dtype, (None, None))
    mean = x.mean(1, keepdims=True)
    z = [T.nnet.softmax(x * 2), (x - mean) / T.sqrt(x.var(1, keepdims=True) + 1)]
    z += [(x * 2).sum(1), (x * 2).max(1), T.sqr(x[:, ::-1]).sum(1) + x[:, 0]]
    value = numbers(dtype, (19, length))
    value[1, length // 2], value[2, 0], value[18, -1] = np.nan, np.inf, -np.inf
    f = check([x], z, [value], 16, orders=[0])
    by_blocks = f(value)
    monkeypatch.setattr("symcomp.gpu.reductions.ENOUGH_LANES", 1)
    for rows, orders in ((19, ORDERS), (16, [0]), (8, [2]), (1, [0])):
        g = check([x], z, [value[:rows]], 16, orders)
        for one, other in zip(g(value[:rows]), by_blocks, strict=True):
            assert_close(one, other[:rows], 16)
    if isinstance(emu, Emulator):
        plan = region_of(g).program.plans[0].plan
        threads = {c.launch.block[0] for c in plan.calls if c.launch is not None}
        assert (256 in threads) and (length > 1024 or threads.isdisjoint({32, 64}))


@pytest.mark.parametrize(
    ("dtype", "count", "results", "held"),
    [*itertools.product(["float32"], [9, 60, 130], [32, 41, 500], [32])]
    + [("float32", 2048, 33, 32), ("float64", 100, 70, 0), ("float16", 40, 64, 32)]
    + [("complex64", 40, 64, 32)],
)
def test_a_block_makes_neighbouring_results(
    emu: Emulator, monkeypatch: pytest.MonkeyPatch, dtype: str, count: int, results: int, held: int
) -> None:
    """By groups of threads, for results across a matrix."""
    monkeypatch.setattr("symcomp.gpu.reductions.MOST_HELD", held)
    x = tensor(dtype, (None, None))
    t = x * 3
    z = [t.sum(0), T.prod(1 + x * x, axis=0)]
    if dtype.startswith("float"):
        mean = x.mean(0)
        z += [(x - mean) / T.sqrt(x.var(0) + 1), t.max(0), T.exp(-x) * (t - t.min(0))]
    value = (numbers("float32", (count, results)) / 16).astype(dtype)
    check([x], z, [value * 1j if dtype == "complex64" else value], 256)
    plan = region_of(check([x], t.sum(0), [value], 16, orders=[1])).program.plans[0].plan
    (launch,) = [c.launch for c in plan.calls if c.launch is not None]
    columns = {9: 32, 60: 16, 130: 8, 40: 16, 100: 8, 2048: 8}[count]
    assert (launch.grid[0], launch.block[0]) == (-(-results // columns), 256)


def region_of(f: Any) -> Any:
    """Return the only region of a function."""
    (op,) = [n.op for n in f.maker.fgraph.toposort() if hasattr(n.op, "program")]
    return op


def test_many_short_rows(emu: Emulator) -> None:
    x = T.fmatrix("x")
    value = numbers("float32", (2051, 40))
    f = check([x], [T.nnet.softmax(x * 2), (x * 2).sum(1)], [value], 16, orders=[0])
    launches = [c.launch for c in region_of(f).program.plans[0].plan.calls]
    assert {(launch.grid[0], launch.block[0]) for launch in launches} == {(257, 256)}
