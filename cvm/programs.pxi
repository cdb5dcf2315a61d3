# Programs as C, and the machine that runs one.

cdef extern from "plan/machine.h":
    void (*add_blame)(PyObject *, int, PyObject *)

cdef extern from *:
    """
    /* Set an exception that was caught, to be raised in the caller. */
    static void symcomp_set_raised(PyObject *problem)
    {
        Py_INCREF(problem);
        PyErr_Restore(Py_NewRef((PyObject *)Py_TYPE(problem)), problem,
                      PyException_GetTraceback(problem));
    }
    """


cdef int set_raised(problem) except *:
    PyErr_SetRaisedException_compat(problem)
    return 0


cdef int *numbers(values) except NULL:
    """Return a C array of int; to be freed."""
    cdef int i, n = len(values)
    cdef int *found = <int *>PyMem_Malloc(max(n, 1) * sizeof(int))
    if found == NULL:
        raise MemoryError()
    for i in range(n):
        found[i] = values[i]
    return found


def slots_with_arrays(program, lowered, keep):
    """Return for each slot whether its memory is an array of NumPy, and which kind.

    The memory of outputs and of values that Python reads must be arrays, unless these are views of
    parts of other arrays. Values written over others, and equal arrays, share their memory.
    """
    kinds = bytearray(len(program.variables) + 1)
    if keep:
        return bytes([RESULT] * len(kinds))
    wanted = {slot: RESULT for slot in program.outputs}
    for instruction, how in zip(reversed(program.instructions), reversed(lowered), strict=True):
        if how is not None and how.name == "python":
            for slot in instruction.inputs:
                wanted.setdefault(slot, ARRAY)
        passed_on = list(zip(instruction.outputs, instruction.into, strict=False))
        if instruction.opcode is Opcode.MOVE:
            passed_on = list(zip(instruction.outputs, instruction.inputs, strict=True))
        elif instruction.node is not None and how is not None and is_whole_view(instruction, how):
            passed_on += [
                (instruction.outputs[j], instruction.inputs[ins[0]])
                for j, ins in instruction.node.op.view_map.items()
            ]
        elif how is not None and (how.name == "put together" or (
            instruction.opcode is Opcode.COPY
            and not isinstance(getattr(program.variables[instruction.outputs[0]], "type", None), TensorType)
        )):
            # A copy of a matrix takes over arrays that nothing else needs.
            passed_on += [(instruction.outputs[0], slot) for slot in instruction.inputs]
        for output, source in passed_on:
            if source >= 0 and output in wanted:
                wanted.setdefault(source, wanted[output])
    for slot, kind in wanted.items():
        kinds[slot] = kind
    return bytes(kinds)


# The native calls whose results are all of an input.
WHOLE_VIEWS = ("transpose", "reshape", "check")
# Parts that leave out at most this many rows at the beginning are nearly all of it.
FEW_ROWS = 8


cdef bint is_whole_view(instruction, how):
    """Tell whether an instruction returns a whole input, or all but its first rows."""
    if how.name in WHOLE_VIEWS:
        return True
    if how.name != "view":
        return False
    pattern = instruction.node.op.pattern
    return all([
        type(entry) is Slice and entry.stop is None and entry.step is None
        and (entry.start is None or type(entry.start) is int and 0 <= entry.start <= FEW_ROWS)
        for entry in pattern
    ])


cdef enum:
    # How much memory a program takes at once for what it tells of its instructions.
    MACHINE_BYTES = 2048


