/* exp, expm1, log, log1p, tanh and hypot without branches, so that compilers vectorize them; errors
   below 2 ulp, in both types. Polynomials: tools/fit_elementary.py. The other functions are the
   C library's; the vector versions declared in vector_math.h have errors below 2 ulp. */

#if defined(__FMA__) || defined(__CUDACC__)
#define MAD(x, y, z) __builtin_fma(x, y, z)
#define MADF(x, y, z) __builtin_fmaf(x, y, z)
#else
#define MAD(x, y, z) ((x) * (y) + (z))
#define MADF(x, y, z) ((x) * (y) + (z))
#endif

#define LOG2E 0x1.71547652b82fep+0
/* log 2, cut after 32 or 15 bits, so that its products with exponents are exact, and the
   remainder. */
#define LN2_HIGH 0x1.62e42feep-1
#define LN2_LOW 0x1.a39ef35793c76p-33
#define LN2_HIGHF 0x1.62e4p-1f
#define LN2_LOWF 0x1.7f7d1cf79abcap-20f
/* Added to a number, these leave its nearest integer in the last bits. */
#define ROUNDER 0x1.8p52
#define ROUNDERF 0x1.8p23f

/* 2^k, where t is k + ROUNDER. */
INLINE double power_of_two(double t)
{
    return of_bits((bits_of(t) + 1023) << 52);
}

INLINE float power_of_twof(float t)
{
    return of_bitsf((bits_off(t) + 127) << 23);
}

/* exp(r) - 1 for |r| <= log(2) / 2. */
INLINE double exp_rest(double r)
{
    double p = MAD(r, 0x1.af390ba7e6f47p-26, 0x1.2891d4ffbb0f9p-22);
    p = MAD(r, p, 0x1.71de0d85293b8p-19);
    p = MAD(r, p, 0x1.a019b8ca26fcfp-16);
    p = MAD(r, p, 0x1.a01a01a7cebcdp-13);
    p = MAD(r, p, 0x1.6c16c1789d1d7p-10);
    p = MAD(r, p, 0x1.11111111109a6p-7);
    p = MAD(r, p, 0x1.5555555553d37p-5);
    p = MAD(r, p, 0x1.5555555555556p-3);
    p = MAD(r, p, 0.5);
    return MAD(r * r, p, r);
}

INLINE float exp_restf(float r)
{
    float p = MADF(r, 0x1.6d117cc039048p-10f, 0x1.120be1dcb42dcp-7f);
    p = MADF(r, p, 0x1.555518f5d12p-5f);
    p = MADF(r, p, 0x1.5554dc8961859p-3f);
    p = MADF(r, p, 0.5f);
    return MADF(r * r, p, r);
}

/* Both parts of an exponential are normal numbers up to this size of x. Larger x count as infinite in
   products, too, which only subnormal factors and results can tell, or x up to 1418. */
#define EXP_BOUND 1416

/* exp(x) as this number times a power of two, which are in range for |x| <= EXP_BOUND. */
INLINE double exp_in_parts(double x, double *power)
{
    double c = x < -EXP_BOUND ? -EXP_BOUND : x > EXP_BOUND ? EXP_BOUND : x;
    double n = MAD(c, LOG2E, ROUNDER) - ROUNDER;
    double p = exp_rest(MAD(-n, LN2_LOW, MAD(-n, LN2_HIGH, c)));
    double t = MAD(n, 0.5, ROUNDER), half = power_of_two(t);
    *power = power_of_two(n - (t - ROUNDER) + ROUNDER);
    return p * half + half;
}

INLINE double m_exp(double x)
{
    double power, part = exp_in_parts(x, &power);
    return part * power;
}

INLINE float m_expf(float x)
{
#ifdef ON_CARDS /* by a function of the hardware: within 1 ulp, in half the steps */
    return expf(x);
#else
    float c = x < -105 ? -105 : x > 89 ? 89 : x;
    float n = MADF(c, (float)LOG2E, ROUNDERF) - ROUNDERF;
    float p = exp_restf(MADF(-n, LN2_LOWF, MADF(-n, LN2_HIGHF, c)));
    float t = MADF(n, 0.5f, ROUNDERF), half = power_of_twof(t);
    return (p * half + half) * power_of_twof(n - (t - ROUNDERF) + ROUNDERF);
#endif
}

INLINE double m_expm1(double x)
{
    double c = x < -50 ? -50 : x > 710 ? 710 : x;
    double n = MAD(c, LOG2E, ROUNDER) - ROUNDER;
    double p = exp_rest(MAD(-n, LN2_LOW, MAD(-n, LN2_HIGH, c)));
    double t = MAD(n, 0.5, ROUNDER), half = power_of_two(t), m = n - (t - ROUNDER);
    double z = MAD(p, half, half - power_of_two(ROUNDER - m)) * power_of_two(m + ROUNDER);
    return x == 0 ? x : z;
}

