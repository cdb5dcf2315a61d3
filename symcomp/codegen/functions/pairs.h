/* Double-double arithmetic: about 31 digits, for functions whose terms cancel. A number is the
   unevaluated sum of two doubles, of which the first is the sum rounded. Sums and products are the
   error-free transformations of Dekker (1971), "A floating-point technique for extending the
   available precision", and Knuth (TAOCP 2, 4.2.2); what a step loses is about 2^-104 of its
   result. Products and quotients need factors below 2^990, and their errors to be no subnormals.
   The tables are written before this by gamma_tables.py. Prefix: p_. */

#ifndef SLOW /* defined for cards, by cuda/prelude.h */
#define SLOW static __attribute__((noinline, unused))
#endif

HELPER pair p_pair(double high, double low)
{
    pair z = {high, low};
    return z;
}

HELPER pair p_of(double x) { return p_pair(x, 0); }

/* p_sum where |x| >= |y| or x is 0. */
HELPER pair p_quick_sum(double x, double y)
{
    double total = x + y;
    return p_pair(total, y - (total - x));
}

HELPER pair p_sum(double x, double y)
{
    double total = x + y, part = total - x;
    double error = (x - (total - part)) + (y - part);
    return p_pair(total, isfinite(error) ? error : 0);
}

HELPER double p_half(double x)
{
    double big = 134217729.0 * x;
    return big - (big - x);
}

HELPER pair p_product(double x, double y)
{
    double product = x * y;
#if defined(__FMA__) || defined(__CUDACC__)
    double error = __builtin_fma(x, y, -product);
#else
    double a = p_half(x), b = p_half(y), c = x - a, d = y - b;
    double error = ((a * b - product) + a * d + c * b) + c * d;
#endif
    return p_pair(product, isfinite(error) ? error : 0);
}

HELPER pair p_add_d(pair x, double y)
{
    pair sum = p_sum(x.hi, y);
    return p_quick_sum(sum.hi, sum.lo + x.lo);
}

HELPER pair p_add(pair x, pair y)
{
    pair high = p_sum(x.hi, y.hi), low = p_sum(x.lo, y.lo);
    high = p_quick_sum(high.hi, high.lo + low.hi);
    return p_quick_sum(high.hi, high.lo + low.lo);
}

HELPER pair p_neg(pair x) { return p_pair(-x.hi, -x.lo); }
HELPER pair p_sub(pair x, pair y) { return p_add(x, p_neg(y)); }
HELPER pair p_abs(pair x) { return x.hi < 0 ? p_neg(x) : x; }

HELPER pair p_mul_d(pair x, double y)
{
    pair product = p_product(x.hi, y);
    return p_quick_sum(product.hi, product.lo + x.lo * y);
}

HELPER pair p_mul(pair x, pair y)
{
    pair product = p_product(x.hi, y.hi);
    return p_quick_sum(product.hi, product.lo + (x.hi * y.lo + x.lo * y.hi));
}

SLOW pair p_div(pair x, pair y)
{
    double first = x.hi / y.hi;
    pair rest = p_sub(x, p_mul_d(y, first));
    double second = rest.hi / y.hi;
    rest = p_sub(rest, p_mul_d(y, second));
    return p_add_d(p_quick_sum(first, second), rest.hi / y.hi);
}

HELPER pair p_scaled(pair x, int exponent)
{
    return exponent ? p_pair(ldexp(x.hi, exponent), ldexp(x.lo, exponent)) : x;
}

/* Even and odd powers are summed separately, as two independent dependency chains. */
HELPER double g_horner(const double *coefficients, int count, double x)
{
    double square = x * x, even = 0, odd = 0;
    for (int k = (count - 1) & ~1; k >= 0; k -= 2) {
        odd = odd * square + (k + 1 < count ? coefficients[k + 1] : 0);
        even = even * square + coefficients[k];
    }
    return even + x * odd;
}

/* A table of pairs for the first, large terms, and one of doubles for the others. */
SLOW pair p_series(const pair *first, int n, const double *rest, int count, pair x)
{
    pair total = p_of(g_horner(rest, count, x.hi));
    for (int k = n - 1; k >= 0; k--) total = p_add(p_mul(total, x), first[k]);
    return total;
}

