"""Autoencoders trained layer by layer, then the whole network on labels, as in deep learning's
first years: noisy copies of four patterns.
"""

import numpy
import theano
import theano.tensor as T
from theano.tensor.shared_randomstreams import RandomStreams

floatX = theano.config.floatX


class SigmoidLayer(object):
    def __init__(self, rng, input, n_in, n_out):
        limit = 4 * numpy.sqrt(6. / (n_in + n_out))
        start = numpy.asarray(rng.uniform(-limit, limit, size=(n_in, n_out)), dtype=floatX)
        self.W = theano.shared(value=start, name='W', borrow=True)
        self.b = theano.shared(value=numpy.zeros((n_out,), dtype=floatX), name='b', borrow=True)
        self.c = theano.shared(value=numpy.zeros((n_in,), dtype=floatX), name='c', borrow=True)
        self.input = input
        self.output = T.nnet.sigmoid(T.dot(input, self.W) + self.b)
        self.params = [self.W, self.b]

    def pretraining_updates(self, theano_rng, level, rate):
        noise = theano_rng.binomial(size=self.input.shape, n=1, p=1 - level, dtype=floatX)
        y = T.nnet.sigmoid(T.dot(noise * self.input, self.W) + self.b)
        z = T.nnet.sigmoid(T.dot(y, self.W.T) + self.c)
        loss = - T.sum(self.input * T.log(z) + (1 - self.input) * T.log(1 - z), axis=1)
        cost = T.mean(loss)
        params = self.params + [self.c]
        return cost, [(p, p - rate * g) for p, g in zip(params, T.grad(cost, params))]


class Stack(object):
    def __init__(self, rng, sizes, n_out):
        self.theano_rng = RandomStreams(rng.randint(2 ** 30))
        self.x, self.y = T.matrix('x'), T.ivector('y')
        self.layers, below = [], self.x
        for n_in, n_hidden in zip(sizes[:-1], sizes[1:]):
            self.layers.append(SigmoidLayer(rng, below, n_in, n_hidden))
            below = self.layers[-1].output
        self.V = theano.shared(numpy.zeros((sizes[-1], n_out), dtype=floatX), name='V')
        self.d = theano.shared(numpy.zeros(n_out, dtype=floatX), name='d')
        p = T.nnet.softmax(T.dot(below, self.V) + self.d)
        self.params = [q for layer in self.layers for q in layer.params] + [self.V, self.d]
        self.cost = -T.mean(T.log(p)[T.arange(self.y.shape[0]), self.y])
        self.errors = T.mean(T.neq(T.argmax(p, axis=1), self.y))

    def pretraining_functions(self, data, batch_size):
        index = T.lscalar('index')
        level, rate = T.scalar('level'), T.scalar('rate')
        batch = data[index * batch_size:(index + 1) * batch_size]
        functions = []
        for layer in self.layers:
            cost, updates = layer.pretraining_updates(self.theano_rng, level, rate)
            functions.append(theano.function(
                inputs=[index, theano.In(level, value=0.2), theano.In(rate, value=0.1)],
                outputs=cost, updates=updates, givens={self.x: batch},
            ))
        return functions

    def finetuning_functions(self, data, labels, batch_size, rate):
        index = T.lscalar('index')
        part = slice(index * batch_size, (index + 1) * batch_size)
        givens = {self.x: data[part], self.y: labels[part]}
        updates = [(p, p - rate * g) for p, g in zip(self.params, T.grad(self.cost, self.params))]
        step = theano.function([index], self.cost, updates=updates, givens=givens)
        return step, theano.function([self.x, self.y], self.errors)


def shared_dataset(x, y):
    shared_x = theano.shared(numpy.asarray(x, dtype=floatX), borrow=True)
    shared_y = theano.shared(numpy.asarray(y, dtype=floatX), borrow=True)
    return shared_x, T.cast(shared_y, 'int32')


def noisy_patterns(rng, n, n_visible=24):
    kinds = numpy.random.RandomState(7).uniform(size=(4, n_visible)) > .5
    labels = rng.randint(4, size=n)
    return (kinds[labels] ^ (rng.uniform(size=(n, n_visible)) < .15)).astype(floatX), labels


def train():
    rng = numpy.random.RandomState(89677)
    data, labels = shared_dataset(*noisy_patterns(rng, 300))
    stack = Stack(rng, [24, 16, 12], 4)
    pretraining = []
    for i, learn in enumerate(stack.pretraining_functions(data, 10)):
        for _ in range(6):
            level = [.1, .2][i]
            pretraining.append(numpy.mean([learn(index=b, level=level) for b in range(30)]))
    step, errors = stack.finetuning_functions(data, labels, 10, 0.5)
    costs = [numpy.mean([step(b) for b in range(30)]) for _ in range(8)]
    x, y = noisy_patterns(rng, 200)
    return pretraining, costs, float(errors(x, y.astype('int32'))), stack
