/* Elements moved from one array to another: set or added, along axes, or at positions in a table.
   An array is given by its address, and by the bytes from one element to the next along each axis. */
#ifndef SYMCOMP_MOVES_H
#define SYMCOMP_MOVES_H

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#define INLINE static inline
#include "../../symcomp/codegen/functions/bits.h"
#include "../../symcomp/codegen/functions/narrow.h"
#include "../../symcomp/codegen/loops/scatter.h"
#include "../../symcomp/codegen/loops/transpose_blocks.h"

/* Compiled for several processors where the loader chooses among them. It takes time to ask for
   memory before it is read, but saves more where vectors are as long as lines of the cache. */
#if defined(__x86_64__) && defined(__gnu_linux__) && defined(__GNUC__) && !defined(__clang__)
#define EACH_PROCESSOR __attribute__((target_clones("avx512f", "avx2", "default")))
#define ASKS_EARLY __builtin_cpu_supports("avx512f")
#else
#define EACH_PROCESSOR
#define ASKS_EARLY 0
#endif

enum { MOST_MOVED_AXES = 16 };

/* n elements; those of `to` are where `table` says, if it is not 0. */
typedef void move_function(int64_t n, char *to, int64_t to_step, const char *from,
                           int64_t from_step, const int64_t *table);

#define SET(x, y) (x) = (y)
#define ADD_HALVES(x, y) ADD_HALF(x, half_of_bits(y))
#define ADD_BFLOATS(x, y) ADD_BFLOAT(x, bfloat_of_bits(y))

/* The same for n elements that lie side by side in both arrays. */
#define ALL_SET(T) memcpy(to, from, (size_t)(n * size))
#define ALL_ADD(T) ALL_BY(T, ADD)
#define ALL_ADD_HALVES(T) ALL_BY(T, ADD_HALVES)
#define ALL_ADD_BFLOATS(T) ALL_BY(T, ADD_BFLOATS)
#define ALL_OR(T) ALL_BY(T, OR)
#define ALL_BY(T, APPLY)                                                                           \
    T *restrict z = (T *)to;                                                                       \
    const T *restrict y = (const T *)from;                                                         \
    for (int64_t i = 0; i < n; i++)                                                                \
        APPLY(z[i], y[i])

/* The same for elements of `to` at places, in their order. */
#define MOVED_TO(T, i) ((T *)(to + table[i]))
#define MOVED_FROM(T, i) (*(const T *)(from + (i) * from_step))
#define AT_ADD(T) ADD_AT_PLACES(T, MOVED_TO, MOVED_FROM)
#define AT_SET(T) AT_BY(T, SET)
#define AT_ADD_HALVES(T) AT_BY(T, ADD_HALVES)
#define AT_ADD_BFLOATS(T) AT_BY(T, ADD_BFLOATS)
#define AT_OR(T) AT_BY(T, OR)
#define AT_BY(T, APPLY)                                                                            \
    for (int64_t i = 0; i < n; i++)                                                                \
        APPLY(*MOVED_TO(T, i), MOVED_FROM(T, i))

#define MOVE(NAME, T, APPLY)                                                                       \
    static EACH_PROCESSOR void NAME(int64_t n, char *to, int64_t to_step, const char *from,        \
                                    int64_t from_step, const int64_t *table)                       \
    {                                                                                              \
        const int64_t size = sizeof(T);                                                            \
        if (table) {                                                                               \
            AT_##APPLY(T);                                                                         \
        } else if (to_step == size && from_step == size) {                                         \
            ALL_##APPLY(T);                                                                        \
        } else if (to_step == size && from_step == 0) {                                            \
            T *z = (T *)to, y = *(const T *)from;                                                  \
            for (int64_t i = 0; i < n; i++)                                                        \
                APPLY(z[i], y);                                                                    \
        } else {                                                                                   \
            for (int64_t i = 0; i < n; i++)                                                        \
                APPLY(*(T *)(to + i * to_step), *(const T *)(from + i * from_step));               \
        }                                                                                          \
    }

