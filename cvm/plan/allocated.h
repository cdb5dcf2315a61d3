/* The bytes that runs of kept segments allocate: arenas, arrays, rows that grow and copies of results. Other memory that a
   call allocates and frees itself is not counted, nor that of Python's calls. */
#ifndef SYMCOMP_ALLOCATED_H
#define SYMCOMP_ALLOCATED_H

#include "segments.h"

static int64_t bytes_of_steps(Segment *s);

static int64_t bytes_of_copy(const Operand *x)
{
    return result_kind(x) == BY_COPY ? x->size * x->itemsize : 0;
}

/* The copies that callers get of values in the arena. */
static int64_t bytes_of_copies(const Segment *s)
{
    int64_t bytes = 0;
    int i, j;
    for (j = 0; j < s->code->n_outputs; j++) {
        const Operand *x = s->results[j].operand;
        if (x->storage->kind != GROUP)
            bytes += bytes_of_copy(x);
        else
            for (i = 0; i < x->storage->group->n; i++)
                bytes += bytes_of_copy(x->storage->group->parts[i]);
    }
    return bytes;
}

/* The most bytes that the arrays of a segment take at once, if the run ends in it. */
static int64_t most_bytes_of_arrays(const Segment *s)
{
    const int64_t most = peak_of_arrays(s);
    const int64_t end = s->code->is_nested ? 0 : bytes_of_arrays(s, s->n_calls) + bytes_of_copies(s);
    return end > most ? end : most;
}

/* The memory of the first n segments of other programs that calls run, each counted once; -1: there is no memory
   to know. */
static int64_t bytes_of_nested(const Segment *s, int n)
{
    int64_t total = 0;
    int i, k;
    for (i = 0; i < n; i++) {
        int64_t bytes;
        for (k = 0; s->nested[k] != s->nested[i]; k++)
            ;
        bytes = k < i ? 0 : bytes_of_steps(s->nested[i]);
        if (bytes < 0)
            return -1;
        total += bytes;
    }
    return total;
}

/* The same of a nested program from a segment on, and of all that follow its guards: each of its runs may take
   another way, and their arenas are kept for the next one. */
static int64_t bytes_of_steps(Segment *s)
{
    int64_t total, bytes;
    int i;
    if (!s->is_ready && !make_ready(s))
        return -1;
    total = bytes_of_nested(s, s->n_nested);
    if (total < 0)
        return -1;
    total += s->arena_bytes + most_bytes_of_arrays(s);
    for (i = 0; i < s->n_exits; i++) {
        bytes = bytes_of_steps(s->exits[i]);
        if (bytes < 0)
            return -1;
        total += bytes;
    }
    return total;
}

/* The most bytes of a run from a segment to the end of the program, by the kept way that takes most; ``before``
   that are allocated already. -1: there is no memory to know. */
static int64_t bytes_of_way(Segment *s, int64_t before)
{
    int64_t most, bytes;
    int i;
    if (!s->is_ready && !make_ready(s))
        return -1;
    before += s->arena_bytes;
    most = bytes_of_nested(s, s->n_nested);
    if (most < 0)
        return -1;
    most += before + most_bytes_of_arrays(s);
    for (i = 0; i < s->n_exits; i++) {
        Segment *side = s->exits[i];
        const int n_nested = s->marks[mark_of_call(s, side->guard)].n_nested;
        bytes = bytes_of_nested(s, n_nested);
        if (bytes >= 0)
            bytes = bytes_of_way(side, before + bytes + bytes_of_arrays(s, side->guard));
        if (bytes < 0)
            return -1;
        most = bytes > most ? bytes : most;
    }
    return most;
}

/* The bytes that a run of a program allocates; -1: an exception. */
static int64_t allocated_bytes(Segment *root)
{
    const int64_t bytes = bytes_of_way(root, 0);
    if (bytes < 0)
        no_memory();
    return bytes;
}

#endif
