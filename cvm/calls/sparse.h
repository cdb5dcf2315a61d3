/* Ops on the arrays of sparse matrices (sparse.h): products, sums, transposes, places.

   Patterns mostly come from ops that make them canonical, or were checked as arguments. Pointers, lengths and
   the range of indices are checked here all the same, so that no memory is read outside of the arrays,
   whatever a program's inputs are. Operands that do not fit are declined, and Python raises the error. */
#ifndef SYMCOMP_CALLS_SPARSE_H
#define SYMCOMP_CALLS_SPARSE_H

#include "../thread_pool.h"
#include "../sparse/sparse.h"
#include "pools.h"

typedef enum {
    SPARSE_DOT, SPARSE_USMM, SPARSE_SAMPLED, SPARSE_PRODUCT, SPARSE_PRODUCT_AT, SPARSE_COMBINE,
    SPARSE_TRANSPOSE, SPARSE_LOOKUP, SPARSE_LOOKUP_PAIRS, SPARSE_GATHER, SPARSE_SCATTER,
    SPARSE_SCATTER_ADD, SPARSE_ROWS, SPARSE_POINTERS, SPARSE_LARGEST, SPARSE_SEGMENTS,
    SPARSE_DROP_ZEROS, SPARSE_TAKE, SPARSE_CANONICAL, SPARSE_SAME_LENGTH, SPARSE_CROP, SPARSE_JOIN,
    SPARSE_PUT, SPARSE_TRIPLETS, SPARSE_NONZERO, SPARSE_GATHER_FILL, SPARSE_BLOCK_DOT,
    SPARSE_SAMPLED_BLOCKS, SPARSE_BLOCKS_AS_ROWS, SPARSE_ROWS_AS_BLOCKS, SPARSE_IN_RANGE
} SparseWhat;

typedef struct {
    int what, kind, transposed, threads;
    int rows, columns;      /* of a block */
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
    Place memory;           /* while the call runs */
    int64_t bytes;          /* of it: where its second part begins; or of each thread */
    int64_t columns, n, stored;
    int64_t steps[2], lengths[2];
    int itemsize, kind, transposed, threads, has_base, is_vector, is_of_blocks;
} SparseCall;

enum { MOST_SPARSE_INPUTS = 10, MOST_SPARSE_WRITES = 6 };

/* The operands that a plan function collects. */
typedef struct {
    Planner *p;
    const SparseSpec *spec;
    SparseCall call;
    const Operand *reads[MOST_SPARSE_INPUTS + 4];
    Operand *also_written;  /* by the call that counts entries */
    Operand *memory;        /* of the next call, while it runs */
    int spare_type, spare_bytes;    /* of values that wait until their number is known; 0 bytes: there are none */
    int64_t bytes_of_thread;        /* of memory for each thread of the next call */
    int n_reads, index_type, type;
} SparsePlan;

static const IndexLoops *index_loops_of(int type)
{
    return type == NPY_INT32 ? &index_loops_i32 : type == NPY_INT64 ? &index_loops_i64 : NULL;
}

#if HAS_SPARSE_VECTORS
#define FAST_LOOPS_OF(VALUE) (HAS_AVX2 ? LOOPS_OF(VALUE##_avx2) : LOOPS_OF(VALUE))
#else
#define FAST_LOOPS_OF(VALUE) LOOPS_OF(VALUE)
#endif
#define LOOPS_OF(VALUE) (is_wide ? &value_loops_##VALUE##_i64 : &value_loops_##VALUE##_i32)

static const ValueLoops *value_loops_of(int type, int index_type)
{
    const int is_wide = index_type == NPY_INT64;
    switch (type) {
    case NPY_FLOAT32: return FAST_LOOPS_OF(f32);
    case NPY_FLOAT64: return FAST_LOOPS_OF(f64);
    case NPY_BOOL: return LOOPS_OF(bool);
    case NPY_INT8: return LOOPS_OF(int8);
    case NPY_UINT8: return LOOPS_OF(uint8);
    case NPY_INT16: return LOOPS_OF(int16);
    case NPY_UINT16: return LOOPS_OF(uint16);
    case NPY_INT32: return LOOPS_OF(int32);
    case NPY_UINT32: return LOOPS_OF(uint32);
    case NPY_UINT64: return LOOPS_OF(uint64);
    case NPY_INT64: return LOOPS_OF(int64);
    case NPY_COMPLEX64: return LOOPS_OF(c64);
    case NPY_COMPLEX128: return LOOPS_OF(c128);
    default: return NULL;
    }
}

