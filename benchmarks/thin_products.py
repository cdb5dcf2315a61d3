"""Products of matrices of which one has few rows, beside NumPy's: from how many on BLAS is faster.

    python benchmarks/thin_products.py [--dtype float32] [--scipy]

For n rows: A (n, k) times W (k, m), B (n, m) times the transpose of W, that of A times B. Printed
are GFLOP/s of symcomp, and how many times as fast as NumPy it is. ``--scipy`` has symcomp call the
BLAS of SciPy where it would call NumPy's. Pin it to one core, and let BLAS have one thread
(OMP_NUM_THREADS=1).
"""

from __future__ import annotations

import argparse

import numpy as np
from tasks import best_rate

import symcomp
import symcomp.tensor as T
from symcomp.cvm import machine

SIZES = ((1000, 1000), (784, 500), (300, 300))
ROWS = (2, 4, 8, 10, 12, 16, 24, 32, 48, 64, 100)


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--scipy", action="store_true", help="call SciPy's BLAS")
    given = parser.parse_args()
    if given.scipy:
        setattr(machine, "library_of_numpy", lambda: None)  # noqa: B010 - mypy knows no such name
    dtype = given.dtype
    rng = np.random.default_rng(0)
    x, w = T.matrix("x", dtype), T.matrix("w", dtype)
    forms = {"A W": x.dot(w), "B W^T": x.dot(w.T), "A^T B": x.T.dot(w)}
    ours = {k: symcomp.function([x, w], z, trust_input=True) for k, z in forms.items()}
    theirs = {
        "A W": lambda a, b: a @ b,
        "B W^T": lambda a, b: a @ b.T,
        "A^T B": lambda a, b: a.T @ b,
    }
    print(f"{'k x m':>12} {'n':>4} " + "".join(f"{form:>16}" for form in forms))
    for k, m in SIZES:
        for n in ROWS:
            a, b, c = (rng.normal(size=s).astype(dtype) for s in ((n, k), (n, m), (k, m)))
            values = {"A W": (a, c), "B W^T": (b, c), "A^T B": (a, b)}
            row = []
            for form, values_of in values.items():
                mine, other = (
                    1 / best_rate(lambda _, f=f, arrays=values_of: f(*arrays), 0.05)
                    for f in (ours[form], theirs[form])
                )
                row.append(f"{2e-9 * n * k * m / mine:8.1f} ({other / mine:4.2f})")
            print(f"{k:>6} x {m:<4}{n:>4} " + "".join(f"{text:>16}" for text in row), flush=True)


if __name__ == "__main__":
    main()