MOVE(set_1, uint8_t, SET)
MOVE(set_2, uint16_t, SET)
MOVE(set_4, uint32_t, SET)
MOVE(set_8, uint64_t, SET)
MOVE(set_16, struct two_words, SET)
MOVE(add_bool, uint8_t, OR)
MOVE(add_1, uint8_t, ADD)
MOVE(add_2, uint16_t, ADD)
MOVE(add_4, uint32_t, ADD)
MOVE(add_8, uint64_t, ADD)
MOVE(add_half, uint16_t, ADD_HALVES)
MOVE(add_bfloat, uint16_t, ADD_BFLOATS)
MOVE(add_f4, float, ADD)
MOVE(add_f8, double, ADD)
MOVE(add_c8, float _Complex, ADD)
MOVE(add_c16, double _Complex, ADD)

/* Read at the places of a table. */
#define TAKE(NAME, T)                                                                              \
    static void NAME(int64_t n, char *to, int64_t to_step, const char *from, int64_t from_step,    \
                     const int64_t *table)                                                         \
    {                                                                                              \
        (void)from_step;                                                                           \
        if (to_step == sizeof(T)) {                                                                \
            T *z = (T *)to;                                                                        \
            for (int64_t i = 0; i < n; i++)                                                        \
                z[i] = *(const T *)(from + table[i]);                                              \
            return;                                                                                \
        }                                                                                          \
        for (int64_t i = 0; i < n; i++)                                                            \
            *(T *)(to + i * to_step) = *(const T *)(from + table[i]);                              \
    }

TAKE(take_1, uint8_t)
TAKE(take_2, uint16_t)
TAKE(take_4, uint32_t)
TAKE(take_8, uint64_t)
TAKE(take_16, struct two_words)

static inline move_function *function_that_sets(int64_t size)
{
    return size == 1 ? set_1 : size == 2 ? set_2 : size == 4 ? set_4 : size == 8 ? set_8
         : size == 16 ? set_16 : 0;
}

/* The size of the elements that such a function sets; 0 if it does something else. */
static inline int size_that_is_set(move_function *move)
{
    return move == set_1 ? 1 : move == set_2 ? 2 : move == set_4 ? 4 : move == set_8 ? 8
         : move == set_16 ? 16 : 0;
}

static inline move_function *function_that_takes(int64_t size)
{
    return size == 1 ? take_1 : size == 2 ? take_2 : size == 4 ? take_4 : size == 8 ? take_8
         : size == 16 ? take_16 : 0;
}

/* For the kind of a dtype, as NumPy names it, 'B' for bfloat16, and its size; 0 if there is none. */
static inline move_function *function_that_adds(char kind, int64_t size)
{
    switch (kind) {
    case 'b': return add_bool;
    case 'i':
    case 'u': return size == 1 ? add_1 : size == 2 ? add_2 : size == 4 ? add_4 : add_8;
    case 'f': return size == 2 ? add_half : size == 4 ? add_f4 : size == 8 ? add_f8 : 0;
    case 'B': return add_bfloat;
    case 'c': return size == 8 ? add_c8 : size == 16 ? add_c16 : 0;
    default: return 0;
    }
}

/* The axes along which elements are moved, slowest first; `size` is 0 if there are no elements. */
struct axes {
    int rank;
    int64_t size, length[MOST_MOVED_AXES], to[MOST_MOVED_AXES], from[MOST_MOVED_AXES];
};

static inline int64_t without_sign(int64_t step)
{
    return step < 0 ? -step : step;
}

/* Sort the axes by the strides of the destination, and merge contiguous ones. */
static inline void order_axes(struct axes *a, int rank, const int64_t *length, const int64_t *to,
                              const int64_t *from)
{
    int last = 0;
    a->rank = 0;
    a->size = 1;
    for (int axis = 0; axis < rank; axis++) {
        a->size *= length[axis];
        if (length[axis] == 1)
            continue;
        int place = a->rank++;
        for (; place > 0; place--) {
            int64_t before = without_sign(a->to[place - 1]), here = without_sign(to[axis]);
            if (before > here || (before == here &&
                                  without_sign(a->from[place - 1]) >= without_sign(from[axis])))
                break;
            a->length[place] = a->length[place - 1];
            a->to[place] = a->to[place - 1];
            a->from[place] = a->from[place - 1];
        }
        a->length[place] = length[axis];
        a->to[place] = to[axis];
        a->from[place] = from[axis];
    }
    for (int axis = 1; axis < a->rank; axis++) {
        int64_t n = a->length[axis];
        if (a->to[last] == a->to[axis] * n && a->from[last] == a->from[axis] * n) {
            n *= a->length[last];
        } else {
            last++;
        }
        a->length[last] = n;
        a->to[last] = a->to[axis];
        a->from[last] = a->from[axis];
    }
    a->rank = a->rank ? last + 1 : 0;
}

