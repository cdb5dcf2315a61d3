/* Plans of devices: calls that are enqueued on a stream, by functions with the signatures of CUDA's driver.
   Addresses are filled in from those of this run; the steps of a loop are enqueued one after another. */
#ifndef SYMCOMP_DEVICE_PLAN_H
#define SYMCOMP_DEVICE_PLAN_H

#include <Python.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { DEVICE_LAUNCH, DEVICE_COPY, DEVICE_CLEAR, DEVICE_LOOP, DEVICE_LIBRARY };
/* CUDA's names for entries of the last argument of a launch. */
enum { LAUNCH_PARAMETERS = 1, LAUNCH_PARAMETERS_SIZE = 2 };
static const int NO_HOST_MEMORY = -1;
/* Other threads may allocate memory, and the like, while work is captured. */
enum { CAPTURE_RELAXED = 2 };

/* Functions of a driver. Each returns 0, or the code of an error. */
typedef struct {
    int (*launch)(void *kernel, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                  unsigned block_y, unsigned block_z, unsigned shared, void *stream,
                  void **parameters, void **extra);
    int (*copy)(uint64_t target, uint64_t source, size_t nbytes, void *stream);
    int (*fill)(uint64_t target, unsigned char value, size_t nbytes, void *stream);
    int (*take)(uint64_t *address, size_t nbytes);  /* memory of the device */
    int (*give)(uint64_t address);
    /* Make a context that of this thread, and the one before again; NULL: there are none. */
    int (*enter)(void *context);
    int (*leave)(void **context);
    void *context;
    /* Graphs: work that is recorded on a stream, not run, and then run as a whole. */
    int (*begin_capture)(void *stream, int mode);
    int (*end_capture)(void *stream, void **graph);
    int (*instantiate)(void **made, void *graph, unsigned long long flags);
    int (*launch_graph)(void *made, void *stream);
    int (*drop_graph)(void *graph);
    int (*drop_made)(void *made);
    int (*call)(void *function, const uint64_t *words, size_t n, void *stream);  /* see call_library */
    /* Copies between the device and pinned memory of the host, which is read and written when the work is done. */
    int (*to_device)(uint64_t target, const void *source, size_t nbytes, void *stream);
    int (*to_host)(void *target, uint64_t source, size_t nbytes, void *stream);
    int (*wait)(void *stream);
    int (*take_pinned)(void **address, size_t nbytes, unsigned flags);
    int (*give_pinned)(void *address);
    int (*make_event)(void **event, unsigned flags);
    int (*drop_event)(void *event);
    int (*record)(void *event, void *stream);
    int (*query)(void *event);          /* 0: all work before it is done */
    /* Devices of one kind: let later work of a stream come after an event; copy from another context. */
    int (*follow)(void *stream, void *event, unsigned flags);
    int (*from_peer)(uint64_t target, void *context, uint64_t source, void *peer, size_t nbytes, void *stream);
    /* Where work is done by the host: the blocks that the work which follows uses; how many pieces were enqueued
       (0), or are done (1); and that the times of the work which follows are kept, or no longer, and how many of those
       since will be read. NULL on cards. */
    int (*hold)(const uint64_t *blocks, size_t n, void *stream);
    uint64_t (*count)(void *stream, int are_done);
    void (*time)(void *stream, int are_kept, uint64_t n);
} DeviceFunctions;

/* A handle of a library (cuBLAS and the like), which has a stream; it is for one thread at a time. */
typedef struct {
    void *handle;
    int (*set_stream)(void *handle, void *stream);
    int (*set_workspace)(void *handle, void *memory, size_t nbytes);  /* NULL: there is none */
    void *workspace;
    size_t n_workspace;
    void *stream;       /* the last one that was set */
    PyThread_type_lock lock;
} HandleData;

static int set_stream(HandleData *h, void *stream)
{
    int code = h->set_stream(h->handle, stream);
    if (code == 0 && h->set_workspace != NULL)  /* a new stream takes it away */
        code = h->set_workspace(h->handle, h->workspace, h->n_workspace);
    h->stream = code ? NULL : stream;
    return code;
}

/* Functions of libraries have a handle, then only integers and pointers. The calling conventions of x86-64 and AArch64
   give each of these a register or a place of 8 bytes, and leave what a function does not take to the caller: so one
   type serves all. */
enum { MOST_WORDS = 24 };
#define WORDS_6 uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t
#define WORDS_8 uint64_t w0, uint64_t w1, uint64_t w2, uint64_t w3, uint64_t w4, uint64_t w5, uint64_t w6, uint64_t w7
typedef int (*LibraryFunction)(WORDS_6, WORDS_6, WORDS_6, WORDS_6);
#define CALL_WORDS(f, w)                                                                                         \
    ((LibraryFunction)(f))(w[0], w[1], w[2], w[3], w[4], w[5], w[6], w[7], w[8], w[9], w[10], w[11], w[12], w[13], \
                           w[14], w[15], w[16], w[17], w[18], w[19], w[20], w[21], w[22], w[23])

