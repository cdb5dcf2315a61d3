/* Numbers of bfloat16, which are the upper half of the bits of a float; they are computed as float. */
INLINE float bfloat_of_bits(uint16_t given)
{
    const uint32_t bits = (uint32_t)given << 16;
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

INLINE uint16_t bits_of_bfloat(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return (uint16_t)(bits >> 16);
}

/* The nearest number of bfloat16, of two the even one. NaN keeps its sign alone. */
INLINE float bfloat_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    const uint32_t rounded = bits + 0x7fff + (bits >> 16 & 1);
    bits = x != x ? (bits & 0x80000000) | 0x7fc00000 : rounded & 0xffff0000;
    memcpy(&x, &bits, sizeof x);
    return x;
}
