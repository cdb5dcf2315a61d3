"""The modules and names of Theano, and the behaviour of missing ones."""

import abc
import copy
import importlib
import inspect
import sys
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import symcomp
import symcomp.tensor as T
from symcomp.compat import install_as_theano
from symcomp.compat.missing import Missing
from symcomp.compat.modules import build, module_names, public_names, resolve
from symcomp.compat.names import OTHERS, SAME, TENSOR
from symcomp.compat.sources import OWN, SOURCES

#: The names that programs use most, by a count over public repositories: all exist.
MOST_USED = """
config.floatX function shared tensor tensor.matrix tensor.dot tensor.sum tensor.grad tensor.log
tensor.exp tensor.sqrt tensor.nnet.sigmoid tensor.as_tensor_variable tensor.cast tensor.mean
tensor.concatenate tensor.tanh config scan tensor.vector tensor.switch tensor.sqr tensor.scalar
tensor.arange tensor.lscalar tensor.nnet.softmax tensor.maximum tensor.zeros_like tensor.clip
tensor.ivector tensor.zeros tensor.set_subtensor tensor.argmax tensor.alloc tensor.tensor4
tensor.constant tensor.eq tensor.stack tensor.tensor3 tensor.neq tensor.nnet.softplus tensor.reshape
gof.Apply tensor.ones tensor.TensorType tensor.max tensor.iscalar tensor.abs_
tensor.nnet.categorical_crossentropy tensor.ones_like tensor.TensorVariable gof tensor.flatten
tensor.minimum tensor.nnet.binary_crossentropy config.compute_test_value grad tensor.gt clone
tensor.ge ifelse.ifelse tensor.shape_padright tensor.square tensor.dmatrix tensor.shape_padleft
tensor.lvector tensor.add tensor.sin tensor.dvector tensor.lt tensor.lmatrix config.mode tensor.prod
config.device tensor.transpose Mode gof.op.get_debug_values tensor.eye compile.SharedVariable
tensor.cos tests.unittest_tools _asarray tensor.repeat tensor.sgn tensor.nnet.relu
tensor.unbroadcast tensor.imatrix tensor.addbroadcast Op tensor.Variable Variable tensor.dscalar
tensor.inc_subtensor tensor.round tensor.fmatrix tensor.as_tensor tensor.tensor3s tensor.Rop
tensor.all Apply gradient.DisconnectedType compile.mode.get_default_mode tensor.tile
tensor.TensorConstant tensor.le tensor.squeeze tensor.diag gradient.disconnected_grad tensor.floor
gof.Op tensor.batched_dot tensor.log1p tensor.pow tensor.isnan gof.Variable
tensor.sharedvar.SharedVariable tensor.isinf tensor.or_ tensor.Elemwise tensor.arctan2
compat.OrderedDict compile.mode.get_mode gof.graph.inputs tensor.any tensor.min
tensor.patternbroadcast tensor.tensordot tensor.mod tensor.mul tensor.erf tensor.and_
tensor.nlinalg.det tensor.extra_ops.repeat tensor.inv map gradient.grad_not_implemented tensor.ceil
tensor.nnet.hard_sigmoid tensor.sharedvar.TensorSharedVariable scalar.upcast scan_module.until
compile.ops.as_op config.warn.sum_div_dimshuffle_bug config.allow_gc
tensor.extra_ops.to_one_hot tensor.argsort tensor.sort tensor.std tensor.var tensor.Constant
tensor.matrices In gof.MissingInputError tensor.get_scalar_constant_value
tensor.NotScalarConstantError tensor.slinalg.solve_lower_triangular tensor.outer compile.view_op
compile.ViewOp tensor.shape_padaxis gradient.grad_clip gof.graph.is_same_graph
tensor.vertical_stack tensor.horizontal_stack tensor.extra_ops.cumsum gradient.verify_grad
tensor.opt.Assert configparser.change_flags gof.op.PureOp gof.graph.io_toposort Constant
sandbox.rng_mrg.MRG_RandomStreams tensor.nnet.conv2d tensor.shared_randomstreams.RandomStreams
tensor.nnet.conv.conv2d tensor.signal.pool.pool_2d tensor.signal.pool.pool_3d tensor.nnet.conv3d
tensor.nnet.abstract_conv.AbstractConv2d_gradInputs tensor.nnet.bn.batch_normalization
tensor.nnet.bn.batch_normalization_train sandbox.softsign.softsign
foldl foldr tensor.DimShuffle tensor.join tensor.fft.rfft tensor.fft.irfft
""".split()


