/* Reductions: the innermost axis in memory is vectorized. If it is reduced, parts of a result
   are added up side by side, and then together ("across"); otherwise adjacent results are
   ("along"). */

/* The order of passing over the axes: rows of n elements, and one row of `rest`, for each index
   of the slower axes. */
struct sweep {
    int64_t rows, n, rest, *row_step;
    int rank, plain, lanes;
};

struct reduction {
    const struct kernel *kernel;
    int across, rank;
    int64_t *lengths, *steps, *index;   /* of the reduced axes */
    const int64_t *step;                /* of the vectorized axis */
    struct sweep *sweeps;
    char *buffer;
    const struct team *team;
    int few;                            /* whether there are so few lanes that the work on totals
                                           is negligible */
};

/* The results to compute, in blocks of `width` adjacent ones, at most `together` blocks at once; the
   first block lacks `shift` results. */
struct results {
    char *const *data;
    int64_t *lengths, *steps, beside, width, shift, together;
    int rank, empty;
};

static inline void reduction_run(const struct reduction *d, const struct sweep *w,
                                 const struct body *body, int64_t rows, int64_t n,
                                 char *const *data)
{
    if (w->plain)
        body->run(rows, n, data, w->row_step);
    else
        nest_run(d->kernel, body, rows, n, data, w->row_step, d->step,
                 d->across ? 0 : d->few ? 1 : MANY_LANES, BLOCK, d->buffer);
}

