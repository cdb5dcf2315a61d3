"""One use of every function of tensors, with values: what tests of the native machine run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import symcomp.tensor as T
from symcomp.gradient import grad

Example = tuple[Callable[..., Any], tuple[Any, ...]]

_RNG = np.random.default_rng(3)
V = _RNG.normal(size=7)
M = _RNG.normal(size=(5, 7))
C = _RNG.normal(size=(2, 5, 7))
I = np.array([3, -1, 0, 3])
N = np.array(3)
W = np.arange(35).reshape(5, 7) % 4
B = M > 0
Z = M + 1j * M[::-1]


MOVES: dict[str, Example] = {
    "join": (lambda x, y: T.join(0, x, y, x), (M, M)),
    "join_columns": (lambda x, y: T.join(1, x, y), (M, C[0])),
    "stack": (lambda x, y: T.stack([x, y], axis=1), (M, M)),
    "stack_scalars": (lambda x: T.stacklists([[x[0], x[1]], [x[2], x[0]]]), (V,)),
    "split": (lambda x: [p * 2 for p in T.split(x, [2, 1, 4], 3, axis=1)], (M,)),
    "alloc": (lambda x, n: T.alloc(x, n, 5, 7), (M, N)),
    "alloc_scalar": (lambda n: T.alloc(1.5, n, 2), (N,)),
    "zeros_like": (T.zeros_like, (M,)),
    "tile": (lambda x: T.tile(x, (2, 3)), (M,)),
    "repeat": (lambda x, n: T.repeat(x, n, axis=1), (M, N)),
    "repeat_each": (lambda x: T.repeat(x, [1, 0, 2, 1, 3], axis=0), (M,)),
    "roll": (lambda x: T.roll(x, 2, axis=1), (M,)),
    "flip": (lambda x: T.flip(x, 0) + 0, (M,)),
    "pad": (lambda x: T.pad(x, 2), (M,)),
    "pad_reflect": (lambda x: T.pad(x, 2, mode="reflect"), (M,)),
    "reshape": (lambda x: T.reshape(x, (7, 5)), (M,)),
    "reshape_turned": (lambda x, n: T.reshape(x.T, (-1, n)), (M, np.array(7))),
    "flatten": (lambda x: T.flatten(x.T) * 2, (M,)),
    "dimshuffle": (lambda x: x.dimshuffle(1, "x", 0) + 1, (M,)),
    "cpu_contiguous": (lambda x: T.cpu_contiguous(x.T), (M,)),
    "copy": (lambda x: T.tensor_copy(x.T), (M,)),
    "specify_shape": (lambda x: T.specify_shape(x, (5, None)) * 2, (M,)),
    "unbroadcast": (lambda x: T.unbroadcast(T.addbroadcast(x, 0), 0) * 2, (M[:1],)),
    "shape": (lambda x: [x.shape, x.shape[0], x.size], (M,)),
    "cast": (lambda x: [T.cast(x, d) for d in ("float32", "int8", "bool")], (M,)),
    "part": (lambda x, n: x[1:n, ::-2] * 1, (M, N)),
    "element": (lambda x, n: x[n, -1], (M, N)),
    "rows": (lambda x, i: x[i], (M, I)),
    "columns": (lambda x, i: x[:, i], (M, I)),
    "columns_reversed": (lambda x, i: x[::-1, i], (M, I)),
    "elements": (lambda x, i: x[i, i + 1], (M, I)),
    "grid": (lambda x, i: x[i[:, None], i[None, :]], (M, I)),
    "apart": (lambda x, i: x[i % 2, :, i], (C, I)),
    "mixed": (lambda x, i, n: x[None, n % 2, i, ::2], (C, I, N)),
    "mask": (lambda x: x[x > 0], (M,)),
    "take": (lambda x, i: T.take(x, i.dimshuffle(0, "x"), axis=1), (M, I)),
    "take_along_axis": (lambda x, i: T.take_along_axis(x, i, 1), (M, W)),
    "choose": (lambda i, x: T.choose(i % 2, [x, -x]), (W, M)),
    "compress": (lambda x: T.compress(T.gt(x[:, 0], 0), x, axis=0), (M,)),
    "set_part": (lambda x, y: T.set_subtensor(x[1:3, ::2], y), (M, C[0, :2, :4])),
    "set_number": (lambda x: T.set_subtensor(x[:, 1], 3.0), (M,)),
    "inc_part": (lambda x, y: T.inc_subtensor(x[1:, ::-1], y), (M, C[0, 1:])),
    "inc_row": (lambda x, n, y: T.inc_subtensor(x[n], y), (M, N, V)),
    "inc_column": (lambda x, n, y: T.inc_subtensor(x[:, n - 5], y), (M, N, V[:5])),
    "set_rows": (lambda x, i, y: T.set_subtensor(x[i], y), (M, I, M[:4])),
    "inc_rows": (lambda x, i, y: T.inc_subtensor(x[i], y), (M, I, M[:4])),
    "inc_columns": (lambda x, i, y: T.inc_subtensor(x[:, i], y), (M, I, M[:, :4])),
    "inc_elements": (lambda x, i, y: T.inc_subtensor(x[i, i], y), (M, I, V[:4])),
    "inc_grid": (lambda x, i: T.inc_subtensor(x[i[:, None], i[None, :]], 1.0), (M, I)),
    "inc_mask": (lambda x: T.inc_subtensor(x[x > 0], 1.0), (M,)),
    "set_apart": (lambda x, i, y: T.set_subtensor(x[i % 2, :, i], y), (C, I, M[:4, :5])),
    "diagonal": (lambda x: T.diagonal(x, 1), (M,)),
    "diag": (T.diag, (V,)),
    "alloc_diag": (lambda v: T.alloc_diag(v, 1), (V,)),
    "fill_diagonal": (lambda x: T.fill_diagonal(x, 2.0), (M,)),
    "trace": (T.trace, (M,)),
    "diff": (lambda x: T.diff(x, 2), (M,)),
    "to_one_hot": (lambda i: T.to_one_hot(i, 4), (np.array([3, 1, 0]),)),
    "plus": (lambda x: grad((x[1:] * x[:-1]).sum(), x), (M,)),
}

NUMBERS: dict[str, Example] = {
    "arange": (lambda n: T.arange(n), (N,)),
    "arange_floats": (lambda n: T.arange(1.5, n, 0.25), (np.array(3.0),)),
    "linspace": (lambda n: T.linspace(0.0, 1.0, n), (N,)),
    "eye": (lambda n: T.eye(n, n + 2, 1), (N,)),
    "tri": (lambda n: T.tri(n), (N,)),
    "tril": (T.tril, (M,)),
    "triu": (lambda x: T.triu(x, 1), (M,)),
    "tril_indices": (lambda n: T.tril_indices(n), (N,)),
    "mgrid": (lambda n: T.mgrid[0:n, 0:3], (N,)),
    "unravel_index": (lambda i: T.unravel_index(i, (5, 7)), (np.array([3, 11]),)),
    "ravel_multi_index": (lambda i: T.ravel_multi_index([i, i], (5, 7)), (np.array([3, 1]),)),
}

LINES: dict[str, Example] = {
    "argmax": (lambda x: [T.argmax(x), T.argmax(x, 0), T.argmax(x, axis=(0, 2))], (C,)),
    "argmin": (lambda x: [T.argmin(x), T.argmin(x, 0), T.argmin(x, -1)], (C,)),
    "max_and_argmax": (lambda x: T.max_and_argmax(x, axis=1), (M,)),
    "cumsum": (lambda x: [T.cumsum(x), T.cumsum(x, 0), T.cumsum(x, 1)], (M,)),
    "cumprod": (lambda x: [T.cumprod(x, 0), T.cumprod(x, 1)], (M,)),
    "cumprod_gradient": (lambda x: grad(T.cumprod(x, 1).sum(), x), (M,)),
    "sort": (lambda x: [T.sort(x), T.sort(x, 0), T.sort(x, None)], (M,)),
    "sort_gradient": (lambda x: grad((T.sort(x, 0) * x).sum(), x), (M,)),
    "argsort": (lambda x: [T.argsort(x), T.argsort(x, 0)], (W,)),
    "topk": (lambda x: T.topk_and_argtopk(x, 3, axis=1), (M,)),
    "smallest_first": (lambda x: T.topk(x, -2, axis=0), (M,)),
    "searchsorted": (lambda x, y: T.searchsorted(T.sort(x), y), (V, M)),
    "median": (lambda x: T.median(x, axis=1), (M,)),
    "unique": (lambda x: T.unique(x, return_counts=True), (W,)),
    "bincount": (lambda i: T.bincount(i), (np.array([1, 3, 1]),)),
    "nonzero": (lambda x: T.nonzero(x), (B,)),
    "permute_row_elements": (lambda x, i: T.permute_row_elements(x, i), (M, W)),
    "reductions": (lambda x: [x.sum(0), x.prod(), x.max(1), x.mean(), x.any(1)], (M,)),
    "var": (lambda x: [x.var(), x.var(0), x.std(1)], (M,)),
    "ptp": (lambda x: T.ptp(x, 1), (M,)),
    "norm": (lambda x: [x.norm(2), x.norm(1, axis=0)], (M,)),
    "logsumexp": (lambda x: T.logsumexp(x, axis=1), (M,)),
    "softmax": (lambda x: [T.nnet.softmax(x), T.nnet.logsoftmax(x)], (M,)),
    "crossentropy": (
        lambda x, i: T.nnet.categorical_crossentropy(T.nnet.softmax(x), i),
        (M, np.array([3, 1, 0, 6, 2])),
    ),
}

SCALARS: dict[str, Example] = {
    "arithmetic": (lambda x, y: [x + y, x * y, x - y, x / y, x // y, x % y], (M, C[0])),
    "powers": (lambda x: [x**2, x**3, T.abs(x) ** 0.5, 2.0**x, T.sqrt(abs(x))], (M,)),
    "integers": (lambda i: [i // 3, i % 3, i**2, i << 1, i & 1, -i, T.sgn(i)], (W,)),
    "trigonometry": (lambda x: [T.sin(x), T.cos(x), T.tan(x), T.arctan(x)], (M,)),
    "hyperbolic": (lambda x: [T.sinh(x), T.cosh(x), T.tanh(x), T.arcsinh(x)], (M,)),
    "exponentials": (lambda x: [T.exp(x), T.expm1(x), T.exp2(x), T.log1p(abs(x))], (M,)),
    "logistic": (lambda x: [T.sigmoid(x), T.softplus(x), T.log_sigmoid(x)], (M,)),
    "errors": (lambda x: [T.erf(x), T.erfc(x)], (M,)),
    "rounding": (lambda x: [T.floor(x), T.ceil(x), T.round(x), T.trunc(x)], (M,)),
    "tests": (lambda x: [x > 0, T.eq(x, x), T.isnan(x), T.isinf(x), T.isclose(x, x)], (M,)),
    "switch": (lambda x: [T.switch(x > 0, x, 0), T.clip(x, -1, 1), T.maximum(x, 0)], (M,)),
    "gamma": (lambda x: [T.gammaln(abs(x)), T.psi(abs(x)), T.erfinv(T.tanh(x))], (M,)),
    "bessel": (lambda x: [T.j0(x), T.i0(x), T.iv(1, x)], (M,)),
    "complex": (lambda z: [z * z, z / (z + 3), abs(z), T.conj(z), z.real, T.angle(z)], (Z,)),
    "complex_functions": (lambda z: [T.exp(z), T.sqrt(z), T.sin(z), T.tanh(z)], (Z,)),
    "complex_sums": (lambda z: [z.sum(), z.prod(0), z.mean(1)], (Z,)),
    "complex_parts": (lambda x: [T.complex(x, -x), T.complex_from_polar(abs(x), x)], (M,)),
}

PRODUCTS: dict[str, Example] = {
    "dot": (lambda x, y: T.dot(x, y.T), (M, C[0])),
    "matrix_vector": (lambda x, v: T.dot(x, v), (M, V)),
    "inner": (lambda v, w: T.dot(v, w), (V, V)),
    "outer": (T.outer, (V, V)),
    "batched_dot": (lambda x: T.batched_dot(x, x.dimshuffle(0, 2, 1)), (C,)),
    "matmul": (lambda x, y: T.matmul(x, y.T), (C, M)),
    "tensordot": (lambda x, y: T.tensordot(x, y, axes=[[1, 2], [0, 1]]), (C, M)),
    "einsum": (lambda x, y: T.einsum("bij,ij->b", x, y), (C, M)),
    "integer_dot": (lambda i: T.dot(i, i.T), (W,)),
    "complex_dot": (lambda z: T.dot(z, z.T), (Z,)),
    "cov": (T.cov, (M,)),
}

EXAMPLES = {**MOVES, **NUMBERS, **LINES, **SCALARS, **PRODUCTS}
