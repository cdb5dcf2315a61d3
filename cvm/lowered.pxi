# Lowered instructions: how each is planned, and what computes it in Python where it is not.

cdef enum:
    # How much memory an instruction has for arrays of a few numbers.
    LOWERED_BYTES = 256


@cython.final
@cython.auto_pickle(False)
cdef class Lowered:
    """One CALL or COPY of a program for the native machine.

    Attributes
    ----------
    name : str
        The kind of native call, or "python".
    code : object or None
        Of a kernel, its ``symcomp.codegen.compiler.early.Code``.
    kernel : symcomp.cvm.kernels.KernelOf or None
        What a kernel computes.
    """

    cdef readonly str name
    cdef readonly object code
    cdef public object kernel
    cdef readonly object body       # the machine of a nested program
    cdef plan_function *plan
    cdef void *spec
    cdef InPython in_python
    cdef list _kept  # owners of the memory that the spec points to
    cdef char *_free    # the rest of the latest one
    cdef size_t _n_free
    cdef object _compute

    def __cinit__(self, step, str name):
        self.name, self.code, self.body, self.kernel = name, None, None, None
        self._compute = step.compute
        self._kept = []
        node = step.node
        variables = node.outputs if node is not None else [None] * len(step.outputs)
        types = [None if v is None else v.type for v in variables]
        if step.opcode is Opcode.COPY:  # by ``copy_value`` of the type
            types = [getattr(step.compute, "__self__", None)]
            if getattr(types[0], "has_fixed_values", False):
                self._compute = SAME_VALUE
        # Arrays of more axes than operands have are objects, as lists are.
        tensors = bytes([
            t is None or isinstance(t, TensorType) and t.ndim <= MOST_AXES for t in types
        ]) + b"\0"
        self._kept.append(tensors)
        self.in_python.compute = <PyObject *>self._compute
        self.in_python.name = name_in_plans(self._compute)
        self.in_python.is_in_c = self.in_python.name != b"python"
        self.in_python.several = step.several
        self.in_python.copies = node is not None and is_users(node.op)
        self.in_python.is_tensor = <const char *><bytes>tensors

    cdef void *memory(self, size_t size) except NULL:
        """Return zeroed memory that lives as long as this."""
        cdef char *found
        size = (size + 15) & ~<size_t>15
        if size > self._n_free:
            self._add_memory(size + LOWERED_BYTES)
        found = self._free
        self._free += size
        self._n_free -= size
        return found

    cdef int _add_memory(self, size_t size) except -1:
        """Have one piece of zeroed memory for what planning reads together."""
        cdef bytearray memory = bytearray(size + 16)
        cdef uintptr_t address = <uintptr_t>PyByteArray_AsString(memory)
        self._kept.append(memory)
        self._free = <char *>((address + 15) & ~<uintptr_t>15)
        self._n_free = size
        return 0

    cdef int *ints(self, values) except NULL:
        """Return a C array of int that lives as long as this."""
        cdef list given = list(values)
        cdef int *found = <int *>self.memory(max(len(given), 1) * sizeof(int))
        cdef int i
        for i in range(len(given)):
            found[i] = given[i]
        return found

    @property
    def early_calls(self):
        """How often a kernel was called that was not optimized yet."""
        return (<KernelSpec *>self.spec).early_calls if self.name == "kernel" else 0


cdef Lowered new_lowered(step, str name, plan_function *plan, size_t spec_size):
    cdef Lowered found = Lowered(step, name)
    found.spec = found.memory(max(spec_size, 1))
    found.plan = plan
    return found


def python_call(step):
    """Return what computes an instruction in Python."""
    return Lowered(step, "python")


@cython.final
@cython.auto_pickle(False)
cdef class SameValue:
    """The copy of a value that is never written again."""

    def __call__(self, value):
        """Return the value itself."""
        return value


cdef object SAME_VALUE = SameValue()


cdef const char *name_in_plans(compute):
    """Return the name of the calls of a function, which is in C if it is for a device."""
    if isinstance(compute, Recorded):
        compute = (<Recorded>compute)._compute
    if isinstance(compute, (DeviceRegion, UntilLoop)):
        return "region"
    if isinstance(compute, CopyToDevice):
        return "to device"
    if isinstance(compute, (PartOnDevice, FirstOnDevice)):
        return "part on device"
    if compute is SAME_VALUE:
        return "share"
    if isinstance(compute, (MatrixParts, MatrixOfEntries, MatrixOfParts, MatrixTransposed)):
        return "matrix on device"
    if isinstance(compute, ObjectLoop):
        return "steps in turn"
    if isinstance(compute, LengthOnDevice):
        return "length on device"
    return "to host" if isinstance(compute, CopyToHost) else "python"


cdef const InPython *how_in_python(PyObject *lowered) noexcept:
    return &(<Lowered>lowered).in_python


cdef unsigned int bits(flags):
    """Return the flags as the bits of a number, the first the lowest."""
    cdef unsigned int found = 0
    for place, flag in enumerate(flags):
        if flag:
            found |= 1 << place
    return found


