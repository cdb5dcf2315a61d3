/* Instructions that Python computes, as calls: the operands are shown as arrays, and the results are
   arrays of their own. A segment is made for the layouts of these; others lead to another one. */
#ifndef SYMCOMP_PYTHON_CALLS_H
#define SYMCOMP_PYTHON_CALLS_H

#include <alloca.h>
#include "arrays.h"

/* What a result is: where it lies if that is in the memory of an argument, else where it will lie. */
typedef struct {
    int argument;           /* -1: none */
    Operand *operand;
    int type, ndim;
} PythonResult;

typedef struct {
    PyObject *compute;
    int n_arguments, n_results, several;
    int copies;             /* whether arrays that the run may use again are copied for it */
    const Operand **arguments;
    PythonResult *results;
} PythonCall;

/* Set by the module: what NumPy keeps in its variable where errors of numbers are ignored. */
static PyObject *error_state, *errors_ignored;

/* Called before Python code runs: a transaction may have to hold interrupts back. */
static int (*before_python)(Runner *runner);

/* Call a function, NumPy's warnings of overflow and the like being off. */
static PyObject *call_quietly(PyObject *function, PyObject **arguments, int n)
{
    PyObject *token = PyContextVar_Set(error_state, errors_ignored), *result;
    if (token == NULL)
        return NULL;
    result = PyObject_Vectorcall(function, arguments, (size_t)n, NULL);
    if (PyContextVar_Reset(error_state, token) < 0)
        Py_CLEAR(result);
    Py_DECREF(token);
    return result;
}

static int lies_in_lent(PyObject *result, PyObject **arguments, const char *is_lent, int n)
{
    while (result != NULL && PyArray_Check(result)) {
        int i;
        for (i = 0; i < n; i++)
            if (is_lent[i] && arguments[i] == result)
                return 1;
        result = PyArray_BASE((PyArrayObject *)result);
    }
    return 0;
}

/* A result as an array that does not change when the run goes on. New reference. */
static PyObject *as_result(PyObject *value, PyObject **arguments, const char *is_lent, int n,
                           int is_tensor)
{
    PyObject *array;
    if (!is_tensor) {
        Py_INCREF(value);
        return value;
    }
    if (PyArray_CheckExact(value)) {
        Py_INCREF(value);
        array = value;
    } else {
        array = PyArray_FromAny(value, NULL, 0, MOST_AXES, NPY_ARRAY_ENSUREARRAY, NULL);
        if (array == NULL)
            return NULL;
    }
    if (lies_in_lent(array, arguments, is_lent, n)) {
        PyObject *copy = PyArray_NewCopy((PyArrayObject *)array, NPY_KEEPORDER);
        Py_DECREF(array);
        return copy;
    }
    return array;
}

/* Call Python; ``found`` are new references to the results. */
static int compute_in_python(const PythonCall *c, Frame *frame, PyObject **found, PyObject **shown)
{
    char *is_lent = (char *)alloca((size_t)c->n_arguments + 1);
    PyObject *value = NULL;
    int i, j, made = 0, status = RAISED, lent;
    if (before_python(frame->runner) < 0)
        return RAISED;
    frame->runner->python_calls++;
    for (i = 0; i < c->n_arguments; i++) {
        const Operand *x = c->arguments[i];
        is_lent[i] = 0;
        if (x == NULL) {
            Py_INCREF(Py_None);
            shown[i] = Py_None;
        } else {
            shown[i] = object_of(frame, x, &lent);
            if (shown[i] != NULL && lent && c->copies) {
                PyObject *copy = array_copy(frame, x);
                Py_DECREF(shown[i]);
                shown[i] = copy;
            } else if (lent) {
                is_lent[i] = 1;
            }
        }
        if (shown[i] == NULL)
            goto out;
        made = i + 1;
    }
    value = call_quietly(c->compute, shown, c->n_arguments);
    if (value == NULL)
        goto out;
    for (j = 0; j < c->n_results; j++) {
        PyObject *item = value;
        if (c->several) {
            if (!PyTuple_Check(value) && !PyList_Check(value)) {
                PyErr_Format(PyExc_TypeError, "%d results expected, got %R", c->n_results, value);
                break;
            }
            if (PySequence_Fast_GET_SIZE(value) != c->n_results) {
                PyErr_Format(PyExc_ValueError, "%d results expected, got %zd", c->n_results,
                             PySequence_Fast_GET_SIZE(value));
                break;
            }
            item = PySequence_Fast_GET_ITEM(value, j);
        }
        found[j] = as_result(item, shown, is_lent, c->n_arguments, c->results[j].type >= 0);
        if (found[j] == NULL)
            break;
    }
    if (j == c->n_results)
        status = DONE;
    else
        while (j > 0)
            Py_CLEAR(found[--j]);
out:
    Py_XDECREF(value);
    if (status != DONE)
        while (made > 0)
            Py_DECREF(shown[--made]);
    return status;
}

