"""Theano's classes of convolutions and pools, and the shapes that go with them."""

import itertools
from importlib import import_module

import numpy as np
import pytest
from scipy import ndimage, signal

RNG = np.random.default_rng(0)
X, W = RNG.normal(size=(2, 3, 7, 6)), RNG.normal(size=(4, 3, 3, 2))
GEOMETRIES = list(
    itertools.product(["valid", "full", 1, (0, 2)], [(1, 1), (2, 1)], [(1, 1), (1, 2)])
)


def names(module, *wanted):
    found = import_module(module)
    return [getattr(found, name) for name in wanted]


@pytest.mark.parametrize("geometry", GEOMETRIES, ids=str)
def test_correlations_and_their_gradients(theano, geometry):
    T = theano.tensor
    corr, of_weights, of_inputs = names(
        "theano.tensor.nnet.corr", "CorrMM", "CorrMM_gradWeights", "CorrMM_gradInputs"
    )
    x, w, g = T.dtensor4s("xwg")
    y = corr(*geometry)(x, w)
    gx, gw = theano.gradient.Lop(y, [x, w], g)
    expected = T.nnet.conv2d(x, w, None, None, *geometry[:2], False, None, geometry[2])
    adjoints = [of_inputs(*geometry)(w, g, x.shape[2:]), of_weights(*geometry)(x, g, w.shape[2:])]
    if geometry[1] == (1, 1):  # the lengths follow from the others
        adjoints += [of_inputs(*geometry)(w, g), of_weights(*geometry)(x, g)]
    f = theano.function([x, w, g], [y, expected, gx, gw, *adjoints])
    z = expected.eval({x: X, w: W})
    y, expected, gx, gw, *adjoints = f(X, W, RNG.normal(size=z.shape))
    np.testing.assert_array_equal(y, expected)
    for i, found in enumerate(adjoints):
        np.testing.assert_allclose(found, (gx, gw)[i % 2], rtol=1e-12)


def test_a_shape_that_does_not_follow(theano):
    (of_weights,) = names("theano.tensor.nnet.corr", "CorrMM_gradWeights")
    with pytest.raises(ValueError, match="shape is missing"):
        of_weights(subsample=(2, 2))(X, W)


def test_shapes_of_convolutions(theano):
    output, inputs, weights, one, check, pads = names(
        "theano.tensor.nnet.abstract_conv", "get_conv_output_shape", "get_conv_gradinputs_shape",
        "get_conv_gradweights_shape", "get_conv_shape_1axis", "check_conv_gradinputs_shape",
        "border_mode_to_pad",
    )  # fmt: skip
    image, kernel = (5, 3, 28, 29), (8, 3, 5, 4)
    for mode, dilation in itertools.product(["valid", "full", "half", (2, 1)], [(1, 1), (2, 1)]):
        top = output(image, kernel, mode, (1, 1), dilation)
        assert inputs(kernel, top, mode, (1, 1), dilation) == image
        assert check(image, kernel, top, mode, (1, 1), dilation)
        assert not check(image, kernel, (5, 8, 99, None), mode, (1, 1), dilation)
        assert one(28, 5, mode[0] if isinstance(mode, tuple) else mode, 1, dilation[0]) == top[2]
        unknown = (8, 3, None, None)
        found = weights(image, top, mode, (1, 1), dilation)
        assert found == (unknown if mode == "half" else kernel)
    top = output(image, kernel, "valid", (1, 1))
    assert inputs(kernel, top, "valid", (2, 1)) == (5, 3, None, 29)
    assert pads("half", 2, (5, 4)) == ((2, 2), (2, 2))


def test_shapes_that_are_asserted(theano):
    of, shape = names("theano.tensor.nnet.abstract_conv", "assert_shape", "assert_conv_shape")
    x, n = theano.tensor.dmatrix(), theano.tensor.lscalar()
    f = theano.function([x], of(x, (None, 3), "three columns"))
    assert f(np.ones((2, 3))).shape == (2, 3)
    with pytest.raises(AssertionError, match="three columns"):
        f(np.ones((2, 4)))
    with pytest.raises(AssertionError, match="axis 2 of a convolution must be at least 1"):
        shape((1, 1, 0, 1))
    length = theano.function([n], shape((1, 1, n, 1))[2])
    assert length(2) == 2
    with pytest.raises(AssertionError, match="axis 2"):
        length(0)


