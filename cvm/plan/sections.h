/* Sections: stretches of a segment whose calls run side by side, each as soon as the calls are done
   that it depends on. Every call computes the same bits in whichever order and thread it runs. */
#ifndef SYMCOMP_SECTIONS_H
#define SYMCOMP_SECTIONS_H

#include "arena.h"
#include "frames.h"

enum {
    MOST_IN_SECTION = 256,      /* calls: comparing them takes the square of their number */
    SECTION_NANOSECONDS = 10000,    /* to wake the threads of a section, and to wait for their end */
    STEP_NANOSECONDS = 500,         /* to take a call from the list of ready ones */
    MOST_SIMULATED = 64
};

/* A section must take at most this part of the time of its calls one after another. */
static const double WORTH_A_SECTION = 0.85;
/* Sections, whose values stay for their whole length, may enlarge the arena by this factor, and bytes. */
static const double MOST_GROWTH = 2;
static const int64_t FREE_GROWTH = 32 << 20;
/* A call that shares its own work among threads gains this part of each further thread: it begins and
   ends with all of them, and products read one factor several times. */
static const double GAIN_OF_THREADS = 0.7;
/* The time of a unit of work. Products and decompositions say themselves how long they take. */
static const double NANOSECONDS_OF_WORK = 0.5, NANOSECONDS_OF_CALL = 50;

/* For tests: make a section of every stretch of calls that may be one, however short they are. */
static int makes_all_sections = 0;

typedef struct Section {
    int first, end, threads;
    int n_made;             /* arrays for results, which are made before all others, with the GIL */
    int *waits_for;         /* of each call: how many of the section it depends on */
    int *followers;         /* calls that depend on others: those of call i begin at first_follower[i] */
    int *first_follower;
    double *rest;           /* nanoseconds from the begin of each call to the end of all that follow it */
} Section;

/* The mark of the instruction that a call belongs to. */
static int mark_of_call(const Segment *s, int call)
{
    int low = s->first_own_mark, high = s->n_marks - 1;
    while (low < high) {
        const int middle = (low + high + 1) / 2;
        if (s->marks[middle].n_calls <= call)
            low = middle;
        else
            high = middle - 1;
    }
    /* If several marks have equally many calls, the last one makes the next call. */
    return low;
}

static double nanoseconds_of(const Call *call)
{
    return call->nanoseconds > 0 ? call->nanoseconds
                                 : NANOSECONDS_OF_CALL + NANOSECONDS_OF_WORK * call->work;
}

static int makes_array(const Call *call)
{
    return call->run == run_make_array;
}

/* Whether a section may contain a call. */
static int may_join(const Call *call)
{
    return makes_array(call) ||
           (call->is_independent && !call->needs_gil && !call->is_guard && call->n_writes > 0);
}

/* ---- dependences */

static int any_overlap(const Operand **xs, int n, const Operand **ys, int m)
{
    int i, j;
    for (i = 0; i < n; i++)
        for (j = 0; j < m; j++)
            if (may_overlap(xs[i], ys[j]))
                return 1;
    return 0;
}

/* Whether a call writes into storages that are older than the instruction of an earlier call. If the
   earlier one is declined, its instruction is planned again and reads them. */
static int overwrites(const Segment *s, const Call *later, int earlier)
{
    const int n_storages = s->marks[mark_of_call(s, earlier)].n_storages;
    int j;
    for (j = 0; j < later->n_writes; j++)
        if (root_of(later->operands[later->n_reads + j]->storage)->index < n_storages)
            return 1;
    return 0;
}

/* Whether a call has to wait for an earlier one. Behind the gate no call fails. */
static int depends_on(const Segment *s, int later, int earlier, int is_behind_gate)
{
    const Call *a = &s->calls[earlier], *b = &s->calls[later];
    const Operand **writes_a = a->operands + a->n_reads, **writes_b = b->operands + b->n_reads;
    if (makes_array(a) || makes_array(b))
        return 0;
    return any_overlap(writes_a, a->n_writes, b->operands, b->n_reads + b->n_writes) ||
           any_overlap(a->operands, a->n_reads, writes_b, b->n_writes) ||
           (!is_behind_gate && overwrites(s, b, earlier));
}

