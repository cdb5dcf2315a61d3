/* Positions of the largest and smallest of numbers that lie next to each other, by AVX2, in one pass:
   each lane notes where it found its best. Included by lines.h, whose functions do the rest. */
#ifndef SYMCOMP_WIDE_EXTREMES_H
#define SYMCOMP_WIDE_EXTREMES_H

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>

/* With AVX-512 those of lines.h are as fast. */
#define HAS_WIDE_EXTREMES                                                                          \
    (__builtin_cpu_supports("avx2") && !__builtin_cpu_supports("avx512f"))

enum { SETS = 4 };

/* What the vectors of each type are made with: f4 and f8 of floats, i4 and i8 of integers. */
#define LOAD_f4(x) _mm256_loadu_ps(x)
#define LOAD_f8(x) _mm256_loadu_pd(x)
#define LOAD_i4(x) _mm256_loadu_si256((const __m256i *)(x))
#define LOAD_i8(x) _mm256_loadu_si256((const __m256i *)(x))
#define ALL_f4(x) _mm256_set1_ps(x)
#define ALL_f8(x) _mm256_set1_pd(x)
#define ALL_i4(x) _mm256_set1_epi32((int32_t)(x))
#define ALL_i8(x) _mm256_set1_epi64x(x)
#define MORE_f4(x, y) _mm256_cmp_ps(x, y, _CMP_GT_OQ)
#define MORE_f8(x, y) _mm256_cmp_pd(x, y, _CMP_GT_OQ)
#define MORE_i4(x, y) _mm256_cmpgt_epi32(x, y)
#define MORE_i8(x, y) _mm256_cmpgt_epi64(x, y)
#define LESS_f4(x, y) MORE_f4(y, x)
#define LESS_f8(x, y) MORE_f8(y, x)
#define LESS_i4(x, y) MORE_i4(y, x)
#define LESS_i8(x, y) MORE_i8(y, x)
#define ALIKE_f4(x, y) _mm256_cmp_ps(x, y, _CMP_EQ_OQ)
#define ALIKE_f8(x, y) _mm256_cmp_pd(x, y, _CMP_EQ_OQ)
#define ALIKE_i4(x, y) _mm256_cmpeq_epi32(x, y)
#define ALIKE_i8(x, y) _mm256_cmpeq_epi64(x, y)
#define CHOICE_f4(x, y, second) _mm256_blendv_ps(x, y, second)
#define CHOICE_f8(x, y, second) _mm256_blendv_pd(x, y, second)
#define CHOICE_i4(x, y, second) _mm256_blendv_epi8(x, y, second)
#define CHOICE_i8(x, y, second) _mm256_blendv_epi8(x, y, second)
/* Whether one of two is a NaN. */
#define STRANGE_f4(x, y) _mm256_cmp_ps(x, y, _CMP_UNORD_Q)
#define STRANGE_f8(x, y) _mm256_cmp_pd(x, y, _CMP_UNORD_Q)
#define STRANGE_i4(x, y) _mm256_setzero_si256()
#define STRANGE_i8(x, y) _mm256_setzero_si256()
#define SUM_i4(x, y) _mm256_add_epi32(x, y)
#define SUM_i8(x, y) _mm256_add_epi64(x, y)
#define AND(x, y) ((__m256i)(x) & (__m256i)(y))
#define OR(x, y) ((__m256i)(x) | (__m256i)(y))

/* PLACE is an integer of the size of T, of type `i`; BETTER is MORE or LESS. */
#define WIDE_EXTREME(NAME, T, PLACE, VECTOR, t, i, BETTER, SIGN)                                   \
    /* -1 if there is a NaN. For n from SETS vectors on, up to as many as PLACE can tell. */       \
    __attribute__((target("avx2"))) static int64_t place_##NAME(int64_t n, const T *x)             \
    {                                                                                              \
        enum { WIDTH = sizeof(VECTOR) / sizeof(T), LANES = SETS * WIDTH };                         \
        __m256i at[SETS], odd = _mm256_setzero_si256();                                            \
        VECTOR best[SETS];                                                                         \
        for (int k = 0; k < SETS; k++) {                                                           \
            best[k] = ALL_##t(*x);                                                                 \
            at[k] = _mm256_setzero_si256();                                                        \
        }                                                                                          \
        for (int64_t j = 0; j < n; j += LANES) {                                                   \
            /* The last are looked at with some of those before them. */                           \
            int64_t start = j < n - LANES ? j : n - LANES;                                         \
            VECTOR here = (VECTOR)ALL_##i(start), value[SETS];                                     \
            _Pragma("GCC unroll 4") for (int k = 0; k < SETS; k++)                                 \
                value[k] = LOAD_##t(x + start + k * WIDTH);                                        \
            _Pragma("GCC unroll 4") for (int k = 0; k < SETS; k += 2)                              \
                odd = OR(odd, STRANGE_##t(value[k], value[k + 1]));                                \
            _Pragma("GCC unroll 4") for (int k = 0; k < SETS; k++) {                               \
                VECTOR better = BETTER##_##t(value[k], best[k]);                                   \
                at[k] = (__m256i)CHOICE_##t((VECTOR)at[k], here, better);                          \
                best[k] = CHOICE_##t(best[k], value[k], better);                                   \
            }                                                                                      \
        }                                                                                          \
        if (!_mm256_testz_si256(odd, odd))                                                         \
            return -1;                                                                             \
        for (int k = 1; k < SETS; k++) {                                                           \
            __m256i other = SUM_##i(at[k], ALL_##i(k * WIDTH));                                    \
            VECTOR better = BETTER##_##t(best[k], best[0]);                                        \
            __m256i first = AND(ALIKE_##t(best[k], best[0]), MORE_##i(at[0], other));              \
            at[0] = CHOICE_##i(at[0], other, OR(better, first));                                   \
            best[0] = CHOICE_##t(best[0], best[k], better);                                        \
        }                                                                                          \
        T found[WIDTH], one;                                                                       \
        PLACE starts[WIDTH];                                                                       \
        memcpy(found, best, sizeof found);                                                         \
        memcpy(starts, at, sizeof starts);                                                         \
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

WIDE_EXTREME(argmax_f4, float, int32_t, __m256, f4, i4, MORE, >)
WIDE_EXTREME(argmin_f4, float, int32_t, __m256, f4, i4, LESS, <)
WIDE_EXTREME(argmax_f8, double, int64_t, __m256d, f8, i8, MORE, >)
WIDE_EXTREME(argmin_f8, double, int64_t, __m256d, f8, i8, LESS, <)
WIDE_EXTREME(argmax_i4, int32_t, int32_t, __m256i, i4, i4, MORE, >)
WIDE_EXTREME(argmin_i4, int32_t, int32_t, __m256i, i4, i4, LESS, <)
WIDE_EXTREME(argmax_i8, int64_t, int64_t, __m256i, i8, i8, MORE, >)
WIDE_EXTREME(argmin_i8, int64_t, int64_t, __m256i, i8, i8, LESS, <)

#else
#define HAS_WIDE_EXTREMES 0
#define wide_argmax_f4 argmax_f4
#define wide_argmin_f4 argmin_f4
#define wide_argmax_f8 argmax_f8
#define wide_argmin_f8 argmin_f8
#define wide_argmax_i4 argmax_i4
#define wide_argmin_i4 argmin_i4
#define wide_argmax_i8 argmax_i8
#define wide_argmin_i8 argmin_i8
#endif

#endif
