"""Functions of products without the first terms of their series, over powers of the factors: sin(x
y) / x, log(1 + x y) / x, (1 - cos(x^2)) / x^4 and others, with their partial derivatives.

The product leaves the range, or is rounded, where the quotient is an ordinary number. So these
functions form it in the wider type.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from symcomp.core.tensor import TensorVariable
from symcomp.errors import SymcompError
from symcomp.ops.compiled_ufuncs import CompiledFunction
from symcomp.ops.elementwise.elemwise import ROWS, Elemwise, ScalarOp, real_float_rule
from symcomp.ops.elementwise.series_remainder import COEFFICIENTS, FUNCTIONS, MOST_TERMS

# The bounds of C: one integer has the exponents and the order of a factor.
MOST_FACTORS = 3
HIGHEST_EXPONENT = 7
HIGHEST_ORDER = 14


def _product_remainder_row(name: str, terms: int, *numbers: int) -> ScalarOp:
    """Make the row of a partial derivative of f(u) / v, where f is one of FUNCTIONS without the
    terms of its series whose exponents are less than ``terms``.

    Parameters
    ----------
    name : str
    terms : int
    *numbers : int
        For each argument x three: its exponents in the products u and v, and the number of
        derivatives by x.
    """
    triples = list(zip(*(iter(numbers),) * 3, strict=False))
    _check(name, terms, numbers, triples)

    def derivative(i: int) -> Any:
        raised = [(a, b, n + (k == i)) for k, (a, b, n) in enumerate(triples)]
        return lambda *letters: letters[-1] * product_remainder(name, terms, raised, letters[:-2])

    return ScalarOp(
        "product_remainder", len(triples), _compute(name, terms, numbers), real_float_rule,
        tuple(map(derivative, range(len(triples)))), parameters=(name, terms, *numbers),
    )  # fmt: skip


def _check(name: str, terms: int, numbers: Sequence[int], triples: Sequence[Any]) -> None:
    if (
        name not in FUNCTIONS
        or any(type(k) is not int for k in (terms, *numbers))
        or not (1 <= terms <= MOST_TERMS and 3 <= len(numbers) <= 3 * MOST_FACTORS)
        or len(numbers) % 3
        or not all(1 <= a <= HIGHEST_EXPONENT and 0 <= b <= HIGHEST_EXPONENT for a, b, _ in triples)
        or not (min(n for *_, n in triples) >= 0 and sum(n for *_, n in triples) <= HIGHEST_ORDER)
    ):
        raise SymcompError(
            f"product_remainder{{{', '.join(map(repr, (name, terms, *numbers)))}}}: the function "
            f"must be one of {', '.join(FUNCTIONS)}, the terms an int from 1 to {MOST_TERMS}; for "
            f"each of up to {MOST_FACTORS} arguments follow two exponents, from 1 and from 0 to "
            f"{HIGHEST_EXPONENT}, and an order; the orders add up to at most {HIGHEST_ORDER}"
        )


def packed(numbers: Sequence[int]) -> list[int]:
    """Return the integers that C unpacks, of all factors; those of missing factors are 0."""
    triples = zip(*(iter(numbers),) * 3, strict=True)
    found = [a + 8 * b + 64 * n for a, b, n in triples]
    return found + [0] * (MOST_FACTORS - len(found))


def _compute(name: str, terms: int, numbers: Sequence[int]) -> Any:
    """Return the C function for arrays, which has ones for missing factors."""
    function = CompiledFunction(
        "product_remainder", FUNCTIONS.index(name), terms, *packed(numbers)
    )

    def compute(*xs: Any) -> Any:
        return function(*xs, *[np.ones((), xs[0].dtype)] * (MOST_FACTORS - len(xs)))

    return compute


ROWS["product_remainder"] = _product_remainder_row


def product_remainder(
    name: str, terms: int, triples: Sequence[tuple[int, int, int]], xs: Sequence[Any]
) -> TensorVariable:
    """Return a partial derivative of f(u) / v, its limit where u is 0: each factor of ``xs`` has
    its exponents in u and v and its order in ``triples``.
    """
    while terms < MOST_TERMS and not COEFFICIENTS[name][terms]:
        terms += 1
    numbers = [n for triple in triples for n in triple]
    return Elemwise(_product_remainder_row(name, terms, *numbers))(*xs)


__all__: list[str] = []
