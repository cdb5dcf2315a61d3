"""Reductions over axes: sum, product, extremes, any and all, and the statistics built on them."""

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
from symcomp.ops.convert import as_tensor_variable
from symcomp.ops.elementwise.scalar_logic import eq, switch
from symcomp.ops.elementwise.scalar_math import cast, conj, maximum, real, second, sqr, sqrt
from symcomp.ops.shapes.dimshuffle import DimShuffle
from symcomp.ops.shapes.join import concatenate
from symcomp.ops.shapes.shape import normalize_axes, product_of, require_axes, shape_tuple


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
        narrow = dtype == "float16" and out == "float16"
        return out, self.acc_dtype or ("float32" if narrow else out)

    def never_fails(self, dtype: str) -> bool:
        """Tell whether no elements can make it raise; extremes of an empty slice do."""
        return self.reduction.identity

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        return [tuple(n for a, n in enumerate(shapes[0]) if a not in self.axes)]

    def pullback(self, inputs: Any, outputs: Any, output_grads: Any) -> list[Any]:
        if self.reduction.pullback is None:
            raise NotImplementedError(self._why_not("pullback (L-op)"))
        (x,), (z,), (gz,) = inputs, outputs, output_grads
        return [self.reduction.pullback(x, self._keep(z, x), self._keep(gz, x), self.axes)]

    def pushforward(self, inputs: Any, outputs: Any, tangents: Any) -> list[Any]:
        if self.reduction.pushforward is None:
            raise NotImplementedError(self._why_not("pushforward (R-op)"))
        (x,), (z,), (dx,) = inputs, outputs, tangents
        return [self.reduction.pushforward(x, self._keep(z, x), dx, self.axes)]

    def _keep(self, z: Any, x: Any) -> Any:
        """Return ``z`` with its reduced axes back at length 1."""
        rank = iter(range(z.ndim))
        return DimShuffle(
            z.ndim, tuple("x" if a in self.axes else next(rank) for a in range(x.ndim))
        )(z)

    @property
    def no_derivative(self) -> str:  # type: ignore[override]
        """The reason for logical and bitwise reductions."""
        if self.reduction.bitwise:
            return "it is of integers"
        return "its output is boolean" if self.reduction.logical else ""

    def __str__(self) -> str:
        return f"{self.reduction.name}{{axis={','.join(map(str, self.axes))}}}"


def _reduce(
    name: str, x: Any, axis: Any, dtype: Any, keepdims: bool, acc_dtype: Any
) -> TensorVariable:
    x = as_tensor_variable(x)
    axes = normalize_axes(name, axis, x.ndim)
    chosen = None if dtype is None else dtypes.canonical(dtype)
    accumulate = None if acc_dtype is None else dtypes.canonical(acc_dtype)
    z = Reduce(REDUCTIONS[name], axes, chosen, accumulate)(x)
    return z.owner.op._keep(z, x) if keepdims else z


def sum(
    input: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False, acc_dtype: Any = None
) -> TensorVariable:
    """Return the sum over axes.

    Parameters
    ----------
    input : tensor_like
    axis : int or sequence of int, optional
        By default all.
    dtype : optional
        The dtype of the result; by default that of the input, but at least 64 bits for integers.
    keepdims : bool
        Keep the axes, at length 1.
    acc_dtype : optional
        Dtype to add in; by default that of the result, float32 for float16.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> x = T.dmatrix("x")
    >>> T.sum(x, axis=0).eval({x: [[1, 2], [3, 4]]})
    array([4., 6.])
    """
    return _reduce("sum", input, axis, dtype, keepdims, acc_dtype)


def prod(
    input: Any,
    axis: Any = None,
    dtype: Any = None,
    keepdims: bool = False,
    acc_dtype: Any = None,
    no_zeros_in_input: bool = False,
) -> TensorVariable:
    """Return the product over axes; see ``sum``.

    ``no_zeros_in_input`` is accepted for compatibility with Theano: the gradient is exact with and
    without zeros.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> x = T.dvector("x")
    >>> T.prod(x).eval({x: [2, 3]})
    array(6.)
    """
    return _reduce("prod", input, axis, dtype, keepdims, acc_dtype)


