"""Reduce, ArgReduce: the ops of reductions over axes."""

from __future__ import annotations

import builtins
import itertools
from collections.abc import Callable, Sequence
from typing import Annotated, Any

import numpy as np

from symcomp.core import dtype as dtypes
from symcomp.core.fields import Axes, DtypeName, one_of
from symcomp.core.node import Apply
from symcomp.core.op import Op
from symcomp.core.record import record
from symcomp.core.tensor import TensorType, TensorVariable
from symcomp.errors import DTypeError, ShapeError
from symcomp.ops.elementwise.scalar_logic import eq, switch
from symcomp.ops.elementwise.scalar_math import cast, conj, second
from symcomp.ops.shapes.axes import expand_dims
from symcomp.ops.shapes.joining import concatenate
from symcomp.ops.shapes.shape import product_of, require_axes, shape_tuple


@record(eq=False)
class Reduction:
    """A reduction: one row of the table.

    Attributes
    ----------
    name : str
    numpy : numpy.ufunc
    dtype : callable
        Input dtype -> output dtype.
    pullback, pushforward : callable (x, z, g, axes) -> tensor, or None
        x is the input and z the output with its reduced axes kept at length 1, as is g in the
        pullback.
    identity : bool
        If true, an empty axis has a value.
    """

    name: str
    numpy: Any
    dtype: Callable[[str], str]
    pullback: Callable[..., Any] | None
    pushforward: Callable[..., Any] | None
    identity: bool

    @property
    def logical(self) -> bool:
        """True for any and all, whose output is a truth value for inputs of any dtype."""
        return self.name in ("any", "all")

    @property
    def bitwise(self) -> bool:
        """True for reductions of the bits of integers."""
        return self.name.startswith("bitwise_")

    def __reduce__(self) -> Any:
        return (_reduction, (self.name,))

    def __repr__(self) -> str:
        return self.name


def _prod_others(x: Any, axes: tuple[int, ...]) -> Any:
    """Compute, for every element, the product of the others in its slice, by products from both
    ends: exact at zeros.
    """
    order = [a for a in range(x.ndim) if a not in axes] + list(axes)
    flat = x.dimshuffle(*order)
    lengths = shape_tuple(flat)
    kept = x.ndim - len(axes)
    flat = flat.reshape([*lengths[:kept], product_of(lengths[kept:])])
    one = flat[..., :1].ones_like()
    before = concatenate([one, flat[..., :-1]], -1).cumprod(axis=-1)
    after = concatenate([one, flat[..., :0:-1]], -1).cumprod(axis=-1)[..., ::-1]
    others = (before * after).reshape(lengths)
    return others.dimshuffle(*np.argsort(order).tolist())


def _extreme_share(x: Any, z: Any, axes: tuple[int, ...]) -> Any:
    """Compute 1 / (number of ties) at the extreme elements, else 0."""
    at = eq(x, z)
    # Counted in integers: a float16 count would end at 65504.
    return switch(at, cast(1 / at.sum(axis=axes, keepdims=True), x.dtype), 0)


def _extreme_pullback(x: Any, z: Any, g: Any, axes: tuple[int, ...]) -> Any:
    return g * _extreme_share(x, z, axes)


def _extreme_pushforward(x: Any, z: Any, dx: Any, axes: tuple[int, ...]) -> Any:
    return (dx * _extreme_share(x, z, axes)).sum(axis=axes)


REDUCTIONS: dict[str, Reduction] = {
    row.name: row
    for row in (
        Reduction(
            "sum", np.add, dtypes.accumulator,
            lambda x, z, g, axes: second(x, g), lambda x, z, dx, axes: dx.sum(axis=axes), True,
        ),
        Reduction(
            "prod", np.multiply, dtypes.accumulator,
            lambda x, z, g, axes: g * conj(_prod_others(x, axes)),
            lambda x, z, dx, axes: (dx * _prod_others(x, axes)).sum(axis=axes), True,
        ),
        Reduction("max", np.maximum, lambda x: x, _extreme_pullback, _extreme_pushforward, False),
        Reduction("min", np.minimum, lambda x: x, _extreme_pullback, _extreme_pushforward, False),
        Reduction("any", np.logical_or, lambda x: "bool", None, None, True),
        Reduction("all", np.logical_and, lambda x: "bool", None, None, True),
        *(
            Reduction(ufunc.__name__, ufunc, lambda x: x, None, None, True)
            for ufunc in (np.bitwise_and, np.bitwise_or, np.bitwise_xor)
        ),
    )
}  # fmt: skip


def _reduction(name: str) -> Reduction:
    """Return the row with this name; rows are pickled by name."""
    return REDUCTIONS[name]


