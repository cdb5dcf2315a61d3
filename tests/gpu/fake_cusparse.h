// A libcusparse for tests: the functions that symcomp calls, with NVIDIA's names and arguments, by plain loops.
// It refuses descriptors without addresses, sparse arrays at odd ones, reproducible algorithms of matrices that are
// transposed, and factors other than 1 and 0; results are read, and multiplied by 0. Indices are not checked.
#include "stand_in.h"
#include <complex>

enum { SUCCESS = 0, NOT_INITIALIZED = 1, INVALID = 3, NOT_SUPPORTED = 10 };
enum { FLOAT = 0, DOUBLE = 1, COMPLEX_FLOAT = 4, COMPLEX_DOUBLE = 5, INDEX_32 = 2, INDEX_64 = 3, BY_COLUMNS = 1, BY_ROWS = 2 };
enum { AS_IT_IS = 0, TRANSPOSED = 1, SPMV_CSR_ALG2 = 3, SPMM_CSR_ALG3 = 12, SORTING = 1 };
enum { WORK = 64, ALIGNMENT = 16 };

struct Handle { void *stream; };
struct Sparse { int64_t rows, columns, count; char *pointers, *indices, *values; int index_type, kind; };
struct Dense { int64_t rows, columns, apart; char *values; int kind, order; };
struct Vector { int64_t n; char *values; int kind; };
static long long n_descriptors;
static int last_algorithm, last_turned;
EXPORT long long fake_descriptors() { return n_descriptors; }
EXPORT int fake_algorithm() { return last_algorithm; }
EXPORT int fake_turned() { return last_turned; }

static bool is_kind(int kind) { return kind == FLOAT || kind == DOUBLE || kind == COMPLEX_FLOAT || kind == COMPLEX_DOUBLE; }
static size_t size_of(int kind) { return kind == FLOAT ? 4 : kind == COMPLEX_DOUBLE ? 16 : 8; }
template <class T> static int made(T **found, const T &d) {
  ++n_descriptors;
  *found = (T *)malloc(sizeof d);
  **found = d;
  return SUCCESS;
}
static int gone(const void *d) { --n_descriptors; free((void *)d); return SUCCESS; }

API cusparseCreate(Handle **h) { *h = (Handle *)calloc(1, sizeof(Handle)); return SUCCESS; }
API cusparseSetStream(Handle *h, void *stream) { h->stream = stream; return SUCCESS; }
API cusparseCreateCsr(Sparse **d, int64_t rows, int64_t columns, int64_t count, char *pointers, char *indices, char *values,
                      int pointer_type, int index_type, int base, int kind) {
  if (rows < 0 || columns < 0 || count < 0 || !pointers || !indices || !values || !is_kind(kind)) return INVALID;
  if (pointer_type != index_type || (index_type != INDEX_32 && index_type != INDEX_64) || base != 0) return INVALID;
  return made(d, Sparse{rows, columns, count, pointers, indices, values, index_type, kind});
}
API cusparseCreateDnMat(Dense **d, int64_t rows, int64_t columns, int64_t apart, char *values, int kind, int order) {
  if (!values || !is_kind(kind) || apart < (order == BY_ROWS ? columns : rows)) return INVALID;
  if (order != BY_ROWS && order != BY_COLUMNS) return INVALID;
  return made(d, Dense{rows, columns, apart, values, kind, order});
}
API cusparseCreateDnVec(Vector **d, int64_t n, char *values, int kind) {
  return !values || !is_kind(kind) ? INVALID : made(d, Vector{n, values, kind});
}
API cusparseDestroySpMat(const Sparse *d) { return gone(d); }
API cusparseDestroyDnMat(const Dense *d) { return gone(d); }
API cusparseDestroyDnVec(const Vector *d) { return gone(d); }
API cusparseCsrSetPointers(Sparse *d, char *pointers, char *indices, char *values) {
  d->pointers = pointers, d->indices = indices, d->values = values;
  return SUCCESS;
}
API cusparseDnMatSetValues(Dense *d, char *values) { d->values = values; return SUCCESS; }
API cusparseDnVecSetValues(Vector *d, char *values) { d->values = values; return SUCCESS; }

static bool is_odd(const Sparse &s) {
  return ((uintptr_t)s.pointers | (uintptr_t)s.indices | (uintptr_t)s.values) % ALIGNMENT != 0;
}
static int64_t number(const char *at, int64_t i, int type) { return type == INDEX_32 ? ((const int32_t *)at)[i] : ((const int64_t *)at)[i]; }
template <class T> static T &element(const Dense &d, int64_t i, int64_t j, int turned = AS_IT_IS) {
  if (turned == TRANSPOSED) return element<T>(d, j, i);
  return ((T *)d.values)[d.order == BY_ROWS ? i * d.apart + j : j * d.apart + i];
}
static Dense as_column(const Vector &v) { return {v.n, 1, 1, v.values, v.kind, BY_ROWS}; }

