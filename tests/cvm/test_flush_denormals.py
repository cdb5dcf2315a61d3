"""config.flush_denormals: numbers below the least normal one are 0 in calls, and nowhere else."""

import numpy as np
import pytest

import symcomp
import symcomp.tensor as T
from symcomp.config import config
from symcomp.cvm.machine import can_flush_denormals

pytestmark = pytest.mark.skipif(not can_flush_denormals, reason="this processor cannot")

TINY = {dtype: np.finfo(dtype).tiny for dtype in ("float32", "float64")}


def halves(dtype, **flags):
    """Compile x / 2."""
    x = T.vector("x", dtype=dtype)
    with config.change_flags(**flags):
        return symcomp.function([x], x * np.asarray(0.5, dtype))


@pytest.mark.parametrize("dtype", TINY)
@pytest.mark.parametrize("flags", [{}, {"kernels": False}, {"linker": "py"}], ids=str)
@pytest.mark.parametrize("n", [1, 7, 1000])
def test_results(dtype, flags, n):
    tiny = np.full(n, TINY[dtype])
    kept, flushed = halves(dtype, **flags), halves(dtype, flush_denormals=True, **flags)
    for _ in range(3):
        assert (kept(tiny) == tiny / 2).all() and (tiny / 2 > 0).all()
        assert (flushed(tiny) == 0).all()
        assert (flushed(4 * tiny) == 2 * tiny).all()


@pytest.mark.parametrize("dtype", TINY)
def test_operands(dtype):
    x = T.vector("x", dtype=dtype)
    large = np.asarray(2**20, dtype)
    with config.change_flags(flush_denormals=True):
        f = symcomp.function([x], x * large)
    assert f(np.full(5, TINY[dtype] / 4)).tolist() == [0] * 5


def test_loops():
    h, n = T.fvector("h"), T.iscalar("n")
    with config.change_flags(flush_denormals=True):
        last = symcomp.scan(
            lambda h: h * np.float32(0.5), outputs_info=h, n_steps=n, return_updates=False
        )[-1]
        f = symcomp.function([h, n], last)
    assert f(np.ones(3, "float32"), 126).tolist() == [2.0**-126] * 3
    assert f(np.ones(3, "float32"), 127).tolist() == [0] * 3


def test_products():
    a, b = T.fmatrices("a", "b")
    with config.change_flags(flush_denormals=True):
        f = symcomp.function([a, b], T.dot(a, b))
    tiny = TINY["float32"]
    assert (f(np.full((3, 4), tiny), np.full((4, 5), np.float32(0.125))) == 0).all()


def test_several_threads():
    flags = {"openmp": True, "openmp_threads": 2, "openmp_elemwise_minsize": 1}
    tiny = np.full(500_000, TINY["float32"])
    kept = halves("float32", **flags)
    flushed = halves("float32", flush_denormals=True, **flags)
    for _ in range(5):
        assert (flushed(tiny) == 0).all()
        assert (kept(tiny) > 0).all()


@pytest.mark.parametrize("linker", ["cvm", "py"])
def test_the_caller_computes_as_before(linker):
    x, i = T.fvector("x"), T.lscalar("i")
    with config.change_flags(flush_denormals=True, linker=linker):
        f = symcomp.function([x, i], (x * np.float32(0.5))[i])
    tiny = np.full(3, TINY["float32"])
    assert f(tiny, 1) == 0
    assert (tiny * np.float32(0.5) > 0).all()
    with pytest.raises(IndexError):
        f(tiny, 3)
    assert (tiny * np.float32(0.5) > 0).all()


def test_updates_and_rows_of_calls():
    state = symcomp.shared(np.full(4, 8 * TINY["float32"]))
    with config.change_flags(flush_denormals=True):
        f = symcomp.function([], updates=[(state, state * np.float32(0.5))])
    f.fn(n_calls=3)
    assert (state.get_value() == TINY["float32"]).all()
    f.fn(n_calls=1)
    assert (state.get_value() == 0).all()


def test_python_ops_flush_too():
    x = T.fvector("x")
    half = symcomp.as_op([T.fvector], [T.fvector])(lambda v: v * np.float32(0.5))
    with config.change_flags(flush_denormals=True):
        f = symcomp.function([x], half(x))
    assert (f(np.full(4, TINY["float32"])) == 0).all()


def test_processors_that_cannot(monkeypatch):
    monkeypatch.setattr(symcomp.compile.callable, "can_flush_denormals", False)
    halves("float32")
    with pytest.raises(ValueError, match=r"config\.flush_denormals is True.*set it to False"):
        halves("float32", flush_denormals=True)
