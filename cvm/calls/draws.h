/* Draws of random numbers: NumPy's distributions, from a state that is an array. */
#ifndef SYMCOMP_CALLS_DRAWS_H
#define SYMCOMP_CALLS_DRAWS_H

#include "kernels.h"
#include "moves.h"

/* About how much work a number is, as for kernels. */
enum { WORK_OF_DRAW = 8 };

typedef struct {
    kernel_function *draw;
    int ndim, type, itemsize;
    int parameter;          /* an input; -1: none */
    int is_single;          /* whether it is one number for all that are drawn */
} DrawSpec;

typedef struct {
    kernel_function *draw;
    int n;
    Place places[4];
    int64_t count, strides[4];
} DrawCall;

static int run_draw(const void *params, Frame *frame)
{
    const DrawCall *c = (const DrawCall *)params;
    char *data[4];
    int i;
    for (i = 0; i < c->n; i++)
        data[i] = data_at(frame, &c->places[i]);
    return c->draw(data, &c->count, c->strides, NULL) ? DECLINED : DONE;
}

/* The inputs are the state, the lengths, and maybe a parameter; the outputs the state after it, and the
   numbers. */
static int plan_draw(Planner *p, const void *given)
{
    const DrawSpec *spec = (const DrawSpec *)given;
    const Operand *reads[2] = {input_of(p, 0), NULL};
    Operand *writes[2];
    const int64_t words = 4;
    int64_t shape[MOST_AXES];
    int axis, status, n = 1;
    Call *call;
    DrawCall *c;
    if (!is_plain(reads[0]) || reads[0]->type != NPY_UINT64 || reads[0]->ndim != 1 ||
        reads[0]->shape[0] != 4 || !(reads[0]->flags & C_ORDER))
        return DECLINED;
    for (axis = 0; axis < spec->ndim; axis++) {
        status = guarded_number(p, input_of(p, 1 + axis), &shape[axis]);
        if (status != DONE)
            return status;
        if (shape[axis] < 0)
            return DECLINED;
    }
    if (spec->parameter >= 0) {
        const Operand *x = reads[n++] = input_of(p, spec->parameter);
        if (!is_plain(x) || x->type != NPY_FLOAT64 || x->ndim != spec->ndim ||
            !(x->flags & C_ORDER))
            return DECLINED;
        for (axis = 0; axis < spec->ndim; axis++)
            if (x->shape[axis] != (spec->is_single ? 1 : shape[axis]))
                return DECLINED;
    }
    writes[0] = new_output_apart(p, 0, NPY_UINT64, 8, 1, &words, NULL);
    writes[1] = new_output(p, 1, spec->type, spec->itemsize, spec->ndim, shape);
    if (writes[0] == NULL || writes[1] == NULL)
        return no_memory();
    if (!(writes[1]->flags & C_ORDER))
        writes[1] = new_output_apart(p, 1, spec->type, spec->itemsize, spec->ndim, shape, NULL);
    call = new_call(p, run_draw, "draw", sizeof(DrawCall));
    if (call == NULL || writes[1] == NULL)
        return no_memory();
    c = (DrawCall *)call->params;
    c->draw = spec->draw;
    c->places[0] = placed(reads[0]);
    if (n == 2) {
        c->places[1] = placed(reads[1]);
        c->strides[1] = spec->is_single ? 0 : (int64_t)sizeof(double);
    }
    c->places[n] = placed(writes[0]);
    c->places[n + 1] = placed(writes[1]);
    c->n = n + 2;
    c->count = writes[1]->size;
    call->work = (double)c->count * WORK_OF_DRAW;
    call->is_independent = 1;
    if (set_operands(p, call, n, reads, 2, (const Operand **)writes) != DONE ||
        give_output(p, 0, writes[0]) != DONE)
        return RAISED;
    return give_output(p, 1, writes[1]);
}

#endif
