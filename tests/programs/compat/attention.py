"""A recurrent network reads symbols, another one writes them backwards, attending to the input."""

from collections import OrderedDict

import numpy
import theano
from theano import tensor
from theano.sandbox.rng_mrg import MRG_RandomStreams as RandomStreams

floatX = theano.config.floatX


def weights(rng, *shape):
    return (0.3 * rng.randn(*shape)).astype(floatX)


def init_params(rng, n_symbols, dim_symbol, dim):
    params = OrderedDict()
    params['symbols'] = weights(rng, n_symbols, dim_symbol)
    for prefix in ('forward', 'backward'):
        params[prefix + '_W'] = weights(rng, dim_symbol, 2 * dim)
        params[prefix + '_U'] = weights(rng, dim, 2 * dim)
        params[prefix + '_b'] = numpy.zeros((2 * dim,), dtype=floatX)
    params['start_W'] = weights(rng, 2 * dim, dim)
    params['write_W'] = weights(rng, dim_symbol, dim)
    params['write_U'] = weights(rng, dim, dim)
    params['write_C'] = weights(rng, 2 * dim, dim)
    params['look_C'] = weights(rng, 2 * dim, dim)
    params['look_U'] = weights(rng, dim, dim)
    params['look_v'] = weights(rng, dim, 1)
    params['out_W'] = weights(rng, dim, n_symbols)
    params['out_C'] = weights(rng, 2 * dim, n_symbols)
    return OrderedDict((k, theano.shared(v, name=k)) for k, v in params.items())


def _slice(x, n, dim):
    return x[:, n * dim:(n + 1) * dim]


def read(tparams, prefix, below, mask):
    """Apply a layer of gated units to (time, samples, features)."""
    U = tparams[prefix + '_U']
    dim = U.shape[0]

    def _step(m_, x_, h_, U):
        preact = x_ + tensor.dot(h_, U)
        u = tensor.nnet.sigmoid(_slice(preact, 0, dim))
        h = u * h_ + (1. - u) * tensor.tanh(_slice(preact, 1, dim))
        return m_[:, None] * h + (1. - m_)[:, None] * h_

    below = tensor.dot(below, tparams[prefix + '_W']) + tparams[prefix + '_b']
    rval, _ = theano.scan(
        _step, sequences=[mask, below],
        outputs_info=[tensor.alloc(numpy.asarray(0., floatX), below.shape[1], dim)],
        non_sequences=[U], name=prefix, n_steps=below.shape[0], strict=True,
    )
    return rval


def write(tparams, below, mask, start, context, context_mask):
    seen = tensor.dot(context, tparams['look_C'])

    def _step(m_, x_, h_, ctx_, alpha_, seen_, cc_, W, U, C, V, v):
        alpha = tensor.dot(tensor.tanh(seen_ + tensor.dot(h_, V)[None, :, :]), v)
        alpha = alpha.reshape([alpha.shape[0], alpha.shape[1]])
        alpha = tensor.exp(alpha - alpha.max(0, keepdims=True)) * context_mask
        alpha = alpha / alpha.sum(0, keepdims=True)
        ctx = (cc_ * alpha[:, :, None]).sum(0)
        h = tensor.tanh(tensor.dot(x_, W) + tensor.dot(h_, U) + tensor.dot(ctx, C))
        return m_[:, None] * h + (1. - m_)[:, None] * h_, ctx, alpha.T

    zero = numpy.asarray(0., floatX)
    rval, _ = theano.scan(
        _step, sequences=[mask, below],
        outputs_info=[start,
                      tensor.alloc(zero, below.shape[1], context.shape[2]),
                      tensor.alloc(zero, below.shape[1], context.shape[0])],
        non_sequences=[seen, context] + [
            tparams[k] for k in ('write_W', 'write_U', 'write_C', 'look_U', 'look_v')
        ],
        name='write', n_steps=below.shape[0],
    )
    return rval


