// Matrices by columns, for stand-ins of libraries: elimination, and triangular systems.
#pragma once
#include <math.h>

#include "stand_in.h"

enum { LOWER, UPPER };
enum { WORK = 7 };

// A matrix by columns, or its transpose.
template <class T> struct Matrix {
  T *a;
  int step, is_turned;
  T &operator()(int i, int j) const { return is_turned ? a[i * step + j] : a[j * step + i]; }
};
template <class T> struct Factor {
  Matrix<T> a;  // the lower triangle
  int n;
  T *work;
  int *info;
  int operator()() const {
    if (work) work[0] = work[WORK - 1] = 0;
    *info = 0;
    for (int j = 0; j < n; j++) {
      double d = a(j, j);
      for (int k = 0; k < j; k++) d -= (double)a(j, k) * a(j, k);
      if (!(d > 0)) {
        *info = j + 1;
        return 0;
      }
      a(j, j) = (T)sqrt(d);
      for (int i = j + 1; i < n; i++) {
        double sum = a(i, j);
        for (int k = 0; k < j; k++) sum -= (double)a(i, k) * a(j, k);
        a(i, j) = (T)(sum / a(j, j));
      }
    }
    return 0;
  }
};
// Solve a triangular system in place.
template <class T> static void solve(const Matrix<T> &a, int is_lower, int is_unit, T *x, int n) {
  for (int t = 0; t < n; t++) {
    const int i = is_lower ? t : n - 1 - t;
    double sum = x[i];
    for (int j = is_lower ? 0 : i + 1; j < (is_lower ? i : n); j++) sum -= (double)a(i, j) * x[j];
    x[i] = (T)(is_unit ? sum : sum / a(i, i));
  }
}
template <class T> static Matrix<T> turned(const Matrix<T> &a) { return {a.a, a.step, !a.is_turned}; }
template <class T> struct SolveFactored {
  Matrix<T> a;
  int n, k, step;
  T *b;
  int *info;
  int operator()() const {
    *info = 0;
    for (int c = 0; c < k; c++) {
      solve(a, 1, 0, b + (int64_t)c * step, n);
      solve(turned(a), 0, 0, b + (int64_t)c * step, n);
    }
    return 0;
  }
};
template <class T> struct Eliminate {
  Matrix<T> a;
  int m, n;
  T *work;
  int *pivots, *info;
  int operator()() const {
    if (work) work[0] = work[WORK - 1] = 0;
    *info = 0;
    for (int j = 0; j < (m < n ? m : n); j++) {
      int p = j;
      for (int i = j + 1; i < m; i++) if (fabs(a(i, j)) > fabs(a(p, j))) p = i;
      pivots[j] = p + 1;
      if (a(p, j) == 0 && !*info) *info = j + 1;
      for (int k = 0; k < n; k++) {
        T old = a(j, k);
        a(j, k) = a(p, k), a(p, k) = old;
      }
      for (int i = j + 1; i < m; i++) {
        a(i, j) = a(j, j) == 0 ? 0 : a(i, j) / a(j, j);
        for (int k = j + 1; k < n; k++) a(i, k) -= a(i, j) * a(j, k);
      }
    }
    return 0;
  }
};
template <class T> struct SolveEliminated {
  Matrix<T> a;
  int is_turned, n, k, step;
  const int *pivots;
  T *b;
  int *info;
  void exchange(T *x, int i) const {
    const int p = pivots[i] - 1;
    T old = x[i];
    x[i] = x[p], x[p] = old;
  }
  int operator()() const {
    *info = 0;
    for (int c = 0; c < k; c++) {
      T *x = b + (int64_t)c * step;
      if (is_turned) {
        solve(turned(a), 1, 0, x, n);
        solve(turned(a), 0, 1, x, n);
        for (int i = n - 1; i >= 0; i--) exchange(x, i);
      } else {
        for (int i = 0; i < n; i++) exchange(x, i);
        solve(a, 1, 1, x, n);
        solve(a, 0, 0, x, n);
      }
    }
    return 0;
  }
};

// The same for each of an array of matrices.
template <class T> struct FactorEach {
  int is_upper, n, step, count;
  T *const *a;
  int *info;
  int operator()() const {
    for (int i = 0; i < count; i++) Factor<T>{{a[i], step, is_upper}, n, 0, info + i}();
    return 0;
  }
};
template <class T> struct EliminateEach {
  int n, step, count;
  T *const *a;
  int *pivots, *info;
  int operator()() const {
    for (int i = 0; i < count; i++) Eliminate<T>{{a[i], step, 0}, n, n, 0, pivots + i * n, info + i}();
    return 0;
  }
};
template <class T> struct SolveEliminatedEach {
  int is_turned, n, k, step, other, count;
  T *const *a;
  const int *pivots;
  T *const *b;
  int operator()() const {
    int info;
    for (int i = 0; i < count; i++)
      SolveEliminated<T>{{a[i], step, 0}, is_turned, n, k, other, pivots + i * n, b[i], &info}();
    return 0;
  }
};
