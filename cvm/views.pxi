# Parts of arrays, as views.

cdef extern from "Python.h":
    Py_ssize_t PySlice_AdjustIndices(
        Py_ssize_t length, Py_ssize_t *start, Py_ssize_t *stop, Py_ssize_t step
    )
    Py_ssize_t PY_SSIZE_T_MAX
    Py_ssize_t PY_SSIZE_T_MIN

cdef enum Taken:
    NEW_AXIS = 0
    ONE = 1         # the element at ``start``
    RANGE = 2


cdef struct Entry:
    int taken
    Py_ssize_t start
    Py_ssize_t stop
    Py_ssize_t step


cdef class Part(Action):
    """A view of a part of an array, given by numbers.

    Parameters
    ----------
    compute : callable
        Does the same in Python; it is called where the part is not there, and says so.
    input, output : int
        Slots.
    ndim : int
        Of the input.
    entries : sequence of None, int or (start, stop, step)
        None is a new axis of length 1. Axes beyond the last entry are whole.
    """

    cdef object _compute
    cdef Entry *_entries
    cdef int _input, _output, _from, _ndim, _n_entries

    def __cinit__(self, compute, int input, int output, int ndim, entries):
        cdef Entry *entry
        cdef int i
        self._compute = compute
        self._input, self._output, self._from = input, output, ndim
        self._n_entries = len(entries)
        self._ndim = ndim + sum(1 if e is None else -isinstance(e, int) for e in entries)
        if max(self._ndim, ndim) > MOST_AXES:
            raise ValueError(f"views are taken of arrays with at most {MOST_AXES} axes")
        self._entries = <Entry *>PyMem_Malloc(max(self._n_entries, 1) * sizeof(Entry))
        if self._entries == NULL:
            raise MemoryError()
        for i in range(self._n_entries):
            entry, given = &self._entries[i], entries[i]
            if given is None:
                entry.taken = NEW_AXIS
            elif isinstance(given, int):
                entry.taken, entry.start = ONE, given
            else:
                start, stop, step = given
                entry.taken, entry.step = RANGE, 1 if step is None else step
                first, last = PY_SSIZE_T_MIN, PY_SSIZE_T_MAX
                if entry.step < 0:
                    first, last = last, first
                entry.start = first if start is None else start
                entry.stop = last if stop is None else stop

    def __dealloc__(self):
        PyMem_Free(self._entries)

    cdef int run(self, PyObject **store) except -1:
        cdef cnp.npy_intp lengths[MOST_AXES]
        cdef cnp.npy_intp strides[MOST_AXES]
        cdef cnp.npy_intp offset = 0
        cdef cnp.ndarray x
        if cnp.PyArray_CheckExact(<object>store[self._input]):
            x = <cnp.ndarray>store[self._input]
            if cnp.PyArray_NDIM(x) == self._from and self._cut(x, lengths, strides, &offset):
                z = view_of(x, self._ndim, lengths, strides, cnp.PyArray_BYTES(x) + offset)
                put(store, self._output, z)
                return 0
        before_python()
        put(store, self._output, self._compute(<object>store[self._input]))
        return 0

    cdef bint _cut(
        self, cnp.ndarray x, cnp.npy_intp *lengths, cnp.npy_intp *strides, cnp.npy_intp *offset
    ):
        """The lengths, strides and start of the part; False if it is not there."""
        cdef int i, axis = 0, at = 0
        cdef Py_ssize_t start, stop, n
        cdef Entry *entry
        for i in range(self._n_entries):
            entry = &self._entries[i]
            if entry.taken == NEW_AXIS:
                lengths[at], strides[at] = 1, 0
                at += 1
                continue
            n, start = cnp.PyArray_DIM(x, axis), entry.start
            if entry.taken == ONE:
                start = start + n if start < 0 else start
                if start < 0 or start >= n:
                    return False
                offset[0] += start * cnp.PyArray_STRIDE(x, axis)
            else:
                stop = entry.stop
                lengths[at] = PySlice_AdjustIndices(n, &start, &stop, entry.step)
                strides[at] = entry.step * cnp.PyArray_STRIDE(x, axis)
                if lengths[at]:
                    offset[0] += start * cnp.PyArray_STRIDE(x, axis)
                at += 1
            axis += 1
        while axis < self._from:
            lengths[at], strides[at] = cnp.PyArray_DIM(x, axis), cnp.PyArray_STRIDE(x, axis)
            axis, at = axis + 1, at + 1
        return True
