"""Kernels convert numbers of float16, and round others to them, as NumPy does."""

import numpy as np
import pytest

import symcomp
import symcomp.tensor as T
from symcomp.codegen.functions.c_scalars import converted

BITS = np.arange(1 << 16, dtype="uint16")


def same_bits(found, wanted):
    """Compare bits; NaN may have any, but has its sign."""
    assert found.dtype == wanted.dtype
    kind = f"u{found.dtype.itemsize}"
    are_nan = np.isnan(wanted)
    np.testing.assert_array_equal(np.isnan(found), are_nan)
    np.testing.assert_array_equal(np.signbit(found), np.signbit(wanted))
    np.testing.assert_array_equal(found.view(kind)[~are_nan], wanted.view(kind)[~are_nan])


def cast(x, dtype):
    given = T.vector(dtype=x.dtype.name)
    return symcomp.function([given], T.cast(given, dtype))(x)


def near_borders(dtype):
    """Return numbers of float16, the middles between them, and the numbers next to all these."""
    x = BITS[: 0x7C00].view("float16").astype(dtype)
    further = np.array([65504, 65520, 65536, 1e5, 1e30, np.finfo(dtype).max, np.inf], dtype)
    tiny = np.array([np.finfo(dtype).smallest_subnormal, np.finfo(dtype).tiny], dtype)
    here = np.concatenate([x, (x[1:] + x[:-1]) / 2, further, tiny])
    with np.errstate(over="ignore"):
        near = np.concatenate([here, np.nextafter(here, np.inf), np.nextafter(here, -np.inf)])
    return np.concatenate([near, -near, np.array([np.nan, -np.nan], dtype)]).astype(dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_all_numbers_of_float16_are_read(dtype):
    x = BITS.view("float16")
    same_bits(cast(x, dtype), x.astype(dtype))


@pytest.mark.parametrize("narrow", ["float16", "bfloat16"])
@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8"])
def test_truths_and_bytes_need_no_rounding(dtype, narrow):
    """Otherwise gradients of maxima are no loops over vectors."""
    x = np.arange(256).astype(dtype)
    np.testing.assert_array_equal(cast(x, narrow).astype("float64"), x)
    assert "_of" not in converted("x", dtype, narrow)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_numbers_are_rounded_to_float16_once(dtype):
    x = near_borders(dtype)
    with np.errstate(over="ignore"):
        same_bits(cast(x, "float16"), x.astype("float16"))


@pytest.mark.parametrize("name", ["add", "mul", "true_div"])
def test_arithmetic_of_float16_is_rounded(name):
    """Results of float32 are rounded once more, to the nearest ones (Figueroa, 1995)."""
    rng = np.random.default_rng(0)
    a, b = rng.permutation(BITS).view("float16"), rng.permutation(BITS).view("float16")
    x, y = T.vector(dtype="float16"), T.vector(dtype="float16")
    found = symcomp.function([x, y], getattr(T, name)(x, y))(a, b)
    with np.errstate(all="ignore"):
        wanted = getattr(np, {"add": "add", "mul": "multiply", "true_div": "divide"}[name])(a, b)
    kept = ~np.isnan(wanted)
    np.testing.assert_array_equal(np.isnan(found), ~kept)
    same_bits(found[kept], wanted[kept])


def test_additions_at_positions_are_rounded_one_by_one():
    x, y, i = T.vector(dtype="float16"), T.vector(dtype="float16"), T.lvector()
    rng = np.random.default_rng(0)
    at, more = rng.integers(0, 7, 200), rng.normal(size=200).astype("float16")
    found = symcomp.function([x, y, i], T.inc_subtensor(x[i], y))(np.zeros(7, "float16"), more, at)
    wanted = np.zeros(7, "float16")
    np.add.at(wanted, at, more)
    same_bits(found, wanted)


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("name", ["cumsum", "cumprod"])
def test_steps_along_an_axis_are_rounded(name, axis):
    x = T.matrix(dtype="float16")
    value = np.random.default_rng(0).normal(size=(40, 30)).astype("float16")
    found = symcomp.function([x], getattr(T, name)(x, axis))(value)
    same_bits(found, getattr(np, name)(value, axis))


def test_ranges_of_float16():
    start, stop, step = (T.scalar(dtype="float16") for _ in range(3))
    f = symcomp.function([start, stop, step], T.arange(start, stop, step))
    arguments = [np.float16(v) for v in (-3, 5.5, 0.7)]
    wanted = np.float32(arguments[0]) + np.arange(13, dtype="f4") * np.float32(arguments[2])
    same_bits(f(*arguments), wanted.astype("float16"))
