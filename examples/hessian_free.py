"""Train a deep autoencoder of digits without forming the Hessian: curvature from products alone.

    python examples/hessian_free.py [--steps N] [--seconds S] [--output DIR]

J. Martens, "Deep learning via Hessian-free optimization" (ICML 2010): each step minimizes the
quadratic model of the cost, with the Gauss-Newton matrix, by conjugate gradients. The products are
``Lop`` of ``Rop``, and the conjugate gradients are a ``scan`` that ends early, so that a step of
training is one call. Gradient descent with momentum starts from the same weights, and gets the same
time. The network codes scikit-learn's images of 8 x 8 pixels in six numbers. Writes
``hessian_free.png``: the costs against time, and digits before and after.
"""

from __future__ import annotations

import argparse
import pathlib
import time
from typing import Any

import matplotlib
import numpy as np
from matplotlib import pyplot as plt
from sklearn.datasets import load_digits

import symcomp
import symcomp.tensor as T
from symcomp.ifelse import ifelse

matplotlib.use("Agg")  # pictures go to files; no screen is needed

SIZES = (64, 48, 24, 6, 24, 48, 64)
IMAGES = 1000
PRODUCTS = 40  # at most, in a step


def start(seed: int) -> np.ndarray:
    """Draw weights and zero biases of all layers, as one vector."""
    rng = np.random.default_rng(seed)
    parts = []
    for m, n in zip(SIZES[:-1], SIZES[1:], strict=True):
        parts += [rng.normal(size=m * n) * np.sqrt(2 / (m + n)), np.zeros(n)]
    return np.concatenate(parts).astype("float32")


