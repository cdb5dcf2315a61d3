/* How products run: the ways of computing one, and large ones in parts that threads share. */
#ifndef SYMCOMP_PRODUCT_RUNS_H
#define SYMCOMP_PRODUCT_RUNS_H

#include "blas.h"
#include "../plan/sections.h"
#include "../linalg/products.h"
#include "../thread_pool.h"

enum {
    /* Products of fewer pairs of numbers are not divided. */
    PAIRS_WORTH_DIVIDING = 1 << 22,
    MOST_PARTS = 16,
    LEAST_PART = 96,        /* rows or columns of the result: BLAS packs the other factor for each part */
    WHOLE_TILES = 8
};

typedef enum { BY_FEW, BY_ROW, BY_BLAS, BY_LOOPS } Way;

typedef struct {
    Way way;
    int type, itemsize, has_c;
    int alpha_type, beta_type;  /* of factors that are read in each run; -1: ``by`` has them */
    Place a, b, c, z, alpha, beta;
    int64_t count, each_a, each_b, each_z;
    Matrix left, right;         /* without their addresses */
    Factors by;
    struct axes *copy_of_c;     /* NULL: c is where the result goes, or is read where it lies (BY_ROW) */
    product_function *loops;
    int64_t strides[4];         /* of the loops: down and along a, and b */
    int threads;                /* sharing the parts of the product, or the products of stacks */
    int by_columns;             /* whether a part is of columns of the result, else of rows */
    int64_t size_of_part;       /* 0: a product is one part */
} ProductCall;

static void read_factor(const Frame *frame, const Place *place, int type, double *number)
{
    const char *data = data_at(frame, place);
    number[1] = 0;
    if (type == NPY_FLOAT32) {
        number[0] = *(const float *)data;
    } else if (type == NPY_FLOAT64) {
        number[0] = *(const double *)data;
    } else if (type == NPY_COMPLEX64) {
        number[0] = ((const float *)data)[0];
        number[1] = ((const float *)data)[1];
    } else {
        number[0] = ((const double *)data)[0];
        number[1] = ((const double *)data)[1];
    }
}

/* One product of two matrices that are where ``left`` and ``right`` say. */
static inline void multiply_by(const ProductCall *c, const Matrix *left, const Matrix *right,
                               char *z, Factors *by)
{
    if (c->way == BY_FEW)
        multiply_few(c->type, left, right, z, by->wide[0][0], by->wide[1][0]);
    else
        multiply(c->type, left, right, z, by);
}

/* The address of row ``i`` of a matrix, or of column ``i``. */
static inline char *row_of(const Matrix *m, int64_t i, int itemsize)
{
    return m->data + i * (m->transposed ? 1 : m->ld) * itemsize;
}

static inline char *column_of(const Matrix *m, int64_t i, int itemsize)
{
    return m->data + i * (m->transposed ? m->ld : 1) * itemsize;
}

/* A product, or the products of a stack, while they run. */
typedef struct {
    const ProductCall *call;
    char *a, *b, *z;
    Factors *by;
} Multiplying;

/* Part ``i`` of a product: some rows, or columns, of the result. */
static void multiply_part(void *work, int64_t i, int worker)
{
    Multiplying *m = (Multiplying *)work;
    const ProductCall *c = m->call;
    Matrix left = c->left, right = c->right;
    const int64_t first = i * c->size_of_part, columns = right.columns;
    char *z = m->z + first * (c->by_columns ? 1 : columns) * c->itemsize;
    (void)worker;
    left.data = m->a;
    right.data = m->b;
    if (c->by_columns) {
        right.data = column_of(&right, first, c->itemsize);
        right.columns = (int)(columns - first < c->size_of_part ? columns - first : c->size_of_part);
    } else {
        left.data = row_of(&left, first, c->itemsize);
        left.rows = (int)(left.rows - first < c->size_of_part ? left.rows - first : c->size_of_part);
    }
    multiply_by_gemm(c->type, &left, &right, z, (blas_int)columns, m->by);
}

/* Product ``i`` of a stack. */
static void multiply_one(void *work, int64_t i, int worker)
{
    Multiplying *m = (Multiplying *)work;
    const ProductCall *c = m->call;
    Matrix left = c->left, right = c->right;
    (void)worker;
    left.data = m->a + i * c->each_a;
    right.data = m->b + i * c->each_b;
    if (c->way == BY_LOOPS)
        c->loops(left.rows, left.columns, right.columns, left.data, c->strides[0], c->strides[1],
                 right.data, c->strides[2], c->strides[3], m->z + i * c->each_z);
    else
        multiply_by(c, &left, &right, m->z + i * c->each_z, m->by);
}

