# A run that is recorded: what its instructions do, and where what they make lies.

# Actions that can be recorded, and the dtypes of conditions.
FREEZABLE = (
    KernelCall, Product, Transpose, View, Lengths, Fill, Written, Reserve, Joined, RandomDraw, Copied,
    Decomposition, Chain,
)
# What makes the same of the same.
COMPUTING = KernelCall, Product, Chain, Decomposition
# Ops whose results are views of their first inputs, or fixed if the inputs are, whatever does them.
PLAIN = (Reshape, Split, Stack, Diagonal)
CHOOSING = (
    cnp.NPY_BOOL, cnp.NPY_INT8, cnp.NPY_UINT8, cnp.NPY_INT32, cnp.NPY_INT64, cnp.NPY_FLOAT32,
    cnp.NPY_FLOAT64,
)


cdef bint recordable(Action action, instruction):
    """Whether the steps of a loop with this instruction may be done without Python."""
    if type(action) in FREEZABLE or action is None and instruction.opcode > COPY:
        return True
    return instruction.node is not None and type(instruction.node.op) in PLAIN


cdef bint lies_in(PyObject *part, PyObject *whole) noexcept:
    """Whether both are arrays, the one in the memory of the other."""
    cdef char *first[2]
    cdef char *last[2]
    if not cnp.PyArray_Check(<object>part) or not cnp.PyArray_Check(<object>whole):
        return False
    stretch(<cnp.ndarray>part, &first[0], &last[0])
    stretch(<cnp.ndarray>whole, &first[1], &last[1])
    return first[1] <= first[0] and last[0] <= last[1]


