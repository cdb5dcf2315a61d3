# Calls of a function that do what one did that was recorded, where their arguments have the same
# layouts: no instruction is looked up, no array is made but the results.

# Of calls with more work (elements times operations) the share of the machine is small. So much memory
# is kept for the next call at most.
cdef double MOST_WORK = 1e8
cdef size_t MOST_MEMORY = 4 << 20
# Results of so many bytes are kept, two of each, to be used again when nobody else has them: new
# memory of that size comes page by page, which can take longer than computing. No more than so many
# of one record.
cdef size_t LARGE_RESULT = 1 << 20
cdef size_t MOST_KEPT = 1 << 28
# A way that is not gone to the end so often, and more often than it is, is forgotten.
cdef int64_t MOST_VAIN = 8

cdef extern from "numpy/ndarrayobject.h":
    ctypedef struct PyArrayObject_fields:
        char *data

# Actions that are done as they are, on arrays that stand for places.
ACTING = (
    Fill, Written, Gather, Scatter, Joined, Reshaped, Running, Extreme, Range, Searched,
)


cdef bint replayable(Action action, instruction):
    """Whether calls with this instruction may be replayed."""
    return (
        recordable(action, instruction)
        or type(action) in ACTING
        or type(action) in (Passed, GateCall)
    )


cdef struct Given:
    # An argument or shared variable as it was.
    int input
    int place
    int type
    int ndim
    cnp.npy_intp *lengths
    cnp.npy_intp *strides


cdef struct Result:
    int place       # -1: the argument ``input`` is it, which was written over
    int input
    int type
    int ndim
    bint fortran
    cnp.npy_intp *lengths
    size_t size
    int turn        # which of the two that are kept was made last


cdef inline bint is_as_given(Given *given, PyObject *value) noexcept:
    """Whether a value has the layout of the one that was recorded."""
    cdef size_t size = given.ndim * sizeof(cnp.npy_intp)
    cdef cnp.ndarray array
    if not cnp.PyArray_CheckExact(<object>value):
        return False
    array = <cnp.ndarray>value
    return (
        cnp.PyArray_TYPE(array) == given.type
        and cnp.PyArray_NDIM(array) == given.ndim
        and cnp.PyArray_ISBEHAVED_RO(array)
        and (size == 0 or memcmp(cnp.PyArray_DIMS(array), given.lengths, size) == 0)
        and (size == 0 or memcmp(cnp.PyArray_STRIDES(array), given.strides, size) == 0)
    )


cdef bint same_strides(cnp.ndarray x, cnp.ndarray y) noexcept:
    cdef size_t size = cnp.PyArray_NDIM(x) * sizeof(cnp.npy_intp)
    return size == 0 or memcmp(cnp.PyArray_STRIDES(x), cnp.PyArray_STRIDES(y), size) == 0


cdef cnp.ndarray stand_in(cnp.ndarray x, bint writeable):
    """An array of the same layout that owns no memory."""
    cdef int flags = cnp.NPY_ARRAY_WRITEABLE if writeable else 0
    cdef cnp.ndarray z = cnp.PyArray_New(
        np.ndarray, cnp.PyArray_NDIM(x), cnp.PyArray_DIMS(x), cnp.PyArray_TYPE(x),
        cnp.PyArray_STRIDES(x), cnp.PyArray_DATA(x), 0, flags, <object>NULL
    )
    cnp.PyArray_UpdateFlags(z, cnp.NPY_ARRAY_UPDATE_ALL)
    return z


