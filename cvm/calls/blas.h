/* Products of two matrices, by BLAS or, where one has a short side, by loops of our own. */
#ifndef SYMCOMP_BLAS_H
#define SYMCOMP_BLAS_H

#include <Python.h>
#include <stdint.h>
#include "../linalg/blas_int.h"
#include "../linalg/row_products.h"

enum {
    FEW_PRODUCTS = 64,      /* at most as many products of numbers take less time than a call of BLAS */
    /* Sides up to this are short; sums of at most FEW_TERMS terms are. */
    SHORT = 64,
    FEW_TERMS = 32,
    /* Without AVX-512 BLAS is faster from fewer on: of a matrix whose columns lie in one piece, and of
       one of more than LARGE_MATRIX bytes (benchmarks/thin_products.py). */
    SHORT_BY_COLUMNS = 10,
    SHORT_OF_LARGE = 24,
    LARGE_MATRIX = 2 << 20
};

typedef void gemm_function(char *, char *, blas_int *, blas_int *, blas_int *, void *, void *,
                           blas_int *, void *, blas_int *, void *, void *, blas_int *);
typedef void gemv_function(char *, blas_int *, blas_int *, void *, void *, blas_int *, void *,
                           blas_int *, void *, void *, blas_int *);
typedef void ger_function(blas_int *, blas_int *, void *, void *, blas_int *, void *, blas_int *,
                          void *, blas_int *);

/* The routines for float, double, and their complex numbers; set when the first product is lowered. */
static gemm_function *gemm_of[4];
static gemv_function *gemv_of[4];
static ger_function *ger_of[2];

/* The vector instructions of the processor for row_products.h; 0: none that it uses. */
static int product_level = 0;

typedef struct {
    char *data;
    int rows, columns;
    blas_int ld;            /* from one row (column, if transposed) to the next, in elements */
    int transposed;         /* whether columns lie in one piece, and not rows */
} Matrix;

/* The number of a dtype in the tables of routines; -1: BLAS does not know it. */
static inline int blas_type(int type)
{
    switch (type) {
    case NPY_FLOAT32: return 0;
    case NPY_FLOAT64: return 1;
    case NPY_COMPLEX64: return 2;
    case NPY_COMPLEX128: return 3;
    default: return -1;
    }
}

/* Read elements that lie ``down`` and ``along`` bytes apart as a matrix that BLAS takes; 0 if they are
   none. */
static int lay_out(int64_t rows, int64_t columns, int64_t down, int64_t along, int itemsize,
                   Matrix *found)
{
    const int shift = __builtin_ctz((unsigned)itemsize); /* a power of two */
    int64_t ld;
    if (rows <= 0 || columns <= 0 || rows > INT32_MAX || columns > INT32_MAX)
        return 0;
    found->rows = (int)rows;
    found->columns = (int)columns;
    if (along == itemsize || (columns == 1 && down >= itemsize)) {
        /* One column lies in one piece however it is read. */
        found->transposed = 0;
        ld = rows > 1 ? down : columns * itemsize;
    } else if (down == itemsize || (rows == 1 && along >= itemsize)) {
        found->transposed = 1;
        ld = columns > 1 ? along : rows * itemsize;
    } else {
        return 0;
    }
    if (ld & (itemsize - 1) || ld < 0 || ld >> shift > INT32_MAX)
        return 0;
    found->ld = (blas_int)(ld >> shift);
    return found->ld >= (found->transposed ? found->rows : found->columns);
}

static inline void set_matrix(Matrix *m, char *data, int64_t rows, int64_t columns)
{
    m->data = data;
    m->rows = (int)rows;
    m->columns = (int)columns;
    m->ld = (blas_int)columns;
    m->transposed = 0;
}

/* Read it as its transpose. */
static inline void turn(Matrix *m)
{
    const int rows = m->rows;
    m->rows = m->columns;
    m->columns = rows;
    m->transposed = !m->transposed;
}

/* N elements of a row of the result at a time, whose sums do not wait for each other. */
#define SUM_COLUMNS(T, N, ALONG_B)                                                                 \
    for (; j >= N; j -= N, at += N * ALONG_B, z += N) {                                            \
        const T *x = row, *y = at;                                                                 \
        T total[N] = {0};                                                                          \
        for (k = a->columns; k > 0; k--, x += along_a, y += down_b)                                \
            for (c = 0; c < N; c++)                                                                \
                total[c] += *x * y[c * ALONG_B];                                                   \
        for (c = 0; c < N; c++)                                                                    \
            z[c] = beta != 0 ? total[c] * alpha + beta * z[c] : total[c] * alpha;                  \
    }

