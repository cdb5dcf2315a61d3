"""Optimizers of programs: local ones, global ones, patterns, databases and queries."""

import numpy as np
import pytest

import symcomp.rewrite.registry as registry
from symcomp.errors import RewriteWarning


@pytest.fixture(autouse=True)
def nothing_stays():
    added = list(registry._added)
    yield
    registry._added[:] = added
    registry._extended.clear()


@pytest.fixture
def seven(theano):
    """Define an op of the program: seven times its argument."""
    T = theano.tensor

    class Seven(theano.Op):
        __props__ = ()

        def make_node(self, x):
            x = T.as_tensor_variable(x)
            return theano.Apply(self, [x], [x.type()])

        def perform(self, node, inputs, output_storage):
            output_storage[0][0] = inputs[0] * 7

    return Seven()


def test_registered_local_optimizer_runs(theano, seven):
    from theano.gof import local_optimizer
    from theano.tensor.opt import register_canonicalize

    seen = []

    @register_canonicalize
    @local_optimizer([seven])
    def local_nine(node):
        seen.append((node.op, [i for _, i in node.outputs[0].clients], node.fgraph.outputs))
        return [node.inputs[0] * 9]

    x = theano.tensor.dvector("x")
    f = theano.function([x], seven(x) - 1)
    np.testing.assert_array_equal(f([1, 2]), [8, 17])
    assert seen[0][0] == seven and seen[0][1] == [0] and len(seen[0][2]) == 1
    assert not any(node.op == seven for node in f.maker.fgraph.toposort())
    without = theano.compile.get_default_mode().excluding("local_nine")
    np.testing.assert_array_equal(theano.function([x], seven(x), mode=without)([1, 2]), [7, 14])
    fast_compile = theano.function([x], seven(x), mode="FAST_COMPILE")
    np.testing.assert_array_equal(fast_compile([1, 2]), [7, 14])


def test_tags_choose_local_optimizers(theano, seven):
    from theano.tensor.opt import register_specialize

    @register_specialize("fast_compile", name="named")
    @theano.gof.local_optimizer([type(seven)])
    def anything(node):
        return {node.outputs[0]: node.inputs[0]}

    x = theano.tensor.dvector("x")
    assert theano.function([x], seven(x), mode="FAST_COMPILE")([2.0]) == [2.0]
    without = theano.Mode(optimizer="fast_run").excluding("named")
    assert theano.function([x], seven(x), mode=without)([2.0]) == [14.0]


def test_functions_are_ops_to_optimizers(theano):
    T = theano.tensor

    @theano.tensor.opt.register_canonicalize
    @theano.gof.local_optimizer([T.sinh])
    def local_sinh(node):
        scalar_op = node.op.scalar_op
        assert node.op == T.sinh and isinstance(scalar_op, theano.scalar.Sinh)
        assert scalar_op == theano.scalar.sinh and not isinstance(scalar_op, theano.scalar.Log)
        return [T.cosh(node.inputs[0])]

    x = T.dscalar("x")
    assert float(theano.function([x], T.sinh(x))(0.0)) == 1.0
    assert T.exp(x).owner.op == T.exp and T.exp(x).owner.op != T.log
    assert {T.exp: 1}[T.exp(x).owner.op] == 1
    assert T.exp.make_node(x).op == T.exp


def test_local_optimizer_that_changes_the_dtype_is_refused(theano, seven):
    @theano.tensor.opt.register_canonicalize
    @theano.gof.local_optimizer([seven])
    def local_wrong(node):
        return [theano.tensor.cast(node.inputs[0], "float32")]

    x = theano.tensor.dvector("x")
    with pytest.warns(RewriteWarning, match="local_wrong.*change the dtype"):
        f = theano.function([x], seven(x))
    assert f([1.0]) == [7.0]


def test_global_optimizer_at_a_position(theano):
    T, gof = theano.tensor, theano.gof

    class LogIsTwice(gof.Optimizer):
        def add_requirements(self, fgraph):
            fgraph.attach_feature(gof.toolbox.ReplaceValidate())

        def apply(self, fgraph):
            for node in fgraph.toposort():
                if node.op == T.log:
                    fgraph.replace_validate(node.outputs[0], node.inputs[0] * 2, reason="test")

    theano.compile.optdb.register("log_is_twice", LogIsTwice(), 0.5, "fast_run")
    x = T.dvector("x")
    np.testing.assert_array_equal(theano.function([x], T.log(x) + 2)([1, 2]), [4, 6])
    query = gof.Query(["fast_run"], exclude=["log_is_twice"])
    plain = theano.function([x], T.log(x) + 2, mode=theano.Mode("py", query))
    np.testing.assert_allclose(plain([1, 2]), np.log([1, 2]) + 2)
    graph = gof.FunctionGraph([x], [T.log(x)])
    LogIsTwice().optimize(graph)
    assert [str(node.op) for node in graph.toposort()] == ["DimShuffle{x}", "mul"]


