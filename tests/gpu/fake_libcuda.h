// A libcuda.so.1 for tests without a card: the part of the driver that PyCUDA needs. Kernels are
// libraries of the host, made of the same CUDA C by cuemu.h. FAKECUDA_DEVICES is the number of
// devices; 0 makes cuInit answer "no device". Streams are lazy: work runs when the host waits for it.
// Streams and memory belong to the context in which they were made, and are of no use in another.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>
#include <dlfcn.h>
#include <elf.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#define API extern "C" __attribute__((visibility("default"))) int
typedef uint64_t Ptr;
enum { OK = 0, INVALID = 1, OOM = 2, NOINIT = 3, NODEV = 100, BADIMG = 200, BADCTX = 201, BADHANDLE = 400, NOTFOUND = 500, NOTREADY = 600, ILLEGAL = 700, LAUNCHFAIL = 719, NOTSUP = 801 };
typedef std::vector<std::function<void()>> Graph;
struct Stream { unsigned flags; void *ctx = nullptr; std::deque<std::function<void()>> q; uint64_t put = 0, ran = 0; Graph *capture = nullptr; };
struct Event { Stream *s = nullptr; uint64_t at = 0; double t = 0; bool rec = false; };
struct Mod { void *h; int *sched; const char *msg; void *threads; };
struct Fun { Mod *m; std::string name; int (*f)(void *, const unsigned *, const unsigned *, size_t, const char *, size_t); };
struct Block { size_t n; char *raw; void *ctx; };
// never destroyed: PyCUDA frees while the process ends
static auto &mu = *new std::recursive_mutex; static auto &null_ = *new Stream; static auto &streams = *new std::set<Stream *>; static auto &mem = *new std::map<Ptr, Block>;
static size_t used; static const size_t TOTAL = size_t(4) << 30; static int sticky; static char lastmsg[700];
static thread_local std::vector<void *> ctxs; static int CTX[8];
static long n_sync, n_launch, n_graph; static bool eager;
static double now() { timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec * 1e3 + t.tv_nsec * 1e-6; }
#define LOCK std::lock_guard<std::recursive_mutex> l_(mu)
#define CTXCHK if (ctxs.empty()) return BADCTX; if (sticky) return sticky
static void step(Stream *s) { auto f = std::move(s->q.front()); s->q.pop_front(); ++s->ran; f(); }
static void drain(Stream *s) { while (!s->q.empty()) step(s); }
static void drain_all() { drain(&null_); for (auto *s : streams) drain(s); }
static Stream *S(void *h) { return h == nullptr || h == (void *)1 ? &null_ : (Stream *)h; }
static int put(void *h, std::function<void()> f) {
  Stream *s = S(h);
  if (s->ctx && (ctxs.empty() || s->ctx != ctxs.back())) return BADHANDLE;
  if (s->capture) { s->capture->push_back(std::move(f)); return sticky; }
  if (s == &null_) { for (auto *t : streams) if (!(t->flags & 1)) drain(t); } else if (!(s->flags & 1)) drain(&null_);
  s->q.push_back(std::move(f)); ++s->put; if (eager) drain(s); return sticky;
}
static void fault(int e, const char *m) { if (!sticky) { sticky = e; snprintf(lastmsg, sizeof lastmsg, "%s", m); fprintf(stderr, "fakecuda: %s\n", m); } }
static int rng(Ptr p, size_t n, void *ctx = nullptr) {  // inside one live allocation, of this context?
  auto i = mem.upper_bound(p); if (i == mem.begin()) return 0; --i; return p + n <= i->first + i->second.n && (!ctx || i->second.ctx == ctx);
}
static int count() { const char *d = getenv("FAKECUDA_DEVICES"); return d ? atoi(d) : 1; }
API cuInit(unsigned) { eager = getenv("FAKECUDA_EAGER"); return count() ? OK : NODEV; }
API cuDriverGetVersion(int *v) { *v = 13000; return OK; }
API cuGetErrorString(int e, const char **s) {
  *s = e == NODEV ? "no CUDA-capable device is detected" : e == OOM ? "out of memory" : e == BADCTX ? "invalid device context" : e == NOTFOUND ? "named symbol not found"
     : e == NOTSUP ? "not in the emulator" : e == INVALID ? "invalid argument" : e == sticky ? lastmsg : "emulated error"; return OK; }
