"""Measure how long rewriting takes: chains of elementwise nodes, and the gradient of a network with
three layers.

    python benchmarks/rewriting.py
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

import symcomp
import symcomp.tensor as T
from symcomp.core.graph import FunctionGraph
from symcomp.core.walk import toposort
from symcomp.rewrite.phases import rewrite


def chain(length: int) -> tuple[list[Any], list[Any]]:
    """Inputs and outputs of a chain of different elementwise functions."""
    x = T.dvector("x")
    steps = [T.sin, lambda y: y * x, T.cos, lambda y: y + x, T.tanh, lambda y: y - 0.5 * x]
    y = x
    for i in range(length):
        y = steps[i % len(steps)](y)
    return [x], [y]


def network() -> tuple[list[Any], list[Any]]:
    """Inputs and updated weights of a step of training, as users write it."""
    rng = np.random.default_rng(0)
    x, t = T.fmatrix("x"), T.ivector("t")
    h, params = x, []
    sizes = [784, 500, 500, 10]
    for i, (m, n) in enumerate(zip(sizes[:-1], sizes[1:], strict=True)):
        w = symcomp.shared(rng.normal(size=(m, n)).astype("float32"), f"w{i}")
        b = symcomp.shared(np.zeros(n, "float32"), f"b{i}")
        h = T.dot(h, w) + b
        h = T.tanh(h) if i < 2 else T.nnet.softmax(h)
        params += [w, b]
    loss = -T.mean(T.log(h)[T.arange(t.shape[0]), t])
    loss += 1e-4 * sum((w**2).sum() for w in params[::2])
    grads = symcomp.grad(loss, params)
    velocities = [symcomp.shared(p.get_value() * 0, p.name) for p in params]
    steps = [0.9 * v - 0.01 * g for v, g in zip(velocities, grads, strict=True)]
    after = [p + v for p, v in zip(params, steps, strict=True)]
    return [x, t, *params, *velocities], [loss, *steps, *after]


def measure(name: str, inputs: list[Any], outputs: list[Any]) -> None:
    """Print one line: nodes before and after, and the best of three times."""
    before = len(toposort(outputs))
    seconds = []
    for _ in range(3):
        graph = FunctionGraph(inputs, outputs)
        started = time.perf_counter()
        rewrite(graph, lambda tags: "fast_run" in tags)
        seconds.append(time.perf_counter() - started)
    print(f"{name:28} {before:7} -> {len(graph.nodes):7} nodes {min(seconds):8.3f} s")


def main() -> None:
    started = time.perf_counter()
    step = network()
    print(f"{'building the network':28} {time.perf_counter() - started:29.3f} s")
    measure("network, one step", *step)
    measure("chain", *chain(10_000))
    measure("chain", *chain(100_000))


if __name__ == "__main__":
    main()
