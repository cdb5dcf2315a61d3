"""Random expressions: both modes against finite differences, and against each other."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import symcomp
import symcomp.tensor as T
from symcomp.gradient import verify_grad
from symcomp.ifelse import ifelse

VALUES = [np.array([[0.3, -1.2, 0.8], [1.1, 0.4, -0.6]]), np.array([0.5, -0.9, 1.3])]

# Smooth functions of one (2, 3) matrix, and of two.
UNARY = (
    T.tanh,
    T.sin,
    T.nnet.sigmoid,
    lambda a: T.exp(-T.sqr(a)),
    lambda a: a[::-1],
    lambda a: a[:, [2, 0, 1]],
    lambda a: T.nnet.softmax(a),
    lambda a: T.cumsum(a, axis=1) / 3,
    lambda a: a.T.reshape((2, 3)),
    lambda a: T.set_subtensor(a[0, 1:], a[1, :2] * 2),
    lambda a: T.sort(a, axis=1),
    lambda a: T.dot(a, T.dot(a.T, a)) / 4,
    lambda a: a - a.mean(axis=0, keepdims=True),
    lambda a: ifelse(a[0, 0] > 0.123, T.cos(a), a * 2),
    lambda a: T.concatenate([a[:1], a[1:] ** 2]),
)
BINARY = (
    T.add,
    T.mul,
    T.logaddexp,
    lambda a, b: a / (2 + T.cos(b)),
    lambda a, b: T.switch(T.gt(a, b), a, b * 0.5),
    lambda a, b: T.dot(T.dot(a, b.T), a) / 3,
)


def build(matrix, vector, choices):
    """Build the expression that a list of numbers encodes."""
    pool = [matrix, matrix * vector, T.outer(vector[:2], vector)]
    for which, first, second in choices:
        a, b = pool[first % len(pool)], pool[second % len(pool)]
        op = which % (len(UNARY) + len(BINARY))
        pool.append(UNARY[op](a) if op < len(UNARY) else BINARY[op - len(UNARY)](a, b))
    return pool[-1] + pool[len(pool) // 2] + pool[1] / 8


NUMBER = st.integers(0, 100)
CHOICES = st.lists(st.tuples(NUMBER, NUMBER, NUMBER), min_size=1, max_size=6)


@settings(deadline=None, max_examples=40)
@given(CHOICES)
def test_both_modes_agree_with_finite_differences(choices):
    verify_grad(lambda m, v: build(m, v, choices), VALUES, n_tests=1, abs_tol=1e-4, rel_tol=1e-4)


@settings(deadline=None, max_examples=25)
@given(CHOICES)
def test_second_derivatives_are_symmetric_and_agree(choices):
    m, v = T.dmatrix("m"), T.dvector("v")
    dm, dv = T.dmatrix("dm"), T.dvector("dv")
    cost = T.tanh(build(m, v, choices)).sum()
    gm, gv = symcomp.grad(cost, [m, v])
    forward = symcomp.Rop(gm, v, dv)
    reverse = symcomp.grad((gv * dv).sum(), m, disconnected_inputs="ignore")
    mixed = symcomp.grad(symcomp.Rop(cost, v, dv), m, disconnected_inputs="ignore")
    swapped = (symcomp.Rop(gv, m, dm) * dv).sum() - (forward * dm).sum()
    f = symcomp.function([m, v, dm, dv], [forward, reverse, mixed, swapped])
    a, b, c, zero = f(*VALUES, np.cos(VALUES[0]), np.sin(VALUES[1]))
    np.testing.assert_allclose(a, b, rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(a, c, rtol=1e-8, atol=1e-9)
    assert abs(zero) < 1e-8
