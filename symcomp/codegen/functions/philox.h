/* Philox4x32 with ten rounds: 128 bits that depend on a counter and a key alone, by Salmon, Moraes,
   Dror and Shaw (2011), "Parallel random numbers: as easy as 1, 2, 3". */

INLINE uint64_t philox(uint64_t low, uint64_t high, uint64_t key, int half)
{
    uint32_t a = (uint32_t)low, b = (uint32_t)(low >> 32), c = (uint32_t)high;
    uint32_t d = (uint32_t)(high >> 32), k = (uint32_t)key, l = (uint32_t)(key >> 32);
    for (int round = 0; round < 10; round++) {
        uint64_t p = (uint64_t)a * 0xd2511f53u, q = (uint64_t)c * 0xcd9e8d57u;
        a = (uint32_t)(q >> 32) ^ b ^ k;
        b = (uint32_t)q;
        c = (uint32_t)(p >> 32) ^ d ^ l;
        d = (uint32_t)p;
        k += 0x9e3779b9u;
        l += 0xbb67ae85u;
    }
    return half ? (uint64_t)d << 32 | c : (uint64_t)b << 32 | a;
}

/* The first and the last 64 bits. */
INLINE uint64_t philox_first(uint64_t low, uint64_t high, uint64_t key)
{
    return philox(low, high, key, 0);
}

INLINE uint64_t philox_last(uint64_t low, uint64_t high, uint64_t key)
{
    return philox(low, high, key, 1);
}

/* The upper 64 bits of a product of 128. */
INLINE uint64_t mul_high(uint64_t x, uint64_t y)
{
    uint64_t a = x >> 32, b = (uint32_t)x, c = y >> 32, d = (uint32_t)y;
    uint64_t middle = a * d + (b * d >> 32), other = b * c + (uint32_t)middle;
    return a * c + (middle >> 32) + (other >> 32);
}
