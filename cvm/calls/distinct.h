/* The distinct elements of an array: it is sorted, and runs of equal elements are found. */
#ifndef SYMCOMP_DISTINCT_H
#define SYMCOMP_DISTINCT_H

#include "sorting.h"

typedef struct {
    int index, inverse, counts;
} DistinctSpec;

typedef struct {
    const Operand *x, *sorted, *order, *memory, *starts, *count;
    Place values, index, inverse, counts;
    PyArray_SortFunc *sort;
    PyArray_ArgSortFunc *argsort;
    int has_index, has_inverse, has_counts;
    int64_t n, n_distinct;
} DistinctCall;

/* Sort the elements, and find where runs of equal ones begin. */
static int run_find_runs(const void *params, Frame *frame)
{
    const DistinctCall *c = (const DistinctCall *)params;
    const Operand *s = c->sorted;
    char *sorted = frame->address[s->storage->index] + s->offset;
    int64_t *starts = (int64_t *)(frame->address[c->starts->storage->index] + c->starts->offset);
    int64_t count, i;
    if (c->order != NULL) {
        int64_t *order = (int64_t *)(frame->address[c->order->storage->index] + c->order->offset);
        const char *x = frame->address[c->x->storage->index] + c->x->offset;
        if (c->has_index) {
            order_of(kind_of_type(s->type), s->itemsize, c->n, x, s->itemsize, order,
                     frame->address[c->memory->storage->index] + c->memory->offset);
        } else {
            for (i = 0; i < c->n; i++)
                order[i] = i;
            if (c->n > 1 && c->argsort((char *)x, (npy_intp *)order, c->n, NULL) < 0)
                return no_memory_to_sort(frame);
        }
        take_line(s->itemsize, c->n, x, order, sorted);
    } else if (c->n > 1 && c->sort(sorted, c->n, NULL) < 0) {
        return no_memory_to_sort(frame);
    }
    count = list_runs(kind_of_type(s->type), s->itemsize, c->n, sorted, starts);
    if (count < 0)
        return DECLINED;
    *(int64_t *)(frame->address[c->count->storage->index] + c->count->offset) = count;
    return DONE;
}

static int run_distinct(const void *params, Frame *frame)
{
    const DistinctCall *c = (const DistinctCall *)params;
    const Operand *s = c->sorted;
    const char *sorted = frame->address[s->storage->index] + s->offset;
    const int64_t *starts =
        (const int64_t *)(frame->address[c->starts->storage->index] + c->starts->offset);
    const int64_t *order =
        c->order == NULL
            ? NULL
            : (const int64_t *)(frame->address[c->order->storage->index] + c->order->offset);
    int64_t *inverse, *counts, k, i;
    take_line(s->itemsize, c->n_distinct, sorted, starts, data_at(frame, &c->values));
    if (c->has_index)
        take_line(8, c->n_distinct, (const char *)order, starts, data_at(frame, &c->index));
    if (c->has_inverse)
        for (k = 0, inverse = (int64_t *)data_at(frame, &c->inverse); k < c->n_distinct; k++)
            for (i = starts[k]; i < starts[k + 1]; i++)
                inverse[order[i]] = k;
    if (c->has_counts)
        for (k = 0, counts = (int64_t *)data_at(frame, &c->counts); k < c->n_distinct; k++)
            counts[k] = starts[k + 1] - starts[k];
    return DONE;
}

