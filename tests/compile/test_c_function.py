"""Functions as functions of C: values, threads without the GIL, failures, refusals."""

import ctypes
import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import symcomp
import symcomp.tensor as T
from symcomp import as_op
from symcomp.config import config
from symcomp.ifelse import ifelse

X = np.array([0.5, -1.0, 2.0])


@pytest.fixture(autouse=True, params=[True, False], ids=["kernels", "NumPy"])
def kernels(request):
    with config.change_flags(kernels=request.param):
        yield


def pointers(arrays):
    """Return the addresses of arrays, as C wants them."""
    return (ctypes.c_void_p * max(len(arrays), 1))(*(a.ctypes.data for a in arrays))


def called(c, *arguments):
    """Return the results of a call from C."""
    arguments = [
        np.array(a, dtype, order="C")
        for a, (dtype, _) in zip(arguments, c.argument_kinds, strict=True)
    ]
    for a, (_, shape) in zip(arguments, c.argument_kinds, strict=True):
        assert a.shape == shape
    results = [np.empty(shape, dtype) for dtype, shape in c.result_kinds]
    if c.ctypes(c.data, pointers(arguments), pointers(results)):
        raise c.error
    return results


def test_values_of_all_dtypes():
    kinds = ("bool", "int8", "uint16", "int64", "float32", "float64", "complex128")
    inputs = [T.vector(dtype=dtype) for dtype in kinds]
    outputs = [T.sum(x) for x in inputs] + [x[::-1] for x in inputs] + [inputs[0]]
    f = symcomp.function(inputs, outputs)
    examples = [np.array([0, 1, 1], dtype) for dtype in kinds]
    c = f.cfunc(*examples)
    values = [np.array([1, 1, 0], dtype) for dtype in kinds]
    for _ in range(3):
        for got, want in zip(called(c, *values), f(*values), strict=True):
            assert got.dtype == want.dtype
            np.testing.assert_array_equal(got, want)


@settings(max_examples=15, deadline=None)
@given(st.lists(st.integers(0, 4), min_size=1, max_size=3), st.booleans())
def test_shapes(shape, turned):
    x = T.tensor(dtype="float64", shape=(None,) * len(shape))
    z = T.exp(x.T if turned else x)
    f = symcomp.function([x], [z, z.sum(), x, T.concatenate([x, x])])
    value = np.random.default_rng(1).normal(size=shape)
    c = f.cfunc(np.zeros(shape))
    for got, want in zip(called(c, value), f(value), strict=True):
        np.testing.assert_allclose(got, want)


def test_results_that_are_the_same_or_constant():
    x = T.dvector("x")
    y = x * 2
    c = symcomp.function([x], [y, y, x, T.constant(3.0), y[1:]]).cfunc(X)
    for _ in range(2):
        for got, want in zip(called(c, X), [X * 2, X * 2, X, 3.0, X[1:] * 2], strict=True):
            np.testing.assert_array_equal(got, want)
    assert called(symcomp.function([], T.constant(2.0) + 1).cfunc()) == [3.0]


def test_values_that_are_kept():
    s, x, y = symcomp.shared(np.ones(3)), T.dvector("x"), T.dvector("y")
    f = symcomp.function([x, y], x * s + y)
    given = np.array([1.0, 2.0, 3.0])
    c = f.cfunc(X, given, fixed=[1])
    assert c.argument_kinds == (("float64", (3,)),)
    s.set_value(np.zeros(3))
    given[:] = 0
    np.testing.assert_array_equal(called(c, X)[0], X + [1, 2, 3])


def test_other_ways_than_that_of_the_examples():
    """Branches, loops and positions that the examples did not meet are planned when they are."""
    x, i = T.dvector("x"), T.lscalar("i")
    branch = ifelse(T.gt(x[0], 0), T.sort(x), -x)
    states, _ = symcomp.scan(lambda a: a * 2, outputs_info=[x], n_steps=4)
    f = symcomp.function([x, i], [branch, states[-1], x[i]])
    c = f.cfunc(X, 0)
    for value in (X, -X, X, -X):
        for k in (1, 2):
            for got, want in zip(called(c, value, k), f(value, k), strict=True):
                np.testing.assert_array_equal(got, want)


def test_failures():
    x, i = T.dvector("x"), T.lscalar("i")
    c = symcomp.function([x, i], x[i] * 2).cfunc(X, 0)
    assert c.error is None
    with pytest.raises(IndexError):
        called(c, X, 7)
    assert called(c, X, 1) == [-2.0]
    assert isinstance(c.error, IndexError)
    n = T.lscalar("n")
    ranges = symcomp.function([n], T.arange(n)).cfunc(3)
    with pytest.raises(ValueError, match="other shapes than those of the examples"):
        called(ranges, 4)
    np.testing.assert_array_equal(called(ranges, 3)[0], [0, 1, 2])


