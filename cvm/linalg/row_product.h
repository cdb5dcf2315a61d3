/* Products of a row and a matrix for one type and one set of instructions: included once for each,
   with T, VECTOR, WIDTH, MOST (vectors that stay in registers beside two more), NAME, TARGET, ZERO,
   ALL(x), LOAD(p), MASK, MASK_OF(n) (the first n lanes), MASK_FROM(n) (all but these), SOME(p, mask),
   STORE(p, v), KEEP(p, mask, v), FMA(x, y, z), MUL(x, y), DIV(x, y) and SUM(v) defined. */

/* z <- beta c + alpha x W for `count` vectors of columns; `mask` says which columns of the last
   vector exist. `count` and `parts` are constants: `parts` sums are computed side by side, to
   hide the latency of additions. */
TARGET ALWAYS_INLINE void NAME(columns)(const int count, const int parts, int64_t k, const T *x,
                                        int64_t step, const T *w, int64_t ld, T alpha, T beta,
                                        const T *c, T *z, MASK mask)
{
    VECTOR sum[MOST];
    int64_t i = 0;
    UNROLL for (int j = 0; j < count * parts; j++)
        sum[j] = ZERO;
    for (; i + parts <= k; i += parts)
        UNROLL for (int p = 0; p < parts; p++) {
            const T *row = w + (i + p) * ld;
            VECTOR v = ALL(x[(i + p) * step]);
            UNROLL for (int j = 0; j < count - 1; j++)
                sum[p * count + j] = FMA(v, LOAD(row + j * WIDTH), sum[p * count + j]);
            VECTOR last = SOME(row + (count - 1) * WIDTH, mask);
            sum[p * count + count - 1] = FMA(v, last, sum[p * count + count - 1]);
        }
    for (; i < k; i++) {
        VECTOR v = ALL(x[i * step]);
        UNROLL for (int j = 0; j < count - 1; j++)
            sum[j] = FMA(v, LOAD(w + i * ld + j * WIDTH), sum[j]);
        sum[count - 1] = FMA(v, SOME(w + i * ld + (count - 1) * WIDTH, mask), sum[count - 1]);
    }
    UNROLL for (int j = 0; j < count; j++) {
        VECTOR total = sum[j];
        UNROLL for (int p = 1; p < parts; p++)
            total = FMA(ALL(1), sum[p * count + j], total);
        total = MUL(ALL(alpha), total);
        const T *added = c + j * WIDTH;
        if (beta != 0)
            total = FMA(ALL(beta), j < count - 1 ? LOAD(added) : SOME(added, mask), total);
        if (j < count - 1)
            STORE(z + j * WIDTH, total);
        else
            KEEP(z + j * WIDTH, mask, total);
    }
}

#define CASE(n)                                                                                    \
    case n:                                                                                        \
        NAME(columns)(n, (n) < 4 ? 4 : 2 * (n) <= MOST ? 2 : 1, k, x, step, w, ld, alpha, beta, c, z, \
                      mask);                                                                       \
        break;

/* z <- beta c + alpha x W, a panel of columns after the other. */
TARGET static void NAME(row_panels)(int64_t k, int64_t m, T alpha, const T *x, int64_t step,
                                   const T *w, int64_t ld, T beta, const T *c, T *z)
{
    int64_t vectors = (m + WIDTH - 1) / WIDTH, panels = (vectors + MOST - 1) / MOST;
    int64_t width = panels ? (vectors + panels - 1) / panels : 0;
    for (; m > 0; m -= width * WIDTH, w += width * WIDTH, c += width * WIDTH, z += width * WIDTH) {
        int64_t left = (m + WIDTH - 1) / WIDTH, count = left < width ? left : width;
        int64_t rest = m - (count - 1) * WIDTH;
        MASK mask = MASK_OF(rest < WIDTH ? rest : WIDTH);
        switch (count) {
            CASE(1) CASE(2) CASE(3) CASE(4) CASE(5) CASE(6) CASE(7) CASE(8) CASE(9) CASE(10)
            CASE(11) CASE(12)
#if MOST > 12
            CASE(13) CASE(14) CASE(15) CASE(16) CASE(17) CASE(18) CASE(19) CASE(20)
            CASE(21) CASE(22) CASE(23) CASE(24) CASE(25) CASE(26) CASE(27) CASE(28)
#endif
        }
    }
}
#undef CASE

/* sums <- x W for `count` vectors of columns, a constant. `first` and `last` say which columns of the
   outer vectors exist. */
