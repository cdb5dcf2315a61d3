# Handles of NVIDIA's libraries, with which plans of devices call their functions.

cdef extern from "pythread.h":
    ctypedef void *PyThread_type_lock
    PyThread_type_lock PyThread_allocate_lock()
    void PyThread_free_lock(PyThread_type_lock)

cdef extern from "device/device_plan.h":
    ctypedef struct HandleData:
        void *handle
        void *set_stream
        void *set_workspace
        void *workspace
        size_t n_workspace
        PyThread_type_lock lock


def library_caller():
    """Return the address of the function that calls those of libraries; the last one of ``DevicePlan.enqueue``."""
    return <uintptr_t><void *>call_library


@cython.final
@cython.auto_pickle(False)
cdef class LibraryHandle:
    """A handle of a library: its work is enqueued on the stream of the plan that calls it, one call at a time.

    Attributes
    ----------
    address : int
        The first word of calls.

    Parameters
    ----------
    handle : int
    set_stream, set_workspace : int
        The addresses of functions like cublasSetStream and cublasSetWorkspace; the latter may be 0.
    workspace, nbytes : int
        The memory that a stream of the handle is given.
    """

    cdef HandleData data

    def __cinit__(
        self, uintptr_t handle, uintptr_t set_stream, uintptr_t set_workspace=0, uintptr_t workspace=0,
        size_t nbytes=0,
    ):
        self.data.handle, self.data.set_stream = <void *>handle, <void *>set_stream
        self.data.set_workspace, self.data.workspace = <void *>set_workspace, <void *>workspace
        self.data.n_workspace = nbytes
        self.data.lock = PyThread_allocate_lock()
        if self.data.lock == NULL:
            raise MemoryError

    def __dealloc__(self):
        if self.data.lock != NULL:
            PyThread_free_lock(self.data.lock)

    @property
    def address(self):
        return <uintptr_t>&self.data
