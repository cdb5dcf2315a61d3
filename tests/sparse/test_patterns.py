"""Patterns that are not as they should be: no memory outside of their arrays is read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import symcomp
import symcomp.tensor as T
from symcomp import sparse
from symcomp.config import config
from symcomp.errors import ShapeError, SparsePatternError
from symcomp.sparse.blocks import BlockDot, SampledBlocks
from symcomp.sparse.components import Components
from symcomp.sparse.convert import GatherDense, ScatterDense, TransposeCompressed
from symcomp.sparse.fused import ScatterAdd, Usmm
from symcomp.sparse.patterns import LookupPairs
from symcomp.sparse.products import CompressedDot, CompressedMatMul, MaskedMatMul, SampledDot

#: Rows and columns of the patterns, and an index that lies far outside of these.
N, FAR = 3, 2**30
INDPTR, GOOD = np.arange(N + 1), np.arange(N)
#: Operands of the readers besides patterns.
S, D, SQUARE, BLOCKS = (T.as_tensor_variable(np.ones(s)) for s in (N, (N, 2), (N, N), (N, 1, 1)))
V = T.as_tensor_variable(np.ones(N))
LENGTH, ONE = (T.as_tensor_variable(np.int64(n)) for n in (N, 1))
ALPHA = T.as_tensor_variable(2.0)

# Graphs that a file may hold: arrays that no op has made canonical go into ops on arrays.
# Indices i, pointers p, and indices g that fit.
READERS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "dot": lambda i, p, g: CompressedDot(False)(S, i, p, LENGTH, D),
    "dot, vector": lambda i, p, g: CompressedDot(False)(S, i, p, LENGTH, V),
    "transposed dot": lambda i, p, g: CompressedDot(True)(S, i, p, LENGTH, D),
    "transposed dot, vector": lambda i, p, g: CompressedDot(True)(S, i, p, LENGTH, V),
    "usmm": lambda i, p, g: Usmm(False)(D, ALPHA, S, i, p, LENGTH, D),
    "transposed usmm": lambda i, p, g: Usmm(True)(D, ALPHA, S, i, p, LENGTH, D),
    "sampled": lambda i, p, g: SampledDot()(i, p, D, D),
    "sampled, vectors": lambda i, p, g: SampledDot()(i, p, V, V),
    "product, first": lambda i, p, g: CompressedMatMul()(S, i, p, LENGTH, S, g, p, LENGTH)[0],
    "product, second": lambda i, p, g: CompressedMatMul()(S, g, p, LENGTH, S, i, p, LENGTH)[0],
    "masked, first": lambda i, p, g: MaskedMatMul()(S, i, p, LENGTH, S, g, p, LENGTH, g, p),
    "masked, second": lambda i, p, g: MaskedMatMul()(S, g, p, LENGTH, S, i, p, LENGTH, g, p),
    "transpose": lambda i, p, g: TransposeCompressed()(S, i, p, LENGTH)[0],
    "scatter": lambda i, p, g: ScatterDense()(S, i, p, LENGTH),
    "scatter add": lambda i, p, g: ScatterAdd()(SQUARE, S, i, p, LENGTH),
    "gather": lambda i, p, g: GatherDense()(SQUARE, i, p),
    "pairs": lambda i, p, g: LookupPairs()(S, g, p, i, g),
    "block dot": lambda i, p, g: BlockDot(False)(BLOCKS, i, p, LENGTH, D),
    "transposed block dot": lambda i, p, g: BlockDot(True)(BLOCKS, i, p, LENGTH, D),
    "sampled blocks": lambda i, p, g: SampledBlocks()(i, p, D, D, ONE, ONE),
}


@pytest.mark.parametrize("linker", ["cvm", "py"])
@pytest.mark.parametrize("dtype", ["int32", "int64"])
@pytest.mark.parametrize("name", READERS)
def test_indices_outside_of_the_shape(name: str, dtype: str, linker: str) -> None:
    i, p, g = (T.vector(n, dtype=dtype) for n in "ipg")
    f = symcomp.function(
        [i, p, g], READERS[name](i, p, g), mode=symcomp.Mode(linker=linker),
        on_unused_input="ignore",
    )  # fmt: skip
    arrays = [a.astype(dtype) for a in (GOOD, INDPTR, GOOD)]
    wanted = f(*arrays)
    for wrong in (FAR, -1, -FAR, N):
        for place in range(N):
            changed = arrays[0].copy()
            changed[place] = wrong
            with pytest.raises((SparsePatternError, ShapeError), match=str(wrong)):
                f(changed, *arrays[1:])
    np.testing.assert_array_equal(f(*arrays), wanted)


# -- products with dense matrices read arguments as they come


def random_matrix(n: int = 40, m: int = 30, seed: int = 0) -> Any:
    """Return a matrix with entries at one place, in any order."""
    rng = np.random.default_rng(seed)
    count = 4 * n
    rows, columns = np.sort(rng.integers(0, n, count)), rng.integers(0, m, count)
    indptr = np.searchsorted(rows, np.arange(n + 1)).astype("int32")
    made = sp.csr_array((n, m))
    made.data, made.indices, made.indptr = rng.normal(size=count), columns.astype("int32"), indptr
    return made


def checked_in(f: Any) -> bool:
    """Return whether a function asks that indices ascend."""
    nodes = f.maker.fgraph.toposort()
    return any(isinstance(n.op, Components) and n.op.canonical for n in nodes)


@pytest.mark.parametrize("columns", [0, 1, 3, 70])
@pytest.mark.parametrize("format", ["csr", "csc"])
def test_products_take_entries_in_any_order(format: str, columns: int) -> None:
    x, d, e = sparse.SparseType(format, "float64", container="array")("x"), T.dmatrix(), T.dmatrix()
    f = symcomp.function([x, d, e], [sparse.dot(x, d), sparse.dot(x.T, e)])
    assert not checked_in(f)
    value = random_matrix()
    value = value if format == "csr" else value.T
    rng = np.random.default_rng(1)
    D, E = (rng.normal(size=(n, columns)) for n in value.shape[::-1])
    for _ in range(3):
        z, t = f(value, D, E)
        dense = value.toarray()
        np.testing.assert_allclose(z, dense @ D, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(t, dense.T @ E, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    "build",
    [
        lambda x, d: sparse.dot(sparse.sqr(x), d),
        lambda x, d: sparse.dot(x, d) + sparse.sp_sum(sparse.sqr(x)),
        lambda x, d: sparse.sp_sum(sparse.sampling_dot(d[: x.shape[0]], d[: x.shape[1]], x)),
        lambda x, d: sparse.dot(x, d) + T.sqr(sparse.csm_data(x)).sum(),
        lambda x, d: sparse.dot(x, d) + sparse.csm_indices(x)[0],
    ],
)
def test_other_readers_get_canonical_patterns(build: Callable[[Any, Any], Any]) -> None:
    x, d = sparse.csr_array("x"), T.dmatrix("d")
    z = build(x, d)
    f = symcomp.function([x, d], z, on_unused_input="ignore")
    assert checked_in(f)
    value = random_matrix(30, 30)
    tidy = value.copy()
    tidy.sum_duplicates()
    D = np.random.default_rng(2).normal(size=(30, 4))
    wanted = symcomp.function([x, d], z, mode=symcomp.Mode(linker="py"))(tidy, D)
    for _ in range(2):
        np.testing.assert_allclose(f(value, D), wanted, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("trusted", [False, True])
@pytest.mark.parametrize("columns", [1, 8])
@pytest.mark.parametrize("transposed", [False, True])
def test_arguments_of_products_outside_of_the_shape(
    transposed: bool, columns: int, trusted: bool
) -> None:
    x, d = sparse.csr_array("x"), T.dmatrix("d")
    w = symcomp.shared(np.zeros((40 if not transposed else 30, columns)))
    product = sparse.dot(x.T if transposed else x, d)
    f = symcomp.function([x, d], updates=[(w, w + product)], trust_input=trusted)
    assert not checked_in(f)
    good = random_matrix()
    D = np.ones((good.shape[0 if transposed else 1], columns))
    f(good, D)
    before = w.get_value()
    for wrong in (30, FAR, -1):
        for place in (0, 80, 159):
            bad = good.copy()
            bad.indices[place] = wrong
            with pytest.raises(SparsePatternError, match=f"index {wrong} at position {place}"):
                f(bad, D)
            np.testing.assert_array_equal(w.get_value(), before)
    f(good, D)
    np.testing.assert_allclose(w.get_value(), 2 * before, rtol=1e-12)


@pytest.mark.parametrize("columns", [1, 8])
@pytest.mark.parametrize("transposed", [False, True])
def test_threads_see_indices_outside_of_the_shape(transposed: bool, columns: int) -> None:
    x, d = sparse.csr_array("x"), T.dmatrix("d")
    with config.change_flags(openmp=True, openmp_threads=3):
        f = symcomp.function([x, d], sparse.dot(x.T if transposed else x, d))
        good = random_matrix(20_000, 5000)
        D = np.ones((good.shape[0 if transposed else 1], columns))
        wanted = (good.T if transposed else good) @ D
        np.testing.assert_allclose(f(good, D), wanted, rtol=1e-12, atol=1e-12)
        for wrong in (5000, FAR, -1):
            for place in (0, good.nnz // 2, good.nnz - 1):
                bad = good.copy()
                bad.indices[place] = wrong
                with pytest.raises(SparsePatternError, match=f"index {wrong} at position {place}"):
                    f(bad, D)
        np.testing.assert_allclose(f(good, D), wanted, rtol=1e-12, atol=1e-12)


def test_wide_indices_are_not_narrowed_unseen() -> None:
    x, d = sparse.csr_array("x"), T.dvector("d")
    f = symcomp.function([x, d], sparse.dot(x, d), trust_input=True)
    good = random_matrix()
    for place in (0, 159):
        bad = good.copy()
        bad.indices, bad.indptr = bad.indices.astype("int64"), bad.indptr.astype("int64")
        for _ in range(2):
            np.testing.assert_allclose(f(bad, np.ones(30)), good @ np.ones(30), rtol=1e-12)
        bad.indices[place] += 2**32
        with pytest.raises(SparsePatternError, match="index"):
            f(bad, np.ones(30))
