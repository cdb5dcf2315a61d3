"""Write the C file of ``symcomp.ops._compiled_ufuncs``: the C functions of rows, for the arrays of
NumPy.

The file is compiled when symcomp is installed, for any processor of the architecture.
"""

from __future__ import annotations

import hashlib

from symcomp.codegen.c_file import functions_of_rows, header
from symcomp.codegen.c_scalars import C_TYPES, STORED, scalar_text
from symcomp.ops import nnet as _nnet  # noqa: F401 - its rows
from symcomp.ops.compiled_ufuncs import COMPILED
from symcomp.ops.elemwise import ROWS, ScalarOp

MODULE = "symcomp.ops._compiled_ufuncs"
FLOATS = ("float16", "float32", "float64")
_INCLUDES = "\n".join(
    f"#include <{name}>" for name in ("Python.h", "numpy/arrayobject.h", "numpy/ufuncobject.h")
)


def source() -> str:
    """Return the C file."""
    rows = [ROWS[name]() for name in sorted(COMPILED)]
    loops = [_loop(row, dtype) for row in rows for dtype in FLOATS]
    table = ",\n".join(map(_entry, rows))
    text = "\n".join(
        [_INCLUDES, functions_of_rows(), header("ufunc_loops.h"), *loops,
         f"static struct ufunc UFUNCS[] = {{\n{table}\n}};"]
    )  # fmt: skip
    module = header("ufunc_module.h")
    version = hashlib.sha256((text + module).encode()).hexdigest()
    return f'{text}\n#define VERSION "{version}"\n{module}'


def version() -> str:
    """Return the attribute ``VERSION`` of the module that is compiled from ``source``."""
    return source().partition('#define VERSION "')[2].partition('"')[0]


def _loop(row: ScalarOp, dtype: str) -> str:
    text = scalar_text(row, (dtype,) * row.arity, dtype)
    assert text is not None, row.name
    z = text.of(("x", "y", "w")[: row.arity])
    name = f"{row.name}_{dtype}"
    return f"LOOP_OF_{row.arity}({name}, {STORED[dtype]}, {C_TYPES[dtype]}, {z})"


def _entry(row: ScalarOp) -> str:
    loops = ", ".join(f"{row.name}_{dtype}" for dtype in FLOATS)
    return f'    {{"{row.name}", {row.arity}, {{{loops}}}}}'