/* z <- beta z + alpha a b, z in C order, by loops. As in BLAS, z may be anything where beta is 0. */
#define MULTIPLY_FEW(NAME, T)                                                                      \
    static void NAME(const Matrix *a, const Matrix *b, T *z, T alpha, T beta)                      \
    {                                                                                              \
        const int64_t down_a = a->transposed ? 1 : a->ld, along_a = a->transposed ? a->ld : 1;     \
        const int64_t down_b = b->transposed ? 1 : b->ld, along_b = b->transposed ? b->ld : 1;     \
        const T *row = (const T *)a->data;                                                         \
        int i, j, k, c;                                                                            \
        for (i = a->rows; i > 0; i--, row += down_a) {                                             \
            const T *at = (const T *)b->data;                                                      \
            j = b->columns;                                                                        \
            if (along_b == 1)                                                                      \
                SUM_COLUMNS(T, 4, 1)                                                               \
            else                                                                                   \
                SUM_COLUMNS(T, 4, along_b)                                                         \
            SUM_COLUMNS(T, 1, along_b)                                                             \
        }                                                                                          \
    }

MULTIPLY_FEW(multiply_few_f, float)
MULTIPLY_FEW(multiply_few_d, double)

static void multiply_few(int type, const Matrix *a, const Matrix *b, char *z, double alpha,
                         double beta)
{
    Matrix row, turned;
    if (b->columns == 1) {  /* the same numbers as a row, whose sums need not wait */
        row = *b;
        turned = *a;
        turn(&row);
        turn(&turned);
        a = &row;
        b = &turned;
    }
    if (type == NPY_FLOAT32)
        multiply_few_f(a, b, (float *)z, (float)alpha, (float)beta);
    else
        multiply_few_d(a, b, (double *)z, alpha, beta);
}

static inline int64_t bytes_of_number(int type)
{
    return type == NPY_FLOAT32 ? 4 : 8;
}

/* Whether a product is one that ``multiply_row`` computes. */
static int is_row(int type, const Matrix *a, const Matrix *b)
{
    const int64_t size = (int64_t)b->rows * b->columns * bytes_of_number(type);
    return a->rows == 1 && !b->transposed && product_level > 0 && size <= LARGEST_MATRIX;
}

/* Whether a product has a side so short that BLAS is slow with it. */
static int is_thin(int type, const Matrix *a, const Matrix *b)
{
    const int64_t longer = a->rows > b->columns ? a->rows : b->columns;
    const int64_t less = a->rows < b->columns ? a->rows : b->columns;
    const int64_t size =
        longer * (a->columns > less ? a->columns : less) * bytes_of_number(type);
    int is_short = SHORT, few = FEW_TERMS;
    if (product_level == 0 || size > LARGEST_MATRIX)
        return 0;
    if (product_level == AVX2 && b->transposed)
        is_short = SHORT_BY_COLUMNS;
    else if (product_level == AVX2 && size > LARGE_MATRIX)
        is_short = few = SHORT_OF_LARGE;
    if (b->transposed)
        return !a->transposed && a->rows <= is_short && a->columns > SHORT;
    return a->rows <= is_short || a->columns <= few || b->columns <= is_short;
}

static void thin_product(int type, const Matrix *a, const Matrix *b, char *z, double alpha,
                         double beta)
{
    const int64_t n = a->rows, k = a->columns, m = b->columns;
    const int64_t down = a->transposed ? 1 : a->ld, along = a->transposed ? a->ld : 1;
    if (b->transposed && type == NPY_FLOAT32)
        symcomp_thin_transposed_f(product_level, n, k, m, (float)alpha, (const float *)a->data,
                                  a->ld, (const float *)b->data, b->ld, (float)beta, (float *)z);
    else if (b->transposed)
        symcomp_thin_transposed_d(product_level, n, k, m, alpha, (const double *)a->data, a->ld,
                                  (const double *)b->data, b->ld, beta, (double *)z);
    else if (type == NPY_FLOAT32)
        symcomp_thin_f(product_level, n, k, m, (float)alpha, (const float *)a->data, down, along,
                       (const float *)b->data, b->ld, (float)beta, (float *)z);
    else
        symcomp_thin_d(product_level, n, k, m, alpha, (const double *)a->data, down, along,
                       (const double *)b->data, b->ld, beta, (double *)z);
}

/* The numbers alpha and beta as BLAS takes those of a type. */
typedef struct {
    float single[2][2];
    double wide[2][2];
} Factors;

static inline void set_factors(Factors *f, double alpha, double alpha_imag, double beta,
                               double beta_imag)
{
    f->wide[0][0] = alpha;
    f->wide[0][1] = alpha_imag;
    f->wide[1][0] = beta;
    f->wide[1][1] = beta_imag;
    f->single[0][0] = (float)alpha;
    f->single[0][1] = (float)alpha_imag;
    f->single[1][0] = (float)beta;
    f->single[1][1] = (float)beta_imag;
}

