"""Write the C file of ``symcomp.ops._compiled_ufuncs``: the C functions of rows, for the arrays of
NumPy.

The file is compiled when symcomp is installed, for any processor of the architecture.
"""

from __future__ import annotations

import hashlib

from symcomp.codegen.functions.c_scalars import C_TYPES, converted, scalar_text
from symcomp.codegen.printers.c_file import FUNCTIONS
from symcomp.codegen.printers.c_headers import Headers, header
from symcomp.ops.compiled_ufuncs import COMPILED
from symcomp.ops.elementwise.elemwise import ROWS
from symcomp.ops.nnet import functions as _nnet  # noqa: F401 - its rows

MODULE = "symcomp.ops._compiled_ufuncs"
# The dtypes, and the types of their elements, which C converts.
FLOATS = {"float16": "_Float16", "float32": "float", "float64": "double"}
# The arguments of functions of the wider type whose rows have parameters, which come first.
WITH_PARAMETERS = {
    "product_remainder": (
        *(f"(int){name}" for name in "xywvu"), *(f"(double){name}" for name in "tsr")
    ),
    "series_remainder": ("(int)x", "(int)y", "(int)w", "(int)v", "(WIDER)u"),
    "spherical_jn": ("(int)x", "(int)y", "(WIDER)w"),
}
_INCLUDES = "\n".join(
    f"#include <{name}.h>"
    for name in (
        "Python", "numpy/arrayobject", "numpy/ufuncobject",
        "float", "math", "stdint", "stdlib", "string",
    )
)


def source() -> str:
    """Return the C file."""
    names = sorted(COMPILED | WITH_PARAMETERS.keys())
    loops = [_loop(name, dtype) for name in names for dtype in FLOATS]
    table = ",\n".join(map(_entry, names))
    text = "\n".join(
        [_INCLUDES, *Headers(FUNCTIONS).everything(), header("ufunc_loops.h"), *loops,
         f"static struct ufunc UFUNCS[] = {{\n{table}\n}};"]
    )  # fmt: skip
    module = header("ufunc_module.h")
    version = hashlib.sha256((text + module).encode()).hexdigest()
    return f'{text}\n#define VERSION "{version}"\n{module}'


def version() -> str:
    """Return the attribute ``VERSION`` of the module that is compiled from ``source``."""
    return source().partition('#define VERSION "')[2].partition('"')[0]


def arguments_of(name: str) -> int:
    """Return the number of arguments of a ufunc."""
    if name in WITH_PARAMETERS:
        return len(WITH_PARAMETERS[name])
    return ROWS[name]().arity


def _loop(name: str, dtype: str) -> str:
    count = arguments_of(name)
    kind = f"{FLOATS[dtype]}, {C_TYPES[dtype]}"
    return f"LOOP_OF_{count}({name}_{dtype}, {kind}, {_value(name, dtype)})"


def _value(name: str, dtype: str) -> str:
    """Return the C expression of a row, of numbers x, y, w, v, u, t, s and r."""
    if name in WITH_PARAMETERS:
        arguments = ", ".join(WITH_PARAMETERS[name])
        return converted(f"e_{name}({arguments})", "float64", dtype)
    row = ROWS[name]()
    text = scalar_text(row, (dtype,) * row.arity, dtype)
    assert text is not None, name
    return text.of(("x", "y", "w", "v", "u")[: row.arity])


def _entry(name: str) -> str:
    loops = ", ".join(f"{name}_{dtype}" for dtype in FLOATS)
    return f'    {{"{name}", {arguments_of(name)}, {{{loops}}}}}'
