// CUDA C on the processor: what the emulator (emulator.py) puts before kernels.
// One thread of the system; every CUDA thread of a block is a fiber (ucontext to start,
// _setjmp/_longjmp to switch).  Kernels without barriers and warp collectives
// (CUEMU_EXPORT_ALONE) run as a plain loop over threads.
#define __CUEMU__ 1
#include <stdint.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <stdarg.h>
#include <limits.h>
#include <float.h>
#include <math.h>
#include <ucontext.h>
#include <setjmp.h>
#include <sys/mman.h>

// ---------------------------------------------------------------- keywords
#define __global__
#define __device__
#define __host__
#define __constant__
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...)
#define __restrict__ __restrict
#define __align__(n) __attribute__((aligned(n)))
#define __grid_constant__
#ifdef __SANITIZE_ADDRESS__
#define __shared__ static                       // keeps ASan's redzones
#else
#define __shared__ static __attribute__((section("cuemu_shared")))
#endif

struct uint3 { unsigned x, y, z; };
struct dim3 { unsigned x, y, z; dim3(unsigned a = 1, unsigned b = 1, unsigned c = 1) : x(a), y(b), z(c) {} };
#define CUEMU_VEC(T, N) \
  struct N##1 { T x; }; struct __align__(2*sizeof(T)) N##2 { T x, y; }; \
  struct N##3 { T x, y, z; }; struct __align__(sizeof(T) == 8 ? 16 : 4*sizeof(T)) N##4 { T x, y, z, w; }; \
  static inline N##2 make_##N##2(T x, T y) { return {x, y}; } \
  static inline N##4 make_##N##4(T x, T y, T z, T w) { return {x, y, z, w}; }
CUEMU_VEC(float, float) CUEMU_VEC(double, double) CUEMU_VEC(int, int)

extern "C" {  // visible, so that no compiler may cache them over a fiber switch
__attribute__((visibility("default"))) uint3 cuemu_threadIdx, cuemu_blockIdx;
__attribute__((visibility("default"))) dim3 cuemu_blockDim, cuemu_gridDim;
__attribute__((visibility("default"))) char cuemu_errmsg[512];
__attribute__((visibility("default"))) int cuemu_schedule;     // 0 forward, 1 reverse, 2.. random seed
__attribute__((visibility("default"))) int cuemu_strict = 1;
__attribute__((visibility("default"))) long cuemu_switches;
}
#define threadIdx cuemu_threadIdx
#define blockIdx cuemu_blockIdx
#define blockDim cuemu_blockDim
#define gridDim cuemu_gridDim
static const int warpSize = 32;

namespace cuemu {
static char *dyn_smem; static size_t dyn_size;
static jmp_buf launcher;
[[noreturn]] static void fail(const char *fmt, ...) {
  char m[300]; va_list ap; va_start(ap, fmt); vsnprintf(m, sizeof m, fmt, ap); va_end(ap);
  snprintf(cuemu_errmsg, sizeof cuemu_errmsg, "%s [block (%u,%u,%u) thread (%u,%u,%u)]", m,
           cuemu_blockIdx.x, cuemu_blockIdx.y, cuemu_blockIdx.z,
           cuemu_threadIdx.x, cuemu_threadIdx.y, cuemu_threadIdx.z);
  _longjmp(launcher, 1);
}
}
namespace cuemu {
static inline void need_aligned(const void *p, size_t n) { if ((uintptr_t)p % n) fail("an access of %zu bytes at %p is not aligned", n, p); }
}
// dynamic shared memory: in CUDA  extern __shared__ __align__(16) unsigned char n[]
#define SYM_DYN_SHARED(T, name) T *name = (T *)cuemu::dyn_smem

