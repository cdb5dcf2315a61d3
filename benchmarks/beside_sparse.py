"""Tasks of `beside.py`: sparse matrices, with few entries and with many."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from beside_registry import Work, add, call, numbers

import symcomp
import symcomp.tensor as T
from symcomp import sparse

# Rows, of which each has eight entries.
SIZES = {"small": 60, "large": 30_000}


def _matrix(n: int, seed: int = 0) -> Any:
    rng = np.random.default_rng(seed)
    places = (np.repeat(np.arange(n), 8), rng.integers(0, n, 8 * n))
    return sp.csr_array((rng.normal(size=8 * n), places), shape=(n, n))


def _of_one(build: Callable[[Any], Any], n: int) -> Work:
    x = sparse.csr_array("x")
    return call([x], build(x), _matrix(n))


def _of_two(build: Callable[[Any, Any], Any], n: int) -> Work:
    x, y = sparse.csr_array("x"), sparse.csr_array("y")
    return call([x, y], build(x, y), _matrix(n), _matrix(n, 1))


def _at_a_pattern(n: int) -> Work:
    x, y, p = (sparse.csr_array(name) for name in "xyp")
    product = (x @ y) * p
    return call([x, y, p], product, _matrix(n), _matrix(n, 1), _matrix(n, 2))


def _triplets(entries_of_row: int, n: int) -> Work:
    data, rows, columns = T.dvector(), T.ivector(), T.ivector()
    rng = np.random.default_rng(3)
    high = 8 * n // entries_of_row
    places = [rng.integers(0, k, 8 * n).astype("int32") for k in (high, 8 * n)]
    made = sparse.from_triplets(data, rows, columns, (high, 8 * n))
    return call([data, rows, columns], made, numbers(8 * n), *places)


def _with_dense(n: int) -> Work:
    x, w = sparse.csr_array("x"), T.dmatrix("w")
    z = sparse.dot(x, w)
    return call([x, w], symcomp.grad((z**2).sum(), [x, w]), _matrix(n), numbers(n, 8))


def _captured(n: int) -> Work:
    """Use an argument with each of 20 rows."""
    x, rows = sparse.csr_array("x"), T.dmatrix("rows")
    step = lambda row: sparse.sp_sum(x * row, axis=1)  # noqa: E731
    sums = symcomp.scan(step, rows, return_updates=False)
    return call([x, rows], sums, _matrix(n), numbers(20, n))


def _add() -> None:
    ones: dict[str, Callable[[Any], Any]] = {
        "blocks": lambda x: sparse.tobsr(x, (3, 2)),
        "transposed": lambda x: x.T.tocsr(),
    }
    twos: dict[str, Callable[[Any, Any], Any]] = {
        "product": lambda x, y: x @ y,
        "sum": lambda x, y: x + y,
    }
    for size, n in SIZES.items():
        for name, of_one in ones.items():
            add(f"sparse/{name}_{size}", partial(_of_one, of_one, n))
        for name, of_two in twos.items():
            add(f"sparse/{name}_{size}", partial(_of_two, of_two, n))
        add(f"sparse/product_at_pattern_{size}", partial(_at_a_pattern, n))
        add(f"sparse/triplets_{size}", partial(_triplets, 8, n))
        add(f"sparse/triplets_of_long_rows_{size}", partial(_triplets, 200, n))
        add(f"sparse/gradients_with_dense_{size}", partial(_with_dense, n))
        add(f"sparse/captured_{size}", partial(_captured, n), per=20)


_add()