/* z <- beta c + alpha a b for a row a and a matrix whose rows lie in one piece; c may be z. */
static inline void multiply_row(int type, const Matrix *a, const char *row, const Matrix *b,
                                const char *matrix, const Factors *by, const char *c, char *z)
{
    const int64_t step = a->transposed ? a->ld : 1;
    if (type == NPY_FLOAT32)
        symcomp_row_times_f(product_level, b->rows, b->columns, by->single[0][0], (const float *)row,
                            step, (const float *)matrix, b->ld, by->single[1][0], (const float *)c,
                            (float *)z);
    else
        symcomp_row_times_d(product_level, b->rows, b->columns, by->wide[0][0], (const double *)row,
                            step, (const double *)matrix, b->ld, by->wide[1][0], (const double *)c,
                            (double *)z);
}

static inline void *factor_of(Factors *f, int type, int which)
{
    return type == NPY_FLOAT32 || type == NPY_COMPLEX64 ? (void *)f->single[which]
                                                        : (void *)f->wide[which];
}

/* z <- beta z + alpha times the product of v, k numbers ``step`` apart, and a matrix: one of k rows of
   m numbers if ``across``, else of m rows of k. */
static void vector_product(int type, const Matrix *x, int across, char *v, blas_int k, blas_int m,
                           blas_int step, Factors *by, char *z)
{
    blas_int one = 1, ld = x->ld, rows = across ? m : k, columns = across ? k : m;
    /* A matrix in C order is its transpose to BLAS. */
    char trans = across ? 'N' : 'T';
    const int64_t size = (int64_t)k * m * bytes_of_number(type);
    const double alpha = by->wide[0][0], beta = by->wide[1][0];
    const int is_real = type == NPY_FLOAT32 || type == NPY_FLOAT64;
    if (!is_real || product_level == 0 || size > LARGEST_MATRIX || (!across && step != 1))
        gemv_of[blas_type(type)](&trans, &rows, &columns, factor_of(by, type, 0), x->data, &ld, v,
                                 &step, factor_of(by, type, 1), z, &one);
    else if (type == NPY_FLOAT32 && across)
        symcomp_row_times_f(product_level, k, m, (float)alpha, (const float *)v, step,
                            (const float *)x->data, x->ld, (float)beta, (float *)z, (float *)z);
    else if (type == NPY_FLOAT32)
        symcomp_times_column_f(product_level, k, m, (float)alpha, (const float *)v,
                               (const float *)x->data, x->ld, (float)beta, (float *)z);
    else if (across)
        symcomp_row_times_d(product_level, k, m, alpha, (const double *)v, step,
                            (const double *)x->data, x->ld, beta, (double *)z, (double *)z);
    else
        symcomp_times_column_d(product_level, k, m, alpha, (const double *)v,
                               (const double *)x->data, x->ld, beta, (double *)z);
}

/* z <- beta z + alpha a b by gemm, where the rows of z are ``ldz`` elements apart. */
static void multiply_by_gemm(int type, const Matrix *a, const Matrix *b, char *z, blas_int ldz,
                             Factors *by)
{
    blas_int n = a->rows, k = a->columns, m = b->columns, lda = a->ld, ldb = b->ld;
    char trans_a = a->transposed ? 'T' : 'N', trans_b = b->transposed ? 'T' : 'N';
    /* A matrix in C order is its transpose to BLAS, so that z^T = b^T a^T is computed. */
    gemm_of[blas_type(type)](&trans_b, &trans_a, &m, &n, &k, factor_of(by, type, 0), b->data, &ldb,
                             a->data, &lda, factor_of(by, type, 1), z, &ldz);
}

/* Whether gemm computes a product, and no routine for vectors or thin matrices. */
static int is_by_gemm(int type, const Matrix *a, const Matrix *b, const Factors *by)
{
    const int is_real = blas_type(type) < 2;
    return a->rows > 1 && b->columns > 1 && !(is_real && is_thin(type, a, b)) &&
           !(is_real && a->columns == 1 && by->wide[1][0] == 1);
}

/* z <- beta z + alpha a b for the four types of BLAS, z in C order. */
static void multiply(int type, const Matrix *a, const Matrix *b, char *z, Factors *by)
{
    blas_int n = a->rows, k = a->columns, m = b->columns;
    const int which = blas_type(type);
    /* z^T = b^T a^T, as in ``multiply_by_gemm``. */
    if (is_by_gemm(type, a, b, by)) {
        multiply_by_gemm(type, a, b, z, m, by);
    } else if (n == 1) {
        vector_product(type, b, !b->transposed, a->data, k, m, a->transposed ? a->ld : 1, by, z);
    } else if (m == 1) {
        vector_product(type, a, a->transposed, b->data, k, n, b->transposed ? 1 : b->ld, by, z);
    } else if (is_thin(type, a, b)) {
        thin_product(type, a, b, z, by->wide[0][0], by->wide[1][0]);
    } else {
        blas_int step_a = a->transposed ? 1 : a->ld, step_b = b->transposed ? b->ld : 1;
        ger_of[which](&m, &n, factor_of(by, type, 0), b->data, &step_b, a->data, &step_a, z, &m);
    }
}

#endif
