/* The memory of planners, which one that ends leaves to later ones. */
#ifndef SYMCOMP_PLANNERS_H
#define SYMCOMP_PLANNERS_H

#include <stddef.h>
#include "tree.h"

/* A planner with more entries than this gives its memory back. */
enum { MOST_SPARE_ENTRIES = 1024, MOST_SPARE = 4 };

static uint64_t n_serials = 0; /* so far */
/* Planners that ended, the last one first; the GIL protects them. */
static Planner *spare_planners[MOST_SPARE];
static int n_spare = 0;

/* A number that no operand has as ``guarded_by``. */
static inline uint64_t new_serial(void)
{
    return ++n_serials;
}

static void free_planner(Planner *p)
{
    if (p == NULL)
        return;
    drop_frame_memory(p->frame);
    free(p->of_slot);
    free(p->storages);
    free(p->calls);
    free(p->marks);
    free(p->bindings);
    free(p->users);
    free(p->block);
    free(p->scratch);
    free(p->nested);
    pool_free(&p->pool);
    pool_free(&p->small_blocks);
    free(p);
}

/* Make room for about as many entries as a program has; 0 if there is no memory. */
static int reserve(Planner *p, const Code *code)
{
    const int values = code->n_slots + 16, calls = code->n_instructions + 16;
#define RESERVE(field, capacity, wanted, type)                                                     \
    (p->capacity > 0 || enlarge((void **)&p->field, wanted, &p->capacity, sizeof(type)))
    return RESERVE(calls, call_capacity, calls, Call) &&
           RESERVE(marks, mark_capacity, calls, Mark) &&
           RESERVE(bindings, binding_capacity, 2 * values, Binding);
#undef RESERVE
}

static int reserve_frame(Planner *p, const Code *code)
{
    if (p->frame == NULL)
        p->frame = blank_frame(1);
    return p->frame != NULL &&
           (p->storage_capacity > 0 || make_room_for_storages(p, code->n_slots + 16)) &&
           (code->n_slots < p->slot_capacity || enlarge((void **)&p->of_slot, code->n_slots + 16,
                                                        &p->slot_capacity, sizeof(Operand *)));
}

/* Plan in the memory that the tree has reserved. */
static void take_reserved(Planner *p, Tree *tree)
{
    p->own = p->pool;
    p->pool = tree->reserved;
    p->uses_reserved = 1;
    memset(&tree->reserved, 0, sizeof(Pool));
}

/* Give it back, unless a segment has taken it over. */
static void give_back_reserved(Planner *p)
{
    pool_reset(&p->pool);
    p->tree->reserved = p->pool;
    p->pool = p->own;
}

/* A planner for a run of a tree's program; NULL: an exception. With the GIL. */
static Planner *new_planner(Tree *tree, Runner *runner)
{
    const Code *code = tree->code;
    Planner *p = n_spare > 0 ? spare_planners[--n_spare] : NULL;
    if (p == NULL)
        p = (Planner *)calloc(1, sizeof(Planner));
    if (p == NULL || !reserve(p, code) || !reserve_frame(p, code)) {
        free_planner(p);
        no_memory();
        return NULL;
    }
    memset(p->of_slot, 0, ((size_t)code->n_slots + 1) * sizeof(Operand *));
    p->code = code;
    p->tree = tree;
    p->counts = tree->counts;
    p->runner = p->frame->runner = runner;
    p->serial = new_serial();
    if (tree->reserved.first != NULL)
        take_reserved(p, tree);
    return p;
}

/* Let go of all that was planned and not kept; with the GIL. */
static void drop_planner(Planner *p)
{
    Frame *frame = p->frame;
    int i;
    for (i = 0; i < p->n_nested; i++)
        release_segment(p->nested[i]);
    drop_objects(frame, p->storages, p->first_storage, p->n_storages);
    for (i = p->first_storage; i < frame->n_storages; i++)
        if (p->block[i] != NULL)
            free(p->block[i]);
    if (p->uses_reserved)
        give_back_reserved(p);
    if (n_spare == MOST_SPARE || p->storage_capacity > MOST_SPARE_ENTRIES ||
        p->binding_capacity > MOST_SPARE_ENTRIES || p->call_capacity > MOST_SPARE_ENTRIES ||
        p->slot_capacity > MOST_SPARE_ENTRIES) {
        free_planner(p);
        return;
    }
    clear_frame(frame);
    pool_reset(&p->pool);
    pool_reset(&p->small_blocks);
    set_to_zero(p, offsetof(Planner, frame));
    spare_planners[n_spare++] = p;
}

#endif
