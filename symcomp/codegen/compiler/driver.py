"""Compile C sources to addresses: one call of the compiler per file, results kept in a cache
directory of the user.

An entry is a shared library with a checksum after its end, named by the hash of all it depends on.
It is written under another name, loaded, and renamed: any number of processes may use the directory
and remove entries, and a killed process leaves nothing broken. Other files there are left alone.
"""

from __future__ import annotations

import ctypes
import errno
import hashlib
import os
import platform
import re
import shlex
import stat
import threading
import time
import warnings
from collections.abc import Collection, Container, Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from symcomp.codegen.compiler.entry import (
    CHECKSUM,
    Refused,
    checksum,
    is_trusted,
    make_in,
    refusal,
    seal,
    writer_is_gone,
)
from symcomp.config import config
from symcomp.core.record import record
from symcomp.core.source import user_line
from symcomp.core.spans import span
from symcomp.errors import SymcompError
from symcomp.lazy import lazy_module

if TYPE_CHECKING:
    from concurrent.futures import Future

futures, tempfile = lazy_module("concurrent.futures"), lazy_module("tempfile")
platformdirs = lazy_module("platformdirs")

# Flags that determine values, and the accepted language.
VALUE_FLAGS = (
    "-fno-math-errno", "-fno-trapping-math", "-ffp-contract=off", "-fwrapv", "-fno-strict-aliasing",
    "-fopenmp-simd", "-std=c11",
)  # fmt: skip
# A kernel calls the functions of its own file, even if others of the same name are loaded. The
# process has those of the C library, so the linker need not look for them; ``c_library.py``
# declares them.
FLAGS = (
    *VALUE_FLAGS, "-march=native", "-shared", "-nostdlib", "-fPIC", "-fvisibility=protected",
    "-pipe", "-Werror=implicit-function-declaration",
)  # fmt: skip
# The parts of -O2 and -O3 that make kernels faster; the others only double the compile time.
# Without vectorized epilogues the code is a third smaller; arrays of about ten elements take a few
# percent longer. Without the propagation of known bits the same code is compiled in less time.
GCC_FLAGS = (
    "-O1", "-fexpensive-optimizations", "-ftree-loop-vectorize", "-fvect-cost-model=dynamic",
    "-fpeel-loops", "--param=max-completely-peel-times=8", "--param=vect-epilogues-nomask=0",
    "-fno-tree-dominator-opts", "-fno-tree-bit-ccp",
)  # fmt: skip
CLANG_FLAGS = ("-O2",)
# Flags for translating long files fast; scalar functions read EARLY_CODE (``scalars.h``).
EARLY_FLAGS = ("-DEARLY_CODE", "-fno-asynchronous-unwind-tables")
# Where files are this long, what -Og optimizes takes longer than early calls save by it.
VERY_LONG = 75_000
COMPILERS = ("cc", "gcc", "clang")
# A file that every complete compiler installation accepts.
TRIAL = "int trial(void);\nint trial(void) { return 0; }\n"
ENTRY, NEW_ENTRY = re.compile(r"[0-9a-f]{64}\.(so|cubin)"), re.compile(r"new-[0-9a-f]{64}-.*")
# The end of names of links to entries (``links.py``).
LINK_SUFFIX = ".in"
# Age in seconds from which files of killed writers are removed.
STALE = 3600
MEBIBYTE = 2**20

_lock = threading.Lock()
_libraries: dict[tuple[Path | None, str], ctypes.CDLL] = {}
# Compilations in progress in this process, by directory and key.
_building: dict[tuple[Path | None, str], Future[ctypes.CDLL]] = {}
_broken: set[str] = set()
# The limit of a directory, and how many bytes this process may add before it looks at all files
# again: with ten thousands of them that takes longer than a short file's compilation.
_room: dict[Path, tuple[int, float]] = {}
# Directories in which no result can be kept, and the reason.
_given_up: dict[Path | None, str] = {}


