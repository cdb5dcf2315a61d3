// A libcudnn for tests: the functions that symcomp calls, with NVIDIA's names and arguments, by plain loops.
// It refuses arrays that are not by rows, algorithms other than implicit products, and factors other than 1 and 0.
#include "stand_in.h"

enum { SUCCESS = 0, NOT_INITIALIZED = 1001, BAD_PARAM = 2000, TOO_LITTLE = 2006, NO_FIT = 2008, NOT_SUPPORTED = 3000 };
enum { FLOAT, DOUBLE, HALF };
enum { MOST = 5, WORK = 64, IMPLICIT = 1, CROSS_CORRELATION = 1, FULL_MATH = 3 };

struct Handle { void *stream; };
struct Array { int kind, n, shape[MOST]; };
struct Windows { int n, pads[MOST], strides[MOST], dilation[MOST], groups, math, of_sums; };
static long long n_descriptors;
static int last_math, is_refusing;
EXPORT long long fake_descriptors() { return n_descriptors; }
EXPORT int fake_math() { return last_math; }
EXPORT void fake_refusal(int is_on) { is_refusing = is_on; }

API cudnnCreate(Handle **h) { *h = (Handle *)calloc(1, sizeof(Handle)); return SUCCESS; }
API cudnnSetStream(Handle *h, void *stream) { h->stream = stream; return SUCCESS; }
#define DESCRIPTORS(KIND, T)                                                                                          \
  API cudnnCreate##KIND##Descriptor(T **d) { ++n_descriptors; *d = (T *)calloc(1, sizeof(T)); return SUCCESS; }       \
  API cudnnDestroy##KIND##Descriptor(T *d) { --n_descriptors; free(d); return SUCCESS; }
DESCRIPTORS(Tensor, Array)
DESCRIPTORS(Filter, Array)
DESCRIPTORS(Convolution, Windows)

static int set(Array *d, int kind, int n, const int *shape) {
  if (kind < FLOAT || kind > HALF || n < 4 || n > MOST) return BAD_PARAM;
  d->kind = kind, d->n = n;
  for (int i = 0; i < n; i++) {
    if (shape[i] < 1) return BAD_PARAM;
    d->shape[i] = shape[i];
  }
  return SUCCESS;
}
API cudnnSetTensorNdDescriptor(Array *d, int kind, int n, const int *shape, const int *strides) {
  if (int code = set(d, kind, n, shape)) return code;
  for (int i = n - 1, step = 1; i >= 0; step *= shape[i--]) if (strides[i] != step) return NOT_SUPPORTED;
  return SUCCESS;
}
API cudnnSetFilterNdDescriptor(Array *d, int kind, int by_rows, int n, const int *shape) {
  return by_rows == 0 ? set(d, kind, n, shape) : NOT_SUPPORTED;
}
API cudnnSetConvolutionNdDescriptor(Windows *d, int n, const int *pads, const int *strides, const int *dilation,
                                    int mode, int of_sums) {
  if (n < 2 || n > MOST - 2 || mode != CROSS_CORRELATION) return BAD_PARAM;
  d->n = n, d->groups = 1, d->math = 0, d->of_sums = of_sums;
  for (int i = 0; i < n; i++) {
    if (pads[i] < 0 || strides[i] < 1 || dilation[i] < 1) return BAD_PARAM;
    d->pads[i] = pads[i], d->strides[i] = strides[i], d->dilation[i] = dilation[i];
  }
  return SUCCESS;
}
API cudnnSetConvolutionGroupCount(Windows *d, int groups) { d->groups = groups; return groups < 1 ? BAD_PARAM : SUCCESS; }
API cudnnSetConvolutionMathType(Windows *d, int math) {
  d->math = math;
  return math < 0 || math > FULL_MATH ? BAD_PARAM : SUCCESS;
}

struct Problem { Array x, w, y; Windows windows; };
static int problem(const Handle *h, const Array *x, const Array *w, const Array *y, const Windows *d, int algorithm,
                   Problem *found) {
  if (!h || !x || !w || !y || !d) return NOT_INITIALIZED;
  if (algorithm != IMPLICIT || is_refusing) return NOT_SUPPORTED;
  *found = {*x, *w, *y, *d};
  const int n = d->n;
  if (x->n != n + 2 || w->n != n + 2 || y->n != n + 2 || x->kind != w->kind || x->kind != y->kind) return BAD_PARAM;
  if (d->of_sums != (x->kind == DOUBLE ? DOUBLE : FLOAT)) return BAD_PARAM;
  if (x->shape[0] != y->shape[0] || w->shape[0] != y->shape[1] || w->shape[1] * d->groups != x->shape[1] ||
      w->shape[0] % d->groups)
    return NO_FIT;
  for (int a = 0; a < n; a++) {
    const int span = (w->shape[a + 2] - 1) * d->dilation[a] + 1, room = x->shape[a + 2] + 2 * d->pads[a] - span;
    if (room < 0 || room / d->strides[a] + 1 != y->shape[a + 2]) return NO_FIT;
  }
  return SUCCESS;
}

