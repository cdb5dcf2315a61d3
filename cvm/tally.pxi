# What profiles count, in C (see symcomp/vm/tally.py, the specification): how often each instruction
# ran, how often that was Python's work, and, in the runs that are timed, how long it took on values
# of which shapes. Nothing here runs unless a profile was asked for.

from posix.time cimport CLOCK_MONOTONIC, clock_gettime, timespec

cdef extern from *:
    """
    /* How often this thread went from the machine into Python. */
    __attribute__((tls_model("initial-exec")))
    static _Thread_local int64_t symcomp_python_entries = 0;
    static int64_t *symcomp_entries(void) { return &symcomp_python_entries; }
    """
    int64_t *symcomp_entries() nogil

# As in symcomp/vm/tally.py. The first times of each instruction are timed, too, in any run.
cdef enum:
    ALWAYS_TIMED = 16
    INSTRUCTION_TIMED = 4
    MOST_VARIANTS = 8
    MOST_EVENTS = 1 << 16
    WHOLE_RUN = -1

# What is timed of a run: nothing; the run as a whole; its instructions; of a call that is long
# enough, the whole, although it is not its turn.
cdef enum:
    UNTIMED = 0
    WHOLE = 1
    FULL = 2
    LONG = 3

# Nanoseconds.
cdef double LONG_CALL = 50000

cdef int64_t CONTAINS_PROGRAMS = <int64_t>1 << 62
cdef double BUDGET = 0.003
# FNV-1a's; any number.
cdef uint64_t FACTOR = <uint64_t>0x100000001B3
cdef uint64_t VALUE_MARK = <uint64_t>0x1E3779B97F4A7C15


cdef inline int64_t nanoseconds() noexcept nogil:
    cdef timespec now
    clock_gettime(CLOCK_MONOTONIC, &now)
    return <int64_t>now.tv_sec * 1000000000 + now.tv_nsec


cdef int64_t reading_takes():
    """How long reading the clock takes."""
    cdef int64_t before, after, least = 1000000
    cdef int i
    for i in range(200):
        before = nanoseconds()
        after = nanoseconds()
        least = min(least, after - before)
    return least


# Of each time that is measured, so much is the clock's.
cdef int64_t clock_latency = reading_takes()


cdef inline double smoothed(double mean, double new) noexcept nogil:
    """What is usual of late; one run that was interrupted changes it little."""
    if mean == 0:
        return new
    return mean + (0.5 if new < mean else 0.125) * (min(new, 2 * mean) - mean)


cdef struct Sampler:
    # Which runs are timed.
    int64_t seen
    int64_t timed
    int64_t skip
    bint costly         # whether timing the instructions of each run would cost too much
    double whole        # what runs take of late, where the run as a whole is timed,
    double full         # and where its instructions are
    double overhead     # what of that timing took at least
    uint64_t random


cdef inline int next_run(Sampler *sampler) noexcept nogil:
    """What is timed of the run that begins."""
    sampler.seen += 1
    if sampler.skip > 0:
        sampler.skip -= 1
        return UNTIMED
    if sampler.timed < ALWAYS_TIMED or sampler.timed % (2 if sampler.costly else 16):
        return FULL
    return WHOLE


cdef struct Steady:
    # What runs take that are not timed: the mean of those that are, without the first one, and
    # without what the processor did in between for others.
    int64_t n
    double total
    double usual


cdef inline void temper(Steady *steady, double duration) noexcept nogil:
    """Add a time, at most ten times the usual one."""
    steady.usual = smoothed(steady.usual, duration)
    steady.total += min(duration, 10 * steady.usual)


cdef inline void steady_run(Steady *steady, double duration) noexcept nogil:
    """Take in a timed run."""
    if steady.n == 1:
        steady.usual = min(steady.usual, duration)
        steady.total = 0        # that was the first
    temper(steady, duration)
    steady.n += 1


cdef inline double steady_mean(Steady *steady) noexcept nogil:
    """Nanoseconds."""
    return steady.total / max(steady.n - (steady.n > 1), 1)


