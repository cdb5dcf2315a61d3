/* Ops on the arrays of sparse matrices (sparse.h): products, sums, transposes, places.

   Patterns come from ops that make them canonical, or were checked where they came in; what is checked
   here are pointers, of which lengths of loops are read, and lengths. What does not fit is declined, and
   Python says what is wrong. */
#ifndef SYMCOMP_CALLS_SPARSE_H
#define SYMCOMP_CALLS_SPARSE_H

#include "../thread_pool.h"
#include "../sparse.h"
#include "pools.h"

typedef enum {
    SPARSE_DOT, SPARSE_USMM, SPARSE_SAMPLED, SPARSE_PRODUCT, SPARSE_PRODUCT_AT, SPARSE_COMBINE,
    SPARSE_TRANSPOSE, SPARSE_LOOKUP, SPARSE_LOOKUP_PAIRS, SPARSE_GATHER, SPARSE_SCATTER,
    SPARSE_SCATTER_ADD, SPARSE_ROWS, SPARSE_POINTERS, SPARSE_LARGEST, SPARSE_SEGMENTS,
    SPARSE_DROP_ZEROS, SPARSE_TAKE, SPARSE_CANONICAL, SPARSE_SAME_LENGTH
} SparseWhat;

typedef struct {
    int what, kind, transposed, threads;
} SparseSpec;

typedef struct {
    Place data, indices, indptr;
    int64_t rows, stored;
    int has_data;
} SparsePlace;

typedef struct {
    const IndexLoops *loops;
    const ValueLoops *values;
    SparsePlace x, y;
    Place more[4], z[3], count, counts, spare[2];
    int64_t columns, n;
    int64_t steps[2];
    int itemsize, kind, transposed, threads, has_base, is_vector;
} SparseCall;

enum { MOST_SPARSE_INPUTS = 10 };

/* What a plan function collects. */
typedef struct {
    Planner *p;
    const SparseSpec *spec;
    SparseCall call;
    const Operand *reads[MOST_SPARSE_INPUTS + 4];
    int n_reads, index_type, type;
} SparsePlan;

static const IndexLoops *index_loops_of(int type)
{
    return type == NPY_INT32 ? &index_loops_i32 : type == NPY_INT64 ? &index_loops_i64 : NULL;
}

#define LOOPS_OF(VALUE) (is_wide ? &value_loops_##VALUE##_i64 : &value_loops_##VALUE##_i32)

static const ValueLoops *value_loops_of(int type, int index_type)
{
    const int is_wide = index_type == NPY_INT64;
    switch (type) {
    case NPY_FLOAT32: return LOOPS_OF(f32);
    case NPY_FLOAT64: return LOOPS_OF(f64);
    case NPY_INT32: return LOOPS_OF(int32);
    case NPY_INT64: return LOOPS_OF(int64);
    case NPY_COMPLEX64: return LOOPS_OF(c64);
    case NPY_COMPLEX128: return LOOPS_OF(c128);
    default: return NULL;
    }
}

/* Numbers have one of NumPy's types of their length; that of NPY_LONG or NPY_LONGLONG is NPY_INT64. */
static int known_type(const Operand *x)
{
    if (PyTypeNum_ISSIGNED(x->type) && PyTypeNum_ISINTEGER(x->type))
        return x->itemsize == 8 ? NPY_INT64 : x->itemsize == 4 ? NPY_INT32 : x->type;
    return x->type;
}

/* ---- reading operands */

/* An operand in C order; NULL: it is none. */
static Operand *read_sparse(SparsePlan *s, int input, int ndim)
{
    Operand *x = input_of(s->p, input);
    if (!is_plain(x) || x->ndim != ndim)
        return NULL;
    x = in_c_order(s->p, x);
    if (x != NULL)
        s->reads[s->n_reads++] = x;
    return x;
}

/* A vector of indices, of one dtype with the others. */
static Operand *read_indices(SparsePlan *s, int input)
{
    Operand *x = read_sparse(s, input, 1);
    if (x == NULL)
        return NULL;
    if (s->index_type < 0) {
        s->index_type = known_type(x);
        s->call.loops = index_loops_of(s->index_type);
    }
    return s->call.loops != NULL && known_type(x) == s->index_type ? x : NULL;
}

