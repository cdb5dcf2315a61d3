/* LU decompositions of real matrices, with solutions and determinants corrected to the last digits.

   Error bounds, and why they hold with any BLAS and LAPACK
   --------------------------------------------------
   Let u = 2^-53 and n the number of rows. Matrices are first scaled by powers of two, which rounds
   nothing, so that nothing over- or underflows on the way. ``a x = b`` is solved by iterative
   refinement (Wilkinson, "Rounding errors in algebraic processes", 1963): x, kept as a sum of two
   float64 numbers, gets the correction d that LAPACK's factors give for the residual r = b - a x,
   again and again.

   The residual. Each matrix is cut into slices of k = (53 - bits of n) // 2 bits (Ozaki, Ogita,
   Oishi and Rump, "Error-free transformations of matrix multiplication", 2012). All partial sums of
   a product of the leading slices are multiples of one number and fit 53 bits: such a product is
   exact, in whatever order a library adds, with fused operations or without. The three largest
   products of slices are exact; the others, 2^-2k times smaller, are rounded. So the error of r is
   at most e |a| |x| with e = 4 n u 2^-2k, which is 2^-91 for n = 64. Where there are at most 512
   products of numbers (n <= 22), and the processor has fused multiply-adds, each product is the exact sum
   of two numbers, and rounding errors of sums are added up beside them: the error is then at most
   (2 n + 2)^2 u^2 |a| |x|, below 2^-94 (Ogita, Rump and Oishi, "Accurate sum and dot product", 2005).

   The corrections. The factors of any library give d = (1 + F) a^-1 r, where F is due to its
   rounding. If the error of x is E, that of x + d is -F E + (1 + F) a^-1 (error of r): each
   correction multiplies the error by |F|, down to |1 + F| e |a^-1| |a| |x|. As long as |F| <= 1/2,
   rounding decides the number of corrections, not their result. Corrections are added while each is
   at most half of the one before (otherwise |F| is larger, and no digit is certain). After d, |E| <=
   |F| / (1 - |F|) |d| <= min(1, 2 |F|) |d| in the maximum norm. |F| is below 3 n u times the norm of
   |a^-1| |L| |U| (Higham, "Accuracy and Stability of Numerical Algorithms", 2002, theorem 9.4), and
   |a^-1| is below the product of the inverses of the comparison matrices of U and L (ibid., 8.12),
   whose diagonals are positive and whose other elements are negative. A column is done once this
   bound of E is below u / 16 of each of its elements, or below 2^-80 of the largest.

   So x is the exact solution rounded, within one unit of the last place, in all elements that are
   above 2^-25 and above 2^-35 cond(a) of the largest of their column (2^-80 / 2^-25 and 1.5 e /
   2^-35 are u / 4).

   The determinant. With R = a - L U, found as residuals are, L U = a (1 - F) for the solution F of a
   F = R, so that log |det a| is log |det L U| + trace(F) + trace(F^2) / 2 + ...; F has the size of n
   u cond(a), and the series ends where terms are below u / 16 of the result. */
#ifndef SYMCOMP_CORRECTED_LU_H
#define SYMCOMP_CORRECTED_LU_H

#include "residuals.h"

/* Rows are scaled if their sizes differ by more powers of two. */
enum { MOST_SPREAD = 60 };
/* Higher powers of a matrix of norm 1/2 are negligible. */
enum { MOST_TERMS = 64 };
/* Relative to an element: smaller errors change no digit of the result. */
static const double NEGLIGIBLE = 0x1p-57;
/* Relative to the largest element of a column: smaller corrections are rounding errors of residuals. */
static const double NOISE = 0x1p-80;
/* The relative error of each operation of LAPACK. A test has a LAPACK with larger ones. */
#ifndef UNIT_ROUNDOFF
#define UNIT_ROUNDOFF 0x1p-53
#endif
/* Loops are faster than LAPACK for fewer rows. */
enum { FEW_ROWS_TO_FACTOR = 8 };

/* -- factors of a matrix that is scaled by powers of two */

struct factored {
    int64_t n;
    struct slices scaled;
    double *lu;
    int64_t *rows, *columns, *order;
    void *pivots;
    int sign;           /* of the order of the rows; 0: singular */
};

enum { NOTHING = -(1 << 20) };

static void take_factored(struct arena *arena, int64_t n, struct factored *f)
{
    f->n = n;
    take_slices(arena, n, n, &f->scaled);
    f->lu = take(arena, n * n * (int64_t)sizeof(double));
    f->rows = take(arena, 3 * n * (int64_t)sizeof(int64_t));
    f->columns = f->rows ? f->rows + n : NULL;
    f->order = f->rows ? f->rows + 2 * n : NULL;
    f->pivots = take_integers(arena, n);
}

