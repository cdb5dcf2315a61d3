/* Plans: what the runs of a program do on arguments of one set of layouts.

   A *storage* is a piece of memory of a run, an *operand* an array that lies in one. A *call* is a C
   function with its parameters, which name operands by places. A *segment* is the list of calls from
   the beginning of the program, or from the outcome of a guard, to its end. Segments do not change
   once they are published: any number of threads may run one at once, each in a *frame* of its own. */
#ifndef SYMCOMP_PLAN_H
#define SYMCOMP_PLAN_H

#include <Python.h>
#include <stdint.h>
#include "machine_lock.h"
#include "pool.h"

enum { MOST_AXES = 16, MOST_ARRAYS = 64, MOST_OUTCOME = 2 * MOST_AXES + 4, MOST_IN_GROUP = 4 };

/* The outcome of a call, or of planning an instruction. */
enum {
    DONE = 0,
    OTHER = 1,      /* a guard found another outcome, which is in the frame */
    DECLINED = 2,   /* cannot be done natively; nothing was changed */
    RAISED = -1     /* a Python exception is set */
};

enum { CALL = 0, COPY = 1, MOVE = 2, BRANCH = 3, JUMP = 4, SKIP_IF_SET = 5, FREE = 6 };

typedef enum {
    INPUT,      /* of an argument, a shared variable, a row of a loop: provided by the caller */
    CONSTANT,   /* of the program, or of the segment: computed from lengths and constants alone */
    ARENA,      /* of the frame, at a fixed offset */
    RESULT,     /* made in each run, for an output of the program */
    ARRAY,      /* an array of NumPy made in each run, for Python to read */
    LATE,       /* within another storage, or an array that Python made: the address is known once
                   the call that finds it has run */
    OBJECT,     /* no array: a Python object */
    GROUP       /* several operands that are one value, as a sparse matrix is its arrays */
} StorageKind;

typedef struct Operand Operand;
typedef struct Segment Segment;
typedef struct Frame Frame;
typedef struct Planner Planner;

/* A value that is several operands. Callers, and instructions that Python computes, are given an object
   made of them. */
typedef struct {
    PyObject *make;         /* called with the arrays; the instruction that made the group holds it */
    int n;
    Operand *parts[MOST_IN_GROUP];
} Group;

typedef struct Storage {
    int index;
    StorageKind kind;
    int input;              /* INPUT: which input of the program */
    int result;             /* RESULT: which output of the program; -1: none of its own */
    int first, last;        /* ARENA: the calls between which it is needed */
    int is_recycled;        /* RESULT: written into arrays that callers have dropped */
    int64_t bytes;
    int is_host;            /* RESULT: made when a run begins, as other values lie in it before it is written */
    struct Storage *host;   /* ARENA: the result in whose memory it lies; NULL: the frame's arena */
    int64_t offset;         /* ARENA: there */
    char *address;          /* CONSTANT */
    PyObject *object;       /* CONSTANT: the array or object that it is of, held by the program */
    struct Storage *base;   /* LATE: within which storage; NULL: an array of its own */
    int64_t grown;          /* LATE: bytes of the rows that it was made of, in the latest run; 0: of none */
    const Operand *whole;   /* RESULT, ARRAY: the array that is made */
    const Group *group;     /* GROUP */
} Storage;

enum {
    BEHAVED = 1,    /* aligned, in the byte order of the processor */
    WRITEABLE = 2,
    C_ORDER = 4,
    F_ORDER = 8,
    WHOLE = 16,     /* all of the array that its storage is of */
    ALONE = 32      /* no argument overlaps it: as it may be written into, or is behind the gate */
};

struct Operand {
    int type;               /* NumPy's number of the dtype; -1: no array */
    int itemsize, ndim, flags;
    Storage *storage;
    int64_t offset;         /* of the first element from the beginning of the storage, in bytes */
    int64_t size;           /* elements */
    int64_t *shape, *strides;
    uint64_t guarded_by;    /* the serial of the planner that has emitted a guard of its numbers */
    uint64_t truth_guarded_by; /* the same, of whether its number is 0 */
};

/* Where an operand is found in a frame. */
typedef struct {
    int storage;
    int64_t offset;
} Place;

typedef int call_function(const void *params, Frame *frame);

typedef struct {
    call_function *run;
    void *params;
    const char *name;
    int position;           /* of the instruction */
    char needs_gil, is_guard, is_gate, is_python;
    char is_in_c;           /* is_python: the function that is called runs no Python */
    char gives_up_gil;      /* before it: it and the following ones are worth it */
    char is_independent;    /* the call reads and writes its operands alone: any thread may run it */
    char uses_threads;      /* the call shares its own work among the threads of the pool */
    char uses_blas;         /* BLAS may share its work among threads of its own */
    short n_reads, n_writes;
    const Operand **operands;   /* operands read, then operands written */
    double work;            /* elements times operations */
    double nanoseconds;     /* estimated; 0: not yet */
    const struct Section *section;  /* beginning with this call; NULL: none */
} Call;

