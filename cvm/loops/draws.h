/* Draws of random numbers as kernels: NumPy's generator PCG64 and NumPy's distributions.

   data: the state, four words, or six with half a word; parameters; the state after; the numbers, next
   to each other. shape: how many draws; words of the state; numbers of a draw, where they are several.
   strides[i]: from the data[i] of one draw to that of the next, in bytes.

   A kernel returns 1, and has written nothing, for parameters that NumPy might refuse. */

#ifndef SYMCOMP_DRAWS_H
#define SYMCOMP_DRAWS_H

#include <math.h>
#include <stdint.h>
#include <string.h>
#include "numpy/random/bitgen.h"
#include "numpy/random/distributions.h"
#include "../thread_pool.h"

typedef struct {
    unsigned __int128 state;
    unsigned __int128 increment;
    int has_half;       /* whether half of the last number is left */
    uint32_t half;
} Pcg64;

/* O'Neill (2014), "PCG: a family of simple fast space-efficient statistically good algorithms for
   random number generation": a linear congruential step, then XSL-RR. */
static uint64_t pcg64_whole(void *generator)
{
    Pcg64 *g = (Pcg64 *)generator;
    const unsigned __int128 multiplier =
        ((unsigned __int128)2549297995355413924u << 64) | 4865540595714422341u;
    uint64_t mixed;
    unsigned turn;
    g->state = g->state * multiplier + g->increment;
    mixed = (uint64_t)(g->state >> 64) ^ (uint64_t)g->state;
    turn = (unsigned)(g->state >> 122);
    return (mixed >> turn) | (mixed << ((64 - turn) & 63));
}

static uint32_t pcg64_half(void *generator)
{
    Pcg64 *g = (Pcg64 *)generator;
    uint64_t both;
    if (g->has_half) {
        g->has_half = 0;
        return g->half;
    }
    both = pcg64_whole(generator);
    g->has_half = 1;
    g->half = (uint32_t)(both >> 32);
    return (uint32_t)both;
}

static double pcg64_unit(void *generator)
{
    return (double)(pcg64_whole(generator) >> 11) * (1.0 / 9007199254740992.0);
}

static void start_draws(bitgen_t *bits, Pcg64 *g, const char *state, int64_t n_words)
{
    const uint64_t *words = (const uint64_t *)state;
    g->state = ((unsigned __int128)words[0] << 64) | words[1];
    g->increment = ((unsigned __int128)words[2] << 64) | words[3];
    g->has_half = n_words == 6 && words[4];
    g->half = n_words == 6 ? (uint32_t)words[5] : 0;
    bits->state = g;
    bits->next_uint64 = pcg64_whole;
    bits->next_uint32 = pcg64_half;
    bits->next_double = pcg64_unit;
    bits->next_raw = pcg64_whole;
}

static void end_draws(const Pcg64 *g, char *state, int64_t n_words)
{
    uint64_t *words = (uint64_t *)state;
    words[0] = (uint64_t)(g->state >> 64);
    words[1] = (uint64_t)g->state;
    words[2] = (uint64_t)(g->increment >> 64);
    words[3] = (uint64_t)g->increment;
    if (n_words == 6) {
        words[4] = (uint64_t)g->has_half;
        words[5] = g->half;
    }
}

#define DRAWS(name, type, fill)                                                                   \
    static int name(char **data, const int64_t *shape, const int64_t *strides, const Team *team)     \
    {                                                                                             \
        Pcg64 g;                                                                                  \
        bitgen_t bits;                                                                            \
        (void)strides, (void)team;                                                                \
        start_draws(&bits, &g, data[0], shape[1]);                                                \
        fill(&bits, shape[0], (type *)data[2]);                                                   \
        end_draws(&g, data[1], shape[1]);                                                         \
        return 0;                                                                                 \
    }

DRAWS(draw_uniform_64, double, random_standard_uniform_fill)
DRAWS(draw_uniform_32, float, random_standard_uniform_fill_f)
DRAWS(draw_normal_64, double, random_standard_normal_fill)
DRAWS(draw_normal_32, float, random_standard_normal_fill_f)
DRAWS(draw_exponential_64, double, random_standard_exponential_fill)
DRAWS(draw_exponential_32, float, random_standard_exponential_fill_f)

/* Parameters of the draw that is at hand: the first, the second, the third. */
#define AT(type, k) (*(const type *)(data[k] + i * strides[k]))
#define X AT(double, 1)
#define Y AT(double, 2)
#define Z AT(double, 3)
#define L AT(int64_t, 1)
#define M AT(int64_t, 2)
#define N AT(int64_t, 3)