cdef void was_timed(
    Sampler *sampler, int kind, double duration, double overhead
) noexcept nogil:
    """Take in a timed run, and what is known of what timing took; say when the next one is."""
    cdef double cost, fraction, mean
    sampler.timed += 1
    if kind == WHOLE:
        sampler.whole = smoothed(sampler.whole, duration)
    else:
        sampler.full = smoothed(sampler.full, duration)
        sampler.overhead = smoothed(sampler.overhead, overhead)
    if sampler.whole == 0:
        return
    # What is timed is slower, too; but not by everything that makes a run slower than another.
    cost = min(sampler.full - sampler.whole, 4 * sampler.overhead)
    mean = cost / (BUDGET * sampler.whole)
    sampler.costly = mean > 1
    if sampler.costly:
        # Marsaglia's xorshift. Not every n-th run: the runs of a program may take turns.
        if sampler.random == 0:
            sampler.random = <uint64_t>88172645463325252
        sampler.random ^= sampler.random << 13
        sampler.random ^= sampler.random >> 7
        sampler.random ^= sampler.random << 17
        fraction = <double>(sampler.random >> 11) / 9007199254740992.0
        sampler.skip = <int64_t>(mean * (0.5 + fraction))


cdef struct Counter:
    int n_variants
    int last                                    # the variant that was seen last
    uint64_t keys[MOST_VARIANTS]                # of the shapes of the inputs
    uint64_t all_keys[MOST_VARIANTS]            # and of the outputs
    int64_t timed[MOST_VARIANTS]
    int64_t nanoseconds[MOST_VARIANTS]
    Steady steady[MOST_VARIANTS]


cdef struct Happening:
    int64_t start
    int64_t duration
    int64_t position
    unsigned long thread


cdef class Log:
    """The last happenings; owns their memory, which grows up to a limit."""

    cdef Happening *_entries
    cdef int64_t _capacity, _n

    def __dealloc__(self):
        PyMem_Free(self._entries)

    cdef int add(self, int64_t start, int64_t duration, int64_t position) except -1:
        cdef Happening *larger
        cdef Happening *entry
        if self._n == self._capacity and self._capacity < MOST_EVENTS:
            larger = <Happening *>PyMem_Realloc(
                self._entries, max(64, 2 * self._capacity) * sizeof(Happening)
            )
            if larger == NULL:
                raise MemoryError()
            self._entries, self._capacity = larger, max(64, 2 * self._capacity)
        entry = &self._entries[self._n % self._capacity]
        entry.start, entry.duration, entry.position = start, duration, position
        entry.thread = PyThread_get_thread_ident()
        self._n += 1
        return 0

    cdef list events(self):
        """What is kept, the oldest first."""
        cdef int64_t i, at
        cdef list found = []
        for i in range(max(0, self._n - self._capacity), self._n):
            at = i % self._capacity
            found.append(Event(
                self._entries[at].start, self._entries[at].duration,
                self._entries[at].position, self._entries[at].thread,
            ))
        return found


cdef uint64_t key_of(uint64_t key, PyObject **store, int *slots, int n) noexcept:
    """A number that is another one for other shapes of the values of slots."""
    cdef int i, axis
    cdef cnp.ndarray array
    for i in range(n):
        key = (key ^ VALUE_MARK) * FACTOR
        if store[slots[i]] != NULL and cnp.PyArray_Check(<object>store[slots[i]]):
            array = <cnp.ndarray>store[slots[i]]
            for axis in range(cnp.PyArray_NDIM(array)):
                key = (key ^ (<uint64_t>cnp.PyArray_DIM(array, axis) + 1)) * FACTOR
                key ^= key >> 29
    return key


cdef tuple shapes_in(PyObject **store, int *slots, int n):
    """The shapes of the values of slots; None for what is no array."""
    cdef int i
    return tuple([
        (<object>store[slots[i]]).shape
        if store[slots[i]] != NULL and cnp.PyArray_Check(<object>store[slots[i]]) else None
        for i in range(n)
    ])


cdef class Tally


@cython.final
@cython.freelist(8)
cdef class Clock:
    """Times the instructions of one run."""

    cdef int64_t overhead       # nanoseconds that timing took
    cdef int64_t _start, _last
    cdef uint64_t _key
    cdef tuple _inputs          # shapes, where they are new

    cdef void restart(self) noexcept:
        """What comes next belongs to the timing until an instruction begins."""
        self._last = nanoseconds()

    cdef int before(self, Tally tally, int position, PyObject **store, Step *step) except -1:
        cdef Counter *counter = &tally.counters[position]
        cdef int k
        self._key = key_of(0, store, step.inputs, step.n_inputs)
        self._inputs = None
        for k in range(counter.n_variants):
            if counter.keys[k] == self._key:
                break
        else:
            self._inputs = shapes_in(store, step.inputs, step.n_inputs)
        self._start = nanoseconds()
        self.overhead += self._start - self._last
        return 0

    cdef int after(self, Tally tally, int position, PyObject **store, Step *step) except -1:
        cdef int64_t now = nanoseconds()
        cdef int64_t duration = max(0, now - self._start - clock_latency)
        cdef Counter *counter = &tally.counters[position]
        cdef int *outputs = step.inputs + step.n_inputs
        cdef uint64_t key = key_of(self._key, store, outputs, step.n_outputs)
        cdef int k = counter.last
        self._last = now
        self.overhead += clock_latency
        if k >= counter.n_variants or counter.all_keys[k] != key:
            k = tally.variant(position, self._key, key)
            if k < 0:
                k = tally.new_variant(
                    position, self._key, key, self._inputs,
                    shapes_in(store, outputs, step.n_outputs),
                )
            counter.last = k
        counter.timed[k] += 1
        counter.nanoseconds[k] += duration
        steady_run(&counter.steady[k], duration)
        return tally.log.add(self._start, duration, position)


