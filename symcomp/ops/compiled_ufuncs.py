"""The C functions that kernels call, as functions of NumPy arrays.

The extension module ``symcomp.ops._compiled_ufuncs`` has a ufunc for each row of the table that
names ``CompiledFunction``. setup.py compiles it with the native machine, from the text of
``symcomp.codegen.ufunc_module``.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np

from symcomp.lazy import lazy_module
from symcomp.ops.elementwise.elemwise import float_rule

ufuncs = lazy_module("symcomp.ops._compiled_ufuncs")
# The rows that are computed by their C functions: the module has a ufunc for each.
COMPILED: set[str] = set()


class CompiledFunction:
    """The C function of a row, applied to arrays that broadcast.

    Integers become floats first. One more array than the function has arguments is where the result
    is written; it may be one of the arguments.

    Parameters
    ----------
    name : str
        The name of the row.
    *parameters : int
        The parameters of a row with some: the first arguments of the ufunc.
    rule : callable
        The rule of the result's dtype.
    """

    def __init__(
        self, name: str, *parameters: int, rule: Callable[..., str] = float_rule
    ) -> None:
        self.name = name
        self.parameters = parameters
        self.rule = rule
        COMPILED.add(name)

    @cached_property
    def ufunc(self) -> np.ufunc:
        """NumPy's ufunc, with loops for float16, float32 and float64."""
        found = getattr(ufuncs, self.name, None)
        if found is None:
            raise ImportError(
                f"{self.name} is not in symcomp.ops._compiled_ufuncs, which is older than the row "
                "or its C: install symcomp again (python -m pip install --no-deps --editable .)"
            )
        return found

    def __call__(self, *arrays: Any) -> Any:
        ufunc, parameters = self.ufunc, self.parameters
        dtype = self.rule(*(x.dtype.name for x in arrays[: ufunc.nin - len(parameters)]))
        with np.errstate(all="ignore"):
            return np.asarray(ufunc(*parameters, *arrays, dtype=dtype, casting="unsafe"))
