# What instructions of the native machine do: call Python, run a kernel, make a view. An action reads
# the store's slots of its inputs and sets those of its outputs.

cdef extern from "Python.h":
    object PyObject_Vectorcall(PyObject *f, PyObject **args, size_t n, PyObject *names)

# Below so much work (elements times steps), giving up the GIL costs more than it is worth.
cdef Py_ssize_t WORTH_RELEASING = 50000

cdef enum:
    MOST_AXES = 16
    MOST_ARRAYS = 64

ctypedef int (*Kernel)(char **data, const int64_t *shape, const int64_t *strides) noexcept nogil


cdef inline void put(PyObject **store, int slot, object value):
    """Set a slot."""
    cdef PyObject *old = store[slot]
    Py_INCREF(value)
    store[slot] = <PyObject *>value
    Py_XDECREF(old)


cdef class Action:
    """One instruction's work."""

    cdef int run(self, PyObject **store) except -1:
        raise NotImplementedError


cdef class PythonCall(Action):
    """Calls a Python function with the values of slots.

    Parameters
    ----------
    compute : callable
    arguments, outputs : sequence of int
        Slots; an argument -1 is None.
    several : bool
        Whether it returns a sequence, one value for each output.
    """

    cdef object _compute
    cdef int *_slots
    cdef int _n_arguments, _n_outputs
    cdef bint _several

    def __cinit__(self, compute, arguments, outputs, bint several):
        cdef int i
        self._compute = compute
        self._several = several
        self._n_arguments, self._n_outputs = len(arguments), len(outputs)
        self._slots = numbers([*arguments, *outputs])

    def __dealloc__(self):
        PyMem_Free(self._slots)

    cdef int run(self, PyObject **store) except -1:
        cdef PyObject *few[16]
        cdef PyObject **arguments = few
        cdef int i
        cdef object result
        before_python()
        if self._n_arguments > 16:
            arguments = <PyObject **>PyMem_Malloc(self._n_arguments * sizeof(PyObject *))
            if arguments == NULL:
                raise MemoryError()
        try:
            for i in range(self._n_arguments):
                arguments[i] = <PyObject *>None
                if self._slots[i] >= 0:
                    arguments[i] = store[self._slots[i]]
            result = PyObject_Vectorcall(
                <PyObject *>self._compute, arguments, self._n_arguments, NULL
            )
        finally:
            if arguments != few:
                PyMem_Free(arguments)
        if not self._several:
            put(store, self._slots[self._n_arguments], result)
            return 0
        for i, value in zip(range(self._n_outputs), result, strict=True):
            put(store, self._slots[self._n_arguments + i], value)
        return 0


cdef list values_of(PyObject **store, int *slots, int n):
    """The values of slots, to call Python with; None for -1."""
    cdef int i
    before_python()
    return [
        None if slots[i] < 0 or store[slots[i]] == NULL else <object>store[slots[i]]
        for i in range(n)
    ]


cdef int *numbers(values) except NULL:
    """A C array of int."""
    cdef int i, n = len(values)
    cdef int *found = <int *>PyMem_Malloc(max(n, 1) * sizeof(int))
    if found == NULL:
        raise MemoryError()
    for i in range(n):
        found[i] = values[i]
    return found


