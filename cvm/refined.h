/* Inverses, systems and logarithms of determinants of real matrices to the last digits: natively
   what `symcomp/ops/stable_linalg.py` says, where the method is explained. */
#ifndef SYMCOMP_REFINED_H
#define SYMCOMP_REFINED_H

#include "spectra.h"

/* As there. */
enum { LARGEST_REFINED = 64, SPREAD = 60 };
/* Of sums of fewer terms, loops are quicker than BLAS. */
enum { FEW_NUMBERS = 512, FEW_ROWS_TO_FACTOR = 8 };

/* log 2, cut after 32 bits, so that its products with exponents are exact, and the rest. */
static const double LN2_HIGH = 0x1.62e42feep-1, LN2_LOW = 0x1.a39ef35793c76p-33;

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
    if (most - least > SPREAD)
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

/* -- what is found with them */

static int refined_solve(const struct decomposition *d)
{
    struct arena arena;
    const int kind = d->kind;
    const int64_t n = d->given[0].rows, k = d->given[1].columns;
    const int64_t bytes = n * k * (int64_t)sizeof(double);
    const struct stack *z = &d->found[0];
    struct factored f;
    struct decomposition plain = *d;
    if (is_complex(kind) || n * k > LARGEST_REFINED * LARGEST_REFINED)
        return solve(d);
    begin(&arena);
    take_factored(&arena, n, &f);
    double *b = take(&arena, bytes), *x = take(&arena, bytes), *rest = take(&arena, bytes);
    double *few = take(&arena, ROOM_TO_REFINE * bytes);
    int64_t *powers = take(&arena, k * (int64_t)sizeof(int64_t));
    NEEDS_MEMORY;
    for (int64_t i = 0; i < d->count; i++) {
        gather(d, 0, i, f.scaled.whole, n);
        gather(d, 1, i, b, n);
        if (!all_finite(DOUBLE, f.scaled.whole, n * n) || !all_finite(DOUBLE, b, n * k)) {
            plain.count = 1;
            for (int j = 0; j < 2; j++)
                plain.given[j].data = d->given[j].data + i * d->given[j].each;
            plain.found[0].data = result_at(d, 0, i);
            int outcome = solve(&plain);
            if (outcome != FOUND)
                return end_with(&arena, outcome);
            continue;
        }
        factor(&f);
        if (!f.sign)
            return end_with(&arena, FAILED);
        scale_columns(n, k, b, f.rows, powers);
        refine(&f, k, b, few, x, rest);
        for (int64_t row = 0; row < n; row++)
            for (int64_t j = 0; j < k; j++)
                write_real(stored(d), result_at(d, 0, i) + row * z->down + j * z->along, 0,
                           shifted(x[j * n + row], powers[j] - f.columns[row]));
    }
    return end_with(&arena, FOUND);
}

static int refined_inverse(const struct decomposition *d)
{
    struct arena arena;
    const int kind = d->kind;
    const int64_t n = d->given[0].rows, bytes = n * n * (int64_t)sizeof(double);
    const struct stack *z = &d->found[0];
    struct factored f;
    if (is_complex(kind) || n > LARGEST_REFINED)
        return inverse(d);
    begin(&arena);
    take_factored(&arena, n, &f);
    double *b = take(&arena, bytes), *x = take(&arena, bytes), *rest = take(&arena, bytes);
    double *few = take(&arena, ROOM_TO_REFINE * bytes);
    NEEDS_MEMORY;
    for (int64_t i = 0; i < d->count; i++) {
        gather(d, 0, i, f.scaled.whole, n);
        if (!all_finite(DOUBLE, f.scaled.whole, n * n))
            return end_with(&arena, FAILED);
        factor(&f);
        if (!f.sign)
            return end_with(&arena, FAILED);
        memset(b, 0, (size_t)bytes);
        for (int64_t j = 0; j < n; j++)
            b[j * (n + 1)] = 1;
        refine(&f, n, b, few, x, rest);
        for (int64_t row = 0; row < n; row++)
            for (int64_t j = 0; j < n; j++)
                write_real(stored(d), result_at(d, 0, i) + row * z->down + j * z->along, 0,
                           shifted(x[j * n + row], -f.columns[row] - f.rows[j]));
    }
    return end_with(&arena, FOUND);
}

/* The logarithm of (high + low) 2^power. */
static double log_of(double high, double low, int64_t power)
{
    int e;
    double scaled = frexp(high, &e);
    low = ldexp(low, -e);
    power += e;
    /* Near 1, so that nothing cancels where the whole product is near 1. */
    if (scaled < sqrt(0.5))
        scaled *= 2, low *= 2, power--;
    if (power == 0)
        return log1p((scaled - 1) + low);
    return (double)power * LN2_HIGH + (log(scaled) + (low / scaled + (double)power * LN2_LOW));
}

