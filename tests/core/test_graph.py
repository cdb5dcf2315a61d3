"""The graph: types, source lines, traversal, cloning, FunctionGraph, constants, configuration."""

import copy
import pickle
import sys

import numpy as np
import pytest

import symcomp
import symcomp.tensor as T
from symcomp.config import Config, ConfigError
from symcomp.core.evaluate import evaluate
from symcomp.core.graph import FunctionGraph
from symcomp.core.special_types import DisconnectedType, NullType, generic, none_type
from symcomp.core.tensor import TensorType
from symcomp.core.walk import (
    ancestors,
    clients_of,
    depends_on,
    graph_inputs,
    is_same_graph,
    toposort,
)
from symcomp.errors import (
    DTypeError,
    GraphError,
    MissingInputError,
    NotScalarConstantError,
    ShapeError,
)
from symcomp.ops.elementwise.elemwise import Elemwise


def test_source_lines_survive_clones():
    x = T.dvector("x")
    y = T.exp(x)
    assert (
        y.source.file.endswith("test_graph.py")
        and y.source.function == "test_source_lines_survive_clones"
    )
    twin = symcomp.clone_replace(y, {x: T.dvector("z")})
    assert twin.source == y.source and twin is not y
    graph = FunctionGraph([x], [y])
    assert graph.outputs[0].source == y.source and graph.inputs[0].source == x.source
    assert str(y.source).startswith(y.source.file)


def test_tensor_type():
    a = TensorType("float64", (None, 3))
    assert a == TensorType(np.float64, [None, 3]) and hash(a) == hash(
        TensorType("float64", (None, 3))
    )
    assert a.is_super(TensorType("float64", (2, 3))) and not a.is_super(
        TensorType("float64", (2, 4))
    )
    assert not a.is_super(TensorType("float32", (2, 3))) and not a.is_super(none_type)
    assert a.clone(dtype="int8").dtype == "int8" and a.clone(broadcastable=(True, False)).shape == (
        1,
        None,
    )
    assert str(TensorType("int8", ())) == "int8 scalar" and str(a) == "float64 tensor (?, 3)"
    assert a.numpy_dtype == np.float64 and a.broadcastable == (False, False)
    assert a.values_eq(np.ones((1, 3)), np.ones((1, 3))) and not a.values_eq(np.ones(3), np.ones(2))
    nan = np.full((1, 3), np.nan)
    assert a.values_eq(nan, nan) and a.values_eq_approx(nan, nan)
    assert a.values_eq_approx(np.ones((1, 3)), np.ones((1, 3)) + 1e-12)
    assert not a.values_eq_approx(np.ones((1, 3)), np.ones((1, 3)) + 1e-3)
    with pytest.raises(ShapeError, match="neither None nor a length"):
        TensorType("float64", (-1,))
    with pytest.raises(DTypeError, match="'object' is not supported"):
        TensorType(object, ())


def test_special_types():
    assert generic.filter("anything") == "anything" and none_type.filter(None) is None
    with pytest.raises(TypeError, match="expected None"):
        none_type.filter(3)
    for kind in (DisconnectedType(), NullType("why")):
        with pytest.raises(TypeError, match="has no value"):
            kind.filter(1.0)
    assert NullType("a") != NullType("b")


def test_names_and_tags():
    x = T.dvector("x")
    x.tag.anything = 3
    assert x.clone().tag.anything == 3 and x.clone("y").name == "y"
    with pytest.raises(TypeError, match="name of a variable"):
        T.dvector(3)
    assert str(x) == "x" and str(T.dvector()) == "<float64 vector>" and str(T.exp(x)) == "exp"
    assert x.get_parents() == [] and T.exp(x).owner.get_parents() == [x]
    node = T.exp(x).owner
    assert node.out is node.outputs[0] and (node.nin, node.nout) == (1, 1) and str(node) == "exp(x)"
    assert node.clone().outputs[0] is not node.outputs[0]
    assert T.constant(3).value == 3


