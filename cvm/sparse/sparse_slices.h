/* Included for each dtype INDEX of indices: slices of rows, matrices side by side, entries put into rows. */

/* The first place in low .. high - 1 whose column is at least ``column``; high: none. */
static inline int64_t OF_INDEX(first_from)(const INDEX *indices, int64_t low, int64_t high, int64_t column)
{
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if ((int64_t)indices[middle] < column)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* How many entries each row has in the columns steps[0] .. steps[1] - 1. */
static void OF_INDEX(count_cropped)(SparseWork *w, int64_t first, int64_t end, int worker)
{
    const INDEX *indices = (const INDEX *)w->x.indices, *indptr = (const INDEX *)w->x.indptr;
    int64_t *counts = (int64_t *)w->counts, i;
    (void)worker;
    for (i = first; i < end; i++) {
        const int64_t from = OF_INDEX(first_from)(indices, indptr[i], indptr[i + 1], w->steps[0]);
        counts[i] = OF_INDEX(first_from)(indices, from, indptr[i + 1], w->steps[1]) - from;
    }
}

static void OF_INDEX(crop)(SparseWork *w, int64_t first, int64_t end, int worker)
{
    const INDEX *indices = (const INDEX *)w->x.indices, *indptr = (const INDEX *)w->x.indptr;
    const INDEX *pointers = (const INDEX *)w->z_indptr;
    INDEX *to = (INDEX *)w->z_indices;
    int64_t i, k;
    (void)worker;
    for (i = first; i < end; i++) {
        const int64_t from = OF_INDEX(first_from)(indices, indptr[i], indptr[i + 1], w->steps[0]);
        const int64_t at = pointers[i], n = pointers[i + 1] - at;
        memcpy(w->z + at * w->itemsize, w->x.data + from * w->itemsize, (size_t)(n * w->itemsize));
        for (k = 0; k < n; k++)
            to[at + k] = (INDEX)(indices[from + k] - w->steps[0]);
    }
}

/* The pointers of matrices side by side. */
static void OF_INDEX(join_pointers)(const Compressed *x, int n, char *given)
{
    INDEX *z = (INDEX *)given;
    const int64_t rows = x[0].rows;
    int64_t i;
    int k;
    memcpy(z, x[0].indptr, (size_t)(rows + 1) * sizeof(INDEX));
    for (k = 1; k < n; k++)
        for (i = 1; i <= rows; i++)
            z[i] = (INDEX)(z[i] + ((const INDEX *)x[k].indptr)[i]);
}

/* Rows of matrices side by side: ``joined`` has w->kind of them. */
static void OF_INDEX(join_rows)(SparseWork *w, int64_t first, int64_t end, int worker)
{
    const INDEX *pointers = (const INDEX *)w->z_indptr;
    INDEX *to = (INDEX *)w->z_indices;
    int64_t i, k;
    int j;
    (void)worker;
    for (i = first; i < end; i++) {
        int64_t at = pointers[i], before = 0;
        for (j = 0; j < w->kind; j++) {
            const Compressed *x = &w->joined[j];
            const INDEX *indices = (const INDEX *)x->indices, *indptr = (const INDEX *)x->indptr;
            const int64_t from = indptr[i], n = indptr[i + 1] - from;
            memcpy(w->z + at * w->itemsize, x->data + from * w->itemsize, (size_t)(n * w->itemsize));
            for (k = 0; k < n; k++)
                to[at + k] = (INDEX)(indices[from + k] + before);
            at += n;
            before += x->columns;
        }
    }
}

/* Where rows begin that have as many entries as ``next`` says, which becomes the same. */
static void OF_INDEX(begin_rows)(int64_t *next, int64_t rows, INDEX *indptr)
{
    int64_t total = 0, i;
    indptr[0] = 0;
    for (i = 0; i < rows; i++) {
        const int64_t count = next[i];
        next[i] = total;
        total += count;
        indptr[i + 1] = (INDEX)total;
    }
}

/* Rows of x put into the rows ``ids`` of another matrix, one after the other. */
static void OF_INDEX(bucket_rows)(const Compressed *x, const char *given, int64_t rows, int itemsize,
                                  int64_t *next, char *to_indptr, char *data, char *to_indices)
{
    const INDEX *indices = (const INDEX *)x->indices, *indptr = (const INDEX *)x->indptr;
    const INDEX *ids = (const INDEX *)given;
    int64_t i;
    memset(next, 0, (size_t)rows * sizeof(int64_t));
    for (i = 0; i < x->rows; i++)
        next[ids[i]] += (int64_t)indptr[i + 1] - indptr[i];
    OF_INDEX(begin_rows)(next, rows, (INDEX *)to_indptr);
    for (i = 0; i < x->rows; i++) {
        const int64_t from = indptr[i], n = indptr[i + 1] - from, at = next[ids[i]];
        memcpy(data + at * itemsize, x->data + from * itemsize, (size_t)(n * itemsize));
        memcpy((INDEX *)to_indices + at, indices + from, (size_t)n * sizeof(INDEX));
        next[ids[i]] = at + n;
    }
}

/* Entries put into their rows, in the order in which they come. */
static void OF_INDEX(bucket_entries)(const char *given_data, const char *given_major,
                                     const char *given_minor, int64_t stored, int64_t rows,
                                     int itemsize, int64_t *next, char *to_indptr, char *data,
                                     char *to_indices)
{
    const INDEX *major = (const INDEX *)given_major, *minor = (const INDEX *)given_minor;
    int64_t k;
    memset(next, 0, (size_t)rows * sizeof(int64_t));
    for (k = 0; k < stored; k++)
        next[major[k]]++;
    OF_INDEX(begin_rows)(next, rows, (INDEX *)to_indptr);
    for (k = 0; k < stored; k++) {
        const int64_t at = next[major[k]]++;
        ((INDEX *)to_indices)[at] = minor[k];
        move_item(data + at * itemsize, given_data + k * itemsize, itemsize);
    }
}
