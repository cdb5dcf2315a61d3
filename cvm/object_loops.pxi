# Loops whose states or outputs are no arrays of the host: their steps, a native program, are run one after another.

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


cdef int write_row(rows, int64_t place, value) except -1:
    """Set a row of a ``WrittenRows``, which does it itself where there is no room or the row lies otherwise."""
    cdef DeviceArrayBase x, z
    cdef DeviceStream stream
    array = rows.array
    if isinstance(array, DeviceArrayBase) and isinstance(value, DeviceArrayBase):
        x, z = <DeviceArrayBase>array, <DeviceArrayBase>value
        if place < x.shape[0] and z.shape == x.shape[1:] and z.driver is x.driver and z.strides == x.strides[1:]:
            if 0 not in z.shape:
                stream = x.driver.queue
                with cython.critical_section(machine_lock):
                    stream.copy(x.memory, place * <int64_t>x.strides[0], z.memory, z.offset, x.strides[0])
            return 0
    elif cnp.PyArray_Check(array) and cnp.PyArray_Check(value):
        if place < array.shape[0] and value.shape == array.shape[1:]:
            array[place] = value
            return 0
    rows.write(place, value)
    return 0


@cython.final
@cython.auto_pickle(False)
cdef class StepsInTurn:
    """The steps of a loop, run one by one, without Python between them. ``_Loop`` (scan/run.py) specifies it.

    Attributes
    ----------
    done : int
        How many steps were run.

    Parameters
    ----------
    arrays : LoopArrays
        What the steps read and write.
    machine : NativeMachine
        Of a step.
    written_over : sequence of int
        The inputs that a step writes into, which are copied before it.
    """

    cdef readonly int64_t done
    cdef object _arrays
    cdef NativeMachine _machine
    cdef list _written_over

    def __init__(self, arrays, NativeMachine machine, written_over):
        self._arrays, self._machine, self._written_over = arrays, machine, list(written_over)

    def run(self, int64_t most):
        """Run the steps, at most this many; return how many were done."""
        cdef object arrays = self._arrays
        cdef list states = arrays.states, stacks = arrays.stacks, carried = arrays.carried
        cdef list reads = arrays.reads(), depths = list(arrays.layout.depths), values, new
        cdef bint until = arrays.layout.until
        cdef int64_t t
        cdef Py_ssize_t i, n_states = len(states), n_carried = len(carried)
        while self.done < most:
            t = self.done
            values = [row_of(states[<Py_ssize_t>number].array, t + <int64_t>shift) for number, shift in reads]
            values += carried
            values += [row_of(x, t) for x in arrays.sequences]
            values += arrays.captured
            for i in self._written_over:
                values[i] = values[i].copy()
            new = self._machine.run(values)
            for i in range(n_states):
                write_row(states[i], <int64_t>depths[i] + t, new[i])
            carried[:] = new[n_states : n_states + n_carried]
            for i in range(len(stacks)):
                write_row(stacks[i], t, new[n_states + n_carried + i])
            self.done += 1
            if until and new[len(new) - 1]:
                break
            PyErr_CheckSignals()
            if self.done % STEPS_IN_A_ROW == 0:
                with nogil:
                    pass
        return self.done