def _begin_anew() -> None:
    """Drop the compilations of the parent process: its threads do not exist in a forked child."""
    global _lock
    _lock = threading.Lock()
    _building.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_anew)


class CompilerError(SymcompError, RuntimeError):
    """The C compiler refused generated code, or its results cannot be kept or loaded."""


@record
class Target:
    """A compiler with its flags, and the directory of its results.

    Attributes
    ----------
    compiler : str
        Its path.
    flags : tuple of str
    directory : Path, optional
        None: nowhere, they are this process's alone.
    """

    compiler: str
    flags: tuple[str, ...]
    directory: Path | None

    def key_of(self, source: str) -> str:
        """Return the name of the result of compiling a source on this machine."""
        parts = (source, *self.flags, *_identity(self.compiler), *_machine())
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()

    def path_of(self, source: str) -> Path | None:
        """Return the file of the entry of a source."""
        return None if self.directory is None else self.directory / f"{self.key_of(source)}.so"

    def has(self, source: str) -> bool:
        """Tell whether a source has been compiled, and its library is loaded or can be."""
        return self.library(self.key_of(source)) is not None

    def library(self, key: str) -> ctypes.CDLL | None:
        """Return the library of an entry, which is loaded if it is there; None if it is not."""
        at = self.directory, key
        if self.directory is not None and at not in _libraries:
            library = _open(self.directory / f"{key}.so", key)
            if library is not None:
                _libraries[at] = library
        return _libraries.get(at)


def target(early: int = 0) -> Target | None:
    """Return the compiler, flags and directory given by ``config``.

    Parameters
    ----------
    early : int
        If not 0, for results that are there soon, but slow: the length of the longest file.

    Returns
    -------
    Target or None
        None where no compiler works; a warning, once in a process, says how to get one.

    Raises
    ------
    CompilerError
        If the directory of ``config.compiledir`` cannot be used.
    """
    compiler = find_compiler(config.cc)
    if compiler is None:
        named = f"The C compiler {config.cc!r} of config.cc was not found"
        _warn_no_compiler(named if config.cc else "No C compiler was found")
    if compiler is None or compiler in _broken:
        return None
    return Target(compiler, flags_of(compiler, early), _directory())


def load(source: str, names: Sequence[str]) -> list[int] | None:
    """Return the addresses of functions of a C file: ``load_all`` of one file, with the target
    given by ``config``.
    """
    how = target()
    found = None if how is None else load_all([(source, names)], how)
    return None if found is None else found[0]


def load_all(files: Sequence[tuple[str, Sequence[str]]], how: Target) -> list[list[int]] | None:
    """Return the addresses of functions of C files; files that are not in the cache are compiled at
    once.

    Parameters
    ----------
    files : sequence of (str, sequence of str)
        A C file, and names of functions in it.
    how : Target

    Returns
    -------
    list of list of int, or None
        None where it turns out that the compiler does not work, which is warned of.

    Raises
    ------
    CompilerError
        If a source is not accepted, or results cannot be kept.
    """
    source_of = {how.key_of(source): source for source, _ in files}
    with span("from the cache") as stage:
        missing = {key: s for key, s in source_of.items() if how.library(key) is None}
        stage.note = "not there" if missing else "found"
    if missing and not _compile(how, missing):
        return None
    libraries = [_libraries[how.directory, how.key_of(source)] for source, _ in files]
    return [
        [address_of(library, name) for name in names]
        for library, (_, names) in zip(libraries, files, strict=True)
    ]


