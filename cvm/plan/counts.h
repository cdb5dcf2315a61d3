/* Counts and times of profiles: observers of calls. Nothing here runs without a profile. */
#ifndef SYMCOMP_COUNTS_H
#define SYMCOMP_COUNTS_H

#include <alloca.h>
#include <pythread.h>
#include <time.h>
#include "segments.h"

enum {
    ALWAYS_TIMED = 16,      /* the first runs, whatever that costs */
    MOST_EVENTS = 1 << 16,
    WHOLE_RUN = -1          /* the position of an event that is no instruction */
};

/* The timing of a run: none; the run as a whole; its calls; of a run that is long enough, the
   whole, although it is not its turn. */
enum { UNTIMED = 0, TIMED_WHOLE = 1, TIMED_CALLS = 2, TIMED_LONG = 3 };

/* Nanoseconds from which on every call is timed as a whole; the part of the time that timing may cost. */
static const double LONG_CALL = 50000, TIMING_BUDGET = 0.003;

/* How long reading the clock takes. */
static int64_t clock_latency = 0;

static void measure_clock(void)
{
    int i;
    clock_latency = 1000000;
    for (i = 0; i < 200; i++) {
        const int64_t before = nanoseconds(), after = nanoseconds();
        if (after - before < clock_latency)
            clock_latency = after - before;
    }
}

/* A mean that one interrupted run changes little. */
static double smoothed(double mean, double new)
{
    if (mean == 0)
        return new;
    return mean + (new < mean ? 0.5 : 0.125) * ((new < 2 * mean ? new : 2 * mean) - mean);
}

/* The choice of runs that are timed. */
typedef struct {
    int64_t seen, timed, skip;
    int is_costly;          /* whether timing the calls of each run would cost too much */
    double whole, full;     /* of late: runs timed as a whole, and runs whose calls are timed */
    double overhead;        /* of the latter: the part that timing took at least */
    uint64_t random;
} Sampler;

/* The timing of the run that begins. */
static int next_run(Sampler *s)
{
    s->seen++;
    if (s->skip > 0) {
        s->skip--;
        return UNTIMED;
    }
    return s->timed < ALWAYS_TIMED || s->timed % (s->is_costly ? 2 : 16) ? TIMED_CALLS : TIMED_WHOLE;
}

/* Take in a timed run; choose when the next one is. */
static void was_timed(Sampler *s, int kind, double duration, double overhead)
{
    double cost, mean, fraction;
    s->timed++;
    if (kind == TIMED_WHOLE) {
        s->whole = smoothed(s->whole, duration);
    } else {
        s->full = smoothed(s->full, duration);
        s->overhead = smoothed(s->overhead, overhead);
    }
    if (s->whole == 0)
        return;
    /* A timed run is slower, too; but not by everything that makes one run slower than another. */
    cost = s->full - s->whole < 4 * s->overhead ? s->full - s->whole : 4 * s->overhead;
    mean = cost / (TIMING_BUDGET * s->whole);
    s->is_costly = mean > 1;
    if (!s->is_costly)
        return;
    /* Marsaglia's xorshift. Not every n-th run: the runs of a program may alternate. */
    if (s->random == 0)
        s->random = UINT64_C(88172645463325252);
    s->random ^= s->random << 13;
    s->random ^= s->random >> 7;
    s->random ^= s->random << 17;
    fraction = (double)(s->random >> 11) / 9007199254740992.0;
    s->skip = (int64_t)(mean * (0.5 + fraction));
}

/* The time of untimed runs: the mean of the timed ones, without the first one, and without
   interruptions by other processes. */
typedef struct {
    int64_t n, nanoseconds;
    double total, usual;
} Times;

static void add_time(Times *t, double duration)
{
    t->nanoseconds += (int64_t)duration;
    if (t->n == 1) {
        t->usual = t->usual < duration ? t->usual : duration;
        t->total = 0; /* the first one is left out */
    }
    t->usual = smoothed(t->usual, duration);
    t->total += duration < 10 * t->usual ? duration : 10 * t->usual;
    t->n++;
}

static double mean_time(const Times *t)
{
    const int64_t n = t->n - (t->n > 1);
    return t->total / (double)(n > 1 ? n : 1);
}

typedef struct {
    int64_t start, duration, position;
    unsigned long thread;
} TimedEvent;

/* The last events. */
typedef struct {
    TimedEvent *entries;
    int64_t capacity, n;
} EventLog;

