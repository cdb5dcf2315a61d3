"""config.compute_test_value: values computed while a graph is built."""

import pdb

import numpy as np
import pytest


@pytest.fixture(autouse=True)
def raising(theano):
    with theano.config.change_flags(compute_test_value="raise"):
        yield


@pytest.fixture
def x(theano):
    x = theano.tensor.dmatrix("x")
    x.tag.test_value = np.arange(6.0).reshape(2, 3)
    return x


def test_values_follow_the_graph(theano, x):
    T = theano.tensor
    w = theano.shared(np.ones((3, 4)))
    y = T.tanh(T.dot(x, w)) + np.ones(4)
    np.testing.assert_allclose(
        y.tag.test_value, np.tanh(x.tag.test_value.sum(1))[:, None] + [[1] * 4]
    )
    assert theano.gof.op.get_test_value(3.5) == 3.5
    assert x.tag.test_value.sum() == 15  # the given values are not overwritten


def test_error_is_raised_where_the_expression_is_built(theano, x):
    y = theano.tensor.dmatrix("y")
    y.tag.test_value = np.ones((2, 2))
    with pytest.raises(ValueError) as caught:
        theano.tensor.dot(x, y)
    assert "test values" in "".join(caught.value.__notes__)
    y.tag.test_value = np.ones((3, 2), "complex128")
    with pytest.raises(TypeError):
        theano.tensor.dot(x, y)


@pytest.mark.parametrize("error", [AttributeError, ValueError])
def test_missing_value(theano, x, error):
    y = theano.tensor.dmatrix("without")
    with pytest.raises(error, match="without .* has no test value"):
        x + y
    with theano.config.change_flags(compute_test_value="ignore"):
        assert not hasattr((x + y).tag, "test_value")
        assert theano.gof.op.get_debug_values(x, y) == []
    with (
        theano.config.change_flags(compute_test_value="warn"),
        pytest.warns(UserWarning, match="test value of add"),
    ):
        x + y
    with theano.config.change_flags(compute_test_value="off"):
        assert not hasattr((x * 2).tag, "test_value")
    with pytest.raises(error, match="without"):
        theano.gof.op.get_debug_values(x, y)
    (values,) = theano.gof.op.get_debug_values(x, x * 2)
    np.testing.assert_array_equal(values[0] * 2, values[1])


def test_pdb(theano, x, monkeypatch):
    seen = []
    monkeypatch.setattr(pdb, "post_mortem", seen.append)
    y = theano.tensor.dmatrix("y")
    y.tag.test_value = np.ones((2, 2))
    with theano.config.change_flags(compute_test_value="pdb"), pytest.raises(ValueError):
        theano.tensor.dot(x, y)
    assert len(seen) == 1


def test_unknown_action(theano):
    with pytest.raises(ValueError, match="compute_test_value"):
        theano.config.compute_test_value = "always"


def test_functions_gradients_and_eval_need_no_values(theano, x):
    T = theano.tensor
    with theano.config.change_flags(compute_test_value="off"):
        y = T.dvector("y")
        cost = (y**2).sum() * 2
    assert theano.function([y], cost)([1.0, 2.0]) == 10
    assert cost.eval({y: [1.0, 2.0]}) == 10
    gradient = theano.grad((x**3).sum(), x)
    np.testing.assert_allclose(gradient.tag.test_value, 3 * x.tag.test_value**2)


def test_own_op(theano, x):
    class Both(theano.Op):
        __props__ = ()
        destroy_map = {0: [0]}

        def make_node(self, x):
            return theano.Apply(self, [x], [x.type(), x.type()])

        def perform(self, node, inputs, output_storage):
            output_storage[1][0] = inputs[0] - 1
            inputs[0] += 1
            output_storage[0][0] = inputs[0]

    more, less = Both()(x)
    np.testing.assert_array_equal(more.tag.test_value - less.tag.test_value, np.full((2, 3), 2.0))
    assert x.tag.test_value[0, 0] == 0


def test_loop(theano, x):
    seen = []

    def step(row, two_before, one_before, whole):
        seen.append([v.tag.test_value for v in (row, two_before, one_before, whole)])
        return row + one_before * two_before

    start = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    rows, _ = theano.scan(
        step,
        sequences=[x],
        outputs_info=[{"initial": theano.tensor.constant(start), "taps": [-2, -1]}],
        non_sequences=[x],
    )
    row, two_before, one_before, whole = seen[0]
    np.testing.assert_array_equal(row, [0, 1, 2])
    np.testing.assert_array_equal(two_before, start[0])
    np.testing.assert_array_equal(one_before, start[1])
    assert whole.shape == (2, 3)
    np.testing.assert_array_equal(rows.tag.test_value[0], row + start[0] * start[1])
    assert rows.tag.test_value.shape == (2, 3)


def test_error_in_a_step_is_raised_there(theano, x):
    def step(row, matrix):
        return theano.tensor.dot(row, matrix)

    with pytest.raises(ValueError) as caught:
        theano.scan(step, sequences=[x], non_sequences=[x])
    assert "step" in [entry.name for entry in caught.traceback]


def test_draws(theano, x):
    from theano.tensor.shared_randomstreams import RandomStreams

    streams = RandomStreams(5)
    mask = streams.binomial(size=x.shape, p=0.5)
    assert mask.tag.test_value.shape == (2, 3)
    kept, updates = theano.scan(
        lambda row: row * streams.uniform(size=row.shape), sequences=[x * mask]
    )
    assert kept.tag.test_value.shape == (2, 3)
    assert (kept.tag.test_value >= 0).all()
    f = theano.function([x], kept, updates=updates)
    assert not np.array_equal(f(np.ones((9, 9))), f(np.ones((9, 9))))


def test_choices_and_loops_of_other_kinds(theano, x):
    from theano.ifelse import ifelse

    chosen = ifelse(theano.tensor.gt(x.sum(), 0), x, -x)
    np.testing.assert_array_equal(chosen.tag.test_value, x.tag.test_value)
    squares, _ = theano.map(lambda row: row**2, [x])
    np.testing.assert_array_equal(squares.tag.test_value, x.tag.test_value**2)
    total, _ = theano.reduce(lambda row, so_far: so_far + row.sum(), [x], 0.0)
    assert total.tag.test_value == 15
    tangent = theano.tensor.Rop(x**2, x, theano.tensor.ones_like(x))
    np.testing.assert_array_equal(tangent.tag.test_value, 2 * x.tag.test_value)
