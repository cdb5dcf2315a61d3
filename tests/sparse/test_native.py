"""Ops on the arrays of sparse matrices: natively what ``perform`` gives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import symcomp
import symcomp.tensor as T
from symcomp import sparse
from symcomp.config import config
from symcomp.core.evaluate import evaluate
from symcomp.core.tensor import TensorType
from symcomp.errors import ShapeError, SparsePatternError
from symcomp.sparse.blocks import (
    BlockDot,
    BlocksAsRows,
    CheckedBlocks,
    RowsAsBlocks,
    SampledBlocks,
)
from symcomp.sparse.components import Assemble, Components
from symcomp.sparse.convert import (
    GatherDense,
    NonzeroPattern,
    ScatterDense,
    TransposeCompressed,
)
from symcomp.sparse.fused import GatherFill, ScatterAdd, Usmm
from symcomp.sparse.native import LOWERINGS
from symcomp.sparse.pairwise import CombinePatterns
from symcomp.sparse.patterns import (
    Canonical,
    FromTriplets,
    InRange,
    LargestIndex,
    Lookup,
    LookupPairs,
    MajorIndices,
    Pointers,
    SortIndices,
)
from symcomp.sparse.products import CompressedDot, CompressedMatMul, MaskedMatMul, SampledDot
from symcomp.sparse.reductions import SegmentReduce
from symcomp.sparse.slicing import CropMinor, JoinMinor, PutMajor, SameNumber, TakeMajor
from symcomp.sparse.structure import DropZeros
from symcomp.sparse.with_dense import SameLength
from symcomp.tests.cvm.looking import asked, in_python
from symcomp.tests.sparse.harness import random_sparse

AS_IT_IS = symcomp.Mode("cvm", optimizer=None)
DTYPES = (
    "float32", "float64", "int32", "int64", "complex64", "complex128", "bool", "int8", "uint8",
    "int16", "uint16", "uint32", "uint64",
)  # fmt: skip
RTOL = {"float32": 1e-5, "float64": 1e-13, "complex64": 1e-5, "complex128": 1e-13}


def length(n: int) -> Any:
    """Return a length as ops take it."""
    return np.asarray(n, np.int64)


def arrays(value: Any, index_dtype: str) -> list[Any]:
    """Return data, indices and indptr of a CSR value."""
    return [value.data, value.indices.astype(index_dtype), value.indptr.astype(index_dtype)]


def dense(shape: Any, dtype: str, seed: int) -> Any:
    x = np.random.default_rng(seed).normal(size=shape) * 3
    return (x + (1j * x[::-1] if dtype[0] == "c" else 0)).astype(dtype)


def variables(values: Any) -> list[Any]:
    """Return inputs for arrays whose lengths are not known."""
    arrays = [np.asarray(v) for v in values]
    return [TensorType(v.dtype, (None,) * v.ndim)() for v in arrays]


class Applied:
    """Ops applied to inputs that are collected, so that one function computes all of them."""

    def __init__(self) -> None:
        self.inputs: list[Any] = []
        self.values: list[Any] = []
        self.outputs: list[Any] = []
        self.names: list[str] = []

    def add(self, op: Any, *values: Any) -> None:
        """Apply an op to arrays."""
        inputs = variables(values)
        self.inputs += inputs
        self.values += values
        made = op(*inputs)
        several = made if isinstance(made, list | tuple) else [made]
        self.outputs += several
        self.names += [str(op)] * len(several)

    def compare(self, rtol: float = 0) -> None:
        """Check the results of the native machine against those of ``perform``, twice."""
        f = symcomp.function(self.inputs, self.outputs, mode=AS_IT_IS)
        assert not in_python(f)
        with np.errstate(all="ignore"):
            given = dict(zip(self.inputs, map(np.asarray, self.values), strict=True))
            wanted = evaluate(self.outputs, given)
        for _ in range(2):
            found = f(*self.values)
            for name, z, w in zip(self.names, found, wanted, strict=True):
                assert z.dtype == w.dtype and z.shape == w.shape, name
                np.testing.assert_allclose(z, w, rtol, rtol, err_msg=name)
        assert asked(f, self.values) == []


MATRICES = {
    "some": lambda dtype: (random_sparse(7, 6, 0.4, dtype), random_sparse(7, 6, 0.4, dtype, 1)),
    "many rows": lambda dtype: (
        random_sparse(200, 90, 0.3, dtype),
        random_sparse(200, 90, 0.2, dtype, 1),
    ),
    "empty": lambda dtype: (sp.csr_array((3, 4), dtype=dtype), sp.csr_array((3, 4), dtype=dtype)),
    "no rows": lambda dtype: (sp.csr_array((0, 4), dtype=dtype), sp.csr_array((0, 4), dtype=dtype)),
    "no columns": lambda dtype: (
        sp.csr_array((3, 0), dtype=dtype),
        sp.csr_array((3, 0), dtype=dtype),
    ),
}


def apply_products(a: Applied, x: Any, y: Any, dtype: str, index_dtype: str) -> None:
    (n, m), s, t = x.shape, arrays(x, index_dtype), arrays(y.T.tocsr(), index_dtype)
    for columns in (0, 1, 3, 37):
        d, e = dense((m, columns), dtype, 1), dense((n, columns), dtype, 2)
        a.add(CompressedDot(False), *s, length(m), d)
        a.add(CompressedDot(True), *s, length(m), e)
        a.add(SampledDot(), *s[1:], e, d)
        alpha = np.asarray(2, dtype)
        a.add(Usmm(False), e, alpha, *s, length(m), d)
        a.add(Usmm(True), d, alpha, *s, length(m), e)
    v, u = dense(m, dtype, 3), dense(n, dtype, 4)
    a.add(CompressedDot(False), *s, length(m), v)
    a.add(CompressedDot(False), *s, length(m), dense(2 * m, dtype, 3)[::2])
    a.add(CompressedDot(False), *s, length(m), dense((3, m), dtype, 3).T)
    a.add(CompressedDot(True), *s, length(m), u)
    a.add(SampledDot(), *s[1:], u, v)
    a.add(CompressedMatMul(), *s, length(m), *t, length(n))
    pattern = arrays(random_sparse(n, n, 0.5), index_dtype)[1:]
    a.add(MaskedMatMul(), *s, length(m), *t, length(n), *pattern)


def apply_orders(a: Applied, x: Any, y: Any, dtype: str, index_dtype: str) -> None:
    """Apply ops that make patterns of entries in other orders, of parts and of several matrices."""
    (n, m), s, t = x.shape, arrays(x, index_dtype), arrays(y, index_dtype)
    for start, end in ((0, m), (m // 3, m - 1), (m, m)):
        a.add(CropMinor(), *s, length(start), length(max(start, end)))
    a.add(JoinMinor(), *s, length(m))
    a.add(JoinMinor(), *s, length(m), *t, length(m), *s, length(m))
    ids = np.arange(n)[::-1] // 3
    a.add(PutMajor(), *s, ids.astype(index_dtype), length(n))
    a.add(PutMajor(), *s, np.roll(np.arange(n), 1).astype(index_dtype), length(n + 2))
    rng = np.random.default_rng(3)
    places = [rng.integers(0, max(k, 1), 3 * n * min(m, 1)).astype(index_dtype) for k in (n, m)]
    values = dense(len(places[0]), dtype, 4)
    a.add(FromTriplets(), values, *places, length(n), length(m))
    for k in range(0, 60, 29):  # of one row, sorted in several ways
        one = rng.integers(0, 40, k).astype(index_dtype)
        ends = np.asarray([0, k], index_dtype)
        a.add(Canonical(), dense(k, dtype, 5), one, ends, length(1), length(40))
        a.add(SortIndices(), dense(k, dtype, 5), one, ends)
    full = x.toarray()
    a.add(NonzeroPattern(), full)
    a.add(NonzeroPattern(), np.asfortranarray(full))
    for shape in ((1, 1), (n, 1), (1, m)):
        if 0 not in shape:
            a.add(GatherFill(), dense(shape, dtype, 6), length(n), length(m), *s[1:])


def apply_blocks(a: Applied, x: Any, y: Any, dtype: str, index_dtype: str) -> None:
    """Apply the ops on matrices of blocks of 2 x 3, and of 1 x 1."""
    for r, c in ((2, 3), (1, 1)):
        n, m = x.shape[0] * r, x.shape[1] * c
        pattern = [x.indices.astype(index_dtype), x.indptr.astype(index_dtype)]
        blocks = dense((len(x.data), r, c), dtype, 8)
        for shape in ((), (1,), (5,), (0,)):
            d, e = dense((m, *shape), dtype, 9), dense((n, *shape), dtype, 10)
            a.add(BlockDot(False), blocks, *pattern, length(m), d)
            a.add(BlockDot(True), blocks, *pattern, length(m), e)
            a.add(SampledBlocks(), *pattern, e, d, length(r), length(c))
        a.add(BlocksAsRows(), *pattern, length(r), length(c))
        if x.shape[0] % r == 0:
            a.add(RowsAsBlocks(r, c), *pattern)
        a.add(CheckedBlocks(c), length(m), np.asarray([n, m], np.int64))
        a.add(Lookup(), blocks, *pattern, *arrays(y, index_dtype)[1:])
        a.add(Canonical(), blocks, *pattern, length(x.shape[0]), length(x.shape[1]))
        apply_blocks_in_any_order(a, (r, c), dtype, index_dtype)


def apply_blocks_in_any_order(a: Applied, shape: Any, dtype: str, index_dtype: str) -> None:
    """Sort blocks of few rows in several ways, and add up those at one place."""
    rng = np.random.default_rng(4)
    for k in range(0, 90, 29):
        ends = np.asarray([0, 0, k // 4, k], index_dtype)
        indices = rng.integers(0, 40, k).astype(index_dtype)
        blocks = dense((k, *shape), dtype, 11)
        a.add(Canonical(), blocks, indices, ends, length(3), length(40))
        a.add(SortIndices(), blocks, indices, ends)


def apply_places(a: Applied, x: Any, y: Any, dtype: str, index_dtype: str) -> None:
    (n, m), s, t = x.shape, arrays(x, index_dtype), arrays(y, index_dtype)
    kinds = ["add", "mul", "neq"] + ["maximum", "minimum", "lt", "gt"] * (dtype[0] != "c")
    for kind in kinds:
        a.add(CombinePatterns(kind), *s, *t, length(m))
    a.add(TransposeCompressed(), *s, length(m))
    a.add(Lookup(), *s, *t[1:])
    a.add(
        Lookup(), *s, t[1][::-1].copy(), np.asarray([0] * n + [len(t[1])], index_dtype)
    ) if n else None
    a.add(Canonical(), *s, length(n), length(m))
    a.add(SortIndices(), *s)
    d = dense((n, m), dtype, 5)
    a.add(GatherDense(), d, *s[1:])
    a.add(GatherDense(), dense((m, n), dtype, 6).T, *s[1:])
    a.add(ScatterDense(), *s, length(m))
    a.add(ScatterAdd(), d, *s, length(m))
    a.add(MajorIndices(), s[2], length(len(s[1])))
    a.add(Pointers(), x.tocoo().row.astype(index_dtype), length(n))
    a.add(LargestIndex(), s[1])
    a.add(InRange("positions"), s[1], length(m))
    apply_orders(a, x, y, dtype, index_dtype)
    apply_blocks(a, x, y, dtype, index_dtype)
    a.add(SameNumber("add"), length(n), length(n))
    a.add(SameLength(), d[:, 0] if m else d.ravel(), length(n if m else 0))
    a.add(DropZeros(), s[0] * (np.arange(len(s[0])) % 3 > 0).astype(dtype), *s[1:])
    ids = np.asarray([n - 1, 0, n - 1] if n else [], index_dtype)
    a.add(TakeMajor(), *s, ids)
    if n and m:
        pairs = [np.asarray(v, index_dtype) for v in ([n - 1, 0, 1], [0, m - 1, 2])]
        a.add(LookupPairs(), *s, *pairs)


@pytest.mark.parametrize("matrices", MATRICES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_as_performed(matrices: str, dtype: str) -> None:
    x, y = MATRICES[matrices](dtype)
    for index_dtype in ("int32", "int64") if matrices == "some" else ("int32",):
        for apply in (apply_products, apply_places):
            a = Applied()
            apply(a, x, y, dtype, index_dtype)
            a.compare(RTOL.get(dtype, 0))


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "complex128"])
def test_segments(dtype: str) -> None:
    a = Applied()
    for index_dtype in ("int32", "int64"):
        pointers = np.asarray([0, 3, 3, 4, 10], index_dtype)
        for kind in ("sum", "max", "min")[: 1 if dtype[0] == "c" else 3]:
            for shape in ((10,), (12, 3), (10, 2, 2), (10, 0)):
                a.add(SegmentReduce(kind), dense(shape, dtype, 7), pointers)
    a.compare(RTOL.get(dtype, 0))


@pytest.mark.parametrize("index_dtype", ["int32", "int64"])
def test_columns_of_products_ascend(index_dtype: str) -> None:
    """Few, many, and many close together beside one that is far away."""
    rng = np.random.default_rng(0)
    a = Applied()
    for near, count in ((10, 4), (70_000, 100), (300, 80), (2000, 400)):
        columns = rng.integers(0, near, (3, count))
        columns[0, 0] = 99_999
        rows = np.repeat(np.arange(3), count)
        y = sp.csr_array((np.ones(3 * count), (rows, columns.ravel())), shape=(3, 100_000))
        x = sp.csr_array(np.ones((2, 3)))
        a.add(
            CompressedMatMul(),
            *arrays(x, index_dtype),
            length(3),
            *arrays(y, index_dtype),
            length(100_000),
        )
    a.compare()


def test_nan_stays_in_extremes() -> None:
    nan = np.array([1.0, np.nan, 2.0])
    p, i = np.asarray([0, 3], "int32"), np.asarray([0, 1, 2], "int32")
    a = Applied()
    for kind in ("maximum", "minimum"):
        a.add(CombinePatterns(kind), nan, i, p, nan[::-1].copy() * 2, i, p, length(4))
        a.add(SegmentReduce(kind[:3]), nan, p)
    a.compare()


def test_every_op_is_here() -> None:
    """The functions above apply all ops that are lowered."""
    a = Applied()
    x = random_sparse(4, 4)
    apply_products(a, x, x, "float64", "int32")
    apply_places(a, x, x, "float64", "int32")
    applied = {type(out.owner.op) for out in a.outputs}
    assert applied | {SegmentReduce, Components, Assemble} == set(LOWERINGS)


def test_number_of_entries_may_change() -> None:
    """Sums and products of one function have other numbers of entries in each call."""
    x, y = sparse.csr_array("x"), sparse.csr_array("y")
    f = symcomp.function([x, y], [x + y, x @ y.T, x[[1, 0]], sparse.remove0(x)])
    assert in_python(f) <= {"Components", "Assemble", "Elemwise", "Fused"}
    for seed in range(12):
        a, b = random_sparse(5, 4, seed=seed % 5), random_sparse(5, 4, seed=seed)
        found = f(a, b)
        for z, wanted in zip(found, (a + b, a @ b.T, a[[1, 0]], a), strict=True):
            np.testing.assert_allclose(z.toarray(), wanted.toarray(), atol=1e-14)


def test_threads_change_no_bits() -> None:
    rng = np.random.default_rng(0)
    x = sp.random_array((3000, 2500), density=0.01, rng=rng, format="csr")
    x.data -= 0.5
    s = arrays(x, "int32")
    d, e = rng.normal(size=(2500, 24)), rng.normal(size=(3000, 24))
    t = arrays(x.T.tocsr(), "int32")
    # Most entries lie in few columns.
    low = np.minimum(rng.geometric(0.01, size=75_000) - 1, 2499)
    uneven = sp.csr_array((np.ones(75_000), (rng.integers(0, 3000, 75_000), low)), (3000, 2500))
    uneven.sum_duplicates()
    u = arrays(uneven, "int32")
    wide = rng.normal(size=(3000, 160))
    found = []
    for threads in (1, 2, 5):
        a = Applied()
        with config.change_flags(openmp=True, openmp_threads=threads):
            a.add(CompressedDot(False), *s, length(2500), d)
            a.add(CompressedDot(True), *s, length(2500), e)
            for dense in (e, wide, wide[:, :40], e[:, :7]):
                a.add(CompressedDot(True), *u, length(2500), dense)
            a.add(SampledDot(), *s[1:], e, d)
            a.add(CompressedMatMul(), *s, length(2500), *t, length(3000))
            a.add(CombinePatterns("add"), *s, *arrays(x * 2, "int32"), length(2500))
            a.add(CompressedDot(False), *s, length(2500), d[:, 0])
            a.add(PutMajor(), *s, np.arange(3000, dtype="int32") // 4, length(750))
            a.add(CropMinor(), *s, length(200), length(2000))
            a.add(JoinMinor(), *s, length(2500), *s, length(2500))
            a.add(NonzeroPattern(), e)
            f = symcomp.function(a.inputs, a.outputs, mode=AS_IT_IS)
        found.append(f(*a.values))
    for other in found[1:]:
        for one, two in zip(found[0], other, strict=True):
            np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("index_dtype", ["int32", "int64"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128", "int8", "bool"])
def test_rows_of_any_length_times_a_vector(dtype: str, index_dtype: str) -> None:
    """A row's sum takes all of its entries, and nothing of the rows beside it."""
    lengths = [0, 1, 7, 0, 8, 9, 15, 16, 17, 23, 24, 25, 1, 5000, 0, 3, 2047, 2048, 2049, 0, 0]
    lengths += [k % 21 for k in range(700)]
    rng = np.random.default_rng(0)
    indptr = np.concatenate([[0], np.cumsum(lengths)]).astype(index_dtype)
    indices = np.concatenate([np.sort(rng.choice(6000, n, replace=False)) for n in lengths])
    indices = indices.astype(index_dtype)
    data = rng.integers(-3, 4, len(indices)).astype(dtype)
    d = rng.integers(-3, 4, 6000).astype(dtype)
    if data.dtype.kind in "fc":
        for row, value in ((2, np.nan), (8, np.inf), (13, -np.inf)):
            data[indptr[row] : indptr[row + 1]] = value
    a = Applied()
    a.add(CompressedDot(False), data, indices, indptr, length(6000), d)
    (found,) = symcomp.function(a.inputs, a.outputs, mode=AS_IT_IS)(*a.values)
    with np.errstate(invalid="ignore"):
        # Whole numbers are summed without rounding: of each row, in any order, there is one sum.
        products = data * d[indices]
        total = np.logical_or.reduce if dtype == "bool" else np.add.reduce
        ends = zip(indptr, indptr[1:], strict=False)
        wanted = [total(products[begin:end], dtype=dtype) for begin, end in ends]
    np.testing.assert_array_equal(found, np.array(wanted, dtype))