/* The largest exponent in a line, less those of the lines across; 0 where all is 0. */
static int64_t largest_exponent(int64_t n, const double *x, int64_t step, const int64_t *less)
{
    int64_t largest = NOTHING;
    for (int64_t i = 0; i < n; i++)
        if (x[i * step] != 0) {
            int64_t e = exponent(x[i * step]) - (less ? less[i] : 0);
            largest = MAX(largest, e);
        }
    return largest == NOTHING ? 0 : largest;
}

/* The powers of two of rows and columns. */
static void find_scale(struct factored *f)
{
    const int64_t n = f->n;
    const double *a = f->scaled.whole;
    int64_t least = INT64_MAX, most = INT64_MIN;
    for (int64_t j = 0; j < n; j++)
        f->columns[j] = largest_exponent(n, a + j * n, 1, NULL);
    for (int64_t i = 0; i < n; i++) {
        f->rows[i] = largest_exponent(n, a + i, n, f->columns);
        least = MIN(least, f->rows[i]);
        most = MAX(most, f->rows[i]);
    }
    /* Scaling rows changes the pivots. */
    if (most - least > MOST_SPREAD)
        for (int64_t j = 0; j < n; j++)
            f->columns[j] = largest_exponent(n, a + j * n, 1, f->rows);
    else
        memset(f->rows, 0, (size_t)n * sizeof(int64_t));
}

/* LU decomposition of few rows, as `factorize`, whose call would take longer. */
static int factorize_few(int64_t n, double *a, int64_t *order)
{
    int sign = 1;
    for (int64_t k = 0; k < n; k++) {
        int64_t best = k;
        for (int64_t i = k + 1; i < n; i++)
            if (fabs(a[k * n + i]) > fabs(a[k * n + best]))
                best = i;
        if (a[k * n + best] == 0)
            return 0;
        if (best != k) {
            int64_t kept = order[k];
            order[k] = order[best];
            order[best] = kept;
            sign = -sign;
            for (int64_t j = 0; j < n; j++) {
                double moved = a[j * n + k];
                a[j * n + k] = a[j * n + best];
                a[j * n + best] = moved;
            }
        }
        for (int64_t i = k + 1; i < n; i++)
            a[k * n + i] /= a[k * n + k];
        for (int64_t j = k + 1; j < n; j++)
            for (int64_t i = k + 1; i < n; i++)
                a[j * n + i] -= a[k * n + i] * a[j * n + k];
    }
    return sign;
}

/* Scale and decompose f->scaled.whole. */
static void factor(struct factored *f)
{
    const int64_t n = f->n;
    double *a = f->scaled.whole;
    find_scale(f);
    for (int64_t j = 0; j < n; j++)
        for (int64_t i = 0; i < n; i++)
            a[j * n + i] = shifted(a[j * n + i], -f->rows[i] - f->columns[j]);
    f->scaled.is_sliced = 0;
    memcpy(f->lu, a, (size_t)(n * n) * sizeof(double));
    for (int64_t i = 0; i < n; i++)
        f->order[i] = i;
    if (n <= FEW_ROWS_TO_FACTOR) {
        f->sign = factorize_few(n, f->lu, f->order);
        return;
    }
    f->sign = factorize(DOUBLE, n, f->lu, f->pivots);
    for (int64_t i = 0; i < n; i++) {
        int64_t other = element_of(f->pivots, i) - 1, kept = f->order[i];
        f->order[i] = f->order[other];
        f->order[other] = kept;
    }
}

/* x with l u x = b, the rows of b in the order of the factors; in the place of b. */
static void eliminate(struct factored *f, blas_int m, double *b)
{
    blas_int n = f->n;
    if (n * n * m > FEW_NUMBERS) {
        CALL(trsm, TRSM, DOUBLE)("L", "L", "N", "U", &n, &m, ONES, f->lu, &n, b, &n);
        CALL(trsm, TRSM, DOUBLE)("L", "U", "N", "N", &n, &m, ONES, f->lu, &n, b, &n);
        return;
    }
    for (int64_t k = 0; k < m; k++, b += n) {
        for (int64_t j = 0; j < n; j++)
            for (int64_t i = j + 1; i < n; i++)
                b[i] -= f->lu[j * n + i] * b[j];
        for (int64_t j = n - 1; j >= 0; j--) {
            b[j] /= f->lu[j * n + j];
            for (int64_t i = 0; i < j; i++)
                b[i] -= f->lu[j * n + i] * b[j];
        }
    }
}

