"""Jacobians, Hessians and Hessian-vector products, out of Lop and Rop."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from symcomp.autodiff.lop import Lop, _like_wrt, _targets, grad
from symcomp.autodiff.maprows import map_rows
from symcomp.autodiff.rop import Rop
from symcomp.core import dtype as dtypes
from symcomp.core.node import Variable
from symcomp.core.pause import without_garbage_collection
from symcomp.core.tensor import TensorVariable
from symcomp.errors import DTypeError, ShapeError
from symcomp.ops.convert import as_tensor_variable
from symcomp.ops.shapes.shape import shape_tuple


@without_garbage_collection
def jacobian(
    expression: Any,
    wrt: Any,
    consider_constant: Sequence[Variable] | None = None,
    disconnected_inputs: str = "raise",
) -> Any:
    """Return all partial derivatives of a tensor.

    Parameters
    ----------
    expression : TensorVariable
        A real tensor of any rank (Theano: 0 or 1).
    wrt : TensorVariable or list or tuple of TensorVariable
    consider_constant, disconnected_inputs
        As for ``grad``.

    Returns
    -------
    TensorVariable or list or tuple of TensorVariable
        Tensors of shape ``expression.shape + x.shape``; element [i, j] is d expression[i] / d x[j].
        For a complex x, row i is the gradient of expression[i].

    Raises
    ------
    DTypeError
        If ``expression`` is complex.

    Examples
    --------
    >>> import symcomp
    >>> import symcomp.tensor as T
    >>> x = T.dvector("x")
    >>> symcomp.gradient.jacobian(x ** 2, x).eval({x: [1.0, 2.0]})
    array([[2., 0.],
           [0., 4.]])
    """
    targets: list[Any] = list(_targets(wrt, "jacobian"))
    if not isinstance(expression, TensorVariable):
        raise TypeError(f"jacobian: expression is {expression!r}, not a tensor variable")
    if dtypes.is_complex(expression.dtype):
        raise DTypeError(
            f"jacobian: expression is {expression.dtype}, and its derivatives would need two real "
            "numbers in place of one complex: take the jacobians of .real and of .imag"
        )
    if expression.ndim == 0:
        return grad(expression, wrt, consider_constant, disconnected_inputs)
    flat: Any = expression.flatten()

    def row(i: TensorVariable) -> list[Any]:
        # The unit vector as seed keeps the forward graph out of the loop.
        unit = flat.zeros_like()[i].set(as_tensor_variable(1.0, dtype=flat.dtype))
        return Lop([flat], targets, [unit], consider_constant, disconnected_inputs)

    rows = map_rows(row, shape_tuple(flat)[0], [x.shape for x in targets], [False] * len(targets))
    if expression.ndim > 1:
        rows = [
            j.reshape([*shape_tuple(expression), *shape_tuple(x)])
            for j, x in zip(rows, targets, strict=True)
        ]
    return _like_wrt(wrt, rows)


@without_garbage_collection
def hessian(
    cost: Any,
    wrt: Any,
    consider_constant: Sequence[Variable] | None = None,
    disconnected_inputs: str = "raise",
) -> Any:
    """Return all second derivatives of a scalar with respect to vectors, each with itself.

    Parameters
    ----------
    cost : scalar TensorVariable
    wrt : vector TensorVariable or list or tuple of them
    consider_constant, disconnected_inputs
        As for ``grad``.

    Returns
    -------
    matrix TensorVariable or list or tuple of them

    Raises
    ------
    ShapeError
        If ``cost`` is no scalar or an element of ``wrt`` no vector.

    Examples
    --------
    >>> import symcomp
    >>> import symcomp.tensor as T
    >>> x = T.dvector("x")
    >>> symcomp.gradient.hessian((x ** 3).sum(), x).eval({x: [1.0, 2.0]})
    array([[ 6.,  0.],
           [ 0., 12.]])
    """
    results = []
    for x in _targets(wrt, "hessian"):
        if not isinstance(x, TensorVariable) or x.ndim != 1:
            raise ShapeError(f"hessian: {x} is a {x.type}; wrt must be vectors (flatten it first)")
        gx = grad(cost, x, consider_constant, disconnected_inputs)
        results.append(jacobian(gx, x, consider_constant, disconnected_inputs="ignore"))
    return _like_wrt(wrt, results)


@without_garbage_collection
def hessian_vector_product(cost: Any, wrt: Any, p: Any) -> Any:
    """Return the Hessian of a scalar times a direction, at about the cost of two gradients.

    Forward over reverse (Pearlmutter, 1994, "Fast exact multiplication by the Hessian").

    Parameters
    ----------
    cost : scalar TensorVariable
    wrt : Variable or list or tuple of Variable
        Tensors of any ranks; blocks between different elements are included.
    p : tensor_like or list or tuple of them
        The direction, shaped as ``wrt``.

    Returns
    -------
    Variable or list or tuple of Variable
        Shaped as ``wrt``.

    Examples
    --------
    >>> import symcomp
    >>> import symcomp.tensor as T
    >>> x, p = T.dvectors("x", "p")
    >>> f = symcomp.gradient.hessian_vector_product((x ** 3).sum(), x, p)
    >>> f.eval({x: [1.0, 2.0], p: [1.0, 0.5]})
    array([6., 6.])
    """
    targets = _targets(wrt, "hessian_vector_product")
    directions = list(p) if isinstance(p, list | tuple) else [p]
    slopes = grad(cost, targets)
    products = Rop(slopes, targets, directions, disconnected_outputs="ignore")
    return _like_wrt(wrt, products)