def max(x: Any, axis: Any = None, keepdims: bool = False) -> TensorVariable:
    """Return the largest element over axes; NaN if one is. Its gradient is shared evenly among
    ties.

    Parameters
    ----------
    x : tensor_like
    axis : int or sequence of int, optional
    keepdims : bool

    Raises
    ------
    ShapeError
        If there are no elements.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> x = T.dmatrix("x")
    >>> T.max(x, axis=1).eval({x: [[1, 2], [3, 4]]})
    array([2., 4.])
    """
    return _reduce("max", x, axis, None, keepdims, None)


def min(x: Any, axis: Any = None, keepdims: bool = False) -> TensorVariable:
    """Return the smallest element over axes; see ``max``.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> T.min([[3.0, 1.0], [2.0, 5.0]], axis=0).eval()
    array([2., 1.])
    """
    return _reduce("min", x, axis, None, keepdims, None)


def any(x: Any, axis: Any = None, keepdims: bool = False) -> TensorVariable:
    """Tell whether any element over axes is true (not 0).

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> T.any([[True, False], [False, False]], axis=1).eval()
    array([ True, False])
    """
    return _reduce("any", x, axis, None, keepdims, None)


def all(x: Any, axis: Any = None, keepdims: bool = False) -> TensorVariable:
    """Tell whether all elements over axes are true (not 0).

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> T.all([[True, False], [True, True]], axis=1).eval()
    array([False,  True])
    """
    return _reduce("all", x, axis, None, keepdims, None)


def _count(x: TensorVariable, axes: tuple[int, ...], dtype: str) -> TensorVariable:
    lengths = shape_tuple(x)
    return cast(as_tensor_variable(product_of([lengths[a] for a in axes])), dtype)


def mean(
    input: Any,
    axis: Any = None,
    dtype: Any = None,
    op: bool = False,
    keepdims: bool = False,
    acc_dtype: Any = None,
) -> TensorVariable:
    """Return the arithmetic mean over axes.

    Parameters
    ----------
    input : tensor_like
    axis : int or sequence of int, optional
    dtype : optional
        The dtype of the sum, and, unless discrete, of the result; by default that of the input,
        float64 for integers. The mean of sums of integers is float64.
    op : bool
        Accepted for Theano's sake.
    keepdims : bool
    acc_dtype : optional
        Dtype to add in.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> x = T.ivector("x")
    >>> T.mean(x).eval({x: [1, 2]})
    array(1.5)
    """
    x = as_tensor_variable(input)
    axes = normalize_axes("mean", axis, x.ndim)
    chosen = None if dtype is None else dtypes.canonical(dtype)
    if chosen is not None and dtypes.is_discrete(chosen):
        total = cast(_reduce("sum", x, axes, chosen, keepdims, acc_dtype), "float64")
        return total / _count(x, axes, "float64")
    kind = chosen or ("float64" if dtypes.is_discrete(x.dtype) else x.dtype)
    work = "float32" if kind == "float16" else kind
    total = _reduce(
        "sum", cast(x, kind) if dtypes.is_discrete(x.dtype) else x, axes, work, keepdims, acc_dtype
    )
    count = _count(x, axes, dtypes.real_part(work))
    return cast(total / count, kind)


def var(
    input: Any, axis: Any = None, ddof: int = 0, keepdims: bool = False, corrected: bool = False
) -> TensorVariable:
    """Return the variance over axes, computed from the deviations from the mean.

    Parameters
    ----------
    input : tensor_like
    axis : int or sequence of int, optional
    ddof : int
        The divisor is the number of elements less ``ddof``.
    keepdims : bool
    corrected : bool
        Subtract the square of the mean deviation, which is 0 but for rounding (Chan, Golub and
        LeVeque, 1983,
        "Algorithms for computing the sample variance").

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> x = T.dvector("x")
    >>> T.var(x).eval({x: [1, 3]})
    array(1.)
    """
    x = as_tensor_variable(input)
    return cast(_variance("var", x, axis, ddof, keepdims, corrected), _spread_dtype(x))


def _spread_dtype(x: TensorVariable) -> str:
    """Return the dtype of the variance of x."""
    return "float64" if dtypes.is_discrete(x.dtype) else dtypes.real_part(x.dtype)


