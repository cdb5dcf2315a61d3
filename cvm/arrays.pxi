# Actions on whole arrays: lengths, basic slices as views, filled arrays, and elements or rows read
# and written at positions given by arrays.

cdef enum:
    # The parts of a basic index expression: a number, a slice, a new axis.
    ONE_AT = 0
    RANGE_AT = 1
    NEW_AT = 2
    # The most arrays of positions.
    MOST_POSITIONS = 4


cdef struct Bound:
    bint given
    int slot            # of the store; -1: ``value`` is it
    Py_ssize_t value


cdef struct SymbolicEntry:
    int kind
    Bound bounds[3]     # start, stop and step of a slice; the position is the first


cdef class Length(Action):
    """The length of an axis, as an array of one int64."""

    cdef object _compute
    cdef int _input, _output, _axis

    def __cinit__(self, compute, int input, int output, int axis):
        self._compute = compute
        self._input, self._output, self._axis = input, output, axis

    cdef int run(self, PyObject **store) except -1:
        if not cnp.PyArray_Check(<object>store[self._input]):
            before_python()
            put(store, self._output, self._compute(<object>store[self._input]))
            return 0
        n = cnp.PyArray_DIM(<cnp.ndarray>store[self._input], self._axis)
        put(store, self._output, whole_array(n))
        return 0


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
    if not cnp.PyArray_Check(<object>store[bound.slot]):
        return False
    array = <cnp.ndarray>store[bound.slot]
    if cnp.PyArray_TYPE(array) != cnp.NPY_INT64 or cnp.PyArray_SIZE(array) != 1:
        return False
    if not cnp.PyArray_ISBEHAVED_RO(array):
        return False
    found[0] = (<int64_t *>cnp.PyArray_DATA(array))[0]
    return True