def lookup(dotted: str) -> Any:
    value: Any = sys.modules["theano"]
    for word in dotted.split("."):
        value = getattr(value, word)
    return value


@pytest.mark.parametrize("dotted", MOST_USED)
def test_what_programs_use_most_is_there(dotted: str) -> None:
    assert not isinstance(lookup(dotted), Missing)


def test_every_module_can_be_imported() -> None:
    for name in module_names():
        module = importlib.import_module(name)
        assert isinstance(module, ModuleType)
        assert module.__name__ == name


def test_every_name_of_the_tables_can_be_imported() -> None:
    for name, module in build().items():
        for word in public_names(name):
            assert hasattr(module, word)


def test_tables_name_modules_that_there_are() -> None:
    known = set(module_names())
    assert {*OWN, *SOURCES, *SAME, *SAME.values(), *TENSOR, *OTHERS} <= known


def test_star_gives_the_names_of_theano_and_no_more() -> None:
    space: dict[str, Any] = {}
    exec("from theano.tensor import *", space)
    assert space["dmatrix"] is T.dmatrix
    assert space["sum"] is T.sum
    assert "einsum" not in space  # newer than Theano: it would hide NumPy's
    assert "_asarray" not in space


def test_an_unknown_name_is_no_name() -> None:
    with pytest.raises(AttributeError, match="theano.tensor.*dotty"):
        lookup("tensor.dotty")
    with pytest.raises(ImportError):
        importlib.import_module("theano.tensor.dotty")


class TestMissing:
    def test_calling_names_it(self) -> None:
        with pytest.raises(NotImplementedError, match=r"theano\.compile\.FunctionMaker"):
            lookup("compile.FunctionMaker")(3)

    def test_in_an_open_module_every_name_is_missing(self) -> None:
        with pytest.raises(NotImplementedError, match=r"theano\.gpuarray\.dnn\.RNNBlock"):
            lookup("gpuarray.dnn.RNNBlock")(1)

    def test_attributes_items_truth_and_iteration_are_uses(self) -> None:
        missing = Missing("theano.x")
        for use in (
            lambda: missing.y,
            lambda: missing[0],
            lambda: bool(missing),
            lambda: list(missing),
        ):
            with pytest.raises(NotImplementedError, match=r"theano\.x"):
                use()

    def test_nothing_is_an_instance(self) -> None:
        assert not isinstance(3, Missing("theano.x"))  # type: ignore[arg-type]
        assert not issubclass(int, Missing("theano.x"))  # type: ignore[arg-type]

    def test_a_class_can_be_derived_but_not_used(self) -> None:
        missing: Any = lookup("gof.COp")

        class Own(missing):
            """As programs define ops with C code beside others."""

        with pytest.raises(NotImplementedError, match=r"theano\.gof\.COp"):
            Own("a", "b")

    def test_it_can_be_copied_and_printed(self) -> None:
        assert repr(copy.copy(Missing("theano.x"))) == "<theano.x>"


