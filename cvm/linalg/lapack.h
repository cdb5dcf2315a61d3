/* The routines of BLAS and LAPACK that decompositions call, whose addresses Python finds. Arrays of
   numbers are passed without their type: a routine has a version for each. */
#ifndef SYMCOMP_LAPACK_H
#define SYMCOMP_LAPACK_H

#include "blas_int.h"
#include "matrices.h"

#define SIZES blas_int *
#define IN const char *

typedef void gemm_routine(IN, IN, SIZES, SIZES, SIZES, void *, void *, SIZES, void *, SIZES, void *,
                          void *, SIZES);
typedef void trsm_routine(IN, IN, IN, IN, SIZES, SIZES, void *, void *, SIZES, void *, SIZES);
typedef void trsv_routine(IN, IN, IN, SIZES, void *, SIZES, void *, SIZES);
typedef void getrf_routine(SIZES, SIZES, void *, SIZES, void *, SIZES);
typedef void gesv_routine(SIZES, SIZES, void *, SIZES, void *, void *, SIZES, SIZES);
typedef void potrf_routine(IN, SIZES, void *, SIZES, SIZES);
typedef void posv_routine(IN, SIZES, SIZES, void *, SIZES, void *, SIZES, SIZES);
typedef void sysv_routine(IN, SIZES, SIZES, void *, SIZES, void *, void *, SIZES, void *, SIZES,
                          SIZES);
typedef void geqrf_routine(SIZES, SIZES, void *, SIZES, void *, void *, SIZES, SIZES);
typedef void orgqr_routine(SIZES, SIZES, SIZES, void *, SIZES, void *, void *, SIZES, SIZES);
/* Routines of complex numbers take memory for real ones besides. */
typedef void dgeqp3_routine(SIZES, SIZES, void *, SIZES, void *, void *, void *, SIZES, SIZES);
typedef void zgeqp3_routine(SIZES, SIZES, void *, SIZES, void *, void *, void *, SIZES, void *,
                            SIZES);
typedef void syevd_routine(IN, IN, SIZES, void *, SIZES, void *, void *, SIZES, void *, SIZES,
                           SIZES);
typedef void heevd_routine(IN, IN, SIZES, void *, SIZES, void *, void *, SIZES, void *, SIZES,
                           void *, SIZES, SIZES);
typedef void dgeev_routine(IN, IN, SIZES, void *, SIZES, void *, void *, void *, SIZES, void *,
                           SIZES, void *, SIZES, SIZES);
typedef void zgeev_routine(IN, IN, SIZES, void *, SIZES, void *, void *, SIZES, void *, SIZES,
                           void *, SIZES, void *, SIZES);
typedef void dgesdd_routine(IN, SIZES, SIZES, void *, SIZES, void *, void *, SIZES, void *, SIZES,
                            void *, SIZES, void *, SIZES);
typedef void zgesdd_routine(IN, SIZES, SIZES, void *, SIZES, void *, void *, SIZES, void *, SIZES,
                            void *, SIZES, void *, void *, SIZES);
typedef void dgelsd_routine(SIZES, SIZES, SIZES, void *, SIZES, void *, SIZES, void *, void *,
                            SIZES, void *, SIZES, void *, SIZES);
typedef void zgelsd_routine(SIZES, SIZES, SIZES, void *, SIZES, void *, SIZES, void *, void *,
                            SIZES, void *, SIZES, void *, void *, SIZES);

enum routine {
    GEMM, TRSM, TRSV, GETRF, GESV, POTRF, POSV, SYSV, HESV, GEQRF, GEQP3, ORGQR, SYEVD, GEEV,
    GESDD, GELSD, ROUTINES
};

/* The addresses, by routine and kind of numbers. */
static void *routine_of[ROUTINES][4];

#define CALL(NAME, ROUTINE, kind) ((NAME##_routine *)routine_of[ROUTINE][kind])
#undef IN
#undef SIZES

static double ONES[2] = {1, 0}, ZEROS[2] = {0, 0};
static float ONES_32[2] = {1, 0}, ZEROS_32[2] = {0, 0};

/* z = op(a) op(b) for matrices in columns, each as long as its rows; op by the letters N, T, C. */
static void product_of(int kind, const char *op_a, const char *op_b, blas_int n, blas_int k,
                       blas_int m, void *a, blas_int lda, void *b, blas_int ldb, void *z)
{
    CALL(gemm, GEMM, kind)
    (op_a, op_b, &n, &m, &k, is_single(kind) ? (void *)ONES_32 : (void *)ONES, a, &lda, b, &ldb,
     is_single(kind) ? (void *)ZEROS_32 : (void *)ZEROS, z, &n);
}

/* The length of the memory that a routine asked for: the first number of it. */
static blas_int length_asked(int kind, const void *work)
{
    double z[2];
    read_number(kind, work, 0, z);
    return z[0] < 1 ? 1 : (blas_int)z[0];
}
#endif
