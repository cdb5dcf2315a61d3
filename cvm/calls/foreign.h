/* Calls of C functions of ops that are defined outside of symcomp (../native_call.h). */
#ifndef SYMCOMP_CALLS_FOREIGN_H
#define SYMCOMP_CALLS_FOREIGN_H

#include "../native_call.h"
#include "../plan/planner.h"

enum { MOST_FOREIGN = 16 };

typedef struct {
    NativePlan *plan;
    NativeRun *run;
    const void *params;
    int n_inputs, n_outputs;
    int type[MOST_FOREIGN], itemsize[MOST_FOREIGN], ndim[MOST_FOREIGN]; /* inputs, then outputs */
    double work;            /* operations for each element of inputs and outputs */
} ForeignSpec;

typedef struct {
    const ForeignSpec *spec;
    NativeArray arrays[MOST_FOREIGN];   /* without their data */
    Place places[MOST_FOREIGN];
} ForeignCall;

static int run_foreign(const void *params, Frame *frame)
{
    const ForeignCall *c = (const ForeignCall *)params;
    const int n = c->spec->n_inputs + c->spec->n_outputs;
    NativeArray arrays[MOST_FOREIGN];
    int i;
    for (i = 0; i < n; i++) {
        arrays[i] = c->arrays[i];
        arrays[i].data = data_at(frame, &c->places[i]);
    }
    return c->spec->run(c->spec->params, arrays, arrays + c->spec->n_inputs) == NATIVE_DONE
               ? DONE
               : DECLINED;
}

static void describe_array(ForeignCall *c, int i, const Operand *x)
{
    c->arrays[i].ndim = x->ndim;
    c->arrays[i].shape = x->shape;
    c->arrays[i].strides = x->strides;
    c->places[i] = placed(x);
}

static int plan_foreign(Planner *p, const void *given)
{
    const ForeignSpec *spec = (const ForeignSpec *)given;
    const Operand *operands[MOST_FOREIGN];
    int64_t lengths[MOST_FOREIGN][MOST_AXES], *shapes[MOST_FOREIGN];
    ForeignCall *c = (ForeignCall *)pool_new(&p->pool, sizeof(ForeignCall));
    double elements = 0;
    Call *call;
    int i, j, axis, status;
    if (c == NULL)
        return no_memory();
    c->spec = spec;
    for (i = 0; i < spec->n_inputs; i++) {
        const Operand *x = operands[i] = input_of(p, i);
        if (!is_plain(x) || x->type != spec->type[i] || x->ndim != spec->ndim[i])
            return DECLINED;
        describe_array(c, i, x);
        elements += (double)x->size;
    }
    for (j = 0; j < spec->n_outputs; j++)
        shapes[j] = lengths[j];
    if (spec->plan(spec->params, spec->n_inputs, c->arrays, shapes) != NATIVE_DONE)
        return DECLINED;
    for (j = 0; j < spec->n_outputs; j++) {
        const int k = spec->n_inputs + j;
        Operand *z;
        for (axis = 0; axis < spec->ndim[k]; axis++)
            if (shapes[j][axis] < 0)
                return DECLINED;
        z = new_output_apart(p, j, spec->type[k], spec->itemsize[k], spec->ndim[k], shapes[j], NULL);
        if (z == NULL)
            return no_memory();
        operands[k] = z;
        describe_array(c, k, z);
        elements += (double)z->size;
    }
    call = new_call(p, run_foreign, "C function", 0);
    if (call == NULL)
        return no_memory();
    call->params = c;
    call->work = spec->work * elements;
    call->is_independent = 1;
    call->uses_blas = 1;
    status = set_operands(p, call, spec->n_inputs, operands, spec->n_outputs,
                          operands + spec->n_inputs);
    for (j = 0; status == DONE && j < spec->n_outputs; j++)
        status = give_output(p, j, (Operand *)operands[spec->n_inputs + j]);
    return status;
}

#endif
