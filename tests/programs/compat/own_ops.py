"""Ops as users of Theano wrote them: __props__ and grad, itypes, L_op, a ViewOp, and as_op."""

import numpy as np
import theano
from theano import gof
from theano import tensor as T
from theano.compile.ops import as_op


class PowerSeries(theano.Op):
    """c0 + c1 x + c2 x^2 ..., with fixed coefficients."""

    __props__ = ("coefficients",)

    def __init__(self, *coefficients):
        self.coefficients = coefficients
        super(PowerSeries, self).__init__()

    def make_node(self, x):
        x = theano.tensor.as_tensor_variable(x)
        return theano.Apply(self, [x], [x.type()])

    def perform(self, node, inputs, output_storage):
        (x,) = inputs
        output_storage[0][0] = np.polyval(self.coefficients[::-1], x).astype(x.dtype)

    def infer_shape(self, node, input_shapes):
        return input_shapes

    def slope(self):
        return PowerSeries(*[k * c for k, c in enumerate(self.coefficients)][1:] or [0.0])

    def grad(self, inputs, output_grads):
        return [self.slope()(inputs[0]) * output_grads[0]]

    def R_op(self, inputs, eval_points):
        if eval_points[0] is None:
            return [None]
        return self.grad(inputs, eval_points)


class MinAndMax(theano.Op):
    """The least and the greatest element of each row; types declared, two outputs."""

    __props__ = ()
    itypes = [T.dmatrix]
    otypes = [T.dvector, T.dvector]

    def perform(self, node, inputs, output_storage):
        low, high = output_storage
        low[0] = inputs[0].min(axis=1)
        high[0] = inputs[0].max(axis=1)

    def infer_shape(self, node, shapes):
        rows = shapes[0][0]
        return [(rows,), (rows,)]

    def L_op(self, inputs, outputs, output_grads):
        x = inputs[0]
        total = T.zeros_like(x)
        for y, gy in zip(outputs, output_grads):
            if not isinstance(gy.type, theano.gradient.DisconnectedType):
                total = total + T.eq(x, y.dimshuffle(0, "x")) * gy.dimshuffle(0, "x")
        return [total]


class TakeRows(gof.Op):
    """Rows at integer positions, which are not differentiated. Equality in the style of 2010."""

    def __eq__(self, other):
        return type(self) == type(other)

    def __hash__(self):
        return hash(type(self))

    def make_node(self, x, rows):
        x, rows = T.as_tensor_variable(x), T.as_tensor_variable(rows)
        if rows.ndim != 1 or "int" not in rows.dtype:
            raise TypeError("rows must be a vector of int", rows.type)
        return gof.Apply(self, [x, rows], [T.TensorType(x.dtype, x.broadcastable)()])

    def perform(self, node, inp, out):
        x, rows = inp
        out[0][0] = x[rows]

    def connection_pattern(self, node):
        return [[True], [False]]

    def grad(self, inputs, out_grads):
        x, rows = inputs
        gx = T.inc_subtensor(T.zeros_like(x)[rows], out_grads[0])
        return [gx, theano.gradient.DisconnectedType()()]


class GradientReversal(theano.compile.ViewOp):
    """The identity, whose gradient has the other sign."""

    __props__ = ("strength",)

    def __init__(self, strength):
        self.strength = strength

    def grad(self, args, g_outs):
        return [-self.strength * g for g in g_outs]


def shape_of_product(node, shapes):
    return [(shapes[0][0], shapes[1][1])]


@as_op(itypes=[T.dmatrix, T.dmatrix], otypes=[T.dmatrix], infer_shape=shape_of_product)
def numpy_dot(a, b):
    return np.dot(a, b)
