"""Functions of the stored entries of sparse matrices."""

import numpy as np
import pytest
from scipy import special

import symcomp.tensor as T
from symcomp import sparse
from symcomp.errors import DTypeError, ShapeError
from symcomp.tests.sparse.harness import check, random_sparse

S = random_sparse(4, 5, 0.5, seed=1, zero=False)
SMALL = S * 0.2
POSITIVE = abs(S)
NUMPY = {"sgn": np.sign, "sqr": np.square, "conj": np.conj}
# Functions that are smooth only where the argument is in their domain.
DOMAINS = {"arcsin": SMALL, "arctanh": SMALL, "sqrt": POSITIVE, "log1p": POSITIVE}
NAMES = (
    "sin arcsin tan arctan sinh arcsinh tanh arctanh rint sgn ceil floor log1p expm1 deg2rad "
    "rad2deg trunc sqr sqrt conj"
).split()


@pytest.mark.parametrize("name", NAMES)
def test_functions_that_keep_zero(name):
    function = NUMPY.get(name) or getattr(np, name)
    values = DOMAINS.get(name, S)
    check(getattr(sparse, name), values, expected=function, formats=["csr"])


def stored():
    ones = S.copy()
    ones.data[:] = 1
    return ones.toarray()


def test_functions_of_stored_entries():
    mask = stored() > 0
    for name, function, values in (
        ("structured_exp", np.exp, S),
        ("structured_sigmoid", special.expit, S),
        ("structured_log", np.log, POSITIVE),
    ):
        check(
            getattr(sparse, name), values, formats=["csc"], order=1,
            expected=lambda x, f=function: np.where(mask, f(np.where(mask, x, 1)), 0),
        )  # fmt: skip


def test_functions_with_a_number():
    mask = stored() > 0
    for name, function in (
        ("structured_pow", lambda x, y: np.where(mask, np.where(mask, x, 1) ** y, 0)),
        ("structured_minimum", lambda x, y: np.where(mask, np.minimum(x, y), 0)),
        ("structured_maximum", lambda x, y: np.where(mask, np.maximum(x, y), 0)),
        ("structured_add", lambda x, y: np.where(mask, x + y, 0)),
    ):
        check(
            getattr(sparse, name), POSITIVE, np.float64(0.7), expected=function, formats=["csr"],
            order=1,
        )  # fmt: skip
    check(lambda x: x**2, S, expected=np.square, formats=["csr"], order=1)
    with pytest.raises(DTypeError, match="0 \\*\\* -1 is not 0"):
        sparse.csr_matrix("x") ** -1
    with pytest.raises(ShapeError, match="no scalar"):
        sparse.structured_add(sparse.csr_matrix("x"), T.dvector("v"))


def test_operators_on_entries():
    check(lambda x: abs(x), S, expected=np.abs, formats=["coo", "csr"], order=1)
    z = random_sparse(4, 5, 0.5, "complex128")
    check(sparse.real, z, expected=np.real, formats=["csr"], order=1)
    check(sparse.imag, z, expected=np.imag, formats=["csr"], order=1)
    with pytest.raises(ShapeError, match="no vector"):
        sparse.structured_elemwise(lambda d: d.sum())(sparse.csr_matrix("x"))
