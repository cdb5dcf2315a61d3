"""Add an op of your own: a smoother that solves a banded system, and a search for its stiffness.

    python examples/custom_op.py [--points N] [--output DIR]

Whittaker's smoother (E. T. Whittaker, "On a new method of graduation", 1922) takes values y to the
z that minimizes ``sum (y - z)^2 + stiffness sum (z'')^2``, with second differences for z''. The
minimum solves a system with five diagonals; SciPy does so in time proportional to the number of
points. The op has both derivatives, so that the gradient of the generalized cross-validation score
(G. Golub, M. Heath and G. Wahba, 1979) finds the stiffness. The data are drawn from a known curve.
Writes ``custom_op.png``.
"""

from __future__ import annotations

import argparse
import pathlib
from typing import Any

import matplotlib
import numpy as np
from matplotlib import pyplot as plt
from scipy.linalg import solveh_banded
from scipy.optimize import minimize

import symcomp
import symcomp.tensor as T
from symcomp.core.op import Op
from symcomp.core.record import record
from symcomp.errors import DTypeError, ShapeError

matplotlib.use("Agg")  # pictures go to files; no screen is needed


def second_differences(z: Any) -> Any:
    """Return D z, where (D z)_i = z_i - 2 z_{i+1} + z_{i+2}, of each column."""
    return z[:-2] - 2 * z[1:-1] + z[2:]


def penalty(z: Any) -> Any:
    """Return D' D z of each column."""
    d = T.pad(second_differences(z), [(2, 2), (0, 0)])
    return d[2:] - 2 * d[1:-1] + d[:-2]


def diagonals(n: int, stiffness: float) -> np.ndarray:
    """Return the diagonals of I + stiffness D' D from the main one down, as LAPACK has them."""
    bands = np.zeros((3, n))
    for i, weight in enumerate((1.0, -2.0, 1.0)):
        for j, other in enumerate((1.0, -2.0, 1.0)):
            if j >= i:
                bands[j - i, i : n - 2 + i] += stiffness * weight * other
    bands[0] += 1.0
    return bands


@record
class Smooth(Op):
    """z = (I + s D' D)^-1 y, for second differences D.   y: (n, m), s: () -> (n, m)"""

    def as_inputs(self, *inputs: Any) -> list[Any]:
        return [T.as_tensor_variable(x) for x in inputs]

    def output_types(self, y: Any, s: Any) -> list[Any]:
        if y.ndim != 2 or s.ndim != 0:
            raise ShapeError(f"smooth: y is {y.type}, s is {s.type}: not a matrix and a scalar")
        for name, x in (("y", y), ("s", s)):
            if x.dtype != "float64":
                raise DTypeError(f"smooth: {name} is {x.type}: cast it to float64")
        return [y.type]

    def perform(self, y: np.ndarray, s: np.ndarray) -> np.ndarray:
        if len(y) < 3:
            raise ShapeError(f"smooth: y has {len(y)} rows; second differences need 3")
        return solveh_banded(diagonals(len(y), float(s)), y, lower=True, check_finite=False)

    def infer_shape(self, node: Any, shapes: Any) -> list[Any]:
        return [shapes[0]]

    def pullback(self, inputs: Any, outputs: Any, output_grads: Any) -> list[Any]:
        (_, s), (z,), (g,) = inputs, outputs, output_grads
        gy = self(g, s)  # the matrix is symmetric
        return [gy, -(gy * penalty(z)).sum()]

    def pushforward(self, inputs: Any, outputs: Any, tangents: Any) -> list[Any]:
        (_, s), (z,), (dy, ds) = inputs, outputs, tangents
        right = 0.0 if dy is None else dy
        if ds is not None:
            right = right - ds * penalty(z)
        return [self(right, s)]


def smooth(y: Any, stiffness: Any) -> Any:
    """Return the smoothed columns of the matrix ``y``."""
    return Smooth()(y, stiffness)


def score(y: Any, log_stiffness: Any, n: int) -> Any:
    """Return the score of generalized cross-validation, with the exact trace of the smoother."""
    stiffness = T.exp(log_stiffness)
    z = smooth(y, stiffness)
    freedom = T.diagonal(smooth(T.eye(n), stiffness)).sum()
    return n * ((y - z) ** 2).sum() / (n - freedom) ** 2


def main(arguments: list[str] | None = None) -> dict[str, float]:
    """Check the derivatives, find the stiffness, draw; return the errors of three stiffnesses."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--points", type=int, default=300)
    parser.add_argument("--output", type=pathlib.Path, default=pathlib.Path())
    options = parser.parse_args(arguments)
    rng = np.random.default_rng(0)
    symcomp.gradient.verify_grad(smooth, [rng.normal(size=(6, 2)), np.array(1.5)])
    n = options.points
    place = np.linspace(0, 1, n)
    truth = np.sin(2 * np.pi * place**2 * 3) + np.exp(-(((place - 0.3) / 0.05) ** 2))
    data = truth + 0.3 * rng.normal(size=n)
    y, s = T.dmatrix("y"), T.dscalar("log stiffness")
    cost = score(y, s, n)
    evaluate = symcomp.function([s, y], [cost, symcomp.grad(cost, s)])

    def objective(x: np.ndarray) -> tuple[float, np.ndarray]:
        value, slope = evaluate(float(x[0]), data[:, None])
        return float(value), np.array([slope])

    found = minimize(objective, [0.0], jac=True, method="BFGS")
    best = float(np.exp(found.x[0]))
    apply = symcomp.function([y, s], smooth(y, T.exp(s))[:, 0])
    tried = {"too soft": best / 300, "found": best, "too stiff": best * 300}
    curves = {name: apply(data[:, None], np.log(value)) for name, value in tried.items()}
    errors = {name: float(np.sqrt(((z - truth) ** 2).mean())) for name, z in curves.items()}
    print(f"stiffness {best:.1f} in {found.nfev} scores")
    for name, error in errors.items():
        print(f"{name:>9}: distance from the truth {error:.3f}")
    draw(place, data, truth, curves, options.output / "custom_op.png")
    return errors


def draw(
    place: np.ndarray,
    data: np.ndarray,
    truth: np.ndarray,
    curves: dict[str, np.ndarray],
    file: pathlib.Path,
) -> None:
    """Draw the data and one curve in each panel."""
    file.parent.mkdir(parents=True, exist_ok=True)
    figure, axes = plt.subplots(1, 3, figsize=(11, 3.2), layout="constrained", sharey=True)
    for ax, (name, z) in zip(axes, curves.items(), strict=True):
        ax.plot(place, data, ".", color="lightgray")
        ax.plot(place, truth, color="gray", linewidth=1, label="truth")
        ax.plot(place, z, color="tab:red", label="smoothed")
        ax.set_title(name)
    axes[0].legend(loc="lower left")
    figure.savefig(file, dpi=110)
    plt.close(figure)
    print(f"wrote {file}")


if __name__ == "__main__":
    main()
