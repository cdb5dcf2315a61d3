# Products of matrices and vectors, by the BLAS that SciPy has, or NumPy (see blas_library.py).

cdef extern from "blas_int.h":
    ctypedef int64_t blas_int

cdef extern from "Python.h":
    void *PyCapsule_GetPointer(object capsule, const char *name) except NULL
    const char *PyCapsule_GetName(object capsule) except NULL

cdef extern from "row_products.h" nogil:
    const int LARGEST_MATRIX, AVX2
    int row_product_level()
    void row_times_f(
        int level, int64_t k, int64_t m, float alpha, const float *x, int64_t step, const float *w,
        int64_t ld, float beta, float *z
    )
    void row_times_d(
        int level, int64_t k, int64_t m, double alpha, const double *x, int64_t step,
        const double *w, int64_t ld, double beta, double *z
    )
    void thin_f(
        int level, int64_t n, int64_t k, int64_t m, float alpha, const float *a, int64_t down,
        int64_t along, const float *b, int64_t ld, float beta, float *z
    )
    void thin_d(
        int level, int64_t n, int64_t k, int64_t m, double alpha, const double *a, int64_t down,
        int64_t along, const double *b, int64_t ld, double beta, double *z
    )
    void thin_transposed_f(
        int level, int64_t n, int64_t k, int64_t m, float alpha, const float *a, int64_t lda,
        const float *w, int64_t ld, float beta, float *z
    )
    void thin_transposed_d(
        int level, int64_t n, int64_t k, int64_t m, double alpha, const double *a, int64_t lda,
        const double *w, int64_t ld, double beta, double *z
    )
    void times_column_f(
        int level, int64_t k, int64_t m, float alpha, const float *x, const float *w, int64_t ld,
        float beta, float *z
    )
    void times_column_d(
        int level, int64_t k, int64_t m, double alpha, const double *x, const double *w,
        int64_t ld, double beta, double *z
    )

# Which instructions the processor has for them; 0: none that they use.
cdef int LEVEL = row_product_level()

# So many products of two numbers take less time than a call of BLAS.
cdef enum:
    FEW_PRODUCTS = 64
    # Sides up to this are short; sums of up to so many terms are.
    SHORT = 64
    FEW_TERMS = 32
    # Without AVX-512 BLAS is faster from fewer on: of a matrix whose columns lie in one piece, and of
    # one of more than so many bytes (`benchmarks/thin_products.py`).
    SHORT_BY_COLUMNS = 10
    SHORT_OF_LARGE = 24
    LARGE_MATRIX = 2 << 20

ctypedef void (*Gemm64)(
    char *, char *, blas_int *, blas_int *, blas_int *, double *, double *, blas_int *, double *, blas_int *, double *,
    double *, blas_int *
) noexcept nogil
ctypedef void (*Gemm32)(
    char *, char *, blas_int *, blas_int *, blas_int *, float *, float *, blas_int *, float *, blas_int *, float *,
    float *, blas_int *
) noexcept nogil
ctypedef void (*Gemv64)(
    char *, blas_int *, blas_int *, double *, double *, blas_int *, double *, blas_int *, double *, double *, blas_int *
) noexcept nogil
ctypedef void (*Gemv32)(
    char *, blas_int *, blas_int *, float *, float *, blas_int *, float *, blas_int *, float *, float *, blas_int *
) noexcept nogil
ctypedef void (*Ger64)(
    blas_int *, blas_int *, double *, double *, blas_int *, double *, blas_int *, double *, blas_int *
) noexcept nogil
ctypedef void (*Ger32)(
    blas_int *, blas_int *, float *, float *, blas_int *, float *, blas_int *, float *, blas_int *
) noexcept nogil


# Found when the first product is made.
cdef Gemm64 dgemm = NULL
cdef Gemm32 sgemm = NULL
cdef Gemv64 dgemv = NULL
cdef Gemv32 sgemv = NULL
cdef Ger64 dger = NULL
cdef Ger32 sger = NULL


