/* NumPy's arrays: results of a run, and arrays that show an operand to Python or to callers. */
#ifndef SYMCOMP_ARRAYS_H
#define SYMCOMP_ARRAYS_H

#include "array_memory.h"
#include "execution.h"
#include "../loops/moves.h"

/* Whether an array that was returned before may be returned again: its caller has dropped it, without weak
   references to it, and it is as it was made. */
static int may_recycle(PyObject *object, const Operand *x)
{
    PyArrayObject *array = (PyArrayObject *)object;
    return object != NULL && Py_REFCNT(object) == 1 && PyArray_TYPE(array) == x->type &&
           ((PyArrayObject_fields *)array)->weakreflist == NULL &&
           PyArray_NDIM(array) == x->ndim && PyArray_CHKFLAGS(array, NPY_ARRAY_OWNDATA) &&
           PyArray_ISCARRAY(array) &&
           same_numbers(x->shape, PyArray_DIMS(array), x->ndim);
}

/* A new array in C order, or in Fortran's. As PyArray_EMPTY, which looks for the dtype in each call. */
static PyObject *array_in_order(const Operand *x, int fortran)
{
    static PyArray_Descr *dtypes[NPY_VOID];
    PyArray_Descr *dtype;
    if (x->type >= NPY_VOID)
        return PyArray_EMPTY(x->ndim, (npy_intp *)x->shape, x->type, fortran);
    if (dtypes[x->type] == NULL)
        dtypes[x->type] = PyArray_DescrFromType(x->type);
    dtype = dtypes[x->type];
    if (dtype == NULL)
        return NULL;
    Py_INCREF(dtype);
    return PyArray_NewFromDescr(&PyArray_Type, dtype, x->ndim, (npy_intp *)x->shape, NULL, NULL,
                                fortran ? NPY_ARRAY_F_CONTIGUOUS : 0, NULL);
}

/* A new array that lies as an operand without gaps does. */
static PyObject *array_like(const Operand *x)
{
    PyObject *like, *array;
    if (x->flags & (C_ORDER | F_ORDER))
        return array_in_order(x, !(x->flags & C_ORDER));
    like = PyArray_New(&PyArray_Type, x->ndim, (npy_intp *)x->shape, x->type,
                       (npy_intp *)x->strides, (void *)x, 0, 0, NULL);
    if (like == NULL)
        return NULL;
    array = PyArray_NewLikeArray((PyArrayObject *)like, NPY_KEEPORDER, NULL, 0);
    Py_DECREF(like);
    return array;
}

static PyObject *__attribute__((noinline, cold)) large_array(const Operand *x)
{
    PyObject *before = begin_cache_lines();
    return before == NULL ? NULL : end_cache_lines(before, array_like(x));
}

/* The same, in memory that begins at a cache line if it is large. */
static PyObject *empty_array(const Operand *x)
{
    return x->size * x->itemsize < ALIGNED_ARRAY ? array_like(x) : large_array(x);
}

/* The arrays of results are recycled, two for each output: making a small one may take longer than computing
   it, and new memory for a large one comes page by page. */
static PyObject *recycled_array(const Segment *s, const Storage *storage)
{
    PyObject **two = s->recycled + 2 * storage->index;
    PyObject *array;
    int k;
    for (k = 0; k < 2; k++)
        if (may_recycle(two[k], storage->whole)) {
            Py_INCREF(two[k]);
            return two[k];
        }
    array = empty_array(storage->whole);
    if (array != NULL) {
        k = s->latest[storage->index] = !s->latest[storage->index];
        Py_INCREF(array);
        Py_XSETREF(two[k], array);
    }
    return array;
}

/* Whether results are recycled at all: not where several threads may look at counts of references. */
static int recycles = 1;

static int make_array(Frame *frame, const Storage *storage)
{
    const Operand *x = storage->whole;
    PyObject *array, *old = frame->object[storage->index];
    if (storage->is_recycled && frame->segment != NULL && recycles)
        array = recycled_array(frame->segment, storage);
    else
        array = empty_array(x);
    if (array == NULL)
        return RAISED;
    frame->object[storage->index] = array;
    frame->address[storage->index] = PyArray_BYTES((PyArrayObject *)array);
    Py_XDECREF(old);
    return DONE;
}

/* The array whose memory a storage is, or lies in; NULL if that is no array of NumPy. */
static PyObject *owner_of(const Frame *frame, const Storage *s)
{
    while (s->kind == LATE && s->base != NULL)
        s = s->base;
    return frame->object[s->index];
}

