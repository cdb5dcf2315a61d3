/* Guards: facts of values, not of layouts, that what follows in a segment relies on. */
#ifndef SYMCOMP_GUARDS_H
#define SYMCOMP_GUARDS_H

#include "copies.h"

/* Note what a guard found, and compare it with what the segment was made for. */
static inline int check_outcome(Frame *frame, int n, const int64_t *found, const int64_t *expected)
{
    if (memcmp(found, expected, (size_t)n * sizeof(int64_t)) == 0)
        return DONE;
    memcpy(frame->outcome, found, (size_t)n * sizeof(int64_t));
    frame->n_outcome = n;
    return OTHER;
}

/* Complete a guard of what x holds, which was read in this run; `guarded` says of x that there is one. */
static int complete_guard(Planner *p, Call *call, const Operand *x, uint64_t *guarded)
{
    call->is_guard = 1;
    *guarded = p->serial;
    p->n_run = p->n_calls;
    return set_operands(p, call, 1, &x, 0, NULL);
}

typedef struct {
    Place x;
    int type;
    int64_t expected;
} ValueGuard;

/* ---- numbers */

static int run_number_guard(const void *params, Frame *frame)
{
    const ValueGuard *g = (const ValueGuard *)params;
    const int64_t found = *(const int64_t *)data_at(frame, &g->x);
    return check_outcome(frame, 1, &found, &g->expected);
}

/* Guard one number, or whether it is 0; `guarded` says of x that there is such a guard. */
static int new_value_guard(Planner *p, Operand *x, uint64_t *guarded, call_function *run,
                           const char *name, int64_t expected)
{
    Call *call;
    ValueGuard *g;
    if (is_constant(x) || x->guarded_by == p->serial || *guarded == p->serial)
        return DONE;
    call = new_call(p, run, name, sizeof(ValueGuard));
    if (call == NULL)
        return no_memory();
    g = (ValueGuard *)call->params;
    g->x = placed(x);
    g->type = x->type;
    g->expected = expected;
    return complete_guard(p, call, x, guarded);
}

/* Whether an operand is one integer of 64 bits. */
static inline int is_number(const Operand *x)
{
    return is_plain(x) && x->type == NPY_INT64 && x->size == 1;
}

/* Read a number that layouts depend on: it is the same in all runs that go on in this segment. */
static int guarded_number(Planner *p, Operand *x, int64_t *found)
{
    int status;
    if (!is_number(x))
        return DECLINED;
    status = run_planned(p);
    if (status != DONE)
        return status;
    *found = *(const int64_t *)data_of(p, x);
    return new_value_guard(p, x, &x->guarded_by, run_number_guard, "guard number", *found);
}

/* ---- values of arrays */

typedef struct {
    Place x;
    const Operand *operand;
    int64_t expected[2];
} ValuesGuard;

/* Add the bytes of the elements of an array to two hashes. */
static void mix_elements(const Operand *x, int axis, const char *data, uint64_t *hash)
{
    int64_t i;
    if (axis < x->ndim) {
        for (i = 0; i < x->shape[axis]; i++)
            mix_elements(x, axis + 1, data + i * x->strides[axis], hash);
        return;
    }
    for (i = 0; i < x->itemsize; i += 8) {
        uint64_t value = 0;
        memcpy(&value, data + i, (size_t)(x->itemsize - i < 8 ? x->itemsize - i : 8));
        hash[0] = mixed(hash[0], value);
        hash[1] = mixed(hash[1] + hash[0], value);
    }
}

static void hash_elements(const Operand *x, const char *data, int64_t *found)
{
    uint64_t hash[2] = {1, 2};
    mix_elements(x, 0, data, hash);
    memcpy(found, hash, sizeof(hash));
}

static int run_values_guard(const void *params, Frame *frame)
{
    const ValuesGuard *g = (const ValuesGuard *)params;
    int64_t found[2];
    hash_elements(g->operand, data_at(frame, &g->x), found);
    return check_outcome(frame, 2, found, g->expected);
}

/* Guard the elements of an array, as they are in this run. DECLINED: they are objects. */
static int guard_values(Planner *p, Operand *x)
{
    ValuesGuard *g;
    Call *call;
    if (!is_plain(x) || kind_of_type(x->type) == 0)
        return DECLINED;
    if (is_constant(x) || x->guarded_by == p->serial)
        return DONE;
    call = new_call(p, run_values_guard, "guard values", sizeof(ValuesGuard));
    if (call == NULL)
        return no_memory();
    g = (ValuesGuard *)call->params;
    g->x = placed(x);
    g->operand = x;
    hash_elements(x, data_of(p, x), g->expected);
    call->work = (double)x->size;
    return complete_guard(p, call, x, &x->guarded_by);
}

/* ---- truth */

#define TRUTH_OF(NUMBER, T)                                                                        \
    case NUMBER: return *(const T *)data != 0
#define TRUTH_OF_PAIR(NUMBER, T)                                                                   \
    case NUMBER: return ((const T *)data)[0] != 0 || ((const T *)data)[1] != 0

/* Whether a number is not 0. */
static int truth_of(const char *data, int type)
{
    switch (type) {
        TRUTH_OF(NPY_INT16, int16_t);
        TRUTH_OF(NPY_UINT16, uint16_t);
        TRUTH_OF(NPY_INT32, int32_t);
        TRUTH_OF(NPY_UINT32, uint32_t);
        TRUTH_OF(NPY_INT64, int64_t);
        TRUTH_OF(NPY_UINT64, uint64_t);
        TRUTH_OF(NPY_FLOAT32, float);
        TRUTH_OF(NPY_FLOAT64, double);
        TRUTH_OF_PAIR(NPY_COMPLEX64, float);
        TRUTH_OF_PAIR(NPY_COMPLEX128, double);
    default:
        if (type == NPY_FLOAT16 || PyTypeNum_ISUSERDEF(type)) /* or bfloat16 */
            return (*(const uint16_t *)data & 0x7fff) != 0;
        return *data != 0;
    }
}

/* Whether an operand is one number whose truth is known here. */
static inline int has_truth(const Operand *x)
{
    return is_plain(x) && x->size == 1 && kind_of_type(x->type) != 0;
}

static int run_truth_guard(const void *params, Frame *frame)
{
    const ValueGuard *g = (const ValueGuard *)params;
    const int64_t found = truth_of(data_at(frame, &g->x), g->type);
    return check_outcome(frame, 1, &found, &g->expected);
}

/* Read the truth of a condition, which leads to one segment or another. */
static int guarded_truth(Planner *p, Operand *x, int *found)
{
    int status;
    if (!has_truth(x))
        return DECLINED;
    status = run_planned(p);
    if (status != DONE)
        return status;
    *found = truth_of(data_of(p, x), x->type);
    return new_value_guard(p, x, &x->truth_guarded_by, run_truth_guard, "guard truth", *found);
}

/* ---- conditions that must hold: if one does not, Python raises the error */

static int run_truth_check(const void *params, Frame *frame)
{
    const ValueGuard *g = (const ValueGuard *)params;
    return truth_of(data_at(frame, &g->x), g->type) == g->expected ? DONE : DECLINED;
}

typedef struct {
    Place x, y;
} NumbersCheck;

static int run_numbers_check(const void *params, Frame *frame)
{
    const NumbersCheck *c = (const NumbersCheck *)params;
    const int64_t x = *(const int64_t *)data_at(frame, &c->x);
    return x == *(const int64_t *)data_at(frame, &c->y) ? DONE : DECLINED;
}

#endif
