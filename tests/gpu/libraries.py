"""Stand-ins of NVIDIA's libraries, which compute on the emulator's memory."""

import ctypes
import functools
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pytest import MonkeyPatch

from symcomp.gpu.driver.emulator import Emulator
from symcomp.gpu.kernels import small_products
from symcomp.tests.repository import folder_of_package

HERE = folder_of_package()["symcomp.tests"] / "gpu"
FLAGS = ("-std=c++17", "-O1", "-fPIC", "-shared", "-Wall", "-Wno-unused-function", "-x", "c++")
_folder = tempfile.TemporaryDirectory()


@functools.cache
def built(name: str) -> Any:
    """Return the stand-in of a library, compiled and loaded."""
    target = Path(_folder.name) / f"lib{name}.so"
    command = ["g++", *FLAGS, str(HERE / f"fake_{name}.h"), "-o", str(target)]
    subprocess.run(command, check=True)
    return ctypes.CDLL(str(target))


@contextmanager
def stand_ins(
    emulator: Emulator, *names: str, blocks_multiply: bool = False
) -> Iterator[list[Any]]:
    """Let an emulator use stand-ins of libraries; yield them.

    Parameters
    ----------
    blocks_multiply : bool
        Whether small products are kernels of one block, as without these tests; else libraries
        compute products of all sizes.
    """
    found = [built(name) for name in names]
    for name, library in zip(names, found, strict=True):
        library.stand_in_launches(ctypes.c_void_p(emulator._library.machine["launch"]))
        emulator.library_paths[name] = library._name
    with MonkeyPatch.context() as patch:
        if not blocks_multiply:
            patch.setattr(small_products, "MOST_OF_THREAD", -1)
        yield found
