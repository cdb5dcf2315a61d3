# Regions of a graph on a device, as functions in C: plans by the layouts of arguments, memory of results, and the
# enqueueing of calls, without a line of Python.

#: The Timeline that work is added to, or None; gpu/driver/timeline.py has it.
DEVICE_TIMELINE = contextvars.ContextVar("timeline", default=None)


cdef enum:
    # Regions of fewer, or more, pieces of work are not enqueued as graphs.
    FEWEST_IN_GRAPH = 3
    MOST_IN_GRAPH = 4096
    # The most graphs of a plan, each for other addresses.
    MOST_GRAPHS = 16
    # After this many calls in a row without a graph, small arrays are copied from and to fixed addresses.
    MOST_MISSES = 16
    LARGEST_STAGED = 65536


#: The most pieces of work of a graph.
MOST_PIECES = MOST_IN_GRAPH


# Whether work was enqueued as a graph; CANNOT: it cannot be one, or graphs are left out.
cdef enum GraphUse:
    NOT_YET
    AS_GRAPH
    CANNOT


# Where a plan has its small arguments and results: where callers have them; at fixed addresses, from and to which
# they are copied, as graphs need addresses that are met again; or where callers have them for good, as fixed
# addresses brought no graphs.
cdef enum Staging:
    DIRECT
    STAGED
    GIVEN_UP


@cython.final
@cython.auto_pickle(False)
cdef class RecordedGraph:
    """The work of a plan with all its addresses, recorded by the driver."""

    cdef DeviceLibrary _library
    cdef void *_made

    def __dealloc__(self):
        if self._made != NULL and self._library.enter() == 0:
            self._library.functions.drop_made(self._made)
            self._library.leave()


@cython.final
@cython.auto_pickle(False)
cdef class RecordedParts:
    """The graphs of all parts of a plan, for a run."""

    cdef list graphs
    cdef void **handles
    cdef int64_t times

    def __cinit__(self, Py_ssize_t n):
        self.graphs, self.handles = [], <void **>_zeros(n, sizeof(void *))

    cdef void add(self, RecordedGraph graph, int64_t times):
        self.handles[len(self.graphs)] = graph._made
        self.graphs.append(graph)
        self.times += times

    def __dealloc__(self):
        PyMem_Free(self.handles)


