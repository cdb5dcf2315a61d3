/* The n-th derivative of f(x) / x^power, where f is a function without the first terms of its series, of
   exponents less than `terms`: near 0 from the rest of the series, where the tail is below 2^-64; elsewhere
   from the Taylor coefficients a_k at x, as those of a quotient by x are q_k = (a_k - q_(k-1)) / x. Terms
   whose exponents are below the power are subtracted between divisions, the others after these. At the
   bounds that loses at most 4^(terms + n) of the 11 bits that the wider type has more. */
enum {
    SERIES_EXP, SERIES_SIN, SERIES_COS, SERIES_COSH, SERIES_SINH, SERIES_TAN, SERIES_TANH, SERIES_LOG1P,
    SERIES_ARCTAN, SERIES_ARCTANH, SERIES_ARCSINH, SERIES_ARCSIN, SERIES_ERF
}; /* the places in the tuple FUNCTIONS of series_remainder.py */
#define HIGHEST_SERIES_ORDER 20

/* sin(x + rest), cos(x + rest) or tan(x + rest), where the rest is the rounding error of x; it counts near zeros
   and for large x. */
INLINE WIDER periodic_function(int kind, WIDER x, WIDER rest)
{
    WIDER z = kind == SERIES_SIN ? W(sin)(x) : kind == SERIES_COS ? W(cos)(x) : W(tan)(x);
    if (W(fabs)(rest) * (kind == SERIES_TAN ? 1 + z * z : 1) < WIDE_NUMBER(7e-18) * W(fabs)(z))
        return z;
    int near = W(fabs)(rest) < WIDE_NUMBER(1e-10);
    WIDER s = W(sin)(x), c = W(cos)(x), t = near ? rest : W(sin)(rest), d = near ? 1 : W(cos)(rest);
    WIDER sine = s * d + c * t, cosine = c * d - s * t;
    return kind == SERIES_SIN ? sine : kind == SERIES_COS ? cosine : sine / cosine;
}

/* f(x + rest). Functions that are not periodic do not depend on the rounding error of x. */
INLINE WIDER series_function(int kind, WIDER x, WIDER rest)
{
    if (rest != 0)
        return periodic_function(kind, x, rest);
    switch (kind) {
    case SERIES_EXP: return W(exp)(x);
    case SERIES_SIN: return W(sin)(x);
    case SERIES_COS: return W(cos)(x);
    case SERIES_COSH: return W(cosh)(x);
    case SERIES_SINH: return W(sinh)(x);
    case SERIES_TAN: return W(tan)(x);
    case SERIES_TANH: return W(tanh)(x);
    case SERIES_LOG1P: return W(log1p)(x);
    case SERIES_ARCTAN: return W(atan)(x);
    case SERIES_ARCTANH: return W(atanh)(x);
    case SERIES_ARCSINH: return W(asinh)(x);
    case SERIES_ARCSIN: return W(asin)(x);
    default: return W(erf)(x);
    }
}

/* The Taylor coefficients of exp, and of functions whose second derivatives are these or their negatives;
   a[0] is the value. */
HELPER void exponential_coefficients(int kind, WIDER x, WIDER rest, int count, WIDER *a)
{
    int turns = kind == SERIES_SIN || kind == SERIES_COS;
    WIDER next = a[0], factorial = 1;
    if (count > 1 && kind != SERIES_EXP)
        next = kind == SERIES_SIN    ? series_function(SERIES_COS, x, rest)
               : kind == SERIES_COS  ? -series_function(SERIES_SIN, x, rest)
               : kind == SERIES_COSH ? W(sinh)(x)
                                     : W(cosh)(x);
    for (int k = 1; k < count; k++) {
        factorial *= k;
        a[k] = (turns && k & 2 ? -1 : 1) * (k % 2 ? next : a[0]) / factorial;
    }
}