def test_traversal():
    x, y = T.dscalars("x", "y")
    z = (x + y) * x
    assert [str(n.op) for n in toposort([z])] == ["add", "mul"]
    assert ancestors([z])[:2] == [x, y] and graph_inputs([z]) == [x, y]
    assert depends_on([z], [y]) and not depends_on([x], [y])
    assert len(clients_of([z])[x]) == 2
    assert graph_inputs([z], [z.owner.inputs[0]]) == [z.owner.inputs[0], x]


def test_same_graph():
    x, y = T.dscalars("x", "y")
    assert is_same_graph(x + 1.0, x + 1.0) and not is_same_graph(x + 1.0, x + 2.0)
    assert not is_same_graph(x + 1.0, y + 1.0) and is_same_graph(x + 1.0, y + 1.0, givens={x: y})


def test_clone_replace():
    x, y = T.dscalars("x", "y")
    z = x * 2 + y
    assert symcomp.clone([z], {y: x})[0].eval({x: 1.0}) == 3.0
    assert symcomp.clone({"a": z}, [(x, y)])["a"].eval({y: 1.0}) == 3.0
    assert symcomp.clone((x,), share_inputs=False)[0] is not x
    swapped = symcomp.clone(z, {x: y, y: x})
    assert swapped.eval({x: 10.0, y: 1.0}) == 12.0
    with pytest.raises(TypeError, match="does not fit"):
        symcomp.clone(z, {x: T.fscalar()})
    assert symcomp.clone(x + y, {x: T.fscalar(), y: T.fscalar()}, strict=False).dtype == "float32"
    with pytest.raises(TypeError, match="not a pair of variables"):
        symcomp.clone(z, {x: 3})


def test_function_graph():
    x, y = T.dscalars("x", "y")
    z = T.exp(x) + T.log(y)
    graph = FunctionGraph([x, y], [z])
    inner_x, inner_y = graph.inputs
    assert z.owner not in graph.nodes and len(graph.apply_nodes) == 3
    exp = next(n for n in graph.nodes if str(n.op) == "exp")
    graph.replace(exp.outputs[0], T.sin(inner_x))
    assert sorted(str(n.op) for n in graph.nodes) == ["add", "log", "sin"]
    graph.replace_all([(graph.outputs[0], inner_y)])
    assert (
        not graph.nodes
        and graph.outputs == [inner_y]
        and set(graph.variables) == {inner_x, inner_y}
    )
    with pytest.raises(GraphError, match="cannot stand for"):
        graph.change_input("output", 0, T.constant(np.float32(1)))
    with pytest.raises(MissingInputError, match="needs y of type float64 scalar, made at"):
        FunctionGraph([x], [z])
    graph = FunctionGraph([x], [T.exp(x) * 2.0])
    with pytest.raises(GraphError, match="would make a cycle"):
        graph.replace(graph.outputs[0], graph.outputs[0] + 1.0)
    assert len(graph.clone().nodes) == 2 and "2 nodes" in str(graph)
    assert evaluate(graph.outputs, {graph.inputs[0]: np.array(0.0)}) == [2.0]


def test_pickling():
    x = T.dvector("x")
    graph = pickle.loads(pickle.dumps(FunctionGraph([x], [T.exp(x).sum() + 1.0])))
    assert float(evaluate(graph.outputs, {graph.inputs[0]: np.zeros(2)})[0]) == 3.0
    assert copy.deepcopy(T.exp(x)).owner.op == T.exp(x).owner.op
    op = pickle.loads(pickle.dumps(T.exp.op))
    assert op == T.exp.op and isinstance(op, Elemwise) and hash(op) == hash(T.exp.op)


def test_constants():
    c = T.constant([[1, 2]], name="c", ndim=3)
    assert c.type == TensorType("int64", (1, 1, 2)) and str(c) == "c"
    assert T.constant(1.0).signature() == T.constant(1.0).signature() != T.constant(2.0).signature()
    with pytest.raises(ValueError, match="read-only"):
        c.data[...] = 0
    with pytest.raises(DTypeError, match="is symbolic"):
        T.constant(T.dscalar())
    with pytest.raises(DTypeError, match="not numeric"):
        T.constant("text")
    with pytest.raises(ShapeError, match="more than 1 axes"):
        T.constant([[1]], ndim=1)
    with pytest.raises(ShapeError, match="is no array"):
        T.constant([[1], [2, 3]])
    assert (
        T.get_scalar_constant_value(T.constant(3).dimshuffle("x")) == 3
        and T.get_scalar_constant_value(2) == 2
    )
    for bad in (T.dscalar(), T.constant([1, 2]), [1, 2]):
        with pytest.raises(NotScalarConstantError):
            T.get_scalar_constant_value(bad)