def logits(theta: Any, x: Any) -> Any:
    """Return the logits of the pixels that the network gives back for the images x."""
    at = 0
    for i, (m, n) in enumerate(zip(SIZES[:-1], SIZES[1:], strict=True)):
        weights = theta[at : at + m * n].reshape((m, n))
        x = T.dot(x, weights) + theta[at + m * n : at + (m + 1) * n]
        at += (m + 1) * n
        # The code and the output are linear.
        x = x if i in (len(SIZES) // 2 - 1, len(SIZES) - 2) else T.tanh(x)
    return x


def mean_cost(z: Any, x: Any) -> Any:
    """Return the mean cross-entropy of each image, in nats."""
    return (T.softplus(z) - x * z).sum(axis=1).mean()


def conjugate_gradients(product: Any, b: Any, first: Any, tolerance: float) -> tuple[Any, Any]:
    """Solve A x = b from ``first``, where ``product(x)`` is A x; return x and the steps taken."""

    def step(x: Any, residual: Any, direction: Any, square: Any) -> Any:
        curved = product(direction)
        length = square / T.dot(direction, curved)
        left = residual - length * curved
        new_square = T.dot(left, left)
        state = [x + length * direction, left, left + new_square / square * direction, new_square]
        return state, symcomp.until(new_square < tolerance**2 * T.dot(b, b))

    residual = b - product(first)
    state = [first, residual, residual, T.dot(residual, residual)]
    (xs, _, _, _), _ = symcomp.scan(step, outputs_info=state, n_steps=PRODUCTS)
    return xs[-1], xs.shape[0]


def compile_hessian_free(theta: Any, x: np.ndarray) -> Any:
    """Compile a step: it returns the cost before it and the number of products."""
    damping = symcomp.shared(np.float32(1.0), name="damping")
    before = symcomp.shared(np.zeros_like(theta.get_value()), name="last move")
    z = logits(theta, x)
    cost = mean_cost(z, x)
    slope = symcomp.grad(cost, theta)
    # The Hessian of the cost with respect to the logits is diagonal.
    p = T.sigmoid(z)
    weight = symcomp.gradient.disconnected_grad(p * (1 - p) / len(x))

    def curvature(v: Any) -> Any:
        return symcomp.Lop(z, theta, weight * symcomp.Rop(z, theta, v))

    move, products = conjugate_gradients(
        lambda v: curvature(v) + damping * v, -slope, np.float32(0.9) * before, 1e-2
    )
    moved = symcomp.clone(cost, replace={theta: theta + move})
    promised = -(T.dot(slope, move) + T.dot(move, curvature(move)) / 2)
    ratio = (cost - moved) / promised
    # Levenberg's and Marquardt's rule, and no step at all where the cost would rise.
    factor = T.switch(ratio > 0.75, 2 / 3, T.switch(ratio < 0.25, 3 / 2, 1.0))
    updates = [
        (theta, ifelse(ratio > 0, theta + move, theta)),
        (before, ifelse(ratio > 0, move, T.zeros_like(move))),
        (damping, T.cast(damping * factor, "float32")),
    ]
    return symcomp.function([], [cost, products], updates=updates)


def compile_momentum(theta: Any, x: np.ndarray, rate: float, momentum: float) -> Any:
    """Compile a step of gradient descent with Nesterov's momentum."""
    velocity = symcomp.shared(np.zeros_like(theta.get_value()), name="velocity")
    cost = mean_cost(logits(theta, x), x)
    new = np.float32(momentum) * velocity - np.float32(rate) * symcomp.grad(cost, theta)
    ahead = theta + np.float32(momentum) * new - np.float32(rate) * symcomp.grad(cost, theta)
    return symcomp.function([], [cost], updates=[(velocity, new), (theta, ahead)])


def train(step: Any, steps: int, seconds: float) -> tuple[np.ndarray, np.ndarray]:
    """Step until either limit; return the times and costs."""
    started, times, costs = time.perf_counter(), [], []
    while len(costs) < steps and time.perf_counter() - started < seconds:
        costs.append(float(step()[0]))
        times.append(time.perf_counter() - started)
    return np.array(times), np.array(costs)


def main(arguments: list[str] | None = None) -> dict[str, float]:
    """Train both ways, draw; return the last costs."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--steps", type=int, default=100000)
    parser.add_argument("--seconds", type=float, default=15.0)
    parser.add_argument("--output", type=pathlib.Path, default=pathlib.Path())
    options = parser.parse_args(arguments)
    x = (load_digits().data[:IMAGES] / 16).astype("float32")
    curves, seen = {}, {}
    for name in ("Hessian-free", "momentum"):
        theta = symcomp.shared(start(0), name="theta")
        if name == "momentum":
            step = compile_momentum(theta, x, rate=0.02, momentum=0.95)
        else:
            step = compile_hessian_free(theta, x)
        curves[name] = train(step, options.steps, options.seconds)
        seen[name] = T.sigmoid(logits(theta, x[:10])).eval()
        print(f"{name}: {len(curves[name][1])} steps, cost {curves[name][1][-1]:.3f} nats")
    draw(curves, x[:10], seen, options.output / "hessian_free.png")
    return {name: float(costs[-1]) for name, (_, costs) in curves.items()}


def draw(
    curves: dict[str, Any], x: np.ndarray, seen: dict[str, np.ndarray], file: pathlib.Path
) -> None:
    """Draw the costs, and the digits as both networks give them back."""
    file.parent.mkdir(parents=True, exist_ok=True)
    figure, axes = plt.subplots(1, 2, figsize=(10, 3.4), layout="constrained", width_ratios=[2, 3])
    for name, (times, costs) in curves.items():
        axes[0].plot(times, costs, label=name)
    lowest = min(costs.min() for _, costs in curves.values())
    axes[0].set(title="Cost (nats per image)", xlabel="seconds", ylim=(lowest - 1, 2 * lowest))
    axes[0].legend()
    axes[0].grid(alpha=0.3)
    rows = [x, *seen.values()]
    framed = [np.pad(row.reshape(-1, 8, 8), [(0, 0), (1, 1), (1, 1)]) for row in rows]
    axes[1].imshow(np.concatenate([np.hstack(row) for row in framed]), cmap="gray_r")
    axes[1].set_yticks([4.5, 14.5, 24.5], ["digits", *seen])
    axes[1].set_xticks([])
    axes[1].set_title("Digits, and what six numbers keep of them")
    figure.savefig(file, dpi=110)
    plt.close(figure)
    print(f"wrote {file}")


if __name__ == "__main__":
    main()
