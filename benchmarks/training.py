"""Training throughput and call overhead, beside the same steps written by hand in NumPy.

    python benchmarks/training.py [--seconds S]

The tasks are those of the Theano paper (Bergstra et al., 2010): a 10-class classifier of a
784-dimensional input, trained by plain gradient descent in float32, as logistic regression (lr),
with one hidden layer of 500 (mlp1) and with three of 1000 tanh units (mlp3). Both are measured in
turn, in one process; the best of several windows counts. Pin the process to one core.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np

import symcomp
import symcomp.tensor as T

LAYERS = {"lr": (784, 10), "mlp1": (784, 500, 10), "mlp3": (784, 1000, 1000, 1000, 10)}
BATCHES = (1, 10, 60)
N_EXAMPLES = 6000
RATE = np.float32(0.01)

Step = Callable[[int], object]


def examples() -> tuple[np.ndarray, np.ndarray]:
    """Inputs (6000, 784) float32 and labels (6000,) int32."""
    rng = np.random.default_rng(0)
    x = rng.random((N_EXAMPLES, 784), dtype=np.float32)
    return x, rng.integers(0, 10, N_EXAMPLES).astype(np.int32)


def parameters(sizes: tuple[int, ...]) -> list[np.ndarray]:
    """Weights and biases in turn, float32."""
    rng = np.random.default_rng(1)
    result = []
    for n, m in zip(sizes, sizes[1:], strict=False):
        result += [rng.normal(0, n**-0.5, (n, m)).astype(np.float32), np.zeros(m, np.float32)]
    return result


def symcomp_step(sizes: tuple[int, ...], batch: int) -> Step:
    """One compiled function: loss, gradients and updates."""
    images, labels = (symcomp.shared(a, borrow=True) for a in examples())
    weights = [symcomp.shared(a) for a in parameters(sizes)]
    index = T.lscalar("index")
    part = slice(index * batch, (index + 1) * batch)
    h = images[part]
    for k in range(0, len(weights), 2):
        h = T.dot(h, weights[k]) + weights[k + 1]
        if k + 2 < len(weights):
            h = T.tanh(h)
    log_p = T.nnet.log_softmax(h)
    loss = -log_p[T.arange(batch), labels[part]].mean()
    updates = [(w, w - RATE * g) for w, g in zip(weights, symcomp.grad(loss, weights), strict=True)]
    f = symcomp.function([index], loss, updates=updates, trust_input=True)
    numbers = [np.array(k) for k in range(N_EXAMPLES // batch)]
    return lambda k: f(numbers[k % len(numbers)])


def numpy_step(sizes: tuple[int, ...], batch: int) -> Step:
    """The same by hand, in place where that is easy."""
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


def rate(step: Step, seconds: float) -> float:
    """Calls per second in one window."""
    count, started = 0, time.perf_counter()
    while True:
        for _ in range(8):
            step(count)
            count += 1
        elapsed = time.perf_counter() - started
        if elapsed > seconds:
            return count / elapsed


def compare(ours: Step, theirs: Step, seconds: float, repeats: int = 4) -> tuple[float, float]:
    """The best rates of two steps, measured in turn."""
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
                symcomp_step(sizes, batch), numpy_step(sizes, batch), options.seconds
            )
            row = f"{ours * batch:,.0f} | {theirs * batch:,.0f} | {ours / theirs:.2f}"
            print(f"| {name}, batch {batch} | {row} |", flush=True)
    x, ten = T.dvector("x"), np.ones(10)
    f = symcomp.function([x], x + 1)
    ours, theirs = compare(lambda k: f(ten), lambda k: ten + 1, options.seconds)
    print(f"| x + 1 on ten doubles | {ours:,.0f} calls/s | {theirs:,.0f} | {ours / theirs:.2f} |")


if __name__ == "__main__":
    main()
