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

/* Pass an axis from its other end: `from` moves there, and the steps along it change their signs. */
static inline void nest_turn(const struct kernel *k, int64_t length, int64_t *row, int64_t *from)
{
    for (int a = 0; a < k->arrays; a++) {
        from[a] += (length - 1) * row[a];
        row[a] = -row[a];
    }
}

/* Collect the axes whose `reduced` is `which`, slowest first and joined; return how many are left,
   or -1 if there are no elements. Axes that are not reduced are passed in the direction that more
   arrays have; where they begin, in bytes, is added to `from`. */
static inline int nest_axes(const struct kernel *k, int which, const int64_t *shape,
                            const int64_t *strides, int64_t *from, int64_t *lengths, int64_t *steps)
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
            nest_turn(k, shape[axis], row, from);
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

enum { MANY_LANES = 2 };

/* An array whose elements are not contiguous, which a body reads or writes in a buffer. */
struct copied {
    uint16_t array;
    uint8_t reads, writes;
};

/* How a body passes over rows of elements: `row_step` is from a row to the next, `step` from an element to the
   next. `along` is whether lanes are those of the elements; MANY_LANES, that there are more than BLOCK of
   them: then the rows passed to the body are not limited to a block, else they are if `limited`. */
struct passage {
    int along, limited, copies;
    const int64_t *row_step, *step;
    struct copied *copied;
};

/* The numbers that the table of a passage takes. */
static inline size_t passage_numbers(const struct kernel *k)
{
    return (size_t)k->total / 2 + 1;
}

static inline void nest_passage(const struct kernel *k, const struct body *body, const int64_t *row_step,
                                const int64_t *step, int along, int64_t *memory, struct passage *p)
{
    *p = (struct passage){.along = along, .row_step = row_step, .step = step,
                          .copied = (struct copied *)memory};
    for (int a = 0; a < k->total; a++) {
        int role = body->role[a], reads = nest_reads(role), writes = nest_writes(role);
        if ((!reads && !writes) || step[a] == k->size[a])
            continue;
        p->limited |= writes || step[a] || row_step[a];
        p->copied[p->copies++] = (struct copied){(uint16_t)a, (uint8_t)reads, (uint8_t)writes};
    }
}

/* Run a body on a block of rows * n elements, which are copied. */
static inline void nest_block(const struct kernel *k, const struct body *body, const struct passage *p,
                              int64_t rows, int64_t n, char **here, char *buffer)
{
    int total = k->total;
    int64_t by[total];
    char *at[total];
    memcpy(at, here, sizeof at);
    memcpy(by, p->row_step, sizeof by);
    for (const struct copied *c = p->copied; c < p->copied + p->copies; c++) {
        int a = c->array, size = k->size[a];
        at[a] = buffer + a * BLOCK * k->width;
        by[a] = p->row_step[a] ? n * size : 0;
        if (c->reads)
            copy_block(size, p->row_step[a] ? rows : 1, n, at[a], by[a], size, here[a], p->row_step[a],
                       p->step[a]);
    }
    body->run(rows, n, at, by);
    for (const struct copied *c = p->copied; c < p->copied + p->copies; c++)
        if (c->writes)
            copy_block(k->size[c->array], rows, n, here[c->array], p->row_step[c->array],
                       p->step[c->array], at[c->array], by[c->array], k->size[c->array]);
}

/* Run a body on rows * n elements, through `buffer` if they are not contiguous, at most `most` of a row at
   once. */
static inline void nest_run(const struct kernel *k, const struct body *body, const struct passage *p,
                            int64_t rows, int64_t n, char *const *data, int64_t most, char *buffer)
{
    if (n == 1 || !p->copies) {
        body->run(rows, n, data, p->row_step);
        return;
    }
    int total = k->total;
    char *here[total];
    memcpy(here, data, sizeof here);
    int64_t width = n < most ? n : most, height = rows;
    if (p->limited && rows > 1)
        height = p->along == MANY_LANES ? 1 : BLOCK / width;
    for (int64_t r = 0; r < rows; r += height)
        for (int64_t i = 0; i < n; i += width) {
            for (int a = 0; (r || i) && a < total; a++) {
                int64_t beside = p->along ? i * k->size[a] : 0;
                if (body->role[a] != UNUSED)
                    here[a] = data[a] + (body->role[a] == LANE ? beside
                                                               : r * p->row_step[a] + i * p->step[a]);
            }
            nest_block(k, body, p, rows - r < height ? rows - r : height, n - i < width ? n - i : width,
                       here, buffer);
        }
}

