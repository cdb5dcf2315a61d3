# Plans of devices: what gpu/driver gives to C, to be enqueued without the GIL.

cdef extern from "device/device_plan.h":
    ctypedef struct DevicePatch:
        size_t place
        int storage
        int64_t offset
    ctypedef struct DeviceMotion:
        int storage
        int base[2]
        int64_t offset[2]
        int64_t stride
    ctypedef struct DeviceCall:
        int kind
        void *kernel
        unsigned grid[3]
        unsigned block[3]
        unsigned shared
        size_t parameters, n_parameters
        int first_patch, n_patches
        size_t nbytes
        int64_t repeats
        int end
        int first_motion, n_motions
        int part
    ctypedef struct DeviceOrigin:
        int base
        int64_t offset
    ctypedef struct DevicePlanData:
        int n_calls, n_storages, n_bases
        DeviceCall *calls
        DevicePatch *patches
        DeviceMotion *motions
        DeviceOrigin *origins
        char *parameters
        size_t n_parameters
    const int NO_HOST_MEMORY
    const int MOST_WORDS
    int enqueue_device_plan(
        const DevicePlanData *, const DeviceFunctions *, void *, const uint64_t *, void **, int *
    ) noexcept nogil
    int record_device_plan(
        const DevicePlanData *, const DeviceFunctions *, void *, const uint64_t *, int, void **, int *
    ) noexcept nogil

_DEVICE_KINDS = ["launch", "copy", "clear", "loop", "library"]


cdef void *_zeros(size_t n, size_t size) except NULL:
    cdef void *found = PyMem_Calloc(n if n else 1, size)
    if found == NULL:
        raise MemoryError
    return found


