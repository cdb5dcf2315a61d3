/* Running a section: threads of the pool and the calling one take calls as they become ready.

   If a call fails, calls before it are still run, and none after it is begun: what a caller sees is the
   first failure in the order of the segment. */
#ifndef SYMCOMP_SIDE_BY_SIDE_H
#define SYMCOMP_SIDE_BY_SIDE_H

#include <time.h>
#include "../thread_pool.h"
#include "sections.h"

enum { SIGNAL_MILLISECONDS = 50 };

static inline int64_t nanoseconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* When a call of a section ran, and by which thread. */
typedef struct {
    int64_t start, end;
    unsigned long thread;
} CallTime;

typedef struct {
    const Segment *segment;
    const Section *section;
    const Frame *frame;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int *waits_for, *ready;
    char *is_done;
    int n_ready;
    int limit;              /* calls from here on are not wanted: one of them failed */
    int n_left;             /* calls before it that are not done */
    int n_changes;
    int status, cancelled;
    PyObject *raised[3];    /* by the call ``limit``, in a thread of the pool */
    CallTime *times;        /* of each call; NULL: not asked for */
} SectionRun;

static int count_left(const SectionRun *r)
{
    int i, n = 0;
    for (i = 0; i < r->limit; i++)
        n += !r->is_done[i];
    return n;
}

/* The ready call before the limit on which most depends, taken from the list; -1: none. */
static int take_ready(SectionRun *r)
{
    int i, call, n = 0;
    for (i = 0; i < r->n_ready; i++)
        if (r->ready[i] < r->limit)
            r->ready[n++] = r->ready[i];
    r->n_ready = n;
    i = most_urgent(r->section, r->ready, n);
    if (i < 0)
        return -1;
    call = r->ready[i];
    r->ready[i] = r->ready[--r->n_ready];
    return call;
}

static void set_done(SectionRun *r, int call)
{
    const Section *x = r->section;
    int k;
    r->is_done[call] = 1;
    r->n_left -= call < r->limit && !r->cancelled;
    for (k = x->first_follower[call]; k < x->first_follower[call + 1]; k++)
        if (--r->waits_for[x->followers[k]] == 0)
            r->ready[r->n_ready++] = x->followers[k];
}

/* Note that a call failed, and keep its exception for the calling thread. An exception of a signal handler
   (``is_signal``) or a KeyboardInterrupt ends all calls; exceptions after it only say that they ended. */
static void set_failed(SectionRun *r, int call, int status, int is_signal, Runner *runner)
{
    PyObject *found[3] = {NULL, NULL, NULL}, *dropped[3];
    int i;
    if (status == RAISED) {
        take_gil(runner);
        is_signal |= PyErr_ExceptionMatches(PyExc_KeyboardInterrupt);
        PyErr_Fetch(&found[0], &found[1], &found[2]);
    }
    memcpy(dropped, found, sizeof(dropped));
    pthread_mutex_lock(&r->lock);
    if (call < r->limit && !r->cancelled) {
        memcpy(dropped, r->raised, sizeof(dropped));
        memcpy(r->raised, found, sizeof(found));
        r->limit = call;
        r->status = status;
        r->n_left = is_signal ? 0 : count_left(r);
        __atomic_store_n(&r->cancelled, is_signal, __ATOMIC_RELAXED);
    }
    pthread_mutex_unlock(&r->lock);
    if (dropped[0] != NULL) {
        take_gil(runner);
        for (i = 0; i < 3; i++)
            Py_XDECREF(dropped[i]);
    }
    give_up_gil(runner);
}

/* Wait until a call ends; the lock is held before and after. The calling thread looks for signals. */
static void wait_for_change(SectionRun *r, Runner *runner)
{
    const int seen = r->n_changes;
    struct timespec until;
    int i;
    pthread_mutex_unlock(&r->lock);
    for (i = 0; i < LOOKS && __atomic_load_n(&r->n_changes, __ATOMIC_RELAXED) == seen; i++)
        look_again();
    pthread_mutex_lock(&r->lock);
    if (r->n_changes != seen)
        return;
    if (runner->cancelled != NULL) {
        pthread_cond_wait(&r->changed, &r->lock);
        return;
    }
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += SIGNAL_MILLISECONDS * 1000000L;
    until.tv_sec += until.tv_nsec / 1000000000L;
    until.tv_nsec %= 1000000000L;
    if (pthread_cond_timedwait(&r->changed, &r->lock, &until) == 0)
        return;
    pthread_mutex_unlock(&r->lock);
    take_gil(runner);
    if (PyErr_CheckSignals() < 0) {
        int first = 0;
        pthread_mutex_lock(&r->lock);
        while (r->is_done[first])
            first++;
        pthread_mutex_unlock(&r->lock);
        set_failed(r, first, RAISED, 1, runner);
    }
    give_up_gil(runner);
    pthread_mutex_lock(&r->lock);
}

