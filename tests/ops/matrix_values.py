"""Matrices for the tests of linear algebra, and what these tests share."""

import numpy as np
import pytest

from symcomp.autodiff.check import check_derivatives
from symcomp.autodiff.lop import Lop
from symcomp.autodiff.rop import Rop
from symcomp.tests.harness import variables_for

RNG = np.random.default_rng(11)
START = RNG.bit_generator.state
KINDS = ("float64", "complex128")


@pytest.fixture(autouse=True)
def same_numbers():
    """Seed the numbers before each test of an importing module, independent of other tests."""
    RNG.bit_generator.state = START


def normal(*shape, dtype="float64"):
    """Random elements; of both parts if they are complex."""
    x = RNG.normal(size=shape)
    return x + 1j * RNG.normal(size=shape) if dtype == "complex128" else x


def positive(*shape, dtype="float64"):
    """Random positive definite matrices, well-conditioned."""
    x = normal(*shape, dtype=dtype)
    return x @ adjoint(x) + np.eye(shape[-1])


def adjoint(x):
    """Return the conjugate transposes."""
    return np.conj(np.swapaxes(x, -1, -2))


def diagonal(x):
    """``x`` with zeros beside the diagonal."""
    return x * np.eye(x.shape[-1])


def seen(x, lower, hermitian=True):
    """Return the symmetric or Hermitian matrix of which ``x`` holds a triangle."""
    half = np.tril(x, -1) if lower else np.triu(x, 1)
    if hermitian:
        return half + adjoint(half) + diagonal(x.real)
    return half + np.swapaxes(half, -1, -2) + diagonal(x)


def whole_numbers(dtype, size=3):
    """Return a small matrix in ``dtype`` that has an inverse in every dtype."""
    return np.tril(np.ones((size, size))).astype(dtype)


def as_numpy(function):
    """``function``, as NumPy computes it, of arrays whose dtype it may not know."""

    def call(*arrays):
        half = all(a.dtype == np.float16 for a in arrays)
        results = function(*(a.astype(np.float32) if half else a for a in arrays))
        several = isinstance(results, tuple)
        found = [np.asarray(r) for r in (results if several else (results,))]
        found = [r.astype(np.float16) if half and r.dtype == np.float32 else r for r in found]
        return found if several else found[0]

    return call


def check_second_derivatives(function, *values, tolerance=1e-5):
    """Both derivatives of the L-op and of the R-op against finite differences."""
    inputs = variables_for(values, "none")
    out = function(*inputs)
    rng = np.random.default_rng(5)
    seeds = [x.type(f"d{x}") for x in inputs]
    start = out.type("g")
    graphs = [*Lop(out, inputs, start), Rop(out, inputs, seeds)]
    shape = np.shape(out.eval(dict(zip(inputs, values, strict=True))))
    extra = [rng.normal(size=shape).astype(out.dtype)]
    extra += [rng.normal(size=np.shape(v)).astype(v.dtype) for v in values]
    everything = [*inputs, start, *seeds]
    for graph in graphs:
        check_derivatives(
            everything, graph, [*values, *extra], rng, abs_tol=tolerance, rel_tol=tolerance
        )
