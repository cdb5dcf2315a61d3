"""Fit the parameters of a differential equation to counts of hares and lynxes, 1900 to 1920.

    python examples/ode_parameters.py [--steps N] [--output DIR]

The counts are thousands of pelts of the Hudson's Bay Company (C. G. Hewitt, *The Conservation of
the Wild Life of Canada*, 1921). Lotka's and Volterra's equations ``h' = a h - b h l`` and
``l' = c h l - d l`` are integrated by Runge and Kutta's method of fourth order in a ``scan``.
``Rop`` pushes one direction for each parameter through the loop, which gives the Jacobian of the
trajectory that SciPy's ``least_squares`` asks for. Writes ``ode_parameters.png``: the fit, and an
interval of it from the curvature.
"""

from __future__ import annotations

import argparse
import pathlib
from typing import Any

import matplotlib
import numpy as np
from matplotlib import pyplot as plt
from scipy.optimize import least_squares

import symcomp
import symcomp.tensor as T

matplotlib.use("Agg")  # pictures go to files; no screen is needed

YEARS = np.arange(1900, 1921)
HARES = [30.0, 47.2, 70.2, 77.4, 36.3, 20.6, 18.1, 21.4, 22.0, 25.4, 27.1, 40.3, 57.0, 76.6, 52.3,
         19.5, 11.2, 7.6, 14.6, 16.2, 24.7]  # fmt: skip
LYNXES = [4.0, 6.1, 9.8, 35.2, 59.4, 41.7, 19.0, 13.0, 8.3, 9.1, 7.4, 8.0, 12.3, 19.5, 45.7, 51.1,
          29.7, 15.8, 9.7, 10.1, 8.6]  # fmt: skip
COUNTS = np.log(np.array([HARES, LYNXES]).T)
NAMES = ("a", "b", "c", "d", "hares in 1900", "lynxes in 1900")
START = np.log([0.5, 0.02, 0.02, 0.8, 30.0, 4.0])


def slopes(state: Any, rates: Any) -> Any:
    """Return the derivatives of the logarithms of both counts with respect to time."""
    hares, lynxes = T.exp(state[0]), T.exp(state[1])
    return T.stack([rates[0] - rates[1] * lynxes, rates[2] * hares - rates[3]])


def trajectory(log_parameters: Any, steps: int) -> Any:
    """Return the logarithms of both counts at the beginning of each year, (21, 2)."""
    rates, first = T.exp(log_parameters[:4]), log_parameters[4:]
    dt = 1.0 / steps

    def step(state: Any, rates: Any) -> Any:
        k1 = slopes(state, rates)
        k2 = slopes(state + dt / 2 * k1, rates)
        k3 = slopes(state + dt / 2 * k2, rates)
        k4 = slopes(state + dt * k3, rates)
        return state + dt / 6 * (k1 + 2 * k2 + 2 * k3 + k4)

    states, _ = symcomp.scan(
        step, outputs_info=first, non_sequences=rates, n_steps=steps * (len(YEARS) - 1)
    )
    return T.concatenate([first[None], states[steps - 1 :: steps]])


def compile_model(steps: int) -> tuple[Any, Any, Any]:
    """Compile the residuals, their Jacobian, and the trajectory."""
    p = T.dvector("log parameters")
    path = trajectory(p, steps)
    residuals = (path - COUNTS).flatten()
    columns = [symcomp.Rop(residuals, p, np.eye(len(NAMES))[i]) for i in range(len(NAMES))]
    return (
        symcomp.function([p], residuals),
        symcomp.function([p], T.stack(columns, axis=1)),
        symcomp.function([p], path),
    )


def main(arguments: list[str] | None = None) -> dict[str, Any]:
    """Fit, draw, and return the parameters and the spread of the residuals."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--steps", type=int, default=50, help="of the integration, each year")
    parser.add_argument("--output", type=pathlib.Path, default=pathlib.Path())
    options = parser.parse_args(arguments)
    residuals, jacobian, path = compile_model(options.steps)
    # A residual far from the others counts little: the early years are not fitted yet.
    fit = least_squares(residuals, START, jacobian, loss="soft_l1", max_nfev=200)
    spread = float(np.sqrt((fit.fun**2).sum() / (len(fit.fun) - len(NAMES))))
    J = jacobian(fit.x)
    covariance = spread**2 * np.linalg.inv(J.T @ J)
    parameters = dict(zip(NAMES, np.exp(fit.x).tolist(), strict=True))
    for name, value, error in zip(NAMES, np.exp(fit.x), covariance.diagonal() ** 0.5, strict=True):
        print(f"{name:>15}: {value:7.3f}, within a factor of {np.exp(2 * error):.2f}")
    print(f"spread of the logarithms: {spread:.3f}, {fit.nfev} trajectories, {fit.njev} Jacobians")
    band = np.sqrt(np.einsum("ij,jk,ik->i", J, covariance, J)).reshape(-1, 2)
    draw(path(fit.x), band, options.output / "ode_parameters.png")
    return {"parameters": parameters, "spread": spread}


def draw(path: np.ndarray, band: np.ndarray, file: pathlib.Path) -> None:
    """Draw counts, fit and the interval of two standard errors."""
    file.parent.mkdir(parents=True, exist_ok=True)
    figure, axes = plt.subplots(1, 2, figsize=(10, 3.6), layout="constrained", width_ratios=[2, 1])
    for i, (name, colour) in enumerate((("hares", "tab:blue"), ("lynxes", "tab:orange"))):
        low, high = np.exp(path[:, i] - 2 * band[:, i]), np.exp(path[:, i] + 2 * band[:, i])
        axes[0].fill_between(YEARS, low, high, color=colour, alpha=0.25, linewidth=0)
        axes[0].plot(YEARS, np.exp(path[:, i]), color=colour, label=name)
        axes[0].plot(YEARS, np.exp(COUNTS[:, i]), "o", color=colour)
    axes[0].set(title="Pelts, and the fit", ylabel="thousands", xticks=YEARS[::5])
    axes[0].legend()
    axes[1].plot(*np.exp(path.T), color="tab:green")
    axes[1].plot(*np.exp(COUNTS.T), "o", color="tab:gray", markersize=4)
    axes[1].set(title="The cycle", xlabel="hares", ylabel="lynxes")
    figure.savefig(file, dpi=110)
    plt.close(figure)
    print(f"wrote {file}")


if __name__ == "__main__":
    main()