static void log_event(EventLog *log, int64_t start, int64_t duration, int64_t position,
                      unsigned long thread)
{
    TimedEvent *e;
    if (log->n == log->capacity && log->capacity < MOST_EVENTS) {
        const int64_t wanted = log->capacity ? 2 * log->capacity : 64;
        TimedEvent *larger =
            (TimedEvent *)realloc(log->entries, (size_t)wanted * sizeof(TimedEvent));
        if (larger == NULL)
            return;
        log->entries = larger;
        log->capacity = wanted;
    }
    e = &log->entries[log->n++ % log->capacity];
    e->start = start;
    e->duration = duration;
    e->position = position;
    e->thread = thread;
}

/* Runs of an instruction that were not kept, on operands of the same shapes. */
typedef struct SeenShapes {
    struct SeenShapes *next;
    uint64_t key;
    int n_inputs, n_outputs;
    int *ndims;             /* -1: no array */
    int64_t *lengths;       /* of all, one after another */
    Times times;
} SeenShapes;

/* The counts of one program in one place. */
typedef struct Counts {
    Sampler sampler;        /* of a nested program; that of a function's calls is elsewhere */
    EventLog log;
    int64_t runs;           /* runs that ended */
    int64_t in_python_runs; /* of these, with calls of Python */
    int64_t planned_in_python; /* runs with calls of Python that planned, or failed */
    int64_t *planned;       /* of instructions: runs beside those of kept segments */
    int64_t *planned_python;
    SeenShapes **seen;
} Counts;

static Counts *new_counts(const Code *code)
{
    const size_t n = (size_t)code->n_instructions + 1;
    Counts *c = (Counts *)calloc(1, sizeof(Counts));
    if (c == NULL)
        return NULL;
    c->planned = (int64_t *)calloc(n, sizeof(int64_t));
    c->planned_python = (int64_t *)calloc(n, sizeof(int64_t));
    c->seen = (SeenShapes **)calloc(n, sizeof(SeenShapes *));
    if (clock_latency == 0)
        measure_clock();
    return c->planned && c->planned_python && c->seen ? c : NULL;
}

static void free_counts(Counts *c, const Code *code)
{
    int i;
    if (c == NULL)
        return;
    for (i = 0; c->seen != NULL && i < code->n_instructions; i++)
        while (c->seen[i] != NULL) {
            SeenShapes *next = c->seen[i]->next;
            free(c->seen[i]->ndims);
            free(c->seen[i]->lengths);
            free(c->seen[i]);
            c->seen[i] = next;
        }
    free(c->planned);
    free(c->planned_python);
    free(c->seen);
    free(c->log.entries);
    free(c);
}

static uint64_t shape_key(uint64_t key, const Operand *x)
{
    int axis;
    key = mixed(key, x == NULL || x->type < 0 ? 0 : (uint64_t)x->ndim + 1);
    for (axis = 0; x != NULL && axis < x->ndim; axis++)
        key = mixed(key, (uint64_t)x->shape[axis] + 1);
    return key;
}

static void copy_shape(const Operand *x, int *ndim, int64_t **lengths)
{
    *ndim = x == NULL || x->type < 0 ? -1 : x->ndim;
    if (*ndim > 0)
        memcpy(*lengths, x->shape, (size_t)*ndim * sizeof(int64_t));
    *lengths += *ndim > 0 ? *ndim : 0;
}

/* The record of an instruction's operands; a new one if these shapes were not seen. NULL: no memory. */
static SeenShapes *seen_shapes(Counts *c, int position, const Operand *const *operands, int n_inputs,
                               int n_outputs)
{
    uint64_t key = 1;
    size_t total = 0;
    int64_t *at;
    SeenShapes *s;
    int i;
    for (i = 0; i < n_inputs + n_outputs; i++) {
        key = shape_key(key, operands[i]);
        total += operands[i] == NULL ? 0 : (size_t)operands[i]->ndim;
    }
    for (s = c->seen[position]; s != NULL; s = s->next)
        if (s->key == key)
            return s;
    s = (SeenShapes *)calloc(1, sizeof(SeenShapes));
    if (s == NULL)
        return NULL;
    s->ndims = (int *)calloc((size_t)(n_inputs + n_outputs) + 1, sizeof(int));
    s->lengths = (int64_t *)calloc(total + 1, sizeof(int64_t));
    if (s->ndims == NULL || s->lengths == NULL) {
        free(s->ndims);
        free(s->lengths);
        free(s);
        return NULL;
    }
    s->key = key;
    s->n_inputs = n_inputs;
    s->n_outputs = n_outputs;
    at = s->lengths;
    for (i = 0; i < n_inputs + n_outputs; i++)
        copy_shape(operands[i], &s->ndims[i], &at);
    s->next = c->seen[position];
    c->seen[position] = s;
    return s;
}

/* ---- kept segments */

