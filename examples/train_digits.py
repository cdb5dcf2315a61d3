"""Train on real handwritten digits: logistic regression, then a network with one hidden layer and
momentum.

    python examples/train_digits.py [--output DIR] [--epochs N] [--seed N]

The 1797 images of 8 x 8 pixels are scikit-learn's (UCI ML hand-written digits). Minibatches are
cut symbolically out of
shared data through ``givens``; training stops early, by the loss on a validation split. Writes two
pictures:
``digits_learning.png`` (learning curves) and ``digits_weights.png`` (weights of the first layer).
"""

from __future__ import annotations

import argparse
import pathlib
import time
from dataclasses import dataclass

import matplotlib
import numpy as np
from matplotlib import pyplot as plt
from sklearn.datasets import load_digits
from tqdm import tqdm

import symcomp
import symcomp.tensor as T

matplotlib.use("Agg")  # pictures go to files; no screen is needed

BATCH = 20
HIDDEN = 128


@dataclass
class Split:
    """Shared images and labels of one part of the data."""

    images: symcomp.SharedVariable
    labels: symcomp.SharedVariable
    size: int


def load(seed: int) -> tuple[Split, Split, Split]:
    """Training, validation and test data, pixels scaled to [0, 1]."""
    images, labels = load_digits(return_X_y=True)
    order = np.random.default_rng(seed).permutation(len(images))
    images, labels = images[order].astype(symcomp.config.floatX) / 16, labels[order]
    splits = []
    for part in (slice(0, 1200), slice(1200, 1500), slice(1500, None)):
        x, y = images[part], labels[part]
        splits.append(Split(symcomp.shared(x, "images"), symcomp.shared(y, "labels"), len(x)))
    return splits[0], splits[1], splits[2]


def layer(x, n_in: int, n_out: int, rng: np.random.Generator, name: str):
    """Build an affine layer: its output and its parameters."""
    limit = np.sqrt(6 / (n_in + n_out))
    weights = rng.uniform(-limit, limit, (n_in, n_out)).astype(symcomp.config.floatX)
    w = symcomp.shared(weights, f"{name}_w")
    b = symcomp.shared(np.zeros(n_out, symcomp.config.floatX), f"{name}_b")
    return T.dot(x, w) + b, [w, b]


def momentum_updates(cost, parameters, rate: float, momentum: float):
    """Gradient descent with momentum: v <- momentum v - rate dcost/dp, p <- p + v."""
    updates = []
    for p, gradient in zip(parameters, symcomp.grad(cost, parameters), strict=True):
        velocity = symcomp.shared(np.zeros_like(p.get_value()), f"{p.name}_velocity")
        step = momentum * velocity - rate * gradient
        updates += [(velocity, step), (p, p + step)]
    return updates


class Model:
    """Compiled functions that train and test a classifier, and the history of its errors."""

    def __init__(self, name, logits, x, y, parameters, data, rate, momentum=0.0, decay=0.0) -> None:
        train, validation, test = data
        self.name, self.parameters, self.n_batches = name, parameters, train.size // BATCH
        index = T.lscalar("index")
        log_p = T.nnet.log_softmax(logits)
        loss = -log_p[T.arange(y.shape[0]), y].mean()
        penalty = sum((p**2).sum() for p in parameters if p.ndim == 2)
        error = T.neq(T.argmax(logits, axis=1), y).mean()
        part = slice(index * BATCH, (index + 1) * BATCH)
        self.step = symcomp.function(
            [index],
            loss,
            updates=momentum_updates(loss + decay * penalty, parameters, rate, momentum),
            givens={x: train.images[part], y: train.labels[part]},
            name=f"{name} step",
        )
        self.validate, self.test = (
            symcomp.function([], [loss, error], givens={x: d.images, y: d.labels})
            for d in (validation, test)
        )
        self.losses: list[float] = []
        self.errors: list[float] = []

    def train(self, epochs: int, patience: int, rng: np.random.Generator) -> None:
        """Train until the validation loss is not better for ``patience`` epochs; keep the best."""
        best, best_epoch, best_values = np.inf, 0, []
        bar = tqdm(range(epochs), desc=self.name, unit="epoch", mininterval=0.5)
        for epoch in bar:
            self.losses.append(
                float(np.mean([self.step(i) for i in rng.permutation(self.n_batches)]))
            )
            loss, error = (float(v) for v in self.validate())
            self.errors.append(error)
            if loss < best:
                best, best_epoch = loss, epoch
                best_values = [p.get_value() for p in self.parameters]
            bar.set_postfix(loss=f"{self.losses[-1]:.4f}", validation=f"{100 * error:.2f}%")
            if epoch - best_epoch >= patience:
                break
        bar.close()
        for p, value in zip(self.parameters, best_values, strict=True):
            p.set_value(value)


