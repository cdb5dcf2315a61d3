"""The nodes that the reverse and the forward walk visit or skip, and how they mix dtypes."""

import pickle
from dataclasses import dataclass

import numpy as np
import pytest

import symcomp
import symcomp.tensor as T
from symcomp.core.op import Op
from symcomp.core.special_types import DisconnectedType
from symcomp.errors import (
    DisconnectedInputError,
    DTypeError,
    GradientError,
    NullTypeGradError,
    ShapeError,
)
from symcomp.gradient import (
    disconnected_grad,
    hessian,
    hessian_vector_product,
    jacobian,
    subgraph_grad,
    undefined_grad,
    verify_grad,
    zero_grad,
)
from symcomp.ifelse import ifelse

X = np.array([0.3, -1.2, 2.0])
V = np.array([1.0, 0.5, -0.7])
Z = np.array([1 + 2j, -0.5j, 0.3])


@dataclass(frozen=True)
class WithoutRules(Op):
    """z = x + 1, which cannot be differentiated."""

    def output_types(self, x):
        return [x.type]

    def perform(self, x):
        return np.asarray(x + 1)

    def infer_shape(self, node, shapes):
        return [shapes[0]]


@dataclass(frozen=True)
class TooFew(WithoutRules):
    """Both rules give nothing at all."""

    def pullback(self, inputs, outputs, output_grads):
        return []

    def pushforward(self, inputs, outputs, tangents):
        return []


def test_rules_are_asked_only_where_the_result_needs_them():
    x, v = T.dvectors("x", "v")
    f = x * disconnected_grad(WithoutRules()(x)) + T.zeros_like(WithoutRules()(x))
    np.testing.assert_allclose(symcomp.Rop(f, x, v).eval({x: X, v: V}), (X + 1) * V)
    np.testing.assert_allclose(symcomp.Lop(f, x, v).eval({x: X, v: V}), (X + 1) * V)
    g = symcomp.grad((WithoutRules()(x) * v).sum(), v)
    np.testing.assert_allclose(g.eval({x: X, v: V}), X + 1)
    for derivative in (symcomp.Lop, symcomp.Rop):
        with pytest.raises(NotImplementedError, match="WithoutRules has no pu"):
            derivative(WithoutRules()(x), x, v)


def test_undefined_derivatives_reach_only_what_they_are_connected_to():
    c, a, b = T.bscalar("c"), T.dscalar("a"), T.dscalar("b")
    first, second = ifelse(c, (a, b), (b, a * b))
    cost = undefined_grad(first) + second
    one = T.constant(1.0)
    with pytest.raises(NullTypeGradError, match="marked by undefined_grad"):
        symcomp.grad(cost, a)
    d, e = T.dscalars("d", "e")
    marked, plain = ifelse(c, (a, b), (d, e))
    assert symcomp.grad(undefined_grad(marked) + plain, b).eval({c: 1, b: 2.0, e: 3.0}) == 1.0
    marked, plain = ifelse(c, (undefined_grad(a), b), (d, e))
    assert symcomp.Rop(plain, [a, b], [one, one]).eval({c: 1, b: 2.0, e: 3.0}) == 1.0
    with pytest.raises(NullTypeGradError):
        symcomp.Rop(marked, [a, b], [one, one])
    assert symcomp.grad(a + T.zeros_like(undefined_grad(a)), a).eval({a: 2.0}) == 1.0
    assert symcomp.Rop(a + T.zeros_like(undefined_grad(a)), a, one).eval() == 1.0


