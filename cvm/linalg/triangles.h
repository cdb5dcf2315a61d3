/* Triangular systems, and decompositions of positive definite matrices. */
#ifndef SYMCOMP_TRIANGLES_H
#define SYMCOMP_TRIANGLES_H

#include "decompositions.h"
#include "row_products.h"

/* Whether triangles of n rows are solved and found by row_products.h. */
static inline int is_small(int kind, int64_t n)
{
    return n <= LARGEST_SMALL && !is_complex(kind) && symcomp_row_product_level() > 0;
}

/* The factor that lies in rows is found in a copy with room beside each row. */
static int small_cholesky(const struct decomposition *d, struct arena *arena)
{
    const struct stack *x = &d->given[0];
    const int kind = d->kind, level = symcomp_row_product_level();
    const int64_t n = x->rows, size = size_of(kind), own = size_of(stored(d));
    /* An odd number of lines of the cache, so that columns are in different ones. */
    const int64_t in_line = 64 / size, ld = ((n + BESIDE_ROW) / in_line | 1) * in_line + 2 * in_line;
    char *u = take(arena, n * ld * size);
    NEEDS_MEMORY;
    for (int64_t i = 0; i < n; i++)
        memset(u + (i * ld + n) * size, 0, (size_t)((ld - n) * size));
    for (int64_t i = 0; i < d->count; i++) {
        char *z = result_at(d, 0, i);
        int is_positive;
        convert_matrix(stored(d), kind, n, n, x->data + i * x->each, d->lower ? x->along : x->down,
                       d->lower ? x->down : x->along, u, ld * size, size);
        if (kind == SINGLE)
            symcomp_factor_f(level, n, (float *)u, ld, &is_positive);
        else
            symcomp_factor_d(level, n, (double *)u, ld, &is_positive);
        if (!is_positive && !d->option)
            return FAILED;
        if (!is_positive) {
            fill_with_nan(stored(d), z, n * n);
            continue;
        }
        convert_matrix(kind, stored(d), n, n, u, ld * size, size, z, d->lower ? own : n * own,
                       d->lower ? n * own : own);
        clear_triangle(own, d->lower, n, n, z, n * own);
    }
    return FOUND;
}

/* In columns, what lies in rows is the transpose: its upper triangle u with u^H u = x^T is that of
   which the conjugate transpose, read in rows, is wanted. With `option`, NaN for no decomposition. */
static int cholesky(const struct decomposition *d, struct arena *arena)
{
    const int kind = d->kind;
    const int64_t size = size_of(kind);
    blas_int info = 0;
    const struct stack *x = &d->given[0];
    blas_int n = x->rows;
    if (n >= FEWEST_FACTORED && is_small(kind, n))
        return small_cholesky(d, arena);
    void *copy = d->wide ? take(arena, n * n * size) : NULL;
    NEEDS_MEMORY;
    for (int64_t i = 0; i < d->count; i++) {
        char *z = result_at(d, 0, i), *to = d->wide ? copy : z;
        convert_matrix(stored(d), kind, n, n, x->data + i * x->each, x->down, x->along, to,
                       n * size, size);
        CALL(potrf, POTRF, kind)(d->lower ? "U" : "L", &n, to, &n, &info);
        if (info && !d->option)
            return FAILED;
        clear_triangle(size, d->lower, n, n, to, n * size);
        if (d->wide)
            convert_matrix(kind, stored(d), n, n, to, n * size, size, z, n * size_of(stored(d)),
                           size_of(stored(d)));
        if (info)
            fill_with_nan(stored(d), z, n * n);
    }
    return FOUND;
}

/* Whether rows or columns of square matrices lie in one piece, so that BLAS takes them. */
static int lies_in_one_piece(const struct stack *x, int64_t size, blas_int *ld, int *in_rows)
{
    const int64_t step = x->along == size ? x->down : x->along;
    if ((x->along != size && x->down != size) || step % size || step / size < x->rows)
        return 0;
    *in_rows = x->along == size;
    *ld = step / size;
    return 1;
}

/* Solve a system with a small triangular matrix, whose elements lie `down` and `along` apart, in place of
   the rows b. An upper triangle read backwards is a lower one. */
static void eliminate_small_triangle(const struct decomposition *d, int64_t n, int64_t k,
                                     const void *a, int64_t down, int64_t along, void *b)
{
    const int level = symcomp_row_product_level();
    const int64_t from = d->lower ? 0 : (n - 1) * (down + along), to = d->lower ? 0 : (n - 1) * k;
    const int64_t ld = d->lower ? k : -k;
    down = d->lower ? down : -down;
    along = d->lower ? along : -along;
    if (d->kind == SINGLE)
        symcomp_solve_triangle_f(level, n, k, (const float *)a + from, down, along, d->option,
                                 (float *)b + to, ld);
    else
        symcomp_solve_triangle_d(level, n, k, (const double *)a + from, down, along, d->option,
                                 (double *)b + to, ld);
}

/* Solve a system with a triangular matrix in place of b. Several columns, in row-major order,
   are the transpose of the solution: then the matrix stands on the right, transposed. */
static void eliminate_triangle(const struct decomposition *d, int in_rows, blas_int n, blas_int k,
                               void *a, blas_int ld, void *b)
{
    const char *triangle = d->lower != in_rows ? "L" : "U", *diagonal = d->option ? "U" : "N";
    blas_int step = 1;
    if (k > 1 && is_small(d->kind, n))
        eliminate_small_triangle(d, n, k, a, in_rows ? ld : 1, in_rows ? 1 : ld, b);
    else if (k == 1)
        CALL(trsv, TRSV, d->kind)(triangle, in_rows ? "T" : "N", diagonal, &n, a, &ld, b, &step);
    else
        CALL(trsm, TRSM, d->kind)
        ("R", triangle, in_rows ? "N" : "T", diagonal, &k, &n,
         is_single(d->kind) ? (void *)ONES_32 : (void *)ONES, a, &ld, b, &k);
}

/* z with a z = b, a triangular. `option`: its diagonal is not read, but ones. */
static int solve_triangular(const struct decomposition *d, struct arena *arena)
{
    const struct stack *a = &d->given[0], *b = &d->given[1];
    const int64_t size = size_of(d->kind), n = a->rows, k = b->columns;
    blas_int ld = n;
    int in_rows = 0, as_it_lies = lies_in_one_piece(a, size, &ld, &in_rows);
    void *copy = as_it_lies ? NULL : take(arena, n * n * size);
    NEEDS_MEMORY;
    for (int64_t i = 0; i < d->count; i++) {
        char *from = a->data + i * a->each, *to = result_at(d, 0, i);
        double diagonal[2];
        for (int64_t j = 0; j < n && !d->option; j++) {
            read_number(d->kind, from + j * (a->down + a->along), 0, diagonal);
            if (diagonal[0] == 0 && diagonal[1] == 0)
                return FAILED;
        }
        if (!as_it_lies)
            gather(d, 0, i, from = copy, n);
        copy_rectangle((int)size, n, k, to, k * size, size, b->data + i * b->each, b->down,
                       b->along);
        eliminate_triangle(d, in_rows, n, k, from, ld, to);
    }
    return FOUND;
}
#endif
