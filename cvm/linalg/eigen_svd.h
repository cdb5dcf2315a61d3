/* Decompositions into orthogonal factors, by LAPACK: QR, eigenvalues, singular values, and
   functions of these. */
#ifndef SYMCOMP_EIGEN_SVD_H
#define SYMCOMP_EIGEN_SVD_H

#include "decompositions.h"

#define MIN(x, y) ((x) < (y) ? (x) : (y))
#define MAX(x, y) ((x) > (y) ? (x) : (y))

/* Memory for what a routine says that it needs. */
struct workspace {
    void *work, *reals, *integers;
    blas_int length, reals_length, integers_length;
};

/* -- QR */

/* The elements of workspace for a factorization with ``n`` columns: LAPACK takes blocks of 32 columns.
   To ask it takes as long as to factorize a matrix of four rows. */
static blas_int qr_workspace(blas_int n)
{
    return 64 * (n + 1);
}

/* Factors of matrices of m rows and n columns, in place. `order`: the columns in the order that pivots
   give them, counted from 1; or NULL, without pivots. */
struct qr {
    int kind;
    blas_int m, n, length;
    void *a, *tau, *work, *order, *reals;
};

/* `columns`: as many as `a` has room for. */
static void prepare_qr(struct arena *arena, const struct decomposition *d, int64_t columns,
                       struct qr *x)
{
    const int64_t size = size_of(d->kind);
    *x = (struct qr){.kind = d->kind, .m = d->given[0].rows, .n = d->given[0].columns};
    x->length = qr_workspace(columns);
    x->a = take(arena, x->m * columns * size);
    x->tau = take(arena, MIN(x->m, x->n) * size);
    x->work = take(arena, x->length * size);
    if (d->option) {
        x->order = take_integers(arena, x->n);
        x->reals = is_complex(d->kind) ? take(arena, 2 * x->n * real_size(d->kind)) : NULL;
    }
}

static blas_int factor_qr(const struct qr *x)
{
    blas_int m = x->m, n = x->n, length = x->length, info = 0;
    if (x->order == NULL) {
        CALL(geqrf, GEQRF, x->kind)(&m, &n, x->a, &m, x->tau, x->work, &length, &info);
        return info;
    }
    /* 0: the column may be moved. */
    memset(x->order, 0, (size_t)n * sizeof(int64_t));
    if (is_complex(x->kind))
        CALL(zgeqp3, GEQP3, x->kind)
        (&m, &n, x->a, &m, x->order, x->tau, x->work, &length, x->reals, &info);
    else
        CALL(dgeqp3, GEQP3, x->kind)
        (&m, &n, x->a, &m, x->order, x->tau, x->work, &length, &info);
    return info;
}

/* The order of the columns, counted from 0, as result `which`. */
static void scatter_order(const struct decomposition *d, int which, int64_t i, const struct qr *x)
{
    for (int64_t j = 0; x->order != NULL && j < x->n; j++)
        ((int64_t *)result_at(d, which, i))[j] = element_of(x->order, j) - 1;
}

/* h in the order of LAPACK, which is its transpose in rows, and tau. `option`: with pivots, and the
   order of the columns. */
static int qr_raw(const struct decomposition *d, struct arena *arena)
{
    const int kind = d->kind;
    struct qr x;
    prepare_qr(arena, d, d->given[0].columns, &x);
    NEEDS_MEMORY;
    for (int64_t i = 0; i < d->count; i++) {
        gather(d, 0, i, x.a, x.m);
        if (factor_qr(&x))
            return FAILED;
        convert_matrix(kind, stored(d), x.m * x.n, 1, x.a, size_of(kind), 0, result_at(d, 0, i),
                       size_of(stored(d)), 0);
        scatter(d, 1, i, x.tau, MIN(x.m, x.n));
        scatter_order(d, 2, i, &x);
    }
    return FOUND;
}

