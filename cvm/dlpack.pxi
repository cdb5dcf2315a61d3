# Arrays in DLPack's capsules: made for other libraries, and taken from them.

cdef extern from "dlpack.h":
    enum:
        DLPACK_MAJOR, DLPACK_MINOR, DLPACK_READ_ONLY, DLPACK_IS_COPY
    ctypedef struct dlpack_device:
        int32_t type, number
    ctypedef struct dlpack_dtype:
        unsigned char code, bits
        unsigned short lanes
    ctypedef struct dlpack_tensor:
        void *data
        dlpack_device device
        int32_t ndim
        dlpack_dtype dtype
        int64_t *shape
        int64_t *strides
        uint64_t byte_offset
    ctypedef struct dlpack_managed:
        dlpack_tensor tensor
        void *owner
        void (*deleter)(dlpack_managed *) noexcept nogil
    ctypedef struct dlpack_versioned:
        unsigned int major, minor
        void *owner
        void (*deleter)(dlpack_versioned *) noexcept nogil
        uint64_t flags
        dlpack_tensor tensor

cdef extern from "Python.h":
    ctypedef void (*capsule_destructor)(PyObject *)
    object PyCapsule_New(void *, const char *, capsule_destructor)
    bint PyCapsule_IsValid(PyObject *, const char *)
    void *dlpack_pointer "PyCapsule_GetPointer" (PyObject *, const char *)
    int PyCapsule_SetName(object, const char *) except -1
    int PyCapsule_SetDestructor(object, capsule_destructor) except -1
    bint Py_IsInitialized() noexcept nogil
    void *PyMem_RawCalloc(size_t, size_t) noexcept nogil
    void PyMem_RawFree(void *) noexcept nogil


# A consumer may call a deleter in any thread, without the GIL, and after the interpreter has ended.
cdef void _drop_owner(void *owner) noexcept nogil:
    if Py_IsInitialized():
        with gil:
            Py_XDECREF(<PyObject *>owner)


cdef void _delete_managed(dlpack_managed *found) noexcept nogil:
    _drop_owner(found.owner)
    PyMem_RawFree(found.tensor.shape)
    PyMem_RawFree(found)


cdef void _delete_versioned(dlpack_versioned *found) noexcept nogil:
    _drop_owner(found.owner)
    PyMem_RawFree(found.tensor.shape)
    PyMem_RawFree(found)


# Capsules without a consumer; a consumer gives its capsule another name.
cdef void _end_managed(PyObject *capsule) noexcept:
    cdef dlpack_managed *found
    if PyCapsule_IsValid(capsule, b"dltensor"):
        found = <dlpack_managed *>dlpack_pointer(capsule, b"dltensor")
        if found.deleter != NULL:
            found.deleter(found)


cdef void _end_versioned(PyObject *capsule) noexcept:
    cdef dlpack_versioned *found
    if PyCapsule_IsValid(capsule, b"dltensor_versioned"):
        found = <dlpack_versioned *>dlpack_pointer(capsule, b"dltensor_versioned")
        if found.deleter != NULL:
            found.deleter(found)


cdef int _fill_tensor(
    dlpack_tensor *tensor, uintptr_t address, tuple device, tuple dtype, tuple shape, tuple strides
) except -1:
    cdef Py_ssize_t i, ndim = len(shape)
    tensor.shape = <int64_t *>PyMem_RawCalloc(2 * ndim + 1, sizeof(int64_t))
    if tensor.shape == NULL:
        raise MemoryError()
    try:
        tensor.strides = tensor.shape + ndim
        for i in range(ndim):
            tensor.shape[i] = shape[i]
            tensor.strides[i] = strides[i]
        tensor.data = <void *>address
        tensor.device.type, tensor.device.number = device
        tensor.ndim = <int32_t>ndim
        tensor.dtype.code, tensor.dtype.bits = dtype
        tensor.dtype.lanes = 1
    except BaseException:
        PyMem_RawFree(tensor.shape)
        raise
    return 0


