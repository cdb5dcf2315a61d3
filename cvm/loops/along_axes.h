/* Functions along an axis, found by the dtype: by its kind, as NumPy names it, and its size. */
#ifndef SYMCOMP_ALONG_AXES_H
#define SYMCOMP_ALONG_AXES_H

#include <stdint.h>

/* m slices of n elements. `out` is the result; `second` is another argument, or NULL. */
typedef void line_function(int64_t n, int64_t m, const char *x, int64_t x_step, int64_t x_line,
                           const char *second, int64_t second_step, int64_t second_line, char *out,
                           int64_t out_step, int64_t out_line);

/* The functions along an axis. */
enum { SUMS, PRODUCTS, RECURRENCE, LARGEST, SMALLEST };

/* The second argument of functions for the first in order: how many are wanted, and memory for
   these elements and positions. */
struct first_in_order {
    int64_t count;
    void *elements;
    int64_t *places;
};

/* 0 if there is none for the dtype of x. */
line_function *function_of_lines(int what, char kind, int64_t size);
line_function *function_for_first(int largest, char kind, int64_t size);

/* Set n elements to start, start + step, and so on; 0 if there is no code for the dtype. */
int fill_range(char kind, int64_t size, int64_t n, const char *start, const char *step, char *z);

/* List where runs of equal elements of a sorted array begin, and after them n; return how many runs there
   are, -1 if there is no code for the dtype. */
int64_t list_runs(char kind, int64_t size, int64_t n, const char *sorted, int64_t *starts);

/* List the positions of n elements in their order; equal ones stay in theirs, and NaN comes last. `memory` has as many
   bytes as memory_of_order says, which is -1 if there is no code for the dtype. */
int64_t memory_of_order(char kind, int64_t size, int64_t n);
void order_of(char kind, int64_t size, int64_t n, const char *x, int64_t step, int64_t *places,
              char *memory);

#endif
