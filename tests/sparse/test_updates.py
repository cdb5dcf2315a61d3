"""Steps of training that change the rows that are read: values, and the memory they need."""

import tracemalloc

import numpy as np
import pytest

import symcomp
import symcomp.tensor as T
from symcomp import sparse
from symcomp.errors import DTypeError, GraphError

N, D = 7, 3
RNG = np.random.default_rng(0)
START, TARGET = RNG.normal(size=(N, D)), RNG.normal(size=(4, D))
IDS = [np.array([5, 1, 5, 0]), np.array([2, 1, 1, 6]), np.array([0, -1, 3, 3])]
MODE = symcomp.Mode(linker="vm")


def gradient(w, ids):
    g = np.zeros_like(w)
    np.add.at(g, ids, 2 * (w[ids] - TARGET))
    return g


def trained(method, **options):
    """Return the table after three steps, and which rows each read."""
    w = symcomp.shared(START.copy(), name="w")
    ids = T.lvector("ids")
    cost = ((w[ids] - TARGET) ** 2).sum()
    step = symcomp.function([ids], cost, updates=method(cost, w, 0.1, **options), mode=MODE)
    for batch in IDS:
        step(batch)
    return w.get_value()


def read_rows(batch):
    mask = np.zeros((N, 1), bool)
    mask[batch] = True
    return mask


def test_gradient_descent():
    w = START.copy()
    for batch in IDS:
        w -= 0.1 * gradient(w, batch)
    np.testing.assert_allclose(trained(sparse.sgd), w)


@pytest.mark.parametrize("lazy", [False, True])
def test_momentum(lazy):
    w, v = START.copy(), np.zeros_like(START)
    for batch in IDS:
        on = read_rows(batch) if lazy else True
        v = np.where(on, 0.9 * v + gradient(w, batch), v)
        w = np.where(on, w - 0.1 * v, w)
    method = sparse.lazy_momentum if lazy else sparse.momentum
    np.testing.assert_allclose(trained(method), w)


@pytest.mark.parametrize("lazy", [False, True])
def test_adam(lazy):
    w, m, v = START.copy(), np.zeros_like(START), np.zeros_like(START)
    for t, batch in enumerate(IDS, start=1):
        on, g = read_rows(batch) if lazy else True, gradient(w, batch)
        m, v = (np.where(on, b * s + (1 - b) * x, s) for b, s, x in ((0.9, m, g), (0.99, v, g**2)))
        rate = 0.1 * np.sqrt(1 - 0.99**t) / (1 - 0.9**t)
        w = np.where(on, w - rate * m / (np.sqrt(v) + 1e-8), w)
    method = sparse.lazy_adam if lazy else sparse.adam
    np.testing.assert_allclose(trained(method, beta2=0.99), w)


def test_adagrad():
    w, h = START.copy(), np.zeros_like(START)
    for batch in IDS:
        g = gradient(w, batch)
        h += g**2
        w -= 0.1 * g / (np.sqrt(h) + 1e-8)
    np.testing.assert_allclose(trained(sparse.adagrad), w)


METHODS = ("sgd", "momentum", "lazy_momentum", "adam", "lazy_adam", "adagrad")


@pytest.mark.parametrize("name", METHODS)
def test_dense_parameters_too(name):
    """A parameter that is not read by rows alone has the usual updates of the method."""
    w, b = symcomp.shared(START.copy(), name="w"), symcomp.shared(np.ones(D), name="b")
    ids = T.lvector("ids")
    cost = ((w[ids] + b - TARGET) ** 2).sum() + (b**2).sum()
    ups = getattr(sparse, name)(cost, [w, b], 0.05)
    step = symcomp.function([ids], cost, updates=ups, mode=MODE)
    costs = [step(IDS[0]) for _ in range(30)]
    assert costs[-1] < costs[0] * 0.9


@pytest.mark.parametrize("name", METHODS)
def test_no_memory_of_the_size_of_the_table(name):
    """The table has 2.6 MB; all that a step allocates is a fraction of it."""
    table = np.ones((20_000, 16))
    w, ids = symcomp.shared(table, name="w", borrow=True), T.lvector("ids")
    cost = (w[ids] ** 2).sum()
    step = symcomp.function([ids], cost, updates=getattr(sparse, name)(cost, w, 0.1))
    batch = RNG.integers(0, len(table), 64)
    del table
    step(batch)
    tracemalloc.start()
    step(batch)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 1.3e6


def test_rows_of_a_gradient():
    w, ids = T.dmatrix("w"), T.lmatrix("ids")
    cost = (w[ids] ** 3).sum() + w[ids[0]].sum()
    places = np.array([[2, 0], [-1, 2]])
    wanted = symcomp.function([w, ids], symcomp.grad(cost, w), mode=MODE)(START, places)
    for distinct in (True, False):
        g = sparse.row_gradient(cost, w, distinct)
        found, rows = symcomp.function([w, ids], list(g), mode=MODE)(START, places)
        dense = np.zeros_like(START)
        np.add.at(dense, found, rows)
        np.testing.assert_allclose(dense, wanted)
        assert (len(set(found)) == len(found)) == distinct


def test_other_reads_are_told():
    w, ids = T.dmatrix("w"), T.lvector("ids")
    with pytest.raises(GraphError, match=r"not read by rows alone: pow.* reads it"):
        sparse.row_gradient((w[ids] ** 2).sum() + (w**2).sum(), w)
    with pytest.raises(GraphError, match="nothing reads it"):
        sparse.row_gradient(T.dscalar("c"), w)
    with pytest.raises(TypeError, match="no shared variable"):
        sparse.sgd((w[ids] ** 2).sum(), w)
    with pytest.raises(DTypeError, match="is not floating"):
        sparse.sgd(T.dscalar("c"), symcomp.shared(np.ones(3, int)))


def test_rows_that_do_not_exist_change_nothing():
    w, ids = symcomp.shared(START.copy()), T.lvector("ids")
    cost = (w[ids] ** 2).sum()
    for name in METHODS:
        step = symcomp.function([ids], cost, updates=getattr(sparse, name)(cost, w, 0.1))
        with pytest.raises(IndexError):
            step([N])
        np.testing.assert_array_equal(w.get_value(), START)
