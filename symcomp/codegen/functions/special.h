/* Functions of doubles in several parts: error functions by scaled functions that vary slowly
   (error_tables.py) and exp(-x^2) with its exponent kept exactly. Prefix: e_. */

#define SQRT_HALF 0x1.6a09e667f3bcdp-1
#define INVERSE_SQRT_PI 0x1.20dd750429b6dp-1

INLINE double polynomial(int n, const double *coefficients, double t)
{
    double z = coefficients[n - 1];
    for (int i = n - 2; i >= 0; i--)
        z = z * t + coefficients[i];
    return z;
}

#define POLYNOMIAL(table, t) polynomial(sizeof table / sizeof *table, table, t)

/* Where x is NaN, so is the result. */
INLINE double at_most(double limit, double x)
{
    return x > limit ? limit : x;
}

INLINE double place_of_tail(double a)
{
    return a == INFINITY ? 1 : (a - 4) / (a + 4);
}

/* erf(x) for |x| <= 1. */
INLINE double erf_near(double x)
{
    return x * POLYNOMIAL(ERF_TABLE, 2 * x * x - 1);
}

/* exp(a^2) erfc(a) for a >= 0. */
INLINE double erfcx_right(double a)
{
    if (a < 0.25)
        return exp_square(a, 1) * (1 - erf_near(a));
    return POLYNOMIAL(ERFCX_TABLE, place_of_tail(a)) / 2 / (0.5 + a);
}

/* The result overflows beyond -27. */
INLINE double e_erfcx(double x)
{
    double right = erfcx_right(fabs(x));
    return x < 0 ? 2 * exp_square(x < -27 ? -27 : x, 1) - right : right;
}

INLINE double e_ierfcx(double x)
{
    double a = fabs(x);
    if (x < 0.25)
        return INVERSE_SQRT_PI - x * e_erfcx(x);
    return POLYNOMIAL(IERFCX_TABLE, place_of_tail(a)) / (1 + a) / (1 + a);
}

INLINE double e_xerfcx(double x)
{
    return x * e_erfcx(x);
}

/* The derivative of e_xerfcx, whose parts cancel where x is large. */
INLINE double e_xerfcx_slope(double x)
{
    double a = fabs(x), b = 1 + a;
    if (x < 0.25)
        return e_erfcx(x) - 2 * x * e_ierfcx(x);
    return POLYNOMIAL(XERFCX_SLOPE_TABLE, place_of_tail(a)) / b / b / b;
}

/* erf(x) for x <= 1/2; -1 beyond -7. */
INLINE double erf_below(double x)
{
    double far = at_most(7, -x);
    return x >= -1 ? erf_near(x) : exp_square(far, -1) * erfcx_right(far) - 1;
}

INLINE double e_log_erfc(double x)
{
    return x < 0.5 ? m_log1p(-erf_below(x)) : m_log(erfcx_right(x)) - x * x;
}

/* The tail underflows beyond 39. */
INLINE double e_ndtr(double x)
{
    double a = at_most(39, fabs(x));
    double tail = exp_square(a, -0.5) * erfcx_right(a * SQRT_HALF) / 2;
    return x < 0 ? tail : 1 - tail;
}

INLINE double e_log_ndtr(double x)
{
    if (x < 0)
        return m_log(erfcx_right(-x * SQRT_HALF) / 2) - x * x / 2;
    return m_log1p(-e_ndtr(-x));
}

/* log(erfc(x) / 2), where erfc is near 2, too. The tail underflows beyond 28. */
INLINE double e_log_half_erfc(double x)
{
    double a = at_most(28, fabs(x));
    if (x < 0)
        return m_log1p(-exp_square(a, -1) * erfcx_right(a) / 2);
    return m_log(erfcx_right(x) / 2) - x * x;
}

/* A power of a negative number is positive for even integer exponents. */
INLINE double e_log_of_pow(double x, double y)
{
    double power = m_pow(x, y);
    int positive = power > 0 || x > 0 || (x < 0 && fmod(y, 2.0) == 0);
    return positive ? y * m_log(fabs(x)) : m_log(power);
}

/* -- logarithms of sums, in double-double (pairs.h) where large parts cancel */

INLINE double e_logaddexp(double x, double y)
{
    double top = (x >= y) | (x != x) ? x : y, gap = fabs(x - y);
    double z = x == y ? x + 0x1.62e42fefa39efp-1 : top + m_log1p(m_exp(-gap));
    if (!(fabs(z) < fabs(x) / 2))
        return z;
    pair difference = x == y ? p_of(0) : x > y ? p_sum(y, -x) : p_sum(x, -y);
    return p_add_d(p_log1p_exp(difference), top).hi;
}

INLINE double e_logdiffexp(double x, double y)
{
    double z = x == y && x == -INFINITY ? x : x + r_log1mexp(y - x);
    if (!(fabs(z) < fabs(x)))
        return z;
    return p_add_d(p_log1m_exp(p_sum(y, -x)), x).hi;
}
