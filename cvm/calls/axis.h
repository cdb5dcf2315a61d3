/* Functions along an axis: running sums, recurrences, positions of the largest, ranges. */
#ifndef SYMCOMP_AXIS_H
#define SYMCOMP_AXIS_H

#include "../loops/along_axes.h"
#include "moves.h"

/* Slices along an axis of n elements each, and the axes across, the closest in memory the last. */
typedef struct {
    int64_t n, x_step, second_step, out_step;
    int rank;
    int64_t length[MOST_AXES], x[MOST_AXES], second[MOST_AXES], out[MOST_AXES];
} Slices;

/* Add an axis across, sorted by the strides of x. */
static void add_axis_across(Slices *s, int64_t length, int64_t x, int64_t second, int64_t out)
{
    int place = s->rank;
    if (length == 1)
        return;
    for (; place && without_sign(s->x[place - 1]) < without_sign(x); place--) {
        s->length[place] = s->length[place - 1];
        s->x[place] = s->x[place - 1];
        s->second[place] = s->second[place - 1];
        s->out[place] = s->out[place - 1];
    }
    s->length[place] = length;
    s->x[place] = x;
    s->second[place] = second;
    s->out[place] = out;
    s->rank++;
}

static void run_slices(line_function *function, const Slices *s, const char *x, const char *second,
                       char *out)
{
    int64_t index[MOST_AXES] = {0};
    const int inner = s->rank - 1;
    const int64_t m = inner >= 0 ? s->length[inner] : 1;
    int axis;
    for (axis = 0; axis < s->rank; axis++)
        if (s->length[axis] == 0)
            return;
    for (;;) {
        function(s->n, m, x, s->x_step, inner >= 0 ? s->x[inner] : 0, second, s->second_step,
                 inner >= 0 ? s->second[inner] : 0, out, s->out_step,
                 inner >= 0 ? s->out[inner] : 0);
        for (axis = inner - 1; axis >= 0; axis--) {
            x += s->x[axis];
            second += s->second[axis];
            out += s->out[axis];
            if (++index[axis] < s->length[axis])
                break;
            x -= s->x[axis] * s->length[axis];
            second -= s->second[axis] * s->length[axis];
            out -= s->out[axis] * s->length[axis];
            index[axis] = 0;
        }
        if (axis < 0)
            return;
    }
}

typedef struct {
    Place x, second, out;
    line_function *function;
    Slices slices;
} SlicesCall;

static int run_slices_call(const void *params, Frame *frame)
{
    const SlicesCall *c = (const SlicesCall *)params;
    run_slices(c->function, &c->slices, data_at(frame, &c->x), data_at(frame, &c->second),
               data_at(frame, &c->out));
    return DONE;
}

static int emit_slices(Planner *p, const char *name, line_function *function, const Slices *slices,
                       const Operand *x, const Operand *second, const Operand *z)
{
    Call *call = new_call(p, run_slices_call, name, sizeof(SlicesCall));
    const Operand *reads[2] = {x, second};
    SlicesCall *c;
    if (call == NULL)
        return no_memory();
    c = (SlicesCall *)call->params;
    c->x = placed(x);
    c->second = placed(second);
    c->out = placed(z);
    c->function = function;
    c->slices = *slices;
    call->work = (double)x->size;
    call->is_independent = 1;
    return set_operands(p, call, 2, reads, 1, &z);
}

typedef struct {
    int what, axis, type, itemsize, n_inputs;
} RunningSpec;

/* Running sums or products along an axis; or a recurrence of rates and a drive, the two inputs. */
static int plan_running(Planner *p, const void *given)
{
    const RunningSpec *spec = (const RunningSpec *)given;
    const Operand *x = input_of(p, spec->n_inputs - 1), *second = input_of(p, 0);
    line_function *function;
    Slices s;
    Operand *z;
    int axis, status;
    if (!is_plain(x) || !is_plain(second) || spec->axis >= x->ndim || x->ndim != second->ndim ||
        x->type != second->type || memcmp(x->shape, second->shape, (size_t)x->ndim * 8))
        return DECLINED;
    function = function_of_lines(spec->what, kind_of_type(x->type), x->itemsize);
    if (function == NULL)
        return DECLINED;
    z = new_output_apart(p, 0, spec->type, spec->itemsize, x->ndim, x->shape, NULL);
    if (z == NULL)
        return no_memory();
    s.rank = 0;
    for (axis = 0; axis < x->ndim; axis++) {
        if (axis == spec->axis) {
            s.n = x->shape[axis];
            s.x_step = x->strides[axis];
            s.second_step = second->strides[axis];
            s.out_step = z->strides[axis];
        } else {
            add_axis_across(&s, x->shape[axis], x->strides[axis], second->strides[axis],
                            z->strides[axis]);
        }
    }
    status = emit_slices(p, "cumulative", function, &s, x, second, z);
    return status == DONE ? give_output(p, 0, z) : status;
}

