/* The check of indices, by AVX2 where the processor has it. */
#ifndef SYMCOMP_SPARSE_VECTORS_H
#define SYMCOMP_SPARSE_VECTORS_H

#include "sparse.h"

/* Properties of indices that lie next to each other. */
typedef struct {
    int32_t has_negative;   /* the sign bit of all of them, or-ed */
    int32_t has_large;      /* whether one is at least the limit */
    int64_t falls;          /* how many are not greater than the one before; of the first it is not asked */
} IndexFacts;

#define INDEX_FACTS_LOOP                                                                           \
    int32_t negative = v[0], large = v[0] >= limit;                                                \
    int64_t first, falls = 0;                                                                      \
    for (first = 1; first < n; first += 1 << 16) {                                                 \
        const int64_t end = n - first < 1 << 16 ? n : first + (1 << 16);                           \
        int32_t found = 0;                                                                         \
        int64_t k;                                                                                 \
        for (k = first; k < end; k++) {                                                            \
            negative |= v[k];                                                                      \
            large |= v[k] >= limit;                                                                \
            found += v[k] <= v[k - 1];                                                             \
        }                                                                                          \
        falls += found;                                                                            \
    }                                                                                              \
    return (IndexFacts){negative < 0, large, falls};

static IndexFacts index_facts_plain(const int32_t *v, int64_t n, int32_t limit)
{
    INDEX_FACTS_LOOP
}

#if HAS_SPARSE_VECTORS
__attribute__((target("avx2"), optimize("O3"))) static IndexFacts
index_facts_avx2(const int32_t *v, int64_t n, int32_t limit)
{
    INDEX_FACTS_LOOP
}
#endif

static IndexFacts index_facts(const int32_t *v, int64_t n, int32_t limit)
{
#if HAS_SPARSE_VECTORS
    if (HAS_AVX2)
        return index_facts_avx2(v, n, limit);
#endif
    return index_facts_plain(v, n, limit);
}

#endif
