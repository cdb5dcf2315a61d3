"""Launches of one block each that follow one another, as one launch: a card needs longer from one
launch to the next than such a block needs for its work.

One block does the work of all, in order. Its threads wait for one another where one launch may read
what another has written, and all that a block has written is then seen by its threads. So do loops
whose steps are such launches alone.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby
from math import gcd

from symcomp.codegen.cuda.merged import (
    BLOCK_BYTES,
    IN_BLOCK,
    WORDS,
    CalledKernel,
    MergedCall,
    MovingAddress,
    can_be_called,
    can_take_turns,
    merge,
    shared_bytes,
    words_of,
)
from symcomp.codegen.cuda.text import CudaKernel
from symcomp.cvm.machine import WIDEST
from symcomp.gpu.kernels.copies import THREADS, copy_kernel
from symcomp.gpu.plan import DeviceCall, DeviceStorage, Launch, LoopStep, all_calls, roots_of

# Fewer launches that a run would save are not worth a kernel of their own, which is compiled.
FEWEST_SAVED = 3
# The most kernels in one: the time of compiling grows with them.
MOST_KERNELS = 8
# The most bytes of parameters of a part, which are in registers there: 64 of 255.
MOST_PARAMETERS = 256
# The most steps of a loop in one launch, which others wait for.
MOST_STEPS = 16384
# The most blocks whose work one block does, each of which takes it a fraction of a launch's time.
MOST_BLOCKS_IN_TURN = 4
# Stands for the words of the first error among the storages that calls use.
WORDS_OF_FAULT = -1
# Shared memory that each kernel may have.
MOST_SHARED = 48 * 1024


class Merging:
    """Merges launches of a plan.

    Parameters
    ----------
    storages : sequence of DeviceStorage
    kernels : dict of str to CudaKernel
        By name; merged ones are added.
    kept : set of int
        The storages that outlive a run.
    """

    def __init__(
        self,
        storages: Sequence[DeviceStorage],
        kernels: dict[str, CudaKernel],
        kept: set[int],
    ) -> None:
        self._storages, self._kernels = storages, kernels
        motions = [storage.motion for storage in storages if storage.motion is not None]
        self._kept = kept | {base for motion in motions for base, _ in motion.bases}
        self._uses = Counter[int]()

    def merge(self, calls: list[DeviceCall]) -> None:
        """Merge launches among these calls, and those of the steps of their loops."""
        self._uses.update(s for call in all_calls(calls) for s in call.storages())
        self._merge_loops(calls)
        steps: dict[LoopStep, int] = {}
        _count(calls, 1, steps)
        self._merge(calls, 1)
        for step, times in steps.items():
            self._merge(step.calls, times)

    def _merge_loops(self, calls: list[DeviceCall]) -> None:
        """Make loops among these calls one launch each, inner loops first."""
        for i, call in enumerate(calls):
            if call.step is not None:
                self._merge_loops(call.step.calls)
                if self._is_small_loop(call):
                    calls[i] = self._loop(call, call.step)

    def _is_small_loop(self, call: DeviceCall) -> bool:
        """Tell whether a loop can be one launch."""
        step = call.step
        if step is None or not 2 <= call.repeats <= MOST_STEPS:
            return False
        parts = [part for part in map(self._part, step.calls) if part is not None]
        if len(parts) < len(step.calls) or len(parts) * call.repeats <= FEWEST_SAVED:
            return False
        kernels = {one.launch.kernel for one in parts if one.launch is not None}
        addresses = [s for one in parts for _, s, _ in one.patches if s in step.moving]
        words = words_of(self._in_order(parts, {})) + 4 * len(addresses)
        if len(kernels) > MOST_KERNELS or words > WORDS[-1]:
            return False
        largest = max(shared_bytes(self._kernels[name]) for name in kernels)
        # Words of parameters lie in shared memory, too.
        return largest + 8 * WORDS[-1] <= MOST_SHARED and not any(
            base in step.moving for number in addresses for base, _ in self._bases(number)
        )

    def _bases(self, number: int) -> tuple[tuple[int, int], tuple[int, int]]:
        """Return where a storage that moves lies in even and in odd steps, but for the stride."""
        motion = self._storages[number].motion
        assert motion is not None
        return motion.bases

    def _merge(self, calls: list[DeviceCall], times: int) -> None:
        """Merge launches among calls that a run enqueues ``times`` times."""
        found: list[DeviceCall] = []
        for is_small, neighbours in groupby(calls, lambda call: self._part(call) is not None):
            some = [*neighbours]
            for run in self._runs(some) if is_small else ():
                saves = times * (len(run) - 1) >= FEWEST_SAVED
                found += [self._one(run)] if saves else run
            found += () if is_small else some
        calls[:] = found

    def _part(self, call: DeviceCall) -> DeviceCall | None:
        """Return the launch of one block, or of few, that does what a call does, and can be part of
        another one; None if there is none.
        """
        if call.kind in ("copy", "clear"):
            return self._moving_bytes(call)
        launch = call.launch
        if call.kind != "launch" or launch is None or launch.shared:
            return None
        if len(launch.parameters) > MOST_PARAMETERS:
            return None
        (x, y, z), kernel = launch.grid, self._kernels[launch.kernel]
        in_turn = x <= MOST_BLOCKS_IN_TURN and can_take_turns(kernel)
        return call if y == z == 1 and (x == 1 or in_turn) and can_be_called(kernel) else None

    def _moving_bytes(self, call: DeviceCall) -> DeviceCall | None:
        """Return the launch that copies or clears what a call does, if it is little."""
        unit = gcd(WIDEST, call.nbytes)
        for number, offset in call.operands:
            unit = gcd(unit, self._alignment(number), offset)
        n = call.nbytes // unit
        if n > MOST_BLOCKS_IN_TURN * THREADS:
            return None
        kernel = copy_kernel(unit, call.kind == "clear")
        self._kernels[kernel.name] = kernel
        given = bytearray(struct.pack("i4x", n)) + bytes(8 * kernel.arrays)
        patches = [(8 + 8 * i, number, at) for i, (number, at) in enumerate(call.operands)]
        launch = Launch(kernel.name, (1, 1, 1), (kernel.threads, 1, 1), given)
        return replace(call, kind="launch", launch=launch, patches=patches, operands=[])

    def _alignment(self, number: int) -> int:
        """Return a divisor of the address of a storage."""
        storage = self._storages[number]
        if storage.motion is None:
            return storage.alignment
        bases = [gcd(self._alignment(base), offset) for base, offset in storage.motion.bases]
        return gcd(*bases, storage.motion.stride)

    def _runs(self, calls: Sequence[DeviceCall]) -> list[list[DeviceCall]]:
        """Cut calls into runs that one kernel can call, each as long as can be."""
        found: list[list[DeviceCall]] = []
        words, names = 0, set[str]()
        for call in calls:
            part = self._part(call)
            assert part is not None and part.launch is not None
            name = part.launch.kernel
            more = words_of(self._in_order([part], {}))
            if not found or words + more > WORDS[-1] or len({*names, name}) > MOST_KERNELS:
                found.append([])
                words, names = 0, set()
            found[-1].append(call)
            words += more
            names.add(name)
        return found

    def _one(self, calls: Sequence[DeviceCall]) -> DeviceCall:
        """Return the launch of a kernel that calls those of these launches."""
        parts = [part for part in map(self._part, calls) if part is not None]
        offsets, size = self._in_block(parts, 0)
        made = merge(self._in_order(parts, offsets), size)
        patches = [
            (begin + place, storage, offset)
            for begin, part in zip(made.begins, parts, strict=True)
            for place, storage, offset in part.patches
            if storage not in offsets
        ]
        return self._launch(made, parts, patches)

    def _loop(self, loop: DeviceCall, step: LoopStep) -> DeviceCall:
        """Return the launch of a kernel that makes all steps of a loop."""
        moving, patched = list[MovingAddress](), list[tuple[int, int]]()
        fixed = list[tuple[int, int, int, int]]()
        parts = [part for part in map(self._part, step.calls) if part is not None]
        offsets, size = self._in_block(parts, 8 * WORDS[-1])
        for i, part in enumerate(parts):
            for place, storage, offset in part.patches:
                motion = self._storages[storage].motion
                if storage in step.moving and motion is not None:
                    moving.append(MovingAddress(i, place, motion.stride))
                    patched.append((storage, offset))
                elif storage not in offsets:
                    fixed.append((i, place, storage, offset))
        made = merge(self._in_order(parts, offsets), size, loop.repeats, moving)
        patches = [(made.begins[i] + place, s, offset) for i, place, s, offset in fixed]
        for begin, (storage, offset) in zip(made.moving, patched, strict=True):
            for k, (base, start) in enumerate(self._bases(storage)):
                patches.append((begin + 8 * k, base, start + offset))
        found = self._launch(made, parts, patches)
        return replace(found, label=f"{loop.repeats} steps: {found.label}", nbytes=loop.nbytes)

    def _in_block(self, calls: Sequence[DeviceCall], taken: int) -> tuple[dict[int, int], int]:
        """Return where values lie in the memory of a block that nothing but these launches use; and
        how many bytes they take. ``taken`` are bytes of shared memory for something else.
        """
        kernels = [self._kernels[call.launch.kernel] for call in calls if call.launch is not None]
        room = MOST_SHARED - taken - max(map(shared_bytes, kernels))
        most = max((n for n in BLOCK_BYTES if n <= room), default=0)
        found: dict[int, int] = {}
        end = 0
        for number, uses in Counter(s for call in calls for s in call.storages()).items():
            storage = self._storages[number]
            is_inside = uses == self._uses[number] and number not in self._kept
            if storage.is_own and is_inside and 0 < storage.nbytes <= most - end:
                found[number] = end
                end += -(-storage.nbytes // WIDEST) * WIDEST
        return found, min(end, most)

    def _launch(
        self, made: MergedCall, calls: Sequence[DeviceCall], patches: list[tuple[int, int, int]]
    ) -> DeviceCall:
        self._kernels[made.kernel.name] = made.kernel
        block = made.kernel.threads, 1, 1
        launch = Launch(made.kernel.name, (1, 1, 1), block, made.parameters)
        return DeviceCall(
            "launch", joined([call.label for call in calls]), launch, patches,
            nbytes=sum(call.nbytes for call in calls),
            can_fail=any(call.can_fail for call in calls),
        )  # fmt: skip

    def _in_order(
        self, calls: Sequence[DeviceCall], offsets: dict[int, int]
    ) -> list[CalledKernel]:
        """Return what a kernel calls for launches, and before which of them its threads wait.

        Parameters
        ----------
        offsets : dict of int to int
            Of the values in the memory of the block.
        """
        found, touched = [], set[int]()
        for i, call in enumerate(calls):
            # The first call that has an error tells it.
            places = self._places(call) | ({WORDS_OF_FAULT} if call.can_fail else set())
            assert call.launch is not None
            # Threads that are none of a function's, and shared memory, are free at its end only.
            waits = i > 0 and (
                self._kernels[call.launch.kernel].barriers or not touched.isdisjoint(places)
            )
            touched = places if waits else touched | places
            parameters = bytearray(call.launch.parameters)
            for place, storage, offset in call.patches:
                if storage in offsets:
                    at = IN_BLOCK | offsets[storage] + offset
                    struct.pack_into("Q", parameters, place, at)
            kernel = self._kernels[call.launch.kernel]
            found.append(CalledKernel(kernel, bytes(parameters), waits))
        return found

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
