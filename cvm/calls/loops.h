/* Loops: how one is planned. The first step is planned and run, and gives the shapes of its results. */
#ifndef SYMCOMP_LOOPS_H
#define SYMCOMP_LOOPS_H

#include "no_steps.h"

/* The time of each step of a loop besides its calls. */
static const double NANOSECONDS_OF_STEP = 60;

/* The state of planning a loop. */
typedef struct {
    const LoopSpec *spec;
    int64_t n;
    Operand **states;       /* rows of each: all, or where a loop may end early, the first */
    Operand **stacks;
    Operand **buffers;      /* two of each carried value; its end where steps only write parts */
    Operand **ends;         /* outputs of these */
    Operand *done;
    Given *given;           /* of the body */
    const Operand **captured;   /* with the parts of groups among them */
    int n_captured;
    LoopCall *call;
} LoopPlan;

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
        Operand *end = l->ends[k] = new_output_apart(p, s->n_states + k, x->type, x->itemsize,
                                                     x->ndim, x->shape, NULL);
        for (i = 0; i < 2; i++)
            l->buffers[2 * k + i] =
                is_rewritten(s, k) ? end
                                   : new_scratch(p, x->type, x->itemsize, x->ndim, x->shape);
        if (end == NULL || l->buffers[2 * k] == NULL || l->buffers[2 * k + 1] == NULL)
            return no_memory();
        if (emit_copy(p, l->buffers[2 * k], x) != DONE)
            return RAISED;
    }
    return DONE;
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
    for (i = 0; i < s->n_carried; i++) {
        give_row(p, g, l->buffers[2 * i], 0, 0);
        g++->layout.flags |= is_rewritten(s, i) ? WRITEABLE : 0;
    }
    for (i = 0; i < s->n_sequences; i++)
        give_row(p, g++, loop_sequence(p, s, i), 0, 1);
    for (i = 0; i < l->n_captured; i++)
        give_operand(p, g++, l->captured[i]);
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

/* Run the first step, from which the shapes of its results are known, and keep it, as a segment to which the
   outer plan refers. NULL: ``*status`` says why. */
static Segment *plan_first_step(Planner *p, LoopPlan *l, int *status)
{
    Tree *tree = l->spec->tree;
    const int n = tree->code->n_outputs;
    const Operand **results = (const Operand **)alloca((size_t)(n + 1) * sizeof(Operand *));
    Result *expected = (Result *)alloca((size_t)(n + 1) * sizeof(Result));
    char **provided = (char **)alloca((size_t)(n + 1) * sizeof(char *));
    int64_t stop = 0;
    Segment *root = NULL;
    Planner *q;
    int j;
    q = new_planner(tree, p->runner);
    if (q == NULL) {
        *status = RAISED;
        return NULL;
    }
    tree->clock++;
    count_planning(tree, NEW_LAYOUTS);
    *status = plan_constants(q);
    if (*status == DONE)
        *status = plan_inputs(q, l->given);
    if (*status == DONE)
        *status = plan_from(q, 0);
    if (*status == RAISED)
        note_step(l->spec->name, 0, l->n);
    if (*status == DONE && !gives_arrays(q))
        *status = DECLINED;
    for (j = 0; *status == DONE && j < n; j++)
        expected[j].operand = results[j] = q->of_slot[tree->code->output_slots[j]];
    if (*status == DONE && !fits_results(l, results))
        *status = DECLINED;
    if (*status == DONE)
        *status = plan_stacks(p, l, results);
    if (*status == DONE)
        *status = run_planned(p);
    if (*status == DONE) {
        provide_first_step(p, l, provided, (char *)&stop);
        *status = finish_nested(q, provided, expected);
    }
    if (*status == DONE) {
        root = keep_root(tree, q, l->given);
        if (root == NULL || set_result_copies(root) != DONE || refer_to(p, root) != DONE)
            *status = PyErr_Occurred() ? RAISED : DECLINED;
    }
    drop_planner(q);
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

/* The growing array of a state or stack: the result made of it has a storage of its own. */
static Operand *grow(Planner *p, Growing *g, const Operand *start, int64_t depth)
{
    Storage *s = new_storage(p, LATE, 0);
    Operand *rows;
    if (s == NULL)
        return NULL;
    rows = new_operand(p, s, 0, start->type, start->itemsize, start->ndim, start->shape,
                       start->strides);
    g->storage = s;
    g->type = start->type;
    g->ndim = start->ndim;
    g->depth = depth;
    g->row_bytes = start->size ? start->strides[0] : 0;  /* strides of rows without elements are not 0 */
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
    c->carried = (Place *)pool_new(&p->pool, 3 * (size_t)s->n_carried * sizeof(Place));
    c->carried_bytes = (int64_t *)pool_new(&p->pool, (size_t)s->n_carried * sizeof(int64_t));
    if (!c->inputs || !c->outputs || !c->carried || !c->carried_bytes ||
        !place_values(p, &c->captured, l->n_captured, l->captured))
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
    for (k = 0; k < s->n_carried; k++) {
        c->carried[3 * k] = placed(l->buffers[2 * k]);
        c->carried[3 * k + 1] = placed(l->buffers[2 * k + 1]);
        c->carried[3 * k + 2] = placed(l->ends[k]);
        c->carried_bytes[k] = l->ends[k]->size * l->ends[k]->itemsize;
    }
    return c;
}

/* Give the rows of the steps that a loop that may end early did; their number is guarded. */
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
    Operand **captured =
        (Operand **)pool_new(&p->pool, (size_t)s->n_captured * sizeof(Operand *));
    int i, n_inputs;
    if (l == NULL || captured == NULL)
        return NULL;
    for (i = 0; i < s->n_captured; i++)
        captured[i] = loop_captured(p, s, i);
    l->spec = s;
    l->captured = values_to_give(p, s->n_captured, captured, &l->n_captured);
    n_inputs = s->tree->code->n_inputs + l->n_captured - s->n_captured;
    l->states = (Operand **)pool_new(&p->pool, (size_t)s->n_states * sizeof(Operand *));
    l->stacks = (Operand **)pool_new(&p->pool, (size_t)s->n_stacks * sizeof(Operand *));
    l->buffers = (Operand **)pool_new(&p->pool, 2 * (size_t)s->n_carried * sizeof(Operand *));
    l->ends = (Operand **)pool_new(&p->pool, (size_t)s->n_carried * sizeof(Operand *));
    l->given = (Given *)pool_new(&p->pool, (size_t)n_inputs * sizeof(Given));
    return l->states && l->stacks && l->buffers && l->ends && l->given && l->captured ? l : NULL;
}

