"""The tasks that symcomp and its peers are measured on: sizes, data, and how they are timed.

The networks are those of the Theano paper (Bergstra et al., 2010): a 10-class classifier of a
784-dimensional input, trained by plain gradient descent in float32, as logistic regression (lr),
with one hidden layer of 500 (mlp1) and with three of 1000 tanh units (mlp3).
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

import symcomp
import symcomp.tensor as T

# Time optimized code only.
symcomp.config.early_code = False

LAYERS = {"lr": (784, 10), "mlp1": (784, 500, 10), "mlp3": (784, 1000, 1000, 1000, 10)}
BATCHES = (1, 10, 60)
N_EXAMPLES = 6000
RATE = np.float32(0.01)
HIDDEN = (10, 100, 400)
STEPS = 1000

Step = Callable[[int], object]


def examples() -> tuple[np.ndarray, np.ndarray]:
    """Inputs (6000, 784) float32 and labels (6000,) int32."""
    rng = np.random.default_rng(0)
    x = rng.random((N_EXAMPLES, 784), dtype=np.float32)
    return x, rng.integers(0, 10, N_EXAMPLES).astype(np.int32)


def parameters(sizes: tuple[int, ...]) -> list[np.ndarray]:
    """Weights and biases in turn, float32."""
    rng = np.random.default_rng(1)
    result = []
    for n, m in zip(sizes, sizes[1:], strict=False):
        result += [rng.normal(0, n**-0.5, (n, m)).astype(np.float32), np.zeros(m, np.float32)]
    return result


def recurrent_arrays(hidden: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """W (H, H), X (1000, H) and h0 (H,) of h_t = tanh(x_t + h_{t-1} W), float32."""
    rng = np.random.default_rng(0)
    w = (rng.normal(size=(hidden, hidden)) / np.sqrt(hidden)).astype(np.float32)
    x = rng.normal(size=(STEPS, hidden)).astype(np.float32)
    return w, x, np.zeros(hidden, np.float32)


def trainer(sizes: tuple[int, ...], batch: int, counted: bool = False) -> symcomp.compile.Function:
    """One compiled function: loss, gradients and updates for a minibatch.

    Parameters
    ----------
    sizes : tuple of int
        Of the layers.
    batch : int
        The length of minibatches.
    counted : bool
        Count the minibatches in a shared variable, and take no argument; else take the number of
        the minibatch.
    """
    images, labels = (symcomp.shared(a, borrow=True) for a in examples())
    weights = [symcomp.shared(a) for a in parameters(sizes)]
    count = symcomp.shared(np.int64(0))
    number = count % (N_EXAMPLES // batch) if counted else T.lscalar("number")
    part = slice(number * batch, (number + 1) * batch)
    h = images[part]
    for k in range(0, len(weights), 2):
        h = T.dot(h, weights[k]) + weights[k + 1]
        if k + 2 < len(weights):
            h = T.tanh(h)
    log_p = T.nnet.log_softmax(h)
    loss = -log_p[T.arange(batch), labels[part]].mean()
    updates = [(w, w - RATE * g) for w, g in zip(weights, symcomp.grad(loss, weights), strict=True)]
    if counted:
        updates.append((count, count + 1))
    inputs = [] if counted else [number]
    return symcomp.function(inputs, loss, updates=updates, trust_input=True)


def training_step(sizes: tuple[int, ...], batch: int) -> Step:
    """Return a function that trains on the k-th minibatch."""
    f = trainer(sizes, batch)
    numbers = [np.array(k) for k in range(N_EXAMPLES // batch)]
    return lambda k: f(numbers[k % len(numbers)])


def recurrence(hidden: int, gradient: bool) -> Step:
    """Build a call of 1000 steps of a recurrent network, or of the gradient with respect to W."""
    w, x, h0 = recurrent_arrays(hidden)
    weights, start, xs = symcomp.shared(w), symcomp.shared(h0), T.fmatrix()
    states = symcomp.scan(_recurrent_step, xs, start, weights, return_updates=False)
    last = states[-1]
    output = symcomp.grad(last.sum(), weights) if gradient else last
    f = symcomp.function([xs], output, trust_input=True)
    return lambda k: f(x)


def _recurrent_step(
    v: symcomp.Variable, h: symcomp.Variable, w: symcomp.Variable
) -> symcomp.Variable:
    return T.tanh(v + T.dot(h, w))


def adding_one(trust: bool) -> Step:
    """Build a call of ``x + 1`` on ten doubles."""
    x, ten = T.dvector(), np.ones(10)
    f = symcomp.function([x], x + 1, trust_input=trust)
    return lambda k: f(ten)


def chain_of_small_ops() -> Step:
    """Build a call of ``tanh(z A)``, fifty times, for ``A`` of 2 x 2."""
    a, square = T.dmatrix(), np.eye(2) * 0.9
    z = a
    for _ in range(50):
        z = T.tanh(T.dot(z, a))
    f = symcomp.function([a], z, trust_input=True)
    return lambda k: f(square)


def rate(step: Step, seconds: float) -> float:
    """Calls per second in one window."""
    count, started = 0, time.perf_counter()
    while True:
        for _ in range(8):
            step(count)
            count += 1
        elapsed = time.perf_counter() - started
        if elapsed > seconds:
            return count / elapsed


def best_rate(step: Step, seconds: float = 0.7, repeats: int = 4) -> float:
    """Calls per second in the best of several windows."""
    for k in range(3):
        step(k)
    return max(rate(step, seconds) for _ in range(repeats))
