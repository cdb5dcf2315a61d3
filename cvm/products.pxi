# Products of any dtype and layout, of stacks of matrices, and of many matrices: by BLAS where it
# knows the dtype, else by loops.

cdef extern from "products.h" nogil:
    enum:
        MOST_FACTORS

    ctypedef void product_function(
        int64_t n, int64_t k, int64_t m, const char *a, int64_t a_down, int64_t a_along,
        const char *b, int64_t b_down, int64_t b_along, char *out
    ) noexcept

    product_function *function_that_multiplies(char kind, int64_t size)
    void best_order(int n, const int64_t *length, int *order)

# The numbers of complex dtypes are passed by their addresses.
ctypedef void (*ComplexGemm)(
    char *, char *, blas_int *, blas_int *, blas_int *, void *, void *, blas_int *, void *,
    blas_int *, void *, void *, blas_int *
) noexcept nogil
ctypedef void (*ComplexGemv)(
    char *, blas_int *, blas_int *, void *, void *, blas_int *, void *, blas_int *, void *, void *,
    blas_int *
) noexcept nogil

cdef ComplexGemm cgemm = NULL
cdef ComplexGemm zgemm = NULL
cdef ComplexGemv cgemv = NULL
cdef ComplexGemv zgemv = NULL


cdef int find_complex_routines() except -1:
    global cgemm, zgemm, cgemv, zgemv
    find_routines()
    if zgemm == NULL:
        cgemm = <ComplexGemm>routine("cgemm")
        cgemv = <ComplexGemv>routine("cgemv")
        zgemv = <ComplexGemv>routine("zgemv")
        zgemm = <ComplexGemm>routine("zgemm")
    return 0


cdef struct Operand:
    # A stack of matrices: from one row, column and matrix to the next in bytes.
    char *data
    cnp.npy_intp count, rows, columns, down, along, each


cdef void read_operand(cnp.ndarray x, bint turned, bint is_column, Operand *found) noexcept:
    """An array of one to three axes; a vector is a row unless it is a column."""
    cdef int ndim = cnp.PyArray_NDIM(x), itemsize = cnp.PyArray_ITEMSIZE(x)
    found.data = cnp.PyArray_BYTES(x)
    found.count, found.each = 1, 0
    found.rows, found.down = 1, itemsize
    found.columns, found.along = 1, itemsize
    if ndim > 1:
        found.rows, found.down = cnp.PyArray_DIM(x, ndim - 2), cnp.PyArray_STRIDE(x, ndim - 2)
        found.columns, found.along = cnp.PyArray_DIM(x, ndim - 1), cnp.PyArray_STRIDE(x, ndim - 1)
    elif is_column:
        found.rows, found.down = cnp.PyArray_DIM(x, 0), cnp.PyArray_STRIDE(x, 0)
    else:
        found.columns, found.along = cnp.PyArray_DIM(x, 0), cnp.PyArray_STRIDE(x, 0)
    if ndim == 3:
        found.count, found.each = cnp.PyArray_DIM(x, 0), cnp.PyArray_STRIDE(x, 0)
    if turned:
        found.rows, found.columns = found.columns, found.rows
        found.down, found.along = found.along, found.down


cdef bint is_of_blas(int kind) noexcept nogil:
    return kind in (cnp.NPY_FLOAT32, cnp.NPY_FLOAT64, cnp.NPY_COMPLEX64, cnp.NPY_COMPLEX128)


cdef cnp.ndarray operand(
    PyObject *value, int kind, bint turned, bint is_column, Operand *found
):
    """The array of a slot, or a copy of it that can be multiplied; None if it has no numbers."""
    cdef Matrix matrix
    cdef cnp.ndarray x = plain(value)
    if x is None or not 1 <= cnp.PyArray_NDIM(x) <= 3:
        return None
    if cnp.PyArray_TYPE(x) != kind:
        x = cnp.PyArray_Cast(x, kind)
    read_operand(x, turned, is_column, found)
    if is_of_blas(kind) and found.rows and found.columns and not lay_out(
        found.data, found.rows, found.columns, found.down, found.along,
        cnp.PyArray_ITEMSIZE(x), &matrix
    ):
        x = in_c_order(x)
        read_operand(x, turned, is_column, found)
    return x


cdef struct Factors:
    # Of a product and of what it is added to: as numbers of both complex types.
    double wide[2][2]
    float narrow[2][2]


