/* Functions of doubles computed in the wider type, which on cards is double itself. Prefix: e_. */

/* From |x| = 2^-8 on (in double: 1/4) the type holds the difference; below, the series does. */
INLINE double e_log1p_minus(double x)
{
    const int is_wider = sizeof(WIDER) > sizeof(double);
    WIDER series = 0;
    if (!(fabs(x) < (is_wider ? 0x1p-8 : 0.25)))
        return (double)(W(log1p)(x) - x);
    for (int n = is_wider ? 10 : 30; n > 1; n--)
        series = series * x + (n % 2 ? 1 : -1) / (WIDER)n;
    return (double)(series * x * x);
}

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

INLINE double e_compoundm1(WIDER x, WIDER y)
{
    double sign;
    WIDER exponent = power_of_sum(x, y, &sign);
    return (double)(sign == 1 ? W(expm1)(exponent) : sign * W(exp)(exponent) - 1);
}

/* The integral of t^n exp(x t) over t from 0 to 1. */
INLINE WIDER moment(int n, WIDER x)
{
    WIDER series = 0, term = 1, e = W(exp)(x), far = W(expm1)(x) / x;
    if (W(fabs)(x) < n + 2) {
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

INLINE double e_exp_moment(int n, WIDER x)
{
    return (double)moment(n, x);
}

/* For x > 0 by m(x) = 1 - m(-x): no exponential overflows. */
INLINE double e_exp_moment_ratio(double x)
{
    WIDER a = -W(fabs)(x), ratio = a == -INFINITY ? 0 : moment(1, a) / moment(0, a);
    return (double)(x > 0 ? 1 - ratio : ratio);
}

/* By its power series (DLMF 10.53.1) below n + 1, and by recurrence (10.51.1) from there on. */
INLINE double e_spherical_jn(int n, WIDER x)
{
    WIDER series = 0, term = 1, last = W(cos)(x) / x, now = W(sin)(x) / x;
    if (W(fabs)(x) < n + 1) {
        for (int k = 0; k < 20 + 2 * n; k++) {
            series += term;
            term *= -x * x / 2 / ((k + 1) * (WIDE_NUMBER(2.0) * n + 2 * k + 3));
        }
        for (int k = 1; k <= n; k++)
            series *= x / (2 * k + 1);
        return (double)series;
    }
    for (int k = 0; k < n; k++) {
        WIDER next = (2 * k + 1) * now / x - last;
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

INLINE WIDER vanishing_function(int kind, WIDER x)
{
    switch (kind) {
    case OVER_SINH: return W(sinh)(x);
    case OVER_TAN: return W(tan)(x);
    case OVER_TANH: return W(tanh)(x);
    case OVER_LOG1P: return W(log1p)(x);
    case OVER_ARCTAN: return W(atan)(x);
    case OVER_ARCTANH: return W(atanh)(x);
    case OVER_ARCSINH: return W(asinh)(x);
    case OVER_ARCSIN: return W(asin)(x);
    default: return W(erf)(x);
    }
}

/* The Taylor coefficients of the function from those of its derivative, in place: a[0] is the value.
   They follow from the differential equation of the function (Hairer, Norsett and Wanner, Solving
   Ordinary Differential Equations I, section I.8): y' = 1 +- y^2 for tan and tanh, a linear one for
   the derivatives b of the others. */
INLINE void taylor_coefficients(int kind, WIDER x, int count, WIDER *a)
{
    WIDER value = vanishing_function(kind, x), factorial = 1, *b = a + 1;
    int falls = kind == OVER_ARCTAN || kind == OVER_ARCSINH, sign = falls ? -1 : 1;
    int whole = kind == OVER_ARCTAN || kind == OVER_ARCTANH;
    WIDER weight = falls ? 1 + x * x : (1 - x) * (1 + x);
    a[0] = value;
    if (kind == OVER_TAN || kind == OVER_TANH) {
        for (int k = 0; k < count - 1; k++) {
            WIDER squares = 0;
            for (int i = 0; i <= k; i++)
                squares += a[i] * a[k - i];
            a[k + 1] = ((k == 0) + (kind == OVER_TAN ? squares : -squares)) / (k + 1);
        }
        return;
    }
    if (count > 1)
        b[0] = kind == OVER_SINH  ? W(cosh)(x)
               : kind == OVER_ERF ? WIDE_NUMBER(1.128379167095512573896158903121545172) * W(exp)(-x * x)
                                  : 1 / (kind == OVER_LOG1P ? 1 + x : whole ? weight : W(sqrt)(weight));
    for (int k = 0; k < count - 2; k++) {
        WIDER last = k ? b[k - 1] : 0;
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

INLINE double e_over_argument(int kind, int n, WIDER x)
{
    WIDER a[MOST_COEFFICIENTS], bound = kind == OVER_ERF ? 2 : n <= 2 ? WIDE_NUMBER(0.25) : WIDE_NUMBER(0.5);
    if (W(fabs)(x) < bound) {
        int count = kind == OVER_ERF ? 100 + 4 * n : (n <= 2 ? 40 : 76) + 2 * n;
        WIDER series = 0;
        taylor_coefficients(kind, 0, count, a);
        for (int k = count - 2; k >= n; k--) {
            WIDER falling = 1;
            for (int j = 0; j < n; j++)
                falling *= k - j;
            series = series * x + a[k + 1] * falling;
        }
        return (double)series;
    }
    WIDER q = 0, factorial = 1;
    taylor_coefficients(kind, x, n + 1, a);
    for (int k = 0; k <= n; k++) {
        q = (a[k] - q) / x;
        factorial *= k ? k : 1;
    }
    return (double)(q * factorial);
}
