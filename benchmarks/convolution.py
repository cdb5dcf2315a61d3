"""A training step of LeNet-5 on batches of 60 images, beside PyTorch, eager, where there is one.

    python benchmarks/convolution.py [--peers PYTHON] [--seconds S]

Two convolutions (20 and 50 kernels of 5 x 5) with the largest of 2 x 2 and tanh after each, 500
tanh units, softmax; float32, on one core. PYTHON is an interpreter that has torch; it runs
``peers/convolution_torch.py``. Seconds are those of the process, not those of the clock, so that
other processes count little.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import symcomp
import symcomp.tensor as T

# Time optimized code only.
symcomp.config.early_code = False

BATCH = 60
RATE = np.float32(0.1)
SHAPES = ((20, 1, 5, 5), (20,), (50, 20, 5, 5), (50,), (800, 500), (500,), (500, 10), (10,))


def trainer() -> Callable[[], object]:
    """Return a function that does one training step."""
    rng = np.random.default_rng(0)
    params = [symcomp.shared((0.1 * rng.normal(size=s)).astype("f4")) for s in SHAPES]
    w1, b1, w2, b2, w3, b3, w4, b4 = params
    x, y = T.ftensor4("x"), T.lvector("y")
    h = x
    for w, b in ((w1, b1), (w2, b2)):
        pooled = T.signal.pool.pool_2d(T.nnet.conv2d(h, w), (2, 2), ignore_border=True)
        h = T.tanh(pooled + b.dimshuffle("x", 0, "x", "x"))
    h = T.tanh(T.dot(h.flatten(2), w3) + b3)
    log_p = T.nnet.log_softmax(T.dot(h, w4) + b4)
    cost = -log_p[T.arange(BATCH), y].mean()
    updates = [(p, p - RATE * g) for p, g in zip(params, symcomp.grad(cost, params), strict=True)]
    f = symcomp.function([x, y], cost, updates=updates)
    images = rng.normal(size=(BATCH, 1, 28, 28)).astype("f4")
    labels = rng.integers(10, size=BATCH)
    return lambda: f(images, labels)


def best_time(step: Callable[[], object], seconds: float) -> float:
    """Seconds of one step, in the best of several windows."""
    for _ in range(3):
        step()
    best, end = float("inf"), time.perf_counter() + seconds
    while time.perf_counter() < end:
        started = time.process_time()
        for _ in range(5):
            step()
        best = min(best, (time.process_time() - started) / 5)
    return best


def main() -> None:
    """Measure what the command line says."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--peers", default="", help="a Python that has torch")
    parser.add_argument("--seconds", type=float, default=5.0)
    options = parser.parse_args()
    ours = best_time(trainer(), options.seconds)
    print(f"symcomp  {1e3 * ours:7.2f} ms a step")
    if options.peers:
        peer = Path(__file__).parent / "peers" / "convolution_torch.py"
        command = [options.peers, str(peer), str(options.seconds)]
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        theirs = float(subprocess.check_output(command, env=environment, text=True))
        print(f"torch    {1e3 * theirs:7.2f} ms a step: {theirs / ours:.2f} times as long")


if __name__ == "__main__":
    main()
