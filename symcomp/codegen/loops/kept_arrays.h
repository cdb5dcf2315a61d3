/* Temporary arrays of kernels with several loop nests; indices along an axis. */

/* Lay out arrays without gaps of elements of `size` bytes, axis a of array i being stretched where
   stretched[i * rank + a]; return how many bytes they need. Array i is at offset[i]. */
static inline int64_t kept_arrays(int count, int rank, const uint8_t *size, const uint8_t *stretched,
                                const int64_t *shape, int64_t *offset, int64_t *strides)
{
    int64_t end = 0;
    for (int i = 0; i < count; i++) {
        int64_t step = size[i];
        for (int a = rank - 1; a >= 0; a--) {
            int one = stretched[i * rank + a];
            strides[i * rank + a] = one ? 0 : step;
            step *= one ? 1 : shape[a];
        }
        offset[i] = end;
        end += (step + 63) / 64 * 64;
    }
    return end;
}

/* Advance to the next element, in C order of the axes a with flags[a] == which; after the last,
   to the first. */
static inline const char *next_element(int rank, const uint8_t *flags, int which,
                                       const int64_t *shape, const int64_t *strides, int64_t *index,
                                       const char *from)
{
    for (int a = rank - 1; a >= 0; a--) {
        if (flags[a] != which)
            continue;
        from += strides[a];
        if (++index[a] < shape[a])
            break;
        from -= strides[a] * shape[a];
        index[a] = 0;
    }
    return from;
}

#define POSITION_OF(T)                                                                             \
    {                                                                                              \
        T value = *(const T *)from;                                                                \
        position = (uint64_t)value;                                                                \
        negative = value < 0;                                                                      \
    }

/* Convert indices along an axis of n elements, which may count from the end, to int32 from the
   start, in an array without gaps; -1 for the index that selects no element; return 1 if one is
   out of range. `kind` is the itemsize of the integers, negative for unsigned ones. */
static inline int read_positions(int kind, int rank, int axis, const uint8_t *stretched,
                                 const int64_t *shape, const char *from, const int64_t *strides,
                                 int32_t *to)
{
    int64_t n = shape[axis], count = 1, index[rank];
    for (int a = 0; a < rank; a++) {
        count *= stretched[a] ? 1 : shape[a];
        index[a] = 0;
    }
    if (n > INT32_MAX)
        return 1;
    for (int64_t i = 0; i < count; i++) {
        uint64_t position;
        int negative;
        switch (kind) {
        case 1: POSITION_OF(int8_t) break;
        case 2: POSITION_OF(int16_t) break;
        case 4: POSITION_OF(int32_t) break;
        case 8: POSITION_OF(int64_t) break;
        case -1: POSITION_OF(uint8_t) break;
        case -2: POSITION_OF(uint16_t) break;
        case -4: POSITION_OF(uint32_t) break;
        default: POSITION_OF(uint64_t)
        }
        int none = kind > 0 && position == 1 - ((uint64_t)1 << (8 * kind - 1));
        position += negative ? (uint64_t)n : 0;
        if (position >= (uint64_t)n && !none)
            return 1;
        to[i] = none ? -1 : (int32_t)position;
        from = next_element(rank, stretched, 0, shape, strides, index, from);
    }
    return 0;
}

static inline int count_up(int64_t n, int32_t *to)
{
    if (n > INT32_MAX)
        return 1;
    for (int64_t i = 0; i < n; i++)
        to[i] = (int32_t)i;
    return 0;
}
