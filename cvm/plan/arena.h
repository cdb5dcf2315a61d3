/* Where in the frame's arena each storage lies: no two that are needed at the same time overlap. */
#ifndef SYMCOMP_ARENA_H
#define SYMCOMP_ARENA_H

#include "plan.h"

enum { ARENA_ALIGNMENT = 64 };

static int64_t aligned_bytes(int64_t bytes)
{
    return (bytes + ARENA_ALIGNMENT - 1) / ARENA_ALIGNMENT * ARENA_ALIGNMENT;
}

/* The larger first; of equal ones that which is needed first. */
static int compare_storages(const void *first, const void *second)
{
    const Storage *a = *(Storage *const *)first, *b = *(Storage *const *)second;
    if (a->bytes != b->bytes)
        return a->bytes < b->bytes ? 1 : -1;
    return a->first != b->first ? (a->first > b->first) - (a->first < b->first)
                                : (a->index > b->index) - (a->index < b->index);
}

static inline int needed_together(const Storage *a, const Storage *b)
{
    return a->first < b->last && b->first < a->last;
}

/* The lowest offset at which ``s`` meets none of those before it that are needed with it, which are in
   the order of their offsets. */
static int64_t lowest_offset(Storage *const *by_offset, int n, const Storage *s)
{
    int64_t offset = 0;
    const int64_t bytes = aligned_bytes(s->bytes);
    int i;
    for (i = 0; i < n; i++) {
        const Storage *other = by_offset[i];
        if (!needed_together(s, other))
            continue;
        if (other->offset >= offset + bytes)
            break;
        if (other->offset + aligned_bytes(other->bytes) > offset)
            offset = other->offset + aligned_bytes(other->bytes);
    }
    return offset;
}

static void insert_by_offset(Storage **by_offset, int n, Storage *s)
{
    int at;
    for (at = n; at > 0 && by_offset[at - 1]->offset > s->offset; at--)
        by_offset[at] = by_offset[at - 1];
    by_offset[at] = s;
}

/* Give offsets to the storages of a segment that lie in the arena, large ones first (the greedy order
   of Pisarchyk and Lee, 2020); return how many bytes that takes, or -1 if there is no memory. */
static int64_t assign_offsets(Storage **storages, int n)
{
    Storage **by_size = (Storage **)malloc(2 * (size_t)(n > 0 ? n : 1) * sizeof(Storage *));
    Storage **by_offset = by_size + (n > 0 ? n : 1);
    int64_t total = 0;
    int count = 0, i;
    if (by_size == NULL)
        return -1;
    for (i = 0; i < n; i++)
        if (storages[i]->kind == ARENA && storages[i]->host == NULL)
            by_size[count++] = storages[i];
    qsort(by_size, (size_t)count, sizeof(Storage *), compare_storages);
    for (i = 0; i < count; i++) {
        Storage *s = by_size[i];
        s->offset = lowest_offset(by_offset, i, s);
        insert_by_offset(by_offset, i, s);
        if (s->offset + aligned_bytes(s->bytes) > total)
            total = s->offset + aligned_bytes(s->bytes);
    }
    free(by_size);
    return total;
}

#endif
