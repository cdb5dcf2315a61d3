/* Included for each dtype T of entries and INDEX of indices (sparse_dtypes.h). */

/* Blocks of columns of a dense factor that are worked on at once, of 256, 128 and 32 bytes: their sums
   stay in registers, or near. */
#define WIDE ((int)(256 / sizeof(T)))

/* 0: an index lies outside of the shape. */
static inline int NAME(dot_block)(const SparseWork *w, int64_t begin, int64_t end, int64_t last,
                                  int64_t at, int width, T *sums)
{
    const T *data = (const T *)w->x.data, *dense = (const T *)w->dense + at;
    const INDEX *indices = (const INDEX *)w->x.indices;
    int64_t k;
    int c;
    for (c = 0; c < width; c++)
        sums[c] = ZERO;
    for (k = begin; k < end; k++) {
        const T entry = data[k];
        const T *row;
        if ((uint64_t)indices[k] >= (uint64_t)w->x.columns)
            return 0;
        row = dense + indices[k] * w->columns;
        if (width > 1)
            fetch(dense + indices[k + FETCHED_AHEAD < last ? k + FETCHED_AHEAD : last] * w->columns,
                  width * (int)sizeof(T));
        for (c = 0; c < width; c++)
            sums[c] = PLUS(sums[c], TIMES(entry, row[c]));
    }
    return 1;
}

/* z = base + alpha sums. */
static inline void NAME(finish)(const SparseWork *w, int64_t at, int width, const T *sums)
{
    T *z = (T *)w->z + at;
    int c;
    if (w->base != NULL) {
        const T alpha = *(const T *)w->alpha, *base = (const T *)w->base + at;
        for (c = 0; c < width; c++)
            z[c] = PLUS(base[c], TIMES(alpha, sums[c]));
    } else {
        for (c = 0; c < width; c++)
            z[c] = sums[c];
    }
}

#include "sparse_dot_vector.h"

#define ROW_BLOCKS(WIDTH)                                                                          \
    for (; at + (WIDTH) <= columns; at += (WIDTH)) {                                               \
        if (!NAME(dot_block)(w, begin, stop, last, at, WIDTH, sums))                               \
            goto outside;                                                                          \
        NAME(finish)(w, i * columns + at, WIDTH, sums);                                            \
    }

/* Rows of x times a dense matrix, or vector. Indices are looked at here, and noted in ``is_wrong`` if one lies
   outside of the shape: a pass over all of them beforehand would read them from memory twice. */
static void NAME(dot)(SparseWork *w, int64_t first, int64_t end, int worker)
{
    const INDEX *indptr = (const INDEX *)w->x.indptr;
    const int64_t columns = w->columns, last = (int64_t)indptr[w->x.rows] - 1;
    int64_t i, at;
    T sums[WIDE];
    (void)worker;
    if (columns == 1) {
        if (!NAME(dot_vector)(w, first, end))
            goto outside;
        return;
    }
    for (i = first; i < end; i++) {
        const int64_t begin = indptr[i], stop = indptr[i + 1];
        at = 0;
        ROW_BLOCKS(WIDE)
        ROW_BLOCKS(WIDE / 2)
        ROW_BLOCKS(WIDE / 8)
        ROW_BLOCKS(1)
    }
    return;
outside:
    __atomic_store_n(&w->is_wrong, 1, __ATOMIC_RELAXED);
}

/* Add a row of a dense factor times an entry to a row of the result. */
static inline void NAME(add_row)(T *restrict to, T entry, const T *restrict row, int64_t n)
{
    int64_t at = 0;
    int c;
    for (; at + WIDE / 2 <= n; at += WIDE / 2)
        for (c = 0; c < WIDE / 2; c++)
            to[at + c] = PLUS(to[at + c], TIMES(entry, row[at + c]));
    for (; at + WIDE / 8 <= n; at += WIDE / 8)
        for (c = 0; c < WIDE / 8; c++)
            to[at + c] = PLUS(to[at + c], TIMES(entry, row[at + c]));
    for (; at < n; at++)
        to[at] = PLUS(to[at], TIMES(entry, row[at]));
}

/* The transpose of x times a vector, which threads do not share: most of the time goes by reading the entries.
   0: an index lies outside of the shape. */
