/* Residuals b - a x of real matrices with about twice the digits of float64; corrected_lu.h has the bound
   of their error. */
#ifndef SYMCOMP_RESIDUALS_H
#define SYMCOMP_RESIDUALS_H

#include "eigen_svd.h"

/* Loops are faster than BLAS for fewer products of numbers. */
enum { FEW_NUMBERS = 512 };

/* Whether the processor has fused multiply-adds, and functions that are compiled with them. */
#if defined(__FMA__) || defined(__aarch64__)
#define WITH_FMA
#define HAS_FMA 1
#elif defined(__x86_64__) && defined(__GNUC__)
#define WITH_FMA __attribute__((target("avx2,fma")))
#define HAS_FMA (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
#else
#define WITH_FMA
#define HAS_FMA 0
#endif

/* -- powers of two */

/* Return the exponent that frexp returns, whose calls would take most of the time. */
static inline int64_t exponent(double x)
{
    uint64_t bits;
    int e;
    memcpy(&bits, &x, sizeof bits);
    int64_t stored = (int64_t)(bits >> 52 & 2047);
    if (stored)
        return stored - 1022;
    frexp(x, &e);
    return e;
}

/* Return x 2^power. */
static inline double shifted(double x, int64_t power)
{
    const uint64_t bits = (uint64_t)(power + 1023) << 52;
    double factor;
    if (power < -1000 || power > 1000)
        return unscaled(x, power);
    memcpy(&factor, &bits, sizeof factor);
    return x * factor;
}

/* -- matrices of doubles in columns */

/* z = a b, n rows, sums of k terms, m columns. */
static void multiply_doubles(int64_t n, int64_t k, int64_t m, const double *a, const double *b,
                             double *z)
{
    if (n * k * m > FEW_NUMBERS) {
        product_of(DOUBLE, "N", "N", n, k, m, (void *)a, n, (void *)b, k, z);
        return;
    }
    for (int64_t j = 0; j < m; j++) {
        for (int64_t i = 0; i < n; i++)
            z[j * n + i] = 0;
        for (int64_t l = 0; l < k; l++)
            for (int64_t i = 0; i < n; i++)
                z[j * n + i] += a[l * n + i] * b[j * k + l];
    }
}

/* Split x into the leading bits, relative to the largest element of each row or column, and the
   remainder. */
static void split(int by_rows, int bits, int64_t n, int64_t m, const double *x, double *high,
                  double *low)
{
    const int64_t lines = by_rows ? n : m, others = by_rows ? m : n;
    const int64_t line = by_rows ? 1 : n, next = by_rows ? n : 1;
    for (int64_t i = 0; i < lines; i++) {
        double largest = 0;
        for (int64_t j = 0; j < others; j++)
            largest = MAX(largest, fabs(x[i * line + j * next]));
        const double shift = shifted(1.5, exponent(largest) + 52 - bits);
        for (int64_t j = 0; j < others; j++) {
            const int64_t at = i * line + j * next;
            high[at] = (x[at] + shift) - shift;
            low[at] = x[at] - high[at];
        }
    }
}

/* A left factor of products, and its leading bits, the following ones and the last ones, which are found
   when they are first needed. */
struct slices {
    int64_t n, k;
    int bits, is_sliced;
    double *whole, *high, *middle, *low;
};

static void take_slices(struct arena *arena, int64_t n, int64_t k, struct slices *a)
{
    const int64_t bytes = n * k * (int64_t)sizeof(double);
    int length = 0;
    for (int64_t i = k; i; i /= 2)
        length++;
    *a = (struct slices){n, k, (53 - length) / 2, 0, NULL, NULL, NULL, NULL};
    a->whole = take(arena, bytes);
    a->high = take(arena, bytes);
    a->middle = take(arena, bytes);
    a->low = take(arena, bytes);
}

static void slice(struct slices *a)
{
    if (a->is_sliced)
        return;
    a->is_sliced = 1;
    split(1, a->bits, a->n, a->k, a->whole, a->high, a->low);
    split(1, a->bits, a->n, a->k, a->low, a->middle, a->low);
}

/* sum + error = a + b, exactly. */
static inline double two_sum(double a, double b, double *error)
{
    const double sum = a + b, part = sum - a;
    *error = (a - (sum - part)) + (b - part);
    return sum;
}

/* `residual` for few products: each is exact as a sum of two numbers, and sums keep their rounding errors in
   `lost`, which has room for n (Ogita, Rump and Oishi, "Accurate sum and dot product", 2005). */
WITH_FMA static void residual_of_few(int64_t n, int64_t k, int64_t m, const double *restrict a,
                                     const double *restrict b, const double *restrict x,
                                     const double *restrict rest, double *restrict lost,
                                     double *restrict r)
{
    for (int64_t j = 0; j < m; j++, b += n, x += k, r += n) {
        for (int64_t i = 0; i < n; i++)
            r[i] = b[i], lost[i] = 0;
        for (int64_t l = 0; l < k; l++)
            for (int64_t i = 0; i < n; i++) {
                const double factor = a[l * n + i], product = factor * x[l];
                const double beyond = fma(factor, x[l], -product);
                double error;
                r[i] = two_sum(r[i], -product, &error);
                lost[i] += error - beyond;
            }
        for (int64_t l = 0; rest && l < k; l++)
            for (int64_t i = 0; i < n; i++)
                lost[i] -= a[l * n + i] * rest[j * k + l];
        for (int64_t i = 0; i < n; i++)
            r[i] += lost[i];
    }
}

enum { ROOM_OF_RESIDUAL = 6 };

/* r = b - a (x + rest) for m columns, where little is left of b. No `rest` is zeros. `few` has room for
   ROOM_OF_RESIDUAL such x or b. */
static void residual(struct slices *a, int64_t m, const double *b, const double *x,
                     const double *rest, double *few, double *r)
{
    const int64_t n = a->n, k = a->k, all = n * m, sides = MAX(n, k) * m;
    double *high = few, *below = high + sides, *middle = below + sides, *low = middle + sides;
    double *product = low + sides, *lost = product + sides, error;
    if (HAS_FMA && n * k * m <= FEW_NUMBERS) {
        residual_of_few(n, k, m, a->whole, b, x, rest, lost, r);
        return;
    }
    slice(a);
    split(0, a->bits, k, m, x, high, below);
    split(0, a->bits, k, m, below, middle, low);
    const double *exact[3][2] = {{a->high, high}, {a->high, middle}, {a->middle, high}};
    const double *rounded[4][2] = {{a->high, low}, {a->middle, below}, {a->low, x},
                                   {a->whole, rest}};
    memcpy(r, b, (size_t)all * sizeof(double));
    memset(lost, 0, (size_t)all * sizeof(double));
    for (int part = 0; part < 3; part++) {
        multiply_doubles(n, k, m, exact[part][0], exact[part][1], product);
        for (int64_t i = 0; i < all; i++) {
            r[i] = two_sum(r[i], -product[i], &error);
            lost[i] += error;
        }
    }
    for (int part = 0; part < (rest ? 4 : 3); part++) {
        multiply_doubles(n, k, m, rounded[part][0], rounded[part][1], product);
        for (int64_t i = 0; i < all; i++)
            lost[i] -= product[i];
    }
    for (int64_t i = 0; i < all; i++)
        r[i] += lost[i];
}

#endif
