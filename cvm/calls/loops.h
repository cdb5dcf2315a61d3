/* Loops: a nested program is run again and again, on rows and values that move from step to step. */
#ifndef SYMCOMP_LOOPS_H
#define SYMCOMP_LOOPS_H

#include "../plan/nested.h"
#include "moves.h"

enum { STEPS_BETWEEN_SIGNALS = 4096, FIRST_ROWS = 64 };
static const double WORK_BETWEEN_SIGNALS = 5e6;

/* What the inputs of the instruction, and of the body, are (scan/layout.py). */
typedef struct {
    Tree *tree;             /* of the body, at this instruction */
    PyObject *name;         /* for messages */
    int n_states, n_reads, n_carried, n_sequences, n_captured, n_stacks, until;
    int *depths;            /* of states: how many rows there are at first */
    int *read_state;        /* of reads: which state, */
    int *read_row;          /* and its row less the number of the step */
} LoopSpec;

/* Set by the module: tell in which step an exception was raised. */
static void (*note_step)(PyObject *name, int64_t step, int64_t most);

/* Bytes from one step to the next: of inputs of the body, or of its results. */
typedef struct {
    Place base;
    int64_t first, stride;
} Rows;

/* Of a loop that may end early: rows that grow with its steps, of a state or a stack. */
typedef struct {
    int storage, type, ndim;
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
    Place *captured;
    char *is_whole;         /* of these: whether it is all of an array */
    Place *carried;         /* of each: two buffers in turn, and where the last value goes */
    int64_t *carried_bytes;
    Growing *growing;       /* of states, then stacks; NULL: all steps are done */
    Place done;             /* how many were, where that is not known before */
} LoopCall;

/* Look for signals now and then. */
static int check_signals(Runner *runner)
{
    const int was_released = runner->released != NULL;
    int failed;
    runner->work_since_signals = 0;
    take_gil(runner);
    failed = PyErr_CheckSignals() < 0;
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
    for (i = 0; i < spec->n_captured; i++) {
        /* Python sees the array that it is, if it is one. */
        inner->object[address - inner->address] =
            c->is_whole[i] ? frame->object[c->captured[i].storage] : NULL;
        *address++ = data_at(frame, &c->captured[i]);
    }
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
    for (k = 0; k < c->spec->n_carried; k++)
        memcpy(data_at(frame, &c->carried[3 * k + 2]), data_at(frame, &c->carried[3 * k + (t & 1)]),
               (size_t)c->carried_bytes[k]);
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
        char *larger = (char *)realloc(rows[i], size ? size : 1);
        if (larger == NULL)
            return 0;
        rows[i] = frame->address[g->storage] = larger;
        if (is_new)
            memcpy(larger, data_at(frame, &g->start), (size_t)((g->depth + 1) * g->row_bytes));
    }
    return 1;
}

/* The rows of the steps that were done, as arrays; with the GIL. */
static int make_rows(const LoopCall *c, Frame *frame, char **rows, int64_t done)
{
    const int n = c->spec->n_states + c->spec->n_stacks;
    int i;
    for (i = 0; i < n; i++) {
        const Growing *g = &c->growing[i];
        PyObject *array, *old = frame->object[g->storage];
        npy_intp shape[MOST_AXES];
        memcpy(shape, g->shape, (size_t)g->ndim * sizeof(int64_t));
        shape[0] = g->depth + done;
        array = PyArray_EMPTY(g->ndim, shape, g->type, 0);
        if (array == NULL)
            return RAISED;
        memcpy(PyArray_BYTES((PyArrayObject *)array), rows[i],
               (size_t)((g->depth + done) * g->row_bytes));
        frame->object[g->storage] = array;
        frame->address[g->storage] = PyArray_BYTES((PyArrayObject *)array);
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
    int i, more = !runner->has_ended, status = DONE;
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
        status = make_rows(c, frame, rows, t);
    }
    for (i = 0; i < n; i++)
        free(rows[i]);
    return status;
}

/* ---- planning */

/* What is being planned of a loop. */
typedef struct {
    const LoopSpec *spec;
    int64_t n;
    Operand **states;       /* rows of each: all, or where a loop may end early, the first */
    Operand **stacks;
    Operand **buffers;      /* two of each carried value */
    Operand **ends;         /* outputs of these */
    Operand *done;
    Given *given;           /* of the body */
    LoopCall *call;
} LoopPlan;

static inline Operand *loop_state(const Planner *p, const LoopSpec *s, int i)
{
    (void)s;
    return input_of(p, 1 + i);
}

