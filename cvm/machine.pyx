# cython: boundscheck=False, wraparound=False, cdivision=True
"""The native machine: the loop over a program's instructions, in C.

The store is an array of object pointers, one for each slot, owned by the call: calls from several
threads do not meet. What an instruction does is an ``Action`` (``actions.pxi``); kernels and
products release the GIL where the work is worth it.
"""

cimport cython
from cpython.bytearray cimport PyByteArray_AsString
from cpython.exc cimport PyErr_CheckSignals
from cpython.list cimport PyList_New, PyList_SET_ITEM
from cpython.mem cimport (
    PyMem_Calloc,
    PyMem_Free,
    PyMem_Malloc,
    PyMem_RawFree,
    PyMem_RawMalloc,
    PyMem_Realloc,
)
from cpython.object cimport PyObject_IsTrue, PyTypeObject
from cpython.ref cimport Py_INCREF, Py_XDECREF, Py_XINCREF, PyObject
from libc.stdint cimport int32_t, int64_t, uint64_t, uintptr_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcmp, memcpy, memset

cimport numpy as cnp

import contextvars
import ctypes
import os
import threading
import time

# What the functions of the module signal call; those spend most of their time on making enums.
from _signal import SIGINT, getsignal, signal as set_handler

import numpy as np

from symcomp.cvm.blas_library import library_of_numpy
from symcomp.lazy import import_alone
from symcomp.core.tensor import TensorType
from symcomp.ops.diagonal import Diagonal
from symcomp.ops.convert import Stack
from symcomp.ops.join import Split
from symcomp.ops.shape import Reshape
from symcomp.vm.failure import failure
from symcomp.vm.machine import UNSET
from symcomp.vm.opcodes import Opcode
from symcomp.vm.tally import Counted, Event, Variant, frames_of, inner_tally, watched

cnp.import_array()

include "actions.pxi"
include "ufuncs.pxi"
include "views.pxi"
include "moves.pxi"
include "join.pxi"
include "places.pxi"
include "lines.pxi"
include "order.pxi"
include "blas.pxi"
include "products.pxi"
include "decompositions.pxi"
include "inspected.pxi"
include "cells.pxi"
include "forks.pxi"

cdef enum:
    CALL = 0
    COPY = 1
    MOVE = 2
    BRANCH = 3
    JUMP = 4
    SKIP_IF_SET = 5
    FREE = 6

# So many values lie on the stack of C; of more, the store is allocated for each call.
cdef enum:
    FEW_SLOTS = 64

assert [int(code) for code in Opcode] == [CALL, COPY, MOVE, BRANCH, JUMP, SKIP_IF_SET, FREE]


cdef struct Step:
    int opcode
    int target
    int n_inputs
    int n_outputs
    int n_frees
    int *inputs     # in NativeMachine._numbers; the outputs follow
    int *frees
    PyObject *action


include "tally.pxi"


cdef class Replay


