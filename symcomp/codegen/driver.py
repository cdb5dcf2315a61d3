"""C sources to addresses: one call of the compiler, results kept in a directory of the user's.

An entry is a shared library with a checksum after its end, named by the hash of all it depends on.
It is written under another name, loaded, and renamed: any number of processes may use the directory
and remove entries, and one that is killed leaves nothing broken. What else is there is left alone.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import platform
import re
import shlex
import shutil
import stat
import subprocess
import tempfile
import threading
import time
import warnings
from collections.abc import Container, Mapping, Sequence
from contextlib import suppress
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
# What every compiler accepts that is installed completely: all that kernels include.
TRIAL = "".join(f"#include <{name}.h>\n" for name in "complex math stdint stdlib string".split())
ENTRY = re.compile(r"[0-9a-f]{64}\.so")
CHECKSUM = hashlib.sha256().digest_size
# Files of writers that were killed are removed when they are so many seconds old.
STALE = 3600
MEBIBYTE = 2**20

_lock = threading.Lock()
_libraries: dict[tuple[Path | None, str], ctypes.CDLL] = {}
_broken: set[str] = set()


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
        None where no compiler works; a warning, once in a process, says how to get one.

    Raises
    ------
    CompilerError
        If a source is not accepted, or the directory of ``config.compiledir`` cannot be used.
    """
    compiler = find_compiler(config.cc)
    if compiler is None:
        named = f"The C compiler {config.cc!r} of config.cc was not found"
        _warn_no_compiler(named if config.cc else "No C compiler was found")
        return None
    if compiler in _broken:
        return None
    directory = _directory()
    source_of = {key_of(source, compiler): source for source, _ in files}
    with _lock:
        with span("from the cache") as stage:
            missing = {key: s for key, s in source_of.items() if not _find(directory, key)}
            stage.note = "not there" if missing else "found"
        if missing and not _compile(directory, missing, compiler):
            return None
        libraries = [_libraries[directory, key_of(source, compiler)] for source, _ in files]
    return [
        [_address(library, name) for name in names]
        for library, (_, names) in zip(libraries, files, strict=True)
    ]


def _find(directory: Path | None, key: str) -> bool:
    """Whether a result is held, or there is an entry that can be loaded, which is held then."""
    if directory is not None and (directory, key) not in _libraries:
        library = _open(directory / f"{key}.so", key)
        if library is not None:
            _libraries[directory, key] = library
    return (directory, key) in _libraries


def _compile(directory: Path | None, source_of: Mapping[str, str], compiler: str) -> bool:
    """Make results, and hold them; False where it turns out that the compiler does not work."""
    place = _writable(directory)
    with span("compile"), futures.ThreadPoolExecutor(min(len(source_of), processors())) as pool:
        work = {k: pool.submit(_build, place, k, s, compiler) for k, s in source_of.items()}
    try:
        for key, done in work.items():
            _libraries[directory, key] = done.result()
    except CompilerError:
        problem = _problem_of(compiler)
        if not problem:
            raise
        _broken.add(compiler)
        _warn_no_compiler(f"The C compiler {compiler} does not work", f" It says: {problem}")
        return False
    if place is not None:
        _shrink(place, source_of)
    return True


