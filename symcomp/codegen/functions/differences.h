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
/* share(x, y) - share(y, x), the hyperbolic tangent of half the gap as if that were not rounded. */
INLINE double d_share_difference(double x, double y)
{
    double gap = x - y, e = sum_error(x, -y, gap), z = m_tanh(0.5 * gap);
    return z + 0.5 * e * (1 - z * z);
}

/* (1 + s + l)^2 - 1 less its rounded value t = 2 s + s^2, for small l. */
INLINE double rest_of_square(double s, double l, double t)
{
    double p = s * s;
    return ((2 * s - t) + p) + (product_error(s, s, p) + 2 * (l + s * l));
}

/* exp(x + e) for x <= 690 and small e, and in `rest` its rounding error, to 10 bits more than a double has:
   the eighth part of the exponent, without a multiple of log 2, is the argument of a series for exp(r) - 1,
   which is then squared three times. */
INLINE double d_exp_and_rest(double x, double e, double *rest)
{
    double c = x > -700 ? x : -700, n = MAD(c, LOG2E, ROUNDER) - ROUNDER;
    double high = 0.125 * MAD(-n, LN2_HIGH, c), low = 0.125 * MAD(-n, LN2_LOW, e), r = high + low;
    double square = r * r, s = r + 0.5 * square, l = (r - s) + 0.5 * square, q = 1.0 / 3628800;
    q = MAD(r, q, 1.0 / 362880);
    q = MAD(r, q, 1.0 / 40320);
    q = MAD(r, q, 1.0 / 5040);
    q = MAD(r, q, 1.0 / 720);
    q = MAD(r, q, 1.0 / 120);
    q = MAD(r, q, 1.0 / 24);
    q = MAD(r, q, 1.0 / 6);
    l += 0.5 * product_error(r, r, square) + (r * square * q + sum_error(high, low, r) * (1 + r));
    double sum = s + l;
    l += s - sum;
    s = sum;
    double s2 = 2 * s + s * s, l2 = rest_of_square(s, l, s2);
    double s4 = 2 * s2 + s2 * s2, l4 = rest_of_square(s2, l2, s4);
    s = 2 * s4 + s4 * s4;
    l = rest_of_square(s4, l4, s);
    double total = 1 + s, z = total + (l += (1 - total) + s), scale = power_of_two(n + ROUNDER);
    *rest = x > -700 ? ((total - z) + l) * scale : 0;
    return x > -700 ? z * scale : m_exp(x) * (1 + e);
}

/* exp(x + y) less exp_of_sum(x, y), its rounded value, for x + y <= 0. */
INLINE double d_exp_of_sum_rest(double x, double y)
{
    double s = x + y, rest, z = d_exp_and_rest(s, sum_error(x, y, s), &rest);
    return finite_or_0((z - r_exp_of_sum(x, y)) + rest);
}

/* x - y - w less its rounded value. */
INLINE double d_difference_rest(double x, double y, double w)
{
    double gap = x - y;
    return sum_error(x, -y, gap) + sum_error(gap, -w, gap - w);
}

INLINE double d_product_rest(double x, double y)
{
    return product_error(x, y, x * y);
}

/* log(x) - y, where y is its rounded value, by a step of Newton's method; 0 at the ends of the range. */
INLINE double d_log_rest(double x, double y)
{
    double low, size = fabs(y), inverse = d_exp_and_rest(-size, 0, &low), p = x * inverse;
    double above = (p - 1) + (product_error(x, inverse, p) + x * low);
    double below = ((x - inverse) - low) / inverse;
    return size < 690 ? y > 0 ? above : below : 0;
}

/* exp(x) - y, where y is its rounded value; 0 at the ends of the range. */
INLINE double d_exponential_rest(double x, double y)
{
    double c = x < 690 ? x : 690, rest, z = d_exp_and_rest(c, 0, &rest);
    return c == x ? (z - y) + rest : 0;
}

/* exp(e) for the rounding error e of an exponent; what overflows on the way to it is no error. */
INLINE double growth_of_rest(double e)
{
    double growth = 1 + finite_or_0(e);
    return growth > 0.5 ? growth : 0.5;
}

INLINE double d_exp_with_rest(double x, double e)
{
    return m_exp(x) * growth_of_rest(e);
}

