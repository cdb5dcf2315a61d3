# What needs an order of elements: the first of each line, the distinct ones.

cdef extern from "order.h" nogil:
    struct first_in_order:
        int64_t count
        void *elements
        int64_t *places

    line_function *function_for_first(bint largest, char kind, int64_t size)
    int64_t list_runs(
        char kind, int64_t size, int64_t n, const char *sorted, int64_t *starts
    )


cdef cnp.ndarray readable(PyObject *value):
    """The array of a slot; of float16 a copy as float32, in which it has the same order."""
    cdef cnp.ndarray x = plain(value)
    if x is not None and cnp.PyArray_TYPE(x) == cnp.NPY_FLOAT16:
        return cnp.PyArray_Cast(x, cnp.NPY_FLOAT32)
    return x


cdef class First(Native):
    """The positions of the first elements along ``axis``: the arguments are x and how many of the
    largest, or as a negative number of the smallest. NaN counts as the largest.
    """

    cdef int _axis

    def __cinit__(self, compute, arguments, outputs, several, int axis):
        self._axis = axis_of(axis)

    cdef bint _try(self, PyObject **store) except -1:
        cdef Lines lines
        cdef first_in_order first
        cdef Bound bound
        cdef Py_ssize_t count
        cdef int axis
        cdef cnp.npy_intp lengths[MOST_AXES]
        cdef line_function *function
        cdef cnp.ndarray z, x = readable(store[self._slots[0]])
        bound.slot = self._slots[1]
        if x is None or self._axis >= cnp.PyArray_NDIM(x):
            return False
        if not whole_number(store, &bound, &count) or count == 0:
            return False
        if abs(count) > cnp.PyArray_DIM(x, self._axis):
            return False
        function = function_for_first(count > 0, kind_of(x), cnp.PyArray_ITEMSIZE(x))
        if function == NULL:
            return False
        memcpy(lengths, cnp.PyArray_DIMS(x), cnp.PyArray_NDIM(x) * sizeof(cnp.npy_intp))
        first.count = lengths[self._axis] = abs(count)
        z = cnp.PyArray_EMPTY(cnp.PyArray_NDIM(x), lengths, cnp.NPY_INT64, 0)
        lines.rank, lines.second_step = 0, 0
        for axis in range(cnp.PyArray_NDIM(x)):
            if axis == self._axis:
                lines.n, lines.x_step = cnp.PyArray_DIM(x, axis), cnp.PyArray_STRIDE(x, axis)
                lines.out_step = cnp.PyArray_STRIDE(z, axis)
            else:
                add_line_axis(
                    &lines, cnp.PyArray_DIM(x, axis), cnp.PyArray_STRIDE(x, axis), 0,
                    cnp.PyArray_STRIDE(z, axis)
                )
        first.elements = PyMem_Malloc(first.count * cnp.PyArray_ITEMSIZE(x))
        first.places = <int64_t *>PyMem_Malloc(first.count * sizeof(int64_t))
        try:
            if first.elements == NULL or first.places == NULL:
                raise MemoryError()
            if cnp.PyArray_SIZE(x) < WORTH_RELEASING:
                run_lines(
                    function, &lines, cnp.PyArray_BYTES(x), <char *>&first, cnp.PyArray_BYTES(z)
                )
            else:
                with nogil:
                    run_lines(
                        function, &lines, cnp.PyArray_BYTES(x), <char *>&first,
                        cnp.PyArray_BYTES(z)
                    )
        finally:
            PyMem_Free(first.elements)
            PyMem_Free(first.places)
        put(store, self._outputs[0], z)
        return True


cdef class Distinct(Native):
    """The distinct elements of x, sorted; then, as the flags say, where each occurs first, which of
    them each element is, and how often each occurs.
    """

    cdef bint _index, _inverse, _counts

    def __cinit__(
        self, compute, arguments, outputs, several, bint index, bint inverse, bint counts
    ):
        self._index, self._inverse, self._counts = index, inverse, counts

    cdef bint _try(self, PyObject **store) except -1:
        cdef cnp.ndarray x = readable(store[self._slots[0]])
        cdef cnp.ndarray flat, order = None, starts, z
        cdef cnp.npy_intp n, length
        cdef int64_t count
        cdef int kind, at = 1
        if x is None:
            return False
        flat = cnp.PyArray_Ravel(x, cnp.NPY_CORDER)
        n = cnp.PyArray_SIZE(flat)
        if self._index or self._inverse:
            kind = cnp.NPY_MERGESORT if self._index else cnp.NPY_QUICKSORT
            order = cnp.PyArray_ArgSort(flat, 0, <cnp.NPY_SORTKIND>kind)
            if cnp.PyArray_TYPE(order) != cnp.NPY_INT64:
                return False
            flat = flat.take(order)
        else:
            flat = cnp.PyArray_NewCopy(flat, cnp.NPY_CORDER)
            cnp.PyArray_Sort(flat, 0, cnp.NPY_QUICKSORT)
        length = n + 1
        starts = cnp.PyArray_EMPTY(1, &length, cnp.NPY_INT64, 0)
        count = list_runs(
            kind_of(flat), cnp.PyArray_ITEMSIZE(flat), n, cnp.PyArray_BYTES(flat),
            <int64_t *>cnp.PyArray_DATA(starts)
        )
        if count < 0:
            return False
        starts = starts[: count + 1]
        z = flat.take(starts[:count])
        kind = cnp.PyArray_TYPE(<cnp.ndarray>store[self._slots[0]])
        if cnp.PyArray_TYPE(z) != kind:
            z = cnp.PyArray_Cast(z, kind)
        put(store, self._outputs[0], z)
        if self._index:
            put(store, self._outputs[at], order.take(starts[:count]))
            at += 1
        if self._inverse:
            put(store, self._outputs[at], numbered(x, order, starts, count))
            at += 1
        if self._counts:
            put(store, self._outputs[at], starts[1:] - starts[:count])
        return True


cdef cnp.ndarray numbered(cnp.ndarray x, cnp.ndarray order, cnp.ndarray starts, int64_t count):
    """For each element of x the number of its run, ``order`` being what sorts x."""
    cdef cnp.ndarray z = cnp.PyArray_EMPTY(
        cnp.PyArray_NDIM(x), cnp.PyArray_DIMS(x), cnp.NPY_INT64, 0
    )
    cdef int64_t *number = <int64_t *>cnp.PyArray_DATA(z)
    cdef int64_t *place = <int64_t *>cnp.PyArray_DATA(order)
    cdef int64_t *start = <int64_t *>cnp.PyArray_DATA(starts)
    cdef int64_t i, k
    for k in range(count):
        for i in range(start[k], start[k + 1]):
            number[place[i]] = k
    return z
