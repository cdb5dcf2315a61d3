# The entry of a call: arguments, the run, updates.

cdef enum:
    CALLS_IN_A_ROW = 64
    # At most this many inputs are described on the C stack; others have memory of their own.
    FEW_INPUTS = 32
    # The number of results there.
    FEW_RESULTS = 32
    # In place of the number of arguments: a call takes the stored values.
    STORED = -1


cdef extern from "denormals.h":
    ctypedef uint64_t FloatControl
    enum:
        CAN_FLUSH_DENORMALS

    FloatControl flush_denormals()
    void set_float_control(FloatControl)

can_flush_denormals = bool(CAN_FLUSH_DENORMALS)

cdef extern from "Python.h":
    ctypedef object (*vectorcallfunc)(object, PyObject *const *, size_t, PyObject *)
    ctypedef object (*ternaryfunc)(object, object, object)
    ctypedef struct TypeSlots "PyTypeObject":
        ternaryfunc tp_call
        Py_ssize_t tp_vectorcall_offset
        unsigned long tp_flags
    const unsigned long Py_TPFLAGS_HAVE_VECTORCALL
    TypeSlots *Py_TYPE(object)
    Py_ssize_t PyVectorcall_NARGS(size_t)
    PyObject **PySequence_Fast_ITEMS(object)


cdef inline object owned(PyObject *result):
    """Return a new reference as an object."""
    found = <object>result
    Py_XDECREF(result)
    return found


