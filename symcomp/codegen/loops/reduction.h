/* Reductions: the innermost axis in memory is vectorized. If it is reduced, parts of a result
   are added up side by side, and then together ("across"); otherwise adjacent results are
   ("along"). */

/* The order of passing over the axes: rows of n elements, and one row of `rest`, for each index
   of the slower axes; and the order of what follows for each result. */
struct sweep {
    int64_t rows, n, rest, *row_step;
    int rank, lanes;
    struct passage pass, section;
};

struct reduction {
    const struct kernel *kernel;
    int across, rank;
    int64_t *lengths, *steps, *index;   /* of the reduced axes */
    const int64_t *step;                /* of the vectorized axis */
    struct sweep *sweeps;
    char *buffer, *memory;              /* of a thread; of the totals of all chunks, if threads share them */
    const struct team *team;
    int few;                            /* whether there are so few lanes that the work on totals
                                           is negligible */
};

/* The results to compute, in blocks of `width` adjacent ones, at most `together` blocks at once; the
   first block lacks `shift` results. */
struct results {
    char *const *data;
    int64_t *lengths, *steps, beside, width, shift, together;
    int64_t *step;      /* from a result to the next, of temporaries, too, if several stages need them */
    int rank, empty;
};

/* The whole rows, and the partial one. */
static inline void reduction_rows(const struct reduction *d, const struct sweep *w,
                                  const struct stage *stage, int64_t n, char *const *at)
{
    const struct body *body = d->across ? &stage->across : &stage->along;
    if (!w->lanes)
        nest_run(d->kernel, body, &w->pass, w->rows, n, at, BLOCK, d->buffer);
    if (!w->lanes && !w->rest)
        return;
    int total = d->kernel->total;
    int64_t sections = w->lanes ? (w->rows - 1) / SECTION : 0, step[total];
    int64_t rows = w->lanes ? sections * SECTION : w->rows;
    char *end[total];
    for (int a = 0; a < total; a++) {
        step[a] = SECTION * w->row_step[a];
        end[a] = at[a] + rows * w->row_step[a];
    }
    if (w->lanes) {
        stage->lanes(1, sections, SECTION, 0, at, w->row_step, step);
        stage->lanes(1, 1, w->rows - rows, w->rest, end, w->row_step, step);
        return;
    }
    nest_run(d->kernel, body, &w->pass, 1, w->rest, end, BLOCK, d->buffer);
}

/* One pass over all reduced elements, for n results. */
static inline void reduction_pass(const struct reduction *d, const struct sweep *w,
                                  const struct stage *stage, int64_t n, char *const *data)
{
    if (!w->rank) {
        reduction_rows(d, w, stage, n, data);
        return;
    }
    int total = d->kernel->total;
    char *at[total];
    memcpy(at, data, sizeof at);
    memset(d->index, 0, (size_t)w->rank * sizeof *d->index);
    do
        reduction_rows(d, w, stage, n, at);
    while (nest_next(total, w->rank, d->lengths, d->steps, d->index, at));
}

/* A pass over chunk c of the elements: `unit` of the slowest rows or axis. `own` is memory for
   the temporaries, `size` bytes for each. */
static inline void reduction_chunk(const struct reduction *given, const struct sweep *sweep,
                                   const struct stage *stage, int64_t n, char *const *data,
                                   int64_t unit, int64_t c, char *own, int64_t size)
{
    const struct kernel *k = given->kernel;
    struct reduction d = *given;
    struct sweep w = *sweep;
    int64_t lengths[d.rank], index[d.rank], first = c * unit;
    const int64_t *step = w.rank ? d.steps : w.row_step;
    NEST_BUFFER(k);
    char *at[k->total];
    memcpy(lengths, d.lengths, sizeof lengths);
    d.lengths = lengths;
    d.index = index;
    d.buffer = buffer;
    int64_t left = (w.rank ? lengths[0] : w.rows) - first;
    left = left > unit ? unit : left;
    if (w.rank) {
        lengths[0] = left;
    } else {
        w.rest = first + left == w.rows ? w.rest : 0;
        w.rows = left;
    }
    for (int a = 0; a < k->temporaries; a++)
        at[a] = data[a] + first * step[a];
    for (int a = k->temporaries; a < k->total; a++) {
        at[a] = own + (a - k->temporaries) * size;
        memcpy(at[a], data[a], (size_t)size);
    }
    stage->begin(n, at);
    reduction_pass(&d, &w, stage, n, at);
}