/* Fill in which calls wait for which. 0: there is no memory. */
static int find_dependences(Segment *s, Section *x, int is_behind_gate)
{
    const int n = x->end - x->first;
    int count = 0, capacity = 0, i, j, *pairs = NULL;
    x->waits_for = (int *)pool_new(&s->pool, (size_t)n * sizeof(int));
    x->first_follower = (int *)pool_new(&s->pool, ((size_t)n + 1) * sizeof(int));
    x->rest = (double *)pool_new(&s->pool, (size_t)n * sizeof(double));
    if (x->waits_for == NULL || x->first_follower == NULL || x->rest == NULL)
        return 0;
    for (i = 0; i < n; i++) {
        x->first_follower[i] = count;
        for (j = i + 1; j < n; j++)
            if (depends_on(s, x->first + j, x->first + i, is_behind_gate)) {
                if (!make_room((void **)&pairs, count, &capacity, sizeof(int))) {
                    free(pairs);
                    return 0;
                }
                pairs[count++] = j;
                x->waits_for[j]++;
            }
    }
    x->first_follower[n] = count;
    x->followers = (int *)pool_copy(&s->pool, pairs, (size_t)count * sizeof(int));
    free(pairs);
    return x->followers != NULL;
}

/* ---- the gain of a section */

static void find_rests(const Segment *s, Section *x)
{
    int i, k;
    for (i = x->end - x->first - 1; i >= 0; i--) {
        double longest = 0;
        for (k = x->first_follower[i]; k < x->first_follower[i + 1]; k++)
            if (x->rest[x->followers[k]] > longest)
                longest = x->rest[x->followers[k]];
        x->rest[i] = longest;
        if (!makes_array(&s->calls[x->first + i]))
            x->rest[i] += nanoseconds_of(&s->calls[x->first + i]);
    }
}

/* The ready call on which most depends; -1: none is ready. */
static int most_urgent(const Section *x, const int *ready, int n)
{
    int i, best = -1;
    for (i = 0; i < n; i++)
        if (best < 0 || x->rest[ready[i]] > x->rest[ready[best]])
            best = i;
    return best;
}

/* How long the calls take side by side: list scheduling by the longest path (Graham 1969). */
static double time_side_by_side(const Segment *s, const Section *x)
{
    const int n = x->end - x->first;
    const int threads = x->threads < MOST_SIMULATED ? x->threads : MOST_SIMULATED;
    double end_of[MOST_SIMULATED] = {0}, last = 0;
    double *ready_at = (double *)alloca((size_t)n * sizeof(double));
    int *waits = (int *)alloca((size_t)n * sizeof(int));
    int *ready = (int *)alloca((size_t)n * sizeof(int));
    int n_ready = 0, i, k;
    for (i = 0; i < n; i++) {
        waits[i] = x->waits_for[i];
        ready_at[i] = 0;
        if (waits[i] == 0 && !makes_array(&s->calls[x->first + i]))
            ready[n_ready++] = i;
    }
    while (n_ready > 0) {
        const int at = most_urgent(x, ready, n_ready), call = ready[at];
        int thread = 0;
        double end;
        ready[at] = ready[--n_ready];
        for (i = 1; i < threads; i++)
            if (end_of[i] < end_of[thread])
                thread = i;
        end = (end_of[thread] > ready_at[call] ? end_of[thread] : ready_at[call]) +
              nanoseconds_of(&s->calls[x->first + call]) + STEP_NANOSECONDS;
        end_of[thread] = end;
        last = end > last ? end : last;
        for (k = x->first_follower[call]; k < x->first_follower[call + 1]; k++) {
            const int next = x->followers[k];
            ready_at[next] = end > ready_at[next] ? end : ready_at[next];
            if (--waits[next] == 0)
                ready[n_ready++] = next;
        }
    }
    return last + SECTION_NANOSECONDS;
}

/* How long they take one after another, each on as many threads as it uses itself. */
static double time_in_turn(const Segment *s, int first, int end, int threads)
{
    double total = 0;
    int i;
    for (i = first; i < end; i++)
        if (!makes_array(&s->calls[i]))
            total += nanoseconds_of(&s->calls[i]) /
                     (s->calls[i].uses_threads ? 1 + GAIN_OF_THREADS * (threads - 1) : 1);
    return total;
}

