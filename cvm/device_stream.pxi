# Streams of devices: plans and copies are enqueued there, as graphs where they can be, and waited for.

#: The Timeline that work is added to, or None; gpu/driver/timeline.py has it.
DEVICE_TIMELINE = contextvars.ContextVar("timeline", default=None)


@cython.final
@cython.auto_pickle(False)
cdef class Recorded:
    """A function that does the same as another one, with its work on devices added to a timeline.

    Parameters
    ----------
    compute : callable
    timeline : Timeline
    """

    cdef object _compute, _timeline

    def __init__(self, compute, timeline):
        self._compute, self._timeline = compute, timeline

    def __call__(self, *values):
        before = DEVICE_TIMELINE.set(self._timeline)
        try:
            return self._compute(*values)
        finally:
            DEVICE_TIMELINE.reset(before)


# Counts of work that the host does.
cdef enum: ENQUEUED, DONE_WORK


@cython.auto_pickle(False)
@cython.no_gc_clear
cdef class DeviceStream:
    """The stream of a device, for the machine.

    Attributes
    ----------
    device : str
        Its name.
    address : int
        What functions of the driver call it; 0: the device cannot be used any more, as ``driver.lost()`` tells.
    recorder : int
        Another stream, on which graphs are recorded; 0: none are.
    fault : int
        The address of an integer on the host that is not 0 where work has failed; ``driver.fault()`` tells why.
    log : deque of (int, int, Work or None, list of DeviceMemory), or None
        The numbers of the first piece of work, and of the one after the last, what they are of and the memory that
        they use, as long as they are not done; None where nothing must be known of it.
    has_times : bool
        Whether work was enqueued on a card whose times are not known yet.
    timed : deque of (int, object)
        Of an emulator, pieces of work whose times were not read, by their numbers.

    Parameters
    ----------
    driver : Driver
    library : DeviceLibrary
    counters : DeviceCounters
    pool : DevicePool
    is_recorded : bool
        Whether work is only written down, and done by the host when it waits: the GIL is kept meanwhile.
    """

    cdef readonly DeviceLibrary library
    cdef readonly DeviceCounters counters
    cdef readonly DevicePool pool
    cdef readonly PinnedMemory pinned
    cdef readonly object driver, device
    cdef public uintptr_t address, recorder, fault
    cdef readonly object log
    cdef public bint has_times
    cdef readonly object timed
    cdef int64_t _n_timed
    cdef bint _is_recorded
    cdef void *_order       # an event, recorded anew for each copy between devices
    # Arrays to be filled, the pinned memory that their elements come to, and how many were enqueued, and filled, so
    # far. One thread fills them at a time.
    cdef object _arrivals, _filling
    cdef int64_t _arriving, _filled
    cdef list _sources      # the streams of devices that arrays were copied from since this one was waited for

    def __init__(self, driver, DeviceLibrary library, DeviceCounters counters, DevicePool pool, bint is_recorded=False):
        self.driver, self.device = driver, driver.name
        self.library, self.counters, self.pool = library, counters, pool
        self.pinned = PinnedMemory(library, counters)
        self._is_recorded, self.log = is_recorded, collections.deque() if is_recorded else None
        self._arrivals, self.timed, self._sources = collections.deque(), collections.deque(), []
        self.begin_anew()

    def __dealloc__(self):
        if self._order != NULL and self.library.enter() == 0:
            self.library.functions.drop_event(self._order)
            self.library.leave()

    def begin_anew(self):
        """Have a new lock in a process that was forked."""
        self._filling = threading.RLock()

    cdef int enqueue(
        self, DevicePlan plan, work, const uint64_t *bases, list held, dict graphs
    ) except -1:
        """Enqueue the calls of a plan; as a graph, if they are enqueued with these addresses again, or with its
        parts as graphs. Return a ``GraphUse``.
        """
        cdef int code, i, failed = -1
        cdef uint64_t first
        cdef list pieces
        cdef bint can_be = False
        cdef RecordedGraph graph = None
        cdef RecordedParts parts = None
        timeline = DEVICE_TIMELINE.get()
        if self.address == 0:
            raise self.driver.lost()
        if timeline is None and self.recorder and options["gpu_graphs"] and plan.is_recordable:
            can_be = not plan.parts and FEWEST_IN_GRAPH <= plan.pieces <= MOST_IN_GRAPH
            if plan.parts:
                parts = self._graphs_of_parts(plan, work, bases, graphs)
            elif can_be:
                graph = self._graph(plan, work, bases, graphs)
        if timeline is not None and not self._is_recorded:
            self.driver.enqueue(work, [bases[i] for i in range(plan.data.n_bases)])
        elif not self._is_recorded:
            with nogil:
                code = self._enqueue(plan, bases, graph, parts, &failed)
            self._check(work, code, failed)
        else:
            pieces = None if timeline is None else self.driver.pieces_of(timeline, work)
            first = self._hold(held)
            self._begin_times(pieces)
            code = self._enqueue(plan, bases, graph, parts, &failed)
            self._end_times(pieces, first, code)
            self._note(first, work, held)
            self._check(work, code, failed)
        self.counters.launches += plan.launches
        self.counters.within += plan.copied
        self.counters.graphs += (graph is not None) + (0 if parts is None else parts.times)
        return CANNOT if not can_be else NOT_YET if graph is None else AS_GRAPH

    # -- the memory and the times of work that the host does: no Python runs between what tells of them and the work,
    # so that no other thread's work comes between

    cdef uint64_t _hold(self, list held) except? 0:
        """Tell which memory the work that follows uses; return the number of its first piece."""
        cdef uint64_t *blocks
        cdef size_t n = 0
        cdef int code
        blocks = <uint64_t *>_zeros(len(held), sizeof(uint64_t))
        for memory in held:
            if (<DeviceMemory?>memory)._pool is not None:
                blocks[n] = (<DeviceMemory>memory).address
                n += 1
        code = self.library.functions.hold(blocks, n, <void *>self.address)
        PyMem_Free(blocks)
        self._check(None, code, -1)
        return self.library.functions.count(<void *>self.address, ENQUEUED)

    cdef int _note(self, uint64_t first, work, list held) except -1:
        self.log.append((first, self.library.functions.count(<void *>self.address, ENQUEUED), work, held))
        self._forget()
        return 0

    cdef void _begin_times(self, list pieces) noexcept:
        """Let times of the work that follows be kept, unless they are not asked for."""
        if pieces is not None:
            self.library.functions.time(<void *>self.address, True, 0)

    cdef int _end_times(self, list pieces, uint64_t first, int code) except -1:
        """Have the times read of pieces, of which the first has this number, unless they were refused."""
        if pieces is None:
            return 0
        self.library.functions.time(<void *>self.address, False, 0 if code else len(pieces))
        if code == 0:
            self.timed.extend(enumerate(pieces, first))
            self._n_timed += len(pieces)
        return 0

    cdef int _forget(self) except -1:
        """Let go of the memory of work that is done."""
        cdef uint64_t done
        if self.log is None:
            return 0
        done = self.library.functions.count(<void *>self.address, DONE_WORK)
        while self.log and <uint64_t>self.log[0][1] <= done:
            self.log.popleft()
        return 0

    # -- copies

    cdef int _move(self, CopyWay way, uint64_t target, uint64_t source, size_t nbytes, void *peer) noexcept:
        cdef void *stream = <void *>self.address
        cdef int code = self.library.enter()
        if code:
            return code
        if way == TO_DEVICE:
            code = self.library.functions.to_device(target, <const void *>source, nbytes, stream)
        elif way == TO_HOST:
            code = self.library.functions.to_host(<void *>target, source, nbytes, stream)
        elif way == FROM_PEER:
            code = self.library.functions.from_peer(
                target, self.library.functions.context, source, peer, nbytes, stream
            )
        else:
            code = self.library.functions.copy(target, source, nbytes, stream)
        self.library.leave()
        return code

    cdef int _enqueue_copy(
        self, CopyWay way, uint64_t target, uint64_t source, int64_t nbytes, list held, void *peer=NULL
    ) except -1:
        cdef uint64_t first
        cdef list pieces
        cdef int code
        timeline = DEVICE_TIMELINE.get()
        if self.address == 0:
            raise self.driver.lost()
        if self._is_recorded:
            pieces = None if timeline is None else [self.driver.piece(timeline, _WAYS[way], nbytes)]
            first = self._hold(held)
            self._begin_times(pieces)
            code = self._move(way, target, source, nbytes, peer)
            self._end_times(pieces, first, code)
            self._note(first, None, held)
            self._check(None, code, -1)
        elif timeline is None:
            self._check(None, self._move(way, target, source, nbytes, peer), -1)
        else:
            with self.driver.timing(_WAYS[way], nbytes):
                code = self._move(way, target, source, nbytes, peer)
            self._check(None, code, -1)
        return 0

    cdef uint64_t _staged(self, int64_t nbytes) except? 0:
        """Return a block of pinned memory."""
        if self.address == 0:
            raise self.driver.lost()
        return self.pinned.take(nbytes)

    cdef int copy(self, DeviceMemory target, int64_t to, DeviceMemory source, int64_t start, int64_t nbytes) except -1:
        """Enqueue a copy on the device."""
        self._enqueue_copy(
            WITHIN, target.address + <uint64_t>to, source.address + <uint64_t>start, nbytes, [target, source]
        )
        self.counters.within += nbytes
        return 0

    cdef int copy_from_peer(
        self, DeviceMemory target, DeviceStream peer, DeviceMemory source, int64_t start, int64_t nbytes
    ) except -1:
        """Enqueue a copy from a device of the same kind, to the beginning of a block. It comes after all that is
        enqueued there now, and before what will be.
        """
        self._come_after(peer)
        self._enqueue_copy(
            FROM_PEER, target.address, source.address + <uint64_t>start, nbytes, [target, source],
            peer.library.functions.context,
        )
        self._sources = [*self._sources, *[x for x in (peer, *peer._sources) if x not in self._sources]]
        peer._come_after(self)
        self.counters.from_peers += nbytes
        return 0

    cdef int _come_after(self, DeviceStream other) except -1:
        """Let later work come after all that is enqueued on another stream now."""
        cdef int code
        if self.address == 0:
            raise self.driver.lost()
        other._check(None, other._mark(), -1)
        code = self.library.enter()
        if code == 0:
            code = self.library.functions.follow(<void *>self.address, other._order, 0)
            self.library.leave()
        return self._check(None, code, -1)

    cdef int _mark(self) except? -1:
        """Record the event of the order."""
        cdef int code
        if self.address == 0:
            raise self.driver.lost()
        code = self.library.enter()
        if code:
            return code
        if self._order == NULL:
            code = self.library.functions.make_event(&self._order, WITHOUT_TIMES)
        if code == 0:
            code = self.library.functions.record(self._order, <void *>self.address)
        self.library.leave()
        return code

    cdef int send(self, DeviceMemory target, int64_t offset, cnp.ndarray source, dtype) except -1:
        """Enqueue a copy of the elements of an array, in C order; it may be changed at once."""
        cdef int64_t nbytes = cnp.PyArray_SIZE(source) * <int64_t>dtype.itemsize
        cdef uint64_t staged
        cdef int code = 0
        if nbytes == 0:
            return 0
        staged = self._staged(nbytes)
        try:
            fill_pinned(staged, source, dtype)
            self._enqueue_copy(TO_DEVICE, target.address + <uint64_t>offset, staged, nbytes, [target])
        finally:  # an interrupt may come when the copy has been enqueued
            code = self.pinned.send(staged, nbytes, <void *>self.address)
        self._check(None, code, -1)
        self.counters.to_device += nbytes
        return 0

    cdef object receive(self, DeviceArrayBase x):
        """Enqueue a copy of an array; return one of the host, in C order, which is filled when the device has been
        waited for.
        """
        cdef cnp.npy_intp lengths[MOST_AXES_OF_NUMPY]
        cdef cnp.npy_intp steps[MOST_AXES_OF_NUMPY]
        cdef Py_ssize_t axis, ndim = len(x.shape)
        cdef int64_t low, nbytes, span = span_of(x, &low, &nbytes), dense = x.dtype.itemsize
        cdef bint is_dense = True
        cdef uint64_t staged
        if ndim > MOST_AXES_OF_NUMPY:
            raise ValueError(f"an array of {ndim} axes cannot be one of NumPy's")
        for axis in range(ndim - 1, -1, -1):
            lengths[axis], steps[axis] = x.shape[axis], x.strides[axis]
            is_dense &= lengths[axis] == 1 or steps[axis] == dense
            dense *= lengths[axis]
        found = array_at(NULL, x.dtype, ndim, lengths, NULL)
        if nbytes == 0:
            return found
        staged = self._staged(span)
        try:
            self._enqueue_copy(TO_HOST, staged, x.address + <uint64_t>low, span, [x.memory])
            lies = None if is_dense else array_at(<char *>staged - low, x.dtype, ndim, lengths, steps)
        except BaseException:
            self.pinned.send(staged, span, <void *>self.address)
            raise
        self._arrivals.append((found, lies, staged, span))
        self._arriving += 1
        self.counters.to_host += span
        return found

    cdef int _fill(self, int64_t upto) except -1:
        """Fill the arrays up to this number, which have come; return when all are filled, by this thread or another
        one.
        """
        cdef uint64_t staged
        cdef int64_t nbytes
        if self._filled >= upto:
            return 0
        with self._filling:
            while self._filled < upto:
                found, lies, staged, nbytes = self._arrivals[0]
                if lies is None:
                    move_bytes(cnp.PyArray_DATA(<cnp.ndarray>found), <void *>staged, nbytes)
                else:
                    cnp.PyArray_CopyInto(<cnp.ndarray>found, <cnp.ndarray>lies)
                self._arrivals.popleft()
                self._filled += 1
                self.pinned.give(staged, nbytes)
        return 0

    cdef int _wait(self) noexcept nogil:
        cdef int code = self.library.enter()
        if code == 0:
            code = self.library.functions.wait(<void *>self.address)
            self.library.leave()
        return code

    # -- for the drivers

    def to_device(self, DeviceMemory target, int64_t offset, cnp.ndarray source):
        """Enqueue a copy of an array, in C order, to a block; the array may be changed at once."""
        dtype = source.dtype
        with cython.critical_section(machine_lock):
            self.send(target, offset, source, dtype)

    def within(self, DeviceMemory target, int64_t to, DeviceMemory source, int64_t start, int64_t nbytes):
        """Enqueue a copy on the device, of bytes that do not overlap."""
        with cython.critical_section(machine_lock):
            self.copy(target, to, source, start, nbytes)

    def wait(self):
        """Wait until all work is done; raise the error of the first that failed."""
        with cython.critical_section(machine_lock):
            self.join()

    cdef int join(self) except -1:
        """Wait until all work is done, fill the arrays that it is copied to, and raise the error of the first that
        failed, here or on a device that arrays were copied from.
        """
        cdef int64_t arriving = self._arriving, sent = self.pinned.sent
        cdef list sources = self._sources
        cdef DeviceStream source
        cdef int code
        problem = None
        if self.address == 0:
            raise self.driver.lost()
        if self._is_recorded:
            times = self._n_timed if self.timed else None
        else:
            times = self.driver.times_enqueued() if self.has_times else None
        self.counters.waits += 1
        if self._is_recorded:
            code = self._wait()
        else:
            with nogil:
                code = self._wait()
        if code:
            problem = self.driver.failure(code)
        self.pinned.take_back(sent)
        self._fill(arriving)
        self._forget()
        if times is not None:
            self.driver.collect_times(times)
        if problem is not None:
            raise problem
        if sources and self._sources is sources:
            self._sources = []
        for source in [*sources, self]:
            if source.fault and (<int64_t *>source.fault)[0]:
                raise source.driver.fault()
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