/* x exp(y + e) / (z w), where each partial product may leave the range. */
INLINE double d_times_exp_with_rest(double x, double y, double e, double z, double w)
{
    double power, part = exp_in_parts(y, &power) * growth_of_rest(e);
    double far = x * (y > 0 ? INFINITY : 0) / z / w;
    struct scaled above = scaled_times(scaled_times(scaled_of(x), scaled_of(part)), scaled_of(power));
    struct scaled below = scaled_times(scaled_of(z), scaled_of(w));
    return fabs(y) > EXP_BOUND ? far : scaled_value(scaled_over(above, below));
}

/* (x exp(w) + y exp(v)) / (exp(w) + exp(v)), where the terms of the numerator may nearly cancel. */
INLINE double d_shared_mean(double x, double y, double w, double v)
{
    int falls = w < v;
    double first = falls ? y : x, second = falls ? x : y, high = falls ? v : w, low = falls ? w : v;
    double gap = low - high, rest, share = d_exp_and_rest(gap, sum_error(low, -high, gap), &rest);
    double p = second * share, s = first + p, total = 1 + share;
    double error = sum_error(first, p, s) + (product_error(second, share, p) + finite_or_0(second * rest));
    return (s + error) / (total + ((1 - total) + share + rest));
}

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

/* (1 - erf(x)) (1 + erf(x)). */
INLINE double d_one_minus_erf_squared(double x)
{
    return r_erfc(x) * r_erfc(-x);
}

/* arcsin(sqrt(x)), also where the root is near 1. */
INLINE double d_arcsin_of_root(double x)
{
    return atan2(sqrt(x), sqrt(1 - x));
}

/* Where sinh(x) may overflow, 2 x exp(-|x|). */
INLINE double d_x_over_sinh(double x)
{
    double a = fabs(x), half = m_exp(-a / 2), near = x / sinh(x), far = 2 * a * half * half;
    far = a == INFINITY ? 0 : far;
    return x == 0 ? 1 : a > 40 ? far : near;
}

/* x 2^-k for the integer k with which it is between sqrt(1/2) and sqrt(2); x > 0. */
INLINE double d_near_one(double x, double *k)
{
    int tiny = x < 0x1p-1022;
    uint64_t bits = bits_of(tiny ? x * 0x1p54 : x), above = bits - 0x3fe6a09e667f3bcdu;
    *k = of_bits(((above + 0x4000000000000000u) >> 52) | 0x4330000000000000u);
    *k -= tiny ? 0x1p52 + 1024 + 54 : 0x1p52 + 1024;
    return of_bits(bits - (above & 0xfff0000000000000u));
}

INLINE double d_log_mantissa(double x)
{
    double k, z = log_parts(d_near_one(x, &k), 0);
    return x > 0 ? (x < INFINITY ? z : x) : x == 0 ? -INFINITY : NAN;
}

INLINE double d_log_exponent(double x)
{
    double k;
    d_near_one(x, &k);
    return (x > 0) & (x < INFINITY) ? k : 0;
}

/* 2^k for |k| <= 2044, also where that leaves the range; k is an integer. */
INLINE double d_times_power(double x, double k)
{
    double t = MAD(k, 0.5, ROUNDER), half = power_of_two(t);
    return x * half * power_of_two(k - (t - ROUNDER) + ROUNDER);
}

INLINE int is_odd(double x)
{
    return (floor(x) == x) & (2 * floor(0.5 * x) != x);
}

/* x^(y + z - n) as if the exponent were not rounded; NaN where x^(y + w) x^(z - w) is, for integers n. */
INLINE double d_product_of_powers(double x, double y, double z, double w, double n)
{
    double total = y + z, d = total - n, size = fabs(x), one = y + w, other = z - w;
    double rest = sum_error(y, z, total) + sum_error(total, -n, d);
    double power = m_pow(size, d) * growth_of_rest(rest == 0 ? 0 : rest * m_log(size));
    int root = (floor(one) != one) | (floor(other) != other), known = (one == one) & (other == other);
    int ends = (fabs(one) == INFINITY) & (fabs(other) == INFINITY), apart = (one < 0) != (other < 0);
    int undefined = (x < 0) & (size < INFINITY) & root;
    undefined |= ((size == 0) | (size == INFINITY)) & apart & (one != 0) & (other != 0);
    undefined |= ((size != 1) & ends & apart) | ((x != 1) & !known) | ((x != x) & ((one != 0) | (other != 0)));
    int odd = is_odd(one) ^ is_odd(other) ^ is_odd(n);
    return undefined ? NAN : odd & (copysign(1, x) < 0) ? -power : power;
}