class TestInstalling:
    def test_again_does_nothing(self) -> None:
        before = sys.modules["theano"]
        install_as_theano()
        assert sys.modules["theano"] is before

    def test_another_theano_is_in_the_way(self, monkeypatch: pytest.MonkeyPatch) -> None:
        other = ModuleType("theano")
        other.__file__ = "/elsewhere/theano/__init__.py"
        with monkeypatch.context() as patch:
            patch.setitem(sys.modules, "theano", other)
            with pytest.raises(RuntimeError, match="/elsewhere"):
                install_as_theano()

    def test_options_that_differ_in_theano(self) -> None:
        assert symcomp.config.cast_policy == "theano"
        assert symcomp.config.nan_guard == "off"
        assert symcomp.config.on_unused_input == "warn"

    def test_a_function_hides_the_module_of_its_name(self) -> None:
        assert inspect.unwrap(lookup("compile.function")) is inspect.unwrap(symcomp.function)
        hidden = sys.modules["theano.compile.function"].function
        assert hidden is lookup("compile.function")

    def test_submodules_are_attributes(self) -> None:
        for name in ("tensor.nnet.conv", "tensor.signal.pool", "sandbox.cuda.dnn", "compat.six"):
            assert lookup(name) is sys.modules[f"theano.{name}"]

    def test_names_of_basic_are_those_of_the_package(self) -> None:
        assert resolve("theano.tensor.basic", "dot") is T.dot


