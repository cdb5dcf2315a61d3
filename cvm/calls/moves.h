/* Arrays made of the elements of others: filled, copied, joined, and written in part. */
#ifndef SYMCOMP_CALLS_MOVES_H
#define SYMCOMP_CALLS_MOVES_H

#include "views.h"

/* The steps of y in a loop over ``shape``, its axes being the last ones; 0 if it does not fit, where
   ``stretching`` has the axes of y that may be stretched. */
static int stretched_steps(const Operand *y, int ndim, const int64_t *shape,
                           unsigned int stretching, int64_t *steps)
{
    const int before = ndim - y->ndim;
    int axis;
    if (before < 0)
        return 0;
    for (axis = 0; axis < before; axis++)
        steps[axis] = 0;
    for (axis = 0; axis < y->ndim; axis++) {
        if (y->shape[axis] == shape[before + axis])
            steps[before + axis] = y->strides[axis];
        else if (y->shape[axis] == 1 && stretching >> axis & 1)
            steps[before + axis] = 0;
        else
            return 0;
    }
    return 1;
}

typedef struct {
    int ndim;
    unsigned int stretching;
} FillSpec;

/* An array of given lengths filled with a value. */
static int plan_fill(Planner *p, const void *given)
{
    const FillSpec *spec = (const FillSpec *)given;
    const Operand *value = input_of(p, 0);
    int64_t shape[MOST_AXES], steps[MOST_AXES];
    Operand *z;
    int axis, status;
    if (!is_plain(value))
        return DECLINED;
    for (axis = 0; axis < spec->ndim; axis++) {
        status = guarded_number(p, input_of(p, 1 + axis), &shape[axis]);
        if (status != DONE)
            return status;
        if (shape[axis] < 0)
            return DECLINED;
    }
    if (!stretched_steps(value, spec->ndim, shape, spec->stretching, steps))
        return DECLINED;
    z = new_output(p, 0, value->type, value->itemsize, spec->ndim, shape);
    if (z == NULL)
        return no_memory();
    status = emit_move(p, z, 0, spec->ndim, shape, z->strides, value, steps,
                       function_that_sets(z->itemsize), "fill");
    return status == DONE ? give_output(p, 0, z) : status;
}

/* Emit: all elements of a part of these lengths, ``offset`` bytes behind the first element, are 0. */
static int emit_zeros(Planner *p, const Operand *z, int64_t offset, const int64_t *shape)
{
    static const char zero[16];
    Operand *none = new_constant(p, z->type, z->itemsize, 0, NULL, zero, 16);
    int64_t steps[MOST_AXES] = {0};
    if (none == NULL)
        return no_memory();
    return emit_move(p, z, offset, z->ndim, shape, z->strides, none, steps,
                     function_that_sets(z->itemsize), "zeros");
}

typedef struct {
    int c_order;
} CopySpec;

/* A copy in the same order of memory; with ``c_order`` x itself, or a copy that lies in C order. */
static int plan_copy(Planner *p, const void *given)
{
    const int c_order = ((const CopySpec *)given)->c_order;
    Operand *x = input_of(p, 0), *z;
    int64_t strides[MOST_AXES];
    int status;
    if (group_of(x) != NULL) {
        z = copied_group(p);
        return z == NULL ? no_memory() : give_output(p, 0, z);
    }
    if (!is_plain(x))
        return DECLINED;
    if (c_order && x->flags & C_ORDER)
        return give_output(p, 0, x);
    if (!c_order)
        steps_in_order(x, strides);
    z = new_output_apart(p, 0, x->type, x->itemsize, x->ndim, x->shape, c_order ? NULL : strides);
    if (z == NULL)
        return no_memory();
    status = emit_copy(p, z, x);
    return status == DONE ? give_output(p, 0, z) : status;
}

typedef struct {
    int axis, is_stacked;
} JoinSpec;

/* The lengths of the result; 0 if the inputs do not fit together. */
static int joined_shape(const Planner *p, const JoinSpec *spec, int ndim, int64_t *shape)
{
    const Operand *first = input_of(p, 0);
    int64_t total = 0;
    int i, axis, place;
    for (i = 0; i < p->instruction->n_inputs; i++) {
        const Operand *x = input_of(p, i);
        if (!is_plain(x) || x->type != first->type || x->ndim != first->ndim)
            return 0;
        for (axis = place = 0; axis < x->ndim; axis++, place++) {
            place += spec->is_stacked && axis == spec->axis;
            if (i == 0)
                shape[place] = x->shape[axis];
            else if (place != spec->axis && shape[place] != x->shape[axis])
                return 0;
        }
        total += spec->is_stacked ? 1 : x->shape[spec->axis];
    }
    shape[spec->axis] = total;
    return ndim <= MOST_AXES && spec->axis < ndim;
}

