# Pools of images with up to three spatial axes: the largest of each window, sums and means, and
# their adjoints. Threads share images.

cdef extern from "windows.h":
    void largest_64(const Windows *, const double *, double *, int64_t *) noexcept nogil
    void largest_32(const Windows *, const float *, float *, int64_t *) noexcept nogil
    void sums_64(const Windows *, const double *, const double *, double *) noexcept nogil
    void sums_32(const Windows *, const double *, const float *, float *) noexcept nogil
    void spread_64(const Windows *, const double *, const double *, double *) noexcept nogil
    void spread_32(const Windows *, const double *, const float *, float *) noexcept nogil
    int to_positions_64(
        const double *, const int64_t *, int64_t, double *, int64_t
    ) noexcept nogil
    int to_positions_32(const float *, const int64_t *, int64_t, float *, int64_t) noexcept nogil

cdef enum:
    # Threads cost more than they bring where windows have fewer elements in all.
    ELEMENTS_WORTH_SHARING = 1 << 19
    # Into so many parts is divided what they share.
    PARTS_OF_POOLS = 64

cdef enum What_pools_give:
    THE_LARGEST = 0
    TOTALS = 1
    SPREAD = 2
    PLACED = 3


cdef struct Pooling:
    # What the threads that share a pool are told.
    Windows windows
    int what, type
    int64_t images, parts, elements, places
    double *factors         # of sums; NULL: none
    char *x                 # what is read, image by image
    char *z                 # what is written
    int64_t *where
    int failed


cdef void pool_part(void *work, int64_t part, int worker) noexcept nogil:
    """Some images."""
    cdef Pooling *p = <Pooling *>work
    cdef int64_t i = p.images * part // p.parts, end = p.images * (part + 1) // p.parts
    while i < end:
        if p.type == cnp.NPY_FLOAT32:
            pool_32(p, i)
        else:
            pool_64(p, i)
        i += 1


cdef void pool_32(Pooling *p, int64_t i) noexcept nogil:
    cdef bint back = p.what >= SPREAD
    cdef float *x = <float *>p.x + i * (p.places if back else p.elements)
    cdef float *z = <float *>p.z + i * (p.elements if back else p.places)
    if p.what == THE_LARGEST:
        largest_32(&p.windows, x, z, p.where + i * p.places)
    elif p.what == TOTALS:
        sums_32(&p.windows, p.factors, x, z)
    elif p.what == SPREAD:
        spread_32(&p.windows, p.factors, x, z)
    elif to_positions_32(x, p.where + i * p.places, p.places, z, p.elements):
        p.failed = True


cdef void pool_64(Pooling *p, int64_t i) noexcept nogil:
    cdef bint back = p.what >= SPREAD
    cdef double *x = <double *>p.x + i * (p.places if back else p.elements)
    cdef double *z = <double *>p.z + i * (p.elements if back else p.places)
    if p.what == THE_LARGEST:
        largest_64(&p.windows, x, z, p.where + i * p.places)
    elif p.what == TOTALS:
        sums_64(&p.windows, p.factors, x, z)
    elif p.what == SPREAD:
        spread_64(&p.windows, p.factors, x, z)
    elif to_positions_64(x, p.where + i * p.places, p.places, z, p.elements):
        p.failed = True


cdef bint pool_all(Pooling *p, int64_t work, int threads) noexcept:
    """All images, of so much work; False if a position lies outside."""
    p.failed = False
    p.parts = min(p.images, PARTS_OF_POOLS)
    if work < ELEMENTS_WORTH_SHARING:
        threads = 1
    with nogil:
        share(pool_part, p, p.parts, threads)
    return not p.failed


