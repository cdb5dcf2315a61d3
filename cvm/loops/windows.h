/* Windows over images with up to three spatial axes: their elements as columns of a matrix, and
   back; the largest of each; their sums, and the adjoint of sums. */

#ifndef SYMCOMP_WINDOWS_H
#define SYMCOMP_WINDOWS_H

#include <math.h>
#include <stdint.h>
#include <string.h>

/* Where there are fewer spatial axes, the first ones have length 1. */
enum { SPATIAL = 3 };

typedef struct {
    int64_t channels;
    int64_t lengths[SPATIAL];     /* of an image */
    int64_t kernel[SPATIAL];
    int64_t counts[SPATIAL];      /* of windows */
    int64_t before[SPATIAL];      /* zeros before the image */
    int64_t strides[SPATIAL];
    int64_t dilation[SPATIAL];
} Windows;

/* The first and the end of the windows, along an axis, whose element i lies in the image. */
static void inside(const Windows *w, int axis, int64_t i, int64_t *first, int64_t *end)
{
    const int64_t step = w->strides[axis], n = w->lengths[axis];
    const int64_t start = i * w->dilation[axis] - w->before[axis];
    const int64_t last = n - 1 - start;     /* the largest offset that is inside */
    *first = start >= 0 ? 0 : (-start + step - 1) / step;
    *end = last < 0 ? 0 : last / step + 1;
    if (*end > w->counts[axis])
        *end = w->counts[axis];
    if (*first > *end)
        *first = *end;
}

/* Loops over the elements ``at`` of a window in C order, with the planes and rows of windows in
   which they lie in the image. */
#define EACH_ELEMENT(w, at, first, end)                                                           \
    for (at[0] = 0; at[0] < w->kernel[0]; at[0]++)                                                \
        for (inside(w, 0, at[0], first, end), at[1] = 0; at[1] < w->kernel[1]; at[1]++)           \
            for (inside(w, 1, at[1], first + 1, end + 1), at[2] = 0; at[2] < w->kernel[2]; at[2]++)

/* Where an image has the element ``at`` of the first window, which may be outside. */
static int64_t place_of(const Windows *w, const int64_t *at)
{
    const int64_t plane = at[0] * w->dilation[0] - w->before[0];
    const int64_t row = at[1] * w->dilation[1] - w->before[1];
    return (plane * w->lengths[1] + row) * w->lengths[2] + at[2] * w->dilation[2] - w->before[2];
}

/* How far it is from there to window (p, q, 0). */
static int64_t way_to(const Windows *w, int64_t p, int64_t q)
{
    return (p * w->strides[0] * w->lengths[1] + q * w->strides[1]) * w->lengths[2];
}

/* INT64_MAX if it is larger than that. */
static int64_t product(const int64_t *lengths)
{
    const double size = (double)lengths[0] * (double)lengths[1] * (double)lengths[2];
    return size < 9e18 ? lengths[0] * lengths[1] * lengths[2] : INT64_MAX;
}

/* unfold: a matrix with a row for each element of a window, (channel, ...), and a column for each
   window of this image; ``next`` elements lie from one row to the next. fold adds such a matrix to
   an image. */
