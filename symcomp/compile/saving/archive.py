"""The file format: a zip of one JSON text and of arrays as .npy, none of them compressed.

Names, sizes and the shapes in array headers are checked before memory is allocated for them.
"""

from __future__ import annotations

import io
import json
import os
import re
import struct
import tokenize
from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from symcomp.errors import LoadError
from symcomp.lazy import lazy_module

if TYPE_CHECKING:
    import zipfile
else:
    zipfile = lazy_module("zipfile")

TEXT = "graph.json"
ARRAY = re.compile(r"arrays/(0|[1-9][0-9]{0,8})\.npy")
# A graph of a million nodes has some hundred MB of text.
LARGEST_TEXT = 1 << 30
# Exceptions from reading a damaged or crafted archive; zipfile itself checks little.
DAMAGE = (OSError, ValueError, RuntimeError, EOFError, OverflowError, struct.error)
# Exceptions of NumPy, which has Python's parser read array headers, for invalid headers.
HEADER_ERRORS = (
    ValueError, TypeError, SyntaxError, LookupError, ArithmeticError, RecursionError, MemoryError,
    tokenize.TokenError,
)  # fmt: skip
# A constant time stamp, so that equal graphs make equal files.
DATE = (1980, 1, 1, 0, 0, 0)


def write_archive(path: str | os.PathLike[str], text: Any, arrays: Sequence[np.ndarray]) -> None:
    """Write JSON data and arrays; an existing file is replaced when all is written."""
    place = os.fspath(path)
    fresh = f"{place}.{os.getpid()}.part"
    try:
        with zipfile.ZipFile(fresh, "w", zipfile.ZIP_STORED) as archive:
            data = json.dumps(text, separators=(",", ":"), allow_nan=False).encode()
            archive.writestr(zipfile.ZipInfo(TEXT, DATE), data)
            for number, array in enumerate(arrays):
                info = zipfile.ZipInfo(f"arrays/{number}.npy", DATE)
                with archive.open(info, "w", force_zip64=True) as member:
                    np.lib.format.write_array(member, array, allow_pickle=False)
        os.replace(fresh, place)
    finally:
        if os.path.exists(fresh):
            os.remove(fresh)


def read_archive(path: str | os.PathLike[str]) -> tuple[Any, list[np.ndarray]]:
    """Read what ``write_archive`` wrote.

    Raises
    ------
    LoadError
        If the file is no such archive, or something in it is not what it claims to be.
    """
    place = os.fspath(path)
    with open(place, "rb") as file:  # errors of opening the file are raised as they are
        try:
            with zipfile.ZipFile(file) as archive:
                members = _checked(archive, place)
                text = _parsed(archive.read(members.pop(TEXT)), place)
                return text, [_array(archive, members, n) for n in range(len(members))]
        except LoadError:
            raise
        except (zipfile.BadZipFile, *DAMAGE) as problem:
            raise LoadError(f"{place} is no archive that symcomp.save wrote: {problem}") from None


def _parsed(data: bytes, place: str) -> Any:
    """Parse JSON; ValueError includes numbers of too many digits."""
    try:
        return json.loads(data.decode())
    except (ValueError, RecursionError) as problem:
        raise LoadError(f"{place}: {TEXT} is not JSON: {problem}") from None


def _checked(archive: zipfile.ZipFile, place: str) -> dict[str, zipfile.ZipInfo]:
    """Return the members by name, checking that none is unexpected."""
    found: dict[str, zipfile.ZipInfo] = {}
    size = os.path.getsize(place)
    for info in archive.infolist():
        name = info.filename
        if name != TEXT and not ARRAY.fullmatch(name):
            raise LoadError(f"{place}: {name!r} does not belong into an archive of symcomp")
        if name in found:
            raise LoadError(f"{place}: {name!r} is there twice")
        if info.compress_type != zipfile.ZIP_STORED or info.file_size != info.compress_size:
            raise LoadError(f"{place}: {name!r} is compressed, which symcomp.save never does")
        found[name] = info
    if TEXT not in found:
        raise LoadError(f"{place}: there is no {TEXT}: symcomp.save did not write this file")
    if sum(info.file_size for info in found.values()) > size:
        raise LoadError(f"{place}: its parts claim more bytes than the file has ({size})")
    if found[TEXT].file_size > LARGEST_TEXT:
        raise LoadError(f"{place}: {TEXT} has {found[TEXT].file_size} bytes: too many for a graph")
    return found


def _array(
    archive: zipfile.ZipFile, members: dict[str, zipfile.ZipInfo], number: int
) -> np.ndarray:
    name = f"arrays/{number}.npy"
    if name not in members:
        raise LoadError(f"{name} is missing")
    data = archive.read(members[name])
    file = io.BytesIO(data)
    shape, fortran, dtype = _header(file, name)
    if dtype.hasobject or dtype.kind not in "biufc":
        raise LoadError(f"{name} holds {dtype}: numbers are expected")
    rest = len(data) - file.tell()
    if any(type(n) is not int or n < 0 for n in shape) or prod(shape) * dtype.itemsize != rest:
        raise LoadError(f"{name} claims to be {dtype} of shape {shape}, but has {rest} bytes")
    flat = np.frombuffer(data, dtype, offset=file.tell())
    return flat.reshape(shape, order="F" if fortran else "C").copy(order="K")


def _header(file: io.BytesIO, name: str) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Return the shape, the order (True: Fortran's) and the dtype in an array's header."""
    try:
        version = np.lib.format.read_magic(file)
        read = {
            (1, 0): np.lib.format.read_array_header_1_0,
            (2, 0): np.lib.format.read_array_header_2_0,
        }.get(version)
        if read is None:
            raise LoadError(f"{name} is of version {version} of the format, not 1 or 2")
        found: tuple[tuple[int, ...], bool, np.dtype[Any]] = read(file)
        return found
    except LoadError:
        raise
    except HEADER_ERRORS as problem:
        raise LoadError(f"{name} is no array: {problem}") from None