/* One pass cut in `count` chunks, of `unit` of the slowest rows or axis each; their totals need `own` bytes
   each, `size` for a temporary. */
struct chunks {
    const struct reduction *reduction;
    const struct sweep *sweep;
    const struct stage *stage;
    char *const *data;
    int64_t n, unit, count, size, own;
};

static void reduction_part(void *work, int64_t c, int worker)
{
    const struct chunks *p = (const struct chunks *)work;
    (void)worker;
    reduction_chunk(p->reduction, p->sweep, p->stage, p->n, p->data, p->unit, c,
                    p->reduction->memory + c * p->own, p->size);
}

/* The chunks of a pass; none if they are not worth it. */
static inline struct chunks reduction_chunks(const struct reduction *d, const struct sweep *w,
                                             const struct stage *stage, int64_t n)
{
    const struct kernel *k = d->kernel;
    int64_t rows = w->rank ? d->lengths[0] : w->rows, elements = n * w->rows;
    int64_t piece = stage->lanes ? PIECE : CHUNK;
    struct chunks p = {.reduction = d, .sweep = w, .stage = stage, .n = n, .size = n * k->width};
    if (!stage->merge || !d->few)
        return p;
    for (int axis = 0; axis < w->rank; axis++)
        elements *= d->lengths[axis];
    if (elements < 2 * piece || rows < 2)
        return p;
    int64_t unit = piece / (elements / rows), count;
    p.unit = unit < 16 ? 16 : (unit + 15) / 16 * 16;
    count = (rows + p.unit - 1) / p.unit;
    p.count = count > 1 ? count : 0;
    p.own = p.size * (k->total - k->temporaries);
    return p;
}

/* Add the totals of a chunk. */
static inline void reduction_add(const struct chunks *p, char *own)
{
    const struct kernel *k = p->reduction->kernel;
    char *other[k->total];
    for (int a = 0; a < k->total; a++)
        other[a] = a < k->temporaries ? 0 : own + (a - k->temporaries) * p->size;
    p->stage->merge(p->n, p->data, other);
}

/* Add up one chunk after the other. Apart from what calls it, as it needs the stack. */
static __attribute__((noinline)) void reduction_in_turn(const struct chunks *p)
{
    char own[p->own];
    for (int64_t c = 0; c < p->count; c++) {
        reduction_chunk(p->reduction, p->sweep, p->stage, p->n, p->data, p->unit, c, own, p->size);
        reduction_add(p, own);
    }
}

/* One pass in chunks, whose totals are added up in order; 0 if that is not worth it. */
static inline int reduction_in_chunks(const struct reduction *d, const struct sweep *w,
                                      const struct stage *stage, int64_t n, char *const *data)
{
    struct chunks p = reduction_chunks(d, w, stage, n);
    p.data = data;
    if (!p.count)
        return 0;
    if (!d->memory) {
        reduction_in_turn(&p);
        return 1;
    }
    nest_share(d->team, reduction_part, &p, p.count);
    for (int64_t c = 0; c < p.count; c++)
        reduction_add(&p, d->memory + c * p.own);
    return 1;
}

/* Whether all elements of a result are few enough to be added up in one call. */
static inline int reduction_at_once(const struct sweep *w)
{
    return w->lanes && !w->rank && w->rows <= SECTION;
}

/* How many results are computed together, across: each stage leaves a value of each result for the
   next one, which reads the elements again, from the cache. */