/* The times of the calls of a segment, by instruction. */
typedef struct SegmentTimes {
    Times *times;           /* by mark */
    int *mark_of;           /* by call */
    int64_t *spent;         /* by mark, in the run that is timed */
} SegmentTimes;

static SegmentTimes *times_of(Segment *s)
{
    SegmentTimes *t = s->times;
    int i;
    if (t != NULL)
        return t;
    t = (SegmentTimes *)pool_new(&s->pool, sizeof(SegmentTimes));
    if (t == NULL)
        return NULL;
    t->times = (Times *)pool_new(&s->pool, ((size_t)s->n_marks + 1) * sizeof(Times));
    t->spent = (int64_t *)pool_new(&s->pool, ((size_t)s->n_marks + 1) * sizeof(int64_t));
    t->mark_of = (int *)pool_new(&s->pool, ((size_t)s->n_calls + 1) * sizeof(int));
    if (t->times == NULL || t->spent == NULL || t->mark_of == NULL)
        return NULL;
    for (i = 0; i < s->n_calls; i++) {
        int mark = mark_of_call(s, i);
        /* An instruction with checkpoints has several marks: take the first. */
        while (mark > s->first_own_mark && s->marks[mark - 1].position == s->marks[mark].position)
            mark--;
        t->mark_of[i] = mark;
    }
    s->times = t;
    return t;
}

/* Count what a call took. */
static void add_call(Segment *s, int i, const CallTime *time, Counts *counts)
{
    const int64_t duration = time->end - time->start - clock_latency;
    s->times->spent[s->times->mark_of[i]] += duration > 0 ? duration : 0;
    log_event(&counts->log, time->start, duration > 0 ? duration : 0, s->calls[i].position,
              time->thread);
}

/* ``run_section``, with the times of all its calls. */
static int run_section_timed(Segment *s, const Section *x, Frame *frame, Counts *counts,
                             int *stopped)
{
    const int n = x->end - x->first;
    CallTime *times = (CallTime *)calloc((size_t)n, sizeof(CallTime));
    int status, i;
    if (times == NULL)
        return run_section(s, x, frame, NULL, stopped);
    status = run_section(s, x, frame, times, stopped);
    take_gil(frame->runner);
    for (i = 0; i < n; i++)
        if (times[i].end > 0)
            add_call(s, x->first + i, &times[i], counts);
    frame->runner->timing += n * clock_latency;
    free(times);
    return status;
}

/* Run a stretch, with a look at the clock around each call; with the GIL. */
static int run_stretch_timed(Segment *s, Frame *frame, const Stretch *x, Counts *counts, int *stopped)
{
    Runner *runner = frame->runner;
    int i, status = DONE;
    for (i = x->first; i < x->end && status == DONE; i++) {
        const Call *call = &s->calls[i];
        CallTime time;
        if (begins_section(call)) {
            status = run_section_timed(s, call->section, frame, counts, stopped);
            i = call->section->end - 1;
            continue;
        }
        time.thread = PyThread_get_thread_ident();
        time.start = nanoseconds();
        if (call->work >= WORTH_RELEASING && !call->needs_gil && !s->code->is_nested)
            give_up_gil(runner);
        status = call->run(call->params, frame);
        take_gil(runner);
        time.end = nanoseconds();
        add_call(s, i, &time, counts);
        runner->timing += clock_latency;
        *stopped = i;
    }
    return status;
}

/* Run straight code: its calls share the time in equal parts. */
static void run_straight_timed(Segment *s, Frame *frame, const Stretch *x, straight_function *run,
                               Counts *counts)
{
    const int64_t start = nanoseconds();
    int64_t duration;
    int i;
    run(frame->address, frame->provided);
    duration = nanoseconds() - start - clock_latency;
    duration = duration > 0 ? duration : 0;
    frame->has_copied = x->copies_results;
    frame->runner->timing += clock_latency;
    for (i = x->first; i < x->end; i++)
        s->times->spent[s->times->mark_of[i]] += duration / (x->end - x->first);
    log_event(&counts->log, start, duration, s->calls[x->first].position, PyThread_get_thread_ident());
}

/* ``run_calls``, with the times of all calls; with the GIL. */
static int run_calls_timed(Segment *s, Frame *frame, Counts *counts, int *stopped)
{
    const StraightCode *straight = straight_code_of(s);
    const Stretch all = {.end = s->n_calls};
    const int n = straight == NULL ? 1 : straight->n;
    SegmentTimes *t = times_of(s);
    int i, status = DONE;
    if (t == NULL)
        return run_calls(s, frame, stopped);
    memset(t->spent, 0, ((size_t)s->n_marks + 1) * sizeof(int64_t));
    for (i = 0; i < n && status == DONE; i++) {
        const Stretch *x = straight == NULL ? &all : &straight->stretches[i];
        straight_function *run = straight_function_of(x);
        if (run != NULL)
            run_straight_timed(s, frame, x, run, counts);
        else
            status = run_stretch_timed(s, frame, x, counts, stopped);
    }
    if (status == DONE)
        for (i = s->first_own_mark; i < s->n_marks; i++)
            if (i == s->first_own_mark || s->marks[i].position != s->marks[i - 1].position)
                add_time(&t->times[i], (double)t->spent[i]);
    return status;
}

