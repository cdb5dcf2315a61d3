/* Logarithms of products along axes, and of sums of exponentials of doubles, with a second pass
   in the wider type for slices where large parts cancel. Each is a kernel of its own. */

enum log_of { LOG_SUM, LOG_MEAN, LOG_WEIGHTED, LOG_PROD };
enum { EXP_LANES = 16, EXP_BLOCK = 256 };
static const double LARGEST_DOUBLE = 0x1.fffffffffffffp1023;

/* Add a number to a total; its rounding error is added to `e`. */
INLINE void keep_sum(double x, double *t, double *e)
{
    double s = *t + x;
    *e += sum_error(*t, x, s);
    *t = s;
}

/* Beside an infinity, exponentials of finite elements are finite, however large. */
INLINE double log_limited(double top)
{
    return top > LARGEST_DOUBLE ? LARGEST_DOUBLE : top < -LARGEST_DOUBLE ? -LARGEST_DOUBLE : top;
}

/* The elements of a sum that are counted, instead of added up as 1 each: the largest, if it is finite. */
INLINE double log_counted(enum log_of kind, double top)
{
    return kind == LOG_SUM && top == log_limited(top) ? top : NAN;
}

/* The term of an element; 0 for one that is counted. */
INLINE double log_term(enum log_of kind, double x, double w, double top, double counted)
{
    double z = r_exp_of_sum(x, -top);
    if (kind == LOG_WEIGHTED)
        return w == 0 ? x * 0 : w * z;
    return x == counted ? 0 : z;
}

/* The larger of both, NaN if one is NaN; with weights, elements count only where these are not 0. */
INLINE double log_larger(enum log_of kind, double top, double x, double w)
{
    double larger = x != x || top != top ? NAN : x;
    return (kind != LOG_WEIGHTED || w != 0) && !(x <= top) ? larger : top;
}

INLINE double log_terms(enum log_of kind, int64_t n, const double *x, const double *w, double largest)
{
    double t = 0, e = 0, counted = log_counted(kind, largest), top = log_limited(largest);
    for (int64_t first = 0; first < n; first += EXP_BLOCK) {
        int64_t last = n - first < EXP_BLOCK ? n : first + EXP_BLOCK, i = first;
        double part[EXP_LANES] = {0};
        for (; i + EXP_LANES <= last; i += EXP_LANES)
#pragma omp simd
            for (int k = 0; k < EXP_LANES; k++)
                part[k] += log_term(kind, x[i + k], w[i + k], top, counted);
        for (int k = 0; i < last; i++, k++)
            part[k] += log_term(kind, x[i], w[i], top, counted);
        for (int half = EXP_LANES / 2; half; half /= 2)
            for (int k = 0; k < half; k++)
                part[k] += part[half + k];
        keep_sum(part[0], &t, &e);
    }
    return t + e;
}

INLINE double log_top(enum log_of kind, int64_t n, const double *x, const double *w)
{
    double top = -INFINITY;
    for (int64_t i = 0; i < n; i++)
        top = log_larger(kind, top, x[i], w[i]);
    return top;
}

static double log_of_mean(int64_t n, const double *x, double top, double total)
{
    double mean = total / (double)n, near = 0, e = 0;
    if (mean < 0.5)
        return log(mean);
    for (int64_t i = 0; i < n; i++)
        keep_sum(expm1(x[i] - top), &near, &e);
    return log1p((near + e) / (double)n);
}

/* The same in the wider type; `top` is finite. */
static double log_wide(enum log_of kind, int64_t n, const double *x, const double *w, double top)
{
    long double total = 0, near = 0, y = (long double)top;
    int64_t at_top = 0;
    for (int64_t i = 0; i < n; i++) {
        long double d = (long double)x[i] - y;
        if (kind == LOG_WEIGHTED)
            total += w[i] == 0 ? (long double)x[i] * 0 : (long double)w[i] * expl(d);
        else if (kind == LOG_SUM && d == 0)
            at_top++;
        else
            total += expl(d);
        if (kind == LOG_MEAN)
            near += expm1l(d);
    }
    if (kind == LOG_WEIGHTED)
        return (double)(y + logl(total));
    if (kind == LOG_SUM)
        return (double)(y + log1pl(total + (long double)(at_top - 1)));
    total /= (long double)n;
    return (double)(y + (total < 0.5L ? logl(total) : log1pl(near / (long double)n)));
}

/* The result of a slice with this largest element and total of terms; `logarithm` is that of a sum without
   its largest element. */
INLINE double log_finished(enum log_of kind, int64_t n, const double *x, const double *w, double top,
                           double total, double logarithm)
{
    double first = top, z;
    int finite = isfinite(top);
    top = log_limited(top);
    if (kind == LOG_WEIGHTED) {
        z = top + log(total);
        first = log_top(LOG_SUM, n, x, w);
    } else if (!finite) {
        return first != first ? NAN : log(kind == LOG_MEAN ? total / (double)n : total);
    } else {
        z = top + (kind == LOG_MEAN ? log_of_mean(n, x, top, total) : logarithm);
    }
    first = isfinite(first) ? first : 0;
    double parts = fabs(first) > fabs(z - first) ? fabs(first) : fabs(z - first);
    return finite && fabs(z) < parts / 2 ? log_wide(kind, n, x, w, top) : z;
}

