"""Regression by a Gaussian process: its likelihood in three forms, and what maximizes it."""

import numpy as np
import theano
import theano.tensor as T
from scipy.optimize import minimize
from theano.tensor.nlinalg import ExtractDiag, det, matrix_inverse
from theano.tensor.slinalg import Cholesky, Solve, cholesky, solve_upper_triangular
from theano.tensor.slinalg import solve_lower_triangular


def squared_distances(a, b):
    of_a, of_b = (a ** 2).sum(1), (b ** 2).sum(1)
    return of_a.reshape((a.shape[0], 1)) + of_b.reshape((1, b.shape[0])) - 2 * a.dot(b.T)


def kernel(a, b, h):
    return T.exp(2 * h[0]) * T.exp(-.5 * squared_distances(a / T.exp(h[1]), b / T.exp(h[1])))


class GaussianProcess(object):
    def __init__(self):
        h, x, y = T.dvector('h'), T.dmatrix('x'), T.dvector('y')
        at = T.dmatrix('at')
        n = x.shape[0]
        K = kernel(x, x, h)
        K += (T.exp(2 * h[2]) + 1e-8) * T.identity_like(K)
        rest = .5 * n * np.log(2 * np.pi)
        L = Cholesky(lower=True)(K)
        a = solve_upper_triangular(L.T, solve_lower_triangular(L, y))
        losses = [
            .5 * T.dot(y, a) + T.sum(T.log(T.diag(L))) + rest,
            .5 * y.dot(matrix_inverse(K)).dot(y) + .5 * T.log(det(K)) + rest,
            .5 * T.dot(y.T, Solve(A_structure='symmetric')(K, y)) + rest
            + T.log(ExtractDiag(view=False)(cholesky(K))).sum(),
        ]
        inputs = [h, x, y]
        self.forms = theano.function(inputs, losses + [T.grad(loss, h) for loss in losses])
        self.loss = theano.function(inputs, [losses[0], T.grad(losses[0], h)])
        self.curvature = theano.function(inputs, theano.gradient.hessian(losses[0], h))
        across = kernel(at, x, h)
        v = solve_lower_triangular(L, across.T)
        variance = T.exp(2 * h[0]) - T.sum(v ** 2, axis=0)
        self.predict = theano.function(inputs + [at], [across.dot(a), variance])

    def fit(self, x, y):
        found = minimize(
            lambda h: [np.asarray(v, dtype='float64') for v in self.loss(h, x, y)],
            np.zeros(3), jac=True, method='L-BFGS-B',
        )
        return found.x


def train():
    rng = np.random.RandomState(0)
    x = np.sort(rng.uniform(-3, 3, size=(40, 1)), axis=0)
    y = np.sin(2 * x[:, 0]) + .1 * rng.randn(40)
    process = GaussianProcess()
    return process, process.fit(x, y), x, y
