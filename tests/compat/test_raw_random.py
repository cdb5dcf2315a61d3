"""Draws of a random state given, as Theano's raw_random makes them."""

import copy

import numpy as np
import pytest

CALLS = {
    "uniform": ((3,), 1.0, 2.0),
    "normal": ((3,), 5.0, 0.1),
    "binomial": ((3,), 10, 0.5),
    "random_integers": ((3,), 1, 4),
    "choice": ((3,), 7),
    "poisson": ((3,), 4.0),
    "permutation": ((3,), 5),
    "multinomial": ((3,), 6, [0.25, 0.75]),
}


@pytest.mark.parametrize("name", CALLS)
def test_each_gives_the_next_state_and_what_streams_draw(theano, name):
    raw_random = theano.tensor.raw_random
    size, *parameters = CALLS[name]
    state = raw_random.random_state_type("state")
    after, z = getattr(raw_random, name)(state, size, *parameters)
    assert after.type == state.type == raw_random.RandomStateType()
    f = theano.function([state], [after, z])
    first = np.random.default_rng(3)
    words, got = f(first)
    _, again = f(np.random.default_rng(3))
    np.testing.assert_array_equal(got, again)
    assert not np.array_equal(f(words)[1], got)
    stream = theano.tensor.shared_randomstreams.RandomStreams(1)
    draw = getattr(stream, name)(size, *parameters)
    stream[draw] = np.random.default_rng(3)
    np.testing.assert_array_equal(theano.function([], draw)(), got)


def test_states_are_shared_and_updated(theano):
    raw_random = theano.tensor.raw_random
    state = theano.shared(np.random.RandomState(23))
    after, z = raw_random.uniform(state, size=(2, 2), low=-1.0)
    f = theano.function([], z, updates=[(state, after)])
    a, b = f(), f()
    assert a.shape == b.shape == (2, 2)
    assert (a != b).all()
    fixed = theano.function([], z)
    np.testing.assert_array_equal(fixed(), fixed())


def test_a_vector_says_the_size(theano):
    raw_random = theano.tensor.raw_random
    state, size = raw_random.random_state_type(), theano.tensor.lvector()
    _, z = raw_random.normal(state, size, avg=3.0, std=0.0, ndim=2)
    got = theano.function([state, size], z)(np.random.default_rng(0), [2, 3])
    np.testing.assert_array_equal(got, np.full((2, 3), 3.0))


def test_what_is_no_state_is_refused(theano):
    raw_random = theano.tensor.raw_random
    with pytest.raises(TypeError, match="the state must be a uint64 vector of 4 words"):
        raw_random.uniform(theano.tensor.dvector(), (2,))


class TestRandomFunction:
    def test_a_method_of_randomstate(self, theano):
        raw_random, T = theano.tensor.raw_random, theano.tensor
        state, n = raw_random.random_state_type("state"), T.lscalar("n")
        op = raw_random.RandomFunction("gamma", T.fmatrix)
        after, z = op(state, (n, 3), 2.0, 5.0)
        f = theano.function([state, n], [after, z, z.shape])
        words, draw, shape = f(np.random.default_rng(7), 2)
        wanted = np.random.RandomState(np.random.PCG64(7)).gamma(2.0, 5.0, (2, 3))
        np.testing.assert_array_equal(draw, wanted.astype("float32"))
        assert draw.dtype == "float32" and tuple(shape) == (2, 3)
        assert not np.array_equal(f(words, 2)[1], draw)
        assert op == raw_random.RandomFunction("gamma", T.fmatrix)

    def test_a_function_and_more_axes(self, theano):
        raw_random, T = theano.tensor.raw_random, theano.tensor

        def pairs(state, high, size):
            return state.randint(high, size=(*size, 2))

        op = raw_random.RandomFunction(pairs, T.lmatrix, ndim_added=1)
        stream = T.shared_randomstreams.RandomStreams(1)
        z = stream.gen(op, (4,), 10)
        f = theano.function([], [z, z.shape])
        first, shape = f()
        assert first.shape == tuple(shape) == (4, 2) and first.max() < 10
        assert not np.array_equal(f()[0], first)

    def test_a_scalar_and_what_does_not_fit(self, theano):
        raw_random, T = theano.tensor.raw_random, theano.tensor
        state = raw_random.random_state_type()
        _, z = raw_random.RandomFunction("normal", T.dscalar)(state, [], 1.0, 0.0)
        assert theano.function([state], z)(np.random.default_rng(0)) == 1.0
        _, z = raw_random.RandomFunction("normal", T.dmatrix)(state, (3,), 1.0, 0.0)
        with pytest.raises(ValueError, match="has 1 axes"):
            theano.function([state], z)(np.random.default_rng(0))
        with pytest.raises(TypeError, match="must be a random state"):
            raw_random.RandomFunction("normal", T.dscalar)(T.dscalar())
        x = T.dscalar("x")
        _, z = raw_random.RandomFunction("normal", T.dscalar)(state, (), x, 1.0)
        with pytest.raises(theano.gradient.NullTypeGradError):
            T.grad(z, x)


def test_own_ops_are_given_a_randomstate(theano):
    raw_random, T = theano.tensor.raw_random, theano.tensor

    class Shuffled(theano.Op):
        __props__ = ()

        def make_node(self, state, x):
            x = T.as_tensor_variable(x)
            return theano.Apply(self, [state, x], [state.type(), x.type()])

        def perform(self, node, inputs, output_storage):
            state, x = inputs
            state = copy.deepcopy(state)
            output_storage[0][0], output_storage[1][0] = state, state.permutation(x)

    state = theano.shared(np.random.RandomState(5))
    after, z = Shuffled()(state, np.arange(20))
    f = theano.function([], z, updates=[(state, after)])
    first, second = f(), f()
    np.testing.assert_array_equal(np.sort(first), np.arange(20))
    assert not np.array_equal(first, second)
    given = raw_random.random_state_type()
    g = theano.function([given], Shuffled()(given, np.arange(20)))
    words, draw = g(np.random.default_rng(1))
    expected = np.random.RandomState(np.random.PCG64(1))
    np.testing.assert_array_equal(draw, expected.permutation(20))
    assert not np.array_equal(g(words)[1], draw)
