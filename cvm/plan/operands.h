/* The state of planning: operands, the storages that they lie in, and slots. */
#ifndef SYMCOMP_OPERANDS_H
#define SYMCOMP_OPERANDS_H

#include "plan.h"

/* Results of calls on constants and lengths are computed once, unless they have more bytes. */
enum { MOST_CONSTANT_BYTES = 4096 };
/* Arrays for Python from MEDIUM_ARRAY bytes on are made when they are needed, and dropped at once. Results from
   LARGE_ARRAY on are made when they are needed, too. */
enum { MEDIUM_ARRAY = 1 << 16, LARGE_ARRAY = 1 << 20 };

/* Whether an array is made by a call, not when a run begins. */
static inline int is_made_late(const Code *code, StorageKind kind, int64_t bytes)
{
    return kind == ARRAY ? bytes >= MEDIUM_ARRAY
                         : kind == RESULT && bytes >= LARGE_ARRAY && !code->is_nested;
}

/* While a program is planned, values of at most as many bytes have memory that is not given back before the
   end. */
enum { SMALL_BLOCK = 64 };

struct Planner {
    /* The program and its progress. */
    const Code *code;
    Runner *runner;
    struct Tree *tree;      /* the tree of this program */
    struct Counts *counts;  /* of a profile; NULL: none */
    const Segment *parent;
    const Instruction *instruction;
    const void *saved;      /* the instruction goes on after a checkpoint, with what it found; or NULL */
    int in_python;          /* whether its call of Python saved it, not its native calls */
    int has_called_python;  /* whether the run has, as far as its profile has counted */
    int uses_reserved;      /* the pool is what the tree has reserved */
    int is_behind_gate;     /* updates are being written: nothing may fail any more */
    int position, first_call, first_storage, first_mark;
    int n_storages, n_calls, n_marks, n_bindings, n_run, n_scratch, n_nested;
    uint64_t serial;        /* no other planner has it, nor this one before an instruction was rolled back */
    int64_t bytes, peak;    /* of the blocks: now, and at most so far */
    /* Memory, which later planners use again. */
    Frame *frame;
    Pool pool, small_blocks;
    Pool own;               /* the planner's, set aside while the tree's reserved pool is used */
    Operand **of_slot;
    Storage **storages;
    Storage **scratch;      /* memory of the instruction while it runs */
    Call *calls;
    Mark *marks;
    Binding *bindings;
    Segment **nested;       /* segments that calls run; each is referred to */
    int *users;             /* of storages: how many slots, and late storages, need them */
    char **block;           /* of storages: memory of this run alone */
    int storage_capacity, call_capacity, mark_capacity, binding_capacity;
    int scratch_capacity, nested_capacity, slot_capacity;
};

/* Implemented where NumPy's arrays are known: make an array for a storage, and set the frame's object
   and address. */
static int make_array(Frame *frame, const Storage *storage);
static __attribute__((cold)) int no_memory(void)
{
    PyErr_SetString(PyExc_MemoryError, "no memory for a plan");
    return RAISED;
}

/* ---- operands */

/* In a loop over few axes: the C compiler does not prepare it for many. */
#define ONE_BY_ONE __asm__ volatile("")

static inline void set_order(Operand *x)
{
    int64_t c = x->itemsize, f = x->itemsize;
    int is_c = 1, is_f = 1, axis;
    for (axis = x->ndim - 1; axis >= 0; axis--) {
        ONE_BY_ONE;
        is_c &= x->shape[axis] == 1 || x->strides[axis] == c;
        c *= x->shape[axis];
    }
    for (axis = 0; axis < x->ndim; axis++) {
        ONE_BY_ONE;
        is_f &= x->shape[axis] == 1 || x->strides[axis] == f;
        f *= x->shape[axis];
    }
    if (x->size == 0)
        is_c = is_f = 1;
    x->flags &= ~(C_ORDER | F_ORDER);
    x->flags |= (is_c ? C_ORDER : 0) | (is_f ? F_ORDER : 0);
}

/* Make room for storages, in the planner and in its frame; 0 if there is no memory. */
static int make_room_for_storages(Planner *p, int wanted)
{
    Frame *f = p->frame;
    int capacity;
    return enlarge((void **)&f->address, wanted, &capacity, sizeof(char *)) &&
           enlarge((void **)&f->object, wanted, &capacity, sizeof(PyObject *)) &&
           enlarge((void **)&p->users, wanted, &capacity, sizeof(int)) &&
           enlarge((void **)&p->block, wanted, &capacity, sizeof(char *)) &&
           enlarge((void **)&p->storages, wanted, &p->storage_capacity, sizeof(Storage *));
}

static Storage *new_storage(Planner *p, StorageKind kind, int64_t bytes)
{
    Storage *s = (Storage *)pool_take(&p->pool, sizeof(Storage));
    Frame *f = p->frame;
    const int n = p->n_storages;
    if (s == NULL || (n == p->storage_capacity && !make_room_for_storages(p, 2 * n + 16)))
        return NULL;
    set_to_zero(s, sizeof(Storage));
    s->index = n;
    s->kind = kind;
    s->bytes = bytes;
    s->input = s->result = -1;
    s->first = s->last = p->n_calls;
    p->storages[n] = s;
    p->users[n] = 0;
    p->block[n] = NULL;
    f->address[n] = NULL;
    f->object[n] = NULL;
    f->n_storages = p->n_storages = n + 1;
    return s;
}

