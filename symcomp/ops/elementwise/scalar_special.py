"""The table of scalar functions, continued: incomplete gamma and Bessel functions (SciPy's).

Derivatives are those of the NIST Digital Library of Mathematical Functions (DLMF), cited by
section.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from symcomp.core import dtype as dtypes
from symcomp.core.tensor import TensorVariable
from symcomp.lazy import lazy_module
from symcomp.ops.compiled_ufuncs import CompiledFunction
from symcomp.ops.convert import as_tensor_variable
from symcomp.ops.elementwise.elemwise import real_float_rule, scalar, unknown
from symcomp.ops.elementwise.scalar_gamma import NO_ORDER, betaln, gamma, gammaln
from symcomp.ops.elementwise.scalar_logic import eq, switch
from symcomp.ops.elementwise.scalar_math import exp, log, log1p
from symcomp.ops.elementwise.scalar_trigonometry import cos

exact = lazy_module("symcomp.ops.numerics.exact")
incomplete_beta = lazy_module("symcomp.ops.numerics.incomplete_beta")


def _special(name: str, parameters: str, doc: str, *derivatives: Any) -> Any:
    """Add a row computed by the function of that name in ``scipy.special``."""
    function = f"scipy.special:{name}"
    return scalar(name, parameters, doc, function, dtype=real_float_rule, d=derivatives)


_undefined = unknown(NO_ORDER)

# ----- incomplete gamma functions (DLMF 8)


def _gamma_density(k: Any, x: Any) -> Any:
    """Return x^(k-1) e^-x / gamma(k), the derivative of gammainc in x (DLMF 8.8.13)."""
    power = switch(eq(k, 1), 0, (k - 1) * log(x))
    return exp(power - x - gammaln(k))


_by_shape = "the second derivative in the shape has no closed form"
gammainc = _special(
    "gammainc", "k x", "The lower incomplete gamma function, divided by gamma(k).",
    lambda k, x, z, g: g * gammainc_der(k, x), lambda k, x, z, g: g * _gamma_density(k, x),
)  # fmt: skip
gammaincc = _special(
    "gammaincc", "k x", "1 - gammainc(k, x), exact for large x.",
    lambda k, x, z, g: -g * gammainc_der(k, x), lambda k, x, z, g: -g * _gamma_density(k, x),
)  # fmt: skip


gammainc_der = scalar(
    "gammainc_der", "k x", "The derivative of gammainc in k, to about 13 digits.",
    CompiledFunction("gammainc_der"), dtype=real_float_rule, no_derivative=_by_shape, public=False,
)  # fmt: skip


def gammal(k: Any, x: Any) -> TensorVariable:
    """Compute the lower incomplete gamma function: the integral of t^(k-1) e^-t from 0 to x.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> T.gammal(2.0, 1.0).eval()
    array(0.26424112)
    """
    return gammainc(k, x) * gamma(k)


def gammau(k: Any, x: Any) -> TensorVariable:
    """Compute the upper incomplete gamma function: the integral of t^(k-1) e^-t from x to infinity.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> T.gammau(2.0, 1.0).eval()
    array(0.73575888)
    """
    return gammaincc(k, x) * gamma(k)


def chi2sf(x: Any, k: Any) -> TensorVariable:
    """Compute the probability that a chi-squared variable with k degrees of freedom exceeds x.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> x = T.dscalar("x")
    >>> T.chi2sf(x, 2.0).eval({x: 0.0})
    array(1.)
    """
    x, k = as_tensor_variable(x), as_tensor_variable(k)
    return gammaincc(k / 2.0, x / 2.0)


betainc = _special(
    "betainc", "a b x", "The regularized incomplete beta function.",
    lambda a, b, x, z, g: g * betainc_da(a, b, x), lambda a, b, x, z, g: g * betainc_db(a, b, x),
    lambda a, b, x, z, g: g * exp((a - 1) * log(x) + (b - 1) * log1p(-x) - betaln(a, b)),
)  # fmt: skip


def _beta_slope(name: str, letter: str) -> Any:
    """Return the derivative of betainc in one of its shapes."""

    def function(*xs: Any) -> Any:
        return exact.in_double(getattr(incomplete_beta, name))(*xs)

    doc = f"The derivative of betainc in {letter}, to about 12 digits."
    return scalar(
        name, "a b x", doc, function, dtype=real_float_rule, no_derivative=_by_shape, public=False
    )


betainc_da, betainc_db = _beta_slope("betainc_da", "a"), _beta_slope("betainc_db", "b")

# ----- Bessel functions (DLMF 10.6, 10.29)

j0 = _special(
    "j0", "x", "The Bessel function of the first kind of order 0.", lambda x, z, g: -g * j1(x)
)
j1 = _special(
    "j1",
    "x",
    "The Bessel function of the first kind of order 1.",
    lambda x, z, g: g * (j0(x) - jv(2, x)) / 2,
)
jv = _special(
    "jv", "v x", "The Bessel function of the first kind of order v.",
    _undefined, lambda v, x, z, g: g * (jv(v - 1, x) - jv(v + 1, x)) / 2,
)  # fmt: skip
i0 = _special(
    "i0",
    "x",
    "The modified Bessel function of the first kind of order 0.",
    lambda x, z, g: g * i1(x),
)
i1 = _special(
    "i1",
    "x",
    "The modified Bessel function of the first kind of order 1.",
    lambda x, z, g: g * (i0(x) + iv(2, x)) / 2,
)
i0e = _special(
    "i0e", "x", "i0(x) exp(-abs(x)).", lambda x, z, g: g * (i1e(x) - z * x.sgn())
)  # fmt: skip
i1e = _special(
    "i1e", "x", "i1(x) exp(-abs(x)).",
    lambda x, z, g: g * ((i0e(x) + ive(2, x)) / 2 - z * x.sgn()),
)  # fmt: skip
iv = _special(
    "iv", "v x", "The modified Bessel function of the first kind of order v.",
    _undefined, lambda v, x, z, g: g * (iv(v - 1, x) + iv(v + 1, x)) / 2,
)  # fmt: skip
ive = _special(
    "ive", "v x", "iv(v, x) exp(-abs(x)).",
    _undefined, lambda v, x, z, g: g * ((ive(v - 1, x) + ive(v + 1, x)) / 2 - z * x.sgn()),
)  # fmt: skip
kv = _special(
    "kv", "v x", "The modified Bessel function of the second kind of order v.",
    _undefined, lambda v, x, z, g: -g * (kv(v - 1, x) + kv(v + 1, x)) / 2,
)  # fmt: skip
kve = _special(
    "kve", "v x", "kv(v, x) exp(x).",
    _undefined, lambda v, x, z, g: g * (z - (kve(v - 1, x) + kve(v + 1, x)) / 2),
)  # fmt: skip


def _sinc_slope(x: Any, z: Any, g: Any) -> Any:
    safe = switch(eq(x, 0), 1, x)
    return g * switch(eq(x, 0), 0, (cos(np.pi * safe) - z) / safe)


def _sinc_rule(x: str) -> str:
    """Return float64 for integers, as NumPy does."""
    return "float64" if dtypes.is_discrete(x) else real_float_rule(x)


sinc = scalar(
    "sinc",
    "x",
    "sin(pi x) / (pi x), 1 at 0.",
    CompiledFunction("sinc", rule=_sinc_rule),
    dtype=_sinc_rule,
    d=(_sinc_slope,),
)

__all__ = [
    "betainc", "chi2sf", "gammainc", "gammaincc", "gammal", "gammau", "i0", "i0e", "i1",
    "i1e", "iv", "ive", "j0",
    "j1", "jv", "kv", "kve", "sinc",
]  # fmt: skip
