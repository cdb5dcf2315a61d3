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

from tasks import (
    BATCHES,
    HIDDEN,
    LAYERS,
    STEPS,
    adding_one,
    best_rate,
    chain_of_small_ops,
    recurrence,
    trainer,
    training_step,
)

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
        for task in ("rnn_forward", "rnn_grad"):
            step = recurrence(hidden, gradient=task == "rnn_grad")
            emit(f"{task}/h{hidden}", 1e6 / best_rate(step, seconds=0.2) / STEPS, "us")


def calls() -> None:
    """Microseconds per call of functions that compute little."""
    steps = {
        "call_overhead": adding_one(trust=False),
        "call_overhead_trusted": adding_one(trust=True),
        "op_chain_100_small_ops": chain_of_small_ops(),
    }
    for task, step in steps.items():
        emit(task, 1e6 / best_rate(step, seconds=0.2), "us")


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