cdef int find_routines() except -1:
    global dgemm, sgemm, dgemv, sgemv, dger, sger
    if dgemm != NULL:
        return 0
    sgemm = <Gemm32>routine("sgemm")
    dgemv = <Gemv64>routine("dgemv")
    sgemv = <Gemv32>routine("sgemv")
    dger = <Ger64>routine("dger")
    sger = <Ger32>routine("sger")
    dgemm = <Gemm64>routine("dgemm")
    return 0


cdef void *routine(str name, str collection="blas") except NULL:
    """The address of a routine of BLAS or LAPACK."""
    cdef uintptr_t address
    library = library_of_numpy()
    if library is not None:
        address = ctypes.cast(getattr(library, f"scipy_{name}_64_"), ctypes.c_void_p).value
        return <void *>address
    capsule = import_alone("scipy", "linalg", f"cython_{collection}").__pyx_capi__[name]
    return PyCapsule_GetPointer(capsule, PyCapsule_GetName(capsule))


cdef struct Matrix:
    char *data
    int rows
    int columns
    blas_int ld     # from one row (column, if transposed) to the next, in elements
    bint transposed  # whether columns lie in one piece, and not rows


cdef bint as_matrix(
    cnp.ndarray x, bint exchanged, bint is_column, int itemsize, Matrix *found
):
    """Read an array of one or two axes as a matrix that BLAS takes; False if it is none."""
    cdef cnp.npy_intp rows, columns, down, along
    if not cnp.PyArray_ISBEHAVED_RO(x):
        return False
    if cnp.PyArray_NDIM(x) == 2:
        rows, columns = cnp.PyArray_DIM(x, 0), cnp.PyArray_DIM(x, 1)
        down, along = cnp.PyArray_STRIDE(x, 0), cnp.PyArray_STRIDE(x, 1)
        if exchanged:
            rows, columns, down, along = columns, rows, along, down
    elif cnp.PyArray_NDIM(x) == 1:
        rows, columns = cnp.PyArray_DIM(x, 0), 1
        down, along = cnp.PyArray_STRIDE(x, 0), itemsize
        if not is_column:
            rows, columns, down, along = columns, rows, along, down
    else:
        return False
    return lay_out(cnp.PyArray_BYTES(x), rows, columns, down, along, itemsize, found)


cdef bint lay_out(
    char *data, cnp.npy_intp rows, cnp.npy_intp columns, cnp.npy_intp down, cnp.npy_intp along,
    int itemsize, Matrix *found
) noexcept nogil:
    """Read elements that lie ``down`` and ``along`` bytes apart as a matrix that BLAS takes; False
    if they are none.
    """
    cdef cnp.npy_intp ld
    if rows <= 0 or columns <= 0 or rows > 2147483647 or columns > 2147483647:
        return False
    found.data = data
    found.rows, found.columns = <int>rows, <int>columns
    if along == itemsize or columns == 1 and down >= itemsize:
        # One column lies in one piece however it is read.
        found.transposed = False
        ld = down if rows > 1 else columns * itemsize
    elif down == itemsize or rows == 1 and along >= itemsize:
        found.transposed = True
        ld = along if columns > 1 else rows * itemsize
    else:
        return False
    if ld % itemsize or ld < 0 or ld // itemsize > 2147483647:
        return False
    found.ld = ld // itemsize
    return found.ld >= (rows if found.transposed else columns)


cdef class Multiplied(Native)


