# Steps of a loop without Python: where all lengths are known from a step that was recorded, the next
# ones are calls of C functions whose arrays move.

# Signals are looked for after so much work (elements times operations), or so many steps.
cdef double WORK_BETWEEN_SIGNALS = 5e6
cdef int64_t STEPS_BETWEEN_SIGNALS = 4096

# Actions whose steps can be recorded.
FREEZABLE = (KernelCall, Product, Transpose, View, Lengths, Fill, Written, RandomDraw)

cdef enum Place:
    FIXED = 0       # captured, a constant, or what is computed from such and from lengths
    MOVING = 1      # a row of a sequence, state or stack
    STATE = 2       # a carried value before the step
    OWN = 3         # made in the step
    PART = 4        # of another place


cdef struct Layout:
    int ndim
    int itemsize
    cnp.npy_intp lengths[MOST_AXES]
    cnp.npy_intp strides[MOST_AXES]


cdef struct Call:
    Kernel kernel       # NULL: a product, or
    Writing *writing    # if not NULL, elements of one place that are written to another
    int *places         # of a kernel's arrays; of a product: a, b, c (-1: nothing to copy), result;
                        # of a writing: what is read, what is written
    cnp.npy_intp offset     # of a writing: where it begins
    int n_arrays
    char **data         # of a kernel: addresses of arrays, then of constants
    int64_t *shape
    int64_t *strides
    Matrix a
    Matrix b
    int position        # of the instruction
    int type
    double alpha
    double beta
    Layout c


cdef struct Cut:
    int place
    int source
    cnp.npy_intp offset


cdef struct Copy:
    int source
    int target
    Layout layout       # of the source; the target is in C order


cdef void read_layout(cnp.ndarray x, Layout *layout):
    """That of an array; what lies in one piece has one axis."""
    cdef int axis
    layout.itemsize = cnp.PyArray_ITEMSIZE(x)
    if cnp.PyArray_IS_C_CONTIGUOUS(x):
        layout.ndim = 1
        layout.lengths[0], layout.strides[0] = cnp.PyArray_SIZE(x), layout.itemsize
        return
    layout.ndim = cnp.PyArray_NDIM(x)
    for axis in range(layout.ndim):
        layout.lengths[axis] = cnp.PyArray_DIM(x, axis)
        layout.strides[axis] = cnp.PyArray_STRIDE(x, axis)


cdef char *copy_axes(Layout *layout, int axis, char *source, char *target) noexcept nogil:
    """Copy the elements along the axes from this one on; return where the next ones go."""
    cdef cnp.npy_intp i, n = layout.lengths[axis], stride = layout.strides[axis]
    cdef bint is_last = axis == layout.ndim - 1
    if is_last and stride == layout.itemsize:
        memcpy(target, source, n * stride)
        return target + n * stride
    for i in range(n):
        if is_last:
            memcpy(target, source, layout.itemsize)
            target += layout.itemsize
        else:
            target = copy_axes(layout, axis + 1, source, target)
        source += stride
    return target