cdef enum:
    # The largest length, stride, dilation and padding: products of two of them fit an int64.
    LARGEST_OF_WINDOWS = 2147483647


cdef int checked(int n, int least, int most, str name) except? -1:
    """Return a parameter that is in its range: memory is read and written by it."""
    if not least <= n <= most:
        raise ValueError(f"{name} is {n}; it must be from {least} to {most}")
    return n


cdef int axis_of(int axis) except -1:
    """Return an axis, counted from the first."""
    return checked(axis, 0, MOST_AXES - 1, "the axis")


cdef int rank_of(int ndim) except -1:
    """Return a number of axes."""
    return checked(ndim, 0, MOST_AXES, "the number of axes")


# -- C functions of ops outside of symcomp

def native_call(step, plan, run, bytes params=b"", double work=1.0):
    """Lower an op to two C functions, whose types ``native_call.h`` declares.

    Parameters
    ----------
    step : Instruction
        Of a node whose inputs and outputs are tensors.
    plan, run : int
        The addresses of a ``NativePlan`` and a ``NativeRun``, which must stay loaded.
    params : bytes
        What both are passed a pointer to, aligned to 16 bytes.
    work : float
        About how many operations an element takes; the GIL is given up around enough of them.

    Raises
    ------
    TypeError
        If an input or output of the node is no tensor.
    ValueError
        If there are more than 16 of them, or tensors of more than 16 axes.
    """
    cdef Lowered found
    cdef ForeignSpec *spec
    cdef char *copied
    cdef int i
    variables = [*step.node.inputs, *step.node.outputs]
    for variable in variables:
        if type(variable.type) is not TensorType:
            raise TypeError(f"native_call: {variable} of {step.node} is a {variable.type}, no tensor")
    if len(variables) > MOST_FOREIGN or any(v.ndim > MOST_AXES for v in variables):
        raise ValueError(
            f"native_call: {step.node} has {len(variables)} inputs and outputs, or one of more than "
            f"{MOST_AXES} axes; at most {MOST_FOREIGN} are passed to C"
        )
    found = new_lowered(step, "C function", plan_foreign, sizeof(ForeignSpec))
    spec = <ForeignSpec *>found.spec
    spec.plan, spec.run = <NativePlan *><uintptr_t>plan, <NativeRun *><uintptr_t>run
    copied = <char *>found.memory(len(params) + 1)
    memcpy(copied, <const char *>params, len(params))
    spec.params, spec.work = copied, work
    spec.n_inputs, spec.n_outputs = len(step.node.inputs), len(step.node.outputs)
    for i, variable in enumerate(variables):
        spec.type[i] = variable.type.numpy_dtype.num
        spec.itemsize[i] = variable.type.numpy_dtype.itemsize
        spec.ndim[i] = variable.ndim
    return found


# -- kernels

def kernel(
    step, code, bint elementwise, stretched, dropped, dtypes, constants, int steps, int threads=1,
    int64_t least=0, tables=(), apart=()
):
    """Lower a kernel over the elements of arrays (calls/kernels.h).

    Parameters
    ----------
    code : symcomp.codegen.compiler.early.Code
    elementwise : bool
        Whether it may be called without a team, if all arrays lie in C order and none is stretched.
    stretched : sequence of sequence of bool
        For each input and output, which axes have length 1 while the loop's may have another.
    dropped : sequence of sequence of bool
        For each output, which axes it has not.
    dtypes : sequence of numpy.dtype
        Of inputs and outputs.
    constants : sequence of array
        Of one element each.
    steps : int
        How many operations an element takes.
    threads, least : int
        How many threads share loops over at least ``least`` elements.
    tables : sequence of (int, int, int)
        The inputs that are tables, which have no axes of the loop; the inputs that hold their
        positions; and the outputs that are these tables with something added, -1 if there are none.
    apart : sequence of int
        The outputs that are not written over other arrays.
    """
    cdef Lowered found = new_lowered(step, "kernel", plan_kernel, sizeof(KernelSpec))
    cdef KernelSpec *spec = <KernelSpec *>found.spec
    cdef int i, n_outputs = len(step.outputs), n = len(stretched)
    spec.n_inputs, spec.n_outputs, spec.ndim = n - n_outputs, n_outputs, len(stretched[0])
    if spec.ndim > MOST_AXES or n + len(constants) > MOST_ARRAYS:
        raise ValueError(
            f"a kernel takes at most {MOST_AXES} axes, and {MOST_ARRAYS} arrays and constants"
        )
    found.code = code
    spec.code = <KernelCode *><uintptr_t>ctypes.addressof(code)
    spec.code_object = <PyObject *>code
    spec.elementwise, spec.steps = elementwise, steps
    spec.threads, spec.least = threads, least
    spec.types = found.ints([np.dtype(d).num for d in dtypes])
    spec.itemsizes = found.ints([np.dtype(d).itemsize for d in dtypes])
    spec.stretched = <unsigned int *>found.ints([bits(row) for row in stretched])
    spec.dropped = <unsigned int *>found.ints([bits(row) for row in dropped])
    spec.n_tables = len(tables)
    spec.tables = found.ints([table for table, _, _ in tables])
    spec.positions = found.ints([positions for _, positions, _ in tables])
    spec.scattered = found.ints([output for _, _, output in tables])
    spec.is_table = <char *>found.memory(n)
    for table, _, output in tables:
        spec.is_table[table] = 1
        if output >= 0:
            spec.is_table[spec.n_inputs + output] = spec.scatters = 1
    spec.apart = <char *>found.memory(n_outputs)
    for i in apart:
        spec.apart[i] = 1
    spec.is_simple = (
        elementwise and spec.n_inputs > 0 and not tables
        and not any([any(row) for row in [*stretched, *dropped]])
    )
    # Kept, as the kernel reads their memory.
    arrays = [np.array(value) for value in constants]
    found._kept.append(arrays)
    spec.n_constants = len(arrays)
    spec.constants = <char **>found.memory(max(len(arrays), 1) * sizeof(char *))
    for i, value in enumerate(arrays):
        spec.constants[i] = cnp.PyArray_BYTES(<cnp.ndarray>value)
    return found


