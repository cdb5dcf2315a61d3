/* The loops around the bodies of kernels: axes are sorted by stride, and merged where possible;
   blocks of elements that are not contiguous are copied to a contiguous buffer. */

/* Loops over arrays and axes have few iterations: vectorizing would slow them down. Ends in
   `reduction.h`. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC push_options
#pragma GCC optimize("no-tree-loop-vectorize", "no-peel-loops")
#endif

static inline int nest_reads(int role)
{
    return role == READ || role == CHANGE;
}

static inline int nest_writes(int role)
{
    return role == WRITE || role == CHANGE;
}

static inline int64_t nest_weight(int total, const int64_t *steps)
{
    int64_t weight = 0;
    for (int a = 0; a < total; a++)
        weight += steps[a] < 0 ? -steps[a] : steps[a];
    return weight;
}

/* Whether elements are added to at positions: in order, as rounding errors depend on it. */
static inline int nest_scatters(const struct kernel *k)
{
    const uint8_t *role = k->stages ? k->stages->along.role : k->bodies->role;
    for (int a = 0; a < k->arrays; a++)
        if (role[a] == SCATTERED)
            return 1;
    return 0;
}

/* Pass an axis from its other end: `data` moves there, and the steps along it change their signs. */
static inline void nest_turn(const struct kernel *k, int64_t length, int64_t *row, char **data)
{
    for (int a = 0; a < k->arrays; a++) {
        data[a] += (length - 1) * row[a];
        row[a] = -row[a];
    }
}

/* Collect the axes whose `reduced` is `which`, slowest first and joined; return how many are left,
   or -1 if there are no elements. Axes that are not reduced are passed in the direction that more
   arrays have, and `data` points to where they begin. */
static inline int nest_axes(const struct kernel *k, int which, const int64_t *shape,
                            const int64_t *strides, char **data, int64_t *lengths, int64_t *steps)
{
    int total = k->total, rank = 0, joined = 0;
    for (int axis = 0; axis < k->rank; axis++) {
        if (k->reduced[axis] != which || shape[axis] == 1)
            continue;
        if (shape[axis] == 0)
            return -1;
        int64_t row[total];
        int backward = 0;
        for (int a = 0; a < total; a++) {
            row[a] = a >= k->arrays || k->stretched[axis * total + a] ? 0 : strides[a * k->rank + axis];
            backward += (row[a] < 0) - (row[a] > 0);
        }
        if (backward > 0 && !which && !nest_scatters(k))
            nest_turn(k, shape[axis], row, data);
        int place = rank++;
        int64_t weight = nest_weight(total, row);
        for (; place > 0 && nest_weight(total, steps + (place - 1) * total) < weight; place--) {
            lengths[place] = lengths[place - 1];
            memcpy(steps + place * total, steps + (place - 1) * total, sizeof row);
        }
        lengths[place] = shape[axis];
        memcpy(steps + place * total, row, sizeof row);
    }
    for (int axis = 1; axis < rank; axis++) {
        int64_t *outer = steps + joined * total, *inner = steps + axis * total;
        int same = 1;
        for (int a = 0; a < total; a++)
            same &= outer[a] == inner[a] * lengths[axis];
        if (same) {
            lengths[joined] *= lengths[axis];
        } else {
            joined++;
            lengths[joined] = lengths[axis];
        }
        memmove(steps + joined * total, inner, (size_t)total * sizeof *steps);
    }
    return rank ? joined + 1 : 0;
}

/* Put axes of length 1 before the others, so that there are at least `wanted`. */
static inline int nest_pad(int total, int rank, int wanted, int64_t *lengths, int64_t *steps)
{
    int more = rank < wanted ? wanted - rank : 0;
    memmove(lengths + more, lengths, (size_t)rank * sizeof *lengths);
    memmove(steps + more * total, steps, (size_t)(rank * total) * sizeof *steps);
    memset(steps, 0, (size_t)(more * total) * sizeof *steps);
    for (int axis = 0; axis < more; axis++)
        lengths[axis] = 1;
    return rank + more;
}

/* Advance to the next index of `rank` axes; returns 0 after the last. */
static inline int nest_next(int total, int rank, const int64_t *lengths, const int64_t *steps,
                            int64_t *index, char **data)
{
    for (int axis = rank - 1; axis >= 0; axis--) {
        const int64_t *step = steps + axis * total;
        int64_t move = ++index[axis] < lengths[axis] ? 1 : 1 - lengths[axis];
        for (int a = 0; a < total; a++)
            data[a] += step[a] * move;
        if (move == 1)
            return 1;
        index[axis] = 0;
    }
    return 0;
}

