"""Hybrid Monte Carlo: leapfrog steps by scan, a step size that follows the rate of acceptance."""

import numpy
import theano
from theano import function, shared
from theano import tensor as TT


def kinetic_energy(velocity):
    return 0.5 * (velocity ** 2).sum(axis=1)


def accepted(old, new, stream):
    gain = old - new
    return (TT.exp(gain) - stream.uniform(size=gain.shape)) >= 0


def trajectory(position, velocity, step, n_steps, energy):
    def slope(at):
        return TT.grad(energy(at).sum(), at)

    def leapfrog(position, velocity, step):
        velocity = velocity - step * slope(position)
        return [position + step * velocity, velocity], {}

    half = velocity - 0.5 * step * slope(position)
    (positions, velocities), updates = theano.scan(
        leapfrog,
        outputs_info=[dict(initial=position + step * half), dict(initial=half)],
        non_sequences=[step],
        n_steps=n_steps - 1,
    )
    at = positions[-1]
    return at, velocities[-1] - 0.5 * step * slope(at), updates


class Sampler(object):
    def __init__(self, start, energy, step=0.1, n_steps=15, wanted=0.9, seed=12345):
        floatX = theano.config.floatX
        self.positions = shared(numpy.asarray(start, dtype=floatX), name='positions')
        self.step = shared(numpy.asarray(step, dtype=floatX), name='step')
        self.rate = shared(numpy.asarray(wanted, dtype=floatX), name='rate')
        stream = TT.shared_randomstreams.RandomStreams(seed)
        velocity = stream.normal(size=self.positions.shape)
        at, last, updates = trajectory(self.positions, velocity, self.step, n_steps, energy)
        accept = accepted(
            energy(self.positions) + kinetic_energy(velocity),
            energy(at) + kinetic_energy(last),
            stream,
        )
        rate = 0.9 * self.rate + 0.1 * TT.mean(accept, dtype=floatX)
        step = TT.switch(self.rate > wanted, 1.02 * self.step, 0.98 * self.step)
        updates.update({
            self.positions: TT.switch(accept.dimshuffle(0, *(('x',) * (at.ndim - 1))), at, self.positions),
            self.step: TT.clip(step, 0.001, 2.).astype(floatX),
            self.rate: rate,
        })
        self.simulate = function([], [], updates=updates)

    def draw(self):
        self.simulate()
        return self.positions.get_value(borrow=False)


def train(n_chains=60, n_draws=150, burn_in=50):
    """Draw from a normal distribution of two correlated variables."""
    mean = numpy.array([1., -2.], dtype=theano.config.floatX)
    covariance = numpy.array([[1., .6], [.6, 2.]], dtype=theano.config.floatX)
    precision = shared(numpy.linalg.inv(covariance).astype(theano.config.floatX))

    def energy(x):
        z = x - mean
        return 0.5 * (theano.tensor.dot(z, precision) * z).sum(axis=1)

    sampler = Sampler(numpy.random.RandomState(0).randn(n_chains, 2), energy)
    for _ in range(burn_in):
        sampler.simulate()
    samples = numpy.asarray([sampler.draw() for _ in range(n_draws)]).reshape(-1, 2)
    return samples, float(sampler.rate.get_value()), float(sampler.step.get_value())
