/* Groups: values that are several operands, as a sparse matrix is its arrays. */
#ifndef SYMCOMP_GROUPS_H
#define SYMCOMP_GROUPS_H

#include "copies.h"

/* An operand that is a group of others, of which ``make`` makes an object. NULL: no memory. */
static Operand *new_group(Planner *p, PyObject *make, int n, Operand *const *parts)
{
    Group *group = (Group *)pool_new(&p->pool, sizeof(Group));
    Storage *s = group == NULL ? NULL : new_storage(p, GROUP, 0);
    int i;
    if (s == NULL)
        return NULL;
    group->make = make;
    group->n = n;
    for (i = 0; i < n; i++) {
        group->parts[i] = parts[i];
        p->users[parts[i]->storage->index]++;
    }
    s->group = group;
    return new_operand(p, s, 0, -1, 0, 0, NULL, NULL);
}

static inline const Group *group_of(const Operand *x)
{
    return x == NULL || x->storage->kind != GROUP ? NULL : x->storage->group;
}

/* Whether an operand in a storage of this run is not needed any more after the instruction. */
static int is_last_use(const Planner *p, const Storage *s)
{
    return s->index >= p->first_storage && p->users[s->index] == 1;
}

/* The copy of a group that is input 0, for output 0. Parts that are results of this run, and that nothing
   else needs, are taken over. NULL: no memory. */
static Operand *copied_group(Planner *p)
{
    const StorageKind kind = (StorageKind)p->code->makes_array[p->instruction->outputs[0]];
    const Operand *x = input_of(p, 0);
    const Group *group = group_of(x);
    int i, ends = 0;
    Operand *parts[MOST_IN_GROUP];
    for (i = 0; i < p->instruction->n_frees; i++)
        ends |= p->instruction->frees[i] == p->instruction->inputs[0];
    ends = ends && is_last_use(p, x->storage);
    for (i = 0; i < group->n; i++) {
        const Storage *s = group->parts[i]->storage;
        if (ends && s->kind == RESULT && is_last_use(p, s))
            parts[i] = group->parts[i];
        else
            parts[i] = new_copy(p, group->parts[i], kind == INPUT ? ARENA : kind);
        if (parts[i] == NULL)
            return NULL;
    }
    return new_group(p, group->make, group->n, parts);
}

/* List the operands that a call reads, groups as their parts; return their number. ``found`` has
   room for MOST_IN_GROUP of each. */
static int read_parts(int n, const Operand *const *reads, const Operand **found)
{
    int i, k, count = 0;
    for (i = 0; i < n; i++) {
        const Group *group = group_of(reads[i]);
        if (group == NULL)
            found[count++] = reads[i];
        else
            for (k = 0; k < group->n; k++)
                found[count++] = group->parts[k];
    }
    return count;
}

#endif
