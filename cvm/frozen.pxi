# Steps of a loop without Python: where all lengths are known from a step that was recorded, the next
# ones are calls of C functions whose arrays move.

# Signals are looked for after so much work (elements times operations), or so many steps.
cdef double WORK_BETWEEN_SIGNALS = 5e6
cdef int64_t STEPS_BETWEEN_SIGNALS = 4096

cdef enum Outcome:
    DONE = 0
    # The step goes another way through the body than the one recorded, or a kernel found something
    # that Python has to say.
    UNDONE = 1

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
    bint chooses        # whether it is a choice: what the one place must hold is ``wanted``
    bint wanted
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


cdef class Frozen:
    """What the steps of a loop do that go one way through its body, with all lengths.

    Arrays are numbered *places*: what lies in one array has one place, whose address is known in
    every step. Owns the memory of what a step makes, unless that is a row of the results. A step
    changes nothing that the next one reads before it is complete: where it turns out to go another
    way, it is begun again in that one.
    """

    cdef NativeMachine _machine
    cdef list _memory               # keeps what the pointers below point to
    cdef bint _fits
    cdef int *_place_of             # of slots; -1: none
    cdef char **_addresses
    cdef int64_t *_moves            # bytes from step to step
    cdef int *_kinds
    cdef size_t *_sizes
    cdef int *_roots                # the place that a part lies in; of others, themselves
    cdef bint *_claimed             # whether a place is that of a result
    cdef Call *_calls
    cdef Cut *_cuts
    cdef Copy *_copies
    cdef int *_exchanges            # pairs of places
    cdef int _n_places, _n_calls, _n_cuts, _n_copies, _n_exchanges, _until
    cdef double _work
    cdef int64_t _at                # the step that the addresses are those of
    cdef bint *_visited             # which instructions a step does
    cdef Tally _tally
    cdef Steady *_steady            # of instructions, in the steps that were timed

    def __cinit__(self, NativeMachine machine):
        cdef int slot, n_slots = machine._n_slots, n_outputs = machine._n_outputs
        # Each slot has a place at most, and each row of a result one.
        cdef int most = n_slots + n_outputs, most_calls = 0, position
        self._machine = machine
        self._memory = []
        self._fits = True
        self._until = -1
        self._place_of = <int *>self._new(n_slots * sizeof(int))
        self._addresses = <char **>self._new(most * sizeof(char *))
        self._moves = <int64_t *>self._new(most * sizeof(int64_t))
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
        self._exchanges = <int *>self._new(2 * n_outputs * sizeof(int))
        self._visited = <bint *>self._new(machine._n_steps * sizeof(bint))
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
        self._roots[place] = place
        self._n_places += 1
        return place

    # -- running

    cdef int _enter(self, Loop loop) noexcept:
        """Go to the next step of the loop, and take what is carried into it."""
        cdef int i, place
        cdef int64_t further = loop.done - self._at
        for i in range(self._n_places):
            self._addresses[i] += further * self._moves[i]
        self._at = loop.done
        for i in range(loop._n_carried):
            place = self._place_of[self._machine._input_slots[loop._n_reads + i]]
            memcpy(
                self._addresses[place], cnp.PyArray_DATA(<cnp.ndarray>loop.carried[i]),
                self._sizes[place]
            )
        return 0

    cdef bint run(self, Loop loop, int64_t most) except -1:
        """Do steps that go this way while there are rows for them; False if one was the last."""
        cdef int64_t stop = most, chunk, end, done = loop.done
        cdef bint more = True
        cdef int i, failed = 0
        for i in range(loop._n_rows):
            stop = min(stop, len(loop._arrays[i]) - loop._depths[i])
        chunk = <int64_t>(WORK_BETWEEN_SIGNALS / max(self._work, 1.0))
        chunk = max(1, min(chunk, STEPS_BETWEEN_SIGNALS))
        self._enter(loop)
        while more and done < stop and failed == DONE:
            PyErr_CheckSignals()
            end = min(stop, done + chunk)
            if self._tally is None:
                with nogil:
                    more = self._steps(&done, end, NULL, &failed)
            else:
                more = self._counted_steps(&done, end, &failed)
            loop.unattended += done - loop.done
            loop.done = self._at = done
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
        tally.add_steps(done[0] - first, self._steady, self._visited)
        return more

    cdef int _timed_step(self, Sampler *sampler, int kind) noexcept nogil:
        """``_step``, with a look at the clock around it, or around each call."""
        cdef int64_t began = nanoseconds(), before
        cdef int i, failed = DONE
        if kind == WHOLE:
            failed = self._step()
        else:
            # What is no call is done in passing.
            for i in range(self._machine._n_steps):
                self._steady[i].n += 1
            self._cut()
            for i in range(self._n_calls):
                before = nanoseconds()
                failed = self._call(&self._calls[i])
                if failed:
                    break
                temper(
                    &self._steady[self._calls[i].position],
                    max(0, nanoseconds() - before - clock_latency),
                )
        if not failed:
            was_timed(
                sampler, kind, nanoseconds() - began, 2 * self._n_calls * clock_latency
            )
        return failed

    cdef int _step(self) noexcept nogil:
        """Do what is recorded."""
        cdef int i, failed
        self._cut()
        for i in range(self._n_calls):
            failed = self._call(&self._calls[i])
            if failed:
                return failed
        return DONE

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
        cdef bint found
        cdef char **addresses = self._addresses
        if call.kernel != NULL:
            for k in range(call.n_arrays):
                call.data[k] = addresses[call.places[k]]
            return UNDONE if call.kernel(call.data, call.shape, call.strides, 1) else DONE
        if call.chooses:
            found = is_true(addresses[call.places[0]], call.type)
            return DONE if found == call.wanted else UNDONE
        if call.writing != NULL:
            move_axes(
                &call.writing.together, call.writing.move,
                addresses[call.places[1]] + call.offset, addresses[call.places[0]]
            )
            return DONE
        call.a.data = addresses[call.places[0]]
        call.b.data = addresses[call.places[1]]
        if call.places[2] >= 0:
            copy_axes(&call.c, 0, addresses[call.places[2]], addresses[call.places[3]])
        multiply(call.type, &call.a, &call.b, addresses[call.places[3]], call.alpha, call.beta)
        return DONE

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
            array = <cnp.ndarray>loop.carried[i]
            array = cnp.PyArray_EMPTY(
                cnp.PyArray_NDIM(array), cnp.PyArray_DIMS(array), cnp.PyArray_TYPE(array), 0
            )
            memcpy(cnp.PyArray_DATA(array), self._addresses[place], self._sizes[place])
            loop.carried[i] = array
        return 0