#define FOLDS(unfold, fold, Real)                                                                 \
    static void unfold(const Windows *w, const Real *image, Real *columns, int64_t next)          \
    {                                                                                             \
        int64_t c, p, q, r, at[SPATIAL], first[SPATIAL], end[SPATIAL];                            \
        const int64_t size = product(w->lengths), along = w->counts[2], step = w->strides[2];     \
        for (c = 0; c < w->channels; c++, image += size)                                          \
            EACH_ELEMENT(w, at, first, end) {                                                     \
                const Real *origin = image + place_of(w, at);                                     \
                Real *target = columns;                                                           \
                inside(w, 2, at[2], first + 2, end + 2);                                          \
                for (p = 0; p < w->counts[0]; p++)                                                \
                    for (q = 0; q < w->counts[1]; q++, target += along) {                         \
                        const Real *source = origin + way_to(w, p, q);                            \
                        if (p < first[0] || p >= end[0] || q < first[1] || q >= end[1]) {         \
                            memset(target, 0, along * sizeof(Real));                              \
                            continue;                                                             \
                        }                                                                         \
                        for (r = 0; r < first[2]; r++)                                            \
                            target[r] = 0;                                                        \
                        if (step == 1)                                                            \
                            memcpy(target + r, source + r, (end[2] - r) * sizeof(Real));          \
                        else                                                                      \
                            for (; r < end[2]; r++)                                               \
                                target[r] = source[r * step];                                     \
                        for (r = end[2]; r < along; r++)                                          \
                            target[r] = 0;                                                        \
                    }                                                                             \
                columns += next;                                                                  \
            }                                                                                     \
    }                                                                                             \
    static void fold(const Windows *w, Real *image, const Real *columns, int64_t next)            \
    {                                                                                             \
        int64_t c, p, q, r, at[SPATIAL], first[SPATIAL], end[SPATIAL];                            \
        const int64_t size = product(w->lengths), along = w->counts[2], step = w->strides[2];     \
        for (c = 0; c < w->channels; c++, image += size)                                          \
            EACH_ELEMENT(w, at, first, end) {                                                     \
                Real *origin = image + place_of(w, at);                                           \
                inside(w, 2, at[2], first + 2, end + 2);                                          \
                for (p = first[0]; p < end[0]; p++)                                               \
                    for (q = first[1]; q < end[1]; q++) {                                         \
                        const Real *source = columns + (p * w->counts[1] + q) * along;            \
                        Real *target = origin + way_to(w, p, q);                                  \
                        if (step == 1)                                                            \
                            for (r = first[2]; r < end[2]; r++)                                   \
                                target[r] += source[r];                                           \
                        else                                                                      \
                            for (r = first[2]; r < end[2]; r++)                                   \
                                target[r * step] += source[r];                                    \
                    }                                                                             \
                columns += next;                                                                  \
            }                                                                                     \
    }

FOLDS(unfold_64, fold_64, double)
FOLDS(unfold_32, fold_32, float)

/* The element of an image that is nearest to the first one of a window. */
static int64_t nearest(const Windows *w, int axis, int64_t window)
{
    const int64_t place = window * w->strides[axis] - w->before[axis], n = w->lengths[axis];
    return place < 0 ? 0 : place < n ? place : n - 1;
}

/* The largest element of each window of an image, and where it is: the first of equal ones; NaN is
   the largest. Windows are cut at the ends of the image. Without branches: which element is the
   largest cannot be foreseen. Where there is no NaN, it is the greater one of two. */
#define LARGEST(name, has_nan, Real)                                                              \
    static int has_nan(const Real *x, int64_t n)                                                  \
    {                                                                                             \
        int found = 0;                                                                            \
        int64_t i;                                                                                \
        for (i = 0; i < n; i++)                                                                   \
            found |= x[i] != x[i];                                                                \
        return found;                                                                             \
    }                                                                                             \
    static void name(const Windows *w, const Real *image, Real *largest, int64_t *where)          \
    {                                                                                             \
        int64_t p, q, r, at[SPATIAL], first[SPATIAL], end[SPATIAL];                               \
        const int64_t along = w->counts[2], step = w->strides[2];                                 \
        const int nan = has_nan(image, product(w->lengths));                                      \
        for (p = 0; p < w->counts[0]; p++)                                                        \
            for (q = 0; q < w->counts[1]; q++) {                                                  \
                const int64_t plane = nearest(w, 0, p), to = (p * w->counts[1] + q) * along;      \
                const int64_t row = plane * w->lengths[1] + nearest(w, 1, q);                     \
                for (r = 0; r < along; r++) {                                                     \
                    largest[to + r] = -(Real)INFINITY;                                            \
                    where[to + r] = row * w->lengths[2] + nearest(w, 2, r);                       \
                }                                                                                 \
            }                                                                                     \
        EACH_ELEMENT(w, at, first, end) {                                                         \
            const int64_t origin = place_of(w, at);                                               \
            inside(w, 2, at[2], first + 2, end + 2);                                              \
            for (p = first[0]; p < end[0]; p++)                                                   \
                for (q = first[1]; q < end[1]; q++) {                                             \
                    const int64_t from = origin + way_to(w, p, q);                                \
                    Real *restrict top = largest + (p * w->counts[1] + q) * along;                \
                    int64_t *restrict place = where + (p * w->counts[1] + q) * along;             \
                    if (nan)                                                                      \
                        for (r = first[2]; r < end[2]; r++) {                                     \
                            const Real value = image[from + r * step], best = top[r];             \
                            const int better = !(value <= best) & (best == best);                 \
                            top[r] = better ? value : best;                                       \
                            place[r] = better ? from + r * step : place[r];                       \
                        }                                                                         \
                    else                                                                          \
                        for (r = first[2]; r < end[2]; r++) {                                     \
                            const Real value = image[from + r * step], best = top[r];             \
                            const int64_t better = -(int64_t)(value > best);                      \
                            top[r] = value > best ? value : best;                                 \
                            place[r] += better & (from + r * step - place[r]);                    \
                        }                                                                         \
                }                                                                                 \
        }                                                                                         \
    }

