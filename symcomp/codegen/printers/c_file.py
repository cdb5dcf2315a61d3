"""Write the C file of kernels: the functions that they call, and each of their sources once."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import cache, partial

from symcomp.codegen.functions.c_library import c_library
from symcomp.codegen.printers.c_headers import Header, Headers, Piece, header, words_of
from symcomp.codegen.printers.c_printer import Kernel
from symcomp.lazy import lazy_module

# Few files have tables.
_angles, _errors, _gammas, _series = (
    lazy_module(f"symcomp.codegen.functions.{name}_tables")
    for name in ("angle", "error", "gamma", "series")
)
_KINDS = "double", "float"
_PAIRS = ("tables of pairs",)
_GAMMA = (*_PAIRS, "tables of gamma functions")
# Special functions, which call one another.
_OF_GAMMA = ("d", "e", "g", "p", "w")
#: The functions of real numbers, in C and in CUDA C.
FUNCTIONS = (
    Header("functions/scalars.h", always=True),
    Header("functions/bits.h"),
    Header("functions/narrow.h", asked_by=("half", "bfloat", "bits", "scatter")),
    Header("functions/philox.h", asked_by=("philox",)),
    *(Header("functions/rounding_errors.h", kind) for kind in _KINDS),
    Header("functions/elementary.h"),
    Header("tables of angles", print=lambda: _angles.angle_tables()),
    Header("functions/angles.h", tables=("tables of angles",)),
    *(
        Header(f"functions/{name}.h", kind)
        for kind in _KINDS for name in ("stable", "quotient_slopes")
    ),
    Header("functions/stable_double.h"),
    Header("functions/scaled_products.h"),
    Header("functions/differences.h", asked_by=("d",)),
    Header("tables of pairs", print=lambda: _gammas.pair_tables(), words=("pair",)),
    Header("functions/pairs.h", tables=_PAIRS, asked_by=_OF_GAMMA),
    Header("functions/log_sums.h", tables=_PAIRS, asked_by=("p",)),
    Header("tables of gamma functions", print=lambda: _gammas.gamma_tables()),
    *(
        Header(f"functions/{name}.h", tables=_GAMMA, asked_by=_OF_GAMMA)
        for name in ("wide_gamma", "gamma", "gamma_ratios", "incomplete_gamma")
    ),
    Header("tables of error functions", print=lambda: _errors.error_tables()),
    Header(
        "functions/special.h", tables=(*_PAIRS, "tables of error functions"),
        asked_by=(*_OF_GAMMA, "at"),
    ),
    Header("functions/extended.h", asked_by=_OF_GAMMA),
    Header("tables of series", print=lambda: _series.series_tables()),
    Header(
        "functions/series_remainders.h", tables=("tables of series",),
        asked_by=(*_OF_GAMMA, "series", "SERIES"),
    ),
    Header("functions/product_remainders.h", asked_by=(*_OF_GAMMA, "product")),
)  # fmt: skip
_VECTORS = "functions/vector_math.h"
_COMPLEX = "_Complex"
# Loop functions that files may call from the installed library, and how they declare them.
_EXPORTED = ("nest_elementwise", "nest_reduction", "merge_sums", "merge_sumsf")
# The headers whose functions and types they use, beside the C library.
_OF_LOOPS = ("functions/scalars.h", "functions/rounding_errors.h", "loops/nest.h")
_LINKAGE = {"own": "static inline", "shared": "extern", "exported": ""}


def translation_unit(kernels: Sequence[Kernel], nest: str = "own") -> str:
    """Return the text of a C file with these kernels, each once.

    Parameters
    ----------
    kernels : sequence of Kernel
    nest : {"own", "shared", "exported"}
        Whether the loops around bodies are in the file, are functions of another, or are in this
        file for others.
    """
    sources = dict.fromkeys(text for k in kernels for text in (*k.needs, k.source))
    headers = _headers_of_files(nest)
    needed = headers.pieces(words_of(*sources, *(_EXPORTED if nest == "exported" else ())))
    return "\n".join((*headers.text(needed), *sources))


def calls_vectors(kernel: Kernel) -> bool:
    """Tell whether a kernel calls functions with versions for vectors, whose rounding differs."""
    return any(piece.header.name == _VECTORS for piece in functions_called(kernel))


def functions_called(kernel: Kernel) -> set[Piece]:
    """Return the pieces of headers that a kernel needs, loops around bodies apart."""
    return _headers_of_files("shared").pieces(words_of(*kernel.needs, kernel.source))


@cache
def nest_version() -> str:
    """Return the suffix of the names of exported loops; it changes with the text of the loops."""
    text = "".join((c_library(), *map(header, _OF_LOOPS), _loops()))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


@cache
def _headers_of_files(nest: str) -> Headers:
    """Return the headers of files, by the argument of ``translation_unit``."""
    loops = () if nest == "shared" else (Header("loops around bodies", print=_loops),)
    return Headers(
        (
            Header("C library", print=c_library, always=True),
            Header(_VECTORS),
            *FUNCTIONS,
            *(
                Header("functions/complex.h", kind, words=(_COMPLEX,), asked_by=(_COMPLEX, "c"))
                for kind in _KINDS
            ),
            Header("names of loops", print=partial(_names_of_loops, nest), always=True),
            Header("loops/nest.h", always=True),
            *loops,
            *(Header(f"loops/{name}.h") for name in ("kept_arrays", "scatter")),
        )
    )


def _loops() -> str:
    """Return headers that belong together: options of the compiler that one sets end in another."""
    return "".join(
        header(f"loops/{name}.h") for name in ("transpose_blocks", "nest_loops", "reduction")
    )


def _names_of_loops(nest: str) -> str:
    """Return how a file declares the loops around bodies, and what it calls them."""
    lines = [f"#define NEST {_LINKAGE[nest]}"]
    if nest != "own":
        lines += [f"#define {name} {name}_{nest_version()}" for name in _EXPORTED]
    return "\n".join((*lines, ""))