cdef class Frozen:
    """What the steps of a loop do, each instruction with its lengths.

    Arrays are numbered *places*: what lies in one array has one place, whose address is known in
    every step. Owns the memory of what a step makes, unless that is a row of the results.
    """

    cdef NativeMachine _machine
    cdef list _memory               # keeps what the pointers below point to
    cdef bint _fits
    cdef int *_place_of             # of slots; -1: none
    cdef char **_addresses
    cdef int64_t *_moves            # bytes from step to step
    cdef int *_kinds
    cdef size_t *_sizes
    cdef bint *_claimed             # whether a place is that of a result
    cdef Call *_calls
    cdef Cut *_cuts
    cdef Copy *_copies
    cdef int *_exchanges            # pairs of places
    cdef int _n_places, _n_calls, _n_cuts, _n_copies, _n_exchanges, _until
    cdef double _work
    cdef Tally _tally
    cdef Steady *_steady            # of instructions, in the steps that were timed

    def __cinit__(self, NativeMachine machine):
        cdef int slot, n_slots = machine._n_slots, n_outputs = machine._n_outputs
        # Each slot has a place at most, and each row of a result one.
        cdef int most = n_slots + n_outputs
        self._machine = machine
        self._memory = []
        self._fits = True
        self._until = -1
        self._place_of = <int *>self._new(n_slots * sizeof(int))
        self._addresses = <char **>self._new(most * sizeof(char *))
        self._moves = <int64_t *>self._new(most * sizeof(int64_t))
        self._kinds = <int *>self._new(most * sizeof(int))
        self._sizes = <size_t *>self._new(most * sizeof(size_t))
        self._claimed = <bint *>self._new(most * sizeof(bint))
        self._calls = <Call *>self._new(2 * machine._n_steps * sizeof(Call))
        self._cuts = <Cut *>self._new(machine._n_steps * sizeof(Cut))
        self._copies = <Copy *>self._new(n_outputs * sizeof(Copy))
        self._exchanges = <int *>self._new(2 * n_outputs * sizeof(int))
        for slot in range(n_slots):
            self._place_of[slot] = -1

    cdef char *_new(self, size_t size) except NULL:
        """Zeroed memory that lives as long as this."""
        memory = bytearray(size + 1)
        self._memory.append(memory)
        return PyByteArray_AsString(memory)

    cdef int _new_place(self, int kind, char *address, int64_t move, size_t size):
        cdef int place = self._n_places
        self._kinds[place], self._addresses[place] = kind, address
        self._moves[place], self._sizes[place] = move, size
        self._n_places += 1
        return place

    # -- recording

    cdef int record(self, Loop loop, PyObject **store) except -1:
        """Do a step, and note what is done."""
        cdef int position = 0
        cdef Clock clock = None
        self._tally = loop._tally
        if self._tally is not None:
            self._steady = <Steady *>self._new(self._machine._n_steps * sizeof(Steady))
            if next_run(&self._tally.sampler) == FULL:
                clock = Clock()
        self._name_inputs(loop, store)
        try:
            while position < self._machine._n_steps:
                self._do(position, store, clock)
                position += 1
        except Exception as problem:
            self._machine.blame(problem, store, position)
            raise
        return 0

    cdef int _do(self, int position, PyObject **store, Clock clock) except -1:
        cdef int i
        cdef PyObject *value
        cdef Step *step = &self._machine._steps[position]
        cdef Action action = <Action>step.action
        cdef int64_t entries = symcomp_entries()[0]
        cdef int first = self._n_calls
        if clock is not None:
            clock.before(self._tally, position, store, step)
        action.run(store)
        if clock is not None:
            clock.after(self._tally, position, store, step)
        elif self._tally is not None:
            self._tally.recognise(position, store, step)
        if self._tally is not None:
            self._tally.counts[position] += 1
            self._tally.in_python[position] += symcomp_entries()[0] != entries
        if self._fits:
            self._fits = self._note(action, step, store)
        for i in range(first, self._n_calls):
            self._calls[i].position = position
        for i in range(step.n_frees):
            value = store[step.frees[i]]
            store[step.frees[i]] = NULL
            Py_XDECREF(value)
        return 0

    cdef bint _note(self, Action action, Step *step, PyObject **store) except -1:
        """Record an action; False if it cannot be done without Python."""
        cdef int slot
        if type(action) is Lengths or (
            (type(action) is KernelCall or type(action) is Product) and self._are_fixed(step, 0)
        ):
            return self._fix(step, store)
        if type(action) is KernelCall:
            return self._kernel(<KernelCall>action, store)
        if type(action) is Product:
            return self._product(<Product>action, store)
        if type(action) is Transpose:
            return self._transpose(<Transpose>action, store)
        if type(action) is View and self._are_fixed(step, 1):
            return self._part(step.inputs[0], step.inputs[step.n_inputs], store)
        if type(action) is Fill and self._are_fixed(step, 1):
            return self._fill(<Fill>action, store)
        if type(action) is Written and self._are_fixed(step, 2):
            return self._write(<Written>action, store)
        if type(action) is RandomDraw and self._are_fixed(step, 1):
            return record_draw(self, <RandomDraw>action, store)
        return False

    cdef bint _are_fixed(self, Step *step, int first) noexcept:
        """Whether the inputs of an instruction, from this one on, are the same in all steps."""
        cdef int i, place
        for i in range(first, step.n_inputs):
            place = self._place_of[step.inputs[i]]
            if place < 0 or self._kinds[place] != FIXED:
                return False
        return True

    cdef bint _fix(self, Step *step, PyObject **store) except -1:
        """Keep what an instruction made for all steps."""
        cdef int i, slot
        cdef cnp.ndarray array
        for i in range(step.n_outputs):
            slot = step.inputs[step.n_inputs + i]
            if not cnp.PyArray_Check(<object>store[slot]):
                return False
            if not cnp.PyArray_IS_C_CONTIGUOUS(<cnp.ndarray>store[slot]):
                return False
            # A copy, as the array may be overwritten when nobody reads it any more.
            array = cnp.PyArray_NewCopy(<cnp.ndarray>store[slot], cnp.NPY_CORDER)
            self._memory.append(array)
            self._place_of[slot] = self._new_place(
                FIXED, cnp.PyArray_BYTES(array), 0, cnp.PyArray_NBYTES(array)
            )
        return True

    cdef int _name_inputs(self, Loop loop, PyObject **store) except -1:
        """Give a place to each input and constant that is an array."""
        cdef int i, slot
        cdef int *slots = self._machine._input_slots
        cdef int first = loop._n_reads + loop._n_carried
        for i in range(self._machine._n_inputs):
            if loop._n_reads <= i < first:
                self._name(slots[i], store, STATE, 0)
            elif i < loop._n_reads:
                self._name_row(slots[i], store, loop._arrays[loop._read[2 * i]])
            elif i < first + len(loop._sequences):
                self._name_row(slots[i], store, loop._sequences[i - first])
            else:
                self._name(slots[i], store, FIXED, 0)
        for slot in self._machine.program.constants:
            self._name(slot, store, FIXED, 0)
        return 0

    cdef int _name_row(self, int slot, PyObject **store, cnp.ndarray x) except -1:
        self._name(slot, store, MOVING, cnp.PyArray_STRIDE(x, 0))
        # Another row of what is not aligned might be less so.
        self._fits = self._fits and cnp.PyArray_ISBEHAVED_RO(x)
        return 0

    cdef int _name(self, int slot, PyObject **store, int kind, int64_t move) except -1:
        cdef cnp.ndarray array
        if cnp.PyArray_Check(<object>store[slot]):
            array = <cnp.ndarray>store[slot]
            self._place_of[slot] = self._new_place(
                kind, cnp.PyArray_BYTES(array), move, cnp.PyArray_NBYTES(array)
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
                return self._kinds[place] == OWN
        self._place_of[slot] = self._new_place(OWN, NULL, 0, cnp.PyArray_NBYTES(array))
        return cnp.PyArray_IS_C_CONTIGUOUS(array)

    cdef bint _kernel(self, KernelCall action, PyObject **store) except -1:
        cdef int axis, at, i, k, n = action._n_inputs + action._n_outputs
        cdef int ndim = action._ndim
        cdef Call *call = &self._calls[self._n_calls]
        cdef double size = action._steps
        cdef cnp.ndarray array
        call.n_arrays, call.kernel = n, action._kernel
        call.places = <int *>self._new(n * sizeof(int))
        call.data = <char **>self._new((n + len(action._constants)) * sizeof(char *))
        call.shape = <int64_t *>self._new(ndim * sizeof(int64_t))
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
        self._n_calls += 1
        self._work += size
        return True

    cdef bint _product(self, Product action, PyObject **store) except -1:
        cdef Call *call = &self._calls[self._n_calls]
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
        call.kernel, call.type = NULL, action._type
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
                read_layout(<cnp.ndarray>store[action._c], &call.c)
        self._n_calls += 1
        self._work += <double>call.a.rows * call.a.columns * call.b.columns
        return call.places[3] != call.places[0] and call.places[3] != call.places[1]

    cdef bint _transpose(self, Transpose action, PyObject **store) except -1:
        cdef int place = self._place_of[action._slots[0]]
        self._place_of[action._outputs[0]] = place
        return place >= 0 and (
            cnp.PyArray_DATA(<cnp.ndarray>store[action._slots[0]])
            == cnp.PyArray_DATA(<cnp.ndarray>store[action._outputs[0]])
        )

    cdef bint _part(self, int slot, int output, PyObject **store) except -1:
        """A view of a part of what is in ``slot``."""
        cdef int source = self._place_of[slot]
        cdef cnp.ndarray x, z
        cdef Cut *cut
        cdef cnp.npy_intp offset
        if source < 0 or not cnp.PyArray_CheckExact(<object>store[slot]):
            return False
        x, z = <cnp.ndarray>store[slot], <cnp.ndarray>store[output]
        offset = cnp.PyArray_BYTES(z) - cnp.PyArray_BYTES(x)
        if self._kinds[source] == FIXED:
            self._place_of[output] = self._new_place(
                FIXED, self._addresses[source] + offset, 0, cnp.PyArray_NBYTES(z)
            )
            return True
        cut = &self._cuts[self._n_cuts]
        cut.place = self._new_place(PART, NULL, 0, cnp.PyArray_NBYTES(z))
        cut.source, cut.offset = source, offset
        self._place_of[output] = cut.place
        self._n_cuts += 1
        return True

    cdef Writing *_writing(self, int source, int target) except NULL:
        """Record that something of one place is written to another; it says how."""
        cdef Call *call = &self._calls[self._n_calls]
        call.writing = <Writing *>self._new(sizeof(Writing))
        call.places = <int *>self._new(2 * sizeof(int))
        call.places[0], call.places[1] = source, target
        self._n_calls += 1
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

    # -- what becomes of the results

    cdef bint complete(self, Loop loop, PyObject **store) except -1:
        """Say where results go in the steps after the recorded one; False if they differ from it.

        The store is cleared.
        """
        cdef int i, at, slot
        cdef int *slots = self._machine._output_slots
        self._go_on(loop)
        for i in range(loop._n_rows):
            if self._fits:
                at = i if i < loop._n_states else i + loop._n_carried
                self._fits = self._into_row(loop, i, slots[at], store)
        for i in range(loop._n_carried):
            if self._fits:
                self._fits = self._into_state(
                    slots[loop._n_states + i], self._machine._input_slots[loop._n_reads + i], store
                )
        if self._fits and loop._until:
            slot = slots[loop._n_rows + loop._n_carried]
            self._until = self._place_of[slot]
            self._fits = (
                self._until >= 0
                and cnp.PyArray_TYPE(<cnp.ndarray>store[slot]) == cnp.NPY_BOOL
                and cnp.PyArray_NDIM(<cnp.ndarray>store[slot]) == 0
            )
        if self._fits:
            self._provide(loop)
        self._machine.clear(store)
        return self._fits

    cdef int _go_on(self, Loop loop) except -1:
        """From the rows that the recorded step read to those of the next one."""
        cdef int i, place
        cdef cnp.ndarray rows
        for i in range(self._n_places):
            if self._kinds[i] == MOVING:
                self._addresses[i] += self._moves[i]
        for i in range(loop._n_reads):
            # The step may have moved the rows to larger memory.
            rows = <cnp.ndarray>loop._arrays[loop._read[2 * i]]
            place = self._place_of[self._machine._input_slots[i]]
            self._addresses[place] = cnp.PyArray_BYTES(rows)
            self._addresses[place] += (
                (loop.done + loop._read[2 * i + 1]) * cnp.PyArray_STRIDE(rows, 0)
            )
        return 0

    cdef bint _into_row(self, Loop loop, int i, int slot, PyObject **store) except -1:
        """What is a row: it is made there, or else copied."""
        cdef int place = self._place_of[slot]
        cdef cnp.ndarray rows = <cnp.ndarray>loop._arrays[i]
        cdef cnp.ndarray row, value
        cdef cnp.npy_intp at = loop.done + loop._depths[i]
        cdef int target
        cdef bint in_order
        if place < 0 or at >= cnp.PyArray_DIM(rows, 0):
            return False
        row, value = row_of(rows, at), <cnp.ndarray>store[slot]
        if not same_lengths(value, row) or cnp.PyArray_NDIM(value) > MOST_AXES:
            return False
        in_order = cnp.PyArray_IS_C_CONTIGUOUS(value) and cnp.PyArray_IS_C_CONTIGUOUS(row)
        if in_order and self._kinds[place] == OWN and not self._claimed[place]:
            self._addresses[place] = cnp.PyArray_BYTES(row)
            self._moves[place] = cnp.PyArray_STRIDE(rows, 0)
            self._claimed[place] = True
            return True
        target = self._new_place(
            MOVING, cnp.PyArray_BYTES(row), cnp.PyArray_STRIDE(rows, 0), self._sizes[place]
        )
        self._copy(place, target, value)
        return True

    cdef bint _into_state(self, int slot, int before, PyObject **store) except -1:
        """What is carried: it and the last one change places, or else it is copied."""
        cdef int place = self._place_of[slot], last = self._place_of[before]
        if place < 0 or last < 0:
            return False
        if not same_layout(<cnp.ndarray>store[slot], <cnp.ndarray>store[before]):
            return False
        if place == last:
            return True
        if self._kinds[place] == STATE:
            return False
        if self._kinds[place] == OWN and not self._claimed[place]:
            self._claimed[place] = True
            self._exchanges[2 * self._n_exchanges] = place
            self._exchanges[2 * self._n_exchanges + 1] = last
            self._n_exchanges += 1
        else:
            self._copy(place, last, <cnp.ndarray>store[slot])
        return True

    cdef int _copy(self, int source, int target, cnp.ndarray value):
        cdef Copy *copy = &self._copies[self._n_copies]
        copy.source, copy.target = source, target
        read_layout(value, &copy.layout)
        self._n_copies += 1

    cdef int _provide(self, Loop loop) except -1:
        """Memory for what a step makes, and what is carried into the next one."""
        cdef int i, place
        cdef cnp.ndarray array
        for place in range(self._n_places):
            if self._kinds[place] == STATE or self._kinds[place] == OWN:
                if self._moves[place] == 0:
                    buffer = np.empty(self._sizes[place], np.uint8)
                    self._memory.append(buffer)
                    self._addresses[place] = cnp.PyArray_BYTES(<cnp.ndarray>buffer)
        for i in range(loop._n_carried):
            place = self._place_of[self._machine._input_slots[loop._n_reads + i]]
            array = <cnp.ndarray>loop.carried[i]
            memcpy(self._addresses[place], cnp.PyArray_DATA(array), self._sizes[place])
        return 0

    # -- running

    cdef bint run(self, Loop loop, int64_t most) except -1:
        """Do steps while there are rows for them; False if one was the last."""
        cdef int64_t stop = most, chunk, end, done = loop.done
        cdef bint more = True
        cdef int i, failed = 0
        for i in range(loop._n_rows):
            stop = min(stop, len(loop._arrays[i]) - loop._depths[i])
        chunk = <int64_t>(WORK_BETWEEN_SIGNALS / max(self._work, 1.0))
        chunk = max(1, min(chunk, STEPS_BETWEEN_SIGNALS))
        while more and done < stop:
            PyErr_CheckSignals()
            end = min(stop, done + chunk)
            if self._tally is None:
                with nogil:
                    more = self._steps(&done, end, NULL, &failed)
            else:
                more = self._counted_steps(&done, end, &failed)
            loop.unattended += done - loop.done
            loop.done = done
            if failed:
                raise MemoryError("a kernel found no memory for what it keeps meanwhile")
        self._give_back(loop)
        return more

    cdef bint _steps(
        self, int64_t *done, int64_t end, Sampler *sampler, int *failed
    ) noexcept nogil:
        """Do steps; False if one was the last."""
        cdef bint more = True
        cdef int64_t timed = end + 1        # the next step that is
        if sampler != NULL:
            timed = done[0] + sampler.skip
        while more and done[0] < end:
            if done[0] < timed:
                failed[0] = self._step()
            else:
                sampler.skip = 0
                failed[0] = self._timed_step(sampler, next_run(sampler))
                timed = done[0] + 1 + sampler.skip
            if failed[0]:
                break
            if self._until >= 0:
                more = not self._addresses[self._until][0]
            self._advance()
            done[0] += 1
        if sampler != NULL:
            sampler.skip = max(0, timed - done[0])
        return more

    cdef bint _counted_steps(self, int64_t *done, int64_t end, int *failed) except -1:
        """``_steps``, and count them; with a sampler of their own while the GIL is released."""
        cdef Tally tally = self._tally
        cdef Sampler sampler = tally.sampler
        cdef int64_t first = done[0]
        cdef bint more
        with nogil:
            more = self._steps(done, end, &sampler, failed)
        # Those that were not timed were not seen.
        sampler.seen = tally.sampler.seen + done[0] - first
        tally.sampler = sampler
        tally.add_steps(done[0] - first, self._steady)
        return more

    cdef int _timed_step(self, Sampler *sampler, int kind) noexcept nogil:
        """``_step``, with a look at the clock around it, or around each call."""
        cdef int64_t began = nanoseconds(), before
        cdef int i
        if kind == WHOLE:
            if self._step():
                return 1
        else:
            # What is no call is done in passing.
            for i in range(self._machine._n_steps):
                self._steady[i].n += 1
            self._cut()
            for i in range(self._n_calls):
                before = nanoseconds()
                if self._call(&self._calls[i]):
                    return 1
                temper(
                    &self._steady[self._calls[i].position],
                    max(0, nanoseconds() - before - clock_latency),
                )
        was_timed(
            sampler, kind, nanoseconds() - began, 2 * self._n_calls * clock_latency
        )
        return 0

    cdef int _step(self) noexcept nogil:
        """Do what is recorded."""
        cdef int i
        self._cut()
        for i in range(self._n_calls):
            if self._call(&self._calls[i]):
                return 1
        return 0

    cdef inline void _cut(self) noexcept nogil:
        """The addresses of parts."""
        cdef int i
        cdef Cut *cut
        for i in range(self._n_cuts):
            cut = &self._cuts[i]
            self._addresses[cut.place] = self._addresses[cut.source] + cut.offset

    cdef inline int _call(self, Call *call) noexcept nogil:
        """One kernel, product or writing of a part."""
        cdef int k
        cdef char **addresses = self._addresses
        if call.kernel != NULL:
            for k in range(call.n_arrays):
                call.data[k] = addresses[call.places[k]]
            return call.kernel(call.data, call.shape, call.strides, 1)
        if call.writing != NULL:
            move_axes(
                &call.writing.together, call.writing.move,
                addresses[call.places[1]] + call.offset, addresses[call.places[0]]
            )
            return 0
        call.a.data = addresses[call.places[0]]
        call.b.data = addresses[call.places[1]]
        if call.places[2] >= 0:
            copy_axes(&call.c, 0, addresses[call.places[2]], addresses[call.places[3]])
        multiply(call.type, &call.a, &call.b, addresses[call.places[3]], call.alpha, call.beta)
        return 0

    cdef void _advance(self) noexcept nogil:
        """Results to where they belong, addresses to those of the next step."""
        cdef int i, first, second
        cdef Copy *copy
        cdef char **addresses = self._addresses
        for i in range(self._n_copies):
            copy = &self._copies[i]
            copy_axes(&copy.layout, 0, addresses[copy.source], addresses[copy.target])
        for i in range(self._n_exchanges):
            first, second = self._exchanges[2 * i], self._exchanges[2 * i + 1]
            addresses[first], addresses[second] = addresses[second], addresses[first]
        for i in range(self._n_places):
            addresses[i] += self._moves[i]

    cdef int _give_back(self, Loop loop) except -1:
        """The carried values as arrays."""
        cdef int i, place
        cdef cnp.ndarray array
        for i in range(loop._n_carried):
            place = self._place_of[self._machine._input_slots[loop._n_reads + i]]
            array = np.empty_like(loop.carried[i])
            memcpy(cnp.PyArray_DATA(array), self._addresses[place], self._sizes[place])
            loop.carried[i] = array
        return 0
