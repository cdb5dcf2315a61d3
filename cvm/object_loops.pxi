# Loops of which states, sequences or outputs are no arrays of the host, as functions in C: their steps, a native
# program, are run one after another.

cdef enum:
    # Between these steps other threads of Python may run.
    STEPS_IN_A_ROW = 64


cdef object row_of(array, int64_t t):
    """Return row ``t`` of an array, as a view."""
    cdef DeviceArrayBase x
    if isinstance(array, DeviceArrayBase):
        x = <DeviceArrayBase>array
        if 0 <= t < x.shape[0]:
            return view_of(x, t * <int64_t>x.strides[0], x.shape[1:], x.strides[1:])
    return array[t, ...]


@cython.final
@cython.auto_pickle(False)
cdef class ObjectRows:
    """An array, on the host or on a device, that is written row by row. ``WrittenRows`` specifies it.

    Parameters
    ----------
    written : WrittenRows
        Of the same kind; it makes arrays without rows.
    """

    cdef object array, _written, _dtype, _name, _in_order
    cdef bint _is_there
    cdef int64_t _capacity

    def __init__(self, written):
        self._written, self._name, self._dtype = written, written.name, written.dtype
        self._is_there = written.is_on_device

    cdef ObjectRows begun(self, int64_t capacity, start):
        """Return rows of this kind, of which the first are known; None: there are none."""
        cdef ObjectRows found = ObjectRows.__new__(ObjectRows)
        found._written, found._name, found._dtype = self._written, self._name, self._dtype
        found._is_there, found._capacity = self._is_there, capacity
        if start is not None:
            found._enlarge(capacity, start)
        return found

    cdef int write(self, int64_t place, value) except -1:
        """Set a row; the first one determines the shape of all."""
        if self.array is None:
            self.array = self._new(self._capacity, value.shape, value)
        if value.shape != self.array.shape[1:]:
            raise ShapeError(
                f"scan: {self._name} has shape {value.shape} in this step, and had {self.array.shape[1:]} before: all "
                "steps must give the same shape"
            )
        if place >= self.array.shape[0]:
            self._enlarge(2 * <int64_t>self.array.shape[0] + 1, self.array)
        if self._is_there:
            self._copy(place, value, self.array.strides[1:])
        else:
            self.array[place] = value
        return 0

    cdef object first(self, int64_t length, row_shape):
        """Return the first rows; ``row_shape`` is used where none was written."""
        if self.array is None:
            return self._written.first(length, row_shape)
        if length == self.array.shape[0]:
            return self.array
        if self._is_there:
            return copy_within(part_of(self.array, (slice(None, length),)))
        return self.array[:length].copy()

    cdef int _enlarge(self, int64_t length, rows) except -1:
        """Have an array of ``length`` rows, which begins with these."""
        self.array = self._new(length, rows.shape[1:], rows)
        if self._is_there:
            self._copy(0, rows, self.array.strides)
        else:
            self.array[: rows.shape[0]] = rows
        return 0

    cdef object _new(self, int64_t length, tuple row_shape, like):
        cdef DeviceArrayBase x
        cdef DeviceStream stream
        cdef int64_t nbytes = self._dtype.itemsize
        shape = (length, *row_shape)
        if not self._is_there:
            return np.empty(shape, self._dtype)
        x = <DeviceArrayBase?>like
        stream = x.driver.queue
        for n in shape:
            nbytes *= <int64_t>n
        memory = stream.pool.allocate(nbytes, f"{self._name} of shape {shape}")
        strides = dense_strides(shape, self._dtype.itemsize)
        return new_device_array(type(x), stream, memory, 0, self._dtype, shape, strides)

    cdef int _copy(self, int64_t place, value, tuple strides) except -1:
        """Copy a row, or several, to those from ``place`` on; these strides are those of C order."""
        cdef DeviceArrayBase x = <DeviceArrayBase>self.array, z = <DeviceArrayBase?>value
        cdef DeviceStream stream = x.driver.queue
        cdef int64_t low, nbytes
        span_of(z, &low, &nbytes)
        if nbytes == 0:
            return 0
        if z.strides != strides:
            if self._in_order is None:
                self._in_order = self._written.in_order(len(z.shape))
            (value,) = self._in_order(z)
            z = <DeviceArrayBase?>value
        stream.within(x.memory, place * <int64_t>x.strides[0], z.memory, z.offset, nbytes)
        return 0


