/* Segments: what planning kept, and how it is run again. */
#ifndef SYMCOMP_SEGMENTS_H
#define SYMCOMP_SEGMENTS_H

#include "guards.h"
#include "lodgers.h"
#include "side_by_side.h"
#include "straight.h"

static void free_segment(Segment *s);

/* A call that runs a nested segment is gone. */
static void release_segment(Segment *nested)
{
    if (--nested->references == 0 && nested->is_orphan)
        free_segment(nested);
}

/* The program of a segment is gone. The garbage collector ends programs in any order: a caller may end after
   the programs that it calls. */
static void orphan_segment(Segment *s)
{
    s->is_orphan = 1;
    if (s->references == 0)
        free_segment(s);
}

static void free_segment(Segment *s)
{
    Pool pool;
    int i;
    if (s == NULL)
        return;
    for (i = 0; i < s->n_exits; i++)
        free_segment(s->exits[i]);
    for (i = 0; i < s->n_nested; i++)
        release_segment(s->nested[i]);
    drop_frame_memory(s->idle);
    drop_straight_code(s);
    if (s->recycled != NULL)
        for (i = 0; i < 2 * s->n_storages; i++)
            Py_XDECREF(s->recycled[i]);
    pool = s->pool; /* the segment lies in it, too */
    pool_free(&pool);
}

/* Whether other threads, or Python code, may run after a call. */
static int others_run_after(const Segment *s, int call)
{
    int i;
    if (s->n_nested > 0)
        return 1;   /* straight code of the nested programs is made by Python */
    for (i = call + 1; i < s->n_calls; i++)
        if (s->calls[i].gives_up_gil || s->calls[i].needs_gil)
            return 1;
    return 0;
}

/* Say before which calls the GIL is given up: stretches without Python that are worth it. */
static void choose_releases(Segment *s)
{
    int i = 0, j;
    while (i < s->n_calls) {
        double work = 0;
        if (s->calls[i].needs_gil) {
            i++;
            continue;
        }
        for (j = i; j < s->n_calls && !s->calls[j].needs_gil; j++)
            work += s->calls[j].work;
        s->calls[i].gives_up_gil = work >= WORTH_RELEASING;
        s->holds_inputs |= s->calls[i].gives_up_gil;
        i = j;
    }
    s->holds_inputs |= s->n_nested > 0;
    for (i = 0; i < s->n_calls; i++)
        s->holds_inputs |= s->calls[i].needs_gil;
    for (i = 0; i < s->n_calls; i++)
        if (s->calls[i].is_gate)
            *(int *)s->calls[i].params = others_run_after(s, i);
}

/* How an output of the program becomes a result. */
static ResultKind result_kind(const Operand *x)
{
    const Storage *s = x->storage;
    if (x->type < 0)
        return BY_OBJECT;
    if (s->kind == INPUT || s->kind == RESULT || s->kind == ARRAY ||
        (s->kind == CONSTANT && s->object != NULL) || (s->kind == LATE && s->base == NULL))
        return x->flags & WHOLE ? BY_OBJECT : BY_VIEW;
    return BY_COPY;
}

static int has_result(const Segment *s, int j)
{
    int i;
    for (i = 0; i < s->n_storages; i++)
        if (s->storages[i]->kind == RESULT && s->storages[i]->result == j)
            return 1;
    return 0;
}

/* Whether the caller has given the memory that result j is made in as that of an input, too. */
static int is_written_over(const Segment *s, const Operand *x, int j)
{
    const Code *code = s->code;
    return code->written_over[j] >= 0 && x->offset == 0 && x->flags & C_ORDER &&
           x->storage->index == code->n_constants + code->written_over[j];
}

/* Results of a nested program are computed in the caller's memory, where that is possible, and
   copied there otherwise. */
static ResultKind nested_result_kind(const Segment *s, const Operand *x, int j)
{
    Storage *storage = x->storage;
    if (x->type < 0)
        return BY_OBJECT;
    if (is_written_over(s, x, j))
        return IN_PLACE;
    if (storage->kind == RESULT && storage->result < 0 && storage->index >= s->first_own_storage &&
        x->offset == 0 && x->flags & C_ORDER && x->size * x->itemsize == storage->bytes &&
        !has_result(s, j)) {
        storage->result = j;
        return IN_PLACE;
    }
    return storage->kind == RESULT && storage->result == j && x->offset == 0 && x->flags & C_ORDER
               ? IN_PLACE
               : BY_COPY;
}

