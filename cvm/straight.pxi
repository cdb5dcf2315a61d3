# Straight code of segments (plan/straight.h): what symcomp/cvm/straight.py is told of a segment, and what it
# gives back.

cdef extern from "loops/moves.h":
    ctypedef void move_function(int64_t, char *, int64_t, const char *, int64_t, const int64_t *)

    struct axes:
        int rank
        int64_t size
        int64_t *length
        int64_t *to
        int64_t *from_ "from"

    int size_that_is_set(move_function *) noexcept
    move_function *function_that_adds(char, int64_t) noexcept

cdef extern from "plan/copies.h":
    ctypedef struct CopyCall:
        Place to
        Place from_ "from"
        axes axes
        move_function *move

    int run_copy(const void *, Frame *)
    char kind_of_type(int) noexcept

cdef extern from "plan/nested.h":
    ctypedef struct ResultCopy:
        Place from_ "from"
        axes axes
        move_function *move

cdef extern from "calls/product_runs.h":
    ctypedef enum Way:
        BY_FEW

    ctypedef struct Matrix:
        int rows, columns
        int64_t ld
        int transposed

    ctypedef struct Factors:
        double wide[2][2]

    ctypedef struct ProductCall:
        Way way
        int type, itemsize, has_c
        int alpha_type, beta_type
        Place a, b, c, z
        int64_t count, each_a, each_b, each_z
        Matrix left, right
        Factors by
        axes *copy_of_c

    int run_product(const void *, Frame *)

cdef extern from "calls/kernels.h":
    ctypedef struct KernelCall:
        int n_arrays, in_order
        Place *places
        int64_t *shape
        int64_t *strides

    int run_kernel(const void *, Frame *)

cdef extern from "plan/planner.h":
    enum:
        MOST_CONSTANT_BYTES

cdef extern from "Python.h":
    void PyErr_SetInterrupt()

# The most products of a stack that are unrolled.
cdef enum:
    MOST_STACKED = 8

straight_code = lazy_module("symcomp.cvm.straight")


cdef void straighten_segment(Segment *s) noexcept:
    """Have the straight code of a segment made; an error is reported, and the segment stays as it is."""
    try:
        found = straight_code.straightened(told_segment(s))
        if found:
            install_stretches(s, found)
    except KeyboardInterrupt:
        PyErr_SetInterrupt()    # meant for the call of the user, which looks for signals


cdef int install_stretches(Segment *s, list found) except -1:
    cdef StraightCode *made = new_straight_code(s, len(found))
    cdef Stretch *x
    cdef int i
    if made == NULL:
        raise MemoryError()
    for i, one in enumerate(found):
        x = &made.stretches[i]
        x.first, x.end, x.copies_results = one.first, one.end, one.copies_results
        if one.code is not None:
            x.entry = <StraightEntry *><uintptr_t>ctypes.addressof(one.code)
            x.owner = <PyObject *>one.code
            Py_INCREF(one.code)
    publish_straight_code(s, made)
    return 0


cdef dict straight_lines(Segment *s):
    """Return what the plan tells of straight code, before the calls that it replaces."""
    cdef const StraightCode *found = straight_code_of(s)
    cdef const Stretch *x
    cdef int i
    cdef dict lines = {}
    for i in range(0 if found == NULL else found.n):
        x = &found.stretches[i]
        if x.entry != NULL:
            state = "" if straight_function_of(x) != NULL else ", being compiled"
            lines[x.first] = f"  calls {x.first} to {x.end - 1}: straight code{state}"
    return lines


cdef int add_straight_positions(Segment *s, set found) except -1:
    """Add the instructions that straight code does in a segment, and in those after its guards."""
    cdef const StraightCode *straight = straight_code_of(s)
    cdef const Stretch *x
    cdef int i, k
    for i in range(0 if straight == NULL else straight.n):
        x = &straight.stretches[i]
        if straight_function_of(x) != NULL:
            for k in range(x.first, x.end):
                found.add(s.calls[k].position)
    for i in range(s.n_exits):
        add_straight_positions(s.exits[i], found)
    return 0


cdef told_segment(Segment *s):
    """Return a segment as symcomp.cvm.straight.SegmentOf."""
    cdef int i, end = 0
    cdef list calls = []
    for i in range(s.n_calls):
        if s.calls[i].section != NULL:
            end = s.calls[i].section.end
        calls.append(None if i < end else told_call(s, &s.calls[i]))
    storages = [told_storage(s, i) for i in range(s.n_storages)]
    return straight_code.SegmentOf(calls, storages, told_copies(s))


cdef told_storage(Segment *s, int number):
    cdef const Storage *storage = s.storages[number]
    cdef bytes content = None
    if storage.kind not in (INPUT, CONSTANT, ARENA, RESULT):
        return None
    if storage.kind == CONSTANT and 0 < storage.bytes <= MOST_CONSTANT_BYTES and (
        storage.object == NULL or cnp.PyArray_IS_C_CONTIGUOUS(<cnp.ndarray>storage.object)
    ):
        content = storage.address[: storage.bytes]
    is_own = number >= s.first_own_storage and storage.kind != INPUT
    return straight_code.StorageOf(storage.last, is_own, storage.kind == RESULT, content)


