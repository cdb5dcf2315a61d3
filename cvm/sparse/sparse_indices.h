/* Included for each dtype INDEX of indices: loops that know nothing of the dtype of entries. */

/* The first row before which there are ``entries`` or more, each row counting as one; with -1, how many
   there are in all. */
static int64_t OF_INDEX(row_at)(const char *given, int64_t rows, int64_t entries)
{
    const INDEX *indptr = (const INDEX *)given;
    int64_t low = 0, high = rows;
    if (entries < 0)
        return (int64_t)indptr[rows] + rows;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if ((int64_t)indptr[middle] + middle < entries)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Whether pointers begin with 0, do not decrease, and end with the number of entries. */
static int OF_INDEX(pointers_fit)(const char *given, int64_t rows, int64_t stored)
{
    const INDEX *indptr = (const INDEX *)given;
    int decreases = 0;
    int64_t i;
    for (i = 0; i < rows; i++)
        decreases |= indptr[i + 1] < indptr[i];
    return !decreases && indptr[0] == 0 && (int64_t)indptr[rows] == stored;
}

static int OF_INDEX(indices_fit)(const char *given, int64_t count, int64_t columns)
{
    const INDEX *indices = (const INDEX *)given;
    int is_outside = 0;
    int64_t k;
    for (k = 0; k < count; k++)
        is_outside |= indices[k] < 0 || (int64_t)indices[k] >= columns;
    return !is_outside;
}

/* How many of ``n`` indices, but for the first, are not greater than the one before; -1: one is outside of
   the shape. */
static int64_t OF_INDEX(count_falls)(const INDEX *indices, int64_t n, int64_t columns)
{
    int64_t falls = 0, k;
    if (sizeof(INDEX) == sizeof(int32_t)) {
        const int32_t limit = columns > INT32_MAX ? INT32_MAX : (int32_t)columns;
        const IndexFacts facts = index_facts((const int32_t *)indices, n, limit);
        return facts.has_negative || (facts.has_large && columns <= INT32_MAX) ? -1 : facts.falls;
    }
    if (!OF_INDEX(indices_fit)((const char *)indices, n, columns))
        return -1;
    for (k = 1; k < n; k++)
        falls += indices[k] <= indices[k - 1];
    return falls;
}

/* Note in ``is_wrong`` if the indices of a row do not ascend, or do not lie within the shape, for pointers that
   fit. Where indices do not ascend is counted over all entries of some rows, in vectors, and should be where
   rows begin alone; these are looked at next, while the indices are in the cache. */
static void OF_INDEX(check_rows)(SparseWork *w, int64_t first, int64_t end, int worker)
{
    const INDEX *indices = (const INDEX *)w->x.indices, *indptr = (const INDEX *)w->x.indptr;
    const int64_t stored = indptr[w->x.rows], batch = w->x.rows * CHECKED_TOGETHER / (stored + 1) + 1;
    int64_t i, stop;
    (void)worker;
    for (i = first; i < end; i = stop) {
        const int64_t begin = indptr[i];
        int64_t falls;
        stop = end - i < batch ? end : i + batch;
        if (begin == (int64_t)indptr[stop])
            continue;
        falls = OF_INDEX(count_falls)(indices + begin, indptr[stop] - begin, w->x.columns);
        for (; i < stop; i++) {
            /* In rows without entries, and in the first with some, no two indices were compared. */
            const int64_t k = indptr[i];
            if (k > begin && k < (int64_t)indptr[i + 1])
                falls -= indices[k] <= indices[k - 1];
        }
        if (falls != 0) {
            __atomic_store_n(&w->is_wrong, 1, __ATOMIC_RELAXED);
            return;
        }
    }
}

/* Whether pairs of rows and columns ascend strictly and lie within the shape. */
static int OF_INDEX(pairs_ascend)(const char *given_rows, const char *given_columns, int64_t stored,
                                  const int64_t *shape)
{
    const INDEX *rows = (const INDEX *)given_rows, *columns = (const INDEX *)given_columns;
    int64_t k;
    if (!OF_INDEX(indices_fit)(given_rows, stored, shape[0]) ||
        !OF_INDEX(indices_fit)(given_columns, stored, shape[1]))
        return 0;
    for (k = 1; k < stored; k++)
        if (rows[k] < rows[k - 1] || (rows[k] == rows[k - 1] && columns[k] <= columns[k - 1]))
            return 0;
    return 1;
}

static int64_t OF_INDEX(largest)(const char *given, int64_t count)
{
    const INDEX *indices = (const INDEX *)given;
    int64_t found = -1, k;
    for (k = 0; k < count; k++)
        found = indices[k] > found ? indices[k] : found;
    return found;
}

/* Set pointers of rows with these counts; return their sum. */
static int64_t OF_INDEX(sum_counts)(const int64_t *counts, int64_t rows, char *given)
{
    INDEX *indptr = (INDEX *)given;
    int64_t total = 0, i;
    indptr[0] = 0;
    for (i = 0; i < rows; i++) {
        total += counts[i];
        indptr[i + 1] = (INDEX)total;
    }
    return total;
}

/* The row of each entry. */
static void OF_INDEX(number_rows)(const char *given, int64_t rows, char *z)
{
    const INDEX *indptr = (const INDEX *)given;
    INDEX *row = (INDEX *)z;
    int64_t i, k;
    for (i = 0; i < rows; i++)
        for (k = indptr[i]; k < (int64_t)indptr[i + 1]; k++)
            row[k] = (INDEX)i;
}

/* Pointers of sorted row numbers; 0 if these are not sorted. Numbers below 0 count as row 0's, and
   those from ``rows`` on as none's, as np.searchsorted has it. */
static int OF_INDEX(count_rows)(const char *given, int64_t stored, int64_t rows, char *z)
{
    const INDEX *major = (const INDEX *)given;
    INDEX *indptr = (INDEX *)z;
    int64_t i, k = 0;
    for (i = 1; i < stored; i++)
        if (major[i] < major[i - 1])
            return 0;
    for (i = 0; i <= rows; i++) {
        while (k < stored && (int64_t)major[k] < i)
            k++;
        indptr[i] = (INDEX)k;
    }
    return 1;
}

/* The transpose: entries are counted by their columns, and go where those before them end. */
static void OF_INDEX(transpose)(const Compressed *x, int itemsize, char *data, char *to_indices,
                                char *to_indptr)
{
    const INDEX *indices = (const INDEX *)x->indices, *indptr = (const INDEX *)x->indptr;
    INDEX *rows = (INDEX *)to_indices, *next = (INDEX *)to_indptr;
    const int64_t stored = indptr[x->rows];
    int64_t i, j, k;
    memset(next, 0, (size_t)(x->columns + 1) * sizeof(INDEX));
    for (k = 0; k < stored; k++)
        next[indices[k]]++;
    for (j = 0, k = 0; j <= x->columns; j++) {
        const INDEX count = next[j];
        next[j] = (INDEX)k;
        k += count;
    }
    for (i = 0; i < x->rows; i++)
        for (k = indptr[i]; k < (int64_t)indptr[i + 1]; k++) {
            const int64_t at = next[indices[k]]++;
            rows[at] = (INDEX)i;
            move_item(data + at * itemsize, x->data + k * itemsize, itemsize);
        }
    /* Each pointer has gone on to the next one's. */
    for (j = x->columns; j > 0; j--)
        next[j] = next[j - 1];
    next[0] = 0;
}

/* Entries to their places in a dense matrix in C order. */
static void OF_INDEX(scatter)(const Compressed *x, int itemsize, char *z)
{
    const INDEX *indices = (const INDEX *)x->indices, *indptr = (const INDEX *)x->indptr;
    int64_t i, k;
    for (i = 0; i < x->rows; i++)
        for (k = indptr[i]; k < (int64_t)indptr[i + 1]; k++)
            move_item(z + (i * x->columns + indices[k]) * itemsize, x->data + k * itemsize,
                      itemsize);
}

/* The elements of a dense matrix at the places of a pattern. */
static void OF_INDEX(gather)(const Compressed *pattern, const char *dense, const int64_t *steps,
                             int itemsize, char *z)
{
    const INDEX *indices = (const INDEX *)pattern->indices, *indptr = (const INDEX *)pattern->indptr;
    int64_t i, k;
    for (i = 0; i < pattern->rows; i++)
        for (k = indptr[i]; k < (int64_t)indptr[i + 1]; k++)
            move_item(z + k * itemsize, dense + i * steps[0] + indices[k] * steps[1], itemsize);
}

/* Pointers of the rows ``ids``; how many entries they have, -1 if there is no such row. */
static int64_t OF_INDEX(count_taken)(const Compressed *x, const char *given, int64_t n, char *to)
{
    const INDEX *indptr = (const INDEX *)x->indptr, *ids = (const INDEX *)given;
    INDEX *pointers = (INDEX *)to;
    int64_t total = 0, i;
    pointers[0] = 0;
    for (i = 0; i < n; i++) {
        if (ids[i] < 0 || (int64_t)ids[i] >= x->rows)
            return -1;
        total += (int64_t)indptr[ids[i] + 1] - indptr[ids[i]];
        pointers[i + 1] = (INDEX)total;
    }
    return total;
}

static void OF_INDEX(take_rows)(const Compressed *x, const char *given, int64_t n, int itemsize,
                                char *data, char *to_indices, const char *to_indptr)
{
    const INDEX *indptr = (const INDEX *)x->indptr, *ids = (const INDEX *)given;
    const INDEX *pointers = (const INDEX *)to_indptr;
    int64_t i;
    for (i = 0; i < n; i++) {
        const int64_t from = indptr[ids[i]], count = indptr[ids[i] + 1] - from, to = pointers[i];
        memcpy(data + to * itemsize, x->data + from * itemsize, (size_t)(count * itemsize));
        memcpy((INDEX *)to_indices + to, (const INDEX *)x->indices + from, (size_t)count * sizeof(INDEX));
    }
}

/* The place of a column among ascending ones; -1: none. */
static inline int64_t OF_INDEX(place_of)(const INDEX *indices, int64_t low, int64_t high, INDEX column)
{
    const int64_t end = high;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (indices[middle] < column)
            low = middle + 1;
        else
            high = middle;
    }
    return low < end && indices[low] == column ? low : -1;
}

