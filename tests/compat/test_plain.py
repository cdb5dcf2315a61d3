"""Theano's plain Python helpers, shapes of whole graphs, products of blocks, names of sigmoids."""

import numpy as np
import pytest

RNG = np.random.default_rng(0)


def test_helpers(theano):
    from theano.gof.utils import (
        deprecated,
        difference,
        flatten,
        give_variables_names,
        memoize,
        uniq,
    )
    from theano.misc.ordered_set import OrderedSet

    calls = []

    @memoize
    def square(n):
        calls.append(n)
        return n * n

    assert [square(2), square(2), square(3)] == [4, 4, 9] and calls == [2, 3]
    assert flatten([1, (2, [3]), [[]]]) == [1, 2, 3]
    assert uniq([3, 1, 3]) == [3, 1] and difference([1, 2, 3], [2]) == [1, 3]
    with pytest.warns(UserWarning, match="old.uniq is deprecated. Use g"):
        deprecated("old", "Use g")(uniq)([1])
    x, y, z = theano.tensor.dscalar(), theano.tensor.dscalar("x"), theano.tensor.dscalar("x")
    assert len({*give_variables_names([x, y, z])}) == 3
    found = OrderedSet([3, 1, 3])
    found.add(2)
    found.discard(3)
    assert list(found) == [1, 2] and found == {2, 1} and found != OrderedSet([2, 1])


def test_orders_and_connections(theano):
    from theano.gof.graph import general_toposort, io_connection_pattern

    after = {"c": ["a", "b"], "b": ["a"], "a": []}
    assert general_toposort(["c"], after.get) == ["a", "b", "c"]
    with pytest.raises(ValueError, match="cycles"):
        general_toposort(["a"], {"a": ["b"], "b": ["a"]}.get)
    x, y = theano.tensor.dvectors("xy")
    outputs = [x + 1, x[theano.tensor.argmax(y)]]
    assert io_connection_pattern([x, y], outputs) == [[True, True], [False, False]]


def test_values_that_are_nearly_equal(theano):
    from theano.tensor import type as types

    a = np.array([1.0, np.nan, np.inf])
    assert types.values_eq_approx(a, a + 1e-9) and not types.values_eq_approx(a, a + 1e-2)
    assert not types.values_eq_approx(a, a.astype("float32"))
    other = np.array([1.0, 0.0, np.inf])
    assert not types.values_eq_approx(a, other) and types.values_eq_approx_remove_nan(a, other)
    assert types.values_eq_approx_remove_inf_nan(a, np.array([1.0, 2.0, 3.0]))
    assert not types.values_eq_approx_remove_inf(a, np.array([2.0, np.nan, 3.0]))


def test_shapes_of_a_graph(theano):
    from theano.tensor.utils import shape_of_variables

    x = theano.tensor.dmatrix("x")
    y = theano.tensor.dot(x, x.T).sum(axis=0)
    graph = theano.gof.FunctionGraph([x], [y], clone=False)
    shapes = shape_of_variables(graph, {x: (2, 3)})
    assert shapes[x] == (2, 3) and shapes[y.owner.inputs[0]] == (2, 2) and shapes[y] == (2,)


def test_names_of_sigmoids(theano):
    from theano.tensor.nnet.sigm import ScalarSigmoid, ScalarSoftplus, scalar_sigmoid

    T = theano.tensor
    y = T.nnet.sigmoid(T.dvector("x"))
    assert isinstance(y.owner.op.scalar_op, ScalarSigmoid)
    assert not isinstance(y.owner.op.scalar_op, ScalarSoftplus)
    assert T.Elemwise(scalar_sigmoid)(y).owner.op == y.owner.op


def test_products_of_blocks(theano):
    from theano.tensor.nnet.blocksparse import sparse_block_dot, sparse_block_outer

    w, h, b = (RNG.normal(size=s) for s in ((4, 5, 2, 3), (2, 2, 2), (5, 3)))
    rows, columns = np.array([[0, 3], [1, 2]]), np.array([[0, 4, 1], [2, 2, 3]])
    expected, gradient = b[columns].copy(), np.zeros(w.shape)
    g = RNG.normal(size=(2, 3, 3))
    for n, i, j in np.ndindex(2, 2, 3):
        expected[n, j] += h[n, i] @ w[rows[n, i], columns[n, j]]
        gradient[rows[n, i], columns[n, j]] += np.outer(h[n, i], g[n, j])
    W = theano.shared(w)
    z = sparse_block_dot(W, h, rows, b, columns)
    np.testing.assert_allclose(z.eval(), expected)
    np.testing.assert_allclose(theano.grad((z * g).sum(), W).eval(), gradient)
    np.testing.assert_allclose(
        sparse_block_outer(np.zeros(w.shape), h, g, rows, columns).eval(), gradient
    )
    one = sparse_block_dot(W, h[0], rows[0], b, columns[0]).eval()
    np.testing.assert_allclose(one, expected[0])