def _compile(how: Target, source_of: Mapping[str, str]) -> bool:
    """Compile sources and load the results; return False if the compiler turns out not to work."""
    place = _writable(how.directory)
    at = {key: (how.directory, key) for key in source_of}
    with _lock:
        # not in progress in another thread
        own = [key for key in source_of if at[key] not in _building]
        _building.update((at[key], futures.Future()) for key in own)
        work = {key: _building[at[key]] for key in source_of}

    def build(key: str) -> None:
        try:
            work[key].set_result(_build(how, place, key, source_of[key]))
        except CompilerError as problem:
            work[key].set_exception(problem)
            raise

    try:
        with span("compile"):
            if len(own) == 1:
                build(own[0])
            elif own:
                with futures.ThreadPoolExecutor(min(len(own), processors())) as pool:
                    [*pool.map(build, own)]
            _libraries.update((at[key], done.result()) for key, done in work.items())
    except CompilerError:
        problem = _problem_of(how.compiler)
        if not problem:
            raise
        _broken.add(how.compiler)
        _warn_no_compiler(f"The C compiler {how.compiler} does not work", f" It says: {problem}")
        return False
    finally:
        with _lock:
            for key in own:
                done = _building.pop(at[key])
                if not done.done():  # other threads wait for it
                    done.set_exception(CompilerError("the thread that compiled was interrupted"))
    if place in _given_up:
        _warn_once(f"{_given_up[place]}. Until then every process compiles its kernels again.")
    elif place is not None:
        with suppress(OSError):  # the file may belong to another user, or be read-only
            _keep_to_limit(place, source_of)
    return True


def processors() -> int:
    """Return the number of processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def address_of(library: ctypes.CDLL, name: str) -> int:
    """Return the address of a function of a library."""
    address = ctypes.cast(getattr(library, name), ctypes.c_void_p).value
    assert address is not None
    return address


# -- inputs of the cache key


def flags_of(compiler: str, early: int = 0) -> tuple[str, ...]:
    """Return the flags for a compiler; those of ``config.cflags`` come last, and so take
    precedence.
    """
    return (*_own_flags(compiler, early), *shlex.split(config.cflags))


def _own_flags(compiler: str, early: int = 0) -> tuple[str, ...]:
    is_clang = "clang" in os.path.basename(os.path.realpath(compiler))
    if not early:
        return (*FLAGS, *(CLANG_FLAGS if is_clang else GCC_FLAGS))
    return (*FLAGS, "-O0" if is_clang or early >= VERY_LONG else "-Og", *EARLY_FLAGS)


@cache
def find_compiler(wanted: str) -> str | None:
    """Return the path of the compiler of this name, or of the first one found if the name is empty.
    """
    found = map(_program, (wanted,) if wanted else COMPILERS)
    return next((path for path in found if path), None)


def _program(name: str) -> str | None:
    """Return the path of a program, as ``shutil.which`` does, which is imported with archivers."""
    folders = [""] if os.path.dirname(name) else os.get_exec_path()
    paths = (os.path.join(folder, name) for folder in folders)
    return next((p for p in paths if os.path.isfile(p) and os.access(p, os.X_OK)), None)


def _identity(compiler: str) -> tuple[str, ...]:
    """Return the compiler's path, size and time of change: they change with its version."""
    path = os.path.realpath(compiler)
    status = os.stat(path)
    return path, str(status.st_size), str(status.st_mtime_ns)


