/* Products of matrices of which one side is short, for one type and one set of instructions: see
   row_product.h, which is included after this, for the names. */

/* z <- beta z + alpha A B for `rows` rows and `count` vectors of columns, of the last of which
   `mask` says which are there; both numbers are constants, and all sums stay in registers. */
TARGET ALWAYS_INLINE void NAME(block)(const int rows, const int count, int64_t k, const T *a,
                                      int64_t down, int64_t along, const T *b, int64_t ld, T alpha,
                                      T beta, T *z, int64_t ldz, MASK mask, const int ahead)
{
    VECTOR sum[24];
    UNROLL for (int i = 0; i < rows * count; i++)
        sum[i] = ZERO;
    if (!ahead)
        UNROLL for (int i = 0; i < rows; i++)
            UNROLL for (int j = 0; j < count; j++)
                __builtin_prefetch(z + i * ldz + (count + j) * WIDTH, 1);
    for (int64_t p = 0; p < k; p++, a += along, b += ld) {
        VECTOR v[4];
        UNROLL for (int j = 0; j < count - 1; j++)
            v[j] = LOAD(b + j * WIDTH);
        v[count - 1] = SOME(b + (count - 1) * WIDTH, mask);
        /* Rows lie too far apart for the processor to see what comes next. */
        if (ahead)
            UNROLL for (int j = 0; j < count; j++)
                __builtin_prefetch(b + 8 * ld + j * WIDTH);
        UNROLL for (int i = 0; i < rows; i++) {
            VECTOR x = ALL(a[i * down]);
            UNROLL for (int j = 0; j < count; j++)
                sum[i * count + j] = FMA(x, v[j], sum[i * count + j]);
        }
    }
    /* All are read before any is written: a processor waits long to read beside a masked write. */
    UNROLL for (int i = 0; i < rows; i++)
        UNROLL for (int j = 0; j < count; j++) {
            VECTOR total = MUL(ALL(alpha), sum[i * count + j]);
            if (beta != 0) {
                MASK here = j < count - 1 ? MASK_OF(WIDTH) : mask;
                total = FMA(ALL(beta), SOME(z + i * ldz + j * WIDTH, here), total);
            }
            sum[i * count + j] = total;
        }
    UNROLL for (int i = 0; i < rows; i++)
        UNROLL for (int j = 0; j < count; j++)
            KEEP(z + i * ldz + j * WIDTH, j < count - 1 ? MASK_OF(WIDTH) : mask, sum[i * count + j]);
}

/* The same for up to TALLEST rows and `count` vectors. */
#define TALLEST (MOST > 12 ? 12 : 6)
#define ROWS(n)                                                                                    \
    case n:                                                                                        \
        NAME(block)(n, count, k, a, down, along, b, ld, alpha, beta, z, ldz, mask, ahead);                \
        break;
TARGET ALWAYS_INLINE void NAME(strip)(const int count, int64_t rows, int64_t k, const T *a,
                                      int64_t down, int64_t along, const T *b, int64_t ld, T alpha,
                                      T beta, T *z, int64_t ldz, MASK mask, const int ahead)
{
    switch (rows) {
        ROWS(1) ROWS(2) ROWS(3) ROWS(4) ROWS(5) ROWS(6)
#if MOST > 12
        ROWS(7) ROWS(8) ROWS(9) ROWS(10) ROWS(11) ROWS(12)
#endif
    }
}
#undef ROWS

/* The same for n rows, of the `left` columns that two vectors hold at most. */
TARGET static void NAME(panel)(int64_t n, int64_t left, int64_t k, const T *a, int64_t down,
                               int64_t along, const T *b, int64_t ld, T alpha, T beta, T *z,
                               int64_t ldz, const int ahead)
{
    int64_t blocks = (n + TALLEST - 1) / TALLEST, rows = (n + blocks - 1) / blocks;
    MASK mask = MASK_OF(left > WIDTH ? left - WIDTH : left);
    for (int64_t i = 0; i < n; i += rows) {
        int64_t here = n - i < rows ? n - i : rows;
        if (left > WIDTH)
            NAME(strip)(2, here, k, a + i * down, down, along, b, ld, alpha, beta, z + i * ldz, ldz,
                        mask, ahead);
        else
            NAME(strip)(1, here, k, a + i * down, down, along, b, ld, alpha, beta, z + i * ldz, ldz,
                        mask, ahead);
    }
}

