# The steps of a loop without Python: the arrays of a recorded step move from step to step.

# Signals are looked for after so much work (elements times operations), or so many steps.
cdef double WORK_BETWEEN_SIGNALS = 5e6
cdef int64_t STEPS_BETWEEN_SIGNALS = 4096


cdef class Steps(Recording):
    """A step that is recorded, and those that follow it.

    A row of the results may be what a step writes. A step changes nothing that the next one reads
    before it is complete: where it turns out to go another way, it is begun again in that one.
    """

    cdef int64_t *_moves            # of places: bytes from step to step
    cdef int *_moving               # the places of which these are not 0
    cdef int _n_moving
    cdef int *_exchanges            # pairs of places
    cdef int _n_exchanges, _until
    cdef int64_t _at                # the step that the addresses are those of
    cdef Steady *_steady            # of instructions, in the steps that were timed

    def __cinit__(self, NativeMachine machine):
        self._until = -1
        self._moves = <int64_t *>self._new(self._most_places * sizeof(int64_t))
        self._moving = <int *>self._new(self._most_places * sizeof(int))
        self._exchanges = <int *>self._new(2 * machine._n_outputs * sizeof(int))

    cdef int record(self, Loop loop, PyObject **store) except -1:
        """Do a step, and note what is done."""
        cdef Clock clock = None
        self._tally = loop._tally
        if self._tally is not None:
            self._steady = <Steady *>self._new(self._machine._n_steps * sizeof(Steady))
            if next_run(&self._tally.sampler) == FULL:
                clock = Clock()
        self._name_inputs(loop, store)
        return self._do_all(store, clock)

    cdef int _name_inputs(self, Loop loop, PyObject **store) except -1:
        """Give a place to each input and constant."""
        cdef int i
        cdef int *slots = self._machine._input_slots
        cdef int first = loop._n_reads + loop._n_carried
        for i in range(self._machine._n_inputs):
            if loop._n_reads <= i < first:
                self._name(slots[i], store, STATE)
            elif i < loop._n_reads:
                self._name_row(slots[i], store, loop._arrays[loop._read[2 * i]])
            elif i < first + len(loop._sequences):
                self._name_row(slots[i], store, loop._sequences[i - first])
            else:
                self._name(slots[i], store, FIXED)
        return self._name_constants(store)

    cdef int _name_row(self, int slot, PyObject **store, cnp.ndarray x) except -1:
        self._name(slot, store, MOVING)
        self._moves[self._place_of[slot]] = cnp.PyArray_STRIDE(x, 0)
        # Another row of what is not aligned might be less so.
        self._fits = self._fits and cnp.PyArray_ISBEHAVED_RO(x)
        return 0

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
            self._provide_all(loop)
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
        target = self._new_place(MOVING, cnp.PyArray_BYTES(row), self._sizes[place])
        self._moves[target] = cnp.PyArray_STRIDE(rows, 0)
        self._copy(place, target, value, row)
        return True

    cdef bint _into_state(self, int slot, int before, PyObject **store) except -1:
        """What is carried: it and the last one change places, or else it is copied."""
        cdef int place = self._place_of[slot], last = self._place_of[before]
        cdef cnp.ndarray value
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
            value = <cnp.ndarray>store[slot]
            self._copy(place, last, value, value)
        return True

    cdef int _provide_all(self, Loop loop) except -1:
        """Memory for what a step makes, and for what is carried into the next one."""
        cdef int place
        for place in range(self._n_places):
            if self._moves[place] != 0:
                self._moving[self._n_moving] = place
                self._n_moving += 1
            if self._kinds[place] == STATE or self._kinds[place] == OWN:
                if self._moves[place] == 0:
                    self._provide(place)
        self._at = loop.done
        return 0

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
            raise_what_is_left()
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

    cdef void _advance(self) noexcept nogil:
        """Results to where they belong, addresses to those of the next step."""
        cdef int i, first, second
        cdef char **addresses = self._addresses
        self._copy_results()
        for i in range(self._n_exchanges):
            first, second = self._exchanges[2 * i], self._exchanges[2 * i + 1]
            addresses[first], addresses[second] = addresses[second], addresses[first]
        for i in range(self._n_moving):
            addresses[self._moving[i]] += self._moves[self._moving[i]]

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
