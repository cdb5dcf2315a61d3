# Elements, rows and parts read and written at positions that arrays hold.


cdef enum:
    FEW_POSITIONS = 32


cdef struct Positions:
    # Where index arrays point: their common shape, and offsets in bytes in row-major order.
    int ndim
    cnp.npy_intp lengths[MOST_AXES]
    int64_t count
    int64_t *table                  # may be ``few``
    int64_t few[FEW_POSITIONS]


cdef bint join_shape(cnp.ndarray index, Positions *found) noexcept:
    """Broadcast the shape of one more index array with those before; False if it does not fit."""
    cdef int axis, place, more = cnp.PyArray_NDIM(index) - found.ndim
    cdef cnp.npy_intp n
    if more > 0:
        for axis in range(found.ndim - 1, -1, -1):
            found.lengths[axis + more] = found.lengths[axis]
        for axis in range(more):
            found.lengths[axis] = 1
        found.ndim += more
    for axis in range(cnp.PyArray_NDIM(index)):
        place, n = found.ndim - cnp.PyArray_NDIM(index) + axis, cnp.PyArray_DIM(index, axis)
        if found.lengths[place] == 1:
            found.lengths[place] = n
        elif n != 1 and n != found.lengths[place]:
            return False
    return True


cdef void drop_table(Positions *positions) noexcept:
    if positions.table != positions.few:
        free(positions.table)


cdef int integer_kind(cnp.ndarray index) noexcept:
    """The size of an integer dtype, negative if it has no sign; 0 for others."""
    cdef char kind = kind_of(index)
    cdef int size = cnp.PyArray_ITEMSIZE(index)
    return size if kind == c"i" else -size if kind == c"u" else 0


cdef class _AtPlaces(Native):
    """What reading and writing at positions have in common: an index expression with arrays.

    Its axes, but those of the arrays, are the *rest*; the axes of positions come before ``_place``
    of these.
    """

    cdef Entry *_entries
    cdef int _n_entries, _place

    cdef int _set_entries(self, entries) except -1:
        cdef int i, rest = 0, first = -1, last = -1
        cdef bint scattered = False
        self._entries, self._n_entries = entries_of(entries), len(entries)
        for i in range(self._n_entries):
            if self._entries[i].kind == NEW_AT or self._entries[i].kind == RANGE_AT:
                rest += 1
            elif self._entries[i].kind != GAP_AT:
                scattered = scattered or last not in (-1, i - 1)
                last = i
                first = rest if first < 0 else first
        self._place = 0 if scattered else first

    def __dealloc__(self):
        PyMem_Free(self._entries)

    cdef bint _read_positions(self, PyObject **store, cnp.ndarray x, Positions *found) except -1:
        """Where in x the index arrays point; False if that is no place. The table is to be freed."""
        cdef int i, axis
        cdef cnp.ndarray index
        found.ndim, found.count, found.table = 0, 1, NULL
        for i in range(self._n_entries):
            if self._entries[i].kind == ARRAY_AT:
                index = plain(store[self._entries[i].bounds[0].slot])
                if index is None or integer_kind(index) == 0 or not join_shape(index, found):
                    return False
        for axis in range(found.ndim):
            found.count *= found.lengths[axis]
        found.table = found.few
        if found.count > FEW_POSITIONS:
            found.table = <int64_t *>malloc(found.count * sizeof(int64_t))
        if found.table == NULL:
            raise MemoryError()
        return self._fill_table(store, x, found)

    cdef bint _fill_table(self, PyObject **store, cnp.ndarray x, Positions *found) except -1:
        cdef cnp.npy_intp steps[MOST_AXES]
        cdef int i, axis = 0
        cdef cnp.ndarray index
        memset(found.table, 0, found.count * sizeof(int64_t))
        for i in range(self._n_entries):
            if self._entries[i].kind == ARRAY_AT:
                index = <cnp.ndarray>store[self._entries[i].bounds[0].slot]
                stretched_steps(index, found.ndim, found.lengths, <unsigned int>-1, steps)
                if found.count and not add_positions(
                    integer_kind(index), found.ndim, <int64_t *>found.lengths,
                    cnp.PyArray_BYTES(index), <int64_t *>steps, cnp.PyArray_DIM(x, axis),
                    cnp.PyArray_STRIDE(x, axis), found.table
                ):
                    return False
            axis += self._entries[i].kind != NEW_AT and self._entries[i].kind != GAP_AT
        return True

    cdef bint _shape(self, Positions *positions, Region *rest, Region *whole) noexcept:
        """The shape of what is read or written: the rest, with the axes of positions in place."""
        cdef int axis
        whole.ndim = 0
        if rest.ndim + positions.ndim > MOST_AXES:
            return False
        for axis in range(self._place):
            add_axis(whole, rest.lengths[axis], 0)
        for axis in range(positions.ndim):
            add_axis(whole, positions.lengths[axis], 0)
        for axis in range(self._place, rest.ndim):
            add_axis(whole, rest.lengths[axis], 0)
        return True

    cdef int _plan(
        self, Positions *positions, Region *rest, cnp.npy_intp *steps, bint reads, places *plan
    ) except -1:
        """The loops: ``rest`` is of what has positions, ``steps`` of what has axes for them.
        ``plan.other`` is to be freed."""
        cdef int last = positions.ndim - 1, axis, after = rest.ndim - self._place
        cdef int64_t *axis_steps = <int64_t *>steps + self._place
        cdef int64_t *inner = axis_steps + positions.ndim
        cdef int64_t *own = <int64_t *>rest.strides
        cdef int64_t *lengths = <int64_t *>rest.lengths
        cdef int64_t *others = <int64_t *>steps
        cdef bint joined = True
        plan.count, plan.reads, plan.table = positions.count, reads, positions.table
        plan.other, plan.step = NULL, axis_steps[last] if last >= 0 else 0
        for axis in range(last):
            joined = joined and (
                axis_steps[axis] == axis_steps[axis + 1] * positions.lengths[axis + 1]
            )
        if not joined:
            plan.other = <int64_t *>malloc(max(positions.count, 1) * sizeof(int64_t))
            if plan.other == NULL:
                raise MemoryError()
            if positions.count:
                list_offsets(
                    positions.ndim, <int64_t *>positions.lengths, axis_steps,
                    <int64_t *>plan.other
                )
        if reads:
            order_axes(&plan.outer, self._place, lengths, others, own)
            order_axes(&plan.inner, after, lengths + self._place, inner, own + self._place)
        else:
            order_axes(&plan.outer, self._place, lengths, own, others)
            order_axes(&plan.inner, after, lengths + self._place, own + self._place, inner)
        return 0


