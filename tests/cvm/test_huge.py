"""Arrays of more elements than 32 bits count: one number, that is read again and again."""

import numpy as np
import pytest

import symcomp
import symcomp.tensor as T
from symcomp import config

COUNT = 2**31 + 5
X = np.lib.stride_tricks.as_strided(np.array([3], "int8"), (COUNT,), (0,))

WAYS = {
    "sum": (lambda v: T.sum(v), 3 * COUNT),
    "sum of what is computed": (lambda v: T.sum(T.eq(v, 3)), COUNT),
    "largest": (lambda v: T.max(v), 3),
    "its position": (lambda v: T.argmax(v), 0),
    "part": (lambda v: v[-3:] * 2, [6, 6, 6]),
    "positions": (lambda v: v[T.as_tensor_variable(np.array([COUNT - 1, -COUNT]))], [3, 3]),
    "length": (lambda v: v[1:].shape[0], COUNT - 1),
}


@pytest.mark.parametrize("name", WAYS)
def test_many_elements(name):
    build, want = WAYS[name]
    v = T.bvector()
    with config.change_flags(kernels=True, cflags=""):  # optimized
        f = symcomp.function([symcomp.In(v, borrow=True)], build(v))
    np.testing.assert_array_equal(f(X), want)
