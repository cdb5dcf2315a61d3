"""Gamma functions of float64 arrays, within 3 units in the last place.

SciPy's values where they have this precision; polynomials between 1/2 and 5/2, where log gamma and
psi have their roots (tools/fit_gamma_functions.py); double-double arithmetic (log_gamma.py)
elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable
from math import factorial
from typing import Any

import numpy as np

from symcomp.lazy import lazy_module
from symcomp.ops.numerics.double_double import (
    PI,
    Pair,
    absolute,
    exp,
    log,
    pair,
    sin_cos_pi,
    sum_of,
    where,
)
from symcomp.ops.numerics.exact import horner, two_product
from symcomp.ops.numerics.log_gamma import EULER, log_gamma_difference
from symcomp.ops.numerics.log_gamma import log_gamma as log_gamma_of_pair
from symcomp.ops.numerics.log_gamma import psi as psi_of_pair

special = lazy_module("scipy.special")

CENTRE, REACH = 1.118033988749895, 0.38196601125010515
# The positive root of psi, and its rounding error.
PSI_ROOT, PSI_ROOT_LOW = 1.4616321449683622, 9.549995429965697e-17
# log(gamma(x)) / ((x - 1) (x - 2)), (gamma(x) - 1) / ((x - 1) (x - 2)) and psi(x) / (x - root) as
# polynomials in (x - CENTRE) / (x + CENTRE) / REACH, to 2^-58.
_LOG_GAMMA = (
    0.5502601241249085, -0.18177947405044478, 0.01903107465403414, -0.009106294710162124,
    0.0018470251423858162, -0.0008069077515431894, 0.00020050112159726612,
    -8.44589981147609e-05, 2.326469448252168e-05, -9.60300014277006e-06, 2.816668538021771e-06,
    -1.1474760446879792e-06, 3.511209191274269e-07, -1.4172091345606343e-07,
    4.4779998614562294e-08, -1.7958600953483373e-08, 5.699235391389998e-09,
    -2.2637561865980624e-09, 8.488230952947536e-10, -3.4312444564193465e-10,
    4.522344084377113e-11, -1.5448504365098395e-11, 3.160014684092883e-11,
    -1.2891420258253725e-11,
)  # fmt: skip
_GAMMA = (
    0.5347964774591593, -0.2667470510492079, 0.1592948311354019, -0.031091458125385114,
    0.030663320637891272, -0.00017445441833046198, 0.007054380839967792, 0.0014854636750067263,
    0.0019053250676141118, 0.000720194613517938, 0.0005649168532128744, 0.000267348153564354,
    0.0001735359236673325, 8.981714060319708e-05, 5.3477725444049656e-05, 2.864915222519197e-05,
    1.6327245962324863e-05, 8.727966025414724e-06, 4.8280610551108184e-06,
    2.8262982892861527e-06, 1.576774039286339e-06, 4.670188212450197e-07,
    2.0655855588580042e-07, 5.978685426632372e-07, 3.6347424507607865e-07,
    -2.6254305359213016e-07, -1.6935150244425297e-07, 2.1190418895097655e-07,
    1.2527588575802495e-07, -6.798505298792796e-08, -3.930890529663124e-08,
    1.5179325727207452e-08, 8.351407748409234e-09,
)  # fmt: skip
_PSI = (
    1.158927033618035, -0.6003640931318854, 0.1705728955768736, -0.07019713416970363,
    0.0255979885614599, -0.010067167511703124, 0.0037690266976015594, -0.0014609736215506434,
    0.0005518111343211804, -0.00021265313560828538, 8.064447046717177e-05,
    -3.0987142957830354e-05, 1.177724480019675e-05, -4.517756505341578e-06,
    1.7187191066821375e-06, -6.585104612492764e-07, 2.519825634696511e-07,
    -9.661923943617494e-08, 3.522908611196144e-08, -1.3355609980596749e-08,
    6.568808481093767e-09, -2.5934334344502797e-09, 1.0697830134514482e-10,
    -1.1727209752640633e-11, 3.113097381471553e-10, -1.2371888735371305e-10,
)  # fmt: skip
# Negative roots, their rounding errors, f' and f'' / f' / 2 there.
_LOG_GAMMA_ROOTS = (
    (-2.4570247382208006, -3.7075610815513266e-17, 1.5156034480216574, 3.205535694693519),
    (-2.7476826467274127, 9.055340329338315e-17, -1.9143501856115988, -5.001796195741781),
    (-3.14358088834998, -2.1818179852331714e-16, 7.781884658131351, 3.3194193318448373),
    (-3.955294284858598, -1.999428391746348e-17, -20.725060845803707, -12.14542550488363),
    (-4.039361839740537, 2.1143995503980602e-16, 26.790480886140593, 12.103378222881874),
    (-4.991544640560048, 1.5174411760571722e-16, -116.53578161624363, -60.02650737719011),
)
_PSI_ROOTS = (
    (-0.5040830082644554, -8.15428206243813e-18, 8.939798558792134, -0.09053285230176397),
    (-1.5734984731623904, -1.574185691077347e-17, 9.941513615924176, -0.7848496995753789),
    (-2.6107208684441447, 9.881960746978353e-17, 10.84832879920919, -1.177206732080073),
    (-3.635293366436901, 5.454396163173039e-17, 11.650939359651861, -1.4538173348047934),
    (-4.653237761743142, -2.5492686201468193e-16, 12.369637994669782, -1.668359047473687),
    (-5.6671624415568855, -3.2153051074948335e-18, 13.021406387509394, -1.843950864633329),
    (-6.678418213073427, 3.470798723495241e-16, 13.61885190419576, -1.9927318885881709),
    (-7.687788325031626, -1.351562494643672e-16, 14.17134063324115, -2.1218922488443424),
    (-8.695764163816401, -3.2859903716289447e-16, 14.685967981672645, -2.23605283678493),
    (-9.702672540001863, -3.2563178405401477e-16, 15.168227153977934, -2.338364245347548),
)
STIRLING_FROM = 12
# B(2 k), and these over 2 k (DLMF 5.11.2).
_BERNOULLI = [1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510]
_PSI_TAIL = [b / (2 * k) for k, b in enumerate(_BERNOULLI, 1)]
_ZETA_TAIL = [b / factorial(2 * k) for k, b in enumerate(_BERNOULLI, 1)]
# Beyond, the gamma function is 0 or infinite.
END = 190
# From this size on, the difference of the arguments alone decides.
VAST = 1e150


def replace(z: Any, place: Any, function: Callable[..., Any], *xs: Any) -> None:
    """Compute ``z`` anew where ``place`` is true."""
    if place.any():
        z[place] = function(*(x[place] for x in xs))


def _near(coefficients: Any, x: Any) -> Any:
    return horner(coefficients, (x - CENTRE) / (x + CENTRE) / REACH)


def _is_near(x: Any) -> Any:
    return (x >= 0.5) & (x <= 2.5)


def _is_pole(x: Pair) -> Any:
    return (x.hi <= 0) & (x.hi == np.floor(x.hi)) & (x.lo == np.floor(x.lo))


def _sign(x: Pair) -> Any:
    """Return the sign of gamma(x), x not a pole."""
    whole = np.floor(x.hi)
    more = np.where(whole == x.hi, np.floor(x.lo), 0)
    odd = (np.mod(whole, 2) == 1) != (np.mod(more, 2) == 1)
    return np.where((x.hi < 0) & odd, -1.0, 1.0)


# ----- of one argument


def gammaln(x: Any) -> Any:
    """log(abs(gamma(x)))."""
    z = np.asarray(special.gammaln(x))
    replace(z, _is_near(x), lambda x: (x - 1) * (x - 2) * _near(_LOG_GAMMA, x), x)
    # The terms of SciPy's sum cancel about the zeros between the negative poles.
    cancelled = (x < 0) & (np.abs(z) < 2 - x)
    replace(z, cancelled, lambda x: log_gamma_of_pair(pair(x)).hi, x)
    _expand_at_roots(z, _LOG_GAMMA_ROOTS, x, np.zeros_like(x))
    replace(z, (np.abs(x) < 1e-300) & (x != 0), lambda x: -np.log(np.abs(x)), x)
    return z


def _expand_at_roots(z: Any, roots: Any, x: Any, low: Any) -> None:
    """Evaluate the Taylor series at x + low, where double-doubles have too few digits."""
    if not (x < 0).any():
        return
    for root, root_low, slope, bend in roots:
        gap = (x - root) + (low - root_low)
        replace(z, np.abs(gap) < 1e-10, lambda t: slope * t * (1 + bend * t), gap)  # noqa: B023


def log_of_gamma(x: Any) -> Any:
    """log(gamma(x)), NaN where that is negative."""
    return np.where((x < 0) & (_sign(pair(x)) < 0), np.nan, gammaln(x))


def gamma(x: Any) -> Any:
    """Compute the gamma function."""
    z = np.asarray(special.gamma(x))
    replace(z, _is_near(x), _gamma_near, x)
    replace(z, (np.abs(x) < 0.5) & (x != 0), lambda x: _gamma_near(1 + x) / x, x)
    above = (x > 2.5) & (x < 16)
    replace(z, above, _gamma_above, x)
    far = (np.abs(x) >= 0.5) & (np.abs(x) < END) & ~_is_near(x) & ~above & ~_is_pole(pair(x))
    replace(z, far, _gamma_far, x)
    replace(z, (x <= -END) & ~_is_pole(pair(x)), lambda x: 0 * _sign(pair(x)), x)
    return z


def _gamma_near(x: Any) -> Any:
    return 1 + (x - 1) * (x - 2) * _near(_GAMMA, x)


def _gamma_above(x: Any) -> Any:
    """Compute gamma by recurrence (DLMF 5.5.1), with the rounding errors of the product."""
    count = np.ceil(x - 2.5)
    product, low = np.ones_like(x), np.zeros_like(x)
    for k in range(1, int(count.max()) + 1):
        factor = np.where(k <= count, x - k, 1)
        product, error = two_product(product, factor)
        low = low * factor + error
    base = _gamma_near(x - count)
    return base * product + base * low


def _gamma_far(x: Any) -> Any:
    return _sign(pair(x)) * exp(log_gamma_of_pair(pair(x)))


def psi(x: Any) -> Any:
    """Compute the derivative of gammaln."""
    return psi_of_sum(x, np.full_like(x, -0.0))


def psi_of_sum(x: Any, h: Any) -> Any:
    """Compute psi(x + h), with x + h not rounded."""
    total = sum_of(x, h)
    x, low = total.hi, total.lo
    z = np.asarray(special.psi(x))
    replace(z, _is_near(x), _psi_near, x, low)
    sensitive = (x < -1e-3) & ~_is_pole(total) & np.isfinite(x)
    replace(z, sensitive, lambda x, low: psi_of_pair(Pair(x, low)).hi, x, low)
    _expand_at_roots(z, _PSI_ROOTS, x, low)
    return z


def _psi_near(x: Any, low: Any) -> Any:
    return ((x - PSI_ROOT) + (low - PSI_ROOT_LOW)) * _near(_PSI, x)


def tri_gamma(x: Any) -> Any:
    """Compute the derivative of psi."""
    # SciPy's loop grows with -x, so on the left it is only given x = -1 (a pole).
    z = np.asarray(special.polygamma(1, np.where(x < -1, -1.0, x)))
    replace(z, (x > 0) & np.isfinite(x), _tri_gamma_right, x)
    replace(z, (x < 0) & (x != np.floor(x)), _tri_gamma_left, pair(x))
    return z


def _tri_gamma_right(x: Any) -> Any:
    """Compute it by recurrence from x >= 12, where the asymptotic series holds (DLMF 5.15.5,
    5.15.8).
    """
    count = np.maximum(np.ceil(STIRLING_FROM - x), 0)
    u = 1 / (x + count)
    z = u + (u * u / 2 + u * u * u * horner(_BERNOULLI, u * u))
    for k in range(int(count.max(initial=0)) - 1, -1, -1):
        z = z + np.where(k < count, 1 / (x + k) / (x + k), 0)
    return z


def _tri_gamma_left(x: Pair) -> Any:
    """Compute it by reflection (DLMF 5.15.6)."""
    sine, _ = sin_cos_pi(x)
    ratio = (PI / sine).hi
    return ratio * ratio - _tri_gamma_right((1 - x).hi)


def polygamma(n: Any, x: Any) -> Any:
    """Compute the derivative of psi of order n, NaN unless n is an integer >= 0."""
    z = np.full_like(x, np.nan)
    replace(z, n == 0, psi, x)
    replace(z, n == 1, tri_gamma, x)
    higher = (n > 1) & (n == np.floor(n)) & np.isfinite(n)
    replace(z, higher, _polygamma_higher, n, x)
    return z


def _polygamma_higher(n: Any, x: Any) -> Any:
    """Compute (-1)^(n + 1) n! times the sum of (x + k)^(-n - 1) over k (DLMF 5.15.1)."""
    sign = np.where(np.mod(n, 2) == 0, -1.0, 1.0)
    below = np.floor(x)
    # Half-way between poles an even derivative equals that of the mirrored argument.
    x = np.where((x < 0) & (x - below == 0.5) & (sign < 0), 1 - x, x)
    z = np.where(np.isposinf(x), 0.0 * sign, np.nan)
    at_pole = (x == 0) | ((x == below) & (sign > 0) & np.isfinite(x))
    z = np.where(at_pole, np.where(sign > 0, np.inf, np.copysign(np.inf, x)), z)
    replace(z, (x > 0) & np.isfinite(x), _polygamma_right, n, x)
    replace(z, (x < 0) & (x != below) & np.isfinite(x), _polygamma_left, n, x)
    return sign * z


def _polygamma_right(n: Any, x: Any) -> Any:
    return _times_factorial(n, x, _zeta(n, x))


def _times_factorial(n: Any, x: Any, z: Any) -> Any:
    """Compute n! x^(-n - 1) z, whose factors overflow or underflow where the product does not."""
    logarithm = log_gamma_of_pair(sum_of(n, 1.0)) - log(pair(x)) * sum_of(n, 1.0)
    # The logarithm of larger factorials may overflow itself.
    size = exp(logarithm + log(pair(np.abs(z))))
    size = np.where(n > 1e300, np.where(n > np.e * x, np.inf, 0), size)
    return np.copysign(size, z)


def _polygamma_left(n: Any, x: Any) -> Any:
    """Sum over k of both signs of x + k."""
    sign = np.where(np.mod(n, 2) == 0, -1.0, 1.0)
    left = -x - np.floor(-x)
    right, nearest = 1 - left, np.minimum(left, 1 - left)

    def part(y: Any) -> Any:
        return np.exp(-(n + 1) * np.log1p((y - nearest) / nearest)) * _zeta(n, y)

    return _times_factorial(n, nearest, part(right) + sign * (part(left) - part(1 - x)))


def _zeta(n: Any, x: Any) -> Any:
    """Compute x^s times Hurwitz's zeta function of s = n + 1 > 2 and x > 0: by its series until
    terms vanish, or the rest by the Euler-Maclaurin formula (DLMF 2.10.1).
    """
    s = n + 1
    far, nothing = np.ceil(2 * s + 10 - x), np.ceil(x * np.expm1(46 / s)) + 1
    count = np.maximum(np.minimum(far, nothing), 0)
    z = np.zeros_like(x)
    for k in range(int(count.max(initial=0)) - 1, -1, -1):
        z = z + np.where(k < count, np.exp(-s * np.log1p(k / x)), 0)
    moved = x + count
    series, factor = moved / n + 0.5, s / moved
    for k, tail in enumerate(_ZETA_TAIL):
        series = series + tail * factor
        factor = factor * ((s + 2 * k + 1) / moved) * ((s + 2 * k + 2) / moved)
    return np.where(far > nothing, z, z + np.exp(-s * np.log1p(count / x)) * series)


# ----- of two arguments


def gamma_ratio(x: Any, y: Any) -> Any:
    """gamma(x) / gamma(y); at two poles the limit for a fixed x - y."""
    return _ratio(pair(x), pair(y), sum_of(x, -y))


def poch(x: Any, h: Any) -> Any:
    """gamma(x + h) / gamma(x), with x + h not rounded; at two poles the limit."""
    z = _ratio(sum_of(x, h), pair(x), pair(h))
    return np.where((h == 0) & ~np.isnan(x), 1.0, z)


def inverse_poch(x: Any, h: Any) -> Any:
    """gamma(x) / gamma(x + h)."""
    z = _ratio(pair(x), sum_of(x, h), pair(-h))
    return np.where((h == 0) & ~np.isnan(x), 1.0, z)


def beta(a: Any, b: Any) -> Any:
    """gamma(a) gamma(b) / gamma(a + b)."""
    z = np.asarray(special.beta(a, b))
    big, small, total, regular = _of_beta(a, b)
    vast = np.abs(small) > VAST
    replace(z, regular & ~vast, lambda *xs: _exponential(*_log_beta(*xs)), big, small, total)
    z[np.isfinite(a) & np.isfinite(b) & (vast | _is_zero_of_beta(big, small, total))] = 0
    z[np.isposinf(big) & (small > 0) & np.isfinite(small)] = 0
    signed = np.isposinf(big) & (small < 0) & ~_is_pole(pair(small))
    replace(z, signed, lambda x: np.inf * _sign(pair(x)), small)
    z[_is_pole(pair(big)) & _is_pole(pair(small))] = np.inf
    z[np.isnan(a) | np.isnan(b)] = np.nan
    replace(z, _is_vast_limit(a, b), lambda a, b: beta(1 - (a + b), np.maximum(a, b)), a, b)
    return z


def betaln(a: Any, b: Any) -> Any:
    """log(abs(beta(a, b)))."""
    z = np.asarray(special.betaln(a, b))
    big, small, total, regular = _of_beta(a, b)
    vast = np.minimum(a, b) > VAST
    replace(z, regular & ~vast, lambda *xs: _log_beta(*xs)[0].hi, big, small, total)
    z[np.isfinite(big) & _is_zero_of_beta(big, small, total)] = -np.inf
    z[np.isposinf(big) & (small > 0) & np.isfinite(small)] = -np.inf
    z[np.isnan(a) | np.isnan(b)] = np.nan
    replace(z, vast & np.isfinite(big), _betaln_vast, big, small)
    replace(z, _is_vast_limit(a, b), lambda a, b: betaln(1 - (a + b), np.maximum(a, b)), a, b)
    return z


def _betaln_vast(x: Any, y: Any) -> Any:
    """Compute Stirling's formula; its other terms are negligible here."""
    return -(x * np.log1p(y / x) + y * np.log1p(x / y))


