/* Positions of the largest and smallest of floats that lie next to each other, by AVX2, in one pass:
   each lane notes where it found its best. Included by lines.h, whose functions do the rest. */
#ifndef SYMCOMP_WIDE_EXTREMES_H
#define SYMCOMP_WIDE_EXTREMES_H

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>

/* With AVX-512 those of lines.h are as fast. */
#define HAS_WIDE_EXTREMES                                                                          \
    (__builtin_cpu_supports("avx2") && !__builtin_cpu_supports("avx512f"))

enum { SETS = 4 };

/* PLACE is an integer of the size of T, `t`, `i` and ALL_AT are of names of intrinsics; COMPARISON
   and BEST are a comparison and the choice that goes with it. */
#define WIDE_EXTREME(NAME, T, PLACE, VECTOR, t, i, ALL_AT, COMPARISON, BEST, SIGN)                 \
    /* -1 if there is a NaN. For n from SETS vectors on, up to as many as PLACE can tell. */       \
    __attribute__((target("avx2"))) static int64_t place_##NAME(int64_t n, const T *x)             \
    {                                                                                              \
        enum { WIDTH = sizeof(VECTOR) / sizeof(T), LANES = SETS * WIDTH };                         \
        VECTOR best[SETS], at[SETS], odd = _mm256_setzero_##t();                                   \
        for (int k = 0; k < SETS; k++) {                                                           \
            best[k] = _mm256_set1_##t(*x);                                                         \
            at[k] = _mm256_setzero_##t();                                                          \
        }                                                                                          \
        for (int64_t j = 0; j < n; j += LANES) {                                                   \
            /* The last are looked at with some of those before them. */                           \
            int64_t start = j < n - LANES ? j : n - LANES;                                         \
            VECTOR here = (VECTOR)_mm256_set1_##ALL_AT(start), value[SETS];                        \
            _Pragma("GCC unroll 4") for (int k = 0; k < SETS; k++)                                 \
                value[k] = _mm256_loadu_##t(x + start + k * WIDTH);                                \
            _Pragma("GCC unroll 4") for (int k = 0; k < SETS; k += 2)                              \
                odd = _mm256_or_##t(odd, _mm256_cmp_##t(value[k], value[k + 1], _CMP_UNORD_Q));    \
            _Pragma("GCC unroll 4") for (int k = 0; k < SETS; k++) {                               \
                VECTOR better = _mm256_cmp_##t(value[k], best[k], COMPARISON);                     \
                at[k] = _mm256_blendv_##t(at[k], here, better);                                    \
                best[k] = _mm256_##BEST##_##t(value[k], best[k]);                                  \
            }                                                                                      \
        }                                                                                          \
        if (_mm256_movemask_##t(odd))                                                              \
            return -1;                                                                             \
        for (int k = 1; k < SETS; k++) {                                                           \
            __m256i first = (__m256i)at[0];                                                        \
            __m256i other = _mm256_add_##i((__m256i)at[k], _mm256_set1_##ALL_AT(k * WIDTH));       \
            VECTOR better = _mm256_cmp_##t(best[k], best[0], COMPARISON);                          \
            VECTOR alike = _mm256_cmp_##t(best[k], best[0], _CMP_EQ_OQ);                           \
            alike = _mm256_and_##t(alike, (VECTOR)_mm256_cmpgt_##i(first, other));                 \
            at[0] = _mm256_blendv_##t(at[0], (VECTOR)other, _mm256_or_##t(better, alike));         \
            best[0] = _mm256_##BEST##_##t(best[k], best[0]);                                       \
        }                                                                                          \
        T found[WIDTH], one;                                                                       \
        PLACE starts[WIDTH];                                                                       \
        _mm256_storeu_##t(found, best[0]);                                                         \
        _mm256_storeu_##t((T *)starts, at[0]);                                                     \
        one = found[0];                                                                            \
        int64_t place = starts[0];                                                                 \
        for (int k = 1; k < WIDTH; k++) {                                                          \
            int64_t other = (int64_t)starts[k] + k;                                                \
            int better = (found[k] SIGN one) | ((found[k] == one) & (other < place));              \
            one = better ? found[k] : one;                                                         \
            place = better ? other : place;                                                        \
        }                                                                                          \
        /* Lanes that found nothing better than the first number have not noted its place. */      \
        return *x == one ? 0 : place;                                                              \
    }                                                                                              \
    static void wide_##NAME(LINE_ARGUMENTS)                                                        \
    {                                                                                              \
        int is_across = m > 1 && without_sign(x_line) <= without_sign(x_step);                     \
        int64_t lanes = SETS * (int64_t)(sizeof(VECTOR) / sizeof(T));                              \
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

WIDE_EXTREME(argmax_f4, float, int32_t, __m256, ps, epi32, epi32, _CMP_GT_OQ, max, >)
WIDE_EXTREME(argmin_f4, float, int32_t, __m256, ps, epi32, epi32, _CMP_LT_OQ, min, <)
WIDE_EXTREME(argmax_f8, double, int64_t, __m256d, pd, epi64, epi64x, _CMP_GT_OQ, max, >)
WIDE_EXTREME(argmin_f8, double, int64_t, __m256d, pd, epi64, epi64x, _CMP_LT_OQ, min, <)

#else
#define HAS_WIDE_EXTREMES 0
#define wide_argmax_f4 argmax_f4
#define wide_argmin_f4 argmin_f4
#define wide_argmax_f8 argmax_f8
#define wide_argmin_f8 argmin_f8
#endif

#endif
