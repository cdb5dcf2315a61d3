// A libcusolver for tests: the functions that symcomp calls, with NVIDIA's names and arguments, by plain loops.
#include "fake_matrices.h"

enum { SUCCESS = 0, NOT_INITIALIZED = 1, INVALID_VALUE = 3, INVALID_WORKSPACE = 31 };

struct Handle { void *stream; };
API cusolverDnCreate(Handle **h) { *h = (Handle *)calloc(1, sizeof(Handle)); return SUCCESS; }
API cusolverDnSetStream(Handle *h, void *stream) { h->stream = stream; return SUCCESS; }
static int problem(const Handle *h) { return h && h->stream ? counted() : NOT_INITIALIZED; }

#define REFUSED(CONDITION) \
  if (int code = problem(h)) return code; \
  if (CONDITION) return INVALID_VALUE
#define FUNCTIONS(LETTER, T)                                                                                          \
  API cusolverDn##LETTER##potrf_bufferSize(Handle *h, int triangle, int n, T *, int step, int *size) {                \
    if (!h || (triangle & ~1) || n < 0 || step < n) return INVALID_VALUE;                                             \
    *size = WORK;                                                                                                     \
    return SUCCESS;                                                                                                   \
  }                                                                                                                   \
  API cusolverDn##LETTER##potrf(Handle *h, int triangle, int n, T *a, int step, T *work, int size, int *info) {       \
    REFUSED((triangle & ~1) || n < 0 || step < n);                                                                    \
    if (!work || size < WORK) return INVALID_WORKSPACE;                                                               \
    return enqueue(h->stream, Factor<T>{{a, step, triangle == UPPER}, n, work, info});                                \
  }                                                                                                                   \
  API cusolverDn##LETTER##potrfBatched(Handle *h, int triangle, int n, T **a, int step, int *info, int count) {        \
    REFUSED((triangle & ~1) || n < 1 || step < n || count < 1);                                                       \
    return enqueue(h->stream, FactorEach<T>{triangle == UPPER, n, step, count, a, info});                             \
  }                                                                                                                   \
  API cusolverDn##LETTER##potrs(Handle *h, int triangle, int n, int k, T *a, int step, T *b, int other, int *info) {  \
    REFUSED((triangle & ~1) || n < 0 || k < 0 || step < n || other < n);                                              \
    return enqueue(h->stream, SolveFactored<T>{{a, step, triangle == UPPER}, n, k, other, b, info});                  \
  }                                                                                                                   \
  API cusolverDn##LETTER##getrf_bufferSize(Handle *h, int m, int n, T *, int step, int *size) {                       \
    if (!h || m < 0 || n < 0 || step < m) return INVALID_VALUE;                                                       \
    *size = WORK;                                                                                                     \
    return SUCCESS;                                                                                                   \
  }                                                                                                                   \
  API cusolverDn##LETTER##getrf(Handle *h, int m, int n, T *a, int step, T *work, int *pivots, int *info) {           \
    REFUSED(m < 0 || n < 0 || step < m);                                                                              \
    if (!work) return INVALID_WORKSPACE;                                                                              \
    return enqueue(h->stream, Eliminate<T>{{a, step, 0}, m, n, work, pivots, info});                                  \
  }                                                                                                                   \
  API cusolverDn##LETTER##getrs(Handle *h, int op, int n, int k, T *a, int step, const int *pivots, T *b, int other,  \
                                int *info) {                                                                          \
    REFUSED((op & ~1) || n < 0 || k < 0 || step < n || other < n);                                                    \
    return enqueue(h->stream, SolveEliminated<T>{{a, step, 0}, op, n, k, other, pivots, b, info});                    \
  }
FUNCTIONS(S, float)
FUNCTIONS(D, double)
#include "fake_decompositions.h"
