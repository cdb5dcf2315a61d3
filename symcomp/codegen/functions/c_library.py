"""The declarations of what kernels use of the C library.

Its own headers would take a tenth of the time of compiling a short kernel.
"""

from __future__ import annotations

from collections.abc import Iterator

# For ``double``, ``float`` and ``long double``, by their numbers of arguments.
_REAL = {
    1: """acos acosh asin asinh atan atanh ceil cos cosh erf exp exp2 expm1 fabs floor log log10
       log1p log2 rint sin sinh sqrt tan tanh trunc""",
    2: "atan2 copysign fmax fmin fmod hypot pow",
}
_COMPLEX = {
    1: "cacos cacosh casin casinh catan catanh ccos ccosh cexp clog conj csin csinh csqrt ctan ctanh",
    2: "cpow",
}
_KINDS = (("double", ""), ("float", "f"), ("long double", "l"))
_COMPLEX_PARTS = ("creal", "cimag")
_OTHERS = (
    "double frexp(double, int *)",
    "double ldexp(double, int)",
    "long long llabs(long long)",
    "void *malloc(size_t)",
    "void free(void *)",
    "void *memcpy(void *, const void *, size_t)",
    "void *memmove(void *, const void *, size_t)",
    "void *memset(void *, int, size_t)",
)
_INTEGERS = tuple(f"{sign}int{bits}_t" for sign in ("", "u") for bits in (8, 16, 32, 64))
_TYPES = (*_INTEGERS, "uintptr_t", "size_t")
_MACROS = {
    "INT32_MAX": "__INT32_MAX__",
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
        yield from _declarations(_REAL, kind, end)
        yield from _declarations(_COMPLEX, f"{kind} _Complex", end)
        for name in _COMPLEX_PARTS:
            yield f"extern {kind} {name}{end}({kind} _Complex);"
    for text in _OTHERS:
        yield f"extern {text};"


def _declarations(names: dict[int, str], kind: str, end: str) -> Iterator[str]:
    for arguments, several in names.items():
        for name in several.split():
            yield f"extern {kind} {name}{end}({', '.join([kind] * arguments)});"
