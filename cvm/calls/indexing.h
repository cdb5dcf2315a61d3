/* Elements, rows and parts read and written at positions that arrays hold. */
#ifndef SYMCOMP_INDEXING_H
#define SYMCOMP_INDEXING_H

#include "moves.h"

/* Fewer positions are listed on the stack; those of constants, unless they are more, once. */
enum { FEW_POSITIONS = 1024, MOST_KEPT_POSITIONS = 1 << 16 };

typedef struct {
    IndexSpec index;
    int place;              /* the axes of positions come before this axis of the others */
    int sets, in_place;     /* of writing */
    unsigned int stretching;
} PositionsSpec;

/* An array of positions in one axis. */
typedef struct {
    Place place;
    int kind;               /* the size of the integers, negative if they have no sign */
    int64_t length, stride; /* of the axis */
    int64_t steps[MOST_AXES];
} IndexArray;

typedef struct {
    Place x, other;         /* the array that is indexed, and the other one */
    int reads, ndim, n_arrays, has_table;
    int64_t count;
    int64_t shape[MOST_AXES];   /* of positions */
    int64_t other_steps[MOST_AXES];
    IndexArray *arrays;
    const int64_t *table;   /* of positions that are the same in all runs; NULL: each run lists them */
    Place memory;           /* for the table of more than FEW_POSITIONS */
    struct places plan;
    move_function *move;
} PositionsCall;

/* List the offsets of all positions and of the axes for them; 0 if one is out of range. */
static int list_positions(const PositionsCall *c, const Frame *frame, int64_t *table)
{
    int i;
    memset(table, 0, (size_t)c->count * sizeof(int64_t));
    for (i = 0; i < c->n_arrays && c->count; i++) {
        const IndexArray *a = &c->arrays[i];
        if (!add_positions(a->kind, c->ndim, c->shape, data_at(frame, &a->place), a->steps,
                           a->length, a->stride, table))
            return 0;
    }
    if (c->has_table && c->count)
        list_offsets(c->ndim, c->shape, c->other_steps, table + c->count);
    return 1;
}

static void move_positions(const PositionsCall *c, Frame *frame, const int64_t *table)
{
    struct places plan = c->plan;
    char *x = data_at(frame, &c->x), *other = data_at(frame, &c->other);
    plan.table = table;
    plan.other = c->has_table ? table + c->count : NULL;
    move_all_places(&plan, c->move, c->reads ? other : x, c->reads ? x : other);
}

static int run_positions(const void *params, Frame *frame)
{
    const PositionsCall *c = (const PositionsCall *)params;
    int64_t few[2 * FEW_POSITIONS], *table = few;
    if (c->table != NULL) {
        move_positions(c, frame, c->table);
        return DONE;
    }
    if (c->count > FEW_POSITIONS)
        table = (int64_t *)data_at(frame, &c->memory);
    if (!list_positions(c, frame, table))
        return DECLINED;
    move_positions(c, frame, table);
    return DONE;
}

/* List the positions of constants once and for all. Positions out of range are left to the run. */
static int keep_positions(Planner *p, const PositionsSpec *spec, PositionsCall *c)
{
    int64_t *table;
    int i;
    if (c->count == 0 || c->count > MOST_KEPT_POSITIONS)
        return DONE;
    for (i = 0; i < spec->index.n_entries; i++)
        if (spec->index.entries[i].kind == ARRAY_AT &&
            !is_constant(input_of(p, spec->index.entries[i].bounds[0].input)))
            return DONE;
    table = (int64_t *)pool_new(&p->pool, (1 + (size_t)c->has_table) * (size_t)c->count *
                                              sizeof(int64_t));
    if (table == NULL)
        return no_memory();
    if (list_positions(c, p->frame, table))
        c->table = table;
    return DONE;
}

/* Broadcast the shape of one more index array with those before; 0 if it does not fit. */
static int join_positions(const Operand *index, int *ndim, int64_t *shape)
{
    const int more = index->ndim - *ndim;
    int axis;
    if (more > 0) {
        for (axis = *ndim - 1; axis >= 0; axis--)
            shape[axis + more] = shape[axis];
        for (axis = 0; axis < more; axis++)
            shape[axis] = 1;
        *ndim += more;
    }
    for (axis = 0; axis < index->ndim; axis++) {
        const int place = *ndim - index->ndim + axis;
        const int64_t n = index->shape[axis];
        if (shape[place] == 1)
            shape[place] = n;
        else if (n != 1 && n != shape[place])
            return 0;
    }
    return 1;
}

