# Convolution and pooling of images with up to three spatial axes: windows laid out as columns of
# matrices, some images at a time, and products by BLAS. Threads share images, the results being
# those of one thread, bit for bit.

cdef extern from "windows.h":
    const int SPATIAL
    ctypedef struct Windows:
        int64_t channels
        int64_t lengths[3]
        int64_t kernel[3]
        int64_t counts[3]
        int64_t before[3]
        int64_t strides[3]
        int64_t dilation[3]
    int64_t product(const int64_t *) noexcept nogil
    void unfold_64(const Windows *, const double *, double *, int64_t) noexcept nogil
    void unfold_32(const Windows *, const float *, float *, int64_t) noexcept nogil
    void fold_64(const Windows *, double *, const double *, int64_t) noexcept nogil
    void fold_32(const Windows *, float *, const float *, int64_t) noexcept nogil

cdef extern from "share.h":
    const int MOST_THREADS
    ctypedef void (*Part)(void *work, int64_t part, int worker) noexcept nogil
    void share(Part part, void *work, int64_t parts, int threads) noexcept nogil

cdef enum:
    # The columns of the matrices of windows: few images of many windows, or many of few.
    COLUMNS_AT_A_TIME = 256
    # Gradients of kernels are sums over images: of so many sums, if they are not larger than that,
    # whoever computes them.
    MOST_SUMS = 8
    MOST_BYTES_OF_SUMS = 1 << 22
    # Threads cost more than they bring where there are fewer products of two numbers.
    PRODUCTS_WORTH_SHARING = 1 << 21
    # Of lengths, strides, dilations and paddings: products of two of them fit an int64.
    LARGEST_OF_WINDOWS = 2147483647
    FULL_OVERLAP = -1
    HALF = -2

# Elements of the matrices of windows; their bytes fit an int64.
cdef double LARGEST_SIZE = 1e17

cdef enum Part_of_form:
    RESULT = 0
    INPUTS = 1
    KERNELS = 2


cdef cnp.ndarray in_order(PyObject *value, int kind, int ndim):
    """A value as an array in C order; None if it is none of this type and rank."""
    cdef cnp.ndarray array, z
    if not cnp.PyArray_Check(<object>value):
        return None
    array = <cnp.ndarray>value
    if cnp.PyArray_TYPE(array) != kind or cnp.PyArray_NDIM(array) != ndim:
        return None
    if cnp.PyArray_IS_C_CONTIGUOUS(array) and cnp.PyArray_ISBEHAVED_RO(array):
        return array
    # Not a copy as NumPy makes it, in which bytes would stay in the other order.
    z = cnp.PyArray_EMPTY(ndim, cnp.PyArray_DIMS(array), kind, 0)
    cnp.PyArray_CopyInto(z, array)
    return z


cdef bint read_lengths(PyObject **store, int *slots, int count, int64_t *found):
    """Whole numbers; False if they are none, negative or too large."""
    cdef Bound bound
    cdef Py_ssize_t n = 0
    cdef int i
    for i in range(count):
        bound.slot = slots[i]
        if not whole_number(store, &bound, &n) or not 0 <= n <= LARGEST_OF_WINDOWS:
            return False
        found[i] = n
    return True


cdef struct Convolving:
    # One convolution, or adjoint of one: what the threads that share it are told.
    Windows windows
    int part, groups, type, itemsize
    int64_t images, outputs
    int64_t together        # images whose windows are laid out side by side
    int64_t blocks          # of so many images
    int64_t chunks          # of blocks: parts that threads share
    char *a
    char *b
    char *z
    char *columns           # of each thread
    char *results
    char *sums              # of all chunks but the first
    int64_t size_of_columns, size_of_results, size_of_sum


