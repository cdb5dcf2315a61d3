/* The check of indices, by AVX2 where the processor has it. Products gain nothing from vectors that gather:
   processors whose microcode keeps data of others apart do that slowly. */
#ifndef SYMCOMP_SPARSE_VECTORS_H
#define SYMCOMP_SPARSE_VECTORS_H

#include <stdint.h>

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

#if defined(__x86_64__) && defined(__GNUC__)
#define HAS_SPARSE_VECTORS 1

__attribute__((target("avx2"), optimize("O3"))) static IndexFacts
index_facts_avx2(const int32_t *v, int64_t n, int32_t limit)
{
    INDEX_FACTS_LOOP
}

#else
#define HAS_SPARSE_VECTORS 0
#endif

static IndexFacts index_facts(const int32_t *v, int64_t n, int32_t limit)
{
#if HAS_SPARSE_VECTORS
    if (__builtin_cpu_supports("avx2"))
        return index_facts_avx2(v, n, limit);
#endif
    return index_facts_plain(v, n, limit);
}

#endif
