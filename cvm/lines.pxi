# What goes along an axis: running sums, recurrences, positions of the largest, sorting, ranges.

cdef extern from "lines.h" nogil:
    enum:
        SUMS
        PRODUCTS
        RECURRENCE
        LARGEST
        SMALLEST

    ctypedef void line_function(
        int64_t n, int64_t m, const char *x, int64_t x_step, int64_t x_line, const char *second,
        int64_t second_step, int64_t second_line, char *out, int64_t out_step, int64_t out_line
    ) noexcept

    line_function *function_of_lines(int what, char kind, int64_t size)
    bint fill_range(
        char kind, int64_t size, int64_t n, const char *start, const char *step, char *z
    )


cdef struct Lines:
    # Lines along an axis: n elements each, and the axes across, the closest in memory the last.
    int64_t n, x_step, second_step, out_step
    int rank
    int64_t lengths[MOST_AXES]
    int64_t x[MOST_AXES]
    int64_t second[MOST_AXES]
    int64_t out[MOST_AXES]


cdef void add_line_axis(
    Lines *lines, int64_t length, int64_t x, int64_t second, int64_t out
) noexcept:
    """One more axis across, in the order of the steps of x."""
    cdef int place = lines.rank
    if length == 1:
        return
    while place and abs(lines.x[place - 1]) < abs(x):
        lines.lengths[place] = lines.lengths[place - 1]
        lines.x[place] = lines.x[place - 1]
        lines.second[place] = lines.second[place - 1]
        lines.out[place] = lines.out[place - 1]
        place -= 1
    lines.lengths[place], lines.x[place] = length, x
    lines.second[place], lines.out[place] = second, out
    lines.rank += 1


cdef void run_lines(
    line_function *function, Lines *lines, char *x, char *second, char *out
) noexcept nogil:
    cdef int64_t index[MOST_AXES]
    cdef int axis, inner = lines.rank - 1
    cdef int64_t m = lines.lengths[inner] if inner >= 0 else 1
    for axis in range(lines.rank):
        if lines.lengths[axis] == 0:
            return
        index[axis] = 0
    if inner < 0:
        inner = 0
        lines.x[0] = lines.second[0] = lines.out[0] = 0
    while True:
        function(
            lines.n, m, x, lines.x_step, lines.x[inner], second, lines.second_step,
            lines.second[inner], out, lines.out_step, lines.out[inner]
        )
        axis = inner - 1
        while axis >= 0:
            x += lines.x[axis]
            second += lines.second[axis]
            out += lines.out[axis]
            index[axis] += 1
            if index[axis] < lines.lengths[axis]:
                break
            x -= lines.x[axis] * lines.lengths[axis]
            second -= lines.second[axis] * lines.lengths[axis]
            out -= lines.out[axis] * lines.lengths[axis]
            index[axis] = 0
            axis -= 1
        if axis < 0:
            return


cdef void do_lines(
    line_function *function, Lines *lines, cnp.ndarray x, cnp.ndarray second, cnp.ndarray z
) noexcept:
    cdef char *from_x = cnp.PyArray_BYTES(x)
    cdef char *from_second = cnp.PyArray_BYTES(second)
    cdef char *to = cnp.PyArray_BYTES(z)
    if cnp.PyArray_SIZE(x) < WORTH_RELEASING:
        run_lines(function, lines, from_x, from_second, to)
    else:
        with nogil:
            run_lines(function, lines, from_x, from_second, to)


