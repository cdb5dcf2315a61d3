"""The tasks of gpu_data.py by symcomp, on a device or on the processor: see benchmarks/gpu.py."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import gpu_data
import numpy as np
import scipy.sparse
from gpu_data import CHAIN, RATE, Step, Task, normal, uniform

import symcomp
import symcomp.tensor as T
from symcomp import gpu, sparse
from symcomp.config import config

# Time optimized code only.
config.early_code = False


class Place:
    """A device, or the processor: variables that live there, and functions."""

    def __init__(self, device: str) -> None:
        self.device = device

    def put(self, values: Any) -> Any:
        """Return a shared variable, of an array or of a sparse matrix."""
        make = sparse.shared if scipy.sparse.issparse(values) else symcomp.shared
        return make(values, device=self.device)

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


def transposed(place: Place, n: int, m: int) -> Step:
    return place.step(place.put(uniform(n, m)) + place.put(uniform(m, n, seed=1)).T)


def layer_norm(x: Any) -> Any:
    return (x - x.mean(axis=1, keepdims=True)) / T.sqrt(x.var(axis=1, keepdims=True) + 1e-5)


def gather(place: Place, n: int, m: int) -> Step:
    return place.step(place.put(uniform(n, m))[place.put(gpu_data.labels(n, classes=n))])


def draws(place: Place, n: int, m: int) -> Step:
    with config.change_flags(device=place.device):
        stream = T.random.RandomStream(seed=1, generator="philox")
        return place.step(stream.uniform(size=(n, m), dtype="float32"))


def cholesky(place: Place, number: int, n: int) -> Step:
    return place.step(T.linalg.cholesky(place.put(gpu_data.positive(number, n))))


def sparse_matrix(place: Place, n: int, entries: int) -> Any:
    given = gpu_data.compressed(n, entries)
    return place.put(scipy.sparse.csr_array(given, shape=(n, n)))


def sparse_dot(place: Place, n: int, entries: int, m: int) -> Step:
    d = uniform(n, m, seed=1)
    return place.step(sparse.dot(sparse_matrix(place, n, entries), place.put(d)))


def sparse_gradient(place: Place, n: int, entries: int, m: int) -> Step:
    d = place.put(uniform(n, m, seed=1))
    loss = T.sqr(sparse.dot(sparse_matrix(place, n, entries), d)).sum()
    return place.step(symcomp.grad(loss, d))


def sparse_product(place: Place, n: int, entries: int) -> Step:
    s = sparse_matrix(place, n, entries)
    return place.step(sparse.csm_data(sparse.structured_dot(s, s)))


def batch_norm(place: Place, batch: int, channels: int, size: int) -> Step:
    shape = batch, channels, size, size
    x, y = place.put(uniform(*shape)), place.put(uniform(*shape, seed=1))
    gamma, beta = place.put(uniform(channels)), place.put(uniform(channels, seed=1))
    out = T.nnet.bn.batch_normalization_train(x, gamma, beta, "spatial")[0]
    return place.training((T.nnet.relu(out) * y).mean(), [x, gamma, beta])


def pooling(place: Place, batch: int, channels: int, size: int) -> Step:
    shape = batch, channels, size, size
    x, y = place.put(uniform(*shape)), place.put(uniform(*shape[:2], size // 2, size // 2, seed=1))
    pooled = T.signal.pool.pool_2d(x, (2, 2), ignore_border=True)
    return place.step(symcomp.grad((pooled * y).sum(), x))


def embedding(place: Place, batch: int, words: int, size: int) -> Step:
    u, y = place.put(uniform(words, size)), place.put(uniform(batch, size, seed=1))
    codes = place.put(gpu_data.labels(batch, classes=words))
    return place.training(T.sqr(u[codes] - y).sum(), [u])


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


def until(place: Place, steps: int, n: int) -> Step:
    def step(h: Any, x: Any) -> Any:
        h = h + x
        return h, symcomp.until(h[0] >= steps - 0.5)

    states = symcomp.scan(
        step, None, place.put(np.zeros(n, "f4")), place.put(np.ones(n, "f4")), n_steps=4 * steps,
        return_updates=False,
    )  # fmt: skip
    return place.step(states[-1])


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
    "transposed": transposed,
    "layer_norm": reduction(layer_norm),
    "cumsum": reduction(lambda x: T.cumsum(x, axis=1)),
    "gather": gather,
    "uniform": draws,
    "sort": reduction(lambda x: T.sort(x, axis=1)),
    "argmax": reduction(lambda x: T.argmax(x, axis=1)),
    "fourier": reduction(lambda x: abs(T.fft.rfft(x))),
    "cholesky": cholesky,
    "sparse_dot": sparse_dot,
    "sparse_gradient": sparse_gradient,
    "sparse_product": sparse_product,
    "batch_norm": batch_norm,
    "pooling": pooling,
    "embedding": embedding,
    "embedding_atomics": embedding,
    "until": until,
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
    config.gpu_atomics = task.kind == "embedding_atomics"
    return BUILDERS[task.kind](Place(device), *sizes), lambda z: float(np.max(np.asarray(z)))


def wait(device: str) -> None:
    """Wait for a device."""
    if device != "cpu":
        gpu.synchronize(device)


if __name__ == "__main__":
    gpu_data.work("symcomp", build, wait)
