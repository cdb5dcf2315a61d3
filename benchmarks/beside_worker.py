"""A worker process of `beside.py`: measures the tasks that it receives.

A request is a line of JSON on standard input, an answer one on standard output:

    {"about": true}               {"python": .., "symcomp": .., "numpy": .., "tasks": [..]}
    {"prepare": "scan/short"}     {"ready": true}
    {"measure": 0.2}              {"seconds": 1.2e-06}

The answer to a request that fails is {"error": ..}. Seconds are processor time, without the time
of other programs on the core. The output of tasks goes to standard error.
"""

from __future__ import annotations

import gc
import json
import os
import platform
import resource
import sys
import time
from collections.abc import Callable, Iterable
from itertools import repeat
from typing import Any

import numpy as np
from beside_registry import Task, Work
from beside_tasks import TASKS

import symcomp

# A window is cut into slices of about this many seconds; the fastest slice counts.
SLICE = 0.004
# Calls before the first measurement, or seconds: a function keeps plans of its first calls.
WARM_UP = 30
WARM_UP_SECONDS = 1.0

Clock = Callable[[], float]


class Runner:
    """The task that is being measured."""

    def __init__(self) -> None:
        self._task: Task | None = None
        self._work: Work | None = None
        self._calls = 1
        self._clock: Clock = time.process_time

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        """Answer a request."""
        if "prepare" in request:
            self.prepare(request["prepare"])
            return {"ready": True}
        if "measure" in request:
            return {"seconds": self.measure(request["measure"])}
        return {
            "python": platform.python_version(), "symcomp": os.path.dirname(symcomp.__file__),
            "numpy": np.__version__, "tasks": [*TASKS],
        }  # fmt: skip

    def prepare(self, name: str) -> None:
        """Compile the function of a task, and call it until its plans are made."""
        self._work = self._task = None
        gc.collect()
        task = TASKS[name]
        self._clock = with_children if task.children else time.process_time
        if not task.fresh:
            self._work = task.prepare()
            end = time.perf_counter() + WARM_UP_SECONDS
            for _ in range(WARM_UP):
                self._work()
                if time.perf_counter() > end:
                    break
            period = getattr(self._work, "period", 1)
            once = min(self._seconds(repeat(self._work, period)) for _ in range(3))
            self._calls = period * max(1, round(SLICE / once))
        self._task = task

    def measure(self, window: float) -> float:
        """Return the seconds of a call, in the fastest slice of a window of time."""
        if self._task is None:
            raise RuntimeError("no task has been prepared")
        gc.collect()
        gc.disable()
        try:
            best, end = self._slice(self._task), time.perf_counter() + window
            while time.perf_counter() < end:
                best = min(best, self._slice(self._task))
        finally:
            gc.enable()
        return best / self._task.per

    def _slice(self, task: Task) -> float:
        """Return the seconds of a call."""
        if self._work is not None:
            return self._seconds(repeat(self._work, self._calls)) / self._calls
        return self._seconds([task.prepare() for _ in range(task.fresh)]) / task.fresh

    def _seconds(self, calls: Iterable[Work]) -> float:
        clock = self._clock
        started = clock()
        for work in calls:
            work()
        return clock() - started


def with_children() -> float:
    """Return the processor time of this process and of the processes that it waited for."""
    used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(one.ru_utime + one.ru_stime for one in used)


def serve() -> None:
    """Answer the requests, one after another."""
    # The output of tasks and compilers must not stand between the answers.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    runner = Runner()
    for line in sys.stdin:
        try:
            answer = runner.answer(json.loads(line))
        except Exception as problem:  # noqa: BLE001 - the error is the answer
            answer = {"error": f"{type(problem).__name__}: {problem}"}
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    serve()