@cython.final
@cython.auto_pickle(False)
cdef class Tally:
    """The counts of one program that the native machine runs; has the properties and methods of
    ``symcomp.vm.tally.Tally`` that are used afterwards.

    Parameters
    ----------
    program : Program
    kinds : tuple of str
        For each instruction, what does it.
    kernels : tuple of KernelCall or None
        For each instruction, where its kernel is.
    """

    cdef readonly object program
    cdef readonly dict inner
    cdef readonly tuple kinds, kernels
    cdef readonly int64_t unattended    # steps of a loop that were done without Python
    cdef dict frames            # of the instructions that contain programs
    cdef int64_t *counts
    cdef int64_t *in_python     # how often that was Python's work
    cdef int64_t *watched       # up to which count more than counting is done: always, if the
                                # instruction contains programs
    cdef int64_t *went          # whether it was in the last run
    cdef int64_t entries        # how often the last run went into Python
    cdef int64_t repeats        # runs that did what the last one did that was counted one by one
    cdef bint may_be_plain      # whether all instructions run in every run
    cdef bint plain             # whether runs repeat the last one
    cdef Counter *counters
    cdef Sampler sampler
    cdef Log log
    cdef list _shapes           # for each instruction and variant, of inputs and outputs
    cdef int _n

    def __cinit__(self, program, kinds, kernels):
        cdef int i
        self.program, self.kinds, self.kernels = program, kinds, kernels
        self.inner = {}
        self.log = Log()
        self._n = len(program.instructions)
        self._shapes = [[] for _ in range(self._n)]
        self.counters = <Counter *>PyMem_Calloc(max(self._n, 1), sizeof(Counter))
        self.counts = <int64_t *>PyMem_Calloc(4 * max(self._n, 1), sizeof(int64_t))
        if self.counters == NULL or self.counts == NULL:
            raise MemoryError()
        self.in_python, self.watched = self.counts + self._n, self.counts + 2 * self._n
        self.went = self.counts + 3 * self._n
        self.may_be_plain = all([step.target < 0 for step in program.instructions])
        self.frames = frames_of(self)
        self.may_be_plain = self.may_be_plain and not self.frames
        for i in range(self._n):
            self.watched[i] = CONTAINS_PROGRAMS if i in self.frames else INSTRUCTION_TIMED

    def __dealloc__(self):
        PyMem_Free(self.counters)
        PyMem_Free(self.counts)

    cdef void flush(self) noexcept:
        """Add the repeats to what was counted one by one."""
        cdef int i
        if self.repeats:
            for i in range(self._n):
                self.counts[i] += self.repeats
                self.in_python[i] += self.repeats * self.went[i]
            self.repeats = 0

    cdef void ended_at(self, int position) noexcept:
        """A run that was counted as a repeat failed at an instruction."""
        cdef int i
        self.repeats -= 1
        for i in range(position + 1):
            self.counts[i] += 1

    cdef void settle(self, int64_t entries) noexcept:
        """A run was counted one by one, which went into Python so often."""
        if self.entries != entries:
            self.may_be_plain = self.may_be_plain and not self.plain
            self.plain = False
        else:
            self.plain = self.may_be_plain and self._n > 0 and self.counts[0] > ALWAYS_TIMED
        self.entries = entries

    cdef bint repeats_natively(self) noexcept:
        """Whether runs repeat the last one, and that without Python."""
        return self.plain and self.entries == 0

    cdef int recognise(self, int position, PyObject **store, Step *step) except -1:
        """Note the shapes of an instruction that was not timed, and whose values are all there."""
        cdef uint64_t key = key_of(0, store, step.inputs, step.n_inputs)
        cdef int *outputs = step.inputs + step.n_inputs
        cdef uint64_t all_keys = key_of(key, store, outputs, step.n_outputs)
        cdef int k = self.variant(position, key, all_keys)
        if k < 0:
            inputs = shapes_in(store, step.inputs, step.n_inputs)
            results = shapes_in(store, outputs, step.n_outputs)
            k = self.new_variant(position, key, all_keys, inputs, results)
        self.counters[position].last = k
        return 0

    cdef void add_steps(self, int64_t n, Steady *steady, bint *visited) noexcept:
        """Take in steps of a loop that were done without Python, on values of the shapes that were
        seen last; clear them. ``visited`` tells the instructions that they do.
        """
        cdef int i, k
        cdef Counter *counter
        self.unattended += n
        for i in range(self._n):
            counter = &self.counters[i]
            if not visited[i]:
                continue
            self.counts[i] += n
            k = counter.last
            counter.timed[k] += steady[i].n
            counter.nanoseconds[k] += <int64_t>steady[i].total
            counter.steady[k].n += steady[i].n
            counter.steady[k].total += steady[i].total
            steady[i].n, steady[i].total = 0, 0

    cdef int variant(self, int position, uint64_t inputs, uint64_t key) noexcept:
        """The number of the shapes; -1 if they are new."""
        cdef Counter *counter = &self.counters[position]
        cdef int k
        for k in range(counter.n_variants):
            if counter.keys[k] == inputs and counter.all_keys[k] == key:
                return k
        return -1

    cdef int new_variant(
        self, int position, uint64_t key, uint64_t all_keys, tuple inputs, tuple outputs
    ) except -1:
        """A number for shapes; the last one stands for all that there is no other for."""
        cdef Counter *counter = &self.counters[position]
        cdef list known = self._shapes[position]
        cdef int k = counter.n_variants
        if k == MOST_VARIANTS:
            return k - 1
        if inputs is None:
            # Other shapes of outputs from inputs that were seen before.
            for i in range(k):
                if counter.keys[i] == key:
                    inputs = known[i][0]
                    break
        known.append((None, None) if k == MOST_VARIANTS - 1 else (inputs, outputs))
        counter.keys[k], counter.all_keys[k] = key, all_keys
        counter.n_variants += 1
        return k

    # -- afterwards

    @property
    def runs(self):
        """How often the program was run."""
        return self.sampler.seen

    @property
    def timed_runs(self):
        """How many of the runs were timed."""
        return self.sampler.timed

    def counted(self):
        """What is known of each instruction that ran."""
        cdef int i, k
        cdef Counter *counter
        self.flush()
        found = []
        for i in range(self._n):
            counter = &self.counters[i]
            if self.counts[i]:
                variants = [
                    Variant(
                        *self._shapes[i][k], counter.timed[k], counter.nanoseconds[k] * 1e-9,
                        steady_mean(&counter.steady[k]) * 1e-9,
                    )
                    for k in range(counter.n_variants)
                ]
                found.append(Counted(i, self.counts[i], self.in_python[i], tuple(variants)))
        return found

    def events(self):
        """The last instructions that were timed, in the order in which they ended."""
        return self.log.events()


