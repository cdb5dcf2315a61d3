# Runs of a program without Python: where all lengths are known from a run that was recorded, the next
# ones are calls of C functions on other addresses.

cdef enum Outcome:
    DONE = 0
    # The run goes another way through the program than the one recorded, or a kernel found something
    # that Python has to say.
    UNDONE = 1

cdef enum Place:
    FIXED = 0       # captured, a constant, or what is computed from such and from lengths
    MOVING = 1      # a row of a sequence, state or stack
    STATE = 2       # a carried value before the step
    OWN = 3         # made in the run
    PART = 4        # of another place
    GIVEN = 5       # an argument of a call
    TAKEN = 6       # one that is written over
    ACTED = 7       # made by an action, in an array of its own


cdef enum Doing:
    KERNEL = 0
    FEW = 1         # a product of so few numbers that loops are quicker than BLAS
    ROW = 2         # the product of a row and a small matrix
    PRODUCT = 3
    WRITE = 4       # elements of one place are written to another
    CHOOSE = 5      # the truth of a place must be that of the recorded run
    DECOMPOSE = 6   # what LAPACK finds of matrices
    SHIFT = 7       # a part of a place whose address is known in the middle of a run
    # What needs the GIL:
    REGION = 8      # a part that numbers name
    PASS = 9        # conditions must hold
    ACT = 10        # an action on arrays
    GATE = 11       # nobody else may hold what is written over


cdef struct Call:
    Doing kind
    int position        # of the instruction
    # Of a kernel's arrays; of a product: a, b, c (-1: nothing to copy), result; of a writing: what is
    # read, what is written; of a choice: the condition; of an action: outputs; of a decomposition:
    # what is given, and what is found.
    int *places
    int n_arrays
    Code *code              # of a kernel
    int64_t *early_calls    # of a kernel: where they are counted
    int threads             # of a kernel; 0: all arrays lie in order
    char **data         # of a kernel: addresses of arrays, then of constants
    int64_t *shape
    int64_t *strides
    Writing *writing        # of a writing, or of c
    cnp.npy_intp offset     # of a writing: where it begins
    bint wanted             # of a choice
    Matrix a
    Matrix b
    int type
    double alpha
    double beta
    decomposition *matrices
    decompose *function     # of them
    PyObject *action        # with the GIL
    PyObject **expected     # of its results that are new arrays, arrays of their layouts


cdef struct Cut:
    int place
    int source
    cnp.npy_intp offset


cdef struct Copy:
    int source
    int target
    Writing writing


cdef bint is_true(char *value, int kind) noexcept nogil:
    """The truth of a number."""
    if kind == cnp.NPY_FLOAT32:
        return (<float *>value)[0] != 0
    if kind == cnp.NPY_FLOAT64:
        return (<double *>value)[0] != 0
    if kind == cnp.NPY_INT64:
        return (<int64_t *>value)[0] != 0
    if kind == cnp.NPY_INT32:
        return (<int32_t *>value)[0] != 0
    return value[0] != 0


cdef int run_decomposition(Call *call, char **addresses) noexcept nogil:
    """Decompose matrices that are where they are now."""
    cdef int i, n = call.matrices.n_given
    for i in range(n):
        call.matrices.given[i].data = addresses[call.places[i]]
    for i in range(n, call.n_arrays):
        call.matrices.found[i - n].data = addresses[call.places[i]]
    return DONE if call_decomposition(call.function, call.matrices) == FOUND else UNDONE