static inline void OF_INDEX(read_place)(const Compressed *x, int64_t place, int itemsize, char *z,
                                        void (*move)(char *, const char *, int))
{
    if (place < 0)
        memset(z, 0, (size_t)itemsize);
    else
        move(z, x->data + place * itemsize, itemsize);
}

/* The entries of y at the places of the pattern x, which may be in any order; 0 where there is none. */
static inline __attribute__((always_inline)) void OF_INDEX(look_up_by)(SparseWork *w, int64_t first, int64_t end,
                                                                      void (*move)(char *, const char *, int))
{
    const INDEX *indices = (const INDEX *)w->y.indices, *indptr = (const INDEX *)w->y.indptr;
    const INDEX *wanted = (const INDEX *)w->x.indices, *pointers = (const INDEX *)w->x.indptr;
    int64_t i, k;
    for (i = first; i < end; i++) {
        int64_t at = indptr[i];
        const int64_t stop = indptr[i + 1];
        for (k = pointers[i]; k < (int64_t)pointers[i + 1]; k++) {
            const INDEX column = wanted[k];
            int64_t place;
            /* Patterns mostly ascend, and store much the same: the next entry is near. */
            if (at < stop && indices[at] < column)
                at++;
            if (at < stop && indices[at] == column)
                place = at;
            else
                place = OF_INDEX(place_of)(indices, indptr[i], stop, column);
            if (place >= 0)
                at = place;
            OF_INDEX(read_place)(&w->y, place, w->itemsize, w->z + k * w->itemsize, move);
        }
    }
}