cdef void run_places(places *plan, move_function *move, char *to, char *source) noexcept:
    if plan.count * plan.inner.size * plan.outer.size < WORTH_RELEASING:
        move_all_places(plan, move, to, source)
    else:
        with nogil:
            move_all_places(plan, move, to, source)


cdef class Gather(_AtPlaces):
    """``x[...]`` with arrays of positions; ``entries`` as ``entries_of`` takes them."""

    def __cinit__(self, compute, arguments, outputs, several, entries):
        self._set_entries(entries)

    cdef bint _try(self, PyObject **store) except -1:
        cdef Positions positions
        cdef Region rest, whole
        cdef cnp.ndarray x = plain(store[self._slots[0]])
        if x is None or not read_region(store, x, self._entries, self._n_entries, &rest):
            return False
        try:
            if not self._read_positions(store, x, &positions):
                return False
            if not self._shape(&positions, &rest, &whole):
                return False
            self._gather(store, x, &positions, &rest, &whole)
        finally:
            drop_table(&positions)
        return True

    cdef int _gather(
        self, PyObject **store, cnp.ndarray x, Positions *positions, Region *rest, Region *whole
    ) except -1:
        cdef places plan
        cdef cnp.ndarray z = cnp.PyArray_EMPTY(
            whole.ndim, whole.lengths, cnp.PyArray_TYPE(x), 0
        )
        cdef int size = cnp.PyArray_ITEMSIZE(x)
        # What was made here lies in one piece: its axes of positions are one.
        self._plan(positions, rest, cnp.PyArray_STRIDES(z), True, &plan)
        run_places(
            &plan,
            function_that_takes(size) if plan.inner.size == 1 and plan.other == NULL
            else function_that_sets(size),
            cnp.PyArray_BYTES(z), cnp.PyArray_BYTES(x) + rest.offset
        )
        free(<void *>plan.other)
        put(store, self._outputs[0], z)
        return 0


cdef class Scatter(_AtPlaces):
    """x but ``z[...] = y`` or ``+= y``, with arrays of positions, in their order.

    Parameters
    ----------
    compute, arguments, outputs, several, entries, sets, stretching, in_place, into
        As of ``Written``.
    """

    cdef int _into
    cdef bint _sets, _in_place
    cdef unsigned int _stretching

    def __cinit__(
        self, compute, arguments, outputs, several, entries, bint sets, stretching, bint in_place,
        int into
    ):
        self._set_entries(entries)
        self._sets, self._stretching = sets, bits(stretching)
        self._in_place, self._into = in_place, into

    cdef bint _try(self, PyObject **store) except -1:
        cdef Positions positions
        cdef Region rest, whole
        cdef cnp.npy_intp steps[MOST_AXES]
        cdef cnp.ndarray x = plain(store[self._slots[0]]), y = plain(store[self._slots[1]]), z
        if x is None or y is None or cnp.PyArray_TYPE(x) != cnp.PyArray_TYPE(y):
            return False
        if writer(x, self._sets) == NULL:
            return False
        if not read_region(store, x, self._entries, self._n_entries, &rest):
            return False
        try:
            if not self._read_positions(store, x, &positions):
                return False
            if not self._shape(&positions, &rest, &whole):
                return False
            if not stretched_steps(y, whole.ndim, whole.lengths, self._stretching, steps):
                return False
            z = array_to_write(store, x, self._into, self._in_place)
            if z is None:
                return False
            if overlap(z, y):
                y = in_c_order(y)
                stretched_steps(y, whole.ndim, whole.lengths, self._stretching, steps)
            if not self._same_strides(x, z):
                self._fill_table(store, z, &positions)
            self._scatter(store, z, y, steps, &positions)
        finally:
            drop_table(&positions)
        return True

    cdef bint _same_strides(self, cnp.ndarray x, cnp.ndarray z) noexcept:
        cdef int axis
        for axis in range(cnp.PyArray_NDIM(x)):
            if cnp.PyArray_STRIDE(x, axis) != cnp.PyArray_STRIDE(z, axis):
                return False
        return True

    cdef int _scatter(
        self, PyObject **store, cnp.ndarray z, cnp.ndarray y, cnp.npy_intp *steps,
        Positions *positions
    ) except -1:
        cdef places plan
        cdef Region rest
        read_region(store, z, self._entries, self._n_entries, &rest)
        self._plan(positions, &rest, steps, False, &plan)
        run_places(
            &plan, writer(z, self._sets), cnp.PyArray_BYTES(z) + rest.offset, cnp.PyArray_BYTES(y)
        )
        free(<void *>plan.other)
        put(store, self._outputs[0], z)
        return 0