/* Go to the next index of the first `rank` axes; 0 after the last. */
static inline int next_place(const struct axes *a, int rank, int64_t *index, char **to,
                             const char **from)
{
    for (int axis = rank - 1; axis >= 0; axis--) {
        *to += a->to[axis];
        *from += a->from[axis];
        if (++index[axis] < a->length[axis])
            return 1;
        *to -= a->to[axis] * a->length[axis];
        *from -= a->from[axis] * a->length[axis];
        index[axis] = 0;
    }
    return 0;
}

/* The axis along which the source has the smallest stride, if that is not the last one; else -1. */
static inline int crossing_axis(const struct axes *a)
{
    int last = a->rank - 1, best = last;
    for (int axis = 0; axis < last; axis++)
        if (a->length[axis] >= 4 && block_crosses(a->from[axis], a->from[best]))
            best = axis;
    return best == last ? -1 : best;
}

/* Set all elements where that axis is not the last one: as many rectangles. */
static inline void set_crossing(const struct axes *a, int crossing, int size, char *to,
                                const char *from)
{
    int64_t index[MOST_MOVED_AXES] = {0};
    struct axes outer = *a;
    int last = a->rank - 1;
    for (int axis = crossing; axis < last - 1; axis++) {
        outer.length[axis] = a->length[axis + 1];
        outer.to[axis] = a->to[axis + 1];
        outer.from[axis] = a->from[axis + 1];
    }
    do
        copy_rectangle(size, a->length[crossing], a->length[last], to, a->to[crossing], a->to[last],
                       from, a->from[crossing], a->from[last]);
    while (next_place(&outer, last - 1, index, &to, &from));
}

/* Rows are short if a call for each would take longer than their elements; then a call moves one
   element of each of some rows, which lie so near to each other that the cache holds them. */
enum { SHORT_ROW = 8, ROWS_TOGETHER = 64, NEAR_ROWS = 512 };

static inline int has_short_rows(const struct axes *a)
{
    const int inner = a->rank - 1, outer = inner - 1;
    return a->length[inner] <= SHORT_ROW && a->length[outer] >= 2 * a->length[inner] &&
           without_sign(a->to[outer]) <= NEAR_ROWS && without_sign(a->from[outer]) <= NEAR_ROWS;
}

/* All elements along the last two axes. */
static inline void move_short_rows(const struct axes *a, move_function *move, char *to,
                                   const char *from)
{
    const int inner = a->rank - 1, outer = inner - 1;
    for (int64_t first = 0; first < a->length[outer]; first += ROWS_TOGETHER) {
        int64_t rows = a->length[outer] - first;
        rows = rows < ROWS_TOGETHER ? rows : ROWS_TOGETHER;
        for (int64_t i = 0; i < a->length[inner]; i++)
            move(rows, to + first * a->to[outer] + i * a->to[inner], a->to[outer],
                 from + first * a->from[outer] + i * a->from[inner], a->from[outer], 0);
    }
}

/* Move all elements along the axes, of which there are several. */
static inline void move_several_axes(const struct axes *a, move_function *move, char *to,
                                     const char *from)
{
    int64_t index[MOST_MOVED_AXES] = {0};
    int inner = a->rank - 1, size = size_that_is_set(move);
    int crossing = size ? crossing_axis(a) : -1;
    if (crossing >= 0) {
        set_crossing(a, crossing, size, to, from);
        return;
    }
    if (has_short_rows(a)) {
        do
            move_short_rows(a, move, to, from);
        while (next_place(a, inner - 1, index, &to, &from));
        return;
    }
    do
        move(a->length[inner], to, a->to[inner], from, a->from[inner], 0);
    while (next_place(a, inner, index, &to, &from));
}

static inline void move_axes(const struct axes *a, move_function *move, char *to, const char *from)
{
    if (a->size == 0)
        return;
    if (a->rank > 1)
        move_several_axes(a, move, to, from);
    else if (a->rank)
        move(a->length[0], to, a->to[0], from, a->from[0], 0);
    else
        move(1, to, 0, from, 0, 0);
}