/* Draws of one number each, of n parameters. */
#define DRAWS_BY(name, type, n, is_valid, drawn)                                                  \
    static int name(char **data, const int64_t *shape, const int64_t *strides, const Team *team)     \
    {                                                                                             \
        Pcg64 g;                                                                                  \
        bitgen_t bits;                                                                            \
        binomial_t table = {0};                                                                   \
        type *z = (type *)data[n + 2];                                                            \
        int64_t i;                                                                                \
        (void)table, (void)team;                                                                  \
        for (i = 0; i < shape[0]; i++)                                                            \
            if (!(is_valid))                                                                      \
                return 1;                                                                         \
        start_draws(&bits, &g, data[0], shape[1]);                                                \
        for (i = 0; i < shape[0]; i++)                                                            \
            z[i] = drawn;                                                                         \
        end_draws(&g, data[n + 1], shape[1]);                                                     \
        return 0;                                                                                 \
    }

/* Below these are NumPy's bounds of means of Poisson's distribution, and of colors. */
#define LARGEST_MEAN 9e18
#define LARGEST_GROUP 999999999

DRAWS_BY(draw_gamma_64, double, 1, X >= 0, random_standard_gamma(&bits, X))
DRAWS_BY(draw_gamma_32, float, 1, X >= 0, random_standard_gamma_f(&bits, (float)X))
DRAWS_BY(draw_beta, double, 2, X > 0 && Y > 0, random_beta(&bits, X, Y))
DRAWS_BY(draw_laplace, double, 2, Y >= 0, random_laplace(&bits, X, Y))
DRAWS_BY(draw_logistic, double, 2, Y >= 0, random_logistic(&bits, X, Y))
DRAWS_BY(draw_lognormal, double, 2, Y >= 0, random_lognormal(&bits, X, Y))
DRAWS_BY(draw_student, double, 1, X > 0, random_standard_t(&bits, X))
DRAWS_BY(draw_triangular, double, 3, X <= Y && Y <= Z && X < Z, random_triangular(&bits, X, Y, Z))
DRAWS_BY(draw_weibull, double, 1, X >= 0, random_weibull(&bits, X))
DRAWS_BY(draw_vonmises, double, 2, Y >= 0, random_vonmises(&bits, X, Y))
DRAWS_BY(draw_wald, double, 2, X > 0 && Y > 0, random_wald(&bits, X, Y))
DRAWS_BY(draw_chisquare, double, 2, X > 0 && Y >= 0, random_noncentral_chisquare(&bits, X, Y))
DRAWS_BY(draw_f, double, 3, X > 0 && Y > 0 && Z >= 0, random_noncentral_f(&bits, X, Y, Z))
DRAWS_BY(draw_integers, int64_t, 2, L < M,
         (int64_t)random_bounded_uint64(&bits, (uint64_t)L, (uint64_t)M - 1 - (uint64_t)L, 0, 0))
DRAWS_BY(draw_binomial, int64_t, 2, L >= 0 && Y >= 0 && Y <= 1, random_binomial(&bits, Y, L, &table))
DRAWS_BY(draw_negative_binomial, int64_t, 2,
         X > 0 && Y > 0 && Y <= 1 && (1 - Y) / Y * (X + 10 * sqrt(X)) < LARGEST_MEAN,
         random_negative_binomial(&bits, X, Y))
DRAWS_BY(draw_poisson, int64_t, 1, X >= 0 && X < LARGEST_MEAN, random_poisson(&bits, X))
DRAWS_BY(draw_geometric, int64_t, 1, X > 0 && X <= 1, random_geometric(&bits, X))
DRAWS_BY(draw_hypergeometric, int64_t, 3,
         L >= 0 && M >= 0 && N >= 0 && L <= LARGEST_GROUP && M <= LARGEST_GROUP && N <= L + M,
         random_hypergeometric(&bits, L, M, N))
DRAWS_BY(draw_logseries, int64_t, 1, X >= 0 && X < 1, random_logseries(&bits, X))
DRAWS_BY(draw_zipf, int64_t, 1, X > 1, random_zipf(&bits, X))

/* Probabilities z of mean proportional to ``alpha``, all positive. If all of ``alpha`` are small, gamma
   variables might all be 0; then each z is a part of the rest. */
static void one_dirichlet(bitgen_t *bits, const double *alpha, int64_t n, double *z)
{
    double total = 0, largest = 0, left = 1;
    int64_t k;
    for (k = 0; k < n; k++)
        largest = alpha[k] > largest ? alpha[k] : largest;
    if (largest < 0.1) {
        for (k = n - 1; k >= 0; k--)
            z[k] = total += alpha[k];
        for (k = 0; k < n - 1; k++) {
            const double part = random_beta(bits, alpha[k], z[k + 1]);
            z[k] = left * part;
            left *= 1 - part;
        }
        z[n - 1] = left;
        return;
    }
    for (k = 0; k < n; k++)
        total += z[k] = random_standard_gamma(bits, alpha[k]);
    total = 1 / total;
    for (k = 0; k < n; k++)
        z[k] *= total;
}

