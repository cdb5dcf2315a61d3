/* The derivative of the regularized incomplete gamma function in its shape, within about 13 digits
   of the truth. For x > k, 1 - gammainc is differentiated, whose terms do not cancel. */

/* x^k exp(-x) / gamma(k + 1) */
SLOW double g_density(double k, double x)
{
    pair power = p_mul_d(p_log(p_of(x), 0), k);
    return p_exp(p_sub(p_add_d(power, -x), p_log_gamma(p_sum(k, 1))));
}

/* DLMF 8.7.1 for x < k + 1: x^m / (k + 1) ... (k + m) times log(x) - psi(k + m + 1). */
SLOW double g_gammainc_by_series(double k, double x)
{
    double slope = log(x) - g_psi(k + 1), total = slope, term = 1;
    for (double m = 1; term * (fabs(slope) + 1 / (k + m)) > 0x1p-60 * fabs(total); m++) {
        term *= x / (k + m);
        slope -= 1 / (k + m);
        total += term * slope;
    }
    return g_density(k, x) * total;
}

/* Legendre's continued fraction for x > k (DLMF 8.9.2), by Lentz's method, with the derivatives of
   its steps in k. */
SLOW double g_gammainc_by_fraction(double k, double x)
{
    double b = x + 1 - k, c = INFINITY, d = 1 / b, value = d, c_slope = 0, d_slope = d * d;
    double relative = d, change = d;
    for (double j = 1; fabs(change) > 0x1p-58 * fabs(relative); j++) {
        double a = j * (k - j);
        b += 2;
        c_slope = (j - a * c_slope / c) / c - 1;
        d_slope = j * d + a * d_slope - 1;
        c = b + a / c;
        d = 1 / (b + a * d);
        d_slope *= -d * d;
        change = c_slope / c + d_slope / d;
        value *= c * d;
        relative += change;
    }
    return -g_density(k, x) * value * (k * (log(x) - g_psi(k + 1) + relative) + 1);
}

/* The derivative of Temme's uniform expansion (DLMF 8.12.4, 8.12.7). */
SLOW double g_gammainc_by_expansion(double k, double x)
{
    double gap = (x - k) / k, root = sqrt(HORNER(SQUARE_OF_ETA, gap)), logarithm = log1p(gap);
    double eta = gap * root, total = (gap == 0 ? 1 : logarithm / gap) / root, scale = 1;
    for (int n = 0; n < LENGTH(TEMME); n++) {
        double part = HORNER(TEMME[n], eta) * (logarithm - (n + 0.5) / k);
        total += (part - HORNER(TEMME_SLOPES[n], eta) / root / k) * scale;
        scale /= k;
    }
    pair q = p_sub(p_mul_d(p_log(p_div(p_of(x), p_of(k)), 0), k), p_sum(x, -k));
    return -p_exp(q) / sqrt(2 * PI_PAIR.hi * k) * total;
}

/* At k = 0 the derivative from above. */
SLOW double g_gammainc_der(double k, double x)
{
    if (!(k >= 0) || !(x >= 0) || (isinf(k) && isinf(x)) || (k == 0 && x == 0)) return NAN;
    if (x == 0 || isinf(x) || isinf(k)) return 0;
    if (k > VAST_SIZE) return x == k ? -1 / sqrt(2 * PI_PAIR.hi) / sqrt(k) : 0;
    if (k >= TEMME_LARGE && fabs(x - k) <= TEMME_CLOSE * k) return g_gammainc_by_expansion(k, x);
    if (fmax(k, x) > TEMME_ALL) return 0;
    return x > fmax(k, 1.0) ? g_gammainc_by_fraction(k, x) : g_gammainc_by_series(k, x);
}