static void drop_shown(const PythonCall *c, PyObject **shown)
{
    int i;
    for (i = 0; i < c->n_arguments; i++)
        Py_DECREF(shown[i]);
}

/* Which argument a result is, element for element; -1: none. */
static int argument_that_is(const PythonCall *c, const Frame *frame, PyArrayObject *z)
{
    int i;
    for (i = 0; i < c->n_arguments; i++) {
        const Operand *x = c->arguments[i];
        const size_t size = (size_t)PyArray_NDIM(z) * sizeof(int64_t);
        if (x != NULL && x->type == PyArray_TYPE(z) && x->ndim == PyArray_NDIM(z) &&
            x->storage->kind != CONSTANT && x->size > 0 &&
            frame->address[x->storage->index] + x->offset == PyArray_BYTES(z) &&
            !memcmp(x->shape, PyArray_DIMS(z), size) &&
            !memcmp(x->strides, PyArray_STRIDES(z), size))
            return i;
    }
    return -1;
}

static inline uint64_t mixed(uint64_t hash, uint64_t value)
{
    hash = (hash ^ value) * UINT64_C(0xD6E8FEB86659FD93);
    return hash ^ hash >> 32;
}

static int matches(const PythonResult *r, PyObject *found, int argument)
{
    const Operand *x = r->operand;
    PyArrayObject *z = (PyArrayObject *)found;
    const size_t size = (size_t)r->ndim * sizeof(int64_t);
    if (r->type < 0)
        return 1;
    return argument == r->argument && PyArray_TYPE(z) == x->type && PyArray_NDIM(z) == x->ndim &&
           !PyArray_ISBEHAVED_RO(z) == !(x->flags & BEHAVED) &&
           !memcmp(x->shape, PyArray_DIMS(z), size) &&
           !memcmp(x->strides, PyArray_STRIDES(z), size);
}

/* Note the layouts of all results in two words, so that another segment can be found by them. */
static void note_layouts(const PythonCall *c, Frame *frame, PyObject **found)
{
    uint64_t hash = 1, other = 2;
    int j, axis;
    for (j = 0; j < c->n_results; j++) {
        PyArrayObject *z = (PyArrayObject *)found[j];
        if (c->results[j].type < 0)
            continue;
        hash = mixed(hash, (uint64_t)(argument_that_is(c, frame, z) + 2));
        hash = mixed(hash, (uint64_t)(2 * PyArray_TYPE(z) + !PyArray_ISBEHAVED_RO(z)));
        for (axis = 0; axis < PyArray_NDIM(z); axis++) {
            hash = mixed(hash, (uint64_t)PyArray_DIM(z, axis));
            hash = mixed(hash, (uint64_t)PyArray_STRIDE(z, axis));
            other = mixed(other + hash, (uint64_t)PyArray_DIM(z, axis));
        }
    }
    frame->outcome[0] = (int64_t)hash;
    frame->outcome[1] = (int64_t)other;
    frame->n_outcome = 2;
}

static void set_object(Frame *frame, const Storage *s, PyObject *object)
{
    PyObject *old = frame->object[s->index];
    frame->object[s->index] = object;
    Py_XDECREF(old);
}

static int run_python_call(const void *params, Frame *frame)
{
    const PythonCall *c = (const PythonCall *)params;
    PyObject **found = (PyObject **)alloca((size_t)(c->n_results + c->n_arguments + 1) *
                                           sizeof(PyObject *));
    PyObject **shown = found + c->n_results;
    int j, is_other = 0;
    if (compute_in_python(c, frame, found, shown) != DONE)
        return RAISED;
    for (j = 0; j < c->n_results && !is_other; j++)
        is_other = !matches(&c->results[j], found[j],
                            c->results[j].type < 0
                                ? -1
                                : argument_that_is(c, frame, (PyArrayObject *)found[j]));
    if (is_other)
        note_layouts(c, frame, found);
    for (j = 0; j < c->n_results; j++) {
        const PythonResult *r = &c->results[j];
        if (is_other || r->argument >= 0) {
            Py_DECREF(found[j]);
            continue;
        }
        set_object(frame, r->operand->storage, found[j]);
        if (r->type >= 0)
            frame->address[r->operand->storage->index] =
                PyArray_BYTES((PyArrayObject *)found[j]);
    }
    drop_shown(c, shown);
    return is_other ? OTHER : DONE;
}

