# Where values are kept between calls, and how a call writes over them: all of them or none.

cdef extern from "pythread.h":
    unsigned long PyThread_get_thread_ident()

# Threads wait here for cells that others are writing over; only then has it to be told.
cdef object changed = threading.Condition()
cdef int n_waiting = 0


@cython.auto_pickle(False)
cdef class Cell:
    """A place for a value.

    Whoever takes an array out holds it from then on, and nobody writes over an array that somebody
    else holds.

    Attributes
    ----------
    value : object
        None: nothing is stored yet.
    """

    cdef public object value
    cdef unsigned long _writer      # the thread that is writing over the value; 0: none

    def read(self):
        """What is stored; waits while another thread writes over it."""
        return settled(self)


cdef inline bint taken_by_another(Cell cell) noexcept:
    return cell._writer != 0 and cell._writer != PyThread_get_thread_ident()


cdef object settled(Cell cell):
    """The value of a cell, when no other thread writes over it."""
    if taken_by_another(cell):
        wait_for([cell])
    return cell.value


cdef int wait_for(list cells) except -1:
    """Return when no other thread writes over one of the cells."""
    global n_waiting
    # Counted before the lock is asked for: who stops writing from then on will tell.
    n_waiting += 1
    try:
        with changed:
            while any_taken(cells):
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


@cython.final
@cython.auto_pickle(False)
cdef class Transaction:
    """What one call may overwrite (see ``symcomp.vm.commit.Claims``).

    The program begins it, and whoever made it ends it.

    Parameters
    ----------
    cells : list of Cell
        Of the arrays that the program asks for.
    """

    cdef list _cells
    cdef list _marked
    cdef list _interrupts
    cdef object _handler

    def __init__(self, list cells):
        self._cells = cells

    cpdef begin(self):
        """Let nobody else take the arrays; from now on Ctrl-C waits until ``end``."""
        cdef Cell cell
        cdef unsigned long thread = PyThread_get_thread_ident()
        while any_taken(self._cells):
            wait_for(self._cells)
        # From the look at them to here no other thread has run.
        self._marked = []
        for cell in self._cells:
            if cell._writer == 0:
                cell._writer = thread
                self._marked.append(cell)
        if threading.current_thread() is threading.main_thread():
            self._hold_interrupts()

    def _hold_interrupts(self):
        handler = signal.getsignal(signal.SIGINT)
        if callable(handler):
            interrupts = self._interrupts = []
            signal.signal(signal.SIGINT, lambda *call: interrupts.append(call))
            self._handler = handler

    def taken(self, arrays, others):
        """The arrays where nobody else holds them, and copies of the others."""
        return tuple([
            array if not count and may_be_overwritten(<Cell>cell, array) else array.copy(order="K")
            for array, cell, count in zip(arrays, self._cells, others, strict=True)
        ])

    cpdef end(self):
        """Let the others go on; then do what Ctrl-C does, if it was pressed."""
        cdef Cell cell
        if self._marked is not None:
            for cell in self._marked:
                cell._writer = 0
            self._marked = None
            if n_waiting:
                with changed:
                    changed.notify_all()
        if self._handler is not None:
            signal.signal(signal.SIGINT, self._handler)
            if self._interrupts:
                self._handler(*self._interrupts[0])


cdef bint may_be_overwritten(Cell cell, object array):
    """Whether this is the array that is stored, and its memory its own."""
    return (
        cell.value is array
        and cnp.PyArray_CHKFLAGS(<cnp.ndarray>array, cnp.NPY_ARRAY_OWNDATA)
        and cnp.PyArray_ISWRITEABLE(<cnp.ndarray>array)
    )
