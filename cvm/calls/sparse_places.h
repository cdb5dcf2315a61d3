/* Where the entries of sparse matrices are: transposes, lookups, dense matrices read and written at
   patterns, checks. */
#ifndef SYMCOMP_SPARSE_PLACES_H
#define SYMCOMP_SPARSE_PLACES_H

#include "sparse.h"

static int run_transpose_sparse(const void *params, Frame *frame)
{
    const SparseCall *c = (const SparseCall *)params;
    Compressed x;
    if (!sparse_of(frame, c, &c->x, c->n, &x) ||
        !c->loops->indices_fit(x.indices, c->x.stored, c->n))
        return DECLINED;
    c->loops->transpose(&x, c->itemsize, data_at(frame, &c->z[0]), data_at(frame, &c->z[1]),
                        data_at(frame, &c->z[2]));
    return DONE;
}

static int run_look_up(const void *params, Frame *frame)
{
    const SparseCall *c = (const SparseCall *)params;
    SparseWork w = {0};
    if (!sparse_of(frame, c, &c->x, 0, &w.x) || !sparse_of(frame, c, &c->y, 0, &w.y))
        return DECLINED;
    w.z = data_at(frame, &c->z[0]);
    return share_rows(&w, c, c->is_of_blocks ? c->loops->look_up_blocks : c->loops->look_up);
}

static int run_look_up_pairs(const void *params, Frame *frame)
{
    const SparseCall *c = (const SparseCall *)params;
    const char *major = data_at(frame, &c->more[0]);
    Compressed x;
    if (!sparse_of(frame, c, &c->x, 0, &x) || !c->loops->indices_fit(major, c->n, x.rows))
        return DECLINED;
    c->loops->look_up_pairs(&x, major, data_at(frame, &c->more[1]), c->n, c->itemsize,
                            data_at(frame, &c->z[0]));
    return DONE;
}

static int run_gather_sparse(const void *params, Frame *frame)
{
    const SparseCall *c = (const SparseCall *)params;
    Compressed x;
    if (!sparse_of(frame, c, &c->x, c->n, &x) ||
        !c->loops->indices_fit(x.indices, c->x.stored, c->n))
        return DECLINED;
    c->loops->gather(&x, data_at(frame, &c->more[0]), c->steps, c->itemsize,
                     data_at(frame, &c->z[0]));
    return DONE;
}

static int run_gather_fill(const void *params, Frame *frame)
{
    const SparseCall *c = (const SparseCall *)params;
    const int64_t n = number_at(frame, &c->more[1]), m = number_at(frame, &c->more[2]);
    Compressed x;
    if (!sparse_of(frame, c, &c->x, m, &x) || !c->loops->indices_fit(x.indices, c->x.stored, m) ||
        x.rows != n || (c->lengths[0] != 1 && c->lengths[0] != n) ||
        (c->lengths[1] != 1 && c->lengths[1] != m))
        return DECLINED;
    c->loops->gather(&x, data_at(frame, &c->more[0]), c->steps, c->itemsize,
                     data_at(frame, &c->z[0]));
    return DONE;
}

static int run_scatter_sparse(const void *params, Frame *frame)
{
    const SparseCall *c = (const SparseCall *)params;
    char *z = data_at(frame, &c->z[0]);
    const size_t bytes = (size_t)(c->x.rows * c->n * c->itemsize);
    Compressed x;
    if (!sparse_of(frame, c, &c->x, c->n, &x) ||
        !c->loops->indices_fit(x.indices, c->x.stored, c->n))
        return DECLINED;
    if (!c->has_base) {
        memset(z, 0, bytes);
        c->loops->scatter(&x, c->itemsize, z);
    } else {
        if (number_at(frame, &c->more[1]) != c->n)
            return DECLINED;
        memcpy(z, data_at(frame, &c->more[0]), bytes);
        c->values->scatter_add(&x, z);
    }
    return DONE;
}

static int run_number_rows(const void *params, Frame *frame)
{
    const SparseCall *c = (const SparseCall *)params;
    const char *indptr = data_at(frame, &c->x.indptr);
    if (!c->loops->pointers_fit(indptr, c->x.rows, c->n))
        return DECLINED;
    c->loops->number_rows(indptr, c->x.rows, data_at(frame, &c->z[0]));
    return DONE;
}

static int run_count_rows(const void *params, Frame *frame)
{
    const SparseCall *c = (const SparseCall *)params;
    return c->loops->count_rows(data_at(frame, &c->x.indices), c->x.stored, c->n,
                                data_at(frame, &c->z[0]))
               ? DONE
               : DECLINED;
}