cdef class Recording(Frozen):
    """A ``Frozen`` that is made: by one run, from which the lengths are known."""

    cdef int _position      # of the instruction that is done
    cdef Tally _tally
    cdef bint *_late        # places whose addresses are known in the middle of a run

    def __cinit__(self, NativeMachine machine):
        self._late = <bint *>self._new(self._most_places * sizeof(bint))

    cdef int _do_all(self, PyObject **store, Clock clock) except -1:
        """Do the run, and note what is done."""
        cdef int position = 0
        try:
            while position < self._machine._n_steps:
                position = self._do(position, store, clock)
        except Exception as problem:
            self._machine.blame(problem, store, position)
            raise
        return 0

    cdef int _do(self, int position, PyObject **store, Clock clock) except -1:
        """Do an instruction and note it; return the position of the next."""
        cdef int i, following = position + 1
        cdef PyObject *value
        cdef Step *step = &self._machine._steps[position]
        cdef int64_t entries = symcomp_entries()[0]
        self._position, self._visited[position] = position, True
        if clock is not None:
            clock.before(self._tally, position, store, step)
        if step.opcode <= COPY:
            (<Action>step.action).run(store)
        else:
            following = self._machine.go(store, position)
        if clock is not None:
            clock.after(self._tally, position, store, step)
        elif self._tally is not None:
            self._tally.recognise(position, store, step)
        if self._tally is not None:
            self._tally.counts[position] += 1
            self._tally.in_python[position] += symcomp_entries()[0] != entries
        if not self._fits:
            pass
        elif step.opcode <= COPY:
            self._fits = self._noted(<Action>step.action, step, store)
        elif step.opcode == MOVE:
            self._fits = self._move(step)
        elif step.opcode == BRANCH:
            self._fits = self._choice(step.inputs[0], following == position + 1, store)
        for i in range(step.n_frees):
            value = store[step.frees[i]]
            store[step.frees[i]] = NULL
            Py_XDECREF(value)
        return following

    cdef Call *_new_call(self, Doing kind) noexcept:
        cdef Call *call = &self._calls[self._n_calls]
        memset(call, 0, sizeof(Call))
        call.kind, call.position = kind, self._position
        self._n_calls += 1
        return call

    cdef bint _move(self, Step *step) noexcept:
        """The same values in other slots."""
        cdef int i, place
        for i in range(step.n_inputs):
            place = self._place_of[step.inputs[i]]
            if place < 0:
                return False
            self._place_of[step.inputs[step.n_inputs + i]] = place
        return True

    cdef bint _choice(self, int slot, bint wanted, PyObject **store) except -1:
        """A condition that has the same truth in the steps that go this way."""
        cdef int place = self._place_of[slot], kind
        cdef Call *call
        if place < 0 or self._kinds[place] == FIXED:
            return place >= 0
        kind = cnp.PyArray_TYPE(<cnp.ndarray>store[slot])
        if kind not in CHOOSING or cnp.PyArray_SIZE(<cnp.ndarray>store[slot]) != 1:
            return False
        call = self._new_call(CHOOSE)
        call.wanted, call.type = wanted, kind
        call.places = <int *>self._new(sizeof(int))
        call.places[0] = place
        return True

    cdef bint _noted(self, Action action, Step *step, PyObject **store) except -1:
        """Record an action; False if that cannot be."""
        cdef int calls = self._n_calls, cuts = self._n_cuts, places = self._n_places
        if self._note(action, step, store):
            return True
        self._n_calls, self._n_cuts, self._n_places = calls, cuts, places
        return self._note_otherwise(action, step, store)

    cdef bint _note_otherwise(self, Action action, Step *step, PyObject **store) except -1:
        """Record an action that needs the GIL."""
        return False

    cdef bint _note(self, Action action, Step *step, PyObject **store) except -1:
        """Record an action; False if it cannot be done without the GIL."""
        if type(action) is Lengths or type(action) in COMPUTING and self._are_fixed(step, 0):
            return self._fix(step, 0, store)
        if type(action) is KernelCall:
            return self._kernel(<KernelCall>action, store)
        if type(action) is Product:
            return self._product(<Product>action, store)
        if type(action) is Chain:
            return self._chain(<Chain>action, store)
        if type(action) is Decomposition:
            return self._decomposition(<Decomposition>action, store)
        if type(action) is Transpose:
            return self._transpose(<Transpose>action, store)
        if type(action) is View and self._are_fixed(step, 1):
            return self._part(step.inputs[0], step.inputs[step.n_inputs], store)
        if type(action) is Fill and self._are_fixed(step, 1):
            return self._fill(<Fill>action, store)
        if type(action) is Written and self._are_fixed(step, 2):
            return self._write(<Written>action, store)
        if type(action) is Reserve:
            return self._fix(step, 1, store) and self._name_output(
                step.inputs[step.n_inputs], (<Reserve>action)._into, store
            )
        if type(action) is Joined and not (<Joined>action)._stacked:
            return self._join(<Joined>action, store)
        if type(action) is Copied:
            return self._copied(<Copied>action, store)
        if type(action) is RandomDraw and self._are_fixed(step, 1):
            return record_draw(self, <RandomDraw>action, store)
        return self._views(step, store)

    cdef bint _are_fixed(self, Step *step, int first) noexcept:
        """Whether the inputs of an instruction, from this one on, are the same in all steps."""
        cdef int i, place
        for i in range(first, step.n_inputs):
            place = self._place_of[step.inputs[i]]
            if place < 0 or self._kinds[place] != FIXED:
                return False
        return True

    cdef bint _views(self, Step *step, PyObject **store) except -1:
        """Views of the first input, where the others are fixed; or what is fixed altogether."""
        cdef int i, slot
        node = self._machine.program.instructions[self._position].node
        if node is None or type(node.op) not in PLAIN:
            return False
        if self._are_fixed(step, 0):
            return self._fix(step, 0, store)
        for i in range(step.n_outputs):
            slot = step.inputs[step.n_inputs + i]
            if not self._are_fixed(step, 1) or not lies_in(store[slot], store[step.inputs[0]]):
                return False
            if not self._part(step.inputs[0], slot, store):
                return False
        return True

    cdef bint _fix(self, Step *step, int first, PyObject **store) except -1:
        """Keep what an instruction made for all steps, but for the first outputs."""
        cdef int i, slot
        cdef cnp.ndarray array
        for i in range(first, step.n_outputs):
            slot = step.inputs[step.n_inputs + i]
            if not cnp.PyArray_Check(<object>store[slot]):
                return False
            if not cnp.PyArray_IS_C_CONTIGUOUS(<cnp.ndarray>store[slot]):
                return False
            # A copy, as the array may be overwritten when nobody reads it any more.
            array = cnp.PyArray_NewCopy(<cnp.ndarray>store[slot], cnp.NPY_CORDER)
            self._memory.append(array)
            self._place_of[slot] = self._new_place(
                FIXED, cnp.PyArray_BYTES(array), cnp.PyArray_NBYTES(array)
            )
        return True

    cdef int _name_constants(self, PyObject **store) except -1:
        cdef int i
        for i in range(self._machine._n_constants):
            self._name(self._machine._constant_slots[i], store, FIXED)
        return 0

    cdef int _name(self, int slot, PyObject **store, int kind) except -1:
        """Give a place to what is in a slot, if that is an array."""
        cdef cnp.ndarray array
        if cnp.PyArray_Check(<object>store[slot]):
            array = <cnp.ndarray>store[slot]
            self._place_of[slot] = self._new_place(
                kind, cnp.PyArray_BYTES(array), cnp.PyArray_NBYTES(array)
            )
        return 0

    cdef bint _name_output(self, int slot, int into, PyObject **store) except -1:
        """Give a place to what an instruction made, maybe in the array of ``into``."""
        cdef cnp.ndarray array = <cnp.ndarray>store[slot]
        cdef int place = -1 if into < 0 or store[into] == NULL else self._place_of[into]
        # What is fixed was copied: its array may be overwritten in this step, its place never.
        if place >= 0 and self._kinds[place] != FIXED:
            if cnp.PyArray_DATA(array) == cnp.PyArray_DATA(<cnp.ndarray>store[into]):
                self._place_of[slot] = place
                return self._kinds[self._roots[place]] in (OWN, TAKEN, ACTED)
        self._place_of[slot] = self._new_place(OWN, NULL, cnp.PyArray_NBYTES(array))
        return cnp.PyArray_IS_C_CONTIGUOUS(array)

    cdef bint _kernel(self, KernelCall action, PyObject **store) except -1:
        cdef int axis, at, i, k, n = action._n_inputs + action._n_outputs
        cdef int ndim = action._ndim
        cdef Call *call = self._new_call(KERNEL)
        cdef double size = action._steps
        cdef cnp.ndarray array
        call.n_arrays, call.code, call.early_calls = n, action._code, &action.early_calls
        call.places = <int *>self._new(n * sizeof(int))
        call.data = <char **>self._new((n + len(action._constants)) * sizeof(char *))
        call.shape = <int64_t *>self._new(max(ndim, 1) * sizeof(int64_t))
        call.strides = <int64_t *>self._new(n * ndim * sizeof(int64_t))
        for axis in range(ndim):
            call.shape[axis] = -1
        for i in range(action._n_inputs):
            if self._place_of[action._slots[i]] < 0 or not action._read(
                store[action._slots[i]], i, call.shape, call.strides + i * ndim, call.data
            ):
                return False
            call.places[i] = self._place_of[action._slots[i]]
        for axis in range(ndim):
            call.shape[axis] = max(call.shape[axis], 1) if call.shape[axis] else 0
            size *= call.shape[axis]
        for k in range(action._n_inputs, n):
            i = k - action._n_inputs
            if not self._name_output(action._outputs[i], action._into[i], store):
                return False
            call.places[k] = self._place_of[action._outputs[i]]
            array = <cnp.ndarray>store[action._outputs[i]]
            at = 0
            for axis in range(ndim):
                if not action._dropped[i] >> axis & 1:
                    if not action._stretched[k] >> axis & 1:
                        call.strides[k * ndim + axis] = cnp.PyArray_STRIDE(array, at)
                    at += 1
        for i in range(len(action._constants)):
            call.data[n + i] = action._addresses[i]
        self._work += size
        self._join_axes(call, action, store)
        return True

    cdef int _join_axes(self, Call *call, KernelCall action, PyObject **store) except -1:
        """If all arrays of a kernel lie in order, and none is stretched, one axis is enough."""
        cdef int k, slot
        cdef Py_ssize_t size = 1
        cdef cnp.ndarray array
        for k in range(action._ndim):
            size *= call.shape[k]
        call.threads = 1 if n_forks or size < action._least else action._threads
        for k in range(call.n_arrays):
            slot = action._slots[k] if k < action._n_inputs else action._outputs[k - action._n_inputs]
            array = <cnp.ndarray>store[slot]
            if cnp.PyArray_SIZE(array) != size or not cnp.PyArray_IS_C_CONTIGUOUS(array):
                return 0
        if action._elementwise and size > 0 and call.threads == 1:
            call.threads, call.shape[0] = 0, size
        return 0

    cdef bint _product(self, Product action, PyObject **store) except -1:
        cdef Call *call = self._new_call(PRODUCT)
        cdef int slot, itemsize = 4 if action._type == cnp.NPY_FLOAT32 else 8
        cdef cnp.ndarray a, b, z
        for slot in (action._a, action._b, action._c, action._alpha, action._beta):
            if slot >= 0 and (self._place_of[slot] < 0 or not action._array(store[slot])):
                return False
        for slot in (action._alpha, action._beta):
            if slot >= 0 and self._kinds[self._place_of[slot]] != FIXED:
                return False
        a, b = <cnp.ndarray>store[action._a], <cnp.ndarray>store[action._b]
        if not as_matrix(a, action._trans_a, action._outer, itemsize, &call.a):
            return False
        if not as_matrix(b, action._trans_b, not action._outer, itemsize, &call.b):
            return False
        call.type = action._type
        call.alpha = action._factor(store, action._alpha, 1.0)
        call.beta = action._factor(store, action._beta, 1.0) if action._c >= 0 else 0.0
        if call.alpha == 0 or not self._name_output(action._outputs[0], action._into, store):
            return False
        z = <cnp.ndarray>store[action._outputs[0]]
        if not cnp.PyArray_IS_C_CONTIGUOUS(z):
            return False
        call.places = <int *>self._new(4 * sizeof(int))
        call.places[0], call.places[1] = self._place_of[action._a], self._place_of[action._b]
        call.places[2], call.places[3] = -1, self._place_of[action._outputs[0]]
        if action._c >= 0 and call.beta != 0:
            if not same_lengths(<cnp.ndarray>store[action._c], z):
                return False
            if self._place_of[action._c] != call.places[3]:
                call.places[2] = self._place_of[action._c]
                call.writing = <Writing *>self._new(sizeof(Writing))
                write_whole(z, <cnp.ndarray>store[action._c], call.writing)
        self._choose_way(call)
        return call.places[3] != call.places[0] and call.places[3] != call.places[1]

    cdef void _choose_way(self, Call *call) noexcept:
        """Which function multiplies, for these lengths."""
        cdef double work = <double>call.a.rows * call.a.columns * call.b.columns
        if work <= FEW_PRODUCTS:
            call.kind = FEW
        elif call.b.columns == 1 and call.a.rows > 1:
            # z^T = b^T a^T
            self._turn(call)
        if call.kind == PRODUCT and is_row(call.type, &call.a, &call.b):
            call.kind = ROW
        self._work += work

    cdef void _turn(self, Call *call) noexcept:
        """Exchange the factors of a product, each transposed."""
        cdef Matrix first = call.a
        call.a, call.b = call.b, first
        call.places[0], call.places[1] = call.places[1], call.places[0]
        turn(&call.a)
        turn(&call.b)

    cdef bint _chain(self, Chain action, PyObject **store) except -1:
        """The products of a chain, one after the other, in the order that is best for the lengths."""
        cdef Matrix factors[2 * MOST_FACTORS]
        cdef int places[2 * MOST_FACTORS]
        cdef int64_t lengths[MOST_FACTORS + 1]
        cdef int order[2 * MOST_FACTORS]
        cdef int i, n = action._n_arguments, itemsize = 4 if action._type == cnp.NPY_FLOAT32 else 8
        cdef list values = [<object>store[action._slots[i]] for i in range(n)]
        if action._type not in (cnp.NPY_FLOAT32, cnp.NPY_FLOAT64):
            return False
        for i in range(n):
            places[i] = self._place_of[action._slots[i]]
            if places[i] < 0 or not as_matrix(values[i], False, i > 0, itemsize, &factors[i]):
                return False
        if not action._read_lengths(values, lengths):
            return False
        action._plan(lengths, order)
        if not self._name_output(action._outputs[0], -1, store):
            return False
        for i in range(n - 1):
            places[n + i] = self._place_of[action._outputs[0]]
            if i < n - 2:
                places[n + i] = self._new_place(
                    OWN, NULL, factors[order[2 * i]].rows * factors[order[2 * i + 1]].columns * itemsize
                )
            self._link(action._type, factors, places, order + 2 * i, n + i)
        return True

    cdef int _link(
        self, int type, Matrix *factors, int *places, int *pair, int made
    ) except -1:
        """Record the product of a pair of matrices; it is a matrix, too."""
        cdef Call *call = self._new_call(PRODUCT)
        cdef int i
        call.type, call.alpha, call.beta = type, 1.0, 0.0
        call.a, call.b = factors[pair[0]], factors[pair[1]]
        call.places = <int *>self._new(4 * sizeof(int))
        call.places[0], call.places[1] = places[pair[0]], places[pair[1]]
        call.places[2], call.places[3] = -1, places[made]
        set_matrix(&factors[made], NULL, call.a.rows, call.b.columns)
        self._choose_way(call)
        return 0

    cdef bint _decomposition(self, Decomposition action, PyObject **store) except -1:
        cdef Call *call = self._new_call(DECOMPOSE)
        cdef int i, slot, n = action._n_given, n_found = len(action._shapes)
        cdef list kept = []
        call.matrices = <decomposition *>self._new(sizeof(decomposition))
        call.function, call.n_arrays = action._function, n + n_found
        call.places = <int *>self._new(call.n_arrays * sizeof(int))
        if action._residuals >= 0 or not action._read(store, call.matrices, kept):
            return False
        for i in range(n):
            slot = action._slots[action._order[i]]
            call.places[i] = self._place_of[slot]
            if call.places[i] < 0 or kept[i] is not <object>store[slot]:
                return False
        if n_found == 0:
            self._place_of[action._outputs[0]] = call.places[0]
        for i in range(n_found):
            slot = action._outputs[i]
            if not self._name_output(slot, -1, store):
                return False
            read_stack(<cnp.ndarray>store[slot], len(action._shapes[i]), &call.matrices.found[i])
            call.places[n + i] = self._place_of[slot]
        self._work += action.work(call.matrices)
        return True

    cdef bint _transpose(self, Transpose action, PyObject **store) except -1:
        cdef int place = self._place_of[action._slots[0]]
        self._place_of[action._outputs[0]] = place
        return place >= 0 and (
            cnp.PyArray_DATA(<cnp.ndarray>store[action._slots[0]])
            == cnp.PyArray_DATA(<cnp.ndarray>store[action._outputs[0]])
        )

    cdef bint _part(self, int slot, int output, PyObject **store) except -1:
        """A view of a part of what is in ``slot``."""
        cdef int place, source = self._place_of[slot]
        cdef cnp.ndarray x, z
        cdef Call *call
        cdef Cut *cut
        cdef cnp.npy_intp offset
        if source < 0 or not cnp.PyArray_CheckExact(<object>store[slot]):
            return False
        x, z = <cnp.ndarray>store[slot], <cnp.ndarray>store[output]
        offset = cnp.PyArray_BYTES(z) - cnp.PyArray_BYTES(x)
        if self._kinds[source] == FIXED:
            self._place_of[output] = self._new_place(
                FIXED, self._addresses[source] + offset, cnp.PyArray_NBYTES(z)
            )
            return True
        place = self._place_of[output] = self._new_place(PART, NULL, cnp.PyArray_NBYTES(z))
        self._roots[place], self._late[place] = self._roots[source], self._late[source]
        if self._late[source]:
            call = self._new_call(SHIFT)
            call.places = <int *>self._new(2 * sizeof(int))
            call.places[0], call.places[1], call.offset = source, place, offset
            return True
        cut = &self._cuts[self._n_cuts]
        cut.place, cut.source, cut.offset = place, source, offset
        self._n_cuts += 1
        return True

    cdef Writing *_writing(self, int source, int target) except NULL:
        """Record that something of one place is written to another; it says how."""
        cdef Call *call = self._new_call(WRITE)
        call.writing = <Writing *>self._new(sizeof(Writing))
        call.places = <int *>self._new(2 * sizeof(int))
        call.places[0], call.places[1] = source, target
        self._work += self._sizes[target] / 4
        return call.writing

    cdef bint _fill(self, Fill action, PyObject **store) except -1:
        cdef cnp.ndarray value, z
        cdef int source = self._place_of[action._slots[0]]
        if source < 0 or not self._name_output(action._outputs[0], action._into, store):
            return False
        value, z = <cnp.ndarray>store[action._slots[0]], <cnp.ndarray>store[action._outputs[0]]
        if cnp.PyArray_TYPE(value) != cnp.PyArray_TYPE(z) or cnp.PyArray_NDIM(value) != 0:
            return False
        write_whole(z, value, self._writing(source, self._place_of[action._outputs[0]]))
        return True

    cdef bint _copied(self, Copied action, PyObject **store) except -1:
        cdef int source = self._place_of[action._slots[0]], slot = action._outputs[0]
        cdef cnp.ndarray x, z
        if source < 0:
            return False
        x, z = <cnp.ndarray>store[action._slots[0]], <cnp.ndarray>store[slot]
        if x is z:
            self._place_of[slot] = source
            return True
        if not cnp.PyArray_IS_C_CONTIGUOUS(z):
            return False
        self._place_of[slot] = self._new_place(OWN, NULL, cnp.PyArray_NBYTES(z))
        write_whole(z, x, self._writing(source, self._place_of[slot]))
        return True

    cdef bint _write(self, Written action, PyObject **store) except -1:
        cdef int before = self._place_of[action._slots[0]]
        cdef int source = self._place_of[action._slots[1]]
        cdef int target
        cdef cnp.ndarray x, y, z
        cdef cnp.npy_intp offset
        cdef Writing *writing
        if before < 0 or source < 0:
            return False
        if not self._name_output(action._outputs[0], action._into, store):
            return False
        x, y = <cnp.ndarray>store[action._slots[0]], <cnp.ndarray>store[action._slots[1]]
        z = <cnp.ndarray>store[action._outputs[0]]
        target = self._place_of[action._outputs[0]]
        if source == target or not same_lengths(x, z) or overlap(z, y):
            return False
        if before != target:
            write_whole(z, x, self._writing(before, target))
        writing = self._writing(source, target)
        if not action._plan(store, z, y, &offset, writing):
            return False
        self._calls[self._n_calls - 1].offset = offset
        return True

    cdef bint _join(self, Joined action, PyObject **store) except -1:
        """Parts that are written where they do not lie in their places already."""
        cdef cnp.npy_intp lengths[MOST_AXES]
        cdef int k, axis, part, target
        cdef cnp.npy_intp offset = 0
        cdef cnp.ndarray x, z, place
        if not self._name_output(action._outputs[0], action._into, store):
            return False
        target = self._place_of[action._outputs[0]]
        z = <cnp.ndarray>store[action._outputs[0]]
        for axis in range(cnp.PyArray_NDIM(z)):
            lengths[axis] = cnp.PyArray_DIM(z, axis)
        for k in range(action._n_inputs):
            part = self._place_of[action._slots[k]]
            x = <cnp.ndarray>store[action._slots[k]]
            if part < 0 or cnp.PyArray_TYPE(x) != cnp.PyArray_TYPE(z):
                return False
            lengths[action._axis] = cnp.PyArray_DIM(x, action._axis)
            if self._roots[part] != self._roots[target]:
                place = view_of(
                    z, cnp.PyArray_NDIM(z), lengths, cnp.PyArray_STRIDES(z), cnp.PyArray_BYTES(z) + offset
                )
                write_whole(place, x, self._writing(part, target))
                self._calls[self._n_calls - 1].offset = offset
            elif not same_place(x, cnp.PyArray_BYTES(z) + offset, cnp.PyArray_STRIDES(z)):
                return False
            offset += lengths[action._axis] * cnp.PyArray_STRIDE(z, action._axis)
        return True

    cdef int _copy(self, int source, int target, cnp.ndarray value, cnp.ndarray like):
        """Say that a result is copied to where it belongs, which is laid out as another array."""
        cdef Copy *copy = &self._copies[self._n_copies]
        copy.source, copy.target = source, target
        write_whole(like, value, &copy.writing)
        self._n_copies += 1

    cdef int _provide(self, int place) except -1:
        """Memory for what a run makes."""
        buffer = np.empty(self._sizes[place], np.uint8)
        self._memory.append(buffer)
        self._addresses[place] = cnp.PyArray_BYTES(<cnp.ndarray>buffer)
        return 0