/* log |det| where the scaled matrix is l u (1 + e), but for order: det(1 + e) = 1 + trace(e) + ... */
static double refined_log(struct factored *f, struct parts *lower, double *upper, double *few,
                          double *change)
{
    const int64_t n = f->n;
    double *ordered = few + 4 * n * n, trace = 0, high = 1, low = 0;
    int64_t power = 0;
    int e, carried;
    for (int64_t j = 0; j < n; j++)
        for (int64_t i = 0; i < n; i++) {
            const int64_t at = j * n + i;
            lower->whole[at] = i > j ? f->lu[at] : i == j;
            upper[at] = i <= j ? f->lu[at] : 0;
        }
    split_parts(lower);
    reorder(f, n, f->scaled.whole, ordered);
    residual(lower, n, ordered, upper, few, change);
    eliminate(f, n, change);
    for (int64_t i = 0; i < n; i++) {
        double factor = frexp(fabs(f->lu[i * (n + 1)]), &carried), product = high * factor;
        low = fma(high, factor, -product) + low * factor;
        high = frexp(product, &e);
        low = ldexp(low, -e);
        power += e + carried + f->rows[i] + f->columns[i];
        trace += change[i * (n + 1)];
    }
    return log_of(high, low + (fabs(trace) < 0.5 ? high * trace : 0), power);
}

static int refined_log_determinant(const struct decomposition *d)
{
    struct arena arena;
    const int kind = d->kind;
    const int64_t n = d->given[0].rows, bytes = n * n * (int64_t)sizeof(double);
    struct factored f;
    struct parts lower;
    if (is_complex(kind) || n > LARGEST_REFINED)
        return log_determinant(d);
    begin(&arena);
    take_factored(&arena, n, &f);
    take_parts(&arena, n, n, &lower);
    double *upper = take(&arena, bytes), *few = take(&arena, 5 * bytes);
    double *change = take(&arena, bytes), sign[2], logarithm;
    NEEDS_MEMORY;
    for (int64_t i = 0; i < d->count; i++) {
        gather(d, 0, i, f.scaled.whole, n);
        if (all_finite(DOUBLE, f.scaled.whole, n * n)) {
            factor(&f);
            sign[0] = f.sign;
            for (int64_t j = 0; j < n; j++)
                sign[0] *= f.lu[j * (n + 1)] < 0 ? -1 : 1;
            logarithm = f.sign ? refined_log(&f, &lower, upper, few, change) : -INFINITY;
        } else {
            log_of_determinant(DOUBLE, n, f.scaled.whole, f.pivots, sign, &logarithm);
        }
        write_real(stored(d), result_at(d, 0, i), 0, sign[0]);
        write_real(stored(d), result_at(d, 1, i), 0, logarithm);
    }
    return end_with(&arena, FOUND);
}

/* x^T a^-1 y: the inputs are a, x, y. */
static int inverse_form(const struct decomposition *d)
{
    struct arena arena;
    const int kind = d->kind;
    const int64_t n = d->given[0].rows, bytes = n * (int64_t)sizeof(double);
    struct factored f;
    struct parts row;
    int64_t powers[2];
    double form, less, nothing = 0;
    if (is_complex(kind))
        return FAILED;
    begin(&arena);
    take_factored(&arena, n, &f);
    take_parts(&arena, 1, n, &row);
    double *y = take(&arena, bytes), *v = take(&arena, bytes), *rest = take(&arena, bytes);
    double *few = take(&arena, ROOM_TO_REFINE * bytes);
    NEEDS_MEMORY;
    gather(d, 0, 0, f.scaled.whole, n);
    gather(d, 1, 0, row.whole, n);
    gather(d, 2, 0, y, n);
    if (!all_finite(DOUBLE, f.scaled.whole, n * n) || !all_finite(DOUBLE, row.whole, n) ||
        !all_finite(DOUBLE, y, n))
        return end_with(&arena, FAILED);
    factor(&f);
    if (!f.sign)
        return end_with(&arena, FAILED);
    scale_columns(n, 1, row.whole, f.columns, &powers[0]);
    scale_columns(n, 1, y, f.rows, &powers[1]);
    refine(&f, 1, y, few, v, rest);
    split_parts(&row);
    multiply_doubles(1, n, 1, row.whole, rest, &form);
    residual(&row, 1, &nothing, v, few, &less);
    write_real(stored(d), d->found[0].data, 0, shifted(form - less, powers[0] + powers[1]));
    return end_with(&arena, FOUND);
}
/* -- all of them */

static const struct {
    const char *name;
    decompose *function;
} DECOMPOSITIONS[] = {
    {"adjugate", adjugate},
    {"check_invertible", check_invertible},
    {"cholesky", cholesky},
    {"determinant", determinant},
    {"eig", eig},
    {"eigh", eigh},
    {"inverse", inverse},
    {"inverse_form", inverse_form},
    {"least_squares", least_squares},
    {"log_determinant", log_determinant},
    {"pseudo_inverse", pseudo_inverse},
    {"pseudo_inverse_of_hermitian", pseudo_inverse_of_hermitian},
    {"qr", qr},
    {"qr_raw", qr_raw},
    {"refined_inverse", refined_inverse},
    {"refined_log_determinant", refined_log_determinant},
    {"refined_solve", refined_solve},
    {"solve", solve},
    {"solve_triangular", solve_triangular},
    {"svd", svd},
};

/* By its name; NULL: there is none. */
static decompose *decomposition_named(const char *name)
{
    for (size_t i = 0; i < sizeof DECOMPOSITIONS / sizeof *DECOMPOSITIONS; i++)
        if (!strcmp(DECOMPOSITIONS[i].name, name))
            return DECOMPOSITIONS[i].function;
    return NULL;
}
#endif
