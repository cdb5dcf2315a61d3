/* Programs inside programs: the bodies of loops, and graphs used as ops. The caller provides the
   memory of results. */
#ifndef SYMCOMP_NESTED_H
#define SYMCOMP_NESTED_H

#include "copies.h"
#include "python_calls.h"
#include "trees.h"

/* A result that is copied to where it is wanted, in C order. */
typedef struct {
    Place from;
    struct axes axes;
    move_function *move;
} ResultCopy;

/* Whether Python sees an operand as the object of its storage. */
static int is_one_object(const Operand *x)
{
    return !is_array(x) || (x->flags & WHOLE) != 0;
}

/* An operand, or a row of it at an offset, as an input of a nested program. */
static void give_row(const Planner *p, Given *g, const Operand *x, int64_t offset, int is_row)
{
    g->object = NULL;
    g->address = data_of(p, x) + offset;
    g->layout.type = x->type;
    g->layout.itemsize = x->itemsize;
    g->layout.ndim = x->ndim - is_row;
    g->layout.flags = x->flags & BEHAVED;
    g->layout.shape = x->shape + is_row;
    g->layout.strides = x->strides + is_row;
}

/* An operand as an input of a nested program, with the object that it is for Python. */
static void give_operand(const Planner *p, Given *g, const Operand *x)
{
    const Group *group = group_of(x);
    give_row(p, g, x, 0, 0);
    g->object = is_one_object(x) ? p->frame->object[x->storage->index] : NULL;
    if (group != NULL) {
        g->layout.type = TYPE_OF_GROUP;
        g->layout.ndim = group->n;
        g->layout.make = group->make;
    }
}

/* Values that are the same in all runs of a nested program within one of its caller: the last of its inputs, and
   the parts of groups among them. */
typedef struct {
    int n;
    Place *places;
    char *is_whole;         /* whether each is an object, or all of an array */
} GivenValues;

/* List n inputs and the parts of groups among them; NULL: one is missing. ``*count`` is their number. */
static const Operand **values_to_give(Planner *p, int n, Operand *const *inputs, int *count)
{
    const Operand **found = (const Operand **)pool_take(
        &p->pool, (size_t)(1 + MOST_IN_GROUP) * (size_t)(n + 1) * sizeof(Operand *));
    int i, k;
    *count = n;
    for (i = 0; found != NULL && i < n; i++) {
        const Group *group = group_of(inputs[i]);
        if (inputs[i] == NULL)
            return NULL;
        found[i] = inputs[i];
        for (k = 0; group != NULL && k < group->n; k++)
            found[(*count)++] = group->parts[k];
    }
    return found;
}

/* Say where values are found that a nested program is given. 0: there is no memory. */
static int place_values(Planner *p, GivenValues *g, int n, const Operand *const *values)
{
    int i;
    g->n = n;
    g->places = (Place *)pool_new(&p->pool, (size_t)n * sizeof(Place));
    g->is_whole = (char *)pool_new(&p->pool, (size_t)n);
    if (g->places == NULL || g->is_whole == NULL)
        return 0;
    for (i = 0; i < n; i++) {
        g->places[i] = placed(values[i]);
        g->is_whole[i] = (char)is_one_object(values[i]);
    }
    return 1;
}

/* Give the values to a run of the nested program, from its storage ``at`` on. Python sees the objects that they
   are, if they are some. */
static inline void give_values(const GivenValues *g, const Frame *frame, Frame *inner, int at)
{
    int i;
    for (i = 0; i < g->n; i++, at++) {
        inner->object[at] = g->is_whole[i] ? frame->object[g->places[i].storage] : NULL;
        inner->address[at] = data_at(frame, &g->places[i]);
    }
}

/* The order in which elements of an operand are moved to an array in C order. */
static void order_for_c(struct axes *axes, const Operand *x)
{
    int64_t strides[MOST_AXES], step = x->itemsize;
    int axis;
    for (axis = x->ndim - 1; axis >= 0; axis--) {
        strides[axis] = step;
        step *= x->shape[axis];
    }
    order_axes(axes, x->ndim, x->shape, strides, x->strides);
}