static inline int64_t reduction_together(const struct reduction *d)
{
    const struct kernel *k = d->kernel;
    int64_t bytes = 1, elements = 1;
    if (k->count == 1)
        return reduction_at_once(d->sweeps) ? INT64_MAX : 1;
    for (int axis = 0; axis < d->rank; axis++)
        elements *= d->lengths[axis];
    for (int a = 0; a < k->arrays; a++)
        bytes += d->step[a] ? elements * k->size[a] : 0;
    int64_t results = bytes < CACHED ? CACHED / bytes : 1;
    return results < MOST_TOGETHER ? results : MOST_TOGETHER;
}

/* Whether a stage has nothing to add to n adjacent results. */
static inline int reduction_adds_nothing(const struct stage *stage, int64_t n, char *const *data)
{
    int any = !stage->choices;
    for (int c = 0; c < stage->choices; c++)
        for (int64_t i = 0; !any && i < n; i++)
            any = data[stage->chosen[c]][i];
    return !any;
}

/* One stage for n adjacent results, `step` apart; across for one, unless there is nothing to add. */
static inline void reduction_stage(const struct reduction *d, const struct sweep *w,
                                   const struct stage *stage, int64_t n, char *const *data,
                                   const int64_t *step, int nothing)
{
    int across = d->across && !nothing;
    int64_t lanes = across ? w->n : n;
    if (stage->begin)
        stage->begin(lanes, data);
    if (!nothing && !reduction_in_chunks(d, w, stage, lanes, data))
        reduction_pass(d, w, stage, lanes, data);
    if (!stage->begin)
        return;
    stage->finish(lanes, across, data);
    nest_run(d->kernel, &stage->section, &w->section, 1, n, data, BLOCK, d->buffer);
}

/* The same, together or, across, one after the other. */
static inline void reduction_each(const struct reduction *d, const struct sweep *w,
                                  const struct stage *stage, int64_t n, char *const *data,
                                  const int64_t *step, int nothing)
{
    const struct kernel *k = d->kernel;
    if (!nothing && reduction_at_once(w)) {
        stage->lanes(0, n, w->rows, w->rest, data, w->row_step, step);
        return;
    }
    if (n == 1 || !d->across || nothing) {
        reduction_stage(d, w, stage, n, data, step, nothing);
        return;
    }
    char *at[k->total];
    memcpy(at, data, sizeof at);
    for (int64_t i = 0; i < n; i++) {
        reduction_stage(d, w, stage, 1, at, step, nothing);
        for (int a = 0; a < k->total; a++)
            at[a] += step[a];
    }
}

/* A stage that only changes results that are chosen, in runs of those near to one another. */
static inline void reduction_chosen(const struct reduction *d, const struct sweep *w,
                                    const struct stage *stage, int64_t n, char *const *data,
                                    const int64_t *step)
{
    const char *chosen = data[stage->chosen[0]], *found = chosen, *end = chosen + n;
    char *at[d->kernel->total];
    while (found < end && (found = (const char *)memchr(found, 1, (size_t)(end - found)))) {
        const char *first = found, *last = found;
        for (; found < end && found - last <= MOST_APART; found++)
            last = *found ? found : last;
        for (int a = 0; a < d->kernel->total; a++)
            at[a] = data[a] + (first - chosen) * step[a];
        reduction_each(d, w, stage, last - first + 1, at, step, 0);
    }
}

/* All stages for n adjacent results. */
static inline void reduction_stages(const struct reduction *d, int64_t n, char *const *data,
                                    const int64_t *step, int empty)
{
    for (int s = 0; s < d->kernel->count; s++) {
        const struct stage *stage = d->kernel->stages + s;
        const struct sweep *w = d->sweeps + s;
        if (!stage->ready)
            reduction_each(d, w, stage, n, data, step, empty || reduction_adds_nothing(stage, n, data));
        else if (!empty)
            reduction_chosen(d, w, stage, n, data, step);
    }
}

