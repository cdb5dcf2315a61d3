"""Products with sparse matrices by cuSPARSE: a stand-in with its names and arguments, on the
emulator.
"""

import gc
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import symcomp
import symcomp.tensor as T
from symcomp import gpu, sparse
from symcomp.config import config
from symcomp.errors import ShapeError, SparsePatternError
from symcomp.gpu.driver.devices import set_driver
from symcomp.gpu.driver.emulator import Emulator
from symcomp.gpu.errors import DeviceError
from symcomp.gpu.region import DeviceGraph
from symcomp.sparse.products import CompressedDot, SampledDot
from symcomp.tests.gpu.libraries import stand_ins
from symcomp.tests.gpu.running import (
    DEVICE,
    array,
    assert_close,
    check,
    check_loops,
    compile_both,
    ops_on_device,
    ops_on_host,
)  # fmt: skip

pytestmark = pytest.mark.skipif(DEVICE != "emu", reason="stand-ins are for the emulator")
# NVIDIA's numbers of reproducible algorithms
SPMV_CSR_ALG2, SPMM_CSR_ALG3 = 3, 12


@pytest.fixture
def cusparse(emu: Emulator) -> Iterator[Any]:
    with stand_ins(emu, "cusparse") as (library,):
        yield library


def matrix(
    rows: int, columns: int, format: str, dtype: str = "float32", density: float = 0.4
) -> Any:
    made = sp.random_array((rows, columns), density=density, rng=3, format=format)
    return made.astype(dtype)


def variable(format: str) -> Any:
    return sparse.matrix(format, "x", dtype="float32")


def stays(f: Any) -> list[str]:
    """Return the ops on the host that are no ops on objects of SciPy, or on their lengths."""
    known = ("Components", "Assemble", "Subtensor", "Shape", "DeviceLength", "Stack")
    return [name for name in ops_on_host(f) if not name.startswith(known)]


@pytest.mark.parametrize("format", ["csr", "csc"])
def test_products_and_gradients(cusparse: Any, emu: Emulator, format: str) -> None:
    """Products of other dtypes are in test_libraries."""
    x, v, d = variable(format), T.fvector("v"), T.fmatrix("d")
    products = [sparse.dot(x, v), sparse.dot(x, d)]
    loss = sum(T.sqr(z).sum() for z in products)
    before = cusparse.fake_calls()
    outputs = [*products, *T.grad(loss, [v, d]), sparse.csm_data(T.grad(loss, x))]
    values = [matrix(4, 5, format), array(5), array(5, 3)]
    f = check([x, v, d], outputs, values, 64, [0], on_host=True)
    assert not stays(f)
    assert cusparse.fake_calls() == before + 6
    assert cusparse.fake_turned() == 0


def test_layouts_of_the_dense_factor(cusparse: Any, emu: Emulator) -> None:
    x, d, v = variable("csr"), T.fmatrix("d"), T.fvector("v")
    values = [matrix(4, 6, "csr"), array(6, 6), array(12)]
    parts = [d[:, 1:4], d.T, d[:, ::2], d[::-1], T.tile(d[:, :1], (1, 3)), d[:1].T]
    outputs = [*(sparse.dot(x, part) for part in parts), sparse.dot(x, v[::2])]
    check([x, d, v], outputs, values, 32, [0], on_host=True)


def test_chains_sums_and_scaled_products(cusparse: Any, emu: Emulator) -> None:
    x, d, z, alpha = variable("csc"), T.fmatrix("d"), T.fmatrix("z"), T.fscalar("alpha")
    outputs = [
        T.tanh(sparse.usmm(alpha, x, d, z)), sparse.dot(d.T, x.T), z - sparse.dot(x * 2, d),
        sparse.dot(x.T, sparse.dot(x, d)),
    ]  # fmt: skip
    values = [matrix(4, 5, "csc"), array(5, 3), array(4, 3), np.float32(0.3)]
    f = check([x, d, z, alpha], outputs, values, 32, [0], on_host=True)
    assert not stays(f)