@cache
def _machine() -> tuple[str, ...]:
    """Return the kind of processor and its features."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            features = next((l for l in lines if l.lower().startswith(("flags", "features"))), "")
    except FileNotFoundError:
        features = platform.processor()  # not Linux: the processor's name must suffice
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
    """Return why a compiler cannot make any library that loads; empty if it can."""
    try:
        with tempfile.TemporaryDirectory() as directory:
            name = os.path.join(directory, "trial")
            with open(name, "wb"):
                pass
            said = refusal((compiler, *_own_flags(compiler)), TRIAL, name)
            if not said:
                ctypes.CDLL(name)
            return said
    except OSError as problem:
        return str(problem)


# -- the directory


def cache_directory() -> Path:
    """Return the directory for results: ``config.compiledir``, else one in the user's cache
    directory.

    Raises
    ------
    CompilerError
        If it cannot be made, or others than the user may write there.
    """
    chosen = Path(config.compiledir).expanduser().absolute() if config.compiledir else None
    directory = chosen or _default_directory()
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = directory.stat()
    except OSError as problem:
        raise CompilerError(
            f"compiled kernels cannot be kept in {directory} ({problem}): choose another directory "
            "by config.compiledir"
        ) from None
    if not is_trusted(status):
        raise CompilerError(
            f"{directory} belongs to another user, or others may write there, so its files are not "
            "trusted: chmod go-w, or choose another directory by config.compiledir"
        )
    return directory


def _directory() -> Path | None:
    """Return the directory to search for results; None, with a warning, if the default one cannot
    be used.
    """
    try:
        directory = cache_directory()
    except CompilerError as problem:
        _keep_none(str(problem))
        return None
    return None if directory in _given_up else directory


def _writable(directory: Path | None) -> Path | None:
    """Return the directory to keep results in; None, with a warning, if the default one is
    read-only.
    """
    if directory in _given_up:
        return None
    if directory is None or os.access(directory, os.W_OK) or not os.path.lexists(directory):
        return directory  # if it was removed in the meantime, it is made again
    _keep_none(f"{directory} cannot be written: choose another directory by config.compiledir")
    return None


def _keep_none(problem: str) -> None:
    """Warn that each process compiles again; raise if the user chose the directory."""
    if config.compiledir:
        raise CompilerError(problem)
    _warn_once(f"{problem}. Until then every process compiles its kernels again.")


@cache
def _default_directory() -> Path:
    return Path(platformdirs.user_cache_dir("symcomp", appauthor=False)) / "kernels"


@record
class Entry:
    """A result in the cache directory: its size in bytes and when it was last used."""

    path: Path
    size: int
    used: float


def entries() -> list[Entry]:
    """Return the results of the cache directory, the least recently used first."""
    return [entry for entry in _files(cache_directory()) if ENTRY.fullmatch(entry.path.name)]


def _files(directory: Path) -> list[Entry]:
    """Return the results, and the files of writers that are at work or were killed."""
    found = []
    # Another process may remove the directory.
    with suppress(FileNotFoundError), os.scandir(directory) as files:
        for file in files:
            if not (ENTRY.fullmatch(file.name) or NEW_ENTRY.fullmatch(file.name)):
                continue
            try:
                status = file.stat(follow_symlinks=False)
            except OSError:
                continue  # another process removed it
            if stat.S_ISREG(status.st_mode):
                found.append(Entry(Path(file.path), status.st_size, status.st_mtime))
    return sorted(found, key=lambda entry: entry.used)


def clear() -> list[Entry]:
    """Remove all results and the files of killed writers, and return them; loaded libraries stay.
    """
    files = _files(cache_directory())
    removed = [file for file in files if writer_is_gone(file.path.name) is not False]
    for file in removed:
        file.path.unlink(missing_ok=True)
    _drop_links(cache_directory())
    return removed


def _drop_links(directory: Path) -> None:
    """Remove the links to entries that are not there."""
    with suppress(OSError), os.scandir(directory) as files:  # another process may remove it
        for file in files:
            if file.name.endswith(LINK_SUFFIX) and file.is_symlink() and not file.is_file():
                with suppress(OSError):
                    os.unlink(file.path)


def _open(path: Path, key: str) -> ctypes.CDLL | None:
    """Open the library of an entry; None if there is none, or its checksum is wrong."""
    try:
        with open(path, "rb", opener=_without_links) as file:
            if not is_trusted(os.fstat(file.fileno())):
                return None  # another user may have written the file
            content = file.read()
    except OSError:
        return None  # missing, or no file
    if content[-CHECKSUM:] != checksum(key, content[:-CHECKSUM]):
        return None
    try:
        library = ctypes.CDLL(str(path))
    except OSError:
        return None  # made on a system with other libraries: compile it again
    with suppress(OSError):  # removed in the meantime, or read-only
        os.utime(path)
    return library


def _without_links(path: str, flags: int) -> int:
    """Open a file, but follow no symbolic link."""
    return os.open(path, flags | getattr(os, "O_NOFOLLOW", 0))


def _build(how: Target, directory: Path | None, key: str, source: str) -> ctypes.CDLL:
    """Compile, load and make an entry; for this process alone if it cannot be kept, because the
    file system is full or mounted noexec.
    """
    try:
        return _made(how, directory, key, source)
    except (Refused, OSError) as problem:
        reason = problem if isinstance(problem, OSError) else _lack_of_space(directory)
        if reason is None:
            raise CompilerError(str(problem)) from None
    try:
        library = _made(how, None, key, source)
    except (Refused, OSError) as problem:
        raise CompilerError(
            f"what {how.compiler} makes cannot be kept and loaded, neither in {directory} "
            f"({_said(reason)}) nor where temporary files are ({problem}): are they full, or on "
            "file systems without execution? Choose others, by config.compiledir and TMPDIR"
        ) from None
    if directory is not None:
        _given_up[directory] = (
            f"what {how.compiler} makes cannot be kept and loaded in {directory} "
            f"({_said(reason)}): is it full, or on a file system without execution? Choose another "
            "directory by config.compiledir"
        )
    return library


def _said(problem: OSError) -> str:
    """Return the system's message, without the name of a temporary file."""
    return problem.strerror or str(problem).rpartition(": ")[2]