static inline Operand *loop_carried(const Planner *p, const LoopSpec *s, int k)
{
    return input_of(p, 1 + s->n_states + k);
}

static inline Operand *loop_sequence(const Planner *p, const LoopSpec *s, int i)
{
    return input_of(p, 1 + s->n_states + s->n_carried + i);
}

static inline Operand *loop_captured(const Planner *p, const LoopSpec *s, int i)
{
    return input_of(p, 1 + s->n_states + s->n_carried + s->n_sequences + i);
}

/* Whether the inputs are arrays of the lengths that the steps need. */
static int fits_loop(const Planner *p, const LoopSpec *s, int64_t n)
{
    int i;
    for (i = 0; i < s->n_states; i++) {
        const Operand *x = loop_state(p, s, i);
        if (!is_plain(x) || x->ndim < 1 || x->shape[0] != s->depths[i])
            return 0;
    }
    for (i = 0; i < s->n_carried; i++)
        if (!is_plain(loop_carried(p, s, i)))
            return 0;
    for (i = 0; i < s->n_sequences; i++) {
        const Operand *x = loop_sequence(p, s, i);
        if (!is_plain(x) || x->ndim < 1 || x->shape[0] < n)
            return 0;
    }
    for (i = 0; i < s->n_captured; i++)
        if (!is_array(loop_captured(p, s, i)))
            return 0;
    return 1;
}

/* Rows of a state or stack: of all steps, or the first and room for one more. */
static Operand *new_rows(Planner *p, const LoopPlan *l, int output, int64_t depth, int type,
                         int itemsize, int ndim, const int64_t *row_shape)
{
    int64_t shape[MOST_AXES + 1];
    if (ndim + 1 > MOST_AXES)
        return NULL;
    shape[0] = depth + (l->spec->until ? 1 : l->n);
    memcpy(shape + 1, row_shape, (size_t)ndim * sizeof(int64_t));
    return l->spec->until ? new_scratch(p, type, itemsize, ndim + 1, shape)
                          : new_output_apart(p, output, type, itemsize, ndim + 1, shape, NULL);
}

/* Memory for states and carried values, and what they are at first. */
static int plan_starts(Planner *p, LoopPlan *l)
{
    const LoopSpec *s = l->spec;
    int i, k;
    for (i = 0; i < s->n_states; i++) {
        const Operand *x = loop_state(p, s, i);
        const Operand *first;
        Operand *z = l->states[i] =
            new_rows(p, l, i, s->depths[i], x->type, x->itemsize, x->ndim - 1, x->shape + 1);
        if (z == NULL)
            return no_memory();
        first = new_view(p, z, 0, x->ndim, x->shape, z->strides);
        if (first == NULL || emit_copy(p, first, x) != DONE)
            return no_memory();
    }
    for (k = 0; k < s->n_carried; k++) {
        const Operand *x = loop_carried(p, s, k);
        Operand *first = l->buffers[2 * k] =
            new_scratch(p, x->type, x->itemsize, x->ndim, x->shape);
        l->buffers[2 * k + 1] = new_scratch(p, x->type, x->itemsize, x->ndim, x->shape);
        l->ends[k] = new_output_apart(p, s->n_states + k, x->type, x->itemsize, x->ndim, x->shape,
                                      NULL);
        if (first == NULL || l->buffers[2 * k + 1] == NULL || l->ends[k] == NULL)
            return no_memory();
        if (emit_copy(p, first, x) != DONE)
            return RAISED;
    }
    return DONE;
}

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

/* The inputs of the first step. */
static void give_first_step(const Planner *p, const LoopPlan *l)
{
    const LoopSpec *s = l->spec;
    Given *g = l->given;
    int i;
    for (i = 0; i < s->n_reads; i++) {
        const Operand *x = l->states[s->read_state[i]];
        give_row(p, g++, x, s->read_row[i] * x->strides[0], 1);
    }
    for (i = 0; i < s->n_carried; i++)
        give_row(p, g++, l->buffers[2 * i], 0, 0);
    for (i = 0; i < s->n_sequences; i++)
        give_row(p, g++, loop_sequence(p, s, i), 0, 1);
    for (i = 0; i < s->n_captured; i++) {
        const Operand *x = loop_captured(p, s, i);
        give_row(p, g, x, 0, 0);
        g++->object = x->flags & WHOLE ? p->frame->object[x->storage->index] : NULL;
    }
}

