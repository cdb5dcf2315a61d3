// Decompositions of the stand-in of libcusolver: eigenvalues and singular values by Jacobi's rotations, reflectors by
// LAPACK's convention. What holds NaN is not decomposed.
#include <algorithm>
#include <numeric>
#include <vector>

typedef std::vector<double> Column;
typedef std::vector<Column> Columns;

static double inner(const Column &x, const Column &y) { return std::inner_product(x.begin(), x.end(), y.begin(), 0.0); }
static void rotate(Column &x, Column &y, double c, double s) {
  for (size_t i = 0; i < x.size(); i++) {
    const double old = x[i];
    x[i] = c * old - s * y[i];
    y[i] = s * old + c * y[i];
  }
}
// Make columns orthogonal by rotations, which are done to v, too; return whether that ends.
static bool make_orthogonal(Columns &x, Columns &v) {
  for (int sweep = 0; sweep < 60; sweep++) {
    bool is_done = true;
    for (size_t p = 0; p < x.size(); p++)
      for (size_t q = p + 1; q < x.size(); q++) {
        const double a = inner(x[p], x[p]), b = inner(x[q], x[q]), both = inner(x[p], x[q]);
        if (both != both) return false;
        if (fabs(both) <= 1e-16 * sqrt(a) * sqrt(b)) continue;
        is_done = false;
        const double z = (b - a) / (2 * both), t = (z < 0 ? -1 : 1) / (fabs(z) + sqrt(1 + z * z));
        const double c = 1 / sqrt(1 + t * t);
        rotate(x[p], x[q], c, c * t);
        rotate(v[p], v[q], c, c * t);
      }
    if (is_done) return true;
  }
  return true;
}
template <class T> static Columns columns_of(const T *a, int m, int n, int step) {
  Columns x(n, Column(m));
  for (int j = 0; j < n; j++) std::copy(a + (int64_t)j * step, a + (int64_t)j * step + m, x[j].begin());
  return x;
}
template <class T> static void store(const Columns &x, T *a, int step) {
  for (size_t j = 0; j < x.size(); j++) std::copy(x[j].begin(), x[j].end(), a + j * step);
}
static Columns unit(int n) {
  Columns x(n, Column(n));
  for (int i = 0; i < n; i++) x[i][i] = 1;
  return x;
}
static std::vector<int> sorted(const Column &x, int sign) {
  std::vector<int> order(x.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int i, int j) { return sign * x[i] < sign * x[j]; });
  return order;
}
template <class T> struct Eigen {
  int has_vectors, is_upper, n, step;
  T *a, *w, *work;
  int *info;
  int operator()() const {
    work[0] = work[WORK - 1] = 0;
    Columns x = columns_of(a, n, n, step), v = unit(n);
    double shift = 0;  // added to the diagonal: eigenvalues of positive definite matrices are lengths of columns
    for (int j = 0; j < n; j++)
      for (int i = 0; i < n; i++) {
        if (is_upper ? i > j : i < j) x[j][i] = x[i][j];
      }
    for (const Column &c : x) for (double e : c) shift += fabs(e);
    shift += 1;
    for (int i = 0; i < n; i++) x[i][i] += shift;
    *info = make_orthogonal(x, v) && shift == shift ? 0 : n;
    if (*info) return 0;
    Column found(n);
    for (int i = 0; i < n; i++) found[i] = sqrt(inner(x[i], x[i])) - shift;
    const std::vector<int> order = sorted(found, 1);
    for (int i = 0; i < n; i++) {
      w[i] = (T)found[order[i]];
      x[i] = v[order[i]];
    }
    if (has_vectors) store(x, a, step);
    else for (int i = 0; i < n; i++) a[i * (int64_t)step + i] = (T)NAN;  // overwritten
    return 0;
  }
};
// Add columns that are orthogonal to the first ones, or in place of those of no length.
static void complete(Columns &u, size_t wanted) {
  const int m = (int)u[0].size();
  Columns more = unit(m);
  for (size_t j = 0, next = 0; j < wanted; j++) {
    if (j < u.size() && inner(u[j], u[j]) > 0) continue;
    Column x;
    do {
      x = more[next++];
      for (int again = 0; again < 2; again++)
        for (size_t k = 0; k < u.size(); k++) {
          const double c = inner(u[k], x);
          for (int i = 0; i < m; i++) x[i] -= c * u[k][i];
        }
    } while (inner(x, x) < 1e-6 && next < more.size());
    const double length = sqrt(inner(x, x));
    for (double &e : x) e /= length;
    if (j < u.size()) u[j] = x;
    else u.push_back(x);
  }
}
template <class T> struct Singular {
  char u_wanted, v_wanted;
  int m, n, step, u_step, v_step;
  T *a, *s, *u, *v, *work;
  int *info;
  int operator()() const {
    work[0] = work[WORK - 1] = 0;
    Columns x = columns_of(a, m, n, step), turns = unit(n);
    const bool is_found = make_orthogonal(x, turns);
    Column lengths;
    for (const Column &c : x) lengths.push_back(sqrt(inner(c, c)));
    *info = is_found && inner(lengths, lengths) >= 0 ? 0 : n;
    if (*info) return 0;
    Columns left, right;
    for (int i : sorted(lengths, -1)) {
      left.push_back(x[i]), right.push_back(turns[i]);
      s[right.size() - 1] = (T)lengths[i];
      for (double &e : left.back()) e = lengths[i] > 1e-14 * inner(lengths, lengths) ? e / lengths[i] : 0;
    }
    a[0] = (T)NAN;  // overwritten
    if (u_wanted == 'N') return 0;
    complete(left, u_wanted == 'A' ? m : n);
    store(left, u, u_step);
    for (int i = 0; i < n; i++) for (int j = 0; j < n; j++) v[(int64_t)j * v_step + i] = (T)right[i][j];
    return 0;
  }
};
// x -= tau v (v^T x), where v is 0 before its element j, which is 1.
static void reflect(Column &x, const Column &v, double tau, int j) {
  double sum = x[j];
  for (size_t i = j + 1; i < x.size(); i++) sum += v[i] * x[i];
  x[j] -= tau * sum;
  for (size_t i = j + 1; i < x.size(); i++) x[i] -= tau * sum * v[i];
}
template <class T> struct Reflect {
  int m, n, step;
  T *a, *tau, *work;
  int *info;
  int operator()() const {
    work[0] = work[WORK - 1] = 0;
    *info = 0;
    Columns x = columns_of(a, m, n, step);
    for (int j = 0; j < std::min(m, n); j++) {
      double below = 0;
      for (int i = j + 1; i < m; i++) below += x[j][i] * x[j][i];
      const double first = x[j][j], end = below ? -copysign(sqrt(first * first + below), first) : first;
      const double t = below ? (end - first) / end : 0;
      tau[j] = (T)t;
      if (below) for (int i = j + 1; i < m; i++) x[j][i] /= first - end;
      for (int k = j + 1; k < n; k++) reflect(x[k], x[j], t, j);
      x[j][j] = end;
    }
    store(x, a, step);
    return 0;
  }
};
template <class T> struct Orthogonal {
  int m, n, k, step;
  T *a;
  const T *tau;
  T *work;
  int *info;
  int operator()() const {
    work[0] = work[WORK - 1] = 0;
    *info = 0;
    const Columns v = columns_of(a, m, k, step);
    Columns q = unit(m);
    q.resize(n);
    for (int j = k - 1; j >= 0; j--) for (Column &x : q) reflect(x, v[j], tau[j], j);
    store(q, a, step);
    return 0;
  }
};

