"""Softmax, activations and losses: against NumPy, with derivatives."""

import numpy as np
import pytest
from scipy import special

import symcomp
import symcomp.tensor as T
from symcomp.config import config
from symcomp.errors import DTypeError, ShapeError
from symcomp.ops.nnet.softmax import LogSoftmax, Softmax
from symcomp.tests.harness import ALL_DTYPES, FLOAT_DTYPES, check

RNG = np.random.default_rng(6)
ELEMENTWISE = [
    T.nnet.elu,
    T.nnet.selu,
    T.nnet.softsign,
    T.nnet.hard_sigmoid,
    T.nnet.ultra_fast_sigmoid,
    T.nnet.sigmoid,
    T.nnet.softplus,
]


def normal(*shape):
    return RNG.normal(size=shape)


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

    def slope(x):
        z = soft(x)
        gz = 2 * z * (np.arange(3) == 0)[:, None]
        return z * (gz - (gz * z).sum(axis, keepdims=True))

    check(
        lambda v: symcomp.grad((T.nnet.softmax(v, axis)[0] ** 2).sum(), v),
        x,
        expected=slope,
        rtol=1e-10,
        atol=1e-14,
    )


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


@pytest.mark.parametrize("shape", [(4,), (1,), (2, 3, 4), (2, 0), (0, 3), (2, 1)], ids=str)
@pytest.mark.parametrize("axis", [0, -1])
def test_softmax_shapes(shape, axis):
    x = normal(*shape)
    empty = x.shape[axis] == 0
    soft = x if empty else special.softmax(x, axis)
    check(lambda v: T.nnet.softmax(v, axis), x, expected=soft, rtol=1e-11)
    logs = x if empty else special.log_softmax(x, axis)
    check(lambda v: T.nnet.logsoftmax(v, axis), x, expected=logs, rtol=1e-11, atol=1e-14)


@pytest.mark.parametrize("dtype", ALL_DTYPES)
def test_log_softmax_dtypes(dtype):
    x = np.array([[0, 1, 1], [1, 0, 1]]).astype(dtype)
    if dtype[0] == "c":
        with pytest.raises(DTypeError, match="must be a float tensor"):
            T.nnet.log_softmax(T.constant(x))
        return
    z = T.nnet.log_softmax(T.constant(x))
    kind = dtype if dtype[0] == "f" else np.sqrt(x).dtype.name
    assert z.dtype == z.eval().dtype.name == kind
    np.testing.assert_allclose(z.eval(), special.log_softmax(x.astype("f8"), -1), rtol=5e-3)


def test_infinities():
    x = np.array([[-np.inf, 0.0, 1.0], [-np.inf, -np.inf, 2.0]])
    rest = special.softmax(x, -1)
    v = T.dmatrix("v")
    np.testing.assert_allclose(T.nnet.softmax(v).eval({v: x}), rest)
    logs = T.nnet.log_softmax(v)
    np.testing.assert_allclose(logs.eval({v: x}), special.log_softmax(x, -1))
    slope = symcomp.grad(logs[:, 2].sum(), v).eval({v: x})
    np.testing.assert_allclose(slope, [0, 0, 1] - rest, atol=1e-15)
    soft = symcomp.grad(T.nnet.softmax(v)[0, 2], v).eval({v: x})
    np.testing.assert_allclose(soft[0], rest[0, 2] * ([0, 0, 1] - rest[0]), atol=1e-15)
    assert np.isnan(T.nnet.softmax(v).eval({v: np.full((1, 2), -np.inf)})).all()
    assert np.isnan(T.nnet.log_softmax(v).eval({v: [[np.nan, 1.0]]})).all()
    np.testing.assert_array_equal(T.nnet.softmax(v).eval({v: [[np.inf, 0.0]]}), [[np.nan, 0]])
    np.testing.assert_array_equal(logs.eval({v: [[np.inf, 0.0]]}), [[np.nan, -np.inf]])


def test_second_derivatives_of_softmax():
    x = normal(3)
    for op in (Softmax(0), LogSoftmax(0)):
        check(
            lambda v, op=op: symcomp.grad((op(v) ** 2)[0], v),
            x,
            expected=lambda x, op=op: numeric_slope(op, x),
            rtol=1e-6,
            atol=1e-8,
        )


def numeric_slope(op, x, step=6e-6):
    ends = [[op.perform(x + s * step * e)[0] ** 2 for s in (1, -1)] for e in np.eye(len(x))]
    return np.array([(up - down) / (2 * step) for up, down in ends])


@pytest.mark.parametrize("function", ELEMENTWISE)
def test_far_away(function):
    """At large numbers values and gradients stay finite."""
    x = T.dvector("x")
    far = np.array([-1e4, -800.0, 800.0, 1e4])
    assert np.isfinite(function(x).eval({x: far})).all()
    assert np.isfinite(symcomp.grad(function(x).sum(), x).eval({x: far})).all()
    assert np.isnan(function(x).eval({x: [np.nan]})).all()


