"""Cumulative sums and products, and differences, as users call them."""

from __future__ import annotations

from typing import Any

from symcomp.core.tensor import TensorVariable
from symcomp.ops.convert import as_int, as_tensor_variable
from symcomp.ops.indexing.subtensors import getitem
from symcomp.ops.reductions.cumulative import CumOp, along
from symcomp.ops.shapes.reshaping import flatten
from symcomp.ops.shapes.shape import normalize_axis


def _cumulative(name: str, mode: str, x: Any, axis: int | None) -> TensorVariable:
    x = as_tensor_variable(x)
    if axis is None:
        x, axis = flatten(x), 0
    return CumOp(normalize_axis(name, axis, x.ndim), mode)(x)


def cumsum(x: Any, axis: int | None = None) -> TensorVariable:
    """Return the sums of the elements up to each place.

    Parameters
    ----------
    x : tensor_like
    axis : int, optional
        By default over the flattened tensor.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> x = T.dvector("x")
    >>> T.cumsum(x).eval({x: [1, 2, 3]})
    array([1., 3., 6.])
    """
    return _cumulative("cumsum", "add", x, axis)


def cumprod(x: Any, axis: int | None = None) -> TensorVariable:
    """Return the products of the elements up to each place; the gradient is exact at zeros too. See
    ``cumsum``.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> T.cumprod([1.0, 2.0, 3.0]).eval()
    array([1., 2., 6.])
    """
    return _cumulative("cumprod", "mul", x, axis)


def diff(x: Any, n: int = 1, axis: int = -1) -> TensorVariable:
    """Return the differences of neighbours, taken ``n`` times.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> x = T.dvector("x")
    >>> T.diff(x).eval({x: [1, 3, 6]})
    array([2., 3.])
    """
    x = as_tensor_variable(x)
    n = as_int(n, "diff", "n", 0)
    number = normalize_axis("diff", axis, x.ndim)
    for _ in range(n):
        late, early = (along(number, x.ndim, part) for part in (slice(1, None), slice(None, -1)))
        x = (
            getitem(x, late).neq(getitem(x, early))
            if x.dtype == "bool"
            else getitem(x, late) - getitem(x, early)
        )
    return x


__all__ = ["cumprod", "cumsum", "diff"]