@cython.auto_pickle(False)
cdef class DeviceStream:
    """The stream of a device, for the machine.

    Attributes
    ----------
    recorder : int
        Another stream, on which graphs are recorded; 0: none are.
    address : int
        What functions of the driver call it; 0: ``driver.begin`` may set it. If it does not, and for work that
        is timed, ``driver.enqueue`` is called.
    log : list or None
        To which the work that is enqueued is added, and the memory that it uses; None if nothing must be known of it.

    Parameters
    ----------
    driver : Driver
    library : DeviceLibrary
    counters : DeviceCounters
    is_recorded : bool
        Whether work is only written down: the GIL is kept meanwhile.
    """

    cdef readonly DeviceLibrary library
    cdef readonly DeviceCounters counters
    cdef readonly object driver
    cdef public uintptr_t address, recorder
    cdef public list log
    cdef bint _is_recorded

    def __init__(self, driver, DeviceLibrary library, DeviceCounters counters, bint is_recorded=False):
        self.driver, self.library, self.counters, self._is_recorded = driver, library, counters, is_recorded

    cdef int enqueue(
        self, DevicePlan plan, work, const uint64_t *bases, list held, dict graphs
    ) except -1:
        """Enqueue the calls of a plan; as a graph, if they are enqueued with these addresses again, or with its
        parts as graphs. Return a ``GraphUse``.
        """
        cdef int code, i, failed = -1
        cdef bint can_be
        cdef RecordedGraph graph = None
        cdef RecordedParts parts = None
        is_timed = DEVICE_TIMELINE.get() is not None
        if self.address == 0 and not is_timed:
            self.driver.begin()
        if self.address == 0 or is_timed:
            self.driver.enqueue(work, [bases[i] for i in range(plan.data.n_bases)], held)
            return CANNOT
        can_be = not plan.parts and plan.is_recordable and FEWEST_IN_GRAPH <= plan.pieces <= MOST_IN_GRAPH
        if not self.recorder or not config.gpu_graphs:
            can_be = False
        elif plan.parts and plan.is_recordable:
            parts = self._graphs_of_parts(plan, work, bases, graphs)
        elif can_be:
            graph = self._graph(plan, work, bases, graphs)
        if self._is_recorded:
            code = self._enqueue(plan, bases, graph, parts, &failed)
        else:
            with nogil:
                code = self._enqueue(plan, bases, graph, parts, &failed)
        self._check(work, code, failed)
        self.counters.launches += plan.launches
        self.counters.within += plan.copied
        self.counters.graphs += (graph is not None) + (0 if parts is None else parts.times)
        if self.log is not None:
            self.log.append((work, held))
        return CANNOT if not can_be else NOT_YET if graph is None else AS_GRAPH

    cdef int copy(self, DeviceMemory target, source, int64_t start, int64_t nbytes, work) except -1:
        """Enqueue a copy to the beginning of a block."""
        cdef int code
        if self.address == 0 or self._is_recorded or DEVICE_TIMELINE.get() is not None:
            self.driver.within(target, 0, source, start, nbytes)
            return 0
        code = self.library.enter()
        if code == 0:
            code = self.library.functions.copy(
                target.address, (<DeviceMemory>source).address + <uint64_t>start, nbytes, <void *>self.address
            )
            self.library.leave()
        self._check(work, code, -1)
        self.counters.within += nbytes
        return 0

    cdef int _enqueue(
        self, DevicePlan plan, const uint64_t *bases, RecordedGraph graph, RecordedParts parts, int *failed
    ) noexcept nogil:
        cdef int code = self.library.enter()
        if code:
            return code
        if graph is not None:
            code = self.library.functions.launch_graph(graph._made, <void *>self.address)
        else:
            code = enqueue_device_plan(
                &plan.data, &self.library.functions, <void *>self.address, bases,
                NULL if parts is None else parts.handles, failed
            )
        self.library.leave()
        return code

    cdef RecordedGraph _graph(self, DevicePlan plan, work, const uint64_t *bases, dict graphs):
        """Return the graph for these addresses; None when they are met for the first time."""
        cdef bytes key = (<const char *>bases)[: plan.data.n_bases * sizeof(uint64_t)]
        if key not in graphs:
            if len(graphs) >= MOST_GRAPHS:
                del graphs[next(iter(graphs))]
            graphs[key] = None
            return None
        found = graphs[key]
        if found is None:
            found = graphs[key] = self._recorded(plan, work, bases, -1)
        return found

    cdef RecordedParts _graphs_of_parts(self, DevicePlan plan, work, const uint64_t *bases, dict graphs):
        """Return the graphs of the parts of a plan, for the addresses that each uses. They are recorded when these
        are met for the first time, as one call enqueues a part several times.
        """
        cdef RecordedParts found = RecordedParts(len(plan.parts))
        for number, used, times in plan.parts:
            key = number, *[bases[<int>base] for base in used]
            graph = graphs.get(key)
            if graph is None:
                graph = self._recorded(plan, work, bases, number)
                if graph is None:
                    return None
                if len(graphs) >= MOST_GRAPHS * len(plan.parts):
                    del graphs[next(iter(graphs))]
                graphs[key] = graph
            found.add(graph, times)
        return found

    cdef RecordedGraph _recorded(self, DevicePlan plan, work, const uint64_t *bases, int loop):
        """Record a plan, or the steps of a loop of it if that is no negative number; with the GIL, as there is one
        stream for it. Return None, and never try again, if that is refused.
        """
        cdef RecordedGraph found = RecordedGraph.__new__(RecordedGraph)
        cdef int failed = -1, code = self.library.enter()
        found._library = self.library
        if code == 0:
            code = record_device_plan(
                &plan.data, &self.library.functions, <void *>self.recorder, bases, loop, &found._made,
                &failed,
            )
            self.library.leave()
        if code == NO_HOST_MEMORY:
            raise MemoryError
        if code:  # an error of the work itself comes again
            plan.is_recordable = False
            self.driver.warn_of_recording(work, code, failed)
            return None
        self.counters.recorded += 1
        return found

    cdef int _check(self, work, int code, int failed) except -1:
        if code == NO_HOST_MEMORY:
            raise MemoryError
        if code:
            self.driver.refuse(work, code, failed)
        return 0


