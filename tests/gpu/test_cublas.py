"""Products by cuBLAS: a stand-in with its names and arguments, on the emulator."""

import itertools
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import symcomp
import symcomp.tensor as T
from symcomp import gpu
from symcomp.config import config
from symcomp.cvm.machine import DeviceRegion, Recorded, RegionPlan
from symcomp.gpu.array import DeviceArray, to_device
from symcomp.gpu.driver.devices import set_driver
from symcomp.gpu.driver.emulator import Emulator
from symcomp.gpu.driver.timeline import Timeline
from symcomp.gpu.errors import DeviceError
from symcomp.gpu.execution import ready
from symcomp.gpu.kernels.products import ProductOperands
from symcomp.gpu.libraries.cublas import plan_by_cublas, stored
from symcomp.gpu.planner import Operand, Planner
from symcomp.tests.gpu.libraries import stand_ins
from symcomp.tests.gpu.running import DEVICE, array, check, check_loops, compile_both, ops_on_device

pytestmark = pytest.mark.skipif(DEVICE != "emu", reason="stand-ins are for the emulator")


@pytest.fixture
def cublas(emu: Emulator) -> Iterator[Any]:
    with stand_ins(emu, "cublas") as (library,):
        yield library


def whole(driver: Emulator, view: np.ndarray, base: np.ndarray) -> DeviceArray:
    """Return a view on the device, in a copy of all memory of its base."""
    there = to_device(base, "emu")
    offset = view.ctypes.data - base.ctypes.data
    return DeviceArray(driver, there.memory, offset, view.dtype.name, view.shape, view.strides)


class Region(DeviceRegion):
    """A region with one plan."""

    def __init__(self, plan: RegionPlan) -> None:
        super().__init__(True)
        self.plan = plan

    def make_plan(self, *values: Any) -> RegionPlan:
        return self.plan


def multiplied(driver: Emulator, a: Any, b: Any, more: Any = ()) -> tuple[Any, list[str]]:
    """Return a b by cuBLAS, or alpha a b + beta c for ``more``; and the kinds of calls."""
    planner = Planner(driver, {})
    arrays = [a, b, *more]
    operands = [planner.input(i, x.dtype.name, x.shape, x.strides) for i, x in enumerate(arrays)]
    scaled = None
    if more:
        alpha, beta, c = operands[2:]
        scaled = ProductOperands(alpha, beta, c)
    z = planner.new(a.dtype.name, (*a.shape[:-1], b.shape[-1]))
    if not plan_by_cublas(planner, z, *operands[:2], scaled):
        assert not planner.calls
        return None, []
    kinds = [call.kind for call in planner.calls]
    inputs = [(x.dtype, x.shape, x.strides) for x in arrays]
    region = Region(ready(driver, planner.finish([z]), inputs, "test"))
    return region(*arrays)[0].get(), kinds


