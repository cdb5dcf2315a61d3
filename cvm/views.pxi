# Arrays over the memory of others: parts, pieces, other axes, other shapes; and what passes a value
# on after a check.

cdef extern from "Python.h":
    Py_ssize_t PySlice_AdjustIndices(
        Py_ssize_t length, Py_ssize_t *start, Py_ssize_t *stop, Py_ssize_t step
    )
    Py_ssize_t PY_SSIZE_T_MAX
    Py_ssize_t PY_SSIZE_T_MIN

cdef extern from "numpy/arrayobject.h":
    PyTypeObject PyArray_Type
    cnp.ndarray new_over "PyArray_NewFromDescr" (
        PyTypeObject *kind, cnp.PyArray_Descr *dtype, int ndim, cnp.npy_intp *lengths,
        cnp.npy_intp *strides, void *data, int flags, PyObject *like
    )


cdef enum:
    # The entries of an index expression: a number, a slice, a new axis, an array of positions, and
    # what takes no axis but parts the arrays on its sides.
    ONE_AT = 0
    RANGE_AT = 1
    NEW_AT = 2
    ARRAY_AT = 3
    GAP_AT = 4


cdef struct Bound:
    bint given
    int slot            # of the store; -1: ``value`` is it
    Py_ssize_t value


cdef struct Entry:
    int kind
    Bound bounds[3]     # start, stop and step of a slice; the first is the position, or the array


cdef struct Region:
    # A part of an array: what an index expression without arrays leaves.
    int ndim
    cnp.npy_intp offset             # in bytes
    cnp.npy_intp lengths[MOST_AXES]
    cnp.npy_intp strides[MOST_AXES]


cdef cnp.ndarray plain(PyObject *value):
    """The array of a slot if its elements can be read where they are, else None."""
    if value == NULL or not cnp.PyArray_CheckExact(<object>value):
        return None
    if not cnp.PyArray_ISBEHAVED_RO(<cnp.ndarray>value) or not kind_of(<cnp.ndarray>value):
        return None
    return <cnp.ndarray>value if cnp.PyArray_NDIM(<cnp.ndarray>value) <= MOST_AXES else None


cdef char kind_of(cnp.ndarray x) noexcept:
    """The kind of a dtype that tensors have, as NumPy names it; 0 for others."""
    cdef int number = cnp.PyArray_TYPE(x)
    if cnp.PyArray_ITEMSIZE(x) > 16:
        return 0
    if cnp.PyTypeNum_ISBOOL(number):
        return c"b"
    if cnp.PyTypeNum_ISUNSIGNED(number):
        return c"u"
    if cnp.PyTypeNum_ISSIGNED(number):
        return c"i"
    if cnp.PyTypeNum_ISFLOAT(number):
        return c"f"
    return c"c" if cnp.PyTypeNum_ISCOMPLEX(number) else 0


cdef cnp.ndarray view_of(
    cnp.ndarray x, int ndim, cnp.npy_intp *lengths, cnp.npy_intp *strides, char *data
):
    """An array over the memory of ``x``, with its dtype, whose bytes may be in the other order."""
    cdef int flags = cnp.NPY_ARRAY_WRITEABLE if cnp.PyArray_ISWRITEABLE(x) else 0
    cdef cnp.PyArray_Descr *dtype = cnp.PyArray_DESCR(x)
    cdef cnp.ndarray z
    Py_INCREF(<object><PyObject *>dtype)    # which is taken over
    z = new_over(&PyArray_Type, dtype, ndim, lengths, strides, data, flags, NULL)
    cnp.set_array_base(z, x)
    cnp.PyArray_UpdateFlags(z, cnp.NPY_ARRAY_UPDATE_ALL)
    return z


cdef cnp.ndarray whole_array(Py_ssize_t n):
    """An int64 scalar."""
    cdef cnp.ndarray z = cnp.PyArray_EMPTY(0, NULL, cnp.NPY_INT64, 0)
    (<int64_t *>cnp.PyArray_DATA(z))[0] = n
    return z


cdef bint whole_number(PyObject **store, Bound *bound, Py_ssize_t *found):
    """Read a bound; False if it is no int64 scalar."""
    cdef cnp.ndarray array
    if bound.slot < 0:
        found[0] = bound.value
        return True
    array = plain(store[bound.slot])
    if array is None or cnp.PyArray_TYPE(array) != cnp.NPY_INT64 or cnp.PyArray_SIZE(array) != 1:
        return False
    found[0] = (<int64_t *>cnp.PyArray_DATA(array))[0]
    return True


