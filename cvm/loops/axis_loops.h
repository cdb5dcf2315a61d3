/* Functions along an axis: running sums and products, recurrences, positions of the largest,
   ranges. An array is given by its address, and by the bytes from one element to the next along the
   axis and from one line to the next. */
#ifndef SYMCOMP_AXIS_LOOPS_H
#define SYMCOMP_AXIS_LOOPS_H

#include "along_axes.h"
#include "moves.h"

#define LINE_ARGUMENTS                                                                             \
    int64_t n, int64_t m, const char *x, int64_t x_step, int64_t x_line, const char *second,       \
        int64_t second_step, int64_t second_line, char *out, int64_t out_step, int64_t out_line

#define AT(T, array, i, j) (*(T *)(array + (i) * array##_step + (j) * array##_line))

/* z_k = FORM(z_{k-1}, x_k, second_k). Line after line, or all lines at once: in either order the
   same is computed, and memory is passed over in its own. Numbers are computed as W; READ and WRITE
   convert elements of X and Z. */
#define RUN_AS(NAME, X, Z, W, READ, WRITE, FIRST, FORM)                                            \
    static EACH_PROCESSOR void NAME(LINE_ARGUMENTS)                                                \
    {                                                                                              \
        (void)second, (void)second_step, (void)second_line;                                        \
        if (m > 1 && without_sign(x_line) < without_sign(x_step)) {                                \
            for (int64_t i = 0; i < n; i++)                                                        \
                for (int64_t j = 0; j < m; j++) {                                                  \
                    W given = READ(AT(const X, x, i, j));                                          \
                    if (i) {                                                                       \
                        W last = READ(AT(Z, out, i - 1, j));                                       \
                        AT(Z, out, i, j) = WRITE(FORM);                                            \
                    } else {                                                                       \
                        AT(Z, out, i, j) = WRITE(FIRST);                                           \
                    }                                                                              \
                }                                                                                  \
            return;                                                                                \
        }                                                                                          \
        for (int64_t j = 0; j < m; j++) {                                                          \
            W last = 0;                                                                            \
            for (int64_t i = 0; i < n; i++) {                                                      \
                W given = READ(AT(const X, x, i, j));                                              \
                last = i ? FORM : FIRST;                                                           \
                AT(Z, out, i, j) = WRITE(last);                                                    \
            }                                                                                      \
        }                                                                                          \
    }

#define RUN(NAME, X, Z, FIRST, FORM) RUN_AS(NAME, X, Z, Z, (Z), (Z), FIRST, FORM)
#define RUN_HALVES(NAME, FORM)                                                                     \
    RUN_AS(NAME, uint16_t, uint16_t, float, half_of_bits, bits_of_half, given, FORM)

