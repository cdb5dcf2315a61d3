"""Learn the kernel of a Gaussian process by the gradient of the evidence.

    python examples/gaussian_process.py [--trained N] [--output DIR]

The data are 442 patients with diabetes (B. Efron and others, "Least angle regression", Annals of
Statistics 32, 2004; from scikit-learn): ten measurements, and how far the disease went in a year.
The kernel is a squared exponential with a length for each measurement, a linear part, and noise.
The logarithm of the evidence and its gradient go through a Cholesky factor, and SciPy's L-BFGS
maximizes it. A second, small example shows the band of a process on one axis. Writes
``gaussian_process.png``.
"""

from __future__ import annotations

import argparse
import pathlib
import time
from typing import Any

import matplotlib
import numpy as np
from matplotlib import pyplot as plt
from scipy.optimize import minimize
from sklearn.datasets import load_diabetes

import symcomp
import symcomp.tensor as T
from symcomp.tensor.linalg import cholesky, solve_triangular

matplotlib.use("Agg")  # pictures go to files; no screen is needed


def kernel(x: Any, y: Any, theta: Any, axes: int) -> Any:
    """Return the covariances of the values at the rows of x and y.

    ``theta`` has logarithms: of a length for each axis, and of the sizes of both parts.
    """
    u, v = x / T.exp(theta[:axes]), y / T.exp(theta[:axes])
    squares = (u**2).sum(axis=1)[:, None] + (v**2).sum(axis=1)[None] - 2 * T.dot(u, v.T)
    curved = T.exp(2 * theta[axes] - T.maximum(squares, 0) / 2)
    return curved + T.exp(2 * theta[axes + 1]) * T.dot(x, y.T)


class GaussianProcess:
    """A process on a number of axes: functions that learn its parameters and predict."""

    def __init__(self, axes: int) -> None:
        self.axes = axes
        x, new, y, theta = T.dmatrix("x"), T.dmatrix("new"), T.dvector("y"), T.dvector("theta")
        noise = T.exp(2 * theta[axes + 2])
        L = cholesky(kernel(x, x, theta, axes) + noise * T.eye(x.shape[0]))
        white = solve_triangular(L, y, lower=True)
        evidence = -T.log(L.diagonal()).sum() - T.dot(white, white) / 2
        evidence -= x.shape[0] * np.log(2 * np.pi) / 2
        self.cost = symcomp.function([theta, x, y], [-evidence, -symcomp.grad(evidence, theta)])
        between = solve_triangular(L, kernel(x, new, theta, axes), lower=True)
        variance = kernel(new, new, theta, axes).diagonal() - (between**2).sum(axis=0)
        self.predict = symcomp.function(
            [theta, x, y, new], [T.dot(between.T, white), T.sqrt(variance + noise)]
        )

    def learn(self, x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, float]:
        """Maximize the evidence; return the parameters and the logarithm of the evidence."""
        start = np.concatenate([np.zeros(self.axes), [0.0, -1.0, -0.5]])
        bounds = [(-3.0, 5.0)] * self.axes + [(-7.0, 3.0)] * 3
        found = minimize(self.cost, start, (x, y), "L-BFGS-B", jac=True, bounds=bounds)
        return found.x, -float(found.fun)


def diabetes(trained: int) -> dict[str, Any]:
    """Learn from some of the patients and predict the others, beside a linear fit."""
    data = load_diabetes(scaled=False)
    order = np.random.default_rng(0).permutation(len(data.target))
    x, y = data.data[order], data.target[order]
    x = (x - x[:trained].mean(axis=0)) / x[:trained].std(axis=0)
    y = (y - y[:trained].mean()) / y[:trained].std()
    process = GaussianProcess(x.shape[1])
    started = time.perf_counter()
    theta, evidence = process.learn(x[:trained], y[:trained])
    seconds = time.perf_counter() - started
    mean, deviation = process.predict(theta, x[:trained], y[:trained], x[trained:])
    linear = np.linalg.lstsq(x[:trained], y[:trained], rcond=None)[0]
    errors = {
        "process": float(np.sqrt(((mean - y[trained:]) ** 2).mean())),
        "linear": float(np.sqrt(((x[trained:] @ linear - y[trained:]) ** 2).mean())),
    }
    inside = float((np.abs(mean - y[trained:]) < 2 * deviation).mean())
    print(f"diabetes: log evidence {evidence:.1f} in {seconds:.1f} s")
    print(f"error: process {errors['process']:.3f}, linear {errors['linear']:.3f} deviations")
    print(f"within two deviations: {100 * inside:.0f} %")
    relevance = dict(zip(data.feature_names, np.exp(-theta[: x.shape[1]]).tolist(), strict=True))
    return {"errors": errors, "inside": inside, "relevance": relevance}


def one_axis() -> tuple[np.ndarray, ...]:
    """Draw forty noisy values of a curve with a gap, learn, and predict on a grid."""
    rng = np.random.default_rng(1)
    x = np.sort(np.concatenate([rng.uniform(-3, -0.5, 20), rng.uniform(1, 3, 20)]))[:, None]
    y = np.sin(3 * x[:, 0]) + 0.3 * x[:, 0] + 0.15 * rng.normal(size=len(x))
    process = GaussianProcess(1)
    grid = np.linspace(-3.5, 3.5, 200)[:, None]
    mean, deviation = process.predict(process.learn(x, y)[0], x, y, grid)
    return x[:, 0], y, grid[:, 0], mean, deviation


def main(arguments: list[str] | None = None) -> dict[str, Any]:
    """Learn both processes, draw, and return the errors on the patients left out."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--trained", type=int, default=342, help="patients to learn from")
    parser.add_argument("--output", type=pathlib.Path, default=pathlib.Path())
    options = parser.parse_args(arguments)
    curve = one_axis()
    found = diabetes(options.trained)
    draw(curve, found["relevance"], options.output / "gaussian_process.png")
    return found


def draw(curve: tuple[np.ndarray, ...], relevance: dict[str, float], file: pathlib.Path) -> None:
    """Draw the band of the small example, and the relevance of the measurements."""
    file.parent.mkdir(parents=True, exist_ok=True)
    x, y, grid, mean, deviation = curve
    figure, axes = plt.subplots(1, 2, figsize=(10, 3.6), layout="constrained", width_ratios=[3, 2])
    axes[0].fill_between(
        grid, mean - 2 * deviation, mean + 2 * deviation, alpha=0.25, linewidth=0,
        label="two deviations",
    )  # fmt: skip
    axes[0].plot(grid, mean, label="mean")
    axes[0].plot(x, y, "k.", label="data")
    axes[0].set(title="A process on one axis", ylim=(-3, 3.5))
    axes[0].legend(loc="upper left")
    names = sorted(relevance, key=relevance.__getitem__)
    axes[1].barh(names, [relevance[name] for name in names])
    axes[1].set(title="Diabetes: relevance of measurements", xlabel="1 / length")
    figure.savefig(file, dpi=110)
    plt.close(figure)
    print(f"wrote {file}")


if __name__ == "__main__":
    main()
