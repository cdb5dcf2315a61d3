/* All decompositions of the machine, by name. */
#ifndef SYMCOMP_NAMED_H
#define SYMCOMP_NAMED_H

#include "refined_solve.h"
#include "triangles.h"

static const struct {
    const char *name;
    decompose *function;
} DECOMPOSITIONS[] = {
    {"adjugate", adjugate},
    {"check_invertible", check_invertible},
    {"cholesky", cholesky},
    {"determinant", determinant},
    {"eig", eig},
    {"eigh", eigh},
    {"inverse_form", inverse_form},
    {"least_squares", least_squares},
    {"log_determinant", log_determinant},
    {"pseudo_inverse", pseudo_inverse},
    {"pseudo_inverse_of_hermitian", pseudo_inverse_of_hermitian},
    {"qr", qr},
    {"qr_raw", qr_raw},
    {"refined_log_determinant", refined_log_determinant},
    {"refined_solve", refined_solve},
    {"solve", solve},
    {"solve_triangular", solve_triangular},
    {"svd", svd},
};

/* Return the function of this name, or NULL. */
static decompose *decomposition_named(const char *name)
{
    for (size_t i = 0; i < sizeof DECOMPOSITIONS / sizeof *DECOMPOSITIONS; i++)
        if (!strcmp(DECOMPOSITIONS[i].name, name))
            return DECOMPOSITIONS[i].function;
    return NULL;
}
#endif