cdef bint whole_numbers(PyObject *value, int n, cnp.npy_intp *found):
    """Read a vector of n numbers; False if it is none of int64."""
    cdef int i
    cdef cnp.ndarray array = plain(value)
    if array is None or cnp.PyArray_TYPE(array) != cnp.NPY_INT64 or cnp.PyArray_NDIM(array) != 1:
        return False
    if cnp.PyArray_DIM(array, 0) != n:
        return False
    for i in range(n):
        found[i] = (<int64_t *>(cnp.PyArray_BYTES(array) + i * cnp.PyArray_STRIDE(array, 0)))[0]
    return True


cdef Entry *entries_of(given) except NULL:
    """An index expression as C: for each entry "new", "gap", ("at", bound), ("array", slot) or
    ("part", start, stop, step); a bound is None, ("value", n) or ("slot", s).
    """
    cdef int i, k
    cdef Entry *entries = <Entry *>PyMem_Calloc(max(len(given), 1), sizeof(Entry))
    kinds = {"at": ONE_AT, "part": RANGE_AT, "new": NEW_AT, "array": ARRAY_AT, "gap": GAP_AT}
    if entries == NULL:
        raise MemoryError()
    for i, entry in enumerate(given):
        entries[i].kind = kinds[entry if isinstance(entry, str) else entry[0]]
        if entries[i].kind == ARRAY_AT:
            entries[i].bounds[0].slot = entry[1]
        elif not isinstance(entry, str):
            for k, bound in enumerate(entry[1:]):
                entries[i].bounds[k].given = bound is not None
                entries[i].bounds[k].slot = bound[1] if bound and bound[0] == "slot" else -1
                entries[i].bounds[k].value = bound[1] if bound and bound[0] == "value" else 0
    return entries


cdef bint read_slice(
    PyObject **store, Entry *entry, Py_ssize_t n, cnp.npy_intp *length, Py_ssize_t *start,
    Py_ssize_t *step
):
    """Of an axis of n: how many elements, the first, and the step; False if that is an error."""
    cdef Py_ssize_t stop
    step[0] = 1
    if entry.bounds[2].given and not whole_number(store, &entry.bounds[2], step):
        return False
    if step[0] == 0 or step[0] == PY_SSIZE_T_MIN:
        return False
    start[0] = 0 if step[0] > 0 else PY_SSIZE_T_MAX
    stop = PY_SSIZE_T_MAX if step[0] > 0 else PY_SSIZE_T_MIN
    if entry.bounds[0].given and not whole_number(store, &entry.bounds[0], start):
        return False
    if entry.bounds[1].given and not whole_number(store, &entry.bounds[1], &stop):
        return False
    length[0] = PySlice_AdjustIndices(n, start, &stop, step[0])
    return True


cdef bint add_axis(Region *found, cnp.npy_intp length, cnp.npy_intp stride) noexcept:
    if found.ndim == MOST_AXES:
        return False
    found.lengths[found.ndim], found.strides[found.ndim] = length, stride
    found.ndim += 1
    return True


cdef bint read_region(PyObject **store, cnp.ndarray x, Entry *entries, int n, Region *found):
    """The part of x that entries name, those with arrays leaving out their axes; False if it is
    not there.
    """
    cdef int i, axis = 0, ndim = cnp.PyArray_NDIM(x)
    cdef Py_ssize_t at, step
    cdef cnp.npy_intp length, stride
    found.ndim, found.offset = 0, 0
    for i in range(n):
        if entries[i].kind == NEW_AT:
            if not add_axis(found, 1, 0):
                return False
        elif entries[i].kind != GAP_AT:
            if axis >= ndim:
                return False
            length, stride = cnp.PyArray_DIM(x, axis), cnp.PyArray_STRIDE(x, axis)
            axis += 1
            if entries[i].kind == ONE_AT:
                if not whole_number(store, &entries[i].bounds[0], &at):
                    return False
                at += length if at < 0 else 0
                if at < 0 or at >= length:
                    return False
                found.offset += at * stride
            elif entries[i].kind == RANGE_AT:
                if not read_slice(store, &entries[i], length, &length, &at, &step):
                    return False
                found.offset += at * stride if length > 0 else 0
                if not add_axis(found, length, step * stride):
                    return False
    for axis in range(axis, ndim):
        if not add_axis(found, cnp.PyArray_DIM(x, axis), cnp.PyArray_STRIDE(x, axis)):
            return False
    return True


