"""Microseconds per step of loops: h = tanh(x[t] + h W) in float32, forward and its gradient.

Run as ``python benchmarks/scan.py``, with OMP_NUM_THREADS=1 for figures of one core.
"""

import time

import numpy as np

import symcomp
import symcomp.tensor as T

STEPS = 1000
HIDDEN = (10, 100, 400)
SECONDS = 1.0


def best_time(function, *values):
    """The shortest of many runs, in seconds."""
    function(*values)
    best, started = np.inf, time.perf_counter()
    while time.perf_counter() - started < SECONDS:
        before = time.perf_counter()
        function(*values)
        best = min(best, time.perf_counter() - before)
    return best


def functions():
    """The last state of a recurrent network, and the gradient of its sum."""
    x, h, w = T.fmatrix("x"), T.fvector("h"), T.fmatrix("w")
    states = symcomp.scan(lambda v, s: T.tanh(v + T.dot(s, w)), x, h, return_updates=False)
    last = states[-1]
    yield "forward", symcomp.function([x, h, w], last)
    yield "gradient", symcomp.function([x, h, w], symcomp.grad(last.sum(), w))


def main():
    """Print a table."""
    rng = np.random.default_rng(0)
    for name, function in functions():
        for hidden in HIDDEN:
            x = rng.normal(size=(STEPS, hidden)).astype("float32")
            w = (rng.normal(size=(hidden, hidden)) / np.sqrt(hidden)).astype("float32")
            seconds = best_time(function, x, np.zeros(hidden, "float32"), w)
            print(f"{name:10} H = {hidden:3}  {1e6 * seconds / STEPS:7.3f} us per step")


if __name__ == "__main__":
    main()
