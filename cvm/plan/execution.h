/* Execution: a program is planned where no segment is kept for the layouts or outcomes at hand, and
   its segments are run where they are. */
#ifndef SYMCOMP_EXECUTION_H
#define SYMCOMP_EXECUTION_H

#include "planners.h"

/* Implemented where Python objects are known. */
static int plan_python(Planner *p);                 /* an instruction as a call of Python */
static int collect_results(Planner *p, const Segment *s, Frame *frame, PyObject **results);
static void blame(const Planner *p);                /* add the failed instruction to the
                                                       exception */
static void blame_call(const Segment *s, int call, const Frame *frame);

/* ---- inputs and constants */

static Operand *add_object(Planner *p, StorageKind kind, PyObject *object)
{
    Storage *s = new_storage(p, kind, 0);
    Operand *x = s == NULL ? NULL : new_operand(p, s, 0, -1, 0, 0, NULL, NULL);
    if (x == NULL)
        return NULL;
    s->object = kind == CONSTANT ? object : NULL;
    p->frame->object[s->index] = object;
    return x;
}

static int plan_constants(Planner *p)
{
    int i;
    for (i = 0; i < p->code->n_constants; i++) {
        PyObject *value = p->code->constants[i];
        Operand *x;
        if (PyArray_CheckExact(value) && PyArray_NDIM((PyArrayObject *)value) <= MOST_AXES) {
            PyArrayObject *array = (PyArrayObject *)value;
            Storage *s = new_storage(p, CONSTANT, PyArray_NBYTES(array));
            x = s == NULL ? NULL
                          : new_operand(p, s, 0, PyArray_TYPE(array), (int)PyArray_ITEMSIZE(array),
                                        PyArray_NDIM(array), (int64_t *)PyArray_DIMS(array),
                                        (int64_t *)PyArray_STRIDES(array));
            if (x != NULL) {
                if (!PyArray_ISBEHAVED_RO(array))
                    x->flags &= ~BEHAVED;
                x->flags &= ~WRITEABLE;
                s->address = PyArray_BYTES(array);
                s->object = value;
                x->flags |= WHOLE;
                p->frame->address[s->index] = s->address;
                p->frame->object[s->index] = value;
            }
        } else {
            x = add_object(p, CONSTANT, value);
        }
        if (x == NULL)
            return no_memory();
        if (bind_slot(p, p->code->constant_slots[i], x) != DONE)
            return RAISED;
    }
    return DONE;
}

/* An input as it is given: an address and its layout, or an object. The parts of groups among the inputs follow
   the inputs. */
typedef struct {
    char *address;
    PyObject *object;       /* NULL where there is no array of NumPy */
    Layout layout;          /* of type -1: no array */
} Given;

/* The operand of an input; of a group, until its parts are there, one without them. NULL: no memory. */
static Operand *plan_input(Planner *p, const Given *given)
{
    const Layout *l = &given->layout;
    Storage *s;
    Operand *x;
    if (l->type < 0)
        return add_object(p, l->type == TYPE_OF_GROUP ? GROUP : INPUT, given->object);
    s = new_storage(p, INPUT, 0);
    x = s == NULL ? NULL : new_operand(p, s, 0, l->type, l->itemsize, l->ndim, l->shape, l->strides);
    if (x == NULL)
        return NULL;
    x->flags = (x->flags & ~(BEHAVED | WRITEABLE)) | (l->flags & (BEHAVED | WRITEABLE));
    /* The caller guarantees that arrays to write into overlap no others. */
    x->flags |= l->flags & WRITEABLE ? WHOLE | ALONE : WHOLE;
    p->frame->address[s->index] = given->address;
    p->frame->object[s->index] = given->object;
    return x;
}

/* The parts of a group that is an input. */
static int plan_group_input(Planner *p, Storage *s, const Layout *l, const Given *parts)
{
    Group *group = (Group *)pool_new(&p->pool, sizeof(Group));
    int k;
    if (group == NULL)
        return no_memory();
    group->make = l->make;
    group->n = l->ndim;
    for (k = 0; k < group->n; k++) {
        group->parts[k] = plan_input(p, &parts[k]);
        if (group->parts[k] == NULL)
            return no_memory();
        p->users[group->parts[k]->storage->index]++;
    }
    s->group = group;
    return DONE;
}

