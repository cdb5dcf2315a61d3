# Arrays made of the elements of others, which are copied to, or added to, parts of them.

cdef extern from "moves.h" nogil:
    ctypedef void move_function(
        int64_t n, char *to, int64_t to_step, const char *source, int64_t from_step,
        const int64_t *table
    ) noexcept

    move_function *function_that_sets(int64_t size)
    move_function *function_that_takes(int64_t size)
    move_function *function_that_adds(char kind, int64_t size)

    struct axes:
        int rank
        int64_t size

    void order_axes(
        axes *a, int rank, const int64_t *length, const int64_t *to, const int64_t *source
    )
    void move_axes(const axes *a, move_function *move, char *to, const char *source)
    void list_offsets(int rank, const int64_t *length, const int64_t *step, int64_t *table)
    bint add_positions(
        int kind, int rank, const int64_t *length, const char *source, const int64_t *step,
        int64_t n, int64_t stride, int64_t *table
    )

    struct places:
        axes outer
        axes inner
        int64_t count
        int64_t step
        int reads
        const int64_t *table
        const int64_t *other

    void move_all_places(const places *p, move_function *move, char *to, const char *source)


cdef struct Writing:
    # How elements of one array are set, or added, to those of another.
    axes together
    move_function *move


cdef void write_whole(cnp.ndarray z, cnp.ndarray y, Writing *w) noexcept:
    """How all of ``z`` is set to ``y``: one of its shape, or a scalar."""
    cdef cnp.npy_intp steps[MOST_AXES]
    stretched_steps(y, cnp.PyArray_NDIM(z), cnp.PyArray_DIMS(z), 0, steps)
    w.move = function_that_sets(cnp.PyArray_ITEMSIZE(z))
    order_axes(
        &w.together, cnp.PyArray_NDIM(z), <int64_t *>cnp.PyArray_DIMS(z),
        <int64_t *>cnp.PyArray_STRIDES(z), <int64_t *>steps
    )


cdef inline void write(const Writing *w, const char *source, char *to) noexcept nogil:
    move_axes(&w.together, w.move, to, source)


cdef void move_elements(
    move_function *move, int ndim, cnp.npy_intp *lengths, char *to, cnp.npy_intp *to_steps,
    char *source, cnp.npy_intp *from_steps
) noexcept:
    """Set or add to all elements of one array those of another, which do not overlap."""
    cdef axes together
    order_axes(
        &together, ndim, <int64_t *>lengths, <int64_t *>to_steps, <int64_t *>from_steps
    )
    if together.size < WORTH_RELEASING:
        move_axes(&together, move, to, source)
    else:
        with nogil:
            move_axes(&together, move, to, source)


cdef cnp.ndarray in_c_order(cnp.ndarray x):
    """A copy, in C order, of an array whose elements can be read where they are."""
    cdef cnp.ndarray z = cnp.PyArray_EMPTY(
        cnp.PyArray_NDIM(x), cnp.PyArray_DIMS(x), cnp.PyArray_TYPE(x), 0
    )
    move_elements(
        function_that_sets(cnp.PyArray_ITEMSIZE(x)), cnp.PyArray_NDIM(x), cnp.PyArray_DIMS(x),
        cnp.PyArray_BYTES(z), cnp.PyArray_STRIDES(z), cnp.PyArray_BYTES(x),
        cnp.PyArray_STRIDES(x)
    )
    return z


cdef cnp.ndarray result_array(
    PyObject **store, int into, int kind, int ndim, cnp.npy_intp *lengths
):
    """An array for a result: that of the slot ``into``, if it fits, or a new one."""
    cdef cnp.ndarray z = None
    if into >= 0:
        z = fitting(store[into], kind, ndim, lengths)
    return cnp.PyArray_EMPTY(ndim, lengths, kind, 0) if z is None else z


cdef bint stretched_steps(
    cnp.ndarray y, int ndim, cnp.npy_intp *lengths, unsigned int stretching, cnp.npy_intp *steps
) noexcept:
    """The steps of y in a loop over ``lengths``, its axes being the last ones; False if it does not
    fit, ``stretching`` being the axes of y that may be stretched.
    """
    cdef int axis, before = ndim - cnp.PyArray_NDIM(y)
    if before < 0:
        return False
    for axis in range(before):
        steps[axis] = 0
    for axis in range(cnp.PyArray_NDIM(y)):
        if cnp.PyArray_DIM(y, axis) == lengths[before + axis]:
            steps[before + axis] = cnp.PyArray_STRIDE(y, axis)
        elif cnp.PyArray_DIM(y, axis) == 1 and stretching >> axis & 1:
            steps[before + axis] = 0
        else:
            return False
    return True


