"""LU decompositions with solutions and determinants corrected to the last digits.

Error bounds, and why they hold with any BLAS and LAPACK
-----------------------------------------------------------
Let u = 2^-53 and n the number of rows. Matrices are first scaled by powers of two, which rounds
nothing, so that nothing over- or underflows on the way. ``a x = b`` is solved by iterative
refinement (Wilkinson, "Rounding errors in algebraic processes", 1963): x, kept as a sum of two
float64 numbers, gets the correction d that LAPACK's factors give for the residual r = b - a x,
again and again.

The residual. Each matrix is cut into slices of k = (53 - bits of n) // 2 bits (Ozaki, Ogita,
Oishi and Rump, "Error-free transformations of matrix multiplication", 2012). All partial sums of
a product of the leading slices are multiples of one number and fit 53 bits: such a product is
exact, in whatever order a library adds, with fused operations or without. The three largest
products of slices are exact; the others, 2^-2k times smaller, are rounded. So the error of r is
at most e |a| |x| with e = 4 n u 2^-2k, which is 2^-91 for n = 64.

The corrections. The factors of any library give d = (1 + F) a^-1 r, where F is due to its
rounding. If the error of x is E, that of x + d is -F E + (1 + F) a^-1 (error of r): each
correction multiplies the error by |F|, down to |1 + F| e |a^-1| |a| |x|. As long as |F| <= 1/2,
rounding decides the number of corrections, not their result. Corrections are added while each is
at most half of the one before (otherwise |F| is larger, and no digit is certain). After d, |E| <=
|F| / (1 - |F|) |d| <= min(1, 2 |F|) |d| in the maximum norm. |F| is below 3 n u times the norm of
|a^-1| |L| |U| (Higham, "Accuracy and Stability of Numerical Algorithms", 2002, theorem 9.4), and
|a^-1| is below the product of the inverses of the comparison matrices of U and L (ibid., 8.12),
whose diagonals are positive and whose other elements are negative. A column is done once this
bound of E is below u / 16 of each of its elements, or below 2^-80 of the largest.

So x is the exact solution rounded, within one unit of the last place, in all elements that are
above 2^-25 and above 2^-35 cond(a) of the largest of their column (2^-80 / 2^-25 and 1.5 e /
2^-35 are u / 4).

The determinant. With R = a - L U, found as residuals are, L U = a (1 - F) for the solution F of a
F = R, so that log |det a| is log |det L U| + trace(F) + trace(F^2) / 2 + ...; F has the size of n
u cond(a), and the series ends where terms are below u / 16 of the result.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from symcomp.lazy import lazy_module
from symcomp.ops.numerics.exact import two_sum
from symcomp.ops.reductions.stable_reduce import log_prod

blas, lapack = lazy_module("scipy.linalg.blas"), lazy_module("scipy.linalg.lapack")

# Rows are scaled if their sizes differ by more powers of two.
SPREAD = 60
# Relative to an element: smaller errors change no digit of the result.
NEGLIGIBLE = 2.0**-57
# Relative to the largest element of a column: smaller corrections are rounding errors of residuals.
NOISE = 2.0**-80
# Higher powers of a matrix of norm 1/2 are negligible.
MOST_TERMS = 64

# -- numbers with more digits


def largest_exponent(e: Any, nothing: Any, axis: int) -> Any:
    """Return the largest exponent of the nonzero numbers along a kept axis; 0 if all are zero."""
    largest = np.where(nothing, np.iinfo(e.dtype).min // 4, e).max(axis=axis, keepdims=True)
    return np.where(nothing.all(axis=axis, keepdims=True), 0, largest)


def scale_columns(b: Any, rows: Any) -> tuple[Any, Any]:
    """Return ``2^-rows b``, its columns scaled to about 1, and the powers of two for these."""
    mantissa, e = np.frexp(b.astype(np.float64))
    e = e - rows
    power = largest_exponent(e, mantissa == 0, 0)
    return np.ldexp(mantissa, e - power), power


def _leading(x: Any, axis: int, bits: int) -> Any:
    """Return ``x`` rounded to ``bits`` bits of its largest element along the axis."""
    _, e = np.frexp(np.abs(x).max(axis=axis, keepdims=True, initial=0))
    shift = np.ldexp(1.5, e + 52 - bits)
    return (x + shift) - shift


class Slices:
    """A left factor of products, divided into its leading, following and last bits."""

    def __init__(self, a: Any) -> None:
        # Sums of n products of two numbers of this many bits have at most 53 bits.
        self.bits = (53 - a.shape[1].bit_length()) // 2
        self.whole = a
        self.high = _leading(a, 1, self.bits)
        self.middle = _leading(a - self.high, 1, self.bits)
        self.low = a - self.high - self.middle


def residual(b: Any, a: Slices, x: Any, rest: Any) -> Any:
    """Return ``b - a (x + rest)``, rounded once for each of its largest parts."""
    high = _leading(x, 0, a.bits)
    below = x - high
    middle = _leading(below, 0, a.bits)
    left, lost = two_sum(b, -(a.high @ high))
    for exact in (a.high @ middle, a.middle @ high):
        left, error = two_sum(left, -exact)
        lost = lost + error
    rounded = a.high @ (below - middle) + a.middle @ below + a.low @ x + a.whole @ rest
    return left + (lost - rounded)


def _sizes(x: Any) -> Any:
    """Return the largest modulus of each column."""
    return np.abs(x).max(axis=0, initial=0)


def _settled(error: Any, x: Any, enough: float) -> Any:
    """Tell of each column whether an error is negligible beside each element, or is noise."""
    least = np.abs(x).min(axis=0, initial=np.inf)
    return error <= np.maximum(enough * least, NOISE * _sizes(x))


# -- factors


class Factored:
    """A float64 matrix a and its LU decomposition: ``scaled = 2^-rows a 2^-columns = P L U``."""

    def __init__(self, a: Any) -> None:
        mantissa, e = np.frexp(a)
        nothing = mantissa == 0
        self.columns = largest_exponent(e, nothing, 0)
        self.rows = largest_exponent(e - self.columns, nothing, 1)
        # Scaling rows changes the pivots, and so which matrices are found singular: only rows of
        # very different size, whose small ones elimination would lose, are scaled.
        if self.rows.max() - self.rows.min() > SPREAD:
            self.columns = largest_exponent(e - self.rows, nothing, 0)
        else:
            self.rows = np.zeros_like(self.rows)
        self.scaled = np.ldexp(mantissa, e - self.rows - self.columns)
        self.lu, pivots, info = lapack.dgetrf(self.scaled)
        self.singular = info > 0
        self.swaps = np.count_nonzero(pivots != np.arange(len(a)))
        # Row i of L U is row order[i] of the scaled matrix.
        order = list(range(len(a)))
        for i, j in enumerate(pivots.tolist()):
            order[i], order[j] = order[j], order[i]
        self.order = np.array(order)

    def eliminated(self, b: Any) -> Any:
        """Return x with ``P L U x = b``.

        One call of dgetrs does the same, but with threads even for the smallest matrices.
        """
        b = b[self.order]
        return blas.dtrsm(1.0, self.lu, blas.dtrsm(1.0, self.lu, b, lower=1, diag=1))

    def solution(self, b: Any, enough: float = NEGLIGIBLE) -> tuple[Any, Any]:
        """Return x with ``scaled x = b``, as an array and its rounding error.

        The error is at most ``enough`` times each element; 0 asks for all digits of the pair.
        """
        if self.singular:
            raise np.linalg.LinAlgError("Singular matrix")
        slices, x = Slices(self.scaled), self.eliminated(b)
        rest, before, factor = np.zeros_like(x), _sizes(x), self._error_factor()
        while True:
            step = self.eliminated(residual(b, slices, x, rest))
            size = _sizes(step)
            shrinks = size <= before / 2
            step[:, ~shrinks] = 0
            x, rest = two_sum(x, rest + step)
            if (_settled(factor * size, x, enough) | ~shrinks).all():
                return x, rest
            # A column that no longer shrinks, or is 0, is left unchanged.
            before = np.where(shrinks, size, 0)

    def _error_factor(self) -> Any:
        """Return a bound of the error left after a correction, relative to the correction."""
        n, size = len(self.lu), np.abs(self.lu)
        rows = np.triu(size).sum(axis=1)
        rows = np.tril(size, -1) @ rows + rows
        comparison = -size
        np.fill_diagonal(comparison, np.diagonal(size))
        rows = blas.dtrsv(comparison, blas.dtrsv(comparison, rows, lower=1, diag=1))
        # Twice the bound of |F|, and a factor 2 for the rounding of the bound itself.
        return np.fmin(12 * n * 2.0**-53 * rows.max(), 1)

    def inverse(self) -> Any:
        """Return the inverse of the matrix."""
        x, _ = self.solution(np.eye(len(self.lu)))
        return np.ldexp(x, -self.columns.T - self.rows.T)

    def determinant(self) -> tuple[float, Any]:
        """Return the sign of the determinant and the logarithm of its modulus."""
        if self.singular:
            return 0.0, -np.inf
        d = np.diagonal(self.lu)
        sign = np.prod(np.sign(d)) * (-1.0) ** self.swaps
        # The power of two taken out by scaling, split in equal parts that are far inside the range.
        part, left = divmod(int(self.rows.sum() + self.columns.sum()), 2 * len(d))
        powers = np.ldexp(1.0, np.repeat([part, part + 1], [2 * len(d) - left, left]))
        factors = np.concatenate([np.abs(d), powers])
        lower, upper = np.tril(self.lu, -1) + np.eye(len(d)), np.triu(self.lu)
        errors = np.empty_like(lower)
        errors[self.order] = residual(self.scaled[self.order], Slices(lower), upper, 0 * upper)
        # The scaled matrix is P L U (1 + e), and log det(1 + e) = trace(e) + O(e^2).
        e = self.eliminated(errors)
        logabs = _log_prod_exp(factors, np.trace(e))
        small_enough = NEGLIGIBLE * np.abs(logabs)
        if len(e) * _norm(e) ** 2 > small_enough:
            f, _ = self.solution(errors)
            logabs = _log_prod_exp(factors, _minus_log_det(f, small_enough))
        return sign, logabs


def _norm(x: Any) -> Any:
    return np.abs(x).sum(axis=1).max()


def _minus_log_det(f: Any, small_enough: Any) -> Any:
    """Return ``-log det(1 - f) = trace(f) + trace(f^2) / 2 + ...``."""
    if not _norm(f) <= 0.5:
        return 0.0  # the series may not converge
    result, power, bound = np.trace(f), f, len(f) * _norm(f)
    for k in range(2, MOST_TERMS):
        power, bound = power @ f, bound * _norm(f)
        if bound <= small_enough:
            break
        result += np.trace(power) / k
    return result


def _log_prod_exp(factors: Any, x: Any) -> Any:
    """Return ``log(exp(x) prod_i factors_i)``; if x is large or undefined, no digit is certain."""
    factor, left_out = two_sum(1.0, np.expm1(x) if abs(x) < 0.5 else 0.0)
    return log_prod(np.append(factors, factor), np.append(0 * factors, left_out))
