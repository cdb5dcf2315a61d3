/* The first elements of slices in order, and the distinct elements of sorted arrays. */
#ifndef SYMCOMP_SORTING_LOOPS_H
#define SYMCOMP_SORTING_LOOPS_H

#include "axis_loops.h"

/* NaN counts as the largest. */
#define IS_LARGER(x, y) ((x) > (y) || ((x) != (x) && (y) == (y)))
#define IS_SMALLER(x, y) ((x) < (y) || ((x) == (x) && (y) != (y)))

/* By the real parts, then the imaginary ones; NaN in the imaginary part comes after all numbers, and
   in the real part after these. */
static inline int in_order(double a, double b, double c, double d)
{
    int strange = 2 * (a != a) + (b != b), other = 2 * (c != c) + (d != d);
    if (strange != other)
        return strange < other;
    return a < c || (!(c < a) && b < d);
}

#define PARTS(R, x) ((const R *)&(x))[0], ((const R *)&(x))[1]
#define IS_SMALLER_c8(x, y) in_order(PARTS(float, x), PARTS(float, y))
#define IS_LARGER_c8(x, y) in_order(PARTS(float, y), PARTS(float, x))
#define IS_SMALLER_c16(x, y) in_order(PARTS(double, x), PARTS(double, y))
#define IS_LARGER_c16(x, y) in_order(PARTS(double, y), PARTS(double, x))

/* A heap of the best so far, the worst on top. Equal elements come in their own order, so that one
   that comes later is never better. In the end the heap is taken down, the worst first. */
#define FIRST_ALONG(NAME, T, BETTER)                                                               \
    /* Sift an element down from place i of the heap, which is free, below worse ones. */ \
    static inline void sink_##NAME(int64_t count, T *element, int64_t *place, int64_t i, T x,      \
                                   int64_t at)                                                     \
    {                                                                                              \
        for (int64_t child; (child = 2 * i + 1) < count; i = child) {                              \
            if (child + 1 < count && (BETTER(element[child], element[child + 1]) ||                \
                                      (!BETTER(element[child + 1], element[child]) &&              \
                                       place[child + 1] > place[child])))                          \
                child++;                                                                           \
            if (BETTER(element[child], x) || (!BETTER(x, element[child]) && place[child] < at))    \
                break;                                                                             \
            element[i] = element[child];                                                           \
            place[i] = place[child];                                                               \
        }                                                                                          \
        element[i] = x;                                                                            \
        place[i] = at;                                                                             \
    }                                                                                              \
    static void NAME(LINE_ARGUMENTS)                                                               \
    {                                                                                              \
        const struct first_in_order *given = (const struct first_in_order *)second;                \
        const int64_t count = given->count;                                                        \
        T *element = (T *)given->elements;                                                         \
        int64_t *place = given->places;                                                            \
        (void)second_step, (void)second_line;                                                      \
        for (int64_t j = 0; j < m; j++) {                                                          \
            const char *line = x + j * x_line;                                                     \
            for (int64_t i = 0; i < count; i++) {                                                  \
                element[i] = *(const T *)(line + i * x_step);                                      \
                place[i] = i;                                                                      \
            }                                                                                      \
            for (int64_t i = count / 2 - 1; i >= 0; i--)                                           \
                sink_##NAME(count, element, place, i, element[i], place[i]);                       \
            for (int64_t i = count; i < n; i++) {                                                  \
                const T value = *(const T *)(line + i * x_step);                                   \
                if (BETTER(value, element[0]))                                                     \
                    sink_##NAME(count, element, place, 0, value, i);                               \
            }                                                                                      \
            for (int64_t left = count - 1; left >= 0; left--) {                                    \
                *(int64_t *)(out + j * out_line + left * out_step) = place[0];                     \
                sink_##NAME(left, element, place, 0, element[left], place[left]);                  \
            }                                                                                      \
        }                                                                                          \
    }

#define FIRST_BOTH(NAME, T)                                                                        \
    FIRST_ALONG(largest_##NAME, T, IS_LARGER)                                                            \
    FIRST_ALONG(smallest_##NAME, T, IS_SMALLER)

FIRST_BOTH(i1, int8_t)
FIRST_BOTH(i2, int16_t)
FIRST_BOTH(i4, int32_t)
FIRST_BOTH(i8, int64_t)
FIRST_BOTH(u1, uint8_t)
FIRST_BOTH(u2, uint16_t)
FIRST_BOTH(u4, uint32_t)
FIRST_BOTH(u8, uint64_t)
FIRST_BOTH(f4, float)
FIRST_BOTH(f8, double)
FIRST_ALONG(largest_c8, float _Complex, IS_LARGER_c8)
FIRST_ALONG(smallest_c8, float _Complex, IS_SMALLER_c8)
FIRST_ALONG(largest_c16, double _Complex, IS_LARGER_c16)
FIRST_ALONG(smallest_c16, double _Complex, IS_SMALLER_c16)

line_function *function_for_first(int largest, char kind, int64_t size)
{
    if (largest) {
        OF_FLOATS(largest)
        OF_COMPLEX(largest)
        OF_INTEGERS(largest, largest_u8)
        return kind == 'b' ? largest_u1 : 0;
    }
    OF_FLOATS(smallest)
    OF_COMPLEX(smallest)
    OF_INTEGERS(smallest, smallest_u8)
    return kind == 'b' ? smallest_u1 : 0;
}

#define NO_NAN(x) 0
#define IS_NAN(x) ((x) != (x))

/* Where runs of equal elements of a sorted array begin, and after them n; NaN is equal to NaN. */
#define STARTS(NAME, T, IS_NAN)                                                                    \
    static int64_t starts_##NAME(int64_t n, const char *sorted, int64_t *starts)                   \
    {                                                                                              \
        const T *x = (const T *)sorted;                                                            \
        int64_t count = 0;                                                                         \
        for (int64_t i = 0; i < n; i++) {                                                          \
            starts[count] = i;                                                                     \
            count += i == 0 || (x[i] != x[i - 1] && !(IS_NAN(x[i]) && IS_NAN(x[i - 1])));          \
        }                                                                                          \
        starts[count] = n;                                                                         \
        return count;                                                                              \
    }

STARTS(1, uint8_t, NO_NAN)
STARTS(2, uint16_t, NO_NAN)
STARTS(4, uint32_t, NO_NAN)
STARTS(8, uint64_t, NO_NAN)
STARTS(f4, float, IS_NAN)
STARTS(f8, double, IS_NAN)
STARTS(c8, float _Complex, IS_NAN)
STARTS(c16, double _Complex, IS_NAN)

int64_t list_runs(char kind, int64_t size, int64_t n, const char *sorted, int64_t *starts)
{
    if (kind == 'f')
        return size == 4 ? starts_f4(n, sorted, starts)
             : size == 8 ? starts_f8(n, sorted, starts) : -1;
    if (kind == 'c')
        return size == 8 ? starts_c8(n, sorted, starts)
             : size == 16 ? starts_c16(n, sorted, starts) : -1;
    return size == 1 ? starts_1(n, sorted, starts) : size == 2 ? starts_2(n, sorted, starts)
         : size == 4 ? starts_4(n, sorted, starts) : starts_8(n, sorted, starts);
}

#endif