INLINE double log_of_line(enum log_of kind, int64_t n, const double *x, const double *w)
{
    double top = log_top(kind, n, x, w), total = log_terms(kind, n, x, w, top);
    int64_t at_top = 0;
    for (int64_t i = 0; i < n; i++)
        at_top += x[i] == top;
    return log_finished(kind, n, x, w, top, total, m_log1p(total + (double)(at_top - 1)));
}

/* The same of slices of at most EXP_LANES elements, one in each lane: element j of slice k is x[j][k]. */
INLINE void log_of_lanes(enum log_of kind, int n, double (*x)[EXP_LANES], double (*w)[EXP_LANES],
                         double *tops, double *totals, double *logarithms)
{
    double part[EXP_LANES][EXP_LANES] = {{0}}, at_top[EXP_LANES] = {0};
    int half = 1;
    for (int k = 0; k < EXP_LANES; k++)
        tops[k] = -INFINITY;
    for (int j = 0; j < n; j++)
#pragma omp simd
        for (int k = 0; k < EXP_LANES; k++)
            tops[k] = log_larger(kind, tops[k], x[j][k], w[j][k]);
    for (int j = 0; j < n; j++)
#pragma omp simd
        for (int k = 0; k < EXP_LANES; k++) {
            double top = tops[k], counted = log_counted(kind, top);
            part[j][k] = log_term(kind, x[j][k], w[j][k], log_limited(top), counted);
            at_top[k] += x[j][k] == top;
        }
    while (half < n)
        half *= 2;
    for (half /= 2; half; half /= 2)
        for (int j = 0; j < half; j++)
#pragma omp simd
            for (int k = 0; k < EXP_LANES; k++)
                part[j][k] += part[half + j][k];
#pragma omp simd
    for (int k = 0; k < EXP_LANES; k++) {
        totals[k] = part[0][k];
        logarithms[k] = m_log1p(part[0][k] + (at_top[k] - 1));
    }
}

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

/* Slices that are read, and done together if they are short. */
typedef struct {
    const double *x[EXP_LANES], *w[EXP_LANES];
    char *z[EXP_LANES];
    int count;
} log_batch;

INLINE void log_store(int size, double z, char *to)
{
    if (size == 8)
        *(double *)to = z;
    else
        *(float *)to = (float)z;
}

INLINE void log_of_batch(enum log_of kind, int size, int64_t n, log_batch *b)
{
    double x[EXP_LANES][EXP_LANES], w[EXP_LANES][EXP_LANES];
    double tops[EXP_LANES], totals[EXP_LANES], logarithms[EXP_LANES];
    for (int k = 0; k < EXP_LANES; k++) {
        int line = k < b->count ? k : b->count - 1;
        for (int j = 0; j < n; j++) {
            x[j][k] = b->x[line][j];
            w[j][k] = b->w[line][j];
        }
    }
    log_of_lanes(kind, (int)n, x, w, tops, totals, logarithms);
    for (int k = 0; k < b->count; k++)
        log_store(size, log_finished(kind, n, b->x[k], b->w[k], tops[k], totals[k], logarithms[k]),
                  b->z[k]);
    b->count = 0;
}

/* All slices; returns 1 if memory is short. */
INLINE int log_lines(enum log_of kind, int size, int rank, const uint8_t *reduced,
                     char *const *data, const int64_t *shape, const int64_t *strides)
{
    int arrays = kind == LOG_WEIGHTED ? 3 : 2;
    int64_t n = 1, lines = 1, index[rank];
    for (int a = 0; a < rank; a++) {
        *(reduced[a] ? &n : &lines) *= shape[a];
        index[a] = 0;
    }
    int most = kind != LOG_PROD && n <= EXP_LANES ? EXP_LANES : 1;
    double *buffer = (double *)malloc((size_t)(2 * n * most + 1) * sizeof *buffer);
    if (!buffer)
        return 1;
    char *at[3] = {data[0], data[1], data[arrays - 1]};
    log_batch b = {.count = 0};
    for (int64_t line = 0; line < lines; line++) {
        double *to = buffer + 2 * n * b.count;
        const double *x = log_line(size, rank, reduced, shape, strides, at[0], to), *w = x;
        if (kind == LOG_WEIGHTED)
            w = log_line(size, rank, reduced, shape, strides + rank, at[1], to + n);
        if (most > 1) {
            b.x[b.count] = x;
            b.w[b.count] = w;
            b.z[b.count++] = at[arrays - 1];
            if (b.count == most || line == lines - 1)
                log_of_batch(kind, size, n, &b);
        } else {
            log_store(size, kind == LOG_PROD ? log_of_product(n, x) : log_of_line(kind, n, x, w),
                      at[arrays - 1]);
        }
        for (int a = rank - 1; a >= 0; a--) {
            if (reduced[a])
                continue;
            index[a]++;
            int64_t move = index[a] < shape[a] ? 1 : 1 - shape[a];
            for (int i = 0; i < arrays; i++)
                at[i] += strides[i * rank + a] * move;
            if (move == 1)
                break;
            index[a] = 0;
        }
    }
    free(buffer);
    return 0;
}
