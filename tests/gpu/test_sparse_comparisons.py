"""Comparisons of two sparse matrices on devices, beside the processor and SciPy."""

import operator
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import symcomp
import symcomp.tensor as T
from symcomp import gpu, sparse
from symcomp.config import config
from symcomp.core.tensor import TensorType
from symcomp.errors import ShapeError
from symcomp.gpu.driver.emulator import ORDERS, Emulator
from symcomp.sparse.pairwise import CombinePatterns
from symcomp.tests.gpu.running import DEVICE, compile_both, ops_on_host
from symcomp.tests.gpu.test_sparse_products import DTYPES, assert_same, matrix, stays, variables

COMPARISONS = {
    "neq": (sparse.neq, operator.ne), "lt": (sparse.lt, operator.lt), "gt": (sparse.gt, operator.gt)
}  # fmt: skip
on_device = config.change_flags(device=DEVICE)


def close_pair(format: str = "csr", dtype: str = "float32") -> tuple[Any, Any]:
    """Return two matrices that agree at some places, and store zeros that the other lacks."""
    a, b = matrix(7, 6, format, dtype), matrix(7, 6, format, dtype, 1)
    both = (a + b).asformat(format)
    both.data[::2] = 0
    return a, both


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("index_dtype", ["int32", "int64"])
def test_each_dtype(emu: Any, dtype: str, index_dtype: str) -> None:
    kinds = ["neq"] if dtype.startswith("complex") else [*COMPARISONS]
    a, b = close_pair(dtype=dtype)
    vector, index = TensorType(dtype, (None,)), TensorType(index_dtype, (None,))
    given = [kind(n) for kind, n in zip([vector, index, index] * 2, "dipejq", strict=True)]
    arrays = [a.data, a.indices, a.indptr, b.data, b.indices, b.indptr]
    arrays = [x.astype(v.dtype) for x, v in zip(arrays, given, strict=True)]
    there = [gpu.to_gpu(given[0], DEVICE).as_tensor_variable(), *given[1:]]
    n = T.as_tensor_variable(np.int64(6))
    made = [z for kind in kinds for z in CombinePatterns(kind)(*there, n)]
    plain = symcomp.function(given, [z for k in kinds for z in CombinePatterns(k)(*given, n)])
    f = symcomp.function(given, made)
    assert not [name for name in stays(f) if name.startswith("Combine")]
    for order in ORDERS if isinstance(emu, Emulator) else [0]:
        emu.order = order
        for found, wanted in zip(f(*arrays), plain(*arrays), strict=True):
            assert found.dtype == wanted.dtype
            np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("format", ["csr", "csc"])
def test_matrices(emu: Any, format: str) -> None:
    a, b = close_pair(format)
    y, x = variables(format)
    s = sparse.shared(a, device=DEVICE)
    with on_device:
        f = symcomp.function([x], [compare(s, x) for compare, _ in COMPARISONS.values()])
    plain = symcomp.function([y, x], [compare(y, x) for compare, _ in COMPARISONS.values()])
    assert not [name for name in stays(f) if name.startswith("Combine")]
    empty = sp.csr_array((7, 6), dtype="float32").asformat(format)
    nan = b.copy()
    nan.data[::3] = np.nan
    for new in (b, a, empty, nan):
        emu.wait()
        emu.counters.clear()
        found = f(new)
        assert emu.counters.waits >= 3  # the numbers of entries
        for one, wanted, (_, compare) in zip(
            found, plain(a, new), COMPARISONS.values(), strict=True
        ):
            assert_same(one, wanted)
            dense = compare(a.toarray(), new.toarray())
            np.testing.assert_array_equal(one.toarray(), dense, str(compare))
    with pytest.raises(ShapeError, match="differ|must agree"):
        f(matrix(5, 6, format))


@pytest.mark.parametrize("shape", [(0, 4), (4, 0), (3, 4)])
def test_matrices_without_entries(emu: Any, shape: tuple[int, int]) -> None:
    x, _ = variables("csr")
    a = sp.csr_array(shape, dtype="float32")
    s = sparse.shared(a, device=DEVICE)
    with on_device:
        f = symcomp.function([x], [compare(s, x) for compare, _ in COMPARISONS.values()])
    for found in f(a):
        assert (found.shape, found.nnz, found.dtype) == (shape, 0, np.bool_)


def test_gradients_of_extremes(emu: Any) -> None:
    """Gradients of extremes choose by a comparison."""
    x, y = variables("csr")
    z = sparse.structured_dot(x, x.T)
    loss = T.sqr(sparse.csm_data(sparse.maximum(z, y))).sum()
    loss += T.sqr(sparse.csm_data(sparse.minimum(z, y))).sum()
    outputs = [loss, *(sparse.csm_data(g) for g in T.grad(loss, [x, y]))]
    plain, f = compile_both([x, y], outputs)
    assert not [name for name in ops_on_host(f) if name.startswith("Combine")]
    values = matrix(6, 5), matrix(6, 6, seed=3)
    for found, wanted in zip(f(*values), plain(*values), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)
