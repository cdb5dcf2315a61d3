// A libcufft for tests: the functions that symcomp calls, with NVIDIA's names and arguments, by sums of products.
// It refuses what cuFFT refuses, and overwrites what cuFFT may overwrite: the numbers that become real ones.
#include <math.h>

#include "stand_in.h"

enum { SUCCESS = 0, INVALID_PLAN = 1, INVALID_TYPE = 3, INVALID_VALUE = 4, INVALID_SIZE = 8, UNALIGNED = 9, NO_WORKSPACE = 13 };
enum { C2C = 0x29, R2C = 0x2a, C2R = 0x2c, Z2Z = 0x69, D2Z = 0x6a, Z2D = 0x6c };
enum { MOST_PLANS = 4096, MOST_AXES = 3 };
typedef long long Number;

struct Layout { Number inside[MOST_AXES], step, distance; };
struct Plan {
  int is_there, type, rank;
  Number n[MOST_AXES], count;
  Layout given, made;
  void *stream, *workspace;
};
static Plan plans[MOST_PLANS];
static int n_plans;
EXPORT int fake_plans() {
  int n = 0;
  for (int i = 0; i < n_plans; i++) n += plans[i].is_there;
  return n;
}

static Plan *found(int plan) { return plan > 0 && plan <= n_plans && plans[plan - 1].is_there ? plans + plan - 1 : 0; }
API cufftCreate(int *plan) {
  if (n_plans == MOST_PLANS) return INVALID_PLAN;
  memset(plans + n_plans, 0, sizeof *plans);
  plans[n_plans].is_there = 1;
  *plan = ++n_plans;
  return SUCCESS;
}
API cufftDestroy(int plan) { return found(plan) ? found(plan)->is_there = 0, SUCCESS : INVALID_PLAN; }
API cufftSetAutoAllocation(int plan, int is_own) { return found(plan) && !is_own ? SUCCESS : INVALID_VALUE; }
API cufftSetStream(int plan, void *stream) { return found(plan) ? found(plan)->stream = stream, SUCCESS : INVALID_PLAN; }
API cufftSetWorkArea(int plan, void *memory) {
  return found(plan) ? found(plan)->workspace = memory, SUCCESS : INVALID_PLAN;
}

static int taken(Layout *l, int rank, const Number *n, const Number *inside, Number step, Number distance, int halved) {
  if (step < 1 || distance < 1) return 0;
  for (int a = 0; a < rank; a++) {
    l->inside[a] = inside[a];
    if (inside[a] < (halved && a == rank - 1 ? n[a] / 2 + 1 : n[a])) return 0;
  }
  l->step = step, l->distance = distance;
  return 1;
}
API cufftMakePlanMany64(int plan, int rank, Number *n, Number *inside, Number step, Number distance, Number *made_inside,
                        Number made_step, Number made_distance, int type, Number count, size_t *size) {
  Plan *p = found(plan);
  if (!p || p->rank) return INVALID_PLAN;
  if (type != C2C && type != R2C && type != C2R && type != Z2Z && type != D2Z && type != Z2D) return INVALID_TYPE;
  if (rank < 1 || rank > MOST_AXES || count < 1) return INVALID_SIZE;
  for (int a = 0; a < rank; a++) {
    if (n[a] < 1) return INVALID_SIZE;
    p->n[a] = n[a];
  }
  if (!taken(&p->given, rank, n, inside, step, distance, type == C2R || type == Z2D) ||
      !taken(&p->made, rank, n, made_inside, made_step, made_distance, type == R2C || type == D2Z))
    return INVALID_VALUE;
  p->rank = rank, p->type = type, p->count = count;
  *size = 512;
  return SUCCESS;
}