cdef void read_factor(PyObject *value, double otherwise, double *wide, float *narrow) noexcept:
    """A number of a float or complex dtype; NULL for ``otherwise``."""
    cdef int kind
    cdef char *data
    wide[0], wide[1] = otherwise, 0
    if value != NULL:
        kind = cnp.PyArray_TYPE(<cnp.ndarray>value)
        data = cnp.PyArray_BYTES(<cnp.ndarray>value)
        if kind == cnp.NPY_FLOAT32:
            wide[0] = (<float *>data)[0]
        elif kind == cnp.NPY_FLOAT64:
            wide[0] = (<double *>data)[0]
        elif kind == cnp.NPY_COMPLEX64:
            wide[0], wide[1] = (<float *>data)[0], (<float *>data)[1]
        else:
            wide[0], wide[1] = (<double *>data)[0], (<double *>data)[1]
    narrow[0], narrow[1] = <float>wide[0], <float>wide[1]


cdef bint is_zero(double *number) noexcept nogil:
    return number[0] == 0 and number[1] == 0


cdef void multiply_all(
    int kind, int itemsize, product_function *loops, Operand *a, Operand *b, char *z, Factors *by
) noexcept nogil:
    """z <- beta z + alpha a b for all matrices of the stacks; those of z lie in C order."""
    cdef cnp.npy_intp i
    cdef cnp.npy_intp size = a.rows * b.columns * itemsize
    cdef Matrix left, right
    for i in range(a.count):
        if loops != NULL:
            loops(
                a.rows, a.columns, b.columns, a.data + i * a.each, a.down, a.along,
                b.data + i * b.each, b.down, b.along, z + i * size
            )
            continue
        lay_out(a.data + i * a.each, a.rows, a.columns, a.down, a.along, itemsize, &left)
        lay_out(b.data + i * b.each, b.rows, b.columns, b.down, b.along, itemsize, &right)
        if kind == cnp.NPY_COMPLEX64 or kind == cnp.NPY_COMPLEX128:
            multiply_complex(kind, &left, &right, z + i * size, by)
        elif <double>a.rows * a.columns * b.columns > FEW_PRODUCTS:
            multiply(kind, &left, &right, z + i * size, by.wide[0][0], by.wide[1][0])
        elif kind == cnp.NPY_FLOAT32:
            multiply_few[float](
                <float *>left.data, <float *>right.data, <float *>(z + i * size), &left, &right,
                by.narrow[0][0], by.narrow[1][0]
            )
        else:
            multiply_few[double](
                <double *>left.data, <double *>right.data, <double *>(z + i * size), &left,
                &right, by.wide[0][0], by.wide[1][0]
            )


cdef void multiply_complex(int kind, Matrix *a, Matrix *b, char *z, Factors *by) noexcept nogil:
    """z <- beta z + alpha a b, z in C order."""
    cdef blas_int n = a.rows, k = a.columns, m = b.columns, one = 1
    cdef blas_int step, columns
    cdef char no = b"N"
    cdef char yes = b"T"
    cdef bint narrow = kind == cnp.NPY_COMPLEX64
    cdef void *alpha = <void *>by.narrow[0] if narrow else <void *>by.wide[0]
    cdef void *beta = <void *>by.narrow[1] if narrow else <void *>by.wide[1]
    # A matrix in C order is its transpose to BLAS, so that z^T = b^T a^T is computed.
    if m == 1:
        columns, step = (n if a.transposed else k), (1 if b.transposed else b.ld)
        (cgemv if narrow else zgemv)(
            &no if a.transposed else &yes, &columns, &k if a.transposed else &n, alpha, a.data,
            &a.ld, b.data, &step, beta, z, &one
        )
    elif n == 1:
        columns, step = (k if b.transposed else m), (a.ld if a.transposed else 1)
        (cgemv if narrow else zgemv)(
            &yes if b.transposed else &no, &columns, &m if b.transposed else &k, alpha, b.data,
            &b.ld, a.data, &step, beta, z, &one
        )
    else:
        (cgemm if narrow else zgemm)(
            &yes if b.transposed else &no, &yes if a.transposed else &no, &m, &n, &k, alpha,
            b.data, &b.ld, a.data, &a.ld, beta, z, &m
        )


