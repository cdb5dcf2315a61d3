"""Recurrent networks: steps of training and states."""

from __future__ import annotations

import numpy as np

import symcomp
import symcomp.tensor as T
from symcomp.tests.golden.functions.training import cross_entropy, labels_of
from symcomp.tests.golden.functions.values import descent, numbers, parameter
from symcomp.tests.golden.registry import Golden, golden


@golden
def rnn_forward() -> Golden:
    """Return the last state alone, as `rnn_forward` of `benchmarks/runner.py`."""
    x, w, start = T.fmatrix("x"), parameter("w", 4, 4), parameter("start", 4)
    states = symcomp.scan(
        lambda v, h, w: T.tanh(v + T.dot(h, w)), x, start, w, return_updates=False
    )
    return Golden([x], states[-1], [numbers(5, 4, dtype="float32")])


@golden
def rnn_step() -> Golden:
    """Train on batches of sequences, by the label of each sequence."""
    x, y = T.ftensor3("x"), T.ivector("y")
    u, w, v = parameter("u", 3, 4), parameter("w", 4, 4), parameter("v", 4, 2)
    start = T.zeros((x.shape[1], 4), "float32")
    states = symcomp.scan(
        lambda row, h: T.tanh(T.dot(row, u) + T.dot(h, w)), x, start, return_updates=False
    )
    loss = cross_entropy(T.dot(states[-1], v), y)
    arguments = [numbers(5, 2, 3, dtype="float32"), labels_of(2, 2)]
    return Golden([x, y], loss, arguments, descent(loss, [u, w, v]))


@golden
def lstm_step() -> Golden:
    """Train an LSTM whose gradients are clipped by their norm."""
    x, y = T.ftensor3("x"), T.ftensor3("y")
    w, b, v = parameter("w", 3 + 4, 16), parameter("b", 16), parameter("v", 4, 2)
    zeros = T.zeros((x.shape[1], 4), "float32")

    def step(row, h, c):
        gates = T.dot(T.concatenate([row, h], axis=1), w) + b
        i, f, o = (T.nnet.sigmoid(gates[:, 4 * k : 4 * k + 4]) for k in range(3))
        c = f * c + i * T.tanh(gates[:, 12:])
        return o * T.tanh(c), c

    (h, _), _ = symcomp.scan(step, x, [zeros, zeros])
    loss = ((T.dot(h, v) - y) ** 2).mean()
    parameters = [w, b, v]
    slopes = symcomp.grad(loss, parameters)
    norm = T.sqrt(sum((g**2).sum() for g in slopes))
    scale = np.float32(0.1) * T.minimum(1, 5 / norm)
    updates = {p: p - T.cast(scale, "float32") * g for p, g in zip(parameters, slopes, strict=True)}
    arguments = [numbers(4, 2, 3, dtype="float32"), numbers(4, 2, 2, dtype="float32")]
    return Golden([x, y], loss, arguments, updates)


@golden
def truncated_rnn_gradient() -> Golden:
    x, w = T.dmatrix("x"), T.dmatrix("w")
    states = symcomp.scan(
        lambda v, h: T.tanh(v + T.dot(h, w)), x, T.zeros(3), truncate_gradient=2,
        return_updates=False,
    )  # fmt: skip
    slope = symcomp.grad((states[-1] ** 2).sum(), w)
    return Golden([x, w], slope, [numbers(6, 3), numbers(3, 3)])