/* The C function that plans one instruction of a program. */
typedef int plan_function(Planner *planner, const void *spec);

typedef struct {
    int opcode, target, n_inputs, n_outputs, n_frees, n_into;
    int *inputs, *outputs, *frees, *into;
    plan_function *plan;
    const void *spec;
    PyObject *lowered;      /* owns the spec; computes declined instructions in Python */
} Instruction;

typedef struct {
    int n_slots, n_instructions, n_inputs, n_outputs, n_constants;
    int n_returned;         /* outputs that the caller gets: the first ones */
    Instruction *instructions;
    int *input_slots, *output_slots, *constant_slots;
    PyObject **constants;
    char *makes_array;      /* of slots: whether the memory is an array of NumPy (StorageKind), or 0 */
    int is_nested;          /* whether the caller provides the memory of results */
    int *written_over;      /* of each output the input whose memory it is made in; -1: none */
    int threads;            /* running independent calls side by side, at most */
    int64_t straight_after; /* the calls of a segment before it gets straight code; 0: it never does */
    PyObject *owner;        /* the machine that it is of */
} Code;

/* The state of planning where an instruction begins, or where it goes on after a checkpoint: with what
   its calls have found so far, which a guard then looks at. */
typedef struct {
    int position, n_storages, n_calls, n_bindings, n_nested;
    int in_python;          /* whether its call of Python saved it */
    const void *saved;      /* where the instruction continues; NULL: it begins */
} Mark;

/* From here on a slot has this operand; NULL: none. */
typedef struct {
    int slot;
    Operand *operand;
} Binding;

typedef enum { BY_OBJECT, BY_VIEW, BY_COPY, IN_PLACE } ResultKind;

typedef struct {
    ResultKind kind;
    const Operand *operand;
    void *copy;             /* nested: how it is copied to where it is wanted */
} Result;

/* A storage of a nested segment, and the result that is made in it. */
typedef struct {
    int storage, result;
} ResultPlace;

/* The type of a layout that is that of a group. */
enum { TYPE_OF_GROUP = -2 };

typedef struct {
    int type, itemsize, ndim;   /* type -1: no array; TYPE_OF_GROUP: a group of ndim parts */
    int flags;                  /* BEHAVED, and WRITEABLE where the program writes into it */
    const int64_t *shape, *strides;
    PyObject *make;             /* of a group */
} Layout;

struct Segment {
    Pool pool;
    Segment *parent;
    const Code *code;
    Layout *layouts;            /* of the inputs, and of the parts of groups among them, if it begins with the
                                   program */
    int n_layouts;
    int first_call;             /* of the parent's calls: the number that has run before */
    int guard, n_outcome;       /* the call of the parent that it follows, and the outcome found there */
    int64_t *outcome;
    int n_storages, n_calls, n_marks, n_bindings, n_exits, exit_capacity;
    int first_own_storage, first_own_mark;
    Storage **storages;
    Call *calls;
    Mark *marks;
    Binding *bindings;
    Segment **exits;            /* the segments that follow its guards */
    Result *results;
    int *lodgers, n_lodgers;    /* storages that lie in the memory of results */
    int *made, n_made;          /* storages whose arrays are made when a run begins */
    ResultPlace *result_places; /* nested: the storages that lie where the caller wants results */
    int n_result_places;
    int is_simple;              /* whether all calls run one after another with the GIL as it is */
    PyObject **recycled;        /* two arrays for each storage that is recycled */
    char *latest;               /* the one of both that was returned last */
    int64_t arena_bytes;
    double work, nanoseconds;   /* of all calls, one after another */
    int is_ready;               /* whether it is known where values lie, and who runs which calls */
    int n_sections;             /* of calls that run side by side */
    int holds_inputs;           /* whether others may drop the arguments while it runs */
    int has_objects;            /* whether its frames hold Python objects */
    int has_python;             /* whether one of its calls is Python's, or one before it on the way */
    int runs_python;            /* the same, of calls that are not in C */
    int uses_blas;              /* whether BLAS may use threads of its own in a call */
    struct SegmentTimes *times; /* of a profile */
    struct StraightCode *straight;  /* the functions that run instead of calls; NULL: none */
    int64_t hot_after;          /* the runs after which they are asked for */
    int references;             /* of calls in segments that are kept or planned: it is nested */
    int is_orphan;              /* whether its program is gone: the last reference frees it */
    int is_retired;             /* whether no run enters it any more */
    Segment *next_retired;
    Segment **nested;           /* segments that its own calls run */
    int n_nested;
    Frame *idle;                /* a frame that is used again */
    int64_t runs, side_runs, failed_guards, last_used;
};

