"""Sparse matrices in the graph: SparseType, SparseVariable and SparseConstant.

The operators and methods of SparseVariable are a table in ``operators.py``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from symcomp.core.dtype import canonical as canonical_dtype
from symcomp.core.dtype import is_discrete
from symcomp.core.node import Constant, Type, Variable
from symcomp.core.record import record
from symcomp.core.sparse_values import density_of, describe_sparse_value
from symcomp.core.tensor import (
    LARGE,
    StaticShape,
    TensorType,
    TensorVariable,
    describe_value,
    static_shape,
)
from symcomp.cvm.machine import SparseValues
from symcomp.errors import DTypeError, GradientError, ShapeError
from symcomp.sparse import values
from symcomp.sparse.values import (
    COMPRESSED,
    CONTAINERS,
    FORMATS,
    INDEX_DTYPES,
    arrays_of,
    canonical,
    check_dtype,
    check_value,
    class_of,
    components,
    container_of,
    copied,
    finished,
    is_canonical,
    is_sparse,
    with_index_dtype,
)


@record(repr=False)
class SparseType(Type):
    """The type of sparse matrices of one format and dtype, with some lengths known.

    Parameters
    ----------
    format : {"csr", "csc", "bsr", "coo"}
    dtype : str or numpy.dtype
        Any dtype of tensors but float16 and bfloat16.
    shape : sequence of int or None
        The two lengths, None where one is unknown.
    index_dtype : {"int32", "int64"}
        The dtype of the arrays that say where entries are.
    container : {"matrix", "array"}
        Whether results are SciPy's sparse matrices or sparse arrays. Arguments may be either.

    Examples
    --------
    >>> from symcomp.sparse import SparseType
    >>> SparseType("csr", "float64", (None, 3))
    SparseType(csr, float64, (None, 3))
    """

    format: str
    dtype: str
    shape: StaticShape = field(default=(None, None))
    index_dtype: str = "int32"
    container: str = "matrix"

    ndim = 2
    broadcastable = (False, False)

    def __init__(
        self,
        format: str,
        dtype: Any,
        shape: Sequence[Any] = (None, None),
        index_dtype: Any = "int32",
        container: str = "matrix",
    ) -> None:
        name, index_name = canonical_dtype(dtype), canonical_dtype(index_dtype)
        for what, given, allowed in (
            ("format", format, FORMATS),
            ("index_dtype", index_name, INDEX_DTYPES),
            ("container", container, CONTAINERS),
        ):
            if given not in allowed:
                raise ValueError(f"SparseType: {what}={given!r}: must be one of {allowed}")
        check_dtype(name)
        lengths = static_shape(shape)
        if len(lengths) != 2:
            raise ShapeError(f"SparseType: shape {tuple(shape)} has {len(lengths)} axes, not 2")
        for key, value in zip(
            self.__match_args__,
            (format, name, lengths, index_name, container),
            strict=True,
        ):
            object.__setattr__(self, key, value)

    @cached_property
    def numpy_dtype(self) -> np.dtype:
        """The dtype as NumPy's object."""
        return np.dtype(self.dtype)

    @property
    def native_values(self) -> SparseValues:
        """Return a description of the values for C."""
        classes = tuple(class_of(self.format, container) for container in CONTAINERS)
        return SparseValues(
            classes, self.format, self.numpy_dtype, np.dtype(self.index_dtype), self.shape
        )

    @property
    def is_compressed(self) -> bool:
        """Whether the format is CSR or CSC."""
        return self.format in COMPRESSED

    def clone(self, **changes: Any) -> SparseType:
        """Return the same type with some parameters changed."""
        names = ("format", "dtype", "shape", "index_dtype", "container")
        return SparseType(**{name: changes.get(name, getattr(self, name)) for name in names})

    def is_super(self, other: Type) -> bool:
        """Return whether ``other`` differs at most by its container and by knowing more lengths."""
        return self is other or (
            isinstance(other, SparseType)
            and (self.format, self.dtype, self.index_dtype)
            == (other.format, other.dtype, other.index_dtype)
            and all(m is None or m == n for m, n in zip(self.shape, other.shape, strict=True))
        )

    def joined(self, other: Type) -> SparseType | None:
        """Return the type of values of both types, or None if formats or dtypes differ."""
        if not isinstance(other, SparseType):
            return None
        known = [m if m == n else None for m, n in zip(self.shape, other.shape, strict=True)]
        loose = self.clone(shape=known)
        return loose if loose.is_super(other) else None

    # -- values

    def filter(self, value: Any, strict: bool = False, allow_downcast: bool | None = None) -> Any:
        """Return ``value`` as a sparse value of this type, in canonical form.

        Parameters
        ----------
        value : sparse array or matrix of SciPy, or array_like with two axes
        strict : bool
            Accept only a sparse value that already has the format, dtypes and canonical form.
        allow_downcast : bool or None
            True: convert to the dtype even if precision is lost.

        Raises
        ------
        DTypeError
            If precision would be lost, or ``value`` is neither sparse nor a numeric matrix.
        ShapeError
            If a known length differs.
        SparsePatternError
            If its indices do not fit its shape, or the dtype of indices.
        """
        if not is_sparse(value):
            value = self._from_dense(value, strict)
        if value.format not in FORMATS:
            value = value.tocsr()
        check_value(value)
        if strict:
            self._check_strictly(value)
        elif value.dtype != self.dtype and not allow_downcast:
            self._check_precision(value)
        if any(n not in (None, m) for n, m in zip(self.shape, value.shape, strict=True)):
            raise ShapeError(f"expected shape {self.shape}, got {describe_sparse_value(value)}")
        if value.format != self.format:
            value = canonical(value).asformat(self.format)
        if value.dtype != self.dtype:
            value = value.astype(self.dtype)
        return with_index_dtype(canonical(value), self.index_dtype)

    def _from_dense(self, value: Any, strict: bool) -> Any:
        array = None if strict or isinstance(value, Variable) else np.asarray(value)
        if array is None or array.dtype.kind not in "biufc":
            raise DTypeError(
                f"expected a sparse matrix ({self}), got {describe_value(value)}: make one by "
                f"scipy.sparse.{self.format}_array"
            )
        if array.ndim != 2:
            raise ShapeError(f"expected a matrix ({self}), got an array of shape {array.shape}")
        return values.scipy_sparse.coo_array(array)

    def _check_strictly(self, value: Any) -> None:
        parts = components(value)
        kinds = (value.format, value.dtype, parts.indices.dtype, parts.indptr.dtype)
        if kinds != (self.format, self.dtype, self.index_dtype, self.index_dtype):
            raise DTypeError(
                f"expected a {self} with indices of {self.index_dtype} (strict), got "
                f"{describe_sparse_value(value)}, with indices of {parts.indices.dtype}"
            )
        if not is_canonical(value):
            raise DTypeError(
                f"expected sorted indices without duplicates (strict), got "
                f"{describe_sparse_value(value)} without: call its sum_duplicates()"
            )

    def _check_precision(self, value: Any) -> None:
        if np.can_cast(value.dtype, self.dtype, "safe"):
            return
        # Each entry is checked, as those of tensors are: integers that fit are accepted.
        try:
            TensorType(self.dtype, (None,)).filter(value.data.ravel())
        except DTypeError as problem:
            raise DTypeError(
                f"expected a {self}, got {describe_sparse_value(value)}: {problem}"
            ) from None

    def filter_gradient(self, x: Variable, term: Any, who: str) -> Any:
        """Return ``term``, the gradient or tangent that ``who`` gave for ``x``, checked."""
        if not isinstance(term.type, SparseType):
            raise GradientError(
                f"{who} gave a {term.type} for {x} ({x.type}), which is sparse: give a sparse one, "
                "as sparse.csr_from_dense makes it"
            )
        if any(
            m is not None and n is not None and m != n
            for m, n in zip(self.shape, term.type.shape, strict=True)
        ):
            raise ShapeError(f"{who} gave a {term.type} for {x} ({x.type}); shapes must agree")
        return term

    def values_eq(self, a: Any, b: Any) -> bool:
        """Return whether two values have the same pattern and entries; NaN equals NaN."""
        return self._compare(a, b, lambda kind, x, y: kind.values_eq(x, y))

    def values_eq_approx(
        self, a: Any, b: Any, rtol: float | None = None, atol: float | None = None
    ) -> bool:
        """Return whether two values have one pattern and entries that agree to usual precision."""
        return self._compare(a, b, lambda kind, x, y: kind.values_eq_approx(x, y, rtol, atol))

    def _compare(self, a: Any, b: Any, equal: Any) -> bool:
        if not (is_sparse(a) and is_sparse(b)) or a.format != b.format or a.shape != b.shape:
            return False
        x, y = components(canonical(a)), components(canonical(b))
        places = all(map(np.array_equal, x[1:3], y[1:3]))
        kind = TensorType(a.dtype, (None,) * x.data.ndim)
        return places and bool(equal(kind, x.data, y.data))

    def may_share_memory(self, a: Any, b: Any) -> bool:
        """Return whether an array of one value, and the other or one of its arrays, may overlap."""
        mine, theirs = (arrays_of(v) if is_sparse(v) else (v,) for v in (a, b))
        return any(
            isinstance(x, np.ndarray) and isinstance(y, np.ndarray) and np.may_share_memory(x, y)
            for x in mine
            for y in theirs
        )

    def copy_value(self, value: Any) -> Any:
        """Return a value with arrays of its own."""
        return copied(self.filter(value))

    def finish(self, value: Any) -> Any:
        """Return a result of SciPy's as a value of this type."""
        return finished(value, self.format, self.dtype, self.index_dtype, self.container)

    # -- words

    def __str__(self) -> str:
        if self.shape == (None, None):
            return f"{self.dtype} {self.format} matrix"
        lengths = ", ".join("?" if n is None else str(n) for n in self.shape)
        return f"{self.dtype} {self.format} matrix ({lengths})"

    def __repr__(self) -> str:
        known = f", {self.shape}" if self.shape != (None, None) else ""
        wide = f", {self.index_dtype}" if self.index_dtype != "int32" else ""
        array = f", {self.container}" if self.container != "matrix" else ""
        return f"SparseType({self.format}, {self.dtype}{known}{wide}{array})"