static int NAME(dot_transposed_vector)(const SparseWork *w)
{
    const T *data = (const T *)w->x.data, *dense = (const T *)w->dense;
    const INDEX *indices = (const INDEX *)w->x.indices, *indptr = (const INDEX *)w->x.indptr;
    const uint64_t limit = (uint64_t)w->x.columns;
    T *z = (T *)w->z;
    int64_t i, k;
    for (i = 0; i < w->x.rows; i++)
        for (k = indptr[i]; k < (int64_t)indptr[i + 1]; k++) {
            if ((uint64_t)indices[k] >= limit)
                return 0;
            z[indices[k]] = PLUS(z[indices[k]], TIMES(data[k], dense[i]));
        }
    return 1;
}

/* Rows first to end of the transpose of x times a dense matrix: all entries are read, and the products of those
   in columns first to end of x are added to rows of the result. */
static void NAME(dot_transposed)(SparseWork *w, int64_t first, int64_t end, int worker)
{
    const T *data = (const T *)w->x.data, *row = (const T *)w->dense;
    const INDEX *indices = (const INDEX *)w->x.indices, *indptr = (const INDEX *)w->x.indptr;
    const int64_t columns = w->columns, last = (int64_t)indptr[w->x.rows] - 1;
    const int bytes = (int)(columns < FEW_COLUMNS ? columns : FEW_COLUMNS) * (int)sizeof(T);
    /* Rows of one line of the cache come as fast by themselves. */
    const int fetched = bytes > 64;
    const uint64_t limit = (uint64_t)w->x.columns, length = (uint64_t)(end - first);
    T *z = (T *)w->z;
    int64_t i, k;
    (void)worker;
    memset(z + first * columns, 0, (size_t)((end - first) * columns) * sizeof(T));
    if (columns == 1 && !NAME(dot_transposed_vector)(w))
        goto outside;
    for (i = 0; columns > 1 && i < w->x.rows; i++, row += columns)
        for (k = indptr[i]; k < (int64_t)indptr[i + 1]; k++) {
            const int64_t to = indices[k];
            if ((uint64_t)(to - first) >= length) {
                if ((uint64_t)to >= limit)
                    goto outside;
                continue;
            }
            if (fetched) {
                const int64_t next = indices[k + FETCHED_AHEAD < last ? k + FETCHED_AHEAD : last];
                fetch(z + ((uint64_t)(next - first) < length ? next : to) * columns, bytes);
            }
            NAME(add_row)(z + to * columns, data[k], row, columns);
        }
    if (w->base != NULL)
        for (i = first * columns; i < end * columns; i++)
            NAME(finish)(w, i, 1, z + i);
    return;
outside:
    __atomic_store_n(&w->is_wrong, 1, __ATOMIC_RELAXED);
}

/* The inner products of rows of two dense matrices at the places of a pattern: x's, of which the
   entries are not read. */
static void NAME(sampled)(SparseWork *w, int64_t first, int64_t end, int worker)
{
    const T *dense = (const T *)w->dense, *other = (const T *)w->other;
    const INDEX *indices = (const INDEX *)w->x.indices, *indptr = (const INDEX *)w->x.indptr;
    const int64_t columns = w->columns, last = (int64_t)indptr[w->x.rows] - 1;
    const int bytes = (int)(columns < FEW_COLUMNS ? columns : FEW_COLUMNS) * (int)sizeof(T);
    T *z = (T *)w->z;
    int64_t i, k, c;
    int lane;
    (void)worker;
    for (i = first; i < end; i++)
        for (k = indptr[i]; k < (int64_t)indptr[i + 1]; k++) {
            const T *a = dense + i * columns, *b = other + indices[k] * columns;
            T sums[LANES], sum = ZERO;
            fetch(other + indices[k + FETCHED_AHEAD < last ? k + FETCHED_AHEAD : last] * columns, bytes);
            for (lane = 0; lane < LANES; lane++)
                sums[lane] = ZERO;
            for (c = 0; c + LANES <= columns; c += LANES)
                for (lane = 0; lane < LANES; lane++)
                    sums[lane] = PLUS(sums[lane], TIMES(a[c + lane], b[c + lane]));
            for (; c < columns; c++)
                sum = PLUS(sum, TIMES(a[c], b[c]));
            for (lane = 0; lane < LANES / 2; lane++)
                sums[lane] = PLUS(sums[lane], sums[lane + LANES / 2]);
            for (lane = 0; lane < LANES / 2; lane++)
                sum = PLUS(sum, sums[lane]);
            z[k] = sum;
        }
}

