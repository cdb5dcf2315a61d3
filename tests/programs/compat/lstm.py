"""Long short-term memory over sequences of words of unequal lengths, trained with Adadelta."""

import numpy
import theano
from theano import config
import theano.tensor as tensor


def as_float(value):
    return numpy.asarray(value, dtype=config.floatX)


def rotation(rng, n):
    return as_float(numpy.linalg.svd(rng.randn(n, n))[0])


class SequenceClassifier(object):
    """Embeds words, runs an LSTM over them, averages its states, guesses a class."""

    GATES = ["input", "forget", "output", "cell"]

    def __init__(self, n_words, dim, n_classes, seed=123):
        rng = numpy.random.RandomState(seed)
        self.dim = dim
        values = [
            ("words", as_float(0.1 * rng.rand(n_words, dim))),
            ("W", numpy.hstack([rotation(rng, dim) for _ in self.GATES])),
            ("U", numpy.hstack([rotation(rng, dim) for _ in self.GATES])),
            ("b", as_float(numpy.zeros(dim * len(self.GATES)))),
            ("V", as_float(0.1 * rng.randn(dim, n_classes))),
            ("c", as_float(numpy.zeros(n_classes))),
        ]
        for name, value in values:
            setattr(self, name, theano.shared(value, name=name))
        self.params = [getattr(self, name) for name, _ in values]

    def gate(self, total, which):
        k = self.GATES.index(which)
        return total[:, k * self.dim : (k + 1) * self.dim]

    def step(self, present, x_t, h, c):
        total = x_t + tensor.dot(h, self.U)
        keep = tensor.nnet.sigmoid(self.gate(total, "forget"))
        write = tensor.nnet.sigmoid(self.gate(total, "input"))
        new_c = keep * c + write * tensor.tanh(self.gate(total, "cell"))
        new_h = tensor.nnet.sigmoid(self.gate(total, "output")) * tensor.tanh(new_c)
        # Where a sequence has ended, its state stays.
        present = present[:, None]
        return present * new_h + (1.0 - present) * h, present * new_c + (1.0 - present) * c

    def states(self, x, mask):
        n_steps, n_samples = x.shape[0], x.shape[1]
        embedded = self.words[x.flatten()].reshape([n_steps, n_samples, self.dim])
        below = tensor.dot(embedded, self.W) + self.b
        zero = tensor.alloc(as_float(0.0), n_samples, self.dim)
        (h, _), updates = theano.scan(
            self.step,
            sequences=[mask, below],
            outputs_info=[zero, tensor.zeros_like(zero)],
            n_steps=n_steps,
            name="lstm",
        )
        assert not updates
        return h

    def probabilities(self, x, mask):
        h = self.states(x, mask)
        mean = (h * mask[:, :, None]).sum(axis=0) / mask.sum(axis=0)[:, None]
        return tensor.nnet.softmax(tensor.dot(mean, self.V) + self.c)


class Adadelta(object):
    """Gradients are kept in shared variables by one function, and used by another."""

    def __init__(self, params, inputs, cost, decay=0.95, epsilon=1e-6):
        def zeros(suffix):
            return [
                theano.shared(p.get_value() * as_float(0.0), name="%s_%s" % (p.name, suffix))
                for p in params
            ]

        kept, squares, moves = zeros("gradient"), zeros("squares"), zeros("moves")
        slopes = tensor.grad(cost, wrt=params)
        averages = [decay * s + (1 - decay) * g**2 for s, g in zip(squares, slopes)]
        self.look = theano.function(
            inputs,
            cost,
            updates=list(zip(kept, slopes)) + list(zip(squares, averages)),
            name="look",
        )
        deltas = [
            -tensor.sqrt(m + epsilon) / tensor.sqrt(s + epsilon) * g
            for m, s, g in zip(moves, squares, kept)
        ]
        updates = [(m, decay * m + (1 - decay) * d**2) for m, d in zip(moves, deltas)]
        updates += [(p, p + d) for p, d in zip(params, deltas)]
        rate = tensor.scalar("rate")
        self.move = theano.function([rate], [], updates=updates, on_unused_input="ignore")


def sentences(rng, n_samples=24, longest=8, n_words=10):
    """Draw sentences: the first word, 0 or 1, is the class; the others are noise."""
    lengths = rng.randint(3, longest + 1, size=n_samples)
    mask = as_float(numpy.arange(longest)[:, None] < lengths)
    x = (rng.randint(2, n_words, size=(longest, n_samples)) * mask).astype("int64")
    x[0] = y = rng.randint(2, size=n_samples)
    return x, mask, y


def train(n_updates=120, dim=8):
    x = tensor.matrix("x", dtype="int64")
    mask = tensor.matrix("mask", dtype=config.floatX)
    y = tensor.vector("y", dtype="int64")
    model = SequenceClassifier(10, dim, 2)
    p = model.probabilities(x, mask)
    cost = -tensor.log(p[tensor.arange(x.shape[1]), y] + 1e-8).mean()
    optimizer = Adadelta(model.params, [x, mask, y], cost)
    guess = theano.function([x, mask], p.argmax(axis=1), name="guess")
    rng = numpy.random.RandomState(5)
    costs = []
    for _ in range(n_updates):
        costs.append(float(optimizer.look(*sentences(rng))))
        optimizer.move(1.0)
    some, their_mask, their_class = sentences(rng, 200)
    return costs, (guess(some, their_mask) == their_class).mean(), model, cost, (x, mask, y)