def _is_vast_limit(a: Any, b: Any) -> Any:
    """Tell where gamma(a) and gamma(a + b) are both poles and differences have no digits left."""
    total = a + b
    return (
        (np.minimum(a, b) < -VAST) & (np.maximum(a, b) > VAST) & np.isfinite(total) & (total <= 0)
    )


def _of_beta(a: Any, b: Any) -> tuple[Any, Any, Pair, Any]:
    """Return the larger and the smaller argument, their sum, and where beta is finite and not 0."""
    swapped = np.abs(a) < np.abs(b)
    big, small = np.where(swapped, b, a), np.where(swapped, a, b)
    total = sum_of(a, b)
    poles = _is_pole(pair(big)) == _is_pole(total)
    regular = np.isfinite(big) & np.isfinite(small) & poles & ~_is_pole(pair(small))
    return big, small, total, regular


def _is_zero_of_beta(big: Any, small: Any, total: Pair) -> Any:
    return _is_pole(total) & ~_is_pole(pair(big)) & ~_is_pole(pair(small))


def _log_beta(big: Any, small: Any, total: Pair) -> tuple[Pair, Any]:
    """Return log(abs(beta)) and the sign, where beta is finite and not 0."""
    logarithm, sign = _log_ratio(pair(big), total, pair(-small))
    return log_gamma_of_pair(pair(small)) + logarithm, sign * _sign(pair(small))