def test_as_tensor_variable():
    x, y = T.dscalars("x", "y")
    assert (
        T.as_tensor_variable(x) is x and T.as_tensor_variable(x.owner or T.exp(x).owner).ndim == 0
    )
    assert T.as_tensor_variable([[x, 1], [y, 2]]).eval({x: 5.0, y: 6.0}).tolist() == [
        [5, 1],
        [6, 2],
    ]
    assert T.as_tensor_variable(T.drow("r"), ndim=1).ndim == 1
    assert T.as_tensor_variable([x, y], name="n").name == "n"
    with pytest.raises(DTypeError, match="which is no tensor"):
        T.as_tensor_variable(generic("g"))
    with pytest.raises(ShapeError, match="cannot be seen with 1 axes"):
        T.as_tensor_variable(T.dmatrix(), ndim=1)
    with pytest.raises(ShapeError, match="stack: element 1 has 1 axes"):
        T.as_tensor_variable([x, T.dvector()])


def test_numpy_protocols():
    x, y = T.dvectors("x", "y")
    values = {x: [1.0, 4.0], y: [2.0, 3.0]}
    assert np.exp(x).owner.op == T.exp(x).owner.op
    assert np.concatenate([x, y]).eval(values).tolist() == [1, 4, 2, 3]
    assert (np.array([1.0, 2.0]) * x).eval({x: [1.0, 4.0]}).tolist() == [1, 8]
    assert (np.float64(2.0) ** x).eval({x: [1.0, 4.0]}).tolist() == [2, 16]
    assert (
        np.maximum(x, y).eval(values).tolist() == [2, 4] and np.sum(x).eval({x: [1.0, 4.0]}) == 5.0
    )
    assert np.where(x > 2, x, 0).eval({x: [1.0, 4.0]}).tolist() == [0, 4]
    assert np.ravel(x).ndim == 1 and np.stack([x, y], axis=1).ndim == 2
    with pytest.raises(TypeError):
        np.linalg.qr(x)
    with pytest.raises(TypeError):
        np.add.reduce(x)
    with pytest.raises(TypeError, match="use the function of symcomp.tensor"):
        np.asarray(x)
    with pytest.raises(TypeError):
        x + "text"
    with pytest.raises(TypeError):
        x + None


METHODS = (
    "T shape size ndim dtype broadcastable real imag transpose any all reshape dimshuffle "
    "flatten ravel diagonal transfer astype take copy dot sum prod norm mean var std min max "
    "argmin argmax nonzero nonzero_values sort argsort clip conj conjugate repeat round trace "
    "zeros_like ones_like cumsum cumprod searchsorted ptp swapaxes fill choose squeeze "
    "compress get_scalar_constant_value eval exp log sqrt tanh sin cos tan ceil floor sinh "
    "cosh arccos arcsin arctan mT set inc type name owner tag clone get_parents "
).split()


@pytest.mark.parametrize("name", METHODS)
def test_methods_exist(name):
    assert hasattr(T.dmatrix("x"), name)


def test_methods_without_a_function():
    x = T.dmatrix("x")
    m = np.arange(4.0).reshape(2, 2)
    assert x.copy("y").name == "y" and (+x) is x and x.transfer("cpu") is x
    assert x[0, :1].item().eval({x: m}) == 0.0
    assert x.conjugate().eval({x: m}).tolist() == m.tolist()
    assert T.constant(2).get_scalar_constant_value() == 2
    with pytest.raises(TypeError, match="set_subtensor"):
        x[0] = 1.0
    with pytest.raises(ValueError, match="a device is"):
        x.transfer("gpu0")
    assert (x == x) is True and x != T.dmatrix("x") and len({x, x}) == 1