@cython.final
cdef class Replay(Recording):
    """A call that is recorded, and those that do the same.

    No Python code runs. Where there is little work the GIL is held throughout, and nobody else sees a
    call half done; else what is written over is marked by a transaction, as in other calls.
    """

    cdef Given *_given
    cdef Result *_results
    cdef PyObject **_store      # stand-ins for what is in slots, where actions need them
    cdef int _n_given, _n_results, _n_slots
    cdef bint _is_behind_gate
    cdef bint _frees_gil
    cdef int _busy                  # 1 + ``n_forks`` while a thread is at work: a child has none
    cdef int64_t _done, _vain
    cdef list _kept                 # two large arrays for each result, or None
    cdef size_t _large              # the bytes of all large results

    def __cinit__(self, NativeMachine machine):
        cdef size_t size = max(machine._n_slots, 1) * sizeof(PyObject *)
        self._given = <Given *>self._new(machine._n_inputs * sizeof(Given))
        self._results = <Result *>self._new(machine._n_outputs * sizeof(Result))
        # Its own memory: when this is dropped, other objects that it has may be gone already.
        self._store = <PyObject **>PyMem_Calloc(1, size)
        if self._store == NULL:
            raise MemoryError()
        self._n_slots = machine._n_slots
        self.drop_results()

    def __dealloc__(self):
        cdef int slot
        for slot in range(self._n_slots):
            Py_XDECREF(self._store[slot])
        PyMem_Free(self._store)

    cdef int drop_results(self) except -1:
        """Keep no results for later calls."""
        self._kept = [None] * (2 * self._machine._n_outputs)
        return 0

    # -- recording

    cdef int record(self, PyObject **store) except -1:
        """Run the program on what is in the store, and note what is done."""
        cdef int i
        cdef int64_t entries = symcomp_entries()[0]
        for i in range(self._machine._n_inputs):
            self._give(i, store)
        self._name_constants(store)
        self._do_all(store, None)
        self._fits = self._fits and symcomp_entries()[0] == entries
        return 0

    cdef int _give(self, int i, PyObject **store) except -1:
        """Give a place to an argument, if it is an array."""
        cdef int slot = self._machine._input_slots[i]
        cdef Given *given = &self._given[self._n_given]
        cdef cnp.ndarray array
        if store[slot] == NULL or not cnp.PyArray_CheckExact(<object>store[slot]):
            return 0
        self._name(slot, store, GIVEN)
        array = <cnp.ndarray>store[slot]
        self._fits = self._fits and cnp.PyArray_ISBEHAVED_RO(array)
        given.input, given.place = i, self._place_of[slot]
        given.type, given.ndim = cnp.PyArray_TYPE(array), cnp.PyArray_NDIM(array)
        given.lengths = self._axes(cnp.PyArray_DIMS(array), given.ndim)
        given.strides = self._axes(cnp.PyArray_STRIDES(array), given.ndim)
        self._n_given += 1
        return 0

    cdef cnp.npy_intp *_axes(self, cnp.npy_intp *values, int n) except NULL:
        """A copy that lives as long as this."""
        cdef cnp.npy_intp *found = <cnp.npy_intp *>self._new(n * sizeof(cnp.npy_intp))
        cdef int axis
        for axis in range(n):
            found[axis] = values[axis]
        return found

    cdef bint _note_otherwise(self, Action action, Step *step, PyObject **store) except -1:
        if type(action) is GateCall:
            return self._gate(<GateCall>action, store)
        # Behind the gate nothing may fail.
        if self._is_behind_gate or not isinstance(action, Native):
            return False
        if not self._have_places(<Native>action, store):
            return False
        if type(action) is View:
            return self._region(<View>action, store)
        if type(action) is Passed:
            return self._passed(<Passed>action, store)
        return type(action) in ACTING and self._acting(<Native>action, store)

    cdef bint _have_places(self, Native action, PyObject **store) except -1:
        """Whether the arguments are arrays, so small that the GIL is not given up for them."""
        cdef int i, slot
        for i in range(action._n_arguments):
            slot = action._slots[i]
            if slot >= 0 and store[slot] != NULL:
                if self._place_of[slot] < 0 or not cnp.PyArray_CheckExact(<object>store[slot]):
                    return False
                if type(action) in ACTING:
                    if cnp.PyArray_SIZE(<cnp.ndarray>store[slot]) >= WORTH_RELEASING:
                        return False
        return True

    cdef Call *_call_of(self, Doing kind, Native action, PyObject **store) except NULL:
        """Record that an action is done, and make arrays that stand for its arguments."""
        cdef Call *call = self._new_call(kind)
        cdef int i, slot, place
        cdef bint writeable
        call.action = <PyObject *>action
        call.places = <int *>self._new(max(action._n_outputs, 1) * sizeof(int))
        for i in range(action._n_arguments):
            slot = action._slots[i]
            if slot >= 0 and store[slot] != NULL and self._store[slot] == NULL:
                place = self._place_of[slot]
                writeable = self._kinds[self._roots[place]] in (OWN, ACTED)
                put(self._store, slot, stand_in(<cnp.ndarray>store[slot], writeable))
        return call

    cdef bint _gate(self, GateCall action, PyObject **store) except -1:
        """The arrays that are written over from here on, if nobody else holds them."""
        cdef int k, place, slot
        cdef Call *call
        for k in range(action._n_arrays):
            slot = action._slots[1 + k]
            place = self._place_of[slot]
            if place < 0 or store[slot] != store[action._slots[action._n_inputs + k]]:
                return False
            self._kinds[place] = TAKEN
            self._place_of[action._slots[action._n_inputs + k]] = place
        call = self._new_call(GATE)
        call.places = <int *>self._new(max(action._n_arrays, 1) * sizeof(int))
        for k in range(action._n_arrays):
            call.places[k] = self._place_of[action._slots[1 + k]]
        self._is_behind_gate = True
        return True

    cdef bint _region(self, View action, PyObject **store) except -1:
        """A part whose beginning, but not its lengths, may differ from call to call."""
        cdef Call *call = self._call_of(REGION, action, store)
        cdef int place, source = self._place_of[action._slots[0]]
        cdef cnp.ndarray z = <cnp.ndarray>store[action._outputs[0]]
        place = self._new_place(PART, NULL, cnp.PyArray_NBYTES(z))
        self._roots[place], self._late[place] = self._roots[source], True
        self._place_of[action._outputs[0]] = call.places[0] = place
        call.n_arrays = cnp.PyArray_NDIM(z)
        call.shape = <int64_t *>self._axes(cnp.PyArray_DIMS(z), call.n_arrays)
        call.strides = <int64_t *>self._axes(cnp.PyArray_STRIDES(z), call.n_arrays)
        return True

    cdef bint _passed(self, Passed action, PyObject **store) except -1:
        """An argument itself; conditions on lengths hold in all calls of these lengths."""
        cdef int i, kind
        cdef bint depends = False
        for i in range(action._n_conditions):
            kind = action._conditions[5 * i]
            depends = depends or kind != LENGTH_IS and kind != LENGTHS_EQUAL
        if depends:
            self._call_of(PASS, action, store)
        self._place_of[action._outputs[0]] = self._place_of[action._slots[action._which]]
        return True

    cdef bint _acting(self, Native action, PyObject **store) except -1:
        """An action whose results lie in arrays of arguments, or in new ones."""
        cdef Call *call = self._call_of(ACT, action, store)
        cdef int i, slot, place
        cdef cnp.ndarray z
        call.expected = <PyObject **>self._new(action._n_outputs * sizeof(PyObject *))
        for i in range(action._n_outputs):
            slot = action._outputs[i]
            if not cnp.PyArray_CheckExact(<object>store[slot]):
                return False
            z = <cnp.ndarray>store[slot]
            if cnp.PyArray_SIZE(z) >= WORTH_RELEASING:
                return False
            place = self._argument_in(action, z, store)
            if place == -2:
                return False
            if place < 0:
                place = self._new_place(ACTED, NULL, cnp.PyArray_NBYTES(z))
                self._late[place] = True
                expected = stand_in(z, False)
                self._memory.append(expected)
                call.expected[i] = <PyObject *>expected
            self._place_of[slot] = call.places[i] = place
            self._work += cnp.PyArray_SIZE(z)
        return True

    cdef int _argument_in(self, Native action, cnp.ndarray z, PyObject **store) except -3:
        """The place that a result was left in; -1: a new array, -2: a part of something."""
        cdef int i, slot
        cdef cnp.ndarray x
        for i in range(action._n_arguments):
            slot = action._slots[i]
            if slot >= 0 and store[slot] != NULL and overlap(<cnp.ndarray>store[slot], z):
                x = <cnp.ndarray>store[slot]
                if cnp.PyArray_DATA(x) != cnp.PyArray_DATA(z) or not same_lengths(x, z):
                    return -2
                if self._kinds[self._roots[self._place_of[slot]]] not in (OWN, ACTED):
                    return -2
                return self._place_of[slot]
        return -1

    cdef bint complete(self, PyObject **store, int n_outputs, int *updated) except -1:
        """Say where the results go; False if calls like this cannot be replayed.

        From ``n_outputs`` on they are new values of the inputs ``updated``.
        """
        cdef int j, place
        cdef size_t memory = 0
        for j in range(self._machine._n_outputs):
            if self._fits:
                self._fits = self._result(
                    j, -1 if j < n_outputs else updated[j - n_outputs], store
                )
        for place in range(self._n_places):
            if self._kinds[place] == OWN and not self._claimed[place]:
                memory += self._sizes[place]
        self._fits = self._fits and self._work <= MOST_WORK and memory <= MOST_MEMORY
        for place in range(self._n_places):
            if self._fits and self._kinds[place] == OWN and not self._claimed[place]:
                self._provide(place)
        self._frees_gil = self._work >= WORTH_RELEASING
        return self._fits

    cdef bint _result(self, int j, int input, PyObject **store) except -1:
        """Whether what is made is a result itself, or is copied to it."""
        cdef int slot = self._machine._output_slots[j]
        cdef int place = self._place_of[slot], target
        cdef Result *result = &self._results[j]
        cdef cnp.ndarray z
        if place < 0 or not cnp.PyArray_CheckExact(<object>store[slot]):
            return False
        z = <cnp.ndarray>store[slot]
        result.place, result.input, self._n_results = -1, input, j + 1
        if input >= 0 and self._kinds[place] == TAKEN:
            return self._place_of[self._machine._input_slots[input]] == place
        if self._kinds[self._roots[place]] in (GIVEN, TAKEN, FIXED):
            # Borrowed: what is not copied must be the same object.
            return self._is_given(result, store[slot], store)
        if not (cnp.PyArray_IS_C_CONTIGUOUS(z) or cnp.PyArray_IS_F_CONTIGUOUS(z)):
            return False
        result.type, result.ndim = cnp.PyArray_TYPE(z), cnp.PyArray_NDIM(z)
        result.fortran = not cnp.PyArray_IS_C_CONTIGUOUS(z)
        result.lengths = self._axes(cnp.PyArray_DIMS(z), result.ndim)
        result.size = cnp.PyArray_NBYTES(z)
        if result.size >= LARGE_RESULT:
            self._large += result.size
        if (
            self._kinds[place] == OWN
            and not self._claimed[place]
            and self._sizes[place] == <size_t>cnp.PyArray_NBYTES(z)
        ):
            self._claimed[place], result.place = True, place
            return True
        target = self._new_place(OWN, NULL, cnp.PyArray_NBYTES(z))
        self._claimed[target], result.place = True, target
        self._copy(place, target, z, z)
        return True

    cdef bint _is_given(self, Result *result, PyObject *value, PyObject **store) except -1:
        """Whether a result is an argument itself; notes which one."""
        cdef int i
        for i in range(self._machine._n_inputs):
            if store[self._machine._input_slots[i]] == value:
                result.input = i
                return True
        return False

    # -- replaying

    cdef bint takes(self, PyObject **given) noexcept:
        """Whether values are laid out as those that were recorded, and it is not at work."""
        cdef int i
        if self._busy > n_forks:
            return False
        for i in range(self._n_given):
            if not is_as_given(&self._given[i], given[self._given[i].input]):
                return False
        return True

    cdef bint call(
        self, PyObject **given, list results, list claimed, Transaction transaction
    ) except -1:
        """Do the call and fill the list of its results; False if it goes another way, and nothing is
        changed then. ``transaction`` marks what is written over while the GIL is given up.
        """
        cdef bint done
        self._busy = n_forks + 1
        try:
            self._begin(given, results)
            if self._frees_gil:
                done = self._run_apart(given, claimed, transaction)
            else:
                done = self._run(claimed, None)
        finally:
            self._busy = 0
        self._done += done
        self._vain += not done
        return done

    cdef bint _run_apart(
        self, PyObject **given, list claimed, Transaction transaction
    ) except -1:
        """``_run``, holding the arguments: other threads may replace them meanwhile."""
        cdef int i
        for i in range(self._n_given):
            Py_XINCREF(given[self._given[i].input])
        try:
            return self._run(claimed, transaction)
        finally:
            for i in range(self._n_given):
                Py_XDECREF(given[self._given[i].input])

    cdef bint _run(self, list claimed, Transaction transaction) except -1:
        """Do what is recorded; False if this call goes another way."""
        cdef int i = 0, failed
        cdef bint is_behind_gate = False
        cdef Call *call
        self._cut()
        while i < self._n_calls:
            call = &self._calls[i]
            if call.kind == GATE:
                failed = self._take(call, claimed, transaction)
                is_behind_gate = True
                i += 1
            elif call.kind > SHIFT:
                failed = self._act(call)
                i += 1
            elif self._frees_gil:
                with nogil:
                    i = self._run_calls(i, &failed)
            else:
                i = self._run_calls(i, &failed)
            raise_what_is_left()
            if failed:
                if is_behind_gate and call.kind != GATE:
                    raise RuntimeError("an instruction failed that cannot, as updates were made")
                return False
        self._copy_results()
        return True

    cdef int _run_calls(self, int first, int *failed) noexcept nogil:
        """Do calls until one needs the GIL or fails; return the position of the next."""
        cdef int i
        failed[0] = DONE
        for i in range(first, self._n_calls):
            if self._calls[i].kind > SHIFT:
                return i
            failed[0] = self._call(&self._calls[i])
            if failed[0]:
                return i
        return self._n_calls

    cdef int _begin(self, PyObject **given, list results) except -1:
        """The addresses of arguments and results; these are made."""
        cdef int j
        cdef Result *result
        cdef object value
        for j in range(self._n_given):
            self._addresses[self._given[j].place] = cnp.PyArray_BYTES(
                <cnp.ndarray>given[self._given[j].input]
            )
        for j in range(self._n_results):
            result = &self._results[j]
            if result.place < 0:
                value = <object>given[result.input]
            else:
                value = self._new_result(result, j)
                self._addresses[result.place] = cnp.PyArray_BYTES(<cnp.ndarray>value)
            Py_INCREF(value)
            PyList_SET_ITEM(results, j, value)
        return 0

    cdef cnp.ndarray _new_result(self, Result *result, int j):
        """An array for a result: one that was a result before, if it is large and nobody has it."""
        cdef cnp.ndarray array
        cdef int k
        # What becomes the value of a variable has its only owner there.
        if result.input >= 0 or result.size < LARGE_RESULT or 2 * self._large > MOST_KEPT:
            return cnp.PyArray_EMPTY(result.ndim, result.lengths, result.type, result.fortran)
        for k in (2 * j, 2 * j + 1):
            # The list has it, and this name.
            array = self._kept[k]
            if array is not None and Py_REFCNT(<PyObject *>array) == 2:
                if self._is_whole(result, array):
                    return array
        array = cnp.PyArray_EMPTY(result.ndim, result.lengths, result.type, result.fortran)
        result.turn = 1 - result.turn
        self._kept[2 * j + result.turn] = array
        return array

    cdef bint _is_whole(self, Result *result, cnp.ndarray array):
        """Whether an array is still as it was made."""
        if fitting(<PyObject *>array, result.type, result.ndim, result.lengths) is None:
            return False
        if not cnp.PyArray_CHKFLAGS(array, cnp.NPY_ARRAY_OWNDATA):
            return False
        if result.fortran:
            return cnp.PyArray_IS_F_CONTIGUOUS(array)
        return cnp.PyArray_IS_C_CONTIGUOUS(array)

    cdef int _act(self, Call *call) except -1:
        """What needs the GIL."""
        cdef Native action = <Native>call.action
        self._stand_in(action)
        if call.kind == REGION:
            return self._find_region(call, <View>action)
        if call.kind == PASS:
            return self._check(<Passed>action)
        if not action._try(self._store):
            return UNDONE
        return self._find_results(call, action)

    cdef int _take(self, Call *call, list claimed, Transaction transaction) except -1:
        """Mark the arrays that are written over, if nobody but its cell and this call hold one; with
        the GIL held, nobody sees them.
        """
        cdef Cell cell
        cdef cnp.ndarray array
        cdef int k = 0
        if transaction is not None:
            transaction.mark()
        for cell in claimed:
            if not cnp.PyArray_CheckExact(cell.value):
                return UNDONE
            array = <cnp.ndarray>cell.value
            if cnp.PyArray_BYTES(array) != self._addresses[call.places[k]]:
                return UNDONE
            # The cell, the results, the name that it has here, and who runs it apart.
            if Py_REFCNT(<PyObject *>array) != 3 + self._frees_gil:
                return UNDONE
            if not cnp.PyArray_CHKFLAGS(array, cnp.NPY_ARRAY_OWNDATA):
                return UNDONE
            if not cnp.PyArray_ISWRITEABLE(array):
                return UNDONE
            k += 1
        return DONE

    cdef int _stand_in(self, Native action) except -1:
        """Let the arrays that stand for arguments lie where these are."""
        cdef int i, slot
        cdef PyObject *array
        for i in range(action._n_arguments):
            slot = action._slots[i]
            if slot >= 0 and self._place_of[slot] >= 0:
                array = self._store[slot]
                # One that an action made lies where it is.
                if not cnp.PyArray_CHKFLAGS(<cnp.ndarray>array, cnp.NPY_ARRAY_OWNDATA):
                    (<PyArrayObject_fields *>array).data = self._addresses[self._place_of[slot]]
        return 0

    cdef int _find_region(self, Call *call, View action) except -1:
        cdef Region region
        cdef cnp.ndarray x = <cnp.ndarray>self._store[action._slots[0]]
        cdef size_t size = call.n_arrays * sizeof(cnp.npy_intp)
        if not read_region(self._store, x, action._entries, action._n_entries, &region):
            return UNDONE
        if (
            region.ndim != call.n_arrays
            or memcmp(region.lengths, call.shape, size)
            or memcmp(region.strides, call.strides, size)
        ):
            return UNDONE
        self._addresses[call.places[0]] = cnp.PyArray_BYTES(x) + region.offset
        return DONE

    cdef int _check(self, Passed action) except -1:
        cdef int i
        for i in range(action._n_conditions):
            if not action._holds(self._store, action._conditions + 5 * i):
                return UNDONE
        return DONE

    cdef int _find_results(self, Call *call, Native action) except -1:
        """The addresses of what an action made."""
        cdef int i
        cdef cnp.ndarray z, expected
        for i in range(action._n_outputs):
            z = <cnp.ndarray>self._store[action._outputs[i]]
            if call.expected[i] == NULL:
                if cnp.PyArray_BYTES(z) != self._addresses[call.places[i]]:
                    return UNDONE
                continue
            expected = <cnp.ndarray>call.expected[i]
            if not same_lengths(z, expected) or not same_strides(z, expected):
                return UNDONE
            self._addresses[call.places[i]] = cnp.PyArray_BYTES(z)
        return DONE
