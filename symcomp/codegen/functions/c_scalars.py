"""Scalar functions in C: for each row of the table, a C expression for each kind of dtype.

In a template x, y and w are the arguments, T is the C type computed in, s the suffix of its
functions (f for float). A value of float16 or bfloat16 is a float that has been rounded to it; few
rows have C for bfloat16, as `rewrite/storage.py` leaves nothing else to compute in it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import reduce
from typing import Any, NamedTuple

import numpy as np

from symcomp.codegen.functions.c_functions import FUNCTIONS, OF_COMPLEX
from symcomp.core.dtype import STORAGE, is_float, kind, loop_of
from symcomp.core.record import record
from symcomp.ops.elementwise.elemwise import MOVING, ScalarOp
from symcomp.ops.elementwise.product_remainder import MOST_FACTORS, packed

# The C type of a value, and its type in memory where that differs.
C_TYPES = {
    "bool": "uint8_t", "float16": "float", "bfloat16": "float", "float32": "float",
    "float64": "double",
    **{f"{sign}int{n}": f"{sign}int{n}_t" for sign in ("", "u") for n in (8, 16, 32, 64)},
    "complex64": "float _Complex", "complex128": "double _Complex",
}  # fmt: skip
STORED = {**C_TYPES, "float16": "uint16_t", "bfloat16": "uint16_t"}
# The function that rounds a float to a narrower dtype.
ROUNDED = {"float16": "half_of", "bfloat16": "bfloat_of"}


class Encoding(NamedTuple):
    """The functions from an element in memory to a value, and back."""

    read: str
    write: str


# Where C does not convert elements itself.
ENCODED = {
    "float16": Encoding("half_of_bits", "bits_of_half"),
    "bfloat16": Encoding("bfloat_of_bits", "bits_of_bfloat"),
}
# The rows that have C for numbers of a storage dtype; sums are those of elements of indexed arrays.
_OF_STORAGE = (*MOVING, "add")
# A call of a function; rounding to 16 bits takes few instructions.
_CALL = re.compile(r"\b(?!half|bfloat|sizeof)[a-z]\w+\(")
# The dtypes of the parts of complex numbers.
COMPLEX = {"complex64": "float32", "complex128": "float64"}


@record
class Template:
    """The C expressions of a row.

    Attributes
    ----------
    arguments : str
        What its arguments are converted to before: "loop", the dtypes of the ufunc's loop;
        "result", the dtype of the result; "double"; "own", nothing.
    forms : dict of str to str
        For kinds of the first argument (b, i, u, f, c) an expression.
    truth : bool
        Whether the expression is a truth value, whatever the arguments are.
    """

    arguments: str
    forms: dict[str, str]
    truth: bool = False

    def form(self, kind: str) -> str | None:
        """Return the expression for a kind of dtype."""
        return next((text for kinds, text in self.forms.items() if kind in kinds), None)


def _loop(**forms: str) -> Template:
    return Template("loop", forms)


def _test(**forms: str) -> Template:
    return Template("own", forms, truth=True)


_COMPARISONS = {"lt": "<", "gt": ">", "le": "<=", "ge": ">=", "eq": "==", "neq": "!="}
# C does not order complex numbers.
_ORDER = {
    "lt": "c_gt{s}(y, x)", "gt": "c_gt{s}(x, y)", "le": "c_ge{s}(y, x)", "ge": "c_ge{s}(x, y)",
}  # fmt: skip


def _compared(name: str, sign: str) -> Template:
    form = f"x {sign} y"
    return Template("loop", {"biuf": form, "c": _ORDER.get(name, form)}, truth=True)


def _of_complex(name: str) -> dict[str, str]:
    return {"c": OF_COMPLEX[name]} if name in OF_COMPLEX else {}


TEMPLATES: dict[str, Template] = {
    "identity": Template("result", {"biufc": "x"}),
    "second": Template("own", {"biufc": "y"}),
    "mul": _loop(b="x & y", iuf="x * y", c="c_mul{s}(x, y)"),
    "sub": _loop(iufc="x - y"),
    "neg": _loop(iufc="-x"),
    "true_div": _loop(biu="(double)x / (double)y", f="x / y", c="c_div{s}(x, y)"),
    "int_div": _loop(i="floor_div_i(x, y)", u="floor_div_u(x, y)", f="floor_div_f{s}(x, y)"),
    "ceil_intdiv": _loop(
        i="floor_div_i(x, y) + (mod_i(x, y) != 0)", u="floor_div_u(x, y) + (mod_u(x, y) != 0)",
        f="-floor_div_f{s}(-x, y)",
    ),
    "mod": _loop(i="mod_i(x, y)", u="mod_u(x, y)", f="mod_f{s}(x, y)"),
    "reciprocal": Template("result", {"f": "1 / x", "c": "c_reciprocal{s}(x)"}),
    "pow": _loop(u="pow_u(x, y)", f="m_pow{s}(x, y)", c="c_pow{s}(x, y)"),
    "sqr": _loop(iuf="x * x", c="c_mul{s}(x, x)"),
    "sqrt": _loop(f="sqrt{s}(x)", c="csqrt{s}(x)"),
    "maximum": Template("result", {"b": "x | y", "iu": "x > y ? x : y",
                                   "f": "(x > y) | (x != x) ? x : y",
                                   "c": "c_maximum{s}(x, y)"}),
    "minimum": Template("result", {"b": "x & y", "iu": "x < y ? x : y",
                                   "f": "(x < y) | (x != x) ? x : y",
                                   "c": "c_minimum{s}(x, y)"}),
    "abs": _loop(bu="x", i="x < 0 ? -x : x", f="fabs{s}(x)", c="c_abs{s}(x)"),
    "sgn": _loop(u="x > 0", i="(x > 0) - (x < 0)", f="x != x ? x : ({T})((x > 0) - (x < 0))",
                 c="c_sign{s}(x)"),
    "ceil": _loop(biu="x", f="ceil{s}(x)"),
    "floor": _loop(biu="x", f="floor{s}(x)"),
    "trunc": _loop(biu="x", f="trunc{s}(x)"),
    "round_half_to_even": Template("result", {"iu": "x", "f": "rint{s}(x)", "c": "c_rint{s}(x)"}),
    "round_half_away_from_zero": Template("result", {"iu": "x", "f": "round_away{s}(x)"}),
    "deg2rad": Template("result", {"f": "x * (PI{s} / 180)"}),
    "rad2deg": Template("result", {"f": "x * (180 / PI{s})"}),
    **{name: _compared(name, sign) for name, sign in _COMPARISONS.items()},
    "isnan": _test(biu="0", f="x != x", c="c_isnan{s}(x)"),
    "isinf": _test(biu="0", f="fabs{s}(x) == INFINITY", c="c_isinf{s}(x)"),
    "isfinite": _test(biu="1", f="fabs{s}(x) < INFINITY", c="c_isfinite{s}(x)"),
    "isposinf": _test(biu="0", f="x == INFINITY"),
    "isneginf": _test(biu="0", f="x == -INFINITY"),
    "logical_and": _test(biufc="(x != 0) & (y != 0)"),
    "logical_or": _test(biufc="(x != 0) | (y != 0)"),
    "logical_xor": _test(biufc="(x != 0) ^ (y != 0)"),
    "logical_not": _test(biufc="x == 0"),
    "and_": _loop(biu="x & y"),
    "or_": _loop(biu="x | y"),
    "xor": _loop(biu="x ^ y"),
    "invert": _loop(b="!x", iu="~x"),
    "left_shift": _loop(iu="(uint64_t)y < 8 * sizeof({T}) ? ({T})(x << y) : ({T})0"),
    "right_shift": _loop(
        i="(uint64_t)y < 8 * sizeof({T}) ? ({T})(x >> y) : ({T})-(x < 0)",
        u="(uint64_t)y < 8 * sizeof({T}) ? ({T})(x >> y) : ({T})0",
    ),
    "philox_first": Template("own", {"u": "philox_first(x, y, w)"}),
    "philox_last": Template("own", {"u": "philox_last(x, y, w)"}),
    "mul_high": Template("own", {"u": "mul_high(x, y)"}),
    "real": Template("own", {"biuf": "x", "c": "creal{s}(x)"}),
    "imag": Template("own", {"biuf": "0", "c": "cimag{s}(x)"}),
    "conj": Template("result", {"biuf": "x", "c": "conj{s}(x)"}),
    "angle": Template("own", {"biu": "atan2(0, x)", "f": "atan2{s}(0, x)", "c": "c_angle{s}(x)"}),
    **{
        name: Template(arguments, {"f": form, **_of_complex(name)})
        for name, (arguments, form) in FUNCTIONS.items()
    },
}  # fmt: skip


@record
class ScalarText:
    """The C expression of a row applied to values of some dtypes.

    Attributes
    ----------
    text : str
        An expression with ``{0}``, ``{1}``, ... for the C variables that are the arguments.
    reads : tuple of bool
        For each argument, whether the result depends on it.
    calls : bool
        Whether it calls a function, and is more than some instructions.
    """

    text: str
    reads: tuple[bool, ...]
    calls: bool

    def of(self, names: Sequence[str]) -> str:
        """Return the expression with these variables."""
        return self.text.format(*names)


def scalar_text(row: ScalarOp, dtypes: tuple[str, ...], dtype: str) -> ScalarText | None:
    """Return the C of a row as a value of ``dtype``; None if there is none.

    Parameters
    ----------
    row : ScalarOp
    dtypes : tuple of str
        The dtypes of the arguments.
    dtype : str
        The dtype of the result.
    """
    key, template = (row, dtypes, dtype), TEMPLATES.get(row.name)
    made_of, known = _written.get(key, (None, None))
    if known is not None and made_of is template:
        return known
    names = [f"{{{i}}}" for i in range(len(dtypes))]
    text = _expression(row, names, dtypes, dtype)
    if text is None:
        return None
    calls = _CALL.search(text) is not None
    found = ScalarText(text, tuple(name in text for name in names), calls)
    _written[key] = template, found
    return found


# Cache of the texts, with the templates that they are made of: these may be replaced.
_written: dict[tuple[ScalarOp, tuple[str, ...], str], tuple[Template | None, ScalarText]] = {}


def _expression(
    row: ScalarOp, names: Sequence[str], dtypes: Sequence[str], dtype: str
) -> str | None:
    if any(d not in C_TYPES for d in (*dtypes, dtype)):
        return None
    if row.name not in _OF_STORAGE and not STORAGE.keys().isdisjoint((*dtypes, dtype)):
        return None
    special = _SPECIAL.get(row.name)
    if special is not None:
        return special(row, names, dtypes, dtype)
    template = TEMPLATES.get(row.name)
    return None if template is None else _filled(template, row, names, dtypes, dtype)


def _filled(
    template: Template, row: ScalarOp, names: Sequence[str], dtypes: Sequence[str], dtype: str
) -> str | None:
    work, out = list(dtypes), dtype
    if template.arguments == "loop":
        resolved = row.numpy if isinstance(row.numpy, np.ufunc) else np.floor_divide
        *work, out = loop_of(resolved, *dtypes)
        if any(name not in C_TYPES for name in (*work, out)):
            return None
    elif template.arguments == "double":
        work, out = ["float64"] * len(dtypes), "float64"
    elif template.arguments == "result":
        work = [dtype] * len(dtypes)
    if template.arguments == "loop" and {*work} == {"int64", "uint64"}:
        return _mixed(template, names, work)
    form = template.form(kind(work[0]))
    if form is None:
        return None
    values = [converted(n, d, w) for n, d, w in zip(names, dtypes, work, strict=True)]
    text = _substituted(form, values, C_TYPES[work[0]])
    if template.truth or (dtype == "bool" and out == "bool"):
        return f"(uint8_t)({text})"
    if out in ROUNDED:
        text = f"{ROUNDED[out]}({text})"
    elif np.dtype(out).kind in "iu":
        text = f"({C_TYPES[out]})({text})"
    return converted(f"({text})", out, dtype)


def _mixed(template: Template, names: Sequence[str], work: Sequence[str]) -> str | None:
    """Compare int64 with uint64, exactly, as NumPy does."""
    form = template.form("i")
    if not template.truth or form is None:
        return None
    if work[0] == "int64":
        return f"(uint8_t)({_substituted(form, [f'order_iu({names[0]}, {names[1]})', '0'], '')})"
    return f"(uint8_t)({_substituted(form, ['0', f'order_iu({names[1]}, {names[0]})'], '')})"


def _substituted(form: str, values: Sequence[str], work: str) -> str:
    """Substitute arguments, each an identifier or a call, in a template."""
    letters = dict(zip("xywvu", values, strict=False))
    text, word = "", ""
    for letter in form + " ":
        if letter.isalnum() or letter in "_{}.":
            word += letter
            continue
        suffix = "f" if work.startswith("float") else ""
        filled = word.replace("{s}", suffix).replace("{T}", work)
        text += letters.get(word, filled) + letter
        word = ""
    return text[:-1]


def read_element(element: str, dtype: str) -> str:
    """Return the value of an element in memory."""
    if dtype in ENCODED:
        return f"{ENCODED[dtype].read}({element})"
    return f"({C_TYPES[dtype]}){element}"


def stored_element(value: str, dtype: str) -> str:
    """Return a value as an element in memory, of numbers that are not complex."""
    if dtype in ENCODED:
        return f"{ENCODED[dtype].write}({value})"
    return f"({STORED[dtype]}){value}"


def converted(value: str, given: str, wanted: str) -> str:
    """Convert ``value`` of dtype ``given`` to ``wanted``, as NumPy casts."""
    if given == wanted or (given in ROUNDED and wanted == "float32"):
        return value
    if wanted == "bool":
        return f"(uint8_t)({value} != 0)"
    if given in COMPLEX and wanted not in COMPLEX:
        part = f"creal{_suffix_of_parts(given)}({value})"
        return converted(part, COMPLEX[given], wanted)
    if wanted == "float16" and given == "float64":
        return f"half_of_double({value})"
    if given == "bool" and is_float(wanted):
        # The lanes of a choice are as wide as the compared numbers; truths have one byte.
        f = "" if wanted == "float64" else "f"
        return f"({value} ? 1.0{f} : 0.0{f})"
    if wanted in ROUNDED and given not in ("int8", "uint8"):
        return f"{ROUNDED[wanted]}((float){value})"
    return f"({C_TYPES[wanted]}){value}"


def _suffix_of_parts(dtype: str) -> str:
    """Return the suffix of C functions of a complex dtype."""
    return "f" if dtype == "complex64" else ""


def _complex(row: Any, names: Sequence[str], dtypes: Sequence[str], dtype: str) -> str:
    x, y = (converted(n, d, COMPLEX[dtype]) for n, d in zip(names, dtypes, strict=True))
    return f"complex_of{_suffix_of_parts(dtype)}({x}, {y})"


def _cast(row: Any, names: Sequence[str], dtypes: Sequence[str], dtype: str) -> str:
    return converted(names[0], dtypes[0], dtype)


def _add(row: Any, names: Sequence[str], dtypes: Sequence[str], dtype: str) -> str | None:
    """Add from the left, each sum in the dtype that NumPy gives it."""
    total, kind = names[0], dtypes[0]
    for name, other in zip(names[1:], dtypes[1:], strict=True):
        common = loop_of(np.add, kind, other)[-1]
        x, y = converted(total, kind, common), converted(name, other, common)
        if common == "bool":
            total = f"({x} | {y})"
        elif common in ROUNDED:
            total = f"{ROUNDED[common]}({x} + {y})"
        else:
            total = f"({C_TYPES[common]})({x} + {y})"
        kind = common
    return converted(total, kind, dtype)


def _switch(row: Any, names: Sequence[str], dtypes: Sequence[str], dtype: str) -> str:
    x, y = (converted(n, d, dtype) for n, d in zip(names[1:], dtypes[1:], strict=True))
    return f"({names[0]} != 0 ? {x} : {y})"


def _guarded(row: Any, names: Sequence[str], dtypes: Sequence[str], dtype: str) -> str:
    return f"({names[0]} != 0 ? {converted(names[1], dtypes[1], dtype)} : ({C_TYPES[dtype]})0)"


def _clip(row: Any, names: Sequence[str], dtypes: Sequence[str], dtype: str) -> str:
    x, low, high = (converted(n, d, dtype) for n, d in zip(names, dtypes, strict=True))
    kind = np.dtype(dtype).kind
    if kind == "c":
        s = _suffix_of_parts(dtype)
        return f"c_minimum{s}(c_maximum{s}({x}, {low}), {high})"
    if kind == "b":
        return f"({x} < {low} ? {low} : {x} > {high} ? {high} : {x})"
    name = f"clip_f{_suffix(dtype)}" if kind == "f" else f"clip_{kind}"
    return f"({C_TYPES[dtype]}){name}({x}, {low}, {high})"


def _in_wider(row: Any, names: Sequence[str], dtypes: Sequence[str], dtype: str) -> str:
    """Call a function of ``extended.h`` on numbers of the wider type."""
    arguments = [*map(str, row.parameters), *map(_widened, names, dtypes)]
    return converted(f"e_{row.name}({', '.join(arguments)})", "float64", dtype)


# Functions without the first terms of their series that need no series, or a short one.
_VECTORIZED = {
    ("exp", 2, 0, 0): "r_expm1_minus", ("exp", 1, 1, 0): "r_expm1_over",
    ("exp", 1, 1, 1): "r_expm1_over_slope", ("tanh", 1, 1, 1): "r_tanh_over_slope",
    ("erf", 1, 1, 1): "r_erf_over_slope", ("log1p", 1, 1, 1): "r_log1p_over_slope",
}  # fmt: skip
# The functions f for which f(x) / x loses no digits, in C, and its limits at 0.
_OVER_ARGUMENT = {
    "tanh": ("m_tanh", "1"), "log1p": ("m_log1p", "1"), "arctan": ("atan", "1"),
    "arctanh": ("atanh", "1"), "arcsinh": ("asinh", "1"), "arcsin": ("asin", "1"),
    "erf": ("r_erf", "1.1283791670955126"),
}  # fmt: skip


def _series_remainder(
    row: Any, names: Sequence[str], dtypes: Sequence[str], dtype: str
) -> str:
    function, *numbers = row.parameters
    text, s = None, _suffix(dtype)
    x = converted(names[0], dtypes[0], dtype)
    if row.parameters in _VECTORIZED:
        text = f"{_VECTORIZED[row.parameters]}{s}({x})"
    elif numbers == [1, 1, 0] and function in _OVER_ARGUMENT:
        called, limit = _OVER_ARGUMENT[function]
        text = f"r_over_argument{s}({called}{s}({x}), {x}, {limit})"
    if text is not None:
        return converted(text, "float64" if dtype == "float64" else "float32", dtype)
    arguments = [f"SERIES_{function.upper()}", *map(str, numbers), _widened(names[0], dtypes[0])]
    return converted(f"e_series_remainder({', '.join(arguments)})", "float64", dtype)


def _product_remainder(row: Any, names: Sequence[str], dtypes: Sequence[str], dtype: str) -> str:
    function, terms, *numbers = row.parameters
    factors = [converted(n, d, "float64") for n, d in zip(names, dtypes, strict=True)]
    factors += ["1"] * (MOST_FACTORS - len(names))
    arguments = [f"SERIES_{function.upper()}", *map(str, [terms, *packed(numbers)]), *factors]
    return converted(f"e_product_remainder({', '.join(arguments)})", "float64", dtype)


def _widened(name: str, dtype: str) -> str:
    """Return a number in the wider type; integers become float64 first, as for other functions."""
    return f"(WIDER){name if dtype.startswith('float') else f'(double){name}'}"


def _scaled_product(row: Any, names: Sequence[str], dtypes: Sequence[str], dtype: str) -> str:
    """Nest calls of the functions of ``scaled_products.h``."""
    *root, above, below = row.parameters
    parts = [f"scaled_of({converted(n, d, 'float64')})" for n, d in zip(names, dtypes, strict=True)]
    text = _multiplied(parts[:above]) if above else "scaled_of(1)"
    if below:
        text = f"scaled_over({text}, {_multiplied(parts[above:])})"
    function = {(): "log", (1,): "value", (2,): "root"}[tuple(root)]
    return converted(f"scaled_{function}({text})", "float64", dtype)


def _multiplied(parts: Sequence[str]) -> str:
    return reduce(lambda x, y: f"scaled_times({x}, {y})", parts)


def _suffix(dtype: str) -> str:
    return "" if dtype == "float64" else "f"


_SPECIAL = {
    "cast": _cast, "add": _add, "switch": _switch, "guarded": _guarded, "clip": _clip,
    "complex": _complex, "scaled_product": _scaled_product,
    "log_scaled_product": _scaled_product, "series_remainder": _series_remainder,
    "product_remainder": _product_remainder,
    "compound": _in_wider, "compoundm1": _in_wider, "spherical_jn": _in_wider,
}  # fmt: skip
