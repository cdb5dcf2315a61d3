/* Sparse matrices at the edges of a plan: SciPy's objects taken apart into operands, and operands put
   together to a group, of which an object is made where a caller or Python wants one.

   Indices may be of the other dtype of indices, as SciPy often has them. What else is not as the type says
   (another dtype of entries, unsorted indices, a class of users) is declined: Python converts it, or raises
   an error. */
#ifndef SYMCOMP_SPARSE_OBJECTS_H
#define SYMCOMP_SPARSE_OBJECTS_H

#include "sparse.h"
#include "../plan/groups.h"

typedef enum { FORMAT_CSR, FORMAT_CSC, FORMAT_BSR, FORMAT_COO } SparseFormat;

/* A type of sparse matrices. */
typedef struct {
    PyObject *classes[2], *names[4];    /* SciPy's classes; the attributes: three arrays, and shape */
    int format, type, itemsize, index_type;
    int64_t shape[2];                   /* -1: any */
} SparseKind;

typedef struct {
    const SparseKind *kind;
    PyObject *make;
    int threads, checks;    /* checks: whether indices must ascend within the shape */
} SparseObjectSpec;

/* The layout of an object: the number of entries and of pointers, rows and columns of a block, NumPy's
   number of the dtype of indices. */
enum { N_ENTRIES, N_POINTERS, ROWS_OF_BLOCK, COLUMNS_OF_BLOCK, INDEX_TYPE, LAYOUT_LENGTH };

/* The arrays of an object, of which it is known that they fit together. */
typedef struct {
    PyArrayObject *arrays[3];
    int64_t shape[2];
    int64_t layout[LAYOUT_LENGTH];
} TakenApart;

static void drop_taken(TakenApart *t)
{
    int i;
    for (i = 0; i < 3; i++)
        Py_CLEAR(t->arrays[i]);
}

/* An array of a dtype, in C order; 0 if it is another one, or NULL. */
static int is_array_of(const PyArrayObject *x, int type, int ndim)
{
    return x != NULL && PyArray_CheckExact(x) && PyArray_TYPE(x) == type && PyArray_NDIM(x) == ndim &&
           PyArray_ISCARRAY_RO(x);
}

/* Read the two lengths of a shape; 0 if these are none that the type allows. */
static int read_lengths(const SparseKind *k, PyObject *shape, int64_t *lengths)
{
    int i;
    if (shape == NULL || !PyTuple_Check(shape) || PyTuple_GET_SIZE(shape) != 2)
        return 0;
    for (i = 0; i < 2; i++) {
        lengths[i] = PyLong_Check(PyTuple_GET_ITEM(shape, i))
                         ? PyLong_AsLongLong(PyTuple_GET_ITEM(shape, i))
                         : -1;
        if (lengths[i] < 0 || (k->shape[i] >= 0 && lengths[i] != k->shape[i]))
            return 0;
    }
    return 1;
}

/* Whether the lengths of the arrays are those of a matrix of this shape. */
static int lengths_fit(const SparseKind *k, const TakenApart *t)
{
    const int64_t *n = t->layout, entries = PyArray_DIM(t->arrays[1], 0);
    switch (k->format) {
    case FORMAT_COO: return n[N_ENTRIES] == entries && n[N_POINTERS] == entries;
    case FORMAT_BSR:
        return n[N_ENTRIES] == entries && n[ROWS_OF_BLOCK] > 0 && n[COLUMNS_OF_BLOCK] > 0 &&
               t->shape[0] % n[ROWS_OF_BLOCK] == 0 && t->shape[1] % n[COLUMNS_OF_BLOCK] == 0 &&
               n[N_POINTERS] == t->shape[0] / n[ROWS_OF_BLOCK] + 1;
    default:
        return n[N_ENTRIES] == entries && n[N_POINTERS] == t->shape[k->format == FORMAT_CSC] + 1;
    }
}

/* Whether the second and third array are indices of one dtype, which is noted, and the lengths fit that of
   the type. */
static int have_indices(const SparseKind *k, TakenApart *t)
{
    int type = k->index_type;
    if (t->arrays[1] == NULL || !PyArray_CheckExact(t->arrays[1]))
        return 0;
    if (PyArray_TYPE(t->arrays[1]) != type)
        type = type == NPY_INT32 ? NPY_INT64 : NPY_INT32;
    t->layout[INDEX_TYPE] = type;
    if (k->index_type == NPY_INT32 &&
        (t->shape[0] > INT32_MAX || t->shape[1] > INT32_MAX || PyArray_SIZE(t->arrays[1]) > INT32_MAX))
        return 0;
    return is_array_of(t->arrays[1], type, 1) && is_array_of(t->arrays[2], type, 1);
}

