/* Loops over sparse matrices in compressed form: rows of CSR, or columns of CSC.

   Everything here is plain C without Python. A matrix has an entry ``data[k]`` at column
   ``indices[k]`` of row i for indptr[i] <= k < indptr[i + 1]; columns ascend within a row. Loops work
   on a stretch of rows, so that threads can share them: each element of a result is computed in one
   order, whatever the number of threads is. */
#ifndef SYMCOMP_SPARSE_H
#define SYMCOMP_SPARSE_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    const char *data, *indices, *indptr;
    int64_t rows, columns;
} Compressed;

enum { COMBINE_ADD, COMBINE_MUL, COMBINE_MAXIMUM, COMBINE_MINIMUM, COMBINE_NEQ, COMBINE_LT,
       COMBINE_GT, N_COMBINATIONS };
enum { SEGMENT_SUM, SEGMENT_MAX, SEGMENT_MIN, N_SEGMENT_KINDS };

/* Up to this many indices are sorted by insertion. */
enum { FEW_INDICES = 24 };
/* Entries whose products are added up side by side. */
enum { LANES = 8 };
/* Rows of dense matrices are prefetched this many entries ahead: the processor cannot predict
   their addresses. It can for longer rows, from FEW_COLUMNS columns on. */
enum { FETCHED_AHEAD = 24, FEW_COLUMNS = 32 };
/* Rows of the second sparse factor are fetched this many entries of the first before they are read. */
enum { ROWS_AHEAD = 8 };
/* Marks of columns are cleared one by one if there are as many columns of each entry. */
enum { COLUMNS_OF_ENTRY = 16 };
/* Patterns are checked in batches of rows with about as many entries. */
enum { CHECKED_TOGETHER = 4096 };
/* Columns are shared by what this many entries tell, by this many threads at most. */
enum { SAMPLED_INDICES = 1024, MOST_SHARES = 64 };
/* Whether functions are compiled for AVX2, too. */
#if defined(__x86_64__) && defined(__GNUC__)
#define HAS_SPARSE_VECTORS 1
#define HAS_AVX2 __builtin_cpu_supports("avx2")
#else
#define HAS_SPARSE_VECTORS 0
#endif

/* A set of columns is a bit for each, in words of 64, and a bit for each word that is not 0. */
static inline int64_t words_of(int64_t bits)
{
    return (bits + 63) / 64;
}

static inline int64_t bytes_of_set(int64_t columns)
{
    return 8 * (words_of(columns) + words_of(words_of(columns)));
}

/* The state shared by the parts of one call. */
typedef struct SparseWork {
    Compressed x, y;            /* y: the second factor, or a pattern */
    const char *dense, *other;  /* dense factors, in C order */
    const char *base, *alpha;   /* of base + alpha x dense; NULL: none */
    char *z, *z_indices, *z_indptr;
    char *counts;               /* of each row, int64_t */
    char *spare, *spare_indices;    /* room to sort entries */
    char *memory;               /* of each worker ``bytes`` */
    int64_t bytes, columns, parts;
    const int64_t *cuts;        /* where parts begin, and the last one ends; NULL: see do_sparse_part */
    int64_t steps[2];           /* of a dense matrix that is read anywhere, in bytes; a range; a block */
    const Compressed *joined;   /* the matrices that are joined */
    int itemsize, kind;
    int is_wrong;               /* set where a pattern is not as it should be */
    void (*run)(struct SparseWork *work, int64_t first, int64_t end, int worker);
    int64_t (*row_at)(const char *indptr, int64_t rows, int64_t entries);
} SparseWork;

typedef void rows_function(SparseWork *work, int64_t first, int64_t end, int worker);

