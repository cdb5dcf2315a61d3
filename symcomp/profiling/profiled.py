"""Profiled: a profiled function, its counters, and data for its report."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from symcomp.core.spans import Span
from symcomp.vm.program import Program

# Report data: dicts, lists, numbers and text.
Data = dict[str, Any]


class Profiled:
    """A function and its counts.

    Attributes
    ----------
    name : str
    program : Program
    tally : Tally
        The counts of its instructions.
    calls : Calls
    spans : Span or None
        The stages of compiling it; None if they were not timed.
    timeline : Timeline or None
        Its work on devices.
    plans : callable
        Returns the program without storage plan, and the one without frees, too.
    """

    def __init__(
        self,
        name: str,
        tally: Any,
        calls: Any,
        plans: Callable[[], tuple[Program, Program]],
    ) -> None:
        self.name, self.tally, self.calls, self.plans = name, tally, calls, plans
        self.program: Program = tally.program
        self.spans: Span | None = None
        self.timeline: Any = None
