# cython: boundscheck=False, wraparound=False, cdivision=True, freethreading_compatible=True
"""The native machine: programs run by plans (plan/*.h), without the interpreter.

This module is the edge: it reads programs into C, wraps arguments without copying them, and makes arrays
of results. What a program does is planned and run in C; instructions without a native form are calls of
Python in the same list.
"""

cimport cython
from cpython.bytearray cimport PyByteArray_AsString
from cpython.exc cimport PyErr_CheckSignals, PyErr_Clear
from cpython.list cimport PyList_GET_ITEM, PyList_New, PyList_SET_ITEM
from cpython.mem cimport PyMem_Calloc, PyMem_Free, PyMem_Malloc, PyMem_Realloc
from cpython.object cimport PyTypeObject
from cpython.ref cimport Py_INCREF, Py_XDECREF, Py_XINCREF, PyObject
from libc.stdint cimport int32_t, int64_t, uint64_t, uintptr_t
from libc.stdlib cimport free as c_free
from libc.string cimport memcpy, memset

cimport numpy as cnp

import collections
from contextlib import nullcontext
import contextvars
import ctypes
import os
import sys
import threading
import time
import weakref

# The functions behind those of the module signal, which spend most of their time on making enums.
from _signal import SIGINT, getsignal, signal as set_handler

import numpy as np

from symcomp.config import config
from symcomp.cvm.blas_library import library_of_numpy
from symcomp.errors import ShapeError
from symcomp.lazy import import_alone, lazy_module
from symcomp.vm.machine import UNSET
from symcomp.ops.indexing.index_pattern import NEW, NOTHING, SYMBOL, Slice
from symcomp.core.tensor import TensorType
from symcomp.vm.failure import failure
from symcomp.vm.guard import is_users
from symcomp.vm.opcodes import Opcode
from symcomp.vm.tally import Counted, Event, Variant, merged

cnp.import_array()

cdef extern from "Python.h":
    void *PyCapsule_GetPointer(object capsule, const char *name) except NULL
    const char *PyCapsule_GetName(object capsule) except NULL
    void PyErr_SetRaisedException_compat "symcomp_set_raised" (object problem)
    void PyErr_Fetch(PyObject **, PyObject **, PyObject **)
    void PyErr_NormalizeException(PyObject **, PyObject **, PyObject **)
    void PyErr_Restore(PyObject *, PyObject *, PyObject *)

cdef class NativeMachine

# The values of the options, by their names: reading an attribute of ``config`` is a call of Python.
cdef dict options = config.values

# Stands for the GIL where there is none (plan/machine_lock.h).
cdef object machine_lock = object()

include "plan.pxi"
include "calls.pxi"
include "routines.pxi"
include "containers.pxi"
include "forks.pxi"
include "blas_limit.pxi"
include "programs.pxi"
include "c_function.pxi"
include "tally.pxi"
include "lowered.pxi"
include "lowered_arrays.pxi"
include "lowered_numeric.pxi"
include "sparse.pxi"
include "device_memory.pxi"
include "device_library.pxi"
include "device_plan.pxi"
include "device_pinned.pxi"
include "device_graphs.pxi"
include "device_stream.pxi"
include "device_copies.pxi"
include "device_parts.pxi"
include "device_matrices.pxi"
include "device_region.pxi"
include "device_until.pxi"
include "object_loops.pxi"
include "straight.pxi"
include "accepted.pxi"
include "entry.pxi"
include "dlpack.pxi"

# Callbacks of the C of plans.
set_the_machine(<PyObject *>machine_lock)
error_state, errors_ignored = <PyObject *>_quiet_variable, <PyObject *>_quiet_value
in_python = how_in_python
before_python = hold_back_interrupts_quietly
add_blame = note_failure
limit_blas = enter_blas_limit
wait_for_code = wait_until_optimized
claim_arrays = claim
note_step = add_step
straighten = straighten_segment
keep_values = keep_all_values
