/* Sorting, by NumPy's functions, and positions that sort; searching; the elements that are not 0. */
#ifndef SYMCOMP_SORTING_H
#define SYMCOMP_SORTING_H

#include "../plan/arrays.h"
#include "axis.h"
#include "products.h"

typedef struct {
    int axis, positions;
} SortSpec;

/* ---- sorting */

/* NumPy's function for a dtype, which takes two elements or more, and memory for a slice that does not lie in
   one piece. */
struct sorter {
    PyArray_SortFunc *sort;
    int itemsize;
    char *elements;
    int *failed;
};

/* A dtype, memory to order elements of it, and memory for positions that do not lie in one piece. */
struct orderer {
    char kind;
    int itemsize;
    char *memory;
    int64_t *places;
};

#define COPY_LINE(SIZE)                                                                            \
    case SIZE:                                                                                     \
        for (i = 0; i < n; i++)                                                                    \
            memcpy(to + i * to_step, from + i * from_step, SIZE);                                  \
        break
#define TAKE_LINE(SIZE)                                                                            \
    case SIZE:                                                                                     \
        for (i = 0; i < n; i++)                                                                    \
            memcpy(to + i * SIZE, from + places[i] * SIZE, SIZE);                                  \
        break
#define OF_EACH_SIZE(LINE)                                                                         \
    LINE(1);                                                                                       \
    LINE(2);                                                                                       \
    LINE(4);                                                                                       \
    LINE(8);                                                                                       \
    LINE(16)

static void copy_line(int itemsize, int64_t n, const char *from, int64_t from_step, char *to,
                      int64_t to_step)
{
    int64_t i;
    switch (itemsize) {
        OF_EACH_SIZE(COPY_LINE);
    }
}

/* The elements at places of an array, side by side. */
static void take_line(int itemsize, int64_t n, const char *from, const int64_t *places, char *to)
{
    int64_t i;
    switch (itemsize) {
        OF_EACH_SIZE(TAKE_LINE);
    }
}

/* Sort slices where they lie. */
static void sort_lines(int64_t n, int64_t m, const char *x, int64_t x_step, int64_t x_line,
                       const char *second, int64_t second_step, int64_t second_line, char *out,
                       int64_t out_step, int64_t out_line)
{
    const struct sorter *s = (const struct sorter *)second;
    for (; n > 1 && m > 0; m--, out += out_line) {
        const int in_place = out_step == s->itemsize;
        char *line = in_place ? out : s->elements;
        if (!in_place)
            copy_line(s->itemsize, n, out, out_step, line, s->itemsize);
        *s->failed |= s->sort(line, n, NULL) < 0;
        if (!in_place)
            copy_line(s->itemsize, n, line, s->itemsize, out, out_step);
    }
    (void)x, (void)x_step, (void)x_line, (void)second_step, (void)second_line;
}

/* The positions that sort slices. */
static void argsort_lines(int64_t n, int64_t m, const char *x, int64_t x_step, int64_t x_line,
                          const char *second, int64_t second_step, int64_t second_line, char *out,
                          int64_t out_step, int64_t out_line)
{
    const struct orderer *o = (const struct orderer *)second;
    for (; m > 0; m--, x += x_line, out += out_line) {
        int64_t *places = out_step == 8 ? (int64_t *)out : o->places;
        order_of(o->kind, o->itemsize, n, x, x_step, places, o->memory);
        if ((char *)places != out)
            copy_line(8, n, (const char *)places, 8, out, out_step);
    }
    (void)second_step, (void)second_line;
}

typedef struct {
    struct sorter sorter;
    Slices slices;
    Place z, elements;
} SortCall;

typedef struct {
    struct orderer orderer;
    Slices slices;
    Place x, z, memory, places;
} ArgsortCall;

static int no_memory_to_sort(Frame *frame)
{
    take_gil(frame->runner);
    return no_memory();
}

