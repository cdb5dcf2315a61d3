"""Kernels as NVIDIA's compilers see them: no warnings, no spills, no double in float kernels.

Nothing is run. Without nvcc and NVRTC these tests are skipped. Kernels are compiled for one
architecture; ``make gpu-emu`` has more of them, which it keeps and compiles for all.
"""

import ctypes
import os
import re
from collections.abc import Iterator, Sequence
from typing import Any

import ml_dtypes  # noqa: F401 (np.dtype knows bfloat16 then)
import numpy as np
import pytest

import symcomp
import symcomp.tensor as T
from symcomp.codegen.compiler.driver import CompilerError
from symcomp.codegen.cuda.text import CudaKernel, file_of
from symcomp.config import config
from symcomp.core.tensor import TensorType
from symcomp.cvm.machine import DeviceCounters
from symcomp.gpu import layouts
from symcomp.gpu.driver import compiler
from symcomp.gpu.driver.devices import set_driver
from symcomp.gpu.driver.emulator import Emulator
from symcomp.gpu.kernels.running import recurrence_kernel, running_kernel
from symcomp.gpu.kernels.running_parts import parts_kernel
from symcomp.gpu.kernels.segments import numbers_kernel, segments_kernel
from symcomp.gpu.kernels.sorting import EACH, merge_kernel, tiles_kernel
from symcomp.gpu.kernels.sparse_patterns import columns_kernel, merged_kernel
from symcomp.gpu.kernels.sparse_rows import (
    dense_kernel,
    entries_kernel,
    lookup_kernel,
    ordered_kernel,
    starts_kernel,
    transposed_kernel,
)
from symcomp.gpu.kernels.sparse_slices import moved_kernel, runs_kernel
from symcomp.ops.elementwise.scalar_special import gammainc_der
from symcomp.tensor.signal.pool import pool_2d
from symcomp.tests.gpu.running import keep

ALL = ("sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_120")
IS_LONG = bool(os.environ.get("SYMCOMP_ALL_ARCHS"))

ARCH = "sm_90"
# tools/gpu_kernels.py compiles for the others.
ARCHS = ("sm_86", "sm_89", ARCH) if IS_LONG else (ARCH,)
DTYPES = ("float16", "bfloat16", "float32", "float64") if IS_LONG else ("float32",)
START = np.array([3, 2, 1], "uint64")
FRAMES = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores")


def some(*cases: Any) -> Sequence[Any]:
    """Return all cases for `make gpu-emu`, else the first."""
    return cases if IS_LONG else cases[:1]


# The entry of a kernel: machine, grid, block, bytes of shared memory, parameters and their bytes.
ENTRY = ctypes.PYFUNCTYPE(
    ctypes.c_int, *[ctypes.c_void_p] * 3, ctypes.c_size_t, ctypes.c_void_p, ctypes.c_size_t
)


class Recorder(Emulator):
    """Notes which kernels functions need, and the most bytes of their parameters; runs none."""

    def __init__(self) -> None:
        super().__init__(lazy=False)
        self.wanted: dict[str, CudaKernel] = {}
        self.largest = 0
        self._entry = ENTRY(self._note)

    def _note(self, *given: Any) -> int:
        self.largest = max(self.largest, given[-1])
        return 0

    def kernels(self, wanted: Sequence[CudaKernel]) -> dict[str, int]:
        self.wanted.update((kernel.name, kernel) for kernel in wanted)
        address = ctypes.cast(self._entry, ctypes.c_void_p).value or 0
        return dict.fromkeys((kernel.name for kernel in wanted), address)


@pytest.fixture
def recorder() -> Iterator[Recorder]:
    driver = Recorder()
    before = set_driver("emu", driver)
    with config.change_flags(device="emu"):
        yield driver
    set_driver("emu", before)
    assert driver.largest <= 4096


def record(inputs: Sequence[Any], outputs: Sequence[Any], *values: Any) -> None:
    """Compile and call a function."""
    found = [symcomp.gpu.to_gpu(z, "emu") for z in outputs]
    symcomp.function(inputs, found)(*values)


