# Where values are kept between calls, and how a call writes over them: all of them or none.

cdef extern from "pythread.h":
    unsigned long PyThread_get_thread_ident()

cdef extern from "Python.h":
    Py_ssize_t Py_REFCNT(PyObject *counted)

# Threads wait here for cells that others are writing over; only then has it to be told.
cdef object changed = threading.Condition()
cdef int n_waiting = 0


@cython.auto_pickle(False)
cdef class Cell:
    """A place for a value.

    A caller that takes an array out holds it from then on, and an array with other holders is not
    overwritten.

    Attributes
    ----------
    value : object
        None: nothing is stored yet.
    """

    cdef object _value
    cdef unsigned long _writer      # the thread that is writing over the value; 0: none
    cdef object _lost               # a value that a thread was writing over when the process forked

    @property
    def value(self):
        with cython.critical_section(machine_lock):
            return self._value

    @value.setter
    def value(self, value):
        with cython.critical_section(machine_lock):
            self._value = value

    def read(self):
        """Return the stored value; wait while another thread writes over it."""
        return settled(self)


cdef inline bint taken_by_another(Cell cell) noexcept:
    return cell._writer != 0 and cell._writer != PyThread_get_thread_ident()


cdef object settled(Cell cell):
    """Return the value of a cell, once no other thread writes over it."""
    cdef object value
    with cython.critical_section(machine_lock):
        while True:
            # First take hold of it: who counts after that, counts this too.
            value = cell._value
            if not taken_by_another(cell):
                return value
            value = None
            wait_for([cell])


cdef int wait_for(list cells) except -1:
    """Return when no other thread writes over one of the cells."""
    global n_waiting
    # Counted before the lock is asked for: who stops writing from then on will tell.
    n_waiting += 1
    try:
        with changed:
            while must_wait(cells):
                changed.wait()
    finally:
        n_waiting -= 1
    return 0


cdef bint any_taken(list cells) noexcept:
    cdef Py_ssize_t i
    for i in range(len(cells)):
        if taken_by_another(<Cell>cells[i]):
            return True
    return False


cdef bint must_wait(list cells) except -1:
    cdef Cell cell
    for cell in cells:
        if cell._writer == LOST:
            find_lost(cell)
    return any_taken(cells)


# The thread that Ctrl-C comes to. After a fork it is the one that forked.
cdef unsigned long main_thread = threading.main_thread().ident

# The transaction of the main thread whose arrays are being written over; not owned.
cdef PyObject *under_way = NULL


cdef int hold_back_interrupts_quietly(Runner *runner) noexcept:
    """Before Python code runs within a call: Ctrl-C must not end it half-way."""
    if under_way != NULL:
        try:
            (<Transaction>under_way).hold_interrupts()
        except BaseException as problem:
            set_raised(problem)
            return -1
    return 0


