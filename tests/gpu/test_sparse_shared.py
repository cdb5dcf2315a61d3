"""Shared sparse matrices in the memory of a device, and patterns that are transposed once."""

import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import symcomp
import symcomp.tensor as T
from symcomp import gpu, sparse
from symcomp.compile.device_matrices import DeviceMatrix, SparsePattern
from symcomp.config import config
from symcomp.core.walk import toposort
from symcomp.errors import DTypeError, ShapeError
from symcomp.gpu.driver.devices import set_driver
from symcomp.gpu.driver.emulator import Emulator
from symcomp.gpu.libraries.cusparse import Transposing
from symcomp.gpu.plan import all_calls
from symcomp.gpu.region import DeviceGraph
from symcomp.tests.gpu.libraries import stand_ins
from symcomp.tests.gpu.running import DEVICE, array, functions_called, loops

pytestmark = pytest.mark.skipif(DEVICE != "emu", reason="stand-ins are for the emulator")
on_emu = config.change_flags(device="emu")


@pytest.fixture
def cusparse(emu: Emulator) -> Iterator[Any]:
    with stand_ins(emu, "cusparse") as (library,):
        yield library


def matrix(
    rows: int, columns: int, format: str = "csr", dtype: str = "float32", rng: int = 3
) -> Any:
    made = sp.random_array((rows, columns), density=0.4, rng=rng, format=format).astype(dtype)
    if dtype.startswith("complex"):
        made.data = made.data * (1 + 0.5j)
    return made.astype(dtype)


def transposes(f: Any) -> int:
    """Return how often the plans of a function transpose."""
    regions = [n.op for n in f.maker.fgraph.toposort() if isinstance(n.op, DeviceGraph)]
    calls = [call for op in regions for kept in op.program.plans for call in kept.plan.calls]
    return sum(isinstance(call.library, Transposing) for call in all_calls(calls))


def checks(f: Any) -> int:
    """Return how many calls of the plans of a function may report an error."""
    regions = [n.op for n in f.maker.fgraph.toposort() if isinstance(n.op, DeviceGraph)]
    calls = [call for op in regions for kept in op.program.plans for call in kept.plan.calls]
    return sum(call.can_fail for call in all_calls(calls))


def close(found: Any, wanted: Any) -> None:
    np.testing.assert_allclose(np.asarray(found), wanted, rtol=1e-5, atol=1e-5)


def losses(s: Any, v: Any, d: Any) -> tuple[Any, Any]:
    """Return a loss of products with a matrix, its transpose, and their gradients."""
    loss = T.sqr(sparse.dot(s, d)).sum() + T.sqr(sparse.dot(s.T, v)).sum()
    return loss, [T.grad(loss, d), T.grad(loss, v)]


def wanted(s: Any, v: Any, d: Any) -> list[Any]:
    s = s.toarray()
    along, across = s @ d, s.T @ v
    return [(along**2).sum() + (across**2).sum(), 2 * s.T @ along, 2 * s @ across]


@pytest.mark.parametrize("format", ["csr", "csc"])
def test_nothing_is_copied_or_transposed_again(cusparse: Any, emu: Emulator, format: str) -> None:
    with on_emu:
        s = sparse.shared(matrix(6, 5, format), name="s")
        v, d = symcomp.shared(array(6)), symcomp.shared(array(5, 3))
        loss, gradients = losses(s, v, d)
        f = symcomp.function([], [gpu.to_gpu(z, "emu") for z in (loss, *gradients)])
    f()
    counters = emu.counters
    for _ in range(3):
        counters.clear()
        found = f()
        assert (counters.to_device, counters.to_host, counters.waits) == (0, 0, 0)
        for one, other in zip(found, wanted(matrix(6, 5, format), array(6), array(5, 3)),
                              strict=True):  # fmt: skip
            close(one, other)
    assert transposes(f) == 0


