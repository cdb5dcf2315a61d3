# The C of plans (plan/*.h) and of native calls (calls/*.h), as the module sees it.

cdef extern from "plan/counts.h":
    ctypedef struct Counts
    ctypedef struct SegmentTimes

cdef extern from "plan/pool.h":
    ctypedef struct Pool:
        pass

    void set_to_zero(void *, size_t) noexcept nogil

cdef extern from "plan/machine_lock.h":
    void set_the_machine(PyObject *) noexcept

cdef extern from "plan/plan.h":
    void begin_runner(Runner *) noexcept
    void end_runner(Runner *) noexcept

    ctypedef struct Runner:
        PyObject *claimed
        PyObject *transaction
        bint holds_inputs
        int64_t python_calls
        bint is_timed
        int64_t timing
        PyObject *blas_limit
        bint is_limited

    ctypedef enum StorageKind:
        INPUT
        CONSTANT
        ARENA
        RESULT
        ARRAY

    ctypedef struct Layout:
        int type
        int itemsize
        int ndim
        int flags
        const int64_t *shape
        const int64_t *strides

    ctypedef struct Storage:
        int index
        StorageKind kind
        int last
        char *address
        PyObject *object
        int64_t bytes
        int64_t offset

    ctypedef struct Place:
        int storage
        int64_t offset

    ctypedef struct Operand:
        int type
        int itemsize
        int ndim
        int64_t size
        int64_t *shape
        int64_t *strides
        Storage *storage
        int64_t offset

    ctypedef struct Section:
        int first, end, threads

    ctypedef int call_function(const void *, Frame *)

    ctypedef struct Call:
        call_function *run
        void *params
        const char *name
        int position
        char needs_gil
        char gives_up_gil
        char is_guard
        char is_python, is_in_c
        short n_reads
        short n_writes
        const Operand **operands
        double work
        const Section *section

    ctypedef struct Mark:
        int position, n_storages, n_calls, n_bindings

    ctypedef struct Binding:
        int slot
        Operand *operand

    ctypedef struct Result:
        const Operand *operand
        void *copy

    ctypedef struct Segment:
        const Code *code
        StraightCode *straight
        Layout *layouts
        Result *results
        Segment **nested
        Segment *next_retired
        int n_nested
        int n_calls, n_storages, n_exits, n_marks, n_bindings
        int first_own_storage, first_own_mark
        Binding *bindings
        SegmentTimes *times
        Call *calls
        Storage **storages
        Mark *marks
        Segment **exits
        int guard, n_outcome
        int64_t *outcome
        bint is_ready
        int64_t arena_bytes
        int64_t runs, failed_guards
        double work

    ctypedef struct Frame:
        Runner *runner
        Segment *segment
        char **address
        PyObject **object

    ctypedef struct Planner:
        const Code *code
        Frame *frame
        Operand **of_slot

    ctypedef int plan_function(Planner *, const void *)

    ctypedef struct Instruction:
        int opcode, target, n_inputs, n_outputs, n_frees, n_into
        int *inputs
        int *outputs
        int *frees
        int *into
        plan_function *plan
        const void *spec
        PyObject *lowered

    ctypedef struct Code:
        int n_slots, n_instructions, n_inputs, n_outputs, n_constants, n_returned
        Instruction *instructions
        int *input_slots
        int *output_slots
        int *constant_slots
        PyObject **constants
        char *makes_array
        bint is_nested
        int *written_over
        int threads
        int64_t straight_after
        PyObject *owner

    enum:
        BEHAVED
        WRITEABLE
        MOST_AXES
        MOST_ARRAYS

cdef extern from "plan/allocated.h":
    int64_t allocated_bytes(Segment *) except -1

cdef extern from "plan/trees.h":
    ctypedef struct Given:
        char *address
        PyObject *object
        Layout layout

    enum:
        NEW_LAYOUTS
        NEW_OUTCOME
        CALL_DECLINED

    ctypedef struct Tree:
        const Code *code
        Segment **roots
        int n_roots, n_segments, most_segments
        bint keeps_all
        int64_t clock, planned, not_kept
        int64_t *reasons
        Counts *counts
        Segment *retired
        Segment *expiring
        Pool reserved

    int (*keep_values)(const Planner *) except -1
    void ask_for_program(const Tree *) noexcept
    int run_tree(Tree *, const Given *, Runner *, PyObject **) except -1
    void reserve_for_plan(Tree *)
    void pool_free(Pool *)
    void drop_segments(Tree *)
    void release_segment(Segment *)
    void drop_memory_of(Segment *)
    bint make_ready(Segment *)
    Counts *new_counts(const Code *)
    void free_counts(Counts *, const Code *)

cdef extern from "plan/straight.h":
    ctypedef struct StraightEntry

    ctypedef struct Stretch:
        int first, end
        StraightEntry *entry
        PyObject *owner
        bint copies_results

    ctypedef struct StraightCode:
        int n
        Stretch *stretches

    void (*straighten)(Segment *)
    ctypedef void straight_function(char *const *, char *const *)
    StraightCode *straight_code_of(const Segment *) noexcept
    straight_function *straight_function_of(const Stretch *) noexcept
    StraightCode *new_straight_code(Segment *, int) noexcept
    void publish_straight_code(Segment *, StraightCode *) noexcept

cdef extern from "plan/sections.h":
    bint makes_all_sections

cdef extern from "plan/array_memory.h":
    object own_copy(object)

cdef extern from "plan/arrays.h":
    bint recycles
    object object_of(const Frame *, const Operand *, int *)
    object array_copy(const Frame *, const Operand *)

cdef extern from "plan/python_calls.h":
    ctypedef struct InPython:
        PyObject *compute
        const char *name
        int several
        int copies
        int is_in_c
        const char *is_tensor

    const InPython *(*in_python)(PyObject *)
    int (*before_python)(Runner *)
    PyObject *error_state
    PyObject *errors_ignored

cdef extern from "plan/gate.h":
    ctypedef struct FitCheck:
        const void *kernel
        int n
        int *inputs

    ctypedef struct GateSpec:
        int n_arrays
        PyObject *check
        int checks_values
        int n_fits
        FitCheck *fits

    int64_t (*claim_arrays)(Frame *, int, const int *, int)
    int plan_gate(Planner *, const void *)
