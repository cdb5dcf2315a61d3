/* The interface of plans to the module: includes, and callbacks. */
#ifndef SYMCOMP_MACHINE_H
#define SYMCOMP_MACHINE_H

#include "trees.h"
#include "gate.h"

/* Set by the module: add the instruction to the exception that is raised, with a list of values
   of its inputs. */
static void (*add_blame)(PyObject *owner, int position, PyObject *values);

static void blame_inputs(const Code *code, Runner *runner, int position, Operand **of_slot,
                         const Frame *frame)
{
    const Instruction *instruction = &code->instructions[position];
    PyObject *type, *value, *trace, *values;
    int i;
    take_gil(runner);
    PyErr_Fetch(&type, &value, &trace);
    PyErr_NormalizeException(&type, &value, &trace);
    values = PyList_New(0);
    for (i = 0; values != NULL && i < instruction->n_inputs; i++) {
        const Operand *x = instruction->inputs[i] < 0 ? NULL : of_slot[instruction->inputs[i]];
        PyObject *shown;
        int lent;
        if (x == NULL) {
            Py_INCREF(Py_None);
            shown = Py_None;
        } else {
            shown = object_of(frame, x, &lent);
        }
        if (shown == NULL || PyList_Append(values, shown) < 0)
            Py_CLEAR(values);
        Py_XDECREF(shown);
    }
    PyErr_Clear();
    PyErr_Restore(type, value, trace);
    if (values != NULL)
        add_blame(code->owner, position, values);
    Py_XDECREF(values);
}

static void blame(const Planner *p)
{
    blame_inputs(p->code, p->runner, p->position, p->of_slot, p->frame);
}

static void blame_call(const Segment *s, int call, const Frame *frame)
{
    const Mark *mark = &s->marks[mark_of_call(s, call)];
    Operand **of_slot = (Operand **)calloc((size_t)s->code->n_slots + 1, sizeof(Operand *));
    int i;
    if (of_slot == NULL)
        return;
    for (i = 0; i < mark->n_bindings; i++)
        of_slot[s->bindings[i].slot] = s->bindings[i].operand;
    blame_inputs(s->code, frame->runner, s->calls[call].position, of_slot, frame);
    free(of_slot);
}

#endif