cdef class Frozen:
    """What the runs of a program do that go one way through it, with all lengths.

    Arrays are numbered *places*: what lies in one array has one place, whose address is known in
    every run. Owns the memory of what a run makes, unless that is a result.
    """

    cdef NativeMachine _machine
    cdef list _memory               # keeps what the pointers below point to
    cdef bint _fits
    cdef int *_place_of             # of slots; -1: none
    cdef char **_addresses
    cdef int *_kinds
    cdef size_t *_sizes
    cdef int *_roots                # the place that a part lies in; of others, themselves
    cdef bint *_claimed             # whether a place is that of a result
    cdef Call *_calls
    cdef Cut *_cuts
    cdef Copy *_copies
    cdef int _most_places
    cdef int _n_places, _n_calls, _n_cuts, _n_copies
    cdef double _work
    cdef bint *_visited             # which instructions a run does

    def __cinit__(self, NativeMachine machine):
        cdef int slot, n_slots = machine._n_slots, n_outputs = machine._n_outputs
        # Each slot has a place at most, and each result and each product within a chain one.
        cdef int most = n_slots + n_outputs, most_calls = 0, position
        for position in range(machine._n_steps):
            if type(machine._actions[position]) is Chain:
                most += machine._steps[position].n_inputs
        self._machine = machine
        self._memory = []
        self._fits = True
        self._most_places = most
        self._place_of = <int *>self._new(n_slots * sizeof(int))
        self._addresses = <char **>self._new(most * sizeof(char *))
        self._kinds = <int *>self._new(most * sizeof(int))
        self._sizes = <size_t *>self._new(most * sizeof(size_t))
        self._roots = <int *>self._new(most * sizeof(int))
        self._claimed = <bint *>self._new(most * sizeof(bint))
        # An instruction writes each of its inputs at most, and does two things more.
        for position in range(machine._n_steps):
            most_calls += 2 + machine._steps[position].n_inputs
        self._calls = <Call *>self._new(most_calls * sizeof(Call))
        self._cuts = <Cut *>self._new(n_slots * sizeof(Cut))
        self._copies = <Copy *>self._new(n_outputs * sizeof(Copy))
        self._visited = <bint *>self._new(machine._n_steps * sizeof(bint))
        for slot in range(n_slots):
            self._place_of[slot] = -1

    cdef char *_new(self, size_t size) except NULL:
        """Zeroed memory that lives as long as this."""
        memory = bytearray(size + 1)
        self._memory.append(memory)
        return PyByteArray_AsString(memory)

    cdef int _new_place(self, int kind, char *address, size_t size):
        cdef int place = self._n_places
        self._kinds[place], self._addresses[place], self._sizes[place] = kind, address, size
        self._roots[place] = place
        self._n_places += 1
        return place

    # -- running

    cdef inline void _cut(self) noexcept nogil:
        """The addresses of parts."""
        cdef int i
        cdef Cut *cut
        for i in range(self._n_cuts):
            cut = &self._cuts[i]
            self._addresses[cut.place] = self._addresses[cut.source] + cut.offset

    cdef inline int _call(self, Call *call) noexcept nogil:
        """One kernel, product, writing of a part, or choice."""
        cdef int k
        cdef char **addresses = self._addresses
        if call.kind == KERNEL:
            for k in range(call.n_arrays):
                call.data[k] = addresses[call.places[k]]
            k = run_code(
                call.code, call.early_calls, call.data, call.shape, call.strides, call.threads
            )
            return UNDONE if k else DONE
        if call.kind == CHOOSE:
            return DONE if is_true(addresses[call.places[0]], call.type) == call.wanted else UNDONE
        if call.kind == WRITE:
            write(
                call.writing, addresses[call.places[0]], addresses[call.places[1]] + call.offset
            )
            return DONE
        if call.kind == SHIFT:
            addresses[call.places[1]] = addresses[call.places[0]] + call.offset
            return DONE
        if call.kind == DECOMPOSE:
            return run_decomposition(call, addresses)
        call.a.data, call.b.data = addresses[call.places[0]], addresses[call.places[1]]
        if call.places[2] >= 0:
            write(call.writing, addresses[call.places[2]], addresses[call.places[3]])
        if call.kind == ROW:
            multiply_row(
                call.type, &call.a, &call.b, addresses[call.places[3]], call.alpha, call.beta
            )
        elif call.kind == FEW:
            multiply_few_of(
                call.type, &call.a, &call.b, addresses[call.places[3]], call.alpha, call.beta
            )
        else:
            multiply(call.type, &call.a, &call.b, addresses[call.places[3]], call.alpha, call.beta)
        return DONE

    cdef inline void _copy_results(self) noexcept nogil:
        """Results that lie elsewhere to where they belong."""
        cdef int i
        cdef Copy *copy
        for i in range(self._n_copies):
            copy = &self._copies[i]
            write(&copy.writing, self._addresses[copy.source], self._addresses[copy.target])
