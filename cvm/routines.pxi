# The routines of BLAS and LAPACK, and the loops of ufuncs and of NumPy's distributions, by address.

cdef bint blas_is_found = False
cdef bint lapack_is_found = False

# In the order of lapack.h; of some, those of complex numbers have other names.
LAPACK_ROUTINES = (
    "gemm", "trsm", "trsv", "getrf", "gesv", "potrf", "posv", "sysv", "hesv", "geqrf", "geqp3",
    "orgqr", "syevd", "geev", "gesdd", "gelsd",
)
OF_COMPLEX = {"orgqr": "ungqr", "syevd": "heevd"}
OF_BLAS = ("gemm", "trsm", "trsv")


cdef void *routine(str name, str collection="blas") except NULL:
    """Return the address of a routine of BLAS or LAPACK."""
    cdef uintptr_t address
    library = library_of_numpy()
    if library is not None:
        address = ctypes.cast(getattr(library, f"scipy_{name}_64_"), ctypes.c_void_p).value
        return <void *>address
    capsule = import_alone("scipy", "linalg", f"cython_{collection}").__pyx_capi__[name]
    return PyCapsule_GetPointer(capsule, PyCapsule_GetName(capsule))


cdef int find_blas() except -1:
    """Find the routines that make products."""
    global blas_is_found, product_level
    cdef int kind
    if blas_is_found:
        return 0
    for kind, letter in enumerate("sdcz"):
        gemm_of[kind] = <gemm_function *>routine(letter + "gemm")
        gemv_of[kind] = <gemv_function *>routine(letter + "gemv")
    ger_of[0] = <ger_function *>routine("sger")
    ger_of[1] = <ger_function *>routine("dger")
    product_level = symcomp_row_product_level()
    blas_is_found = True
    return 0


cdef int find_lapack() except -1:
    """Find all routines of LAPACK_ROUTINES."""
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
    """Return what a dtype is to LAPACK; -1 for one that it does not know."""
    if type == cnp.NPY_FLOAT32:
        return SINGLE
    if type == cnp.NPY_FLOAT64:
        return DOUBLE
    if type == cnp.NPY_COMPLEX64:
        return SINGLE_COMPLEX
    return DOUBLE_COMPLEX if type == cnp.NPY_COMPLEX128 else -1


#: The address of the function that shares the parts of some work among threads.
share_address = <uintptr_t>&share

# Another NumPy may draw other numbers: then Python draws them.
DRAWS_OF_NUMPY = (<bytes>SYMCOMP_NUMPY).decode()


def ufunc_kernel(ufunc, dtypes, int axes):
    """Return the address of a kernel that calls the loop of a ufunc for these dtypes, and its constant.

    None if there is no such loop.

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
