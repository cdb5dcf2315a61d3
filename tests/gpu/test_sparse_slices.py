"""Slices of sparse matrices on devices, beside the processor and SciPy."""

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import symcomp
import symcomp.tensor as T
from symcomp import gpu, sparse
from symcomp.compile.device_slices import RunEntries, RunPointers
from symcomp.config import config
from symcomp.core.tensor import TensorType
from symcomp.gpu.driver.emulator import ORDERS, Emulator
from symcomp.sparse.slicing import CropMinor, TakeMajor
from symcomp.tests.gpu.running import DEVICE, ops_on_device, ops_on_host
from symcomp.tests.gpu.test_sparse_products import DTYPES, assert_same, matrix, stays, variables

on_device = config.change_flags(device=DEVICE)
SLICES = {
    "rows": lambda x: x[1:4], "columns": lambda x: x[:, 2:5], "backwards": lambda x: x[::-1, ::2],
    "some rows": lambda x: x[[5, 0, 5, -1]], "some columns": lambda x: x[:, [4, 1]],
    "no rows": lambda x: x[3:3], "no columns": lambda x: x[:, 6:], "both": lambda x: x[2:, 1:5],
}  # fmt: skip


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("index_dtype", ["int32", "int64"])
def test_each_dtype(emu: Any, dtype: str, index_dtype: str) -> None:
    a = matrix(9, 7, dtype=dtype)
    kinds = [TensorType(d, (None,)) for d in (dtype, index_dtype, index_dtype, index_dtype)]
    given = [kind(n) for kind, n in zip(kinds, "dipk", strict=True)]
    positions = np.array([8, 0, 3, 3, 7])
    values = [a.data, *(x.astype(index_dtype) for x in (a.indices, a.indptr, positions))]

    def parts(data: Any) -> list[Any]:
        start, stop = (T.as_tensor_variable(np.int64(n)) for n in (2, 6))
        _, i, p, k = given
        return [*TakeMajor()(data, i, p, k), *CropMinor()(data, i, p, start, stop)]

    plain = symcomp.function(given, parts(given[0]))
    f = symcomp.function(given, parts(gpu.to_gpu(given[0], DEVICE).as_tensor_variable()))
    assert sum(name.startswith("RunEntries") for name in ops_on_device(f)) == 2
    for order in ORDERS if isinstance(emu, Emulator) else [0]:
        emu.order = order
        for found, wanted in zip(f(*values), plain(*values), strict=True):
            assert found.dtype == wanted.dtype
            np.testing.assert_array_equal(found, wanted)
    values[3] = np.array([9], index_dtype)
    with pytest.raises(IndexError, match="is out of range for an axis of length 9"):
        f(*values)
    with pytest.raises(IndexError, match="index 9 at position 0 is not between 0 and 8"):
        plain(*values)


@pytest.mark.parametrize("format", ["csr", "csc"])
@pytest.mark.parametrize("which", SLICES)
def test_slices(emu: Any, format: str, which: str) -> None:
    a, part = matrix(8, 6, format), SLICES[which]
    s = sparse.shared(a, device=DEVICE)
    y, _ = variables(format)
    with on_device:
        f = symcomp.function([], part(s))
    plain = symcomp.function([y], part(y))
    for new in (a, matrix(8, 6, format, seed=1), sp.csr_array((8, 6), dtype="float32")):
        s.set_value(new.asformat(format))
        emu.wait()
        emu.counters.clear()
        found = f()
        assert_same(found, plain(new.asformat(format)))
        np.testing.assert_array_equal(found.toarray(), part(new.toarray()))
    kept = ("TakeMajor", "CropMinor", "TransposeCompressed")
    assert not [name for name in stays(f) if name.startswith(kept)]


def test_one_number_goes_to_the_host(emu: Any) -> None:
    a = matrix(9, 7)
    s, ids = sparse.shared(a, device=DEVICE), T.lvector("ids")
    with on_device:
        z = sparse.sp_sum(s[ids], 1)
        f = symcomp.function([ids], gpu.to_gpu(z, DEVICE))
    f([2, 0])
    emu.wait()
    emu.counters.clear()
    found = f([8, 1])
    assert (emu.counters.to_host, emu.counters.waits) == (8, 1)
    np.testing.assert_allclose(found.get(), a.toarray()[[8, 1]].sum(1), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("format", ["csr", "csc"])
def test_gradients(emu: Any, format: str) -> None:
    a = matrix(8, 6, format)
    s, y = sparse.shared(a, device=DEVICE), variables(format)[0]

    def gradient(x: Any) -> Any:
        parts = x[1:5, 2:], x[[3, 0]], x[:, [1, 4]]
        return T.grad(sum(T.sqr(sparse.csm_data(part)).sum() for part in parts), x)

    with on_device:
        f = symcomp.function([], gradient(s))
    assert not [name for name in ops_on_host(f) if name.startswith(("TakeMajor", "CropMinor"))]
    assert_same(f(), symcomp.function([y], gradient(y))(a))


def test_ops_of_slices(emu: Any) -> None:
    """`perform` of the ops agrees with the ops that they take the place of."""
    a = matrix(9, 7)
    ids, start, stop = np.array([4, 4, 0], a.indices.dtype), np.int64(1), np.int64(5)
    for kind, given, op, more in (
        ("take", [ids, a.indptr], TakeMajor(), [ids]),
        ("crop", [a.indices, a.indptr, start, stop], CropMinor(), [start, stop]),
    ):
        runs = RunPointers(kind).perform(*given)
        shift = start if kind == "crop" else 0
        data, indices = RunEntries().perform(a.data, a.indices, *runs, shift)
        wanted = op.perform(a.data, a.indices, a.indptr, *more)
        for one, other in zip((data, indices, runs[1]), wanted, strict=True):
            np.testing.assert_array_equal(one, other)
            assert one.dtype == other.dtype
