"""Skip-grams with negative samples: rows of the embeddings change by inc_subtensor."""

import numpy as np
import theano
import theano.tensor as T


def build(n_words, dim, lr):
    rng = np.random.RandomState(3)
    floatX = theano.config.floatX
    W = theano.shared((rng.rand(n_words, dim).astype(floatX) - 0.5) / dim, name="W")
    C = theano.shared(np.zeros((n_words, dim), dtype=floatX), name="C")
    center, context = T.ivectors("center", "context")
    negatives = T.imatrix("negatives")
    w, c, n = W[center], C[context], C[negatives]
    positive_score = T.sum(w * c, axis=1)
    negative_score = T.batched_dot(n, w)
    cost = (
        -T.log(T.nnet.sigmoid(positive_score)).sum() - T.log(T.nnet.sigmoid(-negative_score)).sum()
    )
    gw, gc, gn = T.grad(cost, [w, c, n])
    new_C = T.inc_subtensor(c, -lr * gc)
    new_C = T.inc_subtensor(new_C[negatives.flatten()], -lr * gn.reshape((-1, dim)))
    updates = [(W, T.inc_subtensor(w, -lr * gw)), (C, new_C)]
    step = theano.function([center, context, negatives], cost / center.shape[0], updates=updates)
    nearest_inputs = T.iscalar("word")
    unit = W / W.norm(2, axis=1).dimshuffle(0, "x")
    nearest = theano.function([nearest_inputs], T.argsort(-T.dot(unit, unit[nearest_inputs]))[:4])
    return step, nearest, W, cost


def corpus(rng, n_words, n_pairs):
    """Words occur beside words of their own group of four."""
    center = rng.randint(n_words, size=n_pairs).astype("int32")
    context = (center // 4 * 4 + rng.randint(4, size=n_pairs)).astype("int32")
    return center, context


def train(n_words=20, dim=8, n_steps=400, n_negatives=5):
    step, nearest, W, cost = build(n_words, dim, np.asarray(0.05, dtype=theano.config.floatX))
    rng = np.random.RandomState(11)
    history = []
    for _ in range(n_steps):
        center, context = corpus(rng, n_words, 64)
        negatives = rng.randint(n_words, size=(64, n_negatives)).astype("int32")
        history.append(float(step(center, context, negatives)))
    groups = [sorted(int(i) // 4 for i in nearest(word)) for word in range(n_words)]
    return history, groups
