# What instructions of the native machine do: call Python, run a kernel, make a view. An action reads
# the store's slots of its inputs and sets those of its outputs.

cdef extern from *:
    """
    /* -1 if what was called left an exception, as functions of SciPy may be told to. */
    static inline int symcomp_left(void) { return PyErr_Occurred() ? -1 : 0; }
    """
    int raise_what_is_left "symcomp_left" () except -1

cdef extern from "Python.h":
    object PyObject_Vectorcall(PyObject *f, PyObject **args, size_t n, PyObject *names)
    object PyContextVar_Set(object variable, object value)
    int PyContextVar_Reset(object variable, object token) except -1

# Below so much work (elements times steps), giving up the GIL costs more than it is worth.
cdef Py_ssize_t WORTH_RELEASING = 50000

cdef enum:
    MOST_AXES = 16
    MOST_ARRAYS = 64

ctypedef int (*Kernel)(
    char **data, const int64_t *shape, const int64_t *strides, int threads
) noexcept nogil

# Of so much work, code that has not been optimized would take longer than what optimizes it.
cdef double WORTH_WAITING = 5e7


cdef struct Code:
    # Where a kernel is, as codegen/early.py writes it. Another with the same results may take its
    # place at any time.
    Kernel run
    int64_t early


cdef inline int run_code(
    Code *code, int64_t *early_calls, char **data, const int64_t *shape, const int64_t *strides,
    int threads
) noexcept nogil:
    """Call the kernel, and count if that is not optimized yet."""
    if code.early:
        early_calls[0] += 1
    return code.run(data, shape, strides, threads)


# How often this process and those before it forked. OpenMP's threads do not come along then, and it
# would wait for them.
cdef int n_forks = 0


def _count_fork():
    global n_forks
    n_forks += 1


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_count_fork)


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


cdef class Native(Action):
    """What is done natively where the values are as expected; else, or if something is wrong, by
    ``compute``.

    Parameters
    ----------
    compute : callable
    arguments, outputs : sequence of int
        Slots; an argument -1 is None. Arrays to write into come after the inputs.
    several : bool
        Whether ``compute`` returns a sequence, one value for each output.
    *rest
        What kinds of it take.
    """

    cdef object _compute
    cdef int *_slots        # of the arguments; those of the outputs follow
    cdef int *_outputs
    cdef int _n_arguments, _n_outputs
    cdef bint _several

    def __cinit__(self, compute, arguments, outputs, bint several, *rest):
        self._compute = compute
        self._several = several
        self._n_arguments, self._n_outputs = len(arguments), len(outputs)
        self._slots = numbers([*arguments, *outputs])
        self._outputs = self._slots + self._n_arguments

    def __dealloc__(self):
        PyMem_Free(self._slots)

    cdef int run(self, PyObject **store) except -1:
        if not self._try(store):
            self._call_python(store)
        return 0

    cdef bint _try(self, PyObject **store) except -1:
        """Do it; False if that is not possible, and nothing was changed."""
        return False

    cdef bint takes(self, PyObject **store, int *slots):
        """Whether it would take what is in these slots for its inputs."""
        return False

    cdef int _call_python(self, PyObject **store) except -1:
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
            result = call_quietly(<PyObject *>self._compute, arguments, self._n_arguments)
        finally:
            if arguments != few:
                PyMem_Free(arguments)
        if not self._several:
            put(store, self._outputs[0], result)
            return 0
        for i, value in zip(range(self._n_outputs), result, strict=True):
            put(store, self._outputs[i], value)
        return 0


cdef class PythonCall(Native):
    """Calls a Python function with the values of slots."""


cdef object call_quietly(PyObject *function, PyObject **arguments, Py_ssize_t n):
    """Call it, NumPy's warnings of overflow and the like being off."""
    cdef object token
    if quiet is None:
        with np.errstate(all="ignore"):
            return PyObject_Vectorcall(function, arguments, n, NULL)
    token = PyContextVar_Set(quiet, all_ignored)
    try:
        return PyObject_Vectorcall(function, arguments, n, NULL)
    finally:
        PyContextVar_Reset(quiet, token)


cdef object call_with(function, list values):
    """The same, with values."""
    if quiet is None:
        with np.errstate(all="ignore"):
            return function(*values)
    token = PyContextVar_Set(quiet, all_ignored)
    try:
        return function(*values)
    finally:
        PyContextVar_Reset(quiet, token)


def _error_state():
    """The variable in which NumPy keeps what to do about floating-point errors, and what it holds
    where all are ignored: setting it takes a tenth of the time of ``np.errstate``."""
    with np.errstate(all="ignore"):
        for variable, value in contextvars.copy_context().items():
            if variable.name == "numpy.ufunc.extobj":
                return variable, value
    return None, None


cdef object quiet, all_ignored
quiet, all_ignored = _error_state()


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


cdef int checked(int n, int least, int most, str name) except? -1:
    """A parameter of an action, which must be in a range: memory is read and written by it."""
    if not least <= n <= most:
        raise ValueError(f"{name} is {n}; it must be from {least} to {most}")
    return n


cdef int axis_of(int axis) except -1:
    """An axis, counted from the start."""
    return checked(axis, 0, MOST_AXES - 1, "the axis")


