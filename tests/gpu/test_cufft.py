"""Fourier transforms by cuFFT: a stand-in with its names and arguments, on the emulator."""

import gc
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
from symcomp.core.walk import toposort
from symcomp.cvm.machine import Recorded
from symcomp.gpu.driver.devices import set_driver
from symcomp.gpu.driver.emulator import Emulator
from symcomp.gpu.driver.timeline import Timeline
from symcomp.gpu.errors import DeviceError
from symcomp.gpu.libraries.cufft import layout_of
from symcomp.gpu.libraries.finding import VERSIONS, WHEELS
from symcomp.gpu.planner import Operand
from symcomp.tests.gpu.libraries import stand_ins
from symcomp.tests.gpu.running import (
    DEVICE,
    array,
    check,
    check_loops,
    compile_both,
    loops,
    ops_on_device,
    ops_on_host,
)

pytestmark = pytest.mark.skipif(DEVICE != "emu", reason="stand-ins are for the emulator")


@pytest.fixture
def cufft(emu: Emulator) -> Iterator[Any]:
    with stand_ins(emu, "cufft") as (library,):
        yield library


def numbers(*shape: int, dtype: str) -> Any:
    """Return real or complex numbers of a dtype."""
    if dtype.startswith("complex"):
        part = "float32" if dtype == "complex64" else "float64"
        return (array(*shape, dtype=part) + 1j * array(*shape, dtype=part)[..., ::-1]).astype(dtype)
    return array(*shape, dtype=dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
def test_each_function(cufft: Any, emu: Emulator, dtype: str) -> None:
    x = T.tensor3("x", dtype=dtype)
    outputs = [
        T.fft.fft(x), T.fft.ifft(x, axis=0), T.fft.fftn(x), T.fft.ifftn(x, norm="ortho"),
        T.fft.fftn(x, axes=(0, 2), norm="forward"), T.fft.fftn(x, axes=(1, 0)),
        T.fft.fft(x[:, ::-1, ::2].transpose(2, 0, 1)), T.fft.irfftn(x, axes=(1,)),
        T.fft.irfftn(x, s=(4, 7)), T.fft.fft(x, n=9), T.fft.fft(x, n=2),
    ]  # fmt: skip
    if not dtype.startswith("complex"):
        outputs += [
            T.fft.rfft(x), T.fft.rfft(x, norm="ortho"), T.fft.rfftn(x, axes=(0,)),
            T.fft.rfftn(x), T.fft.rfft(x[1:]), T.fft.irfft(T.fft.rfft(x), is_odd=True),
            T.fft.irfft(T.fft.rfft(x[..., 1:]), norm="no_norm"),
            *symcomp.grad(T.sqr(T.fft.rfft(x, norm="ortho")).sum(), [x]),
            *symcomp.grad(T.sqr(T.fft.irfft(T.fft.rfft(T.exp(x))[:, 1:]))[0].sum(), [x]),
        ]  # fmt: skip
    f = check([x], outputs, [numbers(3, 4, 5, dtype=dtype)], orders=[0], on_host=True)
    assert not any("Fourier" in name for name in ops_on_host(f))
    assert any("Fourier" in name for name in ops_on_device(f))


@pytest.mark.parametrize("shape", [(1, 1), (1, 2), (2, 1), (5, 3), (0, 3), (4, 8), (2, 16)])
def test_lengths(cufft: Any, emu: Emulator, shape: Any) -> None:
    x = T.dmatrix("x")
    z = T.fft.rfftn(x, axes=(1,))
    back = T.fft.irfftn(z * 2, s=(x.shape[1],), axes=(1,))
    check([x], [z, back, T.fft.fft(x)], [array(*shape, dtype="float64")], orders=[0], on_host=True)


def test_more_than_three_axes(cufft: Any, emu: Emulator) -> None:
    x = T.dtensor4("x")
    before = cufft.fake_calls()
    check([x], T.fft.fftn(x), [array(2, 3, 2, 3, dtype="float64")], orders=[0])
    assert cufft.fake_calls() == before + 2


def test_inverse_takes_what_is_no_half_of_a_transform(cufft: Any, emu: Emulator) -> None:
    z = T.zmatrix("z")
    values = numbers(3, 4, dtype="complex128")
    outputs = [T.fft.irfftn(z, s=(n,), axes=(1,)) for n in (6, 7)]
    check([z], [*outputs, z * 2], [values], orders=[0], on_host=True)


def test_bad_lengths(cufft: Any, emu: Emulator) -> None:
    x = T.fmatrix("x")
    plain, f = compile_both([x], T.fft.fft(x))
    for function in (plain, f):
        with pytest.raises(symcomp.errors.ShapeError, match="no transform of no elements"):
            function(array(3, 0))


# Lengths and steps.
axes = st.tuples(st.integers(1, 4), st.integers(-3, 12))


@settings(deadline=None, max_examples=200)
@given(st.lists(axes, min_size=1, max_size=5), st.data())
def test_layouts_are_right_or_refused(chosen: Any, data: Any) -> None:
    rank = data.draw(st.integers(1, min(3, len(chosen))))
    x = Operand(0, 0, "float64", tuple(n for n, _ in chosen), tuple(8 * s for _, s in chosen))
    found = layout_of(x, rank)
    contiguous = np.empty(x.shape)
    assert layout_of(Operand(0, 0, "float64", x.shape, contiguous.strides), rank) is not None
    if found is None:
        return
    cut = x.ndim - rank
    batches = int(np.prod(x.shape[:cut]))
    assert all(n <= m for n, m in zip(x.shape[cut + 1 :], found.inside[1:], strict=True))
    for place in np.ndindex(x.shape):
        batch = int(np.ravel_multi_index(place[:cut], x.shape[:cut])) if cut else 0
        at = 0
        for k, inside in zip(place[cut:], found.inside, strict=True):
            at = at * inside + k
        wanted = sum(k * s // 8 for k, s in zip(place, x.strides, strict=True))
        assert at * found.step + batch * found.distance == wanted
    assert batches == 1 or found.distance > 0


def test_views_are_read_in_place(cufft: Any, emu: Emulator) -> None:
    x = T.ztensor3("x")
    outputs = [
        T.fft.fft(x), T.fft.fft(x[:, 1:, 1:3]), T.fft.fft(x.transpose(2, 0, 1)),
        T.fft.fft(x, axis=0),
    ]  # fmt: skip
    for output in outputs:
        with config.change_flags(device="emu"):
            f = symcomp.function([x], output)
        timeline = Timeline()
        Recorded(f, timeline)(numbers(3, 4, 5, dtype="complex128"))
        timeline.finish()
        kinds = [kind for _, kind, _ in timeline.totals]
        assert "library" in kinds and "copy" not in kinds


def test_plans_go_with_their_functions(cufft: Any, emu: Emulator) -> None:
    x = T.fmatrix("x")
    gc.collect()
    before = cufft.fake_plans()
    _, f = compile_both([x], T.fft.fft(T.fft.fft(x)))
    f(array(4, 6))
    assert cufft.fake_plans() == before + 1  # both transforms have one
    f(array(5, 6))
    assert cufft.fake_plans() == before + 2
    del f
    gc.collect()
    assert cufft.fake_plans() == before


def test_in_loops(cufft: Any, emu: Emulator) -> None:
    x, h = T.fmatrix("x"), T.fvector("h")
    states, _ = symcomp.scan(
        lambda row, s: T.fft.irfft(T.fft.rfft((row + s)[None]), is_odd=True)[0] * 0.5, x, h
    )
    for n in (5, 7):
        f = check_loops([x, h], [states, states[-1]], [array(6, n), array(n)])
        assert any("Fourier" in str(name) for name in ops_in_loops(f))


def ops_in_loops(f: Any) -> list[str]:
    return [str(n.op) for loop in loops(f) for n in toposort(loop.body.outputs)]


def test_in_graphs(emu: Emulator) -> None:
    driver = Emulator(keeps_blocks=True)
    set_driver("emu", driver)  # the fixture sets the one before again
    with stand_ins(driver, "cufft"), config.change_flags(device="emu"):
        w = symcomp.shared(array(3, 4))
        new = T.fft.irfft(T.tanh(T.fft.rfft(w)))
        f = symcomp.function([], gpu.to_gpu(new, "emu"), updates=[(w, new)])
        wanted = array(3, 4)
        for _ in range(12):
            found = f().get()
            z = np.fft.rfft(wanted)
            wanted = np.fft.irfft(np.tanh(z.real) + 1j * np.tanh(z.imag))
            np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-6)
        assert driver.counters.graphs > 4


def test_without_cufft_the_processor_transforms(emu: Emulator) -> None:
    x = T.fmatrix("x")
    z = T.fft.rfft(T.tanh(x))
    f = check([x], T.sqr(z), [array(3, 4)], orders=[0], on_host=True)
    assert "RealFourier{axis=1}" in ops_on_host(f)
    timeline = Timeline()
    Recorded(f, timeline)(array(3, 4))
    timeline.finish()
    # The copies that this costs are in the profile.
    kinds = {kind: total.count for (_, kind, _), total in timeline.totals.items()}
    assert kinds["to device"] == 2 and kinds["to host"] == 2
    states, _ = symcomp.scan(lambda row: T.sqr(T.fft.rfft(row[None])), x)
    _, f = compile_both([x], [states, T.tanh(x)])
    assert any(name.startswith("scan") for name in ops_on_host(f))


def test_a_file_is_loaded_where_cufft_is_missing(cufft: Any, emu: Emulator, tmp_path: Any) -> None:
    x = T.fmatrix("x")
    _, f = compile_both([x], T.sqr(T.fft.rfft(T.tanh(x))))
    assert any("Fourier" in name for name in ops_on_device(f))
    wanted = f(array(3, 4))
    symcomp.save(tmp_path / "f.sym", {"f": f})
    emu.library_paths = {}
    emu.libraries.clear()
    loaded = symcomp.load(tmp_path / "f.sym")["f"]
    np.testing.assert_allclose(loaded(array(3, 4)), wanted, rtol=1e-5, atol=1e-6)
    assert "RealFourier{axis=1}" in ops_on_host(loaded)


def test_errors_of_the_library(cufft: Any, emu: Emulator) -> None:
    x = T.fmatrix("x")
    _, f = compile_both([x], T.fft.rfft(x))
    f(array(3, 3))
    cufft.fake_failure(6)
    said = r"^RealFourier.*cuFFT answers 6 \(execution failed\)"
    with config.change_flags(gpu_graphs=False), pytest.raises(DeviceError, match=said):
        f(array(3, 3))


def test_each_library_has_a_wheel() -> None:
    assert VERSIONS.keys() == WHEELS.keys() >= {"cublas", "cufft"}
