/* Parts of sparse matrices, matrices side by side, and matrices made of entries in any order. */
#ifndef SYMCOMP_SPARSE_SLICES_H
#define SYMCOMP_SPARSE_SLICES_H

#include "sparse_counted.h"

/* ---- the entries in a range of columns */

static int cropped(Frame *frame, const SparseCall *c, SparseWork *w)
{
    w->steps[0] = number_at(frame, &c->more[0]);
    w->steps[1] = number_at(frame, &c->more[1]);
    return sparse_of(frame, c, &c->x, 0, &w->x);
}

static int run_count_cropped(const void *params, Frame *frame)
{
    const SparseCall *c = (const SparseCall *)params;
    SparseWork w = {0};
    if (!cropped(frame, c, &w))
        return DECLINED;
    w.counts = data_at(frame, &c->counts);
    share_rows(&w, c, c->loops->count_cropped);
    return count_entries(frame, c, c->x.rows);
}

static int run_crop(const void *params, Frame *frame)
{
    const SparseCall *c = (const SparseCall *)params;
    SparseWork w = {0};
    if (!cropped(frame, c, &w))
        return DECLINED;
    w.z = data_at(frame, &c->z[0]);
    w.z_indices = data_at(frame, &c->z[1]);
    w.z_indptr = data_at(frame, &c->z[2]);
    c->loops->sum_counts((const int64_t *)data_at(frame, &c->counts), c->x.rows, w.z_indptr);
    return share_rows(&w, c, c->loops->crop);
}

static int plan_crop(SparsePlan *s, const SparseState *state)
{
    SparseState *fresh = NULL;
    if (state == NULL) {
        const Operand *start, *end;
        int status;
        if (!read_matrix(s, 0, 1, &s->call.x) || (start = read_scalar(s, 3)) == NULL ||
            (end = read_scalar(s, 4)) == NULL)
            return DECLINED;
        s->call.more[0] = placed(start);
        s->call.more[1] = placed(end);
        status = count_first(s, run_count_cropped, "count entries", NPY_INT64, s->call.x.rows,
                             (double)s->call.x.rows, &fresh);
        if (status != DONE)
            return status;
        state = fresh;
    }
    return fill_counted(state, run_crop, "crop rows", state->plan.type, state->plan.call.itemsize,
                        state->plan.call.x.rows, s->p);
}

/* ---- matrices side by side */

typedef struct {
    SparseCall call;
    int n;
    int64_t stored;
    SparsePlace *matrices;
    Place *widths;
} JoinCall;

static int run_join_sparse(const void *params, Frame *frame)
{
    const JoinCall *j = (const JoinCall *)params;
    const SparseCall *c = &j->call;
    Compressed *x = (Compressed *)alloca((size_t)j->n * sizeof(Compressed));
    SparseWork w = {0};
    int64_t width = 0;
    int k;
    for (k = 0; k < j->n; k++) {
        const int64_t columns = number_at(frame, &j->widths[k]);
        if (columns < 0 || width > INT64_MAX - columns ||
            !sparse_of(frame, c, &j->matrices[k], columns, &x[k]))
            return DECLINED;
        width += columns;
    }
    if (c->loops == &index_loops_i32 && (width > INT32_MAX || j->stored > INT32_MAX))
        return DECLINED;
    w.joined = x;
    w.kind = j->n;
    w.columns = c->x.rows;
    w.z = data_at(frame, &c->z[0]);
    w.z_indices = data_at(frame, &c->z[1]);
    w.z_indptr = data_at(frame, &c->z[2]);
    c->loops->join_pointers(x, j->n, w.z_indptr);
    return share_parts(&w, c, c->loops->join_rows, NULL);
}

