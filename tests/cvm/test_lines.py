"""Losses of classes, and their gradients, as kernels."""

import itertools

import numpy as np
import pytest

import symcomp
import symcomp.tensor as T
from symcomp.config import config
from symcomp.cvm.kernels import formula_of
from symcomp.ops.formulas.fused import Fused
from symcomp.ops.nnet.unit_vector import Cosine, ProjectionLength, UnitPowerSum
from symcomp.ops.reductions.stable_reduce import Centered, Norm, Variance
from symcomp.tests.cvm.looking import kinds_of

RNG = np.random.default_rng(2)


@pytest.fixture(autouse=True)
def kernels():
    with config.change_flags(kernels=True):
        yield


def pair(inputs, outputs):
    """Return the same function with kernels for all formulas, and without."""
    native = symcomp.function(inputs, outputs, mode=symcomp.Mode("cvm"))
    code = native.program.instructions
    found = {i for i, kind in enumerate(kinds_of(native)) if kind == "kernel"}
    assert {i for i, step in enumerate(code) if formula_of(step.node)} == found
    return native, symcomp.function(inputs, outputs, mode=symcomp.Mode("vm"))


def compare(functions, *values, rtol):
    before = [v.copy() for v in values]
    for got, want in zip(*(function(*values) for function in functions), strict=True):
        assert got.dtype == want.dtype and got.shape == want.shape
        np.testing.assert_allclose(got, want, rtol=rtol, atol=rtol)
    for v, old in zip(values, before, strict=True):
        np.testing.assert_array_equal(v, old)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("index", ["int32", "int8"])
def test_cross_entropy(dtype, index):
    x, w, b = T.matrix(dtype=dtype), T.matrix(dtype=dtype), T.vector(dtype=dtype)
    y = T.vector(dtype=index)
    p = T.nnet.softmax(T.dot(x, w) + b)
    loss = T.nnet.categorical_crossentropy(p, y).mean()
    both = pair([x, w, b, y], [loss, *symcomp.grad(loss, [w, b])])
    nodes = [step.node for step in both[0].program.instructions if step.node is not None]
    lines = [node for node in nodes if isinstance(node.op, Fused) and "axis=1" in str(node.op)]
    assert len(lines) == 1
    rtol = {"float16": 4e-3, "float32": 2e-6, "float64": 1e-14}[dtype]
    for n, m in ((60, 10), (1, 1), (3, 200), (300, 7)):
        values = [RNG.normal(size=s).astype(dtype) for s in ((n, 5), (5, m), (m,))]
        classes = RNG.integers(0, min(m, 127), n).astype(index)
        compare(both, *values, classes, rtol=rtol)
    with pytest.raises(IndexError, match="out of bounds"):
        both[0](*values, np.full(n, m, index))


def test_results_that_overwrite_what_later_loops_read():
    x, r = T.dmatrix("x"), T.drow("r")
    y = T.dot(x, x)
    t = y + r
    top = t.max(axis=1, keepdims=True)
    both = pair([x, r], [t, T.exp(t - top), y * top, T.nnet.softmax(y * 2) + y])
    for n in (3, 40):
        compare(both, RNG.normal(size=(n, n)), RNG.normal(size=(1, n)), rtol=1e-12)


def test_sums_over_different_axes():
    x, y = T.dmatrices("x", "y")
    p = T.nnet.softmax(x)
    q = p * y - (p * y).sum(axis=1, keepdims=True)
    outputs = [q.sum(axis=0), q - q.mean(axis=0, keepdims=True), T.exp(x).sum(axis=1), p.max()]
    both = pair([x, y], outputs)
    for shape in ((1, 1), (4, 7), (300, 40), (20, 600)):
        compare(both, RNG.normal(size=shape), RNG.normal(size=shape), rtol=1e-12)


def test_empty_lines():
    x = T.dmatrix("x")
    both = pair([x], [T.nnet.softmax(x), T.nnet.logsoftmax(x), T.nnet.softmax(x.T)])
    for shape in ((0, 3), (3, 0), (0, 0)):
        compare(both, np.ones(shape), rtol=0)


def test_extremes_of_nothing_say_so():
    x = T.dmatrix("x")
    native, _ = pair([x], [T.exp(x).max(axis=1)])
    with pytest.raises(ValueError, match="is empty along"):
        native(np.ones((3, 0)))


def test_lines_of_length_one_and_stretched_lines():
    x, r, y = T.dcol("x"), T.drow("r"), T.ivector("y")
    z = T.dmatrix("z")
    chosen = T.nnet.logsoftmax(2 * x)[T.arange(y.shape[0]), y]
    both = pair([x, r, y, z], [chosen, T.nnet.softmax(r) * z, T.nnet.softmax(x, axis=0) * z])
    for n in (1, 5):
        values = [RNG.normal(size=s) for s in ((n, 1), (1, n), (n, n))]
        compare(both, values[0], values[1], np.zeros(n, "int32"), values[2], rtol=1e-13)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("op", [Norm, Variance, Centered])
