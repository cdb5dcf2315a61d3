"""Steps of training: networks of dense layers, convolutions and attention, and their updates."""

from __future__ import annotations

import numpy as np

import symcomp
import symcomp.tensor as T
from symcomp.tensor.signal import pool
from symcomp.tests.golden.functions.values import descent, numbers, parameter
from symcomp.tests.golden.registry import Golden, golden

RATE = np.float32(0.1)


def cross_entropy(scores, labels):
    """Build the mean loss of labels, by the log-probabilities of each row."""
    log_p = T.nnet.log_softmax(scores)
    return -log_p[T.arange(labels.shape[0]), labels].mean()


def labels_of(n: int, classes: int) -> np.ndarray:
    """Return labels 0, 1, 2, ... as int32."""
    return (np.arange(n) % classes).astype("int32")


@golden
def logistic_regression_step() -> Golden:
    x, y = T.fmatrix("x"), T.ivector("y")
    w, b = parameter("w", 8, 3), parameter("b", 3)
    scores = T.dot(x, w) + b
    loss = cross_entropy(scores, y)
    errors = T.neq(T.argmax(scores, axis=1), y).mean()
    arguments = [numbers(6, 8, dtype="float32"), labels_of(6, 3)]
    return Golden([x, y], [loss, errors], arguments, descent(loss, [w, b]))


@golden
def mlp_step_on_shared_batches() -> Golden:
    """Train on slices of shared arrays, as `benchmarks/tasks.py` does."""
    images = parameter("images", 24, 8)
    labels = symcomp.shared(labels_of(24, 3), "labels")
    weights = [parameter("w1", 8, 5), parameter("b1", 5), parameter("w2", 5, 3), parameter("b2", 3)]
    number = T.lscalar("number")
    part = slice(number * 6, (number + 1) * 6)
    h = T.tanh(T.dot(images[part], weights[0]) + weights[1])
    log_p = T.nnet.log_softmax(T.dot(h, weights[2]) + weights[3])
    loss = -log_p[T.arange(6), labels[part]].mean()
    return Golden([number], loss, [np.int64(1)], descent(loss, weights))


@golden
def mlp_momentum_dropout_step() -> Golden:
    """Train with relu, dropout, weight decay and Nesterov's momentum."""
    x, y = T.fmatrix("x"), T.ivector("y")
    stream = T.random.RandomStream(seed=3)
    weights = [parameter("w1", 8, 6), parameter("w2", 6, 5), parameter("w3", 5, 3)]
    h = x
    for w in weights[:-1]:
        h = T.nnet.relu(T.dot(h, w))
        h = h * stream.bernoulli(0.5, size=h.shape, dtype="float32") * np.float32(2)
    loss = cross_entropy(T.dot(h, weights[-1]), y)
    loss += np.float32(1e-3) * sum((w**2).sum() for w in weights)
    updates = {}
    for w, g in zip(weights, symcomp.grad(loss, weights), strict=True):
        speed = symcomp.shared(np.zeros_like(w.get_value()), f"{w.name}_speed")
        new = np.float32(0.9) * speed - RATE * g
        updates[speed], updates[w] = new, w + np.float32(0.9) * new - RATE * g
    return Golden([x, y], loss, [numbers(4, 8, dtype="float32"), labels_of(4, 3)], updates)


@golden
def adam_step() -> Golden:
    x, y = T.dmatrix("x"), T.dvector("y")
    w, b = parameter("w", 5, dtype="float64"), parameter("b", dtype="float64")
    loss = ((T.dot(x, w) + b - y) ** 2).mean()
    t = symcomp.shared(0.0, "t")
    updates = {t: t + 1}
    for p, g in zip([w, b], symcomp.grad(loss, [w, b]), strict=True):
        m = symcomp.shared(np.zeros_like(p.get_value()), f"{p.name}_mean")
        v = symcomp.shared(np.zeros_like(p.get_value()), f"{p.name}_square")
        updates[m], updates[v] = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g**2
        rate = 0.01 * T.sqrt(1 - 0.999 ** (t + 1)) / (1 - 0.9 ** (t + 1))
        updates[p] = p - rate * updates[m] / (T.sqrt(updates[v]) + 1e-8)
    return Golden([x, y], loss, [numbers(4, 5), numbers(4)], updates)


