/* Copies of rectangles of elements; the rows of one side may be the columns of the other. */
#ifndef SYMCOMP_TRANSPOSE_BLOCKS_H
#define SYMCOMP_TRANSPOSE_BLOCKS_H

struct two_words {
    uint64_t low, high;
};

#define COPY_EACH(T)                                                                               \
    for (int64_t r = 0; r < rows; r++)                                                             \
        for (int64_t i = 0; i < n; i++)                                                            \
            *(T *)(to + r * to_row + i * to_step) =                                                \
                *(const T *)(from + r * from_row + i * from_step)

/* Transpose rows that are adjacent in memory to contiguous rows, four by four elements by
   vectors, with prefetches of the next cache lines. Both counts are multiples of four. */
#if defined(__clang__)
#define SHUFFLED(x, y, a, b, c, d) __builtin_shufflevector(x, y, a, b, c, d)
#else
#define SHUFFLED(x, y, a, b, c, d) __builtin_shuffle(x, y, (__typeof__(x)){a, b, c, d})
#endif
/* The loader chooses the version with the longest vectors that the processor has. */
#if defined(__x86_64__) && defined(__gnu_linux__) && !defined(__clang__) && !defined(__AVX2__)
#define FOR_VECTORS __attribute__((target_clones("avx2", "default"), unused))
#define HAS_VECTORS __builtin_cpu_supports("avx2")
#else
#define FOR_VECTORS inline
#define HAS_VECTORS 1
#endif
enum { TURNED_AHEAD = 8, TURNED_LINE = 64 };
#define TURN(NAME, T)                                                                              \
    typedef T NAME##_lanes __attribute__((vector_size(4 * sizeof(T))));                            \
    typedef T NAME##_line                                                                          \
        __attribute__((vector_size(4 * sizeof(T)), aligned(sizeof(T)), may_alias));                \
    static FOR_VECTORS void NAME(int64_t rows, int64_t n, char *to, int64_t to_row,                \
                                 const char *from, int64_t from_step)                              \
    {                                                                                              \
        for (const char *end = from + n * from_step; from != end; from += 4 * from_step) {         \
            char *z = to;                                                                          \
            for (int i = TURNED_AHEAD; i < TURNED_AHEAD + 4; i++)                                  \
                for (int64_t r = 0; r < rows * (int64_t)sizeof(T); r += TURNED_LINE)               \
                    __builtin_prefetch(from + i * from_step + r);                                  \
            for (const char *x = from, *last = x + rows * (int64_t)sizeof(T); x != last;           \
                 x += 4 * sizeof(T), z += 4 * to_row) {                                            \
                NAME##_lanes a = *(const NAME##_line *)x;                                          \
                NAME##_lanes b = *(const NAME##_line *)(x + from_step);                            \
                NAME##_lanes c = *(const NAME##_line *)(x + 2 * from_step);                        \
                NAME##_lanes d = *(const NAME##_line *)(x + 3 * from_step);                        \
                NAME##_lanes e = SHUFFLED(a, b, 0, 4, 2, 6), f = SHUFFLED(a, b, 1, 5, 3, 7);       \
                NAME##_lanes g = SHUFFLED(c, d, 0, 4, 2, 6), h = SHUFFLED(c, d, 1, 5, 3, 7);       \
                *(NAME##_line *)z = SHUFFLED(e, g, 0, 1, 4, 5);                                    \
                *(NAME##_line *)(z + to_row) = SHUFFLED(f, h, 0, 1, 4, 5);                         \
                *(NAME##_line *)(z + 2 * to_row) = SHUFFLED(e, g, 2, 3, 6, 7);                     \
                *(NAME##_line *)(z + 3 * to_row) = SHUFFLED(f, h, 2, 3, 6, 7);                     \
            }                                                                                      \
            to += 4 * sizeof(T);                                                                   \
        }                                                                                          \
    }

TURN(turn_4, uint32_t)
TURN(turn_8, uint64_t)

/* Whether rows are adjacent in memory, and the elements of a row are strided. */
static inline int block_crosses(int64_t row_step, int64_t step)
{
    return row_step && llabs(row_step) < llabs(step);
}

static inline void copy_in_order(int size, int64_t rows, int64_t n, char *to, int64_t to_row,
                                 int64_t to_step, const char *from, int64_t from_row,
                                 int64_t from_step)
{
    if (size == 16)
        COPY_EACH(struct two_words);
    else if (size == 8)
        COPY_EACH(uint64_t);
    else if (size == 4)
        COPY_EACH(uint32_t);
    else if (size == 2)
        COPY_EACH(uint16_t);
    else
        COPY_EACH(uint8_t);
}

/* The same if rows of one side are adjacent, and those of the other one contiguous: one side is
   read, or written, in its own order. */
static inline void copy_turned(int size, int64_t rows, int64_t n, char *to, int64_t to_row,
                               int64_t to_step, const char *from, int64_t from_row,
                               int64_t from_step)
{
    int64_t whole = 0, columns = n / 4 * 4;
    if ((size == 4 || size == 8) && from_row == size && to_step == size && HAS_VECTORS)
        whole = rows / 4 * 4;
    if (whole && size == 8)
        turn_8(whole, columns, to, to_row, from, from_step);
    else if (whole)
        turn_4(whole, columns, to, to_row, from, from_step);
    int64_t done = whole ? columns : 0;
    copy_in_order(size, n - done, whole, to + done * to_step, to_step, to_row,
                  from + done * from_step, from_step, from_row);
    copy_in_order(size, n, rows - whole, to + whole * to_row, to_step, to_row,
                  from + whole * from_row, from_step, from_row);
}

/* A block that fits the nearest cache. */
static inline void copy_block(int size, int64_t rows, int64_t n, char *to, int64_t to_row,
                              int64_t to_step, const char *from, int64_t from_row,
                              int64_t from_step)
{
    if (rows >= 4 && block_crosses(from_row, from_step))
        copy_turned(size, rows, n, to, to_row, to_step, from, from_row, from_step);
    else if (rows >= 4 && block_crosses(to_row, to_step))
        copy_turned(size, n, rows, to, to_step, to_row, from, from_step, from_row);
    else
        copy_in_order(size, rows, n, to, to_row, to_step, from, from_row, from_step);
}

/* The rows and columns that are copied together. */
enum { BLOCK_ROWS = 16, BLOCK_COLUMNS = 32 };

static inline void copy_rectangle(int size, int64_t rows, int64_t n, char *to, int64_t to_row,
                                  int64_t to_step, const char *from, int64_t from_row,
                                  int64_t from_step)
{
    if (to_step == size && from_step == size) {
        for (int64_t r = 0; r < rows; r++)
            memcpy(to + r * to_row, from + r * from_row, (size_t)(n * size));
    } else if (to_row == size && from_row == size) {
        for (int64_t i = 0; i < n; i++)
            memcpy(to + i * to_step, from + i * from_step, (size_t)(rows * size));
    } else {
        for (int64_t r = 0; r < rows; r += BLOCK_ROWS)
            for (int64_t i = 0; i < n; i += BLOCK_COLUMNS)
                copy_block(size, rows - r < BLOCK_ROWS ? rows - r : BLOCK_ROWS,
                           n - i < BLOCK_COLUMNS ? n - i : BLOCK_COLUMNS,
                           to + r * to_row + i * to_step, to_row, to_step,
                           from + r * from_row + i * from_step, from_row, from_step);
    }
}
#endif
