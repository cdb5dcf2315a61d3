"""Products of all kinds, and linear algebra."""

from __future__ import annotations

import numpy as np

import symcomp
import symcomp.tensor as T
from symcomp.tensor.signal import pool
from symcomp.tests.golden.functions.values import numbers, positive_definite
from symcomp.tests.golden.registry import Golden, golden


@golden
def products() -> Golden:
    """Multiply vectors, matrices and stacks of matrices."""
    x, y, v, cube = T.dmatrix("x"), T.dmatrix("y"), T.dvector("v"), T.dtensor3("cube")
    outputs = [T.dot(x, y), T.dot(x, v), T.dot(v, x.T), T.dot(v, v), T.outer(v, v * 2)]
    outputs += [T.batched_dot(cube, cube.dimshuffle(0, 2, 1)), T.tensordot(cube, x, [[2], [1]])]
    outputs += [T.dot(cube, y), T.matmul(cube, v), T.vecdot(x, x)]
    arguments = [numbers(3, 4), numbers(4, 2), numbers(4), numbers(2, 3, 4)]
    return Golden([x, y, v, cube], outputs, arguments)


@golden
def products_of_other_dtypes() -> Golden:
    """Multiply integers, float16 and complex numbers."""
    i, h, z = T.lmatrix("i"), T.tensor("float16", (None, None), name="h"), T.zmatrix("z")
    outputs = [T.dot(i, i), T.dot(h, h), T.dot(z, T.conj(z).T), T.dot(i, z)]
    arguments = [numbers(3, 3, dtype=dtype) for dtype in ("int64", "float16", "complex128")]
    return Golden([i, h, z], outputs, arguments)


@golden
def products_with_factors() -> Golden:
    """Build `C - s * dot(A, B)`, where `s` is an argument, for matrices and vectors."""
    c, a, b, v, s = T.dmatrix("c"), T.dmatrix("a"), T.dmatrix("b"), T.dvector("v"), T.dscalar("s")
    outputs = [c - s * T.dot(a, b), 2 * T.dot(a, b) + c * s, v - s * T.dot(c, v)]
    outputs += [c + T.outer(v, v) * s, c - s * T.dot(a, b).sum()]
    arguments = [numbers(3, 3), numbers(3, 4), numbers(4, 3), numbers(3), numbers()]
    return Golden([c, a, b, v, s], outputs, arguments)


@golden
def chain_of_products() -> Golden:
    """Multiply a chain of matrices, in an order that depends on the lengths of the call."""
    a, b, c, v = T.dmatrix("a"), T.dmatrix("b"), T.dmatrix("c"), T.dvector("v")
    product = T.dot(T.dot(T.dot(a, b), c), v)
    slopes = symcomp.grad((product**2).sum(), [a, b, c, v])
    arguments = [numbers(3, 4), numbers(4, 5), numbers(5, 2), numbers(2)]
    return Golden([a, b, c, v], [product, T.dot(T.dot(a, b), c), *slopes], arguments)


@golden
def small_products_in_a_row() -> Golden:
    """Shorten `op_chain_100_small_ops` of `benchmarks/runner.py`."""
    a = T.dmatrix("a")
    z = a
    for _ in range(4):
        z = T.tanh(T.dot(z, a))
    return Golden([a], z, [np.eye(2) * 0.9])


@golden
def einsums() -> Golden:
    x, y, z = T.dmatrix("x"), T.dmatrix("y"), T.dtensor3("z")
    outputs = [T.einsum("ij,jk->ik", x, y), T.einsum("ij,ij->i", x, x), T.einsum("bij->bji", z)]
    outputs += [T.einsum("bij,jk,bik->b", z, y, z), T.einsum("bii->b", z[:, :, :3])]
    return Golden([x, y, z], outputs, [numbers(3, 4), numbers(4, 4), numbers(2, 3, 4)])


@golden
def solves() -> Golden:
    """Solve systems with general, triangular and symmetric matrices; differentiate one."""
    a, s, b = T.dmatrix("a"), T.dmatrix("s"), T.dvector("b")
    lower = T.slinalg.cholesky(s)
    x = T.slinalg.solve(a, b)
    outputs = [x, T.slinalg.solve_lower_triangular(lower, b), T.dot(T.nlinalg.matrix_inverse(a), b)]
    outputs += [T.slinalg.cho_solve((lower, True), b), *symcomp.grad((x**2).sum(), [a, b])]
    arguments = [positive_definite(3) + np.triu(numbers(3, 3)), positive_definite(3), numbers(3)]
    return Golden([a, s, b], outputs, arguments)


@golden
def decompositions() -> Golden:
    a, s = T.dmatrix("a"), T.dmatrix("s")
    q, r = T.nlinalg.qr(a)
    u, sigma, vt = T.nlinalg.svd(a, full_matrices=False)
    w, v = T.nlinalg.eigh(s)
    outputs = [abs(T.dot(q, r)), sigma, T.dot(u * sigma, vt), w, T.dot(v * w, v.T)]
    outputs += [T.nlinalg.det(s), T.nlinalg.slogdet(s)[1], T.nlinalg.trace(a[:3])]
    return Golden([a, s], outputs, [numbers(4, 3), positive_definite(3)])


@golden
def decomposition_gradients() -> Golden:
    s = T.dmatrix("s")
    w, v = T.nlinalg.eigh(s)
    loss = (w**2 * (v**2).sum(axis=0)).sum() + T.log(T.nlinalg.det(s))
    loss += T.slinalg.cholesky(s).sum() + T.nlinalg.matrix_inverse(s).sum()
    return Golden([s], symcomp.grad(loss, s), [positive_definite(3)])


@golden
def stacks_of_matrices() -> Golden:
    """Decompose stacks of small matrices, and solve their systems."""
    s, b = T.dtensor3("s"), T.dmatrix("b")
    lower = T.linalg.cholesky(s)
    outputs = [lower, T.linalg.solve(s, b[:, :, None]), T.linalg.det(s), T.linalg.eigvalsh(s)]
    return Golden([s, b], outputs, [np.stack([positive_definite(3)] * 2), numbers(2, 3)])


@golden
def fourier() -> Golden:
    """Filter in the frequency domain, and differentiate it."""
    x, h = T.dmatrix("x"), T.dvector("h")
    y = T.fft.irfftn(T.fft.rfftn(x, axes=(1,)) * T.fft.rfftn(h), axes=(1,))
    slopes = symcomp.grad((y**2).sum(), [x, h])
    return Golden([x, h], [y, *slopes], [numbers(3, 8), numbers(8)])


@golden
def convolutions() -> Golden:
    """Convolve with strides, dilation and groups; pool in each mode."""
    x, k = T.ftensor4("x"), T.ftensor4("k")
    conv = T.nnet.conv2d(x, k, subsample=(2, 1), filter_dilation=(1, 2), num_groups=2)
    modes = ("max", "sum", "average_inc_pad", "average_exc_pad")
    pools = [pool.pool_2d(x, (2, 2), True, stride=(1, 2), mode=mode) for mode in modes]
    slopes = symcomp.grad((conv**2).sum() + sum((p**2).sum() for p in pools[:1]), [x, k])
    arguments = [numbers(2, 2, 6, 7, dtype="float32"), numbers(4, 1, 2, 3, dtype="float32")]
    return Golden([x, k], [conv, *pools, *slopes], arguments)
