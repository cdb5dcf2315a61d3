"""A convolutional network learns to tell patterns apart."""

from typing import Any

import numpy as np

import symcomp
import symcomp.tensor as T
from symcomp.sandbox.rng_mrg import MRG_RandomStreams


def patterns(n: int, seed: int) -> tuple[Any, Any]:
    """Noisy images with a bar, at a random place: lying, standing, falling or rising."""
    rng = np.random.default_rng(seed)
    bars = [np.zeros((5, 5)) for _ in range(4)]
    bars[0][2], bars[1][:, 2], bars[2], bars[3] = 1, 1, np.eye(5), np.eye(5)[::-1]
    images, labels = 0.3 * rng.normal(size=(n, 1, 14, 14)), rng.integers(4, size=n)
    for image, label, (i, j) in zip(images, labels, rng.integers(10, size=(n, 2)), strict=True):
        image[0, i : i + 5, j : j + 5] += bars[label]
    return images.astype("float32"), labels


class Network:
    """Convolution, pooling, batch normalization, dropout and softmax."""

    def __init__(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.stream = MRG_RandomStreams(seed)
        self.params: list[Any] = []
        self.running: list[tuple[Any, Any]] = []
        self.filters = self.shared(0.2 * rng.normal(size=(8, 1, 5, 5)))
        self.out = self.shared(0.1 * rng.normal(size=(8 * 2 * 2, 4)))
        self.gamma, self.beta = self.shared(np.ones(8)), self.shared(np.zeros(8))
        self.bias = self.shared(np.zeros(4))
        self.mean = symcomp.shared(np.zeros(8, "f4"))
        self.var = symcomp.shared(np.ones(8, "f4"))

    def shared(self, value: Any) -> Any:
        self.params.append(symcomp.shared(value.astype("f4")))
        return self.params[-1]

    def chances(self, x: Any, training: bool) -> Any:
        """Return the probabilities of the classes."""
        h = T.nnet.conv2d(x, self.filters, filter_shape=(8, 1, 5, 5))
        if training:
            h, _, _, mean, var = T.nnet.bn.batch_normalization_train(
                h, self.gamma, self.beta, "spatial", running_mean=self.mean, running_var=self.var
            )
            self.running = [(self.mean, mean), (self.var, var)]
        else:
            h = T.nnet.bn.batch_normalization_test(
                h, self.gamma, self.beta, self.mean, self.var, "spatial"
            )
        h = T.signal.pool.pool_2d(T.nnet.relu(h), (5, 5), ignore_border=True).flatten(2)
        if training:
            mask = self.stream.binomial(h.shape, p=0.8, dtype="float32")
            h = h * mask / np.float32(0.8)
        return T.nnet.softmax(T.dot(h, self.out) + self.bias)


def test_bars() -> None:
    with symcomp.config.change_flags(floatX="float32"):
        net, x, y = Network(1), T.ftensor4("x"), T.lvector("y")
        cost = T.mean(T.nnet.categorical_crossentropy(net.chances(x, True), y))
        grads = T.grad(cost, net.params)
        steps = [(p, p - np.float32(0.2) * g) for p, g in zip(net.params, grads, strict=True)]
        train = symcomp.function([x, y], cost, updates=[*steps, *net.running])
        found = T.argmax(net.chances(x, False), axis=1)
        wrong = symcomp.function([x, y], T.mean(T.neq(found, y)))
    images, labels = patterns(600, 0)
    costs = [
        float(train(images[i : i + 50], labels[i : i + 50]))
        for _ in range(25)
        for i in range(0, 600, 50)
    ]
    assert np.mean(costs[-12:]) < 0.4 < 1 < costs[0]
    assert wrong(*patterns(300, 1)) < 0.1


def test_an_autoencoder_with_transposed_convolution() -> None:
    images, _ = patterns(100, 2)
    x = T.ftensor4("x")
    rng = np.random.default_rng(0)
    w = symcomp.shared((0.2 * rng.normal(size=(8, 1, 4, 4))).astype("f4"))
    code = T.nnet.conv2d(x, w, subsample=(2, 2), filter_flip=False)
    back = T.nnet.conv2d_transpose(code, w, x.shape, input_dilation=(2, 2), filter_flip=False)
    cost = T.mean(T.sqr(back - x))
    train = symcomp.function([x], cost, updates=[(w, w - np.float32(2) * T.grad(cost, w))])
    costs = [float(train(images)) for _ in range(60)]
    assert costs[-1] < 0.3 * costs[0]
