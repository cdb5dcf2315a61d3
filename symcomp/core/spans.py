"""How long the stages of compiling take: spans within spans, noted where somebody asked for it."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field


@dataclass
class Span:
    """A stage of the work.

    Attributes
    ----------
    name : str
    note : str
        What came of it.
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
        """How long it took, its parts included."""
        return self.duration * 1e-9

    def walk(self, depth: int = 0) -> Iterator[tuple[int, Span]]:
        """This span and all within it, each with its depth."""
        yield depth, self
        for part in self.inner:
            yield from part.walk(depth + 1)


class _Open(threading.local):
    """The innermost span that is open in this thread."""

    span: Span | None = None


_open = _Open()


@contextmanager
def recorded(name: str) -> Iterator[Span]:
    """Note the spans that are opened inside, in this thread, as parts of the one that is given."""
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
    """A stage of the work; its time is noted if it is within ``recorded``."""
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
