"""Training throughput and call overhead, beside the same steps written by hand in NumPy.

    python benchmarks/training.py [--seconds S]

The networks are those of tasks.py. Both are measured in turn, in one process; the best of several
windows counts. Pin the process to one core.
"""

from __future__ import annotations

import argparse

import numpy as np
from tasks import BATCHES, LAYERS, N_EXAMPLES, RATE, Step, examples, parameters, rate, training_step

import symcomp
import symcomp.tensor as T


def numpy_step(sizes: tuple[int, ...], batch: int) -> Step:
    """Return the same step written with NumPy, in place where that is easy."""
    images, labels = examples()
    weights, rows = parameters(sizes), np.arange(batch)
    pairs = list(zip(weights[::2], weights[1::2], strict=True))

    def step(k: int) -> None:
        k %= N_EXAMPLES // batch
        values, target = [images[k * batch : (k + 1) * batch]], labels[k * batch : (k + 1) * batch]
        for j, (w, b) in enumerate(pairs):
            z = values[-1] @ w
            z += b
            values.append(np.tanh(z, z) if j + 1 < len(pairs) else z)
        delta = values[-1]
        delta -= delta.max(1, keepdims=True)
        np.exp(delta, delta)
        delta /= delta.sum(1, keepdims=True)
        delta[rows, target] -= 1
        delta *= np.float32(1 / batch)
        for j in range(len(pairs) - 1, -1, -1):
            w, b = pairs[j]
            gw, gb = values[j].T @ delta, delta.sum(0)
            if j:
                delta = (delta @ w.T) * (1 - values[j] ** 2)
            w -= RATE * gw
            b -= RATE * gb

    return step


def compare(ours: Step, theirs: Step, seconds: float, repeats: int = 4) -> tuple[float, float]:
    """Return the best rates of two steps, measured in turn."""
    best = [0.0, 0.0]
    for step in (ours, theirs):
        step(0)
    for _ in range(repeats):
        for i, step in enumerate((ours, theirs)):
            best[i] = max(best[i], rate(step, seconds / repeats))
    return best[0], best[1]


def main() -> None:
    """Print a table in Markdown."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--seconds", type=float, default=2.0, help="per task and runner")
    options = parser.parse_args()
    print("| task | symcomp (examples/s) | NumPy by hand | ratio |\n|---|---|---|---|")
    for name, sizes in LAYERS.items():
        for batch in BATCHES:
            ours, theirs = compare(
                training_step(sizes, batch), numpy_step(sizes, batch), options.seconds
            )
            row = f"{ours * batch:,.0f} | {theirs * batch:,.0f} | {ours / theirs:.2f}"
            print(f"| {name}, batch {batch} | {row} |", flush=True)
    x, ten = T.dvector("x"), np.ones(10)
    f = symcomp.function([x], x + 1)
    ours, theirs = compare(lambda k: f(ten), lambda k: ten + 1, options.seconds)
    print(f"| x + 1 on ten doubles | {ours:,.0f} calls/s | {theirs:,.0f} | {ours / theirs:.2f} |")


if __name__ == "__main__":
    main()