def test_known_gradients_are_complete():
    x, w = T.dscalars("x", "w")
    h = x**2
    values = {x: 3.0, w: 5.0}
    assert symcomp.grad(h * w, x, known_grads={h: T.constant(1.0)}).eval({x: 3.0}) == 6.0
    assert (
        symcomp.grad(h * x, x, known_grads={h: T.constant(1.0)}).eval(
            values, on_unused_input="ignore"
        )
        == 9.0 + 6.0
    )
    # Nodes between the cost and a known gradient are not visited.
    assert (
        symcomp.grad(WithoutRules()(h), x, known_grads={h: T.constant(2.0)}).eval(
            values, on_unused_input="ignore"
        )
        == 12
    )
    both = {h: T.constant(1.0), h * w: T.constant(1.0)}
    assert symcomp.grad(None, x, known_grads=both).eval(values, on_unused_input="ignore") == 6.0
    assert symcomp.grad(None, h, known_grads={h: w}).eval(values, on_unused_input="ignore") == 5.0
    disconnected = {h: DisconnectedType()()}
    assert (
        symcomp.grad(None, x, known_grads=disconnected).eval(values, on_unused_input="ignore")
        == 0.0
    )
    with pytest.raises(TypeError, match="known_grads has the key 'h'"):
        symcomp.grad(None, x, known_grads={"h": 1.0})
    with pytest.raises(NullTypeGradError, match="the cost is a null gradient"):
        symcomp.grad(symcomp.gradient.NullType("reasons")(), x)


def test_lop_adds_up_what_flows_through_several_outputs():
    x, v = T.dvectors("x", "v")
    h = x**2
    values = {x: X, v: V}
    np.testing.assert_allclose(symcomp.Lop([h, x], x, [v, v]).eval(values), (2 * X + 1) * V)
    np.testing.assert_allclose(
        symcomp.Lop([T.sin(h), h], x, [v, v]).eval(values), (np.cos(X**2) + 1) * 2 * X * V
    )
    # A cut through h and something made of h: the gradient of h lacks the way through the other.
    k = T.sin(h)
    _, (gh, gk) = subgraph_grad([], [h, k], cost=(h * k).sum())
    (gx,), _ = subgraph_grad([x], [], start={h: gh, k: gk})
    whole = symcomp.grad((h * k).sum(), x)
    np.testing.assert_allclose(gx.eval({x: X}), whole.eval({x: X}))


def test_arguments_of_lop_and_rop():
    x, v = T.dvectors("x", "v")
    with pytest.raises(ShapeError, match="eval_points gave a gradient of type float64 matrix"):
        symcomp.Lop(x**2, x, T.dmatrix())
    with pytest.raises(TypeError, match=r"Lop: f\[1\] is 3"):
        symcomp.Lop([x, 3], x, [v, v])
    with pytest.raises(TypeError, match=r"Rop: f\[0\] is None"):
        symcomp.Rop(None, x, v)
    with pytest.raises(TypeError, match="Lop: wrt is a set"):
        symcomp.Lop(x**2, {x}, v)
    with pytest.raises(ValueError, match="disconnected_inputs='never'"):
        symcomp.Lop(x**2, x, v, disconnected_inputs="never")
    with pytest.raises(ValueError, match="return_disconnected='never'"):
        symcomp.Rop(x**2, x, v, return_disconnected="never")
    with pytest.raises(GradientError, match="complex tangent for x, which is real"):
        symcomp.Rop(x**2, x, T.zvector())
    with pytest.raises(ShapeError, match="shapes must agree"):
        pair = T.tensor("pair", shape=(2,))
        symcomp.Rop(pair**2, pair, T.tensor("u", shape=(3,)))
    np.testing.assert_allclose(symcomp.Rop(x**2, x, V).eval({x: X}), 2 * X * V)
    twice = symcomp.Rop(x**2, [x, x], [v, v])
    np.testing.assert_allclose(twice.eval({x: X, v: V}), 4 * X * V)
    g = symcomp.Rop(x**2, v, v, "ignore", "Disconnected")
    assert isinstance(g.type, DisconnectedType)
    still = symcomp.Rop(x**2, [x], [None])
    assert still.eval({x: X}).tolist() == [0.0, 0.0, 0.0]


