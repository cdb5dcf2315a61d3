/* Ratios of gamma functions, beta functions, and differences of psi and its derivative; gamma.h has what
   they are made of, and says what the prefixes mean. */

/* -- ratios of two */

/* By reflection (5.5.3). */
SLOW pair p_log_ratio_left(pair x, pair y, pair difference)
{
    pair sine_x, sine_y, cosine;
    p_sin_cos_pi(x, &sine_x, &cosine);
    p_sin_cos_pi(y, &sine_y, &cosine);
    pair right = p_log_gamma_difference(
        p_add_d(p_neg(y), 1), p_add_d(p_neg(x), 1), difference);
    return p_sub(p_add(right, p_log(p_abs(sine_y), 0)), p_log(p_abs(sine_x), 0));
}

/* x and y are both poles or neither is; the difference is below the bound of vast ones. */
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

SLOW double g_sign_of_ratio(pair x, pair y, pair difference)
{
    if (!g_is_pole(x)) return g_sign(x) * g_sign(y);
    return fabs(fmod(difference.hi, 2.0)) != fabs(fmod(difference.lo, 2.0)) ? -1 : 1;
}

SLOW double g_ratio(pair x, pair y, pair difference)
{
    int at_x = g_is_pole(x), at_y = g_is_pole(y), finite = isfinite(x.hi) && isfinite(y.hi);
    if (finite && at_y && !at_x) return 0;
    if (!finite || at_x != at_y) return g_gamma(x.hi) / g_gamma(y.hi);
    double sign = g_sign_of_ratio(x, y, difference), wide = w_ratio(x, y);
    if (!isnan(wide)) return wide;
    if (fabs(difference.hi) > VAST_SIZE) return sign * (difference.hi > 0 ? INFINITY : 0);
    return sign * p_exp(p_log_ratio(x, y, difference));
}

/* At two poles the limit for a fixed x - y. */
SLOW double g_gamma_ratio(double x, double y) { return g_ratio(p_of(x), p_of(y), p_sum(x, -y)); }

/* x (x + 1) ... (x + n - 1) for whole n. */
SLOW pair p_of_factors(double x, double n)
{
    pair product = p_of(x);
    for (double k = 1; k < n; k++) product = p_mul(product, p_sum(x, k));
    return product;
}

/* gamma(x + h) / gamma(x), with x + h not rounded; at two poles the limit. */
SLOW double g_poch(double x, double h)
{
    if (h == 0 && !isnan(x)) return 1;
    int in_range = x > 1 / HUGE_SIZE && x < HUGE_SIZE;
    if (in_range && h >= 1 && h <= FEW_FACTORS && h == rint(h)) return p_of_factors(x, h).hi;
    return g_ratio(p_sum(x, h), p_of(x), p_of(h));
}

SLOW double g_inverse_poch(double x, double h)
{
    return h == 0 && !isnan(x) ? 1 : g_ratio(p_of(x), p_sum(x, h), p_of(-h));
}

/* Near the pole at 0, where log(abs(gamma(x))) is -log(abs(x)) - EULER x. */
SLOW double g_log_ratio_tiny(double x, double y)
{
    double a = fabs(x), b = fabs(y);
    double ratio = fabs(b - a) < a / 2 ? log1p((b - a) / a) : log(b / a);
    return ratio - EULER * (x - y);
}

/* Stirling's formula; its other terms are negligible here, and so is a small argument. */
SLOW double g_log_ratio_vast(double x, double y)
{
    double big = fmax(x, y), small = fmax(fmin(x, y), 1.0), gap = big - small;
    double z = gap * (log(small) - 1) + big * log1p(gap / small);
    return x > y ? z : -z;
}

/* Four terms of the Taylor series for a small d = x - y: next to a root of psi the difference of
   logarithms is of the order of d^2, and would lose all digits. */
SLOW double g_log_ratio_close(double y, double d)
{
    double bend = g_polygamma(2, y) + d / 4 * g_polygamma(3, y);
    return d * (g_psi(y) + d / 2 * (g_tri_gamma(y) + d / 3 * bend));
}

SLOW double g_log_abs_ratio(pair x, double y, pair difference)
{
    double gap = y > 0 ? y : fabs(y - rint(y)), d = difference.hi;
    if (!isfinite(x.hi) || !isfinite(y)) return g_gammaln(x.hi) - g_gammaln(y);
    if (fabs(d) > VAST_SIZE) return g_log_ratio_vast(x.hi, y);
    if (fmax(fabs(x.hi), fabs(y)) < 1e-20 && x.hi != 0 && y != 0)
        return g_log_ratio_tiny(x.hi, y);
    if (fabs(d) < 1e-6 * gap) return g_log_ratio_close(y, d);
    double wide = w_log_ratio(x, p_of(y));
    if (!isnan(wide)) return wide;
    if (g_is_pole(x) == g_is_pole(p_of(y))) return p_log_ratio(x, p_of(y), difference).hi;
    return g_is_pole(x) ? INFINITY : -INFINITY;
}