/* The segment of the body for these layouts; if there is none, the first step is run to make it. */
static Segment *root_of_body(Planner *p, LoopPlan *l, int *status)
{
    Segment *root = root_for(l->spec->tree, l->given);
    const Operand **results;
    int j, n = l->spec->tree->code->n_outputs;
    if (root == NULL)
        return plan_first_step(p, l, status);
    root->last_used = l->spec->tree->clock;
    if (refer_to(p, root) != DONE) {
        *status = RAISED;
        return NULL;
    }
    results = (const Operand **)alloca((size_t)(n + 1) * sizeof(Operand *));
    for (j = 0; j < n; j++)
        results[j] = root->results[j].operand;
    *status = fits_results(l, results) ? plan_stacks(p, l, results) : DECLINED;
    return *status == DONE ? root : NULL;
}

/* Say what a loop reads and writes. */
static int set_loop_operands(Planner *p, const LoopPlan *l, Call *call)
{
    const LoopSpec *s = l->spec;
    const int n_writes = s->n_states + 3 * s->n_carried + s->n_stacks + (s->until != 0);
    const Operand **found = (const Operand **)alloca(
        (size_t)(s->n_sequences + l->n_captured + n_writes + 1) * sizeof(Operand *));
    const Operand **at = found;
    int i, n_reads;
    for (i = 0; i < s->n_sequences; i++)
        *at++ = loop_sequence(p, s, i);
    at += read_parts(s->n_captured, l->captured, at);
    n_reads = (int)(at - found);
    for (i = 0; i < s->n_states; i++)
        *at++ = l->states[i];
    for (i = 0; i < 2 * s->n_carried; i++)
        if (l->buffers[i] != l->ends[i / 2])
            *at++ = l->buffers[i];
    for (i = 0; i < s->n_carried; i++)
        *at++ = l->ends[i];
    for (i = 0; i < s->n_stacks; i++)
        *at++ = l->stacks[i];
    if (s->until)
        *at++ = l->done;
    return set_operands(p, call, n_reads, found, (int)(at - found) - n_reads, found + n_reads);
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
    if (n < 0 || !fits_loop(p, s, n))
        return DECLINED;
    if (n == 0)
        return plan_no_steps(p, s);
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
    c = l->call = (LoopCall *)pool_new(&p->pool, sizeof(LoopCall));
    if (c == NULL || loop_params(p, l, root, c) == NULL)
        return no_memory();
    call = new_call(p, s->until ? run_growing_loop : run_loop, "loop", 0);
    if (call == NULL)
        return no_memory();
    call->params = c;
    call->work = (double)n * (root->work > 1 ? root->work : 1);
    call->needs_gil = root->has_objects;
    call->nanoseconds = (double)n * (root->nanoseconds + NANOSECONDS_OF_STEP);
    call->is_independent = !s->until && !root->has_python;
    if (set_loop_operands(p, l, call) != DONE)
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