def test_sampled_products(cusparse: Any, emu: Emulator) -> None:
    p, a, b = variable("csr"), T.fmatrix("a"), T.fmatrix("b")
    z = sparse.csm_data(sparse.sampling_dot(a, b, p))
    values = [matrix(4, 5, "csr"), array(4, 3), array(5, 3)]
    loss = T.sqr(z).sum()
    f = check([p, a, b], [z, *T.grad(loss, [a, b])], values, 32, [0], on_host=True)
    assert not stays(f)
    with pytest.raises(ShapeError, match="do not fit a pattern"):
        f(values[0], array(3, 3), values[2])
    with pytest.raises(IndexError, match="is out of range for an axis of length 2"):
        f(values[0], values[1], array(2, 3))


def test_no_entries_and_no_elements(cusparse: Any, emu: Emulator) -> None:
    x, v, d = variable("csr"), T.fvector("v"), T.fmatrix("d")
    outputs = [sparse.dot(x, v) + 1, sparse.dot(x, d) + 1, sparse.dot(x.T, sparse.dot(x, d)) * 2]
    plain, f = compile_both([x, v, d], outputs)
    before = cusparse.fake_calls()
    for shape, columns in (((3, 4), 2), ((3, 0), 2), ((0, 4), 2), ((3, 4), 0)):
        values = sp.csr_array(shape, dtype="float32"), array(shape[1]), array(shape[1], columns)
        for one, other in zip(f(*values), plain(*values), strict=True):
            assert_close(one, other, 0)
    assert cusparse.fake_calls() == before
    with pytest.raises(ShapeError, match="the axes that meet have lengths 4 and 5"):
        f(sp.csr_array((3, 4), dtype="float32"), array(5), array(4, 1))


def test_patterns_are_checked_on_the_host(cusparse: Any, emu: Emulator) -> None:
    x, v = variable("csr"), T.fvector("v")
    _, f = compile_both([x, v], sparse.dot(x, v))
    broken = sp.csr_array((np.ones(2, "float32"), [0, 1], [0, 1, 2]), shape=(2, 3))
    broken.indices = np.array([0, 7], "int32")
    with pytest.raises(SparsePatternError, match="index 7 at position 1 is not between 0 and 2"):
        f(broken, array(3))
    twice = sp.csr_array((np.ones(3, "float32"), [2, 0, 2], [0, 3, 3]), shape=(2, 3))
    np.testing.assert_array_equal(f(twice, [1, 2, 4]), [9, 0])


def test_transposed_products_by_atomics(cusparse: Any, emu: Emulator) -> None:
    x, v, d = variable("csc"), T.fvector("v"), T.fmatrix("d")
    outputs = [sparse.dot(x, v), sparse.dot(x, d)]
    values = [matrix(4, 5, "csc"), array(5), array(5, 3)]
    for allowed in (False, True):
        with config.change_flags(gpu_atomics=allowed):
            check([x, v, d], outputs, values, 32, [0], on_host=True)
        assert cusparse.fake_turned() == allowed
        assert cusparse.fake_algorithm() == (0 if allowed else SPMM_CSR_ALG3)


def test_constants_live_on_the_device(cusparse: Any, emu: Emulator) -> None:
    value = matrix(40, 50, "csr")
    with config.change_flags(device="emu"):
        v = symcomp.shared(array(50))
        f = symcomp.function([], gpu.to_gpu(sparse.dot(sparse.constant(value), v), "emu"))
    for _ in range(2):
        emu.counters.clear()
        found = f().get()
    assert emu.counters.to_device == 0
    np.testing.assert_allclose(found, value @ array(50), rtol=1e-5, atol=1e-6)
    (region,) = [n.op for n in f.maker.fgraph.toposort() if isinstance(n.op, DeviceGraph)]
    kinds = [call.kind for call in region.program.plans[0].plan.calls]
    assert kinds == ["clear", "library"]  # indices are checked when the plan is made