cdef int wait_until_optimized(PyObject *code) noexcept:
    try:
        (<object>code).wait()
    except BaseException as problem:
        set_raised(problem)
        return -1
    return 0


# -- the gate

def gate(step, checks_values, kernels):
    """Lower the gate before updates in place (vm/commit.py).

    Parameters
    ----------
    step : Instruction
    checks_values : bool
        Whether the results of its checks depend on more than layouts.
    kernels : sequence of (Lowered or None, sequence of int)
        For each check, the kernel that it is of, if it is one of elements, and which arguments of
        the gate are its inputs.
    """
    cdef Lowered kernel
    cdef Lowered found = new_lowered(step, "gate", plan_gate, sizeof(GateSpec))
    cdef GateSpec *spec = <GateSpec *>found.spec
    spec.n_arrays = step.compute.count
    if step.compute.checks:
        check = step.compute.check
        found._kept.append(check)
        spec.check = <PyObject *>check
        spec.checks_values = checks_values
    if not checks_values and all([kernel is not None for kernel, _ in kernels]):
        spec.fits = <FitCheck *>found.memory(max(len(kernels), 1) * sizeof(FitCheck))
        for kernel, places in kernels:
            spec.fits[spec.n_fits].kernel = kernel.spec
            spec.fits[spec.n_fits].n = len(places)
            spec.fits[spec.n_fits].inputs = found.ints(places)
            found._kept.append(kernel)
            spec.n_fits += 1
    return found


# -- loops

def loop(
    step, NativeMachine body, depths, reads, int n_carried, int n_sequences, stacked, bint until,
    str name, without_steps
):
    """Lower a loop.

    Parameters
    ----------
    body : NativeMachine
        Of a nested program: one step.
    depths : sequence of int
        Of the states that keep all rows, how many rows each starts from.
    reads : sequence of (int, int)
        The first inputs of a step t: number i of a state and s, for its row t + s.
    n_carried, n_sequences : int
    stacked : sequence of numpy.dtype
        Of the outputs that have a row for each step.
    until : bool
        Whether the last output of the body says that there are no more steps.
    name : str
        For messages.
    without_steps : callable
        From the values of all inputs but the number of steps to the shapes of rows of the stacked outputs
        where there are none, and the positions of the inputs whose elements tell these; or to None if it is
        not elements of arrays alone that do. It is called where a loop without steps is planned.
    """
    cdef Lowered found = new_lowered(step, "loop", plan_loop, sizeof(LoopSpec))
    cdef LoopSpec *spec = <LoopSpec *>found.spec
    found.body = body
    found._kept += [name, without_steps]
    spec.tree, spec.name = &body.tree, <PyObject *>name
    spec.without_steps = <PyObject *>without_steps
    spec.n_states, spec.n_reads, spec.n_carried = len(depths), len(reads), n_carried
    spec.n_sequences, spec.n_stacks, spec.until = n_sequences, len(stacked), until
    spec.n_captured = body.code.n_inputs - len(reads) - n_carried - n_sequences
    spec.depths = found.ints(depths)
    spec.read_state = found.ints([state for state, _ in reads])
    spec.read_row = found.ints([row for _, row in reads])
    spec.stack_type = found.ints([dtype.num for dtype in stacked])
    spec.stack_itemsize = found.ints([dtype.itemsize for dtype in stacked])
    return found


def graph(step, NativeMachine body):
    """Lower a graph used as an op; ``body`` is a nested program."""
    cdef Lowered found = new_lowered(step, "graph", plan_graph, sizeof(GraphSpec))
    found.body = body
    (<GraphSpec *>found.spec).tree = &body.tree
    return found


cdef void add_step(PyObject *name, int64_t step, int64_t most) noexcept:
    """Tell in which step of a loop the exception was raised."""
    cdef PyObject *type
    cdef PyObject *value
    cdef PyObject *trace
    PyErr_Fetch(&type, &value, &trace)
    PyErr_NormalizeException(&type, &value, &trace)
    if value != NULL and isinstance(<object>value, Exception):
        (<object>value).add_note(f"This was in step {step} (of at most {most}) of {<object>name}")
    PyErr_Restore(type, value, trace)
