"""Sorting and searching on the emulator."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import symcomp
import symcomp.tensor as T
from symcomp.config import config
from symcomp.core.tensor import TensorType
from symcomp.errors import ShapeError
from symcomp.gpu import planner, to_gpu
from symcomp.gpu.driver.emulator import Emulator
from symcomp.gpu.kernels import sorting
from symcomp.tests.gpu.running import DEVICE, check

REALS = (
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16",
    "float32", "float64",
)  # fmt: skip


def elements(dtype: str, shape: tuple[int, ...], seed: int = 0) -> np.ndarray:
    """Return elements many of which are equal, with the least and the largest of the dtype."""
    rng = np.random.default_rng(seed)
    kind = np.dtype(dtype)
    if kind.kind == "b":
        return rng.random(shape) < 0.5
    few = rng.integers(-3 if kind.kind != "u" else 0, 4, shape)
    if kind.kind in "iu":
        info = np.iinfo(kind)
        odd = rng.integers(info.min, info.max, shape, kind.type, endpoint=True)
        odd = np.where(rng.random(shape) < 0.3, info.max, odd)
        return np.where(rng.random(shape) < 0.5, few.astype(dtype), odd)
    special = [np.nan, -np.nan, np.inf, -np.inf, 0.0, -0.0, np.finfo(kind).max]
    special += [-np.finfo(kind).smallest_subnormal, np.finfo(kind).smallest_subnormal]
    x = np.where(rng.random(shape) < 0.5, few, rng.standard_normal(shape)).astype(dtype)
    return np.where(rng.random(shape) < 0.3, rng.choice(special, shape), x).astype(dtype)


def everything(x: T.TensorVariable, axis: int) -> list[T.TensorVariable]:
    return [T.sort(x, axis), T.argsort(x, axis)]


@pytest.mark.parametrize("dtype", REALS)
def test_each_dtype(emu: Emulator, dtype: str) -> None:
    x = to_gpu(TensorType(dtype, (None, None))("x"), DEVICE)
    source = x.owner.inputs[0]
    z = [*everything(x, 0), *everything(x, 1), T.argtopk(x, 3, 1), T.argtopk(x, -3, 1)]
    check([source], z, [elements(dtype, (5, 40))], 0)


@pytest.mark.parametrize("dtype", ["uint8", "float16", "float32", "int64"])
@pytest.mark.parametrize("n", [1025, 4095, 4096, 4097, 8192, 8193, 13000])
def test_long_lines(emu: Emulator, dtype: str, n: int) -> None:
    x = to_gpu(TensorType(dtype, (None, None))("x"), DEVICE)
    z = [*everything(x, 1), T.argtopk(x, 1, 1), T.argtopk(x, -1500 if n > 2000 else -5, 1)]
    check([x.owner.inputs[0]], z, [elements(dtype, (2, n))], 0, orders=[0, 2])


@pytest.mark.parametrize("n", [*range(1, 10), 15, 16, 17, 31, 33, 64, 100, 500, 2048, 2049])
def test_many_lines(emu: Emulator, n: int) -> None:
    x = to_gpu(T.TensorType("float32", (None, None))("x"), DEVICE)
    z = [*everything(x, 1), T.argtopk(x, (n + 1) // 2, 1)]
    check([x.owner.inputs[0]], z, [elements("float32", (9000 // n + 3, n))], 0, orders=[0, 1])


@pytest.mark.parametrize("dtype", ["bool", "int8", "float16", "float32", "float64"])
@pytest.mark.parametrize("k", [1, 4096, 5000, 13000])
def test_parts_of_a_long_line(emu: Emulator, dtype: str, k: int) -> None:
    x = to_gpu(TensorType(dtype, (None,))("x"), DEVICE)
    z = [T.argtopk(x, k), T.argtopk(x, -k)]
    check([x.owner.inputs[0]], z, [elements(dtype, (13000,))], 0, orders=[0, 2])


def test_merges_of_parts_of_all_overlaps(emu: Emulator) -> None:
    x = to_gpu(T.TensorType("int32", (None, None))("x"), DEVICE)
    n = np.arange(9000, dtype="int32")
    lines = [n, n[::-1], n % 2, -(n % 4096), n // 4096, np.full(9000, 7), (n * 7919) % 9001]
    check([x.owner.inputs[0]], everything(x, 1), [np.stack(lines).astype("int32")], 0, orders=[0])


@pytest.mark.parametrize("shape", [(3000, 5), (40, 300), (3, 9000)])
def test_few_blocks_for_much_work(emu, monkeypatch, shape: tuple[int, int]) -> None:
    monkeypatch.setattr(planner, "MOST_BLOCKS", 2)
    monkeypatch.setattr(sorting, "MOST_BLOCKS", 2)
    x = to_gpu(T.TensorType("float32", (None, None))("x"), DEVICE)
    z = [*everything(x, 1), T.argtopk(x, 4, 1)]
    check([x.owner.inputs[0]], z, [elements("float32", shape)], 0, orders=[0, 1, 2])


SHAPES = [(0,), (1,), (0, 3), (3, 0), (1, 1), (700, 3), (3, 700), (2, 1025)]


@pytest.mark.parametrize("shape", SHAPES)
def test_lengths(emu: Emulator, shape: tuple[int, ...]) -> None:
    x = T.TensorType("float32", (None,) * len(shape))("x")
    z = [y for axis in range(len(shape)) for y in everything(x * 2, axis)]
    check([x], z, [elements("float32", shape)], 0, orders=[0])


@settings(deadline=None, max_examples=40)
@given(
    st.lists(st.integers(0, 7), min_size=3, max_size=3),
    st.permutations(range(3)),
    st.lists(st.sampled_from([1, -1, 2]), min_size=3, max_size=3),
    st.integers(0, 2),
    st.sampled_from(["float32", "int16", "uint64"]),
)
def test_layouts(shape, order, steps, axis, dtype) -> None:
    base = elements(dtype, tuple(shape[a] * abs(steps[a]) for a in order))
    value = base.transpose(np.argsort(order))[tuple(slice(None, None, s) for s in steps)]
    x = to_gpu(TensorType(dtype, (None,) * 3)("x"), DEVICE)
    k = max(1, shape[axis])
    z = everything(x, axis)
    if shape[axis]:
        z += [T.argtopk(x, (k + 1) // 2, axis), T.argtopk(x, -k, axis)]
    check([x.owner.inputs[0]], z, [value], 0, orders=[0])


def test_equal_elements_stay_in_order(emu: Emulator) -> None:
    x = T.fvector("x")
    value = np.zeros(9000, "float32")
    value[::3], value[1::7] = -0.0, np.nan
    z = [T.argsort(x * 2), T.argtopk(x * 2, 2500), T.argtopk(x * 2, -2500)]
    check([x], z, [value], 0, orders=[0, 3])


def test_positions_of_64_bits(emu: Emulator, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sorting, "LARGEST_32", 2000)
    x = T.fvector("x")
    check([x], [T.argsort(x * 2), T.argtopk(x * 2, 9)], [elements("float32", (9000,))], 0)


@pytest.mark.parametrize("axis", [0, 1, None])
def test_topk(emu: Emulator, axis: int | None) -> None:
    x, k = T.fmatrix("x"), T.lscalar("k")
    t = x * 2
    z = [*T.topk_and_argtopk(t, 3, axis), *T.topk_and_argtopk(t, k, axis, idx_dtype="int32")]
    f = check([x, k], z, [elements("float32", (5, 6)), -2], 0, orders=[0])
    with pytest.raises(ShapeError, match=r"topk: kth=40 for an axis of length"):
        f(elements("float32", (5, 6)), 40)
    with pytest.raises(ShapeError, match=r"topk: kth=0 for an axis of length"):
        f(elements("float32", (5, 6)), 0)


def test_functions_of_sorted_elements(emu: Emulator) -> None:
    x = T.fmatrix("x")
    t = T.tanh(x)
    loss = (T.sort(t, 1)[:, -3:] ** 2).sum() + T.sort(t, 0)[2].sum()
    z = [T.median(t, 1), T.median(t), symcomp.grad(loss, x), T.sort(t, None), t[T.argsort(t[:, 0])]]
    value = np.random.default_rng(0).permutation(70).reshape(7, 10).astype("float32") / 70
    check([x], z, [value], 8, orders=[0, 1])


@pytest.mark.parametrize("dtype", REALS)
@pytest.mark.parametrize("side", ["left", "right"])
def test_searching(emu: Emulator, dtype: str, side: str) -> None:
    x, v = TensorType(dtype, (None,))("x"), TensorType(dtype, (None, None))("v")
    t, u = to_gpu(x, DEVICE), to_gpu(v, DEVICE)
    found = T.searchsorted(t, u[:, ::-1].T, side)
    z = [found, T.searchsorted(t, u[0, 0], side), T.searchsorted(t[::2], u, side)]
    ordered = np.sort(elements(dtype, (500,)))
    check([x, v], z, [ordered, elements(dtype, (7, 30), 1)], 0, orders=[0, 2])
    check([x, v], z, [ordered[:0], elements(dtype, (2, 1), 1)], 0, orders=[0])
    check([x, v], z[:1], [ordered, elements(dtype, (2, 0), 1)], 0, orders=[0])


def test_a_step_of_a_program_sorts_without_the_host(emu: Emulator) -> None:
    x = T.fmatrix("x")
    with config.change_flags(device=DEVICE):
        w = symcomp.shared(np.ones((8, 5), "float32"))
        best = T.topk(T.dot(x, w), 2, axis=1)
        f = symcomp.function([x], to_gpu(best.sum(), DEVICE), updates=[(w, w + best.sum())])
    f(np.ones((3, 8), "float32"))
    emu.wait()
    emu.counters.clear()
    for _ in range(5):
        f(np.ones((3, 8), "float32"))
    assert emu.counters.waits == 0