/* z <- beta z + alpha A B for n rows and m columns: the elements of A lie `down` and `along` apart,
   the rows of B `ld`, those of z m. Best where n, k or m is small. */
TARGET static void NAME(thin)(int64_t n, int64_t k, int64_t m, T alpha, const T *a, int64_t down,
                              int64_t along, const T *b, int64_t ld, T beta, T *z)
{
    /* B is read once where there are few rows, z where there are few terms. What is read goes down
       the rows and what is changed goes up: training reads weights, then changes them, and finds the
       rows that it read last in the cache. */
    if (n == 0 || m == 0)
        return;
    int few = n <= k;
    int64_t block = few ? n : TALLEST, part = n <= FEW_ROWS && few ? SLICE(ld) : k + 1;
    for (int64_t p = 0; p == 0 || p < k; p += part)
        for (int64_t i = (n - 1) / block * block; i >= 0; i -= block) {
            int64_t rows = n - i < block ? n - i : block, terms = k - p < part ? k - p : part;
            for (int64_t j = 0; j < m; j += 2 * WIDTH) {
                int64_t left = m - j < 2 * WIDTH ? m - j : 2 * WIDTH;
                NAME(panel)(rows, left, terms, a + i * down + p * along, down, along,
                            b + p * ld + j, ld, alpha, p ? 1 : beta, z + i * m + j, m, few);
            }
        }
}

/* z <- beta z + alpha A W' for `rows` rows of A and `count` rows of W, both constants. */
TARGET ALWAYS_INLINE void NAME(dots)(const int rows, const int count, int64_t k, const T *a,
                                     int64_t lda, const T *w, int64_t ld, T alpha, T beta, T *z,
                                     int64_t ldz)
{
    VECTOR sum[24];
    int64_t p = 0;
    UNROLL for (int i = 0; i < rows * count; i++)
        sum[i] = ZERO;
    for (; p < k; p += WIDTH) {
        MASK mask = MASK_OF(k - p < WIDTH ? k - p : WIDTH);
        VECTOR v[4];
        UNROLL for (int j = 0; j < count; j++)
            v[j] = SOME(w + j * ld + p, mask);
        UNROLL for (int i = 0; i < rows; i++) {
            VECTOR x = SOME(a + i * lda + p, mask);
            UNROLL for (int j = 0; j < count; j++)
                sum[i * count + j] = FMA(x, v[j], sum[i * count + j]);
        }
    }
    UNROLL for (int i = 0; i < rows; i++)
        UNROLL for (int j = 0; j < count; j++) {
            T *place = z + i * ldz + j, total = alpha * SUM(sum[i * count + j]);
            *place = beta != 0 ? beta * *place + total : total;
        }
}

#define ACROSS (MOST > 12 ? 4 : 2)
#define ROWS(n)                                                                                    \
    case n:                                                                                        \
        if (here == ACROSS)                                                                        \
            NAME(dots)(n, ACROSS, k, x, lda, w + j * ld, ld, alpha, beta, place, m);               \
        else                                                                                       \
            for (int64_t q = 0; q < here; q++)                                                     \
                NAME(dots)(n, 1, k, x, lda, w + (j + q) * ld, ld, alpha, beta, place + q, m);      \
        break;

/* z <- beta z + alpha A W' for n rows of A, `lda` apart, and m rows of W, `ld` apart, of k numbers
   each. Best where n is small. */
TARGET static void NAME(thin_transposed)(int64_t n, int64_t k, int64_t m, T alpha, const T *a,
                                         int64_t lda, const T *w, int64_t ld, T beta, T *z)
{
    int64_t blocks = (n + 4) / 5, rows = n ? (n + blocks - 1) / blocks : 1;
    for (int64_t j = 0; j < m; j += ACROSS) {
        int64_t here = m - j < ACROSS ? m - j : ACROSS;
        for (int64_t i = 0; i < n; i += rows) {
            const T *x = a + i * lda;
            T *place = z + i * m + j;
            switch (n - i < rows ? n - i : rows) {
                ROWS(1) ROWS(2) ROWS(3) ROWS(4) ROWS(5)
            }
        }
    }
}
#undef ROWS
#undef ACROSS
#undef TALLEST
