"""Shared variables that hold sparse matrices."""

from __future__ import annotations

from typing import Any

from symcomp.compile.shared import NotMine, SharedVariable, add_constructor
from symcomp.core.tensor import describe_value
from symcomp.sparse.type import SparseType, SparseVariable, type_of_value
from symcomp.sparse.values import is_sparse


class SparseSharedVariable(SharedVariable, SparseVariable):
    """A shared sparse matrix."""

    type: SparseType

    def zero(self, borrow: bool = False) -> None:
        """Set all stored entries to zero; the pattern stays."""
        value = self.type.copy_value(self.container.value)
        value.data[...] = 0
        self.container.value = value


def sparse_shared(
    value: Any,
    name: str | None = None,
    strict: bool = False,
    allow_downcast: bool | None = None,
    borrow: bool = False,
    format: str | None = None,
    shape: Any = None,
    **options: Any,
) -> SparseSharedVariable:
    """Make a shared variable of a SciPy sparse array or matrix."""
    if options or not is_sparse(value):
        raise NotMine(f"not a sparse matrix: {describe_value(value)} with options {options}")
    kind = type_of_value(value, format=format, shape=shape)
    checked = kind.filter(value)
    if checked is value and not borrow:
        checked = kind.copy_value(value)
    return SparseSharedVariable(kind, checked, name, strict, allow_downcast)


add_constructor(sparse_shared)


def shared(
    value: Any,
    name: str | None = None,
    format: str | None = None,
    borrow: bool = False,
    strict: bool = False,
    allow_downcast: bool | None = None,
    shape: Any = (None, None),
) -> SparseSharedVariable:
    """Make a shared variable that holds a sparse matrix.

    Parameters
    ----------
    value : sparse array or matrix of SciPy
    name : str, optional
    format : {"csr", "csc", "bsr", "coo"}, optional
        By default that of the value.
    borrow : bool
        Keep the object itself, if it is in canonical form.
    strict, allow_downcast
        As for ``symcomp.shared``.
    shape : two of int or None
        The lengths that stay; by default none.

    Examples
    --------
    >>> import scipy.sparse
    >>> import symcomp
    >>> from symcomp import sparse
    >>> w = sparse.shared(scipy.sparse.eye_array(2, format="csr"), name="w")
    >>> step = symcomp.function([], updates=[(w, w * 2)])
    >>> step()
    >>> w.get_value().toarray()
    array([[2., 0.],
           [0., 2.]])
    """
    return sparse_shared(
        value, name, strict, allow_downcast, borrow=borrow, format=format, shape=shape
    )
