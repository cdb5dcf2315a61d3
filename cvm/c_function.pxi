# Functions as functions of C: addresses for callers that are not Python.

cdef extern from "plan/c_function.h":
    ctypedef struct CFunctionData:
        Tree *tree
        Segment *root
        int *argument
        char **address
        PyObject **object
        int value, gradient
        uint64_t length, result_length
        PyObject *error

    int call_c_function(void *, const void *const *, void *const *) noexcept
    int64_t call_density(uint64_t, const double *, double *, double *, void *) noexcept
    int64_t call_map(uint64_t, uint64_t, const double *, double *, void *) noexcept
    Segment *plan_c_function(Tree *, const Given *, int *) except? NULL


@cython.auto_pickle(False)
cdef class CFunctionBase:
    """Holds a nested program for callers in C.

    Parameters
    ----------
    machine : NativeMachine
        Nested.
    values : list of ndarray
        Examples of all inputs; aligned and in C order.
    fixed : sequence of int
        The inputs that are no arguments: the examples are their values.
    """

    cdef NativeMachine _machine
    cdef CFunctionData _data
    cdef list _values
    cdef object _memory
    cdef bint _is_map
    cdef readonly tuple _argument_kinds
    cdef readonly tuple _result_kinds

    def __cinit__(self, NativeMachine machine, list values, fixed):
        cdef int i, j = 0, status = 0, n = len(values)
        cdef Given *given
        cdef const Operand *x
        if not machine.code.is_nested or n != machine.code.n_inputs:
            raise TypeError("the machine must be nested, and have as many inputs as there are examples")
        # The pointers, then the numbers; a bytearray is aligned for both.
        self._memory = bytearray(n * (2 * sizeof(void *) + sizeof(int)) + 8)
        self._data.address = <char **>PyByteArray_AsString(self._memory)
        self._data.object = <PyObject **>(self._data.address + n)
        self._data.argument = <int *>(self._data.object + n)
        self._machine, self._values = machine, list(values)
        self._data.tree = &machine.tree
        self._data.value = self._data.gradient = -1
        given = <Given *>PyMem_Calloc(max(n, 1), sizeof(Given))
        if given == NULL:
            raise MemoryError()
        try:
            for i in range(n):
                read_given(&given[i], <PyObject *>self._values[i], False)
                if i in fixed:
                    self._data.argument[i] = -1
                    self._data.address[i] = given[i].address
                    self._data.object[i] = given[i].object
                else:
                    self._data.argument[i], j = j, j + 1
                    given[i].object = NULL
            self._data.root = plan_c_function(&machine.tree, given, &status)
        finally:
            PyMem_Free(given)
        if self._data.root == NULL:
            raise TypeError("cfunc: the results are not all arrays of numbers")
        self._argument_kinds = tuple(
            [(v.dtype.name, v.shape) for i, v in enumerate(values) if i not in fixed]
        )
        self._result_kinds = tuple([
            operand_kind(self._data.root.results[i].operand) for i in range(machine.code.n_outputs)
        ])
        self._note_vectors()

    cdef int _note_vectors(self) except -1:
        """Say whether the function is a density, or a map of vectors, and which result is which."""
        cdef list ranks = [len(shape) if dtype == "float64" else -1 for dtype, shape in self._result_kinds]
        if len(self._argument_kinds) != 1:
            return 0
        dtype, shape = self._argument_kinds[0]
        if dtype != "float64" or len(shape) != 1:
            return 0
        self._data.length = shape[0]
        if ranks == [1]:
            self._is_map, self._data.result_length = True, self._result_kinds[0][1][0]
        if sorted(ranks) == [0, 1] and self._result_kinds[ranks.index(1)][1] == shape:
            self._data.value, self._data.gradient = ranks.index(0), ranks.index(1)
        return 0

    def __dealloc__(self):
        if self._data.root != NULL:
            with cython.critical_section(machine_lock):
                release_segment(self._data.root)
        Py_XDECREF(self._data.error)

    @property
    def address(self):
        return <uintptr_t>&call_c_function

    @property
    def density_address(self):
        return None if self._data.value < 0 else <uintptr_t>&call_density

    @property
    def map_address(self):
        return <uintptr_t>&call_map if self._is_map else None

    @property
    def data(self):
        return <uintptr_t>&self._data

    @property
    def error(self):
        with cython.critical_section(machine_lock):
            return None if self._data.error == NULL else <object>self._data.error


cdef tuple operand_kind(const Operand *x):
    return cnp.PyArray_DescrFromType(x.type).name, tuple([x.shape[a] for a in range(x.ndim)])
