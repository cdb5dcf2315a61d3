/* A function as one of C: a nested program that any thread calls on arrays of fixed layouts, with or
   without the GIL, which it takes only where Python is needed. */
#ifndef SYMCOMP_C_FUNCTION_H
#define SYMCOMP_C_FUNCTION_H

#include <math.h>
#include "nested.h"

typedef struct {
    Tree *tree;
    Segment *root;
    int *argument;          /* of inputs: which argument each is; -1: fixed */
    char **address;         /* of fixed inputs */
    PyObject **object;      /* of fixed inputs; the object in Python holds them */
    int value, gradient;    /* the places of these results; -1: no density */
    uint64_t length;        /* of the argument, if it is one vector of float64 */
    uint64_t result_length; /* of the result, if it is another one */
    PyObject *error;        /* the exception of the last call that failed; owned */
} CFunctionData;

/* Keep the exception that is raised; the caller in C only sees that there was one. */
static void keep_error(CFunctionData *f)
{
    PyObject *type, *value, *trace, *old = f->error;
    PyErr_Fetch(&type, &value, &trace);
    PyErr_NormalizeException(&type, &value, &trace);
    if (value != NULL && trace != NULL)
        PyException_SetTraceback(value, trace);
    f->error = value;
    Py_XDECREF(type);
    Py_XDECREF(trace);
    Py_XDECREF(old);
}

static int run_c_function(CFunctionData *f, const void *const *arguments, void *const *results,
                          Runner *runner)
{
    const Code *code = f->tree->code;
    Frame *frame;
    int i, status;
    if (f->root->has_objects)
        take_gil(runner);
    frame = take_frame(f->root, runner);
    if (frame == NULL) {
        take_gil(runner);
        return no_memory();
    }
    for (i = 0; i < code->n_inputs; i++) {
        const int at = code->n_constants + i; /* in the order of plan_inputs */
        frame->address[at] =
            f->argument[i] < 0 ? f->address[i] : (char *)arguments[f->argument[i]];
        frame->object[at] = f->object[i];
    }
    frame->provided = (char **)results;
    status = run_nested(f->tree, f->root, frame, f->root->results);
    leave_nested(frame);
    if (status == DECLINED) {
        take_gil(runner);
        PyErr_SetString(PyExc_ValueError,
                        "cfunc: the results have other shapes than those of the examples");
        status = RAISED;
    }
    return status;
}

/* The function itself. 0: done; -1: an exception was kept. */
static int call_c_function(void *data, const void *const *arguments, void *const *results)
{
    CFunctionData *f = (CFunctionData *)data;
    Runner runner;
    int status;
    if (PyGILState_Check()) {
        begin_runner(&runner);
    } else {
        memset(&runner, 0, sizeof(Runner));
        runner.released = WITHOUT_GIL;
    }
    status = run_c_function(f, arguments, results, &runner);
    if (status != DONE) {
        take_gil(&runner);
        keep_error(f);
    }
    if (runner.is_ensured) {
        give_up_gil(&runner);
    } else if (runner.released != WITHOUT_GIL) {
        take_gil(&runner);
        end_runner(&runner);
    }
    return status == DONE ? 0 : -1;
}

/* The same of a function from a vector to a number and its gradient, as samplers call it. 1: these are
   not all finite. */
static int64_t call_density(uint64_t length, const double *x, double *gradient, double *value,
                            void *data)
{
    const CFunctionData *f = (const CFunctionData *)data;
    const void *arguments[1];
    void *results[2];
    uint64_t i;
    if (length != f->length)
        return -1;
    arguments[0] = x;
    results[f->value] = value;
    results[f->gradient] = gradient;
    if (call_c_function(data, arguments, results) != 0)
        return -1;
    if (!isfinite(*value))
        return 1;
    for (i = 0; i < length; i++)
        if (!isfinite(gradient[i]))
            return 1;
    return 0;
}

/* The same of a function from a vector to a vector. */
static int64_t call_map(uint64_t length, uint64_t result_length, const double *x, double *result,
                        void *data)
{
    const CFunctionData *f = (const CFunctionData *)data;
    const void *arguments[1];
    void *results[1];
    if (length != f->length || result_length != f->result_length)
        return -1;
    arguments[0] = x;
    results[0] = result;
    return call_c_function(data, arguments, results);
}

/* Plan the program on examples of its inputs. NULL: ``*status`` says why. */
static Segment *plan_c_function(Tree *tree, const Given *given, int *status)
{
    Runner runner;
    Segment *root = NULL;
    Planner *p;
    begin_runner(&runner);
    p = new_planner(tree, &runner);
    if (p == NULL) {
        *status = RAISED;
        end_runner(&runner);
        return NULL;
    }
    tree->clock++;
    count_planning(tree, NEW_LAYOUTS);
    *status = plan_constants(p);
    if (*status == DONE)
        *status = plan_inputs(p, given);
    if (*status == DONE)
        *status = plan_from(p, 0);
    if (*status == DONE && !gives_arrays(p))
        *status = DECLINED;
    if (*status == DONE) {
        root = keep_root(tree, p, given);
        if (root == NULL || set_result_copies(root) != DONE)
            *status = PyErr_Occurred() ? RAISED : DECLINED;
        else
            root->references++;
    }
    drop_planner(p);
    end_runner(&runner);
    return *status == DONE ? root : NULL;
}

#endif
