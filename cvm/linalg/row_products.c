/* The loops of row_products.h, compiled for each level. */
#include "row_products.h"
#include <math.h>
#include <string.h>

/* Bytes of a matrix that are used before the next rows are read. */
enum { LARGEST_SLICE = 1 << 18 };

/* Up to this number of rows of results, as these are loaded and stored again for each slice. */
enum { FEW_ROWS = 16 };

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>
/* Loops are unrolled, because arrays of vectors must stay in registers. */
#define UNROLL _Pragma("GCC unroll 64")
#define ALWAYS_INLINE static inline __attribute__((always_inline))
/* Whichever level the file is compiled with, unless it is none. */
#ifdef __OPTIMIZE__
#define OPTIMIZED , optimize("O3")
#else
#define OPTIMIZED
#endif

/* Matrices of at most this number of bytes are in the cache. The rows of larger ones are requested from
   memory ROWS_AHEAD rows before they are used. */
enum { LARGEST_CACHED = 1 << 18, ROWS_AHEAD = 8, CACHE_LINE = 64 };

/* Rows that are a multiple of this number of bytes apart have the same places in the nearest cache: of
   these, ROWS_TOGETHER are read at once, in pieces of at most STREAM bytes. */
enum { SAME_PLACE = 4096, ROWS_TOGETHER = 8, STREAM = 8192 };

/* About this number of bytes of a matrix are changed from the first row to the last, which the processor
   reads ahead. */
enum { FORWARD_BLOCK = 1 << 16 };

/* For each hash of the address of a matrix, whether its columns were last read backwards. */
static uint64_t read_backwards;

/* Change, and return, whether the columns of a matrix are read backwards: the last ones that were read are
   still in the cache. */
static int turn_around(const void *matrix)
{
    const uint64_t hash = (uint64_t)(uintptr_t)matrix * UINT64_C(0x9E3779B97F4A7C15);
    const uint64_t bit = UINT64_C(1) << (hash >> 58);
    return (__atomic_xor_fetch(&read_backwards, bit, __ATOMIC_RELAXED) & bit) != 0;
}

/* A matrix in rows, `ld` apart. */
#define SLICE(ld) (LARGEST_SLICE / ((ld) * (int64_t)sizeof(T)) + 1)

#define T float
#define VECTOR __m512
#define WIDTH 16
#define MOST 28
#define NAME(x) x##_f512
#define TARGET __attribute__((target("avx512f") OPTIMIZED))
#define ZERO _mm512_setzero_ps()
#define ALL _mm512_set1_ps
#define LOAD _mm512_loadu_ps
#define MASK __mmask16
#define MASK_OF(n) ((__mmask16)((1u << (n)) - 1))
#define MASK_FROM(n) ((__mmask16)(0xffffu << (n)))
#define SOME(p, mask) _mm512_maskz_loadu_ps(mask, p)
#define STORE _mm512_storeu_ps
#define KEEP _mm512_mask_storeu_ps
#define FMA _mm512_fmadd_ps
#define MUL _mm512_mul_ps
#define DIV _mm512_div_ps
#define SUM _mm512_reduce_add_ps
#include "thin_product.h"
#include "small_triangle.h"
#include "row_product.h"

#define T double
#define VECTOR __m512d
#define WIDTH 8
#define MOST 28
#define NAME(x) x##_d512
#define TARGET __attribute__((target("avx512f") OPTIMIZED))
#define ZERO _mm512_setzero_pd()
#define ALL _mm512_set1_pd
#define LOAD _mm512_loadu_pd
#define MASK __mmask8
#define MASK_OF(n) ((__mmask8)((1u << (n)) - 1))
#define MASK_FROM(n) ((__mmask8)(0xffu << (n)))
#define SOME(p, mask) _mm512_maskz_loadu_pd(mask, p)
#define STORE _mm512_storeu_pd
#define KEEP _mm512_mask_storeu_pd
#define FMA _mm512_fmadd_pd
#define MUL _mm512_mul_pd
#define DIV _mm512_div_pd
#define SUM _mm512_reduce_add_pd
#include "thin_product.h"
#include "small_triangle.h"
#include "row_product.h"

static const int32_t symcomp_masks[24] = {[8] = -1, -1, -1, -1, -1, -1, -1, -1};

__attribute__((target("avx2,fma"))) static inline float sum_f256(__m256 v)
{
    __m128 x = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    x = _mm_add_ps(x, _mm_movehl_ps(x, x));
    return _mm_cvtss_f32(_mm_add_ss(x, _mm_movehdup_ps(x)));
}

__attribute__((target("avx2,fma"))) static inline double sum_d256(__m256d v)
{
    __m128d x = _mm_add_pd(_mm256_castpd256_pd128(v), _mm256_extractf128_pd(v, 1));
    return _mm_cvtsd_f64(_mm_add_sd(x, _mm_unpackhi_pd(x, x)));
}

/* Masked writes of these vectors take some processors ten times as long as others: numbers that fill
   no vector are written by halves. */
__attribute__((target("avx2,fma"))) static inline void keep_d256(double *p, __m256i mask, __m256d v)
{
    int there = _mm256_movemask_pd(_mm256_castsi256_pd(mask));
    __m128d x = _mm256_castpd256_pd128(v);
    if (there == 15) {
        _mm256_storeu_pd(p, v);
        return;
    }
    if (there & 2) {
        _mm_storeu_pd(p, x);
        p += 2, there >>= 2, x = _mm256_extractf128_pd(v, 1);
    }
    if (there & 1)
        _mm_store_sd(p, x);
}