/* The size of the integers of an index array, negative if they have no sign; 0 for others. */
static int integer_kind(const Operand *x)
{
    const char kind = is_plain(x) ? kind_of_type(x->type) : 0;
    return kind == 'i' ? x->itemsize : kind == 'u' ? -x->itemsize : 0;
}

/* Read the index arrays of an expression for an array; DECLINED if they do not fit. */
static int read_arrays(Planner *p, const PositionsSpec *spec, const Operand *x, PositionsCall *c)
{
    const Entry *entries = spec->index.entries;
    const int n = spec->index.n_entries;
    int i, at = 0, axis = 0;
    c->ndim = c->n_arrays = 0;
    c->count = 1;
    for (i = 0; i < n; i++)
        if (entries[i].kind == ARRAY_AT) {
            const Operand *index = input_of(p, entries[i].bounds[0].input);
            if (!integer_kind(index) || !join_positions(index, &c->ndim, c->shape))
                return DECLINED;
            c->n_arrays++;
        }
    for (i = 0; i < c->ndim; i++)
        c->count *= c->shape[i];
    c->arrays = (IndexArray *)pool_new(&p->pool, (size_t)c->n_arrays * sizeof(IndexArray));
    if (c->arrays == NULL)
        return no_memory();
    for (i = 0; i < n; i++) {
        if (entries[i].kind == ARRAY_AT) {
            const Operand *index = input_of(p, entries[i].bounds[0].input);
            IndexArray *a = &c->arrays[at++];
            if (axis >= x->ndim)
                return DECLINED;
            a->place = placed(index);
            a->kind = integer_kind(index);
            a->length = x->shape[axis];
            a->stride = x->strides[axis];
            stretched_steps(index, c->ndim, c->shape, (unsigned int)-1, a->steps);
        }
        axis += entries[i].kind != NEW_AT && entries[i].kind != GAP_AT;
    }
    return DONE;
}

/* The shape of the part that is read or written: that of the other axes, with the axes of the
   index arrays in their place. */
static int whole_shape(const PositionsSpec *spec, const PositionsCall *c, const Operand *rest,
                       int64_t *shape)
{
    const int after = rest->ndim - spec->place;
    if (rest->ndim + c->ndim > MOST_AXES)
        return -1;
    memcpy(shape, rest->shape, (size_t)spec->place * sizeof(int64_t));
    memcpy(shape + spec->place, c->shape, (size_t)c->ndim * sizeof(int64_t));
    memcpy(shape + spec->place + c->ndim, rest->shape + spec->place,
           (size_t)after * sizeof(int64_t));
    return rest->ndim + c->ndim;
}

/* The loops: ``rest`` is the part of the indexed array, ``steps`` the strides of the other one. */
static void set_loops(const PositionsSpec *spec, PositionsCall *c, const Operand *rest,
                      const int64_t *steps)
{
    const int last = c->ndim - 1, after = rest->ndim - spec->place;
    const int64_t *axis_steps = steps + spec->place, *inner = axis_steps + c->ndim;
    const int64_t *own = rest->strides, *lengths = rest->shape;
    int axis, is_one = 1;
    for (axis = 0; axis < last; axis++)
        is_one &= axis_steps[axis] == axis_steps[axis + 1] * c->shape[axis + 1];
    c->has_table = !is_one;
    memcpy(c->other_steps, axis_steps, (size_t)c->ndim * sizeof(int64_t));
    c->plan.count = c->count;
    c->plan.reads = c->reads;
    c->plan.step = last >= 0 ? axis_steps[last] : 0;
    if (c->reads) {
        order_axes(&c->plan.outer, spec->place, lengths, steps, own);
        order_axes(&c->plan.inner, after, lengths + spec->place, inner, own + spec->place);
    } else {
        order_axes(&c->plan.outer, spec->place, lengths, own, steps);
        order_axes(&c->plan.inner, after, lengths + spec->place, own + spec->place, inner);
    }
}

/* Emit the call, whose parameters are ready but for where its arrays lie: in ``rest``, as positions in the other
   axes count from there, of ``x``, any element of which it may read or write, and in the other array. */