cdef class View(Action):
    """``x[...]`` with numbers, slices and new axes.

    Parameters
    ----------
    compute : callable
        Does the same in Python; it is called for what is out of range.
    arguments : sequence of int
        Slots of its arguments, x first.
    output : int
    entries : sequence
        For each part of the expression: "new", ("at", bound), or ("part", start, stop, step); a
        bound is None, ("value", n) or ("slot", s).
    """

    cdef object _compute
    cdef int *_arguments
    cdef int _n_arguments, _output, _n_entries
    cdef SymbolicEntry *_entries

    def __cinit__(self, compute, arguments, int output, entries, *rest):
        cdef int i, k
        self._compute = compute
        self._n_arguments, self._output = len(arguments), output
        self._arguments = numbers(arguments)
        self._n_entries = len(entries)
        self._entries = <SymbolicEntry *>PyMem_Malloc(max(len(entries), 1) * sizeof(SymbolicEntry))
        if self._entries == NULL:
            raise MemoryError()
        for i, entry in enumerate(entries):
            if entry == "new":
                self._entries[i].kind = NEW_AT
                continue
            self._entries[i].kind = ONE_AT if entry[0] == "at" else RANGE_AT
            for k, bound in enumerate(entry[1:]):
                self._entries[i].bounds[k].given = bound is not None
                self._entries[i].bounds[k].slot = -1
                self._entries[i].bounds[k].value = 0
                if bound is not None and bound[0] == "slot":
                    self._entries[i].bounds[k].slot = bound[1]
                elif bound is not None:
                    self._entries[i].bounds[k].value = bound[1]

    def __dealloc__(self):
        PyMem_Free(self._arguments)
        PyMem_Free(self._entries)

    cdef int run(self, PyObject **store) except -1:
        if not self._try(store):
            values = values_of(store, self._arguments, self._n_arguments)
            put(store, self._output, self._compute(*values))
        return 0

    cdef bint _try(self, PyObject **store) except -1:
        cdef cnp.npy_intp lengths[MOST_AXES]
        cdef cnp.npy_intp strides[MOST_AXES]
        cdef int ndim
        cdef char *data
        cdef cnp.ndarray x
        if not cnp.PyArray_CheckExact(<object>store[self._arguments[0]]):
            return False
        x = <cnp.ndarray>store[self._arguments[0]]
        if not self._region(store, x, &data, &ndim, lengths, strides):
            return False
        put(store, self._output, view_of(x, ndim, lengths, strides, data))
        return True

    cdef bint _region(
        self, PyObject **store, cnp.ndarray x, char **data, int *ndim, cnp.npy_intp *lengths,
        cnp.npy_intp *strides
    ) except -1:
        """Where the part of x is; False if it is not there."""
        cdef int i, axis = 0
        cdef Py_ssize_t at, n
        if cnp.PyArray_NDIM(x) + self._n_entries > MOST_AXES:
            return False
        data[0] = cnp.PyArray_BYTES(x)
        ndim[0] = 0
        for i in range(self._n_entries):
            if self._entries[i].kind == NEW_AT:
                lengths[ndim[0]], strides[ndim[0]] = 1, 0
                ndim[0] += 1
                continue
            if axis >= cnp.PyArray_NDIM(x):
                return False
            n = cnp.PyArray_DIM(x, axis)
            if self._entries[i].kind == ONE_AT:
                if not whole_number(store, &self._entries[i].bounds[0], &at):
                    return False
                if at < 0:
                    at += n
                if at < 0 or at >= n:
                    return False
                data[0] += at * cnp.PyArray_STRIDE(x, axis)
            else:
                if not self._part(
                    store, &self._entries[i], n, &lengths[ndim[0]], &at, &strides[ndim[0]]
                ):
                    return False
                if lengths[ndim[0]] > 0:
                    data[0] += at * cnp.PyArray_STRIDE(x, axis)
                strides[ndim[0]] *= cnp.PyArray_STRIDE(x, axis)
                ndim[0] += 1
            axis += 1
        while axis < cnp.PyArray_NDIM(x):
            lengths[ndim[0]] = cnp.PyArray_DIM(x, axis)
            strides[ndim[0]] = cnp.PyArray_STRIDE(x, axis)
            ndim[0] += 1
            axis += 1
        return True

    cdef bint _part(
        self, PyObject **store, SymbolicEntry *entry, Py_ssize_t n, cnp.npy_intp *length,
        Py_ssize_t *start, cnp.npy_intp *step
    ):
        """Read a slice of an axis of n: how many elements, the first, and the step."""
        cdef Py_ssize_t stride = 1, stop
        if entry.bounds[2].given and not whole_number(store, &entry.bounds[2], &stride):
            return False
        if stride == 0 or stride == PY_SSIZE_T_MIN:
            return False
        start[0] = 0 if stride > 0 else PY_SSIZE_T_MAX
        stop = PY_SSIZE_T_MAX if stride > 0 else PY_SSIZE_T_MIN
        if entry.bounds[0].given and not whole_number(store, &entry.bounds[0], start):
            return False
        if entry.bounds[1].given and not whole_number(store, &entry.bounds[1], &stop):
            return False
        length[0] = PySlice_AdjustIndices(n, start, &stop, stride)
        step[0] = stride
        return True


