"""Random numbers: calls that draw by PCG64 and Philox, beside NumPy's generator, and a step of a
loop that draws.

    python benchmarks/draws.py

Pin the process to one core. Seconds are those of the process, the best of several windows.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

import symcomp
import symcomp.tensor as T

STEPS = 10000


def best_time(call: Callable[[], object], seconds: float = 1.0) -> float:
    """Seconds of one call."""
    started = time.process_time()
    call()
    count = max(1, int(0.02 / max(time.process_time() - started, 1e-7)))
    best, end = float("inf"), time.perf_counter() + seconds
    while time.perf_counter() < end:
        started = time.process_time()
        for _ in range(count):
            call()
        best = min(best, (time.process_time() - started) / count)
    return best


def main() -> None:
    """Print both tables."""
    stream, rng = T.random.RandomStream(seed=1), np.random.default_rng(1)
    counters = T.random.RandomStream(seed=1, generator="philox")
    print("numbers   distribution            PCG64         Philox       NumPy")
    for n in (1, 100, 10000, 1000000):
        for name in ("normal", "uniform", "exponential", "bernoulli"):
            drawn = [getattr(by, name)(size=n) for by in (stream, counters)]
            f, g = (symcomp.function([], z) for z in drawn)
            theirs = {
                "bernoulli": lambda n=n: (rng.random(n) < 0.5).astype("int64"),
            }.get(name, lambda n=n, name=name: getattr(rng, name)(size=n))
            times = "".join(f"{1e6 * best_time(call):12.2f} us" for call in (f, g, theirs))
            print(f"{n:8d}  {name:12s}  {times}")
    print("\nx <- 0.9 x + normal: nanoseconds a step")
    for n in (1, 10, 100):
        walk, updates = symcomp.scan(
            lambda x: 0.9 * x + stream.normal(size=x.shape), outputs_info=T.zeros(n), n_steps=STEPS
        )
        f = symcomp.function([], walk[-1], updates=updates)
        print(f"{n:8d}  {1e9 * best_time(f) / STEPS:10.1f}")


if __name__ == "__main__":
    main()
