"""Sparse matrices in plans: operands between calls, SciPy's objects at the edges, checks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import symcomp
import symcomp.tensor as T
from symcomp import sparse
from symcomp.core.record import record
from symcomp.errors import DTypeError, ShapeError, SparsePatternError
from symcomp.ifelse import ifelse
from symcomp.sparse.components import Assemble, Components
from symcomp.sparse.op import SparseOp
from symcomp.sparse.values import (
    FORMATS,
    assemble,
    canonical,
    class_of,
    components,
    put_together,
    with_index_dtype,
)
from symcomp.tests.cvm.looking import asked, in_python
from symcomp.tests.sparse.harness import random_sparse

S = with_index_dtype(random_sparse(6, 8, 0.5, zero=False), "int32")
#: The ops at the edges of plans.
EDGES = {"Components", "Assemble"}


def in_format(value: Any, format: str) -> Any:
    """Return a value in a format; with blocks of 2 x 2 in BSR."""
    if format == "bsr":
        return canonical(value.tobsr((2, 2)))  # SciPy leaves the blocks in any order
    return value.asformat(format)


def data_times_two(format: str, **options: Any) -> Any:
    """Return a function that takes a matrix apart and puts another one together, natively."""
    x = sparse.SparseType(format, "float64", container="array")("x")
    data, *pattern = Components()(x)
    z = Assemble(x.type)(data * 2, *pattern)
    return symcomp.function([x], z, **options)


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("container", ["array", "matrix"])
def test_objects_are_made_at_the_edges(format: str, container: str) -> None:
    f = data_times_two(format)
    value = with_index_dtype(in_format(S, format), "int32")
    value = assemble(format, container, components(value))
    found = [f(value) for _ in range(3)]
    assert not in_python(f) & EDGES and f.repeated == 2
    assert not EDGES & {*asked(f, [value])}
    for z in found:
        assert type(z) is class_of(format, "array")
        np.testing.assert_array_equal(z.toarray(), 2 * S.toarray())
    for z in found:  # each has arrays of its own
        z.data[:] = 0
    np.testing.assert_array_equal(f(value).toarray(), 2 * S.toarray())
    np.testing.assert_array_equal(value.toarray(), S.toarray())
    assert "take apart" in f.plan() and "check pattern" in f.plan()


@pytest.mark.parametrize("format", FORMATS)
def test_values_are_made_as_scipy_makes_them(format: str) -> None:
    value = in_format(S, format)
    parts = components(value)
    for container in ("array", "matrix"):
        made, wanted = (make(format, container, parts) for make in (assemble, put_together))
        assert set(vars(wanted)) <= set(vars(made)) and made._shape == wanted._shape
        assert made.has_canonical_format and (made != wanted).nnz == 0
        assert type(made) is type(wanted) and made.maxprint == wanted.maxprint


def changed(value: Any, **fields: Any) -> Any:
    """Return a copy with other arrays, of which SciPy looks at nothing."""
    made = value.copy()
    for name, array in fields.items():
        setattr(made, name, array)
    return made


def at(array: Any, place: int, number: int) -> Any:
    """Return a copy of an array with another number at a place."""
    array = array.copy()
    array[place] = number
    return array


BROKEN: dict[str, tuple[Callable[[Any], Any], str]] = {
    "decreasing pointers": (lambda v: changed(v, indptr=at(v.indptr, 2, 0)), "decreases|starts"),
    "negative pointer": (lambda v: changed(v, indptr=at(v.indptr, 1, -4)), "decreases"),
    "pointers begin late": (lambda v: changed(v, indptr=at(v.indptr, 0, 1)), "starts with 1"),
    "too many entries": (lambda v: changed(v, indptr=at(v.indptr, -1, 1000)), "ends with 1000"),
    "few pointers": (lambda v: changed(v, indptr=v.indptr[:-1]), "indptr has"),
    "large index": (lambda v: changed(v, indices=at(v.indices, 3, 2**31 - 1)), "index 2147483647"),
    "index at the end": (lambda v: changed(v, indices=at(v.indices, -1, 8)), "index 8"),
    "negative index": (lambda v: changed(v, indices=at(v.indices, 0, -1)), "index -1"),
    "few data": (lambda v: changed(v, data=v.data[:-1]), "entries of data"),
}


@pytest.mark.parametrize("trusted", [False, True])
@pytest.mark.parametrize("format", ["csr", "csc", "bsr"])
@pytest.mark.parametrize("fault", BROKEN)
def test_broken_matrices(fault: str, format: str, trusted: bool) -> None:
    f = data_times_two(format, trust_input=trusted)
    value = in_format(S, format)
    good = f(value)
    make, message = BROKEN[fault]
    for _ in range(2):
        with pytest.raises((SparsePatternError, ShapeError), match=message):
            f(make(value))
    np.testing.assert_array_equal(f(value).toarray(), good.toarray())


@pytest.mark.parametrize("trusted", [False, True])
@pytest.mark.parametrize("coords", [([6, 0], [0, 0]), ([0, -1], [0, 0]), ([0, 0], [1, 8])])
def test_broken_coordinates(coords: Any, trusted: bool) -> None:
    f = data_times_two("coo", trust_input=trusted)
    f(S.tocoo())
    value = sp.coo_array((np.ones(2), ([0, 1], [0, 1])), shape=(6, 8))
    value.coords = tuple(np.asarray(c, "int32") for c in coords)
    with pytest.raises(SparsePatternError, match="index"):
        f(value)


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("trusted", [False, True])
def test_other_values_are_converted(format: str, trusted: bool) -> None:
    f = data_times_two(format, trust_input=trusted)
    value = in_format(S, format)
    f(value)
    others = [value.astype("float32"), value.tocoo().tocsc(), S.tolil(), sp.csr_matrix(S)]
    twice = sp.coo_array((np.ones(3), ([1, 1, 0], [7, 7, 2])), shape=(6, 8))
    unsorted = sp.csr_array((np.arange(4.0), [5, 1, 3, 0], [0, 2, 4, 4, 4, 4, 4]), shape=(6, 8))
    wide = S.copy()
    wide.indices, wide.indptr = wide.indices.astype("int64"), wide.indptr.astype("int64")
    longer = changed(
        S, data=np.append(S.data, 7.0), indices=np.append(S.indices, 0).astype("int32")
    )
    for other in (*others, twice, unsorted, wide, longer):
        z = f(other)
        assert z.format == format and z.dtype == "float64"
        np.testing.assert_allclose(z.toarray(), 2 * other.toarray())


def test_dense_rows_that_have_no_pattern_to_trust() -> None:
    x = sparse.csr_array("x", shape=(None, 8))
    f = symcomp.function([x], sparse.sp_sum(x))
    assert f(S) == pytest.approx(S.sum())
    with pytest.raises(ShapeError, match="expected shape"):
        f(random_sparse(6, 7))
    with pytest.raises(DTypeError):
        f(np.array(["a"]))


def test_outputs_that_are_arguments_are_canonical() -> None:
    x = sparse.csr_array("x")
    f = symcomp.function([x], x, trust_input=True)
    unsorted = sp.csr_array((np.arange(3.0), [5, 1, 1], [0, 3]), shape=(1, 8))
    z = f(unsorted)
    assert z.indices.tolist() == [1, 5] and z.data.tolist() == [3, 0]
    assert not np.shares_memory(f(z).data, z.data)
    wide = sp.csr_array(S)
    wide.indices, wide.indptr = S.indices.astype("int64"), S.indptr.astype("int64")
    assert f(wide).indices.dtype == "int32"
    broken = changed(S, indices=at(S.indices, 0, 99))
    with pytest.raises(SparsePatternError, match="index 99"):
        f(broken)


def test_lengths_and_entries_change_from_call_to_call() -> None:
    x, d = sparse.csr_array("x"), T.dmatrix("d")
    f = symcomp.function([x, d], [sparse.dot(x, d), x.T, sparse.structured_exp(x)])
    for seed in range(40):
        n, m = 2 + seed % 5, 1 + seed % 7
        value, dense = random_sparse(n, m, seed=seed), np.full((m, 2), float(seed))
        product, turned, exponential = f(value, dense)
        np.testing.assert_allclose(product, value @ dense)
        np.testing.assert_array_equal(turned.toarray(), value.toarray().T)
        np.testing.assert_allclose(exponential.data, np.exp(value.data))


@record
class Rows(SparseOp):
    """z = the first rows of x: an op of users, which Python computes."""

    def as_inputs(self, x: Any) -> list[Any]:
        return [sparse.as_sparse_variable(x)]

    def output_types(self, x: Any) -> list[Any]:
        return [x.type.clone(shape=(None, None))]

    def perform(self, x: Any) -> Any:
        return x[: x.shape[0] // 2]


def test_python_computes_between_native_calls() -> None:
    x = sparse.csr_array("x")
    z = sparse.structured_exp(Rows()(sparse.structured_log(x)))
    f = symcomp.function([x], [z, sparse.sp_sum(z)])
    for seed in (0, 0, 1, 1, 0):
        value = abs(random_sparse(6, 8, seed=seed, zero=False))
        found, total = f(value)
        np.testing.assert_allclose(found.toarray(), value[:3].toarray())
        assert total == pytest.approx(value[:3].sum())
    assert in_python(f) & {"Rows", *EDGES} == {"Rows"}


def test_branches_give_matrices() -> None:
    c, x, y = T.lscalar("c"), sparse.csr_array("x"), sparse.csr_array("y")
    z = ifelse(c, x * 2.0, sparse.structured_exp(y))
    f = symcomp.function([c, x, y], [z, sparse.sp_sum(z)])
    other = random_sparse(6, 8, seed=3)
    for condition in (1, 0, 1, 0, 0):
        found, total = f(condition, S, other)
        wanted = 2 * S.data if condition else np.exp(other.data)
        np.testing.assert_allclose(found.data, wanted)
        assert total == pytest.approx(wanted.sum())


def test_updates_of_shared_matrices() -> None:
    s = sparse.shared(S, name="s")
    f = symcomp.function([], sparse.sp_sum(s), updates=[(s, s * 2.0)])
    held = s.get_value(borrow=True)
    for k in range(3):
        assert f() == pytest.approx(2**k * S.sum())
    np.testing.assert_array_equal(s.get_value().toarray(), 8 * S.toarray())
    np.testing.assert_array_equal(held.toarray(), S.toarray())
    assert not in_python(f) & EDGES


def test_results_of_one_call_are_apart() -> None:
    x = sparse.csr_array("x")
    doubled = x * 2.0
    f = symcomp.function([x], [doubled, doubled, sparse.csm_data(doubled), doubled.T])
    for _ in range(2):
        one, two, data, turned = f(S)
        one.data[:] = 0
        two.indices[:] = 0
        np.testing.assert_array_equal(data, 2 * S.data)
        np.testing.assert_array_equal(turned.toarray(), 2 * S.toarray().T)


def test_loops_and_graphs_have_matrices() -> None:
    a, v = sparse.csr_array("a"), T.dvector("v")
    square = with_index_dtype(random_sparse(6, 6, 0.5), "int32")
    steps, _ = symcomp.scan(
        lambda u, a: sparse.dot(a, u), outputs_info=v, non_sequences=[a], n_steps=4
    )
    f = symcomp.function([a, v], steps[-1])
    for _ in range(2):
        found = f(square, np.ones(6))
        np.testing.assert_allclose(found, np.linalg.matrix_power(square.toarray(), 4) @ np.ones(6))
    assert not EDGES & {*in_python(f), *asked(f, [square, np.ones(6)])}


def test_graphs_that_are_ops_take_matrices() -> None:
    a, x = sparse.csr_array("a"), T.dmatrix("x")
    product = symcomp.OpFromGraph([a, x], [sparse.structured_dot(a, x) + 1])
    f = symcomp.function([a, x], product(a, x) * 2)
    rows, _ = symcomp.scan(lambda v, a: product(a, v[:, None]).sum(), [x.T], non_sequences=[a])
    g = symcomp.function([a, x], rows)
    value = np.arange(24.0).reshape(8, 3)
    for matrix in (S, S, S[:4], S.astype("float64") * 2, S):
        np.testing.assert_allclose(f(matrix, value), 2 * (matrix @ value + 1))
        np.testing.assert_allclose(g(matrix, value), (matrix @ value + 1).sum(axis=0))
    assert " graph(" in f.plan() and " graph(" in g.plan()