def test_shared_variables():
    s = symcomp.shared(np.zeros(3, np.float32), "s")
    assert s.type == TensorType("float32", (None,)) and isinstance(s, symcomp.SharedVariable)
    value = np.ones(3, np.float32)
    s.set_value(value)
    value[0] = 9
    assert s.get_value().tolist() == [1, 1, 1]
    s.set_value(value, borrow=True)
    assert s.get_value(borrow=True) is value and s.get_value() is not value
    with pytest.raises(TypeError, match="lose precision"):
        s.set_value(np.ones(3))
    with pytest.raises(ShapeError):
        s.set_value(np.ones((1, 3), np.float32))
    assert s.get_value(borrow=True) is value
    s.zero()
    assert value[0] == 9 and not s.get_value().any()
    s.zero(borrow=True)
    twin = s.clone()
    twin.set_value(value)
    assert s.get_value()[0] == 9 and twin.name == "s"
    with pytest.raises(AttributeError, match="get_value"):
        assert s.value
    with pytest.raises(AttributeError, match="get_value"):
        s.value = 3
    loose = symcomp.shared(np.zeros(1, np.float32), allow_downcast=True)
    loose.set_value(np.ones(1))
    assert symcomp.shared(np.zeros((1, 2)), broadcastable=(True, False)).broadcastable == (
        True,
        False,
    )
    assert symcomp.shared(np.zeros((2, 2)), shape=(None, 2)).type.shape == (None, 2)
    assert symcomp.shared(3).dtype == "int64" and symcomp.shared(0.5).dtype == "float64"
    assert symcomp.shared({"any": "object"}).get_value() == {"any": "object"}
    with pytest.raises(TypeError, match="is symbolic"):
        symcomp.shared(T.dscalar())
    with pytest.raises(ValueError, match="a device is"):
        symcomp.shared(1.0, target="gpu")
    with pytest.raises(TypeError, match="nothing can hold"):
        symcomp.shared("text", broadcastable=())
    with pytest.raises(TypeError, match="must be a variable"):
        s.default_update = 3


def test_constructors_that_do_not_handle_a_value_raise_type_errors():
    class Angle(float):
        pass

    def constructor(value, name=None, **options):
        if not isinstance(value, Angle):
            raise TypeError("no angle")
        return symcomp.shared(value % 360.0, name)

    constructors = sys.modules["symcomp.compile.shared"]._constructors
    before = list(constructors)
    try:
        assert symcomp.shared_constructor(constructor) is constructor
        assert symcomp.shared(Angle(400.0)).get_value() == 40.0
        assert symcomp.shared(np.zeros(2)).get_value().shape == (2,)
        with pytest.raises(TypeError, match="nothing can hold"):
            symcomp.shared(1.0, no_such_option=True)
    finally:
        constructors[:] = before


