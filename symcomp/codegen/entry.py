"""Making an entry of the directory of compiled kernels.

This file is also run by itself, by processes that may outlive those that start them, and so imports
the standard library alone. It then reads a list of ``Order`` as JSON.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import NamedTuple

CHECKSUM = hashlib.sha256().digest_size


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
    """Compile into a file; what the compiler says where it refuses, else nothing."""
    command = [*command, "-x", "c", "-", "-o", name, "-lm"]
    done = subprocess.run(
        command, input=source, capture_output=True, text=True, errors="replace", check=False
    )
    if done.returncode == 0:
        return ""
    return f"{' '.join(command)} failed ({done.returncode}):\n{done.stderr}"


@contextmanager
def new_file(directory: str | None, key: str) -> Iterator[str]:
    """The name of a file for what becomes an entry; if it has not, it is removed."""
    # The loader takes what has the name of a library it has for that library: no two share one.
    handle, name = tempfile.mkstemp(prefix=f"new-{key}-", dir=directory)
    os.close(handle)
    try:
        yield name
    finally:
        with suppress(FileNotFoundError):
            os.unlink(name)


def seal(name: str, key: str) -> None:
    """Write the checksum after the content of a file."""
    with open(name, "r+b") as file:
        file.write(checksum(key, file.read()))
        file.flush()
        os.fsync(file.fileno())


def carry_out(order: Order) -> None:
    """Make the entry, if the compiler accepts the source."""
    with new_file(order.directory, order.key) as name:
        if not refusal(order.command, order.source, name):
            seal(name, order.key)
            os.replace(name, os.path.join(order.directory, f"{order.key}.so"))
            os.unlink(order.replaced)


if __name__ == "__main__":
    for given in json.load(sys.stdin):
        with suppress(OSError):  # who waits finds no entry, and tries it again
            carry_out(Order(*given))
