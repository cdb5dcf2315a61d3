"""OpFromGraph: values, derivatives, overrides, shared variables, inlining, and what goes wrong."""

import pickle
from dataclasses import dataclass

import numpy as np
import pytest

import symcomp
import symcomp.tensor as T
from symcomp import OpFromGraph
from symcomp.core.evaluate import evaluate
from symcomp.core.graph import FunctionGraph
from symcomp.core.op import Op
from symcomp.core.special_types import generic
from symcomp.core.walk import toposort
from symcomp.errors import (
    DisconnectedInputError,
    DTypeError,
    GradientError,
    GraphError,
    MissingInputError,
    NullTypeGradError,
    ShapeError,
    UnusedInputError,
)
from symcomp.gradient import (
    DisconnectedType,
    NullType,
    disconnected_grad,
    hessian,
    jacobian,
    undefined_grad,
    verify_grad,
)
from symcomp.ifelse import ifelse
from symcomp.rewrite.engine import Engine
from symcomp.rewrite.inline import INLINE_RULES
from symcomp.tensor.inplace import exp_inplace
from symcomp.tests.harness import check
from symcomp.vm.guard import InvalidValueError

X = np.array([0.3, -1.2, 2.0])
Y = np.array([1.5, 0.4, -0.7])
INLINES = pytest.mark.parametrize("inline", [False, True])


def wave(inline=False, **overrides):
    x, y = T.dvectors("x", "y")
    return OpFromGraph([x, y], [T.sin(x) * y], inline=inline, name="wave", **overrides)


def cube_and_sum(inline=False):
    x, y = T.dvectors("x", "y")
    z = x**3 * y
    return OpFromGraph([x, y], [z, z.sum() + x[0]], inline=inline)


def slope(op, *values):
    """Return the gradient of the sum of ``op`` with respect to its inputs."""
    inputs = [T.dvector(f"v{i}") for i in range(len(values))]
    grads = symcomp.grad(op(*inputs).sum(), inputs)
    return symcomp.function(inputs, grads)(*values)


def inlined(inputs, outputs):
    graph = FunctionGraph(inputs, outputs)
    Engine(graph, INLINE_RULES, on_error="raise").run()
    return graph


# -- values and derivatives


@INLINES
def test_value_shape_and_both_modes(inline):
    check(wave(inline), X, Y, expected=lambda x, y: np.sin(x) * y)
    expected = lambda x, y: [x**3 * y, (x**3 * y).sum() + x[0]]  # noqa: E731
    check(cube_and_sum(inline), X, Y, expected=expected)


@pytest.mark.parametrize("dtype", ["float32", "float16", "complex128"])
def test_other_dtypes(dtype):
    x = T.TensorType(dtype, (None, None))("x")
    op = OpFromGraph([x], [(x * x).sum(axis=-1)])
    values = np.arange(6).reshape(2, 3).astype(dtype) / np.asarray(4, dtype)
    expected = lambda v: (v * v).sum(axis=-1)  # noqa: E731
    check(op, values, expected=expected, grad=dtype != "float16")
    check(op, values[:, ::-2], expected=expected, grad=False)
    check(op, values[:0], expected=expected, grad=False)


def test_integers_pass_no_gradient_on_but_have_one():
    n, x = T.lvector("n"), T.dvector("x")
    op = OpFromGraph([n, x], [n * x, n + 1])
    a, b = op(n, x)
    assert a.dtype == "float64" and b.dtype == "int64"
    gx = symcomp.grad(a.sum() + b.sum(), x)
    np.testing.assert_array_equal(gx.eval({n: [2, 3], x: [1.0, 1.0]}), [2.0, 3.0])
    gn = symcomp.grad(a.sum(), n)
    np.testing.assert_array_equal(gn.eval({n: [2, 3], x: [1.0, 4.0]}), [1.0, 4.0])
    np.testing.assert_array_equal(symcomp.Rop(a, x, x).eval({n: [2, 3], x: [1.0, 4.0]}), [2, 12])


