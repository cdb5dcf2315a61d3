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

/* How many blocks of steps[0] rows and steps[1] columns each row of blocks has. Memory of a worker: for each
   column of blocks the last row of blocks that had it, plus 1. */
static void OF_INDEX(count_blocks)(SparseWork *w, int64_t first, int64_t end, int worker)
{
    const INDEX *indices = (const INDEX *)w->x.indices, *indptr = (const INDEX *)w->x.indptr;
    const int64_t r = w->steps[0], c = w->steps[1];
    int64_t *mark = (int64_t *)(w->memory + worker * w->bytes), *counts = (int64_t *)w->counts, b, k;
    for (b = first; b < end; b++) {
        int64_t count = 0;
        for (k = indptr[b * r]; k < (int64_t)indptr[(b + 1) * r]; k++) {
            count += mark[indices[k] / c] != b + 1;
            mark[indices[k] / c] = b + 1;
        }
        counts[b] = count;
    }
}

/* The columns of blocks, and which element of the flattened blocks each entry is. Memory of a worker: for
   each column of blocks its number plus 1, and room to sort. */
static void OF_INDEX(rows_as_blocks)(SparseWork *w, int64_t first, int64_t end, int worker)
{
    const INDEX *indices = (const INDEX *)w->x.indices, *indptr = (const INDEX *)w->x.indptr;
    const INDEX *pointers = (const INDEX *)w->z_indptr;
    const int64_t r = w->steps[0], c = w->steps[1];
    int64_t *number = (int64_t *)(w->memory + worker * w->bytes), *place = (int64_t *)w->z, b, i, k;
    INDEX *spare = (INDEX *)(number + w->columns);
    for (b = first; b < end; b++) {
        const int64_t begin = pointers[b], n = pointers[b + 1] - begin;
        INDEX *found = (INDEX *)w->z_indices + begin;
        int64_t at = 0;
        for (k = indptr[b * r]; k < (int64_t)indptr[(b + 1) * r]; k++)
            if (number[indices[k] / c] == 0) {
                number[indices[k] / c] = 1;
                found[at++] = (INDEX)(indices[k] / c);
            }
        OF_INDEX(sort_indices)(found, n, spare);
        for (k = 0; k < n; k++)
            number[found[k]] = begin + k + 1;
        for (i = 0; i < r; i++)
            for (k = indptr[b * r + i]; k < (int64_t)indptr[b * r + i + 1]; k++)
                place[k] = ((number[indices[k] / c] - 1) * r + i) * c + indices[k] % c;
        for (k = 0; k < n; k++)
            number[found[k]] = 0;
    }
}