/* Whether the results of a step fit the rows and values that they become. */
static int fits_results(const LoopPlan *l, const Operand *const *results)
{
    const LoopSpec *s = l->spec;
    int j;
    for (j = 0; j < s->n_states + s->n_carried; j++) {
        const int is_row = j < s->n_states;
        const Operand *z = results[j];
        const Operand *x = is_row ? l->states[j] : l->buffers[2 * (j - s->n_states)];
        if (z->type != x->type || z->ndim != x->ndim - is_row ||
            memcmp(z->shape, x->shape + is_row, (size_t)z->ndim * sizeof(int64_t)))
            return 0;
    }
    if (s->until) {
        const Operand *z = results[s->n_states + s->n_carried + s->n_stacks];
        if (z->type != NPY_BOOL || z->ndim != 0)
            return 0;
    }
    return 1;
}

/* Rows for what steps give besides, which have the shapes that the results of a step have. */
static int plan_stacks(Planner *p, LoopPlan *l, const Operand *const *results)
{
    const LoopSpec *s = l->spec;
    int i;
    for (i = 0; i < s->n_stacks; i++) {
        const int j = s->n_states + s->n_carried + i;
        const Operand *z = results[j];
        l->stacks[i] = new_rows(p, l, j, 0, z->type, z->itemsize, z->ndim, z->shape);
        if (l->stacks[i] == NULL)
            return no_memory();
    }
    return DONE;
}

/* Where the results of the first step are wanted. */
static void provide_first_step(const Planner *p, const LoopPlan *l, char **provided, char *stop)
{
    const LoopSpec *s = l->spec;
    int i;
    for (i = 0; i < s->n_states; i++)
        *provided++ = data_of(p, l->states[i]) + s->depths[i] * l->states[i]->strides[0];
    for (i = 0; i < s->n_carried; i++)
        *provided++ = data_of(p, l->buffers[2 * i + 1]);
    for (i = 0; i < s->n_stacks; i++)
        *provided++ = data_of(p, l->stacks[i]);
    *provided = stop;
}

/* Run the first step, from which the shapes of its results are known, and keep it. The segment, or NULL:
   ``*status`` says why. */
static Segment *plan_first_step(Planner *p, LoopPlan *l, int *status)
{
    Tree *tree = l->spec->tree;
    const int n = tree->code->n_outputs;
    const Operand **results = (const Operand **)alloca((size_t)(n + 1) * sizeof(Operand *));
    Result *expected = (Result *)alloca((size_t)(n + 1) * sizeof(Result));
    char **provided = (char **)alloca((size_t)(n + 1) * sizeof(char *));
    int64_t stop = 0;
    Segment *root = NULL;
    Planner q;
    int j;
    *status = init_planner(&q, tree->code, p->runner);
    if (*status != DONE)
        return NULL;
    q.tree = tree;
    q.counts = tree->counts;
    tree->clock++;
    tree->planned++;
    *status = plan_constants(&q);
    if (*status == DONE)
        *status = plan_inputs(&q, l->given);
    if (*status == DONE)
        *status = plan_from(&q, 0);
    if (*status == RAISED)
        note_step(l->spec->name, 0, l->n);
    if (*status == DONE && !(gives_arrays(&q) && q.is_repeatable))
        *status = DECLINED;
    for (j = 0; *status == DONE && j < n; j++)
        expected[j].operand = results[j] = q.of_slot[tree->code->output_slots[j]];
    if (*status == DONE && !fits_results(l, results))
        *status = DECLINED;
    if (*status == DONE)
        *status = plan_stacks(p, l, results);
    if (*status == DONE)
        *status = run_planned(p);
    if (*status == DONE) {
        provide_first_step(p, l, provided, (char *)&stop);
        *status = finish_nested(&q, provided, expected);
    }
    if (*status == DONE) {
        root = keep_root(tree, &q, l->given);
        if (root == NULL || set_result_copies(root) != DONE)
            *status = PyErr_Occurred() ? RAISED : DECLINED;
    }
    drop_planner(&q);
    if (*status != DONE)
        return NULL;
    p->runner->first_step = 1;
    p->runner->has_ended = l->spec->until && stop & 0xff;
    return root;
}

static Rows rows_of(const Operand *x, int64_t first)
{
    const Rows found = {placed(x), first * x->strides[0], x->strides[0]};
    return found;
}