static int plan_inputs(Planner *p, const Given *given)
{
    const Code *code = p->code;
    const Given *parts = given + code->n_inputs;
    int i;
    for (i = 0; i < code->n_inputs; i++) {
        Operand *x = plan_input(p, &given[i]);
        if (x == NULL)
            return no_memory();
        x->storage->input = i;
        if (bind_slot(p, code->input_slots[i], x) != DONE)
            return RAISED;
    }
    for (i = 0; i < code->n_inputs; i++) {
        const Layout *l = &given[i].layout;
        if (l->type != TYPE_OF_GROUP)
            continue;
        if (plan_group_input(p, p->of_slot[code->input_slots[i]]->storage, l, parts) != DONE)
            return RAISED;
        parts += l->ndim;
    }
    return DONE;
}

/* ---- instructions */

/* Compute once and for all what depends on constants alone. */
static int fold_constants(Planner *p, const Mark *mark)
{
    const Instruction *instruction = p->instruction;
    int i, j;
    for (i = 0; i < instruction->n_inputs; i++) {
        const Operand *x = input_of(p, i);
        if (x != NULL && !is_constant(x))
            return DONE;
    }
    for (i = mark->n_calls; i < p->n_calls; i++)
        if (p->calls[i].is_guard)
            return DONE;
    for (j = 0; j < instruction->n_outputs; j++) {
        const Operand *z = p->of_slot[instruction->outputs[j]];
        if (z->type < 0 || (!is_constant(z) && (z->storage->index < mark->n_storages ||
                                                z->storage->kind == LATE ||
                                                z->storage->bytes > MOST_CONSTANT_BYTES)))
            return DONE;
    }
    for (j = 0; j < instruction->n_outputs; j++) {
        Storage *s = p->of_slot[instruction->outputs[j]]->storage;
        char *kept;
        if (s->kind == CONSTANT)
            continue;
        kept = (char *)pool_copy(&p->pool, p->frame->address[s->index], (size_t)s->bytes);
        if (kept == NULL)
            return no_memory();
        if (p->block[s->index] != NULL) {
            free(p->block[s->index]);
            p->block[s->index] = NULL;
            p->bytes -= s->bytes;
        }
        Py_CLEAR(p->frame->object[s->index]);
        s->kind = CONSTANT;
        s->object = NULL;
        s->address = p->frame->address[s->index] = kept;
    }
    p->n_calls = p->n_run = mark->n_calls;
    return DONE;
}

/* Undo the plan of an instruction that cannot be done natively. */
static int roll_back(Planner *p, const Mark *mark)
{
    const Instruction *instruction = p->instruction;
    int j;
    p->n_calls = p->n_run = mark->n_calls;
    for (j = 0; j < instruction->n_outputs; j++)
        if (p->of_slot[instruction->outputs[j]] != NULL &&
            bind_slot(p, instruction->outputs[j], NULL) != DONE)
            return RAISED;
    p->n_bindings = mark->n_bindings;
    p->saved = NULL;
    p->serial = new_serial(); /* guards of the instruction are gone */
    return DONE;
}

/* An instruction by its native calls; DECLINED if it cannot be done so. */
static int plan_natively(Planner *p, const Mark *mark)
{
    int status;
    if (p->instruction->plan == NULL)
        return DECLINED;
    status = p->instruction->plan(p, p->instruction->spec);
    if (status == DONE)
        status = run_planned(p);
    drop_scratch(p);
    if (status == DONE)
        return fold_constants(p, mark);
    if (status == RAISED)
        return RAISED;
    return roll_back(p, mark) == DONE ? DECLINED : RAISED;
}

static int plan_instruction(Planner *p, const Mark *mark)
{
    const int status = p->in_python ? DECLINED : plan_natively(p, mark);
    return status == DECLINED ? plan_python(p) : status;
}

static int plan_move(Planner *p)
{
    int i;
    for (i = 0; i < p->instruction->n_inputs; i++)
        if (give_output(p, i, input_of(p, i)) != DONE)
            return RAISED;
    return DONE;
}

/* Go on in the branch that a condition leads to. */
static int plan_branch(Planner *p, int *following)
{
    int truth, status = guarded_truth(p, input_of(p, 0), &truth);
    if (status == DECLINED)
        PyErr_SetString(PyExc_TypeError, "ifelse: the condition is not one number");
    if (status != DONE)
        return RAISED;
    if (!truth)
        *following = p->instruction->target;
    return DONE;
}

