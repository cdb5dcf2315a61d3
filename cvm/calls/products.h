/* Products of matrices, stacks of matrices and vectors: beta c + alpha op(a) op(b). */
#ifndef SYMCOMP_CALLS_PRODUCTS_H
#define SYMCOMP_CALLS_PRODUCTS_H

#include "axis.h"
#include "product_runs.h"

/* A stack of matrices: from one row, column and matrix to the next in bytes. */
typedef struct {
    const Operand *operand;
    int64_t count, rows, columns, down, along, each;
} Stack;

/* Read an operand of one to three axes; a vector is a row unless it is a column. */
static void read_stack_of(const Operand *x, int turned, int is_column, Stack *s)
{
    const int n = x->ndim;
    s->operand = x;
    s->count = 1;
    s->each = 0;
    s->rows = s->columns = 1;
    s->down = s->along = x->itemsize;
    if (n > 1) {
        s->rows = x->shape[n - 2];
        s->down = x->strides[n - 2];
        s->columns = x->shape[n - 1];
        s->along = x->strides[n - 1];
    } else if (is_column) {
        s->rows = x->shape[0];
        s->down = x->strides[0];
    } else {
        s->columns = x->shape[0];
        s->along = x->strides[0];
    }
    if (n == 3) {
        s->count = x->shape[0];
        s->each = x->strides[0];
    }
    if (turned) {
        const int64_t rows = s->rows, down = s->down;
        s->rows = s->columns;
        s->columns = rows;
        s->down = s->along;
        s->along = down;
    }
}

/* Numbers of float32 as float16. */
static int run_narrowing(const void *params, Frame *frame)
{
    const WideningCall *c = (const WideningCall *)params;
    const float *x = (const float *)data_at(frame, &c->from);
    uint16_t *z = (uint16_t *)data_at(frame, &c->to);
    int64_t i;
    for (i = 0; i < c->n; i++)
        z[i] = BITS_OF_NEAREST_HALF(x[i]);
    return DONE;
}

/* Whether a side is one matrix in C order, which is multiplied as it is. */
static inline int is_usual_side(const Operand *x, int type, int turned)
{
    return x->ndim == 2 && !turned && x->flags & C_ORDER && blas_type(type) >= 0 && x->size > 0 &&
           x->size <= INT32_MAX;
}

/* One side of a product: in a layout that can be multiplied. NULL: no memory. */
static const Operand *read_side(Planner *p, const Operand *x, int type, int turned, int is_column,
                                Stack *s, Matrix *m)
{
    if (type == NPY_FLOAT32 && x->type == NPY_FLOAT16)
        x = orderable(p, (Operand *)x);
    if (x == NULL)
        return NULL;
    if (is_usual_side(x, type, turned)) {
        *s = (Stack){x, 1, x->shape[0], x->shape[1], x->strides[0], x->strides[1], 0};
        *m = (Matrix){NULL, (int)x->shape[0], (int)x->shape[1], (blas_int)x->shape[1], 0};
        return x;
    }
    read_stack_of(x, turned, is_column, s);
    *m = (Matrix){.rows = (int)s->rows, .columns = (int)s->columns};
    if (blas_type(type) < 0 || s->rows == 0 || s->columns == 0)
        return x;
    if (!lay_out(s->rows, s->columns, s->down, s->along, x->itemsize, m)) {
        x = scratch_copy(p, x);
        if (x == NULL)
            return NULL;
        read_stack_of(x, turned, is_column, s);
        if (!lay_out(s->rows, s->columns, s->down, s->along, x->itemsize, m))
            m->rows = -1; /* sides that BLAS cannot count */
    }
    return x;
}

typedef struct {
    int ndim;                   /* of the result */
    int c, alpha, a, b, beta;   /* inputs; -1: no c, and 1 for a factor */
    int trans_a, trans_b, outer, destroys_c;
    int type, itemsize;
    int threads;                /* sharing large products; 0: these are left to BLAS */
} ProductSpec;