@cython.final
@cython.auto_pickle(False)
cdef class RegionPlan:
    """The work of a region for arguments of one set of layouts.

    Attributes
    ----------
    plan : Plan
        The calls, for readers.
    inputs : list
        As given.
    staged_bytes : int
        Of the fixed addresses of small arguments and results; 0 without them.

    Parameters
    ----------
    plan : Plan
    stream : DeviceStream
    pool : DevicePool
    array_type : type
        Of results, a subclass of DeviceArrayBase.
    inputs : list
        For each argument a host array, whose value it must have, or (dtype, shape, strides, ``is_aligned`` of
        its address).
    outputs : list
        For each result (base, None, offset, dtype, shape, strides), where it lies; (0, memory, ...) for a
        constant; or a host array.
    what : str
        What memory is for, in messages.
    """

    cdef readonly object plan
    cdef readonly list inputs
    cdef DevicePlan _native
    cdef object _work, _driver, _device, _array_type, _what
    cdef DeviceStream _stream
    cdef DevicePool _pool
    cdef list _outputs, _given, _made, _constants
    cdef dict _graphs
    cdef int64_t _arena
    cdef Staging _staging
    cdef int _misses
    cdef list _staged, _sizes

    def __init__(self, plan, DeviceStream stream, DevicePool pool, array_type, list inputs, list outputs, what):
        self.plan, self._work, self._native, self._arena = plan, plan.native, plan.native.native, plan.arena
        self._stream, self._pool, self._driver, self._array_type = stream, pool, stream.driver, array_type
        self._device = stream.driver.name
        self.inputs, self._outputs, self._what = inputs, outputs, what
        self._given, self._made = plan.native.inputs, plan.native.made
        self._constants, self._graphs = plan.native.constants, {}
        # Bytes of arguments, then of results, that can have fixed addresses; 0 for the others.
        self._sizes = [_dense_size(inputs[i]) for i in self._given] + self._made
        self._sizes = [size if size <= LARGEST_STAGED else 0 for size in self._sizes]
        # A graph and each copy take as long as a launch: together half as long as all launches.
        if self._native.pieces < 2 * (len([size for size in self._sizes if size]) + 1):
            self._staging = GIVEN_UP

    @property
    def staged_bytes(self):
        return sum(self._sizes) if self._staging == STAGED else 0

    cdef bint fits(self, tuple values) except -1:
        """Tell whether the arguments have the layouts, and numbers, that the plan is for."""
        cdef DeviceArrayBase x
        cdef Py_ssize_t i
        cdef tuple layout
        for i in range(len(self.inputs)):
            if not isinstance(self.inputs[i], tuple):
                if not _are_same(values[i], self.inputs[i]):
                    return False
                continue
            x = <DeviceArrayBase?>values[i]
            layout = <tuple>self.inputs[i]
            if x.driver is not self._driver or not _equal(x.dtype, layout[0]):
                return False
            if not _equal(x.shape, layout[1]) or not _equal(x.strides, layout[2]):
                return False
            if (x.address % WIDEST_ACCESS == 0) is not <bint>layout[3]:
                return False
        return True

    cdef tuple run(self, tuple values, DeviceMemory arena):
        """Enqueue the work; return the results."""
        cdef uint64_t *bases = <uint64_t *>_zeros(self._native.data.n_bases, sizeof(uint64_t))
        cdef list held = [], made = [], staged
        cdef int n = 1, k, use
        try:
            bases[0] = 0 if arena is None else arena.address
            for i in self._given:
                bases[n] = (<DeviceArrayBase>values[i]).address
                n += 1
            for size in self._made:
                memory = self._pool.take(size, self._what)
                made.append(memory)
                bases[n] = (<DeviceMemory>memory).address
                n += 1
            staged = self._take_staged()
            if staged is not None:
                self._copy_arguments(values, staged)
                for k in range(len(staged)):
                    if staged[k] is not None:
                        bases[k + 1] = (<DeviceMemory>staged[k]).address
            if self._native.data.n_calls:
                if self._stream.log is not None or self._stream.address == 0:
                    held = [(<DeviceArrayBase>values[i]).memory for i in self._given] + made + self._constants
                    if arena is not None:
                        held.append(arena)
                    if staged is not None:
                        held += [memory for memory in staged if memory is not None]
                use = self._stream.enqueue(self._native, self._work, bases, held, self._graphs)
                if staged is not None:
                    for memory, source in zip(made, staged[len(self._given) :]):
                        if source is not None:
                            self._stream.copy(memory, source, 0, (<DeviceMemory>source).nbytes, self._work)
                    self._staged = staged
                self._note(use)
        finally:
            PyMem_Free(bases)
        return tuple([self._result(z, values, made) for z in self._outputs])

    cdef list _take_staged(self):
        """Return memory at fixed addresses for each argument and result, or None; or None for all. No other thread
        has it meanwhile.
        """
        cdef list staged
        if self._staging != STAGED:
            return None
        staged, self._staged = self._staged, None
        if staged is None:
            staged = [self._pool.take(size, self._what) if size else None for size in self._sizes]
        return staged

    cdef int _copy_arguments(self, tuple values, list staged) except -1:
        cdef DeviceArrayBase x
        cdef int k
        for k in range(len(self._given)):
            if staged[k] is not None:
                x = <DeviceArrayBase>values[self._given[k]]
                self._stream.copy(staged[k], x.memory, x.offset, self._sizes[k], self._work)
        return 0

    cdef void _note(self, int use) noexcept:
        """Note whether a call was a graph, and decide where the next ones have their small arrays."""
        if use == AS_GRAPH or self._staging == GIVEN_UP:
            self._misses = 0
        elif use == NOT_YET:
            self._misses += 1
            if self._misses >= MOST_MISSES:
                self._misses = 0
                self._staging = STAGED if self._staging == DIRECT else GIVEN_UP
                self._staged = None

    cdef object _result(self, z, tuple values, list made):
        cdef DeviceArrayBase found
        cdef DeviceArrayBase given
        cdef int base
        cdef int64_t offset
        if not isinstance(z, tuple):
            return z
        base, memory, offset, dtype, shape, strides = z
        if memory is None and base <= len(self._given):
            given = <DeviceArrayBase>values[self._given[base - 1]]
            memory, offset = given.memory, offset + given.offset
        elif memory is None:
            memory = made[base - 1 - len(self._given)]
        found = (<type>self._array_type).__new__(<type>self._array_type)
        found.driver, found.device, found.memory, found.offset = self._driver, self._device, memory, offset
        found.address = (<DeviceMemory>memory).address + <uint64_t>offset
        found.dtype, found.shape, found.strides = dtype, shape, strides
        return found


