/* Trees of segments: which are kept, and the run of a program through them. */
#ifndef SYMCOMP_TREES_H
#define SYMCOMP_TREES_H

#include "execution.h"

static int same_layout(const Layout *kept, const Layout *given)
{
    int i;
    if (kept->type != given->type)
        return 0;
    if (given->type < 0)
        return 1;
    if (kept->ndim != given->ndim || kept->flags != given->flags)
        return 0;
    for (i = 0; i < given->ndim; i++)
        if (kept->shape[i] != given->shape[i] || kept->strides[i] != given->strides[i])
            return 0;
    return 1;
}

static int takes(const Segment *s, const Given *given, int n)
{
    int i;
    for (i = 0; i < n; i++)
        if (!same_layout(&s->layouts[i], &given[i].layout))
            return 0;
    return 1;
}

/* Add a layout to a hash. */
static inline uint64_t mixed_layout(uint64_t key, const Layout *l)
{
    int axis;
    key = mixed(key, (uint64_t)l->type << 8 | (uint64_t)(l->type < 0 ? 0 : l->ndim));
    for (axis = 0; l->type >= 0 && axis < l->ndim; axis++)
        key = mixed(mixed(key, (uint64_t)l->shape[axis]), (uint64_t)l->strides[axis]);
    return key;
}

/* A number that is the same for the same layouts, and seldom for others. */
static uint64_t key_of_inputs(const Given *given, int n)
{
    uint64_t key = 1;
    int i;
    for (i = 0; i < n; i++)
        key = mixed_layout(key, &given[i].layout);
    return key;
}

/* The same number of the layouts that a segment begins on. */
static uint64_t key_of_root(const Segment *s)
{
    uint64_t key = 1;
    int i;
    for (i = 0; i < s->code->n_inputs; i++)
        key = mixed_layout(key, &s->layouts[i]);
    return key;
}

/* The segment with which a program begins on inputs of these layouts; NULL if there is none. */
static Segment *root_for(Tree *tree, const Given *given)
{
    const int n = tree->code->n_inputs;
    uint64_t key;
    int i;
    if (tree->n_roots == 0 || takes(tree->roots[0], given, n))
        return tree->roots[0];
    if (tree->n_roots == 1)
        return NULL;
    key = key_of_inputs(given, n);
    for (i = 1; i < tree->n_roots; i++)
        if (tree->keys[i] == key && takes(tree->roots[i], given, n))
            return tree->roots[i];
    return NULL;
}

static int count_segments(const Segment *s)
{
    int i, n = 1;
    for (i = 0; i < s->n_exits; i++)
        n += count_segments(s->exits[i].to);
    return n;
}

static void free_retired(Tree *tree)
{
    Segment *s = tree->retired;
    if (tree->active)
        return;
    tree->retired = NULL;
    while (s != NULL) {
        Segment *next = s->parent;
        free_segment(s);
        s = next;
    }
}

/* Forget the beginning that was not used for longest, with all that follows it; 0 if calls refer to
   all. Segments of nested programs are run by calls that refer to them only. */
static int retire_oldest(Tree *tree)
{
    int i, oldest = -1;
    Segment *s;
    for (i = 0; i < tree->n_roots; i++)
        if (tree->roots[i]->references == 0 &&
            (oldest < 0 || tree->roots[i]->last_used < tree->roots[oldest]->last_used))
            oldest = i;
    if (oldest < 0)
        return 0;
    s = tree->roots[oldest];
    tree->n_segments -= count_segments(s);
    tree->n_roots--;
    tree->keys[oldest] = tree->keys[tree->n_roots];
    tree->roots[oldest] = tree->roots[tree->n_roots];
    tree->roots[tree->n_roots] = NULL;
    if (tree->active == 0) {
        free_segment(s);
        return 1;
    }
    s->parent = tree->retired;
    tree->retired = s;
    return 1;
}

/* Whether a new plan should be kept: not if few recent calls had equal layouts. */
static int is_worth_keeping(Tree *tree)
{
    if (tree->keeps_all)
        return 0;
    tree->misses++;
    if (tree->misses < FEW_MISSES) {
        tree->interval = 2;
        return 1;
    }
    if (++tree->unkept < tree->interval) {
        tree->not_kept++;
        return 0;
    }
    tree->unkept = 0;
    tree->interval = tree->interval < MOST_UNKEPT ? 2 * tree->interval : MOST_UNKEPT;
    return 1;
}

static void count_planning(Tree *tree, Reason reason)
{
    tree->planned++;
    tree->reasons[reason]++;
}