/* The first of the bodies whose numbers are constant along the innermost axis. */
static inline int nest_choose(const struct kernel *k, const int64_t *step)
{
    int b = 0;
    for (; b < k->count - 1; b++) {
        int fits = 1;
        for (int a = 0; a < k->total; a++)
            fits &= k->bodies[b].role[a] != NUMBER || step[a] == 0;
        if (fits)
            break;
    }
    return b;
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

/* Axes that are found, slowest first: their lengths, and a row of steps for each. */
struct axes {
    int rank;
    int64_t *lengths, *steps;
};

/* The numbers that as many axes take as a kernel may have, and with `axes`, these. */
static inline size_t most_numbers(const struct kernel *k)
{
    return ((size_t)k->rank + 2) * ((size_t)k->total + 1);
}

static inline size_t axes_numbers(const struct kernel *k, const struct axes *axes)
{
    return (size_t)axes->rank * ((size_t)k->total + 1);
}

/* Axes in memory for the most. */
static inline struct axes axes_in(const struct kernel *k, int64_t *memory)
{
    return (struct axes){0, memory, memory + k->rank + 2};
}

/* Copy axes; return what follows their copies. */
static inline int64_t *copy_axes(const struct kernel *k, const struct axes *from, int64_t *memory,
                                 struct axes *to)
{
    int64_t *steps = memory + from->rank, *end = memory + axes_numbers(k, from);
    memcpy(memory, from->lengths, (size_t)from->rank * sizeof *memory);
    memcpy(steps, from->steps, (size_t)(end - steps) * sizeof *steps);
    *to = (struct axes){from->rank, memory, steps};
    return end;
}

/* The order of an elementwise kernel: `length` elements at once, if `whole`; else chunks of `unit` of the axis
   `split`. */
struct elementwise_order {
    int whole, body, split;
    int64_t width, length, unit, *from;
    struct axes axes;
    struct passage passage;
};

struct elementwise {
    const struct kernel *kernel;
    const struct elementwise_order *order;
    char *const *data;
};

/* The elements whose index along the axis `split` is from `first` to before `last`. */
static inline void nest_chunk(const struct elementwise *e, int64_t first, int64_t last)
{
    const struct elementwise_order *o = e->order;
    int total = e->kernel->total, rank = o->axes.rank;
    int64_t lengths[rank], index[rank];
    NEST_BUFFER(e->kernel);
    char *at[total];
    for (int a = 0; a < total; a++)
        at[a] = a < e->kernel->temporaries
                    ? e->data[a] + o->from[a] + first * o->axes.steps[o->split * total + a]
                    : 0;
    memcpy(lengths, o->axes.lengths, sizeof lengths);
    lengths[o->split] = last - first;
    memset(index, 0, sizeof index);
    do
        nest_run(e->kernel, e->kernel->bodies + o->body, &o->passage, lengths[rank - 2],
                 lengths[rank - 1], at, o->width, buffer);
    while (nest_next(total, rank - 2, lengths, o->axes.steps, index, at));
}

/* The elements of a chunk of the axis `split`. */
static void nest_part(void *work, int64_t c, int worker)
{
    const struct elementwise *e = (const struct elementwise *)work;
    int64_t first = c * e->order->unit, left = e->order->length - first;
    (void)worker;
    nest_chunk(e, first, first + (left < e->order->unit ? left : e->order->unit));
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
static inline void nest_at_once(const struct kernel *k, const struct body *body, char *const *data,
                                int64_t size)
{
    int total = k->total;
    int64_t row_step[total];
    char *at[total];
    for (int a = 0; a < total; a++) {
        row_step[a] = 0;
        at[a] = a < k->temporaries ? data[a] : 0;
    }
    body->run(1, size, at, row_step);
}

/* Memory for an order that is kept: then there are no arrays. */
static inline void *nest_keep(const struct team *team, size_t bytes)
{
    void *memory = team->take(team->owner, bytes);
    *team->order = memory;
    return memory;
}

/* The order of all elements at once, contiguous as they are. */
static inline void elementwise_whole(const struct kernel *k, int64_t length, struct elementwise_order *o)
{
    int64_t step[k->total];
    for (int a = 0; a < k->total; a++)
        step[a] = a < k->arrays ? k->size[a] : 0;
    *o = (struct elementwise_order){.whole = 1, .body = nest_choose(k, step), .length = length};
}

/* The order of two axes or more; `width` is that of blocks. */
static inline void elementwise_order(const struct kernel *k, const struct axes *axes, const int64_t *from,
                                     int64_t width, struct elementwise_order *o)
{
    int total = k->total, split = 0, rank = axes->rank;
    int64_t size = 1, *end = copy_axes(k, axes, (int64_t *)(o + 1), &o->axes);
    o->whole = 0;
    o->width = width;
    o->from = (int64_t *)memcpy(end, from, (size_t)total * sizeof *from);
    for (int axis = 0; axis < rank; axis++) {
        size *= axes->lengths[axis];
        split = axes->lengths[axis] > axes->lengths[split] ? axis : split;
    }
    int64_t length = axes->lengths[split], unit = CHUNK / (size / length);
    unit = unit < 1 ? 1 : unit;
    int high = split == rank - 2 && width == NARROW;
    int64_t whole_blocks = split == rank - 1 ? BLOCK : high ? BLOCK / NARROW : 1;
    o->split = split;
    o->length = length;
    o->unit = (unit + whole_blocks - 1) / whole_blocks * whole_blocks;
    const int64_t *inner = o->axes.steps + (rank - 1) * total;
    o->body = nest_choose(k, inner);
    nest_passage(k, k->bodies + o->body, inner - total, inner, 1, end + total, &o->passage);
}

static inline void elementwise_run(const struct kernel *k, char *const *data, const struct team *team,
                                   const struct elementwise_order *o)
{
    struct elementwise e = {k, o, data};
    if (o->whole && o->length)
        nest_at_once(k, k->bodies + o->body, data, o->length);
    else if (!o->whole && o->unit >= o->length)
        nest_chunk(&e, 0, o->length);
    else if (!o->whole)
        nest_share(team, nest_part, &e, (o->length + o->unit - 1) / o->unit);
}

/* Derive the order, and keep it, or use it once. Apart from what calls it, as it needs much of the stack. */
static __attribute__((noinline)) int elementwise_derived(const struct kernel *k, char *const *data,
                                                         const int64_t *shape, const int64_t *strides,
                                                         const struct team *team)
{
    int64_t memory[most_numbers(k)], from[k->total], whole, width = 0;
    struct axes axes = axes_in(k, memory);
    memset(from, 0, sizeof from);
    int at_once = nest_in_order(k, shape, strides, &whole) && whole <= CHUNK;
    if (!at_once)
        axes.rank = nest_axes(k, 0, shape, strides, from, axes.lengths, axes.steps);
    if (axes.rank < 0) {
        at_once = 1;
        whole = axes.rank = 0;
    }
    if (!at_once) {
        axes.rank = nest_pad(k->total, axes.rank, 2, axes.lengths, axes.steps);
        width = nest_cross(k, axes.rank, axes.lengths, axes.steps);
    }
    size_t numbers = at_once ? 0 : axes_numbers(k, &axes) + (size_t)k->total + passage_numbers(k);
    size_t bytes = sizeof(struct elementwise_order) + numbers * sizeof(int64_t);
    int64_t own[data ? bytes / sizeof(int64_t) : 1];
    struct elementwise_order *order =
        (struct elementwise_order *)(data ? own : nest_keep(team, bytes));
    if (!order)
        return 1;
    if (at_once)
        elementwise_whole(k, whole, order);
    else
        elementwise_order(k, &axes, from, width, order);
    if (data)
        elementwise_run(k, data, team, order);
    return 0;
}

NEST int nest_elementwise(const struct kernel *k, char *const *data, const int64_t *shape,
                          const int64_t *strides, const struct team *team)
{
    if (!data || !team->order || !*team->order)
        return elementwise_derived(k, data, shape, strides, team);
    elementwise_run(k, data, team, (const struct elementwise_order *)*team->order);
    return 0;
}
