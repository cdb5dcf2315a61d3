"""Products of all dtypes and layouts, of stacks and of chains: natively what Python gives."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import symcomp
import symcomp.tensor as T
from symcomp.config import config
from symcomp.core.tensor import TensorType
from symcomp.errors import ShapeError
from symcomp.ops.linalg.blas import BatchedGemm, Gemm, Gemv, Ger, ScaledDot
from symcomp.ops.linalg.contraction import MatrixChain, SumOfProducts, best_brackets, in_order
from symcomp.ops.linalg.products import BatchedDot, Dot
from symcomp.tests.cvm.looking import asked, in_python
from symcomp.tests.cvm.test_native import layouts

DTYPES = (
    "bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float16",
    "float32", "float64", "complex64", "complex128",
)  # fmt: skip
TOLERANCES = {"float16": 4e-3, "float32": 1e-5, "complex64": 1e-5}
RNG = np.random.default_rng(4)
AS_THEY_ARE = symcomp.Mode("cvm", optimizer=None), symcomp.Mode("vm", optimizer=None)


def array(shape, dtype):
    x = RNG.normal(size=shape) * 2
    return (x + 1j * RNG.normal(size=shape) if dtype.startswith("c") else x).astype(dtype)


def compare(op, *values, native=True, scale=50):
    """Check that both machines give the same, for all layouts, and the native one without Python;
    parts of results may be as large as ``scale``.
    """
    inputs = [TensorType(v.dtype, (None,) * v.ndim)() for v in values]
    functions = [symcomp.function(inputs, op(*inputs), mode=mode) for mode in AS_THEY_ARE]
    dtype = functions[0](*values).dtype
    tolerance = TOLERANCES.get(dtype.name, 1e-13 if dtype.kind in "fc" else 0)
    for placed in layouts(list(values)):
        got, want = (f(*placed) for f in functions)
        assert got.dtype == want.dtype and got.shape == want.shape
        np.testing.assert_allclose(got, want, rtol=tolerance, atol=scale * tolerance)
        if native:
            assert asked(functions[0], placed) == []
    assert in_python(functions[0]) == (set() if native else {type(op).__name__})


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    "shape", [(3, 4, 5), (1, 4, 5), (3, 4, 1), (3, 0, 5), (0, 3, 4), (1, 1, 1), (30, 40, 300)]
)
def test_pairs(shape, dtype):
    n, k, m = shape
    compare(Dot(), array((n, k), dtype), array((k, m), dtype))
    compare(Dot(), array(k, dtype), array((k, m), dtype))
    compare(Dot(), array((n, k), dtype), array(k, dtype))
    compare(Dot(), array(k, dtype), array(k, dtype))
    compare(BatchedDot(), array((3, n, k), dtype), array((3, k, m), dtype))


@pytest.mark.parametrize("pair", [("int8", "float32"), ("uint64", "int64"), ("bool", "int16")])
def test_two_dtypes(pair):
    x, y = (array((4, 4), dtype) for dtype in pair)
    compare(Dot(), x, y, native=False)


@pytest.mark.parametrize("dtype", ["float64", "complex64", "complex128"])
def test_what_is_added_to(dtype):
    alpha, beta, zero = (np.asarray(v, dtype) for v in (1.5, -0.5, 0))
    a, b, c, v = (array(s, dtype) for s in ((4, 3), (3, 5), (4, 5), (3,)))
    for factor in (beta, zero):
        compare(Gemm(), c, alpha, a, b, factor)
        compare(Gemm(trans_a=True, trans_b=True), c, alpha, a.T, b.T, factor)
        compare(Gemv(), array(4, dtype), alpha, a, v, factor)
        compare(BatchedGemm(), c[None], alpha, a[None], b[None], factor)
        # Without columns of a, only c is left.
        compare(Gemm(), c, alpha, a[:, :0], b[:0], factor)
        compare(Gemm(trans_a=True, trans_b=True), c, alpha, a.T[:0], b.T[:, :0], factor)
        compare(Gemv(), array(4, dtype), alpha, a[:, :0], v[:0], factor)
        compare(BatchedGemm(), np.stack([c, -c]), alpha, np.stack([a, a])[..., :0],
                np.stack([b, b])[:, :0], factor)  # fmt: skip
    compare(Ger(), c, alpha, array(4, dtype), array(5, dtype))
    compare(ScaledDot(trans_a=True), alpha, a.T, b)


def test_nan_of_what_is_not_read():
    """beta = 0 means that c is not there."""
    c = np.full((2, 2), np.nan, "complex128")
    one, zero = np.asarray(1, "complex128"), np.asarray(0, "complex128")
    inputs = [TensorType("complex128", (None,) * v.ndim)() for v in (c, one, c, c, zero)]
    f = symcomp.function(inputs, Gemm()(*inputs), mode=AS_THEY_ARE[0])
    assert (f(c, one, np.eye(2) + 0j, np.eye(2) + 0j, zero) == np.eye(2)).all()


@pytest.mark.parametrize("dtype", ["float64", "float32", "complex128", "int32", "bool"])
def test_chains(dtype):
    a, b, c, u, v = (array(s, dtype) for s in ((3, 4), (4, 2), (2, 6), (3,), (6,)))
    compare(MatrixChain(((0, 1), 2)), a, b, c)
    compare(MatrixChain((0, (1, 2))), a, b, c)
    compare(MatrixChain(((0, 1), (2, 3))), u, a, b, c)
    compare(MatrixChain((((0, 1), 2), (3, 4))), u, a, b, c, v)
    compare(MatrixChain(((0, 1), 2)), a[:0], b, c)
    compare(MatrixChain(((0, 1), 2)), a, b[:, :0], c[:0])


def test_chains_of_float16():
    """The native chain is rounded once at the end, Python's after each product."""
    values = [array((8, 8), "float16") for _ in range(3)]
    inputs = [T.tensor("float16", shape=(None, None)) for _ in values]
    f = symcomp.function(inputs, MatrixChain(((0, 1), 2))(*inputs), mode=AS_THEY_ARE[0])
    a, b, c = (v.astype("float64") for v in values)
    np.testing.assert_allclose(f(*values), a @ b @ c, rtol=1e-3, atol=1e-2)