API cuGetErrorName(int, const char **s) { *s = "CUDA_ERROR"; return OK; }
API cuDeviceGetCount(int *n) { *n = count(); return OK; }
API cuDeviceGet(int *d, int i) { *d = i; return i >= 0 && i < count() ? OK : 101; }
API cuDeviceGetName(char *s, int n, int) { snprintf(s, n, "CPU emulator (symcomp)"); return OK; }
API cuDeviceTotalMem_v2(size_t *n, int) { *n = TOTAL; return OK; }
API cuDeviceComputeCapability(int *a, int *b, int) { *a = 9; *b = 0; return OK; }
API cuDeviceGetPCIBusId(char *s, int n, int) { snprintf(s, n, "0000:00:00.0"); return OK; }
API cuDeviceGetAttribute(int *v, int a, int) {
  switch (a) { case 1: *v = 1024; break; case 2: case 3: *v = 1024; break; case 4: *v = 64; break; case 5: *v = 2147483647; break; case 6: case 7: *v = 65535; break;
    case 8: *v = 49152; break; case 10: *v = 32; break; case 12: *v = 65536; break; case 16: *v = 4; break; case 39: *v = 2048; break; case 75: *v = 9; break; case 76: *v = 0; break;
    case 81: *v = 233472; break; case 97: *v = 232448; break; case 41: *v = 1; break; default: *v = 0; } return OK; }
API cuDevicePrimaryCtxRetain(void **c, int d) { *c = &CTX[d]; return OK; }
API cuDevicePrimaryCtxRelease_v2(int) { return OK; }
API cuCtxCreate_v4(void **c, void *, unsigned, int) { *c = new int(1); ctxs.push_back(*c); return OK; }
API cuCtxAttach(void **c, unsigned) { if (ctxs.empty()) return BADCTX; *c = ctxs.back(); return OK; }
API cuCtxDetach(void *c) { if (!ctxs.empty() && ctxs.back() == c) ctxs.pop_back(); return OK; }
API cuCtxDestroy_v2(void *c) { return cuCtxDetach(c); }
API cuCtxPushCurrent_v2(void *c) { ctxs.push_back(c); return OK; }
API cuCtxPopCurrent_v2(void **c) { if (ctxs.empty()) return BADCTX; *c = ctxs.back(); ctxs.pop_back(); return OK; }
API cuCtxGetCurrent(void **c) { *c = ctxs.empty() ? nullptr : ctxs.back(); return OK; }
API cuCtxGetDevice(int *d) { if (ctxs.empty()) return BADCTX; *d = (int *)ctxs.back() - CTX; return OK; }
API cuCtxGetApiVersion(void *, unsigned *v) { *v = 13000; return OK; }
API cuCtxSynchronize() { LOCK; CTXCHK; ++n_sync; drain_all(); return sticky; }
API cuCtxGetLimit(size_t *v, int) { *v = 0; return OK; }
API cuCtxSetLimit(int, size_t) { return OK; }
API cuStreamCreate(Stream **s, unsigned f) { LOCK; CTXCHK; *s = new Stream; (*s)->flags = f; (*s)->ctx = ctxs.back(); streams.insert(*s); return OK; }
API cuStreamDestroy_v2(Stream *s) { LOCK; drain(s); streams.erase(s); delete s; return OK; }
API cuStreamSynchronize(void *s) { LOCK; CTXCHK; ++n_sync; if (S(s) == &null_) drain_all(); else drain(S(s)); return sticky; }
API cuStreamQuery(void *s) { LOCK; return S(s)->q.empty() ? sticky : NOTREADY; }
static void wait_ev(Event *e) { if (e->s) while (e->s->ran < e->at && !e->s->q.empty()) step(e->s); }
API cuEventCreate(Event **e, unsigned) { CTXCHK; *e = new Event; return OK; }
API cuEventDestroy_v2(Event *e) { LOCK; wait_ev(e); delete e; return OK; }
API cuEventRecord(Event *e, void *s) { LOCK; CTXCHK; e->rec = true; int r = put(s, [e] { e->t = now(); }); e->s = S(s); e->at = e->s->put; return r; }
API cuEventQuery(Event *e) { LOCK; return !e->s || e->s->ran >= e->at ? sticky : NOTREADY; }
API cuEventSynchronize(Event *e) { LOCK; CTXCHK; ++n_sync; wait_ev(e); return sticky; }
API cuEventElapsedTime_v2(float *ms, Event *a, Event *b) { LOCK; if (cuEventQuery(a) == NOTREADY || cuEventQuery(b) == NOTREADY) return NOTREADY; *ms = float(b->t - a->t); return OK; }
API cuEventElapsedTime(float *ms, Event *a, Event *b) { return cuEventElapsedTime_v2(ms, a, b); }
API cuStreamWaitEvent(void *s, Event *e, unsigned) { LOCK; Stream *es = e->s; uint64_t at = e->at; return put(s, [es, at] { if (es) while (es->ran < at && !es->q.empty()) step(es); }); }
API cuMemAlloc_v2(Ptr *p, size_t n) { LOCK; CTXCHK; if (!n) return INVALID; if (used + n > TOTAL) return OOM;
  char *raw = (char *)malloc(n + 2560); Ptr q = ((Ptr)raw + 1279) & ~Ptr(255); memset(raw, 0xa5, n + 2560); memset((void *)q, 0xff, n);
  mem[q] = {n, raw, ctxs.back()}; used += n; *p = q; return OK; }
