# The way of a call: arguments are checked, the program is run, what is updated is set.

# Giving other threads a turn costs more than a small call.
cdef enum:
    CALLS_IN_A_ROW = 64
    # The first call that is recorded; then the one after twice as many that were not replayed, and so
    # on. So many records are kept.
    FIRST_RECORDED = 3
    MOST_REPLAYS = 4


cdef struct Kind:
    # Which arrays are accepted as they are.
    int number          # of the dtype; -1: Python looks at every value
    int ndim
    bint strict
    cnp.npy_intp lengths[MOST_AXES]     # -1: any


cdef int describe(Kind *kind, object tensor, bint strict) except -1:
    """Read a type of tensors; of any other, Python knows what fits."""
    cdef int axis
    kind.number, kind.ndim, kind.strict = -1, 0, strict
    if type(tensor) is not TensorType or tensor.ndim > MOST_AXES:
        return 0
    kind.number, kind.ndim = tensor.numpy_dtype.num, tensor.ndim
    for axis in range(kind.ndim):
        length = tensor.shape[axis]
        kind.lengths[axis] = -1 if length is None else length
    return 0


cdef bint fits(Kind *kind, object value) noexcept:
    """Whether a value is accepted as it is."""
    cdef int axis
    cdef cnp.ndarray array
    if not cnp.PyArray_CheckExact(value):
        return False
    array = <cnp.ndarray>value
    if cnp.PyArray_TYPE(array) != kind.number or cnp.PyArray_NDIM(array) != kind.ndim:
        return False
    for axis in range(kind.ndim):
        if kind.lengths[axis] >= 0 and cnp.PyArray_DIM(array, axis) != kind.lengths[axis]:
            return False
    return not cnp.PyArray_ISBYTESWAPPED(array)


