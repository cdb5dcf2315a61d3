// CUDA C on the processor: what the emulator (emulator.py) puts before kernels, after declarations of the C library
// (c_library.py), whose own headers would take a third of the time of compiling a kernel. What runs their threads is
// compiled once, apart from them (cuemu_threads.h), and given to each launch.
#define __CUEMU__ 1

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


namespace cuemu {
enum Op { OP_SYNC, OP_SHFL, OP_BALLOT, OP_ANY, OP_ALL };
// The functions that a kernel calls, and the variables that it reads.
struct Machine {
  uint3 thread, block;
  dim3 block_size, grid_size;
  char *shared;                   // dynamic shared memory
  int threads;                    // of a block
  void (*fail)(const char *format, ...);    // does not return
  int (*syncthreads)(int line, int pred);
  void (*sync_first)(int threads, int line);
  uint64_t (*collective)(int op, unsigned mask, uint64_t value, int source, int line);
  unsigned (*active)();
  int (*lane)();
  // Run `thread` for all threads of a grid; return 1 if it fails. With `barriers`, threads may wait for each other.
  int (*run)(int barriers, void (*thread)(const void *given), const void *given, const unsigned *grid,
             const unsigned *block, size_t shared, char *start, char *stop);
  int (*refuse)(size_t given, size_t wanted);
};
}
// Visible, so that no compiler may keep what it points to over a switch of threads.
extern "C" { __attribute__((visibility("default"))) cuemu::Machine *cuemu_machine; }
#define threadIdx (cuemu_machine->thread)
#define blockIdx (cuemu_machine->block)
#define blockDim (cuemu_machine->block_size)
#define gridDim (cuemu_machine->grid_size)
static const int warpSize = 32;
// dynamic shared memory: in CUDA  extern __shared__ __align__(16) unsigned char n[]
#define SYM_DYN_SHARED(T, name) T *name = (T *)cuemu_machine->shared

namespace cuemu {
static inline void need_aligned(const void *p, size_t n) { if ((uintptr_t)p % n) cuemu_machine->fail("an access of %zu bytes at %p is not aligned", n, p); }
static inline int lane() { return cuemu_machine->lane(); }
template <class T> static inline T shfl_(unsigned mask, T v, int src, int line) {
  uint64_t b = 0; memcpy(&b, &v, sizeof v); b = cuemu_machine->collective(OP_SHFL, mask, b, src, line);
  T r; memcpy(&r, &b, sizeof r); return r;
}
template <class T> static inline T shfl(int ln, unsigned m, T v, int s, int w = 32) { return shfl_(m, v, (lane() & ~(w - 1)) | (s & (w - 1)), ln); }
template <class T> static inline T shfl_down(int ln, unsigned m, T v, unsigned d, int w = 32) { int l = lane(), s = l + (int)d; return shfl_(m, v, (l & (w - 1)) + (int)d >= w ? l : s, ln); }
template <class T> static inline T shfl_up(int ln, unsigned m, T v, unsigned d, int w = 32) { int l = lane(); return shfl_(m, v, (l & (w - 1)) < (int)d ? l : l - (int)d, ln); }
template <class T> static inline T shfl_xor(int ln, unsigned m, T v, int x, int w = 32) { int l = lane(), s = l ^ x; return shfl_(m, v, s >= (l & ~(w - 1)) + w ? l : s, ln); }
}
#define __syncthreads() ((void)cuemu_machine->syncthreads(__LINE__, 0))
#define wait_for_first(threads) cuemu_machine->sync_first(threads, __LINE__)
#define __syncthreads_count(p) cuemu_machine->syncthreads(__LINE__, (p) != 0)
#define __syncthreads_or(p) (cuemu_machine->syncthreads(__LINE__, (p) != 0) > 0)
#define __syncthreads_and(p) (cuemu_machine->syncthreads(__LINE__, (p) != 0) == cuemu_machine->threads)
static inline void __syncwarp(unsigned m = 0xffffffffu, int line = __builtin_LINE()) { cuemu_machine->collective(cuemu::OP_SYNC, m, 0, 0, line); }
#define __shfl_sync(...) cuemu::shfl(__LINE__, __VA_ARGS__)
#define __shfl_down_sync(...) cuemu::shfl_down(__LINE__, __VA_ARGS__)
#define __shfl_up_sync(...) cuemu::shfl_up(__LINE__, __VA_ARGS__)
#define __shfl_xor_sync(...) cuemu::shfl_xor(__LINE__, __VA_ARGS__)
#define __ballot_sync(m, p) ((unsigned)cuemu_machine->collective(cuemu::OP_BALLOT, m, (p) != 0, 0, __LINE__))
#define __any_sync(m, p) ((int)cuemu_machine->collective(cuemu::OP_ANY, m, (p) != 0, 0, __LINE__))
#define __all_sync(m, p) ((int)cuemu_machine->collective(cuemu::OP_ALL, m, (p) != 0, 0, __LINE__))
#define __activemask() cuemu_machine->active()