cdef cnp.ndarray multiplied(int kind, int ndim, Operand *a, Operand *b, cnp.ndarray z, Factors *by):
    """The product of stacks of matrices, left in z if that is given; None if they do not fit."""
    cdef cnp.npy_intp lengths[3]
    cdef int at = 0
    cdef product_function *loops = NULL
    if a.columns != b.rows or a.count != b.count:
        return None
    if ndim == 3:
        lengths[0], at = a.count, 1
    lengths[at], lengths[at + 1 if at < 2 else at] = a.rows, b.columns
    if ndim == 1 and a.rows == 1:
        lengths[0] = b.columns
    if z is None:
        z = cnp.PyArray_EMPTY(ndim, lengths, kind, 0)
    if not is_of_blas(kind):
        loops = function_that_multiplies(kind_of(z), cnp.PyArray_ITEMSIZE(z))
        if loops == NULL:
            return None
    if not cnp.PyArray_SIZE(z):
        return z
    if not a.columns:
        if is_zero(by.wide[1]):
            memset(cnp.PyArray_DATA(z), 0, cnp.PyArray_NBYTES(z))
            return z
        return None
    work = <double>a.count * a.rows * a.columns * b.columns
    if work < WORTH_RELEASING:
        multiply_all(kind, cnp.PyArray_ITEMSIZE(z), loops, a, b, cnp.PyArray_BYTES(z), by)
    else:
        with nogil:
            multiply_all(kind, cnp.PyArray_ITEMSIZE(z), loops, a, b, cnp.PyArray_BYTES(z), by)
    return z


cdef int work_kind(int kind) noexcept:
    """The dtype in which products are computed: float16 is multiplied and added up in float32."""
    return cnp.NPY_FLOAT32 if kind == cnp.NPY_FLOAT16 else kind


cdef class Multiplied(Native):
    """z = beta c + alpha op(a) op(b) for all dtypes and layouts, also of stacks of matrices.

    The parameters are those of ``Product``; c and the factors are for those dtypes alone that BLAS
    knows.
    """

    cdef int _c, _alpha, _a, _b, _beta, _into, _type, _ndim
    cdef bint _trans_a, _trans_b, _outer

    def __cinit__(
        self, compute, arguments, outputs, several, int ndim, int c, int alpha, int a, int b,
        int beta, transposed, bint outer, int overwritten, dtype
    ):
        self._ndim = ndim
        self._c, self._alpha, self._a, self._b, self._beta = c, alpha, a, b, beta
        self._trans_a, self._trans_b = transposed
        self._outer = outer
        self._into = overwritten
        self._type = np.dtype(dtype).num
        find_complex_routines()

    cdef bint _try(self, PyObject **store) except -1:
        cdef Operand a, b
        cdef Factors by
        cdef int slot, kind = work_kind(self._type)
        cdef cnp.ndarray left, right, z
        for slot in (self._c, self._alpha, self._beta):
            if slot >= 0 and (
                plain(store[slot]) is None
                or cnp.PyArray_TYPE(<cnp.ndarray>store[slot]) != self._type
                or not is_of_blas(self._type)
            ):
                return False
        left = operand(store[self._a], kind, self._trans_a, self._outer, &a)
        right = operand(store[self._b], kind, self._trans_b, not self._outer, &b)
        if left is None or right is None:
            return False
        self._read_factors(store, &by)
        if is_zero(by.wide[0]):
            return False
        z = self._start(store, left, right, &a, &b, &by)
        if self._c >= 0 and z is None:
            return False
        z = multiplied(kind, self._ndim, &a, &b, z, &by)
        if z is None:
            return False
        if kind != self._type:
            z = cnp.PyArray_Cast(z, self._type)
        put(store, self._outputs[0], z)
        return True

    cdef void _read_factors(self, PyObject **store, Factors *by) noexcept:
        cdef PyObject *alpha = store[self._alpha] if self._alpha >= 0 else NULL
        cdef PyObject *beta = store[self._beta] if self._beta >= 0 else NULL
        read_factor(alpha, 1, by.wide[0], by.narrow[0])
        read_factor(beta, 1 if self._c >= 0 else 0, by.wide[1], by.narrow[1])

    cdef cnp.ndarray _start(
        self, PyObject **store, cnp.ndarray left, cnp.ndarray right, Operand *a, Operand *b,
        Factors *by
    ):
        """The array that is written, holding c where that is read; None: a new one."""
        cdef cnp.npy_intp lengths[3]
        cdef cnp.ndarray z = None, c
        cdef int at = self._ndim == 3
        lengths[0] = a.count
        lengths[at] = b.columns if self._ndim == 1 and a.rows == 1 else a.rows
        if self._ndim > 1:
            lengths[at + 1] = b.columns
        if self._into >= 0:
            z = fitting(store[self._into], self._type, self._ndim, lengths)
        c = <cnp.ndarray>store[self._c] if self._c >= 0 else None
        if z is not None and (
            not cnp.PyArray_IS_C_CONTIGUOUS(z)
            or overlap(z, left)
            or overlap(z, right)
            or c is not None and c is not z and overlap(z, c)
        ):
            z = None
        if c is None:
            return z
        if not has_lengths(c, self._ndim, lengths):
            return None
        if z is None:
            z = cnp.PyArray_EMPTY(self._ndim, lengths, self._type, 0)
        if not is_zero(by.wide[1]) and c is not z:
            cnp.PyArray_CopyInto(z, c)
        return z


