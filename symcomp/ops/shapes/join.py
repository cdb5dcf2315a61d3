"""Join, stack and split tensors."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from symcomp.core import dtype as dtypes
from symcomp.core.fields import Axis, Natural
from symcomp.core.node import Apply, Constant
from symcomp.core.op import Op
from symcomp.core.record import record
from symcomp.core.tensor import TensorType, TensorVariable
from symcomp.errors import DTypeError, ShapeError
from symcomp.ops.convert import (
    as_common,
    as_int,
    as_tensor_variable,
    cast_to,
    stack_first_axis,
)
from symcomp.ops.shapes.axes import atleast_1d, expand_dims, moveaxis
from symcomp.ops.shapes.shape import (
    as_integers,
    length_vector,
    normalize_axis,
    require_axes,
    shape_tuple,
    specify_shape,
)


@record
class Join(Op):
    """z = the inputs one after the other along ``axis``.   (.., n_k, ..) -> (.., n_1 + n_2 + ..,
    ..)
    """

    axis: Axis

    def output_types(self, *tensors: TensorVariable) -> list[TensorType]:
        if not tensors:
            raise TypeError("join: at least one tensor is needed, got none")
        first = tensors[0]
        require_axes(self, (self.axis,), first)
        shape = list(first.type.shape)
        for position, x in enumerate(tensors):
            if x.ndim != first.ndim or x.dtype != first.dtype:
                raise ShapeError(f"join: tensor {position} is {x.type}, tensor 0 is {first.type}")
            for axis, n in enumerate(x.type.shape):
                if axis == self.axis or n is None:
                    continue
                if shape[axis] not in (None, n):
                    raise ShapeError(
                        f"join along axis {self.axis}: tensor {position} ({x.type}) has length "
                        f"{n} on axis {axis}, "
                        f"the others have {shape[axis]}"
                    )
                shape[axis] = n
        parts = [x.type.shape[self.axis] for x in tensors]
        shape[self.axis] = None if None in parts else sum(n for n in parts if n is not None)
        return [TensorType(first.dtype, shape)]

    def perform(self, *tensors: Any) -> Any:
        return self.concatenated(tensors, None)

    def concatenated(self, tensors: Sequence[Any], z: Any) -> Any:
        """Concatenate into ``z``, or into a new array if it is None."""
        try:
            return np.concatenate(tensors, self.axis, z)
        except ValueError:
            raise differing_shapes(self.axis, [x.shape for x in tensors]) from None

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        result = list(shapes[0])
        result[self.axis] = sum(s[self.axis] for s in shapes[1:]) + shapes[0][self.axis]
        return [tuple(result)]

    def pullback(self, inputs: Any, outputs: Any, output_grads: Any) -> list[Any]:
        sizes = length_vector([shape_tuple(x)[self.axis] for x in inputs])
        parts = Split(self.axis, len(inputs))(output_grads[0], sizes)
        # Each part has the static lengths of its input.
        return [specify_shape(g, x.type.shape) for g, x in zip(parts, inputs, strict=True)]

    def pushforward(self, inputs: Any, outputs: Any, tangents: Any) -> list[Any]:
        return [
            self(
                *(
                    x.zeros_like() if dx is None else dx
                    for x, dx in zip(inputs, tangents, strict=True)
                )
            )
        ]


@record
class Split(Op):
    """z_k = the k-th piece of x along ``axis``, a view; the lengths are the second input."""

    axis: Axis
    n: Natural

    multiple_outputs = True

    def output_types(self, x: TensorVariable, sizes: TensorVariable) -> list[TensorType]:
        if sizes.ndim != 1 or not dtypes.is_discrete(sizes.dtype):
            raise DTypeError(
                f"split: the sizes must be an integer vector, got {sizes} ({sizes.type})"
            )
        if sizes.type.shape[0] not in (None, self.n):
            raise ShapeError(f"split: {self.n} pieces but {sizes.type.shape[0]} sizes")
        known = [int(s) for s in sizes.data] if isinstance(sizes, Constant) else [None] * self.n
        if any(s is not None and s < 0 for s in known):
            raise ShapeError(
                f"split: the sizes {known} of the pieces of {x} ({x.type}) must not be negative"
            )
        require_axes(self, (self.axis,), x)
        total = x.type.shape[self.axis]
        if (
            total is not None
            and None not in known
            and sum(s for s in known if s is not None) != total
        ):
            raise ShapeError(
                f"split: sizes {known} do not add up to the length {total} of axis {self.axis} of "
                f"{x.type}"
            )
        before, after = x.type.shape[: self.axis], x.type.shape[self.axis + 1 :]
        return [TensorType(x.dtype, (*before, s, *after)) for s in known]

    def perform(self, x: Any, sizes: Any) -> tuple[Any, ...]:
        if (
            len(sizes) != self.n
            or int(np.sum(sizes)) != x.shape[self.axis]
            or np.any(np.asarray(sizes) < 0)
        ):
            raise ShapeError(
                f"split: sizes {list(map(int, sizes))} do not divide axis {self.axis} of an array "
                f"of shape {x.shape} "
                f"in {self.n} pieces"
            )
        return tuple(np.split(x, np.cumsum(sizes[:-1]), self.axis)) if self.n else ()

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        sizes: Any = node.inputs[1]
        before, after = shapes[0][: self.axis], shapes[0][self.axis + 1 :]
        return [(*before, sizes[k], *after) for k in range(self.n)]

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        return [[True] * self.n, [False] * self.n]

    def pullback(self, inputs: Any, outputs: Any, output_grads: Any) -> list[Any]:
        grads = [
            z.zeros_like() if g is None else g for z, g in zip(outputs, output_grads, strict=True)
        ]
        common = dtypes.upcast(*(g.dtype for g in grads))
        return [Join(self.axis)(*(cast_to(g, common) for g in grads)), None]

    def pushforward(self, inputs: Any, outputs: Any, tangents: Any) -> list[Any]:
        return self(tangents[0], inputs[1])

    @property
    def view_map(self) -> dict[int, tuple[int, ...]]:  # type: ignore[override]
        """Each piece is a view of x."""
        return dict.fromkeys(range(self.n), (0,))


def differing_shapes(axis: int, shapes: Iterable[Sequence[int]]) -> ShapeError:
    """Return the error for parts that do not fit together."""
    shown = ", ".join(str(tuple(shape)) for shape in shapes)
    return ShapeError(f"join along axis {axis}: shapes {shown} differ on other axes")


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
    "concatenate", "horizontal_stack", "hstack", "Join", "join", "Split", "split", "stack",
    "stacklists", "vertical_stack", "vstack",
]  # fmt: skip