static int run_largest(const void *params, Frame *frame)
{
    const SparseCall *c = (const SparseCall *)params;
    *(int64_t *)data_at(frame, &c->z[0]) =
        c->loops->largest(data_at(frame, &c->x.indices), c->x.stored);
    return DONE;
}

static int run_check_length(const void *params, Frame *frame)
{
    const SparseCall *c = (const SparseCall *)params;
    return number_at(frame, &c->more[0]) == c->n ? DONE : DECLINED;
}

/* ---- plans */

static int plan_transpose_sparse(SparsePlan *s)
{
    SparseCall *c = &s->call;
    Operand *n, *z[3];
    int64_t pointers;
    int status;
    if (!read_matrix(s, 0, 1, &c->x) || (n = read_scalar(s, 3)) == NULL)
        return DECLINED;
    status = read_length(s, n, &c->n);
    if (status != DONE)
        return status;
    pointers = c->n + 1;
    z[0] = sparse_result(s, 0, s->type, c->itemsize, 1, &c->x.stored);
    z[1] = sparse_result(s, 1, s->index_type, index_bytes(s), 1, &c->x.stored);
    z[2] = sparse_result(s, 2, s->index_type, index_bytes(s), 1, &pointers);
    if (z[0] == NULL || z[1] == NULL || z[2] == NULL)
        return no_memory();
    return give_sparse(s, run_transpose_sparse, "transpose entries",
                       2.0 * (double)(c->x.stored + c->n), 3, z);
}

static int plan_look_up(SparsePlan *s)
{
    SparseCall *c = &s->call;
    int64_t shape[3], size;
    Operand *z;
    if (!read_entries(s, &c->y, shape + 1) || !read_matrix(s, 3, 0, &c->x) || c->x.rows != c->y.rows)
        return DECLINED;
    shape[0] = c->x.stored;
    size = shape[1] * shape[2];
    if (size > INT_MAX / c->itemsize)
        return DECLINED;
    z = sparse_result(s, 0, s->type, c->itemsize, input_of(s->p, 0)->ndim, shape);
    c->itemsize *= (int)size;
    return z == NULL ? no_memory()
                     : give_sparse(s, run_look_up, "look up",
                                   4.0 * (double)c->x.stored * (double)size, 1, &z);
}

static int plan_look_up_pairs(SparsePlan *s)
{
    SparseCall *c = &s->call;
    const Operand *major, *minor;
    Operand *z;
    if (!read_matrix(s, 0, 1, &c->x) || (major = read_indices(s, 3)) == NULL ||
        (minor = read_indices(s, 4)) == NULL || major->size != minor->size)
        return DECLINED;
    c->n = major->size;
    c->more[0] = placed(major);
    c->more[1] = placed(minor);
    z = sparse_result(s, 0, s->type, c->itemsize, 1, &c->n);
    return z == NULL ? no_memory()
                     : give_sparse(s, run_look_up_pairs, "look up", 8.0 * (double)c->n, 1, &z);
}

static int plan_gather_sparse(SparsePlan *s)
{
    SparseCall *c = &s->call;
    const Operand *x = input_of(s->p, 0);
    Operand *z;
    if (!is_plain(x) || x->ndim != 2 || !read_matrix(s, 1, 0, &c->x) || x->shape[0] != c->x.rows)
        return DECLINED;
    s->reads[s->n_reads++] = x;
    c->more[0] = placed(x);
    c->itemsize = x->itemsize;
    c->n = x->shape[1];
    c->steps[0] = x->strides[0];
    c->steps[1] = x->strides[1];
    z = sparse_result(s, 0, x->type, x->itemsize, 1, &c->x.stored);
    return z == NULL ? no_memory()
                     : give_sparse(s, run_gather_sparse, "gather", (double)c->x.stored, 1, &z);
}

/* The elements of a value that is stretched to a matrix of given lengths. */
static int plan_gather_fill(SparsePlan *s)
{
    SparseCall *c = &s->call;
    const Operand *x = input_of(s->p, 0), *n, *m;
    Operand *z;
    int axis;
    if (!is_plain(x) || x->ndim != 2 || (n = read_scalar(s, 1)) == NULL ||
        (m = read_scalar(s, 2)) == NULL || !read_matrix(s, 3, 0, &c->x))
        return DECLINED;
    s->reads[s->n_reads++] = x;
    c->more[0] = placed(x);
    c->more[1] = placed(n);
    c->more[2] = placed(m);
    c->itemsize = x->itemsize;
    for (axis = 0; axis < 2; axis++) {
        c->steps[axis] = x->shape[axis] == 1 ? 0 : x->strides[axis];
        c->lengths[axis] = x->shape[axis];
    }
    z = sparse_result(s, 0, x->type, x->itemsize, 1, &c->x.stored);
    return z == NULL ? no_memory()
                     : give_sparse(s, run_gather_fill, "gather", (double)c->x.stored, 1, &z);
}