/* A run ended in this segment. */
static inline void count_run(Segment *s, Counts *counts)
{
    add_one(&s->runs);
    if (counts != NULL) {
        __atomic_add_fetch(&counts->runs, 1, __ATOMIC_RELAXED);
        if (s->runs_python)
            __atomic_add_fetch(&counts->in_python_runs, 1, __ATOMIC_RELAXED);
    }
}

/* A run failed at a call, or left the segment there to be planned: what ran before it. */
static void count_part(const Segment *s, int call, Counts *counts, int failed)
{
    const int end = mark_of_call(s, call);
    int i, last = -1;
    if (counts == NULL)
        return;
    for (i = 0; i <= end; i++) {
        const int position = s->marks[i].position;
        if (position != last && (i < end || failed))
            counts->planned[position]++;
        last = position;
    }
    if (!failed && end > 0 && s->marks[end - 1].position == s->marks[end].position)
        counts->planned[s->marks[end].position]--; /* planned again from its checkpoint */
}

/* ---- segments that are forgotten */

/* The operands of the instruction at a mark, inputs first. ``of_slot`` are those of all slots before it; the
   bindings that follow are first of all those of the outputs. */
static void operands_at(const Segment *s, int mark, Operand *const *of_slot, const Operand **operands)
{
    const Instruction *instruction = &s->code->instructions[s->marks[mark].position];
    const int first = s->marks[mark].n_bindings, n = instruction->n_inputs;
    int i, k;
    for (i = 0; i < n; i++)
        operands[i] = instruction->inputs[i] < 0 ? NULL : of_slot[instruction->inputs[i]];
    for (k = 0; k < instruction->n_outputs; k++) {
        operands[n + k] = NULL;
        for (i = first; i < s->n_bindings && i <= first + instruction->n_outputs; i++)
            if (s->bindings[i].slot == instruction->outputs[k] && s->bindings[i].operand != NULL)
                operands[n + k] = s->bindings[i].operand;
    }
}

static void take_over_times(Counts *counts, const Segment *s, int mark, Operand *const *of_slot)
{
    const int position = s->marks[mark].position;
    const Instruction *instruction = &s->code->instructions[position];
    const int n = instruction->n_inputs + instruction->n_outputs;
    const Operand **operands = (const Operand **)alloca(((size_t)n + 1) * sizeof(Operand *));
    const Times *from = &s->times->times[mark];
    SeenShapes *seen;
    operands_at(s, mark, of_slot, operands);
    seen = seen_shapes(counts, position, operands, instruction->n_inputs, instruction->n_outputs);
    if (seen == NULL)
        return;
    seen->times.n += from->n;
    seen->times.nanoseconds += from->nanoseconds;
    seen->times.total += from->total;
    if (seen->times.usual == 0)
        seen->times.usual = from->usual;
}

static int calls_python_at(const Segment *s, int position)
{
    int i;
    for (i = 0; i < s->n_calls; i++)
        if (s->calls[i].is_python && !s->calls[i].is_in_c && s->calls[i].position == position)
            return 1;
    return 0;
}

/* Keep the counts and times of a segment that is freed, as those of runs that were not kept. */
static void take_over(Counts *counts, const Segment *s)
{
    Operand **of_slot;
    int i, at = 0, last = -1;
    if (counts == NULL)
        return;
    of_slot = (Operand **)calloc((size_t)s->code->n_slots + 1, sizeof(Operand *));
    if (of_slot == NULL)
        return;
    for (i = 0; i < s->n_marks; i++) {
        const int position = s->marks[i].position;
        if (position == last)
            continue;
        last = position;
        counts->planned[position] += s->runs;
        if (calls_python_at(s, position))
            counts->planned_python[position] += s->runs;
        for (; at < s->marks[i].n_bindings; at++)
            of_slot[s->bindings[at].slot] = s->bindings[at].operand;
        if (s->times != NULL && i >= s->first_own_mark && s->times->times[i].n > 0)
            take_over_times(counts, s, i, of_slot);
    }
    __atomic_sub_fetch(&counts->runs, s->runs, __ATOMIC_RELAXED);
    free(of_slot);
}

#endif