/* Entries or a dense factor, of one dtype with the others. */
static Operand *read_values(SparsePlan *s, int input, int ndim)
{
    Operand *x = read_sparse(s, input, ndim);
    if (x == NULL)
        return NULL;
    if (s->type < 0) {
        s->type = known_type(x);
        s->call.itemsize = x->itemsize;
    }
    return known_type(x) == s->type ? x : NULL;
}

/* The arrays of a matrix from input ``at`` on; without entries if ``has_data`` is 0. 0: they do not fit. */
static int read_matrix(SparsePlan *s, int at, int has_data, SparsePlace *found)
{
    const Operand *data = NULL, *indices, *indptr;
    if (has_data && (data = read_values(s, at++, 1)) == NULL)
        return 0;
    indices = read_indices(s, at);
    indptr = indices == NULL ? NULL : read_indices(s, at + 1);
    if (indptr == NULL || indptr->size < 1 || (data != NULL && data->size != indices->size))
        return 0;
    found->has_data = has_data;
    if (has_data)
        found->data = placed(data);
    found->indices = placed(indices);
    found->indptr = placed(indptr);
    found->rows = indptr->size - 1;
    found->stored = indices->size;
    return 1;
}

/* A number of type int64; NULL: it is none. */
static Operand *read_scalar(SparsePlan *s, int input)
{
    Operand *x = input_of(s->p, input);
    if (!is_number(x))
        return NULL;
    s->reads[s->n_reads++] = x;
    return x;
}

static int read_loops(SparsePlan *s)
{
    s->call.values = value_loops_of(s->type, s->index_type);
    return s->call.values != NULL;
}

/* ---- running */

static int64_t index_width(const SparseCall *c)
{
    return c->loops == &index_loops_i32 ? 4 : 8;
}

static int sparse_of(const Frame *frame, const SparseCall *c, const SparsePlace *place,
                     int64_t columns, Compressed *found)
{
    found->data = place->has_data ? data_at(frame, &place->data) : NULL;
    found->indices = data_at(frame, &place->indices);
    found->indptr = data_at(frame, &place->indptr);
    found->rows = place->rows;
    found->columns = columns;
    return c->loops->pointers_fit(found->indptr, place->rows, place->stored);
}

static int no_memory_in(Frame *frame)
{
    take_gil(frame->runner);
    PyErr_SetString(PyExc_MemoryError, "no memory for a sparse matrix");
    return RAISED;
}

/* Do all rows, in parts that threads share. */
static int share_rows(Frame *frame, SparseWork *w, const SparseCall *c, rows_function *run)
{
    const int threads = c->threads;
    w->run = run;
    w->row_at = c->loops->row_at;
    w->itemsize = c->itemsize;
    w->parts = threads > 1 ? PARTS_OF_POOLS : 1;
    w->memory = NULL;
    if (w->bytes > 0) {
        w->bytes = (w->bytes + 127) & ~(int64_t)63;
        w->memory = (char *)calloc((size_t)threads, (size_t)w->bytes);
        if (w->memory == NULL)
            return no_memory_in(frame);
    }
    share(do_sparse_part, w, w->parts, threads);
    free(w->memory);
    return DONE;
}

static int64_t number_at(const Frame *frame, const Place *place)
{
    return *(const int64_t *)data_at(frame, place);
}

static int run_sparse_dot(const void *params, Frame *frame)
{
    const SparseCall *c = (const SparseCall *)params;
    SparseWork w = {0};
    if (!sparse_of(frame, c, &c->x, c->n, &w.x) || number_at(frame, &c->more[1]) != c->n)
        return DECLINED;
    w.dense = data_at(frame, &c->more[0]);
    w.z = data_at(frame, &c->z[0]);
    w.columns = c->columns;
    if (c->has_base) {
        w.base = data_at(frame, &c->more[2]);
        w.alpha = data_at(frame, &c->more[3]);
    }
    if (!c->transposed)
        return share_rows(frame, &w, c, c->values->dot);
    memset(w.z, 0, (size_t)(c->n * c->columns * c->itemsize));
    w.run = c->values->dot_transposed;
    w.parts = c->columns < 8 * c->threads ? 1 : c->threads;
    share(do_sparse_part, &w, w.parts, (int)w.parts);
    return DONE;
}

