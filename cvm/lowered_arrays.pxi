# Lowered instructions that view, move, join, index and sort arrays.

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
    """Lower an input passed on if conditions hold: (kind, i, a, j, b), see calls/conditions.h."""
    cdef Lowered found = new_lowered(step, "check", plan_pass, sizeof(PassSpec))
    cdef PassSpec *spec = <PassSpec *>found.spec
    cdef int k
    kinds = {
        "length": LENGTH_IS, "lengths": LENGTHS_EQUAL, "numbers": NUMBERS_EQUAL, "true": IS_TRUE,
        "false": IS_FALSE, "below": BELOW, "multiple": MULTIPLE_OF,
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
        if kind == "multiple":
            checked(b, 1, LARGEST_OF_WINDOWS, "the unit")
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


def rows(step, str which, int64_t more):
    """Lower the "first" rows of an array, or one that begins ("leading") or ends ("last") with its rows.

    A number among the inputs says how many; the last ones are ``more`` than that.
    """
    cdef Lowered found = new_lowered(step, "rows", plan_rows, sizeof(RowsSpec))
    cdef RowsSpec *spec = <RowsSpec *>found.spec
    spec.kind = {"first": TAKE_FIRST, "leading": PUT_FIRST, "last": PUT_LAST}[which]
    spec.more = more
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