@pytest.mark.parametrize("format", ["csr", "csc"])
def test_repeated_calls_run_no_python(cusparse: Any, emu: Emulator, format: str) -> None:
    with on_emu, config.change_flags(kernels=True):
        s = sparse.shared(matrix(6, 5, format), name="s")
        v, d = symcomp.shared(array(6)), symcomp.shared(array(5, 3))
        loss, gradients = losses(s, v, d)
        f = symcomp.function([], [gpu.to_gpu(z, "emu") for z in (loss, *gradients)])
        g = symcomp.function([], s.sum(), updates=[(s, s * np.float32(2))])
    held = []
    for call in (f, g):
        for _ in range(4):
            held.append(call())
        assert "python(" not in str(call.plan()) and "matrix on device(" in str(call.plan())
    f()  # brings the new entries into the order of the transpose
    assert functions_called(lambda: f()) == []
    value = matrix(6, 5, format)
    for k, found in enumerate(held[4:]):
        close(found, value.sum() * 2**k)
    assert (s.get_value() != value * 2**4).nnz == 0
    for found, scale in ((held[0], 1), (f(), 2**4)):
        for one, other in zip(found, wanted(value * scale, array(6), array(5, 3)), strict=True):
            np.testing.assert_allclose(np.asarray(one), other, rtol=1e-4, atol=1e-4 * scale)


def test_a_matrix_of_another_pattern(cusparse: Any, emu: Emulator) -> None:
    with on_emu:
        s, v, d = sparse.shared(matrix(6, 5)), symcomp.shared(array(6)), symcomp.shared(array(5, 3))
        loss, gradients = losses(s, v, d)
        f = symcomp.function([], [loss, *gradients])
    f()
    for new in (matrix(6, 5, rng=4), sp.csr_array((6, 5), dtype="float32"), matrix(6, 5, "csc")):
        s.set_value(new)
        for _ in range(2):
            for one, other in zip(f(), wanted(new, array(6), array(5, 3)), strict=True):
                close(one, other)
    with on_emu:
        known = sparse.shared(matrix(6, 5), shape=(6, 5))
        g = symcomp.function([], losses(known, v, d)[1])
    close(g()[0], wanted(matrix(6, 5), array(6), array(5, 3))[1])
    assert transposes(g) == 0
    s.set_value(matrix(4, 5))
    v.set_value(array(4))
    close(f()[1], wanted(matrix(4, 5), array(4), array(5, 3))[1])
    with pytest.raises(ShapeError, match="the axes that meet"):
        s.set_value(matrix(4, 3))
        f()


def test_values(cusparse: Any, emu: Emulator) -> None:
    value = matrix(6, 5)
    with on_emu:
        s = sparse.shared(value, name="s")
    there = s.get_value(return_internal_type=True)
    assert isinstance(there, DeviceMatrix) and repr(there).endswith("(6, 5), on emu)")
    assert there.nbytes == sum(x.nbytes for x in (value.data, value.indices, value.indptr))
    found = s.get_value()
    assert isinstance(found, sp.csr_array) and (found != value).nnz == 0
    found.data[...] = 7
    assert (s.get_value() != value).nnz == 0
    twice = pickle.loads(pickle.dumps(s))
    assert twice.get_value(return_internal_type=True).device == "emu"
    assert (twice.get_value() != value).nnz == 0
    s.set_value(value.astype("float64").astype("float32") * 2)
    assert (s.get_value() != value * 2).nnz == 0
    s.zero()
    assert s.get_value().nnz == value.nnz and not s.get_value().toarray().any()
    with pytest.raises(ShapeError):
        s.set_value(np.ones((2, 2, 2)))


def test_where_matrices_live(emu: Emulator) -> None:
    def device(**options: Any) -> str:
        s = sparse.shared(matrix(4, 4, **options.pop("of", {})), **options)
        return str(getattr(s.container.type, "device", "cpu"))

    with on_emu:
        with stand_ins(emu, "cusparse"):
            assert device() == device(format="csc") == "emu"
            assert device(format="coo") == device(of={"dtype": "int32"}) == "cpu"
            assert device(device="cpu") == "cpu"
        set_driver("emu", Emulator())  # the fixture sets the one before again
        assert device() == "cpu"  # there is no cuSPARSE
        assert device(device="emu") == "emu"
    assert device() == "cpu" and device(device="emu") == "emu"
    s = symcomp.shared(matrix(4, 4), target="emu")
    assert s.get_value(return_internal_type=True).device == "emu"
    with pytest.raises(DTypeError, match="on devices: csr and csc matrices of float32"):
        sparse.shared(matrix(4, 4), format="coo", device="emu")


