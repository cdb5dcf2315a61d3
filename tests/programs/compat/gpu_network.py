"""A convolutional network on a GPU, in the manner of programs for Theano 1.0's gpuarray."""

import numpy as np
import theano
import theano.tensor as T
from theano.gpuarray import GpuArrayType, gpuarray_shared_constructor
from theano.gpuarray.basic_ops import (
    GpuFromHost, HostFromGpu, as_gpuarray_variable, gpu_contiguous, host_from_gpu,
    infer_context_name)
from theano.gpuarray.dnn import dnn_available, dnn_conv, dnn_pool
from theano.gpuarray.type import GpuArraySharedVariable, GpuArrayVariable

try:
    import theano.sandbox.cuda.cuda_ndarray as cuda_ndarray
except ImportError:
    cuda_ndarray = None

try:
    import pygpu
except ImportError:
    pygpu = None

rng = np.random.RandomState(0)


def weights(*shape):
    scale = 1. / np.sqrt(np.prod(shape[1:]) if len(shape) > 1 else 1)
    return gpuarray_shared_constructor((rng.uniform(-1, 1, shape) * scale).astype('float32'))


class Network(object):
    def __init__(self, x, y):
        assert dnn_available(None) and theano.gpuarray.pygpu_activated
        self.params = [weights(6, 1, 3, 3), weights(6), weights(6 * 3 * 3, 4), weights(4)]
        w, b, v, c = self.params
        image = gpu_contiguous(as_gpuarray_variable(x, infer_context_name(w)))
        assert isinstance(image, GpuArrayVariable)
        conv = dnn_conv(image, w, border_mode='valid', conv_mode='cross')
        assert isinstance(conv.type, GpuArrayType)
        pooled = dnn_pool(T.tanh(host_from_gpu(conv) + b.dimshuffle('x', 0, 'x', 'x')), (2, 2),
                          stride=(2, 2), mode='max')
        hidden = host_from_gpu(pooled).flatten(2)
        self.p = T.nnet.softmax(T.dot(hidden, v) + c)
        self.cost = T.nnet.categorical_crossentropy(self.p, y).mean()
        self.updates = [(p, p - np.float32(0.3) * g)
                        for p, g in zip(self.params, T.grad(self.cost, self.params))]


def batch(n):
    """Images with a bright row or column in one of two places."""
    x, y = rng.uniform(0, .2, (n, 1, 8, 8)).astype('float32'), rng.randint(0, 4, n)
    for image, kind in zip(x[:, 0], y):
        (image if kind < 2 else image.T)[2 if kind % 2 else 5] += 1
    return x, y.astype('int32')


def train(steps=60):
    x, y = T.tensor4('x', dtype='float32'), T.ivector('y')
    network = Network(x, y)
    step = theano.function([x, y], network.cost, updates=network.updates)
    costs = [float(step(*batch(20))) for _ in range(steps)]
    predict = theano.function([x], T.argmax(network.p, axis=1))
    images, labels = batch(100)
    return costs, float(np.mean(predict(images) == labels)), step, network


def transfers(f):
    """Count the copies in a function, as programs did to see what ran on the GPU."""
    ops = [node.op for node in f.maker.fgraph.toposort()]
    return (sum(isinstance(op, GpuFromHost) for op in ops),
            sum(isinstance(op, HostFromGpu) for op in ops))


def lives_on_the_gpu(variable):
    return isinstance(variable, GpuArraySharedVariable)
