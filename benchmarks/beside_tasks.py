"""The tasks by which `beside.py` compares two builds: ``TASKS``, by name.

Both builds run these files; tasks use the public names of symcomp only. Tasks whose names begin
with ``slow/`` start compilers or processes.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import count

import beside_calls  # noqa: F401 - registers its tasks
import beside_changes  # noqa: F401
import beside_gathers  # noqa: F401
import beside_loops  # noqa: F401
import beside_slow  # noqa: F401
import beside_sparse  # noqa: F401
from beside_registry import TASKS, Work, add
from tasks import (
    BATCHES,
    HIDDEN,
    LAYERS,
    STEPS,
    adding_one,
    chain_of_small_ops,
    recurrence,
    trainer,
    training_step,
)

__all__ = ["TASKS"]

# Minibatches in one call of the functions that count them.
MANY = 64


def numbered(step: Callable[[int], object]) -> Work:
    """Count the calls, and pass their numbers on."""
    numbers = count()
    return lambda: step(next(numbers))


def _add_runner() -> None:
    for name, sizes in LAYERS.items():
        for batch in BATCHES:
            add(f"{name}/b{batch}", lambda s=sizes, b=batch: numbered(training_step(s, b)))
            add(
                f"{name}/b{batch}/loop",
                lambda s=sizes, b=batch: partial(trainer(s, b, counted=True).fn, n_calls=MANY),
                per=MANY,
            )
    for hidden in HIDDEN:
        for name, gradient in (("rnn_forward", False), ("rnn_grad", True)):
            add(
                f"{name}/h{hidden}",
                lambda h=hidden, g=gradient: partial(recurrence(h, gradient=g), 0),
                per=STEPS,
            )
    add("call_overhead", lambda: partial(adding_one(trust=False), 0))
    add("call_overhead_trusted", lambda: partial(adding_one(trust=True), 0))
    add("op_chain_100_small_ops", lambda: partial(chain_of_small_ops(), 0))


_add_runner()
