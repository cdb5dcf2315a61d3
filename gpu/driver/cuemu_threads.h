// The threads of kernels on the processor; after cuemu.h. One thread of the system; every CUDA thread of a block is a
// fiber (ucontext to start, _setjmp/_longjmp to switch). Kernels without barriers and warp collectives run as a plain
// loop over threads.
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>

extern "C" {
__attribute__((visibility("default"))) char cuemu_errmsg[512];
__attribute__((visibility("default"))) int cuemu_schedule;     // 0 forward, 1 reverse, 2.. random seed
}
extern "C" __attribute__((visibility("default"))) cuemu::Machine cuemu_threads;
namespace cuemu {
static Machine &machine = cuemu_threads;
static jmp_buf launcher;
static void fail(const char *fmt, ...) {
  char m[300]; va_list ap; va_start(ap, fmt); vsnprintf(m, sizeof m, fmt, ap); va_end(ap);
  const uint3 b = machine.block, t = machine.thread;
  snprintf(cuemu_errmsg, sizeof cuemu_errmsg, "%s [block (%u,%u,%u) thread (%u,%u,%u)]", m, b.x, b.y, b.z, t.x, t.y, t.z);
  _longjmp(launcher, 1);
}

enum State : unsigned char { READY, WAIT_BLOCK, WAIT_FIRST, WAIT_WARP, DONE };
struct Fiber {
  jmp_buf jb; ucontext_t uc; bool started; State st;
  int lin; int line; int op; unsigned mask; int src; uint64_t val, res;
};
struct Warp { unsigned alive, arrived; };
static const size_t STACK = 64 * 1024;
static Fiber *fib; static char *stacks; static int cap;
static Warp warps[64];
static int nthr, alive, arrived, arrived_first, bar_pred[3]; static Fiber *cur;
static jmp_buf sched; static ucontext_t sched_uc;

static void fiber_main();
static void run_thread();
static inline void set_tid(int l) {
  unsigned bx = machine.block_size.x, by = machine.block_size.y;
  machine.thread.x = l % bx; machine.thread.y = (l / bx) % by; machine.thread.z = l / (bx * by);
}
static __attribute__((noinline)) void yield_() { if (!_setjmp(cur->jb)) _longjmp(sched, 1); }
static __attribute__((noinline)) void resume(Fiber *f) {
  cur = f; set_tid(f->lin);
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
    run_thread();
    Fiber *f = cur; f->st = DONE; --alive;
    Warp &w = warps[f->lin >> 5]; w.alive &= ~(1u << (f->lin & 31));
    if (arrived) fail("a thread left the kernel while others wait at __syncthreads() in line %d", fib[0].line);
    if (arrived && arrived == alive) release_block();
    yield_();
  }
}
static int syncthreads(int line, int pred) {
  Fiber *f = cur; f->line = line;
  if (alive != nthr) fail("__syncthreads() in line %d after %d threads left the kernel", line, nthr - alive);
  static int first;
  if (!arrived) { bar_pred[0] = 0; first = line; }
  else if (first != line) fail("divergent barriers: line %d and line %d", first, line);
  bar_pred[0] += pred != 0;
  f->st = WAIT_BLOCK;
  if (++arrived == alive) { bar_pred[1] = bar_pred[0]; release_block(); }
  yield_();  // the last one, too: who goes on first is up to the order
  return bar_pred[1];
}
static void sync_first(int threads, int line) {
  Fiber *f = cur; f->line = line;
  static int first;
  if (f->lin >= threads) fail("line %d: a thread waits that is not one of the first %d", line, threads);
  if (!arrived_first) first = line;
  else if (first != line) fail("divergent barriers: line %d and line %d", first, line);
  f->st = WAIT_FIRST;
  if (++arrived_first == threads) {
    for (int i = 0; i < threads; ++i) fib[i].st = READY;
    arrived_first = 0;
  }
  yield_();
}
static uint64_t collective(int op, unsigned mask, uint64_t v, int src, int line) {
  Fiber *f = cur; int lane = f->lin & 31, w0 = f->lin & ~31; Warp &w = warps[f->lin >> 5];
  if (!(mask >> lane & 1)) fail("line %d: warp collective called by lane %d that is not in its mask %08x", line, lane, mask);
  if (mask & ~w.alive) { unsigned a = w.alive; if ((mask != 0xffffffffu || nthr - w0 >= 32)) fail("line %d: mask %08x names lanes that left or do not exist (alive %08x)", line, mask, a); mask &= w.alive; }
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
        if (!(mask >> g.src & 1) ) { if (w0 + g.src < nthr) fail("line %d: shuffle reads lane %d that is not in mask %08x", line, g.src, mask); g.res = g.val; }
        else g.res = fib[w0 + g.src].val;
      } else g.res = op == OP_BALLOT ? bal : op == OP_ANY ? bal != 0 : op == OP_ALL ? bal == mask : 0;
    }
    w.arrived &= ~mask;
    for (int l = 0; l < 32; ++l) if (mask >> l & 1) fib[w0 + l].st = READY;
  } else yield_();
  return f->res;
}
static unsigned rng_s;
static inline unsigned rng() { rng_s = rng_s * 1664525u + 1013904223u; return rng_s >> 8; }
static void run_block() {
  for (int i = 0; i < nthr; ++i) { fib[i].st = READY; fib[i].lin = i; }
  alive = nthr; arrived = arrived_first = 0;
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

// ---------------------------------------------------------------- launch
// The number of the block that is run as number i of n, or of the thread of a kernel without barriers. The factor of
// the last order is prime, so each number occurs once unless n is a multiple of it.
static inline unsigned turn(unsigned i, unsigned n) {
  const unsigned prime = 1000003;
  return cuemu_schedule == 0 ? i : cuemu_schedule == 1 || n % prime == 0 ? n - 1 - i : (unsigned)((uint64_t)i * prime % n);
}
static int refuse(size_t given, size_t wanted) {
  snprintf(cuemu_errmsg, sizeof cuemu_errmsg, "parameter buffer has %zu bytes, the kernel takes %zu", given, wanted);
  return 1;
}
static void (*kernel)(const void *given);
static const void *arguments;
static void run_thread() { kernel(arguments); }
static int run(int barriers, void (*thread)(const void *), const void *given, const unsigned *g, const unsigned *b,
               size_t shared, char *start, char *stop) {
  if (_setjmp(launcher)) {
    abandon();
    return 1;
  }
  machine.grid_size = dim3(g[0], g[1], g[2]); machine.block_size = dim3(b[0], b[1], b[2]);
  int n = b[0] * b[1] * b[2];
  if (n < 1 || n > 1024 || !g[0] || !g[1] || !g[2] || b[2] > 64 || g[1] > 65535 || g[2] > 65535 || shared > 227 * 1024) { snprintf(cuemu_errmsg, sizeof cuemu_errmsg, "invalid launch configuration"); return 1; }
  static char *memory; free(memory); memory = machine.shared = 0;
  if (shared && posix_memalign((void **)&memory, 128, shared + 128)) return 1;
  if (shared) { machine.shared = memory; memset(memory + shared, 0xa5, 128); }
  kernel = thread; arguments = given; machine.threads = n;
  if (barriers) prepare(n);
  for (unsigned z = 0; z < g[2]; ++z) for (unsigned y = 0; y < g[1]; ++y) for (unsigned x = 0; x < g[0]; ++x) {
    machine.block.x = turn(x, g[0]); machine.block.y = turn(y, g[1]); machine.block.z = turn(z, g[2]);
    memset(start, 0xff, stop - start);
    if (shared) memset(memory, 0xff, shared);
    if (barriers) run_block();
    else for (int i = 0; i < n; ++i) { set_tid(turn(i, n)); thread(given); }
    for (int i = 0; shared && i < 128; ++i) if ((unsigned char)memory[shared + i] != 0xa5) fail("write past the end of dynamic shared memory (%zu bytes)", shared);
  }
  return 0;
}
static unsigned active() { return warps[cur->lin >> 5].alive; }
static int lane_of_current() { return cur->lin & 31; }
}
cuemu::Machine cuemu_threads = {
  {}, {}, {}, {}, 0, 0, cuemu::fail, cuemu::syncthreads, cuemu::sync_first, cuemu::collective, cuemu::active,
  cuemu::lane_of_current, cuemu::run, cuemu::refuse};
