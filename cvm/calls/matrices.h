/* Decompositions, inverses and systems of stacks of matrices (../linalg/named.h and the headers that it
   includes). */
#ifndef SYMCOMP_CALLS_MATRICES_H
#define SYMCOMP_CALLS_MATRICES_H

#include <stddef.h>
#include "moves.h"
#include "../plan/sections.h"
#include "../linalg/named.h"
#include "../thread_pool.h"

/* Decompositions use the threads of BLAS from this product of a matrix's sides and shorter side on. */
static const double WORTH_THREADS_OF_BLAS = 1e9;
/* Stacks of less work are decomposed by one thread. */
static const double WORK_WORTH_SHARING = 1e5;
static const double NANOSECONDS_OF_DECOMPOSITION = 0.2;

typedef struct {
    decompose *function;
    int threads;            /* sharing the matrices of a stack */
    PyObject *limit;        /* a context manager, within which BLAS uses threads of its own; or NULL */
    int n_given, n_found;
    int *order;             /* the inputs in the order in which it takes them, the matrices first */
    int *cores;             /* how many axes a matrix of each has; 1: a vector */
    int *types, *itemsizes; /* of the first input and the outputs */
    char **shapes;          /* of each output: a letter for each axis of its part for one matrix */
    int is_square, lower, option, kind, wide, residuals;
    double rcond, rcond_of_side;
} MatricesSpec;

typedef struct {
    decompose *function;
    struct decomposition d;
    Place given[MOST_INPUTS], found[MOST_OUTPUTS];
    Place memory;           /* of all threads */
    int64_t size;           /* of the memory of one */
    int n_found, threads;
    PyObject *limit;
} MatricesCall;

/* A stack that threads share. */
typedef struct {
    decompose *function;
    const struct decomposition *d;
    char *memory;
    int64_t size;
    int n_found, outcome;
} Decomposing;

static void decompose_one(void *work, int64_t i, int worker)
{
    Decomposing *w = (Decomposing *)work;
    struct decomposition d = *w->d;
    int k, outcome;
    d.count = 1;
    for (k = 0; k < d.n_given; k++)
        d.given[k].data += i * d.given[k].each;
    for (k = 0; k < w->n_found; k++)
        d.found[k].data += i * d.found[k].each;
    outcome = decompose_in(w->memory + worker * w->size, w->size, w->function, &d);
    if (outcome != FOUND)
        __atomic_store_n(&w->outcome, outcome, __ATOMIC_RELAXED);
}

/* Decompose the matrices of a stack, which threads share, or one, with the threads of BLAS. */
static int decompose_all(const MatricesCall *c, const struct decomposition *d, char *memory,
                         Runner *runner)
{
    if (c->threads > 1) {
        Decomposing work = {c->function, d, memory, c->size, c->n_found, FOUND};
        share(decompose_one, &work, d->count, c->threads);
        return work.outcome;
    }
    if (c->limit != NULL) {
        const int was_released = runner->released != NULL;
        int outcome, failed;
        take_gil(runner);
        if (limit_blas(c->limit, 1) < 0)
            return FAILED;
        give_up_gil(runner);
        outcome = decompose_in(memory, c->size, c->function, d);
        take_gil(runner);
        failed = limit_blas(c->limit, 0) < 0;
        if (was_released && !failed)
            give_up_gil(runner);
        return outcome;
    }
    return decompose_in(memory, c->size, c->function, d);
}

static int run_matrices(const void *params, Frame *frame)
{
    const MatricesCall *c = (const MatricesCall *)params;
    struct decomposition d;
    int i, outcome;
    memcpy(&d, &c->d, offsetof(struct decomposition, given));
    for (i = 0; i < d.n_given; i++) {
        d.given[i] = c->d.given[i];
        d.given[i].data = data_at(frame, &c->given[i]);
    }
    for (i = 0; i < c->n_found; i++) {
        d.found[i] = c->d.found[i];
        d.found[i].data = data_at(frame, &c->found[i]);
    }
    outcome = decompose_all(c, &d, data_at(frame, &c->memory), frame->runner);
    if (frame->runner->released == NULL && PyErr_Occurred())
        return RAISED;
    if (outcome == NO_MEMORY) {
        take_gil(frame->runner);
        PyErr_SetString(PyExc_MemoryError, "no memory to decompose a matrix");
        return RAISED;
    }
    return outcome == FOUND ? DONE : DECLINED;
}

