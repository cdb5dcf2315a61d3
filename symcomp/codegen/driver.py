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
import shlex
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
from symcomp.core.record import record
from symcomp.core.source import user_line
from symcomp.core.spans import span
from symcomp.errors import SymcompError
from symcomp.lazy import lazy_module

futures, platformdirs = lazy_module("concurrent.futures"), lazy_module("platformdirs")

# What values depend on, and what needs to be understood.
VALUE_FLAGS = (
    "-fno-math-errno", "-fno-trapping-math", "-ffp-contract=off", "-fwrapv", "-fno-strict-aliasing",
    "-fopenmp-simd", "-std=c11",
)  # fmt: skip
FLAGS = (*VALUE_FLAGS, "-march=native", "-shared", "-fPIC", "-pipe")
# What of -O2 and -O3 makes kernels faster; the rest makes only the compiler slower, twice as slow.
# Without epilogues of shorter vectors there is a third less code; arrays of some ten elements take
# some hundredths more time.
GCC_FLAGS = (
    "-O1", "-fexpensive-optimizations", "-ftree-loop-vectorize", "-fvect-cost-model=dynamic",
    "-fpeel-loops", "--param=max-completely-peel-times=8", "--param=vect-epilogues-nomask=0",
    "-fno-tree-dominator-opts",
)  # fmt: skip
CLANG_FLAGS = ("-O2",)
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
    """The addresses of functions of a C file: ``load_all`` of one."""
    found = load_all([(source, names)])
    return None if found is None else found[0]


def load_all(files: Sequence[tuple[str, Sequence[str]]]) -> list[list[int]] | None:
    """The addresses of functions of C files, compiled at once where nobody has done so before.

    Parameters
    ----------
    files : sequence of (str, sequence of str)
        A C file, and names of functions in it.

    Returns
    -------
    list of list of int, or None
        None where there is no compiler; a warning, once in a process, says how to get one.

    Raises
    ------
    CompilerError
        If a source is not accepted, or the directory cannot be used.
    """
    compiler = find_compiler(config.cc)
    if compiler is None:
        _warn_no_compiler(config.cc)
        return None
    directory = cache_directory()
    source_of = {key_of(source, compiler): source for source, _ in files}
    with _lock:
        with span("from the cache") as stage:
            for key in source_of:
                if (str(directory), key) not in _libraries:
                    _keep(directory, key)
            missing = [key for key in source_of if (str(directory), key) not in _libraries]
            stage.note = "not there" if missing else "found"
        if missing:
            with (
                span("compile"),
                futures.ThreadPoolExecutor(min(len(missing), processors())) as pool,
            ):
                work = [
                    pool.submit(_build, directory, key, source_of[key], compiler) for key in missing
                ]
            for done in work:
                done.result()
            _shrink(directory, missing)
        for key in missing:
            if not _keep(directory, key):
                raise CompilerError(
                    f"what {compiler} made in {directory} cannot be loaded: is the directory on a "
                    "file system without execution? Choose another by config.compiledir"
                )
        libraries = [_libraries[str(directory), key_of(source, compiler)] for source, _ in files]
    return [
        [_address(library, name) for name in names]
        for library, (_, names) in zip(libraries, files, strict=True)
    ]


def processors() -> int:
    """How many this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _keep(directory: Path, key: str) -> bool:
    """Load an entry, and hold it; False where there is none that can be loaded."""
    library = _open(directory / f"{key}.so", key)
    if library is not None:
        _libraries[str(directory), key] = library
    return library is not None


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
    """What a compiler is told; what ``config.cflags`` says comes last, and so counts."""
    clang = "clang" in os.path.basename(os.path.realpath(compiler))
    threads = ("-fopenmp",) if config.openmp else ()
    own = CLANG_FLAGS if clang else GCC_FLAGS
    return (*FLAGS, *own, *threads, *shlex.split(config.cflags))


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
    message = (
        f"{name} {'not ' if wanted else ''}found: common operations run by kernels that symcomp "
        "was installed with, the others with NumPy, which is slower. Install gcc or clang (Debian, "
        "Ubuntu: apt install gcc; Fedora: dnf install gcc; conda: conda install gcc), or name one "
        "by config.cc."
    )
    line = user_line()
    if line is None:
        warnings.warn(message, RuntimeWarning, stacklevel=2)
    else:
        warnings.warn_explicit(message, RuntimeWarning, line.file, line.line)


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


@record
class Entry:
    """A file of the directory that is a result: its size in bytes and when it was last used."""

    path: Path
    size: int
    used: float


def entries() -> list[Entry]:
    """The results of the directory, the least recently used first."""
    found = []
    for path in cache_directory().glob("*.so"):
        try:
            status = path.stat()
        except FileNotFoundError:
            continue  # another process removed it
        found.append(Entry(path, status.st_size, status.st_mtime))
    return sorted(found, key=lambda entry: entry.used)


def clear() -> list[Entry]:
    """Remove all results, and return which; what is loaded stays."""
    removed = entries()
    for entry in removed:
        entry.path.unlink(missing_ok=True)
    return removed


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


def _shrink(directory: Path, new: Sequence[str]) -> None:
    """Remove what was used longest ago until the rest, and what is new, has the size allowed."""
    limit = config.compiledir_size * MEBIBYTE
    now = time.time()
    for path in directory.glob("new-*"):
        try:
            if now - path.stat().st_mtime > STALE:
                path.unlink()
        except FileNotFoundError:
            continue
    kept = entries()
    total = sum(entry.size for entry in kept)
    for entry in kept:
        if total <= limit:
            return
        if entry.path.stem not in new:
            entry.path.unlink(missing_ok=True)
            total -= entry.size