@cython.final
@cython.auto_pickle(False)
cdef class ObjectLoop:
    """A loop as a function from the values of its inputs to those of its outputs. ``Scan.run_steps`` specifies it.

    Parameters
    ----------
    op : Scan
        Raises the errors of arguments, and tells the shapes of rows that no step makes.
    body : Executable
        Its step, for the native machine.
    states, stacks : sequence of WrittenRows
        Of the kinds of its traced states and of its stacked outputs.
    carried : sequence of callable or None
        What copies each carried value; None: it is an array.
    first_rows : int
        The rows allocated first for a loop that may end early.
    """

    cdef object _op, _body
    cdef NativeMachine _machine
    cdef list _states, _stacks, _carried, _depths, _reads, _written_over
    cdef Py_ssize_t _n_sequences
    cdef bint _until
    cdef int64_t _first_rows

    def __init__(self, op, body, states, stacks, carried, int64_t first_rows):
        cdef object layout = op.layout
        self._op, self._body, self._carried, self._first_rows = op, body, list(carried), first_rows
        self._states, self._stacks = [ObjectRows(x) for x in states], [ObjectRows(z) for z in stacks]
        self._depths, self._until, self._n_sequences = list(layout.depths), layout.until, layout.n_sequences
        self._reads = [
            (i, depth - lag) for i, (depth, lags) in enumerate(zip(layout.depths, layout.lags)) for lag in lags
        ]

    def __call__(self, *values):
        """Run the loop; return its results."""
        cdef Py_ssize_t i, traced = 1 + len(self._states), carried = traced + len(self._carried)
        cdef Py_ssize_t captured = carried + self._n_sequences
        cdef int64_t most = int(values[0]), done = 0, capacity
        cdef list states, stacks, now = list(values[1 + len(self._states) : carried]), results = []
        self._check(most, values[1:traced], values[carried:captured])
        capacity = min(most, self._first_rows) if self._until else most
        states = [
            (<ObjectRows>self._states[i]).begun(<int64_t>self._depths[i] + capacity, values[1 + i])
            for i in range(len(self._states))
        ]
        stacks = [(<ObjectRows>kind).begun(capacity, None) for kind in self._stacks]
        if self._machine is None:
            machine = self._body.native
            self._written_over = list(machine.program.written_over.values())
            # Last: other threads may call when it is set.
            self._machine = machine
        try:
            self._run(most, &done, states, now, list(values[carried:captured]), list(values[captured:]), stacks)
        except Exception as problem:
            problem.add_note(f"This was in step {done} (of at most {most}) of {self._op}")
            raise
        for i in range(len(states)):
            results.append((<ObjectRows>states[i]).first(<int64_t>self._depths[i] + done, None))
        for i in range(len(now)):
            if isinstance(now[i], DeviceArrayBase):  # arrays there are never written again
                results.append(now[i])
            else:
                results.append(np.array(now[i]) if self._carried[i] is None else self._carried[i](now[i]))
        shapes = self._op.lengths_without_steps(values[1:]) if done == 0 and stacks else [None] * len(stacks)
        for i in range(len(stacks)):
            results.append((<ObjectRows>stacks[i]).first(done, shapes[i]))
        if self._until:
            results.append(np.array(done, np.int64))
        return tuple(results)

    cdef int _check(self, int64_t most, tuple traced, tuple sequences) except -1:
        cdef bint fits = most >= 0
        for x, depth in zip(traced, self._depths):
            fits &= x.shape[0] == depth
        for x in sequences:
            fits &= x.shape[0] >= most
        if not fits:
            self._op.check_lengths(most, traced, sequences)
        return 0

    cdef int _run(
        self, int64_t most, int64_t *done, list states, list carried, list sequences, list captured, list stacks
    ) except -1:
        """Run the steps, at most this many; tell how many were done."""
        cdef list values, new
        cdef int64_t t
        cdef Py_ssize_t i, n_states = len(states), n_carried = len(carried)
        while done[0] < most:
            t = done[0]
            values = [
                row_of((<ObjectRows>states[<Py_ssize_t>number]).array, t + <int64_t>shift)
                for number, shift in self._reads
            ]
            values += carried
            values += [row_of(x, t) for x in sequences]
            values += captured
            for i in self._written_over:
                values[i] = copy_within(values[i]) if isinstance(values[i], DeviceArrayBase) else values[i].copy()
            new = self._machine.run(values)
            for i in range(n_states):
                (<ObjectRows>states[i]).write(<int64_t>self._depths[i] + t, new[i])
            carried[:] = new[n_states : n_states + n_carried]
            for i in range(len(stacks)):
                (<ObjectRows>stacks[i]).write(t, new[n_states + n_carried + i])
            done[0] += 1
            if self._until and new[len(new) - 1]:
                break
            PyErr_CheckSignals()
            if done[0] % STEPS_IN_A_ROW == 0:
                with nogil:
                    pass
        return 0
