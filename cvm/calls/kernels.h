/* Generated kernels, and the loops of ufuncs, over the elements of operands. */
#ifndef SYMCOMP_KERNELS_H
#define SYMCOMP_KERNELS_H

#include "../thread_pool.h"
#include "positions.h"

/* A kernel gets the lengths of its loop, and for each array, inputs first, its address and a row of
   strides in bytes, 0 where it is stretched or reduced; the addresses of constants follow; then a team
   that shares large loops. Tables are vectors of any length: elements of them are read at positions,
   which are inputs in the loop, of int64, and in range; or an output is the table, to whose elements
   it adds. It returns 0, or another number if it cannot
   compute: then nothing is changed. Without a team all arrays lie in C order and none is stretched: the
   first length is the number of elements. Without addresses it only keeps in the team what it derives
   from lengths and strides, and tells how much memory it needs. */
typedef int kernel_function(char **data, const int64_t *shape, const int64_t *strides,
                            const Team *team);

/* Where a kernel is, as codegen/compiler/early.py writes it. Another with the same results may take its place at
   any time. */
typedef struct {
    kernel_function *run;
    int64_t early;
} KernelCode;

/* From this much work on, code that is not optimized takes longer than optimizing it does. */
static const double WORTH_WAITING = 5e7;

/* Set by the module: wait until the kernel of a Code (codegen/compiler/early.py) is the optimized one. */
static int (*wait_for_code)(PyObject *code);

typedef struct {
    KernelCode *code;
    PyObject *code_object;      /* owns the code */
    int64_t early_calls;        /* how often it was not optimized yet */
    int n_inputs, n_outputs, n_constants, ndim, steps, threads, elementwise;
    int is_simple;              /* elementwise, and no axis is stretched, dropped or a table's */
    int64_t least;              /* elements from which on threads share them */
    int *types, *itemsizes;     /* of inputs and outputs */
    unsigned int *stretched;    /* of inputs and outputs: axes of length 1, as bits */
    unsigned int *dropped;      /* of outputs: axes that they do not have */
    int n_tables;
    int *tables, *positions;    /* of each table: inputs */
    int *scattered;             /* of each table: the output that adds to its elements; -1: none does */
    char *is_table;             /* of inputs and outputs */
    int scatters;               /* whether an output is a table */
    char *apart;                /* of outputs: whether no input is written over */
    char **constants;
} KernelSpec;

typedef struct {
    KernelCode *code;
    int64_t *early_calls;
    int n_arrays, n_constants, in_order;
    Team team;
    Place *places;
    char **constants;
    int64_t *shape, *strides;
    const void *order;
    int64_t bytes;              /* of memory while it runs */
    Place memory;
} KernelCall;

/* Run a kernel that needs memory. */
static __attribute__((noinline)) int run_in_memory(const KernelCall *c, char **data, Frame *frame)
{
    Team team = c->team;
    team.memory = data_at(frame, &c->memory);
    return c->code->run(data, c->shape, c->strides, &team);
}

static int run_kernel(const void *params, Frame *frame)
{
    const KernelCall *c = (const KernelCall *)params;
    char *data[MOST_ARRAYS];
    int i, n = c->n_arrays;
    for (i = 0; i < n; i++)
        data[i] = data_at(frame, &c->places[i]);
    for (i = 0; i < c->n_constants; i++)
        data[n + i] = c->constants[i];
    if (c->code->early)
        ++*c->early_calls;
    if (c->bytes > 0)
        return run_in_memory(c, data, frame) ? DECLINED : DONE;
    return c->code->run(data, c->shape, c->strides, c->in_order ? NULL : &c->team) ? DECLINED : DONE;
}

/* Take in the lengths and strides of one input; 0 if it does not fit. */
static int read_kernel_input(const KernelSpec *k, int i, const Operand *x, int64_t *shape,
                             int64_t *strides)
{
    int axis;
    if (!is_plain(x) || x->ndim != (k->is_table[i] ? 1 : k->ndim) || x->type != k->types[i])
        return 0;
    if (k->is_table[i]) {
        memset(strides, 0, (size_t)k->ndim * sizeof(int64_t));
        return 1;
    }
    for (axis = 0; axis < k->ndim; axis++) {
        const int64_t n = x->shape[axis];
        if (k->stretched[i] >> axis & 1) {
            if (n != 1)
                return 0;
            strides[axis] = 0;
        } else if (shape[axis] < 0 || shape[axis] == n) {
            shape[axis] = n;
            strides[axis] = x->strides[axis];
        } else {
            return 0;
        }
    }
    return 1;
}