static int are_positive(const double *x, int64_t n)
{
    int64_t k;
    for (k = 0; k < n; k++)
        if (!(x[k] > 0 && x[k] < HUGE_VAL))
            return 0;
    return n > 0;
}

/* Whether NumPy surely takes ``p`` for probabilities: the last is what the others leave. */
static int are_probabilities(const double *p, int64_t n)
{
    double total = 0;
    int64_t k;
    for (k = 0; k < n; k++) {
        if (!(p[k] >= 0 && p[k] <= 1))
            return 0;
        total += k < n - 1 ? p[k] : 0;
    }
    return n > 0 && total <= 1;
}

/* Fisher and Yates's shuffle. */
static void one_permutation(bitgen_t *bits, const int64_t *x, int64_t n, int64_t *z)
{
    int64_t k;
    memcpy(z, x, (size_t)n * sizeof(int64_t));
    for (k = n - 1; k > 0; k--) {
        const int64_t other = (int64_t)random_interval(bits, (uint64_t)k);
        const int64_t kept = z[k];
        z[k] = z[other];
        z[other] = kept;
    }
}

/* How often each of the outcomes comes in ``count`` trials. */
static void count_outcomes(bitgen_t *bits, int64_t count, const double *p, int64_t n, int64_t *z,
                            binomial_t *table)
{
    memset(z, 0, (size_t)n * sizeof(int64_t));
    random_multinomial(bits, count, z, (double *)p, n, table);
}

/* Draws of shape[2] numbers each, of n parameters. */
#define DRAWS_OF_VECTORS(name, type, n, is_valid, draw)                                           \
    static int name(char **data, const int64_t *shape, const int64_t *strides, const Team *team)     \
    {                                                                                             \
        Pcg64 g;                                                                                  \
        bitgen_t bits;                                                                            \
        binomial_t table = {0};                                                                   \
        type *z = (type *)data[n + 2];                                                            \
        int64_t i;                                                                                \
        (void)table, (void)team;                                                                  \
        for (i = 0; i < shape[0]; i++)                                                            \
            if (!(is_valid))                                                                      \
                return 1;                                                                         \
        start_draws(&bits, &g, data[0], shape[1]);                                                \
        for (i = 0; i < shape[0]; i++, z += shape[2])                                             \
            draw;                                                                                 \
        end_draws(&g, data[n + 1], shape[1]);                                                     \
        return 0;                                                                                 \
    }

DRAWS_OF_VECTORS(draw_dirichlet, double, 1, are_positive(&X, shape[2]),
                 one_dirichlet(&bits, &X, shape[2], z))
DRAWS_OF_VECTORS(draw_counts, int64_t, 2, L >= 0 && are_probabilities(&Y, shape[2]),
                 count_outcomes(&bits, L, &Y, shape[2], z, &table))
DRAWS_OF_VECTORS(draw_permutation, int64_t, 1, 1, one_permutation(&bits, &L, shape[2], z))

#undef AT
#undef X
#undef Y
#undef Z
#undef L
#undef M
#undef N

typedef struct {
    const char *name;
    kernel_function *draws[2];      /* of float64 or int64; of float32 */
} DrawKernel;

static const DrawKernel draw_kernels[] = {
    {"standard_uniform", {draw_uniform_64, draw_uniform_32}},
    {"standard_normal", {draw_normal_64, draw_normal_32}},
    {"standard_exponential", {draw_exponential_64, draw_exponential_32}},
    {"standard_gamma", {draw_gamma_64, draw_gamma_32}},
    {"beta", {draw_beta}},
    {"laplace", {draw_laplace}},
    {"logistic", {draw_logistic}},
    {"lognormal", {draw_lognormal}},
    {"standard_t", {draw_student}},
    {"triangular", {draw_triangular}},
    {"weibull", {draw_weibull}},
    {"vonmises", {draw_vonmises}},
    {"wald", {draw_wald}},
    {"noncentral_chisquare", {draw_chisquare}},
    {"noncentral_f", {draw_f}},
    {"integers", {draw_integers}},
    {"binomial", {draw_binomial}},
    {"negative_binomial", {draw_negative_binomial}},
    {"poisson", {draw_poisson}},
    {"geometric", {draw_geometric}},
    {"hypergeometric", {draw_hypergeometric}},
    {"logseries", {draw_logseries}},
    {"zipf", {draw_zipf}},
    {"dirichlet", {draw_dirichlet}},
    {"counts", {draw_counts}},
    {"permutation", {draw_permutation}},
};

/* The kernel of a distribution of symcomp.ops.random.table; NULL: there is none. */
static kernel_function *draw_kernel(const char *name, int is_single)
{
    size_t i;
    for (i = 0; i < sizeof draw_kernels / sizeof draw_kernels[0]; i++)
        if (strcmp(draw_kernels[i].name, name) == 0)
            return draw_kernels[i].draws[is_single];
    return NULL;
}

#endif
