/* Runs of loops: a nested program again and again, on rows and values that move from step to step. */
#ifndef SYMCOMP_LOOP_RUNS_H
#define SYMCOMP_LOOP_RUNS_H

#include "../plan/nested.h"
#include "moves.h"

enum { STEPS_BETWEEN_SIGNALS = 4096, FIRST_ROWS = 64 };
static const double WORK_BETWEEN_SIGNALS = 5e6;

/* The inputs of the instruction, and of the body, by kind (scan/layout.py). */
typedef struct {
    Tree *tree;             /* of the body, at this instruction */
    PyObject *name;         /* for messages */
    int n_states, n_reads, n_carried, n_sequences, n_captured, n_stacks, until;
    int *depths;            /* of states: how many rows there are at first */
    int *read_state;        /* of reads: which state, */
    int *read_row;          /* and its row less the number of the step */
    int *stack_type, *stack_itemsize;
    PyObject *without_steps;    /* tells the shapes of rows of stacks where there are none */
} LoopSpec;

/* Set by the module: tell in which step an exception was raised. */
static void (*note_step)(PyObject *name, int64_t step, int64_t most);

/* Bytes from one step to the next: of inputs of the body, or of its results. */
typedef struct {
    Place base;
    int64_t first, stride;
} Rows;

/* Rows that grow with the steps of a loop that may end early, of a state or a stack. */
typedef struct {
    Storage *storage;
    int type, ndim;
    int64_t depth, row_bytes;
    Place start;            /* the first rows, and room for one more */
    int64_t *shape;         /* of the array that is made, but for its rows */
} Growing;

typedef struct {
    const LoopSpec *spec;
    Segment *root;          /* of the body, for these layouts */
    int64_t n;
    int first_input;        /* the storage of the body's first input */
    Rows *inputs;           /* of reads, then sequences */
    Rows *outputs;          /* of states, then stacks */
    GivenValues captured;
    Place *carried;         /* of each: two buffers in turn, and where the last value goes; or all one */
    int64_t *carried_bytes;
    Growing *growing;       /* of states, then stacks; NULL: all steps are done */
    Place done;             /* how many were, where that is not known before */
} LoopCall;

/* Look for signals now and then. */
static __attribute__((noinline)) int check_signals(Runner *runner)
{
    const int was_released = runner->released != NULL;
    int failed;
    runner->work_since_signals = 0;
    /* Signals come to the calling thread alone, which tells the threads of the pool. */
    if (runner->cancelled != NULL && !__atomic_load_n(runner->cancelled, __ATOMIC_RELAXED))
        return DONE;
    take_gil(runner);
    if (runner->cancelled != NULL)
        PyErr_SetNone(PyExc_KeyboardInterrupt);
    failed = PyErr_Occurred() != NULL || PyErr_CheckSignals() < 0;
    if (was_released && !failed)
        give_up_gil(runner);
    return failed ? RAISED : DONE;
}

static inline char *row_at(const Frame *frame, const Rows *rows, int64_t t)
{
    return data_at(frame, &rows->base) + rows->first + t * rows->stride;
}

/* The addresses that a step begins with. */
static void set_addresses(const LoopCall *c, const Frame *frame, Frame *inner, int64_t t)
{
    const LoopSpec *spec = c->spec;
    char **address = inner->address + c->first_input, **provided = inner->provided;
    int i, k;
    for (i = 0; i < spec->n_reads; i++)
        *address++ = row_at(frame, &c->inputs[i], t);
    for (k = 0; k < spec->n_carried; k++) {
        *address++ = data_at(frame, &c->carried[3 * k + (t & 1)]);
        provided[spec->n_states + k] = data_at(frame, &c->carried[3 * k + !(t & 1)]);
    }
    for (; i < spec->n_reads + spec->n_sequences; i++)
        *address++ = row_at(frame, &c->inputs[i], t);
    give_values(&c->captured, frame, inner, (int)(address - inner->address));
    for (i = 0; i < spec->n_states + spec->n_stacks; i++)
        provided[i < spec->n_states ? i : i + spec->n_carried] = row_at(frame, &c->outputs[i], t);
}

/* From the addresses of one step to those of the next. */
static inline void advance(const LoopCall *c, Frame *inner)
{
    const LoopSpec *spec = c->spec;
    char **address = inner->address + c->first_input, **provided = inner->provided;
    int i, k;
    for (i = 0; i < spec->n_reads; i++)
        *address++ += c->inputs[i].stride;
    for (k = spec->n_states; k < spec->n_states + spec->n_carried; k++) {
        char *made = provided[k];
        provided[k] = *address;
        *address++ = made;
    }
    for (; i < spec->n_reads + spec->n_sequences; i++)
        *address++ += c->inputs[i].stride;
    for (i = 0; i < spec->n_states; i++)
        provided[i] += c->outputs[i].stride;
    provided += spec->n_carried;
    for (; i < spec->n_states + spec->n_stacks; i++)
        provided[i] += c->outputs[i].stride;
}

/* Do steps while ``*t`` is less than ``n``; the values that are carried into step t are in the buffers
   that its number tells. ``*more`` is 0 if one said that it is the last. */
