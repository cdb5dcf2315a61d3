/* Pools of images with up to three spatial axes: the largest of each window, sums and means, and their
   adjoints. Threads share images. */
#ifndef SYMCOMP_POOLS_H
#define SYMCOMP_POOLS_H

#include "convolutions.h"

enum {
    /* Where windows have fewer elements in all, threads cost more than they bring. */
    ELEMENTS_WORTH_SHARING = 1 << 19,
    /* Into at most this many parts is divided what they share. */
    PARTS_OF_POOLS = 64
};

enum { POOL_MAX = 0, POOL_SUM = 1, POOL_SUM_ADJOINT = 2, POOL_PLACE = 3 };

typedef struct {
    int what, ndim, spatial, type, itemsize, threads, partial;
    int divided;            /* sums: by nothing, by padded windows, or by what lies in the image */
    int window[3], strides[3], padding[3];
} PoolSpec;

typedef struct {
    Windows windows;
    int what, type;
    int64_t images, parts, elements, places;
    double *factors;        /* of sums; NULL: none */
    char *x, *z;
    int64_t *where;
    int failed;
} Pooling;

typedef struct {
    Pooling pool;
    Place x, z, where;
    int threads;
} PoolCall;

static void pool_image(Pooling *p, int64_t i)
{
    const int back = p->what >= POOL_SUM_ADJOINT, single = p->type == NPY_FLOAT32;
    const int64_t size = single ? 4 : 8;
    char *x = p->x + i * (back ? p->places : p->elements) * size;
    char *z = p->z + i * (back ? p->elements : p->places) * size;
    int64_t *where = p->where == NULL ? NULL : p->where + i * p->places;
    switch (p->what) {
    case POOL_MAX:
        single ? largest_32(&p->windows, (float *)x, (float *)z, where)
               : largest_64(&p->windows, (double *)x, (double *)z, where);
        return;
    case POOL_SUM:
        single ? sums_32(&p->windows, p->factors, (float *)x, (float *)z)
               : sums_64(&p->windows, p->factors, (double *)x, (double *)z);
        return;
    case POOL_SUM_ADJOINT:
        single ? spread_32(&p->windows, p->factors, (float *)x, (float *)z)
               : spread_64(&p->windows, p->factors, (double *)x, (double *)z);
        return;
    default:
        if (single ? to_positions_32((float *)x, where, p->places, (float *)z, p->elements)
                   : to_positions_64((double *)x, where, p->places, (double *)z, p->elements))
            p->failed = 1;
    }
}

/* Some images. */
static void pool_part(void *work, int64_t part, int worker)
{
    Pooling *p = (Pooling *)work;
    int64_t i = p->images * part / p->parts;
    const int64_t end = p->images * (part + 1) / p->parts;
    (void)worker;
    for (; i < end; i++)
        pool_image(p, i);
}

static int run_pool(const void *params, Frame *frame)
{
    const PoolCall *c = (const PoolCall *)params;
    Pooling pool = c->pool;
    pool.x = data_at(frame, &c->x);
    pool.z = data_at(frame, &c->z);
    if (pool.what == POOL_MAX || pool.what == POOL_PLACE)
        pool.where = (int64_t *)data_at(frame, &c->where);
    share(pool_part, &pool, pool.parts, c->threads);
    return pool.failed ? DECLINED : DONE;
}

/* How many windows there are along an axis. */
static int64_t windows_along(const PoolSpec *spec, int axis, int64_t n)
{
    const int64_t k = spec->window[axis], s = spec->strides[axis];
    if (!spec->partial) {
        n += 2 * spec->padding[axis] - k;
        return n >= 0 ? n / s + 1 : 0;
    }
    if (s >= k)
        return (n - 1) / s + 1;
    n = n - 1 - k + s;
    return (n > 0 ? n / s : 0) + 1;
}

/* The windows of images as those of ``x``, or of the lengths that are asked for; 0 if there is none. */
static int measure_pool(const PoolSpec *spec, const Operand *x, const int64_t *asked, Pooling *p)
{
    const int lead = spec->ndim - spec->spatial;
    Windows *w = &p->windows;
    int axis;
    for (axis = 0; axis < SPATIAL; axis++) {
        const int own = axis - (SPATIAL - spec->spatial);
        w->dilation[axis] = w->lengths[axis] = w->kernel[axis] = w->strides[axis] = 1;
        w->counts[axis] = 1;
        w->before[axis] = 0;
        if (own < 0)
            continue;
        w->lengths[axis] = asked == NULL ? x->shape[lead + own] : asked[own];
        w->kernel[axis] = spec->window[own];
        w->strides[axis] = spec->strides[own];
        w->before[axis] = spec->padding[own];
        w->counts[axis] = windows_along(spec, own, w->lengths[axis]);
        if (w->counts[axis] < 1 || w->lengths[axis] < 1 || w->lengths[axis] > INT32_MAX)
            return 0;
        /* Elements beyond the image are left out. */
        if (spec->partial && w->kernel[axis] > w->lengths[axis])
            w->kernel[axis] = w->lengths[axis];
    }
    p->elements = product(w->lengths);
    p->places = product(w->counts);
    p->images = 1;
    for (axis = 0; axis < lead; axis++)
        p->images *= x->shape[axis];
    /* Without images nothing says that their lengths are possible. */
    return p->images > 0;
}