def _ratio(x: Pair, y: Pair, difference: Pair) -> Any:
    z = np.zeros_like(x.hi)
    at_x, at_y = _is_pole(x), _is_pole(y)
    finite = np.isfinite(x.hi) & np.isfinite(y.hi)
    regular = finite & (at_x == at_y)
    irregular = ~regular & ~(finite & at_y)
    replace(z, irregular, lambda x, y: gamma(x) / gamma(y), x.hi, y.hi)
    replace(z, regular, lambda *xs: _exponential(*_log_ratio(*xs)), x, y, difference)
    return z


def log_gamma_ratio(x: Any, y: Any) -> Any:
    """log(abs(gamma(x) / gamma(y)))."""
    return _log_abs_ratio(pair(x), y, sum_of(x, -y))


def log_poch(x: Any, h: Any) -> Any:
    """log(abs(gamma(x + h) / gamma(x))), with x + h not rounded."""
    z = _log_abs_ratio(sum_of(x, h), x, pair(h))
    return np.where((h == 0) & ~np.isnan(x), 0.0, z)


def _log_abs_ratio(x: Pair, y: Any, difference: Pair) -> Any:
    z = np.asarray(gammaln(x.hi) - gammaln(y))
    at_x, at_y = _is_pole(x), _is_pole(pair(y))
    finite = np.isfinite(x.hi) & np.isfinite(y)
    z[finite & at_x & ~at_y], z[finite & at_y & ~at_x] = np.inf, -np.inf
    replace(z, finite & (at_x == at_y), lambda *xs: _log_ratio(*xs)[0].hi, x, pair(y), difference)
    # Two terms of the Taylor series, where the difference loses all digits on the way.
    gap = np.where(y > 0, y, np.abs(y - np.rint(y)))
    close = finite & (np.abs(difference.hi) < 1e-9 * gap)
    replace(z, close, lambda y, d: d * (psi(y) + d / 2 * tri_gamma(y)), y, difference.hi)
    tiny = finite & (np.maximum(np.abs(x.hi), np.abs(y)) < 1e-20) & (x.hi != 0) & (y != 0)
    replace(z, tiny, _log_ratio_tiny, x.hi, y)
    vast = finite & (np.abs(difference.hi) > VAST)
    replace(z, vast, _log_ratio_vast, x.hi, y)
    return z


