/* Gamma functions, within 3 units in the last place: in double, by polynomials between 1/2 and 5/2,
   where log gamma and psi have their roots; in the wider type (wide_gamma.h); or in double-double
   (pairs.h) where terms cancel. Prefixes: p_ for functions that return pairs, g_ for the others.
   The sections are those of the NIST Digital Library of Mathematical Functions (DLMF). */

/* -- in double-double: finite arguments, no poles; errors are absolute, about 1e-31 times the
   largest term. From 16 on Stirling's series (5.11.1, 5.11.2); smaller x are moved there by the
   recurrence (5.5.1, 5.5.2), negative ones by reflection (5.5.3, 5.5.4) */

/* log gamma(x) - (x - 1/2) log(x) + x - log(2 pi) / 2 */
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

/* From -1/2 to 5/2 by the Taylor series (5.7.3): gamma(x) = gamma(x + n) / (x (x + 1)), with n
   factors. Log gamma has full relative precision near its zeros 1 and 2. */
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

/* Log gamma(x) - log gamma(y) for x, y > 0 and their difference, which is less than 2^500. Large
   terms do not cancel: with z = (x - y) / y, Stirling's series give (x - y) (log(x) - 1 +
   log(1 + z) / z) - log(1 + z) / 2 + ... The recurrence may move x further than y, by a small
   whole number. */
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

HELPER double g_near(const double *table, int count, double x)
{
    return g_horner(table, count, (x - GAMMA_CENTRE) / ((x + GAMMA_CENTRE) * GAMMA_REACH));
}

#define NEAR(table, x) g_near(table, LENGTH(table), x)

HELPER int g_is_pole(pair x)
{
    return x.hi <= 0 && x.hi == floor(x.hi) && x.lo == floor(x.lo);
}

/* The sign of the gamma function, not at a pole. */
SLOW double g_sign(pair x)
{
    double whole = floor(x.hi), more = whole == x.hi ? floor(x.lo) : 0;
    return x.hi < 0 && (fmod(whole, 2.0) != 0) != (fmod(more, 2.0) != 0) ? -1 : 1;
}

/* (x - 1) (x - 2) ... down to a factor of at most 2.5, which x becomes. */
HELPER pair p_falling(double *x)
{
    double product = 1, low = 0;
    while (*x > 2.5) {
        *x -= 1;
        pair step = p_product(product, *x);
        low = low * *x + step.lo;
        product = step.hi;
    }
    return p_pair(product, low);
}

HELPER double g_gamma_near(double x) { return 1 + (x - 1) * (x - 2) * NEAR(GAMMA_NEAR, x); }

/* By recurrence (5.5.1), with the rounding errors of the product: factorials that are doubles are
   exact. */
SLOW double g_gamma_above(double x)
{
    pair product = p_falling(&x);
    double near = g_gamma_near(x);
    return near * product.hi + near * product.lo;
}

SLOW double g_gamma(double x)
{
    if (x >= 0.5 && x <= 2.5) return g_gamma_near(x);
    if (fabs(x) < 0.5) return x == 0 ? 1 / x : g_gamma_near(1 + x) / x;
    if (isnan(x) || g_is_pole(p_of(x))) return NAN;
    if (fabs(x) >= GAMMA_END) return x > 0 ? INFINITY : 0 * g_sign(p_of(x));
    if (x > 0 && x < 24) return g_gamma_above(x);
    double wide = w_gamma(x);
    return isnan(wide) ? g_sign(p_of(x)) * p_exp(p_log_gamma(p_of(x))) : wide;
}

/* The Taylor series about a root so close that double-doubles would have too few digits. */
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
    pair product = p_falling(&x);
    double near = (x - 1) * (x - 2) * NEAR(LOG_GAMMA_NEAR, x);
    return product.hi == 1 ? near : near + (log(product.hi) + product.lo / product.hi);
}

SLOW double g_log_of_gamma(double x)
{
    return x < 0 && isfinite(x) && fmod(floor(x), 2.0) != 0 ? NAN : g_gammaln(x);
}

/* psi(x + h), with x + h not rounded. */
SLOW double g_psi_of_sum(double x, double h)
{
    pair total = p_sum(x, h);
    double low = total.lo;
    x = total.hi;
    if (isnan(x)) return x;
    if (isinf(x)) return x > 0 ? x : NAN;
    if (x == 0 && low == 0) return copysign((double)INFINITY, -x);
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
    if (x >= 8) {
        double inverse = 1 / x, square = inverse * inverse;
        return log(x) - (0.5 * inverse + square * HORNER(STIRLING_PSI_MORE, square));
    }
    double sum = 0, rest = 0;
    while (x > 2.5) {
        x -= 1;
        pair step = p_sum(sum, 1 / x);
        sum = step.hi;
        rest += step.lo;
    }
    return sum + (((x - PSI_ROOT) + (low - PSI_ROOT_LOW)) * NEAR(PSI_NEAR, x) + rest);
}