static bool intact(Ptr p, const Block &b) { for (int i = 1; i <= 1024; ++i) if (((unsigned char *)p)[-i] != 0xa5 || ((unsigned char *)p)[b.n + i - 1] != 0xa5) return false; return true; }
API cuMemFree_v2(Ptr p) { LOCK; auto i = mem.find(p); if (i == mem.end()) return INVALID; ++n_sync; drain_all(); used -= i->second.n; free(i->second.raw); mem.erase(i); return sticky; }   // cuMemFree waits
API cuMemAllocAsync(Ptr *p, size_t n, void *) { return cuMemAlloc_v2(p, n); }
API cuMemFreeAsync(Ptr p, void *s) { LOCK; return put(s, [p] { auto i = mem.find(p); if (i != mem.end()) { used -= i->second.n; free(i->second.raw); mem.erase(i); } }); }
API cuMemGetInfo_v2(size_t *f, size_t *t) { *f = TOTAL - used; *t = TOTAL; return OK; }
API cuMemGetAddressRange_v2(Ptr *b, size_t *n, Ptr p) { LOCK; auto i = mem.upper_bound(p); if (i == mem.begin()) return INVALID; --i; *b = i->first; *n = i->second.n; return OK; }
static auto &pinned = *new std::map<Ptr, size_t>;
static bool is_pinned(Ptr p) { auto i = pinned.upper_bound(p); if (i == pinned.begin()) return false; --i; return p < i->first + i->second; }
API cuMemHostAlloc(void **p, size_t n, unsigned) { LOCK; *p = malloc(n ? n : 1); pinned[(Ptr)*p] = n; return OK; }
API cuMemFreeHost(void *p) { LOCK; drain_all(); pinned.erase((Ptr)p); free(p); return OK; }
API cuMemHostRegister_v2(void *p, size_t n, unsigned) { LOCK; pinned[(Ptr)p] = n; return OK; }
API cuMemHostUnregister(void *p) { LOCK; drain_all(); pinned.erase((Ptr)p); return OK; }
API cuMemHostGetDevicePointer_v2(Ptr *d, void *h, unsigned) { *d = (Ptr)h; return OK; }
static int cp(Ptr d, Ptr s, size_t n, int dd, int sd, void *st) { CTXCHK;
  if ((dd && !rng(d, n, ctxs.back())) || (sd && !rng(s, n, ctxs.back()))) return INVALID;
  return put(st, [=] { memmove((void *)d, (void *)s, n); }); }
