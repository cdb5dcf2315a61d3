"""In-place variants of the scalar functions: ``exp_inplace(x)`` overwrites x. For
``accept_inplace=True``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from symcomp.core.tensor import TensorVariable
from symcomp.ops.elementwise import (
    scalar_error,
    scalar_gamma,
    scalar_logic,
    scalar_logistic,
    scalar_math,
    scalar_special,
    scalar_trigonometry,
)
from symcomp.ops.elementwise.elemwise import Elemwise, elemwise_function

_NAMES = {
    scalar_math: (
        "abs_ neg sgn inv sqr sqrt exp exp2 expm1 log log2 log10 log1p ceil floor trunc "
        "round_half_to_even round_half_away_from_zero conj add sub mul true_div int_div mod pow "
        "maximum minimum second identity"
    ),
    scalar_trigonometry: (
        "deg2rad rad2deg sin cos tan arcsin arccos arctan arctan2 sinh cosh tanh arcsinh arccosh "
        "arctanh"
    ),
    scalar_logistic: "sigmoid softplus xlogx",
    scalar_logic: "and_ or_ xor invert switch",
    scalar_error: "erf erfc erfcx erfinv erfcinv",
    scalar_gamma: "gamma gammaln psi tri_gamma",
    scalar_special: "j0 j1 jv i0 i1 iv",
}


def _variant(function: Callable[..., Any], name: str) -> Callable[..., TensorVariable]:
    row = function.op.scalar if hasattr(function, "op") else scalar_math.ROWS[name]()
    position = 1 if row.name == "switch" else 0
    arguments = ["x", "y", "w"][: row.arity] or ["*x"]
    doc = f"``{name}``, overwriting its {'second' if position else 'first'} argument."
    return elemwise_function(Elemwise(row, ((0, position),)), f"{name}_inplace", arguments, doc)


NAMES = {
    f"{name}_inplace": _variant(getattr(module, name), name)
    for module, names in _NAMES.items()
    for name in names.split()
}
__all__ = [*NAMES]
globals().update(NAMES)