static void OF_INDEX(look_up)(SparseWork *w, int64_t first, int64_t end, int worker)
{
    (void)worker;
    OF_INDEX(look_up_by)(w, first, end, move_item);
}

static void OF_INDEX(look_up_blocks)(SparseWork *w, int64_t first, int64_t end, int worker)
{
    (void)worker;
    OF_INDEX(look_up_by)(w, first, end, move_block);
}

static void OF_INDEX(look_up_pairs)(const Compressed *x, const char *major, const char *minor,
                                    int64_t n, int itemsize, char *z)
{
    const INDEX *indices = (const INDEX *)x->indices, *indptr = (const INDEX *)x->indptr;
    int64_t k;
    for (k = 0; k < n; k++) {
        const INDEX row = ((const INDEX *)major)[k];
        const int64_t place = OF_INDEX(place_of)(indices, indptr[row], indptr[row + 1],
                                                 ((const INDEX *)minor)[k]);
        OF_INDEX(read_place)(x, place, itemsize, z + k * itemsize, move_item);
    }
}

/* Zero the marks of columns, of 4 or 8 bytes each, of which those of columns with entries alone are read: of very
   many columns few have some. */
static void OF_INDEX(clear_marks)(const Compressed *x, int64_t bytes, char *marks)
{
    const INDEX *indices = (const INDEX *)x->indices;
    const int64_t stored = ((const INDEX *)x->indptr)[x->rows];
    int64_t k;
    if (stored >= x->columns / COLUMNS_OF_ENTRY)
        memset(marks, 0, (size_t)(x->columns * bytes));
    else if (bytes == sizeof(int32_t))
        for (k = 0; k < stored; k++)
            ((int32_t *)marks)[indices[k]] = 0;
    else
        for (k = 0; k < stored; k++)
            ((int64_t *)marks)[indices[k]] = 0;
}