/* Take an object apart; 0 if it is not exactly as the type says, and -1 with an exception. The indices
   have not been looked at yet. */
static int take_apart(const SparseKind *k, PyObject *object, TakenApart *t)
{
    const int is_coo = k->format == FORMAT_COO, ndim = k->format == FORMAT_BSR ? 3 : 1;
    PyObject *shape, *pair;
    int i, fits;
    memset(t, 0, sizeof(TakenApart));
    if ((PyObject *)Py_TYPE(object) != k->classes[0] && (PyObject *)Py_TYPE(object) != k->classes[1])
        return 0;
    t->arrays[0] = (PyArrayObject *)PyObject_GetAttr(object, k->names[0]);
    if (!is_coo) {
        for (i = 1; i < 3; i++)
            t->arrays[i] = (PyArrayObject *)PyObject_GetAttr(object, k->names[i]);
    } else if ((pair = PyObject_GetAttr(object, k->names[1])) != NULL) {
        for (i = 0; i < 2 && PyTuple_Check(pair) && PyTuple_GET_SIZE(pair) == 2; i++)
            t->arrays[1 + i] = (PyArrayObject *)Py_NewRef(PyTuple_GET_ITEM(pair, i));
        Py_DECREF(pair);
    }
    shape = PyObject_GetAttr(object, k->names[3]);
    fits = read_lengths(k, shape, t->shape);
    Py_XDECREF(shape);
    if (PyErr_Occurred()) {
        drop_taken(t);
        return -1;
    }
    fits = fits && is_array_of(t->arrays[0], k->type, ndim) && have_indices(k, t);
    for (i = 0; fits && i < ndim; i++)
        t->layout[i == 0 ? N_ENTRIES : ROWS_OF_BLOCK + i - 1] = PyArray_DIM(t->arrays[0], i);
    if (fits)
        t->layout[N_POINTERS] = PyArray_DIM(t->arrays[2], 0);
    if (fits && lengths_fit(k, t))
        return 1;
    drop_taken(t);
    return 0;
}

/* ---- calls */

typedef struct {
    const SparseKind *kind;
    int object, storages[3];
    Place shape, layout;
} TakeApartCall;

static int run_take_apart(const void *params, Frame *frame)
{
    const TakeApartCall *c = (const TakeApartCall *)params;
    TakenApart t;
    int i, status;
    if (before_python(frame->runner) < 0)
        return RAISED;
    status = take_apart(c->kind, frame->object[c->object], &t);
    if (status <= 0)
        return status < 0 ? RAISED : DECLINED;
    for (i = 0; i < 3; i++) {
        Py_XSETREF(frame->object[c->storages[i]], (PyObject *)t.arrays[i]);
        frame->address[c->storages[i]] = PyArray_BYTES(t.arrays[i]);
    }
    memcpy(data_at(frame, &c->shape), t.shape, sizeof(t.shape));
    memcpy(data_at(frame, &c->layout), t.layout, sizeof(t.layout));
    return DONE;
}

typedef struct {
    Place layout;
    int64_t expected[LAYOUT_LENGTH];
} LayoutGuard;

static int run_layout_guard(const void *params, Frame *frame)
{
    const LayoutGuard *g = (const LayoutGuard *)params;
    return check_outcome(frame, LAYOUT_LENGTH, (const int64_t *)data_at(frame, &g->layout), g->expected);
}

typedef struct {
    const IndexLoops *loops;
    Place indices, indptr, shape;
    int64_t stored, rows, block;
    int format, threads;
} PatternCheck;

static int run_check_pattern(const void *params, Frame *frame)
{
    const PatternCheck *c = (const PatternCheck *)params;
    const char *indices = data_at(frame, &c->indices), *indptr = data_at(frame, &c->indptr);
    const int64_t *shape = (const int64_t *)data_at(frame, &c->shape);
    SparseWork w = {0};
    if (c->format == FORMAT_COO)
        return c->loops->pairs_ascend(indices, indptr, c->stored, shape) ? DONE : DECLINED;
    w.x = (Compressed){NULL, indices, indptr, c->rows, shape[c->format != FORMAT_CSC] / c->block};
    return c->loops->pointers_fit(indptr, c->rows, c->stored) && is_canonical(c->loops, &w, c->threads)
               ? DONE
               : DECLINED;
}

