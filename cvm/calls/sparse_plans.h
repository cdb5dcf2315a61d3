/* How the calls of sparse.h are planned: lengths of results, and which loops there are. */
#ifndef SYMCOMP_SPARSE_PLANS_H
#define SYMCOMP_SPARSE_PLANS_H

#include "sparse.h"

/* Results of as many elements as ``shape`` says, of the dtype of entries or of indices. */
static Operand *sparse_result(SparsePlan *s, int j, int type, int itemsize, int ndim,
                              const int64_t *shape)
{
    Operand *z = new_output_apart(s->p, j, type, itemsize, ndim, shape, NULL);
    if (z != NULL)
        s->call.z[j] = placed(z);
    return z;
}

static int index_bytes(const SparsePlan *s)
{
    return s->index_type == NPY_INT32 ? 4 : 8;
}

/* Emit the call that writes ``z``. */
static int emit_sparse(SparsePlan *s, call_function *run, const char *name, double work,
                       int n_writes, Operand **z)
{
    Call *call = new_call(s->p, run, name, sizeof(SparseCall));
    if (call == NULL)
        return no_memory();
    s->call.kind = s->spec->kind;
    s->call.transposed = s->spec->transposed;
    s->call.threads = work < ELEMENTS_WORTH_SHARING ? 1 : s->spec->threads;
    *(SparseCall *)call->params = s->call;
    call->work = work;
    return set_operands(s->p, call, s->n_reads, s->reads, n_writes, (const Operand **)z);
}

static int give_sparse(SparsePlan *s, call_function *run, const char *name, double work,
                       int n_writes, Operand **z)
{
    int j, status = emit_sparse(s, run, name, work, n_writes, z);
    for (j = 0; j < n_writes && status == DONE; j++)
        status = give_output(s->p, j, z[j]);
    return status;
}

/* ---- results whose lengths are known */

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
        status = guarded_number(s->p, n, &c->n);
        if (status != DONE)
            return status;
        if (c->n < 0)
            return DECLINED;
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

static int read_factors(SparsePlan *s)
{
    SparseCall *c = &s->call;
    const Operand *n, *m;
    if (!read_matrix(s, 0, 1, &c->x) || (n = read_scalar(s, 3)) == NULL ||
        !read_matrix(s, 4, 1, &c->y) || (m = read_scalar(s, 7)) == NULL || !read_loops(s))
        return 0;
    c->more[0] = placed(n);
    c->more[1] = placed(m);
    return 1;
}

static int plan_multiply_at(SparsePlan *s)
{
    SparseCall *c = &s->call;
    const Operand *indices, *indptr;
    Operand *z;
    if (!read_factors(s) || (indices = read_indices(s, 8)) == NULL ||
        (indptr = read_indices(s, 9)) == NULL || indptr->size != c->x.rows + 1)
        return DECLINED;
    c->n = indices->size;
    c->more[2] = placed(indices);
    c->more[3] = placed(indptr);
    z = sparse_result(s, 0, s->type, c->itemsize, 1, &c->n);
    return z == NULL ? no_memory()
                     : give_sparse(s, run_multiply_at, "sparse product",
                                   8.0 * (double)(c->x.stored + c->n), 1, &z);
}

static int plan_transpose_sparse(SparsePlan *s)
{
    SparseCall *c = &s->call;
    Operand *n, *z[3];
    int64_t pointers;
    int status;
    if (!read_matrix(s, 0, 1, &c->x) || (n = read_scalar(s, 3)) == NULL)
        return DECLINED;
    status = guarded_number(s->p, n, &c->n);
    if (status != DONE)
        return status;
    if (c->n < 0)
        return DECLINED;
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
    Operand *z;
    if (!read_matrix(s, 0, 1, &c->y) || !read_matrix(s, 3, 0, &c->x) || c->x.rows != c->y.rows)
        return DECLINED;
    z = sparse_result(s, 0, s->type, c->itemsize, 1, &c->x.stored);
    return z == NULL ? no_memory()
                     : give_sparse(s, run_look_up, "look up", 4.0 * (double)c->x.stored, 1, &z);
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
        status = guarded_number(s->p, n, &c->n);
        if (status != DONE)
            return status;
        if (c->n < 0)
            return DECLINED;
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
    status = guarded_number(s->p, n, &c->n);
    if (status != DONE)
        return status;
    if (c->n < 0)
        return DECLINED;
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
    status = guarded_number(s->p, n, &c->n);
    if (status != DONE)
        return status;
    if (c->n < 0)
        return DECLINED;
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
        (s->spec->kind == SEGMENT_SUM && s->type == NPY_INT32))
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

