"""Undefined derivatives: what they reach, also through whole numbers, graphs in ops and loops."""

from typing import Any

import numpy as np
import pytest

import symcomp
import symcomp.tensor as T
from symcomp.core.graph import FunctionGraph
from symcomp.core.op import Op
from symcomp.core.record import record
from symcomp.errors import DisconnectedInputError, NullTypeGradError, ShapeError
from symcomp.gradient import (
    NullType,
    disconnected_grad,
    grad_clip,
    grad_scale,
    jacobian,
    undefined_grad,
    zero_grad,
)
from symcomp.ifelse import ifelse

X = np.array([0.3, -1.2, 2.0])


@record
class Half(Op):
    """(z_1, z_2) = (x, 2 y): z_1 has no derivative in x."""

    multiple_outputs = True

    def output_types(self, x: Any, y: Any) -> list[Any]:
        return [x.type, y.type]

    def perform(self, x: Any, y: Any) -> Any:
        return x, 2 * y

    def infer_shape(self, node: Any, shapes: Any) -> Any:
        return shapes

    def connection_pattern(self, node: Any) -> list[list[bool]]:
        return [[True, False], [False, True]]

    def undefined_derivatives(self, node: Any, forward: bool = False) -> list[list[str]]:
        return [["half", ""], ["", ""]]

    def pullback(self, inputs: Any, outputs: Any, output_grads: Any) -> list[Any]:
        gy = output_grads[1]
        return [NullType("half")(), None if gy is None else 2 * gy]

    def pushforward(self, inputs: Any, outputs: Any, tangents: Any) -> list[Any]:
        dx, dy = tangents
        return [None if dx is None else NullType("half")(), None if dy is None else 2 * dy]


def refused(y: Any, x: Any, others: Any = ()) -> None:
    """Check that the derivative of ``y`` in ``x`` is undefined in both modes, and defined in
    others.
    """
    v = T.ones_like(x)
    with pytest.raises(NullTypeGradError):
        symcomp.grad(y.sum(), x)
    with pytest.raises(NullTypeGradError):
        symcomp.Rop(y, x, v)
    assert isinstance(symcomp.grad(y.sum(), x, null_gradients="return").type, NullType)
    (null,) = symcomp.Lop([y], [x], [T.ones_like(y)], null_gradients="return")
    assert isinstance(null.type, NullType)
    assert isinstance(symcomp.Rop(y, x, v, null_gradients="return").type, NullType)
    for other in others:
        assert symcomp.grad(y.sum(), other).ndim == other.ndim
        assert symcomp.Rop(y, other, T.ones_like(other)).ndim == y.ndim


def test_through_whole_numbers_and_zero_derivatives() -> None:
    x, y = T.dvector("x"), T.dvector("y")
    lost = undefined_grad(x)
    for z in (
        T.cast(T.cast(lost, "int64"), "float64"),
        T.switch(lost > 0, 1.0, 2.0),
        T.floor(lost),
        T.argmax(lost) * 1.0 + y,
        ifelse(T.all(lost > 0), y, 2 * y),
        undefined_grad(T.cast(x, "int64")) * 1.0,
        zero_grad(lost),
    ):
        refused(x + z + y, x, [y])
        assert symcomp.grad((x + disconnected_grad(z)).sum(), x).ndim == 1
        assert symcomp.grad((x * z).sum(), x, consider_constant=[z]).ndim == 1
        assert symcomp.grad(x.sum() + T.zeros_like(z).sum(), x).ndim == 1
    with pytest.raises(NullTypeGradError):  # a whole number is a cost, too
        symcomp.grad(T.cast(lost, "int64").sum(), x)


def test_known_gradients_are_walls() -> None:
    x, w = T.dvector("x"), T.dvector("w")
    h = x * w
    z = T.cast(undefined_grad(h) > 0, "float64")
    assert symcomp.grad(z.sum(), x, known_grads={h: w}).eval({w: X}).tolist() == (X * X).tolist()
    with pytest.raises(NullTypeGradError):
        symcomp.grad(None, x, known_grads={z: w})


def test_outputs_of_one_op() -> None:
    x, y = T.dvectors("x", "y")
    a, b = Half()(x, y)
    assert symcomp.grad(b.sum(), y).eval({x: X, y: X}).tolist() == [2, 2, 2]
    refused(T.floor(a) + b, x, [y])
    refused(a + b, x, [y])


@pytest.mark.parametrize("inline", [False, True])
def test_ops_from_graphs(inline: bool) -> None:
    x, y = T.dvectors("x", "y")
    body = [T.floor(undefined_grad(x)) + y, x * y, T.cast(undefined_grad(x), "int64")]
    op = symcomp.OpFromGraph([x, y], body, inline)
    a, b, c = op(x, y)
    refused(a, x, [y])
    refused(x + c, x)
    for z in (b, b + y):
        assert symcomp.grad(z.sum(), x).eval({x: X, y: X}).tolist() == X.tolist()
        assert symcomp.Rop(z, x, T.ones_like(x)).ndim == 1


