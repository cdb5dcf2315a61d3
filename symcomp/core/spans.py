"""Measure how long the stages of compiling take: nested spans, recorded only inside ``recorded``.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import field

from symcomp.core.record import record


@record(frozen=False)
class Span:
    """A stage of compiling.

    Attributes
    ----------
    name : str
    note : str
        The result of the stage.
    start, duration : int
        Nanoseconds, on the clock of ``time.perf_counter_ns``.
    inner : list of Span
        Its parts, in their order.
    """

    name: str
    note: str = ""
    start: int = 0
    duration: int = 0
    inner: list[Span] = field(default_factory=list)

    @property
    def seconds(self) -> float:
        """Duration of this span, its parts included."""
        return self.duration * 1e-9

    def walk(self, depth: int = 0) -> Iterator[tuple[int, Span]]:
        """Return this span and all within it, each with its depth."""
        yield depth, self
        for part in self.inner:
            yield from part.walk(depth + 1)


class _Open(threading.local):
    """The innermost open span of this thread."""

    span: Span | None = None


_open = _Open()


@contextmanager
def recorded(name: str) -> Iterator[Span]:
    """Record the spans that are opened inside, in this thread, as parts of the yielded span."""
    outer = _open.span
    top = Span(name, start=time.perf_counter_ns())
    _open.span = top
    try:
        yield top
    finally:
        top.duration = time.perf_counter_ns() - top.start
        _open.span = outer


@contextmanager
def span(name: str) -> Iterator[Span]:
    """Open a span; its time is recorded if it lies within ``recorded``."""
    outer = _open.span
    part = Span(name)
    if outer is None:
        yield part
        return
    outer.inner.append(part)
    _open.span = part
    part.start = time.perf_counter_ns()
    try:
        yield part
    finally:
        part.duration = time.perf_counter_ns() - part.start
        _open.span = outer