INLINE float m_expm1f(float x)
{
    float c = x < -50 ? -50 : x > 89 ? 89 : x;
    float n = MADF(c, (float)LOG2E, ROUNDERF) - ROUNDERF;
    float p = exp_restf(MADF(-n, LN2_LOWF, MADF(-n, LN2_HIGHF, c)));
    float t = MADF(n, 0.5f, ROUNDERF), half = power_of_twof(t), m = n - (t - ROUNDERF);
    float z = MADF(p, half, half - power_of_twof(ROUNDERF - m)) * power_of_twof(m + ROUNDERF);
    return x == 0 ? x : z;
}

/* log(x) + e for x > 0: with x = 2^k (1 + f) and s = f / (2 + f), log(1 + f) is
   f - f^2/2 + s (f^2/2 + R(s)), where R(s) = 2 atanh(s) / s - 2. */
INLINE double log_parts(double x, double e)
{
    int tiny = x < 0x1p-1022;
    uint64_t bits = bits_of(tiny ? x * 0x1p54 : x);
    uint64_t above = bits - 0x3fe6a09e667f3bcdu;
    double k = of_bits(((above + 0x4000000000000000u) >> 52) | 0x4330000000000000u);
    k -= tiny ? 0x1p52 + 1024 + 54 : 0x1p52 + 1024;
    double f = of_bits(bits - (above & 0xfff0000000000000u)) - 1;
    double s = f / (2 + f), q = s * s, half = 0.5 * f * f;
    double p = MAD(q, 0x1.2b5f68a50d903p-3, 0x1.39fdcceb4bb45p-3);
    p = MAD(q, p, 0x1.7462b91b8df65p-3);
    p = MAD(q, p, 0x1.c71c62d5e53e0p-3);
    p = MAD(q, p, 0x1.2492492dfd86cp-2);
    p = MAD(q, p, 0x1.9999999995273p-2);
    p = MAD(q, p, 0x1.5555555555558p-1);
    return k * LN2_HIGH - ((half - (s * MAD(q, p, half) + MAD(k, LN2_LOW, e))) - f);
}

INLINE float log_partsf(float x, float e)
{
    int tiny = x < 0x1p-126f;
    uint32_t bits = bits_off(tiny ? x * 0x1p25f : x);
    uint32_t above = bits - 0x3f3504f3u;
    float k = (float)((int32_t)above >> 23) - (tiny ? 25 : 0);
    float f = of_bitsf(bits - (above & 0xff800000u)) - 1;
    float s = f / (2 + f), q = s * s, half = 0.5f * f * f;
    float p = MADF(q, 0x1.ddd4dad98e4c4p-3f, 0x1.245c273432202p-2f);
    p = MADF(q, p, 0x1.9999eb9d6ddfep-2f);
    p = MADF(q, p, 0x1.5555554ba8b0ep-1f);
    return k * LN2_HIGHF - ((half - (s * MADF(q, p, half) + MADF(k, LN2_LOWF, e))) - f);
}

INLINE double m_log(double x)
{
    double z = log_parts(x, 0);
    return x > 0 ? (x < INFINITY ? z : x) : x == 0 ? -INFINITY : NAN;
}

INLINE float m_logf(float x)
{
    float z = log_partsf(x, 0);
    return x > 0 ? (x < INFINITY ? z : x) : x == 0 ? -INFINITY : NAN;
}

/* With u = 1 + x rounded and c its rounding error, log(1 + x) = log(u) + c / u to second order. */
INLINE double m_log1p(double x)
{
    double u = 1 + x, c = x < 1 ? x - (u - 1) : 1 - (u - x), z = log_parts(u, c / u);
    z = x > -1 ? (x < INFINITY ? z : x) : x == -1 ? -INFINITY : NAN;
    return x == 0 ? x : z;
}

INLINE float m_log1pf(float x)
{
    float u = 1 + x, c = x < 1 ? x - (u - 1) : 1 - (u - x), z = log_partsf(u, c / u);
    z = x > -1 ? (x < INFINITY ? z : x) : x == -1 ? -INFINITY : NAN;
    return x == 0 ? x : z;
}

/* With e = exp(2 |x|) - 1, tanh |x| is e / (e + 2), and 1 from 20 on. The rounding errors of e,
   e + 2 and the quotient are divided afterwards. */