static int drop_slots(Planner *p)
{
    int i;
    for (i = 0; i < p->instruction->n_frees; i++)
        if (p->of_slot[p->instruction->frees[i]] != NULL &&
            bind_slot(p, p->instruction->frees[i], NULL) != DONE)
            return RAISED;
    return DONE;
}

/* Count a run that is planned and calls Python, once. */
static void count_python(Planner *p)
{
    if (p->counts != NULL && !p->has_called_python)
        p->counts->planned_in_python++;
    p->has_called_python = 1;
}

/* Count an instruction that was planned and run. */
static void count_planned(Planner *p, int64_t began, int in_python, int is_done)
{
    const Instruction *instruction = p->instruction;
    const int n = instruction->n_inputs + instruction->n_outputs;
    const Operand **operands = (const Operand **)alloca(((size_t)n + 1) * sizeof(Operand *));
    const int64_t duration = nanoseconds() - began - clock_latency;
    SeenShapes *seen;
    int i;
    p->counts->planned[p->position]++;
    p->counts->planned_python[p->position] += in_python;
    if (in_python)
        count_python(p);
    if (!is_done)
        return;
    for (i = 0; i < instruction->n_inputs; i++)
        operands[i] = input_of(p, i);
    for (; i < n; i++)
        operands[i] = p->of_slot[instruction->outputs[i - instruction->n_inputs]];
    seen = seen_shapes(p->counts, p->position, operands, instruction->n_inputs, instruction->n_outputs);
    if (seen != NULL)
        add_time(&seen->times, duration > 0 ? (double)duration : 0);
    log_event(&p->counts->log, began, duration > 0 ? duration : 0, p->position,
              PyThread_get_thread_ident());
}

/* Plan and run the program from an instruction to its end. */
static int plan_from(Planner *p, int position)
{
    while (position < p->code->n_instructions) {
        int status = DONE, following = position + 1;
        int64_t began = 0, python_calls = p->runner->python_calls;
        const Mark mark = state_of(p, position);
        p->position = position;
        p->instruction = &p->code->instructions[position];
        if (add_mark(p, &mark) != DONE)
            return RAISED;
        if (p->counts != NULL)
            began = nanoseconds();
        switch (p->instruction->opcode) {
        case CALL:
        case COPY:
            status = plan_instruction(p, &mark);
            break;
        case MOVE:
            status = plan_move(p);
            break;
        case BRANCH:
            status = plan_branch(p, &following);
            break;
        case SKIP_IF_SET:
            if (input_of(p, 0) != NULL)
                following = p->instruction->target;
            break;
        case JUMP:
            following = p->instruction->target;
        }
        p->saved = NULL;
        p->in_python = 0;
        if (p->counts != NULL)
            count_planned(p, began, p->runner->python_calls != python_calls, status == DONE);
        if (status != DONE) {
            blame(p);
            return RAISED;
        }
        if (drop_slots(p) != DONE)
            return RAISED;
        position = following;
    }
    return DONE;
}

/* Begin to plan where a segment was left: at the instruction of its mark. */
static int resume(Planner *p, const Segment *s, int mark, Frame *frame)
{
    const Mark *m = &s->marks[mark];
    int i;
    p->parent = s;
    if (s->runs_python)
        count_python(p);
    p->first_call = m->n_calls;
    p->first_storage = m->n_storages;
    for (i = 0; i < m->n_storages; i++)
        if (new_storage(p, ARENA, 0) == NULL)
            return no_memory();
    for (i = 0; i < m->n_storages; i++) {
        p->storages[i] = s->storages[i];
        p->frame->address[i] = frame->address[i];
        p->frame->object[i] = frame->object[i];
    }
    pool_reset(&p->pool);
    for (i = 0; i < m->n_bindings; i++)
        if (bind_slot(p, s->bindings[i].slot, s->bindings[i].operand) != DONE)
            return RAISED;
    for (i = 0; i < mark; i++) {
        if (!make_room((void **)&p->marks, i, &p->mark_capacity, sizeof(Mark)))
            return no_memory();
        p->marks[i] = s->marks[i];
        p->marks[i].n_calls = p->marks[i].n_nested = 0;
    }
    p->n_marks = p->first_mark = mark;
    p->saved = m->saved;
    p->in_python = m->in_python;
    p->frame->outer = frame;
    p->frame->first_own = m->n_storages;
    p->frame->provided = frame->provided;
    return plan_from(p, m->position);
}

#endif
