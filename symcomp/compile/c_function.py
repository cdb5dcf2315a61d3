"""CFunction: a compiled function that callers in C, Rust or numba call by its address."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np

from symcomp.compile.maker import Maker
from symcomp.config import config
from symcomp.core.tensor import TensorType
from symcomp.cvm.executable import Executable
from symcomp.cvm.machine import CFunctionBase, NativeMachine

_POINTERS = ctypes.POINTER(ctypes.c_void_p)


class CFunction(CFunctionBase):
    """A function for callers in C, on arrays of fixed dtypes and shapes. Made by ``f.cfunc``.

    ``address`` is that of ::

        int call(void *data, const void *const *arguments, void *const *results);

    ``data`` is ``c.data``. ``arguments[i]`` points to the elements of argument i, ``results[j]``
    to where those of result j are written: in C order, aligned for their dtypes. It returns 0, or
    -1 if it failed: then ``c.error`` is the exception. Any number of threads may call it at once,
    with or without the GIL; Python runs only for ops that have no native code.

    The addresses are valid as long as the object lives.

    Attributes
    ----------
    address, data : int
    density_address : int or None
        Of a function from one float64 vector to a number and a vector as long (a density and its
        gradient, in any order), the address of ::

            int64_t density(uint64_t length, const double *x, double *gradient, double *value,
                            void *data);

        which returns 1 if a result is not finite, as samplers ask to know.
    map_address : int or None
        Of a function from one float64 vector to another one, the address of ::

            int64_t map(uint64_t length, uint64_t result_length, const double *x, double *result,
                        void *data);

    argument_kinds, result_kinds : tuple of (str, tuple of int)
        Dtype and shape of each.
    error : Exception or None
        Of the last call that failed.
    ctypes : callable
        The function at ``address``, for ctypes and numba.
    """

    @property
    def argument_kinds(self) -> tuple[tuple[str, tuple[int, ...]], ...]:
        return self._argument_kinds

    @property
    def result_kinds(self) -> tuple[tuple[str, tuple[int, ...]], ...]:
        return self._result_kinds

    @property
    def ctypes(self) -> Any:
        kind = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, _POINTERS, _POINTERS)
        return kind(self.address)

    def __repr__(self) -> str:
        return f"<CFunction {_listed(self.argument_kinds)} -> {_listed(self.result_kinds)}>"


def _listed(kinds: Sequence[tuple[str, tuple[int, ...]]]) -> str:
    return "(" + ", ".join(f"{dtype}{list(shape)}" for dtype, shape in kinds) + ")"


def c_function(
    maker: Maker, executable: Executable, examples: Sequence[Any], fixed: Sequence[int]
) -> CFunction:
    """Return what ``Function.cfunc`` does."""
    _check(maker, fixed)
    explicit = [i for i, spec in enumerate(maker.inputs) if not spec.implicit]
    if len(examples) > len(explicit):
        raise TypeError(
            f"{maker.name}: cfunc: got {len(examples)} examples for {len(explicit)} inputs"
        )
    given = dict(zip(explicit, examples, strict=False))
    values = [_value(maker, i, given.get(i)) for i in range(len(maker.inputs))]
    machine = executable.nested() if isinstance(executable.machine, NativeMachine) else None
    if machine is None:
        raise TypeError(f"{maker.name}: cfunc: mode {maker.mode} has no native machine")
    held = {explicit[k] for k in fixed} | {
        i for i, spec in enumerate(maker.inputs) if spec.implicit
    }
    return CFunction(machine, values, frozenset(held))


def _check(maker: Maker, fixed: Sequence[int]) -> None:
    if maker.updated:
        raise TypeError(
            f"{maker.name}: cfunc: the function has updates, which a caller in C cannot apply: "
            "return the new values as outputs"
        )
    written = [i for i, spec in enumerate(maker.inputs) if spec.mutable]
    if written:
        raise TypeError(
            f"{maker.name}: cfunc: input {written[0]} may be overwritten: compile the function "
            "without mutable=True"
        )
    if config.most_plans < 1:
        raise ValueError("cfunc: config.most_plans is 0, so that no plan is kept: set it to 1")
    count = sum(not spec.implicit for spec in maker.inputs)
    unknown = [k for k in fixed if not 0 <= k < count]
    if unknown:
        raise ValueError(f"{maker.name}: cfunc: fixed={unknown} names no input of {count}")


def _value(maker: Maker, i: int, example: Any) -> np.ndarray:
    """Copy the example of input ``i``, or its stored value: aligned and in C order."""
    spec = maker.inputs[i]
    kind = spec.type
    if not isinstance(kind, TensorType):
        raise TypeError(
            f"{maker.name}: cfunc: input {i} ({spec.name or spec.variable}) is of type {kind}; "
            "only arrays can be passed from C"
        )
    found = spec.container.value if example is None else example
    if found is None:
        raise TypeError(
            f"{maker.name}: cfunc: an example of input {i} ({spec.name or spec.variable}, {kind}) "
            "is missing: pass an array of the shape that the function will be called with"
        )
    array = kind.filter(found, spec.strict, spec.allow_downcast)
    return np.array(array, dtype=kind.numpy_dtype, order="C")