static int plan_scatter_sparse(SparsePlan *s)
{
    const int first = s->spec->what == SPARSE_SCATTER_ADD;
    SparseCall *c = &s->call;
    const Operand *base;
    Operand *n, *z;
    int64_t shape[2];
    int status;
    if (!read_matrix(s, first, 1, &c->x) || (n = read_scalar(s, first + 3)) == NULL)
        return DECLINED;
    if (first) {
        base = read_values(s, 0, 2);
        if (base == NULL || base->shape[0] != c->x.rows || !read_loops(s))
            return DECLINED;
        c->n = base->shape[1];
        c->has_base = 1;
        c->more[0] = placed(base);
        c->more[1] = placed(n);
    } else {
        status = read_length(s, n, &c->n);
        if (status != DONE)
            return status;
    }
    shape[0] = c->x.rows;
    shape[1] = c->n;
    z = sparse_result(s, 0, s->type, c->itemsize, 2, shape);
    return z == NULL ? no_memory()
                     : give_sparse(s, run_scatter_sparse, "scatter", (double)z->size, 1, &z);
}

static int plan_number_rows(SparsePlan *s)
{
    SparseCall *c = &s->call;
    const Operand *indptr = read_indices(s, 0);
    Operand *n = read_scalar(s, 1), *z;
    int status;
    if (indptr == NULL || indptr->size < 1 || n == NULL)
        return DECLINED;
    status = read_length(s, n, &c->n);
    if (status != DONE)
        return status;
    c->x.indptr = placed(indptr);
    c->x.rows = indptr->size - 1;
    z = sparse_result(s, 0, s->index_type, index_bytes(s), 1, &c->n);
    return z == NULL ? no_memory()
                     : give_sparse(s, run_number_rows, "number rows", (double)c->n, 1, &z);
}

static int plan_count_rows(SparsePlan *s)
{
    SparseCall *c = &s->call;
    const Operand *major = read_indices(s, 0);
    Operand *n = read_scalar(s, 1), *z;
    int64_t pointers;
    int status;
    if (major == NULL || n == NULL)
        return DECLINED;
    status = read_length(s, n, &c->n);
    if (status != DONE)
        return status;
    pointers = c->n + 1;
    c->x.indices = placed(major);
    c->x.stored = major->size;
    z = sparse_result(s, 0, s->index_type, index_bytes(s), 1, &pointers);
    return z == NULL ? no_memory()
                     : give_sparse(s, run_count_rows, "count rows",
                                   (double)(pointers + c->x.stored), 1, &z);
}

static int plan_largest(SparsePlan *s)
{
    SparseCall *c = &s->call;
    const Operand *indices = read_indices(s, 0);
    Operand *z;
    if (indices == NULL)
        return DECLINED;
    c->x.indices = placed(indices);
    c->x.stored = indices->size;
    z = sparse_result(s, 0, NPY_INT64, 8, 0, NULL);
    return z == NULL ? no_memory()
                     : give_sparse(s, run_largest, "largest index", (double)c->x.stored, 1, &z);
}

static int run_check_range(const void *params, Frame *frame)
{
    const SparseCall *c = (const SparseCall *)params;
    return c->loops->indices_fit(data_at(frame, &c->x.indices), c->x.stored,
                                 number_at(frame, &c->more[0]))
               ? DONE
               : DECLINED;
}

/* A vector of positions passed on if they are at least 0 and below a number. */
static int plan_in_range(SparsePlan *s)
{
    const Operand *x = read_indices(s, 0), *n = read_scalar(s, 1);
    int status;
    if (x == NULL || n == NULL)
        return DECLINED;
    s->call.x.indices = placed(x);
    s->call.x.stored = x->size;
    s->call.more[0] = placed(n);
    status = emit_sparse(s, run_check_range, "check range", (double)x->size, 0, NULL);
    return status == DONE ? give_output(s->p, 0, input_of(s->p, 0)) : status;
}

/* A vector passed on if it is as long as a number says. */
static int plan_same_length(SparsePlan *s)
{
    Operand *x = input_of(s->p, 0);
    const Operand *n = read_scalar(s, 1);
    int status;
    if (!is_array(x) || x->ndim != 1 || n == NULL)
        return DECLINED;
    s->call.more[0] = placed(n);
    s->call.n = x->size;
    status = emit_sparse(s, run_check_length, "check length", 0, 0, NULL);
    return status == DONE ? give_output(s->p, 0, x) : status;
}

#endif
