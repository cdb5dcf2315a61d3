"""Measure how long building, differentiating and compiling large graphs takes.

    python benchmarks/compile_time.py [task ...]

Figures are seconds of this process on a processor, the least of four times: the first call of each
task imports modules and compiles kernels, which the later ones take from the cache.
"""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import symcomp
import symcomp.tensor as T

LAYERS, WIDTH = 100, 16
REPEATS = 4
# The least seconds of each part of each task.
least: dict[tuple[str, str], float] = {}


def timed(task: str, part: str, make: Callable[[], Any]) -> Any:
    """Note the seconds that ``make`` takes; return what it makes."""
    gc.collect()
    started = time.process_time()
    made = make()
    seconds = time.process_time() - started
    least[task, part] = min(seconds, least.get((task, part), seconds))
    return made


def network() -> tuple[list[Any], Any, list[Any]]:
    """Return the inputs, the loss and the weights of a network of LAYERS layers."""
    rng = np.random.default_rng(0)
    x, y = T.dmatrix("x"), T.dmatrix("y")
    h, weights = x, []
    for i in range(LAYERS):
        w = symcomp.shared(rng.normal(size=(WIDTH, WIDTH)) / 4, f"w{i}")
        b = symcomp.shared(np.zeros(WIDTH), f"b{i}")
        h = T.tanh(T.dot(h, w) + b)
        weights += [w, b]
    return [x, y], ((h - y) ** 2).mean(), weights


def training() -> None:
    """Compile a step of gradient descent."""
    inputs, loss, weights = timed("training", "build", network)
    grads = timed("training", "gradient", lambda: symcomp.grad(loss, weights))
    updates = [(w, w - 0.1 * g) for w, g in zip(weights, grads, strict=True)]
    timed("training", "compile", lambda: symcomp.function(inputs, loss, updates=updates))


def hessian() -> None:
    """Compile a product of the Hessian with vectors."""
    inputs, loss, weights = network()
    vectors = [w.type(f"v{i}") for i, w in enumerate(weights)]
    products = timed(
        "hessian",
        "gradient of gradient",
        lambda: symcomp.gradient.hessian_vector_product(loss, weights, vectors),
    )
    timed("hessian", "compile", lambda: symcomp.function([*inputs, *vectors], products))


def chain(length: int, mode: str) -> None:
    """Compile a chain of elementwise functions."""
    x = T.dvector("x")
    steps = [T.sin, lambda y: y * x, T.cos, lambda y: y + x, T.tanh, lambda y: y - 0.5 * x]

    def build() -> Any:
        y = x
        for i in range(length):
            y = steps[i % len(steps)](y)
        return y

    task = f"{length}"
    y = timed(task, "build", build)
    f = timed(task, f"compile, {mode}", lambda: symcomp.function([x], y, mode=mode))
    timed(task, "first call", lambda: f(np.ones(2)))


def square(terms: int = 600) -> None:
    """Compile the square of a sum of many terms, and its gradient."""
    x, shifts = T.dvector("x"), T.dvectors(terms)
    loss = timed("square", "build", lambda: (sum(T.sin(x + s) for s in shifts) ** 2).sum())
    grads = timed("square", "gradient", lambda: symcomp.grad(loss, [x, *shifts]))
    timed("square", "compile", lambda: symcomp.function([x, *shifts], [loss, *grads]))


def small(number: int = 100) -> None:
    """Compile many functions of few operations, and loops with their gradients."""

    def products() -> None:
        for _ in range(number):
            x, y = T.dvector(), T.dmatrix()
            symcomp.function([x, y], [T.tanh(T.dot(y, x)).sum(), x * 2])

    def loops() -> None:
        for _ in range(number // 10):
            x, y = T.dvector(), T.dmatrix()
            step = lambda a, h: T.tanh(h * a)  # noqa: E731
            states, _ = symcomp.scan(step, sequences=[y], outputs_info=[x])
            symcomp.function([x, y], [states[-1], symcomp.grad(states.sum(), x)])

    timed("small", f"{number} functions", products)
    timed("small", f"{number // 10} loops and gradients", loops)


TASKS = {
    "small": small,
    "training": training,
    "hessian": hessian,
    "square": square,
    "chain": lambda: chain(20_000, "FAST_COMPILE"),
    "long": lambda: chain(200_000, "FAST_COMPILE"),
}


def main() -> None:
    """Run the tasks that are named, or all."""
    for name in sys.argv[1:] or TASKS:
        for _ in range(1 if name == "long" else REPEATS):
            TASKS[name]()
        for (task, part), seconds in least.items():
            print(f"{task:10} {part:28} {seconds:8.2f} s", flush=True)
        least.clear()


if __name__ == "__main__":
    main()
