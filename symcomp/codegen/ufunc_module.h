/* The module of the ufuncs. ufunc_module.py writes the array UFUNCS and VERSION before this. */

/* For each number of arguments a row of types for each loop; arguments and result have one type. */
static char TYPES[MOST_ARGUMENTS][KINDS * (MOST_ARGUMENTS + 1)];
static void *NO_DATA[KINDS];

static void fill_types(void)
{
    const char kinds[KINDS] = {NPY_HALF, NPY_FLOAT, NPY_DOUBLE};
    for (int arguments = 1; arguments <= MOST_ARGUMENTS; arguments++)
        for (int place = 0; place < KINDS * (arguments + 1); place++)
            TYPES[arguments - 1][place] = kinds[place / (arguments + 1)];
}

/* Returns -1 with an exception set if a ufunc cannot be made. */
static int add_ufuncs(PyObject *module)
{
    for (size_t k = 0; k < sizeof UFUNCS / sizeof *UFUNCS; k++) {
        struct ufunc *u = UFUNCS + k;
        PyObject *made = PyUFunc_FromFuncAndData(
            u->loops, NO_DATA, TYPES[u->arguments - 1], KINDS, u->arguments, 1, PyUFunc_None,
            u->name, NULL, 0);
        int failed = !made || PyModule_AddObjectRef(module, u->name, made) < 0;
        Py_XDECREF(made);
        if (failed)
            return -1;
    }
    return PyModule_AddStringConstant(module, "VERSION", VERSION);
}

static struct PyModuleDef DEFINITION = {PyModuleDef_HEAD_INIT, "_compiled_ufuncs", NULL, -1};

PyMODINIT_FUNC PyInit__compiled_ufuncs(void)
{
    import_array();
    import_umath();
    fill_types();
    PyObject *module = PyModule_Create(&DEFINITION);
    if (module && add_ufuncs(module) < 0)
        Py_CLEAR(module);
    return module;
}
