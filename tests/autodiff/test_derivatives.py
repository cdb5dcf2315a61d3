"""grad, Lop, Rop and functions built on them: arguments, combinations, and errors."""

import importlib
import pickle
import warnings
from dataclasses import dataclass

import numpy as np
import pytest

import symcomp
import symcomp.tensor as T
from symcomp.core.op import Op
from symcomp.errors import (
    DisconnectedInputError,
    DTypeError,
    GradientError,
    NullTypeGradError,
    ShapeError,
)
from symcomp.gradient import (
    DisconnectedType,
    NullType,
    consider_constant,
    disconnected_grad,
    grad_clip,
    grad_not_implemented,
    grad_scale,
    grad_undefined,
    hessian,
    hessian_vector_product,
    jacobian,
    subgraph_grad,
    undefined_grad,
    verify_grad,
    zero_grad,
)
from symcomp.tests.harness import check
from symcomp.tests.repository import modules_without_extras

X = np.array([0.3, -1.2, 2.0])
V = np.array([1.0, 0.5, -0.7])


def test_structures_and_names():
    x, y = T.dscalars("x", "y")
    cost = x * y
    cost.name = "cost"
    assert isinstance(symcomp.grad(cost, [x]), list) and isinstance(symcomp.grad(cost, (x,)), tuple)
    gx = symcomp.grad(cost, x)
    assert gx.name == "(dcost/dx)" and symcomp.grad(cost + 0, y, add_names=False).name is None
    with pytest.raises(TypeError, match="no order"):
        symcomp.grad(cost, {x})
    with pytest.raises(TypeError, match=r"wrt\[1\] is 3"):
        symcomp.grad(cost, [x, 3])


def test_cost_must_be_a_real_scalar():
    x = T.dvector("x")
    with pytest.raises(ShapeError, match="cost must be a scalar, but .* has 1 axes"):
        symcomp.grad(x * 2, x)
    with pytest.raises(DTypeError, match="cost must be real"):
        symcomp.grad(T.zscalar("z"), x)
    with pytest.raises(TypeError, match="not a tensor variable"):
        symcomp.grad(3.0, x)
    with pytest.raises(GradientError, match="cost is None"):
        symcomp.grad(None, x)


def test_disconnected_inputs():
    x, y = T.dscalars("x", "y")
    with pytest.raises(
        DisconnectedInputError,
        match="with respect to y of type float64 scalar, made at .*test_derivatives.py",
    ):
        symcomp.grad(x**2, [x, y])
    with pytest.warns(UserWarning, match="does not depend on"):
        g = symcomp.grad(x**2, y, disconnected_inputs="warn")
    assert g.eval() == 0 if g.owner is None else g.eval({y: 1.0}) == 0
    assert symcomp.grad(x**2, y, disconnected_inputs="ignore", return_disconnected="None") is None
    g = symcomp.grad(x**2, y, disconnected_inputs="ignore", return_disconnected="Disconnected")
    assert isinstance(g.type, DisconnectedType)
    with pytest.raises(ValueError, match="disconnected_inputs='no'"):
        symcomp.grad(x, y, disconnected_inputs="no")
    with pytest.raises(DisconnectedInputError):
        symcomp.grad(T.zeros(T.dvector("v").shape).sum(), y)


def test_known_grads_and_consider_constant():
    x, y = T.dscalars("x", "y")
    h = x**2
    assert symcomp.grad(None, x, known_grads={h: T.constant(10.0)}).eval({x: 3.0}) == 60.0
    assert symcomp.grad(h, x, known_grads={h: 10.0}).eval({x: 3.0}) == 60.0
    assert symcomp.grad(h * y, y, consider_constant=[h]).eval({x: 3.0, y: 1.0}) == 9.0
    g = symcomp.grad(h * y * x, x, consider_constant=[h])
    assert g.eval({x: 3.0, y: 1.0}) == 9.0
    with pytest.raises(ShapeError, match="known_grads gave a gradient of type"):
        symcomp.grad(None, x, known_grads={h: T.dvector()})


def test_integers():
    n, x = T.lscalar("n"), T.dscalar("x")
    g = symcomp.grad(n * x, n)
    assert g.dtype == "float64" and g.eval({n: 2, x: 3.0}) == 3.0
    assert symcomp.grad(T.cast(x, "int32") * 2.0, x).eval({x: 3.0}) == 0.0
    assert symcomp.grad(T.floor(x) + T.argmax(T.stack([x, 1.0])), x).eval({x: 3.0}) == 0.0
    with symcomp.config.change_flags(floatX="float32"):
        assert symcomp.grad((T.fvector("f") * 2).sum() + 0 * T.sum(n), n).dtype == "float32"


