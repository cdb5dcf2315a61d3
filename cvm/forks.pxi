# Forks. A child has only the thread that forked: transactions of other threads would never end
# there. So a fork waits until they have ended, and holds off new ones.

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

    /* Held while a thread forks: no other one is half-way with what the lock is for. */
    static _Thread_local MachineLock symcomp_fork_lock;
    static void symcomp_begin_fork(void) { lock_machine(&symcomp_fork_lock); }
    static void symcomp_end_fork(void) { unlock_machine(&symcomp_fork_lock); }
    """
    void nap "symcomp_nap" () noexcept nogil
    void begin_fork "symcomp_begin_fork" ()
    void end_fork "symcomp_end_fork" ()

# Seconds that a fork waits at most: who writes may himself wait for what the forking thread has. Then
# others wait for the fork, but not for long: it may, after this, wait for what they have.
FORKS_WAIT = 10.0
FORKS_TAKE = 0.1
# The writer of values that were left half-written.
cdef unsigned long LOST = <unsigned long>-1
# The threads that fork, and until when others wait for each of its forks.
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
    transaction._is_linked = True
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
    transaction._is_linked = False
    return 0


cdef bint others_write(unsigned long thread) noexcept:
    """Tell whether other threads have transactions under way."""
    cdef PyObject *at = writing
    while at != NULL:
        if (<Transaction>at)._thread != thread:
            return True
        at = (<Transaction>at)._next
    return False


cdef bint is_held_off(unsigned long thread) except -1:
    """Tell whether a thread must not begin to write now. A thread that writes may: otherwise it
    would not end.
    """
    cdef PyObject *at = writing
    cdef double now
    if len(forking) == 0 or thread in forking:
        return False
    while at != NULL:
        if (<Transaction>at)._thread == thread:
            return False
        at = (<Transaction>at)._next
    now = time.monotonic()
    return now < max(max(ends) for ends in forking.values())


def _before_fork():
    """Wait for transactions to end; then hold the machine's lock.

    No Python code runs meanwhile: what the handler of a signal raises would be lost here.
    """
    begin_fork()
    cdef unsigned long thread = PyThread_get_thread_ident()
    cdef double end = time.monotonic() + FORKS_WAIT
    cdef list ends = forking.setdefault(thread, [])
    ends.append(end)
    while others_write(thread) and time.monotonic() < end:
        with nogil:
            nap()
    ends[len(ends) - 1] = time.monotonic() + FORKS_TAKE


def _after_in_parent():
    """Let the others go on."""
    cdef unsigned long thread = PyThread_get_thread_ident()
    ends = forking.get(thread)
    if ends:
        ends.pop()
        if not ends:
            del forking[thread]
    end_fork()


def _after_in_child():
    """Mark half-written values as lost, and forget the threads of the parent."""
    global main_thread, under_way, writing, n_waiting
    cdef unsigned long thread = PyThread_get_thread_ident()
    cdef PyObject *at = writing
    changed.__init__()      # a thread may have its lock that is not there
    n_waiting = 0
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
    _after_in_parent()


cdef int find_lost(Cell cell) except -1:
    """Raise an error if the value of a cell is half-written, and not another meanwhile."""
    if cell._value is cell._lost:
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