@golden
def autoencoder_step() -> Golden:
    """Train with tied weights and noise at the input."""
    x = T.fmatrix("x")
    w, b, c = parameter("w", 8, 5), parameter("b", 5), parameter("c", 8)
    noisy = x * T.random.RandomStream(seed=1).binomial(1, 0.7, size=x.shape, dtype="float32")
    h = T.nnet.sigmoid(T.dot(noisy, w) + b)
    z = T.nnet.sigmoid(T.dot(h, w.T) + c)
    loss = T.nnet.binary_crossentropy(z, x).sum(axis=1).mean()
    return Golden([x], loss, [abs(numbers(4, 8, dtype="float32"))], descent(loss, [w, b, c]))


@golden
def convnet_step() -> Golden:
    x, y = T.ftensor4("x"), T.ivector("y")
    k1, k2 = parameter("k1", 3, 1, 3, 3), parameter("k2", 4, 3, 3, 3)
    b1, b2 = parameter("b1", 3), parameter("b2", 4)
    w, c = parameter("w", 4 * 2 * 2, 3), parameter("c", 3)
    h = x
    for k, b in ((k1, b1), (k2, b2)):
        h = T.nnet.relu(T.nnet.conv2d(h, k, border_mode="half") + b.dimshuffle("x", 0, "x", "x"))
        h = pool.pool_2d(h, (2, 2), ignore_border=True)
    loss = cross_entropy(T.dot(h.flatten(2), w) + c, y)
    arguments = [numbers(2, 1, 8, 8, dtype="float32"), labels_of(2, 3)]
    return Golden([x, y], loss, arguments, descent(loss, [k1, k2, b1, b2, w, c]))


@golden
def batch_normalization_step() -> Golden:
    x = T.fmatrix("x")
    gamma, beta = parameter("gamma", 5), parameter("beta", 5)
    mean, var = parameter("mean", 5), parameter("var", 5)
    normal = (x - x.mean(axis=0)) / T.sqrt(x.var(axis=0) + np.float32(1e-5))
    loss = ((gamma * normal + beta) ** 3).sum()
    updates = descent(loss, [gamma, beta])
    updates[mean] = np.float32(0.9) * mean + np.float32(0.1) * x.mean(axis=0)
    updates[var] = np.float32(0.9) * var + np.float32(0.1) * x.var(axis=0)
    return Golden([x], [loss, symcomp.grad(loss, x)], [numbers(6, 5, dtype="float32")], updates)


@golden
def attention_step() -> Golden:
    """Train one head of masked attention with layer normalization."""
    x, mask = T.ftensor3("x"), T.fmatrix("mask")
    weights = [parameter(name, 6, 6) for name in ("wq", "wk", "wv")]
    q, k, v = (T.dot(x, w) for w in weights)
    scores = T.batched_dot(q, k.dimshuffle(0, 2, 1)) / np.float32(np.sqrt(6))
    scores += np.float32(-1e9) * (1 - mask.dimshuffle(0, "x", 1))
    mixed = x + T.batched_dot(T.nnet.softmax(scores, axis=2), v)
    centred = mixed - mixed.mean(axis=2, keepdims=True)
    normal = centred / T.sqrt((centred**2).mean(axis=2, keepdims=True) + np.float32(1e-5))
    loss = (normal**3).mean()
    arguments = [numbers(2, 4, 6, dtype="float32"), np.ones((2, 4), "float32")]
    return Golden([x, mask], loss, arguments, descent(loss, weights))


@golden
def embedding_step() -> Golden:
    """Train a table of which a step changes only the rows that it read."""
    words, y = T.imatrix("words"), T.fvector("y")
    table, w = parameter("table", 20, 4), parameter("w", 4)
    found = T.dot(table[words].mean(axis=1), w)
    loss = T.nnet.sigmoid_binary_crossentropy(found, y).mean()
    arguments = [numbers(3, 5, dtype="int32"), np.array([0, 1, 1], "float32")]
    return Golden([words, y], loss, arguments, descent(loss, [table, w]))
