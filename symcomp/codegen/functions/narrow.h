/* Numbers of 16 bits, which are computed as float: a number of its bits in memory, the bits of one, and the
   nearest one, of two the even one. Without branches, as loops over them become loops over vectors; on cards
   by instructions (`half_number`). */

/* Numbers of float16 have 11 bits, and end at 65504; below 2^-14 they are multiples of 2^-24. */
INLINE float half_of_bits(uint16_t given)
{
#ifdef ON_CARDS
    half_number x;
    x.bits = given;
    return x;
#else
    const int32_t size = given & 0x7fff, large = (size << 13) + 0x38000000;
    const int32_t small = bits_off(of_bitsf(large + 0x800000) - 0x1p-14f);
    const int32_t finite = size > 0x3ff ? large : small;
    const int32_t endless = size > 0x7bff ? 0x7f800000 : 0;
    return of_bitsf(finite | endless | (given & 0x8000) << 16);
#endif
}

/* The number has been rounded before. */
INLINE uint16_t bits_of_half(float x)
{
#ifdef ON_CARDS
    return half_number(x).bits;
#else
    const uint32_t bits = bits_off(x);
    const int32_t size = bits & 0x7fffffff, limited = size < 0x47800000 ? size : 0x47800000;
    const int32_t small = bits_off(of_bitsf(size) + 0.5f) - 0x3f000000;
    const int32_t ordered = size < 0x38800000 ? small : (limited - 0x38000000) >> 13;
    return (uint16_t)((bits >> 16 & 0x8000) | ordered | (size > 0x7f800000 ? 0x200 : 0));
#endif
}

/* A sum with a number 2^13 times as large is rounded to the multiples of 2^-10 times the power of two that x
   begins with. Then all from 65520 on leave the range of float. */
INLINE float half_of(float x)
{
#ifdef ON_CARDS
    return half_number(x);
#else
    const uint32_t bits = bits_off(x);
    const int32_t given = bits & 0x7f800000, least = given > 0x38800000 ? given : 0x38800000;
    const int32_t power = least < 0x47800000 ? least : 0x47800000;
    const float large = of_bitsf(power + 0x06c00000);
    const float found = ((x + large) - large) * 0x1p112f * 0x1p-112f;
    return of_bitsf(bits_off(found) | (bits & 0x80000000));
#endif
}

/* Rounding to float first would round twice. */
INLINE float half_of_double(double x)
{
#ifdef ON_CARDS
    return half_number(x);
#else
    const uint64_t bits = bits_of(x), size = bits & 0x7fffffffffffffff, last = (uint64_t)1 << 42;
    const double small = (of_bits(size) + 0x1p28) - 0x1p28;
    const double large = of_bits((size + (last / 2 - 1) + (size >> 42 & 1)) & ~(last - 1));
    const double finite = of_bits(size) < 0x1p-14 ? small : large;
    const double ordered = of_bits(size) < 65520 ? finite : INFINITY;
    return (float)copysign(x != x ? NAN : ordered, x);
#endif
}

/* Numbers of bfloat16 are the upper half of the bits of a float. NaN keeps its sign alone. */
INLINE float bfloat_of_bits(uint16_t given)
{
    return of_bitsf((uint32_t)given << 16);
}

INLINE uint16_t bits_of_bfloat(float x)
{
    return (uint16_t)(bits_off(x) >> 16);
}

INLINE float bfloat_of(float x)
{
    const uint32_t bits = bits_off(x), rounded = bits + 0x7fff + (bits >> 16 & 1);
    return of_bitsf(x != x ? (bits & 0x80000000) | 0x7fc00000 : rounded & 0xffff0000);
}