static void reorder(const struct factored *f, int64_t m, const double *b, double *z)
{
    for (int64_t j = 0; j < m; j++)
        for (int64_t i = 0; i < f->n; i++)
            z[j * f->n + i] = b[j * f->n + f->order[i]];
}

/* The largest modulus; NaN if there is one. */
static double largest_modulus(int64_t n, const double *x)
{
    double found = 0;
    for (int64_t i = 0; i < n; i++) {
        if (x[i] != x[i])
            return NAN;
        found = MAX(found, fabs(x[i]));
    }
    return found;
}

/* x + rest + step as x and rest; whether an error of x is negligible then. */
static int add_step(int64_t n, const double *step, double error, double enough, double *x,
                    double *rest)
{
    double least = INFINITY, most = 0, lost;
    for (int64_t i = 0; i < n; i++) {
        x[i] = two_sum(x[i], rest[i] + step[i], &lost);
        rest[i] = isfinite(lost) ? lost : 0;
        least = MIN(least, fabs(x[i]));
        most = MAX(most, fabs(x[i]));
    }
    return error <= MAX(enough * least, NOISE * most);
}

/* A bound of the error that is left after a correction, relative to this. `sums` has room for a column. */
static double error_factor(const struct factored *f, double *sums)
{
    const int64_t n = f->n;
    const double *lu = f->lu;
    double largest = 0;
    /* |u|, |l|, and the inverses of the comparison matrices of l and of u, times a column of 1. */
    memset(sums, 0, (size_t)n * sizeof(double));
    for (int64_t j = 0; j < n; j++)
        for (int64_t i = 0; i <= j; i++)
            sums[i] += fabs(lu[j * n + i]);
    for (int64_t j = n - 1; j >= 0; j--)
        for (int64_t i = j + 1; i < n; i++)
            sums[i] += fabs(lu[j * n + i]) * sums[j];
    for (int64_t j = 0; j < n; j++)
        for (int64_t i = j + 1; i < n; i++)
            sums[i] += fabs(lu[j * n + i]) * sums[j];
    for (int64_t j = n - 1; j >= 0; j--) {
        sums[j] /= fabs(lu[j * n + j]);
        for (int64_t i = 0; i < j; i++)
            sums[i] += fabs(lu[j * n + i]) * sums[j];
    }
    for (int64_t i = 0; i < n; i++)
        largest = MAX(largest, sums[i]);
    /* Twice the bound of |F|, and a factor 2 for the rounding of the bound itself. */
    largest *= 12 * (double)n * UNIT_ROUNDOFF;
    return largest < 1 ? largest : 1;
}

/* Room for numbers of `refine` for m right sides of n rows. */
static int64_t room_to_refine(int64_t n, int64_t m)
{
    return ((ROOM_OF_RESIDUAL + 2) * n * m + n + m) * (int64_t)sizeof(double);
}

/* x with scaled x = b, and what its rounding left out. Errors may be `enough` of an element. */
static void refine(struct factored *f, int64_t m, const double *b, double enough, double *few,
                   double *x, double *rest)
{
    const int64_t n = f->n, all = n * m;
    double *left = few + ROOM_OF_RESIDUAL * all, *step = left + all, *sizes = step + all;
    const double factor = error_factor(f, sizes + m);
    reorder(f, m, b, x);
    eliminate(f, m, x);
    memset(rest, 0, (size_t)all * sizeof(double));
    for (int64_t j = 0; j < m; j++)
        sizes[j] = largest_modulus(n, x + j * n);
    for (int turn = 0, done = 0; !done; turn++) {
        residual(&f->scaled, m, b, x, turn ? rest : NULL, few, left);
        reorder(f, m, left, step);
        eliminate(f, m, step);
        done = 1;
        for (int64_t j = 0; j < m; j++) {
            double size = largest_modulus(n, step + j * n);
            if (size <= sizes[j] / 2) {
                done &= add_step(n, step + j * n, factor * size, enough, x + j * n, rest + j * n);
                sizes[j] = size;
            } else {
                sizes[j] = 0;
            }
        }
    }
}

/* Each column by a power of two to about 1, its rows divided by others; the powers are kept. */
static void scale_columns(int64_t n, int64_t m, double *b, const int64_t *rows, int64_t *powers)
{
    for (int64_t j = 0; j < m; j++) {
        powers[j] = largest_exponent(n, b + j * n, 1, rows);
        for (int64_t i = 0; i < n; i++)
            b[j * n + i] = shifted(b[j * n + i], -rows[i] - powers[j]);
    }
}
#endif
