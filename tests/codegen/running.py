"""Kernels called as the machines call them: by address, with pointers, lengths and strides."""

import ctypes

import numpy as np

from symcomp.codegen.c_printer import kernel_of, translation_unit
from symcomp.codegen.driver import load
from symcomp.ops.formula import Formula, Literal, Result, Step


def addresses(kernels):
    """The functions of kernels, compiled in one call."""
    names = [kernel.name for kernel in kernels]
    found = load(translation_unit(kernels), names)
    assert found is not None
    return [_function(address) for address in found]


def _function(address):
    kinds = (ctypes.POINTER(ctypes.c_void_p), *[ctypes.POINTER(ctypes.c_int64)] * 2, ctypes.c_int)
    return ctypes.CFUNCTYPE(ctypes.c_int, *kinds)(address)


def patterns_of(values):
    """Which axes of arrays are stretched: those of length 1."""
    return [tuple(n == 1 for n in value.shape) for value in values]


def call(function, formula, values, outputs=None, threads=1):
    """The results of a formula, as `Fused.perform` returns them; the function must return 0."""
    status, results = attempt(function, formula, values, outputs, threads)
    assert status == 0
    return results


def attempt(function, formula, values, outputs=None, threads=1):
    """What a function returns, and the results."""
    patterns = patterns_of(values)
    every = formula.patterns(patterns)
    shape = np.broadcast_shapes(*(value.shape for value in values))
    if outputs is None:
        outputs = []
        for result in formula.results:
            ones = every[result.value]
            lengths = [1 if one else n for one, n in zip(ones, shape, strict=True)]
            outputs.append(np.empty(lengths, formula.dtypes[result.value]))
    literals = [np.array(literal.array) for literal in formula.literals]
    arrays = [*values, *outputs]
    pointers = [array.ctypes.data for array in (*arrays, *literals)]
    strides = [step for array in arrays for step in array.strides]
    status = function(
        (ctypes.c_void_p * len(pointers))(*pointers),
        (ctypes.c_int64 * max(len(shape), 1))(*shape),
        (ctypes.c_int64 * max(len(strides), 1))(*strides),
        threads,
    )
    dropped = [result.dropped for result in formula.results]
    results = [
        z.reshape([n for a, n in enumerate(z.shape) if a not in axes])
        for z, axes in zip(outputs, dropped, strict=True)
    ]
    return status, results


def compute(formula, *values):
    """The results of a formula by a kernel of its own."""
    kernel = kernel_of(formula, patterns_of(values))
    assert kernel is not None
    (function,) = addresses([kernel])
    return call(function, formula, values)


def one_step(row, dtypes):
    """A formula of one scalar function."""
    step = Step(row, tuple(range(len(dtypes))), row.dtype(*dtypes))
    return Formula(tuple(dtypes), (), (step,), (Result(len(dtypes)),))


def literal(value, dtype):
    """A number in a formula."""
    return Literal.of(np.asarray(value, dtype))
