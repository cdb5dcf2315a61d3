"""Tasks of `beside.py`: calls of functions whose arguments keep their shapes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from beside_registry import InTurn, Work, add, call, numbers, task

import symcomp
import symcomp.tensor as T
from symcomp.ifelse import ifelse

# -- arguments and results


def _arguments(count: int, trust: bool) -> Work:
    inputs = [T.dvector() for _ in range(count)]
    f = symcomp.function(inputs, sum(inputs[1:], inputs[0] + 1), trust_input=trust)
    return partial(f, *(numbers(4) for _ in inputs))


for _count in (1, 10):
    for _trust in (False, True):
        add(f"call/arguments_{_count}{'_trusted' * _trust}", partial(_arguments, _count, _trust))


@task("call/by_name_and_converted")
def _() -> Work:
    x, y = T.dvector("x"), T.dscalar("y")
    return partial(symcomp.function([x, y], x * y), x=[1.0, 2.0, 3.0], y=2.0)


@task("call/ten_results")
def _() -> Work:
    x = T.dvector()
    return call([x], [T.exp(x[k:]) for k in range(10)], numbers(12))


@task("call/several_layouts")
def _() -> Work:
    x = T.dmatrix()
    f = symcomp.function([x], T.exp(x) + 1, trust_input=True)
    a = numbers(4, 4)
    return InTurn(f, [(a,), (a.T,), (a[::2],), (a[:, ::-1],)])


# -- ops of graphs and of Python


def _wave(inline: bool, gradient: bool = False) -> Work:
    x, y = T.dvectors("x", "y")
    wave = symcomp.OpFromGraph([x, y], [T.sin(x) * y], inline=inline)
    a, b = T.dvectors("a", "b")
    z = wave(a, wave(a, b))
    return call([a, b], symcomp.grad(z.sum(), [a, b]) if gradient else z, numbers(4), numbers(4))


add("op_from_graph/called", partial(_wave, False))
add("op_from_graph/inlined", partial(_wave, True))
add("op_from_graph/gradient", partial(_wave, False, True))


@task("python_op/between")
def _() -> Work:
    @symcomp.as_op([T.dvector], [T.dvector])
    def double(value: Any) -> Any:
        return value * 2

    x = T.dvector()
    return call([x], T.exp(double(T.tanh(x))).sum(), numbers(10))


@task("jacobian/rows", per=4)
def _() -> Work:
    x = T.dvector()
    return call([x], symcomp.gradient.jacobian(T.cumprod(T.sort(x) + 2), x), numbers(4))


# -- branches


def _branches(conditions: Sequence[int]) -> Work:
    c, x, a = T.lscalar(), T.dvector(), T.dmatrix()
    f = symcomp.function([c, x, a], ifelse(c, T.tanh(T.dot(a, x)), T.exp(x) * 2), trust_input=True)
    rest = numbers(4), numbers(4, 4)
    return InTurn(f, [(np.asarray(value), *rest) for value in conditions])


add("ifelse/one_branch", partial(_branches, [1]))
add("ifelse/in_turn", partial(_branches, [1, 0]))


# -- parts of arrays


@task("slices/views")
def _() -> Work:
    x = T.dmatrix()
    parts = [x[1:, ::2], x[::-1], x[2], x[:, None, 1]]
    return call([x], sum(part.sum() for part in parts), numbers(6, 6))


@task("slices/of_read_lengths")
def _() -> Work:
    x, i, j = T.dvector(), T.lscalar(), T.lscalar()
    f = symcomp.function([x, i, j], x[i:j] * 2, trust_input=True)
    a = numbers(50)
    bounds = [(k % 7, 10 + k % 31) for k in range(217)]
    return InTurn(f, [(a, np.asarray(low), np.asarray(high)) for low, high in bounds])


@task("slices/written")
def _() -> Work:
    x, y = T.dmatrix(), T.dvector()
    z = T.inc_subtensor(T.set_subtensor(x[1], y)[:, ::2], 1.0)
    return call([x, y], z, numbers(6, 6), numbers(6))


@task("slices/short_rows")
def _() -> Work:
    """Add to all columns but the first of some rows, as gradients of differences do."""
    x = T.dmatrix()
    return call([x], T.inc_subtensor(T.zeros((200, 6))[:, 1:], x), numbers(200, 5))


@task("joins/small")
def _() -> Work:
    x, y = T.dmatrices("x", "y")
    joined = T.concatenate([x, y, T.exp(x)], axis=1)
    return call([x, y], [joined, T.stack([x[0], y[0]])], numbers(4, 4), numbers(4, 4))


@task("joins/split")
def _() -> Work:
    x = T.dmatrix()
    return call([x], [p * 2 for p in T.split(x, [2, 3, 1], 3, axis=1)], numbers(4, 6))


@task("layouts/transposed")
def _() -> Work:
    x, y = T.dmatrices("x", "y")
    return call([x, y], (x + y.T).reshape((-1,)), numbers(100, 100), numbers(100, 100))


@task("layouts/reversed_columns")
def _() -> Work:
    x, y = T.dmatrices("x", "y")
    return call([x, y], (x[:, ::-1] * y[:, ::-1]).sum(0), numbers(1000, 30), numbers(1000, 30))


def _rows_with_numbers(dtype: str) -> Work:
    x, m, s = T.matrix(dtype=dtype), *(T.vector(dtype=dtype) for _ in range(2))
    z = ((x - m[:, None]) ** 2 / s[:, None]).sum(axis=1)
    rows, *columns = numbers(1000, 64), numbers(1000, seed=1), numbers(1000, seed=2) ** 2 + 1
    return call([x, m, s], z, *(a.astype(dtype) for a in (rows, *columns)))


add("layouts/rows_with_numbers", partial(_rows_with_numbers, "float64"))
add("layouts/rows_with_numbers_float32", partial(_rows_with_numbers, "float32"))


# -- indexing


@task("indexing/rows")
def _() -> Work:
    x, i = T.dmatrix(), T.lvector()
    return call([x, i], x[i], numbers(100, 8), np.arange(20) * 7 % 100)


@task("indexing/elements")
def _() -> Work:
    x, i, j = T.dmatrix(), T.lvector(), T.lvector()
    return call([x, i, j], x[i, j] * 2, numbers(100, 8), np.arange(20) * 7 % 100, np.arange(20) % 8)


@task("indexing/increments")
def _() -> Work:
    x, y, i = T.dmatrix(), T.dmatrix(), T.lvector()
    z = T.inc_subtensor(x[i], y)
    return call([x, y, i], z, numbers(100, 8), numbers(20, 8), np.arange(20) * 7 % 100)


def _mask(several: bool) -> Work:
    x = T.dvector()
    f = symcomp.function([x], T.exp(x[x > 0]).sum(), trust_input=True)
    return InTurn(f, [(numbers(100, seed=k),) for k in range(50 if several else 1)])


add("indexing/mask", partial(_mask, False))
add("indexing/mask_of_other_lengths", partial(_mask, True))


@task("indexing/nonzero")
def _() -> Work:
    x = T.dmatrix()
    return call([x], T.nonzero(x > 0.5), numbers(10, 10))


@task("indexing/unique")
def _() -> Work:
    x = T.lvector()
    return call([x], T.unique(x, return_counts=True), np.arange(100) * 7 % 13)


@task("indexing/labels")
def _() -> Work:
    """Build log-probabilities of labels, and the gradient."""
    x, y = T.fmatrix(), T.ivector()
    loss = -T.nnet.log_softmax(x)[T.arange(y.shape[0]), y].mean()
    labels = (np.arange(32) % 10).astype("int32")
    return call([x, y], [loss, symcomp.grad(loss, x)], numbers(32, 10, dtype="float32"), labels)


# -- linear algebra


@task("linalg/solve_4")
def _() -> Work:
    a, b = T.dmatrix(), T.dvector()
    return call([a, b], T.slinalg.solve(a, b), numbers(4, 4) + 2 * np.eye(4), numbers(4))


def _symmetric(n: int) -> np.ndarray:
    a = numbers(n, n)
    return a @ a.T + n * np.eye(n)


def _of_symmetric(build: Callable[[Any], Any], n: int = 4) -> Work:
    s = T.dmatrix()
    return call([s], build(s), _symmetric(n))


add("linalg/cholesky_4", partial(_of_symmetric, T.slinalg.cholesky))
add("linalg/inverse_4", partial(_of_symmetric, T.nlinalg.matrix_inverse))
add("linalg/eigh_4", partial(_of_symmetric, T.nlinalg.eigh))
add("linalg/svd_4", partial(_of_symmetric, T.nlinalg.svd))
add("linalg/qr_4", partial(_of_symmetric, T.nlinalg.qr))
add("linalg/log_det_4", partial(_of_symmetric, lambda s: T.log(T.nlinalg.det(s))))
add("linalg/cholesky_gradient_4", partial(
    _of_symmetric, lambda s: symcomp.grad(T.slinalg.cholesky(s).sum(), s)
))  # fmt: skip
add("linalg/cholesky_50", partial(_of_symmetric, T.slinalg.cholesky, 50))
add("linalg/cholesky_100", partial(_of_symmetric, T.slinalg.cholesky, 100))
add("linalg/upper_triangle_50", partial(
    _of_symmetric, lambda s: T.slinalg.solve_triangular(s, s, lower=False), 50
))  # fmt: skip


@task("linalg/stack_of_solves")
def _() -> Work:
    a, b = T.dtensor3(), T.dtensor3()
    return call([a, b], T.linalg.solve(a, b), np.stack([_symmetric(4)] * 8), numbers(8, 4, 1))


# -- products


def _factor(n: int) -> Work:
    c, a, b, s = T.dmatrix(), T.dmatrix(), T.dmatrix(), T.dscalar()
    arguments = (*(numbers(n, n, seed=k) for k in range(3)), np.asarray(0.5))
    return call([c, a, b, s], c - s * T.dot(a, b), *arguments)


add("products/factor_4", partial(_factor, 4))
add("products/factor_64", partial(_factor, 64))


@task("products/factor_of_vector")
def _() -> Work:
    v, a, x, s = T.dvector(), T.dmatrix(), T.dvector(), T.dscalar()
    arguments = numbers(4), numbers(4, 4), numbers(4), np.asarray(0.5)
    return call([v, a, x, s], v - s * T.dot(a, x), *arguments)


@task("products/small")
def _() -> Work:
    a, v = T.dmatrix(), T.dvector()
    return call([a, v], [T.dot(a, a), T.dot(a, v), T.dot(v, v)], numbers(4, 4), numbers(4))


def _row(n: int, dtype: str) -> Work:
    x, w = T.vector(dtype=dtype), T.matrix(dtype=dtype)
    return call([x, w], T.dot(x, w), numbers(n, dtype=dtype), numbers(n, n, dtype=dtype))


add("products/row_1024", partial(_row, 1024, "float32"))
add("products/row_512_doubles", partial(_row, 512, "float64"))


@task("products/chain")
def _() -> Work:
    inputs = [T.dmatrix() for _ in range(4)]
    a, b, c, d = inputs
    product = T.dot(T.dot(T.dot(a, b), c), d)
    return call(inputs, product, numbers(4, 8), numbers(8, 6), numbers(6, 2), numbers(2, 9))


@task("products/stacks")
def _() -> Work:
    x, y = T.ftensor3(), T.ftensor3()
    arguments = numbers(8, 6, 5, dtype="float32"), numbers(8, 5, 7, dtype="float32")
    return call([x, y], T.batched_dot(x, y), *arguments)


@task("products/integers")
def _() -> Work:
    x = T.lmatrix()
    return call([x], T.dot(x, x), np.arange(64).reshape(8, 8))


# -- elements, reductions, functions along axes


def _elements(n: int) -> Work:
    x, y = T.dvectors("x", "y")
    z = T.tanh(x * y) + x * 2 - T.sqr(y)
    return call([x, y], z, numbers(n), numbers(n))


add("elements/10", partial(_elements, 10))
add("elements/10000", partial(_elements, 10_000))
add("elements/1000000", partial(_elements, 1_000_000))


@task("elements/large_result_kept")
def _() -> Work:
    """Hold the last result while the next one is made."""
    x = T.fvector()
    f = symcomp.function([x], x + 1, trust_input=True)
    a, held = numbers(1_000_000, dtype="float32"), [None, None]

    def work() -> None:
        held[0] = held[1]
        held[1] = f(a)

    return work


@task("elements/slopes_of_relu")
def _() -> Work:
    x = T.fvector()
    slopes = symcomp.grad((T.nnet.relu(x) ** 2).sum(), x)
    return call([x], slopes, numbers(10_000, dtype="float32") - 3)


@task("elements/ten_dtypes")
def _() -> Work:
    dtypes = ("int8", "int16", "int32", "int64", "uint8", "float16", "float32", "float64", "bool")
    inputs = [T.tensor(dtype, (None,)) for dtype in (*dtypes, "complex128")]
    return call(inputs, [x + x for x in inputs], *(np.ones(10, x.dtype) for x in inputs))


@task("reductions/truths")
def _() -> Work:
    x, y = T.fmatrix(), T.fmatrix()
    kept = x > y
    outputs = [T.exp(x) * kept, (x * kept).sum(axis=0), kept.mean(), x * T.cast(y > 0, "float32")]
    return call([x, y], outputs, *(numbers(60, 100, dtype="float32", seed=k) for k in (0, 1)))


@task("reductions/small")
def _() -> Work:
    x = T.dmatrix()
    return call([x], [x.sum(), x.mean(axis=0), x.max(axis=1), x.var()], numbers(6, 6))


@task("reductions/large")
def _() -> Work:
    x = T.fmatrix()
    return call([x], [x.sum(axis=0), x.sum(axis=1)], numbers(500, 500, dtype="float32"))


@task("reductions/softmax")
def _() -> Work:
    x = T.fmatrix()
    return call([x], T.nnet.softmax(x), numbers(32, 10, dtype="float32"))


@task("reductions/deviations_of_rows")
def _() -> Work:
    x = T.dmatrix()
    return call([x], x.std(axis=1) / x.mean(axis=1), numbers(1000, 64))


@task("reductions/standardized_rows")
def _() -> Work:
    x = T.dmatrix()
    deviations = x - x.mean(axis=1, keepdims=True)
    return call([x], deviations / x.std(axis=1, keepdims=True), numbers(1000, 64))


@task("reductions/softmax_of_rows")
def _() -> Work:
    x = T.dmatrix()
    return call([x], T.nnet.softmax(x), numbers(1000, 64))


@task("reductions/gradient_of_small_softmax")
def _() -> Work:
    x, b = T.fmatrix(), T.fvector()
    z = T.sqr(T.nnet.softmax(x + b)).sum()
    given = numbers(10, 10, dtype="float32"), numbers(10, dtype="float32")
    return call([x, b], symcomp.grad(z, [x, b]), *given)


def _order(n: int, dtype: str) -> Work:
    x = T.TensorType(dtype, (None,))()
    values = (np.random.default_rng(0).normal(size=n) * 1000).astype(dtype)
    return call([x], T.argsort(x), values)


for _n in (20, 1000, 100_000):
    for _dtype in ("float64", "int32", "int8"):
        add(f"along_axes/order_of_{_n}_{_dtype}", partial(_order, _n, _dtype))


def _log_of_sum(*shape: int, axis: int = 1) -> Work:
    x = T.dmatrix()
    return call([x], T.log(T.exp(x).sum(axis)), numbers(*shape) - 3)


def _log_of_product(*shape: int, axis: int = 1) -> Work:
    x = T.dmatrix()
    return call([x], T.log(x.prod(axis)), numbers(*shape) + 1.5)


for _form, _build in (("sum", _log_of_sum), ("product", _log_of_product)):
    add(f"along_axes/log_of_{_form}_16x3", partial(_build, 16, 3))
    add(f"along_axes/log_of_{_form}_rows", partial(_build, 1000, 100))
    add(f"along_axes/log_of_{_form}_columns", partial(_build, 1000, 100, axis=0))


@task("along_axes/distinct")
def _() -> Work:
    x = T.dvector()
    return call([x], T.unique(x, return_inverse=True), numbers(1000).round(2))


@task("along_axes/sorted_and_summed")
def _() -> Work:
    x = T.dmatrix()
    outputs = [T.sort(x, axis=1), T.cumsum(x, axis=0), T.argmax(x, axis=1), T.topk(x, 2)]
    return call([x], outputs, numbers(10, 10))


# -- random numbers


@task("random/uniform_10")
def _() -> Work:
    return call([], T.random.RandomStream(seed=1).uniform(size=10))


@task("random/normal_10000")
def _() -> Work:
    return call([], T.random.RandomStream(seed=1).normal(size=10_000))


@task("random/dropout")
def _() -> Work:
    x = T.fmatrix()
    mask = T.random.RandomStream(seed=1).bernoulli(0.5, size=x.shape, dtype="float32")
    return call([x], x * mask * 2, numbers(20, 50, dtype="float32"))


@task("random/by_numpy")
def _() -> Work:
    stream = T.random.RandomStream(seed=1)
    return call([], [stream.permutation(10), stream.binomial(5, 0.3, size=4)])


# -- networks that are not in runner.py


@task("networks/convolution_step")
def _() -> Work:
    x, k = T.ftensor4(), symcomp.shared(numbers(4, 1, 3, 3, dtype="float32"))
    h = T.nnet.relu(T.nnet.conv2d(x, k))
    loss = (T.signal.pool.pool_2d(h, (2, 2), ignore_border=True) ** 2).sum()
    updates = [(k, k - np.float32(0.001) * symcomp.grad(loss, k))]
    return call([x], loss, numbers(4, 1, 12, 12, dtype="float32"), updates=updates)


@task("networks/attention")
def _() -> Work:
    x = T.ftensor3()
    scores = T.batched_dot(x, x.dimshuffle(0, 2, 1))
    mixed = T.batched_dot(T.nnet.softmax(scores, axis=2), x)
    return call([x], symcomp.grad((mixed**2).sum(), x), numbers(2, 10, 8, dtype="float32"))