def test_mode_of_an_optimizer(theano, seven):
    x = theano.tensor.dvector("x")
    remove = theano.gof.TopoOptimizer(theano.gof.OpRemove(seven))
    mode = theano.Mode(linker="py", optimizer=remove)
    assert isinstance(mode, theano.Mode)
    f = theano.function([x], seven(x) + 0, mode=mode)
    assert f([2.0]) == [2.0]
    assert [str(node.op) for node in f.maker.fgraph.toposort()] == ["DimShuffle{x}", "add"]
    with pytest.raises(TypeError, match="no tags"):
        mode.including("fast_run")


def test_pattern(theano):
    T = theano.tensor
    from theano.gof.opt import EquilibriumOptimizer, FunctionGraph, PatternSub, out2in

    x, y = T.dvectors("x", "y")
    pattern = PatternSub(
        (T.add, (T.mul, "a", "b"), {"pattern": "a", "constraint": lambda v: v.ndim == 1}),
        (T.mul, "a", (T.add, "b", 1.0)),
    )
    graph = FunctionGraph([x, y], [x * y + x])
    out2in(pattern).optimize(graph)
    assert str(graph.outputs[0].owner.op) == "mul"
    values = [np.array([2.0, 3.0]), np.array([5.0, 7.0])]
    found = theano.function(graph.inputs, graph.outputs[0])(*values)
    np.testing.assert_array_equal(found, [12, 24])
    other = FunctionGraph([x, y], [x * y + y])
    EquilibriumOptimizer([pattern]).optimize(other)
    assert [str(node.op) for node in other.toposort()] == ["mul", "add"]
    shared_part = x * y
    used_twice = FunctionGraph([x, y], [shared_part + x, shared_part])
    out2in(pattern).optimize(used_twice)
    assert str(used_twice.outputs[0].owner.op) == "add"


def test_own_databases(theano, seven):
    from theano.gof import EquilibriumDB, Query, SequenceDB

    remove = theano.gof.OpRemove(seven)
    local = EquilibriumDB()
    local.register("remove", remove, "mine")
    with pytest.raises(ValueError, match="remove"):
        local.register("remove", remove)
    sequence = SequenceDB()
    sequence.register("local", local, 1, "mine")
    x = theano.tensor.dvector("x")
    for query, nodes in ((Query(["mine"]), 0), (Query(["other"]), 1), ("+mine", 0)):
        graph = theano.gof.FunctionGraph([x], [seven(x)])
        sequence.query(query).optimize(graph)
        assert len(graph.apply_nodes) == nodes


def test_rewriting_of_symcomp_by_query(theano):
    x = theano.tensor.dvector("x")
    graph = theano.gof.FunctionGraph([x], [theano.tensor.log(theano.tensor.exp(x))])
    theano.compile.optdb.query("+fast_run", "-fusion").optimize(graph)
    assert graph.outputs == graph.inputs
    assert str(theano.gof.FunctionGraph([x], [x + x])) == "[add(x, x)]"


def test_unknown_feature_is_refused(theano):
    x = theano.tensor.dvector("x")
    graph = theano.gof.FunctionGraph([x], [x + 1])
    for base in (object, theano.gof.toolbox.Feature, theano.gof.toolbox.ReplaceValidate):
        with pytest.raises(NotImplementedError, match="attach_feature: Mine"):
            graph.attach_feature(type("Mine", (base,), {})())
    with pytest.raises(AttributeError):
        x.clients  # noqa: B018


def test_local_optimizer_in_the_step_of_a_loop(theano, seven):
    @theano.tensor.opt.register_canonicalize
    @theano.gof.local_optimizer([seven])
    def local_ten(node):
        return [node.inputs[0] * 10]

    x = theano.tensor.dvector("x")
    rows, _ = theano.scan(lambda row: seven(row) + 1, sequences=[x])
    np.testing.assert_array_equal(theano.function([x], rows)([1, 2]), [11, 21])
    last, _ = theano.scan(lambda h: seven(h) - 1, outputs_info=[x], n_steps=2)
    np.testing.assert_array_equal(theano.function([x], last[-1])([1, 2]), [89, 189])