def _log_ratio_tiny(x: Any, y: Any) -> Any:
    """Compute it near the pole at 0, where log(abs(gamma(x))) is -log(abs(x)) - EULER x."""
    a, b = np.abs(x), np.abs(y)
    ratio = np.where(np.abs(b - a) < a / 2, np.log1p((b - a) / a), np.log(b / a))
    return ratio - EULER.hi * (x - y)


def _log_ratio_vast(x: Any, y: Any) -> Any:
    """Compute Stirling's formula; its other terms are negligible here, and so is a small argument.
    """
    big, small = np.maximum(x, y), np.maximum(np.minimum(x, y), 1)
    gap = big - small
    z = gap * (np.log(small) - 1) + big * np.log1p(gap / small)
    return np.where(x > y, z, -z)


def _exponential(x: Pair, sign: Any) -> Any:
    return sign * exp(x)


def _log_ratio(x: Pair, y: Pair, difference: Pair) -> tuple[Pair, Any]:
    """Return log(abs(gamma(x) / gamma(y))) and the sign; x and y are both poles or neither is."""
    both = _is_pole(x)
    odd = np.mod(difference.hi, 2) != np.mod(difference.lo, 2)
    sign = np.where(both, np.where(odd, -1, 1), _sign(x) * _sign(y))
    x, y = where(both, 1 - y, x), where(both, 1 - x, y)
    # If the difference is that large, so is one argument, and the ratio is 0 or infinite.
    result = pair(np.where(difference.hi > 0, 1e5, -1e5))
    inside = np.abs(difference.hi) <= VAST
    right, left = (x.hi > 0) & (y.hi > 0), (x.hi < -0.5) & (y.hi < -0.5)
    for place, function in (
        (inside & right, log_gamma_difference),
        (inside & left, _log_ratio_left),
        (inside & ~right & ~left, lambda x, y, _: log_gamma_of_pair(x) - log_gamma_of_pair(y)),
    ):
        replace(result, place, function, x, y, difference)
    return result, sign


