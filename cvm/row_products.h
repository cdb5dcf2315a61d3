/* Products of a row and a matrix that fit the cache: BLAS takes longer to begin than small ones
   take, and often knows less of the processor than this. */
#ifndef SYMCOMP_ROW_PRODUCTS_H
#define SYMCOMP_ROW_PRODUCTS_H

#include <stdint.h>

/* Larger matrices than this, in bytes, are BLAS's, which may have several threads. */
enum { LARGEST_MATRIX = 4 << 20 };

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>
/* As arrays of vectors must stay in registers. */
#define UNROLL _Pragma("GCC unroll 64")
#define ALWAYS_INLINE static inline __attribute__((always_inline))

#define T float
#define VECTOR __m512
#define WIDTH 16
#define MOST 28
#define NAME(x) x##_f512
#define TARGET __attribute__((target("avx512f"), optimize("O3")))
#define ZERO _mm512_setzero_ps()
#define ALL _mm512_set1_ps
#define LOAD _mm512_loadu_ps
#define MASK __mmask16
#define MASK_OF(n) ((__mmask16)((1u << (n)) - 1))
#define SOME(p, mask) _mm512_maskz_loadu_ps(mask, p)
#define KEEP _mm512_mask_storeu_ps
#define FMA _mm512_fmadd_ps
#define MUL _mm512_mul_ps
#define SUM _mm512_reduce_add_ps
#include "row_product.h"

#define T double
#define VECTOR __m512d
#define WIDTH 8
#define MOST 28
#define NAME(x) x##_d512
#define TARGET __attribute__((target("avx512f"), optimize("O3")))
#define ZERO _mm512_setzero_pd()
#define ALL _mm512_set1_pd
#define LOAD _mm512_loadu_pd
#define MASK __mmask8
#define MASK_OF(n) ((__mmask8)((1u << (n)) - 1))
#define SOME(p, mask) _mm512_maskz_loadu_pd(mask, p)
#define KEEP _mm512_mask_storeu_pd
#define FMA _mm512_fmadd_pd
#define MUL _mm512_mul_pd
#define SUM _mm512_reduce_add_pd
#include "row_product.h"

static const int32_t symcomp_masks[16] = {-1, -1, -1, -1, -1, -1, -1, -1};

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

#define T float
#define VECTOR __m256
#define WIDTH 8
#define MOST 12
#define NAME(x) x##_f256
#define TARGET __attribute__((target("avx2,fma"), optimize("O3")))
#define ZERO _mm256_setzero_ps()
#define ALL _mm256_set1_ps
#define LOAD _mm256_loadu_ps
#define MASK __m256i
#define MASK_OF(n) _mm256_loadu_si256((const __m256i *)(symcomp_masks + 8 - (n)))
#define SOME(p, mask) _mm256_maskload_ps(p, mask)
#define KEEP _mm256_maskstore_ps
#define FMA _mm256_fmadd_ps
#define MUL _mm256_mul_ps
#define SUM sum_f256
#include "row_product.h"

#define T double
#define VECTOR __m256d
#define WIDTH 4
#define MOST 12
#define NAME(x) x##_d256
#define TARGET __attribute__((target("avx2,fma"), optimize("O3")))
#define ZERO _mm256_setzero_pd()
#define ALL _mm256_set1_pd
#define LOAD _mm256_loadu_pd
#define MASK __m256i
#define MASK_OF(n) _mm256_loadu_si256((const __m256i *)(symcomp_masks + 8 - 2 * (n)))
#define SOME(p, mask) _mm256_maskload_pd(p, mask)
#define KEEP _mm256_maskstore_pd
#define FMA _mm256_fmadd_pd
#define MUL _mm256_mul_pd
#define SUM sum_d256
#include "row_product.h"

/* 2: AVX-512; 1: AVX2 with FMA; 0: neither. */
static inline int row_product_level(void)
{
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f"))
        return 2;
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}

static inline void row_times_f(int level, int64_t k, int64_t m, float alpha, const float *x,
                               int64_t step, const float *w, int64_t ld, float beta, float *z)
{
    (level == 2 ? row_times_f512 : row_times_f256)(k, m, alpha, x, step, w, ld, beta, z);
}

static inline void row_times_d(int level, int64_t k, int64_t m, double alpha, const double *x,
                               int64_t step, const double *w, int64_t ld, double beta, double *z)
{
    (level == 2 ? row_times_d512 : row_times_d256)(k, m, alpha, x, step, w, ld, beta, z);
}

static inline void times_column_f(int level, int64_t k, int64_t m, float alpha, const float *x,
                                  const float *w, int64_t ld, float beta, float *z)
{
    (level == 2 ? times_column_f512 : times_column_f256)(k, m, alpha, x, w, ld, beta, z);
}

static inline void times_column_d(int level, int64_t k, int64_t m, double alpha, const double *x,
                                  const double *w, int64_t ld, double beta, double *z)
{
    (level == 2 ? times_column_d512 : times_column_d256)(k, m, alpha, x, w, ld, beta, z);
}
#else
static inline int row_product_level(void)
{
    return 0;
}

#define NONE(T, s)                                                                                 \
    static inline void row_times_##s(int level, int64_t k, int64_t m, T alpha, const T *x,         \
                                     int64_t step, const T *w, int64_t ld, T beta, T *z)           \
    {                                                                                              \
    }                                                                                              \
    static inline void times_column_##s(int level, int64_t k, int64_t m, T alpha, const T *x,      \
                                        const T *w, int64_t ld, T beta, T *z)                      \
    {                                                                                              \
    }
NONE(float, f)
NONE(double, d)
#undef NONE
#endif
#endif
