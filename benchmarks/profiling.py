"""The cost of a profile: calls of functions with one, and of the same without, in turn.

    python benchmarks/profiling.py

The best time of each counts. Pin the process to one core.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import symcomp
import symcomp.tensor as T

# Time optimized code only.
symcomp.config.early_code = False

ROUNDS, SECONDS = 40, 0.01

Make = Callable[[Any], Any]


def tasks() -> Iterator[tuple[str, Make, list[Any]]]:
    """Name, how the function is compiled with a ``profile``, and its arguments."""
    x, ten = T.dvector("x"), np.ones(10)
    for linker in ("cvm", "vm"):
        mode = symcomp.Mode(linker)
        yield f"{linker}: x + 1 on ten doubles", _one(x, x + 1, mode), [ten]
        yield f"{linker}: 50 small instructions", _one(x, _chain(x), mode), [ten]
    for rows in (1, 10):
        batch = [np.ones((rows, 784), np.float32), np.zeros(rows, np.int64)]
        yield f"step of a network, {rows} rows", _network, batch
    for steps in (10, 500):
        yield f"loop of {steps} steps", _loop, [np.ones((steps, 16))]


def _one(x: Any, y: Any, mode: Any) -> Make:
    return lambda profile: symcomp.function([x], y, mode, profile=profile, trust_input=True)


def _chain(x: Any) -> Any:
    for i in range(50):
        x = T.dot(x.dimshuffle("x", 0), T.eye(10)).flatten() if i % 2 else x * x
    return x


def _network(profile: Any) -> Any:
    rng = np.random.default_rng(0)
    x, labels = T.fmatrix("x"), T.lvector("labels")
    w1 = symcomp.shared(0.05 * rng.normal(size=(784, 500)).astype(np.float32))
    w2 = symcomp.shared(0.05 * rng.normal(size=(500, 10)).astype(np.float32))
    scores = T.nnet.softmax(T.dot(T.tanh(T.dot(x, w1)), w2))
    loss = -T.mean(T.log(scores)[T.arange(labels.shape[0]), labels])
    gradients = symcomp.grad(loss, [w1, w2])
    updates = [(w, w - np.float32(0.01) * g) for w, g in zip([w1, w2], gradients, strict=True)]
    return symcomp.function([x, labels], loss, updates=updates, profile=profile)


def _loop(profile: Any) -> Any:
    x, w = T.dmatrix("x"), symcomp.shared(np.eye(16))
    states, _ = symcomp.scan(lambda row, s: T.tanh(T.dot(s, w) + row), [x], T.zeros(16))
    return symcomp.function([x], states[-1], profile=profile)


def measure(make: Make, arguments: list[Any]) -> tuple[float, float]:
    """Return the least seconds of a call without a profile, and with one."""
    functions = make(None), make(True)
    started = time.perf_counter()
    for _ in range(20):
        functions[1](*arguments)
    number = max(1, int(SECONDS / ((time.perf_counter() - started) / 20)))
    found = [float("inf"), float("inf")]
    for _ in range(ROUNDS):
        for k, f in enumerate(functions):
            started = time.perf_counter()
            for _ in range(number):
                f(*arguments)
            found[k] = min(found[k], (time.perf_counter() - started) / number)
    return found[0], found[1]


def main() -> None:
    """Print a table."""
    print(f"{'':32}  without us     with us     cost")
    for name, make, arguments in tasks():
        without, with_one = measure(make, arguments)
        cost = 100 * (with_one / without - 1)
        print(f"{name:32}  {1e6 * without:10.3f}  {1e6 * with_one:10.3f}  {cost:5.1f} %")


if __name__ == "__main__":
    main()
