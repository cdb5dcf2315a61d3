/* Kernels that call the loop of a ufunc: after the arrays comes what they need to know of it. */
#ifndef SYMCOMP_UFUNCS_H
#define SYMCOMP_UFUNCS_H

#include <stdint.h>

#include "../thread_pool.h"

enum { MOST_LOOP_AXES = 16, MOST_LOOP_ARRAYS = 8 };

/* As in the array of eight words that is the constant. */
struct ufunc_loop {
    int64_t loop, data, axes;
};

typedef void loop_of_ufunc(char **, const intptr_t *, const intptr_t *, void *);

/* Along the last axis by the loop; the others are counted here. */
static inline int call_loop(int arrays, char **data, const int64_t *shape, const int64_t *strides)
{
    const struct ufunc_loop *u = (const struct ufunc_loop *)data[arrays];
    const int64_t axes = u->axes, last = axes - 1;
    int64_t at[MOST_LOOP_AXES] = {0};
    char *here[MOST_LOOP_ARRAYS];
    intptr_t steps[MOST_LOOP_ARRAYS], n = axes ? shape[last] : 1;
    for (int64_t a = 0; a < axes; a++)
        if (shape[a] == 0)
            return 0;
    for (int k = 0; k < arrays; k++) {
        here[k] = data[k];
        steps[k] = axes ? strides[k * axes + last] : 0;
    }
    for (;;) {
        char *passed[MOST_LOOP_ARRAYS];
        for (int k = 0; k < arrays; k++)
            passed[k] = here[k];
        ((loop_of_ufunc *)(intptr_t)u->loop)(passed, &n, steps, (void *)(intptr_t)u->data);
        int64_t a = last - 1;
        for (; a >= 0; a--) {
            const int turns = ++at[a] == shape[a];
            for (int k = 0; k < arrays; k++)
                here[k] += strides[k * axes + a] * (turns ? 1 - shape[a] : 1);
            if (!turns)
                break;
            at[a] = 0;
        }
        if (a < 0)
            return 0;
    }
}

#define LOOP_OF(ARRAYS)                                                                            \
    static int ufunc_of_##ARRAYS(char **data, const int64_t *shape, const int64_t *strides,        \
                                 const Team *team)                                                 \
    {                                                                                              \
        (void)team;                                                                                \
        return data == NULL ? 0 : call_loop(ARRAYS, data, shape, strides);                         \
    }

LOOP_OF(2)
LOOP_OF(3)
LOOP_OF(4)
LOOP_OF(5)
#endif