static void NAME(sampled_vectors)(SparseWork *w, int64_t first, int64_t end, int worker)
{
    const T *dense = (const T *)w->dense, *other = (const T *)w->other;
    const INDEX *indices = (const INDEX *)w->x.indices, *indptr = (const INDEX *)w->x.indptr;
    T *z = (T *)w->z;
    int64_t i, k;
    (void)worker;
    for (i = first; i < end; i++)
        for (k = indptr[i]; k < (int64_t)indptr[i + 1]; k++)
            z[k] = TIMES(dense[i], other[indices[k]]);
}

/* Columns in their order, of a set in which ``n`` are; the set is empty then. */
static void NAME(take_set)(uint64_t *set, uint64_t *filled, int64_t n, int64_t columns, INDEX *found,
                           INDEX *spare)
{
    const int64_t words = words_of(words_of(columns));
    int64_t i, at = 0;
    if (words > 2 * n) {
        /* Few columns of very many are sorted. */
        for (i = 0; i < n; i++) {
            set[found[i] >> 6] = 0;
            filled[found[i] >> 12] = 0;
        }
        OF_INDEX(sort_indices)(found, n, spare);
        return;
    }
    for (i = 0; i < words; i++) {
        uint64_t left = filled[i];
        filled[i] = 0;
        for (; left; left &= left - 1) {
            const int64_t word = 64 * i + __builtin_ctzll(left);
            uint64_t bits = set[word];
            set[word] = 0;
            for (; bits; bits &= bits - 1)
                found[at++] = (INDEX)(64 * word + __builtin_ctzll(bits));
        }
    }
}

/* Rows of the product of two matrices (F. Gustavson, ACM TOMS 4, 1978), whose pointers are known. Memory of a
   worker: the set of columns of a row, zeroed, for each column a sum, and room to sort. */
static void NAME(multiply)(SparseWork *w, int64_t first, int64_t end, int worker)
{
    const T *data = (const T *)w->x.data, *more = (const T *)w->y.data;
    const INDEX *indices = (const INDEX *)w->x.indices, *indptr = (const INDEX *)w->x.indptr;
    const INDEX *others = (const INDEX *)w->y.indices, *pointers = (const INDEX *)w->y.indptr;
    const INDEX *to = (const INDEX *)w->z_indptr;
    const int64_t columns = w->y.columns, last = (int64_t)indptr[w->x.rows] - 1;
    uint64_t *set = (uint64_t *)(w->memory + worker * w->bytes), *filled = set + words_of(columns);
    T *sums = (T *)((char *)set + bytes_of_set(columns));
    INDEX *spare = (INDEX *)((char *)sums + (columns * sizeof(T) + 7) / 8 * 8);
    int64_t i, k, m, n;
    for (i = first; i < end; i++) {
        INDEX *found = (INDEX *)w->z_indices + to[i];
        T *z = (T *)w->z + to[i];
        n = 0;
        for (k = indptr[i]; k < (int64_t)indptr[i + 1]; k++) {
            const T entry = data[k];
            const int64_t ahead = pointers[indices[k + ROWS_AHEAD < last ? k + ROWS_AHEAD : last]];
            fetch(others + ahead, 128);
            fetch(more + ahead, 128);
            for (m = pointers[indices[k]]; m < (int64_t)pointers[indices[k] + 1]; m++) {
                const INDEX column = others[m];
                const T product = TIMES(entry, more[m]);
                uint64_t *word = &set[column >> 6];
                const uint64_t bit = UINT64_C(1) << (column & 63);
                if (*word & bit) {
                    sums[column] = PLUS(sums[column], product);
                } else {
                    *word |= bit;
                    filled[column >> 12] |= UINT64_C(1) << (column >> 6 & 63);
                    sums[column] = PLUS(ZERO, product);
                    found[n++] = column;
                }
            }
        }
        NAME(take_set)(set, filled, n, columns, found, spare);
        for (k = 0; k < n; k++)
            z[k] = sums[found[k]];
    }
}

/* The entries of a product at the places of a pattern (z_indices, z_indptr). Memory of a worker, cleared:
   for each column its place in the row of the pattern, plus 1 and what lies before it. */
