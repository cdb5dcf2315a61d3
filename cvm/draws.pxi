# Draws of random numbers: NumPy's distributions, from a state that is an array.

cdef extern from "draws.h":
    int draw_uniform_64(char **, const int64_t *, const int64_t *, const Team *) noexcept nogil
    int draw_uniform_32(char **, const int64_t *, const int64_t *, const Team *) noexcept nogil
    int draw_normal_64(char **, const int64_t *, const int64_t *, const Team *) noexcept nogil
    int draw_normal_32(char **, const int64_t *, const int64_t *, const Team *) noexcept nogil
    int draw_exponential_64(char **, const int64_t *, const int64_t *, const Team *) noexcept nogil
    int draw_exponential_32(char **, const int64_t *, const int64_t *, const Team *) noexcept nogil
    int draw_gamma_64(char **, const int64_t *, const int64_t *, const Team *) noexcept nogil
    int draw_gamma_32(char **, const int64_t *, const int64_t *, const Team *) noexcept nogil
    # Of the NumPy whose distributions these are.
    const char *SYMCOMP_NUMPY

cdef enum:
    # About how much work a number is, as for kernels.
    WORK_OF_DRAW = 8

# Another NumPy may draw other numbers: then Python draws them.
DRAWS_OF_NUMPY = (<bytes>SYMCOMP_NUMPY).decode()


cdef Kernel draw_kernel(str name, int type) except NULL:
    cdef bint single = type == cnp.NPY_FLOAT32
    if name == "standard_uniform":
        return draw_uniform_32 if single else draw_uniform_64
    if name == "standard_normal":
        return draw_normal_32 if single else draw_normal_64
    if name == "standard_exponential":
        return draw_exponential_32 if single else draw_exponential_64
    if name == "standard_gamma":
        return draw_gamma_32 if single else draw_gamma_64
    raise ValueError(f"no kernel draws {name}")