INLINE double m_tanh(double x)
{
    double y = fabs(x), c = y > 20 ? 40 : 2 * y;
    double t = MAD(c, LOG2E, ROUNDER), n = t - ROUNDER, s = power_of_two(t);
    double p = exp_rest(MAD(-n, LN2_LOW, MAD(-n, LN2_HIGH, c)));
    double e = MAD(p, s, s - 1), d = e + 2, r = 1 / d, z = e * r;
    double lost = MAD(p, s, s - 1 - e) - z * (e > 2 ? 2 - (d - e) : e - (d - 2));
    return copysign(MAD(lost + MAD(-z, d, e), r, z), x);
}

/* 1 - 2 / (exp(2 |x|) + 1), used where it is at least 1/2, so that half of the quotient's
   rounding error remains. A polynomial for smaller x. */
INLINE float m_tanhf(float x)
{
    float y = fabsf(x), c = y > 10 ? 20 : 2 * y, square = y * y;
    float t = MADF(c, (float)LOG2E, ROUNDERF), n = t - ROUNDERF, s = power_of_twof(t);
    float p = exp_restf(MADF(-n, LN2_LOWF, MADF(-n, LN2_HIGHF, c)));
    float far = 1 - 2 / (MADF(p, s, s) + 1);
    float q = MADF(square, -0x1.aba8ef0db4757p-8f, 0x1.5c60f7ea29dcdp-6f);
    q = MADF(square, q, -0x1.b9902b613f010p-5f);
    q = MADF(square, q, 0x1.110fb4bebb37fp-3f);
    q = MADF(square, q, -0x1.5555543bea216p-2f);
    return copysignf(y < 0.5625f ? MADF(y * square, q, y) : far, x);
}

/* The power of two of the larger leg divides both, so that their squares stay in range. The root
   is corrected by what it leaves of them (Borges, 2019): its error is little more than half a
   unit. */
INLINE double m_hypot(double x, double y)
{
    double a = fabs(x), b = fabs(y), size = a > b ? a : b, other = a > b ? b : a;
    double power = of_bits(bits_of(size) & 0x7ff0000000000000u);
    power = power > 0x1p-1022 ? power : 0x1p-1022;
    power = power < 0x1p1022 ? power : 0x1p1022;
    double scale = of_bits(0x7fe0000000000000u - bits_of(power)), p = size * scale, q = other * scale;
    double pp = p * p, qq = q * q, z = sqrt(pp + qq), zz = z * z;
    double rest = product_error(p, p, pp) + product_error(q, q, qq) - product_error(z, z, zz);
    z += z > 0 ? ((pp - zz) + qq + rest) / (2 * z) : 0;
    return (a == INFINITY) | (b == INFINITY) ? INFINITY : z * power;
}

INLINE float m_hypotf(float x, float y)
{
#ifdef ON_CARDS /* as above, with three powers of two: many cards are slow at doubles */
    float a = fabsf(x), b = fabsf(y), size = a > b ? a : b, other = a > b ? b : a;
    float power = size > 0x1p60f ? 0x1p70f : size < 0x1p-40f ? 0x1p-100f : 1;
    float scale = size > 0x1p60f ? 0x1p-70f : size < 0x1p-40f ? 0x1p100f : 1;
    float p = size * scale, q = other * scale, pp = p * p, qq = q * q, z = sqrtf(pp + qq), zz = z * z;
    float rest = product_errorf(p, p, pp) + product_errorf(q, q, qq) - product_errorf(z, z, zz);
    z += z > 0 ? ((pp - zz) + qq + rest) / (2 * z) : 0;
    return (a == INFINITY) | (b == INFINITY) ? INFINITY : z * power;
#else
    double z = sqrt((double)x * x + (double)y * y);
    return (fabsf(x) == INFINITY) | (fabsf(y) == INFINITY) ? INFINITY : (float)z;
#endif
}

INLINE double m_pow(double x, double y)
{
    return pow(x, y);
}

/* In double, where a rounded logarithm is exact enough; the C library's version for vectors of
   float has errors of 3 ulp. Negative numbers have only integer powers, the odd ones negative
   (C99, F.9.4.4). */
INLINE float m_powf(float x, float y)
{
    double power = y, base = fabs((double)x), z = m_exp(power * m_log(base));
    int whole = rint(power) == power, odd = whole & (rint(power * 0.5) != power * 0.5);
    z = (y == 0) | (x == 1) | ((base == 1) & (fabs(power) == INFINITY)) ? 1 : z;
    z = (x < 0) & (base < INFINITY) & !whole & (y == y) ? NAN : z;
    return (float)(odd ? copysign(z, x) : z);
}
