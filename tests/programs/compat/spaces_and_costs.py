"""A convolutional network in the manner of libraries on top of Theano: layers, costs, constraints."""

import theano
import theano.sparse
from theano import tensor as T
from theano.compat.python2x import OrderedDict
from theano.compat.six.moves import xrange
from theano.gof.op import get_debug_values
from theano.printing import Print
from theano.sandbox.cuda.type import CudaNdarrayType
from theano.tensor.nnet.conv import ConvOp, conv2d

import numpy as np

if theano.sparse.enable_sparse:
    import scipy.sparse

try:
    import theano.sandbox.cuda.cuda_ndarray as cuda_ndarray
except ImportError:
    cuda_ndarray = None


class _WithoutGradient(theano.tensor.Elemwise):
    """A function of elements that says it has no gradient."""

    def connection_pattern(self, node):
        return [[False]]

    def grad(self, inputs, output_gradients):
        return [theano.gradient.DisconnectedType()()]


block_gradient = _WithoutGradient(theano.scalar.identity)


class Callback(theano.gof.Op):
    """An identity op that calls a function of its value."""

    view_map = {0: [0]}

    def __init__(self, callback):
        self.callback = callback

    def make_node(self, x):
        return theano.gof.Apply(op=self, inputs=[x], outputs=[x.type.make_variable()])

    def perform(self, node, inputs, output_storage):
        x, = inputs
        z, = output_storage
        z[0] = x
        self.callback(x)

    def grad(self, inputs, output_gradients):
        return output_gradients

    def R_op(self, inputs, eval_points):
        return [x for x in eval_points]

    def __eq__(self, other):
        return type(self) == type(other) and self.callback == other.callback

    def __hash__(self):
        return hash(self.callback)


class Space(object):
    """Batches of vectors, dense ones of a dtype that there is."""

    def __init__(self, dim, dtype='floatX'):
        self.dtype = theano.config.floatX if dtype == 'floatX' else dtype
        if self.dtype not in tuple(t.dtype for t in theano.scalar.all_types):
            raise TypeError('no dtype: %s' % dtype)
        self.dim = dim

    def make_batch(self, name):
        kind = T.TensorType(broadcastable=(False, self.dim == 1), dtype=self.dtype)
        return kind.make_variable(name=name)

    def validate(self, batch):
        if isinstance(batch.type, (theano.sparse.SparseType, CudaNdarrayType)):
            raise TypeError('%s is not dense' % batch)
        if not isinstance(batch.type, T.TensorType) or batch.ndim != 2:
            raise TypeError('%s is no batch' % batch)
        for value in get_debug_values(batch):
            assert value.shape[1] == self.dim


def shared_x(value, name):
    return theano.shared(theano._asarray(value, dtype=theano.config.floatX), name=name)


class Convolution(object):
    """Images to maps of features, and back."""

    def __init__(self, rng, image, filters):
        self.image, self.shape = tuple(image), tuple(filters)
        self.W = shared_x(rng.uniform(-.3, .3, self.shape), 'filters')

    def forward(self, x):
        return conv2d(x, self.W, image_shape=(None,) + self.image, filter_shape=self.shape)

    def output_shape(self):
        rows = ConvOp.getOutputShape(self.image[1:], self.shape[2:], (1, 1), 'valid')
        return (self.shape[0],) + tuple(rows)

    def backward(self, maps):
        """Return the transposed map, computed by the op of the forward one."""
        images = T.tensor4()
        z = conv2d(images, self.W, image_shape=(None,) + self.image, filter_shape=self.shape)
        found, _ = z.owner.op.grad((images, self.W), (maps,))
        return found


def argument_of_softmax(p):
    """Return the argument of a softmax, also of one that is printed."""
    owner = p.owner
    assert owner is not None
    if isinstance(owner.op, Print):
        assert len(owner.inputs) == 1
        owner = owner.inputs[0].owner
    if not isinstance(owner.op, T.nnet.Softmax):
        raise ValueError('%s is computed by %s' % (p, owner.op))
    z, = owner.inputs
    assert z.ndim == 2
    return z


def argument_of_sigmoid(p):
    op = p.owner.op
    assert hasattr(op, 'scalar_op')
    assert isinstance(op.scalar_op, T.nnet.sigm.ScalarSigmoid)
    z, = p.owner.inputs
    return z


