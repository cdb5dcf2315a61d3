# The values that an input accepts as they are.

cdef struct Accepted:
    # Arrays that are accepted without conversion.
    int number          # of the dtype; -1: Python looks at every value
    int ndim
    bint strict
    bint is_written     # whether the program may write into it
    const SparseKind *sparse    # of a type of sparse matrices; else NULL
    PyObject *device            # of a type of arrays on devices, its DeviceValues; else NULL
    cnp.npy_intp lengths[16]    # -1: any


cdef int describe(
    Accepted *kind, object tensor, object values, bint strict, bint is_written
) except -1:
    """Read a type of tensors, or what the values of another one are; if that is None, Python knows what fits."""
    cdef int axis
    kind.number, kind.ndim, kind.strict, kind.is_written = -1, 0, strict, is_written
    kind.sparse, kind.device = NULL, NULL
    if isinstance(values, SparseValues):
        kind.sparse = &(<SparseValues>values).kind
    elif isinstance(values, DeviceValues):
        kind.device = <PyObject *>values
    if type(tensor) is not TensorType or tensor.ndim > MOST_AXES:
        return 0
    kind.number, kind.ndim = tensor.numpy_dtype.num, tensor.ndim
    for axis in range(kind.ndim):
        length = tensor.shape[axis]
        kind.lengths[axis] = -1 if length is None else length
    return 0


cdef bint fits(Accepted *kind, object value) noexcept:
    """Tell whether a value is accepted without conversion."""
    cdef int axis
    cdef cnp.ndarray array
    if kind.device != NULL:
        return isinstance(value, DeviceArrayBase) and (<DeviceValues>kind.device).fit(<DeviceArrayBase>value)
    if not cnp.PyArray_CheckExact(value):
        return kind.sparse != NULL and not kind.strict and fits_sparse(
            kind.sparse, <PyObject *>value
        )
    array = <cnp.ndarray>value
    if cnp.PyArray_TYPE(array) != kind.number or cnp.PyArray_NDIM(array) != kind.ndim:
        return False
    for axis in range(kind.ndim):
        if kind.lengths[axis] >= 0 and cnp.PyArray_DIM(array, axis) != kind.lengths[axis]:
            return False
    return not cnp.PyArray_ISBYTESWAPPED(array)


cdef void find_stretch(cnp.ndarray array, char **first, char **end) noexcept:
    """Find the memory that the elements of an array lie in."""
    cdef int axis
    cdef cnp.npy_intp step
    first[0] = <char *>cnp.PyArray_DATA(array)
    end[0] = first[0] + cnp.PyArray_ITEMSIZE(array)
    for axis in range(cnp.PyArray_NDIM(array)):
        if cnp.PyArray_DIM(array, axis) == 0:
            end[0] = first[0]
            return
        step = (cnp.PyArray_DIM(array, axis) - 1) * cnp.PyArray_STRIDE(array, axis)
        if step < 0:
            first[0] += step
        else:
            end[0] += step


cdef bint may_be_overwritten(int which, PyObject **values, int n) noexcept:
    """Tell whether an input can be written into: an array in C order that overlaps no other input.
    """
    cdef char *first
    cdef char *end
    cdef char *other_first
    cdef char *other_end
    cdef int i
    if not cnp.PyArray_CheckExact(<object>values[which]) or not cnp.PyArray_ISCARRAY(
        <cnp.ndarray>values[which]
    ):
        return False
    find_stretch(<cnp.ndarray>values[which], &first, &end)
    for i in range(n):
        if i == which:
            continue
        if not cnp.PyArray_CheckExact(<object>values[i]):
            return False
        find_stretch(<cnp.ndarray>values[i], &other_first, &other_end)
        if first < other_end and other_first < end:
            return False
    return True
