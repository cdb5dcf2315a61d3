"""Shared variables that hold sparse matrices."""

from __future__ import annotations

from typing import Any

from symcomp.compile.shared import (
    NotMine,
    SharedVariable,
    add_constructor,
    place_of,
    placed,
)
from symcomp.config import config
from symcomp.core.node import Type
from symcomp.core.tensor import describe_value
from symcomp.lazy import lazy_module
from symcomp.sparse.type import SparseType, SparseVariable, type_of_value
from symcomp.sparse.values import is_sparse

matrices = lazy_module("symcomp.compile.device_matrices")


class SparseSharedVariable(SharedVariable, SparseVariable):
    """A shared sparse matrix."""

    type: SparseType

    @staticmethod
    def type_on(device: str, kind: Type) -> Type:
        """Return the type of the values of ``kind`` on a device."""
        found: Type = matrices.DeviceSparseType(device, kind)
        return found

    def zero(self, borrow: bool = False) -> None:
        """Set all stored entries to zero; the pattern stays."""
        value = self.get_value()
        value.data[...] = 0
        self.set_value(value, borrow=True)


def sparse_shared(
    value: Any,
    name: str | None = None,
    strict: bool = False,
    allow_downcast: bool | None = None,
    borrow: bool = False,
    format: str | None = None,
    shape: Any = None,
    target: str | None = None,
    device: str | None = None,
    **options: Any,
) -> SparseSharedVariable:
    """Make a shared variable of a SciPy sparse array or matrix, on the host or on a device."""
    if options or not is_sparse(value):
        raise NotMine(f"not a sparse matrix: {describe_value(value)} with options {options}")
    kind = type_of_value(value, format=format, shape=shape)
    checked = kind.filter(value)
    if checked is value and not borrow:
        checked = kind.copy_value(value)
    place = place_of(device, target) or _default_place(kind)
    return placed(SparseSharedVariable, place, kind, checked, name, strict, allow_downcast)


def _default_place(kind: SparseType) -> str:
    """Return ``config.device`` where that multiplies matrices of this type, else ``"cpu"``."""
    if config.device == "cpu" or not matrices.multiplies(kind, config.device):
        return "cpu"
    return config.device


add_constructor(sparse_shared)


def shared(
    value: Any,
    name: str | None = None,
    format: str | None = None,
    borrow: bool = False,
    strict: bool = False,
    allow_downcast: bool | None = None,
    shape: Any = (None, None),
    device: str | None = None,
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
    device : str, optional
        Where the matrix lives, ``"cpu"``, ``"cuda0"``, .. or ``"emu"``: CSR and CSC of floats and
        complex numbers may live on devices. By default they are on ``config.device`` where it has
        cuSPARSE.

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
        value, name, strict, allow_downcast, borrow, format, shape, device=device
    )
