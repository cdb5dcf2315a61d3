/* Functions of doubles computed in the wider type. Cards have no such type. Prefix: e_. */

/* From |x| = 2^-8 on the wider type holds the difference; below, the series does. */
INLINE double e_log1p_minus(double x)
{
    long double series = 0;
    if (!(fabs(x) < 0x1p-8))
        return (double)(log1pl(x) - x);
    for (int n = 10; n > 1; n--)
        series = series * x + (n % 2 ? 1 : -1) / (long double)n;
    return (double)(series * x * x);
}

/* y log|1 + x|, and the sign of (1 + x)^y; NaN where that is not real. */
INLINE long double power_of_sum(long double x, long double y, double *sign)
{
    long double gap = x < -1 ? -2 - x : x, rest = fmodl(y, 2);
    *sign = x >= -1 || x != x ? 1 : rest == 1 || rest == -1 ? -1 : floorl(y) == y ? 1 : NAN;
    return y == 0 || gap == 0 ? 0 : y * log1pl(gap);
}

INLINE double e_compound(long double x, long double y)
{
    double sign;
    long double exponent = power_of_sum(x, y, &sign);
    return (double)(sign * expl(exponent));
}

INLINE double e_compoundm1(long double x, long double y)
{
    double sign;
    long double exponent = power_of_sum(x, y, &sign);
    return (double)(sign == 1 ? expm1l(exponent) : sign * expl(exponent) - 1);
}

/* The integral of t^n exp(x t) over t from 0 to 1. */
INLINE long double moment(int n, long double x)
{
    long double series = 0, term = 1, e = expl(x), far = expm1l(x) / x;
    if (fabsl(x) < n + 2) {
        for (int k = 0; k < 40 + 4 * n; k++) {
            series += term / (n + k + 1);
            term = term * x / (k + 1);
        }
        return series;
    }
    if (x == -INFINITY)
        return 0;
    /* Where exp(x) is infinite so is the moment. */
    for (int k = 1; k <= n; k++)
        far = isinf(e) ? e : (e - k * far) / x;
    return far;
}

INLINE double e_exp_moment(int n, long double x)
{
    return (double)moment(n, x);
}

/* For x > 0 by m(x) = 1 - m(-x): no exponential overflows. */
INLINE double e_exp_moment_ratio(double x)
{
    long double a = -fabsl(x), ratio = a == -INFINITY ? 0 : moment(1, a) / moment(0, a);
    return (double)(x > 0 ? 1 - ratio : ratio);
}

/* By its power series (DLMF 10.53.1) below n + 1, and by recurrence (10.51.1) from there on. */
INLINE double e_spherical_jn(int n, long double x)
{
    long double series = 0, term = 1, last = cosl(x) / x, now = sinl(x) / x;
    if (fabsl(x) < n + 1) {
        for (int k = 0; k < 20 + 2 * n; k++) {
            series += term;
            term *= -x * x / 2 / ((k + 1) * (2.0L * n + 2 * k + 3));
        }
        for (int k = 1; k <= n; k++)
            series *= x / (2 * k + 1);
        return (double)series;
    }
    for (int k = 0; k < n; k++) {
        long double next = (2 * k + 1) * now / x - last;
        last = now;
        now = next;
    }
    return (double)now;
}

/* The n-th derivative of f(x) / x, for functions f that vanish at 0: near 0 from the Maclaurin series
   of f, where the tail is below 2^-64; elsewhere from its Taylor coefficients a_k, as those of the
   quotient are q_k = (a_k - q_(k-1)) / x, which loses at most 4^n of the 11 bits that the wider type
   has more. The numbers are the places in the tuple FUNCTIONS of over_argument.py; the longest series is that of erf at the
   highest order. */
enum { OVER_SINH, OVER_TAN, OVER_TANH, OVER_LOG1P, OVER_ARCTAN, OVER_ARCTANH, OVER_ARCSINH, OVER_ARCSIN, OVER_ERF };
#define MOST_COEFFICIENTS 180

INLINE long double vanishing_function(int kind, long double x)
{
    switch (kind) {
    case OVER_SINH: return sinhl(x);
    case OVER_TAN: return tanl(x);
    case OVER_TANH: return tanhl(x);
    case OVER_LOG1P: return log1pl(x);
    case OVER_ARCTAN: return atanl(x);
    case OVER_ARCTANH: return atanhl(x);
    case OVER_ARCSINH: return asinhl(x);
    case OVER_ARCSIN: return asinl(x);
    default: return erfl(x);
    }
}

/* The Taylor coefficients of the function from those of its derivative, in place: a[0] is the value.
   They follow from the differential equation of the function (Hairer, Norsett and Wanner, Solving
   Ordinary Differential Equations I, section I.8): y' = 1 +- y^2 for tan and tanh, a linear one for
   the derivatives b of the others. */
INLINE void taylor_coefficients(int kind, long double x, int count, long double *a)
{
    long double value = vanishing_function(kind, x), factorial = 1, *b = a + 1;
    int falls = kind == OVER_ARCTAN || kind == OVER_ARCSINH, sign = falls ? -1 : 1;
    int whole = kind == OVER_ARCTAN || kind == OVER_ARCTANH;
    long double weight = falls ? 1 + x * x : (1 - x) * (1 + x);
    a[0] = value;
    if (kind == OVER_TAN || kind == OVER_TANH) {
        for (int k = 0; k < count - 1; k++) {
            long double squares = 0;
            for (int i = 0; i <= k; i++)
                squares += a[i] * a[k - i];
            a[k + 1] = ((k == 0) + (kind == OVER_TAN ? squares : -squares)) / (k + 1);
        }
        return;
    }
    if (count > 1)
        b[0] = kind == OVER_SINH  ? coshl(x)
               : kind == OVER_ERF ? 1.128379167095512573896158903121545172L * expl(-x * x)
                                  : 1 / (kind == OVER_LOG1P ? 1 + x : whole ? weight : sqrtl(weight));
    for (int k = 0; k < count - 2; k++) {
        long double last = k ? b[k - 1] : 0;
        if (kind == OVER_SINH) {
            factorial *= k + 1;
            b[k + 1] = (k % 2 ? b[0] : value) / factorial;
        } else if (kind == OVER_LOG1P)
            b[k + 1] = -b[k] * b[0];
        else if (kind == OVER_ERF)
            b[k + 1] = -2 * (x * b[k] + last) / (k + 1);
        else if (whole)
            b[k + 1] = sign * (2 * x * b[k] + last) / weight;
        else
            b[k + 1] = sign * ((2 * k + 1) * x * b[k] + k * last) / (k + 1) / weight;
    }
    for (int k = 0; k < count - 1; k++)
        b[k] /= k + 1;
}

INLINE double e_over_argument(int kind, int n, long double x)
{
    long double a[MOST_COEFFICIENTS], bound = kind == OVER_ERF ? 2 : n <= 2 ? 0.25L : 0.5L;
    if (fabsl(x) < bound) {
        int count = kind == OVER_ERF ? 100 + 4 * n : (n <= 2 ? 40 : 76) + 2 * n;
        long double series = 0;
        taylor_coefficients(kind, 0, count, a);
        for (int k = count - 2; k >= n; k--) {
            long double falling = 1;
            for (int j = 0; j < n; j++)
                falling *= k - j;
            series = series * x + a[k + 1] * falling;
        }
        return (double)series;
    }
    long double q = 0, factorial = 1;
    taylor_coefficients(kind, x, n + 1, a);
    for (int k = 0; k <= n; k++) {
        q = (a[k] - q) / x;
        factorial *= k ? k : 1;
    }
    return (double)(q * factorial);
}