API cuMemcpyHtoD_v2(Ptr d, const void *s, size_t n) { LOCK; int r = cp(d, (Ptr)s, n, 1, 0, 0); drain(&null_); return r ? r : sticky; }
API cuMemcpyDtoH_v2(void *d, Ptr s, size_t n) { LOCK; ++n_sync; int r = cp((Ptr)d, s, n, 0, 1, 0); drain(&null_); return r ? r : sticky; }
API cuMemcpyDtoD_v2(Ptr d, Ptr s, size_t n) { LOCK; return cp(d, s, n, 1, 1, 0); }
API cuMemcpyHtoDAsync_v2(Ptr d, const void *s, size_t n, void *st) { LOCK; CTXCHK;
  if (is_pinned((Ptr)s)) return cp(d, (Ptr)s, n, 1, 0, st);     // the driver reads pinned memory later ...
  if (!rng(d, n)) return INVALID; std::string t((const char *)s, n);   // ... and stages pageable memory before it returns
  return put(st, [=] { memcpy((void *)d, t.data(), t.size()); }); }
API cuMemcpyDtoHAsync_v2(void *d, Ptr s, size_t n, void *st) { LOCK; int r = cp((Ptr)d, s, n, 0, 1, st);
  if (!is_pinned((Ptr)d)) { ++n_sync; drain(S(st)); } return r ? r : sticky; }   // to pageable memory: returns when done
API cuMemcpyPeerAsync(Ptr d, void *dc, Ptr s, void *sc, size_t n, void *st) { LOCK; CTXCHK;
  if (!rng(d, n, dc) || !rng(s, n, sc)) return INVALID; return put(st, [=] { memmove((void *)d, (void *)s, n); }); }
API cuMemcpyDtoDAsync_v2(Ptr d, Ptr s, size_t n, void *st) { LOCK; return cp(d, s, n, 1, 1, st); }
template <class T> static int fill(Ptr p, T v, size_t n, void *st) { LOCK; CTXCHK; if (!rng(p, n * sizeof v)) return INVALID; return put(st, [=] { for (size_t i = 0; i < n; ++i) ((T *)p)[i] = v; }); }
API cuMemsetD8_v2(Ptr p, unsigned char v, size_t n) { return fill(p, v, n, 0); }
API cuMemsetD16_v2(Ptr p, unsigned short v, size_t n) { return fill(p, v, n, 0); }
API cuMemsetD32_v2(Ptr p, unsigned v, size_t n) { return fill(p, v, n, 0); }
API cuMemsetD8Async(Ptr p, unsigned char v, size_t n, void *s) { return fill(p, v, n, s); }
API cuMemsetD16Async(Ptr p, unsigned short v, size_t n, void *s) { return fill(p, v, n, s); }
API cuMemsetD32Async(Ptr p, unsigned v, size_t n, void *s) { return fill(p, v, n, s); }
API cuModuleLoadData(Mod **m, const void *img) { LOCK; CTXCHK;
  const Elf64_Ehdr *e = (const Elf64_Ehdr *)img; if (memcmp(img, ELFMAG, 4) || e->e_machine == 190) return BADIMG;  // 190: a real cubin
  size_t n = e->e_shoff + size_t(e->e_shnum) * e->e_shentsize; char path[64] = "/tmp/fakecuda-XXXXXX"; int fd = mkstemp(path);   // a fresh name: dlopen keeps libraries by name
  if (write(fd, img, n) != (ssize_t)n) return BADIMG; 
  void *h = dlopen(path, RTLD_NOW | RTLD_LOCAL); close(fd); unlink(path); if (!h) { snprintf(lastmsg, sizeof lastmsg, "%s", dlerror()); fprintf(stderr, "%s\n", lastmsg); return BADIMG; }
  *m = new Mod{h, (int *)dlsym(h, "cuemu_schedule"), (const char *)dlsym(h, "cuemu_errmsg"), dlsym(h, "cuemu_threads")}; if (getenv("FAKECUDA_SCHEDULE")) *(*m)->sched = atoi(getenv("FAKECUDA_SCHEDULE")); return OK; }
