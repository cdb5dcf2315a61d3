# How many threads BLAS uses while functions run. The number is one for the whole process, and BLAS reads it
# when a product begins.

ctypedef int (*count_function)() noexcept nogil
ctypedef void (*set_count_function)(int) noexcept nogil

cdef struct LimitInForce:
    unsigned long thread
    int threads
    PyObject *limit             # borrowed: the code that began it holds it

# Limits in force, the last one being effective.
cdef LimitInForce *limits_in_force = NULL
cdef int n_limits = 0
cdef int limit_capacity = 0


@cython.auto_pickle(False)
cdef class BlasLibrary:
    """A loaded BLAS, and how many threads it uses outside of limits.

    Parameters
    ----------
    controller : object
        Has methods ``get_num_threads`` and ``set_num_threads``.
    get, set : int
        Addresses of C functions that do the same; 0: there are none.
    """

    cdef object _controller
    cdef count_function _get
    cdef set_count_function _set
    cdef int _before

    def __init__(self, controller, uintptr_t get=0, uintptr_t set=0):
        self._controller = controller
        self._get, self._set = <count_function>get, <set_count_function>set
        self._before = -1

    cdef int count(self) except? -1:
        if self._get != NULL:
            return self._get()
        count = self._controller.get_num_threads()
        return -1 if count is None else count

    cdef int use(self, int count) except -1:
        cdef int now = self.count()
        if now < 0 or now == count:
            return 0
        if self._set != NULL:
            self._set(count)
        else:
            self._controller.set_num_threads(count)
        return 0


@cython.auto_pickle(False)
cdef class BlasLimit:
    """A reentrant context in which BLAS uses a number of threads. If several limits are in force,
    the last that began decides.

    Parameters
    ----------
    threads : int
    find_libraries : callable
        Returns a list of `BlasLibrary`, always the same.
    """

    cdef readonly int threads
    cdef object _find_libraries
    cdef list _libraries        # None until the limit begins for the first time

    def __init__(self, int threads, find_libraries):
        self.threads, self._find_libraries = threads, find_libraries

    def __enter__(self):
        with cython.critical_section(machine_lock):
            self.enter()

    def __exit__(self, *problem):
        with cython.critical_section(machine_lock):
            self.leave()

    cdef int enter(self) except -1:
        global limits_in_force, n_limits, limit_capacity
        cdef LimitInForce *larger
        cdef BlasLibrary library
        if self._libraries is None:
            self._libraries = self._find_libraries()
        if n_limits == limit_capacity:
            larger = <LimitInForce *>PyMem_Realloc(
                limits_in_force, (2 * n_limits + 8) * sizeof(LimitInForce)
            )
            if larger == NULL:
                raise MemoryError()
            limits_in_force, limit_capacity = larger, 2 * n_limits + 8
        if n_limits == 0:
            for library in self._libraries:
                library._before = library.count()
        limits_in_force[n_limits].thread = PyThread_get_thread_ident()
        limits_in_force[n_limits].threads = self.threads
        limits_in_force[n_limits].limit = <PyObject *>self
        n_limits += 1
        return use_last_limit(self._libraries)

    cdef int leave(self) except -1:
        global n_limits
        cdef unsigned long thread = PyThread_get_thread_ident()
        cdef int i, k
        # The last that is equal to this one: two entries of one limit are the same.
        for i in range(n_limits - 1, -1, -1):
            if limits_in_force[i].limit == <PyObject *>self and limits_in_force[i].thread == thread:
                n_limits -= 1
                for k in range(i, n_limits):
                    limits_in_force[k] = limits_in_force[k + 1]
                break
        return use_last_limit(self._libraries)


cdef int use_last_limit(list libraries) except -1:
    """Set the number of threads that is in force now."""
    cdef BlasLibrary library
    for library in libraries:
        library.use(limits_in_force[n_limits - 1].threads if n_limits else library._before)
    return 0


def forget_limits_of_other_threads():
    """Drop the limits of the parent process: its threads do not exist in a forked child."""
    global n_limits
    cdef int i, n = 0
    cdef BlasLimit last = None
    cdef unsigned long thread = PyThread_get_thread_ident()
    for i in range(n_limits):
        last = <BlasLimit>limits_in_force[i].limit
        if limits_in_force[i].thread == thread:
            limits_in_force[n] = limits_in_force[i]
            n += 1
    n_limits = n
    if last is not None:
        use_last_limit(last._libraries)


cdef int enter_blas_limit(PyObject *limit, int enter) noexcept:
    try:
        if enter:
            (<BlasLimit>limit).enter()
        else:
            (<BlasLimit>limit).leave()
    except BaseException as problem:
        set_raised(problem)
        return -1
    return 0


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=forget_limits_of_other_threads)