@INLINES
def test_second_derivatives(inline):
    op = cube_and_sum(inline)
    verify_grad(lambda x, y: symcomp.grad(op(x, y)[0].sum() * op(x, y)[1], x), [X, Y])
    x = T.dvector("x")
    h = hessian(op(x, x)[1], x)
    np.testing.assert_allclose(h.eval({x: X}), np.diag(12 * X**2))
    j = jacobian(op(x, x)[0], x)
    np.testing.assert_allclose(j.eval({x: X}), np.diag(4 * X**3))
    v = T.dvector("v")
    forward = symcomp.Rop(symcomp.grad(op(x, x)[1], x), x, v)
    np.testing.assert_allclose(forward.eval({x: X, v: Y}), 12 * X**2 * Y)


def test_third_derivative():
    x = T.dscalar("x")
    y = OpFromGraph([x], [T.exp(2 * x)])(x)
    for _ in range(3):
        y = symcomp.grad(y, x)
    np.testing.assert_allclose(y.eval({x: 0.5}), 8 * np.exp(1.0))


@INLINES
def test_nested(inline):
    x = T.dvector("x")
    inner = OpFromGraph([x], [T.tanh(x) + 1], inline=inline)
    outer = OpFromGraph([x], [inner(inner(x)) * x], inline=inline)
    check(outer, X, expected=lambda v: (np.tanh(np.tanh(v) + 1) + 1) * v)


def test_an_output_that_another_output_uses():
    x = T.dscalar("x")
    y = x**2
    a, b = OpFromGraph([x], [y, y * y])(x)
    np.testing.assert_allclose(symcomp.grad(a + b, x).eval({x: 3.0}), 6.0 + 4 * 27.0)
    np.testing.assert_allclose(symcomp.grad(b, x).eval({x: 3.0}), 4 * 27.0)


def test_stable_inside():
    x = T.dscalar("x")
    op = OpFromGraph([x], [T.log(1 + T.exp(x))])
    f = symcomp.function([x], [op(x), symcomp.grad(op(x), x)])
    assert [float(v) for v in f(1000.0)] == [1000.0, 1.0]


def test_within_ifelse_and_ifelse_within():
    x, y = T.dvectors("x", "y")
    op = OpFromGraph([x, y], [ifelse(x[0] > 0, T.log(x) * y, y)])
    both = symcomp.function([x, y], [op(x, y), symcomp.grad(op(x, y).sum(), x)])
    value, gradient = both(-np.ones(3), Y)
    np.testing.assert_array_equal(value, Y)
    np.testing.assert_array_equal(gradient, np.zeros(3))
    z = ifelse(x[0] > 0, op(x, y), y)
    verify_grad(lambda x, y: ifelse(x[0] > 0, op(x, y), y), [np.abs(X), Y])
    np.testing.assert_array_equal(z.eval({x: -np.ones(3), y: Y}), Y)


def test_only_the_branch_taken_runs_inside():
    x = T.dscalar("x")
    refuse = T.Assert("must not run")(x, T.lt(x, 0))
    op = OpFromGraph([x], [ifelse(x > 0, x, refuse)])
    assert op(x).eval({x: 2.0}) == 2.0
    with pytest.raises(AssertionError, match="must not run"):
        op(T.constant(0.0)).eval()


def test_inputs_that_do_not_matter():
    x, y = T.dvectors("x", "y")
    op = OpFromGraph([x, y], [disconnected_grad(x) * 2])
    z = op(x, y).sum()
    np.testing.assert_array_equal(op(x, y).eval({x: X, y: Y}), 2 * X)
    for v in (x, y):
        with pytest.raises(DisconnectedInputError):
            symcomp.grad(z, v)


def test_undefined_derivative_matters_to_who_asks():
    x, y = T.dvectors("x", "y")
    op = OpFromGraph([x, y], [undefined_grad(x) * y, y * 2])
    a, b = op(x, y)
    np.testing.assert_array_equal(symcomp.grad(a.sum(), y).eval({x: X, y: Y}), X)
    np.testing.assert_array_equal(symcomp.Rop(b, [x, y], [X, Y]).eval({x: X, y: Y}), 2 * Y)
    with pytest.raises(NullTypeGradError, match="undefined_grad"):
        symcomp.grad(a.sum(), x)
    with pytest.raises(NullTypeGradError, match="undefined_grad"):
        symcomp.Rop(a, x, x)