def test_without_the_library(emu: Emulator) -> None:
    v = T.fvector("v")
    s = sparse.shared(matrix(6, 5), device="emu")
    f = symcomp.function([v], [sparse.dot(s, v), (s * 2).sum(axis=0), s.T])
    along, sums, turned = f(array(5))
    close(along, matrix(6, 5) @ array(5))
    close(sums, matrix(6, 5).toarray().sum(axis=0) * 2)
    close(turned.toarray(), matrix(6, 5).toarray().T)


@pytest.mark.parametrize("format", ["csr", "csc"])
@pytest.mark.parametrize("dtype", ["float32", "complex64"])
def test_updates_of_entries(cusparse: Any, emu: Emulator, format: str, dtype: str) -> None:
    """The pattern stays on the device, and is transposed once."""
    value = matrix(6, 5, format, dtype)
    with on_emu:
        s = sparse.shared(value)
        d = symcomp.shared(array(5, 3).astype(dtype), device="emu")
        loss = T.sqr(abs(sparse.dot(s, d))).sum()
        new = s - T.grad(loss, s) * np.float32(0.1).astype(dtype)
        f = symcomp.function(
            [], [gpu.to_gpu(loss, "emu"), gpu.to_gpu(T.grad(loss, d), "emu")], updates={s: new}
        )
    counters, before = emu.counters, s.get_value(return_internal_type=True)
    x, dense = value.toarray(), array(5, 3)
    where = x != 0
    for i in range(3):
        counters.clear()
        found = f()
        if i:
            assert (counters.to_device, counters.to_host, counters.waits) == (0, 0, 0)
        z = x @ dense
        close(found[0].get(), (abs(z) ** 2).sum())
        close(found[1].get(), 2 * x.conj().T @ z)
        x = np.where(where, x - 0.2 * z @ dense.T, 0)
        close(s.get_value().toarray(), x)
    after = s.get_value(return_internal_type=True)
    assert after.pattern is before.pattern and after is not before
    assert transposes(f) == checks(f) == 0


@pytest.mark.parametrize("format", ["csr", "csc"])
def test_updates_of_patterns(cusparse: Any, emu: Emulator, format: str) -> None:
    """A new pattern is made on the device; the host reads how many entries it has."""
    values = [matrix(5, 5, format), matrix(5, 5, format, rng=4)]
    with on_emu:
        s, q = map(sparse.shared, values)
        v = symcomp.shared(array(5))
        new = s + sparse.structured_dot(s, q) * np.float32(0.1)
        f = symcomp.function([], gpu.to_gpu(T.sqr(v).sum(), "emu"), updates={s: new})
        g = symcomp.function([], sparse.dot(s.T, v))
    value, other = (x.toarray() for x in values)
    for i in range(3):
        emu.wait()
        emu.counters.clear()
        f()
        counters = emu.counters
        assert (counters.to_host, counters.waits) == (16, 2)
        assert i == 0 or counters.to_device == 0  # first the constant 0.1
        value = value + value @ other * 0.1
        close(s.get_value().toarray(), value)
        close(g(), value.T @ array(5))


def test_updates_with_the_transpose(cusparse: Any, emu: Emulator) -> None:
    with on_emu:
        s = sparse.shared(matrix(5, 5))
        v = symcomp.shared(array(5))
        f = symcomp.function([], sparse.dot(s.T, v), updates={s: s + s.T})
    value = matrix(5, 5).toarray()
    for _ in range(3):
        close(f(), value.T @ array(5))
        value = value + value.T
        close(s.get_value().toarray(), value)