def _log_ratio_left(x: Pair, y: Pair, difference: Pair) -> Pair:
    """Compute it by reflection (DLMF 5.5.3)."""
    (sine_x, _), (sine_y, _) = sin_cos_pi(x), sin_cos_pi(y)
    right = log_gamma_difference(1 - y, 1 - x, difference)
    return right + log(absolute(sine_y)) - log(absolute(sine_x))


# ----- differences of psi


def psi_increment(x: Any, h: Any) -> Any:
    """psi(x + h) - psi(x), with x + h not rounded."""
    total = sum_of(x, h)
    y = total.hi
    z = np.asarray(special.psi(y) - special.psi(x))
    finite = np.isfinite(x) & np.isfinite(h) & ~_is_pole(pair(x)) & ~_is_pole(total)
    right = (x > 0) & (y > 0)
    replace(z, finite & right, _psi_increment_right, x, y, h)
    near = (x < 0) & (y < 0) & (np.abs(h) < 0.125)
    replace(z, finite & near, _psi_increment_left, x, total, h)
    # The product with a tiny h loses all digits on the way.
    tiny = finite & near & (np.abs(h) < 1e-290) & (x < -1e-200)
    replace(z, tiny, lambda x, h: h * _tri_gamma_left(pair(x)), x, h)
    apart = finite & ~right & ~near
    replace(z, apart, lambda x, y: (psi_of_pair(y) - psi_of_pair(pair(x))).hi, x, total)
    z[(h == 0) & ~np.isnan(x) | (np.isposinf(x) & np.isfinite(h))] = 0
    return z