@cython.final
@cython.auto_pickle(False)
cdef class Calls:
    """How often a function was called, and how long that took, arguments and updates included."""

    cdef Sampler sampler
    cdef Log log
    cdef int64_t _nanoseconds, _overhead, _timed
    cdef Steady _steady[FULL + 1]

    def __cinit__(self):
        self.log = Log()

    cdef int add(self, int kind, int64_t began, int64_t overhead) except -1:
        """Take in a timed call, in which timing took ``overhead``."""
        cdef int64_t duration = max(0, nanoseconds() - began - clock_latency)
        if kind == LONG:
            kind = WHOLE
        else:
            was_timed(&self.sampler, kind, duration, overhead)
        self._timed += 1
        self._nanoseconds += max(0, duration - overhead)
        self._overhead += overhead
        steady_run(&self._steady[kind], max(0, duration - overhead))
        return self.log.add(began, duration, WHOLE_RUN)

    @property
    def count(self):
        """How many calls there were."""
        return self.sampler.seen

    @property
    def timed(self):
        """Of how many the instructions were timed."""
        return self._steady[FULL].n

    @property
    def seconds(self):
        """What all took, if those that were not timed took as long as the others."""
        cdef int kind = FULL
        # Where timing the instructions disturbs them, calls timed as a whole say it better.
        if self._steady[WHOLE].n > 1 and self._overhead > 0.02 * self._nanoseconds:
            kind = WHOLE
        others = self.sampler.seen - self._timed
        return (self._nanoseconds + others * steady_mean(&self._steady[kind])) * 1e-9

    def events(self):
        """The last calls that were timed."""
        return self.log.events()
