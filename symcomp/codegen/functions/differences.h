/* Differences of nearly equal values of one function, and products of which one factor leaves the range
   where the product does not: `symcomp/ops/elementwise/scalar_differences.py` says where they are used.
   Prefix: d_. */

INLINE double d_sigmoid_slope(double x)
{
    double small = m_exp(-fabs(x)), total = 1 + small;
    return small / (total * total);
}

/* As r_share, whose product with the other share this is. */
INLINE double d_share_slope(double x, double y)
{
    double gap = x - y, e = sum_error(x, -y, gap), small = m_exp(-fabs(gap));
    small = small * (1 - ((gap > 0) - (gap < 0)) * e);
    double total = 1 + small, z = small / (total * total);
    int none = (x == -INFINITY) | (y == -INFINITY), known = (x == x) & (y == y);
    return none & known ? 0 : z;
}

/* sigmoid(a) - sigmoid(b) = sigmoid(a) sigmoid(-b) (1 - exp(b - a)) for a >= b. */
INLINE double d_sigmoid_difference(double x, double y)
{
    int falls = x < y;
    double above = falls ? y : x, below = falls ? x : y;
    double z = r_sigmoid(above) * r_sigmoid(-below) * -m_expm1(below - above);
    return x == y ? 0 : falls ? -z : z;
}

/* For a >= b near to each other softplus(b) - softplus(a) = log(1 + sigmoid(a) (exp(b - a) - 1)). Where
   positive numbers are apart, their difference is the larger part. */
INLINE double d_softplus_difference(double x, double y)
{
    int falls = x < y;
    double above = falls ? y : x, below = falls ? x : y, gap = above - below;
    double near = -m_log1p(r_sigmoid(above) * m_expm1(-gap));
    double apart = r_softplus(above) - r_softplus(below);
    double right = gap + (r_softplus(-above) - r_softplus(-below));
    double z = gap < 1 ? near : below > 0 ? right : apart;
    return falls ? -z : z;
}

INLINE double d_sech(double x)
{
    double small = m_exp(-fabs(x));
    return 2 * small / (1 + small * small);
}

INLINE double d_log_cos(double x)
{
    double c = m_cos(x);
    return c > 0.7 ? m_log1p(-r_one_minus_cos(x)) : m_log(c);
}

/* Near 1 the factors 1 - x and 1 + x keep their digits, below the square does. */
INLINE double d_log1m_square(double x)
{
    double a = fabs(x);
    return a < 0.87 ? m_log1p(-a * a) : m_log((1 - a) * (1 + a));
}

/* log((x + y) / y). */
INLINE double d_log1p_ratio(double x, double y)
{
    double ratio = x / y, near = m_log1p(ratio), far = r_log_div(x + y, y);
    double beyond = m_log(fabs(x)) - m_log(fabs(y));
    int large = (ratio == INFINITY) & (fabs(x) < INFINITY);
    return ratio < -0.5 ? far : large ? beyond : near;
}

/* log(x + y) - log(y). */
INLINE double d_log_gap(double x, double y)
{
    return y > 0 ? d_log1p_ratio(x, y) : m_log(x) - m_log(y);
}

/* p - q where d = p^2 - q^2, also where p + q overflows; of two infinite numbers it is 0, its
   limit. */
INLINE double d_by_squares(double p, double q, double d)
{
    int one_sign = ((p > 0) & (q > 0)) | ((p < 0) & (q < 0));
    int alike = (fabs(p) < INFINITY) == (fabs(q) < INFINITY);
    double total = p + q, large = d / 2 / (p / 2 + q / 2);
    double z = fabs(total) < INFINITY ? d / total : large;
    return one_sign & alike & (fabs(d) < INFINITY) ? z : p - q;
}

/* exp(x y) as if the exponent were not rounded; its error must not change 0 or infinity. */
INLINE double d_exp_of_product(double x, double y)
{
    double p = x * y, growth = 1 + product_error(x, y, p);
    return m_exp(p) * (growth > 0.5 ? growth : 0.5);
}

/* exp(x) sigmoid(y), where the exponential may overflow. */
INLINE double d_exp_times_sigmoid(double x, double y)
{
    return r_exp_of_sum(x, y < 0 ? y : 0) / (1 + m_exp(-fabs(y)));
}
