"""The report as a Chrome trace: compiling, and the last calls that were timed, on their threads.

The format is that of the Trace Event Format; chrome://tracing and https://ui.perfetto.dev show it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from symcomp.core.spans import Span
from symcomp.profiling.devices import STREAMS, device_events
from symcomp.profiling.profiled import Data, Profiled
from symcomp.profiling.report import op_name
from symcomp.profiling.text import shortened
from symcomp.vm.tally import Event

PROCESS, COMPILING = 1, 0


def chrome_trace(title: str, functions: Iterable[Profiled]) -> Data:
    """Return the events, complete ones ("X"), in microseconds."""
    threads: dict[int, int] = {}
    names: dict[str, int] = {}
    found = [_name("process_name", COMPILING, f"symcomp: {title}")]
    found.append(_name("thread_name", COMPILING, "compiling"))
    for function in functions:
        if function.spans is not None:
            found += _spans(function.spans, function.name)
        for event in function.calls.events():
            found.append(_event(event, f"call of {function.name}", "call", threads, {}))
        found += _instructions(function.tally, threads)
        if function.timeline is not None:
            found += _streams(function.timeline, names)
    found += [
        _name("thread_name", number, f"thread {thread}") for thread, number in threads.items()
    ]
    found += [_name("thread_name", n, f"stream of {device}") for device, n in names.items()]
    return {"traceEvents": found, "displayTimeUnit": "ns"}


def _instructions(tally: Any, threads: dict[int, int]) -> Iterator[Data]:
    """Yield the instructions of a program, and of the programs that they ran."""
    code = tally.program.instructions
    for event in tally.events():
        step = code[event.position]
        details = {"instruction": event.position, "text": step.line()}
        if step.node is not None and step.node.source is not None:
            details["source"] = str(step.node.source)
        yield _event(event, shortened(op_name(step)), "instruction", threads, details)
    for _, inner in tally.inner.values():
        yield from _instructions(inner, threads)


def _streams(timeline: Any, names: dict[str, int]) -> Iterator[Data]:
    """Yield the work on devices, each device with a row of its own."""
    devices, events = device_events(timeline)
    for device in devices:
        names.setdefault(device, STREAMS + len(names))
    for event in events:
        yield {
            "name": shortened(event.label or event.kind),
            "cat": "device",
            "ph": "X",
            "ts": event.start * 1e-3,
            "dur": event.duration * 1e-3,
            "pid": PROCESS,
            "tid": names[event.device],
            "args": {"kind": event.kind, "bytes": event.nbytes},
        }


def _spans(span: Span, name: str) -> Iterator[Data]:
    for depth, part in span.walk():
        yield {
            "name": part.name if depth else f"compile {name}",
            "cat": "compile",
            "ph": "X",
            "ts": part.start * 1e-3,
            "dur": part.duration * 1e-3,
            "pid": PROCESS,
            "tid": COMPILING,
            "args": {"note": part.note} if part.note else {},
        }


def _event(event: Event, name: str, category: str, threads: dict[int, int], details: Data) -> Data:
    return {
        "name": name,
        "cat": category,
        "ph": "X",
        "ts": event.start * 1e-3,
        "dur": event.duration * 1e-3,
        "pid": PROCESS,
        "tid": threads.setdefault(event.thread, len(threads) + 1),
        "args": details,
    }


def _name(what: str, thread: int, name: str) -> Data:
    return {"name": what, "ph": "M", "pid": PROCESS, "tid": thread, "args": {"name": name}}
