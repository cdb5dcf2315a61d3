"""A restricted Boltzmann machine: persistent contrastive divergence, Gibbs steps by scan."""

import numpy
import theano
import theano.tensor as T
from theano.sandbox.rng_mrg import MRG_RandomStreams as RandomStreams


class RBM(object):
    def __init__(self, v, n_visible, n_hidden, seed=89):
        rng = numpy.random.RandomState(seed)
        floatX = theano.config.floatX
        self.v = v
        self.W = theano.shared((0.05 * rng.randn(n_visible, n_hidden)).astype(floatX), name='W')
        self.hbias = theano.shared(numpy.zeros(n_hidden, dtype=floatX), name='hbias')
        self.vbias = theano.shared(numpy.zeros(n_visible, dtype=floatX), name='vbias')
        self.params = [self.W, self.hbias, self.vbias]
        self.stream = RandomStreams(rng.randint(2 ** 30))

    def free_energy(self, v):
        on_hidden = T.dot(v, self.W) + self.hbias
        return -T.dot(v, self.vbias) - T.sum(T.nnet.softplus(on_hidden), axis=1)

    def sample(self, mean):
        return self.stream.binomial(size=mean.shape, n=1, p=mean, dtype=theano.config.floatX)

    def hidden_mean(self, v):
        return T.nnet.sigmoid(T.dot(v, self.W) + self.hbias)

    def visible_mean(self, h):
        return T.nnet.sigmoid(T.dot(h, self.W.T) + self.vbias)

    def gibbs(self, h):
        v_mean = self.visible_mean(h)
        v = self.sample(v_mean)
        return [v_mean, v, self.sample(self.hidden_mean(v))]

    def contrastive_divergence(self, rate, k, chain):
        (_, v_chain, h_chain), updates = theano.scan(
            self.gibbs, outputs_info=[None, None, chain], n_steps=k, name='gibbs'
        )
        end = v_chain[-1]
        cost = T.mean(self.free_energy(self.v)) - T.mean(self.free_energy(end))
        # The end of the chain is a sample: no gradient flows through it.
        slopes = T.grad(cost, self.params, consider_constant=[end])
        for param, slope in zip(self.params, slopes):
            updates[param] = param - slope * T.cast(rate, dtype=theano.config.floatX)
        updates[chain] = h_chain[-1]
        return self.pseudo_likelihood(updates), updates

    def pseudo_likelihood(self, updates):
        """Compute the log-likelihood of one bit given the others, a different bit in every call."""
        bit = theano.shared(value=0, name='bit')
        rounded = T.round(self.v)
        flipped = T.set_subtensor(rounded[:, bit], 1 - rounded[:, bit])
        n_visible = self.vbias.shape[0]
        gap = self.free_energy(flipped) - self.free_energy(rounded)
        updates[bit] = (bit + 1) % n_visible
        return T.mean(n_visible * T.log(T.nnet.sigmoid(gap)))


def bars(rng, n, side=3):
    """Pictures with one row or one column filled."""
    pictures = numpy.zeros((n, side, side), dtype=theano.config.floatX)
    for picture, line, upright in zip(pictures, rng.randint(side, size=n), rng.randint(2, size=n)):
        if upright:
            picture[:, line] = 1.
        else:
            picture[line] = 1.
    return pictures.reshape((n, side * side))


def train(n_steps=1500, batch_size=30, k=1):
    rng = numpy.random.RandomState(1)
    v = T.matrix('v')
    rbm = RBM(v, 9, 12)
    chain = theano.shared(numpy.zeros((batch_size, 12), dtype=theano.config.floatX), borrow=True)
    cost, updates = rbm.contrastive_divergence(0.1, k, chain)
    learn = theano.function([v], cost, updates=updates)
    likelihoods = [float(learn(bars(rng, batch_size))) for _ in range(n_steps)]

    start = theano.shared(rng.binomial(1, 0.5, (200, 12)).astype(theano.config.floatX))
    (_, vs, hs), updates = theano.scan(rbm.gibbs, outputs_info=[None, None, start], n_steps=100)
    updates.update({start: hs[-1]})
    draw = theano.function([], vs[-1], updates=updates)
    samples = draw().reshape((-1, 3, 3))
    is_bar = [
        sorted(p.sum(axis=0).tolist()) == [0, 0, 3] or sorted(p.sum(axis=1).tolist()) == [0, 0, 3]
        for p in samples
    ]
    return likelihoods, numpy.mean(is_bar), rbm
