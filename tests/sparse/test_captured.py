"""Matrices are passed to loops and graphs as their arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import symcomp
import symcomp.tensor as T
from symcomp import config, sparse
from symcomp.core.record import record
from symcomp.ifelse import ifelse
from symcomp.sparse.op import SparseOp
from symcomp.sparse.values import with_index_dtype
from symcomp.tests.cvm.looking import asked
from symcomp.tests.sparse.harness import random_sparse

A, B = sparse.csr_array("a"), sparse.csc_array("b")
X, S, N = T.dmatrix("x"), T.dscalar("s"), T.lscalar("n")
INPUTS = [A, B, X, S, N]


@record
class Stored(SparseOp):
    """n = the number of entries of x, by Python."""

    def output_types(self, x: Any) -> list[Any]:
        return [T.lscalar().type]

    def perform(self, x: Any) -> Any:
        assert sp.issparse(x)
        return np.asarray(x.nnz)


def graph(name: str, step: Callable[..., Any], *inputs: Any) -> symcomp.OpFromGraph:
    return symcomp.OpFromGraph(list(inputs), [step(*inputs)], name=name)


def product() -> Any:
    """Build a graph that takes two matrices, of two formats."""
    a, b, x = sparse.csr_array(), sparse.csc_array(), T.dmatrix()
    step = lambda a, b, x: sparse.structured_dot(a, x) + 2 * sparse.dot(b, x)  # noqa: E731
    return graph("product", step, a, b, x)


def of_a_graph() -> list[Any]:
    z = product()(A * S, A.T * 2.0, X)
    return [z, symcomp.grad((z**2).sum(), X)]


def of_a_loop() -> list[Any]:
    """Use a graph in the body of a loop, which then takes a matrix as it is."""
    op = product()
    rows, _ = symcomp.scan(
        lambda v, a, b: op(a, b, v[:, None]).sum(axis=1), X.T, non_sequences=[A * S, B * 2.0]
    )
    return [rows, sparse.dot(A * S, X)]


def of_loops_in_loops() -> list[Any]:
    """Build steps of as many steps as their numbers say, which use entries, too."""
    op = product()

    def step(i: Any, a: Any, b: Any) -> Any:
        u = symcomp.scan(
            lambda u, a, b: T.tanh(op(a, b, u)), None, X, [a, b], n_steps=i, return_updates=False
        )
        return T.concatenate([X[None], u])[-1], sparse.csm_data(a).sum() + 1

    rows, _ = symcomp.scan(step, T.arange(N), non_sequences=[A * S, A.T + B])
    return rows


def of_branches() -> list[Any]:
    op = product()
    chosen = ifelse(S > 0, A * S, A + A)
    rows, _ = symcomp.scan(lambda v, a, b: op(a, b, v[:, None])[0], X.T, non_sequences=[chosen, B])
    return [rows, op(chosen, B, X)]


def of_python() -> list[Any]:
    """Use an op without native code in a graph: it is given an object."""
    a, x = sparse.csr_array(), T.dmatrix()
    op = graph("stored", lambda a, x: x * Stored()(a), a, x)
    rows, _ = symcomp.scan(lambda v, a: op(a, v[:, None])[0], X.T, non_sequences=[A * S])
    return [op(A * S, X), rows]


BUILDS = [of_a_graph, of_a_loop, of_loops_in_loops, of_branches, of_python]


def compiled(build: Callable[[], list[Any]], linker: str, **options: Any) -> Any:
    with config.change_flags(linker=linker, kernels=True):
        return symcomp.function(INPUTS, build(), on_unused_input="ignore", **options)


def arguments(size: int, seed: int, steps: int = 3) -> list[Any]:
    rng = np.random.default_rng(seed)
    a, b = (
        with_index_dtype(random_sparse(size, size, density, zero=False), "int32")
        for density in rng.uniform(0.2, 0.9, 2)
    )
    x, s = rng.normal(size=(size, steps)), rng.choice([-1.5, 0.5])
    return [sp.csr_array(a), sp.csc_array(b), x, np.asarray(s), np.asarray(steps)]


def compare(found: list[Any], wanted: list[Any]) -> None:
    for x, y in zip(found, wanted, strict=True):
        assert (x.dtype, x.shape) == (y.dtype, y.shape)
        np.testing.assert_allclose(x, y, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("build", BUILDS)
def test_plans_are_repeated_without_objects(build: Callable[[], list[Any]]) -> None:
    f, python = compiled(build, "cvm", profile=True), compiled(build, "vm")
    values = arguments(5, 1)
    for _ in range(3):
        compare(f(*values), python(*values))
    plans = f.profile.to_dict()["functions"][0]["plans"]
    assert plans["runs"] == 3 and plans["kept"] == f.repeated == 2
    if build is not of_python:
        assert asked(f, values) == [] and "python" not in f.plan()


@pytest.mark.parametrize("build", BUILDS)
@settings(max_examples=6, deadline=None)
@given(
    turns=st.lists(
        st.tuples(st.integers(1, 6), st.integers(0, 3), st.integers(0, 3)), min_size=3, max_size=8
    )
)
def test_sizes_and_patterns_in_turn(build: Callable[[], list[Any]], turns: list[Any]) -> None:
    """Callers hold all results until the last call."""
    f, python = compiled(build, "cvm"), compiled(build, "vm")
    calls = [arguments(*turn) for turn in turns]
    held = [f(*values) for values in calls + calls]
    for found, values in zip(held, calls + calls, strict=True):
        compare(found, python(*values))


def of_each_row() -> list[Any]:
    """Use an argument with each row of a sequence: its entries at a pattern, rows of its shape."""
    rows, _ = symcomp.scan(
        lambda v: [
            sparse.csm_data(A * v), (A * v).toarray(), sparse.sp_sum(A * v, axis=1),
            sparse.csm_data(A * v + B.T.tocsr()), sparse.dot(A * v, v) * S,
        ],
        X.T,
    )  # fmt: skip
    return [*rows, *symcomp.grad((rows[4] ** 2).sum(), [X, S])]


def in_a_branch() -> list[Any]:
    rows, _ = symcomp.scan(lambda v: ifelse(v[0] > 0, sparse.dot(A * v, v), v * 2), X.T)
    return [rows]


@pytest.mark.parametrize("build", [of_each_row, in_a_branch])
def test_matrices_are_taken_apart_once(build: Callable[[], list[Any]]) -> None:
    """Before the first step, and also if there is none."""
    f, python = compiled(build, "cvm"), compiled(build, "vm")
    for steps in (3, 0, 3, 0):
        values = arguments(4, 2, steps)
        compare(f(*values), python(*values))
    assert f.repeated == 2
    assert asked(f, values) == [] and "python" not in f.plan()
    of_steps = [text for text in f.plan().split("plan ") if "nested" in text]
    assert "take apart" in f.plan() and of_steps
    assert not any("take apart" in text or "check pattern" in text for text in of_steps)


def test_rows_of_captured_matrices_without_steps() -> None:
    f = compiled(of_each_row, "cvm")
    for size, seed in ((4, 1), (3, 2), (4, 1)):
        values = arguments(size, seed, 0)
        entries, dense, sums, total, products, *_ = f(*values)
        both = (abs(values[0]) + abs(values[1].T)).nnz
        assert entries.shape == (0, values[0].nnz) and dense.shape == (0, size, size)
        assert sums.shape == products.shape == (0, size) and total.shape == (0, both)


def test_numbers_tell_lengths_without_steps() -> None:
    """Lengths that floats tell: other numbers have another plan, equal ones repeat it."""
    a = sparse.csr_array("a")
    v, c = T.dmatrix("v"), T.zvector("c")
    rows, _ = symcomp.scan(
        lambda v: [sparse.csm_data(sparse.remove0(a + a * v.sum())), T.ones(T.nonzero(c)[0].shape)],
        v,
    )
    with config.change_flags(kernels=True):
        f = symcomp.function([a, v, c], rows)
    values = [sp.csr_array(np.diag(d)) for d in ([1.0, 2.0], [3.0, 4.0])]
    for value in values * 3:
        value = sp.csr_array(value.copy())
        value.data[0] *= value.data[1] > 3
        kept, ones = f(value, np.ones((0, 2)), np.array([1j, 0, 1]))
        assert kept.shape == (0, np.count_nonzero(value.data)) and ones.shape == (0, 2)
    assert f.repeated == 4
    assert asked(f, [values[0], np.ones((0, 2)), np.array([1j, 0, 1])]) == []
