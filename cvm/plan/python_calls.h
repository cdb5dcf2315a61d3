/* Instructions that Python computes, as calls: the operands are shown as arrays, and the results are
   arrays of their own. A segment is made for the layouts of these; others lead to another one. */
#ifndef SYMCOMP_PYTHON_CALLS_H
#define SYMCOMP_PYTHON_CALLS_H

#include <alloca.h>
#include "arrays.h"
#include "groups.h"

typedef struct {
    PyObject *compute;
    int n_inputs;           /* the arguments that follow are arrays to write into */
    int n_arguments, n_results, several;
    int copies;             /* whether arrays that the run may use again are copied for it */
    int is_in_c;            /* whether the function runs no Python */
    const Operand **arguments;
    const char *is_tensor;  /* of the results */
    int *storages;          /* of the results */
} PythonCall;

/* The kind of a result of Python: the memory of an argument, or an array of its own. */
typedef struct {
    int argument;           /* -1: none */
    const Operand *operand;
} PythonResult;

typedef struct {
    const PythonCall *call;
    PythonResult *results;
} ResultsGuard;

/* Set by the module: what NumPy keeps in its variable where errors of numbers are ignored. */
static PyObject *error_state, *errors_ignored;

/* Call a function, NumPy's warnings of overflow and the like being off. It may wait for other threads. */
static PyObject *call_quietly(Runner *runner, PyObject *function, PyObject **arguments, int n)
{
    PyObject *token = PyContextVar_Set(error_state, errors_ignored), *result;
    if (token == NULL)
        return NULL;
    unlock_machine(&runner->lock);
    result = PyObject_Vectorcall(function, arguments, (size_t)n, NULL);
    lock_machine(&runner->lock);
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
        PyObject *copy = own_copy(array);
        Py_DECREF(array);
        return copy;
    }
    return array;
}

/* Whether the memory of an operand may be written over. */
static int may_write(const Operand *x)
{
    const int wanted = BEHAVED | WRITEABLE;
    return (x->flags & wanted) == wanted && x->storage->kind != CONSTANT;
}

