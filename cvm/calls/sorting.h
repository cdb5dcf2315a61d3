/* Sorting and searching, by NumPy's functions; the elements that are not 0, and the distinct ones. */
#ifndef SYMCOMP_SORTING_H
#define SYMCOMP_SORTING_H

#include "../plan/arrays.h"
#include "axis.h"
#include "products.h"

typedef struct {
    int axis, positions;
} SortSpec;

typedef struct {
    const Operand *x, *second, *z;
    int axis, side;
} SortCall;

/* An operand as an array for a function of NumPy; with the GIL. New reference. */
static PyArrayObject *shown(const Frame *frame, const Operand *x)
{
    return (PyArrayObject *)array_over(frame, x, NULL);
}

static int run_sort(const void *params, Frame *frame)
{
    const SortCall *c = (const SortCall *)params;
    PyArrayObject *z = shown(frame, c->z);
    int failed = z == NULL || PyArray_Sort(z, c->axis, NPY_QUICKSORT) < 0;
    Py_XDECREF(z);
    return failed ? RAISED : DONE;
}

/* Copy an array of positions that NumPy made to where they belong. Takes over the reference. */
static int take_positions(PyObject *found, const Frame *frame, const Operand *z)
{
    PyArrayObject *target;
    int failed;
    if (found == NULL)
        return RAISED;
    target = shown(frame, z);
    failed = target == NULL || PyArray_CopyInto(target, (PyArrayObject *)found) < 0;
    Py_XDECREF(target);
    Py_DECREF(found);
    return failed ? RAISED : DONE;
}

static int run_argsort(const void *params, Frame *frame)
{
    const SortCall *c = (const SortCall *)params;
    PyArrayObject *x = shown(frame, c->x);
    PyObject *found = x == NULL ? NULL : PyArray_ArgSort(x, c->axis, NPY_MERGESORT);
    Py_XDECREF(x);
    return take_positions(found, frame, c->z);
}

static int run_search(const void *params, Frame *frame)
{
    const SortCall *c = (const SortCall *)params;
    PyArrayObject *x = shown(frame, c->x), *v = shown(frame, c->second);
    PyObject *found = x == NULL || v == NULL
                          ? NULL
                          : PyArray_SearchSorted(x, (PyObject *)v, (NPY_SEARCHSIDE)c->side, NULL);
    Py_XDECREF(x);
    Py_XDECREF(v);
    return take_positions(found, frame, c->z);
}

static int emit_sort(Planner *p, call_function *run, const char *name, const Operand *x,
                     const Operand *second, const Operand *z, int axis, int side)
{
    Call *call = new_call(p, run, name, sizeof(SortCall));
    const Operand *reads[2] = {x, second};
    SortCall *c;
    if (call == NULL)
        return no_memory();
    c = (SortCall *)call->params;
    c->x = x;
    c->second = second;
    c->z = z;
    c->axis = axis;
    c->side = side;
    call->needs_gil = 1;
    call->work = (double)x->size;
    return set_operands(p, call, second == NULL ? 1 : 2, reads, 1, &z);
}

/* x in order along an axis, or the positions that sort it. */
static int plan_sort(Planner *p, const void *given)
{
    const SortSpec *spec = (const SortSpec *)given;
    const Operand *x = input_of(p, 0);
    Operand *z;
    int status;
    if (!is_plain(x) || spec->axis >= x->ndim)
        return DECLINED;
    if (spec->positions) {
        z = new_output_apart(p, 0, NPY_INT64, 8, x->ndim, x->shape, NULL);
        status = z == NULL ? no_memory()
                           : emit_sort(p, run_argsort, "argsort", x, NULL, z, spec->axis, 0);
    } else {
        z = new_output_apart(p, 0, x->type, x->itemsize, x->ndim, x->shape, NULL);
        status = z == NULL ? no_memory() : emit_copy(p, z, x);
        if (status == DONE)
            status = emit_sort(p, run_sort, "sort", z, NULL, z, spec->axis, 0);
    }
    return status == DONE ? give_output(p, 0, z) : status;
}