/* ---- plans */

typedef struct {
    const Operand *layout;
    Operand *shape;
    int storages[3];
} ApartState;

/* Emit and run the call that takes an object apart. */
static int begin_apart(Planner *p, const SparseKind *k, Operand *x, ApartState **found)
{
    const int64_t two = 2, length = LAYOUT_LENGTH;
    ApartState *state = (ApartState *)pool_new(&p->pool, sizeof(ApartState));
    const Operand *read = x, *written[5];
    TakeApartCall *c;
    Call *call;
    int i, status;
    if (state == NULL)
        return no_memory();
    state->shape = new_output_apart(p, 3, NPY_INT64, 8, 1, &two, NULL);
    state->layout = new_scratch(p, NPY_INT64, 8, 1, &length);
    if (state->shape == NULL || state->layout == NULL)
        return no_memory();
    for (i = 0; i < 3; i++) {
        const Operand *z = add_object(p, LATE, NULL);
        if (z == NULL)
            return no_memory();
        state->storages[i] = z->storage->index;
        written[i] = z;
    }
    written[3] = state->shape;
    written[4] = state->layout;
    call = new_call(p, run_take_apart, "take apart", sizeof(TakeApartCall));
    if (call == NULL)
        return no_memory();
    call->needs_gil = 1;
    c = (TakeApartCall *)call->params;
    c->kind = k;
    c->object = x->storage->index;
    memcpy(c->storages, state->storages, sizeof(c->storages));
    c->shape = placed(state->shape);
    c->layout = placed(state->layout);
    status = set_operands(p, call, 1, &read, 5, written);
    if (status == DONE)
        status = run_planned(p);
    *found = state;
    return status == DONE ? checkpoint(p, state) : status;
}

/* Guard the lengths that a run found; they are in ``layout``. */
static int guard_layout(Planner *p, const ApartState *state, int64_t *layout)
{
    Call *call = new_call(p, run_layout_guard, "guard lengths", sizeof(LayoutGuard));
    const Operand *read = state->layout;
    LayoutGuard *g;
    if (call == NULL)
        return no_memory();
    g = (LayoutGuard *)call->params;
    g->layout = placed(state->layout);
    memcpy(layout, data_of(p, state->layout), sizeof(g->expected));
    memcpy(g->expected, layout, sizeof(g->expected));
    call->is_guard = 1;
    p->n_run = p->n_calls; /* the lengths are those of this run */
    return set_operands(p, call, 1, &read, 0, NULL);
}

/* Check indices as they are found, in z[1] and z[2]. */
static int emit_pattern_check(Planner *p, const SparseObjectSpec *spec, const ApartState *state,
                              Operand *const *z, const int64_t *layout)
{
    Call *call = new_call(p, run_check_pattern, "check pattern", sizeof(PatternCheck));
    const Operand *reads[3];
    PatternCheck *c;
    if (call == NULL)
        return no_memory();
    c = (PatternCheck *)call->params;
    c->loops = index_loops_of((int)layout[INDEX_TYPE]);
    c->format = spec->kind->format;
    c->indices = placed(z[1]);
    c->indptr = placed(z[2]);
    c->shape = placed(state->shape);
    c->stored = layout[N_ENTRIES];
    c->rows = layout[N_POINTERS] - 1;
    c->block = c->format == FORMAT_BSR ? layout[COLUMNS_OF_BLOCK] : 1;
    call->work = (double)(layout[N_ENTRIES] + layout[N_POINTERS]);
    c->threads = call->work < ELEMENTS_WORTH_SHARING || c->format == FORMAT_COO ? 1 : spec->threads;
    call->uses_threads = c->threads > 1;
    reads[0] = z[1];
    reads[1] = z[2];
    reads[2] = state->shape;
    return set_operands(p, call, 3, reads, 0, NULL);
}

typedef struct {
    Place from, to;
    int64_t n;
    int narrows;
} IndexConversion;

static int run_convert_indices(const void *params, Frame *frame)
{
    const IndexConversion *c = (const IndexConversion *)params;
    const char *from = data_at(frame, &c->from);
    char *to = data_at(frame, &c->to);
    int64_t i;
    if (c->narrows)
        for (i = 0; i < c->n; i++)
            ((int32_t *)to)[i] = (int32_t)((const int64_t *)from)[i];
    else
        for (i = 0; i < c->n; i++)
            ((int64_t *)to)[i] = ((const int32_t *)from)[i];
    return DONE;
}

