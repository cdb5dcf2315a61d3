/* Native calls of ops that are defined outside of symcomp: two C functions for each op
   (docs/howto_native.md). This header is all that they need. */
#ifndef SYMCOMP_NATIVE_CALL_H
#define SYMCOMP_NATIVE_CALL_H

#include <stdint.h>

/* An array: the elements are of the dtype that the op's types tell, aligned and in the byte order of the
   processor; from one to the next are ``strides`` bytes along each axis, for results in C order. */
typedef struct {
    char *data;
    int ndim;
    const int64_t *shape, *strides;
} NativeArray;

enum { NATIVE_DONE = 0, NATIVE_DECLINED = 1 };

/* Find the shapes of the results from the layouts of the inputs, whose data are not to be read: write
   those of result j into shapes[j]. NATIVE_DECLINED: ``perform`` computes the op for these layouts. The
   answer is kept, for all calls with the same layouts. */
typedef int NativePlan(const void *params, int n_inputs, const NativeArray *inputs, int64_t *const *shapes);

/* Compute the results from the inputs. Without the GIL; several threads may be here at once.
   NATIVE_DECLINED: ``perform`` computes the op for these values; the results need not be filled. */
typedef int NativeRun(const void *params, const NativeArray *inputs, const NativeArray *results);

#endif