/* q and r; how many columns q has is seen from it. `option` as for qr_raw. */
static int qr(const struct decomposition *d, struct arena *arena)
{
    const int kind = d->kind;
    blas_int info = 0, wide = d->found[0].columns;
    struct qr x;
    prepare_qr(arena, d, MAX(d->given[0].columns, wide), &x);
    NEEDS_MEMORY;
    blas_int m = x.m, k = MIN(x.m, x.n);
    const struct stack *r = &d->found[1];
    for (int64_t i = 0; i < d->count; i++) {
        gather(d, 0, i, x.a, m);
        if (factor_qr(&x))
            return FAILED;
        scatter(d, 1, i, x.a, m);
        clear_triangle(r->along, 0, r->rows, r->columns, result_at(d, 1, i), r->down);
        scatter_order(d, 2, i, &x);
        CALL(orgqr, ORGQR, kind)(&m, &wide, &k, x.a, &m, x.tau, x.work, &x.length, &info);
        if (info)
            return FAILED;
        scatter(d, 0, i, x.a, m);
    }
    return FOUND;
}

/* -- eigenvalues */

static void call_eigh(int kind, int vectors, int lower, blas_int n, void *a, void *w,
                      struct workspace *s, blas_int *info)
{
    const char *what = vectors ? "V" : "N", *triangle = lower ? "L" : "U";
    if (is_complex(kind))
        CALL(heevd, SYEVD, kind)
        (what, triangle, &n, a, &n, w, s->work, &s->length, s->reals, &s->reals_length,
         s->integers, &s->integers_length, info);
    else
        CALL(syevd, SYEVD, kind)
        (what, triangle, &n, a, &n, w, s->work, &s->length, s->integers, &s->integers_length,
         info);
}

static void workspace_of_eigh(struct arena *arena, int kind, int vectors, int64_t n,
                              struct workspace *s)
{
    double few[2], reals[1];
    int64_t integers[1] = {0};
    blas_int info = 0;
    *s = (struct workspace){few, reals, integers, -1, -1, -1};
    call_eigh(kind, vectors, 1, n, NULL, NULL, s, &info);
    s->length = length_asked(kind, few);
    s->reals_length = is_complex(kind) ? (blas_int)read_real(kind, reals, 0) : 0;
    s->integers_length = element_of(integers, 0);
    s->work = take(arena, s->length * size_of(kind));
    s->reals = take(arena, s->reals_length * real_size(kind));
    s->integers = take_integers(arena, s->integers_length);
}

/* w, and v if `option`. */
static int eigh(const struct decomposition *d, struct arena *arena)
{
    const int kind = d->kind;
    const int64_t size = size_of(kind);
    blas_int info = 0;
    const int64_t n = d->given[0].rows;
    struct workspace space;
    void *a = take(arena, n * n * size), *w = take(arena, n * real_size(kind));
    workspace_of_eigh(arena, kind, d->option, n, &space);
    NEEDS_MEMORY;
    for (int64_t i = 0; i < d->count; i++) {
        gather(d, 0, i, a, n);
        call_eigh(kind, d->option, d->lower, n, a, w, &space, &info);
        if (info)
            return FAILED;
        scatter_reals(d, 0, i, w);
        if (d->option)
            scatter(d, 1, i, a, n);
    }
    return FOUND;
}

static void call_eig(int kind, blas_int n, void *a, void *w, void *v, struct workspace *s,
                     blas_int *info)
{
    blas_int one = 1;
    if (is_complex(kind))
        CALL(zgeev, GEEV, kind)
        ("N", "V", &n, a, &n, w, NULL, &one, v, &n, s->work, &s->length, s->reals, info);
    else
        /* The imaginary parts of w follow the real ones. */
        CALL(dgeev, GEEV, kind)
        ("N", "V", &n, a, &n, w, (char *)w + n * size_of(kind), NULL, &one, v, &n, s->work,
         &s->length, info);
}

/* Eigenvalues of real matrices from their parts; two columns of v are the parts of two conjugate vectors. */
static void scatter_pairs(const struct decomposition *d, int64_t i, const void *parts,
                          const void *columns)
{
    const int64_t n = d->given[0].rows;
    const struct stack *v = &d->found[1];
    const int kind = d->kind, to = stored(d) + SINGLE_COMPLEX;
    for (int64_t j = 0; j < n; j++) {
        double im = read_real(kind, parts, n + j);
        write_number(to, result_at(d, 0, i), j, read_real(kind, parts, j), im);
        int64_t first = im < 0 ? j - 1 : j;
        for (int64_t k = 0; k < n; k++) {
            double re = read_real(kind, columns, first * n + k), turn = 0;
            if (im != 0)
                turn = read_real(kind, columns, (first + 1) * n + k);
            write_number(to, result_at(d, 1, i) + k * v->down + j * v->along, 0, re,
                         im < 0 ? -turn : turn);
        }
    }
}

