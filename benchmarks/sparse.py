"""Sparse matrices beside SciPy, PyTorch and PyTensor: milliseconds a call.

Run as ``python benchmarks/sparse.py [--tasks WORDS] [--peers PYTHON]``, with OMP_NUM_THREADS=1 for
one core, or OMP_NUM_THREADS=2 and SYMCOMP_FLAGS=openmp=True for two. Each task is done by a
compiled function, and with SciPy and NumPy by hand; both are timed in turns, and the best time of
each is told, after a check that both give the same.
Matrices have 100,000 x 100,000 elements, of which 1,000,000 are stored; texts are 20,000 rows of
words out of 100,000, whose frequencies fall as Zipf's law says. With ``--peers``, the interpreter
of an environment that has PyTorch and PyTensor does each task right afterwards
(sparse_peers.py). The ratio is the time of the fastest peer divided by that of symcomp.
"""

from __future__ import annotations

import argparse
import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sparse_data import N, best_times, matrix, normal, texts

import symcomp
import symcomp.tensor as T
from symcomp import sparse

Call = Callable[[], Any]
Task = tuple[Call, Call]


# -- products and sums


def times_dense(columns: int, transposed: bool = False) -> Task:
    """S D, or S^T D without a transpose of S."""
    S, D = matrix(), normal(N, columns)
    x, d = sparse.csr_array("x"), T.dmatrix("d")
    f = symcomp.function([x, d], sparse.dot(x.T if transposed else x, d), trust_input=True)
    return lambda: f(S, D), lambda: (S.T if transposed else S) @ D


def two_matrices(function: Callable[..., Any]) -> Task:
    """Make the task of a function of two sparse matrices."""
    S, Q = matrix(0), matrix(1)
    x, y = sparse.csr_array("x"), sparse.csr_array("y")
    f = symcomp.function([x, y], function(x, y), trust_input=True)
    return lambda: f(S, Q), lambda: function(S, Q)


def gradient_of_product() -> Task:
    """Make the task: gradients of the sum of squares of S D with respect to both."""
    S, D = matrix(), normal(N, 16)
    rows = np.repeat(np.arange(N), np.diff(S.indptr))
    x, d = sparse.csr_array("x"), T.dmatrix("d")
    f = symcomp.function([x, d], symcomp.grad((sparse.dot(x, d) ** 2).sum(), [x, d]))

    def by_hand() -> Any:
        g = 2 * (S @ D)
        entries = np.einsum("kl,kl->k", g[rows], D[S.indices])
        return sp.csr_array((entries, S.indices, S.indptr), shape=S.shape), S.T @ g

    return lambda: f(S, D), by_hand


# -- steps of training


def logistic_regression() -> Task:
    """Make the task: a training step on all texts."""
    X, y = texts()
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

    return f, by_hand


def factorization() -> Task:
    """Make the task: a step of a factorization of rank 16, fitted to the stored entries."""
    S = matrix()
    U, V = (normal(N, 16, seed=k, scale=0.25) for k in (1, 2))
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

    return f, by_hand


def graph_convolution() -> Task:
    """Make the task: cost and gradients of two graph convolutions with 32 hidden features, in
    float64.
    """
    A, X = matrix() * 0.1, normal(N, 16)
    W, V = normal(16, 32, scale=0.25), normal(32, 8, scale=0.25)
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

    return lambda: f(W, V), by_hand


def embedding() -> Task:
    """Make the task: a step of Adagrad on 1000 rows of a table of 1,000,000 x 64 in float32."""
    table = normal(1_000_000, 64).astype("float32")
    ids = np.random.default_rng(0).integers(0, len(table), 1000)
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

    return lambda: f(ids), by_hand


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
    """Return the numbers of a result."""
    several = found if isinstance(found, list | tuple) else [found]
    return [v.tocsr().sorted_indices().data if sp.issparse(v) else np.asarray(v) for v in several]


def measure(task: Task, rounds: int, clock: str) -> list[float]:
    """Return the best times of symcomp and of SciPy, in milliseconds, once they agree."""
    ours, theirs = task
    for one, two in zip(arrays_of(ours()), arrays_of(theirs()), strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-4, atol=1e-4 * float(abs(two).max(initial=1)))
    return best_times(task, rounds, clock)


def peers_of(python: str, task: str, rounds: int, clock: str) -> dict[str, float]:
    """Return the best times of PyTorch and PyTensor, as far as they do the task."""
    script = Path(__file__).with_name("sparse_peers.py")
    command = [python, str(script), task, str(rounds), clock]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    return dict(json.loads(run.stdout.splitlines()[-1]))


def main() -> None:
    """Measure the tasks that are asked for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument(
        "--tasks", default="", help="select the tasks that have this in their names"
    )
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--peers", help="the interpreter that has PyTorch and PyTensor")
    parser.add_argument(
        "--clock",
        choices=("wall", "cpu"),
        default="wall",
        help="cpu: of one core on a busy machine",
    )
    options = parser.parse_args()
    names = ("symcomp", "SciPy", "PyTorch", "PyTensor")
    print(f"{'task':24}" + "".join(f"{name:>10}" for name in names) + f"{'ratio':>8}")
    for name, make in TASKS.items():
        if options.tasks not in name:
            continue
        times = dict(zip(names, measure(make(), options.rounds, options.clock), strict=False))
        if options.peers and name != "embedding":
            times |= peers_of(options.peers, name, options.rounds, options.clock)
        told = "".join(f"{times[n]:10.2f}" if n in times else f"{'-':>10}" for n in names)
        best = min(t for n, t in times.items() if n != "symcomp")
        print(f"{name:24}{told}{best / times['symcomp']:8.2f}", flush=True)


if __name__ == "__main__":
    main()
