"""Every task of tasks.py by symcomp, a line of JSON for each, to be put beside those of its peers.

    python benchmarks/runner.py > symcomp.jsonl

A line is {"peer": "symcomp", "task": ..., "value": ..., "unit": ...}. Rates ("/s") are better high,
times ("us") better low. Pin the process to one core, with OMP_NUM_THREADS=1, and run the peers in
the same sitting; benchmarks/figures.py draws them together.
"""

from __future__ import annotations

import argparse
import json
import sys

import numpy as np
from tasks import (
    BATCHES,
    HIDDEN,
    LAYERS,
    STEPS,
    best_rate,
    recurrent_arrays,
    trainer,
    training_step,
)

import symcomp
import symcomp.tensor as T
from symcomp.core.node import Variable

# Minibatches in one call of the functions that count them.
MANY = 64


def emit(task: str, value: float, unit: str) -> None:
    """Print the figure of one task."""
    row = {"peer": "symcomp", "task": task, "value": value, "unit": unit}
    print(json.dumps(row), flush=True)


def training() -> None:
    """Examples per second, by one call for each minibatch and by one for many."""
    for name, sizes in LAYERS.items():
        for batch in BATCHES:
            emit(f"{name}/b{batch}", batch * best_rate(training_step(sizes, batch)), "/s")
            f = trainer(sizes, batch, counted=True)
            calls = best_rate(lambda k, f=f: f.fn(n_calls=MANY))
            emit(f"{name}/b{batch}/loop", MANY * batch * calls, "/s")


def loops() -> None:
    """Microseconds per step of a recurrent network, and of its gradient."""
    for hidden in HIDDEN:
        w, x, h0 = recurrent_arrays(hidden)
        weights, start, xs = symcomp.shared(w), symcomp.shared(h0), T.fmatrix()
        states = symcomp.scan(_recurrent_step, xs, start, weights, return_updates=False)
        last = states[-1]
        gradient = symcomp.grad(last.sum(), weights)
        for task, output in (("rnn_forward", last), ("rnn_grad", gradient)):
            f = symcomp.function([xs], output, trust_input=True)
            calls = best_rate(lambda k, f=f, x=x: f(x), seconds=0.2)
            emit(f"{task}/h{hidden}", 1e6 / calls / STEPS, "us")


def _recurrent_step(v: Variable, h: Variable, w: Variable) -> Variable:
    return T.tanh(v + T.dot(h, w))


def calls() -> None:
    """Microseconds per call of functions that compute little."""
    x, ten = T.dvector(), np.ones(10)
    for task, trust in (("call_overhead", False), ("call_overhead_trusted", True)):
        f = symcomp.function([x], x + 1, trust_input=trust)
        emit(task, 1e6 / best_rate(lambda k, f=f: f(ten), seconds=0.2), "us")
    a, square = T.dmatrix(), np.eye(2) * 0.9
    z = a
    for _ in range(50):
        z = T.tanh(T.dot(z, a))
    chain = symcomp.function([a], z, trust_input=True)
    emit("op_chain_100_small_ops", 1e6 / best_rate(lambda k: chain(square), seconds=0.2), "us")


TASKS = {"training": training, "loops": loops, "calls": calls}


def main() -> None:
    """Run the kinds of tasks named on the command line, or all."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("kinds", nargs="*", choices=[*TASKS, []], help="all, if none is named")
    for kind in parser.parse_args().kinds or TASKS:
        print(f"{kind} ...", file=sys.stderr)
        TASKS[kind]()


if __name__ == "__main__":
    main()