static int plan_join_sparse(SparsePlan *s)
{
    const int n = s->p->instruction->n_inputs / 4;
    const Operand **reads = (const Operand **)alloca((size_t)(4 * n) * sizeof(Operand *));
    SparseCall *c = &s->call;
    JoinCall *j;
    Operand *z[3];
    Call *call;
    int64_t stored = 0, pointers;
    int k, status;
    j = (JoinCall *)pool_new(&s->p->pool, sizeof(JoinCall));
    if (j == NULL)
        return no_memory();
    j->matrices = (SparsePlace *)pool_new(&s->p->pool, (size_t)n * sizeof(SparsePlace));
    j->widths = (Place *)pool_new(&s->p->pool, (size_t)n * sizeof(Place));
    if (j->matrices == NULL || j->widths == NULL)
        return no_memory();
    for (k = 0; k < n; k++) {
        const Operand *width;
        s->n_reads = 0;
        if (!read_matrix(s, 4 * k, 1, &j->matrices[k]) || (width = read_scalar(s, 4 * k + 3)) == NULL ||
            j->matrices[k].rows != j->matrices[0].rows)
            return DECLINED;
        memcpy(reads + 4 * k, s->reads, 4 * sizeof(Operand *));
        j->widths[k] = placed(width);
        stored += j->matrices[k].stored;
    }
    j->n = n;
    j->stored = stored;
    c->x = j->matrices[0];
    pointers = c->x.rows + 1;
    z[0] = sparse_result(s, 0, s->type, c->itemsize, 1, &stored);
    z[1] = sparse_result(s, 1, s->index_type, index_bytes(s), 1, &stored);
    z[2] = sparse_result(s, 2, s->index_type, index_bytes(s), 1, &pointers);
    if (z[0] == NULL || z[1] == NULL || z[2] == NULL ||
        (call = new_call(s->p, run_join_sparse, "join rows", sizeof(JoinCall))) == NULL)
        return no_memory();
    call->work = (double)stored;
    j->call = *c;
    j->call.threads = call->work < ELEMENTS_WORTH_SHARING ? 1 : s->spec->threads;
    *(JoinCall *)call->params = *j;
    call->is_independent = 1;
    call->uses_threads = j->call.threads > 1;
    status = set_operands(s->p, call, 4 * n, reads, 3, (const Operand **)z);
    for (k = 0; k < 3 && status == DONE; k++)
        status = give_output(s->p, k, z[k]);
    return status;
}

/* ---- entries in any order, sorted, those at one place added up */

/* Sort the rows of ``w`` by ``run``, in the spare memory. */
static int sort_rows(Frame *frame, SparseWork *w, const SparseCall *c, rows_function *run)
{
    w->z = data_at(frame, &c->spare[0]);
    w->z_indices = data_at(frame, &c->spare[1]);
    w->counts = data_at(frame, &c->counts);
    w->spare = data_at(frame, &c->memory);
    w->spare_indices = w->spare + c->bytes;
    share_rows(w, c, run);
    return count_entries(frame, c, w->x.rows);
}

/* Sort rows of entries that lie there. */
static int tidy(Frame *frame, const SparseCall *c, int64_t rows)
{
    SparseWork w = {0};
    w.x.indptr = data_at(frame, &c->more[3]);
    w.x.rows = rows;
    return sort_rows(frame, &w, c, c->values->tidy_rows);
}

static int run_tidy_rows(const void *params, Frame *frame)
{
    const SparseCall *c = (const SparseCall *)params;
    Compressed x;
    if (!sparse_of(frame, c, &c->x, 0, &x))
        return DECLINED;
    memcpy(data_at(frame, &c->spare[0]), x.data, (size_t)(c->x.stored * c->itemsize));
    memcpy(data_at(frame, &c->spare[1]), x.indices, (size_t)(c->x.stored * index_width(c)));
    memcpy(data_at(frame, &c->more[3]), x.indptr, (size_t)((c->x.rows + 1) * index_width(c)));
    return tidy(frame, c, c->x.rows);
}

