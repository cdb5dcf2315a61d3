# ruff: noqa: E501
"""Relatives of the expressions of stability_cases.py, by family, from 1e-300 to 1e300.

They were written down before any was computed, to see what rules do with expressions that they were
not made for. Needs NumPy alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from stability_cases import Case

RELATIVES: list[Case] = []

# Digits that are no power of two, at all scales.
_POWERS = (-300, -200, -160, -155, -100, -30, -16, -8, -5, -3, -1)
TINY = np.array([1.2345678901234567 * 10.0**e for e in _POWERS])
UNITS = np.array([0.3, 0.70703125, 0.9999, 1.0000001, 1.7, 2.9, 9.3])
BIG = np.array([36.7, 87.3, 710.1, 1e4, 3.7e7, 1.1e16, 1.7e100, 1.3e154, 3e160, 2.3e200, 1.9e300])
POSITIVE = np.concatenate([TINY, UNITS, BIG])
REAL = np.concatenate([POSITIVE, -POSITIVE])
SMALL = np.concatenate([TINY, -TINY, [0.3, 0.7, -0.3, -0.7, 0.96, -0.96]])
MODERATE = np.concatenate([TINY, UNITS, BIG[:4]])
MODERATE = np.concatenate([MODERATE, -MODERATE])
# Pairs of one size, of different ones, nearly equal, and at both ends.
PAIRS = np.array(
    [
        (3e-300, 4e-300), (1.1e-200, 3.7e-200), (3.3e-160, 4.7e-161), (2e-155, 7e-156), (1e-20, 1.3e-9),
        (1e-8, 1.1e-8), (0.3, 0.4), (1.0000001, 1.0), (1.7, 2.9), (3.3, 1e-9), (1e8 + 1, 1e8),
        (7.7, 36.1), (12.3, 710.4), (1e16, 3e15), (3e100, 4.4e99), (3e155, 4.7e154), (1.3e200, 2.7e199),
        (1.1e300, 1.3e300), (2e150, 3e-150), (3e-180, 5e180), (1.7e-300, 1.3), (2.3e300, 0.7),
        (7e-310, 1.3e-290), (1.1e200, 1.3e-200),
    ]
).T  # fmt: skip
SIGNED_PAIRS = np.concatenate([PAIRS, PAIRS * [[1], [-1]], -PAIRS], axis=1)
TRIPLES = np.array(
    [
        (1.1e200, 1.3e200, 1.7e200), (1.1e-200, 1.3e-200, 1.7e-200), (3e200, 5e-100, 7e150), (0.3, 1.7, 2.9),
        (3e-180, 5e180, 1.3), (1.1e300, 1.3e-300, 0.7), (3e-300, 7e300, 1.1e300), (1e8, 1e-8, 1.3),
        (2e155, 3e155, 3e-155), (7e-155, 3e-160, 2e-170), (2e300, 1.5, 3e10), (1e-300, 1e-5, 1e-290),
    ]
).T  # fmt: skip
ROWS = [
    [0.3, -1.2, 2.2, 0.7], [1.1e200, -1.3e200, 0.7e200, 1.9e199], [1.1e-200, -1.3e-200, 0.7e-200, 1.9e-199],
    [3e155, 4e154, -5e153, 1e155], [3e-160, 4e-161, 5e-162, -1e-163], [1.3e300, 2e299, -7e298, 1e300],
    [1.1e-300, 2e-300, 3e-300, -5e-300], [1e200, 1.3, -2.9, 1e-200], [1e8 + 1, 1e8, 1e8 + 3, 1e8 - 2],
    [1.0, 1 + 1e-9, 1 - 3e-9, 1 + 2e-8],
]  # fmt: skip
LOGITS = [
    [0.3, -1.2, 2.2, 0.7], [1000.0, 1001.5, 998.0, -3.0], [-1000.0, -1200.0, -999.5, -1e4],
    [40.0, -3.0, 0.5, 1.5], [1e-9, -3e-9, 2e-10, 5e-11], [1e-200, -3e-200, 2e-201, 5e-210],
    [800.0, 20.0, -750.0, 2.5], [1e5, 1e5 - 3, -1e5, 7.0], [36.5, 1.1, 0.7, -0.4],
]  # fmt: skip
VALUES = [0.7, -1.3, 2.9, 1.1]


def expression(text: str) -> Callable[..., Any]:
    """Return the function of a namespace and arguments x, y, z that a text writes down."""
    code = compile(text, text, "eval")
    functions = [name for name in code.co_names if name not in ("x", "y", "z")]

    def compute(m: Any, *arguments: Any) -> Any:
        names = {name: getattr(m, name) for name in functions}
        return eval(code, names | dict(zip("xyz", arguments, strict=False)))

    return compute


def _each(family: str, points: Any, *texts: str) -> None:
    places = tuple(np.atleast_2d(points))
    RELATIVES.extend(Case(family, text, expression(text), [places]) for text in texts)


def _whole(family: str, points: Any, *texts: str) -> None:
    places = [tuple(map(np.asarray, point)) for point in points]
    RELATIVES.extend(Case(family, text, expression(text), places, False) for text in texts)


# -- 0 / 0 with a limit, also at arguments whose squares underflow

_each(
    "limits", MODERATE,
    "sin(x) / x", "tan(x) / x", "sinh(x) / x", "tanh(x) / x", "arctan(x) / x", "arcsinh(x) / x",
    "(exp(x) - 1) / x", "(1 - exp(-x)) / x", "x / (exp(x) - 1)", "x / (1 - exp(-x))", "expm1(x) / x",
    "(exp(2 * x) - 1) / x", "(exp(x) - exp(-x)) / x", "(exp(x) - exp(-x)) / (2 * x)", "erf(x) / x",
    "x / tanh(x)", "x / sinh(x)", "x / arctan(x)", "(1 - cos(x)) / x", "(1 - cos(x)) / x**2",
    "(cosh(x) - 1) / x**2", "(cosh(x) - 1) / x", "sin(x)**2 / x**2", "(sin(x) / x)**2", "tanh(x)**2 / x**2",
    "tanh(x)**2 / x", "(exp(x**2) - 1) / x**2", "(1 - exp(-x**2)) / x**2", "log(1 + x**2) / x**2",
    "log(1 + x**2) / x", "sin(x**2) / x**2", "sin(x**2) / x", "tanh(x**2) / x**2", "(1 - cos(x**2)) / x**4",
    "(exp(x) - 1 - x) / x**2", "(exp(x) - 1 - x) / x", "(x - sin(x)) / x**3", "(1 - sin(x) / x) / x**2",
    "(sin(x) - x * cos(x)) / x**3", "(sqrt(1 + x**2) - 1) / x**2", "(sqrt(1 + x**2) - 1) / x",
    "((exp(x) - 1) / x)**2", "(exp(x) - 1)**2 / x", "(1 - cos(x)) / sin(x)", "(1 - cos(x)) / sin(x)**2",
    "sin(x) / tanh(x)", "sin(2 * x) / sin(x)", "tan(x) / sin(x)", "(exp(x) - 1) / (exp(2 * x) - 1)",
    "(exp(x) - 1) / (exp(x) + 1) / x", "arctan(x**2) / x**2",
)  # fmt: skip
_each(
    "limits", SMALL,
    "log(1 + x) / x", "x / log(1 + x)", "log1p(x) / x", "log(1 - x) / x", "log((1 + x) / (1 - x)) / x",
    "arcsin(x) / x", "arctanh(x) / x", "(sqrt(1 + x) - 1) / x", "(1 - sqrt(1 - x)) / x",
    "((1 + x)**3 - 1) / x", "(1 / (1 - x) - 1) / x", "(1 - 1 / (1 + x)) / x", "(1 - sqrt(1 - x**2)) / x**2",
    "(x - log(1 + x)) / x**2", "(log(1 + x) - x) / x**2", "(sqrt(1 + x) - sqrt(1 - x)) / x",
    "((1 + x)**0.5 - 1) / x", "(exp(x) - 1) / log(1 + x)", "(1 + x)**(1 / x)", "log(1 + x) / sin(x)",
    "(1 - x**2)**0.5", "(1 - (1 - x)**5) / x",
)  # fmt: skip
_each(
    "limits", SIGNED_PAIRS,
    "sin(x * y) / (x * y)", "(exp(x * y) - 1) / (x * y)", "(exp(x * y) - 1) / x", "sin(x * y) / x",
    "(1 - exp(-x * y)) / y", "log(1 + x * y) / x", "tanh(x * y) / x",
)  # fmt: skip

# -- differences of nearly equal numbers

_each(
    "differences", POSITIVE,
    "1 / x - 1 / (x + 1)", "1 / (x + 1) - 1 / (x + 2)", "x / (x + 1) - 1", "1 - x / (1 + x)",
    "1 - 1 / (1 + x)", "1 - 1 / (1 + x**2)", "1 - x**2 / (1 + x**2)", "x / (x + 1) - (x + 1) / (x + 2)",
    "1 / x**2 - 1 / (x + 1)**2", "1 / x - 1 / (x**2 + x)", "x - x**2 / (x + 1)", "x**2 / (1 + x) - x",
    "1 / sqrt(x) - 1 / sqrt(x + 1)", "sqrt(x**2 + 1) - x", "sqrt(1 + x**2) - 1", "sqrt(x**2 + x) - x",
    "sqrt(x + 1) - sqrt(x)", "sqrt(x) - sqrt(x - 1)", "sqrt(x + 2) - sqrt(x)", "sqrt(4 * x + 1) - sqrt(4 * x)",
    "sqrt(x**2 + 1) - sqrt(x**2)", "x * (sqrt(1 + 1 / x) - 1)", "x * (sqrt(x + 1) - sqrt(x))",
    "(x + 1)**2 - x**2", "(x + 1)**3 - x**3", "(1 + x)**2 - 1", "1 / (1 + x)**2 - 1", "(x**2 - 1) / (x + 1)",
    "log(x + 1) - log(x)", "log(x + 2) - log(x + 1)", "log(1 + 1 / x)", "log((x + 1) / x)",
    "x * log(1 + 1 / x)", "log(x + sqrt(x**2 + 1))", "log(sqrt(1 + x**2) - x)", "exp(1 / x) - 1",
    "arctan(x + 1) - arctan(x)", "arctan(1 / x)", "x / sqrt(1 + x**2) - 1", "1 - x / sqrt(1 + x**2)",
    "1 / x - 1 / sqrt(1 + x**2)", "x + 1 - sqrt(x**2 + 1)", "(x + 2) / (x + 1) - 1", "x - 1 / (1 + 1 / x)",
    "1 / (x - 1) - 1 / x", "1 / (x - 1) - 1 / (x + 1)", "(x + 1) / (x - 1) - 1", "x / (x - 1) - 1",
    "(x**2 + 1) / (x**2 - 1) - 1",
)  # fmt: skip
_each(
    "differences", SMALL,
    "1 / (1 - x) - 1 / (1 + x)", "1 / (1 - x) - 1", "(1 - x) / (1 + x) - 1", "1 / (1 + x) - 1 + x",
    "1 - sqrt(1 - x)", "1 - sqrt(1 - x**2)", "sqrt(1 + x) - sqrt(1 - x)", "sqrt(1 + x) - 1", "1 - (1 - x)**2",
    "(1 + x) / (1 - x) - (1 - x) / (1 + x)", "1 / (1 + x)**2 - 1 / (1 - x)**2", "1 / sqrt(1 + x) - 1",
    "cos(x) - 1", "cosh(x) - 1", "1 - 1 / cosh(x)", "1 / cos(x) - 1", "exp(x) - exp(-x)", "exp(x) - exp(2 * x)",
    "exp(x) - cos(x)", "log(1 + x) - log(1 - x)", "log(1 + x) + log(1 - x)", "x - sin(x)", "tan(x) - x",
    "exp(x) - 1 - x", "x - tanh(x)", "log(cos(x))", "1 - tanh(x)**2", "(1 + x)**(1 / 3) - 1", "2**x - 1",
    "x**2 - sin(x)**2",
)  # fmt: skip
_each(
    "differences", SIGNED_PAIRS,
    "1 / x - 1 / y", "x / y - y / x", "x / (x + y) - y / (x + y)", "1 - x / (x + y)", "x**2 - y**2",
    "x / y - 1", "1 / x**2 - 1 / y**2", "x**3 - y**3", "(x - y) / (x + y)", "(x**2 - y**2) / (x - y)",
    "1 / (x + y) - 1 / x", "sqrt(x**2 + y**2) - x", "1 / (1 + x) - 1 / (1 + y)", "x / (1 + x) - y / (1 + y)",
)  # fmt: skip
_each(
    "differences", PAIRS,
    "sqrt(x) - sqrt(y)", "1 / sqrt(x) - 1 / sqrt(y)", "log(x) - log(y)", "sqrt(x + y) - sqrt(x)",
    "log(x + y) - log(x)",
)  # fmt: skip

# -- powers written as exponentials of logarithms, and powers

_each(
    "powers", POSITIVE,
    "exp(2 * log(x))", "exp(-log(x))", "exp(0.5 * log(x))", "exp(3 * log(x))", "exp(log(x) / 3)",
    "exp(-2 * log(x))", "exp(1.7 * log(x))", "exp(x * log(2.0))", "exp(-x * log(10.0))", "exp(log(x) + 1)",
    "exp(0.5 * log(1 + x**2))", "exp(-log(1 + x))", "exp(2 * log(1 + x))", "exp(log(x)) - x",
    "exp(log(x) - log(1 + x))", "exp(x * log(1 + 1 / x))", "(1 + 1 / x)**x", "exp(x * log(x))", "x**x",
    "x**0.3", "x**-0.7", "x**1.5", "x**(1 / 3)", "(x**2)**0.5", "(x**3)**(1 / 3)", "sqrt(x)**3", "exp(-x) * x**2",
    "exp(log(x)**2)", "x**2 * exp(-x)", "exp(-log(x)**2 / 2) / x", "exp(2.5 * log(x) - x)",
)  # fmt: skip
_each(
    "powers", PAIRS,
    "exp(y * log(x))", "exp(log(x) + log(y))", "exp(log(x) - log(y))", "exp((log(x) + log(y)) / 2)",
    "exp(y * log(1 + x))", "(1 + x)**y", "x**y", "exp(2 * log(x) - log(y))", "exp(-y * log(x))", "(x / y)**0.5",
    "exp(x - y)", "exp(x) / exp(y)", "exp(y * log(x)) - 1", "x**y / x**(y + 1)", "exp(0.3 * log(x) + 0.7 * log(y))",
)  # fmt: skip
_whole(
    "powers", [(np.abs(row),) for row in ROWS],
    "exp(mean(log(x)))", "exp(sum(log(x)))", "prod(x)**0.25", "exp(mean(log(x))) / mean(x)",
)  # fmt: skip

# -- means with exponential weights

_whole(
    "weighted means", [(row, VALUES) for row in LOGITS],
    "sum(y * exp(x)) / sum(exp(x))", "sum(y * exp(-x)) / sum(exp(-x))", "sum(y**2 * exp(x)) / sum(exp(x))",
    "sum(exp(x) / sum(exp(x)) * y)", "sum(y * exp(2 * x)) / sum(exp(2 * x))", "mean(y * exp(x)) / mean(exp(x))",
    "log(sum(exp(x) * y**2) / sum(exp(x)))", "sum(y * exp(x - max(x))) / sum(exp(x - max(x)))",
    "sqrt(sum(y**2 * exp(x)) / sum(exp(x)))", "sum(exp(x) * exp(y)) / sum(exp(x))",
)  # fmt: skip
_whole(
    "weighted means", [(row,) for row in LOGITS],
    "sum(x * exp(x)) / sum(exp(x))", "sum(x * exp(-x)) / sum(exp(-x))", "sum(exp(2 * x)) / sum(exp(x))**2",
    "exp(x) / (1 + sum(exp(x)))", "log(1 + sum(exp(x)))", "sum(x * exp(x)) / sum(exp(x)) - log(sum(exp(x)))",
    "sum(x**2 * exp(x)) / sum(exp(x))", "exp(x) / sum(exp(x)) * x", "sqrt(exp(x) / sum(exp(x)))",
    "exp(2 * x) / sum(exp(2 * x))", "exp(-x / 3) / sum(exp(-x / 3))", "log(sum(exp(x))) - log(sum(exp(2 * x)))",
    "exp(x - max(x)) / sum(exp(x - max(x)))", "-sum(exp(x) / sum(exp(x)) * log(exp(x) / sum(exp(x))))",
)  # fmt: skip
_LOGIT_PAIRS = np.array(
    [
        (0.3, -1.2), (800.0, 799.0), (-800.0, -802.5), (1000.0, -1000.0), (-1e4, 1e4), (1e-9, -2e-9), (40.0, 3.0),
        (1e-200, 3e-200), (710.0, 0.1), (-5.5, 720.3), (1.7, 1.7000001), (36.9, -1.1),
    ]
).T  # fmt: skip
_each(
    "weighted means", _LOGIT_PAIRS,
    "exp(x) / (exp(x) + exp(y))", "(exp(x) - exp(y)) / (exp(x) + exp(y))", "(x * exp(x) + y * exp(y)) / (exp(x) + exp(y))",
    "1 / (exp(x) + exp(y))", "exp(x) * exp(y) / (exp(x) + exp(y))**2", "1 / (1 + exp(x - y))", "exp(x) / (1 + exp(x))**2",
    "x * exp(x) / (1 + exp(x))", "y * exp(x) / (1 + exp(x))", "(x + y * exp(x)) / (1 + exp(x))",
    "(2 * exp(x) + 3 * exp(y)) / (exp(x) + exp(y))", "exp(x) / (exp(y) + 1)", "(exp(x) - 1) / (exp(y) - 1)",
    "exp(-x) / (1 + exp(-x))**2", "(1 + exp(x)) / (1 + exp(y))", "log((1 + exp(x)) / (1 + exp(y)))",
    "log(1 + exp(x) + exp(y))", "exp(x) / (1 + exp(x) + exp(y))", "1 / (1 + exp(x)) - 1 / (1 + exp(y))",
    "log(1 + exp(x)) - log(1 + exp(y))", "exp(-log(1 + exp(x)))", "log(1 + exp(x)) - x",
)  # fmt: skip

# -- norms, products and quotients at both ends of the range

_each(
    "products", SIGNED_PAIRS,
    "sqrt(x**2 + y**2)", "1 / sqrt(x**2 + y**2)", "x / sqrt(x**2 + y**2)", "x / (x**2 + y**2)", "x**2 / (x**2 + y**2)",
    "x * y / (x**2 + y**2)", "(x**2 - y**2) / (x**2 + y**2)", "x * y / (x + y)", "1 / (1 / x + 1 / y)",
    "2 * x * y / (x + y)", "(x**2 + y**2) / (x + y)", "x / (x + y)", "x**2 / y**2", "(x / y)**2", "x**3 / y**3", "x**2 / y",
    "x**2 / (x * y)", "log(x**2 + y**2)", "log(sqrt(x**2 + y**2))", "0.5 * log(x**2 + y**2)", "log(x**2 / y**2)",
    "(x + y) / 2", "x * (y / x)", "arctan2(x, y)", "sqrt(x**2 + y**2) / x", "x**2 * y**2 / (x**2 + y**2)",
    "log(1 + x**2 / y**2)", "sqrt(1 + (x / y)**2)", "sqrt((x - y)**2)", "abs(x) / (abs(x) + abs(y))",
    "x / sqrt(y**2)", "(x**2 + y**2)**1.5", "(x**2 + y**2)**-0.5", "x * y / (abs(x) * abs(y))", "1 / (x**2 + y**2)",
)  # fmt: skip
_each(
    "products", PAIRS,
    "sqrt(x * y)", "sqrt(x / y)", "sqrt(x) * sqrt(y)", "sqrt(x) / sqrt(y)", "x / sqrt(x * y)", "x * sqrt(y)",
    "log(x * y)", "log(x / y)", "log(x**2 * y)", "sqrt(x**2 * y)", "x * log(x / y)", "x * log(y)", "x * log(x / y) - x + y",
    "x * log(x) / (x + y)",
)  # fmt: skip
_each(
    "products", np.concatenate([TRIPLES, TRIPLES * [[1], [-1], [1]]], axis=1),
    "x * y / z", "x / (y * z)", "x / y / z", "x * (y / z)", "x * y * z", "x**2 * y / z", "sqrt(x**2 + y**2 + z**2)",
    "x / sqrt(x**2 + y**2 + z**2)", "x * z / (y * z)", "x * y / (z * z)", "(x * y) / (x * z)", "x * y + y * z",
    "(x + y) / z", "x * y / (x + y + z)", "log(x**2 + y**2 + z**2)",
)  # fmt: skip
_each(
    "products", REAL,
    "sqrt(1 + x**2)", "1 / sqrt(1 + x**2)", "x / sqrt(1 + x**2)", "1 / (1 + x**2)", "x / (1 + x**2)", "x**2 / (1 + x**2)",
    "1 / (1 + 1 / x)", "1 / (1 + 1 / x**2)", "x**2 / (1 + x)**2", "log(1 + x**2)", "0.5 * log(1 + x**2)",
    "(1 + x**2)**0.3", "(1 + x**2)**-1.5", "x**3 / (1 + x**2)", "(1 - x**2) / (1 + x**2)", "2 * x / (1 + x**2)",
    "x**2 / x", "x**3 / x**2", "x / x**2", "x / abs(x)", "sqrt(x**2)", "exp(-x**2)", "x * exp(-x**2)", "exp(-x**2 / 2) / 3",
    "1 - exp(-x**2)", "tanh(x**2)", "x * tanh(x)", "arctan(x**2)", "1 / (x**2 + x)", "x**4 / (1 + x**4)", "sqrt(1 + x**4)",
    "sqrt(x**4 + x**2)", "x / (1 + abs(x))", "log(1 + abs(x))", "1 / x**3", "x * x * x / x",
)  # fmt: skip
_whole(
    "norms", [(row,) for row in ROWS],
    "sqrt(sum(x**2))", "sqrt(mean(x**2))", "x / sqrt(sum(x**2))", "1 / sqrt(sum(x**2))", "sum(x**2)**0.5",
    "x**2 / sum(x**2)", "x / sum(abs(x))", "log(sum(x**2))", "sqrt(sum(x * x))", "sqrt(1 + sum(x**2))",
    "sum(abs(x)**3)**(1 / 3)", "sum(x**4)**0.25", "sqrt(sum((x - mean(x))**2))", "sqrt(mean((x - mean(x))**2))",
    "(x - mean(x)) / sqrt(mean((x - mean(x))**2))", "mean((x - mean(x))**2) / mean(x**2)", "mean(x**2) - mean(x)**2",
    "sum(abs(x))", "x / max(abs(x))", "sqrt(sum(x**2)) / sum(abs(x))", "sum(x)**2 / sum(x**2)", "x / sqrt(1 + sum(x**2))",
    "x - mean(x)", "0.5 * log(sum(x**2))", "x / sqrt(mean(x**2))", "mean(x**4) / mean(x**2)**2",
)  # fmt: skip
_OTHERS = [2.9, -0.7, 1.3, 0.4]
_whole(
    "norms",
    [(row, other) for row in ROWS for other in (_OTHERS, (1e-200 * np.array(_OTHERS)), (1e200 * np.array(_OTHERS)))],
    "sqrt(sum((x - y)**2))", "sum(x * y) / sqrt(sum(x**2) * sum(y**2))", "sum(x * y) / (sqrt(sum(x**2)) * sqrt(sum(y**2)))",
    "sum(x * y) / sum(x**2)", "sqrt(sum(x**2)) * sqrt(sum(y**2))", "sqrt(sum(x**2) / sum(y**2))", "sum(x * y) / sum(abs(x))",
    "1 - sum(x * y) / (sqrt(sum(x**2)) * sqrt(sum(y**2)))",
)  # fmt: skip

# -- logistic functions, logarithms and their relatives

_each(
    "logistic", REAL,
    "log(1 + exp(-x))", "x / (1 + exp(-x))", "exp(x) / (1 + exp(x))**2", "log(exp(x) / (1 + exp(x)))",
    "log(1 + exp(x**2))", "(1 - exp(-x)) / (1 + exp(-x))", "1 / (1 + exp(-x)) - 0.5", "2 / (1 + exp(-2 * x)) - 1",
    "log((1 + tanh(x)) / 2)", "log(1 - tanh(x)**2)", "tanh(log(1 + exp(x)))", "x * tanh(log(1 + exp(x)))",
    "log(2 * cosh(x))", "1 / cosh(x)", "1 / (exp(x) + exp(-x))", "tanh(x) * (1 - tanh(x))", "exp(-exp(-x))",
    "1 - exp(-exp(x))", "log(1 - exp(-exp(x)))", "exp(x - exp(x))", "log(1 + exp(x)) * x", "1 / (1 + exp(x))**2",
    "(1 / (1 + exp(-x)))**2", "-log(1 - 1 / (1 + exp(-x)))", "exp(-x) / (1 + exp(-x))**2", "x * exp(-x) / (1 + exp(-x))",
)  # fmt: skip
_each(
    "logistic", np.concatenate([TINY, [0.3, 0.5, 0.7, 0.96, 0.9999999, 1 - 1e-15]]),
    "log(x / (1 - x))", "log(x) - log(1 - x)", "-x * log(x) - (1 - x) * log(1 - x)", "x * log(x)", "x * log(x)**2",
    "log(-log(x))", "-log(1 - x)", "(1 - x) * log(1 - x)", "sqrt(x * (1 - x))", "sqrt(-2 * log(x))", "log(1 - x) / log(x)",
    "x / (1 - x)", "arcsin(sqrt(x))", "1 / sqrt(-log(x))", "log(1 - x**2)", "x * (1 - x) / (1 - x + x**2)",
)  # fmt: skip
_each(
    "error functions", np.concatenate([MODERATE[:-4], [26.0, 38.5, -38.5, 1e3, 1e8, -1e3]]),
    "1 - erf(x)", "1 + erf(x)", "erfc(x) * exp(x**2)", "exp(-x**2) / erfc(x)", "log(1 - erf(x))", "log(erfc(x) / 2)",
    "x * erfc(x)", "0.5 * (1 + erf(x / sqrt(constant(2.0))))", "log(0.5 * (1 + erf(x / sqrt(constant(2.0)))))", "1 - erf(x)**2",
    "exp(-x**2 / 2) / (1 + erf(x / sqrt(constant(2.0))))", "erf(x)**2", "x * exp(x**2) * erfc(x)",
)  # fmt: skip
