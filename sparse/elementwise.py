"""Functions of the stored entries of a sparse matrix, which keep its pattern.

They are "structured": functions of the entries and of the pattern. Functions with f(0) = 0
(``sin``, ``sqrt``) are functions of the matrix, too, and have NumPy's names; the others are called
``structured_exp`` and the like.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from symcomp.core.dtype import working
from symcomp.errors import DTypeError, ShapeError
from symcomp.ops.convert import as_common, as_tensor_variable, cast_to
from symcomp.ops.elementwise import scalar_logistic, scalar_math, scalar_trigonometry
from symcomp.sparse.components import parts_of, with_data
from symcomp.sparse.convert import compressed
from symcomp.sparse.type import SparseVariable
from symcomp.sparse.values import check_dtype

# Functions with f(0) = 0, by NumPy's or Theano's names.
ANGLES = "sin arcsin tan arctan sinh arcsinh tanh arctanh deg2rad rad2deg".split()
OTHERS = "sgn ceil floor log1p expm1 trunc sqr sqrt conj".split()
ZERO_AT_ZERO = ANGLES + OTHERS


def structured_elemwise(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that applies another to the stored entries of a sparse matrix.

    Parameters
    ----------
    function : callable
        Maps a vector, and further arguments, to a vector of the same length.

    Examples
    --------
    >>> import scipy.sparse
    >>> import symcomp.tensor as T
    >>> from symcomp import sparse
    >>> x = sparse.csr_matrix("x")
    >>> z = sparse.structured_elemwise(lambda d, n: T.cos(d) ** n)(x, 2)
    >>> z.eval({x: scipy.sparse.csr_array([[0.0, 3.14159]])}).toarray().round(3)
    array([[0., 1.]])
    """

    def apply(x: Any, *args: Any) -> Any:
        x = x if isinstance(x, SparseVariable) and x.type.format == "coo" else compressed(x)
        parts = parts_of(x)
        data = parts.data
        result = as_tensor_variable(function(data, *args))
        if result.ndim != 1:
            raise ShapeError(
                f"structured_elemwise: the function of the entries gave {result} ({result.type}), "
                "no vector"
            )
        result = cast_to(result, working(result.dtype))
        check_dtype(result.dtype)
        return with_data(x, result, parts)

    return apply


structured_monoid = structured_elemwise


def _of_row(name: str, function: Callable[..., Any]) -> Callable[[Any], Any]:
    apply = structured_elemwise(function)

    def structured(x: Any) -> Any:
        return apply(x)

    structured.__name__ = structured.__qualname__ = name
    structured.__doc__ = (
        f"Apply ``{name}`` to the stored entries of a sparse matrix.\n\nExamples\n--------\n"
        f">>> from symcomp import sparse\n>>> sparse.{name}(sparse.csr_fmatrix('A')).type\n"
        "SparseType(csr, float32)\n"
    )
    return structured


sin, arcsin, tan, arctan, sinh, arcsinh, tanh, arctanh, deg2rad, rad2deg = (
    _of_row(name, getattr(scalar_trigonometry, name)) for name in ANGLES
)
sgn, ceil, floor, log1p, expm1, trunc, sqr, sqrt, conj = (
    _of_row(name, getattr(scalar_math, name)) for name in OTHERS
)
rint = _of_row("rint", scalar_math.round)
abs_ = _of_row("abs_", scalar_math.abs_)
structured_sigmoid = _of_row("structured_sigmoid", scalar_logistic.sigmoid)
structured_exp = _of_row("structured_exp", scalar_math.exp)
structured_log = _of_row("structured_log", scalar_math.log)
real = _of_row("real", scalar_math.real)
imag = _of_row("imag", scalar_math.imag)


def _with_number(name: str, function: Callable[..., Any], what: str) -> Callable[[Any, Any], Any]:
    def structured(x: Any, y: Any) -> Any:
        def apply(data: Any, y: Any) -> Any:
            data, y = as_common(data, y)
            if y.ndim:
                raise ShapeError(f"{name}: y is {y} ({y.type}), no scalar")
            return function(data, y)

        return structured_elemwise(apply)(x, y)

    structured.__name__ = structured.__qualname__ = name
    structured.__doc__ = (
        f"{what} the stored entries of a sparse matrix and the scalar ``y``.\n\n"
        "Examples\n--------\n"
        f">>> from symcomp import sparse\n>>> sparse.{name}(sparse.csr_fmatrix('A'), 2.0).type\n"
        "SparseType(csr, float32)\n"
    )
    return structured


structured_pow = _with_number("structured_pow", scalar_math.pow, "Raise to the power ``y``:")
structured_minimum = _with_number("structured_minimum", scalar_math.minimum, "Take the lesser of")
structured_maximum = _with_number("structured_maximum", scalar_math.maximum, "Take the greater of")
structured_add = _with_number("structured_add", scalar_math.add, "Add")


def power(x: Any, n: Any) -> Any:
    """Raise a sparse matrix to a power, element by element.

    Parameters
    ----------
    x : sparse matrix
    n : number
        Positive, so that missing entries stay 0; for others see ``structured_pow``.

    Examples
    --------
    >>> import scipy.sparse
    >>> from symcomp import sparse
    >>> x = sparse.csr_matrix("x")
    >>> sparse.power(x, 3).eval({x: scipy.sparse.diags_array([1.0, 2.0])}).diagonal()
    array([1., 8.])
    """
    if isinstance(n, int | float) and not n > 0:
        raise DTypeError(
            f"power: n={n}: 0 ** {n} is not 0, so that the result would not be sparse; "
            "structured_pow raises the stored entries alone"
        )
    return structured_pow(x, n)


__all__ = [
    "abs_", "arcsin", "arcsinh", "arctan", "arctanh", "ceil", "conj", "deg2rad", "expm1",
    "floor", "imag", "log1p", "power", "rad2deg", "real", "rint", "sgn", "sin", "sinh", "sqr",
    "sqrt", "structured_add", "structured_elemwise", "structured_exp", "structured_log",
    "structured_maximum", "structured_minimum", "structured_monoid", "structured_pow",
    "structured_sigmoid", "tan", "tanh", "trunc",
]  # fmt: skip