/* The same for all inputs; a length that no input tells is -1. */
static int read_kernel_inputs(const KernelSpec *k, Operand *const *inputs, int64_t *shape, int64_t *strides)
{
    int i, axis;
    for (axis = 0; axis < k->ndim; axis++)
        shape[axis] = -1;
    for (i = 0; i < k->n_inputs; i++)
        if (!read_kernel_input(k, i, inputs[i], shape, strides + i * k->ndim))
            return 0;
    return 1;
}

static int kernel_fits(const void *spec, Operand *const *inputs)
{
    int64_t shape[MOST_AXES], strides[MOST_AXES * MOST_ARRAYS];
    return read_kernel_inputs((const KernelSpec *)spec, inputs, shape, strides);
}

/* Whether positions in two vectors are the same places in their memory. */
static int same_axis(const Operand *x, const Operand *y)
{
    return x->shape[0] == y->shape[0] &&
           x->strides[0] / x->itemsize == y->strides[0] / y->itemsize;
}

/* An operand for output i, and its strides in the loop. */
static Operand *kernel_output(Planner *p, const KernelSpec *k, int i, const int64_t *shape,
                              int64_t *strides)
{
    const int at = k->n_inputs + i;
    int64_t lengths[MOST_AXES];
    int axis, ndim = 0;
    Operand *z;
    for (axis = 0; axis < k->ndim; axis++)
        if (!(k->dropped[i] >> axis & 1))
            lengths[ndim++] = k->stretched[at] >> axis & 1 ? 1 : shape[axis];
    z = k->apart[i] ? new_output_apart(p, i, k->types[at], k->itemsizes[at], ndim, lengths, NULL)
                    : new_output(p, i, k->types[at], k->itemsizes[at], ndim, lengths);
    if (z == NULL)
        return NULL;
    for (axis = ndim = 0; axis < k->ndim; axis++) {
        strides[axis] = 0;
        if (k->dropped[i] >> axis & 1)
            continue;
        if (!(k->stretched[at] >> axis & 1))
            strides[axis] = z->strides[ndim];
        ndim++;
    }
    return z;
}

/* Whether a kernel may add to the elements of a table in its place. */
static int may_add_to(const KernelSpec *k, Operand *const *arrays, int table, const Operand *z)
{
    int i;
    if (z->strides[0] % z->itemsize)
        return 0;
    for (i = 0; i < k->n_inputs; i++)
        if (i != table && may_overlap(z, arrays[i]))
            return 0;
    return 1;
}

/* The table that output i is: the input itself, or a copy. NULL: there is no memory. */
static Operand *table_to_add_to(Planner *p, const KernelSpec *k, Operand *const *arrays, int table, int i)
{
    Operand *x = arrays[table];
    Operand *z = new_output(p, i, x->type, x->itemsize, x->ndim, x->shape);
    const int is_x = z != NULL && z->storage == x->storage && z->offset == x->offset;
    if (is_x && may_add_to(k, arrays, table, z))
        return z;
    if (is_x)
        z = new_output_apart(p, i, x->type, x->itemsize, x->ndim, x->shape, NULL);
    return z == NULL || emit_copy(p, z, x) != DONE ? NULL : z;
}

/* Take tables and positions as the kernel reads them. Equal positions in tables of equal lengths are
   one array. */
static int plan_tables(Planner *p, const KernelSpec *k, Operand **arrays, int64_t *strides)
{
    Operand *given[MOST_ARRAYS];
    int i, j, axis;
    for (i = 0; i < k->n_tables; i++) {
        Operand **table = &arrays[k->tables[i]], **positions = &arrays[k->positions[i]];
        if (k->scattered[i] >= 0)
            arrays[k->n_inputs + k->scattered[i]] = *table =
                table_to_add_to(p, k, arrays, k->tables[i], k->scattered[i]);
        else if ((*table)->strides[0] % (*table)->itemsize)
            *table = scratch_copy(p, *table);
        if (*table == NULL)
            return no_memory();
        given[i] = *positions;
        for (j = 0; j < i; j++)
            if (given[j] == given[i] && same_axis(arrays[k->tables[j]], *table))
                break;
        *positions = j < i ? arrays[k->positions[j]] : positions_in(p, *table, given[i]);
        if (*positions == NULL)
            return no_memory();
        for (axis = 0; axis < k->ndim; axis++)
            strides[k->positions[i] * k->ndim + axis] =
                k->stretched[k->positions[i]] >> axis & 1 ? 0 : (*positions)->strides[axis];
    }
    return DONE;
}

