"""Two layers of convolution and pooling, dropout, RMSprop: which way do the stripes run?"""

import numpy as np
import theano
import theano.tensor as T
from theano.sandbox.rng_mrg import MRG_RandomStreams
from theano.tensor.nnet import conv
from theano.tensor.signal import downsample

srng = MRG_RandomStreams(seed=7)


def floatX(x):
    return np.asarray(x, dtype=theano.config.floatX)


class ConvPool(object):
    def __init__(self, rng, input, filter_shape, image_shape, poolsize=(2, 2)):
        assert image_shape[1] == filter_shape[1]
        fan_in = np.prod(filter_shape[1:])
        self.W = theano.shared(floatX(rng.normal(0, np.sqrt(2. / fan_in), filter_shape)), borrow=True)
        self.b = theano.shared(floatX(np.zeros(filter_shape[0])), borrow=True)
        conv_out = conv.conv2d(
            input=input, filters=self.W, filter_shape=filter_shape, image_shape=image_shape
        )
        pooled = downsample.max_pool_2d(input=conv_out, ds=poolsize, ignore_border=True)
        self.output = T.nnet.relu(pooled + self.b.dimshuffle('x', 0, 'x', 'x'))
        self.params = [self.W, self.b]


def dropout(x, p):
    if p > 0:
        retain = 1 - p
        x *= srng.binomial(x.shape, p=retain, dtype=theano.config.floatX)
        x /= retain
    return x


def rmsprop(cost, params, lr=0.002, rho=0.9, epsilon=1e-6):
    updates = []
    for p, g in zip(params, T.grad(cost=cost, wrt=params)):
        acc = theano.shared(p.get_value() * 0.)
        acc_new = rho * acc + (1 - rho) * g ** 2
        updates.append((acc, acc_new))
        updates.append((p, p - lr * g / T.sqrt(acc_new + epsilon)))
    return updates


def stripes(rng, n, side=14):
    """Waves along one of three directions, of any phase, with noise."""
    labels = rng.randint(3, size=n)
    i, j = np.mgrid[:side, :side]
    ways = np.stack([i, j, (i + j) / np.sqrt(2)])
    waves = np.sin(1.5 * ways[labels] + rng.uniform(0, 2 * np.pi, (n, 1, 1)))
    noisy = waves + rng.normal(scale=0.3, size=waves.shape)
    return floatX(noisy[:, np.newaxis]), labels.astype('int32')


def train(n_steps=120, batch=20):
    rng = np.random.RandomState(23455)
    X, Y = T.tensor4('X'), T.ivector('Y')
    first = ConvPool(rng, X, (6, 1, 3, 3), (batch, 1, 14, 14))
    second = ConvPool(rng, first.output, (8, 6, 3, 3), (batch, 6, 6, 6))
    features = second.output.flatten(2)
    w_out = theano.shared(floatX(rng.normal(0, 0.1, (8 * 2 * 2, 3))))
    b_out = theano.shared(floatX(np.zeros(3)))

    def guess(features):
        return T.nnet.softmax(T.dot(features, w_out) + b_out)

    params = first.params + second.params + [w_out, b_out]
    noisy_cost = T.nnet.categorical_crossentropy(guess(dropout(features, 0.3)), Y).mean()
    step = theano.function([X, Y], noisy_cost, updates=rmsprop(noisy_cost, params))
    p = guess(features)
    error = theano.function([X, Y], T.neq(T.argmax(p, axis=1), Y).mean())
    costs = [float(step(*stripes(rng, batch))) for _ in range(n_steps)]
    errors = [float(error(*stripes(rng, batch))) for _ in range(5)]
    cost = T.nnet.categorical_crossentropy(p, Y).mean()
    return costs, np.mean(errors), params, cost, (X, Y)
