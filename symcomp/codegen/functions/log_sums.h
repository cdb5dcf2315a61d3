/* The terms of a sum of exponentials, and its logarithm, to about ten bits more than a double has. They
   are called for few elements, and not for vectors. Prefix: p_. */

/* exp(x + y), for x + y <= 700; below -700 without what its rounding takes away. */
HELPER pair p_exp_of_sum(double x, double y)
{
    double s = x + y;
    if (s == 0) return p_of(1);
    if (!(s > -700)) return p_of(m_exp(s));
    double n = rint(s * LOG2E), high = s - n * LN2_HIGH, low = sum_error(x, y, s) - n * LN2_LOW;
    double index = rint((high + low) * 64);
    high -= index / 64;
    double r = high + low, q = 1.0 / 120 + r * (1.0 / 720 + r * (1.0 / 5040));
    q = r * r * (0.5 + r * (1.0 / 6 + r * (1.0 / 24 + r * q)));
    double part = r + q, rest = ((r - part) + q) + ((high - r) + low) * (1 + r);
    pair base = EXPONENTIALS[(int)index + EXP_RANGE];
    double p = base.hi * part, z = base.hi + p;
    rest = base.hi * rest + (product_error(base.hi, part, p) + base.lo * (1 + part));
    rest += (base.hi - z) + p;
    double scale = power_of_two(n + ROUNDER);
    return p_pair(z * scale, rest * scale);
}

/* w exp(x + y) without the digits below the last one of b; and these digits. */
RARE double p_cut_exp(double x, double y, double w, double b)
{
    double p = w * p_exp_of_sum(x, y).hi;
    return (p + b) - b;
}

RARE double p_cut_exp_rest(double x, double y, double w, double b)
{
    pair z = p_exp_of_sum(x, y);
    double p = w * z.hi;
    return (p - ((p + b) - b)) + (product_error(w, z.hi, p) + w * z.lo);
}

/* mean exp(-z) - 1; where z is large, by two factors, scaled so that neither errors of products are subnormals
   nor factors overflow. */
HELPER double p_distance(double mean, double z)
{
    if (fabs(z) < 700) {
        pair inverse = p_exp_of_sum(-z, 0);
        double p = mean * inverse.hi;
        return (p - 1) + (product_error(mean, inverse.hi, p) + mean * inverse.lo);
    }
    double scale = z > 0 ? 0x1p-300 : 0x1p300;
    pair root = p_exp_of_sum(z / -2, 0), one = p_mul_d(root, mean * scale);
    one = p_mul(one, p_pair(root.hi / scale, root.lo / scale));
    return (one.hi - 1) + one.lo;
}

/* x + log((y + e) / n), where only the sum of both is rounded: by a step of Newton's method. */
RARE double p_plus_log(double x, double y, double e, double n)
{
    double total = y + e, mean = n == 1 ? total : total / n, p = mean * n, z = m_log(mean);
    double left = (n == 1 ? 0 : (total - p) - product_error(mean, n, p)) + sum_error(y, e, total);
    return (x + z) + (fabs(z) < INFINITY ? p_distance(mean, z) + left / n / mean : 0);
}