/* Numbers have one of NumPy's types of their length; that of NPY_LONG or NPY_LONGLONG is NPY_INT64. */
static int known_type(const Operand *x)
{
    if (PyTypeNum_ISSIGNED(x->type))
        return x->itemsize == 8 ? NPY_INT64 : x->itemsize == 4 ? NPY_INT32 : x->type;
    if (PyTypeNum_ISUNSIGNED(x->type))
        return x->itemsize == 8 ? NPY_UINT64 : x->itemsize == 4 ? NPY_UINT32 : x->type;
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

/* The arrays of a matrix from input 0 on, whose entries may be blocks of block[0] rows and block[1] columns,
   (n, rows, columns). 0: they do not fit. */
static int read_entries(SparsePlan *s, SparsePlace *found, int64_t *block)
{
    const Operand *data = input_of(s->p, 0);
    const int ndim = data == NULL ? 0 : data->ndim;
    block[0] = block[1] = 1;
    if ((ndim != 1 && ndim != 3) || (data = read_values(s, 0, ndim)) == NULL ||
        !read_matrix(s, 1, 0, found) || data->shape[0] != found->stored)
        return 0;
    s->call.is_of_blocks = ndim == 3;
    if (ndim == 3)
        memcpy(block, data->shape + 1, 2 * sizeof(*block));
    found->has_data = 1;
    found->data = placed(data);
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

/* Read a number that is a length of a result: a guard looks whether it is the same in later runs. */
static int read_length(SparsePlan *s, Operand *x, int64_t *found)
{
    const int status = guarded_number(s->p, x, found);
    return status == DONE && *found < 0 ? DECLINED : status;
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

/* Do all rows, in parts that threads share: with ``row_at`` of about as many entries, else of as many of
   w->columns rows. */
static int share_parts(SparseWork *w, const SparseCall *c, rows_function *run,
                       int64_t (*row_at)(const char *, int64_t, int64_t))
{
    w->run = run;
    w->row_at = row_at;
    w->itemsize = c->itemsize;
    w->parts = c->threads > 1 ? PARTS_OF_POOLS : 1;
    share(do_sparse_part, w, w->parts, c->threads);
    return DONE;
}

static int share_rows(SparseWork *w, const SparseCall *c, rows_function *run)
{
    return share_parts(w, c, run, c->loops->row_at);
}

/* Let each thread have its memory, of which the first bytes are zeroed. */
static void set_memory(const Frame *frame, const SparseCall *c, SparseWork *w, int64_t zeroed)
{
    int i;
    w->memory = data_at(frame, &c->memory);
    w->bytes = c->bytes;
    for (i = 0; i < c->threads; i++)
        memset(w->memory + i * w->bytes, 0, (size_t)zeroed);
}

/* Let each thread have a mark of some bytes for each column of the second factor. */
static void set_marks(const Frame *frame, const SparseCall *c, SparseWork *w, int64_t bytes)
{
    int i;
    set_memory(frame, c, w, 0);
    for (i = 0; i < c->threads; i++)
        c->loops->clear_marks(&w->y, bytes, w->memory + i * w->bytes);
}

/* Whether the indices of all rows ascend and lie within the shape, for pointers that fit. */
static int is_canonical(const IndexLoops *loops, SparseWork *w, int threads)
{
    w->run = loops->check_rows;
    w->row_at = loops->row_at;
    w->parts = threads > 1 ? PARTS_OF_POOLS : 1;
    share(do_sparse_part, w, w->parts, threads);
    return !w->is_wrong;
}

static int64_t number_at(const Frame *frame, const Place *place)
{
    return *(const int64_t *)data_at(frame, place);
}

/* ---- emitting calls */

/* Results of as many elements as ``shape`` says, of the dtype of entries or of indices. */
static Operand *sparse_result(SparsePlan *s, int j, int type, int itemsize, int ndim,
                              const int64_t *shape)
{
    Operand *z = new_output_apart(s->p, j, type, itemsize, ndim, shape, NULL);
    if (z != NULL)
        s->call.z[j] = placed(z);
    return z;
}

static int index_bytes(const SparsePlan *s)
{
    return s->index_type == NPY_INT32 ? 4 : 8;
}

/* Memory of the next call while it runs, in two parts; 0: there is none. */
static int take_memory(SparsePlan *s, int64_t bytes, int64_t more)
{
    const int64_t first = (bytes + 63) & ~(int64_t)63, all = first + more;
    s->memory = new_scratch(s->p, NPY_UINT8, 1, 1, &all);
    if (s->memory == NULL)
        return 0;
    s->call.memory = placed(s->memory);
    s->call.bytes = first;
    return 1;
}

/* Emit the call that writes ``z``. */
static int emit_sparse(SparsePlan *s, call_function *run, const char *name, double work,
                       int n_writes, Operand **z)
{
    const Operand *writes[MOST_SPARSE_WRITES];
    const int64_t each = (s->bytes_of_thread + 127) & ~(int64_t)63;
    Call *call;
    int j;
    s->call.kind = s->spec->kind;
    s->call.transposed = s->spec->transposed;
    s->call.threads = work < ELEMENTS_WORTH_SHARING ? 1 : s->spec->threads;
    if (s->bytes_of_thread > 0) {
        if (!take_memory(s, each * s->call.threads, 0))
            return no_memory();
        s->call.bytes = each;
    }
    call = new_call(s->p, run, name, sizeof(SparseCall));
    if (call == NULL)
        return no_memory();
    *(SparseCall *)call->params = s->call;
    call->work = work;
    call->is_independent = 1;
    call->uses_threads = s->call.threads > 1;
    for (j = 0; j < n_writes; j++)
        writes[j] = z[j];
    if (s->memory != NULL)
        writes[j++] = s->memory;
    s->memory = NULL;
    return set_operands(s->p, call, s->n_reads, s->reads, j, writes);
}

static int give_sparse(SparsePlan *s, call_function *run, const char *name, double work,
                       int n_writes, Operand **z)
{
    int j, status = emit_sparse(s, run, name, work, n_writes, z);
    for (j = 0; j < n_writes && status == DONE; j++)
        status = give_output(s->p, j, z[j]);
    return status;
}

#endif