@cython.auto_pickle(False)
cdef class NativeMachine:
    """Runs a program natively. Has the interface of ``PythonMachine`` and gives the same results.

    Parameters
    ----------
    program : Program
    lowered : list of Lowered or None
        For each instruction that is a CALL or COPY, how it is planned.
    keep : bool
        Hold on to the values of the last call until ``free`` is called.
    nested : bool
        Whether it is the body of a loop, or another graph within an instruction of a program.
    most_segments : int
        The number of segments of plans that are kept at most.
    threads : int
        The number of threads that run independent calls side by side, at most.
    straight_after : int
        A segment gets straight code when it has made this many calls; 0: never.

    Attributes
    ----------
    failure : Failure or None
        The node and the inputs of the last call that failed.
    """

    cdef readonly object program
    cdef readonly list lowered
    cdef public object kept
    cdef public object failure
    cdef readonly object tally
    cdef Code code
    cdef Tree tree
    cdef list _memory
    cdef char *_free        # the rest of the latest piece of memory
    cdef size_t _n_free

    def __cinit__(
        self, program, list lowered, bint keep=False, bint nested=False,
        int most_segments=1, int threads=1, int64_t straight_after=0
    ):
        cdef int i
        cdef Instruction *made
        cdef Lowered how
        self.program, self.lowered = program, lowered
        self.kept = self.failure = self.tally = None
        self._memory = []
        constants = list(program.constants.values())
        kinds = slots_with_arrays(program, lowered, keep)
        self._memory.append(constants)
        self.code.owner, self.code.is_nested = <PyObject *>self, nested
        self.code.threads = min(threads, MOST_THREADS)
        self.code.straight_after = straight_after
        self.code.n_slots = len(program.variables)
        self.code.n_instructions = len(program.instructions)
        self.code.n_inputs, self.code.n_outputs = len(program.inputs), len(program.outputs)
        self.code.n_constants = len(constants)
        self.code.input_slots = self._ints(program.inputs)
        self.code.output_slots = self._ints(program.outputs)
        self.code.constant_slots = self._ints(program.constants)
        over = program.written_over
        self.code.written_over = self._ints([over.get(j, -1) for j in range(self.code.n_outputs)])
        self.code.constants = <PyObject **>self._new(len(constants) * sizeof(PyObject *))
        for i in range(len(constants)):
            self.code.constants[i] = <PyObject *>constants[i]
        self.code.makes_array = <char *>self._new(len(kinds))
        memcpy(self.code.makes_array, <const char *><bytes>kinds, len(kinds))
        self.code.instructions = <Instruction *>self._new(
            self.code.n_instructions * sizeof(Instruction)
        )
        for i, instruction in enumerate(program.instructions):
            made = &self.code.instructions[i]
            made.opcode, made.target = int(instruction.opcode), instruction.target
            made.n_inputs, made.inputs = len(instruction.inputs), self._ints(instruction.inputs)
            made.n_outputs = len(instruction.outputs)
            made.outputs = self._ints(instruction.outputs)
            made.n_frees, made.frees = len(instruction.frees), self._ints(instruction.frees)
            made.n_into, made.into = len(instruction.into), self._ints(instruction.into)
            how = lowered[i]
            if how is not None:
                made.lowered, made.plan, made.spec = <PyObject *>how, how.plan, how.spec
        self.tree.code = &self.code
        self.tree.most_segments = most_segments
        self.tree.keeps_all = keep
        reserve_for_plan(&self.tree)

    def __dealloc__(self):
        drop_segments(&self.tree)
        free_counts(self.tree.counts, &self.code)
        pool_free(&self.tree.reserved)

    cdef void *_new(self, size_t size) except NULL:
        """Return zeroed memory, most of it in one piece, as planning reads it together."""
        cdef char *found
        size = (size + 7) & ~<size_t>7
        if size > self._n_free:
            memory = bytearray(size + MACHINE_BYTES)
            self._memory.append(memory)
            self._free, self._n_free = PyByteArray_AsString(memory), size + MACHINE_BYTES
        found = self._free
        self._free += size
        self._n_free -= size
        return found

    cdef int *_ints(self, values) except NULL:
        cdef list given = list(values)
        cdef int *found = <int *>self._new(max(len(given), 1) * sizeof(int))
        cdef int i
        for i in range(len(given)):
            found[i] = given[i]
        return found

    def run(self, values):
        """Run the program on the values of its inputs; return those of its outputs."""
        cdef Runner runner
        cdef list held = list(values)
        cdef Given *given
        cdef Py_ssize_t i
        if self.code.is_nested:
            raise TypeError("a nested program is run by the one that it is in")
        if len(held) != self.code.n_inputs:
            raise ValueError(f"the program takes {self.code.n_inputs} values, got {len(held)}")
        given = <Given *>PyMem_Calloc(max(len(held), 1), sizeof(Given))
        if given == NULL:
            raise MemoryError()
        begin_runner(&runner)
        try:
            for i in range(len(held)):
                read_given(&given[i], <PyObject *>held[i], True)
            return self.execute(given, &runner)
        finally:
            end_runner(&runner)
            PyMem_Free(given)

    cdef list execute(self, Given *given, Runner *runner):
        """Run the program on inputs that the caller holds."""
        cdef int j, n = self.code.n_outputs
        cdef PyObject *few[32]
        cdef PyObject **results = few
        cdef list found
        if n > 32:
            results = <PyObject **>PyMem_Malloc(n * sizeof(PyObject *))
            if results == NULL:
                raise MemoryError()
        try:
            run_tree(&self.tree, given, runner, results)
            found = PyList_New(n)
            for j in range(n):
                PyList_SET_ITEM(found, j, <object>results[j])   # takes over the reference
            return found
        finally:
            if results != few:
                PyMem_Free(results)

    def new_tally(self):
        """Count the runs from now on, those of graphs within instructions too; return the counts."""
        if self.tally is None:
            self.tree.counts = new_counts(&self.code)
            if self.tree.counts == NULL:
                raise MemoryError()
            self.tally = NativeTally(self)
            for how in self.lowered:
                if how is not None and how.body is not None:
                    how.body.new_tally()
            for instruction in self.program.instructions:
                for body in instruction.bodies:
                    body.count()
        return self.tally

    def free(self):
        """Release memory kept for later calls: values, arenas, results to be recycled."""
        cdef int i
        self.kept = None
        with cython.critical_section(machine_lock):
            for i in range(self.tree.n_roots):
                drop_memory_of(self.tree.roots[i])

    def plan(self):
        """Return the segments of the plans that are kept, as text."""
        with cython.critical_section(machine_lock):
            return "\n\n".join(
                [segment_text(self.tree.roots[i], f"plan {i}") for i in range(self.tree.n_roots)]
            )

    def allocated(self, shapes):
        """Return how many bytes a run of the plan for inputs of these shapes allocates.

        None if no such plan is kept. Arrays that Python returns are not counted.
        """
        cdef int i, k
        cdef Segment *s
        with cython.critical_section(machine_lock):
            for i in range(self.tree.n_roots):
                s = self.tree.roots[i]
                if all([
                    shape is None or shape == tuple([s.layouts[k].shape[a] for a in range(s.layouts[k].ndim)])
                    for k, shape in enumerate(shapes)
                ]):
                    return allocated_bytes(s)
        return None

    @property
    def counts(self):
        """The number of runs, and of those in which something was planned."""
        return self.tree.clock, self.tree.planned

    @property
    def planning(self):
        """The number of runs, those of kept plans, and why the others planned (see Reason)."""
        return {
            "runs": self.tree.clock,
            "kept": self.tree.clock - self.tree.planned,
            "new_layouts": self.tree.reasons[NEW_LAYOUTS],
            "new_outcome": self.tree.reasons[NEW_OUTCOME],
            "call_declined": self.tree.reasons[CALL_DECLINED],
            "not_kept": self.tree.not_kept,
        }


