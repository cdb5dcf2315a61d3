/* Functions of doubles computed in the wider type, which on cards is double itself. Prefix: e_. */

/* y log|1 + x|, and the sign of (1 + x)^y; NaN where that is not real. */
INLINE WIDER power_of_sum(WIDER x, WIDER y, double *sign)
{
    WIDER gap = x < -1 ? -2 - x : x, rest = W(fmod)(y, (WIDER)2);
    *sign = x >= -1 || x != x ? 1 : rest == 1 || rest == -1 ? -1 : W(floor)(y) == y ? 1 : NAN;
    return y == 0 || gap == 0 ? 0 : y * W(log1p)(gap);
}

INLINE double e_compound(WIDER x, WIDER y)
{
    double sign;
    WIDER exponent = power_of_sum(x, y, &sign);
    return (double)(sign * W(exp)(exponent));
}

/* exp(y log(x)) - 1. */
INLINE double e_powm1(WIDER x, WIDER y)
{
    return (double)W(expm1)(y * W(log)(x));
}

INLINE double e_exp_minus_cos(WIDER x)
{
    WIDER half = W(sin)(x / 2);
    return (double)(W(fabs)(x) < 1 ? W(expm1)(x) + 2 * half * half : W(exp)(x) - W(cos)(x));
}

INLINE double e_compoundm1(WIDER x, WIDER y)
{
    double sign;
    WIDER exponent = power_of_sum(x, y, &sign);
    return (double)(sign == 1 ? W(expm1)(exponent) : sign * W(exp)(exponent) - 1);
}

/* The spherical Bessel function over x^power, for power <= n: by its power series (DLMF 10.53.1) below
   n + 1, and by recurrence (10.51.1) from there on. */
INLINE double e_spherical_jn(int n, int power, WIDER x)
{
    WIDER series = 0, term = 1, last = W(cos)(x) / x, now = W(sin)(x) / x;
    if (W(fabs)(x) < n + 1) {
        for (int k = 0; k < 20 + 2 * n; k++) {
            series += term;
            term *= -x * x / 2 / ((k + 1) * (WIDE_NUMBER(2.0) * n + 2 * k + 3));
        }
        for (int k = 1; k <= n; k++)
            series *= (k > power ? x : 1) / (2 * k + 1);
        return (double)series;
    }
    for (int k = 0; k < n; k++) {
        WIDER next = (2 * k + 1) * now / x - last;
        last = now;
        now = next;
    }
    for (int k = 0; k < power; k++)
        now /= x;
    return (double)now;
}
