"""The operators and methods of SparseVariable, as one table."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Number
from typing import Any

import numpy as np

from symcomp.core.members import add_members
from symcomp.core.tensor import TensorVariable
from symcomp.sparse import arithmetic, convert, elementwise, indexing, products, reductions
from symcomp.sparse.components import parts_of
from symcomp.sparse.constructors import csm_properties, sp_ones_like, sp_zeros_like
from symcomp.sparse.op import SparseShape, as_scalar, length
from symcomp.sparse.structure import diag, neg, transpose
from symcomp.sparse.type import SparseVariable
from symcomp.sparse.values import is_sparse

BINARY: dict[str, Callable[..., Any]] = {
    "add": arithmetic.add,
    "sub": arithmetic.sub,
    "mul": arithmetic.mul,
    "matmul": products.structured_dot,
}
COMPARISONS: dict[str, Callable[..., Any]] = {
    "lt": arithmetic.lt,
    "gt": arithmetic.gt,
    "le": arithmetic.le,
    "ge": arithmetic.ge,
}
# Methods that are the function of the same name with the variable as first argument.
METHODS: tuple[tuple[Any, str], ...] = (
    (convert, "asformat tocsr tocsc tocoo tobsr toarray"),
    (elementwise, " ".join(elementwise.ZERO_AT_ZERO) + " rint power"),
    (reductions, "mean max min"),
    (arithmetic, "eq neq maximum minimum"),
)


def install() -> None:
    """Give SparseVariable its operators, methods and properties."""
    members: dict[str, Any] = {}
    for name, function in (BINARY | COMPARISONS).items():
        members[f"__{name}__"] = _operator(function, reflected=False)
    for name, function in BINARY.items():
        members[f"__r{name}__"] = _operator(function, reflected=True)
    for module, names in METHODS:
        members |= {name: _method(getattr(module, name)) for name in names.split()}
    members |= {
        name: value
        for name, value in vars(_Members).items()
        if not name.startswith("__") or name in _SPECIAL
    }
    add_members(SparseVariable, members)


def _method(function: Callable[..., Any]) -> Callable[..., Any]:
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        return function(self, *args, **kwargs)

    method.__name__ = function.__name__
    method.__doc__ = f"The function ``{function.__name__}`` of this matrix."
    return method


def _understood(other: Any) -> bool:
    known = (SparseVariable, TensorVariable, Number, np.ndarray, np.generic, list, tuple)
    return isinstance(other, known) or is_sparse(other)


def _operator(function: Callable[..., Any], reflected: bool) -> Callable[..., Any]:
    def operator(self: Any, other: Any) -> Any:
        if not _understood(other):
            return NotImplemented
        return function(other, self) if reflected else function(self, other)

    return operator


class _Members:
    """Members that need code of their own; they are copied to SparseVariable."""

    T = property(lambda self: transpose(self), doc="The transpose; CSR becomes CSC, and CSC CSR.")
    shape = property(lambda self: SparseShape()(self), doc="The lengths, an int64 vector.")
    nnz = property(
        lambda self: parts_of(self).indices.shape[0], doc="The number of stored entries."
    )
    size = property(
        lambda self: as_scalar(length(self, 0)) * as_scalar(length(self, 1)),
        doc="The number of elements, stored or not.",
    )

    def __neg__(self: Any) -> Any:
        return neg(self)

    def __pos__(self: Any) -> Any:
        return self

    def __abs__(self: Any) -> Any:
        return elementwise.abs_(self)

    def __pow__(self: Any, n: Any) -> Any:
        return elementwise.power(self, n)

    def __truediv__(self: Any, other: Any) -> Any:
        return arithmetic.div(self, other) if _understood(other) else NotImplemented

    def __getitem__(self: Any, key: Any) -> Any:
        return indexing.getitem(self, key)

    def __iter__(self: Any) -> Any:
        raise TypeError(f"cannot iterate over the sparse variable {self}: write x[i]")

    def __bool__(self: Any) -> bool:
        raise TypeError(f"the truth of the symbolic sparse variable {self} is not known")

    def __len__(self: Any) -> int:
        raise TypeError(f"the length of the symbolic variable {self} is x.shape[0], not len(x)")

    def dot(self: Any, other: Any) -> Any:
        """Return the product with a dense matrix or vector, or a sparse matrix; see structured_dot.
        """
        return products.structured_dot(self, other)

    # Called by symcomp.tensor.dot, with a tensor on either side.
    __dot__ = dot

    def __rdot__(self: Any, other: Any) -> Any:
        return products.structured_dot(other, self)

    def transpose(self: Any) -> Any:
        """Return the transpose."""
        return transpose(self)

    def astype(self: Any, dtype: Any) -> Any:
        """Return the matrix with entries of another dtype."""
        return convert.cast(self, dtype)

    def todense(self: Any) -> Any:
        """Return the matrix as a dense one."""
        return convert.dense_from_sparse(self)

    def multiply(self: Any, other: Any) -> Any:
        """Multiply element by element."""
        return arithmetic.mul(self, other)

    def sum(self: Any, axis: Any = None, sparse_grad: bool = False) -> Any:
        """Return the sum over an axis, dense; see sp_sum."""
        return reductions.sp_sum(self, axis, sparse_grad)

    def diagonal(self: Any) -> Any:
        """Return the main diagonal, a dense vector."""
        return diag(self)

    def conjugate(self: Any) -> Any:
        """Return the complex conjugate."""
        return elementwise.conj(self)

    def zeros_like(self: Any, dtype: Any = None) -> Any:
        """Return a matrix of the same shape and format that stores nothing."""
        return sp_zeros_like(self, dtype)

    def ones_like(self: Any) -> Any:
        """Return a matrix with the same pattern whose entries are 1."""
        return sp_ones_like(self)

    def csm_properties(self: Any) -> Any:
        """Return the data, indices, indptr and shape."""
        return csm_properties(self)

    def copy(self: Any, name: str | None = None) -> Any:
        """Return the matrix as a new variable, possibly with a name."""
        twin = convert.Cast(self.dtype)(self)
        twin.name = name
        return twin

    def as_tensor_variable(self: Any) -> Any:
        """Refuse to be made dense in silence."""
        raise TypeError(
            f"{self} ({self.type}) is sparse where a tensor is expected: write x.toarray(), or use "
            "the function of symcomp.sparse"
        )


_SPECIAL = (
    "__neg__", "__pos__", "__abs__", "__pow__", "__truediv__", "__getitem__", "__iter__",
    "__bool__", "__len__", "__dot__", "__rdot__",
)  # fmt: skip