def test_entries_that_are_computed(cusparse: Any, emu: Emulator) -> None:
    with on_emu:
        s, v = sparse.shared(matrix(6, 5, "csc")), symcomp.shared(array(5))
        f = symcomp.function([], gpu.to_gpu(sparse.dot(s * 2, v), "emu"))
    for _ in range(2):
        emu.counters.clear()
        found = f()
    assert emu.counters.to_device == emu.counters.to_host == transposes(f) == 0
    close(found.get(), 2 * matrix(6, 5) @ array(5))


def test_a_longer_axis_is_no_longer_that_of_the_pattern(cusparse: Any, emu: Emulator) -> None:
    """The transpose of a matrix with more columns has more rows."""
    w = T.fvector("w")
    with on_emu:
        s = sparse.shared(matrix(4, 3))
        wide = sparse.hstack([s, sparse.constant(sp.csr_array((4, 2), dtype="float32"))])
        f = symcomp.function([w], sparse.dot(wide.T, w))
    close(f(array(4)), np.concatenate([matrix(4, 3).T @ array(4), [0, 0]]))


@pytest.mark.parametrize("is_constant", [False, True])
def test_entries_that_do_not_fit(cusparse: Any, emu: Emulator, is_constant: bool) -> None:
    value, data, v = matrix(6, 5, "csc"), T.fvector("data"), T.fvector("v")
    with on_emu:
        s = sparse.constant(value) if is_constant else sparse.shared(value)
        _, indices, indptr, shape = sparse.csm_properties(s)
        f = symcomp.function([data, v], sparse.dot(sparse.CSC(data, indices, indptr, shape), v))
    close(f(value.data * 3, array(5)), 3 * value @ array(5))
    assert transposes(f) == 0
    for n in (value.nnz - 1, value.nnz + 1):
        with pytest.raises(ShapeError):
            f(array(n), array(5))


@pytest.mark.parametrize("format", ["csr", "csc"])
def test_constants_are_transposed_when_a_function_is_compiled(
    cusparse: Any, emu: Emulator, format: str
) -> None:
    value = matrix(6, 5, format)
    with on_emu:
        v, d = symcomp.shared(array(6)), symcomp.shared(array(5, 3))
        loss, gradients = losses(sparse.constant(value), v, d)
        f = symcomp.function([], [loss, *gradients])
    for _ in range(2):
        emu.counters.clear()
        found = f()
    assert emu.counters.to_device == 0 and transposes(f) == 0
    for one, other in zip(found, wanted(value, array(6), array(5, 3)), strict=True):
        close(one, other)


@pytest.mark.parametrize("format", ["csr", "csc"])
@pytest.mark.parametrize("dtype", ["float32", "complex64"])
def test_loops_transpose_and_check_nothing(
    cusparse: Any, emu: Emulator, dtype: str, format: str
) -> None:
    h, value = T.matrix("h", dtype=dtype), matrix(5, 5, format, dtype)

    def function(device: str) -> Any:
        with config.change_flags(device=device):
            s = sparse.shared(value, device=device)
            states, _ = symcomp.scan(lambda z: sparse.dot(s, z) * 0.5, outputs_info=[h], n_steps=4)
            gradient = symcomp.grad(T.sqr(abs(states[-1])).sum(), h)
            return symcomp.function([h], [states[-1], gradient])

    f, plain, given = function("emu"), function("cpu"), array(5, 3).astype(dtype)
    for _ in range(2):
        for one, other in zip(f(given), plain(given), strict=True):
            close(one, other)
    assert loops(f) and transposes(f) == checks(f) == 0


def test_indices_of_arguments_are_checked(cusparse: Any, emu: Emulator) -> None:
    x, v = sparse.csr_matrix("x", dtype="float32"), T.fvector("v")
    with on_emu:
        s = sparse.shared(matrix(6, 5))
        f = symcomp.function([x, v], [sparse.dot(s, v), sparse.dot(x, v)])
    close(f(matrix(6, 5), array(5))[1], matrix(6, 5) @ array(5))
    assert checks(f) == 1


