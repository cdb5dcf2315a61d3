"""Expressions as people write them, that lose digits or overflow as written; and where to look.

Each is a function of a namespace ``m`` (of symcomp, PyTensor, JAX or exact numbers) and its
arguments, so that all compute the same thing. Needs NumPy alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Case:
    """One expression.

    Attributes
    ----------
    group, name : str
    expression : callable (m, *arguments) -> value
    points : sequence of tuple of arrays
        Where to evaluate it. Elementwise cases have one vector of places for each argument.
    elementwise : bool
        Whether the result is judged and differentiated element by element.
    """

    group: str
    name: str
    expression: Callable[..., Any]
    points: Sequence[tuple[Any, ...]]
    elementwise: bool = True


CASES: list[Case] = []


def _near(*exponents: int) -> list[float]:
    return [s * 1.2345678901234567 * 10.0**e for e in exponents for s in (1, -1)]


SMALL = np.array(_near(-300, -160, -20, -12, -8, -5, -3, -1))
POSITIVE = np.abs(SMALL[::2])
MIDDLE = np.array([-3.3, -1.1, -0.7, -0.21, 0.13, 0.58, 1.7, 2.9])
LARGE = np.array([-1e4, -740.0, -330.0, -87.3, -38.2, -17.1, 17.1, 38.2, 87.3, 330.0, 740.0, 1e4])
EVERYWHERE = np.concatenate([SMALL, MIDDLE, LARGE])
NEGATIVE = -np.abs(np.concatenate([SMALL[::2], MIDDLE, LARGE[:6]]))
INSIDE = np.concatenate([SMALL, np.array([-0.97, -0.6, -0.3, 0.3, 0.6, 0.97])])
HUGE = np.array([1e-200, 3e-9, 0.4, 1.0, 2.7, 1e5, 3e12, 1e100])


def _case(group: str, name: str, expression: Callable[..., Any], *points: Any) -> None:
    CASES.append(Case(group, name, expression, [tuple(map(np.asarray, points))]))


def _vector(
    group: str, name: str, expression: Callable[..., Any], *points: tuple[Any, ...]
) -> None:
    CASES.append(Case(group, name, expression, [tuple(map(np.asarray, p)) for p in points], False))


# -- logarithms and exponentials near 0 and 1

_case("near 1", "log(1 + x)", lambda m, x: m.log(1 + x), INSIDE)
_case("near 1", "log(1 - x)", lambda m, x: m.log(1 - x), INSIDE)
_case("near 1", "3 * log(x + 1.0)", lambda m, x: 3 * m.log(x + 1.0), INSIDE)
_case("near 1", "exp(x) - 1", lambda m, x: m.exp(x) - 1, np.concatenate([SMALL, MIDDLE, LARGE]))
_case("near 1", "1 - exp(-x)", lambda m, x: 1 - m.exp(-x), np.concatenate([SMALL, MIDDLE]))
_case("near 1", "log(1 + x) - x", lambda m, x: m.log(1 + x) - x, INSIDE[2:])
_case(
    "near 1", "(1 + x)**y - 1", lambda m, x, y: (1 + x) ** y - 1,
    np.array([1e-300, 1e-12, 1e-5, 0.3, 5.0, 1e-3]), np.array([0.4, 5.0, 1e4, 3.3, 100.0, 1e-9]),
)  # fmt: skip
_case("near 1", "log((1+x)/(1-x))", lambda m, x: m.log((1 + x) / (1 - x)), INSIDE)

# -- logistic functions

_case("logistic", "log(1 + exp(x))", lambda m, x: m.log(1 + m.exp(x)), EVERYWHERE)
_case("logistic", "1 / (1 + exp(-x))", lambda m, x: 1 / (1 + m.exp(-x)), EVERYWHERE)
_case("logistic", "exp(x) / (1 + exp(x))", lambda m, x: m.exp(x) / (1 + m.exp(x)), EVERYWHERE)
_case("logistic", "1 - sigmoid(x)", lambda m, x: 1 - 1 / (1 + m.exp(-x)), EVERYWHERE)
_case("logistic", "log(sigmoid(x))", lambda m, x: m.log(1 / (1 + m.exp(-x))), EVERYWHERE)
_case("logistic", "log(1 - sigmoid(x))", lambda m, x: m.log(1 - 1 / (1 + m.exp(-x))), EVERYWHERE)
_case(
    "logistic", "binary cross-entropy",
    lambda m, x, t: -(
        t * m.log(1 / (1 + m.exp(-x))) + (1 - t) * m.log(1 - 1 / (1 + m.exp(-x)))
    ),
    np.array([-800.0, -40.0, -3.0, 0.4, 3.0, 40.0, 800.0]),
    np.array([1.0, 1.0, 0.0, 1.0, 0.0, 1.0, 0.0]),
)  # fmt: skip
_vector(
    "logistic", "mean binary cross-entropy",
    lambda m, x, t: m.mean(
        -(t * m.log(1 / (1 + m.exp(-x))) + (1 - t) * m.log(1 - 1 / (1 + m.exp(-x))))
    ),
    ([40.0, -3.0, 55.0, -800.0], [1.0, 0.0, 1.0, 1.0]),
    ([40.0, -43.0, 55.0, -80.0], [1.0, 0.0, 1.0, 0.0]),
)  # fmt: skip

# -- sums of exponentials

ROWS_OF_LOGITS = (
    ([0.3, -1.2, 2.2, 0.7],), ([1000.0, 1001.5, 998.0, -3.0],), ([-1000.0, -1200.0, -999.5, -1e4],),
    ([40.0, -3.0, 0.5, 1.5],), ([1e-9, -3e-9, 2e-10, 0.0],),
)  # fmt: skip
_W = np.array([0.2, 1.5, 1e-3, 3.0])
_vector("sums of exp", "log(sum(exp(x)))", lambda m, x: m.log(m.sum(m.exp(x))), *ROWS_OF_LOGITS)
_vector("sums of exp", "log(mean(exp(x)))", lambda m, x: m.log(m.mean(m.exp(x))), *ROWS_OF_LOGITS)
_vector(
    "sums of exp", "log(sum(w exp(x)))", lambda m, x: m.log(m.sum(m.constant(_W) * m.exp(x))),
    *ROWS_OF_LOGITS[:4],
)  # fmt: skip
_vector("sums of exp", "softmax", lambda m, x: m.exp(x) / m.sum(m.exp(x)), *ROWS_OF_LOGITS)
_vector(
    "sums of exp", "weighted softmax",
    lambda m, x: m.constant(_W) * m.exp(x) / m.sum(m.constant(_W) * m.exp(x)), *ROWS_OF_LOGITS,
)  # fmt: skip
_vector(
    "sums of exp", "log(softmax)", lambda m, x: m.log(m.exp(x) / m.sum(m.exp(x))), *ROWS_OF_LOGITS
)
_vector(
    "sums of exp", "-log(softmax)[2]", lambda m, x: -m.log((m.exp(x) / m.sum(m.exp(x)))[2]),
    *ROWS_OF_LOGITS,
)  # fmt: skip
_vector(
    "sums of exp", "cross-entropy of softmax",
    lambda m, x: -m.sum(
        m.constant(np.array([0.1, 0.2, 0.3, 0.4])) * m.log(m.exp(x) / m.sum(m.exp(x)))
    ),
    *ROWS_OF_LOGITS,
)  # fmt: skip
PAIRS = (
    np.array([0.3, 700.0, -750.0, 40.0, -40.0, 1e-9, 720.0]),
    np.array([-1.2, 760.0, -745.0, -3.0, 3.0, -1e-9, 719.999]),
)
_case("sums of exp", "log(exp(a) + exp(b))", lambda m, a, b: m.log(m.exp(a) + m.exp(b)), *PAIRS)
_case(
    "sums of exp", "log(exp(a) - exp(b))", lambda m, a, b: m.log(m.exp(a) - m.exp(b)),
    np.maximum(*PAIRS), np.minimum(*PAIRS),
)  # fmt: skip
_case("sums of exp", "log(1 - exp(x))", lambda m, x: m.log(1 - m.exp(x)), NEGATIVE)
_case("sums of exp", "log(exp(x) - 1)", lambda m, x: m.log(m.exp(x) - 1), -NEGATIVE)

# -- error functions

_TAIL = np.array([-6.0, -1.3, -1e-9, 1e-20, 0.4, 1.1, 3.3, 6.1, 9.7, 20.0, 26.0])
_case("error functions", "1 - erf(x)", lambda m, x: 1 - m.erf(x), _TAIL)
_case(
    "error functions", "log(erfc(x))", lambda m, x: m.log(m.erfc(x)),
    np.concatenate([_TAIL, np.array([30.0, 1e3, 1e8])]),
)  # fmt: skip
_case(
    "error functions", "exp(x**2) erfc(x)", lambda m, x: m.exp(x**2) * m.erfc(x),
    np.concatenate([_TAIL, np.array([30.0, 1e3, 1e8])]),
)  # fmt: skip
_case(
    "error functions", "log of the normal CDF",
    lambda m, x: m.log(0.5 * m.erfc(-x / m.sqrt(m.constant(2.0)))),
    np.array([-1e3, -40.0, -37.1, -9.3, -1.2, -1e-7, 0.3, 2.7, 5.9, 8.0]),
)  # fmt: skip

# -- hyperbolic functions

_case("hyperbolic", "log(cosh(x))", lambda m, x: m.log(m.cosh(x)), EVERYWHERE[4:])
_case("hyperbolic", "(exp(x) - exp(-x)) / 2", lambda m, x: (m.exp(x) - m.exp(-x)) / 2, EVERYWHERE)
_case("hyperbolic", "(exp(x) + exp(-x)) / 2", lambda m, x: (m.exp(x) + m.exp(-x)) / 2, EVERYWHERE)
_case(
    "hyperbolic", "(e^x - e^-x) / (e^x + e^-x)",
    lambda m, x: (m.exp(x) - m.exp(-x)) / (m.exp(x) + m.exp(-x)), EVERYWHERE,
)  # fmt: skip
_case(
    "hyperbolic", "(e^2x - 1) / (e^2x + 1)",
    lambda m, x: (m.exp(2 * x) - 1) / (m.exp(2 * x) + 1), EVERYWHERE,
)  # fmt: skip

# -- gamma functions

_G = np.array([1e-100, 1e-5, 0.4, 1.3, 3.7, 25.0, 150.0, 300.0, 1e5])
_case("gamma", "log(gamma(x))", lambda m, x: m.log(m.gamma(x)), _G)
_case("gamma", "gamma(x + 1/2) / gamma(x)", lambda m, x: m.gamma(x + 0.5) / m.gamma(x), _G[1:])
_case(
    "gamma", "gamma(x) gamma(y) / gamma(x + y)",
    lambda m, x, y: m.gamma(x) * m.gamma(y) / m.gamma(x + y),
    np.array([0.3, 2.5, 100.0, 200.0, 1e-5]), np.array([0.7, 3.5, 120.0, 2.5, 1e5]),
)  # fmt: skip

# -- roots and squares

_LEGS = (np.array([3e-200, 3e200, 1.7, 0.0, 1e-5]), np.array([4e-200, -4e200, 2.2, 3.0, 1e5]))
_case("roots", "sqrt(x**2 + y**2)", lambda m, x, y: m.sqrt(x**2 + y**2), *_LEGS)
_vector(
    "roots", "sqrt(sum(x**2))", lambda m, x: m.sqrt(m.sum(x**2)),
    ([3e-200, 4e-200, 1e-201],), ([3e200, -4e200, 1e199],), ([1.3, -2.1, 0.4],), ([0.0, 0.0, 0.0],),
)  # fmt: skip
_case("roots", "sqrt(x + 1) - sqrt(x)", lambda m, x: m.sqrt(x + 1) - m.sqrt(x), HUGE)
_case(
    "roots", "x**2 - y**2", lambda m, x, y: x**2 - y**2,
    np.array([1e8 + 1, 3.1, 1e-9, 1.0000001, -7.7]), np.array([1e8, -2.2, 1e-9, 1.0, 7.7000000001]),
)  # fmt: skip
_vector(
    "roots", "mean(x**2) - mean(x)**2", lambda m, x: m.mean(x**2) - m.mean(x) ** 2,
    ([1e8 + 1.0, 1e8 + 2.0, 1e8 + 4.0],), ([1.0, 1.0 + 1e-9, 1.0 - 1e-9],), ([0.3, -2.0, 7.0],),
)  # fmt: skip

# -- trigonometric functions, quotients with limits

_T = np.concatenate([SMALL, MIDDLE, np.array([17.3, -97.1])])
_case("limits", "1 - cos(x)", lambda m, x: 1 - m.cos(x), _T[4:])
_case("limits", "(1 - cos(x)) / x**2", lambda m, x: (1 - m.cos(x)) / x**2, _T)
_case("limits", "sin(x) / x", lambda m, x: m.sin(x) / x, _T)
_case("limits", "(exp(x) - 1) / x", lambda m, x: (m.exp(x) - 1) / x, EVERYWHERE)
_case("limits", "x / (exp(x) - 1)", lambda m, x: x / (m.exp(x) - 1), EVERYWHERE)
_case(
    "limits", "x log(x)", lambda m, x: x * m.log(x),
    np.array([0.0, 1e-300, 1e-9, 0.36787, 0.5, 0.9999999, 1.0, 1e10]),
)  # fmt: skip

# -- logarithms of products

_X = np.array([3e-300, 1e200, 1.3, 1.0 + 1e-9, 7e-5])
_Y = np.array([2e-200, 3e250, 4.1, 1.0 - 3e-9, 3e4])
_case("log of products", "log(x y)", lambda m, x, y: m.log(x * y), _X, _Y)
_case("log of products", "log(x / y)", lambda m, x, y: m.log(x / y), _X, 1 / _Y)
_case("log of products", "log(x**7)", lambda m, x: m.log(x**7), _X)
_vector(
    "log of products", "log(prod(x))", lambda m, x: m.log(m.prod(x)),
    ([1e-200, 1e-300, 3e-5],), ([1e200, 1e300, 3e5],), ([1.3, 0.77, 0.999],),
)  # fmt: skip

# -- linear algebra

_A = np.array([[2.0, 0.3, -0.5], [0.3, 1.5, 0.2], [-0.5, 0.2, 1.1]])
_B = np.array([[1.0, -0.4, 0.2], [0.5, 1.3, -0.1], [0.3, 0.1, 0.9]])
_vector(
    "linear algebra", "log(det(A))", lambda m, a: m.log(m.det(a)),
    (_A,), (1e-150 * _A,), (1e150 * _A,),
)  # fmt: skip
_vector(
    "linear algebra", "log(det(A B))", lambda m, a, b: m.log(m.det(m.dot(a, b))),
    (_A, _B), (1e-110 * _A, 1e-100 * _B), (1e150 * _A, _B),
)  # fmt: skip
_vector(
    "linear algebra", "x' inv(A) y", lambda m, a, x, y: m.dot(x, m.dot(m.inv(a), y)),
    (_A, [1.0, 2.0, -1.0], [0.5, 0.1, 2.0]), (1e150 * _A, [1.0, 2.0, -1.0], [0.5, 0.1, 2.0]),
)  # fmt: skip