def test_overrides_of_ops_from_graphs() -> None:
    x = T.dvector("x")
    marked = [T.cast(undefined_grad(x), "int64"), undefined_grad(x)]
    own = symcomp.OpFromGraph(
        [x],
        marked,
        lop_overrides=lambda i, o, g: [2 * g[1]],
        rop_overrides=lambda i, d: [None, d[0]],
    )
    whole, same = own(x)
    values = {x: X}
    assert symcomp.grad((x + whole).sum(), x).eval(values).tolist() == [1, 1, 1]
    assert symcomp.grad((x + same).sum(), x).eval(values).tolist() == [3, 3, 3]
    assert symcomp.Rop(x + whole + same, x, T.ones_like(x)).eval(values).tolist() == [2, 2, 2]
    null = NullType("as the user says")()
    for name in ("lop_overrides", "grad_overrides"):
        none = symcomp.OpFromGraph([x], [T.cast(x, "int64"), x * 1.0], **{name: null})
        for z in none(x):
            with pytest.raises(NullTypeGradError, match="as the user says"):
                symcomp.grad((x + z).sum(), x)
    none = symcomp.OpFromGraph([x], [T.cast(x, "int64"), x * 1.0], rop_overrides=null)
    for z in none(x):
        with pytest.raises(NullTypeGradError, match="as the user says"):
            symcomp.Rop(x + z, x, T.ones_like(x))
        assert symcomp.grad((x + z).sum(), x).ndim == 1


def test_loops() -> None:
    """Only what reaches an output through the undefined derivative, in any step, is undefined."""
    x, h, g, w, a = T.dvector("x"), T.dscalar("h"), T.dscalar("g"), T.dscalar("w"), T.dscalar("a")
    for mark in (undefined_grad, lambda v: T.cast(T.cast(undefined_grad(v), "int32"), "float64")):
        (hs, gs, rows), _ = symcomp.scan(
            lambda row, h, g, w, a, mark=mark: [T.sin(mark(h) + w * row), a * g, w * row],
            x,
            [h, g, None],
            [w, a],
        )
        refused(hs, h)
        refused(hs, w)
        refused(hs[-1], x)
        values = {x: X, h: 0.5, g: 3.0, w: 2.0, a: 2.0}
        f = symcomp.function(
            list(values),
            [
                symcomp.grad(gs[-1] + hs.sum(), a),
                symcomp.grad(gs[-1] + hs[-1], g),
                symcomp.grad(rows.sum() + gs.sum(), w),
                symcomp.Rop(gs, a, T.constant(1.0)),
                symcomp.Rop(rows, x, T.ones_like(x)),
            ],
        )
        found = f(*values.values())
        assert [float(v) for v in found[:3]] == [36.0, 8.0, pytest.approx(X.sum())]
        assert found[3].tolist() == [3.0, 12.0, 36.0] and found[4].tolist() == [2.0] * 3
        for cost in (gs[-1] + hs[-1], hs[0]):
            with pytest.raises(NullTypeGradError):
                symcomp.grad(cost, w)


def test_loops_whose_state_is_a_whole_number() -> None:
    h, w = T.dscalar("h"), T.dscalar("w")
    (_, hs), updates = symcomp.scan(
        lambda k, h, w: [T.cast(undefined_grad(w * h), "int64"), h * T.cast(k, "float64")],
        outputs_info=[T.constant(1), h],
        non_sequences=w,
        n_steps=3,
    )
    refused(hs[-1], w)
    refused(hs[-1], h)


def test_jacobians_with_undefined_parts() -> None:
    x, y = T.dvectors("x", "y")
    j = jacobian(x**2 * y, x)
    values = {x: X, y: X}
    assert symcomp.grad(j.sum(), y).eval(values).tolist() == (2 * X).tolist()
    with pytest.raises(NullTypeGradError):
        jacobian(x * undefined_grad(y), y)
    inner = jacobian((x * T.floor(undefined_grad(y))) ** 2, x)
    refused(inner, y, [x])


def test_rop_of_positions_and_orders_is_disconnected_as_in_theano() -> None:
    x, v = T.dvectors("x", "v")
    for places in (T.argmax(x), T.argmin(x), T.argsort(x)):
        assert symcomp.grad(places.sum(), x).eval({x: X}).tolist() == [0, 0, 0]
        with pytest.raises(DisconnectedInputError, match="positions, orders"):
            symcomp.Rop(places, x, v)
        assert symcomp.Rop(places, x, v, "ignore").eval({x: X}).sum() == 0
        pushed = symcomp.function([x, v], symcomp.Rop(x + places, x, v), on_unused_input="ignore")
        assert pushed(X, X).tolist() == X.tolist()
    assert symcomp.Rop(x > 0, x, v).eval({x: X}).tolist() == [0, 0, 0]


def test_costs_with_axes_are_type_errors_as_in_theano() -> None:
    x = T.dvector("x")
    for kind in (TypeError, ValueError, ShapeError):
        with pytest.raises(kind, match="cost must be a scalar"):
            symcomp.grad(T.argmin(T.stack([x, x]), axis=-1), x)


def test_markers_are_gone_in_functions() -> None:
    x = T.dvector("x")
    y = zero_grad(undefined_grad(disconnected_grad(grad_clip(grad_scale(x, 2.0), -1, 1))))
    for mode in ("FAST_RUN", "FAST_COMPILE"):
        f = symcomp.function([x], y * 2, mode=mode)
        assert len(f.maker.fgraph.toposort()) == 1
        assert f(X).tolist() == (2 * X).tolist()
    unchanged = symcomp.function([x], y)
    given = X.copy()
    assert unchanged(given) is not given
    graph = FunctionGraph([x], [y])
    assert len(graph.toposort()) == 5
