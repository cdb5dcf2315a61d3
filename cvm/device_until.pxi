# Loops with a condition to stop, on devices, as functions in C: chunks of steps are enqueued, and waited for.

@cython.auto_pickle(False)
cdef class UntilLoop:
    """A loop with a condition to stop as a function: from arrays on a device, and numbers, to such.

    A subclass has ``check_lengths``, which raises the error of arguments whose lengths do not fit, and ``driver``.

    Attributes
    ----------
    chunks : DeviceRegion
        Steps as a function of their number and the other inputs of the loop; the conditions are one more output.
    memory : dict
        Of the latest run, by the shapes of inputs and outputs: the most bytes at a time, with the arena, and the
        bytes of the arena, which is kept for the next run; at most ``config.most_plans``.

    Parameters
    ----------
    chunks : DeviceRegion
    device : str
    depths : list of int
        Of traced states.
    counts : (int, int, int)
        Carried values, sequences and stacked outputs.
    longest : int
        The most steps in a chunk.
    inputs : list of (int, object, CopyToDevice or None)
        For each input of the loop the number of the argument; or -1, and a constant; None: plans depend on its value.
    outputs : list of int
        The outputs of the loop that are those of the function.
    """

    cdef readonly DeviceRegion chunks
    cdef readonly dict memory
    cdef str _device
    cdef list _depths, _inputs, _outputs, _constants
    cdef Py_ssize_t _n_carried, _n_sequences, _n_stacked
    cdef int64_t _longest

    def __init__(
        self, DeviceRegion chunks, str device, list depths, tuple counts, int64_t longest, list inputs, list outputs
    ):
        self.chunks, self.memory, self._device, self._depths = chunks, {}, device, depths
        self._n_carried, self._n_sequences, self._n_stacked = counts
        self._longest, self._inputs, self._outputs = longest, inputs, outputs
        self._constants = [None] * len(inputs)

    def constants(self):
        """Return the constants that lie on the device."""
        return [x for x in self._constants if x is not None]

    def __call__(self, *values):
        """Compute the loop; return its results."""
        with cython.critical_section(machine_lock):
            return self._run(values)

    cdef tuple _run(self, tuple values):
        cdef UntilRun run = UntilRun.__new__(UntilRun)
        cdef list given, results
        cdef tuple found
        stream = DEVICE_STREAMS.get(self._device)
        driver = self.driver if stream is None else (<DeviceStream>stream).driver
        given = [self._placed(i, values, driver) for i in range(len(self._inputs))]
        run.begin(self, given)
        results = run.outputs()
        found = tuple([results[<Py_ssize_t>k] for k in self._outputs])
        key = tuple([x.shape for x in values]), tuple([x.shape for x in found])
        self.memory.pop(key, None)
        self.memory[key] = run.peak, run.arena
        while len(self.memory) > max(1, options["most_plans"]):
            del self.memory[next(iter(self.memory))]
        return found

    cdef object _placed(self, Py_ssize_t i, tuple values, driver):
        """Return the value of an input of the loop, on the device unless plans depend on it."""
        number, value, copy = self._inputs[i]
        if number >= 0:
            value = values[<Py_ssize_t>number]
        if copy is None or isinstance(value, DeviceArrayBase):
            return value
        if number >= 0:
            return copy(value)
        kept = self._constants[i]
        if kept is None or (<DeviceArrayBase>kept).driver is not driver:
            kept = self._constants[i] = copy(value)
        return kept


