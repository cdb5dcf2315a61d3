"""Tasks of `beside.py`: loops."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from beside_registry import Work, add, call, numbers, task

import symcomp
import symcomp.tensor as T
from symcomp.ifelse import ifelse


def _loop(step: Callable[..., Any], steps: int, *, width: int = 4, **options: Any) -> Work:
    """Prepare a loop over rows, of which all states are returned."""
    x, start = T.dmatrix(), T.dvector()
    states = symcomp.scan(step, x, start, return_updates=False, **options)
    return call([x, start], states, numbers(steps, width), numbers(width))


def _light(row: Any, state: Any) -> Any:
    return state * 0.5 + row


add("scan/short", partial(_loop, _light, 5))
add("scan/long", partial(_loop, _light, 1000), per=1000)
add("scan/long_wide", partial(_loop, _light, 1000, width=1000), per=1000)


@task("scan/short_last_state")
def _() -> Work:
    x, start = T.dmatrix(), T.dvector()
    states = symcomp.scan(_light, x, start, return_updates=False)
    return call([x, start], states[-1], numbers(5, 4), numbers(4))


@task("scan/written_state", per=100_000)
def _() -> Work:
    start, n = T.dvector(), T.lscalar()
    states = symcomp.scan(
        lambda i, table: T.set_subtensor(table[i], table[i - 1] + 1),
        T.arange(1, n), start, return_updates=False,
    )  # fmt: skip
    return call([start, n], states[-1], np.zeros(100_000), np.int64(100_000))


@task("scan/branches", per=100)
def _() -> Work:
    return _loop(lambda v, h: ifelse(T.gt(v[0], 0), T.tanh(h + v), h * 0.5), 100)


@task("scan/until", per=100)
def _() -> Work:
    x = T.dvector()
    states, _ = symcomp.scan(
        lambda h: (h * 0.9, symcomp.until(T.lt(h[0], 0.9**99))), outputs_info=x, n_steps=1000
    )
    return call([x], states[-1], np.ones(4))


@task("scan/until_short")
def _() -> Work:
    x = T.dvector()
    states, _ = symcomp.scan(
        lambda h: (h * 0.5, symcomp.until(T.lt(h[0], 0.1))), outputs_info=x, n_steps=20
    )
    return call([x], states, np.ones(4))


@task("scan/nested", per=400)
def _() -> Work:
    x = T.dmatrix()

    def outer(row: Any, total: Any) -> Any:
        inner = symcomp.scan(lambda v, s: T.sin(s) + v, row, T.constant(0.0), return_updates=False)
        return total * 0.5 + inner[-1]

    totals = symcomp.scan(outer, x, T.constant(0.0), return_updates=False)
    return call([x], totals[-1], numbers(20, 20))


@task("scan/taps", per=100)
def _() -> Work:
    x, start = T.dvector(), T.dvector()
    states, _ = symcomp.scan(
        lambda before, now, y2, y1: 0.5 * y2 + 0.2 * y1 + before - now,
        {"input": x, "taps": [-1, 0]},
        {"initial": start, "taps": [-2, -1]},
    )
    return call([x, start], states, numbers(101), numbers(2))


@task("scan/draws", per=100)
def _() -> Work:
    stream = T.random.RandomStream(seed=1)
    walk, updates = symcomp.scan(
        lambda x: x + stream.normal(size=4), outputs_info=T.zeros(4), n_steps=100
    )
    return call([], walk[-1], updates=updates)


@task("scan/python_op", per=20)
def _() -> Work:
    @symcomp.as_op([T.dvector], [T.dvector])
    def half(value: Any) -> Any:
        return value * 0.5

    return _loop(lambda v, h: half(h) + v, 20)


@task("scan/products_and_solve", per=50)
def _() -> Work:
    """Run a Kalman filter of four states."""
    y, a, c = T.dmatrix(), T.dmatrix(), T.dmatrix()

    def step(seen: Any, mean: Any, cov: Any) -> Any:
        mean, cov = T.dot(a, mean), T.dot(T.dot(a, cov), a.T) + T.eye(4)
        s = T.dot(T.dot(c, cov), c.T) + T.eye(2)
        gain = T.slinalg.solve(s, T.dot(c, cov)).T
        mean = mean + T.dot(gain, seen - T.dot(c, mean))
        return mean, cov - T.dot(T.dot(gain, c), cov)

    (means, _), _ = symcomp.scan(step, y, [T.zeros(4), T.eye(4)])
    return call([y, a, c], means, numbers(50, 2), numbers(4, 4) / 2, numbers(2, 4))


def _loop_gradient(steps: int, **options: Any) -> Work:
    x, start, w = T.dmatrix(), T.dvector(), T.dmatrix()
    states = symcomp.scan(
        lambda v, h: T.tanh(T.dot(h, w) + v), x, start, return_updates=False, **options
    )
    slopes = symcomp.grad((states[-1] ** 2).sum(), [start, w])
    return call([x, start, w], slopes, numbers(steps, 4), numbers(4), numbers(4, 4))


add("scan/gradient_short", partial(_loop_gradient, 5))
add("scan/gradient_long", partial(_loop_gradient, 1000), per=1000)
add("scan/gradient_checkpoints", partial(_loop_gradient, 1000, checkpoint="auto"), per=1000)