enum Role { TO_RESULT, TO_IMAGE, TO_KERNELS };
static int64_t size_of(const Array &d) {
  int64_t n = 1;
  for (int i = 0; i < d.n; i++) n *= d.shape[i];
  return n;
}
// Count up the numbers of axes; return whether there is a next one.
static bool next(int *at, const int *shape, int n) {
  for (int i = n - 1; i >= 0; i--) {
    if (++at[i] < shape[i]) return true;
    at[i] = 0;
  }
  return false;
}
template <class T> struct Convolve {
  Problem p;
  Role role;
  const T *x, *w, *y;
  T *made;
  char *work;
  int operator()() const {
    work[0] = work[WORK - 1] = 0;
    const int n = p.windows.n, of_group = p.w.shape[0] / p.windows.groups;
    const int64_t size = size_of(role == TO_RESULT ? p.y : role == TO_IMAGE ? p.x : p.w);
    double *sums = (double *)calloc(size, sizeof(double));
    int i[MOST] = {0};  // image, kernel, and a window
    for (int64_t at_y = 0; ; at_y++) {
      int j[MOST] = {0};  // a kernel's channel and element
      const int *kernel = p.w.shape + 1;
      for (int64_t at_w = (int64_t)i[1] * (size_of(p.w) / p.w.shape[0]); ; at_w++) {
        int64_t at_x = (int64_t)i[0] * p.x.shape[1] + i[1] / of_group * p.w.shape[1] + j[0];
        bool is_inside = true;
        for (int a = 0; a < n; a++) {
          const int k = i[a + 2] * p.windows.strides[a] + j[a + 1] * p.windows.dilation[a] - p.windows.pads[a];
          is_inside = is_inside && k >= 0 && k < p.x.shape[a + 2];
          at_x = at_x * p.x.shape[a + 2] + k;
        }
        if (is_inside) {
          if (role == TO_RESULT) sums[at_y] += (double)x[at_x] * (double)w[at_w];
          if (role == TO_IMAGE) sums[at_x] += (double)y[at_y] * (double)w[at_w];
          if (role == TO_KERNELS) sums[at_w] += (double)y[at_y] * (double)x[at_x];
        }
        if (!next(j, kernel, n + 1)) break;
      }
      if (!next(i, p.y.shape, n + 2)) break;
    }
    for (int64_t k = 0; k < size; k++) made[k] = (T)sums[k];
    free(sums);
    return 0;
  }
};
template <class T> static int enqueue_as(void *stream, const Problem &p, Role role, const void *x, const void *w,
                                         const void *y, void *made, void *work) {
  return enqueue(stream, Convolve<T>{p, role, (const T *)x, (const T *)w, (const T *)y, (T *)made, (char *)work});
}
static int convolve(Handle *h, const Problem &p, Role role, const void *one, const void *zero, const void *x,
                    const void *w, const void *y, void *made, void *work, size_t size) {
  if (!h->stream) return NOT_INITIALIZED;
  if (int code = counted()) return code;
  if (!work || size < WORK) return TOO_LITTLE;
  const int kind = p.x.kind;
  const double alpha = kind == DOUBLE ? *(const double *)one : *(const float *)one;
  const double beta = kind == DOUBLE ? *(const double *)zero : *(const float *)zero;
  if (alpha != 1 || beta != 0) return BAD_PARAM;
  last_math = p.windows.math;
  return (kind == DOUBLE ? enqueue_as<double> : kind == FLOAT ? enqueue_as<float> : enqueue_as<_Float16>)(
      h->stream, p, role, x, w, y, made, work);
}

#define FUNCTION(KIND, ROLE, FIRST, SECOND, MADE, X, W, Y)                                                            \
  API cudnnGetConvolution##KIND##WorkspaceSize(Handle *h, const Array *FIRST, const Array *SECOND, const Windows *d,  \
                                               const Array *MADE, int algorithm, size_t *size) {                      \
    Problem p;                                                                                                        \
    *size = WORK;                                                                                                     \
    return problem(h, x, w, y, d, algorithm, &p);                                                                     \
  }                                                                                                                   \
  API cudnnConvolution##KIND(Handle *h, const void *one, const Array *FIRST, const void *first, const Array *SECOND,  \
                             const void *second, const Windows *d, int algorithm, void *work, size_t size,            \
                             const void *zero, const Array *MADE, void *made) {                                       \
    Problem p;                                                                                                        \
    if (int code = problem(h, x, w, y, d, algorithm, &p)) return code;                                                \
    return convolve(h, p, ROLE, one, zero, X, W, Y, made, work, size);                                                \
  }
FUNCTION(Forward, TO_RESULT, x, w, y, first, second, 0)
FUNCTION(BackwardData, TO_IMAGE, w, y, x, 0, first, second)
FUNCTION(BackwardFilter, TO_KERNELS, x, y, w, first, 0, second)
