/* Graphs used as ops: a nested program is run once, and leaves its results where they are wanted. */
#ifndef SYMCOMP_GRAPHS_H
#define SYMCOMP_GRAPHS_H

#include "../plan/nested.h"
#include "moves.h"

typedef struct {
    Tree *tree;             /* of the graph, at this instruction */
} GraphSpec;

typedef struct {
    Tree *tree;
    Segment *root;
    GivenValues inputs;
    Place *outputs;
} GraphCall;

static int run_graph(const void *params, Frame *frame)
{
    const GraphCall *c = (const GraphCall *)params;
    const Code *code = c->tree->code;
    char **provided = (char **)alloca(((size_t)code->n_outputs + 1) * sizeof(char *));
    Frame *inner = take_frame(c->root, frame->runner);
    int i, status;
    if (inner == NULL) {
        take_gil(frame->runner);
        return no_memory();
    }
    give_values(&c->inputs, frame, inner, code->n_constants); /* in the order of plan_inputs */
    for (i = 0; i < code->n_outputs; i++)
        provided[i] = data_at(frame, &c->outputs[i]);
    inner->provided = provided;
    status = run_nested(c->tree, c->root, inner, c->root->results);
    leave_nested(inner);
    return status;
}

/* Run the graph to find the shapes of its results, and keep the plan, to which the outer plan refers.
   ``outputs`` hold the results. NULL: ``*status`` says why. */
static Segment *plan_graph_run(Planner *p, Tree *tree, const Given *given, Operand **outputs,
                               int *status)
{
    const int n = tree->code->n_outputs;
    Result *expected = (Result *)alloca((size_t)(n + 1) * sizeof(Result));
    char **provided = (char **)alloca((size_t)(n + 1) * sizeof(char *));
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
        *status = plan_inputs(q, given);
    if (*status == DONE)
        *status = plan_from(q, 0);
    if (*status == DONE && !gives_arrays(q))
        *status = DECLINED;
    for (j = 0; *status == DONE && j < n; j++) {
        const Operand *x = expected[j].operand = q->of_slot[tree->code->output_slots[j]];
        outputs[j] = new_output_apart(p, j, x->type, x->itemsize, x->ndim, x->shape, NULL);
        if (outputs[j] == NULL)
            *status = no_memory();
    }
    if (*status == DONE)
        *status = run_planned(p);
    if (*status == DONE) {
        for (j = 0; j < n; j++)
            provided[j] = data_of(p, outputs[j]);
        *status = finish_nested(q, provided, expected);
    }
    if (*status == DONE) {
        root = keep_root(tree, q, given);
        if (root == NULL || set_result_copies(root) != DONE || refer_to(p, root) != DONE)
            *status = PyErr_Occurred() ? RAISED : DECLINED;
    }
    drop_planner(q);
    return *status == DONE ? root : NULL;
}

static int plan_graph(Planner *p, const void *spec)
{
    Tree *tree = ((const GraphSpec *)spec)->tree;
    const Code *code = tree->code;
    Operand **inputs = (Operand **)alloca((size_t)(code->n_inputs + 1) * sizeof(Operand *));
    Operand **outputs = (Operand **)alloca((size_t)(code->n_outputs + 1) * sizeof(Operand *));
    const Operand **values;
    Given *given;
    Segment *root;
    Call *call;
    GraphCall *c;
    int i, j, n, status = run_planned(p), has_run = 0;
    if (status != DONE)
        return status;
    for (i = 0; i < code->n_inputs; i++)
        inputs[i] = input_of(p, i);
    values = values_to_give(p, code->n_inputs, inputs, &n);
    if (values == NULL)
        return DECLINED;
    given = (Given *)alloca((size_t)(n + 1) * sizeof(Given));
    for (i = 0; i < n; i++)
        give_operand(p, &given[i], values[i]);
    root = root_for(tree, given);
    if (root == NULL) {
        root = plan_graph_run(p, tree, given, outputs, &status);
        if (root == NULL)
            return status;
        has_run = 1;
    } else {
        root->last_used = tree->clock;
        if (refer_to(p, root) != DONE)
            return RAISED;
        for (j = 0; j < code->n_outputs; j++) {
            const Operand *x = root->results[j].operand;
            outputs[j] = new_output_apart(p, j, x->type, x->itemsize, x->ndim, x->shape, NULL);
            if (outputs[j] == NULL)
                return no_memory();
        }
    }
    call = new_call(p, run_graph, "graph", sizeof(GraphCall));
    if (call == NULL)
        return no_memory();
    c = (GraphCall *)call->params;
    c->tree = tree;
    c->root = root;
    c->outputs = (Place *)pool_new(&p->pool, (size_t)code->n_outputs * sizeof(Place));
    if (c->outputs == NULL || !place_values(p, &c->inputs, n, values))
        return no_memory();
    for (j = 0; j < code->n_outputs; j++)
        c->outputs[j] = placed(outputs[j]);
    call->work = root->work;
    call->nanoseconds = root->nanoseconds + NANOSECONDS_OF_CALL;
    call->needs_gil = root->has_objects;
    call->is_independent = !root->has_python;
    n = read_parts(code->n_inputs, (const Operand *const *)inputs, values);
    status = set_operands(p, call, n, values, code->n_outputs, (const Operand **)outputs);
    if (has_run)
        p->n_run = p->n_calls;
    for (j = 0; status == DONE && j < code->n_outputs; j++)
        status = give_output(p, j, outputs[j]);
    return status;
}

#endif
