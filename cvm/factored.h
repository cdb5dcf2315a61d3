/* LU decompositions of real matrices that are scaled by powers of two, and solutions that are corrected
   by residuals with more digits: `Factored` of `symcomp/ops/stable_linalg.py`, where the method is
   explained, in C. */
#ifndef SYMCOMP_FACTORED_H
#define SYMCOMP_FACTORED_H

#include "spectra.h"

/* As there. */
enum { MOST_SPREAD = 60 };
/* Of sums of fewer terms, loops are quicker than BLAS. */
enum { FEW_NUMBERS = 512, FEW_ROWS_TO_FACTOR = 8 };

/* -- powers of two */

/* As of frexp, whose calls would take most of the time. */
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

/* x 2^power. */
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
static void multiply_doubles(int64_t n, int64_t k, int64_t m, double *a, double *b, double *z)
{
    if (n * k * m > FEW_NUMBERS) {
        product_of(DOUBLE, "N", "N", n, k, m, a, n, b, k, z);
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

/* Of x the leading bits, so many of what is largest in its row or column, and what is left. */
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

/* A matrix that is multiplied again and again, with the parts of it. */
struct parts {
    int64_t n, k;
    int bits;
    double *whole, *high, *low;
};

static void take_parts(struct arena *arena, int64_t n, int64_t k, struct parts *a)
{
    const int64_t bytes = n * k * (int64_t)sizeof(double);
    int length = 0;
    for (int64_t i = k; i; i /= 2)
        length++;
    *a = (struct parts){n, k, (53 - length) / 2, NULL, NULL, NULL};
    a->whole = take(arena, bytes);
    a->high = take(arena, bytes);
    a->low = take(arena, bytes);
}

static void split_parts(struct parts *a)
{
    split(1, a->bits, a->n, a->k, a->whole, a->high, a->low);
}

/* r = b - a x for m columns, where little is left of b; `few` has room for four such x or b. */
static void residual(const struct parts *a, int64_t m, const double *b, const double *x, double *few,
                     double *r)
{
    const int64_t all = a->n * m, sides = MAX(a->n, a->k) * m;
    double *high = few, *low = few + sides, *exact = low + sides, *rest = exact + sides;
    split(0, a->bits, a->k, m, x, high, low);
    multiply_doubles(a->n, a->k, m, a->high, high, exact);
    for (int64_t i = 0; i < all; i++)
        exact[i] = b[i] - exact[i];
    multiply_doubles(a->n, a->k, m, a->high, low, rest);
    for (int64_t i = 0; i < all; i++)
        exact[i] -= rest[i];
    multiply_doubles(a->n, a->k, m, a->low, (double *)x, rest);
    for (int64_t i = 0; i < all; i++)
        r[i] = exact[i] - rest[i];
}

/* -- factors of a matrix that is scaled by powers of two */

struct factored {
    int64_t n;
    struct parts scaled;
    double *lu;
    int64_t *rows, *columns, *order;
    void *pivots;
    int sign;           /* of the order of the rows; 0: singular */
};

enum { NOTHING = -(1 << 20) };

static void take_factored(struct arena *arena, int64_t n, struct factored *f)
{
    f->n = n;
    take_parts(arena, n, n, &f->scaled);
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

/* What is in f->scaled.whole is scaled and decomposed. */
static void factor(struct factored *f)
{
    const int64_t n = f->n;
    double *a = f->scaled.whole;
    find_scale(f);
    for (int64_t j = 0; j < n; j++)
        for (int64_t i = 0; i < n; i++)
            a[j * n + i] = shifted(a[j * n + i], -f->rows[i] - f->columns[j]);
    split_parts(&f->scaled);
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

/* The largest modulus of a column of x over that of y, of all columns; NaN if x holds NaN. */
static double largest_ratio(int64_t n, int64_t m, const double *x, const double *y)
{
    double found = 0;
    for (int64_t j = 0; j < m; j++) {
        double above = 0, below = 0;
        for (int64_t i = 0; i < n; i++) {
            if (x[j * n + i] != x[j * n + i])
                return NAN;
            above = MAX(above, fabs(x[j * n + i]));
            below = MAX(below, fabs(y[j * n + i]));
        }
        if (above != 0)
            found = MAX(found, above / below);
    }
    return found;
}

/* x with scaled x = b, and what its rounding left out. `few` has room for seven such x. */
static void refine(struct factored *f, int64_t m, const double *b, double *few, double *x,
                   double *rest)
{
    const int64_t n = f->n, all = n * m;
    double *left = few + 4 * all, *step = left + all, *before = step + all;
    reorder(f, m, b, x);
    eliminate(f, m, x);
    memset(rest, 0, (size_t)all * sizeof(double));
    for (int turn = 0; turn < 2; turn++) {
        residual(&f->scaled, m, b, x, few, left);
        if (turn) {
            multiply_doubles(n, n, m, f->scaled.whole, rest, before);
            for (int64_t i = 0; i < all; i++)
                left[i] -= before[i];
        }
        reorder(f, m, left, step);
        eliminate(f, m, step);
        double ratio = largest_ratio(n, m, step, x);
        if (!(ratio <= 0.5))
            return; /* no digit is certain */
        for (int64_t i = 0; i < all; i++) {
            double y = rest[i] + step[i], sum = x[i] + y, part = sum - x[i];
            double error = (x[i] - (sum - part)) + (y - part);
            rest[i] = isfinite(error) ? error : 0;
            x[i] = sum;
        }
        if (ratio < 0x1p-40)
            return; /* the error is now about the square of this */
    }
}

enum { ROOM_TO_REFINE = 7 };

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
