/* Draws of random numbers as kernels: NumPy's generator PCG64 and NumPy's distributions.

   data: the state, four words; parameters; the state after; the numbers, next to each other.
   shape[0]: how many. strides[i]: from one number of data[i] to the next, in bytes. */

#ifndef SYMCOMP_DRAWS_H
#define SYMCOMP_DRAWS_H

#include <stdint.h>
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

static void start_draws(bitgen_t *bits, Pcg64 *g, const char *state)
{
    const uint64_t *words = (const uint64_t *)state;
    g->state = ((unsigned __int128)words[0] << 64) | words[1];
    g->increment = ((unsigned __int128)words[2] << 64) | words[3];
    g->has_half = 0;
    g->half = 0;
    bits->state = g;
    bits->next_uint64 = pcg64_whole;
    bits->next_uint32 = pcg64_half;
    bits->next_double = pcg64_unit;
    bits->next_raw = pcg64_whole;
}

static void end_draws(const Pcg64 *g, char *state)
{
    uint64_t *words = (uint64_t *)state;
    words[0] = (uint64_t)(g->state >> 64);
    words[1] = (uint64_t)g->state;
    words[2] = (uint64_t)(g->increment >> 64);
    words[3] = (uint64_t)g->increment;
}

#define DRAWS(name, type, fill)                                                                   \
    static int name(char **data, const int64_t *shape, const int64_t *strides, const Team *team)     \
    {                                                                                             \
        Pcg64 g;                                                                                  \
        bitgen_t bits;                                                                            \
        (void)strides, (void)team;                                                             \
        start_draws(&bits, &g, data[0]);                                                          \
        fill(&bits, shape[0], (type *)data[2]);                                                   \
        end_draws(&g, data[1]);                                                                   \
        return 0;                                                                                 \
    }

DRAWS(draw_uniform_64, double, random_standard_uniform_fill)
DRAWS(draw_uniform_32, float, random_standard_uniform_fill_f)
DRAWS(draw_normal_64, double, random_standard_normal_fill)
DRAWS(draw_normal_32, float, random_standard_normal_fill_f)
DRAWS(draw_exponential_64, double, random_standard_exponential_fill)
DRAWS(draw_exponential_32, float, random_standard_exponential_fill_f)

#define DRAWS_OF_GAMMA(name, type, draw)                                                          \
    static int name(char **data, const int64_t *shape, const int64_t *strides, const Team *team)     \
    {                                                                                             \
        Pcg64 g;                                                                                  \
        bitgen_t bits;                                                                            \
        type *z = (type *)data[3];                                                                \
        int64_t i;                                                                                \
        for (i = 0; i < shape[0]; i++)                                                            \
            if (!(*(const double *)(data[1] + i * strides[1]) >= 0))                              \
                return 1; /* negative, or NaN */                                                  \
        start_draws(&bits, &g, data[0]);                                                          \
        for (i = 0; i < shape[0]; i++)                                                            \
            z[i] = draw(&bits, (type)*(const double *)(data[1] + i * strides[1]));                \
        end_draws(&g, data[2]);                                                                   \
        return 0;                                                                                 \
    }

DRAWS_OF_GAMMA(draw_gamma_64, double, random_standard_gamma)
DRAWS_OF_GAMMA(draw_gamma_32, float, random_standard_gamma_f)

#endif
