"""Launches of one block each that follow one another, as one launch: a card needs longer from one
launch to the next than such a block needs for its work.

One block does the work of all, in order. Its threads wait for one another where one launch may read
what another has written, and all that a block has written is then seen by its threads.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from symcomp.codegen.cuda.merged import WORDS, CalledKernel, can_be_called, merge, words_of
from symcomp.codegen.cuda.text import CudaKernel
from symcomp.gpu.plan import DeviceCall, DeviceStorage, Launch, LoopStep, roots_of

# Fewer launches that a run would save are not worth a kernel of their own, which is compiled.
FEWEST_SAVED = 3
# The most kernels in one: the time of compiling grows with them.
MOST_KERNELS = 8


class Merging:
    """Merges launches of a plan.

    Parameters
    ----------
    storages : sequence of DeviceStorage
    kernels : dict of str to CudaKernel
        By name; merged ones are added.
    """

    def __init__(
        self, storages: Sequence[DeviceStorage], kernels: dict[str, CudaKernel]
    ) -> None:
        self._storages, self._kernels = storages, kernels

    def merge(self, calls: list[DeviceCall]) -> None:
        """Merge launches among these calls, and those of the steps of their loops."""
        steps: dict[LoopStep, int] = {}
        _count(calls, 1, steps)
        self._merge(calls, 1)
        for step, times in steps.items():
            self._merge(step.calls, times)

    def _merge(self, calls: list[DeviceCall], times: int) -> None:
        """Merge launches among calls that a run enqueues ``times`` times."""
        found: list[DeviceCall] = []
        for is_small, neighbours in groupby(calls, self._is_small):
            some = [*neighbours]
            for run in self._runs(some) if is_small else ():
                saves = times * (len(run) - 1) >= FEWEST_SAVED
                found += [self._one(run)] if saves else run
            found += () if is_small else some
        calls[:] = found

    def _is_small(self, call: DeviceCall) -> bool:
        """Tell whether a call is a launch of one block, which can be part of another launch."""
        launch = call.launch
        if launch is None or call.library is not None or launch.grid != (1, 1, 1):
            return False
        return not launch.shared and can_be_called(self._kernels[launch.kernel])

    def _runs(self, calls: Sequence[DeviceCall]) -> list[list[DeviceCall]]:
        """Cut calls into runs that one kernel can call, each as long as can be."""
        found: list[list[DeviceCall]] = []
        words, names = 0, set[str]()
        for call in calls:
            assert call.launch is not None
            name = call.launch.kernel
            more = words_of([self._called(call, False)])
            if not found or words + more > WORDS[-1] or len({*names, name}) > MOST_KERNELS:
                found.append([])
                words, names = 0, set()
            found[-1].append(call)
            words += more
            names.add(name)
        return found

    def _one(self, calls: Sequence[DeviceCall]) -> DeviceCall:
        """Return the launch of a kernel that calls those of these launches."""
        called, touched = [], set[int]()
        for i, call in enumerate(calls):
            places = self._places(call)
            assert call.launch is not None
            # Threads that are none of a function's, and shared memory, are free at its end only.
            waits = i > 0 and (
                self._kernels[call.launch.kernel].barriers or not touched.isdisjoint(places)
            )
            touched = places if waits else touched | places
            called.append(self._called(call, waits))
        kernel, parameters, begins = merge(called)
        self._kernels[kernel.name] = kernel
        patches = [
            (begin + place, storage, offset)
            for begin, call in zip(begins, calls, strict=True)
            for place, storage, offset in call.patches
        ]
        launch = Launch(kernel.name, (1, 1, 1), (kernel.threads, 1, 1), parameters)
        return DeviceCall(
            "launch", joined([call.label for call in calls]), launch, patches,
            nbytes=sum(call.nbytes for call in calls),
            can_fail=any(call.can_fail for call in calls),
        )  # fmt: skip

    def _called(self, call: DeviceCall, waits: bool) -> CalledKernel:
        assert call.launch is not None
        return CalledKernel(self._kernels[call.launch.kernel], bytes(call.launch.parameters), waits)

    def _places(self, call: DeviceCall) -> set[int]:
        """Return the storages with memory of a launch that may be written in this run."""
        return {
            root
            for root in roots_of(self._storages, call.storages())
            if self._storages[root].constant is None and self._storages[root].source < 0
        }


def _count(calls: Sequence[DeviceCall], times: int, found: dict[LoopStep, int]) -> None:
    """Note how often the steps of loops are run; several loops may have the same step."""
    for call in calls:
        if call.step is not None:
            found[call.step] = found.get(call.step, 0) + times * call.repeats
            _count(call.step.calls, times * call.repeats, found)


def joined(labels: Sequence[str]) -> str:
    """Return the labels in the order in which they first occur, and how often each does.

    Examples
    --------
    >>> joined(["dot", "tanh", "dot"])
    '2 x dot; tanh'
    """
    counts: dict[str, int] = {}
    for label in labels:
        counts[label] = counts.get(label, 0) + 1
    return "; ".join(label if n == 1 else f"{n} x {label}" for label, n in counts.items())
