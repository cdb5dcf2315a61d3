"""Train a layer that is defined by an equation, with the gradient of the implicit function theorem.

    python examples/implicit_layer.py [--epochs N] [--output DIR]

The layer gives the z with ``z = tanh(z W + x U + b)`` (S. Bai, J. Kolter and V. Koltun, "Deep
equilibrium models", NeurIPS 2019). A ``scan`` iterates until z stays where it is. The gradient does
not go back through the iterations: with g the gradient of the cost with respect to z, and J the
Jacobian of the right side with respect to z, it solves ``u = g + J' u`` by iteration and passes u
on, so that no state is kept. ``OpFromGraph`` puts this rule in the place of the derivative of the
loop. The example compares the values and times of both gradients, and trains a classifier of
scikit-learn's digits. Writes ``implicit_layer.png``.
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

matplotlib.use("Agg")  # pictures go to files; no screen is needed

UNITS, BATCH, TRAINED = 48, 100, 1200
MOST, TOLERANCE = 100, 1e-8


def state_map(z: Any, x: Any, W: Any, U: Any, b: Any) -> Any:
    """Return the right side of the equation of the layer."""
    return T.tanh(T.dot(z, W) + T.dot(x, U) + b)


def iterate(step: Any, first: Any) -> Any:
    """Repeat ``step`` from ``first`` until nothing moves by more than the tolerance."""

    def checked(z: Any) -> Any:
        new = step(z)
        return new, symcomp.until(abs(new - z).max() < TOLERANCE)

    zs, _ = symcomp.scan(checked, outputs_info=first, n_steps=MOST)
    return zs[-1]


def fixed_point(x: Any, W: Any, U: Any, b: Any) -> Any:
    """Return the z that the equation has, by iteration."""
    return iterate(lambda z: state_map(z, x, W, U, b), T.zeros((x.shape[0], UNITS)))


def implicit_gradients(inputs: Any, outputs: Any, output_grads: Any) -> list[Any]:
    """Return the gradients of the inputs, from the equation alone."""
    (z,), (g,) = outputs, output_grads
    # The derivatives are taken where the iteration has ended, not through it.
    z = symcomp.gradient.disconnected_grad(z)
    right = state_map(z, *inputs)
    u = iterate(lambda u: g + symcomp.Lop(right, z, u), g)
    return symcomp.Lop(right, list(inputs), u)


def layers() -> dict[str, Any]:
    """Make the layer with the implicit gradient, and with that of the iterations."""
    x, W, U, b = T.dmatrix("x"), T.dmatrix("W"), T.dmatrix("U"), T.dvector("b")
    op = symcomp.OpFromGraph(
        [x, W, U, b], [fixed_point(x, W, U, b)], lop_overrides=implicit_gradients
    )
    return {"implicit": op, "iterations": fixed_point}


def contracting(W: Any) -> Any:
    """Return W, scaled down to a spectral norm of 0.9 if it has a larger one.

    The slope of tanh is at most 1, so that the iteration then contracts.
    """
    return W * T.minimum(1.0, 0.9 / T.linalg.svd(W, compute_uv=False)[0])


def parameters(seed: int) -> list[Any]:
    """Draw the parameters of the layer, W contracting, and those of the classifier on top."""
    rng = np.random.default_rng(seed)
    W = rng.normal(size=(UNITS, UNITS))
    values = {
        "W": 0.9 * W / np.linalg.norm(W, 2),
        "U": rng.normal(size=(64, UNITS)) / 8,
        "b": np.zeros(UNITS),
        "V": rng.normal(size=(UNITS, 10)) / np.sqrt(UNITS),
        "c": np.zeros(10),
    }
    return [symcomp.shared(value, name=name) for name, value in values.items()]


def cost_of(layer: Any, weights: list[Any], x: Any, y: Any) -> tuple[Any, Any]:
    """Return the mean loss of a batch, and the rate of errors."""
    W, U, b, V, c = weights
    log_p = T.log_softmax(T.dot(layer(x, W, U, b), V) + c)
    return -log_p[T.arange(y.shape[0]), y].mean(), T.neq(T.argmax(log_p, axis=1), y).mean()


def compare(images: np.ndarray, labels: np.ndarray) -> dict[str, Any]:
    """Compute the gradient both ways: how far they differ, their time and peaks of memory."""
    weights, found = parameters(0), {}
    x, y = T.dmatrix("x"), T.lvector("y")
    values = {}
    for name, layer in layers().items():
        cost, _ = cost_of(layer, weights, x, y)
        f = symcomp.function([x, y], symcomp.grad(cost, weights[:3]))
        values[name] = f(images, labels)
        started = time.perf_counter()
        for _ in range(5):
            f(images, labels)
        seconds = (time.perf_counter() - started) / 5
        found[name] = seconds
        print(f"gradient by {name}: {seconds * 1e3:.1f} ms")
    far = max(abs(a - b).max() for a, b in zip(*values.values(), strict=True))
    largest = max(abs(a).max() for a in values["iterations"])
    print(f"largest difference: {far:.1e} of {largest:.1e}")
    return {"seconds": found, "difference": float(far / largest)}


def convergence(images: np.ndarray, weights: list[Any]) -> np.ndarray:
    """Return by how much each iteration moves z."""
    x = T.dmatrix("x")
    W, U, b = weights[:3]
    zs, _ = symcomp.scan(
        lambda z: state_map(z, x, W, U, b), outputs_info=T.zeros((x.shape[0], UNITS)), n_steps=MOST
    )
    return symcomp.function([x], abs(zs[1:] - zs[:-1]).max(axis=(1, 2)))(images)


def train(images: np.ndarray, labels: np.ndarray, epochs: int) -> tuple[list[Any], np.ndarray]:
    """Train by Adam; return the weights, and errors on both parts after each epoch."""
    weights = parameters(0)
    x, y = T.dmatrix("x"), T.lvector("y")
    cost, error = cost_of(layers()["implicit"], weights, x, y)
    updates, t = {}, symcomp.shared(0.0, name="t")
    for w, g in zip(weights, symcomp.grad(cost, weights), strict=True):
        m, v = (symcomp.shared(np.zeros_like(w.get_value())) for _ in range(2))
        new_m, new_v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g**2
        rate = 0.005 * T.sqrt(1 - 0.999 ** (t + 1)) / (1 - 0.9 ** (t + 1))
        updates |= {m: new_m, v: new_v, w: w - rate * new_m / (T.sqrt(new_v) + 1e-8), t: t + 1}
    updates[weights[0]] = contracting(updates[weights[0]])
    step = symcomp.function([x, y], cost, updates=updates)
    test = symcomp.function([x, y], error)
    rng, errors = np.random.default_rng(0), []
    for _ in range(epochs):
        order = rng.permutation(TRAINED)
        for i in range(0, TRAINED, BATCH):
            step(images[order[i : i + BATCH]], labels[order[i : i + BATCH]])
        parts = (slice(0, TRAINED), slice(TRAINED, None))
        errors.append([float(test(images[part], labels[part])) for part in parts])
    return weights, np.array(errors)


def main(arguments: list[str] | None = None) -> dict[str, Any]:
    """Compare the gradients, train, draw; return the difference and the last errors."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--output", type=pathlib.Path, default=pathlib.Path())
    options = parser.parse_args(arguments)
    images, labels = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(images))
    images, labels = images[order] / 16, labels[order]
    found = compare(images[:BATCH], labels[:BATCH])
    weights, errors = train(images, labels, options.epochs)
    print(f"test error {100 * errors[-1, 1]:.2f} % after {options.epochs} epochs")
    moves = {
        "before training": convergence(images[:BATCH], parameters(0)),
        "after training": convergence(images[:BATCH], weights),
    }
    draw(found["seconds"], errors, moves, options.output / "implicit_layer.png")
    return {"difference": found["difference"], "error": float(errors[-1, 1])}


def draw(
    seconds: dict[str, float], errors: np.ndarray, moves: dict[str, Any], file: pathlib.Path
) -> None:
    """Draw errors, convergence, and the times of both gradients."""
    file.parent.mkdir(parents=True, exist_ok=True)
    figure, axes = plt.subplots(1, 3, figsize=(11, 3.2), layout="constrained")
    axes[0].plot(100 * errors[:, 0], label="training")
    axes[0].plot(100 * errors[:, 1], label="test")
    axes[0].set(title="Error (%)", xlabel="epoch", ylim=(0, 12))
    axes[0].legend()
    for name, move in moves.items():
        axes[1].semilogy(move, label=name)
    axes[1].axhline(TOLERANCE, color="gray", linewidth=0.8)
    axes[1].set(title="How far an iteration moves z", xlabel="iteration")
    axes[1].legend()
    axes[2].bar(list(seconds), [1e3 * s for s in seconds.values()], color=["tab:blue", "tab:gray"])
    axes[2].set(title="Time of the gradient (ms)")
    figure.savefig(file, dpi=110)
    plt.close(figure)
    print(f"wrote {file}")


if __name__ == "__main__":
    main()