/* ---- positions of extremes */

typedef struct {
    int what;
    unsigned int axes;      /* as bits */
} ExtremeSpec;

/* Whether the axes to count through are like one; its length and step. */
static int join_axes(const Operand *x, unsigned int axes, Slices *s)
{
    int axis;
    s->n = 1;
    s->x_step = s->second_step = s->out_step = 0;
    s->rank = 0;
    for (axis = x->ndim - 1; axis >= 0; axis--) {
        if (!(axes >> axis & 1) || x->shape[axis] == 1)
            continue;
        if (s->n == 1)
            s->x_step = x->strides[axis];
        else if (x->strides[axis] != s->n * s->x_step)
            return 0;
        s->n *= x->shape[axis];
    }
    return 1;
}

/* A copy in C order with these axes last, seen with the axes in their places: they are like one. */
static Operand *copy_with_axes_last(Planner *p, const Operand *x, unsigned int axes)
{
    int64_t shape[MOST_AXES], strides[MOST_AXES];
    int order[MOST_AXES], n = 0, axis, pass;
    Operand *z, *seen;
    for (pass = 0; pass < 2; pass++)
        for (axis = 0; axis < x->ndim; axis++)
            if ((int)(axes >> axis & 1) == pass)
                order[n++] = axis;
    for (axis = 0; axis < n; axis++)
        shape[axis] = x->shape[order[axis]];
    z = new_scratch(p, x->type, x->itemsize, n, shape);
    if (z == NULL)
        return NULL;
    for (axis = 0; axis < n; axis++)
        strides[order[axis]] = z->strides[axis];
    seen = new_view(p, z, 0, n, x->shape, strides);
    return seen == NULL || emit_copy(p, seen, x) != DONE ? NULL : seen;
}

typedef struct {
    Place from, to;
    int64_t n;
} WideningCall;

/* Numbers of float16 as float, in which they have the same order. */
static int run_widening(const void *params, Frame *frame)
{
    const WideningCall *c = (const WideningCall *)params;
    const uint16_t *x = (const uint16_t *)data_at(frame, &c->from);
    float *z = (float *)data_at(frame, &c->to);
    int64_t i;
    for (i = 0; i < c->n; i++)
        z[i] = half_of_bits(x[i]);
    return DONE;
}

/* The operand, or of float16 a copy as float. */
static Operand *orderable(Planner *p, Operand *x)
{
    Operand *z, *ordered;
    Call *call;
    WideningCall *c;
    const Operand *read;
    if (x->type != NPY_FLOAT16)
        return x;
    ordered = in_c_order(p, x);
    z = ordered == NULL ? NULL : new_scratch(p, NPY_FLOAT32, 4, x->ndim, x->shape);
    call = new_call(p, run_widening, "cast", sizeof(WideningCall));
    if (z == NULL || call == NULL)
        return NULL;
    c = (WideningCall *)call->params;
    c->from = placed(ordered);
    c->to = placed(z);
    c->n = x->size;
    call->work = (double)x->size;
    call->is_independent = 1;
    read = ordered;
    return set_operands(p, call, 1, &read, 1, (const Operand **)&z) == DONE ? z : NULL;
}

/* The position of the first largest element, or the smallest, counted through axes. */
static int plan_extreme(Planner *p, const void *given)
{
    const ExtremeSpec *spec = (const ExtremeSpec *)given;
    Operand *z;
    const Operand *x = input_of(p, 0);
    line_function *function;
    int64_t shape[MOST_AXES];
    Slices s;
    int axis, ndim = 0, status;
    if (!is_plain(x))
        return DECLINED;
    x = orderable(p, (Operand *)x);
    if (x == NULL)
        return no_memory();
    function = function_of_lines(spec->what, kind_of_type(x->type), x->itemsize);
    if (function == NULL)
        return DECLINED;
    if (!join_axes(x, spec->axes, &s)) {
        x = copy_with_axes_last(p, x, spec->axes);
        if (x == NULL)
            return no_memory();
        join_axes(x, spec->axes, &s);
    }
    if (s.n == 0)
        return DECLINED;
    for (axis = 0; axis < x->ndim; axis++)
        if (!(spec->axes >> axis & 1))
            shape[ndim++] = x->shape[axis];
    z = new_output_apart(p, 0, NPY_INT64, 8, ndim, shape, NULL);
    if (z == NULL)
        return no_memory();
    for (axis = ndim = 0; axis < x->ndim; axis++)
        if (!(spec->axes >> axis & 1))
            add_axis_across(&s, x->shape[axis], x->strides[axis], 0, z->strides[ndim++]);
    status = emit_slices(p, "arg-extreme", function, &s, x, x, z);
    return status == DONE ? give_output(p, 0, z) : status;
}

/* ---- the first elements in order */

