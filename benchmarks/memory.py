"""Memory of an 8-layer network, in training and in prediction, with and without a storage plan.

    python benchmarks/memory.py [--batch B] [--width W]

The table is after figure 7 of Chen et al., 2015, "MXNet: a flexible and efficient machine
learning library": the internal memory of a network, which is that of all values but arguments,
parameters and results, if every value has an array of its own for the whole call; if results are
written over inputs that die; if arrays that died are used again; and with both. The last columns
are the most bytes at a time, results included: if new values of parameters get arrays of their own;
as planned, where they are written over the old ones; and as allocated in a call, temporary arrays
of the kernels included.
"""

from __future__ import annotations

import argparse
import tracemalloc
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np

import symcomp
import symcomp.tensor as T
from symcomp.compile.memory import value_shapes
from symcomp.vm.lower import lower
from symcomp.vm.memory import measure

LAYERS = 8
NONLINEARITIES: dict[str, Callable[[Any], Any]] = {
    "tanh": T.tanh,
    "sigmoid": T.nnet.sigmoid,
    "relu": lambda x: T.maximum(x, np.float32(0)),
}


MODES = {"op by op": symcomp.Mode().excluding("fusion"), "fused": symcomp.Mode()}


def network(
    width: int, nonlinearity: Callable[[Any], Any], training: bool, mode: symcomp.Mode
) -> symcomp.Function:
    """Layers of equal width; the loss of training is the mean square of the error."""
    rng = np.random.default_rng(0)
    x, target = T.fmatrix("x"), T.fmatrix("target")
    weights = [
        symcomp.shared(rng.normal(0, width**-0.5, (width, width)).astype(np.float32), name=f"w{i}")
        for i in range(LAYERS)
    ]
    biases = [symcomp.shared(np.zeros(width, np.float32), name=f"b{i}") for i in range(LAYERS)]
    h = x
    for w, b in zip(weights, biases, strict=True):
        h = nonlinearity(T.dot(h, w) + b)
    if not training:
        return symcomp.function([x], h, mode=mode)
    loss = T.sqr(h - target).mean()
    parameters = [*weights, *biases]
    grads = symcomp.grad(loss, parameters)
    updates = [(p, p - np.float32(0.1) * g) for p, g in zip(parameters, grads, strict=True)]
    return symcomp.function([x, target], loss, updates=updates, mode=mode)


def internal_memory(f: symcomp.Function, examples: list[Any]) -> list[int]:
    """Bytes with: nothing reused, in-place, sharing, both; and the peak of the latter."""
    _, shapes = value_shapes(f.maker, f.program, examples)
    found = []
    for inplace, sharing in ((False, False), (True, False), (False, True), (True, True)):
        program = lower(f.maker.fgraph, inplace=inplace, sharing=sharing)
        found.append(measure(program, shapes, sharing=sharing).internal)
    return [*found, measure(program, shapes).peak]


def allocated(f: symcomp.Function, examples: list[Any]) -> int:
    """Return the most bytes that are allocated during a call."""
    f(*examples)
    tracemalloc.start()
    f(*examples)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


def main() -> None:
    """Print a table in Markdown."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--batch", type=int, default=512)
    parser.add_argument("--width", type=int, default=512)
    options = parser.parse_args()
    example = np.ones((options.batch, options.width), np.float32)
    print("| MB | none | in-place | sharing | both | none/both | peak, new | peak | allocated |")
    print("|---|---|---|---|---|---|---|---|---|")
    for task, name, mode in product(("training", "prediction"), NONLINEARITIES, MODES):
        training = task == "training"
        f = network(options.width, NONLINEARITIES[name], training, MODES[mode])
        examples = [example] * (1 + training)
        columns = internal_memory(f, examples)
        columns += [f.memory_report(*examples).peak, allocated(f, examples)]
        shown = [f"{n / 1e6:.2f}" for n in columns]
        shown.insert(4, f"{columns[0] / max(columns[3], 1):.1f}")
        print(f"| {task}, {name}, {mode} | {' | '.join(shown)} |", flush=True)


if __name__ == "__main__":
    main()
