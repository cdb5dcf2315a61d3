"""The overhead of a call: microseconds for functions that compute next to nothing.

    python benchmarks/calls.py                   symcomp, and the same by hand in NumPy
    python benchmarks/calls.py --peers PYTHON    with PyTensor and JAX, where PYTHON has them

Every system runs in a process of its own, in turn, several times; the best time counts. Pin the
process to one core.
"""

from __future__ import annotations

import argparse
import importlib
import json
import subprocess
import sys
import timeit
from collections.abc import Callable
from typing import Any

import numpy as np

TASKS = {
    "add": "x + 1 on ten doubles",
    "add trusted": "the same, arguments unchecked",
    "chain": "tanh(z A), fifty times, A of 2 x 2",
    "counter": "ten doubles in a shared variable, plus 1",
    "counter many": "the same, a thousand times by one call",
}
MANY = 1000
TEN = np.arange(10.0)
SQUARE = 0.9 * np.eye(2)

Work = Callable[[], object]


def best(work: Work, calls: int = 1) -> float:
    """Microseconds per call: the least of many repetitions, of a few milliseconds each."""
    timer = timeit.Timer(work)
    once = max(timer.timeit(10) / 10, 1e-8)
    number = max(1, int(0.003 / once))
    return 1e6 * min(timer.repeat(60, number)) / number / calls


def by_hand() -> dict[str, Work]:
    """With NumPy alone."""
    counter = np.zeros(10)

    def chain() -> np.ndarray:
        z = SQUARE
        for _ in range(50):
            z = np.tanh(z @ SQUARE)
        return z

    return {
        "add": lambda: TEN + 1,
        "chain": chain,
        "counter": lambda: np.add(counter, 1, out=counter),
    }


def compiled(name: str) -> dict[str, Work]:
    """With symcomp or PyTensor, which are asked in the same words."""
    package = importlib.import_module(name)
    tensor = importlib.import_module(f"{name}.tensor")
    options = {} if name == "symcomp" else {"mode": package.compile.mode.Mode("cvm", "fast_run")}
    x, a = tensor.dvector("x"), tensor.dmatrix("a")
    z = a
    for _ in range(50):
        z = tensor.tanh(tensor.dot(z, a))
    checked = package.function([x], x + 1, **options)
    trusted = package.function([x], x + 1, trust_input=True, **options)
    chain = package.function([a], z, trust_input=True, **options)
    counter = package.shared(np.zeros(10))
    count = package.function([], [], updates=[(counter, counter + 1)], **options)
    many = count.fn if name == "symcomp" else count.vm
    return {
        "add": lambda: checked(TEN),
        "add trusted": lambda: trusted(TEN),
        "chain": lambda: chain(SQUARE),
        "counter": count,
        "counter many": lambda: many(n_calls=MANY),
    }


def jitted() -> dict[str, Work]:
    """With JAX."""
    jax: Any = importlib.import_module("jax")
    jax.config.update("jax_enable_x64", True)

    def chain(a: Any) -> Any:
        z = a
        for _ in range(50):
            z = jax.numpy.tanh(z @ a)
        return z

    add, chained = jax.jit(lambda x: x + 1), jax.jit(chain)
    return {
        "add": lambda: add(TEN).block_until_ready(),
        "chain": lambda: chained(SQUARE).block_until_ready(),
    }


SYSTEMS: dict[str, Callable[[], dict[str, Work]]] = {
    "numpy": by_hand,
    "symcomp": lambda: compiled("symcomp"),
    "pytensor": lambda: compiled("pytensor"),
    "jax": jitted,
}


def measured(system: str) -> dict[str, float]:
    """Return the time of every task that the system has."""
    return {
        task: best(work, MANY if task == "counter many" else 1)
        for task, work in SYSTEMS[system]().items()
    }


def table(times: dict[str, dict[str, float]]) -> str:
    """Return the times in Markdown."""
    lines = [f"| microseconds per call | {' | '.join(times)} |", "|---" * (len(times) + 1) + "|"]
    for task, meaning in TASKS.items():
        cells = [f"{row[task]:.2f}" if task in row else "" for row in times.values()]
        lines.append(f"| {task}: {meaning} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    """Print a table in Markdown."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--peers", help="an interpreter that has PyTensor and JAX")
    parser.add_argument("--rounds", type=int, default=3, help="how often each system runs")
    parser.add_argument("--system", choices=SYSTEMS, help="measure this one and print JSON")
    arguments = parser.parse_args()
    if arguments.system:
        print(json.dumps(measured(arguments.system)))
        return
    interpreters = {"numpy": sys.executable, "symcomp": sys.executable}
    if arguments.peers:
        interpreters |= {"pytensor": arguments.peers, "jax": arguments.peers}
    times: dict[str, dict[str, float]] = {system: {} for system in interpreters}
    for _ in range(arguments.rounds):
        for system, interpreter in interpreters.items():
            command = [interpreter, __file__, "--system", system]
            done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
            for task, found in json.loads(done.stdout.splitlines()[-1]).items():
                times[system][task] = min(found, times[system].get(task, found))
    print(table(times))


if __name__ == "__main__":
    main()