cdef class Product(Native):
    """z = beta c + alpha op(a) op(b), by BLAS, for float32 and float64; layouts that it does not
    take are left to ``Multiplied``.

    Parameters
    ----------
    compute, arguments, outputs, several
        As of ``Native``.
    ndim : int
        Of the result.
    c, alpha, a, b, beta : int
        Slots; -1: no c, and 1 for a factor.
    transposed : (bool, bool)
        Whether a and b are.
    outer : bool
        Whether a vector is a column as a and a row as b, not the other way round.
    overwritten : int
        The slot of the array that the result is left in; -1: a new one.
    dtype : numpy.dtype
    """

    cdef int _c, _alpha, _a, _b, _beta, _into, _type, _ndim
    cdef bint _trans_a, _trans_b, _outer
    cdef Multiplied _other_layouts

    def __cinit__(
        self, compute, arguments, outputs, several, int ndim, int c, int alpha, int a, int b,
        int beta, transposed, bint outer, int overwritten, dtype
    ):
        self._other_layouts = Multiplied(
            compute, arguments, outputs, several, ndim, c, alpha, a, b, beta, transposed, outer,
            overwritten, dtype
        )
        self._ndim = ndim
        self._c, self._alpha, self._a, self._b, self._beta = c, alpha, a, b, beta
        self._trans_a, self._trans_b = transposed
        self._outer = outer
        self._into = overwritten
        self._type = np.dtype(dtype).num
        find_routines()

    cdef int run(self, PyObject **store) except -1:
        if not self._try(store):
            self._other_layouts.run(store)
        return 0

    cdef bint _array(self, PyObject *value) noexcept:
        return (
            value != NULL
            and cnp.PyArray_Check(<object>value)
            and cnp.PyArray_TYPE(<cnp.ndarray>value) == self._type
        )

    cdef bint _fits(self, PyObject **store, int slot) noexcept:
        """Whether an argument is left out, or an array of the right dtype."""
        return slot < 0 or self._array(store[slot])

    cdef double _factor(self, PyObject **store, int slot, double otherwise) noexcept:
        if slot < 0:
            return otherwise
        if self._type == cnp.NPY_FLOAT32:
            return (<float *>cnp.PyArray_DATA(<cnp.ndarray>store[slot]))[0]
        return (<double *>cnp.PyArray_DATA(<cnp.ndarray>store[slot]))[0]

    cdef bint _try(self, PyObject **store) except -1:
        """Compute by BLAS; False if that is not possible."""
        cdef Matrix a, b
        cdef int itemsize = 4 if self._type == cnp.NPY_FLOAT32 else 8
        cdef double alpha, beta
        cdef cnp.ndarray z
        if not (self._fits(store, self._a) and self._fits(store, self._b)):
            return False
        if not (
            self._fits(store, self._c)
            and self._fits(store, self._alpha)
            and self._fits(store, self._beta)
        ):
            return False
        if not as_matrix(<cnp.ndarray>store[self._a], self._trans_a, self._outer, itemsize, &a):
            return False
        if not as_matrix(<cnp.ndarray>store[self._b], self._trans_b, not self._outer, itemsize, &b):
            return False
        alpha, beta = self._factor(store, self._alpha, 1.0), self._factor(store, self._beta, 1.0)
        if self._c < 0:
            beta = 0
        if a.columns != b.rows or alpha == 0:
            return False
        z = self._start(store, a.rows, b.columns, beta)
        if z is None:
            return False
        work = <double>a.rows * a.columns * b.columns
        if work <= FEW_PRODUCTS:
            multiply_few_of(self._type, &a, &b, cnp.PyArray_BYTES(z), alpha, beta)
        elif work < WORTH_RELEASING:
            multiply(self._type, &a, &b, cnp.PyArray_BYTES(z), alpha, beta)
        else:
            with nogil:
                multiply(self._type, &a, &b, cnp.PyArray_BYTES(z), alpha, beta)
        put(store, self._outputs[0], z)
        return True

    cdef bint takes(self, PyObject **store, int *slots):
        """The slots are those of c, alpha, a, b and beta."""
        cdef Matrix a, b
        cdef cnp.npy_intp lengths[2]
        cdef int i, itemsize = 4 if self._type == cnp.NPY_FLOAT32 else 8
        for i in range(5):
            if not self._fits(store, slots[i]):
                return False
        if not as_matrix(<cnp.ndarray>store[slots[2]], self._trans_a, self._outer, itemsize, &a):
            return False
        if not as_matrix(
            <cnp.ndarray>store[slots[3]], self._trans_b, not self._outer, itemsize, &b
        ):
            return False
        self._lengths(a.rows, b.columns, lengths)
        return a.columns == b.rows and has_lengths(
            <cnp.ndarray>store[slots[0]], self._ndim, lengths
        )

    cdef void _lengths(self, int rows, int columns, cnp.npy_intp *found) noexcept:
        """Of the result: a matrix, or a vector that is a row or a column of one."""
        found[0], found[1] = rows, columns
        if self._ndim == 1 and rows == 1:
            found[0] = columns

    cdef cnp.ndarray _start(self, PyObject **store, int rows, int columns, double beta):
        """The array that is written, holding c where that is read; None if it does not fit."""
        cdef cnp.npy_intp lengths[2]
        cdef cnp.ndarray z, c
        self._lengths(rows, columns, lengths)
        z = None
        if self._into >= 0:
            z = fitting(store[self._into], self._type, self._ndim, lengths)
            if z is not None and (not cnp.PyArray_IS_C_CONTIGUOUS(z) or self._shares(store, z)):
                return None
        if self._c >= 0:
            c = <cnp.ndarray>store[self._c]
            if not has_lengths(c, self._ndim, lengths):
                return None
        if z is None:
            z = cnp.PyArray_EMPTY(self._ndim, lengths, self._type, 0)
        if self._c >= 0 and beta != 0 and c is not z:
            cnp.PyArray_CopyInto(z, c)
        return z

    cdef bint _shares(self, PyObject **store, cnp.ndarray z):
        """Whether the array that is written might be read, too."""
        return (
            overlap(z, <cnp.ndarray>store[self._a])
            or overlap(z, <cnp.ndarray>store[self._b])
            or self._c >= 0 and self._into != self._c and overlap(z, <cnp.ndarray>store[self._c])
        )