LARGEST(largest_64, has_nan_64, double)
LARGEST(largest_32, has_nan_32, float)

/* sum: the sums of windows of an image, each times a factor, if there are any. spread: the adjoint,
   the numbers of windows times factors added to their elements. */
#define POOL_SUMS(sum, spread, Real)                                                              \
    static void sum(const Windows *w, const double *factors, const Real *image, Real *sums)       \
    {                                                                                             \
        int64_t p, q, r, at[SPATIAL], first[SPATIAL], end[SPATIAL];                               \
        const int64_t along = w->counts[2], step = w->strides[2], places = product(w->counts);    \
        memset(sums, 0, places * sizeof(Real));                                                   \
        EACH_ELEMENT(w, at, first, end) {                                                         \
            const Real *origin = image + place_of(w, at);                                         \
            inside(w, 2, at[2], first + 2, end + 2);                                              \
            for (p = first[0]; p < end[0]; p++)                                                   \
                for (q = first[1]; q < end[1]; q++) {                                             \
                    const Real *source = origin + way_to(w, p, q);                                \
                    Real *target = sums + (p * w->counts[1] + q) * along;                         \
                    for (r = first[2]; r < end[2]; r++)                                           \
                        target[r] += source[r * step];                                            \
                }                                                                                 \
        }                                                                                         \
        if (factors != NULL)                                                                      \
            for (r = 0; r < places; r++)                                                          \
                sums[r] *= (Real)factors[r];                                                      \
    }                                                                                             \
    static void spread(const Windows *w, const double *factors, const Real *g, Real *image)       \
    {                                                                                             \
        int64_t p, q, r, at[SPATIAL], first[SPATIAL], end[SPATIAL];                               \
        const int64_t along = w->counts[2], step = w->strides[2];                                 \
        memset(image, 0, product(w->lengths) * sizeof(Real));                                     \
        EACH_ELEMENT(w, at, first, end) {                                                         \
            Real *origin = image + place_of(w, at);                                               \
            inside(w, 2, at[2], first + 2, end + 2);                                              \
            for (p = first[0]; p < end[0]; p++)                                                   \
                for (q = first[1]; q < end[1]; q++) {                                             \
                    const int64_t from = (p * w->counts[1] + q) * along;                          \
                    Real *target = origin + way_to(w, p, q);                                      \
                    for (r = first[2]; r < end[2]; r++)                                           \
                        target[r * step] += g[from + r] * (factors ? (Real)factors[from + r] : 1);\
                }                                                                                 \
        }                                                                                         \
    }

POOL_SUMS(sums_64, spread_64, double)
POOL_SUMS(sums_32, spread_32, float)

/* Numbers added where they belong, in an image of zeros. */
#define TO_POSITIONS(name, Real)                                                                  \
    static int name(const Real *g, const int64_t *where, int64_t count, Real *image, int64_t size)\
    {                                                                                             \
        int64_t i;                                                                                \
        memset(image, 0, size * sizeof(Real));                                                    \
        for (i = 0; i < count; i++) {                                                             \
            if (where[i] < 0 || where[i] >= size)                                                 \
                return 1;                                                                         \
            image[where[i]] += g[i];                                                              \
        }                                                                                         \
        return 0;                                                                                 \
    }

TO_POSITIONS(to_positions_64, double)
TO_POSITIONS(to_positions_32, float)

#endif