/* The operand of a result, as it is found by the run that plans. */
static Operand *operand_of_result(Planner *p, const PythonCall *c, PythonResult *r,
                                  PyObject *found)
{
    PyArrayObject *z = (PyArrayObject *)found;
    Storage *s;
    Operand *x;
    if (r->type < 0) {
        Py_INCREF(found);
        return add_object(p, OBJECT, found);
    }
    r->argument = argument_that_is(c, p->frame, z);
    if (r->argument >= 0)
        return same_place_as(p, c->arguments[r->argument]);
    s = new_storage(p, LATE, PyArray_NBYTES(z));
    x = s == NULL ? NULL
                  : new_operand(p, s, 0, PyArray_TYPE(z), (int)PyArray_ITEMSIZE(z),
                                PyArray_NDIM(z), (int64_t *)PyArray_DIMS(z),
                                (int64_t *)PyArray_STRIDES(z));
    if (x == NULL)
        return NULL;
    if (!PyArray_ISBEHAVED_RO(z))
        x->flags &= ~BEHAVED;
    if (!PyArray_ISWRITEABLE(z))
        x->flags &= ~WRITEABLE;
    s->whole = x;
    Py_INCREF(found);
    p->frame->object[s->index] = found;
    p->frame->address[s->index] = PyArray_BYTES(z);
    return x;
}

/* Set by the module: what it knows of an instruction that Python computes. */
typedef struct {
    PyObject *compute;
    int several, copies;
    const char *is_tensor;  /* of the outputs */
} InPython;
static const InPython *(*in_python)(PyObject *lowered);

static int plan_python(Planner *p)
{
    const Step *step = p->step;
    const InPython *how = in_python(step->lowered);
    const int n = step->n_inputs + step->n_into;
    PyObject **found =
        (PyObject **)alloca((size_t)(step->n_outputs + n + 1) * sizeof(PyObject *));
    PyObject **shown = found + step->n_outputs;
    Call *call;
    PythonCall *c;
    int i, j, status;
    status = run_planned(p);
    if (status != DONE)
        return status;
    call = new_call(p, run_python_call, "python", sizeof(PythonCall));
    if (call == NULL)
        return no_memory();
    call->needs_gil = call->is_guard = 1;
    c = (PythonCall *)call->params;
    c->compute = how->compute;
    c->several = how->several;
    c->copies = how->copies;
    c->n_arguments = n;
    c->n_results = step->n_outputs;
    c->arguments = (const Operand **)pool_new(&p->pool, (size_t)n * sizeof(Operand *));
    c->results =
        (PythonResult *)pool_new(&p->pool, (size_t)step->n_outputs * sizeof(PythonResult));
    if (c->arguments == NULL || c->results == NULL)
        return no_memory();
    for (i = 0; i < step->n_inputs; i++)
        c->arguments[i] = input_of(p, i);
    for (i = 0; i < step->n_into; i++) {
        const Operand *x = step->into[i] < 0 ? NULL : p->of_slot[step->into[i]];
        const int wanted = BEHAVED | WRITEABLE;
        if (x != NULL && !is_constant(x) && (x->flags & wanted) == wanted)
            c->arguments[step->n_inputs + i] = x;
    }
    for (j = 0; j < step->n_outputs; j++) {
        c->results[j].type = how->is_tensor[j] ? 0 : -1;
        c->results[j].argument = -1;
    }
    if (set_operands(p, call, 0, NULL, 0, NULL) != DONE)
        return RAISED;
    status = compute_in_python(c, p->frame, found, shown);
    if (status != DONE)
        return status;
    drop_shown(c, shown);
    for (j = 0; j < step->n_outputs; j++) {
        Operand *x = status == DONE ? operand_of_result(p, c, &c->results[j], found[j]) : NULL;
        if (x == NULL || give_output(p, j, x) != DONE)
            status = no_memory();
        if (x != NULL) {
            c->results[j].operand = x;
            c->results[j].type = x->type;
            c->results[j].ndim = x->ndim;
        }
        Py_DECREF(found[j]);
    }
    p->n_run = p->n_calls;
    return status;
}

#endif
