/* Reductions: the innermost axis in memory is the one of the vectors. Where it is reduced, parts of
   a result are added up side by side, and then together ("across"); else results are ("along"). */

/* How the axes are passed over: rows of n elements, and of one row of `rest`, for each index of the
   slower axes. */
struct sweep {
    int64_t rows, n, rest, *row_step;
    int rank, plain;
};

struct reduction {
    const struct kernel *kernel;
    int across, rank;
    int64_t *lengths, *steps, *index;   /* of the reduced axes */
    const int64_t *step;                /* of the axis of the vectors */
    struct sweep *sweeps;
    char *buffer;
};

static inline void reduction_run(const struct reduction *d, const struct sweep *w,
                                 const struct body *body, int64_t rows, int64_t n,
                                 char *const *data)
{
    if (w->plain)
        body->run(rows, n, data, w->row_step);
    else
        nest_run(d->kernel, body, rows, n, data, w->row_step, d->step, !d->across, d->buffer);
}

/* One pass over all reduced elements, for n results. */
static inline void reduction_pass(const struct reduction *d, const struct sweep *w,
                                  const struct body *body, int64_t n, char *const *data)
{
    int total = d->kernel->total;
    if (w->rank == 0 && !w->rest) {
        reduction_run(d, w, body, w->rows, n, data);
        return;
    }
    char *at[total], *end[total];
    memcpy(at, data, sizeof at);
    memset(d->index, 0, (size_t)w->rank * sizeof *d->index);
    do {
        reduction_run(d, w, body, w->rows, n, at);
        if (w->rest) {
            for (int a = 0; a < total; a++)
                end[a] = at[a] + w->rows * w->row_step[a];
            reduction_run(d, w, body, 1, w->rest, end);
        }
    } while (nest_next(total, w->rank, d->lengths, d->steps, d->index, at));
}

/* All stages for n results next to each other, `step` apart; or for one, across. */
static inline void reduction_stages(const struct reduction *d, int64_t n, char *const *data,
                                    const int64_t *step, int empty)
{
    const struct kernel *k = d->kernel;
    for (int s = 0; s < k->count; s++) {
        const struct stage *stage = k->stages + s;
        const struct sweep *w = d->sweeps + s;
        int64_t lanes = d->across ? w->n : n;
        if (stage->begin)
            stage->begin(lanes, data);
        if (!empty)
            reduction_pass(d, w, d->across ? &stage->across : &stage->along, lanes, data);
        if (!stage->begin)
            continue;
        stage->finish(lanes, d->across, data);
        if (d->across)
            stage->section.run(1, 1, data, step);
        else
            nest_run(k, &stage->section, 1, n, data, step, step, 1, d->buffer);
    }
}

/* Which axes rows and vectors are of, in one stage. */
static inline void reduction_sweep(const struct reduction *d, const struct stage *stage,
                                   struct sweep *w)
{
    int total = d->kernel->total;
    const int64_t *inner = d->steps + (d->rank - 1) * total;
    int64_t length = d->lengths[d->rank - 1], parts = 1;
    w->rest = 0;
    w->rank = d->rank - 1;
    if (!d->across) {
        w->rows = length;
    } else if (stage->parts && length >= 2 * stage->parts) {
        parts = w->n = stage->parts;
        w->rows = length / parts;
        w->rest = length % parts;
    } else {
        w->n = length;
        w->rank--;
        w->rows = d->lengths[w->rank];
        inner -= total;
    }
    for (int a = 0; a < total; a++)
        w->row_step[a] = parts * inner[a];
    w->plain = nest_plain(d->kernel, d->across ? &stage->across : &stage->along, d->step);
}

/* 1 if a reduced axis is empty that must not be. */
static inline int nest_reduction(const struct kernel *k, char *const *data, const int64_t *shape,
                                 const int64_t *strides, char *buffer)
{
    int total = k->total, most = k->rank + 2;
    int64_t lengths[most], steps[most * total], index[most], row_steps[k->count * total];
    int64_t reduced_lengths[most], reduced_steps[most * total], reduced_index[most];
    struct sweep sweeps[k->count];
    int rank = nest_axes(k, 0, shape, strides, lengths, steps);
    int reduced = nest_axes(k, 1, shape, strides, reduced_lengths, reduced_steps);
    int empty = reduced < 0;
    if (rank < 0)
        return 0;
    if (empty && k->nonempty)
        return 1;
    rank = nest_pad(total, rank, 1, lengths, steps);
    reduced = nest_pad(total, empty ? 0 : reduced, 2, reduced_lengths, reduced_steps);
    const int64_t *step = steps + (rank - 1) * total;
    const int64_t *inner = reduced_steps + (reduced - 1) * total;
    int64_t length = reduced_lengths[reduced - 1], beside = lengths[rank - 1];
    int across = beside == 1 || (nest_weight(total, inner) <= nest_weight(total, step) &&
                                 (length >= 16 || length >= beside));
    struct reduction d = {k, across, reduced, reduced_lengths, reduced_steps, reduced_index,
                          across ? inner : step, sweeps, buffer};
    for (int s = 0; s < k->count; s++) {
        sweeps[s].row_step = row_steps + s * total;
        reduction_sweep(&d, k->stages + s, sweeps + s);
    }
    char *at[total], *here[total];
    memcpy(at, data, (size_t)k->temporaries * sizeof *at);
    for (int a = k->temporaries; a < total; a++)
        at[a] = buffer + k->temporaries * BLOCK * 8 + (a - k->temporaries) * LANES * 8;
    memset(index, 0, sizeof index);
    int64_t width = across ? 1 : LANES;
    do {
        for (int64_t i = 0; i < beside; i += width) {
            int64_t n = beside - i < width ? beside - i : width;
            for (int a = 0; a < total; a++)
                here[a] = at[a] + i * step[a];
            reduction_stages(&d, n, here, step, empty);
        }
    } while (nest_next(total, rank - 1, lengths, steps, index, at));
    return 0;
}

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC pop_options
#endif