static void set_result_kinds(Segment *s)
{
    const Code *code = s->code;
    int j;
    for (j = 0; j < code->n_outputs; j++) {
        const Operand *x = s->results[j].operand;
        s->results[j].kind = code->is_nested ? nested_result_kind(s, x, j) : result_kind(x);
        /* Python code makes objects of groups while results are collected. */
        s->holds_inputs |= x->storage->kind == GROUP;
    }
}

/* Whether a storage is where one of the results from ``first`` to ``end`` is made, or seen, that is no copy. */
static int is_shown(const Segment *s, const Storage *storage, int first, int end)
{
    int i, j;
    for (j = first; j < end; j++) {
        const Storage *found = s->results[j].operand->storage;
        if (found == storage && s->results[j].kind != BY_COPY)
            return 1;
        if (found->kind == GROUP)
            for (i = 0; i < found->group->n; i++)
                if (root_of(found->group->parts[i]->storage) == storage)
                    return 1;
    }
    return 0;
}

/* Whether an array is made for callers alone, and recycled. Arrays of updates are not: the cells that hold
   them tell by counts of references whether they may be overwritten. */
static int is_for_callers(const Segment *s, const Storage *storage)
{
    const Code *code = s->code;
    return (storage->bytes < MEDIUM_ARRAY || storage->bytes >= LARGE_ARRAY) &&
           is_shown(s, storage, 0, code->n_returned) &&
           !is_shown(s, storage, code->n_returned, code->n_outputs);
}

/* Storages that were made for results and are none lie in the arena. 0: there is no memory. */
static int settle_storages(Segment *s)
{
    int i;
    s->made = (int *)pool_new(&s->pool, (size_t)s->n_storages * sizeof(int));
    s->recycled = (PyObject **)pool_new(&s->pool, 2 * (size_t)s->n_storages * sizeof(PyObject *));
    s->latest = (char *)pool_new(&s->pool, (size_t)s->n_storages);
    s->result_places = (ResultPlace *)pool_new(&s->pool, (size_t)s->n_storages * sizeof(ResultPlace));
    if (s->made == NULL || s->recycled == NULL || s->latest == NULL || s->result_places == NULL)
        return 0;
    s->n_made = s->n_result_places = 0;
    for (i = s->first_own_storage; i < s->n_storages; i++) {
        Storage *storage = s->storages[i];
        const int is_late = is_made_late(s->code, storage->kind, storage->bytes);
        if (storage->kind == RESULT && s->code->is_nested) {
            if (storage->result < 0)
                storage->kind = ARENA;
            else
                s->result_places[s->n_result_places++] = (ResultPlace){i, storage->result};
        } else if (storage->kind == RESULT) {
            storage->is_recycled = is_for_callers(s, storage);
            if (!is_late && !storage->is_recycled && !is_shown(s, storage, 0, s->code->n_outputs))
                storage->kind = ARENA;
        }
        if ((storage->kind == ARRAY || (storage->kind == RESULT && !s->code->is_nested)) && !is_late)
            s->made[s->n_made++] = i;
        s->has_objects |= storage->kind == ARRAY || storage->kind == OBJECT ||
                          (storage->kind == LATE && storage->base == NULL) ||
                          (storage->kind == RESULT && !s->code->is_nested);
    }
    return 1;
}

/* Find what the calls have in common. */
static void sum_up_calls(Segment *s)
{
    int i;
    s->work = s->nanoseconds = 0;
    s->uses_blas = s->n_nested > 0;
    s->has_python = s->parent != NULL && s->parent->has_python;
    s->runs_python = s->parent != NULL && s->parent->runs_python;
    for (i = 0; i < s->n_calls; i++) {
        const Call *call = &s->calls[i];
        s->work += call->work;
        s->nanoseconds += nanoseconds_of(call);
        s->has_python |= call->is_python;
        s->runs_python |= call->is_python && !call->is_in_c;
        s->uses_blas |= call->uses_blas || call->is_python;
    }
}