/* Emit and run: sort the elements, and find where runs of equal ones begin. NULL: with an exception. */
static const DistinctCall *find_runs(Planner *p, const DistinctSpec *spec, Operand *x)
{
    DistinctCall *c = (DistinctCall *)pool_new(&p->pool, sizeof(DistinctCall));
    Operand *wide = orderable(p, x), *flat = wide == NULL ? NULL : in_c_order(p, wide);
    const Operand *read;
    int64_t n = x->size, more = n + 1;
    Call *call;
    flat = flat == NULL ? NULL : new_view(p, flat, 0, 1, &n, NULL);
    if (c == NULL || flat == NULL)
        goto failed;
    c->n = n;
    c->x = read = flat;
    c->sort = functions_of(flat->type)->sort[NPY_QUICKSORT];
    c->argsort = functions_of(flat->type)->argsort[NPY_QUICKSORT];
    c->has_index = spec->index;
    c->has_inverse = spec->inverse;
    c->has_counts = spec->counts;
    c->sorted = new_scratch(p, flat->type, flat->itemsize, 1, &n);
    c->starts = new_scratch(p, NPY_INT64, 8, 1, &more);
    c->count = new_scratch(p, NPY_INT64, 8, 0, NULL);
    if (c->sorted == NULL || c->starts == NULL || c->count == NULL)
        goto failed;
    if (spec->index || spec->inverse) {
        const int64_t bytes =
            spec->index ? memory_of_order(kind_of_type(flat->type), flat->itemsize, n) : 0;
        c->order = new_scratch(p, NPY_INT64, 8, 1, &n);
        c->memory = new_scratch(p, NPY_UINT8, 1, 1, &bytes);
        if (c->order == NULL || c->memory == NULL)
            goto failed;
    } else if (emit_copy(p, c->sorted, flat) != DONE) {
        return NULL;
    }
    call = new_call(p, run_find_runs, "find runs", sizeof(DistinctCall));
    if (call == NULL)
        goto failed;
    *(DistinctCall *)call->params = *c;
    call->work = work_of_sorting(1, n);
    if (set_operands(p, call, 1, &read, 1, &c->count) != DONE)
        return NULL;
    return c;
failed:
    no_memory();
    return NULL;
}

/* The distinct elements of x, sorted; then, as the flags say, where each occurs first, which of them
   each element is, and how often each occurs. */
static int plan_distinct(Planner *p, const void *given)
{
    const DistinctSpec *spec = (const DistinctSpec *)given;
    const DistinctCall *found = (const DistinctCall *)p->saved;
    Operand *x = input_of(p, 0), *values, *wide;
    Operand *extra[3] = {NULL, NULL, NULL};
    DistinctCall ready;
    Call *call;
    int64_t count;
    int type, itemsize, at = 1, k, status;
    if (!is_plain(x) || functions_of(x->type) == NULL)
        return DECLINED;
    type = x->type;
    itemsize = x->itemsize;
    if (found == NULL) {
        found = find_runs(p, spec, x);
        if (found == NULL)
            return RAISED;
        status = run_planned(p);
        if (status == DONE)
            status = checkpoint(p, found);
        if (status != DONE)
            return status;
    }
    ready = *found;
    status = guarded_number(p, (Operand *)ready.count, &count);
    if (status != DONE)
        return status;
    ready.n_distinct = count;
    values = new_output_apart(p, 0, type, itemsize, 1, &count, NULL);
    wide = type == ready.sorted->type
               ? values
               : new_scratch(p, ready.sorted->type, ready.sorted->itemsize, 1, &count);
    if (values == NULL || wide == NULL)
        return no_memory();
    ready.values = placed(wide);
    if (spec->index) {
        extra[at - 1] = new_output_apart(p, at, NPY_INT64, 8, 1, &count, NULL);
        at++;
    }
    if (spec->inverse) {
        extra[at - 1] = new_output_apart(p, at, NPY_INT64, 8, x->ndim, x->shape, NULL);
        at++;
    }
    if (spec->counts) {
        extra[at - 1] = new_output_apart(p, at, NPY_INT64, 8, 1, &count, NULL);
        at++;
    }
    for (k = 0; k < at - 1; k++)
        if (extra[k] == NULL)
            return no_memory();
    k = 0;
    if (spec->index)
        ready.index = placed(extra[k++]);
    if (spec->inverse)
        ready.inverse = placed(extra[k++]);
    if (spec->counts)
        ready.counts = placed(extra[k++]);
    call = new_call(p, run_distinct, "distinct", sizeof(DistinctCall));
    if (call == NULL)
        return no_memory();
    *(DistinctCall *)call->params = ready;
    call->work = (double)ready.n;
    if (set_operands(p, call, 1, &ready.sorted, 1, (const Operand **)&wide) != DONE)
        return RAISED;
    if (wide != values) {
        WideningCall *c;
        call = new_call(p, run_narrowing, "cast", sizeof(WideningCall));
        if (call == NULL)
            return no_memory();
        c = (WideningCall *)call->params;
        c->from = placed(wide);
        c->to = placed(values);
        c->n = count;
        if (set_operands(p, call, 1, (const Operand **)&wide, 1, (const Operand **)&values) != DONE)
            return RAISED;
    }
    if (give_output(p, 0, values) != DONE)
        return RAISED;
    for (k = 0; k < at - 1; k++)
        if (give_output(p, 1 + k, extra[k]) != DONE)
            return RAISED;
    return DONE;
}

#endif
