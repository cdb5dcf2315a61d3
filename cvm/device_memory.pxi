# Devices: their functions, memory and arrays, as C needs them. gpu/driver makes drivers of them.

cdef extern from "device/device_plan.h":
    ctypedef struct DeviceFunctions:
        void *launch
        int (*copy)(uint64_t, uint64_t, size_t, void *) noexcept nogil
        void *fill
        int (*take)(uint64_t *, size_t) noexcept
        int (*give)(uint64_t) noexcept
        int (*enter)(void *) noexcept nogil
        int (*leave)(void **) noexcept nogil
        void *context
        void *begin_capture
        void *end_capture
        void *instantiate
        int (*launch_graph)(void *, void *) noexcept nogil
        void *drop_graph
        int (*drop_made)(void *) noexcept
        void *call
        int (*to_device)(uint64_t, const void *, size_t, void *) noexcept
        int (*to_host)(void *, uint64_t, size_t, void *) noexcept
        int (*wait)(void *) noexcept nogil
        int (*take_pinned)(void **, size_t, unsigned) noexcept
        int (*give_pinned)(void *) noexcept
        int (*make_event)(void **, unsigned) noexcept
        int (*drop_event)(void *) noexcept
        int (*record)(void *, void *) noexcept
        int (*query)(void *) noexcept
        int (*follow)(void *, void *, unsigned) noexcept
        int (*from_peer)(uint64_t, void *, uint64_t, void *, size_t, void *) noexcept
        int (*hold)(const uint64_t *, size_t, void *) noexcept
        uint64_t (*count)(void *, int) noexcept
        void (*time)(void *, int, uint64_t) noexcept
    int call_library(void *, const uint64_t *, size_t, void *) noexcept nogil

# Blocks of memory are multiples of this many bytes, and begin at such.
GRANULE = 512
cdef enum:
    WIDEST_ACCESS = 16
    OUT_OF_MEMORY = 2  # CUDA's code
#: The bytes of the widest access of a kernel. Memory that is allocated begins at multiples of it.
WIDEST = WIDEST_ACCESS


def is_aligned(uint64_t address):
    """Tell whether the widest accesses can begin at an address."""
    return address % WIDEST_ACCESS == 0


def rounded(int64_t nbytes):
    """Return the size of the block for a request: at most an eighth is left over."""
    return _rounded(nbytes)