cdef class Convolution(Action):
    """A convolution of images with one, two or three spatial axes, or one of its adjoints.

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
    threads : int
        How many share large ones.
    alone : context manager
        Within it, BLAS uses one thread.
    """

    cdef object _compute, _alone
    cdef int *_arguments
    cdef int _n_arguments, _output, _part, _ndim, _groups, _type, _threads
    cdef int _padding[6]
    cdef int _strides[3]
    cdef int _dilation[3]

    def __cinit__(
        self, int part, compute, arguments, int output, padding, strides, dilation, int groups,
        dtype, int threads, alone
    ):
        cdef int axis, before, after
        find_routines()
        self._part = checked(part, RESULT, KERNELS, "the part")
        self._compute, self._output = compute, output
        self._groups = checked(groups, 1, LARGEST_OF_WINDOWS, "the number of groups")
        self._ndim = checked(len(strides), 1, SPATIAL, "the number of spatial axes")
        if not len(padding) == len(strides) == len(dilation):
            raise ValueError(f"padding {padding}, strides {strides}, dilation {dilation}")
        self._n_arguments = len(arguments)
        if self._n_arguments != 2 + (0 if part == RESULT else self._ndim):
            raise ValueError(f"{self._n_arguments} arguments for {self._ndim} spatial axes")
        self._arguments = numbers(arguments)
        self._type = np.dtype(dtype).num
        self._threads, self._alone = min(threads, MOST_THREADS), alone
        for axis in range(self._ndim):
            before, after = padding[axis]
            if before != after:
                checked(min(before, after), 0, LARGEST_OF_WINDOWS, "the padding")
            self._padding[2 * axis] = checked(before, HALF, LARGEST_OF_WINDOWS, "the padding")
            self._padding[2 * axis + 1] = after
            self._strides[axis] = checked(strides[axis], 1, LARGEST_OF_WINDOWS, "a stride")
            self._dilation[axis] = checked(dilation[axis], 1, LARGEST_OF_WINDOWS, "a dilation")

    def __dealloc__(self):
        PyMem_Free(self._arguments)

    cdef int run(self, PyObject **store) except -1:
        if not self._try(store):
            values = values_of(store, self._arguments, self._n_arguments)
            put(store, self._output, call_with(self._compute, values))
        return 0

    cdef bint _try(self, PyObject **store) except -1:
        cdef cnp.npy_intp shape[5]
        cdef int64_t asked[3]
        cdef int axis, ndim = self._ndim + 2, first = SPATIAL - self._ndim
        cdef Convolving c
        cdef Windows *w = &c.windows
        cdef cnp.ndarray z
        cdef cnp.ndarray a = in_order(store[self._arguments[0]], self._type, ndim)
        cdef cnp.ndarray b = in_order(store[self._arguments[1]], self._type, ndim)
        if a is None or b is None:
            return False
        if self._part != RESULT:
            if not read_lengths(store, self._arguments + 2, self._ndim, asked):
                return False
        # Which of the arrays say what: images and channels, kernels, spatial lengths.
        c.images = cnp.PyArray_DIM(b if self._part == INPUTS else a, 0)
        c.outputs = cnp.PyArray_DIM(b, 0) if self._part == RESULT else cnp.PyArray_DIM(b, 1)
        w.channels = cnp.PyArray_DIM(a, 1) * (self._groups if self._part == INPUTS else 1)
        for axis in range(SPATIAL):
            if not self._measure(a, b, asked, axis, w):
                return False
        if w.channels % self._groups or c.outputs % self._groups:
            return False
        if c.images == 0 or w.channels == 0 or c.outputs == 0:
            return False
        if not self._fits(a, b, w, c.images, c.outputs):
            return False
        shape[0] = c.outputs if self._part == KERNELS else c.images
        shape[1] = c.outputs if self._part == RESULT else w.channels
        if self._part == KERNELS:
            shape[1] = w.channels // self._groups
        for axis in range(self._ndim):
            shape[2 + axis] = w.counts[first + axis] if self._part == RESULT else asked[axis]
        z = cnp.PyArray_ZEROS(ndim, shape, self._type, 0)
        c.part, c.groups, c.type = self._part, self._groups, self._type
        c.itemsize = 4 if self._type == cnp.NPY_FLOAT32 else 8
        c.a, c.b, c.z = cnp.PyArray_BYTES(a), cnp.PyArray_BYTES(b), cnp.PyArray_BYTES(z)
        c.size_of_sum = cnp.PyArray_NBYTES(z)
        if not self._compute_all(&c):
            raise MemoryError("no memory for the windows of a convolution")
        put(store, self._output, z)
        return True

    cdef bint _measure(self, cnp.ndarray a, cnp.ndarray b, int64_t *asked, int axis, Windows *w):
        """The lengths along an axis; a plane is a volume of one plane, a line one of one row."""
        cdef int own = axis - (SPATIAL - self._ndim)
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
        if max(w.kernel[axis], w.lengths[axis]) > LARGEST_OF_WINDOWS:
            return False
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
        cdef double columns = <double>product(w.counts) + COLUMNS_AT_A_TIME
        cdef double inner = <double>(w.channels // self._groups) * product(w.kernel)
        if inner * self._groups * columns >= LARGEST_SIZE:
            return False
        if self._part == RESULT:
            if cnp.PyArray_DIM(b, 1) * self._groups != w.channels:
                return False
        else:
            if cnp.PyArray_DIM(b, 0) != images:
                return False
            if self._part == INPUTS and cnp.PyArray_DIM(a, 0) != outputs:
                return False
            for axis in range(self._ndim):
                if cnp.PyArray_DIM(b, 2 + axis) != w.counts[axis + SPATIAL - self._ndim]:
                    return False
        return max(inner, <double>outputs, columns) < LARGEST_OF_WINDOWS

    cdef bint _compute_all(self, Convolving *c) except -1:
        """All images; False if there is no memory."""
        cdef int64_t places = product(c.windows.counts)
        cdef int64_t rows = c.windows.channels * product(c.windows.kernel)
        cdef double products = <double>rows // c.groups * c.outputs * places * c.images
        cdef int threads = self._threads if products >= PRODUCTS_WORTH_SHARING else 1
        cdef int64_t size
        c.together = max(1, min(c.images, COLUMNS_AT_A_TIME // places))
        c.blocks = c.chunks = (c.images + c.together - 1) // c.together
        if c.part == KERNELS:
            c.chunks = max(1, min(c.blocks, MOST_SUMS, MOST_BYTES_OF_SUMS // max(c.size_of_sum, 1)))
        threads = <int>min(threads, c.chunks)
        c.size_of_columns = rows * places * c.together * c.itemsize
        c.size_of_results = c.outputs * places * c.together * c.itemsize
        size = (c.size_of_columns + c.size_of_results) * threads
        if c.part == KERNELS:
            size += c.size_of_sum * (c.chunks - 1)
        c.columns = <char *>PyMem_RawMalloc(size)
        if c.columns == NULL:
            return False
        c.results = c.columns + c.size_of_columns * threads
        c.sums = c.results + c.size_of_results * threads
        try:
            if threads == 1:
                with nogil:
                    share(convolve_chunk, c, c.chunks, 1)
            else:
                with self._alone, nogil:
                    share(convolve_chunk, c, c.chunks, threads)
            if c.part == KERNELS:
                add_up(c)
        finally:
            PyMem_RawFree(c.columns)
        return True


cdef void convolve_chunk(void *work, int64_t chunk, int worker) noexcept nogil:
    """Some blocks of images."""
    cdef Convolving *c = <Convolving *>work
    cdef int64_t block = c.blocks * chunk // c.chunks, end = c.blocks * (chunk + 1) // c.chunks
    cdef char *z = c.z
    if c.part == KERNELS and chunk > 0:
        z = c.sums + (chunk - 1) * c.size_of_sum
        memset(z, 0, c.size_of_sum)
    while block < end:
        convolve_block(
            c, block * c.together, z, c.columns + worker * c.size_of_columns,
            c.results + worker * c.size_of_results
        )
        block += 1


cdef void add_up(Convolving *c) noexcept nogil:
    """The sums of all chunks, in their order."""
    cdef int64_t chunk, i
    cdef float *total_32 = <float *>c.z
    cdef float *sum_32
    cdef double *total_64 = <double *>c.z
    cdef double *sum_64
    for chunk in range(c.chunks - 1):
        if c.type == cnp.NPY_FLOAT32:
            sum_32 = <float *>(c.sums + chunk * c.size_of_sum)
            for i in range(c.size_of_sum // 4):
                total_32[i] += sum_32[i]
        else:
            sum_64 = <double *>(c.sums + chunk * c.size_of_sum)
            for i in range(c.size_of_sum // 8):
                total_64[i] += sum_64[i]


cdef void convolve_block(
    Convolving *c, int64_t first, char *z, char *columns, char *results
) noexcept nogil:
    """Some images, whose windows are laid out side by side."""
    cdef Windows *w = &c.windows
    cdef int itemsize = c.itemsize
    cdef int64_t count = min(c.together, c.images - first)
    cdef int64_t places = product(w.counts), wide = places * count
    cdef int64_t inner = w.channels // c.groups * product(w.kernel)
    cdef int64_t each = c.outputs // c.groups
    cdef int64_t size = w.channels * product(w.lengths) * itemsize
    cdef int64_t result_size = c.outputs * places * itemsize
    cdef int64_t i, g
    cdef Matrix kernels, windows, gradient
    if c.part != INPUTS:
        for i in range(count):
            unfolded(c, c.a + (first + i) * size, columns + i * places * itemsize, wide)
    # The results of one image lie as they should; those of several are exchanged.
    if count == 1:
        results = (z if c.part == RESULT else c.b) + first * result_size
    elif c.part != RESULT:
        side_by_side(
            results, c.b + first * result_size, c.outputs, count, places * itemsize, True
        )
    for g in range(c.groups):
        set_matrix(&windows, columns + g * inner * wide * itemsize, inner, wide)
        set_matrix(&gradient, results + g * each * wide * itemsize, each, wide)
        if c.part == RESULT:
            set_matrix(&kernels, c.b + g * each * inner * itemsize, each, inner)
            multiply(c.type, &kernels, &windows, gradient.data, 1.0, 0.0)
        elif c.part == INPUTS:
            # The transpose of the kernels: inner rows.
            set_matrix(&kernels, c.a + g * each * inner * itemsize, each, inner)
            kernels.rows, kernels.columns = <int>inner, <int>each
            kernels.transposed = True
            multiply(c.type, &kernels, &gradient, windows.data, 1.0, 0.0)
        else:
            windows.rows, windows.columns = <int>wide, <int>inner
            windows.transposed = True
            multiply(c.type, &gradient, &windows, z + g * each * inner * itemsize, 1.0, 1.0)
    if c.part == RESULT and count > 1:
        side_by_side(results, z + first * result_size, c.outputs, count, places * itemsize, False)
    elif c.part == INPUTS:
        for i in range(count):
            folded(c, z + (first + i) * size, columns + i * places * itemsize, wide)


cdef void unfolded(Convolving *c, char *image, char *columns, int64_t next) noexcept nogil:
    if c.type == cnp.NPY_FLOAT32:
        unfold_32(&c.windows, <float *>image, <float *>columns, next)
    else:
        unfold_64(&c.windows, <double *>image, <double *>columns, next)


cdef void folded(Convolving *c, char *image, char *columns, int64_t next) noexcept nogil:
    if c.type == cnp.NPY_FLOAT32:
        fold_32(&c.windows, <float *>image, <float *>columns, next)
    else:
        fold_64(&c.windows, <double *>image, <double *>columns, next)


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