static int run_sort(const void *params, Frame *frame)
{
    const SortCall *c = (const SortCall *)params;
    struct sorter s = c->sorter;
    char *z = data_at(frame, &c->z);
    int failed = 0;
    s.elements = data_at(frame, &c->elements);
    s.failed = &failed;
    run_slices(sort_lines, &c->slices, z, (const char *)&s, z);
    return failed ? no_memory_to_sort(frame) : DONE;
}

static int run_argsort(const void *params, Frame *frame)
{
    const ArgsortCall *c = (const ArgsortCall *)params;
    struct orderer o = c->orderer;
    o.memory = data_at(frame, &c->memory);
    o.places = (int64_t *)data_at(frame, &c->places);
    run_slices(argsort_lines, &c->slices, data_at(frame, &c->x), (const char *)&o,
               data_at(frame, &c->z));
    return DONE;
}

/* The functions by which NumPy sorts numbers, equal ones in any order; they need neither Python nor memory. NULL: there
   are none. */
static PyArray_ArrFuncs *functions_of(int type)
{
    PyArray_ArrFuncs *found;
    PyArray_Descr *dtype;
    if (!PyTypeNum_ISNUMBER(type) && !PyTypeNum_ISBOOL(type))
        return NULL;
    dtype = PyArray_DescrFromType(type);
    found = PyDataType_GetArrFuncs(dtype);
    Py_DECREF(dtype); /* NumPy keeps the dtypes of numbers. */
    return found->sort[NPY_QUICKSORT] && found->argsort[NPY_QUICKSORT] ? found : NULL;
}

static double work_of_sorting(int64_t slices, int64_t n)
{
    return (double)slices * (double)n * (n > 1 ? log2((double)n) : 1);
}

/* The slices of x along an axis, and of z, which may be x itself. */
static Slices slices_along(const Operand *x, const Operand *z, int along)
{
    Slices found = {0};
    int axis;
    found.n = x->shape[along];
    found.x_step = x->strides[along];
    found.out_step = z->strides[along];
    for (axis = 0; axis < x->ndim; axis++)
        if (axis != along)
            add_axis_across(&found, x->shape[axis], x->strides[axis], 0, z->strides[axis]);
    return found;
}

/* Give z, which a call sets along an axis of x. */
static int give_sorted(Planner *p, Call *call, const Operand *x, int along, int n_writes,
                       const Operand **writes, Operand *z)
{
    const int64_t n = x->shape[along];
    call->work = work_of_sorting(n > 0 ? x->size / n : 0, n);
    call->is_independent = 1;
    return set_operands(p, call, 1, &x, n_writes, writes) == DONE ? give_output(p, 0, z) : RAISED;
}

/* x in order along an axis. */
static int plan_elements(Planner *p, const Operand *x, int along)
{
    Operand *z = new_output_apart(p, 0, x->type, x->itemsize, x->ndim, x->shape, NULL);
    const Operand *writes[2] = {z};
    SortCall ready = {.sorter = {.sort = functions_of(x->type)->sort[NPY_QUICKSORT], .itemsize = x->itemsize}};
    Call *call;
    int n_writes = 1;
    if (z == NULL)
        return no_memory();
    if (emit_copy(p, z, x) != DONE)
        return RAISED;
    if (z->strides[along] != z->itemsize) {
        const Operand *line = writes[n_writes++] = new_scratch(p, z->type, z->itemsize, 1, &z->shape[along]);
        if (line == NULL)
            return no_memory();
        ready.elements = placed(line);
    }
    call = new_call(p, run_sort, "sort", sizeof(SortCall));
    if (call == NULL)
        return no_memory();
    ready.z = placed(z);
    ready.slices = slices_along(z, z, along);
    *(SortCall *)call->params = ready;
    return give_sorted(p, call, z, along, n_writes, writes, z);
}