/* The whole rows, and the partial one. */
static inline void reduction_rows(const struct reduction *d, const struct sweep *w,
                                  const struct stage *stage, int64_t n, char *const *at)
{
    const struct body *body = d->across ? &stage->across : &stage->along;
    if (!w->lanes)
        reduction_run(d, w, body, w->rows, n, at);
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
    reduction_run(d, w, body, 1, w->rest, end);
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

struct chunks {
    const struct reduction *reduction;
    const struct sweep *sweep;
    const struct stage *stage;
    char *const *data;
    int64_t n, unit, size, own;
    char *memory;
};

static void reduction_part(void *work, int64_t c, int worker)
{
    const struct chunks *p = (const struct chunks *)work;
    (void)worker;
    reduction_chunk(p->reduction, p->sweep, p->stage, p->n, p->data, p->unit, c,
                    p->memory + c * p->own, p->size);
}

/* One pass in chunks, whose totals are added up in order; 0 if that is not worth it. */
static inline int reduction_in_chunks(const struct reduction *d, const struct sweep *w,
                                      const struct stage *stage, int64_t n, char *const *data)
{
    const struct kernel *k = d->kernel;
    int64_t rows = w->rank ? d->lengths[0] : w->rows, elements = n, own;
    int64_t piece = stage->lanes ? PIECE : CHUNK;
    if (!stage->merge || !d->few)
        return 0;
    for (int axis = 0; axis < w->rank; axis++)
        elements *= d->lengths[axis];
    elements *= w->rows;
    if (elements < 2 * piece || rows < 2)
        return 0;
    int64_t unit = piece / (elements / rows), size = n * k->width;
    unit = unit < 16 ? 16 : (unit + 15) / 16 * 16;
    int64_t count = (rows + unit - 1) / unit;
    own = size * (k->total - k->temporaries);
    char *memory = count > 1 ? (char *)malloc((size_t)(count * own)) : 0;
    if (!memory)
        return 0;
    struct chunks p = {d, w, stage, data, n, unit, size, own, memory};
    nest_share(d->team, reduction_part, &p, count);
    for (int64_t c = 0; c < count; c++) {
        char *other[k->total];
        for (int a = 0; a < k->total; a++)
            other[a] = a < k->temporaries ? 0 : memory + c * own + (a - k->temporaries) * size;
        stage->merge(n, data, other);
    }
    free(memory);
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
    nest_run(d->kernel, &stage->section, 1, n, data, step, step, 1, BLOCK, d->buffer);
}

/* All stages for n adjacent results. */
static inline void reduction_stages(const struct reduction *d, int64_t n, char *const *data,
                                    const int64_t *step, int empty)
{
    const struct kernel *k = d->kernel;
    for (int s = 0; s < k->count; s++) {
        const struct stage *stage = k->stages + s;
        const struct sweep *w = d->sweeps + s;
        int nothing = empty || reduction_adds_nothing(stage, n, data);
        if (!nothing && reduction_at_once(w)) {
            stage->lanes(0, n, w->rows, w->rest, data, w->row_step, step);
            continue;
        }
        int64_t count = d->across && !nothing ? n : 1;
        char *at[k->total];
        memcpy(at, data, sizeof at);
        for (int64_t i = 0; i < count; i++) {
            reduction_stage(d, w, stage, n / count, at, step, nothing);
            for (int a = 0; a < k->total; a++)
                at[a] += step[a];
        }
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
    int64_t step[total];
    NEST_BUFFER(k);
    char *at[total], *here[total];
    memcpy(step, r->steps + (r->rank - 1) * total, sizeof step);
    for (int a = k->temporaries; k->count > 1 && a < total; a++)
        step[a] = k->size[a];
    d.buffer = buffer;
    d.index = reduced_index;
    for (int a = 0; a < total; a++)
        at[a] = a < k->temporaries
                    ? r->data[a]
                    : buffer + (k->temporaries * BLOCK + (a - k->temporaries) * SPACING) * k->width;
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

/* Choose the axes of rows and of vectors for one stage. */
static inline void reduction_sweep(const struct reduction *d, const struct stage *stage,
                                   struct sweep *w)
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
    w->plain = nest_plain(d->kernel, d->across ? &stage->across : &stage->along, d->step);
    w->lanes = d->across && stage->lanes && w->plain && w->n == stage->parts;
}

NEST int nest_reduction(const struct kernel *k, char *const *data, const int64_t *shape,
                        const int64_t *strides, const struct team *team)
{
    int total = k->total, most = k->rank + 2;
    int64_t lengths[most], steps[most * total], row_steps[k->count * total];
    int64_t reduced_lengths[most], reduced_steps[most * total];
    struct sweep sweeps[k->count];
    int threads = team->threads;
    char *first[total];
    memcpy(first, data, (size_t)k->temporaries * sizeof *data);
    int rank = nest_axes(k, 0, shape, strides, first, lengths, steps);
    int reduced = nest_axes(k, 1, shape, strides, first, reduced_lengths, reduced_steps);
    int empty = reduced < 0;
    if (empty && k->nonempty)
        return 1;
    if (rank < 0)
        return 0;
    rank = nest_pad(total, rank, 1, lengths, steps);
    reduced = nest_pad(total, empty ? 0 : reduced, 2, reduced_lengths, reduced_steps);
    const int64_t *step = steps + (rank - 1) * total;
    const int64_t *inner = reduced_steps + (reduced - 1) * total;
    int64_t length = reduced_lengths[reduced - 1], beside = lengths[rank - 1];
    int one_call = k->count == 1 && k->stages[0].lanes;
    int across = beside == 1 || (nest_weight(total, inner) <= nest_weight(total, step) &&
                                 (length >= LONG / (1 + one_call) || length >= 4 * beside));
    struct reduction d = {k, across, reduced, reduced_lengths, reduced_steps, 0,
                          across ? inner : step, sweeps, 0, team, across || beside <= BLOCK};
    int64_t size = 1, outer = 1, width = across ? 1 : LANES;
    for (int s = 0; s < k->count; s++) {
        sweeps[s].row_step = row_steps + s * total;
        reduction_sweep(&d, k->stages + s, sweeps + s);
    }
    for (int axis = 0; axis < rank - 1; axis++)
        outer *= lengths[axis];
    for (int axis = 0; axis < reduced; axis++)
        size *= reduced_lengths[axis];
    if (!across && threads > 1 && outer < threads && beside < threads * LANES)
        width = (beside / threads + BLOCK) / BLOCK * BLOCK;
    int64_t shift = across ? 0 : reduction_shift(k, first, step, beside, width);
    int64_t count = outer * ((beside + shift + width - 1) / width);
    int64_t together = across && !empty ? reduction_together(&d) : 1;
    struct results r = {first, lengths, steps, beside, width, shift, together, rank, empty};
    if (threads > 1 && count > 1 && size * outer * beside >= 2 * CHUNK) {
        struct teams p = {&d, &r, count, count < threads ? count : threads};
        team->run(reduction_team, &p, p.teams, threads);
    } else {
        reduction_results(&d, &r, 0, count);
    }
    return 0;
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
