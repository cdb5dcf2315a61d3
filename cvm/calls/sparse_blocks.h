/* Ops on the arrays of matrices of blocks (BSR). */
#ifndef SYMCOMP_SPARSE_BLOCKS_H
#define SYMCOMP_SPARSE_BLOCKS_H

#include "sparse_counted.h"

/* ---- products */

static int run_block_dot(const void *params, Frame *frame)
{
    const SparseCall *c = (const SparseCall *)params;
    SparseWork w = {0};
    if (!sparse_of(frame, c, &c->x, c->n, &w.x) || number_at(frame, &c->more[1]) != c->n ||
        !c->loops->indices_fit(w.x.indices, c->x.stored, c->n / c->steps[1]))
        return DECLINED;
    w.dense = data_at(frame, &c->more[0]);
    w.z = data_at(frame, &c->z[0]);
    w.columns = c->columns;
    memcpy(w.steps, c->steps, sizeof(w.steps));
    if (!c->transposed)
        return share_rows(&w, c, c->values->block_dot);
    memset(w.z, 0, (size_t)(c->n * c->columns * c->itemsize));
    return share_parts(&w, c, c->values->block_dot_transposed, NULL);
}

static int plan_block_dot(SparsePlan *s)
{
    SparseCall *c = &s->call;
    const int transposed = s->spec->transposed;
    const Operand *dense = input_of(s->p, 4);
    Operand *n, *z;
    int64_t shape[2], rows;
    int status;
    if (dense == NULL || dense->ndim < 1 || dense->ndim > 2 || !read_entries(s, &c->x, c->steps) ||
        (n = read_scalar(s, 3)) == NULL || (dense = read_values(s, 4, dense->ndim)) == NULL ||
        !read_loops(s) || c->steps[0] < 1 || c->steps[1] < 1)
        return DECLINED;
    rows = c->x.rows * c->steps[0];
    status = read_length(s, n, &c->n);
    if (status != DONE)
        return status;
    if (c->n % c->steps[1] || dense->shape[0] != (transposed ? rows : c->n))
        return DECLINED;
    c->columns = dense->ndim == 2 ? dense->shape[1] : 1;
    c->more[0] = placed(dense);
    c->more[1] = placed(n);
    shape[0] = transposed ? c->n : rows;
    shape[1] = c->columns;
    z = sparse_result(s, 0, s->type, c->itemsize, dense->ndim, shape);
    return z == NULL ? no_memory()
                     : give_sparse(s, run_block_dot, "block dot",
                                   (double)(c->x.stored * c->steps[0] * c->steps[1] + rows) *
                                       (double)c->columns,
                                   1, &z);
}

static int run_sampled_blocks(const void *params, Frame *frame)
{
    const SparseCall *c = (const SparseCall *)params;
    SparseWork w = {0};
    if (!sampled_of(frame, c, &w))
        return DECLINED;
    memcpy(w.steps, c->steps, sizeof(w.steps));
    return share_rows(&w, c, c->values->sampled_blocks);
}

static int plan_sampled_blocks(SparsePlan *s)
{
    SparseCall *c = &s->call;
    const Operand *x = input_of(s->p, 2), *y;
    Operand *n, *m, *z;
    int64_t shape[3];
    int status;
    if (x == NULL || x->ndim < 1 || x->ndim > 2 || !read_matrix(s, 0, 0, &c->x) ||
        (x = read_values(s, 2, x->ndim)) == NULL || (y = read_values(s, 3, x->ndim)) == NULL ||
        (n = read_scalar(s, 4)) == NULL || (m = read_scalar(s, 5)) == NULL || !read_loops(s))
        return DECLINED;
    status = read_length(s, n, &c->steps[0]);
    if (status == DONE)
        status = read_length(s, m, &c->steps[1]);
    if (status != DONE)
        return status;
    if (c->steps[0] < 1 || c->steps[1] < 1 || x->shape[0] != c->x.rows * c->steps[0] ||
        y->shape[0] % c->steps[1] || (x->ndim == 2 && x->shape[1] != y->shape[1]))
        return DECLINED;
    c->columns = x->ndim == 2 ? x->shape[1] : 1;
    c->n = y->shape[0] / c->steps[1];
    c->more[0] = placed(x);
    c->more[1] = placed(y);
    shape[0] = c->x.stored;
    shape[1] = c->steps[0];
    shape[2] = c->steps[1];
    z = sparse_result(s, 0, s->type, c->itemsize, 3, shape);
    return z == NULL ? no_memory()
                     : give_sparse(s, run_sampled_blocks, "sampled blocks",
                                   (double)z->size * (double)c->columns, 1, &z);
}

/* ---- patterns */

static int run_blocks_as_rows(const void *params, Frame *frame)
{
    const SparseCall *c = (const SparseCall *)params;
    Compressed x;
    if (!sparse_of(frame, c, &c->x, 0, &x) ||
        (c->loops == &index_loops_i32 &&
         c->loops->largest(x.indices, c->x.stored) >= (int64_t)INT32_MAX / c->steps[1]))
        return DECLINED;
    c->loops->blocks_as_rows(&x, c->steps[0], c->steps[1], data_at(frame, &c->z[0]),
                             data_at(frame, &c->z[1]), (int64_t *)data_at(frame, &c->z[2]));
    return DONE;
}

