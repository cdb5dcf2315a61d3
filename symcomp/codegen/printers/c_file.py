"""Write the C file of kernels: the parts of the headers that they call, and each of their sources
once.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Sequence
from functools import cache, partial
from importlib.resources import files

from symcomp.codegen.functions.angle_tables import angle_tables
from symcomp.codegen.functions.error_tables import error_tables
from symcomp.codegen.functions.gamma_tables import gamma_tables, pair_tables
from symcomp.codegen.functions.series_tables import series_tables
from symcomp.codegen.printers.c_printer import Kernel

_HEADERS = ("functions/scalars.h", "functions/philox.h", "functions/elementary.h")
# The loops around bodies
_LOOPS = ("loops/transpose_blocks.h", "loops/nest_loops.h", "loops/reduction.h")
_OF_GAMMA_FUNCTIONS = (
    "functions/wide_gamma.h",
    "functions/gamma.h",
    "functions/gamma_ratios.h",
    "functions/incomplete_gamma.h",
)
# The headers of functions of real numbers, once for double and once for float
OF_REALS = ("functions/stable.h", "functions/quotient_slopes.h")
# The headers of which the text of the loops consists
_OF_LOOPS = (
    *_HEADERS, "functions/rounding_errors.h", "functions/stable.h", "loops/nest.h", *_LOOPS,
)  # fmt: skip
_OF_FUNCTIONS = (
    "functions/elementary.h",
    "functions/rounding_errors.h",
    "functions/angles.h",
    "functions/complex.h",
    *OF_REALS,
    "functions/stable_double.h",
    "functions/scaled_products.h",
    "functions/differences.h",
    "functions/pairs.h",
    *_OF_GAMMA_FUNCTIONS,
    "functions/special.h",
    "functions/extended.h",
    "functions/series_remainders.h",
    "functions/product_remainders.h",
    "loops/kept_arrays.h",
    "loops/log_reduction.h",
)
# The headers of functions of doubles that call no others.
OF_DOUBLES = (
    "functions/stable_double.h", "functions/scaled_products.h", "functions/differences.h",
)  # fmt: skip
_REAL = {
    "double": ("name", "((double)(x))", "0x1p-52", "134217729.0", "1e-300"),
    "float": ("name##f", "((float)(x))", "0x1p-23f", "4097.0f", "0"),
}
# Loop functions that files may call from the installed library, and how they declare them.
_EXPORTED = ("nest_elementwise", "nest_reduction", "merge_sums", "merge_sumsf")
_LINKAGE = {"own": "static inline", "shared": "extern", "exported": ""}
_HEAD = re.compile(r"[^;{(]*?\b(?:F\((\w+)\)|(\w+))\(")
# Prefixes of the functions of some headers.
_OF_PRODUCTS = ("r_over_both", "r_times_", "scaled_of")
_OF_SPECIAL, _OF_GAMMA, _OF_DIFFERENCES = "e_", "g_", "d_"


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
    words = {word for text in sources for word in re.findall(r"\w+", text)}
    parts = [header("functions/vector_math.h")] if calls_vectors(words) else []
    of_reals = [*OF_REALS]
    if any("_Complex" in text for text in sources):
        of_reals.append("functions/complex.h")
    parts += functions_of_numbers(of_reals)
    parts += [header("functions/stable_double.h")]
    if any(word.startswith(_OF_PRODUCTS) for word in words):
        parts += [header("functions/scaled_products.h")]
    if _calls_prefixed(_OF_DIFFERENCES, words, sources):
        parts += [header("functions/differences.h")]
    if nest != "own":
        parts += [f"#define {name} {name}_{nest_version()}" for name in _EXPORTED]
    parts += [f"#define NEST {_LINKAGE[nest]}\n", header("loops/nest.h")]
    if nest != "shared":
        parts += map(header, _LOOPS)
    of_gamma, of_special = (
        _calls_prefixed(prefix, words, sources) for prefix in (_OF_GAMMA, _OF_SPECIAL)
    )
    parts += pair_functions() if of_gamma or of_special else []
    parts += gamma_functions() if of_gamma else []
    if of_special:
        parts += [*special_functions(), *wider_functions()]
    parts += [header("loops/kept_arrays.h")]
    if any("scatter_" in text for text in sources):
        parts += [header("loops/scatter.h")]
    if any("log_lines(" in text for text in sources):
        parts += [header("loops/log_reduction.h")]
    return "\n".join((*parts, *sources))


def functions_of_numbers(of_reals: Sequence[str]) -> list[str]:
    """Return the text of the functions of numbers, in C and in CUDA C: the basic ones, and,
    for both kinds of real numbers, the functions of the headers ``of_reals``.
    """
    return [
        *map(header, _HEADERS),
        *_of_both_kinds(["functions/rounding_errors.h"]),
        angle_tables(),
        header("functions/angles.h"),
        *_of_both_kinds(of_reals),
    ]


@cache
def functions_of_rows() -> str:
    """Return the text of all functions of real numbers that kernels may call."""
    return "\n".join(
        (
            *functions_of_numbers(OF_REALS),
            *map(header, OF_DOUBLES),
            *pair_functions(),
            *gamma_functions(),
            *special_functions(),
            *wider_functions(),
        )
    )


def wider_functions() -> list[str]:
    """Return the text of functions that need the wider type."""
    names = ("extended", "series_remainders", "product_remainders")
    return [series_tables(), *(header(f"functions/{name}.h") for name in names)]


def pair_functions() -> list[str]:
    """Return the text of double-double arithmetic, which the following functions call."""
    return [pair_tables(), header("functions/pairs.h")]


def gamma_functions() -> list[str]:
    """Return the text of the gamma functions of doubles, in C and in CUDA C."""
    return [gamma_tables(), *map(header, _OF_GAMMA_FUNCTIONS)]


def special_functions() -> list[str]:
    """Return the text of the error functions of doubles, in C and in CUDA C."""
    return [error_tables(), header("functions/special.h")]


def _of_both_kinds(names: Sequence[str]) -> list[str]:
    """Return the text of headers for double and for float."""
    parts = []
    for kind, (name, constant, epsilon, splitter, small) in _REAL.items():
        macros = {
            "REAL": kind, "F(name)": name, "C(x)": constant, "EPSILON": epsilon,
            "SPLITTER": splitter, "SMALL": small,
        }  # fmt: skip
        parts += [f"#define {macro} {text}\n" for macro, text in macros.items()]
        parts += map(header, names)
        parts += [f"#undef {macro.partition('(')[0]}\n" for macro in macros]
    return parts


@cache
def nest_version() -> str:
    """Return the suffix of the names of exported loops; it changes with the text of the loops."""
    text = "".join(map(header, _OF_LOOPS))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _calls_prefixed(prefix: str, words: set[str], sources: Iterable[str]) -> bool:
    """Tell whether a function with this prefix is called; most texts have no such word at all."""
    return any(word.startswith(prefix) for word in words) and any(
        re.search(rf"\b{prefix}\w+\(", text) for text in sources
    )


def calls_vectors(called: set[str]) -> bool:
    """Tell whether one of these functions is declared in ``vector_math.h``, or calls one that is:
    these may round differently in loops over several elements.
    """
    declared = set(re.findall(r"extern \w+ (\w+)\(", header("functions/vector_math.h")))
    texts, more = _functions_of_headers(), called
    seen: set[str] = set()
    while more and not more & declared:
        seen |= more
        found = [re.findall(r"\w+", texts[name]()) for name in more & texts.keys()]
        more = {word for words in found for word in words} - seen
    return bool(more)


@cache
def _functions_of_headers() -> dict[str, Callable[[], str]]:
    """Return, by name and for each kind of real numbers, the function that gives the text of a C
    function.
    """
    found: dict[str, Callable[[], str]] = {}
    for name in _OF_FUNCTIONS:
        code = re.sub(r"/\*.*?\*/", "", header(name), flags=re.S)
        for text in re.split(r"^(?=INLINE |HELPER |static )", code, flags=re.M):
            if head := _HEAD.match(text):
                for end in ("", "f") if head[1] else ("",):
                    of_kind = partial(re.sub, r"\bF\((\w+)\)", rf"\1{end}", text)
                    found[(head[1] or head[2]) + end] = of_kind
    return found


@cache
def header(name: str) -> str:
    """Return the text of a header, named from the folder `codegen`."""
    return (files("symcomp.codegen") / name).read_text(encoding="utf-8")
