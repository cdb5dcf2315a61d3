/* The gate: from here on new values are written over old ones, if their arrays have no other
   holders (symcomp/vm/commit.py). The set of arrays that may be overwritten selects a segment. */
#ifndef SYMCOMP_GATE_H
#define SYMCOMP_GATE_H

#include "copies.h"
#include "python_calls.h"

enum { MOST_CLAIMED = 62 };

/* Implemented where kernels are known: whether one takes operands with these layouts, and so cannot fail. */
static int kernel_fits(const void *spec, Operand *const *inputs);

/* An instruction behind the gate that a kernel does. */
typedef struct {
    const void *kernel;
    int n;
    int *inputs;            /* positions among the inputs of the gate */
} FitCheck;

typedef struct {
    int n_arrays;           /* arrays that are overwritten: the inputs after the first */
    PyObject *check;        /* called with all inputs, as something behind the gate might fail; NULL */
    int checks_values;      /* whether it depends on more than layouts */
    int n_fits;             /* 0, or how many native checks together are as good as that one */
    FitCheck *fits;
} GateSpec;

typedef struct {
    int others_run;         /* whether other threads may run before the call ends; the first field */
    int n;
    int64_t expected;
    const int *storages;
} GateCall;

/* Set by the module: return, as bits, the arrays without other holders; -1: an exception. With
   ``others_run``, other threads wait from now on until the call ends. */
static int64_t (*claim_arrays)(Frame *frame, int n, const int *storages, int others_run);

static int run_gate(const void *params, Frame *frame)
{
    const GateCall *c = (const GateCall *)params;
    const int64_t found = claim_arrays(frame, c->n, c->storages, c->others_run);
    return found < 0 ? RAISED : check_outcome(frame, 1, &found, &c->expected);
}

typedef struct {
    PyObject *check;
    int n;
    const Operand **inputs;
} CheckCall;

static int run_check(const void *params, Frame *frame)
{
    const CheckCall *c = (const CheckCall *)params;
    PyObject **shown = (PyObject **)alloca((size_t)(c->n + 1) * sizeof(PyObject *));
    PyObject *result = NULL;
    int i, lent, made = 0;
    if (before_python(frame->runner) < 0)
        return RAISED;
    for (i = 0; i < c->n; i++) {
        shown[i] = c->inputs[i] == NULL ? Py_NewRef(Py_None) : object_of(frame, c->inputs[i], &lent);
        if (shown[i] == NULL)
            break;
        made = i + 1;
    }
    if (made == c->n)
        result = call_quietly(frame->runner, c->check, shown, c->n);
    while (made > 0)
        Py_DECREF(shown[--made]);
    Py_XDECREF(result);
    return result == NULL ? RAISED : DONE;
}

static int plan_check(Planner *p, const GateSpec *spec)
{
    Call *call = new_call(p, run_check, "check", sizeof(CheckCall));
    CheckCall *c;
    int i, n = p->instruction->n_inputs, status;
    if (call == NULL)
        return no_memory();
    c = (CheckCall *)call->params;
    call->needs_gil = 1;
    c->check = spec->check;
    c->n = n;
    c->inputs = (const Operand **)pool_new(&p->pool, (size_t)n * sizeof(Operand *));
    if (c->inputs == NULL)
        return no_memory();
    for (i = 0; i < n; i++)
        c->inputs[i] = input_of(p, i);
    status = run_planned(p);
    if (status == DONE && !spec->checks_values)
        p->n_run = --p->n_calls;
    return status;
}

/* Whether nothing behind the gate can fail, as native checks tell. */
static int all_fit(const Planner *p, const GateSpec *spec)
{
    Operand *inputs[MOST_ARRAYS];
    int i, k;
    for (k = 0; k < spec->n_fits; k++) {
        const FitCheck *f = &spec->fits[k];
        for (i = 0; i < f->n; i++)
            inputs[i] = input_of(p, f->inputs[i]);
        if (!kernel_fits(f->kernel, inputs))
            return 0;
    }
    return spec->n_fits > 0;
}

static int plan_gate(Planner *p, const void *given)
{
    const GateSpec *spec = (const GateSpec *)given;
    Call *call;
    GateCall *c;
    int *storages;
    int k, status = spec->check == NULL || all_fit(p, spec) ? run_planned(p) : plan_check(p, spec);
    if (status != DONE)
        return status;
    storages = (int *)pool_new(&p->pool, (size_t)spec->n_arrays * sizeof(int));
    call = new_call(p, run_gate, "gate", sizeof(GateCall));
    if (call == NULL || storages == NULL)
        return no_memory();
    for (k = 0; k < spec->n_arrays; k++)
        storages[k] = input_of(p, 1 + k)->storage->index;
    c = (GateCall *)call->params;
    call->needs_gil = call->is_guard = call->is_gate = 1;
    c->n = spec->n_arrays;
    c->storages = storages;
    c->others_run = 1;
    c->expected = claim_arrays(p->frame, c->n, storages, 1);
    if (c->expected < 0)
        return RAISED;
    p->n_run = p->n_calls;
    p->is_behind_gate = 1;
    for (k = 0; k < spec->n_arrays; k++) {
        Operand *x = input_of(p, 1 + k), *z;
        if (c->expected >> k & 1) {
            z = same_place_as(p, x);
            if (z != NULL)
                z->flags |= WRITEABLE | ALONE;
        } else {
            z = new_copy(p, x, RESULT);
        }
        if (z == NULL)
            return no_memory();
        if (give_output(p, k, z) != DONE)
            return RAISED;
    }
    return DONE;
}

#endif