/* Indices of the dtype that output j has; NULL: no memory. They are known to fit it. */
static Operand *converted_indices(Planner *p, const SparseKind *k, int j, Operand *x)
{
    const int type = k->index_type;
    Operand *z;
    IndexConversion *c;
    Call *call;
    if (x->type == type)
        return x;
    z = new_output_apart(p, j, type, type == NPY_INT32 ? 4 : 8, 1, x->shape, NULL);
    call = z == NULL ? NULL : new_call(p, run_convert_indices, "convert indices", sizeof(*c));
    if (call == NULL)
        return NULL;
    c = (IndexConversion *)call->params;
    c->from = placed(x);
    c->to = placed(z);
    c->n = x->size;
    c->narrows = type == NPY_INT32;
    call->work = (double)x->size;
    return set_operands(p, call, 1, (const Operand **)&x, 1, (const Operand **)&z) == DONE ? z : NULL;
}

static int give_group_parts(Planner *p, const Group *group)
{
    int j, status = DONE;
    for (j = 0; j < group->n && status == DONE; j++)
        status = give_output(p, j, group->parts[j]);
    return status;
}

/* The arrays of a matrix. Those of a group are its parts; an object is taken apart. */
static int plan_take_apart(Planner *p, const void *given)
{
    const SparseObjectSpec *spec = (const SparseObjectSpec *)given;
    const SparseKind *k = spec->kind;
    ApartState *state = (ApartState *)p->saved;
    const int ndims[3] = {k->format == FORMAT_BSR ? 3 : 1, 1, 1};
    int64_t layout[LAYOUT_LENGTH], shape[3];
    Operand *z[3];
    int j, status;
    if (state == NULL) {
        Operand *x = input_of(p, 0);
        if (group_of(x) != NULL)
            return give_group_parts(p, group_of(x));
        if (x == NULL || x->type >= 0)
            return DECLINED;
        status = begin_apart(p, k, x, &state);
        if (status != DONE)
            return status;
    }
    status = guard_layout(p, state, layout);
    for (j = 0; j < 3 && status == DONE; j++) {
        const int type = j == 0 ? k->type : (int)layout[INDEX_TYPE];
        const int itemsize = j == 0 ? k->itemsize : type == NPY_INT32 ? 4 : 8;
        shape[0] = layout[j == 2 ? N_POINTERS : N_ENTRIES];
        shape[1] = layout[ROWS_OF_BLOCK];
        shape[2] = layout[COLUMNS_OF_BLOCK];
        z[j] = new_operand(p, p->storages[state->storages[j]], 0, type, itemsize, ndims[j], shape, NULL);
        if (z[j] == NULL)
            return no_memory();
        z[j]->flags = (z[j]->flags & ~WRITEABLE) | WHOLE;
    }
    /* Narrowed, an index outside of the shape could lie within. */
    if (status == DONE && (spec->checks || layout[INDEX_TYPE] != k->index_type))
        status = emit_pattern_check(p, spec, state, z, layout);
    if (status == DONE)
        status = give_output(p, 0, z[0]);
    for (j = 1; j < 3 && status == DONE; j++) {
        z[j] = converted_indices(p, k, j, z[j]);
        status = z[j] == NULL ? no_memory() : give_output(p, j, z[j]);
    }
    return status == DONE ? give_output(p, 3, state->shape) : status;
}

/* A matrix of its arrays and its shape: a group, without a call. */
static int plan_put_together(Planner *p, const void *given)
{
    const SparseObjectSpec *spec = (const SparseObjectSpec *)given;
    const SparseKind *k = spec->kind;
    const int ndims[4] = {k->format == FORMAT_BSR ? 3 : 1, 1, 1, 1};
    Operand *parts[4], *z;
    int j;
    for (j = 0; j < 4; j++) {
        parts[j] = input_of(p, j);
        if (!is_plain(parts[j]) || parts[j]->ndim != ndims[j])
            return DECLINED;
    }
    if (parts[0]->shape[0] != parts[1]->size || parts[3]->size != 2)
        return DECLINED;
    z = new_group(p, spec->make, 4, parts);
    return z == NULL ? no_memory() : give_output(p, 0, z);
}

#endif
