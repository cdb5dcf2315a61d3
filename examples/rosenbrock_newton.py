"""Minimize Rosenbrock's function by Newton-CG: SciPy iterates, symcomp derives.

    python examples/rosenbrock_newton.py [--dimensions N]

``scipy.optimize.minimize`` is given three compiled functions: the value, the gradient (from
``grad``) and the product of
the Hessian with a direction (``Rop`` of the gradient, which never forms the Hessian).
"""

from __future__ import annotations

import argparse

import numpy as np
from scipy.optimize import OptimizeResult, minimize

import symcomp
import symcomp.tensor as T


def minimize_rosenbrock(dimensions: int) -> OptimizeResult:
    """Find the minimum, from the usual starting point (-1.2, 1, -1.2, 1, ...)."""
    x, direction = T.dvectors("x", "direction")
    cost = (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()
    gradient = symcomp.grad(cost, x)
    value = symcomp.function([x], cost)
    slope = symcomp.function([x], gradient)
    curvature = symcomp.function([x, direction], symcomp.Rop(gradient, x, direction))
    start = np.resize([-1.2, 1.0], dimensions)
    return minimize(
        value, start, jac=slope, hessp=curvature, method="Newton-CG", options={"xtol": 1e-10}
    )


def main(arguments: list[str] | None = None) -> OptimizeResult:
    """Minimize, and print what it took."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--dimensions", type=int, default=50)
    options = parser.parse_args(arguments)
    result = minimize_rosenbrock(options.dimensions)
    print(f"minimum {result.fun:.3e} at x = {np.array2string(result.x[:4], precision=8)} ...")
    print(
        f"{result.nit} iterations, {result.nfev} values, {result.njev} gradients, {result.nhev} "
        "Hessian products"
    )
    print(f"largest distance from the known minimum (1, ..., 1): {np.abs(result.x - 1).max():.2e}")
    return result


if __name__ == "__main__":
    main()
