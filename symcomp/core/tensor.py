"""Tensors: TensorType (dtype and partly known shape), TensorVariable and TensorConstant.

The operators of TensorVariable are a table in ``ops/operators.py``, installed by the facade.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from symcomp.config import config
from symcomp.core import dtype as dtypes
from symcomp.core.dtype import canonical, is_discrete
from symcomp.core.node import Constant, Type, Variable
from symcomp.core.record import record
from symcomp.core.sparse_values import describe_sparse_value, is_sparse_value
from symcomp.errors import DTypeError, ShapeError

StaticShape = tuple[int | None, ...]

# Constants of more bytes than this are merged only if they are one object.
LARGE = 1 << 16

# The usual precision of dtypes, where it is less than 1e-8.
_LOOSE = {"bfloat16": 4e-2, "float16": 5e-3, "float32": 1e-5, "complex64": 1e-5}

_RANK_NAMES = ("scalar", "vector", "matrix")


def static_shape(shape: Iterable[Any]) -> StaticShape:
    """Check a partly known shape; booleans are Theano's broadcastable pattern (True: 1)."""
    dims: list[int | None] = []
    if not isinstance(shape, Iterable) or isinstance(shape, str):
        raise TypeError(f"shape {shape!r:.80} is no sequence of lengths and None")
    for length in shape:
        if length is None or length is False:
            dims.append(None)
        elif length is True:
            dims.append(1)
        elif isinstance(length, int | np.integer) and length >= 0:
            dims.append(int(length))
        else:
            raise ShapeError(f"{length!r} in shape {tuple(shape)} is neither None nor a length")
    return tuple(dims)


# The types of most values: no masked arrays.
_PLAIN = frozenset([float, int, bool, complex, np.ndarray])


def refuse_masked(value: Any) -> None:
    """Raise DTypeError if ``value`` is a masked array, or a sequence with one: tensors have no
    masks, and masked elements have no values.
    """
    kind = type(value)
    if kind in _PLAIN or (kind in (list, tuple) and _PLAIN.issuperset(map(type, value))):
        return
    masked: Any = getattr(sys.modules.get("numpy.ma"), "MaskedArray", None)
    pending = [value] if masked is not None else []
    while pending:
        x = pending.pop()
        if isinstance(x, masked):
            raise DTypeError(
                f"a masked array of {x.dtype} and shape {x.shape}, {x.mask.sum()} of its elements "
                "masked: tensors have no masks. Pass x.filled(value), or x.data without its mask"
            )
        if type(x) is list or type(x) is tuple:
            pending += [item for item in x if type(item) not in (float, int)]


