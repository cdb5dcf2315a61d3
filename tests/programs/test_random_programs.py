"""Programs with random numbers: dropout, contrastive divergence, variational inference, MCMC."""

from typing import Any

import numpy as np
import pytest

import symcomp
import symcomp.tensor as T
from symcomp.sandbox.rng_mrg import MRG_RandomStreams
from symcomp.tensor.shared_randomstreams import RandomStreams


def blobs(n: int = 120) -> tuple[Any, Any]:
    """Draw two clouds of points in 10 dimensions, and the cloud of each."""
    rng = np.random.default_rng(0)
    labels = np.arange(n) % 2
    return rng.normal(size=(n, 10)) + (1.2 * labels - 0.6)[:, None], labels


def test_dropout() -> None:
    """A network that is trained with dropped units, and used with all of them."""
    srng = MRG_RandomStreams(seed=13)
    rng = np.random.default_rng(1)
    w1 = symcomp.shared(0.3 * rng.normal(size=(10, 20)), name="w1")
    w2 = symcomp.shared(np.zeros(20), name="w2")
    x, y = T.dmatrix("x"), T.lvector("y")

    def output(keep: float, dropping: bool) -> Any:
        hidden = T.tanh(T.dot(x, w1))
        if dropping:
            hidden = hidden * srng.binomial(hidden.shape, p=keep, dtype=hidden.dtype) / keep
        return T.nnet.sigmoid(T.dot(hidden, w2))

    cost = T.nnet.binary_crossentropy(output(0.5, True), y).mean()
    steps = [(w, w - 0.5 * g) for w, g in zip((w1, w2), T.grad(cost, [w1, w2]), strict=True)]
    train = symcomp.function([x, y], cost, updates=steps)
    test = symcomp.function([x, y], T.mean(T.neq(output(0.5, False) > 0.5, y)))
    points, labels = blobs()
    costs = [float(train(points, labels)) for _ in range(60)]
    assert np.mean(costs[-5:]) < 0.3 < costs[0]
    assert len(set(costs)) == len(costs)
    assert test(points, labels) < 0.06


def test_restricted_boltzmann_machine() -> None:
    """CD-5: a Gibbs chain in scan, gradients of the free energies with the end held constant."""
    patterns = np.array([[1, 1, 1, 0, 0, 0], [0, 0, 0, 1, 1, 1]], float)
    srng = RandomStreams(np.random.RandomState(3).randint(2**30))
    w = symcomp.shared(0.05 * np.random.default_rng(0).normal(size=(6, 4)), name="w")
    to_visible, to_hidden = symcomp.shared(np.zeros(6)), symcomp.shared(np.zeros(4))
    params = [w, to_visible, to_hidden]
    v = T.dmatrix("v")

    def free_energy(v: Any) -> Any:
        lifted = T.dot(v, w) + to_hidden
        return -T.dot(v, to_visible) - T.sum(T.log(1 + T.exp(lifted)), axis=1)

    def sample(p: Any) -> Any:
        return srng.binomial(size=p.shape, n=1, p=p, dtype="float64")

    def gibbs(v: Any) -> Any:
        hidden = sample(T.nnet.sigmoid(T.dot(v, w) + to_hidden))
        chance = T.nnet.sigmoid(T.dot(hidden, w.T) + to_visible)
        return [chance, sample(chance)]

    (chances, samples), updates = symcomp.scan(gibbs, outputs_info=[None, v], n_steps=5)
    end = samples[-1]
    cost = T.mean(free_energy(v)) - T.mean(free_energy(end))
    grads = T.grad(cost, params, consider_constant=[end])
    for param, g in zip(params, grads, strict=True):
        updates[param] = param - 0.3 * g
    error = T.mean(T.sqr(chances[-1] - v))
    train = symcomp.function([v], error, updates=updates)
    data = np.repeat(patterns, 20, axis=0)
    errors = [float(train(data)) for _ in range(250)]
    assert np.mean(errors[-20:]) < 0.05 < 0.2 < errors[0]
    energy = symcomp.function([v], free_energy(v))
    strangers = np.array([[1, 0, 1, 0, 1, 0], [0, 1, 0, 1, 0, 1]], float)
    assert energy(patterns).max() < energy(strangers).min() - 1


def test_variational_autoencoder() -> None:
    """Gradients through reparameterized noise: mean + deviation * normal, in one line or two."""
    points, _ = blobs(60)
    x = T.dmatrix("x")
    found = []
    for spelled_out in (True, False):
        stream = T.random.RandomStream(seed=5)
        encode = symcomp.shared(0.1 * np.random.default_rng(0).normal(size=(10, 4)))
        decode = symcomp.shared(0.1 * np.random.default_rng(1).normal(size=(2, 10)))
        code = T.dot(x, encode)
        mean, log_deviation = code[:, :2], code[:, 2:]
        if spelled_out:
            z = mean + T.exp(log_deviation) * stream.normal(size=mean.shape)
        else:
            z = stream.normal(mean, T.exp(log_deviation))
        misfit = T.sum(T.sqr(T.dot(z, decode) - x), axis=1) / 2
        divergence = T.sum(T.sqr(mean) + T.exp(2 * log_deviation) - 2 * log_deviation - 1, axis=1)
        bound = T.mean(misfit + divergence / 2)
        params = [encode, decode]
        steps = [(p, p - 0.02 * g) for p, g in zip(params, T.grad(bound, params), strict=True)]
        train = symcomp.function([x], bound, updates=steps)
        found.append([float(train(points)) for _ in range(150)])
    assert np.mean(found[0][-10:]) < 0.9 * found[0][0]
    np.testing.assert_allclose(found[0], found[1], rtol=1e-9)


def test_gradients_of_expectations() -> None:
    """E (mean + scale z)^2 = mean^2 + scale^2, differentiated by drawing; likewise E gamma(a)."""
    stream = T.random.RandomStream(seed=1)
    mean, scale, a = T.dscalars("mean", "scale", "a")
    moment = T.mean(stream.normal(mean, scale, size=40000) ** 2)
    f = symcomp.function([mean, scale], T.grad(moment, [mean, scale]))
    np.testing.assert_allclose(f(1.5, 0.5), [3.0, 1.0], rtol=0.03)
    moment = T.mean(stream.gamma(a, size=40000) ** 2)
    slope = symcomp.function([a], T.grad(moment, a))(2.0)
    assert slope == pytest.approx(2 * 2 + 1, rel=0.05)
    b = stream.beta(a, 3.0, size=40000)
    slope = symcomp.function([a], T.grad(b.mean(), a))(2.0)
    assert slope == pytest.approx(3 / 25, rel=0.05)


def test_metropolis() -> None:
    """A random walk that is accepted or not in every step of a scan: samples of a given law."""
    stream = T.random.RandomStream(seed=2)

    def energy(x: Any) -> Any:
        return T.sqr(x - 1.0) / (2 * 0.25)

    def step(x: Any) -> Any:
        there = x + stream.normal(0.0, 0.8, size=x.shape)
        accepted = T.log(stream.uniform(size=x.shape)) < energy(x) - energy(there)
        return T.switch(accepted, there, x)

    chain, updates = symcomp.scan(step, outputs_info=T.zeros(500), n_steps=120)
    x = symcomp.function([], chain, updates=updates)()[40:]
    assert x.mean() == pytest.approx(1.0, abs=0.02)
    assert x.std() == pytest.approx(0.5, abs=0.02)
