/* The plan functions of ops on the arrays of sparse matrices. */
#ifndef SYMCOMP_SPARSE_PLANS_H
#define SYMCOMP_SPARSE_PLANS_H

#include "sparse_blocks.h"
#include "sparse_places.h"
#include "sparse_slices.h"

static int plan_sparse(Planner *p, const void *given)
{
    const SparseState *state = (const SparseState *)p->saved;
    SparsePlan s;
    memset(&s, 0, sizeof(s));
    s.p = p;
    s.spec = (const SparseSpec *)given;
    s.index_type = s.type = -1;
    switch (s.spec->what) {
    case SPARSE_DOT:
    case SPARSE_USMM: return plan_sparse_dot(&s);
    case SPARSE_SAMPLED: return plan_sampled(&s);
    case SPARSE_PRODUCT: return plan_sparse_product(&s, state);
    case SPARSE_PRODUCT_AT: return plan_multiply_at(&s);
    case SPARSE_COMBINE: return plan_combine(&s, state);
    case SPARSE_TRANSPOSE: return plan_transpose_sparse(&s);
    case SPARSE_LOOKUP: return plan_look_up(&s);
    case SPARSE_LOOKUP_PAIRS: return plan_look_up_pairs(&s);
    case SPARSE_GATHER: return plan_gather_sparse(&s);
    case SPARSE_SCATTER:
    case SPARSE_SCATTER_ADD: return plan_scatter_sparse(&s);
    case SPARSE_ROWS: return plan_number_rows(&s);
    case SPARSE_POINTERS: return plan_count_rows(&s);
    case SPARSE_LARGEST: return plan_largest(&s);
    case SPARSE_SEGMENTS: return plan_segments(&s);
    case SPARSE_DROP_ZEROS: return plan_drop_zeros(&s, state);
    case SPARSE_TAKE: return plan_take_rows(&s, state);
    case SPARSE_CANONICAL: return plan_canonical(&s, state);
    case SPARSE_SAME_LENGTH: return plan_same_length(&s);
    case SPARSE_CROP: return plan_crop(&s, state);
    case SPARSE_JOIN: return plan_join_sparse(&s);
    case SPARSE_PUT: return plan_put(&s, state);
    case SPARSE_TRIPLETS: return plan_triplets(&s, state);
    case SPARSE_NONZERO: return plan_nonzero_entries(&s, state);
    case SPARSE_GATHER_FILL: return plan_gather_fill(&s);
    case SPARSE_BLOCK_DOT: return plan_block_dot(&s);
    case SPARSE_SAMPLED_BLOCKS: return plan_sampled_blocks(&s);
    case SPARSE_BLOCKS_AS_ROWS: return plan_blocks_as_rows(&s);
    case SPARSE_ROWS_AS_BLOCKS: return plan_rows_as_blocks(&s, state);
    case SPARSE_IN_RANGE: return plan_in_range(&s);
    default: return DECLINED;
    }
}

#endif