/* What grows, of a state or stack: the array that is made of it lies in a storage of its own. */
static Operand *grow(Planner *p, Growing *g, const Operand *start, int64_t depth)
{
    Storage *s = new_storage(p, LATE, 0);
    Operand *rows;
    if (s == NULL)
        return NULL;
    rows = new_operand(p, s, 0, start->type, start->itemsize, start->ndim, start->shape,
                       start->strides);
    g->storage = s->index;
    g->type = start->type;
    g->ndim = start->ndim;
    g->depth = depth;
    g->row_bytes = start->strides[0];
    g->start = placed(start);
    g->shape = (int64_t *)pool_copy(&p->pool, start->shape, (size_t)start->ndim * 8);
    return g->shape == NULL ? NULL : rows;
}

/* The parameters of the call of a loop. NULL: there is no memory. */
static LoopCall *loop_params(Planner *p, LoopPlan *l, Segment *root, LoopCall *c)
{
    const LoopSpec *s = l->spec;
    const int n_rows = s->n_states + s->n_stacks;
    int i, k;
    c->spec = s;
    c->root = root;
    c->n = l->n;
    c->first_input = s->tree->code->n_constants;
    c->inputs = (Rows *)pool_new(&p->pool, (size_t)(s->n_reads + s->n_sequences) * sizeof(Rows));
    c->outputs = (Rows *)pool_new(&p->pool, (size_t)n_rows * sizeof(Rows));
    c->captured = (Place *)pool_new(&p->pool, (size_t)s->n_captured * sizeof(Place));
    c->is_whole = (char *)pool_new(&p->pool, (size_t)s->n_captured);
    c->carried = (Place *)pool_new(&p->pool, 3 * (size_t)s->n_carried * sizeof(Place));
    c->carried_bytes = (int64_t *)pool_new(&p->pool, (size_t)s->n_carried * sizeof(int64_t));
    if (!c->inputs || !c->outputs || !c->captured || !c->is_whole || !c->carried || !c->carried_bytes)
        return NULL;
    if (s->until) {
        c->growing = (Growing *)pool_new(&p->pool, (size_t)n_rows * sizeof(Growing));
        if (c->growing == NULL)
            return NULL;
        c->done = placed(l->done);
        for (i = 0; i < n_rows; i++) {
            Operand **rows = i < s->n_states ? &l->states[i] : &l->stacks[i - s->n_states];
            *rows = grow(p, &c->growing[i], *rows, i < s->n_states ? s->depths[i] : 0);
            if (*rows == NULL)
                return NULL;
        }
    }
    for (i = 0; i < s->n_reads; i++)
        c->inputs[i] = rows_of(l->states[s->read_state[i]], s->read_row[i]);
    for (i = 0; i < s->n_sequences; i++)
        c->inputs[s->n_reads + i] = rows_of(loop_sequence(p, s, i), 0);
    for (i = 0; i < n_rows; i++)
        c->outputs[i] = i < s->n_states ? rows_of(l->states[i], s->depths[i])
                                        : rows_of(l->stacks[i - s->n_states], 0);
    for (i = 0; i < s->n_captured; i++) {
        c->captured[i] = placed(loop_captured(p, s, i));
        c->is_whole[i] = (loop_captured(p, s, i)->flags & WHOLE) != 0;
    }
    for (k = 0; k < s->n_carried; k++) {
        c->carried[3 * k] = placed(l->buffers[2 * k]);
        c->carried[3 * k + 1] = placed(l->buffers[2 * k + 1]);
        c->carried[3 * k + 2] = placed(l->ends[k]);
        c->carried_bytes[k] = l->ends[k]->size * l->ends[k]->itemsize;
    }
    return c;
}

/* Of a loop that may end early: give the rows of the steps that were done, whose number is guarded. */
static int give_grown(Planner *p, const LoopPlan *l)
{
    const LoopSpec *s = l->spec;
    int64_t done, shape[MOST_AXES];
    int i, k, status = guarded_number(p, l->done, &done);
    if (status != DONE)
        return status;
    for (i = 0; i < s->n_states + s->n_stacks; i++) {
        const Growing *g = &l->call->growing[i];
        const int output = i < s->n_states ? i : i + s->n_carried;
        const Operand *rows = i < s->n_states ? l->states[i] : l->stacks[i - s->n_states];
        Operand *z;
        memcpy(shape, g->shape, (size_t)g->ndim * sizeof(int64_t));
        shape[0] = g->depth + done;
        z = new_operand(p, rows->storage, 0, g->type, rows->itemsize, g->ndim, shape, NULL);
        if (z == NULL)
            return no_memory();
        z->flags |= WHOLE;
        if (rows->storage->index >= p->first_storage)
            rows->storage->bytes = z->size * z->itemsize;
        if (give_output(p, output, z) != DONE)
            return RAISED;
    }
    for (k = 0; k < s->n_carried; k++)
        if (give_output(p, s->n_states + k, l->ends[k]) != DONE)
            return RAISED;
    return give_output(p, s->n_states + s->n_carried + s->n_stacks, l->done);
}