typedef struct {
    SlicesCall slices;
    int64_t count;
    Place elements, places; /* memory for the first elements of a slice */
} FirstCall;

static int run_first(const void *params, Frame *frame)
{
    const FirstCall *c = (const FirstCall *)params;
    struct first_in_order first;
    first.count = c->count;
    first.elements = data_at(frame, &c->elements);
    first.places = (int64_t *)data_at(frame, &c->places);
    run_slices(c->slices.function, &c->slices.slices, data_at(frame, &c->slices.x),
               (const char *)&first, data_at(frame, &c->slices.out));
    return DONE;
}

/* The positions of the first elements along an axis: the inputs are x and how many of the largest, or
   as a negative number of the smallest. */
static int plan_first(Planner *p, const void *given)
{
    const int along = ((const AxisSpec *)given)->axis;
    Operand *z;
    const Operand *x = input_of(p, 0), *writes[3];
    int64_t count, shape[MOST_AXES];
    line_function *function;
    Call *call;
    FirstCall *c;
    Slices *s;
    int axis, status;
    if (!is_plain(x) || along >= x->ndim)
        return DECLINED;
    status = guarded_number(p, input_of(p, 1), &count);
    if (status != DONE)
        return status;
    if (count == 0 || (count < 0 ? -count : count) > x->shape[along])
        return DECLINED;
    x = orderable(p, (Operand *)x);
    if (x == NULL)
        return no_memory();
    function = function_for_first(count > 0, kind_of_type(x->type), x->itemsize);
    if (function == NULL)
        return DECLINED;
    memcpy(shape, x->shape, (size_t)x->ndim * sizeof(int64_t));
    shape[along] = count < 0 ? -count : count;
    z = new_output_apart(p, 0, NPY_INT64, 8, x->ndim, shape, NULL);
    writes[0] = z;
    writes[1] = new_scratch(p, x->type, x->itemsize, 1, &shape[along]);
    writes[2] = new_scratch(p, NPY_INT64, 8, 1, &shape[along]);
    call = new_call(p, run_first, "topk", sizeof(FirstCall));
    if (z == NULL || writes[1] == NULL || writes[2] == NULL || call == NULL)
        return no_memory();
    c = (FirstCall *)call->params;
    c->count = shape[along];
    c->elements = placed(writes[1]);
    c->places = placed(writes[2]);
    c->slices.x = placed(x);
    c->slices.out = placed(z);
    c->slices.function = function;
    s = &c->slices.slices;
    for (axis = 0; axis < x->ndim; axis++) {
        if (axis == along) {
            s->n = x->shape[axis];
            s->x_step = x->strides[axis];
            s->out_step = z->strides[axis];
        } else {
            add_axis_across(s, x->shape[axis], x->strides[axis], 0, z->strides[axis]);
        }
    }
    call->work = (double)x->size;
    call->is_independent = 1;
    status = set_operands(p, call, 1, &x, 3, writes);
    return status == DONE ? give_output(p, 0, z) : status;
}

/* ---- ranges */

typedef struct {
    int type, itemsize;
} TypeSpec;

typedef struct {
    Place start, step, out;
    int64_t n;
    int itemsize;
    char kind;
} RangeCall;

static int run_range(const void *params, Frame *frame)
{
    const RangeCall *c = (const RangeCall *)params;
    return fill_range(c->kind, c->itemsize, c->n, data_at(frame, &c->start),
                      data_at(frame, &c->step), data_at(frame, &c->out))
               ? DONE
               : DECLINED;
}

/* start + i step for i < n: the inputs are start, step and n. */
static int plan_range(Planner *p, const void *given)
{
    const TypeSpec *spec = (const TypeSpec *)given;
    const Operand *reads[2] = {input_of(p, 0), input_of(p, 1)};
    int64_t n;
    Operand *z;
    Call *call;
    RangeCall *c;
    int status;
    if (!is_plain(reads[0]) || !is_plain(reads[1]) || reads[0]->type != spec->type ||
        reads[1]->type != spec->type)
        return DECLINED;
    status = guarded_number(p, input_of(p, 2), &n);
    if (status != DONE)
        return status;
    n = n < 0 ? 0 : n;
    z = new_output_apart(p, 0, spec->type, spec->itemsize, 1, &n, NULL);
    call = new_call(p, run_range, "range", sizeof(RangeCall));
    if (z == NULL || call == NULL)
        return no_memory();
    c = (RangeCall *)call->params;
    c->start = placed(reads[0]);
    c->step = placed(reads[1]);
    c->out = placed(z);
    c->n = n;
    c->kind = kind_of_type(spec->type);
    c->itemsize = spec->itemsize;
    call->work = (double)n;
    call->is_independent = 1;
    status = set_operands(p, call, 2, reads, 1, (const Operand **)&z);
    return status == DONE ? give_output(p, 0, z) : status;
}

#endif