static int plan_canonical(SparsePlan *s)
{
    SparseCall *c = &s->call;
    const Operand *n, *m;
    int j, status;
    if (!read_matrix(s, 0, 1, &c->x))
        return DECLINED;
    c->n = INT64_MAX;
    if (s->p->step->n_inputs > 3) {
        if ((n = read_scalar(s, 3)) == NULL || (m = read_scalar(s, 4)) == NULL)
            return DECLINED;
        c->has_base = 1;
        c->more[0] = placed(n);
        c->more[1] = placed(m);
    }
    status = emit_sparse(s, run_check_canonical, "check pattern", (double)c->x.stored, 0, NULL);
    for (j = 0; j < 3 && status == DONE; j++)
        status = give_output(s->p, j, input_of(s->p, j));
    return status;
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

/* ---- results as long as a first call finds */

typedef struct {
    SparsePlan plan;
    Operand *count;
} SparseState;

/* Emit and run the call that counts the entries of the result; ``counts`` lengths are kept, of type
   int64 or that of indices. */
static int count_first(SparsePlan *s, call_function *run, const char *name, int counts_type,
                       int64_t counts, double work, int spare_bytes, SparseState **found)
{
    SparseState *state = (SparseState *)pool_new(&s->p->pool, sizeof(SparseState));
    Operand *of_rows = new_scratch(s->p, counts_type, counts_type == NPY_INT64 ? 8 : 4, 1, &counts);
    Operand *count = new_scratch(s->p, NPY_INT64, 8, 0, NULL), *writes[4];
    int64_t room = s->call.x.stored + s->call.y.stored;
    int status, n = 2;
    if (state == NULL || of_rows == NULL || count == NULL)
        return no_memory();
    writes[0] = of_rows;
    writes[1] = count;
    s->call.counts = placed(of_rows);
    s->call.count = placed(count);
    if (spare_bytes > 0) {
        writes[2] = new_scratch(s->p, spare_bytes == 1 ? NPY_BOOL : s->type, spare_bytes, 1, &room);
        writes[3] = new_scratch(s->p, s->index_type, index_bytes(s), 1, &room);
        if (writes[2] == NULL || writes[3] == NULL)
            return no_memory();
        s->call.spare[0] = placed(writes[2]);
        s->call.spare[1] = placed(writes[3]);
        n = 4;
    }
    status = emit_sparse(s, run, name, work, n, writes);
    if (status != DONE)
        return status;
    /* What the call after the guard reads. */
    s->reads[s->n_reads++] = of_rows;
    if (n == 4) {
        s->reads[s->n_reads++] = writes[2];
        s->reads[s->n_reads++] = writes[3];
    }
    status = run_planned(s->p);
    if (status != DONE)
        return status;
    state->plan = *s;
    state->count = count;
    *found = state;
    return checkpoint(s->p, state);
}

/* The entries, indices and pointers of ``rows`` rows, as many as were counted. */
static int fill_counted(const SparseState *state, call_function *run, const char *name, int type,
                        int itemsize, int64_t rows, Planner *p)
{
    SparsePlan s = state->plan;
    Operand *z[3];
    int64_t count, pointers = rows + 1;
    const int status = guarded_number(p, state->count, &count);
    if (status != DONE)
        return status;
    s.p = p;
    s.call.itemsize = itemsize;
    z[0] = sparse_result(&s, 0, type, itemsize, 1, &count);
    z[1] = sparse_result(&s, 1, s.index_type, index_bytes(&s), 1, &count);
    z[2] = sparse_result(&s, 2, s.index_type, index_bytes(&s), 1, &pointers);
    if (z[0] == NULL || z[1] == NULL || z[2] == NULL)
        return no_memory();
    return give_sparse(&s, run, name, 4.0 * (double)(count + rows), 3, z);
}

static int plan_sparse_product(SparsePlan *s, const SparseState *state)
{
    SparseState *fresh = NULL;
    if (state == NULL) {
        int status;
        if (!read_factors(s))
            return DECLINED;
        status = count_first(s, run_count_products, "count entries", NPY_INT64, s->call.x.rows,
                             8.0 * (double)s->call.x.stored, 0, &fresh);
        if (status != DONE)
            return status;
        state = fresh;
    }
    return fill_counted(state, run_multiply, "sparse product", state->plan.type,
                        state->plan.call.itemsize, state->plan.call.x.rows, s->p);
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
        status = count_first(s, run_combine, "combine rows", NPY_INT64, c->x.rows,
                             4.0 * (double)(c->x.stored + c->y.stored), compares ? 1 : c->itemsize,
                             &fresh);
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
                             s->call.x.rows + 1, (double)s->call.x.stored, 0, &fresh);
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
                             (double)ids->size, 0, &fresh);
        if (status != DONE)
            return status;
        state = fresh;
    }
    return fill_counted(state, run_take_rows, "take rows", state->plan.type,
                        state->plan.call.itemsize, state->plan.call.n, s->p);
}

static int plan_sparse(Planner *p, const void *given)
{
    const SparseState *state = (const SparseState *)p->saved;
    SparsePlan s;
    memset(&s, 0, sizeof(s));
    s.p = p;
    s.spec = (const SparseSpec *)given;
    s.index_type = s.type = -1;
    switch (s.spec->what) {
    case SPARSE_DOT:
    case SPARSE_USMM: return plan_sparse_dot(&s);
    case SPARSE_SAMPLED: return plan_sampled(&s);
    case SPARSE_PRODUCT: return plan_sparse_product(&s, state);
    case SPARSE_PRODUCT_AT: return plan_multiply_at(&s);
    case SPARSE_COMBINE: return plan_combine(&s, state);
    case SPARSE_TRANSPOSE: return plan_transpose_sparse(&s);
    case SPARSE_LOOKUP: return plan_look_up(&s);
    case SPARSE_LOOKUP_PAIRS: return plan_look_up_pairs(&s);
    case SPARSE_GATHER: return plan_gather_sparse(&s);
    case SPARSE_SCATTER:
    case SPARSE_SCATTER_ADD: return plan_scatter_sparse(&s);
    case SPARSE_ROWS: return plan_number_rows(&s);
    case SPARSE_POINTERS: return plan_count_rows(&s);
    case SPARSE_LARGEST: return plan_largest(&s);
    case SPARSE_SEGMENTS: return plan_segments(&s);
    case SPARSE_DROP_ZEROS: return plan_drop_zeros(&s, state);
    case SPARSE_TAKE: return plan_take_rows(&s, state);
    case SPARSE_CANONICAL: return plan_canonical(&s);
    case SPARSE_SAME_LENGTH: return plan_same_length(&s);
    default: return DECLINED;
    }
}

#endif