SLOW double g_log_gamma_ratio(double x, double y)
{
    return g_log_abs_ratio(p_of(x), y, p_sum(x, -y));
}

/* The logarithm of x (x + 1) ... (x + n - 1) for whole n, or NAN where it is not clearly larger than
   the error of the product, 2 (n - 1) roundings, or the product leaves the range. */
SLOW double g_log_of_factors(double x, double n)
{
    double even = x, odd = 1, k = 1;
    for (; k + 1 < n; k += 2) {
        odd *= x + k;
        even *= x + (k + 1);
    }
    double z = log(k < n ? even * odd * (x + k) : even * odd);
    return fabs(z) >= n - 1 && isfinite(z) ? z : NAN;
}

/* The same for a product near 1, with twice the digits. */
SLOW double g_log_of_exact_factors(double x, double n)
{
    pair product = p_of_factors(x, n);
    double z = product.hi;
    return z > 0.5 && z < 2 ? log1p((z - 1) + product.lo) : log(z) + product.lo / z;
}

/* The difference of the logarithms of gamma for x > y + 2 >= 3, or NAN where much of it cancels. */
SLOW double g_log_ratio_apart(pair x, double y)
{
    double high = g_gammaln(x.hi), z = high - g_gammaln(y) + x.lo * (log(x.hi) - 0.5 / x.hi);
    return fabs(z) >= 0.8 * high ? z : NAN;
}

SLOW double g_log_poch(double x, double h)
{
    if (h == 0 && !isnan(x)) return 0;
    double z = NAN;
    if (x > 0 && h >= 1 && h <= MOST_FACTORS && h == rint(h)) {
        z = g_log_of_factors(x, h);
        if (isnan(z) && x > 1 / HUGE_SIZE && h <= EXACT_FACTORS)
            z = g_log_of_exact_factors(x, h);
    }
    if (isnan(z) && x >= 1 && h >= 2 && h < VAST_SIZE) z = g_log_ratio_apart(p_sum(x, h), x);
    return isnan(z) ? g_log_abs_ratio(p_sum(x, h), x, p_of(h)) : z;
}

/* log(abs(beta)) and the sign, where it is finite and not 0. */
SLOW pair p_log_beta(double a, double b, double *sign)
{
    int swapped = fabs(a) < fabs(b);
    pair big = p_of(swapped ? b : a), small = p_of(swapped ? a : b), total = p_sum(a, b);
    *sign = g_sign_of_ratio(big, total, p_neg(small)) * g_sign(small);
    return p_add(p_log_gamma(small), p_log_ratio(big, total, p_neg(small)));
}

/* The same at poles of an argument, and at infinity, with SciPy's values: the logarithm is
   infinite where beta is 0 or infinite. */
SLOW pair p_log_beta_apart(double a, double b, double *sign)
{
    double pole = g_is_pole(p_of(a)) ? a : b, other = pole == a ? b : a, mirrored = 1 - a - b;
    *sign = 1;
    if (isnan(a) || isnan(b)) return p_of(NAN);
    if (g_is_pole(p_of(pole))) {
        int finite = other > 0 && other == rint(other) && mirrored > 0 && pole > -0x1p31;
        if (!finite) return p_of(INFINITY);
        pair logarithm = p_log_beta(mirrored, other, sign);
        *sign *= fmod(other, 2.0) != 0 ? -1 : 1;
        return logarithm;
    }
    if (isinf(a) && isinf(b)) return p_of(a > 0 && b > 0 ? NAN : INFINITY);
    double infinite = isinf(a) ? a : b, finite = isinf(a) ? b : a;
    if (infinite > 0) *sign = g_sign(p_of(finite));
    return p_of(infinite > 0 && finite > 0 ? -INFINITY : INFINITY);
}

/* Choose among these formulas; -infinity where beta is 0. */
SLOW pair p_log_abs_beta(double a, double b, double *sign)
{
    int at_a = g_is_pole(p_of(a)), at_b = g_is_pole(p_of(b)), at_sum = g_is_pole(p_sum(a, b));
    int at_big = fabs(a) < fabs(b) ? at_b : at_a, at_small = fabs(a) < fabs(b) ? at_a : at_b;
    *sign = 1;
    if (!isfinite(a) || !isfinite(b)) return p_log_beta_apart(a, b, sign);
    if (at_sum && !at_a && !at_b) return p_of(-INFINITY);
    if (at_big != at_sum || at_small) return p_log_beta_apart(a, b, sign);
    return p_log_beta(a, b, sign);
}