def _psi_increment_right(x: Any, y: Any, h: Any) -> Any:
    """Compute by recurrence and asymptotic series of both (DLMF 5.5.2, 5.11.2), in a form where all
    terms have the factor h.
    """
    # The recurrence raises both, so that x and y keep the distance h.
    count = np.maximum(np.ceil(STIRLING_FROM - np.minimum(x, y)), 0)
    low, high = np.minimum(x, y) + count, np.maximum(x, y) + count
    part = h / high / low
    u, v = 1 / low / low, 1 / high / high
    # (P(u) - P(v)) / (u - v) for the series P, by Horner's rule.
    value, slope = np.zeros_like(x), np.zeros_like(x)
    for c in [*_PSI_TAIL[::-1], 0.0]:
        slope = slope * v + value
        value = value * u + c
    z = part * (0.5 + (1 / low + 1 / high) * slope)
    base, moved = x + count, y + count
    relative = h / base
    close = relative > -0.5
    z = z + np.where(close, np.log1p(np.where(close, relative, 0)), np.log(moved / base))
    low, high = np.minimum(x, y), np.maximum(x, y)
    for k in range(int(count.max(initial=0)) - 1, -1, -1):
        z = z + np.where(k < count, h / (high + k) / (low + k), 0)
    return z


def _psi_increment_left(x: Any, y: Pair, h: Any) -> Any:
    """Compute it by reflection (DLMF 5.5.4)."""
    (sine_x, _), (sine_y, _), (sine_h, _) = sin_cos_pi(pair(x)), sin_cos_pi(y), sin_cos_pi(pair(h))
    mirrored = _psi_increment_right(1 - x, (1 - y).hi, -h)
    return (PI * (sine_h / sine_x / sine_y)).hi + mirrored