class SparseVariable(Variable):
    """A symbolic sparse matrix. Every operation builds a graph; ``*`` is elementwise."""

    type: SparseType
    # Operators between tensors and sparse matrices are those of the latter.
    has_operators_for_tensors = True
    # NumPy leaves operators to the variable.
    __array_ufunc__ = None
    __array_priority__ = 2000.0

    @property
    def dtype(self) -> str:
        """The dtype's name."""
        return self.type.dtype

    @property
    def format(self) -> str:
        """The format: ``"csr"``, ``"csc"``, ``"bsr"`` or ``"coo"``."""
        return self.type.format

    @property
    def ndim(self) -> int:
        """The number of axes, 2."""
        return 2

    @property
    def broadcastable(self) -> tuple[bool, bool]:
        """False for both axes: sparse matrices do not broadcast."""
        return (False, False)

    if TYPE_CHECKING:  # Attributes that operators.py installs.

        def __getattr__(self, name: str) -> Any: ...
        def __add__(self, other: Any) -> Any: ...
        def __radd__(self, other: Any) -> Any: ...
        def __sub__(self, other: Any) -> Any: ...
        def __rsub__(self, other: Any) -> Any: ...
        def __mul__(self, other: Any) -> Any: ...
        def __rmul__(self, other: Any) -> Any: ...
        def __truediv__(self, other: Any) -> Any: ...
        def __matmul__(self, other: Any) -> Any: ...
        def __rmatmul__(self, other: Any) -> Any: ...
        def __pow__(self, other: Any) -> Any: ...
        def __neg__(self) -> Any: ...
        def __getitem__(self, key: Any) -> Any: ...