def build_model(tparams, n_symbols):
    trng = RandomStreams(1234)
    use_noise = theano.shared(numpy.asarray(0., floatX))
    x, y = tensor.matrix('x', dtype='int64'), tensor.matrix('y', dtype='int64')
    x_mask, y_mask = tensor.matrix('x_mask', dtype=floatX), tensor.matrix('y_mask', dtype=floatX)
    dim_symbol = tparams['symbols'].shape[1]
    emb = tparams['symbols'][x.flatten()].reshape([x.shape[0], x.shape[1], dim_symbol])
    ahead = read(tparams, 'forward', emb, x_mask)
    back = read(tparams, 'backward', emb[::-1], x_mask[::-1])[::-1]
    context = tensor.concatenate([ahead, back], axis=ahead.ndim - 1)
    mean = (context * x_mask[:, :, None]).sum(0) / x_mask.sum(0)[:, None]
    start = tensor.tanh(tensor.dot(mean, tparams['start_W']))
    emb = tparams['symbols'][y.flatten()].reshape([y.shape[0], y.shape[1], dim_symbol])
    shifted = tensor.set_subtensor(tensor.zeros_like(emb)[1:], emb[:-1])
    h, ctx, alphas = write(tparams, shifted, y_mask, start, context, x_mask)
    h = tensor.switch(use_noise, h * trng.binomial(h.shape, p=0.9, n=1, dtype=h.dtype), h * 0.9)
    logit = tensor.dot(h, tparams['out_W']) + tensor.dot(ctx, tparams['out_C'])
    probs = tensor.nnet.softmax(logit.reshape([y.shape[0] * y.shape[1], n_symbols]))
    at = tensor.arange(y.flatten().shape[0]) * n_symbols + y.flatten()
    cost = -tensor.log(probs.flatten()[at] + 1e-8).reshape([y.shape[0], y.shape[1]])
    cost = ((cost * y_mask).sum(0) / y_mask.sum(0)).mean()
    return use_noise, [x, x_mask, y, y_mask], cost, alphas


def adadelta(tparams, cost, inputs):
    params = list(tparams.values())
    grads = tensor.grad(cost, wrt=params)
    norm = tensor.sqrt(sum((g ** 2).sum() for g in grads))
    grads = [tensor.switch(norm > 1., g / norm, g) for g in grads]
    made = [[theano.shared(p.get_value() * 0, name='%s_%s' % (p.name, k)) for p in params]
            for k in ('grad', 'rup2', 'rgrad2')]
    zgrads, rup2, rgrad2 = made
    zgup = [(zg, g) for zg, g in zip(zgrads, grads)]
    rg2up = [(rg2, 0.95 * rg2 + 0.05 * (g ** 2)) for rg2, g in zip(rgrad2, grads)]
    f_grad_shared = theano.function(inputs, cost, updates=zgup + rg2up)
    updir = [-tensor.sqrt(ru2 + 1e-4) / tensor.sqrt(rg2 + 1e-4) * zg
             for zg, ru2, rg2 in zip(zgrads, rup2, rgrad2)]
    ru2up = [(ru2, 0.95 * ru2 + 0.05 * (ud ** 2)) for ru2, ud in zip(rup2, updir)]
    param_up = [(p, p + ud) for p, ud in zip(params, updir)]
    return f_grad_shared, theano.function([], [], updates=ru2up + param_up)


def batch(rng, n_samples, n_symbols):
    """Words of 2 to 4 symbols, and the same backwards; (time, samples), with masks."""
    lengths = rng.randint(2, 5, size=n_samples)
    x = numpy.zeros((4, n_samples), dtype='int64')
    y, mask = x.copy(), numpy.zeros((4, n_samples), dtype=floatX)
    for i, n in enumerate(lengths):
        x[:n, i] = rng.randint(1, n_symbols, size=n)
        y[:n, i] = x[:n, i][::-1]
        mask[:n, i] = 1.
    return x, mask, y, mask


def train(n_updates=250, n_symbols=6):
    rng = numpy.random.RandomState(1)
    tparams = init_params(rng, n_symbols, 8, 16)
    use_noise, inputs, cost, alphas = build_model(tparams, n_symbols)
    f_grad_shared, f_update = adadelta(tparams, cost, inputs)
    use_noise.set_value(1.)
    costs = []
    for _ in range(n_updates):
        costs.append(float(f_grad_shared(*batch(rng, 30, n_symbols))))
        f_update()
    use_noise.set_value(0.)
    look = theano.function(inputs, alphas, on_unused_input='ignore')
    return costs, look(*batch(rng, 5, n_symbols)), tparams, cost, inputs
