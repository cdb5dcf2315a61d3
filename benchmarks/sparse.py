"""Sparse matrices beside SciPy: milliseconds a call.

Run as ``python benchmarks/sparse.py [--tasks WORDS]``, with OMP_NUM_THREADS=1 for one core or 2 for
two. Each task is done by a compiled function, and with SciPy and NumPy by hand; both are timed in
turns, and the best time of each is told, after a check that both give the same. Matrices have
100,000 x 100,000 elements, of which 1,000,000 are stored; texts are 20,000 rows of words out of
100,000, whose frequencies fall as Zipf's law says. PyTorch is timed at products, too, where it is
installed.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

import symcomp
import symcomp.tensor as T
from symcomp import sparse

N, ENTRIES = 100_000, 1_000_000
RNG = np.random.default_rng(0)
Call = Callable[[], Any]
Task = tuple[Call, Call, Call | None]


def matrix(seed: int = 0, n: int = N, m: int = N, entries: int = ENTRIES) -> Any:
    """A CSR matrix with normal entries at random places."""
    rng = np.random.default_rng(seed)
    places = rng.integers(0, n, entries), rng.integers(0, m, entries)
    found = sp.coo_array((rng.normal(size=entries), places), shape=(n, m)).tocsr()
    found.sum_duplicates()
    return found


def texts(rows: int = 20_000, words: int = 100_000, length: int = 80) -> Any:
    """Counts of words, each word as often as Zipf's law says."""
    drawn = np.minimum(RNG.zipf(1.2, (rows, length)), words) - 1
    places = np.repeat(np.arange(rows), length), drawn.ravel()
    found = sp.coo_array((np.ones(rows * length), places), shape=(rows, words)).tocsr()
    found.sum_duplicates()
    return found


def torch_matrix(value: Any) -> Any:
    """A sparse tensor of PyTorch, or None where it is not installed."""
    if importlib.util.find_spec("torch") is None:
        return None
    torch = importlib.import_module("torch")
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
    arrays = (torch.from_numpy(v) for v in (value.indptr, value.indices, value.data))
    return torch.sparse_csr_tensor(*arrays, size=value.shape)


# -- products and sums


def times_dense(columns: int, transposed: bool = False) -> Task:
    """S D, or S^T D without a transpose of S."""
    S, D = matrix(), RNG.normal(size=(N, columns))
    x, d = sparse.csr_array("x"), T.dmatrix("d")
    f = symcomp.function([x, d], sparse.dot(x.T if transposed else x, d), trust_input=True)
    of_torch = None if transposed else torch_matrix(S)
    by_torch = None
    if of_torch is not None:
        dense = importlib.import_module("torch").from_numpy(D)
        by_torch = lambda: of_torch @ dense  # noqa: E731
    return lambda: f(S, D), lambda: (S.T if transposed else S) @ D, by_torch


def two_matrices(function: Callable[..., Any]) -> Task:
    """A function of two sparse matrices."""
    S, Q = matrix(0), matrix(1)
    x, y = sparse.csr_array("x"), sparse.csr_array("y")
    f = symcomp.function([x, y], function(x, y), trust_input=True)
    return lambda: f(S, Q), lambda: function(S, Q), None


def gradient_of_product() -> Task:
    """The gradients of the sum of squares of S D with respect to both."""
    S, D = matrix(), RNG.normal(size=(N, 16))
    rows = np.repeat(np.arange(N), np.diff(S.indptr))
    x, d = sparse.csr_array("x"), T.dmatrix("d")
    f = symcomp.function([x, d], symcomp.grad((sparse.dot(x, d) ** 2).sum(), [x, d]))

    def by_hand() -> Any:
        g = 2 * (S @ D)
        entries = np.einsum("kl,kl->k", g[rows], D[S.indices])
        return sp.csr_array((entries, S.indices, S.indptr), shape=S.shape), S.T @ g

    return lambda: f(S, D), by_hand, None


# -- steps of training


def logistic_regression() -> Task:
    """A step on all texts."""
    X = texts()
    y = RNG.integers(0, 2, X.shape[0]).astype("float64")
    x, w = sparse.shared(X, name="x"), symcomp.shared(np.zeros(X.shape[1]), name="w")
    p = T.nnet.sigmoid(sparse.dot(x, w))
    cost = T.nnet.binary_crossentropy(p, y).mean()
    f = symcomp.function([], cost, updates=[(w, w - 0.0 * symcomp.grad(cost, w))])
    by_hand_w = np.zeros(X.shape[1])

    def by_hand() -> Any:
        z = X @ by_hand_w
        p = 1 / (1 + np.exp(-z))
        g = X.T @ ((p - y) / len(y))
        by_hand_w[...] = by_hand_w - 0.0 * g
        return -(y * np.log(p) + (1 - y) * np.log(1 - p)).mean()

    return f, by_hand, None


