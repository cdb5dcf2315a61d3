/* Labels: integers that name one of n classes. */

#ifndef SYMCOMP_LABELS_H
#define SYMCOMP_LABELS_H

#include <stdint.h>

/* Seen as unsigned numbers, negative ones are above ``most`` too. */
#define NONE_ABOVE(Unsigned)                                                                      \
    {                                                                                             \
        const Unsigned last = (Unsigned)most;                                                     \
        int above = 0;                                                                            \
        for (i = 0; i < count; i++, data += stride)                                               \
            above |= *(const Unsigned *)data > last;                                              \
        return !above;                                                                            \
    }

/* Whether 0 <= y < n for all of ``count`` integers of ``size`` bytes, ``stride`` bytes apart. */
static int all_labels_below(const char *data, int64_t count, int64_t stride, int size,
                            int has_signs, int64_t n)
{
    const int bits = 8 * size - has_signs;
    const uint64_t largest = bits < 64 ? ((uint64_t)1 << bits) - 1 : UINT64_MAX;
    const uint64_t most = (uint64_t)(n - 1) < largest ? (uint64_t)(n - 1) : largest;
    int64_t i;
    if (n < 1)
        return count == 0;
    switch (size) {
    case 1: NONE_ABOVE(uint8_t)
    case 2: NONE_ABOVE(uint16_t)
    case 4: NONE_ABOVE(uint32_t)
    default: NONE_ABOVE(uint64_t)
    }
}

#endif
