/* What a kernel is for the loops around its bodies. Those are in `nest_loops.h` and `reduction.h`;
   NEST says whether a file has them, or another that was compiled before. */

enum {
    BLOCK = 512,    /* elements that are copied together */
    LANES = 4096,   /* results that one call of a body adds up side by side, at most */
    FEW_PARTS = 32, /* parts of one result, where there are few elements */
    LONG = 64,      /* elements next to each other of which one result is made alone, not with others
                       beside it; half as many where one call makes several results */
    SECTION = 256,  /* rows of parts that are added up before rounding errors are noted */
    MANY = 1024,    /* results of which it matters where they lie */
};

/* A part of some work; `worker` is less than the number of threads, and no other has it meanwhile. */
typedef void part_of_work(void *work, int64_t part, int worker);

/* Those who share a large loop: `run` does all parts, in any order, by at most so many threads. */
struct team {
    int threads;
    void (*run)(part_of_work *part, void *work, int64_t parts, int threads);
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

#define KERNEL_ARGUMENTS                                                                           \
    char *const *data, const int64_t *shape, const int64_t *strides, const struct team *team

/* What is longer is cut in chunks, of about so many elements, that threads share; or in larger pieces
   where elements take little time. Where the cuts are depends on lengths alone, so that results do
   not depend on how many threads there are. */
enum { CHUNK = 65536, PIECE = 4 * CHUNK };

/* What a body does with an array: nothing; reads one element for each i; writes it; reads one number
   for each row; has lanes there, the same for each row; reads and writes one element for each i. */
enum role { UNUSED, READ, WRITE, NUMBER, LANE, CHANGE };

/* Reductions ask for memory before they read it, along rows so many bytes, on processors whose
   vectors are as long as lines of the cache: there it was measured to help, elsewhere to take a fifth
   more time. A function that was called for it would let totals go to memory. */
enum { AHEAD = 16384, CACHE_LINE = 64 };

INLINE void ask_for(const void *array, int64_t bytes)
{
#ifdef __AVX512F__
    for (int64_t i = 0; i < bytes; i += CACHE_LINE)
        __builtin_prefetch((const char *)array + i);
#else
    (void)array, (void)bytes;
#endif
}

/* For functions that use twice what they read: for this processor the compiler thinks that to read it
   again takes no time. It does where vectors lie in two lines of the cache, as those of NumPy's
   arrays do. */
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
   Lanes of `across` are parts of one result; values of which there is one for each result are its.
   `parts` is how many there are at most; 0 for any number. `lanes` is `across` of so many, and of
   `rest` of them in one row more, at most SECTION rows; `count` times, `next` apart: of results, from
   their beginning to their end, or of what is `added` to the totals there are. `merge` adds other
   totals to these. */
struct stage {
    struct body along, across, section;
    int parts;
    void (*lanes)(int added, int64_t count, int64_t rows, int64_t rest, char *const *data,
                  const int64_t *step, const int64_t *next);
    void (*begin)(int64_t n, char *const *data);
    void (*merge)(int64_t n, char *const *data, char *const *other);
    void (*finish)(int64_t n, int across, char *const *data);
};

/* Arrays are numbered: inputs, outputs, literals, temporaries. Axis a of array i is stretched where
   stretched[a * total + i]. No element has more than `width` bytes; a thread needs `buffer`. */
struct kernel {
    int rank, arrays, temporaries, total, count, nonempty, width, buffer;
    const uint8_t *size, *stretched, *reduced;
    const struct body *bodies;
    const struct stage *stages;
};

/* Run a kernel: 1 if a reduced axis is empty that must not be. */
NEST int nest_elementwise(const struct kernel *k, char *const *data, const int64_t *shape,
                          const int64_t *strides, const struct team *team);
NEST int nest_reduction(const struct kernel *k, char *const *data, const int64_t *shape,
                        const int64_t *strides, const struct team *team);

/* Add totals and their rounding errors to others. */
NEST void merge_sums(int64_t n, double *t, double *e, const double *p, const double *more);
NEST void merge_sumsf(int64_t n, float *t, float *e, const float *p, const float *more);
