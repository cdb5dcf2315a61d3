"""``theano.OpFromGraph`` over graphs that draw random numbers."""

import numpy as np
import pytest

X = np.array([1.0, 2.0, 3.0])


@pytest.fixture
def noisy(theano):
    """x times noise of the shape of x, as an op; and the variable that it was made of."""

    def make(**options):
        x = theano.tensor.dvector("x")
        stream = theano.tensor.shared_randomstreams.RandomStreams(3)
        return theano.OpFromGraph([x], [x * stream.uniform(x.shape)], **options)

    return make


@pytest.mark.parametrize("inline", [False, True])
def test_each_call_draws_anew(theano, noisy, inline):
    x = theano.tensor.dvector("x")
    z = noisy(inline=inline)(x)
    slope = theano.grad(z.sum(), x)
    f = theano.function([x], [z, slope])
    first, second = f(X), f(X)
    for value, noise in (first, second):
        # The gradient is of the draw that was made.
        np.testing.assert_allclose(value, X * noise, rtol=1e-14)
        assert ((noise > 0) & (noise < 1)).all()
    assert (first[1] != second[1]).all()
    fixed = theano.function([x], z, no_default_updates=True)
    np.testing.assert_array_equal(fixed(X), fixed(X))


def test_each_application_draws_its_own(theano, noisy):
    x = theano.tensor.dvector("x")
    op = noisy()
    one, other = theano.function([x], [op(x), op(x)])(X)
    assert (one != other).all()
    again = noisy()
    np.testing.assert_array_equal(theano.function([x], again(x))(X), one)
    assert isinstance(op(x).owner.op, theano.OpFromGraph)
    assert op.make_node(x).op == op.op and str(op) == str(op.op)
    assert op(x, return_list=True)[0].type == x.type


def test_several_outputs_and_a_shared_variable(theano):
    T = theano.tensor
    x, scale = T.dvector("x"), theano.shared(2.0, "scale")
    stream = theano.sandbox.rng_mrg.MRG_RandomStreams(1)
    kept = stream.binomial(size=x.shape, p=0.5, dtype="float64")
    op = theano.OpFromGraph([x], [x * kept * scale, kept], mode="FAST_RUN")
    y, mask = theano.function([x], op(x + 0.0))(X)
    np.testing.assert_array_equal(y, X * mask * 2)


class TestOverrides:
    """Overrides do not get the states, and return nothing for them."""

    def make(self, theano, **overrides):
        T = theano.tensor
        x, w = T.dvectors("x", "w")
        stream = T.shared_randomstreams.RandomStreams(3)
        op = theano.OpFromGraph([x, w], [x * w * stream.uniform(x.shape)], **overrides)
        return x, w, op(x, w)

    def slopes(self, theano, **overrides):
        x, w, z = self.make(theano, **overrides)
        return theano.function([x, w], theano.grad(z.sum(), [x, w]))(X, 2 * X)

    @pytest.mark.parametrize("name", ["lop_overrides", "grad_overrides"])
    def test_one_for_all_inputs(self, theano, name):
        seen = []

        def override(*groups):
            seen.append([len(group) for group in groups])
            inputs, (g,) = groups[0], groups[-1]
            return [5.0 * g * inputs[1], 7.0 * g]

        a, b = self.slopes(theano, **{name: override})
        np.testing.assert_array_equal(a, 10 * X)
        np.testing.assert_array_equal(b, [7.0, 7.0, 7.0])
        assert seen[0] == ([2, 1, 1] if name == "lop_overrides" else [2, 1])

    def test_one_for_each_input(self, theano):
        a, b = self.slopes(theano, lop_overrides=[lambda x, z, g: 5.0 * g[0], None])
        np.testing.assert_array_equal(a, [5.0, 5.0, 5.0])
        np.testing.assert_array_equal(b, np.zeros(3))

    def test_ops(self, theano):
        T = theano.tensor
        x, w, z, g = T.dvectors("x", "w", "z", "g")
        op = theano.OpFromGraph([x, w, z, g], [3.0 * g, x * g])
        a, b = self.slopes(theano, lop_overrides=op)
        np.testing.assert_array_equal(a, [3.0, 3.0, 3.0])
        np.testing.assert_array_equal(b, X)

    def test_of_the_other_mode(self, theano):
        x, w, z = self.make(theano, rop_overrides=lambda inputs, points: [points[0] * 4.0])
        tangent = theano.Rop(z + w, [x, w], [x, w * 0.0])
        np.testing.assert_array_equal(theano.function([x, w], tangent)(X, X), 4 * X)

    def test_a_pattern(self, theano):
        pattern = [[True], [False]]
        x, w, z = self.make(theano, connection_pattern=pattern)
        assert theano.grad(z.sum(), x) is not None
        with pytest.raises(theano.gradient.DisconnectedInputError):
            theano.grad(z.sum(), w)