/* How many columns each row of a product has. Memory of a worker, cleared: for each column the last row that had
   it, plus 1. */
static void OF_INDEX(count_products)(SparseWork *w, int64_t first, int64_t end, int worker)
{
    const INDEX *indices = (const INDEX *)w->x.indices, *indptr = (const INDEX *)w->x.indptr;
    const INDEX *others = (const INDEX *)w->y.indices, *pointers = (const INDEX *)w->y.indptr;
    const int64_t last = (int64_t)indptr[w->x.rows] - 1;
    INDEX *mark = (INDEX *)(w->memory + worker * w->bytes);
    int64_t *counts = (int64_t *)w->counts, i, k, m;
    for (i = first; i < end; i++) {
        const INDEX number = (INDEX)(i + 1);
        int64_t count = 0;
        for (k = indptr[i]; k < (int64_t)indptr[i + 1]; k++) {
            fetch(others + pointers[indices[k + ROWS_AHEAD < last ? k + ROWS_AHEAD : last]], 64);
            for (m = pointers[indices[k]]; m < (int64_t)pointers[indices[k] + 1]; m++) {
                count += mark[others[m]] != number;
                mark[others[m]] = number;
            }
        }
        counts[i] = count;
    }
}

/* Entries that lie in rows with gaps, those of row i from x.indptr[i] + y.indptr[i] on, one row after
   the other. Without a y they are from x.indptr[i] on. */
static void OF_INDEX(pack)(SparseWork *w, int64_t first, int64_t end, int worker)
{
    const INDEX *p = (const INDEX *)w->x.indptr, *q = (const INDEX *)w->y.indptr;
    const INDEX *pointers = (const INDEX *)w->z_indptr;
    int64_t i;
    (void)worker;
    for (i = first; i < end; i++) {
        const int64_t from = (int64_t)p[i] + (q == NULL ? 0 : q[i]), to = pointers[i], n = pointers[i + 1] - to;
        memcpy(w->z + to * w->itemsize, w->dense + from * w->itemsize, (size_t)(n * w->itemsize));
        memcpy((INDEX *)w->z_indices + to, (const INDEX *)w->other + from, (size_t)n * sizeof(INDEX));
    }
}

static void OF_INDEX(insert_indices)(INDEX *v, int64_t n)
{
    int64_t i, k;
    for (i = 1; i < n; i++) {
        const INDEX moved = v[i];
        for (k = i; k > 0 && v[k - 1] > moved; k--)
            v[k] = v[k - 1];
        v[k] = moved;
    }
}

/* Sort numbers by their lowest bytes first. */
static void OF_INDEX(sort_by_bytes)(INDEX *v, int64_t n, int64_t lowest, int64_t span, INDEX *spare)
{
    int64_t i, k;
    int shift;
    for (shift = 0; shift < 64 && span >> shift > 0; shift += 8) {
        int64_t starts[256] = {0}, total = 0;
        for (i = 0; i < n; i++)
            starts[((v[i] - lowest) >> shift) & 255]++;
        for (k = 0; k < 256; k++) {
            const int64_t count = starts[k];
            starts[k] = total;
            total += count;
        }
        for (i = 0; i < n; i++)
            spare[starts[((v[i] - lowest) >> shift) & 255]++] = v[i];
        memcpy(v, spare, (size_t)n * sizeof(INDEX));
    }
}

