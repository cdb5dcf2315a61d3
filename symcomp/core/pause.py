"""Switch the cyclic garbage collector off while a graph is built: almost no new object is garbage.
"""

from __future__ import annotations

import functools
import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])

#: More objects than an interpreter freezes as it starts (Python 3.12: 375), fewer than it has.
FROZEN_BY_PROGRAMS = 1000


@contextmanager
def garbage_collection_off() -> Iterator[None]:
    """Run the body of a with statement with the cyclic collector off.

    The collector scans young objects after every few hundred allocations, and all objects now and
    then: on a graph of 100,000 nodes that is most of the time.
    """
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def age_objects() -> None:
    """Count all objects there are among the old ones, which the cyclic collector scans last.

    The collector takes up new objects again and again, and then all objects, to find out that
    modules are no garbage. What becomes garbage later is found as before. Where a program has
    frozen its objects, they stay frozen, and nothing is done.
    """
    if gc.get_freeze_count() < FROZEN_BY_PROGRAMS:
        gc.freeze()
        gc.unfreeze()


def without_garbage_collection(function: F) -> F:
    """Decorate ``function`` to run with the cyclic collector off."""

    @functools.wraps(function)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        with garbage_collection_off():
            return function(*args, **kwargs)

    return wrapped  # type: ignore[return-value]
