"""Read and write parts of tensors: ``x[...]``, set_subtensor and inc_subtensor."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from symcomp.core.node import Apply
from symcomp.core.op import Op
from symcomp.core.record import record
from symcomp.core.tensor import TensorType, TensorVariable
from symcomp.errors import DTypeError, ShapeError
from symcomp.ops.convert import as_common, as_tensor_variable, cast_to, is_python_number, with_rank
from symcomp.ops.elementwise.scalar_logic import eq, switch
from symcomp.ops.elementwise.scalar_math import second
from symcomp.ops.indexing.index_pattern import (
    IndexPattern,
    check_pattern,
    describe,
    fill_pattern,
    is_advanced,
    read_key,
    runtime_shape,
    static_shape,
)
from symcomp.ops.shapes.alloc import sum_to
from symcomp.ops.shapes.dimshuffle import DimShuffle
from symcomp.ops.shapes.shape import Reshape, Shape, ShapeI, reshape, shape_tuple


@record
class Subtensor(Op):
    """z = x[pattern]; the inputs after x are the pattern's symbols and arrays. A view if there are
    no arrays.
    """

    pattern: IndexPattern

    def __post_init__(self) -> None:
        super().__post_init__()
        check_pattern("Subtensor", self.pattern)

    def output_types(self, x: TensorVariable, *inputs: TensorVariable) -> list[TensorType]:
        return [TensorType(x.dtype, static_shape(x, self.pattern, inputs))]

    def perform(self, x: Any, *inputs: Any) -> Any:
        return np.asarray(x[fill_pattern(self.pattern, inputs)])

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        shape = runtime_shape(shapes[0], self.pattern, node.inputs[1:], shapes[1:])
        static = node.outputs[0].type.shape
        return [tuple(n if k is None else k for n, k in zip(shape, static, strict=True))]

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        return [[True]] + [[False]] * (len(node.inputs) - 1)

    def pullback(self, inputs: Any, outputs: Any, output_grads: Any) -> list[Any]:
        x, *rest = inputs
        gz = output_grads[0]
        zeros = x.zeros_like(gz.dtype)
        return [IncSubtensor(self.pattern, False)(zeros, gz, *rest)] + [None] * len(rest)

    def pushforward(self, inputs: Any, outputs: Any, tangents: Any) -> list[Any]:
        return [self(tangents[0], *inputs[1:])]

    @property
    def view_map(self) -> dict[int, tuple[int, ...]]:  # type: ignore[override]
        """A view of x unless arrays index it."""
        return {} if is_advanced(self.pattern) else {0: (0,)}

    def __str__(self) -> str:
        return f"Subtensor{{{describe(self.pattern)}}}"


@record
class IncSubtensor(Op):
    """z = x but z[pattern] = y (``set``) or z[pattern] += y.   Inputs: x, y, and the pattern's
    symbols and arrays.

    At repeated positions values are added up, or the last one is set.
    """

    pattern: IndexPattern
    set: bool
    inplace: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        check_pattern("IncSubtensor", self.pattern)

    def output_types(
        self, x: TensorVariable, y: TensorVariable, *inputs: TensorVariable
    ) -> list[TensorType]:
        region = static_shape(x, self.pattern, inputs)
        if y.dtype != x.dtype or y.ndim != len(region):
            raise DTypeError(
                f"{self}: y is {y.type}; a {x.dtype} tensor with {len(region)} axes is needed"
            )
        for axis, (have, want) in enumerate(zip(y.type.shape, region, strict=True)):
            if have not in (None, 1) and want is not None and have != want:
                raise ShapeError(
                    f"{self}: y ({y.type}) has length {have} on axis {axis}, the part of x "
                    f"({x.type}) that it goes to has "
                    f"shape {region}"
                )
        return [x.type]

    def perform(self, x: Any, y: Any, *inputs: Any) -> Any:
        return self.write(x if self.inplace else x.copy(), y, inputs)

    def write(self, z: Any, y: Any, inputs: Any) -> Any:
        """Write into ``z``."""
        key = fill_pattern(self.pattern, inputs)
        if self.set:
            z[key] = y
        elif is_advanced(self.pattern):
            np.add.at(z, key, y)
        else:
            z[key] += y
        return z

    def bind(self, node: Apply) -> Any:
        """Return ``perform``, checking that axes of y not known to have length 1 are not stretched.
        """
        fixed = self.fixed_axes(node)

        def compute(x: Any, y: Any, *inputs: Any) -> Any:
            self.check_stretching(fixed, x, y, inputs)
            return self.perform(x, y, *inputs)

        return compute if fixed else self.perform

    @staticmethod
    def fixed_axes(node: Apply) -> list[int]:
        """Return the axes of y that may not be stretched."""
        return [a for a, n in enumerate(node.inputs[1].type.shape) if n is None]

    def check_stretching(self, fixed: Sequence[int], x: Any, y: Any, inputs: Any) -> None:
        """Raise if one of the ``fixed`` axes of y would be stretched."""
        if any(y.shape[a] == 1 for a in fixed):
            region = x[fill_pattern(self.pattern, inputs)].shape
            if any(y.shape[a] != region[a] for a in fixed):
                raise ShapeError(
                    f"{self}: y has shape {y.shape}, the part that it goes to {region}; an "
                    "axis of length 1 is stretched "
                    "only if its type says so: use T.addbroadcast"
                )

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        return [shapes[0]]

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        return [[True], [True]] + [[False]] * (len(node.inputs) - 2)

    def pullback(self, inputs: Any, outputs: Any, output_grads: Any) -> list[Any]:
        x, y, *rest = inputs
        gz = output_grads[0]
        gx = gz
        if self.set:
            gx = IncSubtensor(self.pattern, True)(gz, y.zeros_like(gz.dtype), *rest)
        gy = sum_to(Subtensor(self.pattern)(gz, *rest), y)
        return [gx, gy] + [None] * len(rest)

    def pushforward(self, inputs: Any, outputs: Any, tangents: Any) -> list[Any]:
        x, y, *rest = inputs
        dx, dy = tangents[:2]
        dx = x.zeros_like() if dx is None else dx
        dy = y.zeros_like() if dy is None else dy
        return [IncSubtensor(self.pattern, self.set)(dx, dy, *rest)]

    @property
    def destroy_map(self) -> dict[int, tuple[int, ...]]:  # type: ignore[override]
        """x if in place."""
        return {0: (0,)} if self.inplace else {}

    def __str__(self) -> str:
        name = "SetSubtensor" if self.set else "IncSubtensor"
        return f"{'Inplace' * self.inplace}{name}{{{describe(self.pattern)}}}"


# -- reading


def getitem(x: TensorVariable, key: Any) -> TensorVariable:
    """Return ``x[key]``, with NumPy's meaning of integers, slices, None, ``...``, and integer and
    bool arrays.

    Parameters
    ----------
    x : TensorVariable
    key
        Integers may be symbolic, slices may have symbolic parts. A symbolic bool array selects a
        number of
        elements that is not known before.

    Raises
    ------
    ShapeError, DTypeError, IndexOutOfRangeError

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> x, i = T.dvector("x"), T.lscalar("i")
    >>> x[i:][::-1].eval({x: [1, 2, 3], i: 1})
    array([3., 2.])
    """
    pattern, inputs = read_key(x, key)
    owner = x.owner
    if (
        owner is not None
        and isinstance(owner.op, Shape)
        and len(pattern) == 1
        and isinstance(pattern[0], int)
    ):
        return ShapeI(pattern[0] % x.type.shape[0])(owner.inputs[0])  # type: ignore[operator]
    return Subtensor(pattern)(x, *inputs)


def iterate(x: TensorVariable) -> Iterator[TensorVariable]:
    """Return the elements along the first axis, if their number is known."""
    if x.ndim == 0:
        raise TypeError(f"cannot iterate over the scalar {x}")
    if x.type.shape[0] is None:
        raise TypeError(
            f"cannot iterate over {x} ({x.type}): its length is not known when the graph is "
            "built; use scan, or give the "
            "length in its type"
        )
    return iter([getitem(x, i) for i in range(x.type.shape[0])])


# -- writing


def set_subtensor(
    x: Any, y: Any, inplace: bool = False, tolerate_inplace_aliasing: bool = False
) -> TensorVariable:
    """Return a copy of a tensor with a part of it replaced.

    Parameters
    ----------
    x : TensorVariable
        The part, written as an index expression: ``base[...]``.
    y : tensor_like
        The new values, which are broadcast. Its dtype must convert to that of ``x`` without loss.
    inplace : bool
        Overwrite the base instead of copying it.
    tolerate_inplace_aliasing : bool
        Accepted for Theano's sake.

    Returns
    -------
    TensorVariable
        A tensor of the type of the base.

    Raises
    ------
    TypeError, ShapeError

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> x = T.dvector("x")
    >>> T.set_subtensor(x[:2], 0).eval({x: [1, 2, 3]})
    array([0., 0., 3.])
    """
    return _write("set_subtensor", x, y, True, inplace)


def inc_subtensor(
    x: Any,
    y: Any,
    inplace: bool = False,
    tolerate_inplace_aliasing: bool = False,
    ignore_duplicates: bool = False,
) -> TensorVariable:
    """Return a copy of a tensor with ``y`` added to a part of it; see ``set_subtensor``.

    Values at repeated positions of an index array are added up, unless ``ignore_duplicates``.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> x = T.dvector("x")
    >>> T.inc_subtensor(x[[0, 0]], 1).eval({x: [1, 2]})
    array([3., 2.])
    """
    if ignore_duplicates:
        return _write("inc_subtensor", x, as_tensor_variable(x) + y, True, inplace)
    return _write("inc_subtensor", x, y, False, inplace)


def _write(name: str, x: Any, y: Any, set_: bool, inplace: bool) -> TensorVariable:
    if not isinstance(x, TensorVariable):
        raise TypeError(f"{name}: x must be an index expression base[...], got {x!r}")
    y = as_common(y, like=[x.dtype])[0] if is_python_number(y) else as_tensor_variable(y)
    if not np.can_cast(y.dtype, x.dtype, "safe"):
        raise DTypeError(
            f"{name}: y is {y.dtype}, which the {x.dtype} tensor {x} cannot hold without loss: "
            "cast it with "
            f"T.cast(y, {x.dtype!r})"
        )
    if y.ndim > x.ndim:
        raise ShapeError(
            f"{name}: y ({y.type}) has more axes than the part that it goes to ({x.type})"
        )
    y = with_rank(cast_to(y, x.dtype), x.ndim)
    while x.owner is not None:
        op, base = x.owner.op, x.owner.inputs[0]
        if isinstance(op, Subtensor):
            return IncSubtensor(op.pattern, set_, inplace)(base, y, *x.owner.inputs[1:])
        if isinstance(op, DimShuffle):
            position = {a: i for i, a in enumerate(op.order) if a != "x"}
            y = DimShuffle(y.ndim, tuple(position.get(a, "x") for a in range(op.ndim)))(y)
        elif isinstance(op, Reshape):
            y = reshape(second(x, y), shape_tuple(base))
        else:
            break
        x = base
    raise TypeError(
        f"{name}: {x} ({x.type}) is no index expression base[...], so there is nothing to write to"
    )


# -- positions of nonzero elements


@record
class Nonzero(Op):
    """z_k = the positions, along axis k, of the elements of x that are not 0.   (...) -> x.ndim *
    (m,)
    """

    multiple_outputs = True
    no_derivative = "its outputs are integers"

    def output_types(self, x: TensorVariable) -> list[TensorType]:
        if x.ndim == 0:
            raise ShapeError(f"nonzero: {x} is a scalar; it has no positions")
        return [TensorType("int64", (None,))] * x.ndim

    def perform(self, x: Any) -> tuple[Any, ...]:
        return tuple(np.asarray(p, np.int64) for p in np.nonzero(x))

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        x: Any = node.inputs[0]
        count = switch(eq(x, 0), np.int64(0), np.int64(1)).sum()
        return [(count,)] * len(shapes[0])


def nonzero(a: Any, return_matrix: bool = False) -> Any:
    """Return the positions of the elements that are not 0.

    Parameters
    ----------
    a : tensor_like
        At least 1 axis.
    return_matrix : bool
        True: one int64 matrix with a row per axis. False: a tuple of vectors, one per axis.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> x = T.dvector("x")
    >>> T.nonzero(x)[0].eval({x: [0, 5, 0, 7]})
    array([1, 3])
    """
    positions = Nonzero()(as_tensor_variable(a))
    return as_tensor_variable(positions) if return_matrix else tuple(positions)


def flatnonzero(a: Any) -> TensorVariable:
    """Return the positions, in the flattened tensor, of the elements that are not 0.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> T.flatnonzero([[0, 1], [2, 0]]).eval()
    array([1, 2])
    """
    return nonzero(reshape(a, [-1]))[0]


def nonzero_values(a: Any) -> TensorVariable:
    """Return the elements that are not 0, as a vector.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> T.nonzero_values([0.0, 3.0, 4.0]).eval()
    array([3., 4.])
    """
    a = as_tensor_variable(a)
    return getitem(a, nonzero(a))


__all__ = [
    "flatnonzero", "getitem", "inc_subtensor", "IncSubtensor", "Nonzero", "nonzero",
    "nonzero_values", "set_subtensor", "Subtensor",
]  # fmt: skip