@record
class Reduce(Op):
    """z[i] = x[i, j_1] o x[i, j_2] o ..., over all j in ``axes``.   (.., n, ..) -> (.., ..)

    ``acc_dtype`` is the dtype of the accumulator, ``dtype`` that of the result; None: the default
    of the reduction.
    """

    reduction: Reduction
    axes: Axes
    dtype: DtypeName | None = None
    acc_dtype: DtypeName | None = None

    def output_types(self, x: TensorVariable) -> list[TensorType]:
        require_axes(self, self.axes, x)
        name = self.reduction.name
        out = self.dtype or self.reduction.dtype(x.dtype)
        if not self.reduction.logical:
            self._check_complex(x, (x.dtype, self.acc_dtype or out, out))
        if self.reduction.bitwise and not dtypes.is_discrete(x.dtype):
            raise DTypeError(f"{name}: {x} is {x.type}; integers or bool are needed")
        if name in ("max", "min"):
            if dtypes.is_complex(x.dtype):
                raise DTypeError(f"{name}: {x} is {x.dtype}; complex numbers have no order")
            for a in self.axes:
                if x.type.shape[a] == 0:
                    raise ShapeError(
                        f"{name}: axis {a} of {x} ({x.type}) is empty, so it has no {name}"
                    )
        shape = [n for a, n in enumerate(x.type.shape) if a not in self.axes]
        return [TensorType(out, shape)]

    def _check_complex(self, x: TensorVariable, way: Sequence[str]) -> None:
        """Raise if a dtype on the way from x to the output drops the imaginary part."""
        for wide, narrow in itertools.pairwise(way):
            if dtypes.is_complex(wide) and not dtypes.is_complex(narrow):
                raise DTypeError(
                    f"{self.reduction.name}: {x} is {x.dtype}, dtype {self.dtype}, acc_dtype "
                    f"{self.acc_dtype}: {narrow} cannot hold {wide}"
                )

    def perform(self, x: Any) -> Any:
        out, work = self.dtypes_for(x.dtype.name)
        ufunc = self.reduction.numpy
        if not self.reduction.identity and builtins.any(x.shape[a] == 0 for a in self.axes):
            raise ShapeError(
                f"{self.reduction.name}: an array of shape {x.shape} is empty along axes "
                f"{self.axes}"
            )
        if not self.axes:
            return x.astype(out)
        if self.reduction.logical:
            return np.asarray(ufunc.reduce(x, axis=self.axes))
        if x.size and np.dtype(work).kind == "c":  # infinities times 1 + 0i would be NaN
            return np.asarray(ufunc.reduce(x, axis=self.axes, dtype=work, initial=None), out)
        return np.asarray(ufunc.reduce(x, axis=self.axes, dtype=work), out)

    def dtypes_for(self, dtype: str) -> tuple[str, str]:
        """Return, for an input of ``dtype``, the dtype of the result and of the accumulator."""
        out = self.dtype or self.reduction.dtype(dtype)
        return out, self.acc_dtype or (dtypes.working(out) if dtype == out else out)

    def never_fails(self, dtype: str) -> bool:
        """Tell whether no elements can make it raise; extremes of an empty slice do."""
        return self.reduction.identity

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        return [tuple(n for a, n in enumerate(shapes[0]) if a not in self.axes)]

    def pullback(self, inputs: Any, outputs: Any, output_grads: Any) -> list[Any]:
        if self.reduction.pullback is None:
            raise NotImplementedError(self._why_not("pullback (L-op)"))
        (x,), (z,), (gz,) = inputs, outputs, output_grads
        z, gz = (expand_dims(v, self.axes) for v in (z, gz))
        return [self.reduction.pullback(x, z, gz, self.axes)]

    def pushforward(self, inputs: Any, outputs: Any, tangents: Any) -> list[Any]:
        if self.reduction.pushforward is None:
            raise NotImplementedError(self._why_not("pushforward (R-op)"))
        (x,), (z,), (dx,) = inputs, outputs, tangents
        return [self.reduction.pushforward(x, expand_dims(z, self.axes), dx, self.axes)]

    @property
    def no_derivative(self) -> str:  # type: ignore[override]
        """The reason for logical and bitwise reductions."""
        if self.reduction.bitwise:
            return "it is of integers"
        return "its output is boolean" if self.reduction.logical else ""

    def __str__(self) -> str:
        return f"{self.reduction.name}{{axis={','.join(map(str, self.axes))}}}"


# -- positions


@record
class ArgReduce(Op):
    """z[i] = the position of the first largest (or smallest) x[i, j] in the row-major order of
    ``axes``.
    """

    which: Annotated[str, one_of("argmax", "argmin")]
    axes: Axes

    no_derivative = "its output is an integer"

    def output_types(self, x: TensorVariable) -> list[TensorType]:
        if dtypes.is_complex(x.dtype):
            raise DTypeError(f"{self.which}: {x} is {x.dtype}; complex numbers have no order")
        require_axes(self, self.axes, x)
        for a in self.axes:
            if x.type.shape[a] == 0:
                raise ShapeError(f"{self.which}: axis {a} of {x} ({x.type}) is empty")
        return [TensorType("int64", [n for a, n in enumerate(x.type.shape) if a not in self.axes])]

    def perform(self, x: Any) -> Any:
        kept = [a for a in range(x.ndim) if a not in self.axes]
        if builtins.any(x.shape[a] == 0 for a in self.axes):
            raise ShapeError(
                f"{self.which}: an array of shape {x.shape} is empty along axes {self.axes}"
            )
        rows = tuple(x.shape[a] for a in kept)
        length = int(np.prod([x.shape[a] for a in self.axes], dtype=np.int64))
        flat = x.transpose(*kept, *self.axes).reshape(*rows, length)
        return np.asarray(getattr(np, self.which)(flat, axis=-1), np.int64)

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        return [tuple(n for a, n in enumerate(shapes[0]) if a not in self.axes)]

    def __str__(self) -> str:
        return f"{self.which}{{axis={','.join(map(str, self.axes))}}}"


__all__ = ["ArgReduce", "Reduce"]