static int plan_blocks_as_rows(SparsePlan *s)
{
    SparseCall *c = &s->call;
    Operand *n, *m, *z[3];
    int64_t stored, pointers;
    int status;
    if (!read_matrix(s, 0, 0, &c->x) || (n = read_scalar(s, 2)) == NULL ||
        (m = read_scalar(s, 3)) == NULL)
        return DECLINED;
    status = read_length(s, n, &c->steps[0]);
    if (status == DONE)
        status = read_length(s, m, &c->steps[1]);
    if (status != DONE)
        return status;
    if (c->steps[0] < 1 || c->steps[1] < 1)
        return DECLINED;
    stored = c->x.stored * c->steps[0] * c->steps[1];
    pointers = c->x.rows * c->steps[0] + 1;
    if (s->index_type == NPY_INT32 && (stored > INT32_MAX || pointers > INT32_MAX))
        return DECLINED;
    z[0] = sparse_result(s, 0, s->index_type, index_bytes(s), 1, &stored);
    z[1] = sparse_result(s, 1, s->index_type, index_bytes(s), 1, &pointers);
    z[2] = sparse_result(s, 2, NPY_INT64, 8, 1, &stored);
    if (z[0] == NULL || z[1] == NULL || z[2] == NULL)
        return no_memory();
    return give_sparse(s, run_blocks_as_rows, "blocks as rows", (double)stored, 3, z);
}

/* All rows of blocks, of a matrix that is one of entries. */
static int share_blocks(SparseWork *w, const SparseCall *c, rows_function *run)
{
    w->columns = c->x.rows / c->steps[0];
    memcpy(w->steps, c->steps, sizeof(w->steps));
    return share_parts(w, c, run, NULL);
}

static int run_count_blocks(const void *params, Frame *frame)
{
    const SparseCall *c = (const SparseCall *)params;
    SparseWork w = {0};
    if (!sparse_of(frame, c, &c->x, 0, &w.x))
        return DECLINED;
    w.counts = data_at(frame, &c->counts);
    w.z_indices = data_at(frame, &c->more[0]);
    w.spare_indices = data_at(frame, &c->memory);
    share_blocks(&w, c, c->loops->count_blocks);
    return count_entries(frame, c, w.columns);
}

static int run_rows_as_blocks(const void *params, Frame *frame)
{
    const SparseCall *c = (const SparseCall *)params;
    SparseWork w = {0};
    if (!sparse_of(frame, c, &c->x, 0, &w.x))
        return DECLINED;
    w.other = data_at(frame, &c->more[0]);
    w.z_indices = data_at(frame, &c->z[0]);
    w.z_indptr = data_at(frame, &c->z[1]);
    w.z = data_at(frame, &c->z[2]);
    c->loops->sum_counts((const int64_t *)data_at(frame, &c->counts), c->x.rows / c->steps[0],
                         w.z_indptr);
    return share_blocks(&w, c, c->loops->rows_as_blocks);
}

static int plan_rows_as_blocks(SparsePlan *s, const SparseState *state)
{
    SparseState *fresh = NULL;
    SparsePlan t;
    Operand *z[3];
    int64_t count, pointers;
    int status;
    if (state == NULL) {
        SparseCall *c = &s->call;
        c->steps[0] = s->spec->rows;
        c->steps[1] = s->spec->columns;
        if (!read_matrix(s, 0, 0, &c->x) || c->x.rows % c->steps[0])
            return DECLINED;
        s->also_written = new_scratch(s->p, s->index_type, index_bytes(s), 1, &c->x.stored);
        if (s->also_written == NULL || !take_memory(s, c->x.stored * index_bytes(s), 0))
            return no_memory();
        c->more[0] = placed(s->also_written);
        status = count_first(s, run_count_blocks, "count blocks", NPY_INT64, c->x.rows / c->steps[0],
                             2.0 * (double)c->x.stored, &fresh);
        if (status != DONE)
            return status;
        state = fresh;
    }
    status = guarded_number(s->p, state->count, &count);
    if (status != DONE)
        return status;
    t = state->plan;
    t.p = s->p;
    pointers = t.call.x.rows / t.call.steps[0] + 1;
    z[0] = sparse_result(&t, 0, t.index_type, index_bytes(&t), 1, &count);
    z[1] = sparse_result(&t, 1, t.index_type, index_bytes(&t), 1, &pointers);
    z[2] = sparse_result(&t, 2, NPY_INT64, 8, 1, &t.call.x.stored);
    if (z[0] == NULL || z[1] == NULL || z[2] == NULL)
        return no_memory();
    return give_sparse(&t, run_rows_as_blocks, "rows as blocks", 4.0 * (double)t.call.x.stored, 3, z);
}

#endif