/* If all arrays lie in order and none is stretched, one axis is enough. */
static void join_kernel_axes(const KernelSpec *k, KernelCall *c, Operand *const *arrays,
                             int64_t size)
{
    int i;
    if (!k->elementwise || size <= 0 || c->team.threads != 1)
        return;
    for (i = 0; i < c->n_arrays; i++)
        if (!k->is_table[i] && (arrays[i]->size != size || !(arrays[i]->flags & C_ORDER)))
            return;
    c->in_order = 1;
    c->shape[0] = size;
}

/* How many threads share a loop. */
static inline int threads_of_kernel(const KernelSpec *k, int64_t size)
{
    return size < k->least || k->scatters ? 1 : k->threads;
}

/* Emit the call on arrays, inputs first, with room for ``n_lengths`` lengths and ``n_strides`` strides; NULL: there
   is no memory. */
static KernelCall *emit_kernel(Planner *p, const KernelSpec *k, Operand *const *arrays, int64_t size,
                               int n_lengths, int n_strides)
{
    const int n = k->n_inputs + k->n_outputs;
    const size_t bytes = sizeof(KernelCall) + (size_t)n * (sizeof(Place) + sizeof(Operand *)) +
                         sizeof(Operand *) + (size_t)(n_lengths + n_strides) * sizeof(int64_t);
    KernelCall *c = (KernelCall *)pool_take(&p->pool, bytes);
    const Operand **operands;
    Call *call = c == NULL ? NULL : append_call(p, run_kernel, "kernel", c);
    int i;
    if (call == NULL)
        return NULL;
    *c = (KernelCall){.code = k->code, .early_calls = (int64_t *)&k->early_calls, .n_arrays = n,
                      .n_constants = k->n_constants, .constants = k->constants,
                      .team = {.threads = threads_of_kernel(k, size), .run = share}};
    c->places = (Place *)(c + 1);
    c->shape = (int64_t *)(c->places + n);
    c->strides = c->shape + n_lengths;
    operands = (const Operand **)(c->strides + n_strides);
    for (i = 0; i < n; i++) {
        ONE_BY_ONE;
        c->places[i] = placed(arrays[i]);
        operands[i] = arrays[i];
    }
    call->operands = operands;
    call->n_reads = (short)k->n_inputs;
    call->n_writes = (short)k->n_outputs;
    call->work = (double)size * k->steps;
    call->is_independent = 1;
    call->uses_threads = c->team.threads > 1;
    return c;
}

/* The call is complete. */
static int give_kernel_outputs(Planner *p, const KernelSpec *k, Operand *const *arrays, int64_t size)
{
    int i;
    if (k->code->early && (double)size * k->steps >= WORTH_WAITING && wait_for_code(k->code_object) < 0)
        return RAISED;
    for (i = 0; i < k->n_outputs; i++)
        if (give_output(p, i, arrays[k->n_inputs + i]) != DONE)
            return RAISED;
    return DONE;
}

/* Whether the inputs of a simple kernel have one shape and lie in C order: one axis is enough. */
static int are_in_order(const KernelSpec *k, Operand *const *inputs)
{
    const Operand *x = inputs[0];
    int i, axis;
    if (!k->is_simple)
        return 0;
    for (i = 0; i < k->n_inputs; i++) {
        const Operand *y = inputs[i];
        if (!is_plain(y) || y->type != k->types[i] || y->ndim != k->ndim || !(y->flags & C_ORDER))
            return 0;
        for (axis = 0; i > 0 && axis < k->ndim; axis++) {
            ONE_BY_ONE;
            if (y->shape[axis] != x->shape[axis])
                return 0;
        }
    }
    return x->size > 0 && threads_of_kernel(k, x->size) == 1;
}

/* Memory for the order of a kernel. */
static void *take_from_pool(void *pool, size_t bytes)
{
    return pool_take((Pool *)pool, bytes);
}

/* Keep the order in which a kernel passes over the arrays of the last call, and take the memory that it needs, as
   another array that it writes. */
static int keep_order(Planner *p, const KernelSpec *k, KernelCall *c)
{
    Operand *memory;
    Call *call;
    c->team.order = &c->order;
    c->team.take = take_from_pool;
    c->team.owner = &p->pool;
    c->team.bytes = &c->bytes;
    if (k->code->run(NULL, c->shape, c->strides, &c->team))
        return no_memory();
    if (c->bytes == 0)
        return DONE;
    memory = new_scratch(p, NPY_UINT8, 1, 1, &c->bytes);
    if (memory == NULL)
        return no_memory();
    memory->storage->first = p->n_calls - 1; /* The call is there. */
    c->memory = placed(memory);
    call = &p->calls[p->n_calls - 1];
    call->operands[call->n_reads + call->n_writes++] = memory;
    return DONE;
}