cdef bint overlap(cnp.ndarray x, cnp.ndarray y) noexcept:
    """Whether the stretches of memory from first to last element meet."""
    cdef char *first[2]
    cdef char *last[2]
    stretch(x, &first[0], &last[0])
    stretch(y, &first[1], &last[1])
    return first[0] < last[1] and first[1] < last[0]


cdef void stretch(cnp.ndarray x, char **first, char **last) noexcept:
    """Where the elements of an array begin, and where they end."""
    cdef int axis
    cdef cnp.npy_intp reach
    first[0] = last[0] = cnp.PyArray_BYTES(x)
    for axis in range(cnp.PyArray_NDIM(x)):
        reach = (cnp.PyArray_DIM(x, axis) - 1) * cnp.PyArray_STRIDE(x, axis)
        if reach > 0:
            last[0] += reach
        else:
            first[0] += reach
    last[0] += cnp.PyArray_ITEMSIZE(x)


ctypedef fused Real:
    float
    double


cdef void multiply_few(
    Real *a, Real *b, Real *z, Matrix *left, Matrix *right, Real alpha, Real beta
) noexcept nogil:
    """z <- beta z + alpha a b by loops, which is quicker than BLAS for few numbers."""
    cdef Py_ssize_t i, j, k
    cdef Py_ssize_t down_a = 1 if left.transposed else left.ld
    cdef Py_ssize_t along_a = left.ld if left.transposed else 1
    cdef Py_ssize_t down_b = 1 if right.transposed else right.ld
    cdef Py_ssize_t along_b = right.ld if right.transposed else 1
    cdef Real total
    for i in range(left.rows):
        for j in range(right.columns):
            total = 0
            for k in range(left.columns):
                total += a[i * down_a + k * along_a] * b[k * down_b + j * along_b]
            total *= alpha
            # As in BLAS, what is not read may be anything.
            if beta != 0:
                total += beta * z[0]
            z[0] = total
            z += 1


