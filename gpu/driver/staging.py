"""Pinned memory between the host's arrays and a card; things to finish when copies are done."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import Any, Generic, TypeVar

import numpy as np

from symcomp.cvm.machine import rounded

# Blocks of up to this number of bytes are kept for later copies.
KEPT_STAGING = 1 << 24

Item = TypeVar("Item")


class Pending(Generic[Item]):
    """Things to finish, in order, when the work that was enqueued before them is done.

    Any thread adds; a thread that has waited finishes the things added before its wait.

    Attributes
    ----------
    added : int
        How many were added so far.
    """

    def __init__(self) -> None:
        self.added = 0
        self._finished = 0
        self._items: deque[Item] = deque()
        # Collected garbage, whose memory may have to be waited for, calls within calls.
        self._lock = threading.RLock()

    def __len__(self) -> int:
        return len(self._items)

    def add(self, item: Item) -> None:
        """Add one, whose work has been enqueued."""
        with self._lock:
            self._items.append(item)
            self.added += 1

    def finish(self, upto: int, act: Callable[[Item], Any]) -> None:
        """Call ``act`` for each of the first ``upto`` that is not finished yet; return when all of
        them are, by this thread or another one.
        """
        with self._lock:
            while self._finished < upto:
                self._finished += 1
                act(self._items.popleft())

    def finish_while(self, is_done: Callable[[Item], bool], act: Callable[[Item], Any]) -> None:
        """Call ``act`` for the first ones, as long as ``is_done`` holds of them."""
        with self._lock:
            while self._items and is_done(self._items[0]):
                self._finished += 1
                act(self._items.popleft())


class Staging:
    """Blocks of pinned memory, used again when the copies that read them are done.

    Parameters
    ----------
    allocate : callable (nbytes) -> array of bytes
        Returns pinned memory.
    mark : callable () -> event
        Enqueues an event, which has ``query()``.
    """

    def __init__(self, allocate: Callable[[int], np.ndarray], mark: Callable[[], Any]) -> None:
        self._allocate, self._mark = allocate, mark
        self._free: dict[int, list[np.ndarray]] = {}
        self._sent: Pending[tuple[Any, np.ndarray]] = Pending()

    def take(self, nbytes: int) -> np.ndarray:
        """Return a block of at least ``nbytes`` bytes."""
        self._sent.finish_while(lambda item: bool(item[0].query()), lambda item: self.give(item[1]))
        size = rounded(nbytes)
        try:
            return self._free[size].pop()
        except (KeyError, IndexError):
            return self._allocate(size)

    def send(self, block: np.ndarray) -> None:
        """Give a block back once the work that was enqueued so far is done."""
        self._sent.add((self._mark(), block))

    def give(self, block: np.ndarray) -> None:
        """Give a block back."""
        if block.nbytes <= KEPT_STAGING:
            self._free.setdefault(block.nbytes, []).append(block)