def test_older_classes(theano):
    T = theano.tensor
    conv, neighbours = names("theano.tensor.nnet.conv", "ConvOp")[0], T.nnet.neighbours
    x, w = T.dtensor4s("xw")
    y = conv((3, 7, 6), (3, 2), 4, 2, 1, 1, "valid")(x, w).eval({x: X, w: W})
    expected = [[sum(map(signal.convolve2d, i, k, ["valid"] * 3)) for k in W] for i in X]
    np.testing.assert_allclose(y, expected)
    parts = neighbours.Images2Neibs("ignore_borders")(x, (2, 3)).eval({x: X})
    np.testing.assert_array_equal(
        parts, neighbours.images2neibs(x, (2, 3), mode="ignore_borders").eval({x: X})
    )
    (loss,) = names("theano.tensor.nnet.ctc", "ctc")
    assert loss(np.zeros((2, 1, 2)), [[1]], [2]).eval() == pytest.approx(-np.log(0.75))


def test_the_first_convolution_is_one_op(theano):
    T = theano.tensor
    kind, conv2d = names("theano.tensor.nnet.conv", "ConvOp", "conv2d")
    x, w, g = T.dtensor4s("xwg")
    z = conv2d(x, w, border_mode="full", subsample=(2, 1))
    assert isinstance(z.owner.op, kind) and z.owner.inputs == [x, w]
    f = theano.function([x, w], z)
    expected = [[sum(map(signal.convolve2d, i, k)) for k in W] for i in X]
    np.testing.assert_allclose(f(X, W), np.array(expected)[:, :, ::2])
    # In a function it is open, as any other convolution.
    assert not any(isinstance(node.op, kind) for node in f.maker.fgraph.toposort())
    values = np.random.default_rng(0).normal(size=f(X, W).shape)
    found = theano.function([x, w, g], z.owner.op.grad((x, w), (g,)))(X, W, values)
    wanted = theano.function([x, w, g], theano.gradient.Lop(z, [x, w], g))(X, W, values)
    for got, expected in zip(found, wanted, strict=True):
        np.testing.assert_allclose(got, expected)
    assert theano.function([x, w], z.shape)(X, W).tolist() == list(values.shape)
    with pytest.raises(ValueError, match="axes|channels"):
        conv2d(x, T.dmatrix())


def test_gradients_with_known_lengths_need_no_images(theano):
    T = theano.tensor
    kind, conv2d = names("theano.tensor.nnet.conv", "ConvOp", "conv2d")
    images, w, g = T.dtensor4s("xwg")
    for mode in ("valid", "full"):
        z = conv2d(images, w, image_shape=X.shape, filter_shape=W.shape, border_mode=mode)
        back, _ = z.owner.op.grad((images, w), (g,))
        lengths = kind.getOutputShape(X.shape[2:], W.shape[2:], (1, 1), mode)
        values = np.ones((len(X), len(W), *lengths))
        assert theano.function([w, g], back)(W, values).shape == X.shape
    assert kind.getOutputShape((7, None), (3, 2), (2, 1), "valid") == [3, None]


def test_convolution_of_series(theano):
    (conv3d,) = names("theano.tensor.nnet.conv3d2d", "conv3d")
    tensor5 = theano.tensor.TensorType("float64", (False,) * 5)
    x, w = tensor5("x"), tensor5("w")
    a, b = RNG.normal(size=(2, 6, 3, 5, 4)), RNG.normal(size=(4, 3, 3, 3, 3))
    found = conv3d(x, w, a.shape, b.shape).eval({x: a, w: b})
    inside = (slice(1, -1),) * 3
    expected = [
        [
            sum(ndimage.convolve(i[:, c], k[:, c], mode="constant")[inside] for c in range(3))
            for k in b
        ]
        for i in a
    ]
    np.testing.assert_allclose(found, np.swapaxes(expected, 1, 2), rtol=1e-10, atol=1e-12)


def test_gradients_of_pools(theano):
    T = theano.tensor
    largest, average, old = names(
        "theano.tensor.signal.pool", "MaxPoolGrad", "AveragePoolGrad", "PoolGrad"
    )
    (oldest,) = names("theano.tensor.signal.downsample", "DownsampleFactorMaxGrad")
    x, g = T.dtensor4s("xg")
    gradient = RNG.normal(size=(2, 3, 3, 3))
    for grads, mode in (((largest, old, oldest), "max"), ((average,), "average_exc_pad")):
        y = T.signal.pool.pool_2d(x, (2, 2), True, mode=mode)
        expected = theano.gradient.Lop(y, x, g).eval({x: X, g: gradient})
        for grad in grads:
            found = grad(True) if mode == "max" else grad(True, mode)
            arguments = (x, y, g) if mode == "max" else (x, g)
            value = found(*arguments, (2, 2)).eval({x: X, g: gradient})
            np.testing.assert_array_equal(value, expected)
