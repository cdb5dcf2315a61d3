"""Classes and functions whose arguments are Theano's: modes, norms, ops of graphs, old losses."""

import pickle

import numpy as np
import pytest

from symcomp.compat.tensor import verify_grad
from symcomp.errors import GradientError

M = np.random.default_rng(0).normal(size=(3, 4))


@pytest.mark.parametrize("order", [None, "fro", np.inf, -np.inf, "inf", "-inf", 1, -1, 2, -2])
def test_norm_of_a_matrix(theano, order):
    wanted = {"inf": np.inf, "-inf": -np.inf}.get(order, order)
    found = theano.tensor.nlinalg.norm(M, order).eval()
    np.testing.assert_allclose(found, np.linalg.norm(M, wanted))


@pytest.mark.parametrize("order", [None, 0, 1, 2, 3, np.inf, -np.inf, "inf"])
def test_norm_of_a_vector(theano, order):
    found = theano.tensor.nlinalg.norm(M[0], order).eval()
    wanted = np.inf if order == "inf" else order
    np.testing.assert_allclose(found, np.linalg.norm(M[0], wanted))


def test_norms_that_are_refused(theano):
    norm = theano.tensor.nlinalg.norm
    for x, order in ((3, None), ([2, 1], "fro"), (M, 0), (M, 3)):
        with pytest.raises(ValueError, match="norm"):
            norm(x, order)
    with pytest.raises(NotImplementedError, match="more than 2 axes"):
        norm(np.ones((1, 2, 3)), None)


def test_op_from_graph_takes_what_function_takes(theano):
    x, y = theano.tensor.dvectors("xy")
    op = theano.OpFromGraph([x, y], [x * 2], on_unused_input="ignore", mode="FAST_RUN")
    assert isinstance(op, theano.compile.builders.OpFromGraph)
    assert op(x, y).eval({x: [1.0], y: [5.0]}) == [2.0]
    with pytest.raises(TypeError, match="unknown"):
        theano.OpFromGraph([x], [x], unknown=1)


def test_overrides_that_return_none_are_not_implemented(theano):
    """In symcomp's own OpFromGraph None is zero."""
    x, v = theano.tensor.dvectors("xv")
    none = {"lop_overrides": lambda i, o, g: [None], "grad_overrides": [lambda i, g: None],
            "rop_overrides": lambda i, d: [None]}  # fmt: skip
    for name, override in none.items():
        op = theano.OpFromGraph([x], [x * 2], **{name: override})
        assert op == theano.OpFromGraph([x], [x * 2], **{name: override})
        with pytest.raises(ValueError, match="not implemented: .* returned None"):
            if name == "rop_overrides":
                theano.tensor.Rop(op(x), x, v)
            else:
                theano.grad(op(x).sum(), x)
    right = theano.OpFromGraph([x], [x * 2], False, lambda i, o, g: [3 * g[0]])
    assert theano.grad(right(x).sum(), x).eval({x: [1.0]}) == [3.0]


def test_change_flags_with_pairs(theano):
    @theano.change_flags([("floatX", "float32"), ("compute_test_value", "ignore")])
    def names():
        return theano.config.floatX, theano.config.compute_test_value

    assert names() == ("float32", "ignore")
    assert theano.config.floatX != "float32"


def test_made_ops(theano):
    Unique = theano.tensor.extra_ops.Unique
    op = Unique(True, return_counts=True)
    assert isinstance(op, Unique) and op.return_index and not op.return_inverse
    assert op == Unique(True, return_counts=True) != Unique()
    assert hash(op) == hash(Unique(True, return_counts=True))
    values, first, counts = op([3, 1, 3])
    np.testing.assert_array_equal(counts.eval(), [1, 2])
    assert len(Unique()([1, 1], return_list=True)) == 1
    again = pickle.loads(pickle.dumps(theano.tensor.elemwise.Prod(axis=1)))
    np.testing.assert_allclose(again(M).eval(), M.prod(axis=1))
    assert theano.tensor.elemwise.Sum(0).make_node(M).inputs[0].ndim == 2


@pytest.mark.parametrize(
    ("shape", "options"),
    [
        ((2, 3, 7, 8), {"ws": (2, 3), "ignore_border": True}),
        ((2, 3, 7, 8), {"ws": (2, 3), "ignore_border": False}),
        ((5, 9), {"ws": (3, 3), "ignore_border": True, "stride": (2, 1), "pad": (1, 2)}),
        ((1, 4, 5, 6), {"ws": (2, 2, 2), "ignore_border": False, "stride": (1, 3, 2), "ndim": 3}),
    ],
)
def test_pool_out_shape(theano, shape, options):
    from theano.tensor.signal.pool import Pool, pool_2d, pool_3d

    pool = pool_3d if options.get("ndim") == 3 else pool_2d
    given = {name: value for name, value in options.items() if name != "ndim"}
    assert list(pool(np.ones(shape), **given).eval().shape) == Pool.out_shape(shape, **options)