#define SERIES(name, x) \
    p_series(name##_PAIRS, LENGTH(name##_PAIRS), name##_REST, LENGTH(name##_REST), x)
#define LENGTH(table) ((int)(sizeof(table) / sizeof(*(table))))
#define HORNER(table, x) g_horner(table, LENGTH(table), x)

/* The logarithm of x 2^exponent, to full relative precision near x = 1; NaN where x is not finite
   and positive. */
SLOW pair p_log(pair x, int exponent)
{
    int power;
    if (!(x.hi > 0 && x.hi < INFINITY)) return p_of(NAN);
    double mantissa = frexp(x.hi, &power);
    if (mantissa < 0.70710678118654757) {
        mantissa *= 2;
        power--;
    }
    double low = ldexp(x.lo, -power), nearest = rint(mantissa * 32), center = nearest / 32;
    pair numerator = p_quick_sum(mantissa - center, low);
    pair ratio = p_div(numerator, p_add_d(p_sum(mantissa, center), low));
    pair result = p_mul_d(p_mul(ratio, SERIES(ATANH, p_mul(ratio, ratio))), 2);
    pair whole = p_mul_d(LN2_PAIR, (double)(power + exponent));
    return p_add(p_add(whole, LOGARITHMS[(int)nearest - LOG_FIRST]), result);
}

/* log(1 + z) / z for z = (x - y) / y. */
SLOW pair p_log1p_ratio(pair x, pair y, pair z)
{
    if (!(fabs(z.hi) < 1.0 / 64)) return p_div(p_log(p_div(x, y), 0), z);
    pair divisor = p_add_d(z, 2), half = p_div(z, divisor);
    return p_mul_d(p_div(SERIES(ATANH, p_mul(half, half)), divisor), 2);
}

/* sin(pi x) and cos(pi x), to full relative precision near the zeros of the sine. */
SLOW void p_sin_cos_pi(pair x, pair *sine, pair *cosine)
{
    double whole = rint(x.hi), more = rint(p_add_d(x, -whole).hi);
    pair fraction = p_add_d(p_add_d(x, -whole), -more), size = p_abs(fraction);
    int steep = size.hi > 0.25, odd = (fmod(whole, 2.0) != 0) != (fmod(more, 2.0) != 0);
    pair angle = p_mul(PI_PAIR, steep ? p_add_d(p_neg(size), 0.5) : size);
    pair square = p_mul(angle, angle);
    pair s = p_mul(angle, SERIES(SINE, square)), c = SERIES(COSINE, square);
    pair upper = steep ? c : s, right = steep ? s : c;
    *sine = (fraction.hi < 0) != odd ? p_neg(upper) : upper;
    *cosine = odd ? p_neg(right) : right;
}

/* The exponential as a pair and an exponent of 2, for |x| <= 2000. */
SLOW pair p_exp_parts(pair x, int *exponent)
{
    double power = rint(x.hi / LN2_PAIR.hi);
    pair rest = p_sub(x, p_mul_d(LN2_PAIR, power));
    double index = rint(rest.hi * 64);
    pair series = SERIES(EXPONENTIAL, p_add_d(rest, -index / 64));
    *exponent = (int)power;
    return p_mul(EXPONENTIALS[(int)index + EXP_RANGE], series);
}

/* The exponential, rounded, of a pair whose error is absolute. */
SLOW double p_exp(pair x)
{
    int exponent;
    if (isnan(x.hi)) return NAN;
    if (fabs(x.hi) > 2000) x = p_of(copysign(2000.0, x.hi));
    pair z = p_exp_parts(x, &exponent);
    return ldexp(z.hi, exponent);
}

/* log(1 + exp(x)) for x <= 0, to an absolute error of about 1e-31. */
SLOW pair p_log1p_exp(pair x)
{
    int exponent;
    if (!(x.hi > -800)) return p_of(0);
    pair z = p_exp_parts(x, &exponent);
    return p_log(p_add_d(p_scaled(z, exponent), 1), 0);
}

/* log(1 - exp(x)) for x < 0, within 2^-64; near 0 by the Maclaurin series of 1 - exp(x). */
SLOW pair p_log1m_exp(pair x)
{
    int exponent;
    double h = x.hi;
    if (!(h > -800)) return p_of(0);
    if (h > -0x1p-10) {
        double tail = h / 2 * (1 + h / 3 * (1 + h / 4 * (1 + h / 5 * (1 + h / 6))));
        return p_log(p_mul(p_neg(x), p_sum(1, tail)), 0);
    }
    pair z = p_exp_parts(x, &exponent);
    return p_log(p_add_d(p_neg(p_scaled(z, exponent)), 1), 0);
}
