"""Peak memory and time of gradients through long loops, with and without checkpoints.

    python benchmarks/scan_memory.py [--steps N] [--hidden H] [--batch B]

Peaks are of all arrays allocated in a call, arguments apart. Run with OMP_NUM_THREADS=1 for
figures of one core.
"""

import argparse
import time
import tracemalloc

import numpy as np

import symcomp
import symcomp.tensor as T

# Time optimized code only.
symcomp.config.early_code = False

ROUNDS = 6
CHECKPOINTS = (None, "auto", "32 MB")


def elman(x, h, w, u):
    """h = tanh(x + h W)."""
    return T.tanh(x + T.dot(h, w))


def gru(x, h, w, u):
    """Apply a gated unit with shared matrices."""
    z = T.nnet.sigmoid(x + T.dot(h, w))
    return (1 - z) * T.tanh(x + T.dot(z * h, u)) + z * h


def integrator(x, h, w, u):
    """Do a step of Euler's method for h' = tanh(h W)."""
    return h + np.float32(0.01) * T.tanh(T.dot(h, w))


def gradient(step, checkpoint):
    """Return the function (x, h, w, u) -> the gradient of the sum of the last state in w."""
    x, h, w, u = T.ftensor3("x"), T.fmatrix("h"), T.fmatrix("w"), T.fmatrix("u")
    states, _ = symcomp.scan(step, x, h, [w, u], checkpoint=checkpoint)
    slope = symcomp.grad(states[-1].sum(), w)
    return symcomp.function([x, h, w, u], slope, on_unused_input="ignore")


def peak_of(function, values):
    """Return the most bytes allocated in a call."""
    tracemalloc.start()
    function(*values)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


def best_times(functions, values):
    """Return the shortest time of a call of each function, called in turns."""
    best = [np.inf] * len(functions)
    for _ in range(ROUNDS):
        for i, function in enumerate(functions):
            before = time.perf_counter()
            function(*values)
            best[i] = min(best[i], time.perf_counter() - before)
    return best


def main():
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=10_000)
    parser.add_argument("--hidden", type=int, default=100)
    parser.add_argument("--batch", type=int, default=8)
    chosen = parser.parse_args()
    rng = np.random.default_rng(0)
    n, h, b = chosen.steps, chosen.hidden, chosen.batch
    x = rng.normal(size=(n, b, h)).astype(np.float32)
    w, u = (rng.normal(0, h**-0.5, (h, h)).astype(np.float32) for _ in range(2))
    values = x, np.zeros((b, h), np.float32), w, u
    for step in (elman, gru, integrator):
        functions = [gradient(step, checkpoint) for checkpoint in CHECKPOINTS]
        times = best_times(functions, values)
        peaks = [peak_of(function, values) for function in functions]
        for checkpoint, seconds, peak in zip(CHECKPOINTS, times, peaks, strict=True):
            print(
                f"{step.__name__:10} checkpoint = {checkpoint!s:6}  {seconds:7.3f} s "
                f"(x {seconds / times[0]:4.2f})  {peak / 1e6:8.2f} MB "
                f"({100 * peak / peaks[0]:5.1f} %)"
            )


if __name__ == "__main__":
    main()