/* The factors of a product, read into ``read`` unless they are constants. NULL: the first one is 0. BLAS
   does not look at a and b then; Python does, for NaN. */
static inline const Factors *product_factors(const ProductCall *c, const Frame *frame, Factors *read)
{
    if (c->alpha_type < 0 && c->beta_type < 0)
        return &c->by;
    *read = c->by;
    if (c->alpha_type >= 0)
        read_factor(frame, &c->alpha, c->alpha_type, read->wide[0]);
    if (c->beta_type >= 0)
        read_factor(frame, &c->beta, c->beta_type, read->wide[1]);
    set_factors(read, read->wide[0][0], read->wide[0][1], read->wide[1][0], read->wide[1][1]);
    return read->wide[0][0] == 0 && read->wide[0][1] == 0 ? NULL : read;
}

/* Copy c to where the result goes, if it is needed. */
static inline void copy_c(const ProductCall *c, const Frame *frame, const Factors *by)
{
    if (c->copy_of_c != NULL && (by->wide[1][0] != 0 || by->wide[1][1] != 0))
        move_axes(c->copy_of_c, function_that_sets(c->itemsize), data_at(frame, &c->z),
                  data_at(frame, &c->c));
}

/* The product of a row and a matrix. Where c is not copied, it is read where it lies. */
static int run_row_product(const void *params, Frame *frame)
{
    const ProductCall *c = (const ProductCall *)params;
    char *z = data_at(frame, &c->z);
    Factors read;
    const Factors *by = product_factors(c, frame, &read);
    if (by == NULL)
        return DECLINED;
    copy_c(c, frame, by);
    multiply_row(c->type, &c->left, data_at(frame, &c->a), &c->right, data_at(frame, &c->b), by,
                 c->copy_of_c == NULL && c->has_c ? data_at(frame, &c->c) : z, z);
    return DONE;
}

static int run_product(const void *params, Frame *frame)
{
    const ProductCall *c = (const ProductCall *)params;
    Factors read;
    const Factors *by = product_factors(c, frame, &read);
    Multiplying m = {c, data_at(frame, &c->a), data_at(frame, &c->b), data_at(frame, &c->z),
                     (Factors *)by};
    int64_t i;
    if (by == NULL)
        return DECLINED;
    copy_c(c, frame, by);
    if (c->size_of_part > 0) {
        const int64_t length = c->by_columns ? c->right.columns : c->left.rows;
        share(multiply_part, &m, (length + c->size_of_part - 1) / c->size_of_part, c->threads);
    } else if (c->threads > 1) {
        share(multiply_one, &m, c->count, c->threads);
    } else {
        for (i = 0; i < c->count; i++)
            multiply_one(&m, i, 0);
    }
    return DONE;
}

/* Divide a product that is large enough. The parts depend on its lengths alone, so that any number of
   threads gives the same bits. */
static void divide_product(ProductCall *c, double work, int threads)
{
    const int64_t rows = c->left.rows, columns = c->right.columns;
    const int64_t longer = rows > columns ? rows : columns;
    int64_t size, parts;
    c->threads = 1;
    if (threads == 0 || work < PAIRS_WORTH_DIVIDING)
        return;
    if (c->count > 1) {
        c->threads = threads;
        return;
    }
    for (parts = MOST_PARTS; parts > 1 && longer < parts * LEAST_PART; parts /= 2)
        ; /* a power of two: two or four threads end at the same time */
    size = (longer + parts - 1) / parts;
    size = (size + WHOLE_TILES - 1) / WHOLE_TILES * WHOLE_TILES;
    if (c->way != BY_BLAS || size >= longer || !is_by_gemm(c->type, &c->left, &c->right, &c->by))
        return;
    c->threads = threads;
    c->by_columns = columns > rows;
    c->size_of_part = size;
}

/* Whether BLAS may use threads of its own: OpenBLAS does for more pairs of numbers than these, of two
   matrices, and of a matrix and a vector (its interface/gemm.c and interface/gemv.c). */
static const double SHARED_PAIRS_OF_MATRICES = 262144, SHARED_PAIRS_OF_VECTORS = 8192;

static int is_shared_by_blas(const ProductCall *c)
{
    const int is_vector = c->left.rows == 1 || c->right.columns == 1;
    const double pairs = (double)c->left.rows * c->left.columns * c->right.columns;
    return c->way == BY_BLAS &&
           pairs > (is_vector ? SHARED_PAIRS_OF_VECTORS : SHARED_PAIRS_OF_MATRICES);
}

/* How long one pair of numbers takes, about: BLAS multiplies many at a time. */
static double nanoseconds_of_product(const ProductCall *c)
{
    if (c->way != BY_BLAS)
        return NANOSECONDS_OF_WORK;
    return 0.005 * c->itemsize;
}

#endif