/* Whether a call gives up the GIL. The caller of a nested program has given it up before, unless that calls
   Python. */
static inline int gives_up_gil(const Segment *s, const Call *call)
{
    return call->gives_up_gil && (s->has_python || !s->code->is_nested);
}

static int is_simple(const Segment *s)
{
    int i;
    for (i = 0; i < s->n_calls; i++)
        if (begins_section(&s->calls[i]) || gives_up_gil(s, &s->calls[i]) || s->calls[i].needs_gil)
            return 0;
    return 1;
}

/* Do the work that planning left for the first run of a segment: most segments never run again.
   Nested segments are run without the GIL, and are made ready at once. */
static int make_ready(Segment *s)
{
    set_result_kinds(s);
    sum_up_calls(s);
    if (!settle_storages(s))
        return 0;
    s->arena_bytes = plan_sections(s);
    if (s->arena_bytes >= 0)
        s->arena_bytes = plan_lodgers(s, s->arena_bytes);
    if (s->arena_bytes < 0)
        return 0;
    choose_releases(s);
    s->is_simple = is_simple(s);
    s->is_ready = 1;
    return 1;
}

/* Free a segment that cannot be kept, with the storages of the planner. NULL, with an exception. */
static Segment *discard(Planner *p, Segment *s)
{
    p->n_storages = 0;
    free_segment(s);
    no_memory();
    return NULL;
}

/* Copy an array to where the next one of a segment lies. */
static void *lay_down(char **at, const void *from, size_t size)
{
    void *found = *at;
    if (size)
        memcpy(found, from, size);
    *at += size;
    return found;
}

/* A zeroed segment with copies of the arrays of the planner, which have room for more, behind it, all in one
   piece; NULL if there is no memory. */
static Segment *copied_segment(Planner *p)
{
    const size_t storages = (size_t)p->n_storages * sizeof(Storage *);
    const size_t calls = (size_t)p->n_calls * sizeof(Call);
    const size_t marks = (size_t)p->n_marks * sizeof(Mark);
    const size_t bindings = (size_t)p->n_bindings * sizeof(Binding);
    const size_t nested = (size_t)p->n_nested * sizeof(Segment *);
    Segment *s =
        (Segment *)pool_take(&p->pool, sizeof(Segment) + storages + calls + marks + bindings + nested);
    char *at = (char *)(s + 1);
    if (s == NULL)
        return NULL;
    set_to_zero(s, sizeof(Segment));
    s->storages = (Storage **)lay_down(&at, p->storages, storages);
    s->calls = (Call *)lay_down(&at, p->calls, calls);
    s->marks = (Mark *)lay_down(&at, p->marks, marks);
    s->bindings = (Binding *)lay_down(&at, p->bindings, bindings);
    s->nested = (Segment **)lay_down(&at, p->nested, nested);
    s->n_storages = p->n_storages;
    s->n_calls = p->n_calls;
    s->n_marks = p->n_marks;
    s->n_bindings = p->n_bindings;
    return s;
}

/* Keep the plan: a segment that takes over the pool of the planner. NULL: with an exception. */
static Segment *publish(Planner *p)
{
    const Code *code = p->code;
    Segment *s = copied_segment(p);
    int i;
    if (s != NULL)
        s->results = (Result *)pool_new(&p->pool, (size_t)code->n_outputs * sizeof(Result));
    if (s == NULL || s->results == NULL) {
        no_memory();
        return NULL;
    }
    s->code = code;
    s->parent = (Segment *)p->parent;
    s->first_call = p->first_call;
    s->hot_after = runs_until_hot(s);
    s->first_own_storage = p->first_storage;
    s->first_own_mark = p->first_mark;
    s->pool = p->pool;
    memset(&p->pool, 0, sizeof(Pool));
    s->n_nested = p->n_nested; /* the segment has the references now */
    p->n_nested = 0;
    for (i = 0; i < code->n_outputs; i++)
        s->results[i].operand = p->of_slot[code->output_slots[i]];
    for (i = s->first_own_storage; i < s->n_storages; i++)
        if (p->users[i] > 0)
            s->storages[i]->last = s->n_calls + 1;
    return code->is_nested && !make_ready(s) ? discard(p, s) : s;
}

