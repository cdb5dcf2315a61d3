"""Large results and shared values begin at cache lines; NumPy does with them what it did."""

import pickle

import numpy as np
import pytest

import symcomp
import symcomp.tensor as T
from symcomp.cvm.machine import aligned_copy

LINE = 64


def begins_at_line(array):
    return array.ctypes.data % LINE == 0 and array.flags.owndata


@pytest.mark.parametrize("dtype", ["uint8", "float16", "float32", "float64", "complex128"])
@pytest.mark.parametrize("shape", [(9000,), (64, 130), (3, 50, 60), (1500, 700)])
def test_copies(shape, dtype):
    values = np.random.default_rng(0).integers(0, 100, shape).astype(dtype)
    for array in (values, values.T, np.asfortranarray(values), values[::-1], values[..., ::2]):
        copy = aligned_copy(array)
        np.testing.assert_array_equal(copy, array)
        assert begins_at_line(copy) and copy.flags.writeable
        assert np.argsort(copy.strides).tolist() == np.argsort(np.abs(array.strides)).tolist()


@pytest.mark.parametrize("value", [np.zeros((0, 4)), np.float32(2.5), np.arange(3)])
def test_copies_of_small_ones(value):
    copy = aligned_copy(np.asarray(value))
    np.testing.assert_array_equal(copy, value, strict=True)
    assert copy.flags.owndata


@pytest.mark.parametrize("order", ["C", "F", "between"])
def test_results(order):
    x = T.tensor3()
    f = symcomp.function([x], [T.cumsum(x, axis=0), T.sort(x, axis=2), T.concatenate([x, x])])
    values = np.ones((7, 30, 50), symcomp.config.floatX)
    if order != "C":
        values = values.transpose((2, 1, 0) if order == "F" else (1, 0, 2))
    for _ in range(3):  # planned, repeated, and into arrays that are used again
        results = f(values)
        assert all(begins_at_line(z) for z in results)


@pytest.mark.overwrites
def test_shared_values_stay_at_lines():
    start = np.arange(3000.0)
    w = symcomp.shared(start)
    step = symcomp.function([], [], updates={w: w * 0.5 + 1})
    for _ in range(3):
        assert begins_at_line(w.get_value(borrow=True))
        step()
    w.set_value(start)
    assert begins_at_line(w.get_value(borrow=True))
    held = w.get_value(borrow=True)
    step()
    np.testing.assert_array_equal(held, start)
    assert begins_at_line(w.get_value(borrow=True))


def test_kept_as_they_are_if_borrowed():
    start = np.arange(3000.0)
    assert symcomp.shared(start, borrow=True).get_value(borrow=True) is start


@pytest.mark.parametrize("length", [600, 3001, 50_000, 2_000_000])
def test_numpy_resizes_them(length):
    array = aligned_copy(np.arange(3000.0))
    array.resize(length, refcheck=False)
    known = min(length, 3000)
    np.testing.assert_array_equal(array[:known], np.arange(float(known)))
    assert not array[known:].any() and array.ctypes.data % LINE == 0


def test_other_arrays_are_numpys():
    aligned_copy(np.arange(3000.0))
    name = np._core.multiarray.get_handler_name
    assert name() == name(np.arange(3000.0)) != name(aligned_copy(np.arange(3000.0)))


def test_saved_and_freed():
    copy = aligned_copy(np.arange(3000.0))
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(copy)), copy)
    view = copy[10:]
    del copy
    np.testing.assert_array_equal(view, np.arange(10.0, 3000))