static LoopPlan *new_loop_plan(Planner *p, const LoopSpec *s)
{
    LoopPlan *l = (LoopPlan *)pool_new(&p->pool, sizeof(LoopPlan));
    const int n_inputs = s->tree->code->n_inputs;
    if (l == NULL)
        return NULL;
    l->spec = s;
    l->states = (Operand **)pool_new(&p->pool, (size_t)s->n_states * sizeof(Operand *));
    l->stacks = (Operand **)pool_new(&p->pool, (size_t)s->n_stacks * sizeof(Operand *));
    l->buffers = (Operand **)pool_new(&p->pool, 2 * (size_t)s->n_carried * sizeof(Operand *));
    l->ends = (Operand **)pool_new(&p->pool, (size_t)s->n_carried * sizeof(Operand *));
    l->given = (Given *)pool_new(&p->pool, (size_t)n_inputs * sizeof(Given));
    return l->states && l->stacks && l->buffers && l->ends && l->given ? l : NULL;
}

/* The segment of the body for these layouts; if there is none, the first step is run to make it. */
static Segment *root_of_body(Planner *p, LoopPlan *l, int *status)
{
    Segment *root = root_for(l->spec->tree, l->given);
    const Operand **results;
    int j, n = l->spec->tree->code->n_outputs;
    if (root == NULL)
        return plan_first_step(p, l, status);
    root->last_used = ++l->spec->tree->clock;
    results = (const Operand **)alloca((size_t)(n + 1) * sizeof(Operand *));
    for (j = 0; j < n; j++)
        results[j] = root->results[j].operand;
    *status = fits_results(l, results) ? plan_stacks(p, l, results) : DECLINED;
    return *status == DONE ? root : NULL;
}

static int plan_loop(Planner *p, const void *given)
{
    const LoopSpec *s = (const LoopSpec *)given;
    LoopPlan *l;
    Segment *root;
    Call *call;
    LoopCall *c;
    int64_t n;
    int i, k, status;
    if (p->saved != NULL)
        return give_grown(p, (const LoopPlan *)p->saved);
    status = guarded_number(p, input_of(p, 0), &n);
    if (status != DONE)
        return status;
    if (n < 1 || !fits_loop(p, s, n))
        return DECLINED;
    l = new_loop_plan(p, s);
    if (l == NULL)
        return no_memory();
    l->n = n;
    if (s->until) {
        l->done = new_output_apart(p, s->n_states + s->n_carried + s->n_stacks, NPY_INT64, 8, 0,
                                   NULL, NULL);
        if (l->done == NULL)
            return no_memory();
    }
    status = plan_starts(p, l);
    if (status == DONE)
        status = run_planned(p);
    if (status != DONE)
        return status;
    give_first_step(p, l);
    root = root_of_body(p, l, &status);
    if (root == NULL)
        return status;
    if (refer_to(p, root) != DONE)
        return RAISED;
    c = l->call = (LoopCall *)pool_new(&p->pool, sizeof(LoopCall));
    if (c == NULL || loop_params(p, l, root, c) == NULL)
        return no_memory();
    call = new_call(p, s->until ? run_growing_loop : run_loop, "loop", 0);
    if (call == NULL)
        return no_memory();
    call->params = c;
    call->work = (double)n * (root->work > 1 ? root->work : 1);
    call->needs_gil = root->has_objects;
    if (set_operands(p, call, 0, NULL, 0, NULL) != DONE)
        return RAISED;
    status = run_planned(p);
    if (status != DONE)
        return status;
    if (s->until) {
        status = checkpoint(p, l);
        return status == DONE ? give_grown(p, l) : status;
    }
    for (i = 0; i < s->n_states; i++)
        if (give_output(p, i, l->states[i]) != DONE)
            return RAISED;
    for (k = 0; k < s->n_carried; k++)
        if (give_output(p, s->n_states + k, l->ends[k]) != DONE)
            return RAISED;
    for (i = 0; i < s->n_stacks; i++)
        if (give_output(p, s->n_states + s->n_carried + i, l->stacks[i]) != DONE)
            return RAISED;
    return DONE;
}

#endif