static int run_sampled(const void *params, Frame *frame)
{
    const SparseCall *c = (const SparseCall *)params;
    SparseWork w = {0};
    if (!sparse_of(frame, c, &c->x, c->n, &w.x) ||
        !c->loops->indices_fit(w.x.indices, c->x.stored, c->n))
        return DECLINED;
    w.dense = data_at(frame, &c->more[0]);
    w.other = data_at(frame, &c->more[1]);
    w.z = data_at(frame, &c->z[0]);
    w.columns = c->columns;
    return share_rows(frame, &w, c,
                      c->is_vector ? c->values->sampled_vectors : c->values->sampled);
}

/* Both factors of a product; 0: they do not fit. The columns of the second are the last number. */
static int factors_of(const Frame *frame, const SparseCall *c, SparseWork *w)
{
    return sparse_of(frame, c, &c->x, c->y.rows, &w->x) && number_at(frame, &c->more[0]) == c->y.rows &&
           sparse_of(frame, c, &c->y, number_at(frame, &c->more[1]), &w->y) && w->y.columns >= 0;
}

/* Write the number of entries of all rows. */
static int count_entries(Frame *frame, const SparseCall *c)
{
    const int64_t *counts = (const int64_t *)data_at(frame, &c->counts);
    int64_t i, total = 0;
    for (i = 0; i < c->x.rows; i++)
        total += counts[i];
    *(int64_t *)data_at(frame, &c->count) = total;
    return c->loops == &index_loops_i32 && total > INT32_MAX ? DECLINED : DONE;
}

static int run_count_products(const void *params, Frame *frame)
{
    const SparseCall *c = (const SparseCall *)params;
    SparseWork w = {0};
    int status;
    if (!factors_of(frame, c, &w))
        return DECLINED;
    w.counts = data_at(frame, &c->counts);
    w.bytes = w.y.columns * index_width(c);
    status = share_rows(frame, &w, c, c->loops->count_products);
    return status == DONE ? count_entries(frame, c) : status;
}

static int run_multiply(const void *params, Frame *frame)
{
    const SparseCall *c = (const SparseCall *)params;
    SparseWork w = {0};
    if (!factors_of(frame, c, &w))
        return DECLINED;
    w.z = data_at(frame, &c->z[0]);
    w.z_indices = data_at(frame, &c->z[1]);
    w.z_indptr = data_at(frame, &c->z[2]);
    c->loops->sum_counts((const int64_t *)data_at(frame, &c->counts), c->x.rows, w.z_indptr);
    w.bytes = w.y.columns * (2 * index_width(c) + c->itemsize);
    return share_rows(frame, &w, c, c->values->multiply);
}

static int run_multiply_at(const void *params, Frame *frame)
{
    const SparseCall *c = (const SparseCall *)params;
    SparseWork w = {0};
    if (!factors_of(frame, c, &w))
        return DECLINED;
    w.z = data_at(frame, &c->z[0]);
    w.z_indices = data_at(frame, &c->more[2]);
    w.z_indptr = data_at(frame, &c->more[3]);
    if (!c->loops->pointers_fit(w.z_indptr, c->x.rows, c->n) ||
        !c->loops->indices_fit(w.z_indices, c->n, w.y.columns))
        return DECLINED;
    w.bytes = w.y.columns * (int64_t)sizeof(int64_t);
    return share_rows(frame, &w, c, c->values->multiply_at);
}

static int run_combine(const void *params, Frame *frame)
{
    const SparseCall *c = (const SparseCall *)params;
    SparseWork w = {0};
    int status;
    if (!sparse_of(frame, c, &c->x, 0, &w.x) || !sparse_of(frame, c, &c->y, 0, &w.y))
        return DECLINED;
    w.z = data_at(frame, &c->spare[0]);
    w.z_indices = data_at(frame, &c->spare[1]);
    w.counts = data_at(frame, &c->counts);
    status = share_rows(frame, &w, c, c->values->combine[c->kind]);
    return status == DONE ? count_entries(frame, c) : status;
}