def to_dlpack(
    owner, uintptr_t address, tuple device, tuple dtype, tuple shape, tuple strides,
    bint versioned, bint read_only, bint copied,
):
    """Return a capsule of an array, which keeps ``owner`` alive.

    Parameters
    ----------
    owner : object
        Of the memory.
    address : int
    device, dtype : tuple of int
        Type and number; code and bits, as DLPack has them.
    shape, strides : tuple of int
        Strides count elements.
    versioned : bool
        Whether the capsule is one of version 1, which alone has the flags ``read_only`` and ``copied``.
    """
    cdef dlpack_managed *plain
    cdef dlpack_versioned *made
    if versioned:
        made = <dlpack_versioned *>PyMem_RawCalloc(1, sizeof(dlpack_versioned))
        if made == NULL:
            raise MemoryError()
        try:
            _fill_tensor(&made.tensor, address, device, dtype, shape, strides)
        except BaseException:
            PyMem_RawFree(made)
            raise
        made.major, made.minor = DLPACK_MAJOR, DLPACK_MINOR
        made.flags = (DLPACK_READ_ONLY if read_only else 0) | (DLPACK_IS_COPY if copied else 0)
        made.deleter = _delete_versioned
        Py_INCREF(owner)
        made.owner = <void *>owner
        try:
            return PyCapsule_New(made, b"dltensor_versioned", _end_versioned)
        except BaseException:
            _delete_versioned(made)
            raise
    plain = <dlpack_managed *>PyMem_RawCalloc(1, sizeof(dlpack_managed))
    if plain == NULL:
        raise MemoryError()
    try:
        _fill_tensor(&plain.tensor, address, device, dtype, shape, strides)
    except BaseException:
        PyMem_RawFree(plain)
        raise
    plain.deleter = _delete_managed
    Py_INCREF(owner)
    plain.owner = <void *>owner
    try:
        return PyCapsule_New(plain, b"dltensor", _end_managed)
    except BaseException:
        _delete_managed(plain)
        raise


cdef class ForeignArray:
    """An array of a DLPack capsule of another library, which is taken over; it is given back when
    this object is collected.

    Attributes
    ----------
    address : int
        Of the first element.
    device, dtype : tuple of int
        Type and number; code, bits and lanes.
    shape : tuple of int
    strides : tuple of int or None
        In elements; None: C order.
    read_only : bool
    """

    cdef dlpack_managed *_plain
    cdef dlpack_versioned *_versioned
    cdef readonly object address, device, dtype, shape, strides
    cdef readonly bint read_only

    def __init__(self, capsule):
        cdef dlpack_tensor *tensor
        cdef PyObject *given = <PyObject *>capsule
        if self._plain != NULL or self._versioned != NULL:
            raise ValueError("this array has been taken from a capsule already")
        if PyCapsule_IsValid(given, b"dltensor_versioned"):
            versioned = <dlpack_versioned *>dlpack_pointer(given, b"dltensor_versioned")
            if versioned.major > DLPACK_MAJOR:
                raise BufferError(
                    f"DLPack: a capsule of version {versioned.major}; {DLPACK_MAJOR} is understood"
                )
            PyCapsule_SetName(capsule, b"used_dltensor_versioned")
            self._versioned = versioned
            tensor = &versioned.tensor
            self.read_only = (versioned.flags & DLPACK_READ_ONLY) != 0
        elif PyCapsule_IsValid(given, b"dltensor"):
            plain = <dlpack_managed *>dlpack_pointer(given, b"dltensor")
            PyCapsule_SetName(capsule, b"used_dltensor")
            self._plain = plain
            tensor = &plain.tensor
        else:
            raise ValueError(
                f"DLPack: {capsule!r:.80} is no capsule of an array, or it has been used already"
            )
        self.address = <uintptr_t>tensor.data + tensor.byte_offset
        self.device = tensor.device.type, tensor.device.number
        self.dtype = tensor.dtype.code, tensor.dtype.bits, tensor.dtype.lanes
        if tensor.ndim < 0 or (tensor.ndim > 0 and tensor.shape == NULL):
            raise BufferError(f"DLPack: an array of {tensor.ndim} axes without lengths")
        self.shape = tuple([tensor.shape[i] for i in range(tensor.ndim)])
        self.strides = None
        if tensor.strides != NULL:
            self.strides = tuple([tensor.strides[i] for i in range(tensor.ndim)])

    def __dealloc__(self):
        if self._versioned != NULL and self._versioned.deleter != NULL:
            self._versioned.deleter(self._versioned)
        if self._plain != NULL and self._plain.deleter != NULL:
            self._plain.deleter(self._plain)
