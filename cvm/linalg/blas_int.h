/* An integer of BLAS and LAPACK: it is read with 64 bits or with 32, which are the first here. */
#ifndef SYMCOMP_BLAS_INT_H
#define SYMCOMP_BLAS_INT_H

#include <stdint.h>

#if defined(_WIN32) || __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
typedef int64_t blas_int;
#else
typedef int blas_int;
#endif

/* In arrays they have 32 bits, or 64, in the library that is called. */
static int blas_int_is_wide = 0;

static inline int64_t element_of(const void *array, int64_t i)
{
    return blas_int_is_wide ? ((const int64_t *)array)[i] : ((const int32_t *)array)[i];
}
#endif
