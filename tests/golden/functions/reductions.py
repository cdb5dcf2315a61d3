"""Reductions, softmax and its like, cumulative functions."""

from __future__ import annotations

import symcomp
import symcomp.tensor as T
from symcomp.tests.golden.functions.values import numbers
from symcomp.tests.golden.registry import Golden, golden


@golden
def reductions_over_axes() -> Golden:
    """Reduce over each axis, over two, over all."""
    x = T.dtensor3("x")
    outputs = [x.sum(axis=axis) for axis in (0, 1, 2, (0, 2), None)]
    outputs += [x.max(axis=1), x.min(), x.prod(axis=2), T.argmax(x, axis=1), T.argmin(x)]
    return Golden([x], outputs, [numbers(2, 3, 4)])


@golden
def reductions_of_dtypes() -> Golden:
    """Reduce arrays of several dtypes."""
    dtypes = ("float32", "float16", "int8", "bool", "complex64")
    inputs = [T.tensor(dtype, (None, None), name=dtype) for dtype in dtypes]
    f, h, i, b, c = inputs
    outputs = [x.sum(axis=0) for x in inputs] + [f.max(axis=0), i.min(), h.mean(axis=1)]
    outputs += [T.all(b, axis=1), T.any(b), c.prod(), i.mean()]
    return Golden(inputs, outputs, [numbers(3, 4, dtype=dtype) for dtype in dtypes])


@golden
def statistics() -> Golden:
    """Build means, variances and norms, and differentiate them."""
    x = T.dmatrix("x")
    outputs = [x.mean(axis=0), x.var(axis=1), x.std(), x.norm(2), x.norm(1, axis=0), T.ptp(x)]
    slope = symcomp.grad(outputs[1].sum() + outputs[3], x)
    return Golden([x], [*outputs, slope, T.cov(x)], [numbers(4, 5)])


@golden
def reduced_expressions() -> Golden:
    """Fuse reductions with the expressions that they reduce."""
    x, y = T.dmatrices("x", "y")
    outputs = [T.exp(x * y).sum(axis=1), (x * y).sum(), (x**2).sum(axis=0), (x - y).max(axis=1)]
    return Golden([x, y], outputs, [numbers(3, 4), numbers(3, 4)])


@golden
def softmax_lines() -> Golden:
    """Build softmax along each axis, its logarithm, and a gradient."""
    x = T.fmatrix("x")
    outputs = [T.softmax(x, axis=1), T.softmax(x, axis=0), T.log_softmax(x, axis=1)]
    outputs += [T.logsumexp(x, axis=1), T.softmax(x[0], axis=0)]
    slope = symcomp.grad((outputs[0] ** 2).sum(), x)
    return Golden([x], [*outputs, slope], [numbers(3, 4, dtype="float32")])


@golden
def extremes_with_gradients() -> Golden:
    x = T.dmatrix("x")
    loss = x.max(axis=1).sum() + x.min(axis=0).prod()
    return Golden([x], [loss, symcomp.grad(loss, x)], [numbers(3, 4)])


@golden
def cumulative_functions() -> Golden:
    x = T.dmatrix("x")
    sums, products = T.cumsum(x, axis=1), T.cumprod(x, axis=0)
    slope = symcomp.grad((sums**2).sum() + products.sum(), x)
    return Golden([x], [sums, products, T.cumsum(x), T.diff(x), slope], [numbers(3, 4)])
