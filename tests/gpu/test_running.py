"""Cumulative sums and products, and recurrences, in order and by parts, on the emulator."""

from typing import Any

import numpy as np
import pytest

import symcomp
import symcomp.tensor as T
from symcomp.config import config
from symcomp.gpu import to_gpu
from symcomp.gpu.driver.devices import driver_of
from symcomp.gpu.driver.emulator import Emulator
from symcomp.gpu.kernels import running, running_parts
from symcomp.gpu.kernels.lines import tile_length
from symcomp.ops.reductions.cumulative import LinearRecurrence
from symcomp.tests.gpu.running import DEVICE, check

RNG = np.random.default_rng(0)
START = RNG.bit_generator.state
DTYPES = ("float16", "float32", "float64", "bool", "int8", "uint32", "int64", "complex64")


@pytest.fixture(autouse=True)
def the_same_numbers() -> None:
    """Let each test have the numbers that it has alone."""
    RNG.bit_generator.state = START


def numbers(*shape: int, dtype: str = "float32") -> Any:
    """Return random numbers, truths or integers."""
    if dtype == "bool":
        return RNG.random(shape) > 0.5
    return (RNG.standard_normal(shape) * (1 if dtype[0] in "fc" else 50)).astype(dtype)


def is_complex(dtype: str) -> bool:
    """Return whether the host cuts parts of arguments of a dtype."""
    return dtype.startswith("complex")


