# Actions through an inspector (vm/inspection.py): it sees the values, and may have them computed again.

@cython.final
@cython.auto_pickle(False)
cdef class Work:
    """What an action does, as a function of values; only while the action runs."""

    cdef Inspected _owner
    cdef PyObject **_store

    def __call__(self, values):
        """The results, one for each output."""
        cdef int i
        cdef Inspected owner = self._owner
        if self._store == NULL:
            raise RuntimeError("an inspector may compute an instruction only while it is called")
        owner._place(self._store, values)
        owner._action.run(self._store)
        return [
            <object>self._store[owner._slots[owner._n_arguments + i]]
            for i in range(owner._n_outputs)
        ]


@cython.final
@cython.auto_pickle(False)
cdef class Inspected(Action):
    """Gives an instruction to an inspector, and an action to compute it by.

    Parameters
    ----------
    action : Action
    inspector : symcomp.vm.inspection.Inspector
    step : Instruction
    position : int
    """

    cdef Action _action
    cdef object _step, _inspector
    cdef int *_slots        # of the arguments, then of the outputs
    cdef int _n_arguments, _n_outputs, _position

    def __cinit__(self, Action action, inspector, step, int position):
        self._position = position
        self._action, self._inspector, self._step = action, inspector, step
        self._n_arguments, self._n_outputs = len(step.arguments), len(step.outputs)
        self._slots = numbers([*step.arguments, *step.outputs])

    def __dealloc__(self):
        PyMem_Free(self._slots)

    cdef int _place(self, PyObject **store, values) except -1:
        """Set the slots of the arguments; None leaves one as it is."""
        cdef int i
        if len(values) != self._n_arguments:
            raise ValueError(f"{self._n_arguments} values expected, got {len(values)}")
        for i in range(self._n_arguments):
            if self._slots[i] >= 0 and values[i] is not None:
                put(store, self._slots[i], values[i])
        return 0

    cdef int run(self, PyObject **store) except -1:
        cdef list values = values_of(store, self._slots, self._n_arguments)
        cdef Work work = Work.__new__(Work)
        work._owner, work._store = self, store
        try:
            results = self._inspector.call(self._position, self._step, values, work)
        finally:
            work._store = NULL
            self._place(store, values)
        for i, value in zip(range(self._n_outputs), results, strict=True):
            put(store, self._slots[self._n_arguments + i], value)
        return 0
