/* Decompositions, inverses and systems of stacks of matrices, by LAPACK. */
#ifndef SYMCOMP_DECOMPOSITIONS_H
#define SYMCOMP_DECOMPOSITIONS_H

#include "lapack.h"

enum { MOST_INPUTS = 3, MOST_OUTPUTS = 4 };

/* The outcome. FAILED: Python raises the error, or finds another way. MEASURED: there was too little memory
   to compute in, and it is known how much is needed. */
enum { FOUND = 0, FAILED = 1, NO_MEMORY = 2, MEASURED = 3 };

/* Outputs are in C order, and none is where an input is. */
struct decomposition {
    int kind;           /* of the numbers that are computed with */
    int wide;           /* whether those in arrays are single, and these double */
    int lower;          /* the triangle that is read */
    int option;         /* an option of the function */
    int n_given;
    double rcond;       /* singular values below it times the largest count as 0 */
    int64_t count;      /* of matrices in the stacks */
    struct stack given[MOST_INPUTS], found[MOST_OUTPUTS];
};

typedef int decompose(const struct decomposition *d, struct arena *arena);

/* All memory has been taken. */
#define NEEDS_MEMORY                                                                               \
    if (arena->used > arena->size)                                                                 \
        return MEASURED

/* The bytes that a decomposition takes for matrices of these lengths; their numbers are not read. */
static int64_t memory_for(decompose *function, const struct decomposition *d)
{
    struct arena arena = {NULL, -1, 0};
    function(d, &arena);
    return arena.used;
}

static int decompose_in(char *memory, int64_t size, decompose *function,
                        const struct decomposition *d)
{
    struct arena arena = {memory, size, 0};
    return function(d, &arena);
}

/* Decompose in memory that is given back. */
static int call_decomposition(decompose *function, const struct decomposition *d)
{
    const int64_t size = memory_for(function, d);
    char *memory = (char *)malloc((size_t)size + 1);
    int outcome;
    if (memory == NULL)
        return NO_MEMORY;
    outcome = decompose_in(memory, size, function, d);
    free(memory);
    return outcome;
}

/* The kind of the numbers in arrays. */
static inline int stored(const struct decomposition *d) { return d->kind - d->wide; }

/* Matrix i that is given into columns, the first `ld` numbers from the next. */
static void gather(const struct decomposition *d, int which, int64_t i, void *to, int64_t ld)
{
    const struct stack *x = &d->given[which];
    const int64_t size = size_of(d->kind);
    convert_matrix(stored(d), d->kind, x->rows, x->columns, x->data + i * x->each, x->down,
                   x->along, (char *)to, size, ld * size);
}

/* Matrix i that is found from columns. */
static void scatter(const struct decomposition *d, int which, int64_t i, const void *from,
                    int64_t ld)
{
    const struct stack *z = &d->found[which];
    const int64_t size = size_of(d->kind);
    convert_matrix(d->kind, stored(d), z->rows, z->columns, (const char *)from, size, ld * size,
                   z->data + i * z->each, z->down, z->along);
}

/* Real numbers that are found. */
static void scatter_reals(const struct decomposition *d, int which, int64_t i, const void *from)
{
    const struct stack *z = &d->found[which];
    for (int64_t j = 0; j < z->rows; j++)
        write_real(stored(d), z->data + i * z->each, j, read_real(d->kind, from, j));
}

static char *result_at(const struct decomposition *d, int which, int64_t i)
{
    return d->found[which].data + i * d->found[which].each;
}

/* Zeros on one side of the diagonal of a matrix whose rows are `step` bytes apart. */
static void clear_triangle(int64_t size, int upper, int64_t n, int64_t m, char *z, int64_t step)
{
    for (int64_t i = 0; i < n; i++) {
        int64_t first = upper ? i + 1 : 0, last = upper ? m : (i < m ? i : m);
        if (first < last)
            memset(z + i * step + first * size, 0, (size_t)((last - first) * size));
    }
}

/* -- systems */

enum { GENERAL = 0, POSITIVE = 1, SYMMETRIC = 2, HERMITIAN = 3 };

static void solve_one(const struct decomposition *d, blas_int n, blas_int k, void *a, void *b,
                      void *pivots, void *work, blas_int length, blas_int *info)
{
    const char *triangle = d->lower ? "L" : "U";
    if (d->option == GENERAL)
        CALL(gesv, GESV, d->kind)(&n, &k, a, &n, pivots, b, &n, info);
    else if (d->option == POSITIVE)
        CALL(posv, POSV, d->kind)(triangle, &n, &k, a, &n, b, &n, info);
    else
        CALL(sysv, d->option == SYMMETRIC || d->kind < SINGLE_COMPLEX ? SYSV : HESV, d->kind)
        (triangle, &n, &k, a, &n, pivots, b, &n, work, &length, info);
}

/* The right sides of system i in columns; where none are given, the identity: for an inverse. */
static void gather_sides(const struct decomposition *d, int64_t i, void *to)
{
    const int64_t n = d->given[0].rows;
    if (d->n_given > 1) {
        gather(d, 1, i, to, n);
        return;
    }
    memset(to, 0, (size_t)(n * n * size_of(d->kind)));
    for (int64_t j = 0; j < n; j++)
        write_number(d->kind, to, j * (n + 1), 1, 0);
}

