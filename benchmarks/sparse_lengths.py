"""Calls with sparse matrices whose number of stored entries changes beside calls of one plan.

    python benchmarks/sparse_lengths.py [--rounds N]

Microseconds of a call, the median of all: with one matrix, and with matrices of which each has
another number of entries, so that every call is planned anew. Small matrices show what planning
costs; large ones show what of it is left beside the work.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from sparse_data import normal, with_short_indices

import symcomp
import symcomp.tensor as T
from symcomp import sparse

SIZES = ((30, 90), (1000, 10_000), (20_000, 200_000))


def matrices(n: int, entries: int, count: int) -> list[Any]:
    """Return CSR matrices, each with one entry more than the one before."""
    rng = np.random.default_rng(0)
    found = []
    for k in range(count):
        places = np.sort(rng.choice(n * n, entries + k, replace=False))
        rows = np.concatenate([[0], np.cumsum(np.bincount(places // n, minlength=n))])
        parts = rng.normal(size=len(places)), places % n, rows
        found.append(with_short_indices(sp.csr_array(parts, shape=(n, n))))
    return found


def median(f: Any, values: Sequence[Any], dense: Any, rounds: int) -> float:
    """Return the median time of a call in microseconds; the values come in turns."""
    times = []
    for k in range(rounds):
        value = values[k % len(values)]
        start = time.perf_counter()
        f(value, dense)
        times.append(time.perf_counter() - start)
    return float(np.median(times)) * 1e6


def main() -> None:
    """Measure a product, and a step with its gradients, for each size."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--rounds", type=int, default=400)
    options = parser.parse_args()
    x, w = sparse.csr_array("x"), T.dvector("w")
    product = sparse.dot(x, w)
    cost = T.log1p(T.exp(-product)).sum()
    tasks = {"product": product, "cost, gradients": [cost, *symcomp.grad(cost, [w, x])]}
    print(f"{'task':16}{'rows':>8}{'entries':>10}{'one plan':>10}{'changing':>10}")
    for name, outputs in tasks.items():
        for n, entries in SIZES:
            f = symcomp.function([x, w], outputs)
            values, dense = matrices(n, entries, 100), normal(n)
            one = median(f, values[:1], dense, options.rounds)
            changing = median(f, values, dense, options.rounds)
            print(f"{name:16}{n:8}{entries:10}{one:10.1f}{changing:10.1f}", flush=True)


if __name__ == "__main__":
    main()