/* Go to the next index of axes whose steps are those of one array; 0 after the last. */
static inline int next_index(int rank, const int64_t *length, const int64_t *step, int64_t *index,
                             int64_t *offset)
{
    for (int axis = rank - 1; axis >= 0; axis--) {
        *offset += step[axis];
        if (++index[axis] < length[axis])
            return 1;
        *offset -= step[axis] * length[axis];
        index[axis] = 0;
    }
    return 0;
}

/* Where the elements of an array are, in row-major order of the index. */
static inline void list_offsets(int rank, const int64_t *length, const int64_t *step,
                                int64_t *table)
{
    int64_t index[MOST_MOVED_AXES] = {0}, offset = 0;
    do
        *table++ = offset;
    while (next_index(rank, length, step, index, &offset));
}

#define POSITIONS(T)                                                                               \
    do {                                                                                           \
        T value = *(const T *)(from + offset);                                                     \
        uint64_t at = (uint64_t)value + (value < 0 ? (uint64_t)n : 0);                             \
        if (at >= (uint64_t)n)                                                                     \
            return 0;                                                                              \
        *table++ += (int64_t)at * stride;                                                          \
    } while (next_index(rank, length, step, index, &offset))

/* The same for positions that lie side by side, without a branch for each. */
#define POSITIONS_IN_A_ROW(NAME, T)                                                                \
    static EACH_PROCESSOR int NAME(int64_t count, const char *from, int64_t n, int64_t stride,     \
                                   int64_t *restrict table)                                        \
    {                                                                                              \
        const T *restrict values = (const T *)from;                                                \
        int64_t wrong = 0;                                                                         \
        for (int64_t i = 0; i < count; i++) {                                                      \
            uint64_t at = (uint64_t)values[i] + (values[i] < 0 ? (uint64_t)n : 0);                 \
            wrong |= -(int64_t)(at >= (uint64_t)n);                                                \
            table[i] += (int64_t)(at * (uint64_t)stride);                                          \
        }                                                                                          \
        return wrong == 0;                                                                         \
    }

POSITIONS_IN_A_ROW(add_row_i4, int32_t)
POSITIONS_IN_A_ROW(add_row_i8, int64_t)

/* Add to a table where positions in an axis of n elements are, `stride` bytes apart, counted from
   the end if they are negative. `kind` is the size of an integer, negative if it has no sign. 0 if
   a position is out of range. */
static inline int add_positions(int kind, int rank, const int64_t *length, const char *from,
                                const int64_t *step, int64_t n, int64_t stride, int64_t *table)
{
    int64_t index[MOST_MOVED_AXES] = {0}, offset = 0;
    if (rank == 1 && kind == step[0] && kind == 8)
        return add_row_i8(length[0], from, n, stride, table);
    if (rank == 1 && kind == step[0] && kind == 4)
        return add_row_i4(length[0], from, n, stride, table);
    switch (kind) {
    case 1: POSITIONS(int8_t); break;
    case 2: POSITIONS(int16_t); break;
    case 4: POSITIONS(int32_t); break;
    case 8: POSITIONS(int64_t); break;
    case -1: POSITIONS(uint8_t); break;
    case -2: POSITIONS(uint16_t); break;
    case -4: POSITIONS(uint32_t); break;
    default: POSITIONS(uint64_t);
    }
    return 1;
}

/* Copies at `count` positions: for each index of `outer`, and each position, all of `inner`. One
   side has a table of offsets, the other one too, or else `step` bytes between positions. */
struct places {
    struct axes outer, inner;
    int64_t count, step;
    int reads;                      /* whether the table is of the source */
    const int64_t *table, *other;
};

/* One index of `outer`. */
static inline void move_places(const struct places *p, move_function *move, char *to,
                               const char *from)
{
    if (p->inner.size == 1 && !p->other) {
        move(p->count, to, p->step, from, p->step, p->table);
        return;
    }
    for (int64_t i = 0; i < p->count; i++) {
        int64_t other = p->other ? p->other[i] : i * p->step;
        int64_t a = p->reads ? other : p->table[i], b = p->reads ? p->table[i] : other;
        move_axes(&p->inner, move, to + a, from + b);
    }
}

static inline void move_all_places(const struct places *p, move_function *move, char *to,
                                   const char *from)
{
    int64_t index[MOST_MOVED_AXES] = {0};
    const struct axes *a = &p->outer;
    if (p->count == 0 || a->size == 0 || p->inner.size == 0)
        return;
    do
        move_places(p, move, to, from);
    while (next_place(a, a->rank, index, &to, &from));
}

#endif
