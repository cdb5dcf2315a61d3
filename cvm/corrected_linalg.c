/* The module `symcomp.ops.linalg._corrected_linalg`: the corrected solutions of refined_solve.h, for arrays of
   Python. Functions take stacks of float64 matrices in C order, (count, rows, columns); arguments are checked,
   so that a wrong call raises and reads nothing outside of its arrays. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include "linalg/refined_solve.h"

static PyObject *set_routines(PyObject *self, PyObject *args)
{
    static const enum routine places[] = {GEMM, TRSM, GETRF};
    PyObject *given[3];
    (void)self;
    if (!PyArg_ParseTuple(args, "OOO", &given[0], &given[1], &given[2]))
        return NULL;
    for (int i = 0; i < 3; i++) {
        void *address = PyCapsule_GetPointer(given[i], PyCapsule_GetName(given[i]));
        if (!address)
            return NULL;
        routine_of[places[i]][DOUBLE] = address;
    }
    Py_RETURN_NONE;
}

/* Get a stack of `count` matrices of these sides; a side of -1 is any. Returns -1 with an exception set. */
static int get_stack(PyObject *array, int writable, const char *name, int64_t count, int64_t rows,
                     int64_t columns, Py_buffer *view, struct stack *stack)
{
    const int flags = PyBUF_C_CONTIGUOUS | PyBUF_FORMAT | (writable ? PyBUF_WRITABLE : 0);
    if (PyObject_GetBuffer(array, view, flags) < 0)
        return -1;
    const Py_ssize_t *shape = view->shape;
    if (view->ndim != 3 || strcmp(view->format, "d") || (count >= 0 && shape[0] != count) ||
        (rows >= 0 && shape[1] != rows) || (columns >= 0 && shape[2] != columns)) {
        PyErr_Format(PyExc_ValueError, "%s: not a stack of float64 matrices of matching shapes", name);
        PyBuffer_Release(view);
        return -1;
    }
    const int64_t along = sizeof(double), down = shape[2] * along;
    *stack = (struct stack){view->buf, shape[1], shape[2], down, along, shape[1] * down};
    return 0;
}

/* The arrays of a function. The first input has square matrices, whose side is SIDE; EQUAL is any number of
   columns, the same for all arrays. */
enum { SIDE = -2, EQUAL = -3 };
struct signature {
    const char *name;
    decompose *function;
    int n_given, n_found;
    int64_t rows[MOST_INPUTS], columns[MOST_INPUTS]; /* of inputs after the first, then of outputs */
};

static const struct signature SIGNATURES[] = {
    {"inverse", refined_solve, 1, 1, {SIDE}, {SIDE}},
    {"solve", refined_solve, 2, 1, {SIDE, SIDE}, {EQUAL, EQUAL}},
    {"log_determinant", refined_log_determinant, 1, 2, {1, 1}, {1, 1}},
    {"inverse_form", inverse_form, 3, 1, {SIDE, SIDE, 1}, {1, 1, 1}},
};

static const struct signature *signature_named(const char *name)
{
    for (size_t i = 0; i < sizeof SIGNATURES / sizeof *SIGNATURES; i++)
        if (!strcmp(SIGNATURES[i].name, name))
            return &SIGNATURES[i];
    PyErr_Format(PyExc_ValueError, "there is no function %s", name);
    return NULL;
}

/* Get all arrays of a call; returns how many were got, fewer with an exception set. */
static int get_arrays(const struct signature *s, PyObject *const *arrays, Py_buffer *views,
                      struct decomposition *d)
{
    int64_t n = -1, count = -1, equal = -1;
    for (int i = 0; i < s->n_given + s->n_found; i++) {
        const int is_found = i >= s->n_given;
        struct stack *stack = is_found ? &d->found[i - s->n_given] : &d->given[i];
        int64_t rows = i ? s->rows[i - 1] : -1, columns = i ? s->columns[i - 1] : -1;
        rows = rows == SIDE ? n : rows;
        columns = columns == SIDE ? n : columns == EQUAL ? equal : columns;
        if (get_stack(arrays[i], is_found, s->name, count, rows, columns, &views[i], stack) < 0)
            return i;
        if (i == 0) {
            n = stack->rows, count = views[0].shape[0];
            if (n != stack->columns || n < 1) {
                PyErr_Format(PyExc_ValueError, "%s: matrices of %lld rows are not square", s->name,
                             (long long)n);
                return 1;
            }
        } else if (s->columns[i - 1] == EQUAL) {
            equal = stack->columns;
        }
    }
    d->count = count;
    return s->n_given + s->n_found;
}

/* run(name, *inputs, *outputs) -> bool: whether a result was found; if not, a matrix is singular. Inputs are
   finite; LAPACK is not called for others. */
static PyObject *run(PyObject *self, PyObject *const *args, Py_ssize_t n_args)
{
    struct decomposition d = {.kind = DOUBLE};
    Py_buffer views[MOST_INPUTS + MOST_OUTPUTS];
    const struct signature *s;
    const char *name;
    int outcome = FAILED;
    (void)self;
    if (n_args < 1 || !(name = PyUnicode_AsUTF8(args[0])) || !(s = signature_named(name)))
        return PyErr_Occurred() ? NULL : PyErr_Format(PyExc_TypeError, "run takes a name and arrays");
    if (n_args != 1 + s->n_given + s->n_found)
        return PyErr_Format(PyExc_TypeError, "%s takes %d arrays, got %zd", name,
                            s->n_given + s->n_found, n_args - 1);
    if (!routine_of[GETRF][DOUBLE])
        return PyErr_Format(PyExc_RuntimeError, "call set_routines first");
    d.n_given = s->n_given;
    const int got = get_arrays(s, args + 1, views, &d);
    if (got == n_args - 1) {
        Py_BEGIN_ALLOW_THREADS
        outcome = call_decomposition(s->function, &d);
        Py_END_ALLOW_THREADS
    }
    for (int i = 0; i < got; i++)
        PyBuffer_Release(&views[i]);
    if (outcome == NO_MEMORY)
        return PyErr_NoMemory();
    return PyErr_Occurred() ? NULL : PyBool_FromLong(outcome == FOUND);
}

static PyMethodDef METHODS[] = {
    {"run", (PyCFunction)(void (*)(void))run, METH_FASTCALL, NULL},
    {"set_routines", set_routines, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static int fill(PyObject *module) { return PyModule_AddIntMacro(module, LARGEST_REFINED); }

static PyModuleDef_Slot SLOTS[] = {
    {Py_mod_exec, (void *)fill},
#ifdef Py_mod_gil
    {Py_mod_gil, Py_MOD_GIL_NOT_USED},
#endif
    {0, NULL},
};

static struct PyModuleDef DEFINITION = {
    PyModuleDef_HEAD_INIT, .m_name = "_corrected_linalg", .m_methods = METHODS, .m_slots = SLOTS,
};

PyMODINIT_FUNC PyInit__corrected_linalg(void) { return PyModuleDef_Init(&DEFINITION); }
