"""Kernels called as the machines call them: by address, with pointers, lengths and strides.

What the early code of a kernel gives is compared with what the optimized code gives, bit by bit.
"""

import ctypes
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from symcomp.codegen import prebuilt
from symcomp.codegen.compiler.driver import load, load_all, target
from symcomp.codegen.compiler.early import OF_VECTORS
from symcomp.codegen.kernel import kernel_of
from symcomp.codegen.printers.c_file import translation_unit
from symcomp.config import config
from symcomp.cvm.machine import share_address
from symcomp.ops.formulas.formula import Formula, Literal, Result, Step


class Team(ctypes.Structure):
    """``struct team`` of ``nest.h``: the threads that share large loops."""

    _fields_ = (
        ("threads", ctypes.c_int), ("run", ctypes.c_void_p),
        ("order", ctypes.POINTER(ctypes.c_void_p)), ("take", ctypes.c_void_p),
        ("owner", ctypes.c_void_p), ("bytes", ctypes.POINTER(ctypes.c_int64)),
        ("memory", ctypes.c_void_p),
    )  # fmt: skip


TAKE = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)


def keep_order(function, team, shape, strides):
    """Have a function keep what it derives from lengths and strides; return the memory of that, and
    the memory that it needs.
    """
    memory, wanted = [], ctypes.c_int64()

    def take(_owner, size):
        memory.append((ctypes.c_int64 * (size // 8 + 1))())
        return ctypes.addressof(memory[-1])

    taker = TAKE(take)
    team.take = ctypes.cast(taker, ctypes.c_void_p)
    team.order, team.bytes = ctypes.pointer(ctypes.c_void_p()), ctypes.pointer(wanted)
    assert function(None, shape, strides, team) == 0
    memory.append(np.empty(wanted.value + 1, np.uint8))
    team.memory = memory[-1].ctypes.data
    return memory


class Versions(NamedTuple):
    """The functions of a kernel."""

    optimized: Callable
    early: Callable | None

    def __call__(self, *arguments):
        return self.optimized(*arguments)


def addresses(kernels, own_loops=False):
    """Compile kernels in two calls: the ones with early code together; return their functions.

    Optimized files have the loops around bodies in them, if wanted; early ones call the installed
    loops, as files of users do.
    """
    shared = "shared" if prebuilt.shares_loops() else "own"
    loops = "own" if own_loops else shared
    early = [k for k in kernels if OF_VECTORS not in translation_unit([k])]
    found = {}
    for some in (early, [k for k in kernels if k not in early]):
        file = translation_unit(some, loops), [k.name for k in some]
        addresses = load(*file) if some else []
        assert addresses is not None
        functions = [_function(address) for address in addresses]
        others = [None] * len(some)
        if some is early and some and "-fsanitize" not in config.cflags:
            early_file = translation_unit(some, shared), file[1]
            (addresses,) = load_all([early_file], target(early=len(early_file[0])))
            others = [_function(address) for address in addresses]
        found |= {k.name: Versions(*f) for k, *f in zip(some, functions, others, strict=True)}
    return [found[k.name] for k in kernels]


def _function(address):
    lengths = ctypes.POINTER(ctypes.c_int64)
    kinds = (ctypes.POINTER(ctypes.c_void_p), lengths, lengths, ctypes.POINTER(Team))
    return ctypes.CFUNCTYPE(ctypes.c_int, *kinds)(address)


def patterns_of(values):
    """Return which axes of arrays are stretched: those of length 1."""
    return [tuple(n == 1 for n in value.shape) for value in values]


def call(function, formula, values, outputs=None, threads=1):
    """Return the results of a formula as `Fused.perform` does; the function must return 0."""
    status, results = attempt(function, formula, values, outputs, threads)
    assert status == 0
    return results


def attempt(function, formula, values, outputs=None, threads=1, keeper=None):
    """Return the status of a function, and the results; 0 threads: without a team.

    Optimized code passes over the axes in the order that ``keeper``, its early code, has derived;
    early code derives it when it is called.
    """
    patterns = patterns_of(values)
    every = formula.patterns(patterns)
    shape = np.broadcast_shapes(*(value.shape for value in values))
    if outputs is None:
        outputs = []
        for result in formula.results:
            ones = every[result.value]
            lengths = [1 if one else n for one, n in zip(ones, shape, strict=True)]
            outputs.append(np.empty(lengths, formula.dtypes[result.value]))
        if isinstance(function, Versions) and function.early is not None:
            others = [*map(np.empty_like, outputs)]
            early = attempt(function.early, formula, values, others, threads)
            found = attempt(function.optimized, formula, values, outputs, threads, function.early)
            assert found[0] == early[0]
            for z, other in zip(found[1], early[1], strict=True) if found[0] == 0 else ():
                assert_same_bits(z, other)
            return found
    literals = [np.array(literal.array) for literal in formula.literals]
    arrays = [*values, *outputs]
    pointers = [array.ctypes.data for array in (*arrays, *literals)]
    strides = [step for array in arrays for step in array.strides]
    lengths = (ctypes.c_int64 * max(len(shape), 1))(*shape)
    steps = (ctypes.c_int64 * max(len(strides), 1))(*strides)
    team = Team(threads, share_address) if threads else None
    kept = keep_order(keeper or function, team, lengths, steps) if team is not None else None
    if team is not None and not keeper:
        team.order = None
    status = function((ctypes.c_void_p * len(pointers))(*pointers), lengths, steps, team)
    del kept  # the function needed its memory
    dropped = [result.dropped for result in formula.results]
    results = [
        z.reshape([n for a, n in enumerate(z.shape) if a not in axes])
        for z, axes in zip(outputs, dropped, strict=True)
    ]
    return status, results


def assert_same_bits(x, y):
    """NaN may have another sign: which of two is kept depends on the order of operands."""
    np.testing.assert_array_equal(x, y)
    if x.dtype.kind in "fc":
        for a, b in ((x.real, y.real), (x.imag, y.imag)):
            np.testing.assert_array_equal(np.signbit(a[a == a]), np.signbit(b[b == b]))


def compute(formula, *values):
    """Compute the results of a formula by a kernel of its own."""
    kernel = kernel_of(formula, patterns_of(values))
    assert kernel is not None
    (function,) = addresses([kernel], own_loops=False)
    return call(function, formula, values)


def one_step(row, dtypes):
    """Make a formula of one scalar function."""
    step = Step(row, tuple(range(len(dtypes))), row.dtype(*dtypes))
    return Formula(tuple(dtypes), (), (step,), (Result(len(dtypes)),))


def literal(value, dtype):
    """Make a literal of a formula."""
    return Literal.of(np.asarray(value, dtype))