TARGET ALWAYS_INLINE void NAME(sums_ahead)(const int count, int64_t k, const T *x, int64_t step,
                                           const T *w, int64_t ld, MASK first, MASK last, T *sums)
{
    VECTOR sum[MOST];
    UNROLL for (int j = 0; j < count; j++)
        sum[j] = ZERO;
    for (int64_t i = 0; i < k; i++, x += step, w += ld) {
        const VECTOR v = ALL(*x);
        UNROLL for (int j = 0; j < count - 1; j += CACHE_LINE / sizeof(VECTOR))
            __builtin_prefetch(w + ROWS_AHEAD * ld + j * WIDTH);
        __builtin_prefetch(w + ROWS_AHEAD * ld + (count - 1) * WIDTH);
        sum[0] = FMA(v, SOME(w, first), sum[0]);
        UNROLL for (int j = 1; j < count - 1; j++)
            sum[j] = FMA(v, LOAD(w + j * WIDTH), sum[j]);
        sum[count - 1] = FMA(v, SOME(w + (count - 1) * WIDTH, last), sum[count - 1]);
    }
    UNROLL for (int j = 0; j < count; j++)
        STORE(sums + j * WIDTH, sum[j]);
}

/* z <- beta c + alpha sums, n numbers. */
TARGET static void NAME(keep_sums)(int64_t n, T alpha, const T *sums, T beta, const T *c, T *z)
{
    for (int64_t j = 0; j < n; j++) {
        const T total = alpha * sums[j];
        z[j] = beta != 0 ? beta * c[j] + total : total;
    }
}

#define CASE(n)                                                                                    \
    case n:                                                                                        \
        NAME(sums_ahead)(n, k, x, step, w + begin * WIDTH, ld, first, last, sums);                 \
        break;

/* z <- beta c + alpha x W for a matrix of more columns than MOST vectors that is not in the cache. Where
   all rows are aligned alike, panels begin with cache lines (vectors, where rows are not of whole lines),
   the first one before column 0. Each result is one sum over the rows, so it depends neither on the
   address nor on the order of panels. */
TARGET static void NAME(row_times_ahead)(int64_t k, int64_t m, T alpha, const T *x, int64_t step,
                                       const T *w, int64_t ld, T beta, const T *c, T *z)
{
    const int64_t in_line = CACHE_LINE / sizeof(T);
    const int64_t unit = ld % in_line ? ld % WIDTH ? 1 : WIDTH : in_line;
    const int64_t per_line = unit == in_line ? in_line / WIDTH : 1;
    const int64_t skipped = (int64_t)((uintptr_t)w / sizeof(T)) % unit;
    const int64_t all = skipped + m, vectors = (all + WIDTH - 1) / WIDTH;
    const int64_t lines = (vectors + per_line - 1) / per_line, panels = (vectors + MOST - 1) / MOST;
    const int is_backwards = turn_around(w);
    T sums[MOST * WIDTH];
    w -= skipped;
    c -= skipped;
    z -= skipped;
    for (int64_t i = 0; i < panels; i++) {
        const int64_t panel = is_backwards ? panels - 1 - i : i;
        const int64_t begin = panel > 0 ? panel * lines / panels * per_line : skipped / WIDTH;
        const int64_t last_end = (panel + 1) * lines / panels * per_line;
        const int64_t end = last_end < vectors ? last_end : vectors;
        const int64_t stop = end < vectors ? end * WIDTH : all;
        const MASK first = MASK_FROM(panel > 0 ? 0 : skipped % WIDTH);
        const MASK last = MASK_OF(stop - (end - 1) * WIDTH);
        switch (end - begin) {
#if MOST > 12
            CASE(14) CASE(15) CASE(16) CASE(17) CASE(18) CASE(19) CASE(20) CASE(21)
            CASE(22) CASE(23) CASE(24) CASE(25) CASE(26) CASE(27) CASE(28)
#else
            CASE(5) CASE(6) CASE(7) CASE(8) CASE(9) CASE(10) CASE(11) CASE(12)
#endif
        }
        const int64_t start = panel > 0 ? begin * WIDTH : skipped;
        NAME(keep_sums)(stop - start, alpha, sums + start - begin * WIDTH, beta, c + start, z + start);
    }
}
#undef CASE

/* sums <- sums + x W for `rows` rows, a constant, of whole vectors of columns. */
TARGET ALWAYS_INLINE void NAME(rows_added)(const int rows, int64_t m, const T *x, int64_t step,
                                           const T *w, int64_t ld, T *sums)
{
    VECTOR v[ROWS_TOGETHER];
    UNROLL for (int i = 0; i < rows; i++)
        v[i] = ALL(x[i * step]);
    for (int64_t j = 0; j < m; j += WIDTH) {
        VECTOR sum = LOAD(sums + j);
        UNROLL for (int i = 0; i < rows; i++)
            sum = FMA(v[i], LOAD(w + i * ld + j), sum);
        STORE(sums + j, sum);
    }
}

