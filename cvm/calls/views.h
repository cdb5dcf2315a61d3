/* Views: parts, other axes, other shapes, and lengths. */
#ifndef SYMCOMP_VIEWS_H
#define SYMCOMP_VIEWS_H

#include "../plan/copies.h"
#include "../plan/guards.h"

/* The entries of an index expression: a number, a slice, a new axis, an array of positions, and one
   that takes no axis but parts the arrays on its sides. */
enum { ONE_AT = 0, RANGE_AT = 1, NEW_AT = 2, ARRAY_AT = 3, GAP_AT = 4 };

typedef struct {
    int given;
    int input;              /* of the instruction; -1: ``value`` is it */
    int64_t value;
    Place place;            /* of the input, in a call */
} Bound;

typedef struct {
    int kind;
    Bound bounds[3];        /* start, stop and step of a slice; the first is the position, or array */
} Entry;

typedef struct {
    int n_entries;
    Entry *entries;
} IndexSpec;

/* The part of an array that an index expression without arrays leaves. */
typedef struct {
    int ndim;
    int64_t offset;
    int64_t shape[MOST_AXES], strides[MOST_AXES];
} Region;

static inline int64_t bound_value(const Bound *b, const Frame *frame)
{
    return b->input < 0 ? b->value : *(const int64_t *)data_at(frame, &b->place);
}

/* Read a slice of an axis of n: its length, first element and step; return 0 for an error. */
static int read_slice(const Entry *e, const Frame *frame, int64_t n, int64_t *length,
                      int64_t *start, int64_t *step)
{
    Py_ssize_t first, stop;
    *step = e->bounds[2].given ? bound_value(&e->bounds[2], frame) : 1;
    if (*step == 0 || *step == PY_SSIZE_T_MIN)
        return 0;
    first = e->bounds[0].given ? bound_value(&e->bounds[0], frame)
                               : *step > 0 ? 0 : PY_SSIZE_T_MAX;
    stop = e->bounds[1].given ? bound_value(&e->bounds[1], frame)
                              : *step > 0 ? PY_SSIZE_T_MAX : PY_SSIZE_T_MIN;
    *length = PySlice_AdjustIndices(n, &first, &stop, *step);
    *start = first;
    return 1;
}

static int add_axis(Region *found, int64_t length, int64_t stride)
{
    if (found->ndim == MOST_AXES)
        return 0;
    found->shape[found->ndim] = length;
    found->strides[found->ndim++] = stride;
    return 1;
}

/* The part of an array of these axes that entries name, those with arrays leaving out their axes; 0 if
   it is not there. */
static int read_region(const Entry *entries, int n, const Frame *frame, int ndim,
                       const int64_t *shape, const int64_t *strides, Region *found)
{
    int i, axis = 0;
    int64_t at, step, length;
    found->ndim = 0;
    found->offset = 0;
    for (i = 0; i < n; i++) {
        const Entry *e = &entries[i];
        if (e->kind == NEW_AT && !add_axis(found, 1, 0))
            return 0;
        if (e->kind == NEW_AT || e->kind == GAP_AT)
            continue;
        if (axis >= ndim)
            return 0;
        length = shape[axis];
        if (e->kind == ONE_AT) {
            at = bound_value(&e->bounds[0], frame);
            at += at < 0 ? length : 0;
            if (at < 0 || at >= length)
                return 0;
            found->offset += at * strides[axis];
        } else if (e->kind == RANGE_AT) {
            if (!read_slice(e, frame, length, &length, &at, &step))
                return 0;
            found->offset += length > 0 ? at * strides[axis] : 0;
            if (!add_axis(found, length, step * strides[axis]))
                return 0;
        }
        axis++;
    }
    for (; axis < ndim; axis++)
        if (!add_axis(found, shape[axis], strides[axis]))
            return 0;
    return 1;
}

/* ---- parts whose beginning, and maybe lengths, numbers name */

typedef struct {
    Place x;
    int ndim, n_entries, storage;
    const int64_t *shape, *strides;
    Entry *entries;
    int n_expected;
    int64_t *expected;      /* lengths, then strides */
} PartCall;

