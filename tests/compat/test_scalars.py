"""theano.scalar: types, functions, classes and ops of programs."""

import pickle

import numpy as np
import pytest


def test_types(theano):
    scalar = theano.scalar
    x = scalar.float32("x")
    assert x.dtype == "float32" and x.ndim == 0 and isinstance(x.type, scalar.Scalar)
    assert scalar.Scalar("int8") == scalar.int8
    assert [kind.dtype for kind in scalar.float_types] == theano.tensor.float_dtypes
    assert scalar.upcast("int32", "float32") == "float64"
    with pytest.raises(TypeError, match="is no scalar"):
        scalar.as_scalar([1, 2])


def test_functions(theano):
    x = theano.scalar.float64("x")
    y = theano.scalar.exp(x) * 2
    assert float(y.eval({x: 0.0})) == 2.0
    matrix = theano.tensor.dmatrix("m")
    z = theano.tensor.Elemwise(theano.scalar.add)(matrix, matrix)
    assert isinstance(z.owner.op.scalar_op, theano.scalar.Add)


class Cubed:
    """Made into a scalar op by the fixture: its base is there after install_as_theano."""

    def impl(self, x):
        return x**3

    def grad(self, inputs, gradients):
        return [3 * inputs[0] ** 2 * gradients[0]]


@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 3)])
def test_own_scalar_op(theano, shape):
    scalar = theano.scalar

    class Cube(Cubed, scalar.UnaryScalarOp):
        pass

    cube = theano.tensor.Elemwise(Cube(scalar.upgrade_to_float, name="cube"), name="cubes")
    x = theano.tensor.TensorType("float32", (False,) * len(shape))("x")
    y = cube(x)
    assert y.dtype == "float32"
    value = np.arange(np.prod(shape), dtype="float32").reshape(shape)
    f = theano.function([x], [y, theano.grad(y.sum(), x)])
    out, gradient = f(value)
    assert out.dtype == "float32" and out.shape == shape
    np.testing.assert_allclose(out, value**3)
    np.testing.assert_allclose(gradient, 3 * value**2)
    assert cube(theano.tensor.ivector()).dtype == "float64"
    assert Cube(scalar.upgrade_to_float) == Cube(scalar.upgrade_to_float)
    assert Cube(scalar.upgrade_to_float) != Cube(scalar.same_out)


def test_own_scalar_op_of_two_arguments(theano):
    class Area(theano.scalar.BinaryScalarOp):
        nfunc_spec = ("multiply", 2, 1)

        def impl(self, x, y):
            return x * y

        def L_op(self, inputs, outputs, gradients):
            (x, y), (g,) = inputs, gradients
            return [g * y, g * x]

    area = theano.tensor.Elemwise(Area())
    theano.gradient.verify_grad(
        area, [np.array([[2.0, 3.0]]), np.array([[5.0], [7.0]])], rng=np.random
    )


def test_without_grad(theano):
    class Flat(theano.scalar.UnaryScalarOp):
        def impl(self, x):
            return 1.0

    x = theano.tensor.dvector("x")
    y = theano.tensor.Elemwise(Flat())(x)
    assert y.eval({x: [2.0]}) == [1.0]
    with pytest.raises(AttributeError, match="Flat has neither L_op nor grad"):
        theano.grad(y.sum(), x)


def test_grad_that_is_none_is_not_implemented(theano):
    class Flat(theano.scalar.BinaryScalarOp):
        def impl(self, x, y):
            return x + y

        def grad(self, inputs, output_gradients):
            return [None, output_gradients[0]]

    x, y = theano.tensor.dvectors("xy")
    z = theano.tensor.Elemwise(Flat())(x, y)
    assert theano.grad(z.sum(), y).eval({y: [2.0], x: [1.0]}) == [1.0]
    with pytest.raises(TypeError, match="argument 0: its grad returned None"):
        theano.grad(z.sum(), x)
    with pytest.raises(ValueError, match="argument 0: its grad returned None"):
        theano.tensor.Rop(z, x, x)


def test_function_as_op_is_pickled(theano):
    again = pickle.loads(pickle.dumps(theano.tensor.exp))
    x = theano.tensor.dvector("x")
    assert again == theano.tensor.exp
    assert again(x).eval({x: [0.0]}) == [1.0]


def test_an_instance_of_a_class_is_its_function(theano):
    from theano.scalar.basic_scipy import GammaLn

    row = GammaLn(theano.scalar.upgrade_to_float, name="own name")
    assert row == theano.scalar.gammaln
    x = theano.tensor.dvector("x")
    z = theano.tensor.Elemwise(row, name="gammaln")(x)
    assert z.eval({x: [4.0]}) == pytest.approx(np.log(6.0))
    with pytest.raises(NotImplementedError, match="use the function"):
        theano.scalar.Exp(lambda *types: types)
