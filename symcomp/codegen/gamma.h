/* The gamma function's kin, as symcomp/ops/gamma_values.py and log_gamma.py compute them for
   arrays: in double, or in double-double where terms cancel. The tables are written before this
   by gamma_tables.py; what is not commented here is explained in those files. */

#define SLOW static __attribute__((noinline, unused))

/* -- double-double arithmetic */

static inline pair p_of(double x) { return (pair){x, 0}; }

static inline pair p_quick_sum(double x, double y)
{
    double total = x + y;
    return (pair){total, y - (total - x)};
}

static inline pair p_sum(double x, double y)
{
    double total = x + y, part = total - x;
    double error = (x - (total - part)) + (y - part);
    return (pair){total, isfinite(error) ? error : 0};
}

static inline double p_half(double x)
{
    double big = 134217729.0 * x;
    return big - (big - x);
}

static inline pair p_product(double x, double y)
{
    double product = x * y;
#ifdef __FMA__
    double error = __builtin_fma(x, y, -product);
#else
    double a = p_half(x), b = p_half(y), c = x - a, d = y - b;
    double error = ((a * b - product) + a * d + c * b) + c * d;
#endif
    return (pair){product, isfinite(error) ? error : 0};
}

static inline pair p_add_d(pair x, double y)
{
    pair sum = p_sum(x.hi, y);
    return p_quick_sum(sum.hi, sum.lo + x.lo);
}

static inline pair p_add(pair x, pair y)
{
    pair high = p_sum(x.hi, y.hi), low = p_sum(x.lo, y.lo);
    high = p_quick_sum(high.hi, high.lo + low.hi);
    return p_quick_sum(high.hi, high.lo + low.lo);
}

static inline pair p_neg(pair x) { return (pair){-x.hi, -x.lo}; }
static inline pair p_sub(pair x, pair y) { return p_add(x, p_neg(y)); }
static inline pair p_abs(pair x) { return x.hi < 0 ? p_neg(x) : x; }

static inline pair p_mul_d(pair x, double y)
{
    pair product = p_product(x.hi, y);
    return p_quick_sum(product.hi, product.lo + x.lo * y);
}

static inline pair p_mul(pair x, pair y)
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

static inline pair p_scaled(pair x, int exponent)
{
    return exponent ? (pair){ldexp(x.hi, exponent), ldexp(x.lo, exponent)} : x;
}

SLOW double g_horner(const double *coefficients, int count, double x)
{
    double total = coefficients[count - 1];
    for (int k = count - 2; k >= 0; k--) total = total * x + coefficients[k];
    return total;
}

/* A table of pairs, for large terms, and one of doubles for those after them. */
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

