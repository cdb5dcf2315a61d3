"""Graphs used as ops whose results are sparse matrices: their plans are repeated without Python."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import symcomp
import symcomp.tensor as T
from symcomp import config, sparse
from symcomp.sparse.components import Assemble, Components
from symcomp.sparse.values import FORMATS, canonical, class_of, with_index_dtype
from symcomp.tests.cvm.looking import asked, in_python
from symcomp.tests.sparse.harness import random_sparse

OpFromGraph = symcomp.OpFromGraph


def matrix(name: str = "a", format: str = "csr") -> Any:
    return sparse.SparseType(format, "float64", container="array")(name)


def value_of(format: str, seed: int, density: float = 0.5, n: int = 6) -> Any:
    found = with_index_dtype(random_sparse(n, n, density, seed=seed, zero=False), "int32")
    return canonical(found.tobsr((2, 2))) if format == "bsr" else found.asformat(format)


def product(format: str = "csr") -> Any:
    a, x = matrix("a", format), T.dmatrix("x")
    return OpFromGraph([a, x], [sparse.structured_dot(a * 2.0, x) + sparse.dot(a, x**2)])


A, B, X = matrix("A"), matrix("B"), T.dmatrix("X")


def gradient() -> list[Any]:
    z = product()(A, X)
    return symcomp.grad((z**2).sum(), [A, X])


def of_columns() -> list[Any]:
    a = matrix("c", "csc")
    op = OpFromGraph([a, X], [sparse.dot(a, X), a.T * 2.0, a])
    z, turned, same = op(A.tocsc(), X)
    return [z, turned, same, symcomp.grad((z**2).sum(), A)]


def scaled() -> list[Any]:
    a, s = matrix(), T.dscalar("s")
    op = OpFromGraph([a, s], [-(a * s), a.tocsc(), s + 1])
    z, columns, more = op(A, X.sum())
    return [z, columns, more, sparse.dot(z + A, X)]


def of_two() -> list[Any]:
    """Let values tell how many entries there are."""
    a, b = matrix("a"), matrix("b")
    op = OpFromGraph([a, b], [a + b, sparse.true_dot(a, b)])
    z, y = op(A, B)
    return [z, y, sparse.dot(z, X)]


def in_graphs() -> list[Any]:
    a, x = matrix(), T.dmatrix("x")
    inner = OpFromGraph([a, x], symcomp.grad((product()(a, x) ** 2).sum(), [a, x]))
    ga, gx = inner(a, x)
    outer = OpFromGraph([a, x], [a - 0.1 * ga, x - 0.1 * gx])
    return outer(*outer(A, X))


def in_a_loop() -> list[Any]:
    op = OpFromGraph([A, X], [A * X.sum(), X])
    rows, _ = symcomp.scan(lambda v: sparse.dot(op(A, v[None])[0], v), X)
    return [rows, op(A, X)[0]]


def unchanged() -> list[Any]:
    return OpFromGraph([A, B], [B, A, B])(A, B)


BUILDS = [gradient, of_columns, scaled, of_two, in_graphs, in_a_loop, unchanged]


def compiled(build: Any, linker: str, **options: Any) -> Any:
    with config.change_flags(linker=linker, kernels=True):
        return symcomp.function([A, B, X], build(), on_unused_input="ignore", **options)


def arguments(seed: int, density: float = 0.5, n: int = 6) -> list[Any]:
    rng = np.random.default_rng(seed)
    matrices = [value_of("csr", seed + i, density, n) for i in range(2)]
    return [*map(sp.csr_array, matrices), rng.normal(size=(n, n))]


def compare(found: list[Any], wanted: list[Any]) -> None:
    for x, y in zip(found, wanted, strict=True):
        assert type(x) is type(y) and (x.dtype, x.shape) == (y.dtype, y.shape)
        if sp.issparse(x):
            assert x.format == y.format and x.has_canonical_format
            x, y = x.toarray(), y.toarray()
        np.testing.assert_allclose(x, y, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("build", BUILDS)
def test_plans_are_repeated_without_python(build: Any) -> None:
    f, python = compiled(build, "cvm", profile=True), compiled(build, "vm")
    values = arguments(1)
    for _ in range(3):
        compare(f(*values), python(*values))
    plans = f.profile.to_dict()["functions"][0]["plans"]
    assert plans["runs"] == 3 and plans["kept"] == f.repeated == 2
    if build is not unchanged:  # an argument that is returned is copied by its type
        assert in_python(f) == set() and asked(f, values) == [] and "python" not in f.plan()


@pytest.mark.parametrize("build", BUILDS)
@settings(max_examples=5, deadline=None)
@given(
    turns=st.lists(
        st.tuples(st.integers(0, 3), st.sampled_from([0.0, 0.3, 0.9]), st.integers(1, 6)),
        min_size=3, max_size=6,
    )
)  # fmt: skip
def test_sizes_and_patterns_in_turn(build: Any, turns: list[Any]) -> None:
    """Callers hold all results, and change some, until the last call."""
    f, python = compiled(build, "cvm"), compiled(build, "vm")
    calls = [arguments(*turn) for turn in turns]
    wanted = [python(*values) for values in calls + calls]
    held = [f(*values) for values in calls + calls]
    for found, expected in zip(held, wanted, strict=True):
        compare(found, expected)
        for z in found:
            (z.data if sp.issparse(z) else z)[...] = 0
    for values, expected in zip(calls, wanted, strict=False):
        compare(f(*values), expected)


@pytest.mark.parametrize("format", FORMATS)
def test_gradients_in_all_formats(format: str) -> None:
    a, x = matrix("a", format), T.dmatrix("x")
    data, *pattern = Components()(a)
    made = Assemble(a.type)(data**2, *pattern)
    op = OpFromGraph([a, x], [made, data.sum() * x])
    squared, scaled = op(a, x)
    slope = symcomp.grad((Components()(squared)[0] ** 2).sum() + scaled.sum(), a)
    value, ones = value_of(format, 3), np.ones((2, 2))
    with config.change_flags(linker="cvm", kernels=True):
        f = symcomp.function([a, x], [squared, slope])
    for _ in range(3):
        found, g = f(value, ones)
        assert type(found) is type(g) is class_of(format, "array")
        np.testing.assert_allclose(found.toarray(), value.toarray() ** 2)
        stored = value.toarray() != 0
        wanted = np.where(stored, 4 * value.toarray() ** 3 + 4, 0)
        np.testing.assert_allclose(np.where(stored, g.toarray(), 0), wanted)
    assert f.repeated == 2
    assert asked(f, [value, ones]) == []


def test_a_gradient_has_the_pattern_of_its_matrix() -> None:
    """The arrays of the pattern do not go through the graph."""
    a, x = matrix(), T.dmatrix("x")
    z = OpFromGraph([a, x], [sparse.structured_dot(a, x)])(a, x)
    f = symcomp.function([a, x], a - 0.5 * symcomp.grad(z.sum(), a))
    nodes = f.maker.fgraph.toposort()
    graphs = [node for node in nodes if isinstance(node.op, OpFromGraph)]
    assert all(len(node.outputs) == 1 for node in graphs)
    assert not any("CombinePatterns" in str(node.op) for node in nodes)
    value = value_of("csr", 2)
    stored = value.toarray() != 0
    wanted = value.toarray() - 0.5 * np.where(stored, 1.0, 0) * 4
    np.testing.assert_allclose(f(value, np.ones((6, 4))).toarray(), wanted)


def test_results_that_nothing_reads_are_not_computed() -> None:
    a, x = matrix(), T.dmatrix("x")
    op = OpFromGraph([a, x], [a * x[0, 0], T.exp(x)])
    f = symcomp.function([a, x], Components()(op(a, x)[0])[1])
    assert not any(isinstance(node.op, OpFromGraph) for node in f.maker.fgraph.toposort())
    value = value_of("csr", 4)
    np.testing.assert_array_equal(f(value, np.ones((6, 6))), value.indices)


@pytest.mark.parametrize("products", [True, False])
def test_patterns_are_checked_where_graphs_need_it(products: bool) -> None:
    a, x = matrix(), T.dmatrix("x")
    inner = OpFromGraph([a, x], [sparse.structured_dot(a, x)])
    op = OpFromGraph([a, x], [inner(a, x) if products else sparse.sp_sum(a, 1)[:, None] + x])
    f = symcomp.function([a, x], [op(a, x), sparse.dot(a, x)])
    value, dense = value_of("csr", 5), np.random.default_rng(1).normal(size=(6, 6))
    twisted = value.copy()
    twisted.indices[:2], twisted.data[:2] = value.indices[1::-1], value.data[1::-1]
    twisted.has_sorted_indices = twisted.has_canonical_format = False
    wanted = value @ dense if products else value.sum(axis=1)[:, None] + dense
    for argument in (value, twisted, value, twisted):
        found = f(argument, dense)
        np.testing.assert_allclose(found[0], wanted)
        np.testing.assert_allclose(found[1], value @ dense)
    assert ("check pattern" in f.plan()) != products
