// The base of the stand-ins of NVIDIA's libraries: work is enqueued on the emulator's stream, as launches, and so
// runs when the host waits, in order with kernels. A stream that was not set is an error.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT extern "C" __attribute__((visibility("default")))
#define API EXPORT int

typedef int (*Launch)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *stream,
                      void **, void **);
static Launch launch;
static long long n_calls;
static int failure;
EXPORT long long fake_calls() { return n_calls; }
// Let the next call fail.
EXPORT void fake_failure(int code) { failure = code; }
// Count a call; return what it fails with.
static int counted() {
  const int code = failure;
  failure = 0;
  ++n_calls;
  return code;
}
EXPORT void stand_in_launches(void *by) { launch = (Launch)by; }

// An entry of a file of kernels, as the emulator calls it.
template <class Work> int run_work(void *, const unsigned *, const unsigned *, size_t, const char *given, size_t) {
  alignas(Work) char copy[sizeof(Work)];
  memcpy(copy, given, sizeof copy);
  return (*(const Work *)copy)();
}
// Enqueue work: a function object of numbers and pointers, which returns 0.
template <class Work> int enqueue(void *stream, const Work &work) {
  size_t size = sizeof work;
  void *extra[] = {(void *)1, (void *)&work, (void *)2, &size, 0};
  if (!launch || !stream) return 1;
  return launch((void *)run_work<Work>, 1, 1, 1, 1, 1, 1, 0, stream, 0, extra);
}