/* Call a function of a library: the first word is the address of the handle. */
static int call_library(void *function, const uint64_t *words, size_t n, void *stream)
{
    HandleData *h = (HandleData *)(uintptr_t)words[0];
    uint64_t w[MOST_WORDS] = {0};
    int code = 0;
    memcpy(w, words, n * sizeof(uint64_t));
    w[0] = (uint64_t)(uintptr_t)h->handle;
    PyThread_acquire_lock(h->lock, WAIT_LOCK);  /* the holder needs no GIL */
    if (h->stream != stream)
        code = set_stream(h, stream);
    if (code == 0)
        code = CALL_WORDS(function, w);
    PyThread_release_lock(h->lock);
    return code;
}

/* A function of a library that finds arrays in descriptors (cuSPARSE's): their addresses are set there first, under the
   lock of the handle, so threads may share descriptors. */
enum { MOST_DESCRIPTORS = 4, MOST_GIVEN = 8 };
typedef struct {
    void *function, *descriptor;    /* a function that sets addresses of arrays in a descriptor */
    size_t n;                       /* the number of addresses */
} DescriptorArrays;
typedef struct {
    size_t n_descriptors, n_words;
    DescriptorArrays arrays[MOST_DESCRIPTORS];
    void *function;
    uint64_t words[MOST_WORDS];     /* of the function, behind the handle; the addresses that are left follow */
} DescribedCall;

/* Call such a function; addresses are given in the order of the descriptors. */
static int call_described(uint64_t handle, const DescribedCall *call, WORDS_8)
{
    const uint64_t given[MOST_GIVEN] = {w0, w1, w2, w3, w4, w5, w6, w7};
    uint64_t w[MOST_WORDS] = {handle};
    size_t i, next = 0, n = call->n_words;
    for (i = 0; i < call->n_descriptors; next += call->arrays[i++].n) {
        const DescriptorArrays *a = &call->arrays[i];
        int code;
        memcpy(w + 1, given + next, a->n * sizeof(uint64_t));
        w[0] = (uint64_t)(uintptr_t)a->descriptor;
        code = CALL_WORDS(a->function, w);
        if (code)
            return code;
    }
    w[0] = handle;
    memcpy(w + 1, call->words, n * sizeof(uint64_t));
    memcpy(w + 1 + n, given + next, (MOST_GIVEN - next) * sizeof(uint64_t));
    return CALL_WORDS(call->function, w);
}

/* The address of a storage, and an offset, at a place in the parameters of a launch, or of a function of a library;
   of copies and clears, place 0 is the target, 1 the source. */
typedef struct {
    size_t place;
    int storage;
    int64_t offset;
} DevicePatch;

/* Where a storage lies in each step of a loop: in another one, by turns in two. */
typedef struct {
    int storage, base[2];
    int64_t offset[2], stride;
} DeviceMotion;

typedef struct {
    int kind;
    void *kernel;                       /* or the function of a library */
    unsigned grid[3], block[3], shared;
    size_t parameters, n_parameters;    /* bytes, in those of the plan */
    int first_patch, n_patches;
    size_t nbytes;                      /* of copies and clears */
    int64_t repeats;                    /* of a loop, whose step is the calls from the next one .. */
    int end;                            /* .. to before this one */
    int first_motion, n_motions;
    int part;                           /* of a loop that is enqueued as a graph: its number; -1: there is none */
} DeviceCall;

/* Where a storage begins: behind the base of this number, which differs from run to run; or, for -1, at the address
   ``offset``. */
typedef struct {
    int base;
    int64_t offset;
} DeviceOrigin;

typedef struct {
    int n_calls, n_storages, n_bases;
    DeviceCall *calls;
    DevicePatch *patches;
    DeviceMotion *motions;
    DeviceOrigin *origins;
    char *parameters;
    size_t n_parameters;
} DevicePlanData;

/* One run of a plan. */
typedef struct {
    const DevicePlanData *plan;
    const DeviceFunctions *functions;
    void *stream;
    uint64_t *address;      /* of each storage */
    char *parameters;       /* a copy */
    void *const *graphs;    /* of the parts, recorded; NULL: parts are enqueued call by call */
    int failed;             /* the call that failed */
} DeviceRun;

static void move_storages(DeviceRun *run, const DeviceCall *loop, int64_t t)
{
    const DeviceMotion *m = run->plan->motions + loop->first_motion;
    const int turn = (int)(t & 1);
    int i;
    for (i = 0; i < loop->n_motions; i++, m++)
        run->address[m->storage] =
            run->address[m->base[turn]] + (uint64_t)(m->offset[turn] + t * m->stride);
}

