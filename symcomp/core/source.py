"""Find the user's line that made something: the innermost frame outside of symcomp."""

from __future__ import annotations

import linecache
import sys
from contextvars import ContextVar
from types import FrameType
from typing import NamedTuple


class Source(NamedTuple):
    """A line of the user's program."""

    file: str
    line: int
    function: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line} in {self.function}"

    @property
    def text(self) -> str:
        """The source text of the line; empty if the file cannot be read."""
        return linecache.getline(self.file, self.line).strip()

    def quoted(self, indent: str = "    ") -> str:
        """Return the location and, below it, the source text."""
        text = self.text
        return f"{self}\n{indent}{text}" if text else str(self)


# Files of symcomp that made variables: most frames are found here, without their module's name.
_internal: set[str] = set()


def _is_internal(frame: FrameType) -> bool:
    """Tell whether a frame is of symcomp; keep its file if it is."""
    file = frame.f_code.co_filename
    module = frame.f_globals.get("__name__", "")
    if (
        file.startswith("<doctest")
        or module.startswith("symcomp.tests")
        or not (module == "symcomp" or module.startswith("symcomp."))
    ):
        return False
    if not file.startswith("<"):  # no file, but a name that code of users may have too
        _internal.add(file)
    return True


_stands_for: ContextVar[tuple[Source | None] | None] = ContextVar("_stands_for", default=None)


class made_for:
    """Context in which new variables get the source line ``source``: they replace one made there.

    A class, as rewriting enters it for every node.
    """

    __slots__ = ("_given", "_token")

    def __init__(self, source: Source | None) -> None:
        self._given = (source,)

    def __enter__(self) -> None:
        self._token = _stands_for.set(self._given)

    def __exit__(self, *problem: object) -> None:
        _stands_for.reset(self._token)


def user_line() -> Source | None:
    """Return the line of the caller outside of symcomp, or None when there is none."""
    given = _stands_for.get()
    if given is not None:
        return given[0]
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        # called for each variable, through dozens of frames: only the first of a file is a call
        if frame.f_code.co_filename not in _internal and not _is_internal(frame):
            return Source(frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name)
        frame = frame.f_back
    return None
