/* Layouts of inputs, and of the parts of groups among them, as segments begin on them. */
#ifndef SYMCOMP_LAYOUTS_H
#define SYMCOMP_LAYOUTS_H

#include "execution.h"

static int same_layout(const Layout *kept, const Layout *given)
{
    int i;
    if (kept->type != given->type)
        return 0;
    if (given->type < 0)
        return given->type != TYPE_OF_GROUP || (kept->ndim == given->ndim && kept->make == given->make);
    if (kept->ndim != given->ndim || kept->flags != given->flags)
        return 0;
    for (i = 0; i < given->ndim; i++)
        if (kept->shape[i] != given->shape[i] || kept->strides[i] != given->strides[i])
            return 0;
    return 1;
}

/* Whether a segment begins on these layouts. Where those of all inputs are equal, there are as many parts. */
static int takes(const Segment *s, const Given *given)
{
    int i;
    for (i = 0; i < s->n_layouts; i++)
        if (!same_layout(&s->layouts[i], &given[i].layout))
            return 0;
    return 1;
}

/* Add a layout to a hash. */
static inline uint64_t mixed_layout(uint64_t key, const Layout *l)
{
    int axis;
    key = mixed(key, (uint64_t)l->type << 8 | (uint64_t)(l->type == -1 ? 0 : l->ndim));
    if (l->type == TYPE_OF_GROUP)
        key = mixed(key, (uint64_t)(uintptr_t)l->make);
    for (axis = 0; l->type >= 0 && axis < l->ndim; axis++)
        key = mixed(mixed(key, (uint64_t)l->shape[axis]), (uint64_t)l->strides[axis]);
    return key;
}

/* How many layouts are given: of n inputs, and of the parts of groups among them. */
static int count_given(const Given *given, int n)
{
    int i, count = n;
    for (i = 0; i < n; i++)
        count += given[i].layout.type == TYPE_OF_GROUP ? given[i].layout.ndim : 0;
    return count;
}

/* A number that is the same for the same layouts, and seldom for others. */
static uint64_t key_of_inputs(const Given *given, int n)
{
    const int count = count_given(given, n);
    uint64_t key = 1;
    int i;
    for (i = 0; i < count; i++)
        key = mixed_layout(key, &given[i].layout);
    return key;
}

/* The same number of the layouts that a segment begins on. */
static uint64_t key_of_root(const Segment *s)
{
    uint64_t key = 1;
    int i;
    for (i = 0; i < s->n_layouts; i++)
        key = mixed_layout(key, &s->layouts[i]);
    return key;
}

/* Keep a layout, whose numbers lie where planning has copied them. */
static void keep_layout(Layout *kept, const Layout *given, const Operand *x)
{
    *kept = *given;
    kept->shape = x->shape;
    kept->strides = x->strides;
}

/* Keep the layouts of the inputs. 0: there is no memory. */
static int keep_layouts(Segment *s, const Given *given)
{
    const Binding *inputs = s->bindings + s->code->n_constants; /* in the order of plan_inputs */
    const int n = s->code->n_inputs;
    int i, k, at = n;
    s->n_layouts = count_given(given, n);
    s->layouts = (Layout *)pool_take(&s->pool, (size_t)s->n_layouts * sizeof(Layout));
    if (s->layouts == NULL)
        return 0;
    for (i = 0; i < n; i++) {
        const Group *group = inputs[i].operand->storage->group;
        keep_layout(&s->layouts[i], &given[i].layout, inputs[i].operand);
        for (k = 0; group != NULL && k < group->n; k++, at++)
            keep_layout(&s->layouts[at], &given[at].layout, group->parts[k]);
    }
    return 1;
}

/* Make place for a root before all others. From now on the one that was there is found by its key. */
static void move_roots_on(Tree *tree)
{
    const size_t n = (size_t)tree->n_roots;
    tree->keys[0] = key_of_root(tree->roots[0]);
    memmove(tree->roots + 1, tree->roots, n * sizeof(Segment *));
    memmove(tree->keys + 1, tree->keys, n * sizeof(uint64_t));
}

#endif