/* exp((l + k log(2)) c / n): a power of two for the integer part of k c / n, and an exponential. */
INLINE double d_power_of_parts(double l, double k, double c, double n)
{
    double t = k * c, whole = rint(t / n), left = (t - whole * n) + product_error(k, c, t);
    double rest = (l * c + left * 0x1.62e42fefa39efp-1) / n, more = rint(rest * LOG2E);
    int apart = fabs(more) < 4096;
    more = apart ? more : 0;
    rest = MAD(-more, LN2_LOW, MAD(-more, LN2_HIGH, rest));
    double power = whole + more;
    power = power > 2040 ? 2040 : power < -2040 ? -2040 : power == power ? power : 0;
    return d_times_power(m_exp(rest), power);
}

/* (x^2 + y^2) / (x + y), where the squares may leave the range. */
INLINE double d_squares_over_sum(double x, double y)
{
    double s = x + y;
    return x * (x / s) + y * (y / s);
}

/* 1 - 2 x^2 / (x + y)^2, where neither the sum nor the quotient is rounded. */
INLINE double d_slope_of_squares(double x, double y)
{
    double s = x + y, q = x / s, product = q * s, square = q * q;
    double rest = ((x - product) - product_error(q, s, product) - q * sum_error(x, y, s)) / s;
    return (1 - 2 * square) - (2 * product_error(q, q, square) + 4 * finite_or_0(q * rest));
}

INLINE double d_xlogx_over_sum(double x, double y)
{
    return r_xlogx(x) / (x + y);
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

/* log(x) - log(y) by one logarithm, of h / l for the larger h and the smaller l. Near 1 all digits of the
   quotient less 1 are those of (h - l) / l; elsewhere roots keep it in range, and are NaN below 0. */
INLINE double d_log_difference(double x, double y)
{
    int falls = x < y;
    double h = falls ? y : x, l = falls ? x : y;
    /* The sum takes the sign of a zero away. */
    double near = (h - l) / l, far = sqrt(h) / sqrt(l + 0.0) - 1;
    double z = h <= 4 * l ? m_log1p(near) : 2 * m_log1p(far);
    return falls ? -z : z;
}

/* x^3 - y^3. */
INLINE double d_cube_difference(double x, double y)
{
    double z = (x - y) * (x * x + x * y + y * y);
    return (fabs(x) > 1e150) | (fabs(y) > 1e150) ? x * x * x - y * y * y : z;
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

/* exp(x + y) z, where the exponential alone may overflow. */
INLINE double exp_times(double x, double y, double z)
{
    double s = x + y;
    int beyond = (s > 709) & (s < 711);
    double part = r_exp_of_sum(beyond ? x - 1 : x, y) * z;
    return beyond ? part * 2.718281828459045 : part;
}

/* exp(x) sigmoid(y), where the exponential may overflow. */
INLINE double d_exp_times_sigmoid(double x, double y)
{
    return exp_times(x, y < 0 ? y : 0, 1 / (1 + m_exp(-fabs(y))));
}

/* (1 + exp(x)) / (1 + exp(y)). */
INLINE double d_one_plus_exp_ratio(double x, double y)
{
    double above = x > 0 ? x : 0, below = y > 0 ? y : 0;
    double z = exp_times(above, -below, (1 + m_exp(-fabs(x))) / (1 + m_exp(-fabs(y))));
    return (x != x) | (y != y) ? NAN : z;
}

/* The part of exp(x) - 1 that stays in range: for x > 0 it is multiplied by exp(x). */
INLINE double exp_gap_part(double x)
{
    return x > 0 ? -m_expm1(-x) : m_expm1(x);
}

/* (exp(x) - 1) / (exp(y) - 1). */
INLINE double d_expm1_ratio(double x, double y)
{
    double above = x > 0 ? x : 0, below = y > 0 ? y : 0;
    return exp_times(above, -below, exp_gap_part(x) / exp_gap_part(y));
}

/* exp(x) / (exp(y) - 1). */
INLINE double d_exp_over_expm1(double x, double y)
{
    return exp_times(x, y > 0 ? -y : 0, 1 / exp_gap_part(y));
}