/* Emit the call with lengths and strides of all axes, or of one if all arrays lie in order. */
static int emit_loops(Planner *p, const KernelSpec *k, Operand *const *arrays, int64_t size,
                      const int64_t *shape, const int64_t *strides)
{
    const int n_strides = (k->n_inputs + k->n_outputs) * k->ndim;
    KernelCall *c = emit_kernel(p, k, arrays, size, k->ndim + 1, n_strides);
    if (c == NULL)
        return no_memory();
    memcpy(c->shape, shape, (size_t)k->ndim * sizeof(int64_t));
    memcpy(c->strides, strides, (size_t)n_strides * sizeof(int64_t));
    join_kernel_axes(k, c, arrays, size);
    if (!c->in_order && keep_order(p, k, c) != DONE)
        return RAISED;
    return give_kernel_outputs(p, k, arrays, size);
}

/* The same where an output is written over an array in another order. Apart from what calls it, as it needs much of
   the stack. */
static __attribute__((noinline)) int emit_loops_in_other_order(Planner *p, const KernelSpec *k,
                                                               Operand *const *arrays)
{
    int64_t shape[MOST_AXES], strides[MOST_AXES * MOST_ARRAYS];
    int i;
    read_kernel_inputs(k, arrays, shape, strides);
    for (i = k->n_inputs; i < k->n_inputs + k->n_outputs; i++)
        memcpy(strides + i * k->ndim, arrays[i]->strides, (size_t)k->ndim * sizeof(int64_t));
    return emit_loops(p, k, arrays, arrays[0]->size, shape, strides);
}

/* The usual kernel: it needs no strides, unless it writes over an array in another order. */
static int plan_in_order(Planner *p, const KernelSpec *k, Operand **arrays)
{
    const Operand *x = arrays[0];
    int i, in_order = 1;
    KernelCall *c;
    for (i = 0; i < k->n_outputs; i++) {
        const int at = k->n_inputs + i;
        Operand *z =
            k->apart[i] ? new_output_apart(p, i, k->types[at], k->itemsizes[at], k->ndim, x->shape, NULL)
                        : new_output(p, i, k->types[at], k->itemsizes[at], k->ndim, x->shape);
        if (z == NULL)
            return no_memory();
        arrays[at] = z;
        in_order &= (z->flags & C_ORDER) != 0;
    }
    if (!in_order)
        return emit_loops_in_other_order(p, k, arrays);
    c = emit_kernel(p, k, arrays, x->size, 1, 0);
    if (c == NULL)
        return no_memory();
    c->in_order = 1;
    c->shape[0] = x->size;
    return give_kernel_outputs(p, k, arrays, x->size);
}

/* Any other kernel. Apart from what calls it, as it needs much of the stack. */
static __attribute__((noinline)) int plan_along_axes(Planner *p, const KernelSpec *k, Operand **arrays)
{
    int64_t size = 1, shape[MOST_AXES], strides[MOST_AXES * MOST_ARRAYS];
    int i, axis;
    if (!read_kernel_inputs(k, arrays, shape, strides))
        return DECLINED;
    for (i = 0; i < k->n_tables; i++)
        if (k->scattered[i] >= 0 && writer_of(arrays[k->tables[i]], 0) == NULL)
            return DECLINED;
    if (plan_tables(p, k, arrays, strides) != DONE)
        return RAISED;
    for (axis = 0; axis < k->ndim; axis++) {
        if (shape[axis] < 0)
            shape[axis] = 1;
        size *= shape[axis];
    }
    for (i = 0; i < k->n_outputs; i++) {
        if (k->is_table[k->n_inputs + i]) {
            memset(strides + (k->n_inputs + i) * k->ndim, 0, (size_t)k->ndim * sizeof(int64_t));
            continue;
        }
        arrays[k->n_inputs + i] =
            kernel_output(p, k, i, shape, strides + (k->n_inputs + i) * k->ndim);
        if (arrays[k->n_inputs + i] == NULL)
            return no_memory();
    }
    return emit_loops(p, k, arrays, size, shape, strides);
}

static int plan_kernel(Planner *p, const void *given)
{
    const KernelSpec *k = (const KernelSpec *)given;
    Operand *arrays[MOST_ARRAYS];   /* inputs, then outputs */
    int i;
    for (i = 0; i < k->n_inputs; i++)
        arrays[i] = input_of(p, i);
    return are_in_order(k, arrays) ? plan_in_order(p, k, arrays) : plan_along_axes(p, k, arrays);
}

#endif