cdef class Fill(Action):
    """An array of given lengths that holds one number.

    Parameters
    ----------
    compute : callable
        Does the same in Python.
    arguments : sequence of int
        Slots of its arguments: the number, the lengths, and perhaps the array to write.
    output : int
    ndim : int
    into : int
        The slot of an array for the result; -1: a new one.
    dtype : numpy.dtype
    """

    cdef object _compute
    cdef int *_arguments
    cdef int _n_arguments, _output, _ndim, _into, _type

    def __cinit__(self, compute, arguments, int output, int ndim, int into, dtype):
        self._compute = compute
        self._n_arguments, self._output = len(arguments), output
        self._arguments = numbers(arguments)
        self._ndim, self._into, self._type = ndim, into, np.dtype(dtype).num

    def __dealloc__(self):
        PyMem_Free(self._arguments)

    cdef int run(self, PyObject **store) except -1:
        cdef cnp.npy_intp lengths[MOST_AXES]
        cdef int axis
        cdef Bound bound
        cdef Py_ssize_t n
        cdef cnp.ndarray value, z = None
        cdef bint fits = self._ndim <= MOST_AXES and cnp.PyArray_Check(
            <object>store[self._arguments[0]]
        )
        for axis in range(self._ndim):
            bound.slot = self._arguments[1 + axis]
            if fits:
                fits = whole_number(store, &bound, &n) and n >= 0
                lengths[axis] = n
        if fits:
            value = <cnp.ndarray>store[self._arguments[0]]
            fits = cnp.PyArray_SIZE(value) == 1 and cnp.PyArray_NDIM(value) <= self._ndim
        if not fits:
            values = values_of(store, self._arguments, self._n_arguments)
            put(store, self._output, self._compute(*values))
            return 0
        if self._into >= 0:
            z = fitting(store[self._into], self._type, self._ndim, lengths)
        if z is None:
            z = cnp.PyArray_EMPTY(self._ndim, lengths, self._type, 0)
        cnp.PyArray_CopyInto(z, value)
        put(store, self._output, z)
        return 0


cdef struct Places:
    int count                       # of arrays of positions
    int ndim                        # of each of them
    cnp.npy_intp *shape
    cnp.npy_intp n                  # of positions in each
    char *data[MOST_POSITIONS]
    cnp.npy_intp step[MOST_POSITIONS]
    bint narrow[MOST_POSITIONS]     # int32, not int64
    cnp.npy_intp length[MOST_POSITIONS]
    cnp.npy_intp stride[MOST_POSITIONS]


cdef bint read_places(
    PyObject **store, int *slots, int count, cnp.ndarray x, Places *found, list held
) except -1:
    """Read the arrays of positions along the first axes of x; False if they are not arrays of one
    shape, of int32 or int64. What is read of them must live as long as ``held``.
    """
    cdef int i, axis
    cdef cnp.ndarray index
    found.count = count
    for i in range(count):
        if not cnp.PyArray_Check(<object>store[slots[i]]):
            return False
        index = <cnp.ndarray>store[slots[i]]
        if not cnp.PyArray_ISBEHAVED_RO(index):
            return False
        if cnp.PyArray_NDIM(index) != 1 and not cnp.PyArray_IS_C_CONTIGUOUS(index):
            index = cnp.PyArray_NewCopy(index, cnp.NPY_CORDER)
        held.append(index)
        if cnp.PyArray_TYPE(index) not in (cnp.NPY_INT32, cnp.NPY_INT64):
            return False
        if i == 0:
            found.shape = cnp.PyArray_DIMS(index)
            found.n, found.ndim = cnp.PyArray_SIZE(index), cnp.PyArray_NDIM(index)
        if cnp.PyArray_NDIM(index) != found.ndim:
            return False
        for axis in range(found.ndim):
            if cnp.PyArray_DIM(index, axis) != found.shape[axis]:
                return False
        found.data[i] = cnp.PyArray_BYTES(index)
        found.step[i] = cnp.PyArray_ITEMSIZE(index)
        if found.ndim == 1:
            found.step[i] = cnp.PyArray_STRIDE(index, 0)
        found.narrow[i] = cnp.PyArray_TYPE(index) == cnp.NPY_INT32
        found.length[i] = cnp.PyArray_DIM(x, i)
        found.stride[i] = cnp.PyArray_STRIDE(x, i)
    return True


cdef cnp.npy_intp offset(Places *places, cnp.npy_intp k) noexcept nogil:
    """Where the k-th element is, in bytes; -1 if a position is out of range."""
    cdef cnp.npy_intp total = 0, at
    cdef int i
    for i in range(places.count):
        if places.narrow[i]:
            at = (<int *>(places.data[i] + k * places.step[i]))[0]
        else:
            at = (<int64_t *>(places.data[i] + k * places.step[i]))[0]
        if at < 0:
            at += places.length[i]
        if at < 0 or at >= places.length[i]:
            return -1
        total += at * places.stride[i]
    return total


