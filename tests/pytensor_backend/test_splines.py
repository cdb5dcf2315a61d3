"""Splines of PyMC: values and derivatives, and interpolated distributions."""

import numpy as np
import pytest

pm = pytest.importorskip("pymc")

import pytensor  # noqa: E402
import pytensor.tensor as pt  # noqa: E402
from pymc.distributions.dist_math import SplineWrapper  # noqa: E402
from scipy.interpolate import (  # noqa: E402
    InterpolatedUnivariateSpline,
    LSQUnivariateSpline,
    UnivariateSpline,
    insert,
)

import symcomp.pytensor_backend as backend  # noqa: E402
from symcomp.tests.pytensor_backend.compare import compare  # noqa: E402

RNG = np.random.default_rng(9)
KNOTS = np.cumsum(RNG.uniform(0.2, 1.0, 9))
AT = np.array([KNOTS[0] - 1.5, KNOTS[0], KNOTS[3], 1.7, 2.2, KNOTS[-1], KNOTS[-1] + 0.3, np.nan])


@pytest.mark.parametrize("degree", [1, 2, 3, 5])
@pytest.mark.parametrize("outside", [0, 1, 3])
def test_splines(outside, degree):
    through = InterpolatedUnivariateSpline(KNOTS, np.sin(KNOTS), k=degree, ext=outside)
    near = LSQUnivariateSpline(KNOTS, np.cos(KNOTS), KNOTS[4:5] + 0.01, k=degree, ext=outside)
    if degree > 1:  # one knot stands twice
        near = UnivariateSpline._from_tck(insert(KNOTS[4] + 0.01, near._eval_args), outside)
    for dtype in ("float64", "float32", "int64"):
        x = pt.vector("x", dtype=dtype)
        outputs = [SplineWrapper(spline)(x) for spline in (through, near)]
        if dtype == "float64":
            outputs += [pytensor.grad(z.sum(), x) for z in outputs]
            outputs.append(SplineWrapper(through)(x[1:3].reshape((2, 1))))
        compare([x], outputs, [(AT if dtype != "int64" else AT[:-1]).astype(dtype)], atol=1e-9)


def test_outside_of_splines_that_raise():
    x = pt.dvector("x")
    spline = InterpolatedUnivariateSpline(KNOTS, KNOTS**2, ext="raise")
    f = compare([x], SplineWrapper(spline)(x), [AT[1:6]], rtol=1e-9)
    with pytest.raises(ValueError, match="before the first break or after the last one"):
        f(AT[:6])


def test_interpolated():
    points = np.linspace(-2, 3, 12)
    with pm.Model() as model:
        pm.Interpolated("x", points, np.exp(-(points**2)), shape=4)
    wanted = model.logp_dlogp_function(ravel_inputs=True, mode="FAST_COMPILE")
    found = model.logp_dlogp_function(ravel_inputs=True, mode="SYMCOMP")
    for f in (wanted, found):
        f.set_extra_values({})
    assert not backend.fallbacks(found._pytensor_function)
    for _ in range(4):
        at = RNG.normal(size=4)
        for got, want in zip(found(at), wanted(at), strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-12)
