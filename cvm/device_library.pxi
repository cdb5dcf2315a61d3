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
    enum: MOST_WORDS, MOST_DESCRIPTORS, MOST_GIVEN
    ctypedef struct DescriptorArrays:
        void *function
        void *descriptor
        size_t n
    ctypedef struct DescribedData "DescribedCall":
        size_t n_descriptors, n_words
        DescriptorArrays arrays[MOST_DESCRIPTORS]
        void *function
        uint64_t words[MOST_WORDS]
    int call_described(uint64_t, const DescribedData *, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t,
                       uint64_t, uint64_t) noexcept nogil


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
    workspace_bytes : int

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

    @property
    def workspace_bytes(self):
        """The bytes of the memory that a stream of the handle is given."""
        return self.data.n_workspace


@cython.final
@cython.auto_pickle(False)
cdef class DescribedCall:
    """A call of a function that finds arrays in descriptors. Plans call ``function`` with ``address`` and the
    addresses of all arrays: of each descriptor's, then of the last arguments of the function itself.

    Attributes
    ----------
    function, address : int

    Parameters
    ----------
    arrays : sequence of (int, int, int)
        For each descriptor the address of the function that sets addresses in it, itself, and how many.
    function : int
        The address of the function.
    words : sequence of int
        Its arguments behind the handle, but for the addresses that are given last.

    Raises
    ------
    ValueError
        If these are more than there is room for.
    """

    cdef DescribedData data

    def __cinit__(self, arrays, uintptr_t function, words):
        cdef size_t given = 0
        if len(arrays) > MOST_DESCRIPTORS or len(words) + 1 + MOST_GIVEN > MOST_WORDS:
            raise ValueError(f"a call of {len(arrays)} descriptors and {len(words)} words has too many of them")
        for i, (sets, descriptor, n) in enumerate(arrays):
            self.data.arrays[i].function = <void *><uintptr_t>sets
            self.data.arrays[i].descriptor = <void *><uintptr_t>descriptor
            self.data.arrays[i].n = n
            given += n
        if given > MOST_GIVEN:
            raise ValueError(f"the descriptors of a call have {given} addresses, at most {MOST_GIVEN} are set")
        self.data.n_descriptors, self.data.function = len(arrays), <void *>function
        self.data.n_words = len(words)
        for i, word in enumerate(words):
            self.data.words[i] = word

    @property
    def function(self):
        return <uintptr_t><void *>call_described

    @property
    def address(self):
        return <uintptr_t>&self.data