static int run_part(const void *params, Frame *frame)
{
    const PartCall *c = (const PartCall *)params;
    int64_t found[2 * MOST_AXES];
    Region region;
    if (!read_region(c->entries, c->n_entries, frame, c->ndim, c->shape, c->strides, &region))
        return DECLINED;
    memcpy(found, region.shape, (size_t)region.ndim * sizeof(int64_t));
    memcpy(found + region.ndim, region.strides, (size_t)region.ndim * sizeof(int64_t));
    frame->address[c->storage] = data_at(frame, &c->x) + region.offset;
    return check_outcome(frame, 2 * region.ndim, found, c->expected);
}

/* The entries with the places of their numbers; whether all of these are known. NULL: one is no number
   (``status`` is DECLINED), or there is no memory. */
static Entry *placed_entries(Planner *p, const IndexSpec *spec, int *are_known, int *status)
{
    Entry *entries = (Entry *)pool_copy(&p->pool, spec->entries,
                                        (size_t)spec->n_entries * sizeof(Entry));
    int i, k;
    *are_known = 1;
    *status = entries == NULL ? no_memory() : run_planned(p);
    if (*status != DONE)
        return NULL;
    for (i = 0; i < spec->n_entries; i++)
        for (k = 0; k < 3 && entries[i].kind <= RANGE_AT; k++) {
            Bound *b = &entries[i].bounds[k];
            const Operand *x;
            if (!b->given || b->input < 0)
                continue;
            x = input_of(p, b->input);
            if (!is_number(x)) {
                *status = DECLINED;
                return NULL;
            }
            b->place = placed(x);
            *are_known &= is_constant(x);
        }
    return entries;
}

/* The part of ``x`` that an index expression names. NULL: ``status`` says why. */
static Operand *part_of(Planner *p, const IndexSpec *spec, const Operand *x, int *status)
{
    int are_known;
    Entry *entries = placed_entries(p, spec, &are_known, status);
    Region region;
    Operand *z;
    Call *call;
    PartCall *c;
    if (entries == NULL)
        return NULL;
    if (!read_region(entries, spec->n_entries, p->frame, x->ndim, x->shape, x->strides, &region)) {
        *status = DECLINED;
        return NULL;
    }
    if (are_known) {
        z = new_view(p, x, region.offset, region.ndim, region.shape, region.strides);
    } else {
        z = new_late(p, x, x->type, x->itemsize, region.ndim, region.shape, region.strides);
        call = new_call(p, run_part, "part", sizeof(PartCall));
        if (z != NULL && call != NULL) {
            c = (PartCall *)call->params;
            call->is_guard = 1;
            c->x = placed(x);
            c->ndim = x->ndim;
            c->shape = x->shape;
            c->strides = x->strides;
            c->entries = entries;
            c->n_entries = spec->n_entries;
            c->storage = z->storage->index;
            c->n_expected = 2 * region.ndim;
            c->expected = z->shape; /* the strides follow */
            *status = set_operands(p, call, 1, &x, 0, NULL);
        } else {
            z = NULL;
        }
    }
    if (z == NULL)
        *status = no_memory();
    return *status == DONE ? z : NULL;
}

static int plan_view(Planner *p, const void *given)
{
    const Operand *x = input_of(p, 0);
    Operand *z;
    int status;
    if (!is_array(x))
        return DECLINED;
    z = part_of(p, (const IndexSpec *)given, x, &status);
    return z == NULL ? status : give_output(p, 0, z);
}

/* ---- other axes */

typedef struct {
    int ndim, n_axes;
    int *order;             /* for each axis of the result that of the input, -1: a new one */
    unsigned int kept;      /* the axes of the input that are in it, as bits */
} TransposeSpec;

static int plan_transpose(Planner *p, const void *given)
{
    const TransposeSpec *spec = (const TransposeSpec *)given;
    const Operand *x = input_of(p, 0);
    int64_t shape[MOST_AXES], strides[MOST_AXES];
    Operand *z;
    int axis;
    if (!is_array(x) || x->ndim != spec->ndim)
        return DECLINED;
    for (axis = 0; axis < x->ndim; axis++)
        if (!(spec->kept >> axis & 1) && x->shape[axis] != 1)
            return DECLINED;
    for (axis = 0; axis < spec->n_axes; axis++) {
        const int from = spec->order[axis];
        shape[axis] = from < 0 ? 1 : x->shape[from];
        strides[axis] = from < 0 ? 0 : x->strides[from];
    }
    z = new_view(p, x, 0, spec->n_axes, shape, strides);
    return z == NULL ? no_memory() : give_output(p, 0, z);
}

