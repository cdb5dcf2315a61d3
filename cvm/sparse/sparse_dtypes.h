/* Included for each dtype T of entries: the loops for both dtypes of indices. BITS: the integers of its size,
   for masks. */
#define INDEX int32_t
#define OF_INDEX(x) x##_i32
#define NAME(x) OF_INDEX_OF(OF_VALUE(x))
#define OF_INDEX_OF(x) OF_INDEX_TWICE(x)
#define OF_INDEX_TWICE(x) x##_i32
#include "sparse_values.h"
#define INDEX int64_t
#define OF_INDEX(x) x##_i64
#define NAME(x) OF_INDEX_OF(OF_VALUE(x))
#define OF_INDEX_OF(x) OF_INDEX_TWICE(x)
#define OF_INDEX_TWICE(x) x##_i64
#include "sparse_values.h"
#undef T
#undef BITS
#undef OF_VALUE