def test_dtypes_of_gradients():
    f, d = T.fvector("f"), T.dvector("d")
    gf, gd = symcomp.grad((f * d).sum(), [f, d])
    assert (gf.dtype, gd.dtype) == ("float32", "float64")


def test_null_gradients():
    x = T.dscalar("x")
    y = undefined_grad(x) ** 2
    with pytest.raises(NullTypeGradError, match="marked by undefined_grad"):
        symcomp.grad(y, x)
    assert isinstance(symcomp.grad(y, x, null_gradients="return").type, NullType)
    with pytest.raises(NullTypeGradError):
        symcomp.Rop(y, x, T.constant(1.0))
    assert isinstance(grad_not_implemented("op", 0, x).type, NullType)
    assert "because" in grad_undefined("op", 0, x, "because").type.reason


def test_markers():
    x = T.dscalar("x")
    values = {x: 3.0}
    assert symcomp.grad(x * disconnected_grad(x), x).eval(values) == 3.0
    assert symcomp.grad(x * zero_grad(x), x).eval(values) == 3.0
    assert symcomp.grad(x * consider_constant(x), x).eval(values) == 3.0
    with pytest.raises(DisconnectedInputError):
        symcomp.grad(disconnected_grad(x), x)
    assert symcomp.grad(zero_grad(x), x).eval(values) == 0.0
    assert symcomp.grad(grad_clip(x, -1, 1) ** 2, x).eval(values) == 1.0
    assert symcomp.grad(grad_scale(x, -2.0) ** 2, x).eval(values) == -12.0
    assert symcomp.Rop(grad_scale(x, 2.0), x, T.constant(1.0)).eval(values) == 2.0
    assert symcomp.Rop(grad_clip(x, 0, 0) * 2, x, T.constant(1.0)).eval(values) == 2.0
    with pytest.raises(ValueError, match="exceeds upper_bound"):
        grad_clip(x, 1, 0)


def test_lop_and_rop():
    x, v = T.dvectors("x", "v")
    f = T.tanh(x) * x.sum()
    values = {x: X, v: V}
    j = jacobian(f, x).eval({x: X})
    np.testing.assert_allclose(symcomp.Lop(f, x, v).eval(values), V @ j)
    np.testing.assert_allclose(symcomp.Rop(f, x, v).eval(values), j @ V)
    several = symcomp.Rop([f, x], [x], [v])
    assert isinstance(several, list) and several[1].eval({v: V}).tolist() == V.tolist()
    assert isinstance(symcomp.Rop((f,), x, v), tuple)
    np.testing.assert_allclose(symcomp.Lop([f, f], [x], [v, v])[0].eval(values), 2 * V @ j)
    with pytest.raises(ShapeError, match="1 outputs but 2 eval_points"):
        symcomp.Lop(f, x, [v, v])
    with pytest.raises(ShapeError, match="1 variables in wrt but 2 eval_points"):
        symcomp.Rop(f, x, [v, v])
    with pytest.raises(ShapeError, match="eval_points gave a tangent of type float64 matrix"):
        symcomp.Rop(f, x, T.dmatrix())
    y = T.dscalar("y")
    with pytest.raises(DisconnectedInputError, match="does not depend on wrt"):
        symcomp.Rop(f, y, T.constant(1.0))
    assert symcomp.Rop(f, y, T.constant(1.0), "ignore", "None") is None
    with pytest.warns(UserWarning):
        symcomp.Rop(f, y, T.constant(1.0), "warn")
    assert symcomp.Rop(f + y, [x, y], [None, T.constant(1.0)]).eval({x: X, y: 0.0}).tolist() == [
        1,
        1,
        1,
    ]


def test_combinations_of_modes():
    x, u, v = T.dvectors("x", "u", "v")
    cost = (T.exp(x) * T.sin(x.sum())).sum()
    values = {x: X, u: V, v: X[::-1].copy()}
    h = hessian(cost, x).eval({x: X})
    g = symcomp.grad(cost, x)
    np.testing.assert_allclose(symcomp.Rop(g, x, v).eval({x: X, v: V}), h @ V)
    np.testing.assert_allclose(symcomp.grad((g * v).sum(), x).eval({x: X, v: V}), h @ V)
    np.testing.assert_allclose(symcomp.grad(symcomp.Rop(cost, x, v), x).eval({x: X, v: V}), h @ V)
    twice = symcomp.Rop(symcomp.Rop(cost, x, u), x, v)
    np.testing.assert_allclose(twice.eval(values), V @ h @ X[::-1])
    third = symcomp.grad(twice, x)
    swapped = symcomp.Rop(symcomp.grad(symcomp.Rop(cost, x, v), x), x, u)
    np.testing.assert_allclose(third.eval(values), swapped.eval(values))
    np.testing.assert_allclose(hessian_vector_product(cost, x, v).eval({x: X, v: V}), h @ V)


