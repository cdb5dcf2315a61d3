/* Loops without steps: what they start from, and arrays without rows. */
#ifndef SYMCOMP_NO_STEPS_H
#define SYMCOMP_NO_STEPS_H

#include "loop_runs.h"

static inline Operand *loop_state(const Planner *p, const LoopSpec *s, int i)
{
    (void)s;
    return input_of(p, 1 + i);
}

static inline Operand *loop_carried(const Planner *p, const LoopSpec *s, int k)
{
    return input_of(p, 1 + s->n_states + k);
}

static inline Operand *loop_sequence(const Planner *p, const LoopSpec *s, int i)
{
    return input_of(p, 1 + s->n_states + s->n_carried + i);
}

static inline Operand *loop_captured(const Planner *p, const LoopSpec *s, int i)
{
    return input_of(p, 1 + s->n_states + s->n_carried + s->n_sequences + i);
}

/* Whether a step writes parts of a carried value, in its memory. */
static inline int is_rewritten(const LoopSpec *s, int k)
{
    return s->tree->code->written_over[s->n_states + k] >= 0;
}

/* Whether the inputs are arrays of the lengths that the steps need. */
static int fits_loop(const Planner *p, const LoopSpec *s, int64_t n)
{
    int i;
    for (i = 0; i < s->n_states; i++) {
        const Operand *x = loop_state(p, s, i);
        if (!is_plain(x) || x->ndim < 1 || x->shape[0] != s->depths[i])
            return 0;
    }
    for (i = 0; i < s->n_carried; i++)
        if (!is_plain(loop_carried(p, s, i)))
            return 0;
    for (i = 0; i < s->n_sequences; i++) {
        const Operand *x = loop_sequence(p, s, i);
        if (!is_plain(x) || x->ndim < 1 || x->shape[0] < n)
            return 0;
    }
    for (i = 0; i < s->n_captured; i++)
        if (loop_captured(p, s, i) == NULL)
            return 0;
    return 1;
}

/* Ask Python for the shapes of the rows that there would be, and of which inputs it read the values for that, by
   position. New reference; NULL: an exception. */
static PyObject *told_of_rows(Planner *p, const LoopSpec *s)
{
    const int n = p->instruction->n_inputs - 1;
    PyObject **shown = (PyObject **)alloca(((size_t)n + 1) * sizeof(PyObject *));
    PyObject *told = NULL;
    int i, is_lent, made = 0;
    if (before_python(p->runner) < 0)
        return NULL;
    for (i = 0; i < n; i++) {
        shown[i] = object_of(p->frame, input_of(p, 1 + i), &is_lent);
        if (shown[i] != NULL && is_lent)
            Py_SETREF(shown[i], array_copy(p->frame, input_of(p, 1 + i)));
        if (shown[i] == NULL)
            break;
        made = i + 1;
    }
    if (made == n)
        told = call_quietly(p->runner, s->without_steps, shown, n);
    while (made > 0)
        Py_DECREF(shown[--made]);
    return told;
}

/* Read the shape of the rows of a stack behind its length, 0. DECLINED: it has too many axes. */
static int read_row_shape(PyObject *row, int64_t *shape, int *ndim)
{
    const Py_ssize_t n = PyTuple_Size(row);
    Py_ssize_t axis;
    if (n < 0)
        return RAISED;
    if (n + 1 > MOST_AXES)
        return DECLINED;
    shape[0] = 0;
    for (axis = 0; axis < n; axis++)
        shape[axis + 1] = PyLong_AsLongLong(PyTuple_GET_ITEM(row, axis));
    *ndim = (int)n + 1;
    return PyErr_Occurred() ? RAISED : DONE;
}

/* Give stacks without rows, whose lengths follow from layouts and from guarded values. */
static int give_empty_stacks(Planner *p, const LoopSpec *s, PyObject *told)
{
    PyObject *shapes, *reads;
    int64_t shape[MOST_AXES];
    int i, ndim, status = DONE;
    if (told == Py_None)
        return DECLINED;
    if (!PyArg_ParseTuple(told, "O!O!", &PyTuple_Type, &shapes, &PyTuple_Type, &reads))
        return RAISED;
    for (i = 0; status == DONE && i < PyTuple_GET_SIZE(reads); i++)
        status = guard_values(p, input_of(p, 1 + (int)PyLong_AsLong(PyTuple_GET_ITEM(reads, i))));
    for (i = 0; status == DONE && i < s->n_stacks; i++) {
        const int j = s->n_states + s->n_carried + i;
        Operand *z;
        status = read_row_shape(PyTuple_GET_ITEM(shapes, i), shape, &ndim);
        if (status != DONE)
            break;
        z = new_output_apart(p, j, s->stack_type[i], s->stack_itemsize[i], ndim, shape, NULL);
        status = z == NULL ? no_memory() : give_output(p, j, z);
    }
    return status;
}

/* Give copies of what states and carried values start from. */
static int give_starts(Planner *p, const LoopSpec *s)
{
    int j;
    for (j = 0; j < s->n_states + s->n_carried; j++) {
        const Operand *x = input_of(p, 1 + j);
        Operand *z = new_output_apart(p, j, x->type, x->itemsize, x->ndim, x->shape, NULL);
        if (z == NULL)
            return no_memory();
        if (emit_copy(p, z, x) != DONE || give_output(p, j, z) != DONE)
            return RAISED;
    }
    return DONE;
}

static int plan_no_steps(Planner *p, const LoopSpec *s)
{
    const int64_t done = 0;
    int status = DONE;
    if (s->n_stacks > 0) {
        PyObject *told = told_of_rows(p, s);
        status = told == NULL ? RAISED : give_empty_stacks(p, s, told);
        Py_XDECREF(told);
    }
    if (status == DONE)
        status = give_starts(p, s);
    if (status == DONE && s->until) {
        Operand *z = new_constant(p, NPY_INT64, 8, 0, NULL, &done, 8);
        status = z == NULL ? no_memory() : give_output(p, s->n_states + s->n_carried + s->n_stacks, z);
    }
    return status;
}

#endif