/* The blocks of results from `first` to before `last`. */
INLINE void reduction_results(const struct reduction *given, const struct results *r, int64_t first,
                              int64_t last)
{
    const struct kernel *k = given->kernel;
    int total = k->total;
    struct reduction d = *given;
    int64_t reduced_index[d.rank], index[r->rank];
    int64_t blocks = (r->beside + r->shift + r->width - 1) / r->width;
    int64_t block = first % blocks, outer = first / blocks;
    const int64_t *step = r->step;
    NEST_BUFFER(k);
    char *at[total], *here[total];
    d.buffer = buffer;
    d.index = reduced_index;
    for (int a = 0; a < total; a++)
        at[a] = a < k->temporaries
                    ? r->data[a]
                    : buffer + (k->temporaries * BLOCK + (a - k->temporaries) * (k->lanes + GAP)) * k->width;
    for (int axis = r->rank - 2; axis >= 0; axis--) {
        index[axis] = outer % r->lengths[axis];
        outer /= r->lengths[axis];
        for (int a = 0; a < k->temporaries; a++)
            at[a] += index[axis] * r->steps[axis * total + a];
    }
    while (first < last) {
        int64_t together = last - first, left = blocks - block;
        together = together < left ? together : left;
        together = together < r->together ? together : r->together;
        int64_t i = block * r->width - r->shift, end = i + together * r->width;
        i = i < 0 ? 0 : i;
        int64_t n = (end < r->beside ? end : r->beside) - i;
        for (int a = 0; a < total; a++)
            here[a] = at[a] + (a < k->temporaries ? i * step[a] : 0);
        reduction_stages(&d, n, here, step, r->empty);
        first += together;
        block += together;
        if (block == blocks) {
            nest_next(total, r->rank - 1, r->lengths, r->steps, index, at);
            block = 0;
        }
    }
}

struct teams {
    const struct reduction *reduction;
    const struct results *results;
    int64_t blocks, teams;
};

static void reduction_team(void *work, int64_t t, int worker)
{
    const struct teams *p = (const struct teams *)work;
    (void)worker;
    reduction_results(p->reduction, p->results, p->blocks * t / p->teams,
                      p->blocks * (t + 1) / p->teams);
}

/* How many results the first block lacks, so that the vectors of the first array are aligned to
   cache lines: only with many results, as the remainder costs time. */
static inline int64_t reduction_shift(const struct kernel *k, char *const *data,
                                      const int64_t *step, int64_t beside, int64_t width)
{
    int64_t off = (int64_t)((uintptr_t)data[0] % CACHE_LINE);
    if (beside < MANY || step[0] != k->size[0] || off % k->size[0])
        return 0;
    return off ? width - (CACHE_LINE - off) / k->size[0] : 0;
}

/* Choose the axes of rows and of vectors for one stage; `memory` is for the passage. */
static inline void reduction_sweep(const struct reduction *d, const struct stage *stage,
                                   int64_t *memory, struct sweep *w)
{
    int total = d->kernel->total;
    const int64_t *inner = d->steps + (d->rank - 1) * total;
    int64_t length = d->lengths[d->rank - 1], parts = 1;
    int whole = stage->lanes && (length >= stage->parts || d->lengths[d->rank - 2] == 1);
    w->rest = 0;
    w->rank = d->rank - 1;
    if (!d->across) {
        w->rows = length;
    } else if (whole || (stage->parts && length >= 2 * FEW_PARTS)) {
        parts = w->n = whole || length >= 2 * stage->parts ? stage->parts : FEW_PARTS;
        w->rows = length / parts;
        w->rest = length % parts;
    } else {
        w->n = length;
        w->rank--;
        w->rows = d->lengths[w->rank];
        inner -= total;
    }
    if (w->rank == 1 && d->lengths[0] == 1)
        w->rank = 0;
    for (int a = 0; a < total; a++)
        w->row_step[a] = parts * inner[a];
    nest_passage(d->kernel, d->across ? &stage->across : &stage->along, w->row_step, d->step,
                 d->across ? 0 : d->few ? 1 : MANY_LANES, memory, &w->pass);
    w->lanes = d->across && stage->lanes && !w->pass.copies && w->n == stage->parts;
}

/* The order of a reduction; `from` is where its arrays begin, in bytes. What depends on a call is not in
   `reduction` and `results`. */