static Operand *new_operand(Planner *p, Storage *storage, int64_t offset, int type, int64_t itemsize,
                            int ndim, const int64_t *shape, const int64_t *strides)
{
    Operand *x =
        (Operand *)pool_take(&p->pool, sizeof(Operand) + 2 * (size_t)ndim * sizeof(int64_t));
    int64_t *lengths = (int64_t *)(x + 1), size = 1;
    int axis, n_long = 0;
    if (x == NULL)
        return NULL;
    *x = (Operand){.type = type, .itemsize = (int)itemsize, .ndim = ndim, .flags = BEHAVED | WRITEABLE,
                   .storage = storage, .offset = offset, .shape = lengths, .strides = lengths + ndim};
    if (strides != NULL) {
        for (axis = 0; axis < ndim; axis++) {
            ONE_BY_ONE;
            size *= lengths[axis] = shape[axis];
            lengths[ndim + axis] = strides[axis];
        }
        x->size = size;
        set_order(x);
        return x;
    }
    for (axis = ndim - 1; axis >= 0; axis--) {
        const int64_t n = shape[axis];
        ONE_BY_ONE;
        lengths[axis] = n;
        lengths[ndim + axis] = itemsize;
        itemsize *= n ? n : 1;
        size *= n;
        n_long += n != 1;
    }
    x->size = size;
    x->flags |= n_long <= 1 || size == 0 ? C_ORDER | F_ORDER : C_ORDER;
    return x;
}

static inline char *data_of(const Planner *p, const Operand *x)
{
    return p->frame->address[x->storage->index] + x->offset;
}

/* Whether the content is the same in all runs that get here. */
static inline int is_constant(const Operand *x)
{
    return x->storage->kind == CONSTANT;
}

static inline int is_array(const Operand *x)
{
    return x != NULL && x->type >= 0;
}

/* Whether the elements can be read where they are, and the dtype is one that tensors have. */
static inline int is_plain(const Operand *x)
{
    return x != NULL && x->type >= 0 && x->flags & BEHAVED && x->itemsize <= 16;
}

/* The stretch of memory from the first to the last element. */
static void stretch_of(const Operand *x, int64_t *first, int64_t *last)
{
    int axis;
    *first = *last = x->offset;
    for (axis = 0; axis < x->ndim; axis++) {
        const int64_t reach = (x->shape[axis] - 1) * x->strides[axis];
        if (reach > 0)
            *last += reach;
        else
            *first += reach;
    }
    *last += x->itemsize;
}

static const Storage *root_of(const Storage *s)
{
    while (s->kind == LATE && s->base != NULL)
        s = s->base;
    return s;
}

/* Whether two operands may share memory. Arguments may overlap one another, too. */
static int may_overlap(const Operand *x, const Operand *y)
{
    int64_t first[2], last[2];
    const Storage *a = root_of(x->storage), *b = root_of(y->storage);
    if (x->size == 0 || y->size == 0)
        return 0;
    if (a != b)
        return a->kind == INPUT && b->kind == INPUT && !((x->flags | y->flags) & ALONE);
    if (x->storage != y->storage)
        return 1;
    stretch_of(x, &first[0], &last[0]);
    stretch_of(y, &first[1], &last[1]);
    return first[0] < last[1] && first[1] < last[0];
}

/* ---- slots, and how long storages are needed */

static int forget_object(Planner *p, const Storage *s);

static void drop_storage(Planner *p, Storage *s)
{
    if (--p->users[s->index] > 0)
        return;
    if (s->index >= p->first_storage) {
        if (p->frame->object[s->index] != NULL && s->kind != INPUT && s->kind != CONSTANT)
            forget_object(p, s);
        s->last = p->n_calls;
        if (p->block[s->index] != NULL) {
            free(p->block[s->index]);
            p->block[s->index] = NULL;
            p->bytes -= s->bytes;
        }
    }
    if (s->kind == LATE && s->base != NULL)
        drop_storage(p, s->base);
    if (s->kind == GROUP) {
        int i;
        for (i = 0; i < s->group->n; i++)
            drop_storage(p, s->group->parts[i]->storage);
    }
}

static int bind_slot(Planner *p, int slot, Operand *x)
{
    Operand *old = p->of_slot[slot];
    if (!make_room((void **)&p->bindings, p->n_bindings, &p->binding_capacity, sizeof(Binding)))
        return no_memory();
    p->bindings[p->n_bindings].slot = slot;
    p->bindings[p->n_bindings++].operand = x;
    if (x != NULL)
        p->users[x->storage->index]++;
    p->of_slot[slot] = x;
    if (old != NULL)
        drop_storage(p, old->storage);
    return DONE;
}

#endif
