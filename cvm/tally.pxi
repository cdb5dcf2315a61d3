# Counts of profiles (plan/counts.h), told in the terms of symcomp/vm/tally.py.

cdef extern from "plan/counts.h":
    enum:
        UNTIMED
        TIMED_WHOLE
        TIMED_CALLS
        TIMED_LONG
        WHOLE_RUN

    ctypedef struct Sampler:
        int64_t seen, timed
        double whole

    ctypedef struct Times:
        int64_t n, nanoseconds

    ctypedef struct TimedEvent:
        int64_t start, duration, position
        unsigned long thread

    ctypedef struct EventLog:
        TimedEvent *entries
        int64_t capacity, n

    ctypedef struct SeenShapes:
        SeenShapes *next
        int n_inputs, n_outputs
        int *ndims
        int64_t *lengths
        Times times

    ctypedef struct Counts:
        Sampler sampler
        EventLog log
        int64_t runs, in_python_runs, planned_in_python
        int64_t *planned
        int64_t *planned_python
        SeenShapes **seen

    ctypedef struct SegmentTimes:
        Times *times

    double LONG_CALL
    int64_t clock_latency
    int64_t nanoseconds() noexcept
    int next_run(Sampler *) noexcept
    void was_timed(Sampler *, int, double, double) noexcept
    void add_time(Times *, double) noexcept
    double mean_time(const Times *) noexcept
    void log_event(EventLog *, int64_t, int64_t, int64_t, unsigned long) noexcept
    void measure_clock() noexcept
    void operands_at(const Segment *, int, Operand **, const Operand **) noexcept


cdef list events_of(EventLog *log):
    """Return the events that are kept, the oldest first."""
    cdef int64_t i
    cdef TimedEvent *e
    cdef list found = []
    for i in range(max(0, log.n - log.capacity), log.n):
        e = &log.entries[i % log.capacity]
        found.append(Event(e.start, e.duration, e.position, e.thread))
    return found


cdef tuple shape_of_operand(const Operand *x):
    if x == NULL or x.type < 0:
        return None
    return tuple([x.shape[axis] for axis in range(x.ndim)])


cdef str kind_of(Lowered how):
    """Return the kind of the calls of an instruction."""
    return (<bytes>how.in_python.name).decode() if how.in_python.is_in_c else how.name


@cython.final
@cython.auto_pickle(False)
cdef class NativeTally:
    """The counts of one program that a native machine runs; has the properties and methods of
    ``symcomp.vm.tally.Tally``.
    """

    cdef readonly NativeMachine machine

    def __cinit__(self, NativeMachine machine):
        self.machine = machine

    @property
    def program(self):
        """The program."""
        return self.machine.program

    @property
    def inner(self):
        """(position, number) -> (machine, its tally), of the graphs within instructions that ran."""
        found = {}
        for position, how in enumerate(self.machine.lowered):
            machines = [] if how is None or how.body is None else [how.body]
            machines += [
                body.__dict__["machine"]
                for body in self.machine.program.instructions[position].bodies
                if "machine" in body.__dict__
            ]
            for k, machine in enumerate(machines):
                if machine.tally is not None:
                    found[position, k] = (machine, machine.tally)
        return {key: pair for key, pair in found.items() if pair[1].runs}

    @property
    def kinds(self):
        """For each instruction the kind of call that it is; None: the machine's own."""
        return tuple([None if how is None else kind_of(how) for how in self.machine.lowered])

    @property
    def kernels(self):
        """For each instruction where its kernel is, or None."""
        return tuple([
            how if how is not None and how.name == "kernel" else None
            for how in self.machine.lowered
        ])

    @property
    def straight(self):
        """The positions of instructions that straight code does, in plans that are kept."""
        cdef int i
        cdef set found = set()
        with cython.critical_section(machine_lock):
            for i in range(self.machine.tree.n_roots):
                add_straight_positions(self.machine.tree.roots[i], found)
        return found

    @property
    def runs(self):
        """How often the program ran."""
        cdef Counts *counts = self.machine.tree.counts
        # The first instruction is in every run.
        return counts.runs + counts.planned[0]

    @property
    def timed_runs(self):
        """The number of runs whose calls were timed."""
        return max([c.timed for c in self.counted()], default=0)

    @property
    def without_python(self):
        """The number of runs without calls of Python; some of them may have made plans."""
        cdef Counts *counts = self.machine.tree.counts
        return self.runs - counts.in_python_runs - counts.planned_in_python

    def counted(self):
        """Return the counts of each instruction that ran."""
        cdef Counts *counts = self.machine.tree.counts
        cdef int i, n = self.machine.code.n_instructions
        cdef list runs, python, variants
        with cython.critical_section(machine_lock):
            runs = [counts.planned[i] for i in range(n)]
            python = [counts.planned_python[i] for i in range(n)]
            variants = [seen_variants(counts.seen[i]) for i in range(n)]
            for i in range(self.machine.tree.n_roots):
                add_segment(self.machine.tree.roots[i], &self.machine.code, runs, python, variants)
            add_chain(self.machine.tree.retired, &self.machine.code, runs, python, variants)
            add_chain(self.machine.tree.expiring, &self.machine.code, runs, python, variants)
        return [
            Counted(i, runs[i], python[i], merged(variants[i])) for i in range(n) if runs[i]
        ]

    def events(self):
        """Return the last instructions that were timed, in the order in which they ended."""
        with cython.critical_section(machine_lock):
            return events_of(&self.machine.tree.counts.log)