/* Read an operand as a stack of matrices, or of vectors; 0 if there is no one step from each to the
   next. */
static int read_matrices(const Operand *x, int core, struct stack *found)
{
    const int depth = x->ndim - core;
    int64_t each = 0, next = 0;
    int axis, is_first = 1;
    found->data = NULL;
    found->rows = found->columns = 1;
    found->down = found->along = x->itemsize;
    if (core > 0) {
        found->rows = x->shape[depth];
        found->down = x->strides[depth];
    }
    if (core > 1) {
        found->columns = x->shape[depth + 1];
        found->along = x->strides[depth + 1];
    }
    for (axis = depth - 1; axis >= 0; axis--) {
        if (x->shape[axis] == 1)
            continue;
        if (is_first)
            each = x->strides[axis];
        else if (x->strides[axis] != next)
            return 0;
        is_first = 0;
        next = x->strides[axis] * x->shape[axis];
    }
    found->each = each;
    return 1;
}

/* Take in the inputs; ``first`` is the first of them. */
static int read_given(Planner *p, const MatricesSpec *spec, MatricesCall *c, const Operand **given)
{
    struct decomposition *d = &c->d;
    int i, axis, depth = 0;
    d->kind = spec->kind + spec->wide;
    d->wide = spec->wide;
    d->lower = spec->lower;
    d->option = spec->option;
    d->n_given = spec->n_given;
    d->count = 1;
    for (i = 0; i < spec->n_given; i++) {
        const Operand *x = input_of(p, spec->order[i]);
        if (!is_plain(x) || x->type != spec->types[0] || x->size == 0 || x->ndim < spec->cores[i])
            return DECLINED;
        if (!read_matrices(x, spec->cores[i], &d->given[i])) {
            x = scratch_copy(p, x);
            if (x == NULL)
                return no_memory();
            read_matrices(x, spec->cores[i], &d->given[i]);
        }
        given[i] = x;
        if (i == 0)
            depth = x->ndim - spec->cores[0];
        if (x->ndim - spec->cores[i] != depth || d->given[i].rows != d->given[0].rows)
            return DECLINED;
        for (axis = 0; axis < depth; axis++)
            if (x->shape[axis] != given[0]->shape[axis])
                return DECLINED;
        c->given[i] = placed(x);
    }
    for (axis = 0; axis < depth; axis++)
        d->count *= given[0]->shape[axis];
    d->rcond = spec->rcond + spec->rcond_of_side * (double)(d->given[0].rows > d->given[0].columns
                                                                ? d->given[0].rows
                                                                : d->given[0].columns);
    return spec->is_square && d->given[0].rows != d->given[0].columns ? DECLINED : DONE;
}

static Operand *found_operand(Planner *p, const MatricesSpec *spec, const MatricesCall *c,
                              const Operand *first, int i)
{
    const int64_t m = c->d.given[0].rows, n = c->d.given[0].columns;
    const char *letter;
    int64_t shape[MOST_AXES];
    int depth = first->ndim - spec->cores[0];
    memcpy(shape, first->shape, (size_t)depth * sizeof(int64_t));
    for (letter = spec->shapes[i]; *letter; letter++)
        shape[depth++] = *letter == 'm'   ? m
                         : *letter == 'n' ? n
                         : *letter == 'p' ? (m < n ? m : n)
                                          : c->d.given[1].columns;
    return new_output_apart(p, i, spec->types[1 + i], spec->itemsizes[1 + i], depth, shape, NULL);
}

typedef struct {
    Place rank;
    int64_t full, expected;
} RankGuard;

static int run_rank_guard(const void *params, Frame *frame)
{
    const RankGuard *g = (const RankGuard *)params;
    const int64_t found = *(const int64_t *)data_at(frame, &g->rank) == g->full;
    return check_outcome(frame, 1, &found, &g->expected);
}

