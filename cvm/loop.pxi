# The steps of a loop: the store of its body stays from step to step, and what a step gives is copied
# into rows. `steps.pxi` has the steps of bodies that need no Python.

cdef cnp.ndarray row_of(cnp.ndarray x, cnp.npy_intp place):
    """x[place, ...] as a view."""
    return view_of(
        x, cnp.PyArray_NDIM(x) - 1, cnp.PyArray_DIMS(x) + 1, cnp.PyArray_STRIDES(x) + 1,
        cnp.PyArray_BYTES(x) + place * cnp.PyArray_STRIDE(x, 0)
    )


cdef bint same_lengths(cnp.ndarray x, cnp.ndarray y):
    """Whether two arrays are of one type and shape, and fit to be read."""
    cdef int axis
    if cnp.PyArray_TYPE(x) != cnp.PyArray_TYPE(y) or cnp.PyArray_NDIM(x) != cnp.PyArray_NDIM(y):
        return False
    for axis in range(cnp.PyArray_NDIM(x)):
        if cnp.PyArray_DIM(x, axis) != cnp.PyArray_DIM(y, axis):
            return False
    return cnp.PyArray_ISBEHAVED_RO(x) and cnp.PyArray_ISBEHAVED_RO(y)


cdef bint same_layout(cnp.ndarray x, cnp.ndarray y):
    """Whether, besides, both are in C order."""
    return (
        same_lengths(x, y) and cnp.PyArray_IS_C_CONTIGUOUS(x) and cnp.PyArray_IS_C_CONTIGUOUS(y)
    )


# So many ways through the choices of a body are recorded at most.
MOST_WAYS = 8


