/* Integer arithmetic with the signs and limits of Python and NumPy. */
#ifndef INLINE /* defined for cards, by cuda/prelude.h, with what else differs there */
/* A call in a loop prevents vectorization. Early code has no vectors, and compiles sooner with calls. */
#ifdef EARLY_CODE
#define INLINE static inline
#else
#define INLINE static inline __attribute__((always_inline))
#endif
#define HELPER static inline
#define RARE static __attribute__((noinline, cold, unused))
#define TABLE static const
/* The widest type, and its functions and numbers. */
#define WIDER long double
#define W(name) name##l
#define WIDE_NUMBER(x) x##L
#define WIDE_SPLITTER ((WIDER)(1ull << (LDBL_MANT_DIG + 1) / 2) + 1)
#endif
#define PI 3.141592653589793
#define PIf 3.1415927f

INLINE int64_t floor_div_i(int64_t x, int64_t y)
{
    if (y == 0)
        return 0;
    if (y == -1)
        return -x;
    return x / y - ((x % y != 0) & ((x < 0) != (y < 0)));
}

INLINE int64_t mod_i(int64_t x, int64_t y)
{
    if (y == 0 || y == -1)
        return 0;
    int64_t rest = x % y;
    return rest != 0 && (rest < 0) != (y < 0) ? rest + y : rest;
}

INLINE uint64_t floor_div_u(uint64_t x, uint64_t y)
{
    return y == 0 ? 0 : x / y;
}

INLINE uint64_t mod_u(uint64_t x, uint64_t y)
{
    return y == 0 ? 0 : x % y;
}

INLINE uint64_t pow_u(uint64_t x, uint64_t y)
{
    uint64_t power = 1;
    for (; y; y >>= 1, x *= x)
        power *= y & 1 ? x : 1;
    return power;
}

/* -1, 0 or 1 as x is less than, equal to or greater than y. */
INLINE int order_iu(int64_t x, uint64_t y)
{
    return x < 0 ? -1 : ((uint64_t)x > y) - ((uint64_t)x < y);
}

INLINE int64_t clip_i(int64_t x, int64_t low, int64_t high)
{
    return x < low ? low : x > high ? high : x;
}

INLINE uint64_t clip_u(uint64_t x, uint64_t low, uint64_t high)
{
    return x < low ? low : x > high ? high : x;
}