cdef class Fill(Native):
    """An array of given lengths filled with a value, which is stretched.

    Parameters
    ----------
    compute, arguments, outputs, several
        As of ``Native``; the arguments are the value and the lengths.
    ndim : int
    stretching : sequence of bool
        The axes of the value that may be stretched.
    into : int
        The slot of an array for the result; -1: a new one.
    """

    cdef int _ndim, _into
    cdef unsigned int _stretching

    def __cinit__(self, compute, arguments, outputs, several, int ndim, stretching, int into):
        self._ndim, self._into, self._stretching = rank_of(ndim), into, bits(stretching)
        checked(self._n_arguments, 1 + ndim, 2 + ndim, "arguments")

    cdef bint _try(self, PyObject **store) except -1:
        cdef cnp.npy_intp lengths[MOST_AXES]
        cdef cnp.npy_intp steps[MOST_AXES]
        cdef int axis
        cdef Bound bound
        cdef Py_ssize_t n
        cdef cnp.ndarray z, value = plain(store[self._slots[0]])
        for axis in range(self._ndim):
            bound.slot = self._slots[1 + axis]
            if not whole_number(store, &bound, &n) or n < 0:
                return False
            lengths[axis] = n
        if value is None:
            return False
        if not stretched_steps(value, self._ndim, lengths, self._stretching, steps):
            return False
        z = result_array(store, self._into, cnp.PyArray_TYPE(value), self._ndim, lengths)
        move_elements(
            function_that_sets(cnp.PyArray_ITEMSIZE(z)), self._ndim, lengths,
            cnp.PyArray_BYTES(z), cnp.PyArray_STRIDES(z), cnp.PyArray_BYTES(value), steps
        )
        put(store, self._outputs[0], z)
        return True


cdef class Copied(Native):
    """A copy in the same order of memory; with ``c_order`` x itself, or a copy that lies in C order."""

    cdef bint _c_order

    def __cinit__(self, compute, arguments, outputs, several, bint c_order):
        self._c_order = c_order

    cdef bint _try(self, PyObject **store) except -1:
        cdef cnp.ndarray x
        if not cnp.PyArray_CheckExact(<object>store[self._slots[0]]):
            return False
        x = <cnp.ndarray>store[self._slots[0]]
        if not self._c_order:
            put(store, self._outputs[0], cnp.PyArray_NewCopy(x, cnp.NPY_KEEPORDER))
        elif cnp.PyArray_IS_C_CONTIGUOUS(x):
            put(store, self._outputs[0], x)
        elif plain(store[self._slots[0]]) is None:
            put(store, self._outputs[0], cnp.PyArray_NewCopy(x, cnp.NPY_CORDER))
        else:
            put(store, self._outputs[0], in_c_order(x))
        return True


cdef class Joined(Native):
    """Arrays one after the other along ``axis``, which is a new one if they are ``stacked``. Those
    that lie in their places already are not copied.

    Parameters
    ----------
    compute, arguments, outputs, several
        As of ``Native``.
    n_inputs : int
        How many of the arguments are joined.
    axis : int
    stacked : bool
    into : int
        The slot of an array for the result; -1: a new one.
    """

    cdef int _n_inputs, _axis, _into
    cdef bint _stacked

    def __cinit__(
        self, compute, arguments, outputs, several, int n_inputs, int axis, bint stacked, int into
    ):
        self._n_inputs = checked(n_inputs, 1, self._n_arguments, "the number of inputs")
        self._axis, self._stacked, self._into = axis_of(axis), stacked, into

    cdef bint _try(self, PyObject **store) except -1:
        cdef cnp.npy_intp lengths[MOST_AXES]
        cdef cnp.npy_intp steps[MOST_AXES]
        cdef cnp.npy_intp total = 0
        cdef int i, axis, ndim, kind
        cdef cnp.ndarray x = plain(store[self._slots[0]]), z
        cdef char *target
        if x is None:
            return False
        kind, ndim = cnp.PyArray_TYPE(x), cnp.PyArray_NDIM(x) + self._stacked
        if ndim > MOST_AXES or self._axis >= ndim:
            return False
        self._lengths(x, lengths)
        for i in range(self._n_inputs):
            x = plain(store[self._slots[i]])
            if x is None or cnp.PyArray_TYPE(x) != kind or not self._fits(x, ndim, lengths):
                return False
            total += 1 if self._stacked else cnp.PyArray_DIM(x, self._axis)
        lengths[self._axis] = total
        z = result_array(store, self._into, kind, ndim, lengths)
        target = cnp.PyArray_BYTES(z)
        for axis in range(ndim - self._stacked):
            steps[axis] = cnp.PyArray_STRIDE(z, axis + (self._stacked and axis >= self._axis))
        for i in range(self._n_inputs):
            x = <cnp.ndarray>store[self._slots[i]]
            if not same_place(x, target, steps):
                move_elements(
                    function_that_sets(cnp.PyArray_ITEMSIZE(z)), cnp.PyArray_NDIM(x),
                    cnp.PyArray_DIMS(x), target, steps, cnp.PyArray_BYTES(x),
                    cnp.PyArray_STRIDES(x)
                )
            total = 1 if self._stacked else cnp.PyArray_DIM(x, self._axis)
            target += total * cnp.PyArray_STRIDE(z, self._axis)
        put(store, self._outputs[0], z)
        return True

    cdef void _lengths(self, cnp.ndarray x, cnp.npy_intp *lengths) noexcept:
        """Those of the result, but for the axis of joining."""
        cdef int axis, place = 0
        for axis in range(cnp.PyArray_NDIM(x)):
            place += self._stacked and axis == self._axis
            lengths[place] = cnp.PyArray_DIM(x, axis)
            place += 1

    cdef bint _fits(self, cnp.ndarray x, int ndim, cnp.npy_intp *lengths) noexcept:
        cdef int axis, place = 0
        if cnp.PyArray_NDIM(x) + self._stacked != ndim:
            return False
        for axis in range(ndim):
            if axis == self._axis:
                place += not self._stacked
                continue
            if cnp.PyArray_DIM(x, place) != lengths[axis]:
                return False
            place += 1
        return True


