/* Products with a short side, of matrices that fit the cache, and triangles of small ones: BLAS takes
   longer to begin than small ones take, arranges the others anew first, and often knows less of the
   processor than this. */
#ifndef SYMCOMP_ROW_PRODUCTS_H
#define SYMCOMP_ROW_PRODUCTS_H

#include <stdint.h>

/* Larger matrices than this, in bytes, are BLAS's, which may have several threads. */
enum { LARGEST_MATRIX = 4 << 20 };

/* The most rows of a triangle here, the fewest of one that is found, and the numbers beside a row that are
   written over. */
enum { LARGEST_SMALL = 192, FEWEST_FACTORED = 8, BESIDE_ROW = 32 };

/* Levels of what the processor has; 0: neither AVX2 with FMA nor more. */
enum { AVX2 = 1, AVX512 = 2 };

/* The functions below are visible outside of the module: tests call them at each level. */
#if defined(__GNUC__)
#define VISIBLE __attribute__((visibility("default")))
#else
#define VISIBLE
#endif

/* The highest level of this processor. */
VISIBLE int symcomp_row_product_level(void);

/* For floats (f) and doubles (d), with the code of a level above 0:
   z <- beta c + alpha x w, for a row x of numbers ``step`` apart and w of k rows and m columns; c may be z;
   z <- beta z + alpha w x, for a column x and w of m rows and k columns;
   z <- beta z + alpha a b, for a of n rows and k columns, its numbers ``down`` and ``along`` apart;
   z <- beta z + alpha a w', for w of m rows;
   z <- z' with a z' = z, for a lower triangle a of n rows, its numbers ``down`` and ``along`` apart, or with
   ones on its diagonal (``unit``), and z of m columns, its rows ``ld`` apart, which may be negative;
   u <- the upper triangle v with v' v = u, a matrix of n rows, if that is positive definite: only its upper
   triangle is read, and ``ld`` is at least n + BESIDE_ROW.
   Matrices lie in rows, ``ld`` apart; z and c may be anything where beta is 0. */
#define DECLARE(T, s)                                                                              \
    VISIBLE void symcomp_row_times_##s(int level, int64_t k, int64_t m, T alpha, const T *x,       \
                                       int64_t step, const T *w, int64_t ld, T beta, const T *c,   \
                                       T *z);                                                      \
    VISIBLE void symcomp_times_column_##s(int level, int64_t k, int64_t m, T alpha, const T *x,    \
                                          const T *w, int64_t ld, T beta, T *z);                   \
    VISIBLE void symcomp_thin_##s(int level, int64_t n, int64_t k, int64_t m, T alpha, const T *a, \
                                  int64_t down, int64_t along, const T *b, int64_t ld, T beta,     \
                                  T *z);                                                           \
    VISIBLE void symcomp_thin_transposed_##s(int level, int64_t n, int64_t k, int64_t m, T alpha,  \
                                             const T *a, int64_t lda, const T *w, int64_t ld,      \
                                             T beta, T *z);                                        \
    VISIBLE void symcomp_solve_triangle_##s(int level, int64_t n, int64_t m, const T *a,           \
                                            int64_t down, int64_t along, int unit, T *z,           \
                                            int64_t ld);                                           \
    VISIBLE void symcomp_factor_##s(int level, int64_t n, T *u, int64_t ld, int *is_positive);
DECLARE(float, f)
DECLARE(double, d)
#undef DECLARE
#endif
