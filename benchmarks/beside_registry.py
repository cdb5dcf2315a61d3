"""The registry of the tasks of `beside_tasks.py`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import cycle
from typing import Any

import numpy as np

import symcomp

Work = Callable[[], object]


@dataclass(frozen=True)
class Task:
    """A call to be timed.

    Attributes
    ----------
    name : str
    prepare : callable () -> callable ()
        Compile, and return the call.
    per : int
        The time of a call is divided by it: the steps of a loop, the instructions of a program.
    fresh : int
        The number of calls that are prepared for each measurement, and made once; 0: one call
        is prepared, and repeated.
    children : bool
        Add the time of processes that the call starts and waits for.
    """

    name: str
    prepare: Callable[[], Work]
    per: int = 1
    fresh: int = 0
    children: bool = False


TASKS: dict[str, Task] = {}


def add(name: str, prepare: Callable[[], Work], **options: Any) -> None:
    """Register a task; the options are the other fields of ``Task``."""
    if name in TASKS:
        raise ValueError(f"there are two tasks called {name}")
    TASKS[name] = Task(name, prepare, **options)


def task(name: str, **options: Any) -> Callable[[Callable[[], Work]], Callable[[], Work]]:
    """Register the decorated function, which prepares a task."""

    def register(prepare: Callable[[], Work]) -> Callable[[], Work]:
        add(name, prepare, **options)
        return prepare

    return register


def numbers(*shape: int, dtype: str = "float64", seed: int = 0) -> np.ndarray:
    """Return numbers between -1 and 1."""
    return np.random.default_rng(seed).uniform(-1, 1, shape).astype(dtype)


def call(inputs: Sequence[Any], outputs: Any, *arguments: Any, **options: Any) -> Work:
    """Compile a function that trusts its arguments, and bind them."""
    return partial(symcomp.function(list(inputs), outputs, trust_input=True, **options), *arguments)


class InTurn:
    """A call that takes the next arguments each time.

    Attributes
    ----------
    period : int
        How many calls take different arguments; measured are multiples of it.
    """

    def __init__(self, f: Callable[..., object], calls: Sequence[Sequence[Any]]) -> None:
        self.period = len(calls)
        self._f, self._next = f, cycle(calls).__next__

    def __call__(self) -> object:
        return self._f(*self._next())