/* True if a and a + b are both poles and differences have no digits left. */
HELPER int g_is_vast_limit(double a, double b)
{
    return fmin(a, b) < -VAST_SIZE && fmax(a, b) > VAST_SIZE && isfinite(a + b) && a + b <= 0;
}

SLOW double g_beta(double a, double b)
{
    double sign, wide = w_beta(a, b);
    if (!isnan(wide)) return wide;
    if (g_is_vast_limit(a, b)) {
        double mirrored = 1 - (a + b);
        b = fmax(a, b);
        a = mirrored;
    }
    if (g_is_pole(p_of(a)) && g_is_pole(p_of(b))) return INFINITY;
    if (isfinite(a) && isfinite(b) && fmin(fabs(a), fabs(b)) > VAST_SIZE) return 0;
    pair logarithm = p_log_abs_beta(a, b, &sign);
    if (isnan(logarithm.hi)) return NAN;
    return sign * p_exp(logarithm);
}

SLOW double g_betaln(double a, double b)
{
    double sign, wide = w_betaln(a, b);
    if (!isnan(wide)) return wide;
    if (g_is_vast_limit(a, b)) {
        double mirrored = 1 - (a + b);
        b = fmax(a, b);
        a = mirrored;
    }
    double big = fmax(a, b), small = fmin(a, b);
    if (isfinite(a) && isfinite(b) && small > VAST_SIZE)
        return -(big * log1p(small / big) + small * log1p(big / small));
    return p_log_abs_beta(a, b, &sign).hi;
}

/* -- differences of psi */

/* psi(y) - psi(x) for x, y > 0, y = x + h, by recurrence and the asymptotic series of both (5.5.2,
   5.11.2), in a form where all terms have the factor h: (P(u) - P(v)) / (u - v) for the series P by
   Horner's rule. The recurrence raises both, so that they keep the distance h. */
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

/* psi(x + h) - psi(x), with x + h not rounded; left of 0 by reflection (5.5.4). The product with a
   tiny h would lose all digits. */
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

/* -h (1 / x + 1 / y) / (x y) and similar: the terms of the series for 1 / y^2 - 1 / x^2. */
SLOW double g_tri_gamma_increment_right(double x, double y, double h)
{
    double low = fmin(x, y), high = fmax(x, y), value = 0, slope = 0;
    int count = low < 12 ? (int)ceil(12 - low) : 0;
    double u = 1 / (low + count), v = 1 / (high + count);
    for (int k = 2 * LENGTH(BERNOULLI) + 2; k >= 0; k--) {
        double c = k == 0 ? 0 : k == 1 ? 1 : k == 2 ? 0.5 : k % 2 ? BERNOULLI[(k - 3) / 2] : 0;
        slope = slope * v + value;
        value = value * u + c;
    }
    double z = h * v * u * slope;
    for (int k = count - 1; k >= 0; k--) {
        double near = 1 / (low + k), far = 1 / (high + k);
        z += h * far * near * (near + far);
    }
    return -z;
}

/* By reflection (5.15.6). */
SLOW double g_tri_gamma_increment_left(double x, pair y, double h)
{
    pair sine_x, sine_y, sine_h, both, cosine;
    p_sin_cos_pi(p_of(x), &sine_x, &cosine);
    p_sin_cos_pi(y, &sine_y, &cosine);
    p_sin_cos_pi(p_of(h), &sine_h, &cosine);
    p_sin_cos_pi(p_add_d(y, x), &both, &cosine);
    pair first = p_mul(PI_PAIR, p_div(p_div(sine_h, sine_x), sine_y));
    pair square = p_mul(first, p_mul(PI_PAIR, p_div(p_div(both, sine_x), sine_y)));
    return -square.hi - g_tri_gamma_increment_right(1 - x, p_add_d(p_neg(y), 1).hi, -h);
}

/* tri_gamma(x + h) - tri_gamma(x), with x + h not rounded; between numbers of both signs, and where
   h is not small left of 0, the plain difference. */
SLOW double g_tri_gamma_increment(double x, double h)
{
    pair total = p_sum(x, h);
    double y = total.hi;
    if (h == 0 && !isnan(x)) return 0;
    if (isinf(x) && x > 0 && isfinite(h)) return 0;
    if (isfinite(x) && isfinite(h) && !g_is_pole(p_of(x)) && !g_is_pole(total)) {
        if (x > 0 && y > 0) return g_tri_gamma_increment_right(x, y, h);
        if (x < 0 && y < 0 && fabs(h) < 0.125) return g_tri_gamma_increment_left(x, total, h);
    }
    return g_tri_gamma_of_pair(total) - g_tri_gamma(x);
}
