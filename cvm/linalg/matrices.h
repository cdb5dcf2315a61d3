/* Stacks of matrices of the four kinds of numbers that LAPACK knows, and how they are read into its
   order: columns that lie in one piece, one after the other. */
#ifndef SYMCOMP_MATRICES_H
#define SYMCOMP_MATRICES_H

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "../../symcomp/codegen/loops/transpose_blocks.h"

enum { SINGLE = 0, DOUBLE = 1, SINGLE_COMPLEX = 2, DOUBLE_COMPLEX = 3 };

static inline int64_t size_of(int kind)
{
    return kind == SINGLE ? 4 : kind == DOUBLE_COMPLEX ? 16 : 8;
}

static inline int is_complex(int kind) { return kind >= SINGLE_COMPLEX; }
static inline int is_single(int kind) { return kind == SINGLE || kind == SINGLE_COMPLEX; }
static inline int64_t real_size(int kind) { return is_single(kind) ? 4 : 8; }

/* From one row, column and matrix to the next in bytes. A vector is a matrix of one column. */
struct stack {
    char *data;
    int64_t rows, columns, down, along, each;
};

/* -- memory */

/* The memory of a decomposition, which takes pieces of it on lines of the cache. With too little, it only finds
   how much it takes. */
struct arena {
    char *memory;
    int64_t size, used;
};

static void *take(struct arena *arena, int64_t size)
{
    const int64_t at = arena->used;
    arena->used += (size + 63) / 64 * 64;
    return arena->used <= arena->size ? arena->memory + at : NULL;
}

/* Zeros, as integers of BLAS may be written in part. */
static void *take_integers(struct arena *arena, int64_t n)
{
    void *piece = take(arena, n * (int64_t)sizeof(int64_t));
    return piece ? memset(piece, 0, (size_t)n * sizeof(int64_t)) : NULL;
}

/* -- numbers */

static inline void read_number(int kind, const void *from, int64_t i, double *z)
{
    z[1] = 0;
    if (kind == SINGLE)
        z[0] = ((const float *)from)[i];
    else if (kind == DOUBLE)
        z[0] = ((const double *)from)[i];
    else if (kind == SINGLE_COMPLEX)
        z[0] = ((const float *)from)[2 * i], z[1] = ((const float *)from)[2 * i + 1];
    else
        z[0] = ((const double *)from)[2 * i], z[1] = ((const double *)from)[2 * i + 1];
}

static inline void write_number(int kind, void *to, int64_t i, double re, double im)
{
    if (kind == SINGLE)
        ((float *)to)[i] = (float)re;
    else if (kind == DOUBLE)
        ((double *)to)[i] = re;
    else if (kind == SINGLE_COMPLEX)
        ((float *)to)[2 * i] = (float)re, ((float *)to)[2 * i + 1] = (float)im;
    else
        ((double *)to)[2 * i] = re, ((double *)to)[2 * i + 1] = im;
}

/* A real number of the precision of a kind. */
static inline double read_real(int kind, const void *from, int64_t i)
{
    return is_single(kind) ? ((const float *)from)[i] : ((const double *)from)[i];
}

static inline void write_real(int kind, void *to, int64_t i, double x)
{
    if (is_single(kind))
        ((float *)to)[i] = (float)x;
    else
        ((double *)to)[i] = x;
}

static inline void multiply_number(double *z, double re, double im)
{
    double first = z[0] * re - z[1] * im;
    z[1] = z[0] * im + z[1] * re;
    z[0] = first;
}

static int all_finite(int kind, const void *x, int64_t n)
{
    n *= 1 + is_complex(kind);
    for (int64_t i = 0; i < n; i++)
        if (!isfinite(read_real(kind, x, i)))
            return 0;
    return 1;
}

static void fill_with_nan(int kind, void *z, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        write_number(kind, z, i, NAN, 0);
}

/* -- copies */

enum { TILE = 8 };

/* Tiles, so that the lines of the cache that are read and written are all used. */
#define COPY_TILES(NAME, FROM, TO)                                                                 \
    static void NAME(int64_t rows, int64_t columns, const char *from, int64_t from_down,           \
                     int64_t from_along, char *to, int64_t to_down, int64_t to_along)              \
    {                                                                                              \
        for (int64_t top = 0; top < rows; top += TILE)                                             \
            for (int64_t left = 0; left < columns; left += TILE) {                                 \
                const int64_t bottom = top + TILE < rows ? top + TILE : rows;                      \
                const int64_t right = left + TILE < columns ? left + TILE : columns;               \
                for (int64_t j = left; j < right; j++)                                             \
                    for (int64_t i = top; i < bottom; i++)                                         \
                        *(TO *)(to + i * to_down + j * to_along) =                                 \
                            (TO)*(const FROM *)(from + i * from_down + j * from_along);            \
            }                                                                                      \
    }

COPY_TILES(widen_tiles, float, double)
COPY_TILES(narrow_tiles, double, float)

#define MATRIX_ARGUMENTS                                                                           \
    int64_t rows, int64_t columns, const char *from, int64_t from_down, int64_t from_along,        \
        char *to, int64_t to_down, int64_t to_along
#define MATRIX rows, columns, from, from_down, from_along, to, to_down, to_along
#define OTHER_PARTS(n, m)                                                                          \
    rows, columns, from + (n), from_down, from_along, to + (m), to_down, to_along

/* A matrix of one kind as one of another of the same or other precision. */
static void convert_matrix(int kind, int other, MATRIX_ARGUMENTS)
{
    if (kind == other) {
        copy_rectangle((int)size_of(kind), rows, columns, to, to_down, to_along, from, from_down,
                       from_along);
    } else if (is_single(kind)) {
        widen_tiles(MATRIX);
        if (is_complex(kind))
            widen_tiles(OTHER_PARTS(4, 8));
    } else {
        narrow_tiles(MATRIX);
        if (is_complex(kind))
            narrow_tiles(OTHER_PARTS(8, 4));
    }
}
#endif