cdef class KernelCall(Action):
    """Runs a kernel over the elements of arrays.

    A kernel is a C function ``int f(char **data, const int64_t *shape, const int64_t *strides)``:
    the loop's lengths, and for each array, inputs first, its address and a row of strides in bytes,
    0 where it is stretched or reduced; the addresses of constants follow. It returns 0, or another
    number if it cannot compute, as an axis is empty, or a position outside: nothing is changed yet.

    Parameters
    ----------
    address : int
        Of the kernel.
    compute : callable
        Computes the same in Python; it is called where arrays do not fit, and says what is wrong.
    arguments : sequence of int
        The slots of its arguments; -1 is None.
    inputs, outputs : sequence of int
        Slots.
    into : sequence of int
        For each output, the slot of an array to leave it in; -1: a new one. Empty: new ones.
    stretched : sequence of sequence of bool
        For each input and output, which axes have length 1 while the loop's may have another.
    dropped : sequence of sequence of bool
        For each output, which axes it has not.
    dtypes : sequence of numpy.dtype
        Of inputs and outputs.
    constants : sequence of array
        Of one element each.
    steps : int
        How many operations an element takes.
    """

    cdef object _compute
    cdef list _constants
    cdef Kernel _kernel
    cdef int *_arguments
    cdef int *_slots
    cdef int *_into
    cdef int *_types
    cdef char **_addresses
    cdef unsigned int *_stretched
    cdef unsigned int *_dropped
    cdef int _n_arguments, _n_inputs, _n_outputs, _ndim, _steps

    def __cinit__(
        self, address, compute, arguments, inputs, outputs, into, stretched, dropped, dtypes,
        constants, int steps
    ):
        self._kernel = <Kernel><uintptr_t>address
        self._compute = compute
        self._n_arguments = len(arguments)
        self._arguments = numbers(arguments)
        self._n_inputs, self._n_outputs = len(inputs), len(outputs)
        self._steps = steps
        self._into = numbers(into or [-1] * len(outputs))
        self._ndim = len(stretched[0])
        if self._ndim > MOST_AXES:
            raise ValueError(f"a kernel takes at most {MOST_AXES} axes")
        # Kept, as the kernel reads their memory.
        self._constants = [np.array(value) for value in constants]
        if len(stretched) + len(self._constants) > MOST_ARRAYS:
            raise ValueError(f"a kernel takes at most {MOST_ARRAYS} arrays and constants")
        self._addresses = <char **>PyMem_Malloc(max(len(self._constants), 1) * sizeof(char *))
        if self._addresses == NULL:
            raise MemoryError()
        for i, value in enumerate(self._constants):
            self._addresses[i] = cnp.PyArray_BYTES(<cnp.ndarray>value)
        self._slots = numbers([*inputs, *outputs])
        self._types = numbers([np.dtype(d).num for d in dtypes])
        self._stretched = <unsigned int *>numbers([bits(row) for row in stretched])
        self._dropped = <unsigned int *>numbers([bits(row) for row in dropped])

    def __dealloc__(self):
        PyMem_Free(self._arguments)
        PyMem_Free(self._slots)
        PyMem_Free(self._into)
        PyMem_Free(self._types)
        PyMem_Free(self._addresses)
        PyMem_Free(self._stretched)
        PyMem_Free(self._dropped)

    cdef int run(self, PyObject **store) except -1:
        cdef int64_t shape[MOST_AXES]
        cdef int64_t strides[MOST_AXES * MOST_ARRAYS]
        cdef char *data[MOST_ARRAYS]
        cdef int axis, i, failed
        cdef int64_t size = 1
        for axis in range(self._ndim):
            shape[axis] = -1
        for i in range(self._n_inputs):
            if not self._read(store[self._slots[i]], i, shape, strides + i * self._ndim, data):
                return self._refuse(store)
        for axis in range(self._ndim):
            if shape[axis] < 0:
                shape[axis] = 1
            size *= shape[axis]
        for i in range(self._n_outputs):
            self._provide(store, i, shape, strides + (self._n_inputs + i) * self._ndim, data)
        for i in range(len(self._constants)):
            data[self._n_inputs + self._n_outputs + i] = self._addresses[i]
        if size * self._steps < WORTH_RELEASING:
            failed = self._kernel(data, shape, strides)
        else:
            with nogil:
                failed = self._kernel(data, shape, strides)
        if failed:
            return self._refuse(store)
        return 0

    cdef bint _read(
        self, PyObject *value, int i, int64_t *shape, int64_t *strides, char **data
    ):
        """Take in one input; False if it does not fit."""
        cdef int axis
        cdef cnp.npy_intp n
        cdef cnp.ndarray array
        if not cnp.PyArray_Check(<object>value):
            return False
        array = <cnp.ndarray>value
        if cnp.PyArray_NDIM(array) != self._ndim or cnp.PyArray_TYPE(array) != self._types[i]:
            return False
        if not cnp.PyArray_ISBEHAVED_RO(array):
            return False
        data[i] = cnp.PyArray_BYTES(array)
        for axis in range(self._ndim):
            n = cnp.PyArray_DIM(array, axis)
            if self._stretched[i] >> axis & 1:
                if n != 1:
                    return False
                strides[axis] = 0
            elif shape[axis] < 0 or shape[axis] == n:
                shape[axis] = n
                strides[axis] = cnp.PyArray_STRIDE(array, axis)
            else:
                return False
        return True

    cdef int _provide(
        self, PyObject **store, int i, int64_t *shape, int64_t *strides, char **data
    ) except -1:
        """Find or make the array of an output."""
        cdef cnp.npy_intp lengths[MOST_AXES]
        cdef int axis, at, ndim = 0
        cdef int k = self._n_inputs + i
        cdef unsigned int stretched = self._stretched[k], dropped = self._dropped[i]
        cdef cnp.ndarray array = None
        for axis in range(self._ndim):
            if not dropped >> axis & 1:
                lengths[ndim] = 1 if stretched >> axis & 1 else shape[axis]
                ndim += 1
        if self._into[i] >= 0:
            array = fitting(store[self._into[i]], self._types[k], ndim, lengths)
        if array is None:
            array = cnp.PyArray_EMPTY(ndim, lengths, self._types[k], 0)
        at = 0
        for axis in range(self._ndim):
            strides[axis] = 0
            if not dropped >> axis & 1:
                if not stretched >> axis & 1:
                    strides[axis] = cnp.PyArray_STRIDE(array, at)
                at += 1
        data[k] = cnp.PyArray_BYTES(array)
        put(store, self._slots[k], array)
        return 0

    cdef int _refuse(self, PyObject **store) except -1:
        """Compute in Python, which takes any layout or says what does not fit."""
        results = self._compute(*values_of(store, self._arguments, self._n_arguments))
        if self._n_outputs == 1 and not isinstance(results, tuple):
            results = (results,)
        for i, value in enumerate(results):
            put(store, self._slots[self._n_inputs + i], value)
        return 0