/* Where the result goes: over c, or over another operand that can hold it and is not read. */
static Operand *product_output(Planner *p, const ProductSpec *spec, const Operand *a,
                               const Operand *b, Operand *c, const int64_t *shape)
{
    Operand *over =
        spec->destroys_c && c->flags & WRITEABLE && !is_constant(c)
            ? c
            : overwritable_operand(p, 0, spec->type, spec->ndim, shape);
    if (over != NULL && over->flags & C_ORDER && !may_overlap(over, a) && !may_overlap(over, b) &&
        (c == NULL || lies_at(c, over, 0, over->strides) || !may_overlap(over, c)))
        return written_over(p, over);
    return new_output_apart(p, 0, spec->type, spec->itemsize, spec->ndim, shape, NULL);
}

/* How the matrices are multiplied, for these lengths. */
static void choose_way(ProductCall *c, int is_single)
{
    const double work = (double)c->left.rows * c->left.columns * c->right.columns;
    if (blas_type(c->type) < 0) {
        c->way = BY_LOOPS;
    } else if (blas_type(c->type) < 2 && work <= FEW_PRODUCTS) {
        c->way = BY_FEW;
    } else {
        c->way = BY_BLAS;
        if (!is_single || blas_type(c->type) > 1)
            return;
        if (c->right.columns == 1 && c->left.rows > 1) {
            /* z^T = b^T a^T */
            const Matrix first = c->left;
            const Place place = c->a;
            c->left = c->right;
            c->right = first;
            c->a = c->b;
            c->b = place;
            turn(&c->left);
            turn(&c->right);
        }
        if (is_row(c->type, &c->left, &c->right))
            c->way = BY_ROW;
    }
}

/* A product reads its sides, factors and c, and writes z. */
enum { MOST_READ = 6 };

/* Emit the product of two sides that fit together into ``z``, which lies in C order. */
static int emit_product(Planner *p, const Stack *a, const Stack *b, const Matrix *left,
                        const Matrix *right, int type, const Operand *z, const Operand *c,
                        const Operand *alpha, const Operand *beta, int threads)
{
    double factors[2][2] = {{1, 0}, {c != NULL, 0}};
    ProductCall *k = (ProductCall *)pool_take(&p->pool, sizeof(ProductCall) +
                                                            MOST_READ * sizeof(Operand *));
    Call *call = k == NULL ? NULL : append_call(p, run_product, "product", k);
    const Operand **operands;
    int n = 2;
    if (call == NULL)
        return no_memory();
    *k = (ProductCall){
        .type = type, .itemsize = z->itemsize, .a = placed(a->operand), .b = placed(b->operand),
        .z = placed(z), .count = a->count, .each_a = a->each, .each_b = b->each,
        .each_z = a->rows * b->columns * z->itemsize, .left = *left, .right = *right,
        .strides = {a->down, a->along, b->down, b->along}, .alpha_type = -1, .beta_type = -1};
    operands = call->operands = (const Operand **)(k + 1);
    operands[0] = a->operand;
    operands[1] = b->operand;
    if (blas_type(type) < 0)
        k->loops = function_that_multiplies(kind_of_type(type), z->itemsize);
    if (alpha != NULL) {
        k->alpha = placed(alpha);
        if (is_constant(alpha))
            read_factor(p->frame, &k->alpha, alpha->type, factors[0]);
        else
            k->alpha_type = alpha->type;
        operands[n++] = alpha;
    }
    if (beta != NULL) {
        k->beta = placed(beta);
        if (is_constant(beta))
            read_factor(p->frame, &k->beta, beta->type, factors[1]);
        else
            k->beta_type = beta->type;
        operands[n++] = beta;
    }
    set_factors(&k->by, factors[0][0], factors[0][1], factors[1][0], factors[1][1]);
    if (c != NULL) {
        k->has_c = 1;
        k->c = placed(c);
        operands[n++] = c;
        if (!lies_at(c, z, 0, z->strides)) {
            k->copy_of_c = (struct axes *)pool_new(&p->pool, sizeof(struct axes));
            if (k->copy_of_c == NULL)
                return no_memory();
            order_axes(k->copy_of_c, z->ndim, z->shape, z->strides, c->strides);
        }
    }
    choose_way(k, a->count == 1);
    if (k->way == BY_ROW) {
        call->run = run_row_product;
        if (c != NULL && c->flags & C_ORDER)
            k->copy_of_c = NULL;
    }
    call->work = (double)a->count * a->rows * a->columns * b->columns;
    call->nanoseconds = NANOSECONDS_OF_CALL + call->work * nanoseconds_of_product(k);
    call->is_independent = 1;
    divide_product(k, call->work, threads);
    call->uses_threads = k->threads > 1;
    call->uses_blas = is_shared_by_blas(k);
    operands[n] = z;
    call->n_reads = (short)n;
    call->n_writes = 1;
    return DONE;
}

