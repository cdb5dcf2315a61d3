/* A tree of segments: all that is kept of the runs of one program in one place. */
#ifndef SYMCOMP_TREE_H
#define SYMCOMP_TREE_H

#include "counts.h"

enum { MOST_ROOTS = 64, FEW_MISSES = 8, MOST_UNKEPT = 64 };

/* Why a run planned: no plan for the layouts of its inputs; a guard that no segment follows; a call that
   cannot do what it did before. */
typedef enum { NEW_LAYOUTS, NEW_OUTCOME, CALL_DECLINED, N_REASONS } Reason;

/* The segments of one program in one place: called by users, or at an instruction of another. */
typedef struct Tree {
    const Code *code;
    Segment *roots[MOST_ROOTS];         /* the latest first */
    uint64_t keys[MOST_ROOTS];          /* of their layouts; that of the first is not set */
    Segment *retired;       /* forgotten, but maybe still run */
    Segment *expiring;      /* forgotten in the epoch before: runs that began in this one are not in them */
    int epoch;              /* 0 or 1 */
    int active[2];          /* runs under way, by the epoch in which they began; of nested programs those alone
                               that are in segments after guards */
    int n_roots, n_segments, most_segments;
    int keeps_all;          /* every value is looked at after a run: no segment is kept */
    int64_t clock;          /* runs so far */
    int64_t planned;        /* of these, runs in which something was planned */
    int64_t reasons[N_REASONS];
    int64_t not_kept;       /* of these, runs whose plan was not kept: calls were alike too seldom */
    int64_t misses;         /* of these, by how many more there were of late than of kept plans */
    int64_t unkept, interval;   /* plans since the last that was kept; how many that are, at most */
    Counts *counts;         /* of a profile; NULL: none */
    Pool reserved;          /* for the first plan that is kept */
} Tree;

enum { BYTES_OF_PLAN = 1024, BYTES_OF_INSTRUCTION = 512 };

/* Set memory aside for the first plan when a program is compiled, and write to it: the first call need not
   ask the system for it. Plans get as much as most of them need; without memory, none. */
static void reserve_for_plan(Tree *tree)
{
    const size_t wanted =
        BYTES_OF_PLAN + BYTES_OF_INSTRUCTION * (size_t)tree->code->n_instructions;
    if (tree->keeps_all || tree->most_segments == 0)
        return;
    if (add_chunk(&tree->reserved, wanted < LARGEST_CHUNK ? wanted : LARGEST_CHUNK))
        memset(tree->reserved.first + 1, 0, tree->reserved.first->size);
}

#endif