namespace cuemu {
enum State : unsigned char { READY, WAIT_BLOCK, WAIT_WARP, DONE };
enum Op { OP_SYNC, OP_SHFL, OP_BALLOT, OP_ANY, OP_ALL };
struct Fiber {
  jmp_buf jb; ucontext_t uc; bool started; State st;
  int lin; int line; int op; unsigned mask; int src; uint64_t val, res;
};
struct Warp { unsigned alive, arrived; };
static const size_t STACK = 64 * 1024;
static Fiber *fib; static char *stacks; static int cap;
static Warp warps[64];
static int nthr, alive, arrived, bar_pred[3]; static Fiber *cur;
static jmp_buf sched; static ucontext_t sched_uc;
static void (*body)();                    // runs the kernel once with the saved arguments

static void fiber_main();
static inline void set_tid(int l) {
  unsigned bx = cuemu_blockDim.x, by = cuemu_blockDim.y;
  cuemu_threadIdx.x = l % bx; cuemu_threadIdx.y = (l / bx) % by; cuemu_threadIdx.z = l / (bx * by);
}
static __attribute__((noinline)) void yield_() { if (!_setjmp(cur->jb)) _longjmp(sched, 1); }
static __attribute__((noinline)) void resume(Fiber *f) {
  cur = f; set_tid(f->lin); ++cuemu_switches;
  if (!_setjmp(sched)) {
    if (f->started) _longjmp(f->jb, 1);
    f->started = true;
    getcontext(&f->uc); f->uc.uc_stack.ss_sp = stacks + STACK * (size_t)(f - fib);
    f->uc.uc_stack.ss_size = STACK; f->uc.uc_link = 0;
    makecontext(&f->uc, (void (*)())fiber_main, 0); setcontext(&f->uc);
  }
}
static void release_block() { for (int i = 0; i < nthr; ++i) if (fib[i].st == WAIT_BLOCK) fib[i].st = READY; arrived = 0; }
static void fiber_main() {
  for (;;) {                              // the fiber is kept for later blocks and launches
    body();
    Fiber *f = cur; f->st = DONE; --alive;
    Warp &w = warps[f->lin >> 5]; w.alive &= ~(1u << (f->lin & 31));
    if (arrived && cuemu_strict) fail("a thread left the kernel while others wait at __syncthreads() in line %d", fib[0].line);
    if (arrived && arrived == alive) release_block();
    yield_();
  }
}
static int syncthreads(int line, int pred = 0) {
  Fiber *f = cur; f->line = line;
  if (cuemu_strict && alive != nthr) fail("__syncthreads() in line %d after %d threads left the kernel", line, nthr - alive);
  static int first;
  if (!arrived) { bar_pred[0] = 0; first = line; }
  else if (first != line) fail("divergent barriers: line %d and line %d", first, line);
  bar_pred[0] += pred != 0;
  f->st = WAIT_BLOCK;
  if (++arrived == alive) { bar_pred[1] = bar_pred[0]; release_block(); }
  yield_();  // the last one, too: who goes on first is up to the order
  return bar_pred[1];
}
static uint64_t collective(int op, unsigned mask, uint64_t v, int src, int line) {
  Fiber *f = cur; int lane = f->lin & 31, w0 = f->lin & ~31; Warp &w = warps[f->lin >> 5];
  if (!(mask >> lane & 1)) fail("line %d: warp collective called by lane %d that is not in its mask %08x", line, lane, mask);
  if (mask & ~w.alive) { unsigned a = w.alive; if (cuemu_strict && (mask != 0xffffffffu || nthr - w0 >= 32)) fail("line %d: mask %08x names lanes that left or do not exist (alive %08x)", line, mask, a); mask &= w.alive; }
  f->op = op; f->mask = mask; f->val = v; f->src = src; f->line = line; f->st = WAIT_WARP; w.arrived |= 1u << lane;
  if ((w.arrived & mask) == mask) {       // the last lane does the exchange for all
    unsigned bal = 0;
    for (int l = 0; l < 32; ++l) if (mask >> l & 1) {
      Fiber &g = fib[w0 + l];
      if (g.op != op || g.mask != mask) fail("divergent warp collectives: line %d and line %d", g.line, line);
      bal |= (unsigned)(g.val != 0) << l;
    }
    for (int l = 0; l < 32; ++l) if (mask >> l & 1) {
      Fiber &g = fib[w0 + l];
      if (op == OP_SHFL) {
        if (cuemu_strict && !(mask >> g.src & 1) ) { if (w0 + g.src < nthr) fail("line %d: shuffle reads lane %d that is not in mask %08x", line, g.src, mask); g.res = g.val; }
        else g.res = fib[w0 + g.src].val;
      } else g.res = op == OP_BALLOT ? bal : op == OP_ANY ? bal != 0 : op == OP_ALL ? bal == mask : 0;
    }
    w.arrived &= ~mask;
    for (int l = 0; l < 32; ++l) if (mask >> l & 1) fib[w0 + l].st = READY;
  } else yield_();
  return f->res;
}
template <class T> static inline T shfl_(unsigned mask, T v, int src, int line) {
  uint64_t b = 0; memcpy(&b, &v, sizeof v); b = collective(OP_SHFL, mask, b, src, line);
  T r; memcpy(&r, &b, sizeof r); return r;
}
static inline int lane() { return cur->lin & 31; }
template <class T> static inline T shfl(int ln, unsigned m, T v, int s, int w = 32) { return shfl_(m, v, (lane() & ~(w - 1)) | (s & (w - 1)), ln); }
template <class T> static inline T shfl_down(int ln, unsigned m, T v, unsigned d, int w = 32) { int l = lane(), s = l + (int)d; return shfl_(m, v, (l & (w - 1)) + (int)d >= w ? l : s, ln); }
template <class T> static inline T shfl_up(int ln, unsigned m, T v, unsigned d, int w = 32) { int l = lane(); return shfl_(m, v, (l & (w - 1)) < (int)d ? l : l - (int)d, ln); }
template <class T> static inline T shfl_xor(int ln, unsigned m, T v, int x, int w = 32) { int l = lane(), s = l ^ x; return shfl_(m, v, s >= (l & ~(w - 1)) + w ? l : s, ln); }

static unsigned rng_s;
static inline unsigned rng() { rng_s = rng_s * 1664525u + 1013904223u; return rng_s >> 8; }
static void run_block() {
  for (int i = 0; i < nthr; ++i) { fib[i].st = READY; fib[i].lin = i; }
  alive = nthr; arrived = 0;
  for (int w = 0; w * 32 < nthr; ++w) { int n = nthr - w * 32; warps[w].alive = n >= 32 ? 0xffffffffu : (1u << n) - 1; warps[w].arrived = 0; }
  static int order[1024];
  while (alive) {
    bool moved = false;
    if (cuemu_schedule >= 2) { for (int i = 0; i < nthr; ++i) order[i] = i; for (int i = nthr - 1; i > 0; --i) { int j = rng() % (i + 1), t = order[i]; order[i] = order[j]; order[j] = t; } }
    for (int k = 0; k < nthr; ++k) {
      Fiber *f = fib + (cuemu_schedule == 0 ? k : cuemu_schedule == 1 ? nthr - 1 - k : order[k]);
      if (f->st == READY) { resume(f); moved = true; }
    }
    if (!moved) { Fiber *f = fib; while (f->st == DONE) ++f; set_tid(f->lin);
      fail("deadlock: threads wait at different barriers or collectives (one is in line %d)", f->line); }
  }
}
static void prepare(int n) {
  nthr = n; rng_s = (unsigned)cuemu_schedule;
  if (n > cap) {
    if (stacks) { munmap(stacks, STACK * (size_t)cap); free(fib); }
    cap = n; fib = (Fiber *)calloc(n, sizeof(Fiber));
    stacks = (char *)mmap(0, STACK * (size_t)n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  }
}
static void abandon() { for (int i = 0; i < cap; ++i) fib[i].started = false; }
}
#define __syncthreads() ((void)cuemu::syncthreads(__LINE__))
#define __syncthreads_count(p) cuemu::syncthreads(__LINE__, (p) != 0)
#define __syncthreads_or(p) (cuemu::syncthreads(__LINE__, (p) != 0) > 0)
#define __syncthreads_and(p) (cuemu::syncthreads(__LINE__, (p) != 0) == cuemu::nthr)
static inline void __syncwarp(unsigned m = 0xffffffffu, int line = __builtin_LINE()) { cuemu::collective(cuemu::OP_SYNC, m, 0, 0, line); }
#define __shfl_sync(...) cuemu::shfl(__LINE__, __VA_ARGS__)
#define __shfl_down_sync(...) cuemu::shfl_down(__LINE__, __VA_ARGS__)
#define __shfl_up_sync(...) cuemu::shfl_up(__LINE__, __VA_ARGS__)
#define __shfl_xor_sync(...) cuemu::shfl_xor(__LINE__, __VA_ARGS__)
#define __ballot_sync(m, p) ((unsigned)cuemu::collective(cuemu::OP_BALLOT, m, (p) != 0, 0, __LINE__))
#define __any_sync(m, p) ((int)cuemu::collective(cuemu::OP_ANY, m, (p) != 0, 0, __LINE__))
#define __all_sync(m, p) ((int)cuemu::collective(cuemu::OP_ALL, m, (p) != 0, 0, __LINE__))
#define __activemask() (cuemu::warps[cuemu::cur->lin >> 5].alive)

// ---------------------------------------------------------------- atomics, maths
template <class T, class V> static inline T atomicAdd(T *p, V v) { T o = *p; *p = o + (T)v; return o; }
template <class T, class V> static inline T atomicMax(T *p, V v) { T o = *p; if ((T)v > o) *p = (T)v; return o; }
template <class T, class V> static inline T atomicMin(T *p, V v) { T o = *p; if ((T)v < o) *p = (T)v; return o; }
template <class T, class V> static inline T atomicExch(T *p, V v) { T o = *p; *p = (T)v; return o; }
template <class T, class V, class W> static inline T atomicCAS(T *p, V c, W v) { T o = *p; if (o == (T)c) *p = (T)v; return o; }
static inline unsigned atomicInc(unsigned *p, unsigned n) { unsigned o = *p; *p = o >= n ? 0 : o + 1; return o; }
static inline void __threadfence() {}
static inline void __threadfence_block() {}
template <class T> static inline T __ldg(const T *p) { return *p; }
static inline float rsqrtf(float x) { return 1.f / sqrtf(x); }
static inline void sincos(float x, float *s, float *c) { sincosf(x, s, c); }
static inline double rsqrt(double x) { return 1. / sqrt(x); }
#define __expf(x) expf(x)      // glibc declares these names itself: macros, after math.h
#define __logf(x) logf(x)
#define __sinf(x) sinf(x)
#define __cosf(x) cosf(x)
#define __powf(x, y) powf(x, y)
static inline float __fdividef(float a, float b) { return a / b; }
static inline float __fmaf_rn(float a, float b, float c) { return fmaf(a, b, c); }
static inline float __int_as_float(int i) { float f; memcpy(&f, &i, 4); return f; }
static inline int __float_as_int(float f) { int i; memcpy(&i, &f, 4); return i; }
static inline float __uint_as_float(unsigned i) { float f; memcpy(&f, &i, 4); return f; }
static inline int __popc(unsigned x) { return __builtin_popcount(x); }
static inline int __clz(int x) { return x ? __builtin_clz(x) : 32; }
static inline int __ffs(int x) { return __builtin_ffs(x); }
static inline unsigned __umulhi(unsigned a, unsigned b) { return (unsigned)((uint64_t)a * b >> 32); }
template <class T> static inline T min(T a, T b) { return b < a ? b : a; }
template <class T> static inline T max(T a, T b) { return a < b ? b : a; }

// ---------------------------------------------------------------- launch
#ifndef __SANITIZE_ADDRESS__
extern "C" char __start_cuemu_shared[] __attribute__((weak)), __stop_cuemu_shared[] __attribute__((weak));
#endif
namespace cuemu {
template <class T> static inline T take(const char *buf, size_t &off, size_t n) {
  off = (off + alignof(T) - 1) & ~(alignof(T) - 1);
  if (off + sizeof(T) > n) fail("parameter buffer too short: %zu bytes", n);
  T v; memcpy(&v, buf + off, sizeof v); off += sizeof v; return v;
}
// The number of the block that is run as number i of n, or of the thread of a kernel without barriers. The factor of
// the last order is prime, so each number occurs once unless n is a multiple of it.
static inline unsigned turn(unsigned i, unsigned n) {
  const unsigned prime = 1000003;
  return cuemu_schedule == 0 ? i : cuemu_schedule == 1 || n % prime == 0 ? n - 1 - i : (unsigned)((uint64_t)i * prime % n);
}
static void poison() {
#ifndef __SANITIZE_ADDRESS__
  if (__start_cuemu_shared) memset(__start_cuemu_shared, 0xff, __stop_cuemu_shared - __start_cuemu_shared);
#endif
  if (dyn_size) memset(dyn_smem, 0xff, dyn_size);
}
template <bool ALONE, class F> static __attribute__((noinline)) int grid_loop(const unsigned *g, const unsigned *b, size_t shmem, F &&thread) {
  cuemu_gridDim = dim3(g[0], g[1], g[2]); cuemu_blockDim = dim3(b[0], b[1], b[2]); cuemu_errmsg[0] = 0;
  int n = b[0] * b[1] * b[2];
  if (n < 1 || n > 1024 || !g[0] || !g[1] || !g[2] || b[2] > 64 || g[1] > 65535 || g[2] > 65535 || shmem > 227 * 1024) { snprintf(cuemu_errmsg, sizeof cuemu_errmsg, "invalid launch configuration"); return 1; }
  static char *smem; free(smem); smem = dyn_smem = 0; dyn_size = shmem;
  if (shmem && posix_memalign((void **)&smem, 128, shmem + 128)) return 1;
  if (shmem) { dyn_smem = smem; memset(smem + shmem, 0xa5, 128); }
  static F *pf; pf = &thread;
  if (!ALONE) { prepare(n); body = [] { (*pf)(); }; }
  for (unsigned z = 0; z < g[2]; ++z) for (unsigned y = 0; y < g[1]; ++y) for (unsigned x = 0; x < g[0]; ++x) {
    cuemu_blockIdx.x = turn(x, g[0]); cuemu_blockIdx.y = turn(y, g[1]); cuemu_blockIdx.z = turn(z, g[2]); poison();
    if (!ALONE) run_block();
    else for (int i = 0; i < n; ++i) { set_tid(turn(i, n)); thread(); }
    for (int i = 0; shmem && i < 128; ++i) if ((unsigned char)smem[shmem + i] != 0xa5) fail("write past the end of dynamic shared memory (%zu bytes)", shmem);
  }
  return 0;
}
template <class... A> struct Pack;
template <> struct Pack<> { template <class F, class... V> static void call(F f, const Pack &, V... v) { f(v...); } };
template <class H, class... T> struct Pack<H, T...> {
  H h; Pack<T...> t;
  template <class F, class... V> static void call(F f, const Pack &p, V... v) { Pack<T...>::call(f, p.t, v..., p.h); }
};
template <class... A> struct Un;
template <> struct Un<> { static Pack<> get(const char *, size_t &, size_t) { return {}; } };
template <class H, class... T> struct Un<H, T...> { static Pack<H, T...> get(const char *b, size_t &o, size_t n) { H h = take<H>(b, o, n); return {h, Un<T...>::get(b, o, n)}; } };
template <bool ALONE, class... A, class K> static int launch(void (*)(A...), K kern, const unsigned *g, const unsigned *b, size_t shmem, const char *buf, size_t n) {
  if (_setjmp(launcher)) {
    abandon();
    return 1;
  }
  size_t o = 0; Pack<A...> p = Un<A...>::get(buf, o, n);
  if (o != n) { snprintf(cuemu_errmsg, sizeof cuemu_errmsg, "parameter buffer has %zu bytes, the kernel takes %zu", n, o); return 1; }
  return grid_loop<ALONE>(g, b, shmem, [&] { Pack<A...>::call(kern, p); });
}
}
#define CUEMU_EXPORT_AS(k, ALONE) extern "C" __attribute__((visibility("default"))) int k##__emu(const unsigned *g, const unsigned *b, size_t s, const char *buf, size_t n) \
  { auto f = [](auto... a) __attribute__((always_inline)) { k(a...); }; return cuemu::launch<ALONE>(&k, f, g, b, s, buf, n); }
#define CUEMU_EXPORT(k) CUEMU_EXPORT_AS(k, false)
#define CUEMU_EXPORT_ALONE(k) CUEMU_EXPORT_AS(k, true)
