/* Ops on the arrays of sparse matrices that count the entries of their results first. */
#ifndef SYMCOMP_SPARSE_COUNTED_H
#define SYMCOMP_SPARSE_COUNTED_H

#include "sparse_products.h"

/* Write the number of entries of all rows. */
static int count_entries(Frame *frame, const SparseCall *c, int64_t rows)
{
    const int64_t *counts = (const int64_t *)data_at(frame, &c->counts);
    int64_t i, total = 0;
    for (i = 0; i < rows; i++)
        total += counts[i];
    *(int64_t *)data_at(frame, &c->count) = total;
    return c->loops == &index_loops_i32 && total > INT32_MAX ? DECLINED : DONE;
}

static int run_count_products(const void *params, Frame *frame)
{
    const SparseCall *c = (const SparseCall *)params;
    SparseWork w = {0};
    if (!factors_of(frame, c, &w))
        return DECLINED;
    w.counts = data_at(frame, &c->counts);
    set_marks(frame, c, &w, index_width(c));
    share_rows(&w, c, c->loops->count_products);
    return count_entries(frame, c, c->x.rows);
}

static int run_multiply(const void *params, Frame *frame)
{
    const SparseCall *c = (const SparseCall *)params;
    SparseWork w = {0};
    if (!factors_of(frame, c, &w))
        return DECLINED;
    w.z = data_at(frame, &c->z[0]);
    w.z_indices = data_at(frame, &c->z[1]);
    w.z_indptr = data_at(frame, &c->z[2]);
    c->loops->sum_counts((const int64_t *)data_at(frame, &c->counts), c->x.rows, w.z_indptr);
    set_memory(frame, c, &w, bytes_of_set(c->n));
    return share_rows(&w, c, c->values->multiply);
}

static int run_combine(const void *params, Frame *frame)
{
    const SparseCall *c = (const SparseCall *)params;
    SparseWork w = {0};
    if (!sparse_of(frame, c, &c->x, 0, &w.x) || !sparse_of(frame, c, &c->y, 0, &w.y))
        return DECLINED;
    w.z = data_at(frame, &c->spare[0]);
    w.z_indices = data_at(frame, &c->spare[1]);
    w.counts = data_at(frame, &c->counts);
    share_rows(&w, c, c->values->combine[c->kind]);
    return count_entries(frame, c, c->x.rows);
}

static int run_pack(const void *params, Frame *frame)
{
    const SparseCall *c = (const SparseCall *)params;
    SparseWork w = {0};
    if (!sparse_of(frame, c, &c->x, 0, &w.x) || !sparse_of(frame, c, &c->y, 0, &w.y))
        return DECLINED;
    w.z = data_at(frame, &c->z[0]);
    w.z_indices = data_at(frame, &c->z[1]);
    w.z_indptr = data_at(frame, &c->z[2]);
    w.dense = data_at(frame, &c->spare[0]);
    w.other = data_at(frame, &c->spare[1]);
    c->loops->sum_counts((const int64_t *)data_at(frame, &c->counts), c->x.rows, w.z_indptr);
    return share_rows(&w, c, c->loops->pack);
}

static int run_count_nonzero_entries(const void *params, Frame *frame)
{
    const SparseCall *c = (const SparseCall *)params;
    Compressed x;
    if (!sparse_of(frame, c, &c->x, 0, &x))
        return DECLINED;
    *(int64_t *)data_at(frame, &c->count) =
        c->values->keep_nonzero(&x, NULL, NULL, data_at(frame, &c->counts));
    return DONE;
}

static int run_keep_nonzero(const void *params, Frame *frame)
{
    const SparseCall *c = (const SparseCall *)params;
    const int64_t width = index_width(c);
    Compressed x;
    if (!sparse_of(frame, c, &c->x, 0, &x))
        return DECLINED;
    c->values->keep_nonzero(&x, data_at(frame, &c->z[0]), data_at(frame, &c->z[1]), NULL);
    memcpy(data_at(frame, &c->z[2]), data_at(frame, &c->counts),
           (size_t)((c->x.rows + 1) * width));
    return DONE;
}

