/* Positions of the largest and smallest of numbers that lie next to each other, by AVX2, in one
   pass without jumps: each lane notes the block where it found its best. Included by axis_loops.h, whose
   functions do the rest. */
#ifndef SYMCOMP_WIDE_EXTREMES_H
#define SYMCOMP_WIDE_EXTREMES_H

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>

enum { IN_BLOCK = 8 };   /* vectors */

/* Lanes of x where those of `mask` are set, else of y. */
#define CHOSEN(mask, x, y)                                                                         \
    (__typeof__(x))_mm256_blendv_epi8((__m256i)(y), (__m256i)(x), (__m256i)(mask))
/* The lanes that are set in a mask, as bits. */
#define LANES_OF(T, mask)                                                                          \
    (sizeof(T) == 4 ? _mm256_movemask_ps((__m256)(mask)) : _mm256_movemask_pd((__m256d)(mask)))
/* For each kind: whether one of two numbers is NaN, and the better one, which WHICH and SIGN say. */
#define ODD_f4(x, y) _mm256_cmp_ps(x, y, _CMP_UNORD_Q)
#define ODD_f8(x, y) _mm256_cmp_pd(x, y, _CMP_UNORD_Q)
#define ODD_i(x, y) _mm256_setzero_si256()
#define BEST_f4(WHICH, SIGN, x, y) _mm256_##WHICH##_ps(x, y)
#define BEST_f8(WHICH, SIGN, x, y) _mm256_##WHICH##_pd(x, y)
#define BEST_i4(WHICH, SIGN, x, y) (__typeof__(x))_mm256_##WHICH##_epi32((__m256i)(x), (__m256i)(y))
#define BEST_u4(WHICH, SIGN, x, y) (__typeof__(x))_mm256_##WHICH##_epu32((__m256i)(x), (__m256i)(y))
#define BEST_i8(WHICH, SIGN, x, y) CHOSEN(x SIGN y, x, y)

/* PLACE is an integer of the size of T. */
#define WIDE_EXTREME(NAME, T, PLACE, WHICH, SIGN, ODD, BEST)                                       \
    typedef T NAME##_lanes __attribute__((vector_size(32)));                                       \
    typedef T NAME##_read __attribute__((vector_size(32), aligned(sizeof(T)), may_alias));         \
    typedef PLACE NAME##_places __attribute__((vector_size(32)));                                  \
    /* -1 if there is a NaN. For n from one block on, up to as many as PLACE can tell. */          \
    __attribute__((target("avx2"))) static int64_t place_##NAME(int64_t n, const T *x)             \
    {                                                                                              \
        enum { WIDTH = 32 / sizeof(T), LANES = IN_BLOCK * WIDTH };                                 \
        NAME##_lanes best = *(const NAME##_read *)x, value[IN_BLOCK];                              \
        NAME##_places at = {0}, odd = {0};                                                         \
        for (int64_t j = 0; j < n; j += LANES) {                                                   \
            /* The last are looked at with some of those before them. */                           \
            int64_t start = j < n - LANES ? j : n - LANES;                                         \
            const NAME##_read *here = (const NAME##_read *)(x + start);                            \
            _Pragma("GCC unroll 8") for (int k = 0; k < IN_BLOCK; k++)                             \
                value[k] = here[k];                                                                \
            _Pragma("GCC unroll 8") for (int k = 0; k < IN_BLOCK; k += 2)                          \
                odd |= (NAME##_places)ODD(value[k], value[k + 1]);                                 \
            _Pragma("GCC unroll 8") for (int half = IN_BLOCK / 2; half; half /= 2)                 \
                _Pragma("GCC unroll 8") for (int k = 0; k < half; k++)                             \
                    value[k] = BEST(WHICH, SIGN, value[k], value[k + half]);                       \
            NAME##_places better = *value SIGN best;                                               \
            best = CHOSEN(better, *value, best);                                                   \
            at = CHOSEN(better, (PLACE)start - (NAME##_places){0}, at);                            \
        }                                                                                          \
        if (_mm256_movemask_epi8((__m256i)odd))                                                    \
            return -1;                                                                             \
        T one = best[0];                                                                           \
        int64_t block = n;                                                                         \
        uint64_t found = 0;                                                                        \
        for (int k = 1; k < WIDTH; k++)                                                            \
            one = best[k] SIGN one ? best[k] : one;                                                \
        for (int k = 0; k < WIDTH; k++)                                                            \
            block = (best[k] == one) & (at[k] < block) ? at[k] : block;                            \
        const NAME##_read *here = (const NAME##_read *)(x + block);                                \
        _Pragma("GCC unroll 8") for (int k = 0; k < IN_BLOCK; k++)                                 \
            found |= (uint64_t)LANES_OF(T, here[k] == one - (NAME##_lanes){0}) << k * WIDTH;       \
        return block + __builtin_ctzll(found);                                                     \
    }                                                                                              \
    static void wide_##NAME(LINE_ARGUMENTS)                                                        \
    {                                                                                              \
        int is_across = m > 1 && without_sign(x_line) <= without_sign(x_step);                     \
        int64_t lanes = IN_BLOCK * (int64_t)(32 / sizeof(T));                                      \
        if (is_across || x_step != sizeof(T) || n < lanes || n > INT32_MAX) {                      \
            NAME(n, m, x, x_step, x_line, second, second_step, second_line, out, out_step,         \
                 out_line);                                                                        \
            return;                                                                                \
        }                                                                                          \
        for (int64_t j = 0; j < m; j++) {                                                          \
            int64_t place = place_##NAME(n, (const T *)(x + j * x_line));                          \
            *(int64_t *)(out + j * out_line) =                                                     \
                place < 0 ? line_##NAME(n, x + j * x_line, x_step) : place;                        \
        }                                                                                          \
    }
#define WIDE_EXTREMES(NAME, T, PLACE, ODD, BEST)                                                   \
    WIDE_EXTREME(argmax_##NAME, T, PLACE, max, >, ODD, BEST)                                       \
    WIDE_EXTREME(argmin_##NAME, T, PLACE, min, <, ODD, BEST)

WIDE_EXTREMES(f4, float, int32_t, ODD_f4, BEST_f4)
WIDE_EXTREMES(f8, double, int64_t, ODD_f8, BEST_f8)
WIDE_EXTREMES(i4, int32_t, int32_t, ODD_i, BEST_i4)
WIDE_EXTREMES(i8, int64_t, int64_t, ODD_i, BEST_i8)
WIDE_EXTREMES(u4, uint32_t, int32_t, ODD_i, BEST_u4)
WIDE_EXTREMES(u8, uint64_t, int64_t, ODD_i, BEST_i8)

/* The function for the kind and the size of a dtype; 0 where those of axis_loops.h are as fast. */
#define OF_WIDE(NAME)                                                                              \
    (size == 4 ? kind == 'f' ? NAME##_f4 : kind == 'i' ? NAME##_i4 : kind == 'u' ? NAME##_u4 : 0   \
               : kind == 'f' ? NAME##_f8 : kind == 'i' ? NAME##_i8 : kind == 'u' ? NAME##_u8 : 0)

static inline line_function *wide_function(int largest, char kind, int64_t size)
{
    if ((size != 4 && size != 8) || !__builtin_cpu_supports("avx2") ||
        __builtin_cpu_supports("avx512f"))
        return 0;
    return largest ? OF_WIDE(wide_argmax) : OF_WIDE(wide_argmin);
}
#else
static inline line_function *wide_function(int largest, char kind, int64_t size)
{
    (void)largest, (void)kind, (void)size;
    return 0;
}
#endif

#endif