static int run_put_rows(const void *params, Frame *frame)
{
    const SparseCall *c = (const SparseCall *)params;
    const char *ids = data_at(frame, &c->more[0]);
    Compressed x;
    if (!sparse_of(frame, c, &c->x, 0, &x) || !c->loops->indices_fit(ids, c->x.rows, c->n))
        return DECLINED;
    c->loops->bucket_rows(&x, ids, c->n, c->itemsize, (int64_t *)data_at(frame, &c->counts),
                          data_at(frame, &c->more[3]), data_at(frame, &c->spare[0]),
                          data_at(frame, &c->spare[1]));
    return tidy(frame, c, c->n);
}

static int run_put_entries(const void *params, Frame *frame)
{
    const SparseCall *c = (const SparseCall *)params;
    const char *major = data_at(frame, &c->more[0]), *minor = data_at(frame, &c->x.indices);
    const int64_t columns = number_at(frame, &c->more[1]);
    if (!c->loops->indices_fit(major, c->x.stored, c->n) ||
        !c->loops->indices_fit(minor, c->x.stored, columns) ||
        (c->loops == &index_loops_i32 && (c->n > INT32_MAX || columns > INT32_MAX)))
        return DECLINED;
    c->loops->bucket_entries(data_at(frame, &c->x.data), major, minor, c->x.stored, c->n, c->itemsize,
                             (int64_t *)data_at(frame, &c->counts), data_at(frame, &c->more[3]),
                             data_at(frame, &c->spare[0]), data_at(frame, &c->spare[1]));
    return tidy(frame, c, c->n);
}

static int run_pack_tidy(const void *params, Frame *frame)
{
    const SparseCall *c = (const SparseCall *)params;
    SparseWork w = {0};
    w.x.indptr = data_at(frame, &c->more[3]);
    w.x.rows = c->n;
    w.z = data_at(frame, &c->z[0]);
    w.z_indices = data_at(frame, &c->z[1]);
    w.z_indptr = data_at(frame, &c->z[2]);
    w.dense = data_at(frame, &c->spare[0]);
    w.other = data_at(frame, &c->spare[1]);
    c->loops->sum_counts((const int64_t *)data_at(frame, &c->counts), c->n, w.z_indptr);
    return share_rows(&w, c, c->loops->pack);
}

/* Emit and run the call that sorts rows, of values that are moved while they are sorted. */
static int begin_to_sort(SparsePlan *s, call_function *run, const char *name, int type, int itemsize,
                         SparseState **found)
{
    const int64_t half = s->call.x.stored / 2;
    s->spare_type = type;
    s->spare_bytes = itemsize;
    if (!take_memory(s, half * itemsize, half * index_bytes(s)))
        return no_memory();
    return count_first(s, run, name, NPY_INT64, s->call.n, 16.0 * (double)s->call.x.stored, found);
}

/* Emit and run the call that puts entries into c->n rows and sorts these. */
static int begin_tidy(SparsePlan *s, call_function *run, const char *name, SparseState **found)
{
    SparseCall *c = &s->call;
    const int64_t pointers = c->n + 1;
    Operand *starts;
    if (s->index_type == NPY_INT32 && c->x.stored > INT32_MAX)
        return DECLINED;
    starts = new_scratch(s->p, s->index_type, index_bytes(s), 1, &pointers);
    if (starts == NULL)
        return no_memory();
    c->more[3] = placed(starts);
    s->also_written = starts;
    return begin_to_sort(s, run, name, s->type, c->itemsize, found);
}

static int finish_tidy(const SparseState *state, Planner *p)
{
    return fill_counted(state, run_pack_tidy, "pack rows", state->plan.type,
                        state->plan.call.itemsize, state->plan.call.n, p);
}