struct Runner;

struct Frame {
    struct Runner *runner;
    Segment *segment;
    Frame *outer;               /* the frame of the parent segment, whose arena is in use as well */
    int n_storages;
    int first_own;              /* the storages before are those of the outer frame */
    char **address;             /* of storages */
    PyObject **object;          /* of storages; owned, except for inputs that cannot be dropped
                                   by others */
    char *arena;
    char **provided;            /* nested: where the results go */
    int has_copied;             /* whether straight code has copied them there */
    int n_outcome;
    int64_t outcome[MOST_OUTCOME];
};

/* One call of a function: whether this thread has the GIL, and what the functions that it runs share. */
typedef struct Runner {
    PyThreadState *released;    /* not NULL: the GIL is given up */
    MachineLock lock;           /* stands for the GIL where there is none */
    const int *cancelled;       /* of a thread of the pool: whether its work is still wanted; else NULL */
    PyObject *claimed;          /* a list of the cells whose arrays may be overwritten; borrowed */
    PyObject *transaction;      /* keeps others from these arrays; owned; NULL: not begun */
    int holds_inputs;           /* whether the call has references of its own to its inputs */
    int64_t first_step;         /* of the loop that runs next: those before it have been run */
    int has_ended;              /* and the last one said that it is the last */
    double work_since_signals;
    int64_t python_calls;
    int is_timed;               /* whether the calls of this run are timed */
    int64_t timing;             /* nanoseconds that this took */
    int is_ensured;             /* the GIL was taken by a thread that began without it */
    PyGILState_STATE ensured;   /* the state to release then */
    PyObject *blas_limit;       /* how many threads BLAS may use; borrowed; NULL: as many as always */
    int is_limited;             /* whether the limit is in force */
} Runner;

/* Set by the module: let BLAS use as many threads as a limit says, or again as many as before. */
static int (*limit_blas)(PyObject *limit, int enter);

/* The state of a thread that has not the GIL when a run begins, and may be unknown to Python. */
#define WITHOUT_GIL ((PyThreadState *)-1)

/* Count, without the time of a locked instruction: of two threads at once one may not be counted. */
static inline void add_one(int64_t *count)
{
    __atomic_store_n(count, __atomic_load_n(count, __ATOMIC_RELAXED) + 1, __ATOMIC_RELAXED);
}

static inline char *data_at(const Frame *frame, const Place *place)
{
    return frame->address[place->storage] + place->offset;
}

static inline Place placed(const Operand *x)
{
    const Place found = {x->storage->index, x->offset};
    return found;
}

/* A call begins in a thread that has the GIL. */
static inline void begin_runner(Runner *runner)
{
    memset(runner, 0, sizeof(Runner));
    lock_machine(&runner->lock);
}

/* A call ends; its thread has the GIL. */
static inline void end_runner(Runner *runner)
{
    unlock_machine(&runner->lock);
}

static inline void give_up_gil(Runner *runner)
{
    if (runner->released != NULL)
        return;
    if (runner->is_ensured) {
        runner->is_ensured = 0;
        runner->released = WITHOUT_GIL;
        unlock_machine(&runner->lock);
        PyGILState_Release(runner->ensured);
    } else {
        runner->released = PyEval_SaveThread();
    }
}

static inline void take_gil(Runner *runner)
{
    PyThreadState *state = runner->released;
    if (state == NULL)
        return;
    runner->released = NULL;
    if (state == WITHOUT_GIL) {
        runner->ensured = PyGILState_Ensure();
        lock_machine(&runner->lock);
        runner->is_ensured = 1;
    } else {
        PyEval_RestoreThread(state);
    }
}

/* Whether n numbers are equal; of none, the addresses may be NULL, as those of arrays without axes are. */
static inline int same_numbers(const int64_t *x, const void *y, int n)
{
    return n == 0 || memcmp(x, y, (size_t)n * sizeof(int64_t)) == 0;
}

/* Add a number to a hash. */
static inline uint64_t mixed(uint64_t hash, uint64_t value)
{
    hash = (hash ^ value) * UINT64_C(0xD6E8FEB86659FD93);
    return hash ^ hash >> 32;
}

/* Below this much work (elements times operations), giving up the GIL costs more than it brings. */
static const double WORTH_RELEASING = 50000;

#endif