cdef cnp.ndarray array_to_write(
    PyObject **store, cnp.ndarray x, int into, bint in_place
):
    """An array that holds what x holds: x itself ``in_place``, that of ``into``, or a new one."""
    cdef cnp.ndarray z = None
    if in_place:
        return x if cnp.PyArray_ISWRITEABLE(x) else None
    if into >= 0:
        z = fitting(store[into], cnp.PyArray_TYPE(x), cnp.PyArray_NDIM(x), cnp.PyArray_DIMS(x))
    if z is None:
        return in_c_order(x)
    if z is not x:
        move_elements(
            function_that_sets(cnp.PyArray_ITEMSIZE(x)), cnp.PyArray_NDIM(x), cnp.PyArray_DIMS(x),
            cnp.PyArray_BYTES(z), cnp.PyArray_STRIDES(z), cnp.PyArray_BYTES(x),
            cnp.PyArray_STRIDES(x)
        )
    return z


cdef move_function *writer(cnp.ndarray z, bint sets) noexcept:
    """What sets, or adds to, the elements of z; NULL if nothing does."""
    if sets:
        return function_that_sets(cnp.PyArray_ITEMSIZE(z))
    return function_that_adds(kind_of(z), cnp.PyArray_ITEMSIZE(z))


cdef class Written(Native):
    """x but ``z[...] = y`` or ``z[...] += y``, with numbers, slices and new axes.

    Parameters
    ----------
    compute, arguments, outputs, several
        As of ``Native``; the arguments are x, y, and what the entries take.
    entries : sequence
        As ``entries_of`` takes them.
    sets : bool
        Whether elements are replaced, not added to.
    stretching : sequence of bool
        The axes of y that may be stretched.
    in_place : bool
        Whether x itself is written.
    into : int
        The slot of an array for the result; -1: a new one.
    """

    cdef Entry *_entries
    cdef int _n_entries, _into
    cdef bint _sets, _in_place
    cdef unsigned int _stretching

    def __cinit__(
        self, compute, arguments, outputs, several, entries, bint sets, stretching, bint in_place,
        int into
    ):
        self._entries, self._n_entries = entries_of(entries), len(entries)
        self._sets, self._stretching = sets, bits(stretching)
        self._in_place, self._into = in_place, self._slots[0] if in_place else into

    def __dealloc__(self):
        PyMem_Free(self._entries)

    cdef bint _try(self, PyObject **store) except -1:
        cdef Writing w
        cdef cnp.npy_intp offset
        cdef cnp.ndarray x = plain(store[self._slots[0]]), y = plain(store[self._slots[1]]), z
        if x is None or y is None or not self._plan(store, x, y, &offset, &w):
            return False
        z = array_to_write(store, x, self._into, self._in_place)
        if z is None:
            return False
        if overlap(z, y):
            y = in_c_order(y)
        self._plan(store, z, y, &offset, &w)
        if w.together.size < WORTH_RELEASING:
            write(&w, cnp.PyArray_BYTES(y), cnp.PyArray_BYTES(z) + offset)
        else:
            with nogil:
                write(&w, cnp.PyArray_BYTES(y), cnp.PyArray_BYTES(z) + offset)
        put(store, self._outputs[0], z)
        return True

    cdef bint _plan(
        self, PyObject **store, cnp.ndarray z, cnp.ndarray y, cnp.npy_intp *offset, Writing *w
    ):
        """How y is written to a part of z, and where that begins; False if it does not fit."""
        cdef Region region
        cdef cnp.npy_intp steps[MOST_AXES]
        w.move = writer(z, self._sets)
        if w.move == NULL or cnp.PyArray_TYPE(z) != cnp.PyArray_TYPE(y):
            return False
        if not read_region(store, z, self._entries, self._n_entries, &region):
            return False
        if not stretched_steps(y, region.ndim, region.lengths, self._stretching, steps):
            return False
        offset[0] = region.offset
        order_axes(
            &w.together, region.ndim, <int64_t *>region.lengths, <int64_t *>region.strides,
            <int64_t *>steps
        )
        return True
