/* The loops of sparse.h for each dtype of entries and of indices. */
#include "sparse.h"
#include "sparse_vectors.h"

static inline void move_item(char *z, const char *x, int itemsize)
{
    switch (itemsize) {
    case 1: *z = *x; return;
    case 2: memcpy(z, x, 2); return;
    case 4: memcpy(z, x, 4); return;
    case 8: memcpy(z, x, 8); return;
    default: memcpy(z, x, 16);
    }
}

static inline void move_block(char *z, const char *x, int itemsize)
{
    memcpy(z, x, (size_t)itemsize);
}

static inline void fetch(const void *p, int bytes)
{
#ifdef __GNUC__
    int k;
    for (k = 0; k < bytes; k += 64)
        __builtin_prefetch((const char *)p + k);
#else
    (void)p;
    (void)bytes;
#endif
}

typedef struct { float re, im; } SparseComplex64;
typedef struct { double re, im; } SparseComplex128;

#define INDEX int32_t
#define OF_INDEX(x) x##_i32
#include "sparse_indices.h"
#define INDEX int64_t
#define OF_INDEX(x) x##_i64
#include "sparse_indices.h"

/* Numbers that the processor knows. */
#define PLUS(a, b) ((T)((a) + (b)))
#define TIMES(a, b) ((T)((a) * (b)))
#define ZERO 0
#define IS_ZERO(a) ((a) == 0)
#define HAS_ORDER 1

#define T float
#define BITS int32_t
#define OF_VALUE(x) x##_f32
#include "sparse_dtypes.h"
#define T double
#define BITS int64_t
#define OF_VALUE(x) x##_f64
#include "sparse_dtypes.h"
#if HAS_SPARSE_VECTORS
/* The same for processors with vectors of 32 bytes. Sums are taken in the same order, to the same bits. */
#pragma GCC push_options
#pragma GCC target("avx2")
#define T float
#define BITS int32_t
#define OF_VALUE(x) x##_f32_avx2
#include "sparse_dtypes.h"
#define T double
#define BITS int64_t
#define OF_VALUE(x) x##_f64_avx2
#include "sparse_dtypes.h"
#pragma GCC pop_options
#endif
/* Sums of integers wrap around, as NumPy's do: unsigned ones are defined to, and comparisons are made of
   the type itself. */
#undef PLUS
#undef TIMES
#define PLUS(a, b) ((T)((uint64_t)(a) + (uint64_t)(b)))
#define TIMES(a, b) ((T)((uint64_t)(a) * (uint64_t)(b)))
#define T int8_t
#define OF_VALUE(x) x##_int8
#include "sparse_dtypes.h"
#define T uint8_t
#define OF_VALUE(x) x##_uint8
#include "sparse_dtypes.h"
#define T int16_t
#define OF_VALUE(x) x##_int16
#include "sparse_dtypes.h"
#define T uint16_t
#define OF_VALUE(x) x##_uint16
#include "sparse_dtypes.h"
#define T uint32_t
#define OF_VALUE(x) x##_uint32
#include "sparse_dtypes.h"
#define T uint64_t
#define OF_VALUE(x) x##_uint64
#include "sparse_dtypes.h"
#define T int32_t
#define OF_VALUE(x) x##_int32
#include "sparse_dtypes.h"
#define T int64_t
#define OF_VALUE(x) x##_int64
#include "sparse_dtypes.h"

/* Truth values: or, and. */
#undef PLUS
#undef TIMES
#define PLUS(a, b) ((T)((a) | (b)))
#define TIMES(a, b) ((T)((a) & (b)))
#define T uint8_t
#define OF_VALUE(x) x##_bool
#include "sparse_dtypes.h"

/* Complex numbers; products as NumPy's, which do not look for infinities. */
#undef PLUS
#undef TIMES
#undef ZERO
#undef IS_ZERO
#undef HAS_ORDER
#define PLUS(a, b) ((T){(a).re + (b).re, (a).im + (b).im})
#define TIMES(a, b) ((T){(a).re * (b).re - (a).im * (b).im, (a).re * (b).im + (a).im * (b).re})
#define ZERO ((T){0, 0})
#define IS_ZERO(a) ((a).re == 0 && (a).im == 0)
#define HAS_ORDER 0
#define T SparseComplex64
#define OF_VALUE(x) x##_c64
#include "sparse_dtypes.h"
#define T SparseComplex128
#define OF_VALUE(x) x##_c128
#include "sparse_dtypes.h"
#undef PLUS
#undef TIMES
#undef ZERO
#undef IS_ZERO
#undef HAS_ORDER
