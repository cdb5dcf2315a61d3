"""C sources to addresses: one call of the compiler, results kept in a directory of the user's.

An entry is a shared library with a checksum after its end, named by the hash of all it depends on.
It is written under another name and renamed, so that any number of processes may use the directory,
and one that is killed leaves nothing broken.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import platform
import shutil
import stat
import subprocess
import tempfile
import threading
import time
import warnings
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from symcomp.config import config
from symcomp.core.lazy import lazy_module
from symcomp.core.spans import span
from symcomp.errors import SymcompError

platformdirs = lazy_module("platformdirs")

FLAGS = (
    "-O2", "-march=native", "-fno-math-errno", "-fno-trapping-math", "-ffp-contract=off", "-fwrapv",
    "-fno-strict-aliasing", "-fopenmp-simd", "-std=c11", "-shared", "-fPIC", "-pipe", "-Wall",
    "-Werror",
)  # fmt: skip
# What of -O3 makes kernels faster; the rest of it only makes the compiler slower, twice as slow.
GCC_FLAGS = ("-ftree-vectorize", "-fvect-cost-model=dynamic", "-fpeel-loops")
COMPILERS = ("cc", "gcc", "clang")
CHECKSUM = hashlib.sha256().digest_size
# Files of writers that were killed are removed when they are so many seconds old.
STALE = 3600
MEBIBYTE = 2**20

_lock = threading.Lock()
_libraries: dict[tuple[str, str], ctypes.CDLL] = {}


class CompilerError(SymcompError, RuntimeError):
    """The C compiler refused what was generated, or its results cannot be kept or loaded."""


def load(source: str, names: Sequence[str]) -> list[int] | None:
    """The addresses of functions, compiled when nobody has done so before.

    Parameters
    ----------
    source : str
        A C file.
    names : sequence of str
        Of functions in it.

    Returns
    -------
    list of int, or None
        None where there is no compiler; a warning, once in a process, says how to get one.

    Raises
    ------
    CompilerError
        If the source is not accepted, or the directory cannot be used.
    """
    compiler = find_compiler(config.cc)
    if compiler is None:
        _warn_no_compiler(config.cc)
        return None
    key = key_of(source, compiler)
    directory = cache_directory()
    with _lock:
        library = _libraries.get((str(directory), key))
        if library is None:
            with span("from the cache") as stage:
                library = _open(directory / f"{key}.so", key)
                stage.note = "not there" if library is None else "found"
        if library is None:
            with span("compile"):
                _build(directory, key, source, compiler)
            library = _open(directory / f"{key}.so", key)
            if library is None:
                raise CompilerError(
                    f"what {compiler} made in {directory} cannot be loaded: is the directory on a "
                    "file system without execution? Choose another by config.compiledir"
                )
        _libraries[str(directory), key] = library
    return [_address(library, name) for name in names]


def _address(library: ctypes.CDLL, name: str) -> int:
    address = ctypes.cast(getattr(library, name), ctypes.c_void_p).value
    assert address is not None
    return address


# -- what a result depends on


def key_of(source: str, compiler: str) -> str:
    """The name of what a compiler makes of a source on this machine."""
    parts = (source, *flags_of(compiler), *_identity(compiler), *_machine())
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def flags_of(compiler: str) -> tuple[str, ...]:
    """What a compiler is told."""
    clang = "clang" in os.path.basename(os.path.realpath(compiler))
    return FLAGS if clang else FLAGS + GCC_FLAGS


@cache
def find_compiler(wanted: str) -> str | None:
    """The path of the compiler of this name, or of the first there is if the name is empty."""
    found = (shutil.which(name) for name in ((wanted,) if wanted else COMPILERS))
    return next((path for path in found if path), None)


def _identity(compiler: str) -> tuple[str, ...]:
    """Changes with the compiler's version: its file is another then."""
    path = os.path.realpath(compiler)
    status = os.stat(path)
    return path, str(status.st_size), str(status.st_mtime_ns)