# -- overrides


def test_override_by_callables():
    seen = []

    def lop(inputs, outputs, output_grads):
        seen.append((len(inputs), len(outputs), len(output_grads)))
        (_, y), (z,), (gz,) = inputs, outputs, output_grads
        return [gz * 10 * z, y * gz]

    gx, gy = slope(wave(lop_overrides=lop), X, Y)
    np.testing.assert_allclose(gx, 10 * np.sin(X) * Y)
    np.testing.assert_allclose(gy, Y)
    assert seen == [(2, 1, 1)]
    gx, gy = slope(wave(grad_overrides=lambda inputs, grads: [None, inputs[0] * grads[0]]), X, Y)
    np.testing.assert_array_equal(gx, np.zeros(3))
    np.testing.assert_array_equal(gy, X)


def test_list_of_overrides():
    for_x = lambda inputs, grads: grads[0] * 7  # noqa: E731
    gx, gy = slope(wave(grad_overrides=[for_x, "default"]), X, Y)
    np.testing.assert_array_equal(gx, np.full(3, 7.0))
    np.testing.assert_allclose(gy, np.sin(X))
    gx, gy = slope(wave(lop_overrides=[None, lambda i, o, g: o[0]]), X, Y)
    np.testing.assert_array_equal(gx, np.zeros(3))
    np.testing.assert_allclose(gy, np.sin(X) * Y)


def test_override_by_an_op():
    x, y, z, gz = T.dvectors("x", "y", "z", "gz")
    lop = OpFromGraph([x, y, z, gz], [gz * z, gz * x])
    gx, gy = slope(wave(lop_overrides=lop), X, Y)
    np.testing.assert_allclose(gx, np.sin(X) * Y)
    np.testing.assert_array_equal(gy, X)
    one = OpFromGraph([x, y, gz], [gz * 5])
    gx, gy = slope(wave(grad_overrides=["default", one]), X, Y)
    np.testing.assert_allclose(gx, np.cos(X) * Y)
    np.testing.assert_array_equal(gy, np.full(3, 5.0))


def test_second_derivative_of_an_override():
    op = wave(grad_overrides=lambda inputs, grads: [grads[0] * inputs[0] ** 2, inputs[1]])
    x, y = T.dvectors("x", "y")
    g = symcomp.grad(op(x, y).sum(), x)
    np.testing.assert_allclose(symcomp.grad(g.sum(), x).eval({x: X, y: Y}), 2 * X)


def test_forward_overrides():
    x, y = T.dvectors("x", "y")
    double = wave(rop_overrides=lambda inputs, points: [points[0] * 2 + points[1]])
    z = symcomp.Rop(double(x, y), [x, y], [X, Y])
    np.testing.assert_allclose(z.eval({x: X, y: Y}), 2 * X + Y)
    np.testing.assert_allclose(symcomp.Rop(double(x, y), x, X).eval({x: X, y: Y}), 2 * X)
    op = OpFromGraph([x], [x**2, x**3], rop_overrides=[None, "default"])
    a, b = symcomp.Rop(op(x), x, T.ones_like(x))
    np.testing.assert_array_equal(a.eval({x: X}), np.zeros(3))
    np.testing.assert_allclose(b.eval({x: X}), 3 * X**2)
    dx = T.dvector("dx")
    by_op = OpFromGraph([x], [x**2], rop_overrides=OpFromGraph([x, dx], [dx * 3]))
    np.testing.assert_allclose(symcomp.Rop(by_op(x), x, x).eval({x: X}), 3 * X)


def test_marked_as_disconnected_or_undefined():
    x, y = T.dvectors("x", "y")
    op = wave(grad_overrides=[DisconnectedType()(), "default"])
    with pytest.raises(DisconnectedInputError):
        symcomp.grad(op(x, y).sum(), x)
    np.testing.assert_allclose(symcomp.grad(op(x, y).sum(), y).eval({x: X, y: Y}), np.sin(X))
    op = wave(lop_overrides=NullType("not here")())
    with pytest.raises(NullTypeGradError, match="not here"):
        symcomp.grad(op(x, y).sum(), y)
    op = wave(rop_overrides=[NullType("nor here")()])
    with pytest.raises(NullTypeGradError, match="nor here"):
        symcomp.Rop(op(x, y), x, X)


