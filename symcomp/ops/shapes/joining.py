"""Tensors joined and split, as users call them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from symcomp.core import dtype as dtypes
from symcomp.core.tensor import TensorVariable
from symcomp.errors import ShapeError
from symcomp.ops.convert import as_common, as_int, as_tensor_variable, cast_to, stack_first_axis
from symcomp.ops.shapes.axes import atleast_1d, expand_dims, moveaxis
from symcomp.ops.shapes.join import Join, Split
from symcomp.ops.shapes.shape import as_integers, normalize_axis


def join(axis: Any, *tensors: Any) -> TensorVariable:
    """Join the tensors along an existing axis.

    Parameters
    ----------
    axis : int
    *tensors : tensor_like
        Tensors of equal rank, and equal lengths on the other axes. The dtype of the result is their
        common one.

    Raises
    ------
    ShapeError

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> x = T.dvector("x")
    >>> T.join(0, x, x).eval({x: [1, 2]})
    array([1., 2., 1., 2.])
    """
    if not tensors:
        raise TypeError("join: no tensors given")
    parts = as_common(*tensors)
    if parts[0].ndim == 0:
        raise ShapeError("join: scalars cannot be joined; use stack")
    number = normalize_axis("join", axis, parts[0].ndim)
    common = dtypes.upcast(*(x.dtype for x in parts))
    if len(parts) == 1:
        return parts[0]
    return Join(number)(*(cast_to(x, common) for x in parts))


def concatenate(tensor_list: Sequence[Any], axis: Any = 0) -> TensorVariable:
    """Join with NumPy's arguments.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> x = T.dmatrix("x")
    >>> T.concatenate([x, x], axis=1).eval({x: [[1, 2]]})
    array([[1., 2., 1., 2.]])
    """
    if isinstance(tensor_list, TensorVariable):
        raise TypeError(f"concatenate: a list of tensors is needed, got the tensor {tensor_list}")
    return join(axis, *tensor_list)


def stack(*tensors: Any, axis: int = 0) -> TensorVariable:
    """Stack the tensors along a new axis.

    Parameters
    ----------
    *tensors : tensor_like
        Tensors of equal shape; or one list of them (then ``axis`` may follow as second argument).
    axis : int
        The new axis.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> x, y = T.dvectors("x", "y")
    >>> T.stack([x, y], axis=1).eval({x: [1, 2], y: [3, 4]})
    array([[1., 3.],
           [2., 4.]])
    """
    if tensors and isinstance(tensors[0], list | tuple):
        if len(tensors) == 2:
            axis = tensors[1]
        tensors = tuple(tensors[0])
    if not tensors:
        raise TypeError("stack: no tensors given")
    stacked = stack_first_axis(tensors)
    return moveaxis(stacked, 0, normalize_axis("stack", axis, stacked.ndim))


def stacklists(arg: Any) -> TensorVariable:
    """Stack nested lists of tensors into one.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> a = T.dscalar("a")
    >>> T.stacklists([[a, 1.0], [2.0, 3.0]]).eval({a: 0.0})
    array([[0., 1.],
           [2., 3.]])
    """
    return as_tensor_variable(arg)


def split(
    x: Any, splits_size: Any, n_splits: int | None = None, axis: Any = 0
) -> list[TensorVariable]:
    """Take ``x`` apart along an axis.

    Parameters
    ----------
    x : tensor_like
    splits_size : integer vector or sequence
        The length of each piece; they must add up to the length of the axis.
    n_splits : int, optional
        The number of pieces; needed if the length of ``splits_size`` is unknown.
    axis : int

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> x = T.dvector("x")
    >>> a, b = T.split(x, [1, 2])
    >>> b.eval({x: [1, 2, 3]})
    array([2., 3.])
    """
    x = as_tensor_variable(x)
    sizes = cast_to(as_integers(splits_size, "split", "splits_size"), "int64")
    if n_splits is not None:
        n_splits = as_int(n_splits, "split", "n_splits", 0)
    else:
        if sizes.ndim != 1 or sizes.type.shape[0] is None:
            raise ShapeError(
                f"split: pass n_splits, as the length of {sizes} ({sizes.type}) is unknown"
            )
        n_splits = sizes.type.shape[0]
    return Split(normalize_axis("split", axis, x.ndim), n_splits)(x, sizes)


def horizontal_stack(*args: Any) -> TensorVariable:
    """Join matrices side by side.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> T.horizontal_stack([[1], [2]], [[3], [4]]).eval()
    array([[1, 3],
           [2, 4]])
    """
    return _stack_matrices("horizontal_stack", 1, args)


def vertical_stack(*args: Any) -> TensorVariable:
    """Join matrices below one another.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> T.vertical_stack([[1, 2]], [[3, 4]]).eval()
    array([[1, 2],
           [3, 4]])
    """
    return _stack_matrices("vertical_stack", 0, args)


def _stack_matrices(name: str, axis: int, args: tuple[Any, ...]) -> TensorVariable:
    tensors = [as_tensor_variable(a) for a in args]
    for position, x in enumerate(tensors):
        if x.ndim != 2:
            raise ShapeError(f"{name}: argument {position} ({x.type}) is no matrix")
    return join(axis, *tensors)


def hstack(tup: Sequence[Any]) -> TensorVariable:
    """Stack as NumPy's hstack: along axis 1, vectors along axis 0.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> T.hstack([[1, 2], [3]]).eval()
    array([1, 2, 3])
    """
    tensors = [atleast_1d(a) for a in tup]
    return join(0 if tensors[0].ndim == 1 else 1, *tensors)


def vstack(tup: Sequence[Any]) -> TensorVariable:
    """Stack as NumPy's vstack: along axis 0, vectors as rows.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> T.vstack([[1, 2], [3, 4]]).eval()
    array([[1, 2],
           [3, 4]])
    """
    tensors = [as_tensor_variable(a) for a in tup]
    return join(0, *[expand_dims(x, 0) if x.ndim == 1 else x for x in tensors])


__all__ = [
    "concatenate", "horizontal_stack", "hstack", "join", "split", "stack", "stacklists",
    "vertical_stack", "vstack",
]  # fmt: skip