def test_arguments_of_grad():
    x, y = T.dvectors("x", "y")
    with pytest.raises(TypeError, match="consider_constant is y; pass a list"):
        symcomp.grad((x * y).sum(), x, consider_constant=y)
    with pytest.raises(TypeError, match=r"consider_constant\[1\] is 2"):
        symcomp.grad((x * y).sum(), x, consider_constant=[y, 2])
    for name in ("return_disconnected", "null_gradients"):
        with pytest.raises(ValueError, match=f"{name}='never'"):
            symcomp.grad(x.sum(), x, **{name: "never"})
    for rule in (lambda z: symcomp.grad(z.sum(), x), lambda z: symcomp.Rop(z, x, y)):
        with pytest.raises(GradientError, match="of TooFew gave 0 .* for 1"):
            rule(TooFew()(x))


def test_wrt_may_be_any_variable():
    x = T.dscalar("x")
    h = x**2
    cost = T.sin(h) * x
    gh, gx, one = symcomp.grad(cost, [h, x, cost])
    assert float(gh.eval({x: 0.5})) == pytest.approx(np.cos(0.25) * 0.5)
    assert float(gx.eval({x: 0.5})) == pytest.approx(np.cos(0.25) * 0.5 + np.sin(0.25))
    assert float(one.eval()) == 1.0
    # Forward, h is then an input of its own.
    pushed = symcomp.Rop(cost, [x, h], [T.constant(1.0), None])
    assert float(pushed.eval({x: 0.5})) == pytest.approx(np.sin(0.25))
    k = T.constant(3.0)
    assert symcomp.grad(k * x, k).eval({x: 4.0}) == 4.0
    s = symcomp.shared(np.arange(3), "s")
    assert symcomp.grad((s * 2.0).sum(), s).eval().tolist() == [2.0, 2.0, 2.0]


def test_integers_between_stop_a_derivative_without_disconnecting():
    x, n = T.dscalar("x"), T.lscalar("n")
    f = T.cast(x * 2, "int64") * 1.5
    assert symcomp.grad(f, x).eval({x: 3.2}) == 0.0
    assert symcomp.Rop(f, x, T.constant(1.0)).eval({x: 3.2}) == 0.0
    assert symcomp.Rop(n * x, n, T.constant(1.0)).eval({n: 2, x: 5.0}) == 5.0
    assert symcomp.Rop(n * 2, n, T.constant(1.0)).dtype == symcomp.config.floatX
    assert symcomp.grad(n * 2, n).eval({n: 2}) == 0.0
    with pytest.raises(DisconnectedInputError):
        symcomp.grad(T.arange(n).shape[0] * x, n)


def test_complex_numbers():
    x, v, z, w = T.dvector("x"), T.dvector("v"), T.zvector("z"), T.zvector("w")
    np.testing.assert_allclose(symcomp.Rop(z * z, z, w).eval({z: Z, w: 1j * Z}), 2j * Z * Z)
    np.testing.assert_allclose(symcomp.Rop(x * (1 + 2j), x, v).eval({x: X, v: V}), V * (1 + 2j))
    real = symcomp.Lop(x * (1 + 2j), x, w)
    assert real.dtype == "float64"
    np.testing.assert_allclose(real.eval({w: Z}), ((1 - 2j) * Z).real)
    verify_grad(lambda a, b: (a * b).conj() * a.real + a.imag * 1j, [Z, X])
    rows = jacobian(abs(z) ** 2, z).eval({z: Z})
    np.testing.assert_allclose(rows, np.diag(2 * Z))
    with pytest.raises(DTypeError, match=r"expression is complex128.*\.real and of \.imag"):
        jacobian(x * 1j, x)


def test_float_dtypes_are_those_of_the_variables():
    f, x, df, v = T.fvector("f"), T.dvector("x"), T.fvector("df"), T.dvector("v")
    assert symcomp.Rop(f * 2, f, v).dtype == "float32"
    assert symcomp.Rop(f * x, [f, x], [df, v]).dtype == "float64"
    assert symcomp.Rop(T.cast(x, "float16"), x, v).dtype == "float16"
    assert symcomp.Lop(T.cast(f, "float64"), f, v).dtype == "float32"
    assert jacobian(f**2, f).dtype == "float32"