def test_regions_with_a_kept_transpose_are_graphs(emu: Emulator) -> None:
    with stand_ins(emu, "cusparse"), on_emu:
        s = sparse.shared(matrix(5, 5, "csc"))
        for w in (symcomp.shared(array(5)), symcomp.shared(array(5, 3))):
            f = symcomp.function([], updates=[(w, T.tanh(sparse.dot(s, w) * 2 + 1))])
            f()
            nodes = toposort(f.maker.fgraph.outputs)
            (region,) = [n.op for n in nodes if isinstance(n.op, DeviceGraph)]
            # cuSPARSE refuses to have products with matrices recorded.
            assert region.program.plans[0].plan.native.native.is_recordable is (w.ndim == 1)


@pytest.mark.parametrize("mode", ["DebugMode", "NanGuardMode", "FAST_COMPILE"])
def test_modes(cusparse: Any, emu: Emulator, mode: str) -> None:
    with on_emu:
        s, v = sparse.shared(matrix(6, 5, "csc")), symcomp.shared(array(5))
        new = s * np.float32(0.5)
        f = symcomp.function([], sparse.dot(s, v), updates={s: new}, mode=mode)
    close(f(), matrix(6, 5) @ array(5))
    close(s.get_value().toarray(), matrix(6, 5).toarray() * 0.5)


@pytest.mark.parametrize("device", [None, "cpu", "emu1"])
def test_saving(cusparse: Any, emu: Emulator, tmp_path: Path, device: str | None) -> None:
    with on_emu:
        s, d = sparse.shared(matrix(6, 5), name="s"), symcomp.shared(array(5, 3))
        loss = T.sqr(sparse.dot(s, d)).sum()
        q = sparse.shared(matrix(5, 5), name="q")
        outputs = [loss, T.grad(loss, d), sparse.dot((s * 2).T, T.ones(6, "float32")), q]
        updates = {s: s - T.grad(loss, s) * np.float32(0.1), q: q + q.T}
        f = symcomp.function([], outputs, updates=updates)
    symcomp.save(tmp_path / "f.symcomp", f)
    loaded = symcomp.load(tmp_path / "f.symcomp", device=device)
    for _ in range(2):
        *found, matrix_found = loaded()
        *values, expected = f()
        for one, other in zip(found, values, strict=True):
            close(one, other)
        close(matrix_found.toarray(), expected.toarray())
    (found,) = (x for x in loaded.get_shared() if x.name == "s")
    place = getattr(found.container.type, "device", "cpu")
    assert place == (device or "emu")
    close(found.get_value().toarray(), s.get_value().toarray())


def test_a_host_matrix_beside_a_tensor_on_a_device(cusparse: Any, emu: Emulator) -> None:
    with on_emu:
        s, v = sparse.shared(matrix(6, 5), device="cpu"), symcomp.shared(array(5))
        f = symcomp.function([], sparse.dot(s, v), updates={s: s * 2})
    close(f(), matrix(6, 5) @ array(5))
    close(f(), 2 * matrix(6, 5) @ array(5))


def test_memory_reports(cusparse: Any, emu: Emulator) -> None:
    with on_emu:
        s, v = sparse.shared(matrix(6, 5, "csc")), symcomp.shared(array(5))
        f = symcomp.function([], gpu.to_gpu(sparse.dot(s, v), "emu"), updates={s: s * 2})
    f()
    f()
    (usage,) = f.memory_report().devices
    there = s.get_value(return_internal_type=True)
    assert usage.inputs == there.nbytes + 20
    assert usage.results == 24 + there.data.nbytes
    assert usage.allocated is not None


def test_patterns_are_transposed_by_the_host_once(emu: Emulator) -> None:
    value = matrix(6, 5)
    there = sparse.shared(value, device="emu").get_value(return_internal_type=True)
    assert isinstance(there.pattern, SparsePattern)
    order, indices, indptr = there.pattern.transposed()
    assert there.pattern.transposed()[0] is order
    turned = value.tocsc()
    np.testing.assert_array_equal(value.data[order.get()], turned.data)
    np.testing.assert_array_equal(indices.get(), turned.indices)
    np.testing.assert_array_equal(indptr.get(), turned.indptr)
    np.testing.assert_array_equal(there.transposed_data().get(), turned.data)
    assert there.transposed_data() is there.transposed_data()
