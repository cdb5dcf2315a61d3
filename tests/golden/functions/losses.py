"""Losses and their gradients."""

from __future__ import annotations

import numpy as np

import symcomp
import symcomp.tensor as T
from symcomp.tests.golden.functions.values import numbers, positive_definite
from symcomp.tests.golden.registry import Golden, golden


@golden
def softmax_cross_entropy() -> Golden:
    """Compare softmax with rows of probabilities."""
    x, p = T.dmatrices("x", "p")
    loss = -(p * T.log(T.nnet.softmax(x))).sum(axis=1).mean()
    return Golden([x, p], [loss, symcomp.grad(loss, x)], [numbers(4, 3), np.full((4, 3), 1 / 3)])


@golden
def binary_cross_entropy() -> Golden:
    x, y = T.dvectors("x", "y")
    p = T.nnet.sigmoid(x)
    loss = -(y * T.log(p) + (1 - y) * T.log(1 - p)).mean()
    return Golden([x, y], [loss, symcomp.grad(loss, x)], [numbers(7), abs(numbers(7))])


@golden
def robust_losses() -> Golden:
    """Build hinge, Huber and log-cosh losses."""
    x, y = T.dvectors("x", "y")
    error = x - y
    huber = T.switch(abs(error) < 1, error**2 / 2, abs(error) - 0.5).mean()
    losses = [T.maximum(0, 1 - x * y).mean(), huber, T.logcosh(error).mean()]
    slopes = [symcomp.grad(loss, x) for loss in losses]
    return Golden([x, y], [*losses, *slopes], [numbers(7), 2 * numbers(7)])


@golden
def gaussian_divergence() -> Golden:
    """Build the loss of a variational autoencoder: likelihood, divergence and a draw."""
    mean, log_var, x = T.dmatrices("mean", "log_var", "x")
    noise = T.random.RandomStream(seed=5).normal(size=mean.shape)
    z = mean + T.exp(log_var / 2) * noise
    divergence = (T.exp(log_var) + mean**2 - 1 - log_var).sum(axis=1) / 2
    likelihood = -((x - z) ** 2 + np.log(2 * np.pi)).sum(axis=1) / 2
    loss = (divergence - likelihood).mean()
    slopes = symcomp.grad(loss, [mean, log_var])
    return Golden([mean, log_var, x], [loss, *slopes], [numbers(3, 4)] * 3)


@golden
def mixture_likelihood() -> Golden:
    """Build the likelihood of a mixture, as a logsumexp over its components."""
    x, mean, scale, weight = T.dvector("x"), T.dvector("mean"), T.dvector("scale"), T.dvector("w")
    standard = (x[:, None] - mean[None, :]) / T.exp(scale)[None, :]
    log_p = -(standard**2) / 2 - scale[None, :] + T.nnet.log_softmax(weight[None, :])
    loss = -T.log(T.exp(log_p).sum(axis=1)).sum()
    parameters = [mean, scale, weight]
    slopes = symcomp.grad(loss, parameters)
    return Golden([x, *parameters], [loss, *slopes], [numbers(8), *[numbers(3)] * 3])


@golden
def gaussian_process_likelihood() -> Golden:
    """Build a likelihood by Cholesky decomposition."""
    x, y, scale = T.dmatrix("x"), T.dvector("y"), T.dscalar("scale")
    squares = (x**2).sum(axis=1)
    distance = squares[:, None] + squares[None, :] - 2 * T.dot(x, x.T)
    kernel = T.exp(-distance / (2 * scale**2)) + 0.1 * T.eye(x.shape[0])
    factor = T.slinalg.cholesky(kernel)
    solved = T.slinalg.solve_lower_triangular(factor, y)
    loss = (solved**2).sum() / 2 + T.log(T.diagonal(factor)).sum()
    slopes = symcomp.grad(loss, [x, scale])
    return Golden([x, y, scale], [loss, *slopes], [numbers(5, 2), numbers(5), np.float64(0.7)])


@golden
def normal_log_density() -> Golden:
    """Build a density with the inverse and the determinant of one matrix."""
    x, mean, cov = T.dmatrix("x"), T.dvector("mean"), T.dmatrix("cov")
    centred = x - mean
    squares = (T.dot(centred, T.nlinalg.matrix_inverse(cov)) * centred).sum(axis=1)
    density = -(squares + T.log(T.nlinalg.det(cov))) / 2
    slopes = symcomp.grad(density.sum(), [mean, cov])
    arguments = [numbers(6, 3), numbers(3), positive_definite(3)]
    return Golden([x, mean, cov], [density, *slopes], arguments)
