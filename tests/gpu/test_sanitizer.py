"""The address sanitizer finds reads outside of the arrays of the emulator (`make gpu-sanitize`)."""

import os
import subprocess
import sys

import pytest

from symcomp.codegen.compiler.driver import target

PROGRAM = """
import numpy as np
import symcomp
from symcomp.codegen.cuda.text import CudaKernel, named
from symcomp.gpu.driver.devices import driver_of
from symcomp.gpu.planner import Planner

text = '''extern "C" __global__ void NAME(const int64_t at, const addresses<2> data)
{
    if (threadIdx.x == 0)
        ((float *)data[1])[0] = ((const float *)data[0])[at];
}'''
driver = driver_of("emu")
name, text = named(text.split("\\n"), 32)
kernel = CudaKernel(name, text, ("at",), 2, 0, 0, True, 32, False)
planner = Planner(driver, {})
x = planner.constant(np.arange(8, dtype="float32"))
z = planner.new("float32", [1])
planner.launch(kernel, [1], [AT], [x, z])
plan = planner.finish([z])
from symcomp.cvm.machine import DeviceRegion
from symcomp.gpu.execution import ready
class Region(DeviceRegion):
    driver = driver
region = Region(has_arrays=False)
region.plans = [ready(driver, plan, [], "a test")]
(found,) = region()
print("found", found.get())
"""


def sanitizers() -> str | None:
    """Return the libraries that a process under the sanitizer loads first, if they are there."""
    found = target()
    if found is None:
        return None
    command = [*found.compiler.split(), "-print-file-name=libasan.so"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    path = done.stdout.strip()
    return path if os.path.isabs(path) else None


@pytest.mark.parametrize(("at", "is_inside"), [(7, True), (8, False), (-1, False)])
def test_reads_outside_are_found(at: int, is_inside: bool) -> None:
    library = sanitizers()
    if library is None:
        pytest.skip("the compiler has no address sanitizer")
    environment = {
        **os.environ,
        "LD_PRELOAD": library,
        "ASAN_OPTIONS": "detect_leaks=0",
        "SYMCOMP_FLAGS": "cflags=-O0 -fsanitize=address -g",
    }
    program = PROGRAM.replace("[AT]", f"[{at}]")
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    if is_inside:
        assert "found [7.]" in done.stdout, done.stderr
    else:
        assert done.returncode and "use-after-poison" in done.stderr, done.stderr
        assert "READ of size 4" in done.stderr and "kernel.cu:" in done.stderr
