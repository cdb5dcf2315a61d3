/* Triangular systems and Cholesky decompositions of small matrices, for one type and one set of
   instructions: see row_product.h, which is included after this, for the names. */

/* Rows that are computed together: their sums stay in registers. */
#define TALL (MOST > 12 ? 8 : 4)
#define STRIP (2 * WIDTH)

/* Rows k to k + rows of z with A z = b, b being there before, for two vectors of columns; the rows
   above are there. The elements of A, a lower triangle with this diagonal, lie `down` and `along`
   apart, the rows of z `ld`. */
TARGET ALWAYS_INLINE void NAME(substituted)(const int rows, int64_t k, const T *a, int64_t down,
                                            int64_t along, const T *diagonal, T *z, int64_t ld)
{
    VECTOR sum[2 * TALL];
    const T *x = a + k * down;
    T *place = z + k * ld;
    UNROLL for (int i = 0; i < 2 * rows; i++)
        sum[i] = ZERO;
    for (int64_t p = 0; p < k; p++, x += along, z += ld) {
        const VECTOR v = LOAD(z), w = LOAD(z + WIDTH);
        UNROLL for (int i = 0; i < rows; i++) {
            const VECTOR y = ALL(x[i * down]);
            sum[2 * i] = FMA(y, v, sum[2 * i]);
            sum[2 * i + 1] = FMA(y, w, sum[2 * i + 1]);
        }
    }
    UNROLL for (int i = 0; i < rows; i++)
        UNROLL for (int j = 0; j < 2; j++) {
            VECTOR total = FMA(ALL(-1), sum[2 * i + j], LOAD(place + i * ld + j * WIDTH));
            UNROLL for (int q = 0; q < i; q++)
                total = FMA(ALL(-x[i * down + q * along]), sum[2 * q + j], total);
            sum[2 * i + j] = DIV(total, ALL(diagonal[i]));
            STORE(place + i * ld + j * WIDTH, sum[2 * i + j]);
        }
}

#define ROWS(n)                                                                                    \
    case n:                                                                                        \
        NAME(substituted)(n, k, a, down, along, diagonal, z, ld);                                  \
        break;
/* The same for up to TALL rows. */
TARGET static void NAME(substitute)(int64_t rows, int64_t k, const T *a, int64_t down,
                                    int64_t along, const T *diagonal, T *z, int64_t ld)
{
    switch (rows) {
        ROWS(1) ROWS(2) ROWS(3) ROWS(4)
#if MOST > 12
        ROWS(5) ROWS(6) ROWS(7) ROWS(8)
#endif
    }
}
#undef ROWS

/* z <- z' with A z' = z, z of n rows that lie `ld` apart (backwards, if it is negative) and m columns. The
   elements of A, a lower triangle, lie `down` and `along` apart; `unit`: its diagonal is not read, but
   ones. */
TARGET static void NAME(solve_triangle)(int64_t n, int64_t m, const T *a, int64_t down,
                                        int64_t along, int unit, T *z, int64_t ld)
{
    _Alignas(64) T strip[LARGEST_SMALL * STRIP];
    for (int64_t j = 0; j < m; j += STRIP, z += STRIP) {
        const int64_t here = m - j;
        const MASK first = MASK_OF(here < WIDTH ? here : WIDTH);
        const MASK second = MASK_OF(here < WIDTH ? 0 : here < STRIP ? here - WIDTH : WIDTH);
        for (int64_t i = 0; i < n; i++) {
            STORE(strip + i * STRIP, SOME(z + i * ld, first));
            STORE(strip + i * STRIP + WIDTH, SOME(z + i * ld + WIDTH, second));
        }
        for (int64_t k = 0; k < n; k += TALL) {
            const int64_t rows = n - k < TALL ? n - k : TALL;
            T diagonal[TALL];
            for (int64_t i = 0; i < rows; i++)
                diagonal[i] = unit ? 1 : a[(k + i) * (down + along)];
            NAME(substitute)(rows, k, a, down, along, diagonal, strip, STRIP);
        }
        for (int64_t i = 0; i < n; i++) {
            KEEP(z + i * ld, first, LOAD(strip + i * STRIP));
            KEEP(z + i * ld + WIDTH, second, LOAD(strip + i * STRIP + WIDTH));
        }
    }
}

/* The upper triangle of a block of rows on the diagonal of U, with U' U = the values before; the rows
   above are there. 0 where the matrix is not positive definite; NaN stays, as in LAPACK. */
TARGET static int NAME(factor_block)(int64_t rows, int64_t k, T *u, int64_t ld, T *diagonal)
{
    T *block = u + k * ld + k;
    T sum[TALL][WIDTH];
    VECTOR sums[TALL];
    UNROLL for (int i = 0; i < TALL; i++)
        sums[i] = ZERO;
    for (int64_t p = 0; p < k; p++) {
        const T *x = u + p * ld + k;
        const VECTOR v = LOAD(x);
        UNROLL for (int i = 0; i < TALL; i++)
            sums[i] = FMA(ALL(x[i]), v, sums[i]);
    }
    UNROLL for (int i = 0; i < TALL; i++)
        STORE(sum[i], sums[i]);
    for (int64_t i = 0; i < rows; i++) {
        for (int64_t j = i; j < rows; j++) {
            T total = block[i * ld + j] - sum[i][j];
            for (int64_t q = 0; q < i; q++)
                total -= block[q * ld + i] * block[q * ld + j];
            block[i * ld + j] = total;
        }
        if (block[i * ld + i] <= 0)
            return 0;
        diagonal[i] = (T)sqrt((double)block[i * ld + i]);
        for (int64_t j = i; j < rows; j++)
            block[i * ld + j] = j > i ? block[i * ld + j] / diagonal[i] : diagonal[i];
    }
    return 1;
}

/* u <- U, an upper triangle of n rows with U' U = u, of which the upper triangle is read, if the matrix is
   positive definite. Rows lie `ld` apart, at least n + STRIP numbers; those beyond column n
   are written over. */
TARGET static void NAME(factor)(int64_t n, T *u, int64_t ld, int *is_positive)
{
    *is_positive = 1;
    for (int64_t k = 0; k < n && *is_positive; k += TALL) {
        const int64_t rows = n - k < TALL ? n - k : TALL;
        T diagonal[TALL];
        *is_positive = NAME(factor_block)(rows, k, u, ld, diagonal);
        for (int64_t j = k + rows; *is_positive && j < n; j += STRIP)
            NAME(substitute)(rows, k, u, 1, ld, diagonal, u + j, ld);
    }
}
#undef TALL
#undef STRIP