def processors() -> int:
    """How many this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


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
    threads = ("-fopenmp",) if config.openmp else ()
    return (*_own_flags(compiler), *threads, *shlex.split(config.cflags))


def _own_flags(compiler: str) -> tuple[str, ...]:
    clang = "clang" in os.path.basename(os.path.realpath(compiler))
    return (*FLAGS, *(CLANG_FLAGS if clang else GCC_FLAGS))


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


def _warn_no_compiler(what: str, said: str = "") -> None:
    _warn_once(
        f"{what}: common operations run by kernels that symcomp was installed with, the others "
        "with NumPy, which is slower. Install gcc or clang (Debian, Ubuntu: apt install gcc "
        "libc6-dev; Fedora: dnf install gcc; conda: conda install gcc), or name one by config.cc."
        f"{said}"
    )


@cache
def _warn_once(message: str) -> None:
    line = user_line()
    if line is None:
        warnings.warn(message, RuntimeWarning, stacklevel=2)
    else:
        warnings.warn_explicit(message, RuntimeWarning, line.file, line.line)


def _problem_of(compiler: str) -> str:
    """What keeps a compiler from compiling anything at all; empty where nothing does."""
    try:
        with tempfile.TemporaryDirectory() as directory:
            name = os.path.join(directory, "trial")
            return _refusal(compiler, _own_flags(compiler), TRIAL, name)
    except OSError as problem:
        return str(problem)


def _refusal(compiler: str, flags: Sequence[str], source: str, name: str) -> str:
    """Compile into a file; what the compiler says where it refuses, else nothing."""
    command = [compiler, *flags, "-x", "c", "-", "-o", name, "-lm"]
    done = subprocess.run(
        command, input=source, capture_output=True, text=True, errors="replace", check=False
    )
    if done.returncode == 0:
        return ""
    return f"{' '.join(command)} failed ({done.returncode}):\n{done.stderr}"


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


def _directory() -> Path | None:
    """Where results are looked for; None, with a warning, where the default cannot be used."""
    try:
        return cache_directory()
    except CompilerError as problem:
        _keep_none(str(problem))
        return None


def _writable(directory: Path | None) -> Path | None:
    """Where results are kept; None, with a warning, where the default is only to be read."""
    if directory is None or os.access(directory, os.W_OK):
        return directory
    _keep_none(f"{directory} cannot be written: choose another directory by config.compiledir")
    return None


def _keep_none(problem: str) -> None:
    """Warn that each process compiles again; what the user chose, and cannot be, is an error."""
    if config.compiledir:
        raise CompilerError(problem)
    _warn_once(f"{problem}. Until then every process compiles its kernels again.")


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
    for path in cache_directory().iterdir():
        if not ENTRY.fullmatch(path.name):
            continue
        try:
            status = path.stat()
        except OSError:
            continue  # another process removed it
        if stat.S_ISREG(status.st_mode):
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
    except OSError:
        return None  # not there, or no file
    if content[-CHECKSUM:] != _checksum(key, content[:-CHECKSUM]):
        return None
    try:
        library = ctypes.CDLL(str(path))
    except OSError:
        return None  # made where other libraries are: it is built again
    with suppress(OSError):  # removed meanwhile, or only to be read
        os.utime(path)
    return library


def _checksum(key: str, content: bytes) -> bytes:
    return hashlib.sha256(key.encode() + content).digest()


def _build(directory: Path | None, key: str, source: str, compiler: str) -> ctypes.CDLL:
    """Compile, load, and make an entry of it, which others may remove from then on."""
    try:
        # The loader takes what has the name of a library it has for that library: no two share one.
        handle, name = tempfile.mkstemp(prefix=f"new-{key}-", dir=directory)
        os.close(handle)
        path = Path(name)
        try:
            refusal = _refusal(compiler, flags_of(compiler), source, name)
            if refusal:
                raise CompilerError(refusal)
            if directory is not None:
                with open(path, "ab") as file:
                    file.write(_checksum(key, path.read_bytes()))
                    file.flush()
                    os.fsync(file.fileno())
            library = ctypes.CDLL(name)
            if directory is not None:
                with suppress(IsADirectoryError):  # in its place: it is compiled again each time
                    os.replace(path, directory / f"{key}.so")
            return library
        finally:
            path.unlink(missing_ok=True)
    except OSError as problem:
        raise CompilerError(
            f"what {compiler} makes in {directory or 'a temporary directory'} cannot be kept and "
            f"loaded ({problem}): is it full, or on a file system without execution? Choose "
            "another by config.compiledir"
        ) from None


def _shrink(directory: Path, new: Container[str]) -> None:
    """Remove what was used longest ago until the rest, and what is new, has the size allowed."""
    limit = config.compiledir_size * MEBIBYTE
    now = time.time()
    for path in directory.glob("new-*"):
        with suppress(OSError):
            if now - path.stat().st_mtime > STALE:
                path.unlink()
    kept = entries()
    total = sum(entry.size for entry in kept)
    for entry in kept:
        if total <= limit:
            return
        if entry.path.stem not in new:
            entry.path.unlink(missing_ok=True)
            total -= entry.size
