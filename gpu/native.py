"""Plans as the machine enqueues them: all calls in one list, addresses as bases and offsets."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from symcomp.cvm.machine import DevicePlan
from symcomp.gpu.driver.interface import Library
from symcomp.gpu.plan import DeviceCall, DeviceStorage, all_calls, roots_of


class NativePlan:
    """Calls that the machine enqueues without the interpreter.

    The bases of a run are the arena, then inputs, then memory that is made for the run.

    Attributes
    ----------
    calls : sequence of DeviceCall
    labels : list of str
        Of the calls, and of those in loops, in order.
    inputs : list of int
        The numbers of the inputs whose addresses are bases.
    made : list of int
        Bytes of the memory that each run needs anew.
    base_of : dict of int to int
        Of storages of inputs and of new memory: the number of the base.
    constants : list of DeviceMemory
        In use; their addresses are in the plan.
    native : DevicePlan
    library_of : dict of int to Library
        By the number of the call.

    Parameters
    ----------
    storages : sequence of DeviceStorage
    calls : sequence of DeviceCall
        With kernels.
    kept : set of int
        The storages that outlive a run.
    """

    def __init__(
        self, storages: Sequence[DeviceStorage], calls: Sequence[DeviceCall], kept: set[int]
    ) -> None:
        self.calls, self._storages = calls, storages
        self._flat: list[tuple[Any, ...]] = []
        self.labels: list[str] = []
        self.library_of: dict[int, Library] = {}
        self.constants = [s.constant for s in storages if s.constant is not None]
        self.inputs = [s.source for s in storages if s.source >= 0]
        of_inputs = [i for i, s in enumerate(storages) if s.source >= 0]
        new = [i for i in sorted(kept) if storages[i].is_own]
        self.made = [storages[i].nbytes for i in new]
        self.base_of = {number: i for i, number in enumerate([*of_inputs, *new], 1)}
        self._parts: list[tuple[int, list[int], int]] = []
        totals = self._flatten(calls)
        is_recordable = all(library.is_recordable for library in self.library_of.values())
        origins = [self._origin(i, s) for i, s in enumerate(storages)]
        self.native = DevicePlan(
            self._flat, origins, 1 + len(self.base_of), totals, is_recordable, self._parts
        )
        self._flat.clear()

    def _origin(self, number: int, storage: DeviceStorage) -> tuple[int, int]:
        if storage.constant is not None:
            return -1, storage.constant.address
        if number in self.base_of:
            return self.base_of[number], 0
        return (0, storage.offset) if storage.offset >= 0 else (-1, 0)

    def _flatten(self, calls: Sequence[DeviceCall], times: int = 1) -> tuple[int, int, int]:
        """Add calls, which are enqueued ``times`` times in a run; return the number of their
        launches, the bytes that they copy, and how many pieces of work they are.
        """
        launches = copied = pieces = 0
        for call in calls:
            at = len(self._flat)
            self._flat.append(())
            self.labels.append(call.label)
            if call.step is None:
                launches += call.launch is not None
                if call.library is not None:
                    self.library_of[at] = call.library
                copied += call.nbytes if call.kind == "copy" else 0
                pieces += 1
            else:
                if call.is_part:
                    self._parts.append((at, self._bases(call.step.calls), times))
                made = self._flatten(call.step.calls, times * call.repeats)
                inner = [call.repeats * n for n in made]
                launches, copied, pieces = launches + inner[0], copied + inner[1], pieces + inner[2]
            self._flat[at] = self._entry(call, len(self._flat))
        return launches, copied, pieces

    def _bases(self, calls: Sequence[DeviceCall]) -> list[int]:
        """Return the numbers of the bases that calls use."""
        used = {s for call in all_calls(calls) for s in call.storages()}
        origins = [self._origin(i, self._storages[i]) for i in roots_of(self._storages, used)]
        return sorted({base for base, _ in origins if base >= 0})

    def _entry(self, call: DeviceCall, end: int) -> tuple[Any, ...]:
        launch, one = call.launch, (1, 1, 1)
        motions = []
        for number in call.step.moving if call.step is not None else ():
            motion = self._storages[number].motion
            assert motion is not None
            motions.append((number, *motion.bases, motion.stride))
        patches = call.patches or [(i, s, offset) for i, (s, offset) in enumerate(call.operands)]
        return (
            call.kind, 0 if launch is None else launch.kernel,
            one if launch is None else launch.grid, one if launch is None else launch.block,
            0 if launch is None else launch.shared,
            b"" if launch is None else bytes(launch.parameters),
            patches, call.nbytes if launch is None and call.step is None else 0,
            (call.repeats, end), motions,
        )  # fmt: skip

    def each_call(self) -> Iterator[DeviceCall]:
        """Yield all work in the order in which it is enqueued, of all steps of loops."""
        return _unrolled(self.calls)


def _unrolled(calls: Sequence[DeviceCall]) -> Iterator[DeviceCall]:
    for call in calls:
        if call.step is None:
            yield call
        for _ in range(call.repeats):
            assert call.step is not None
            yield from _unrolled(call.step.calls)