static int run_pack(const void *params, Frame *frame)
{
    const SparseCall *c = (const SparseCall *)params;
    SparseWork w = {0};
    if (!sparse_of(frame, c, &c->x, 0, &w.x) || !sparse_of(frame, c, &c->y, 0, &w.y))
        return DECLINED;
    w.z = data_at(frame, &c->z[0]);
    w.z_indices = data_at(frame, &c->z[1]);
    w.z_indptr = data_at(frame, &c->z[2]);
    w.dense = data_at(frame, &c->spare[0]);
    w.other = data_at(frame, &c->spare[1]);
    c->loops->sum_counts((const int64_t *)data_at(frame, &c->counts), c->x.rows, w.z_indptr);
    return share_rows(frame, &w, c, c->loops->pack);
}

static int run_transpose_sparse(const void *params, Frame *frame)
{
    const SparseCall *c = (const SparseCall *)params;
    Compressed x;
    if (!sparse_of(frame, c, &c->x, c->n, &x) ||
        !c->loops->indices_fit(x.indices, c->x.stored, c->n))
        return DECLINED;
    c->loops->transpose(&x, c->itemsize, data_at(frame, &c->z[0]), data_at(frame, &c->z[1]),
                        data_at(frame, &c->z[2]));
    return DONE;
}

static int run_look_up(const void *params, Frame *frame)
{
    const SparseCall *c = (const SparseCall *)params;
    SparseWork w = {0};
    if (!sparse_of(frame, c, &c->x, 0, &w.x) || !sparse_of(frame, c, &c->y, 0, &w.y))
        return DECLINED;
    w.z = data_at(frame, &c->z[0]);
    return share_rows(frame, &w, c, c->loops->look_up);
}

static int run_look_up_pairs(const void *params, Frame *frame)
{
    const SparseCall *c = (const SparseCall *)params;
    const char *major = data_at(frame, &c->more[0]);
    Compressed x;
    if (!sparse_of(frame, c, &c->x, 0, &x) || !c->loops->indices_fit(major, c->n, x.rows))
        return DECLINED;
    c->loops->look_up_pairs(&x, major, data_at(frame, &c->more[1]), c->n, c->itemsize,
                            data_at(frame, &c->z[0]));
    return DONE;
}

static int run_gather_sparse(const void *params, Frame *frame)
{
    const SparseCall *c = (const SparseCall *)params;
    Compressed x;
    if (!sparse_of(frame, c, &c->x, c->n, &x) ||
        !c->loops->indices_fit(x.indices, c->x.stored, c->n))
        return DECLINED;
    c->loops->gather(&x, data_at(frame, &c->more[0]), c->steps, c->itemsize,
                     data_at(frame, &c->z[0]));
    return DONE;
}

static int run_scatter_sparse(const void *params, Frame *frame)
{
    const SparseCall *c = (const SparseCall *)params;
    char *z = data_at(frame, &c->z[0]);
    const size_t bytes = (size_t)(c->x.rows * c->n * c->itemsize);
    Compressed x;
    if (!sparse_of(frame, c, &c->x, c->n, &x) ||
        !c->loops->indices_fit(x.indices, c->x.stored, c->n))
        return DECLINED;
    if (!c->has_base) {
        memset(z, 0, bytes);
        c->loops->scatter(&x, c->itemsize, z);
    } else {
        if (number_at(frame, &c->more[1]) != c->n)
            return DECLINED;
        memcpy(z, data_at(frame, &c->more[0]), bytes);
        c->values->scatter_add(&x, z);
    }
    return DONE;
}

static int run_number_rows(const void *params, Frame *frame)
{
    const SparseCall *c = (const SparseCall *)params;
    const char *indptr = data_at(frame, &c->x.indptr);
    if (!c->loops->pointers_fit(indptr, c->x.rows, c->n))
        return DECLINED;
    c->loops->number_rows(indptr, c->x.rows, data_at(frame, &c->z[0]));
    return DONE;
}