static int emit_positions(Planner *p, const PositionsSpec *spec, PositionsCall *ready, const Operand *x,
                          const Operand *rest, const Operand *other)
{
    const Operand *reads[2 + MOST_AXES], *writes[2] = {ready->reads ? other : x, NULL};
    const int64_t length = (1 + ready->has_table) * ready->count;
    Call *call;
    int i, n = 0;
    ready->x = placed(rest);
    ready->other = placed(other);
    if (keep_positions(p, spec, ready) != DONE)
        return RAISED;
    if (ready->table == NULL && ready->count > FEW_POSITIONS) {
        writes[1] = new_scratch(p, NPY_INT64, 8, 1, &length);
        if (writes[1] == NULL)
            return no_memory();
        ready->memory = placed(writes[1]);
    }
    call = new_call(p, run_positions, ready->reads ? "gather" : "scatter", sizeof(PositionsCall));
    if (call == NULL)
        return no_memory();
    *(PositionsCall *)call->params = *ready;
    call->work = (double)ready->count * ready->plan.inner.size * ready->plan.outer.size;
    call->is_independent = 1;
    reads[n++] = ready->reads ? x : other;
    for (i = 0; i < spec->index.n_entries && n < 2 + MOST_AXES; i++)
        if (spec->index.entries[i].kind == ARRAY_AT)
            reads[n++] = input_of(p, spec->index.entries[i].bounds[0].input);
    return set_operands(p, call, n, reads, writes[1] == NULL ? 1 : 2, writes);
}

/* ``x[...]`` with arrays of positions. */
static int plan_gather(Planner *p, const void *given)
{
    const PositionsSpec *spec = (const PositionsSpec *)given;
    const Operand *x = input_of(p, 0), *rest;
    PositionsCall c;
    int64_t shape[MOST_AXES];
    Operand *z;
    int ndim, status;
    if (!is_plain(x))
        return DECLINED;
    memset(&c, 0, sizeof(c));
    c.reads = 1;
    rest = part_of(p, &spec->index, x, &status);
    if (rest != NULL)
        status = read_arrays(p, spec, x, &c);
    if (status != DONE)
        return status;
    ndim = whole_shape(spec, &c, rest, shape);
    if (ndim < 0)
        return DECLINED;
    z = new_output(p, 0, x->type, x->itemsize, ndim, shape);
    if (z == NULL)
        return no_memory();
    set_loops(spec, &c, rest, z->strides);
    c.move = c.plan.inner.size == 1 && !c.has_table ? function_that_takes(x->itemsize)
                                                    : function_that_sets(x->itemsize);
    status = emit_positions(p, spec, &c, x, rest, z);
    return status == DONE ? give_output(p, 0, z) : status;
}

/* x but ``z[...] = y`` or ``+= y``, with arrays of positions, in their order. */
static int plan_scatter(Planner *p, const void *given)
{
    const PositionsSpec *spec = (const PositionsSpec *)given;
    Operand *x = input_of(p, 0), *y = input_of(p, 1), *from, *z;
    const Operand *rest;
    PositionsCall c;
    int64_t shape[MOST_AXES], steps[MOST_AXES];
    int ndim, status;
    if (!is_plain(x) || !is_plain(y) || x->type != y->type || writer_of(x, spec->sets) == NULL)
        return DECLINED;
    memset(&c, 0, sizeof(c));
    z = array_to_write(p, x, spec->in_place);
    if (z == NULL)
        return no_memory();
    rest = part_of(p, &spec->index, z, &status);
    if (rest != NULL)
        status = read_arrays(p, spec, z, &c);
    if (status != DONE)
        return status;
    ndim = whole_shape(spec, &c, rest, shape);
    if (ndim < 0 || !stretched_steps(y, ndim, shape, spec->stretching, steps))
        return DECLINED;
    from = may_overlap(z, y) ? scratch_copy(p, y) : y;
    if (from == NULL)
        return no_memory();
    if (from != y)
        stretched_steps(from, ndim, shape, spec->stretching, steps);
    set_loops(spec, &c, rest, steps);
    c.move = writer_of(z, spec->sets);
    status = emit_positions(p, spec, &c, z, rest, from);
    return status == DONE ? give_output(p, 0, z) : status;
}

#endif
