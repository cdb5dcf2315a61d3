# Joins: an array for parts that lie one after the other, and the parts put in their places.

cdef class Reserve(Action):
    """A new array for the parts of a join, and where each part begins.

    Parameters
    ----------
    compute : callable
        Does the same in Python; it is called for what does not fit.
    arguments : sequence of int
        Slots of its arguments: those whose lengths count, and those of arrays for the results.
    outputs : sequence of int
        The slots of the array, of the beginnings, and of the end.
    axis : int
    parts : sequence
        For each part, for each axis, its length or (number of the argument, axis).
    dtype : numpy.dtype
    into : int
        The slot of an array for the result; -1: a new one.
    """

    cdef object _compute
    cdef int *_arguments
    cdef int *_outputs
    cdef int *_sources      # for each part and axis the slot; -1: ``_lengths`` says it
    cdef int *_axes
    cdef Py_ssize_t *_lengths
    cdef int _n_arguments, _n_parts, _ndim, _axis, _type, _into

    def __cinit__(self, compute, arguments, outputs, int axis, parts, dtype, int into):
        self._compute, self._axis, self._into = compute, axis, into
        self._type = np.dtype(dtype).num
        self._n_arguments, self._n_parts, self._ndim = len(arguments), len(parts), len(parts[0])
        self._arguments, self._outputs = numbers(arguments), numbers(outputs)
        flat = [n for part in parts for n in part]
        self._sources = numbers([-1 if isinstance(n, int) else arguments[n[0]] for n in flat])
        self._axes = numbers([0 if isinstance(n, int) else n[1] for n in flat])
        self._lengths = <Py_ssize_t *>PyMem_Malloc(max(len(flat), 1) * sizeof(Py_ssize_t))
        if self._lengths == NULL:
            raise MemoryError()
        for k, n in enumerate(flat):
            self._lengths[k] = n if isinstance(n, int) else 0

    def __dealloc__(self):
        PyMem_Free(self._arguments)
        PyMem_Free(self._outputs)
        PyMem_Free(self._sources)
        PyMem_Free(self._axes)
        PyMem_Free(self._lengths)

    cdef int run(self, PyObject **store) except -1:
        cdef int k
        if self._ndim > MOST_AXES or not self._try(store):
            values = values_of(store, self._arguments, self._n_arguments)
            for k, value in enumerate(self._compute(*values)):
                put(store, self._outputs[k], value)
        return 0

    cdef bint _try(self, PyObject **store) except -1:
        cdef cnp.npy_intp lengths[MOST_AXES]
        cdef Py_ssize_t n, total = 0
        cdef int k, axis, at = 0
        cdef cnp.ndarray z = None
        for k in range(self._n_parts):
            for axis in range(self._ndim):
                if not self._measure(store, at, &n):
                    return False
                at += 1
                if axis == self._axis:
                    put(store, self._outputs[1 + k], whole_array(total))
                    total += n
                elif k == 0:
                    lengths[axis] = n
                elif lengths[axis] != n:
                    return False
        put(store, self._outputs[1 + self._n_parts], whole_array(total))
        lengths[self._axis] = total
        if self._into >= 0:
            z = fitting(store[self._into], self._type, self._ndim, lengths)
        if z is None:
            z = cnp.PyArray_EMPTY(self._ndim, lengths, self._type, 0)
        put(store, self._outputs[0], z)
        return True

    cdef bint _measure(self, PyObject **store, int at, Py_ssize_t *length):
        cdef cnp.ndarray array
        length[0] = self._lengths[at]
        if self._sources[at] < 0:
            return True
        if not cnp.PyArray_Check(<object>store[self._sources[at]]):
            return False
        array = <cnp.ndarray>store[self._sources[at]]
        if self._axes[at] >= cnp.PyArray_NDIM(array):
            return False
        length[0] = cnp.PyArray_DIM(array, self._axes[at])
        return True


cdef class Join(Action):
    """Parts one after the other. Those that lie in their places already are not copied.

    Parameters
    ----------
    compute : callable
        Does the same in Python; it is called for what does not fit.
    arguments : sequence of int
        Slots of its arguments: the parts, and perhaps the array to write.
    count, output, axis, ndim : int
        How many parts; the slot of the result; along which of its axes.
    dtype : numpy.dtype
    into : int
        The slot of an array for the result; -1: a new one.
    """

    cdef object _compute
    cdef int *_arguments
    cdef int _n_arguments, _count, _output, _axis, _ndim, _type, _into

    def __cinit__(
        self, compute, arguments, int count, int output, int axis, int ndim, dtype, int into
    ):
        self._compute = compute
        self._n_arguments, self._arguments = len(arguments), numbers(arguments)
        self._count, self._output, self._axis, self._ndim = count, output, axis, ndim
        self._type, self._into = np.dtype(dtype).num, into

    def __dealloc__(self):
        PyMem_Free(self._arguments)

    cdef int run(self, PyObject **store) except -1:
        if self._ndim > MOST_AXES or not self._try(store):
            values = values_of(store, self._arguments, self._n_arguments)
            put(store, self._output, self._compute(*values))
        return 0

    cdef bint _try(self, PyObject **store) except -1:
        cdef cnp.npy_intp lengths[MOST_AXES]
        cdef int k, axis
        cdef cnp.ndarray x, z = None, place
        cdef char *data
        for k in range(self._count):
            if not cnp.PyArray_Check(<object>store[self._arguments[k]]):
                return False
            x = <cnp.ndarray>store[self._arguments[k]]
            if cnp.PyArray_NDIM(x) != self._ndim or cnp.PyArray_TYPE(x) != self._type:
                return False
            for axis in range(self._ndim):
                if k == 0:
                    lengths[axis] = cnp.PyArray_DIM(x, axis)
                elif axis == self._axis:
                    lengths[axis] += cnp.PyArray_DIM(x, axis)
                elif lengths[axis] != cnp.PyArray_DIM(x, axis):
                    return False
        if self._into >= 0:
            z = fitting(store[self._into], self._type, self._ndim, lengths)
        if z is None:
            z = cnp.PyArray_EMPTY(self._ndim, lengths, self._type, 0)
        data = cnp.PyArray_BYTES(z)
        for k in range(self._count):
            x = <cnp.ndarray>store[self._arguments[k]]
            lengths[self._axis] = cnp.PyArray_DIM(x, self._axis)
            if not same_place(x, data, cnp.PyArray_STRIDES(z)):
                place = view_of(z, self._ndim, lengths, cnp.PyArray_STRIDES(z), data)
                cnp.PyArray_CopyInto(place, x)
            data += lengths[self._axis] * cnp.PyArray_STRIDE(z, self._axis)
        put(store, self._output, z)
        return True


cdef bint same_place(cnp.ndarray x, char *data, cnp.npy_intp *strides):
    """Whether the elements of ``x`` lie there."""
    cdef int axis
    if cnp.PyArray_BYTES(x) != data:
        return False
    for axis in range(cnp.PyArray_NDIM(x)):
        if cnp.PyArray_STRIDE(x, axis) != strides[axis] and cnp.PyArray_DIM(x, axis) > 1:
            return False
    return True
