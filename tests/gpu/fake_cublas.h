// A libcublas for tests: the functions that symcomp calls, with NVIDIA's names and arguments, by plain loops.
// It refuses what cuBLAS refuses, and what symcomp promises not to do: factors on the host, no workspace.
#include <complex>

#include "fake_matrices.h"

enum { SUCCESS = 0, NOT_INITIALIZED = 1, INVALID_VALUE = 7, NOT_SUPPORTED = 15 };
enum { PLAIN, TRANSPOSED };
enum { R_32F = 0, R_64F = 1, R_16F = 2, C_32F = 4, C_64F = 5, R_16BF = 14 };
enum { COMPUTE_32F = 68, COMPUTE_64F = 70, FAST_16BF = 75, FAST_TF32 = 77 };

struct Handle { void *stream, *workspace; int on_device; };
static int last_computing;
EXPORT int fake_computing() { return last_computing; }

API cublasCreate_v2(Handle **h) { *h = (Handle *)calloc(1, sizeof(Handle)); return SUCCESS; }
API cublasSetPointerMode_v2(Handle *h, int mode) { h->on_device = mode; return SUCCESS; }
API cublasSetStream_v2(Handle *h, void *stream) { h->stream = stream, h->workspace = 0; return SUCCESS; }
API cublasSetWorkspace_v2(Handle *h, void *memory, size_t n) {
  if ((uintptr_t)memory % 256 || n < 1 << 20) return INVALID_VALUE;
  h->workspace = memory;
  return SUCCESS;
}
static int problem(const Handle *h) {
  return h && h->stream && h->workspace && h->on_device ? counted() : NOT_INITIALIZED;
}

// A number as a product rounds it first.
static float rounded(float x, int computing) {
  const int kept = computing == FAST_TF32 ? 10 : computing == FAST_16BF ? 7 : 23;
  uint32_t bits;
  memcpy(&bits, &x, 4);
  const uint32_t unit = 1u << (23 - kept);
  bits = (bits + unit / 2) & ~(unit - 1);
  memcpy(&x, &bits, 4);
  return x;
}
static double rounded(double x, int) { return x; }
template <class T> static std::complex<T> rounded(std::complex<T> x, int computing) {
  return {rounded(x.real(), computing), rounded(x.imag(), computing)};
}

// A number of bfloat16: the upper half of a float.
struct Bfloat {
  uint16_t bits;
  operator float() const {
    const uint32_t whole = (uint32_t)bits << 16;
    float x;
    memcpy(&x, &whole, 4);
    return x;
  }
};

template <class T, class S, class Z = T> struct Product {
  int64_t ta, tb, m, n, k, lda, sa, ldb, sb, ldc, sc, batches;
  int computing;
  const S *alpha, *beta;
  const T *a, *b;
  Z *c;
  int operator()() const {
    for (int64_t i = 0; i < batches; i++)
      for (int64_t row = 0; row < m; row++)
        for (int64_t column = 0; column < n; column++) {
          S sum = 0;
          for (int64_t d = 0; d < k; d++) {
            const S x = (S)a[i * sa + (ta ? row * lda + d : d * lda + row)];
            const S y = (S)b[i * sb + (tb ? d * ldb + column : column * ldb + d)];
            sum += rounded(x, computing) * rounded(y, computing);
          }
          Z *z = c + i * sc + column * ldc + row;
          *z = (Z)(*beta == S(0) ? *alpha * sum : *alpha * sum + *beta * (S)*z);
        }
    return 0;
  }
};

template <class T, class S, class Z = T> static int multiply(Handle *h, Product<T, S, Z> p) {
  return enqueue(h->stream, p);
}

