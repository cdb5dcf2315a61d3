/* Sine, cosine and tangent, to 1 ulp for doubles of any size. C libraries reduce large angles
   inexactly: near multiples of pi/2 their results lose digits. From LARGE_ANGLE on, quarter turns
   are subtracted by a product with 2/pi, exact in the bits that affect the result: M. Payne and
   R. Hanek (1983), "Radian reduction for trigonometric functions". angle_tables.py writes
   TWO_OVER_PI before this. */

struct part {
    double hi, lo;
};

INLINE struct part part_of(double x, double y)
{
    double total = x + y;
    struct part z = {total, y - (total - x)};
    return z;
}

/* The sine and cosine of the remainder of |x| after whole quarter turns; returns the turns
   modulo 4. 128 bits of the product are kept: two are quarter turns, and the others the remainder,
   at most half a turn. Earlier bits of 2/pi give multiples of four quarter turns. */
HELPER int parts_of_large(double x, struct part *sine, struct part *cosine)
{
    uint64_t bits = bits_of(x), whole = (bits & 0xfffffffffffffu) | 0x10000000000000u, window[3];
    int place = (int)(bits >> 52 & 0x7ff) - 1075 + TWO_OVER_PI_ZEROS - 2;
    const uint64_t *words = TWO_OVER_PI + place / 64;
    for (int k = 0; k < 3; k++) {
        unsigned __int128 both = (unsigned __int128)words[k] << 64 | words[k + 1];
        window[k] = (uint64_t)(both >> (64 - place % 64));
    }
    unsigned __int128 turns = (unsigned __int128)whole * window[2] >> 64;
    turns += (unsigned __int128)whole * window[1];
    turns += (unsigned __int128)(whole * window[0]) << 64;
    __int128 rest = (__int128)(turns << 2) >> 2;
    double high = (double)rest, low = (double)(rest - (__int128)high);
    double a = high * 0x1p-126, b = low * 0x1p-126, product = a * HALF_PI;
    double e = product_error(a, HALF_PI, product) + (a * HALF_PI_LOW + b * HALF_PI);
    struct part angle = part_of(product, e);
    a = angle.hi;
    b = angle.lo;
    double square = a * a, half = square / 2, near = 1 - half, odd = 0, even = 0;
    for (int n = 17; n > 1; n -= 2)
        odd = (1 + odd) * -square / (n * (n - 1));
    for (int n = 18; n > 2; n -= 2)
        even = (1 + even) * -square / (n * (n - 1));
    e = product_error(a, a, square) / 2 + a * b;
    *sine = part_of(a, a * odd + b * (1 - half));
    *cosine = part_of(near, ((1 - near) - half) - (half * even + e));
    return (int)((turns - (unsigned __int128)rest) >> 126);
}

/* The sine of |x| plus `turns` quarter turns; NaN if x is not finite. */
HELPER double sine_of_large(double x, int turns)
{
    struct part sine, cosine;
    if (!(fabs(x) < INFINITY))
        return x - x;
    int quarters = (parts_of_large(x, &sine, &cosine) + turns) % 4;
    double z = quarters % 2 ? cosine.hi : sine.hi;
    return quarters >= 2 ? -z : z;
}

RARE double sin_of_large(double x)
{
    double z = sine_of_large(x, 0);
    return x < 0 ? -z : z;
}

RARE double cos_of_large(double x)
{
    return sine_of_large(x, 1);
}

RARE double tan_of_large(double x)
{
    struct part sine, cosine;
    if (!(fabs(x) < INFINITY))
        return x - x;
    int odd = parts_of_large(x, &sine, &cosine) % 2;
    struct part over = odd ? cosine : sine, under = odd ? sine : cosine;
    double z = over.hi / under.hi, p = z * under.hi, e = product_error(z, under.hi, p);
    z += (((over.hi - p) - e) + (over.lo - z * under.lo)) / under.hi;
    return odd != (x < 0) ? -z : z;
}

/* The C library's functions are inexact for large angles. They are called first, though: where
   both the sine and cosine of a number are needed, compilers get both from one call. */
#define LARGE_ANGLE 0x1p26

INLINE double m_sin(double x)
{
    double z = sin(x);
    return fabs(x) < LARGE_ANGLE ? z : sin_of_large(x);
}

INLINE float m_sinf(float x)
{
    return sinf(x);
}

INLINE double m_cos(double x)
{
    double z = cos(x);
    return fabs(x) < LARGE_ANGLE ? z : cos_of_large(x);
}

INLINE float m_cosf(float x)
{
    return cosf(x);
}

INLINE double m_tan(double x)
{
    double z = tan(x);
    return fabs(x) < LARGE_ANGLE ? z : tan_of_large(x);
}

INLINE float m_tanf(float x)
{
    return tanf(x);
}
