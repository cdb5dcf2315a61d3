"""ProfileStats: the profile of the compiling and the calls of one or more functions."""

from __future__ import annotations

import atexit
import os
import sys
from pathlib import Path
from typing import TextIO

from symcomp.config import config
from symcomp.lazy import lazy_module
from symcomp.profiling.profiled import Data, Profiled

# Functions that are not profiled need none of these.
json = lazy_module("json")
limits = lazy_module("symcomp.profiling.limits")
notes = lazy_module("symcomp.profiling.notes")
page = lazy_module("symcomp.profiling.page")
report = lazy_module("symcomp.profiling.report")
text = lazy_module("symcomp.profiling.text")
trace = lazy_module("symcomp.profiling.trace")


class ProfileStats:
    """A profile of one function, or of several that are compiled with the same object.

    Made by ``function(..., profile=True)`` as ``f.profile``, or by the user and passed as
    ``profile`` to several functions.

    Parameters
    ----------
    message : str, optional
        The title.

    Attributes
    ----------
    message : str or None
    functions : list of Profiled
        The counts of each function.

    Examples
    --------
    >>> import numpy as np
    >>> import symcomp
    >>> import symcomp.tensor as T
    >>> x = T.dvector("x")
    >>> f = symcomp.function([x], T.exp(x).sum(), profile=True)
    >>> result = f(np.ones(1000))
    >>> f.profile.calls
    1
    """

    def __init__(self, message: str | None = None) -> None:
        self.message = message
        self.functions: list[Profiled] = []

    @property
    def calls(self) -> int:
        """The number of calls."""
        return sum(f.calls.count for f in self.functions)

    @property
    def call_seconds(self) -> float:
        """The duration of all calls, arguments and updates included."""
        return sum(f.calls.seconds for f in self.functions)

    @property
    def compile_phases(self) -> list[tuple[str, float]]:
        """The stages of compiling with their seconds, each followed by its parts."""
        return [
            (span.name, span.seconds)
            for function in self.functions
            if function.spans is not None
            for _, span in function.spans.walk()
        ]

    def watch(self, profiled: Profiled) -> None:
        """Add a function."""
        self.functions.append(profiled)

    def __getstate__(self) -> Data:
        """Return the state without counts, which belong to the functions of this process."""
        return {"message": self.message}

    def __setstate__(self, state: Data) -> None:
        self.message, self.functions = state["message"], []

    # -- reports

    def to_dict(self) -> Data:
        """Return the profile as dicts, lists, numbers and text; times in seconds."""
        functions = [report.function_data(f) for f in self.functions]
        rows = [row for f in functions for row in f["instructions"]]
        return {
            "title": self.message or "functions",
            "functions": functions,
            "classes": report.grouped(rows, "class"),
            "ops": report.grouped(rows, "op"),
            "limits": limits.limits()._asdict(),
            "notes": notes.notes(functions),
        }

    def text(self, n: int = 20) -> str:
        """Return the report as text, each table with its ``n`` first rows."""
        return str(text.as_text(self.to_dict(), n))

    def summary(self, file: TextIO | None = None, n: int = 20) -> None:
        """Write the report.

        Parameters
        ----------
        file : text file, optional
            By default standard error.
        n : int
            The number of ops and instructions to list.
        """
        (file or sys.stderr).write(self.text(n))

    def to_json(self, path: str | os.PathLike[str]) -> None:
        """Write the result of ``to_dict`` as JSON."""
        _write(path, json.dumps(self.to_dict(), indent=1))

    def to_chrome_trace(self, path: str | os.PathLike[str]) -> None:
        """Write the time line of compiling, and of the last calls that were timed, in the format
        that chrome://tracing and https://ui.perfetto.dev show.
        """
        _write(path, json.dumps(trace.chrome_trace(self.message or "functions", self.functions)))

    def to_html(self, path: str | os.PathLike[str]) -> None:
        """Write a self-contained page: the graph coloured by time, and all tables."""
        _write(path, page.as_page(self.to_dict(), self.functions))


def _write(path: str | os.PathLike[str], content: str) -> None:
    Path(path).write_text(content, encoding="utf-8")


# -- at exit, where config.profile asked for it

_printed_at_exit: list[ProfileStats] = []


def printed_at_exit(profile: ProfileStats) -> ProfileStats:
    """Print the profile when Python ends."""
    if not _printed_at_exit:
        atexit.register(_print_all)
    _printed_at_exit.append(profile)
    return profile


def profiles_at_exit() -> list[ProfileStats]:
    """Return the profiles that are printed when Python ends."""
    return list(_printed_at_exit)


def text_at_exit(profiles: list[ProfileStats]) -> str:
    """Return the profiles of functions that were called, and their total."""
    called = [profile for profile in profiles if profile.calls]
    parts = [profile.text() for profile in called]
    if len(called) > 1:
        together = ProfileStats(f"all {len(called)} functions")
        for profile in called:
            together.functions += profile.functions
        data = together.to_dict()
        # Each function has reported its own at exit already.
        for function in data["functions"]:
            function |= {"instructions": [], "programs": [], "device_work": None}
            function |= {"memory": None, "compile": None}
        parts.append(text.as_text(data))
    if len(called) < len(profiles):
        parts.append(f"{len(profiles) - len(called)} functions were compiled and not called\n")
    return "\n".join(parts)


def _print_all() -> None:
    found, destination = text_at_exit(_printed_at_exit), config.profile_destination
    if destination in ("stderr", "stdout"):
        print(found, file=getattr(sys, destination))
    else:
        _write(Path(destination).expanduser(), found)