cdef int64_t _dense_size(layout) except -1:
    """Return the bytes of an argument; 0 if it is not in C order."""
    cdef int64_t size = layout[0].itemsize
    for n, step in zip(reversed(layout[1]), reversed(layout[2])):
        if n != 1 and step != size:
            return 0
        size *= n
    return size


cdef bint _are_same(x, y) except -1:
    """Tell whether two arrays on the host have the same dtype, shape and elements."""
    return x.dtype == y.dtype and x.shape == y.shape and x.tobytes() == y.tobytes()


@cython.auto_pickle(False)
cdef class DeviceRegion:
    """A region as a function: from arrays on a device, and numbers, to such.

    A subclass has ``make_plan``, from the arguments to a RegionPlan, and ``driver``.

    Attributes
    ----------
    plans : list of RegionPlan
        The one that was used last is the first.
    made, repeated : int
        How many plans were made, and how many calls repeated one.
    """

    cdef public list plans
    cdef public int64_t made, repeated
    cdef DeviceMemory _arena
    cdef bint _has_arrays
    cdef object __weakref__

    def __init__(self, bint has_arrays):
        self.plans, self._has_arrays = [], has_arrays

    def __call__(self, *values):
        """Enqueue the computation; return its results."""
        with cython.critical_section(machine_lock):
            return self._run(values)

    cdef tuple _run(self, tuple values):
        cdef RegionPlan plan = self._plan_for(values)
        cdef DeviceMemory arena = None
        cdef tuple found
        if plan._arena:
            arena, self._arena = self._arena, None
            if arena is None or arena.nbytes < plan._arena:
                arena = plan._pool.take(plan._arena, f"intermediate values of {plan._what}")
        found = plan.run(values, arena)
        # Later work on the stream may write over it: it runs later.
        if arena is not None and arena.nbytes <= LARGEST_KEPT_ARENA:
            self._arena = arena
        if config.gpu_check:
            plan._driver.wait()
        return found

    cdef RegionPlan _plan_for(self, tuple values):
        cdef list plans = self.plans
        cdef RegionPlan plan
        cdef Py_ssize_t i
        driver = None if self._has_arrays else self.driver
        for i in range(len(plans)):
            plan = <RegionPlan>plans[i]
            if (driver is None or plan._driver is driver) and plan.fits(values):
                self.repeated += 1
                if i:
                    self.plans = [plan, *plans[:i], *plans[i + 1 :]]
                return plan
        plan = self.make_plan(*values)
        plan._pool.share(self)
        self.made += 1
        self.plans = [plan, *self.plans[: max(config.most_plans, 1) - 1]]
        return plan

    def drop_arena(self):
        """Give the memory of intermediate values back, which is kept for the next call."""
        with cython.critical_section(machine_lock):
            self._arena = None


cdef enum:
    LARGEST_KEPT_ARENA = 1073741824
