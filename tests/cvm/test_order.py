"""The first elements of lines and the distinct ones: natively what Python gives, bit for bit."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import symcomp
import symcomp.tensor as T
from symcomp.core.tensor import TensorType
from symcomp.errors import ShapeError
from symcomp.ops.sorting.sort import Unique
from symcomp.ops.sorting.topk import ArgTopK
from symcomp.tests.cvm.looking import asked, in_python
from symcomp.tests.cvm.test_native import layouts
from symcomp.tests.cvm.test_other_products import DTYPES

RNG = np.random.default_rng(5)


def array(shape, dtype):
    """Numbers of which some are equal, and NaN, infinity and -0 where there are such."""
    x = RNG.integers(-6, 7, shape).astype("complex128")
    if dtype.startswith("c"):
        x += 1j * RNG.integers(-2, 3, shape)
    if dtype[0] in "fc" and x.size > 9:
        x.flat[::9], x.flat[1::7], x.flat[2::8] = np.nan, np.inf, -0.0
        x.flat[5] = complex(1, np.nan)
    return (x if dtype.startswith("c") else x.real).astype(dtype)


def compare(build, *values):
    inputs = [TensorType(v.dtype, (None,) * v.ndim)() for v in values]
    outputs = build(*inputs)
    outputs = outputs if isinstance(outputs, list) else [outputs]
    native, python = (
        symcomp.function(inputs, outputs, mode=symcomp.Mode(m)) for m in ("cvm", "vm")
    )
    assert not in_python(native)
    for placed in layouts(list(values)):
        for got, want in zip(native(*placed), python(*placed), strict=True):
            assert got.dtype == want.dtype and got.shape == want.shape
            np.testing.assert_array_equal(got, want)
        assert asked(native, placed) == []


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(1, 1), (5, 7), (3, 200)])
def test_the_first(dtype, shape):
    x = array(shape, dtype)
    for axis in (0, 1):
        for k in {1, min(3, shape[axis]), shape[axis]}:
            compare(lambda v: [ArgTopK(axis)(v, T.constant(s * k)) for s in (1, -1)], x)  # noqa: B023


@pytest.mark.parametrize("k", [0, 4, -4])
def test_there_are_not_so_many(k):
    x, n = T.dvector("x"), T.lscalar("n")
    f = symcomp.function([x, n], T.topk(x, n), mode=symcomp.Mode("cvm"))
    with pytest.raises(ShapeError, match="topk: kth="):
        f(np.ones(3), k)


@settings(deadline=None, max_examples=100)
@given(st.lists(st.integers(-9, 9), min_size=1, max_size=60), st.data())
def test_the_first_of_any(values, data):
    k = data.draw(st.integers(1, len(values)))
    x, n = T.lvector("x"), T.lscalar("n")
    f = symcomp.function([x, n], ArgTopK(0)(x, n), mode=symcomp.Mode("cvm", optimizer=None))
    array = np.array(values)
    assert f(array, k).tolist() == np.argsort(-array, kind="stable")[:k].tolist()
    assert f(array, -k).tolist() == np.argsort(array, kind="stable")[:k].tolist()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("flags", [(False,) * 3, (True,) * 3, (False, True, False)])
def test_the_distinct(dtype, flags):
    for shape in ((5, 7), (1, 1), (0, 3), (30, 40)):
        compare(lambda v: Unique(None, *flags)(v), array(shape, dtype))


@pytest.mark.parametrize("dtype", DTYPES)
def test_positions_in_order(dtype):
    for shape in ((5, 7), (1, 1), (0, 3), (3, 16), (3, 17), (33, 35), (2, 3000)):
        x = array(shape, dtype)
        for value in (x, np.sort(x), np.sort(x)[:, ::-1].copy()):
            compare(lambda v: [T.argsort(v, axis=1), T.argsort(v, axis=0)], value)


@settings(deadline=None, max_examples=60)
@given(st.lists(st.integers(-300, 300), max_size=80), st.sampled_from(DTYPES))
def test_the_order_of_any(values, dtype):
    x = T.TensorType(dtype, (None,))("x")
    f = symcomp.function([x], T.argsort(x), mode=symcomp.Mode("cvm", optimizer=None))
    given = np.array(values, "int64").astype(dtype)
    np.testing.assert_array_equal(f(given), np.argsort(given, kind="stable"))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("n", [1, 2, 15, 16, 17, 31, 32, 33, 47, 63, 64, 65, 100, 1025, 3000])
def test_positions_of_extremes_among_equal_and_strange_numbers(dtype, n):
    """The first of the best, or the first NaN, as NumPy finds them."""
    x = T.matrix("x", dtype)
    f = symcomp.function([x], [x.argmax(axis=1), x.argmin(axis=1), x.argmax(), x.argmin()])
    rng = np.random.default_rng(n)
    kinds = [
        rng.normal(size=(40, n)),
        rng.integers(-2, 3, (40, n)),  # many are equal
        rng.choice([0.0, -0.0], (40, n)),
        rng.choice([np.inf, -np.inf, 1e30, 0.0], (40, n)),
        np.full((3, n), -np.inf),
        np.where(rng.random((40, n)) < 1 / n, np.nan, rng.normal(size=(40, n))),
        np.sort(rng.normal(size=(5, n)), axis=1),
        np.sort(rng.normal(size=(5, n)), axis=1)[:, ::-1],
    ]
    for kind in kinds:
        value = kind.astype(dtype)
        strided = np.repeat(value, 2, axis=1)[:, ::2]
        for z in (value, value[::-1], value[:, ::-1], strided, np.asfortranarray(value)):
            wanted = z.argmax(axis=1), z.argmin(axis=1), z.argmax(), z.argmin()
            for got, want in zip(f(z), wanted, strict=True):
                np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("n", [511, 512, 5000])
@pytest.mark.parametrize("dtype", [d for d in DTYPES if d[0] != "c"])
def test_positions_of_many(dtype, n):
    """Keys that differ in few bytes, in all, in the lowest alone, and those nearly in order."""
    x = TensorType(dtype, (None,))()
    f = symcomp.function([x], T.argsort(x), mode=symcomp.Mode("cvm"))
    bits = RNG.integers(0, 256, n * np.dtype(dtype).itemsize).astype("uint8")
    narrow = array((n,), dtype)
    cases = [narrow, np.sort(narrow), narrow[::-1]]
    if dtype != "bool":
        wide, high = bits.view(dtype), 1 << 20 if np.dtype(dtype).itemsize > 2 else 0
        nearly = np.sort(wide)
        nearly[:10:2], nearly[1:10:2] = nearly[1:10:2].copy(), nearly[:10:2].copy()
        cases += [wide, nearly, (RNG.integers(0, 100, n) + high).astype(dtype)]
    for case in cases:
        np.testing.assert_array_equal(f(case), np.argsort(case, kind="stable"))