class TestDifferences:
    def test_softmax_of_a_vector_is_a_row(self) -> None:
        softmax = lookup("tensor.nnet.softmax")
        x = T.dvector("x")
        found = softmax(x).eval({x: [0.0, 0.0]})
        assert np.array_equal(found, [[0.5, 0.5]])
        assert lookup("tensor.nnet.nnet.softmax") is softmax
        assert np.allclose(lookup("tensor.nnet.logsoftmax")(x).eval({x: [0.0, 0.0]}), np.log(0.5))

    def test_softmax_of_three_axes_is_refused(self) -> None:
        with pytest.raises(ValueError, match="1 or 2 axes"):
            lookup("tensor.nnet.softmax")(T.tensor3("x"))

    def test_the_pattern_of_a_type_may_be_of_0_and_1(self) -> None:
        make = lookup("tensor.TensorType")
        assert make("float32", (0, 1)).shape == (None, 1)
        assert make("floatX", [False]).dtype == symcomp.config.floatX
        assert lookup("tensor.tensor")("int8", (1, 0), "x").type.shape == (1, None)
        assert symcomp.shared(np.ones((1, 2)), broadcastable=(1, 0)).type.shape == (1, None)

    def test_several_inputs_at_once(self) -> None:
        assert [x.name for x in lookup("tensor.dvectors")("xyz")] == ["x", "y", "z"]
        assert [x.name for x in lookup("tensor.matrices")("left", "right")] == ["left", "right"]
        assert len(lookup("tensor.iscalars")(2)) == 2
        assert lookup("tensor.scalars")("x").type == T.scalar().type
        assert lookup("tensor.ivectors")(1).dtype == "int32"

    def test_types_are_instances_of_tensor_type(self) -> None:
        kind = lookup("tensor.TensorType")
        assert isinstance(T.dmatrix("x").type, kind)
        assert not isinstance(symcomp.shared([]).type, kind)
        assert issubclass(type(T.dmatrix), kind)

    def test_shared_variables_and_constants_are_no_tensor_variables(self) -> None:
        kind, x = lookup("tensor.TensorVariable"), T.dmatrix("x")
        assert isinstance(x, kind)
        assert isinstance(x + 1, kind)
        assert not isinstance(symcomp.shared(0.0), kind)
        assert not isinstance(T.constant(0.0), kind)
        assert isinstance(T.constant(0.0), lookup("tensor.TensorConstant"))
        assert isinstance(symcomp.shared(0.0), lookup("tensor.sharedvar.TensorSharedVariable"))
        assert isinstance(kind(T.dvector, name="v"), kind)

    def test_numpy_multiplies_lengths(self) -> None:
        x = T.dmatrix("x")
        size = np.prod([x.shape[0], x.shape[1], 2])
        assert int(size.eval({x: np.ones((3, 4))})) == 24
        with pytest.raises(TypeError, match="which is not known when the graph is built"):
            np.sum([x, x])

    def test_a_variable_is_true(self) -> None:
        x = T.dscalar("x")
        assert x
        assert x + 1
        assert symcomp.shared(0.0)
        with pytest.raises(TypeError, match="truth of the comparison"):
            bool(x < 1)

    def test_float32_stays_float32(self) -> None:
        x, i, b = T.fvector("x"), T.ivector("i"), T.bvector("b")
        with symcomp.config.change_flags(floatX="float32"):
            kept = [
                np.float64(2) * x,
                x + np.sqrt(2),
                x * T.constant(np.float64(2)),
                x * (i / i),
                x * (i / 3),
                x / T.sqrt(9),
                x * T.log(10),
                x * T.sqrt(b),
                x * T.switch(x > 0, 1, 0),
                x * (2 * (x > 0) - 1),
                x * T.switch(x > 0, 300, -1),
                T.maximum(x, np.float64(0)),
                T.set_subtensor(x[:1], np.float64(1)),
                lookup("tensor.constant")(1) - x,
            ]
        assert {z.dtype for z in kept} == {"float32"}
        f = lookup("function")([x, i, b], kept)
        values = f(np.float32([4, -4]), np.int32([2, 4]), np.int8([4, 9]))
        wanted = [
            [8, -8], [4 + 2**0.5, -4 + 2**0.5], [8, -8], [4, -4], [8 / 3, -16 / 3], [4 / 3, -4 / 3],
            [4 * np.log(10), -4 * np.log(10)], [8, -12], [4, 0], [4, 4], [1200, 4], [4, 0], [1, -4],
            [-3, 5],
        ]  # fmt: skip
        for value, expected in zip(values, wanted, strict=True):
            assert np.allclose(value, np.float32(expected), rtol=1e-6)

    def test_constants_of_integers_are_small(self) -> None:
        constant, as_tensor = lookup("tensor.constant"), lookup("tensor.as_tensor_variable")
        assert [constant(n).dtype for n in (1, 200, -(2**20), 2**40)] == [
            "int8", "int16", "int32", "int64",
        ]  # fmt: skip
        assert (as_tensor(1).dtype, as_tensor(True).dtype) == ("int8", "bool")
        assert as_tensor([1, 2]).dtype == constant(np.int64(1)).dtype == "int64"
        assert constant(1, dtype="int32").dtype == "int32"
        assert T.arange(constant(3)).dtype == "int64"

    def test_small_integers_widen_for_a_number(self) -> None:
        b = T.bvector("b")
        assert (b + 300).dtype == "int16"
        assert ((b > 0) + 1).dtype == "int8"
        assert (T.ivector("i") * 2).dtype == "int32"
        assert np.array_equal((b + 300).eval({b: np.int8([1, -1])}), [301, 299])
        assert np.array_equal(T.cast(b, "float16").eval({b: np.int8([1, -1])}), [1, -1])

    def test_a_new_axis_drops_axes_of_length_1_that_the_key_leaves_out(self) -> None:
        mask, i = T.alloc(1.0, 3, 1), T.constant(0)
        assert mask[:, None].type.shape == (3, 1)
        assert np.array_equal(mask[:, None].eval(), np.ones((3, 1)))
        assert mask[None].ndim == 3  # the axis of length 3 stays
        assert mask[i, None].type.shape == (1,)
        assert mask[:, None, :].type.shape == (3, 1, 1)
        assert mask[..., None].type.shape == (3, 1, 1)
        assert mask[[0, 2], None].type.shape == (2, 1, 1)
        assert T.dmatrix("x")[:, None].ndim == 3

    def test_linkers_of_theano(self) -> None:
        for linker in ("py", "c", "c|py", "c|py_nogc", "vm", "cvm", "vm_nogc", "cvm_nogc"):
            mode = lookup("compile.mode.Mode")(linker=linker, optimizer="fast_run")
            x = T.dscalar("x")
            assert lookup("function")([x], x + 1, mode=mode)(1.0) == 2.0

    def test_param_is_an_input_with_a_default(self) -> None:
        x, n = T.dscalar("x"), T.dscalar("n")
        f = lookup("function")([x, lookup("Param")(n, default=2.0)], x**n)
        assert (f(3.0), f(3.0, 3.0), f(3.0, n=1.0)) == (9.0, 27.0, 3.0)

    def test_hash_of_a_class(self) -> None:
        assert lookup("tensor.hashtype")(1) == lookup("gof.hashtype")(2)
        assert lookup("tensor.hashtype")(1) != lookup("tensor.hashtype")("1")

    def test_rebroadcast(self) -> None:
        x = T.dmatrix("x")
        row = lookup("tensor.Rebroadcast")((0, True))(x)
        assert row.broadcastable == (True, False)
        assert lookup("tensor.Rebroadcast")((0, False))(row).broadcastable == (False, False)

    def test_elemwise_of_a_scalar_function(self) -> None:
        x = T.dvector("x")
        doubled = lookup("tensor.Elemwise")(lookup("scalar.add"))(x, x)
        assert np.array_equal(doubled.eval({x: [1.0, 2.0]}), [2.0, 4.0])
        assert lookup("scalar.upcast")("int32", "float32") == "float64"

    def test_asarray_has_the_dtype(self) -> None:
        assert lookup("_asarray")([1, 2], dtype="float32").dtype == np.float32

    def test_a_sparse_gradient_is_marked_and_the_same(self) -> None:
        x = T.dmatrix("x")
        cost = lookup("sparse_grad")(x[T.constant([0, 0])]).sum()
        assert np.array_equal(symcomp.grad(cost, x).eval({x: np.ones((2, 1))}), [[2.0], [0.0]])

    def test_a_positive_semidefinite_matrix_is_marked_and_the_same(self) -> None:
        x = T.dmatrix("x")
        marked = lookup("sandbox.linalg.ops.psd")(x)
        inverse = lookup("sandbox.linalg.ops.MatrixInverse")()(marked)
        assert np.array_equal(inverse.eval({x: np.diag([1.0, 4.0])}), np.diag([1.0, 0.25]))

    def test_values_that_agree(self) -> None:
        agree = lookup("tests.unittest_tools.assert_allclose")
        agree(np.ones((2, 3)), np.ones(3) + 1e-9)
        agree(np.ones(3), np.ones(3, "float32") + np.float32(5e-6))
        with pytest.raises(AssertionError, match=r"rtol=1e-05, atol=1e-08"):
            agree(np.ones(3), np.ones(3) + 1e-4)
        with pytest.raises(AssertionError, match=r"rtol=0\.1"):
            agree(1.0, 2.0, rtol=0.1)

    def test_there_is_no_gpu(self) -> None:
        assert lookup("sandbox.cuda.cuda_enabled") is False
        assert lookup("gpuarray.pygpu_activated") is False
        assert lookup("sandbox.cuda.dnn.dnn_available")() is False
        assert lookup("gpuarray.type.list_contexts")() == []

    def test_there_are_sparse_matrices(self) -> None:
        assert importlib.import_module("theano.sparse").enable_sparse is True
        assert lookup("sparse.basic.enable_sparse") is True
        assert not isinstance(T.dmatrix().type, lookup("sparse.SparseType"))

    @pytest.mark.parametrize(
        "line",
        [
            "import theano.sandbox.cuda.cuda_ndarray",
            "import theano.sandbox.cuda.cuda_ndarray.cuda_ndarray as cuda",
            "from theano.sandbox.cuda import cuda_ndarray",
            "from theano.sandbox.cuda import CudaNdarray",
        ],
    )
    def test_programs_that_try_for_a_gpu_are_told(self, line: str) -> None:
        with pytest.raises(ImportError):
            exec(line, {})

    def test_types_of_scalars(self) -> None:
        for name in ("all_types", "discrete_types", "float_types"):
            types = lookup(f"scalar.{name}")
            assert isinstance(types, tuple)
            assert all(kind.dtype in lookup("tensor.all_dtypes") for kind in types)
        assert [kind.dtype for kind in lookup("scalar.all_types")] == lookup("tensor.all_dtypes")

    def test_modes_by_the_names_of_queries(self) -> None:
        mode = importlib.import_module("theano.compile.mode")
        x = T.dvector("x")
        for name in ("FAST_RUN", "FAST_COMPILE", "NONE", "STABILIZE", "FAST_RUN_STABLE", "O3"):
            query = getattr(mode, f"OPT_{name}")
            f = symcomp.function([x], T.log(1 + x), mode=lookup("Mode")(optimizer=query))
            rewritten = "log1p" in str(f.maker.fgraph.toposort())
            assert rewritten == (name != "NONE"), name
        assert mode.predefined_optimizers[None] is mode.OPT_NONE
        f = symcomp.function([x], T.log(1 + x), mode=lookup("Mode")("py", "fast_run_stable"))
        assert "log1p" in str(f.maker.fgraph.toposort())

    def test_an_optimizer_of_the_program_by_its_name(self) -> None:
        mode = importlib.import_module("theano.compile.mode")
        mode.register_optimizer("only_merging", mode.OPT_MERGE)
        try:
            x = T.dvector("x")
            f = symcomp.function(
                [x], T.exp(x) * T.exp(x), mode=lookup("Mode")("py", "only_merging")
            )
            assert [str(node.op) for node in f.maker.fgraph.toposort()] == ["exp", "mul"]
            with pytest.raises(ValueError, match="taken"):
                mode.register_optimizer("merge", mode.OPT_MERGE)
        finally:
            del mode.predefined_optimizers["only_merging"]

    def test_python_2_names(self) -> None:
        assert list(lookup("compat.six.moves.xrange")(2)) == [0, 1]
        assert list(lookup("compat.izip")("ab", "cd")) == [("a", "c"), ("b", "d")]
        assert lookup("compat.cmp")(1, 2) == -1
        assert list(lookup("compat.six.iteritems")({1: 2})) == [(1, 2)]
        base = lookup("compat.six.with_metaclass")(type, int)
        assert issubclass(base, int)
        for module in ("theano.compat.python2x", "theano.gof.python25"):
            assert importlib.import_module(module).any([0, 1])
        assert lookup("compat.python2x.OrderedDict")([(1, 2)]) == {1: 2}

        @lookup("compat.six.add_metaclass")(abc.ABCMeta)
        class Abstract:
            @abc.abstractmethod
            def method(self) -> None: ...

        with pytest.raises(TypeError, match="abstract"):
            Abstract()
        with pytest.raises(KeyError, match="lost"):
            lookup("compat.six.reraise")(KeyError, KeyError("lost"))
        out, err, status = lookup("misc.windows.output_subprocess_Popen")(
            [sys.executable, "-c", "print(1)"]
        )
        assert (out.split(), err, status) == ([b"1"], b"", 0)

    def test_digests_of_arrays(self) -> None:
        digest = lookup("printing.hex_digest")
        x = np.arange(6.0).reshape(2, 3)
        assert digest(x) == digest(x.copy()) != digest(x.T) != digest(x[:1])

    def test_numbers_that_are_close(self) -> None:
        close = lookup("tensor.basic._allclose")
        assert close(1.0, 1.0 + 1e-6)
        assert not close(1.0, 1.0 + 1e-4)
        assert close(np.float32(1.0), 1.0 + 1e-4)
        assert not close(1.0, 1.1, rtol=0.01)

    def test_names_that_modules_import(self) -> None:
        for name in ("ifelse.Op", "tensor.nlinalg.Apply", "printing.SharedVariable", "scalar.Op"):
            assert lookup(name) is not None and not isinstance(lookup(name), Missing)
        assert lookup("tensor.scal.upcast")("int8", "float32") == "float32"
        assert T.dscalar in lookup("tensor.float_types")
