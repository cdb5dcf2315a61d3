"""The tasks of benchmarks/sparse.py by PyTorch and PyTensor (numba), where these are installed.

``python benchmarks/sparse.py --peers PYTHON`` runs this file by another interpreter, task by task;
it prints the best times in milliseconds as JSON.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix
from sparse_data import N, best_times, matrix, normal, texts

THREADS = int(os.environ.get("OMP_NUM_THREADS", "1"))
Call = Callable[[], Any]


# -- PyTorch


def by_torch(task: str) -> Call:
    """Return a call that does a task."""
    torch = importlib.import_module("torch")
    torch.set_num_threads(THREADS)

    def sparse(value: Any) -> Any:
        arrays = (torch.from_numpy(v) for v in (value.indptr, value.indices, value.data))
        return torch.sparse_csr_tensor(*arrays, size=value.shape)

    def dense(value: Any, grad: bool = False) -> Any:
        return torch.from_numpy(value).requires_grad_(grad)

    def with_gradients(cost: Call, wanted: list[Any], step: bool = False) -> Call:
        def call() -> Any:
            found = cost()
            gradients = torch.autograd.grad(found, wanted)
            if step:
                with torch.no_grad():
                    for p, g in zip(wanted, gradients, strict=True):
                        p -= 0.0 * g
            return found, gradients

        return call

    S = None if task == "logistic regression" else sparse(matrix())
    if task.startswith("S D"):
        D = dense(normal(N, columns_of(task)))
        return lambda: S @ D
    if task.startswith("S^T D"):
        D = dense(normal(N, columns_of(task)))
        return lambda: S.t() @ D
    if task in ("S Q", "S + Q"):
        Q = sparse(matrix(1))
        return (lambda: S @ Q) if task == "S Q" else (lambda: S + Q)
    if task == "gradients of S D":
        D = dense(normal(N, 16), grad=True)
        S.requires_grad_(True)
        return with_gradients(lambda: ((S @ D) ** 2).sum(), [S, D])
    if task == "logistic regression":
        X, labels = texts()
        x, y = sparse(X), torch.from_numpy(labels)
        w = torch.zeros((X.shape[1], 1), dtype=torch.float64, requires_grad=True)
        loss = torch.nn.functional.binary_cross_entropy_with_logits
        return with_gradients(lambda: loss((x @ w)[:, 0], y), [w], step=True)
    if task == "matrix factorization":
        value = matrix()
        rows = torch.from_numpy(np.repeat(np.arange(N), np.diff(value.indptr)))
        columns, entries = torch.from_numpy(value.indices.astype("int64")), dense(value.data)
        U, V = (dense(normal(N, 16, seed=k, scale=0.25), grad=True) for k in (1, 2))
        return with_gradients(
            lambda: (((U[rows] * V[columns]).sum(1) - entries) ** 2).mean(), [U, V], step=True
        )
    if task == "graph convolution":
        A, X = sparse(matrix() * 0.1), dense(normal(N, 16))
        W, V = dense(normal(16, 32, scale=0.25), True), dense(normal(32, 8, scale=0.25), True)
        return with_gradients(lambda: ((A @ (torch.relu(A @ (X @ W)) @ V)) ** 2).mean(), [W, V])
    raise NotImplementedError(task)


# -- PyTensor


def by_pytensor(task: str) -> Call:
    """Return a call that does a task."""
    numba, pytensor = (importlib.import_module(name) for name in ("numba", "pytensor"))
    ps, pt = (importlib.import_module(f"pytensor.{name}") for name in ("sparse", "tensor"))
    numba.set_num_threads(THREADS)

    def compiled(inputs: list[Any], outputs: Any, *values: Any, updates: Any = ()) -> Call:
        f = pytensor.function(inputs, outputs, updates=list(updates), mode="NUMBA")
        f.trust_input = True
        f(*values)
        return lambda: f(*values)

    S = None if task == "logistic regression" else matrix()
    x, d = ps.csr_matrix("x", dtype="float64"), pt.dmatrix("d")
    if task.startswith("S D"):
        return compiled([x, d], ps.structured_dot(x, d), scipy(S), normal(N, columns_of(task)))
    if task.startswith("S^T D"):
        return compiled([x, d], ps.structured_dot(x.T, d), scipy(S), normal(N, columns_of(task)))
    if task in ("S Q", "S + Q"):
        y = ps.csr_matrix("y", dtype="float64")
        made = ps.true_dot(x, y) if task == "S Q" else x + y
        return compiled([x, y], made, scipy(S), scipy(matrix(1)))
    if task == "gradients of S D":
        cost = (ps.structured_dot(x, d) ** 2).sum()
        return compiled([x, d], pytensor.grad(cost, [x, d]), scipy(S), normal(N, 16))
    if task == "logistic regression":
        X, labels = texts()
        w = pytensor.shared(np.zeros((X.shape[1], 1)))
        z = ps.structured_dot(pytensor.shared(scipy(X)), w)[:, 0]
        cost = (pt.softplus(z) - labels * z).mean()
        return compiled([], cost, updates=[(w, w - 0.0 * pytensor.grad(cost, w))])
    if task == "matrix factorization":
        rows = pytensor.shared(np.repeat(np.arange(N), np.diff(S.indptr)))
        u, v = (pytensor.shared(normal(N, 16, seed=k, scale=0.25)) for k in (1, 2))
        read = (u[rows] * v[pytensor.shared(S.indices.astype("int64"))]).sum(axis=1)
        cost = ((read - pytensor.shared(S.data)) ** 2).mean()
        steps = zip((u, v), pytensor.grad(cost, [u, v]), strict=True)
        return compiled([], cost, updates=[(p, p - 0.0 * g) for p, g in steps])
    if task == "graph convolution":
        a, X = pytensor.shared(scipy(S * 0.1)), pytensor.shared(normal(N, 16))
        w, v = pt.dmatrix("w"), pt.dmatrix("v")
        hidden = pt.maximum(ps.structured_dot(a, pt.dot(X, w)), 0)
        cost = (ps.structured_dot(a, pt.dot(hidden, v)) ** 2).mean()
        values = normal(16, 32, scale=0.25), normal(32, 8, scale=0.25)
        return compiled([w, v], [cost, *pytensor.grad(cost, [w, v])], *values)
    raise NotImplementedError(task)


def scipy(value: Any) -> Any:
    """Return a matrix of SciPy's older class, which PyTensor takes."""
    return csr_matrix(value)


def columns_of(task: str) -> int:
    """Return the columns that the name of a task tells."""
    return int(task.split(", ")[1].split()[0])


PEERS = {"PyTorch": by_torch, "PyTensor": by_pytensor}


def main() -> None:
    """Print the times of one task."""
    task, rounds = sys.argv[1], int(sys.argv[2])
    found = {}
    for name, make in PEERS.items():
        try:
            call = make(task)
            call()
        except (ImportError, NotImplementedError, RuntimeError, TypeError) as problem:
            print(f"{name}, {task}: {type(problem).__name__}: {problem!s:.300}", file=sys.stderr)
            continue
        (found[name],) = best_times([call], rounds, sys.argv[3])
    print(json.dumps(found))


if __name__ == "__main__":
    main()