cdef int64_t _rounded(int64_t nbytes) noexcept:
    cdef int64_t size = max(1, (nbytes + 511) // 512) * 512
    cdef int64_t step = 512
    while step * 16 <= size:
        step *= 2
    return (size + step - 1) // step * step


@cython.final
@cython.auto_pickle(False)
cdef class DeviceCounters:
    """How often a device was used.

    Attributes
    ----------
    launches : int
    waits : int
        How often the host waited for the device.
    allocations, pinned : int
        Blocks that were asked of the driver, not of the pool; and such of pinned memory on the host.
    to_device, to_host, within, from_peers : int
        Bytes copied, by the last one from other devices.
    compiled : int
        Modules that were compiled, not found in a cache.
    graphs, recorded : int
        Graphs that were enqueued, each a region or a part of one, and graphs that were recorded.
    """

    cdef public int64_t launches, waits, allocations, pinned, to_device, to_host, within, from_peers
    cdef public int64_t compiled, graphs, recorded

    def clear(self):
        """Set all counts to 0."""
        self.launches = self.waits = self.allocations = self.pinned = self.compiled = 0
        self.to_device = self.to_host = self.within = self.from_peers = 0
        self.graphs = self.recorded = 0

    def __repr__(self):
        return (
            f"DeviceCounters(launches={self.launches}, waits={self.waits}, allocations={self.allocations}, "
            f"pinned={self.pinned}, to_device={self.to_device}, to_host={self.to_host}, within={self.within}, "
            f"from_peers={self.from_peers}, compiled={self.compiled}, graphs={self.graphs}, recorded={self.recorded})"
        )


@cython.final
@cython.auto_pickle(False)
cdef class DeviceLibrary:
    """The functions of a driver, which C calls.

    Parameters
    ----------
    addresses : dict of str to int
        Those of "launch", "copy", "fill", "take", "give", "to_device", "to_host", "wait", "take_pinned", "give_pinned",
        "make_event", "drop_event", "record", "query", "follow" and "from_peer"; "enter" and "leave", where work
        needs a context;
        where there are graphs, those of "begin_capture", "end_capture", "instantiate", "launch_graph",
        "drop_graph" and "drop_made"; and, where the host does the work, those of "hold", "count" and "time".
    context : int
    """

    cdef DeviceFunctions functions

    def __cinit__(self, dict addresses, uintptr_t context=0):
        cdef DeviceFunctions *f = &self.functions
        f.launch = _function(addresses, "launch")
        f.copy = <int (*)(uint64_t, uint64_t, size_t, void *) noexcept nogil>_function(addresses, "copy")
        f.fill = _function(addresses, "fill")
        f.take = <int (*)(uint64_t *, size_t) noexcept>_function(addresses, "take")
        f.give = <int (*)(uint64_t) noexcept>_function(addresses, "give")
        f.enter = <int (*)(void *) noexcept nogil>_function(addresses, "enter")
        f.leave = <int (*)(void **) noexcept nogil>_function(addresses, "leave")
        f.context = <void *>context
        f.begin_capture = _function(addresses, "begin_capture")
        f.end_capture = _function(addresses, "end_capture")
        f.instantiate = _function(addresses, "instantiate")
        f.launch_graph = <int (*)(void *, void *) noexcept nogil>_function(addresses, "launch_graph")
        f.drop_graph = _function(addresses, "drop_graph")
        f.drop_made = <int (*)(void *) noexcept>_function(addresses, "drop_made")
        f.call = <void *>call_library
        f.to_device = <int (*)(uint64_t, const void *, size_t, void *) noexcept>_function(addresses, "to_device")
        f.to_host = <int (*)(void *, uint64_t, size_t, void *) noexcept>_function(addresses, "to_host")
        f.wait = <int (*)(void *) noexcept nogil>_function(addresses, "wait")
        f.take_pinned = <int (*)(void **, size_t, unsigned) noexcept>_function(addresses, "take_pinned")
        f.give_pinned = <int (*)(void *) noexcept>_function(addresses, "give_pinned")
        f.make_event = <int (*)(void **, unsigned) noexcept>_function(addresses, "make_event")
        f.drop_event = <int (*)(void *) noexcept>_function(addresses, "drop_event")
        f.record = <int (*)(void *, void *) noexcept>_function(addresses, "record")
        f.query = <int (*)(void *) noexcept>_function(addresses, "query")
        f.follow = <int (*)(void *, void *, unsigned) noexcept>_function(addresses, "follow")
        f.from_peer = <int (*)(uint64_t, void *, uint64_t, void *, size_t, void *) noexcept>_function(
            addresses, "from_peer"
        )
        f.hold = <int (*)(const uint64_t *, size_t, void *) noexcept>_function(addresses, "hold")
        f.count = <uint64_t (*)(void *, int) noexcept>_function(addresses, "count")
        f.time = <void (*)(void *, int, uint64_t) noexcept>_function(addresses, "time")

    cdef int enter(self) noexcept nogil:
        return self.functions.enter(self.functions.context) if self.functions.enter != NULL else 0

    cdef void leave(self) noexcept nogil:
        cdef void *before
        if self.functions.leave != NULL:
            self.functions.leave(&before)


cdef void *_function(dict addresses, str name) except? NULL:
    return <void *><uintptr_t>addresses.get(name, 0)


@cython.auto_pickle(False)
@cython.no_gc
cdef class DeviceMemory:
    """A block of device memory; given back to its pool when it is collected.

    Attributes
    ----------
    address, nbytes : int
        ``nbytes`` is the requested size; the block may be larger.
    is_pooled : bool
        Whether it is of a pool, not another library's.
    """

    cdef DevicePool _pool
    cdef readonly uint64_t address
    cdef readonly int64_t nbytes
    cdef int64_t _size

    def __init__(self, uint64_t address, int64_t nbytes):
        self.address, self.nbytes = address, nbytes

    @property
    def is_pooled(self):
        return self._pool is not None

    @property
    def size(self):
        """The bytes of the block."""
        return self._size

    def __dealloc__(self):
        if self._pool is not None:
            with cython.critical_section(machine_lock):
                self._pool.take_back(self.address, self._size)


@cython.auto_pickle(False)
cdef class DevicePool:
    """Blocks of device memory by size, kept for reuse.

    A block that is given back may be reused at once: all work is on one stream, and so runs in the order in
    which it is enqueued. Threads use it one at a time.

    Attributes
    ----------
    used : int
        Bytes held by arrays and arenas of this process.
    cached : int
        Bytes for arrays to come.
    limit : int
        The most bytes of both; 0: as many as the driver gives.
    peak : int
        The most bytes of ``used`` at a time, since it was last set.

    Parameters
    ----------
    library : DeviceLibrary
    counters : DeviceCounters
    refuse : callable (pool, nbytes, what, code)
        Raises the error of a request that cannot be met.
    keeps_blocks : bool
        Whether blocks are reused at all.
    """

    cdef readonly DeviceLibrary library
    cdef readonly DeviceCounters counters
    cdef readonly int64_t used, cached
    cdef public int64_t limit, peak
    cdef object _refuse, _users
    cdef bint _keeps_blocks
    cdef dict _free

    def __init__(self, DeviceLibrary library, DeviceCounters counters, refuse, bint keeps_blocks=True):
        self.library, self.counters, self._refuse = library, counters, refuse
        self._keeps_blocks, self._free, self._users = keeps_blocks, {}, weakref.WeakSet()

    def allocate(self, int64_t nbytes, what="an array"):
        """Return memory of ``nbytes`` bytes, not initialized.

        Raises
        ------
        DeviceMemoryError
            If there is not enough, though caches were given back; the message says for what.
        """
        with cython.critical_section(machine_lock):
            return self.take(nbytes, what)

    cdef DeviceMemory take(self, int64_t nbytes, what):
        cdef int64_t size = _rounded(nbytes) if self._keeps_blocks else nbytes
        cdef DeviceMemory made = DeviceMemory.__new__(DeviceMemory)
        cdef list kept = self._free.get(size)
        if kept:
            made.address = kept.pop()
            self.cached -= size
        else:
            made.address = self._fresh(size, nbytes, what)
        self.used += size
        self.peak = max(self.peak, self.used)
        made.nbytes, made._size, made._pool = nbytes, size, self
        return made

    cdef uint64_t _fresh(self, int64_t size, int64_t nbytes, what) except? 0:
        cdef uint64_t address = 0
        cdef int code = self._ask(size, &address)
        if code:
            for user in [*self._users]:
                user.drop_arena()
            self.give_all_back()
            code = self._ask(size, &address)
        if code:
            self._refuse(self, nbytes, what, code)
        return address

    cdef int _ask(self, int64_t size, uint64_t *address):
        cdef int code
        self.counters.allocations += 1
        if self.limit and self.used + self.cached + size > self.limit:
            return OUT_OF_MEMORY
        code = self.library.enter()
        if code == 0:
            code = self.library.functions.take(address, size)
            self.library.leave()
        return code

    cdef int take_back(self, uint64_t address, int64_t size) except -1:
        self.used -= size
        if self._keeps_blocks:
            self._free.setdefault(size, []).append(address)
            self.cached += size
        else:
            self.library.functions.give(address)
        return 0

    def share(self, user):
        """Note who keeps memory for later, to be asked for it (``drop_arena``) when there is no other."""
        self._users.add(user)

    def empty(self):
        """Give all blocks that are cached back to the driver."""
        with cython.critical_section(machine_lock):
            self.give_all_back()

    cdef int give_all_back(self) except -1:
        cdef dict free
        free, self._free, self.cached = self._free, {}, 0
        if not free or self.library.enter():
            return 0
        for blocks in free.values():
            for address in blocks:
                self.library.functions.give(address)
        self.library.leave()
        return 0


@cython.auto_pickle(False)
cdef class DeviceArrayBase:
    """An array on a device, as C knows it.

    Attributes
    ----------
    driver : Driver
    device : str
        Its name.
    memory : DeviceMemory
    offset : int
        Of the first element in the memory, in bytes.
    address : int
        Of the first element, on the device.
    dtype : numpy.dtype
    shape, strides : tuple of int
    """

    cdef readonly object driver, memory, dtype, device
    cdef readonly tuple shape, strides
    cdef readonly int64_t offset
    cdef readonly uint64_t address

    def __init__(self, driver, DeviceMemory memory, int64_t offset, dtype, shape, strides):
        self.driver, self.memory, self.offset, self.device = driver, memory, offset, driver.name
        self.address = memory.address + <uint64_t>offset
        self.dtype, self.shape, self.strides = np.dtype(dtype), tuple(shape), tuple(strides)


@cython.final
@cython.auto_pickle(False)
cdef class DeviceValues:
    """A type of arrays on devices, for C.

    Parameters
    ----------
    device : str
    dtype : numpy.dtype
    shape : tuple of int or None
    """

    cdef object _device, _dtype
    cdef tuple _shape

    def __cinit__(self, str device, dtype, tuple shape):
        self._device, self._dtype, self._shape = device, dtype, shape

    cdef bint fit(self, DeviceArrayBase x) noexcept:
        """Tell whether an array is of the type; all of these are built-in objects."""
        cdef Py_ssize_t i
        if not _equal(x.device, self._device) or not _equal(x.dtype, self._dtype):
            return False
        if len(x.shape) != len(self._shape):
            return False
        for i in range(len(self._shape)):
            if self._shape[i] is not None and not _equal(self._shape[i], x.shape[i]):
                return False
        return True


cdef inline bint _equal(x, y) except -1:
    return x is y or x == y


cdef int64_t span_of(DeviceArrayBase x, int64_t *low, int64_t *nbytes) except -1:
    """Return how many bytes there are from the first byte of all elements to the last; where the first lies, and the
    bytes of the elements.
    """
    cdef int64_t span = x.dtype.itemsize, reach, length
    cdef Py_ssize_t axis
    low[0], nbytes[0] = 0, span
    for axis in range(len(x.shape)):
        length = x.shape[axis]
        nbytes[0] *= length
        if length > 1:
            reach = (length - 1) * <int64_t>x.strides[axis]
            if reach < 0:
                low[0] += reach
            span += reach if reach > 0 else -reach
    if nbytes[0] == 0:
        low[0], span = 0, 0
    return span