/* Whether the elements of an operand are already there. */
static int lies_at(const Operand *x, const Operand *z, int64_t offset, const int64_t *strides)
{
    int axis;
    if (x->storage != z->storage || x->offset != z->offset + offset)
        return 0;
    for (axis = 0; axis < x->ndim; axis++)
        if (x->strides[axis] != strides[axis] && x->shape[axis] > 1)
            return 0;
    return 1;
}

/* Join arrays along an axis, or stack them along a new one; operands that lie in their places
   already are not copied. */
static int plan_join(Planner *p, const void *given)
{
    const JoinSpec *spec = (const JoinSpec *)given;
    const Operand *first = input_of(p, 0);
    int64_t shape[MOST_AXES + 1], steps[MOST_AXES + 1], offset = 0;
    int i, axis, ndim, status;
    Operand *z;
    if (!is_plain(first))
        return DECLINED;
    ndim = first->ndim + spec->is_stacked;
    if (ndim > MOST_AXES || !joined_shape(p, spec, ndim, shape))
        return DECLINED;
    z = new_output(p, 0, first->type, first->itemsize, ndim, shape);
    if (z == NULL)
        return no_memory();
    for (axis = 0; axis < first->ndim; axis++)
        steps[axis] = z->strides[axis + (spec->is_stacked && axis >= spec->axis)];
    for (i = 0; i < p->instruction->n_inputs; i++) {
        const Operand *x = input_of(p, i);
        if (!lies_at(x, z, offset, steps)) {
            status = emit_move(p, z, offset, x->ndim, x->shape, steps, x, x->strides,
                               function_that_sets(x->itemsize), "join");
            if (status != DONE)
                return status;
        }
        offset += (spec->is_stacked ? 1 : x->shape[spec->axis]) * z->strides[spec->axis];
    }
    return give_output(p, 0, z);
}

typedef struct {
    int n_parts, ndim, axis, type, itemsize;
    int *inputs, *axes;     /* for each part and axis: of which input which length; -1: ``lengths`` */
    int64_t *lengths;
} ReserveSpec;

/* Memory for the parts of a join; then where each part begins, and the end. */
static int plan_reserve(Planner *p, const void *given)
{
    const ReserveSpec *spec = (const ReserveSpec *)given;
    int64_t shape[MOST_AXES], total = 0;
    int k, axis, at = 0, status;
    Operand *z, *start;
    for (k = 0; k < spec->n_parts; k++)
        for (axis = 0; axis < spec->ndim; axis++, at++) {
            int64_t n = spec->lengths[at];
            if (spec->inputs[at] >= 0) {
                const Operand *x = input_of(p, spec->inputs[at]);
                if (!is_array(x) || spec->axes[at] >= x->ndim)
                    return DECLINED;
                n = x->shape[spec->axes[at]];
            }
            if (axis == spec->axis) {
                start = new_constant(p, NPY_INT64, 8, 0, NULL, &total, 8);
                if (start == NULL)
                    return no_memory();
                status = give_output(p, 1 + k, start);
                if (status != DONE)
                    return status;
                total += n;
            } else if (k == 0) {
                shape[axis] = n;
            } else if (shape[axis] != n) {
                return DECLINED;
            }
        }
    shape[spec->axis] = total;
    start = new_constant(p, NPY_INT64, 8, 0, NULL, &total, 8);
    z = new_output(p, 0, spec->type, spec->itemsize, spec->ndim, shape);
    if (start == NULL || z == NULL)
        return no_memory();
    status = give_output(p, 1 + spec->n_parts, start);
    return status == DONE ? give_output(p, 0, z) : status;
}

/* The array that is written: x itself in place, what output 0 is written over, or a new one, holding
   what x holds. NULL: there is no memory. */
static Operand *array_to_write(Planner *p, Operand *x, int in_place)
{
    Operand *z;
    if (in_place && x->flags & WRITEABLE && !is_constant(x))
        return written_over(p, x);
    z = new_output(p, 0, x->type, x->itemsize, x->ndim, x->shape);
    if (z == NULL)
        return NULL;
    if (z->storage == x->storage && z->offset == x->offset)
        return z;
    return emit_copy(p, z, x) == DONE ? z : NULL;
}

