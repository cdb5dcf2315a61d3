"""The driver layer of cards: PyCUDA itself, over a libcuda of ours; skipped without PyCUDA."""

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from symcomp.tests.repository import folder_of_package

HERE = folder_of_package()["symcomp.tests"] / "gpu"


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a libcuda.so.1 without a card."""
    if find_spec("pycuda") is None:
        pytest.skip("there is no PyCUDA")
    folder = tmp_path_factory.mktemp("driver")
    flags = ["-std=c++17", "-O1", "-fPIC", "-shared", "-w", "-Wl,-soname,libcuda.so.1", "-x", "c++"]
    target = folder / "libcuda.so.1"
    command = ["g++", *flags, str(HERE / "fake_libcuda.h"), "-o", str(target), "-ldl"]
    subprocess.run(command, check=True)
    return folder


def run(library: Path, *command: str, **environ: str) -> str:
    """Run Python with that library; return the output."""
    done = subprocess.run(
        [sys.executable, *command], capture_output=True, text=True, check=False,
        env={**os.environ, "LD_LIBRARY_PATH": str(library), **environ},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_training_errors_threads_and_forks(library: Path, tmp_path: Path) -> None:
    assert run(library, str(HERE / "pycuda_program.py"), str(tmp_path)).endswith("done\n")


def test_two_cards(library: Path, tmp_path: Path) -> None:
    program = [str(HERE / "pycuda_program.py"), str(tmp_path), "two"]
    assert run(library, *program, FAKECUDA_DEVICES="2").endswith("done\n")


def test_a_machine_without_cards(library: Path) -> None:
    program = "from symcomp.gpu import device_names, driver_of\nprint(device_names())\n"
    program += "try: driver_of('cuda')\nexcept RuntimeError as problem: print(problem)"
    said = run(library, "-c", program, FAKECUDA_DEVICES="0")
    assert said.startswith("['emu']\nno card can be used (") and "no CUDA-capable device" in said