API cuModuleLoadDataEx(Mod **m, const void *img, unsigned, void *, void *) { return cuModuleLoadData(m, img); }
API cuModuleUnload(Mod *) { LOCK; drain_all(); return OK; }
API cuModuleGetFunction(Fun **f, Mod *m, const char *name) { auto p = (decltype(Fun::f))dlsym(m->h, (std::string(name) + "__emu").c_str()); if (!p) return NOTFOUND; *f = new Fun{m, name, p}; return OK; }
API cuModuleGetGlobal_v2(Ptr *p, size_t *n, Mod *m, const char *name) { void *q = dlsym(m->h, name); if (!q) return NOTFOUND; *p = (Ptr)q; if (n) *n = 0; return OK; }
API cuFuncSetBlockShape(Fun *, int, int, int) { return OK; }
API cuFuncSetSharedSize(Fun *, unsigned) { return OK; }
API cuFuncSetCacheConfig(Fun *, int) { return OK; }
API cuFuncSetAttribute(Fun *, int, int) { return OK; }
API cuFuncGetAttribute(int *v, int a, Fun *) { *v = a == 0 ? 1024 : a == 4 ? 32 : 0; return OK; }
API cuLaunchKernel(Fun *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned sh, void *st, void **params, void **extra) { LOCK; CTXCHK;
  if (params || !extra) return NOTSUP; const char *b = nullptr; size_t n = 0;
  for (; *extra; extra += 2) if (*extra == (void *)1) b = (const char *)extra[1]; else if (*extra == (void *)2) n = *(size_t *)extra[1];
  std::string buf(b, n); std::vector<unsigned> g{gx, gy, gz, bx, by, bz}; ++n_launch;
  return put(st, [=] { if (sticky) return;
    if (f->f(f->m->threads, g.data(), g.data() + 3, sh, buf.data(), buf.size())) { fault(LAUNCHFAIL, (f->name + ": " + f->m->msg).c_str()); return; }
    for (auto &kv : mem) if (!intact(kv.first, kv.second)) { fault(ILLEGAL, (f->name + ": write outside a device buffer of " + std::to_string(kv.second.n) + " bytes").c_str()); return; } }); }
API cuStreamBeginCapture_v2(void *s, int) { LOCK; CTXCHK; if (S(s) == &null_) return 900; S(s)->capture = new Graph; return OK; }
API cuStreamEndCapture(void *s, Graph **g) { LOCK; if (!S(s)->capture) return 901; *g = S(s)->capture; S(s)->capture = nullptr; return OK; }
API cuGraphInstantiateWithFlags(Graph **made, Graph *g, unsigned long long) { CTXCHK; *made = new Graph(*g); return OK; }
API cuGraphLaunch(Graph *made, void *s) { LOCK; CTXCHK; ++n_graph; return put(s, [g = *made] { for (auto &f : g) f(); }); }
API cuGraphDestroy(Graph *g) { delete g; return OK; }
API cuGraphExecDestroy(Graph *g) { delete g; return OK; }
API cuProfilerStart() { return OK; }
API cuProfilerStop() { return OK; }
API fakecuda_reset() { LOCK; sticky = 0; for (auto *s : streams) s->q.clear(); null_.q.clear(); for (auto &kv : mem) { memset((char *)kv.first - 1024, 0xa5, 1024); memset((char *)kv.first + kv.second.n, 0xa5, 1024); } return OK; }
API fakecuda_stat(int k) { return k == 0 ? (int)n_sync : k == 1 ? (int)n_launch : k == 3 ? (int)n_graph : (int)mem.size(); }

