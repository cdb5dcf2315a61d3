# Pinned memory of the host, between arrays and devices.

cdef extern from "numpy/arrayobject.h":
    object array_from_descr "PyArray_NewFromDescr"(
        PyTypeObject *, PyObject *, int, cnp.npy_intp *, cnp.npy_intp *, void *, int, PyObject *
    )

cdef enum:
    # Blocks of up to this number of bytes are kept for later copies.
    LARGEST_KEPT_PINNED = 16777216
    # Copies of more bytes give up the GIL.
    WORTH_A_THREAD = 1048576
    # NumPy's own limit.
    MOST_AXES_OF_NUMPY = 64
    WITHOUT_TIMES = 2  # CUDA's flag of events


# Where bytes are copied.
cdef enum CopyWay:
    TO_DEVICE
    TO_HOST
    WITHIN
    FROM_PEER


_WAYS = ("to device", "to host", "copy", "from a device")


cdef object array_at(char *address, dtype, Py_ssize_t ndim, cnp.npy_intp *lengths, cnp.npy_intp *steps):
    """Return an array of NumPy at an address, which must stay there; NULL: one with memory of its own."""
    cdef int flags = 0 if address == NULL else cnp.NPY_ARRAY_WRITEABLE | cnp.NPY_ARRAY_ALIGNED
    Py_INCREF(dtype)
    return array_from_descr(
        <PyTypeObject *>cnp.ndarray, <PyObject *>dtype, <int>ndim, lengths, steps, address, flags, NULL
    )


cdef void move_bytes(void *target, const void *source, int64_t nbytes) noexcept:
    if nbytes < WORTH_A_THREAD:
        memcpy(target, source, nbytes)
    else:
        with nogil:
            memcpy(target, source, nbytes)


cdef int fill_pinned(uint64_t address, cnp.ndarray source, dtype) except -1:
    """Copy the elements of an array, as numbers of a dtype, in C order to an address."""
    if cnp.PyArray_IS_C_CONTIGUOUS(source) and _equal(source.dtype, dtype):
        move_bytes(<void *>address, cnp.PyArray_DATA(source), cnp.PyArray_NBYTES(source))
        return 0
    there = array_at(<char *>address, dtype, cnp.PyArray_NDIM(source), cnp.PyArray_DIMS(source), NULL)
    cnp.PyArray_CopyInto(<cnp.ndarray>there, source)
    return 0


@cython.final
@cython.auto_pickle(False)
cdef class PinnedMemory:
    """Blocks of pinned memory, used again when the copies that read them are done.

    Attributes
    ----------
    sent : int
        How many blocks were given to copies so far.

    Parameters
    ----------
    library : DeviceLibrary
    counters : DeviceCounters
    """

    cdef readonly int64_t sent
    cdef DeviceLibrary _library
    cdef DeviceCounters _counters
    cdef dict _free         # by size, lists of addresses
    cdef list _events       # not in use
    cdef object _reading    # (event, address, size) of blocks that copies read
    cdef int64_t _read

    def __init__(self, DeviceLibrary library, DeviceCounters counters):
        self._library, self._counters = library, counters
        self._free, self._events, self._reading = {}, [], collections.deque()

    cdef uint64_t take(self, int64_t nbytes) except? 0:
        """Return a block of at least ``nbytes`` bytes."""
        cdef int64_t size = _rounded(nbytes)
        cdef void *address = NULL
        cdef list kept
        self._look()
        kept = self._free.get(size)
        if kept:
            return kept.pop()
        if self._ask(size, &address):
            self.empty()
            if self._ask(size, &address):
                raise MemoryError(f"no {size} bytes of pinned memory for a copy")
        return <uint64_t>address

    cdef int _ask(self, int64_t size, void **address):
        cdef int code = self._library.enter()
        self._counters.pinned += 1
        if code == 0:
            code = self._library.functions.take_pinned(address, size, 0)
            self._library.leave()
        return code

    cdef int send(self, uint64_t address, int64_t nbytes, void *stream) except? -1:
        """Have a block back when the work that was enqueued so far is done; return 0, or the code of an error."""
        cdef void *event = NULL
        cdef int code = self._library.enter()
        if code:
            return code
        if self._events:
            event = <void *><uintptr_t>self._events.pop()
        else:
            code = self._library.functions.make_event(&event, WITHOUT_TIMES)
        if code == 0:
            code = self._library.functions.record(event, stream)
        self._library.leave()
        if code == 0:
            self._reading.append((<uintptr_t>event, address, nbytes))
            self.sent += 1
        return code

    cdef int give(self, uint64_t address, int64_t nbytes) except -1:
        """Give a block back."""
        cdef int64_t size = _rounded(nbytes)
        if size <= LARGEST_KEPT_PINNED:
            self._free.setdefault(size, []).append(address)
        elif self._library.enter() == 0:
            self._library.functions.give_pinned(<void *>address)
            self._library.leave()
        return 0

    cdef int take_back(self, int64_t upto) except -1:
        """Have the blocks up to this number back, whose copies are done."""
        while self._read < upto and self._reading:
            self._take_back_first()
        return 0

    cdef int _look(self) except -1:
        """Have the blocks back whose copies are done."""
        cdef int code = 0
        if not self._reading or self._library.enter():
            return 0
        while self._reading and code == 0:
            code = self._library.functions.query(<void *><uintptr_t>self._reading[0][0])
            if code == 0:
                self._take_back_first()
        self._library.leave()
        return 0

    cdef int _take_back_first(self) except -1:
        event, address, nbytes = self._reading.popleft()
        self._read += 1
        self._events.append(event)
        self.give(address, nbytes)
        return 0

    def empty(self):
        """Give all blocks and events that are not in use back to the driver."""
        cdef list events
        cdef dict free
        free, self._free = self._free, {}
        events, self._events = self._events, []
        if self._library.enter():
            return
        for blocks in free.values():
            for address in blocks:
                self._library.functions.give_pinned(<void *><uintptr_t>address)
        for event in events:
            self._library.functions.drop_event(<void *><uintptr_t>event)
        self._library.leave()