/* The Taylor coefficients of the function at x + rest from those of its derivative, in place: a[0] is the value.
   They follow from the differential equation of the function (Hairer, Norsett and Wanner, Solving
   Ordinary Differential Equations I, section I.8): y' = 1 +- y^2 for tan and tanh, a linear one for
   the derivatives b of the others. */
HELPER void taylor_coefficients(int kind, WIDER x, WIDER rest, int count, WIDER *a)
{
    WIDER *b = a + 1;
    int falls = kind == SERIES_ARCTAN || kind == SERIES_ARCSINH, sign = falls ? -1 : 1;
    int whole = kind == SERIES_ARCTAN || kind == SERIES_ARCTANH;
    WIDER weight = falls ? 1 + x * x : (1 - x) * (1 + x);
    a[0] = series_function(kind, x, rest);
    if (kind <= SERIES_SINH) {
        exponential_coefficients(kind, x, rest, count, a);
        return;
    }
    if (kind == SERIES_TAN || kind == SERIES_TANH) {
        WIDER cosine = kind == SERIES_TANH ? W(cosh)(x) : 1;
        if (count > 1)
            a[1] = kind == SERIES_TAN ? 1 + a[0] * a[0] : 1 / (cosine * cosine);
        for (int k = 1; k < count - 1; k++) {
            WIDER squares = 0;
            for (int i = 0; i <= k; i++)
                squares += a[i] * a[k - i];
            a[k + 1] = (kind == SERIES_TAN ? squares : -squares) / (k + 1);
        }
        return;
    }
    if (count > 1)
        b[0] = kind == SERIES_ERF ? WIDE_NUMBER(1.128379167095512573896158903121545172) * W(exp)(-x * x)
                                  : 1 / (kind == SERIES_LOG1P ? 1 + x : whole ? weight : W(sqrt)(weight));
    for (int k = 0; k < count - 2; k++) {
        WIDER last = k ? b[k - 1] : 0;
        if (kind == SERIES_LOG1P)
            b[k + 1] = -b[k] * b[0];
        else if (kind == SERIES_ERF)
            b[k + 1] = -2 * (x * b[k] + last) / (k + 1);
        else if (whole)
            b[k + 1] = sign * (2 * x * b[k] + last) / weight;
        else
            b[k + 1] = sign * ((2 * k + 1) * x * b[k] + k * last) / (k + 1) / weight;
    }
    for (int k = 0; k < count - 1; k++)
        b[k] /= k + 1;
}

/* From this |x| on the Taylor coefficients at x serve, below those at 0. */
INLINE WIDER series_bound(int kind, int terms, int n)
{
    if (kind <= SERIES_SINH)
        return WIDE_NUMBER(0.5) * (terms + n + 2);
    return kind == SERIES_ERF ? 2 : terms + n <= 3 ? WIDE_NUMBER(0.25) : WIDE_NUMBER(0.5);
}

/* The exponents of the terms of a series are multiples of 2, these plus 1, or all. */
INLINE int series_step(int kind)
{
    return kind == SERIES_EXP || kind == SERIES_LOG1P ? 1 : 2;
}

INLINE int series_offset(int kind)
{
    return series_step(kind) == 2 && kind != SERIES_COS && kind != SERIES_COSH;
}

/* The coefficient of x^k. */
INLINE WIDER series_coefficient(int kind, int k)
{
    int place = k - series_offset(kind);
    return place % series_step(kind) ? 0 : SERIES_COEFFICIENTS[SERIES_STARTS[kind] + place / series_step(kind)];
}

/* The exponent of the last term that counts, where the first that is not subtracted has the exponent `first`
   and |x| is below the bound. */
INLINE int last_exponent(int kind, int first, int terms, int n, WIDER x)
{
    int entire = kind <= SERIES_SINH, order = terms + n, length = (order <= 3 ? 40 : 76) + 2 * order;
    if (kind == SERIES_ERF)
        length = 100 + 4 * n + terms;
    else if (entire)
        length = 24 + 4 * order;
    int enough = first + 20 + 2 * order;
    if (W(fabs)(x) < WIDE_NUMBER(0.0625) && enough < length)
        length = enough;
    return length - 1 - (length - 1 - first) % series_step(kind);
}