def tri_gamma_increment(x: Any, h: Any) -> Any:
    """tri_gamma(x + h) - tri_gamma(x), with x + h not rounded, for x, x + h > 0; elsewhere the
    plain difference where h is not small.
    """
    total = sum_of(x, h)
    moved = np.asarray(tri_gamma(total.hi))
    replace(
        moved, (total.hi < 0) & np.isfinite(total.hi) & ~_is_pole(total), _tri_gamma_left, total
    )
    z = np.asarray(moved - tri_gamma(x))
    finite = np.isfinite(x) & np.isfinite(h) & ~_is_pole(pair(x)) & ~_is_pole(total)
    right = (x > 0) & (total.hi > 0)
    replace(z, finite & right, _tri_gamma_increment_right, x, total.hi, h)
    near = (x < 0) & (total.hi < 0) & (np.abs(h) < 0.125)
    replace(z, finite & near, _tri_gamma_increment_left, x, total, h)
    z[(h == 0) & ~np.isnan(x) | (np.isposinf(x) & np.isfinite(h))] = 0
    return z


def _tri_gamma_increment_right(x: Any, y: Any, h: Any) -> Any:
    """Compute as in _psi_increment_right, with -h (1 / x + 1 / y) / (x y) for 1 / y^2 - 1 / x^2."""
    low, high = np.minimum(x, y), np.maximum(x, y)
    count = np.maximum(np.ceil(STIRLING_FROM - low), 0)
    u, v = 1 / (low + count), 1 / (high + count)
    # The series in powers of 1 / x, by Horner's rule for divided differences.
    series = [0.0, 1.0, 0.5, *(c for b in _BERNOULLI for c in (b, 0.0))]
    value, slope = np.zeros_like(x), np.zeros_like(x)
    for c in series[::-1]:
        slope = slope * v + value
        value = value * u + c
    z = h * v * u * slope
    for k in range(int(count.max(initial=0)) - 1, -1, -1):
        near, far = 1 / (low + k), 1 / (high + k)
        z = z + np.where(k < count, h * far * near * (near + far), 0)
    return -z


def _tri_gamma_increment_left(x: Any, y: Pair, h: Any) -> Any:
    """Compute it by reflection (DLMF 5.15.6)."""
    (sine_x, _), (sine_y, _), (sine_h, _) = sin_cos_pi(pair(x)), sin_cos_pi(y), sin_cos_pi(pair(h))
    both, _ = sin_cos_pi(y + x)
    square = (PI * (sine_h / sine_x / sine_y)) * (PI * (both / sine_x / sine_y))
    return -square.hi - _tri_gamma_increment_right(1 - x, (1 - y).hi, -h)