/* z <- beta c + alpha x W for a matrix of whole vectors of columns that is not in the cache, and whose rows
   would be in the way of one another there: some rows at once, each from its first element to the last, as
   the processor reads ahead what lies side by side. Each result is the same sum as that of `row_times_ahead`. */
TARGET static void NAME(row_times_along)(int64_t k, int64_t m, T alpha, const T *x, int64_t step,
                                         const T *w, int64_t ld, T beta, const T *c, T *z)
{
    _Alignas(64) T sums[STREAM / sizeof(T)];
    const int64_t width = STREAM / sizeof(T), panels = (m + width - 1) / width;
    const int is_backwards = turn_around(w);
    for (int64_t p = 0; p < panels; p++) {
        const int64_t begin = width * (is_backwards ? panels - 1 - p : p);
        const int64_t here = m - begin < width ? m - begin : width;
        int64_t i = 0;
        memset(sums, 0, (size_t)here * sizeof(T));
        for (; i + ROWS_TOGETHER <= k; i += ROWS_TOGETHER)
            NAME(rows_added)(ROWS_TOGETHER, here, x + i * step, step, w + i * ld + begin, ld, sums);
        for (; i < k; i++)
            NAME(rows_added)(1, here, x + i * step, step, w + i * ld + begin, ld, sums);
        NAME(keep_sums)(here, alpha, sums, beta, c + begin, z + begin);
    }
}

/* z <- beta c + alpha x W, x of k numbers `step` apart, W of k rows `ld` apart and m columns. */
TARGET static void NAME(row_times)(int64_t k, int64_t m, T alpha, const T *x, int64_t step,
                                   const T *w, int64_t ld, T beta, const T *c, T *z)
{
    const int is_large = m > MOST * WIDTH && k * m * (int64_t)sizeof(T) > LARGEST_CACHED;
    if (is_large && m % WIDTH == 0 && ld * (int64_t)sizeof(T) % SAME_PLACE == 0)
        NAME(row_times_along)(k, m, alpha, x, step, w, ld, beta, c, z);
    else if (is_large)
        NAME(row_times_ahead)(k, m, alpha, x, step, w, ld, beta, c, z);
    else
        NAME(row_panels)(k, m, alpha, x, step, w, ld, beta, c, z);
}

/* z[i] <- beta z[i] + alpha (row i of W) x for `count` rows, a constant. */
TARGET ALWAYS_INLINE void NAME(rows)(const int count, int64_t k, const T *x, const T *w, int64_t ld,
                                     T alpha, T beta, T *z)
{
    VECTOR sum[8];
    int64_t j = 0;
    UNROLL for (int i = 0; i < count; i++)
        sum[i] = ZERO;
    for (; j + WIDTH <= k; j += WIDTH) {
        VECTOR v = LOAD(x + j);
        UNROLL for (int i = 0; i < count; i++)
            sum[i] = FMA(v, LOAD(w + i * ld + j), sum[i]);
    }
    if (j < k) {
        MASK mask = MASK_OF(k - j);
        VECTOR v = SOME(x + j, mask);
        UNROLL for (int i = 0; i < count; i++)
            sum[i] = FMA(v, SOME(w + i * ld + j, mask), sum[i]);
    }
    UNROLL for (int i = 0; i < count; i++) {
        T total = alpha * SUM(sum[i]);
        z[i] = beta != 0 ? beta * z[i] + total : total;
    }
}

/* z <- beta z + alpha W x, W of m rows `ld` apart and k columns, x of k numbers. */
TARGET static void NAME(times_column)(int64_t k, int64_t m, T alpha, const T *x, const T *w,
                                      int64_t ld, T beta, T *z)
{
    for (; m >= 8; m -= 8, w += 8 * ld, z += 8)
        NAME(rows)(8, k, x, w, ld, alpha, beta, z);
    if (m >= 4) {
        NAME(rows)(4, k, x, w, ld, alpha, beta, z);
        m -= 4, w += 4 * ld, z += 4;
    }
    for (; m > 0; m--, w += ld, z++)
        NAME(rows)(1, k, x, w, ld, alpha, beta, z);
}

#undef T
#undef VECTOR
#undef WIDTH
#undef MOST
#undef NAME
#undef TARGET
#undef ZERO
#undef ALL
#undef LOAD
#undef MASK
#undef MASK_OF
#undef MASK_FROM
#undef SOME
#undef STORE
#undef KEEP
#undef FMA
#undef MUL
#undef DIV
#undef SUM
