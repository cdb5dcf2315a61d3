// The streams and the memory of the emulator: functions with the signatures of CUDA's driver, which record work, and
// run it when the host waits. Compiled with cuemu_threads.h, with the flags of kernels. Callers hold the GIL, or what
// stands for it.
#include <time.h>

#define EXPORT extern "C" __attribute__((visibility("default")))
enum { LAUNCH, COPY, FILL, MOVE, HOLD, REACH, FOLLOW };
enum { CANARY = 256, UNUSED = 0xA5, FRESH = 0xFF, FREED = 0xDD };
enum { PARAMETERS = 1, PARAMETERS_SIZE = 2 };   // CUDA's, in the last argument of a launch
enum { OK = 0, INVALID = 1, NO_MEMORY = 2, NOT_READY = 600, FAILED = 719 };     // CUDA's codes

// An entry of a file of kernels.
typedef int Entry(cuemu::Machine *machine, const unsigned *grid, const unsigned *block, size_t shared,
                  const char *given, size_t n);
struct Stream;
struct Event {
  Stream *stream;
  uint64_t number;      // of the next piece after the last that reaches it
  int n_pending;        // pieces that will reach it
  int is_dropped;
};
struct Work {
  int kind;
  Entry *kernel;
  unsigned grid[3], block[3];
  size_t shared, at, nbytes;    // of parameters, and of addresses held: where they begin in those of the stream
  uint64_t target, source;
  int value;
  Event *event;
  Stream *other;                // FOLLOW: which is run up to the piece before ``number``
  uint64_t number;
  int64_t start, end;           // times
};
// Pieces are numbered from the beginning of the stream, and forgotten when all were run.
struct Stream {
  Work *work;
  size_t n, room;
  char *given;
  size_t used, most;
  uint64_t first;               // the number of work[0]
  size_t done;                  // pieces of ``work``
  int is_eager, is_timed, order;
  size_t n_timed, n_before;     // pieces whose times were not read; and how many there were when times were asked for
  size_t held, n_held;          // the addresses of blocks to look after, among ``given``
  Stream *failed;               // where the last error was: here, or in a stream that this one follows
  uint64_t failed_number;
  char message[512];
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
static Work *next(Stream *s, int kind) {
  if (!grow((void **)&s->work, &s->room, s->n + 1, sizeof(Work))) return 0;
  Work *w = s->work + s->n++;
  memset(w, 0, sizeof *w);
  w->kind = kind;
  s->n_timed += s->is_timed;
  return w;
}
// Add bytes to those of the stream; where they begin is *at.
static int give(Stream *s, const void *bytes, size_t n, size_t *at) {
  if (!grow((void **)&s->given, &s->most, s->used + n + 16, 1)) return 0;
  *at = s->used;
  memcpy(s->given + s->used, bytes, n);
  s->used += (n + 15) / 16 * 16;
  return 1;
}
static int run(Stream *s, uint64_t until);
static int ready(Stream *s) { return s->is_eager ? run(s, ~(uint64_t)0) : OK; }

EXPORT void *emu_begin(int is_eager) {
  Stream *s = (Stream *)calloc(1, sizeof(Stream));
  if (s) s->is_eager = is_eager;
  return s;
}
EXPORT void emu_drop(void *stream) {
  Stream *s = (Stream *)stream;
  free(s->work);
  free(s->given);
  free(s);
}
EXPORT int emu_launch(void *kernel, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                      unsigned bz, unsigned shared, void *stream, void **parameters, void **extra) {
  if (parameters || !extra) return INVALID;
  const char *given = 0;
  size_t n = 0;
  for (; *extra; extra += 2)
    if (*extra == (void *)PARAMETERS) given = (const char *)extra[1];
    else if (*extra == (void *)PARAMETERS_SIZE) n = *(size_t *)extra[1];
  Stream *s = (Stream *)stream;
  Work *w = next(s, LAUNCH);
  if (!w || !give(s, given, n, &w->at)) return NO_MEMORY;
  w->kernel = (Entry *)kernel;
  w->grid[0] = gx, w->grid[1] = gy, w->grid[2] = gz;
  w->block[0] = bx, w->block[1] = by, w->block[2] = bz;
  w->shared = shared, w->nbytes = n;
  return ready(s);
}
static int move(int kind, uint64_t target, uint64_t source, size_t n, void *stream) {
  Work *w = next((Stream *)stream, kind);
  if (!w) return NO_MEMORY;
  w->target = target, w->source = source, w->nbytes = n;
  return ready((Stream *)stream);
}
EXPORT int emu_copy(uint64_t target, uint64_t source, size_t n, void *stream) {
  return move(COPY, target, source, n, stream);
}
EXPORT int emu_to_device(uint64_t target, const void *source, size_t n, void *stream) {
  return move(MOVE, target, (uint64_t)source, n, stream);
}
EXPORT int emu_to_host(void *target, uint64_t source, size_t n, void *stream) {
  return move(MOVE, (uint64_t)target, source, n, stream);
}
EXPORT int emu_fill(uint64_t target, unsigned char value, size_t n, void *stream) {
  Work *w = next((Stream *)stream, FILL);
  if (!w) return NO_MEMORY;
  w->target = target, w->value = value, w->nbytes = n;
  return ready((Stream *)stream);
}
// The blocks that all further work may write to.
EXPORT int emu_hold(const uint64_t *blocks, size_t n, void *stream) {
  Stream *s = (Stream *)stream;
  Work *w = next(s, HOLD);
  if (!w || !give(s, blocks, n * sizeof *blocks, &w->at)) return NO_MEMORY;
  w->nbytes = n;
  return ready(s);
}
// The number of the next piece: to be recorded, or to be run.
EXPORT uint64_t emu_count(void *stream, int is_run) {
  const Stream *s = (const Stream *)stream;
  return s->first + (is_run ? s->done : s->n);
}

EXPORT int emu_make_event(void **event, unsigned flags) {
  *event = calloc(1, sizeof(Event));
  return *event ? OK : NO_MEMORY;
}
EXPORT int emu_drop_event(void *event) {
  Event *e = (Event *)event;
  if (e->n_pending) e->is_dropped = 1;
  else free(e);
  return OK;
}
static void reach(Event *e) {
  if (!--e->n_pending && e->is_dropped) free(e);
}
EXPORT int emu_record(void *event, void *stream) {
  Event *e = (Event *)event;
  Stream *s = (Stream *)stream;
  Work *w = next(s, REACH);
  if (!w) return NO_MEMORY;
  w->event = e;
  e->stream = s, e->number = emu_count(s, 0), e->n_pending++;
  return ready(s);
}
EXPORT int emu_query(void *event) {
  return ((const Event *)event)->n_pending ? NOT_READY : OK;
}
EXPORT int emu_wait(void *stream) { return run((Stream *)stream, ~(uint64_t)0); }
EXPORT int emu_follow(void *stream, void *event, unsigned flags) {
  const Event *e = (const Event *)event;
  Work *w = next((Stream *)stream, FOLLOW);
  if (!w) return NO_MEMORY;
  w->other = e->stream, w->number = e->number;
  return ready((Stream *)stream);
}
EXPORT int emu_from_peer(uint64_t target, void *context, uint64_t source, void *peer, size_t n, void *stream) {
  return move(MOVE, target, source, n, stream);
}
EXPORT int emu_take_pinned(void **address, size_t n, unsigned flags) {
  *address = malloc(n ? n : 1);
  return *address ? OK : NO_MEMORY;
}
EXPORT int emu_give_pinned(void *address) { return free(address), OK; }

// Graphs are streams: one that is captured is emptied into one, which is then added to others.
static int append(Stream *to, const Stream *from) {
  const size_t before = to->used;
  size_t at;
  if (!grow((void **)&to->work, &to->room, to->n + from->n, sizeof(Work)) || !give(to, from->given, from->used, &at))
    return NO_MEMORY;
  for (size_t i = 0; i < from->n; ++i) {
    Work *w = to->work + to->n++;
    *w = from->work[i];
    w->at += before;
  }
  return ready(to);
}
static int copied(void **made, const void *from) {
  *made = emu_begin(0);
  return *made ? append((Stream *)*made, (const Stream *)from) : NO_MEMORY;
}
EXPORT int emu_begin_capture(void *stream, int mode) {
  Stream *s = (Stream *)stream;
  s->n = s->used = 0;
  return OK;
}
EXPORT int emu_end_capture(void *stream, void **graph) { return copied(graph, stream); }
EXPORT int emu_instantiate(void **made, void *graph, unsigned long long flags) { return copied(made, graph); }
EXPORT int emu_launch_graph(void *made, void *stream) { return append((Stream *)stream, (const Stream *)made); }
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
// Whether nothing was written before or behind the blocks that are held.
static int are_intact(const Stream *s) {
  const uint64_t *blocks = (const uint64_t *)(s->given + s->held);
  for (size_t k = 0; k < s->n_held; ++k) {
    const unsigned char *p = (const unsigned char *)blocks[k];
    if (!is_unused(p - CANARY) || !is_unused(p + ((const Header *)(p - CANARY) - 1)->nbytes)) return 0;
  }
  return 1;
}
static int run_piece(Stream *s, Work *w) {
  switch (w->kind) {
  case LAUNCH:
    cuemu_schedule = s->order, cuemu_errmsg[0] = 0;
    if (w->kernel(&cuemu_threads, w->grid, w->block, w->shared, s->given + w->at, w->nbytes)) {
      snprintf(s->message, sizeof s->message, "%s", cuemu_errmsg);
      return FAILED;
    }
    break;
  case COPY: case MOVE: memmove((void *)w->target, (void *)w->source, w->nbytes); break;
  case FILL: memset((void *)w->target, w->value, w->nbytes); break;
  case HOLD: s->held = w->at, s->n_held = w->nbytes; break;
  case REACH: reach(w->event); break;
  case FOLLOW: {
    const int code = run(w->other, w->number);
    if (code) s->failed = w->other->failed;
    return code;
  }
  }
  if (w->kind <= FILL && !are_intact(s)) {
    snprintf(s->message, sizeof s->message, "wrote outside of its arrays");
    return FAILED;
  }
  return OK;
}
static void forget(Stream *s) {
  if (s->done < s->n || s->n_timed) return;
  s->first += s->n;
  s->n = s->done = s->used = s->n_held = 0;
}
// Run the pieces before the one of this number. What follows an error is left out; events there are reached.
static int run(Stream *s, uint64_t until) {
  int code = OK;
  while (!code && s->done < s->n && s->first + s->done < until) {
    Work *w = s->work + s->done;
    if (s->n_timed) w->start = now();
    s->failed = s;
    code = run_piece(s, w);
    if (code) break;
    if (s->n_timed) w->end = now();
    s->done++;
  }
  if (code) {
    s->failed_number = s->first + s->done;
    for (; s->done < s->n; s->done++)
      if (s->work[s->done].kind == REACH) reach(s->work[s->done].event);
  }
  forget(s);
  return code;
}
// Where, and in which stream, the last error of a stream was.
EXPORT const char *emu_failure(void *stream, void **where, uint64_t *number) {
  const Stream *s = ((Stream *)stream)->failed;
  *where = (void *)s, *number = s->failed_number;
  return s->message;
}
EXPORT void emu_order(void *stream, int order) { ((Stream *)stream)->order = order; }
// Let the times of pieces that are recorded be kept; or no longer, and those of ``n`` since this was asked for until they
// are read.
EXPORT void emu_time(void *stream, int is_timed, uint64_t n) {
  Stream *s = (Stream *)stream;
  if (is_timed) s->n_before = s->n_timed;
  else s->n_timed = s->n_before + n;
  s->is_timed = is_timed;
}
// When a piece, whose times are kept, began and ended; zeros if it did not. It is asked once.
EXPORT void emu_times(void *stream, uint64_t number, int64_t *times) {
  Stream *s = (Stream *)stream;
  const Work *w = s->work + (number - s->first);
  times[0] = w->start, times[1] = w->end;
  s->n_timed--;
  forget(s);
}
