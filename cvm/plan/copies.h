/* Copies: elements of one operand set to, or added to, those of another. */
#ifndef SYMCOMP_COPIES_H
#define SYMCOMP_COPIES_H

#include "planner.h"
#include "../loops/moves.h"

typedef struct {
    Place to, from;
    struct axes axes;
    move_function *move;
} CopyCall;

static int run_copy(const void *params, Frame *frame)
{
    const CopyCall *c = (const CopyCall *)params;
    move_axes(&c->axes, c->move, data_at(frame, &c->to), data_at(frame, &c->from));
    return DONE;
}

/* Whether a dtype that is not NumPy's is bfloat16. */
static int is_bfloat16(int type)
{
    PyArray_Descr *dtype = PyTypeNum_ISUSERDEF(type) ? PyArray_DescrFromType(type) : NULL;
    const char *name = dtype == NULL ? "" : dtype->typeobj->tp_name, *dot = strrchr(name, '.');
    const int found = strcmp(dot == NULL ? name : dot + 1, "bfloat16") == 0;
    Py_XDECREF(dtype);
    return found;
}

/* NumPy's letter for the kind of a dtype, 'B' for bfloat16; 0 for one that tensors do not have. */
static char kind_of_type(int type)
{
    if (PyTypeNum_ISBOOL(type))
        return 'b';
    if (PyTypeNum_ISUNSIGNED(type))
        return 'u';
    if (PyTypeNum_ISSIGNED(type))
        return 'i';
    if (PyTypeNum_ISFLOAT(type))
        return 'f';
    if (is_bfloat16(type))
        return 'B';
    return PyTypeNum_ISCOMPLEX(type) ? 'c' : 0;
}

/* Emit: move ``from`` to a part of the storage of ``to`` of these axes. */
static int emit_move(Planner *p, const Operand *to, int64_t offset, int ndim, const int64_t *shape,
                     const int64_t *to_strides, const Operand *from, const int64_t *from_strides,
                     move_function *move, const char *name)
{
    Call *call = new_call(p, run_copy, name, sizeof(CopyCall));
    CopyCall *c;
    if (call == NULL)
        return no_memory();
    c = (CopyCall *)call->params;
    c->to = placed(to);
    c->to.offset += offset;
    c->from = placed(from);
    c->move = move;
    order_axes(&c->axes, ndim, shape, to_strides, from_strides);
    call->work = (double)c->axes.size;
    call->is_independent = 1;
    return set_operands(p, call, 1, &from, 1, &to);
}

/* Emit: all of ``to`` is set to ``from``, which has its shape. */
static int emit_copy(Planner *p, const Operand *to, const Operand *from)
{
    return emit_move(p, to, 0, to->ndim, to->shape, to->strides, from, from->strides,
                     function_that_sets(to->itemsize), "copy");
}

/* A copy in C order, in a storage of its own. NULL: no memory. */
static Operand *new_copy(Planner *p, const Operand *x, StorageKind kind)
{
    Operand *z = new_array_operand(p, kind, x->type, x->itemsize, x->ndim, x->shape, NULL);
    return z == NULL || emit_copy(p, z, x) != DONE ? NULL : z;
}

/* The steps of a copy without gaps, in the order of memory of ``x`` (NumPy's "K"). */
static void steps_in_order(const Operand *x, int64_t *strides)
{
    int order[MOST_AXES], i, at;
    int64_t step = x->itemsize;
    for (i = 0; i < x->ndim; i++) {
        for (at = i; at > 0 && without_sign(x->strides[order[at - 1]]) < without_sign(x->strides[i]);
             at--)
            order[at] = order[at - 1];
        order[at] = i;
    }
    for (i = x->ndim - 1; i >= 0; i--) {
        strides[order[i]] = step;
        step *= x->shape[order[i]] ? x->shape[order[i]] : 1;
    }
}

/* A copy in C order that is needed while the instruction runs. NULL: no memory. */
static Operand *scratch_copy(Planner *p, const Operand *x)
{
    Operand *z = new_scratch(p, x->type, x->itemsize, x->ndim, x->shape);
    return z == NULL || emit_copy(p, z, x) != DONE ? NULL : z;
}

/* The operand itself if it lies in C order, else a copy. */
static inline Operand *in_c_order(Planner *p, Operand *x)
{
    return x->flags & C_ORDER ? x : scratch_copy(p, x);
}

#endif
