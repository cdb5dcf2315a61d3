/* Planning: an instruction's calls are made from the layouts of its operands, and run at once,
   as later instructions may depend on their results. The plan is kept as a segment. */
#ifndef SYMCOMP_PLANNER_H
#define SYMCOMP_PLANNER_H

#include "operands.h"

/* ---- interface for the plan functions of instructions */

static inline Operand *input_of(const Planner *p, int i)
{
    const int slot = p->instruction->inputs[i];
    return slot < 0 ? NULL : p->of_slot[slot];
}

static inline int give_output(Planner *p, int j, Operand *x)
{
    return bind_slot(p, p->instruction->outputs[j], x);
}

/* Memory of this run for a storage. */
static int provide(Planner *p, Storage *s)
{
    const int i = s->index;
    if (s->kind == ARRAY || (s->kind == RESULT && !p->code->is_nested))
        return make_array(p->frame, s);
    if (s->bytes <= SMALL_BLOCK) {
        p->frame->address[i] = (char *)pool_new(&p->small_blocks, SMALL_BLOCK);
        return p->frame->address[i] == NULL ? no_memory() : DONE;
    }
    p->block[i] = p->frame->address[i] = (char *)malloc((size_t)s->bytes);
    if (p->block[i] == NULL)
        return no_memory();
    p->bytes += s->bytes;
    if (p->bytes > p->peak)
        p->peak = p->bytes;
    return DONE;
}

static Call *new_call(Planner *p, call_function *run, const char *name, size_t params_size);

typedef struct {
    const Storage *storage;
} MadeArray;

static int run_make_array(const void *params, Frame *frame)
{
    const Storage *s = ((const MadeArray *)params)->storage;
    return s->is_host ? DONE : make_array(frame, s);
}

/* An array that lies in a storage of its own, in C order or as ``strides`` say, which leave no gaps;
   NULL if there is no memory. */
static Operand *new_array_operand(Planner *p, StorageKind kind, int type, int itemsize, int ndim,
                                  const int64_t *shape, const int64_t *strides)
{
    Storage *s;
    Operand *x;
    Call *call;
    int64_t bytes = itemsize;
    int axis;
    for (axis = 0; axis < ndim; axis++)
        bytes *= shape[axis];
    s = new_storage(p, kind, bytes);
    if (s == NULL)
        return NULL;
    x = new_operand(p, s, 0, type, itemsize, ndim, shape, strides);
    if (x == NULL)
        return NULL;
    x->flags |= WHOLE;
    s->whole = x;
    if (is_made_late(p->code, kind, bytes)) {
        call = new_call(p, run_make_array, "new array", sizeof(MadeArray));
        if (call == NULL)
            return NULL;
        ((MadeArray *)call->params)->storage = s;
        call->needs_gil = 1;
        return x;
    }
    return provide(p, s) == DONE ? x : NULL;
}

/* The operand that output j is to be written over, if it can hold it; NULL if there is none. */
static Operand *overwritable_operand(Planner *p, int j, int type, int ndim, const int64_t *shape)
{
    Operand *x;
    int axis;
    if (j >= p->instruction->n_into || p->instruction->into[j] < 0)
        return NULL;
    x = p->of_slot[p->instruction->into[j]];
    if (x == NULL || x->type != type || x->ndim != ndim || x->storage->kind == CONSTANT ||
        (x->flags & (BEHAVED | WRITEABLE)) != (BEHAVED | WRITEABLE))
        return NULL;
    for (axis = 0; axis < ndim; axis++)
        if (x->shape[axis] != shape[axis])
            return NULL;
    return x;
}

/* Another operand for what will be in the same place. */
static Operand *same_place_as(Planner *p, const Operand *x)
{
    Operand *z = new_operand(p, x->storage, x->offset, x->type, x->itemsize, x->ndim, x->shape,
                             x->strides);
    if (z != NULL)
        z->flags = x->flags;
    return z;
}

/* The operand of an output written over x: x itself, unless a guard told the numbers that it had. */
static inline Operand *written_over(Planner *p, Operand *x)
{
    const int guarded = x->guarded_by == p->serial || x->truth_guarded_by == p->serial;
    return guarded ? same_place_as(p, x) : x;
}

/* An operand for output j: what it is written over, if that can hold it, else a new array in C order.
   Not bound to the slot yet. NULL: there is no memory. */
static Operand *new_output(Planner *p, int j, int type, int itemsize, int ndim,
                           const int64_t *shape)
{
    const int slot = p->instruction->outputs[j];
    Operand *over = overwritable_operand(p, j, type, ndim, shape);
    const StorageKind kind = (StorageKind)p->code->makes_array[slot];
    if (over != NULL)
        return written_over(p, over);
    return new_array_operand(p, kind == INPUT ? ARENA : kind, type, itemsize, ndim, shape, NULL);
}

/* An operand for output j that is not written over another. */
static Operand *new_output_apart(Planner *p, int j, int type, int itemsize, int ndim,
                                 const int64_t *shape, const int64_t *strides)
{
    const StorageKind kind = (StorageKind)p->code->makes_array[p->instruction->outputs[j]];
    return new_array_operand(p, kind == INPUT ? ARENA : kind, type, itemsize, ndim, shape, strides);
}

/* Memory that one instruction needs while it runs. */
static Operand *new_scratch(Planner *p, int type, int itemsize, int ndim, const int64_t *shape)
{
    Operand *x = new_array_operand(p, ARENA, type, itemsize, ndim, shape, NULL);
    if (x == NULL || !make_room((void **)&p->scratch, p->n_scratch, &p->scratch_capacity,
                                sizeof(Storage *)))
        return NULL;
    p->users[x->storage->index] = 1;
    p->scratch[p->n_scratch++] = x->storage;
    return x;
}