/* Where the second input would go in the first, a sorted vector. */
static int plan_search(Planner *p, const void *given)
{
    const int right = ((const AxisSpec *)given)->axis;
    const Operand *x = input_of(p, 0), *v = input_of(p, 1);
    Operand *z;
    int status;
    if (!is_plain(x) || !is_plain(v) || x->ndim != 1)
        return DECLINED;
    z = new_output_apart(p, 0, NPY_INT64, 8, v->ndim, v->shape, NULL);
    if (z == NULL)
        return no_memory();
    status = emit_sort(p, run_search, "searchsorted", x, v, z, 0,
                       right ? NPY_SEARCHRIGHT : NPY_SEARCHLEFT);
    return status == DONE ? give_output(p, 0, z) : status;
}

/* ---- elements that are not 0 */

typedef struct {
    Place x, count, out[MOST_AXES];
    int ndim, type, itemsize;
    int64_t size, shape[MOST_AXES], strides[MOST_AXES];
} NonzeroCall;

static int run_count_nonzero(const void *params, Frame *frame)
{
    const NonzeroCall *c = (const NonzeroCall *)params;
    const char *data = data_at(frame, &c->x);
    int64_t index[MOST_AXES] = {0}, offset = 0, count = 0;
    if (c->size)
        do
            count += truth_of(data + offset, c->type);
        while (next_index(c->ndim, c->shape, c->strides, index, &offset));
    *(int64_t *)data_at(frame, &c->count) = count;
    return DONE;
}

static int run_nonzero(const void *params, Frame *frame)
{
    const NonzeroCall *c = (const NonzeroCall *)params;
    const char *data = data_at(frame, &c->x);
    int64_t index[MOST_AXES] = {0}, offset = 0, *out[MOST_AXES];
    int axis;
    for (axis = 0; axis < c->ndim; axis++)
        out[axis] = (int64_t *)data_at(frame, &c->out[axis]);
    if (c->size)
        do
            if (truth_of(data + offset, c->type))
                for (axis = 0; axis < c->ndim; axis++)
                    *out[axis]++ = index[axis];
        while (next_index(c->ndim, c->shape, c->strides, index, &offset));
    return DONE;
}

typedef struct {
    NonzeroCall call;
    Operand *count;
} NonzeroState;

/* Emit and run: count the elements that are not 0. NULL: with an exception. */
static const NonzeroState *count_nonzero(Planner *p, const Operand *x)
{
    NonzeroState *state = (NonzeroState *)pool_new(&p->pool, sizeof(NonzeroState));
    Operand *count = new_scratch(p, NPY_INT64, 8, 0, NULL);
    Call *call = new_call(p, run_count_nonzero, "count nonzero", sizeof(NonzeroCall));
    NonzeroCall *c;
    if (state == NULL || count == NULL || call == NULL) {
        no_memory();
        return NULL;
    }
    c = &state->call;
    c->x = placed(x);
    c->count = placed(count);
    c->ndim = x->ndim;
    c->type = x->type;
    c->itemsize = x->itemsize;
    c->size = x->size;
    memcpy(c->shape, x->shape, (size_t)x->ndim * sizeof(int64_t));
    memcpy(c->strides, x->strides, (size_t)x->ndim * sizeof(int64_t));
    *(NonzeroCall *)call->params = *c;
    call->work = (double)x->size;
    state->count = count;
    if (set_operands(p, call, 1, &x, 1, (const Operand **)&count) != DONE ||
        run_planned(p) != DONE || checkpoint(p, state) != DONE)
        return NULL;
    return state;
}