cdef bint in_range(Places *places) noexcept nogil:
    """Whether all positions are. The strides of what they are in must not be negative."""
    cdef cnp.npy_intp k
    for k in range(places.n):
        if offset(places, k) < 0:
            return False
    return True


cdef cnp.npy_intp bytes_of_row(cnp.ndarray x, int count):
    """The bytes of what the first ``count`` axes hold, if these lie in one piece; else -1."""
    cdef cnp.npy_intp size = cnp.PyArray_ITEMSIZE(x)
    cdef int axis
    for axis in range(cnp.PyArray_NDIM(x) - 1, count - 1, -1):
        if cnp.PyArray_DIM(x, axis) != 1 and cnp.PyArray_STRIDE(x, axis) != size:
            return -1
        size *= cnp.PyArray_DIM(x, axis)
    for axis in range(count):
        if cnp.PyArray_STRIDE(x, axis) < 0:
            return -1
    return size


cdef class Gather(Action):
    """``x[i, j, ...]`` with arrays of positions along the first axes: elements or rows.

    Parameters
    ----------
    compute : callable
        Does the same in Python; it is called for what is out of range.
    arguments : sequence of int
        Slots of its arguments: x and the positions.
    output : int
    count : int
        How many arrays of positions.
    """

    cdef object _compute
    cdef int *_arguments
    cdef int _n_arguments, _output, _count

    def __cinit__(self, compute, arguments, int output, int count):
        self._compute = compute
        self._n_arguments, self._output = len(arguments), output
        self._arguments = numbers(arguments)
        self._count = count

    def __dealloc__(self):
        PyMem_Free(self._arguments)

    cdef int run(self, PyObject **store) except -1:
        if not self._try(store):
            values = values_of(store, self._arguments, self._n_arguments)
            put(store, self._output, self._compute(*values))
        return 0

    cdef bint _try(self, PyObject **store) except -1:
        cdef cnp.npy_intp lengths[MOST_AXES]
        cdef Places places
        cdef cnp.npy_intp k, row
        cdef char *target
        cdef char *source
        cdef int axis
        cdef cnp.ndarray x, z
        cdef list held = []
        if not cnp.PyArray_Check(<object>store[self._arguments[0]]):
            return False
        x = <cnp.ndarray>store[self._arguments[0]]
        if cnp.PyArray_NDIM(x) < self._count:
            return False
        row = bytes_of_row(x, self._count)
        if row < 0 or not read_places(store, self._arguments + 1, self._count, x, &places, held):
            return False
        if places.ndim + cnp.PyArray_NDIM(x) > MOST_AXES or not in_range(&places):
            return False
        for axis in range(places.ndim):
            lengths[axis] = places.shape[axis]
        for axis in range(self._count, cnp.PyArray_NDIM(x)):
            lengths[places.ndim + axis - self._count] = cnp.PyArray_DIM(x, axis)
        z = cnp.PyArray_EMPTY(
            places.ndim + cnp.PyArray_NDIM(x) - self._count, lengths, cnp.PyArray_TYPE(x), 0
        )
        target, source = cnp.PyArray_BYTES(z), cnp.PyArray_BYTES(x)
        with nogil:
            for k in range(places.n):
                memcpy(target + k * row, source + offset(&places, k), row)
        put(store, self._output, z)
        return True


