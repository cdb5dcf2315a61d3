"""Loops of every kind, without derivatives."""

from __future__ import annotations

import numpy as np

import symcomp
import symcomp.tensor as T
from symcomp.ifelse import ifelse
from symcomp.tests.golden.functions.values import numbers, positive_definite
from symcomp.tests.golden.registry import Golden, golden


@golden
def loop_of_short_steps() -> Golden:
    """Run few steps on few numbers."""
    x, start = T.dmatrix("x"), T.dvector("start")
    states = symcomp.scan(lambda v, h: h * 0.5 + v, x, start, return_updates=False)
    return Golden([x, start], states, [numbers(5, 4), numbers(4)])


@golden
def loop_with_taps() -> Golden:
    """Read taps of states and of a sequence; one output is read by no step."""
    x, start = T.dvector("x"), T.dvector("start")
    (y, z), _ = symcomp.scan(
        lambda before, now, after, y3, y1: (0.5 * y3 + y1 + before - after, y1 * now),
        {"input": x, "taps": [-1, 0, 1]},
        [{"initial": start, "taps": [-3, -1]}, None],
    )
    return Golden([x, start], [y, z], [numbers(9), numbers(3)])


@golden
def loop_until() -> Golden:
    """Stop Newton's iteration when its steps are small."""
    a = T.dvector("a")

    def step(x):
        new = (x + a / x) / 2
        return new, symcomp.until(abs(new - x).max() < 1e-10)

    x, _ = symcomp.scan(step, outputs_info=T.ones_like(a), n_steps=100)
    return Golden([a], [x[-1], x.shape[0]], [1 + abs(numbers(4))])


@golden
def nested_loops() -> Golden:
    """Nest a loop whose number of steps grows from step to step."""
    x = T.dvector("x")

    def row(i, total):
        terms = symcomp.scan(
            lambda v, s: T.sin(s) + v, x[: i + 1], T.constant(0.0), return_updates=False
        )
        return total * 0.5 + terms[-1]

    totals = symcomp.scan(row, T.arange(x.shape[0]), T.constant(0.0), return_updates=False)
    return Golden([x], totals, [numbers(5)])


@golden
def loop_with_draws() -> Golden:
    """Draw in every step."""
    stream, drift = T.random.RandomStream(seed=7), T.dscalar("drift")
    walk, updates = symcomp.scan(
        lambda x: x + drift + stream.normal(size=3), outputs_info=T.zeros(3), n_steps=10
    )
    return Golden([drift], walk[-1], [np.float64(0.1)], updates)


@golden
def loop_with_branches() -> Golden:
    """Choose by `ifelse` in every step."""
    x, a = T.dvector("x"), T.dmatrix("a")
    states = symcomp.scan(
        lambda v, h: ifelse(T.gt(v, 0), T.tanh(T.dot(a, h)), h * 0.5 + v), x, T.ones(3),
        return_updates=False,
    )  # fmt: skip
    return Golden([x, a], states, [numbers(6), numbers(3, 3)])


@golden
def loop_with_python_op() -> Golden:
    """Run a Python op in every step."""
    x = T.dvector("x")

    @symcomp.as_op([T.dscalar], [T.dscalar])
    def python_step(value):
        return np.asarray(value * 2)

    states = symcomp.scan(
        lambda v, h: T.tanh(python_step(h)) + v, x, T.constant(0.0), return_updates=False
    )
    return Golden([x], states, [numbers(5)])


@golden
def loop_of_shared_updates() -> Golden:
    """Update a shared variable in every step."""
    x = T.dvector("x")
    total = symcomp.shared(0.0, "total")
    before, updates = symcomp.scan(lambda v: (total * v, {total: total + v}), x)
    return Golden([x], before, [numbers(5)], updates)


@golden
def loop_of_trees() -> Golden:
    """Carry a dict of values, two of which are swapped in every step."""
    x = T.dmatrix("x")

    def step(carry, row):
        a, b, n = carry["a"], carry["b"], carry["n"]
        return {"a": b + row, "b": a * 0.5, "n": n + 1}, a.sum() / (n + 1)

    start = {"a": T.zeros(3), "b": T.ones(3), "n": 0}
    end, means = symcomp.loop(step, start, x)
    return Golden([x], [end["a"], end["b"], end["n"], means], [numbers(4, 3)])


@golden
def map_and_fold() -> Golden:
    """Map without recurrence, and fold from both sides."""
    x, w = T.dmatrix("x"), T.dmatrix("w")
    mapped, _ = symcomp.map(lambda row: T.tanh(T.dot(row, w)).sum(), x)
    left, _ = symcomp.foldl(lambda v, s: s * 0.5 + v, x, T.zeros(3))
    right, _ = symcomp.foldr(lambda v, s: s * T.exp(v), x, T.ones(3))
    return Golden([x, w], [mapped, left, right], [numbers(4, 3), numbers(3, 3)])


@golden
def loop_of_cumulative_functions() -> Golden:
    """Call functions along an axis, and a reduction, in every step."""
    x = T.dmatrix("x")
    states = symcomp.scan(
        lambda row, h: T.sort(T.cumsum(row) + h) / (1 + abs(h).max()), x, T.zeros(4),
        return_updates=False,
    )  # fmt: skip
    return Golden([x], states, [numbers(5, 4)])


@golden
def kalman_filter() -> Golden:
    """Multiply, solve and update small matrices in every step."""
    y, a, q, c, r = T.dmatrix("y"), *(T.dmatrix(name) for name in "aqcr")

    def step(seen, mean, cov):
        mean, cov = T.dot(a, mean), T.dot(T.dot(a, cov), a.T) + q
        s = T.dot(T.dot(c, cov), c.T) + r
        gain = T.slinalg.solve(s, T.dot(c, cov)).T
        mean = mean + T.dot(gain, seen - T.dot(c, mean))
        return mean, cov - T.dot(T.dot(gain, c), cov)

    (means, _), _ = symcomp.scan(step, y, [T.zeros(4), T.eye(4)])
    arguments = [numbers(5, 2), 0.5 * numbers(4, 4), positive_definite(4), numbers(2, 4)]
    return Golden([y, a, q, c, r], means, [*arguments, positive_definite(2)])


@golden
def loop_writing_rows() -> Golden:
    """Write one row of a carried array in every step."""
    x = T.dmatrix("x")
    tables = symcomp.scan(
        lambda i, table: T.set_subtensor(table[i], table[i - 1] + x[i]), T.arange(1, x.shape[0]), x,
        return_updates=False,
    )  # fmt: skip
    return Golden([x], tables[-1], [numbers(4, 3)])