/* The positions of the elements that are not 0, one vector for each axis. */
static int plan_nonzero(Planner *p, const void *given)
{
    const Operand *x = input_of(p, 0);
    const NonzeroState *state = (const NonzeroState *)p->saved;
    Operand *outputs[MOST_AXES];
    NonzeroCall ready;
    Call *call;
    int64_t n;
    int axis, status;
    (void)given;
    if (!is_plain(x) || x->ndim != p->instruction->n_outputs || x->ndim == 0 ||
        !(PyTypeNum_ISNUMBER(x->type) || PyTypeNum_ISBOOL(x->type)))
        return DECLINED;
    if (state == NULL)
        state = count_nonzero(p, x);
    if (state == NULL)
        return RAISED;
    ready = state->call;
    status = guarded_number(p, state->count, &n);
    if (status != DONE)
        return status;
    for (axis = 0; axis < x->ndim; axis++) {
        outputs[axis] = new_output_apart(p, axis, NPY_INT64, 8, 1, &n, NULL);
        if (outputs[axis] == NULL)
            return no_memory();
        ready.out[axis] = placed(outputs[axis]);
    }
    call = new_call(p, run_nonzero, "nonzero", sizeof(NonzeroCall));
    if (call == NULL)
        return no_memory();
    *(NonzeroCall *)call->params = ready;
    call->work = (double)x->size;
    if (set_operands(p, call, 1, &x, x->ndim, (const Operand **)outputs) != DONE)
        return RAISED;
    for (axis = 0; axis < x->ndim; axis++)
        if (give_output(p, axis, outputs[axis]) != DONE)
            return RAISED;
    return DONE;
}

/* ---- distinct elements */

typedef struct {
    int index, inverse, counts;
} DistinctSpec;

typedef struct {
    const Operand *x, *sorted, *order, *starts, *count;
    Place values, index, inverse, counts;
    int stable, has_index, has_inverse, has_counts;
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
        PyArrayObject *array = shown(frame, c->x);
        PyObject *found = array == NULL ? NULL
                                        : PyArray_ArgSort(array, 0, c->stable ? NPY_MERGESORT
                                                                              : NPY_QUICKSORT);
        Py_XDECREF(array);
        if (take_positions(found, frame, c->order) != DONE)
            return RAISED;
        for (i = 0; i < c->n; i++)
            memcpy(sorted + i * s->itemsize, x + order[i] * s->itemsize, (size_t)s->itemsize);
    } else {
        PyArrayObject *array = shown(frame, s);
        const int failed = array == NULL || PyArray_Sort(array, 0, NPY_QUICKSORT) < 0;
        Py_XDECREF(array);
        if (failed)
            return RAISED;
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
    char *values = data_at(frame, &c->values);
    int64_t k, i;
    for (k = 0; k < c->n_distinct; k++)
        memcpy(values + k * s->itemsize, sorted + starts[k] * s->itemsize, (size_t)s->itemsize);
    if (c->has_index)
        for (k = 0; k < c->n_distinct; k++)
            ((int64_t *)data_at(frame, &c->index))[k] = order[starts[k]];
    if (c->has_inverse)
        for (k = 0; k < c->n_distinct; k++)
            for (i = starts[k]; i < starts[k + 1]; i++)
                ((int64_t *)data_at(frame, &c->inverse))[order[i]] = k;
    if (c->has_counts)
        for (k = 0; k < c->n_distinct; k++)
            ((int64_t *)data_at(frame, &c->counts))[k] = starts[k + 1] - starts[k];
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
    c->stable = spec->index;
    c->has_index = spec->index;
    c->has_inverse = spec->inverse;
    c->has_counts = spec->counts;
    c->sorted = new_scratch(p, flat->type, flat->itemsize, 1, &n);
    c->starts = new_scratch(p, NPY_INT64, 8, 1, &more);
    c->count = new_scratch(p, NPY_INT64, 8, 0, NULL);
    if (c->sorted == NULL || c->starts == NULL || c->count == NULL)
        goto failed;
    if (spec->index || spec->inverse) {
        c->order = new_scratch(p, NPY_INT64, 8, 1, &n);
        if (c->order == NULL)
            goto failed;
    } else if (emit_copy(p, c->sorted, flat) != DONE) {
        return NULL;
    }
    call = new_call(p, run_find_runs, "find runs", sizeof(DistinctCall));
    if (call == NULL)
        goto failed;
    *(DistinctCall *)call->params = *c;
    call->needs_gil = 1;
    call->work = (double)n;
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
    if (!is_plain(x))
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
#if HAS_HALVES
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
#endif
    if (give_output(p, 0, values) != DONE)
        return RAISED;
    for (k = 0; k < at - 1; k++)
        if (give_output(p, 1 + k, extra[k]) != DONE)
            return RAISED;
    return DONE;
}

#endif
