/* Numbers of bfloat16, which are the upper half of the bits of a float; they are computed as float. */
INLINE float bfloat_of_bits(uint16_t given)
{
    return of_bitsf((uint32_t)given << 16);
}

INLINE uint16_t bits_of_bfloat(float x)
{
    return (uint16_t)(bits_off(x) >> 16);
}

/* The nearest number of bfloat16, of two the even one. NaN keeps its sign alone. */
INLINE float bfloat_of(float x)
{
    const uint32_t bits = bits_off(x), rounded = bits + 0x7fff + (bits >> 16 & 1);
    return of_bitsf(x != x ? (bits & 0x80000000) | 0x7fc00000 : rounded & 0xffff0000);
}
