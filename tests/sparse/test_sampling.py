"""Sparse matrices drawn at random: patterns, distributions, states."""

import numpy as np
import pytest
import scipy.sparse as sp

import symcomp
import symcomp.tensor as T
from symcomp import sparse
from symcomp.errors import ShapeError
from symcomp.sparse.values import is_canonical
from symcomp.tests.sparse.harness import MODE, assert_same_pattern


def stream(seed=1):
    return T.random.RandomStream(seed=seed)


def test_uniform_entries_at_random_places():
    s = stream()
    x, y = s.gen(sparse.random, 40, 30, 0.1), s.gen(sparse.random, 5, 4, 1.0, "csc", "float32")
    f = symcomp.function([], [x, y], mode=MODE)
    a, b = f()
    assert a.nnz == 120 and a.shape == (40, 30) and is_canonical(a) and 0 <= a.data.min() < 1
    assert b.format == "csc" and b.dtype == "float32" and b.nnz == 20
    assert (f()[0] != a).nnz > 0
    again = symcomp.function([], stream().gen(sparse.random, 40, 30, 0.1), mode=MODE)
    assert (again() != a).nnz == 0


def test_places_are_uniform():
    s = stream(3)
    x = s.gen(sparse.random, 4, 5, 0.5)
    f = symcomp.function([], sparse.sp_ones_like(x).toarray(), mode=MODE)
    share = np.mean([f() for _ in range(400)], axis=0)
    # A share of n draws has the deviation 0.5 / sqrt(n); all 20 lie within 5 of them.
    assert abs(share - 0.5).max() < 5 * 0.5 / 20


def test_poisson():
    x = sparse.csr_matrix("x")
    f = symcomp.function([x], stream().gen(sparse.poisson, x), mode=MODE)
    means = sp.csr_array(np.array([[0.0, 3.0, 50.0], [2.0, 0.0, 0.0]]))
    draws = [f(means) for _ in range(400)]
    assert_same_pattern(draws[0], means)
    average = sum(d.toarray() for d in draws) / 400
    assert (abs(average - means.toarray()) <= 5 * np.sqrt(means.toarray() / 400)).all()


@pytest.mark.parametrize(("n", "p"), [(1, 0.01), (5, 0.3), (3, 1.0), (4, 0.0)])
def test_binomial(n, p):
    f = symcomp.function([], stream().gen(sparse.binomial, n, p, (100, 100)), mode=MODE)
    z = f()
    values = np.sort(z.toarray().ravel())
    assert z.data.min(initial=1) >= 1 and values.max() <= n
    for k in range(n + 1):
        share = np.mean(values == k)
        chance = float(np.prod(np.arange(n - k + 1, n + 1)) / np.prod(np.arange(1, k + 1)))
        chance *= p**k * (1 - p) ** (n - k)
        assert abs(share - chance) <= 5 * np.sqrt(chance * (1 - chance) / 10_000) + 1e-12


def test_binomial_matrices_may_be_large():
    f = symcomp.function([], stream().gen(sparse.binomial, 1, 1e-9, (10**6, 10**6)), mode=MODE)
    assert 800 < f().nnz < 1200


def test_multinomial():
    p, n = sparse.csc_matrix("p"), T.lvector("n")
    f = symcomp.function([n, p], stream().gen(sparse.multinomial, n, p), mode=MODE)
    chances = sp.csc_array(np.array([[0.2, 0.0, 0.8], [1.0, 2.0, 1.0], [0.0, 0.0, 0.0]]))
    trials = np.array([1000, 4000, 7])
    z = f(trials, chances)
    assert_same_pattern(z, chances)
    assert np.asarray(z.sum(1)).ravel().tolist() == [1000, 4000, 0]
    wanted = np.array([[200, 0, 800], [1000, 2000, 1000], [0, 0, 0]])
    assert (abs(z.toarray() - wanted) <= 5 * np.sqrt(wanted)).all()
    one = symcomp.function([p], stream().gen(sparse.multinomial, 3, p), mode=MODE)
    assert np.asarray(one(chances[:2]).sum(1)).ravel().tolist() == [3, 3]
    with pytest.raises(ShapeError, match="2 numbers of trials for 3 rows"):
        f(trials[:2], chances)
    with pytest.raises(ValueError, match="must not be negative"):
        f(trials, -chances)


def test_more_entries_than_places():
    f = symcomp.function([], stream().gen(sparse.random, 2, 2, 2.0), mode=MODE)
    with pytest.raises(ShapeError, match=r"8 entries do not fit a matrix of \(2, 2\)"):
        f()