// C = alpha op(A) op(B) + beta C, from the last entry on if A is transposed: NVIDIA promises no order then.
template <class T> struct Multiply {
  Sparse a;
  Dense b, c;
  int turned, turned_b;
  T alpha, beta;
  char *work;
  int operator()() const {
    work[0] = work[WORK - 1] = 0;
    for (int64_t i = 0; i < c.rows; i++)
      for (int64_t j = 0; j < c.columns; j++) element<T>(c, i, j) *= beta;
    for (int64_t r = 0; r < a.rows; r++) {
      const int64_t row = turned ? a.rows - 1 - r : r;
      for (int64_t k = number(a.pointers, row, a.index_type); k < number(a.pointers, row + 1, a.index_type); k++) {
        const int64_t column = number(a.indices, k, a.index_type), i = turned ? column : row, l = turned ? row : column;
        for (int64_t j = 0; j < c.columns; j++)
          element<T>(c, i, j) += alpha * ((const T *)a.values)[k] * element<T>(b, l, j, turned_b);
      }
    }
    return 0;
  }
};
// The values of C = alpha op(A) op(B) at its places + beta C.
template <class T> struct Sample {
  Dense a, b;
  Sparse c;
  int turned, turned_b;
  int64_t inner;
  T alpha, beta;
  char *work;
  int operator()() const {
    work[0] = work[WORK - 1] = 0;
    for (int64_t i = 0; i < c.rows; i++)
      for (int64_t k = number(c.pointers, i, c.index_type); k < number(c.pointers, i + 1, c.index_type); k++) {
        T total = 0;
        for (int64_t l = 0; l < inner; l++)
          total += element<T>(a, i, l, turned) * element<T>(b, l, number(c.indices, k, c.index_type), turned_b);
        T &value = ((T *)c.values)[k];
        value = alpha * total + beta * value;
      }
    return 0;
  }
};

#define FOR_KIND(KIND, DO)                                   \
  switch (KIND) {                                            \
    case FLOAT: { typedef float T; DO; }                     \
    case DOUBLE: { typedef double T; DO; }                   \
    case COMPLEX_FLOAT: { typedef std::complex<float> T; DO; }   \
    case COMPLEX_DOUBLE: { typedef std::complex<double> T; DO; } \
  }                                                          \
  return INVALID

static int64_t of_two(int turned, int64_t n, int64_t m) { return turned == TRANSPOSED ? m : n; }
static int multiply(Handle *h, int turned, int turned_b, const void *alpha, const Sparse *a, const Dense &b, const void *beta,
                    const Dense &c, int kind, int algorithm, int reproducible, char *work) {
  if (!h || !a) return NOT_INITIALIZED;
  if (a->kind != kind || b.kind != kind || c.kind != kind || turned > TRANSPOSED || turned_b > TRANSPOSED) return INVALID;
  if (of_two(turned, a->rows, a->columns) != c.rows || of_two(turned, a->columns, a->rows) != of_two(turned_b, b.rows, b.columns) ||
      of_two(turned_b, b.columns, b.rows) != c.columns)
    return INVALID;
  if (algorithm != 0 && (algorithm != reproducible || turned)) return NOT_SUPPORTED;
  if (!work) return SUCCESS;  // only asked
  if (is_odd(*a)) return INVALID;
  last_algorithm = algorithm, last_turned = turned;
  if (int code = counted()) return code;
  FOR_KIND(kind, {
    if (*(const T *)alpha != T(1) || *(const T *)beta != T(0)) return NOT_SUPPORTED;
    return enqueue(h->stream, Multiply<T>{*a, b, c, turned, turned_b, *(const T *)alpha, *(const T *)beta, work});
  });
}
API cusparseSpMM(Handle *h, int turned, int turned_b, const void *alpha, const Sparse *a, const Dense *b, const void *beta,
                 const Dense *c, int kind, int algorithm, char *work) {
  return multiply(h, turned, turned_b, alpha, a, *b, beta, *c, kind, algorithm, SPMM_CSR_ALG3, work);
}
API cusparseSpMM_bufferSize(Handle *h, int turned, int turned_b, const void *alpha, const Sparse *a, const Dense *b,
                            const void *beta, const Dense *c, int kind, int algorithm, size_t *size) {
  *size = WORK;
  return multiply(h, turned, turned_b, alpha, a, *b, beta, *c, kind, algorithm, SPMM_CSR_ALG3, 0);
}
API cusparseSpMV(Handle *h, int turned, const void *alpha, const Sparse *a, const Vector *x, const void *beta, const Vector *y,
                 int kind, int algorithm, char *work) {
  return multiply(h, turned, 0, alpha, a, as_column(*x), beta, as_column(*y), kind, algorithm, SPMV_CSR_ALG2, work);
}
API cusparseSpMV_bufferSize(Handle *h, int turned, const void *alpha, const Sparse *a, const Vector *x, const void *beta,
                            const Vector *y, int kind, int algorithm, size_t *size) {
  *size = WORK;
  return multiply(h, turned, 0, alpha, a, as_column(*x), beta, as_column(*y), kind, algorithm, SPMV_CSR_ALG2, 0);
}