/* Whether a body can run in place, as its elements are contiguous. */
static inline int nest_plain(const struct kernel *k, const struct body *body, const int64_t *step)
{
    int plain = 1;
    for (int a = 0; a < k->total; a++)
        plain &= (!nest_reads(body->role[a]) && !nest_writes(body->role[a])) || step[a] == k->size[a];
    return plain;
}

enum { MANY_LANES = 2 };

/* Run a body on rows * n elements, which are `step` apart, through `buffer` if they are not
   contiguous, at most `most` of a row at once. `along` is whether lanes are those of the
   elements; MANY_LANES, that there are more than BLOCK of them: then the rows passed to the body
   are not limited to a block. */
static inline void nest_run(const struct kernel *k, const struct body *body, int64_t rows,
                            int64_t n, char *const *data, const int64_t *row_step,
                            const int64_t *step, int along, int64_t most, char *buffer)
{
    if (n == 1 || nest_plain(k, body, step)) {
        body->run(rows, n, data, row_step);
        return;
    }
    int total = k->total, limited = 0;
    uint8_t copies[total];
    for (int a = 0; a < total; a++) {
        int role = body->role[a];
        copies[a] = (nest_reads(role) || nest_writes(role)) && step[a] != k->size[a];
        limited |= copies[a] && (nest_writes(role) || step[a] || row_step[a]);
    }
    int64_t width = n < most ? n : most;
    int64_t height = !limited ? rows : along == MANY_LANES ? 1 : BLOCK / width;
    for (int64_t r = 0; r < rows; r += height) {
        int64_t h = rows - r < height ? rows - r : height;
        for (int64_t i = 0; i < n; i += width) {
            int64_t w = n - i < width ? n - i : width, by[total];
            char *at[total];
            for (int a = 0; a < total; a++) {
                char *here = data[a];
                if (body->role[a] == LANE)
                    here += along ? i * k->size[a] : 0;
                else if (body->role[a] != UNUSED)
                    here += r * row_step[a] + i * step[a];
                at[a] = copies[a] ? buffer + a * BLOCK * k->width : here;
                by[a] = copies[a] && row_step[a] ? w * k->size[a] : row_step[a];
                if (copies[a] && nest_reads(body->role[a]))
                    copy_block(k->size[a], row_step[a] ? h : 1, w, at[a], by[a], k->size[a], here,
                               row_step[a], step[a]);
            }
            body->run(h, w, at, by);
            for (int a = 0; a < total; a++)
                if (copies[a] && nest_writes(body->role[a]))
                    copy_block(k->size[a], h, w, data[a] + r * row_step[a] + i * step[a],
                               row_step[a], step[a], at[a], by[a], k->size[a]);
        }
    }
}

/* The first of the bodies whose numbers are constant along the innermost axis. */
static inline const struct body *nest_choose(const struct kernel *k, const int64_t *step)
{
    int b = 0;
    for (; b < k->count - 1; b++) {
        int fits = 1;
        for (int a = 0; a < k->total; a++)
            fits &= k->bodies[b].role[a] != NUMBER || step[a] == 0;
        if (fits)
            break;
    }
    return k->bodies + b;
}

/* The memory of a thread, on its stack. */
#define NEST_BUFFER(k)                                                                             \
    char nest_memory[(k)->buffer + 64];                                                            \
    char *buffer = nest_memory + (64 - (uintptr_t)nest_memory % 64)

/* For arrays whose rows are adjacent in memory and whose elements are strided, blocks are narrow
   and as high as possible: all of a cache line is used while it is loaded. */
enum { NARROW = 32 };

/* Move the axis along which such an array is contiguous to the second last place; return the
   width of blocks. */
static inline int64_t nest_cross(const struct kernel *k, int rank, int64_t *lengths,
                                 int64_t *steps)
{
    int total = k->total;
    const int64_t *inner = steps + (rank - 1) * total;
    for (int a = 0; a < total; a++) {
        int best = -1;
        for (int axis = 0; axis < rank - 1; axis++) {
            int64_t least = best < 0 ? inner[a] : steps[best * total + a];
            if (lengths[axis] > 1 && block_crosses(steps[axis * total + a], least))
                best = axis;
        }
        if (best < 0)
            continue;
        int64_t length = lengths[best], row[total], after = rank - 2 - best;
        memcpy(row, steps + best * total, sizeof row);
        memmove(lengths + best, lengths + best + 1, (size_t)after * sizeof *lengths);
        memmove(steps + best * total, steps + (best + 1) * total, (size_t)after * sizeof row);
        lengths[rank - 2] = length;
        memcpy(steps + (rank - 2) * total, row, sizeof row);
        return length < BLOCK / NARROW ? BLOCK / length / 8 * 8 : NARROW;
    }
    return BLOCK;
}

