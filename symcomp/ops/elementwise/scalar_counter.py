"""The table of scalar functions, continued: random bits as functions of a counter and a key."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from symcomp.errors import DTypeError
from symcomp.ops.elementwise.elemwise import scalar

_LOW, _HALF = np.uint64(0xFFFFFFFF), np.uint64(32)
_FACTORS = np.uint64(0xD2511F53), np.uint64(0xCD9E8D57)
_STEPS = np.uint64(0x9E3779B9), np.uint64(0xBB67AE85)
_ROUNDS = 10


def _words_rule(*inputs: str) -> str:
    if any(dtype != "uint64" for dtype in inputs):
        raise DTypeError(f"words of 64 bits are uint64, got {', '.join(inputs)}")
    return "uint64"


def _philox(half: int, low: Any, high: Any, key: Any) -> Any:
    a, b, c, d = low & _LOW, low >> _HALF, high & _LOW, high >> _HALF
    k, m = key & _LOW, key >> _HALF
    for _ in range(_ROUNDS):
        p, q = a * _FACTORS[0], c * _FACTORS[1]
        a, b, c, d = (q >> _HALF) ^ b ^ k, q & _LOW, (p >> _HALF) ^ d ^ m, p & _LOW
        k, m = (k + _STEPS[0]) & _LOW, (m + _STEPS[1]) & _LOW
    return d << _HALF | c if half else b << _HALF | a


def _mul_high(x: Any, y: Any) -> Any:
    a, b, c, d = x >> _HALF, x & _LOW, y >> _HALF, y & _LOW
    middle = a * d + (b * d >> _HALF)
    other = b * c + (middle & _LOW)
    return a * c + (middle >> _HALF) + (other >> _HALF)


def _of_words(name: str, parameters: str, doc: str, function: Any) -> Any:
    return scalar(
        name, parameters, doc, function, dtype=_words_rule,
        no_derivative="its output is an integer", public=False,
    )  # fmt: skip


philox_first = _of_words(
    "philox_first", "low high key",
    "The first 64 of the 128 bits that Philox4x32-10 has for a counter, of two words, and a key.",
    partial(_philox, 0),
)  # fmt: skip
philox_last = _of_words(
    "philox_last", "low high key", "The last 64 of those bits.", partial(_philox, 1)
)
mul_high = _of_words("mul_high", "x y", "The upper 64 bits of x y.", _mul_high)

__all__ = ["mul_high", "philox_first", "philox_last"]
