"""Where the values of a plan lie in its arena: two that are needed at the same time lie apart."""

from __future__ import annotations

from collections.abc import Sequence

from symcomp.gpu.plan import DeviceCall, DeviceStorage, roots_of

# Where values in the arena begin: as the driver's own blocks do.
ALIGNMENT = 256


def place_values(
    storages: Sequence[DeviceStorage], calls: Sequence[DeviceCall], kept: set[int]
) -> int:
    """Set the offsets of values in the arena; return its size.

    Parameters
    ----------
    storages : sequence of DeviceStorage
    calls : sequence of DeviceCall
    kept : set of int
        The storages that outlive the plan's run, and lie elsewhere.
    """
    lifetimes = _Lifetimes(storages)
    lifetimes.of_calls(calls)
    arena = _Arena()
    spans = sorted((first, last, number) for number, (first, last) in lifetimes.spans.items())
    for first, last, number in spans:
        storage = storages[number]
        if storage.is_own and number not in kept:
            storage.offset = arena.take(storage.nbytes, first, last)
    return arena.size


class _Lifetimes:
    """The first and the last time at which each storage is used.

    A loop takes the time from its begin to its end: values from outside are needed in all of it.

    Attributes
    ----------
    spans : dict of int to (int, int)
    """

    def __init__(self, storages: Sequence[DeviceStorage]) -> None:
        self.spans: dict[int, tuple[int, int]] = {}
        self._storages, self._now = storages, 0

    def of_calls(self, calls: Sequence[DeviceCall]) -> set[int]:
        """Take in these calls; return the storages that they use."""
        found: set[int] = set()
        for call in calls:
            self._now += 1
            begin, used = self._now, set(roots_of(self._storages, call.storages()))
            if call.step is not None:
                inside = self.of_calls(call.step.calls)
                used |= {s for s in inside if self._storages[s].step is not call.step}
                self._now += 1
            for number in used:
                first, _ = self.spans.get(number, (begin, begin))
                self.spans[number] = min(first, begin), self._now
            found |= used
        return found


class _Arena:
    """Offsets for values that live from one call to another: the lowest that is free."""

    def __init__(self) -> None:
        self.size = 0
        self._taken: list[tuple[int, int, int]] = []  # begin, end, last call

    def take(self, nbytes: int, now: int, last: int) -> int:
        self._taken = sorted(t for t in self._taken if t[2] >= now)
        size = -(-max(nbytes, 1) // ALIGNMENT) * ALIGNMENT
        offset = 0
        for begin, end, _ in self._taken:
            if offset + size <= begin:
                break
            offset = max(offset, end)
        self._taken.append((offset, offset + size, last))
        self.size = max(self.size, offset + size)
        return offset