static int run_count_rows(const void *params, Frame *frame)
{
    const SparseCall *c = (const SparseCall *)params;
    return c->loops->count_rows(data_at(frame, &c->x.indices), c->x.stored, c->n,
                                data_at(frame, &c->z[0]))
               ? DONE
               : DECLINED;
}

static int run_largest(const void *params, Frame *frame)
{
    const SparseCall *c = (const SparseCall *)params;
    *(int64_t *)data_at(frame, &c->z[0]) =
        c->loops->largest(data_at(frame, &c->x.indices), c->x.stored);
    return DONE;
}

static int run_segment_rows(const void *params, Frame *frame)
{
    const SparseCall *c = (const SparseCall *)params;
    SparseWork w = {0};
    w.x.indptr = data_at(frame, &c->x.indptr);
    w.x.rows = c->x.rows;
    /* There may be rows after the last segment. */
    if (!c->loops->pointers_fit(w.x.indptr, c->x.rows, c->loops->row_at(w.x.indptr, c->x.rows, -1) -
                                                           c->x.rows) ||
        c->loops->row_at(w.x.indptr, c->x.rows, -1) - c->x.rows > c->n)
        return DECLINED;
    w.dense = data_at(frame, &c->more[0]);
    w.z = data_at(frame, &c->z[0]);
    w.columns = c->columns;
    return share_rows(frame, &w, c, c->values->segments[c->kind]);
}

static int run_count_nonzero_entries(const void *params, Frame *frame)
{
    const SparseCall *c = (const SparseCall *)params;
    Compressed x;
    if (!sparse_of(frame, c, &c->x, 0, &x))
        return DECLINED;
    *(int64_t *)data_at(frame, &c->count) =
        c->values->keep_nonzero(&x, NULL, NULL, data_at(frame, &c->counts));
    return DONE;
}

static int run_keep_nonzero(const void *params, Frame *frame)
{
    const SparseCall *c = (const SparseCall *)params;
    const int64_t width = index_width(c);
    Compressed x;
    if (!sparse_of(frame, c, &c->x, 0, &x))
        return DECLINED;
    c->values->keep_nonzero(&x, data_at(frame, &c->z[0]), data_at(frame, &c->z[1]), NULL);
    memcpy(data_at(frame, &c->z[2]), data_at(frame, &c->counts),
           (size_t)((c->x.rows + 1) * width));
    return DONE;
}

static int run_count_taken(const void *params, Frame *frame)
{
    const SparseCall *c = (const SparseCall *)params;
    int64_t count;
    Compressed x;
    if (!sparse_of(frame, c, &c->x, 0, &x))
        return DECLINED;
    count = c->loops->count_taken(&x, data_at(frame, &c->more[0]), c->n, data_at(frame, &c->counts));
    *(int64_t *)data_at(frame, &c->count) = count;
    return count < 0 || (c->loops == &index_loops_i32 && count > INT32_MAX) ? DECLINED : DONE;
}

static int run_take_rows(const void *params, Frame *frame)
{
    const SparseCall *c = (const SparseCall *)params;
    const int64_t width = index_width(c);
    char *indptr = data_at(frame, &c->z[2]);
    Compressed x;
    if (!sparse_of(frame, c, &c->x, 0, &x))
        return DECLINED;
    memcpy(indptr, data_at(frame, &c->counts), (size_t)((c->n + 1) * width));
    c->loops->take_rows(&x, data_at(frame, &c->more[0]), c->n, c->itemsize,
                        data_at(frame, &c->z[0]), data_at(frame, &c->z[1]), indptr);
    return DONE;
}

static int run_check_length(const void *params, Frame *frame)
{
    const SparseCall *c = (const SparseCall *)params;
    return number_at(frame, &c->more[0]) == c->n ? DONE : DECLINED;
}

static int run_check_canonical(const void *params, Frame *frame)
{
    const SparseCall *c = (const SparseCall *)params;
    Compressed x;
    if (!sparse_of(frame, c, &c->x, c->n, &x) || !c->loops->ascend(&x))
        return DECLINED;
    if (c->has_base && (number_at(frame, &c->more[0]) != x.rows ||
                        !c->loops->indices_fit(x.indices, c->x.stored,
                                               number_at(frame, &c->more[1]))))
        return DECLINED;
    return DONE;
}

#endif
