// The stream and the memory of the emulator: functions with the signatures of CUDA's driver, which record work,
// and one that runs it. Compiled with cuemu_threads.h, with the flags of kernels.
#include <time.h>

#define EXPORT extern "C" __attribute__((visibility("default")))
enum { LAUNCH, COPY, FILL };
enum { CANARY = 256, UNUSED = 0xA5, FRESH = 0xFF, FREED = 0xDD };
enum { PARAMETERS = 1, PARAMETERS_SIZE = 2 };   // CUDA's, in the last argument of a launch
enum { OK = 0, INVALID = 1, NO_MEMORY = 2 };

// An entry of a file of kernels.
typedef int Entry(cuemu::Machine *machine, const unsigned *grid, const unsigned *block, size_t shared,
                  const char *given, size_t n);
struct Work {
  int kind;
  Entry *kernel;
  unsigned grid[3], block[3];
  size_t shared, at, nbytes;    // of parameters: where they begin in those of the batch
  uint64_t target, source;
  int value;
};
struct Batch {
  Work *work;
  size_t n, room;
  char *given;
  size_t used, most;
};

static int grow(void **memory, size_t *room, size_t wanted, size_t size) {
  if (wanted <= *room) return 1;
  size_t larger = 2 * wanted + 16;
  void *found = realloc(*memory, larger * size);
  if (!found) return 0;
  *memory = found;
  *room = larger;
  return 1;
}
static Work *next(void *stream, int kind) {
  Batch *b = (Batch *)stream;
  if (!grow((void **)&b->work, &b->room, b->n + 1, sizeof(Work))) return 0;
  Work *w = b->work + b->n++;
  memset(w, 0, sizeof *w);
  w->kind = kind;
  return w;
}

EXPORT void *emu_begin() { return calloc(1, sizeof(Batch)); }
EXPORT void emu_drop(void *stream) {
  Batch *b = (Batch *)stream;
  free(b->work);
  free(b->given);
  free(b);
}
EXPORT int emu_launch(void *kernel, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                      unsigned bz, unsigned shared, void *stream, void **parameters, void **extra) {
  if (parameters || !extra) return INVALID;
  const char *given = 0;
  size_t n = 0;
  for (; *extra; extra += 2)
    if (*extra == (void *)PARAMETERS) given = (const char *)extra[1];
    else if (*extra == (void *)PARAMETERS_SIZE) n = *(size_t *)extra[1];
  Batch *b = (Batch *)stream;
  Work *w = next(b, LAUNCH);
  if (!w || !grow((void **)&b->given, &b->most, b->used + n + 16, 1)) return NO_MEMORY;
  w->kernel = (Entry *)kernel;
  w->grid[0] = gx, w->grid[1] = gy, w->grid[2] = gz;
  w->block[0] = bx, w->block[1] = by, w->block[2] = bz;
  w->shared = shared, w->at = b->used, w->nbytes = n;
  memcpy(b->given + b->used, given, n);
  b->used += (n + 15) / 16 * 16;
  return OK;
}
EXPORT int emu_copy(uint64_t target, uint64_t source, size_t n, void *stream) {
  Work *w = next(stream, COPY);
  if (!w) return NO_MEMORY;
  w->target = target, w->source = source, w->nbytes = n;
  return OK;
}
EXPORT int emu_fill(uint64_t target, unsigned char value, size_t n, void *stream) {
  Work *w = next(stream, FILL);
  if (!w) return NO_MEMORY;
  w->target = target, w->value = value, w->nbytes = n;
  return OK;
}