static int enqueue_call(DeviceRun *run, const DeviceCall *c)
{
    const DevicePatch *patch = run->plan->patches + c->first_patch;
    uint64_t place[2] = {0, 0};
    char *given = run->parameters + c->parameters;
    size_t size = c->n_parameters;
    void *extra[5];
    int i;
    for (i = 0; i < c->n_patches; i++, patch++) {
        const uint64_t address = run->address[patch->storage] + (uint64_t)patch->offset;
        if (c->kind == DEVICE_LAUNCH || c->kind == DEVICE_LIBRARY)
            memcpy(given + patch->place, &address, sizeof(address));
        else
            place[patch->place] = address;
    }
    if (c->kind == DEVICE_COPY)
        return run->functions->copy(place[0], place[1], c->nbytes, run->stream);
    if (c->kind == DEVICE_CLEAR)
        return run->functions->fill(place[0], 0, c->nbytes, run->stream);
    if (c->kind == DEVICE_LIBRARY)
        return run->functions->call(c->kernel, (const uint64_t *)given, size / sizeof(uint64_t), run->stream);
    extra[0] = (void *)(uintptr_t)LAUNCH_PARAMETERS;
    extra[1] = given;
    extra[2] = (void *)(uintptr_t)LAUNCH_PARAMETERS_SIZE;
    extra[3] = &size;
    extra[4] = NULL;
    return run->functions->launch(c->kernel, c->grid[0], c->grid[1], c->grid[2], c->block[0],
                                  c->block[1], c->block[2], c->shared, run->stream, NULL, extra);
}

static int enqueue_calls(DeviceRun *run, int i, int end);

static int enqueue_steps(DeviceRun *run, int loop)
{
    const DeviceCall *c = run->plan->calls + loop;
    int code = 0;
    int64_t t;
    for (t = 0; t < c->repeats && code == 0; t++) {
        move_storages(run, c, t);
        code = enqueue_calls(run, loop + 1, c->end);
    }
    return code;
}

/* Enqueue the calls from ``i`` to before ``end``; return the code of the first error, or 0. */
static int enqueue_calls(DeviceRun *run, int i, int end)
{
    int code = 0;
    while (i < end && code == 0) {
        const DeviceCall *c = run->plan->calls + i;
        if (c->kind != DEVICE_LOOP) {
            code = enqueue_call(run, c);
            if (code)
                run->failed = i;
            i++;
            continue;
        }
        if (c->part >= 0 && run->graphs != NULL)
            code = run->functions->launch_graph(run->graphs[c->part], run->stream);
        else
            code = enqueue_steps(run, i);
        i = c->end;
    }
    return code;
}

/* Begin a run; it is ended by ``end_run``. Return 0, or NO_HOST_MEMORY. */
static int begin_run(DeviceRun *run, const DevicePlanData *plan, const DeviceFunctions *functions,
                     void *stream, const uint64_t *bases)
{
    const size_t n_addresses = (size_t)plan->n_storages * sizeof(uint64_t);
    char *memory = (char *)malloc(n_addresses + plan->n_parameters + 1);
    int i;
    if (memory == NULL)
        return NO_HOST_MEMORY;
    run->plan = plan;
    run->functions = functions;
    run->stream = stream;
    run->address = (uint64_t *)memory;
    run->parameters = memory + n_addresses;
    run->graphs = NULL;
    run->failed = -1;
    for (i = 0; i < plan->n_storages; i++) {
        const DeviceOrigin *o = plan->origins + i;
        run->address[i] = (o->base < 0 ? 0 : bases[o->base]) + (uint64_t)o->offset;
    }
    memcpy(run->parameters, plan->parameters, plan->n_parameters);
    return 0;
}

static void end_run(DeviceRun *run) { free(run->address); }

/* Enqueue a plan, its parts as graphs, if there are any; return the code of the first error, whose call is
   ``*failed``, or 0. */
static int enqueue_device_plan(const DevicePlanData *plan, const DeviceFunctions *functions, void *stream,
                               const uint64_t *bases, void *const *graphs, int *failed)
{
    DeviceRun run;
    int code = begin_run(&run, plan, functions, stream, bases);
    if (code)
        return code;
    run.graphs = graphs;
    code = enqueue_calls(&run, 0, plan->n_calls);
    *failed = run.failed;
    end_run(&run);
    return code;
}

/* Record a plan, or the steps of the loop ``loop`` if that is no negative number, as a graph, on a stream that
   nothing else uses; return 0, or the code of an error as above. */
static int record_device_plan(const DevicePlanData *plan, const DeviceFunctions *functions, void *stream,
                              const uint64_t *bases, int loop, void **made, int *failed)
{
    DeviceRun run;
    void *graph = NULL;
    int code = begin_run(&run, plan, functions, stream, bases), ended;
    if (code)
        return code;
    code = functions->begin_capture(stream, CAPTURE_RELAXED);
    if (code == 0) {
        code = loop < 0 ? enqueue_calls(&run, 0, plan->n_calls) : enqueue_steps(&run, loop);
        ended = functions->end_capture(stream, &graph);
        if (code == 0)
            code = ended;
    }
    *failed = run.failed;
    end_run(&run);
    if (code == 0)
        code = functions->instantiate(made, graph, 0);
    if (graph != NULL)
        functions->drop_graph(graph);
    return code;
}

#endif
