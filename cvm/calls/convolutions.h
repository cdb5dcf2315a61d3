/* Convolutions of images with up to three spatial axes: windows laid out as columns of matrices, some
   images at a time, and products by BLAS. Threads share images; the results are those of one thread,
   bit for bit. */
#ifndef SYMCOMP_CONVOLUTIONS_H
#define SYMCOMP_CONVOLUTIONS_H

#include "../thread_pool.h"
#include "../loops/windows.h"
#include "products.h"

enum {
    /* The columns of the matrices of windows: few images of many windows, or many of few. */
    COLUMNS_AT_A_TIME = 256,
    /* Gradients of kernels are sums over images: at most MOST_SUMS partial sums, in at most
       MOST_BYTES_OF_SUMS, whatever the number of threads. */
    MOST_SUMS = 8,
    MOST_BYTES_OF_SUMS = 1 << 22,
    /* With fewer products of two numbers threads cost more than they bring. */
    PRODUCTS_WORTH_SHARING = 1 << 21,
    FULL_OVERLAP = -1,
    HALF_OVERLAP = -2
};

enum { CONVOLVE = 0, CONVOLVE_INPUTS = 1, CONVOLVE_KERNELS = 2 };

typedef struct {
    int part, ndim, groups, type, itemsize, threads;
    int padding[6], strides[3], dilation[3];
} ConvolutionSpec;

/* One convolution, or adjoint of one, as the threads that share it know it. */
typedef struct {
    Windows windows;
    int part, groups, type, itemsize;
    int64_t images, outputs;
    int64_t together;       /* images whose windows are laid out side by side */
    int64_t blocks;         /* of this many images */
    int64_t chunks;         /* of blocks: parts that threads share */
    char *a, *b, *z;
    char *columns;          /* of each thread */
    char *results;
    char *sums;             /* of all chunks but the first */
    int64_t size_of_columns, size_of_results, size_of_sum;
    Factors once, more;     /* a product, and one that is added */
} Convolving;

typedef struct {
    Convolving c;
    Place a, b, z, memory;
    int threads;
    int64_t size;           /* of the memory for columns, results and sums */
} ConvolutionCall;

static void unfold_image(const Convolving *c, const char *image, char *columns, int64_t next)
{
    if (c->type == NPY_FLOAT32)
        unfold_32(&c->windows, (const float *)image, (float *)columns, next);
    else
        unfold_64(&c->windows, (const double *)image, (double *)columns, next);
}

static void fold_image(const Convolving *c, char *image, char *columns, int64_t next)
{
    if (c->type == NPY_FLOAT32)
        fold_32(&c->windows, (float *)image, (const float *)columns, next);
    else
        fold_64(&c->windows, (double *)image, (const double *)columns, next);
}

/* From images, each with ``outputs`` outputs of ``size`` bytes, to rows of one output of all images; or
   back. */
static void exchange_rows(char *rows, char *images, int64_t outputs, int64_t count, int64_t size,
                          int to_rows)
{
    int64_t o, i;
    for (o = 0; o < outputs; o++)
        for (i = 0; i < count; i++) {
            char *row = rows + (o * count + i) * size, *image = images + (i * outputs + o) * size;
            memcpy(to_rows ? row : image, to_rows ? image : row, (size_t)size);
        }
}