cdef class Chain(Native):
    """The product of several matrices, the first and the last of which may be vectors, in the order
    of fewest multiplications for their lengths.

    Parameters
    ----------
    compute, arguments, outputs, several
        As of ``Native``; the arguments are the factors.
    written : sequence of (int, int)
        The order as it was written, for matrices of which one is empty: what each product takes,
        by number; products are numbered after the factors.
    dtype : numpy.dtype
        Of all factors.
    """

    cdef int _type
    cdef int *_written
    cdef int _order[2 * MOST_FACTORS]           # for these lengths:
    cdef int64_t _lengths[MOST_FACTORS + 1]

    def __cinit__(self, compute, arguments, outputs, several, written, dtype):
        if self._n_arguments > MOST_FACTORS:
            raise ValueError(f"a chain takes at most {MOST_FACTORS} matrices")
        if len(written) != self._n_arguments - 1:
            raise ValueError(f"{len(written)} products of {self._n_arguments} matrices")
        for i, pair in enumerate(written):
            for k in pair:
                checked(k, 0, self._n_arguments + i - 1, "a factor")
        self._type = np.dtype(dtype).num
        self._written = numbers([k for pair in written for k in pair])
        self._lengths[0] = -1
        find_complex_routines()

    def __dealloc__(self):
        PyMem_Free(self._written)

    cdef bint _try(self, PyObject **store) except -1:
        cdef int64_t lengths[MOST_FACTORS + 1]
        cdef int order[2 * MOST_FACTORS]
        cdef int i, n = self._n_arguments, kind = work_kind(self._type)
        cdef cnp.ndarray x
        cdef list values = []
        for i in range(n):
            x = plain(store[self._slots[i]])
            if x is None or cnp.PyArray_TYPE(x) != self._type:
                return False
            if not 1 <= cnp.PyArray_NDIM(x) <= 2 or 0 < i < n - 1 and cnp.PyArray_NDIM(x) == 1:
                return False
            values.append(x)
        if not self._read_lengths(values, lengths):
            return False
        # By value: another thread may call with other lengths.
        self._plan(lengths, order)
        for i in range(n - 1):
            x = product_of_two(kind, values[order[2 * i]], values[order[2 * i + 1]])
            if x is None:
                return False
            values.append(x)
        x = values[2 * n - 2]
        put(store, self._outputs[0], x if kind == self._type else cnp.PyArray_Cast(x, self._type))
        return True

    cdef bint _read_lengths(self, list values, int64_t *lengths) noexcept:
        """Rows of the first, columns of each; False if they do not fit."""
        cdef int i, n = self._n_arguments
        cdef cnp.ndarray x = <cnp.ndarray>values[0]
        lengths[0] = cnp.PyArray_DIM(x, 0) if cnp.PyArray_NDIM(x) == 2 else 1
        lengths[1] = cnp.PyArray_DIM(x, cnp.PyArray_NDIM(x) - 1)
        for i in range(1, n):
            x = <cnp.ndarray>values[i]
            if cnp.PyArray_DIM(x, 0) != lengths[i]:
                return False
            lengths[i + 1] = cnp.PyArray_DIM(x, 1) if cnp.PyArray_NDIM(x) == 2 else 1
        return True

    cdef void _plan(self, int64_t *lengths, int *order) noexcept:
        cdef int i, n = self._n_arguments
        cdef bint known = True
        for i in range(n + 1):
            if lengths[i] == 0:
                memcpy(order, self._written, 2 * (n - 1) * sizeof(int))
                return
            known = known and lengths[i] == self._lengths[i]
        if not known:
            best_order(n, lengths, self._order)
            memcpy(self._lengths, lengths, (n + 1) * sizeof(int64_t))
        memcpy(order, self._order, 2 * (n - 1) * sizeof(int))


cdef cnp.ndarray product_of_two(int kind, cnp.ndarray x, cnp.ndarray y):
    """The product of a vector or matrix with another."""
    cdef Operand a, b
    cdef Factors by
    read_factor(NULL, 1, by.wide[0], by.narrow[0])
    read_factor(NULL, 0, by.wide[1], by.narrow[1])
    x = operand(<PyObject *>x, kind, False, False, &a)
    y = operand(<PyObject *>y, kind, False, True, &b)
    if x is None or y is None:
        return None
    return multiplied(kind, cnp.PyArray_NDIM(x) + cnp.PyArray_NDIM(y) - 2, &a, &b, None, &by)
