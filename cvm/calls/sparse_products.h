/* Products of sparse matrices with dense ones, and at patterns; sums of segments of rows. */
#ifndef SYMCOMP_SPARSE_PRODUCTS_H
#define SYMCOMP_SPARSE_PRODUCTS_H

#include "sparse.h"

static int run_sparse_dot(const void *params, Frame *frame)
{
    const SparseCall *c = (const SparseCall *)params;
    int64_t cuts[MOST_SHARES + 1];
    SparseWork w = {0};
    if (!sparse_of(frame, c, &c->x, c->n, &w.x) || number_at(frame, &c->more[1]) != c->n)
        return DECLINED;
    w.dense = data_at(frame, &c->more[0]);
    w.z = data_at(frame, &c->z[0]);
    w.columns = c->columns;
    if (c->has_base) {
        w.base = data_at(frame, &c->more[2]);
        w.alpha = data_at(frame, &c->more[3]);
    }
    if (!c->transposed) {
        share_rows(&w, c, c->values->dot);
        return w.is_wrong ? DECLINED : DONE;
    }
    w.run = c->values->dot_transposed;
    w.parts = c->columns == 1 ? 1 : c->threads < MOST_SHARES ? c->threads : MOST_SHARES;
    c->loops->cut_columns(&w.x, (int)w.parts, cuts);
    w.cuts = cuts;
    share(do_sparse_part, &w, w.parts, (int)w.parts);
    return w.is_wrong ? DECLINED : DONE;
}

/* The operands of products at a pattern; 0: they do not fit. */
static int sampled_of(const Frame *frame, const SparseCall *c, SparseWork *w)
{
    if (!sparse_of(frame, c, &c->x, c->n, &w->x) ||
        !c->loops->indices_fit(w->x.indices, c->x.stored, c->n))
        return 0;
    w->dense = data_at(frame, &c->more[0]);
    w->other = data_at(frame, &c->more[1]);
    w->z = data_at(frame, &c->z[0]);
    w->columns = c->columns;
    return 1;
}

static int run_sampled(const void *params, Frame *frame)
{
    const SparseCall *c = (const SparseCall *)params;
    SparseWork w = {0};
    return !sampled_of(frame, c, &w)
               ? DECLINED
               : share_rows(&w, c,
                            c->is_vector ? c->values->sampled_vectors : c->values->sampled);
}

/* Both factors of a product; 0: they do not fit. */
static int factors_of(const Frame *frame, const SparseCall *c, SparseWork *w)
{
    return sparse_of(frame, c, &c->x, c->y.rows, &w->x) && number_at(frame, &c->more[0]) == c->y.rows &&
           sparse_of(frame, c, &c->y, c->n, &w->y) &&
           c->loops->indices_fit(w->x.indices, c->x.stored, w->x.columns) &&
           c->loops->indices_fit(w->y.indices, c->y.stored, w->y.columns);
}

static int run_multiply_at(const void *params, Frame *frame)
{
    const SparseCall *c = (const SparseCall *)params;
    SparseWork w = {0};
    if (!factors_of(frame, c, &w))
        return DECLINED;
    w.z = data_at(frame, &c->z[0]);
    w.z_indices = data_at(frame, &c->more[2]);
    w.z_indptr = data_at(frame, &c->more[3]);
    if (!c->loops->pointers_fit(w.z_indptr, c->x.rows, c->stored) ||
        !c->loops->indices_fit(w.z_indices, c->stored, c->n))
        return DECLINED;
    set_marks(frame, c, &w, sizeof(int64_t));
    return share_rows(&w, c, c->values->multiply_at);
}

static int run_segment_rows(const void *params, Frame *frame)
{
    const SparseCall *c = (const SparseCall *)params;
    SparseWork w = {0};
    w.x.indptr = data_at(frame, &c->x.indptr);
    w.x.rows = c->x.rows;
    /* There may be rows after the last segment. */
    if (!c->loops->pointers_fit(w.x.indptr, c->x.rows, c->loops->row_at(w.x.indptr, c->x.rows, -1) -
                                                           c->x.rows) ||
        c->loops->row_at(w.x.indptr, c->x.rows, -1) - c->x.rows > c->n)
        return DECLINED;
    w.dense = data_at(frame, &c->more[0]);
    w.z = data_at(frame, &c->z[0]);
    w.columns = c->columns;
    return share_rows(&w, c, c->values->segments[c->kind]);
}

/* ---- plans */