def factorization() -> Task:
    """A step of a factorization of rank 16 that is fitted at the stored places."""
    S = matrix()
    U, V = (RNG.normal(size=(N, 16)) / 4 for _ in range(2))
    s, u, v = sparse.shared(S), symcomp.shared(U), symcomp.shared(V)
    error = sparse.csm_data(sparse.sampled_dot(u, v, s)) - sparse.csm_data(s)
    cost = (error**2).mean()
    updates = [(p, p - 0.0 * g) for p, g in zip((u, v), symcomp.grad(cost, [u, v]), strict=True)]
    f = symcomp.function([], cost, updates=updates)
    rows = np.repeat(np.arange(N), np.diff(S.indptr))

    def by_hand() -> Any:
        error = np.einsum("kl,kl->k", U[rows], V[S.indices]) - S.data
        g = sp.csr_array((2 * error / len(error), S.indices, S.indptr), shape=S.shape)
        gu, gv = g @ V, g.T @ U
        U[...] = U - 0.0 * gu
        V[...] = V - 0.0 * gv
        return (error**2).mean()

    return f, by_hand, None


def graph_convolution() -> Task:
    """The cost and gradients of two graph convolutions with 32 hidden features, in float64."""
    A, X = matrix() * 0.1, RNG.normal(size=(N, 16))
    W, V = RNG.normal(size=(16, 32)) / 4, RNG.normal(size=(32, 8)) / 4
    a, w, v = sparse.shared(A), T.dmatrix("w"), T.dmatrix("v")
    hidden = T.maximum(sparse.dot(a, T.dot(T.constant(X), w)), 0)
    cost = (sparse.dot(a, T.dot(hidden, v)) ** 2).mean()
    f = symcomp.function([w, v], [cost, *symcomp.grad(cost, [w, v])])

    def by_hand() -> Any:
        before = A @ (X @ W)
        hidden = np.maximum(before, 0)
        z = A @ (hidden @ V)
        g = A.T @ (z * (2 / z.size))
        gh = np.where(before > 0, g @ V.T, 0)
        return (z**2).mean(), X.T @ (A.T @ gh), hidden.T @ g

    return lambda: f(W, V), by_hand, None


def embedding() -> Task:
    """A step of Adagrad on 1000 rows of a table of 1,000,000 x 64 in float32."""
    table = RNG.normal(size=(1_000_000, 64)).astype("float32")
    ids = RNG.integers(0, len(table), 1000)
    w, i = symcomp.shared(table, name="w"), T.lvector("i")
    cost = (w[i] ** 2).sum()
    f = symcomp.function([i], cost, updates=sparse.adagrad(cost, [w], 0.0))
    state = np.zeros_like(table)

    def by_hand() -> Any:
        rows, inverse = np.unique(ids, return_inverse=True)
        read = table[ids]
        g = np.zeros((len(rows), 64), "float32")
        np.add.at(g, inverse, 2 * read)
        state[rows] += g**2
        table[rows] -= 0.0 * g / (np.sqrt(state[rows]) + 1e-8)
        return (read**2).sum()

    return lambda: f(ids), by_hand, None


TASKS: dict[str, Callable[[], Task]] = {
    "S D, 1 column": lambda: times_dense(1),
    "S D, 16 columns": lambda: times_dense(16),
    "S D, 128 columns": lambda: times_dense(128),
    "S^T D, 16 columns": lambda: times_dense(16, transposed=True),
    "S Q": lambda: two_matrices(lambda x, y: x @ y),
    "S + Q": lambda: two_matrices(lambda x, y: x + y),
    "gradients of S D": gradient_of_product,
    "logistic regression": logistic_regression,
    "matrix factorization": factorization,
    "graph convolution": graph_convolution,
    "embedding": embedding,
}


def arrays_of(found: Any) -> list[Any]:
    """The numbers of a result."""
    several = found if isinstance(found, list | tuple) else [found]
    return [v.tocsr().sorted_indices().data if sp.issparse(v) else np.asarray(v) for v in several]


def measure(task: Task, rounds: int) -> list[float]:
    """The best times of symcomp, of SciPy and, if it is there, of PyTorch, in milliseconds."""
    ours, theirs, by_torch = task
    calls = [c for c in (ours, theirs, by_torch) if c is not None]
    for one, two in zip(arrays_of(ours()), arrays_of(theirs()), strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-4, atol=1e-4 * float(abs(two).max(initial=1)))
    times = [float("inf")] * len(calls)
    for _ in range(rounds):
        for k, call in enumerate(calls):
            start = time.perf_counter()
            call()
            times[k] = min(times[k], time.perf_counter() - start)
    return [1e3 * t for t in times]


def main() -> None:
    """Measure the tasks that are asked for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--tasks", default="", help="only those whose names have this in them")
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    print(f"{'task':24}{'symcomp':>10}{'SciPy':>10}{'ratio':>8}{'PyTorch':>10}")
    for name, make in TASKS.items():
        if options.tasks in name:
            ours, theirs, *rest = measure(make(), options.rounds)
            peer = f"{rest[0]:10.2f}" if rest else ""
            print(f"{name:24}{ours:10.2f}{theirs:10.2f}{theirs / ours:8.2f}{peer}", flush=True)


if __name__ == "__main__":
    main()
