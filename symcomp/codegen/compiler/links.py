"""Find functions in the files that they share with others.

Functions are compiled many to a file, and the name of an entry is the hash of the whole file. So
the directory has a link for each function of a file with several: named by the key that a file of
this function alone would have, to the entry. A program that differs a little from an earlier one
compiles its new functions alone.

A link may come before its entry, and remain after it: then there is nothing, and the function is
compiled. ``driver`` removes such links with entries.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress

from symcomp.codegen.compiler.driver import ENTRY, LINK_SUFFIX, Target, address_of


def find(how: Target, source: str, name: str) -> int | None:
    """Return the address of a function; None if it has to be compiled.

    Parameters
    ----------
    how : Target
    source : str
        The file of this function alone.
    name : str
    """
    key = how.key_of(source)
    library = None
    if how.directory is not None:
        with suppress(OSError):  # not a link, or none there
            entry = os.readlink(how.directory / f"{key}{LINK_SUFFIX}")
            if ENTRY.fullmatch(entry):
                library = how.library(entry.partition(".")[0])
    library = library or how.library(key)
    return None if library is None or not hasattr(library, name) else address_of(library, name)


def add(how: Target, file: str, sources: Iterable[str]) -> None:
    """Make links to the entry of a file.

    Parameters
    ----------
    how : Target
    file : str
        Which is compiled, or will be.
    sources : iterable of str
        For each function in it, the file of this function alone.
    """
    if how.directory is None:
        return
    entry = f"{how.key_of(file)}.so"
    for source in sources:
        path = how.directory / f"{how.key_of(source)}{LINK_SUFFIX}"
        # A directory of others, or a file system without links: each file has its own entry.
        with suppress(OSError):
            try:
                os.symlink(entry, path)
            except FileExistsError:
                if os.readlink(path) != entry:
                    os.unlink(path)
                    os.symlink(entry, path)
