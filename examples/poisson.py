"""Find what a plate conducts from temperatures on it: Poisson's equation and its derivative.

    python examples/poisson.py [--side N] [--steps N] [--output DIR]

On a grid of N x N cells the flux between two neighbours is the difference of their temperatures
times the harmonic mean of their conductivities, and the border is kept at 0:
``-div(k grad u) = f``. The example solves it by ``spsolve`` (SuperLU) and by ``cg`` (conjugate
gradients), compares both with the exact solution for k = 1, and then recovers an unknown k from u:
gradient descent (Adam) on log k, through the solver. Writes ``poisson.png``.
"""

from __future__ import annotations

import argparse
import pathlib
import time
from dataclasses import dataclass
from typing import Any

import matplotlib
import numpy as np
from matplotlib import pyplot as plt

import symcomp
import symcomp.tensor as T
from symcomp import sparse

matplotlib.use("Agg")  # pictures go to files; no screen is needed


@dataclass
class Grid:
    """Cells of a unit square, numbered by rows."""

    side: int

    def neighbours(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the pairs of cells that are neighbours: the left or upper ones, and the others."""
        number = np.arange(self.side**2).reshape(self.side, self.side)
        one = np.concatenate([number[:, :-1].ravel(), number[:-1].ravel()])
        other = np.concatenate([number[:, 1:].ravel(), number[1:].ravel()])
        return one, other

    def border(self) -> np.ndarray:
        """Return how many sides of each cell lie on the border."""
        found = np.zeros((self.side, self.side))
        for part in (np.s_[0], np.s_[-1], np.s_[:, 0], np.s_[:, -1]):
            found[part] += 1
        return found.ravel()

    def centres(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the coordinates of the cells."""
        line = (np.arange(self.side) + 0.5) / self.side
        x, y = np.meshgrid(line, line)
        return x.ravel(), y.ravel()

    def matrix(self, k: Any) -> Any:
        """Return the sparse matrix of ``u -> -div(k grad u)`` for conductivities k, a vector."""
        one, other = self.neighbours()
        flux = 2 * k[one] * k[other] / (k[one] + k[other])
        diagonal = T.inc_subtensor((2 * k * self.border())[one], flux)
        diagonal = T.inc_subtensor(diagonal[other], flux)
        cells = np.arange(self.side**2)
        data = T.concatenate([diagonal, -flux, -flux]) * self.side**2
        rows = np.concatenate([cells, one, other])
        columns = np.concatenate([cells, other, one])
        return sparse.from_triplets(data, rows, columns, (len(cells), len(cells)))


def errors_of_solvers(grid: Grid) -> dict[str, float]:
    """Return the largest errors of both solvers for k = 1 and u = sin(pi x) sin(2 pi y)."""
    k, f = T.dvectors("k", "f")
    A = grid.matrix(k)
    x, y = grid.centres()
    exact = np.sin(np.pi * x) * np.sin(2 * np.pi * y)
    found = {}
    cg, steps = sparse.cg(A, f, M="jacobi", return_steps=True)
    for name, outputs in {"spsolve": [sparse.spsolve(A, f)], "cg": [cg, steps]}.items():
        solve = symcomp.function([k, f], outputs)
        given = (np.ones(grid.side**2), 5 * np.pi**2 * exact)
        solve(*given)
        start = time.perf_counter()
        u, *more = solve(*given)
        seconds = time.perf_counter() - start
        found[name] = float(abs(u - exact).max())
        steps_taken = f", {more[0]} steps" if more else ""
        print(f"{name}: largest error {found[name]:.2e} in {seconds * 1e3:.1f} ms{steps_taken}")
    return found


def conductivity(grid: Grid) -> np.ndarray:
    """Make a plate that conducts three times better in a disc, and half as well in a corner."""
    x, y = grid.centres()
    k = np.ones(grid.side**2)
    k[(x - 0.35) ** 2 + (y - 0.4) ** 2 < 0.04] = 3.0
    k[(x > 0.6) & (y > 0.6)] = 0.5
    return k


def recover(grid: Grid, steps: int) -> tuple[np.ndarray, list[float]]:
    """Recover the conductivity from the temperatures of four sources of heat."""
    x, y = grid.centres()
    corners = [(0.25, 0.25), (0.75, 0.25), (0.25, 0.75), (0.75, 0.75)]
    sources = np.stack(
        [100 * np.exp(-((x - a) ** 2 + (y - b) ** 2) / 0.02) for a, b in corners], axis=1
    )
    k, f = T.dvector("k"), T.dmatrix("f")
    truth = symcomp.function([k, f], sparse.spsolve(grid.matrix(k), f))(conductivity(grid), sources)
    log_k = symcomp.shared(np.zeros(grid.side**2), name="log k")
    u = sparse.spsolve(grid.matrix(T.exp(log_k)), sources)
    one, other = grid.neighbours()
    # Differences of neighbours are held small, as the data tell little of single cells.
    rough = T.sqrt((log_k[one] - log_k[other]) ** 2 + 1e-4).mean()
    misfit = ((u - truth) ** 2).mean() / (truth**2).mean()
    cost = misfit + 1e-4 * rough
    step = symcomp.function([], misfit, updates=sparse.adam(cost, [log_k], 0.03))
    misfits = [float(step()) for _ in range(steps)]
    return np.exp(log_k.get_value()), misfits


def main(arguments: list[str] | None = None) -> dict[str, Any]:
    """Solve, recover, draw; return the errors and the misfits."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--side", type=int, default=40)
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--output", type=pathlib.Path, default=pathlib.Path())
    options = parser.parse_args(arguments)
    grid = Grid(options.side)
    errors = errors_of_solvers(grid)
    truth = conductivity(grid)
    found, misfits = recover(grid, options.steps)
    distance = float(abs(np.log(found / truth)).mean())
    before = float(abs(np.log(truth)).mean())
    print(f"misfit {misfits[0]:.2e} -> {misfits[-1]:.2e} in {options.steps} steps")
    print(f"mean distance of log k: {before:.3f} -> {distance:.3f}")
    draw(grid, truth, found, misfits, options.output / "poisson.png")
    return {"errors": errors, "misfits": misfits, "distance": distance, "before": before}


def draw(
    grid: Grid, truth: np.ndarray, found: np.ndarray, misfits: list[float], path: pathlib.Path
) -> None:
    """Draw both conductivities and the misfit."""
    figure, axes = plt.subplots(1, 3, figsize=(11, 3.3), layout="constrained")
    square = (grid.side, grid.side)
    for ax, k, title in ((axes[0], truth, "conductivity"), (axes[1], found, "as recovered")):
        image = ax.imshow(k.reshape(square), vmin=0.3, vmax=3.2, origin="lower")
        ax.set_title(title)
        ax.set_xticks([])
        ax.set_yticks([])
    figure.colorbar(image, ax=axes[:2].tolist())
    axes[2].semilogy(misfits)
    axes[2].set_xlabel("step")
    axes[2].set_title("misfit of the temperatures")
    figure.savefig(path, dpi=120)
    plt.close(figure)
    print(f"wrote {path}")


if __name__ == "__main__":
    main()