cdef class Scatter(Action):
    """``x`` but ``z[i, j, ...] = y`` or ``+= y``, with arrays of positions along the first axes.

    Parameters
    ----------
    compute : callable
        Does the same in Python; it is called for what is out of range, and other dtypes and
        layouts.
    arguments : sequence of int
        Slots of its arguments: x, y, the positions, and perhaps the array to write.
    output : int
    count : int
        How many arrays of positions.
    set : bool
        Whether elements are replaced, not added to.
    into : int
        The slot of the array that is written; -1: a copy of x.
    """

    cdef object _compute
    cdef int *_arguments
    cdef int _n_arguments, _output, _count, _into
    cdef bint _set

    def __cinit__(self, compute, arguments, int output, int count, bint set, int into):
        self._compute = compute
        self._n_arguments, self._output = len(arguments), output
        self._arguments = numbers(arguments)
        self._count, self._set, self._into = count, set, into

    def __dealloc__(self):
        PyMem_Free(self._arguments)

    cdef int run(self, PyObject **store) except -1:
        if not self._try(store):
            values = values_of(store, self._arguments, self._n_arguments)
            put(store, self._output, self._compute(*values))
        return 0

    cdef bint _try(self, PyObject **store) except -1:
        cdef Places places
        cdef cnp.npy_intp row, size
        cdef int kind, axis, after
        cdef cnp.ndarray x, y, z = None
        cdef list held = []
        for axis in range(2):
            if not cnp.PyArray_Check(<object>store[self._arguments[axis]]):
                return False
        x, y = <cnp.ndarray>store[self._arguments[0]], <cnp.ndarray>store[self._arguments[1]]
        kind = cnp.PyArray_TYPE(x)
        if kind not in (cnp.NPY_FLOAT32, cnp.NPY_FLOAT64) or cnp.PyArray_TYPE(y) != kind:
            return False
        if not cnp.PyArray_ISBEHAVED_RO(y):
            return False
        if not cnp.PyArray_IS_C_CONTIGUOUS(x) or cnp.PyArray_NDIM(x) < self._count:
            return False
        if not read_places(store, self._arguments + 2, self._count, x, &places, held):
            return False
        row = bytes_of_row(x, self._count)
        after = cnp.PyArray_NDIM(x) - self._count
        if cnp.PyArray_NDIM(y) != places.ndim + after or row < 0:
            return False
        size = cnp.PyArray_ITEMSIZE(y)
        for axis in range(cnp.PyArray_NDIM(y) - 1, -1, -1):
            if axis < places.ndim:
                if cnp.PyArray_DIM(y, axis) != places.shape[axis]:
                    return False
            elif cnp.PyArray_DIM(y, axis) != cnp.PyArray_DIM(x, axis - places.ndim + self._count):
                return False
            elif cnp.PyArray_STRIDE(y, axis) != size and cnp.PyArray_DIM(y, axis) != 1:
                return False
            else:
                size *= cnp.PyArray_DIM(y, axis)
        if not in_range(&places):
            return False
        if self._into >= 0:
            z = fitting(store[self._into], kind, cnp.PyArray_NDIM(x), cnp.PyArray_DIMS(x))
            if z is not None and (not cnp.PyArray_IS_C_CONTIGUOUS(z) or overlap(z, y)):
                return False
        if z is None:
            z = cnp.PyArray_NewCopy(x, cnp.NPY_CORDER)
        elif z is not x:
            cnp.PyArray_CopyInto(z, x)
        with nogil:
            write_rows(&places, cnp.PyArray_BYTES(z), y, row, kind, self._set)
        put(store, self._output, z)
        return True


cdef void write_rows(
    Places *places, char *target, cnp.ndarray source, cnp.npy_intp row, int kind, bint set
) noexcept nogil:
    """Set or add the rows of ``source``, each of which lies in one piece."""
    cdef cnp.npy_intp k, i, rest
    cdef int axis
    cdef char *z
    cdef char *y
    for k in range(places.n):
        z, y, rest = target + offset(places, k), cnp.PyArray_BYTES(source), k
        for axis in range(places.ndim - 1, -1, -1):
            y += rest % places.shape[axis] * cnp.PyArray_STRIDE(source, axis)
            rest //= places.shape[axis]
        if set:
            memcpy(z, y, row)
        elif kind == cnp.NPY_FLOAT32:
            for i in range(row // 4):
                (<float *>z)[i] += (<float *>y)[i]
        else:
            for i in range(row // 8):
                (<double *>z)[i] += (<double *>y)[i]