cdef object fitting(PyObject *value, int kind, int ndim, cnp.npy_intp *lengths):
    """The array of a slot if it may hold a result of this kind, else None."""
    cdef int axis
    cdef cnp.ndarray array
    if value == NULL or not cnp.PyArray_Check(<object>value):
        return None
    array = <cnp.ndarray>value
    if cnp.PyArray_TYPE(array) != kind or cnp.PyArray_NDIM(array) != ndim:
        return None
    if not cnp.PyArray_ISBEHAVED(array):
        return None
    for axis in range(ndim):
        if cnp.PyArray_DIM(array, axis) != lengths[axis]:
            return None
    return array


cdef unsigned int bits(flags):
    """The flags as the bits of a number, the first the lowest."""
    cdef unsigned int found = 0
    for place, flag in enumerate(flags):
        if flag:
            found |= 1 << place
    return found


cdef class Transpose(Action):
    """A view with other axes: ``order`` names the axes of the input, -1 a new one of length 1. The
    axes left out must have length 1, else ``compute`` says what is wrong.
    """

    cdef object _compute
    cdef int *_order
    cdef int _input, _output, _ndim, _from
    cdef unsigned int _kept

    def __cinit__(self, compute, int input, int output, int ndim, order):
        self._compute = compute
        self._input, self._output = input, output
        self._from, self._ndim = ndim, len(order)
        self._order = numbers(order)
        self._kept = bits([a in order for a in range(ndim)])

    def __dealloc__(self):
        PyMem_Free(self._order)

    cdef int run(self, PyObject **store) except -1:
        cdef cnp.npy_intp lengths[MOST_AXES]
        cdef cnp.npy_intp strides[MOST_AXES]
        cdef int axis, source
        cdef cnp.ndarray x, z
        cdef bint fits = cnp.PyArray_CheckExact(<object>store[self._input])
        if fits:
            x = <cnp.ndarray>store[self._input]
            fits = cnp.PyArray_NDIM(x) == self._from
            for axis in range(self._from):
                if fits and not self._kept >> axis & 1:
                    fits = cnp.PyArray_DIM(x, axis) == 1
        if not fits:
            before_python()
            put(store, self._output, self._compute(<object>store[self._input]))
            return 0
        for axis in range(self._ndim):
            source = self._order[axis]
            lengths[axis] = 1 if source < 0 else cnp.PyArray_DIM(x, source)
            strides[axis] = 0 if source < 0 else cnp.PyArray_STRIDE(x, source)
        z = view_of(x, self._ndim, lengths, strides, cnp.PyArray_BYTES(x))
        put(store, self._output, z)
        return 0


cdef cnp.ndarray view_of(
    cnp.ndarray x, int ndim, cnp.npy_intp *lengths, cnp.npy_intp *strides, char *data
):
    """An array over the memory of ``x``."""
    cdef int flags = cnp.NPY_ARRAY_WRITEABLE if cnp.PyArray_ISWRITEABLE(x) else 0
    cdef cnp.ndarray z = cnp.PyArray_New(
        np.ndarray, ndim, lengths, cnp.PyArray_TYPE(x), strides, data, 0, flags, <object>NULL
    )
    cnp.set_array_base(z, x)
    cnp.PyArray_UpdateFlags(z, cnp.NPY_ARRAY_UPDATE_ALL)
    return z
