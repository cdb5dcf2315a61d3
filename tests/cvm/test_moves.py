"""Elements moved between arrays of any order of axes, by blocks where the orders cross."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import symcomp
import symcomp.tensor as T
from symcomp.core.tensor import TensorType

DTYPES = ("bool", "int16", "int32", "float64", "complex128")  # a dtype of each size


def numbers(shape, dtype):
    """Return values of which no two neighbours are equal."""
    values = np.arange(np.prod(shape, dtype=int)).reshape(shape) * 7 % 251
    return (values % 3 == 0) if dtype == "bool" else values.astype(dtype)


@st.composite
def arrays(draw):
    """Draw an array of some axes in some order, each in either direction and with gaps or not."""
    lengths = draw(st.lists(st.sampled_from([0, 1, 2, 3, 4, 5, 9, 17]), min_size=1, max_size=3))
    if len(lengths) == 2:
        lengths = [2 * n + n // 5 for n in lengths]
    steps = [draw(st.sampled_from([1, -1, 2])) for _ in lengths]
    whole = numbers([2 * n for n in lengths], draw(st.sampled_from(DTYPES)))
    cut = whole[
        tuple(
            slice(None, n * s if s > 0 else n - 1, s) for n, s in zip(lengths, steps, strict=True)
        )
    ]
    return cut.transpose(draw(st.permutations(range(len(lengths)))))


FUNCTIONS = {}


def function_of(name, build, *values, borrow=False):
    """Compiled once for each dtype and number of axes."""
    key = (name, *((v.dtype, v.ndim) for v in values))
    if key not in FUNCTIONS:
        inputs = [TensorType(v.dtype, [None] * v.ndim)(f"x{i}") for i, v in enumerate(values)]
        outputs = build(*inputs)
        if borrow:
            outputs = symcomp.Out(outputs, borrow=True)
            inputs = [symcomp.In(v, borrow=True) for v in inputs]
        FUNCTIONS[key] = symcomp.function(inputs, outputs, mode=symcomp.Mode("cvm"))
    return FUNCTIONS[key]


@settings(deadline=None, max_examples=80)
@given(arrays())
def test_copies(x):
    f = function_of("copy", lambda v: [T.flatten(v), T.cpu_contiguous(v)], x)
    flat, whole = f(x)
    np.testing.assert_array_equal(flat, x.ravel())
    np.testing.assert_array_equal(whole, x)
    assert whole.flags.c_contiguous


@settings(deadline=None)
@given(arrays(), st.integers(0, 2))
def test_joins(x, axis):
    axis %= x.ndim
    f = function_of(f"join {axis}", lambda v: T.join(axis, v, v), x)
    np.testing.assert_array_equal(f(x), np.concatenate([x, x], axis))


@settings(deadline=None)
@given(arrays(), st.booleans())
def test_writes(x, sets):
    if x.dtype == bool and not sets:
        return
    whole = np.zeros([2 * n for n in x.shape], x.dtype)
    write = T.set_subtensor if sets else T.inc_subtensor

    def build(z, v):
        return write(z[tuple(slice(v.shape[i], None) for i in range(v.ndim))], v)

    want = whole.copy()
    want[tuple(slice(n, None) for n in x.shape)] = x
    np.testing.assert_array_equal(function_of(f"write {sets}", build, whole, x)(whole, x), want)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(1, 300), (3, 300), (300, 3), (64, 64), (67, 131), (7, 5, 66)])
def test_turned(shape, dtype):
    """All orders of axes, and lengths around those of blocks."""
    x = numbers(shape, dtype)
    f = function_of(
        "turned", lambda v: T.cpu_contiguous(v.dimshuffle(*range(v.ndim - 1, -1, -1))), x
    )
    np.testing.assert_array_equal(f(x), x.T)
    np.testing.assert_array_equal(f(x[::-1])[..., ::-1], x.T)
    for axis in range(1, x.ndim):
        turned = np.moveaxis(x, 0, axis)
        np.testing.assert_array_equal(f(turned), turned.T)


def test_writing_over_what_is_read():
    """A part turned, in the memory that it is read from."""
    start = np.arange(40.0 * 40).reshape(40, 40)
    state = symcomp.shared(start)
    f = symcomp.function([], updates=[(state, T.set_subtensor(state[:], state.T))])
    f()
    np.testing.assert_array_equal(state.get_value(), start.T)
    f()
    np.testing.assert_array_equal(state.get_value(), start)


@settings(deadline=None, max_examples=80)
@given(arrays(), st.lists(st.integers(1, 3), min_size=3, max_size=3))
def test_reshapes(x, counts):
    """Views where NumPy makes views, with the same steps, else copies."""
    factors = [p for n in x.shape for p in ([2] * (n // 2) if n in (2, 4) else [n])]
    factors = factors if np.prod(factors, dtype=int) == x.size else list(x.shape)
    shape = []
    for count in counts:
        shape.append(int(np.prod(factors[:count], dtype=int)))
        factors = factors[count:]
    shape.append(int(np.prod(factors, dtype=int)))
    f = function_of(
        "reshape", lambda v, s: T.reshape(v, s, len(shape)), x, np.array(shape), borrow=True
    )
    found, want = f(x, np.array(shape)), x.reshape(shape)
    np.testing.assert_array_equal(found, want)
    assert np.shares_memory(found, x) == np.shares_memory(want, x)
    steps = [
        [step for step, n in zip(z.strides, z.shape, strict=True) if n > 1] for z in (found, want)
    ]
    assert x.size == 0 or steps[0] == steps[1]


@pytest.mark.parametrize("shape", [(4, 3, 5, 1), (12, 5), (60,), (2, 2, 15), (1, 4, 3, 5), (20, 3)])
def test_reshapes_are_views(shape):
    """Reshapes are views where the elements need not be copied; reading from them shows it."""
    for x in (
        np.arange(240.0).reshape(4, 3, 20)[..., ::4],
        np.arange(60.0).reshape(3, 4, 5).swapaxes(0, 1),
    ):
        v = T.tensor("float64", shape=(None,) * 3)
        r = T.reshape(v, shape)
        f = symcomp.function([symcomp.In(v, borrow=True)], symcomp.Out(r, borrow=True))
        found, want = f(x), x.reshape(shape)
        np.testing.assert_array_equal(found, want)
        assert np.shares_memory(found, x) == np.shares_memory(want, x)