class Network(object):
    def __init__(self, rng, side=6, n_classes=3, most_norm=1.5):
        self.space, self.target = Space(side * side), Space(n_classes)
        self.convolution = Convolution(rng, (1, side, side), (4, 1, 3, 3))
        n = int(np.prod(self.convolution.output_shape()))
        self.V = shared_x(rng.uniform(-.1, .1, (n, n_classes)), 'softmax_W')
        self.b = shared_x(np.zeros(n_classes), 'softmax_b')
        self.side, self.most_norm = side, most_norm

    def params(self):
        return [self.convolution.W, self.V, self.b]

    def maps(self, x):
        self.space.validate(x)
        images = x.reshape((x.shape[0], 1, self.side, self.side))
        return T.nnet.sigmoid(self.convolution.forward(images))

    def fprop(self, x):
        z = T.dot(self.maps(x).flatten(2), self.V) + self.b
        return T.nnet.softmax(z)

    def cost(self, y, p):
        z = argument_of_softmax(p)
        z = z - z.max(axis=1).dimshuffle(0, 'x')
        log_p = z - T.log(T.exp(z).sum(axis=1).dimshuffle(0, 'x'))
        return -(y * log_p).sum(axis=1).mean()

    def reconstruction(self, x):
        """Compute how well the maps, which do not learn from it, distinguish the images."""
        back = self.convolution.backward(block_gradient(self.maps(x)))
        return T.sqr(T.nnet.sigmoid(back).flatten(2) - x).mean()

    def constrain(self, updates):
        W = updates[self.V]
        norms = T.sqrt(T.sum(T.sqr(W), axis=0))
        updates[self.V] = W * (T.clip(norms, 0, self.most_norm) / (1e-7 + norms))


class Descent(object):
    """Descent with momentum, and what it monitors."""

    def __init__(self, network, seen, rate=.2, momentum=.8):
        self.network = network
        x, y = network.space.make_batch('x'), network.target.make_batch('y')
        p = Print('p', attrs=())(network.fprop(Callback(seen)(x)))
        cost = network.cost(y, p)
        cost.name = 'objective'
        self.rate = shared_x(rate, 'learning_rate')
        params = network.params()
        grads = OrderedDict(zip(params, theano.gradient.grad(cost, params)))
        updates = OrderedDict()
        for param in params:
            inc = shared_x(param.get_value() * 0., 'inc_' + param.name)
            updates[inc] = momentum * inc - self.rate * grads[param]
            updates[param] = param + updates[inc]
            updates[param].name = 'sgd_update(%s)' % param.name
        network.constrain(updates)
        self.step = theano.function([x, y], updates=updates, on_unused_input='ignore')
        wrong = T.neq(T.argmax(p, axis=1), T.argmax(y, axis=1)).mean()
        self.channels = [shared_x(0., name) for name in ('cost', 'wrong', 'reconstruction')]
        values = [cost, wrong, network.reconstruction(x)]
        weight = T.cast(x.shape[0], theano.config.floatX)
        total = T.scalar()
        self.accumulate = theano.function(
            [x, y, total],
            updates=[(c, c + T.cast(v, c.dtype) * weight / total)
                     for c, v in zip(self.channels, values)],
        )
        self.cost, self.inputs = cost, [x, y]

    def monitor(self, batches):
        for channel in self.channels:
            channel.set_value(0.)
        total = sum(len(x) for x, _ in batches)
        for x, y in batches:
            self.accumulate(x, y, total)
        return [float(channel.get_value()) for channel in self.channels]


def pictures(rng, n, side=6):
    """Rows, columns or checks, with noise; and which, one-hot."""
    kind = rng.randint(3, size=n)
    phase = rng.randint(2, size=(n, 1, 1))
    i, j = np.mgrid[:side, :side]
    plain = np.stack([i + phase[k] * 1 if kind[k] == 0 else j + phase[k] if kind[k] == 1
                      else i + j + phase[k] for k in xrange(n)])
    x = (plain.reshape(n, -1) % 2 + .3 * rng.randn(n, side * side)).astype(theano.config.floatX)
    return x, np.eye(3, dtype=theano.config.floatX)[kind]


def train(n_updates=80):
    rng = np.random.RandomState(0)
    shapes = []
    network = Network(rng)
    descent = Descent(network, lambda value: shapes.append(value.shape))
    tests = [pictures(rng, 30) for _ in xrange(3)]
    before = descent.monitor(tests)
    for _ in xrange(n_updates):
        descent.step(*pictures(rng, 20))
    return before, descent.monitor(tests), descent, shapes
