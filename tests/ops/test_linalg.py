"""Products, einsum, softmax and losses, ifelse: against NumPy, with derivatives."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import symcomp
import symcomp.tensor as T
from symcomp.errors import DTypeError, ShapeError
from symcomp.ifelse import ifelse
from symcomp.tests.harness import ALL_DTYPES, check

RNG = np.random.default_rng(4)


def normal(*shape):
    return RNG.normal(size=shape)


DOTS = [
    ((3,), (3,)),
    ((2, 3), (3,)),
    ((3,), (3, 4)),
    ((2, 3), (3, 4)),
    ((2, 0), (0, 3)),
    ((0, 2), (2, 3)),
    ((1, 1), (1, 5)),
    ((), (2, 3)),
    ((2, 3, 4), (4,)),
    ((2, 3, 4), (5, 4, 2)),
    ((4,), (3, 4, 2)),
]


@pytest.mark.parametrize("shapes", DOTS, ids=str)
def test_dot(shapes):
    x, y = (normal(*s) for s in shapes)
    check(T.dot, x, y, expected=lambda a, b: np.asarray(np.dot(a, b)), rtol=1e-11, atol=1e-14)


@pytest.mark.parametrize("dtype", ALL_DTYPES)
def test_dot_dtypes(dtype):
    x, y = (
        (np.arange(6).reshape(2, 3) % 3).astype(dtype),
        (np.arange(12).reshape(3, 4) % 4).astype(dtype),
    )
    check(
        T.dot,
        x,
        y,
        expected=np.dot,
        grad=dtype in ("float32", "complex128"),
        rtol=1e-3 if dtype == "float16" else None,
    )
    check(T.dot, x, y.real.astype("float64"), expected=np.dot, grad=False)


MATMULS = [
    ((3,), (3,)),
    ((2, 3), (3,)),
    ((3,), (3, 4)),
    ((5, 2, 3), (3, 4)),
    ((5, 2, 3), (3,)),
    ((2, 3), (5, 3, 4)),
    ((5, 2, 3), (5, 3, 4)),
    ((5, 2, 3), (1, 3, 4)),
    ((6, 1, 2, 3), (5, 3, 4)),
    ((3,), (5, 3, 4)),
]


@pytest.mark.parametrize("shapes", MATMULS, ids=str)
def test_matmul(shapes):
    x, y = (normal(*s) for s in shapes)
    check(lambda a, b: a @ b, x, y, expected=lambda a, b: np.asarray(a @ b), rtol=1e-11, atol=1e-14)


def test_numpy_on_either_side():
    x = normal(2, 3)
    check(lambda b: x @ b, normal(3, 2), expected=lambda b: x @ b, rtol=1e-11)
    check(lambda b: np.dot(x, b), normal(3, 2), expected=lambda b: x @ b, rtol=1e-11)


@pytest.mark.parametrize(
    "axes", [0, 1, 2, [[1], [0]], [[0, 1], [1, 0]], [[-1], [0]], [1, 0], [[], []]], ids=str
)
def test_tensordot(axes):
    x, y = normal(3, 3), normal(3, 3)
    check(
        lambda a, b: T.tensordot(a, b, axes),
        x,
        y,
        expected=lambda a, b: np.tensordot(a, b, axes),
        rtol=1e-11,
        atol=1e-14,
    )


def test_other_products():
    a, b = normal(3), normal(4)
    check(T.outer, a, b, expected=np.outer)
    check(T.inner, normal(2, 3), normal(4, 3), expected=np.inner, rtol=1e-11)
    check(
        T.vdot,
        normal(3) + 1j,
        normal(3) + 2j,
        expected=lambda x, y: np.asarray(np.vdot(x, y)),
        rtol=1e-11,
    )
    check(T.kron, normal(2, 3), normal(3, 2), expected=np.kron)
    x, y = normal(5, 2, 3), normal(5, 3, 4)
    check(T.batched_dot, x, y, expected=np.matmul, rtol=1e-11, atol=1e-14)
    check(
        T.batched_dot,
        x[:, :, 0],
        y[:, :2],
        expected=lambda p, q: np.einsum("bi,bij->bj", p, q),
        rtol=1e-11,
        atol=1e-14,
    )
    check(
        T.batched_dot,
        x[:, 0],
        y[:, :, 0],
        expected=lambda p, q: np.einsum("bi,bi->b", p, q),
        rtol=1e-11,
        atol=1e-14,
    )
    check(T.batched_dot, x[:, 0, 0], y, expected=lambda p, q: p[:, None, None] * q)
    check(
        lambda p, q: T.batched_tensordot(p, q, [[2], [1]]),
        x,
        y,
        expected=np.matmul,
        rtol=1e-11,
        atol=1e-14,
    )
    check(
        lambda p: T.batched_tensordot(p, p, [[1, 2], [1, 2]]),
        x,
        expected=lambda p: (p * p).sum((1, 2)),
        rtol=1e-11,
    )
    check(
        T.matvec,
        x,
        y[:, :, 0],
        expected=lambda p, q: np.einsum("bij,bj->bi", p, q),
        rtol=1e-11,
        atol=1e-14,
    )
    check(
        T.vecmat,
        x[:, 0],
        y,
        expected=lambda p, q: np.einsum("bj,bji->bi", p, q),
        rtol=1e-11,
        atol=1e-14,
    )
    check(T.vecdot, x, x + 1j, expected=lambda p, q: (p.conj() * q).sum(-1), rtol=1e-11, atol=1e-14)


@pytest.mark.parametrize("L", [0, 1, 2, 3, np.inf])
@pytest.mark.parametrize("axis", [None, 0, -1])
def test_norm(L, axis):
    x = normal(3, 4)
    reference = np.asarray(
        np.linalg.norm(x.ravel(), L) if axis is None else np.linalg.norm(x, L, axis)
    )
    check(lambda v: v.norm(L, axis=axis), x, expected=reference, rtol=1e-11, grad=L != 0)


def test_errors():
    with pytest.raises(ShapeError, match="axis 1 of x has length 3, axis 0 of y has length 4"):
        T.dot(T.tensor("x", shape=(2, 3)), T.tensor("y", shape=(4, 2)))
    x, y = T.dmatrices("x", "y")
    with pytest.raises(ShapeError, match=r"dot: shapes \(2, 3\) and \(2, 3\)"):
        T.dot(x, y).eval({x: normal(2, 3), y: normal(2, 3)})
    with pytest.raises(ShapeError, match="must not be scalars"):
        x @ T.dscalar()
    with pytest.raises(ShapeError, match="tensordot: axes=3"):
        T.tensordot(x, y, 3)
    with pytest.raises(ShapeError, match="batch axis"):
        T.batched_tensordot(x, y, [[0], [1]])
    with pytest.raises(ShapeError, match="batched_dot: axis 0 of x has length 2"):
        T.batched_dot(T.tensor("x", shape=(2, 3, 3)), T.tensor("y", shape=(4, 3, 3)))


EINSUMS = [
    ("ij,jk->ik", (2, 3), (3, 4)),
    ("ij->ji", (2, 3)),
    ("ii->i", (3, 3)),
    ("ii", (3, 3)),
    ("ij->", (2, 3)),
    ("i,i", (3,), (3,)),
    ("i,j->ij", (2,), (3,)),
    ("bij,bjk->bik", (5, 2, 3), (5, 3, 2)),
    ("ij,j", (2, 3), (3,)),
    ("...ij,...jk", (5, 2, 3), (5, 3, 4)),
    ("...i->...", (2, 3, 4)),
    ("ij,jk,kl->il", (2, 3), (3, 4), (4, 2)),
    ("ij,ij->i", (2, 3), (2, 3)),
    ("ijk,k->ji", (2, 3, 4), (4,)),
    ("iji->j", (3, 2, 3)),
    ("i...,i...->...", (3, 2), (3, 1)),
    ("ab,bc,a->c", (2, 3), (3, 2), (2,)),
    ("ij,kj->ki", (2, 3), (4, 3)),
    ("i,i->i", (3,), (1,)),
    (",ij->ij", (), (2, 3)),
]


@pytest.mark.parametrize("case", EINSUMS, ids=lambda c: c[0])
def test_einsum(case):
    text, *shapes = case
    check(
        lambda *v: T.einsum(text, *v),
        *(normal(*s) for s in shapes),
        expected=lambda *v: np.asarray(np.einsum(text, *v)).copy(),
        rtol=1e-10,
        atol=1e-13,
    )


def test_einsum_lists_and_errors():
    x, y = normal(2, 3), normal(3, 4)
    check(
        lambda a, b: T.einsum(a, [0, 1], b, [1, 2], [2, 0]),
        x,
        y,
        expected=lambda a, b: np.einsum(a, [0, 1], b, [1, 2], [2, 0]),
        rtol=1e-11,
    )
    check(
        lambda a, b: T.einsum(a, [0, 1], b, [1, 2]), x, y, expected=lambda a, b: a @ b, rtol=1e-11
    )
    with pytest.raises(ShapeError, match="2 terms for 1 operands"):
        T.einsum("ij,jk", T.constant(x))
    with pytest.raises(ShapeError, match="does not fit an operand with 2 axes"):
        T.einsum("i", T.constant(x))
    with pytest.raises(ShapeError, match="lengths 3 and 2"):
        T.einsum("ij,jk", T.constant(x), T.constant(x))
    with pytest.raises(ShapeError, match="output label"):
        T.einsum("ij->q", T.constant(x))


@settings(deadline=None, max_examples=60)
@given(st.data())
def test_random_einsums(data):
    length = dict(zip("ijkl", (2, 3, 1, 4), strict=True))
    terms = data.draw(st.lists(st.text("ijkl", min_size=1, max_size=3), min_size=1, max_size=3))
    used = sorted(set("".join(terms)))
    output = "".join(data.draw(st.lists(st.sampled_from(used), unique=True)))
    text = ",".join(terms) + "->" + output
    arrays = [
        np.cos(np.arange(np.prod([length[c] for c in t]))).reshape([length[c] for c in t])
        for t in terms
    ]
    check(
        lambda *v: T.einsum(text, *v),
        *arrays,
        expected=lambda *v: np.asarray(np.einsum(text, *v)).copy(),
        rtol=1e-9,
        atol=1e-12,
        grad=False,
        static="full",
    )


# ----- softmax and losses -----


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_softmax(axis):
    def soft(x):
        e = np.exp(x - x.max(axis, keepdims=True))
        return e / e.sum(axis, keepdims=True)

    x = normal(3, 4)
    check(lambda v: T.nnet.softmax(v, axis), x, expected=soft, rtol=1e-11)
    check(
        lambda v: T.nnet.log_softmax(v, axis),
        x,
        expected=lambda v: np.log(soft(v)),
        rtol=1e-10,
        atol=1e-13,
    )
    check(
        lambda v: symcomp.grad((T.nnet.softmax(v, axis)[0] ** 2).sum(), v),
        x,
        expected=lambda v: slope(v, axis),
    )


def slope(x, axis):
    v = T.dmatrix()
    return symcomp.grad((T.nnet.softmax(v, axis)[0] ** 2).sum(), v).eval({v: x})


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int32"])
def test_softmax_dtypes_and_extremes(dtype):
    x = np.array([[1, 2, 3]]).astype(dtype)
    z = T.nnet.softmax(T.constant(x)).eval()
    assert z.dtype == ("float64" if dtype == "int32" else dtype) and abs(float(z.sum()) - 1) < 1e-2
    wide = np.array([[1e4, 0.0, -1e4], [0.0, -np.inf, 0.0]])
    np.testing.assert_allclose(T.nnet.softmax(T.constant(wide)).eval(), [[1, 0, 0], [0.5, 0, 0.5]])
    np.testing.assert_allclose(T.nnet.log_softmax(T.constant(wide)).eval()[0], [0, -1e4, -2e4])
    assert T.nnet.softmax(T.constant(np.zeros((2, 0)))).eval().shape == (2, 0)
    with pytest.raises(ShapeError, match="is a scalar"):
        T.nnet.softmax(T.dscalar())


def test_activations():
    x = np.array([[-4.0, -1.3, -0.4], [0.3, 1.7, 4.0]])
    check(T.nnet.relu, x, expected=lambda v: np.maximum(v, 0))
    check(lambda v: T.nnet.relu(v, 0.1), x, expected=lambda v: np.where(v > 0, v, 0.1 * v))
    check(T.nnet.elu, x, expected=lambda v: np.where(v > 0, v, np.expm1(v)))
    check(
        T.nnet.selu,
        x,
        expected=lambda v: (
            1.0507009873554805 * np.where(v > 0, v, 1.6732632423543772 * np.expm1(v))
        ),
    )
    check(T.nnet.softsign, x, expected=lambda v: v / (1 + abs(v)))
    check(T.nnet.hard_sigmoid, x, expected=lambda v: np.clip(0.2 * v + 0.5, 0, 1))
    np.testing.assert_allclose(
        T.nnet.ultra_fast_sigmoid(T.constant(x)).eval(), 1 / (1 + np.exp(-x)), atol=0.03
    )
    check(
        lambda v, b: T.nnet.softmax_with_bias(v, b),
        x,
        np.ones(3),
        expected=lambda v, b: np.exp(v) / np.exp(v).sum(1, keepdims=True),
        rtol=1e-11,
    )


def test_losses():
    p, t = np.array([[0.2, 0.8], [0.5, 0.5]]), np.array([[0.0, 1.0], [0.3, 0.7]])
    check(
        T.nnet.binary_crossentropy,
        p,
        t,
        expected=lambda o, t: -(t * np.log(o) + (1 - t) * np.log(1 - o)),
        rtol=1e-11,
    )
    check(
        T.nnet.sigmoid_binary_crossentropy,
        p - 1,
        t,
        expected=lambda o, t: np.log1p(np.exp(o)) - t * o,
        rtol=1e-11,
    )
    check(
        T.nnet.categorical_crossentropy,
        p,
        t,
        expected=lambda o, t: -(t * np.log(o)).sum(1),
        rtol=1e-11,
    )
    check(
        T.nnet.categorical_crossentropy,
        p,
        np.array([1, 0]),
        expected=lambda o, t: -np.log(o[[0, 1], t]),
        rtol=1e-11,
    )
    assert float(T.nnet.sigmoid_binary_crossentropy(T.constant(-1000.0), 0.0).eval()) == 0.0
    with pytest.raises(ShapeError, match="as many axes"):
        T.nnet.categorical_crossentropy(T.dmatrix(), T.dvector())
    with pytest.raises(ShapeError, match="a matrix and a vector"):
        T.nnet.crossentropy_categorical_1hot(T.dvector(), T.lvector())


# ----- control -----


def test_ifelse_values_and_derivatives():
    for c in (0.0, 2.0):
        check(
            lambda c, x, y: ifelse(c, x * 2, y**2),
            np.float64(c),
            normal(3),
            normal(3),
            expected=lambda c, x, y: x * 2 if c else y**2,
        )
    check(
        lambda x, y: ifelse(T.constant(True), [x, y], [y, x]),
        normal(3),
        normal(3),
        expected=lambda x, y: [x, y],
    )
    x, y = T.dscalars("x", "y")
    z = ifelse(x > 0, x**3, y)
    assert float(symcomp.grad(symcomp.grad(z, x), x).eval({x: 2.0, y: 1.0})) == 12.0
    assert float(symcomp.Rop(symcomp.grad(z, x), x, T.constant(1.0)).eval({x: 2.0, y: 1.0})) == 12.0


def test_ifelse_types():
    assert ifelse(T.lscalar(), T.fvector(), T.dvector()).dtype == "float64"
    assert ifelse(T.lscalar(), T.tensor("a", shape=(2,)), T.tensor("b", shape=(3,))).type.shape == (
        None,
    )
    assert ifelse(T.lscalar(), 1, T.dscalar(), name="n").name == "n"
    with pytest.raises(DTypeError, match="must be a real scalar"):
        ifelse(T.dvector(), 1.0, 2.0)
    with pytest.raises(
        ShapeError, match="value 0 is float64 vector in one branch and float64 matrix"
    ):
        ifelse(T.lscalar(), T.dvector(), T.dmatrix())
    with pytest.raises(ShapeError, match="2 values in one branch, 1"):
        ifelse(T.lscalar(), [1, 2], [1])
    with pytest.raises(TypeError, match="one branch is a list"):
        ifelse(T.lscalar(), [1], 1)


def test_assert():
    x = T.dscalar("x")
    y = T.Assert("x must be positive")(x, x > 0)
    assert y.eval({x: 1.0}) == 1.0
    with pytest.raises(AssertionError, match="x must be positive"):
        y.eval({x: -1.0})
    assert symcomp.grad(y**2, x).eval({x: 3.0}) == 6.0
    check(lambda v: T.assert_op(v, v > -100), normal(3), expected=lambda v: v)
