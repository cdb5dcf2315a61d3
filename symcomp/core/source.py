"""Where in the user's program something was made: the innermost frame that is not symcomp's own."""

from __future__ import annotations

import sys
from functools import cache
from types import FrameType
from typing import NamedTuple


class Source(NamedTuple):
    """A line of the user's program."""

    file: str
    line: int
    function: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line} in {self.function}"


@cache
def _is_internal(module: str, file: str) -> bool:
    if file.startswith("<doctest"):
        return False
    return (module == "symcomp" or module.startswith("symcomp.")) and not module.startswith(
        "symcomp.tests"
    )


def user_line() -> Source | None:
    """The line of the caller outside of symcomp, or None when there is none."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        code = frame.f_code
        if not _is_internal(frame.f_globals.get("__name__", ""), code.co_filename):
            return Source(code.co_filename, frame.f_lineno, code.co_name)
        frame = frame.f_back
    return None
