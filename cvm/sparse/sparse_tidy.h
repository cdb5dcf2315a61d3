/* Included for each dtype T of entries and INDEX of indices: entries of rows sorted, and those at one
   place added up; the elements of dense matrices that are not 0. */

#include "sparse_sort.h"

/* Sort each row and add up entries at one place. In the spare memory each part has room for half of its entries,
   and so for half of its longest row. */
static void NAME(tidy_rows)(SparseWork *w, int64_t first, int64_t end, int worker)
{
    const INDEX *indptr = (const INDEX *)w->x.indptr;
    T *spare = (T *)w->spare + indptr[first] / 2;
    INDEX *spare_indices = (INDEX *)w->spare_indices + indptr[first] / 2;
    int64_t *counts = (int64_t *)w->counts, i, k;
    (void)worker;
    for (i = first; i < end; i++) {
        INDEX *v = (INDEX *)w->z_indices + indptr[i];
        T *z = (T *)w->z + indptr[i];
        const int64_t n = indptr[i + 1] - indptr[i];
        int64_t last = 0;
        NAME(sort_entries)(v, z, n, spare_indices, spare);
        for (k = 1; k < n; k++) {
            if (v[k] == v[last]) {
                z[last] = PLUS(z[last], z[k]);
            } else {
                v[++last] = v[k];
                z[last] = z[k];
            }
        }
        counts[i] = n > 0 ? last + 1 : 0;
    }
}

/* How many elements of rows of a dense matrix are not 0; it has y.columns columns. */
static void NAME(count_dense)(SparseWork *w, int64_t first, int64_t end, int worker)
{
    int64_t *counts = (int64_t *)w->counts, i, c;
    (void)worker;
    for (i = first; i < end; i++) {
        const char *row = w->dense + i * w->steps[0];
        int64_t n = 0;
        for (c = 0; c < w->y.columns; c++)
            n += !IS_ZERO(*(const T *)(row + c * w->steps[1]));
        counts[i] = n;
    }
}

static void NAME(take_dense)(SparseWork *w, int64_t first, int64_t end, int worker)
{
    const INDEX *pointers = (const INDEX *)w->z_indptr;
    int64_t i, c;
    (void)worker;
    for (i = first; i < end; i++) {
        const char *row = w->dense + i * w->steps[0];
        int64_t at = pointers[i];
        for (c = 0; c < w->y.columns; c++) {
            const T element = *(const T *)(row + c * w->steps[1]);
            if (!IS_ZERO(element)) {
                ((T *)w->z)[at] = element;
                ((INDEX *)w->z_indices)[at++] = (INDEX)c;
            }
        }
    }
}
