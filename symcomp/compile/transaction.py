"""The end of a call: new values of shared variables are written over the old ones, or set, all of
them or none.

An array is overwritten only if nobody holds it but the shared variable and the call itself: not
another thread's call, not a user who asked for it with ``borrow=True``, no view. Whoever takes an
array out of a container holds it from then on, and waits if it is being written just then.
"""

from __future__ import annotations

import sys

# What the functions of the module signal call; those spend most of their time on making enums.
from _signal import SIGINT, getsignal, signal  # type: ignore[import-not-found]
from collections.abc import Callable, Sequence
from threading import Condition, current_thread, get_ident, main_thread
from typing import Any

# The containers whose arrays are being overwritten, and the threads that do it.
_writing: dict[Any, int] = {}
_changed = Condition()

# Without a global lock, counts of references say nothing of what another thread is about to do.
counts_are_certain: Callable[[], bool] = getattr(sys, "_is_gil_enabled", lambda: True)


def settled(container: Any) -> Any:
    """The value of ``container``; waits while another thread writes over it."""
    while True:
        # First take hold of it: who counts after that, counts this too.
        value = container.value
        if not _writing or _writing.get(container, get_ident()) == get_ident():
            return value
        value = None
        with _changed:
            _changed.wait_for(lambda: container not in _writing)


def values_of(containers: Sequence[Any]) -> list[Any]:
    """The values of the containers, as ``settled``."""
    values = [container.value for container in containers]
    return [settled(container) for container in containers] if _writing else values


class Transaction:
    """What one call may overwrite (see ``symcomp.vm.commit.Claims``).

    The program begins it, and whoever made it ends it.

    Parameters
    ----------
    containers : sequence of Container
        Of the arrays that the program asks for.
    """

    def __init__(self, containers: Sequence[Any]) -> None:
        self._containers = containers
        self._marked: list[Any] = []
        self._handler: Any = None
        self._interrupts: list[Any] = []

    def begin(self) -> None:
        """Let nobody else take the arrays; from now on Ctrl-C waits until ``end``."""
        thread = get_ident()
        with _changed:
            while _writing and any(_writing.get(c, thread) != thread for c in self._containers):
                _changed.wait()
            self._marked = [c for c in self._containers if c not in _writing]
            _writing.update(dict.fromkeys(self._marked, thread))
        if current_thread() is main_thread():
            handler = getsignal(SIGINT)
            if callable(handler):
                interrupts = self._interrupts
                signal(SIGINT, lambda *call: interrupts.append(call))
                self._handler = handler

    def taken(self, arrays: Sequence[Any], others: Sequence[int]) -> tuple[Any, ...]:
        """The arrays where nobody else holds them, and copies of the others."""
        return tuple(
            [
                array
                if not count
                and container.value is array
                and array.flags.owndata
                and array.flags.writeable
                else array.copy(order="K")
                for array, container, count in zip(arrays, self._containers, others, strict=True)
            ]
        )

    def end(self) -> None:
        """Let the others go on; then do what Ctrl-C does, if it was pressed."""
        if self._marked:
            with _changed:
                for container in self._marked:
                    _writing.pop(container, None)
                _changed.notify_all()
        if self._handler is not None:
            signal(SIGINT, self._handler)
            if self._interrupts:
                self._handler(*self._interrupts[0])