cdef int keep_all_values(const Planner *p) except -1:
    """Keep the value of each slot after a run, copied where its memory is written to again."""
    cdef NativeMachine machine = <NativeMachine>p.code.owner
    cdef list values = [UNSET] * p.code.n_slots
    cdef int slot, is_lent
    for slot in range(p.code.n_slots):
        if p.of_slot[slot] != NULL:
            value = object_of(p.frame, p.of_slot[slot], &is_lent)
            values[slot] = array_copy(p.frame, p.of_slot[slot]) if is_lent else value
    machine.kept = values
    return 0


def make_all_sections(bint wanted):
    """Run independent calls side by side however short they are, in plans made from now on.

    Tests use it: short calls take longer so. Returns whether it was so before.
    """
    global makes_all_sections
    before = makes_all_sections
    makes_all_sections = wanted
    return before


cdef str segment_text(Segment *s, str name):
    cdef int i, k
    cdef const Call *call
    cdef Segment *side
    if not s.is_ready and not make_ready(s):
        raise MemoryError()
    cdef list lines = [f"{name}: {s.n_calls} calls, arena of {s.arena_bytes} bytes, {s.runs} runs"]
    straight = straight_lines(s)
    for i in range(s.n_calls):
        call = &s.calls[i]
        if i in straight:
            lines.append(straight[i])
        if call.section != NULL:
            lines.append(
                f"  calls {i} to {call.section.end - 1}: side by side, on {call.section.threads} threads"
            )
        operands = [operand_text(call.operands[k]) for k in range(call.n_reads + call.n_writes)]
        read = ", ".join(operands[: call.n_reads])
        made = ", ".join(operands[call.n_reads :])
        lines.append(f"  {i:3d}  {call.name.decode()}({read})" + (f" -> {made}" if made else ""))
    for i in range(s.n_exits):
        side = s.exits[i]
        outcome = [side.outcome[k] for k in range(side.n_outcome)]
        lines.append(segment_text(side, f"after call {side.guard}, outcome {outcome}"))
    for i in range(s.n_nested):
        lines.append(segment_text(s.nested[i], f"{name}, nested {i}"))
    return "\n".join(lines)


