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
    """

    name: str
    kind: str
    sizes: tuple[int, ...]
    tiny: tuple[int, ...]
    unit: str

    def figure(self, seconds: float, sizes: tuple[int, ...]) -> float:
        """Return what one call in this time means, in the unit."""
        if self.unit == "us":
            return 1e6 * seconds / (sizes[0] if self.kind.startswith("scan") else 1)
        work = {
            "GB/s": 4e-9 * math.prod(sizes) * PASSES.get(self.kind, 1),
            "TFLOP/s": 2e-12 * math.prod(sizes),
            "examples/s": sizes[0],
        }
        return work[self.unit] / seconds


# How often the elements of arrays are read or written.
PASSES = {"copy": 2, "elementwise": 3, "softmax": 2}
LARGE, SMALL = (8192, 8192), (9, 33)
TASKS = [
    Task("copy", "copy", LARGE, SMALL, "GB/s"),
    Task("sqrt(x x + y y)", "elementwise", LARGE, SMALL, "GB/s"),
    Task("sum of all", "sum", LARGE, SMALL, "GB/s"),
    Task("sums of rows", "sum_rows", LARGE, SMALL, "GB/s"),
    Task("sums of columns", "sum_columns", LARGE, SMALL, "GB/s"),
    Task("softmax of rows", "softmax", LARGE, SMALL, "GB/s"),
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
    Task("GRU, batch 32", "gru", (32, 50, 128, 96), (2, 3, 4, 7), "examples/s"),
    Task("LSTM, batch 32", "lstm", (32, 50, 128, 96), (2, 3, 4, 7), "examples/s"),
    Task("scan, H=100", "scan", (1000, 100), (4, 3), "us"),
    Task("scan, H=400", "scan", (1000, 400), (4, 5), "us"),
    Task("scan of 10,000 steps, H=100", "scan", (10000, 100), (4, 3), "us"),
    Task("gradient of scan, H=100", "scan_gradient", (1000, 100), (4, 3), "us"),
    Task("gradient of scan, H=400", "scan_gradient", (1000, 400), (4, 5), "us"),
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
