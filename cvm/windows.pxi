# Convolution and pooling of planes: windows laid out as columns of matrices, some images at a time,
# and products by BLAS.

cdef extern from "windows.h":
    ctypedef struct Windows:
        int64_t channels
        int64_t lengths[2]
        int64_t kernel[2]
        int64_t counts[2]
        int64_t before[2]
        int64_t strides[2]
        int64_t dilation[2]
    void unfold_64(const Windows *, const double *, double *, int64_t) noexcept nogil
    void unfold_32(const Windows *, const float *, float *, int64_t) noexcept nogil
    void fold_64(const Windows *, double *, const double *, int64_t) noexcept nogil
    void fold_32(const Windows *, float *, const float *, int64_t) noexcept nogil
    void largest_64(const Windows *, const double *, double *, int64_t *) noexcept nogil
    void largest_32(const Windows *, const float *, float *, int64_t *) noexcept nogil
    int to_positions_64(
        const double *, const int64_t *, int64_t, double *, int64_t
    ) noexcept nogil
    int to_positions_32(const float *, const int64_t *, int64_t, float *, int64_t) noexcept nogil

cdef enum:
    # The columns of the matrices of windows: few images of many windows, or many of few.
    COLUMNS_AT_A_TIME = 256
    FULL_OVERLAP = -1
    HALF = -2

cdef enum Part_of_form:
    RESULT = 0
    INPUTS = 1
    KERNELS = 2


cdef cnp.ndarray in_order(PyObject *value, int kind, int ndim):
    """A value as an array in C order; None if it is none of this type and rank."""
    cdef cnp.ndarray array
    if not cnp.PyArray_Check(<object>value):
        return None
    array = <cnp.ndarray>value
    if cnp.PyArray_TYPE(array) != kind or cnp.PyArray_NDIM(array) != ndim:
        return None
    if cnp.PyArray_IS_C_CONTIGUOUS(array) and cnp.PyArray_ISBEHAVED_RO(array):
        return array
    return cnp.PyArray_NewCopy(array, cnp.NPY_CORDER)


cdef bint read_lengths(PyObject **store, int *slots, int count, int64_t *found):
    """Whole numbers; False if they are none, or negative."""
    cdef Bound bound
    cdef Py_ssize_t n = 0
    cdef int i
    for i in range(count):
        bound.slot = slots[i]
        if not whole_number(store, &bound, &n) or n < 0:
            return False
        found[i] = n
    return True


