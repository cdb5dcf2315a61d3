/* Included for each dtype T of entries and INDEX of indices: products with matrices of blocks. Those have
   steps[0] rows and steps[1] columns each, and lie one after the other. */

/* Rows of blocks first to end of x times a dense matrix. */
static void NAME(block_dot)(SparseWork *w, int64_t first, int64_t end, int worker)
{
    const INDEX *indices = (const INDEX *)w->x.indices, *indptr = (const INDEX *)w->x.indptr;
    const int64_t r = w->steps[0], c = w->steps[1], columns = w->columns;
    int64_t b, i, j, k, l;
    (void)worker;
    for (b = first; b < end; b++)
        for (i = 0; i < r; i++) {
            T *z = (T *)w->z + (b * r + i) * columns;
            for (l = 0; l < columns; l++)
                z[l] = ZERO;
            for (k = indptr[b]; k < (int64_t)indptr[b + 1]; k++) {
                const T *block = (const T *)w->x.data + (k * r + i) * c;
                const T *dense = (const T *)w->dense + indices[k] * c * columns;
                for (j = 0; j < c; j++)
                    for (l = 0; l < columns; l++)
                        z[l] = PLUS(z[l], TIMES(block[j], dense[j * columns + l]));
            }
        }
}

/* Columns first to end of the transpose of x times a dense matrix; the result is zeroed. */
static void NAME(block_dot_transposed)(SparseWork *w, int64_t first, int64_t end, int worker)
{
    const INDEX *indices = (const INDEX *)w->x.indices, *indptr = (const INDEX *)w->x.indptr;
    const int64_t r = w->steps[0], c = w->steps[1], columns = w->columns;
    int64_t b, i, j, k, l;
    (void)worker;
    for (b = 0; b < w->x.rows; b++)
        for (k = indptr[b]; k < (int64_t)indptr[b + 1]; k++)
            for (i = 0; i < r; i++) {
                const T *block = (const T *)w->x.data + (k * r + i) * c;
                const T *dense = (const T *)w->dense + (b * r + i) * columns;
                for (j = 0; j < c; j++) {
                    T *z = (T *)w->z + (indices[k] * c + j) * columns;
                    for (l = first; l < end; l++)
                        z[l] = PLUS(z[l], TIMES(block[j], dense[l]));
                }
            }
}

/* The blocks of the product of two dense matrices, the second transposed, at the places of a pattern. */
static void NAME(sampled_blocks)(SparseWork *w, int64_t first, int64_t end, int worker)
{
    const INDEX *indices = (const INDEX *)w->x.indices, *indptr = (const INDEX *)w->x.indptr;
    const int64_t r = w->steps[0], c = w->steps[1], columns = w->columns;
    int64_t b, i, j, k, l;
    (void)worker;
    for (b = first; b < end; b++)
        for (k = indptr[b]; k < (int64_t)indptr[b + 1]; k++)
            for (i = 0; i < r; i++)
                for (j = 0; j < c; j++) {
                    const T *x = (const T *)w->dense + (b * r + i) * columns;
                    const T *y = (const T *)w->other + (indices[k] * c + j) * columns;
                    T sum = ZERO;
                    for (l = 0; l < columns; l++)
                        sum = PLUS(sum, TIMES(x[l], y[l]));
                    ((T *)w->z)[(k * r + i) * c + j] = sum;
                }
}

/* The blocks of rows in the order that order_blocks has found, those at one place added up. ``y`` has its positions and
   indices, with the pointers of x; blocks have ``columns`` elements. */
static void NAME(add_blocks)(SparseWork *w, int64_t first, int64_t end, int worker)
{
    const INDEX *indices = (const INDEX *)w->y.indices, *indptr = (const INDEX *)w->x.indptr;
    const INDEX *pointers = (const INDEX *)w->z_indptr;
    const int64_t *places = (const int64_t *)w->y.data, size = w->columns;
    int64_t i, k, l;
    (void)worker;
    for (i = first; i < end; i++) {
        int64_t at = pointers[i] - 1;
        for (k = indptr[i]; k < (int64_t)indptr[i + 1]; k++) {
            const T *block = (const T *)w->x.data + places[k] * size;
            if (k == (int64_t)indptr[i] || indices[k] != indices[k - 1]) {
                ((INDEX *)w->z_indices)[++at] = indices[k];
                memcpy((T *)w->z + at * size, block, (size_t)size * sizeof(T));
            } else {
                T *z = (T *)w->z + at * size;
                for (l = 0; l < size; l++)
                    z[l] = PLUS(z[l], block[l]);
            }
        }
    }
}
