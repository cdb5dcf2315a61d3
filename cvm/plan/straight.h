/* Straight code: calls on few elements that stand one after another in a kept segment, as one C function for
   their lengths and strides. It replaces them once they have run often (cvm/straight.py), with the same results. */
#ifndef SYMCOMP_STRAIGHT_H
#define SYMCOMP_STRAIGHT_H

#include "plan.h"

/* A function of the addresses of storages, and of where the results of a nested program go. */
typedef void straight_function(char *const *address, char *const *results);

/* Where a function is, as codegen/compiler/early.py writes it; NULL while it is being compiled. */
typedef struct {
    straight_function *run;
    int64_t early;
} StraightEntry;

/* Calls that have straight code, or calls that have none. */
typedef struct {
    int first, end;
    StraightEntry *entry;       /* NULL: none */
    PyObject *owner;            /* of the entry */
    int copies_results;         /* whether it does what ``copy_results`` does, too */
} Stretch;

typedef struct StraightCode {
    int n;
    Stretch *stretches;         /* of all calls of a segment */
} StraightCode;

/* Set by the module: have the straight code of a segment compiled, and publish it. */
static void (*straighten)(Segment *s);

static inline StraightCode *straight_code_of(const Segment *s)
{
    return (StraightCode *)__atomic_load_n(&s->straight, __ATOMIC_ACQUIRE);
}

/* Memory for the code of n stretches, as long as the segment lives; NULL: there is none. */
static StraightCode *new_straight_code(Segment *s, int n)
{
    StraightCode *x = (StraightCode *)pool_new(&s->pool, sizeof(StraightCode));
    if (x == NULL)
        return NULL;
    x->n = n;
    x->stretches = (Stretch *)pool_new(&s->pool, (size_t)n * sizeof(Stretch));
    return x->stretches == NULL ? NULL : x;
}

/* Runs of other threads see all of it or nothing. */
static inline void publish_straight_code(Segment *s, StraightCode *straight)
{
    __atomic_store_n(&s->straight, straight, __ATOMIC_RELEASE);
}

/* The function of a stretch, if it is there. */
static inline straight_function *straight_function_of(const Stretch *x)
{
    return x->entry == NULL ? NULL : __atomic_load_n(&x->entry->run, __ATOMIC_ACQUIRE);
}

/* Segments that never get straight code, or for which it was asked. */
static const int64_t NEVER_HOT = INT64_MAX;

/* The runs after which the calls of a segment should be compiled together: the compiler takes longer for
   many calls than in proportion to them. */
static int64_t runs_until_hot(const Segment *s)
{
    const double after = (double)s->code->straight_after;
    const double runs = s->n_calls ? ceil(after / s->n_calls + after / 16) : 0;
    return runs > 0 && runs < (double)NEVER_HOT ? (int64_t)runs : NEVER_HOT;
}

static inline int is_hot(const Segment *s) { return s->runs + s->failed_guards >= s->hot_after; }

/* Ask for the straight code of a segment, once. The GIL is as before after it. */
static __attribute__((noinline)) void ask_for_straight_code(Segment *s, Runner *runner)
{
    const int was_released = runner->released != NULL;
    /* A thread of the pool does not wait for the GIL: a later run asks. */
    if (runner->cancelled != NULL)
        return;
    take_gil(runner);
    if (is_hot(s)) {
        s->hot_after = NEVER_HOT;
        straighten(s);
    }
    if (was_released)
        give_up_gil(runner);
}

static inline void straighten_if_hot(Segment *s, Runner *runner)
{
    if (is_hot(s))
        ask_for_straight_code(s, runner);
}

/* With the GIL. */
static void drop_straight_code(Segment *s)
{
    StraightCode *x = straight_code_of(s);
    int i;
    for (i = 0; x != NULL && i < x->n; i++)
        Py_XDECREF(x->stretches[i].owner);
}

#endif
