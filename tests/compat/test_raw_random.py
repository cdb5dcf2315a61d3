"""Draws of a random state given, as Theano's raw_random makes them."""

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
