"""Run kernels of any form with the interpreter."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from symcomp.codegen.loopir.interpret import Applied, Space, apply_with_numpy
from symcomp.codegen.loopir.kernel import Kept, Loops, Nests
from symcomp.codegen.loopir.sweeps import run_loops
from symcomp.ops.indexing.gather_labels import nowhere


def run(
    kernel: Loops | Nests, arrays: Sequence[np.ndarray], apply: Applied = apply_with_numpy
) -> int:
    """Run a kernel; return 0, or the error number that its C would return.

    Parameters
    ----------
    kernel : Loops or Nests
    arrays : sequence of array
        Inputs and outputs, all of the kernel's rank: with length 1 along axes where they are one
        number; then an array without axes for each literal.
    apply : callable
        Computes scalar functions.
    """
    return run_in(Space(apply), kernel, arrays)


def run_in(space: Space, kernel: Loops | Nests, arrays: Sequence[Any]) -> int:
    """Run a kernel in a space of memory, of which the arrays are: as ``run`` does."""
    if isinstance(kernel, Nests):
        return _run_nests(kernel, arrays, space)
    return run_loops(kernel, arrays, space)


def _run_nests(nests: Nests, arrays: Sequence[Any], space: Space) -> int:
    given, literals = arrays[: nests.given], arrays[nests.given :]
    shape = np.broadcast_shapes(*(array.shape for array in given))
    kept = []
    for one in nests.kept:
        lengths = [1 if flag else n for flag, n in zip(one.stretched, shape, strict=True)]
        array = space.empty(lengths, one.dtype)
        if one.axis is not None and not _fill(array, one, given, shape):
            return 1
        kept.append(array)
    every = [*given, *kept]
    for part in nests.parts:
        own = [every[a] for a in part.arrays] + [literals[i] for i in part.literals]
        if run_loops(part.loops, own, space):
            return 1
    return 0


def _fill(array: np.ndarray, kept: Kept, given: Sequence[np.ndarray], shape: Sequence[int]) -> bool:
    """Fill an array with indices; return False if one is out of range."""
    assert kept.axis is not None
    n = shape[kept.axis]
    if kept.positions_of is None:
        array[...] = np.arange(n).reshape([-1 if m > 1 or m == n else 1 for m in array.shape])
        return True
    index = given[kept.positions_of]
    none = (
        index == nowhere(index.dtype.name)
        if index.dtype.kind == "i"
        else np.zeros_like(index, bool)
    )
    wide = index.astype("object")
    inside = none | ((wide >= -n) & (wide < n))
    if not inside.all():
        return False
    array[...] = np.where(none, -1, np.where(wide < 0, wide + n, wide)).astype(array.dtype)
    return True