/* ---- diagonals */

typedef struct {
    int64_t down, right;    /* from the first element of the matrix to that of the diagonal */
} DiagonalSpec;

/* A view of the elements i + down, i + right of the last two axes, for all i that there are. */
static int plan_diagonal(Planner *p, const void *given)
{
    const DiagonalSpec *spec = (const DiagonalSpec *)given;
    const Operand *x = input_of(p, 0);
    const int last = x->ndim - 2;
    int64_t shape[MOST_AXES], strides[MOST_AXES], rows, columns, n, offset;
    Operand *z;
    if (!is_array(x) || last < 0)
        return DECLINED;
    rows = x->shape[last] - spec->down;
    columns = x->shape[last + 1] - spec->right;
    n = rows < columns ? rows : columns;
    n = n > 0 ? n : 0;
    memcpy(shape, x->shape, (size_t)last * sizeof(int64_t));
    memcpy(strides, x->strides, (size_t)last * sizeof(int64_t));
    shape[last] = n;
    strides[last] = x->strides[last] + x->strides[last + 1];
    offset = n ? spec->down * x->strides[last] + spec->right * x->strides[last + 1] : 0;
    z = new_view(p, x, offset, last + 1, shape, strides);
    return z == NULL ? no_memory() : give_output(p, 0, z);
}

/* ---- numbers in vectors */

typedef struct {
    Place x;
    int n;
    int64_t stride;
    int64_t *expected;
} VectorGuard;

static int run_vector_guard(const void *params, Frame *frame)
{
    const VectorGuard *g = (const VectorGuard *)params;
    const char *data = data_at(frame, &g->x);
    int64_t found[MOST_OUTCOME];
    int i;
    for (i = 0; i < g->n; i++)
        found[i] = *(const int64_t *)(data + i * g->stride);
    return check_outcome(frame, g->n, found, g->expected);
}

/* Read a vector of n numbers that layouts depend on. */
static int guarded_vector(Planner *p, Operand *x, int n, int64_t *found)
{
    Call *call;
    VectorGuard *g;
    int i, status;
    if (!is_plain(x) || x->type != NPY_INT64 || x->ndim != 1 || x->shape[0] != n ||
        n > MOST_OUTCOME)
        return DECLINED;
    status = run_planned(p);
    if (status != DONE)
        return status;
    for (i = 0; i < n; i++)
        found[i] = *(const int64_t *)(data_of(p, x) + i * x->strides[0]);
    if (is_constant(x) || x->guarded_by == p->serial)
        return DONE;
    call = new_call(p, run_vector_guard, "guard numbers", sizeof(VectorGuard));
    if (call == NULL)
        return no_memory();
    g = (VectorGuard *)call->params;
    g->x = placed(x);
    g->n = n;
    g->stride = x->strides[0];
    g->expected = (int64_t *)pool_copy(&p->pool, found, (size_t)n * sizeof(int64_t));
    if (g->expected == NULL)
        return no_memory();
    return complete_guard(p, call, x, &x->guarded_by);
}

typedef struct {
    int axis;
} AxisSpec;

/* Views of the pieces of x along an axis, one for each output; a vector holds their lengths. */
static int plan_pieces(Planner *p, const void *given)
{
    const int axis = ((const AxisSpec *)given)->axis;
    const Operand *x = input_of(p, 0);
    int64_t sizes[MOST_OUTCOME], shape[MOST_AXES], total = 0, offset = 0;
    int i, status, n = p->instruction->n_outputs;
    if (!is_plain(x) || axis >= x->ndim || n > MOST_OUTCOME)
        return DECLINED;
    status = guarded_vector(p, input_of(p, 1), n, sizes);
    if (status != DONE)
        return status;
    for (i = 0; i < n; i++) {
        if (sizes[i] < 0)
            return DECLINED;
        total += sizes[i];
    }
    if (total != x->shape[axis])
        return DECLINED;
    memcpy(shape, x->shape, (size_t)x->ndim * sizeof(int64_t));
    for (i = 0; i < n; i++) {
        Operand *z;
        shape[axis] = sizes[i];
        z = new_view(p, x, offset, x->ndim, shape, x->strides);
        if (z == NULL)
            return no_memory();
        if (give_output(p, i, z) != DONE)
            return RAISED;
        offset += sizes[i] * x->strides[axis];
    }
    return DONE;
}