#define RUN_BOTH(NAME, X, Z)                                                                       \
    RUN(sums_##NAME, X, Z, given, last + given)                                                    \
    RUN(products_##NAME, X, Z, given, last * given)

/* Multiply the parts: C's product of complex numbers looks for infinities, NumPy's does not. */
#define COMPLEX_PRODUCT(NAME, T, REAL)                                                             \
    static inline T NAME(T x, T y)                                                                 \
    {                                                                                              \
        T z;                                                                                       \
        ((REAL *)&z)[0] = ((REAL *)&x)[0] * ((REAL *)&y)[0] - ((REAL *)&x)[1] * ((REAL *)&y)[1];   \
        ((REAL *)&z)[1] = ((REAL *)&x)[0] * ((REAL *)&y)[1] + ((REAL *)&x)[1] * ((REAL *)&y)[0];   \
        return z;                                                                                  \
    }

COMPLEX_PRODUCT(times_c8, float _Complex, float)
COMPLEX_PRODUCT(times_c16, double _Complex, double)

RUN_BOTH(bool, uint8_t, uint64_t)
RUN_BOTH(i1, int8_t, uint64_t)
RUN_BOTH(i2, int16_t, uint64_t)
RUN_BOTH(i4, int32_t, uint64_t)
RUN_BOTH(i8, uint64_t, uint64_t)
RUN_BOTH(u1, uint8_t, uint64_t)
RUN_BOTH(u2, uint16_t, uint64_t)
RUN_BOTH(u4, uint32_t, uint64_t)
RUN_BOTH(f4, float, float)
RUN_BOTH(f8, double, double)
RUN(sums_c8, float _Complex, float _Complex, given, last + given)
RUN(sums_c16, double _Complex, double _Complex, given, last + given)
RUN(products_c8, float _Complex, float _Complex, given, times_c8(last, given))
RUN(products_c16, double _Complex, double _Complex, given, times_c16(last, given))

#define RATE(T) AT(const T, second, i, j)

RUN_HALVES(sums_f2, half_of(last + given))
RUN_HALVES(products_f2, half_of(last * given))
RUN_HALVES(recurrence_f2, half_of(given + half_of(half_of_bits(RATE(uint16_t)) * last)))
RUN(recurrence_f4, float, float, given, given + RATE(float) * last)
RUN(recurrence_f8, double, double, given, given + RATE(double) * last)
RUN(recurrence_c8, float _Complex, float _Complex, given,
    given + times_c8(RATE(float _Complex), last))
RUN(recurrence_c16, double _Complex, double _Complex, given,
    given + times_c16(RATE(double _Complex), last))

/* The first largest element, or the first NaN: `best` is replaced by a better one. */
enum { CHUNK = 1024, SIDE_BY_SIDE = 32 };
/* Bytes that are prefetched ahead, where that saves time. */
enum { AHEAD = 8192 };

#define IS_BETTER(x, best, SIGN) (((x) SIGN (best)) | (((x) != (x)) & ((best) == (best))))

/* Whether one of two numbers is NaN. */
#define NEVER(x, y) 0
#define UNORDERED(x, y) __builtin_isunordered(x, y)

/* The best of the parts computed side by side, and its position. */
#define TOGETHER(COUNT, PART, SIGN)                                                                \
    for (int part = PART; part < COUNT; part += PART)                                              \
        for (int k = 0; k < PART; k++) {                                                           \
            side[k] = side[part + k] SIGN side[k] ? side[part + k] : side[k];                      \
            odd[k] += odd[part + k];                                                               \
        }

#define EXTREME(NAME, T, BITS, SIGN, ODD)                                                          \
    /* For each of m <= CHUNK lines, row after row. */                                             \
    static EACH_PROCESSOR void rows_##NAME(int64_t n, int64_t m, const char *x, int64_t x_step,    \
                                           int64_t x_line, int64_t *place)                         \
    {                                                                                              \
        T best[CHUNK];                                                                             \
        for (int64_t j = 0; j < m; j++) {                                                          \
            best[j] = *(const T *)(x + j * x_line);                                                \
            place[j] = 0;                                                                          \
        }                                                                                          \
        for (int64_t i = 1; i < n; i++) {                                                          \
            const char *row = x + i * x_step;                                                      \
            if (x_line == sizeof(T)) {                                                             \
                const T *value = (const T *)row;                                                   \
                for (int64_t j = 0; j < m; j++) {                                                  \
                    int better = IS_BETTER(value[j], best[j], SIGN);                               \
                    best[j] = better ? value[j] : best[j];                                         \
                    place[j] = better ? i : place[j];                                              \
                }                                                                                  \
                continue;                                                                          \
            }                                                                                      \
            for (int64_t j = 0; j < m; j++) {                                                      \
                T value = *(const T *)(row + j * x_line);                                          \
                if (IS_BETTER(value, best[j], SIGN)) {                                             \
                    best[j] = value;                                                               \
                    place[j] = i;                                                                  \
                }                                                                                  \
            }                                                                                      \
        }                                                                                          \
    }                                                                                              \
    /* Whether one of count >= SIDE_BY_SIDE numbers next to each other is better than the best until \
       now, which it then becomes; or is NaN, which is `strange`. */                               \
    static EACH_PROCESSOR int better_##NAME(int64_t count, const T *x, T *best, int *strange)      \
    {                                                                                              \
        /* The values that stay in registers, with their positions. */                            \
        enum { LANES = sizeof(T) == 8 ? 24 : SIDE_BY_SIDE };                                       \
        T side[LANES], odd[LANES];                                                                 \
        const T last = *best;                                                                      \
        int early = ASKS_EARLY;                                                                    \
        BITS better = 0;                                                                           \
        for (int k = 0; k < LANES; k++) {                                                          \
            side[k] = last;                                                                        \
            odd[k] = 0;                                                                            \
        }                                                                                          \
        for (int64_t i = 0; i < count; i += 2 * LANES) {                                           \
            /* The last are looked at with some of those before them. */                           \
            const T *one = x + (i < count - LANES ? i : count - LANES);                            \
            const T *two = x + (i + LANES < count - LANES ? i + LANES : count - LANES);            \
            if (early)                                                                             \
                for (int k = 0; k < 2 * LANES; k += 64 / (int)sizeof(T))                           \
                    __builtin_prefetch(one + AHEAD / sizeof(T) + k);                               \
            for (int k = 0; k < LANES; k++) {                                                      \
                odd[k] = ODD(one[k], two[k]) ? (T)1 : odd[k];                                      \
                side[k] = one[k] SIGN side[k] ? one[k] : side[k];                                  \
                side[k] = two[k] SIGN side[k] ? two[k] : side[k];                                  \
            }                                                                                      \
        }                                                                                          \
        for (int k = 0; k < LANES; k++)                                                            \
            better |= (side[k] SIGN last ? 1 : 0) | (odd[k] != 0 ? 1 : 0);                         \
        if (!better)                                                                               \
            return 0;                                                                              \
        TOGETHER(LANES, 8, SIGN)                                                                   \
        TOGETHER(8, 4, SIGN)                                                                       \
        TOGETHER(4, 2, SIGN)                                                                       \
        TOGETHER(2, 1, SIGN)                                                                       \
        *best = side[0];                                                                           \
        *strange = odd[0] != 0;                                                                    \
        return 1;                                                                                  \
    }                                                                                              \
    /* The first of n >= SIDE_BY_SIDE numbers next to each other that is `one`. */                 \
    static EACH_PROCESSOR int64_t first_##NAME(int64_t n, const T *x, T one)                       \
    {                                                                                              \
        BITS bit[SIDE_BY_SIDE];                                                                    \
        for (int k = 0; k < SIDE_BY_SIDE; k++)                                                     \
            bit[k] = (BITS)1 << k;                                                                 \
        for (int64_t i = 0; i < n; i += SIDE_BY_SIDE) {                                            \
            BITS places = 0;                                                                       \
            i = i + SIDE_BY_SIDE <= n ? i : n - SIDE_BY_SIDE;                                      \
            for (int k = 0; k < SIDE_BY_SIDE; k++)                                                 \
                places |= x[i + k] == one ? bit[k] : 0;                                           \
            if (places)                                                                            \
                return i + __builtin_ctzll(places);                                                \
        }                                                                                          \
        return 0;                                                                                  \
    }                                                                                              \
    /* One line: find the chunk that holds the best, then its place in it. */                       \
    static int64_t line_##NAME(int64_t n, const char *x, int64_t x_step)                           \
    {                                                                                              \
        T buffer[CHUNK + SIDE_BY_SIDE], best = *(const T *)x;                                      \
        int64_t found = 0, start = 0, count;                                                       \
        int strange = best != best;                                                                \
        if (n < SIDE_BY_SIDE) {                                                                    \
            for (int64_t i = 1; i < n; i++) {                                                      \
                T value = *(const T *)(x + i * x_step);                                            \
                int better = IS_BETTER(value, best, SIGN);                                         \
                best = better ? value : best;                                                      \
                found = better ? i : found;                                                        \
            }                                                                                      \
            return found;                                                                          \
        }                                                                                          \
        for (; start < n && !strange; start += count) {                                            \
            const T *values = (const T *)(x + start * x_step);                                     \
            count = n - start < CHUNK + SIDE_BY_SIDE ? n - start : CHUNK;                          \
            if (x_step != sizeof(T)) {                                                             \
                for (int64_t i = 0; i < count; i++)                                                \
                    buffer[i] = *(const T *)(x + (start + i) * x_step);                            \
                values = buffer;                                                                   \
            }                                                                                      \
            if (better_##NAME(count, values, &best, &strange))                                     \
                found = start;                                                                     \
        }                                                                                          \
        if (!strange && x_step == sizeof(T)) {                                                     \
            found = found + SIDE_BY_SIDE <= n ? found : n - SIDE_BY_SIDE;                          \
            return found + first_##NAME(n - found, (const T *)x + found, best);                    \
        }                                                                                          \
        for (int64_t i = found;; i++) {                                                            \
            T value = *(const T *)(x + i * x_step);                                                \
            if (value != value || (value == best && !strange))                                     \
                return i;                                                                          \
        }                                                                                          \
    }                                                                                              \
    static void NAME(LINE_ARGUMENTS)                                                               \
    {                                                                                              \
        int64_t place[CHUNK];                                                                      \
        (void)second, (void)second_step, (void)second_line, (void)out_step;                        \
        if (m == 1 || without_sign(x_step) < without_sign(x_line)) {                               \
            for (int64_t j = 0; j < m; j++)                                                        \
                *(int64_t *)(out + j * out_line) = line_##NAME(n, x + j * x_line, x_step);         \
            return;                                                                                \
        }                                                                                          \
        for (int64_t j = 0; j < m; j += CHUNK) {                                                   \
            int64_t count = m - j < CHUNK ? m - j : CHUNK;                                         \
            rows_##NAME(n, count, x + j * x_line, x_step, x_line, place);                          \
            for (int64_t k = 0; k < count; k++)                                                    \
                *(int64_t *)(out + (j + k) * out_line) = place[k];                                 \
        }                                                                                          \
    }

#define EXTREMES(NAME, T, BITS, ODD)                                                               \
    EXTREME(argmax_##NAME, T, BITS, >, ODD)                                                        \
    EXTREME(argmin_##NAME, T, BITS, <, ODD)

EXTREMES(i1, int8_t, uint32_t, NEVER)
EXTREMES(i2, int16_t, uint32_t, NEVER)
EXTREMES(i4, int32_t, uint32_t, NEVER)
EXTREMES(i8, int64_t, uint64_t, NEVER)
EXTREMES(u1, uint8_t, uint32_t, NEVER)
EXTREMES(u2, uint16_t, uint32_t, NEVER)
EXTREMES(u4, uint32_t, uint32_t, NEVER)
EXTREMES(u8, uint64_t, uint64_t, NEVER)
EXTREMES(f4, float, uint32_t, UNORDERED)
EXTREMES(f8, double, uint64_t, UNORDERED)

#include "wide_extremes.h"

#define OF_FLOATS(NAME)                                                                            \
    if (kind == 'f' && size == 4)                                                                  \
        return NAME##_f4;                                                                          \
    if (kind == 'f' && size == 8)                                                                  \
        return NAME##_f8;
#define OF_HALVES(NAME)                                                                            \
    if (kind == 'f' && size == 2)                                                                  \
        return NAME##_f2;
#define OF_COMPLEX(NAME)                                                                           \
    if (kind == 'c' && size == 8)                                                                  \
        return NAME##_c8;                                                                          \
    if (kind == 'c' && size == 16)                                                                 \
        return NAME##_c16;
#define OF_INTEGERS(NAME, LONGEST)                                                                 \
    if (kind == 'i')                                                                               \
        return size == 1 ? NAME##_i1 : size == 2 ? NAME##_i2 : size == 4 ? NAME##_i4 : NAME##_i8;  \
    if (kind == 'u')                                                                               \
        return size == 1 ? NAME##_u1 : size == 2 ? NAME##_u2 : size == 4 ? NAME##_u4 : LONGEST;

line_function *function_of_lines(int what, char kind, int64_t size)
{
    line_function *wide;
    switch (what) {
    case SUMS:
        OF_HALVES(sums)
        OF_FLOATS(sums)
        OF_COMPLEX(sums)
        OF_INTEGERS(sums, sums_i8)
        return kind == 'b' ? sums_bool : 0;
    case PRODUCTS:
        OF_HALVES(products)
        OF_FLOATS(products)
        OF_COMPLEX(products)
        OF_INTEGERS(products, products_i8)
        return kind == 'b' ? products_bool : 0;
    case RECURRENCE:
        OF_HALVES(recurrence)
        OF_FLOATS(recurrence)
        OF_COMPLEX(recurrence)
        return 0;
    case LARGEST:
        if ((wide = wide_function(1, kind, size)))
            return wide;
        OF_FLOATS(argmax)
        OF_INTEGERS(argmax, argmax_u8)
        return kind == 'b' ? argmax_u1 : 0;
    default:
        if ((wide = wide_function(0, kind, size)))
            return wide;
        OF_FLOATS(argmin)
        OF_INTEGERS(argmin, argmin_u8)
        return kind == 'b' ? argmin_u1 : 0;
    }
}

/* z_i = start + i step, each rounded once; READ and WRITE convert elements. */
#define RANGE_AS(T, W, READ, WRITE)                                                                \
    do {                                                                                           \
        const W first = READ(*(const T *)start), by = READ(*(const T *)step);                      \
        for (int64_t i = 0; i < n; i++)                                                            \
            ((T *)z)[i] = WRITE(first + (W)i * by);                                                \
        return 1;                                                                                  \
    } while (0)
#define RANGE(T, W) RANGE_AS(T, W, (W), (T))

int fill_range(char kind, int64_t size, int64_t n, const char *start, const char *step, char *z)
{
    if (kind == 'i' || kind == 'u') {
        if (size == 1)
            RANGE(uint8_t, uint8_t);
        if (size == 2)
            RANGE(uint16_t, uint32_t);
        if (size == 4)
            RANGE(uint32_t, uint32_t);
        RANGE(uint64_t, uint64_t);
    }
    if (kind == 'f' && size == 2)
        RANGE_AS(uint16_t, float, half_of_bits, BITS_OF_NEAREST_HALF);
    if (kind == 'f' && size == 4)
        RANGE(float, float);
    if (kind == 'f' && size == 8)
        RANGE(double, double);
    return 0;
}

#endif
