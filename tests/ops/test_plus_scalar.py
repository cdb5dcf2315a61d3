"""A sum that leaves the tensor alone where the scalar is 0."""

import numpy as np
import pytest

import symcomp.tensor as T
from symcomp.errors import DTypeError
from symcomp.ops.elementwise.plus_scalar import PlusScalar
from symcomp.tests.harness import ALL_DTYPES, check


@pytest.mark.parametrize("dtype", ALL_DTYPES[1:])
@pytest.mark.parametrize("shape", [(), (3,), (2, 0), (1, 2)])
@pytest.mark.parametrize("value", [0, 2])
def test_values(dtype, shape, value):
    x = np.arange(np.prod(shape)).reshape(shape).astype(dtype)
    s = np.asarray(value, dtype)
    grad = dtype in ("float64", "complex128")
    check(PlusScalar(), x, s, expected=np.asarray(x + s, dtype), grad=grad)


def test_nothing_is_copied_for_zero():
    x = np.ones(3)
    assert PlusScalar().perform(x, np.array(0.0)) is x
    assert np.isnan(PlusScalar().perform(x, np.array(np.nan))).all()


def test_what_does_not_fit():
    x = T.dvector("x")
    for s in (T.fscalar("s"), T.dvector("s")):
        with pytest.raises(DTypeError, match=r"a float64 scalar is needed"):
            PlusScalar()(x, s)