static int eig(const struct decomposition *d, struct arena *arena)
{
    const int kind = d->kind;
    const int64_t size = size_of(kind);
    blas_int info = 0;
    const int64_t n = d->given[0].rows;
    double few[2], reals[1];
    struct workspace s = {few, reals, NULL, -1, 0, 0};
    void *a = take(arena, n * n * size), *columns = take(arena, n * n * size);
    void *values = take(arena, 2 * n * size);
    call_eig(kind, n, a, values, columns, &s, &info);
    s.length = length_asked(kind, few);
    s.work = take(arena, s.length * size);
    s.reals = take(arena, 2 * n * real_size(kind));
    NEEDS_MEMORY;
    for (int64_t i = 0; i < d->count; i++) {
        gather(d, 0, i, a, n);
        if (!all_finite(kind, a, n * n))
            return FAILED;
        call_eig(kind, n, a, values, columns, &s, &info);
        if (info)
            return FAILED;
        if (!is_complex(kind)) {
            scatter_pairs(d, i, values, columns);
            continue;
        }
        scatter(d, 0, i, values, n);
        scatter(d, 1, i, columns, n);
    }
    return FOUND;
}

/* -- singular values */

enum { VALUES = 0, SHORT_SIDES = 1, WHOLE_SIDES = 2 };

/* Singular values of matrices of m rows and n columns, and where they are left. */
struct svd {
    int kind, sides;
    blas_int m, n, rows_of_v;
    void *a, *s, *u, *v;
    struct workspace space;
};

static void call_svd(struct svd *x, blas_int *info)
{
    static const char *JOBS[] = {"N", "S", "A"};
    struct workspace *s = &x->space;
    if (is_complex(x->kind))
        CALL(zgesdd, GESDD, x->kind)
        (JOBS[x->sides], &x->m, &x->n, x->a, &x->m, x->s, x->u, &x->m, x->v, &x->rows_of_v,
         s->work, &s->length, s->reals, s->integers, info);
    else
        CALL(dgesdd, GESDD, x->kind)
        (JOBS[x->sides], &x->m, &x->n, x->a, &x->m, x->s, x->u, &x->m, x->v, &x->rows_of_v,
         s->work, &s->length, s->integers, info);
}

static void prepare_svd(struct arena *arena, int kind, int sides, int64_t m, int64_t n,
                        struct svd *x)
{
    const int64_t k = MIN(m, n), size = size_of(kind);
    const int64_t columns_of_u = sides == WHOLE_SIDES ? m : k;
    double few[2], reals[1];
    int64_t integers[1];
    blas_int info = 0;
    *x = (struct svd){.kind = kind, .sides = sides, .m = m, .n = n};
    x->rows_of_v = sides == WHOLE_SIDES ? n : k;
    x->a = take(arena, m * n * size);
    x->s = take(arena, k * real_size(kind));
    x->u = sides ? take(arena, m * columns_of_u * size) : NULL;
    x->v = sides ? take(arena, x->rows_of_v * n * size) : NULL;
    x->space = (struct workspace){few, reals, integers, -1, 0, 0};
    call_svd(x, &info);
    x->space.length = length_asked(kind, few);
    x->space.work = take(arena, x->space.length * size);
    /* The length that the documentation gives, which differs between versions for values alone. */
    if (is_complex(kind))
        x->space.reals = take(arena, k * MAX(5 * k + 7, 2 * MAX(m, n) + 2 * k + 1) *
                                         real_size(kind));
    x->space.integers = take_integers(arena, 8 * k);
}

/* u, s, vh; or s alone. `option`: which sides. */
static int svd(const struct decomposition *d, struct arena *arena)
{
    const int kind = d->kind;
    blas_int info = 0;
    struct svd x;
    const int64_t m = d->given[0].rows, n = d->given[0].columns;
    prepare_svd(arena, kind, d->option, m, n, &x);
    NEEDS_MEMORY;
    for (int64_t i = 0; i < d->count; i++) {
        gather(d, 0, i, x.a, m);
        call_svd(&x, &info);
        if (info)
            return FAILED;
        scatter_reals(d, d->option == VALUES ? 0 : 1, i, x.s);
        if (d->option == VALUES)
            continue;
        scatter(d, 0, i, x.u, m);
        scatter(d, 2, i, x.v, x.rows_of_v);
    }
    return FOUND;
}