/* There are residuals if the matrix is tall and of full rank, else an empty vector. */
static int plan_residuals(Planner *p, const MatricesSpec *spec, int64_t m, int64_t n)
{
    Operand *z = p->of_slot[p->instruction->outputs[spec->residuals]], *none;
    const Operand *rank = p->of_slot[p->instruction->outputs[spec->residuals + 1]];
    int64_t shape[MOST_AXES], has_residuals = m > n;
    Call *call;
    RankGuard *g;
    if (m > n) {
        int status = run_planned(p);
        if (status != DONE)
            return status;
        has_residuals = *(const int64_t *)data_of(p, rank) == n;
        call = new_call(p, run_rank_guard, "guard rank", sizeof(RankGuard));
        if (call == NULL)
            return no_memory();
        g = (RankGuard *)call->params;
        g->rank = placed(rank);
        g->full = n;
        g->expected = has_residuals;
        call->is_guard = 1;
        if (set_operands(p, call, 1, &rank, 0, NULL) != DONE)
            return RAISED;
    }
    if (has_residuals)
        return DONE;
    memcpy(shape, z->shape, (size_t)z->ndim * sizeof(int64_t));
    shape[0] = 0;
    none = new_view(p, z, 0, z->ndim, shape, z->strides);
    return none == NULL ? no_memory() : give_output(p, spec->residuals, none);
}

/* Choose who shares the work: threads of the pool the matrices of a stack, those of BLAS a large one. */
static void choose_threads(const MatricesSpec *spec, MatricesCall *c, double work_of_one)
{
    const int64_t count = c->d.count;
    c->threads = 1;
    if (count > 1 && (double)count * work_of_one >= WORK_WORTH_SHARING)
        c->threads = count < spec->threads ? (int)count : spec->threads;
    if (count == 1 && work_of_one >= WORTH_THREADS_OF_BLAS)
        c->limit = spec->limit;
}

/* Give the threads memory, if they need some: as one more of ``n`` results. Their number; -1: there is none. */
static int add_memory(Planner *p, MatricesCall *c, int n, const Operand **written)
{
    int64_t bytes;
    c->size = memory_for(c->function, &c->d);
    bytes = c->size * c->threads;
    if (bytes == 0)
        return n;
    written[n] = new_scratch(p, NPY_UINT8, 1, 1, &bytes);
    if (written[n] == NULL)
        return -1;
    c->memory = placed(written[n]);
    return n + 1;
}

static int plan_matrices(Planner *p, const void *given)
{
    const MatricesSpec *spec = (const MatricesSpec *)given;
    const Operand *inputs[MOST_INPUTS];
    const Operand *outputs[MOST_OUTPUTS + 1];   /* and the memory */
    MatricesCall ready;
    Call *call;
    int i, status, n_written;
    int64_t m, n;
    double work_of_one;
    memset(&ready, 0, sizeof(ready));
    status = read_given(p, spec, &ready, inputs);
    if (status != DONE)
        return status;
    for (i = 0; i < spec->n_found; i++) {
        outputs[i] = found_operand(p, spec, &ready, inputs[0], i);
        if (outputs[i] == NULL)
            return no_memory();
        read_matrices(outputs[i], (int)strlen(spec->shapes[i]), &ready.d.found[i]);
        ready.found[i] = placed(outputs[i]);
    }
    ready.function = spec->function;
    ready.n_found = spec->n_found;
    m = ready.d.given[0].rows;
    n = ready.d.given[0].columns;
    work_of_one = (double)m * n * (m < n ? m : n);
    choose_threads(spec, &ready, work_of_one);
    n_written = add_memory(p, &ready, spec->n_found, outputs);
    call = new_call(p, run_matrices, "decompose", sizeof(MatricesCall));
    if (n_written < 0 || call == NULL)
        return no_memory();
    *(MatricesCall *)call->params = ready;
    call->work = (double)ready.d.count * work_of_one;
    call->nanoseconds = NANOSECONDS_OF_CALL + call->work * NANOSECONDS_OF_DECOMPOSITION;
    call->uses_threads = ready.threads > 1;
    call->uses_blas = 1;
    call->is_independent = ready.limit == NULL;
    status = set_operands(p, call, spec->n_given, inputs, n_written, outputs);
    if (status != DONE)
        return status;
    if (spec->n_found == 0)
        return give_output(p, 0, input_of(p, 0));
    for (i = 0; i < spec->n_found; i++)
        if (give_output(p, i, (Operand *)outputs[i]) != DONE)
            return RAISED;
    return spec->residuals >= 0 ? plan_residuals(p, spec, m, n) : DONE;
}

#endif