/* ---- other shapes */

/* The steps of the elements of x, of which there are some, in a shape of as many; 0 if they have to be
   copied. */
static int reshaped_steps(const Operand *x, int ndim, const int64_t *shape, int64_t *steps)
{
    int i = 0, j = 0, first, k, last;
    int64_t here, there, step;
    while (j < ndim) {
        /* Some axes of one shape are some of the other. */
        first = j;
        there = shape[j++];
        here = 1;
        last = -1;
        step = x->itemsize;
        while (here != there) {
            if (there < here) {
                there *= shape[j++];
                continue;
            }
            if (x->shape[i] > 1) {
                if (last >= 0 && x->strides[last] != x->shape[i] * x->strides[i])
                    return 0;
                last = i;
                step = x->strides[i];
            }
            here *= x->shape[i++];
        }
        for (k = j - 1; k >= first; k--) {
            steps[k] = step;
            step *= shape[k];
        }
    }
    return 1;
}

/* The lengths that a reshape asks for, one of which may be -1; 0 if they do not fit. */
static int complete_shape(const Operand *x, int ndim, int64_t *shape)
{
    int64_t size = 1;
    int axis, rest = -1;
    for (axis = 0; axis < ndim; axis++) {
        if (shape[axis] < -1 || (shape[axis] == -1 && rest >= 0))
            return 0;
        if (shape[axis] == -1)
            rest = axis;
        else if (shape[axis] && size > PY_SSIZE_T_MAX / shape[axis])
            return 0;
        else
            size *= shape[axis];
    }
    if (rest >= 0) {
        if (size == 0 || x->size % size)
            return 0;
        shape[rest] = x->size / size;
        size = x->size;
    }
    return size == x->size;
}

typedef struct {
    int ndim;
} ReshapeSpec;

/* The elements of x in a shape given by a vector of lengths: a view where that is possible. */
static int plan_reshape(Planner *p, const void *given)
{
    const int ndim = ((const ReshapeSpec *)given)->ndim;
    Operand *x = input_of(p, 0), *z;
    int64_t shape[MOST_AXES], steps[MOST_AXES];
    int status;
    if (!is_plain(x))
        return DECLINED;
    status = guarded_vector(p, input_of(p, 1), ndim, shape);
    if (status != DONE)
        return status;
    if (!complete_shape(x, ndim, shape))
        return DECLINED;
    if (x->flags & C_ORDER) {
        z = new_view(p, x, 0, ndim, shape, NULL);
    } else if (reshaped_steps(x, ndim, shape, steps)) {
        z = new_view(p, x, 0, ndim, shape, steps);
    } else {
        /* The array of the output holds the elements in C order, whatever its shape. */
        z = new_output_apart(p, 0, x->type, x->itemsize, ndim, shape, NULL);
        if (z != NULL) {
            const Operand *same = new_view(p, z, 0, x->ndim, x->shape, NULL);
            if (same == NULL || emit_copy(p, same, x) != DONE)
                z = NULL;
        }
    }
    return z == NULL ? no_memory() : give_output(p, 0, z);
}

/* ---- lengths */

static Operand *new_constant(Planner *p, int type, int itemsize, int ndim, const int64_t *shape,
                             const void *data, size_t size)
{
    Storage *s = new_storage(p, CONSTANT, (int64_t)size);
    Operand *x = s == NULL ? NULL : new_operand(p, s, 0, type, itemsize, ndim, shape, NULL);
    if (x == NULL)
        return NULL;
    s->address = (char *)pool_copy(&p->pool, data, size ? size : 1);
    p->frame->address[s->index] = s->address;
    return s->address == NULL ? NULL : x;
}

/* The length of an axis as an int64 scalar, or for axis -1 the whole shape as a vector. */
static int plan_lengths(Planner *p, const void *given)
{
    const int axis = ((const AxisSpec *)given)->axis;
    const Operand *x = input_of(p, 0);
    int64_t n;
    Operand *z;
    if (!is_array(x))
        return DECLINED;
    n = x->ndim;
    z = axis >= 0 ? new_constant(p, NPY_INT64, 8, 0, NULL, &x->shape[axis], 8)
                  : new_constant(p, NPY_INT64, 8, 1, &n, x->shape, (size_t)n * 8);
    return z == NULL ? no_memory() : give_output(p, 0, z);
}
#endif
