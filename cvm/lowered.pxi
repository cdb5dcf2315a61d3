# Lowered instructions: how each is planned, and what computes it in Python where it is not.

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
    """

    cdef readonly str name
    cdef readonly object code
    cdef readonly object body       # the machine of a nested program
    cdef plan_function *plan
    cdef void *spec
    cdef InPython in_python
    cdef list _kept  # owners of the memory that the spec points to
    cdef object _compute

    def __cinit__(self, step, str name):
        self.name, self.code, self.body = name, None, None
        self._compute = step.compute
        self._kept = []
        node = step.node
        variables = node.outputs if node is not None else [None] * len(step.outputs)
        types = [None if v is None else v.type for v in variables]
        if step.opcode is Opcode.COPY:  # by ``copy_value`` of the type
            types = [getattr(step.compute, "__self__", None)]
        # Arrays of more axes than operands have are objects, as lists are.
        tensors = bytes([
            t is None or isinstance(t, TensorType) and t.ndim <= MOST_AXES for t in types
        ]) + b"\0"
        self._kept.append(tensors)
        self.in_python.compute = <PyObject *>self._compute
        self.in_python.several = step.several
        self.in_python.copies = node is not None and is_users(node.op)
        self.in_python.is_tensor = <const char *><bytes>tensors

    cdef void *memory(self, size_t size) except NULL:
        """Return zeroed memory that lives as long as this."""
        cdef bytearray memory = bytearray(size + 16)
        cdef uintptr_t address
        self._kept.append(memory)
        address = <uintptr_t>PyByteArray_AsString(memory)
        return <void *>((address + 15) & ~<uintptr_t>15)

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
    # Of lengths, strides, dilations and paddings: products of two of them fit an int64.
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


# -- views

def view(step, entries):
    """Lower ``x[...]`` with numbers, slices and new axes; ``entries`` as ``index_spec`` takes them."""
    cdef Lowered found = new_lowered(step, "view", plan_view, sizeof(IndexSpec))
    fill_index(found, <IndexSpec *>found.spec, entries)
    return found


cdef int fill_index(Lowered owner, IndexSpec *spec, entries) except -1:
    """Write an index expression as C.

    For each entry "new", "gap", ("at", bound), ("array", input) or ("part", start, stop, step); a bound
    is None, ("value", n) or ("input", i): input i of the instruction.
    """
    cdef int i, k
    cdef Bound *b
    kinds = {"at": ONE_AT, "part": RANGE_AT, "new": NEW_AT, "array": ARRAY_AT, "gap": GAP_AT}
    spec.n_entries = len(entries)
    spec.entries = <Entry *>owner.memory(max(len(entries), 1) * sizeof(Entry))
    for i, entry in enumerate(entries):
        spec.entries[i].kind = kinds[entry if isinstance(entry, str) else entry[0]]
        if spec.entries[i].kind == ARRAY_AT:
            spec.entries[i].bounds[0].input = entry[1]
        elif not isinstance(entry, str):
            for k, bound in enumerate(entry[1:]):
                b = &spec.entries[i].bounds[k]
                b.given = bound is not None
                b.input = bound[1] if bound and bound[0] == "input" else -1
                b.value = bound[1] if bound and bound[0] == "value" else 0
    return 0


def transpose(step, int ndim, order):
    """Lower a view with other axes; ``order`` names those of the input, -1 is a new one."""
    cdef Lowered found = new_lowered(step, "transpose", plan_transpose, sizeof(TransposeSpec))
    cdef TransposeSpec *spec = <TransposeSpec *>found.spec
    for axis in order:
        checked(axis, -1, ndim - 1, "an axis of the input")
    spec.ndim, spec.n_axes = rank_of(ndim), rank_of(len(order))
    spec.order = found.ints(order)
    spec.kept = bits([a in order for a in range(ndim)])
    return found


def diagonal(step, int64_t down, int64_t right):
    """Lower a view of the elements i + down, i + right of the last two axes."""
    cdef Lowered found = new_lowered(step, "diagonal", plan_diagonal, sizeof(DiagonalSpec))
    if down < 0 or right < 0:
        raise ValueError(f"a diagonal from row {down}, column {right}; they must not be negative")
    (<DiagonalSpec *>found.spec).down, (<DiagonalSpec *>found.spec).right = down, right
    return found


cdef Lowered with_axis(step, str name, plan_function *plan, int axis):
    cdef Lowered found = new_lowered(step, name, plan, sizeof(AxisSpec))
    (<AxisSpec *>found.spec).axis = checked(axis, -1, MOST_AXES - 1, "the axis")
    return found


def pieces(step, int axis):
    """Lower views of the pieces along an axis, whose lengths a vector holds."""
    return with_axis(step, "split", plan_pieces, axis)


def reshape(step, int ndim):
    """Lower a reshape to the lengths in a vector."""
    cdef Lowered found = new_lowered(step, "reshape", plan_reshape, sizeof(ReshapeSpec))
    (<ReshapeSpec *>found.spec).ndim = rank_of(ndim)
    return found


def lengths(step, int axis):
    """Lower the length of an axis; -1: the whole shape."""
    return with_axis(step, "lengths", plan_lengths, axis)


def passed(step, int which, conditions):
    """Lower an input passed on if conditions hold: (kind, i, a, j, b), see calls/views.h."""
    cdef Lowered found = new_lowered(step, "check", plan_pass, sizeof(PassSpec))
    cdef PassSpec *spec = <PassSpec *>found.spec
    cdef int k
    kinds = {
        "length": LENGTH_IS, "lengths": LENGTHS_EQUAL, "numbers": NUMBERS_EQUAL, "true": IS_TRUE,
        "false": IS_FALSE, "below": BELOW,
    }
    spec.which = checked(which, 0, len(step.inputs) - 1, "the argument")
    spec.n = len(conditions)
    spec.conditions = <Condition *>found.memory(max(len(conditions), 1) * sizeof(Condition))
    for k, (kind, i, a, j, b) in enumerate(conditions):
        spec.conditions[k].kind = kinds[kind]
        checked(i, 0, len(step.inputs) - 1, "an argument")
        checked(j, 0, len(step.inputs) - 1, "an argument")
        axis_of(a)
        spec.conditions[k].i, spec.conditions[k].a = i, a
        spec.conditions[k].j, spec.conditions[k].b = j, b
    return found


# -- elements moved

def fill(step, int ndim, stretching):
    """Lower an array of given lengths filled with a value, whose axes ``stretching`` are stretched."""
    cdef Lowered found = new_lowered(step, "fill", plan_fill, sizeof(FillSpec))
    cdef FillSpec *spec = <FillSpec *>found.spec
    spec.ndim, spec.stretching = rank_of(ndim), bits(stretching)
    checked(len(step.inputs), 1 + ndim, 1 + ndim, "the number of inputs")
    return found


def copied(step, bint c_order):
    """Lower a copy as x lies; with ``c_order`` x itself if it lies in C order, else a copy that does."""
    cdef Lowered found = new_lowered(step, "copy", plan_copy, sizeof(CopySpec))
    (<CopySpec *>found.spec).c_order = c_order
    return found


def joined(step, int axis, bint stacked):
    """Lower arrays one after the other along an axis, which is a new one if they are stacked."""
    cdef Lowered found = new_lowered(step, "join", plan_join, sizeof(JoinSpec))
    cdef JoinSpec *spec = <JoinSpec *>found.spec
    spec.axis, spec.is_stacked = axis_of(axis), stacked
    return found


def reserve(step, int axis, parts, dtype):
    """Lower memory for the parts of a join.

    ``parts`` has for each part and axis its length, or (input, axis).
    """
    cdef Lowered found = new_lowered(step, "reserve", plan_reserve, sizeof(ReserveSpec))
    cdef ReserveSpec *spec = <ReserveSpec *>found.spec
    cdef int k
    flat = [n for part in parts for n in part]
    spec.n_parts, spec.ndim, spec.axis = len(parts), rank_of(len(parts[0])), axis_of(axis)
    if axis >= spec.ndim or any([len(part) != spec.ndim for part in parts]):
        raise ValueError(f"the parts {parts} have not one rank with an axis {axis}")
    if len(step.outputs) != spec.n_parts + 1 and len(step.outputs) != spec.n_parts + 2:
        raise ValueError(f"{len(step.outputs)} outputs for {spec.n_parts} parts")
    spec.type, spec.itemsize = np.dtype(dtype).num, np.dtype(dtype).itemsize
    spec.inputs = found.ints([-1 if isinstance(n, int) else n[0] for n in flat])
    spec.axes = found.ints([0 if isinstance(n, int) else axis_of(n[1]) for n in flat])
    spec.lengths = <int64_t *>found.memory(max(len(flat), 1) * sizeof(int64_t))
    for k, n in enumerate(flat):
        spec.lengths[k] = n if isinstance(n, int) else 0
    return found


def written(step, entries, bint sets, stretching, bint in_place):
    """Lower x but ``z[...] = y`` or ``z[...] += y``, with numbers, slices and new axes."""
    cdef Lowered found = new_lowered(step, "write", plan_write, sizeof(WriteSpec))
    cdef WriteSpec *spec = <WriteSpec *>found.spec
    fill_index(found, &spec.index, entries)
    spec.sets, spec.in_place, spec.stretching = sets, in_place, bits(stretching)
    return found


cdef int fill_positions(Lowered found, entries) except -1:
    """Write an index expression with arrays; the axes of positions are joined where arrays are apart."""
    cdef PositionsSpec *spec = <PositionsSpec *>found.spec
    cdef int i, rest = 0, first = -1, last = -1
    cdef bint scattered = False
    fill_index(found, &spec.index, entries)
    for i in range(spec.index.n_entries):
        if spec.index.entries[i].kind in (NEW_AT, RANGE_AT):
            rest += 1
        elif spec.index.entries[i].kind != GAP_AT:
            scattered = scattered or last not in (-1, i - 1)
            last = i
            first = rest if first < 0 else first
    spec.place = 0 if scattered else first
    return 0


def gather(step, entries):
    """Lower ``x[...]`` with arrays of positions."""
    cdef Lowered found = new_lowered(step, "gather", plan_gather, sizeof(PositionsSpec))
    fill_positions(found, entries)
    return found


def scatter(step, entries, bint sets, stretching, bint in_place):
    """Lower x but ``z[...] = y`` or ``+= y``, with arrays of positions."""
    cdef Lowered found = new_lowered(step, "scatter", plan_scatter, sizeof(PositionsSpec))
    cdef PositionsSpec *spec = <PositionsSpec *>found.spec
    fill_positions(found, entries)
    spec.sets, spec.in_place, spec.stretching = sets, in_place, bits(stretching)
    return found


# -- along an axis

def running(step, str what, int axis, dtype):
    """Lower running sums ("add"), products ("mul") or a "recurrence" along an axis."""
    cdef Lowered found = new_lowered(step, "cumulative", plan_running, sizeof(RunningSpec))
    cdef RunningSpec *spec = <RunningSpec *>found.spec
    spec.what = {"add": SUMS, "mul": PRODUCTS, "recurrence": RECURRENCE}[what]
    spec.axis, spec.n_inputs = axis_of(axis), len(step.inputs)
    checked(len(step.inputs), 1 + (spec.what == RECURRENCE), MOST_ARRAYS, "the number of inputs")
    spec.type, spec.itemsize = np.dtype(dtype).num, np.dtype(dtype).itemsize
    return found


def extreme(step, bint largest, axes):
    """Lower the position of the first largest element, or the smallest, counted through axes."""
    cdef Lowered found = new_lowered(step, "argmax", plan_extreme, sizeof(ExtremeSpec))
    cdef ExtremeSpec *spec = <ExtremeSpec *>found.spec
    spec.what = LARGEST if largest else SMALLEST
    for axis in axes:
        spec.axes |= 1 << axis_of(axis)
    return found


def first(step, int axis):
    """Lower the positions of the first elements in order."""
    return with_axis(step, "topk", plan_first, axis)


def range_of(step, dtype):
    """Lower start + i step for i < n."""
    cdef Lowered found = new_lowered(step, "range", plan_range, sizeof(TypeSpec))
    cdef TypeSpec *spec = <TypeSpec *>found.spec
    spec.type, spec.itemsize = np.dtype(dtype).num, np.dtype(dtype).itemsize
    return found


def sorted_along(step, int axis, bint positions):
    """Lower x in order along an axis, or the positions that sort it."""
    cdef Lowered found = new_lowered(step, "sort", plan_sort, sizeof(SortSpec))
    cdef SortSpec *spec = <SortSpec *>found.spec
    spec.axis, spec.positions = axis_of(axis), positions
    return found


def searched(step, bint right):
    """Lower where elements would go in a sorted vector."""
    return with_axis(step, "searchsorted", plan_search, right)


def nonzero(step):
    """Lower the positions of the elements that are not 0."""
    return new_lowered(step, "nonzero", plan_nonzero, 0)


def distinct(step, bint index, bint inverse, bint counts):
    """Lower the distinct elements, sorted, with what the flags ask for."""
    cdef Lowered found = new_lowered(step, "unique", plan_distinct, sizeof(DistinctSpec))
    cdef DistinctSpec *spec = <DistinctSpec *>found.spec
    spec.index, spec.inverse, spec.counts = index, inverse, counts
    return found


# -- products and matrices

def product(
    step, int ndim, int c, int alpha, int a, int b, int beta, transposed, bint outer, bint destroys,
    dtype, int threads=0
):
    """Lower beta c + alpha op(a) op(b).

    Parameters
    ----------
    ndim : int
        Of the result.
    c, alpha, a, b, beta : int
        Inputs of the instruction; -1: no c, and 1 for a factor.
    transposed : (bool, bool)
        Whether a and b are.
    outer : bool
        Whether a vector is a column as a and a row as b, not the other way round.
    destroys : bool
        Whether the result is left in c.
    threads : int
        The number of threads that share large products; 0: these are left to BLAS.
    """
    cdef Lowered found = new_lowered(step, "product", plan_product, sizeof(ProductSpec))
    cdef ProductSpec *spec = <ProductSpec *>found.spec
    find_blas()
    spec.ndim, spec.outer, spec.destroys_c = ndim, outer, destroys
    spec.c, spec.alpha, spec.a, spec.b, spec.beta = c, alpha, a, b, beta
    spec.trans_a, spec.trans_b = transposed
    spec.threads = min(threads, MOST_THREADS)
    spec.type, spec.itemsize = np.dtype(dtype).num, np.dtype(dtype).itemsize
    return found


def chain(step, order, dtype, int threads=0):
    """Lower the product of several matrices; ``order`` is that in which it was written."""
    cdef Lowered found = new_lowered(step, "product", plan_chain, sizeof(ChainSpec))
    cdef ChainSpec *spec = <ChainSpec *>found.spec
    find_blas()
    spec.threads = min(threads, MOST_THREADS)
    spec.type, spec.itemsize = np.dtype(dtype).num, np.dtype(dtype).itemsize
    if len(order) != len(step.inputs) - 1:
        raise ValueError(f"{len(order)} products of {len(step.inputs)} matrices")
    for i, pair in enumerate(order):
        for k in pair:
            checked(k, 0, len(step.inputs) + i - 1, "a factor")
    spec.written = found.ints([k for pair in order for k in pair])
    return found


def decomposition(
    step, str name, order, cores, shapes, bint square, bint lower, int option, rcond, bint wide, dtypes,
    int threads=1, BlasLimit limit=None
):
    """Lower functions of LAPACK of stacks of matrices.

    Parameters
    ----------
    name : str
        Of the function (see refined_solve.h).
    order : sequence of int
        The inputs in the order in which it takes them, the matrices first.
    cores : sequence of int
        How many axes a matrix of each has; 1: a vector.
    shapes : sequence of str
        Of the results for one matrix: a letter for each axis, m and n for rows and columns of the
        first input, p for the less of them, k for the columns of the second; r for those of
        residuals, of which there are none if the rank, the result after them, is not n < m. Empty:
        the first input is passed on.
    square, lower : bool
    option : int
    rcond : (float, float)
        A number, and one that is multiplied by the longer side.
    wide : bool
        Whether numbers of single precision are computed with in double precision.
    dtypes : sequence of numpy.dtype
        Of the first input and the outputs.
    threads : int
        The number of threads that share the matrices of large stacks.
    limit : BlasLimit or None
        Within which BLAS uses threads for a large matrix; None: as many as it is set to.
    """
    cdef Lowered found = new_lowered(step, "decompose", plan_matrices, sizeof(MatricesSpec))
    cdef MatricesSpec *spec = <MatricesSpec *>found.spec
    cdef int i
    find_lapack()
    spec.function = decomposition_named(name.encode())
    if spec.function == NULL:
        raise ValueError(f"no function decomposes by {name}")
    spec.threads = min(threads, MOST_THREADS)
    if limit is not None:
        found._kept.append(limit)
        spec.limit = <PyObject *>limit
    spec.n_given, spec.n_found = len(order), len(shapes)
    spec.order, spec.cores = found.ints(order), found.ints(cores)
    spec.types = found.ints([np.dtype(d).num for d in dtypes])
    spec.itemsizes = found.ints([np.dtype(d).itemsize for d in dtypes])
    spec.residuals = shapes.index("r") if "r" in shapes else -1
    # Residuals are a vector, as long as the second input has columns.
    letters = [shape.replace("r", "k").encode() for shape in shapes]
    found._kept.append(letters)
    spec.shapes = <char **>found.memory(max(len(letters), 1) * sizeof(char *))
    for i in range(len(letters)):
        spec.shapes[i] = <char *><bytes>letters[i]
    spec.is_square, spec.lower, spec.option = square, lower, option
    spec.rcond, spec.rcond_of_side = rcond
    spec.kind = lapack_kind(spec.types[0])
    if spec.kind < 0:
        return python_call(step)
    spec.wide = wide and spec.kind in (SINGLE, SINGLE_COMPLEX)
    return found


# -- windows

def convolution(
    step, int part, padding, strides, dilation, int groups, dtype, int threads
):
    """Lower a convolution, or one of its adjoints.

    Parameters
    ----------
    part : {0, 1, 2}
        The value to compute: the result, from images and kernels; images, from kernels and the
        gradient of the result; or kernels, from images and that gradient.
    padding : sequence of (int, int)
        For each spatial axis zeros before and after; -1: all windows that meet the image; -2: half
        a window.
    strides, dilation : sequence of int
    groups : int
    threads : int
        How many share large ones.
    """
    cdef Lowered found = new_lowered(step, "convolution", plan_convolution, sizeof(ConvolutionSpec))
    cdef ConvolutionSpec *spec = <ConvolutionSpec *>found.spec
    cdef int axis
    check_windows(len(strides), strides=strides, dilation=dilation)
    checked(groups, 1, LARGEST_OF_WINDOWS, "the number of groups")
    if len(padding) != len(strides):
        raise ValueError(f"padding must be {len(strides)} pairs, got {tuple(padding)}")
    checked(len(step.inputs), 2, 2 + len(strides), "the number of inputs")
    find_blas()
    spec.part, spec.ndim, spec.groups = checked(part, 0, 2, "the part"), len(strides), groups
    spec.type, spec.itemsize = np.dtype(dtype).num, np.dtype(dtype).itemsize
    spec.threads = min(threads, MOST_THREADS)
    for axis in range(spec.ndim):
        before, after = padding[axis]
        if before != after:
            checked(min(before, after), 0, LARGEST_OF_WINDOWS, "the padding")
        spec.padding[2 * axis] = checked(before, -2, LARGEST_OF_WINDOWS, "the padding")
        spec.padding[2 * axis + 1] = checked(after, -2, LARGEST_OF_WINDOWS, "the padding")
        spec.strides[axis], spec.dilation[axis] = strides[axis], dilation[axis]
    return found


def pool(
    step, int what, int ndim, window, strides, padding, bint partial, dtype, int threads,
    int divided=0
):
    """Lower a pool of images, or an adjoint of one.

    Parameters
    ----------
    what : {0, 1, 2, 3}
        The largest of each window and where it is; sums; the adjoint of sums; numbers added at
        positions.
    ndim : int
        Of the images.
    window, strides, padding : sequence of int
        For each of the last axes.
    partial : bool
        Whether there is one more window, where elements are left.
    threads : int
        How many share large ones.
    divided : {0, 1, 2}
        Sums are divided by nothing, by the number of elements within the padded image, or by that
        of those within the image.
    """
    cdef Lowered found = new_lowered(step, "pool", plan_pool, sizeof(PoolSpec))
    cdef PoolSpec *spec = <PoolSpec *>found.spec
    cdef int axis
    check_windows(len(window), window=window, strides=strides)
    checked(len(window), 1, min(rank_of(ndim), SPATIAL), "the number of spatial axes")
    if not len(window) == len(strides) == len(padding):
        raise ValueError(f"window {window}, strides {strides} and padding {padding} differ in length")
    spec.what, spec.ndim = checked(what, 0, 3, "the kind of pool"), ndim
    spec.spatial, spec.partial = len(window), partial
    spec.type, spec.itemsize = np.dtype(dtype).num, np.dtype(dtype).itemsize
    spec.threads, spec.divided = threads, divided
    for axis in range(spec.spatial):
        spec.window[axis], spec.strides[axis] = window[axis], strides[axis]
        # A window beyond the image would have no element.
        spec.padding[axis] = checked(padding[axis], 0, window[axis] - 1, "the padding")
    return found


def check_windows(int count, **fields):
    """Raise ValueError unless each field has ``count`` positive numbers."""
    if not 1 <= count <= SPATIAL:
        raise ValueError(f"windows have 1 to {SPATIAL} axes, got {count}")
    for name, values in fields.items():
        if len(values) != count or any([not 1 <= n <= LARGEST_OF_WINDOWS for n in values]):
            raise ValueError(f"{name} must be {count} positive integers, got {tuple(values)}")


def draw(step, str distribution, int ndim, dtype, bint single):
    """Lower a draw of a distribution: the state after it, and numbers."""
    cdef Lowered found = new_lowered(step, "draw", plan_draw, sizeof(DrawSpec))
    cdef DrawSpec *spec = <DrawSpec *>found.spec
    spec.type, spec.itemsize = np.dtype(dtype).num, np.dtype(dtype).itemsize
    spec.draw = draw_kernel(distribution, spec.type)
    spec.ndim, spec.is_single = ndim, single
    spec.parameter = 1 + ndim if distribution == "standard_gamma" else -1
    return found


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
    int64_t least=0, gathers=(), apart=()
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
    gathers : sequence of (int, int)
        The inputs that are tables, which have no axes of the loop, and the inputs that hold their
        positions.
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
    spec.n_gathers = len(gathers)
    spec.tables = found.ints([table for table, _ in gathers])
    spec.positions = found.ints([positions for _, positions in gathers])
    spec.is_table = <char *>found.memory(n)
    for i, _ in gathers:
        spec.is_table[i] = 1
    spec.apart = <char *>found.memory(n_outputs)
    for i in apart:
        spec.apart[i] = 1
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
    step, NativeMachine body, depths, reads, int n_carried, int n_sequences, int n_stacks,
    bint until, str name
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
    n_carried, n_sequences, n_stacks : int
    until : bool
        Whether the last output of the body says that there are no more steps.
    name : str
        For messages.
    """
    cdef Lowered found = new_lowered(step, "loop", plan_loop, sizeof(LoopSpec))
    cdef LoopSpec *spec = <LoopSpec *>found.spec
    found.body = body
    found._kept.append(name)
    spec.tree, spec.name = &body.tree, <PyObject *>name
    spec.n_states, spec.n_reads, spec.n_carried = len(depths), len(reads), n_carried
    spec.n_sequences, spec.n_stacks, spec.until = n_sequences, n_stacks, until
    spec.n_captured = body.code.n_inputs - len(reads) - n_carried - n_sequences
    spec.depths = found.ints(depths)
    spec.read_state = found.ints([state for state, _ in reads])
    spec.read_row = found.ints([row for _, row in reads])
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