@as_op([T.dvector], [T.dvector])
def halves(x):
    if x[0] > 100:
        raise ArithmeticError("too large")
    return x / 2


def test_threads_without_the_gil():
    x = T.dvector("x")
    states, _ = symcomp.scan(lambda a: T.sin(a) + x, outputs_info=[x], n_steps=20)
    f = symcomp.function([x], [states[-1], T.dot(x, x), halves(x)])
    c = f.cfunc(X)
    wrong = []

    def work(k):
        value = X + k
        want = f(value)
        for _ in range(200):
            for got, z in zip(called(c, value), want, strict=True):
                if not np.allclose(got, z, rtol=1e-13):
                    wrong.append(k)
        try:
            called(c, value + 200)
        except ArithmeticError:
            return
        wrong.append(k)

    threads = [threading.Thread(target=work, args=[k]) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def test_a_caller_that_has_the_gil():
    x = T.dvector("x")
    c = symcomp.function([x], halves(T.exp(x))).cfunc(X)
    call = ctypes.PYFUNCTYPE(ctypes.c_int, *[ctypes.c_void_p] * 3)(c.address)
    z = np.empty(3)
    assert call(c.data, pointers([X]), pointers([z])) == 0
    np.testing.assert_allclose(z, np.exp(X) / 2)


@pytest.mark.parametrize("turned", [False, True])
def test_densities(turned):
    x = T.dvector("x")
    value = -0.5 * T.sum(x**2)
    outputs = [symcomp.grad(value, x), value] if turned else [value, symcomp.grad(value, x)]
    c = symcomp.function([x], outputs).cfunc(X)
    kinds = [ctypes.c_uint64, *[ctypes.c_void_p] * 4]
    density = ctypes.CFUNCTYPE(ctypes.c_int64, *kinds)(c.density_address)
    found, slope = np.empty(()), np.empty(3)
    assert density(3, X.ctypes.data, slope.ctypes.data, found.ctypes.data, c.data) == 0
    np.testing.assert_allclose(slope, -X)
    np.testing.assert_allclose(found, -0.5 * (X @ X))
    assert density(2, X.ctypes.data, slope.ctypes.data, found.ctypes.data, c.data) == -1
    infinite = np.array([np.inf, 0.0, 0.0])
    assert density(3, infinite.ctypes.data, slope.ctypes.data, found.ctypes.data, c.data) == 1
    assert symcomp.function([x], value).cfunc(X).density_address is None


def test_maps_of_vectors():
    x = T.dvector("x")
    c = symcomp.function([x], T.concatenate([x, x * 2])).cfunc(X)
    kinds = [ctypes.c_uint64, ctypes.c_uint64, *[ctypes.c_void_p] * 3]
    call = ctypes.CFUNCTYPE(ctypes.c_int64, *kinds)(c.map_address)
    z = np.empty(6)
    assert call(3, 6, X.ctypes.data, z.ctypes.data, c.data) == 0
    np.testing.assert_array_equal(z, np.r_[X, X * 2])
    assert call(3, 5, X.ctypes.data, z.ctypes.data, c.data) == -1
    assert symcomp.function([x], x.sum()).cfunc(X).map_address is None


def test_what_is_refused():
    s, x, y = symcomp.shared(1.0), T.dvector("x"), T.dvector("y")
    with pytest.raises(TypeError, match="has updates"):
        symcomp.function([x], x, updates={s: s + 1}).cfunc(X)
    with pytest.raises(TypeError, match=r"example of input 1 \(y, .*is missing"):
        symcomp.function([x, y], x + y).cfunc(X)
    with pytest.raises(TypeError, match="got 2 examples for 1 inputs"):
        symcomp.function([x], x).cfunc(X, X)
    with pytest.raises(TypeError, match="input 0 may be overwritten"):
        symcomp.function([symcomp.In(x, mutable=True)], x * 2).cfunc(X)
    with pytest.raises(TypeError, match="no native machine"):
        symcomp.function([x], x * 2, mode=symcomp.Mode(linker="py")).cfunc(X)
    with pytest.raises(ValueError, match=r"fixed=\[3\] names no input of 1"):
        symcomp.function([x], x).cfunc(X, fixed=[3])
    with config.change_flags(most_plans=0), pytest.raises(ValueError, match="most_plans is 0"):
        symcomp.function([x], x).cfunc(X)
    with pytest.raises(ValueError, match="could not be broadcast"):
        symcomp.function([x, y], x + y).cfunc(X, X[:2])