cdef class _Pool(Action):
    """What pools have in common.

    Parameters
    ----------
    compute : callable
        Does the same in Python; it is called for what does not fit, and says what is wrong.
    arguments : sequence of int
        Slots: of the array, and in adjoints of the spatial lengths of what is asked for.
    outputs : sequence of int
    ndim : int
        Of the array.
    window, strides, padding : sequence of int
        For each of the last axes.
    partial : bool
        Whether there is one more window, where elements are left.
    dtype : numpy.dtype
        float32 or float64.
    threads : int
        How many share large ones.
    *rest
        What kinds of it take.
    """

    cdef object _compute
    cdef int *_slots        # of the arguments; those of the outputs follow
    cdef int _n_arguments, _n_outputs, _ndim, _spatial, _type, _threads
    cdef int _window[3]
    cdef int _strides[3]
    cdef int _padding[3]
    cdef bint _partial

    def __cinit__(
        self, compute, arguments, outputs, int ndim, window, strides, padding, bint partial, dtype,
        int threads, *rest
    ):
        cdef int axis
        self._compute, self._ndim, self._partial = compute, rank_of(ndim), partial
        self._n_arguments, self._n_outputs = len(arguments), len(outputs)
        self._slots = numbers([*arguments, *outputs])
        self._spatial = checked(len(window), 1, min(ndim, SPATIAL), "the number of spatial axes")
        if not len(window) == len(strides) == len(padding):
            raise ValueError(f"window {window}, strides {strides}, padding {padding}")
        self._type, self._threads = np.dtype(dtype).num, threads
        for axis in range(self._spatial):
            self._window[axis] = checked(window[axis], 1, LARGEST_OF_WINDOWS, "a window")
            self._strides[axis] = checked(strides[axis], 1, LARGEST_OF_WINDOWS, "a stride")
            # A window beyond the image would have no element.
            self._padding[axis] = checked(padding[axis], 0, window[axis] - 1, "the padding")

    def __dealloc__(self):
        PyMem_Free(self._slots)

    cdef int run(self, PyObject **store) except -1:
        cdef int i
        if self._try(store):
            return 0
        before_python()
        found = call_with(self._compute, values_of(store, self._slots, self._n_arguments))
        if self._n_outputs == 1:
            put(store, self._slots[self._n_arguments], found)
            return 0
        for i in range(self._n_outputs):
            put(store, self._slots[self._n_arguments + i], found[i])
        return 0

    cdef bint _try(self, PyObject **store) except -1:
        return False

    cdef bint _measure(self, cnp.ndarray x, const int64_t *asked, Pooling *p):
        """The windows of images as those of ``x``, or of the lengths that are asked for; how many
        there are. False if there is none.
        """
        cdef int axis, own, lead = self._ndim - self._spatial
        cdef Windows *w = &p.windows
        for axis in range(SPATIAL):
            own = axis - (SPATIAL - self._spatial)
            w.dilation[axis] = w.lengths[axis] = w.kernel[axis] = w.strides[axis] = 1
            w.counts[axis], w.before[axis] = 1, 0
            if own < 0:
                continue
            w.lengths[axis] = cnp.PyArray_DIM(x, lead + own) if asked == NULL else asked[own]
            w.kernel[axis], w.strides[axis] = self._window[own], self._strides[own]
            w.before[axis] = self._padding[own]
            w.counts[axis] = self._count(own, w.lengths[axis])
            if w.counts[axis] < 1 or not 1 <= w.lengths[axis] <= LARGEST_OF_WINDOWS:
                return False
            if self._partial:
                # What lies beyond the image plays no part.
                w.kernel[axis] = min(w.kernel[axis], w.lengths[axis])
        p.elements, p.places = product(w.lengths), product(w.counts)
        p.images, p.type = 1, self._type
        for axis in range(lead):
            p.images *= cnp.PyArray_DIM(x, axis)
        # Without images nothing says that their lengths are possible.
        return p.images > 0

    cdef int64_t _count(self, int axis, int64_t n) noexcept:
        """How many windows there are along an axis."""
        cdef int64_t k = self._window[axis], s = self._strides[axis]
        if not self._partial:
            n += 2 * self._padding[axis] - k
            return n // s + 1 if n >= 0 else 0
        if s >= k:
            return (n - 1) // s + 1
        return max(0, (n - 1 - k + s) // s) + 1

    cdef cnp.ndarray _new(self, cnp.ndarray x, const int64_t *lengths, int kind):
        """An array like ``x``, but for its spatial lengths and its type."""
        cdef cnp.npy_intp shape[MOST_AXES]
        cdef int axis, lead = self._ndim - self._spatial
        for axis in range(self._ndim):
            shape[axis] = cnp.PyArray_DIM(x, axis)
            if axis >= lead:
                shape[axis] = lengths[axis - lead + SPATIAL - self._spatial]
        return cnp.PyArray_EMPTY(self._ndim, shape, kind, 0)


cdef class Largest(_Pool):
    """The largest of each window of images, and where it is."""

    def __cinit__(self, *rest):
        checked(self._n_outputs, 2, 2, "the number of outputs")

    cdef bint _try(self, PyObject **store) except -1:
        cdef Pooling p
        cdef cnp.ndarray largest, where
        cdef cnp.ndarray x = in_order(store[self._slots[0]], self._type, self._ndim)
        if x is None or not self._measure(x, NULL, &p):
            return False
        largest = self._new(x, p.windows.counts, self._type)
        where = self._new(x, p.windows.counts, cnp.NPY_INT64)
        p.what, p.x, p.z = THE_LARGEST, cnp.PyArray_BYTES(x), cnp.PyArray_BYTES(largest)
        p.where = <int64_t *>cnp.PyArray_DATA(where)
        pool_all(&p, p.images * p.places * product(p.windows.kernel), self._threads)
        put(store, self._slots[1], largest)
        put(store, self._slots[2], where)
        return True


cdef class Sums(_Pool):
    """Sums or means of windows of images, or the adjoint: images of which these are the gradients.

    Parameters
    ----------
    divided : {0, 1, 2}
        Sums are divided by nothing, by the number of elements within the padded image, or by that
        of those within the image.
    back : bool
        Whether it is the adjoint.
    """

    cdef int _divided
    cdef bint _back

    def __cinit__(
        self, compute, arguments, outputs, ndim, window, strides, padding, partial, dtype, threads,
        int divided, bint back
    ):
        cdef int count = 1 + (self._spatial if back else 0)
        checked(self._n_arguments, count, count, "the number of arguments")
        self._divided, self._back = divided, back

    cdef bint _try(self, PyObject **store) except -1:
        cdef Pooling p
        cdef int64_t asked[3]
        cdef int64_t *wanted = NULL
        cdef int64_t *lengths = &p.windows.counts[0]
        cdef int axis, first = SPATIAL - self._spatial, lead = self._ndim - self._spatial
        cdef cnp.ndarray z, x = in_order(store[self._slots[0]], self._type, self._ndim)
        if x is None:
            return False
        if self._back and not read_lengths(store, self._slots + 1, self._spatial, asked):
            return False
        if self._back:
            wanted, lengths = &asked[0], &p.windows.lengths[0]
        if not self._measure(x, wanted, &p):
            return False
        for axis in range(self._spatial if self._back else 0):
            if cnp.PyArray_DIM(x, lead + axis) != p.windows.counts[first + axis]:
                return False
        z = self._new(x, lengths, self._type)
        p.what, p.x, p.z = TOTALS, cnp.PyArray_BYTES(x), cnp.PyArray_BYTES(z)
        if self._back:
            p.what = SPREAD
        p.factors = NULL
        if self._divided:
            p.factors = <double *>PyMem_Malloc(p.places * sizeof(double))
            if p.factors == NULL:
                raise MemoryError("no memory for the factors of a pool")
            self._divide(&p)
        pool_all(&p, p.images * p.places * product(p.windows.kernel), self._threads)
        PyMem_Free(p.factors)
        put(store, self._slots[self._n_arguments], z)
        return True

    cdef void _divide(self, Pooling *p) noexcept:
        """One over the number of elements of each window."""
        cdef int64_t place, rest, first, last, before, n
        cdef int64_t at[3]
        cdef int axis
        for place in range(p.places):
            rest = place
            for axis in range(SPATIAL - 1, -1, -1):
                at[axis] = rest % p.windows.counts[axis]
                rest //= p.windows.counts[axis]
            p.factors[place] = 1.0
            for axis in range(SPATIAL):
                before, n = p.windows.before[axis], p.windows.lengths[axis]
                first = at[axis] * p.windows.strides[axis]
                last = min(first + p.windows.kernel[axis], n + 2 * before)
                if self._divided == 2:
                    first, last = max(first, before), min(last, n + before)
                p.factors[place] /= <double>(last - first)


cdef class Placing(_Pool):
    """Numbers added at positions of images, which are 0 elsewhere: the adjoint of taking them.

    The arguments are the numbers, the positions, and the spatial lengths of the images; windows,
    strides and padding are not looked at, but for how many spatial axes there are.
    """

    def __cinit__(self, *rest):
        cdef int count = 2 + self._spatial
        checked(self._n_arguments, count, count, "the number of arguments")

    cdef bint _try(self, PyObject **store) except -1:
        cdef Pooling p
        cdef int64_t asked[3]
        cdef int64_t lengths[3]
        cdef int axis, lead = self._ndim - self._spatial
        cdef cnp.ndarray g, where, x
        g = in_order(store[self._slots[0]], self._type, self._ndim)
        where = in_order(store[self._slots[1]], cnp.NPY_INT64, self._ndim)
        if g is None or where is None:
            return False
        if not read_lengths(store, self._slots + 2, self._spatial, asked):
            return False
        p.elements = p.places = p.images = 1
        for axis in range(self._ndim):
            if cnp.PyArray_DIM(g, axis) != cnp.PyArray_DIM(where, axis):
                return False
            if axis < lead:
                p.images *= cnp.PyArray_DIM(g, axis)
            else:
                lengths[axis - lead + SPATIAL - self._spatial] = asked[axis - lead]
                p.places *= cnp.PyArray_DIM(g, axis)
        if p.images == 0:
            return False
        for axis in range(SPATIAL - self._spatial):
            lengths[axis] = 1
        p.elements = product(lengths)
        x = self._new(g, lengths, self._type)
        p.what, p.type, p.x, p.z = PLACED, self._type, cnp.PyArray_BYTES(g), cnp.PyArray_BYTES(x)
        p.where = <int64_t *>cnp.PyArray_DATA(where)
        if not pool_all(&p, p.images * (p.places + p.elements), self._threads):
            return False
        put(store, self._slots[self._n_arguments], x)
        return True
