/* The interface between kernels and the loops around their bodies, which are in `nest_loops.h`
   and `reduction.h`; NEST says whether a file contains these loops, or calls those compiled
   before. */

enum {
    BLOCK = 512,    /* elements that are copied together */
    LANES = 4096,   /* results that one call of a body computes side by side, at most */
    GAP = 24,       /* from one temporary to the next: not in the same lines of the cache */
    FEW_PARTS = 32, /* parts of one result, where there are few elements */
    LONG = 64,      /* adjacent elements from which on one result is computed alone, not beside
                       others; half as many if one call computes several results */
    SECTION = 256,  /* rows of parts that are added up before rounding errors are accumulated */
    MANY = 1024,    /* results from which on their alignment matters */
    CACHED = 16384,   /* bytes of elements that several stages read one after another */
    MOST_TOGETHER = 64, /* results that they compute together, at most */
    MOST_APART = 4,        /* from one chosen result to the next one of a run, at most */
};

/* A part of some work; `worker` is below the number of threads, and unique while the part runs. */
typedef void part_of_work(void *work, int64_t part, int worker);

/* The threads that share a large loop: `run` does all parts, in any order, on at most `threads`
   threads. What a kernel derives from lengths and strides may be kept between calls with the same
   ones, and as many threads, in `*order`: a call without arrays only writes it there, to memory that
   `take` gives, or leaves it 0. Where it is 0, and without `order`, each call derives it. A call without
   arrays also sets `*bytes` where calls with them need memory, which is then in `memory`. */
struct team {
    int threads;
    void (*run)(part_of_work *part, void *work, int64_t parts, int threads);
    const void **order;
    void *(*take)(void *owner, size_t bytes);
    void *owner;
    int64_t *bytes;
    char *memory;
};

static inline void nest_share(const struct team *team, part_of_work *part, void *work,
                              int64_t parts)
{
    if (team->threads > 1)
        team->run(part, work, parts, team->threads);
    else
        for (int64_t c = 0; c < parts; c++)
            part(work, c, 0);
}

/* The orders of the n nests of a kernel, in one table that is kept; 0 if each call derives them. */
static inline const void **nest_orders(const struct team *team, int n, int keeps)
{
    if (!keeps)
        return team->order ? (const void **)*team->order : 0;
    const void **orders = (const void **)team->take(team->owner, (size_t)n * sizeof *orders);
    for (int i = 0; orders && i < n; i++)
        orders[i] = 0;
    *team->order = orders;
    return orders;
}

#define KERNEL_ARGUMENTS                                                                           \
    char *const *data, const int64_t *shape, const int64_t *strides, const struct team *team

/* Longer loops are divided among threads in chunks of about this many elements; or in pieces
   where elements are cheap. The division depends on lengths alone, so that results do not depend
   on the number of threads. */
enum { CHUNK = 65536, PIECE = 4 * CHUNK };

/* The use of an array by a body: none; read one element for each i; write it; read one number
   for each row; lanes, the same for each row; read and write one element for each i; read, or add to,
   elements at positions, of an array that lies along no axis. */
enum role { UNUSED, READ, WRITE, NUMBER, LANE, CHANGE, GATHERED, SCATTERED };

/* Reductions prefetch this many bytes ahead along rows, on processors whose vectors are as long
   as cache lines: measured to help there, and to cost a fifth elsewhere. A function call for it
   would spill the totals to memory. */
enum { AHEAD = 16384, CACHE_LINE = 64 };

#if defined(__AVX512F__) && !defined(EARLY_CODE)
INLINE void ask_for(const void *array, int64_t bytes)
{
    for (int64_t i = 0; i < bytes; i += CACHE_LINE)
        __builtin_prefetch((const char *)array + i);
}
#else
#define ask_for(array, bytes) ((void)0)
#endif

/* For functions that use a loaded value twice: for this processor the compiler assumes that
   loading again is free. It is not where vectors cross cache lines, as those of NumPy's arrays
   do. */
#if defined(__tune_znver3__) && defined(__AVX512F__) && !defined(__clang__)
#define READ_ONCE __attribute__((target("tune=icelake-server,prefer-vector-width=512")))
#elif defined(__tune_znver3__) && !defined(__clang__)
#define READ_ONCE __attribute__((target("tune=icelake-server")))
#else
#define READ_ONCE
#endif

/* For r < rows and i < n: element i of row r of an array is at data[array] + r * step[array], i
   elements on. */
typedef void body_function(int64_t rows, int64_t n, char *const *data, const int64_t *step);

struct body {
    body_function *run;
    const uint8_t *role;
};

/* One pass over the reduced axes: `along` or `across` for every element, `section` for every result.
   Lanes of `across` are parts of one result; values with one element for each result belong to it.
   `parts` is their largest number; 0 for any number. `lanes` does the work of `across` for this
   number of parts, and for `rest` parts of one more row, at most SECTION rows; for `count` results,
   `next` apart. It computes whole results or, if `added`, adds to the existing totals. `merge` adds
   other totals. The pass is left out where no element of the `choices` arrays `chosen` of truth values, one
   for each result, is true; if there are none, it is not. If `ready`, all of the stage is left out there, for
   each result. */
struct stage {
    struct body along, across, section;
    int parts, choices;
    const uint8_t *chosen;
    void (*lanes)(int added, int64_t count, int64_t rows, int64_t rest, char *const *data,
                  const int64_t *step, const int64_t *next);
    void (*begin)(int64_t n, char *const *data);
    void (*merge)(int64_t n, char *const *data, char *const *other);
    void (*finish)(int64_t n, int across, char *const *data);
    int ready;
};

/* Arrays are numbered: inputs, outputs, literals, temporaries. Axis a of array i is stretched where
   stretched[a * total + i]. No element has more than `width` bytes; a thread needs `buffer`, where at most
   `lanes` results are side by side. */
struct kernel {
    int rank, arrays, temporaries, total, count, nonempty, width, buffer, lanes;
    const uint8_t *size, *stretched, *reduced;
    const struct body *bodies;
    const struct stage *stages;
};

/* Run a kernel, or keep its order; return 1 if a reduced axis is empty that must not be, or memory is
   short. */
NEST int nest_elementwise(const struct kernel *k, char *const *data, const int64_t *shape,
                          const int64_t *strides, const struct team *team);
NEST int nest_reduction(const struct kernel *k, char *const *data, const int64_t *shape,
                        const int64_t *strides, const struct team *team);

/* Add totals and their rounding errors to others. */
NEST void merge_sums(int64_t n, double *t, double *e, const double *p, const double *more);
NEST void merge_sumsf(int64_t n, float *t, float *e, const float *p, const float *more);