def test_gauss_newton_product():
    x, v = T.dvectors("x", "v")
    f = T.tanh(T.dot(T.constant(np.vander(X)), x))
    product = symcomp.Lop(f, x, symcomp.Rop(f, x, v))
    j = jacobian(f, x).eval({x: X})
    np.testing.assert_allclose(product.eval({x: X, v: V}), j.T @ (j @ V))


def test_jacobian():
    x, y = T.dmatrix("x"), T.dvector("y")
    m = np.arange(6.0).reshape(2, 3) / 7
    f = T.dot(x, y) ** 2
    jx, jy = jacobian(f, [x, y])
    wanted = 2 * (m @ V)[:, None] * m
    np.testing.assert_allclose(jy.eval({x: m, y: V}), wanted)
    assert jx.eval({x: m, y: V}).shape == (2, 2, 3)
    j = jacobian(x * 2, x)
    np.testing.assert_allclose(j.eval({x: m}), 2 * np.eye(6).reshape(2, 3, 2, 3))
    assert jacobian(f.sum(), y).eval({x: m, y: V}).shape == (3,)
    assert jacobian(y**2, y).eval({y: []}).shape == (0, 0)
    with pytest.raises(TypeError, match="not a tensor variable"):
        jacobian(3, y)
    with pytest.raises(DisconnectedInputError):
        jacobian(y**2, x)
    z = T.dscalar("z")
    np.testing.assert_allclose(
        jacobian(y**2, z, disconnected_inputs="ignore").eval({y: V, z: 0.0}), np.zeros(3)
    )


def test_jacobian_shapes_and_pickling():
    check(
        lambda x: jacobian(T.tanh(x) * x.sum(), x),
        X,
        expected=lambda x: np.diag((1 - np.tanh(x) ** 2) * x.sum()) + np.tanh(x)[:, None],
        tolerance=1e-4,
    )
    empty = np.zeros((2, 0))
    check(lambda x: jacobian(x**2, x), empty, expected=np.zeros((2, 0, 2, 0)))
    f = T.fvector("f")
    assert jacobian(f**2, f).dtype == "float32"
    compiled = pickle.loads(pickle.dumps(symcomp.function([f], jacobian(f**2, f))))
    assert compiled([1.0, 2.0]).tolist() == [[2, 0], [0, 4]]


def test_jacobian_is_differentiable():
    verify_grad(lambda x: (jacobian(T.tanh(x) * x.sum(), x) ** 2).sum(), [X])
    x, v = T.dvectors("x", "v")
    h = hessian((x**3).sum() * x[0], x)
    verify_grad(lambda x: hessian((x**3).sum() * x[0], x).sum(), [X])
    assert symcomp.Rop(h, x, v).eval({x: X, v: V}).shape == (3, 3)


def test_hessian():
    x, y = T.dvectors("x", "y")
    hx, hy = hessian((x**2 * y).sum(), [x, y], disconnected_inputs="ignore")
    assert hx.eval({x: X, y: V}).tolist() == np.diag(2 * V).tolist()
    assert hy.eval({x: X, y: V}).tolist() == np.zeros((3, 3)).tolist()
    with pytest.raises(ShapeError, match="wrt must be vectors"):
        hessian((T.dmatrix("m") ** 2).sum(), T.dmatrix())


def test_subgraph_grad():
    x, w1, w2 = T.dscalars("x", "w1", "w2")
    h = T.tanh(x * w1)
    cost = (h * w2) ** 2
    whole = symcomp.grad(cost, [w1, w2])
    (g2,), (gh,) = subgraph_grad([w2], [h], cost=cost)
    (g1,), _ = subgraph_grad([w1], [x], start={h: gh})
    values = {x: 0.5, w1: 1.5, w2: -2.0}
    assert float(g1.eval(values)) == float(whole[0].eval(values))
    assert float(g2.eval(values)) == float(whole[1].eval(values))
    details = subgraph_grad([w2], [h], start={cost: T.constant(1.0)}, cost=h**2, details=True)
    assert len(details) == 4 and len(details[2]) == 2
    with pytest.raises(GradientError, match="start gradients, a cost, or both"):
        subgraph_grad([w1], [x])


def test_complex_gradient_is_the_steepest_ascent():
    z = T.zvector("z")
    g = symcomp.grad((abs(z) ** 2).sum(), z)
    value = np.array([1 + 2j, -3j])
    np.testing.assert_allclose(g.eval({z: value}), 2 * value)


