"""The work of profiled functions on devices: how it is timed, and its part of the report."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from symcomp.core.node import Apply
from symcomp.cvm.machine import Recorded
from symcomp.lazy import lazy_module
from symcomp.profiling.profiled import Data

timelines = lazy_module("symcomp.gpu.driver.timeline")
# The modules of ops that enqueue work.
OPS = "symcomp.gpu."
# Numbers of the threads that streams are shown as, in traces.
STREAMS = 1 << 20


class Watch:
    """Lets the work that a function enqueues on devices be timed.

    Attributes
    ----------
    timeline : Timeline or None
        None for a function without such work.
    """

    def __init__(self) -> None:
        self.timeline: Any = None

    def __call__(self, node: Apply, compute: Callable[..., Any]) -> Callable[..., Any]:
        """Return a function that computes a node, and adds its work to the timeline."""
        if not type(node.op).__module__.startswith(OPS):
            return compute
        if self.timeline is None:
            self.timeline = timelines.Timeline()
        return Recorded(compute, self.timeline)


def device_data(timeline: Any) -> list[Data] | None:
    """Return the work of a function on devices, the slowest first; wait until it is done."""
    if timeline is None:
        return None
    timeline.finish()
    found = [
        {
            "device": device,
            "kind": kind,
            "label": label,
            "count": total.count,
            "seconds": total.nanoseconds * 1e-9,
            "bytes": total.nbytes,
        }
        for (device, kind, label), total in list(timeline.totals.items())
    ]
    return sorted(found, key=lambda row: -row["seconds"])


def device_events(timeline: Any) -> tuple[list[str], list[Any]]:
    """Return the names of devices, and the work that was timed last."""
    timeline.finish()
    events = list(timeline.events)
    return sorted({event.device for event in events}), events
