"""A perceptron with a hidden layer, weight penalties, and momentum kept in an OrderedDict."""

from collections import OrderedDict

import numpy as np
import theano
from theano import tensor
from theano.compat.six.moves import xrange

floatX = theano.config.floatX


class Dense(object):
    def __init__(self, rng, below, sizes, nonlinearity=None):
        spread = np.sqrt(6.0 / sum(sizes))
        start = np.asarray(rng.uniform(-spread, spread, size=sizes), dtype=floatX)
        if nonlinearity is tensor.nnet.sigmoid:
            start *= 4
        self.W = theano.shared(value=start, name="W%d_%d" % sizes, borrow=True)
        self.b = theano.shared(value=np.zeros((sizes[1],), dtype=floatX), name="b", borrow=True)
        total = tensor.dot(below, self.W) + self.b
        self.output = total if nonlinearity is None else nonlinearity(total)


class Perceptron(object):
    def __init__(self, rng, x, n_in, n_hidden, n_out):
        hidden = Dense(rng, x, (n_in, n_hidden), tensor.tanh)
        top = Dense(rng, hidden.output, (n_hidden, n_out))
        self.layers = [hidden, top]
        self.p = tensor.nnet.softmax(top.output)
        self.params = [p for layer in self.layers for p in (layer.W, layer.b)]

    def penalty(self, l1, l2):
        weights = [layer.W for layer in self.layers]
        return l1 * sum(abs(W).sum() for W in weights) + l2 * sum((W**2).sum() for W in weights)


def with_momentum(cost, params, rate, momentum):
    updates = OrderedDict()
    for param, slope in zip(params, theano.grad(cost, params)):
        velocity = theano.shared(param.get_value() * 0.0, broadcastable=param.broadcastable)
        updates[velocity] = momentum * velocity - rate * slope
        updates[param] = param + updates[velocity]
    return updates


def two_moons(rng, n):
    angle = rng.uniform(0, np.pi, n)
    label = rng.randint(0, 2, n)
    x = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    x[label == 1] = [1.0, 0.5] - x[label == 1]
    return (x + rng.normal(scale=0.1, size=x.shape)).astype(floatX), label.astype("int32")


def train(n_steps=300, n_hidden=16):
    rng = np.random.RandomState(42)
    x, y = tensor.matrix("x"), tensor.ivector("y")
    model = Perceptron(rng, x, 2, n_hidden, 2)
    nll = tensor.nnet.categorical_crossentropy(model.p, y).mean()
    cost = nll + model.penalty(1e-5, 1e-4)
    updates = with_momentum(cost, model.params, 0.1, 0.9)
    step = theano.function([x, y], [cost, nll], updates=updates, mode="FAST_RUN")
    error = theano.function([x, y], tensor.neq(model.p.argmax(axis=1), y).mean())
    history = []
    for _ in xrange(n_steps):
        history.append(float(step(*two_moons(rng, 50))[0]))
    return history, float(error(*two_moons(rng, 500))), model, cost, (x, y)