SLOW double g_psi(double x) { return g_psi_of_sum(x, -0.0); }

/* By recurrence from x >= 12, where the asymptotic series holds (5.15.5, 5.15.8). */
SLOW double g_tri_gamma_right(double x)
{
    int count = x < 12 ? (int)ceil(12 - x) : 0;
    double u = 1 / (x + count), z = u + (u * u / 2 + u * u * u * HORNER(BERNOULLI, u * u));
    for (int k = count - 1; k >= 0; k--) z += 1 / (x + k) / (x + k);
    return z;
}

/* Left of 0 by reflection (5.15.6). */
SLOW double g_tri_gamma_of_pair(pair x)
{
    if (isnan(x.hi)) return x.hi;
    if (isinf(x.hi)) return x.hi > 0 ? 0 : INFINITY;
    if (g_is_pole(x)) return INFINITY;
    if (x.hi > 0) return g_tri_gamma_right(x.hi);
    pair sine, cosine;
    p_sin_cos_pi(x, &sine, &cosine);
    double ratio = p_div(PI_PAIR, sine).hi;
    return ratio * ratio - g_tri_gamma_right(p_add_d(p_neg(x), 1).hi);
}

SLOW double g_tri_gamma(double x) { return g_tri_gamma_of_pair(p_of(x)); }

/* x^s times Hurwitz's zeta function of s = n + 1 > 2 and x > 0: by its series until terms vanish,
   or the rest by the Euler-Maclaurin formula (2.10.1). */
SLOW double g_zeta(double n, double x)
{
    double s = n + 1, far = ceil(2 * s + 10 - x), nothing = ceil(x * expm1(46 / s)) + 1;
    int count = (int)fmax(fmin(far, nothing), 0.0);
    double z = 0, moved = x + count, series = moved / n + 0.5, factor = s / moved;
    for (int k = count - 1; k >= 0; k--) z += exp(-s * log1p(k / x));
    if (far > nothing) return z;
    for (int k = 0; k < LENGTH(ZETA_TAIL); k++) {
        series += ZETA_TAIL[k] * factor;
        factor = factor * ((s + 2 * k + 1) / moved) * ((s + 2 * k + 2) / moved);
    }
    return z + exp(-s * log1p(count / x)) * series;
}

/* n! x^(-n - 1) z, whose factors overflow or underflow where the product does not. The logarithm of
   larger factorials may overflow itself. */
SLOW double g_times_factorial(double n, double x, double z)
{
    if (n > 1e300) return copysign(n > 2.718281828459045 * x ? (double)INFINITY : 0.0, z);
    pair order = p_sum(n, 1), power = p_mul(p_log(p_of(x), 0), order);
    pair logarithm = p_sub(p_log_gamma(order), power);
    return copysign(p_exp(p_add(logarithm, p_log(p_of(fabs(z)), 0))), z);
}

/* The sum over k of both signs of x + k. */
SLOW double g_polygamma_left(double n, double x, double sign)
{
    double left = -x - floor(-x), right = 1 - left, nearest = fmin(left, right);
    double places[] = {left, right, 1 - x}, parts[3];
    for (int k = 0; k < 3; k++)
        parts[k] = exp(-(n + 1) * log1p((places[k] - nearest) / nearest)) * g_zeta(n, places[k]);
    return g_times_factorial(n, nearest, parts[1] + sign * (parts[0] - parts[2]));
}

/* (-1)^(n + 1) n! times the sum of (x + k)^(-n - 1) over k (5.15.1). Half-way between poles an even
   derivative equals that of the mirrored argument. */
SLOW double g_polygamma(double n, double x)
{
    if (n == 0) return g_psi(x);
    if (n == 1) return g_tri_gamma(x);
    if (!(n > 1) || n != floor(n) || isinf(n) || isnan(x)) return NAN;
    double sign = fmod(n, 2.0) == 0 ? -1 : 1, below = floor(x);
    if (x < 0 && x - below == 0.5 && sign < 0) x = 1 - x;
    if (isinf(x)) return x > 0 ? 0 : NAN;
    if (x == 0) return sign > 0 ? INFINITY : copysign((double)INFINITY, -x);
    if (x < 0 && x == below) return sign > 0 ? INFINITY : NAN;
    double wide = w_polygamma(n, x);
    if (!isnan(wide)) return sign * wide;
    return sign * (x > 0 ? g_times_factorial(n, x, g_zeta(n, x)) : g_polygamma_left(n, x, sign));
}