/* How the results of a nested segment that do not lie in place get there. */
static int set_result_copies(Segment *s)
{
    int j;
    for (j = 0; j < s->code->n_outputs; j++) {
        const Operand *x = s->results[j].operand;
        ResultCopy *c;
        if (s->results[j].kind != BY_COPY)
            continue;
        c = (ResultCopy *)pool_new(&s->pool, sizeof(ResultCopy));
        if (c == NULL)
            return no_memory();
        c->from = placed(x);
        c->move = function_that_sets(x->itemsize);
        order_for_c(&c->axes, x);
        s->results[j].copy = c;
    }
    return DONE;
}

/* Whether all results are arrays that can be copied. */
static int gives_arrays(const Planner *p)
{
    int j;
    for (j = 0; j < p->code->n_outputs; j++)
        if (!is_plain(p->of_slot[p->code->output_slots[j]]))
            return 0;
    return 1;
}

/* Whether the results of a run have the shapes that were seen in another. */
static int same_results(const Result *expected, const Result *found, int n)
{
    int j;
    for (j = 0; j < n; j++) {
        const Operand *x = expected[j].operand, *y = found[j].operand;
        if (x->type != y->type || x->ndim != y->ndim ||
            memcmp(x->shape, y->shape, (size_t)x->ndim * sizeof(int64_t)))
            return 0;
    }
    return 1;
}

/* Copy the results that do not lie in place, unless straight code has. */
static inline void copy_results(const Segment *s, const Frame *frame)
{
    int j;
    if (frame->has_copied)
        return;
    for (j = 0; j < s->code->n_outputs; j++) {
        const ResultCopy *c = (const ResultCopy *)s->results[j].copy;
        if (c != NULL)
            move_axes(&c->axes, c->move, frame->provided[j], data_at(frame, &c->from));
    }
}

/* Plan a run of a nested program from its beginning, or from where a segment was left, and copy the
   results to where they are wanted. DECLINED: the results are not as in ``expected``. */
static int finish_nested(Planner *p, char *const *provided, const Result *expected)
{
    const Code *code = p->code;
    int j;
    if (!gives_arrays(p))
        return DECLINED;
    for (j = 0; j < code->n_outputs; j++) {
        const Operand *x = p->of_slot[code->output_slots[j]];
        const Operand *wanted = expected[j].operand;
        struct axes axes;
        if (x->type != wanted->type || x->ndim != wanted->ndim ||
            memcmp(x->shape, wanted->shape, (size_t)x->ndim * sizeof(int64_t)))
            return DECLINED;
        if (provided[j] == data_of(p, x) && code->written_over[j] >= 0)
            continue;
        order_for_c(&axes, x);
        move_axes(&axes, function_that_sets(x->itemsize), provided[j], data_of(p, x));
    }
    return DONE;
}

/* Continue a nested program where a kept segment ends; the plan is kept if a guard led there. */
static int plan_nested_rest(Tree *tree, Segment *s, int call, int status, Frame *frame,
                            const Result *expected)
{
    int64_t outcome[MOST_OUTCOME];
    const int n = frame->n_outcome, is_guard = status == OTHER;
    Planner *p;
    memcpy(outcome, frame->outcome, (size_t)n * sizeof(int64_t));
    p = new_planner(tree, frame->runner);
    if (p == NULL)
        return RAISED;
    count_planning(tree, status == OTHER ? NEW_OUTCOME : CALL_DECLINED);
    status = resume(p, s, mark_of_call(s, call), frame);
    if (status == DONE)
        status = finish_nested(p, frame->provided, expected);
    if (status == DONE && is_guard && is_worth_keeping(tree)) {
        Segment *side = NULL;
        status = keep_side(tree, p, s, call, n, outcome, &side);
        if (status == DONE && side != NULL)
            status = set_result_copies(side);
    }
    drop_planner(p);
    return status;
}

/* The frame of a run that has ended, or will not go on. */
static void leave_nested(Frame *frame)
{
    Runner *runner = frame->runner;
    const Segment *s = frame->segment;
    const int was_released = runner->released != NULL;
    if (s->has_objects) {
        take_gil(runner);
        drop_objects(frame, s->storages, s->first_own_storage, s->n_storages);
        if (was_released && !PyErr_Occurred())
            give_up_gil(runner);
    }
    give_back_one(frame);
}

