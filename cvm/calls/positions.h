/* Positions in the tables of kernels: checked, and counted from the beginning, before a kernel runs. */
#ifndef SYMCOMP_POSITIONS_H
#define SYMCOMP_POSITIONS_H

#include "indexing.h"

typedef struct {
    Place index, found;
    int kind, ndim;         /* of the index array, as in IndexArray */
    int64_t count;
    int64_t length, step;   /* of the table: its length, and how many elements of memory it advances */
    int64_t shape[MOST_AXES], steps[MOST_AXES];
} FindCall;

/* Set the place in a table of each element of an index array; 0 if a position is out of range. */
static int find_positions(const FindCall *c, const char *index, int64_t *found)
{
    if (c->count == 0)
        return 1;
    memset(found, 0, (size_t)c->count * sizeof(int64_t));
    return add_positions(c->kind, c->ndim, c->shape, index, c->steps, c->length, c->step, found);
}

static int run_find_positions(const void *params, Frame *frame)
{
    const FindCall *c = (const FindCall *)params;
    int64_t *found = (int64_t *)data_at(frame, &c->found);
    return find_positions(c, data_at(frame, &c->index), found) ? DONE : DECLINED;
}

/* An operand for positions that are the same in all runs; NULL: there is no memory. */
static Operand *kept_positions(Planner *p, const Operand *index, int64_t *found)
{
    Storage *s = new_storage(p, CONSTANT, index->size * (int64_t)sizeof(int64_t));
    if (s == NULL)
        return NULL;
    s->object = NULL;
    s->address = p->frame->address[s->index] = (char *)found;
    return new_operand(p, s, 0, NPY_INT64, sizeof(int64_t), index->ndim, index->shape, NULL);
}

/* The positions that an index array holds, as places in the memory of a vector: of int64, in C order.
   Those of constants are found once, unless one is out of range or there are many. NULL: there is no
   memory. */
static Operand *positions_in(Planner *p, const Operand *table, const Operand *index)
{
    FindCall check = {.kind = integer_kind(index), .ndim = index->ndim, .count = index->size,
                       .length = table->shape[0], .step = table->strides[0] / table->itemsize};
    const Operand *writes[1];
    Operand *found;
    Call *call;
    memcpy(check.shape, index->shape, (size_t)index->ndim * sizeof(int64_t));
    memcpy(check.steps, index->strides, (size_t)index->ndim * sizeof(int64_t));
    if (is_constant(index) && index->size <= MOST_KEPT_POSITIONS) {
        int64_t *kept = (int64_t *)pool_new(&p->pool, (size_t)(index->size + 1) * sizeof(int64_t));
        if (kept == NULL)
            return NULL;
        if (find_positions(&check, data_of(p, index), kept))
            return kept_positions(p, index, kept);
    }
    found = new_scratch(p, NPY_INT64, sizeof(int64_t), index->ndim, index->shape);
    call = found == NULL ? NULL : new_call(p, run_find_positions, "positions", sizeof(FindCall));
    if (call == NULL)
        return NULL;
    check.index = placed(index);
    check.found = placed(found);
    *(FindCall *)call->params = check;
    call->work = (double)index->size;
    call->is_independent = 1;
    writes[0] = found;
    return set_operands(p, call, 1, &index, 1, writes) == DONE ? found : NULL;
}

#endif