/* The segment that follows a guard with the outcome that the frame tells; NULL if there is none yet. */
static Segment *exit_of(const Segment *s, int call, const Frame *frame)
{
    int i;
    const int n = __atomic_load_n(&s->n_exits, __ATOMIC_ACQUIRE);
    Segment **exits = __atomic_load_n(&s->exits, __ATOMIC_ACQUIRE);
    for (i = 0; i < n; i++) {
        Segment *to = __atomic_load_n(&exits[i], __ATOMIC_ACQUIRE);
        if (to->guard == call && to->n_outcome == frame->n_outcome &&
            memcmp(to->outcome, frame->outcome, (size_t)to->n_outcome * sizeof(int64_t)) == 0)
            return to;
    }
    return NULL;
}

/* Make the arrays that are there from the beginning of a run, and find the memory of the caller. */
static inline int make_arrays(const Segment *s, Frame *frame)
{
    int i;
    for (i = 0; i < s->n_result_places; i++)
        frame->address[s->result_places[i].storage] = frame->provided[s->result_places[i].result];
    for (i = 0; i < s->n_made; i++)
        if (make_array(frame, s->storages[s->made[i]]) != DONE)
            return RAISED;
    for (i = 0; i < s->n_lodgers; i++) {
        const Storage *x = s->storages[s->lodgers[i]];
        frame->address[x->index] = frame->address[x->host->index] + x->offset;
    }
    return DONE;
}

/* Go on in a segment that begins at a guard of another, whose frame this is. NULL: an exception. */
static Frame *enter_side(Segment *s, Frame *outer)
{
    Frame *frame = take_frame(s, outer->runner);
    if (frame == NULL) {
        take_gil(outer->runner);
        no_memory();
        return NULL;
    }
    memcpy(frame->address, outer->address, (size_t)s->first_own_storage * sizeof(char *));
    memcpy(frame->object, outer->object, (size_t)s->first_own_storage * sizeof(PyObject *));
    frame->outer = outer;
    frame->provided = outer->provided;
    if (s->n_made)
        take_gil(outer->runner);
    if (make_arrays(s, frame) != DONE) {
        frame->outer = NULL;
        give_back(frame);
        return NULL;
    }
    return frame;
}

/* Run the calls of a segment from ``first`` to ``end``; at which it stopped, if one was not DONE. */
static int run_stretch(const Segment *s, Frame *frame, int first, int end, int *stopped)
{
    Runner *runner = frame->runner;
    int i;
    for (i = first; i < end; i++) {
        const Call *call = &s->calls[i];
        int status;
        if (begins_section(call)) {
            status = run_section(s, call->section, frame, NULL, stopped);
            if (status != DONE)
                return status;
            i = call->section->end - 1;
            continue;
        }
        if (gives_up_gil(s, call))
            give_up_gil(runner);
        else if (call->needs_gil)
            take_gil(runner);
        status = call->run(call->params, frame);
        if (status != DONE) {
            *stopped = i;
            return status;
        }
    }
    return DONE;
}

/* ``run_calls`` where there is straight code. */
static int run_stretches(const Segment *s, const StraightCode *straight, Frame *frame, int *stopped)
{
    int i;
    for (i = 0; i < straight->n; i++) {
        const Stretch *x = &straight->stretches[i];
        straight_function *run = straight_function_of(x);
        if (run != NULL) {
            run(frame->address, frame->provided);
            frame->has_copied = x->copies_results;
        } else {
            const int status = run_stretch(s, frame, x->first, x->end, stopped);
            if (status != DONE)
                return status;
        }
    }
    return DONE;
}

/* Run the calls of a segment; at which it stopped, if one was not DONE. */
static inline int run_calls(const Segment *s, Frame *frame, int *stopped)
{
    const StraightCode *straight = straight_code_of(s);
    const Call *call = s->calls, *const end = call + s->n_calls;
    if (straight != NULL)
        return run_stretches(s, straight, frame, stopped);
    if (!s->is_simple)
        return run_stretch(s, frame, 0, s->n_calls, stopped);
    for (; call < end; call++) {
        const int status = call->run(call->params, frame);
        if (status != DONE) {
            *stopped = (int)(call - s->calls);
            return status;
        }
    }
    return DONE;
}

#endif