cdef void multiply_few_of(
    int kind, Matrix *a, Matrix *b, char *z, double alpha, double beta
) noexcept nogil:
    """The same for one of the types."""
    if kind == cnp.NPY_FLOAT32:
        multiply_few[float](
            <float *>a.data, <float *>b.data, <float *>z, a, b, <float>alpha, <float>beta
        )
    else:
        multiply_few[double](<double *>a.data, <double *>b.data, <double *>z, a, b, alpha, beta)


cdef void multiply(
    int kind, Matrix *a, Matrix *b, char *z, double alpha, double beta
) noexcept nogil:
    """z <- beta z + alpha a b, z in C order."""
    cdef blas_int n = a.rows, k = a.columns, m = b.columns
    cdef char no = b"N"
    cdef char yes = b"T"
    # A matrix in C order is its transpose to BLAS, so that z^T = b^T a^T is computed.
    cdef blas_int inca, incb
    cdef float alpha32 = <float>alpha, beta32 = <float>beta
    if n == 1:
        inca = a.ld if a.transposed else 1
        vector_product(kind, b, not b.transposed, a.data, k, m, inca, alpha, beta, z)
    elif m == 1:
        incb = 1 if b.transposed else b.ld
        vector_product(kind, a, a.transposed, b.data, k, n, incb, alpha, beta, z)
    elif is_thin(kind, a, b):
        thin_product(kind, a, b, z, alpha, beta)
    elif k == 1 and beta == 1:
        inca = 1 if a.transposed else a.ld
        incb = b.ld if b.transposed else 1
        if kind == cnp.NPY_FLOAT32:
            sger(&m, &n, &alpha32, <float *>b.data, &incb, <float *>a.data, &inca, <float *>z, &m)
        else:
            dger(&m, &n, &alpha, <double *>b.data, &incb, <double *>a.data, &inca, <double *>z, &m)
    elif kind == cnp.NPY_FLOAT32:
        sgemm(
            &yes if b.transposed else &no, &yes if a.transposed else &no, &m, &n, &k, &alpha32,
            <float *>b.data, &b.ld, <float *>a.data, &a.ld, &beta32, <float *>z, &m
        )
    else:
        dgemm(
            &yes if b.transposed else &no, &yes if a.transposed else &no, &m, &n, &k, &alpha,
            <double *>b.data, &b.ld, <double *>a.data, &a.ld, &beta, <double *>z, &m
        )


cdef void turn(Matrix *x) noexcept nogil:
    """Read it as its transpose."""
    x.rows, x.columns, x.transposed = x.columns, x.rows, not x.transposed


cdef bint is_row(int kind, Matrix *a, Matrix *b) noexcept nogil:
    """Whether a product is one that ``multiply_row`` computes."""
    cdef int64_t size = <int64_t>b.rows * b.columns * (4 if kind == cnp.NPY_FLOAT32 else 8)
    return a.rows == 1 and not b.transposed and LEVEL > 0 and size <= LARGEST_MATRIX


cdef inline void multiply_row(
    int kind, Matrix *a, Matrix *b, char *z, double alpha, double beta
) noexcept nogil:
    """``multiply`` for a row and a matrix whose rows lie in one piece."""
    cdef int64_t step = a.ld if a.transposed else 1
    if kind == cnp.NPY_FLOAT32:
        row_times_f(
            LEVEL, b.rows, b.columns, <float>alpha, <float *>a.data, step, <float *>b.data, b.ld,
            <float>beta, <float *>z
        )
    else:
        row_times_d(
            LEVEL, b.rows, b.columns, alpha, <double *>a.data, step, <double *>b.data, b.ld, beta,
            <double *>z
        )