def _lack_of_space(directory: Path | None) -> OSError | None:
    """Return the error of writing a file there, None if one can be written. Linkers report a full
    disk only in words.
    """
    try:
        with tempfile.TemporaryFile(dir=directory) as file:
            file.write(bytes(MEBIBYTE))
    except OSError as problem:
        return problem if problem.errno in (errno.ENOSPC, errno.EDQUOT) else None
    return None


def _made(how: Target, directory: Path | None, key: str, source: str) -> ctypes.CDLL:
    """Compile, load and make an entry; from then on other processes may remove it."""

    def make(name: str) -> ctypes.CDLL:
        said = refusal((how.compiler, *how.flags), source, name)
        if said:
            raise Refused(said)
        if directory is not None:
            seal(name, key)
        library = ctypes.CDLL(name)
        if directory is not None:
            # a directory has its name: it is compiled again each time
            with suppress(IsADirectoryError):
                os.replace(name, directory / f"{key}.so")
        return library

    return make_in(None if directory is None else str(directory), key, make)


def _keep_to_limit(directory: Path, new: Collection[str]) -> None:
    """Count the bytes of new results; when this process has added as many as it may, shrink."""
    limit = config.compiledir_size * MEBIBYTE
    known, room = _room.get(directory, (limit, 0))
    room -= sum((directory / f"{key}.so").stat().st_size for key in new)
    if room < 0 or known != limit:
        # Others write there, too. A full directory has a little more than the limit between looks.
        room = max(limit - _shrink(directory, new, limit), limit / 32) / 2
    _room[directory] = limit, room


def _shrink(directory: Path, new: Container[str], limit: int) -> int:
    """Remove files of killed writers and the least recently used results, until the rest, with new
    ones and those being written, has the allowed size; return this size.
    """
    now = time.time()
    kept = []
    for file in _files(directory):
        is_entry = ENTRY.fullmatch(file.path.name) is not None
        if not is_entry and now - file.used > STALE:
            with suppress(OSError):
                file.path.unlink()
        else:
            kept.append((is_entry, file))
    total = sum(file.size for _, file in kept)
    for is_entry, file in sorted(kept, key=lambda one: one[0]):  # results last
        if total <= limit:
            break
        if file.path.stem not in new if is_entry else writer_is_gone(file.path.name):
            file.path.unlink(missing_ok=True)
            total -= file.size
    _drop_links(directory)
    return total