cdef class Convolution(Action):
    """A convolution of images with one or two spatial axes, or one of its adjoints.

    Parameters
    ----------
    part : {0, 1, 2}
        What is computed: the result, from images and kernels; images, from kernels and the
        gradient of the result; or kernels, from images and that gradient.
    compute : callable
        Does the same in Python; it is called for what does not fit, and says what is wrong.
    arguments : sequence of int
        Slots: of the two arrays, and of the spatial lengths of what is asked for.
    output : int
    padding : sequence of (int, int)
        For each spatial axis zeros before and after; -1: all windows that meet the image; -2: half
        a window.
    strides, dilation : sequence of int
    groups : int
    dtype : numpy.dtype
        float32 or float64.
    """

    cdef object _compute
    cdef int *_arguments
    cdef int _n_arguments, _output, _part, _ndim, _groups, _type
    cdef int _padding[4]
    cdef int _strides[2]
    cdef int _dilation[2]

    def __cinit__(
        self, int part, compute, arguments, int output, padding, strides, dilation, int groups,
        dtype
    ):
        cdef int axis
        find_routines()
        self._part, self._compute, self._output, self._groups = part, compute, output, groups
        self._n_arguments = len(arguments)
        self._arguments = numbers(arguments)
        self._ndim, self._type = len(strides), np.dtype(dtype).num
        for axis in range(self._ndim):
            self._padding[2 * axis], self._padding[2 * axis + 1] = padding[axis]
            self._strides[axis], self._dilation[axis] = strides[axis], dilation[axis]

    def __dealloc__(self):
        PyMem_Free(self._arguments)

    cdef int run(self, PyObject **store) except -1:
        if not self._try(store):
            values = values_of(store, self._arguments, self._n_arguments)
            put(store, self._output, call_with(self._compute, values))
        return 0

    cdef bint _try(self, PyObject **store) except -1:
        cdef cnp.npy_intp shape[4]
        cdef int64_t asked[2]
        cdef int axis, ndim = self._ndim + 2
        cdef int64_t outputs, images
        cdef Windows w
        cdef cnp.ndarray z
        cdef cnp.ndarray a = in_order(store[self._arguments[0]], self._type, ndim)
        cdef cnp.ndarray b = in_order(store[self._arguments[1]], self._type, ndim)
        if a is None or b is None:
            return False
        if self._part != RESULT:
            if not read_lengths(store, self._arguments + 2, self._ndim, asked):
                return False
        # Which of the arrays say what: images and channels, kernels, spatial lengths.
        images = cnp.PyArray_DIM(b if self._part == INPUTS else a, 0)
        outputs = cnp.PyArray_DIM(b, 0) if self._part == RESULT else cnp.PyArray_DIM(b, 1)
        w.channels = cnp.PyArray_DIM(a, 1) * (self._groups if self._part == INPUTS else 1)
        for axis in range(2):
            if not self._measure(a, b, asked, axis, &w):
                return False
        if w.channels % self._groups or outputs % self._groups or images == 0:
            return False
        if not self._fits(a, b, &w, images, outputs):
            return False
        shape[0] = outputs if self._part == KERNELS else images
        shape[1] = outputs if self._part == RESULT else w.channels
        if self._part == KERNELS:
            shape[1] = w.channels // self._groups
        for axis in range(self._ndim):
            if self._part == RESULT:
                shape[2 + axis] = w.counts[axis + 2 - self._ndim]
            else:
                shape[2 + axis] = asked[axis]
        z = cnp.PyArray_ZEROS(ndim, shape, self._type, 0)
        if not self._compute_all(
            &w, images, outputs, cnp.PyArray_BYTES(a), cnp.PyArray_BYTES(b), cnp.PyArray_BYTES(z)
        ):
            raise MemoryError("no memory for the windows of a convolution")
        put(store, self._output, z)
        return True

    cdef bint _measure(self, cnp.ndarray a, cnp.ndarray b, int64_t *asked, int axis, Windows *w):
        """The lengths along an axis of a plane; a line is a plane of one row."""
        cdef int own = axis - (2 - self._ndim)
        cdef int64_t reach, before, after
        if own < 0:
            w.lengths[axis] = w.kernel[axis] = w.counts[axis] = w.strides[axis] = 1
            w.dilation[axis], w.before[axis] = 1, 0
            return True
        w.lengths[axis] = asked[own] if self._part == INPUTS else cnp.PyArray_DIM(a, 2 + own)
        if self._part == RESULT:
            w.kernel[axis] = cnp.PyArray_DIM(b, 2 + own)
        elif self._part == INPUTS:
            w.kernel[axis] = cnp.PyArray_DIM(a, 2 + own)
        else:
            w.kernel[axis] = asked[own]
        w.strides[axis], w.dilation[axis] = self._strides[own], self._dilation[own]
        reach = (w.kernel[axis] - 1) * w.dilation[axis] + 1
        before, after = self._padding[2 * own], self._padding[2 * own + 1]
        if before == FULL_OVERLAP:
            before = after = reach - 1
        elif before == HALF:
            before = after = reach // 2
        w.before[axis] = before
        if w.kernel[axis] < 1 or w.lengths[axis] + before + after < reach:
            return False
        w.counts[axis] = (w.lengths[axis] + before + after - reach) // w.strides[axis] + 1
        return True

    cdef bint _fits(
        self, cnp.ndarray a, cnp.ndarray b, Windows *w, int64_t images, int64_t outputs
    ):
        """Whether the second array has the lengths that it must have, and products are not too
        large for BLAS.
        """
        cdef int axis
        cdef int64_t inner = w.channels // self._groups * w.kernel[0] * w.kernel[1]
        if self._part == RESULT:
            if cnp.PyArray_DIM(b, 1) * self._groups != w.channels:
                return False
        else:
            if cnp.PyArray_DIM(b, 0) != images:
                return False
            if self._part == INPUTS and cnp.PyArray_DIM(a, 0) != outputs:
                return False
            for axis in range(self._ndim):
                if cnp.PyArray_DIM(b, 2 + axis) != w.counts[axis + 2 - self._ndim]:
                    return False
        return max(inner, outputs, w.counts[0] * w.counts[1] + COLUMNS_AT_A_TIME) < 2147483647

    cdef bint _compute_all(
        self, Windows *w, int64_t images, int64_t outputs, char *a, char *b, char *z
    ) noexcept:
        """All images; False if there is no memory."""
        cdef int itemsize = 4 if self._type == cnp.NPY_FLOAT32 else 8
        cdef int64_t places = w.counts[0] * w.counts[1]
        cdef int64_t rows = w.channels * w.kernel[0] * w.kernel[1]
        cdef int64_t together = max(1, min(images, COLUMNS_AT_A_TIME // places))
        cdef int64_t first = 0
        cdef char *columns = <char *>PyMem_RawMalloc(rows * places * together * itemsize)
        cdef char *results = <char *>PyMem_RawMalloc(outputs * places * together * itemsize)
        if columns == NULL or results == NULL:
            PyMem_RawFree(columns)
            PyMem_RawFree(results)
            return False
        with nogil:
            while first < images:
                self._some(
                    w, first, min(together, images - first), outputs, a, b, z, columns, results
                )
                first += together
        PyMem_RawFree(columns)
        PyMem_RawFree(results)
        return True

    cdef void _some(
        self, Windows *w, int64_t first, int64_t count, int64_t outputs, char *a, char *b, char *z,
        char *columns, char *results
    ) noexcept nogil:
        """Some images, whose windows are laid out side by side."""
        cdef int itemsize = 4 if self._type == cnp.NPY_FLOAT32 else 8
        cdef int64_t places = w.counts[0] * w.counts[1], wide = places * count
        cdef int64_t inner = w.channels // self._groups * w.kernel[0] * w.kernel[1]
        cdef int64_t each = outputs // self._groups
        cdef int64_t size = w.channels * w.lengths[0] * w.lengths[1] * itemsize
        cdef int64_t result_size = outputs * places * itemsize
        cdef int64_t i, g
        cdef Matrix kernels, windows, gradient
        if self._part != INPUTS:
            for i in range(count):
                self._unfold(w, a + (first + i) * size, columns + i * places * itemsize, wide)
        # The results of one image lie as they should; those of several are exchanged.
        if count == 1:
            results = (z if self._part == RESULT else b) + first * result_size
        elif self._part != RESULT:
            side_by_side(results, b + first * result_size, outputs, count, places * itemsize, True)
        for g in range(self._groups):
            set_matrix(&windows, columns + g * inner * wide * itemsize, inner, wide)
            set_matrix(&gradient, results + g * each * wide * itemsize, each, wide)
            if self._part == RESULT:
                set_matrix(&kernels, b + g * each * inner * itemsize, each, inner)
                multiply(self._type, &kernels, &windows, gradient.data, 1.0, 0.0)
            elif self._part == INPUTS:
                # The transpose of the kernels: inner rows.
                set_matrix(&kernels, a + g * each * inner * itemsize, each, inner)
                kernels.rows, kernels.columns = <int>inner, <int>each
                kernels.transposed = True
                multiply(self._type, &kernels, &gradient, windows.data, 1.0, 0.0)
            else:
                windows.rows, windows.columns = <int>wide, <int>inner
                windows.transposed = True
                multiply(
                    self._type, &gradient, &windows, z + g * each * inner * itemsize, 1.0, 1.0
                )
        if self._part == RESULT and count > 1:
            side_by_side(results, z + first * result_size, outputs, count, places * itemsize, False)
        elif self._part == INPUTS:
            for i in range(count):
                self._fold(w, z + (first + i) * size, columns + i * places * itemsize, wide)

    cdef void _unfold(
        self, Windows *w, char *image, char *columns, int64_t next
    ) noexcept nogil:
        if self._type == cnp.NPY_FLOAT32:
            unfold_32(w, <float *>image, <float *>columns, next)
        else:
            unfold_64(w, <double *>image, <double *>columns, next)

    cdef void _fold(self, Windows *w, char *image, char *columns, int64_t next) noexcept nogil:
        if self._type == cnp.NPY_FLOAT32:
            fold_32(w, <float *>image, <float *>columns, next)
        else:
            fold_64(w, <double *>image, <double *>columns, next)


cdef void side_by_side(
    char *rows, char *images, int64_t outputs, int64_t count, int64_t size, bint there
) noexcept nogil:
    """From images, each of so many outputs of ``size`` bytes, to rows of one output of all images;
    or back.
    """
    cdef int64_t o, i
    for o in range(outputs):
        for i in range(count):
            if there:
                memcpy(rows + (o * count + i) * size, images + (i * outputs + o) * size, size)
            else:
                memcpy(images + (i * outputs + o) * size, rows + (o * count + i) * size, size)


cdef void set_matrix(Matrix *m, char *data, int64_t rows, int64_t columns) noexcept nogil:
    """A matrix in C order."""
    m.data, m.rows, m.columns, m.ld = data, <int>rows, <int>columns, <int>columns
    m.transposed = False


cdef class Largest(Action):
    """The largest of each window of planes, and where it is.

    Parameters
    ----------
    compute : callable
        Does the same in Python.
    input : int
        Slot.
    outputs : (int, int)
    ndim : int
        Of the input, whose last two axes are those of planes.
    window, strides, padding : sequence of 2 int
    partial : bool
        Whether there is one more window, where elements are left.
    dtype : numpy.dtype
    """

    cdef object _compute
    cdef int _input, _largest, _where, _ndim, _type
    cdef int _window[2]
    cdef int _strides[2]
    cdef int _padding[2]
    cdef bint _partial

    def __cinit__(
        self, compute, int input, outputs, int ndim, window, strides, padding, bint partial, dtype
    ):
        cdef int axis
        self._compute, self._input, self._ndim, self._partial = compute, input, ndim, partial
        self._largest, self._where = outputs
        self._type = np.dtype(dtype).num
        for axis in range(2):
            self._window[axis], self._strides[axis] = window[axis], strides[axis]
            self._padding[axis] = padding[axis]

    cdef int run(self, PyObject **store) except -1:
        if not self._try(store):
            before_python()
            largest, where = call_with(self._compute, [<object>store[self._input]])
            put(store, self._largest, largest)
            put(store, self._where, where)
        return 0

    cdef bint _try(self, PyObject **store) except -1:
        cdef cnp.npy_intp shape[MOST_AXES]
        cdef int64_t planes = 1
        cdef int axis
        cdef Windows w
        cdef cnp.ndarray largest, where
        cdef cnp.ndarray x = in_order(store[self._input], self._type, self._ndim)
        if x is None:
            return False
        for axis in range(self._ndim - 2):
            shape[axis] = cnp.PyArray_DIM(x, axis)
            planes *= shape[axis]
        for axis in range(2):
            w.lengths[axis] = cnp.PyArray_DIM(x, self._ndim - 2 + axis)
            w.kernel[axis], w.strides[axis] = self._window[axis], self._strides[axis]
            w.before[axis], w.dilation[axis] = self._padding[axis], 1
            w.counts[axis] = self._count(axis, w.lengths[axis])
            if w.counts[axis] < 1 or w.lengths[axis] < 1:
                return False
            shape[self._ndim - 2 + axis] = w.counts[axis]
        largest = cnp.PyArray_EMPTY(self._ndim, shape, self._type, 0)
        where = cnp.PyArray_EMPTY(self._ndim, shape, cnp.NPY_INT64, 0)
        with nogil:
            self._planes(
                &w, planes, cnp.PyArray_BYTES(x), cnp.PyArray_BYTES(largest),
                <int64_t *>cnp.PyArray_DATA(where)
            )
        put(store, self._largest, largest)
        put(store, self._where, where)
        return True

    cdef int64_t _count(self, int axis, int64_t n) noexcept:
        """How many windows there are along an axis."""
        cdef int64_t k = self._window[axis], s = self._strides[axis]
        if not self._partial:
            n += 2 * self._padding[axis] - k
            return n // s + 1 if n >= 0 else 0
        if s >= k:
            return (n - 1) // s + 1
        return max(0, (n - 1 - k + s) // s) + 1

    cdef void _planes(
        self, Windows *w, int64_t planes, char *x, char *largest, int64_t *where
    ) noexcept nogil:
        cdef int64_t i, size = w.lengths[0] * w.lengths[1], count = w.counts[0] * w.counts[1]
        for i in range(planes):
            if self._type == cnp.NPY_FLOAT32:
                largest_32(w, <float *>x + i * size, <float *>largest + i * count, where)
            else:
                largest_64(w, <double *>x + i * size, <double *>largest + i * count, where)
            where += count


cdef class Placing(Action):
    """Numbers added at positions of planes, which are 0 elsewhere.

    Parameters
    ----------
    compute : callable
        Does the same in Python.
    arguments : sequence of int
        Slots of the numbers, of the positions, and of the lengths of the planes.
    output : int
    ndim, spatial : int
        The axes of the numbers, and how many of them are those of planes.
    dtype : numpy.dtype
    """

    cdef object _compute
    cdef int *_arguments
    cdef int _n_arguments, _output, _ndim, _spatial, _type

    def __cinit__(self, compute, arguments, int output, int ndim, int spatial, dtype):
        self._compute, self._output = compute, output
        self._n_arguments = len(arguments)
        self._arguments = numbers(arguments)
        self._ndim, self._spatial, self._type = ndim, spatial, np.dtype(dtype).num

    def __dealloc__(self):
        PyMem_Free(self._arguments)

    cdef int run(self, PyObject **store) except -1:
        if not self._try(store):
            values = values_of(store, self._arguments, self._n_arguments)
            put(store, self._output, call_with(self._compute, values))
        return 0

    cdef bint _try(self, PyObject **store) except -1:
        cdef cnp.npy_intp shape[MOST_AXES]
        cdef int64_t asked[MOST_AXES]
        cdef int64_t planes = 1, size = 1, count = 1, i
        cdef int axis, failed = 0, lead = self._ndim - self._spatial
        cdef cnp.ndarray g, where, x
        if self._ndim > MOST_AXES:
            return False
        g = in_order(store[self._arguments[0]], self._type, self._ndim)
        where = in_order(store[self._arguments[1]], cnp.NPY_INT64, self._ndim)
        if g is None or where is None:
            return False
        if not read_lengths(store, self._arguments + 2, self._spatial, asked):
            return False
        for axis in range(self._ndim):
            if cnp.PyArray_DIM(g, axis) != cnp.PyArray_DIM(where, axis):
                return False
            if axis < lead:
                shape[axis] = cnp.PyArray_DIM(g, axis)
                planes *= shape[axis]
            else:
                shape[axis] = asked[axis - lead]
                size *= shape[axis]
                count *= cnp.PyArray_DIM(g, axis)
        x = cnp.PyArray_EMPTY(self._ndim, shape, self._type, 0)
        with nogil:
            for i in range(planes):
                failed |= self._plane(
                    cnp.PyArray_BYTES(g), <int64_t *>cnp.PyArray_DATA(where) + i * count, i, count,
                    cnp.PyArray_BYTES(x), size
                )
        if failed:
            return False
        put(store, self._output, x)
        return True

    cdef int _plane(
        self, char *g, int64_t *where, int64_t i, int64_t count, char *x, int64_t size
    ) noexcept nogil:
        if self._type == cnp.NPY_FLOAT32:
            return to_positions_32(<float *>g + i * count, where, count, <float *>x + i * size, size)
        return to_positions_64(<double *>g + i * count, where, count, <double *>x + i * size, size)
