"""A recurrent network of Elman's kind that must repeat its input two steps later."""

import numpy as np
import theano
import theano.tensor as T

dtype = theano.config.floatX


class RNN(object):
    def __init__(self, n_in, n_hidden, n_out, seed=7):
        rng = np.random.RandomState(seed)

        def init(*shape):
            return theano.shared(rng.uniform(-0.2, 0.2, shape).astype(dtype))

        self.W_in, self.W, self.W_out = (
            init(n_in, n_hidden),
            init(n_hidden, n_hidden),
            init(n_hidden, n_out),
        )
        self.b_h = theano.shared(np.zeros(n_hidden, dtype=dtype), name="b_h")
        self.b_y = theano.shared(np.zeros(n_out, dtype=dtype), name="b_y")
        self.h0 = theano.shared(np.zeros(n_hidden, dtype=dtype), name="h0")
        self.params = [self.W_in, self.W, self.W_out, self.b_h, self.b_y, self.h0]
        for p, name in zip(self.params[:3], ["W_in", "W", "W_out"]):
            p.name = name

    def __call__(self, x):
        def step(x_t, h_tm1):
            h_t = T.tanh(T.dot(x_t, self.W_in) + T.dot(h_tm1, self.W) + self.b_h)
            y_t = T.dot(h_t, self.W_out) + self.b_y
            return [h_t, y_t]

        [h, y], _ = theano.scan(step, sequences=x, outputs_info=[self.h0, None], name="rnn")
        return y


def clipped(grads, limit):
    norm = T.sqrt(sum(T.sum(T.sqr(g)) for g in grads))
    return [T.switch(T.ge(norm, limit), g * limit / norm, g) for g in grads]


def train(n_steps=300, length=12):
    x, t = T.matrix("x"), T.matrix("t")
    lr = T.scalar("lr")
    net = RNN(1, 10, 1)
    cost = ((net(x)[2:] - t[:-2]) ** 2).mean()
    gparams = clipped(T.grad(cost, net.params), 1.0)
    updates = {}
    for p, g in zip(net.params, gparams):
        updates[p] = p - lr * g
    train_fn = theano.function([x, t, lr], cost, updates=updates, allow_input_downcast=True)
    rng = np.random.RandomState(0)
    losses = []
    for i in range(n_steps):
        seq = rng.normal(size=(length, 1))
        losses.append(float(train_fn(seq, seq, 0.2)))
    return losses, net, cost, (x, t)