static int run_count_taken(const void *params, Frame *frame)
{
    const SparseCall *c = (const SparseCall *)params;
    int64_t count;
    Compressed x;
    if (!sparse_of(frame, c, &c->x, 0, &x))
        return DECLINED;
    count = c->loops->count_taken(&x, data_at(frame, &c->more[0]), c->n, data_at(frame, &c->counts));
    *(int64_t *)data_at(frame, &c->count) = count;
    return count < 0 || (c->loops == &index_loops_i32 && count > INT32_MAX) ? DECLINED : DONE;
}

static int run_take_rows(const void *params, Frame *frame)
{
    const SparseCall *c = (const SparseCall *)params;
    const int64_t width = index_width(c);
    char *indptr = data_at(frame, &c->z[2]);
    Compressed x;
    if (!sparse_of(frame, c, &c->x, 0, &x))
        return DECLINED;
    memcpy(indptr, data_at(frame, &c->counts), (size_t)((c->n + 1) * width));
    c->loops->take_rows(&x, data_at(frame, &c->more[0]), c->n, c->itemsize,
                        data_at(frame, &c->z[0]), data_at(frame, &c->z[1]), indptr);
    return DONE;
}

/* ---- plans */

typedef struct {
    SparsePlan plan;
    Operand *count;
} SparseState;

/* Emit and run the call that counts the entries of the result; ``counts`` lengths are kept, of type
   int64 or that of indices. */
static int count_first(SparsePlan *s, call_function *run, const char *name, int counts_type,
                       int64_t counts, double work, SparseState **found)
{
    SparseState *state = (SparseState *)pool_new(&s->p->pool, sizeof(SparseState));
    Operand *of_rows = new_scratch(s->p, counts_type, counts_type == NPY_INT64 ? 8 : 4, 1, &counts);
    Operand *count = new_scratch(s->p, NPY_INT64, 8, 0, NULL), *writes[5];
    int64_t room = s->call.x.stored + s->call.y.stored;
    int i, status, n = 2;
    if (state == NULL || of_rows == NULL || count == NULL)
        return no_memory();
    writes[0] = of_rows;
    writes[1] = count;
    s->call.counts = placed(of_rows);
    s->call.count = placed(count);
    if (s->spare_bytes > 0) {
        writes[2] = new_scratch(s->p, s->spare_type, s->spare_bytes, 1, &room);
        writes[3] = new_scratch(s->p, s->index_type, index_bytes(s), 1, &room);
        if (writes[2] == NULL || writes[3] == NULL)
            return no_memory();
        s->call.spare[0] = placed(writes[2]);
        s->call.spare[1] = placed(writes[3]);
        n = 4;
    }
    if (s->also_written != NULL)
        writes[n++] = s->also_written;
    status = emit_sparse(s, run, name, work, n, writes);
    if (status != DONE)
        return status;
    /* The arrays that the call after the guard reads. */
    s->reads[s->n_reads++] = of_rows;
    for (i = 2; i < n; i++)
        s->reads[s->n_reads++] = writes[i];
    status = run_planned(s->p);
    if (status != DONE)
        return status;
    state->plan = *s;
    state->count = count;
    *found = state;
    return checkpoint(s->p, state);
}

/* The entries, or blocks of steps[0] x steps[1], indices and pointers of ``rows`` rows, as many as were counted. */
static int fill_counted(const SparseState *state, call_function *run, const char *name, int type,
                        int itemsize, int64_t rows, Planner *p)
{
    SparsePlan s = state->plan;
    Operand *z[3];
    int64_t count, pointers = rows + 1, shape[3];
    const int status = guarded_number(p, state->count, &count);
    if (status != DONE)
        return status;
    s.p = p;
    s.call.itemsize = itemsize;
    shape[0] = count;
    memcpy(shape + 1, s.call.steps, sizeof(s.call.steps));
    z[0] = sparse_result(&s, 0, type, itemsize, s.call.is_of_blocks ? 3 : 1, shape);
    z[1] = sparse_result(&s, 1, s.index_type, index_bytes(&s), 1, &count);
    z[2] = sparse_result(&s, 2, s.index_type, index_bytes(&s), 1, &pointers);
    if (z[0] == NULL || z[1] == NULL || z[2] == NULL)
        return no_memory();
    return give_sparse(&s, run, name, 4.0 * (double)(count + rows), 3, z);
}

