# Decompositions, inverses and systems of matrices, by LAPACK (see decompositions.h).

cdef extern from "lapack.h" nogil:
    int blas_int_is_wide
    int ROUTINES
    void *routine_of[][4]

cdef extern from "refined.h" nogil:
    enum:
        MOST_INPUTS
        MOST_OUTPUTS
        FOUND
        FAILED
        NO_MEMORY
        SINGLE
        DOUBLE
        SINGLE_COMPLEX
        DOUBLE_COMPLEX

    enum:
        LARGEST_REFINED
        MOST_SPREAD

    struct stack:
        char *data
        int64_t rows, columns, down, along, each

    struct decomposition:
        int kind
        int wide
        int lower
        int option
        int n_given
        double rcond
        int64_t count
        stack given[MOST_INPUTS]
        stack found[MOST_OUTPUTS]

    ctypedef struct arena
    ctypedef int decompose(const decomposition *, arena *)

    int call_decomposition(decompose *function, const decomposition *)

    decompose *decomposition_named(const char *name)


# In the order of lapack.h; of some, those of complex numbers have other names.
LAPACK_ROUTINES = (
    "gemm", "trsm", "trsv", "getrf", "gesv", "potrf", "posv", "sysv", "hesv", "geqrf", "orgqr",
    "syevd", "geev", "gesdd", "gelsd",
)
OF_COMPLEX = {"orgqr": "ungqr", "syevd": "heevd"}
OF_BLAS = ("gemm", "trsm", "trsv")
# Those of refined.h and factored.h, which the ops have, too.
REFINED_CONSTANTS = {"LARGEST": LARGEST_REFINED, "SPREAD": MOST_SPREAD}
cdef bint lapack_is_found = False


cdef int find_lapack() except -1:
    """The addresses of all routines."""
    global lapack_is_found, blas_int_is_wide
    cdef int i, kind
    if lapack_is_found:
        return 0
    assert len(LAPACK_ROUTINES) == ROUTINES
    for i, name in enumerate(LAPACK_ROUTINES):
        for kind, letter in enumerate("sdcz"):
            if name == "hesv" and letter in "sd":
                continue
            own = OF_COMPLEX.get(name, name) if letter in "cz" else name
            routine_of[i][kind] = routine(letter + own, "blas" if name in OF_BLAS else "lapack")
    blas_int_is_wide = library_of_numpy() is not None
    lapack_is_found = True
    return 0


cdef int lapack_kind(int type) noexcept:
    """How a dtype is told to LAPACK; -1 for one that it does not know."""
    if type == cnp.NPY_FLOAT32:
        return SINGLE
    if type == cnp.NPY_FLOAT64:
        return DOUBLE
    if type == cnp.NPY_COMPLEX64:
        return SINGLE_COMPLEX
    return DOUBLE_COMPLEX if type == cnp.NPY_COMPLEX128 else -1


cdef bint read_stack(cnp.ndarray x, int core, stack *found) noexcept:
    """Read an array of matrices, or of vectors if ``core`` is 1; False if there is no one step from
    each to the next.
    """
    cdef int axis, depth = cnp.PyArray_NDIM(x) - core
    cdef int64_t each = 0, next = 0
    cdef bint is_first = True
    found.data = cnp.PyArray_BYTES(x)
    found.rows = found.columns = 1
    found.down = found.along = cnp.PyArray_ITEMSIZE(x)
    if core > 0:
        found.rows, found.down = cnp.PyArray_DIM(x, depth), cnp.PyArray_STRIDE(x, depth)
    if core > 1:
        found.columns = cnp.PyArray_DIM(x, depth + 1)
        found.along = cnp.PyArray_STRIDE(x, depth + 1)
    for axis in range(depth - 1, -1, -1):
        if cnp.PyArray_DIM(x, axis) == 1:
            continue
        if is_first:
            each, is_first = cnp.PyArray_STRIDE(x, axis), False
        elif cnp.PyArray_STRIDE(x, axis) != next:
            return False
        next = cnp.PyArray_STRIDE(x, axis) * cnp.PyArray_DIM(x, axis)
    found.each = each
    return True