/* The positions that sort x along an axis. */
static int plan_positions_in_order(Planner *p, const Operand *x, int along)
{
    const char kind = kind_of_type(x->type);
    const int64_t n = x->shape[along], bytes = memory_of_order(kind, x->itemsize, n);
    Operand *z = new_output_apart(p, 0, NPY_INT64, 8, x->ndim, x->shape, NULL);
    const Operand *memory = bytes < 0 ? NULL : new_scratch(p, NPY_UINT8, 1, 1, &bytes);
    const Operand *writes[3] = {z, memory};
    ArgsortCall ready = {.orderer = {.kind = kind, .itemsize = x->itemsize}};
    Call *call;
    int n_writes = 2;
    if (bytes < 0)
        return DECLINED;
    if (z == NULL || memory == NULL)
        return no_memory();
    if (z->strides[along] != 8) {
        const Operand *line = writes[n_writes++] = new_scratch(p, NPY_INT64, 8, 1, &n);
        if (line == NULL)
            return no_memory();
        ready.places = placed(line);
    }
    call = new_call(p, run_argsort, "argsort", sizeof(ArgsortCall));
    if (call == NULL)
        return no_memory();
    ready.x = placed(x);
    ready.z = placed(z);
    ready.memory = placed(memory);
    ready.slices = slices_along(x, z, along);
    *(ArgsortCall *)call->params = ready;
    return give_sorted(p, call, x, along, n_writes, writes, z);
}

/* x in order along an axis, or the positions that sort it. */
static int plan_sort(Planner *p, const void *given)
{
    const SortSpec *spec = (const SortSpec *)given;
    const Operand *x = input_of(p, 0);
    if (!is_plain(x) || spec->axis >= x->ndim || functions_of(x->type) == NULL)
        return DECLINED;
    return spec->positions ? plan_positions_in_order(p, x, spec->axis) : plan_elements(p, x, spec->axis);
}

/* ---- searching */

typedef struct {
    const Operand *x, *second, *z;
    int side;
} SearchCall;

/* An operand as an array for a function of NumPy; with the GIL. New reference. */
static PyArrayObject *shown(const Frame *frame, const Operand *x)
{
    return (PyArrayObject *)array_over(frame, x, NULL);
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

static int run_search(const void *params, Frame *frame)
{
    const SearchCall *c = (const SearchCall *)params;
    PyArrayObject *x = shown(frame, c->x), *v = shown(frame, c->second);
    PyObject *found = x == NULL || v == NULL
                          ? NULL
                          : PyArray_SearchSorted(x, (PyObject *)v, (NPY_SEARCHSIDE)c->side, NULL);
    Py_XDECREF(x);
    Py_XDECREF(v);
    return take_positions(found, frame, c->z);
}

/* Where the second input would go in the first, a sorted vector. */
static int plan_search(Planner *p, const void *given)
{
    const int right = ((const AxisSpec *)given)->axis;
    const Operand *x = input_of(p, 0), *v = input_of(p, 1), *reads[2] = {x, v};
    Operand *z;
    Call *call;
    SearchCall *c;
    int status;
    if (!is_plain(x) || !is_plain(v) || x->ndim != 1)
        return DECLINED;
    z = new_output_apart(p, 0, NPY_INT64, 8, v->ndim, v->shape, NULL);
    call = new_call(p, run_search, "searchsorted", sizeof(SearchCall));
    if (z == NULL || call == NULL)
        return no_memory();
    c = (SearchCall *)call->params;
    c->x = reads[0];
    c->second = reads[1];
    c->z = z;
    c->side = right ? NPY_SEARCHRIGHT : NPY_SEARCHLEFT;
    call->needs_gil = 1;
    call->work = (double)v->size;
    status = set_operands(p, call, 2, reads, 1, (const Operand **)&z);
    return status == DONE ? give_output(p, 0, z) : status;
}

/* ---- elements that are not 0 */

typedef struct {
    Place x, count, out[MOST_AXES];
    int ndim, type;
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

#endif
