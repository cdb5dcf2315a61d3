"""Softmax regression by minibatches: the data live in shared variables, batches come by number."""

from __future__ import print_function

import sys

import numpy
import theano
import theano.tensor as T

FLOAT = theano.config.floatX


class SoftmaxClassifier(object):
    def __init__(self, features, n_features, n_classes):
        self.weights = theano.shared(
            value=numpy.zeros((n_features, n_classes), dtype=FLOAT), name="weights", borrow=True
        )
        self.bias = theano.shared(numpy.zeros(n_classes, dtype=FLOAT), name="bias", borrow=True)
        self.params = [self.weights, self.bias]
        self.probabilities = T.nnet.softmax(T.dot(features, self.weights) + self.bias)
        self.guess = T.argmax(self.probabilities, axis=1)

    def cost(self, labels):
        log_p = T.log(self.probabilities)
        return -T.mean(log_p[T.arange(labels.shape[0]), labels])

    def mistakes(self, labels):
        assert labels.ndim == self.guess.ndim and labels.dtype.startswith("int")
        return T.mean(T.neq(self.guess, labels))


def blobs(n, n_features, n_classes, seed):
    rng = numpy.random.RandomState(seed)
    centers = numpy.random.RandomState(0).normal(size=(n_classes, n_features))
    labels = rng.randint(n_classes, size=n)
    return centers[labels] + rng.normal(scale=1.5, size=(n, n_features)), labels


def to_device(points, labels):
    """Both as floats, as the GPU wants them; the labels are seen as integers."""
    points = theano.shared(numpy.asarray(points, dtype=FLOAT), borrow=True)
    labels = theano.shared(numpy.asarray(labels, dtype=FLOAT), borrow=True)
    return points, T.cast(labels, "int32")


def train(rate=0.1, n_epochs=8, batch=20, n_features=12, n_classes=5):
    train_x, train_y = to_device(*blobs(600, n_features, n_classes, 1))
    valid_x, valid_y = to_device(*blobs(200, n_features, n_classes, 2))
    n_train = train_x.get_value(borrow=True).shape[0] // batch
    n_valid = valid_x.get_value(borrow=True).shape[0] // batch

    k = T.lscalar("k")
    x = T.matrix("x")
    y = T.ivector("y")
    model = SoftmaxClassifier(x, n_features, n_classes)
    cost = model.cost(y)
    g_weights = T.grad(cost=cost, wrt=model.weights)
    g_bias = T.grad(cost=cost, wrt=model.bias)

    def part(data):
        return data[k * batch : (k + 1) * batch]

    learn = theano.function(
        inputs=[k],
        outputs=cost,
        updates=[
            (model.weights, model.weights - rate * g_weights),
            (model.bias, model.bias - rate * g_bias),
        ],
        givens={x: part(train_x), y: part(train_y)},
    )
    validate = theano.function(
        inputs=[k], outputs=model.mistakes(y), givens={x: part(valid_x), y: part(valid_y)}
    )
    costs, errors = [], []
    for epoch in range(n_epochs):
        costs.append(numpy.mean([learn(i) for i in range(n_train)]))
        errors.append(numpy.mean([validate(i) for i in range(n_valid)]))
        print("epoch %i: cost %f, validation error %f%%" % (epoch, costs[-1], 100.0 * errors[-1]))
    return costs, errors, model, cost, (x, y)


if __name__ == "__main__":
    train(n_epochs=int(sys.argv[1]) if len(sys.argv) > 1 else 8)
