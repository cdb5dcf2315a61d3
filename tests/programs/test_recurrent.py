"""Recurrent networks, whole: Elman, GRU, LSTM and truncated back-propagation, beside NumPy."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import symcomp
import symcomp.tensor as T

INPUT, HIDDEN, OUTPUT, STEPS, BATCH = 3, 4, 2, 6, 5


def sigmoid(z: Any) -> Any:
    return 1 / (1 + np.exp(-z))


class Elman:
    """h = tanh(x U + h W + b); y = h V + c."""

    shapes = {"U": (INPUT, HIDDEN), "W": (HIDDEN, HIDDEN), "b": (HIDDEN,)}
    n_states = 1

    @staticmethod
    def step(x: Any, h: Any, p: Any, m: Any) -> Any:
        return (m.tanh(m.dot(x, p["U"]) + m.dot(h[0], p["W"]) + p["b"]),)


class Gru:
    """Cho et al., 2014."""

    shapes = {
        name + gate: shape
        for gate in "zrn"
        for name, shape in (("U", (INPUT, HIDDEN)), ("W", (HIDDEN, HIDDEN)), ("b", (HIDDEN,)))
    }
    n_states = 1

    @staticmethod
    def step(x: Any, h: Any, p: Any, m: Any) -> Any:
        z = m.sigmoid(m.dot(x, p["Uz"]) + m.dot(h[0], p["Wz"]) + p["bz"])
        r = m.sigmoid(m.dot(x, p["Ur"]) + m.dot(h[0], p["Wr"]) + p["br"])
        n = m.tanh(m.dot(x, p["Un"]) + m.dot(r * h[0], p["Wn"]) + p["bn"])
        return ((1 - z) * n + z * h[0],)


class Lstm:
    """Hochreiter and Schmidhuber, 1997, with the forget gate of Gers et al., 2000."""

    shapes = {
        name + gate: shape
        for gate in "ifog"
        for name, shape in (("U", (INPUT, HIDDEN)), ("W", (HIDDEN, HIDDEN)), ("b", (HIDDEN,)))
    }
    n_states = 2

    @staticmethod
    def step(x: Any, h: Any, p: Any, m: Any) -> Any:
        def gate(k: str) -> Any:
            return m.dot(x, p["U" + k]) + m.dot(h[0], p["W" + k]) + p["b" + k]

        c = m.sigmoid(gate("f")) * h[1] + m.sigmoid(gate("i")) * m.tanh(gate("g"))
        return m.sigmoid(gate("o")) * m.tanh(c), c


class Numpy:
    """The operations of a cell, for arrays."""

    tanh, dot, sigmoid = np.tanh, np.dot, staticmethod(sigmoid)


class Symbolic:
    """The operations of a cell, for variables."""

    tanh, dot, sigmoid = staticmethod(T.tanh), staticmethod(T.dot), staticmethod(T.nnet.sigmoid)


def parameters(cell: Any, seed: int = 0) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    shapes = {**cell.shapes, "V": (HIDDEN, OUTPUT), "c": (OUTPUT,)}
    return {name: 0.5 * rng.normal(size=shape) for name, shape in shapes.items()}


def cost_by_hand(cell: Any, p: Any, xs: Any, targets: Any) -> float:
    h = tuple(np.zeros((xs.shape[1], HIDDEN)) for _ in range(cell.n_states))
    total = 0.0
    for x, target in zip(xs, targets, strict=True):
        h = cell.step(x, h, p, Numpy)
        total += float(((h[0] @ p["V"] + p["c"] - target) ** 2).sum())
    return total


def cost_of(cell: Any, p: Any, xs: Any, targets: Any, **options: Any) -> Any:
    def step(x: Any, target: Any, *h: Any) -> Any:
        new = cell.step(x, h, p, Symbolic)
        return [*new, ((T.dot(new[0], p["V"]) + p["c"] - target) ** 2).sum()]

    start = [T.zeros((xs.shape[1], HIDDEN)) for _ in range(cell.n_states)]
    outputs, _ = symcomp.scan(step, [xs, targets], [*start, None], **options)
    return outputs[-1].sum()


def by_differences(f: Callable[[Any], float], at: Any) -> Any:
    slope = np.empty_like(at)
    for index in np.ndindex(at.shape):
        values = []
        for sign in (1, -1):
            moved = at.copy()
            moved[index] += sign * 1e-6
            values.append(f(moved))
        slope[index] = (values[0] - values[1]) / 2e-6
    return slope


def batch(seed: int = 1) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    return rng.normal(size=(STEPS, BATCH, INPUT)), rng.normal(size=(STEPS, BATCH, OUTPUT))


@pytest.mark.parametrize("cell", [Elman, Gru, Lstm])
def test_cost_and_gradients(cell: Any) -> None:
    values = parameters(cell)
    p = {name: symcomp.shared(value, name=name) for name, value in values.items()}
    xs, targets = T.dtensor3("xs"), T.dtensor3("targets")
    cost = cost_of(cell, p, xs, targets)
    grads = symcomp.grad(cost, [*p.values(), xs])
    f = symcomp.function([xs, targets], [cost, *grads])
    x, y = batch()
    found, *slopes = f(x, y)
    np.testing.assert_allclose(found, cost_by_hand(cell, values, x, y))
    for name, slope in zip(values, slopes, strict=False):
        wanted = by_differences(
            lambda v, name=name: cost_by_hand(cell, {**values, name: v}, x, y), values[name]
        )
        np.testing.assert_allclose(slope, wanted, rtol=1e-5, atol=1e-6)
    wanted = by_differences(lambda v: cost_by_hand(cell, values, v, y), x)
    np.testing.assert_allclose(slopes[-1], wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("cell", [Elman, Gru, Lstm])
def test_training_lowers_the_cost(cell: Any) -> None:
    """Remembering the sum of the inputs so far."""
    p = {name: symcomp.shared(value, name=name) for name, value in parameters(cell).items()}
    xs, targets = T.dtensor3("xs"), T.dtensor3("targets")
    cost = cost_of(cell, p, xs, targets) / (STEPS * BATCH)
    grads = symcomp.grad(cost, list(p.values()))
    updates = [(v, v - 0.1 * g) for v, g in zip(p.values(), grads, strict=True)]
    train = symcomp.function([xs, targets], cost, updates=updates)
    x, _ = batch()
    y = np.cumsum(x[:, :, :OUTPUT], axis=0) / 3
    costs = [float(train(x, y)) for _ in range(60)]
    assert costs[-1] < costs[0] / 3


def test_truncated_back_propagation() -> None:
    """The gradient of the last cost through k steps, from a state that is taken as given."""
    values = parameters(Elman)
    w = T.dmatrix("W")
    xs = T.dtensor3("xs")
    p = {name: T.as_tensor_variable(v) for name, v in values.items()} | {"W": w}

    def states(**options: Any) -> Any:
        step = lambda x, h: Elman.step(x, (h,), p, Symbolic)[0]  # noqa: E731
        return symcomp.scan(step, xs, T.zeros((xs.shape[1], HIDDEN)), **options)[0]

    x, _ = batch()
    for k in (1, 2, STEPS, STEPS + 3):
        slope = symcomp.grad((states(truncate_gradient=k)[-1] ** 2).sum(), w)
        found = symcomp.function([xs, w], slope)(x, values["W"])
        past = max(STEPS - k, 0)
        h = np.zeros((BATCH, HIDDEN))
        for row in x[:past]:
            (h,) = Elman.step(row, (h,), values, Numpy)

        def last(matrix: Any, h: Any = h, past: int = past) -> float:
            for row in x[past:]:
                (h,) = Elman.step(row, (h,), {**values, "W": matrix}, Numpy)
            return float((h**2).sum())

        wanted = by_differences(last, values["W"])
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-7)
