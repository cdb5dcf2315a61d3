/* Products of matrices of which one side is short, for one type and one set of instructions: see
   row_product.h, which is included after this, for the names. */

#define LAST(p) (whole ? LOAD(p) : SOME(p, mask))

/* z <- beta z + alpha A B for `rows` rows and `count` vectors of columns, the last of which is whole,
   or `mask` says which are there; all but this are constants, and all sums stay in registers. Where
   rows of z are `close`, one begins where that before it ends, and may be begun by that. */
TARGET ALWAYS_INLINE void NAME(block)(const int rows, const int count, int64_t k, const T *a,
                                      int64_t down, int64_t along, const T *b, int64_t ld, T alpha,
                                      T beta, T *z, int64_t ldz, MASK mask, const int whole,
                                      const int ahead, int close)
{
    VECTOR sum[24];
    UNROLL for (int i = 0; i < rows * count; i++)
        sum[i] = ZERO;
    if (!ahead && sizeof(VECTOR) == 64)
        UNROLL for (int i = 0; i < rows; i++)
            UNROLL for (int j = 0; j < count; j++)
                __builtin_prefetch(z + i * ldz + (count + j) * WIDTH, 1);
    for (int64_t p = 0; p < k; p++, a += along, b += ld) {
        VECTOR v[4];
        UNROLL for (int j = 0; j < count - 1; j++)
            v[j] = LOAD(b + j * WIDTH);
        v[count - 1] = LAST(b + (count - 1) * WIDTH);
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
            const T *place = z + i * ldz + j * WIDTH;
            if (beta != 0)
                total = FMA(ALL(beta), j < count - 1 ? LOAD(place) : LAST(place), total);
            sum[i * count + j] = total;
        }
    UNROLL for (int i = 0; i < rows; i++) {
        UNROLL for (int j = 0; j < count - 1; j++)
            STORE(z + i * ldz + j * WIDTH, sum[i * count + j]);
        if (whole || (close && i < rows - 1))
            STORE(z + i * ldz + (count - 1) * WIDTH, sum[i * count + count - 1]);
        else
            KEEP(z + i * ldz + (count - 1) * WIDTH, mask, sum[i * count + count - 1]);
    }
}
#undef LAST

/* The same for up to TALLEST rows and `count` vectors. */
#define TALLEST (MOST > 12 ? 12 : 6)
/* Or this many, where there are few terms, and z dominates the time. */
#define BAND (MOST > 12 ? 12 : 4)
#if MOST > 12
#define EACH_HEIGHT                                                                                \
    ROWS(1) ROWS(2) ROWS(3) ROWS(4) ROWS(5) ROWS(6)                                                \
    ROWS(7) ROWS(8) ROWS(9) ROWS(10) ROWS(11) ROWS(12)
#else
#define EACH_HEIGHT ROWS(1) ROWS(2) ROWS(3) ROWS(4) ROWS(5) ROWS(6)
#endif
#define ROWS(n)                                                                                    \
    case n:                                                                                        \
        NAME(block)(n, count, k, a, down, along, b, ld, alpha, beta, z, ldz, mask, whole, 1, 0);   \
        break;
TARGET ALWAYS_INLINE void NAME(strip)(const int count, int64_t rows, int64_t k, const T *a,
                                      int64_t down, int64_t along, const T *b, int64_t ld, T alpha,
                                      T beta, T *z, int64_t ldz, MASK mask, const int whole)
{
    switch (rows) {
        EACH_HEIGHT
    }
}
#undef ROWS

/* The same for n rows, of the `left` columns that two vectors hold at most. */
TARGET static void NAME(panel)(int64_t n, int64_t left, int64_t k, const T *a, int64_t down,
                               int64_t along, const T *b, int64_t ld, T alpha, T beta, T *z,
                               int64_t ldz)
{
    int64_t blocks = (n + TALLEST - 1) / TALLEST, rows = (n + blocks - 1) / blocks;
    MASK mask = MASK_OF(left > WIDTH ? left - WIDTH : left);
    for (int64_t i = 0; i < n; i += rows) {
        int64_t here = n - i < rows ? n - i : rows;
        const T *x = a + i * down;
        T *place = z + i * ldz;
        if (left == 2 * WIDTH)
            NAME(strip)(2, here, k, x, down, along, b, ld, alpha, beta, place, ldz, mask, 1);
        else if (left > WIDTH)
            NAME(strip)(2, here, k, x, down, along, b, ld, alpha, beta, place, ldz, mask, 0);
        else
            NAME(strip)(1, here, k, x, down, along, b, ld, alpha, beta, place, ldz, mask, 0);
    }
}

/* The same for `rows` rows, a constant, of m columns, which are those of z. */
TARGET ALWAYS_INLINE void NAME(band)(const int rows, int64_t k, int64_t m, T alpha, const T *a,
                                     int64_t down, int64_t along, const T *b, int64_t ld, T beta,
                                     T *z)
{
    int64_t j = 0;
    for (; j + 2 * WIDTH <= m; j += 2 * WIDTH)
        NAME(block)(rows, 2, k, a, down, along, b + j, ld, alpha, beta, z + j, m, MASK_OF(0), 1, 0,
                    0);
    int64_t left = m - j;
    /* Elements written beyond a row belong to the next one. */
    int close = sizeof(VECTOR) == 32 && j == 0 && 2 * m >= WIDTH;
    MASK mask = MASK_OF(left > WIDTH ? left - WIDTH : left);
    if (left > WIDTH)
        NAME(block)(rows, 2, k, a, down, along, b + j, ld, alpha, beta, z + j, m, mask, 0, 0, close);
    else if (left)
        NAME(block)(rows, 1, k, a, down, along, b + j, ld, alpha, beta, z + j, m, mask, 0, 0, close);
}