@cache
def _machine() -> tuple[str, ...]:
    """The kind of processor and its features."""
    features = platform.processor()
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            features = next((l for l in lines if l.lower().startswith(("flags", "features"))), "")
    except FileNotFoundError:
        pass  # not Linux: the processor's name has to do
    return platform.system(), platform.machine(), features.strip()


@cache
def _warn_no_compiler(wanted: str) -> None:
    name = f"The C compiler {wanted!r} of config.cc was" if wanted else "No C compiler was"
    warnings.warn(
        f"{name} {'not ' if wanted else ''}found: kernels run with NumPy, which is slower. Install "
        "gcc or clang (Debian, Ubuntu: apt install gcc; Fedora: dnf install gcc; conda: conda "
        "install gcc), or name one by config.cc.",
        RuntimeWarning,
        stacklevel=4,
    )


# -- the directory


def cache_directory() -> Path:
    """Where results are kept: ``config.compiledir``, else in the user's directory of caches.

    Raises
    ------
    CompilerError
        If it cannot be made, or others than the user may write there.
    """
    directory = Path(config.compiledir).expanduser() if config.compiledir else _default_directory()
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = directory.stat()
    except OSError as problem:
        raise CompilerError(
            f"compiled kernels cannot be kept in {directory} ({problem}): choose another directory "
            "by config.compiledir"
        ) from None
    if hasattr(os, "getuid"):
        shared = status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
        if status.st_uid != os.getuid() or shared:
            raise CompilerError(
                f"{directory} belongs to another user, or others may write there, so what is in it "
                "is not trusted: chmod go-w, or choose another directory by config.compiledir"
            )
    return directory


@cache
def _default_directory() -> Path:
    return Path(platformdirs.user_cache_dir("symcomp", appauthor=False)) / "kernels"


def entries() -> list[Path]:
    """The files of the directory that are results, the least recently used first."""
    found = []
    for path in cache_directory().glob("*.so"):
        try:
            found.append((path.stat().st_mtime_ns, path))
        except FileNotFoundError:
            continue  # another process removed it
    return [path for _, path in sorted(found)]


def clear() -> None:
    """Remove all results; what is loaded stays."""
    for path in entries():
        path.unlink(missing_ok=True)


def _open(path: Path, key: str) -> ctypes.CDLL | None:
    """The library of an entry; None where there is none, or it is not what was written."""
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return None
    if content[-CHECKSUM:] != _checksum(key, content[:-CHECKSUM]):
        return None
    try:
        library = ctypes.CDLL(str(path))
    except OSError:
        return None  # made where other libraries are: it is built again
    os.utime(path)
    return library


def _checksum(key: str, content: bytes) -> bytes:
    return hashlib.sha256(key.encode() + content).digest()


def _build(directory: Path, key: str, source: str, compiler: str) -> None:
    """Compile into an entry."""
    handle, name = tempfile.mkstemp(prefix="new-", dir=directory)
    os.close(handle)
    path = Path(name)
    try:
        command = [compiler, *flags_of(compiler), "-x", "c", "-", "-o", name, "-lm"]
        done = subprocess.run(command, input=source, capture_output=True, text=True, check=False)
        if done.returncode:
            raise CompilerError(f"{' '.join(command)} failed:\n{done.stderr}")
        with open(path, "ab") as file:
            file.write(_checksum(key, path.read_bytes()))
            file.flush()
            os.fsync(file.fileno())
        os.replace(path, directory / f"{key}.so")
    finally:
        path.unlink(missing_ok=True)
    _shrink(directory, key)


def _shrink(directory: Path, key: str) -> None:
    """Remove what was used longest ago, until the rest is within ``config.compiledir_size``."""
    limit = config.compiledir_size * MEBIBYTE
    now = time.time()
    for path in directory.glob("new-*"):
        try:
            if now - path.stat().st_mtime > STALE:
                path.unlink()
        except FileNotFoundError:
            continue
    sizes = []
    for path in entries():
        try:
            sizes.append((path, path.stat().st_size))
        except FileNotFoundError:
            continue
    total = sum(size for _, size in sizes)
    for path, size in sizes:
        if total <= limit:
            return
        if path.stem != key:
            path.unlink(missing_ok=True)
            total -= size
