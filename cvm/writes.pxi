# Parts of arrays that are written: elements set, or added to.

cdef struct Writing:
    int ndim
    int itemsize
    int adds            # NPY_FLOAT32 or NPY_FLOAT64: adds such numbers; NPY_NOTYPE: sets
    cnp.npy_intp lengths[MOST_AXES]
    cnp.npy_intp down[MOST_AXES]      # strides of what is written, and of what is read
    cnp.npy_intp along[MOST_AXES]


cdef void write_axes(Writing *w, int axis, char *target, char *source) noexcept nogil:
    """Write the elements along the axes from this one on."""
    cdef cnp.npy_intp i, n = w.lengths[axis], down = w.down[axis], along = w.along[axis]
    if axis < w.ndim - 1:
        for i in range(n):
            write_axes(w, axis + 1, target + i * down, source + i * along)
    elif w.adds == cnp.NPY_FLOAT32:
        add_along[float](<float *>target, <float *>source, n, down, along)
    elif w.adds == cnp.NPY_FLOAT64:
        add_along[double](<double *>target, <double *>source, n, down, along)
    elif down == w.itemsize and along == w.itemsize:
        memcpy(target, source, n * w.itemsize)
    else:
        for i in range(n):
            memcpy(target + i * down, source + i * along, w.itemsize)


cdef void add_along(
    Real *z, Real *y, cnp.npy_intp n, cnp.npy_intp down, cnp.npy_intp along
) noexcept nogil:
    """z[i] += y[i] with strides in bytes."""
    cdef cnp.npy_intp i
    if down == sizeof(Real) and along == sizeof(Real):
        for i in range(n):
            z[i] += y[i]
    else:
        for i in range(n):
            (<Real *>(<char *>z + i * down))[0] += (<Real *>(<char *>y + i * along))[0]


cdef void join_axes(Writing *w) noexcept:
    """Make axes that lie one after another in both arrays one; there is at least one axis."""
    cdef int axis, last = -1
    for axis in range(w.ndim):
        if w.lengths[axis] == 1:
            continue
        if last >= 0 and (
            w.down[last] == w.lengths[axis] * w.down[axis]
            and w.along[last] == w.lengths[axis] * w.along[axis]
        ):
            w.lengths[last] *= w.lengths[axis]
        else:
            last += 1
            w.lengths[last] = w.lengths[axis]
        w.down[last], w.along[last] = w.down[axis], w.along[axis]
    if last < 0:
        w.lengths[0], w.down[0], w.along[0] = 1, w.itemsize, w.itemsize
        last = 0
    w.ndim = last + 1


cdef void write_whole(cnp.ndarray z, cnp.ndarray y, Writing *w) noexcept:
    """How all of ``z``, in C order, is set to ``y``: one of its shape, or a scalar."""
    cdef int axis
    cdef bint scalar = cnp.PyArray_NDIM(y) == 0
    w.ndim, w.itemsize, w.adds = cnp.PyArray_NDIM(z), cnp.PyArray_ITEMSIZE(z), cnp.NPY_NOTYPE
    for axis in range(w.ndim):
        w.lengths[axis], w.down[axis] = cnp.PyArray_DIM(z, axis), cnp.PyArray_STRIDE(z, axis)
        w.along[axis] = 0 if scalar else cnp.PyArray_STRIDE(y, axis)
    join_axes(w)


cdef class PartWrite(View):
    """``x`` but ``z[...] = y`` or ``+= y``, with numbers, slices and new axes.

    Parameters
    ----------
    compute : callable
        Does the same in Python; it is called for what is out of range, and other dtypes.
    arguments : sequence of int
        Slots of its arguments: x, y, numbers of the part, and perhaps the array to write.
    output : int
    entries : sequence
        See ``View``.
    stretched : sequence of bool
        Which axes of y have length 1, and stretch.
    set : bool
        Whether elements are replaced, not added to.
    into : int
        The slot of the array that is written; -1: a copy of x.
    """

    cdef unsigned int _stretched
    cdef int _value_ndim, _into
    cdef bint _set

    def __cinit__(self, compute, arguments, int output, entries, stretched, bint set, int into):
        self._stretched, self._value_ndim = bits(stretched), len(stretched)
        self._set, self._into = set, into

    cdef bint _try(self, PyObject **store) except -1:
        cdef Writing w
        cdef char *data
        cdef cnp.ndarray x, y, z = None
        for i in range(2):
            if not cnp.PyArray_CheckExact(<object>store[self._arguments[i]]):
                return False
        x, y = <cnp.ndarray>store[self._arguments[0]], <cnp.ndarray>store[self._arguments[1]]
        if not self._plan(store, x, y, &data, &w):
            return False
        if self._into >= 0:
            z = fitting(
                store[self._into], cnp.PyArray_TYPE(x), cnp.PyArray_NDIM(x), cnp.PyArray_DIMS(x)
            )
            if z is not None and overlap(z, y):
                return False
        if z is None:
            z = cnp.PyArray_NewCopy(x, cnp.NPY_CORDER)
        elif z is not x:
            cnp.PyArray_CopyInto(z, x)
        if z is not x and not self._plan(store, z, y, &data, &w):
            return False
        with nogil:
            write_axes(&w, 0, data, cnp.PyArray_BYTES(y))
        put(store, self._output, z)
        return True

    cdef bint _plan(
        self, PyObject **store, cnp.ndarray x, cnp.ndarray y, char **data, Writing *w
    ) except -1:
        """How y is written to the part of x, and where that begins; False if it does not fit."""
        cdef int axis, at, kind = cnp.PyArray_TYPE(x)
        cdef cnp.npy_intp n
        if cnp.PyArray_TYPE(y) != kind or not cnp.PyArray_ISNUMBER(x) and kind != cnp.NPY_BOOL:
            return False
        if not self._set and kind != cnp.NPY_FLOAT32 and kind != cnp.NPY_FLOAT64:
            return False
        if not cnp.PyArray_ISBEHAVED_RO(x) or not cnp.PyArray_ISBEHAVED_RO(y):
            return False
        if not self._region(store, x, data, &w.ndim, w.lengths, w.down):
            return False
        at = cnp.PyArray_NDIM(y) - w.ndim
        if at > 0 or cnp.PyArray_NDIM(y) != self._value_ndim:
            return False
        w.itemsize = cnp.PyArray_ITEMSIZE(x)
        w.adds = cnp.NPY_NOTYPE if self._set else kind
        for axis in range(w.ndim):
            w.along[axis] = 0
            if at >= 0:
                n = cnp.PyArray_DIM(y, at)
                if n == w.lengths[axis]:
                    w.along[axis] = cnp.PyArray_STRIDE(y, at)
                elif not self._stretched >> at & 1 or n != 1:
                    return False
            at += 1
        join_axes(w)
        return True