def test_indices_of_constants_are_checked(cusparse: Any, emu: Emulator) -> None:
    value = matrix(4, 5, "csr")
    with config.change_flags(device="emu"):
        n, v, y = T.lscalar("n"), T.fvector("v"), T.fmatrix("y")
        data, indices, indptr, _ = sparse.components.parts_of(sparse.constant(value))
        f = symcomp.function([n, v], CompressedDot(False)(data, indices, indptr, n, v))
        p = symcomp.function([y], SampledDot()(indices, indptr, T.ones((4, 2), "float32"), y))
    np.testing.assert_allclose(f(5, array(5)), value @ array(5), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(p(array(5, 2)), array(5, 2).sum(axis=1)[value.indices], rtol=1e-5)
    short = int(value.indices.max())
    with pytest.raises(IndexError, match=f"is out of range for an axis of length {short}"):
        f(short, array(short))
    with pytest.raises(IndexError, match=f"is out of range for an axis of length {short}"):
        p(array(short, 2))


def test_without_the_library_the_processor_multiplies(emu: Emulator) -> None:
    x, v = variable("csr"), T.fvector("v")
    f = check(
        [x, v],
        T.exp(sparse.dot(x, T.tanh(v))),
        [matrix(4, 5, "csr"), array(5)],
        8,
        [0],
        on_host=True,
    )
    assert any(name.startswith("CompressedDot") for name in ops_on_host(f))
    assert not any(name.startswith("CompressedDot") for name in ops_on_device(f))


def test_in_loops(cusparse: Any, emu: Emulator) -> None:
    x, h = variable("csr"), T.fmatrix("h")
    states, _ = symcomp.scan(lambda s: T.tanh(sparse.dot(x, s)), outputs_info=[h], n_steps=4)
    outputs = [states[-1], symcomp.grad(T.sqr(states[-1]).sum(), h)]
    check_loops([x, h], outputs, [matrix(5, 5, "csr"), array(5, 3)], 64)


def test_in_graphs(emu: Emulator) -> None:
    driver = Emulator(keeps_blocks=True)
    set_driver("emu", driver)  # the fixture sets the one before again
    value = matrix(5, 5, "csr")
    with stand_ins(driver, "cusparse"), config.change_flags(device="emu"):
        w = symcomp.shared(array(5))
        new = T.tanh(sparse.dot(sparse.constant(value), w) * 2 + 1)
        f = symcomp.function([], updates=[(w, T.exp(new.mean() - new))])
        for _ in range(12):
            f()
            driver.wait()
        assert driver.counters.graphs > 4
        wanted = array(5)
        for _ in range(12):
            new = np.tanh(value @ wanted * 2 + 1)
            wanted = np.exp(new.mean() - new)
        np.testing.assert_allclose(w.get_value(), wanted, rtol=1e-4)


def test_descriptors_go_with_their_functions(cusparse: Any, emu: Emulator) -> None:
    x, d = variable("csr"), T.fmatrix("d")
    gc.collect()
    before = cusparse.fake_descriptors()
    _, f = compile_both([x, d], [sparse.dot(x, d), sparse.dot(x, d * 2)])
    f(matrix(4, 5, "csr"), array(5, 3))
    assert cusparse.fake_descriptors() == before + 3  # both have the same
    f(matrix(4, 5, "csr"), array(5, 2))
    assert cusparse.fake_descriptors() == before + 6
    del f
    gc.collect()
    assert cusparse.fake_descriptors() == before


def test_errors_of_the_library(cusparse: Any, emu: Emulator) -> None:
    x, v = variable("csr"), T.fvector("v")
    _, f = compile_both([x, v], sparse.dot(x, v))
    f(matrix(4, 5, "csr"), array(5))
    cusparse.fake_failure(6)
    said = r"cuSPARSE answers 6 \(execution failed\)"
    with config.change_flags(gpu_graphs=False), pytest.raises(DeviceError, match=said):
        f(matrix(4, 5, "csr"), array(5))
    np.testing.assert_allclose(
        f(matrix(4, 5, "csr"), array(5)), matrix(4, 5, "csr") @ array(5), rtol=1e-5, atol=1e-6
    )