/* Whether an input is a number of the type of the product. */
static int is_factor(const Operand *x, int type)
{
    return is_plain(x) && x->type == type && x->size == 1 && blas_type(type) >= 0;
}

/* A stack of zeros as a side of a product. NULL: no memory. */
static const Operand *side_of_zeros(Planner *p, int type, int itemsize, int64_t count, int64_t rows,
                                    int64_t columns, Stack *s, Matrix *m)
{
    const int64_t shape[3] = {count, rows, columns};
    Operand *x = new_scratch(p, type, itemsize, 3, shape);
    return x == NULL || emit_zeros(p, x, 0, shape) != DONE ? NULL
                                                           : read_side(p, x, type, 0, 0, s, m);
}

static int plan_product(Planner *p, const void *given)
{
    const ProductSpec *spec = (const ProductSpec *)given;
    const Operand *a = input_of(p, spec->a), *b = input_of(p, spec->b);
    Operand *c = spec->c < 0 ? NULL : input_of(p, spec->c), *z, *wide;
    const Operand *alpha = spec->alpha < 0 ? NULL : input_of(p, spec->alpha);
    const Operand *beta = spec->beta < 0 ? NULL : input_of(p, spec->beta);
    const int type = spec->type == NPY_FLOAT16 ? NPY_FLOAT32 : spec->type;
    int64_t shape[3];
    Stack left, right;
    Matrix x, y;
    int at = 0, status;
    if (!is_plain(a) || !is_plain(b) || a->ndim < 1 || b->ndim < 1 || a->ndim > 3 || b->ndim > 3 ||
        a->type != spec->type || b->type != spec->type ||
        (alpha != NULL && !is_factor(alpha, spec->type)) ||
        (beta != NULL && !is_factor(beta, spec->type)) ||
        (c != NULL && (!is_plain(c) || c->type != spec->type || blas_type(type) < 0)))
        return DECLINED;
    if (blas_type(type) < 0 && function_that_multiplies(kind_of_type(type), spec->itemsize) == NULL)
        return DECLINED;
    a = read_side(p, a, type, spec->trans_a, spec->outer, &left, &x);
    b = a == NULL ? NULL : read_side(p, b, type, spec->trans_b, !spec->outer, &right, &y);
    if (b == NULL)
        return no_memory();
    if (left.columns != right.rows || left.count != right.count || x.rows < 0 || y.rows < 0)
        return DECLINED;
    if (alpha != NULL && is_constant(alpha) && !truth_of(data_of(p, alpha), alpha->type))
        return DECLINED;
    if (spec->ndim == 3)
        shape[at++] = left.count;
    shape[at] = spec->ndim == 1 && left.rows == 1 ? right.columns : left.rows;
    if (spec->ndim > 1)
        shape[at + 1] = right.columns;
    if (c != NULL && (c->ndim != spec->ndim || memcmp(c->shape, shape, (size_t)spec->ndim * 8)))
        return DECLINED;
    z = product_output(p, spec, a, b, c, shape);
    if (z == NULL)
        return no_memory();
    if (z->size == 0)
        return give_output(p, 0, z);
    if (left.columns == 0 && c == NULL) {
        status = emit_zeros(p, z, 0, z->shape);
        return status == DONE ? give_output(p, 0, z) : status;
    }
    if (left.columns == 0) {
        /* beta c + alpha 0 */
        a = side_of_zeros(p, type, z->itemsize, left.count, left.rows, 1, &left, &x);
        b = a == NULL ? NULL
                      : side_of_zeros(p, type, z->itemsize, right.count, 1, right.columns, &right, &y);
        if (b == NULL)
            return no_memory();
    }
    wide = type == spec->type ? z : new_scratch(p, type, 4, z->ndim, z->shape);
    if (wide == NULL)
        return no_memory();
    status = emit_product(p, &left, &right, &x, &y, type, wide, c, alpha, beta, spec->threads);
    if (status == DONE && wide != z) {
        Call *call = new_call(p, run_narrowing, "cast", sizeof(WideningCall));
        WideningCall *k;
        if (call == NULL)
            return no_memory();
        k = (WideningCall *)call->params;
        k->from = placed(wide);
        k->to = placed(z);
        k->n = z->size;
        call->is_independent = 1;
        status = set_operands(p, call, 1, (const Operand **)&wide, 1, (const Operand **)&z);
    }
    return status == DONE ? give_output(p, 0, z) : status;
}