/* Call Python; ``found`` are new references to the results. */
static int compute_in_python(const PythonCall *c, Frame *frame, PyObject **found, PyObject **shown)
{
    char *is_lent = (char *)alloca((size_t)c->n_arguments + 1);
    PyObject *value = NULL;
    int i, j, made = 0, status = RAISED, lent;
    if (before_python(frame->runner) < 0)
        return RAISED;
    frame->runner->python_calls += !c->is_in_c;
    for (i = 0; i < c->n_arguments; i++) {
        const Operand *x = c->arguments[i];
        is_lent[i] = 0;
        if (x == NULL) {
            Py_INCREF(Py_None);
            shown[i] = Py_None;
        } else if (i >= c->n_inputs && !may_write(x)) {
            shown[i] = array_copy(frame, x);
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
    value = call_quietly(frame->runner, c->compute, shown, c->n_arguments);
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
        found[j] = as_result(item, shown, is_lent, c->n_arguments, c->is_tensor[j]);
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

/* The argument that a result equals, element for element; -1: none. */
static int argument_that_is(const PythonCall *c, const Frame *frame, PyArrayObject *z)
{
    int i;
    for (i = 0; i < c->n_arguments; i++) {
        const Operand *x = c->arguments[i];
        if (x != NULL && x->type == PyArray_TYPE(z) && x->ndim == PyArray_NDIM(z) &&
            x->storage->kind != CONSTANT && x->size > 0 &&
            frame->address[x->storage->index] + x->offset == PyArray_BYTES(z) &&
            same_numbers(x->shape, PyArray_DIMS(z), x->ndim) &&
            same_numbers(x->strides, PyArray_STRIDES(z), x->ndim))
            return i;
    }
    return -1;
}

/* Whether a result lies as the segment was made for. */
static int matches(const PythonCall *c, const PythonResult *r, const Frame *frame, int j)
{
    const Operand *x = r->operand;
    PyArrayObject *z = (PyArrayObject *)frame->object[c->storages[j]];
    if (!c->is_tensor[j])
        return 1;
    return PyArray_TYPE(z) == x->type && PyArray_NDIM(z) == x->ndim &&
           !PyArray_ISBEHAVED_RO(z) == !(x->flags & BEHAVED) &&
           same_numbers(x->shape, PyArray_DIMS(z), x->ndim) &&
           same_numbers(x->strides, PyArray_STRIDES(z), x->ndim) &&
           argument_that_is(c, frame, z) == r->argument;
}

/* Note the layouts of all results in two words, so that another segment can be found by them. */
static void note_layouts(const PythonCall *c, Frame *frame)
{
    uint64_t hash = 1, other = 2;
    int j, axis;
    for (j = 0; j < c->n_results; j++) {
        PyArrayObject *z = (PyArrayObject *)frame->object[c->storages[j]];
        if (!c->is_tensor[j])
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

/* A result that is an argument is not held a second time: counts of references tell who holds it. */
static void drop_second_holds(const ResultsGuard *g, Frame *frame)
{
    int j;
    for (j = 0; j < g->call->n_results; j++)
        if (g->results[j].argument >= 0)
            forget_held(frame, g->call->storages[j]);
}

static int run_results_guard(const void *params, Frame *frame)
{
    const ResultsGuard *g = (const ResultsGuard *)params;
    int j;
    for (j = 0; j < g->call->n_results; j++)
        if (!matches(g->call, &g->results[j], frame, j)) {
            note_layouts(g->call, frame);
            return OTHER;
        }
    drop_second_holds(g, frame);
    return DONE;
}

/* Compute in Python; the frame holds the results from then on. */
static int run_python_call(const void *params, Frame *frame)
{
    const PythonCall *c = (const PythonCall *)params;
    PyObject **found = (PyObject **)alloca((size_t)(c->n_results + c->n_arguments + 1) *
                                           sizeof(PyObject *));
    PyObject **shown = found + c->n_results;
    int j;
    if (compute_in_python(c, frame, found, shown) != DONE)
        return RAISED;
    drop_shown(c, shown);
    for (j = 0; j < c->n_results; j++) {
        const int at = c->storages[j];
        PyObject *old = frame->object[at];
        frame->object[at] = found[j];
        if (c->is_tensor[j])
            frame->address[at] = PyArray_BYTES((PyArrayObject *)found[j]);
        Py_XDECREF(old);
    }
    return DONE;
}

/* Set by the module: what it knows of an instruction that Python computes. */
typedef struct {
    PyObject *compute;
    const char *name;       /* of its calls */
    int several, copies, is_in_c;
    const char *is_tensor;  /* of the outputs */
} InPython;
static const InPython *(*in_python)(PyObject *lowered);

/* Emit the call of Python; its parameters, or NULL. */
static PythonCall *emit_python_call(Planner *p, const InPython *how)
{
    const Instruction *instruction = p->instruction;
    int n = instruction->n_inputs + instruction->n_into;
    const Operand **reads;
    Call *call = new_call(p, run_python_call, how->name, sizeof(PythonCall));
    PythonCall *c;
    int i, j;
    if (call == NULL)
        return NULL;
    call->needs_gil = call->is_python = 1;
    call->is_in_c = (char)how->is_in_c;
    c = (PythonCall *)call->params;
    c->compute = how->compute;
    c->several = how->several;
    c->copies = how->copies;
    c->is_in_c = how->is_in_c;
    c->is_tensor = how->is_tensor;
    c->n_inputs = instruction->n_inputs;
    c->n_arguments = n;
    c->n_results = instruction->n_outputs;
    c->arguments = (const Operand **)pool_new(&p->pool, (size_t)n * sizeof(Operand *));
    c->storages = (int *)pool_new(&p->pool, (size_t)instruction->n_outputs * sizeof(int));
    if (c->arguments == NULL || c->storages == NULL)
        return NULL;
    for (i = 0; i < instruction->n_inputs; i++)
        c->arguments[i] = input_of(p, i);
    for (i = 0; i < instruction->n_into; i++)
        if (instruction->into[i] >= 0)
            c->arguments[instruction->n_inputs + i] = p->of_slot[instruction->into[i]];
    for (j = 0; j < instruction->n_outputs; j++) {
        Operand *x = add_object(p, how->is_tensor[j] ? LATE : OBJECT, NULL);
        if (x == NULL)
            return NULL;
        c->storages[j] = x->storage->index;
    }
    reads = (const Operand **)alloca((size_t)(MOST_IN_GROUP * n + 1) * sizeof(Operand *));
    n = read_parts(n, c->arguments, reads);
    return set_operands(p, call, n, reads, 0, NULL) == DONE ? c : NULL;
}

/* The operand of a result, as the run that plans found it. */
static Operand *operand_of_result(Planner *p, const PythonCall *c, PythonResult *r, int j)
{
    Storage *s = p->storages[c->storages[j]];
    PyArrayObject *z = (PyArrayObject *)p->frame->object[s->index];
    Operand *x;
    r->argument = -1;
    if (!c->is_tensor[j])
        return new_operand(p, s, 0, -1, 0, 0, NULL, NULL);
    r->argument = argument_that_is(c, p->frame, z);
    if (r->argument >= 0)
        return same_place_as(p, c->arguments[r->argument]);
    x = new_operand(p, s, 0, PyArray_TYPE(z), (int)PyArray_ITEMSIZE(z), PyArray_NDIM(z),
                    (int64_t *)PyArray_DIMS(z), (int64_t *)PyArray_STRIDES(z));
    if (x == NULL)
        return NULL;
    if (!PyArray_ISBEHAVED_RO(z))
        x->flags &= ~BEHAVED;
    if (!PyArray_ISWRITEABLE(z))
        x->flags &= ~WRITEABLE;
    x->flags |= WHOLE;
    if (s->index >= p->first_storage)
        s->bytes = PyArray_NBYTES(z);
    return x;
}

/* The results of a call of Python that has run, guarded by their layouts. */
static int plan_results(Planner *p, const PythonCall *c)
{
    Call *call = new_call(p, run_results_guard, "guard layouts", sizeof(ResultsGuard));
    ResultsGuard *g;
    int j;
    if (call == NULL)
        return no_memory();
    call->needs_gil = call->is_guard = 1;
    g = (ResultsGuard *)call->params;
    g->call = c;
    g->results = (PythonResult *)pool_new(&p->pool, (size_t)c->n_results * sizeof(PythonResult));
    if (g->results == NULL)
        return no_memory();
    if (set_operands(p, call, 0, NULL, 0, NULL) != DONE)
        return RAISED;
    p->n_run = p->n_calls;
    for (j = 0; j < c->n_results; j++) {
        Operand *x = operand_of_result(p, c, &g->results[j], j);
        if (x == NULL)
            return no_memory();
        g->results[j].operand = x;
        if (give_output(p, j, x) != DONE)
            return RAISED;
    }
    drop_second_holds(g, p->frame);
    return DONE;
}

static int plan_python(Planner *p)
{
    const PythonCall *c;
    int status;
    if (p->saved != NULL)
        return plan_results(p, (const PythonCall *)p->saved);
    status = run_planned(p);
    if (status != DONE)
        return status;
    c = emit_python_call(p, in_python(p->instruction->lowered));
    if (c == NULL)
        return no_memory();
    status = run_python_call(c, p->frame);
    if (status != DONE)
        return status;
    p->n_run = p->n_calls;
    p->in_python = 1;
    status = checkpoint(p, c);
    return status == DONE ? plan_results(p, c) : status;
}

#endif