def test_branches_not_taken_are_not_computed_by_derivatives():
    c, x, v = T.bscalar("c"), T.dvector("x"), T.dvector("v")
    other = T.Assert("the other branch ran")(x**3, T.lt(x, -100.0)) ** 2
    f = ifelse(c, x**2, other)
    values = {c: 1, x: X, v: V}
    np.testing.assert_allclose(symcomp.grad(f.sum(), x).eval({c: 1, x: X}), 2 * X)
    np.testing.assert_allclose(symcomp.Rop(f, x, v).eval(values), 2 * X * V)
    np.testing.assert_allclose(hessian_vector_product(f.sum(), x, v).eval(values), 2 * V)
    mixed = symcomp.grad(symcomp.Rop(f.sum(), x, v), x)
    np.testing.assert_allclose(mixed.eval(values), 2 * V)
    with pytest.raises(AssertionError, match="the other branch ran"):
        symcomp.grad(f.sum(), x).eval({c: 0, x: X})


def test_jacobians_through_branches():
    c, x = T.bscalar("c"), T.dvector("x")
    f = ifelse(c, x**2, T.sqrt(x - x) * x)
    np.testing.assert_allclose(jacobian(f, x).eval({c: 1, x: X}), np.diag(2 * X))
    np.testing.assert_allclose(hessian(f.sum(), x).eval({c: 1, x: X}), 2 * np.eye(3))


def test_jacobians_of_every_rank_and_of_nothing():
    m, v = T.dmatrix("m"), T.dvector("v")
    M = np.arange(6.0).reshape(2, 3) / 7
    third = jacobian(jacobian(v**3, v), v)
    wanted = np.zeros((3, 3, 3))
    wanted[range(3), range(3), range(3)] = 6 * X
    np.testing.assert_allclose(third.eval({v: X}), wanted)
    assert jacobian(m**2, m).eval({m: np.zeros((0, 3))}).shape == (0, 3, 0, 3)
    assert jacobian(T.concatenate([v, v]), v).eval({v: []}).shape == (0, 0)
    assert hessian((v**3).sum(), v).eval({v: []}).shape == (0, 0)
    h = m.sum(axis=0) ** 2
    np.testing.assert_allclose(jacobian(h**2, h).eval({m: M}), np.diag(2 * M.sum(axis=0) ** 2))
    constant = jacobian(h * m[0], m, consider_constant=[h]).eval({m: M})
    np.testing.assert_allclose(constant[:, 0], np.diag(M.sum(axis=0) ** 2))
    assert not constant[:, 1].any()
    assert isinstance(jacobian(v**2, (v, v)), tuple) and isinstance(jacobian(v**2, [v]), list)
    n = T.lvector("n")
    np.testing.assert_allclose(jacobian(n * v, n).eval({n: [1, 2, 3], v: X}), np.diag(X))


def test_static_shapes_of_jacobians():
    x, y = T.tensor("x", shape=(3,)), T.tensor("y", shape=(2, None))
    assert jacobian(x**2, x).type.shape == (3, 3)
    assert jacobian(x.sum() * y, [x, y])[0].type.shape == (2, None, 3)
    assert hessian((x**2).sum(), x).type.shape == (3, 3)


def test_jacobians_can_be_pickled():
    x = T.dvector("x")
    f = pickle.loads(pickle.dumps(symcomp.function([x], jacobian(x**2, x))))
    np.testing.assert_allclose(f(X), np.diag(2 * X))


