"""A network whose outputs are the parameters of a mixture, for a function that has several values;
all weights lie in one vector, which SciPy's L-BFGS moves.
"""

import numpy as np
import theano
import theano.tensor as T
from scipy.optimize import fmin_l_bfgs_b
from theano.tensor.shared_randomstreams import RandomStreams

floatX = theano.config.floatX


def log_sum_exp(x, axis):
    largest = T.max(x, axis=axis, keepdims=True)
    return (largest + T.log(T.sum(T.exp(x - largest), axis=axis, keepdims=True))).sum(axis=axis)


class MixtureDensityNetwork(object):
    def __init__(self, rng, n_in=1, n_hidden=12, n_out=1, n_components=3):
        shapes = [(n_in, n_hidden), (n_hidden,)]
        for n in (n_components, n_components * n_out, n_components):
            shapes += [(n_hidden, n), (n,)]
        sizes = [int(np.prod(shape)) for shape in shapes]
        start = rng.normal(scale=0.1, size=sum(sizes)).astype(floatX)
        self.theta = theano.shared(start, name='theta')
        params, begin = [], 0
        for shape, size in zip(shapes, sizes):
            params.append(self.theta[begin:begin + size].reshape(shape))
            begin += size
        W, b, Wa, ba, Wm, bm, Ws, bs = params
        self.x, self.y = T.matrix('x'), T.matrix('y')
        h = T.tanh(T.dot(self.x, W) + b)
        shares = T.nnet.softmax(T.dot(h, Wa) + ba)
        mean = (T.dot(h, Wm) + bm).reshape((self.x.shape[0], n_components, n_out))
        width = T.nnet.softplus(T.dot(h, Ws) + bs) + 1e-3
        away = T.sum((self.y.dimshuffle(0, 'x', 1) - mean) ** 2, axis=2)
        logs = T.log(shares) - 0.5 * away * T.inv(width ** 2) - n_out * T.log(width)
        likelihood = log_sum_exp(logs, axis=1) - 0.5 * n_out * np.log(2 * np.pi)
        self.cost = -T.mean(likelihood)
        slope = T.grad(self.cost, self.theta)
        self.cost_and_slope = theano.function([self.x, self.y], [self.cost, slope])
        srng = RandomStreams(seed=3)
        chosen = T.argmax(srng.multinomial(pvals=shares), axis=1)
        row = T.arange(self.x.shape[0])
        spread = width[row, chosen].dimshuffle(0, 'x')
        self.sample = theano.function(
            [self.x], srng.normal(size=(self.x.shape[0], n_out), avg=mean[row, chosen], std=spread)
        )

    def fit(self, x, y, n_iterations):
        def at(theta):
            self.theta.set_value(theta.astype(floatX))
            cost, slope = self.cost_and_slope(x, y)
            return float(cost), slope.astype('float64')

        start = self.theta.get_value().astype('float64')
        theta, cost, _ = fmin_l_bfgs_b(at, start, maxiter=n_iterations)
        self.theta.set_value(theta.astype(floatX))
        return cost


def points(rng, n):
    """x as a function of y; y has up to three values for an x."""
    y = rng.uniform(size=(n, 1))
    x = y + 0.3 * np.sin(2 * np.pi * y) + rng.uniform(-0.05, 0.05, size=y.shape)
    return x.astype(floatX), y.astype(floatX)


def train():
    rng = np.random.RandomState(0)
    x, y = points(rng, 300)
    network = MixtureDensityNetwork(rng)
    before = float(network.cost_and_slope(x, y)[0])
    after = network.fit(x, y, 150)
    middle = np.full((300, 1), 0.5, dtype=floatX)
    return before, after, network.sample(middle), network