cdef class RandomDraw(Action):
    """A draw of a distribution: the state after it, and numbers.

    Parameters
    ----------
    distribution : {"standard_uniform", "standard_normal", "standard_exponential", "standard_gamma"}
    compute : callable
        Does the same in Python; it is called for what does not fit, and says what is wrong.
    arguments : sequence of int
        Slots of its arguments: the state, the lengths, a parameter, and perhaps the arrays to
        write.
    outputs : (int, int)
        Slots: the state after it, the numbers.
    ndim : int
    into : int
        The slot of an array for the numbers; -1: a new one.
    dtype : numpy.dtype
    single : bool
        Whether the parameter is one number for all that are drawn.
    """

    cdef object _compute
    cdef Code _code
    cdef int *_arguments
    cdef int _n_arguments, _state, _numbers, _ndim, _into, _type, _parameter
    cdef bint _single

    def __cinit__(
        self, str distribution, compute, arguments, outputs, int ndim, int into, dtype,
        bint single
    ):
        self._compute = compute
        self._n_arguments = len(arguments)
        self._arguments = numbers(arguments)
        self._state, self._numbers = outputs
        self._ndim, self._into, self._type = ndim, into, np.dtype(dtype).num
        self._code.run = draw_kernel(distribution, self._type)
        self._parameter = arguments[1 + ndim] if distribution == "standard_gamma" else -1
        self._single = single

    def __dealloc__(self):
        PyMem_Free(self._arguments)

    cdef int run(self, PyObject **store) except -1:
        if not self._try(store):
            after, z = call_with(
                self._compute, values_of(store, self._arguments, self._n_arguments)
            )
            put(store, self._state, after)
            put(store, self._numbers, z)
        return 0

    cdef bint _try(self, PyObject **store) except -1:
        cdef cnp.npy_intp lengths[MOST_AXES]
        cdef cnp.npy_intp words = 4
        cdef char *data[4]
        cdef int64_t strides[4]
        cdef int64_t count = 1
        cdef int axis, at = 1, failed
        cdef cnp.ndarray after, z = None
        if self._ndim > MOST_AXES or not is_state(store[self._arguments[0]]):
            return False
        for axis in range(self._ndim):
            if not self._length(store, axis, &lengths[axis]):
                return False
            count *= lengths[axis]
        data[0] = cnp.PyArray_BYTES(<cnp.ndarray>store[self._arguments[0]])
        if self._parameter >= 0:
            if not self._read(store[self._parameter], lengths, &data[1], &strides[1]):
                return False
            at = 2
        if self._into >= 0:
            z = fitting(store[self._into], self._type, self._ndim, lengths)
        if z is None or not cnp.PyArray_IS_C_CONTIGUOUS(z):
            z = cnp.PyArray_EMPTY(self._ndim, lengths, self._type, 0)
        after = cnp.PyArray_EMPTY(1, &words, cnp.NPY_UINT64, 0)
        data[at], data[at + 1] = cnp.PyArray_BYTES(after), cnp.PyArray_BYTES(z)
        if count * WORK_OF_DRAW < WORTH_RELEASING:
            failed = self._code.run(data, &count, strides, NULL)
        else:
            with nogil:
                failed = self._code.run(data, &count, strides, NULL)
        if failed:
            return False
        put(store, self._state, after)
        put(store, self._numbers, z)
        return True

    cdef bint _length(self, PyObject **store, int axis, cnp.npy_intp *found):
        """The length of an axis; False if it is none."""
        cdef Bound bound
        cdef Py_ssize_t n = 0
        bound.slot = self._arguments[1 + axis]
        if not whole_number(store, &bound, &n) or n < 0:
            return False
        found[0] = n
        return True

    cdef bint _read(
        self, PyObject *value, cnp.npy_intp *lengths, char **data, int64_t *stride
    ):
        """The numbers of a parameter: one, or one for each number that is drawn."""
        cdef cnp.ndarray array
        cdef int axis
        if not cnp.PyArray_Check(<object>value):
            return False
        array = <cnp.ndarray>value
        if cnp.PyArray_TYPE(array) != cnp.NPY_FLOAT64 or not cnp.PyArray_ISBEHAVED_RO(array):
            return False
        if cnp.PyArray_NDIM(array) != self._ndim:
            return False
        for axis in range(self._ndim):
            if cnp.PyArray_DIM(array, axis) != (1 if self._single else lengths[axis]):
                return False
        data[0] = cnp.PyArray_BYTES(array)
        stride[0] = 0 if self._single else sizeof(double)
        return cnp.PyArray_IS_C_CONTIGUOUS(array)


cdef bint is_state(PyObject *value):
    """Whether a value is four words next to each other."""
    cdef cnp.ndarray array
    if not cnp.PyArray_Check(<object>value):
        return False
    array = <cnp.ndarray>value
    return (
        cnp.PyArray_TYPE(array) == cnp.NPY_UINT64
        and cnp.PyArray_NDIM(array) == 1
        and cnp.PyArray_DIM(array, 0) == 4
        and cnp.PyArray_IS_C_CONTIGUOUS(array)
        and cnp.PyArray_ISBEHAVED_RO(array)
    )


cdef bint record_draw(Recording frozen, RandomDraw action, PyObject **store) except -1:
    """Record a draw as the call of a kernel; False if it may fail."""
    cdef Call *call = frozen._new_call(KERNEL)
    cdef int state = action._arguments[0]
    cdef int64_t *count
    if action._parameter >= 0 or frozen._place_of[state] < 0 or not is_state(store[state]):
        return False
    if not frozen._name_output(action._state, -1, store):
        return False
    if not frozen._name_output(action._numbers, action._into, store):
        return False
    count = <int64_t *>frozen._new(sizeof(int64_t))
    count[0] = cnp.PyArray_SIZE(<cnp.ndarray>store[action._numbers])
    call.code, call.n_arrays, call.shape, call.threads = &action._code, 3, count, 1
    call.data = <char **>frozen._new(3 * sizeof(char *))
    call.places = <int *>frozen._new(3 * sizeof(int))
    call.places[0] = frozen._place_of[state]
    call.places[1] = frozen._place_of[action._state]
    call.places[2] = frozen._place_of[action._numbers]
    frozen._work += count[0] * WORK_OF_DRAW
    return True