@cython.final
@cython.auto_pickle(False)
cdef class UntilRun:
    """One run of a loop: ``done`` is the number of steps whose results are kept."""

    cdef UntilLoop _loop
    cdef object _dtype
    cdef list _traced, _carried, _sequences, _captured
    # For each traced state and each stacked output: arrays of consecutive rows.
    cdef list _states, _stacks
    # The results of the latest steps, and those of the last chunk while steps are repeated.
    cdef list _latest, _last_chunk
    cdef set _inputs
    cdef bint _can_fail
    cdef int64_t done, peak, arena, _most

    cdef int begin(self, UntilLoop loop, list given) except -1:
        cdef Py_ssize_t traced = 1 + len(loop._depths), carried = traced + loop._n_carried
        cdef Py_ssize_t sequences = carried + loop._n_sequences
        cdef bint fits
        n = np.asarray(given[0])
        self._loop, self._most, self._dtype = loop, int(n), n.dtype
        self._traced, self._carried = given[1:traced], given[traced:carried]
        self._sequences, self._captured = given[carried:sequences], given[sequences:]
        fits = self._most >= 0
        for x, depth in zip(self._traced, loop._depths):
            fits &= (<DeviceArrayBase>x).shape[0] == depth
        for x in self._sequences:
            fits &= (<DeviceArrayBase>x).shape[0] >= self._most
        if not fits:
            loop.check_lengths(self._most, self._traced, self._sequences)
        self._states, self._stacks = [[] for _ in self._traced], [[] for _ in range(loop._n_stacked)]
        self._latest, self._last_chunk = [], []
        self._inputs = {id((<DeviceArrayBase>x).memory) for x in given if isinstance(x, DeviceArrayBase)}
        return 0

    cdef list outputs(self):
        """Enqueue chunks until the condition holds; return the outputs of the loop."""
        cdef int64_t n = min(self._most, 1), used
        cdef bint has_stopped = False
        cdef list found, joined
        while not has_stopped:
            found = self._enqueue(n, self.done, self._traced, self._carried)
            stops = copies_on_host((found[len(found) - 1],))[0].nonzero()[0]
            has_stopped = len(stops) > 0
            used = <int64_t>stops[0] + 1 if has_stopped else n
            self._keep_rows(found, used)
            self._carried = self._carried_of(found) if used == n else self._carried_after(used)
            self.done += used
            if self.done == self._most:
                break
            self._traced = self._last_rows(found, n)
            n = 1 if self._can_fail else _power_of_two(min(self._loop._longest, self.done, self._most - self.done))
            PyErr_CheckSignals()
        joined = [_joined(arrays) for arrays in self._states + self._stacks]
        self._measure(joined)
        return [
            *joined[: len(self._states)], *self._carried, *joined[len(self._states) :], np.array(self.done, np.int64)
        ]

    cdef list _enqueue(self, int64_t n, int64_t start, list traced, list carried):
        """Enqueue ``n`` steps from the one of number ``start``; return their results."""
        cdef DeviceRegion chunks = self._loop.chunks
        cdef list rows = [_rows(x, start, start + n) for x in self._sequences]
        cdef tuple values = (np.array(n, self._dtype), *traced, *carried, *rows, *self._captured)
        cdef RegionPlan plan = chunks._plan_for(values)
        cdef list found = list(chunks.run_plan(plan, values))
        self.arena, self._can_fail = max(self.arena, plan._arena), plan.can_fail
        self._measure(found + traced + carried)
        self._latest = found
        return found

    cdef int _measure(self, list made) except -1:
        """Note how much memory is held when these arrays have been made."""
        cdef dict held = {}
        cdef int64_t total = 0
        for arrays in [*self._states, *self._stacks, self._carried, self._latest, self._last_chunk, made]:
            for x in <list>arrays:
                memory = (<DeviceArrayBase>x).memory
                held[id(memory)] = (<DeviceMemory>memory).nbytes
        for key, nbytes in held.items():
            if key not in self._inputs:
                total += <int64_t>nbytes
        self.peak = max(self.peak, self.arena + total)
        return 0

    cdef int _keep_rows(self, list found, int64_t used) except -1:
        """Keep the rows of the first ``used`` steps of a chunk."""
        cdef Py_ssize_t i, stacked = len(self._states) + self._loop._n_carried
        cdef int64_t depth
        for i in range(len(self._states)):
            depth = self._loop._depths[i]
            self._states[i].append(_rows(found[i], depth if self._states[i] else 0, depth + used))
        for i in range(len(self._stacks)):
            self._stacks[i].append(_rows(found[stacked + i], 0, used))
        return 0

    cdef list _carried_of(self, list found):
        return found[len(self._states) : len(self._states) + self._loop._n_carried]

    cdef list _last_rows(self, list found, int64_t n):
        """Return the rows of traced states that the steps after these ``n`` begin with."""
        cdef list depths = self._loop._depths
        return [_rows(found[i], n, n + <int64_t>depths[i]) for i in range(len(depths))]

    cdef list _carried_after(self, int64_t n):
        """Return the carried values after the first ``n`` steps of the latest chunk: only those after its last step
        were kept, so these steps are computed again.
        """
        cdef list traced = self._traced, carried = self._carried, found
        cdef int64_t start = self.done, length
        self._last_chunk = self._latest
        while n and carried:
            length = _power_of_two(n)
            found = self._enqueue(length, start, traced, carried)
            traced, carried = self._last_rows(found, length), self._carried_of(found)
            start, n = start + length, n - length
        return carried


cdef int64_t _power_of_two(int64_t n) noexcept:
    """Return the largest power of two that is at most ``n``."""
    cdef int64_t found = 1
    while found <= n // 2:
        found *= 2
    return found


cdef object _rows(x, int64_t start, int64_t stop):
    return part_of(x, (slice(start, stop),))


cdef object _joined(list arrays):
    """Return arrays in C order, one behind the other, as one array."""
    cdef DeviceArrayBase first = <DeviceArrayBase>arrays[0], x
    cdef DeviceStream stream = first.driver.queue
    cdef DeviceMemory memory
    cdef int64_t low, nbytes, offset = 0, n_rows = 0, total = 0
    if len(arrays) == 1:
        return first
    for one in arrays:
        x = <DeviceArrayBase>one
        span_of(x, &low, &nbytes)
        n_rows, total = n_rows + <int64_t>x.shape[0], total + nbytes
        if x.shape[1:] != first.shape[1:]:
            raise ShapeError(
                f"scan: a row has shape {x.shape[1:]} in this step, and had {first.shape[1:]} before: all steps must "
                "give the same shape"
            )
    shape = (n_rows, *first.shape[1:])
    memory = stream.pool.take(total, f"an array of shape {shape}")
    for one in arrays:
        x = <DeviceArrayBase>one
        span_of(x, &low, &nbytes)
        if nbytes:
            stream.copy(memory, offset, x.memory, x.offset, nbytes)
        offset += nbytes
    strides = dense_strides(shape, first.dtype.itemsize)
    return new_device_array(type(first), stream, memory, 0, first.dtype, shape, strides)