def logistic_regression(data, rng) -> Model:
    """Softmax of an affine function of the pixels."""
    x, y = T.matrix("x"), T.lvector("y")
    logits, parameters = layer(x, 64, 10, rng, "logistic")
    return Model("logistic regression", logits, x, y, parameters, data, rate=0.2)


def network(data, rng) -> Model:
    """One hidden layer of tanh units, trained with momentum."""
    x, y = T.matrix("x"), T.lvector("y")
    hidden, first = layer(x, 64, HIDDEN, rng, "hidden")
    logits, second = layer(T.tanh(hidden), HIDDEN, 10, rng, "output")
    return Model("network", logits, x, y, first + second, data, rate=0.03, momentum=0.9, decay=1e-4)


def draw(models: list[Model], folder: pathlib.Path) -> list[pathlib.Path]:
    """Learning curves of all models, and the first-layer weights of the last, as PNG."""
    folder.mkdir(parents=True, exist_ok=True)
    figure, axes = plt.subplots(1, 2, figsize=(10, 4), constrained_layout=True)
    for model in models:
        axes[0].semilogy(range(1, len(model.losses) + 1), model.losses, label=model.name)
        axes[1].plot(
            range(1, len(model.errors) + 1), [100 * e for e in model.errors], label=model.name
        )
    axes[0].set(xlabel="epoch", ylabel="training loss (nats)", title="Training loss")
    axes[1].set(xlabel="epoch", ylabel="error (%)", title="Validation error", ylim=(0, 12))
    for ax in axes:
        ax.legend()
        ax.grid(alpha=0.3)
    curves = folder / "digits_learning.png"
    figure.savefig(curves, dpi=120)
    weights = models[-1].parameters[0].get_value()
    figure, axes = plt.subplots(8, 16, figsize=(10, 5.4), constrained_layout=True)
    limit = np.abs(weights).max()
    for ax, column in zip(axes.flat, weights.T, strict=True):
        ax.imshow(column.reshape(8, 8), cmap="RdBu_r", vmin=-limit, vmax=limit)
        ax.axis("off")
    figure.suptitle(f"First-layer weights of the {models[-1].name}")
    pictures = folder / "digits_weights.png"
    figure.savefig(pictures, dpi=120)
    return [curves, pictures]


def main(arguments: list[str] | None = None) -> dict[str, float]:
    """Train both models; print and return their test errors."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument(
        "--output", type=pathlib.Path, default=pathlib.Path(__file__).parent / "output"
    )
    parser.add_argument("--epochs", type=int, default=150)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    started = time.perf_counter()
    rng = np.random.default_rng(options.seed)
    data = load(options.seed)
    models = [logistic_regression(data, rng), network(data, rng)]
    test_errors = {}
    for model in models:
        model.train(options.epochs, patience=20, rng=rng)
        test_errors[model.name] = float(model.test()[1])
    for name, error in test_errors.items():
        print(f"{name}: test error {100 * error:.2f} %")
    for path in draw(models, options.output):
        print(f"wrote {path}")
    print(f"{time.perf_counter() - started:.1f} s")
    return test_errors


if __name__ == "__main__":
    main()