/* Some images, whose windows are laid out side by side. */
static void convolve_block(const Convolving *c, int64_t first, char *z, char *columns,
                           char *results)
{
    const Windows *w = &c->windows;
    const int64_t itemsize = c->itemsize;
    const int64_t left = c->images - first, count = c->together < left ? c->together : left;
    const int64_t places = product(w->counts), wide = places * count;
    const int64_t inner = w->channels / c->groups * product(w->kernel);
    const int64_t each = c->outputs / c->groups;
    const int64_t size = w->channels * product(w->lengths) * itemsize;
    const int64_t result_size = c->outputs * places * itemsize;
    Factors once = c->once, more = c->more;
    int64_t i, g;
    Matrix kernels, windows, gradient;
    if (c->part != CONVOLVE_INPUTS)
        for (i = 0; i < count; i++)
            unfold_image(c, c->a + (first + i) * size, columns + i * places * itemsize, wide);
    /* The results of one image lie as they should; those of several are exchanged. */
    if (count == 1)
        results = (c->part == CONVOLVE ? z : c->b) + first * result_size;
    else if (c->part != CONVOLVE)
        exchange_rows(results, c->b + first * result_size, c->outputs, count, places * itemsize, 1);
    for (g = 0; g < c->groups; g++) {
        set_matrix(&windows, columns + g * inner * wide * itemsize, inner, wide);
        set_matrix(&gradient, results + g * each * wide * itemsize, each, wide);
        if (c->part == CONVOLVE) {
            set_matrix(&kernels, c->b + g * each * inner * itemsize, each, inner);
            multiply(c->type, &kernels, &windows, gradient.data, &once);
        } else if (c->part == CONVOLVE_INPUTS) {
            set_matrix(&kernels, c->a + g * each * inner * itemsize, each, inner);
            turn(&kernels);
            multiply(c->type, &kernels, &gradient, windows.data, &once);
        } else {
            turn(&windows);
            multiply(c->type, &gradient, &windows, z + g * each * inner * itemsize, &more);
        }
    }
    if (c->part == CONVOLVE && count > 1)
        exchange_rows(results, z + first * result_size, c->outputs, count, places * itemsize, 0);
    else if (c->part == CONVOLVE_INPUTS)
        for (i = 0; i < count; i++)
            fold_image(c, z + (first + i) * size, columns + i * places * itemsize, wide);
}

/* Some blocks of images. */
static void convolve_chunk(void *work, int64_t chunk, int worker)
{
    const Convolving *c = (const Convolving *)work;
    int64_t block = c->blocks * chunk / c->chunks;
    const int64_t end = c->blocks * (chunk + 1) / c->chunks;
    char *z = c->z;
    if (c->part == CONVOLVE_KERNELS && chunk > 0) {
        z = c->sums + (chunk - 1) * c->size_of_sum;
        memset(z, 0, (size_t)c->size_of_sum);
    }
    for (; block < end; block++)
        convolve_block(c, block * c->together, z, c->columns + worker * c->size_of_columns,
                       c->results + worker * c->size_of_results);
}

/* The sums of all chunks, in their order. */
static void add_sums(const Convolving *c)
{
    int64_t chunk, i;
    for (chunk = 0; chunk < c->chunks - 1; chunk++) {
        const char *sum = c->sums + chunk * c->size_of_sum;
        if (c->type == NPY_FLOAT32)
            for (i = 0; i < c->size_of_sum / 4; i++)
                ((float *)c->z)[i] += ((const float *)sum)[i];
        else
            for (i = 0; i < c->size_of_sum / 8; i++)
                ((double *)c->z)[i] += ((const double *)sum)[i];
    }
}

static int run_convolution(const void *params, Frame *frame)
{
    const ConvolutionCall *k = (const ConvolutionCall *)params;
    Convolving c = k->c;
    c.columns = data_at(frame, &k->memory);
    c.a = data_at(frame, &k->a);
    c.b = data_at(frame, &k->b);
    c.z = data_at(frame, &k->z);
    c.results = c.columns + c.size_of_columns * k->threads;
    c.sums = c.results + c.size_of_results * k->threads;
    memset(c.z, 0, (size_t)c.size_of_sum);
    share(convolve_chunk, &c, c.chunks, k->threads);
    if (c.part == CONVOLVE_KERNELS)
        add_sums(&c);
    return DONE;
}

/* The lengths along an axis; a plane is a volume of one plane, a line one of one row. 0 if there is no
   window. */
