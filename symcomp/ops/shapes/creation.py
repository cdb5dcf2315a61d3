"""Tensors made from numbers: ranges, grids, identity and triangles."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from symcomp.config import config
from symcomp.core import dtype as dtypes
from symcomp.core.node import Apply
from symcomp.core.op import Op
from symcomp.core.record import record
from symcomp.core.tensor import TensorConstant, TensorType, TensorVariable
from symcomp.errors import DTypeError, ShapeError
from symcomp.ops.control.conditions import Assert
from symcomp.ops.convert import as_common, as_tensor_variable, resolve_dtype
from symcomp.ops.elementwise.scalar_logic import eq, ge, gt, le, switch
from symcomp.ops.elementwise.scalar_math import abs_, cast, ceil, floor, maximum, pow, sgn
from symcomp.ops.shapes.shape import ShapeI, as_integer, as_length, known_length, shape_tuple


@record
class Arange(Op):
    """z_i = start + i * step for 0 <= i < n.   Inputs: start, step (scalars of ``dtype``), n (int64
    scalar).
    """

    dtype: str

    def output_types(
        self, start: TensorVariable, step: TensorVariable, n: TensorVariable
    ) -> list[TensorType]:
        for v, dtype in ((start, self.dtype), (step, self.dtype), (n, "int64")):
            if v.ndim or v.dtype != dtype:
                raise DTypeError(f"{self}: a scalar of {dtype} is needed, got {v} ({v.type})")
        return [TensorType(self.dtype, (known_length(n),))]

    def perform(self, start: Any, step: Any, n: Any) -> Any:
        steps = np.arange(int(n)).astype(self.dtype)
        return np.asarray(start + steps * step, self.dtype)

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        return [(node.inputs[2],)]

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        return [[True], [True], [False]]

    def pullback(self, inputs: Any, outputs: Any, output_grads: Any) -> list[Any]:
        gz = output_grads[0]
        places = cast(arange(inputs[2]), gz.dtype)
        return [gz.sum(), (gz * places).sum(), None]

    def pushforward(self, inputs: Any, outputs: Any, tangents: Any) -> list[Any]:
        start, step = (
            x.zeros_like() if dx is None else dx
            for x, dx in zip(inputs[:2], tangents[:2], strict=True)
        )
        return [self(start, step, inputs[2])]


def arange(start: Any, stop: Any = None, step: Any = 1, dtype: Any = None) -> TensorVariable:
    """Return the numbers from ``start`` up to, not including, ``stop``.

    Parameters
    ----------
    start, stop, step : number or scalar
        With one argument, that is ``stop``.
    dtype : optional
        By default int64 for integers (uint64 for those), else the common dtype (Python floats:
        floatX).

    Raises
    ------
    ShapeError
        If an argument is no scalar, ``step`` is 0, NaN or infinite, or the numbers are too many
        to be counted, as those up to infinity: here or, where it is not known before, when a
        function runs.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> T.arange(1, 7, 2).eval()
    array([1, 3, 5])
    """
    if stop is None:
        start, stop = 0, start
    first, last, stride = as_common(start, stop, step)
    for name, v in (("start", first), ("stop", last), ("step", stride)):
        if v.ndim != 0:
            raise ShapeError(f"arange: {name} must be a scalar, got {v} ({v.type})")
    common = dtypes.upcast(first.dtype, last.dtype, stride.dtype)
    if dtypes.is_complex(common):
        raise DTypeError("arange: complex numbers have no order")
    kind = (
        resolve_dtype(dtype)
        if dtype is not None
        else "int64"
        if dtypes.is_discrete(common) and common != "uint64"
        else common
    )
    checked = _checked(
        stride,
        lambda v: (abs(v) > 0) & (abs(v) < np.inf),
        "arange: step must not be 0, NaN or infinite",
    )
    n = _arange_length(first, last, checked)
    return Arange(kind)(cast(first, kind), cast(stride, kind), n)


def _checked(v: TensorVariable, holds: Callable[[Any], Any], message: str) -> TensorVariable:
    """Return ``v``; raise a ShapeError if a condition does not hold, now or at run time."""
    if not isinstance(v, TensorConstant):
        return Assert(message, ShapeError)(v, holds(v))
    if not holds(v.data):
        raise ShapeError(message)
    return v


MOST_NUMBERS = 2.0**62
UNCOUNTABLE = "arange: (stop - start) / step must be finite, and a length that an array can have"


def _arange_length(
    start: TensorVariable, stop: TensorVariable, step: TensorVariable
) -> TensorVariable:
    parts = (start, stop, step)
    if all(isinstance(v, TensorConstant) for v in parts):
        a, b, c = (v.data.item() for v in parts)
        if not abs((b - a) / c) < MOST_NUMBERS:
            raise ShapeError(UNCOUNTABLE)
        if all(isinstance(number, int) for number in (a, b, c)):
            return as_length(max(0, -((a - b) // c)), "arange")
        count = math.ceil((b - a) / c)
        return as_length(1 if count == 0 and _goes(a, b, c) else max(count, 0), "arange")
    if (
        isinstance(start, TensorConstant)
        and start.data == 0
        and isinstance(step, TensorConstant)
        and step.data == 1
        and dtypes.is_discrete(stop.dtype)
        and stop.dtype != "uint64"
    ):
        length = as_length(stop, "arange")
        return length if known_length(length) is not None else maximum(length, 0)
    kinds = {v.dtype for v in parts}
    if kinds == {"uint64"}:
        count = switch(start < stop, (stop - start - 1) // step + 1, 0)
        return cast(_checked(count, lambda v: v < 2**62, UNCOUNTABLE), "int64")
    if all(map(dtypes.is_discrete, kinds)) and "uint64" not in kinds:
        a, b, c = (cast(v, "int64") for v in parts)
        return maximum(-((a - b) // c), 0)
    a, b, c = (cast(v, "float64") for v in parts)
    count = _checked((b - a) / c, lambda v: abs(v) < MOST_NUMBERS, UNCOUNTABLE)
    return maximum(cast(switch(eq(count, 0) & _goes(a, b, c), 1, ceil(count)), "int64"), 0)


def _goes(start: Any, stop: Any, step: Any) -> Any:
    """Tell whether a range has elements: also if the step is so long that the quotient rounds to 0.
    """
    return ((start < stop) & (step > 0)) | ((start > stop) & (step < 0))


def _count(num: Any, name: str) -> TensorVariable:
    n = as_length(num, name)
    return _checked(n, lambda v: v >= 0, f"{name}: num must not be negative")


def linspace(
    start: Any, stop: Any, num: Any = 50, endpoint: bool = True, dtype: Any = None
) -> TensorVariable:
    """Return ``num`` numbers evenly spaced from ``start`` to ``stop``.

    Parameters
    ----------
    start, stop : scalar
    num : int or integer scalar
    endpoint : bool
        If true, the last number is ``stop``.
    dtype : optional
        By default floatX.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> T.linspace(0, 1, 3).eval()
    array([0. , 0.5, 1. ])
    """
    return _spaced(start, stop, _count(num, "linspace"), endpoint, dtype)


def _spaced(start: Any, stop: Any, n: Any, endpoint: bool, dtype: Any = None) -> TensorVariable:
    """Return ``linspace`` of n numbers, n not negative."""
    kind = resolve_dtype(dtype)
    work = kind if not dtypes.is_discrete(kind) else config.floatX
    first, last = (cast(as_tensor_variable(v), work) for v in (start, stop))
    gaps = maximum(n - 1, 1) if endpoint else maximum(n, 1)
    places = cast(arange(n), work)
    inner = first + places * ((last - first) / cast(gaps, work))
    if endpoint:
        at_end = eq(arange(n), n - 1) & (n > 1)
        inner = switch(at_end, last, inner)
    return cast(floor(inner) if dtypes.is_discrete(kind) else inner, kind)


def logspace(
    start: Any,
    stop: Any,
    num: Any = 50,
    endpoint: bool = True,
    base: float = 10.0,
    dtype: Any = None,
) -> TensorVariable:
    """Return ``base`` to the powers ``linspace(start, stop, num)``.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> T.logspace(0, 3, 4).eval()
    array([   1.,   10.,  100., 1000.])
    """
    points = _spaced(start, stop, _count(num, "logspace"), endpoint)
    return cast(pow(base, points), resolve_dtype(dtype))


def geomspace(
    start: Any, stop: Any, num: Any = 50, endpoint: bool = True, dtype: Any = None
) -> TensorVariable:
    """Return ``num`` numbers of one sign from ``start`` to ``stop`` with equal ratios.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> T.geomspace(-1, -100, 3).eval()
    array([  -1.,  -10., -100.])
    """
    first, last = (cast(as_tensor_variable(v), config.floatX) for v in (start, stop))
    n = _count(num, "geomspace")
    exponents = _spaced(abs_(first).log10(), abs_(last).log10(), n, endpoint)
    inner = sgn(first) * pow(10.0, exponents)
    places = arange(n)
    ends = switch(eq(places, 0), first, inner)
    if endpoint:
        ends = switch(eq(places, n - 1) & (n > 1), last, ends)
    return cast(ends, resolve_dtype(dtype))


def _rows_columns(n: Any, m: Any) -> tuple[TensorVariable, TensorVariable]:
    """Return row numbers as a column, and column numbers as a row."""
    return arange(n).dimshuffle(0, "x"), arange(n if m is None else m).dimshuffle("x", 0)


def eye(n: Any, m: Any = None, k: Any = 0, dtype: Any = None) -> TensorVariable:
    """Return a matrix with ones on a diagonal.

    Parameters
    ----------
    n, m : int or integer scalar
        Rows and columns; by default as many columns as rows.
    k : int or integer scalar
        The offset of the diagonal: 0 is the main one, positive above, negative below.
    dtype : optional
        By default floatX.

    Raises
    ------
    ShapeError
        If n or m is negative: here or, where they are not known before, when a function runs.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> T.eye(2, 3, 1).eval()
    array([[0., 1., 0.],
           [0., 0., 1.]])
    """
    rows, columns = _rows_columns(_side(n), None if m is None else _side(m))
    return cast(eq(columns - rows, as_integer(k, "eye", "k")), resolve_dtype(dtype))


def _side(n: Any) -> TensorVariable:
    """Return a length of ``eye``, checked not to be negative."""
    length = as_length(n, "eye")
    if length.owner is not None and isinstance(length.owner.op, ShapeI):
        return length
    return _checked(length, lambda v: v >= 0, "eye: rows and columns must not be negative")


def identity_like(x: Any, dtype: Any = None) -> TensorVariable:
    """Return the identity matrix of the shape, and by default the dtype, of the matrix ``x``.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> T.identity_like([[5.0, 6.0], [7.0, 8.0]]).eval()
    array([[1., 0.],
           [0., 1.]])
    """
    x = as_tensor_variable(x)
    if x.ndim != 2:
        raise ShapeError(f"identity_like: {x} ({x.type}) is no matrix")
    rows, columns = shape_tuple(x)
    return eye(rows, columns, 0, x.dtype if dtype is None else dtype)


def tri(n: Any, m: Any = None, k: Any = 0, dtype: Any = None) -> TensorVariable:
    """Return a matrix with ones on and below diagonal ``k``; see ``eye``.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> T.tri(2, 3).eval()
    array([[1., 0., 0.],
           [1., 1., 0.]])
    """
    rows, columns = _rows_columns(as_length(n, "tri"), None if m is None else as_length(m, "tri"))
    return cast(le(columns - rows, as_integer(k, "tri", "k")), resolve_dtype(dtype))


def tril(m: Any, k: Any = 0) -> TensorVariable:
    """Return ``m`` (at least 2 axes) with the elements above diagonal ``k`` zeroed.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> x = T.dmatrix("x")
    >>> T.tril(x).eval({x: [[1, 2], [3, 4]]})
    array([[1., 0.],
           [3., 4.]])
    """
    return _triangle("tril", m, k)


def triu(m: Any, k: Any = 0) -> TensorVariable:
    """Return ``m`` (at least 2 axes) with the elements below diagonal ``k`` zeroed.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> T.triu([[1, 2], [3, 4]]).eval()
    array([[1, 2],
           [0, 4]])
    """
    return _triangle("triu", m, k)


def _triangle(name: str, m: Any, k: Any) -> TensorVariable:
    m = as_tensor_variable(m)
    if m.ndim < 2:
        raise ShapeError(f"{name}: {m} ({m.type}) has fewer than 2 axes")
    n_rows, n_columns = shape_tuple(m)[-2:]
    rows, columns = _rows_columns(n_rows, n_columns)
    offset: Any = columns - rows
    k = as_integer(k, name, "k")
    return switch(le(offset, k) if name == "tril" else ge(offset, k), m, np.zeros((), m.dtype))


def tril_indices(n: Any, k: int = 0, m: Any = None) -> Any:
    """Return the positions (rows, columns) of the lower triangle of an (n, m) matrix.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> [i.eval() for i in T.tril_indices(2)]
    [array([0, 1, 1]), array([0, 0, 1])]
    """
    return cast(tri(n, m, as_integer(k, "tril_indices", "k")), "bool").nonzero()


def triu_indices(n: Any, k: int = 0, m: Any = None) -> Any:
    """Return the positions (rows, columns) of the upper triangle of an (n, m) matrix.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> [i.eval() for i in T.triu_indices(2)]
    [array([0, 0, 1]), array([0, 1, 1])]
    """
    return eq(tri(n, m, as_integer(k, "triu_indices", "k") - 1), 0).nonzero()


def tril_indices_from(a: Any, k: int = 0) -> Any:
    """Return the positions of the lower triangle of the matrix ``a``.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> [i.eval() for i in T.tril_indices_from([[1, 2], [3, 4]])]
    [array([0, 1, 1]), array([0, 0, 1])]
    """
    rows, columns = shape_tuple(as_tensor_variable(a))
    return tril_indices(rows, k, columns)


def triu_indices_from(a: Any, k: int = 0) -> Any:
    """Return the positions of the upper triangle of the matrix ``a``.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> [i.eval() for i in T.triu_indices_from([[1, 2], [3, 4]])]
    [array([0, 0, 1]), array([0, 1, 1])]
    """
    rows, columns = shape_tuple(as_tensor_variable(a))
    return triu_indices(rows, k, columns)


def ix_(*args: Any) -> tuple[TensorVariable, ...]:
    """Return index vectors shaped so that they index a product grid, as NumPy's ``ix_``.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> x = T.constant([[1, 2, 3], [4, 5, 6]])
    >>> x[T.ix_([0, 1], [0, 2])].eval()
    array([[1, 3],
           [4, 6]])
    """
    vectors = [as_tensor_variable(a) for a in args]
    vectors = [v.nonzero()[0] if v.dtype == "bool" else v for v in vectors]
    n = len(vectors)
    orders = [[0 if j == i else "x" for j in range(n)] for i in range(n)]
    return tuple(v.dimshuffle(*order) for v, order in zip(vectors, orders, strict=True))


class _Grid:
    """``mgrid`` and ``ogrid``: index with slices to get coordinate grids.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> [v.eval().tolist() for v in T.mgrid[0:2, 0:3]]
    [[[0, 0, 0], [1, 1, 1]], [[0, 1, 2], [0, 1, 2]]]
    >>> [v.eval().tolist() for v in T.ogrid[0:2, 0:3]]
    [[[0], [1]], [[0, 1, 2]]]
    """

    def __init__(self, sparse: bool) -> None:
        self._sparse = sparse

    def __getitem__(self, key: Any) -> Any:
        """One coordinate tensor per slice; a complex step is a number of points, as in NumPy."""
        if not isinstance(key, tuple):
            return _grid_axis(key)
        slices = key
        axes = [_grid_axis(s) for s in slices]
        common = dtypes.upcast(*(v.dtype for v in axes))
        axes = [cast(v, common) for v in axes]
        n = len(axes)
        shaped = [
            v.dimshuffle(*[0 if j == i else "x" for j in range(n)]) for i, v in enumerate(axes)
        ]
        if self._sparse:
            return shaped
        total: Any = shaped[0].zeros_like()
        for v in shaped[1:]:
            total = total + v.zeros_like()
        return [v + total for v in shaped]


def _grid_axis(s: slice) -> TensorVariable:
    start = 0 if s.start is None else s.start
    if s.stop is None:
        raise ShapeError("mgrid and ogrid: every slice needs a stop")
    if isinstance(s.step, complex):
        return linspace(start, s.stop, int(abs(s.step)))
    return arange(start, s.stop, 1 if s.step is None else s.step)


mgrid = _Grid(sparse=False)
ogrid = _Grid(sparse=True)


def bartlett(M: Any) -> TensorVariable:
    """Return the Bartlett (triangular) window of M points.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> T.bartlett(3).eval()
    array([0., 1., 0.])
    """
    m = as_integer(M, "bartlett", "M")
    k = cast(arange(m), "float64")
    half = cast(maximum(m - 1, 1), "float64") / 2
    ramp = 1 - abs(k - half) / half
    return switch(gt(m, 1), ramp, 1.0)


__all__ = [
    "Arange", "arange", "bartlett", "eye", "geomspace", "identity_like", "ix_", "linspace",
    "logspace", "mgrid", "ogrid", "tri", "tril", "tril_indices", "tril_indices_from", "triu",
    "triu_indices", "triu_indices_from",
]  # fmt: skip
