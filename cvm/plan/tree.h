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
    uint64_t keys[MOST_ROOTS];          /* of their layouts */
    Segment *retired;       /* forgotten, but maybe still run; linked by their parents */
    int n_roots, n_segments, most_segments;
    int active;             /* runs under way */
    int keeps_all;          /* every value is looked at after a run: no segment is kept */
    int64_t clock;          /* runs so far */
    int64_t planned;        /* of these, runs in which something was planned */
    int64_t reasons[N_REASONS];
    int64_t not_kept;       /* of these, runs whose plan was not kept: calls were alike too seldom */
    int64_t misses;         /* of these, by how many more there were of late than of kept plans */
    int64_t unkept, interval;   /* plans since the last that was kept; how many that are, at most */
    Counts *counts;         /* of a profile; NULL: none */
} Tree;

#endif
