"""Ops written for Theano: the adapter, a ViewOp, and as_op."""

import pickle
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import symcomp
import symcomp.tensor as T
from symcomp.compat.op import MethodNotDefined, Op, ShapeError
from symcomp.compat.tensor import verify_grad
from symcomp.core.node import Apply
from symcomp.ifelse import ifelse
from symcomp.vm.guard import InvalidValueError

PROGRAMS = Path(__file__).parents[1] / "programs" / "compat"
VALUES = np.random.default_rng(0).normal(size=(3, 4))


@pytest.fixture
def own_ops(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(PROGRAMS)
    monkeypatch.delitem(sys.modules, "own_ops", raising=False)
    import own_ops

    return own_ops


class Pair(Op):
    """x + 1 and x - 1, or the results given."""

    def __init__(self, results: Any = None) -> None:
        self.results = results

    def make_node(self, x: Any) -> Apply:
        x = T.as_tensor_variable(x)
        return Apply(self, [x], [x.type(), x.type()])

    def perform(self, node: Any, inputs: Any, output_storage: Any) -> None:
        results = self.results or (inputs[0] + 1, inputs[0] - 1)
        for cell, value in zip(output_storage, results, strict=True):
            cell[0] = value


class TestPrograms:
    def test_values_gradients_and_tangents(self, own_ops: Any) -> None:
        op = own_ops.PowerSeries(1.0, 2.0, 3.0)
        x = T.dmatrix("x")
        f = symcomp.function([x], [op(x), symcomp.Rop(op(x), x, T.ones_like(x))])
        value, tangent = f(VALUES)
        assert np.allclose(value, 1 + 2 * VALUES + 3 * VALUES**2)
        assert np.allclose(tangent, 2 + 6 * VALUES)
        verify_grad(op, [VALUES])

    def test_the_shape_is_known_without_running(self, own_ops: Any) -> None:
        x = T.dmatrix("x")
        f = symcomp.function([x], own_ops.PowerSeries(1.0)(x).shape)
        assert f(VALUES).tolist() == [3, 4]
        ops = [node.op for node in f.maker.fgraph.toposort()]
        assert not any(isinstance(op, own_ops.PowerSeries) for op in ops)

    def test_props_make_ops_equal_so_that_they_merge(self, own_ops: Any) -> None:
        series, x = own_ops.PowerSeries, T.dmatrix("x")
        assert series(1.0, 2.0) == series(1.0, 2.0) != series(1.0)
        assert hash(series(1.0)) == hash(series(1.0))
        assert str(series(1.0)) == "PowerSeries{coefficients=(1.0,)}"
        f = symcomp.function([x], series(1.0, 2.0)(x) * series(1.0, 2.0)(x))
        ops = [node.op for node in f.maker.fgraph.toposort()]
        assert sum(isinstance(op, series) for op in ops) == 1

    def test_declared_types_and_several_outputs(self, own_ops: Any) -> None:
        op, x = own_ops.MinAndMax(), T.dmatrix("x")
        low, high = op(x)
        found = symcomp.function([x], [low, high])(VALUES)
        assert np.array_equal(found, [VALUES.min(axis=1), VALUES.max(axis=1)])
        verify_grad(lambda x: op(x)[1], [VALUES])
        verify_grad(lambda x: op(x)[0] * op(x)[1], [VALUES])
        with pytest.raises(TypeError, match="input 0.*float64 vector.*float64 matrix"):
            op(T.dvector("v"))
        with pytest.raises(TypeError, match="takes 1 inputs, got 2"):
            op(x, x)

    def test_an_input_that_is_not_differentiated(self, own_ops: Any) -> None:
        op = own_ops.TakeRows()
        verify_grad(lambda x: op(x, [0, 2, 2]), [VALUES])
        x, rows = T.dmatrix("x"), T.lvector("rows")
        with pytest.raises(symcomp.DisconnectedInputError):
            symcomp.grad(op(x, rows).sum(), rows)

    def test_a_view_with_another_gradient(self, own_ops: Any) -> None:
        x = T.dmatrix("x")
        y = own_ops.GradientReversal(2.0)(x)
        f = symcomp.function([x], [y, symcomp.grad(y.sum(), x)])
        value, slope = f(VALUES)
        assert np.array_equal(value, VALUES)
        assert not np.shares_memory(value, VALUES)
        assert np.array_equal(slope, np.full((3, 4), -2.0))

    def test_a_function_made_an_op(self, own_ops: Any) -> None:
        x, y = T.dmatrices("x", "y")
        product = own_ops.numpy_dot(x, y)
        f = symcomp.function([x, y], [product, product.shape])
        value, lengths = f(VALUES, VALUES.T)
        assert np.array_equal(value, VALUES @ VALUES.T)
        assert lengths.tolist() == [3, 3]
        with pytest.raises(NotImplementedError, match="not differentiated"):
            symcomp.grad(product.sum(), x)

    def test_functions_with_them_are_pickled(self, own_ops: Any) -> None:
        x = T.dmatrix("x")
        f = symcomp.function([x], own_ops.PowerSeries(0.0, 1.0)(x))
        assert np.array_equal(pickle.loads(pickle.dumps(f))(VALUES), VALUES)

    def test_constants_are_folded(self, own_ops: Any) -> None:
        f = symcomp.function([], own_ops.PowerSeries(1.0, 1.0)(T.constant([[1.0]])))
        assert f() == [[2.0]]


class TestCalls:
    def test_outputs_given_as_variables_are_those_of_the_node(self) -> None:
        x, y = T.dvector("x"), T.dvector("y")
        node = Apply(Pair(), [x], [y, T.dvector()])
        assert node.outputs[0] is y
        assert y.owner is node
        assert y.index == 0
        with pytest.raises(ValueError, match="output 0 of .* is y, which has an owner"):
            Apply(Pair(), [x], [y, T.dvector()])
        with pytest.raises(TypeError, match="output 1 .* is 3, not a type or variable"):
            Apply(Pair(), [x], [T.dvector(), 3])  # type: ignore[list-item]

    def test_default_output(self) -> None:
        class First(Pair):
            default_output = 1

        x = T.dvector("x")
        assert First()(x).index == 1
        assert len(First()(x, return_list=True)) == 2
        assert len(Pair()(x)) == 2

    def test_without_props_ops_are_equal_only_to_themselves(self) -> None:
        class Plain(Op):
            """No parameters declared."""

        op = Plain()
        assert op == op
        assert op != Plain()
        assert str(op) == "Plain"

    def test_numbers_become_arrays_if_nothing_is_lost(self) -> None:
        x = T.fscalar("x")
        f = symcomp.function([x], Pair((1, 0.5))(x), on_unused_input="ignore")
        found = f(0.0)
        assert [v.dtype for v in found] == [np.float32, np.float32]
        with pytest.raises(TypeError, match="float32"):
            symcomp.function([x], Pair((1, 0.1))(x))(0.0)

    def test_arrays_of_another_type_are_refused(self) -> None:
        x = T.fvector("x")
        f = symcomp.function([x], Pair((np.zeros(2), np.zeros(2)))(x))
        with pytest.raises(InvalidValueError, match="output 0.*float64 array.*float32 vector"):
            f(np.zeros(2, "float32"))

    def test_an_output_that_is_not_set_is_refused(self) -> None:
        x = T.dvector("x")
        with pytest.raises(InvalidValueError, match="output 1.*NoneType"):
            symcomp.function([x], Pair((np.zeros(2), None))(x))(np.zeros(2))

    def test_c_code_alone_cannot_run(self) -> None:
        class InC(Op):
            itypes = otypes = [T.dvector]

            def c_code(self, *args: Any) -> str:
                return "%(z)s = %(x)s;"

        x = T.dvector("x")
        with pytest.raises(NotImplementedError, match="InC has no perform"):
            symcomp.function([x], InC()(x))

    def test_neither_make_node_nor_types(self) -> None:
        with pytest.raises(MethodNotDefined, match="neither make_node nor itypes"):
            Op()(T.dvector("x"))


class TestGradients:
    def test_what_is_not_there_is_said(self) -> None:
        x = T.dvector("x")
        with pytest.raises(NotImplementedError, match="Pair.*neither L_op nor grad"):
            symcomp.grad(Pair()(x)[0].sum(), x)
        with pytest.raises(NotImplementedError, match="Pair.*no R_op"):
            symcomp.Rop(Pair()(x)[0], x, x)

    def test_r_op_that_returns_none_is_not_implemented(self) -> None:
        """As in Theano, it is a ValueError; with zeros a Hessian would be wrong in silence."""
        x, v = T.dvectors("x", "v")

        class Broken(Pair):
            def grad(self, inputs: Any, output_gradients: Any) -> list[Any]:
                return [output_gradients[0] - output_gradients[1]]

            def R_op(self, inputs: Any, eval_points: Any) -> list[Any]:
                return [None, eval_points[0]]

        y, z = Broken()(x)
        chosen = ifelse(x.sum() > 0, y, x)
        inside = symcomp.OpFromGraph([x], [Broken()(x)[0]])(x)
        (looped, fine), _ = symcomp.scan(lambda row: [Broken()(row.dimshuffle("x"))[0], 2 * row], x)
        for cost in (y, (x + y).sum(), T.floor(y) + x, chosen, inside, looped, looped[-1]):
            with pytest.raises(ValueError, match="R_op gave None for output 0"):
                symcomp.Rop(cost, x, v)
            with pytest.raises(ValueError, match="R_op gave None"):
                symcomp.Rop(cost, x, v, disconnected_outputs="ignore")
        for cost in (z, fine, y.shape[0] * x):
            assert symcomp.Rop(cost, x, v).ndim == 1
        twice = symcomp.gradient.hessian_vector_product
        with pytest.raises(ValueError, match="R_op gave None"):
            twice((y**2).sum() + (z * 0).sum(), x, v)

    def test_null_gradients_pass_through_whole_numbers(self) -> None:
        x = T.dvector("x")

        class Rounded(Op):
            itypes, otypes = [T.dvector], [T.lvector]

            def perform(self, node: Any, inputs: Any, output_storage: Any) -> None:
                output_storage[0][0] = inputs[0].astype("int64")

            def grad(self, inputs: Any, output_gradients: Any) -> list[Any]:
                return [symcomp.gradient.grad_undefined(self, 0, inputs[0])]

            def R_op(self, inputs: Any, eval_points: Any) -> list[Any]:
                return [None]

        for cost in (x + Rounded()(x), Rounded()(x)):
            with pytest.raises(TypeError, match="derivative of Rounded in input 0"):
                symcomp.grad(cost.sum(), x)
            with pytest.raises(ValueError, match="R_op gave None"):
                symcomp.Rop(cost, x, x)

    def test_a_gradient_that_is_not_written_matters_where_it_is_asked_for(self) -> None:
        """Loops and ops of graphs do not ask an op for more than the walk needs."""
        x, w = T.dvector("x"), T.dscalar("w")

        class Unwritten(Pair):
            def grad(self, inputs: Any, output_gradients: Any) -> list[Any]:
                raise NotImplementedError("not yet")

        (a, b), _ = symcomp.scan(
            lambda row, w: [Unwritten()(row.dimshuffle("x"))[0], row * w], x, non_sequences=w
        )
        assert symcomp.grad(b.sum(), w).eval({x: [1.0, 2.0], w: 1.0}) == 3
        with pytest.raises(NotImplementedError, match="not yet"):
            symcomp.grad(a.sum(), x)

    def test_outputs_that_are_not_used_are_marked(self) -> None:
        seen: list[str] = []

        class Watched(Pair):
            def grad(self, inputs: Any, output_gradients: Any) -> list[Any]:
                seen.extend(str(g.type) for g in output_gradients)
                return [output_gradients[0]]

        x = T.dvector("x")
        symcomp.grad(Watched()(x)[0].sum(), x)
        assert seen == ["float64 vector", "disconnected"]

    def test_none_is_no_gradient(self) -> None:
        class Nothing(Pair):
            def grad(self, inputs: Any, output_gradients: Any) -> list[Any]:
                return [None]

        x = T.dvector("x")
        with pytest.raises(symcomp.NullTypeGradError, match="grad returned None"):
            symcomp.grad(Nothing()(x)[0].sum(), x)

    def test_one_gradient_for_each_input(self) -> None:
        class TooMany(Pair):
            def grad(self, inputs: Any, output_gradients: Any) -> list[Any]:
                return [output_gradients[0], output_gradients[0]]

        x = T.dvector("x")
        with pytest.raises(TypeError, match="one of 1 inputs"):
            symcomp.grad(TooMany()(x)[0].sum(), x)

    def test_a_shape_that_is_not_known_is_computed(self) -> None:
        class Unknown(Pair):
            def infer_shape(self, node: Any, shapes: Any) -> Any:
                raise ShapeError("it depends")

        x = T.dvector("x")
        assert symcomp.function([x], Unknown()(x)[0].shape)(np.zeros(3)).tolist() == [3]


class TestThunks:
    def test_that_of_a_perform(self) -> None:
        class Cube(Op):
            __props__ = ()
            itypes, otypes = [T.dvector], [T.dvector]

            def perform(self, node: Any, inputs: Any, output_storage: Any) -> None:
                output_storage[0][0] = inputs[0] ** 3

        x = T.dvector("x")
        node = Cube().make_node(x)
        storage: dict[Any, list[Any]] = {x: [np.array([1.0, 2.0])], node.outputs[0]: [None]}
        done = {node.outputs[0]: [False]}
        thunk: Any = Cube().make_thunk(node, storage, done, [])
        assert thunk.inputs == [storage[x]] and thunk.lazy is False
        thunk()
        assert storage[node.outputs[0]][0].tolist() == [1.0, 8.0]
        assert done[node.outputs[0]] == [True]

    def test_one_of_the_programs_own(self) -> None:
        class Twice(Op):
            __props__ = ()

            def make_node(self, x: Any) -> Apply:
                return Apply(self, [x], [x.type()])

            def make_thunk(
                self, node: Any, storage_map: Any, compute_map: Any, no_recycling: Any
            ) -> Any:
                source, target = storage_map[node.inputs[0]], storage_map[node.outputs[0]]

                def thunk() -> None:
                    assert target[0] is None
                    target[0] = 2 * source[0]
                    compute_map[node.outputs[0]][0] = True

                return thunk

        x = T.dvector("x")
        f = symcomp.function([x], Twice()(x) + 1.0)
        assert f([1.0, 2.0]).tolist() == [3.0, 5.0]
        assert f([0.0]).tolist() == [1.0]


class TestAsOp:
    def test_several_outputs(self) -> None:
        @symcomp.as_op([T.dvector], [T.dscalar, T.lscalar])
        def largest(x: Any) -> Any:
            return x.max(), int(x.argmax())

        x = T.dvector("x")
        value, place = symcomp.function([x], largest(x))([1.0, 3.0, 2.0])
        assert (value, place) == (3.0, 1)
        assert place.dtype == np.int64

    def test_a_single_type_and_numbers_for_variables(self) -> None:
        double = symcomp.as_op(T.dscalar, T.dscalar)(lambda x: 2 * x)
        assert double(2.5, name="y").eval() == 5.0

    def test_inputs_that_come_back_are_copied(self) -> None:
        same = symcomp.as_op(T.dvector, T.dvector)(lambda x: x)
        x = T.dvector("x")
        given = np.ones(2)
        found = symcomp.function([x], same(x))(given)
        assert not np.shares_memory(found, given)

    def test_bad_arguments(self) -> None:
        double = symcomp.as_op(T.dvector, T.dvector)(lambda x: 2 * x)
        with pytest.raises(TypeError, match="argument 0 .* float64 matrix, not float64 vector"):
            double(T.dmatrix("x"))
        with pytest.raises(TypeError, match="takes 1 arguments, got 0"):
            double()
        with pytest.raises(TypeError, match="itypes has 'd'"):
            symcomp.as_op(["d"], [T.dvector])
        with pytest.raises(ValueError, match="otypes is empty"):
            symcomp.as_op([T.dvector], [])

    def test_bad_results(self) -> None:
        x = T.fvector("x")
        f = symcomp.function(
            [x], symcomp.as_op(T.fvector, T.fvector)(lambda x: x / 3.0 + 1e-9 * np.ones(2))(x)
        )
        with pytest.raises(TypeError, match="float32.*float64"):
            f(np.ones(2, "float32"))


@symcomp.as_op([T.dvector], [T.dvector])
def reversed_values(values: np.ndarray) -> np.ndarray:
    return values[::-1].copy()


def test_an_op_made_by_the_decorator_is_pickled_by_its_name() -> None:
    x = T.dvector("x")
    assert pickle.loads(pickle.dumps(reversed_values)) is reversed_values
    y = pickle.loads(pickle.dumps(reversed_values(x) + 1))
    assert y.owner.inputs[0].owner.op is reversed_values
    f = pickle.loads(pickle.dumps(symcomp.function([x], reversed_values(x))))
    assert f([1.0, 2.0]).tolist() == [2.0, 1.0]
    with pytest.raises((pickle.PicklingError, AttributeError)):
        pickle.dumps(symcomp.as_op(T.dvector, T.dvector)(lambda v: v))
