/* Included for each dtype T of entries and INDEX of indices: entries of rows sorted, and those at one
   place added up; the elements of dense matrices that are not 0. */

static void NAME(insert_entries)(INDEX *v, T *z, int64_t n)
{
    int64_t i, k;
    for (i = 1; i < n; i++) {
        const INDEX moved = v[i];
        const T entry = z[i];
        for (k = i; k > 0 && v[k - 1] > moved; k--) {
            v[k] = v[k - 1];
            z[k] = z[k - 1];
        }
        v[k] = moved;
        z[k] = entry;
    }
}

/* Merge two sorted stretches; of equal indices those of the first come first. */
static void NAME(merge_entries)(const INDEX *v, const T *z, int64_t middle, int64_t n, INDEX *to, T *to_z)
{
    int64_t i = 0, k = middle, at;
    for (at = 0; at < n; at++) {
        const int64_t from = k == n || (i < middle && v[i] <= v[k]) ? i++ : k++;
        to[at] = v[from];
        to_z[at] = z[from];
    }
}

/* Sort entries by their indices; those at one place stay in their order. */
static void NAME(sort_entries)(INDEX *v, T *z, int64_t n, INDEX *spare, T *spare_z)
{
    INDEX *from = v, *to = spare;
    T *from_z = z, *to_z = spare_z;
    int64_t width, k;
    for (k = 1; k < n && v[k - 1] <= v[k]; k++)
        ;
    if (k >= n)
        return;
    for (k = 0; k < n; k += FEW_INDICES)
        NAME(insert_entries)(v + k, z + k, n - k < FEW_INDICES ? n - k : FEW_INDICES);
    for (width = FEW_INDICES; width < n; width *= 2) {
        INDEX *other = from;
        T *other_z = from_z;
        for (k = 0; k < n; k += 2 * width) {
            const int64_t length = n - k < 2 * width ? n - k : 2 * width;
            NAME(merge_entries)(from + k, from_z + k, length < width ? length : width, length, to + k,
                                to_z + k);
        }
        from = to;
        from_z = to_z;
        to = other;
        to_z = other_z;
    }
    if (from != v) {
        memcpy(v, from, (size_t)n * sizeof(INDEX));
        memcpy(z, from_z, (size_t)n * sizeof(T));
    }
}

/* Sort each row and add up entries at one place. Memory of a worker: room for the longest row, which has
   ``columns`` entries. */
static void NAME(tidy_rows)(SparseWork *w, int64_t first, int64_t end, int worker)
{
    const INDEX *indptr = (const INDEX *)w->x.indptr;
    T *spare = (T *)(w->memory + worker * w->bytes);
    INDEX *spare_indices = (INDEX *)(((uintptr_t)(spare + w->columns) + 7) & ~(uintptr_t)7);
    int64_t *counts = (int64_t *)w->counts, i, k;
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