/* Keep the layouts of the inputs. Their numbers lie where planning has copied them. 0: there is no memory. */
static int keep_layouts(Segment *s, const Given *given)
{
    const Binding *inputs = s->bindings + s->code->n_constants; /* in the order of plan_inputs */
    const int n = s->code->n_inputs;
    int i;
    s->layouts = (Layout *)pool_take(&s->pool, (size_t)n * sizeof(Layout));
    if (s->layouts == NULL)
        return 0;
    for (i = 0; i < n; i++) {
        s->layouts[i] = given[i].layout;
        s->layouts[i].shape = inputs[i].operand->shape;
        s->layouts[i].strides = inputs[i].operand->strides;
    }
    return 1;
}

/* Make place for a root before all others. From now on the one that was there is found by its key. */
static void move_roots_on(Tree *tree)
{
    const size_t n = (size_t)tree->n_roots;
    tree->keys[0] = key_of_root(tree->roots[0]);
    memmove(tree->roots + 1, tree->roots, n * sizeof(Segment *));
    memmove(tree->keys + 1, tree->keys, n * sizeof(uint64_t));
}

/* Keep the plan from the beginning. Where calls refer to all others, there is one more than the bound says
   (unless that is 0): a loop or graph without a plan would be left to Python. NULL: there is no room for it, or
   an exception. */
static Segment *keep_root(Tree *tree, Planner *p, const Given *given)
{
    Segment *s;
    while (tree->n_segments >= tree->most_segments || tree->n_roots == MOST_ROOTS)
        if (!retire_oldest(tree)) {
            if (tree->most_segments == 0 || tree->n_roots == MOST_ROOTS)
                return NULL;
            break;
        }
    s = publish(p);
    if (s == NULL)
        return NULL;
    if (!keep_layouts(s, given))
        return discard(p, s);
    s->last_used = tree->clock;
    tree->n_segments++;
    if (tree->n_roots > 0)
        move_roots_on(tree);
    tree->roots[0] = s;
    tree->n_roots++;
    return s;
}

/* Add an exit to a segment that others may be running: they see all of it or nothing. */
static int add_exit(Segment *from, int call, int n, const int64_t *outcome, Segment *to)
{
    Exit *e;
    if (from->n_exits == from->exit_capacity) {
        const int wanted = from->exit_capacity ? 2 * from->exit_capacity : 2;
        Exit *larger = (Exit *)pool_new(&from->pool, (size_t)wanted * sizeof(Exit));
        if (larger == NULL)
            return 0;
        if (from->n_exits)
            memcpy(larger, from->exits, (size_t)from->n_exits * sizeof(Exit));
        __atomic_store_n(&from->exits, larger, __ATOMIC_RELEASE);
        from->exit_capacity = wanted;
    }
    e = &from->exits[from->n_exits];
    e->call = call;
    e->n = n;
    e->outcome = (int64_t *)pool_copy(&from->pool, outcome, (size_t)n * sizeof(int64_t));
    if (e->outcome == NULL)
        return 0;
    e->to = to;
    __atomic_store_n(&from->n_exits, from->n_exits + 1, __ATOMIC_RELEASE);
    return 1;
}

static int keep_side(Tree *tree, Planner *p, Segment *from, int call, int n,
                     const int64_t *outcome, Segment **kept)
{
    Segment *s;
    if (tree->n_segments >= tree->most_segments)
        return DONE;
    s = publish(p);
    if (s == NULL)
        return RAISED;
    if (!add_exit(from, call, n, outcome, s)) {
        discard(p, s);
        return RAISED;
    }
    tree->n_segments++;
    *kept = s;
    return DONE;
}

/* Keep no memory for later runs: no arena, and no large results to be written into again. */
static void drop_memory_of(Segment *s)
{
    int i;
    drop_frame_memory(exchange_idle(s, NULL));
    for (i = 0; i < s->n_nested; i++)
        drop_memory_of(s->nested[i]);
    for (i = 0; s->recycled != NULL && i < 2 * s->n_storages; i++)
        Py_CLEAR(s->recycled[i]);
    for (i = 0; i < s->n_exits; i++)
        drop_memory_of(s->exits[i].to);
}

/* ---- inputs that others might drop meanwhile */

static void hold_inputs(Runner *runner, const Given *given, int n)
{
    int i;
    if (runner->holds_inputs)
        return;
    for (i = 0; i < n; i++)
        Py_XINCREF(given[i].object);
    runner->holds_inputs = 1;
}

static void let_go(Runner *runner, const Given *given, int n)
{
    int i;
    if (!runner->holds_inputs)
        return;
    for (i = 0; i < n; i++)
        Py_XDECREF(given[i].object);
    runner->holds_inputs = 0;
}

/* ---- runs of functions */

/* Set by the module: keep the values of all slots, for users who look at them after a run; -1: an
   exception. */
static int (*keep_values)(const Planner *p);