@cython.final
@cython.freelist(8)
@cython.auto_pickle(False)
cdef class Transaction:
    """The cells that one call may overwrite (see ``symcomp.vm.commit.Claims``).

    The program begins it, and its creator ends it.

    Parameters
    ----------
    cells : list of Cell
        Of the arrays that the program asks for.
    """

    cdef list _cells
    cdef list _marked
    cdef list _interrupts
    cdef object _handler
    cdef object _interrupted
    cdef unsigned long _thread
    cdef bint _is_main
    cdef PyObject *_outer       # the transaction within which this one is; it outlives it
    cdef PyObject *_previous    # in the list of those under way (forks.pxi)
    cdef PyObject *_next
    cdef bint _is_linked

    def __dealloc__(self):
        if self._is_linked:
            with cython.critical_section(machine_lock):
                unlink(self)

    def __init__(self, list cells):
        self._cells = cells

    def begin(self):
        """Keep others from taking the arrays; until ``end``, Ctrl-C is deferred."""
        with cython.critical_section(machine_lock):
            self.mark()
            self.hold_interrupts()

    cdef int mark(self) except -1:
        """Keep others from taking the arrays."""
        global under_way
        cdef Cell cell
        cdef list marked
        self._thread = PyThread_get_thread_ident()
        self._is_main = self._thread == main_thread
        while any_taken(self._cells) or is_held_off(self._thread):
            wait_for(self._cells)
            while is_held_off(self._thread):
                PyErr_CheckSignals()
                with nogil:
                    nap()
        # From the look at them until all are marked, no other thread runs.
        marked = self._cells
        for cell in self._cells:
            if cell._writer != 0:
                # Cells marked by an outer call of this thread stay marked.
                marked = [cell for cell in self._cells if (<Cell>cell)._writer == 0]
                break
        for cell in marked:
            cell._writer = self._thread
        if not self._is_linked:
            link(self)
        self._marked = marked
        if self._is_main:
            self._outer = under_way
            under_way = <PyObject *>self
        return 0

    cdef int hold_interrupts(self) except -1:
        """Let Ctrl-C wait until ``end``, if this is the thread that it comes to."""
        if not self._is_main or self._interrupts is not None:
            return 0
        if PyThread_get_thread_ident() != self._thread:
            return 0
        interrupts = self._interrupts = []
        try:
            # A signal that came meanwhile; otherwise later code would raise it.
            PyErr_CheckSignals()
        except BaseException as problem:
            self._interrupted = problem
        handler = getsignal(SIGINT)
        if callable(handler):
            set_handler(SIGINT, lambda *call: interrupts.append(call))
            self._handler = handler
        return 0

    def taken(self, arrays, others):
        """Return the arrays without other holders, and copies of the others."""
        with cython.critical_section(machine_lock):
            return tuple([
                self.to_write(i, array, count)
                for i, (array, count) in enumerate(zip(arrays, others, strict=True))
            ])

    cdef object to_write(self, Py_ssize_t i, cnp.ndarray array, Py_ssize_t others):
        """Return the array, if it is the one in the cell, owns its memory, and has no other holder;
        else a copy.
        """
        if (
            others == 0
            and (<Cell>self._cells[i])._value is array
            and cnp.PyArray_CHKFLAGS(array, cnp.NPY_ARRAY_OWNDATA)
            and cnp.PyArray_ISWRITEABLE(array)
        ):
            return array
        return own_copy(array)

    def end(self):
        """Let the others go on; then do what Ctrl-C does, if it was pressed."""
        with cython.critical_section(machine_lock):
            self.finish()

    cdef int finish(self) except -1:
        global under_way
        cdef Cell cell
        if self._marked is None:
            return 0
        for cell in self._marked:
            cell._writer = 0
        self._marked = None
        unlink(self)
        if under_way == <PyObject *>self:
            under_way = self._outer
        if n_waiting:
            with changed:
                changed.notify_all()
        if self._handler is not None:
            set_handler(SIGINT, self._handler)
            if self._interrupts:
                self._handler(*self._interrupts[0])
        if self._interrupted is not None:
            raise self._interrupted
        return 0

    cdef int abandon(self) except -1:
        """In a child, where the thread that made it is not there to end it."""
        cdef Cell cell
        for cell in self._marked or ():
            cell._writer, cell._lost = LOST, cell._value
        self._marked = None
        if self._handler is not None:
            set_handler(SIGINT, self._handler)
        return 0


cdef int keep_others_waiting(Runner *runner) noexcept:
    """Let other threads wait for the cells of a call until it ends; -1: an exception."""
    cdef Transaction transaction
    try:
        transaction = Transaction(<list>runner.claimed)
        runner.transaction = <PyObject *>transaction
        Py_INCREF(transaction)
        transaction.mark()
    except BaseException as problem:
        set_raised(problem)
        return -1
    return 0


cdef int64_t claim(Frame *frame, int n, const int *storages, int others_run) noexcept:
    """Return, as bits, the arrays without other holders; keep others waiting until the call ends."""
    cdef Runner *runner = frame.runner
    cdef int64_t found = 0
    cdef PyObject *array
    cdef int k
    if runner.claimed == NULL:
        return 0
    if others_run and runner.transaction == NULL and keep_others_waiting(runner) < 0:
        return -1
    for k in range(n):
        array = frame.object[storages[k]]
        # The cell holds it, and this run where it holds its inputs.
        if (
            <PyObject *>(<Cell>PyList_GET_ITEM(<list>runner.claimed, k))._value == array
            and cnp.PyArray_CheckExact(<object>array)
            and Py_REFCNT(array) == 1 + runner.holds_inputs
            and cnp.PyArray_CHKFLAGS(<cnp.ndarray>array, cnp.NPY_ARRAY_OWNDATA)
            and cnp.PyArray_ISWRITEABLE(<cnp.ndarray>array)
        ):
            found |= <int64_t>1 << k
    return found


def aligned_copy(cnp.ndarray array not None):
    """Return a copy that keeps the order; a large one begins at a cache line."""
    return own_copy(array)