cdef str operand_text(const Operand *x):
    if x == NULL:
        return "nothing"
    if x.type < 0:
        return f"m{x.storage.index} object"
    shape = ", ".join([str(x.shape[a]) for a in range(x.ndim)])
    return f"m{x.storage.index}+{x.offset} {cnp.PyArray_DescrFromType(x.type).name}[{shape}]"


cdef inline int read_given(Given *given, PyObject *value, bint is_written) noexcept:
    """Read the layout of an input; the caller holds the value."""
    cdef cnp.ndarray array
    given.object = value
    if not cnp.PyArray_CheckExact(<object>value):
        given.layout.type = -1
        return 0
    array = <cnp.ndarray>value
    if cnp.PyArray_NDIM(array) > MOST_AXES or cnp.PyArray_ITEMSIZE(array) > 16:
        given.layout.type = -1
        return 0
    given.address = cnp.PyArray_BYTES(array)
    given.layout.type, given.layout.ndim = cnp.PyArray_TYPE(array), cnp.PyArray_NDIM(array)
    given.layout.itemsize = <int>cnp.PyArray_ITEMSIZE(array)
    given.layout.shape = <const int64_t *>cnp.PyArray_DIMS(array)
    given.layout.strides = <const int64_t *>cnp.PyArray_STRIDES(array)
    given.layout.flags = BEHAVED if cnp.PyArray_ISBEHAVED_RO(array) else 0
    if is_written and cnp.PyArray_ISWRITEABLE(array):
        given.layout.flags |= WRITEABLE
    return 0


cdef void note_failure(PyObject *owner, int position, PyObject *values) noexcept:
    """Add the failed instruction to the exception that is raised."""
    cdef NativeMachine machine = <NativeMachine>owner
    cdef PyObject *type
    cdef PyObject *value
    cdef PyObject *trace
    PyErr_Fetch(&type, &value, &trace)
    PyErr_NormalizeException(&type, &value, &trace)
    try:
        if value != NULL and isinstance(<object>value, Exception):
            machine.failure = failure(
                <object>value, machine.program, position, <object>values
            )
    except Exception:  # noqa: BLE001 - the first exception is the one that counts
        pass
    PyErr_Restore(type, value, trace)


def _error_state():
    """Return the variable in which NumPy keeps what to do about floating-point errors, and its value
    where all are ignored: setting it takes a tenth of the time of ``np.errstate``.
    """
    with np.errstate(all="ignore"):
        for variable, value in contextvars.copy_context().items():
            if variable.name == "numpy.ufunc.extobj":
                return variable, value
    raise ImportError("NumPy keeps the state of floating-point errors elsewhere")


cdef object _quiet_variable, _quiet_value
_quiet_variable, _quiet_value = _error_state()
