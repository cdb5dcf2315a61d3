/* Inverses, systems and logarithms of determinants of real matrices to the last digits: natively
   what `symcomp/ops/stable_linalg.py` says. */
#ifndef SYMCOMP_REFINED_H
#define SYMCOMP_REFINED_H

#include "factored.h"

/* As there. */
enum { LARGEST_REFINED = 64 };

/* log 2, cut after 32 bits, so that its products with exponents are exact, and the rest. */
static const double LN2_HIGH = 0x1.62e42feep-1, LN2_LOW = 0x1.a39ef35793c76p-33;

static int refined_solve(const struct decomposition *d, struct arena *arena)
{
    const int kind = d->kind;
    const int64_t n = d->given[0].rows, k = d->found[0].columns;
    const int64_t bytes = n * k * (int64_t)sizeof(double);
    const struct stack *z = &d->found[0];
    struct factored f;
    struct decomposition plain = *d;
    if (is_complex(kind) || n * k > LARGEST_REFINED * LARGEST_REFINED)
        return solve(d, arena);
    take_factored(arena, n, &f);
    double *b = take(arena, bytes), *x = take(arena, bytes), *rest = take(arena, bytes);
    double *few = take(arena, ROOM_TO_REFINE * bytes);
    int64_t *powers = take(arena, k * (int64_t)sizeof(int64_t));
    NEEDS_MEMORY;
    for (int64_t i = 0; i < d->count; i++) {
        gather(d, 0, i, f.scaled.whole, n);
        gather_sides(d, i, b);
        if (!all_finite(DOUBLE, f.scaled.whole, n * n) || !all_finite(DOUBLE, b, n * k)) {
            plain.count = 1;
            for (int j = 0; j < d->n_given; j++)
                plain.given[j].data = d->given[j].data + i * d->given[j].each;
            plain.found[0].data = result_at(d, 0, i);
            int outcome = call_decomposition(solve, &plain);
            if (outcome != FOUND)
                return outcome;
            continue;
        }
        factor(&f);
        if (!f.sign)
            return FAILED;
        scale_columns(n, k, b, f.rows, powers);
        refine(&f, k, b, few, x, rest);
        for (int64_t row = 0; row < n; row++)
            for (int64_t j = 0; j < k; j++)
                write_real(stored(d), result_at(d, 0, i) + row * z->down + j * z->along, 0,
                           shifted(x[j * n + row], powers[j] - f.columns[row]));
    }
    return FOUND;
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

static int refined_log_determinant(const struct decomposition *d, struct arena *arena)
{
    const int kind = d->kind;
    const int64_t n = d->given[0].rows, bytes = n * n * (int64_t)sizeof(double);
    struct factored f;
    struct parts lower;
    if (is_complex(kind) || n > LARGEST_REFINED)
        return log_determinant(d, arena);
    take_factored(arena, n, &f);
    take_parts(arena, n, n, &lower);
    double *upper = take(arena, bytes), *few = take(arena, 5 * bytes);
    double *change = take(arena, bytes), sign[2], logarithm;
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
    return FOUND;
}

/* x^T a^-1 y: the inputs are a, x, y. */
static int inverse_form(const struct decomposition *d, struct arena *arena)
{
    const int kind = d->kind;
    const int64_t n = d->given[0].rows, bytes = n * (int64_t)sizeof(double);
    struct factored f;
    struct parts row;
    int64_t powers[2];
    double form, less, nothing = 0;
    if (is_complex(kind))
        return FAILED;
    take_factored(arena, n, &f);
    take_parts(arena, 1, n, &row);
    double *y = take(arena, bytes), *v = take(arena, bytes), *rest = take(arena, bytes);
    double *few = take(arena, ROOM_TO_REFINE * bytes);
    NEEDS_MEMORY;
    gather(d, 0, 0, f.scaled.whole, n);
    gather(d, 1, 0, row.whole, n);
    gather(d, 2, 0, y, n);
    if (!all_finite(DOUBLE, f.scaled.whole, n * n) || !all_finite(DOUBLE, row.whole, n) ||
        !all_finite(DOUBLE, y, n))
        return FAILED;
    factor(&f);
    if (!f.sign)
        return FAILED;
    scale_columns(n, 1, row.whole, f.columns, &powers[0]);
    scale_columns(n, 1, y, f.rows, &powers[1]);
    refine(&f, 1, y, few, v, rest);
    split_parts(&row);
    multiply_doubles(1, n, 1, row.whole, rest, &form);
    residual(&row, 1, &nothing, v, few, &less);
    write_real(stored(d), d->found[0].data, 0, shifted(form - less, powers[0] + powers[1]));
    return FOUND;
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
    {"inverse_form", inverse_form},
    {"least_squares", least_squares},
    {"log_determinant", log_determinant},
    {"pseudo_inverse", pseudo_inverse},
    {"pseudo_inverse_of_hermitian", pseudo_inverse_of_hermitian},
    {"qr", qr},
    {"qr_raw", qr_raw},
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