/* A new array over the memory of an operand, which ``owner`` keeps alive if it is not NULL. */
static PyObject *array_over(const Frame *frame, const Operand *x, PyObject *owner)
{
    PyArray_Descr *dtype;
    PyObject *z;
    const int flags = x->flags & WRITEABLE ? NPY_ARRAY_WRITEABLE : 0;
    if (owner != NULL && PyArray_TYPE((PyArrayObject *)owner) == x->type) {
        dtype = PyArray_DESCR((PyArrayObject *)owner); /* with the owner's byte order */
        Py_INCREF(dtype);
    } else {
        dtype = PyArray_DescrFromType(x->type);
    }
    z = PyArray_NewFromDescr(&PyArray_Type, dtype, x->ndim, (npy_intp *)x->shape,
                             (npy_intp *)x->strides,
                             frame->address[x->storage->index] + x->offset, flags, NULL);
    if (z == NULL)
        return NULL;
    if (owner != NULL) {
        Py_INCREF(owner);
        if (PyArray_SetBaseObject((PyArrayObject *)z, owner) < 0) {
            Py_DECREF(z);
            return NULL;
        }
    }
    PyArray_UpdateFlags((PyArrayObject *)z, NPY_ARRAY_UPDATE_ALL);
    return z;
}

/* A copy of an operand as an array of its own, which lies as the operand does if that is in order. */
static PyObject *array_copy(const Frame *frame, const Operand *x)
{
    const int fortran = x->flags & F_ORDER && !(x->flags & C_ORDER);
    PyObject *z = array_in_order(x, fortran);
    struct axes axes;
    if (z == NULL)
        return NULL;
    if (!(x->flags & BEHAVED)) {
        PyObject *view = array_over(frame, x, owner_of(frame, x->storage));
        if (view == NULL || PyArray_CopyInto((PyArrayObject *)z, (PyArrayObject *)view) < 0)
            Py_CLEAR(z);
        Py_XDECREF(view);
        return z;
    }
    order_axes(&axes, x->ndim, x->shape, (int64_t *)PyArray_STRIDES((PyArrayObject *)z), x->strides);
    move_axes(&axes, function_that_sets(x->itemsize), PyArray_BYTES((PyArrayObject *)z),
              frame->address[x->storage->index] + x->offset);
    return z;
}

/* Called before Python code runs: a transaction may have to hold interrupts back. */
static int (*before_python)(Runner *runner);

static PyObject *object_of_group(const Frame *frame, const Group *group);

/* An operand as a Python object: an array, or what it is. ``is_lent`` tells whether the array's memory
   is that of the run, which may use it for something else afterwards. */
static PyObject *object_of(const Frame *frame, const Operand *x, int *is_lent)
{
    PyObject *owner = owner_of(frame, x->storage);
    *is_lent = 0;
    if (x->storage->kind == GROUP)
        return object_of_group(frame, x->storage->group);
    if (x->type < 0 || (owner != NULL && x->flags & WHOLE && root_of(x->storage) == x->storage)) {
        if (owner == NULL)
            owner = Py_None;
        Py_INCREF(owner);
        return owner;
    }
    if (x->storage->kind == CONSTANT && owner == NULL)
        return array_copy(frame, x);
    *is_lent = owner == NULL;
    return array_over(frame, x, owner);
}

/* The object that a group is. Arrays whose memory the run may use for something else are copied. */
static PyObject *object_of_group(const Frame *frame, const Group *group)
{
    PyObject *arrays[MOST_IN_GROUP], *object = NULL;
    int i, is_lent, made = 0;
    if (before_python(frame->runner) < 0)
        return NULL;
    for (i = 0; i < group->n; i++) {
        arrays[i] = object_of(frame, group->parts[i], &is_lent);
        if (arrays[i] != NULL && is_lent) {
            Py_DECREF(arrays[i]);
            arrays[i] = array_copy(frame, group->parts[i]);
        }
        if (arrays[i] == NULL)
            break;
        made = i + 1;
    }
    if (made == group->n)
        object = PyObject_Vectorcall(group->make, arrays, (size_t)made, NULL);
    while (made > 0)
        Py_DECREF(arrays[--made]);
    return object;
}

/* One result as an object of its own, or as the rest of the program says. */
static PyObject *result_of(const Frame *frame, const Operand *x, ResultKind kind)
{
    int is_lent;
    if (kind == BY_COPY)
        return array_copy(frame, x);
    return object_of(frame, x, &is_lent);
}

static int collect_results(Planner *p, const Segment *s, Frame *frame, PyObject **results)
{
    const Code *code = s == NULL ? p->code : s->code;
    int j;
    for (j = 0; j < code->n_outputs; j++) {
        const Operand *x =
            s == NULL ? p->of_slot[code->output_slots[j]] : s->results[j].operand;
        results[j] = result_of(frame, x, s == NULL ? result_kind(x) : s->results[j].kind);
        if (results[j] == NULL) {
            while (j > 0)
                Py_CLEAR(results[--j]);
            return RAISED;
        }
    }
    return DONE;
}

#endif
