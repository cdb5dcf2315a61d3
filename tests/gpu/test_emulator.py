"""The driver layer on the emulator: streams, memory, errors; and what it finds in wrong kernels."""

import ctypes
import gc

import numpy as np
import pytest

from symcomp.codegen.compiler.driver import entries
from symcomp.codegen.cuda.text import CudaKernel, named
from symcomp.config import config
from symcomp.cvm.machine import DeviceRegion, is_aligned, rounded
from symcomp.errors import IndexOutOfRangeError
from symcomp.gpu.array import DeviceArray, to_device
from symcomp.gpu.driver.emulator import Emulator
from symcomp.gpu.errors import DeviceError
from symcomp.gpu.execution import ready
from symcomp.gpu.planner import Planner

THREADS = 64
COPY = "if (i < n) ((float *)data[1])[i] = ((const float *)data[0])[i] * 2;"
SUM = """
__shared__ float s[64];
s[i] = ((const float *)data[0])[i];
__syncthreads();
for (int half = 32; half; half /= 2) {
    if (i < half) s[i] += s[i + half];
    BARRIER
}
if (i == 0) ((float *)data[1])[0] = s[0];
"""
DIVERGENT = "if (i < 32) __syncthreads(); ((float *)data[1])[i] = 1;"
UNSET = "__shared__ float s[64]; ((float *)data[1])[i] = s[i];"
FAULT = "if (i == 3) report((fault *)data[1], n, 7, 5); ((float *)data[0])[i] = 0;"


def kernel(body: str) -> CudaKernel:
    head = 'extern "C" __global__ void NAME(const int n, const addresses<2> data)'
    lines = [head, "{", "const int i = blockIdx.x * blockDim.x + threadIdx.x;", body, "}"]
    name, text = named(lines, THREADS)
    barriers = "__syncthreads" in text or "wait_for_first" in text
    return CudaKernel(name, text, ("n",), 2, 0, 0, False, THREADS, barriers)


def launch(driver: Emulator, body: str, n: int, *arrays: DeviceArray, label: str = "it") -> None:
    planner = Planner(driver, {})
    planner.label = label
    operands = [planner.input(i, x.dtype.name, x.shape, x.strides) for i, x in enumerate(arrays)]
    planner.launch(kernel(body), [1], [n], operands)
    layouts = [(x.dtype, x.shape, x.strides, is_aligned(x.address)) for x in arrays]
    plan = ready(driver, planner.finish([]), layouts, label)
    region = DeviceRegion(has_arrays=True)
    region.plans = [plan]
    region(*arrays)


def floats(n: int) -> DeviceArray:
    return to_device(np.arange(n, dtype="float32"), "emu")


def test_kernels_are_found_in_files_of_other_programs(tmp_path) -> None:
    copy, total = map(kernel, (COPY, SUM.replace("BARRIER", "__syncthreads();")))
    fault = kernel(FAULT)
    with config.change_flags(compiledir=str(tmp_path / "kernels")):
        Emulator().kernels([copy, total])
        before = len(entries())
        found = Emulator().kernels([total])
        assert found.keys() == {total.name} and len(entries()) == before
        found = Emulator().kernels([copy, fault, total])
        assert found.keys() == {copy.name, fault.name, total.name}
        assert len(entries()) == before + 1 and len({*found.values()}) == 3


def test_nothing_runs_before_somebody_waits(emu: Emulator) -> None:
    x, z = floats(THREADS), floats(THREADS)
    launch(emu, COPY, THREADS, x, z)
    there = np.ctypeslib.as_array((ctypes.c_float * THREADS).from_address(z.address))
    assert np.isnan(there).all() and emu.counters.waits == 0
    emu.wait()
    assert emu.counters.waits == 1
    np.testing.assert_array_equal(there, 2 * np.arange(THREADS, dtype="float32"))


def test_eager_work_is_done_at_once() -> None:
    driver = Emulator(lazy=False)
    memory = driver.allocate(8)
    driver.to_device(memory, 0, np.arange(2, dtype="float32"))
    assert (ctypes.c_float * 2).from_address(memory.address)[1] == 1