def test_configuration(tmp_path):
    file = tmp_path / "config.toml"
    file.write_text('floatX = "float32"\nallow_gc = false\n')
    environ = {"SYMCOMPRC": str(file), "SYMCOMP_FLAGS": "floatX=float16, optimizer=None"}
    c = Config(environ)
    assert (c.floatX, c.allow_gc, c.optimizer, c.linker) == ("float16", False, "None", "cvm")
    assert c.origin("floatX") == "SYMCOMP_FLAGS" and c.origin("allow_gc") == str(file)
    assert c.origin("linker") == "default" and "floatX = 'float16'" in str(c) and "floatX" in dir(c)
    home = tmp_path / "xdg"
    (home / "symcomp").mkdir(parents=True)
    (home / "symcomp" / "config.toml").write_text("profile = true\n")
    assert Config({"XDG_CONFIG_HOME": str(home)}).profile is True
    c.floatX = "float64"
    assert c.origin("floatX") == "code"
    with c.change_flags(floatX="float32", profile="yes"):
        assert c.floatX == "float32" and c.profile is True
    assert c.floatX == "float64" and c.profile is False

    @c.change_flags(floatX="float16")
    def inside():
        return c.floatX

    assert inside() == inside() == "float16"
    with (
        pytest.raises(ConfigError, match="must be one of float64, float32, float16"),
        c.change_flags(profile=True, floatX="int"),
    ):
        pass
    assert c.profile is False
    for flags, message in (
        ("floatx=1", "no option 'floatx'"),
        ("floatX", "not of the form"),
        ("allow_gc=maybe", "must be a bool"),
        ("cflags=-O2 'x", "cflags=.*from SYMCOMP_FLAGS.*as a shell does: No closing quotation"),
        ("cc=gcc\0", "cc='gcc.x00'.*it has a NUL character"),
    ):
        with pytest.raises(ConfigError, match=message):
            Config({"SYMCOMP_FLAGS": flags})
    with pytest.raises(ConfigError, match="is no file"):
        Config({"SYMCOMPRC": str(tmp_path / "nothing")})
    file.write_text("floatX = ")
    with pytest.raises(ConfigError, match="not valid TOML"):
        Config({"SYMCOMPRC": str(file)})
    with pytest.raises(AttributeError, match="no option 'speed'"):
        assert c.speed


@pytest.mark.parametrize("name", ["openmp_threads", "blas_threads", "compiledir_size"])
def test_numbers_have_bounds(name):
    c = Config({})
    setattr(c, name, 0)
    for value, allowed in ((-1, "at least 0"), (10**20, "at most [0-9]+")):
        with pytest.raises(ConfigError, match=rf"{name}={value} \(from code\): must be {allowed}"):
            setattr(c, name, value)
        with pytest.raises(ConfigError, match=rf"{name}='{value}' .*: must be {allowed}"):
            Config({"SYMCOMP_FLAGS": f"{name}={value}"})
    assert getattr(c, name) == 0


def test_warn_float64():
    with (
        symcomp.config.change_flags(floatX="float32", warn_float64="raise"),
        pytest.raises(DTypeError, match="float64 tensor is made"),
    ):
        T.tensor(dtype="float64", shape=())
    with (
        symcomp.config.change_flags(floatX="float32", warn_float64="warn"),
        pytest.warns(UserWarning, match="float64"),
    ):
        T.tensor(dtype="float64", shape=())


@pytest.mark.parametrize("make", [T.constant, T.as_tensor_variable, symcomp.shared])
def test_warn_float64_of_values(make):
    with symcomp.config.change_flags(floatX="float32", warn_float64="raise"):
        with pytest.raises(DTypeError, match="float64 tensor is made"):
            make(np.ones(2))
        assert make(np.ones(2, "float32")).dtype == "float32"
        assert T.constant(1.5).dtype == "float32"
    with symcomp.config.change_flags(floatX="float64", warn_float64="raise"):
        assert make(np.ones(2)).dtype == "float64"


def test_register_mode():
    from symcomp.compile import get_default_mode, get_mode, register_mode

    register_mode("test_mode_of_mine", symcomp.Mode("vm_nogc"))
    assert (
        get_mode("Test_Mode_Of_Mine").linker == "vm_nogc" and get_default_mode() == symcomp.Mode()
    )
    with pytest.raises(ValueError, match="there is a mode"):
        register_mode("fast_run", symcomp.Mode())
    mode = symcomp.Mode().including("a").excluding("b")
    assert hash(mode) == hash(
        symcomp.Mode().including("a").excluding("b")
    ) and "including=('a',)" in repr(mode)


def test_order_follows_changes():
    """The order is kept until the graph changes; the list that is returned is the caller's."""
    x = T.dvector("x")
    graph = FunctionGraph([x], [T.exp(T.sin(x))])
    graph.toposort().clear()
    assert [str(node.op) for node in graph.toposort()] == ["sin", "exp"]
    (inside,) = graph.inputs
    graph.replace(graph.outputs[0].owner.inputs[0], T.cos(T.tanh(inside)))
    assert [str(node.op) for node in graph.toposort()] == ["tanh", "cos", "exp"]
    graph.change_input("output", 0, inside)
    assert graph.toposort() == []