cdef list seen_variants(SeenShapes *s):
    """Return the variants of an instruction in runs that were not kept, the first one first."""
    cdef list found = [], shapes
    cdef int i, axis, at
    while s != NULL:
        shapes, at = [], 0
        for i in range(s.n_inputs + s.n_outputs):
            if s.ndims[i] < 0:
                shapes.append(None)
                continue
            shapes.append(tuple([s.lengths[at + axis] for axis in range(s.ndims[i])]))
            at += s.ndims[i]
        found.append(Variant(
            tuple(shapes[: s.n_inputs]), tuple(shapes[s.n_inputs :]), s.times.n,
            s.times.nanoseconds * 1e-9, mean_time(&s.times) * 1e-9,
        ))
        s = s.next
    return found[::-1]


cdef tuple shapes_at(Segment *s, int mark, Operand **of_slot, const Instruction *instruction):
    """Return the shapes of the operands of the instruction at a mark."""
    cdef int i, n = instruction.n_inputs + instruction.n_outputs
    cdef const Operand **operands = <const Operand **>PyMem_Calloc(max(n, 1), sizeof(Operand *))
    if operands == NULL:
        raise MemoryError()
    try:
        operands_at(s, mark, of_slot, operands)
        return tuple([shape_of_operand(operands[i]) for i in range(n)])
    finally:
        PyMem_Free(operands)


cdef int add_segment(Segment *s, Code *code, list runs, list python, list variants) except -1:
    """Add the counts of a segment and of the segments that follow its guards."""
    cdef int i, position, last = -1
    cdef Instruction *instruction
    cdef Operand **of_slot = <Operand **>PyMem_Calloc(max(code.n_slots, 1), sizeof(Operand *))
    cdef int at = 0
    if of_slot == NULL:
        raise MemoryError()
    in_python = {s.calls[i].position for i in range(s.n_calls) if s.calls[i].is_python and not s.calls[i].is_in_c}
    try:
        for i in range(s.n_marks):
            position = s.marks[i].position
            if position == last:
                continue
            last = position
            runs[position] += s.runs
            if position in in_python:
                python[position] += s.runs
            while at < s.marks[i].n_bindings:
                of_slot[s.bindings[at].slot] = s.bindings[at].operand
                at += 1
            if s.times == NULL or i < s.first_own_mark or s.times.times[i].n == 0:
                continue
            instruction = &code.instructions[position]
            shapes = shapes_at(s, i, of_slot, instruction)
            variants[position].append(Variant(
                shapes[: instruction.n_inputs], shapes[instruction.n_inputs :], s.times.times[i].n,
                s.times.times[i].nanoseconds * 1e-9, mean_time(&s.times.times[i]) * 1e-9,
            ))
    finally:
        PyMem_Free(of_slot)
    for i in range(s.n_exits):
        add_segment(s.exits[i], code, runs, python, variants)
    return 0


cdef int add_chain(Segment *s, Code *code, list runs, list python, list variants) except -1:
    """Add the counts of segments that are forgotten, and not yet freed."""
    while s != NULL:
        add_segment(s, code, runs, python, variants)
        s = s.next_retired
    return 0


@cython.final
@cython.auto_pickle(False)
cdef class Calls:
    """How often a function was called, and how long that took, arguments and updates included."""

    cdef Sampler sampler
    cdef EventLog log
    cdef int64_t _nanoseconds, _overhead, _timed
    cdef Times _times[3]

    def __cinit__(self):
        measure_clock()

    def __dealloc__(self):
        c_free(self.log.entries)

    cdef int next(self) noexcept:
        """Return how the call that begins is timed."""
        cdef int kind = next_run(&self.sampler)
        if kind == UNTIMED and self.sampler.whole > LONG_CALL:
            return TIMED_LONG
        return kind

    cdef int add(self, int kind, int64_t began, int64_t overhead) except -1:
        """Take in a timed call, in which timing took ``overhead``."""
        cdef int64_t duration = max(0, nanoseconds() - began - clock_latency)
        if kind == TIMED_LONG:
            kind = TIMED_WHOLE
        else:
            was_timed(&self.sampler, kind, duration, overhead)
        self._timed += 1
        self._nanoseconds += max(0, duration - overhead)
        self._overhead += overhead
        add_time(&self._times[kind], max(0, duration - overhead))
        log_event(&self.log, began, duration, WHOLE_RUN, PyThread_get_thread_ident())
        return 0

    @property
    def count(self):
        """How many calls there were."""
        return self.sampler.seen

    @property
    def timed(self):
        """The number of calls whose instructions were timed."""
        return self._times[TIMED_CALLS].n

    @property
    def seconds(self):
        """The time of all runs, if untimed ones took as long as the others."""
        cdef int kind = TIMED_CALLS
        # Where timing the instructions disturbs them, calls timed as a whole say it better.
        if self._times[TIMED_WHOLE].n > 1 and self._overhead > 0.02 * self._nanoseconds:
            kind = TIMED_WHOLE
        others = self.sampler.seen - self._timed
        return (self._nanoseconds + others * mean_time(&self._times[kind])) * 1e-9

    def events(self):
        """Return the last calls that were timed."""
        with cython.critical_section(machine_lock):
            return events_of(&self.log)