/* The rows (columns, if `across`) of a matrix in columns times numbers. */
static void scale(int kind, int across, int64_t rows, int64_t columns, void *x, const double *by)
{
    double z[2];
    for (int64_t j = 0; j < columns; j++)
        for (int64_t i = 0; i < rows; i++) {
            read_number(kind, x, j * rows + i, z);
            multiply_number(z, by[2 * (across ? j : i)], by[2 * (across ? j : i) + 1]);
            write_number(kind, x, j * rows + i, z[0], z[1]);
        }
}

/* 1 / s, and 0 for values that count as 0. */
static void inverses(int kind, int64_t k, const void *s, double rcond, double *by)
{
    double largest = 0;
    for (int64_t i = 0; i < k; i++) {
        double x = fabs(read_real(kind, s, i));
        largest = x > largest || x != x ? x : largest;
    }
    for (int64_t i = 0; i < k; i++) {
        double x = read_real(kind, s, i);
        by[2 * i] = fabs(x) > rcond * largest ? 1 / x : 0;
        by[2 * i + 1] = 0;
    }
}

/* v diag(1 / s) u^H. */
static int pseudo_inverse(const struct decomposition *d, struct arena *arena)
{
    const int kind = d->kind;
    const int64_t size = size_of(kind);
    blas_int info = 0;
    struct svd x;
    const int64_t m = d->given[0].rows, n = d->given[0].columns, k = MIN(m, n);
    prepare_svd(arena, kind, SHORT_SIDES, m, n, &x);
    double *by = take(arena, 2 * k * (int64_t)sizeof(double));
    void *z = take(arena, n * m * size);
    NEEDS_MEMORY;
    for (int64_t i = 0; i < d->count; i++) {
        gather(d, 0, i, x.a, m);
        call_svd(&x, &info);
        if (info)
            return FAILED;
        inverses(kind, k, x.s, d->rcond, by);
        scale(kind, 0, k, n, x.v, by);
        product_of(kind, "C", "C", n, k, m, x.v, k, x.u, m, z);
        scatter(d, 0, i, z, n);
    }
    return FOUND;
}

/* The same of Hermitian matrices: v diag(1 / w) v^H. */
static int pseudo_inverse_of_hermitian(const struct decomposition *d, struct arena *arena)
{
    const int kind = d->kind;
    const int64_t size = size_of(kind);
    blas_int info = 0;
    const int64_t n = d->given[0].rows;
    struct workspace space;
    void *a = take(arena, n * n * size), *w = take(arena, n * real_size(kind));
    void *v = take(arena, n * n * size), *z = take(arena, n * n * size);
    double *by = take(arena, 2 * n * (int64_t)sizeof(double));
    workspace_of_eigh(arena, kind, 1, n, &space);
    NEEDS_MEMORY;
    for (int64_t i = 0; i < d->count; i++) {
        gather(d, 0, i, a, n);
        call_eigh(kind, 1, 1, n, a, w, &space, &info);
        if (info)
            return FAILED;
        memcpy(v, a, (size_t)(n * n * size));
        inverses(kind, n, w, d->rcond, by);
        scale(kind, 1, n, n, v, by);
        product_of(kind, "N", "C", n, n, n, v, n, a, n, z);
        scatter(d, 0, i, z, n);
    }
    return FOUND;
}