// Functions that PyCUDA links to, and symcomp does not need.
#define LACKING(name) API name() { return NOTSUP; }
LACKING(cuArray3DCreate_v2)
LACKING(cuArray3DGetDescriptor_v2)
LACKING(cuArrayCreate_v2)
LACKING(cuArrayDestroy)
LACKING(cuArrayGetDescriptor_v2)
LACKING(cuCtxDisablePeerAccess)
LACKING(cuCtxEnablePeerAccess)
LACKING(cuCtxGetCacheConfig)
LACKING(cuCtxGetSharedMemConfig)
LACKING(cuCtxSetCacheConfig)
LACKING(cuCtxSetSharedMemConfig)
LACKING(cuDeviceCanAccessPeer)
LACKING(cuDeviceGetByPCIBusId)
LACKING(cuIpcCloseMemHandle)
LACKING(cuIpcGetEventHandle)
LACKING(cuIpcGetMemHandle)
LACKING(cuIpcOpenEventHandle)
LACKING(cuIpcOpenMemHandle_v2)
LACKING(cuLaunch)
LACKING(cuLaunchGrid)
LACKING(cuLaunchGridAsync)
LACKING(cuLinkAddData_v2)
LACKING(cuLinkAddFile_v2)
LACKING(cuLinkComplete)
LACKING(cuLinkCreate_v2)
LACKING(cuLinkDestroy)
LACKING(cuMemAllocManaged)
LACKING(cuMemAllocPitch_v2)
LACKING(cuMemHostGetFlags)
LACKING(cuMemcpy2DAsync_v2)
LACKING(cuMemcpy2DUnaligned_v2)
LACKING(cuMemcpy2D_v2)
LACKING(cuMemcpy3DAsync_v2)
LACKING(cuMemcpy3DPeer)
LACKING(cuMemcpy3DPeerAsync)
LACKING(cuMemcpy3D_v2)
LACKING(cuMemcpyAtoA_v2)
LACKING(cuMemcpyAtoD_v2)
LACKING(cuMemcpyAtoH_v2)
LACKING(cuMemcpyDtoA_v2)
LACKING(cuMemcpyHtoA_v2)
LACKING(cuMemcpyPeer)
LACKING(cuMemsetD2D16Async)
LACKING(cuMemsetD2D16_v2)
LACKING(cuMemsetD2D32Async)
LACKING(cuMemsetD2D32_v2)
LACKING(cuMemsetD2D8Async)
LACKING(cuMemsetD2D8_v2)
LACKING(cuModuleGetSurfRef)
LACKING(cuModuleGetTexRef)
LACKING(cuModuleLoad)
LACKING(cuParamSetSize)
LACKING(cuParamSetTexRef)
LACKING(cuParamSetf)
LACKING(cuParamSeti)
LACKING(cuParamSetv)
LACKING(cuProfilerInitialize)
LACKING(cuStreamAttachMemAsync)
LACKING(cuSurfRefGetArray)
LACKING(cuSurfRefSetArray)
LACKING(cuTexRefCreate)
LACKING(cuTexRefDestroy)
LACKING(cuTexRefGetAddressMode)
LACKING(cuTexRefGetAddress_v2)
LACKING(cuTexRefGetArray)
LACKING(cuTexRefGetFilterMode)
LACKING(cuTexRefGetFlags)
LACKING(cuTexRefGetFormat)
LACKING(cuTexRefSetAddress2D_v3)
LACKING(cuTexRefSetAddressMode)
LACKING(cuTexRefSetAddress_v2)
LACKING(cuTexRefSetArray)
LACKING(cuTexRefSetFilterMode)
LACKING(cuTexRefSetFlags)
LACKING(cuTexRefSetFormat)
