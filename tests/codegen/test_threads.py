"""Kernels that threads share: the same bits for any number of threads."""

import os

import numpy as np
import pytest

import symcomp
import symcomp.tensor as T
from symcomp.codegen.kernel import kernel_of, print_kernel
from symcomp.config import config
from symcomp.cvm.kernels import threads_to_use
from symcomp.ops.elementwise.elemwise import ROWS
from symcomp.ops.formulas.formula import Formula, Result, Step
from symcomp.ops.reductions.reduce import REDUCTIONS, Reduce
from symcomp.tests.codegen.running import addresses, assert_same_bits, attempt, call
from symcomp.tests.codegen.test_loopir import formula_with, nests, values_of

KIND = "float64"


def elementwise():
    """tanh(exp(x) y)"""
    steps = (
        Step(ROWS["exp"](), (0,), KIND),
        Step(ROWS["mul"](), (2, 1), KIND),
        Step(ROWS["tanh"](), (3,), KIND),
    )
    return Formula((KIND,) * 2, (), steps, (Result(4),))


def reduction(name, axes):
    """Compute tanh(x), and the largest distance from it."""
    steps = (
        Step(ROWS["tanh"](), (0,), KIND),
        Step(Reduce(REDUCTIONS[name], axes), (2,), KIND),
        Step(ROWS["sub"](), (1, 3), KIND),
        Step(Reduce(REDUCTIONS["max"], axes), (4,), KIND),
    )
    return Formula((KIND,) * 2, (), steps, (Result(3, axes), Result(5, axes)))


FORMULAS = [
    elementwise(),
    *(reduction(name, axes) for name in ("sum", "max") for axes in ((0,), (1,), (0, 1))),
]
SHAPES = (
    (1, 300_001), (300_001, 1), (301, 900), (3, 100_001), (100_001, 3), (512, 1024), (2048, 133),
)  # fmt: skip


def test_any_number_of_threads():
    rng = np.random.default_rng(3)
    functions = addresses([kernel_of(formula, [(False, False)] * 2) for formula in FORMULAS])
    for shape in SHAPES:
        x, y = rng.normal(size=(2, *shape))
        for values in ([x, y], [x.T.copy().T, y[::-1]]):
            for formula, function in zip(FORMULAS, functions, strict=True):
                want = call(function, formula, values)
                for threads in (2, 5):
                    got = call(function, formula, values, threads=threads)
                    for a, b in zip(got, want, strict=True):
                        np.testing.assert_array_equal(a, b)
        want = np.tanh(np.exp(x) * y)
        np.testing.assert_allclose(call(functions[0], FORMULAS[0], [x, y])[0], want)


def test_any_number_of_threads_on_random_nests():
    found = nests(7, 10)
    functions = addresses([print_kernel(made) for _, _, made in found])
    rng = np.random.default_rng(9)
    for (formula, patterns, made), function in zip(found, functions, strict=True):
        for shape in ((70, 60, 41), (3, 2, 40_001), (50_001, 1, 4)):
            values = [
                values_of(rng, dtype, [1 if one else n for one, n in zip(p, shape, strict=False)])
                for dtype, p in zip(formula.inputs, patterns, strict=True)
            ]
            given = formula_with(formula, made.literals), values
            status, want = attempt(function.optimized, *given)
            for threads in (2, 5):
                other, got = attempt(function.optimized, *given, threads=threads)
                assert other == status == 0
                for a, b in zip(got, want, strict=True):
                    assert_same_bits(a, b)


def test_long_sums_are_exact_to_the_last_places():
    x = np.random.default_rng(4).random((1, 3_000_000))
    for name, reference in (
        ("sum", np.tanh(x).astype("longdouble").sum()),
        ("max", np.tanh(x).max()),
    ):
        formula = reduction(name, (0, 1))
        (function,) = addresses([kernel_of(formula, [(False, False)] * 2)])
        total, _ = call(function, formula, [x, x])
        np.testing.assert_allclose(float(total), float(reference), rtol=4e-16)


def test_functions_with_threads():
    x = T.dmatrix("x")
    outputs = [T.exp(x) - 1, T.exp(x).sum(), T.tanh(x).sum(axis=0), x.max(axis=1)]
    value = np.random.default_rng(5).normal(size=(500, 1000))
    found = []
    for flags in ({"openmp": False}, {"openmp": True, "openmp_threads": 3}):
        with config.change_flags(kernels=True, **flags):
            f = symcomp.function([x], outputs, mode=symcomp.Mode("cvm"))
            found.append(f(value))
    for a, b in zip(*found, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system does not fork")
def test_a_child_does_not_wait_for_threads():
    x = T.dvector("x")
    with config.change_flags(kernels=True, openmp=True, openmp_threads=2):
        f = symcomp.function([x], T.exp(x).sum(), mode=symcomp.Mode("cvm"))
    value = np.zeros(500_000)
    assert f(value) == value.size
    child = os.fork()
    if child == 0:
        os._exit(0 if f(value) == value.size else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_how_many_threads(monkeypatch):
    assert threads_to_use() == 1
    with config.change_flags(openmp=True, openmp_threads=7):
        assert threads_to_use() == 7
    with config.change_flags(openmp=True):
        monkeypatch.setenv("OMP_NUM_THREADS", "3,2")
        assert threads_to_use() == 3
        monkeypatch.delenv("OMP_NUM_THREADS")
        assert threads_to_use() >= 1


def test_no_more_threads_than_are_of_use(monkeypatch):
    most = max(64, len(os.sched_getaffinity(0)))
    with config.change_flags(openmp=True, openmp_threads=1000):
        assert threads_to_use() == most
    with config.change_flags(openmp=True, openmp_threads=3):
        assert threads_to_use() == 3
    monkeypatch.setenv("OMP_NUM_THREADS", "100000")
    with config.change_flags(kernels=True, openmp=True):
        assert threads_to_use() == most
        x = T.dvector("x")
        f = symcomp.function([x], [T.exp(x).sum(), T.exp(x) * 2], mode=symcomp.Mode("cvm"))
    total, twice = f(np.zeros(500_000))
    assert total == 500_000 and (twice == 2).all()