@record(repr=False)
class TensorType(Type):
    """The type of n-dimensional arrays of one dtype, with some lengths known.

    Parameters
    ----------
    dtype : str or numpy.dtype
        One of the 15 dtypes: bool, (u)int8 to (u)int64, float16/32/64, bfloat16, complex64/128.
    shape : sequence of int or None, optional
        Length of each axis, None where it is unknown. A sequence of booleans is read as
        ``broadcastable``.
    broadcastable : sequence of bool, optional
        Theano's way to say it: True where the length is 1, False where it is unknown.

    Notes
    -----
    Only an axis whose length is known to be 1 broadcasts. An axis of unknown length may turn out
    to be 1 at run
    time, but may not be stretched then: that is what makes shapes of gradients known when they are
    built.

    Examples
    --------
    >>> from symcomp.core.tensor import TensorType
    >>> TensorType("float64", (None, 3))
    TensorType(float64, (None, 3))
    >>> TensorType("float32", broadcastable=(True, False)).shape
    (1, None)
    """

    dtype: str
    shape: StaticShape = field(default=())

    def __init__(
        self,
        dtype: Any,
        shape: Sequence[Any] | None = None,
        broadcastable: Sequence[bool] | None = None,
        name: str | None = None,
    ) -> None:
        if (shape is None) == (broadcastable is None):
            raise TypeError("TensorType needs a shape or a broadcastable pattern, and not both")
        dims = shape if shape is not None else [bool(b) for b in broadcastable or ()]
        object.__setattr__(self, "dtype", canonical(dtype))
        object.__setattr__(self, "shape", static_shape(dims))

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def broadcastable(self) -> tuple[bool, ...]:
        """For each axis, True if its length is known to be 1."""
        return tuple(length == 1 for length in self.shape)

    @cached_property
    def numpy_dtype(self) -> np.dtype:
        """The dtype as NumPy's object."""
        return dtypes.numpy_dtype(self.dtype)

    def clone(
        self, dtype: str | None = None, shape: Any = None, broadcastable: Any = None
    ) -> TensorType:
        """Return the same type with another dtype or shape."""
        if shape is None and broadcastable is None:
            shape = self.shape
        return TensorType(dtype or self.dtype, shape, broadcastable)

    # -- relations
    # -----------------------------------------------------------------------------------

    def is_super(self, other: Type) -> bool:
        """Tell whether ``other`` has the same dtype and rank and at least the lengths known here.
        """
        return self is other or (
            isinstance(other, TensorType)
            and self.dtype == other.dtype
            and len(self.shape) == len(other.shape)
            and all(
                mine is None or mine == theirs
                for mine, theirs in zip(self.shape, other.shape, strict=True)
            )
        )

    # -- values
    # --------------------------------------------------------------------------------------

    def filter(self, value: Any, strict: bool = False, allow_downcast: bool | None = None) -> Any:
        """Return ``value`` as an array of this type.

        Parameters
        ----------
        value : array_like
        strict : bool
            Accept only an ndarray that already has the dtype and rank.
        allow_downcast : bool or None
            True: convert to the dtype even if precision is lost. False: only if none is lost.
            None: as False,
            except that one Python float is accepted where ``config.floatX`` is the dtype.

        Raises
        ------
        DTypeError
            If precision would be lost, or ``value`` is not numeric.
        ShapeError
            If the rank, or a known length, differs.
        """
        if type(value) is np.ndarray and value.dtype == self.numpy_dtype:
            array = value
        elif strict:
            raise DTypeError(
                f"expected a {self.dtype} ndarray with {self.ndim} axes (strict), "
                f"got {describe_value(value)}"
            )
        else:
            array = self._convert(value, allow_downcast)
        self._check_shape(array)
        return array

    def _convert(self, value: Any, allow_downcast: bool | None) -> np.ndarray:
        if isinstance(value, Variable):
            raise DTypeError(
                f"expected a value, got the symbolic variable {value} of type {value.type}: "
                "variables are used when the graph is built, not when it is called"
            )
        refuse_masked(value)
        try:
            array = np.asarray(value)
        except ValueError as problem:
            raise DTypeError(f"{describe_value(value)} is no array: {problem}") from None
        if array.dtype == self.numpy_dtype:
            return array
        if array.dtype.newbyteorder("=") == self.numpy_dtype:
            return array.astype(self.numpy_dtype)
        if not dtypes.is_numeric(array.dtype):
            raise DTypeError(f"{describe_value(value)} is not numeric; {self} expected")
        if allow_downcast or self._is_exact(value, array):
            return array.astype(self.dtype)
        if type(value) is float and allow_downcast is None and self.dtype == config.floatX:
            return array.astype(self.dtype)
        raise DTypeError(
            f"expected {self.dtype}, got {describe_value(value)}, which may lose precision: "
            "convert it "
            f"with numpy.asarray(value, {self.dtype!r}), or pass allow_input_downcast=True (for a "
            "shared "
            "variable, allow_downcast=True)"
        )

    def _is_exact(self, value: Any, array: np.ndarray) -> bool:
        """Tell whether the conversion of ``value``, read as ``array``, to this dtype is exact.

        Arrays are judged by dtype, Python numbers (and 64-bit integers that become floats) by
        value.
        """
        if isinstance(value, np.ndarray | np.generic):
            if not np.can_cast(array.dtype, self.dtype, "safe"):
                return False
            if array.dtype.itemsize < 8 or array.dtype.kind not in "iu" or array.size == 0:
                return True
            return is_discrete(self.dtype) or -(2**53) <= array.min() <= array.max() <= 2**53
        if array.dtype.kind == "c" and self.numpy_dtype.kind != "c":
            return False
        with np.errstate(all="ignore"):
            stored = array.astype(self.dtype)
            return bool(np.all((stored == array) | ((stored != stored) & (array != array))))

    def _check_shape(self, array: np.ndarray) -> None:
        if array.ndim != len(self.shape):
            raise ShapeError(
                f"expected {len(self.shape)} axes ({self}), got {array.ndim}: an array of shape "
                f"{array.shape}"
            )
        for length, actual in zip(self.shape, array.shape, strict=True):
            if length is not None and length != actual:
                raise ShapeError(f"expected shape {self.shape}, got {array.shape}")

    def values_eq(self, a: Any, b: Any) -> bool:
        """Tell whether shapes, dtypes and elements are equal; NaN equals NaN."""
        a, b = np.asarray(a), np.asarray(b)
        if a.shape != b.shape or a.dtype != b.dtype:
            return False
        return bool(np.array_equal(a, b, equal_nan=not is_discrete(a.dtype.name)))

    def values_eq_approx(
        self, a: Any, b: Any, rtol: float | None = None, atol: float | None = None
    ) -> bool:
        """Tell whether shapes and dtypes are equal and elements agree to the dtype's usual
        precision.
        """
        a, b = np.asarray(a), np.asarray(b)
        if a.shape != b.shape or a.dtype != b.dtype:
            return False
        if is_discrete(a.dtype.name):
            return bool(np.array_equal(a, b))
        rtol = _LOOSE.get(a.dtype.name, 1e-8) if rtol is None else rtol
        return np.allclose(a, b, rtol, rtol if atol is None else atol, equal_nan=True)

    def may_share_memory(self, a: Any, b: Any) -> bool:
        """Tell whether the two arrays may overlap."""
        return isinstance(a, np.ndarray) and isinstance(b, np.ndarray) and np.may_share_memory(a, b)

    def copy_value(self, value: Any) -> np.ndarray:
        """Return a copy of the array that keeps its memory order."""
        return np.array(value, copy=True, order="K")

    # -- words
    # ---------------------------------------------------------------------------------------

    def __str__(self) -> str:
        if self.ndim < len(_RANK_NAMES) and not any(n is not None for n in self.shape):
            return f"{self.dtype} {_RANK_NAMES[self.ndim]}"
        shape = ", ".join("?" if n is None else str(n) for n in self.shape)
        return f"{self.dtype} tensor ({shape})"

    def __repr__(self) -> str:
        return f"TensorType({self.dtype}, {self.shape})"