def _variance(
    name: str, x: TensorVariable, axis: Any, ddof: Any, keepdims: bool, corrected: bool
) -> TensorVariable:
    """Compute the variance, in float32 for float16, whose squares end at 65504."""
    axes = normalize_axes(name, axis, x.ndim)
    ddof = _as_ddof(name, ddof)
    if dtypes.is_discrete(x.dtype) or x.dtype == "float16":
        x = cast(x, "float32" if x.dtype == "float16" else "float64")
    deviation = x - mean(x, axes, keepdims=True)
    squares = real(deviation * conj(deviation)) if dtypes.is_complex(x.dtype) else sqr(deviation)
    count = _count(x, axes, squares.dtype)
    total = sum(squares, axes, keepdims=keepdims)
    if corrected:
        drift = sum(deviation, axes, keepdims=keepdims)
        total = total - real(drift * conj(drift)) / count
    return total / maximum(count - ddof, 0)


def _as_ddof(name: str, ddof: Any) -> Any:
    """Return the number subtracted from the number of elements: a real number, or a scalar
    variable.
    """
    try:
        v = as_tensor_variable(ddof)
    except (TypeError, ValueError):
        v = None
    if v is None or v.ndim or v.dtype == "bool" or dtypes.is_complex(v.dtype):
        raise TypeError(f"{name}: ddof is {ddof!r:.80}; a real number is needed")
    return ddof


def std(
    input: Any, axis: Any = None, ddof: int = 0, keepdims: bool = False, corrected: bool = False
) -> TensorVariable:
    """Return the standard deviation, the square root of ``var``; where it is 0 the gradient is not
    finite.

    Parameters are those of ``var``.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> x = T.dvector("x")
    >>> T.std(x).eval({x: [1, 3]})
    array(1.)
    """
    x = as_tensor_variable(input)
    return cast(sqrt(_variance("std", x, axis, ddof, keepdims, corrected)), _spread_dtype(x))


def ptp(a: Any, axis: Any = None, keepdims: bool = False) -> TensorVariable:
    """Return the largest element minus the smallest.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> x = T.dvector("x")
    >>> T.ptp(x).eval({x: [1, 5, 2]})
    array(4.)
    """
    a = as_tensor_variable(a)
    if a.dtype == "bool":
        raise DTypeError(f"ptp: {a} is bool, which has no difference: cast it to an integer dtype")
    return max(a, axis, keepdims) - min(a, axis, keepdims)


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


def _arg(which: str, x: Any, axis: Any, keepdims: bool) -> TensorVariable:
    x = as_tensor_variable(x)
    axes = normalize_axes(which, axis, x.ndim)
    z = ArgReduce(which, axes)(x)
    if not keepdims:
        return z
    rank = iter(range(z.ndim))
    return DimShuffle(z.ndim, tuple("x" if a in axes else next(rank) for a in range(x.ndim)))(z)


def argmax(x: Any, axis: Any = None, keepdims: bool = False) -> TensorVariable:
    """Return the position of the first largest element (the first NaN, if there is one).

    Parameters
    ----------
    x : tensor_like
    axis : int or sequence of int, optional
        For several, the position counts through them in row-major order; by default all.
    keepdims : bool

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> x = T.dmatrix("x")
    >>> T.argmax(x, axis=1).eval({x: [[1, 2], [4, 3]]})
    array([1, 0])
    """
    return _arg("argmax", x, axis, keepdims)


def argmin(x: Any, axis: Any = None, keepdims: bool = False) -> TensorVariable:
    """Return the position of the first smallest element; see ``argmax``.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> T.argmin([3.0, 1.0, 2.0]).eval()
    array(1)
    """
    return _arg("argmin", x, axis, keepdims)


def max_and_argmax(a: Any, axis: Any = None, keepdims: bool = False) -> list[TensorVariable]:
    """Return ``[max(a), argmax(a)]``.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> x = T.dvector("x")
    >>> [z.eval({x: [1, 5, 2]}).item() for z in T.max_and_argmax(x)]
    [5.0, 1]
    """
    return [max(a, axis, keepdims), argmax(a, axis, keepdims)]


__all__ = [
    "all", "any", "argmax", "argmin", "ArgReduce", "max", "max_and_argmax", "mean",
    "min", "prod", "ptp", "Reduce", "std", "sum", "var",
]  # fmt: skip