def test_an_override_connects_and_a_pattern_decides():
    x = T.dvector("x")
    through = lambda inputs, grads: [grads[0]]  # noqa: E731
    op = OpFromGraph([x], [disconnected_grad(x) + 1], grad_overrides=through)
    np.testing.assert_array_equal(symcomp.grad(op(x).sum(), x).eval({x: X}), np.ones(3))
    op = OpFromGraph([x], [x + 1], grad_overrides=through, connection_pattern=[[False]])
    with pytest.raises(DisconnectedInputError):
        symcomp.grad(op(x).sum(), x)


def test_outputs_without_gradient_are_zeros_for_overrides():
    x = T.dvector("x")
    op = OpFromGraph([x], [x * 2, x.sum()], grad_overrides=lambda i, g: [g[0] + g[1]])
    np.testing.assert_array_equal(symcomp.grad(op(x)[1], x).eval({x: X}), np.ones(3))


def test_bad_overrides():
    x, y = T.dvectors("x", "y")
    with pytest.raises(ValueError, match="lop_overrides or grad_overrides, not both"):
        wave(lop_overrides=[None, None], grad_overrides=[None, None])
    with pytest.raises(ValueError, match="grad_overrides has 1 elements for 2 inputs"):
        wave(grad_overrides=[None])
    with pytest.raises(TypeError, match=r"rop_overrides\[0\] is 3; it must be"):
        wave(rop_overrides=[3])
    with pytest.raises(TypeError, match="lop_overrides is x; it must be"):
        wave(lop_overrides=x)
    with pytest.raises(ValueError, match="connection_pattern must have 2 rows"):
        wave(connection_pattern=[[True]])
    few = wave(grad_overrides=lambda inputs, grads: [grads[0]])
    with pytest.raises(GradientError, match="gave 1 derivatives, 2 are needed"):
        symcomp.grad(few(x, y).sum(), x)
    number = wave(grad_overrides=[lambda inputs, grads: 3.0, None])
    with pytest.raises(GradientError, match=r"gave 3\.0 for x"):
        symcomp.grad(number(x, y).sum(), x)
    with pytest.raises(ShapeError, match="pullback of wave"):
        symcomp.grad(wave(grad_overrides=[lambda i, g: g[0].sum(), None])(x, y).sum(), x)


# -- shared variables and givens


@INLINES
def test_shared_variables_are_inputs(inline):
    w = symcomp.shared(np.array([1.0, 2.0, 3.0]), "w")
    x = T.dvector("x")
    op = OpFromGraph([x], [x * w**2], inline=inline)
    z = op(x)
    assert z.owner.inputs == [x, w]
    f = symcomp.function([x], [z, symcomp.grad(z.sum(), w)])
    value, gw = f(X)
    np.testing.assert_array_equal(value, X * [1.0, 4.0, 9.0])
    np.testing.assert_array_equal(gw, 2 * X * [1.0, 2.0, 3.0])
    w.set_value(np.zeros(3))
    np.testing.assert_array_equal(f(X)[0], np.zeros(3))
    step = symcomp.function([x], op(x), updates=[(w, w + 1)])
    step(X)
    np.testing.assert_array_equal(step(X), X)


def test_shared_updates_are_refused():
    w = symcomp.shared(1.0, "w")
    w.default_update = w + 1
    x = T.dscalar("x")
    with pytest.raises(GraphError, match="w has a default_update, which an op cannot do"):
        OpFromGraph([x], [x * w])
    assert OpFromGraph([x, w], [x * w])(x, 3.0).eval({x: 2.0}) == 6.0


def test_givens():
    x, y = T.dscalars("x", "y")
    w = symcomp.shared(2.0, "w")
    op = OpFromGraph([x], [x * y * w], givens={y: x + 1, w: T.constant(5.0)})
    assert op(x).eval({x: 2.0}) == 30.0 and op.shared == ()
    with pytest.raises(RuntimeError, match="x is an input"):
        OpFromGraph([x], [x * y], givens=[(x, y)])


