/* Inverses, systems and logarithms of determinants of real matrices to the last digits, as the ops of
   `symcomp/ops/linalg/stable_linalg.py` define them. */
#ifndef SYMCOMP_REFINED_SOLVE_H
#define SYMCOMP_REFINED_SOLVE_H

#include "corrected_lu.h"

/* Corrections cost a few products of matrices: larger systems keep LAPACK's result. */
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
    double *few = take(arena, room_to_refine(n, k));
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
        refine(&f, k, b, NEGLIGIBLE, few, x, rest);
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

/* log |det (exp(x) l u)|, with the powers of two that were taken out; of a large or undefined x no digit
   is certain. */
static double log_of_factors(const struct factored *f, double x)
{
    const double grown = fabs(x) < 0.5 ? expm1(x) : 0, start = 1 + grown;
    int e;
    double high = frexp(start, &e), low = ldexp(grown - (start - 1), -e);
    int64_t power = e;
    for (int64_t i = 0; i < f->n; i++) {
        double factor = frexp(fabs(f->lu[i * (f->n + 1)]), &e), product = high * factor;
        power += e + f->rows[i] + f->columns[i];
        low = fma(high, factor, -product) + low * factor;
        high = frexp(product, &e);
        low = ldexp(low, -e);
        power += e;
    }
    return log_of(high, low, power);
}

static double trace(int64_t n, const double *x)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += x[i * (n + 1)];
    return sum;
}

/* The largest sum of moduli in a row. */
static double norm(int64_t n, const double *x)
{
    double largest = 0;
    for (int64_t i = 0; i < n; i++) {
        double sum = 0;
        for (int64_t j = 0; j < n; j++)
            sum += fabs(x[j * n + i]);
        if (!(sum <= largest))
            largest = sum;
    }
    return largest;
}

/* -log det(1 - x) = trace(x) + trace(x^2) / 2 + ...; `few` has room for two such x. */
static double minus_log_det(int64_t n, double *x, double *few, double small_enough)
{
    const double factor = norm(n, x);
    double sum = trace(n, x), bound = (double)n * factor, *power = few, *next = few + n * n;
    if (!(factor <= 0.5))
        return 0; /* the series may not converge */
    memcpy(power, x, (size_t)(n * n) * sizeof(double));
    for (int k = 2; k < MOST_TERMS; k++) {
        bound *= factor;
        if (bound <= small_enough)
            break;
        multiply_doubles(n, n, n, power, x, next);
        sum += trace(n, next) / k;
        double *kept = power;
        power = next, next = kept;
    }
    return sum;
}

/* Memory of the logarithm of a determinant. */
struct room {
    struct slices lower;
    double *upper, *ordered, *errors, *change, *rest, *few;
};

/* log |det|; the scaled matrix is l u (1 + e), but for order, and log det(1 + e) = trace(e) + O(e^2).
   */
static double refined_log(struct factored *f, struct room *room)
{
    const int64_t n = f->n;
    double *lower = room->lower.whole;
    for (int64_t j = 0; j < n; j++)
        for (int64_t i = 0; i < n; i++) {
            const int64_t at = j * n + i;
            lower[at] = i > j ? f->lu[at] : i == j;
            room->upper[at] = i <= j ? f->lu[at] : 0;
        }
    room->lower.is_sliced = 0;
    reorder(f, n, f->scaled.whole, room->ordered);
    residual(&room->lower, n, room->ordered, room->upper, NULL, room->few, room->errors);
    memcpy(room->change, room->errors, (size_t)(n * n) * sizeof(double));
    eliminate(f, n, room->change);
    const double size = norm(n, room->change), found = log_of_factors(f, trace(n, room->change));
    const double small_enough = NEGLIGIBLE * fabs(found);
    if (!((double)n * size * size > small_enough))
        return found;
    /* The rows of the errors where those of the scaled matrix are. */
    for (int64_t j = 0; j < n; j++)
        for (int64_t i = 0; i < n; i++)
            room->ordered[j * n + f->order[i]] = room->errors[j * n + i];
    refine(f, n, room->ordered, NEGLIGIBLE, room->few, room->change, room->rest);
    return log_of_factors(f, minus_log_det(n, room->change, room->few, small_enough));
}

static int refined_log_determinant(const struct decomposition *d, struct arena *arena)
{
    const int kind = d->kind;
    const int64_t n = d->given[0].rows, bytes = n * n * (int64_t)sizeof(double);
    struct factored f;
    struct room room;
    double sign[2], logarithm;
    if (is_complex(kind) || n > LARGEST_REFINED)
        return log_determinant(d, arena);
    take_factored(arena, n, &f);
    take_slices(arena, n, n, &room.lower);
    double **matrices[] = {&room.upper, &room.ordered, &room.errors, &room.change, &room.rest};
    for (size_t i = 0; i < sizeof matrices / sizeof *matrices; i++)
        *matrices[i] = take(arena, bytes);
    room.few = take(arena, room_to_refine(n, n));
    NEEDS_MEMORY;
    for (int64_t i = 0; i < d->count; i++) {
        gather(d, 0, i, f.scaled.whole, n);
        if (all_finite(DOUBLE, f.scaled.whole, n * n)) {
            factor(&f);
            sign[0] = f.sign;
            for (int64_t j = 0; f.sign && j < n; j++)
                sign[0] *= f.lu[j * (n + 1)] < 0 ? -1 : 1;
            logarithm = f.sign ? refined_log(&f, &room) : -INFINITY;
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
    struct slices row;
    int64_t powers[2];
    double less, nothing = 0;
    if (is_complex(kind))
        return FAILED;
    take_factored(arena, n, &f);
    take_slices(arena, 1, n, &row);
    double *y = take(arena, bytes), *v = take(arena, bytes), *rest = take(arena, bytes);
    double *few = take(arena, room_to_refine(n, 1));
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
    refine(&f, 1, y, 0, few, v, rest);
    residual(&row, 1, &nothing, v, rest, few, &less);
    write_real(stored(d), d->found[0].data, 0, shifted(-less, powers[0] + powers[1]));
    return FOUND;
}
#endif