cdef told_call(Segment *s, const Call *call):
    """Return what a call does, as a list; None if it is of another kind."""
    if call.is_guard or call.needs_gil or call.is_python or call.gives_up_gil:
        return None
    if call.run == run_copy:
        return told_copy(call)
    if call.run == run_product:
        return told_product(<const ProductCall *>call.params)
    if call.run == run_kernel:
        return told_kernel(s, call)
    return None


cdef told_copy(const Call *call):
    cdef const CopyCall *c = <const CopyCall *>call.params
    cdef int type = call.operands[0].type, itemsize = call.operands[0].itemsize
    cdef int64_t size = size_that_is_set(c.move)
    adds = size == 0
    if not adds and size != itemsize:
        return None
    if adds and (c.move != function_that_adds(kind_of_type(type), itemsize) or dtype_of(type).kind == "c"):
        return None
    return [told_move(dtype_of(type).name, adds, place_of(&c.to), place_of(&c.from_), &c.axes)]


cdef told_move(str dtype, bint adds, to, source, const axes *a):
    cdef int i
    shape = tuple([a.length[i] for i in range(a.rank)]) if a.size else (0,)
    to_strides = tuple([a.to[i] for i in range(a.rank)]) if a.size else (0,)
    source_strides = tuple([a.from_[i] for i in range(a.rank)]) if a.size else (0,)
    return straight_code.Move(dtype, adds, to, source, shape, to_strides, source_strides)


cdef told_product(const ProductCall *c):
    cdef int64_t i
    cdef list found = []
    if c.way != BY_FEW or c.alpha_type >= 0 or c.beta_type >= 0 or c.count > MOST_STACKED:
        return None
    dtype = dtype_of(c.type).name
    if c.has_c and c.copy_of_c != NULL and c.by.wide[1][0] != 0:
        found.append(told_move(dtype, False, place_of(&c.z), place_of(&c.c), c.copy_of_c))
    sides = c.left.rows, c.left.columns, c.right.columns
    strides = (
        steps_of(&c.left, c.itemsize), steps_of(&c.right, c.itemsize),
        (c.right.columns * c.itemsize, c.itemsize),
    )
    for i in range(c.count):
        places = (
            (c.a.storage, c.a.offset + i * c.each_a), (c.b.storage, c.b.offset + i * c.each_b),
            (c.z.storage, c.z.offset + i * c.each_z),
        )
        found.append(
            straight_code.ProductRun(dtype, sides, places, strides, c.by.wide[0][0], c.by.wide[1][0])
        )
    return found


cdef told_kernel(Segment *s, const Call *call):
    cdef const KernelCall *c = <const KernelCall *>call.params
    cdef int i, axis, ndim
    cdef Lowered how = (<NativeMachine>s.code.owner).lowered[call.position]
    if how.kernel is None:
        return None
    ndim = len(how.kernel.patterns[0])
    shape, strides = [], [()] * c.n_arrays
    if not c.in_order:
        shape = [c.shape[axis] for axis in range(ndim)]
        strides = [
            tuple([c.strides[i * ndim + axis] for axis in range(ndim)]) for i in range(c.n_arrays)
        ]
    elif ndim:
        # All elements lie side by side in all arrays, none of which is stretched along its longest axis.
        stretched = [any(one) for one in zip(*how.kernel.patterns)]
        along = [not one and axis == stretched.index(False) for axis, one in enumerate(stretched)]
        shape = [c.shape[0] if one else 1 for one in along]
        strides = [
            tuple([call.operands[i].itemsize if one else 0 for one in along]) for i in range(c.n_arrays)
        ]
    places = tuple([place_of(&c.places[i]) for i in range(c.n_arrays)])
    return [straight_code.KernelRun(how.kernel, tuple(shape), tuple(strides), places)]


cdef told_copies(Segment *s):
    """Return the copies of the results of a nested program."""
    cdef int j
    cdef const ResultCopy *c
    cdef list found = []
    if not s.code.is_nested:
        return None
    for j in range(s.code.n_outputs):
        c = <const ResultCopy *>s.results[j].copy
        if c != NULL:
            dtype = dtype_of(s.results[j].operand.type).name
            found.append(told_move(dtype, False, (s.n_storages + j, 0), place_of(&c.from_), &c.axes))
    return found


cdef dtype_of(int type):
    return <object>cnp.PyArray_DescrFromType(type)


cdef place_of(const Place *place):
    return place.storage, place.offset


cdef steps_of(const Matrix *m, int itemsize):
    """Return the bytes between rows and between columns."""
    steps = m.ld * itemsize, itemsize
    return steps[::-1] if m.transposed else steps