static int plan_put(SparsePlan *s, const SparseState *state)
{
    SparseState *fresh = NULL;
    if (state == NULL) {
        const Operand *ids;
        Operand *n;
        int status;
        if (!read_matrix(s, 0, 1, &s->call.x) || (ids = read_indices(s, 3)) == NULL ||
            ids->size != s->call.x.rows || (n = read_scalar(s, 4)) == NULL || !read_loops(s))
            return DECLINED;
        status = read_length(s, n, &s->call.n);
        if (status != DONE)
            return status;
        s->call.more[0] = placed(ids);
        status = begin_tidy(s, run_put_rows, "put rows", &fresh);
        if (status != DONE)
            return status;
        state = fresh;
    }
    return finish_tidy(state, s->p);
}

static int plan_triplets(SparsePlan *s, const SparseState *state)
{
    SparseState *fresh = NULL;
    if (state == NULL) {
        SparseCall *c = &s->call;
        const Operand *data, *major, *minor, *m;
        Operand *n;
        int status;
        if ((data = read_values(s, 0, 1)) == NULL || (major = read_indices(s, 1)) == NULL ||
            (minor = read_indices(s, 2)) == NULL || (n = read_scalar(s, 3)) == NULL ||
            (m = read_scalar(s, 4)) == NULL || data->size != major->size ||
            data->size != minor->size || !read_loops(s))
            return DECLINED;
        status = read_length(s, n, &c->n);
        if (status != DONE)
            return status;
        c->x.data = placed(data);
        c->x.indices = placed(minor);
        c->x.stored = data->size;
        c->more[0] = placed(major);
        c->more[1] = placed(m);
        status = begin_tidy(s, run_put_entries, "put entries", &fresh);
        if (status != DONE)
            return status;
        state = fresh;
    }
    return finish_tidy(state, s->p);
}

/* ---- patterns of users */

static int run_order_blocks(const void *params, Frame *frame)
{
    const SparseCall *c = (const SparseCall *)params;
    SparseWork w = {0};
    return sparse_of(frame, c, &c->x, 0, &w.x) ? sort_rows(frame, &w, c, c->loops->order_blocks) : DECLINED;
}

static int run_add_blocks(const void *params, Frame *frame)
{
    const SparseCall *c = (const SparseCall *)params;
    SparseWork w = {0};
    if (!sparse_of(frame, c, &c->x, 0, &w.x))
        return DECLINED;
    w.y.data = data_at(frame, &c->spare[0]);
    w.y.indices = data_at(frame, &c->spare[1]);
    w.columns = c->steps[0] * c->steps[1];
    w.z = data_at(frame, &c->z[0]);
    w.z_indices = data_at(frame, &c->z[1]);
    w.z_indptr = data_at(frame, &c->z[2]);
    c->loops->sum_counts((const int64_t *)data_at(frame, &c->counts), c->x.rows, w.z_indptr);
    return share_rows(&w, c, c->values->add_blocks);
}

/* Write whether a pattern is canonical; it is declined if it is none at all. */
static int run_check_canonical(const void *params, Frame *frame)
{
    const SparseCall *c = (const SparseCall *)params;
    SparseWork w = {0};
    if (!sparse_of(frame, c, &c->x, INT64_MAX, &w.x))
        return DECLINED;
    if (c->has_base) {
        w.x.columns = number_at(frame, &c->more[1]);
        if (number_at(frame, &c->more[0]) != w.x.rows ||
            (c->loops == &index_loops_i32 && (w.x.rows > INT32_MAX || w.x.columns > INT32_MAX)))
            return DECLINED;
    }
    *(int64_t *)data_at(frame, &c->count) = is_canonical(c->loops, &w, c->threads);
    return c->loops->indices_fit(w.x.indices, c->x.stored, w.x.columns) ? DONE : DECLINED;
}