@cython.auto_pickle(False)
cdef class Caller:
    """Calls a program. The usual case is done here; the class that derives from it has methods for the
    rest: ``_complete``, ``_check``, ``_separate``, ``_new_value`` and ``_shape``.

    Parameters
    ----------
    machine : NativeMachine or PythonMachine
    inputs : sequence of symcomp.compile.maker.Input
    updated : sequence of int
        The inputs whose cells receive the results that follow the outputs.
    n_outputs : int
    structure : None, "single", "list" or tuple of str
        What a call returns.
    trust_input : bool
        Pass arguments on unchecked.
    profile : ProfileStats or None
    calls : Calls, optional
        Counts and times the calls.
    blas_limit : BlasLimit, optional
        In force during calls.
    flushes : bool
        Take numbers below the least normal one for 0 during calls.
    """

    cdef vectorcallfunc _vectorcall
    cdef public bint trust_input
    cdef public object profile
    cdef public object _machine
    cdef NativeMachine _native      # the same, if it is one; else None
    cdef Calls _calls
    cdef BlasLimit _blas_limit
    cdef bint _flushes
    cdef bint _is_timed             # whether the instructions of the call that begins are timed
    cdef int64_t _timing            # nanoseconds that timing took in the last such call
    cdef list _cells
    cdef list _implicit_cells       # the cells of inputs that are no arguments
    cdef list _awaited_cells        # implicit cells, and the cells of arguments that are updated
    cdef list _claimed_cells
    cdef bint _single, _listed
    cdef bint _is_bare              # whether all that a call gives is one output
    cdef bint _is_new               # whether nothing has been called yet
    cdef int _n_explicit, _n_outputs, _n_updated, _n_cells, _n_inputs
    cdef Accepted *_kinds
    cdef list _sparse_values        # referenced by the kinds
    cdef int *_explicit_inputs
    cdef int *_implicit_inputs
    cdef int *_updated_inputs
    cdef int *_overwritten_inputs
    cdef int _n_overwritten

    def __init__(
        self, machine, inputs, updated, int n_outputs, structure, bint trust_input, profile,
        Calls calls=None, BlasLimit blas_limit=None, bint flushes=False
    ):
        cdef int i
        self._vectorcall = call_by_vector
        use_vectors(Py_TYPE(self))
        explicit = [i for i, spec in enumerate(inputs) if not spec.implicit]
        implicit = [i for i, spec in enumerate(inputs) if spec.implicit]
        self._machine, self.trust_input, self.profile = machine, trust_input, profile
        self._is_new = True
        self._native = machine if type(machine) is NativeMachine else None
        if self._native is not None:
            self._native.code.n_returned = n_outputs
        self._calls = calls
        self._blas_limit = blas_limit
        self._flushes = flushes
        self._cells = [spec.container for spec in inputs]
        self._implicit_cells = [self._cells[i] for i in implicit]
        self._awaited_cells = [self._cells[i] for i in sorted({*implicit, *updated})]
        self._claimed_cells = [self._cells[i] for i in machine.program.claimed]
        overwritten = [i for i, spec in enumerate(inputs) if spec.mutable]
        self._overwritten_inputs, self._n_overwritten = numbers(overwritten), len(overwritten)
        self._single = structure == "single"
        self._listed = structure == "list"
        self._n_explicit, self._n_updated = len(explicit), len(updated)
        self._n_outputs, self._n_cells = n_outputs, len(self._cells)
        self._is_bare = self._single and n_outputs == 1 and self._n_updated == 0
        self._n_inputs = self._n_cells + (len(self._claimed_cells) > 0)
        self._explicit_inputs = numbers(explicit)
        self._implicit_inputs = numbers(implicit)
        self._updated_inputs = numbers(updated)
        self._native_values = [getattr(spec.type, "native_values", None) for spec in inputs]
        self._kinds = <Accepted *>PyMem_Malloc(max(len(inputs), 1) * sizeof(Accepted))
        if self._kinds == NULL:
            raise MemoryError()
        for i, spec in enumerate(inputs):
            describe(
                &self._kinds[i], spec.type, self._native_values[i], spec.strict, spec.mutable
            )

    @property
    def repeated(self):
        """How many calls ran a kept plan from beginning to end."""
        if self._native is None:
            return 0
        return self._native.tree.clock - self._native.tree.planned

    def __dealloc__(self):
        PyMem_Free(self._explicit_inputs)
        PyMem_Free(self._implicit_inputs)
        PyMem_Free(self._updated_inputs)
        PyMem_Free(self._overwritten_inputs)
        PyMem_Free(self._kinds)

    def __call__(self, *args, **kwargs):
        return self._answer(PySequence_Fast_ITEMS(args), len(args), kwargs)

    cdef object _answer(self, PyObject *const *args, Py_ssize_t n, dict kwargs):
        """Run with n arguments; return the outputs as the user wants them."""
        cdef list results
        subset = None
        if kwargs:
            subset = kwargs.pop("output_subset", None)
        if self._is_bare and subset is None and self._calls is None:
            return self._call(args, n, kwargs, True)
        results = self._counted(args, n, kwargs)
        if subset is None and self._single:
            return results[0]
        if subset is None and self._listed:
            return results
        return self._shape(results, subset)

    cdef list _counted(self, PyObject *const *args, Py_ssize_t n, dict kwargs):
        """``_call``, counted if there is a profile, and timed if it is its turn."""
        cdef int kind
        cdef int64_t began
        cdef list results
        if self._calls is None:
            return self._call(args, n, kwargs, False)
        with cython.critical_section(machine_lock):
            kind = self._calls.next()
        if kind == UNTIMED:
            return self._call(args, n, kwargs, False)
        began = nanoseconds()
        self._is_timed, self._timing = kind == TIMED_CALLS, 0
        results = self._call(args, n, kwargs, False)
        with cython.critical_section(machine_lock):
            self._calls.add(kind, began, self._timing)
        return results

    def _repeat(self, Py_ssize_t n_calls):
        """Call with the stored values, several times; return the last outputs, as a list."""
        cdef list results = []
        cdef Py_ssize_t k
        for k in range(n_calls):
            results = self._counted(NULL, STORED, None)
            # Give Ctrl-C and other threads their turn, as loops of Python do.
            PyErr_CheckSignals()
            if k % CALLS_IN_A_ROW == 0:
                with nogil:
                    pass
        return results

    cdef object _call(self, PyObject *const *args, Py_ssize_t n, dict kwargs, bint bare):
        """Run with n arguments, or with the stored values; set the updated values.

        Returns the list of outputs; with ``bare`` the only output.
        """
        cdef PyObject *given[FEW_INPUTS]
        cdef Runner runner
        cdef list held = None
        cdef Py_ssize_t k
        cdef int i
        # The usual call: arrays that need no conversion, and no other thread writes over the stored
        # values.
        if self._native is None or self._n_inputs > FEW_INPUTS or kwargs or (
            n != STORED and n != self._n_explicit
        ):
            return self._call_with(self._collect(args, n, kwargs), bare)
        if self._is_new:
            self._is_new = False
            ask_for_program(&self._native.tree)
        for k in range(n):
            if not (self.trust_input or fits(&self._kinds[self._explicit_inputs[k]], <object>args[k])):
                held = [<object>args[i] for i in range(n)] if held is None else held
                # Python code may run here.
                held[k] = self._accepted(self._explicit_inputs[k], <object>args[k])
        begin_runner(&runner)
        try:
            if self._are_usual(given, args, n, held):
                return self._run(given, bare, &runner)
        finally:
            end_runner(&runner)
        return self._call_with(self._collect(args, n, kwargs), bare)

    cdef bint _are_usual(
        self, PyObject **given, PyObject *const *args, Py_ssize_t n, list held
    ) noexcept:
        """Read the values of all inputs; tell whether the program can run on them as they are."""
        cdef Py_ssize_t k
        cdef int i
        if any_taken(self._cells if n == STORED else self._awaited_cells):
            return False
        if n == STORED:
            for i in range(self._n_cells):
                given[i] = <PyObject *>(<Cell>self._cells[i])._value
        else:
            for i in range(self._n_cells - self._n_explicit):
                given[self._implicit_inputs[i]] = <PyObject *>(<Cell>self._implicit_cells[i])._value
        for i in range(self._n_cells, self._n_inputs):
            given[i] = <PyObject *>None
        for k in range(n):
            given[self._explicit_inputs[k]] = args[k] if held is None else <PyObject *>held[k]
        if n != STORED:
            for i in range(self._n_overwritten):
                if not may_be_overwritten(self._overwritten_inputs[i], given, self._n_cells):
                    return False
        return True

    cdef object _call_with(self, list values, bint bare):
        """Run with the values of all inputs."""
        cdef PyObject **given
        cdef Runner runner
        cdef Py_ssize_t i
        if self._native is None:
            with self._blas_limit or nullcontext():
                results = self._run_python(values)
            return results[0] if bare else results
        given = <PyObject **>PyMem_Malloc(max(len(values), 1) * sizeof(PyObject *))
        if given == NULL:
            raise MemoryError()
        begin_runner(&runner)
        try:
            # Others than the list have the values of cells: the counts of references tell who.
            for i in range(len(values)):
                given[i] = <PyObject *>values[i]
            for i in range(self._n_cells):
                if given[i] == <PyObject *>(<Cell>self._cells[i])._value:
                    values[i] = None
            return self._run(given, bare, &runner)
        finally:
            end_runner(&runner)
            PyMem_Free(given)

    cdef object _run(self, PyObject **values, bint bare, Runner *runner):
        """Run the program natively; then, if all went well, set the updated values."""
        cdef Given few[FEW_INPUTS]
        cdef Given *given = few
        cdef PyObject *few_results[FEW_RESULTS]
        cdef PyObject **results = few_results
        cdef Transaction transaction
        cdef FloatControl before = 0
        cdef int i
        if self._n_inputs > FEW_INPUTS:
            given = <Given *>PyMem_Malloc(self._n_inputs * sizeof(Given))
            if given == NULL:
                raise MemoryError()
        runner.claimed = <PyObject *>self._claimed_cells
        runner.blas_limit = NULL if self._blas_limit is None else <PyObject *>self._blas_limit
        runner.is_timed, self._is_timed = self._is_timed, False
        for i in range(self._n_inputs):
            read_given(&given[i], values[i], i < self._n_cells and self._kinds[i].is_written)
        if self._flushes:
            before = flush_denormals()
        try:
            if bare:
                run_tree(&self._native.tree, given, runner, results)
                return owned(results[0])
            if self._n_outputs + self._n_updated > FEW_RESULTS:
                results = <PyObject **>PyMem_Malloc(
                    (self._n_outputs + self._n_updated) * sizeof(PyObject *)
                )
                if results == NULL:
                    raise MemoryError()
            run_tree(&self._native.tree, given, runner, results)
            self._timing = runner.timing
            return self._take_results(results)
        finally:
            if self._flushes:
                set_float_control(before)
            if given != few:
                PyMem_Free(given)
            if results != few_results:
                PyMem_Free(results)
            if runner.is_limited:
                self._blas_limit.leave()
            if runner.transaction != NULL:
                transaction = <Transaction>runner.transaction
                Py_XDECREF(runner.transaction)
                transaction.finish()

    cdef list _take_results(self, PyObject **results):
        """Set the updated values; return the outputs. Takes over the references, even on errors."""
        cdef int k, i, at, n = self._n_outputs + self._n_updated
        cdef Cell cell
        cdef list outputs
        cdef PyObject *old
        try:
            for k in range(self._n_updated):
                i, at = self._updated_inputs[k], self._n_outputs + k
                if not fits(&self._kinds[i], <object>results[at]):
                    value = self._new_value(i, <object>results[at])
                    Py_XDECREF(results[at])
                    Py_INCREF(value)
                    results[at] = <PyObject *>value
            outputs = PyList_New(self._n_outputs)
        except BaseException:
            for at in range(n):
                Py_XDECREF(results[at])
            raise
        for at in range(self._n_outputs):
            PyList_SET_ITEM(outputs, at, <object>results[at])
        # No Python code runs until all are set: the old values live on in the results.
        for k in range(self._n_updated):
            cell, at = <Cell>self._cells[self._updated_inputs[k]], self._n_outputs + k
            old = <PyObject *>cell._value
            Py_INCREF(<object>old)
            cell._value = <object>results[at]
            Py_XDECREF(results[at])
            results[at] = old
        for at in range(self._n_outputs, n):
            Py_XDECREF(results[at])
        return outputs

    cdef list _run_python(self, list values):
        """Run the program by another machine; then, if all went well, set the updated values."""
        cdef Transaction transaction = None
        cdef PyObject **pointers = NULL
        cdef FloatControl before = 0
        cdef Py_ssize_t i
        if self._claimed_cells:
            transaction = Transaction(self._claimed_cells)
            values[self._n_cells] = transaction
        try:
            if self._flushes:
                before = flush_denormals()
            try:
                results = list(self._machine.run(values))
            finally:
                if self._flushes:
                    set_float_control(before)
            pointers = <PyObject **>PyMem_Malloc(max(len(results), 1) * sizeof(PyObject *))
            if pointers == NULL:
                raise MemoryError()
            for i in range(len(results)):
                pointers[i] = <PyObject *>results[i]
                Py_INCREF(results[i])
            with cython.critical_section(machine_lock):
                return self._take_results(pointers)
        finally:
            PyMem_Free(pointers)
            if transaction is not None:
                transaction.end()

    cdef list _stored(self):
        """Return the values of the cells, and the place of the transaction if there is one."""
        cdef Py_ssize_t i, n = len(self._cells)
        cdef list values = PyList_New(n + (len(self._claimed_cells) > 0))
        with cython.critical_section(machine_lock):
            for i in range(n):
                value = (<Cell>self._cells[i])._value
                Py_INCREF(value)
                PyList_SET_ITEM(values, i, value)
        if len(self._claimed_cells):
            Py_INCREF(None)
            PyList_SET_ITEM(values, n, None)
        # Looked at when the values are held, as in ``settled``.
        if any_taken(self._cells):
            for i in range(n):
                values[i] = None
                values[i] = settled(<Cell>self._cells[i])
        return values

    cdef list _collect(self, PyObject *const *args, Py_ssize_t n, dict kwargs):
        """Return the values of all inputs, those of n arguments checked; or all stored ones."""
        cdef list values = self._stored()
        cdef Py_ssize_t k
        cdef int i
        if n == STORED:
            return values
        for k in range(min(n, self._n_explicit)):
            i, value = self._explicit_inputs[k], <object>args[k]
            values[i] = value if self.trust_input else self._accepted(i, value)
        if n != self._n_explicit or kwargs:
            self._complete(values, n, kwargs or {})
        if self._n_overwritten:
            self._separate(values)
        return values

    cdef object _accepted(self, int i, object value):
        """Return the value as an array of the input's type."""
        cdef Accepted *kind = &self._kinds[i]
        if fits(kind, value):
            return value
        if kind.ndim == 0 and not kind.strict and cnp.PyArray_IsAnyScalar(value):
            array = np.asarray(value)
            if fits(kind, array):
                return array
        return self._check(i, value)


