"""Results of NVIDIA's libraries beside the processor's: on a card of the libraries there, on the
emulator of stand-ins.

Results that depend on the algorithm, such as signs of columns, are not compared.
"""

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import scipy.sparse

import symcomp
import symcomp.tensor as T
from symcomp import sparse
from symcomp.config import config
from symcomp.core.tensor import TensorType
from symcomp.gpu import to_gpu
from symcomp.gpu.driver.devices import driver_of
from symcomp.gpu.libraries.binding import library_of
from symcomp.gpu.libraries.cublas import Cublas
from symcomp.gpu.libraries.cudnn import Cudnn
from symcomp.gpu.libraries.cufft import Cufft
from symcomp.gpu.libraries.cusolver import Cusolver
from symcomp.gpu.libraries.cusparse import Cusparse
from symcomp.ops.windows.convolution import Convolve
from symcomp.ops.windows.geometry import Geometry
from symcomp.tests.gpu.libraries import stand_ins
from symcomp.tests.gpu.running import DEVICE, array, assert_close, check, ops_on_host
from symcomp.tests.gpu.test_cusolver import functions, positive

L = T.linalg
KINDS = {
    "cublas": Cublas, "cudnn": Cudnn, "cufft": Cufft, "cusolver": Cusolver, "cusparse": Cusparse,
}  # fmt: skip
ON_DEVICE = (
    "SVD", "QR", "Eig", "SLogDet", "Det", "Solve", "Chol", "MatrixInv", "Fourier", "Conv",
    "CompressedDot", "SampledDot", "Usmm",
)  # fmt: skip


@pytest.fixture
def libraries(emu: Any) -> Iterator[Any]:
    """Yield a function that skips a test if a library is missing on a card."""

    def need(*names: str) -> None:
        missing = [name for name in names if library_of(driver_of(DEVICE), KINDS[name]) is None]
        if missing:
            pytest.skip(f"{DEVICE} has no {', '.join(missing)}")

    if DEVICE == "emu":
        with stand_ins(emu, *KINDS):
            yield need
    else:
        yield need


def compare(inputs: Any, outputs: Any, values: Any, units: float) -> None:
    f = check(inputs, outputs, values, units, orders=[0], on_host=True)
    assert not any(name.startswith(ON_DEVICE) for name in ops_on_host(f)), ops_on_host(f)


def turned(x: Any) -> Any:
    return T.swapaxes(x, -1, -2)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", [(4,), (3, 5), (2, 130)])
def test_systems(libraries: Any, shape: Any, dtype: str) -> None:
    libraries("cublas", "cusolver")
    a, p, b = (TensorType(dtype, (None,) * (len(shape) + 1))(name) for name in "apb")
    x = positive(*shape)
    # Condition numbers are below 10, so errors are some units times the number of rows.
    p_value = (x / (1 + np.abs(x).sum(-1, keepdims=True)) + np.eye(shape[-1])).astype(dtype)
    p_value = (p_value + np.swapaxes(p_value, -1, -2)) / 2
    values = [p_value[..., ::-1, :].copy(), p_value, array(*shape, 3, dtype=dtype)]
    wanted = functions(p, p, b)[:8] + [L.solve_triangular(p, b, lower=True), L.solve(a, b)]
    compare([a, p, b], [*wanted, L.det(a), *L.slogdet(a)], values, 16 * shape[-1] + 64)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", [(5, 3), (3, 5), (2, 4, 4), (2, 40, 33)])
