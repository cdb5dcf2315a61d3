"""Steps of Newton's method with Gauss's matrix, whose products with vectors are an R-op and an
L-op; conjugate gradients solve for each step.
"""

import numpy as np
import theano
import theano.tensor as T


class Network(object):
    def __init__(self, rng, sizes):
        self.params = []
        for n_in, n_out in zip(sizes[:-1], sizes[1:]):
            self.params.append(theano.shared(rng.randn(n_in, n_out) / np.sqrt(n_in)))
            self.params.append(theano.shared(np.zeros(n_out)))
        self.x, self.y = T.dmatrix('x'), T.ivector('y')
        s = self.x
        for i in range(0, len(self.params), 2):
            s = T.dot(s, self.params[i]) + self.params[i + 1]
            s = T.tanh(s) if i + 2 < len(self.params) else s
        self.outputs = s
        self.cost = T.nnet.categorical_crossentropy(T.nnet.softmax(s), self.y).mean()

    def product_function(self):
        """Multiply the Gauss-Newton matrix, plus a multiple of the identity, by vectors."""
        damping = T.dscalar('damping')
        v = [T.TensorType('float64', p.broadcastable)() for p in self.params]
        Jv = T.Rop(self.outputs, self.params, v)
        HJv = T.grad(
            T.sum(T.grad(self.cost, self.outputs) * Jv), self.outputs, consider_constant=[Jv]
        )
        Gv = T.grad(T.sum(HJv * self.outputs), self.params, consider_constant=[HJv, Jv])
        Gv = [product + damping * u for product, u in zip(Gv, v)]
        return theano.function([self.x, self.y, damping] + v, Gv)


def dot(a, b):
    return sum((u * v).sum() for u, v in zip(a, b))


def conjugate_gradients(product, b, n_steps):
    x, r = [np.zeros_like(v) for v in b], b
    p, norm = r, dot(r, r)
    for _ in range(n_steps):
        Ap = product(p)
        length = norm / dot(p, Ap)
        x = [u + length * v for u, v in zip(x, p)]
        r = [u - length * v for u, v in zip(r, Ap)]
        norm, before = dot(r, r), norm
        if norm < 1e-12:
            break
        p = [u + norm / before * v for u, v in zip(r, p)]
    return x


def train(n_steps=20, damping=1e-2):
    rng = np.random.RandomState(0)
    x = rng.randn(150, 4)
    y = np.argmax(x[:, :3] ** 2 + x[:, 1:], axis=1).astype('int32')
    network = Network(rng, [4, 10, 3])
    inputs = [network.x, network.y]
    product = network.product_function()
    slopes = theano.function(inputs, T.grad(network.cost, network.params))
    cost = theano.function(inputs, network.cost)
    costs = [float(cost(x, y))]
    for _ in range(n_steps):
        b = [-g for g in slopes(x, y)]
        for p, step in zip(
            network.params, conjugate_gradients(lambda v: product(x, y, damping, *v), b, 25)
        ):
            p.set_value(p.get_value() + step)
        costs.append(float(cost(x, y)))
    return costs, network, product, (x, y)