@cython.final
@cython.auto_pickle(False)
cdef class DevicePlan:
    """The calls of a plan for a device.

    Parameters
    ----------
    calls : sequence of tuple
        Kind; kernel, or function of a library; grid and block; bytes of shared memory; parameters, of a library
        the words, of which the first is the address of a LibraryHandle; patches (place, storage, offset);
        bytes of copies and clears; of loops the number of steps, the number of the call after the step, and
        motions (storage, (base, offset) of even steps, of odd ones, stride).
    origins : sequence of (int, int)
        Of each storage: the number of the base that it lies in, or -1, and its offset there, or its address.
    bases : int
        The number of bases, whose addresses ``enqueue`` is given.
    totals : (int, int, int)
        Of a run: its launches, the bytes that it copies on the device, and the pieces of its work.
    is_recordable : bool
        Whether runs can be graphs.
    parts : list of (int, list of int, int)
        Loops that are graphs of their own where the plan is too long for one: the number of the call, the numbers
        of the bases that its steps use, and how often a run enqueues it.
    """

    cdef DevicePlanData data
    cdef readonly int64_t launches, copied, pieces
    cdef readonly bint is_recordable
    cdef list parts

    def __cinit__(
        self, list calls, list origins, int bases, tuple totals=(0, 0, 0), bint is_recordable=True, list parts=[]
    ):
        cdef DevicePlanData *d = &self.data
        cdef int i = 0
        self.launches, self.copied, self.pieces = totals
        self.is_recordable = is_recordable
        d.n_calls, d.n_storages, d.n_bases = len(calls), len(origins), bases
        d.calls = <DeviceCall *>_zeros(d.n_calls, sizeof(DeviceCall))
        d.patches = <DevicePatch *>_zeros(sum([len(c[6]) for c in calls]), sizeof(DevicePatch))
        d.motions = <DeviceMotion *>_zeros(sum([len(c[9]) for c in calls]), sizeof(DeviceMotion))
        d.origins = <DeviceOrigin *>_zeros(d.n_storages, sizeof(DeviceOrigin))
        # Parameters of each call begin at a multiple of 16 bytes.
        d.parameters = <char *>_zeros(sum([len(c[5]) + 16 for c in calls]), 1)
        for i, (base, offset) in enumerate(origins):
            d.origins[i].base, d.origins[i].offset = checked(base, -1, bases - 1, "a base"), offset
        for i, call in enumerate(calls):
            self._set(i, call)
            d.calls[i].part = -1
        self.parts = parts
        for i, (number, used, _) in enumerate(parts):
            if calls[number][0] != "loop":
                raise ValueError(f"call {number} is no loop")
            for base in used:
                checked(base, 0, bases - 1, "a base")
            d.calls[<int>number].part = i

    cdef int _set(self, int i, tuple given) except -1:
        cdef DevicePlanData *d = &self.data
        cdef DeviceCall *c = d.calls + i
        cdef DeviceCall *before = d.calls + i - 1
        cdef bytes text
        cdef int k
        kind, kernel, grid, block, shared, parameters, patches, nbytes, (repeats, end), motions = given
        c.kind, c.kernel = _DEVICE_KINDS.index(kind), <void *><uintptr_t>kernel
        for k in range(3):
            c.grid[k], c.block[k] = grid[k], block[k]
        text = bytes(parameters)
        c.shared, c.nbytes, c.repeats = shared, nbytes, repeats
        c.end = checked(end, i + 1, d.n_calls, "the end of a loop") if kind == "loop" else 0
        c.parameters, c.n_parameters = d.n_parameters, len(text)
        memcpy(d.parameters + c.parameters, <char *>text, len(text))
        d.n_parameters += (len(text) + 15) // 16 * 16
        c.n_patches, c.n_motions = len(patches), len(motions)
        if i:
            c.first_patch = before.first_patch + before.n_patches
            c.first_motion = before.first_motion + before.n_motions
        if kind == "library" and (len(text) % 8 or not 8 <= len(text) <= 8 * MOST_WORDS):
            raise ValueError(f"a function of a library is given {len(text)} bytes, not 1 to {MOST_WORDS} words")
        most = len(text) - 8 if kind in ("launch", "library") else 1
        for k, (place, storage, offset) in enumerate(patches, c.first_patch):
            d.patches[k].place = checked(place, 0, most, "the place of an address")
            d.patches[k].storage = checked(storage, 0, d.n_storages - 1, "a storage")
            d.patches[k].offset = offset
        for k, (storage, even, odd, stride) in enumerate(motions, c.first_motion):
            d.motions[k].storage = checked(storage, 0, d.n_storages - 1, "a storage")
            d.motions[k].base[0] = checked(even[0], 0, d.n_storages - 1, "a storage")
            d.motions[k].base[1] = checked(odd[0], 0, d.n_storages - 1, "a storage")
            d.motions[k].offset[0], d.motions[k].offset[1] = even[1], odd[1]
            d.motions[k].stride = stride
        return 0

    def __dealloc__(self):
        PyMem_Free(self.data.calls)
        PyMem_Free(self.data.patches)
        PyMem_Free(self.data.motions)
        PyMem_Free(self.data.origins)
        PyMem_Free(self.data.parameters)

    def enqueue(self, tuple functions, stream, list bases):
        """Enqueue the calls; return 0, or the code of an error and the number of its call.

        Parameters
        ----------
        functions : tuple of int
            The addresses of cuLaunchKernel, cuMemcpyDtoDAsync and cuMemsetD8Async, or of functions like these; and
            of ``library_caller()``, or of a function like it.
        stream : int
        bases : list of int
            Addresses.
        """
        cdef DeviceFunctions given
        cdef uint64_t *addresses
        cdef void *to = <void *><uintptr_t>stream
        cdef int code, i, failed = -1
        if len(bases) != self.data.n_bases:
            raise ValueError(f"a plan of {self.data.n_bases} bases is given {len(bases)} addresses")
        memset(&given, 0, sizeof(given))
        given.launch = <void *><uintptr_t>functions[0]
        given.copy = <int (*)(uint64_t, uint64_t, size_t, void *) noexcept nogil><uintptr_t>functions[1]
        given.fill = <void *><uintptr_t>functions[2]
        given.call = <void *><uintptr_t>functions[3]
        addresses = <uint64_t *>_zeros(len(bases), sizeof(uint64_t))
        try:
            for i in range(len(bases)):
                addresses[i] = bases[i]
            with nogil:
                code = enqueue_device_plan(&self.data, &given, to, addresses, NULL, &failed)
        finally:
            PyMem_Free(addresses)
        if code == NO_HOST_MEMORY:
            raise MemoryError
        return code, failed
