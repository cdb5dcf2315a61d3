"""The declarations of what kernels use of the C library; those for complex numbers are in
``complex.h``.

Its own headers would take a tenth of the time of compiling a short kernel.
"""

from __future__ import annotations

from collections.abc import Iterator

# By their numbers of arguments.
_REAL = {
    1: """acos acosh asin asinh atan atanh ceil cos cosh erf erfc exp exp2 expm1 fabs floor log
       log10 log1p log2 rint sin sinh sqrt tan tanh trunc""",
    2: "atan2 copysign fmax fmin fmod hypot pow",
}
_KINDS = (("double", ""), ("float", "f"), ("long double", "l"))
_OTHERS = (
    "double frexp(double, int *)",
    "double ldexp(double, int)",
    "long long llabs(long long)",
    "void *memchr(const void *, int, size_t)",
    "void *memcpy(void *, const void *, size_t)",
    "void *memmove(void *, const void *, size_t)",
    "void *memset(void *, int, size_t)",
)
_BITS = (8, 16, 32, 64)
_INTEGERS = tuple(f"{sign}int{bits}_t" for sign in ("", "u") for bits in _BITS)
_TYPES = (*_INTEGERS, "uintptr_t", "size_t")
_MACROS = {
    **{f"INT{bits}_MAX": f"__INT{bits}_MAX__" for bits in _BITS},
    **{f"INT{bits}_MIN": f"(-__INT{bits}_MAX__ - 1)" for bits in _BITS},
    **{f"UINT{bits}_MAX": f"__UINT{bits}_MAX__" for bits in _BITS},
    "INT64_C(x)": "((int64_t)x##LL)",
    "UINT64_C(x)": "((uint64_t)x##ULL)",
    "LDBL_MANT_DIG": "__LDBL_MANT_DIG__",
    "INFINITY": "__builtin_inff()",
    "NAN": '__builtin_nanf("")',
    **{f"{name}(x)": f"__builtin_{name}(x)" for name in ("isfinite", "isinf", "isnan")},
}


def c_library() -> str:
    """Return the text."""
    return "\n".join((*_lines(), ""))


def _lines() -> Iterator[str]:
    for name in _TYPES:
        yield f"typedef __{name.removesuffix('_t').upper()}_TYPE__ {name};"
    for name, text in _MACROS.items():
        yield f"#define {name} {text}"
    for kind, end in _KINDS:
        for arguments, names in _REAL.items():
            for name in names.split():
                yield f"extern {kind} {name}{end}({', '.join([kind] * arguments)});"
    for text in _OTHERS:
        yield f"extern {text};"
