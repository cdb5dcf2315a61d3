"""Functions that vanish at 0, divided by their argument: tanh(x) / x and others, with derivatives
of every order that lose no digits near 0.
"""

from __future__ import annotations

from typing import Any

from symcomp.core.tensor import TensorVariable
from symcomp.errors import SymcompError
from symcomp.ops.compiled_ufuncs import CompiledFunction
from symcomp.ops.elementwise.elemwise import ROWS, Elemwise, ScalarOp, real_float_rule

# Derivatives of higher orders are not supported: kernels keep the coefficients on the stack.
HIGHEST = 20
# The functions by their NumPy names; the order is that of the numbers in `extended.h`.
FUNCTIONS = ("sinh", "tan", "tanh", "log1p", "arctan", "arctanh", "arcsinh", "arcsin", "erf")


def _over_argument_row(name: str, n: int) -> ScalarOp:
    """Return the n-th derivative of f(x) / x, where f is one of FUNCTIONS."""
    if name not in FUNCTIONS or type(n) is not int or not 0 <= n <= HIGHEST:
        raise SymcompError(
            f"over_argument{{{name!r}, {n!r}}}: the function must be one of "
            f"{', '.join(FUNCTIONS)} and the order an int from 0 to {HIGHEST}"
        )

    def derivative(x: Any, z: Any, g: Any) -> Any:
        return g * over_argument(name, n + 1, x)

    compute = CompiledFunction("over_argument", FUNCTIONS.index(name), n)
    return ScalarOp(
        "over_argument", 1, compute, real_float_rule, (derivative,), parameters=(name, n)
    )


ROWS["over_argument"] = _over_argument_row


def over_argument(name: str, n: int, x: Any) -> TensorVariable:
    """Return the n-th derivative of f(x) / x, its limit at 0, where f is one of FUNCTIONS."""
    return Elemwise(_over_argument_row(name, n))(x)


__all__: list[str] = []