static int measure_windows(const ConvolutionSpec *spec, const Operand *a, const Operand *b,
                           const int64_t *asked, int axis, Windows *w)
{
    const int own = axis - (SPATIAL - spec->ndim);
    int64_t reach, before, after;
    if (own < 0) {
        w->lengths[axis] = w->kernel[axis] = w->counts[axis] = w->strides[axis] = 1;
        w->dilation[axis] = 1;
        w->before[axis] = 0;
        return 1;
    }
    w->lengths[axis] = spec->part == CONVOLVE_INPUTS ? asked[own] : a->shape[2 + own];
    w->kernel[axis] = spec->part == CONVOLVE          ? b->shape[2 + own]
                      : spec->part == CONVOLVE_INPUTS ? a->shape[2 + own]
                                                      : asked[own];
    w->strides[axis] = spec->strides[own];
    w->dilation[axis] = spec->dilation[own];
    if (w->kernel[axis] > INT32_MAX || w->lengths[axis] > INT32_MAX)
        return 0;
    reach = (w->kernel[axis] - 1) * w->dilation[axis] + 1;
    before = spec->padding[2 * own];
    after = spec->padding[2 * own + 1];
    if (before == FULL_OVERLAP)
        before = after = reach - 1;
    else if (before == HALF_OVERLAP)
        before = after = reach / 2;
    w->before[axis] = before;
    if (w->kernel[axis] < 1 || w->lengths[axis] + before + after < reach)
        return 0;
    w->counts[axis] = (w->lengths[axis] + before + after - reach) / w->strides[axis] + 1;
    return 1;
}

/* Elements of the matrices of windows; their bytes fit an int64. */
static const double LARGEST_SIZE = 1e17;

/* Whether the second array has the lengths that it must have, and products are not too large for
   BLAS. */
static int fits_convolution(const ConvolutionSpec *spec, const Operand *a, const Operand *b,
                            const Convolving *c)
{
    const Windows *w = &c->windows;
    const double inner = (double)(w->channels / spec->groups) * product(w->kernel);
    const double wide = (double)product(w->counts) + COLUMNS_AT_A_TIME;
    int axis;
    if (inner * spec->groups * wide >= LARGEST_SIZE)
        return 0;
    if (spec->part == CONVOLVE) {
        if (b->shape[1] * spec->groups != w->channels)
            return 0;
    } else {
        if (b->shape[0] != c->images ||
            (spec->part == CONVOLVE_INPUTS && a->shape[0] != c->outputs))
            return 0;
        for (axis = 0; axis < spec->ndim; axis++)
            if (b->shape[2 + axis] != w->counts[axis + SPATIAL - spec->ndim])
                return 0;
    }
    return inner < INT32_MAX && c->outputs < INT32_MAX && wide < INT32_MAX;
}

/* How images are grouped, and the memory that takes. */
static void divide_images(const ConvolutionSpec *spec, ConvolutionCall *k)
{
    Convolving *c = &k->c;
    const int64_t places = product(c->windows.counts);
    const int64_t rows = c->windows.channels * product(c->windows.kernel);
    const double products = (double)(rows / c->groups) * c->outputs * places * c->images;
    k->threads = products >= PRODUCTS_WORTH_SHARING ? spec->threads : 1;
    c->together = COLUMNS_AT_A_TIME / places;
    c->together = c->together > c->images ? c->images : c->together < 1 ? 1 : c->together;
    c->blocks = c->chunks = (c->images + c->together - 1) / c->together;
    if (c->part == CONVOLVE_KERNELS) {
        int64_t sums = MOST_BYTES_OF_SUMS / (c->size_of_sum > 1 ? c->size_of_sum : 1);
        sums = sums > MOST_SUMS ? MOST_SUMS : sums < 1 ? 1 : sums;
        c->chunks = c->blocks < sums ? c->blocks : sums;
    }
    if (k->threads > c->chunks)
        k->threads = (int)c->chunks;
    c->size_of_columns = rows * places * c->together * c->itemsize;
    c->size_of_results = c->outputs * places * c->together * c->itemsize;
    k->size = (c->size_of_columns + c->size_of_results) * k->threads;
    if (c->part == CONVOLVE_KERNELS)
        k->size += c->size_of_sum * (c->chunks - 1);
}