static int sample(Handle *h, int turned, int turned_b, const void *alpha, const Dense *a, const Dense *b, const void *beta,
                  const Sparse *c, int kind, int algorithm, char *work) {
  if (!h || !c) return NOT_INITIALIZED;
  if (a->kind != kind || b->kind != kind || c->kind != kind || turned > TRANSPOSED || turned_b > TRANSPOSED) return INVALID;
  const int64_t inner = of_two(turned, a->columns, a->rows);
  if (of_two(turned, a->rows, a->columns) != c->rows || of_two(turned_b, b->rows, b->columns) != inner ||
      of_two(turned_b, b->columns, b->rows) != c->columns)
    return INVALID;
  if (algorithm != 0) return NOT_SUPPORTED;
  if (!work) return SUCCESS;
  if (is_odd(*c)) return INVALID;
  if (int code = counted()) return code;
  FOR_KIND(kind, {
    if (*(const T *)alpha != T(1) || *(const T *)beta != T(0)) return NOT_SUPPORTED;
    return enqueue(h->stream, Sample<T>{*a, *b, *c, turned, turned_b, inner, *(const T *)alpha, *(const T *)beta, work});
  });
}
API cusparseSDDMM(Handle *h, int turned, int turned_b, const void *alpha, const Dense *a, const Dense *b, const void *beta,
                  const Sparse *c, int kind, int algorithm, char *work) {
  return sample(h, turned, turned_b, alpha, a, b, beta, c, kind, algorithm, work);
}
API cusparseSDDMM_bufferSize(Handle *h, int turned, int turned_b, const void *alpha, const Dense *a, const Dense *b,
                             const void *beta, const Sparse *c, int kind, int algorithm, size_t *size) {
  *size = WORK;
  return sample(h, turned, turned_b, alpha, a, b, beta, c, kind, algorithm, 0);
}

// The arrays of the transpose, whose entries keep their order.
struct Turn {
  int rows, columns, count;
  const char *values;
  const int *pointers, *indices;
  char *to_values;
  int *to_pointers, *to_indices;
  size_t size;
  char *work;
  int operator()() const {
    work[0] = work[WORK - 1] = 0;
    memset(to_pointers, 0, (columns + 1) * sizeof(int));
    for (int k = 0; k < count; k++) ++to_pointers[indices[k] + 1];
    for (int j = 0; j < columns; j++) to_pointers[j + 1] += to_pointers[j];
    int *next = (int *)malloc((columns + 1) * sizeof(int));
    memcpy(next, to_pointers, (columns + 1) * sizeof(int));
    for (int i = 0; i < rows; i++)
      for (int k = pointers[i]; k < pointers[i + 1]; k++) {
        const int to = next[indices[k]]++;
        to_indices[to] = i;
        memcpy(to_values + to * size, values + k * size, size);
      }
    free(next);
    return 0;
  }
};
API cusparseCsr2cscEx2(Handle *h, int rows, int columns, int count, const char *values, const int *pointers, const int *indices,
                       char *to_values, int *to_pointers, int *to_indices, int kind, int with_values, int base, int algorithm,
                       char *work) {
  if (!h || !values || !to_values || !is_kind(kind) || with_values != 1 || base != 0 || algorithm != SORTING) return INVALID;
  return enqueue(h->stream, Turn{rows, columns, count, values, pointers, indices, to_values, to_pointers, to_indices,
                                 size_of(kind), work});
}
API cusparseCsr2cscEx2_bufferSize(Handle *, int, int, int, const char *, const int *, const int *, char *, int *, int *,
                                  int kind, int with_values, int base, int algorithm, size_t *size) {
  *size = WORK;
  return is_kind(kind) && with_values == 1 && base == 0 && algorithm == SORTING ? SUCCESS : INVALID;
}