// Graphs are batches: a stream that is captured is emptied into one, which is then added to others.
static int append(Batch *to, const Batch *from) {
  if (!grow((void **)&to->work, &to->room, to->n + from->n, sizeof(Work)) ||
      !grow((void **)&to->given, &to->most, to->used + from->used + 16, 1))
    return NO_MEMORY;
  for (size_t i = 0; i < from->n; ++i) {
    Work *w = to->work + to->n++;
    *w = from->work[i];
    w->at += to->used;
  }
  memcpy(to->given + to->used, from->given, from->used);
  to->used += from->used;
  return OK;
}
static int copied(void **made, const void *from) {
  *made = emu_begin();
  return *made ? append((Batch *)*made, (const Batch *)from) : NO_MEMORY;
}
EXPORT int emu_begin_capture(void *stream, int mode) {
  Batch *b = (Batch *)stream;
  b->n = b->used = 0;
  return OK;
}
EXPORT int emu_end_capture(void *stream, void **graph) { return copied(graph, stream); }
EXPORT int emu_instantiate(void **made, void *graph, unsigned long long flags) { return copied(made, graph); }
EXPORT int emu_launch_graph(void *made, void *stream) { return append((Batch *)stream, (const Batch *)made); }
EXPORT int emu_drop_graph(void *graph) { return emu_drop(graph), OK; }
EXPORT int emu_drop_made(void *made) { return emu_drop(made), OK; }

// The address sanitizer stops kernels that were compiled for it where they touch forbidden memory.
#ifdef __SANITIZE_ADDRESS__
extern "C" void __asan_poison_memory_region(const volatile void *, size_t);
static void forbid(uint64_t address, size_t n) { __asan_poison_memory_region((void *)address, n); }
#else
static void forbid(uint64_t, size_t) {}
#endif

// Memory between canaries, before which lies what free() needs.
struct Header {
  void *raw;
  size_t nbytes;
};
EXPORT int emu_take(uint64_t *address, size_t n) {
  unsigned char *raw = (unsigned char *)malloc(n + 4 * CANARY);
  if (!raw) return NO_MEMORY;
  memset(raw, UNUSED, n + 4 * CANARY);
  *address = ((uint64_t)raw + sizeof(Header) + 2 * CANARY - 1) / CANARY * CANARY;
  *((Header *)(*address - CANARY) - 1) = Header{raw, n};
  memset((void *)*address, FRESH, n);
  forbid(*address - CANARY, CANARY);
  forbid(*address + n, CANARY);
  return OK;
}
EXPORT int emu_give(uint64_t address) {
  const Header h = *((Header *)(address - CANARY) - 1);
  memset((void *)address, FREED, h.nbytes);
  free(h.raw);
  return OK;
}

// The clock of Python's time.perf_counter_ns.
static int64_t now() {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}
static int is_unused(const unsigned char *p) {
#ifndef __SANITIZE_ADDRESS__    // the sanitizer stops at the write itself, and would stop here, too
  for (int i = 0; i < CANARY; ++i) if (p[i] != UNUSED) return 0;
#endif
  return 1;
}
// Run n pieces of a batch, and look after each launch whether something lies before or behind the blocks (address
// and bytes of each). `times`, if there, gets when each piece began and ended. Return the number of the piece that
// failed, whose message is *message, 0 if it wrote outside; or -1.
EXPORT long long emu_run(void *stream, long long first, long long n, int order, const uint64_t *blocks,
                         long long n_blocks, int64_t *times, const char **message) {
  const Batch *b = (const Batch *)stream;
  *message = 0;
  for (long long i = 0; i < n; ++i) {
    const Work *w = b->work + first + i;
    if (times) times[2 * i] = now();
    if (w->kind == COPY) memmove((void *)w->target, (void *)w->source, w->nbytes);
    else if (w->kind == FILL) memset((void *)w->target, w->value, w->nbytes);
    else {
      cuemu_schedule = order, cuemu_errmsg[0] = 0;
      if (w->kernel(&cuemu_threads, w->grid, w->block, w->shared, b->given + w->at, w->nbytes)) {
        *message = cuemu_errmsg;
        return i;
      }
    }
    if (times) times[2 * i + 1] = now();
    for (long long k = 0; k < n_blocks; ++k) {
      const unsigned char *p = (const unsigned char *)blocks[2 * k];
      if (!is_unused(p - CANARY) || !is_unused(p + blocks[2 * k + 1])) return i;
    }
  }
  return -1;
}