@pytest.mark.parametrize("order", [0, 1, 2, 7])
def test_barriers(emu: Emulator, order: int) -> None:
    emu.order = order
    x, z = floats(THREADS), floats(1)
    launch(emu, SUM.replace("BARRIER", "__syncthreads();"), 0, x, z)
    assert float(z) == np.arange(THREADS).sum()


def test_a_missing_barrier_shows_in_some_order(emu: Emulator) -> None:
    found = set()
    for order in (0, 1, 2):
        emu.order = order
        x, z = floats(THREADS), floats(1)
        launch(emu, SUM.replace("BARRIER", ""), 0, x, z)
        found.add(float(z))
    assert len(found) > 1


def test_barriers_that_not_all_reach(emu: Emulator) -> None:
    launch(emu, DIVERGENT, 0, floats(THREADS), floats(THREADS), label="the op")
    with pytest.raises(DeviceError, match=r"the op on emu: .*__syncthreads"):
        emu.wait()
    emu.wait()  # work after the error was dropped


HALF = """
__shared__ float s[64];
if (i < 32) {
    s[i] = ((const float *)data[0])[i];
    wait_for_first(32);
    ((float *)data[1])[i] = s[31 - i];
}
__syncthreads();
"""


@pytest.mark.parametrize("order", [0, 1, 2, 7])
def test_barriers_of_the_first_threads(emu: Emulator, order: int) -> None:
    emu.order = order
    x, z = floats(THREADS), floats(THREADS)
    launch(emu, HALF, 0, x, z)
    np.testing.assert_array_equal(z.get()[:32], np.arange(31, -1, -1))


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("wait_for_first(32);", "not one of the first 32"),
        ("if (i < 16) wait_for_first(32);", "deadlock"),
    ],
)
def test_barriers_that_other_threads_reach(emu: Emulator, body: str, said: str) -> None:
    launch(emu, body, 0, floats(THREADS), floats(THREADS))
    with pytest.raises(DeviceError, match=said):
        emu.wait()


def test_writing_past_the_end(emu: Emulator) -> None:
    launch(emu, COPY, THREADS, floats(THREADS), floats(THREADS - 1))
    with pytest.raises(DeviceError, match="it on emu: wrote outside"):
        emu.wait()


def test_memory_that_was_not_written_is_nan(emu: Emulator) -> None:
    x, z = floats(THREADS), floats(THREADS)
    launch(emu, UNSET, 0, x, z)
    assert np.isnan(z.get()).all()
    memory = emu.allocate(64)
    assert np.isnan(DeviceArray(emu, memory, 0, "float32", (16,), (4,)).get()).all()


def test_a_fault_is_told_at_the_next_wait_with_its_label(emu: Emulator) -> None:
    x = floats(THREADS)
    words = DeviceArray(emu, x.memory, emu.fault_address() - x.memory.address, "int64", (1,), (8,))
    launch(emu, FAULT, emu.tickets.of("gather (file.py:3)"), x, words)
    with pytest.raises(IndexOutOfRangeError, match=r"gather \(file.py:3\): index 7 .* length 5"):
        emu.wait()
    emu.wait()


def test_memory_is_counted_and_given_back(emu: Emulator) -> None:
    x = floats(1000)
    assert emu.memory_info().used == 4000
    emu.wait()
    del x
    gc.collect()
    emu.allocate(8)
    assert emu.memory_info().used < 4000


def test_a_block_outlives_the_work_that_uses_it(emu: Emulator) -> None:
    z = floats(THREADS)
    launch(emu, COPY, THREADS, floats(THREADS), z)  # the queue alone holds the first array
    gc.collect()
    emu.allocate(8)
    np.testing.assert_array_equal(z.get(), 2 * np.arange(THREADS, dtype="float32"))


@pytest.mark.parametrize("nbytes", [0, 1, 512, 513, 5000, 2**20 + 1, 3 * 2**30])
def test_sizes_of_blocks(nbytes: int) -> None:
    size = rounded(nbytes)
    assert size >= max(nbytes, 1) and size % 512 == 0
    assert size <= max(512, nbytes * 9 / 8 + 512)
    assert rounded(size) == size
