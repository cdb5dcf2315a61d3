/* Products of matrices of numbers that BLAS does not know, and the order of many products. Steps
   are bytes; the result is n rows of m in C order. */
#ifndef SYMCOMP_PRODUCTS_H
#define SYMCOMP_PRODUCTS_H

#include <stdint.h>
#include "../loops/moves.h"

enum { COLUMNS = 256, MOST_FACTORS = 64 };

#define PRODUCT_ARGUMENTS                                                                          \
    int64_t n, int64_t k, int64_t m, const char *a, int64_t a_down, int64_t a_along,               \
        const char *b, int64_t b_down, int64_t b_along, char *out

typedef void product_function(PRODUCT_ARGUMENTS);

#define SUM_UP(total, x, y) total += (x) * (y)
#define ANY_OF(total, x, y) total |= ((x) != 0) & ((y) != 0)

/* Rows of b are added up if they are contiguous, four at once so that totals are loaded less
   often; else each element is a sum of its own. W is the type of the accumulator: unsigned, so
   that numbers wrap, and no narrower than int, so that they are not promoted to it. */
#define PRODUCT(NAME, T, W, JOIN)                                                                  \
    static EACH_PROCESSOR void row_sums_##NAME(PRODUCT_ARGUMENTS)                                  \
    {                                                                                              \
        W total[COLUMNS];                                                                          \
        for (int64_t start = 0; start < m; start += COLUMNS) {                                     \
            const int64_t count = m - start < COLUMNS ? m - start : COLUMNS;                       \
            for (int64_t i = 0; i < n; i++) {                                                      \
                const char *x = a + i * a_down, *y = b + start * b_along;                          \
                int64_t p = 0;                                                                     \
                for (int64_t j = 0; j < count; j++)                                                \
                    total[j] = 0;                                                                  \
                for (; p + 3 < k; p += 4) {                                                        \
                    const W x0 = *(const T *)x, x1 = *(const T *)(x + a_along);                    \
                    const W x2 = *(const T *)(x + 2 * a_along);                                    \
                    const W x3 = *(const T *)(x + 3 * a_along);                                    \
                    const T *y0 = (const T *)y, *y1 = (const T *)(y + b_down);                     \
                    const T *y2 = (const T *)(y + 2 * b_down), *y3 = (const T *)(y + 3 * b_down);  \
                    for (int64_t j = 0; j < count; j++) {                                          \
                        W sum = total[j];                                                          \
                        JOIN(sum, x0, (W)y0[j]);                                                   \
                        JOIN(sum, x1, (W)y1[j]);                                                   \
                        JOIN(sum, x2, (W)y2[j]);                                                   \
                        JOIN(sum, x3, (W)y3[j]);                                                   \
                        total[j] = sum;                                                            \
                    }                                                                              \
                    x += 4 * a_along;                                                              \
                    y += 4 * b_down;                                                               \
                }                                                                                  \
                for (; p < k; p++, x += a_along, y += b_down)                                      \
                    for (int64_t j = 0; j < count; j++)                                            \
                        JOIN(total[j], (W)*(const T *)x, (W)((const T *)y)[j]);                    \
                for (int64_t j = 0; j < count; j++)                                                \
                    ((T *)out)[i * m + start + j] = (T)total[j];                                   \
            }                                                                                      \
        }                                                                                          \
    }                                                                                              \
    static EACH_PROCESSOR void single_sums_##NAME(PRODUCT_ARGUMENTS)                               \
    {                                                                                              \
        for (int64_t i = 0; i < n; i++)                                                            \
            for (int64_t j = 0; j < m; j++) {                                                      \
                const char *x = a + i * a_down, *y = b + j * b_along;                              \
                W total = 0;                                                                       \
                if (a_along == sizeof(T) && b_down == sizeof(T))                                   \
                    for (int64_t p = 0; p < k; p++)                                                \
                        JOIN(total, (W)((const T *)x)[p], (W)((const T *)y)[p]);                   \
                else                                                                               \
                    for (int64_t p = 0; p < k; p++)                                                \
                        JOIN(total, (W)*(const T *)(x + p * a_along),                              \
                             (W)*(const T *)(y + p * b_down));                                     \
                ((T *)out)[i * m + j] = (T)total;                                                  \
            }                                                                                      \
    }                                                                                              \
    static void product_##NAME(PRODUCT_ARGUMENTS)                                                  \
    {                                                                                              \
        if (b_along == sizeof(T))                                                                  \
            row_sums_##NAME(n, k, m, a, a_down, a_along, b, b_down, b_along, out);                 \
        else                                                                                       \
            single_sums_##NAME(n, k, m, a, a_down, a_along, b, b_down, b_along, out);              \
    }

PRODUCT(bool, uint8_t, uint8_t, ANY_OF)
PRODUCT(1, uint8_t, uint32_t, SUM_UP)
PRODUCT(2, uint16_t, uint32_t, SUM_UP)
PRODUCT(4, uint32_t, uint32_t, SUM_UP)
PRODUCT(8, uint64_t, uint64_t, SUM_UP)

/* For the kind of a dtype and its size; 0 if there is none. */
static inline product_function *function_that_multiplies(char kind, int64_t size)
{
    if (kind == 'b')
        return product_bool;
    if (kind != 'i' && kind != 'u')
        return 0;
    return size == 1 ? product_1 : size == 2 ? product_2 : size == 4 ? product_4 : product_8;
}

/* The order of fewest multiplications for n matrices, matrix i of length[i] rows and length[i + 1]
   columns: n - 1 products, each the two values that it takes, of which the first n are the matrices
   and the others the products before. Equally good orders: the one that splits last. */
static inline void best_order(int n, const int64_t *length, int *order)
{
    unsigned __int128 cost[MOST_FACTORS][MOST_FACTORS];
    int split[MOST_FACTORS][MOST_FACTORS], first[2 * MOST_FACTORS], last[2 * MOST_FACTORS];
    int value[MOST_FACTORS][2], known = 1, done = 0;
    for (int i = 0; i < n; i++)
        cost[i][i] = 0;
    for (int width = 1; width < n; width++)
        for (int i = 0; i + width < n; i++) {
            int j = i + width;
            for (int k = i; k < j; k++) {
                unsigned __int128 all = (unsigned __int128)length[i] * (uint64_t)length[j + 1];
                all = all * (uint64_t)length[k + 1] + cost[i][k] + cost[k + 1][j];
                if (k == i || all <= cost[i][j]) {
                    cost[i][j] = all;
                    split[i][j] = k;
                }
            }
        }
    /* From the whole to its halves; backwards, halves come before their products. */
    first[0] = 0;
    last[0] = n - 1;
    for (int at = 0; at < known; at++) {
        int middle = split[first[at]][last[at]];
        int from[2] = {first[at], middle + 1}, to[2] = {middle, last[at]};
        for (int side = 0; side < 2; side++) {
            value[at][side] = from[side];
            if (from[side] < to[side]) {
                first[known] = from[side];
                last[known] = to[side];
                value[at][side] = n + (n - 2 - known);
                known++;
            }
        }
    }
    for (int at = known - 1; at >= 0; at--, done += 2) {
        order[done] = value[at][0];
        order[done + 1] = value[at][1];
    }
}

#endif
