"""Classes of programs that are derived from ``theano.tensor.Elemwise``."""

import numpy as np
import pytest

X = np.array([0.5, 1.0, 2.0])


@pytest.fixture
def block_gradient(theano):
    """Define an op that copies and blocks gradients."""

    class Blocking(theano.tensor.Elemwise):
        def connection_pattern(self, node):
            return [[False]]

        def grad(self, inputs, output_gradients):
            return [theano.gradient.DisconnectedType()()]

    return Blocking(theano.scalar.identity)


def test_overridden_methods_are_heard_of(theano, block_gradient):
    T = theano.tensor
    x = T.dvector("x")
    y = (block_gradient(x) * x).sum()
    f = theano.function([x], [y, T.grad(y, x)])
    value, slope = f(X)
    assert value == (X * X).sum()
    np.testing.assert_array_equal(slope, X)
    with pytest.raises(theano.gradient.DisconnectedInputError):
        T.grad(block_gradient(x).sum(), x)
    # Compiled, it is the op of the scalar function.
    names = [type(node.op).__name__ for node in f.maker.fgraph.toposort()]
    assert "Blocking" not in names
    assert isinstance(block_gradient, T.Elemwise)
    assert isinstance(block_gradient(x).owner.op, T.elemwise.Elemwise)


def test_what_is_not_overridden_is_that_of_the_scalar_function(theano):
    T = theano.tensor

    class Plain(T.Elemwise):
        def __init__(self, scalar_op):
            T.Elemwise.__init__(self, scalar_op, name="plain")

        def make_node(self, *inputs):
            return super().make_node(*inputs)

    op = Plain(theano.scalar.mul)
    assert str(op) == "plain" and op.scalar_op == theano.scalar.mul
    assert op == Plain(theano.scalar.mul) != Plain(theano.scalar.add)
    assert len({op, Plain(theano.scalar.mul)}) == 1
    x, r = T.dvector("x"), T.drow("r")
    z = op(x, r)
    assert z.broadcastable == (True, False)
    assert z.owner.inputs[0].ndim == 2
    tangent = T.Rop(z, x, x)
    f = theano.function([x, r], [z, T.grad(z.sum(), r), tangent, z.shape])
    wanted = [X[None] ** 2, X[None], X[None] ** 2, [1, 3]]
    for got, expected in zip(f(X, X[None]), wanted, strict=True):
        np.testing.assert_array_equal(got, expected)
    T.verify_grad(lambda x: op(x, x + 1.0), [X], rng=np.random.RandomState(0))
    method = T.Elemwise.make_node
    assert method(op, x, x).outputs[0].type == x.type


def test_one_with_a_perform_of_its_own_keeps_it(theano):
    T = theano.tensor
    calls = []

    class Noting(T.Elemwise):
        def perform(self, node, inputs, output_storage):
            calls.append(len(inputs))
            super().perform(node, inputs, output_storage)

    x = T.dvector("x")
    f = theano.function([x], Noting(theano.scalar.sqr)(x) + 1.0)
    np.testing.assert_array_equal(f(X), X * X + 1)
    assert calls == [1]


def test_one_that_overwrites(theano):
    T = theano.tensor

    class Own(T.Elemwise):
        pass

    x = T.dvector("x")
    given = X.copy()
    f = theano.function([x], Own(theano.scalar.sqr, {0: 0})(x), accept_inplace=True)
    np.testing.assert_array_equal(f(given), X * X)
    np.testing.assert_array_equal(given, X * X)