#define SIZE(CONDITION) \
  if (!h || (CONDITION)) return INVALID_VALUE; \
  *size = WORK; \
  return SUCCESS
#define NEEDED(CONDITION) \
  REFUSED(CONDITION); \
  if (!work || size < WORK) return INVALID_WORKSPACE
#define DECOMPOSITIONS(LETTER, T)                                                                                     \
  API cusolverDn##LETTER##syevd_bufferSize(Handle *h, int vectors, int triangle, int n, T *, int step, T *,           \
                                           int *size) {                                                               \
    SIZE(((vectors | triangle) & ~1) || n < 1 || step < n);                                                           \
  }                                                                                                                   \
  API cusolverDn##LETTER##syevd(Handle *h, int vectors, int triangle, int n, T *a, int step, T *w, T *work, int size, \
                                int *info) {                                                                          \
    NEEDED(((vectors | triangle) & ~1) || n < 1 || step < n);                                                         \
    return enqueue(h->stream, Eigen<T>{vectors, triangle == UPPER, n, step, a, w, work, info});                       \
  }                                                                                                                   \
  API cusolverDn##LETTER##gesvd_bufferSize(Handle *h, int m, int n, int *size) { SIZE(n < 1 || m < n); }              \
  API cusolverDn##LETTER##gesvd(Handle *h, signed char u_wanted, signed char v_wanted, int m, int n, T *a, int step,  \
                                T *s, T *u, int u_step, T *v, int v_step, T *work, int size, T *rest, int *info) {    \
    const bool is_known = u_wanted == 'N' ? v_wanted == 'N' : (u_wanted == 'A' || u_wanted == 'S') && v_wanted == 'A'; \
    NEEDED(!is_known || n < 1 || m < n || step < m || u_step < m || v_step < n || !rest);                             \
    if (u_wanted != 'N' && (!u || !v)) return INVALID_VALUE;                                                          \
    return enqueue(h->stream, Singular<T>{u_wanted, v_wanted, m, n, step, u_step, v_step, a, s, u, v, work, info});   \
  }                                                                                                                   \
  API cusolverDn##LETTER##geqrf_bufferSize(Handle *h, int m, int n, T *, int step, int *size) {                       \
    SIZE(m < 1 || n < 1 || step < m);                                                                                 \
  }                                                                                                                   \
  API cusolverDn##LETTER##geqrf(Handle *h, int m, int n, T *a, int step, T *tau, T *work, int size, int *info) {      \
    NEEDED(m < 1 || n < 1 || step < m);                                                                               \
    return enqueue(h->stream, Reflect<T>{m, n, step, a, tau, work, info});                                            \
  }                                                                                                                   \
  API cusolverDn##LETTER##orgqr_bufferSize(Handle *h, int m, int n, int k, const T *, int step, const T *,            \
                                           int *size) {                                                               \
    SIZE(k < 1 || n < k || m < n || step < m);                                                                        \
  }                                                                                                                   \
  API cusolverDn##LETTER##orgqr(Handle *h, int m, int n, int k, T *a, int step, const T *tau, T *work, int size,      \
                                int *info) {                                                                          \
    NEEDED(k < 1 || n < k || m < n || step < m);                                                                      \
    return enqueue(h->stream, Orthogonal<T>{m, n, k, step, a, tau, work, info});                                      \
  }
DECOMPOSITIONS(S, float)
DECOMPOSITIONS(D, double)