static int plan_sparse_product(SparsePlan *s, const SparseState *state)
{
    SparseState *fresh = NULL, filled;
    int64_t n;
    if (state == NULL) {
        int status = read_factors(s);
        if (status != DONE)
            return status;
        s->bytes_of_thread = s->call.n * index_bytes(s);
        status = count_first(s, run_count_products, "count entries", NPY_INT64, s->call.x.rows,
                             8.0 * (double)s->call.x.stored, &fresh);
        if (status != DONE)
            return status;
        state = fresh;
    }
    filled = *state;
    n = filled.plan.call.n;
    filled.plan.bytes_of_thread =
        bytes_of_set(n) + n * (filled.plan.call.itemsize + index_bytes(&filled.plan)) + 8;
    return fill_counted(&filled, run_multiply, "sparse product", filled.plan.type,
                        filled.plan.call.itemsize, filled.plan.call.x.rows, s->p);
}

static int plan_combine(SparsePlan *s, const SparseState *state)
{
    SparseCall *c = &s->call;
    SparseState *fresh = NULL;
    const int compares = s->spec->kind >= COMBINE_NEQ;
    if (state == NULL) {
        int status;
        const Operand *n;
        if (!read_matrix(s, 0, 1, &c->x) || !read_matrix(s, 3, 1, &c->y) ||
            (n = read_scalar(s, 6)) == NULL || c->x.rows != c->y.rows || !read_loops(s) ||
            c->values->combine[s->spec->kind] == NULL)
            return DECLINED;
        s->spare_type = compares ? NPY_BOOL : s->type;
        s->spare_bytes = compares ? 1 : c->itemsize;
        status = count_first(s, run_combine, "combine rows", NPY_INT64, c->x.rows,
                             4.0 * (double)(c->x.stored + c->y.stored), &fresh);
        if (status != DONE)
            return status;
        state = fresh;
    }
    return fill_counted(state, run_pack, "pack rows", compares ? NPY_BOOL : state->plan.type,
                        compares ? 1 : state->plan.call.itemsize, state->plan.call.x.rows, s->p);
}

static int plan_drop_zeros(SparsePlan *s, const SparseState *state)
{
    SparseState *fresh = NULL;
    if (state == NULL) {
        int status;
        if (!read_matrix(s, 0, 1, &s->call.x) || !read_loops(s))
            return DECLINED;
        status = count_first(s, run_count_nonzero_entries, "count entries", s->index_type,
                             s->call.x.rows + 1, (double)s->call.x.stored, &fresh);
        if (status != DONE)
            return status;
        state = fresh;
    }
    return fill_counted(state, run_keep_nonzero, "keep entries", state->plan.type,
                        state->plan.call.itemsize, state->plan.call.x.rows, s->p);
}

static int plan_take_rows(SparsePlan *s, const SparseState *state)
{
    SparseState *fresh = NULL;
    if (state == NULL) {
        const Operand *ids;
        int status;
        if (!read_matrix(s, 0, 1, &s->call.x) || (ids = read_indices(s, 3)) == NULL)
            return DECLINED;
        s->call.n = ids->size;
        s->call.more[0] = placed(ids);
        status = count_first(s, run_count_taken, "count entries", s->index_type, ids->size + 1,
                             (double)ids->size, &fresh);
        if (status != DONE)
            return status;
        state = fresh;
    }
    return fill_counted(state, run_take_rows, "take rows", state->plan.type,
                        state->plan.call.itemsize, state->plan.call.n, s->p);
}

#endif