static void NAME(multiply_at)(SparseWork *w, int64_t first, int64_t end, int worker)
{
    const T *data = (const T *)w->x.data, *more = (const T *)w->y.data;
    const INDEX *indices = (const INDEX *)w->x.indices, *indptr = (const INDEX *)w->x.indptr;
    const INDEX *others = (const INDEX *)w->y.indices, *pointers = (const INDEX *)w->y.indptr;
    const INDEX *wanted = (const INDEX *)w->z_indices, *places = (const INDEX *)w->z_indptr;
    int64_t *mark = (int64_t *)(w->memory + worker * w->bytes), i, k, m;
    T *z = (T *)w->z;
    for (i = first; i < end; i++) {
        const int64_t begin = places[i], stop = places[i + 1];
        if (begin == stop)
            continue;
        for (k = begin; k < stop; k++) {
            mark[wanted[k]] = k + 1;
            z[k] = ZERO;
        }
        for (k = indptr[i]; k < (int64_t)indptr[i + 1]; k++) {
            const T entry = data[k];
            for (m = pointers[indices[k]]; m < (int64_t)pointers[indices[k] + 1]; m++) {
                /* Marks of this row alone lie in its stretch. */
                const int64_t at = mark[others[m]];
                if (at > begin && at <= stop)
                    z[at - 1] = PLUS(z[at - 1], TIMES(entry, more[m]));
            }
        }
    }
}

/* x where ``on`` is 1, all bits 0 where it is 0. A choice made by a mask costs no branch that the processor
   would guess wrong half of the time. */
static inline T NAME(pick)(T x, int on)
{
    const uint64_t mask = -(uint64_t)on;
    uint64_t bits[(sizeof(T) + 7) / 8] = {0};
    T picked;
    size_t i;
    memcpy(bits, &x, sizeof(T));
    for (i = 0; i < sizeof(bits) / 8; i++)
        bits[i] &= mask;
    memcpy(&picked, bits, sizeof(T));
    return picked;
}

/* Rows of two matrices combined where either stores an entry: result RESULT of type OUT, kept where KEPT
   is true. They go where both rows would fit: see pack. */
#define COMBINE(WHAT, OUT, RESULT, KEPT)                                                           \
    static void NAME(WHAT)(SparseWork *w, int64_t first, int64_t end, int worker)                  \
    {                                                                                              \
        const T *data = (const T *)w->x.data, *more = (const T *)w->y.data;                        \
        const INDEX *indices = (const INDEX *)w->x.indices, *indptr = (const INDEX *)w->x.indptr;      \
        const INDEX *others = (const INDEX *)w->y.indices, *pointers = (const INDEX *)w->y.indptr;             \
        int64_t *counts = (int64_t *)w->counts, i;                                                 \
        (void)worker;                                                                              \
        for (i = first; i < end; i++) {                                                            \
            int64_t k = indptr[i], m = pointers[i], n = 0;                                         \
            const int64_t k_end = indptr[i + 1], m_end = pointers[i + 1], at = k + m;              \
            OUT *z = (OUT *)w->z + at;                                                             \
            INDEX *found = (INDEX *)w->z_indices + at;                                                     \
            while (k < k_end && m < m_end) {                                                       \
                const INDEX p = indices[k], q = others[m];                                         \
                const int left = p <= q, right = q <= p;                                           \
                const T a = NAME(pick)(data[k], left), b = NAME(pick)(more[m], right);             \
                z[n] = RESULT;                                                                     \
                found[n] = p < q ? p : q;                                                          \
                n += (KEPT);                                                                       \
                k += left;                                                                         \
                m += right;                                                                        \
            }                                                                                      \
            for (; k < k_end; k++) {                                                               \
                const int left = 1, right = 0;                                                     \
                const T a = data[k], b = ZERO;                                                     \
                (void)left, (void)right;                                                           \
                z[n] = RESULT;                                                                     \
                found[n] = indices[k];                                                             \
                n += (KEPT);                                                                       \
            }                                                                                      \
            for (; m < m_end; m++) {                                                               \
                const int left = 0, right = 1;                                                     \
                const T a = ZERO, b = more[m];                                                     \
                (void)left, (void)right, (void)a;                                                  \
                z[n] = RESULT;                                                                     \
                found[n] = others[m];                                                              \
                n += (KEPT);                                                                       \
            }                                                                                      \
            counts[i] = n;                                                                         \
        }                                                                                          \
    }

COMBINE(combine_add, T, PLUS(a, b), 1)
COMBINE(combine_mul, T, TIMES(a, b), left && right)
#if HAS_ORDER
/* NaN stays, as np.maximum has it. */
COMBINE(combine_maximum, T, a >= b || a != a ? a : b, 1)
COMBINE(combine_minimum, T, a <= b || a != a ? a : b, 1)
COMBINE(combine_neq, char, 1, a != b)
COMBINE(combine_lt, char, 1, a < b)
COMBINE(combine_gt, char, 1, a > b)
#else
COMBINE(combine_neq, char, 1, a.re != b.re || a.im != b.im)
#endif
#undef COMBINE

