"""Calls that repeat a plan beside calls that plan, by the number of instructions.

    python benchmarks/planning.py [--repeats N]

Each function is a chain of sorts, which are not fused, of a vector of 4 doubles. Microseconds of a
call: with a kept plan; planned each time (`most_plans=0`); with a length that was never seen; and
the first call of a function, the least of several functions. The last line is the time that
planning adds for each instruction.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np

import symcomp
import symcomp.tensor as T
from symcomp.config import config

LENGTHS = (1, 10, 100)


def chain(n: int, most_plans: int) -> symcomp.Function:
    """Make a function of ``n`` instructions."""
    x = T.dvector("x")
    y = x
    for _ in range(n):
        y = T.sort(y[::-1])
    with config.change_flags(most_plans=most_plans):
        return symcomp.function([x], y, mode=symcomp.Mode(optimizer="None"))


def least(run: Callable[[], object], repeats: int, each: int) -> float:
    """Return the least time of a run in microseconds."""
    found = []
    for _ in range(repeats):
        start = time.perf_counter()
        for _ in range(each):
            run()
        found.append((time.perf_counter() - start) / each)
    return 1e6 * min(found)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--repeats", type=int, default=20)
    repeats = parser.parse_args().repeats
    value = np.arange(4.0)
    print("instructions      kept   planned   new length   first call   (us)")
    for n in LENGTHS:
        kept, planned = chain(n, 48), chain(n, 0)
        changing = chain(n, 48)
        lengths = iter(range(4, 10**6))
        times = [
            least(lambda f=kept: f(value), repeats, 200),
            least(lambda f=planned: f(value), repeats, 200),
            least(lambda f=changing, k=lengths: f(np.zeros(next(k))), 5, 20),
        ]
        first = []
        for _ in range(5):
            f = chain(n, 48)
            start = time.perf_counter()
            f(value)
            first.append(1e6 * (time.perf_counter() - start))
        print(f"{n:12} {times[0]:9.2f} {times[1]:9.2f} {times[2]:12.2f} {min(first):12.2f}")
        each = (times[1] - times[0]) / len(kept.program.instructions)
    print(f"planning one instruction: {each:.3f} us")


if __name__ == "__main__":
    main()