struct reduction_order {
    int empty, nothing;
    int64_t outer, work, shared;        /* bytes of totals that threads share */
    int64_t *from;
    struct reduction reduction;
    struct results results;
};

/* How results are shared out: their blocks, and how many are computed together. */
static inline void reduction_blocks(struct reduction_order *o, int threads)
{
    const struct reduction *d = &o->reduction;
    struct results *r = &o->results;
    int64_t size = 1;
    o->outer = 1;
    for (int axis = 0; axis < r->rank - 1; axis++)
        o->outer *= r->lengths[axis];
    for (int axis = 0; axis < d->rank; axis++)
        size *= d->lengths[axis];
    r->width = d->across ? 1 : d->kernel->lanes;
    if (!d->across && threads > 1 && o->outer < threads && r->beside < threads * r->width)
        r->width = (r->beside / threads + BLOCK) / BLOCK * BLOCK;
    r->together = d->across && !o->empty ? reduction_together(d) : 1;
    o->work = size * o->outer * r->beside;
}

/* The bytes of totals that threads need if they share the passes of one block of results, and not the blocks. */
static inline int64_t reduction_shared_bytes(const struct reduction_order *o, int threads)
{
    const struct reduction *d = &o->reduction;
    int64_t most = 0;
    if (threads < 2 || o->nothing || o->empty || o->outer > 1 || o->results.beside > o->results.width)
        return 0;
    for (int s = 0; s < d->kernel->count; s++) {
        int64_t n = d->across ? d->sweeps[s].n : o->results.beside;
        struct chunks p = reduction_chunks(d, d->sweeps + s, d->kernel->stages + s, n);
        most = p.count * p.own > most ? p.count * p.own : most;
    }
    return most;
}

/* The bytes of an order, and of its tables behind it. */
static inline size_t reduction_bytes(const struct kernel *k, const struct axes *axes,
                                     const struct axes *reduced)
{
    size_t total = (size_t)k->total, stages = (size_t)k->count;
    size_t numbers = axes_numbers(k, axes) + axes_numbers(k, reduced) + (stages + 2) * total;
    return sizeof(struct reduction_order) + stages * sizeof(struct sweep) +
           (numbers + 2 * stages * passage_numbers(k)) * sizeof(int64_t);
}

/* The order of at least one axis of results, and two that are reduced. */
static inline void reduction_order(const struct kernel *k, const struct axes *of_results,
                                   const struct axes *of_terms, const int64_t *from, int threads,
                                   struct reduction_order *o)
{
    int total = k->total;
    struct axes axes, reduced;
    struct sweep *sweeps = (struct sweep *)(o + 1);
    int64_t *memory = copy_axes(k, of_results, (int64_t *)(sweeps + k->count), &axes);
    memory = copy_axes(k, of_terms, memory, &reduced);
    o->from = (int64_t *)memcpy(memory, from, (size_t)total * sizeof *from);
    const int64_t *step = axes.steps + (axes.rank - 1) * total;
    const int64_t *inner = reduced.steps + (reduced.rank - 1) * total;
    int64_t *last = memory + total;
    int64_t length = reduced.lengths[reduced.rank - 1], beside = axes.lengths[axes.rank - 1];
    int one_call = k->count == 1 && k->stages[0].lanes;
    int across = beside == 1 || (nest_weight(total, inner) <= nest_weight(total, step) &&
                                 (length >= LONG / (1 + one_call) || length >= 4 * beside));
    o->reduction = (struct reduction){
        .kernel = k, .across = across, .rank = reduced.rank, .lengths = reduced.lengths,
        .steps = reduced.steps, .step = across ? inner : step, .sweeps = sweeps,
        .few = across || beside <= BLOCK};
    o->results = (struct results){
        .lengths = axes.lengths, .steps = axes.steps, .beside = beside, .step = last,
        .rank = axes.rank, .empty = o->empty};
    for (int a = 0; a < total; a++)
        last[a] = k->count > 1 && a >= k->temporaries ? k->size[a] : step[a];
    memory = last + total;
    for (int s = 0; s < k->count; s++) {
        sweeps[s].row_step = memory;
        memory += total;
        reduction_sweep(&o->reduction, k->stages + s, memory, sweeps + s);
        memory += passage_numbers(k);
        nest_passage(k, &k->stages[s].section, last, last, 1, memory, &sweeps[s].section);
        memory += passage_numbers(k);
    }
    reduction_blocks(o, threads);
}