def test_decompositions(libraries: Any, shape: Any, dtype: str) -> None:
    libraries("cusolver")
    x = TensorType(dtype, (None,) * len(shape))("x")
    outputs = [L.svd(x, compute_uv=False)]
    for mode in ("reduced", "complete"):
        q, r = L.qr(x, mode=mode)
        outputs += [T.matmul(q, r), T.matmul(turned(q), q), abs(r), T.triu(r) - r]
    for full in (True, False):
        u, s, vh = L.svd(x, full_matrices=full)
        outputs += [s, T.matmul(turned(u), u), T.matmul(vh, turned(vh))]
    outputs.append(T.matmul(u * s[..., None, :], vh))
    square = T.matmul(x, turned(x))
    for side in "LU":
        w, v = L.eigh(square, UPLO=side)
        outputs += [w, T.matmul(v * w[..., None, :], turned(v)), T.matmul(turned(v), v)]
    outputs.append(L.eigvalsh(square))
    # Rounding errors of squares are those of the largest eigenvalue.
    compare([x], outputs, [array(*shape, dtype=dtype)], 64 * max(shape))


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
def test_transforms(libraries: Any, dtype: str) -> None:
    libraries("cufft")
    x = T.tensor3("x", dtype=dtype)
    outputs = [
        T.fft.fft(x), T.fft.ifft(x, axis=0), T.fft.fftn(x), T.fft.fftn(x, axes=(0, 2)),
        T.fft.fft(x[:, ::-1, ::2].transpose(2, 0, 1)), T.fft.irfftn(x, s=(4, 7)),
    ]  # fmt: skip
    if dtype.startswith("float"):
        outputs += [T.fft.rfft(x), T.fft.rfft(x[1:]), T.fft.irfft(T.fft.rfft(x), is_odd=True)]
    values = array(3, 4, 15, dtype="float64") + (1j if dtype.startswith("c") else 0)
    compare([x], outputs, [values.astype(dtype)], 64)


@pytest.mark.parametrize(("dtype", "units"), [("float16", 4), ("float32", 256), ("float64", 256)])
@pytest.mark.parametrize(
    ("geometry", "groups", "images", "kernels"),
    [
        (Geometry(("half",), (2,), (1,)), 1, (2, 3, 19), (4, 3, 3)),
        (Geometry(("half", "valid"), (1, 2), (1, 1)), 2, (2, 4, 9, 8), (6, 2, 3, 3)),
        (Geometry(("full", (1, 1)), (1, 1), (2, 1)), 1, (2, 8, 9, 8), (8, 8, 3, 3)),
        (Geometry(("half",) * 3, (1, 2, 1), (1, 1, 1)), 1, (1, 2, 5, 6, 4), (3, 2, 3, 3, 3)),
    ],
)
def test_convolutions(
    libraries: Any, geometry: Any, groups: int, images: Any, kernels: Any, dtype: str, units: int
) -> None:
    libraries("cudnn")
    x, w = (TensorType(dtype, (None,) * len(images))() for _ in range(2))
    z = Convolve(geometry, groups)(x, w)
    gradients = symcomp.grad((z * T.cos(z)).sum(dtype="float64"), [x, w])
    with config.change_flags(gpu_products="full"):
        compare([x, w], z, [array(*images, dtype=dtype), array(*kernels, dtype=dtype)], units)
        values = [array(*images, dtype=dtype), array(*kernels, dtype=dtype)]
        compare([x, w], gradients, values, 16 * units)


def test_matrices_that_fail(libraries: Any) -> None:
    libraries("cublas", "cusolver")
    s = T.dtensor3("s")
    bad = positive(3, 4)
    bad[1, 2:] = bad[1, :, 2:] = 0
    for make, said in ((L.cholesky, "matrix 1 is not positive"), (L.matrix_inverse, "matrix 1 is")):
        with config.change_flags(device=DEVICE):
            f = symcomp.function([s], make(s))
        with pytest.raises(np.linalg.LinAlgError, match=said):
            np.asarray(f(bad))


@pytest.mark.parametrize(
    ("dtype", "index_dtype"),
    [
        ("float32", "int32"), ("float64", "int64"), ("complex64", "int64"), ("complex128", "int32"),
    ],
)  # fmt: skip
def test_sparse_products(libraries: Any, dtype: str, index_dtype: str) -> None:
    libraries("cusparse")
    x = sparse.matrix("csr", "x", dtype=dtype, index_dtype=index_dtype)
    v, d = T.vector("v", dtype=dtype), T.matrix("d", dtype=dtype)
    products = [sparse.dot(x, v), sparse.dot(x, d), sparse.dot(x, d[:, ::-1].copy()[:, 1:])]
    loss = sum((z * T.conj(z)).real.sum() for z in products)
    outputs = [*products, *T.grad(loss, [v, d]), sparse.csm_data(T.grad(loss, x))]
    value = scipy.sparse.random_array((70, 90), density=0.2, rng=3, format="csr").astype(dtype)
    compare([x, v, d], outputs, [value, array(90, dtype=dtype), array(90, 20, dtype=dtype)], 256)


