"""Fused and unfused graphs beside the same formulas written by hand in NumPy.

    python benchmarks/fusion.py [--seconds S]

Expressions of two vectors, their sums, and functions of the rows of a matrix, in float64. All are
measured in turn, in one process, without the checks of arguments that a compiled function makes;
the best of several windows counts. Pin the process to one core.
"""

from __future__ import annotations

import argparse
import timeit
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import symcomp
import symcomp.tensor as T
from symcomp.core.graph import FunctionGraph
from symcomp.rewrite.phases import rewrite
from symcomp.vm.lower import lower
from symcomp.vm.machine import PythonMachine

LENGTHS = (10, 1000, 1_000_000)
ROWS = ((10, 10), (1000, 10), (10_000, 100), (1000, 1000))


@dataclass(frozen=True)
class Case:
    """A formula of two arrays x and y: for symbols, and for arrays in NumPy."""

    name: str
    symbolic: Callable[[Any, Any], list[Any]]
    by_hand: Callable[[Any, Any], Any]


def polynomial(x: Any, y: Any) -> Any:
    """Five operations of next to no work each."""
    return (x * 3.0 + y) * x - y * y


def layer_norm(x: Any, y: Any) -> Any:
    """Rows of x with mean 0 and variance 1, scaled."""
    centred = x - x.mean(axis=1, keepdims=True)
    return centred / (np.square(centred).mean(axis=1, keepdims=True) + 1e-5) ** 0.5 * y


def symbolic_layer_norm(x: Any, y: Any) -> list[Any]:
    """``layer_norm``."""
    centred = x - x.mean(axis=1, keepdims=True)
    return [centred / T.sqrt(T.sqr(centred).mean(axis=1, keepdims=True) + 1e-5) * y]


def softmax(x: Any) -> Any:
    """Return softmax of the rows."""
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def cross_entropy(x: Any, y: Any) -> Any:
    """Return the cross-entropy of softmax(x) and distributions y, and its gradient."""
    p = softmax(x)
    return -(y * np.log(p)).sum() / len(x), (p * y.sum(axis=1, keepdims=True) - y) / len(x)


def symbolic_cross_entropy(x: Any, y: Any) -> list[Any]:
    """``cross_entropy``."""
    loss = -(y * T.nnet.log_softmax(x)).sum(axis=1).mean()
    return [loss, symcomp.grad(loss, x)]


def labels_of(x: Any, y: Any) -> Any:
    """Make a label for each row from the first column of y."""
    return (y[:, 0] * 10).astype("int64")


def label_loss(x: Any, y: Any) -> Any:
    """Return the cross entropy of softmax(x) and labels, and its gradient."""
    p, labels, rows = softmax(x), labels_of(x, y), np.arange(len(x))
    loss = -np.log(p[rows, labels]).mean()
    p[rows, labels] -= 1
    return loss, p / len(x)


def symbolic_label_loss(x: Any, y: Any) -> list[Any]:
    """``label_loss``."""
    loss = T.nnet.categorical_crossentropy(T.nnet.softmax(x), labels_of(x, y)).mean()
    return [loss, symcomp.grad(loss, x)]


ELEMENTS = (
    Case("polynomial", lambda x, y: [polynomial(x, y)], polynomial),
    Case(
        "exp(-(x-y)^2) tanh x",
        lambda x, y: [T.exp(-T.sqr(x - y)) * T.tanh(x)],
        lambda x, y: np.exp(-np.square(x - y)) * np.tanh(x),
    ),
    Case(
        "sum (x-y)^2",
        lambda x, y: [T.sqr(x - y).sum()],
        lambda x, y: np.square(x - y).sum(),
    ),
    Case(
        "polynomial, gradient",
        lambda x, y: [polynomial(x, y), *symcomp.grad(polynomial(x, y).sum(), [x, y])],
        lambda x, y: (polynomial(x, y), 6.0 * x + y, x - 2.0 * y),
    ),
)
LINES = (
    Case("layer norm", symbolic_layer_norm, layer_norm),
    Case("softmax(x + y)", lambda x, y: [T.nnet.softmax(x + y)], lambda x, y: softmax(x + y)),
    Case("cross entropy", symbolic_cross_entropy, cross_entropy),
    Case("with labels", symbolic_label_loss, label_loss),
)


def machines(case: Case, inputs: list[Any]) -> list[PythonMachine]:
    """Return machines for the rewritten graph, unfused and fused."""
    found = []
    for fused in (False, True):
        graph = FunctionGraph(inputs, case.symbolic(*inputs))
        left_out = set() if fused else {"labels", "fusion"}
        rewrite(graph, lambda tags, without=left_out: "fast_run" in tags and not tags & without)
        found.append(PythonMachine(lower(graph)))
    return found


def seconds_of(call: Callable[[], object], seconds: float) -> float:
    """Return the least time of a call in windows that take about ``seconds`` together."""
    once = min(timeit.repeat(call, number=1, repeat=3))
    number = max(int(seconds / 5 / once), 1)
    return min(timeit.repeat(call, number=number, repeat=5)) / number


def measure(case: Case, shape: tuple[int, ...], inputs: list[Any], seconds: float) -> None:
    """Print one line of the table."""
    rng = np.random.default_rng(0)
    values = [rng.random(shape), rng.random(shape)]
    unfused, fused = (
        seconds_of(lambda machine=machine: machine.run(values), seconds)  # type: ignore[misc]
        for machine in machines(case, inputs)
    )
    hand = seconds_of(lambda: case.by_hand(*values), seconds)
    size = " x ".join(map(str, shape))
    print(
        f"{case.name:22} {size:>11} {unfused * 1e6:12.1f} {fused * 1e6:12.1f} {hand * 1e6:12.1f}"
        f" {unfused / fused:9.2f} {hand / fused:9.2f}"
    )


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=0.3, help="for each number")
    seconds = parser.parse_args().seconds
    print(
        f"{'':22} {'shape':>11} {'unfused, us':>12} {'fused, us':>12} {'by hand, us':>12}", end=""
    )
    print(f" {'unfused/':>9} {'by hand/':>9}")
    for case in ELEMENTS:
        for n in LENGTHS:
            measure(case, (n,), [T.dvector("x"), T.dvector("y")], seconds)
    for case in LINES:
        for shape in ROWS:
            measure(case, shape, [T.dmatrix("x"), T.dmatrix("y")], seconds)


if __name__ == "__main__":
    main()
