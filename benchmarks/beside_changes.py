"""Tasks of `beside.py`: shapes that change with every call, updates, first calls."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from beside_registry import InTurn, Work, add, call, numbers, task

import symcomp
import symcomp.tensor as T

# Lengths of arguments that differ from call to call: more than a build keeps plans for.
LENGTHS = [1 + k * 37 % 199 for k in range(199)]
# The instructions of `instructions()`.
INSTRUCTIONS = 100
# First calls that are measured together: single ones vary with the caches of the processor.
FRESH = 16


# -- shapes that change with every call


def small_network() -> tuple[list[Any], Any, list[tuple[Any, Any]]]:
    """Build inputs, loss and updates of a network of 20 inputs, 16 hidden units and 4 classes."""
    x, y = T.fmatrix(), T.ivector()
    sizes = ((20, 16), (16,), (16, 4), (4,))
    w, b, v, c = weights = [symcomp.shared(numbers(*size, dtype="float32")) for size in sizes]
    log_p = T.nnet.log_softmax(T.dot(T.tanh(T.dot(x, w) + b), v) + c)
    loss = -log_p[T.arange(y.shape[0]), y].mean()
    slopes = symcomp.grad(loss, weights)
    rate = np.float32(1e-4)
    return [x, y], loss, [(p, p - rate * g) for p, g in zip(weights, slopes, strict=True)]


def batch(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return arguments of the network."""
    return numbers(n, 20, dtype="float32"), (np.arange(n) % 4).astype("int32")


@task("shapes/network_step")
def _() -> Work:
    inputs, loss, updates = small_network()
    f = symcomp.function(inputs, loss, updates=updates, trust_input=True)
    return InTurn(f, [batch(n) for n in LENGTHS])


@task("shapes/same_network_step")
def _() -> Work:
    """Train on batches of one length, for comparison."""
    inputs, loss, updates = small_network()
    return call(inputs, loss, *batch(100), updates=updates)


def _of_lengths(build: Callable[[Any], Any]) -> Work:
    x = T.dvector()
    f = symcomp.function([x], build(x), trust_input=True)
    return InTurn(f, [(numbers(n),) for n in LENGTHS])


add("shapes/elements", partial(_of_lengths, lambda x: T.exp(x) * 2 + x))
add("shapes/reductions", partial(_of_lengths, lambda x: [x.sum(), (x - x.mean()).max()]))
add("shapes/slices_and_joins", partial(
    _of_lengths, lambda x: T.concatenate([x[::2] * 2, x[1:], x[:0]])
))  # fmt: skip


@task("shapes/loop")
def _() -> Work:
    """Change the number of steps."""
    x = T.dvector()
    states = symcomp.scan(lambda v, h: h * 0.5 + v, x, T.constant(0.0), return_updates=False)
    f = symcomp.function([x], states, trust_input=True)
    return InTurn(f, [(numbers(1 + n % 50),) for n in LENGTHS])


@task("shapes/two_in_turn")
def _() -> Work:
    x = T.dmatrix()
    f = symcomp.function([x], T.tanh(T.dot(x, x.T)).sum(axis=0), trust_input=True)
    return InTurn(f, [(numbers(4, 3),), (numbers(6, 3),)])


# -- updates and arguments that are overwritten


@task("updates/counter")
def _() -> Work:
    count = symcomp.shared(np.int64(0))
    return call([], [], updates=[(count, count + 1)])


def _sums(n: int) -> Work:
    x, total = T.dvector(), symcomp.shared(np.zeros(n))
    return call([x], [], numbers(n), updates=[(total, total * 0.9 + x)])


add("updates/in_place_10", partial(_sums, 10))
add("updates/in_place_1000000", partial(_sums, 1_000_000))


@task("updates/swap")
def _() -> Work:
    a, b = (symcomp.shared(numbers(10, seed=k)) for k in range(2))
    return call([], [], updates=[(a, b), (b, a)])


@task("updates/rows")
def _() -> Work:
    x, i = T.dmatrix(), T.lvector()
    table = symcomp.shared(numbers(1000, 8))
    updates = [(table, T.inc_subtensor(table[i], x))]
    return call([x, i], [], numbers(10, 8), np.arange(10) * 97, updates=updates)


@task("updates/momentum")
def _() -> Work:
    x = T.dvector()
    w, speed = symcomp.shared(numbers(50)), symcomp.shared(np.zeros(50))
    new = 0.9 * speed - 0.001 * symcomp.grad(((w - x) ** 2).sum(), w)
    return call([x], [], numbers(50), updates=[(speed, new), (w, w + new)])


@task("updates/held_by_others")
def _() -> Work:
    """Hold the value, so that it cannot be overwritten."""
    total = symcomp.shared(np.zeros(10))
    f = symcomp.function([], [], updates=[(total, total + 1)], trust_input=True)
    held = []

    def work() -> None:
        held[:] = [total.get_value(borrow=True)]
        f()

    return work


@task("mutable/elements")
def _() -> Work:
    x = T.dvector()
    return call([symcomp.In(x, mutable=True)], x * 0.5 + 0.1, numbers(100))


@task("mutable/products")
def _() -> Work:
    c, a = T.dmatrices("c", "a")
    arguments = numbers(4, 4) * 0.1, numbers(4, 4) * 0.1
    return call([symcomp.In(c, mutable=True), a], c * 0.5 + T.dot(a, a), *arguments)


# -- first calls, planning


def instructions() -> tuple[list[Any], Any]:
    """Build a chain of 50 products, each followed by tanh, that no rewrite shortens."""
    x, a = T.dmatrices("x", "a")
    z = x
    for _ in range(INSTRUCTIONS // 2):
        z = T.tanh(T.dot(z, a))
    return [x, a], z


@task("planning/instruction", per=INSTRUCTIONS)
def _() -> Work:
    """Run each instruction with shapes that the last calls did not have."""
    f = symcomp.function(*instructions(), trust_input=True)
    a = numbers(2, 2)
    return InTurn(f, [(numbers(n, 2), a) for n in LENGTHS])


@task("planning/same_instruction", per=INSTRUCTIONS)
def _() -> Work:
    """Run each instruction with one shape, for comparison."""
    return call(*instructions(), numbers(100, 2), numbers(2, 2))


@task("first_call/instructions", per=INSTRUCTIONS, fresh=FRESH)
def _() -> Work:
    return call(*instructions(), numbers(4, 2), numbers(2, 2))


@task("first_call/elements", fresh=FRESH)
def _() -> Work:
    x = T.dvector()
    return call([x], T.exp(x) + 1, numbers(10))


@task("first_call/network_step", fresh=FRESH)
def _() -> Work:
    inputs, loss, updates = small_network()
    return call(inputs, loss, *batch(10), updates=updates)


@task("first_call/loop", fresh=FRESH)
def _() -> Work:
    x, start = T.dmatrix(), T.dvector()
    states = symcomp.scan(lambda v, h: h * 0.5 + v, x, start, return_updates=False)
    return call([x, start], states, numbers(5, 4), numbers(4))


@task("second_call/network_step", fresh=FRESH)
def _() -> Work:
    inputs, loss, updates = small_network()
    work = call(inputs, loss, *batch(10), updates=updates)
    work()
    return work