/* The logarithm of x 2^exponent. */
SLOW pair p_log(pair x, int exponent)
{
    int power;
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

SLOW void p_sin_cos_pi(pair x, pair *sine, pair *cosine)
{
    double whole = rint(x.hi);
    pair fraction = p_add_d(x, -whole), size = p_abs(fraction);
    int steep = size.hi > 0.25, odd = fmod(whole, 2) != 0;
    pair angle = p_mul(PI_PAIR, steep ? p_add_d(p_neg(size), 0.5) : size);
    pair square = p_mul(angle, angle);
    pair s = p_mul(angle, SERIES(SINE, square)), c = SERIES(COSINE, square);
    pair upper = steep ? c : s, right = steep ? s : c;
    *sine = (fraction.hi < 0) != odd ? p_neg(upper) : upper;
    *cosine = odd ? p_neg(right) : right;
}

/* -- in double-double: finite arguments, no poles */

SLOW pair p_stirling(pair x)
{
    pair inverse = p_div(p_of(1), x.hi > HUGE_SIZE ? p_of(HUGE_SIZE) : x);
    return p_mul(inverse, SERIES(STIRLING, p_mul(inverse, inverse)));
}

/* x + n >= 16, and x (x + 1) ... (x + n - 1) as a pair and an exponent of 2. */
SLOW pair p_raised(pair x, pair *product, int *exponent)
{
    int count = x.hi < 16 ? (int)ceil(16 - x.hi) : 0, tiny = x.hi < 1 / HUGE_SIZE;
    *product = count > 0 ? p_scaled(x, tiny * 1000) : p_of(1);
    *exponent = -1000 * tiny;
    for (int k = 1; k < count; k++) *product = p_mul(*product, p_add_d(x, k));
    return p_add_d(x, count);
}

SLOW pair p_log_gamma_near_two(pair x)
{
    int exponent = fabs(x.hi) < 1 / HUGE_SIZE ? -1000 : 0;
    pair product = p_abs(p_scaled(x, -exponent));
    double moved = (x.hi < 1.5) + (x.hi < 0.5) - 2;
    if (x.hi < 0.5) product = p_mul(product, p_add_d(x, 1));
    pair t = p_add_d(x, moved), near = p_mul(t, SERIES(TAYLOR, t));
    return x.hi < 1.5 ? p_sub(near, p_log(product, exponent)) : near;
}

SLOW pair p_log_gamma_above(pair x)
{
    int scale = x.hi > HUGE_SIZE ? -200 : 0, exponent;
    pair product, moved = p_raised(x, &product, &exponent), logarithm = p_log(moved, 0);
    pair main = p_mul(p_scaled(moved, scale), p_add_d(logarithm, -1));
    pair small = p_add(p_sub(HALF_LOG_2PI_PAIR, p_mul_d(logarithm, 0.5)), p_stirling(moved));
    small = p_sub(small, p_log(product, exponent));
    return p_scaled(p_add(main, p_scaled(small, scale)), -scale);
}

SLOW pair p_log_gamma(pair x)
{
    if (x.hi >= 2.5) return p_log_gamma_above(x);
    if (x.hi >= -0.5) return p_log_gamma_near_two(x);
    pair sine, cosine, mirrored = p_add_d(p_neg(x), 1);
    p_sin_cos_pi(x, &sine, &cosine);
    pair right = mirrored.hi < 2.5 ? p_log_gamma_near_two(mirrored) : p_log_gamma_above(mirrored);
    return p_sub(p_sub(LN_PI_PAIR, p_log(p_abs(sine), 0)), right);
}

SLOW pair p_psi_above(pair x)
{
    int count = x.hi < 16 ? (int)ceil(16 - x.hi) : 0;
    pair numerator = p_of(0), denominator = p_of(1);
    for (int k = 0; k < count; k++) {
        pair term = p_add_d(x, k);
        numerator = p_add(p_mul(numerator, term), denominator);
        denominator = p_mul(denominator, term);
    }
    pair moved = p_add_d(x, count);
    pair inverse = p_div(p_of(1), moved.hi > HUGE_SIZE ? p_of(HUGE_SIZE) : moved);
    pair square = p_mul(inverse, inverse);
    pair series = p_add(p_mul(square, SERIES(STIRLING_PSI, square)), p_mul_d(inverse, 0.5));
    return p_sub(p_sub(p_log(moved, 0), series), p_div(numerator, denominator));
}

SLOW pair p_psi(pair x)
{
    if (!(x.hi < 0)) return p_psi_above(x);
    pair sine, cosine;
    p_sin_cos_pi(x, &sine, &cosine);
    return p_sub(p_psi_above(p_add_d(p_neg(x), 1)), p_mul(PI_PAIR, p_div(cosine, sine)));
}

/* Log gamma(x) - log gamma(y) for x, y > 0 and their difference. */
SLOW pair p_log_gamma_difference(pair x, pair y, pair difference)
{
    int exponent_x, exponent_y;
    pair product_x, product_y;
    x = p_raised(x, &product_x, &exponent_x);
    y = p_raised(y, &product_y, &exponent_y);
    if (fmin(x.hi, y.hi) < 2 * 16 + 1)
        difference = p_add_d(difference, rint(p_sub(p_sub(x, y), difference).hi));
    int scale = y.hi > HUGE_SIZE ? -700 : 0;
    pair divisor = p_scaled(y, scale), z = p_div(p_scaled(difference, scale), divisor);
    pair ratio = p_log1p_ratio(p_scaled(x, scale), divisor, z);
    pair main = p_mul(difference, p_add(p_add_d(p_log(x, 0), -1), ratio));
    main = p_sub(main, p_mul_d(p_mul(z, ratio), 0.5));
    pair raised = p_sub(p_log(product_y, exponent_y), p_log(product_x, exponent_x));
    return p_add(p_add(main, raised), p_sub(p_stirling(x), p_stirling(y)));
}

/* -- of one argument */

static inline double g_near(const double *table, int count, double x)
{
    return g_horner(table, count, (x - GAMMA_CENTRE) / (x + GAMMA_CENTRE) / GAMMA_REACH);
}

#define NEAR(table, x) g_near(table, LENGTH(table), x)

static inline int g_is_pole(pair x) { return x.hi <= 0 && x.hi == floor(x.hi) && x.lo == 0; }

/* Taylor's series about a root so close that double-doubles would have too few digits. */
SLOW double g_at_root(const double (*roots)[4], int count, double x, double low, double z)
{
    for (int k = 0; k < count; k++) {
        double gap = (x - roots[k][0]) + (low - roots[k][1]);
        if (fabs(gap) < 1e-10) return roots[k][2] * gap * (1 + roots[k][3] * gap);
    }
    return z;
}

SLOW double g_gammaln(double x)
{
    if (!isfinite(x)) return x;
    if (g_is_pole(p_of(x))) return INFINITY;
    if (x < -0.5)
        return g_at_root(LOG_GAMMA_ROOTS, LENGTH(LOG_GAMMA_ROOTS), x, 0, p_log_gamma(p_of(x)).hi);
    if (x < 0.5) return x * (x - 1) * NEAR(LOG_GAMMA_NEAR, 1 + x) - log(fabs(x));
    if (x >= 16) {
        double inverse = 1 / fmin(x, HUGE_SIZE), logarithm = log(x), tail;
        tail = HALF_LOG_2PI_PAIR.hi + inverse * HORNER(STIRLING_DOUBLES, inverse * inverse);
        return x * (logarithm - 1) + (tail - 0.5 * logarithm);
    }
    pair product = p_of(1);
    while (x > 2.5) {
        x -= 1;
        product = p_mul_d(product, x);
    }
    double near = (x - 1) * (x - 2) * NEAR(LOG_GAMMA_NEAR, x);
    return product.hi == 1 ? near : near + (log(product.hi) + product.lo / product.hi);
}

SLOW double g_log_of_gamma(double x)
{
    return x < 0 && isfinite(x) && fmod(floor(x), 2) != 0 ? NAN : g_gammaln(x);
}

/* psi(x + h), of the sum before it is rounded. */
SLOW double g_psi_of_sum(double x, double h)
{
    pair total = p_sum(x, h);
    double low = total.lo;
    x = total.hi;
    if (isnan(x)) return x;
    if (isinf(x)) return x > 0 ? x : NAN;
    if (x == 0 && low == 0) return copysign(INFINITY, -x);
    if (g_is_pole(total)) return NAN;
    if (x < -1e-3)
        return g_at_root(PSI_ROOTS, LENGTH(PSI_ROOTS), x, low, p_psi(total).hi);
    if (x < 0.5) {
        double right = ((x - (PSI_ROOT - 1)) + (low - PSI_ROOT_LOW)) * NEAR(PSI_NEAR, 1 + x);
        return right - 1 / x;
    }
    if (x >= 16) {
        double inverse = 1 / fmin(x, HUGE_SIZE), square = inverse * inverse;
        return log(x) - (0.5 * inverse + square * HORNER(STIRLING_PSI_DOUBLES, square));
    }
    pair sum = p_of(0);
    while (x > 2.5) {
        x -= 1;
        sum = p_add_d(sum, 1 / x);
    }
    return sum.hi + (((x - PSI_ROOT) + (low - PSI_ROOT_LOW)) * NEAR(PSI_NEAR, x) + sum.lo);
}

SLOW double g_psi(double x) { return g_psi_of_sum(x, -0.0); }

SLOW double g_tri_gamma_right(double x)
{
    int count = x < 12 ? (int)ceil(12 - x) : 0;
    double u = 1 / (x + count), z = u + (u * u / 2 + u * u * u * HORNER(BERNOULLI, u * u));
    for (int k = count - 1; k >= 0; k--) z += 1 / (x + k) / (x + k);
    return z;
}

SLOW double g_tri_gamma(double x)
{
    if (isnan(x)) return x;
    if (isinf(x)) return x > 0 ? 0 : INFINITY;
    if (g_is_pole(p_of(x))) return INFINITY;
    if (x > 0) return g_tri_gamma_right(x);
    pair sine, cosine;
    p_sin_cos_pi(p_of(x), &sine, &cosine);
    double ratio = p_div(PI_PAIR, sine).hi;
    return ratio * ratio - g_tri_gamma_right(1 - x);
}

/* -- ratios of two */

SLOW pair p_log_ratio_left(pair x, pair y, pair difference)
{
    pair sine_x, sine_y, cosine;
    p_sin_cos_pi(x, &sine_x, &cosine);
    p_sin_cos_pi(y, &sine_y, &cosine);
    pair right = p_log_gamma_difference(
        p_add_d(p_neg(y), 1), p_add_d(p_neg(x), 1), difference);
    return p_sub(p_add(right, p_log(p_abs(sine_y), 0)), p_log(p_abs(sine_x), 0));
}

/* x and y are both poles or neither is; the difference is not vast. */
SLOW pair p_log_ratio(pair x, pair y, pair difference)
{
    if (g_is_pole(x)) {
        pair mirrored = p_add_d(p_neg(x), 1);
        x = p_add_d(p_neg(y), 1);
        y = mirrored;
    }
    if (x.hi > 0 && y.hi > 0) return p_log_gamma_difference(x, y, difference);
    if (x.hi < -0.5 && y.hi < -0.5) return p_log_ratio_left(x, y, difference);
    return p_sub(p_log_gamma(x), p_log_gamma(y));
}

SLOW double g_log_ratio_tiny(double x, double y)
{
    double a = fabs(x), b = fabs(y);
    double ratio = fabs(b - a) < a / 2 ? log1p((b - a) / a) : log(b / a);
    return ratio - EULER * (x - y);
}

SLOW double g_log_ratio_vast(double x, double y)
{
    double big = fmax(x, y), small = fmax(fmin(x, y), 1), gap = big - small;
    double z = gap * (log(small) - 1) + big * log1p(gap / small);
    return x > y ? z : -z;
}

SLOW double g_log_abs_ratio(pair x, double y, pair difference)
{
    double gap = y > 0 ? y : fabs(y - rint(y)), d = difference.hi;
    if (!isfinite(x.hi) || !isfinite(y)) return g_gammaln(x.hi) - g_gammaln(y);
    if (fabs(d) > VAST_SIZE) return g_log_ratio_vast(x.hi, y);
    if (fmax(fabs(x.hi), fabs(y)) < 1e-20 && x.hi != 0 && y != 0)
        return g_log_ratio_tiny(x.hi, y);
    if (fabs(d) < 1e-9 * gap) return d * (g_psi(y) + d / 2 * g_tri_gamma(y));
    if (g_is_pole(x) == g_is_pole(p_of(y))) return p_log_ratio(x, p_of(y), difference).hi;
    return g_is_pole(x) ? INFINITY : -INFINITY;
}

SLOW double g_log_gamma_ratio(double x, double y)
{
    return g_log_abs_ratio(p_of(x), y, p_sum(x, -y));
}

SLOW double g_log_poch(double x, double h)
{
    return h == 0 && !isnan(x) ? 0 : g_log_abs_ratio(p_sum(x, h), x, p_of(h));
}

/* Where it is no sum of logarithms: at poles of an argument, and at infinity, as SciPy has it. */
SLOW double g_betaln_apart(double a, double b)
{
    if (isnan(a) || isnan(b)) return NAN;
    double pole = g_is_pole(p_of(a)) ? a : b, other = pole == a ? b : a;
    if (g_is_pole(p_of(pole))) {
        double mirrored = 1 - a - b;
        if (fabs(pole) > 0x1p31 || other != rint(other) || other <= 0 || !(mirrored > 0))
            return INFINITY;
        double big = fmax(mirrored, other), small = fmin(mirrored, other);
        pair ratio = p_log_ratio(p_of(big), p_of(1 - pole), p_of(-small));
        return p_add(p_log_gamma(p_of(small)), ratio).hi;
    }
    return isinf(a) && isinf(b) ? NAN : (isinf(a) ? b : a) > 0 ? -INFINITY : INFINITY;
}

SLOW double g_betaln(double a, double b)
{
    int swapped = fabs(a) < fabs(b);
    double big = swapped ? b : a, small = swapped ? a : b;
    pair total = p_sum(a, b), x = p_of(big), y = p_of(small);
    if (!isfinite(a) || !isfinite(b)) return g_betaln_apart(a, b);
    if (small > VAST_SIZE) return -(big * log1p(small / big) + small * log1p(big / small));
    if (g_is_pole(total) && !g_is_pole(x) && !g_is_pole(y)) return -INFINITY;
    if (g_is_pole(x) != g_is_pole(total) || g_is_pole(y)) return g_betaln_apart(a, b);
    return p_add(p_log_gamma(y), p_log_ratio(x, total, p_neg(y))).hi;
}

/* -- differences of psi */

SLOW double g_psi_increment_right(double x, double y, double h)
{
    double low = fmin(x, y), high = fmax(x, y);
    int count = low < 12 ? (int)ceil(12 - low) : 0;
    double near = low + count, far = high + count, u = 1 / near / near, v = 1 / far / far;
    double value = 0, slope = 0, base = x + count, relative = h / base;
    for (int k = LENGTH(PSI_TAIL) - 1; k >= -1; k--) {
        slope = slope * v + value;
        value = value * u + (k < 0 ? 0 : PSI_TAIL[k]);
    }
    double z = h / far / near * (0.5 + (1 / near + 1 / far) * slope);
    z += relative > -0.5 ? log1p(relative) : log((y + count) / base);
    for (int k = count - 1; k >= 0; k--) z += h / (high + k) / (low + k);
    return z;
}

SLOW double g_digamma_increment(double x, double h)
{
    pair total = p_sum(x, h), sine_x, sine_y, sine_h, cosine;
    double y = total.hi;
    if (h == 0 && !isnan(x)) return 0;
    if (isinf(x) && x > 0 && isfinite(h)) return 0;
    if (!isfinite(x) || !isfinite(h) || g_is_pole(p_of(x)) || g_is_pole(total))
        return g_psi(y) - g_psi(x);
    if (x > 0 && y > 0) return g_psi_increment_right(x, y, h);
    if (!(x < 0 && y < 0 && fabs(h) < 0.125)) return p_sub(p_psi(total), p_psi(p_of(x))).hi;
    p_sin_cos_pi(p_of(x), &sine_x, &cosine);
    if (fabs(h) < 1e-290 && x < -1e-200) return h * g_tri_gamma(x);
    p_sin_cos_pi(total, &sine_y, &cosine);
    p_sin_cos_pi(p_of(h), &sine_h, &cosine);
    double mirrored = g_psi_increment_right(1 - x, p_add_d(p_neg(total), 1).hi, -h);
    return p_mul(PI_PAIR, p_div(p_div(sine_h, sine_x), sine_y)).hi + mirrored;
}
