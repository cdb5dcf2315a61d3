"""The tasks of gpu_data.py by symcomp, on a device or on the processor: see benchmarks/gpu.py."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import gpu_data
import numpy as np
from gpu_data import CHAIN, RATE, Step, Task, normal, uniform

import symcomp
import symcomp.tensor as T
from symcomp import gpu
from symcomp.config import config

# Time optimized code only.
config.early_code = False


class Place:
    """A device, or the processor: variables that live there, and functions."""

    def __init__(self, device: str) -> None:
        self.device = device

    def put(self, values: np.ndarray) -> Any:
        """Return a shared variable."""
        return symcomp.shared(values, device=None if self.device == "cpu" else self.device)

    def step(self, output: Any, updates: Sequence[tuple[Any, Any]] = ()) -> Step:
        """Return a function without arguments, whose result stays there."""
        with config.change_flags(device=self.device):
            if self.device != "cpu":
                output = gpu.to_gpu(output, self.device)
            return symcomp.function([], output, updates=list(updates))

    def training(self, loss: Any, weights: Sequence[Any]) -> Step:
        """Return a step of plain gradient descent."""
        slopes = symcomp.grad(loss, list(weights))
        return self.step(loss, [(w, w - RATE * g) for w, g in zip(weights, slopes, strict=True)])


def loss_of(logits: Any, labels: Any) -> Any:
    """Return the mean of the losses of labels."""
    log_p = T.nnet.log_softmax(logits)
    return -log_p[T.arange(labels.shape[0]), labels].mean()


def copy(place: Place, n: int, m: int) -> Step:
    """Copy what lies on the device, by its driver."""
    values = uniform(n, m)
    if place.device == "cpu":
        return values.copy
    driver = gpu.driver_of(place.device)
    source = gpu.to_device(values, place.device)
    target = gpu.to_device(np.zeros_like(values), place.device)

    def step() -> Any:
        driver.within(target.memory, target.offset, source.memory, source.offset, values.nbytes)
        return target

    return step


def elementwise(place: Place, n: int, m: int) -> Step:
    x, y = place.put(uniform(n, m)), place.put(uniform(n, m, seed=1))
    return place.step(T.sqrt(x * x + y * y))


def reduction(compute: Callable[[Any], Any]) -> Callable[..., Step]:
    return lambda place, n, m: place.step(compute(place.put(uniform(n, m))))


def product(place: Place, n: int, k: int, m: int) -> Step:
    return place.step(T.dot(place.put(uniform(n, k)), place.put(uniform(k, m, seed=1))))


def mlp(place: Place, batch: int, *sizes: int) -> Step:
    weights = [place.put(w) for w in gpu_data.layers(sizes)]
    h, y = place.put(uniform(batch, sizes[0])), place.put(gpu_data.labels(batch))
    for k in range(0, len(weights), 2):
        h = T.dot(h, weights[k]) + weights[k + 1]
        if k + 2 < len(weights):
            h = T.tanh(h)
    return place.training(loss_of(h, y), weights)


def lenet(place: Place, batch: int, size: int, *others: int) -> Step:
    weights = [place.put(w) for w in gpu_data.lenet(size, *others)]
    w1, b1, w2, b2, w3, b3, w4, b4 = weights
    h, y = place.put(uniform(batch, 1, size, size)), place.put(gpu_data.labels(batch))
    for w, b in ((w1, b1), (w2, b2)):
        z = T.nnet.conv2d(h, w, filter_flip=False)
        pooled = T.signal.pool.pool_2d(z, (2, 2), ignore_border=True)
        h = T.tanh(pooled + b.dimshuffle("x", 0, "x", "x"))
    h = T.tanh(T.dot(h.flatten(2), w3) + b3)
    return place.training(loss_of(T.dot(h, w4) + b4, y), weights)


def gru_step(x: Any, h: Any, w: Any) -> Any:
    size = h.shape[-1]
    a = T.dot(h, w)
    r = T.nnet.sigmoid(x[:, :size] + a[:, :size])
    z = T.nnet.sigmoid(x[:, size : 2 * size] + a[:, size : 2 * size])
    n = T.tanh(x[:, 2 * size :] + r * a[:, 2 * size :])
    return [n + z * (h - n)]


def lstm_step(x: Any, h: Any, c: Any, w: Any) -> Any:
    size = h.shape[-1]
    a = x + T.dot(h, w)
    i, f = T.nnet.sigmoid(a[:, :size]), T.nnet.sigmoid(a[:, size : 2 * size])
    o = T.nnet.sigmoid(a[:, 2 * size : 3 * size])
    c = f * c + i * T.tanh(a[:, 3 * size :])
    return [o * T.tanh(c), c]


def language(kind: str) -> Callable[..., Step]:
    """Return the builder of a step of training of a recurrent model of characters."""

    def build(place: Place, batch: int, length: int, hidden: int, characters: int) -> Step:
        weights = [place.put(w) for w in gpu_data.language(kind, hidden, characters)]
        u, w, v, b = weights
        codes = place.put(gpu_data.labels(length + 1, batch, classes=characters))
        states = [place.put(np.zeros((batch, hidden), "f4")) for _ in range(1 + (kind == "lstm"))]
        step = gru_step if kind == "gru" else lstm_step
        traces = symcomp.scan(
            step, u[codes[:-1]], states, [w], return_list=True, return_updates=False
        )
        h = traces[0].reshape((length * batch, hidden))
        return place.training(loss_of(T.dot(h, v) + b, codes[1:].flatten()), weights)

    return build


def scan(place: Place, steps: int, hidden: int, gradient: bool = False) -> Step:
    w, x = place.put(normal(hidden, hidden)), place.put(normal(steps, hidden, seed=1))
    states = symcomp.scan(
        lambda v, h, w: T.tanh(v + T.dot(h, w)), x, place.put(np.zeros(hidden, "f4")), w,
        return_updates=False,
    )  # fmt: skip
    return place.step(symcomp.grad(states[-1].sum(), w) if gradient else states[-1])


def chain(place: Place, n: int, m: int) -> Step:
    a = place.put(np.eye(n, m, dtype="f4") * np.float32(0.9))
    z = a
    for _ in range(CHAIN):
        z = T.tanh(T.dot(z, a))
    return place.step(z)


BUILDERS: dict[str, Callable[..., Step]] = {
    "copy": copy,
    "elementwise": elementwise,
    "sum": reduction(lambda x: x.sum()),
    "sum_rows": reduction(lambda x: x.sum(axis=1)),
    "sum_columns": reduction(lambda x: x.sum(axis=0)),
    "softmax": reduction(lambda x: T.nnet.softmax(x * 8)),
    "product": product,
    "mlp": mlp,
    "lenet": lenet,
    "gru": language("gru"),
    "lstm": language("lstm"),
    "scan": scan,
    "scan_gradient": lambda *sizes: scan(*sizes, gradient=True),
    "chain": chain,
    "chain_without_graphs": chain,
}


def build(task: Task, sizes: tuple[int, ...], device: str) -> tuple[Step, Callable[[Any], float]]:
    """Return the step of a task, and what reads the largest element of its result."""
    config.gpu_graphs = task.kind != "chain_without_graphs"
    return BUILDERS[task.kind](Place(device), *sizes), lambda z: float(np.max(np.asarray(z)))


def wait(device: str) -> None:
    """Wait for a device."""
    if device != "cpu":
        gpu.synchronize(device)


if __name__ == "__main__":
    gpu_data.work("symcomp", build, wait)
