/* Included for each dtype INDEX of indices: patterns of blocks as patterns of entries, and back. */

/* The entries of blocks of r x c, row by row: their columns, the pointers of rows, and which element of
   the flattened blocks each is. */
static void OF_INDEX(blocks_as_rows)(const Compressed *x, int64_t r, int64_t c, char *to_indices,
                                     char *to_indptr, int64_t *place)
{
    const INDEX *indices = (const INDEX *)x->indices, *indptr = (const INDEX *)x->indptr;
    INDEX *minor = (INDEX *)to_indices, *pointers = (INDEX *)to_indptr;
    int64_t at = 0, b, i, j, k;
    pointers[0] = 0;
    for (b = 0; b < x->rows; b++)
        for (i = 0; i < r; i++) {
            for (k = indptr[b]; k < (int64_t)indptr[b + 1]; k++)
                for (j = 0; j < c; j++, at++) {
                    minor[at] = (INDEX)(indices[k] * c + j);
                    place[at] = (k * r + i) * c + j;
                }
            pointers[b * r + i + 1] = (INDEX)at;
        }
}

/* Positions of entries, sorted by their indices. */
#define T int64_t
#define NAME(x) OF_INDEX(x##_of_positions)
#include "sparse_sort.h"
#undef NAME
#undef T

/* The positions of the blocks of each row in the order of their columns, and how many columns it has. The spare
   memory is that of tidy_rows. */
static void OF_INDEX(order_blocks)(SparseWork *w, int64_t first, int64_t end, int worker)
{
    const INDEX *indices = (const INDEX *)w->x.indices, *indptr = (const INDEX *)w->x.indptr;
    int64_t *spare = (int64_t *)w->spare + indptr[first] / 2;
    INDEX *spare_indices = (INDEX *)w->spare_indices + indptr[first] / 2;
    int64_t *counts = (int64_t *)w->counts, i, k;
    (void)worker;
    for (i = first; i < end; i++) {
        const int64_t from = indptr[i], n = indptr[i + 1] - from;
        INDEX *v = (INDEX *)w->z_indices + from;
        int64_t *places = (int64_t *)w->z + from;
        memcpy(v, indices + from, (size_t)n * sizeof(INDEX));
        for (k = 0; k < n; k++)
            places[k] = from + k;
        OF_INDEX(sort_entries_of_positions)(v, places, n, spare_indices, spare);
        counts[i] = n > 0;
        for (k = 1; k < n; k++)
            counts[i] += v[k] != v[k - 1];
    }
}

/* How many blocks of steps[0] rows and steps[1] columns each row of blocks has. Their columns go to z_indices, from where
   its entries begin; the spare memory has room for as many. */
static void OF_INDEX(count_blocks)(SparseWork *w, int64_t first, int64_t end, int worker)
{
    const INDEX *indices = (const INDEX *)w->x.indices, *indptr = (const INDEX *)w->x.indptr;
    const int64_t r = w->steps[0];
    const INDEX c = (INDEX)w->steps[1];
    int64_t *counts = (int64_t *)w->counts, b, i, k;
    (void)worker;
    for (b = first; b < end; b++) {
        const int64_t from = indptr[b * r];
        INDEX *found = (INDEX *)w->z_indices + from;
        int64_t n = 0, last = 0;
        for (i = b * r; i < (b + 1) * r; i++)
            for (k = indptr[i]; k < (int64_t)indptr[i + 1]; k++) {
                const INDEX column = indices[k] / c;
                if (n == 0 || found[n - 1] != column)
                    found[n++] = column;
            }
        OF_INDEX(sort_indices)(found, n, (INDEX *)w->spare_indices + from);
        for (k = 1; k < n; k++)
            if (found[k] != found[last])
                found[++last] = found[k];
        counts[b] = n > 0 ? last + 1 : 0;
    }
}

/* The place of a column among ascending ones that have it, found without branches that the processor would guess. */
static inline int64_t OF_INDEX(rank_of)(const INDEX *found, int64_t n, INDEX column)
{
    const INDEX *from = found;
    while (n > 1) {
        const int64_t half = n / 2;
        from += half & -(int64_t)(from[half - 1] < column);
        n -= half;
    }
    return from - found;
}

/* The columns of blocks, which count_blocks has found, and which element of the flattened blocks each entry is. */
static void OF_INDEX(rows_as_blocks)(SparseWork *w, int64_t first, int64_t end, int worker)
{
    const INDEX *indices = (const INDEX *)w->x.indices, *indptr = (const INDEX *)w->x.indptr;
    const INDEX *pointers = (const INDEX *)w->z_indptr;
    const int64_t r = w->steps[0];
    const INDEX c = (INDEX)w->steps[1];
    int64_t *place = (int64_t *)w->z, b, i, k;
    (void)worker;
    for (b = first; b < end; b++) {
        const int64_t begin = pointers[b], n = pointers[b + 1] - begin;
        INDEX *found = (INDEX *)w->z_indices + begin;
        memcpy(found, (const INDEX *)w->other + indptr[b * r], (size_t)n * sizeof(INDEX));
        for (i = 0; i < r; i++) {
            int64_t at = 0;
            for (k = indptr[b * r + i]; k < (int64_t)indptr[b * r + i + 1]; k++) {
                const INDEX column = indices[k] / c;
                if (found[at] != column)
                    at = OF_INDEX(rank_of)(found, n, column);
                place[k] = ((begin + at) * r + i) * c + indices[k] % c;
            }
        }
    }
}