cdef class Decomposition(Native):
    """What LAPACK finds of stacks of matrices.

    Parameters
    ----------
    compute, arguments, outputs, several
        As of ``Native``.
    name : str
        Of the function (see refined.h).
    order : sequence of int
        The arguments in the order in which it takes them, the matrices first.
    cores : sequence of int
        How many axes a matrix of each has; 1: a vector.
    shapes : sequence of str
        Of what is found of one matrix: a letter for each axis, m and n for rows and columns of the
        first argument, p for the less of them, k for the columns of the second; r for those of
        residuals, of which there are none if the rank, the result after them, is not n < m. Empty:
        the first argument is passed on.
    square : bool
        Whether the matrices must be.
    lower : bool
    option : int
    rcond : (float, float)
        A number, and one that is multiplied by the longer side.
    wide : bool
        Whether numbers of single precision are computed with in double precision.
    dtypes : sequence of numpy.dtype
        Of the first argument and the outputs.
    """

    cdef decompose *_function
    cdef int *_order
    cdef int _n_given
    cdef int *_cores
    cdef int *_types
    cdef list _shapes
    cdef bint _square, _lower
    cdef int _option, _kind, _residuals
    cdef bint _wide
    cdef double _rcond, _rcond_of_side

    def __cinit__(
        self, compute, arguments, outputs, several, str name, order, cores, shapes, bint square,
        bint lower, int option, rcond, bint wide, dtypes
    ):
        find_lapack()
        self._function = decomposition_named(name.encode())
        if self._function == NULL:
            raise ValueError(f"no function decomposes by {name}")
        self._order, self._cores = numbers(order), numbers(cores)
        self._n_given = len(order)
        self._types = numbers([np.dtype(d).num for d in dtypes])
        self._shapes = [shape.encode() for shape in shapes]
        self._square, self._lower, self._option = square, lower, option
        self._rcond, self._rcond_of_side = rcond
        self._kind = lapack_kind(self._types[0])
        if self._kind < 0:
            raise ValueError(f"LAPACK does not know the dtype {dtypes[0]}")
        self._wide = wide and self._kind in (SINGLE, SINGLE_COMPLEX)
        self._residuals = shapes.index("r") if "r" in shapes else -1

    def __dealloc__(self):
        PyMem_Free(self._order)
        PyMem_Free(self._cores)
        PyMem_Free(self._types)

    cdef bint _try(self, PyObject **store) except -1:
        cdef decomposition d
        cdef int i, outcome
        cdef int64_t rank
        cdef cnp.ndarray z
        cdef list kept = [], found = []
        if not self._read(store, &d, kept):
            return False
        for i in range(len(self._shapes)):
            z = self._output(kept, &d, i)
            read_stack(z, len(self._shapes[i]), &d.found[i])
            found.append(z)
        if self.work(&d) < WORTH_RELEASING:
            outcome = call_decomposition(self._function, &d)
        else:
            with nogil:
                outcome = call_decomposition(self._function, &d)
        if outcome == NO_MEMORY:
            raise MemoryError("no memory to decompose a matrix")
        if outcome == FAILED:
            return False
        if self._residuals >= 0:
            z = found[self._residuals + 1]
            rank = (<int64_t *>cnp.PyArray_DATA(z))[0]
            if d.given[0].rows <= d.given[0].columns or rank != d.given[0].columns:
                found[self._residuals] = found[self._residuals][:0]
        if not found:
            put(store, self._outputs[0], <object>store[self._slots[0]])
        for i in range(len(found)):
            put(store, self._outputs[i], found[i])
        return True

    cdef bint _read(self, PyObject **store, decomposition *d, list kept) except -1:
        """The inputs; those that are copied, as matrices do not follow one another, are ``kept``,
        too. False if they are not as they should be.
        """
        cdef int i, axis, depth = 0
        cdef cnp.ndarray x, first = None
        d.kind, d.wide, d.lower, d.option = (
            self._kind + self._wide, self._wide, self._lower, self._option
        )
        d.rcond, d.count, d.n_given = self._rcond, 1, self._n_given
        for i in range(self._n_given):
            x = plain(store[self._slots[self._order[i]]])
            if x is None or cnp.PyArray_TYPE(x) != self._types[0] or cnp.PyArray_SIZE(x) == 0:
                return False
            if cnp.PyArray_NDIM(x) < self._cores[i]:
                return False
            if not read_stack(x, self._cores[i], &d.given[i]):
                x = in_c_order(x)
                read_stack(x, self._cores[i], &d.given[i])
            kept.append(x)
            if i == 0:
                first, depth = x, cnp.PyArray_NDIM(x) - self._cores[0]
            if cnp.PyArray_NDIM(x) - self._cores[i] != depth:
                return False
            if d.given[i].rows != d.given[0].rows:
                return False
            for axis in range(depth):
                if cnp.PyArray_DIM(x, axis) != cnp.PyArray_DIM(first, axis):
                    return False
        for axis in range(depth):
            d.count *= cnp.PyArray_DIM(first, axis)
        d.rcond += self._rcond_of_side * max(d.given[0].rows, d.given[0].columns)
        return not self._square or d.given[0].rows == d.given[0].columns

    cdef cnp.ndarray _output(self, list kept, decomposition *d, int i):
        """A new array for a result."""
        cdef cnp.npy_intp lengths[MOST_AXES]
        cdef bytes shape = self._shapes[i]
        cdef cnp.ndarray first = <cnp.ndarray>kept[0]
        cdef int axis, depth = cnp.PyArray_NDIM(first) - self._cores[0]
        cdef int64_t m = d.given[0].rows, n = d.given[0].columns
        cdef char letter
        for axis in range(depth):
            lengths[axis] = cnp.PyArray_DIM(first, axis)
        for letter in shape:
            lengths[depth] = (
                m if letter == c"m" else n if letter == c"n" else min(m, n) if letter == c"p"
                else d.given[1].columns
            )
            depth += 1
        return cnp.PyArray_EMPTY(depth, lengths, self._types[1 + i], 0)

    cdef double work(self, decomposition *d) noexcept:
        """About how many operations it takes."""
        return (
            <double>d.count * d.given[0].rows * d.given[0].columns
            * min(d.given[0].rows, d.given[0].columns)
        )