cdef class Loop:
    """The steps of a scan whose body a native machine runs.

    Owns the store for as long as ``run`` runs. A body of native actions alone runs its later steps
    without Python and without the GIL.

    Parameters
    ----------
    machine : NativeMachine
        Runs one step.
    states : list of Rows
        Of traced states: each step writes a row.
    depths : list of int
        How many rows each starts from.
    reads : list of (int, int)
        The first inputs of a step t: number i of a state and s, for its row t + s.
    carried : list
        What is carried; in the end, that after the last step.
    sequences : list of array
        Of which step t reads row t.
    captured : list
    stacks : list of Rows
        To which step t adds row t.
    until : bool
        Whether the last output of the body says that there are no more steps.

    Attributes
    ----------
    done, unattended : int
        How many steps were done so far, and how many of them without Python.
    """

    cdef readonly int64_t done, unattended
    cdef readonly list carried
    cdef NativeMachine _machine
    cdef Tally _tally
    cdef list _rows, _arrays, _sequences, _captured
    cdef int *_read         # state and shift of every read
    cdef int *_depths       # of all rows; 0 for those of stacks
    cdef int _n_states, _n_reads, _n_carried, _n_rows
    cdef bint _until
    cdef bint _grown        # whether rows were moved to larger memory

    def __cinit__(
        self, NativeMachine machine, list states, depths, reads, list carried, list sequences,
        list captured, list stacks, bint until
    ):
        self._machine = machine
        self._rows = [*states, *stacks]
        self._arrays = [rows.array for rows in self._rows]
        self._sequences, self._captured, self.carried = sequences, captured, carried
        self._n_states, self._n_reads, self._n_rows = len(states), len(reads), len(self._rows)
        self._n_carried = len(carried)
        self._read = numbers([x for pair in reads for x in pair])
        self._depths = numbers([*depths, *([0] * len(stacks))])
        self._until = until

    def __dealloc__(self):
        PyMem_Free(self._read)
        PyMem_Free(self._depths)

    def run(self, int64_t most):
        """Do the steps, at most so many; return how many were done."""
        cdef PyObject **store = self._machine.new_store()
        self._tally = inner_tally(self._machine)
        try:
            self._steps(store, most)
        finally:
            self._machine.drop_store(store)
        return self.done

    cdef int _steps(self, PyObject **store, int64_t most) except -1:
        cdef bint more = True
        cdef Steps recording
        # The ways through the body that were recorded.
        cdef list ways = []
        # The first step may start from other layouts than those that follow: there are two tries.
        cdef int tries = 2 if self._machine.is_native else 0
        self._place_fixed(store)
        while more and self.done < most:
            PyErr_CheckSignals()
            if self._run_recorded(ways, most, &more):
                continue
            self._place(store)
            if not tries or most - self.done <= 2 or len(ways) == MOST_WAYS:
                more = self._finish(store, None)
                continue
            recording = Steps(self._machine)
            self._grown = False
            more = self._finish(store, recording)
            if self._grown:
                ways = []
            tries -= 1
            if recording.complete(self, store):
                ways.append(recording)
                tries = 2
        return 0

    cdef bint _run_recorded(self, list ways, int64_t most, bint *more) except -1:
        """Do steps that go one of the ways, if the next one does."""
        cdef int64_t done = self.done
        for way in ways:
            more[0] = (<Steps>way).run(self, most)
            if self.done > done:
                return True
        return False

    cdef int _place_fixed(self, PyObject **store) except -1:
        """Set the inputs that are the same in all steps."""
        cdef int i, first = self._n_reads + self._n_carried + len(self._sequences)
        for i in range(len(self._captured)):
            put(store, self._machine._input_slots[first + i], self._captured[i])
        return 0

    cdef int _place(self, PyObject **store) except -1:
        """Set the other inputs of the next step."""
        cdef int i, at = 0
        cdef int *slots = self._machine._input_slots
        cdef cnp.ndarray array
        for i in range(self._n_reads):
            array = <cnp.ndarray>self._arrays[self._read[2 * i]]
            put(store, slots[at], row_of(array, self.done + self._read[2 * i + 1]))
            at += 1
        for i in range(self._n_carried):
            put(store, slots[at], self.carried[i])
            at += 1
        for x in self._sequences:
            put(store, slots[at], row_of(x, self.done))
            at += 1
        return 0

    cdef bint _finish(self, PyObject **store, Steps recording) except -1:
        """Do a step and take what it gives; False if it is the last."""
        cdef int i
        cdef bint more = True
        cdef int *slots = self._machine._output_slots
        if recording is not None:
            recording.record(self, store)
        elif self._tally is not None:
            self._counted_step(store)
        else:
            self._machine._guarded(store, None, None, None)
        for i in range(self._n_states):
            self._write(i, <object>store[slots[i]])
        for i in range(self._n_carried):
            self.carried[i] = <object>store[slots[self._n_states + i]]
        for i in range(self._n_states, self._n_rows):
            self._write(i, <object>store[slots[self._n_carried + i]])
        if self._until:
            more = not PyObject_IsTrue(<object>store[slots[self._n_carried + self._n_rows]])
        self.done += 1
        if recording is None:
            self._machine.clear(store)
        return more

    cdef int _counted_step(self, PyObject **store) except -1:
        cdef int kind = next_run(&self._tally.sampler)
        cdef int64_t began = nanoseconds() if kind != UNTIMED else 0
        cdef Clock clock = Clock() if kind == FULL else None
        self._machine._guarded(store, None, self._tally, clock)
        if kind != UNTIMED:
            was_timed(
                &self._tally.sampler, kind, nanoseconds() - began,
                0 if clock is None else clock.overhead,
            )
        return 0

    cdef int _write(self, int i, value) except -1:
        """Set a row of a state or stack."""
        cdef cnp.npy_intp place = self.done + self._depths[i]
        cdef cnp.ndarray row
        array = self._arrays[i]
        if array is not None and place < len(array):
            row = row_of(array, place)
            if cnp.PyArray_Check(value) and same_layout(value, row):
                memcpy(
                    cnp.PyArray_DATA(row), cnp.PyArray_DATA(<cnp.ndarray>value),
                    cnp.PyArray_NBYTES(row)
                )
                return 0
        rows = self._rows[i]
        rows.write(place, value)
        self._grown = self._grown or self._arrays[i] is not rows.array
        self._arrays[i] = rows.array
        return 0