def test_a_chain_called_with_other_lengths():
    x, y, z = T.dmatrices("x", "y", "z")
    f = symcomp.function([x, y, z], MatrixChain(((0, 1), 2))(x, y, z), mode=AS_THEY_ARE[0])
    for n, k, m, p in ((2, 9, 3, 5), (9, 2, 7, 1), (2, 9, 3, 5), (4, 0, 3, 2)):
        a, b, c = (array(s, "float64") for s in ((n, k), (k, m), (m, p)))
        np.testing.assert_allclose(f(a, b, c), a @ b @ c, rtol=1e-12, atol=1e-12)
    with pytest.raises(ShapeError, match="do not fit"):
        f(np.ones((2, 3)), np.ones((4, 2)), np.ones((2, 2)))


@settings(deadline=None, max_examples=50)
@given(st.lists(st.integers(1, 30), min_size=3, max_size=25))
def test_the_order_of_a_chain(lengths):
    """The native plan multiplies as often as that of Python: results are whole numbers."""
    n = len(lengths) - 1
    written = 0
    for k in range(1, n):
        written = (written, k)
    inputs = [T.dmatrix() for _ in range(n)]
    f = symcomp.function(inputs, MatrixChain(written)(*inputs), mode=AS_THEY_ARE[0])
    values = [np.ones(s) for s in zip(lengths[:-1], lengths[1:], strict=True)]
    expected = np.prod([float(k) for k in lengths[1:-1]])
    assert (f(*values) == expected).all()
    assert asked(f, values) == []
    assert len(in_order(best_brackets(tuple(lengths)))) == n - 1


def test_errors_are_those_of_python():
    x, y = T.imatrices("x", "y")
    p, q = T.ztensor3("p"), T.ztensor3("q")
    cases = [
        (Dot(), [x, y], [np.ones((2, 3), "int32"), np.ones((2, 3), "int32")]),
        (BatchedDot(), [p, q], [np.ones((2, 3, 3), complex), np.ones((3, 3, 3), complex)]),
    ]
    for op, inputs, values in cases:
        f = symcomp.function(inputs, op(*inputs), mode=AS_THEY_ARE[0])
        with pytest.raises(ShapeError, match="do not fit"):
            f(*values)


@pytest.mark.parametrize("dtype", [d for d in DTYPES if d != "float16"])
def test_sums_of_products(dtype):
    """Over each of the axes and both, of two matrices and of one with itself."""
    ops = [SumOfProducts(axes) for axes in ((0,), (1,), (0, 1))]
    x, y = (TensorType(dtype, (None, None))() for _ in "xy")
    outputs = [z for op in ops for z in (op(x, y), op(x, x))]
    with config.change_flags(kernels=True):
        functions = [symcomp.function([x, y], outputs, mode=mode) for mode in AS_THEY_ARE]
    for shape in ((3, 4), (0, 3), (3, 0), (1, 1), (200, 150)):
        terms = [int(np.prod([shape[a] for a in op.axes])) for op in ops for _ in range(2)]
        # rounding errors grow with what cancels
        compare_functions(functions, *(array(shape, dtype) for _ in "xy"), scales=terms)
    assert in_python(functions[0]) == set()


def compare_functions(functions, x, y, scales):
    """Check that both give the same for all layouts, and the first one without Python."""
    for placed in layouts([x, y]):
        for got, want, terms in zip(*(f(*placed) for f in functions), scales, strict=True):
            assert got.dtype == want.dtype and got.shape == want.shape
            rtol = TOLERANCES.get(got.dtype.name, 1e-13 if got.dtype.kind in "fc" else 0)
            atol = max(50, terms // 50) * rtol
            np.testing.assert_allclose(got, want, rtol=rtol, atol=atol)
        assert asked(functions[0], placed) == []


def test_sums_of_products_of_float16_are_made_in_float32():
    with config.change_flags(kernels=True):
        x, y = T.tensor("float16", shape=(None,)), T.tensor("float16", shape=(None,))
        f = symcomp.function([x, y], SumOfProducts((0,))(x, y), mode=AS_THEY_ARE[0])
    a = np.full(5000, 0.1, "float16")
    assert f(a, a) == np.float16((a.astype("float64") ** 2).sum())
