"""A recurrent classifier whose graphs are searched, changed and monitored by marks on variables."""

from collections import OrderedDict

import numpy
import theano
from theano import tensor
from theano.gof import graph
from theano.gof.graph import Constant, is_same_graph
from theano.ifelse import ifelse
from theano.sandbox.rng_mrg import MRG_RandomStreams
from theano.scan_module.scan_op import Scan
from theano.tensor.shared_randomstreams import RandomStateSharedVariable
from theano.tensor.sharedvar import SharedVariable


def marked(variable, role, name):
    """Return a copy of a variable that carries a role."""
    twin = variable.copy()
    twin.name = name
    twin.tag.role = role
    return twin


class Graph(object):
    """All variables that some outputs depend on, those inside loops too."""

    def __init__(self, outputs):
        self.outputs = outputs
        inputs = graph.inputs(reversed(outputs))
        nodes = graph.io_toposort(inputs, outputs)
        self.scans = [node.op for node in nodes if isinstance(node.op, Scan)]
        every = [v for node in nodes for v in node.inputs] + list(outputs)
        self.variables = list(OrderedDict.fromkeys(every))
        self.inner = [v for op in self.scans for v in Graph(op.outputs).variables]

    @property
    def shared(self):
        return [
            v for v in self.variables
            if isinstance(v, SharedVariable) and not isinstance(v, RandomStateSharedVariable)
        ]

    @property
    def inputs(self):
        return [
            v for v in self.variables
            if not v.owner and not isinstance(v, (SharedVariable, Constant))
        ]

    def of_role(self, role):
        return [v for v in self.variables if getattr(v.tag, 'role', None) == role]

    def replace(self, pairs):
        """Replace one variable after the other; each replacement applies to the following ones."""
        outputs, olds, news = list(self.outputs), [old for old, _ in pairs], [new for _, new in pairs]
        while olds:
            n, k = len(outputs), len(olds) - 1
            found = theano.clone(outputs + olds[1:] + news[1:], replace={olds[0]: news[0]})
            outputs, olds, news = found[:n], found[n:n + k], found[n + k:]
        return Graph(outputs)


def parameter(value, name):
    v = theano.shared(value.astype(theano.config.floatX), name=name)
    v.tag.role = 'parameter'
    return v


class Recurrent(object):
    """h[t] = tanh(x[t] + h[t - 1] W), from a learned initial state."""

    def __init__(self, rng, dim):
        self.W = parameter(0.3 * rng.randn(dim, dim), 'W')
        self.start = parameter(numpy.zeros(dim), 'start')

    def step(self, x, h):
        return marked(tensor.tanh(x + tensor.dot(h, self.W)), 'state', 'h')

    def apply(self, x, with_start=False):
        start = tensor.unbroadcast(tensor.repeat(self.start[None, :], x.shape[1], 0), 0, 1)

        def step(x, h):
            self.inner = [x, h]
            self.given = self.step(x, h)
            return self.given

        h, updates = theano.scan(step, sequences=[x], outputs_info=[start], n_steps=x.shape[0])
        assert not updates
        if with_start:
            assert isinstance(h.owner.op, tensor.subtensor.Subtensor)
            h = h.owner.inputs[0]
        return h


def accumulated_mean(total, count):
    """Updates that begin, and that go on with, a mean over batches; and the mean."""
    def like(v):
        v = tensor.as_tensor_variable(v)
        return theano.shared(numpy.zeros((0,) * v.ndim, dtype=v.dtype))

    begun, totals, counts = like(0.), like(total), like(count)
    begin = [(v, tensor.zeros_like(v)) for v in (totals, counts)] + [(begun, 0.)]
    go_on = [
        (totals, ifelse(begun, total + totals, total)),
        (counts, ifelse(begun, count + counts, count)),
        (begun, 1.),
    ]
    return begin, go_on, totals / counts


class Classifier(object):
    """Whether the first and the last row of a sequence have the same sign."""

    def __init__(self, seed=0, dim=8):
        rng = numpy.random.RandomState(seed)
        self.x, self.y = tensor.tensor3('x'), tensor.lvector('y')
        self.V = parameter(rng.randn(1, dim), 'V')
        self.recurrent = Recurrent(rng, dim)
        self.U = parameter(0.3 * rng.randn(dim, 2), 'U')
        h = self.recurrent.apply(tensor.dot(self.x, self.V))
        features = marked(h[-1], 'features', 'features')
        p = tensor.nnet.softmax(tensor.dot(features, self.U))
        self.cost = tensor.nnet.categorical_crossentropy(p, self.y).mean()
        wrong = tensor.neq(self.y, p.argmax(axis=1)).sum()
        self.monitor = accumulated_mean(wrong, self.y.shape[0])

    def training(self, rate, dropped, seed=1):
        """Compile a step of descent, with some of the features dropped out."""
        noise = MRG_RandomStreams(seed)
        whole = Graph([self.cost])
        pairs = [
            (v, v * noise.binomial(v.shape, p=1 - dropped, dtype=v.dtype) / (1 - dropped))
            for v in whole.of_role('features')
        ]
        noisy = whole.replace(pairs)
        parameters = noisy.of_role('parameter')
        slopes = tensor.grad(noisy.outputs[0], parameters)
        updates = []
        for p, g in zip(parameters, slopes):
            mean = theano.shared(p.get_value() * 0., name=p.name + '_mean_square')
            new = 0.9 * mean + 0.1 * g ** 2
            updates += [(mean, new), (p, p - rate * g / tensor.sqrt(new + 1e-6))]
        return theano.function([self.x, self.y], noisy.outputs[0], updates=updates)


def batch(rng, n_steps, n):
    x = rng.randn(n_steps, n, 1).astype(theano.config.floatX)
    return x, (x[0, :, 0] * x[-1, :, 0] > 0).astype('int64')


def train(n_updates=300):
    model = Classifier()
    step = model.training(0.02, 0.1)
    begin, go_on, mean = model.monitor
    begin = theano.function([], updates=begin)
    go_on = theano.function([model.x, model.y], updates=go_on)
    read = theano.function([], mean)
    rng = numpy.random.RandomState(2)
    tests = [batch(rng, 3, 50) for _ in range(4)]

    def errors():
        begin()
        for values in tests:
            go_on(*values)
        return float(read())

    before = errors()
    costs = [float(step(*batch(rng, 3, 40))) for _ in range(n_updates)]
    return before, costs, errors(), model


def saved_step(model):
    """Tell whether the step of the loop is the network's computation in one step."""
    recurrent = model.recurrent
    return is_same_graph(recurrent.given, recurrent.step(*recurrent.inner))
