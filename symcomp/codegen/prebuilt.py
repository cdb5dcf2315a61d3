"""Code compiled when symcomp is installed: the loops around the bodies of kernels, so that kernels
need not contain them, and kernels of common ops, for machines without a compiler.

``source`` is the C file that setup.py compiles, for any processor of the architecture. Kernels and
loops are found by name, which is a hash of the text: changed ones are not found.
"""

from __future__ import annotations

import ctypes
import re
import shlex
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from importlib.util import find_spec
from typing import Any

from symcomp.codegen.kernel import whole_kernel
from symcomp.codegen.loops.nests import Pattern
from symcomp.codegen.printers.c_file import nest_version, translation_unit
from symcomp.codegen.printers.c_printer import Kernel
from symcomp.config import config
from symcomp.ops.elementwise.elemwise import ROWS
from symcomp.ops.formulas.formula import Formula, Result, Step, folded_axes
from symcomp.ops.nnet import functions as _nnet  # noqa: F401 - its rows
from symcomp.ops.nnet.softmax import LogSoftmax, Softmax
from symcomp.ops.reductions.reduce import REDUCTIONS, Reduce

LIBRARY = "symcomp.codegen._prebuilt"
FLOATS = ("float64", "float32")
UNARY = (
    "abs", "cos", "exp", "expm1", "log", "log1p", "neg", "sgn", "sigmoid", "sin", "softplus", "sqr",
    "sqrt", "tanh",
)  # fmt: skip
BINARY = ("add", "maximum", "minimum", "mul", "sub", "true_div")
COMPARISONS = ("eq", "ge", "gt", "le", "lt")
REDUCED = ("max", "min", "sum")
# Broadcasting of two arrays: equal shapes, or one is stretched along all axes, or along one of two.
PAIRS: tuple[tuple[Pattern, Pattern], ...] = (
    ((), ()),
    ((False,), (False,)),
    ((True,), (False,)),
    ((False,), (True,)),
    ((False, False), (False, False)),
    ((True, True), (False, False)),
    ((False, False), (True, True)),
    ((True, False), (False, False)),
    ((False, False), (True, False)),
    ((False, False), (False, True)),
)
# Flags that need no other loops: those of warnings (with a comma, like -Wl,-O1, they are for other
# programs), and -O0, which is to make the compiler faster.
_OF_SAME_LOOPS = re.compile(r"-W[^,]*|-O0")


def addresses(names: Iterable[str]) -> dict[str, int]:
    """Return the addresses of the installed kernels among these names."""
    library = _library()
    found = {}
    for name in names:
        function = getattr(library, name, None)
        if function is not None:
            found[name] = ctypes.cast(function, ctypes.c_void_p).value or 0
    return found


def shares_loops() -> bool:
    """Tell whether C files may call the installed loops: flags like those of sanitizers need loops
    compiled with them. Warnings and -O0 do not.
    """
    flags = shlex.split(config.cflags)
    if not all(map(_OF_SAME_LOOPS.fullmatch, flags)) or not sys.platform.startswith("linux"):
        return False
    return hasattr(_library(), f"nest_reduction_{nest_version()}")


@cache
def _library() -> ctypes.CDLL | None:
    spec = find_spec(LIBRARY)
    if spec is None or spec.origin is None:
        return None
    return ctypes.CDLL(spec.origin, mode=ctypes.RTLD_GLOBAL)


def source() -> str:
    """Return the C file of all installed kernels."""
    return translation_unit(list(kernels()), nest="exported")


def kernels() -> Iterator[Kernel]:
    """Yield the kernels to install."""
    for formula, patterns in _formulas():
        whole = whole_kernel(formula, patterns)
        if whole is not None:
            yield whole.kernel


def _formulas() -> Iterator[tuple[Formula, list[Pattern]]]:
    for dtype in FLOATS:
        for name in UNARY:
            for rank in range(3):
                yield _formula(ROWS[name](), [dtype], dtype), [(False,) * rank]
        for name in (*BINARY, *COMPARISONS):
            result = "bool" if name in COMPARISONS else dtype
            for patterns in PAIRS:
                yield _formula(ROWS[name](), [dtype] * 2, result), [*patterns]
        for name in REDUCED:
            for rank, axes in ((1, (0,)), (2, (0,)), (2, (1,)), (2, (0, 1))):
                reduce = Reduce(REDUCTIONS[name], axes)
                yield _formula(reduce, [dtype], dtype), [(False,) * rank]
        for softmax in (Softmax(1), LogSoftmax(1)):
            yield _formula(softmax, [dtype], dtype), [(False, False)]
    for name in ("add", "mul", "sub"):
        yield _formula(ROWS[name](), ["int64"] * 2, "int64"), [(), ()]


def _formula(function: Any, dtypes: list[str], result: str) -> Formula:
    """Make a formula of one step, equal to the formulas of programs."""
    step = Step(function, tuple(range(len(dtypes))), result)
    return Formula(tuple(dtypes), (), (step,), (Result(len(dtypes), folded_axes(function)),))