static int run_steps(const LoopCall *c, Frame *frame, int64_t *t, int64_t n, int *more)
{
    const LoopSpec *spec = c->spec;
    Runner *runner = frame->runner;
    Segment *root = c->root;
    const double work = root->work > 1 ? root->work : 1;
    const int last = spec->n_states + spec->n_carried + spec->n_stacks;
    char **provided = (char **)alloca(((size_t)last + 1) * sizeof(char *));
    Frame *inner = take_frame(root, runner);
    int64_t stop = 0, since = 0;
    int status = DONE;
    if (inner == NULL) {
        take_gil(runner);
        return no_memory();
    }
    inner->provided = provided;
    provided[last] = (char *)&stop;
    set_addresses(c, frame, inner, *t);
    while (*t < n && *more) {
        status = run_nested(spec->tree, root, inner, root->results);
        if (status != DONE)
            break;
        ++*t;
        advance(c, inner);
        *more = !(spec->until && stop & 0xff);
        runner->work_since_signals += work;
        if (runner->work_since_signals > WORK_BETWEEN_SIGNALS || ++since == STEPS_BETWEEN_SIGNALS) {
            since = 0;
            status = check_signals(runner);
            if (status != DONE)
                break;
        }
    }
    if (status == RAISED) {
        take_gil(runner);
        note_step(spec->name, *t, c->n);
    }
    leave_nested(inner);
    return status;
}

/* The last values that are carried, to where they are wanted. */
static void copy_carried(const LoopCall *c, const Frame *frame, int64_t t)
{
    int k;
    for (k = 0; k < c->spec->n_carried; k++) {
        const char *from = data_at(frame, &c->carried[3 * k + (t & 1)]);
        char *to = data_at(frame, &c->carried[3 * k + 2]);
        if (to != from)
            memcpy(to, from, (size_t)c->carried_bytes[k]);
    }
}

/* A loop whose number of steps is known. */
static int run_loop(const void *params, Frame *frame)
{
    const LoopCall *c = (const LoopCall *)params;
    int64_t t = frame->runner->first_step;
    int more = 1, status;
    frame->runner->first_step = 0;
    status = run_steps(c, frame, &t, c->n, &more);
    if (status == DONE)
        copy_carried(c, frame, t);
    return status;
}

/* Make room for the rows of ``capacity`` steps; 0 if there is no memory. */
static int grow_rows(const LoopCall *c, Frame *frame, char **rows, int64_t capacity)
{
    const int n = c->spec->n_states + c->spec->n_stacks;
    int i;
    for (i = 0; i < n; i++) {
        const Growing *g = &c->growing[i];
        const size_t size = (size_t)((g->depth + capacity) * g->row_bytes);
        const int is_new = rows[i] == NULL;
        char *larger;
        if (!is_new)
            PyTraceMalloc_Untrack(ARENA_DOMAIN, (uintptr_t)rows[i]);
        larger = (char *)realloc(rows[i], size ? size : 1);
        if (larger == NULL)
            return 0;
        PyTraceMalloc_Track(ARENA_DOMAIN, (uintptr_t)larger, size);
        rows[i] = frame->address[g->storage->index] = larger;
        if (is_new)
            memcpy(larger, data_at(frame, &g->start), (size_t)((g->depth + 1) * g->row_bytes));
    }
    return 1;
}

static void drop_rows(const LoopCall *c, char **rows)
{
    int i;
    for (i = 0; i < c->spec->n_states + c->spec->n_stacks; i++)
        if (rows[i] != NULL) {
            PyTraceMalloc_Untrack(ARENA_DOMAIN, (uintptr_t)rows[i]);
            free(rows[i]);
        }
}

/* The rows of the steps that were done, of ``capacity`` that there is room for, as arrays; with the GIL. */
static int make_rows(const LoopCall *c, Frame *frame, char **rows, int64_t done, int64_t capacity)
{
    const int n = c->spec->n_states + c->spec->n_stacks;
    int i;
    for (i = 0; i < n; i++) {
        const Growing *g = &c->growing[i];
        const size_t bytes = (size_t)((g->depth + done) * g->row_bytes);
        PyObject *array, *old = frame->object[g->storage->index];
        npy_intp shape[MOST_AXES];
        memcpy(shape, g->shape, (size_t)g->ndim * sizeof(int64_t));
        shape[0] = g->depth + done;
        array = PyArray_EMPTY(g->ndim, shape, g->type, 0);
        if (array == NULL)
            return RAISED;
        memcpy(PyArray_BYTES((PyArrayObject *)array), rows[i], bytes);
        frame->object[g->storage->index] = array;
        frame->address[g->storage->index] = PyArray_BYTES((PyArrayObject *)array);
        __atomic_store_n(&g->storage->bytes, (int64_t)bytes, __ATOMIC_RELAXED);
        __atomic_store_n(&g->storage->grown, (g->depth + capacity) * g->row_bytes, __ATOMIC_RELAXED);
        Py_XDECREF(old);
    }
    return DONE;
}

/* A loop that may end early: rows grow as they are needed. */
static int run_growing_loop(const void *params, Frame *frame)
{
    const LoopCall *c = (const LoopCall *)params;
    Runner *runner = frame->runner;
    const int n = c->spec->n_states + c->spec->n_stacks;
    char **rows = (char **)alloca(((size_t)n + 1) * sizeof(char *));
    int64_t t = runner->first_step, capacity = c->n < FIRST_ROWS ? c->n : FIRST_ROWS;
    int more = !runner->has_ended, status = DONE;
    runner->first_step = runner->has_ended = 0;
    memset(rows, 0, ((size_t)n + 1) * sizeof(char *));
    for (;;) {
        if (!grow_rows(c, frame, rows, capacity)) {
            take_gil(runner);
            status = no_memory();
            break;
        }
        status = run_steps(c, frame, &t, capacity, &more);
        if (status != DONE || !more || t == c->n)
            break;
        capacity = 2 * capacity < c->n ? 2 * capacity : c->n;
    }
    if (status == DONE) {
        copy_carried(c, frame, t);
        *(int64_t *)data_at(frame, &c->done) = t;
        take_gil(runner);
        status = make_rows(c, frame, rows, t, capacity);
    }
    drop_rows(c, rows);
    return status;
}

#endif
