# The C of native calls (calls/*.h): what lowered instructions are told of.

cdef extern from "calls/conditions.h":
    enum:
        ONE_AT
        RANGE_AT
        NEW_AT
        ARRAY_AT
        GAP_AT
        LENGTH_IS
        LENGTHS_EQUAL
        NUMBERS_EQUAL
        IS_TRUE
        IS_FALSE
        BELOW
        MULTIPLE_OF

    ctypedef struct Bound:
        bint given
        int input
        int64_t value

    ctypedef struct Entry:
        int kind
        Bound bounds[3]

    ctypedef struct IndexSpec:
        int n_entries
        Entry *entries

    ctypedef struct TransposeSpec:
        int ndim, n_axes
        int *order
        unsigned int kept

    ctypedef struct AxisSpec:
        int axis

    ctypedef struct ReshapeSpec:
        int ndim

    ctypedef struct Condition:
        int kind, i, a, j, b

    ctypedef struct PassSpec:
        int which, n
        Condition *conditions

    int plan_view(Planner *, const void *)
    int plan_transpose(Planner *, const void *)

    ctypedef struct DiagonalSpec:
        int64_t down, right

    int plan_diagonal(Planner *, const void *)
    int plan_pieces(Planner *, const void *)
    int plan_reshape(Planner *, const void *)
    int plan_lengths(Planner *, const void *)
    int plan_pass(Planner *, const void *)

cdef extern from "calls/moves.h":
    ctypedef struct FillSpec:
        int ndim
        unsigned int stretching

    ctypedef struct CopySpec:
        bint c_order

    ctypedef struct JoinSpec:
        int axis
        bint is_stacked

    ctypedef struct ReserveSpec:
        int n_parts, ndim, axis, type, itemsize
        int *inputs
        int *axes
        int64_t *lengths

    ctypedef struct WriteSpec:
        IndexSpec index
        bint sets, in_place
        unsigned int stretching

    ctypedef enum RowsKind:
        TAKE_FIRST
        PUT_FIRST
        PUT_LAST

    ctypedef struct RowsSpec:
        RowsKind kind
        int64_t more

    int plan_fill(Planner *, const void *)
    int plan_copy(Planner *, const void *)
    int plan_join(Planner *, const void *)
    int plan_reserve(Planner *, const void *)
    int plan_write(Planner *, const void *)
    int plan_rows(Planner *, const void *)

cdef extern from "calls/indexing.h":
    ctypedef struct PositionsSpec:
        IndexSpec index
        int place
        bint sets, in_place
        unsigned int stretching

    int plan_gather(Planner *, const void *)
    int plan_scatter(Planner *, const void *)

cdef extern from "calls/axis.h":
    enum:
        SUMS
        PRODUCTS
        RECURRENCE
        LARGEST
        SMALLEST

    ctypedef struct RunningSpec:
        int what, axis, type, itemsize, n_inputs

    ctypedef struct ExtremeSpec:
        int what
        unsigned int axes

    ctypedef struct TypeSpec:
        int type, itemsize

    int plan_running(Planner *, const void *)
    int plan_extreme(Planner *, const void *)
    int plan_first(Planner *, const void *)
    int plan_range(Planner *, const void *)

cdef extern from "calls/sorting.h":
    ctypedef struct SortSpec:
        int axis
        bint positions

    int plan_sort(Planner *, const void *)
    int plan_search(Planner *, const void *)
    int plan_nonzero(Planner *, const void *)

cdef extern from "calls/distinct.h":
    ctypedef struct DistinctSpec:
        bint index, inverse, counts

    int plan_distinct(Planner *, const void *)

cdef extern from "calls/blas.h":
    ctypedef void gemm_function(
        char *, char *, int64_t *, int64_t *, int64_t *, void *, void *, int64_t *, void *,
        int64_t *, void *, void *, int64_t *
    ) noexcept nogil
    ctypedef void gemv_function(
        char *, int64_t *, int64_t *, void *, void *, int64_t *, void *, int64_t *, void *, void *,
        int64_t *
    ) noexcept nogil
    ctypedef void ger_function(
        int64_t *, int64_t *, void *, void *, int64_t *, void *, int64_t *, void *, int64_t *
    ) noexcept nogil

    gemm_function **gemm_of
    gemv_function **gemv_of
    ger_function **ger_of
    int product_level
    int symcomp_row_product_level()

cdef extern from "calls/products.h":
    ctypedef struct ProductSpec:
        int ndim
        int c, alpha, a, b, beta
        bint trans_a, trans_b, outer, destroys_c
        int type, itemsize, threads

    ctypedef struct ChainSpec:
        int type, itemsize, ndim, threads
        int *written

    int plan_product(Planner *, const void *)
    int plan_chain(Planner *, const void *)