/* ---- chains of products */

typedef struct {
    int type, itemsize, ndim;
    int threads;                /* as of a ProductSpec */
    int *written;               /* the order as it was written, for matrices of which one is empty */
} ChainSpec;

/* The product of several matrices, the first and the last of which may be vectors, in the order of
   fewest multiplications for their lengths. */
static int plan_chain(Planner *p, const void *given)
{
    const ChainSpec *spec = (const ChainSpec *)given;
    const int n = p->instruction->n_inputs;
    const int type = spec->type == NPY_FLOAT16 ? NPY_FLOAT32 : spec->type;
    const Operand *values[2 * MOST_FACTORS];
    int64_t length[MOST_FACTORS + 1];
    int order[2 * MOST_FACTORS], i, is_empty = 0, status;
    Operand *z = NULL;
    if (n > MOST_FACTORS || n < 2)
        return DECLINED;
    for (i = 0; i < n; i++) {
        const Operand *x = values[i] = input_of(p, i);
        if (!is_plain(x) || x->type != spec->type || x->ndim < 1 || x->ndim > 2 ||
            (x->ndim == 1 && i > 0 && i < n - 1))
            return DECLINED;
        if (i == 0)
            length[0] = x->ndim == 2 ? x->shape[0] : 1;
        else if (x->shape[0] != length[i])
            return DECLINED;
        length[i + 1] = i == 0 ? x->shape[x->ndim - 1] : x->ndim == 2 ? x->shape[1] : 1;
    }
    for (i = 0; i <= n; i++)
        is_empty |= length[i] == 0;
    if (is_empty)
        memcpy(order, spec->written, 2 * (size_t)(n - 1) * sizeof(int));
    else
        best_order(n, length, order);
    for (i = 0; i < n - 1; i++) {
        const Operand *a = values[order[2 * i]], *b = values[order[2 * i + 1]];
        Stack left, right;
        Matrix x, y;
        int64_t shape[2];
        const int is_last = i == n - 2, ndim = a->ndim + b->ndim - 2;
        a = read_side(p, a, type, 0, 0, &left, &x);
        b = a == NULL ? NULL : read_side(p, b, type, 0, 1, &right, &y);
        if (b == NULL)
            return no_memory();
        if (x.rows < 0 || y.rows < 0)
            return DECLINED;
        shape[0] = ndim == 1 && left.rows == 1 ? right.columns : left.rows;
        shape[1] = right.columns;
        z = is_last && type == spec->type
                ? new_output_apart(p, 0, spec->type, spec->itemsize, ndim, shape, NULL)
                : new_scratch(p, type, type == spec->type ? spec->itemsize : 4, ndim, shape);
        if (z == NULL)
            return no_memory();
        values[n + i] = z;
        status = z->size == 0             ? DONE
                 : left.columns == 0 ? emit_zeros(p, z, 0, z->shape)
                                     : emit_product(p, &left, &right, &x, &y, type, z, NULL, NULL,
                                                    NULL, spec->threads);
        if (status != DONE)
            return status;
    }
    if (type != spec->type) {
        Operand *narrow = new_output_apart(p, 0, spec->type, 2, z->ndim, z->shape, NULL);
        Call *call = new_call(p, run_narrowing, "cast", sizeof(WideningCall));
        WideningCall *k;
        if (call == NULL || narrow == NULL)
            return no_memory();
        k = (WideningCall *)call->params;
        k->from = placed(z);
        k->to = placed(narrow);
        k->n = z->size;
        call->is_independent = 1;
        status = set_operands(p, call, 1, (const Operand **)&z, 1, (const Operand **)&narrow);
        if (status != DONE)
            return status;
        z = narrow;
    }
    return give_output(p, 0, z);
}

#endif
