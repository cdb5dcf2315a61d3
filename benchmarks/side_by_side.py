"""Functions with independent calls, with one thread and with several.

    python benchmarks/side_by_side.py [--threads N]

Milliseconds of a call with one and with N threads (all processors), the best of several in turn,
and whether all bits of the results are equal. The last line tells how much faster N processes
finish than one after the other, the most that this machine allows at the moment.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import symcomp
import symcomp.tensor as T
from symcomp.config import config

ROUNDS = 25
RNG = np.random.default_rng(1)


def tower(x: Any, weights: list[Any]) -> Any:
    """Return four layers of equal widths."""
    for w in weights:
        x = T.tanh(T.dot(x, w))
    return x


def two_towers() -> tuple[list[Any], Any, list[Any]]:
    """Return the gradient of two towers of four layers of 300 x 300, of 300 examples."""
    x, y = T.dmatrices("xy")
    weights = [
        [symcomp.shared(RNG.normal(size=(300, 300)) / 17, f"{name}{i}") for i in range(4)]
        for name in "ab"
    ]
    cost = T.sqr(tower(x, weights[0]) - tower(y, weights[1])).mean()
    values = RNG.normal(size=(2, 300, 300))
    return [x, y], symcomp.grad(cost, [*weights[0], *weights[1]]), list(values)


def four_spectra() -> tuple[list[Any], Any, list[Any]]:
    """Return the eigenvalues and eigenvectors of four matrices of 500 x 500, each on its own."""
    matrices = [T.dmatrix(f"s{i}") for i in range(4)]
    values = RNG.normal(size=(4, 500, 500))
    return matrices, sum((T.nlinalg.eigh(s) for s in matrices), []), list(values + values.mT)


def four_systems() -> tuple[list[Any], Any, list[Any]]:
    """Return the solutions of four systems of 500 equations, each on its own."""
    matrices = [T.dmatrix(f"a{i}") for i in range(4)]
    values = RNG.normal(size=(4, 500, 500))
    return matrices, [T.slinalg.solve(a, a.T) for a in matrices], list(values)


def stack_of_spectra() -> tuple[list[Any], Any, list[Any]]:
    """Return the eigenvalues and eigenvectors of a stack of four matrices of 500 x 500."""
    x = T.dtensor3("x")
    values = RNG.normal(size=(4, 500, 500))
    return [x], T.nlinalg.eigh(x), [values + values.mT]


def stack_of_factors() -> tuple[list[Any], Any, list[Any]]:
    """Return the Cholesky decompositions of a stack of four matrices of 500 x 500."""
    x = T.dtensor3("x")
    values = RNG.normal(size=(4, 500, 500))
    return [x], T.slinalg.cholesky(x), [values @ values.mT + 500 * np.eye(500)]


def both_directions() -> tuple[list[Any], Any, list[Any]]:
    """Return the last states of a recurrent network that reads a sequence from both ends."""
    x = T.dtensor3("x")
    ends = []
    for name in "ab":
        w = symcomp.shared(RNG.normal(size=(200, 200)) / 14, name)
        states, _ = symcomp.scan(
            lambda row, h, w: T.tanh(row + T.dot(h, w)),
            sequences=x,
            outputs_info=T.zeros((20, 200)),
            non_sequences=w,
            go_backwards=name == "b",
        )
        ends.append(states[-1])
    return [x], ends, [RNG.normal(size=(100, 20, 200))]


TASKS: dict[str, Callable[[], tuple[list[Any], Any, list[Any]]]] = {
    "gradient of two towers": two_towers,
    "four eigh of 500 x 500": four_spectra,
    "four solve of 500 x 500": four_systems,
    "eigh of a stack of four": stack_of_spectra,
    "cholesky of a stack of four": stack_of_factors,
    "a sequence in both directions": both_directions,
}


def once(call: Callable[..., Any], values: list[Any]) -> float:
    """Return the milliseconds of one call."""
    start = time.perf_counter()
    call(*values)
    return (time.perf_counter() - start) * 1e3


def measure(name: str, threads: int) -> None:
    """Print the line of one task."""
    inputs, outputs, values = TASKS[name]()
    functions = []
    for n in (1, threads):
        with config.change_flags(openmp=n > 1, openmp_threads=n, blas_threads=1):
            functions.append(symcomp.function(inputs, outputs))
    for f in functions:
        f(*values)
    one, several = ([np.asarray(z).tobytes() for z in f(*values)] for f in functions)
    times = [[once(f, values) for f in functions] for _ in range(ROUNDS)]
    best = [min(t) for t in zip(*times, strict=True)]
    same = "equal" if one == several else "DIFFERENT"
    print(f"{name:30} {best[0]:10.2f} {best[1]:12.2f} {best[0] / best[1]:8.2f}  {same}", flush=True)


def most_possible(threads: int) -> float:
    """Return how much faster several processes of pure arithmetic finish side by side."""
    work = "x = 0\nfor i in range(6_000_000): x += i * i"
    command = [sys.executable, "-S", "-c", work]

    def seconds(at_once: int) -> float:
        start = time.perf_counter()
        for process in [subprocess.Popen(command) for _ in range(at_once)]:
            process.wait()
        return time.perf_counter() - start

    return threads * min(seconds(1) for _ in range(3)) / min(seconds(threads) for _ in range(3))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    threads = parser.parse_args().threads
    print(f"{'milliseconds':30} {'one thread':>10} {f'{threads} threads':>12}    times  bits")
    for name in TASKS:
        measure(name, threads)
    print(f"processes side by side, the most possible now: {most_possible(threads):.2f} times")


if __name__ == "__main__":
    main()