/* Functions that know the dtype of indices. */
typedef struct {
    int64_t (*row_at)(const char *indptr, int64_t rows, int64_t entries);
    int (*pointers_fit)(const char *indptr, int64_t rows, int64_t stored);
    int (*indices_fit)(const char *indices, int64_t count, int64_t columns);
    rows_function *check_rows;
    int (*pairs_ascend)(const char *rows, const char *columns, int64_t stored, const int64_t *shape);
    int64_t (*largest)(const char *indices, int64_t count);
    int64_t (*sum_counts)(const int64_t *counts, int64_t rows, char *indptr);
    void (*number_rows)(const char *indptr, int64_t rows, char *z);
    int (*count_rows)(const char *major, int64_t stored, int64_t rows, char *indptr);
    void (*transpose)(const Compressed *x, int itemsize, char *data, char *indices, char *indptr);
    void (*scatter)(const Compressed *x, int itemsize, char *z);
    void (*gather)(const Compressed *pattern, const char *dense, const int64_t *steps, int itemsize,
                   char *z);
    void (*take_rows)(const Compressed *x, const char *ids, int64_t n, int itemsize, char *data,
                      char *indices, const char *indptr);
    int64_t (*count_taken)(const Compressed *x, const char *ids, int64_t n, char *indptr);
    rows_function *look_up, *look_up_blocks, *count_products, *pack;
    void (*clear_marks)(const Compressed *x, int64_t bytes, char *marks);
    void (*look_up_pairs)(const Compressed *x, const char *major, const char *minor, int64_t n,
                          int itemsize, char *z);
    rows_function *count_cropped, *crop, *join_rows, *count_blocks, *rows_as_blocks;
    void (*blocks_as_rows)(const Compressed *x, int64_t r, int64_t c, char *indices, char *indptr,
                           int64_t *place);
    rows_function *order_blocks;
    void (*join_pointers)(const Compressed *x, int n, char *z);
    void (*bucket_rows)(const Compressed *x, const char *ids, int64_t rows, int itemsize, int64_t *next,
                        char *indptr, char *data, char *indices);
    void (*bucket_entries)(const char *given, const char *major, const char *minor, int64_t stored,
                           int64_t rows, int itemsize, int64_t *next, char *indptr, char *data,
                           char *indices);
    void (*cut_columns)(const Compressed *x, int parts, int64_t *cuts);
} IndexLoops;

/* Functions that know the dtypes of entries and indices. */
typedef struct {
    rows_function *dot, *dot_transposed, *sampled, *sampled_vectors, *multiply, *multiply_at;
    rows_function *combine[N_COMBINATIONS];     /* NULL where the dtype has no order */
    rows_function *segments[N_SEGMENT_KINDS];
    void (*scatter_add)(const Compressed *x, char *z);
    rows_function *tidy_rows, *count_dense, *take_dense;
    rows_function *block_dot, *block_dot_transposed, *sampled_blocks, *add_blocks;
    int64_t (*keep_nonzero)(const Compressed *x, char *data, char *indices, char *indptr);
    int value_bytes;
} ValueLoops;

#define LOOPS_FOR(VALUE) extern const ValueLoops value_loops_##VALUE##_i32, value_loops_##VALUE##_i64;

extern const IndexLoops index_loops_i32, index_loops_i64;
LOOPS_FOR(f32)
LOOPS_FOR(f64)
#if HAS_SPARSE_VECTORS
LOOPS_FOR(f32_avx2)
LOOPS_FOR(f64_avx2)
#endif
LOOPS_FOR(int8)
LOOPS_FOR(uint8)
LOOPS_FOR(int16)
LOOPS_FOR(uint16)
LOOPS_FOR(int32)
LOOPS_FOR(uint32)
LOOPS_FOR(int64)
LOOPS_FOR(uint64)
LOOPS_FOR(bool)
LOOPS_FOR(c64)
LOOPS_FOR(c128)

/* One part of several: what lies between two cuts, or else rows with about as many entries as other parts have, or
   as many columns. Every part ends where the next one begins, so that nothing is done twice. */
static void do_sparse_part(void *given, int64_t part, int worker)
{
    SparseWork *w = (SparseWork *)given;
    const int64_t rows = w->x.rows;
    int64_t first, end;
    if (w->cuts != NULL) {
        first = w->cuts[part];
        end = w->cuts[part + 1];
    } else if (w->row_at == NULL) {
        first = w->columns * part / w->parts;
        end = w->columns * (part + 1) / w->parts;
    } else {
        /* A row counts as an entry, so that empty ones are shared, too. */
        const int64_t all = w->row_at(w->x.indptr, rows, -1);
        first = part == 0 ? 0 : w->row_at(w->x.indptr, rows, all / w->parts * part);
        end = part == w->parts - 1 ? rows : w->row_at(w->x.indptr, rows, all / w->parts * (part + 1));
    }
    if (first < end)
        w->run(w, first, end, worker);
}

#endif
