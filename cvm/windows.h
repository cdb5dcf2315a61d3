/* Windows over images: their elements as columns of a matrix, and back; the largest of each. */

#ifndef SYMCOMP_WINDOWS_H
#define SYMCOMP_WINDOWS_H

#include <math.h>
#include <stdint.h>
#include <string.h>

typedef struct {
    int64_t channels;
    int64_t lengths[2];     /* of an image */
    int64_t kernel[2];
    int64_t counts[2];      /* of windows */
    int64_t before[2];      /* zeros before the image */
    int64_t strides[2];
    int64_t dilation[2];
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

/* unfold: a matrix with a row for each element of a window, (channel, i, j), and a column for each
   window of this image; ``next`` elements lie from one row to the next. fold adds such a matrix to
   an image. */
#define FOLDS(unfold, fold, Real)                                                                 \
    static void unfold(const Windows *w, const Real *image, Real *columns, int64_t next)          \
    {                                                                                             \
        int64_t c, i, j, p, q, top, bottom, left, right;                                          \
        const int64_t height = w->lengths[0], width = w->lengths[1];                              \
        const int64_t down = w->counts[0], along = w->counts[1], step = w->strides[1];            \
        for (c = 0; c < w->channels; c++)                                                         \
            for (i = 0; i < w->kernel[0]; i++)                                                    \
                for (j = 0; j < w->kernel[1]; j++, columns += next) {                             \
                    Real *target = columns;                                                       \
                    inside(w, 0, i, &top, &bottom);                                               \
                    inside(w, 1, j, &left, &right);                                               \
                    for (p = 0; p < down; p++, target += along) {                                 \
                        const int64_t row = p * w->strides[0] + i * w->dilation[0] - w->before[0]; \
                        const Real *source = image + (c * height + row) * width                   \
                                             + j * w->dilation[1] - w->before[1];                 \
                        if (p < top || p >= bottom) {                                             \
                            memset(target, 0, along * sizeof(Real));                              \
                            continue;                                                             \
                        }                                                                         \
                        for (q = 0; q < left; q++)                                                \
                            target[q] = 0;                                                        \
                        if (step == 1)                                                            \
                            memcpy(target + left, source + left, (right - left) * sizeof(Real));  \
                        else                                                                      \
                            for (q = left; q < right; q++)                                        \
                                target[q] = source[q * step];                                     \
                        for (q = right; q < along; q++)                                           \
                            target[q] = 0;                                                        \
                    }                                                                             \
                }                                                                                 \
    }                                                                                             \
    static void fold(const Windows *w, Real *image, const Real *columns, int64_t next)            \
    {                                                                                             \
        int64_t c, i, j, p, q, top, bottom, left, right;                                          \
        const int64_t height = w->lengths[0], width = w->lengths[1];                              \
        const int64_t along = w->counts[1], step = w->strides[1];                                 \
        for (c = 0; c < w->channels; c++)                                                         \
            for (i = 0; i < w->kernel[0]; i++)                                                    \
                for (j = 0; j < w->kernel[1]; j++, columns += next) {                             \
                    inside(w, 0, i, &top, &bottom);                                               \
                    inside(w, 1, j, &left, &right);                                               \
                    for (p = top; p < bottom; p++) {                                              \
                        const int64_t row = p * w->strides[0] + i * w->dilation[0] - w->before[0]; \
                        const Real *source = columns + p * along;                                 \
                        Real *target = image + (c * height + row) * width                         \
                                       + j * w->dilation[1] - w->before[1];                       \
                        if (step == 1)                                                            \
                            for (q = left; q < right; q++)                                        \
                                target[q] += source[q];                                           \
                        else                                                                      \
                            for (q = left; q < right; q++)                                        \
                                target[q * step] += source[q];                                    \
                    }                                                                             \
                }                                                                                 \
    }

FOLDS(unfold_64, fold_64, double)
FOLDS(unfold_32, fold_32, float)

/* The largest element of each window of a plane, and where it is: the first of equal ones; NaN is
   the largest. Windows are cut at the ends of the image. Without branches: which element is the
   largest cannot be foreseen. */
#define LARGEST(name, Real)                                                                       \
    static void name(const Windows *w, const Real *image, Real *largest, int64_t *where)          \
    {                                                                                             \
        int64_t i, j, p, q, top, bottom, left, right;                                             \
        const int64_t height = w->lengths[0], width = w->lengths[1];                              \
        const int64_t along = w->counts[1], step = w->strides[1];                                 \
        for (p = 0; p < w->counts[0]; p++, largest += along, where += along) {                    \
            const int64_t above = p * w->strides[0] - w->before[0];                               \
            for (q = 0; q < along; q++) {                                                         \
                const int64_t start = q * step - w->before[1];                                    \
                const int64_t row = above < 0 ? 0 : above < height ? above : height - 1;          \
                const int64_t column = start < 0 ? 0 : start < width ? start : width - 1;         \
                largest[q] = -(Real)INFINITY;                                                     \
                where[q] = row * width + column;                                                  \
            }                                                                                     \
            for (i = 0; i < w->kernel[0]; i++) {                                                  \
                inside(w, 0, i, &top, &bottom);                                                   \
                if (p < top || p >= bottom)                                                       \
                    continue;                                                                     \
                for (j = 0; j < w->kernel[1]; j++) {                                              \
                    const int64_t first = (above + i) * width + j - w->before[1];                 \
                    inside(w, 1, j, &left, &right);                                               \
                    for (q = left; q < right; q++) {                                              \
                        const Real value = image[first + q * step], best = largest[q];            \
                        const int better = !(value <= best) & (best == best);                     \
                        largest[q] = better ? value : best;                                       \
                        where[q] = better ? first + q * step : where[q];                          \
                    }                                                                             \
                }                                                                                 \
            }                                                                                     \
        }                                                                                         \
    }

LARGEST(largest_64, double)
LARGEST(largest_32, float)

/* Numbers added where they belong, in a plane of zeros. */
#define TO_POSITIONS(name, Real)                                                                  \
    static int name(const Real *g, const int64_t *where, int64_t count, Real *image, int64_t size) \
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
