/* Included by sparse_values.h: rows of x times a vector.

   A loop over the entries of a row ends somewhere else in every row, and the processor guesses wrong where. So
   the products of many rows are made in one loop and kept near, and a short row's products are summed without a
   branch: four vectors, whose places behind the row are masked. */

#define PRODUCTS ((int64_t)(16384 / sizeof(T)))
#define ROWS_AT_ONCE 128

#if defined(BITS) && defined(__GNUC__)
#define LENGTH ((int)(32 / sizeof(T)))
typedef T NAME(Lanes) __attribute__((vector_size(32), aligned(sizeof(T)), may_alias));
typedef BITS NAME(Masks) __attribute__((vector_size(32), aligned(sizeof(T)), may_alias));

/* The vector at a place, where the mask is set, and else 0. */
#define KEPT(at) ((NAME(Lanes))(*(const NAME(Masks) *)(products + (at)) & *(const NAME(Masks) *)(masks + (at))))

static inline T NAME(row_sum)(const T *products, int64_t n)
{
    static const BITS set[8 * LENGTH] = {[0 ... 4 * LENGTH - 1] = -1};
    const BITS *masks;
    NAME(Lanes) low = {0}, high = {0};
    T sums[8];
    for (; n > 4 * LENGTH; n -= 2 * LENGTH, products += 2 * LENGTH) {
        low += *(const NAME(Lanes) *)products;
        high += *(const NAME(Lanes) *)(products + LENGTH);
    }
    masks = set + 4 * LENGTH - n;
    low += KEPT(0);
    high += KEPT(LENGTH);
    low += KEPT(2 * LENGTH);
    high += KEPT(3 * LENGTH);
    low += high;
    memcpy(sums, &low, sizeof low);
    if (LENGTH == 4)
        return (sums[0] + sums[2]) + (sums[1] + sums[3]);
    return ((sums[0] + sums[4]) + (sums[2] + sums[6])) + ((sums[1] + sums[5]) + (sums[3] + sums[7]));
}
#undef LENGTH
#undef KEPT
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
    T products[PRODUCTS + 32];
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