/* The calls of a nested segment, where a profile is asked for: some runs are timed. */
static __attribute__((noinline)) int run_profiled_calls(Tree *tree, Segment *s, Frame *frame, int *stopped)
{
    Runner *runner = frame->runner;
    Counts *counts = tree->counts;
    const int kind = next_run(&counts->sampler);
    int status, was_released;
    int64_t began, timing;
    if (kind == UNTIMED)
        return run_calls(s, frame, stopped);
    was_released = runner->released != NULL;
    take_gil(runner);
    began = nanoseconds();
    timing = runner->timing;
    status = kind == TIMED_CALLS ? run_calls_timed(s, frame, counts, stopped)
                                 : run_calls(s, frame, stopped);
    take_gil(runner);
    was_timed(&counts->sampler, kind, (double)(nanoseconds() - began),
              (double)(runner->timing - timing));
    if (was_released && status == DONE)
        give_up_gil(runner);
    return status;
}

static inline int run_nested_calls(Tree *tree, Segment *s, Frame *frame, int *stopped)
{
    return tree->counts == NULL ? run_calls(s, frame, stopped)
                                : run_profiled_calls(tree, s, frame, stopped);
}

/* A run of a nested program has come to its end in this segment. */
static inline void end_nested(Tree *tree, Segment *s, Frame *frame)
{
    count_run(s, tree->counts);
    copy_results(s, frame);
    straighten_if_hot(s, frame->runner);
}

/* A run comes to a guard: until it ends, the segments after guards that it finds are not freed. */
static int enter_sides(Tree *tree)
{
    const int epoch = __atomic_load_n(&tree->epoch, __ATOMIC_SEQ_CST);
    __atomic_fetch_add(&tree->active[epoch], 1, __ATOMIC_SEQ_CST);
    return epoch;
}

/* The run has ended; the GIL is as before after it, or taken. */
static void leave_sides(Tree *tree, int epoch, Runner *runner)
{
    const int was_released = runner->released != NULL;
    __atomic_fetch_sub(&tree->active[epoch], 1, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&tree->retired, __ATOMIC_RELAXED) == NULL &&
        __atomic_load_n(&tree->expiring, __ATOMIC_RELAXED) == NULL)
        return;
    take_gil(runner);
    free_retired(tree);
    if (was_released && !PyErr_Occurred())
        give_up_gil(runner);
}

/* Continue a run whose calls have stopped at one that was not DONE. */
static __attribute__((noinline)) int continue_nested(Tree *tree, Segment *s, Frame *frame,
                                                     const Result *expected, int status, int stopped)
{
    Frame *const root = frame;
    Runner *const runner = frame->runner;
    const int epoch = enter_sides(tree);
    while (status == OTHER) {
        Segment *side = exit_of(s, stopped, frame);
        Frame *inner;
        if (side == NULL || !same_results(expected, side->results, tree->code->n_outputs))
            break;
        s->failed_guards++;
        __atomic_store_n(&side->last_used, __atomic_load_n(&tree->clock, __ATOMIC_RELAXED), __ATOMIC_RELAXED);
        straighten_if_hot(s, runner);
        inner = enter_side(side, frame);
        if (inner == NULL) {
            status = RAISED;
            break;
        }
        s = side;
        frame = inner;
        frame->has_copied = 0;
        status = run_nested_calls(tree, s, frame, &stopped);
    }
    if (status == DONE) {
        end_nested(tree, s, frame);
    } else {
        take_gil(runner);
        count_part(s, stopped, tree->counts, status == RAISED);
        if (status == RAISED)
            blame_call(s, stopped, frame);
        else
            status = plan_nested_rest(tree, s, stopped, status, frame, expected);
    }
    while (frame != root) {
        Frame *outer = frame->outer;
        leave_nested(frame);
        frame = outer;
    }
    leave_sides(tree, epoch, runner);
    return status;
}

/* Run a nested program in a frame that is ready, and copy its results. The GIL is as before after it,
   or taken. */
static inline int run_nested(Tree *tree, Segment *s, Frame *frame, const Result *expected)
{
    int stopped = 0, status = make_arrays(s, frame);
    frame->has_copied = 0;
    add_one(&tree->clock);
    if (status == DONE)
        status = run_nested_calls(tree, s, frame, &stopped);
    if (status != DONE)
        return continue_nested(tree, s, frame, expected, status, stopped);
    end_nested(tree, s, frame);
    return DONE;
}

#endif
