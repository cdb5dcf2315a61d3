"""Loops on few elements, by the calls of their plans and by straight code.

    python benchmarks/straight.py

Microseconds of a call, the best of several in turn, and whether all bits of the results are equal.
Pin the process to one core, with OMP_NUM_THREADS=1.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

import symcomp
import symcomp.tensor as T
from symcomp.codegen.compiler import early
from symcomp.config import config

ROUNDS, SECONDS = 9, 0.1
RNG = np.random.default_rng(1)
Case = tuple[list[Any], list[Any], list[Any]]


def local_level() -> Case:
    """Return density and gradient of a Kalman filter of level and slope, of 100 observations."""
    move, seen = np.array([[1.0, 1.0], [0.0, 1.0]]), np.array([1.0, 0.0])
    x = T.dvector("x")

    def step(now: Any, a: Any, p: Any, total: Any, q: Any, h: Any) -> Any:
        error, variance = now - a[0], p[0, 0] + h**2
        gain = T.dot(T.dot(move, p), seen) / variance
        new = T.dot(T.dot(move, p), move.T) - T.outer(gain, gain) * variance + T.diag(q**2)
        logp = T.log(2 * np.pi * variance) + error**2 / variance
        return T.dot(move, a) + gain * error, new, total - 0.5 * logp

    start = [T.zeros(2), T.eye(2) * 10.0, T.constant(0.0)]
    y = T.constant(RNG.normal(size=100).cumsum())
    states, _ = symcomp.scan(step, y, start, [T.exp(x[:2]), T.exp(x[2])])
    cost = states[2][-1] - (x**2).sum()
    return [x], [cost, symcomp.grad(cost, x)], [np.array([0.1, 0.2, 0.3])]


def filter_of_four() -> Case:
    """Return a Kalman filter of four states and two observed, of 100 steps."""
    y, a, c = T.dmatrix(), T.dmatrix(), T.dmatrix()

    def step(seen: Any, mean: Any, cov: Any) -> Any:
        mean, cov = T.dot(a, mean), T.dot(T.dot(a, cov), a.T) + T.eye(4)
        s = T.dot(T.dot(c, cov), c.T) + T.eye(2)
        gain = T.slinalg.solve(s, T.dot(c, cov)).T
        mean = mean + T.dot(gain, seen - T.dot(c, mean))
        return mean, cov - T.dot(T.dot(gain, c), cov)

    (means, _), _ = symcomp.scan(step, y, [T.zeros(4), T.eye(4)])
    sizes = (100, 2), (4, 4), (2, 4)
    return [y, a, c], [means], [RNG.normal(size=size) / 2 for size in sizes]


def autoregression() -> Case:
    """Return errors of an autoregression with moving average, and the gradient of their squares."""
    y, w = T.dvector(), T.dvector()

    def step(y2: Any, y1: Any, y0: Any, error: Any) -> Any:
        return y0 - w[0] * y1 - w[1] * y2 - w[2] * error

    errors, _ = symcomp.scan(step, {"input": y, "taps": [-2, -1, 0]}, T.constant(0.0))
    return (
        [y, w],
        [errors, symcomp.grad((errors**2).sum(), w)],
        [RNG.normal(size=200), np.ones(3) / 4],
    )


def recurrent_network(n: int) -> Case:
    """Return the states of a network of n units in 100 steps."""
    x, start, w = T.dmatrix(), T.dvector(), T.dmatrix()
    states, _ = symcomp.scan(lambda v, h: T.tanh(T.dot(h, w) + v), x, start)
    return [x, start, w], [states], [RNG.normal(size=size) / 3 for size in ((100, n), n, (n, n))]


CASES: dict[str, Callable[[], Case]] = {
    "Kalman filter of level and slope, 100 steps, density and gradient": local_level,
    "Kalman filter of 4 states, 2 observed, 100 steps": filter_of_four,
    "ARMA(2, 1), 200 observations, errors and gradient": autoregression,
    "recurrent network of 4 units, 100 steps": lambda: recurrent_network(4),
    "recurrent network of 10 units, 100 steps": lambda: recurrent_network(10),
}


def measure(f: Any, values: list[Any]) -> float:
    """Return the microseconds of a call, on average."""
    n, start = 0, time.process_time()
    while (spent := time.process_time() - start) < SECONDS:
        f(*values)
        n += 1
    return spent / n * 1e6


def main() -> None:
    """Print the table."""
    print(f"{'':68}{'calls':>9}{'straight':>10}")
    for name, make in CASES.items():
        inputs, outputs, values = make()
        functions = []
        for after in (0, 1):
            with config.change_flags(straight_after=after, early_code=False):
                functions.append(symcomp.function(inputs, outputs))
            for _ in range(3):
                functions[-1](*values)
        early.wait()
        pairs = zip(*(f(*values) for f in functions), strict=True)
        equal = all(np.array_equal(x, y) for x, y in pairs)
        times = [
            min(x)
            for x in zip(
                *([measure(f, values) for f in functions] for _ in range(ROUNDS)), strict=True
            )
        ]
        print(f"{name:68}{times[0]:9.1f}{times[1]:10.1f}  {'' if equal else 'other bits'}")


if __name__ == "__main__":
    main()
