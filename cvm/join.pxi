# Arrays for parts that lie one after the other.

cdef class Reserve(Native):
    """A new array for the parts of a join, and where each part begins.

    Parameters
    ----------
    compute, arguments, outputs, several
        As of ``Native``; the outputs are the array, the beginnings, and the end.
    axis : int
    parts : sequence
        For each part, for each axis, its length or (number of the argument, axis).
    dtype : numpy.dtype
    into : int
        The slot of an array for the result; -1: a new one.
    """

    cdef int *_sources      # for each part and axis the slot; -1: ``_lengths`` says it
    cdef int *_axes
    cdef Py_ssize_t *_lengths
    cdef int _n_parts, _ndim, _axis, _type, _into

    def __cinit__(self, compute, arguments, outputs, several, int axis, parts, dtype, int into):
        self._axis, self._into = axis_of(axis), into
        self._type = np.dtype(dtype).num
        self._n_parts, self._ndim = len(parts), rank_of(len(parts[0]))
        if axis >= self._ndim or any(len(part) != self._ndim for part in parts):
            raise ValueError(f"the parts {parts} have not one rank with an axis {axis}")
        if self._n_outputs != self._n_parts + 2:
            raise ValueError(f"{self._n_outputs} outputs for {self._n_parts} parts")
        flat = [n for part in parts for n in part]
        self._sources = numbers([-1 if isinstance(n, int) else arguments[n[0]] for n in flat])
        self._axes = numbers([0 if isinstance(n, int) else axis_of(n[1]) for n in flat])
        self._lengths = <Py_ssize_t *>PyMem_Malloc(max(len(flat), 1) * sizeof(Py_ssize_t))
        if self._lengths == NULL:
            raise MemoryError()
        for k, n in enumerate(flat):
            self._lengths[k] = n if isinstance(n, int) else 0

    def __dealloc__(self):
        PyMem_Free(self._sources)
        PyMem_Free(self._axes)
        PyMem_Free(self._lengths)

    cdef bint _try(self, PyObject **store) except -1:
        cdef cnp.npy_intp lengths[MOST_AXES]
        cdef Py_ssize_t n, total = 0
        cdef int k, axis, at = 0
        cdef cnp.ndarray z
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
        z = result_array(store, self._into, self._type, self._ndim, lengths)
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


cdef bint same_place(cnp.ndarray x, char *data, cnp.npy_intp *strides):
    """Whether the elements of ``x`` lie there."""
    cdef int axis
    if cnp.PyArray_BYTES(x) != data:
        return False
    for axis in range(cnp.PyArray_NDIM(x)):
        if cnp.PyArray_STRIDE(x, axis) != strides[axis] and cnp.PyArray_DIM(x, axis) > 1:
            return False
    return True
