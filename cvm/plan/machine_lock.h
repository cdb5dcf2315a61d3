/* The machine's lock: one thread at a time uses trees of plans, spare planners and frames, counts and cells. The GIL
   is this lock where there is one; elsewhere a critical section of one object stands for it, which Python ends while
   a thread waits or gives its state up, as it does with the GIL, and begins again after. */
#ifndef SYMCOMP_MACHINE_LOCK_H
#define SYMCOMP_MACHINE_LOCK_H

#include <Python.h>

#ifdef Py_GIL_DISABLED

typedef PyCriticalSection MachineLock;

static PyObject *the_machine;

/* Give the object that is locked; before all other calls. */
static inline void set_the_machine(PyObject *object)
{
    the_machine = object;
}

static inline void lock_machine(MachineLock *lock)
{
    PyCriticalSection_Begin(lock, the_machine);
}

static inline void unlock_machine(MachineLock *lock)
{
    PyCriticalSection_End(lock);
}

#else

typedef struct {
    char nothing;
} MachineLock;

static inline void set_the_machine(PyObject *object)
{
    (void)object;
}

static inline void lock_machine(MachineLock *lock)
{
    (void)lock;
}

static inline void unlock_machine(MachineLock *lock)
{
    (void)lock;
}

#endif
#endif
