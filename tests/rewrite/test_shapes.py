"""Facts about lengths, in programs of any size and depth."""

import numpy as np
import pytest

import symcomp
import symcomp.tensor as T
from symcomp.rewrite.shapes import Shapes


def test_lengths_of_many_parts():
    xs = T.dvectors(1000)
    shapes = Shapes()
    (n,) = shapes.of(T.concatenate(xs))
    assert shapes.of(T.concatenate([T.exp(x) for x in xs])) == (n,)


def test_lengths_computed_in_many_steps():
    x = T.dvector("x")
    found = []
    shapes = Shapes()
    for _ in range(2):
        n = x.shape[0]
        for _ in range(1000):
            n = n + 1
        found += shapes.of(T.alloc(1.0, n))
    assert found[0] is found[1]


def test_entries_of_vectors_of_lengths():
    x = T.dmatrix("x")
    shapes = Shapes()
    found = []
    for _ in range(2):
        lengths = x.shape
        for _ in range(60):
            lengths = lengths + lengths * [1, 2]
        found += [shapes.intern(lengths[0]), shapes.intern(lengths[-2])]
    assert len(set(found)) == 1
    assert shapes.intern((T.exp(x).shape + [0, 1])[0]) is shapes.intern(x.shape[0] + 0)
    assert shapes.intern((T.alloc(x, 2, 3).shape * 2)[1]) == 6


def test_lengths_that_rules_simplify():
    """A length may be simplified after another one was computed from it."""
    x, shapes = T.dmatrix("x"), Shapes()
    n, k = x.shape[0], x.shape[1]
    one = shapes.intern(n - k)
    same = [(n - k) * 1, 1 * (n + 0 - k), (n - k - 0) // 1, n - k.dimshuffle("x", "x")]
    assert all(shapes.intern(m) is one for m in same)
    others = [0 - (n - k), 1 // (n - k), (n - k) + 1, k - n]
    assert one not in [shapes.intern(m) for m in others]
    assert shapes.intern(T.cast(n, "int8") * np.int64(1)).dtype == "int64"


@pytest.mark.parametrize("linker", ["py", "cvm"])
def test_many_parts_are_joined(linker):
    mode = symcomp.Mode(linker)
    xs = T.dvectors(400)
    values = [np.full(2, float(i)) for i in range(400)]
    joined = T.concatenate(xs)
    f = symcomp.function(xs, [joined, *symcomp.grad((joined**2).sum(), xs)], mode=mode)
    whole, *grads = f(*values)
    np.testing.assert_array_equal(whole, np.concatenate(values))
    np.testing.assert_array_equal(grads, 2 * np.array(values))
    x = y = T.dvector("x")
    for i in range(400):
        y = T.concatenate([y, x * i])
    f = symcomp.function([x], y, mode=mode)
    np.testing.assert_array_equal(f([1, 2]), np.outer([1, *range(400)], [1, 2]).ravel())