cdef extern from "calls/matrices.h":
    enum:
        SINGLE
        DOUBLE
        SINGLE_COMPLEX
        DOUBLE_COMPLEX

    int blas_int_is_wide
    int ROUTINES
    void *routine_of[][4]

    ctypedef void decompose
    decompose *decomposition_named(const char *name)

    int (*limit_blas)(PyObject *, int)

    ctypedef struct MatricesSpec:
        decompose *function
        int threads
        PyObject *limit
        int n_given, n_found
        int *order
        int *cores
        int *types
        int *itemsizes
        char **shapes
        bint is_square, lower
        int option, kind
        bint wide
        int residuals
        double rcond, rcond_of_side

    int plan_matrices(Planner *, const void *)

cdef extern from "calls/convolutions.h":
    enum:
        SPATIAL


    ctypedef struct ConvolutionSpec:
        int part, ndim, groups, type, itemsize, threads
        int padding[6]
        int strides[3]
        int dilation[3]

    int plan_convolution(Planner *, const void *)

cdef extern from "calls/pools.h":
    ctypedef struct PoolSpec:
        int what, ndim, spatial, type, itemsize, threads
        bint partial
        int divided
        int window[3]
        int strides[3]
        int padding[3]

    int plan_pool(Planner *, const void *)

cdef extern from "thread_pool.h":
    enum:
        MOST_THREADS

    ctypedef void (*Part)(void *, int64_t, int) noexcept nogil
    ctypedef struct Team:
        int threads

    void share(Part, void *, int64_t, int) noexcept nogil

cdef extern from "calls/kernels.h":
    ctypedef int kernel_function(
        char **, const int64_t *, const int64_t *, const Team *
    ) noexcept nogil

    ctypedef struct KernelCode:
        kernel_function *run
        int64_t early

    ctypedef struct KernelSpec:
        KernelCode *code
        PyObject *code_object
        int64_t early_calls
        int n_inputs, n_outputs, n_constants, ndim, steps, threads
        bint elementwise, is_simple
        int64_t least
        int *types
        int *itemsizes
        unsigned int *stretched
        unsigned int *dropped
        int n_tables
        int *tables
        int *positions
        int *scattered
        char *is_table
        bint scatters
        char *apart
        char **constants

    int (*wait_for_code)(PyObject *)

    int plan_kernel(Planner *, const void *)

cdef extern from "loops/draws.h":
    kernel_function *draw_kernel(const char *, bint)
    # The version of the NumPy whose distributions these are.
    const char *SYMCOMP_NUMPY

cdef extern from "calls/draws.h":
    ctypedef struct DrawSpec:
        kernel_function *draw
        int ndim, type, itemsize, n
        int *types
        bint *is_vector
        unsigned int *stretching
        bint gives_vectors

    enum:
        MOST_PARAMETERS

    int plan_draw(Planner *, const void *)

cdef extern from "calls/foreign.h":
    ctypedef int NativePlan(const void *, int, const void *, int64_t *const *)
    ctypedef int NativeRun(const void *, const void *, const void *)

    enum:
        MOST_FOREIGN

    ctypedef struct ForeignSpec:
        NativePlan *plan
        NativeRun *run
        const void *params
        int n_inputs, n_outputs
        int *type
        int *itemsize
        int *ndim
        double work

    int plan_foreign(Planner *, const void *)

cdef extern from "numpy/ufuncobject.h":
    ctypedef struct PyUFuncObject:
        int nin
        int nout
        int nargs
        int ntypes
        const char *types
        void **functions
        void **data

cdef extern from "loops/ufuncs.h":
    struct ufunc_loop:
        int64_t loop
        int64_t data
        int64_t axes

    kernel_function ufunc_of_2, ufunc_of_3, ufunc_of_4, ufunc_of_5

cdef extern from "calls/loops.h":
    ctypedef struct LoopSpec:
        Tree *tree
        PyObject *name
        int n_states, n_reads, n_carried, n_sequences, n_captured, n_stacks
        bint until
        int *depths
        int *read_state
        int *read_row
        int *stack_type
        int *stack_itemsize
        PyObject *without_steps

    void (*note_step)(PyObject *, int64_t, int64_t)
    int plan_loop(Planner *, const void *)

cdef extern from "calls/graphs.h":
    ctypedef struct GraphSpec:
        Tree *tree

    int plan_graph(Planner *, const void *)

cdef extern from "calls/sparse_plans.h":
    ctypedef struct SparseSpec:
        int what, kind, transposed, threads, rows, columns

    int plan_sparse(Planner *, const void *)

cdef extern from "calls/sparse_objects.h":
    ctypedef struct SparseKind:
        PyObject *classes[2]
        PyObject *names[4]
        int format, type, itemsize, index_type
        int64_t shape[2]

    ctypedef struct SparseObjectSpec:
        const SparseKind *kind
        PyObject *make
        int threads, checks

    ctypedef struct TakenApart:
        pass

    int take_apart(const SparseKind *, PyObject *, TakenApart *) noexcept
    void drop_taken(TakenApart *) noexcept
    int plan_take_apart(Planner *, const void *)
    int plan_put_together(Planner *, const void *)