/* The function that sets, or adds to, the elements of z; NULL if there is none. */
static move_function *writer_of(const Operand *z, int sets)
{
    if (sets)
        return function_that_sets(z->itemsize);
    return function_that_adds(kind_of_type(z->type), z->itemsize);
}

typedef struct {
    IndexSpec index;
    int sets, in_place;
    unsigned int stretching;
} WriteSpec;

/* x but ``z[...] = y`` or ``z[...] += y``, with numbers, slices and new axes. */
static int plan_write(Planner *p, const void *given)
{
    const WriteSpec *spec = (const WriteSpec *)given;
    Operand *x = input_of(p, 0), *y = input_of(p, 1), *from, *z, *part;
    int64_t steps[MOST_AXES];
    int status;
    if (!is_plain(x) || !is_plain(y) || x->type != y->type || writer_of(x, spec->sets) == NULL)
        return DECLINED;
    z = array_to_write(p, x, spec->in_place);
    if (z == NULL)
        return no_memory();
    part = part_of(p, &spec->index, z, &status);
    if (part == NULL)
        return status;
    if (!stretched_steps(y, part->ndim, part->shape, spec->stretching, steps))
        return DECLINED;
    from = may_overlap(z, y) ? scratch_copy(p, y) : y;
    if (from == NULL)
        return no_memory();
    if (from != y)
        stretched_steps(from, part->ndim, part->shape, spec->stretching, steps);
    status = emit_move(p, part, 0, part->ndim, part->shape, part->strides, from, steps,
                       writer_of(z, spec->sets), spec->sets ? "set part" : "add to part");
    return status == DONE ? give_output(p, 0, z) : status;
}

/* ---- rows, as many as a number says */

/* The first rows of an array; an array that begins, or ends, with the rows of one, the others being 0. */
typedef enum { TAKE_FIRST, PUT_FIRST, PUT_LAST } RowsKind;

typedef struct {
    RowsKind kind;
    int64_t more;           /* PUT_LAST: how many rows more than the number says */
} RowsSpec;

/* Emit: z has the rows of x from ``from`` on after ``before`` others, and zeros elsewhere. */
static int emit_rows(Planner *p, const Operand *z, int64_t before, const Operand *x, int64_t from)
{
    const int64_t rows = x->shape[0] - from, after = z->shape[0] - before - rows;
    int64_t shape[MOST_AXES];
    Operand *part;
    int status = DONE;
    memcpy(shape, x->shape, (size_t)x->ndim * sizeof(int64_t));
    shape[0] = rows;
    part = new_view(p, x, from * x->strides[0], x->ndim, shape, x->strides);
    if (part == NULL)
        return no_memory();
    if (rows > 0)
        status = emit_move(p, z, before * z->strides[0], z->ndim, shape, z->strides, part,
                           part->strides, function_that_sets(z->itemsize), "rows");
    shape[0] = before;
    if (status == DONE && before > 0)
        status = emit_zeros(p, z, 0, shape);
    shape[0] = after;
    if (status == DONE && after > 0)
        status = emit_zeros(p, z, (before + rows) * z->strides[0], shape);
    return status;
}

static int plan_rows(Planner *p, const void *given)
{
    const RowsSpec *spec = (const RowsSpec *)given;
    const int is_last = spec->kind == PUT_LAST;
    const Operand *x = input_of(p, is_last);
    int64_t shape[MOST_AXES], n, from = 0;
    Operand *z;
    int status;
    if (!is_plain(x) || x->ndim < 1)
        return DECLINED;
    status = guarded_number(p, input_of(p, !is_last), &n);
    if (status != DONE)
        return status;
    memcpy(shape, x->shape, (size_t)x->ndim * sizeof(int64_t));
    if (__builtin_add_overflow(n, spec->more, &shape[0]))
        return DECLINED;
    shape[0] = shape[0] > 0 ? shape[0] : 0;
    if (spec->kind == TAKE_FIRST) {
        if (n < 0 || n > x->shape[0])
            return DECLINED;
        z = new_view(p, x, 0, x->ndim, shape, x->strides);
        return z == NULL ? no_memory() : give_output(p, 0, z);
    }
    if (is_last && x->shape[0] > shape[0])
        from = x->shape[0] - shape[0];
    else if (n < 0 || x->shape[0] > shape[0])
        return DECLINED;
    z = new_output(p, 0, x->type, x->itemsize, x->ndim, shape);
    if (z == NULL)
        return no_memory();
    if (z->size > 0) {
        status = emit_rows(p, z, is_last ? shape[0] - (x->shape[0] - from) : 0, x, from);
        if (status != DONE)
            return status;
    }
    return give_output(p, 0, z);
}

#endif