HELPER WIDER series_remainder(int kind, int terms, int power, int n, WIDER x)
{
    WIDER a[HIGHEST_SERIES_ORDER + 1], factorial = 1;
    if (W(fabs)(x) < series_bound(kind, terms, n)) {
        WIDER series = 0;
        int first = terms > power + n ? terms : power + n, step = series_step(kind);
        first += (first - series_offset(kind)) % step;
        for (int k = last_exponent(kind, first, terms, n, x); k >= first; k -= step) {
            WIDER falling = 1;
            for (int j = 0; j < n; j++)
                falling *= k - power - j;
            series = series * (step == 2 ? x * x : x) + series_coefficient(kind, k) * falling;
        }
        for (int k = first - power - n; k > 0; k--)
            series *= x;
        return series;
    }
    taylor_coefficients(kind, x, 0, n + 1, a);
    for (int k = 2; k <= n; k++)
        factorial *= k;
    int over = isinf(a[n]) && !isinf(x);
    for (int j = 0; j < power; j++) {
        WIDER q = 0;
        a[0] -= series_coefficient(kind, j);
        for (int k = 0; k <= n; k++)
            a[k] = q = over ? a[k] / x : (a[k] - q) / x;
    }
    /* The n-th Taylor coefficients of the other terms, over x^power. */
    for (int j = power + n; j < terms; j++) {
        WIDER c = series_coefficient(kind, j), term = c;
        for (int k = 0; k < j - power; k++)
            term *= k < n ? (WIDER)(j - power - k) / (k + 1) : x;
        a[n] -= c ? term : 0;
    }
    return a[n] * factorial;
}

INLINE double e_series_remainder(int kind, int terms, int power, int n, WIDER x)
{
    return (double)series_remainder(kind, terms, power, n, x);
}

/* For x > 0 by m(x) = 1 - m(-x): no exponential overflows. */
INLINE double e_exp_moment_ratio(double x)
{
    WIDER a = -W(fabs)(x), ratio = 0;
    if (a != -INFINITY)
        ratio = series_remainder(SERIES_EXP, 1, 1, 1, a) / series_remainder(SERIES_EXP, 1, 1, 0, a);
    return (double)(x > 0 ? 1 - ratio : ratio);
}

/* coth(x) - 1 / x = q' / q for q = sinh(x) / x. */
INLINE double e_coth_minus_inverse(double x)
{
    WIDER a = W(fabs)(x), z = 1 - 1 / a;
    if (a < 40)
        z = series_remainder(SERIES_SINH, 1, 1, 1, a) / series_remainder(SERIES_SINH, 1, 1, 0, a);
    return copysign((double)z, x);
}

/* (1 + x) log(1 + x) - x = (1 + x) (t - log(1 + t)) for t = 1 / (1 + x) - 1. */
INLINE double e_log1p_integral(WIDER x)
{
    WIDER t = -x / (1 + x);
    if (W(fabs)(t) < WIDE_NUMBER(0.25))
        return (double)(-(1 + x) * series_remainder(SERIES_LOG1P, 2, 0, 0, t));
    return (double)(x == -1 ? 1 : (1 + x) * W(log1p)(x) - x);
}

/* x log(x / y) - x + y = x (t - log(1 + t)) for t = y / x - 1. */
INLINE double e_kl_div(WIDER x, WIDER y)
{
    WIDER t = (y - x) / x;
    if (W(fabs)(t) < WIDE_NUMBER(0.25))
        return (double)(-x * series_remainder(SERIES_LOG1P, 2, 0, 0, t));
    return (double)(x * W(log)(x / y) - x + y);
}