def test_long_chains_need_no_recursion():
    x = T.dscalar("x")
    y = x
    for _ in range(4_000):
        y = y * 1.0
    g = symcomp.grad(y, x)
    r = symcomp.Rop(y, x, T.constant(2.0))
    f = symcomp.function([x], [y, g, r], mode=symcomp.Mode(optimizer="None"))
    assert [float(v) for v in f(3.0)] == [3.0, 1.0, 2.0]
    assert symcomp.clone_replace(y, {x: T.dscalar("q")}).owner is not None


@dataclass(frozen=True)
class Wrong(Op):
    """z = x**2 with a wrong derivative in one mode."""

    mode: str

    def output_types(self, x):
        return [x.type]

    def perform(self, x):
        return np.square(x)

    def infer_shape(self, node, shapes):
        return [shapes[0]]

    def pullback(self, inputs, outputs, output_grads):
        return [output_grads[0] * inputs[0] * (3 if self.mode == "pullback" else 2)]

    def pushforward(self, inputs, outputs, tangents):
        return [tangents[0] * inputs[0] * (3 if self.mode == "pushforward" else 2)]


def test_verify_grad():
    verify_grad(Wrong("right"), [X])
    with pytest.raises(
        GradientError,
        match=r"pullback \(L-op\) of Wrong.*input 0, float64 vector.* symbolic .*, finite",
    ):
        verify_grad(Wrong("pullback"), [X])
    with pytest.raises(GradientError, match=r"pushforward \(R-op\) of Wrong.*along input 0"):
        verify_grad(Wrong("pushforward"), [X])
    verify_grad(Wrong("pushforward"), [X], forward=False)
    verify_grad(lambda x, i: x[i], [X, np.array([0, 2])])
    verify_grad(lambda x: T.exp(x), [X.astype("float32")])
    verify_grad(
        lambda x: T.exp(x), [X.astype("float32")], cast_to_output_type=True, out_type="float64"
    )
    verify_grad(
        T.exp,
        [X],
        mode="FAST_COMPILE",
        rng=np.random.default_rng(1),
        eps=1e-5,
        abs_tol=1e-4,
        rel_tol=1e-4,
    )
    with pytest.raises(DTypeError, match="nothing to differentiate"):
        verify_grad(T.exp, [np.array([1, 2])])
    with pytest.raises(TypeError, match="not a tensor variable"):
        verify_grad(lambda x: 3, [X])


def test_shape_errors_of_rules_are_named():
    @dataclass(frozen=True)
    class Bad(Wrong):
        mode: str = ""

        def pullback(self, inputs, outputs, output_grads):
            return [output_grads[0].sum()]

        def pushforward(self, inputs, outputs, tangents):
            return [tangents[0].sum()]

    x = T.dvector("x")
    with pytest.raises(
        ShapeError,
        match="the pullback of .*Bad.* gave a gradient of type float64 scalar for x of type",
    ):
        symcomp.grad(Bad()(x).sum(), x)
    with pytest.raises(ShapeError, match="the pushforward of .*Bad"):
        symcomp.Rop(Bad()(x), x, T.constant(V))


def all_ops():
    for module in modules_without_extras():
        if not module.endswith("__main__"):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                importlib.import_module(module)
    pending, found = [Op], []
    while pending:
        for cls in pending.pop().__subclasses__():
            if cls.__module__.startswith("symcomp.") and ".tests" not in cls.__module__:
                found.append(cls)
                pending.append(cls)
    return sorted(set(found), key=lambda cls: cls.__name__)


@pytest.mark.parametrize("cls", all_ops(), ids=lambda cls: cls.__name__)
def test_every_op_has_both_rules_or_a_reason(cls):
    both = cls.pullback is not Op.pullback and cls.pushforward is not Op.pushforward
    neither = cls.pullback is Op.pullback and cls.pushforward is Op.pushforward
    abstract = cls.perform is Op.perform or cls.__name__.startswith("_")
    assert both or (neither and (cls.no_derivative or abstract)), f"{cls.__name__} lacks a rule"
    assert abstract or (cls.infer_shape is not Op.infer_shape and cls.perform is not Op.perform)


def test_missing_rules_name_the_op():
    @dataclass(frozen=True)
    class Plain(Op):
        def output_types(self, x):
            return [x.type]

        def perform(self, x):
            return x + 1

    x = T.dscalar("x")
    with pytest.raises(NotImplementedError, match=r"Plain has no pullback \(L-op\)"):
        symcomp.grad(Plain()(x), x)
    with pytest.raises(NotImplementedError, match=r"Plain has no pushforward \(R-op\)"):
        symcomp.Rop(Plain()(x), x, T.constant(1.0))
