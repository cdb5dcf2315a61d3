/* Elements added to others at places that a table tells, one after the other. */
#ifndef SYMCOMP_SCATTER_H
#define SYMCOMP_SCATTER_H

#define ADD(x, y) (x) += (y)
#define OR(x, y) (x) = ((x) != 0) | ((y) != 0)

/* Elements that are added to one place together. */
enum { IN_A_ROW = 4 };

static inline int is_one_place(const int64_t *table)
{
    int64_t apart = 0;
    if (table[0] != table[IN_A_ROW - 1])
        return 0;
    for (int64_t i = 1; i < IN_A_ROW; i++)
        apart |= table[0] ^ table[i];
    return apart == 0;
}

/* Add n elements FROM(T, i) to those at TO(T, i). An element that is added to many times in a row stays
   in a register: memory would take several times as long as the addition. */
#define ADD_AT_PLACES(T, TO, FROM)                                                                 \
    int64_t done = 0;                                                                              \
    for (; done + IN_A_ROW <= n; done += IN_A_ROW) {                                               \
        if (is_one_place(table + done)) {                                                          \
            T *z = TO(T, done), total = *z;                                                        \
            for (int64_t i = 0; i < IN_A_ROW; i++)                                                 \
                ADD(total, FROM(T, done + i));                                                     \
            *z = total;                                                                            \
        } else {                                                                                   \
            for (int64_t i = 0; i < IN_A_ROW; i++)                                                 \
                ADD(*TO(T, done + i), FROM(T, done + i));                                          \
        }                                                                                          \
    }                                                                                              \
    for (; done < n; done++)                                                                       \
        ADD(*TO(T, done), FROM(T, done))

/* n values that a kernel computed, HELD in its type, added to elements of a table of T. */
#define SCATTERED_TO(T, i) (to + table[i])
#define SCATTERED_FROM(T, i) ((T)from[i])
#define SCATTER(DTYPE, T, HELD)                                                                    \
    static inline void scatter_##DTYPE(int64_t n, T *to, const HELD *from, const int64_t *table)   \
    {                                                                                              \
        ADD_AT_PLACES(T, SCATTERED_TO, SCATTERED_FROM);                                            \
    }

SCATTER(int8, int8_t, int8_t)
SCATTER(int16, int16_t, int16_t)
SCATTER(int32, int32_t, int32_t)
SCATTER(int64, int64_t, int64_t)
SCATTER(uint8, uint8_t, uint8_t)
SCATTER(uint16, uint16_t, uint16_t)
SCATTER(uint32, uint32_t, uint32_t)
SCATTER(uint64, uint64_t, uint64_t)
SCATTER(float32, float, float)
SCATTER(float64, double, double)
SCATTER(complex64, float _Complex, float _Complex)
SCATTER(complex128, double _Complex, double _Complex)

/* Numbers of 16 bits are added as float, and each total is rounded. */
#define BITS_OF_NEAREST_HALF(x) bits_of_half(half_of(x))
#define ADD_HALF(x, y) (x) = BITS_OF_NEAREST_HALF(half_of_bits(x) + (y))
#define ADD_BFLOAT(x, y) (x) = bits_of_bfloat(bfloat_of(bfloat_of_bits(x) + (y)))
#define SCATTER_NARROW(DTYPE, APPLY)                                                               \
    static inline void scatter_##DTYPE(int64_t n, uint16_t *to, const float *from,                 \
                                       const int64_t *table)                                       \
    {                                                                                              \
        for (int64_t i = 0; i < n; i++)                                                            \
            APPLY(to[table[i]], from[i]);                                                          \
    }

SCATTER_NARROW(float16, ADD_HALF)
SCATTER_NARROW(bfloat16, ADD_BFLOAT)

static inline void scatter_bool(int64_t n, uint8_t *to, const uint8_t *from, const int64_t *table)
{
    for (int64_t i = 0; i < n; i++)
        OR(to[table[i]], from[i]);
}

#endif
