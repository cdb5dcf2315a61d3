/* Included by sparse_values.h: rows of x times a vector.

   A loop over the entries of a row ends somewhere else in every row, and the processor guesses wrong where. So
   the products of many rows are made in one loop and kept near, and a row of up to sixteen products is summed
   without a branch: two vectors, whose places behind the row are masked. */

#define PRODUCTS ((int64_t)(16384 / sizeof(T)))
#define ROWS_AT_ONCE 128

#ifdef BITS
typedef T NAME(Lanes) __attribute__((vector_size(8 * sizeof(T)), aligned(sizeof(T)), may_alias));
typedef BITS NAME(Masks) __attribute__((vector_size(8 * sizeof(T)), aligned(sizeof(T)), may_alias));

static inline T NAME(row_sum)(const T *products, int64_t n)
{
    static const BITS kept[32] = {-1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1};
    const BITS *masks;
    NAME(Lanes) sums = {0};
    for (; n > 16; n -= 8, products += 8)
        sums += *(const NAME(Lanes) *)products;
    masks = kept + 16 - n;
    sums += (NAME(Lanes))(*(const NAME(Masks) *)products & *(const NAME(Masks) *)masks);
    sums += (NAME(Lanes))(*(const NAME(Masks) *)(products + 8) & *(const NAME(Masks) *)(masks + 8));
    return ((sums[0] + sums[4]) + (sums[2] + sums[6])) + ((sums[1] + sums[5]) + (sums[3] + sums[7]));
}
#else
static inline T NAME(row_sum)(const T *products, int64_t n)
{
    T sum = ZERO;
    int64_t k;
    for (k = 0; k < n; k++)
        sum = PLUS(sum, products[k]);
    return sum;
}
#endif

/* 0: an index lies outside of the shape. */
static inline int NAME(multiply_entries)(const SparseWork *w, int64_t begin, int64_t n, T *products)
{
    const T *data = (const T *)w->x.data + begin, *dense = (const T *)w->dense;
    const INDEX *indices = (const INDEX *)w->x.indices + begin;
    const uint64_t limit = (uint64_t)w->x.columns;
    int64_t k;
    for (k = 0; k < n; k++) {
        if ((uint64_t)indices[k] >= limit)
            return 0;
        products[k] = TIMES(data[k], dense[indices[k]]);
    }
    return 1;
}

/* 0: an index lies outside of the shape. */
static int NAME(dot_long_row)(const SparseWork *w, int64_t i, T *products)
{
    const INDEX *indptr = (const INDEX *)w->x.indptr;
    int64_t begin = indptr[i], n;
    T sum = ZERO;
    for (; begin < (int64_t)indptr[i + 1]; begin += n) {
        n = (int64_t)indptr[i + 1] - begin < PRODUCTS ? (int64_t)indptr[i + 1] - begin : PRODUCTS;
        if (!NAME(multiply_entries)(w, begin, n, products))
            return 0;
        sum = PLUS(sum, NAME(row_sum)(products, n));
    }
    NAME(finish)(w, i, 1, &sum);
    return 1;
}

/* 0: an index lies outside of the shape. */
static int NAME(dot_vector)(const SparseWork *w, int64_t first, int64_t end)
{
    const INDEX *indptr = (const INDEX *)w->x.indptr;
    T products[PRODUCTS + 16];
    int64_t i = first;
    while (i < end) {
        const int64_t begin = indptr[i];
        int64_t stop = end - i < ROWS_AT_ONCE ? end : i + ROWS_AT_ONCE;
        const T *row = products;
        while (stop > i + 1 && (int64_t)indptr[stop] - begin > PRODUCTS)
            stop = i + (stop - i) / 2;
        if ((int64_t)indptr[stop] - begin > PRODUCTS) {
            if (!NAME(dot_long_row)(w, i++, products))
                return 0;
            continue;
        }
        if (!NAME(multiply_entries)(w, begin, indptr[stop] - begin, products))
            return 0;
        for (; i < stop; i++) {
            const int64_t n = (int64_t)indptr[i + 1] - indptr[i];
            const T sum = NAME(row_sum)(row, n);
            NAME(finish)(w, i, 1, &sum);
            row += n;
        }
    }
    return 1;
}

#undef PRODUCTS
#undef ROWS_AT_ONCE