cdef class View(Native):
    """``x[...]`` with numbers, slices and new axes, as ``entries_of`` takes them."""

    cdef Entry *_entries
    cdef int _n_entries

    def __cinit__(self, compute, arguments, outputs, several, entries):
        self._entries, self._n_entries = entries_of(entries), len(entries)

    def __dealloc__(self):
        PyMem_Free(self._entries)

    cdef bint _try(self, PyObject **store) except -1:
        cdef Region region
        cdef cnp.ndarray x
        if not cnp.PyArray_CheckExact(<object>store[self._slots[0]]):
            return False
        x = <cnp.ndarray>store[self._slots[0]]
        if not read_region(store, x, self._entries, self._n_entries, &region):
            return False
        z = view_of(
            x, region.ndim, region.lengths, region.strides, cnp.PyArray_BYTES(x) + region.offset
        )
        put(store, self._outputs[0], z)
        return True


cdef class Transpose(Native):
    """A view with other axes: ``order`` names the axes of an input with ``ndim``, -1 a new one of
    length 1. The axes left out must have length 1.
    """

    cdef int *_order
    cdef int _ndim, _from
    cdef unsigned int _kept

    def __cinit__(self, compute, arguments, outputs, several, int ndim, order):
        self._from, self._ndim = ndim, len(order)
        self._order = numbers(order)
        self._kept = bits([a in order for a in range(ndim)])

    def __dealloc__(self):
        PyMem_Free(self._order)

    cdef bint _try(self, PyObject **store) except -1:
        cdef cnp.npy_intp lengths[MOST_AXES]
        cdef cnp.npy_intp strides[MOST_AXES]
        cdef int axis, source
        cdef cnp.ndarray x
        if not cnp.PyArray_CheckExact(<object>store[self._slots[0]]):
            return False
        x = <cnp.ndarray>store[self._slots[0]]
        if cnp.PyArray_NDIM(x) != self._from:
            return False
        for axis in range(self._from):
            if not self._kept >> axis & 1 and cnp.PyArray_DIM(x, axis) != 1:
                return False
        for axis in range(self._ndim):
            source = self._order[axis]
            lengths[axis] = 1 if source < 0 else cnp.PyArray_DIM(x, source)
            strides[axis] = 0 if source < 0 else cnp.PyArray_STRIDE(x, source)
        z = view_of(x, self._ndim, lengths, strides, cnp.PyArray_BYTES(x))
        put(store, self._outputs[0], z)
        return True


cdef class DiagonalView(Native):
    """A view of the elements i + k, i + l of the last two axes of x, for all i that there are."""

    cdef Py_ssize_t _down, _right

    def __cinit__(self, compute, arguments, outputs, several, Py_ssize_t down, Py_ssize_t right):
        self._down, self._right = down, right

    cdef bint _try(self, PyObject **store) except -1:
        cdef cnp.npy_intp lengths[MOST_AXES]
        cdef cnp.npy_intp strides[MOST_AXES]
        cdef cnp.ndarray x = plain(store[self._slots[0]])
        cdef char *data
        cdef cnp.npy_intp down, right
        cdef int axis, last
        if x is None or cnp.PyArray_NDIM(x) < 2:
            return False
        last = cnp.PyArray_NDIM(x) - 2
        for axis in range(last):
            lengths[axis], strides[axis] = cnp.PyArray_DIM(x, axis), cnp.PyArray_STRIDE(x, axis)
        down, right = cnp.PyArray_STRIDE(x, last), cnp.PyArray_STRIDE(x, last + 1)
        lengths[last] = min(
            cnp.PyArray_DIM(x, last) - self._down, cnp.PyArray_DIM(x, last + 1) - self._right
        )
        strides[last] = down + right
        data = cnp.PyArray_BYTES(x)
        if lengths[last] > 0:
            data += self._down * down + self._right * right
        else:
            lengths[last] = 0
        put(store, self._outputs[0], view_of(x, last + 1, lengths, strides, data))
        return True


