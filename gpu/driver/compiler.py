"""CUDA C to cubins: NVRTC where it is, else nvcc; results are kept in the directory of kernels.

An entry is named by the hash of the source, the architecture, the flags and the version of the
compiler, and ends with a checksum, as those of C kernels do.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from symcomp.codegen.compiler.driver import CompilerError, cache_directory, processors
from symcomp.codegen.compiler.entry import CHECKSUM, checksum, is_trusted, make_in, seal
from symcomp.gpu.errors import DeviceUnavailable
from symcomp.gpu.libraries.finding import folders_of_wheels
from symcomp.lazy import lazy_module

futures = lazy_module("concurrent.futures")

# Values are those of the processor: nothing is contracted, divided or rooted approximately.
FLAGS = ("--std=c++17", "--fmad=false", "--prec-div=true", "--prec-sqrt=true", "--ftz=false")
# Functions that a kernel does not call, and constants that are rounded, are no faults.
SILENT = "--diag-suppress=177,1046"
OF_NVRTC = (*FLAGS, SILENT, "--device-int128")
_SUFFIX = ".cubin"


class Nvrtc:
    """NVIDIA's compiler as a library, by ctypes: it needs neither a card nor its driver."""

    def __init__(self, path: str) -> None:
        folder = Path(path).parent
        for builtins in sorted(folder.glob("libnvrtc-builtins.so*")):
            with suppress(OSError):  # NVRTC looks for it itself then
                ctypes.CDLL(str(builtins), mode=ctypes.RTLD_GLOBAL)
        self.path, self._library = path, ctypes.CDLL(path)
        self._library.nvrtcGetErrorString.restype = ctypes.c_char_p
        major, minor = ctypes.c_int(), ctypes.c_int()
        self._call("nvrtcVersion", ctypes.byref(major), ctypes.byref(minor))
        self.version = f"NVRTC {major.value}.{minor.value}"

    def _call(self, name: str, *arguments: Any) -> None:
        code = getattr(self._library, name)(*arguments)
        if code:
            said = self._library.nvrtcGetErrorString(code).decode()
            raise CompilerError(f"{name} failed: {said}")

    def compile(self, source: str, arch: str) -> bytes:
        """Return the cubin of a source.

        Raises
        ------
        CompilerError
            With what the compiler says.
        """
        program = ctypes.c_void_p()
        text = source.encode()
        self._call("nvrtcCreateProgram", ctypes.byref(program), text, b"kernel.cu", 0, None, None)
        try:
            flags = [f"--gpu-architecture={arch}".encode(), *(f.encode() for f in OF_NVRTC)]
            array = (ctypes.c_char_p * len(flags))(*flags)
            if self._library.nvrtcCompileProgram(program, len(flags), array):
                log = self._text(program, "nvrtcGetProgramLog").decode(errors="replace")
                raise CompilerError(f"{self.version} refused a kernel for {arch}:\n{log}")
            return self._text(program, "nvrtcGetCUBIN")
        finally:
            self._library.nvrtcDestroyProgram(ctypes.byref(program))

    def _text(self, program: Any, name: str) -> bytes:
        size = ctypes.c_size_t()
        self._call(f"{name}Size", program, ctypes.byref(size))
        buffer = ctypes.create_string_buffer(size.value)
        self._call(name, program, buffer)
        return buffer.raw.rstrip(b"\0") if name.endswith("Log") else buffer.raw


class Nvcc:
    """NVIDIA's compiler as a program."""

    def __init__(self, path: str) -> None:
        self.path = path
        done = subprocess.run([path, "--version"], capture_output=True, text=True, check=False)
        found = re.search(r"V[\d.]+", done.stdout)
        self.version = f"nvcc {found[0] if found else 'of unknown version'}"

    def compile(self, source: str, arch: str, *more: str) -> bytes:
        """Return the cubin of a source; ``said`` is what the compiler printed.

        Raises
        ------
        CompilerError
            With what the compiler says.
        """
        with tempfile.TemporaryDirectory() as folder:
            to = Path(folder) / "kernel.cubin"
            (Path(folder) / "kernel.cu").write_text(source, encoding="utf-8")
            command = [self.path, *FLAGS, SILENT, "-cubin", f"-arch={arch}", *more, "-o", str(to)]
            done = subprocess.run(
                [*command, "kernel.cu"], cwd=folder, capture_output=True, text=True, check=False
            )
            self.said = done.stdout + done.stderr
            if done.returncode:
                raise CompilerError(f"{self.version} refused a kernel for {arch}:\n{self.said}")
            return to.read_bytes()


@cache
def find_nvrtc() -> Nvrtc | None:
    """Return NVRTC of the wheel nvidia-cuda-nvrtc or of the system, if it is there."""
    paths = [str(p) for folder in folders_of_wheels() for p in sorted(folder.glob("libnvrtc.so*"))]
    for path in [*paths, "libnvrtc.so", "libnvrtc.so.13", "libnvrtc.so.12"]:
        try:
            return Nvrtc(path)
        except OSError:
            continue  # not there, or not loadable
    return None


@cache
def find_nvcc() -> Nvcc | None:
    """Return nvcc, if it is on the path."""
    path = shutil.which("nvcc")
    return None if path is None else Nvcc(path)


def find_compiler() -> Nvrtc | Nvcc:
    """Return what compiles kernels.

    Raises
    ------
    DeviceUnavailable
        If there is neither NVRTC nor nvcc.
    """
    found = find_nvrtc() or find_nvcc()
    if found is None:
        raise DeviceUnavailable(
            "kernels for cards cannot be compiled: install NVRTC (pip install symcomp[cuda]) or "
            "NVIDIA's toolkit, whose nvcc must be on the PATH"
        )
    return found


def cubin(source: str, arch: str, counters: Any = None) -> bytes:
    """Return the cubin of a source, from the directory of kernels where it is there.

    Parameters
    ----------
    source, arch : str
    counters : DeviceCounters, optional
        Its ``compiled`` goes up by one where the compiler was called.
    """
    compiler = find_compiler()
    parts = (source, arch, compiler.version, *OF_NVRTC)
    key = hashlib.sha256("\0".join(parts).encode()).hexdigest()
    directory = cache_directory()
    known = _read(directory / f"{key}{_SUFFIX}", key)
    if known is not None:
        return known
    if counters is not None:
        counters.compiled += 1
    made = compiler.compile(source, arch)

    def write(name: str) -> None:
        Path(name).write_bytes(made)
        seal(name, key)
        os.replace(name, directory / f"{key}{_SUFFIX}")

    with suppress(OSError):  # a full or read-only directory: it is compiled again next time
        make_in(str(directory), key, write)
    return made


def cubins(sources: Sequence[str], arch: str, counters: Any = None) -> list[bytes]:
    """Return the cubins of several sources, which are compiled by as many threads as there are
    processors.
    """
    if len(sources) < 2:
        return [cubin(source, arch, counters) for source in sources]
    with futures.ThreadPoolExecutor(min(len(sources), processors())) as pool:
        return [*pool.map(lambda source: cubin(source, arch, counters), sources)]


def _read(path: Path, key: str) -> bytes | None:
    """Return the content of an entry; None if it is missing or damaged."""
    try:
        with open(path, "rb") as file:
            if not is_trusted(os.fstat(file.fileno())):
                return None
            content = file.read()
    except OSError:
        return None
    if content[-CHECKSUM:] != checksum(key, content[:-CHECKSUM]):
        return None
    return content[:-CHECKSUM]
