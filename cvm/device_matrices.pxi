# Sparse matrices on devices, and functions in C from them to their arrays and back.

@cython.auto_pickle(False)
cdef class PatternBase:
    """The indices and pointers of matrices on a device.

    Attributes
    ----------
    indices, indptr : DeviceArrayBase
    shape : tuple of int
    n_minor : int
        The length of the axis that indices count along.
    transpose : tuple of DeviceArrayBase, or None
        Of the pattern, once it was computed: for each entry its place here, its indices and its pointers.
    products : mapping or None
        The patterns of products with other patterns, once there are any.
    """

    cdef readonly object indices, indptr
    cdef readonly tuple shape
    cdef readonly int64_t n_minor
    cdef public tuple transpose
    cdef public object products

    def __init__(self, indices, indptr, tuple shape, int64_t n_minor):
        self.indices, self.indptr, self.shape, self.n_minor = indices, indptr, shape, n_minor


@cython.auto_pickle(False)
cdef class MatrixBase:
    """A sparse matrix on a device.

    Attributes
    ----------
    kind : SparseType
        Of the same matrix on the host.
    data : DeviceArrayBase
    pattern : PatternBase
    transposed_entries : DeviceArrayBase or None
        ``data`` in the order of the transpose, once it was brought into that.
    """

    cdef readonly object kind, data
    cdef readonly PatternBase pattern
    cdef public object transposed_entries

    def __init__(self, kind, data, PatternBase pattern):
        self.kind, self.data, self.pattern = kind, data, pattern


@cython.final
@cython.auto_pickle(False)
cdef class MatrixParts:
    """The function from a matrix to its data, indices, pointers, and lengths on the host."""

    def __call__(self, MatrixBase x not None):
        """Return the arrays; the device is not waited for."""
        cdef PatternBase pattern = x.pattern
        return x.data, pattern.indices, pattern.indptr, np.array(pattern.shape, np.int64)


@cython.final
@cython.auto_pickle(False)
cdef class MatrixOfEntries:
    """The function from a matrix, and other entries, to the matrix with these.

    Parameters
    ----------
    refuse : callable
        Raises the error of entries of another number.
    """

    cdef object _refuse

    def __init__(self, refuse):
        self._refuse = refuse

    def __call__(self, MatrixBase x not None, DeviceArrayBase data not None):
        """Return the matrix, which shares the pattern."""
        if data.shape != (<DeviceArrayBase>x.pattern.indices).shape:
            self._refuse(x, data)
        return new_matrix(type(x), x.kind, data, x.pattern)


@cython.final
@cython.auto_pickle(False)
cdef class MatrixOfParts:
    """The function from the arrays of a matrix, and its lengths on the host, to the matrix.

    Parameters
    ----------
    kind : SparseType
    minor_axis : int
        That indices count along.
    matrix_type, pattern_type : type
        Subclasses of MatrixBase and PatternBase.
    refuse : callable
        Raises the error of entries of another number.
    """

    cdef object _kind, _refuse
    cdef type _matrix_type, _pattern_type
    cdef Py_ssize_t _minor_axis

    def __init__(self, kind, Py_ssize_t minor_axis, type matrix_type, type pattern_type, refuse):
        self._kind, self._minor_axis, self._refuse = kind, minor_axis, refuse
        self._matrix_type, self._pattern_type = matrix_type, pattern_type

    def __call__(self, DeviceArrayBase data not None, DeviceArrayBase indices not None, indptr, shape):
        """Return the matrix, of these arrays."""
        cdef PatternBase pattern = self._pattern_type.__new__(self._pattern_type)
        if data.shape != indices.shape:
            self._refuse(data, indices, indptr, shape)
        pattern.indices, pattern.indptr, pattern.shape = indices, indptr, tuple(shape.tolist())
        pattern.n_minor = pattern.shape[self._minor_axis]
        return new_matrix(self._matrix_type, self._kind, data, pattern)


cdef object new_matrix(type matrix_type, kind, data, PatternBase pattern):
    cdef MatrixBase found = matrix_type.__new__(matrix_type)
    found.kind, found.data, found.pattern = kind, data, pattern
    return found


@cython.final
@cython.auto_pickle(False)
cdef class MatrixTransposed:
    """The function from a matrix to the pattern of its transpose, or to its entries in that order.

    Parameters
    ----------
    of_entries : bool
    compute : callable
        The same of a matrix for which it was not computed yet, and which keeps it.
    """

    cdef bint _of_entries
    cdef object _compute

    def __init__(self, bint of_entries, compute):
        self._of_entries, self._compute = of_entries, compute

    def __call__(self, MatrixBase x not None):
        """Return the arrays."""
        found = x.transposed_entries if self._of_entries else x.pattern.transpose
        return self._compute(x) if found is None else found