struct elementwise {
    const struct kernel *kernel;
    const struct body *body;
    char *const *data;
    const int64_t *lengths, *steps;
    int rank, split;
    int64_t width, length, unit;
};

/* The elements whose index along the axis `split` is from `first` to before `last`. */
static inline void nest_chunk(const struct elementwise *e, int64_t first, int64_t last)
{
    int total = e->kernel->total, rank = e->rank;
    int64_t lengths[rank], index[rank];
    const int64_t *inner = e->steps + (rank - 1) * total, *rows = e->steps + (rank - 2) * total;
    NEST_BUFFER(e->kernel);
    char *at[total];
    for (int a = 0; a < total; a++)
        at[a] = a < e->kernel->temporaries ? e->data[a] + first * e->steps[e->split * total + a] : 0;
    memcpy(lengths, e->lengths, sizeof lengths);
    lengths[e->split] = last - first;
    memset(index, 0, sizeof index);
    do
        nest_run(e->kernel, e->body, lengths[rank - 2], lengths[rank - 1], at, rows, inner, 1,
                 e->width, buffer);
    while (nest_next(total, rank - 2, lengths, e->steps, index, at));
}

/* The elements of a chunk of the axis `split`. */
static void nest_part(void *work, int64_t c, int worker)
{
    const struct elementwise *e = (const struct elementwise *)work;
    int64_t first = c * e->unit;
    (void)worker;
    nest_chunk(e, first, e->length - first < e->unit ? e->length : first + e->unit);
}

/* Whether all arrays but tables are in C order, and none is stretched; `size` becomes the number of
   elements. */
static inline int nest_in_order(const struct kernel *k, const int64_t *shape,
                                const int64_t *strides, int64_t *size)
{
    *size = 1;
    for (int axis = 0; axis < k->rank; axis++)
        *size *= shape[axis];
    for (int a = 0; a < k->arrays; a++) {
        if (k->bodies->role[a] == GATHERED || k->bodies->role[a] == SCATTERED)
            continue;
        int64_t step = k->size[a];
        for (int axis = k->rank - 1; axis >= 0; axis--) {
            if (shape[axis] == 1)
                continue;
            if (k->stretched[axis * k->total + a] || strides[a * k->rank + axis] != step)
                return 0;
            step *= shape[axis];
        }
    }
    return 1;
}

/* Run a body once over `size` contiguous elements. */
static inline void nest_at_once(const struct kernel *k, char *const *data, int64_t size)
{
    int total = k->total;
    int64_t step[total], row_step[total];
    char *at[total];
    for (int a = 0; a < total; a++) {
        step[a] = a < k->arrays ? k->size[a] : 0;
        row_step[a] = 0;
        at[a] = a < k->temporaries ? data[a] : 0;
    }
    nest_choose(k, step)->run(1, size, at, row_step);
}

NEST int nest_elementwise(const struct kernel *k, char *const *data, const int64_t *shape,
                          const int64_t *strides, const struct team *team)
{
    int total = k->total, split = 0;
    int64_t whole;
    if (nest_in_order(k, shape, strides, &whole) && whole <= CHUNK) {
        if (whole > 0)
            nest_at_once(k, data, whole);
        return 0;
    }
    int64_t lengths[k->rank + 2], steps[(k->rank + 2) * total], size = 1;
    char *first[total];
    memcpy(first, data, (size_t)k->temporaries * sizeof *data);
    int rank = nest_axes(k, 0, shape, strides, first, lengths, steps);
    if (rank < 0)
        return 0;
    rank = nest_pad(total, rank, 2, lengths, steps);
    int64_t width = nest_cross(k, rank, lengths, steps);
    for (int axis = 0; axis < rank; axis++) {
        size *= lengths[axis];
        split = lengths[axis] > lengths[split] ? axis : split;
    }
    int64_t length = lengths[split], unit = CHUNK / (size / length);
    unit = unit < 1 ? 1 : unit;
    int high = split == rank - 2 && width == NARROW;
    int64_t whole_blocks = split == rank - 1 ? BLOCK : high ? BLOCK / NARROW : 1;
    unit = (unit + whole_blocks - 1) / whole_blocks * whole_blocks;
    struct elementwise e = {k, nest_choose(k, steps + (rank - 1) * total), first, lengths, steps,
                            rank, split, width, length, unit};
    if (unit >= length)
        nest_chunk(&e, 0, length);
    else
        nest_share(team, nest_part, &e, (length + unit - 1) / unit);
    return 0;
}