def test_old_losses(theano):
    T = theano.tensor
    nnet = T.nnet
    np.testing.assert_allclose(nnet.softmax_graph(M).eval(), nnet.softmax(M).eval())
    x, dy = T.dmatrices("x", "dy")
    expected = theano.grad((nnet.softmax(x) * dy).sum(), x)
    found = nnet.softmax_grad(dy, nnet.softmax(x))
    values = {x: M, dy: M[::-1]}
    np.testing.assert_allclose(found.eval(values), expected.eval(values))
    labels = np.array([3, 0, 2])
    cost = nnet.categorical_crossentropy(nnet.softmax(x), labels).sum()
    dx = nnet.crossentropy_softmax_1hot_with_bias_dx(np.ones(3), nnet.softmax(x), labels)
    np.testing.assert_allclose(dx.eval({x: M}), theano.grad(cost, x).eval({x: M}))
    with_first = nnet.nnet.Prepend_scalar_constant_to_each_row(7.0)(M).eval()
    np.testing.assert_array_equal(with_first, np.column_stack([np.full(3, 7.0), M]))


def test_names_that_are_only_theanos(theano):
    T = theano.tensor
    x = T.dmatrix("x")
    assert float(T.extract_constant(T.constant(2) + 1)) == 3
    assert T.extract_constant(x) is x
    assert T.is_flat(x, 2) and not T.is_flat(x)
    np.testing.assert_array_equal(T.power(M, 2).eval(), M**2)
    found = T.advanced_set_subtensor(x, 0.0, [0, 1], [1, 2]).eval({x: M})
    assert found[0, 1] == found[1, 2] == 0 and found[0, 0] == M[0, 0]
    np.testing.assert_array_equal(T.opt.MakeVector("int64")(1, 2).eval(), [1, 2])


def test_verify_grad_with_the_module_of_random_numbers(theano):
    assert theano.tensor.verify_grad.E_grad is GradientError
    theano.tensor.verify_grad(theano.tensor.tanh, [M], rng=np.random)
    with pytest.raises(verify_grad.E_grad):
        verify_grad(lambda x: theano.gradient.zero_grad(x) * x, [M], rng=np.random)


def test_ops_of_lists_in_place(theano):
    lists = theano.typed_list
    x = lists.TypedListType(theano.tensor.dvector)()
    v = theano.tensor.dvector()
    f = theano.function([x, v], lists.Reverse(True)(lists.Append(inplace=True)(x, v)))
    given = [np.ones(1), np.zeros(2)]
    assert [len(found) for found in f(given, np.ones(3))] == [3, 2, 1]
    assert len(given) == 2
    assert isinstance(lists.Append(), lists.Append)


def test_pool_over_one_axis(theano):
    from theano.tensor.signal.pool import Pool

    x = np.array([[1.0, 5.0, 2.0, 4.0]])
    np.testing.assert_array_equal(Pool(True, ndim=1)(x, (2,)).eval(), [[5, 4]])
    np.testing.assert_array_equal(Pool(True, "sum", ndim=1)(x, (3,), stride=(1,)).eval(), [[8, 11]])


def test_specify_shape_with_symbolic_lengths(theano):
    x, n = theano.tensor.dmatrix("x"), theano.tensor.iscalar("n")
    y = theano.tensor.specify_shape(x, (n, 2))
    assert y.type.shape == (None, 2)
    f = theano.function([x, n], y)
    assert f(np.ones((3, 2)), 3).shape == (3, 2)
    with pytest.raises(AssertionError, match="axis 0 has another length"):
        f(np.ones((3, 2)), 4)
    whole = theano.tensor.specify_shape(x, theano.tensor.constant([3, 2]))
    assert whole.type.shape == (3, 2)


def test_errors_that_nothing_raises_can_be_caught(theano):
    try:
        raise KeyError("k")
    except (theano.gof.InconsistencyError, theano.tensor.EmptyConstantError):
        pytest.fail("another error was caught")
    except KeyError:
        assert issubclass(theano.scalar.ComplexError, Exception)
    from theano.compile.debugmode import BadThunkOutput, InvalidValueError

    assert issubclass(BadThunkOutput, AssertionError) and issubclass(InvalidValueError, ValueError)