def test_hessian_vector_product_with_several_variables():
    x, y, u, v = T.dvectors("x", "y", "u", "v")
    m, q = T.dmatrix("m"), T.dmatrix("q")
    hx, hy = hessian_vector_product((x**2 * y).sum(), [x, y], [u, v])
    given = {x: X, y: V, u: V, v: X}
    np.testing.assert_allclose(hx.eval(given), 2 * V * V + 2 * X * X)
    np.testing.assert_allclose(hy.eval({x: X, y: V, u: V}), 2 * X * V)
    M = np.arange(6.0).reshape(2, 3)
    product = hessian_vector_product((m**3).sum(), m, q)
    np.testing.assert_allclose(product.eval({m: M, q: M}), 6 * M * M)
    assert hessian_vector_product((x * 3).sum(), x, u).eval({x: X}).tolist() == [0.0] * 3
    with pytest.raises(ShapeError, match="2 variables in wrt but 1 eval_points"):
        hessian_vector_product((x**2 * y).sum(), [x, y], [u])
    with pytest.raises(ShapeError, match="float64 matrix for x"):
        hessian_vector_product((x**2).sum(), x, q)


def test_deep_graphs_in_every_combination():
    x, v = T.dvectors("x", "v")
    y = x
    for _ in range(1_500):
        y = y * 1.0
    mode = symcomp.Mode(optimizer="None")
    results = [jacobian(y, x), symcomp.grad(symcomp.Rop(y, x, v).sum(), v)]
    f = symcomp.function([x, v], results, mode=mode, on_unused_input="ignore")
    j, g = f(X, V)
    assert j.tolist() == np.eye(3).tolist() and g.tolist() == [1.0] * 3


def test_wide_graphs():
    x, v = T.dvectors("x", "v")
    y = sum((x * float(i) for i in range(1_050)), 0 * x)
    total = float(sum(range(1_050)))
    assert symcomp.grad(y.sum(), x).eval({x: X}).tolist() == [total] * 3
    np.testing.assert_allclose(symcomp.Rop(y, x, v).eval({x: X, v: V}), total * V)


@pytest.mark.parametrize("value", [-1.0, 0.0])
def test_verify_grad_fails_where_the_derivative_is_not_finite(value):
    with np.errstate(all="ignore"), pytest.raises(GradientError, match="differences nan"):
        verify_grad(T.sqrt, [np.array([value])])


def test_verify_grad_at_the_edges():
    for point in (np.zeros((0, 3)), np.array(1.0), 1.5, [1.5, 2.0], X[::-1], Z):
        verify_grad(T.exp, [point])
    verify_grad(lambda x: x * x, [X.astype("float16")])
    verify_grad(lambda x: T.exp(x), [X], rng=np.random.RandomState(3))
    verify_grad(lambda x: T.constant(2.0), [X])
    for marker in (zero_grad, disconnected_grad):
        with pytest.raises(GradientError, match="symbolic 0, finite differences"):
            verify_grad(marker, [X])
    steps = [lambda x: T.cast(x, "int64"), T.argmax, T.argmin, T.argsort, lambda x: x > 0]
    for step in steps:
        verify_grad(step, [X + 0.05])
    for place in (0, 1):
        verify_grad(lambda x, k=place: T.max_and_argmax(x, axis=-1)[k], [np.stack([X, -X])])
    with pytest.raises(TypeError, match="pt must be a list, one array per argument"):
        verify_grad(T.exp, X)
    with pytest.raises(DTypeError, match=r"pt\[0\] has dtype object"):
        verify_grad(T.exp, [np.array([None])])
    with pytest.raises(TypeError, match="not a tensor variable"):
        verify_grad(lambda x, y: [x, y], [X, X])


@pytest.mark.parametrize("value", [0.0, 1.0, 2.0])
def test_derivatives_with_respect_to_constants(value):
    # Rules of stabilization know numbers, and would leave out what they make vanish.
    c, x = T.constant(value), T.dvector("x")
    y = T.log(T.nnet.sigmoid(x + c * x)).sum() + T.switch(x > T.constant(value), x, 0).sum()
    at = np.array([1.5, 2.5])
    expected = (at / (1 + np.exp(at * (1 + value)))).sum()
    assert T.grad(y, c).eval({x: at}) == pytest.approx(expected)
    assert T.Rop(y, c, T.constant(1.0)).eval({x: at}) == pytest.approx(expected)