def test_misfits_are_told_by_python() -> None:
    s = arrays(random_sparse(4, 5), "int32")
    inputs = variables([*s, length(5), np.ones((5, 2))])
    f = symcomp.function(inputs, CompressedDot(False)(*inputs), mode=AS_IT_IS)
    f(*s, length(5), np.ones((5, 2)))
    with pytest.raises(ShapeError, match="axes that meet have lengths 6 and 5"):
        f(*s, length(6), np.ones((5, 2)))
    with pytest.raises(ShapeError, match="entries of data"):
        f(s[0][:-1], *s[1:], length(5), np.ones((5, 2)))
    inputs = variables([*s, length(4), length(5)])
    g = symcomp.function(inputs, Canonical()(*inputs), mode=AS_IT_IS)
    g(*s, length(4), length(5))
    with pytest.raises(SparsePatternError, match="not between 0 and 2"):
        g(*s, length(4), length(3))
    broken = s[2].copy()
    broken[1] = 9
    with pytest.raises(SparsePatternError, match="decreases"):
        g(s[0], s[1], broken, length(4), length(5))


def test_columns_that_are_no_multiple_of_blocks() -> None:
    x = sparse.csr_array("x")
    f = symcomp.function([x], sparse.tobsr(x, (2, 3)))
    good = random_sparse(4, 6)
    for _ in range(3):
        np.testing.assert_allclose(f(good).toarray(), good.toarray())
    assert "CheckedBlocks" not in in_python(f) and asked(f, [good]) == []
    for shape, message in (((4, 7), "7 columns"), ((5, 6), "5 rows")):
        with pytest.raises(ShapeError, match=f"{message} are no multiple"):
            f(random_sparse(*shape))


