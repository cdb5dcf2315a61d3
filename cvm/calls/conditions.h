/* Values that are passed on if conditions hold: lengths, labels, numbers, truth values. */
#ifndef SYMCOMP_CONDITIONS_H
#define SYMCOMP_CONDITIONS_H

#include "views.h"
#include "../loops/labels.h"

enum {
    LENGTH_IS = 0,      /* of axis a of argument i, b */
    LENGTHS_EQUAL = 1,  /* of axis a of argument i and axis b of argument j */
    NUMBERS_EQUAL = 2,  /* arguments i and j */
    IS_TRUE = 3,        /* argument i */
    IS_FALSE = 4,
    BELOW = 5,          /* no element of argument i is negative, or not below argument j */
    MULTIPLE_OF = 6     /* argument i of b */
};

typedef struct {
    int kind, i, a, j, b;
} Condition;

typedef struct {
    int which, n;
    Condition *conditions;
} PassSpec;

typedef struct {
    Place labels, n;
    int64_t count, stride;
    int size, has_signs;
} LabelsCheck;

static int run_labels_check(const void *params, Frame *frame)
{
    const LabelsCheck *c = (const LabelsCheck *)params;
    return all_labels_below(data_at(frame, &c->labels), c->count, c->stride, c->size,
                            c->has_signs, *(const int64_t *)data_at(frame, &c->n))
               ? DONE
               : DECLINED;
}

static int plan_labels_check(Planner *p, const Operand *x, const Operand *n)
{
    const char kind = is_plain(x) ? kind_of_type(x->type) : 0;
    const Operand *reads[2] = {x, n};
    Call *call;
    LabelsCheck *c;
    if (x->ndim != 1 || (kind != 'i' && kind != 'u') || !is_number(n))
        return DECLINED;
    call = new_call(p, run_labels_check, "check labels", sizeof(LabelsCheck));
    if (call == NULL)
        return no_memory();
    c = (LabelsCheck *)call->params;
    c->labels = placed(x);
    c->n = placed(n);
    c->count = x->shape[0];
    c->stride = x->strides[0];
    c->size = x->itemsize;
    c->has_signs = kind == 'i';
    call->work = (double)x->size / 4;
    return set_operands(p, call, 2, reads, 0, NULL);
}

static int plan_numbers_check(Planner *p, const Operand *x, const Operand *y)
{
    const Operand *reads[2] = {x, y};
    Call *call;
    if (!is_number(x) || !is_number(y))
        return DECLINED;
    call = new_call(p, run_numbers_check, "check numbers", sizeof(NumbersCheck));
    if (call == NULL)
        return no_memory();
    ((NumbersCheck *)call->params)->x = placed(x);
    ((NumbersCheck *)call->params)->y = placed(y);
    return set_operands(p, call, 2, reads, 0, NULL);
}

typedef struct {
    Place x;
    int64_t unit;
} MultipleCheck;

static int run_multiple_check(const void *params, Frame *frame)
{
    const MultipleCheck *c = (const MultipleCheck *)params;
    return *(const int64_t *)data_at(frame, &c->x) % c->unit == 0 ? DONE : DECLINED;
}

static int plan_multiple_check(Planner *p, const Operand *x, int64_t unit)
{
    Call *call;
    if (!is_number(x))
        return DECLINED;
    call = new_call(p, run_multiple_check, "check multiple", sizeof(MultipleCheck));
    if (call == NULL)
        return no_memory();
    *(MultipleCheck *)call->params = (MultipleCheck){placed(x), unit};
    return set_operands(p, call, 1, &x, 0, NULL);
}

static int plan_truth_check(Planner *p, const Operand *x, int expected)
{
    Call *call;
    ValueGuard *g;
    if (!has_truth(x))
        return DECLINED;
    call = new_call(p, run_truth_check, "check truth", sizeof(ValueGuard));
    if (call == NULL)
        return no_memory();
    g = (ValueGuard *)call->params;
    g->x = placed(x);
    g->type = x->type;
    g->expected = expected;
    return set_operands(p, call, 1, &x, 0, NULL);
}

static int plan_condition(Planner *p, const Condition *c)
{
    const Operand *x = input_of(p, c->i), *y = input_of(p, c->j);
    if (!is_array(x))
        return DECLINED;
    switch (c->kind) {
    case LENGTH_IS:
        return c->a < x->ndim && x->shape[c->a] == c->b ? DONE : DECLINED;
    case LENGTHS_EQUAL:
        return is_array(y) && c->a < x->ndim && c->b < y->ndim && x->shape[c->a] == y->shape[c->b]
                   ? DONE
                   : DECLINED;
    case NUMBERS_EQUAL:
        return plan_numbers_check(p, x, y);
    case BELOW:
        return plan_labels_check(p, x, y);
    case MULTIPLE_OF:
        return plan_multiple_check(p, x, c->b);
    default:
        return plan_truth_check(p, x, c->kind == IS_TRUE);
    }
}

static int plan_pass(Planner *p, const void *given)
{
    const PassSpec *spec = (const PassSpec *)given;
    int i, status;
    for (i = 0; i < spec->n; i++) {
        status = plan_condition(p, &spec->conditions[i]);
        if (status != DONE)
            return status;
    }
    return give_output(p, 0, input_of(p, spec->which));
}
#endif
