"""Products with sparse matrices that are constants."""

import numpy as np
import pytest
import scipy.sparse

pt = pytest.importorskip("pytensor.tensor")

import pytensor  # noqa: E402
import pytensor.sparse as ps  # noqa: E402

import symcomp.pytensor_backend as backend  # noqa: E402
from symcomp.tests.pytensor_backend.compare import compare  # noqa: E402

RNG = np.random.default_rng(10)


def matrix(form, dtype="float64", shape=(4, 3)):
    value = scipy.sparse.random(*shape, 0.5, form, rng=np.random.default_rng(11))
    return getattr(scipy.sparse, f"{form}_matrix")((value * 9).astype(dtype))


@pytest.mark.parametrize("form", ["csr", "csc"])
@pytest.mark.parametrize("dtypes", [("float64", "float64"), ("float32", "float64"),
                                    ("float64", "float32"), ("int8", "int64"),
                                    ("complex128", "float64")], ids=str)  # fmt: skip
def test_products(dtypes, form):
    a = ps.as_sparse_variable(matrix(form, dtypes[0]))
    x, y = (pt.matrix(name, dtype=dtypes[1]) for name in "xy")
    outputs = [ps.dot(a, x), ps.structured_dot(a, x), ps.dot(y, a)]
    if dtypes == ("float64", "float64"):
        outputs += pytensor.grad(sum(pt.sin(z).sum() for z in outputs), [x, y])
    values = [(RNG.normal(size=shape) * 9).astype(dtypes[1]) for shape in ((3, 2), (2, 4))]
    compare([x, y], outputs, values, atol=1e-4 if "float32" in dtypes else 1e-12)
    compare([x, y], outputs[:3], [values[0][:, :0], values[1][::-1, ::-1]], atol=1e-4)


def test_entries_that_stand_twice_and_rows_without_entries():
    twice = scipy.sparse.csr_matrix(([1.0, 2.0, 4.0], [2, 2, 0], [0, 3, 3]), shape=(2, 3))
    x = pt.dmatrix("x")
    compare([x], ps.dot(ps.as_sparse_variable(twice), x), [RNG.normal(size=(3, 2))], atol=1e-15)
    none = scipy.sparse.csc_matrix((2, 3))
    compare([x], ps.structured_dot(ps.as_sparse_variable(none), x), [np.ones((3, 2))])


def test_matrices_that_are_no_constants_fall_back():
    a, x = ps.csr_matrix("a", dtype="float64"), pt.dmatrix("x")
    f = pytensor.function([a, x], ps.structured_dot(a, x), mode="SYMCOMP")
    assert backend.fallbacks(f) == {"StructuredDot": 1}
    value, dense = matrix("csr"), RNG.normal(size=(3, 2))
    np.testing.assert_allclose(f(value, dense), value @ dense)


def test_regression_on_a_sparse_matrix():
    pm = pytest.importorskip("pymc")
    with pm.Model() as model:
        slopes = pm.Normal("slopes", shape=3)
        design = ps.as_sparse_variable(matrix("csr", shape=(20, 3)))
        mean = ps.structured_dot(design, slopes[:, None])
        pm.Poisson("y", pt.exp(mean[:, 0] / 9), observed=RNG.poisson(2, 20))
    wanted = model.logp_dlogp_function(ravel_inputs=True, mode="FAST_COMPILE")
    found = model.logp_dlogp_function(ravel_inputs=True, mode="SYMCOMP")
    for f in (wanted, found):
        f.set_extra_values({})
    assert not backend.fallbacks(found._pytensor_function)
    for _ in range(4):
        at = RNG.normal(size=3)
        for got, want in zip(found(at), wanted(at), strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-12)
