/* Reductions: the innermost axis in memory is the one of the vectors. Where it is reduced, parts of
   a result are added up side by side, and then together ("across"); else results are. */

struct reduction {
    const struct kernel *kernel;
    int across, plain;                 /* a bit for each stage: whether it needs no buffer */
    int rank;                          /* of the axes that are not of rows and vectors */
    int64_t rows, n, rest, *lengths, *steps, *index;
    const int64_t *row_step, *step;    /* of the pass */
    char *buffer;
};

static inline void reduction_run(const struct reduction *d, const struct body *body, int64_t rows,
                                 int64_t n, char *const *data)
{
    if (d->plain)
        body->run(rows, n, data, d->row_step);
    else
        nest_run(d->kernel, body, rows, n, data, d->row_step, d->step, d->buffer);
}

/* One pass over all reduced elements. `rest` of the last axis are less than a row. */
static inline void reduction_pass(const struct reduction *d, const struct body *body,
                                  char *const *data)
{
    int total = d->kernel->total;
    if (d->plain && d->rank == 0 && !d->rest) {
        body->run(d->rows, d->n, data, d->row_step);
        return;
    }
    char *at[total], *end[total];
    memcpy(at, data, sizeof at);
    memset(d->index, 0, (size_t)d->rank * sizeof *d->index);
    do {
        reduction_run(d, body, d->rows, d->n, at);
        if (d->rest) {
            for (int a = 0; a < total; a++)
                end[a] = at[a] + d->rows * d->row_step[a];
            reduction_run(d, body, 1, d->rest, end);
        }
    } while (nest_next(total, d->rank, d->lengths, d->steps, d->index, at));
}

/* Copy the first element of what was computed for a row to all lanes. */
static inline void reduction_spread(const struct kernel *k, int64_t n, char *const *data)
{
    for (int a = k->temporaries; a < k->total; a++)
        nest_copy(k->size[a], 1, n, data[a], 0, k->size[a], data[a], 0, 0);
}

/* All stages for n results next to each other, `step` apart; or for one, across. */
static inline void reduction_stages(const struct reduction *d, int64_t n, char *const *data,
                                    const int64_t *step, int empty)
{
    const struct kernel *k = d->kernel;
    struct reduction here = *d;
    here.n = d->across ? d->n : n;
    for (int s = 0; s < k->count; s++) {
        const struct stage *stage = k->stages + s;
        if (stage->begin)
            stage->begin(here.n, data);
        here.plain = d->plain >> s & 1;
        if (!empty)
            reduction_pass(&here, &stage->pass, data);
        if (!stage->begin)
            continue;
        stage->finish(here.n, d->across, data);
        if (d->across)
            stage->section.run(1, 1, data, step);
        else
            nest_run(k, &stage->section, 1, n, data, step, step, d->buffer);
        if (d->across && s + 1 < k->count)
            reduction_spread(k, here.n, data);
    }
}

/* Which axes rows and vectors are of, and how far their elements are apart. */
static inline void reduction_shape(struct reduction *d, int kept, const int64_t *kept_lengths,
                                   const int64_t *kept_steps, int64_t *row_step)
{
    int total = d->kernel->total, rank = d->rank;
    const int64_t *inner = d->steps + (rank - 1) * total, *outer = inner - total;
    const int64_t *beside = kept_steps + (kept - 1) * total;
    int64_t length = d->lengths[rank - 1], width = kept_lengths[kept - 1];
    d->across = width == 1 || (nest_weight(total, inner) <= nest_weight(total, beside) &&
                               (length >= 16 || length >= width));
    d->rest = 0;
    if (!d->across) {
        d->rows = length;
        d->rank = rank - 1;
        d->step = beside;
        memcpy(row_step, inner, (size_t)total * sizeof *row_step);
    } else if (length >= 2 * PARTS) {
        d->rows = length / PARTS;
        d->n = PARTS;
        d->rest = length % PARTS;
        d->rank = rank - 1;
        d->step = inner;
        for (int a = 0; a < total; a++)
            row_step[a] = PARTS * inner[a];
    } else {
        d->rows = d->lengths[rank - 2];
        d->n = length;
        d->rank = rank - 2;
        d->step = inner;
        memcpy(row_step, outer, (size_t)total * sizeof *row_step);
    }
    d->row_step = row_step;
    for (int s = 0; s < d->kernel->count; s++)
        d->plain |= nest_plain(d->kernel, &d->kernel->stages[s].pass, d->step) << s;
}

/* 1 if a reduced axis is empty that must not be. */
static inline int nest_reduction(const struct kernel *k, char *const *data, const int64_t *shape,
                                 const int64_t *strides, char *buffer)
{
    int total = k->total, most = k->rank + 2;
    int64_t lengths[most], steps[most * total], index[most], row_step[total];
    int64_t reduced_lengths[most], reduced_steps[most * total], reduced_index[most];
    int rank = nest_axes(k, 0, shape, strides, lengths, steps);
    int reduced = nest_axes(k, 1, shape, strides, reduced_lengths, reduced_steps);
    int empty = reduced < 0;
    if (rank < 0)
        return 0;
    if (empty && k->nonempty)
        return 1;
    rank = nest_pad(total, rank, 1, lengths, steps);
    reduced = nest_pad(total, empty ? 0 : reduced, 2, reduced_lengths, reduced_steps);
    struct reduction d = {.kernel = k, .rank = reduced, .lengths = reduced_lengths,
                          .steps = reduced_steps, .index = reduced_index, .buffer = buffer};
    reduction_shape(&d, rank, lengths, steps, row_step);
    char *at[total], *here[total];
    memcpy(at, data, (size_t)k->temporaries * sizeof *at);
    for (int a = k->temporaries; a < total; a++)
        at[a] = buffer + k->temporaries * BLOCK * 8 + (a - k->temporaries) * LANES * 8;
    memset(index, 0, sizeof index);
    const int64_t *step = steps + (rank - 1) * total, width = d.across ? 1 : LANES;
    do {
        for (int64_t i = 0; i < lengths[rank - 1]; i += width) {
            int64_t n = lengths[rank - 1] - i < width ? lengths[rank - 1] - i : width;
            for (int a = 0; a < total; a++)
                here[a] = at[a] + i * step[a];
            reduction_stages(&d, n, here, step, empty);
        }
    } while (nest_next(total, rank - 1, lengths, steps, index, at));
    return 0;
}
