"""Observers of applications: functions that are called with each node that a call of an op makes.

Rewriting, which makes nodes by ``make_node`` or copies them, is not observed.
"""

from __future__ import annotations

from collections.abc import Callable

from symcomp.core.node import Apply

Observer = Callable[[Apply], None]

_observers: list[Observer] = []


def observe_applications(observer: Observer) -> None:
    """Call a function with each node that calls of ops make from now on.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> from symcomp.core.applications import observe_applications, stop_observing
    >>> made = []
    >>> observe_applications(made.append)
    >>> x = T.exp(T.vector("x"))
    >>> stop_observing(made.append)
    >>> made
    [exp(x)]
    """
    if observer not in _observers:
        _observers.append(observer)


def stop_observing(observer: Observer) -> None:
    """Undo ``observe_applications``; no effect if the function does not observe."""
    if observer in _observers:
        _observers.remove(observer)


def note_application(node: Apply) -> None:
    """Call the observers with a node that a call of an op has made."""
    for observer in _observers:
        observer(node)