@cython.auto_pickle(False)
cdef class Caller:
    """Calls a program. What is usual is done here; the class that derives from it has methods for
    the rest: ``_complete``, ``_check``, ``_separate``, ``_new_value`` and ``_shape``.

    Parameters
    ----------
    machine : NativeMachine or PythonMachine
    inputs : sequence of symcomp.compile.maker.Input
    updated : sequence of int
        The inputs whose cells receive the results that follow the outputs.
    n_outputs : int
    structure : None, "single", "list" or tuple of str
        What a call returns.
    trust_input : bool
        Pass arguments on unchecked.
    profile : ProfileStats or None
    tally : object, optional
        What counts the instructions of the machine (its ``new_tally()``), where that is wanted.
    calls : Calls, optional
        What counts calls then.

    Attributes
    ----------
    replayed : int
        How many calls did what an earlier one did that was recorded.
    """

    cdef public bint trust_input
    cdef public object profile
    cdef public object _machine
    cdef object _tally
    cdef Tally _native_tally    # the same, if it is the native machine's
    cdef Calls _calls
    cdef bint _always           # whether all runs are timed, as programs within are counted then
    cdef list _cells
    cdef list _claimed_cells
    cdef bint _mutable, _single, _listed
    cdef int _n_explicit, _n_outputs, _n_updated
    cdef Kind *_kinds
    cdef int *_explicit_inputs
    cdef int *_updated_inputs
    cdef list _replays          # of calls that were recorded; None: none are
    cdef int64_t _n_run, _next_recorded
    cdef bint _frees_gil        # whether one of them gives up the GIL
    cdef readonly int64_t replayed

    def __init__(
        self, machine, inputs, updated, int n_outputs, structure, bint trust_input, profile,
        tally=None, Calls calls=None
    ):
        cdef int i
        explicit = [i for i, spec in enumerate(inputs) if not spec.implicit]
        self._machine, self.trust_input, self.profile = machine, trust_input, profile
        self._tally, self._calls = tally, calls
        self._native_tally = tally if type(machine) is NativeMachine else None
        self._always = tally is not None and self._native_tally is None and bool(tally.contains)
        self._cells = [spec.container for spec in inputs]
        self._claimed_cells = [self._cells[i] for i in machine.program.claimed]
        self._mutable = any([spec.mutable for spec in inputs])
        self._single = structure == "single"
        self._listed = structure == "list"
        self._n_explicit, self._n_updated = len(explicit), len(updated)
        self._n_outputs = n_outputs
        self._explicit_inputs = numbers(explicit)
        self._updated_inputs = numbers(updated)
        self._kinds = <Kind *>PyMem_Malloc(max(len(inputs), 1) * sizeof(Kind))
        if self._kinds == NULL:
            raise MemoryError()
        for i, spec in enumerate(inputs):
            describe(&self._kinds[i], spec.type, spec.strict)
        self._next_recorded = FIRST_RECORDED
        if type(machine) is NativeMachine and not self._mutable and len(inputs) <= FEW_SLOTS:
            if (<NativeMachine>machine).is_replayable:
                self._replays = []

    def __dealloc__(self):
        PyMem_Free(self._explicit_inputs)
        PyMem_Free(self._updated_inputs)
        PyMem_Free(self._kinds)

    def __call__(self, *args, **kwargs):
        cdef int kind
        subset = None
        if kwargs:
            subset = kwargs.pop("output_subset", None)
        if self._calls is None or (kind := self._kind()) == UNTIMED:
            results = None
            if not kwargs and len(args) == self._n_explicit and self._may_replay():
                results = self._replayed(args)
            if results is None:
                results = self._run(self._collect(args, kwargs), None)
        else:
            results = self._timed(kind, args, kwargs)
        if subset is None and self._single:
            return results[0]
        if subset is None and self._listed:
            return results
        return self._shape(results, subset)

    cdef list _timed(self, int kind, tuple args, dict kwargs):
        """Collect the values, or take those that are stored if ``args`` is None, and run; take the
        time.
        """
        cdef int64_t began = nanoseconds(), overhead = 0
        cdef Clock clock = Clock() if kind == FULL else None
        if self._native_tally is None:
            overhead = -self._tally.overhead
        values = self._stored() if args is None else self._collect(args, kwargs)
        results = self._run(values, clock)
        if self._native_tally is None:
            overhead += self._tally.overhead
        elif kind == FULL:
            overhead = clock.overhead
        self._calls.add(kind, began, overhead)
        return results

    cdef inline int _kind(self) noexcept:
        """What is timed of the call that begins."""
        cdef int kind = next_run(&self._calls.sampler)
        if kind == UNTIMED and self._calls.sampler.whole > LONG_CALL:
            kind = LONG
        return FULL if self._always else kind

    def _repeat(self, Py_ssize_t n_calls):
        """Call with the stored values, several times; the last outputs, as a list."""
        cdef list results = []
        cdef Py_ssize_t k
        cdef int kind
        for k in range(n_calls):
            if self._calls is None or (kind := self._kind()) == UNTIMED:
                results = self._replayed(()) if self._may_replay() else None
                if results is None:
                    results = self._run(self._stored(), None)
            else:
                results = self._timed(kind, None, None)
            # As in loops of Python, Ctrl-C has its turn, and so have other threads.
            PyErr_CheckSignals()
            if k % CALLS_IN_A_ROW == 0:
                with nogil:
                    pass
        return results

    def _drop_results(self):
        """Keep no results to be used again."""
        for replay in self._replays or ():
            (<Replay>replay).drop_results()

    cdef list _stored(self):
        """The values of the cells, and the place of the transaction if there is one."""
        cdef Py_ssize_t i, n = len(self._cells)
        cdef list values = PyList_New(n + (len(self._claimed_cells) > 0))
        for i in range(n):
            value = (<Cell>self._cells[i]).value
            Py_INCREF(value)
            PyList_SET_ITEM(values, i, value)
        if len(self._claimed_cells):
            Py_INCREF(None)
            PyList_SET_ITEM(values, n, None)
        # Looked at when the values are held, as in ``settled``.
        if any_taken(self._cells):
            for i in range(n):
                values[i] = None
                values[i] = settled(<Cell>self._cells[i])
        return values

    cdef list _collect(self, tuple args, dict kwargs):
        """The values of all inputs, those of calls checked."""
        cdef list values = self._stored()
        cdef Py_ssize_t k, n = len(args)
        cdef int i
        for k in range(min(n, self._n_explicit)):
            i = self._explicit_inputs[k]
            values[i] = args[k] if self.trust_input else self._accepted(i, args[k])
        if n != self._n_explicit or kwargs:
            self._complete(values, n, kwargs)
        if self._mutable:
            self._separate(values)
        return values

    cdef inline bint _may_replay(self) noexcept:
        """Whether a call may be replayed: there are records, and a profile counts it as the others."""
        return bool(self._replays) and (
            self._native_tally is None or self._native_tally.repeats_natively()
        )

    cdef list _replayed(self, tuple args):
        """Do what a recorded call did; None if there is none like this, or another thread writes."""
        cdef PyObject *given[FEW_SLOTS]
        cdef Py_ssize_t i, k
        cdef list held = None, results
        cdef Cell cell
        cdef Replay replay
        # Python code may run here: in conversions, and when what has no owner is collected.
        for k in range(len(args)):
            if not (self.trust_input or cnp.PyArray_CheckExact(args[k])):
                held = list(args) if held is None else held
                held[k] = self._accepted(self._explicit_inputs[k], args[k])
        transaction = Transaction(self._claimed_cells) if self._frees_gil else None
        results = PyList_New(self._n_outputs + self._n_updated)
        # None runs from here on, so that what the cells hold stays.
        for i in range(len(self._cells)):
            cell = <Cell>self._cells[i]
            if cell._writer != 0:
                return None
            given[i] = <PyObject *>cell.value
        for k in range(len(args)):
            given[self._explicit_inputs[k]] = <PyObject *>(args[k] if held is None else held[k])
        for i in range(len(self._replays)):
            replay = <Replay>self._replays[i]
            if replay._machine is self._machine and replay.takes(given):
                return self._replay(replay, given, results, transaction)
        return None

    cdef list _replay(
        self, Replay replay, PyObject **given, list results, Transaction transaction
    ):
        """Do what was recorded, and set what is updated; None if it goes another way."""
        cdef bint done
        try:
            done = replay.call(given, results, self._claimed_cells, transaction)
            if done:
                self.replayed += 1
                if self._native_tally is not None:
                    self._native_tally.repeats += 1
                return self._set(results)
        finally:
            if transaction is not None:
                transaction.end()
        if replay._vain > MOST_VAIN and replay._vain > replay._done:
            self._replays.remove(replay)
        return None

    cdef object _accepted(self, int i, object value):
        """The value as an array of the input's type."""
        cdef Kind *kind = &self._kinds[i]
        if fits(kind, value):
            return value
        if kind.ndim == 0 and not kind.strict and cnp.PyArray_IsAnyScalar(value):
            array = np.asarray(value)
            if fits(kind, array):
                return array
        return self._check(i, value)

    cdef list _run(self, list values, Clock clock):
        """Run the program; then, if all went well, set what is updated. Returns the outputs."""
        if not self._claimed_cells:
            return self._run_and_set(values, clock)
        transaction = Transaction(self._claimed_cells)
        values[len(self._cells)] = transaction
        try:
            return self._run_and_set(values, clock)
        finally:
            transaction.end()

    cdef list _run_and_set(self, list values, Clock clock):
        cdef int k, i
        cdef Py_ssize_t at
        cdef list results
        cdef Replay replay = self._new_replay(clock)
        if replay is not None:
            if self._native_tally is not None:
                self._native_tally.repeats += 1
            try:
                results = (<NativeMachine>self._machine).execute(
                    values, None, None, None, replay, self._n_outputs, self._updated_inputs
                )
            except BaseException:
                if self._native_tally is not None:
                    self._native_tally.ended_at(replay._position)
                raise
        elif type(self._machine) is NativeMachine:
            results = (<NativeMachine>self._machine).execute(
                values, None, self._native_tally, clock
            )
        elif clock is None:
            results = self._machine.run(values)
        else:
            results = self._machine.timed(values, self._tally)
        for k in range(self._n_updated):
            i, at = self._updated_inputs[k], self._n_outputs + k
            if not fits(&self._kinds[i], results[at]):
                results[at] = self._new_value(i, results[at])
                replay = None
        if replay is not None and replay._fits:
            if len(self._replays) == MOST_REPLAYS:
                del self._replays[0]
            self._replays.append(replay)
            self._frees_gil = self._frees_gil or replay._frees_gil
        return self._set(results)

    cdef Replay _new_replay(self, Clock clock):
        """What is to record the call that begins; None if it is not recorded."""
        if self._replays is None or clock is not None or type(self._machine) is not NativeMachine:
            return None
        self._n_run += 1
        if self._n_run < self._next_recorded:
            return None
        if self._native_tally is not None and not self._native_tally.repeats_natively():
            return None
        self._next_recorded = 2 * self._n_run
        return Replay(self._machine)

    cdef list _set(self, list results):
        """Set what is updated; what is left are the outputs."""
        cdef Cell cell
        cdef int k
        cdef Py_ssize_t at
        if self._n_updated == 0:
            return results
        # No Python code runs until all are set: the old values live on in the list.
        for k in range(self._n_updated):
            cell, at = <Cell>self._cells[self._updated_inputs[k]], self._n_outputs + k
            cell.value, results[at] = results[at], cell.value
        del results[self._n_outputs :]
        return results
