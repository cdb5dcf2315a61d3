"""How many threads BLAS uses in compiled functions, and that others see nothing of it."""

import pickle
import threading

import numpy as np
import pytest
import scipy.linalg
import threadpoolctl

import symcomp
import symcomp.tensor as T
from symcomp import as_op
from symcomp.config import config
from symcomp.cvm import blas_threads
from symcomp.cvm.blas_threads import blas_threads_to_use, threads_of_products
from symcomp.cvm.machine import BlasLibrary

# So that SciPy's BLAS is there from the beginning.
scipy.linalg.get_blas_funcs("gemm")


def in_use():
    """Return the number of threads of each BLAS."""
    libraries = threadpoolctl.ThreadpoolController().lib_controllers
    return [x.get_num_threads() for x in libraries if x.user_api == "blas"]


@as_op(itypes=[T.dmatrix], otypes=[T.dmatrix])
def seen(x):
    """Return the largest number of threads that BLAS would use now, added to x."""
    return x + max(in_use())


@as_op(itypes=[T.dmatrix], otypes=[T.dmatrix])
def broken(x):
    raise RuntimeError("broken")


def compiled(threads, op=seen):
    x = T.dmatrix("x")
    with config.change_flags(blas_threads=threads):
        return symcomp.function([x], op(T.dot(x, x)))


ZEROS = np.zeros((2, 2))


def test_within_a_call():
    before = in_use()
    for threads in (1, 3):
        f = compiled(threads)
        assert f(ZEROS)[0, 0] == threads
        assert in_use() == before
        f.container["x"].value = ZEROS
        assert f.fn(n_calls=2)[0][0, 0] == threads
        assert in_use() == before
        assert f.copy()(ZEROS)[0, 0] == max(before)  # compiled outside
    assert compiled(0)(ZEROS)[0, 0] == max(before)


class Library:
    """Instead of a BLAS: how often the number of its threads was set."""

    count, n_set = 4, 0

    def get_num_threads(self):
        return self.count

    def set_num_threads(self, count):
        self.count = count
        self.n_set += 1


@pytest.mark.parametrize(
    ("build", "shape", "n_set"),
    [
        (lambda x: x + 1, (3, 3), 0),
        (lambda x: T.dot(x, x), (60, 60), 0),
        (lambda x: T.dot(x, x), (100, 100), 2),
        (lambda x: T.dot(x, x[0]), (100, 100), 2),
        (lambda x: T.nlinalg.qr(x)[1], (3, 3), 2),
    ],
)
def test_plans_without_large_products_set_nothing(monkeypatch, build, shape, n_set):
    library = Library()
    libraries = [BlasLibrary(library)]
    monkeypatch.setattr(blas_threads, "_libraries", lambda: libraries)
    x = T.dmatrix("x")
    with config.change_flags(blas_threads=1, kernels=True):
        f = symcomp.function([x], build(x))
    f(np.eye(*shape))
    library.n_set = 0
    f(np.eye(*shape))
    assert (library.n_set, library.count) == (n_set, 4)


def test_after_a_call_that_failed():
    before = in_use()
    with pytest.raises(RuntimeError, match="broken"):
        compiled(1, broken)(ZEROS)
    assert in_use() == before


def test_functions_within_functions():
    inner = compiled(3)

    @as_op(itypes=[T.dmatrix], otypes=[T.dmatrix])
    def outer(x):
        first = inner(ZEROS)[0, 0]
        return x + 10 * first + max(in_use())

    before = in_use()
    assert compiled(2, outer)(ZEROS)[0, 0] == 32
    assert in_use() == before


def test_several_threads_of_python():
    before = in_use()
    barrier = threading.Barrier(4)

    @as_op(itypes=[T.dmatrix], otypes=[T.dmatrix])
    def together(x):
        barrier.wait(60)
        return x

    functions = [compiled(1 + k % 2, together) for k in range(4)]
    threads = [threading.Thread(target=f, args=(ZEROS,)) for f in functions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert in_use() == before


def test_what_the_options_say(monkeypatch):
    assert blas_threads_to_use() == 0
    assert threads_of_products() == 0
    with config.change_flags(openmp=True, openmp_threads=3):
        assert blas_threads_to_use() == 1
        assert threads_of_products() == 3
        with config.change_flags(blas_threads=2):
            assert blas_threads_to_use() == 2
            assert threads_of_products() == 0
    monkeypatch.setenv("OMP_NUM_THREADS", "5")
    with config.change_flags(openmp=True):
        assert threads_of_products() == 5


def test_the_values_are_the_same():
    x = T.dmatrix("x")
    value = np.random.default_rng(0).normal(size=(300, 200))
    plain = symcomp.function([x], T.dot(x, x.T))
    with config.change_flags(blas_threads=1):
        limited = symcomp.function([x], T.dot(x, x.T))
    np.testing.assert_allclose(limited(value), plain(value), rtol=1e-12)
    with config.change_flags(blas_threads=1):
        again = pickle.loads(pickle.dumps(limited))
    assert type(again) is type(limited)
    np.testing.assert_array_equal(again(value), limited(value))