WORK = {
    "cublas": lambda x, s: T.dot(x, x),
    "cudnn": lambda x, s: T.nnet.conv2d(x[None, None], x[:3, :3][None, None])[0, 0],
    "cufft": lambda x, s: abs(T.fft.fft(x)),
    "cusolver": lambda x, s: L.cholesky(T.dot(x, x.T) + 9 * T.eye(8, dtype="float32")),
    "cusparse SpMV": lambda x, s: sparse.dot(s, x[0])[:, None],
    "cusparse SpMM": lambda x, s: sparse.dot(s, x),
    "cusparse SDDMM": lambda x, s: sparse.csm_data(sparse.sampling_dot(x, x, s))[:, None],
}


@pytest.mark.parametrize("work", WORK)
def test_repeated_calls(libraries: Any, work: str) -> None:
    """Repeated calls are graphs where the library allows that; none that is recorded is refused."""
    libraries("cublas", work.split()[0])
    value = scipy.sparse.random_array((8, 8), density=0.5, rng=3, format="csr").astype("float32")
    with config.change_flags(device=DEVICE):
        x, s = symcomp.shared(array(8, 8)), sparse.shared(value, device=DEVICE)
        y = T.tanh(WORK[work](x, s))
        loss = T.sqr(y - y.mean(axis=0)).sum()
        f = symcomp.function([], [to_gpu(loss, DEVICE), to_gpu(symcomp.grad(loss, x), DEVICE)])
    with config.change_flags(gpu_graphs=False):
        wanted = [np.asarray(z) for z in f()]
    counters = driver_of(DEVICE).counters
    counters.clear()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(12):
            for z, w in zip(f(), wanted, strict=True):
                assert_close(np.asarray(z), w, 256)
    if DEVICE != "emu":  # the pool of the emulator does not give addresses again
        assert (counters.graphs > 0) is (work not in ("cusolver", "cusparse SpMM"))


@pytest.mark.parametrize("format", ["csr", "csc"])
def test_shared_matrices(libraries: Any, format: str) -> None:
    """Train one there, beside NumPy, then multiply by it and by its transpose in a loop."""
    libraries("cublas", "cusparse")
    value = scipy.sparse.random_array((30, 20), density=0.3, rng=1, format=format)
    value = value.astype("float32")
    given = array(30), array(20, 7)
    s = sparse.shared(value, device=DEVICE)
    with config.change_flags(device=DEVICE):
        v, d, x = *(symcomp.shared(one) for one in given), T.fvector("x")
        loss = T.sqr(sparse.dot(s, d)).sum() + T.sqr(sparse.dot(s.T, v)).sum()
        by_s, by_d, by_v = symcomp.grad(loss, [s, d, v])
        f = symcomp.function([], [by_d, by_v], updates=[(s, s - by_s * np.float32(0.01))])
        hs, _ = symcomp.scan(
            lambda h: T.tanh(sparse.dot(s, sparse.dot(s.T, h))), outputs_info=x, n_steps=5
        )
        g = symcomp.function([x], [hs[-1], symcomp.grad(hs[-1].sum(), x)])
    dense, (a, b) = value.toarray().astype("float64"), given
    for _ in range(3):
        wanted = [2 * dense.T @ dense @ b, 2 * dense @ dense.T @ a]
        for one, other in zip(f(), wanted, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-4)
        slope = 2 * dense @ b @ b.T + 2 * np.outer(a, dense.T @ a)
        dense = dense - 0.01 * slope * (value.toarray() != 0)
    np.testing.assert_allclose(s.get_value().toarray(), dense, rtol=1e-4, atol=1e-4)
    h, turned_dense, slope = a, dense @ dense.T, np.eye(30)
    for _ in range(5):
        h = np.tanh(turned_dense @ h)
        slope = (1 - h[:, None] ** 2) * (turned_dense @ slope)
    for one, other in zip(g(a), [h, slope.sum(0)], strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-3)