/* Run calls until all are done; with a runner of this thread's own. */
static void run_ready_calls(SectionRun *r, Runner *runner)
{
    Frame frame = *r->frame;
    frame.runner = runner;
    pthread_mutex_lock(&r->lock);
    while (r->n_left > 0) {
        const int i = take_ready(r);
        const Call *call = &r->segment->calls[r->section->first + i];
        int status;
        if (i < 0) {
            wait_for_change(r, runner);
            continue;
        }
        pthread_mutex_unlock(&r->lock);
        if (r->times != NULL)
            r->times[i].start = nanoseconds();
        status = call->run(call->params, &frame);
        if (r->times != NULL) {
            r->times[i].end = nanoseconds();
            r->times[i].thread = PyThread_get_thread_ident();
        }
        if (status != DONE)
            set_failed(r, i, status, 0, runner);
        else
            give_up_gil(runner);
        pthread_mutex_lock(&r->lock);
        if (status == DONE)
            set_done(r, i);
        __atomic_store_n(&r->n_changes, r->n_changes + 1, __ATOMIC_RELAXED);
        pthread_cond_broadcast(&r->changed);
    }
    pthread_mutex_unlock(&r->lock);
}

static void join_section(void *work, int64_t part, int worker)
{
    SectionRun *r = (SectionRun *)work;
    Runner runner;
    (void)part;
    (void)worker;
    memset(&runner, 0, sizeof(runner));
    runner.cancelled = &r->cancelled;
    runner.released = WITHOUT_GIL;
    runner.holds_inputs = 1;
    run_ready_calls(r, &runner);
}

/* Make the arrays of a section's results; with the GIL. */
static int make_section_arrays(const Segment *s, const Section *x, SectionRun *r)
{
    int i;
    for (i = x->first; i < x->end; i++)
        if (makes_array(&s->calls[i])) {
            if (s->calls[i].run(s->calls[i].params, (Frame *)r->frame) != DONE)
                return RAISED;
            r->is_done[i - x->first] = 1;
        }
    return DONE;
}

/* Whether a section runs on several threads here: not within a part of another job. */
static inline int begins_section(const Call *call)
{
    return call->section != NULL && !within_part;
}

/* Run all calls of a section; at which it stopped, if one was not DONE. */
static int run_section(const Segment *s, const Section *x, Frame *frame, CallTime *times,
                       int *stopped)
{
    const int n = x->end - x->first;
    SectionRun r;
    Job job;
    int i;
    memset(&r, 0, sizeof(r));
    r.segment = s;
    r.section = x;
    r.frame = frame;
    r.times = times;
    r.limit = n;
    r.waits_for = (int *)alloca((size_t)n * sizeof(int));
    r.ready = (int *)alloca((size_t)n * sizeof(int));
    r.is_done = (char *)alloca((size_t)n + 1);
    memcpy(r.waits_for, x->waits_for, (size_t)n * sizeof(int));
    memset(r.is_done, 0, (size_t)n + 1);
    if (x->n_made > 0) {
        take_gil(frame->runner);
        if (make_section_arrays(s, x, &r) != DONE) {
            *stopped = x->first;
            return RAISED;
        }
    }
    for (i = 0; i < n; i++)
        if (r.waits_for[i] == 0 && !r.is_done[i])
            r.ready[r.n_ready++] = i;
    r.n_left = n - x->n_made;
    pthread_mutex_init(&r.lock, NULL);
    pthread_cond_init(&r.changed, NULL);
    give_up_gil(frame->runner);
    begin_job(&job, join_section, &r, x->threads, x->threads);
    within_part = 1;
    run_ready_calls(&r, frame->runner);
    within_part = 0;
    end_job(&job);
    pthread_mutex_destroy(&r.lock);
    pthread_cond_destroy(&r.changed);
    if (r.status == DONE)
        return DONE;
    *stopped = x->first + r.limit;
    if (r.status == RAISED) {
        take_gil(frame->runner);
        PyErr_Restore(r.raised[0], r.raised[1], r.raised[2]);
    }
    return r.status;
}

#endif