cdef class Running(Native):
    """Running sums ("add") or products ("mul") along ``axis``; or a "recurrence" of rates and a
    drive, the arguments.

    Parameters
    ----------
    compute, arguments, outputs, several
        As of ``Native``.
    what : {"add", "mul", "recurrence"}
    axis : int
    dtype : numpy.dtype
        Of the result.
    """

    cdef int _axis, _type
    cdef int _what

    def __cinit__(self, compute, arguments, outputs, several, what, int axis, dtype):
        self._what = {"add": SUMS, "mul": PRODUCTS, "recurrence": RECURRENCE}[what]
        self._axis, self._type = axis_of(axis), np.dtype(dtype).num
        checked(self._n_arguments, 1 + (self._what == RECURRENCE), MOST_ARRAYS, "arguments")

    cdef bint _try(self, PyObject **store) except -1:
        cdef Lines lines
        cdef int axis
        cdef line_function *function
        cdef cnp.ndarray z, x = plain(store[self._slots[self._n_arguments - 1]])
        cdef cnp.ndarray second = plain(store[self._slots[0]])
        if x is None or second is None or self._axis >= cnp.PyArray_NDIM(x):
            return False
        if not same_lengths(x, second) or cnp.PyArray_TYPE(x) != cnp.PyArray_TYPE(second):
            return False
        function = function_of_lines(
            self._what, kind_of(x), cnp.PyArray_ITEMSIZE(x)
        )
        if function == NULL:
            return False
        z = cnp.PyArray_EMPTY(cnp.PyArray_NDIM(x), cnp.PyArray_DIMS(x), self._type, 0)
        lines.rank = 0
        for axis in range(cnp.PyArray_NDIM(x)):
            if axis == self._axis:
                lines.n, lines.x_step = cnp.PyArray_DIM(x, axis), cnp.PyArray_STRIDE(x, axis)
                lines.second_step = cnp.PyArray_STRIDE(second, axis)
                lines.out_step = cnp.PyArray_STRIDE(z, axis)
            else:
                add_line_axis(
                    &lines, cnp.PyArray_DIM(x, axis), cnp.PyArray_STRIDE(x, axis),
                    cnp.PyArray_STRIDE(second, axis), cnp.PyArray_STRIDE(z, axis)
                )
        do_lines(function, &lines, x, second, z)
        put(store, self._outputs[0], z)
        return True


cdef class Extreme(Native):
    """The position of the first largest element, or the smallest, counted through ``axes``."""

    cdef unsigned int _axes
    cdef int _what

    def __cinit__(self, compute, arguments, outputs, several, bint largest, axes):
        self._what = LARGEST if largest else SMALLEST
        for axis in axes:
            self._axes |= 1 << axis_of(axis)

    cdef bint _try(self, PyObject **store) except -1:
        cdef Lines lines
        cdef cnp.npy_intp lengths[MOST_AXES]
        cdef int axis, ndim = 0
        cdef line_function *function
        cdef cnp.ndarray z, x = readable(store[self._slots[0]])
        if x is None:
            return False
        function = function_of_lines(
            self._what, kind_of(x), cnp.PyArray_ITEMSIZE(x)
        )
        if function == NULL:
            return False
        x = self._with_one_axis(x, &lines)
        if x is None or lines.n == 0:
            return False
        for axis in range(cnp.PyArray_NDIM(x)):
            if not self._axes >> axis & 1:
                lengths[ndim] = cnp.PyArray_DIM(x, axis)
                ndim += 1
        z = cnp.PyArray_EMPTY(ndim, lengths, cnp.NPY_INT64, 0)
        ndim = 0
        for axis in range(cnp.PyArray_NDIM(x)):
            if not self._axes >> axis & 1:
                add_line_axis(
                    &lines, cnp.PyArray_DIM(x, axis), cnp.PyArray_STRIDE(x, axis), 0,
                    cnp.PyArray_STRIDE(z, ndim)
                )
                ndim += 1
        do_lines(function, &lines, x, x, z)
        put(store, self._outputs[0], z)
        return True

    cdef cnp.ndarray _with_one_axis(self, cnp.ndarray x, Lines *lines):
        """x, or a copy of it, in which the axes to count through are like one; its length and step
        in ``lines``.
        """
        if not self._join(x, lines):
            # In row-major order with these axes last, which is like one.
            kept = [a for a in range(x.ndim) if not self._axes >> a & 1]
            order = [*kept, *(a for a in range(x.ndim) if self._axes >> a & 1)]
            x = x.transpose(order).copy().transpose([order.index(a) for a in range(x.ndim)])
            if not self._join(x, lines):
                return None
        return x

    cdef bint _join(self, cnp.ndarray x, Lines *lines) noexcept:
        cdef int axis
        lines.n, lines.x_step, lines.rank = 1, 0, 0
        lines.second_step = lines.out_step = 0
        for axis in range(cnp.PyArray_NDIM(x) - 1, -1, -1):
            if not self._axes >> axis & 1 or cnp.PyArray_DIM(x, axis) == 1:
                continue
            if lines.n == 1:
                lines.x_step = cnp.PyArray_STRIDE(x, axis)
            elif cnp.PyArray_STRIDE(x, axis) != lines.n * lines.x_step:
                return False
            lines.n *= cnp.PyArray_DIM(x, axis)
        return True