static int plan_sparse_dot(SparsePlan *s)
{
    const int first = s->spec->what == SPARSE_USMM ? 2 : 0;
    SparseCall *c = &s->call;
    const Operand *dense = input_of(s->p, first + 4), *base, *alpha;
    Operand *n, *z;
    int64_t shape[2];
    int status;
    if (dense == NULL || dense->ndim < 1 || dense->ndim > 2 || !read_matrix(s, first, 1, &c->x) ||
        (dense = read_values(s, first + 4, dense->ndim)) == NULL ||
        (n = read_scalar(s, first + 3)) == NULL || !read_loops(s))
        return DECLINED;
    c->columns = dense->ndim == 2 ? dense->shape[1] : 1;
    c->n = dense->shape[0];
    if (s->spec->transposed) {
        if (dense->shape[0] != c->x.rows)
            return DECLINED;
        status = read_length(s, n, &c->n);
        if (status != DONE)
            return status;
    }
    shape[0] = s->spec->transposed ? c->n : c->x.rows;
    shape[1] = c->columns;
    if (first) {
        base = read_values(s, 0, dense->ndim);
        alpha = read_values(s, 1, 0);
        if (base == NULL || alpha == NULL ||
            memcmp(base->shape, shape, (size_t)base->ndim * sizeof(int64_t)))
            return DECLINED;
        c->has_base = 1;
        c->more[2] = placed(base);
        c->more[3] = placed(alpha);
    }
    c->more[0] = placed(dense);
    c->more[1] = placed(n);
    z = sparse_result(s, 0, s->type, c->itemsize, dense->ndim, shape);
    return z == NULL ? no_memory()
                     : give_sparse(s, run_sparse_dot, "sparse dot",
                                   (double)(c->x.stored + c->x.rows) * (double)c->columns, 1, &z);
}

static int plan_sampled(SparsePlan *s)
{
    SparseCall *c = &s->call;
    const Operand *x = input_of(s->p, 2), *y;
    Operand *z;
    if (x == NULL || x->ndim < 1 || x->ndim > 2 || !read_matrix(s, 0, 0, &c->x) ||
        (x = read_values(s, 2, x->ndim)) == NULL || (y = read_values(s, 3, x->ndim)) == NULL ||
        x->shape[0] != c->x.rows || (x->ndim == 2 && x->shape[1] != y->shape[1]) || !read_loops(s))
        return DECLINED;
    c->is_vector = x->ndim == 1;
    c->columns = x->ndim == 2 ? x->shape[1] : 1;
    c->n = y->shape[0];
    c->more[0] = placed(x);
    c->more[1] = placed(y);
    z = sparse_result(s, 0, s->type, c->itemsize, 1, &c->x.stored);
    return z == NULL ? no_memory()
                     : give_sparse(s, run_sampled, "sampled dot",
                                   (double)c->x.stored * (double)c->columns, 1, &z);
}

/* Read the factors of a product, of which the second has c->n columns. */
static int read_factors(SparsePlan *s)
{
    SparseCall *c = &s->call;
    const Operand *n;
    Operand *m;
    if (!read_matrix(s, 0, 1, &c->x) || (n = read_scalar(s, 3)) == NULL ||
        !read_matrix(s, 4, 1, &c->y) || (m = read_scalar(s, 7)) == NULL || !read_loops(s))
        return DECLINED;
    c->more[0] = placed(n);
    return read_length(s, m, &c->n);
}

static int plan_multiply_at(SparsePlan *s)
{
    SparseCall *c = &s->call;
    const Operand *indices, *indptr;
    Operand *z;
    const int status = read_factors(s);
    if (status != DONE)
        return status;
    if ((indices = read_indices(s, 8)) == NULL || (indptr = read_indices(s, 9)) == NULL ||
        indptr->size != c->x.rows + 1)
        return DECLINED;
    c->stored = indices->size;
    s->bytes_of_thread = c->n * (int64_t)sizeof(int64_t);
    c->more[2] = placed(indices);
    c->more[3] = placed(indptr);
    z = sparse_result(s, 0, s->type, c->itemsize, 1, &c->stored);
    return z == NULL ? no_memory()
                     : give_sparse(s, run_multiply_at, "sparse product",
                                   8.0 * (double)(c->x.stored + c->stored), 1, &z);
}

static int plan_segments(SparsePlan *s)
{
    SparseCall *c = &s->call;
    const Operand *data = input_of(s->p, 0), *indptr;
    Operand *z;
    int64_t shape[MOST_AXES];
    int axis;
    if (data == NULL || data->ndim < 1 || (data = read_values(s, 0, data->ndim)) == NULL ||
        (indptr = read_indices(s, 1)) == NULL || indptr->size < 1 || !read_loops(s) ||
        c->values->segments[s->spec->kind] == NULL ||
        /* Sums of shorter integers are wider. */
        (s->spec->kind == SEGMENT_SUM && c->itemsize < 8 && !PyTypeNum_ISFLOAT(s->type)))
        return DECLINED;
    c->x.indptr = placed(indptr);
    c->x.rows = shape[0] = indptr->size - 1;
    c->n = data->shape[0];
    c->columns = 1;
    for (axis = 1; axis < data->ndim; axis++)
        c->columns *= shape[axis] = data->shape[axis];
    c->more[0] = placed(data);
    z = sparse_result(s, 0, s->type, c->itemsize, data->ndim, shape);
    return z == NULL ? no_memory()
                     : give_sparse(s, run_segment_rows, "segments", (double)data->size, 1, &z);
}

#endif
