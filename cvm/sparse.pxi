# Sparse matrices: how ops on their arrays are lowered, and the values that are taken apart by plans.

_SPARSE = [
    "dot", "usmm", "sampled", "product", "product_at", "combine", "transpose", "lookup",
    "lookup_pairs", "gather", "scatter", "scatter_add", "rows", "pointers", "largest", "segments",
    "drop_zeros", "take", "canonical", "same_length", "crop", "join", "put", "triplets", "nonzero",
    "gather_fill", "block_dot", "sampled_blocks", "blocks_as_rows", "rows_as_blocks",
    "in_range",
]
_SPARSE_KINDS = {
    "combine": ["add", "mul", "maximum", "minimum", "neq", "lt", "gt"],
    "segments": ["sum", "max", "min"],
}


def sparse(
    step, str what, str kind="", bint transposed=False, int threads=1, tuple block=(1, 1)
):
    """Lower an op on the arrays of sparse matrices (calls/sparse.h), of which some have several kinds."""
    cdef Lowered found = new_lowered(step, "sparse", plan_sparse, sizeof(SparseSpec))
    cdef SparseSpec *spec = <SparseSpec *>found.spec
    spec.what, spec.transposed = _SPARSE.index(what), transposed
    spec.threads = min(threads, MOST_THREADS)
    spec.rows, spec.columns = [checked(n, 1, LARGEST_OF_WINDOWS, "the length of a block") for n in block]
    spec.kind = _SPARSE_KINDS[what].index(kind) if kind else 0
    return found


_FORMATS = ["csr", "csc", "bsr", "coo"]
_ATTRIBUTES = {"coo": ("data", "coords", "coords", "shape")}


@cython.final
@cython.auto_pickle(False)
cdef class SparseValues:
    """A type of sparse matrices, for C.

    Parameters
    ----------
    classes : tuple of two types
        SciPy's.
    format : {"csr", "csc", "bsr", "coo"}
    dtype, index_dtype : numpy.dtype
    shape : tuple of int or None
    """

    cdef SparseKind kind
    cdef tuple _held

    def __cinit__(self, tuple classes, str format, dtype, index_dtype, tuple shape):
        cdef int i
        names = tuple([
            sys.intern(name)
            for name in _ATTRIBUTES.get(format, ("data", "indices", "indptr", "shape"))
        ])
        self._held = (classes, names)
        for i in range(2):
            self.kind.classes[i] = <PyObject *>classes[i]
            self.kind.shape[i] = -1 if shape[i] is None else shape[i]
        for i in range(4):
            self.kind.names[i] = <PyObject *>names[i]
        self.kind.format = _FORMATS.index(format)
        self.kind.type, self.kind.itemsize = dtype.num, dtype.itemsize
        self.kind.index_type = index_dtype.num


cdef bint fits_sparse(const SparseKind *kind, PyObject *value) noexcept:
    """Tell whether a value is a matrix that plans take apart; its indices are checked there."""
    cdef TakenApart taken
    cdef int status = take_apart(kind, value, &taken)
    if status > 0:
        drop_taken(&taken)
    elif status < 0:
        PyErr_Clear()
    return status > 0


def take_apart_sparse(step, SparseValues values, bint checks=True, int threads=1):
    """Lower a sparse matrix taken apart into its arrays and its shape.

    Threads share the check of its pattern; without ``checks`` the ops that read it look at the indices.
    """
    cdef Lowered found = new_lowered(step, "take apart", plan_take_apart, sizeof(SparseObjectSpec))
    (<SparseObjectSpec *>found.spec).kind = &values.kind
    (<SparseObjectSpec *>found.spec).threads = min(threads, MOST_THREADS)
    (<SparseObjectSpec *>found.spec).checks = checks
    found._kept.append(values)
    return found


def put_together_sparse(step, SparseValues values, make):
    """Lower a sparse matrix of arrays and a shape, of which ``make`` makes an object."""
    cdef Lowered found = new_lowered(step, "put together", plan_put_together, sizeof(SparseObjectSpec))
    (<SparseObjectSpec *>found.spec).kind = &values.kind
    (<SparseObjectSpec *>found.spec).make = <PyObject *>make
    found._kept += [values, make]
    return found
