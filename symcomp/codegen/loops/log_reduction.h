/* Logarithms of products along axes: a kernel of its own. */

/* Mantissas with their rounding errors, and exponents: nothing leaves the range, and nothing
   cancels where the product is near 1. */
static double log_of_product(int64_t n, const double *x)
{
    double high = 1, low = 0;
    int64_t power = 0;
    for (int64_t i = 0; i < n; i++) {
        int mine, both;
        double m = frexp(x[i], &mine), p = high * m, e = product_error(high, m, p) + low * m;
        high = frexp(p, &both);
        low = ldexp(e, -both);
        power += mine + both;
    }
    if (!isfinite(high) || high == 0)
        return log(high);
    if (high < 0.70710678118654752440) {
        high *= 2;
        low *= 2;
        power--;
    }
    if (power == 0 && high > 0)
        return log1p((high - 1) + low);
    return (double)power * LN2_HIGH + (log(high) + (low / high + (double)power * LN2_LOW));
}

/* A slice: in place if its elements are contiguous, else a copy in `to`. */
static const double *log_line(int size, int rank, const uint8_t *reduced, const int64_t *shape,
                              const int64_t *strides, const char *from, double *to)
{
    int inner = -1, several = 0;
    for (int a = 0; a < rank; a++)
        if (reduced[a] && shape[a] != 1) {
            several |= inner >= 0;
            inner = a;
        }
    if (size == 8 && !several && (inner < 0 || strides[inner] == size))
        return (const double *)from;
    int64_t index[rank], count = 1;
    for (int a = 0; a < rank; a++) {
        count *= reduced[a] ? shape[a] : 1;
        index[a] = 0;
    }
    for (int64_t i = 0; i < count; i++) {
        to[i] = size == 8 ? *(const double *)from : *(const float *)from;
        from = next_element(rank, reduced, 1, shape, strides, index, from);
    }
    return to;
}

INLINE void log_store(int size, double z, char *to)
{
    if (size == 8)
        *(double *)to = z;
    else
        *(float *)to = (float)z;
}

/* All slices; returns 1 if memory is short. */
INLINE int log_lines(int size, int rank, const uint8_t *reduced, char *const *data,
                     const int64_t *shape, const int64_t *strides)
{
    int64_t n = 1, lines = 1, index[rank];
    for (int a = 0; a < rank; a++) {
        *(reduced[a] ? &n : &lines) *= shape[a];
        index[a] = 0;
    }
    double *buffer = (double *)malloc((size_t)(n + 1) * sizeof *buffer);
    if (!buffer)
        return 1;
    char *at[2] = {data[0], data[1]};
    for (int64_t line = 0; line < lines; line++) {
        const double *x = log_line(size, rank, reduced, shape, strides, at[0], buffer);
        log_store(size, log_of_product(n, x), at[1]);
        for (int a = rank - 1; a >= 0; a--) {
            if (reduced[a])
                continue;
            index[a]++;
            int64_t move = index[a] < shape[a] ? 1 : 1 - shape[a];
            for (int i = 0; i < 2; i++)
                at[i] += strides[i * rank + a] * move;
            if (move == 1)
                break;
            index[a] = 0;
        }
    }
    free(buffer);
    return 0;
}