def test_small_differences(theano):
    T = theano.tensor
    x = T.dvector("x")
    f = theano.compile.pfunc(params=[x], outputs=x * 2)
    assert f([1.0]) == [2.0]
    theano.compile.ProfileStats(atexit_print=False, gpu_checks=False)
    assert T.exp(x).owner.op.name == "Elemwise{exp,no_inplace}"
    a, b = theano.scalar.floats("ab")
    assert (a.name, b.dtype) == ("a", "float64")
    np.testing.assert_array_equal(T.elemwise.CAReduce(theano.scalar.maximum, 1)(M).eval(), M.max(1))
    rows = np.array([[1, 2, 4], [5, 6, 7]], "int8")
    for name, ufunc in (
        ("add", np.add), ("mul", np.multiply), ("or_", np.bitwise_or), ("and_", np.bitwise_and),
        ("xor", np.bitwise_xor),
    ):  # fmt: skip
        for given in (rows, rows > 4):
            found = T.elemwise.CAReduce(getattr(theano.scalar, name), 1)(given).eval()
            expected = ufunc.reduce(given, axis=1).astype(given.dtype)
            np.testing.assert_array_equal(found, expected, strict=True)
    assert T.slinalg.kron(np.ones(2), np.ones((2, 3))).eval().shape == (12,)
    assert T.nnet.hard_sigmoid(T.bvector()).dtype == "float32"
    zeros = np.array([0.0, 2.0, 3.0])
    assert float(T.elemwise.ProdWithoutZeros()(zeros).eval()) == 6
    assert np.isclose(T.nlinalg.Eig()(np.diag([1.0, 2.0]))[0].eval().real.sum(), 3)
    assert theano.misc.may_share_memory.may_share_memory(M, M[0])


def test_storage_of_containers(theano):
    s = theano.shared(1.0, name="s")
    assert s.container.storage[0] == 1 and s.container.data == 1
    s.container.storage[0] = np.array(3.0)
    assert s.get_value() == 3 and len(s.container.storage) == 1
    s.container.data = 4
    assert s.get_value() == 4 and s.get_value().dtype == "float64"
    with pytest.raises(IndexError, match="one element"):
        s.container.storage[1] = 0
    x = theano.tensor.dscalar("x")
    f = theano.function([x, theano.In(theano.tensor.dscalar("y"), value=2.0)], x * s)
    assert f.container[1].storage[0] == 2 and f.value[2] == 4 and f.container[2] is s.container
    assert f.container["y"].storage == f.container[1].storage
    with pytest.raises(KeyError):
        f.container[3]


def test_more_old_names(theano):
    T = theano.tensor
    from theano.tensor.sort import SortOp

    np.testing.assert_array_equal(SortOp("quicksort", None)(M, 0).eval(), np.sort(M, 0))
    np.testing.assert_array_equal(T.extra_ops.CumsumOp(1)(M).eval(), M.cumsum(1))
    np.testing.assert_array_equal(T.nnet.prepend_1_to_each_row(M).eval()[:, 0], [1, 1, 1])
    labels = np.array([0, 3, 1])
    costs, p, largest, where = T.nnet.crossentropy_softmax_max_and_argmax_1hot(M, labels)
    np.testing.assert_allclose(p.eval(), T.nnet.softmax(M).eval())
    np.testing.assert_allclose(costs.eval(), -np.log(p.eval()[np.arange(3), labels]))
    np.testing.assert_array_equal(where.eval(), M.argmax(1))
    np.testing.assert_allclose(largest.eval(), p.eval().max(1))


def test_eigenvalues_without_a_second_matrix(theano):
    symmetric = M @ M.T
    found = theano.tensor.slinalg.eigvalsh(symmetric, theano.tensor.NoneConst).eval()
    np.testing.assert_allclose(found, np.linalg.eigvalsh(symmetric), atol=1e-12)


def test_several_variables_by_one_word(theano):
    tensor = theano.tensor
    assert [x.name for x in tensor.dvectors("xyz")] == ["x", "y", "z"]
    assert [x.name for x in tensor.fmatrices("a", "bc")] == ["a", "bc"]
    assert [x.name for x in tensor.lscalars(["ab", "c"])] == ["ab", "c"]
    assert tensor.dvectors("x").name == "x" and len(tensor.dvectors(2)) == 2


def test_what_functions_hold(theano):
    x = theano.tensor.dmatrix("x")
    w = theano.shared(np.eye(2), name="w")
    f = theano.function([theano.In(x, value=M[:2, :2])], [x.dot(w), x * 2], updates=[(w, w * 2)])
    assert [container.name for container in f.input_storage] == ["x", "w"]
    np.testing.assert_array_equal(f.input_storage[1].data, np.eye(2))
    assert [out.variable.ndim for out in f.maker.outputs] == [2, 2]
    assert x.type.is_valid_value(M) and not x.type.is_valid_value(M[0])
    assert not x.type.is_valid_value(M.astype("float32"))


def test_options_of_long_ago(theano):
    from theano.sandbox.rng_mrg import MRG_RandomStreams
    from theano.tensor.signal.conv import conv2d

    streams = MRG_RandomStreams(seed=4, use_cuda=False)
    assert isinstance(streams, MRG_RandomStreams)
    assert streams.uniform((2,)).eval().shape == (2,)
    x = theano.tensor.dmatrix()
    y = conv2d(x, np.ones((2, 2)), (3, 4), (2, 2), border_mode="full", unroll_patch=True)
    assert y.eval({x: M}).shape == (4, 5)
    with pytest.raises(NotImplementedError, match="signal.conv.conv2d: precision"):
        conv2d(x, x, precision=3)