# -- as an op


def test_equality_and_merging():
    assert wave() == wave() and hash(wave()) == hash(wave())
    assert wave() != wave(inline=True) and wave() != cube_and_sum()
    assert wave() != wave(grad_overrides=[None, "default"])
    x, y = T.dvectors("x", "y")
    f = symcomp.function([x, y], wave()(x, y) + wave()(x, y))
    assert [str(node.op) for node in f.maker.fgraph.toposort()].count("wave") == 1


def test_pickle():
    op = wave(rop_overrides=[None])
    x, y = T.dvectors("x", "y")
    f = symcomp.function([x, y], [op(x, y), symcomp.grad(op(x, y).sum(), y)])
    f(X, Y)
    again = pickle.loads(pickle.dumps(op))
    assert again == op and str(again) == "wave"
    g = pickle.loads(pickle.dumps(f))
    for a, b in zip(f(X, Y), g(X, Y), strict=True):
        np.testing.assert_array_equal(a, b)


def test_pickle_of_a_deep_graph():
    x = T.dscalar("x")
    y = x
    for _ in range(3000):
        y = y + x
    again = pickle.loads(pickle.dumps(OpFromGraph([x], [y])))
    assert again(x).eval({x: 1.0}) == 3001.0


def test_outputs_never_share_memory():
    x = T.dvector("x")
    c = T.constant(np.ones(3))
    op = OpFromGraph([x], [x, x[::2], c, x, T.exp(x)])
    value = X.copy()
    for results in (op.perform(value), op.bind(None)(value), op(T.constant(value))):
        if not isinstance(results, list | tuple) or hasattr(results[0], "type"):
            results = evaluate(list(results), {})
        for i, a in enumerate(results):
            assert not np.shares_memory(a, value) and not np.shares_memory(a, c.data)
            assert not any(np.shares_memory(a, b) for b in results[:i])
    np.testing.assert_array_equal(op.perform(value)[1], X[::2])


def test_graphs_are_compiled_with_the_function():
    op = wave()
    x, y = T.dvectors("x", "y")
    mode = symcomp.Mode().excluding("inline")
    f = symcomp.function([x, y], op(x, y), mode=mode)
    ((body,),) = f.executable.bodies.values()
    assert body.policy == f.executable.policy
    assert symcomp.function([x, y], op(y, x), mode=mode)(X, Y).shape == (3,)


def test_names_and_lines_inside():
    x = T.dvector("x")
    y = T.exp(x)
    y.name = "inner"
    op = OpFromGraph([x], [y + 1], name="named")
    (inputs, outputs), *_ = op.inner_graphs()
    first = toposort(outputs)[0].outputs[0]
    assert [v.name for v in inputs] == ["x"] and inputs[0] is not x
    assert first.name == "inner" and first.source == y.source
    assert str(op) == "named" and "exp" in str(OpFromGraph([x], [y]))


def test_failure_inside_names_the_line():
    x, y = T.dvectors("x", "y")
    op = OpFromGraph([x, y], [x + y])
    f = symcomp.function([x, y], op(x, y), mode=symcomp.Mode(optimizer="None"))
    with pytest.raises(ValueError, match="broadcast") as caught:
        f(X, Y[:2])
    notes = "\n".join(caught.value.__notes__)
    assert "by the op add" in notes and notes.count("test_builders.py") == 2


# -- inlining


def test_inline_rule():
    x, y = T.dvectors("x", "y")
    op = wave(inline=True)
    outer = OpFromGraph([x], [op(x, x) * 2], inline=True)
    graph = inlined([x, y], [outer(op(x, y))])
    assert (
        sorted(str(n.op) for n in graph.toposort() if str(n.op) in ("sin", "wave")) == ["sin"] * 2
    )
    before = evaluate([outer(op(x, y))], {x: X, y: Y})
    np.testing.assert_array_equal(
        evaluate(graph.outputs, dict(zip(graph.inputs, (X, Y), strict=True))), before
    )
    kept = inlined([x, y], [wave()(x, y)])
    assert [str(n.op) for n in kept.toposort()] == ["wave"]