static int plan_run(Tree *tree, const Given *given, Runner *runner, PyObject **results)
{
    Planner *p;
    int status;
    p = new_planner(tree, runner);
    if (p == NULL)
        return RAISED;
    status = plan_constants(p);
    if (status == DONE)
        status = plan_inputs(p, given);
    if (status == DONE)
        status = plan_from(p, 0);
    if (status == DONE)
        status = collect_results(p, NULL, p->frame, results);
    if (status == DONE && tree->keeps_all)
        status = keep_values(p) < 0 ? RAISED : DONE;
    if (status == DONE && is_worth_keeping(tree) &&
        keep_root(tree, p, given) == NULL && PyErr_Occurred())
        status = RAISED;
    drop_planner(p);
    return status;
}

/* Plan from the call of a segment where this run goes another way, and keep that if a guard led there. */
static int plan_rest(Tree *tree, Segment *s, int call, int status, Frame *frame,
                     PyObject **results)
{
    int64_t outcome[MOST_OUTCOME];
    const int n = frame->n_outcome, is_guard = status == OTHER;
    Segment *side;
    Planner *p;
    memcpy(outcome, frame->outcome, (size_t)n * sizeof(int64_t));
    p = new_planner(tree, frame->runner);
    if (p == NULL)
        return RAISED;
    count_planning(tree, is_guard ? NEW_OUTCOME : CALL_DECLINED);
    status = resume(p, s, mark_of_call(s, call), frame);
    if (status == DONE)
        status = collect_results(p, NULL, p->frame, results);
    if (status == DONE && is_guard && is_worth_keeping(tree))
        status = keep_side(tree, p, s, call, n, outcome, &side);
    drop_planner(p);
    return status;
}

/* Set the number of BLAS threads for the rest of a call, if it has a limit; with the GIL. */
static int begin_limit(Runner *runner)
{
    if (runner->blas_limit == NULL || runner->is_limited)
        return DONE;
    if (limit_blas(runner->blas_limit, 1) < 0)
        return RAISED;
    runner->is_limited = 1;
    return DONE;
}

static inline int run_counted(Tree *tree, Segment *s, Frame *frame, int *stopped)
{
    if (tree->counts != NULL && frame->runner->is_timed)
        return run_calls_timed(s, frame, tree->counts, stopped);
    return run_calls(s, frame, stopped);
}

/* Run kept segments, from the one that is given to the end of the program. */
static int run_segments(Tree *tree, Segment *s, const Given *given, Runner *runner,
                        PyObject **results)
{
    const int n = tree->code->n_inputs;
    Frame *frame = take_frame(s, runner);
    int i, stopped = 0, status;
    if (frame == NULL)
        return no_memory();
    for (i = 0; i < n; i++) {
        const int at = tree->code->n_constants + i; /* in the order of plan_run */
        frame->address[at] = given[i].address;
        frame->object[at] = given[i].object;
    }
    if (s->holds_inputs || is_hot(s))
        hold_inputs(runner, given, n);
    straighten_if_hot(s, runner);
    status = make_arrays(s, frame);
    if (status == DONE && s->uses_blas)
        status = begin_limit(runner);
    if (status == DONE)
        status = run_counted(tree, s, frame, &stopped);
    while (status == OTHER) {
        Segment *side = exit_of(s, stopped, frame);
        Frame *inner;
        if (side == NULL)
            break;
        s->failed_guards++;
        take_gil(runner);
        hold_inputs(runner, given, n);
        straighten_if_hot(s, runner);
        straighten_if_hot(side, runner);
        inner = enter_side(side, frame);
        if (inner == NULL) {
            status = RAISED;
            break;
        }
        s = side;
        frame = inner;
        status = s->uses_blas ? begin_limit(runner) : DONE;
        if (status == DONE)
            status = run_counted(tree, s, frame, &stopped);
    }
    take_gil(runner);
    if (status == DONE && PyErr_Occurred())
        status = RAISED;
    if (status == DONE)
        count_run(s, tree->counts);
    else
        count_part(s, stopped, tree->counts, status == RAISED);
    if (status == DONE) {
        tree->misses -= tree->misses > 0;
        status = collect_results(NULL, s, frame, results);
    } else if (status == RAISED) {
        blame_call(s, stopped, frame);
    } else {
        hold_inputs(runner, given, n);
        status = begin_limit(runner) == DONE ? plan_rest(tree, s, stopped, status, frame, results)
                                             : RAISED;
    }
    give_back(frame);
    return status;
}

/* Run a program on its inputs; results are new references. */
static int run_tree(Tree *tree, const Given *given, Runner *runner, PyObject **results)
{
    Segment *s = root_for(tree, given);
    int status;
    tree->active++;
    tree->clock++;
    if (s != NULL) {
        s->last_used = tree->clock;
        status = run_segments(tree, s, given, runner, results);
    } else {
        count_planning(tree, NEW_LAYOUTS);
        hold_inputs(runner, given, tree->code->n_inputs);
        status = begin_limit(runner);
        if (status == DONE)
            status = plan_run(tree, given, runner, results);
    }
    let_go(runner, given, tree->code->n_inputs);
    tree->active--;
    if (tree->retired != NULL)
        free_retired(tree);
    return status;
}

#endif