API cublasGemmStridedBatchedEx_64(
    Handle *h, int ta, int tb, int64_t m, int64_t n, int64_t k, const void *alpha, const void *a, int a_type,
    int64_t lda, long long sa, const void *b, int b_type, int64_t ldb, long long sb, const void *beta, void *c,
    int c_type, int64_t ldc, long long sc, int64_t batches, int computing, int algorithm) {
  if (int code = problem(h)) return code;
  const auto least = [](int64_t n) { return n > 1 ? n : 1; };
  if (m < 0 || n < 0 || k < 0 || batches < 0 || (ta | tb) & ~1) return INVALID_VALUE;
  if (lda < least(ta ? k : m) || ldb < least(tb ? n : k) || ldc < least(m)) return INVALID_VALUE;
  const bool is_bfloat = a_type == R_16BF && c_type == R_32F && computing == COMPUTE_32F;
  if (a_type != b_type || (a_type != c_type && !is_bfloat) || algorithm != -1) return NOT_SUPPORTED;
  last_computing = computing;
  if (is_bfloat)
    return multiply<Bfloat, float, float>(h, {ta, tb, m, n, k, lda, sa, ldb, sb, ldc, sc, batches, computing,
                                              (const float *)alpha, (const float *)beta, (const Bfloat *)a,
                                              (const Bfloat *)b, (float *)c});
#define GIVEN(T, S) multiply<T, S>(h, {ta, tb, m, n, k, lda, sa, ldb, sb, ldc, sc, batches, computing, \
                                       (const S *)alpha, (const S *)beta, (const T *)a, (const T *)b, (T *)c})
  if (c_type == R_64F && computing == COMPUTE_64F) return GIVEN(double, double);
  if (c_type == R_16F && computing == COMPUTE_32F) return GIVEN(_Float16, float);
  if (c_type == R_32F && (computing == COMPUTE_32F || computing == FAST_TF32 || computing == FAST_16BF))
    return GIVEN(float, float);
  if (c_type == C_64F && computing == COMPUTE_64F) return GIVEN(std::complex<double>, std::complex<double>);
  if (c_type == C_32F && (computing == COMPUTE_32F || computing == FAST_TF32 || computing == FAST_16BF))
    return GIVEN(std::complex<float>, std::complex<float>);
  return NOT_SUPPORTED;
}

// A vector of BLAS: with a negative step it is read from its end.
template <class T> struct Elements {
  T *x;
  int64_t n, step;
  T &operator[](int64_t i) const { return x[step < 0 ? (i - n + 1) * step : i * step]; }
};
template <class T> struct MatrixVector {
  int64_t transposed, m, n, lda;
  const T *alpha, *beta, *a;
  Elements<const T> x;
  Elements<T> y;
  int operator()() const {
    for (int64_t i = 0; i < y.n; i++) {
      T sum = 0;
      for (int64_t j = 0; j < x.n; j++) sum += a[transposed ? i * lda + j : j * lda + i] * x[j];
      y[i] = *beta == T(0) ? *alpha * sum : *alpha * sum + *beta * y[i];
    }
    return 0;
  }
};
template <class T> struct Dot {
  Elements<const T> x, y;
  T *result;
  int operator()() const {
    T sum = 0;
    for (int64_t i = 0; i < x.n; i++) sum += x[i] * y[i];
    *result = sum;
    return 0;
  }
};
template <class T> struct Triangular {
  int is_lower, is_turned, is_unit;
  int64_t n, k, lda, ldb;
  const T *alpha, *a;
  T *b;
  int operator()() const {
    const int first = is_lower != is_turned;
    for (int64_t c = 0; c < k; c++) {
      T *x = b + c * ldb;
      for (int64_t t = 0; t < n; t++) {
        const int64_t i = first ? t : n - 1 - t;
        double sum = (double)*alpha * x[i];
        for (int64_t j = first ? 0 : i + 1; j < (first ? i : n); j++)
          sum -= (double)a[is_turned ? i * lda + j : j * lda + i] * x[j];
        x[i] = (T)(is_unit ? sum : sum / a[i * lda + i]);
      }
    }
    return 0;
  }
};

template <class T> struct TriangularEach {
  Triangular<T> one;
  int count;
  const T *const *a;
  T *const *b;
  int operator()() const {
    Triangular<T> each = one;
    for (int i = 0; i < count; i++) {
      each.a = a[i], each.b = b[i];
      each();
    }
    return 0;
  }
};