@pytest.mark.parametrize("function", ELEMENTWISE)
@pytest.mark.parametrize("dtype", [*FLOAT_DTYPES, "int8", "bool", "int64"])
def test_dtypes_of_activations(function, dtype):
    x = np.array([0, 1, 1]).astype(dtype)
    kind = dtype if dtype[0] == "f" else np.sqrt(x).dtype.name
    z = function(T.constant(x))
    assert z.dtype == z.eval().dtype.name == kind


def test_elu_at_zero():
    x = T.dvector("x")
    slope = symcomp.grad(T.nnet.elu(x, 0.5).sum(), x)
    np.testing.assert_allclose(slope.eval({x: [0.0, 800.0, -1.0]}), [0.5, 1, 0.5 * np.exp(-1)])


def test_relu():
    x = np.array([-2.0, -0.5, 0.5, 3.0])
    check(lambda v: T.nnet.relu(v, 2), x, expected=lambda v: np.where(v > 0, v, 2 * v))
    check(T.nnet.relu, x, np.array([0.1, 0.2, 0.3, 0.4]), expected=leaky)
    check(T.nnet.relu, x.astype("int8"), expected=lambda v: np.maximum(v, 0).astype("int8"))
    assert np.isnan(T.nnet.relu(T.constant(np.nan)).eval())
    assert np.isnan(T.nnet.relu(T.constant(np.nan), 0.1).eval())


def leaky(v, alpha):
    return np.where(v > 0, v, alpha * v)


def test_ultra_fast_sigmoid_pieces():
    """The three pieces, mirrored at 0; the value is 1/2 there."""
    x = np.array([-20.0, -4.0, -1.0, 0.0, 1.0, 4.0, 20.0])
    a = np.abs(x) / 2
    piece = np.where(a < 1.7, 1.5 * a / (1 + a), 0.935409070603099 + 0.0458812946797165 * (a - 1.7))
    piece = np.where(a < 3, piece, 0.99505475368673)
    expected = (np.where(x > 0, piece, -piece) + 1) / 2
    check(T.nnet.ultra_fast_sigmoid, x, expected=expected, rtol=1e-12, grad=False)
    check(T.nnet.ultra_fast_sigmoid, x[[0, 1, 2, 4, 5, 6]], expected=expected[[0, 1, 2, 4, 5, 6]])


def test_dtypes_of_losses():
    o, t = T.fmatrix("o"), T.lvector("t")
    for loss in (T.nnet.binary_crossentropy, T.nnet.sigmoid_binary_crossentropy):
        assert loss(o, 1.0).dtype == loss(o, 1).dtype == loss(o, o).dtype == "float32"
    assert T.nnet.categorical_crossentropy(o, t).dtype == "float32"
    assert T.nnet.categorical_crossentropy(o, o).dtype == "float32"


def test_sigmoid_crossentropy_far_away():
    x = T.dvector("x")
    loss = T.nnet.sigmoid_binary_crossentropy(x, 0.25)
    np.testing.assert_allclose(loss.eval({x: [1000.0, -1000.0]}), [750, 250])
    slope = symcomp.grad(loss.sum(), x).eval({x: [1000.0, -1000.0]})
    np.testing.assert_allclose(slope, [0.75, -0.25])


def test_classes_are_checked():
    p, y = T.dmatrix("p"), T.lvector("y")
    loss = T.nnet.categorical_crossentropy(p, y)
    with pytest.raises(ShapeError, match=r"shapes \(2, 2\) and \(1,\) do not fit"):
        loss.eval({p: np.full((2, 2), 0.5), y: [1]})
    with pytest.raises(ShapeError, match="must be equal"):
        T.nnet.categorical_crossentropy(T.tensor(shape=(2, 2)), T.constant(np.array([1])))
    with pytest.raises(IndexError, match="out of bounds"):
        loss.eval({p: np.full((1, 2), 0.5), y: [2]})
    for kind in ("bool", "float64"):
        with pytest.raises(DTypeError, match="the classes must be integers"):
            T.nnet.crossentropy_categorical_1hot(p, T.vector(dtype=kind))


@pytest.mark.parametrize("name", ["hard_sigmoid", "ultra_fast_sigmoid", "elu", "selu", "softsign"])
@pytest.mark.parametrize(("policy", "dtype"), [("theano", "float32"), ("numpy", "float16")])
def test_activations_of_integers(name, policy, dtype):
    with config.change_flags(cast_policy=policy):
        z = getattr(T.nnet, name)(T.bvector())
    assert z.dtype == T.nnet.sigmoid(T.bvector()).dtype if policy == "numpy" else dtype
    assert z.dtype == dtype
