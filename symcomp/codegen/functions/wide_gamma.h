/* Gamma functions in the wider type, if it has 64 bits: several times as fast as double-double,
   and exact enough where terms do not cancel. They return NaN for arguments outside of their
   range, and if there is no such type, as on cards: gamma.h then takes over. Prefix: w_. */

#ifndef WIDE
#define WIDE (__LDBL_MANT_DIG__ >= 64)
#endif

#if !WIDE
#define w_gamma(x) NAN
#define w_ratio(x, y) NAN
#define w_beta(a, b) NAN
#define w_log_ratio(x, y) NAN
#define w_betaln(a, b) NAN
#define w_polygamma(n, x) NAN
#else

/* Logarithms of smaller numbers have errors below half a unit of their exponentials. */
#define WIDE_END 300
#define WIDE_PI 3.14159265358979323846264338327950288L
#define WIDE_HALF_LOG_2PI ((long double)HALF_LOG_2PI_PAIR.hi + HALF_LOG_2PI_PAIR.lo)

HELPER long double w_of(pair x) { return (long double)x.hi + x.lo; }

/* exp(x), within a unit of the narrower type. */
HELPER long double w_exp(long double x)
{
    double high = (double)x;
    return fabs(high) < 700 ? exp(high) * (1 + (x - high)) : expl(x);
}

/* log(gamma(x) product) for x > 0. */
SLOW long double w_log_gamma(long double x, long double *product)
{
    *product = 1;
    for (; x < 16; x += 1) *product *= x;
    double inverse = (double)(1 / x);
    double tail = inverse * HORNER(STIRLING_DOUBLES, inverse * inverse);
    return (x - 0.5L) * logl(x) - x + (WIDE_HALF_LOG_2PI + tail);
}

/* The gamma function, not at a pole. */
SLOW double w_gamma(double x)
{
    long double product, place = x > 0 ? x : 1 - (long double)x;
    if (!(place < WIDE_END)) return NAN;
    long double z = w_exp(w_log_gamma(place, &product)) / product;
    if (x > 0) return (double)z;
    double whole = rint(x);
    long double sine = sinl(WIDE_PI * ((long double)x - whole));
    return (double)(WIDE_PI / ((fmod(whole, 2) != 0 ? -sine : sine) * z));
}

/* gamma(x) / gamma(y). */
SLOW double w_ratio(pair x, pair y)
{
    if (!(fmin(x.hi, y.hi) > 0 && fmax(x.hi, y.hi) < WIDE_END)) return NAN;
    long double of_x, of_y, gap = w_log_gamma(w_of(x), &of_x) - w_log_gamma(w_of(y), &of_y);
    return (double)(w_exp(gap) * (of_y / of_x));
}

SLOW double w_beta(double a, double b)
{
    long double of_a, of_b, of_sum, total = (long double)a + b;
    if (!(fmin(a, b) > 0 && total < WIDE_END)) return NAN;
    long double z = w_log_gamma(a, &of_a) + w_log_gamma(b, &of_b) - w_log_gamma(total, &of_sum);
    return (double)(w_exp(z) * (of_sum / of_a / of_b));
}

/* The difference of terms of some size, NaN if too many digits cancel. */
HELPER double w_kept(long double z, long double size)
{
    return fabsl(z) >= 0x1p-8L * size ? (double)z : NAN;
}

/* log(gamma(x) / gamma(y)). */
SLOW double w_log_ratio(pair x, pair y)
{
    if (!(fmin(x.hi, y.hi) > 0 && fmax(x.hi, y.hi) < HUGE_SIZE)) return NAN;
    long double of_x, of_y;
    long double of_first = w_log_gamma(w_of(x), &of_x), of_last = w_log_gamma(w_of(y), &of_y);
    return w_kept(of_first - of_last + logl(of_y / of_x), fabsl(of_first) + fabsl(of_last));
}

SLOW double w_betaln(double a, double b)
{
    if (!(fmin(a, b) > 0 && fmax(a, b) < HUGE_SIZE)) return NAN;
    long double of_a, of_b, of_sum, total = (long double)a + b, first = w_log_gamma(a, &of_a);
    long double second = w_log_gamma(b, &of_b), last = w_log_gamma(total, &of_sum);
    long double z = first + second - last + logl(of_sum / of_a / of_b);
    return w_kept(z, fabsl(first) + fabsl(second) + fabsl(last));
}

/* -- derivatives of psi, of orders below */

#define WIDE_ORDERS 32

HELPER long double w_power(long double x, int n)
{
    long double z = 1;
    for (; n > 0; n >>= 1, x *= x)
        if (n & 1) z *= x;
    return z;
}

/* Hurwitz's zeta function of s = n + 1 > 2 and x > 0, as g_zeta. */
SLOW long double w_zeta(int n, long double x)
{
    long double z = 0, term;
    for (; x < 2 * n + 12; x += 1) {
        term = 1 / w_power(x, n + 1);
        z += term;
        if (term < 0x1p-66L * z) return z;
    }
    double moved = (double)x, series = moved / n + 0.5, factor = (n + 1) / moved;
    for (int k = 0; k < LENGTH(ZETA_TAIL); k++) {
        series += ZETA_TAIL[k] * factor;
        factor = factor * ((n + 2 * k + 2) / moved) * ((n + 2 * k + 3) / moved);
    }
    return z + series / w_power(x, n + 1);
}

/* (-1)^(n + 1) times the derivative of psi of order n > 1 at x, not a pole. */
SLOW double w_polygamma(double n, double x)
{
    if (!(n < WIDE_ORDERS && fabs(x) > 1e-60 && fabs(x) < 1e60)) return NAN;
    int order = (int)n;
    long double z, factorial = 1;
    for (int k = 2; k <= order; k++) factorial *= k;
    if (x > 0) return (double)(factorial * w_zeta(order, x));
    long double left = -x - floor(-x), right = 1 - left;
    z = w_zeta(order, left) - w_zeta(order, 1 - (long double)x);
    return (double)(factorial * (w_zeta(order, right) + (order % 2 ? z : -z)));
}

#endif