class SparseConstant(Constant, SparseVariable):
    """A sparse matrix whose value is known."""

    type: SparseType

    def signature(self) -> Any:
        """Return a key that is equal for constants of equal type and bytes; large ones differ."""
        arrays = arrays_of(self.data)
        if sum(array.nbytes for array in arrays) > LARGE:
            return (self.type, id(self.data))
        return (self.type, self.data.shape, *(array.tobytes() for array in arrays))

    def __str__(self) -> str:
        if self.name is not None:
            return self.name
        rows, columns = self.data.shape
        return f"{self.data.format} constant ({rows}, {columns}), {density_of(self.data)}"


SparseType.variable_class = SparseVariable
SparseType.constant_class = SparseConstant


def type_of_value(value: Any, **changes: Any) -> SparseType:
    """Return the type of a sparse value with no lengths known; indices are int32 if they fit."""
    narrow = max(*value.shape, value.nnz, 1) <= np.iinfo("int32").max
    known = {
        "format": value.format,
        "dtype": value.dtype,
        "shape": (None, None),
        "index_dtype": "int32" if narrow else "int64",
        "container": container_of(value),
    }
    return SparseType(**(known | {k: v for k, v in changes.items() if v is not None}))


def is_sparse_variable(x: Any) -> bool:
    """Return whether ``x`` is a variable whose values are sparse matrices.

    Examples
    --------
    >>> from symcomp import sparse
    >>> sparse.is_sparse_variable(sparse.csr_dmatrix("A"))
    True
    """
    return isinstance(x, SparseVariable)


def is_dense_variable(x: Any) -> bool:
    """Return whether ``x`` is a tensor variable."""
    return isinstance(x, TensorVariable)


def has_discrete_dtype(x: Any) -> bool:
    """Return whether the entries of ``x`` are whole numbers or truth values."""
    return is_discrete(x.dtype)