cdef int rank_of(int ndim) except -1:
    """A number of axes."""
    return checked(ndim, 0, MOST_AXES, "the number of axes")


cdef class KernelCall(Native):
    """Runs a kernel over the elements of arrays.

    A kernel is a C function ``int f(char **data, const int64_t *shape, const int64_t *strides, int
    threads)``: the loop's lengths, and for each array, inputs first, its address and a row of strides in bytes,
    0 where it is stretched or reduced; the addresses of constants follow. It returns 0, or another
    number if it cannot compute, as an axis is empty, or a position outside: nothing is changed yet.

    Parameters
    ----------
    compute, arguments, outputs, several
        As of ``Native``.
    code : symcomp.codegen.early.Code
        Of the kernel.
    elementwise : bool
        Whether it may be called with 0 threads, if all arrays lie in C order and none is stretched:
        the first length is the number of elements then.
    n_inputs : int
        How many of the arguments are inputs.
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
    threads, least : int
        How many threads share loops over at least so many elements.
    """

    cdef list _constants
    cdef readonly object code
    cdef readonly int64_t early_calls   # how often it was not optimized yet
    cdef Code *_code        # in ``code``
    cdef int *_into
    cdef int *_types
    cdef char **_addresses
    cdef unsigned int *_stretched
    cdef unsigned int *_dropped
    cdef int _n_inputs, _ndim, _steps, _threads
    cdef int64_t _least
    cdef bint _elementwise

    def __cinit__(
        self, compute, arguments, outputs, several, code, bint elementwise, int n_inputs, into, stretched, dropped,
        dtypes, constants, int steps, int threads=1, int64_t least=0
    ):
        self._threads, self._least, self._elementwise = threads, least, elementwise
        self.code = code
        self._code = <Code *><uintptr_t>ctypes.addressof(code)
        self._n_inputs = n_inputs
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
        self._types = numbers([np.dtype(d).num for d in dtypes])
        self._stretched = <unsigned int *>numbers([bits(row) for row in stretched])
        self._dropped = <unsigned int *>numbers([bits(row) for row in dropped])

    def __dealloc__(self):
        PyMem_Free(self._into)
        PyMem_Free(self._types)
        PyMem_Free(self._addresses)
        PyMem_Free(self._stretched)
        PyMem_Free(self._dropped)

    cdef bint _try(self, PyObject **store) except -1:
        cdef int64_t shape[MOST_AXES]
        cdef int64_t strides[MOST_AXES * MOST_ARRAYS]
        cdef char *data[MOST_ARRAYS]
        cdef int axis, i, failed, threads
        cdef int64_t size = 1
        for axis in range(self._ndim):
            shape[axis] = -1
        for i in range(self._n_inputs):
            if not self._read(store[self._slots[i]], i, shape, strides + i * self._ndim, data):
                return False
        for axis in range(self._ndim):
            if shape[axis] < 0:
                shape[axis] = 1
            size *= shape[axis]
        for i in range(self._n_outputs):
            self._provide(store, i, shape, strides + (self._n_inputs + i) * self._ndim, data)
        for i in range(len(self._constants)):
            data[self._n_inputs + self._n_outputs + i] = self._addresses[i]
        threads = self._threads if size >= self._least and n_forks == 0 else 1
        if self._code.early and <double>size * self._steps >= WORTH_WAITING:
            before_python()
            self.code.wait()
        if size * self._steps < WORTH_RELEASING:
            failed = run_code(self._code, &self.early_calls, data, shape, strides, threads)
        else:
            with nogil:
                failed = run_code(self._code, &self.early_calls, data, shape, strides, threads)
        raise_what_is_left()
        return not failed

    cdef bint takes(self, PyObject **store, int *slots):
        cdef int64_t shape[MOST_AXES]
        cdef int64_t strides[MOST_AXES]
        cdef char *data[MOST_ARRAYS]
        cdef int axis, i
        for axis in range(self._ndim):
            shape[axis] = -1
        for i in range(self._n_inputs):
            if store[slots[i]] == NULL or not self._read(store[slots[i]], i, shape, strides, data):
                return False
        return True

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
        put(store, self._outputs[i], array)
        return 0


cdef object fitting(PyObject *value, int kind, int ndim, cnp.npy_intp *lengths):
    """The array of a slot if it may hold a result of this kind, else None."""
    cdef cnp.ndarray array
    if value == NULL or not cnp.PyArray_Check(<object>value):
        return None
    array = <cnp.ndarray>value
    if cnp.PyArray_TYPE(array) != kind:
        return None
    return array if cnp.PyArray_ISBEHAVED(array) and has_lengths(array, ndim, lengths) else None


cdef bint has_lengths(cnp.ndarray array, int ndim, cnp.npy_intp *lengths) noexcept:
    """Whether an array has this shape."""
    cdef int axis
    if cnp.PyArray_NDIM(array) != ndim:
        return False
    for axis in range(ndim):
        if cnp.PyArray_DIM(array, axis) != lengths[axis]:
            return False
    return True


cdef unsigned int bits(flags):
    """The flags as the bits of a number, the first the lowest."""
    cdef unsigned int found = 0
    for place, flag in enumerate(flags):
        if flag:
            found |= 1 << place
    return found
