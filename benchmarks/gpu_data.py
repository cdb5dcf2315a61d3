"""The tasks of benchmarks/gpu.py: their sizes, their numbers, and how they are timed.

Workers (``gpu_tasks.py``, ``peers/gpu_torch.py``, ``peers/gpu_cupy.py``) print one JSON object in a
line for each task: {"task", "seconds", "check"}, or {"task", "error"}; {"missing"} without their
library. ``check`` is the largest element of what the third call returns.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

RATE = np.float32(0.01)
CHAIN = 50  # pairs of ops
CLASSES = 10

Step = Callable[[], Any]


@dataclass(frozen=True)
class Task:
    """One task.

    Attributes
    ----------
    name, kind : str
    sizes, tiny : tuple of int
        On a card, and to try the program out.
    unit : {"GB/s", "TFLOP/s", "examples/s", "us"}
        Microseconds of a step where the task is a loop.
    """

    name: str
    kind: str
    sizes: tuple[int, ...]
    tiny: tuple[int, ...]
    unit: str

    def figure(self, seconds: float, sizes: tuple[int, ...]) -> float:
        """Return what one call in this time means, in the unit."""
        if self.unit == "us":
            return 1e6 * seconds / (sizes[0] if self.kind in LOOPS else 1)
        work = {
            "GB/s": 4e-9 * math.prod(sizes) * PASSES.get(self.kind, 1),
            "TFLOP/s": 2e-12 * math.prod(sizes),
            "examples/s": sizes[0],
        }
        return work[self.unit] / seconds


# Tasks whose first size is a number of steps.
LOOPS = ("scan", "scan_gradient", "until")
# How often the elements of arrays are read or written.
PASSES = {
    "copy": 2, "elementwise": 3, "transposed": 3, "softmax": 2, "layer_norm": 2, "cumsum": 2,
    "gather": 2,
}  # fmt: skip
LARGE, SMALL = (8192, 8192), (9, 33)
TASKS = [
    Task("copy", "copy", LARGE, SMALL, "GB/s"),
    Task("sqrt(x x + y y)", "elementwise", LARGE, SMALL, "GB/s"),
    Task("sum of all", "sum", LARGE, SMALL, "GB/s"),
    Task("sums of rows", "sum_rows", LARGE, SMALL, "GB/s"),
    Task("sums of columns", "sum_columns", LARGE, SMALL, "GB/s"),
    Task("softmax of rows", "softmax", LARGE, SMALL, "GB/s"),
    Task("x + y transposed", "transposed", LARGE, SMALL, "GB/s"),
    Task("softmax of rows of 64", "softmax", (1 << 20, 64), SMALL, "GB/s"),
    Task("layer norm of rows of 1024", "layer_norm", (1 << 16, 1024), SMALL, "GB/s"),
    Task("cumulative sums of rows", "cumsum", LARGE, SMALL, "GB/s"),
    Task("rows at positions", "gather", (1 << 18, 256), SMALL, "GB/s"),
    Task("uniform draws", "uniform", LARGE, (200, 200), "GB/s"),
    Task("sort of rows", "sort", (1 << 12, 1 << 12), SMALL, "us"),
    Task("argmax of rows", "argmax", LARGE, SMALL, "GB/s"),
    Task("Fourier transforms of rows", "fourier", (1 << 13, 1 << 12), SMALL, "us"),
    Task("Cholesky factor, 2048 x 2048", "cholesky", (1, 2048), (1, 5), "us"),
    Task("Cholesky factors, 1000 of 64 x 64", "cholesky", (1000, 64), (3, 5), "us"),
    Task("sparse times vector", "sparse_dot", (1 << 20, 16, 1), (9, 3, 1), "us"),
    Task("sparse times dense", "sparse_dot", (1 << 17, 16, 64), (9, 3, 4), "us"),
    Task("gradient of sparse times dense", "sparse_gradient", (1 << 17, 16, 64), (9, 3, 4), "us"),
    Task("sparse times sparse", "sparse_product", (1 << 17, 16), (9, 3), "us"),
    Task("product, large", "product", (4096, 4096, 4096), (9, 8, 7), "TFLOP/s"),
    Task("product, thin", "product", (60, 784, 500), (3, 8, 5), "TFLOP/s"),
    Task("mlp1, batch 60", "mlp", (60, 784, 500, 10), (3, 8, 5, 10), "examples/s"),
    Task("mlp1, batch 1000", "mlp", (1000, 784, 500, 10), (7, 8, 5, 10), "examples/s"),
    Task(
        "mlp3, batch 60", "mlp",
        (60, 784, 1000, 1000, 1000, 10), (3, 8, 5, 5, 5, 10), "examples/s",
    ),
    Task(
        "mlp3, batch 1000", "mlp",
        (1000, 784, 1000, 1000, 1000, 10), (7, 8, 5, 5, 5, 10), "examples/s",
    ),
    Task("LeNet-5, batch 60", "lenet", (60, 28, 20, 50, 500), (2, 16, 2, 3, 4), "examples/s"),
    Task("batch norm, relu, gradients", "batch_norm", (64, 128, 32), (2, 3, 4), "examples/s"),
    Task("max-pooling with its gradient", "pooling", (64, 64, 64), (2, 3, 4), "examples/s"),
    Task("embedding, step", "embedding", (1 << 14, 50_000, 256), (7, 5, 4), "examples/s"),
    Task(
        "embedding, step, atomics", "embedding_atomics",
        (1 << 14, 50_000, 256), (7, 5, 4), "examples/s",
    ),
    Task("GRU, batch 32", "gru", (32, 50, 128, 96), (2, 3, 4, 7), "examples/s"),
    Task("LSTM, batch 32", "lstm", (32, 50, 128, 96), (2, 3, 4, 7), "examples/s"),
    Task("scan, H=100", "scan", (1000, 100), (4, 3), "us"),
    Task("scan, H=400", "scan", (1000, 400), (4, 5), "us"),
    Task("scan of 10,000 steps, H=100", "scan", (10000, 100), (4, 3), "us"),
    Task("gradient of scan, H=100", "scan_gradient", (1000, 100), (4, 3), "us"),
    Task("gradient of scan, H=400", "scan_gradient", (1000, 400), (4, 5), "us"),
    Task("loop that ends early", "until", (1000, 1000), (4, 3), "us"),
    Task("100 small ops", "chain", (2, 2), (2, 2), "us"),
    Task("100 small ops, no graphs", "chain_without_graphs", (2, 2), (2, 2), "us"),
]  # fmt: skip


def normal(*shape: int, seed: int = 0) -> np.ndarray:
    """Return normal numbers, divided by the root of the first length: weights."""
    rng = np.random.default_rng(seed)
    return (rng.normal(size=shape) / np.sqrt(shape[0])).astype(np.float32)


def uniform(*shape: int, seed: int = 0) -> np.ndarray:
    """Return numbers between 0 and 1."""
    return np.random.default_rng(seed).random(shape, dtype=np.float32)


def positive(number: int, n: int) -> np.ndarray:
    """Return symmetric positive definite matrices."""
    factors = normal(n, number * n).T.reshape(number, n, n)
    return factors @ factors.swapaxes(1, 2) + np.eye(n, dtype=np.float32)


def compressed(n: int, entries: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return data, columns and poiXX."""
    rng = np.random.default_rng(4)
    # At random, and in order: each column lies in a part of the row of its own.
    width = n // entries
    columns = rng.integers(0, width, (n, entries)) + np.arange(entries) * width
    pointers = np.arange(0, (n + 1) * entries, entries)
    return uniform(n * entries), columns.ravel().astype("i4"), pointers.astype("i4")


