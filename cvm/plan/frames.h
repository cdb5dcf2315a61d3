/* Frames: the memory and the addresses of one run of a segment. */
#ifndef SYMCOMP_FRAMES_H
#define SYMCOMP_FRAMES_H

#include "planner.h"

/* Arenas of more bytes are given back after each run. */
static int64_t largest_kept_arena = (int64_t)64 << 20;

/* The domain in which tracemalloc counts arenas. */
enum { ARENA_DOMAIN = 0x53594d };

static void drop_arena(Frame *frame)
{
    if (frame->arena == NULL)
        return;
    PyTraceMalloc_Untrack(ARENA_DOMAIN, (uintptr_t)frame->arena);
    free(frame->arena);
    frame->arena = NULL;
}

static void drop_frame_memory(Frame *frame)
{
    if (frame == NULL)
        return;
    drop_arena(frame);
    free(frame->address);
    free(frame->object);
    free(frame);
}

static Frame *blank_frame(int capacity)
{
    Frame *frame = (Frame *)calloc(1, sizeof(Frame));
    if (frame == NULL)
        return NULL;
    capacity = capacity > 0 ? capacity : 1;
    frame->address = (char **)calloc((size_t)capacity, sizeof(char *));
    frame->object = (PyObject **)calloc((size_t)capacity, sizeof(PyObject *));
    if (frame->address == NULL || frame->object == NULL) {
        drop_frame_memory(frame);
        return NULL;
    }
    return frame;
}

/* Forget all but the memory for addresses and objects. */
static void clear_frame(Frame *frame)
{
    frame->runner = NULL;
    frame->segment = NULL;
    frame->outer = NULL;
    frame->n_storages = frame->first_own = frame->n_outcome = 0;
    frame->arena = NULL;
    frame->provided = NULL;
}

static int take_arena(Frame *frame, const Segment *segment)
{
    int i;
    if (segment->arena_bytes == 0 || frame->arena != NULL)
        return 1;
    frame->arena = (char *)aligned_alloc(64, (size_t)((segment->arena_bytes + 63) / 64 * 64));
    if (frame->arena == NULL)
        return 0;
    PyTraceMalloc_Track(ARENA_DOMAIN, (uintptr_t)frame->arena, (size_t)segment->arena_bytes);
    for (i = segment->first_own_storage; i < segment->n_storages; i++)
        if (segment->storages[i]->kind == ARENA && segment->storages[i]->host == NULL)
            frame->address[i] = frame->arena + segment->storages[i]->offset;
    return 1;
}

/* Put a frame, or NULL, in the place of the idle one; return that. Nested programs run without the GIL,
   others hold it here, which saves the time of an atomic exchange. */
static inline Frame *exchange_idle(Segment *segment, Frame *frame)
{
    Frame *before;
    if (segment->code->is_nested)
        return __atomic_exchange_n(&segment->idle, frame, __ATOMIC_ACQ_REL);
    before = segment->idle;
    segment->idle = frame;
    return before;
}

/* Implemented where sections are known: choose where the values of a segment lie, and who runs which calls,
   before its first run. 0: there is no memory. */
static int make_ready(Segment *s);

/* A frame for a run of a segment; NULL if there is no memory. */
static Frame *take_frame(Segment *segment, Runner *runner)
{
    Frame *frame = exchange_idle(segment, NULL);
    int i;
    if (frame == NULL) {
        if (!segment->is_ready && !make_ready(segment))
            return NULL;
        frame = blank_frame(segment->n_storages);
        if (frame == NULL)
            return NULL;
        frame->segment = segment;
        frame->first_own = segment->first_own_storage;
        frame->n_storages = segment->n_storages;
        for (i = segment->first_own_storage; i < segment->n_storages; i++)
            if (segment->storages[i]->kind == CONSTANT) {
                frame->address[i] = segment->storages[i]->address;
                frame->object[i] = segment->storages[i]->object;
            }
    }
    if (!take_arena(frame, segment)) {
        drop_frame_memory(frame);
        return NULL;
    }
    frame->runner = runner;
    return frame;
}

/* Let go of the objects that a run made; with the GIL. */
static void drop_objects(Frame *frame, Storage *const *storages, int first, int n)
{
    int i;
    for (i = first; i < n; i++)
        if (storages[i]->kind != CONSTANT && storages[i]->kind != INPUT) {
            PyObject *object = frame->object[i];
            if (object != NULL) {
                frame->object[i] = NULL;
                Py_DECREF(object);
            }
        }
}

/* Let go of an object of this frame or of one that is outer to it. */
static void forget_held(Frame *frame, int storage)
{
    while (storage < frame->first_own) {
        frame->object[storage] = NULL;
        frame = frame->outer;
    }
    Py_CLEAR(frame->object[storage]);
}

static void give_back_one(Frame *frame)
{
    Segment *segment = frame->segment;
    if (segment->arena_bytes > largest_kept_arena)
        drop_arena(frame);
    frame->outer = NULL;
    frame->provided = NULL;
    drop_frame_memory(exchange_idle(segment, frame));
}

/* The run has ended: give back its frame and those of the segments before it. With the GIL. */
static void give_back(Frame *frame)
{
    while (frame != NULL) {
        Frame *outer = frame->outer;
        const Segment *s = frame->segment;
        drop_objects(frame, s->storages, s->first_own_storage, s->n_storages);
        give_back_one(frame);
        frame = outer;
    }
}

#endif