cdef class Pieces(Native):
    """Views of the pieces of x along ``axis``, one for each output; a vector holds their lengths."""

    cdef int _axis

    def __cinit__(self, compute, arguments, outputs, several, int axis):
        self._axis = axis

    cdef bint _try(self, PyObject **store) except -1:
        cdef cnp.npy_intp sizes[MOST_ARRAYS]
        cdef cnp.npy_intp lengths[MOST_AXES]
        cdef cnp.npy_intp total = 0, offset = 0
        cdef int i
        cdef cnp.ndarray x = plain(store[self._slots[0]])
        if x is None or self._axis >= cnp.PyArray_NDIM(x) or self._n_outputs > MOST_ARRAYS:
            return False
        if not whole_numbers(store[self._slots[1]], self._n_outputs, sizes):
            return False
        for i in range(self._n_outputs):
            if sizes[i] < 0:
                return False
            total += sizes[i]
        if total != cnp.PyArray_DIM(x, self._axis):
            return False
        memcpy(lengths, cnp.PyArray_DIMS(x), cnp.PyArray_NDIM(x) * sizeof(cnp.npy_intp))
        for i in range(self._n_outputs):
            lengths[self._axis] = sizes[i]
            z = view_of(
                x, cnp.PyArray_NDIM(x), lengths, cnp.PyArray_STRIDES(x),
                cnp.PyArray_BYTES(x) + offset
            )
            put(store, self._outputs[i], z)
            offset += sizes[i] * cnp.PyArray_STRIDE(x, self._axis)
        return True


cdef bint reshaped_steps(
    cnp.ndarray x, int ndim, cnp.npy_intp *lengths, cnp.npy_intp *steps
) noexcept:
    """The steps of the elements of x, of which there are some, in a shape of as many; False if they
    have to be copied.
    """
    cdef int i = 0, j = 0, first, k, last
    cdef cnp.npy_intp here, there, step
    while j < ndim:
        # Some axes of one shape are some of the other.
        first, there = j, lengths[j]
        here, last, step = 1, -1, cnp.PyArray_ITEMSIZE(x)
        j += 1
        while here != there:
            if there < here:
                there *= lengths[j]
                j += 1
                continue
            if cnp.PyArray_DIM(x, i) > 1:
                if last >= 0 and (
                    cnp.PyArray_STRIDE(x, last)
                    != cnp.PyArray_DIM(x, i) * cnp.PyArray_STRIDE(x, i)
                ):
                    return False
                last, step = i, cnp.PyArray_STRIDE(x, i)
            here *= cnp.PyArray_DIM(x, i)
            i += 1
        for k in range(j - 1, first - 1, -1):
            steps[k] = step
            step *= lengths[k]
    return True


cdef class Reshaped(Native):
    """The elements of x in a shape given by a vector of ``ndim`` lengths, of which one may be -1: a
    view where that is possible, else a copy.
    """

    cdef int _ndim

    def __cinit__(self, compute, arguments, outputs, several, int ndim):
        self._ndim = ndim

    cdef bint _try(self, PyObject **store) except -1:
        cdef cnp.npy_intp lengths[MOST_AXES]
        cdef cnp.npy_intp steps[MOST_AXES]
        cdef cnp.PyArray_Dims shape
        cdef cnp.npy_intp size = 1
        cdef int axis, free = -1
        cdef cnp.ndarray x = plain(store[self._slots[0]])
        if x is None or not whole_numbers(store[self._slots[1]], self._ndim, lengths):
            return False
        for axis in range(self._ndim):
            if lengths[axis] < -1 or lengths[axis] == -1 and free >= 0:
                return False
            if lengths[axis] == -1:
                free = axis
            elif lengths[axis] and size > PY_SSIZE_T_MAX // lengths[axis]:
                return False
            else:
                size *= lengths[axis]
        if free >= 0:
            if size == 0 or cnp.PyArray_SIZE(x) % size:
                return False
            lengths[free] = cnp.PyArray_SIZE(x) // size
            size = cnp.PyArray_SIZE(x)
        if size != cnp.PyArray_SIZE(x):
            return False
        shape.ptr, shape.len = lengths, self._ndim
        if not cnp.PyArray_IS_C_CONTIGUOUS(x):
            if reshaped_steps(x, self._ndim, lengths, steps):
                put(
                    store, self._outputs[0],
                    view_of(x, self._ndim, lengths, steps, cnp.PyArray_BYTES(x))
                )
                return True
            x = in_c_order(x)
        put(store, self._outputs[0], cnp.PyArray_Newshape(x, &shape, cnp.NPY_CORDER))
        return True