def labels(*shape: int, classes: int = CLASSES) -> np.ndarray:
    """Return numbers of classes."""
    return np.random.default_rng(3).integers(0, classes, shape)


def layers(sizes: tuple[int, ...]) -> list[np.ndarray]:
    """Return weights and biases in turn."""
    made = []
    for i, (n, m) in enumerate(zip(sizes, sizes[1:], strict=False)):
        made += [normal(n, m, seed=i), np.zeros(m, np.float32)]
    return made


def lenet(size: int, first: int, second: int, hidden: int) -> list[np.ndarray]:
    """Return kernels and biases of two convolutions, weights and biases of two layers."""
    left = ((size - 4) // 2 - 4) // 2
    kernels = normal(25, first), normal(25 * first, second)
    w1 = kernels[0].T.reshape(first, 1, 5, 5)
    w2 = kernels[1].T.reshape(second, first, 5, 5)
    tail = layers((second * left * left, hidden, CLASSES))
    biases = np.zeros(first, np.float32), np.zeros(second, np.float32)
    return [np.ascontiguousarray(w1), biases[0], np.ascontiguousarray(w2), biases[1], *tail]


def language(kind: str, hidden: int, characters: int) -> list[np.ndarray]:
    """Return u: a row of gates for each character; w: states to gates; v, b: to characters."""
    gates = (3 if kind == "gru" else 4) * hidden
    return [
        uniform(characters, gates) - np.float32(0.5), normal(hidden, gates),
        normal(hidden, characters), np.zeros(characters, np.float32),
    ]  # fmt: skip


def best_seconds(step: Step, wait: Callable[[], Any], seconds: float) -> float:
    """Return the time of one call, by the best of windows of calls that are waited for together."""
    for _ in range(3):
        step()
    wait()
    best, calls, end = math.inf, 1, time.perf_counter() + seconds
    while True:
        started = time.perf_counter()
        for _ in range(calls):
            step()
        wait()
        now = time.perf_counter()
        best = min(best, (now - started) / calls)
        if now > end:
            return best
        calls = max(1, min(10_000, round(seconds / 5 / best)))


def work(
    name: str, build: Callable[[Task, tuple[int, ...], str], tuple[Step, Callable[[Any], float]]],
    wait: Callable[[str], Any], skipped: Iterable[str] = (),
) -> None:  # fmt: skip
    """Do the tasks of the command line, and print a line for each.

    Parameters
    ----------
    name : str
    build : callable (Task, sizes, device) -> (step, largest)
        Makes a function that enqueues one call and returns its result, and one that returns its
        largest element. Raises NotImplementedError where the library cannot do a task.
    wait : callable (device)
        Waits for the device.
    skipped : iterable of str
        Kinds that are not done.
    """
    parser = argparse.ArgumentParser(description=name)
    parser.add_argument("--device", required=True)
    parser.add_argument("--tiny", action="store_true")
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    for task in TASKS:
        if task.kind in skipped or options.only not in task.name:
            continue
        row: dict[str, Any] = {"task": task.name}
        try:
            step, largest = build(task, task.tiny if options.tiny else task.sizes, options.device)
            step(), step()
            row["check"] = largest(step())
            if options.seconds:
                row["seconds"] = best_seconds(step, lambda: wait(options.device), options.seconds)
        except Exception as problem:  # noqa: BLE001 (the others are still measured)
            row["error"] = f"{type(problem).__name__}: {problem}"
        print(json.dumps(row), flush=True)