@pytest.mark.parametrize("lengths", ["many of one row", "rows of all lengths"])
@pytest.mark.parametrize("threads", [False, True])
def test_entries_in_any_order(lengths: str, threads: bool) -> None:
    """More entries than threads do for themselves, in rows that need spare memory to be sorted."""
    rng = np.random.default_rng(5)
    rows = rng.integers(0, 9, 60_000) if lengths == "many of one row" else np.arange(60_000) % 997
    rows = rows**2 % 997
    columns = rng.integers(0, 5000, 60_000)
    a = Applied()
    values = dense(60_000, "float64", 1).round()
    places = [v.astype("int32") for v in (rows, columns)]
    a.add(FromTriplets(), values, *places, length(997), length(5000))
    order = np.argsort(rows, kind="stable")
    indptr = np.searchsorted(rows[order], np.arange(998)).astype("int32")
    a.add(SortIndices(), values, places[1][order], indptr)
    a.add(SortIndices(), values.repeat(2).reshape(-1, 1, 2), places[1][order], indptr)
    with config.change_flags(openmp=threads, openmp_threads=2):
        a.compare()


@pytest.mark.parametrize("threads", [1, 3])
def test_products_with_many_columns(threads: int) -> None:
    """Pages with marks of columns without entries are not touched; there are 20,000 and more."""
    resource = pytest.importorskip("resource")
    few, places = random_sparse(400, 50, 0.3), np.sort(np.arange(50)[::-1] * 397_001)
    indices = places[few.indices].astype("int32")
    many = sp.csr_array((few.data, indices, few.indptr), (400, 20_000_000))
    x, y = sparse.csr_array("x"), sparse.csr_array("y")
    with config.change_flags(openmp=True, openmp_threads=threads):
        f = symcomp.function([x, y], [x @ y, (x @ y) * y])
    left = random_sparse(400, 400, 0.6)
    for _ in range(3):
        wanted = f(left, few)
    for _ in range(3):
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        found = f(left, many)
        touched = resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
    for z, w in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(z.indices, places[w.indices])
        np.testing.assert_array_equal(z.indptr, w.indptr)
        np.testing.assert_array_equal(z.data, w.data)
    assert asked(f, [left, many]) == []
    assert touched < 6000 * threads


def test_loops_over_products() -> None:
    """Power iteration: the steps of a loop multiply natively, without Python."""
    value = random_sparse(6, 6, 0.6, zero=False)
    x, v = sparse.csr_array("x"), T.dvector("v")
    steps, _ = symcomp.scan(
        lambda v, data, i, p: CompressedDot(False)(data, i, p, T.constant(length(6)), v),
        outputs_info=v,
        non_sequences=list(sparse.csm_properties(x)[:3]),
        n_steps=4,
    )
    f = symcomp.function([x, v], steps[-1])
    assert "CompressedDot" not in in_python(f)
    found = f(value, np.ones(6))
    np.testing.assert_allclose(found, np.linalg.matrix_power(value.toarray(), 4) @ np.ones(6))