/* The instruction has run. */
static void drop_scratch(Planner *p)
{
    while (p->n_scratch > 0)
        drop_storage(p, p->scratch[--p->n_scratch]);
}

/* A view: another array over the memory of one. */
static Operand *new_view(Planner *p, const Operand *x, int64_t offset, int ndim,
                         const int64_t *shape, const int64_t *strides)
{
    Operand *z = new_operand(p, x->storage, x->offset + offset, x->type, x->itemsize, ndim, shape,
                             strides);
    if (z != NULL)
        z->flags = (z->flags & ~(BEHAVED | WRITEABLE)) | (x->flags & (BEHAVED | WRITEABLE));
    return z;
}

/* An array whose address a call sets: in the memory of ``base``, or its own (NULL). */
static Operand *new_late(Planner *p, const Operand *base, int type, int itemsize, int ndim,
                         const int64_t *shape, const int64_t *strides)
{
    Storage *s = new_storage(p, LATE, 0);
    Operand *z;
    if (s == NULL)
        return NULL;
    if (base != NULL) {
        s->base = base->storage;
        p->users[base->storage->index]++;
    }
    z = new_operand(p, s, 0, type, itemsize, ndim, shape, strides);
    if (z != NULL && base != NULL)
        z->flags = (z->flags & ~(BEHAVED | WRITEABLE)) | (base->flags & (BEHAVED | WRITEABLE));
    return z;
}

/* A call with parameters that lie in the pool; NULL if there is no memory. */
static Call *append_call(Planner *p, call_function *run, const char *name, void *params)
{
    Call *call;
    if (!make_room((void **)&p->calls, p->n_calls, &p->call_capacity, sizeof(Call)))
        return NULL;
    call = &p->calls[p->n_calls++];
    *call = (Call){.run = run, .params = params, .name = name, .position = p->position};
    return call;
}

/* The same, with zeroed parameters. */
static Call *new_call(Planner *p, call_function *run, const char *name, size_t params_size)
{
    void *params = pool_new(&p->pool, params_size);
    return params == NULL ? NULL : append_call(p, run, name, params);
}

typedef struct {
    int storage;
} ForgottenObject;

static int run_forget(const void *params, Frame *frame)
{
    PyObject **object = &frame->object[((const ForgottenObject *)params)->storage];
    Py_CLEAR(*object);
    return DONE;
}

/* Let go of an object that nothing reads any more; in later runs, too, if it is no small array. Others may have
   memory elsewhere, as arrays on devices. */
static int forget_object(Planner *p, const Storage *s)
{
    if (s->bytes >= MEDIUM_ARRAY || !PyArray_Check(p->frame->object[s->index])) {
        Call *call = new_call(p, run_forget, "drop array", sizeof(ForgottenObject));
        if (call != NULL) {
            ((ForgottenObject *)call->params)->storage = s->index;
            call->needs_gil = 1;
            p->n_run = p->n_calls;
        }
    }
    Py_CLEAR(p->frame->object[s->index]);
    return DONE;
}

/* Say what a call reads and writes. */
static int set_operands(Planner *p, Call *call, int n_reads, const Operand **reads, int n_writes,
                        const Operand **writes)
{
    const Operand **found =
        (const Operand **)pool_take(&p->pool, (size_t)(n_reads + n_writes) * sizeof(Operand *));
    int i;
    if (found == NULL)
        return no_memory();
    for (i = 0; i < n_reads; i++) {
        ONE_BY_ONE;
        found[i] = reads[i];
    }
    for (i = 0; i < n_writes; i++) {
        ONE_BY_ONE;
        found[n_reads + i] = writes[i];
    }
    call->operands = found;
    call->n_reads = (short)n_reads;
    call->n_writes = (short)n_writes;
    return DONE;
}

static inline Mark state_of(const Planner *p, int position)
{
    const Mark now = {position,      p->n_storages, p->n_calls, p->n_bindings,
                      p->n_nested,   p->in_python,  p->saved};
    return now;
}

static inline int add_mark(Planner *p, const Mark *mark)
{
    if (!make_room((void **)&p->marks, p->n_marks, &p->mark_capacity, sizeof(Mark)))
        return no_memory();
    p->marks[p->n_marks++] = *mark;
    return DONE;
}

/* Keep the results so far if a later guard in this instruction fails: the instruction continues
   from here. ``saved`` lives as long as the plan. */
static int checkpoint(Planner *p, const void *saved)
{
    Mark mark;
    p->saved = saved;
    mark = state_of(p, p->position);
    return add_mark(p, &mark);
}

/* Record that a call runs a segment of another program, which lives as long as the plan. */
static int refer_to(Planner *p, Segment *nested)
{
    if (!make_room((void **)&p->nested, p->n_nested, &p->nested_capacity, sizeof(Segment *)))
        return no_memory();
    p->nested[p->n_nested++] = nested;
    nested->references++;
    return DONE;
}

/* ---- running the plan */

/* Run the calls that were not run yet. */
static int run_planned(Planner *p)
{
    const Call *call, *end = p->calls + p->n_calls;
    double work = 0;
    int status = DONE;
    for (call = p->calls + p->n_run; call < end; call++)
        work += call->work;
    for (call = p->calls + p->n_run; call < end && status == DONE; call++) {
        if (call->needs_gil)
            take_gil(p->runner);
        else if (work >= WORTH_RELEASING)
            give_up_gil(p->runner);
        status = call->run(call->params, p->frame);
    }
    take_gil(p->runner);
    if (status == DONE && PyErr_Occurred())
        status = RAISED;
    if (status == DONE)
        p->n_run = p->n_calls;
    return status;
}

#endif