/* Sort indices; ``spare`` has room for as many. They are put into buckets by their highest bits, and
   sorted by insertion within these, as long as no bucket has many. */
static void OF_INDEX(sort_indices)(INDEX *v, int64_t n, INDEX *spare)
{
    uint32_t starts[256] = {0}, total = 0, most = 0;
    INDEX lowest, highest;
    int64_t i, k;
    int shift = 0;
    if (n <= FEW_INDICES || n > INT32_MAX) {
        if (n > FEW_INDICES)
            OF_INDEX(sort_by_bytes)(v, n, 0, INT64_MAX >> (64 - 8 * sizeof(INDEX)), spare);
        else
            OF_INDEX(insert_indices)(v, n);
        return;
    }
    lowest = highest = v[0];
    for (i = 1; i < n; i++) {
        lowest = v[i] < lowest ? v[i] : lowest;
        highest = v[i] > highest ? v[i] : highest;
    }
    while ((highest - lowest) >> shift > 255)
        shift++;
    for (i = 0; i < n; i++)
        starts[(v[i] - lowest) >> shift]++;
    for (k = 0; k < 256; k++) {
        const uint32_t count = starts[k];
        most = count > most ? count : most;
        starts[k] = total;
        total += count;
    }
    if (most > FEW_INDICES) {
        OF_INDEX(sort_by_bytes)(v, n, lowest, highest - lowest, spare);
        return;
    }
    for (i = 0; i < n; i++)
        spare[starts[(v[i] - lowest) >> shift]++] = v[i];
    OF_INDEX(insert_indices)(spare, n);
    memcpy(v, spare, (size_t)n * sizeof(INDEX));
}

#include "sparse_slices.h"
#include "sparse_block_places.h"

static int OF_INDEX(compare)(const void *x, const void *y)
{
    const INDEX a = *(const INDEX *)x, b = *(const INDEX *)y;
    return (a > b) - (a < b);
}

/* Cut the columns into parts with about as many entries, as a sample of them has it. Indices may lie anywhere. */
static void OF_INDEX(cut_columns)(const Compressed *x, int parts, int64_t *cuts)
{
    const INDEX *indices = (const INDEX *)x->indices;
    const int64_t stored = (int64_t)((const INDEX *)x->indptr)[x->rows];
    const int64_t n = parts == 1 ? 0 : stored < SAMPLED_INDICES ? stored : SAMPLED_INDICES;
    INDEX sample[SAMPLED_INDICES];
    int64_t k;
    int part;
    for (k = 0; k < n; k++)
        sample[k] = indices[k * (stored / n) + k % (stored / n)];
    qsort(sample, (size_t)n, sizeof(INDEX), OF_INDEX(compare));
    cuts[0] = 0;
    cuts[parts] = x->columns;
    for (part = 1; part < parts; part++) {
        const int64_t cut = n == 0 ? 0 : (int64_t)sample[n * part / parts];
        cuts[part] = cut < cuts[part - 1] ? cuts[part - 1] : cut > x->columns ? x->columns : cut;
    }
}

const IndexLoops OF_INDEX(index_loops) = {
    OF_INDEX(row_at), OF_INDEX(pointers_fit), OF_INDEX(indices_fit),
    OF_INDEX(check_rows), OF_INDEX(pairs_ascend), OF_INDEX(largest), OF_INDEX(sum_counts),
    OF_INDEX(number_rows), OF_INDEX(count_rows),
    OF_INDEX(transpose), OF_INDEX(scatter), OF_INDEX(gather), OF_INDEX(take_rows),
    OF_INDEX(count_taken), OF_INDEX(look_up), OF_INDEX(look_up_blocks), OF_INDEX(count_products), OF_INDEX(pack),
    OF_INDEX(clear_marks),
    OF_INDEX(look_up_pairs), OF_INDEX(count_cropped), OF_INDEX(crop), OF_INDEX(join_rows),
    OF_INDEX(count_blocks), OF_INDEX(rows_as_blocks), OF_INDEX(blocks_as_rows),
    OF_INDEX(order_blocks),
    OF_INDEX(join_pointers), OF_INDEX(bucket_rows), OF_INDEX(bucket_entries),
    OF_INDEX(cut_columns),
};

#undef INDEX
#undef OF_INDEX
