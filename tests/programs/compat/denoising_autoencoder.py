"""An autoencoder with tied weights learns to undo corruption of binary patterns."""

import numpy
import theano
import theano.tensor as T
from theano.tensor.shared_randomstreams import RandomStreams


class DenoisingAutoencoder(object):
    def __init__(self, numpy_rng, theano_rng=None, input=None, n_visible=20, n_hidden=12):
        if not theano_rng:
            theano_rng = RandomStreams(numpy_rng.randint(2 ** 30))
        self.theano_rng = theano_rng
        limit = 4 * numpy.sqrt(6. / (n_hidden + n_visible))
        start = numpy_rng.uniform(low=-limit, high=limit, size=(n_visible, n_hidden))
        self.W = theano.shared(start.astype(theano.config.floatX), name='W', borrow=True)
        self.b = theano.shared(numpy.zeros(n_hidden, dtype=theano.config.floatX), name='b')
        self.b_prime = theano.shared(numpy.zeros(n_visible, dtype=theano.config.floatX), name="b'")
        self.W_prime = self.W.T
        self.x = T.dmatrix(name='input') if input is None else input
        self.params = [self.W, self.b, self.b_prime]

    def corrupted(self, level):
        kept = self.theano_rng.binomial(
            size=self.x.shape, n=1, p=1 - level, dtype=theano.config.floatX
        )
        return kept * self.x

    def hidden(self, x):
        return T.nnet.sigmoid(T.dot(x, self.W) + self.b)

    def reconstructed(self, hidden):
        return T.nnet.sigmoid(T.dot(hidden, self.W_prime) + self.b_prime)

    def cost_and_updates(self, level, rate):
        z = self.reconstructed(self.hidden(self.corrupted(level)))
        loss = -T.sum(self.x * T.log(z) + (1 - self.x) * T.log(1 - z), axis=1)
        cost = T.mean(loss)
        slopes = T.grad(cost, self.params)
        return cost, [(p, p - rate * g) for p, g in zip(self.params, slopes)]


def patterns(rng, n, n_visible=20):
    """Draw rows with ones in one half, and in every other place of the other half or nowhere."""
    left, striped = rng.randint(2, size=(2, n, 1))
    place = numpy.arange(n_visible)
    half = (place < n_visible // 2) == left
    return (half | ((place % 2 == 0) & (striped == 1))).astype(theano.config.floatX)


def train(n_epochs=30, batch_size=10, level=0.3):
    rng = numpy.random.RandomState(123)
    data = theano.shared(patterns(rng, 200), borrow=True)
    index = T.lscalar()
    x = T.matrix('x')
    model = DenoisingAutoencoder(rng, RandomStreams(rng.randint(2 ** 30)), input=x)
    cost, updates = model.cost_and_updates(level, 0.1)
    learn = theano.function(
        [index],
        cost,
        updates=updates,
        givens={x: data[index * batch_size:(index + 1) * batch_size]},
    )
    costs = [numpy.mean([learn(i) for i in range(20)]) for _ in range(n_epochs)]
    repair = theano.function([x], model.reconstructed(model.hidden(x)) > 0.5)
    clean = patterns(rng, 100)
    damaged = clean * rng.binomial(1, 1 - level, size=clean.shape)
    before, after = (damaged != clean).mean(), (repair(damaged) != clean).mean()
    return costs, before, after, model, x