#define VECTORS(LETTER, DOT, T)                                                                                       \
  API cublas##LETTER##gemv_v2_64(Handle *h, int op, int64_t m, int64_t n, const T *alpha, const T *a, int64_t lda,    \
                                 const T *x, int64_t x_step, const T *beta, T *y, int64_t y_step) {                   \
    if (int code = problem(h)) return code;                                                                            \
    if (m < 0 || n < 0 || lda < (m > 1 ? m : 1) || !x_step || !y_step || op & ~1) return INVALID_VALUE;               \
    return enqueue(h->stream, MatrixVector<T>{op, m, n, lda, alpha, beta, a, {x, op ? m : n, x_step},                 \
                                              {y, op ? n : m, y_step}});                                              \
  }                                                                                                                   \
  API cublas##LETTER##DOT##_v2_64(Handle *h, int64_t n, const T *x, int64_t x_step, const T *y, int64_t y_step,       \
                                  T *z) {                                                                             \
    if (int code = problem(h)) return code;                                                                            \
    return enqueue(h->stream, Dot<T>{{x, n, x_step}, {y, n, y_step}, z});                                             \
  }
VECTORS(S, dot, float)
VECTORS(D, dot, double)
VECTORS(C, dotu, std::complex<float>)
VECTORS(Z, dotu, std::complex<double>)

#define SYSTEMS(LETTER, T)                                                                                            \
  API cublas##LETTER##trsm_v2_64(Handle *h, int side, int triangle, int op, int is_unit, int64_t n, int64_t k,        \
                                 const T *alpha, const T *a, int64_t lda, T *b, int64_t ldb) {                        \
    if (int code = problem(h)) return code;                                                                           \
    if ((triangle | op | is_unit) & ~1 || n < 0 || k < 0 || lda < n || ldb < n) return INVALID_VALUE;                 \
    if (side) return NOT_SUPPORTED;                                                                                   \
    return enqueue(h->stream, Triangular<T>{!triangle, op, is_unit, n, k, lda, ldb, alpha, a, b});                    \
  }                                                                                                                   \
  API cublas##LETTER##trsmBatched(Handle *h, int side, int triangle, int op, int is_unit, int n, int k,               \
                                  const T *alpha, const T *const *a, int lda, T *const *b, int ldb, int count) {      \
    if (int code = problem(h)) return code;                                                                           \
    if ((triangle | op | is_unit) & ~1 || n < 1 || k < 1 || lda < n || ldb < n || count < 1) return INVALID_VALUE;    \
    if (side) return NOT_SUPPORTED;                                                                                   \
    const Triangular<T> one = {!triangle, op, is_unit, n, k, lda, ldb, alpha, 0, 0};                                  \
    return enqueue(h->stream, TriangularEach<T>{one, count, a, b});                                                   \
  }                                                                                                                   \
  API cublas##LETTER##getrfBatched(Handle *h, int n, T *const *a, int lda, int *pivots, int *info, int count) {       \
    if (int code = problem(h)) return code;                                                                           \
    if (n < 1 || lda < n || count < 1 || !pivots) return INVALID_VALUE;                                               \
    return enqueue(h->stream, EliminateEach<T>{n, lda, count, a, pivots, info});                                      \
  }                                                                                                                   \
  API cublas##LETTER##getrsBatched(Handle *h, int op, int n, int k, T *const *a, int lda, const int *pivots,          \
                                   T *const *b, int ldb, int *info, int count) {                                      \
    if (int code = problem(h)) return code;                                                                           \
    if ((op & ~1) || n < 1 || k < 1 || lda < n || ldb < n || count < 1) return INVALID_VALUE;                         \
    *info = 0;                                                                                                        \
    return enqueue(h->stream, SolveEliminatedEach<T>{op, n, k, lda, ldb, count, a, pivots, b});                       \
  }
SYSTEMS(S, float)
SYSTEMS(D, double)
