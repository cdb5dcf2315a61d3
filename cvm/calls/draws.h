/* Draws of random numbers: NumPy's distributions, from a state that is an array. */
#ifndef SYMCOMP_CALLS_DRAWS_H
#define SYMCOMP_CALLS_DRAWS_H

#include "kernels.h"
#include "moves.h"

/* About how much work a number is, as for kernels. */
enum { WORK_OF_DRAW = 8 };

enum { MOST_PARAMETERS = 3 };

typedef struct {
    kernel_function *draw;
    int ndim, type, itemsize;
    int n;                                      /* of the parameters */
    int types[MOST_PARAMETERS];
    int is_vector[MOST_PARAMETERS];             /* whether it has one more axis, that of a draw */
    unsigned int stretching[MOST_PARAMETERS];   /* axes that have length 1 by their types */
    int gives_vectors;
} DrawSpec;

typedef struct {
    kernel_function *draw;
    int n;
    Place places[MOST_PARAMETERS + 3];
    int64_t shape[3], strides[MOST_PARAMETERS + 3];
} DrawCall;

static int run_draw(const void *params, Frame *frame)
{
    const DrawCall *c = (const DrawCall *)params;
    char *data[MOST_PARAMETERS + 3];
    int i;
    for (i = 0; i < c->n; i++)
        data[i] = data_at(frame, &c->places[i]);
    return c->draw(data, c->shape, c->strides, NULL) ? DECLINED : DONE;
}

/* A parameter next to each other for all draws, or for one if that serves for all. NULL: no memory, or it
   does not fit (``status``). */
static const Operand *parameter_of_draws(Planner *p, const DrawSpec *spec, int k, const int64_t *lengths,
                                         int64_t *stride, int *status)
{
    Operand *x = input_of(p, 1 + spec->ndim + k), *z;
    const int rank = spec->ndim + spec->is_vector[k];
    int64_t shape[MOST_AXES + 1], steps[MOST_AXES + 1];
    int axis, fits = 1;
    *status = DECLINED;
    if (!is_plain(x) || x->type != spec->types[k] || x->ndim != rank || rank > MOST_AXES)
        return NULL;
    *status = RAISED;
    *stride = spec->is_vector[k] ? x->shape[rank - 1] * x->itemsize : x->itemsize;
    if (spec->stretching[k] == (1u << spec->ndim) - 1) {
        *stride = 0;
        z = in_c_order(p, x);
        return z == NULL ? (no_memory(), NULL) : z;
    }
    for (axis = 0; axis < rank; axis++) {
        shape[axis] = axis < spec->ndim ? lengths[axis] : x->shape[axis];
        fits = fits && x->shape[axis] == shape[axis];
    }
    if (fits && x->flags & C_ORDER)
        return x;
    if (!stretched_steps(x, rank, shape, spec->stretching[k], steps)) {
        *status = DECLINED;
        return NULL;
    }
    z = new_scratch(p, x->type, x->itemsize, rank, shape);
    if (z == NULL || emit_move(p, z, 0, rank, shape, z->strides, x, steps,
                               function_that_sets(x->itemsize), "copy") != DONE)
        return no_memory(), NULL;
    return z;
}

/* The inputs are the state, the lengths, and parameters; the outputs the state after it, and the
   numbers. */
static int plan_draw(Planner *p, const void *given)
{
    const DrawSpec *spec = (const DrawSpec *)given;
    const Operand *reads[MOST_PARAMETERS + 1] = {input_of(p, 0)};
    Operand *writes[2];
    int64_t shape[MOST_AXES + 1], strides[MOST_PARAMETERS], outcomes = 1, count = 1;
    const int rank = spec->ndim + spec->gives_vectors;
    int axis, k, status;
    Call *call;
    DrawCall *c;
    if (!is_plain(reads[0]) || reads[0]->type != NPY_UINT64 || reads[0]->ndim != 1 ||
        (reads[0]->shape[0] != 4 && reads[0]->shape[0] != 6) || !(reads[0]->flags & C_ORDER))
        return DECLINED;
    for (axis = 0; axis < spec->ndim; axis++) {
        status = guarded_number(p, input_of(p, 1 + axis), &shape[axis]);
        if (status != DONE)
            return status;
        if (shape[axis] < 0)
            return DECLINED;
        count *= shape[axis];
    }
    for (k = 0; k < spec->n; k++) {
        reads[1 + k] = parameter_of_draws(p, spec, k, shape, &strides[k], &status);
        if (reads[1 + k] == NULL)
            return status;
        if (spec->is_vector[k])
            outcomes = shape[spec->ndim] = reads[1 + k]->shape[spec->ndim];
    }
    writes[0] = new_output_apart(p, 0, NPY_UINT64, 8, 1, reads[0]->shape, NULL);
    writes[1] = new_output(p, 1, spec->type, spec->itemsize, rank, shape);
    if (writes[0] == NULL || writes[1] == NULL)
        return no_memory();
    if (!(writes[1]->flags & C_ORDER))
        writes[1] = new_output_apart(p, 1, spec->type, spec->itemsize, rank, shape, NULL);
    call = new_call(p, run_draw, "draw", sizeof(DrawCall));
    if (call == NULL || writes[1] == NULL)
        return no_memory();
    c = (DrawCall *)call->params;
    c->draw = spec->draw;
    c->n = spec->n + 3;
    for (k = 0; k <= spec->n; k++) {
        c->places[k] = placed(reads[k]);
        c->strides[k] = k ? strides[k - 1] : 0;
    }
    c->places[k] = placed(writes[0]);
    c->places[k + 1] = placed(writes[1]);
    c->shape[0] = count;
    c->shape[1] = reads[0]->shape[0];
    c->shape[2] = outcomes;
    call->work = (double)writes[1]->size * WORK_OF_DRAW;
    call->is_independent = 1;
    if (set_operands(p, call, spec->n + 1, reads, 2, (const Operand **)writes) != DONE ||
        give_output(p, 0, writes[0]) != DONE)
        return RAISED;
    return give_output(p, 1, writes[1]);
}

#endif