@pytest.fixture
def long_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let blocks have as many lines as they can."""
    monkeypatch.setattr(running, "MANY_BLOCKS", 1)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(1, 1), (3, 1100), (33, 129), (130, 30), (5, 300)])
def test_lines_in_order(
    emu: Emulator, long_blocks: None, monkeypatch: pytest.MonkeyPatch, dtype: str, shape: Any
) -> None:
    """Results are those of the processor, bit by bit, however lines lie."""
    monkeypatch.setattr(running_parts, "FEW_LINES", 0)
    x = T.tensor(dtype, (None, None))
    t = T.as_tensor_variable(to_gpu(x, DEVICE))
    z = [T.cumsum(t, axis=1), T.cumsum(t, axis=0), T.cumsum(t.T, axis=0), T.cumprod(t, axis=1)]
    z += [T.cumsum(t[:, ::-2], axis=1), T.cumsum(t[::-1, 1:], axis=0), T.cumsum(t.flatten())]
    check([x], z, [numbers(*shape, dtype=dtype)], 0, orders=[0, 2], on_host=is_complex(dtype))


@pytest.mark.parametrize("dtype", ["float32", "int8", "complex128"])
def test_several_axes_in_order(emu: Emulator, long_blocks: None, dtype: str) -> None:
    x, v = T.tensor(dtype, (None,) * 3), T.tensor(dtype, (None,))
    t, u = T.as_tensor_variable(to_gpu(x, DEVICE)), T.as_tensor_variable(to_gpu(v, DEVICE))
    z = [T.cumsum(y, axis=a) for a in range(3) for y in (t, t[::2, :, 1:], t.dimshuffle(1, 2, 0))]
    z += [T.cumprod(t[:, ::-1], axis=a) for a in range(3)]
    z += [T.cumsum(T.alloc(u, 3, 5, u.shape[0]), axis=a) for a in range(3)]
    values = numbers(7, 40, 6, dtype=dtype), numbers(9, dtype=dtype)
    check([x, v], z, values, 0, orders=[0], on_host=is_complex(dtype))


def test_empty_lines(emu: Emulator) -> None:
    x = T.fmatrix("x")
    f = check([x], T.cumsum(to_gpu(x, DEVICE), axis=1), [numbers(0, 3)], 0, orders=[0])
    assert f(numbers(4, 0)).shape == (4, 0)


@pytest.mark.parametrize("dtype", ["float16", "float32", "complex64"])
def test_recurrences(emu: Emulator, long_blocks: None, dtype: str) -> None:
    a, b = T.tensor(dtype, (None, None)), T.tensor(dtype, (None, None))
    t, u = (T.as_tensor_variable(to_gpu(y, DEVICE)) for y in (a, b))
    z = [LinearRecurrence(axis)(t, u) for axis in (0, 1)]
    z += [LinearRecurrence(1)(t[:, ::-1], u), LinearRecurrence(0)(t.T, u[::-1].T)]
    values = numbers(40, 130, dtype=dtype), numbers(40, 130, dtype=dtype)
    values[0][:, 0] = np.inf  # the first rates play no part
    with np.errstate(all="ignore"):
        units = 2 if is_complex(dtype) else 0
        check([a, b], z, values, units, orders=[0, 2], on_host=is_complex(dtype))


def test_how_many_lines_a_block_has() -> None:
    lines = {n: running._lines_of_block(n, 8192, "float32") for n in (1, 1024, 4096, 8192, 10**6)}
    assert lines == {1: 4, 1024: 4, 4096: 16, 8192: 32, 10**6: 32}
    assert running._lines_of_block(10**6, 20, "float32") == 128
    assert running._lines_of_block(10**6, 64, "float32") == 64


@pytest.mark.parametrize("dtype", ["bool", "int8", "int32", "uint16", "int64"])
def test_integers_by_parts(emu: Emulator, dtype: str) -> None:
    """Whole tiles, one element more, many parts."""
    x = T.tensor(dtype, (None, None))
    t = T.as_tensor_variable(to_gpu(x, DEVICE))
    z = [T.cumsum(t, axis=1), T.cumsum(t[:, ::-2], axis=1), T.cumsum(t.T, axis=0)[::-1]]
    z += [T.cumsum(t[0]), T.cumprod(t[0, :9])]
    running_parts.parts_kernel.cache_clear()
    for shape in (3, 2048), (2, 2049), (1, 9000), (5, 1100):
        check([x], z, [numbers(*shape, dtype=dtype)], 0)
    assert running_parts.parts_kernel.cache_info().misses >= 2


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("enough", [1, 512])
def test_floats_by_parts(
    emu: Emulator, monkeypatch: pytest.MonkeyPatch, dtype: str, enough: int
) -> None:
    """Sums differ from exact ones by a rounding, and are the same in all orders of threads."""
    monkeypatch.setattr(running_parts, "ENOUGH", enough)
    x = T.tensor(dtype, (None, None))
    t = T.as_tensor_variable(to_gpu(x, DEVICE))
    with config.change_flags(device=DEVICE):
        f = symcomp.function([x], [T.cumsum(t, axis=1), T.cumsum(t.T[::-1], axis=0)])
    n = tile_length(dtype)
    for shape in (2, n), (1, n + 1), (3, 2 * n + 100), (1, 1025):
        value = numbers(*shape, dtype=dtype)
        wanted = np.cumsum(value.astype(np.longdouble), axis=1)
        turned = np.cumsum(value.astype(np.longdouble)[:, ::-1], axis=1).T
        found = []
        for order in (0, 2):
            driver_of(DEVICE).order = order
            found.append(f(value))
            for one, other in zip(found[-1], (wanted, turned), strict=True):
                eps = float(np.finfo(dtype).eps)
                # Sums of float16 are those of float32, rounded once.
                np.testing.assert_allclose(one, other.astype("float64"), rtol=eps, atol=eps / 8)
        assert all(a.tobytes() == b.tobytes() for a, b in zip(*found, strict=True))


def test_sums_that_cancel_by_parts(emu: Emulator) -> None:
    x = T.fvector("x")
    with config.change_flags(device=DEVICE):
        f = symcomp.function([x], T.cumsum(to_gpu(x, DEVICE)))
    # Eighths, whose sums, and those of the errors beside 2^40, have no more than 24 bits.
    value = (np.random.default_rng(0).integers(-16, 17, 9000) / 8).astype("float32")
    value[[100, 5000]] = 2.0**40, -(2.0**40)
    wanted = np.cumsum(value.astype("float64")).astype("float32")
    np.testing.assert_array_equal(f(value), wanted)


def test_infinite_numbers_by_parts(emu: Emulator) -> None:
    x = T.fvector("x")
    with config.change_flags(device=DEVICE):
        f = symcomp.function([x], T.cumsum(to_gpu(x, DEVICE)))
    value = np.ones(9000, "float32")
    value[[4200, 8300]] = np.inf, -np.inf
    for number in (1, np.nan):
        value[5000] = number
        with np.errstate(invalid="ignore"):
            np.testing.assert_array_equal(f(value), np.cumsum(value))
