# Forks. A child has only the thread that forked: nobody there would end what others were writing.
# So a fork waits until they have, and holds off those who would begin.

cdef extern from *:
    """
    #ifdef _WIN32
    static void symcomp_nap(void) {}        /* nothing forks there */
    #else
    #include <time.h>
    static void symcomp_nap(void)
    {
        const struct timespec moment = {0, 100000};
        nanosleep(&moment, NULL);
    }
    #endif
    """
    void nap "symcomp_nap" () noexcept nogil

# Seconds that a fork waits at most: who writes may himself wait for what the forking thread has.
FORKS_WAIT = 10.0
# The writer of what was left half-written.
cdef unsigned long LOST = <unsigned long>-1
# The threads that fork: whether each has the lock of ``changed``, fork by fork.
cdef dict forking = {}
# The transactions under way, the last one first; not owned.
cdef PyObject *writing = NULL


cdef int link(Transaction transaction) noexcept:
    """Note that a transaction is under way."""
    global writing
    transaction._previous, transaction._next = NULL, writing
    if writing != NULL:
        (<Transaction>writing)._previous = <PyObject *>transaction
    writing = <PyObject *>transaction
    return 0


cdef int unlink(Transaction transaction) noexcept:
    """Note that it is not any more."""
    global writing
    if transaction._previous != NULL:
        (<Transaction>transaction._previous)._next = transaction._next
    else:
        writing = transaction._next
    if transaction._next != NULL:
        (<Transaction>transaction._next)._previous = transaction._previous
    return 0


cdef bint others_write(unsigned long thread) noexcept:
    """Whether threads but this one have transactions under way."""
    cdef PyObject *at = writing
    while at != NULL:
        if (<Transaction>at)._thread != thread:
            return True
        at = (<Transaction>at)._next
    return False


cdef bint is_held_off(unsigned long thread) except -1:
    """Whether a thread may not begin to write now. One that writes may: it would not end."""
    cdef PyObject *at = writing
    if len(forking) == 0 or thread in forking:
        return False
    while at != NULL:
        if (<Transaction>at)._thread == thread:
            return False
        at = (<Transaction>at)._next
    return True


def _before_fork():
    """Wait for those who write, and take the lock, so that the child gets it from this thread.

    No Python code runs meanwhile: what the handler of a signal raises would be lost here.
    """
    cdef unsigned long thread = PyThread_get_thread_ident()
    cdef double end = time.monotonic() + FORKS_WAIT
    cdef bint has = False, late = False
    cdef list forks = forking.setdefault(thread, [])
    forks.append(False)
    while not (has or late):
        late = time.monotonic() > end
        if late or not others_write(thread):
            has = changed.acquire(blocking=False)
        if not (has or late):
            with nogil:
                nap()
    forks[len(forks) - 1] = has


cdef int end_fork(bint is_child) except -1:
    """Let the others go on."""
    cdef unsigned long thread = PyThread_get_thread_ident()
    cdef list forks = forking.get(thread) or [False]
    cdef bint has = forks.pop()
    if not forks:
        forking.pop(thread, None)
    if is_child and not has:
        changed.__init__()      # a thread may have it that is not there
    if n_waiting:
        with changed:
            changed.notify_all()
    if has:
        changed.release()
    return 0


def _after_in_child():
    """Mark what is half-written as lost, and forget the threads that are not there."""
    global main_thread, under_way, writing
    cdef unsigned long thread = PyThread_get_thread_ident()
    cdef PyObject *at = writing
    if thread != main_thread:
        main_thread, under_way = thread, NULL
    for other in [*forking]:
        if other != thread:
            del forking[other]
    while at != NULL:
        if (<Transaction>at)._thread != thread:
            unlink(<Transaction>at)
            (<Transaction>at).abandon()
        at = (<Transaction>at)._next
    end_fork(True)


def _after_in_parent():
    end_fork(False)


cdef int find_lost(Cell cell) except -1:
    """Raise an error if the value of a cell is half-written, and not another meanwhile."""
    if cell.value is cell._lost:
        raise RuntimeError(
            f"the value of {getattr(cell, 'name', None) or 'a shared variable'} is half-written: "
            f"another thread was updating it for more than {FORKS_WAIT:g} s when this process was "
            "forked. Set a value"
        )
    cell._writer, cell._lost = 0, None
    return 0


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before_fork, after_in_parent=_after_in_parent, after_in_child=_after_in_child
    )
