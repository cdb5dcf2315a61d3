# The loops of ufuncs, as kernels: functions that SciPy has in C, without Python around them.

cdef extern from "numpy/ufuncobject.h":
    ctypedef struct PyUFuncObject:
        int nin
        int nout
        int nargs
        int ntypes
        const char *types
        void **functions
        void **data

cdef extern from "ufuncs.h":
    struct ufunc_loop:
        int64_t loop
        int64_t data
        int64_t axes

    int ufunc_of_2(char **, const int64_t *, const int64_t *, int) noexcept nogil
    int ufunc_of_3(char **, const int64_t *, const int64_t *, int) noexcept nogil
    int ufunc_of_4(char **, const int64_t *, const int64_t *, int) noexcept nogil
    int ufunc_of_5(char **, const int64_t *, const int64_t *, int) noexcept nogil


def ufunc_kernel(ufunc, dtypes, int axes):
    """The address of a kernel that calls the loop of a ufunc for these dtypes, and the constant that
    it takes; None if there is no such loop.

    Parameters
    ----------
    ufunc : numpy.ufunc
    dtypes : sequence of numpy.dtype
        Of the arguments and the result, which must be those of a loop.
    axes : int
        Of the arrays.
    """
    cdef PyUFuncObject *u = <PyUFuncObject *><PyObject *>ufunc
    cdef ufunc_loop *loop
    cdef int i, k
    cdef cnp.ndarray constant = np.zeros(sizeof(ufunc_loop) // 8, np.int64)
    cdef list wanted = [np.dtype(d).num for d in dtypes]
    cdef list addresses = [
        <uintptr_t>&ufunc_of_2, <uintptr_t>&ufunc_of_3, <uintptr_t>&ufunc_of_4,
        <uintptr_t>&ufunc_of_5,
    ]
    if u.nout != 1 or u.nargs != len(wanted) or not 2 <= u.nargs <= 5 or u.functions == NULL:
        return None
    for i in range(u.ntypes):
        if [u.types[i * u.nargs + k] for k in range(u.nargs)] == wanted:
            loop = <ufunc_loop *>cnp.PyArray_DATA(constant)
            loop.loop, loop.data = <int64_t>u.functions[i], 0
            if u.data != NULL:
                loop.data = <int64_t>u.data[i]
            loop.axes = axes
            return addresses[u.nargs - 2], constant
    return None
