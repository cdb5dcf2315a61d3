"""Loops in loops to any depth, and steps of any length."""

import warnings
from typing import Any

import numpy as np
import pytest

import symcomp
import symcomp.tensor as T
from symcomp.core.walk import toposort
from symcomp.scan.op import Scan


def nested(depth: int, h: Any, w: Any) -> Any:
    """sin(w h), twice in each of two steps of each of two steps ..."""
    if depth == 0:
        return T.sin(w * h)
    return symcomp.scan(lambda h: nested(depth - 1, h, w), None, h, n_steps=2)[0][-1]


def by_hand(depth: int, h: float, w: float) -> float:
    if depth == 0:
        return float(np.sin(w * h))
    return by_hand(depth - 1, by_hand(depth - 1, h, w), w)


@pytest.mark.parametrize("mode", ["FAST_RUN", "FAST_COMPILE"])
@pytest.mark.parametrize("depth", [2, 3, 5])
def test_loops_in_loops(depth: int, mode: str) -> None:
    h, w = T.dscalar("h"), T.dscalar("w")
    y = nested(depth, h, w)
    slopes = symcomp.grad(y, [h, w])
    second = symcomp.Rop(slopes[1], h, T.constant(1.0))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        f = symcomp.function([h, w], [y, *slopes, second], mode=mode)
    value, dh, dw, dhw = f(0.5, 0.9)
    np.testing.assert_allclose(value, by_hand(depth, 0.5, 0.9))
    e = 1e-6
    np.testing.assert_allclose(
        dh, (by_hand(depth, 0.5 + e, 0.9) - by_hand(depth, 0.5 - e, 0.9)) / (2 * e), rtol=1e-6
    )
    np.testing.assert_allclose(
        dw, (by_hand(depth, 0.5, 0.9 + e) - by_hand(depth, 0.5, 0.9 - e)) / (2 * e), rtol=1e-6
    )
    np.testing.assert_allclose(dhw, (f(0.5 + e, 0.9)[2] - f(0.5 - e, 0.9)[2]) / (2 * e), rtol=1e-5)


def test_depth_of_sequences() -> None:
    """A sum over all axes, each by a loop of its own, rows and states passed inwards."""
    x = T.tensor("x", shape=(None,) * 4)

    def total(x: Any, start: Any) -> Any:
        if x.ndim == 0:
            return start + T.sin(x)
        return symcomp.scan(lambda row, s: total(row, s), x, start)[0][-1]

    y = total(x, T.constant(0.0))
    f = symcomp.function([x], [y, symcomp.grad(y, x)])
    value = np.random.default_rng(0).normal(size=(2, 3, 1, 2))
    found, slope = f(value)
    np.testing.assert_allclose(found, np.sin(value).sum())
    np.testing.assert_allclose(slope, np.cos(value))


def test_long_steps() -> None:
    """More ops than Python's stack is deep; work moved out of the loop is no endless rewriting."""
    n, h = 1050, T.dscalar("h")

    def step(h: Any) -> Any:
        for i in range(n):
            h = T.sin(h) * 1.2 if i % 2 else h + 0.001 * i
        return h

    y, _ = symcomp.scan(step, None, h, n_steps=2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        f = symcomp.function([h], [y[-1], symcomp.Rop(y[-1], h, T.constant(1.0))])
        g = symcomp.function([h], symcomp.grad(y[-1], h), mode="FAST_COMPILE")
    value, slope = 0.3, 1.0
    for _ in range(2):
        for i in range(n):
            slope *= 1.2 * np.cos(value) if i % 2 else 1.0
            value = np.sin(value) * 1.2 if i % 2 else value + 0.001 * i
    found, pushed = f(0.3)
    np.testing.assert_allclose([found, pushed, g(0.3)], [value, slope, slope], rtol=1e-7)


def test_gauss_newton_products_are_two_loops_in_a_function() -> None:
    x, h, w, v = T.dmatrix("x"), T.dvector("h"), T.dmatrix("w"), T.dmatrix("v")
    states, _ = symcomp.scan(lambda x, h: T.tanh(x + T.dot(h, w)), x, h)
    product = symcomp.Lop(states, w, symcomp.Rop(states, w, v))
    f = symcomp.function([x, h, w, v], product)
    assert sum(isinstance(n.op, Scan) for n in f.maker.fgraph.toposort()) == 2
    # With the cost and its gradient, too: one loop forwards, one backwards.
    cost = (states**2).sum()
    f = symcomp.function([x, h, w, v], [cost, symcomp.grad(cost, w), product])
    loops = [n for n in f.maker.fgraph.toposort() if isinstance(n.op, Scan)]
    assert len(loops) == 2
    inner = [n for loop in loops for n in toposort(loop.op.body.outputs)]
    assert not any(isinstance(n.op, Scan) for n in inner)