@cython.final
@cython.auto_pickle(False)
cdef class NativeMachine:
    """Runs a program. Has the interface of ``PythonMachine`` and gives the same results.

    Parameters
    ----------
    program : Program
    actions : list of Action or None
        For each instruction that is a CALL or COPY, what does it.
    keep : bool
        Hold on to the values of the last call until ``free`` is called.
    """

    cdef readonly object program
    cdef readonly object kept
    cdef readonly object failure    # what is known of the last call that failed
    cdef list _actions
    cdef list _constants
    cdef PyObject **_template
    cdef bint _keep
    cdef bint is_native     # whether kernels, products and views are all there is
    cdef bint is_replayable     # whether calls may be recorded and replayed
    cdef int _n_slots, _n_steps, _n_constants
    cdef int *_constant_slots
    cdef Step *_steps
    cdef int *_numbers
    cdef int *_input_slots
    cdef int *_output_slots
    cdef int *_made         # the slots that instructions set
    cdef int _n_inputs, _n_outputs, _n_made

    def __cinit__(self, program, list actions, bint keep=False):
        cdef int i, k, at = 0
        self.program = program
        self.kept = None
        self._actions = actions
        self._keep = keep
        self.is_native = all(
            recordable(action, step)
            for action, step in zip(actions, program.instructions, strict=True)
        )
        self.is_replayable = not keep and all(
            replayable(action, step)
            for action, step in zip(actions, program.instructions, strict=True)
        )
        self._n_slots = len(program.variables)
        self._constants = list(program.constants.values())
        self._n_constants = len(self._constants)
        self._constant_slots = numbers([*program.constants])
        self._template = <PyObject **>PyMem_Calloc(max(self._n_slots, 1), sizeof(PyObject *))
        if self._template == NULL:
            raise MemoryError()
        for i in range(self._n_constants):
            self._template[self._constant_slots[i]] = <PyObject *>(<object>self._constants[i])
        code = program.instructions
        self._n_steps = len(code)
        made = sorted({slot for step in code for slot in step.outputs})
        self._made, self._n_made = numbers(made), len(made)
        self._n_inputs, self._n_outputs = len(program.inputs), len(program.outputs)
        total = self._n_inputs + self._n_outputs
        total += sum(len(s.inputs) + len(s.outputs) + len(s.frees) for s in code)
        self._numbers = <int *>PyMem_Malloc(max(total, 1) * sizeof(int))
        self._steps = <Step *>PyMem_Malloc(max(self._n_steps, 1) * sizeof(Step))
        if self._numbers == NULL or self._steps == NULL:
            raise MemoryError()
        self._input_slots = self._numbers
        at = self._write(program.inputs, 0)
        self._output_slots = self._numbers + at
        at = self._write(program.outputs, at)
        for i in range(self._n_steps):
            step = code[i]
            self._steps[i].opcode = int(step.opcode)
            self._steps[i].target = step.target
            self._steps[i].n_inputs = len(step.inputs)
            self._steps[i].n_outputs = len(step.outputs)
            self._steps[i].n_frees = len(step.frees)
            self._steps[i].inputs = self._numbers + at
            at = self._write(step.inputs, at)
            at = self._write(step.outputs, at)
            self._steps[i].frees = self._numbers + at
            at = self._write(step.frees, at)
            self._steps[i].action = <PyObject *>actions[i]

    def __dealloc__(self):
        PyMem_Free(self._template)
        PyMem_Free(self._constant_slots)
        PyMem_Free(self._numbers)
        PyMem_Free(self._steps)
        PyMem_Free(self._made)

    cdef int _write(self, slots, int at) except -1:
        for slot in slots:
            self._numbers[at] = slot
            at += 1
        return at

    cpdef list run(self, values, observe=None):
        """Run the program on the values of its inputs; return those of its outputs.

        Parameters
        ----------
        values : sequence
        observe : callable, optional
            Called after every instruction with its position, itself, and the seconds it took.
        """
        tally = inner_tally(self)
        if tally is not None:
            return self._counted_run(values, tally)
        return self.execute(values, observe, None, None)

    def new_tally(self):
        """What ``counted`` counts in."""
        kinds = [None if a is None else type(a).__name__ for a in self._actions]
        kernels = [a if isinstance(a, KernelCall) else None for a in self._actions]
        return Tally(self.program, tuple(kinds), tuple(kernels))

    cdef list _counted_run(self, values, Tally tally):
        """``run``, and count what is done."""
        cdef int64_t began
        cdef Clock clock
        cdef int kind = next_run(&tally.sampler)
        if kind == UNTIMED:
            return self.execute(values, None, tally, None)
        began = nanoseconds()
        clock = Clock()
        results = self.execute(values, None, tally, clock if kind == FULL else None)
        was_timed(&tally.sampler, kind, nanoseconds() - began, clock.overhead)
        return results

    cdef list execute(
        self, values, observe, Tally tally, Clock clock, Replay replay=None, int n_outputs=0,
        int *updated=NULL
    ):
        """Run the program; with ``replay``, record what is done (see ``Replay.complete``)."""
        cdef int i
        cdef list results
        cdef PyObject *few[FEW_SLOTS]
        cdef PyObject **store = few
        if len(values) != self._n_inputs:
            raise ValueError(f"the program takes {self._n_inputs} values, got {len(values)}")
        if self._n_slots > FEW_SLOTS:
            store = self.new_store()
        else:
            self.fill(store)
        try:
            for i in range(self._n_inputs):
                put(store, self._input_slots[i], values[i])
            if replay is None:
                self._guarded(store, observe, tally, clock)
            else:
                replay.record(store)
                replay.complete(store, n_outputs, updated)
            if self._keep:
                self.kept = contents(store, self._n_slots)
            results = PyList_New(self._n_outputs)
            for i in range(self._n_outputs):
                Py_INCREF(<object>store[self._output_slots[i]])
                PyList_SET_ITEM(results, i, <object>store[self._output_slots[i]])
            return results
        finally:
            if store == few:
                self.empty(store)
            else:
                self.drop_store(store)

    cdef void fill(self, PyObject **store) noexcept:
        """Set the constants; the other slots have no value."""
        cdef int i
        memcpy(store, self._template, self._n_slots * sizeof(PyObject *))
        for i in range(self._n_constants):
            Py_INCREF(<object>store[self._constant_slots[i]])

    cdef void empty(self, PyObject **store) noexcept:
        """Let go of all values."""
        cdef int i
        for i in range(self._n_slots):
            Py_XDECREF(store[i])

    cdef PyObject **new_store(self) except NULL:
        """A store with the constants alone."""
        cdef size_t size = max(self._n_slots, 1) * sizeof(PyObject *)
        cdef PyObject **store = <PyObject **>PyMem_Malloc(size)
        if store == NULL:
            raise MemoryError()
        self.fill(store)
        return store

    cdef void drop_store(self, PyObject **store) noexcept:
        self.empty(store)
        PyMem_Free(store)

    cdef void clear(self, PyObject **store):
        """Unset what instructions set."""
        cdef int i
        cdef PyObject *value
        for i in range(self._n_made):
            value = store[self._made[i]]
            store[self._made[i]] = NULL
            Py_XDECREF(value)

    def free(self):
        """Drop the values kept from the last call."""
        self.kept = None

    cdef int _guarded(self, PyObject **store, observe, Tally tally, Clock clock) except -1:
        cdef int position = 0
        cdef bint as_before = tally is not None and tally.plain and clock is None
        try:
            if as_before:
                self._counted_as_before(store, &position, tally)
            elif tally is not None:
                self._counted(store, &position, tally, clock)
            elif observe is None:
                self._loop(store, &position)
            else:
                self._observed(store, &position, observe)
        except BaseException as problem:
            if as_before:
                tally.ended_at(position)
            if isinstance(problem, Exception):
                self.blame(problem, store, position)
            raise
        return 0

    cdef int blame(self, problem, PyObject **store, int position) except -1:
        """Add to an exception what was computed when it was raised."""
        step = self.program.instructions[position]
        found = contents(store, self._n_slots)
        self.failure = failure(problem, self.program, position, [found[i] for i in step.inputs])
        return 0

    cdef int _loop(self, PyObject **store, int *position) except -1:
        while position[0] < self._n_steps:
            position[0] = self._do(store, position[0])
        return 0

    cdef int _counted(self, PyObject **store, int *position, Tally tally, Clock clock) except -1:
        cdef int at
        cdef int64_t *entries = symcomp_entries()
        cdef int64_t before, first = entries[0]
        cdef bint went
        tally.flush()
        if clock is not None:
            clock.restart()
        while position[0] < self._n_steps:
            at = position[0]
            before = entries[0]
            tally.counts[at] += 1
            if clock is None and tally.counts[at] > tally.watched[at]:
                position[0] = self._do(store, at)
            else:
                position[0] = self._watched(store, at, tally, clock)
            went = entries[0] != before
            tally.in_python[at] += went
            tally.went[at] = went
        tally.settle(entries[0] - first)
        return 0

    cdef int _counted_as_before(self, PyObject **store, int *position, Tally tally) except -1:
        """Do instructions that all run, as often in Python as in the last run that was counted one
        by one.
        """
        cdef int64_t *entries = symcomp_entries()
        cdef int64_t first = entries[0]
        tally.repeats += 1
        self._loop(store, position)
        if entries[0] - first != tally.entries:
            tally.plain = tally.may_be_plain = False
        return 0

    cdef int _watched(self, PyObject **store, int at, Tally tally, Clock clock) except -1:
        """Do an instruction that is timed, or one of the first, or that contains programs."""
        cdef int following
        cdef bint inner = tally.watched[at] == CONTAINS_PROGRAMS
        if clock is None and tally.counts[at] <= INSTRUCTION_TIMED:
            clock = Clock()
        if clock is not None:
            clock.before(tally, at, store, &self._steps[at])
        following = self._do_within(store, at, tally) if inner else self._do(store, at)
        if clock is not None:
            clock.after(tally, at, store, &self._steps[at])
        return following

    cdef int _do_within(self, PyObject **store, int at, Tally tally) except -1:
        """Do an instruction that runs other programs; these are counted, too."""
        outer = watched.frame
        watched.frame = tally.frames[at]
        try:
            return self._do(store, at)
        finally:
            watched.frame = outer

    cdef int _observed(self, PyObject **store, int *position, observe) except -1:
        code = self.program.instructions
        started = time.perf_counter()
        while position[0] < self._n_steps:
            at = position[0]
            position[0] = self._do(store, at)
            now = time.perf_counter()
            before_python()
            observe(at, code[at], now - started)
            started = now
        return 0

    cdef int _do(self, PyObject **store, int position) except -1:
        """Do one instruction; return the position of the next."""
        cdef Step *step = &self._steps[position]
        cdef int following = position + 1
        cdef int i, slot
        cdef PyObject *value
        if step.opcode <= COPY:
            (<Action>step.action).run(store)
        else:
            following = self.go(store, position)
        for i in range(step.n_frees):
            slot = step.frees[i]
            value = store[slot]
            store[slot] = NULL
            Py_XDECREF(value)
        return following

    cdef int go(self, PyObject **store, int position) except -1:
        """Do an instruction that computes nothing; return the position of the next."""
        cdef Step *step = &self._steps[position]
        cdef int i, slot
        cdef PyObject *value
        if step.opcode == MOVE:
            for i in range(step.n_inputs):
                value = store[step.inputs[i]]
                Py_XINCREF(value)
                slot = step.inputs[step.n_inputs + i]
                Py_XDECREF(store[slot])
                store[slot] = value
        elif step.opcode == BRANCH:
            if not PyObject_IsTrue(<object>store[step.inputs[0]]):
                return step.target
        elif step.opcode == SKIP_IF_SET:
            if store[step.inputs[0]] != NULL:
                return step.target
        elif step.opcode == JUMP:
            return step.target
        return position + 1


cdef list contents(PyObject **store, int n):
    """The values of all slots."""
    cdef int i
    return [UNSET if store[i] == NULL else <object>store[i] for i in range(n)]


include "frozen.pxi"
include "recording.pxi"
include "draws.pxi"
include "windows.pxi"
include "pools.pxi"
include "steps.pxi"
include "replay.pxi"
include "loop.pxi"
include "caller.pxi"