def layouts(rows: int, columns: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield a base and a matrix in it: by rows, by columns, and as parts of larger ones."""
    base = array(rows, columns)
    yield base, base
    base = array(columns, rows)
    yield base, base.T
    base = array(rows, columns + 3)
    yield base, base[:, 1 : columns + 1]
    base = array(columns + 2, rows + 1)
    yield base, base[2:, 1:].T


SHAPES = [(3, 4, 5), (1, 4, 5), (3, 1, 5), (3, 4, 1), (1, 1, 1), (17, 1, 1)]


@pytest.mark.parametrize(("m", "n", "k"), SHAPES)
def test_each_layout_without_copies(cublas: Any, emu: Emulator, m: int, n: int, k: int) -> None:
    count = 0
    factors = layouts(m, k), layouts(k, n), layouts(m, n), (np.float32(0), np.float32(0.5))
    for (base_a, a), (base_b, b), (base_c, c), beta in itertools.product(*factors):
        given = [whole(emu, a, base_a), whole(emu, b, base_b), whole(emu, c, base_c)]
        scale = [to_device(np.float32(x), "emu") for x in (2, beta)]
        found, kinds = multiplied(emu, *given[:2], [*scale, given[2]])
        np.testing.assert_allclose(found, 2 * (a @ b) + beta * c, rtol=1e-5, atol=1e-5)
        # The result begins as a copy of c; a and b are read where they are.
        assert kinds.count("library") == 1 and len(kinds) == 2
        count += 1
    assert count == 4 * 4 * 4 * 2


steps = st.sampled_from([1, 1, 2, -1, 0])
matrices = st.tuples(steps, steps, st.booleans())


def strided(shape: tuple[int, ...], how: tuple[int, int, bool]) -> tuple[np.ndarray, np.ndarray]:
    """Return a base and a matrix of this shape: by rows or columns, with steps."""
    *steps, across = how
    lengths = [max(1, n * max(1, abs(s))) for n, s in zip(shape, steps, strict=True)]
    base = array(*lengths) if across else array(*reversed(lengths))
    x = base if across else base.T
    for axis, (n, step) in enumerate(zip(shape, steps, strict=True)):
        x = np.moveaxis(x, axis, 0)
        x = np.broadcast_to(x[:1], (n, *x.shape[1:])) if step == 0 else x[::step][:n]
        x = np.moveaxis(x, 0, axis)
    return base, x


@settings(deadline=None, max_examples=120)
@given(st.tuples(*[st.integers(0, 4)] * 3), matrices, matrices)
def test_other_layouts_are_right_or_refused(shape: Any, one: Any, other: Any) -> None:
    emu = Emulator()
    before = set_driver("emu", emu)
    try:
        with stand_ins(emu, "cublas"):
            m, n, k = shape
            (base_a, a), (base_b, b) = strided((m, k), one), strided((k, n), other)
            given = whole(emu, a, base_a), whole(emu, b, base_b)
            found, kinds = multiplied(emu, *given)
            if kinds:
                assert kinds == ["library"]
                np.testing.assert_allclose(found, a @ b, rtol=1e-5, atol=1e-5)
            elif 0 not in shape:
                operands = [Operand(0, 0, "float32", x.shape, x.strides) for x in (a, b)]
                assert None in [stored(x) for x in operands]
    finally:
        set_driver("emu", before)


DTYPES = ("float16", "float32", "float64")


@pytest.mark.parametrize("dtype", DTYPES)
def test_each_op(cublas: Any, emu: Emulator, dtype: str) -> None:
    a, b, c = (T.matrix(name, dtype=dtype) for name in "abc")
    v, u = (T.vector(name, dtype=dtype) for name in "vu")
    s, r = (T.tensor3(name, dtype=dtype) for name in "sr")
    half = np.asarray(0.5, dtype)
    outputs = [
        T.dot(a, b), T.dot(a.T, c[:, ::-1][:, ::-1]), T.dot(v, v[::-1]), T.dot(u, a[:, ::-1]),
        c + half * T.dot(a, T.tanh(b)), c * half - T.dot(T.exp(a), b), u + T.dot(a, v),
        c + T.outer(u, b[0]), T.batched_dot(s, r), T.batched_dot(s.transpose(0, 2, 1), s),
        T.dot(T.dot(a, b + 1), b.T),
    ]  # fmt: skip
    values = [array(*n, dtype=dtype) for n in [(5, 7), (7, 4), (5, 4), (7,), (5,)]]
    values += [array(3, 2, 6, dtype=dtype), array(3, 6, 4, dtype=dtype)]
    before = cublas.fake_calls()
    f = check([a, b, c, v, u, s, r], outputs, values, orders=[0])
    ops = " ".join(ops_on_device(f))
    named = ("Dot", "Gemm", "Gemv", "Ger", "BatchedDot", "MatrixChain")
    assert dtype == "float16" or all(name in ops for name in named)
    # Not a matrix whose rows are backwards; of float16, neither such a vector, nor the outer
    # product, which is fused.
    assert cublas.fake_calls() - before == (9 if dtype == "float16" else 11)


@pytest.mark.parametrize("products", ["full", "tf32"])
def test_factors_of_bfloat16(cublas: Any, emu: Emulator, products: str) -> None:
    """cuBLAS reads them as they are, and gives float32, which the next kernel rounds."""
    a, b = (T.matrix(name, dtype="bfloat16") for name in "ab")
    v, s = T.vector("v", dtype="bfloat16"), T.tensor3("s", dtype="bfloat16")
    exact = T.dot(T.cast(a, "float32"), T.cast(b, "float32"))
    outputs = [
        T.dot(a, b), T.dot(a.T, a), T.tanh(T.dot(a, T.exp(b))) + 1, T.dot(a, v), T.dot(v, v),
        T.batched_dot(s, s), T.grad(T.sum(T.sqr(T.dot(a, b))), a), exact * 2 + exact,
    ]  # fmt: skip
    values = [array(*n).astype(a.type.numpy_dtype) for n in [(5, 7), (7, 4), (7,), (3, 4, 4)]]
    plain = symcomp.function([a, b, v, s], outputs)
    with config.change_flags(device=DEVICE, gpu_products=products):
        f = symcomp.function([a, b, v, s], outputs)
    before = cublas.fake_calls()
    for found, wanted in zip(f(*values), plain(*values), strict=True):
        assert found.dtype == wanted.dtype
        np.testing.assert_allclose(found.astype("f"), wanted.astype("f"), 1e-2, 1e-2)
    names = ops_on_device(f)
    made = [name for name in names if name.startswith("Stored")]
    assert len(made) == cublas.fake_calls() - before >= 7
    assert not [name for name in names if name.startswith(("Dot", "Gem", "Batched"))]


def test_older_cards_have_no_bfloat16(
    cublas: Any, emu: Emulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    a = T.matrix("a", dtype="bfloat16")
    value, before = array(3, 3).astype(a.type.numpy_dtype), cublas.fake_calls()
    for arch, calls in (("sm_75", 0), ("sm_80", 1)):
        monkeypatch.setattr(emu, "arch", arch)
        with config.change_flags(device=DEVICE):
            f = symcomp.function([a], T.dot(a, a))
        np.testing.assert_array_equal(f(value), symcomp.function([a], T.dot(a, a))(value))
        assert cublas.fake_calls() - before == calls


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_products_of_complex_numbers(cublas: Any, emu: Emulator, dtype: str) -> None:
    a, b, c = (T.matrix(name, dtype=dtype) for name in "abc")
    v, s = T.vector("v", dtype=dtype), T.tensor3("s", dtype=dtype)
    outputs = [
        T.dot(a, b), T.dot(a.T, T.conj(c)), T.dot(v, v[::-1]), T.dot(v, b), T.dot(a, v),
        c + (0.5 - 2j) * T.dot(a, b), T.batched_dot(s, s), T.dot(a[:, ::2], b[::2]),
    ]  # fmt: skip
    values = [array(*n, dtype=dtype) * (1 - 2j) for n in [(5, 7), (7, 4), (5, 4), (7,), (3, 4, 4)]]
    turned = [(x + 1j * x[..., ::-1].real).astype(dtype) for x in values]
    before = cublas.fake_calls()
    check([a, b, c, v, s], outputs, turned, orders=[0], on_host=True)
    # Not a matrix whose elements are apart along both axes.
    assert cublas.fake_calls() - before == 7


def test_one_matrix_for_a_whole_stack(cublas: Any, emu: Emulator) -> None:
    s, a = T.ftensor3("s"), T.fmatrix("a")
    stretched = T.broadcast_to(a, (s.shape[0], a.shape[0], a.shape[1]))
    before = cublas.fake_calls()
    check([s, a], T.batched_dot(s, stretched), [array(3, 2, 4), array(4, 5)], orders=[0])
    assert cublas.fake_calls() == before + 1


def test_what_cublas_does_not_take(cublas: Any, emu: Emulator) -> None:
    a, b = T.fmatrix("a"), T.fmatrix("b")
    outputs = [T.dot(a[:, ::2], b[:, ::2].T), T.dot(a[:, :0], b[:, :0].T)]
    before = cublas.fake_calls()
    check([a, b], outputs, [array(4, 6), array(4, 6)], orders=[0])
    check([a, b], T.dot(a, b.T), [array(0, 6), array(4, 6)], orders=[0])
    assert cublas.fake_calls() == before


def test_a_factor_of_zero_hides_what_is_added(cublas: Any, emu: Emulator) -> None:
    a, nan = array(3, 3), np.full((3, 3), np.nan, "float32")
    given = [to_device(x, "emu") for x in (a, a, np.float32(2), np.float32(0), nan)]
    found, _ = multiplied(emu, *given[:2], given[2:])
    np.testing.assert_allclose(found, 2 * a @ a, rtol=1e-5)


@pytest.mark.parametrize(
    ("how", "number", "digits"), [("full", 68, 23), ("tf32", 77, 10), ("bf16", 75, 7)]
)
def test_precisions(cublas: Any, emu: Emulator, how: str, number: int, digits: int) -> None:
    a = T.fmatrix("a")
    values = np.array([[1 + 2.0**-9, 0], [0, 1 + 2.0**-6]], "float32")
    with config.change_flags(gpu_products=how):
        _, f = compile_both([a], T.dot(a, a))
    found = f(values)
    kept = np.round(values * 2.0**digits) / 2.0**digits
    assert cublas.fake_computing() == number
    np.testing.assert_array_equal(found, (kept @ kept).astype("float32"))


def test_in_loops_and_profiles(cublas: Any, emu: Emulator) -> None:
    w, x = T.fmatrix("w"), T.fmatrix("x")
    states, _ = symcomp.scan(lambda row, h: T.tanh(T.dot(w, h) + row), x, T.zeros(4, "float32"))
    outputs = [states, *symcomp.grad(T.sqr(states).sum(), [w, x])]
    before = cublas.fake_calls()
    with config.change_flags(gpu_graphs=False):  # a graph repeats calls without the library
        f = check_loops([w, x], outputs, [array(4, 4), array(6, 4)])
    assert cublas.fake_calls() - before == 3 * 2 * 6
    timeline = Timeline()
    emu.counters.clear()
    Recorded(f, timeline)(array(4, 4), array(6, 4))
    timeline.finish()
    count = {"kernel": 0, "library": 0}
    for (_, kind, label), total in timeline.totals.items():
        if kind in count:
            count[kind] += total.count
            assert total.nbytes > 0 and label
    assert count["library"] == 12 and sum(count.values()) == emu.counters.launches


def test_in_graphs(emu: Emulator) -> None:
    driver = Emulator(keeps_blocks=True)
    set_driver("emu", driver)  # the fixture sets the one before again
    with stand_ins(driver, "cublas") as (library,), config.change_flags(device="emu"):
        w = symcomp.shared(array(3, 3))
        product = T.dot(T.tanh(T.dot(w, w)), T.tanh(w))
        f = symcomp.function([], gpu.to_gpu(product, "emu"), updates=[(w, product)])
        n = library.fake_calls()
        found, wanted = [], array(3, 3)
        for _ in range(12):
            found.append(f().get())
            wanted = np.tanh(wanted @ wanted) @ np.tanh(wanted)
            np.testing.assert_allclose(found[-1], wanted, rtol=1e-4, atol=1e-12)
        counters = driver.counters
        assert counters.graphs > 4
        assert library.fake_calls() - n == 2 * (12 - counters.graphs + counters.recorded)


def test_several_threads(cublas: Any, emu: Emulator) -> None:
    a = T.fmatrix("a")
    _, f = compile_both([a], T.dot(a, T.tanh(a)))
    found: dict[int, Any] = {}

    def run(i: int) -> None:
        for _ in range(5):
            found[i] = f(np.full((3, 3), i, "float32"))

    threads = [threading.Thread(target=run, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for i in range(4):
        np.testing.assert_allclose(found[i], 3 * i * np.tanh(np.float32(i)), rtol=1e-5)


def test_errors_of_the_library(cublas: Any, emu: Emulator) -> None:
    a = T.fmatrix("a")
    _, f = compile_both([a], T.dot(a, a))
    f(array(3, 3))
    cublas.fake_failure(13)
    said = r"^Dot .*cuBLAS answers 13 \(execution failed\)"
    with config.change_flags(gpu_graphs=False), pytest.raises(DeviceError, match=said):
        f(array(3, 3))


def test_a_library_that_lacks_functions_is_not_used(emu: Emulator) -> None:
    emu.library_paths = {"cublas": "libm.so.6"}
    a = T.fmatrix("a")
    _, f = compile_both([a], T.dot(a, a))
    with pytest.warns(RuntimeWarning, match=r"cuBLAS is not used on emu.*has no function cublas"):
        np.testing.assert_allclose(f(array(50, 50)), array(50, 50) @ array(50, 50), rtol=1e-4)
    f(array(50, 50))
