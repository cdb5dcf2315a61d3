"""The table of scalar functions, continued: inverses of distribution functions, Owen's T and 2F1.

The values are SciPy's. Derivatives of an inverse follow from those of the function: with F(k, x) =
p, dx/dp = 1 / (dF/dx) and dx/dk = -(dF/dk) / (dF/dx).
"""

from __future__ import annotations

from math import pi, sqrt
from typing import Any

from symcomp.lazy import lazy_module
from symcomp.ops.elementwise.elemwise import real_float_rule, scalar
from symcomp.ops.elementwise.scalar_error import erf, erfcx
from symcomp.ops.elementwise.scalar_gamma import betaln, gammaln
from symcomp.ops.elementwise.scalar_math import exp, log, log1p, sqr
from symcomp.ops.elementwise.scalar_special import betainc_da, betainc_db, gammainc_der

exact = lazy_module("symcomp.ops.numerics.exact")
hypergeometric = lazy_module("symcomp.ops.numerics.hypergeometric")


def _special(name: str, parameters: str, doc: str, *derivatives: Any) -> Any:
    """Add a row computed by the function of that name in ``scipy.special``."""
    function = f"scipy.special:{name}"
    return scalar(name, parameters, doc, function, dtype=real_float_rule, d=derivatives)


# ----- inverses of incomplete gamma and beta functions


def _inverse_gamma_density(k: Any, x: Any) -> Any:
    """Return gamma(k) x^(1-k) e^x: 1 / the derivative of gammainc in x (DLMF 8.8.13)."""
    return exp(x + (1 - k) * log(x) + gammaln(k))


gammaincinv = _special(
    "gammaincinv", "k p", "The x with gammainc(k, x) = p.",
    lambda k, p, x, g: -g * gammainc_der(k, x) * _inverse_gamma_density(k, x),
    lambda k, p, x, g: g * _inverse_gamma_density(k, x),
)  # fmt: skip
gammainccinv = _special(
    "gammainccinv", "k p", "The x with gammaincc(k, x) = p.",
    lambda k, p, x, g: -g * gammainc_der(k, x) * _inverse_gamma_density(k, x),
    lambda k, p, x, g: -g * _inverse_gamma_density(k, x),
)  # fmt: skip


def _inverse_beta_density(a: Any, b: Any, x: Any) -> Any:
    """Return B(a, b) x^(1-a) (1-x)^(1-b): 1 / the derivative of betainc in x (DLMF 8.17.1)."""
    return exp(betaln(a, b) + (1 - a) * log(x) + (1 - b) * log1p(-x))


betaincinv = _special(
    "betaincinv", "a b p", "The x with betainc(a, b, x) = p.",
    lambda a, b, p, x, g: -g * betainc_da(a, b, x) * _inverse_beta_density(a, b, x),
    lambda a, b, p, x, g: -g * betainc_db(a, b, x) * _inverse_beta_density(a, b, x),
    lambda a, b, p, x, g: g * _inverse_beta_density(a, b, x),
)  # fmt: skip

# ----- the normal distribution

ndtri_exp = _special(
    "ndtri_exp", "x",
    "The z with log_ndtr(z) = x, right where exp(x) underflows or rounds to 1, too.",
    # 1 / (density(z) / ndtr(z)), where ndtr(z) = erfcx(-z / sqrt(2)) exp(-z^2 / 2) / 2.
    lambda x, z, g: g * erfcx(z * -sqrt(0.5)) * sqrt(pi / 2),
)  # fmt: skip
owens_t = _special(
    "owens_t", "h a",
    "Owen's T: the probability of X > h and 0 < Y < a X, for independent normal X and Y.",
    lambda h, a, z, g: -g * exp(-sqr(h) / 2) * erf(a * h * sqrt(0.5)) / (2 * sqrt(2 * pi)),
    lambda h, a, z, g: g * exp(-sqr(h) * (1 + sqr(a)) / 2) / (2 * pi * (1 + sqr(a))),
)  # fmt: skip

# ----- the hypergeometric function (DLMF 15)

_twice = "the second derivative in the parameters has no closed form"


def _slope(name: str, wrt: int) -> Any:
    """Return the derivative of 2F1 in one of its parameters."""

    def function(*xs: Any) -> Any:
        return exact.in_double(lambda *ps: hypergeometric.hyp2f1_slope(*ps, wrt))(*xs)

    doc = f"The derivative of hyp2f1 in {'abc'[wrt]}, to about 11 digits."
    return scalar(
        name, "a b c z", doc, function, dtype=real_float_rule, no_derivative=_twice, public=False
    )  # fmt: skip


hyp2f1_da, hyp2f1_db = _slope("hyp2f1_da", 0), _slope("hyp2f1_db", 1)
hyp2f1_dc = _slope("hyp2f1_dc", 2)
hyp2f1 = _special(
    "hyp2f1", "a b c z", "The hypergeometric function 2F1(a, b; c; z), for real z < 1.",
    lambda a, b, c, z, f, g: g * hyp2f1_da(a, b, c, z),
    lambda a, b, c, z, f, g: g * hyp2f1_db(a, b, c, z),
    lambda a, b, c, z, f, g: g * hyp2f1_dc(a, b, c, z),
    lambda a, b, c, z, f, g: g * a * b / c * hyp2f1(a + 1, b + 1, c + 1, z),
)  # fmt: skip

__all__ = ["betaincinv", "gammainccinv", "gammaincinv", "hyp2f1", "ndtri_exp", "owens_t"]