/* The same for up to BAND rows. */
#define ROWS(n)                                                                                    \
    case n:                                                                                        \
        NAME(band)(n, k, m, alpha, a, down, along, b, ld, beta, z);                                \
        break;
TARGET static void NAME(bands)(int64_t rows, int64_t k, int64_t m, T alpha, const T *a,
                               int64_t down, int64_t along, const T *b, int64_t ld, T beta, T *z)
{
    switch (rows) {
        EACH_HEIGHT
    }
}
#undef ROWS
#undef EACH_HEIGHT

/* A vector of beta z + alpha x y for one number x. */
#define CHANGED(j)                                                                                 \
    (has_beta ? FMA(ALL(beta), LOAD(z + (j)), MUL(ALL(alpha), FMA(v, LOAD(y + (j)), ZERO)))        \
              : MUL(ALL(alpha), FMA(v, LOAD(y + (j)), ZERO)))

/* z <- beta z + alpha x y for one number x and m >= WIDTH numbers; `has_beta`, a constant, says whether
   beta is not 0. Vectors between both ends are aligned; those at the ends may overlap them, so they are
   computed before z changes. */
TARGET ALWAYS_INLINE void NAME(changed_row)(const int has_beta, int64_t m, T alpha, T x, const T *y,
                                            T beta, T *z)
{
    const VECTOR v = ALL(x), first = CHANGED(0), last = CHANGED(m - WIDTH);
    int64_t j = (int64_t)(-(uintptr_t)z % sizeof(VECTOR) / sizeof(T));
    for (; j + 4 * WIDTH <= m; j += 4 * WIDTH)
        UNROLL for (int i = 0; i < 4; i++)
            STORE(z + j + i * WIDTH, CHANGED(j + i * WIDTH));
    for (; j + WIDTH <= m; j += WIDTH)
        STORE(z + j, CHANGED(j));
    STORE(z, first);
    STORE(z + m - WIDTH, last);
}
#undef CHANGED

/* z <- beta z + alpha x y' for n numbers x, `step` apart, and m >= WIDTH numbers y; the last rows first,
   as in ``thin``. */
TARGET static void NAME(outer)(int64_t n, int64_t m, T alpha, const T *x, int64_t step, const T *y,
                               T beta, T *z)
{
    const int64_t block = FORWARD_BLOCK / (m * (int64_t)sizeof(T)) + 1;
    for (int64_t end = n; end > 0; end -= block)
        for (int64_t i = end > block ? end - block : 0; i < end; i++)
            if (beta != 0)
                NAME(changed_row)(1, m, alpha, x[i * step], y, beta, z + i * m);
            else
                NAME(changed_row)(0, m, alpha, x[i * step], y, beta, z + i * m);
}

/* z <- beta z + alpha A B for n rows and m columns: the elements of A lie `down` and `along` apart,
   the rows of B `ld`, those of z m. Best where n, k or m is small. */
TARGET static void NAME(thin)(int64_t n, int64_t k, int64_t m, T alpha, const T *a, int64_t down,
                              int64_t along, const T *b, int64_t ld, T beta, T *z)
{
    /* B is read once where there are few rows, z where there are few terms. Reading goes down
       the rows and writing goes up: training reads weights, then changes them, and finds the
       last rows in the cache. */
    if (n == 0 || m == 0)
        return;
    if (k == 1 && m >= WIDTH) {
        NAME(outer)(n, m, alpha, a, down, b, beta, z);
        return;
    }
    if (n > k) {
        for (int64_t i = (n - 1) / BAND * BAND; i >= 0; i -= BAND)
            NAME(bands)(n - i < BAND ? n - i : BAND, k, m, alpha, a + i * down, down, along, b, ld,
                        beta, z + i * m);
        return;
    }
    int64_t part = n <= FEW_ROWS ? SLICE(ld) : k + 1;
    for (int64_t p = 0; p == 0 || p < k; p += part) {
        int64_t terms = k - p < part ? k - p : part;
        for (int64_t j = 0; j < m; j += 2 * WIDTH)
            NAME(panel)(n, m - j < 2 * WIDTH ? m - j : 2 * WIDTH, terms, a + p * along, down, along,
                        b + p * ld + j, ld, alpha, p ? 1 : beta, z + j, m);
    }
}

#define FIRST(at) SOME(at, mask)
#define TERMS(READ)                                                                                \
    {                                                                                              \
        VECTOR v[4];                                                                               \
        UNROLL for (int j = 0; j < count; j++)                                                     \
            v[j] = READ(w + j * ld + p);                                                           \
        UNROLL for (int i = 0; i < rows; i++) {                                                    \
            VECTOR x = READ(a + i * lda + p);                                                      \
            UNROLL for (int j = 0; j < count; j++)                                                 \
                sum[i * count + j] = FMA(x, v[j], sum[i * count + j]);                             \
        }                                                                                          \
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
    for (; p + WIDTH <= k; p += WIDTH)
        TERMS(LOAD)
    if (p < k) {
        MASK mask = MASK_OF(k - p);
        TERMS(FIRST)
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
#undef TERMS
#undef FIRST
#undef ACROSS
#undef BAND
#undef TALLEST
