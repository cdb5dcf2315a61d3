# Regions of a graph on a device, as functions in C: plans by the layouts of arguments, memory of results, and the
# enqueueing of calls, without a line of Python.

cdef enum:
    # After this many calls in a row without a graph, small arrays are copied from and to fixed addresses.
    MOST_MISSES = 16
    LARGEST_STAGED = 65536


# Where a plan has its small arguments and results: where callers have them; at fixed addresses, from and to which
# they are copied, as graphs need addresses that are met again; or where callers have them for good, as fixed
# addresses brought no graphs.
cdef enum Staging:
    DIRECT
    STAGED
    GIVEN_UP


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
    can_fail : bool
        Whether its work may report errors.
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
    cdef readonly bint can_fail
    cdef DevicePlan _native
    cdef object _work, _driver, _array_type, _what
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
        self.inputs, self._outputs, self._what, self.can_fail = inputs, outputs, what, plan.can_fail
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
                if self._stream.log is not None:
                    held = [(<DeviceArrayBase>values[i]).memory for i in self._given] + made + self._constants
                    if arena is not None:
                        held.append(arena)
                    if staged is not None:
                        held += [memory for memory in staged if memory is not None]
                use = self._stream.enqueue(self._native, self._work, bases, held, self._graphs)
                if staged is not None:
                    for memory, source in zip(made, staged[len(self._given) :]):
                        if source is not None:
                            self._stream.copy(memory, 0, source, 0, (<DeviceMemory>source).nbytes)
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
                self._stream.copy(staged[k], 0, x.memory, x.offset, self._sizes[k])
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
        return new_device_array(self._array_type, self._stream, memory, offset, dtype, shape, strides)


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
            return self.run_plan(self._plan_for(values), values)

    cdef tuple run_plan(self, RegionPlan plan, tuple values):
        """Enqueue the work of a plan that is for these arguments."""
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
        if options["gpu_check"]:
            plan._stream.join()
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
        self.plans = [plan, *self.plans[: max(options["most_plans"], 1) - 1]]
        return plan

    def drop_arena(self):
        """Give the memory of intermediate values back, which is kept for the next call."""
        with cython.critical_section(machine_lock):
            self._arena = None


cdef enum:
    LARGEST_KEPT_ARENA = 1073741824