cdef bint is_thin(int kind, Matrix *a, Matrix *b) noexcept nogil:
    """Whether a product has a side so short that BLAS is slow with it."""
    cdef int64_t size = <int64_t>max(a.rows, b.columns) * max(a.columns, min(a.rows, b.columns))
    cdef int short = SHORT, few = FEW_TERMS
    size *= 4 if kind == cnp.NPY_FLOAT32 else 8
    if LEVEL == 0 or size > LARGEST_MATRIX:
        return False
    if LEVEL == AVX2 and b.transposed:
        short = SHORT_BY_COLUMNS
    elif LEVEL == AVX2 and size > LARGE_MATRIX:
        short = few = SHORT_OF_LARGE
    if b.transposed:
        return not a.transposed and a.rows <= short and a.columns > SHORT
    return a.rows <= short or a.columns <= few or b.columns <= short


cdef void thin_product(
    int kind, Matrix *a, Matrix *b, char *z, double alpha, double beta
) noexcept nogil:
    cdef int n = a.rows, k = a.columns, m = b.columns
    cdef float alpha32 = <float>alpha, beta32 = <float>beta
    cdef int64_t down = 1 if a.transposed else a.ld
    cdef int64_t along = a.ld if a.transposed else 1
    if b.transposed and kind == cnp.NPY_FLOAT32:
        thin_transposed_f(
            LEVEL, n, k, m, alpha32, <float *>a.data, a.ld, <float *>b.data, b.ld, beta32,
            <float *>z
        )
    elif b.transposed:
        thin_transposed_d(
            LEVEL, n, k, m, alpha, <double *>a.data, a.ld, <double *>b.data, b.ld, beta,
            <double *>z
        )
    elif kind == cnp.NPY_FLOAT32:
        thin_f(
            LEVEL, n, k, m, alpha32, <float *>a.data, down, along, <float *>b.data, b.ld, beta32,
            <float *>z
        )
    else:
        thin_d(
            LEVEL, n, k, m, alpha, <double *>a.data, down, along, <double *>b.data, b.ld, beta,
            <double *>z
        )


cdef void vector_product(
    int kind, Matrix *x, bint across, char *v, blas_int k, blas_int m, blas_int step, double alpha,
    double beta, char *z
) noexcept nogil:
    """z <- beta z + alpha times the product of v, k numbers ``step`` apart, and a matrix: one of k
    rows of m numbers if ``across``, else of m rows of k.
    """
    cdef blas_int one = 1
    cdef float alpha32 = <float>alpha, beta32 = <float>beta
    cdef int64_t size = <int64_t>k * m * (4 if kind == cnp.NPY_FLOAT32 else 8)
    cdef char no = b"N"
    cdef char yes = b"T"
    # A matrix in C order is its transpose to BLAS.
    cdef char *trans = &no if across else &yes
    cdef blas_int rows = m if across else k
    cdef blas_int columns = k if across else m
    if LEVEL == 0 or size > LARGEST_MATRIX or not across and step != 1:
        if kind == cnp.NPY_FLOAT32:
            sgemv(
                trans, &rows, &columns, &alpha32, <float *>x.data, &x.ld, <float *>v, &step,
                &beta32, <float *>z, &one
            )
        else:
            dgemv(
                trans, &rows, &columns, &alpha, <double *>x.data, &x.ld, <double *>v, &step,
                &beta, <double *>z, &one
            )
    elif kind == cnp.NPY_FLOAT32:
        if across:
            row_times_f(
                LEVEL, k, m, alpha32, <float *>v, step, <float *>x.data, x.ld, beta32, <float *>z
            )
        else:
            times_column_f(
                LEVEL, k, m, alpha32, <float *>v, <float *>x.data, x.ld, beta32, <float *>z
            )
    elif across:
        row_times_d(
            LEVEL, k, m, alpha, <double *>v, step, <double *>x.data, x.ld, beta, <double *>z
        )
    else:
        times_column_d(LEVEL, k, m, alpha, <double *>v, <double *>x.data, x.ld, beta, <double *>z)