/* One over the number of elements of each window. */
static void divide_windows(const PoolSpec *spec, Pooling *p)
{
    const Windows *w = &p->windows;
    int64_t place, at[SPATIAL];
    int axis;
    for (place = 0; place < p->places; place++) {
        int64_t rest = place;
        for (axis = SPATIAL - 1; axis >= 0; axis--) {
            at[axis] = rest % w->counts[axis];
            rest /= w->counts[axis];
        }
        p->factors[place] = 1.0;
        for (axis = 0; axis < SPATIAL; axis++) {
            const int64_t before = w->before[axis], n = w->lengths[axis];
            int64_t first = at[axis] * w->strides[axis], last = first + w->kernel[axis];
            if (last > n + 2 * before)
                last = n + 2 * before;
            if (spec->divided == 2) {
                first = first > before ? first : before;
                last = last < n + before ? last : n + before;
            }
            p->factors[place] /= (double)(last - first);
        }
    }
}

/* The shape of x, but for its spatial lengths. */
static void pooled_shape(const PoolSpec *spec, const Operand *x, const int64_t *lengths,
                         int64_t *shape)
{
    const int lead = spec->ndim - spec->spatial;
    int axis;
    for (axis = 0; axis < spec->ndim; axis++)
        shape[axis] =
            axis < lead ? x->shape[axis] : lengths[axis - lead + SPATIAL - spec->spatial];
}

static int plan_pool(Planner *p, const void *given)
{
    const PoolSpec *spec = (const PoolSpec *)given;
    const int lead = spec->ndim - spec->spatial, first = SPATIAL - spec->spatial;
    const int is_back = spec->what >= POOL_SUM_ADJOINT;
    Operand *x = input_of(p, 0), *z, *where = NULL;
    const Operand *reads[2], *writes[2];
    PoolCall ready;
    Pooling *pool = &ready.pool;
    int64_t asked[3] = {0, 0, 0}, shape[MOST_AXES], work;
    Call *call;
    int axis, status, n_reads = 1, n_writes = 1;
    memset(&ready, 0, sizeof(ready));
    if (!is_plain(x) || x->type != spec->type || x->ndim != spec->ndim)
        return DECLINED;
    if (is_back) {
        status = asked_lengths(p, spec->what == POOL_PLACE ? 2 : 1, spec->spatial, asked);
        if (status != DONE)
            return status;
    }
    if (spec->what == POOL_PLACE) {
        where = input_of(p, 1);
        if (!is_plain(where) || where->type != NPY_INT64 || where->ndim != x->ndim ||
            memcmp(where->shape, x->shape, (size_t)x->ndim * sizeof(int64_t)))
            return DECLINED;
        pool->elements = pool->places = pool->images = 1;
        for (axis = 0; axis < x->ndim; axis++) {
            if (axis < lead) {
                pool->images *= x->shape[axis];
            } else {
                pool->windows.lengths[axis - lead + first] = asked[axis - lead];
                pool->elements *= asked[axis - lead];
                pool->places *= x->shape[axis];
            }
        }
        if (pool->images == 0)
            return DECLINED;
        work = pool->images * (pool->places + pool->elements);
        pooled_shape(spec, x, pool->windows.lengths, shape);
    } else {
        if (!measure_pool(spec, x, is_back ? asked : NULL, pool))
            return DECLINED;
        for (axis = 0; axis < (is_back ? spec->spatial : 0); axis++)
            if (x->shape[lead + axis] != pool->windows.counts[first + axis])
                return DECLINED;
        work = pool->images * pool->places * product(pool->windows.kernel);
        pooled_shape(spec, x, is_back ? pool->windows.lengths : pool->windows.counts, shape);
    }
    reads[0] = in_c_order(p, x);
    if (where != NULL)
        reads[n_reads++] = where = in_c_order(p, where);
    z = new_output_apart(p, 0, spec->type, spec->itemsize, spec->ndim, shape, NULL);
    writes[0] = z;
    if (spec->what == POOL_MAX)
        writes[n_writes++] = where = new_output_apart(p, 1, NPY_INT64, 8, spec->ndim, shape, NULL);
    if (reads[0] == NULL || z == NULL || (spec->what % POOL_PLACE == 0 && where == NULL))
        return no_memory();
    pool->what = spec->what;
    pool->type = spec->type;
    pool->parts = pool->images < PARTS_OF_POOLS ? pool->images : PARTS_OF_POOLS;
    ready.threads = work < ELEMENTS_WORTH_SHARING ? 1 : spec->threads;
    if (spec->divided && spec->what != POOL_PLACE && spec->what != POOL_MAX) {
        pool->factors =
            (double *)pool_new(&p->pool, (size_t)pool->places * sizeof(double));
        if (pool->factors == NULL)
            return no_memory();
        divide_windows(spec, pool);
    }
    ready.x = placed(reads[0]);
    ready.z = placed(z);
    if (where != NULL)
        ready.where = placed(where);
    call = new_call(p, run_pool, "pool", sizeof(PoolCall));
    if (call == NULL)
        return no_memory();
    *(PoolCall *)call->params = ready;
    call->work = (double)work;
    call->is_independent = 1;
    call->uses_threads = ready.threads > 1;
    status = set_operands(p, call, n_reads, reads, n_writes, writes);
    if (status == DONE)
        status = give_output(p, 0, z);
    if (status == DONE && spec->what == POOL_MAX)
        status = give_output(p, 1, where);
    return status;
}

#endif
