"""Make an entry of the directory of compiled kernels.

This file is also run as a script, by processes that may outlive their parents, and then imports
only the standard library and reads a list of ``Order`` as JSON. A program that finds all its
kernels in the directory needs no processes, and does not import what starts them.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from typing import TYPE_CHECKING, NamedTuple, TypeVar

if TYPE_CHECKING or __name__ == "__main__":
    import json
    import subprocess
    import tempfile
else:
    from symcomp.lazy import lazy_module

    subprocess, tempfile = lazy_module("subprocess"), lazy_module("tempfile")

CHECKSUM = hashlib.sha256().digest_size
# Name of a file until it becomes an entry: its writer's process and namespace.
NEW = re.compile(r"new-[0-9a-f]{64}-(\d+)-([0-9a-f]{8})-.*")

Made = TypeVar("Made")


class Refused(Exception):
    """The error messages of the compiler for a source."""


class Order(NamedTuple):
    """A C file to compile.

    Attributes
    ----------
    command : list of str
        The compiler and its flags.
    source : str
    directory, key : str
        Where the entry becomes a file, and its name there without ``.so``.
    replaced : str
        The path of a file that is not needed then; empty: none.
    """

    command: list[str]
    source: str
    directory: str
    key: str
    replaced: str


def checksum(key: str, content: bytes) -> bytes:
    """Return the checksum appended to the content of an entry."""
    return hashlib.sha256(key.encode() + content).digest()


def refusal(command: Sequence[str], source: str, name: str) -> str:
    """Compile into an existing empty file; return the error messages if the compiler refuses, else
    an empty text.
    """
    language = () if "-x" in command else ("-x", "c")
    command = [*command, *language, "-", "-o", name, "-lm", "-lgcc"]
    done = subprocess.run(
        command, input=source, capture_output=True, text=True, errors="replace", check=False
    )
    if done.returncode != 0:
        return f"{' '.join(command)} failed ({done.returncode}):\n{done.stderr}"
    if os.path.getsize(name) == 0:
        return f"{' '.join(command)} failed: it succeeds, but writes nothing\n{done.stderr}"
    return ""


@cache
def _namespace() -> str:
    """Return a name for the namespace of process numbers: a machine, or a container on it."""
    name = os.uname().nodename if hasattr(os, "uname") else ""
    with suppress(OSError):
        name += os.readlink("/proc/self/ns/pid")
    return hashlib.sha256(name.encode()).hexdigest()[:8]


def writer_is_gone(name: str) -> bool | None:
    """Tell whether the process that made a new file has ended; None if that cannot be known."""
    found = NEW.fullmatch(name)
    if found is None or found[2] != _namespace() or os.name != "posix":
        return None
    try:
        os.kill(int(found[1]), 0)
    except ProcessLookupError:
        return True
    except (OSError, OverflowError):
        pass  # the process of another user
    return False


@contextmanager
def _new_file(directory: str | None, key: str) -> Iterator[str]:
    """Yield the name of a file that will become an entry; if it does not, it is removed."""
    # The loader identifies libraries by name: no two may share one.
    prefix = f"new-{key}-{os.getpid()}-{_namespace()}-"
    handle, name = tempfile.mkstemp(prefix=prefix, dir=directory)
    os.close(handle)
    try:
        yield name
    finally:
        with suppress(FileNotFoundError):
            os.unlink(name)


def make_in(directory: str | None, key: str, make: Callable[[str], Made]) -> Made:
    """Return the result of ``make`` on the name of a new file; repeat it if another process removed
    the file or the directory.
    """
    if directory is None:
        with _new_file(directory, key) as name:
            return make(name)
    with _held(directory) as is_there:
        with suppress(FileNotFoundError), _new_file(directory, key) as name:
            try:
                return make(name)
            except (Refused, OSError):
                if is_there() and os.path.exists(name):
                    raise
    os.makedirs(directory, mode=0o700, exist_ok=True)
    if not is_trusted(os.stat(directory)):
        raise PermissionError(f"{directory} is not the user's alone")
    with _new_file(directory, key) as name:
        return make(name)


@contextmanager
def _held(directory: str) -> Iterator[Callable[[], bool]]:
    """Yield a function that tells whether a directory is still the same: while it is open, its
    inode number is not reused.
    """
    handle = -1
    with suppress(OSError):
        handle = os.open(directory, os.O_RDONLY)

    def is_there() -> bool:
        try:
            return handle < 0 or os.path.samestat(os.fstat(handle), os.stat(directory))
        except OSError:
            return False

    try:
        yield is_there
    finally:
        if handle >= 0:
            os.close(handle)


def is_trusted(status: os.stat_result) -> bool:
    """Tell whether a directory or file belongs to the user and is not writable by others."""
    if not hasattr(os, "getuid"):
        return True
    return status.st_uid == os.getuid() and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def seal(name: str, key: str) -> None:
    """Append the checksum to a file, after making it writable for its owner only."""
    os.chmod(name, 0o700)  # the compiler made it, with the umask's permissions
    with open(name, "r+b") as file:
        file.write(checksum(key, file.read()))


def carry_out(order: Order) -> None:
    """Make the entry if the compiler accepts the source."""

    def make(name: str) -> None:
        said = refusal(order.command, order.source, name)
        if said:
            raise Refused(said)
        seal(name, order.key)
        os.replace(name, os.path.join(order.directory, f"{order.key}.so"))

    make_in(order.directory, order.key, make)
    if order.replaced:
        os.unlink(order.replaced)


if __name__ == "__main__":
    for given in json.load(sys.stdin):
        with suppress(OSError, Refused):  # the waiting process finds no entry and compiles again
            carry_out(Order(*given))