__attribute__((target("avx2,fma"))) static inline void keep_f256(float *p, __m256i mask, __m256 v)
{
    int there = _mm256_movemask_ps(_mm256_castsi256_ps(mask));
    __m128 x = _mm256_castps256_ps128(v);
    if (there == 255) {
        _mm256_storeu_ps(p, v);
        return;
    }
    if (there & 8) {
        _mm_storeu_ps(p, x);
        p += 4, there >>= 4, x = _mm256_extractf128_ps(v, 1);
    }
    if (there & 2) {
        _mm_storel_pi((__m64 *)p, x);
        p += 2, there >>= 2, x = _mm_movehl_ps(x, x);
    }
    if (there & 1)
        _mm_store_ss(p, x);
}

#define T float
#define VECTOR __m256
#define WIDTH 8
#define MOST 12
#define NAME(x) x##_f256
#define TARGET __attribute__((target("avx2,fma") OPTIMIZED))
#define ZERO _mm256_setzero_ps()
#define ALL _mm256_set1_ps
#define LOAD _mm256_loadu_ps
#define MASK __m256i
#define MASK_OF(n) _mm256_loadu_si256((const __m256i *)(symcomp_masks + 16 - (n)))
#define MASK_FROM(n) _mm256_loadu_si256((const __m256i *)(symcomp_masks + 8 - (n)))
#define SOME(p, mask) _mm256_maskload_ps(p, mask)
#define STORE _mm256_storeu_ps
#define KEEP keep_f256
#define FMA _mm256_fmadd_ps
#define MUL _mm256_mul_ps
#define DIV _mm256_div_ps
#define SUM sum_f256
#include "thin_product.h"
#include "small_triangle.h"
#include "row_product.h"

#define T double
#define VECTOR __m256d
#define WIDTH 4
#define MOST 12
#define NAME(x) x##_d256
#define TARGET __attribute__((target("avx2,fma") OPTIMIZED))
#define ZERO _mm256_setzero_pd()
#define ALL _mm256_set1_pd
#define LOAD _mm256_loadu_pd
#define MASK __m256i
#define MASK_OF(n) _mm256_loadu_si256((const __m256i *)(symcomp_masks + 16 - 2 * (n)))
#define MASK_FROM(n) _mm256_loadu_si256((const __m256i *)(symcomp_masks + 8 - 2 * (n)))
#define SOME(p, mask) _mm256_maskload_pd(p, mask)
#define STORE _mm256_storeu_pd
#define KEEP keep_d256
#define FMA _mm256_fmadd_pd
#define MUL _mm256_mul_pd
#define DIV _mm256_div_pd
#define SUM sum_d256
#include "thin_product.h"
#include "small_triangle.h"
#include "row_product.h"

int symcomp_row_product_level(void)
{
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f"))
        return AVX512;
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? AVX2 : 0;
}

#define FOR(s, name) (level == AVX512 ? name##_##s##512 : name##_##s##256)
#else
int symcomp_row_product_level(void)
{
    return 0;
}

#define FOR(s, name) (void)
#endif

/* The functions of the level, for floats (f) and doubles (d); none at level 0. */
#define CHOICES(T, s)                                                                              \
    void symcomp_row_times_##s(int level, int64_t k, int64_t m, T alpha, const T *x, int64_t step, \
                               const T *w, int64_t ld, T beta, const T *c, T *z)                   \
    {                                                                                              \
        FOR(s, row_times)(k, m, alpha, x, step, w, ld, beta, c, z);                                \
    }                                                                                              \
    void symcomp_times_column_##s(int level, int64_t k, int64_t m, T alpha, const T *x,            \
                                  const T *w, int64_t ld, T beta, T *z)                            \
    {                                                                                              \
        FOR(s, times_column)(k, m, alpha, x, w, ld, beta, z);                                      \
    }                                                                                              \
    void symcomp_thin_##s(int level, int64_t n, int64_t k, int64_t m, T alpha, const T *a,         \
                          int64_t down, int64_t along, const T *b, int64_t ld, T beta, T *z)       \
    {                                                                                              \
        FOR(s, thin)(n, k, m, alpha, a, down, along, b, ld, beta, z);                              \
    }                                                                                              \
    void symcomp_thin_transposed_##s(int level, int64_t n, int64_t k, int64_t m, T alpha,          \
                                     const T *a, int64_t lda, const T *w, int64_t ld, T beta,      \
                                     T *z)                                                         \
    {                                                                                              \
        FOR(s, thin_transposed)(n, k, m, alpha, a, lda, w, ld, beta, z);                           \
    }                                                                                              \
    void symcomp_solve_triangle_##s(int level, int64_t n, int64_t m, const T *a, int64_t down,     \
                                    int64_t along, int unit, T *z, int64_t ld)                     \
    {                                                                                              \
        FOR(s, solve_triangle)(n, m, a, down, along, unit, z, ld);                                 \
    }                                                                                              \
    void symcomp_factor_##s(int level, int64_t n, T *u, int64_t ld, int *is_positive)              \
    {                                                                                              \
        FOR(s, factor)(n, u, ld, is_positive);                                                     \
    }
CHOICES(float, f)
CHOICES(double, d)