static inline int reduction_by(const struct kernel *k, char *const *data, const struct team *team,
                               const struct reduction_order *o)
{
    if (o->empty && k->nonempty)
        return 1;
    if (o->nothing)
        return 0;
    char *first[k->total];
    struct reduction d = o->reduction;
    struct results r = o->results;
    for (int a = 0; a < k->temporaries; a++)
        first[a] = data[a] + o->from[a];
    d.kernel = k;
    d.team = team;
    d.memory = o->shared ? team->memory : 0;
    r.data = first;
    r.shift = d.across ? 0
                       : reduction_shift(k, first, r.steps + (r.rank - 1) * k->total, r.beside, r.width);
    int64_t count = o->outer * ((r.beside + r.shift + r.width - 1) / r.width);
    if (team->threads > 1 && count > 1 && o->work >= 2 * CHUNK) {
        struct teams p = {&d, &r, count, count < team->threads ? count : team->threads};
        team->run(reduction_team, &p, p.teams, team->threads);
    } else {
        reduction_results(&d, &r, 0, count);
    }
    return 0;
}

/* Derive the order, and keep it, or use it once. Apart from what calls it, as it needs much of the stack. */
static __attribute__((noinline)) int reduction_derived(const struct kernel *k, char *const *data,
                                                       const int64_t *shape, const int64_t *strides,
                                                       const struct team *team)
{
    int64_t memory[2 * most_numbers(k)], from[k->total];
    struct axes axes = axes_in(k, memory), reduced = axes_in(k, memory + most_numbers(k));
    memset(from, 0, sizeof from);
    axes.rank = nest_axes(k, 0, shape, strides, from, axes.lengths, axes.steps);
    reduced.rank = nest_axes(k, 1, shape, strides, from, reduced.lengths, reduced.steps);
    int nothing = axes.rank < 0, empty = reduced.rank < 0;
    axes.rank = nest_pad(k->total, nothing ? 0 : axes.rank, 1, axes.lengths, axes.steps);
    reduced.rank = nest_pad(k->total, empty ? 0 : reduced.rank, 2, reduced.lengths, reduced.steps);
    size_t bytes = reduction_bytes(k, &axes, &reduced);
    int64_t own[data ? bytes / sizeof(int64_t) : 1];
    struct reduction_order *order = (struct reduction_order *)(data ? own : nest_keep(team, bytes));
    if (!order)
        return 1;
    order->nothing = nothing;
    order->empty = empty;
    reduction_order(k, &axes, &reduced, from, team->threads, order);
    order->shared = data ? 0 : reduction_shared_bytes(order, team->threads);
    if (order->shared)
        *team->bytes = order->shared;
    return data ? reduction_by(k, data, team, order) : 0;
}

NEST int nest_reduction(const struct kernel *k, char *const *data, const int64_t *shape,
                        const int64_t *strides, const struct team *team)
{
    if (!data || !team->order || !*team->order)
        return reduction_derived(k, data, shape, strides, team);
    return reduction_by(k, data, team, (const struct reduction_order *)*team->order);
}

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC pop_options
#endif

#define MERGE_SUMS(name, T, error)                                                                 \
    NEST void name(int64_t n, T *t, T *e, const T *p, const T *more)                               \
    {                                                                                              \
        for (int64_t i = 0; i < n; i++) {                                                          \
            T s = t[i] + p[i];                                                                     \
            e[i] += error(t[i], p[i], s);                                                          \
            e[i] += more[i];                                                                       \
            t[i] = s;                                                                              \
        }                                                                                          \
    }

MERGE_SUMS(merge_sums, double, sum_error)
MERGE_SUMS(merge_sumsf, float, sum_errorf)
#undef MERGE_SUMS
