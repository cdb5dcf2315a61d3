/* Trees of segments: which are kept, and the run of a program through them. */
#ifndef SYMCOMP_TREES_H
#define SYMCOMP_TREES_H

#include "layouts.h"

/* The segment with which a program begins on inputs of these layouts; NULL if there is none. */
static Segment *root_for(Tree *tree, const Given *given)
{
    uint64_t key;
    int i;
    if (tree->n_roots == 0 || takes(tree->roots[0], given))
        return tree->roots[0];
    if (tree->n_roots == 1)
        return NULL;
    key = key_of_inputs(given, tree->code->n_inputs);
    for (i = 1; i < tree->n_roots; i++)
        if (tree->keys[i] == key && takes(tree->roots[i], given))
            return tree->roots[i];
    return NULL;
}

static void free_chain(Segment *s)
{
    while (s != NULL) {
        Segment *next = s->next_retired;
        free_segment(s);
        s = next;
    }
}

/* The program is gone, and no run of it is under way. */
static void drop_segments(Tree *tree)
{
    int i;
    for (i = 0; i < tree->n_roots; i++)
        orphan_segment(tree->roots[i]);
    free_chain(tree->retired);
    free_chain(tree->expiring);
}

/* Free the segments that no run is in: those retired before this epoch, once the runs that began before it have
   ended; then the next epoch begins. With the GIL. */
static void free_retired(Tree *tree)
{
    while ((tree->retired != NULL || tree->expiring != NULL) &&
           __atomic_load_n(&tree->active[!tree->epoch], __ATOMIC_SEQ_CST) == 0) {
        Segment *found = tree->expiring, *s;
        tree->expiring = tree->retired;
        tree->retired = NULL;
        __atomic_store_n(&tree->epoch, !tree->epoch, __ATOMIC_SEQ_CST);
        for (s = found; s != NULL; s = s->next_retired)
            take_over(tree->counts, s);
        free_chain(found);
    }
}

/* The segment that was not used for longest, of ``found`` and the ends of the tree that begins with ``s``;
   NULL: there is none. Segments that calls refer to are kept, and ``spared``. */
static Segment *oldest_end(Segment *s, const Segment *spared, Segment *found)
{
    int i;
    for (i = 0; i < s->n_exits; i++)
        found = oldest_end(s->exits[i], spared, found);
    if (s->n_exits > 0 || s->references > 0 || s == spared)
        return found;
    return found == NULL || s->last_used < found->last_used ? s : found;
}

/* Let no further run enter a root. */
static void unlink_root(Tree *tree, const Segment *s)
{
    int i = 0;
    while (tree->roots[i] != s)
        i++;
    tree->n_roots--;
    tree->keys[i] = tree->keys[tree->n_roots];
    tree->roots[i] = tree->roots[tree->n_roots];
    tree->roots[tree->n_roots] = NULL;
}

/* Let no further run enter a segment after a guard. Runs that look for their exit meanwhile may see it, or the
   last one twice. */
static void unlink_exit(Segment *from, const Segment *s)
{
    const int last = from->n_exits - 1;
    int i = 0;
    while (from->exits[i] != s)
        i++;
    __atomic_store_n(&from->exits[i], from->exits[last], __ATOMIC_SEQ_CST);
    __atomic_store_n(&from->n_exits, last, __ATOMIC_SEQ_CST);
}

/* Forget the segment that was not used for longest, but none that others follow, or that ``spared`` is; of roots
   that calls refer to, only if ``of_all``. 0: there is none. */
static int retire_oldest(Tree *tree, Segment *spared, int of_all)
{
    Segment *s = NULL;
    int i;
    for (i = 0; i < tree->n_roots; i++)
        if (of_all || tree->roots[i]->references == 0)
            s = oldest_end(tree->roots[i], spared, s);
    if (s == NULL)
        return 0;
    if (s->parent == NULL)
        unlink_root(tree, s);
    else
        unlink_exit(s->parent, s);
    s->is_retired = 1;
    s->next_retired = tree->retired;
    tree->retired = s;
    tree->n_segments--;
    free_retired(tree);
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

/* Keep the plan from the beginning. Where calls refer to all others, there is one more than the bound says
   (unless that is 0): a loop or graph without a plan would be left to Python. NULL: there is no room for it, or
   an exception. */
static Segment *keep_root(Tree *tree, Planner *p, const Given *given)
{
    Segment *s;
    while (tree->n_roots == MOST_ROOTS)
        if (!retire_oldest(tree, NULL, 0))
            return NULL;
    while (tree->n_segments >= tree->most_segments)
        if (!retire_oldest(tree, NULL, 1)) {
            if (tree->most_segments == 0)
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

/* Add an exit to a segment that others may be running: they see all of it or nothing. 0: there is no memory. */
static int add_exit(Segment *from, Segment *to)
{
    const int n = from->n_exits;
    if (n == from->exit_capacity) {
        const int wanted = n ? 2 * n : 2;
        Segment **larger = (Segment **)pool_new(&from->pool, (size_t)wanted * sizeof(Segment *));
        if (larger == NULL)
            return 0;
        if (n)
            memcpy(larger, from->exits, (size_t)n * sizeof(Segment *));
        __atomic_store_n(&from->exits, larger, __ATOMIC_RELEASE);
        from->exit_capacity = wanted;
    }
    __atomic_store_n(&from->exits[n], to, __ATOMIC_RELEASE);
    __atomic_store_n(&from->n_exits, n + 1, __ATOMIC_RELEASE);
    return 1;
}

/* Keep the plan that follows an outcome of a guard, if there is room for it. */
static int keep_side(Tree *tree, Planner *p, Segment *from, int call, int n,
                     const int64_t *outcome, Segment **kept)
{
    Segment *s;
    if (from->is_retired)
        return DONE;
    while (tree->n_segments >= tree->most_segments)
        if (!retire_oldest(tree, from, 1))
            return DONE;
    s = publish(p);
    if (s == NULL)
        return RAISED;
    s->guard = call;
    s->n_outcome = n;
    s->outcome = (int64_t *)pool_copy(&s->pool, outcome, (size_t)n * sizeof(int64_t));
    s->last_used = tree->clock;
    if (s->outcome == NULL || !add_exit(from, s)) {
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
        drop_memory_of(s->exits[i]);
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
        side->last_used = tree->clock;
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

/* Ask for memory that a program's first call reads or writes soon: none of it is near the processor. */
static inline void ask_for_lines(const void *first, size_t size, int is_written)
{
    enum { LINE = 64 };
    size_t i;
    for (i = 0; i < size; i += LINE)
        if (is_written)
            __builtin_prefetch((const char *)first + i, 1);
        else
            __builtin_prefetch((const char *)first + i);
}

static void ask_for_program(const Tree *tree)
{
    ask_for_lines(tree, sizeof(Tree), 1);
    ask_for_lines(tree->code, sizeof(Code), 0);
}

/* The memory that planning reads, all in one piece, and the reserved memory in which it makes the plan. */
static void ask_for_planning(const Tree *tree)
{
    enum { READ = 384, WRITTEN = 896 };
    ask_for_lines(tree->code->input_slots, READ, 0);
    ask_for_lines(tree->reserved.at, WRITTEN, 1);
}

/* Run a program on its inputs; results are new references. */
static int run_tree(Tree *tree, const Given *given, Runner *runner, PyObject **results)
{
    Segment *s = root_for(tree, given);
    const int epoch = tree->epoch;
    int status;
    if (tree->n_roots == 0)
        ask_for_planning(tree);
    tree->active[epoch]++;
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
    tree->active[epoch]--;
    free_retired(tree);
    return status;
}

#endif