/* z with a z = b, `option` being what a is. */
static int solve(const struct decomposition *d, struct arena *arena)
{
    const int kind = d->kind;
    const int64_t size = size_of(kind), n = d->given[0].rows, k = d->found[0].columns;
    blas_int info = 0, length = 0;
    void *a = take(arena, n * n * size), *b = take(arena, n * k * size);
    void *pivots = take_integers(arena, n), *work = NULL;
    if (d->option > POSITIVE) {
        double few[2];
        solve_one(d, n, k, a, b, pivots, few, -1, &info);
        length = length_asked(kind, few);
        work = take(arena, length * size);
    }
    NEEDS_MEMORY;
    for (int64_t i = 0; i < d->count; i++) {
        gather(d, 0, i, a, n);
        gather_sides(d, i, b);
        solve_one(d, n, k, a, b, pivots, work, length, &info);
        if (info)
            return FAILED;
        scatter(d, 0, i, b, n);
    }
    return FOUND;
}

/* -- determinants */

/* A number near 1, times a power of two. */
struct scaled {
    double z[2];
    int64_t power;
};

static void normalize(struct scaled *x)
{
    int e;
    double largest = fmax(fabs(x->z[0]), fabs(x->z[1]));
    if (!(largest > 0) || isinf(largest))
        return;
    frexp(largest, &e);
    x->z[0] = ldexp(x->z[0], -e);
    x->z[1] = ldexp(x->z[1], -e);
    x->power += e;
}

static double unscaled(double x, int64_t power)
{
    const int64_t most = 5000;
    return ldexp(x, (int)(power > most ? most : power < -most ? -most : power));
}

/* LU decomposition in place; the sign of the order of the rows, 0 if the matrix is singular. */
static int factorize(int kind, blas_int n, void *a, void *pivots)
{
    blas_int info = 0;
    int sign = 1;
    CALL(getrf, GETRF, kind)(&n, &n, a, &n, pivots, &info);
    for (int64_t i = 0; i < n; i++)
        if (element_of(pivots, i) != i + 1)
            sign = -sign;
    return info > 0 ? 0 : sign;
}

/* The determinant of the matrix, which is overwritten. */
static struct scaled determinant_of(int kind, blas_int n, void *a, void *pivots)
{
    struct scaled z = {{factorize(kind, n, a, pivots), 0}, 0}, x;
    for (int64_t i = 0; i < n && (z.z[0] != 0 || z.z[1] != 0); i++) {
        read_number(kind, a, i * (n + 1), x.z);
        x.power = 0;
        normalize(&x);
        if (is_complex(kind))
            multiply_number(z.z, x.z[0], x.z[1]);
        else
            z.z[0] *= x.z[0];
        z.power += x.power;
        normalize(&z);
    }
    return z;
}

static int determinant(const struct decomposition *d, struct arena *arena)
{
    const int kind = d->kind;
    const int64_t size = size_of(kind);
    const int64_t n = d->given[0].rows;
    void *a = take(arena, n * n * size), *pivots = take_integers(arena, n);
    NEEDS_MEMORY;
    for (int64_t i = 0; i < d->count; i++) {
        gather(d, 0, i, a, n);
        struct scaled z = determinant_of(kind, n, a, pivots);
        write_number(stored(d), result_at(d, 0, i), 0, unscaled(z.z[0], z.power),
                     unscaled(z.z[1], z.power));
    }
    return FOUND;
}

/* Sign and logarithm of the modulus of the determinant of the matrix, which is overwritten. */
static void log_of_determinant(int kind, blas_int n, void *a, void *pivots, double *sign,
                               double *log_modulus)
{
    double x[2];
    sign[0] = factorize(kind, n, a, pivots);
    sign[1] = 0;
    *log_modulus = sign[0] == 0 ? -INFINITY : 0;
    for (int64_t i = 0; i < n && *log_modulus != -INFINITY; i++) {
        read_number(kind, a, i * (n + 1), x);
        double modulus = is_complex(kind) ? hypot(x[0], x[1]) : fabs(x[0]);
        if (is_complex(kind))
            multiply_number(sign, x[0] / modulus, x[1] / modulus);
        else
            sign[0] = x[0] < 0 ? -sign[0] : sign[0];
        *log_modulus += log(modulus);
    }
}

static int log_determinant(const struct decomposition *d, struct arena *arena)
{
    const int kind = d->kind;
    const int64_t size = size_of(kind);
    const int64_t n = d->given[0].rows;
    void *a = take(arena, n * n * size), *pivots = take_integers(arena, n);
    double sign[2], logarithm;
    NEEDS_MEMORY;
    for (int64_t i = 0; i < d->count; i++) {
        gather(d, 0, i, a, n);
        log_of_determinant(kind, n, a, pivots, sign, &logarithm);
        write_number(stored(d), result_at(d, 0, i), 0, sign[0], sign[1]);
        write_real(stored(d), result_at(d, 1, i), 0, logarithm);
    }
    return FOUND;
}

/* x as it is, if it can be inverted. */
static int check_invertible(const struct decomposition *d, struct arena *arena)
{
    const int kind = d->kind;
    const int64_t size = size_of(kind);
    const int64_t n = d->given[0].rows;
    void *a = take(arena, n * n * size), *pivots = take_integers(arena, n);
    NEEDS_MEMORY;
    for (int64_t i = 0; i < d->count; i++) {
        gather(d, 0, i, a, n);
        if (!all_finite(kind, a, n * n) || !factorize(kind, n, a, pivots))
            return FAILED;
    }
    return FOUND;
}
#endif