static int plan_canonical(SparsePlan *s, const SparseState *state)
{
    SparseCall *c = &s->call;
    SparseState *fresh = NULL;
    int64_t is_canonical;
    int j, status;
    if (state == NULL) {
        Operand *found;
        const Operand *n, *m;
        if (!read_entries(s, &c->x, c->steps) || !read_loops(s))
            return DECLINED;
        if (s->p->instruction->n_inputs > 3) {
            if ((n = read_scalar(s, 3)) == NULL || (m = read_scalar(s, 4)) == NULL)
                return DECLINED;
            c->has_base = 1;
            c->more[0] = placed(n);
            c->more[1] = placed(m);
        }
        found = new_scratch(s->p, NPY_INT64, 8, 0, NULL);
        if (found == NULL)
            return no_memory();
        c->count = placed(found);
        status = emit_sparse(s, run_check_canonical, "check pattern", (double)c->x.stored, 1, &found);
        if (status == DONE)
            status = guarded_number(s->p, found, &is_canonical);
        if (status == DONE && is_canonical) {
            for (j = 0; j < 3 && status == DONE; j++)
                status = give_output(s->p, j, input_of(s->p, j));
            return status;
        }
        c->n = c->x.rows;
        if (status == DONE)
            status = c->is_of_blocks
                         ? begin_to_sort(s, run_order_blocks, "sort blocks", NPY_INT64, 8, &fresh)
                         : begin_tidy(s, run_tidy_rows, "sort rows", &fresh);
        if (status != DONE)
            return status;
        state = fresh;
    }
    return state->plan.call.is_of_blocks
               ? fill_counted(state, run_add_blocks, "add blocks", state->plan.type,
                              state->plan.call.itemsize, state->plan.call.n, s->p)
               : finish_tidy(state, s->p);
}

/* ---- the elements of a dense matrix that are not 0 */

static void dense_rows(const Frame *frame, const SparseCall *c, SparseWork *w)
{
    w->dense = data_at(frame, &c->more[0]);
    w->steps[0] = c->steps[0];
    w->steps[1] = c->steps[1];
    w->columns = c->x.rows;
    w->y.columns = c->columns;
}

static int run_count_dense(const void *params, Frame *frame)
{
    const SparseCall *c = (const SparseCall *)params;
    SparseWork w = {0};
    dense_rows(frame, c, &w);
    w.counts = data_at(frame, &c->counts);
    share_parts(&w, c, c->values->count_dense, NULL);
    return count_entries(frame, c, c->x.rows);
}

static int run_take_dense(const void *params, Frame *frame)
{
    const SparseCall *c = (const SparseCall *)params;
    SparseWork w = {0};
    dense_rows(frame, c, &w);
    w.z = data_at(frame, &c->z[0]);
    w.z_indices = data_at(frame, &c->z[1]);
    w.z_indptr = data_at(frame, &c->z[2]);
    c->loops->sum_counts((const int64_t *)data_at(frame, &c->counts), c->x.rows, w.z_indptr);
    return share_parts(&w, c, c->values->take_dense, NULL);
}

static int plan_nonzero_entries(SparsePlan *s, const SparseState *state)
{
    SparseState *fresh = NULL;
    if (state == NULL) {
        SparseCall *c = &s->call;
        const Operand *x = input_of(s->p, 0);
        int status;
        if (!is_plain(x) || x->ndim != 2 || x->shape[0] > INT32_MAX || x->shape[1] > INT32_MAX)
            return DECLINED;
        s->reads[s->n_reads++] = x;
        s->type = known_type(x);
        s->index_type = NPY_INT32;
        c->loops = index_loops_of(NPY_INT32);
        c->itemsize = x->itemsize;
        if (!read_loops(s))
            return DECLINED;
        c->more[0] = placed(x);
        c->steps[0] = x->strides[0];
        c->steps[1] = x->strides[1];
        c->x.rows = x->shape[0];
        c->columns = x->shape[1];
        status = count_first(s, run_count_dense, "count entries", NPY_INT64, c->x.rows,
                             (double)x->size, &fresh);
        if (status != DONE)
            return status;
        state = fresh;
    }
    return fill_counted(state, run_take_dense, "take entries", state->plan.type,
                        state->plan.call.itemsize, state->plan.call.x.rows, s->p);
}

#endif
