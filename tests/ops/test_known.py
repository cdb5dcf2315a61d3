"""Scalars whose value is known when the graph is built."""

import numpy as np
import pytest

import symcomp.tensor as T
from symcomp.errors import AxisError, NotScalarConstantError
from symcomp.tensor import get_scalar_constant_value

X = T.tensor("float64", shape=(None, 5), name="x")
S = T.iscalar("s")


@pytest.mark.parametrize(
    ("build", "value"),
    [
        (lambda: 3, 3),
        (lambda: T.constant(3), 3),
        (lambda: T.constant([[2.5]]), 2.5),
        (lambda: T.constant([4, 4]), 4),
        (lambda: X.shape[1], 5),
        (lambda: X.shape[-1], 5),
        (lambda: T.stack([S, 2, 3])[1], 2),
        (lambda: T.stack([S, 2, 3])[-1], 3),
        (lambda: T.join(0, T.constant([1, 2]), T.constant([3]))[2], 3),
        (lambda: T.constant(np.arange(6).reshape(2, 3))[1, 0], 3),
        (lambda: T.zeros((S, S)), 0),
        (lambda: T.alloc(7.0, S, 2).T, 7),
        (lambda: T.second(X, 1.5), 1.5),
        (lambda: T.cast(T.constant(2.7), "int32") + 1, 3),
        (lambda: T.Assert("fails")(T.constant(2), T.constant(1)), 2),
    ],
)
def test_known(build, value):
    found = get_scalar_constant_value(build())
    assert found == value and np.ndim(found) == 0


@pytest.mark.parametrize(
    "build",
    [
        lambda: S,
        lambda: X.shape[0],
        lambda: T.constant([1, 2]),
        lambda: np.array([1, 2]),
        lambda: T.stack([S, 2, 3])[0],
        lambda: T.stack([S, 2, 3])[S],
        lambda: T.zeros((S,)) + T.constant([1.0, 2.0]),
        lambda: T.alloc(7.0, S)[3] + S,
        lambda: T.Assert("fails")(T.constant(2), T.constant(0)),
        lambda: T.Assert("perhaps")(T.constant(2), S),
        lambda: T.exp(S),
        lambda: T.constant([]),
    ],
)
def test_not_known(build):
    with pytest.raises(NotScalarConstantError):
        get_scalar_constant_value(build())


def test_choices():
    total = T.constant(1) + T.constant(2)
    assert get_scalar_constant_value(total) == 3
    with pytest.raises(NotScalarConstantError):
        get_scalar_constant_value(total, elemwise=False)
    with pytest.raises(NotScalarConstantError):
        get_scalar_constant_value(total, only_process_constants=True)
    deep = T.constant(1)
    for _ in range(20):
        deep = deep + 1
    with pytest.raises(NotScalarConstantError):
        get_scalar_constant_value(deep)
    assert get_scalar_constant_value(deep, max_recur=30) == 21
    assert total.get_scalar_constant_value() == 3


@pytest.mark.parametrize(
    "build",
    [
        lambda: X.sum(axis=2),
        lambda: T.swapaxes(T.dvector(), 0, 1),
        lambda: X[0, 0, 0],
        lambda: S[0],
        lambda: S[T.lvector()],
    ],
)
@pytest.mark.parametrize("error", [AxisError, IndexError, ValueError])
def test_axes_that_do_not_exist(build, error):
    with pytest.raises(error):
        build()


def test_axis_as_a_constant():
    assert X.sum(axis=T.constant(1)).ndim == 1
    assert X.sum(axis=T.constant([0, 1])).ndim == 0
    assert X.max(axis=T.NoneConst).ndim == 0