/* The lengths that an adjoint is asked for, which are inputs from ``first`` on. */
static int asked_lengths(Planner *p, int first, int n, int64_t *found)
{
    int i, status;
    for (i = 0; i < n; i++) {
        status = guarded_number(p, input_of(p, first + i), &found[i]);
        if (status != DONE)
            return status;
        if (found[i] < 0)
            return DECLINED;
    }
    return DONE;
}

static int plan_convolution(Planner *p, const void *given)
{
    const ConvolutionSpec *spec = (const ConvolutionSpec *)given;
    const int ndim = spec->ndim + 2, first = SPATIAL - spec->ndim;
    Operand *a = input_of(p, 0), *b = input_of(p, 1), *z;
    const Operand *reads[2], *writes[2];
    ConvolutionCall ready;
    Convolving *c = &ready.c;
    Windows *w = &c->windows;
    int64_t asked[3] = {0, 0, 0}, shape[5];
    Call *call;
    int axis, status;
    memset(&ready, 0, sizeof(ready));
    if (!is_plain(a) || !is_plain(b) || a->type != spec->type || b->type != spec->type ||
        a->ndim != ndim || b->ndim != ndim)
        return DECLINED;
    if (spec->part != CONVOLVE) {
        status = asked_lengths(p, 2, spec->ndim, asked);
        if (status != DONE)
            return status;
    }
    /* The arrays with images and channels, with kernels, and with spatial lengths. */
    c->images = (spec->part == CONVOLVE_INPUTS ? b : a)->shape[0];
    c->outputs = spec->part == CONVOLVE ? b->shape[0] : b->shape[1];
    w->channels = a->shape[1] * (spec->part == CONVOLVE_INPUTS ? spec->groups : 1);
    for (axis = 0; axis < SPATIAL; axis++)
        if (!measure_windows(spec, a, b, asked, axis, w))
            return DECLINED;
    if (w->channels % spec->groups || c->outputs % spec->groups || c->images == 0 ||
        w->channels == 0 || c->outputs == 0 || !fits_convolution(spec, a, b, c))
        return DECLINED;
    shape[0] = spec->part == CONVOLVE_KERNELS ? c->outputs : c->images;
    shape[1] = spec->part == CONVOLVE           ? c->outputs
               : spec->part == CONVOLVE_KERNELS ? w->channels / spec->groups
                                                : w->channels;
    for (axis = 0; axis < spec->ndim; axis++)
        shape[2 + axis] = spec->part == CONVOLVE ? w->counts[first + axis] : asked[axis];
    reads[0] = in_c_order(p, a);
    reads[1] = in_c_order(p, b);
    z = new_output_apart(p, 0, spec->type, spec->itemsize, ndim, shape, NULL);
    if (reads[0] == NULL || reads[1] == NULL || z == NULL)
        return no_memory();
    c->part = spec->part;
    c->groups = spec->groups;
    c->type = spec->type;
    c->itemsize = spec->itemsize;
    c->size_of_sum = z->size * z->itemsize;
    set_factors(&c->once, 1, 0, 0, 0);
    set_factors(&c->more, 1, 0, 1, 0);
    divide_images(spec, &ready);
    ready.a = placed(reads[0]);
    ready.b = placed(reads[1]);
    ready.z = placed(z);
    writes[0] = z;
    writes[1] = new_scratch(p, NPY_UINT8, 1, 1, &ready.size);
    call = new_call(p, run_convolution, "convolution", sizeof(ConvolutionCall));
    if (writes[1] == NULL || call == NULL)
        return no_memory();
    ready.memory = placed(writes[1]);
    *(ConvolutionCall *)call->params = ready;
    call->work = (double)(w->channels * product(w->kernel) / c->groups) * c->outputs *
                 product(w->counts) * c->images;
    call->nanoseconds = NANOSECONDS_OF_CALL + call->work * 0.01 * c->itemsize;
    call->is_independent = 1;
    call->uses_threads = ready.threads > 1;
    call->uses_blas = 1;
    status = set_operands(p, call, 2, reads, 2, writes);
    return status == DONE ? give_output(p, 0, z) : status;
}

#endif
