"""In-place ops of programs: what they overwrite is overwritten in calls."""

import numpy as np
import pytest

from symcomp.errors import DTypeError, GraphError

V = np.array([0.5, 1.0, 2.0])


def test_arguments_are_overwritten(theano):
    T = theano.tensor
    x, y = T.dvectors("x", "y")
    f = theano.function([x, y], T.inplace.add_inplace(x, y), accept_inplace=True)
    given, other = V.copy(), V.copy()
    np.testing.assert_array_equal(f(given, other), 2 * V)
    np.testing.assert_array_equal(given, 2 * V)
    np.testing.assert_array_equal(other, V)


def test_through_a_view_and_by_keyword(theano):
    T = theano.tensor
    x = T.dvector("x")
    named = {"inputs": [theano.In(x)], "outputs": {"z": T.inplace.exp_inplace(x[1:])}}
    given = V.copy()
    theano.function(**named, accept_inplace=True)(given)
    np.testing.assert_allclose(given, [V[0], *np.exp(V[1:])], rtol=1e-15)


def test_shared_variables_are_overwritten(theano):
    T = theano.tensor
    s, x = theano.shared(V.copy(), "s"), T.dvector("x")
    z = T.inplace.mul_inplace(s, x)
    f = theano.function([x], z.sum(), accept_inplace=True)
    assert f([2.0, 2.0, 2.0]) == 2 * V.sum()
    assert f([0.5, 0.5, 0.5]) == V.sum()
    np.testing.assert_array_equal(s.get_value(), V)
    # An update says what the value is.
    g = theano.function([x], z, updates=[(s, x)], accept_inplace=True)
    np.testing.assert_array_equal(g(V), V * V)
    np.testing.assert_array_equal(s.get_value(), V)


def test_what_is_given_for_an_input_is_overwritten(theano):
    T = theano.tensor
    s, x = theano.shared(V.copy(), "s"), T.dvector("x")
    f = theano.function([], T.inplace.sqr_inplace(x), givens=[(x, s)], accept_inplace=True)
    np.testing.assert_array_equal(f(), V**2)
    np.testing.assert_array_equal(s.get_value(), V**2)


def test_they_are_refused_without_the_option(theano):
    x = theano.tensor.dvector("x")
    with pytest.raises(GraphError, match="accept_inplace=True"):
        theano.function([x], theano.tensor.inplace.exp_inplace(x))


COMPARISONS = {
    "eq": np.equal, "ge": np.greater_equal, "gt": np.greater, "le": np.less_equal, "lt": np.less,
    "neq": np.not_equal,
}  # fmt: skip


@pytest.mark.parametrize("name", COMPARISONS)
def test_comparisons_overwrite_truth_values(theano, name):
    T = theano.tensor
    x, y = (T.TensorType("bool", (False,))() for _ in range(2))
    compare = getattr(T.inplace, f"{name}_inplace")
    a, b = np.array([True, True, False, False]), np.array([True, False, True, False])
    expected = COMPARISONS[name](a, b)
    theano.function([x, y], compare(x, y), accept_inplace=True)(a, b)
    np.testing.assert_array_equal(a, expected)
    with pytest.raises(DTypeError, match="cannot overwrite"):
        compare(T.dvector(), T.dvector())


def test_functions_of_several_ops(theano):
    T = theano.tensor
    x, k = T.dvector("x"), T.dvector("k")
    z = T.inplace.chi2sf_inplace(x, k)
    given = V.copy()
    theano.function([x, k], z, accept_inplace=True)(given, [2.0, 2.0, 2.0])
    np.testing.assert_allclose(given, np.exp(-V / 2), rtol=1e-14)
    for name in ("sigmoid_inplace", "ultra_fast_sigmoid_inplace"):
        given, f = V.copy(), getattr(T.nnet.sigm, name)
        got = theano.function([x], f(x), accept_inplace=True)(given)
        np.testing.assert_array_equal(given, got)
    assert T.nnet.sigmoid_inplace is T.nnet.sigm.sigmoid_inplace
    m = T.dmatrix("m")
    assert T.inplace.transpose_inplace(m).owner.op == m.T.owner.op
    assert T.inplace.fill_inplace is T.inplace.second_inplace


def test_elemwise_with_a_pattern(theano):
    T = theano.tensor
    x, y = T.dvectors("x", "y")
    op = T.Elemwise(theano.scalar.sub, inplace_pattern={0: 1})
    given, other = V.copy(), np.ones(3)
    theano.function([x, y], op(x, y), accept_inplace=True)(given, other)
    np.testing.assert_array_equal(given, V)
    np.testing.assert_array_equal(other, V - 1)
    assert op == T.Elemwise(theano.scalar.sub, {0: 1}) != T.Elemwise(theano.scalar.sub)
    with pytest.raises(NotImplementedError, match="in place"):
        a = theano.scalar.float64("a")
        T.Elemwise(theano.scalar.Composite([a], [a * a]), {0: 0})


class TestBlas:
    C, A, B = np.eye(2), np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([[0.0, 1.0], [1.0, 0.0]])
    ROWS = (np.array([1.0, -1.0]), np.array([2.0, 0.5]))

    def run(self, theano, op, *values):
        """Return the result, and the first argument after the call."""
        given = [np.array(v, float) for v in values]
        inputs = [theano.tensor.TensorType("float64", (False,) * v.ndim)() for v in given]
        f = theano.function(inputs, op(*inputs), accept_inplace=True)
        return f(*given), given[0]

    @pytest.mark.parametrize("inplace", [False, True])
    def test_each(self, theano, inplace):
        blas = theano.tensor.blas
        v, w = self.ROWS
        how = "inplace" if inplace else "no_inplace"
        cases = [
            (f"gemm_{how}", "Gemm", (self.C, 2.0, self.A, self.B, 3.0),
             3 * self.C + 2 * self.A @ self.B),
            (f"gemv_{how}", "Gemv", (v, 2.0, self.A, w, 3.0), 3 * v + 2 * self.A @ w),
            ("ger_destructive" if inplace else "ger", "Ger", (self.C, 2.0, v, w),
             self.C + 2 * np.outer(v, w)),
        ]  # fmt: skip
        for name, kind, values, expected in cases:
            op = getattr(blas, name)
            got, first = self.run(theano, op, *values)
            np.testing.assert_allclose(got, expected, rtol=1e-14)
            np.testing.assert_array_equal(first, got if inplace else values[0])
            assert op == getattr(blas, kind)(inplace)
            assert isinstance(op, getattr(blas, kind))
        assert blas.gemm == blas.gemm_no_inplace and blas.gemv == blas.gemv_no_inplace
        assert blas.Ger(destructive=True) == blas.ger_destructive

    def test_products(self, theano):
        blas, T = theano.tensor.blas, theano.tensor
        a, b = T.dmatrices("a", "b")
        got = theano.function([a, b], [blas._dot22(a, b), blas._dot22scalar(a, b, 2.0)])
        one, two = got(self.A, self.B)
        np.testing.assert_array_equal(one, self.A @ self.B)
        np.testing.assert_array_equal(two, 2 * self.A @ self.B)
        assert isinstance(blas.Dot22()(a, b).owner.op, blas.Dot22)
        assert blas.batched_dot is T.batched_dot
