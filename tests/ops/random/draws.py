"""Draws for tests: of a distribution, from a seed, by a function compiled for it."""

from typing import Any

import numpy as np

import symcomp
from symcomp.ops.random.state import state


def drawn(distribution: Any, *args: Any, seed: int = 1, mode: Any = None, **more: Any) -> Any:
    """Return the draw of ``distribution(state, *args, **more)`` at the state of a seed."""
    start = state("start")
    _, z = distribution(start, *args, **more)
    f = symcomp.function([start], z, mode=mode)
    found = f(np.random.default_rng(seed))
    assert found.dtype == z.dtype
    assert all(n in (None, m) for n, m in zip(z.type.shape, found.shape, strict=True))
    return found