# -- calls without a tuple and a dict of the arguments

cdef object call_by_vector(object caller, PyObject *const *args, size_t flags, PyObject *names):
    """Call with arguments that lie side by side; the last of them have the ``names``."""
    cdef Py_ssize_t k, n = PyVectorcall_NARGS(flags)
    cdef ternaryfunc call = Py_TYPE(caller).tp_call
    if names == NULL and call == (<TypeSlots *>Caller).tp_call:
        return (<Caller>caller)._answer(args, n, None)
    # Names, or a class whose ``__call__`` was replaced.
    positional = tuple([<object>args[k] for k in range(n)])
    by_name = {}
    if names != NULL:
        by_name = {name: <object>args[n + k] for k, name in enumerate(<tuple>names)}
    return call(caller, positional, by_name)


cdef void use_vectors(TypeSlots *kind) noexcept:
    """Let the interpreter call the instances of a class by ``call_by_vector``.

    Classes that replace ``__call__`` do not; Python 3.11 lets no class of Python inherit it.
    """
    if kind.tp_call == (<TypeSlots *>Caller).tp_call:
        kind.tp_flags |= Py_TPFLAGS_HAVE_VECTORCALL


cdef void tell_offset() noexcept:
    """Tell the interpreter where instances have the address of ``call_by_vector``."""
    cdef Caller sample = Caller.__new__(Caller)
    cdef char *address = <char *>&sample._vectorcall
    (<TypeSlots *>Caller).tp_vectorcall_offset = address - <char *><PyObject *>sample


tell_offset()
