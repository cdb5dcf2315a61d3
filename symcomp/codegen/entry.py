"""Making an entry of the directory of compiled kernels.

This file is also run by itself, by processes that may outlive those that start them, and so imports
the standard library alone. It then reads a list of ``Order`` as JSON.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from typing import NamedTuple, TypeVar

CHECKSUM = hashlib.sha256().digest_size
# What a file is called before it is an entry: who writes it, and where that is a process.
NEW = re.compile(r"new-[0-9a-f]{64}-(\d+)-([0-9a-f]{8})-.*")

Made = TypeVar("Made")


class Refused(Exception):
    """What the compiler says of a source."""


class Order(NamedTuple):
    """A C file that is compiled.

    Attributes
    ----------
    command : list of str
        The compiler and its flags.
    source : str
    directory, key : str
        Where the entry becomes a file, and its name there without ``.so``.
    replaced : str
        The path of a file that is not needed then.
    """

    command: list[str]
    source: str
    directory: str
    key: str
    replaced: str


def checksum(key: str, content: bytes) -> bytes:
    """What follows after the content of an entry."""
    return hashlib.sha256(key.encode() + content).digest()


def refusal(command: Sequence[str], source: str, name: str) -> str:
    """Compile into a file that is there, and empty; what the compiler says where it refuses, else
    nothing.
    """
    command = [*command, "-x", "c", "-", "-o", name, "-lm"]
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
    """Names where numbers of processes mean something: a machine, or a container on it."""
    name = os.uname().nodename if hasattr(os, "uname") else ""
    with suppress(OSError):
        name += os.readlink("/proc/self/ns/pid")
    return hashlib.sha256(name.encode()).hexdigest()[:8]


def writer_is_gone(name: str) -> bool | None:
    """Whether the process that made a new file has ended; None: that cannot be known."""
    found = NEW.fullmatch(name)
    if found is None or found[2] != _namespace() or os.name != "posix":
        return None
    try:
        os.kill(int(found[1]), 0)
    except ProcessLookupError:
        return True
    except (OSError, OverflowError):
        pass  # another user's
    return False


@contextmanager
def _new_file(directory: str | None, key: str) -> Iterator[str]:
    """The name of a file for what becomes an entry; if it has not, it is removed."""
    # The loader takes what has the name of a library it has for that library: no two share one.
    prefix = f"new-{key}-{os.getpid()}-{_namespace()}-"
    handle, name = tempfile.mkstemp(prefix=prefix, dir=directory)
    os.close(handle)
    try:
        yield name
    finally:
        with suppress(FileNotFoundError):
            os.unlink(name)


def make_in(directory: str | None, key: str, make: Callable[[str], Made]) -> Made:
    """What ``make`` makes of the name of a new file; if it fails as somebody removed that, or the
    directory, it is done again.
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
    """What tells whether a directory is still the same: its number is not given to another."""
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
    """Whether a directory or file is the user's, and nobody else may write there."""
    if not hasattr(os, "getuid"):
        return True
    return status.st_uid == os.getuid() and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def seal(name: str, key: str) -> None:
    """Write the checksum after the content of a file, to which others cannot write then."""
    os.chmod(name, 0o700)  # the compiler made it, by the umask
    with open(name, "r+b") as file:
        file.write(checksum(key, file.read()))
        file.flush()
        os.fsync(file.fileno())


def carry_out(order: Order) -> None:
    """Make the entry, if the compiler accepts the source."""

    def make(name: str) -> None:
        said = refusal(order.command, order.source, name)
        if said:
            raise Refused(said)
        seal(name, order.key)
        os.replace(name, os.path.join(order.directory, f"{order.key}.so"))

    make_in(order.directory, order.key, make)
    os.unlink(order.replaced)


if __name__ == "__main__":
    for given in json.load(sys.stdin):
        with suppress(OSError, Refused):  # who waits finds no entry, and tries it again
            carry_out(Order(*given))
