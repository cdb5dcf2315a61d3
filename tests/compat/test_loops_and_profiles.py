"""Loops with memory, composites, graphs with variables exchanged, and what profiles are asked."""

import numpy as np
import pytest


def test_loops_that_are_given_memory(theano):
    from theano.sandbox.scan import scan

    T = theano.tensor
    x0, s = T.dvector("x0"), T.dvector("s")
    last, _ = scan(lambda x: x + 1, states=T.unbroadcast(T.shape_padleft(x0), 0), n_steps=5)
    np.testing.assert_array_equal(last.eval({x0: [1.0, 2.0]}), [[6.0, 7.0]])
    memory = T.set_subtensor(T.alloc(T.constant(0.0), 4, x0.shape[0])[0], x0)
    every, _ = scan(lambda x: x * 2, states=memory, n_steps=3)
    np.testing.assert_array_equal(every.eval({x0: [1.0]}), [[1], [2], [4], [8]])
    np.testing.assert_array_equal(T.grad(every[-1].sum(), x0).eval({x0: [1.0]}), [8.0])
    begun = T.set_subtensor(T.zeros((7,))[:2], 1.0)
    (sums, products), updates = scan(
        lambda a, before, y, p: (before + y, p * a),
        sequences=s, states=[{"membuf": begun, "taps": [-2, -1]}, {"steps": 2}], params=[3.0],
        n_steps=5,
    )  # fmt: skip
    found = theano.function([s], [sums, products], updates=updates)(np.arange(5.0))
    np.testing.assert_array_equal(found[0], [1, 1, 2, 3, 5, 8, 13])
    np.testing.assert_array_equal(found[1], [9.0, 12.0])
    with pytest.raises(TypeError, match="n_steps is missing"):
        scan(lambda x: x, states=x0)
    with pytest.raises(ValueError, match="no membuf"):
        scan(lambda x: x, states={"taps": [-1]}, n_steps=2)


def test_composites(theano):
    T, scalar = theano.tensor, theano.scalar
    a, b = scalar.float64("a"), scalar.float64("b")
    op = scalar.Composite([a, b], [a * b + 1, scalar.exp(a)])
    v, w = T.dvector("v"), T.dmatrix("w")
    first, second = T.Elemwise(op)(v, w)
    f = theano.function([v, w], [first, second, T.grad(first.sum(), v)])
    x, y = np.array([1.0, 2.0]), np.array([[3.0, 4.0], [5.0, 6.0]])
    for got, want in zip(f(x, y), [x * y + 1, np.exp(x), y.sum(axis=0)], strict=True):
        np.testing.assert_allclose(got, want)
    with pytest.raises(TypeError, match="no scalar function"):
        scalar.Composite([a], [T.stack([a, a])])
    with pytest.raises(ValueError, match="neither inputs nor constants"):
        scalar.Composite([a], [a + b])
    with pytest.raises(TypeError, match="1 arguments for 2 inputs"):
        op(v)


def test_variables_exchanged_everywhere(theano):
    from theano.scan_module.scan_utils import map_variables

    T = theano.tensor
    x, w, noise = T.dvector("x"), theano.shared(2.0, name="w"), theano.shared(10.0)

    def step(row, state):
        hidden = state * w
        hidden.tag.noisy = True
        return hidden + row

    def noisy(v):
        return v + noise if getattr(v.tag, "noisy", False) else v

    rows, _ = theano.scan(step, sequences=x, outputs_info=[T.constant(1.0)])
    (last,) = map_variables(noisy, [rows[-1]])
    f = theano.function([x], [rows[-1], last])
    assert [float(v) for v in f([1.0, 2.0])] == [8.0, (1 * 2 + 10 + 1) * 2 + 10 + 2]


def test_what_profiles_are_asked(theano):
    x = theano.tensor.dvector("x")
    f = theano.function([x], theano.tensor.exp(x).sum(), profile=True)
    for _ in range(3):
        f([1.0, 2.0])
    profile = f.profile
    (node,) = profile.apply_time
    assert profile.fct_callcount == 3 and profile.apply_callcount == {node: 3}
    assert profile.fct_call_time >= profile.vm_call_time > 0
    assert profile.compile_time >= profile.optimizer_time + profile.linker_time > 0
    assert list(profile.op_time()) == [node.op]
    assert profile.class_callcount() == {type(node.op): 3}
    assert profile.op_nodes() == {node.op: 1} and profile.nb_nodes == 1
    assert set(profile.apply_cimpl) == {node}