class TensorVariable(Variable):
    """A symbolic array. Behaves like an ndarray; every operation builds a graph."""

    type: TensorType

    @property
    def dtype(self) -> str:
        """The dtype's name."""
        return self.type.dtype

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return self.type.ndim

    @property
    def broadcastable(self) -> tuple[bool, ...]:
        """For each axis, True if its length is known to be 1."""
        return self.type.broadcastable

    if TYPE_CHECKING:  # Attributes that ops/operators.py installs.

        def __getattr__(self, name: str) -> Any: ...
        def __add__(self, other: Any) -> Any: ...
        def __radd__(self, other: Any) -> Any: ...
        def __sub__(self, other: Any) -> Any: ...
        def __rsub__(self, other: Any) -> Any: ...
        def __mul__(self, other: Any) -> Any: ...
        def __rmul__(self, other: Any) -> Any: ...
        def __truediv__(self, other: Any) -> Any: ...
        def __rtruediv__(self, other: Any) -> Any: ...
        def __floordiv__(self, other: Any) -> Any: ...
        def __rfloordiv__(self, other: Any) -> Any: ...
        def __mod__(self, other: Any) -> Any: ...
        def __rmod__(self, other: Any) -> Any: ...
        def __divmod__(self, other: Any) -> Any: ...
        def __rdivmod__(self, other: Any) -> Any: ...
        def __pow__(self, other: Any) -> Any: ...
        def __rpow__(self, other: Any) -> Any: ...
        def __and__(self, other: Any) -> Any: ...
        def __rand__(self, other: Any) -> Any: ...
        def __or__(self, other: Any) -> Any: ...
        def __ror__(self, other: Any) -> Any: ...
        def __xor__(self, other: Any) -> Any: ...
        def __rxor__(self, other: Any) -> Any: ...
        def __lshift__(self, other: Any) -> Any: ...
        def __rlshift__(self, other: Any) -> Any: ...
        def __rshift__(self, other: Any) -> Any: ...
        def __rrshift__(self, other: Any) -> Any: ...
        def __matmul__(self, other: Any) -> Any: ...
        def __rmatmul__(self, other: Any) -> Any: ...
        def __lt__(self, other: Any) -> Any: ...
        def __gt__(self, other: Any) -> Any: ...
        def __le__(self, other: Any) -> Any: ...
        def __ge__(self, other: Any) -> Any: ...
        def __neg__(self) -> Any: ...
        def __pos__(self) -> Any: ...
        def __invert__(self) -> Any: ...
        def __abs__(self) -> Any: ...
        def __getitem__(self, key: Any) -> Any: ...
        def __iter__(self) -> Iterator[Any]: ...


class TensorConstant(Constant, TensorVariable):
    """A symbolic array whose value is known."""

    type: TensorType

    def signature(self) -> Any:
        """Return a key that is equal for constants of equal type and bytes; large constants only
        equal themselves.
        """
        data = np.asarray(self.data)
        return (self.type, data.tobytes() if data.nbytes <= LARGE else id(data))

    def __str__(self) -> str:
        if self.name is not None:
            return self.name
        data = np.asarray(self.data)
        return str(data) if data.size <= 6 else f"constant{data.shape}"


def describe_value(value: Any) -> str:
    """Describe a value in an error message: kind, dtype and shape, not contents."""
    if isinstance(value, np.ndarray):
        article = "an" if value.dtype.kind in "iO" else "a"
        return f"{article} {value.dtype} array of shape {value.shape}"
    if isinstance(value, np.generic):
        return f"the {value.dtype} scalar {value!r}"
    if is_sparse_value(value):
        return describe_sparse_value(value)
    text = repr(value)
    return f"{type(value).__name__} {text if len(text) < 60 else text[:57] + '...'}"


TensorType.variable_class = TensorVariable
TensorType.constant_class = TensorConstant
