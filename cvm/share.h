/* Work in parts, shared among threads that live as long as it takes. */

#ifndef SYMCOMP_SHARE_H
#define SYMCOMP_SHARE_H

#include <Python.h>
#include <pythread.h>
#include <stdint.h>

enum { MOST_THREADS = 64 };

/* Do one part; ``worker`` counts the threads, for memory of their own. */
typedef void (*Part)(void *work, int64_t part, int worker);

typedef struct {
    Part part;
    void *work;
    int64_t parts;
    int64_t *next;              /* the first part that nobody has */
    int worker;
    PyThread_type_lock done;
} Worker;

static void do_parts(void *given)
{
    Worker *worker = (Worker *)given;
    for (;;) {
        const int64_t i = __atomic_fetch_add(worker->next, 1, __ATOMIC_RELAXED);
        if (i >= worker->parts)
            break;
        worker->part(worker->work, i, worker->worker);
    }
    if (worker->done != NULL)
        PyThread_release_lock(worker->done);
}

/* Do all parts, in any order; where no more threads can be had, with fewer. */
static void share(Part part, void *work, int64_t parts, int threads)
{
    Worker workers[MOST_THREADS];
    int64_t next = 0;
    int i, count = threads < MOST_THREADS ? threads : MOST_THREADS;
    if (parts < 1)
        return;
    if (parts < count)
        count = (int)parts;
    for (i = 0; i < count; i++) {
        const Worker fresh = {part, work, parts, &next, i, NULL};
        workers[i] = fresh;
    }
    for (i = 1; i < count; i++) {
        PyThread_type_lock lock = PyThread_allocate_lock();
        if (lock == NULL)
            break;
        PyThread_acquire_lock(lock, WAIT_LOCK);
        workers[i].done = lock;
        if (PyThread_start_new_thread(do_parts, &workers[i]) == PYTHREAD_INVALID_THREAD_ID) {
            PyThread_release_lock(lock);
            PyThread_free_lock(lock);
            workers[i].done = NULL;
            break;
        }
    }
    count = i;
    do_parts(&workers[0]);
    for (i = 1; i < count; i++) {
        PyThread_acquire_lock(workers[i].done, WAIT_LOCK);
        PyThread_release_lock(workers[i].done);
        PyThread_free_lock(workers[i].done);
    }
}

#endif