/* adj(x) = det(u vh) vh^H diag(p) u^H, p_i being the product of the other singular values. */
static int adjugate(const struct decomposition *d, struct arena *arena)
{
    const int kind = d->kind;
    const int64_t size = size_of(kind);
    blas_int info = 0;
    struct svd x;
    const int64_t n = d->given[0].rows;
    prepare_svd(arena, kind, WHOLE_SIDES, n, n, &x);
    void *z = take(arena, n * n * size), *pivots = take_integers(arena, n);
    double *by = take(arena, 2 * n * (int64_t)sizeof(double));
    NEEDS_MEMORY;
    for (int64_t i = 0; i < d->count; i++) {
        gather(d, 0, i, x.a, n);
        if (!all_finite(kind, x.a, n * n)) {
            fill_with_nan(stored(d), result_at(d, 0, i), n * n);
            continue;
        }
        call_svd(&x, &info);
        if (info)
            return FAILED;
        memcpy(x.a, x.u, (size_t)(n * n * size));
        struct scaled u = determinant_of(kind, n, x.a, pivots);
        memcpy(x.a, x.v, (size_t)(n * n * size));
        struct scaled v = determinant_of(kind, n, x.a, pivots);
        multiply_number(u.z, v.z[0], v.z[1]);
        double before = unscaled(1, u.power + v.power), after = 1;
        for (int64_t j = 0; j < n; before *= read_real(kind, x.s, j++)) {
            /* Rows of vh are scaled, of which the conjugates are multiplied. */
            by[2 * j] = u.z[0] * before;
            by[2 * j + 1] = -u.z[1] * before;
        }
        for (int64_t j = n - 1; j >= 0; after *= read_real(kind, x.s, j--))
            by[2 * j] *= after, by[2 * j + 1] *= after;
        scale(kind, 0, n, n, x.v, by);
        product_of(kind, "C", "C", n, n, n, x.v, n, x.u, n, z);
        scatter(d, 0, i, z, n);
    }
    return FOUND;
}

/* -- least squares */

/* A system of m rows and n columns, with k right sides. */
struct lstsq {
    int kind;
    blas_int m, n, k, tall, rank;
    void *a, *b, *s;
    double rcond[1];
    struct workspace space;
};

static void call_lstsq(struct lstsq *x, blas_int *info)
{
    struct workspace *s = &x->space;
    if (is_complex(x->kind))
        CALL(zgelsd, GELSD, x->kind)
        (&x->m, &x->n, &x->k, x->a, &x->m, x->b, &x->tall, x->s, x->rcond, &x->rank, s->work,
         &s->length, s->reals, s->integers, info);
    else
        CALL(dgelsd, GELSD, x->kind)
        (&x->m, &x->n, &x->k, x->a, &x->m, x->b, &x->tall, x->s, x->rcond, &x->rank, s->work,
         &s->length, s->integers, info);
}

static void prepare_lstsq(struct arena *arena, const struct decomposition *d, struct lstsq *x)
{
    const int kind = d->kind;
    const int64_t size = size_of(kind);
    double few[2], reals[1] = {0};
    int64_t integers[1] = {0};
    blas_int info = 0;
    *x = (struct lstsq){.kind = kind, .m = d->given[0].rows, .n = d->given[0].columns};
    x->k = d->given[1].columns;
    x->tall = MAX(x->m, x->n);
    x->a = take(arena, x->m * x->n * size);
    x->b = take(arena, x->tall * x->k * size);
    x->s = take(arena, MIN(x->m, x->n) * real_size(kind));
    write_real(kind, x->rcond, 0, d->rcond);
    x->space = (struct workspace){few, reals, integers, -1, 0, 0};
    call_lstsq(x, &info);
    x->space.length = length_asked(kind, few);
    x->space.work = take(arena, x->space.length * size);
    x->space.reals = take(arena, (int64_t)read_real(kind, reals, 0) * real_size(kind));
    x->space.integers = take_integers(arena, element_of(integers, 0));
}

/* Solve one system: z, the squares of the lengths of b - a z, the rank, the singular values. */
static int least_squares(const struct decomposition *d, struct arena *arena)
{
    const int kind = d->kind;
    blas_int info = 0;
    struct lstsq x;
    double z[2];
    prepare_lstsq(arena, d, &x);
    NEEDS_MEMORY;
    gather(d, 0, 0, x.a, x.m);
    gather(d, 1, 0, x.b, x.tall);
    call_lstsq(&x, &info);
    if (info)
        return FAILED;
    scatter(d, 0, 0, x.b, x.tall);
    for (int64_t j = 0; j < x.k; j++) {
        double total = 0;
        for (int64_t i = x.n; i < x.m; i++) {
            read_number(kind, x.b, j * x.tall + i, z);
            total += z[0] * z[0] + z[1] * z[1];
        }
        write_real(stored(d), d->found[1].data, j, total);
    }
    *(int64_t *)d->found[2].data = x.rank;
    scatter_reals(d, 3, 0, x.s);
    return FOUND;
}
#endif