/* ---- where sections begin and end */

/* Keep all values of a section for its whole length: its calls run in any order. */
static void lengthen_storages(Segment *s, const Section *x)
{
    int i;
    for (i = s->first_own_storage; i < s->n_storages; i++) {
        Storage *storage = s->storages[i];
        if (storage->kind == ARENA && storage->first < x->end && x->first < storage->last) {
            storage->first = storage->first < x->first ? storage->first : x->first;
            storage->last = storage->last > x->end ? storage->last : x->end;
        }
    }
}

/* Make the calls from ``first`` to before ``end`` a section, if that takes less time; 0: no memory. */
static int add_section(Segment *s, int first, int end, int is_behind_gate)
{
    const int threads = s->code->threads;
    const double in_turn = time_in_turn(s, first, end, threads);
    Section *x;
    int i;
    if (!makes_all_sections &&
        WORTH_A_SECTION * in_turn < SECTION_NANOSECONDS + in_turn / threads)
        return 1;
    x = (Section *)pool_new(&s->pool, sizeof(Section));
    if (x == NULL)
        return 0;
    x->first = first;
    x->end = end;
    x->threads = threads;
    for (i = first; i < end; i++)
        x->n_made += makes_array(&s->calls[i]);
    if (!find_dependences(s, x, is_behind_gate))
        return 0;
    find_rests(s, x);
    if (!makes_all_sections && time_side_by_side(s, x) > WORTH_A_SECTION * in_turn)
        return 1;
    s->calls[first].section = x;
    s->n_sections++;
    s->holds_inputs = 1;
    return 1;
}

/* Find sections of at most ``most`` calls. 0: there is no memory. */
static int add_sections(Segment *s, int most)
{
    int first = 0, is_behind_gate = 0, end;
    while (first < s->n_calls) {
        is_behind_gate |= s->calls[first].is_gate;
        for (end = first; end < s->n_calls && end - first < most && may_join(&s->calls[end]); end++)
            ;
        if (end - first > 1 && !add_section(s, first, end, is_behind_gate))
            return 0;
        first = end > first ? end : first + 1;
    }
    return 1;
}

static void drop_sections(Segment *s, const int *lifetimes)
{
    int i;
    for (i = 0; i < s->n_calls; i++)
        s->calls[i].section = NULL;
    s->n_sections = 0;
    for (i = s->first_own_storage; i < s->n_storages; i++) {
        s->storages[i]->first = lifetimes[2 * i];
        s->storages[i]->last = lifetimes[2 * i + 1];
    }
}

/* Choose the sections of a segment, and where its values lie in the arena. Longer sections keep more
   values at a time: they become shorter until the arena is not much larger than without. The bytes of the
   arena; -1: there is no memory. */
static int64_t plan_sections(Segment *s)
{
    Storage **own = s->storages + s->first_own_storage;
    const int n = s->n_storages - s->first_own_storage;
    const int64_t least = assign_offsets(own, n);
    int64_t bytes = least;
    int most, i, *before;
    if (least < 0 || s->code->threads < 2)
        return least;
    before = (int *)malloc((2 * (size_t)s->n_storages + 1) * sizeof(int));
    if (before == NULL)
        return -1;
    for (i = s->first_own_storage; i < s->n_storages; i++) {
        before[2 * i] = s->storages[i]->first;
        before[2 * i + 1] = s->storages[i]->last;
    }
    for (most = MOST_IN_SECTION; most > 1; most /= 2) {
        if (!add_sections(s, most)) {
            bytes = -1;
            break;
        }
        if (s->n_sections == 0)
            break;
        for (i = 0; i < s->n_calls; i++)
            if (s->calls[i].section != NULL)
                lengthen_storages(s, s->calls[i].section);
        bytes = assign_offsets(own, n);
        if (bytes < 0 || (double)bytes <= MOST_GROWTH * (double)least + (double)FREE_GROWTH)
            break;
        drop_sections(s, before);
    }
    free(before);
    return s->n_sections > 0 || bytes < 0 ? bytes : assign_offsets(own, n);
}

#endif