def record_samples(dtype: str) -> None:
    """Call functions that need kernels of all kinds."""
    kind = TensorType(dtype, (None, None))
    x, y, i, j = kind("x"), kind("y"), T.lvector("i"), T.ivector("j")
    a, at = np.ones((40, 70), dtype), np.zeros(40, "int64")
    t = T.tanh(x * y) + T.exp(x)
    record([x, y], [t, t + y[0], t.T * 2, T.switch(x > y, x, -y), T.nnet.sigmoid(x)], a, a)
    record([x], [T.sqrt(T.abs(x)), T.log1p(x), T.floor(x), T.clip(x, 0, 1), x // 2, x % 3], a)
    record([x], [(x * 2).sum(), (x * 2).sum(0), (x * 2).max(1), x.prod(1)], a)
    record([x], [(x * 2).sum(1), (x * 2).max(1)], np.ones((2, 9000), dtype))
    for length in (20, 1000):  # many rows, which lanes of warps make
        variance = x.var(1, keepdims=True)
        record([x], [T.nnet.softmax(x), x.mean(1), x.min(1)], np.ones((9000, length), dtype))
        record([x], [(x - x.mean(1, keepdims=True)) / variance], np.ones((9000, length), dtype))
    record(
        [x, j],
        [T.nnet.softmax(x), T.log(T.nnet.softmax(x))[T.arange(40), j]],
        a,
        at.astype("int32"),
    )
    record([x, y], [T.dot(x, y.T), T.dot(x.T, y) * 2 + x[:1].sum()], a, a)
    record(
        [x, i], [(x * 2)[i], T.inc_subtensor((x * 2)[i], x), T.set_subtensor((x * 2)[i], x)], a, at
    )
    record([x, i], [(x * 2)[i], (x * 2)[:, i]], np.ones((40, 64), dtype), at)  # packs
    rows, _ = symcomp.scan(lambda k, h: T.set_subtensor(h[k], x[k, k]), T.arange(4), x[0])
    record([x], [rows], a)
    record([x], [T.sort(x * 2), T.argsort(x * 2, 0), T.argtopk(x * 2, 2)], a)
    record([x], [T.sort(x * 2), T.argsort(x * 2)], np.ones((2, 9000), dtype))
    record([x], [symcomp.grad(T.cumprod(x * 2, axis=1).sum(), x)], a)
    record([x], [T.cumsum(x * 2, axis=1), T.cumsum(x * 2, axis=0), T.cumprod(x.T, axis=1)], a)
    record([x], [T.cumsum(x, axis=1)], np.ones((3, 1100), dtype))
    record([x], [T.cumsum(x, axis=1)], np.ones((1, 9000), dtype))
    record([x, y], [T.searchsorted(T.sort(x[0] * 2), y * 2)], a, a)
    state = T.random.state("state", "philox")
    # The cosine of double has a stack frame.
    draws = [T.random.uniform, T.random.exponential]
    draws += [T.random.normal] if dtype != "float64" else []
    noise = [draw(state, size=x.shape, dtype=dtype)[1] * x for draw in draws]
    record([x, state], [*noise, T.random.integers(state, 0, 9, size=x.shape)[1] * x], a, START)
    record([x, y], [T.join(0, x * 2, y), T.set_subtensor((x * 2)[::2, 1:], 0)], a, a)
    record([x, y], [T.tanh(x) + y.T, T.reshape(y.T * 2, (2, 1400))], a, np.ones((70, 40), dtype))
    record_windows(dtype)


def record_complex(dtype: str) -> None:
    """Call functions of complex numbers."""
    z, a = T.matrix("z", dtype=dtype), np.ones((40, 70), dtype)
    functions = T.exp, T.log, T.sqrt, T.sin, T.tan, T.cosh, T.tanh, T.expm1, T.log1p, T.sgn
    record([z], [f(z) for f in functions], a)
    record([z], [f(z) for f in (T.arcsin, T.arccosh, T.arctanh, T.arctan)], a)
    record([z], [T.cumsum(z, axis=0), T.cumprod(z, axis=1), z.prod(axis=0)], a)
    record([z], [symcomp.grad(abs(T.cumprod(z, axis=0)).sum(), z)], a)
    record([z], [z**3, z**-0.5, z**z, T.dot(z, T.conj(z).T), T.switch(T.isnan(z), 0, z)], a)
    record([z], [z + (2 - 1j) * T.dot(T.dot(z, z.T), z)], a)
    xs = [T.matrix(f"x{i}", dtype=dtype) for i in range(40)]
    record(xs, [T.add(*xs), sum(T.exp(x) * i for i, x in enumerate(xs))], *[a[:, ::2]] * 40)


def record_windows(dtype: str) -> None:
    """Call functions that convolve and pool."""
    kind = TensorType(dtype, (None,) * 4)
    x, w = kind("x"), kind("w")
    y = T.nnet.conv2d(x, w, border_mode="half", subsample=(1, 2))
    z = [pool_2d(y, (2, 2), True, mode=mode) for mode in ("max", "average_inc_pad")]
    gradients = symcomp.grad(sum(T.sqr(one).sum() for one in z), [x, w])
    ones = lambda *shape: np.ones(shape, dtype)  # noqa: E731
    record([x, w], [y, *z, *gradients], ones(9, 3, 20, 20), ones(4, 3, 3, 3))
    kind = TensorType(dtype, (None,) * 5)
    x, w = kind("x"), kind("w")
    y = T.nnet.conv3d(x, w)
    gradients = symcomp.grad(T.sqr(y).sum(), [x, w])
    record([x, w], [y, *gradients], ones(2, 3, 5, 5, 5), ones(4, 3, 3, 3, 3))


def compiled(kernels: Sequence[CudaKernel], arch: str = ARCH, stack: bool = False) -> None:
    """Compile kernels together without warnings: none spills, or has a stack if it shall not."""
    nvcc = compiler.find_nvcc()
    if nvcc is None:
        pytest.skip("there is no nvcc")
    keep(kernels)
    flags = ("-v",) if stack else ("-v", "-warn-spills", "-warn-lmem-usage")
    text = file_of([kernel.text for kernel in kernels])
    nvcc.compile(text, arch, "-Werror", "all-warnings", "-Xptxas", ",".join(flags))
    frames = FRAMES.findall(nvcc.said)
    assert len(frames) >= len(kernels)
    assert stack or all(frame == ("0", "0") for frame in frames), nvcc.said


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("arch", ARCHS)
def test_nvcc(recorder: Recorder, arch: str, dtype: str) -> None:
    record_samples(dtype)
    assert len(recorder.wanted) > 20
    compiled([*recorder.wanted.values()], arch)


@pytest.mark.parametrize("dtype", DTYPES)
def test_nvcc_takes_merged_kernels(recorder: Recorder, dtype: str) -> None:
    x, y, i = T.matrix("x", dtype=dtype), T.vector("y", dtype=dtype), T.lvector("i")
    z = x
    for _ in range(3):
        z = T.tanh(T.dot(z, x)) + y.sum()
    centred = y - T.sqr(y).mean()
    outputs = [z, T.nnet.softmax(z), T.cumsum(z, axis=1)[i], centred, T.sort(centred)]
    record([x, y, i], outputs, np.ones((20, 20), dtype), np.ones(300, dtype), np.arange(3))
    states, _ = symcomp.scan(lambda h: T.tanh(T.dot(x, h) + y), None, y, n_steps=5)
    record([x, y], [states], np.ones((4, 4), dtype), np.ones(4, dtype))
    merged = [kernel for kernel in recorder.wanted.values() if "given_words" in kernel.text]
    text = "".join(kernel.text for kernel in merged)
    assert len(merged) >= 2 and "wait_for_first(" in text and "__shared__ union" in text
    compiled(merged)


@pytest.mark.parametrize(
    ("side", "dtype", "transposed", "direct"),
    some(
        (64, "float32", 1, 2), (32, "complex128", 1, 2), (64, "int16", 2, 2), (64, "float16", 1, 2),
        (32, "int8", 5, 8), (32, "float16", 3, 8), (32, "float32", 3, 8), (32, "float32", 11, 1),
        (32, "float64", 2, 4), (32, "complex64", 2, 2), (64, "int8", 2, 2),
    ),
)  # fmt: skip
def test_nvcc_takes_tiles(
    recorder: Recorder,
    monkeypatch: pytest.MonkeyPatch,
    side: int,
    dtype: str,
    transposed: int,
    direct: int,
) -> None:
    """Many inputs, for which tiles have just room."""
    room = {one: room for one, room, _ in layouts.TILES}[side]
    monkeypatch.setattr(layouts, "TILES", ((side, room, 1),))
    xs = [T.tensor3(f"x{i}", dtype=dtype) for i in range(transposed + direct)]
    values = [np.ones((2, 80, 70), dtype)] * transposed + [np.ones((70, 2, 80), dtype)] * direct
    there = [symcomp.gpu.to_gpu(x, "emu") for x in xs]
    turned = [x.transpose(2, 0, 1) for x in there[:transposed]]
    z = T.add(*turned, *there[transposed:])
    function = T.sqr if np.dtype(dtype).kind in "ic" else T.tanh
    for wide in (False, True):
        for module in ("formulas", "reductions"):
            name = f"symcomp.gpu.{module}.needs_wide"
            monkeypatch.setattr(name, lambda *_, wide=wide: wide)
        record(xs, [function(z), turned[0] - 1], *values)
    kernels = [k for k in recorder.wanted.values() if "height" in k.numbers]
    assert {kernel.wide for kernel in kernels} == {False, True}
    compiled(kernels)


def record_functions_of_doubles() -> None:
    """Call functions that are not inlined: gamma and error functions, and the cosine."""
    state = T.random.state("state", "philox")
    x, y = T.dmatrix("x"), T.dmatrix("y")
    a = np.ones((3, 4))
    record([x], [T.gamma(x), T.gammaln(x), T.psi(x), T.tri_gamma(x), T.polygamma(3, x)], a)
    record([x, y], [T.betaln(x, y), T.poch(x, y), gammainc_der(x, y)], a, a)
    record([x], [T.erfcx(x), T.log_ndtr(x), T.ndtr(x)], a)
    record([x], [T.logaddexp(x, 0.5), T.logdiffexp(x, 0.5), T.sin(x) / x, T.expm1(x) / x], a)
    record([x], [symcomp.grad((T.tanh(x) / x).sum(), x)], a)
    record([x, state], [T.random.normal(state, size=x.shape, dtype="float64")[1] * x], a, START)


@pytest.mark.skipif(not IS_LONG, reason="`make gpu-emu` compiles them")
def test_nvcc_takes_functions_of_doubles(recorder: Recorder) -> None:
    record_functions_of_doubles()
    text = "".join(kernel.text for kernel in recorder.wanted.values())
    assert "g_betaln(" in text and "e_erfcx(" in text
    compiled([*recorder.wanted.values()], stack=True)


def sparse_kernels(dtype: str, index_dtype: str) -> list[CudaKernel]:
    """Return the kernels of sparse matrices."""
    size = np.dtype(dtype).itemsize
    return [
        *(columns_kernel(index_dtype, writes) for writes in (False, True)),
        *(parts_kernel("int64", "int64", 1, last) for last in (False, True)),
        merged_kernel(index_dtype, "union", False),
        merged_kernel(index_dtype, "intersection", True),
        *(merged_kernel(index_dtype, "neq", writes, dtype) for writes in (False, True)),
        transposed_kernel(index_dtype), starts_kernel(index_dtype),
        *(entries_kernel(dtype, index_dtype, dense) for dense in (False, True)),
        *(dense_kernel(size, index_dtype, writes) for writes in (False, True)),
        ordered_kernel(size, index_dtype), lookup_kernel(size, index_dtype),
        *(runs_kernel(index_dtype, crops) for crops in (False, True)),
        moved_kernel(size, index_dtype),
    ]  # fmt: skip


def running_kernels(dtype: str, given: str) -> list[CudaKernel]:
    """Return kernels of cumulative sums and recurrences of lines of few and of many layouts."""
    both = (True, True), (False, False), (True, False)
    lines = (4, 8, 16, 64, 128) if IS_LONG else (4, 128)
    found = [running_kernel(given, dtype, True, n, 1, (False,) * 2) for n in lines]
    found += [running_kernel(given, dtype, True, 32, rank, a) for a in both for rank in (1, 2)]
    found += [recurrence_kernel(dtype, n, rank, (False,) * 3) for n in (4, 32) for rank in (1, 2)]
    if not dtype.startswith("complex"):
        found += [parts_kernel(given, dtype, 2, last) for last in (False, True)]
    return found


@pytest.mark.parametrize(
    ("dtype", "given"),
    some(
        ("float16", "float16"), ("complex128", "complex128"), ("float32", "float32"),
        ("float64", "float64"), ("int64", "bool"), ("uint64", "uint8"), ("complex64", "complex64"),
    ),
)  # fmt: skip
def test_nvcc_takes_cumulative_sums(dtype: str, given: str) -> None:
    compiled(running_kernels(dtype, given))


def sorting_kernels(word: str) -> list[CudaKernel]:
    """Return kernels that sort lines of few and of many elements, and merge."""
    places = ("", "int32_t", "int64_t") if IS_LONG else ("", "int32_t")
    kinds = [(place, last) for place in places for last in (False, True)]
    found = [tiles_kernel(word, n, place, last, EACH) for place, last in kinds for n in (1, 2)]
    for n in (1, 2, 4, 8) if IS_LONG else (4,):
        found += [tiles_kernel(word, 2, place, True, n) for place in places]
    found += [merge_kernel(word, place, last) for place, last in kinds]
    return list({kernel.name: kernel for kernel in found}.values())


@pytest.mark.parametrize("word", some("uint32_t", "uint64_t", "uint16_t", "uint8_t"))
def test_nvcc_takes_sorts(word: str) -> None:
    compiled(sorting_kernels(word))


@pytest.mark.parametrize(
    ("dtype", "index_dtype"),
    some(("float32", "int32"), ("complex128", "int64"), ("int8", "int32"), ("bool", "int32")),
)
def test_nvcc_takes_sparse_products(dtype: str, index_dtype: str) -> None:
    compiled(sparse_kernels(dtype, index_dtype))


@pytest.mark.parametrize(
    ("given", "dtype", "index_dtype"),
    some(
        ("float32", "float32", "int32"), ("float64", "float64", "int64"),
        ("bool", "int64", "int32"), ("uint8", "uint64", "int64"),
    ),
)  # fmt: skip
def test_nvcc_takes_segments(given: str, dtype: str, index_dtype: str) -> None:
    layouts = [(lanes, is_vector) for lanes in (1, 4, 32) for is_vector in (False, True)]
    kernels = [segments_kernel("sum", given, dtype, index_dtype, *one) for one in layouts]
    for kind in ("max", "min"):
        kernels += [segments_kernel(kind, given, given, index_dtype, *one) for one in layouts]
    compiled([*kernels, numbers_kernel(index_dtype)])


@pytest.mark.skipif(not IS_LONG, reason="`make gpu-emu` compiles them")
@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_nvcc_takes_functions_of_complex_numbers(recorder: Recorder, dtype: str) -> None:
    record_complex(dtype)
    compiled([*recorder.wanted.values()], stack=True)


def test_float_kernels_have_no_double_arithmetic(recorder: Recorder) -> None:
    record_samples("float32")
    nvcc = compiler.find_nvcc()
    if nvcc is None:
        pytest.skip("there is no nvcc")
    texts = [kernel.text for kernel in recorder.wanted.values() if "double" not in kernel.text]
    assert len(texts) > 20
    ptx = nvcc.compile(file_of(texts), "sm_90", "-ptx").decode()
    bodies = ptx.split(".visible .entry")[1:]
    assert len(bodies) == len(texts)
    assert not [body[:40] for body in bodies if ".f64" in body]


@pytest.mark.parametrize("dtype", some("float32", "bfloat16"))
@pytest.mark.parametrize("generation", some((80, 90), (100, 120)))
def test_architectures_of_a_generation_have_one_intermediate_code(
    recorder: Recorder, generation: tuple[int, int], dtype: str
) -> None:
    """tools/gpu_kernels.py has nvcc make it for the first one alone."""
    record_samples(dtype)
    nvcc = compiler.find_nvcc()
    if nvcc is None:
        pytest.skip("there is no nvcc")
    text = file_of([kernel.text for kernel in recorder.wanted.values()])
    found = [nvcc.compile(text, f"compute_{n}", "-ptx").decode() for n in generation]
    # The names of functions that are not inlined begin with a hash of the file and architecture.
    naming = re.compile(r"^\.(version|target) .*|_INTERNAL_[0-9a-f]{8}|_[0-9a-f]{8}(?=\d)", re.M)
    first, second = (naming.sub("", ptx) for ptx in found)
    assert len(first) > 10_000
    assert first == second


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_aligned_elements_are_read_and_written_by_128_bits(recorder: Recorder, dtype: str) -> None:
    kind = TensorType(dtype, (None, None))
    x, y = kind("x"), kind("y")
    record([x, y], [x * y + x], np.ones((4, 32), dtype), np.ones((4, 32), dtype))
    nvcc = compiler.find_nvcc()
    if nvcc is None:
        pytest.skip("there is no nvcc")
    (kernel,) = recorder.wanted.values()
    ptx = nvcc.compile(file_of([kernel.text]), "sm_90", "-ptx").decode()
    found = re.findall(r"^\s*((?:ld|st)\.global\S*)", ptx, re.M)
    assert len(found) >= 3 and {_bits(access) for access in found} == {128}, found


def _bits(access: str) -> int:
    """Return the bits of an access as PTX names it, as ``ld.global.nc.v4.f32``."""
    *parts, kind = access.split(".")
    number = next((int(part[1:]) for part in parts if re.fullmatch(r"v\d", part)), 1)
    return number * int(kind[1:])


@pytest.mark.parametrize("arch", ALL if IS_LONG else (ARCH,))
def test_nvrtc(recorder: Recorder, arch: str) -> None:
    nvrtc = compiler.find_nvrtc()
    if nvrtc is None:
        pytest.skip("there is no NVRTC")
    record_samples("float32")
    for kernel in recorder.wanted.values():
        assert nvrtc.compile(file_of([kernel.text]), arch)[:4] == b"\x7fELF"
    with pytest.raises(CompilerError, match=f"refused a kernel for {arch}"):
        nvrtc.compile("__global__ void f() { nonsense; }", arch)


class Pretender:
    """A compiler whose cubins are the sources."""

    version = "pretended 1.0"

    def __init__(self) -> None:
        self.calls = 0

    def compile(self, source: str, arch: str) -> bytes:
        self.calls += 1
        return f"{arch} {source}".encode()


def test_cubins_are_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    pretended, counters = Pretender(), DeviceCounters()
    monkeypatch.setattr(compiler, "find_compiler", lambda: pretended)
    with config.change_flags(compiledir=str(tmp_path)):
        for _ in range(2):
            assert compiler.cubin("source", "sm_90", counters) == b"sm_90 source"
        assert compiler.cubins(["source", "other"], "sm_90", counters)[1] == b"sm_90 other"
        assert pretended.calls == counters.compiled == 2
        compiler.cubin("source", "sm_80", counters)
        pretended.version = "pretended 1.1"
        compiler.cubin("source", "sm_90", counters)
        assert pretended.calls == 4
        for path in tmp_path.iterdir():  # a damaged entry is not used
            path.write_bytes(b"damaged" + path.read_bytes())
        compiler.cubin("source", "sm_90", counters)
        assert pretended.calls == 5


def test_without_a_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiler, "find_nvrtc", lambda: None)
    monkeypatch.setattr(compiler, "find_nvcc", lambda: None)
    with pytest.raises(symcomp.gpu.DeviceUnavailable, match=r"pip install symcomp\[cuda\]"):
        compiler.find_compiler()