static Number place(const Layout *l, int rank, const Number *k) {
  Number i = 0;
  for (int a = 0; a < rank; a++) i = i * l->inside[a] + k[a];
  return i * l->step;
}
// Go to the next place among `count` along each axis; return 0 behind the last.
static int next(Number *k, int rank, const Number *count) {
  for (int a = rank - 1; a >= 0; a--) {
    if (++k[a] < count[a]) return 1;
    k[a] = 0;
  }
  return 0;
}
template <class T> struct Transform {
  Plan p;
  int sign;
  T *given, *made;
  int is_real, to_real;  // of the numbers given, and of the numbers made
  // Add the product of a number and exp(sign 2 pi i (j k / n + ..)).
  void add(long double *sum, const Number *j, const Number *k, long double x, long double y) const {
    long double turn = 0;
    for (int a = 0; a < p.rank; a++) turn += (long double)(j[a] * k[a] % p.n[a]) / p.n[a];
    const long double angle = sign * 2 * acosl(-1.0L) * turn, c = cosl(angle), s = sinl(angle);
    sum[0] += x * c - y * s, sum[1] += x * s + y * c;
  }
  int operator()() const {
    Number results[MOST_AXES], last = p.rank - 1;
    memcpy(results, p.n, sizeof results);
    if (is_real) results[last] = p.n[last] / 2 + 1;
    for (Number b = 0; b < p.count; b++) {
      const T *x = given + (is_real ? 1 : 2) * b * p.given.distance;
      T *z = made + (to_real ? 1 : 2) * b * p.made.distance;
      Number k[MOST_AXES] = {0};
      do {
        Number j[MOST_AXES] = {0};
        long double sum[2] = {0, 0};
        do {
          Number other = j[last], conjugated = to_real && 2 * j[last] > p.n[last];
          if (conjugated) j[last] = p.n[last] - j[last];
          const T *v = x + (is_real ? 1 : 2) * place(&p.given, p.rank, j);
          j[last] = other;
          // A part that should be 0 spoils the result otherwise.
          if (to_real && (2 * other == p.n[last] || other == 0) && v[1] != 0) sum[0] = NAN;
          add(sum, j, k, v[0], is_real ? 0 : conjugated ? -v[1] : v[1]);
        } while (next(j, p.rank, p.n));
        T *to = z + (to_real ? 1 : 2) * place(&p.made, p.rank, k);
        to[0] = (T)sum[0];
        if (!to_real) to[1] = (T)sum[1];
      } while (next(k, p.rank, results));
      if (to_real)
        for (Number i = 0; i < p.n[0] / 2 + 1; i++) ((T *)x)[2 * i * p.given.step] = NAN;
    }
    return 0;
  }
};

template <class T> static int transform(int plan, int type, void *given, void *made, int sign) {
  Plan *p = found(plan);
  if (!p || !p->rank || !p->stream) return INVALID_PLAN;
  if (p->type != type) return INVALID_TYPE;
  if (!p->workspace) return NO_WORKSPACE;
  if ((uintptr_t)given % (2 * sizeof(T)) || (uintptr_t)made % (2 * sizeof(T))) return UNALIGNED;
  if (sign != 1 && sign != -1) return INVALID_VALUE;
  if (int code = counted()) return code;
  const int is_real = type == R2C || type == D2Z, to_real = type == C2R || type == Z2D;
  return enqueue(p->stream, Transform<T>{*p, sign, (T *)given, (T *)made, is_real, to_real});
}
API cufftExecC2C(int plan, void *x, void *z, int sign) { return transform<float>(plan, C2C, x, z, sign); }
API cufftExecR2C(int plan, void *x, void *z) { return transform<float>(plan, R2C, x, z, -1); }
API cufftExecC2R(int plan, void *x, void *z) { return transform<float>(plan, C2R, x, z, 1); }
API cufftExecZ2Z(int plan, void *x, void *z, int sign) { return transform<double>(plan, Z2Z, x, z, sign); }
API cufftExecD2Z(int plan, void *x, void *z) { return transform<double>(plan, D2Z, x, z, -1); }
API cufftExecZ2D(int plan, void *x, void *z) { return transform<double>(plan, Z2D, x, z, 1); }