def test_inline_rule_keeps_types_and_an_output_that_is_an_input():
    x, m = T.dvector("x"), T.dmatrix("m")
    op = OpFromGraph([m], [m, m.sum()], inline=True)
    outputs = op(x.dimshuffle("x", 0))
    graph = inlined([x], outputs)
    assert [y.type.ndim for y in graph.outputs] == [2, 0]
    assert all(a.type.is_super(b.type) for a, b in zip(outputs, graph.outputs, strict=True))


def test_rule_for_outputs_that_nobody_uses():
    x, y = T.dvectors("x", "y")
    op = OpFromGraph([x, y], [T.exp(x), x * y, T.cos(y)])
    graph = inlined([x, y], [op(x, y)[0]])
    (node,) = graph.toposort()
    assert node.inputs == [graph.inputs[0]]
    assert [str(n.op) for n in toposort(node.op.graph.outputs)] == ["exp"]
    np.testing.assert_array_equal(evaluate(graph.outputs, {graph.inputs[0]: X})[0], np.exp(X))
    graph = inlined([x, y], op(x, y)[1:])
    assert [len(n.outputs) for n in graph.toposort()] == [2]
    constant = OpFromGraph([x], [x * 2, T.constant(3.0) + 1])
    graph = inlined([x], [constant(x)[1]])
    assert graph.toposort()[0].inputs == [] and evaluate(graph.outputs, {}) == [4.0]


# -- errors


def test_bad_graphs():
    x, y = T.dvectors("x", "y")
    with pytest.raises(
        MissingInputError, match=r"needs y of type float64 vector, made at .*test_b"
    ):
        OpFromGraph([x], [x + y])
    with pytest.raises(UnusedInputError, match="x is given more than once"):
        OpFromGraph([x, x], [x])
    with pytest.raises(TypeError, match="inputs must be a list"):
        OpFromGraph(x, [x])
    with pytest.raises(TypeError, match=r"outputs\[0\] is 3, not a variable"):
        OpFromGraph([x], [3])
    with pytest.raises(GraphError, match="in-place op"):
        OpFromGraph([x], [exp_inplace(x * 2)])


def test_users_ops_inside_are_checked():
    @dataclass(frozen=True)
    class Liar(Op):
        def output_types(self, x):
            return [x.type]

        def perform(self, x):
            return x.astype("float32")

    x = T.dvector("x")
    f = symcomp.function([x], OpFromGraph([x], [Liar()(x) + 1])(x))
    with pytest.raises(InvalidValueError, match="float32"):
        f(X)


def test_values_that_are_no_tensors():
    x, anything = T.dvector("x"), generic("anything")
    op = OpFromGraph([anything, x], [x * 2, anything])
    doubled, same = op(anything, x)
    f = symcomp.function([anything, x], [same, symcomp.grad(doubled.sum(), x)])
    value, gradient = f({"a": 1}, X)
    assert value == {"a": 1}
    np.testing.assert_array_equal(gradient, np.full(3, 2.0))
    with pytest.raises(DTypeError, match="argument 0 .anything. must be generic"):
        op(x, x)


def test_bad_calls():
    x, m = T.dvector("x"), T.dmatrix("m")
    op = wave()
    with pytest.raises(TypeError, match="wave: 1 arguments are given, 2 are needed: x .*, y"):
        op(x)
    with pytest.raises(ShapeError, match=r"argument 1 \(y\) must be float64 vector, but m is"):
        op(x, m)
    with pytest.raises(DTypeError, match=r"cast it with T.cast\(\.\.\., 'float64'\)"):
        op(x, T.fvector("v"))
    with pytest.raises((ShapeError, DTypeError), match="argument 0"):
        op(np.ones((2, 2)), x)
    with pytest.raises(DTypeError, match="argument 0"):
        op("text", x)
    three = T.TensorType("float64", (3,))("three")
    with pytest.raises(ShapeError, match="T.specify_shape"):
        OpFromGraph([three], [three.sum()])(x)
    np.testing.assert_array_equal(op([1, 2], [3, 4]).eval(), np.sin([1, 2]) * [3, 4])