/* Sums, or extremes, of the rows of a dense matrix that lie in each segment; x has its pointers. */
#define SEGMENTS(WHAT, RESULT)                                                                     \
    static void NAME(WHAT)(SparseWork *w, int64_t first, int64_t end, int worker)                  \
    {                                                                                              \
        const INDEX *indptr = (const INDEX *)w->x.indptr;                                                  \
        const int64_t columns = w->columns;                                                        \
        int64_t i, k, c;                                                                           \
        (void)worker;                                                                              \
        for (i = first; i < end; i++) {                                                            \
            T *z = (T *)w->z + i * columns;                                                        \
            const T *x = (const T *)w->dense + (int64_t)indptr[i] * columns;                       \
            for (c = 0; c < columns; c++)                                                          \
                z[c] = indptr[i] < indptr[i + 1] ? x[c] : ZERO;                                 \
            for (k = (int64_t)indptr[i] + 1; k < (int64_t)indptr[i + 1]; k++) {                    \
                x += columns;                                                                      \
                for (c = 0; c < columns; c++) {                                                    \
                    const T a = z[c], b = x[c];                                                    \
                    z[c] = RESULT;                                                                 \
                }                                                                                  \
            }                                                                                      \
        }                                                                                          \
    }

SEGMENTS(segment_sum, PLUS(a, b))
#if HAS_ORDER
SEGMENTS(segment_max, a >= b || a != a ? a : b)
SEGMENTS(segment_min, a <= b || a != a ? a : b)
#endif
#undef SEGMENTS

/* Add entries to their places in a dense matrix in C order. */
static void NAME(scatter_add)(const Compressed *x, char *z)
{
    const T *data = (const T *)x->data;
    const INDEX *indices = (const INDEX *)x->indices, *indptr = (const INDEX *)x->indptr;
    int64_t i, k;
    for (i = 0; i < x->rows; i++)
        for (k = indptr[i]; k < (int64_t)indptr[i + 1]; k++) {
            T *at = (T *)z + i * x->columns + indices[k];
            *at = PLUS(*at, data[k]);
        }
}

/* The entries that are not 0; how many they are. Without ``data`` they are only counted. */
static int64_t NAME(keep_nonzero)(const Compressed *x, char *data, char *to_indices, char *to_indptr)
{
    const T *given = (const T *)x->data;
    const INDEX *indices = (const INDEX *)x->indices, *indptr = (const INDEX *)x->indptr;
    INDEX *pointers = (INDEX *)to_indptr;
    int64_t i, k, n = 0;
    if (data == NULL)
        pointers[0] = 0;
    for (i = 0; i < x->rows; i++) {
        for (k = indptr[i]; k < (int64_t)indptr[i + 1]; k++) {
            if (IS_ZERO(given[k]))
                continue;
            if (data != NULL) {
                ((T *)data)[n] = given[k];
                ((INDEX *)to_indices)[n] = indices[k];
            }
            n++;
        }
        if (data == NULL)
            pointers[i + 1] = (INDEX)n;
    }
    return n;
}

#include "sparse_tidy.h"
#include "sparse_block_values.h"

const ValueLoops NAME(value_loops) = {
    NAME(dot), NAME(dot_transposed), NAME(sampled), NAME(sampled_vectors), NAME(multiply),
    NAME(multiply_at),
#if HAS_ORDER
    {NAME(combine_add), NAME(combine_mul), NAME(combine_maximum), NAME(combine_minimum),
     NAME(combine_neq), NAME(combine_lt), NAME(combine_gt)},
    {NAME(segment_sum), NAME(segment_max), NAME(segment_min)},
#else
    {NAME(combine_add), NAME(combine_mul), NULL, NULL, NAME(combine_neq), NULL, NULL},
    {NAME(segment_sum), NULL, NULL},
#endif
    NAME(scatter_add), NAME(tidy_rows), NAME(count_dense), NAME(take_dense), NAME(block_dot),
    NAME(block_dot_transposed), NAME(sampled_blocks), NAME(add_blocks), NAME(keep_nonzero), (int)sizeof(T),
};

#undef WIDE
#undef ROW_BLOCKS
#undef INDEX
#undef NAME
#undef OF_INDEX
#undef OF_INDEX_OF
#undef OF_INDEX_TWICE
