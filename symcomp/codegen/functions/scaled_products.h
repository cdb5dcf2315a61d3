/* Products and quotients of parts that leave the range: `symcomp/ops/elementwise/scalar_products.py` says where
   they are used. In x y / z the larger factor is divided first by a large divisor, the smaller one
   by a small divisor. */

INLINE double r_times_over(double x, double y, double z)
{
    int ordered = (fabs(x) > fabs(y)) == (fabs(z) >= 1);
    double first = ordered ? x : y, second = ordered ? y : x;
    return first / z * second;
}

INLINE float r_times_overf(float x, float y, float z)
{
    return (float)((double)x * y / z);
}

#define IS_FINITE(x) (fabs(x) <= 0x1.fffffffffffffp1023)

/* x (y z) where x y over- or underflows; but where x is 0 or infinite, x y is exact, and where y z
   overflows, x is subnormal. */
INLINE double r_times_three(double x, double y, double z)
{
    double product = x * y, other = y * z;
    int inside = (fabs(product) >= 0x1p-1022) & IS_FINITE(product);
    int apart = !inside & (x != 0) & IS_FINITE(x) & (IS_FINITE(other) | !IS_FINITE(z));
    return (apart ? x : product) * (apart ? other : z);
}

INLINE float r_times_threef(float x, float y, float z)
{
    return (float)((double)x * y * z);
}

/* x exp(y), where exp(y) over- or underflows, too. */
INLINE double r_times_exp(double x, double y)
{
    double power, part = exp_in_parts(y, &power), z = x * part * power;
    return fabs(y) > EXP_BOUND ? x * (y > 0 ? INFINITY : 0) : z;
}

/* Each half of the exponential is in range where x and the product are normal. */
INLINE float r_times_expf(float x, float y)
{
    float half = m_expf(y / 2);
    return x * half * half;
}

/* x y exp(z): each factor takes a part of the exponential if x y over- or underflows. */
INLINE double r_times_two_exp(double x, double y, double z)
{
    double power, part = exp_in_parts(z, &power), product = x * y;
    int inside = (fabs(product) >= 0x1p-1022) & IS_FINITE(product);
    int apart = !inside & (x != 0) & (y != 0) & IS_FINITE(x) & IS_FINITE(y);
    double w = (apart ? x : product) * part * (apart ? y * power : power);
    double far = (apart ? x : product) * (z > 0 ? INFINITY : 0) * (apart ? y : 1);
    return fabs(z) > EXP_BOUND ? far : w;
}

INLINE float r_times_two_expf(float x, float y, float z)
{
    return (float)r_times_exp((double)x * y, z);
}

/* (number + rest) 2^power, where the rest is the rounding error of the number. */
struct scaled {
    double number, rest;
    int64_t power;
};

INLINE struct scaled scaled_number(double number, double rest, int64_t power)
{
    struct scaled x = {number, rest, power};
    return x;
}

/* 2^power, which is a normal number. */
INLINE double scaled_power(int64_t power)
{
    uint64_t bits = (uint64_t)(power + 1023) << 52;
    double z;
    memcpy(&z, &bits, sizeof z);
    return z;
}

/* A number as a mantissa between 1 and 4 and a power of two; subnormal numbers, 0, infinities
   and NaN are kept exactly, outside of these bounds. */
INLINE struct scaled scaled_of(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    int64_t power = (int64_t)(bits >> 52 & 2047);
    power = (power > 2045 ? 2045 : power) - 1023;
    return scaled_number(x * scaled_power(-power), 0, power);
}

INLINE struct scaled scaled_times(struct scaled x, struct scaled y)
{
    double number = x.number * y.number, rest = product_error(x.number, y.number, number);
    rest += x.number * y.rest + y.number * x.rest;
    return scaled_number(number, rest, x.power + y.power);
}

INLINE struct scaled scaled_over(struct scaled x, struct scaled y)
{
    double number = x.number / y.number, part = number * y.number;
    double rest = (x.number - part) - product_error(number, y.number, part);
    rest = (rest + (x.rest - number * y.rest)) / y.number;
    return scaled_number(number, rest, x.power - y.power);
}

/* Two factors, which both leave the range if the result does. */
INLINE double scaled_value(struct scaled x)
{
    int64_t power = x.power > 2042 ? 2042 : x.power < -2042 ? -2042 : x.power, half = power / 2;
    return x.number * scaled_power(half) * scaled_power(power - half);
}

INLINE double scaled_root(struct scaled x)
{
    int64_t odd = x.power & 1, power = (x.power - odd) / 2;
    return scaled_value(scaled_number(sqrt(x.number * (double)(1 + odd)), 0, power));
}

/* Outside the range the power is large, so that its logarithm does not cancel. */
INLINE double scaled_log(struct scaled x)
{
    double value = scaled_value(x), apart = m_log(x.number) + (double)x.power * 0x1.62e42fefa39efp-1;
    int inside = (fabs(value) >= 0x1p-1022) & IS_FINITE(value), one = fabs(value - 1) < 0.5;
    double near = m_log1p((value - 1) + x.rest * scaled_power(one ? x.power : 0));
    return one ? near : inside ? m_log(value) : apart;
}

INLINE double r_over_both(double x, double y, double z)
{
    return scaled_value(scaled_over(scaled_of(x), scaled_times(scaled_of(y), scaled_of(z))));
}

INLINE float r_over_bothf(float x, float y, float z)
{
    return (float)(x / ((double)y * z));
}