cdef class Sorted(Native):
    """x in order along ``axis``, or with ``positions`` the positions that sort it, by NumPy."""

    cdef int _axis
    cdef bint _positions

    def __cinit__(self, compute, arguments, outputs, several, int axis, bint positions):
        self._axis, self._positions = axis_of(axis), positions

    cdef bint _try(self, PyObject **store) except -1:
        cdef cnp.ndarray x = plain(store[self._slots[0]])
        if x is None or self._axis >= cnp.PyArray_NDIM(x):
            return False
        if self._positions:
            z = cnp.PyArray_ArgSort(x, self._axis, cnp.NPY_MERGESORT)
            if cnp.PyArray_TYPE(<cnp.ndarray>z) != cnp.NPY_INT64:
                return False
        else:
            z = cnp.PyArray_NewCopy(x, cnp.NPY_CORDER)
            cnp.PyArray_Sort(z, self._axis, cnp.NPY_QUICKSORT)
        put(store, self._outputs[0], z)
        return True


cdef class Range(Native):
    """start + i step for i < n: the arguments are start, step and n."""

    cdef int _type

    def __cinit__(self, compute, arguments, outputs, several, dtype):
        self._type = np.dtype(dtype).num

    cdef bint _try(self, PyObject **store) except -1:
        cdef Bound bound
        cdef Py_ssize_t n
        cdef cnp.npy_intp length
        cdef cnp.ndarray z, start = plain(store[self._slots[0]])
        cdef cnp.ndarray step = plain(store[self._slots[1]])
        bound.slot = self._slots[2]
        if start is None or step is None or not whole_number(store, &bound, &n):
            return False
        if cnp.PyArray_TYPE(start) != self._type or cnp.PyArray_TYPE(step) != self._type:
            return False
        length = max(n, 0)
        z = cnp.PyArray_EMPTY(1, &length, self._type, 0)
        if not fill_range(
            kind_of(z), cnp.PyArray_ITEMSIZE(z), length,
            cnp.PyArray_BYTES(start), cnp.PyArray_BYTES(step), cnp.PyArray_BYTES(z)
        ):
            return False
        put(store, self._outputs[0], z)
        return True


cdef class Nonzeros(Native):
    """The positions of the elements that are not 0, one array for each axis."""

    cdef bint _try(self, PyObject **store) except -1:
        cdef int axis
        cdef cnp.ndarray x = plain(store[self._slots[0]])
        if x is None or cnp.PyArray_NDIM(x) != self._n_outputs:
            return False
        found = cnp.PyArray_Nonzero(x)
        for axis in range(self._n_outputs):
            if cnp.PyArray_TYPE(<cnp.ndarray>found[axis]) != cnp.NPY_INT64:
                return False
        for axis in range(self._n_outputs):
            # Several may be views of one array, as NumPy makes them.
            put(store, self._outputs[axis], found[axis])
        return True


cdef class Searched(Native):
    """Where the second argument would go in the first, a sorted vector."""

    cdef bint _right

    def __cinit__(self, compute, arguments, outputs, several, bint right):
        self._right = right

    cdef bint _try(self, PyObject **store) except -1:
        cdef cnp.ndarray x = plain(store[self._slots[0]]), v = plain(store[self._slots[1]])
        if x is None or v is None or cnp.PyArray_NDIM(x) != 1:
            return False
        z = cnp.PyArray_SearchSorted(
            x, v, cnp.NPY_SEARCHRIGHT if self._right else cnp.NPY_SEARCHLEFT, NULL
        )
        if not cnp.PyArray_Check(z) or cnp.PyArray_TYPE(<cnp.ndarray>z) != cnp.NPY_INT64:
            return False
        put(store, self._outputs[0], z)
        return True