cdef class Lengths(Native):
    """The length of an axis, as an array of one int64; for axis -1, those of all, as a vector."""

    cdef int _axis

    def __cinit__(self, compute, arguments, outputs, several, int axis):
        self._axis = axis

    cdef bint _try(self, PyObject **store) except -1:
        cdef cnp.npy_intp n
        cdef cnp.ndarray x, z
        if not cnp.PyArray_Check(<object>store[self._slots[0]]):
            return False
        x = <cnp.ndarray>store[self._slots[0]]
        if self._axis >= 0:
            z = whole_array(cnp.PyArray_DIM(x, self._axis))
        else:
            n = cnp.PyArray_NDIM(x)
            z = cnp.PyArray_EMPTY(1, &n, cnp.NPY_INT64, 0)
            for axis in range(n):
                (<int64_t *>cnp.PyArray_DATA(z))[axis] = cnp.PyArray_DIM(x, axis)
        put(store, self._outputs[0], z)
        return True


cdef enum:
    # What is checked before a value is passed on.
    LENGTH_IS = 0       # of axis a of argument i, b
    LENGTHS_EQUAL = 1   # of axis a of argument i and axis b of argument j
    NUMBERS_EQUAL = 2   # arguments i and j
    TRUE = 3            # argument i
    FALSE = 4
    BELOW = 5           # no element of argument i is negative, or not below argument j


cdef extern from "labels.h":
    int all_labels_below(
        const char *data, int64_t count, int64_t stride, int size, int has_signs, int64_t n
    ) noexcept nogil


cdef bint all_below(cnp.ndarray labels, Py_ssize_t n):
    """Whether a vector of integers has classes 0 to n - 1 alone."""
    if labels is None or cnp.PyArray_NDIM(labels) != 1 or kind_of(labels) not in (b"i", b"u"):
        return False
    return all_labels_below(
        cnp.PyArray_BYTES(labels), cnp.PyArray_DIM(labels, 0), cnp.PyArray_STRIDE(labels, 0),
        cnp.PyArray_ITEMSIZE(labels), kind_of(labels) == b"i", n
    )


cdef class Passed(Native):
    """An argument itself, if all conditions hold.

    Parameters
    ----------
    compute, arguments, outputs, several
        As of ``Native``.
    which : int
        The argument that is passed on.
    conditions : sequence of (kind, i, a, j, b)
        A kind is "length", "lengths", "numbers", "true", "false" or "below"; the rest as above.
    """

    cdef int *_conditions
    cdef int _which, _n_conditions

    def __cinit__(self, compute, arguments, outputs, several, int which, conditions):
        kinds = {
            "length": LENGTH_IS, "lengths": LENGTHS_EQUAL, "numbers": NUMBERS_EQUAL, "true": TRUE,
            "false": FALSE, "below": BELOW,
        }
        self._which, self._n_conditions = which, len(conditions)
        self._conditions = numbers(
            [x for kind, *rest in conditions for x in (kinds[kind], *rest)]
        )

    def __dealloc__(self):
        PyMem_Free(self._conditions)

    cdef bint _try(self, PyObject **store) except -1:
        cdef int i
        for i in range(self._n_conditions):
            if not self._holds(store, self._conditions + 5 * i):
                return False
        put(store, self._outputs[0], <object>store[self._slots[self._which]])
        return True

    cdef bint _holds(self, PyObject **store, int *condition) except -1:
        cdef Bound first, second
        cdef Py_ssize_t m = 0, n = 0
        cdef PyObject *x = store[self._slots[condition[1]]]
        cdef PyObject *y = store[self._slots[condition[3]]]
        first.slot, second.slot = self._slots[condition[1]], self._slots[condition[3]]
        if condition[0] == NUMBERS_EQUAL:
            return whole_number(store, &first, &m) and whole_number(store, &second, &n) and m == n
        if condition[0] == BELOW:
            return whole_number(store, &second, &n) and all_below(plain(x), n)
        if not cnp.PyArray_Check(<object>x):
            return False
        if condition[0] == TRUE or condition[0] == FALSE:
            if cnp.PyArray_SIZE(<cnp.ndarray>x) != 1:
                return False
            return PyObject_IsTrue(<object>x) == (condition[0] == TRUE)
        m = cnp.PyArray_DIM(<cnp.ndarray>x, condition[2])
        if condition[0] == LENGTH_IS:
            return m == condition[4]
        return cnp.PyArray_Check(<object>y) and m == cnp.PyArray_DIM(<cnp.ndarray>y, condition[4])