// ---------------------------------------------------------------- atomics, maths
template <class T, class V> static inline T atomicAdd(T *p, V v) { T o = *p; *p = o + (T)v; return o; }
template <class T, class V> static inline T atomicMax(T *p, V v) { T o = *p; if ((T)v > o) *p = (T)v; return o; }
template <class T, class V> static inline T atomicMin(T *p, V v) { T o = *p; if ((T)v < o) *p = (T)v; return o; }
template <class T, class V> static inline T atomicOr(T *p, V v) { T o = *p; *p = o | (T)v; return o; }
template <class T, class V> static inline T atomicExch(T *p, V v) { T o = *p; *p = (T)v; return o; }
template <class T, class V, class W> static inline T atomicCAS(T *p, V c, W v) { T o = *p; if (o == (T)c) *p = (T)v; return o; }
static inline unsigned atomicInc(unsigned *p, unsigned n) { unsigned o = *p; *p = o >= n ? 0 : o + 1; return o; }
static inline void __threadfence() {}
static inline void __threadfence_block() {}
template <class T> static inline T __ldg(const T *p) { return *p; }
static inline float rsqrtf(float x) { return 1.f / sqrtf(x); }
static inline void sincos(float x, float *s, float *c) { __builtin_sincosf(x, s, c); }
static inline void sincos(double x, double *s, double *c) { __builtin_sincos(x, s, c); }
static inline double rsqrt(double x) { return 1. / sqrt(x); }
#define __expf(x) expf(x)      // glibc has these names itself, so they are macros
#define __logf(x) logf(x)
#define __sinf(x) sinf(x)
#define __cosf(x) cosf(x)
#define __powf(x, y) powf(x, y)
static inline float __fdividef(float a, float b) { return a / b; }
static inline float __fmaf_rn(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
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
#else
static char *const __start_cuemu_shared = 0, *const __stop_cuemu_shared = 0;
#endif
namespace cuemu {
// Parameters lie as the fields of a structure do.
template <class... A> constexpr size_t size_of_parameters() {
  size_t end = 0;
  ((end = (end + alignof(A) - 1) / alignof(A) * alignof(A) + sizeof(A)), ...);
  return end;
}
template <class T> static inline T take(const char *from, size_t &at) {
  at = (at + alignof(T) - 1) / alignof(T) * alignof(T);
  T v; memcpy(&v, from + at, sizeof v); at += sizeof v; return v;
}
template <class... A> struct Pack;
template <> struct Pack<> {
  Pack(const char *, size_t) {}
  template <class F, class... V> void call(F f, V... v) const { f(v...); }
};
template <class H, class... T> struct Pack<H, T...> {
  H h; Pack<T...> t;
  Pack(const char *from, size_t at) : h(take<H>(from, at)), t(from, at) {}
  template <class F, class... V> void call(F f, V... v) const { t.call(f, v..., h); }
};
template <auto K> struct Kernel;
template <class... A, void (*K)(A...)> struct Kernel<K> {
  static void thread(const void *given) { ((const Pack<A...> *)given)->call(K); }
  static int launch(int barriers, const unsigned *g, const unsigned *b, size_t shared, const char *given, size_t n) {
    if (n != size_of_parameters<A...>()) return cuemu_machine->refuse(n, size_of_parameters<A...>());
    const Pack<A...> p(given, 0);
    return cuemu_machine->run(barriers, thread, &p, g, b, shared, __start_cuemu_shared, __stop_cuemu_shared);
  }
};
}
#define CUEMU_EXPORT_AS(k, BARRIERS) extern "C" __attribute__((visibility("default"))) int k##__emu(cuemu::Machine *machine, const unsigned *g, const unsigned *b, size_t s, const char *given, size_t n) \
  { cuemu_machine = machine; return cuemu::Kernel<&k>::launch(BARRIERS, g, b, s, given, n); }
#define CUEMU_EXPORT(k) CUEMU_EXPORT_AS(k, 1)
#define CUEMU_EXPORT_ALONE(k) CUEMU_EXPORT_AS(k, 0)