def test_what_neither_cancels_nor_leaves_the_range(op, dtype):
    x = T.matrix(dtype=dtype)
    both = pair([x], [op(axes)(x) for axes in ((0,), (1,), (0, 1))])
    rtol = {"float16": 2e-3, "float32": 2e-6, "float64": 1e-14}[dtype]
    for shape in ((4, 7), (1, 1), (300, 40), (0, 3), (3, 0)):
        compare(both, (RNG.normal(size=shape) + 3).astype(dtype), rtol=rtol)
    with_nan = np.ones((3, 3), dtype)
    with_nan[1, 1], with_nan[2, 2] = np.nan, np.inf
    compare(both, with_nan, rtol=rtol)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("op", [ProjectionLength, Cosine])
def test_products_with_unit_vectors(op, dtype):
    x, y = (T.matrix(dtype=dtype) for _ in range(2))
    both = pair([x, y], [op(axes)(x, y) for axes in ((0,), (1,), (0, 1))])
    rtol = {"float16": 2e-3, "float32": 2e-6, "float64": 1e-13}[dtype]
    for shape in ((4, 7), (1, 1), (300, 40), (6, 64), (0, 3), (3, 0)):
        values = [(RNG.normal(size=shape) + 3).astype(dtype) for _ in range(2)]
        compare(both, *values, rtol=rtol)
        if dtype == "float64":
            for sizes in itertools.product((1e-300, 1.0, 1e300), repeat=2):
                compare(both, *(s * v for s, v in zip(sizes, values, strict=True)), rtol=rtol)
            rows = np.resize((1, 1e-200, 1, 1, 1e200), shape[0])[:, None]
            compare(both, rows * values[0], values[1] / rows, rtol=rtol)
    values = np.ones((3, 3), dtype)
    values[1, 1], values[2, 2] = np.nan, np.inf
    compare(both, values, values, rtol=rtol)
    compare(both, values, 0 * values, rtol=rtol)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("power", [3, 4, 7, 8])
def test_sums_of_powers_of_unit_vectors(power, dtype):
    x = T.matrix(dtype=dtype)
    both = pair([x], [UnitPowerSum(axes, power)(x) for axes in ((0,), (1,), (0, 1))])
    rtol = {"float16": 2e-3, "float32": 2e-6, "float64": 1e-13}[dtype]
    most = {"float16": 1e3, "float32": 1e30, "float64": 1e300}[dtype]
    scales = (1 / most, 1, most)
    for shape in ((4, 7), (1, 1), (300, 40), (6, 64), (0, 3), (3, 0)):
        values = RNG.normal(size=shape) + 3
        rows = np.resize(scales, shape[0])[:, None]
        for factor in (*scales, rows):
            compare(both, (factor * values).astype(dtype), rtol=rtol)
    values = np.ones((3, 3), dtype)
    values[1, 1], values[2, 2] = np.nan, np.inf
    compare(both, values, rtol=rtol)


@pytest.mark.parametrize("op", [ProjectionLength, Cosine])
def test_only_one_vector_is_of_narrower_numbers(op):
    x, y = T.fvector("x"), T.dvector("y")
    wide = T.cast(x, "float64")
    both = pair([x, y], [op((0,))(wide, y), op((0,))(y, wide)])
    values = RNG.normal(size=(2, 50)) + 3
    for scale in (1e-300, 1.0, 1e300):
        compare(both, values[0].astype("float32"), scale * values[1], rtol=1e-13)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_norms_of_extreme_values(dtype):
    x = T.vector(dtype=dtype)
    both = pair([x], [Norm((0,))(x)])
    info = np.finfo(dtype)
    sizes = (info.max / 8, info.smallest_normal, info.smallest_subnormal, 1e30, 1e-30, 0)
    for size in sizes:
        compare(both, np.full(20, size, dtype), rtol=4 * info.eps)
        compare(both, np.array([size, 1, -size], dtype), rtol=4 * info.eps)


def test_norms_of_rows_of_many_sizes():
    """Rows of which only some leave the range, and all or none of them."""
    x = T.dmatrix("x")
    both = pair([x], [Norm(axes)(x) for axes in ((0,), (1,), (0, 1))])
    values = RNG.normal(size=(6, 300))
    for sizes in ((1, 1, 1), (1, 1e-200, 1e200), (1e-300, 1e-161, 0), (1e155, 1e307, 1e97)):
        compare(both, values * np.resize(sizes, 6)[:, None], rtol=1e-14)
        compare(both, (values * np.resize(sizes, 6)[:, None]).T.copy(), rtol=1e-14)
    values[2, 5], values[4, 7] = np.nan, np.inf
    compare(both, values, rtol=1e-14)


def test_variances_do_not_cancel():
    x = T.dvector("x")
    native, _ = pair([x], [Variance((0,))(x)])
    value = 1e9 + np.array([4.0, 7, 13, 16])
    assert native(value)[0] == 22.5
