/* The bits of numbers, and numbers of bits. */
INLINE uint64_t bits_of(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

INLINE double of_bits(uint64_t bits)
{
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

INLINE uint32_t bits_off(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

INLINE float of_bitsf(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}
